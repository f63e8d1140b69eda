/* SPDX-License-Identifier: Apache-2.0 */
/* Nearest upsampling and a convolution as one layer: every algorithm against the oracle, which
 * computes the two steps; windows, slabs, layers whose packed filters must not be mixed up, and
 * what is refused. */
#include "random_problem.h"
#include "setup.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void run_all(const tconv_problem *problem, enum contents contents, unsigned number)
{
    struct tensors t;
    make_tensors(problem, contents, number, &t);
    t.math = TCONV_MATH_FAST; /* the exact algorithms do not change */
    for (int d = 0; d < device_count; d++)
        for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
            const char *algorithm = tconv_algorithm_name(a);
            const bool bias = (number + (unsigned)a) % 2 == 0;
            if (sample_is_least() && (number + (unsigned)a + 3 * (unsigned)d) % 12 != 0) continue;
            if (run_algorithm(&devices[d], problem, algorithm, bias, &t, number))
                compare_with_oracle(&devices[d], problem, algorithm, bias, &t);
        }
    free_tensors(&t);
}

static void random_layers_of_every_rank(void **state)
{
    (void)state;
    static const struct {
        int axes, most, count;
    } ranks[] = {{1, 80, 12}, {2, 11, 16}, {3, 5, 12}, {4, 3, 4}, {5, 2, 2}, {6, 2, 2}};
    static const tconv_type types[] = {TCONV_F32,  TCONV_F16, TCONV_F32,
                                       TCONV_BF16, TCONV_F32, TCONV_F64};
    for (size_t r = 0; r < (sample_is_least() ? 3 : sizeof ranks / sizeof *ranks); r++)
        for (int i = 0; i < ranks[r].count; i += sample_is_whole() ? 1 : 4) {
            unsigned seed = 3000u * (unsigned)ranks[r].axes + (unsigned)i;
            tconv_problem p = random_upsampling(&seed, ranks[r].axes, ranks[r].most);
            p.data_type = p.filter_type = types[i % 6];
            if (i % 3 == 1) random_steps(&seed, &p);
            run_all(&p, i % 2 == 0 ? SMALL_INTEGERS : REAL_NUMBERS,
                    100 * (unsigned)r + (unsigned)i);
        }
}

/* A plane of `in` channels, whose 3 x 3 convolution behind a doubling has `out`. */
static tconv_problem decoder(int64_t in, int64_t out, int64_t extent)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    const int64_t data[] = {1, in, extent, extent + 1}, filter[] = {out, in, 3, 3};
    const int64_t two[] = {2, 2}, one[] = {1, 1};
    p.operation = TCONV_UPSAMPLE_CONV;
    set_shape(&p.data, 4, data);
    set_shape(&p.filter, 4, filter);
    set_list(&p.strides, 2, two);
    set_list(&p.pads_begin, 2, one);
    set_list(&p.pads_end, 2, one);
    return p;
}

/* A line of one channel. */
static tconv_problem line(int64_t extent, int64_t taps, int64_t factor, int64_t dilation,
                          int64_t pad)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    p.operation = TCONV_UPSAMPLE_CONV;
    p.data = (tconv_shape){3, {1, 1, extent}};
    p.filter = (tconv_shape){3, {1, 1, taps}};
    p.strides = (tconv_list){1, {factor}};
    p.dilations = (tconv_list){1, {dilation}};
    p.pads_begin = p.pads_end = (tconv_list){1, {pad}};
    return p;
}

/* A layer on a device of the test, which it keeps alone. */
static tconv_layer *open_layer(int number)
{
    tconv_device *device = NULL;
    tconv_layer *layer = NULL;
    tconv_error error;
    expect_ok(tconv_device_open(devices[number].number, &device, &error), &error);
    expect_ok(tconv_layer_create(&device, 1, TCONV_FILTER_CONSTANT, &layer, &error), &error);
    tconv_device_release(device);
    return layer;
}

