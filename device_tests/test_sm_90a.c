/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's compute capability 9.0: programs with wgmma are built once more from their binary,
 * changed for sm_90a; and what plans do where a driver does not take that. */
#include "device/device.h"
#include "device/sm_90a.h"
#include "fake.h"
#include "faults.h"
#include "tconv_cl/tconv_cl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- the text ---- */

static void expect_changed(const char *from, const char *to)
{
    size_t size = 0;
    const char *lacks = NULL;
    unsigned char *changed = tconv_sm_90a((const unsigned char *)from, strlen(from), &size, &lacks);
    if (to == NULL) {
        assert_null(changed);
        assert_non_null(lacks);
        return;
    }
    assert_non_null(changed);
    if (size != strlen(to) || memcmp(changed, to, size) != 0)
        fail_msg("%.*s", (int)size, (const char *)changed);
    free(changed);
}

static void marks_are_taken_out(void **state)
{
    (void)state;
    expect_changed(
        "//\n.version 8.0\n.target sm_90, texmode_independent\n.visible .entry a(\n.param "
        ".u64 p\n)\n.reqntid 256, 1, 1\n{\n\t// begin\n\t//@sm_90a .minnctapersm 2\n\tmov;"
        "\n{\n//@sm_90a wgmma.x {%f1}, a;\n}\n}\n.entry b()\n{\n//@sm_90a wgmma.y;\n}\n",
        "//\n.version 8.0\n.target sm_90a, texmode_independent\n.visible .entry a(\n.param "
        ".u64 p\n)\n.reqntid 256, 1, 1\n.minnctapersm 2\n{\n\t// begin\n\t\n\tmov;"
        "\n{\nwgmma.x {%f1}, a;\n}\n}\n.entry b()\n{\nwgmma.y;\n}\n");
    expect_changed(".version 8.0\n.target sm_90\n//@sm_90a x", ".version 8.0\n.target sm_90a\nx");
    expect_changed(".version 8.0\n.target sm_90\nx", NULL);            /* no comments */
    expect_changed(".version 8.0\n.target sm_90a\n//@sm_90a x", NULL); /* another target */
    expect_changed(".version 8.0\n//@sm_90a .target sm_90", NULL);     /* the same, at the end */
    expect_changed(".target sm_90\n//@sm_90a x", NULL);                /* no PTX */
    expect_changed("", NULL);
    /* A comment may name the target first; marks in front of a body stay, as comments. */
    expect_changed("// .target sm_90, .version 1\n.version 8.0\n.target sm_90\n//@sm_90a x",
                   "// .target sm_90, .version 1\n.version 8.0\n.target sm_90a\nx");
    expect_changed("// .version 8.0\n.target sm_90\n//@sm_90a x", NULL);
    expect_changed(".version 8.0\n.target sm_90\n.entry a()\n//@sm_90a .minnctapersm 2\n{\n}\n",
                   ".version 8.0\n.target sm_90a\n.entry a()\n//@sm_90a .minnctapersm 2\n{\n}\n");
    expect_changed(".version 8.0\n.target sm_90\n.entry a//@sm_90a .minnctapersm 2",
                   ".version 8.0\n.target sm_90a\n.entry a//@sm_90a .minnctapersm 2");
}

/* ---- plans ---- */

/* What was heard: programs with the option. */
struct heard {
    int compiled, failed, loaded, passed_over;
};

static void hear(void *to, const tconv_trace_event *event)
{
    struct heard *heard = to;
    if (event->kind == TCONV_TRACE_PASSED_OVER) heard->passed_over++;
    if (event->kind != TCONV_TRACE_PROGRAM || strstr(event->options, "-DSM_90A=1") == NULL) return;
    heard->compiled += strcmp(event->source, "compiler") == 0 && event->message == NULL;
    heard->failed += event->message != NULL;
    heard->loaded += strcmp(event->source, "disk") == 0;
}

static tconv_device *new_device(unsigned major, unsigned minor, const char *how,
                                struct heard *heard)
{
    tconv_device *device = NULL;
    tconv_error error;
    fake_set_nvidia(major, minor, how);
    if (tconv_device_open(FAKE_GPU, &device, &error) != TCONV_OK) fail_msg("%s", error.message);
    *heard = (struct heard){.compiled = 0};
    tconv_device_set_trace(device, TCONV_TRACE_ALL, hear, heard, NULL);
    return device;
}

