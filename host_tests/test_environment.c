/* SPDX-License-Identifier: Apache-2.0 */
/* The environment variables: the effect of each, and an error with a sentence for every illegal
 * value. */
#include "device/environment.h"

#include "base/os.h"
#include "base/process.h"
#include "portable.h"
#include "store/folder.h"
#include "tconv_cl/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The error of a call names the variable, its value and the legal values. */
static void expect_error(tconv_status status, const tconv_error *error, const char *name,
                         const char *value, const char *possible)
{
    const char *const words[] = {name, value, possible};
    assert_int_equal(status, TCONV_ERROR_ARGUMENT);
    assert_int_equal(error->status, status);
    for (int i = 0; i < 3; i++)
        if (strstr(error->message, words[i]) == NULL)
            fail_msg("\"%s\" is not in: %s", words[i], error->message);
}

#if !defined(_WIN32) /* which has another folder: test_os.c */
static void the_cache_goes_where_it_is_asked_for(void **state)
{
    (void)state;
    static const struct {
        const char *cache, *dir, *xdg, *home, *mib, *folder;
        uint64_t limit;
        bool named;
    } cases[] = {
        {NULL, NULL, "/x", "/h", NULL, "/x/tconv-cl", TCONV_CACHE_LIMIT, false},
        {NULL, NULL, "relative", "/h", NULL, "/h/.cache/tconv-cl", TCONV_CACHE_LIMIT, false},
        {NULL, NULL, NULL, "/h", "12", "/h/.cache/tconv-cl", 12 << 20, false},
        {NULL, "/own", "/x", "/h", "", "/own", TCONV_CACHE_LIMIT, true},
        {"", "", "/x", "/h", "17592186044415", "/x/tconv-cl", UINT64_C(17592186044415) << 20,
         false},
        {NULL, NULL, NULL, "relative", NULL, NULL, TCONV_CACHE_LIMIT, false},
        {NULL, NULL, NULL, NULL, "0", NULL, 0, false},
        {"off", "/own", "/x", "/h", NULL, NULL, TCONV_CACHE_LIMIT, false},
        {"0", NULL, "/x", "/h", NULL, NULL, TCONV_CACHE_LIMIT, false},
        {"on", NULL, "/x", "/h", NULL, "/x/tconv-cl", TCONV_CACHE_LIMIT, false},
        {"1", NULL, "/x", "/h", NULL, "/x/tconv-cl", TCONV_CACHE_LIMIT, false},
    };
    static const char *const names[] = {"TCONV_CL_CACHE", "TCONV_CL_CACHE_DIR", "XDG_CACHE_HOME",
                                        "HOME", "TCONV_CL_CACHE_MIB"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const values[] = {cases[i].cache, cases[i].dir, cases[i].xdg, cases[i].home,
                                      cases[i].mib};
        for (int v = 0; v < 5; v++) set_variable(names[v], values[v]);
        char *folder;
        uint64_t limit;
        bool named;
        assert_int_equal(tconv_environment_cache(&folder, &limit, &named, NULL), TCONV_OK);
        if (cases[i].folder == NULL)
            assert_null(folder);
        else
            assert_string_equal(folder, cases[i].folder);
        assert_int_equal(limit, cases[i].limit);
        assert_true(named == cases[i].named);
        free(folder);
    }
    for (int v = 0; v < 5; v++) set_variable(names[v], NULL);
}
#endif

static void the_cache_has_two_states_and_a_limit(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value, *possible;
    } wrong[] = {
        {"TCONV_CL_CACHE", "no", "off or on"},
        {"TCONV_CL_CACHE", "OFF", "off or on"},
        {"TCONV_CL_CACHE_MIB", "-5", "whole number of MiB"},
        {"TCONV_CL_CACHE_MIB", "+5", "whole number of MiB"},
        {"TCONV_CL_CACHE_MIB", " 5", "whole number of MiB"},
        {"TCONV_CL_CACHE_MIB", "3 ", "whole number of MiB"},
        {"TCONV_CL_CACHE_MIB", "1GiB", "whole number of MiB"},
        {"TCONV_CL_CACHE_MIB", "17592186044416", "whole number of MiB"},
        {"TCONV_CL_CACHE_MIB", "99999999999999999999", "whole number of MiB"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tconv_error error;
        char *folder = NULL;
        uint64_t limit;
        bool named;
        set_variable(wrong[i].name, wrong[i].value);
        expect_error(tconv_environment_cache(&folder, &limit, &named, &error), &error,
                     wrong[i].name, wrong[i].value, wrong[i].possible);
        assert_null(folder);
        set_variable(wrong[i].name, NULL);
    }
}

