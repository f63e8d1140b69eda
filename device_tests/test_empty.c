/* SPDX-License-Identifier: Apache-2.0 */
/* Data with a spatial extent of 0: the output has the extents of the formula, and each element is
 * the epilogue of a sum of 0. The same through plans, sessions, layers, windows and slabs. */
#include "smoke.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PROBLEMS = 6 };

static tconv_problem problem_of(int which)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    p.operation = TCONV_ONEAPI_CONV_BACKPROP;
    p.data_format = TCONV_NCX;
    p.filter_format = TCONV_OIX;
    switch (which) {
    case 0: /* the output [1, 3, 1, 11] */
        set_shape(&p.data, 4, (int64_t[]){1, 4, 0, 5});
        set_shape(&p.filter, 4, (int64_t[]){4, 3, 3, 3});
        set_list(&p.strides, 2, (int64_t[]){2, 2});
        break;
    case 1: /* channels last, groups, the inner axis */
        p.data_format = TCONV_NXC;
        p.groups = 3;
        set_shape(&p.data, 4, (int64_t[]){2, 5, 0, 6});
        set_shape(&p.filter, 4, (int64_t[]){6, 2, 4, 7});
        break;
    case 2: /* one axis, an output that is asked for, several batch items */
        set_shape(&p.data, 3, (int64_t[]){5, 2, 0});
        set_shape(&p.filter, 3, (int64_t[]){2, 3, 3});
        set_list(&p.output_shape, 1, (int64_t[]){23});
        break;
    case 3: /* every axis of a volume */
        set_shape(&p.data, 5, (int64_t[]){1, 2, 0, 0, 0});
        set_shape(&p.filter, 5, (int64_t[]){2, 3, 4, 5, 3});
        set_list(&p.output_padding, 3, (int64_t[]){1, 0, 2});
        break;
    case 4: /* quantised: zero points of the data stand nowhere */
        p.data_type = TCONV_U8;
        p.filter_type = p.output_type = TCONV_I8;
        set_shape(&p.data, 4, (int64_t[]){1, 8, 4, 0});
        set_shape(&p.filter, 4, (int64_t[]){8, 16, 4, 4});
        break;
    default:
        p.data_type = p.filter_type = TCONV_F16;
        set_shape(&p.data, 6, (int64_t[]){1, 2, 1, 0, 2, 3});
        set_shape(&p.filter, 6, (int64_t[]){2, 2, 2, 3, 1, 2});
    }
    return p;
}

static tconv_epilogue epilogue_of(const tconv_problem *p)
{
    tconv_epilogue e = TCONV_EPILOGUE_INIT;
    e.requantize = p->data_type == TCONV_U8;
    e.scale = e.requantize;
    e.data_zero_point = e.requantize ? 7 : 0;
    e.output_zero_point = e.requantize ? -3 : 0;
    if (!e.requantize) e.activation = TCONV_ACTIVATION_SIGMOID;
    return e;
}

/* Only an algorithm that says so takes empty data. All others refuse it with the reason. */
static void the_output_is_the_epilogue_of_zero(void **state)
{
    (void)state;
    for (int which = 0; which < PROBLEMS; which++) {
        const tconv_problem p = problem_of(which);
        const tconv_epilogue epilogue = epilogue_of(&p);
        struct tensors t;
        make_tensors(&p, REAL_NUMBERS, (unsigned)which, &t);
        make_epilogue(&p, &epilogue, (unsigned)which, &t);
        assert_int_equal(t.data_count, 0);
        assert_true(t.output_count > 0);
        for (int d = 0; d < device_count; d++) {
            int ran = 0;
            for (int a = -1; a < 0 || tconv_algorithm_name(a) != NULL; a++) {
                const char *name = a < 0 ? "auto" : tconv_algorithm_name(a);
                tconv_error error;
                const tconv_status status = run_guarded(&devices[d], &p, name, true, &t, &error);
                if (status == TCONV_OK) {
                    compare_with_oracle(&devices[d], &p, name, true, &t);
                    ran++;
                } else {
                    assert_int_equal(status, TCONV_ERROR_ALGORITHM);
                    assert_non_null(strstr(error.message, "spatial extent of 0"));
                }
            }
            assert_true(ran >= 2); /* auto, and the algorithm that it took by its name */
        }
        free_tensors(&t);
    }
}

