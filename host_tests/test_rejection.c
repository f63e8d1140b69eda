/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that did not build: which logs of compilers blame the source, and when a program is
 * built again (src/device/program.c). */
#include "base/os.h"
#include "device/program.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char rejected[] = "a.cl:1:2: error: x";

static void logs_blame_the_source(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second; /* NULL: the same again */
        bool blames;
    } rows[] = {
        /* PoCL 3.1 */
        {"error: /tmp/kcache/tempfile_IwxPdF.cl:1:35: use of undeclared identifier 'x'\nDevice "
         "failed to build the program\n",
         "error: /tmp/kcache/tempfile_ABCdEf.cl:1:35: use of undeclared identifier 'x'\nDevice "
         "failed to build the program\n",
         true},
        {"warning: a.clh:13:26: unsupported extension\nerror: gpu/unit/amd_wmma.clh:68:12 "
         "<Spelling=<scratch space>:184:1>: use of undeclared identifier 'x'\n",
         NULL, true},
        {"error: <invalid loc>: unable to rename temporary 'a.tmp' to output file 'a.cl': 'No such "
         "file or directory'\n",
         NULL, false},
        {"error: <built-in>:1:10: '/usr/share/pocl/include/_kernel.h' file not found\nerror: "
         "a.cl:3:9: use of undeclared identifier 'get_global_id'\n",
         NULL, false},
        {"Error(s) while linking: \nCannot find symbol g in kernel library\n", NULL, true},
        {"Device pthread failed to build the program\n", NULL, false}, /* on a full disk */
        /* rusticl */
        {"input.cl:1:35: error: use of undeclared identifier 'x'\nError executing LLVM compilation "
         "action.\n",
         NULL, true},
        {"(file=input,line=0,column=0,index=0): Unresolved external reference to \"g\".\n", NULL,
         false},
        /* Intel's runtime for CPUs */
        {"Compilation started\n1:1:35: error: use of undeclared identifier 'x'\n    1 | kernel\n",
         NULL, true},
        {"Linking done\nremark: <unknown>:0:0: 15 instructions in function\nJIT session error: "
         "Symbols not found: [ g ]\n",
         NULL, true},
        /* Others */
        {"ptxas error   : Entry function 'f' uses too much shared data (0x10000 bytes)", NULL,
         true},
        {"12:30:15 error: out of memory", NULL, false},
        {"LLVM ERROR: No space left on device", NULL, false},
        {"clang: error: unable to execute command: Killed", NULL, false},
        {"the compiler was terminated by signal 2", NULL, false},
        {"Interrupted system call", NULL, false},
        {"something is an error", NULL, true},
        {"something is an error", "something else is an error", false},
        {"", NULL, false},
        {rejected, "", false},
        {"", rejected, false},
        {rejected, "out of memory", false},
        {rejected, "b.cl:7:2: error: y", true},
        {rejected, "error: b.cl:7:2", false},
        {rejected, "error: b.cl:7:", false},
        {rejected, "error: b.cl:7", false},
        {rejected, "error: b.cl:0:2: y", false},
        {rejected, "error: b.cl:7:x: y", false},
        {rejected, "error:", false},
        {rejected, ":", false},
        {rejected, "12:30:15 error: y", false},
        {rejected, "b.cl:7:2:\nerror: y", false},
        {rejected, "b.cl:7:2: warning: y", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *second = rows[i].second == NULL ? rows[i].first : rows[i].second;
        if (tconv_logs_blame_source(rows[i].first, second) != rows[i].blames)
            fail_msg("%s, then %s", rows[i].first, second);
    }
    assert_false(tconv_logs_blame_source(NULL, NULL));
    assert_false(tconv_logs_blame_source(rejected, NULL));
    assert_false(tconv_logs_blame_source(NULL, rejected));
}

struct device {
    tconv_device device; /* with no other members than a lock */
    tconv_error error;
};

static int open_device(void **state)
{
    static struct device d;
    d = (struct device){.error = {TCONV_ERROR_BUILD, -11, "it did not build"}};
    *state = &d;
    return pthread_mutex_init(&d.device.lock, NULL);
}

static int close_device(void **state)
{
    struct device *d = *state;
    tconv_rejections_release(d->device.rejections);
    return pthread_mutex_destroy(&d->device.lock);
}

