/* SPDX-License-Identifier: Apache-2.0 */
/* Element steps: what they reach, which are refused, and how layers follow from them. */
#include "base/view.h"
#include "geometry/loops.h"
#include "geometry/window.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Data [2, 3, 4, 5], output [2, 6, 8, 10] in f32. */
static tconv_problem upsampling(void)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    p.data = (tconv_shape){4, {2, 3, 4, 5}};
    p.filter = (tconv_shape){4, {3, 6, 2, 2}};
    p.strides = (tconv_list){2, {2, 2}};
    return p;
}

static tconv_geometry resolved(const tconv_problem *p)
{
    tconv_geometry g = TCONV_GEOMETRY_INIT;
    tconv_error error;
    if (tconv_resolve(p, &g, &error) != TCONV_OK) fail_msg("%s", error.message);
    return g;
}

static void bytes_are_those_from_the_first_element_to_the_last(void **state)
{
    (void)state;
    tconv_problem p = upsampling();
    tconv_geometry g = resolved(&p);
    assert_int_equal(g.data_bytes, 4 * 120);
    assert_int_equal(g.output_bytes, 4 * 960);
    assert_int_equal(g.residual_bytes, 4 * 960);
    p.data_steps = (tconv_steps){4, {1, 2, 100, 7}};
    p.output_steps = (tconv_steps){4, {960, 80, 10, 1}};
    p.residual_steps = (tconv_steps){4, {0, 5, 0, 0}};
    g = resolved(&p);
    assert_int_equal(g.data_bytes, 4 * (1 + 2 * 2 + 3 * 100 + 4 * 7 + 1));
    assert_int_equal(g.output_bytes, 4 * 1440);
    assert_int_equal(g.residual_bytes, 4 * (5 * 5 + 1));
    assert_int_equal(g.filter_bytes, 4 * 3 * 6 * 2 * 2);
    p.filter_steps = (tconv_steps){4, {1, 40, 3, 6}};
    g = resolved(&p);
    assert_int_equal(g.filter_bytes, 4 * (2 + 5 * 40 + 3 + 6 + 1));
    p.data.dim[0] = 0; /* nothing is reached */
    g = resolved(&p);
    assert_int_equal(g.data_bytes, 0);
    assert_int_equal(g.output_bytes, 0);
    assert_int_equal(g.residual_bytes, 0);
}

/* A window keeps given steps. A dense tensor of the window's rows has others than the whole. */
static void windows_keep_given_steps(void **state)
{
    (void)state;
    tconv_problem p = upsampling();
    p.output_steps = (tconv_steps){4, {1000, 100, 10, 1}};
    tconv_geometry g = TCONV_GEOMETRY_INIT;
    assert_int_equal(tconv_resolve_window(&p, 2, 4, &g, NULL), TCONV_OK);
    const struct tconv_view data = tconv_view_of(&p, &g, TCONV_SPACED_DATA),
                            output = tconv_view_of(&p, &g, TCONV_SPACED_OUTPUT);
    assert_int_equal(data.step[1], 5); /* one input row */
    assert_int_equal(output.step[1], 100);
    assert_int_equal(g.data_bytes, 4 * 2 * 3 * 5);
    assert_int_equal(g.output_bytes, 4 * (1000 + 500 + 10 + 9 + 1));
    /* Steps of an array with the window's rows need not suffice for all rows. */
    p.output_steps = (tconv_steps){4, {200, 25, 10, 1}};
    assert_int_equal(tconv_resolve(&p, &g, NULL), TCONV_ERROR_ATTRIBUTE);
    assert_int_equal(tconv_resolve_window(&p, 2, 4, &g, NULL), TCONV_OK);
    assert_int_equal(g.output_bytes, 4 * (200 + 5 * 25 + 10 + 9 + 1));
    p.output_steps.value[1] = 19;
    assert_int_equal(tconv_resolve_window(&p, 2, 4, &g, NULL), TCONV_ERROR_ATTRIBUTE);
}