static void expect(tconv_status status, const tconv_error *error)
{
    if (status != TCONV_OK) failed("%s: %s", tconv_status_name(status), error->message);
}

/* Fills the output with NaN, runs, and compares. */
static void host_arrays(tconv_device *opened, const tconv_problem *p, struct tensors *t, int way)
{
    tconv_error error;
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.epilogue = t->epilogue;
    options.epilogue.bias = true;
    tconv_tensors arrays = TCONV_TENSORS_INIT; /* no data */
    arrays.filter.host = t->filter;
    arrays.bias.host = t->bias;
    arrays.scale.host = t->epilogue.scale ? t->scale : NULL;
    arrays.output.host = t->output;
    memset(t->output, 0xff, (size_t)t->geometry.output_bytes);
    if (way == 0) {
        expect(compute_once(opened, p, &options, &arrays, NULL, &error), &error);
    } else if (way == 1) {
        tconv_layer *layer;
        expect(tconv_layer_create(&opened, 1, TCONV_FILTER_CONSTANT, &layer, &error), &error);
        expect(tconv_layer_run(layer, p, &options, &arrays, NULL, &error), &error);
        tconv_layer_release(layer);
    } else {
        tconv_run slabs = TCONV_RUN_INIT;
        slabs.memory_limit = 2 * t->geometry.output_bytes / (uint64_t)t->geometry.output[0] + 8;
        expect(compute_once(opened, p, &options, &arrays, &slabs, &error), &error);
    }
    compare_with_oracle(&devices[0], p, "auto", true, t);
}

static void host_arrays_may_be_empty(void **state)
{
    (void)state;
    tconv_device *opened;
    tconv_error error;
    expect(tconv_device_open(devices[0].number, &opened, &error), &error);
    for (int which = 0; which < PROBLEMS; which++) {
        const tconv_problem p = problem_of(which);
        const tconv_epilogue epilogue = epilogue_of(&p);
        struct tensors t;
        make_tensors(&p, REAL_NUMBERS, (unsigned)which, &t);
        make_epilogue(&p, &epilogue, (unsigned)which, &t);
        for (int way = 0; way < 3; way++) host_arrays(opened, &p, &t, way);
        free_tensors(&t);
    }
    tconv_device_release(opened);
}

/* Windows of empty data take no input rows; their outputs are those of the whole. */
static void windows_of_empty_data_are_empty(void **state)
{
    (void)state;
    const tconv_problem p = problem_of(2);
    struct tensors t;
    make_tensors(&p, REAL_NUMBERS, 1, &t);
    int64_t begin = 7, end = 7;
    tconv_error error;
    expect(tconv_window_input(&t.geometry, 3, 9, &begin, &end, &error), &error);
    assert_int_equal(begin, 0);
    assert_int_equal(end, 0);
    tconv_device *opened;
    expect(tconv_device_open(devices[0].number, &opened, &error), &error);
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.output_begin = 3;
    options.output_end = 9;
    tconv_tensors arrays = TCONV_TENSORS_INIT;
    arrays.filter.host = t.filter;
    arrays.output.host = t.output;
    const size_t count = t.output_count / 23 * 6;
    for (int slabs = 0; slabs < 2; slabs++) {
        memset(t.output, 0xff, (size_t)t.geometry.output_bytes);
        tconv_run run = TCONV_RUN_INIT;
        if (slabs) run.memory_limit = t.geometry.output_bytes / 8;
        expect(compute_once(opened, &p, &options, &arrays, &run, &error), &error);
        for (size_t i = 0; i < count; i++) assert_float_equal(t.output[i], 0, 0);
        assert_true(t.output[count] != t.output[count]); /* still NaN */
    }
    tconv_device_release(opened);
    free_tensors(&t);
}

int main(void)
{
    struct CMUnitTest tests[] = {
        smoke_test(the_output_is_the_epilogue_of_zero),
        cmocka_unit_test(host_arrays_may_be_empty),
        cmocka_unit_test(windows_of_empty_data_are_empty),
    };
    return run_smoke_or_all("empty", tests, open_all_devices, close_all_devices);
}
