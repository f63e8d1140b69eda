/* SPDX-License-Identifier: Apache-2.0 */
/* Every algorithm against the f64 oracle over generated problems: primes, odd channels, groups, all
 * ranks, all formats, kernels smaller than the stride, strides and dilations with common factors,
 * crops larger than the kernel, outputs beyond the natural extent. Small integers must come out
 * exactly; real numbers within the rounding bound. Algorithms with fast arithmetic: within their
 * own. */
#include "random_problem.h"
#include "verdicts.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Where only one algorithm is meant. */
static const char *only;

/* Cases that are not worth their time in a short run, even if their program is compiled:
 * matrix_group multiplies whole tiles, without a matrix unit one number after the other, and only
 * some algorithms treat large outputs in another way. */
static bool takes_long(const char *algorithm, const struct tensors *t, unsigned number)
{
    enum { LARGE = 1000000 }; /* outputs */
    const bool matrix = strcmp(algorithm, "matrix_group") == 0;
    if (sample_is_whole()) return false;
    if (matrix) return t->output_count > 20000 || number % 4 != 0;
    return t->output_count > LARGE && strcmp(algorithm, "thin_vector") != 0 &&
           strcmp(algorithm, "packed_vector") != 0 && strcmp(algorithm, "channels_vector") != 0;
}

static void run_all(const tconv_problem *problem, enum contents contents, unsigned seed)
{
    struct tensors t;
    make_tensors(problem, contents, seed, &t);
    t.math = TCONV_MATH_FAST; /* without it, some algorithms refuse; the others do not change */
    for (int d = 0; d < device_count; d++)
        for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
            const char *algorithm = tconv_algorithm_name(a);
            if (only != NULL && strcmp(algorithm, only) != 0) continue;
            if (takes_long(algorithm, &t, seed)) continue;
            /* In a short run all of an algorithm's programs have a bias, or none. */
            const bool bias = ((sample_is_whole() ? seed : 0) + (unsigned)a) % 2 == 0;
            check_algorithm(&devices[d], problem, algorithm, bias, &t, seed);
        }
    free_tensors(&t);
}

static void random_problems_of_every_rank(void **state)
{
    (void)state;
    static const struct {
        int axes, most, count;
    } ranks[] = {{1, 150, 12}, {2, 19, 14}, {3, 7, 10}, {4, 4, 8}, {5, 3, 4}, {6, 2, 4}};
    for (size_t r = 0; r < sizeof ranks / sizeof *ranks; r++)
        for (int i = 0; i < ranks[r].count; i++) {
            unsigned seed = 1000u * (unsigned)ranks[r].axes + (unsigned)i;
            tconv_problem problem = random_problem(&seed, ranks[r].axes, ranks[r].most);
            if (i % 4 == 3) /* some algorithms are for bytes only */
                problem.data_type = problem.filter_type = i % 8 == 3 ? TCONV_I8 : TCONV_U8;
            if (i % 3 == 1) random_steps(&seed, &problem);
            run_all(&problem, i % 2 == 0 ? SMALL_INTEGERS : REAL_NUMBERS,
                    100 * (unsigned)r + (unsigned)i);
        }
}

/* False only for an algorithm that the device never runs. Without a matrix unit, matrix_group wants
 * work-groups of 32. */
static bool is_supported(const struct device *device, const char *algorithm)
{
    return !never_runs(device, algorithm) &&
           (strcmp(algorithm, "matrix_group") != 0 || device->info->work_group_limit >= 32);
}

/* Whether the algorithm ran the problem; then its result is right. */
static bool run_random(const struct device *device, const char *algorithm, const tconv_problem *p,
                       bool bias, unsigned number)
{
    struct tensors t;
    make_tensors(p, bias ? SMALL_INTEGERS : REAL_NUMBERS, 1, &t);
    t.math = TCONV_MATH_FAST;
    const bool ran = check_algorithm(device, p, algorithm, bias, &t, number);
    free_tensors(&t);
    return ran;
}

static int problems_each(int usual, int least)
{
    if (sample_is_least()) return 1;
    return scaled(usual) < least ? least : scaled(usual);
}

/* An algorithm that takes no problem would pass by doing nothing, and problems that are drawn
 * without regard to algorithms leave some without any. Here each algorithm runs `count` problems on
 * every device that supports it, and others that need no program of their own. */
static void random_problems_of_every_algorithm(void **state)
{
    (void)state;
    enum { USUAL = 30, LEAST = 3, RELATIVES = 20, MOST_WORK = 300000 };
    const int count = problems_each(USUAL, LEAST);
    unsigned seed = sample_seed();
    int relatives = 0;
    for (int i = 0; i < device_count * count; i++)
        for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
            const struct device *device = &devices[i / count];
            const char *algorithm = tconv_algorithm_name(a);
            tconv_problem p, relative;
            if (!is_supported(device, algorithm)) continue;
            if (!random_problem_for(device, algorithm, MOST_WORK, &seed, &p))
                failed("%s takes no random problem on device %d", algorithm, device->number);
            if (!run_random(device, algorithm, &p, i % 2 == 0, ALWAYS))
                failed("%s did not run what was drawn for it on device %d", algorithm,
                       device->number);
            for (int r = 0; r < RELATIVES; r++)
                if (random_relative(&p, MOST_WORK, &seed, &relative))
                    relatives += run_random(device, algorithm, &relative, i % 2 == 0, IF_COMPILED);
        }
    print_message("each algorithm ran %d random problems; %d more shared their programs\n", count,
                  relatives);
}