static void wrong_steps_are_refused_with_axis_and_values(void **state)
{
    (void)state;
    enum { DATA, OUTPUT, RESIDUAL, FILTER };
    static const struct {
        int tensor;
        tconv_steps steps;
        const char *words[4];
    } cases[] = {
        {DATA, {3, {60, 20, 5}}, {"data_steps", "3 values", "4 axes of the data", "none"}},
        {DATA, {1000, {1}}, {"data_steps", "1000 values", "4 axes", ""}},
        {OUTPUT, {-1, {1}}, {"output_steps", "-1 values", "4 axes", ""}},
        {DATA, {4, {60, 20, 0, 1}}, {"data_steps is 0", "axis 2", "at least 1", ""}},
        {OUTPUT, {4, {960, 80, 10, -1}}, {"output_steps is -1", "axis 3", "at least 1", ""}},
        {RESIDUAL, {4, {960, -80, 10, 1}}, {"residual_steps is -80", "axis 1", "at least 0", ""}},
        {FILTER, {3, {24, 4, 2}}, {"filter_steps", "3 values", "4 axes of the filter", "none"}},
        {FILTER, {4, {24, 4, 2, 0}}, {"filter_steps is 0", "axis 3", "at least 1", ""}},
        {FILTER, {4, {1, INT64_MAX / 5, 1, 1}}, {"filter_steps", "axis 1", "extent is 6", "63"}},
        {OUTPUT, {4, {960, 80, 9, 1}}, {"output_steps is 9", "axis 2", "number 9", "least 10"}},
        {OUTPUT, {4, {1, 80, 10, 1}}, {"output_steps is 1", "axis 3", "overlap", "least 2"}},
        {OUTPUT, {4, {900, 79, 1, 8}}, {"output_steps is 79", "axis 1", "number 79", ""}},
        {DATA,
         {4, {INT64_MAX, 20, 5, 1}},
         {"data_steps is 9223372036854775807", "axis 0", "extent is 2", "63 bits"}},
        {OUTPUT,
         {4, {INT64_C(1) << 61, 80, 10, 1}},
         {"output_steps is 2305843009213693952", "axis 0", "extent is 2", "63 bits"}},
        {RESIDUAL,
         {4, {0, INT64_MAX / 5, 1, 1}},
         {"residual_steps", "axis 1", "extent is 6", "63 bits"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tconv_problem p = upsampling();
        tconv_geometry g = TCONV_GEOMETRY_INIT;
        const tconv_geometry before = g;
        tconv_error error = {TCONV_OK, 7, ""};
        *(cases[i].tensor == DATA     ? &p.data_steps
          : cases[i].tensor == OUTPUT ? &p.output_steps
          : cases[i].tensor == FILTER ? &p.filter_steps
                                      : &p.residual_steps) = cases[i].steps;
        const tconv_status status = tconv_resolve(&p, &g, &error);
        if (status != TCONV_ERROR_ATTRIBUTE)
            fail_msg("case %zu gives %s: %s", i, tconv_status_name(status), error.message);
        assert_memory_equal(&g, &before, sizeof g);
        for (int w = 0; w < 4; w++)
            if (strstr(error.message, cases[i].words[w]) == NULL)
                fail_msg("case %zu does not say \"%s\": %s", i, cases[i].words[w], error.message);
    }
}

/* Steps of data may overlap, and axes with one element may have any step. */
static void legal_steps_are_taken(void **state)
{
    (void)state;
    tconv_problem p = upsampling();
    p.data_steps = (tconv_steps){4, {1, 1, 1, 1}};
    p.data.dim[0] = 1;
    p.output_steps = (tconv_steps){4, {INT64_MAX, 1, 60, 6}}; /* channels innermost */
    const tconv_geometry g = resolved(&p);
    assert_int_equal(g.data_bytes, 4 * (2 + 3 + 4 + 1));
    assert_int_equal(g.output_bytes, 4 * 480);
    struct tconv_loops loops;
    tconv_loops_init(&loops, &p, &g);
    assert_true(loops.spaced);
    assert_int_equal(loops.output_channel_step, 1);
    p = upsampling();
    p.data_steps = (tconv_steps){4, {60, 20, 5, 1}}; /* as a dense tensor has them */
    p.output_steps = (tconv_steps){4, {480, 80, 10, 1}};
    const tconv_geometry dense = resolved(&p);
    tconv_loops_init(&loops, &p, &dense);
    assert_false(loops.spaced);
    assert_int_equal(loops.residual_axes, 0);
}

/* Where the loops' channels, groups and taps are in a filter of each form, and in the same filter
 * with given steps; steps as far as possible overflow nothing. */
static void filters_may_have_steps(void **state)
{
    (void)state;
    const int64_t far = INT64_MAX / 3;
    const struct {
        tconv_operation operation;
        tconv_filter_format format;
        int64_t groups;
        tconv_shape filter;
        tconv_steps steps;
        int64_t group, in, out, tap; /* steps */
    } cases[] = {
        {TCONV_CONV_BACKPROP, 0, 0, {3, {4, 6, 5}}, {0, {0}}, 120, 30, 5, 1},
        {TCONV_CONV_BACKPROP, 0, 0, {3, {4, 6, 5}}, {3, {1, 20, 4}}, 4, 1, 20, 4},
        {TCONV_CONV_BACKPROP, 0, 0, {3, {4, 1, 1}}, {3, {far, far, far}}, far, far, 1, 1},
        {TCONV_GROUP_CONV_BACKPROP, 0, 0, {4, {2, 2, 6, 5}}, {0, {0}}, 60, 30, 5, 1},
        {TCONV_GROUP_CONV_BACKPROP, 0, 0, {4, {2, 2, 6, 5}}, {4, {7, 1, 90, 15}}, 7, 1, 90, 15},
        {TCONV_ONEAPI_CONV_BACKPROP, TCONV_OIX, 2, {3, {4, 3, 5}}, {3, {9, 1, 40}}, 18, 9, 1, 40},
        {TCONV_ONEAPI_CONV_BACKPROP, TCONV_XIO, 2, {3, {5, 3, 4}}, {0, {0}}, 2, 1, 4, 12},
        {TCONV_ONEAPI_CONV_BACKPROP, TCONV_XIO, 2, {3, {5, 3, 4}}, {3, {1, 30, 6}}, 12, 6, 30, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tconv_problem p = TCONV_PROBLEM_INIT;
        p.data_type = p.filter_type = TCONV_I8;
        p.operation = cases[i].operation;
        p.groups = cases[i].groups;
        p.filter_format = cases[i].format;
        if (p.operation == TCONV_ONEAPI_CONV_BACKPROP) p.data_format = TCONV_NCX;
        p.data = (tconv_shape){3, {1, 4, 7}};
        p.filter = cases[i].filter;
        p.filter_steps = cases[i].steps;
        const tconv_geometry g = resolved(&p);
        struct tconv_loops loops;
        tconv_loops_init(&loops, &p, &g);
        assert_int_equal(loops.filter_group_step, cases[i].group);
        assert_int_equal(loops.filter_in_step, cases[i].in);
        assert_int_equal(loops.filter_out_step, cases[i].out);
        assert_int_equal(loops.axis[0].filter_step, cases[i].tap);
    }
    tconv_problem p = TCONV_PROBLEM_INIT; /* a convolution: [CO, CI, K] stored as [K, CI, CO] */
    p.operation = TCONV_CONV_PIXEL_SHUFFLE;
    p.data = (tconv_shape){3, {1, 2, 7}};
    p.filter = (tconv_shape){3, {6, 2, 3}};
    p.strides = (tconv_list){1, {2}};
    p.filter_steps = (tconv_steps){3, {1, 6, 12}};
    const tconv_geometry g = resolved(&p);
    struct tconv_loops loops;
    tconv_loops_init(&loops, &p, &g);
    assert_int_equal(loops.equivalent.step[0], 12);
    assert_int_equal(loops.equivalent.in_step, 6);
    assert_int_equal(loops.equivalent.out_step, 2);
    assert_int_equal(loops.equivalent.phase_step[0], 1);
    assert_int_equal(loops.filter_in_step, 18); /* of the equivalent filter, [CI, CO, K] */
}

static void a_text_has_steps(void **state)
{
    (void)state;
    tconv_problem p = upsampling();
    char text[300];
    p.data_steps = (tconv_steps){4, {90, 30, 6, 1}};
    p.residual_steps = (tconv_steps){4, {0, 0, 10, 1}};
    p.filter_steps = (tconv_steps){4, {1, 12, 6, 3}};
    tconv_problem_text(&p, text, sizeof text);
    assert_string_equal(text, "--data-shape 2,3,4,5 --filter-shape 3,6,2,2 --strides 2,2 "
                              "--data-steps 90,30,6,1 --residual-steps 0,0,10,1 "
                              "--filter-steps 1,12,6,3");
}

/* Axes that only copy are merged if their points lie at even distances. */
static void only_even_axes_are_merged(void **state)
{
    (void)state;
    tconv_problem p = TCONV_PROBLEM_INIT;
    p.data = (tconv_shape){5, {2, 3, 4, 5, 6}};
    p.filter = (tconv_shape){5, {3, 2, 1, 1, 1}};
    struct tconv_loops loops;
    const struct {
        int64_t z, y; /* steps of the data */
        int axes;
    } cases[] = {{30, 6, 1}, {31, 6, 2}, {35, 7, 2}, {99, 7, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        p.data_steps = (tconv_steps){5, {5000, 1000, cases[i].z, cases[i].y, 1}};
        const tconv_geometry g = resolved(&p);
        tconv_loops_init(&loops, &p, &g);
        tconv_loops_fold(&loops);
        assert_int_equal(loops.axes, cases[i].axes);
    }
}

/* As residual_at of cl/common/epilogue.clh. */
static int64_t residual_at(const struct tconv_loops *loops, int64_t at)
{
    int64_t index = 0;
    for (int i = 0; i < loops->residual_axes; i++) {
        index += at / loops->residual_step[i][0] * loops->residual_step[i][1];
        at %= loops->residual_step[i][0];
    }
    return loops->residual_axes == 0 ? at : index;
}

static int random_below(unsigned *seed, int limit)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (int)((*seed >> 10) % (unsigned)limit);
}

/* Random steps in a random order of the axes, so that elements do not overlap. */
static tconv_steps random_steps(unsigned *seed, const int64_t *extent, int rank)
{
    tconv_steps steps = {rank, {0}};
    int64_t next = 1 + random_below(seed, 2);
    for (int left = rank; left > 0; left--) {
        int a = random_below(seed, left);
        for (int i = 0; i <= a; i++) a += steps.value[i] != 0;
        steps.value[a] = next;
        next *= extent[a];
        next += random_below(seed, 3) == 0 ? random_below(seed, 4) : 0;
    }
    return steps;
}

static void residuals_follow_from_the_outputs_place(void **state)
{
    (void)state;
    unsigned seed = 3;
    for (int i = 0; i < 2000; i++) {
        tconv_problem p = upsampling();
        for (int a = 0; a < 4; a++) p.data.dim[a] = 1 + random_below(&seed, 4);
        p.filter.dim[0] = p.data.dim[1];
        p.filter.dim[1] = 1 + random_below(&seed, 4);
        tconv_geometry g = resolved(&p);
        if (random_below(&seed, 4) != 0)
            p.output_steps = random_steps(&seed, g.output_shape.dim, 4);
        if (random_below(&seed, 4) != 0) {
            p.residual_steps = random_steps(&seed, g.output_shape.dim, 4);
            if (random_below(&seed, 2) == 0) p.residual_steps.value[random_below(&seed, 4)] = 0;
        }
        g = resolved(&p);
        const struct tconv_view output = tconv_view_of(&p, &g, TCONV_SPACED_OUTPUT),
                                residual = tconv_view_of(&p, &g, TCONV_SPACED_RESIDUAL);
        struct tconv_loops loops;
        tconv_loops_init(&loops, &p, &g);
        for (int64_t e = 0; e < tconv_view_elements(&output); e++)
            assert_int_equal(residual_at(&loops, tconv_view_place(&output, e)),
                             tconv_view_place(&residual, e));
    }
}

/* A smaller tensor lies like a larger one: the same order of axes, the same room between rows. */
static void tensors_lie_like_larger_ones(void **state)
{
    (void)state;
    static const struct {
        int64_t like[4], step[4], extent[4], wanted[4];
    } cases[] = {
        {{2, 3, 4, 5}, {60, 1, 15, 3}, {2, 3, 2, 4}, {24, 1, 12, 3}}, /* channels last */
        {{2, 3, 4, 5}, {84, 28, 7, 1}, {2, 3, 2, 4}, {36, 12, 6, 1}}, /* two more in rows */
        {{2, 3, 4, 5}, {180, 60, 10, 2}, {1, 3, 3, 3}, {90, 30, 6, 2}},
        {{2, 3, 4, 5}, {0, 1, 0, 0}, {2, 3, 2, 4}, {0, 1, 0, 0}}, /* a residual for each channel */
        {{1, 3, 4, 5}, {1, 1, 15, 3}, {1, 3, 1, 1}, {1, 1, 3, 3}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tconv_view like = {.rank = 4}, view = {.rank = 4};
        memcpy(like.extent, cases[i].like, sizeof cases[i].like);
        memcpy(like.step, cases[i].step, sizeof cases[i].step);
        memcpy(view.extent, cases[i].extent, sizeof cases[i].extent);
        tconv_view_lay_out(&like, &view);
        for (int a = 0; a < 4; a++)
            if (view.step[a] != cases[i].wanted[a])
                fail_msg("case %zu, axis %d: step %lld", i, a, (long long)view.step[a]);
    }
}

static void copies_touch_only_elements(void **state)
{
    (void)state;
    unsigned seed = 9;
    for (int i = 0; i < 500; i++) {
        struct tconv_view view = {.rank = 3 + random_below(&seed, 3)};
        for (int a = 0; a < view.rank; a++) view.extent[a] = 1 + random_below(&seed, 4);
        const tconv_steps steps = random_steps(&seed, view.extent, view.rank);
        memcpy(view.step, steps.value, sizeof view.step);
        int64_t span = 0;
        assert_true(tconv_view_span(&view, &span));
        const int64_t count = tconv_view_elements(&view);
        short *spaced = calloc((size_t)span, sizeof *spaced),
              *dense = calloc((size_t)count, sizeof *dense),
              *back = calloc((size_t)count, sizeof *back);
        for (int64_t e = 0; e < count; e++) dense[e] = (short)(e + 1);
        tconv_view_scatter(&view, sizeof *dense, dense, spaced);
        int64_t written = 0;
        for (int64_t s = 0; s < span; s++) written += spaced[s] != 0;
        assert_int_equal(written, count);
        for (int64_t e = 0; e < count; e++)
            assert_int_equal(spaced[tconv_view_place(&view, e)], dense[e]);
        tconv_view_gather(&view, sizeof *dense, spaced, back);
        assert_memory_equal(back, dense, (size_t)count * sizeof *dense);
        free(spaced);
        free(dense);
        free(back);
    }
}

/* An extent times its step may overflow although no element is so far away. Only a build with
 * sanitizers notices that. */
static void products_of_large_steps_do_not_overflow(void **state)
{
    (void)state;
    const int64_t far = INT64_C(1) << 62;
    tconv_problem p = TCONV_PROBLEM_INIT;
    struct tconv_loops loops;
    p.data_type = p.filter_type = TCONV_I8;
    p.data = (tconv_shape){4, {1, 2, 2, 2}};
    p.filter = (tconv_shape){4, {2, 2, 1, 1}};
    p.output_steps = (tconv_steps){4, {1, 1, 2, far}};
    tconv_geometry g = resolved(&p);
    tconv_loops_init(&loops, &p, &g);
    tconv_loops_fold(&loops);
    assert_int_equal(loops.axes, 2);

    p.output_steps.count = 0;
    p.residual_steps = (tconv_steps){4, {1, 1, 1, far}};
    g = resolved(&p);
    tconv_loops_init(&loops, &p, &g);
    assert_int_equal(loops.residual_axes, 3);
    assert_int_equal(loops.residual_step[2][1], far);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_those_from_the_first_element_to_the_last),
        cmocka_unit_test(windows_keep_given_steps),
        cmocka_unit_test(wrong_steps_are_refused_with_axis_and_values),
        cmocka_unit_test(legal_steps_are_taken),
        cmocka_unit_test(filters_may_have_steps),
        cmocka_unit_test(a_text_has_steps),
        cmocka_unit_test(only_even_axes_are_merged),
        cmocka_unit_test(residuals_follow_from_the_outputs_place),
        cmocka_unit_test(tensors_lie_like_larger_ones),
        cmocka_unit_test(copies_touch_only_elements),
        cmocka_unit_test(products_of_large_steps_do_not_overflow),
    };
    return cmocka_run_group_tests_name("steps", tests, NULL, NULL);
}
