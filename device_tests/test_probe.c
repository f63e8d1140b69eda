/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix units are used only where they compute what they should: the small problems that find out,
 * on every device, and a unit that the device does not have. */
#include "compile_watch.h"
#include "device/device.h"
#include "percent.h"
#include "plan/unit.h"
#include "tconv_cl/tconv_cl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    tconv_type data, filter;
} types[] = {{TCONV_F16, TCONV_F16}, {TCONV_BF16, TCONV_BF16}, {TCONV_F32, TCONV_F32},
             {TCONV_I8, TCONV_I8},   {TCONV_U8, TCONV_I8},     {TCONV_U8, TCONV_U8}};

/* Runs a test with each device, or the one that TCONV_CL_TEST_DEVICE names. */
static void with_devices(void (*test)(tconv_device *device))
{
    const char *only = getenv("TCONV_CL_TEST_DEVICE");
    tconv_error error;
    int count = 0;
    assert_int_equal(tconv_device_count(&count, &error), TCONV_OK);
    assert_true(count > 0);
    for (int number = 0; number < count; number++) {
        if (only != NULL && atoi(only) != number) continue;
        cl_device_id id;
        cl_int code;
        tconv_device *device = NULL;
        assert_int_equal(tconv_device_at(number, NULL, &id, &error), TCONV_OK);
        cl_context context = clCreateContext(NULL, 1, &id, NULL, NULL, &code);
        assert_int_equal(code, CL_SUCCESS);
        assert_int_equal(tconv_device_create(context, id, &device, &error), TCONV_OK);
        test(device);
        tconv_device_release(device);
        clReleaseContext(context);
    }
}

static void expect_right(tconv_device *device, tconv_type data, tconv_type filter,
                         const char *algorithm)
{
    tconv_error error;
    bool right = false;
    struct tconv_retry retry = {.insist = false};
    if (tconv_probe_run(device, data, filter, algorithm, &retry, &right, &error) != TCONV_OK)
        fail_msg("%s", error.message);
    assert_true(right);
}

static void small_problem(tconv_device *device)
{
    if (tconv_device_properties(device)->work_group_limit < 32) {
        printf("%s has no work-groups of 32 work-items\n", tconv_device_properties(device)->name);
        return;
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        expect_right(device, types[i].data, types[i].filter, "matrix_group");
        expect_right(device, types[i].data, types[i].filter, "reference");
    }
    bool right;
    tconv_error error;
    struct tconv_retry retry = {.insist = false};
    assert_int_equal(
        tconv_probe_run(device, TCONV_F16, TCONV_F16, "gather_dot", &retry, &right, &error),
        TCONV_ERROR_ALGORITHM);
}

static void the_small_problem_is_right_on_every_device(void **state)
{
    (void)state;
    with_devices(small_problem);
}

/* A kernel that reads a copy of the data needs a workspace. */
static void copied_data(tconv_device *device)
{
    if (tconv_device_properties(device)->work_group_limit >= 32)
        expect_right(device, TCONV_F16, TCONV_F16, "matrix_group copy=1");
}

static void the_small_problem_is_right_with_copied_data(void **state)
{
    (void)state;
    with_devices(copied_data);
}

/* The same with each tile of matrix_group; in a sample with the first and one of four. */
static void every_tile(tconv_device *device)
{
    if (tconv_device_properties(device)->work_group_limit < 32) return;
    tconv_problem problem = TCONV_PROBLEM_INIT;
    problem.data_type = problem.filter_type = TCONV_F16;
    problem.data = (tconv_shape){3, {1, 64, 64}};
    problem.filter = (tconv_shape){3, {64, 64, 4}};
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.algorithm = "matrix_group";
    tconv_plan *plan = NULL;
    tconv_error error;
    char tiles[2000];
    if (tconv_plan_create(device, &problem, &options, &plan, &error) != TCONV_OK)
        fail_msg("%s", error.message);
    assert_true(tconv_plan_candidates(plan, tiles, sizeof tiles) < (int)sizeof tiles);
    tconv_plan_release(plan);
    int count = 0;
    for (char *tile = strtok(tiles, "\n"); tile != NULL; tile = strtok(NULL, "\n"), count++) {
        char text[400];
        if (!sample_is_whole() && count > 0 && ((unsigned)count + sample_seed()) % 4 != 0) continue;
        snprintf(text, sizeof text, "matrix_group %s", tile);
        expect_right(device, TCONV_F16, TCONV_F16, text);
    }
    assert_true(count > 0);
}

static void every_tile_is_right_on_small_problems(void **state)
{
    (void)state;
    with_devices(every_tile);
}

/* The device is said to have a unit whose kernels no compiler for it takes. */
static void missing_unit(tconv_device *device)
{
    if (tconv_device_properties(device)->work_group_limit < 32) return;
    device->info.matrix_unit = TCONV_MATRIX_AMD_WMMA;
    tconv_error error;
    bool right = true;
    struct tconv_retry retry = {.insist = false};
    assert_int_equal(
        tconv_probe_matrix(device, TCONV_F16, TCONV_F16, "matrix_group", &retry, &right, &error),
        TCONV_OK);
    assert_false(right);
    assert_true(atomic_load(tconv_device_verdict(device, "f16 x f16 matrix_group")) < 0);
    assert_int_equal(atomic_load(tconv_device_verdict(device, "bf16 x bf16 matrix_group")), 0);
    device->info.kind = TCONV_DEVICE_GPU; /* else the unit's algorithm is not the first choice */
    device->info.dedicated_local = true;
    tconv_problem problem = TCONV_PROBLEM_INIT;
    problem.data_type = problem.filter_type = TCONV_F16;
    problem.data = (tconv_shape){3, {1, 64, 64}};
    problem.filter = (tconv_shape){3, {64, 64, 4}};
    tconv_plan *plan = NULL;
    char text[500];
    if (tconv_plan_create(device, &problem, NULL, &plan, &error) != TCONV_OK)
        fail_msg("%s", error.message);
    tconv_plan_passed_over(plan, text, sizeof text);
    assert_non_null(strstr(text, "matrix_group: the device's matrix unit is not used"));
    assert_int_equal(tconv_plan_matrix_unit(plan), TCONV_MATRIX_NONE);
    tconv_plan_release(plan);
    device->info.matrix_unit = TCONV_MATRIX_NONE; /* in plain OpenCL C */
    for (size_t i = 0; i < sizeof types / sizeof *types; i += sample_is_whole() ? 1 : 2)
        expect_right(device, types[i].data, types[i].filter, "matrix_group");
}

static void a_unit_that_fails_is_not_used(void **state)
{
    (void)state;
    with_devices(missing_unit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_small_problem_is_right_on_every_device),
        cmocka_unit_test(the_small_problem_is_right_with_copied_data),
        cmocka_unit_test(every_tile_is_right_on_small_problems),
        cmocka_unit_test(a_unit_that_fails_is_not_used),
    };
    const int failures = cmocka_run_group_tests(tests, NULL, NULL);
    report_compiling();
    return failures;
}