/* Makes a plan of a layer with many channels and positions. */
static tconv_status make_plan(tconv_device *device, tconv_type type, const char *algorithm,
                              tconv_plan **plan, tconv_error *error)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    p.data_type = p.filter_type = type;
    p.operation = TCONV_ONEAPI_CONV_BACKPROP;
    p.data_format = TCONV_NXC;
    p.filter_format = TCONV_OIX;
    p.data = (tconv_shape){4, {8, 128, 24, 256}};
    p.filter = (tconv_shape){4, {256, 256, 4, 4}};
    p.strides = (tconv_list){2, {2, 2}};
    p.pads_begin = p.pads_end = (tconv_list){2, {1, 1}};
    options.algorithm = algorithm;
    return tconv_plan_create(device, &p, &options, plan, error);
}

static tconv_plan *new_plan(tconv_device *device, tconv_type type, const char *algorithm)
{
    tconv_plan *plan = NULL;
    tconv_error error;
    if (make_plan(device, type, algorithm, &plan, &error) != TCONV_OK)
        fail_msg("%s", error.message);
    return plan;
}

static void expect_unit(tconv_device *device, tconv_type type, tconv_matrix_unit unit,
                        const char *tile)
{
    tconv_plan *plan = new_plan(device, type, NULL);
    char text[300], passed_over[500];
    tconv_plan_tile(plan, text, sizeof text);
    assert_string_equal(tconv_plan_algorithm(plan), "matrix_group");
    if (tconv_plan_matrix_unit(plan) != unit)
        fail_msg("unit %d, tile %s", tconv_plan_matrix_unit(plan), text);
    if (strstr(text, tile) == NULL) fail_msg("%s", text);
    assert_int_equal(tconv_plan_passed_over(plan, passed_over, sizeof passed_over), 0);
    tconv_plan_release(plan);
}

static void a_driver_that_takes_it_uses_wgmma(void **state)
{
    (void)state;
    static const tconv_type types[] = {TCONV_F16, TCONV_BF16};
    struct heard heard;
    tconv_device *device = new_device(9, 0, "takes", &heard);
    for (int t = 0; t < 2; t++)
        expect_unit(device, types[t], TCONV_MATRIX_NVIDIA_WGMMA, "kt=32 shared=32");
    assert_true(heard.compiled > 0);
    assert_int_equal(heard.failed, 0);
    assert_int_equal(heard.passed_over, 0);
    /* The trial's program, the tile's and the layer's are built; a second plan builds none. */
    const int compiled = heard.compiled;
    expect_unit(device, TCONV_F16, TCONV_MATRIX_NVIDIA_WGMMA, "mt=128");
    assert_int_equal(heard.compiled, compiled);
    /* A small tile is mma.sync's. */
    tconv_plan *plan = new_plan(device, TCONV_F16, "matrix_group mt=32 nt=64");
    assert_int_equal(tconv_plan_matrix_unit(plan), TCONV_MATRIX_NVIDIA_MMA);
    tconv_plan_release(plan);
    tconv_device_release(device);
}

/* The folder has what was changed: a later process does not compile, and computes the same. */
static void the_changed_binary_is_stored(void **state)
{
    (void)state;
    char folder[] = "/tmp/tconv_sm_90a_XXXXXX", command[100];
    tconv_error error;
    struct heard heard;
    assert_non_null(mkdtemp(folder));
    for (int process = 0; process < 2; process++) {
        tconv_device *device = new_device(9, 0, "takes", &heard);
        assert_int_equal(tconv_device_set_cache(device, folder, 0, &error), TCONV_OK);
        expect_unit(device, TCONV_F16, TCONV_MATRIX_NVIDIA_WGMMA, "kt=32");
        assert_int_equal(process == 0 ? heard.loaded : heard.compiled, 0);
        assert_true((process == 0 ? heard.compiled : heard.loaded) > 0);
        tconv_device_release(device);
    }
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

/* One probe, in one type, for all types and plans. */
static void a_driver_that_does_not_costs_one_probe(void **state)
{
    (void)state;
    static const char *const drivers[] = {"refuses", "strips", "hides", "wrong"};
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++) {
        struct heard heard;
        const bool wrong = strcmp(drivers[i], "wrong") == 0;
        tconv_device *device = new_device(9, 0, drivers[i], &heard);
        for (int plans = 0; plans < 2; plans++) {
            expect_unit(device, TCONV_F16, TCONV_MATRIX_NVIDIA_MMA, "mt=128");
            expect_unit(device, TCONV_BF16, TCONV_MATRIX_NVIDIA_MMA, "mt=128");
        }
        assert_int_equal(heard.failed, !wrong);
        assert_int_equal(heard.compiled, wrong);
        assert_int_equal(heard.passed_over, 4);
        tconv_device_release(device);
    }
}