static void matrix_units_are_off_or_tried(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        enum tconv_matrix_use use;
    } right[] = {{NULL, TCONV_USE_USUAL},
                 {"", TCONV_USE_USUAL},
                 {"off", TCONV_USE_OFF},
                 {"try", TCONV_USE_TRY}};
    static const char *const wrong[] = {"on", "Off", "0", "try "};
    tconv_error error;
    enum tconv_matrix_use use;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        set_variable("TCONV_CL_MATRIX", right[i].value);
        assert_int_equal(tconv_environment_matrix(&use, &error), TCONV_OK);
        assert_int_equal(use, right[i].use);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        set_variable("TCONV_CL_MATRIX", wrong[i]);
        expect_error(tconv_environment_matrix(&use, &error), &error, "TCONV_CL_MATRIX", wrong[i],
                     "off or try");
    }
    set_variable("TCONV_CL_MATRIX", NULL);
}

static void searches_have_names(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        tconv_search search;
    } right[] = {{NULL, TCONV_SEARCH_RECORDS},      {"", TCONV_SEARCH_RECORDS},
                 {"model", TCONV_SEARCH_MODEL},     {"records", TCONV_SEARCH_RECORDS},
                 {"measure", TCONV_SEARCH_MEASURE}, {"renew", TCONV_SEARCH_RENEW}};
    static const char *const wrong[] = {"default", "models", "1", "record"};
    tconv_error error;
    tconv_search search;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        set_variable("TCONV_CL_SEARCH", right[i].value);
        assert_int_equal(tconv_environment_search(&search, &error), TCONV_OK);
        assert_int_equal(search, right[i].search);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        set_variable("TCONV_CL_SEARCH", wrong[i]);
        expect_error(tconv_environment_search(&search, &error), &error, "TCONV_CL_SEARCH", wrong[i],
                     "model, records, measure or renew");
    }
    set_variable("TCONV_CL_SEARCH", NULL);
}

static void launches_have_a_limit(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        double ms;
    } right[] = {{NULL, -1}, {"", -1}, {"0", 0}, {"2000", 2000}};
    static const char *const wrong[] = {"-1", "0.5", "1s", "off", "99999999999"};
    tconv_error error;
    double ms;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        set_variable("TCONV_CL_LAUNCH_MS", right[i].value);
        assert_int_equal(tconv_environment_launch_ms(&ms, &error), TCONV_OK);
        assert_true(ms == right[i].ms);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        set_variable("TCONV_CL_LAUNCH_MS", wrong[i]);
        expect_error(tconv_environment_launch_ms(&ms, &error), &error, "TCONV_CL_LAUNCH_MS",
                     wrong[i], "a whole number of ms");
    }
    set_variable("TCONV_CL_LAUNCH_MS", NULL);
}

static void processors_have_threads(void **state)
{
    (void)state;
    const int all = tconv_os_processors();
    const struct {
        const char *value;
        int threads;
    } right[] = {{NULL, all}, {"", all}, {"off", 0}, {"1", 1}, {"3", 3}, {"1024", 1024}};
    static const char *const wrong[] = {
        "0", "-1", "+2", "2 ", "1.5", "on", "Off", "1025", "99999999999999999999"};
    tconv_error error;
    int threads;
    assert_true(all > 0);
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        set_variable("TCONV_CL_THREADS", right[i].value);
        assert_int_equal(tconv_environment_threads(&threads, &error), TCONV_OK);
        assert_int_equal(threads, right[i].threads);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        set_variable("TCONV_CL_THREADS", wrong[i]);
        expect_error(tconv_environment_threads(&threads, &error), &error, "TCONV_CL_THREADS",
                     wrong[i], "off, or to a number from 1 to 1024");
    }
    set_variable("TCONV_CL_THREADS", NULL);
}