/* A residual that does not lie in memory like the output, or that is added to several outputs. */
static void residuals_have_steps_of_their_own(void **state)
{
    (void)state;
    enum { USUAL = 20, LEAST = 2, MOST_WORK = 100000 }; /* without and with the outputs before */
    const int count = problems_each(USUAL, LEAST);
    unsigned seed = sample_seed() + 77;
    for (int i = 0; i < device_count * count; i++)
        for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
            const struct device *device = &devices[i / count];
            const char *algorithm = tconv_algorithm_name(a);
            tconv_problem p;
            if (!is_supported(device, algorithm)) continue;
            if (!random_problem_for(device, algorithm, MOST_WORK, &seed, &p))
                failed("%s takes no random problem on device %d", algorithm, device->number);
            tconv_epilogue e = TCONV_EPILOGUE_INIT;
            e.residual = true;
            if (tconv_type_is_floating(p.data_type)) {
                e.activation = TCONV_ACTIVATION_RELU;
                e.beta = i % 2 == 0 ? 0 : 0.5;
            }
            random_residual_steps(&seed, &p);
            struct tensors t;
            make_tensors(&p, REAL_NUMBERS, 1, &t);
            make_epilogue(&p, &e, 3, &t);
            t.math = TCONV_MATH_FAST;
            if (!check_algorithm(device, &p, algorithm, true, &t, ALWAYS))
                failed("%s does not take steps of the residual", algorithm);
            free_tensors(&t);
        }
}

/* A problem in two dimensions: why it is here, and
 *
 *     batch, input and output channels of a group, groups,
 *     input, kernel, strides, dilations, pads at begin and end, output padding */
struct plane {
    const char *why, *numbers;
};

static const struct plane planes[] = {
    {"pix2pix in small", "1 5 7 1  6x33 4x4 2x2 1x1 1x1 1x1 0x0"},
    {"a tile more than one row of vectors", "1 3 5 1  3x70 4x4 2x2 1x1 1x1 1x1 0x0"},
    {"small images that share vectors", "5 9 15 1  3x5 4x4 2x2 1x1 1x1 1x1 0x0"},
    {"more input channels than local memory holds", "1 1500 2 1  2x2 3x3 1x1 1x1 0x0 0x0 0x0"},
    {"input channels in chunks where 16 KiB are local", "1 260 3 1  2x2 4x4 1x1 1x1 1x1 1x0 0x0"},
    {"the same, and a kernel that is a multiple of a large stride",
     "1 260 2 1  1x3 1x64 1x4 1x1 0x5 0x2 0x0"},
    {"input channels in chunks everywhere", "1 700 2 1  1x2 16x16 1x1 1x1 0x3 1x0 0x0"},
    {"chunks and several phases", "1 700 20 1  2x2 16x32 1x2 1x1 7x14 7x15 0x0"},
    {"depthwise: many planes for a work-item", "3 1 1 17  4x35 4x4 2x2 1x1 1x1 1x1 0x0"},
    {"dilation shares a factor with the stride along y", "2 2 3 2  7x40 5x3 4x2 2x3 3x2 1x2 0x0"},
    {"three phases side by side", "1 3 4 1  2x37 2x5 1x3 1x1 0x2 0x1 0x0"},
    {"four phases side by side", "1 3 4 1  2x37 2x9 1x4 1x1 0x3 0x1 0x2"},
    {"kernel smaller than the stride", "2 3 5 1  7x18 2x2 3x3 1x1 0x0 0x0 2x2"},
    {"stride and dilation share a factor", "1 4 3 1  9x20 3x3 2x4 2x6 2x5 2x5 1x3"},
    {"dilation, stride 1", "1 4 6 1  5x40 3x7 1x1 2x9 0x27 0x27 0x0"},
    {"large stride: one phase after the other", "1 3 4 1  2x37 1x16 1x8 1x1 0x4 0x4 0x0"},
    {"large stride that does not divide the kernel", "1 3 4 2  3x21 3x13 2x5 1x1 1x6 0x2 1x4"},
    {"pads larger than the kernel", "1 2 3 1  9x23 3x3 2x2 1x1 5x7 4x6 0x0"},
    {"output padding beyond the natural extent", "1 2 3 1  4x5 3x3 2x2 1x1 0x0 0x0 7x40"},
    {"stride 3, merged", "1 5 9 1  4x19 9x9 3x3 1x1 4x4 4x4 2x2"},
    {"stride 4, merged", "1 5 9 1  4x35 8x8 4x4 1x1 2x2 2x2 0x0"},
    {"depthwise", "2 1 1 11  6x17 4x4 2x2 1x1 1x1 1x1 0x0"},
    {"depthwise, dilation and crops", "2 1 1 37  5x29 3x5 1x3 2x2 3x2 0x5 0x1"},
    {"many images of a row", "3 1 1 37  1x21 1x6 1x3 1x1 0x2 0x2 0x1"},
    {"of blocks", "2 1 7 19  2x18 3x4 2x2 1x1 1x1 1x1 0x0"},
    {"last tile over the one before", "1 1 1 9  1x201 1x3 1x2 1x1 0x1 0x1 0x1"},
    {"one output channel", "1 17 1 1  5x31 5x5 1x1 1x1 2x2 2x2 0x0"},
    {"bands, the first one short", "1 3 1 1  7x21 9x4 3x2 1x1 4x1 4x1 2x0"},
    {"bands of half a stride", "2 1 1 5  9x11 7x8 4x4 1x1 3x2 1x2 0x0"},
    {"bands that a tap has not whole", "1 4 1 1  8x35 3x3 2x2 1x1 1x1 1x1 1x1"},
    {"bands that pads cut", "1 2 1 1  5x19 5x3 3x1 1x1 7x1 4x1 0x0"},
    {"eight phases", "1 5 7 1  3x21 4x16 2x8 1x1 1x4 1x4 0x0"},
    {"eight, and a tap more", "2 1 1 3  2x37 1x11 1x8 1x1 0x2 0x1 0x3"},
    {"one point", "3 7 19 1  1x1 4x4 2x2 1x1 1x1 1x1 0x0"},
    {"more channels than a block", "1 8 31 1  4x16 3x3 2x2 1x1 1x1 1x1 1x1"},
    {"axes with nothing to do", "1 5 6 1  1x29 1x6 1x3 1x1 0x2 0x1 0x0"},
    {"last axis copied along", "1 4 5 1  6x45 8x1 4x1 1x1 0x0 0x0 0x0"},
    {"outputs that no cache holds", "1 2 3 1  605x603 2x3 2x2 1x1 0x1 0x1 0x0"},
    {"whole cache lines of them", "1 2 3 1  605x608 2x3 2x2 1x1 0x1 0x1 0x1"},
    {"four vectors of phases", "1 2 1 1  2x40 1x128 1x64 1x1 0x3 0x5 0x0"},
    {"segmentation head", "1 3 2 1  3x5 16x64 8x32 1x1 0x0 0x0 0x0"},
    {"places with one tap", "2 67 18 1  3x29 2x2 2x2 1x1 0x0 0x0 0x0"},
    {"one tap, groups", "1 5 17 3  2x13 1x2 1x2 1x1 0x0 0x0 0x0"},
    {"one tap or none", "1 3 19 1  2x11 2x2 2x3 1x1 0x0 0x0 0x0"},
    {"one tap, cropped", "1 3 19 1  4x11 2x3 2x3 1x1 0x0 1x2 0x0"},
};