/* Asks as a plan that begins now. */
static bool allows(struct device *d, bool insist, struct tconv_retry *retry)
{
    tconv_error error = {TCONV_OK, 0, ""};
    *retry = (struct tconv_retry){.begun = tconv_os_seconds(), .insist = insist};
    /* A clock may not go on between two questions. */
    while (tconv_os_seconds() == retry->begun) tconv_os_yield();
    retry->begun = tconv_os_seconds();
    const bool allowed = tconv_rejection_allows(&d->device, "key", retry, &error);
    assert_true(allowed == (error.status == TCONV_OK));
    if (!allowed) assert_string_equal(error.message, d->error.message);
    return allowed;
}

static bool add(struct device *d, const char *log, double seconds, struct tconv_retry *retry)
{
    return tconv_rejection_add(&d->device, "key", &d->error, log, seconds, false, retry);
}

static void a_program_that_fails_twice_waits(void **state)
{
    struct device *d = *state;
    struct tconv_retry retry;
    tconv_error error;
    assert_true(allows(d, false, &retry));
    assert_true(add(d, "", 3, &retry)); /* once more */
    assert_true(retry.again == 0);
    assert_true(tconv_rejection_allows(&d->device, "key", &retry, &error));
    assert_false(add(d, "", 3, &retry));
    assert_true(retry.unsure && retry.again > 0 && retry.again <= tconv_os_seconds());
    /* The plan does without it; the next one tries it. */
    assert_false(tconv_rejection_allows(&d->device, "key", &retry, &error));
    retry.insist = true;
    assert_false(tconv_rejection_allows(&d->device, "key", &retry, &error));
    assert_false(retry.waits);
    double pause = 30; /* ten times the build */
    for (int failures = 3; failures < 10; failures++) {
        assert_true(allows(d, false, &retry));
        assert_false(add(d, "", 3, &retry));
        const struct tconv_rejection *r = d->device.rejections;
        assert_int_equal(r->failures, failures);
        assert_true(fabs(r->again - r->last - pause) < 1e-6 && retry.again == r->again);
        pause = 2 * pause + 30;
        assert_false(allows(d, false, &retry));
        assert_true(retry.waits && retry.again == r->again);
        assert_true(allows(d, true, &retry));
        d->device.rejections->again = r->last;
    }
    assert_true(allows(d, false, &retry));
    assert_false(add(d, "", 3, &retry)); /* the last */
    assert_true(retry.again == 0);
    d->device.rejections->last -= 1e9;
    assert_false(allows(d, false, &retry));
    assert_true(retry.again == 0);
    assert_true(allows(d, true, &retry));
    tconv_rejection_remove(&d->device, "key");
    tconv_rejection_remove(&d->device, "key");
    assert_null(d->device.rejections);
    assert_true(allows(d, false, &retry));
}

static void a_wrong_source_is_not_built_again(void **state)
{
    struct device *d = *state;
    struct tconv_retry retry;
    assert_true(allows(d, false, &retry));
    assert_true(add(d, rejected, 3, &retry));
    assert_false(add(d, rejected, 3, &retry));
    assert_true(retry.again == 0);
    for (int insist = 0; insist < 2; insist++) {
        assert_false(allows(d, insist == 1, &retry));
        assert_true(retry.again == 0 && !retry.waits && !retry.unsure);
    }
    /* Not if the log of one try says something else. */
    for (int first = 0; first < 2; first++) {
        tconv_rejection_remove(&d->device, "key");
        assert_true(add(d, first == 1 ? rejected : NULL, 3, &retry));
        assert_false(add(d, first == 0 ? rejected : NULL, 3, &retry));
        assert_true(allows(d, false, &retry));
    }
}

static void short_builds_have_pauses_too(void **state)
{
    struct device *d = *state;
    struct tconv_retry retry = {.insist = false};
    for (int failures = 1; failures <= 3; failures++) add(d, "", 0, &retry);
    assert_true(fabs(d->device.rejections->again - d->device.rejections->last - 0.1) < 1e-6);
}

static void the_list_is_short(void **state)
{
    struct device *d = *state;
    struct tconv_retry retry = {.insist = false};
    char key[20];
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "%d", i);
        tconv_rejection_add(&d->device, key, &d->error, rejected, 1, false, &retry);
    }
    int count = 0;
    for (const struct tconv_rejection *r = d->device.rejections; r != NULL; r = r->next) count++;
    assert_int_equal(count, 64);
    assert_string_equal(d->device.rejections->key, "999");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logs_blame_the_source),
        cmocka_unit_test_setup_teardown(a_program_that_fails_twice_waits, open_device,
                                        close_device),
        cmocka_unit_test_setup_teardown(a_wrong_source_is_not_built_again, open_device,
                                        close_device),
        cmocka_unit_test_setup_teardown(short_builds_have_pauses_too, open_device, close_device),
        cmocka_unit_test_setup_teardown(the_list_is_short, open_device, close_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
