/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution with nearest upsampling or pixel shuffle as one layer: every algorithm against the
 * oracle, which computes the two steps; windows, slabs, layers whose packed filters must not be
 * mixed up, and what is refused. */
#include "random_problem.h"
#include "sample.h"
#include "setup.h"
#include "smoke.h"
#include "verdicts.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void run_all(const tconv_problem *problem, enum contents contents, unsigned number,
                    const tconv_epilogue *epilogue)
{
    struct tensors t;
    make_tensors(problem, contents, number, &t);
    if (epilogue != NULL) make_epilogue(problem, epilogue, number, &t);
    t.math = TCONV_MATH_FAST; /* the exact algorithms do not change */
    for (int d = 0; d < device_count; d++)
        for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
            const char *algorithm = tconv_algorithm_name(a);
            const bool bias = (number + (unsigned)a) % 2 == 0;
            const unsigned turn = number + (unsigned)a + 3 * (unsigned)d;
            if (sample_is_least() && turn % 12 != 0) continue;
            /* From four axes on, the outer ones are a list of taps, whichever the operator. */
            if (!sample_is_whole() && t.geometry.axes > 3 && turn % 4 != 0) continue;
            check_algorithm(&devices[d], problem, algorithm, bias, &t, number);
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
            if (i % 3 != 1) random_filter_steps(&seed, &p);
            run_all(&p, i % 2 == 0 ? SMALL_INTEGERS : REAL_NUMBERS,
                    100 * (unsigned)r + 1 + (unsigned)i, NULL);
        }
}

/* Pixel shuffle, whose bias, scale and slope have a number for each phase. Integers are exact. */
static void random_shuffles_of_every_rank(void **state)
{
    (void)state;
    static const struct {
        int axes, most, count;
    } ranks[] = {{1, 60, 14}, {2, 9, 21}, {3, 4, 14}, {4, 3, 4}, {5, 2, 2}, {6, 1, 2}};
    static const tconv_type types[] = {TCONV_F32, TCONV_I8,  TCONV_F32, TCONV_F16,
                                       TCONV_F32, TCONV_I64, TCONV_F64};
    tconv_epilogue scaled = TCONV_EPILOGUE_INIT, bytes = TCONV_EPILOGUE_INIT;
    scaled.scale = true;
    scaled.alpha = 0.5;
    scaled.activation = TCONV_ACTIVATION_PRELU;
    bytes.scale = bytes.requantize = true;
    bytes.data_zero_point = 3;
    bytes.filter_zero_point = -2;
    for (size_t r = 0; r < (sample_is_least() ? 3 : sizeof ranks / sizeof *ranks); r++)
        for (int i = 0; i < ranks[r].count; i += sample_is_whole() ? 1 : 5) {
            unsigned seed = 7000u * (unsigned)ranks[r].axes + (unsigned)i;
            tconv_problem p = random_shuffle(&seed, ranks[r].axes, ranks[r].most);
            p.data_type = p.filter_type = types[i % 7];
            const bool floating = i % 7 != 1 && i % 7 != 5;
            if (i % 3 == 1) random_steps(&seed, &p);
            if (i % 3 != 1) random_filter_steps(&seed, &p);
            run_all(&p, i % 2 == 0 ? SMALL_INTEGERS : REAL_NUMBERS,
                    100 * (unsigned)r + 1 + (unsigned)i,
                    i % 2 == 0 && floating    ? &scaled
                    : p.data_type == TCONV_I8 ? &bytes
                                              : NULL);
        }
}

/* One with factors of 1, whose pads do not cut. */
static tconv_problem random_ordinary(unsigned *seed, int axes, int most)
{
    tconv_geometry g = TCONV_GEOMETRY_INIT;
    tconv_problem p;
    do {
        p = random_upsampling(seed, axes, most);
        for (int a = 0; a < axes; a++) {
            p.strides.value[a] = 1;
            if (p.pads_begin.value[a] < 0) p.pads_begin.value[a] = 0;
            if (p.pads_end.value[a] < 0) p.pads_end.value[a] = 0;
        }
    } while (tconv_resolve(&p, &g, NULL) != TCONV_OK); /* no output is left */
    return p;
}

/* Factors of 1: an ordinary convolution, for every type; bytes also quantised. Integers are exact.
 */