/* The problem with groups and plain data, or in the oneAPI form with channels last. */
static tconv_problem plane_problem(const struct plane *plane, bool last)
{
    int batch, in, out, groups, x[2], k[2], s[2], d[2], begin[2], end[2], padding[2];
    assert_int_equal(sscanf(plane->numbers, "%d %d %d %d %dx%d %dx%d %dx%d %dx%d %dx%d %dx%d %dx%d",
                            &batch, &in, &out, &groups, &x[0], &x[1], &k[0], &k[1], &s[0], &s[1],
                            &d[0], &d[1], &begin[0], &begin[1], &end[0], &end[1], &padding[0],
                            &padding[1]),
                     18);
    tconv_problem p = TCONV_PROBLEM_INIT;
    if (last) {
        p.operation = TCONV_ONEAPI_CONV_BACKPROP;
        p.data_format = TCONV_NXC;
        p.filter_format = TCONV_OIX;
        p.groups = groups;
        set_shape(&p.data, 4, (int64_t[]){batch, x[0], x[1], groups * in});
        set_shape(&p.filter, 4, (int64_t[]){groups * in, out, k[0], k[1]});
    } else {
        p.operation = TCONV_GROUP_CONV_BACKPROP;
        set_shape(&p.data, 4, (int64_t[]){batch, groups * in, x[0], x[1]});
        set_shape(&p.filter, 5, (int64_t[]){groups, in, out, k[0], k[1]});
    }
    set_list(&p.strides, 2, (int64_t[]){s[0], s[1]});
    set_list(&p.dilations, 2, (int64_t[]){d[0], d[1]});
    set_list(&p.pads_begin, 2, (int64_t[]){begin[0], begin[1]});
    set_list(&p.pads_end, 2, (int64_t[]){end[0], end[1]});
    set_list(&p.output_padding, 2, (int64_t[]){padding[0], padding[1]});
    return p;
}

static void problems_with_a_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof planes / sizeof *planes; i++)
        for (int last = 0; last < 2; last++) {
            const tconv_problem p = plane_problem(&planes[i], last != 0);
            run_all(&p, i % 2 == 0 ? REAL_NUMBERS : SMALL_INTEGERS,
                    1000 + 2 * (unsigned)i + (unsigned)last);
        }
}

/* More channels than the local memory of any CPU holds, whose sums wait between chunks: in every
 * sample, but by the one algorithm that has chunks on CPUs. */