/* Tiles that take more local memory than OpenCL reports are probed by themselves. */
static void a_tile_that_fails_leaves_the_others(void **state)
{
    (void)state;
    static const struct {
        const char *how, *tile;
    } drivers[] = {{"refuses -DKT=32 ", "kt=16"},
                   {"wrong -DKT=32 ", "kt=16"},
                   {"refuses -DHALO=", "kt=32 shared=0"},
                   {"wrong -DHALO=", "kt=32 shared=0"}};
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++) {
        struct heard heard;
        tconv_device *device = new_device(9, 0, drivers[i].how, &heard);
        expect_unit(device, TCONV_F16, TCONV_MATRIX_NVIDIA_WGMMA, drivers[i].tile);
        const int failed = heard.failed, compiled = heard.compiled;
        assert_true(i % 2 == 0 ? failed > 0 : failed == 0);
        expect_unit(device, TCONV_F16, TCONV_MATRIX_NVIDIA_WGMMA, drivers[i].tile);
        assert_int_equal(heard.failed, failed);
        assert_int_equal(heard.compiled, compiled);
        tconv_device_release(device);
    }
}

static void other_capabilities_have_mma(void **state)
{
    (void)state;
    static const unsigned capabilities[][2] = {{8, 0}, {8, 9}, {10, 0}, {12, 0}};
    for (size_t i = 0; i < sizeof capabilities / sizeof *capabilities; i++) {
        struct heard heard;
        tconv_device *device = new_device(capabilities[i][0], capabilities[i][1], "takes", &heard);
        assert_int_equal(tconv_device_properties(device)->matrix_unit, TCONV_MATRIX_NVIDIA_MMA);
        expect_unit(device, TCONV_F16, TCONV_MATRIX_NVIDIA_MMA, "mt=128");
        assert_int_equal(heard.compiled + heard.failed, 0);
        tconv_device_release(device);
    }
}

/* Memory that is missing while a program is changed says nothing of the driver: the call fails, or
 * does without the unit, and the next one has it. At exit nothing may be alive. */
static void a_call_that_fails_is_told(void **state)
{
    (void)state;
    static const char *const calls[] = {"clCreateProgramWithBinary", "clBuildProgram",
                                        "clGetProgramInfo", "malloc"};
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
        bool failed = true;
        int told = 0;
        for (int n = 1; failed && n <= 400; n += c == 3 ? 7 : 1) {
            struct heard heard;
            tconv_error error = {TCONV_OK, 0, ""};
            tconv_plan *plan = NULL;
            tconv_device *device = new_device(9, 0, "takes", &heard);
            tconv_device_set_trace(device, TCONV_TRACE_ALL, NULL, NULL, NULL);
            fault_arm(fault_call_named(calls[c]), n, CL_OUT_OF_HOST_MEMORY);
            const tconv_status status = make_plan(device, TCONV_F16, NULL, &plan, &error);
            failed = fault_disarm();
            told += status != TCONV_OK;
            if (status == TCONV_OK)
                assert_true(tconv_plan_matrix_unit(plan) != TCONV_MATRIX_NONE);
            else if (status != TCONV_ERROR_HOST_MEMORY)
                fail_msg("%s: %s", calls[c], error.message);
            tconv_plan_release(plan);
            if (strcmp(calls[c], "clCreateProgramWithBinary") == 0)
                expect_unit(device, TCONV_F16, TCONV_MATRIX_NVIDIA_WGMMA, "kt=32");
            tconv_device_release(device);
        }
        assert_true(told > 0 || strcmp(calls[c], "clGetProgramInfo") == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_are_taken_out),
        cmocka_unit_test(a_driver_that_takes_it_uses_wgmma),
        cmocka_unit_test(the_changed_binary_is_stored),
        cmocka_unit_test(a_driver_that_does_not_costs_one_probe),
        cmocka_unit_test(a_tile_that_fails_leaves_the_others),
        cmocka_unit_test(other_capabilities_have_mma),
        cmocka_unit_test(a_call_that_fails_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