/* The values of the definition, by hand: 1 2 enlarged to 1 1 2 2, and 1 10 100 with a zero on both
 * sides. */
static void values_by_hand(void **state)
{
    (void)state;
    const tconv_problem p = line(2, 3, 2, 1, 1);
    const float expected[] = {110, 211, 221, 22};
    for (int d = 0; d < device_count; d++) {
        float x[] = {1, 2}, w[] = {1, 10, 100}, y[4] = {0};
        tconv_tensors arrays = TCONV_TENSORS_INIT;
        tconv_layer *layer = open_layer(d);
        tconv_error error;
        arrays.data.host = x;
        arrays.filter.host = w;
        arrays.output.host = y;
        expect_ok(tconv_layer_run(layer, &p, NULL, &arrays, NULL, &error), &error);
        assert_memory_equal(y, expected, sizeof y);
        tconv_layer_release(layer);
    }
}

/* With a factor of 1 and a dilation, an infinity reaches only the outputs that use it. */
static void infinities_stay_where_they_are(void **state)
{
    (void)state;
    const tconv_problem p = line(9, 3, 1, 2, 2);
    for (int d = 0; d < device_count; d++)
        for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
            const char *algorithm = tconv_algorithm_name(a);
            struct tensors t;
            tconv_error error;
            make_tensors(&p, SMALL_INTEGERS, 3, &t);
            ((float *)t.data)[4] = INFINITY;
            if (run_guarded(&devices[d], &p, algorithm, false, &t, &error) == TCONV_OK)
                compare_with_oracle(&devices[d], &p, algorithm, false, &t);
            free_tensors(&t);
        }
}

/* Layers that differ only in how the filter becomes another one: a kept filter is not taken for
 * that of the other. With 2 taps, factor 3, and factor 2 with dilation 2, both become 4 taps. */
static void filters_are_not_mixed_up(void **state)
{
    (void)state;
    const int64_t data[] = {1, 5, 9}, filter[] = {5, 5, 2}, two[] = {2}, three[] = {3};
    tconv_problem p[3];
    for (int i = 0; i < 3; i++) {
        p[i] = (tconv_problem)TCONV_PROBLEM_INIT;
        set_shape(&p[i].data, 3, data);
        set_shape(&p[i].filter, 3, filter);
        p[i].operation = i < 2 ? TCONV_UPSAMPLE_CONV : TCONV_CONV_BACKPROP;
        set_list(&p[i].strides, 1, i == 0 ? three : two);
        if (i == 1) set_list(&p[i].dilations, 1, two);
    }
    for (int d = 0; d < device_count; d++)
        for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
            tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
            tconv_layer *layer = open_layer(d);
            tconv_error error;
            options.algorithm = tconv_algorithm_name(a);
            for (int i = 0; i < 6; i++) {
                struct tensors t;
                make_tensors(&p[i % 3], SMALL_INTEGERS, 1, &t);
                memset(t.output, 0xff, (size_t)t.geometry.output_bytes);
                const tconv_tensors arrays = arrays_of(&t);
                const tconv_status status =
                    tconv_layer_run(layer, &p[i % 3], &options, &arrays, NULL, &error);
                if (status == TCONV_OK)
                    compare_with_oracle(&devices[d], &p[i % 3], options.algorithm, false, &t);
                else
                    assert_int_equal(status, TCONV_ERROR_ALGORITHM);
                free_tensors(&t);
            }
            tconv_layer_release(layer);
        }
}