static void chunks_of_channels(void **state)
{
    (void)state;
    const struct plane many = {"", "1 4000 1 1  2x2 16x16 1x1 1x1 7x7 7x7 0x0"};
    const tconv_problem p = plane_problem(&many, false);
    struct tensors t;
    make_tensors(&p, SMALL_INTEGERS, 8, &t);
    for (int d = 0; d < device_count; d++)
        if (run_algorithm(&devices[d], &p, "packed_vector", true, &t, ALWAYS))
            compare_with_oracle(&devices[d], &p, "packed_vector", true, &t);
    free_tensors(&t);
}

/* A bias far above the sums: it must be added once, at the end. */
static void a_large_bias_is_added_last(void **state)
{
    (void)state;
    for (int square = 0; square < 2; square++) {
        tconv_problem p = TCONV_PROBLEM_INIT;
        set_shape(&p.data, 4, (int64_t[]){1, 3, square ? 9 : 1, square ? 10 : 90});
        set_shape(&p.filter, 4, (int64_t[]){3, 5, square ? 8 : 1, square ? 8 : 64});
        set_list(&p.strides, 2, (int64_t[]){square ? 2 : 1, 2});
        struct tensors t;
        make_tensors(&p, REAL_NUMBERS, 8, &t);
        t.math = TCONV_MATH_FAST;
        for (size_t i = 0; i < t.channels; i++) t.bias[i] *= 1e6F;
        for (int d = 0; d < device_count; d++)
            for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
                const char *algorithm = tconv_algorithm_name(a);
                check_algorithm(&devices[d], &p, algorithm, true, &t, 2000 + (unsigned)square);
            }
        free_tensors(&t);
    }
}

/* The tiles of fast arithmetic: every number of points along an axis and of taps, rows that end
 * within a tile, phases that begin at different inputs, rows of more than a vector, small images
 * that share vectors, chunks of channels, three axes. */
static void tiles_of_every_size(void **state)
{
    (void)state;
    only = "winograd_vector";
    static const struct {
        int axes;
        int64_t batch, in, out, x[3], k, s, pad;
    } rows[] = {
        {1, 1, 5, 9, {203}, 16, 8, 4},      {1, 2, 3, 4, {61}, 6, 3, 2},
        {1, 1, 2, 3, {130}, 3, 1, 1},       {1, 1, 2, 3, {45}, 10, 5, 0},
        {1, 3, 2, 2, {7}, 32, 16, 9},       {2, 1, 150, 40, {9, 64}, 4, 2, 1},
        {2, 3, 7, 14, {8, 6}, 4, 2, 1},     {2, 5, 6, 5, {4, 4}, 4, 2, 1},
        {2, 1, 4, 6, {13, 17}, 3, 1, 1},    {2, 2, 4, 6, {11, 19}, 5, 2, 2},
        {2, 1, 3, 27, {10, 33}, 6, 3, 1},   {2, 1, 3, 5, {5, 40}, 8, 4, 2},
        {2, 2, 300, 70, {6, 5}, 4, 2, 1},   {3, 3, 5, 9, {4, 4, 4}, 4, 2, 1},
        {3, 1, 40, 30, {3, 5, 7}, 4, 2, 1}, {3, 2, 3, 4, {5, 6, 7}, 3, 1, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int axes = rows[i].axes;
        tconv_problem p = TCONV_PROBLEM_INIT;
        int64_t data[5] = {rows[i].batch, rows[i].in}, filter[5] = {rows[i].in, rows[i].out};
        for (int a = 0; a < axes; a++) {
            data[2 + a] = rows[i].x[a];
            filter[2 + a] = rows[i].k;
        }
        set_shape(&p.data, axes + 2, data);
        set_shape(&p.filter, axes + 2, filter);
        const int64_t s[] = {rows[i].s, rows[i].s, rows[i].s};
        const int64_t pad[] = {rows[i].pad, rows[i].pad, rows[i].pad};
        set_list(&p.strides, axes, s);
        set_list(&p.pads_begin, axes, pad);
        set_list(&p.pads_end, axes, pad);
        run_all(&p, REAL_NUMBERS, 3000 + (unsigned)i);
    }
    only = NULL;
}

/* The tiles of the depthwise algorithm, channels last: every stride and kind of kernel, channels
 * after the last whole block, rows that end within a tile or have none. */
static void depthwise_tiles(void **state)
{
    (void)state;
    only = "depthwise_vector";
    static const struct plane tiles[] = {
        {"a tap a phase", "2 1 1 70  3x11 2x2 2x2 1x1 0x0 0x0 0x0"},
        {"fewer for some", "1 1 1 33  4x13 3x3 2x2 1x1 1x1 1x1 1x1"},
        {"two taps", "1 1 1 64  5x19 4x4 2x2 1x1 1x1 1x1 0x0"},
        {"three phases", "3 1 1 37  1x32 1x6 1x3 1x1 0x2 0x2 0x1"},
        {"four phases", "1 1 1 50  4x16 8x8 4x4 1x1 2x2 2x2 0x0"},
        {"without taps", "1 1 1 19  3x12 2x1 3x3 1x1 0x0 0x0 1x2"},
        {"some without", "1 1 1 97  3x14 3x2 2x3 1x1 1x0 0x0 0x2"},
        {"a common factor", "1 1 1 23  5x17 3x5 2x4 2x2 1x3 0x2 0x0"},
        {"none in common", "1 1 1 41  5x15 3x4 1x3 2x2 2x1 1x2 0x1"},
        {"stride 1", "1 1 1 45  7x18 5x7 1x1 1x1 2x3 2x3 0x0"},
        {"16 taps", "1 1 1 34  1x21 1x16 1x4 1x1 0x6 0x6 0x0"},
        {"17 taps", "1 1 1 34  1x21 1x17 1x2 1x1 0x6 0x6 0x0"},
        {"five phases", "1 1 1 34  2x21 2x7 3x5 1x1 0x1 0x2 0x0"},
        {"crops", "1 1 1 66  6x15 3x3 2x2 1x1 3x5 2x4 0x0"},
        {"a tile", "2 1 1 35  3x6 3x3 2x2 1x1 0x0 0x0 0x0"},
        {"less", "2 1 1 35  3x3 3x3 2x2 1x1 0x0 0x0 0x0"},
    };
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        const tconv_problem p = plane_problem(&tiles[i], true);
        run_all(&p, i % 2 == 0 ? REAL_NUMBERS : SMALL_INTEGERS, 4000 + (unsigned)i);
    }
    only = NULL;
}