static void random_convolutions_of_every_type(void **state)
{
    (void)state;
    static const struct {
        int axes, most;
    } ranks[] = {{1, 60}, {2, 9}, {3, 5}};
    tconv_epilogue bytes = TCONV_EPILOGUE_INIT;
    bytes.scale = bytes.requantize = true;
    bytes.data_zero_point = 5;
    bytes.filter_zero_point = -3;
    bytes.output_zero_point = 2;
    for (size_t r = 0; r < sizeof ranks / sizeof *ranks; r++)
        for (int type = TCONV_F32; type <= TCONV_U64; type++) {
            if (!sample_is_whole() && (type + (int)r) % 3 != 0) continue;
            unsigned seed = 9000u * (unsigned)(r + 1) + (unsigned)type;
            tconv_problem p = random_ordinary(&seed, ranks[r].axes, ranks[r].most);
            p.data_type = p.filter_type = (tconv_type)type;
            const bool is_byte = type == TCONV_I8 || type == TCONV_U8;
            if (type == TCONV_U8) {
                p.filter_type = TCONV_I8;
                p.output_type = TCONV_U8;
            }
            if (type % 2 == 1) random_steps(&seed, &p);
            run_all(&p, type % 2 == 0 ? SMALL_INTEGERS : REAL_NUMBERS,
                    100 * (unsigned)r + 1 + seed % 90, is_byte ? &bytes : NULL);
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

/* A line of one channel, to which pixel shuffle by 2 brings two channels of a convolution, and one
 * of two channels. */
static tconv_problem shuffled_line(int64_t extent, int64_t channels, tconv_operation order)
{
    tconv_problem p = line(extent, 3, 2, 1, 1);
    p.operation = order;
    p.filter.dim[0] = 2 * channels;
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

/* 1 2 with zeros on both sides, by the taps 1 10 100 and 2 20 200, interleaved; and with a bias for
 * each of these two. With two output channels and the order DCR, the second filter has the first
 * phase of the second one. */
static void shuffled_values_by_hand(void **state)
{
    (void)state;
    static const struct {
        tconv_operation order;
        int64_t channels;
        float expected[8];
    } cases[] = {
        {TCONV_CONV_PIXEL_SHUFFLE, 1, {1210, 3420, 1021, 3042}},
        {TCONV_CONV_PIXEL_SHUFFLE, 2, {1210, 3420, 1021, 3042, 5630, 7840, 5063, 7084}},
        {TCONV_CONV_PIXEL_SHUFFLE_DCR, 2, {1210, 5630, 1021, 5063, 3420, 7840, 3042, 7084}}};
    for (int d = 0; d < device_count; d++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            const tconv_problem p = shuffled_line(2, cases[i].channels, cases[i].order);
            float x[] = {1, 2}, w[] = {1, 10, 100, 2, 20, 200, 3, 30, 300, 4, 40, 400};
            float b[] = {1000, 3000, 5000, 7000}, y[8] = {0};
            tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
            tconv_tensors arrays = TCONV_TENSORS_INIT;
            tconv_layer *layer = open_layer(d);
            tconv_error error;
            options.epilogue.bias = true;
            arrays.data.host = x;
            arrays.filter.host = w;
            arrays.bias.host = b;
            arrays.output.host = y;
            expect_ok(tconv_layer_run(layer, &p, &options, &arrays, NULL, &error), &error);
            assert_memory_equal(y, cases[i].expected, (size_t)cases[i].channels * 4 * sizeof *y);
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

/* The algorithms of the difference form. */
static const char *const difference_forms[] = {"difference_vector", "difference_group"};

/* Whether the status of a plan of the difference form is as wanted: it may be refused only where
 * kernels must not take long, as most devices but CPUs have it, or where registers are few. */
static bool ran(tconv_status status, const tconv_error *error)
{
    if (status == TCONV_ERROR_ALGORITHM && (strstr(error->message, "work-item") != NULL ||
                                            strstr(error->message, "registers") != NULL))
        return false;
    expect_ok(status, error);
    return true;
}

/* The difference form gives infinity minus infinity, or overflows, where the sum of products does
 * not. Special values in data and weights, also of taps that reach padding at borders, sums of
 * weights that overflow, and differences that do, have the outputs of the reference. */
static void keep_special_values(const char *algorithm, double error_factor, bool cancels)
{
    static const struct {
        float value;
        bool in_filter;
        int at, more; /* places that get the value and its negative; -1: none */
    } rows[] = {
        {NAN, false, 45, -1},      {INFINITY, false, 0, -1}, {-INFINITY, false, 31, 61},
        {INFINITY, false, 31, 32}, {1e37F, false, 41, 40},   {NAN, true, 13, -1},
        {INFINITY, true, 0, -1},   {-INFINITY, true, 8, 40}, {INFINITY, true, 4, 31},
        {2e38F, true, 22, -1},
    };
    tconv_problem p = decoder(3, 15, 5);
    for (int d = 0; d < device_count; d++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            if (never_runs(&devices[d], algorithm)) continue;
            struct tensors t, reference;
            tconv_error error;
            p.pads_begin.value[1] = 1 + (int64_t)i % 2;
            make_tensors(&p, SMALL_INTEGERS, 3 + (unsigned)i, &t);
            make_tensors(&p, SMALL_INTEGERS, 3 + (unsigned)i, &reference);
            bool both = true;
            for (int twice = 0; twice < 2; twice++) {
                float *array = rows[i].in_filter ? (twice ? t.filter : reference.filter)
                                                 : (twice ? t.data : reference.data);
                array[rows[i].at] = rows[i].value;
                if (rows[i].more >= 0) array[rows[i].more] = -rows[i].value;
                const tconv_status status = run_guarded(&devices[d], &p,
                                                        twice ? algorithm : "reference", false,
                                                        twice ? &t : &reference, &error);
                both = both && ran(status, &error);
            }
            assert_true(!both || t.error_factor == error_factor);
            /* On GPUs the tap in the middle is in both factors, whose products cancel. */
            const bool close = isfinite(rows[i].value) && (!rows[i].in_filter || cancels);
            const float most = close ? 1e-4F * rows[i].value : 0;
            int finite = 0, other = 0;
            for (size_t o = 0; both && o < t.output_count; o++) {
                const float got = ((float *)t.output)[o], wanted = ((float *)reference.output)[o];
                if (isfinite(wanted))
                    finite++;
                else
                    other++;
                if (got != wanted && !(isnan(got) && isnan(wanted)) &&
                    !(fabsf(got - wanted) <= most))
                    failed("row %d, output %d is %g, not %g", (int)i, (int)o, (double)got,
                           (double)wanted);
            }
            assert_true(!both || (finite > 0 && (other > 0 || most > 0)));
            free_tensors(&t);
            free_tensors(&reference);
        }
}

static void differences_keep_special_values(void **state)
{
    (void)state;
    keep_special_values(difference_forms[0], 9, false);
    keep_special_values(difference_forms[1], 27, true);
}

/* The difference form: all ranks, pads that make tiles lead, rows that end within a vector, small
 * images that share vectors, several blocks, chunks of channels, groups, channels last. */
static void every_shape(const char *algorithm)
{
    static const struct {
        int axes;
        bool last;
        int64_t batch, groups, in, out, x[3], k[3], begin[3], end[3];
    } rows[] = {
        {1, false, 1, 1, 5, 9, {203}, {3}, {1}, {1}},
        {1, false, 3, 2, 3, 4, {7}, {3}, {2}, {0}},
        {1, true, 2, 1, 3, 5, {31}, {3}, {0}, {3}},
        {2, false, 1, 1, 7, 29, {13, 37}, {3, 3}, {1, 1}, {1, 1}},
        {2, false, 5, 1, 6, 5, {4, 4}, {3, 3}, {1, 1}, {1, 1}},
        {2, false, 2, 1, 3, 17, {5, 19}, {3, 3}, {2, 0}, {0, 2}},
        {2, true, 2, 3, 5, 7, {6, 11}, {3, 3}, {1, 2}, {1, 1}},
        {2, false, 1, 1, 3, 4, {1, 1}, {3, 3}, {1, 3}, {2, 4}},
        {2, false, 1, 1, 2, 3, {9, 21}, {1, 3}, {0, 1}, {0, 1}},
        {2, false, 1, 1, 2, 3, {9, 21}, {3, 1}, {1, 0}, {1, 2}},
        {2, false, 1, 1, 700, 40, {6, 5}, {3, 3}, {1, 1}, {1, 1}},
        {3, false, 2, 1, 5, 9, {4, 5, 6}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}},
        {3, true, 1, 1, 7, 6, {2, 3, 17}, {3, 3, 3}, {0, 2, 2}, {3, 0, 1}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int axes = rows[i].axes;
        int64_t data[5], filter[5] = {rows[i].groups * rows[i].out, rows[i].in}, factor[3];
        tconv_problem p = TCONV_PROBLEM_INIT;
        p.operation = TCONV_UPSAMPLE_CONV;
        p.groups = rows[i].groups;
        p.data_format = rows[i].last ? TCONV_NXC : TCONV_NCX;
        data[0] = rows[i].batch;
        data[rows[i].last ? axes + 1 : 1] = rows[i].groups * rows[i].in;
        for (int a = 0; a < axes; a++) {
            data[a + (rows[i].last ? 1 : 2)] = rows[i].x[a];
            filter[2 + a] = rows[i].k[a];
            factor[a] = rows[i].k[a] == 3 ? 2 : 1;
        }
        set_shape(&p.data, axes + 2, data);
        set_shape(&p.filter, axes + 2, filter);
        set_list(&p.strides, axes, factor);
        set_list(&p.pads_begin, axes, rows[i].begin);
        set_list(&p.pads_end, axes, rows[i].end);
        struct tensors t;
        make_tensors(&p, i % 2 == 0 ? SMALL_INTEGERS : REAL_NUMBERS, (unsigned)i, &t);
        for (int d = 0; d < device_count; d++) {
            tconv_error error;
            if (never_runs(&devices[d], algorithm)) continue;
            sample_begin(algorithm, &p, i % 4 == 0 ? ALWAYS : (unsigned)i);
            const tconv_status status =
                run_guarded(&devices[d], &p, algorithm, i % 3 == 0, &t, &error);
            if (!sample_end(algorithm, &p, status) || !ran(status, &error)) continue;
            if (i % 2 == 0) t.error_factor = 1; /* sums of small integers are exact */
            compare_with_oracle(&devices[d], &p, algorithm, i % 3 == 0, &t);
        }
        free_tensors(&t);
    }
}

static void differences_of_every_shape(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) every_shape(difference_forms[i]);
}

/* Layers that differ only in how the filter becomes another one: a kept filter is not taken for
 * that of the other. With 2 taps, factor 3, factor 2 with dilation 2, and pixel shuffle by 2 in
 * both orders, all become 4 taps. */
static void filters_are_not_mixed_up(void **state)
{
    (void)state;
    const int64_t data[] = {1, 5, 9}, filter[] = {5, 5, 2}, two[] = {2}, three[] = {3};
    tconv_problem p[5];
    for (int i = 0; i < 5; i++) {
        p[i] = (tconv_problem)TCONV_PROBLEM_INIT;
        set_shape(&p[i].data, 3, data);
        set_shape(&p[i].filter, 3, filter);
        p[i].operation = i < 2    ? TCONV_UPSAMPLE_CONV
                         : i == 2 ? TCONV_CONV_BACKPROP
                         : i == 3 ? TCONV_CONV_PIXEL_SHUFFLE
                                  : TCONV_CONV_PIXEL_SHUFFLE_DCR;
        if (i > 2) p[i].filter.dim[0] = 4;
        set_list(&p[i].strides, 1, i == 0 ? three : two);
        if (i == 1) set_list(&p[i].dilations, 1, two);
    }
    for (int d = 0; d < device_count; d++)
        for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
            tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
            tconv_layer *layer = open_layer(d);
            tconv_error error;
            options.algorithm = tconv_algorithm_name(a);
            for (int i = 0; i < 10; i++) {
                struct tensors t;
                make_tensors(&p[i % 5], SMALL_INTEGERS, 1, &t);
                memset(t.output, 0xff, (size_t)t.geometry.output_bytes);
                const tconv_tensors arrays = arrays_of(&t);
                const tconv_status status =
                    tconv_layer_run(layer, &p[i % 5], &options, &arrays, NULL, &error);
                if (status == TCONV_OK)
                    compare_with_oracle(&devices[d], &p[i % 5], options.algorithm, false, &t);
                else
                    assert_int_equal(status, TCONV_ERROR_ALGORITHM);
                free_tensors(&t);
            }
            tconv_layer_release(layer);
        }
}

/* Slabs, each of which sees other pads than the whole. */
static void run_in_slabs(const tconv_problem *problem, bool bias)
{
    const tconv_problem p = *problem;
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.epilogue.bias = bias;
    for (int d = 0; d < device_count; d++) {
        struct tensors t;
        tconv_layer *layer = open_layer(d);
        tconv_error error;
        tconv_run run = TCONV_RUN_INIT;
        make_tensors(&p, SMALL_INTEGERS, 2, &t);
        memset(t.output, 0xff, (size_t)t.geometry.output_bytes);
        tconv_tensors arrays = arrays_of(&t);
        if (bias) arrays.bias.host = t.bias;
        run.memory_limit = t.geometry.output_bytes / 2;
        expect_ok(tconv_layer_run(layer, &p, &options, &arrays, &run, &error), &error);
        compare_with_oracle(&devices[d], &p, "slabs", bias, &t);
        tconv_layer_counts counts = TCONV_LAYER_COUNTS_INIT;
        expect_ok(tconv_layer_count(layer, &counts, &error), &error);
        assert_int_equal(counts.in_slabs, 1);
        tconv_layer_release(layer);
        free_tensors(&t);
    }
}

static void slabs_of_an_upsampling(void **state)
{
    (void)state;
    const tconv_problem p = decoder(3, 4, 40);
    run_in_slabs(&p, false);
}

/* Slabs and windows begin at rows of any phase. */
static void slabs_and_windows_of_a_shuffle(void **state)
{
    (void)state;
    tconv_problem p = decoder(3, 18, 40);
    const int64_t factors[] = {3, 2};
    set_list(&p.strides, 2, factors);
    p.operation = TCONV_CONV_PIXEL_SHUFFLE;
    run_in_slabs(&p, true);
    p = decoder(2, 6, 5);
    set_list(&p.strides, 2, factors);
    p.operation = TCONV_CONV_PIXEL_SHUFFLE;
    for (int d = 0; d < device_count; d++)
        for (int64_t begin = 0; begin < 4; begin++)
            for (int64_t rows = 1; rows < 6; rows += 4) {
                tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
                tconv_layer *layer = open_layer(d);
                tconv_error error;
                struct tensors t;
                int64_t first, last;
                make_tensors(&p, SMALL_INTEGERS, 2, &t);
                expect_ok(
                    tconv_window_input(&t.geometry, begin, begin + rows, &first, &last, &error),
                    &error);
                float x[2 * 5 * 6], y[15 * 12], *const whole = t.output;
                const float *data = t.data;
                const int64_t row = 6, count = last - first;
                for (int64_t c = 0; c < 2; c++)
                    memcpy(x + c * count * row, data + (c * 5 + first) * row,
                           (size_t)(count * row) * sizeof *x);
                tconv_tensors arrays = arrays_of(&t);
                arrays.data.host = x;
                arrays.bias.host = t.bias;
                arrays.output.host = y;
                options.epilogue.bias = true;
                options.output_begin = begin;
                options.output_end = begin + rows;
                expect_ok(tconv_layer_run(layer, &p, &options, &arrays, NULL, &error), &error);
                arrays.data.host = t.data;
                arrays.output.host = t.output;
                options.output_begin = options.output_end = 0;
                expect_ok(tconv_layer_run(layer, &p, &options, &arrays, NULL, &error), &error);
                compare_with_oracle(&devices[d], &p, "auto", true, &t);
                assert_memory_equal(y, whole + begin * 12, (size_t)(rows * 12) * sizeof *y);
                tconv_layer_release(layer);
                free_tensors(&t);
            }
}

/* One product for each output: every algorithm has the same bits, also with numbers of phases. */
static void one_product_has_the_same_bits(void **state)
{
    (void)state;
    tconv_problem p = decoder(1, 12, 9);
    const int64_t factors[] = {3, 2};
    tconv_epilogue e = TCONV_EPILOGUE_INIT;
    p.operation = TCONV_CONV_PIXEL_SHUFFLE;
    p.filter.dim[2] = p.filter.dim[3] = 1;
    p.pads_begin.count = p.pads_end.count = 0;
    set_list(&p.strides, 2, factors);
    e.scale = true;
    e.alpha = 1.1;
    for (int d = 0; d < device_count; d++) {
        struct tensors t;
        void *first = NULL;
        make_tensors(&p, REAL_NUMBERS, 4, &t);
        make_epilogue(&p, &e, 4, &t);
        for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
            tconv_error error;
            if (run_guarded(&devices[d], &p, tconv_algorithm_name(a), true, &t, &error) != TCONV_OK)
                continue;
            if (first == NULL) {
                first = malloc((size_t)t.geometry.output_bytes);
                assert_non_null(first);
                memcpy(first, t.output, (size_t)t.geometry.output_bytes);
            }
            assert_memory_equal(t.output, first, (size_t)t.geometry.output_bytes);
        }
        free(first);
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
    p.strides = (tconv_list){2, {1, 2}};
    expect_refusal(&p, TCONV_ERROR_TYPE, "only with factors of 1, an ordinary convolution");
    p.strides = (tconv_list){2, {1, 1}};
    expect_ok(tconv_resolve(&p, &g, &error), &error);
    assert_int_equal(g.output[0], 5);
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
    p = good;
    p.filter.dim[1] = 5;
    expect_refusal(&p, TCONV_ERROR_SHAPE,
                   "data has 6 channels (axis 1 of data_format NCX), but the filter wants 5 input "
                   "channels (axis 1 of filter_format OIX)");
}

static void what_is_refused_of_shuffles(void **state)
{
    (void)state;
    tconv_problem good = decoder(6, 8, 5), p;
    const int64_t one[] = {1, 1}, two[] = {1, 2}, large[] = {INT64_MAX / 2, 4};
    tconv_geometry g = TCONV_GEOMETRY_INIT;
    tconv_error error;
    good.operation = TCONV_CONV_PIXEL_SHUFFLE;
    expect_ok(tconv_resolve(&good, &g, &error), &error);
    assert_int_equal(g.output_shape.dim[1], 2);
    assert_int_equal(g.output[0], 10);
    assert_int_equal(g.output[1], 12);
    assert_int_equal(g.kernel[0], 6);
    assert_int_equal(g.pad_begin[0], 2);
    assert_int_equal(g.epilogue_channels, 8);
    p = good;
    p.filter.dim[0] = 6;
    expect_refusal(&p, TCONV_ERROR_SHAPE,
                   "the filter has 6 output channels (axis 0), but pixel shuffle by 2x2 takes 4");
    p = good;
    p.groups = 3;
    p.filter.dim[1] = 2;
    p.filter.dim[0] = 18;
    expect_refusal(&p, TCONV_ERROR_SHAPE, "6 output channels (axis 0) for each group");
    p.operation = TCONV_CONV_PIXEL_SHUFFLE_DCR;
    expect_refusal(&p, TCONV_ERROR_UNSUPPORTED, "groups is 3, but with the order DCR");
    p = good;
    set_list(&p.dilations, 2, two);
    expect_refusal(&p, TCONV_ERROR_UNSUPPORTED,
                   "dilations[1] is 2, but the factor of the pixel shuffle is 2");
    p = good;
    p.strides.value[0] = 0;
    expect_refusal(&p, TCONV_ERROR_ATTRIBUTE, "strides (the factors of the pixel shuffle)");
    p = good;
    set_list(&p.strides, 2, large);
    expect_refusal(&p, TCONV_ERROR_SHAPE, "overflows 64 bits");
    p = good;
    p.data.dim[2] = p.data.dim[3] = 1;
    p.filter.dim[2] = p.filter.dim[3] = 1;
    p.pads_begin.count = p.pads_end.count = 0;
    set_list(&p.strides, 2, (const int64_t[]){INT64_C(1) << 40, INT64_C(1) << 40});
    expect_refusal(&p, TCONV_ERROR_SHAPE, "takes more than");
    p = good;
    p.rules = TCONV_RULES_ONNX;
    expect_refusal(&p, TCONV_ERROR_ARGUMENT, "must be spec for convolution and pixel shuffle");
    p = good;
    set_list(&p.output_padding, 2, one);
    expect_refusal(&p, TCONV_ERROR_ARGUMENT, "output_padding is given");
    p = good;
    p.filter.dim[3] = 9;
    expect_refusal(&p, TCONV_ERROR_SHAPE, "choose larger pads");
    p.strides = (tconv_list){2, {2, 1}};
    p.filter.dim[3] = 3;
    set_list(&p.dilations, 2, two);
    expect_ok(tconv_resolve(&p, &g, &error), &error); /* a dilation where the factor is 1 */
}

int main(void)
{
    struct CMUnitTest tests[] = {
        smoke_test(values_by_hand),
        smoke_test(shuffled_values_by_hand),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(what_is_refused_of_shuffles),
        smoke_test(infinities_stay_where_they_are),
        smoke_test(differences_keep_special_values),
        smoke_test(differences_of_every_shape),
        cmocka_unit_test(filters_are_not_mixed_up),
        cmocka_unit_test(slabs_of_an_upsampling),
        cmocka_unit_test(slabs_and_windows_of_a_shuffle),
        smoke_test(one_product_has_the_same_bits),
        smoke_test(random_layers_of_every_rank),
        smoke_test(random_shuffles_of_every_rank),
        smoke_test(random_convolutions_of_every_type),
    };
    sample_covers(OPERATORS_AND_AXES);
    return run_smoke_or_all("upsampling", tests, open_all_devices, close_all_devices);
}