/* Slabs, each of which sees other pads than the whole. */
static void slabs_of_an_upsampling(void **state)
{
    (void)state;
    const tconv_problem p = decoder(3, 4, 40);
    for (int d = 0; d < device_count; d++) {
        struct tensors t;
        tconv_layer *layer = open_layer(d);
        tconv_error error;
        tconv_run run = TCONV_RUN_INIT;
        make_tensors(&p, SMALL_INTEGERS, 2, &t);
        memset(t.output, 0xff, (size_t)t.geometry.output_bytes);
        const tconv_tensors arrays = arrays_of(&t);
        run.memory_limit = t.geometry.output_bytes / 2;
        expect_ok(tconv_layer_run(layer, &p, NULL, &arrays, &run, &error), &error);
        compare_with_oracle(&devices[d], &p, "slabs", false, &t);
        tconv_layer_counts counts = TCONV_LAYER_COUNTS_INIT;
        expect_ok(tconv_layer_count(layer, &counts, &error), &error);
        assert_int_equal(counts.in_slabs, 1);
        tconv_layer_release(layer);
        free_tensors(&t);
    }
}

static void expect_refusal(const tconv_problem *p, tconv_status status, const char *part)
{
    tconv_geometry g = TCONV_GEOMETRY_INIT;
    tconv_error error;
    assert_int_equal(tconv_resolve(p, &g, &error), status);
    if (strstr(error.message, part) == NULL) failed("%s has no \"%s\"", error.message, part);
}

static void what_is_refused(void **state)
{
    (void)state;
    const tconv_problem good = decoder(6, 4, 5);
    const int64_t one[] = {1, 1};
    tconv_geometry g = TCONV_GEOMETRY_INIT;
    tconv_error error;
    tconv_problem p = good;
    expect_ok(tconv_resolve(&p, &g, &error), &error);
    assert_int_equal(g.output[0], 10);
    assert_int_equal(g.output[1], 12);
    assert_int_equal(g.kernel[0], 4);
    p.data_type = p.filter_type = TCONV_I8;
    expect_refusal(&p, TCONV_ERROR_TYPE, "which need not fit an integer type");
    p = good;
    p.rules = TCONV_RULES_ONNX;
    expect_refusal(&p, TCONV_ERROR_ARGUMENT, "rules is onnx");
    p = good;
    set_list(&p.output_padding, 2, one);
    expect_refusal(&p, TCONV_ERROR_ARGUMENT, "output_padding is given");
    p = good;
    set_list(&p.output_shape, 2, one);
    expect_refusal(&p, TCONV_ERROR_ARGUMENT, "output_shape is given");
    p = good;
    p.groups = 2;
    expect_refusal(&p, TCONV_ERROR_SHAPE, "wants 6 input channels of a group (axis 1");
    p = good;
    p.groups = 3;
    p.filter.dim[1] = 2;
    expect_refusal(&p, TCONV_ERROR_SHAPE,
                   "4 output channels (axis 0), which 3 groups do not divide");
    p = good;
    p.dilations = p.strides;
    p.data.dim[3] = 1;
    p.filter.dim[3] = 20;
    p.dilations.value[1] = 1;
    expect_refusal(&p, TCONV_ERROR_SHAPE, "choose larger pads");
    p = good;
    p.dilations = p.strides;
    p.dilations.value[1] = 3;
    expect_refusal(&p, TCONV_ERROR_UNSUPPORTED, "dilations[1] is 3, but the factor is 2");
    p = good;
    p.data.dim[2] = p.data.dim[3] = 1;
    p.strides.value[0] = p.strides.value[1] = INT64_C(1) << 29;
    expect_refusal(&p, TCONV_ERROR_SHAPE, "the equivalent filter is too large");
    p = good;
    p.strides.value[1] = INT64_MAX / 2;
    expect_refusal(&p, TCONV_ERROR_SHAPE, "overflows 64 bits");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_by_hand),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(infinities_stay_where_they_are),
        cmocka_unit_test(filters_are_not_mixed_up),
        cmocka_unit_test(slabs_of_an_upsampling),
        cmocka_unit_test(random_layers_of_every_rank),
    };
    return cmocka_run_group_tests_name("upsampling", tests, open_all_devices, close_all_devices);
}