/* Taps that reach a part of a tile's places: its first ones, its last ones, some in the middle. */
static void parts_of_tiles(void **state)
{
    (void)state;
    static const char *const algorithms[] = {"channels_vector", "phases_vector", "dot_vector"};
    static const struct plane tiles[] = {
        {"a place", "2 32 19 1  3x7 3x3 1x1 1x1 1x1 1x1 0x0"},
        {"two", "2 33 40 1  3x14 1x5 1x1 1x1 0x2 0x2 0x0"},
        {"half", "1 37 32 1  2x10 1x3 1x1 1x2 0x0 0x0 0x0"},
        {"the middle", "1 64 35 1  2x3 2x3 1x1 2x2 0x0 0x0 0x0"},
        {"phases", "1 48 33 1  4x9 4x4 2x2 1x1 1x1 1x1 0x0"},
        {"a tile's end", "1 70 16 1  2x29 2x4 1x1 1x1 0x3 0x3 0x0"},
        {"groups", "1 34 17 2  3x11 3x5 1x1 1x1 1x4 1x4 0x0"},
        {"strides", "2 32 18 1  2x6 2x8 2x4 1x1 0x2 0x2 0x0"},
    };
    static const tconv_type types[] = {TCONV_F32, TCONV_F32, TCONV_BF16};
    for (size_t a = 0; a < sizeof algorithms / sizeof *algorithms; a++)
        for (size_t i = 0; i < 2 * sizeof tiles / sizeof *tiles; i++) {
            only = algorithms[a];
            tconv_problem p = plane_problem(&tiles[i / 2], i % 2 == 0);
            p.data_type = p.filter_type = types[a];
            run_all(&p, REAL_NUMBERS, 7000 + (unsigned)i);
        }
    only = NULL;
}

/* Stretches of outputs that no tap reaches: longer than a work-item's part, within rows and across
 * them, before the first reached output and behind the last one. */
static void outputs_without_taps(void **state)
{
    (void)state;
    static const struct plane rows[] = {
        {"46889 x 4", "1 3 2 1  2x2 2x3 46889x4 1x1 0x1 0x0 0x0"},
        {"4 x 70000", "1 2 1 1  2x2 3x2 4x70000 1x1 1x9 0x0 0x0"},
        {"several taps", "2 4 3 2  5x6 4x3 100x2 50x1 99x1 7x1 0x1"},
        {"dilations", "1 2 3 1  4x3 3x3 9x16 7x40 3x30 0x20 5x0"},
        {"none at all", "1 2 2 1  9x1 3x1 1x9 1x1 0x3 0x0 0x8"},
    };
    only = "sparse_vector";
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        const tconv_problem p = plane_problem(&rows[i / 2], i % 2 == 0);
        run_all(&p, REAL_NUMBERS, 8000 + (unsigned)i);
    }
    only = NULL;
}

/* The largest work-groups of the devices that run the algorithm; 0: none does. */
static uint64_t largest_group(const char *algorithm)
{
    uint64_t largest = 0;
    for (int d = 0; d < device_count; d++)
        if (!never_runs(&devices[d], algorithm) && devices[d].info->work_group_limit > largest)
            largest = devices[d].info->work_group_limit;
    return largest;
}