/* PoCL's devices are named only where the environment names none, and threads are wanted. */
static void threads_are_enabled_at_most_once(void **state)
{
    (void)state;
    char devices[40];
    set_variable("POCL_DEVICES", NULL);
    for (int i = 0; i < 2; i++) {
        set_variable("TCONV_CL_THREADS", i == 0 ? "off" : "many");
        assert_false(tconv_threads_enable());
        assert_int_equal(tconv_os_environment("POCL_DEVICES", devices, sizeof devices), 0);
    }
    set_variable("TCONV_CL_THREADS", "2");
    set_variable("POCL_DEVICES", "basic");
    assert_false(tconv_threads_enable());
    tconv_os_environment("POCL_DEVICES", devices, sizeof devices);
    assert_string_equal(devices, "basic");
    set_variable("POCL_DEVICES", NULL);
    assert_true(tconv_threads_enable());
    tconv_os_environment("POCL_DEVICES", devices, sizeof devices);
    assert_string_equal(devices, "pthread basic");
    assert_false(tconv_threads_enable());
    set_variable("POCL_DEVICES", NULL);
    set_variable("TCONV_CL_THREADS", NULL);
    /* too late: something has used OpenCL */
    assert_int_equal(tconv_process_enter(NULL), TCONV_OK);
    assert_false(tconv_threads_enable());
    assert_int_equal(tconv_os_environment("POCL_DEVICES", devices, sizeof devices), 0);
}

static tconv_status read_variable(int which, tconv_error *error)
{
    char text[TCONV_OS_PATH], *folder = NULL;
    enum tconv_matrix_use use;
    tconv_search search;
    double ms;
    uint64_t limit;
    int threads;
    bool named;
    tconv_status status;
    switch (which) {
    case 0: return tconv_environment_device(text, sizeof text, error);
    case 1: return tconv_environment_kernel_dir(text, sizeof text, error);
    case 2: return tconv_environment_matrix(&use, error);
    case 3: return tconv_environment_search(&search, error);
    case 4: return tconv_environment_launch_ms(&ms, error);
    case 6: return tconv_environment_threads(&threads, error);
    default:
        status = tconv_environment_cache(&folder, &limit, &named, error);
        free(folder);
        return status;
    }
}

/* A long value is an error, and never the same as none. Only paths and names of devices may have
 * thousands of characters. */
static void no_value_is_too_long_to_be_read(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int which;
        size_t most;
    } variables[] = {
        {"TCONV_CL_DEVICE", 0, TCONV_OS_PATH - 1},
        {"TCONV_CL_KERNEL_DIR", 1, TCONV_OS_PATH - 1},
        {"TCONV_CL_CACHE_DIR", 5, TCONV_OS_PATH - 1},
        {"TCONV_CL_MATRIX", 2, 99},
        {"TCONV_CL_SEARCH", 3, 99},
        {"TCONV_CL_LAUNCH_MS", 4, 99},
        {"TCONV_CL_THREADS", 6, 99},
        {"TCONV_CL_CACHE", 5, 99},
        {"TCONV_CL_CACHE_MIB", 5, 99},
    };
    static const size_t lengths[] = {99, 100, 4095, 4096, 10000};
    for (size_t v = 0; v < sizeof variables / sizeof *variables; v++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
            static char value[10001];
            memset(value, '0', lengths[l]); /* as a number it would be 0 */
            value[lengths[l]] = '\0';
            set_variable(variables[v].name, value);
            tconv_error error = {TCONV_OK, 0, ""};
            const tconv_status status = read_variable(variables[v].which, &error);
            if (lengths[l] > variables[v].most)
                expect_error(status, &error, variables[v].name, "bytes", "at most");
            else if (variables[v].most > 99)
                assert_int_equal(status, TCONV_OK);
            set_variable(variables[v].name, NULL);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#if !defined(_WIN32)
        cmocka_unit_test(the_cache_goes_where_it_is_asked_for),
#endif
        cmocka_unit_test(the_cache_has_two_states_and_a_limit),
        cmocka_unit_test(matrix_units_are_off_or_tried),
        cmocka_unit_test(searches_have_names),
        cmocka_unit_test(launches_have_a_limit),
        cmocka_unit_test(processors_have_threads),
        cmocka_unit_test(threads_are_enabled_at_most_once),
        cmocka_unit_test(no_value_is_too_long_to_be_read),
    };
    return cmocka_run_group_tests_name("environment", tests, NULL, NULL);
}
