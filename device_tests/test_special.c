/* SPDX-License-Identifier: Apache-2.0 */
/* NaN and infinities reach exactly the outputs that use them, in every algorithm: from the data,
 * from the weights, at borders. A tap that is structurally absent must not be multiplied by a
 * padded zero. */
#include "support.h"
#include "verdicts.h"

#include "oracle/oracle.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static tconv_problem plane(int64_t ci, int64_t co, int64_t y, int64_t x, int64_t k, int64_t s,
                           int64_t d, int64_t pad)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    set_shape(&p.data, 4, (int64_t[]){1, ci, y, x});
    set_shape(&p.filter, 4, (int64_t[]){ci, co, k, k});
    set_list(&p.strides, 2, (int64_t[]){s, s});
    set_list(&p.dilations, 2, (int64_t[]){d, d});
    set_list(&p.pads_begin, 2, (int64_t[]){pad, pad});
    set_list(&p.pads_end, 2, (int64_t[]){pad, pad});
    set_list(&p.output_padding, 2, (int64_t[]){s - 1, s - 1});
    return p;
}

/* Puts `value` into one place of data or weights and compares with the oracle everywhere. */
static void place(const tconv_problem *p, unsigned number, float value, bool in_filter, size_t at,
                  int *special)
{
    struct tensors t;
    make_tensors(p, SMALL_INTEGERS, 3, &t);
    float *array = in_filter ? t.filter : t.data;
    array[at % (in_filter ? t.filter_count : t.data_count)] = value;
    for (int d = 0; d < device_count; d++)
        for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
            /* One of four belongs to every sample. */
            const unsigned own = (number + (unsigned)a) % 4 == 0 ? ALWAYS : number + 1;
            check_algorithm(&devices[d], p, tconv_algorithm_name(a), false, &t, own);
        }
    for (size_t i = 0; i < t.output_count; i++)
        *special += tconv_oracle_element(&(struct tconv_operands){.problem = p,
                                                                  .geometry = &t.geometry,
                                                                  .epilogue = &t.epilogue,
                                                                  .data = t.data,
                                                                  .filter = t.filter},
                                         (int64_t)i)
                        .special;
    free_tensors(&t);
}

/* A depthwise layer, channels first. */
static tconv_problem depthwise(int64_t channels, int64_t y, int64_t x, int64_t k, int64_t s,
                               int64_t pad)
{
    tconv_problem p = plane(channels, 1, y, x, k, s, 1, pad);
    p.operation = TCONV_ONEAPI_CONV_BACKPROP;
    p.data_format = TCONV_NCX;
    p.filter_format = TCONV_OIX;
    p.groups = channels;
    return p;
}

static tconv_problem channels_last(tconv_problem p)
{
    const tconv_shape first = p.data;
    p.data_format = TCONV_NXC;
    memcpy(&p.data.dim[1], &first.dim[2], (size_t)(first.rank - 2) * sizeof *first.dim);
    p.data.dim[first.rank - 1] = first.dim[1];
    return p;
}

/* Four spatial axes: taps along the outer ones come from a list. */
static tconv_problem four_axes(int64_t in, int64_t out, int64_t groups)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    p.operation = TCONV_ONEAPI_CONV_BACKPROP;
    p.filter_format = TCONV_OIX;
    p.data_format = TCONV_NCX;
    p.groups = groups;
    set_shape(&p.data, 6, (int64_t[]){1, groups * in, 2, 3, 2, 4});
    set_shape(&p.filter, 6, (int64_t[]){groups * in, out, 2, 3, 3, 3});
    set_list(&p.strides, 4, (int64_t[]){2, 1, 2, 2});
    set_list(&p.dilations, 4, (int64_t[]){1, 2, 1, 1});
    set_list(&p.pads_begin, 4, (int64_t[]){1, 1, 1, 1});
    return p;
}

static void special_values_reach_what_uses_them(void **state)
{
    (void)state;
    const tconv_problem problems[] = {
        plane(2, 3, 5, 6, 3, 2, 1, 1),  /* merged phases, borders everywhere */
        plane(2, 3, 3, 40, 4, 2, 1, 1), /* tiles with and without a border */
        plane(2, 2, 3, 19, 7, 5, 1, 3), /* one phase after the other */
        plane(2, 2, 2, 9, 8, 4, 1, 3),  /* all phases of a place together */
        channels_last(depthwise(19, 3, 21, 3, 2, 1)),
        depthwise(23, 2, 19, 3, 2, 1),  /* several images at a time, one of them with care */
        plane(2, 2, 5, 9, 3, 2, 3, 2),  /* dilation */
        plane(3, 2, 6, 18, 2, 2, 1, 0), /* kernel equals stride */
        four_axes(2, 3, 1),
        channels_last(four_axes(2, 3, 1)),
        channels_last(four_axes(1, 1, 19)),
        plane(260, 2, 1, 2, 25, 2, 1, 12), /* chunks of input channels */
        plane(1200, 5, 4, 4, 5, 1, 1, 2),  /* long sums of each output by itself */
    };
    const float values[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        int special = 0;
        for (size_t at = 0; at < 4; at++) {
            place(&problems[i], (unsigned)i, values[at % 3], true, at * 7, &special);
            place(&problems[i], (unsigned)i, values[(at + 1) % 3], false, at * 11, &special);
        }
        assert_true(special > 0); /* the test is about something */
    }
}

/* With fast arithmetic they may also reach neighbours, but nothing farther away: an output of which
 * 4 inputs on each side are finite, as are the weights of its phase, stays within its bound. */
static void fast_arithmetic_keeps_special_values_near(void **state)
{
    (void)state;
    tconv_problem p = plane(3, 5, 9, 40, 4, 2, 1, 1);
    p.output_padding.count = 0;
    int near = 0, far = 0, ran = 0;
    struct tensors t;
    make_tensors(&p, REAL_NUMBERS, 4, &t);
    t.math = TCONV_MATH_FAST;
    t.data[47] = NAN;
    t.data[9 * 40 + 300] = INFINITY;
    for (int d = 0; d < device_count; d++) {
        tconv_error error;
        if (never_runs(&devices[d], "winograd_vector")) continue;
        ran++;
        const tconv_status status =
            run_guarded(&devices[d], &p, "winograd_vector", true, &t, &error);
        if (status != TCONV_OK) failed("%s", error.message);
        compare_with_oracle(&devices[d], &p, "winograd_vector", true, &t);
    }
    for (size_t i = 0; i < t.output_count; i++)
        if (isfinite(t.output[i]))
            far++;
        else
            near++;
    assert_true(ran == 0 || (near > 0 && far > near));
    free_tensors(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(special_values_reach_what_uses_them),
                                       cmocka_unit_test(fast_arithmetic_keeps_special_values_near)};
    return cmocka_run_group_tests_name("special", tests, open_all_devices, close_all_devices);
}