/* Four axes, both data formats: taps along the outer two come from a list. */
static void four_axes(void **state)
{
    (void)state;
    enum { AXES = 4 };
    /* Of the lists a digit for each axis. */
    static const struct {
        int64_t batch, groups, in, out;
        const char *x, *k, *s, *d, *begin, *end;
    } rows[] = {
        {1, 1, 19, 37, "3237", "3233", "2121", "1212", "1012", "0110"},
        {5, 1, 40, 16, "2232", "2322", "2222", "1111", "0100", "1101"},
        {1, 2, 150, 5, "2225", "3324", "1212", "1111", "1101", "1101"},
        {2, 1, 6, 3, "2323", "2228", "3124", "1111", "0012", "0102"},
        {2, 35, 1, 1, "3329", "3233", "2322", "1121", "1011", "0011"},
        {1, 67, 1, 1, "2346", "3335", "1111", "2111", "2112", "2112"},
    };
    static const tconv_type types[] = {TCONV_F32, TCONV_BF16, TCONV_U8};
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        const size_t r = i / 2;
        const bool last = i % 2 == 1;
        tconv_problem p = TCONV_PROBLEM_INIT;
        p.operation = TCONV_ONEAPI_CONV_BACKPROP;
        p.data_format = last ? TCONV_NXC : TCONV_NCX;
        p.filter_format = TCONV_OIX;
        p.data_type = p.filter_type = types[r % 3];
        p.groups = rows[r].groups;
        p.data.rank = p.filter.rank = AXES + 2;
        p.data.dim[0] = rows[r].batch;
        p.data.dim[last ? AXES + 1 : 1] = p.filter.dim[0] = rows[r].groups * rows[r].in;
        p.filter.dim[1] = rows[r].out;
        p.strides.count = p.dilations.count = p.pads_begin.count = p.pads_end.count = AXES;
        for (int a = 0; a < AXES; a++) {
            p.data.dim[2 - last + a] = rows[r].x[a] - '0';
            p.filter.dim[2 + a] = rows[r].k[a] - '0';
            p.strides.value[a] = rows[r].s[a] - '0';
            p.dilations.value[a] = rows[r].d[a] - '0';
            p.pads_begin.value[a] = rows[r].begin[a] - '0';
            p.pads_end.value[a] = rows[r].end[a] - '0';
        }
        run_all(&p, r % 2 == 0 ? REAL_NUMBERS : SMALL_INTEGERS, 5000 + (unsigned)i);
    }
}

/* Runs an algorithm with its tile on every device that takes it, and compares the outputs. Returns
 * on how many. */
static int run_named(const tconv_problem *p, const char *name, bool bias, struct tensors *t,
                     unsigned number)
{
    int ran = 0;
    for (int d = 0; d < device_count; d++)
        ran += check_algorithm(&devices[d], p, name, bias, t, number);
    return ran;
}

/* Tiles of algorithms for GPUs that no small problem would be given: input channels in parts,
 * slices of a work-group, several outputs and channels of a work-item. Each is in every sample, in
 * the first of the two formats that it takes. */
static void tiles_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct plane problem;
    } tiles[] = {
        {"tiled_group parts=2", {"parts", "2 35 7 1  4x9 4x4 2x2 1x1 1x1 1x1 0x0"}},
        {"tiled_group parts=4", {"and groups", "1 65 3 2  3x11 3x3 2x2 1x1 0x1 0x1 0x0"}},
        {"tiled_group slices=4 parts=2", {"and slices", "1 130 33 1  5x6 3x5 1x2 2x1 1x1 1x1 0x1"}},
        {"tiled_group slices=4", {"slices", "1 33 18 1  5x6 3x5 1x2 2x1 1x1 1x1 0x1"}},
        {"tiled_group nt=16 mt=16", {"few rows", "1 9 2 1  4x6 3x3 3x2 1x1 0x1 0x1 0x0"}},
        {"tiled_group ks=16 mt=128", {"a long stage", "2 35 40 1  4x9 4x4 2x2 1x1 1x1 1x1 0x0"}},
        {"tiled_group mt=64 nt=64 parts=1", /* wrong on llvmpipe if its loops stay rolled */
         {"many products", "1 64 9 1  5x6 3x3 2x2 2x2 2x2 2x2 1x1"}},
        {"tiled_group mt=16", /* more taps than constant memory takes */
         {"many taps", "1 3 2 1  2x3 165x163 1x1 1x1 80x80 80x79 0x0"}},
        {"direct_group outputs=8 along_y=0", {"a row", "2 1 1 5  3x37 4x6 2x3 1x1 1x4 1x2 0x0"}},
        {"direct_group outputs=8 along_y=1", {"a column", "2 1 1 5  29x5 3x3 2x2 2x1 1x4 1x2 0x0"}},
        {"direct_group outputs=2 along_y=0 rounds=2",
         {"long rows", "1 1 1 2  2x403 3x3 1x2 1x1 1x1 1x1 0x0"}},
        {"direct_group outputs=2 along_y=1 rounds=4",
         {"long columns", "1 1 1 2  61x31 3x4 2x2 1x1 1x1 2x1 0x0"}},
        {"direct_group outputs=2", {"channels", "1 6 3 3  5x12 4x4 2x2 1x1 1x1 1x1 0x0"}},
        {"direct_group channels=4", {"channels", "1 6 7 2  5x12 3x3 2x1 1x3 1x1 1x1 0x0"}},
        {"direct_group channels=2 outputs=4",
         {"channels", "1 6 3 2  5x12 3x3 1x2 1x1 1x1 1x1 0x0"}},
    };
    int ran = 0; /* small work-groups, or limits on loops, exclude some */
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++)
        for (int turn = 0, others = ran; turn < 2; turn++) {
            const tconv_problem p = plane_problem(&tiles[i].problem, ((int)i + turn) % 2 != 0);
            const unsigned number = ran == others ? ALWAYS : 6000 + (unsigned)i;
            struct tensors t;
            make_tensors(&p, REAL_NUMBERS, 6000 + (unsigned)i, &t);
            ran += run_named(&p, tiles[i].name, i % 2 == 0, &t, number);
            free_tensors(&t);
        }
    assert_true(ran >= (largest_group("direct_group") < 256 ? 0 : 8)); /* of 15 */
}

/* Copies of plain data for matrix units: channels and points that fill no tile, no quad or several
 * tiles of the copy, groups of whole quads, one point, borders. */
static void copies_of_plain_data(void **state)
{
    (void)state;
    static const char name[] = "matrix_group copy=1";
    static const struct plane copies[] = {
        {"odd channels", "3 7 5 1  5x13 3x4 2x2 1x1 1x1 1x0 0x0"},
        {"one channel", "2 1 3 1  3x5 2x3 1x2 1x1 0x1 0x1 0x0"},
        {"several tiles", "2 70 9 1  9x16 2x2 2x2 1x1 0x0 0x0 0x0"},
        {"groups", "1 16 3 3  4x9 3x3 2x1 1x2 1x0 0x1 1x0"},
        {"no taps", "1 16 4 1  5x3 1x2 3x3 1x1 0x0 0x0 2x0"},
    };
    static const tconv_type types[] = {TCONV_F16, TCONV_BF16, TCONV_I8, TCONV_U8, TCONV_F32};
    int ran = 0;
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++)
        for (size_t a = 0; a < sizeof types / sizeof *types; a++) {
            /* In a sample each problem and each type twice, in the least one once. */
            const bool sampled = a == i || (!sample_is_least() && a == (i + 2) % 5);
            if (!sampled && !sample_is_whole()) continue;
            tconv_problem p = plane_problem(&copies[i], false);
            p.data_type = p.filter_type = types[a];
            struct tensors t;
            make_tensors(&p, a % 2 == 0 ? SMALL_INTEGERS : REAL_NUMBERS, 7000 + (unsigned)i, &t);
            t.math = TCONV_MATH_FAST;
            /* Outputs whose sums are not finite are computed one by one, from the copy. */
            if (types[a] == TCONV_F32 && i > 0) ((float *)t.data)[t.data_count / 2] = INFINITY;
            if (types[a] == TCONV_F32 && i == 2) ((float *)t.filter)[5] = NAN;
            if (types[a] == TCONV_F16 && i > 0) ((uint16_t *)t.data)[t.data_count / 2] = 0x7c00;
            if (types[a] == TCONV_F16 && i == 2) ((uint16_t *)t.filter)[5] = 0x7e00; /* NaN */
            ran += run_named(&p, name, i % 2 == 0, &t, ALWAYS);
            free_tensors(&t);
        }
    const int least = sample_is_whole() ? 20 : sample_is_least() ? 4 : 8;
    assert_true(ran >= (largest_group(name) < 32 ? 0 : least));
}

/* Images that are so small that matrix_group sorts their positions: all kinds of borders, batches
 * that tiles divide and others, last tiles with few positions, positions without outputs or without
 * taps, groups. Some sums are not finite, and are computed again by their positions. */
static void small_images(void **state)
{
    (void)state;
    static const struct plane images[] = {
        {"four points", "8 16 16 1  4x4 4x4 2x2 1x1 1x1 1x1 0x0"},
        {"odd batch", "5 8 12 1  4x4 4x4 2x2 1x1 1x1 1x1 0x0"},
        {"stride one", "6 8 16 1  4x3 3x3 1x1 1x1 1x1 1x1 0x0"},
        {"dilated", "7 8 16 1  5x5 3x3 2x2 3x3 3x3 3x3 1x1"},
        {"groups", "3 8 12 2  6x5 3x3 2x2 1x1 0x0 0x0 0x0"},
        {"no taps", "4 16 12 1  4x4 2x2 3x3 1x1 0x0 0x0 1x1"},
    };
    static const tconv_type types[] = {TCONV_F16, TCONV_I8, TCONV_BF16, TCONV_F32};
    int ran = 0;
    for (size_t i = 0; i < sizeof images / sizeof *images; i++)
        for (size_t a = 0; a < sizeof types / sizeof *types; a++) {
            if (a != i % 4 && (sample_is_least() || i > 0)) continue;
            tconv_problem p = plane_problem(&images[i], i % 5 != 4);
            p.data_type = p.filter_type = types[a];
            struct tensors t;
            make_tensors(&p, types[a] == TCONV_BF16 ? REAL_NUMBERS : SMALL_INTEGERS,
                         9000 + (unsigned)i, &t);
            t.math = TCONV_MATH_FAST;
            if (types[a] == TCONV_F32) ((float *)t.filter)[5] = NAN;
            if (types[a] == TCONV_F16 && i > 0) ((uint16_t *)t.filter)[5] = 0x7e00; /* NaN */
            ran += run_named(&p, "matrix_group", i % 2 == 0, &t, ALWAYS);
            free_tensors(&t);
        }
    assert_true(ran >= (largest_group("matrix_group") < 32 ? 0 : sample_is_least() ? 5 : 9));
}

/* Vectors of channels or of neighbouring outputs: every stride that divides them, borders inside a
 * vector, kernels of odd and even extents, one tap for a phase and none, chunks of every size. Each
 * runs with aligned tensors and with others (pages.h). In every sample each problem has one type,
 * in both formats and all vectors. */
static void vectors_of_direct(void **state)
{
    (void)state;
    static const struct plane vectors[] = {
        {"stride 2", "2 1 1 24  5x8 4x4 2x2 1x1 1x1 1x1 0x0"},
        {"stride 4", "1 1 1 8  4x6 8x8 4x4 1x1 2x2 2x2 0x0"},
        {"stride 8", "1 1 1 16  1x5 1x13 1x8 1x1 0x3 0x2 0x0"},
        {"stride 1", "1 1 1 8  4x16 3x5 1x1 1x1 1x2 1x2 0x0"},
        {"no tap", "1 1 1 8  3x8 2x2 2x4 1x1 0x0 0x0 0x2"},
        {"odd rows of data", "1 1 1 8  3x9 3x3 2x2 1x2 1x3 1x2 0x2"},
        {"dense", "1 8 8 1  3x8 3x3 2x2 1x1 1x1 1x1 1x1"},
        {"dense and groups", "2 3 4 4  3x8 5x6 2x2 2x1 1x2 1x2 0x0"},
        {"large padding", "1 1 1 8  6x12 5x7 2x2 1x1 5x6 2x7 1x0"},
    };
    static const tconv_type types[] = {TCONV_F16, TCONV_BF16, TCONV_F32};
    static const char *const names[] = {"direct_group vw=8", "direct_group vw=4",
                                        "direct_group vw=8 outputs=2",
                                        "direct_group vw=4 channels=2"};
    int ran = 0;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        for (size_t a = 0; a < 2 * sizeof types / sizeof *types; a++) {
            tconv_problem p = plane_problem(&vectors[i], a % 2 != 0);
            p.data_type = p.filter_type = types[a / 2];
            struct tensors t;
            make_tensors(&p, REAL_NUMBERS, 8000 + (unsigned)i, &t);
            tconv_epilogue e = TCONV_EPILOGUE_INIT;
            e.bias = true;
            e.activation = i % 3 == 0 ? TCONV_ACTIVATION_PRELU : TCONV_ACTIVATION_SILU;
            e.residual = i % 2 == 0;
            e.beta = i % 4 < 2 ? 0 : 0.5;
            if (i > 1) make_epilogue(&p, &e, 8100 + (unsigned)i, &t);
            for (size_t n = (i + a) % 2; n < sizeof names / sizeof *names; n += 2)
                ran += run_named(&p, names[n], true, &t,
                                 (i + a / 2) % 3 == 0
                                     ? ALWAYS
                                     : 9000 + 100 * (unsigned)i + 10 * (unsigned)a + (unsigned)n);
            free_tensors(&t);
        }
    assert_true(ran >= (largest_group(names[0]) < 256 ? 0 : sample_is_whole() ? 40 : 12));
}

/* A work-item packs a block with more loop iterations than llvmpipe lets it have, though few
 * weights: it is refused there. */
static void many_weights_are_packed_or_refused(void **state)
{
    (void)state;
    static const struct plane many = {"many weights", "1 2 3 1  2x3 2000x4 500x4 1x1 0x0 0x0 0x0"};
    tconv_problem p = plane_problem(&many, false);
    p.data_type = p.filter_type = TCONV_I8;
    only = "thin_vector";
    run_all(&p, SMALL_INTEGERS, ALWAYS);
    only = NULL;
}

/* Dilations at the limits of 32-bit indices. */
static void huge_dilations_are_right_or_refused(void **state)
{
    (void)state;
    for (int64_t dilation = 200000000; dilation <= 715827899; dilation += 515827899) {
        tconv_problem p = TCONV_PROBLEM_INIT;
        set_shape(&p.data, 3, (int64_t[]){1, 1, 8});
        set_shape(&p.filter, 3, (int64_t[]){1, 1, 4});
        set_list(&p.strides, 1, (int64_t[]){4});
        set_list(&p.dilations, 1, &dilation);
        set_list(&p.output_shape, 1, (int64_t[]){40});
        p.rules = TCONV_RULES_OPENVINO;
        run_all(&p, SMALL_INTEGERS, 5000);
    }
}

/* Whatever tests ran: a sample leaves out no feature of the problems that an algorithm accepted. */
static void a_sample_has_every_feature(void **state)
{
    (void)state;
    expect_all_features();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_problems_of_every_algorithm),
        cmocka_unit_test(residuals_have_steps_of_their_own),
        cmocka_unit_test(random_problems_of_every_rank), /* what those left out */
        cmocka_unit_test(four_axes),
        cmocka_unit_test(problems_with_a_reason),
        cmocka_unit_test(chunks_of_channels),
        cmocka_unit_test(a_large_bias_is_added_last),
        cmocka_unit_test(tiles_of_every_size),
        cmocka_unit_test(depthwise_tiles),
        cmocka_unit_test(parts_of_tiles),
        cmocka_unit_test(outputs_without_taps),
        cmocka_unit_test(tiles_by_name),
        cmocka_unit_test(copies_of_plain_data),
        cmocka_unit_test(small_images),
        cmocka_unit_test(vectors_of_direct),
        cmocka_unit_test(many_weights_are_packed_or_refused),
        cmocka_unit_test(huge_dilations_are_right_or_refused),
        cmocka_unit_test(a_sample_has_every_feature),
    };
    return cmocka_run_group_tests_name("algorithms", tests, open_all_devices, close_all_devices);
}
