/* SPDX-License-Identifier: Apache-2.0 */
/* Phases and the folding of axes, against the definition o + pad = i*s + k*d. */
#include "geometry/loops.h"
#include "geometry/taps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void check_axis(const struct tconv_axis *axis)
{
    struct tconv_phase phases[16];
    tconv_find_phases(axis, phases);
    int64_t taps = 0;
    for (int64_t r = 0; r < axis->stride; r++) taps += phases[r].taps;
    assert_int_equal(taps, axis->kernel); /* every tap in one phase: no work is lost or doubled */
    for (int64_t o = 0; o < axis->output; o++) {
        const struct tconv_reach reach = tconv_reach_of(axis, phases, o);
        int64_t found = 0;
        for (int64_t k = 0; k < axis->kernel; k++)
            for (int64_t i = 0; i < axis->input; i++) {
                if (o + axis->pad != i * axis->stride + k * axis->dilation) continue;
                assert_int_equal(k, reach.first_tap + found * tconv_tap_step(axis));
                assert_int_equal(i, reach.first_input - found * tconv_input_step(axis));
                found++;
            }
        assert_int_equal(found, reach.taps);
    }
}

static void reach_is_what_the_definition_says(void **state)
{
    (void)state;
    for (int64_t s = 1; s <= 6; s++)
        for (int64_t d = 1; d <= 6; d++)
            for (int64_t k = 1; k <= 8; k++)
                for (int64_t x = 1; x <= 4; x++)
                    for (int64_t pad = -9; pad <= 9; pad++) {
                        const struct tconv_axis axis = {.input = x,
                                                        .kernel = k,
                                                        .stride = s,
                                                        .dilation = d,
                                                        .pad = pad,
                                                        .output = s * x + d * k + 5};
                        check_axis(&axis);
                    }
}

static struct tconv_loops loops_of(int rank, const int64_t *data, const int64_t *filter,
                                   const int64_t *strides)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    p.data.rank = p.filter.rank = rank;
    memcpy(p.data.dim, data, (size_t)rank * sizeof *data);
    memcpy(p.filter.dim, filter, (size_t)rank * sizeof *filter);
    p.strides.count = rank - 2;
    memcpy(p.strides.value, strides, (size_t)(rank - 2) * sizeof *strides);
    tconv_geometry g = TCONV_GEOMETRY_INIT;
    assert_int_equal(tconv_resolve(&p, &g, NULL), TCONV_OK);
    struct tconv_loops loops;
    tconv_loops_init(&loops, &p, &g);
    return loops;
}

static void axes_are_folded(void **state)
{
    (void)state;
    /* An axis with nothing to do goes. */
    struct tconv_loops l =
        loops_of(5, (int64_t[]){1, 3, 1, 7, 1}, (int64_t[]){3, 2, 1, 4, 1}, (int64_t[]){1, 2, 5});
    tconv_loops_fold(&l);
    assert_int_equal(l.axes, 1);
    assert_int_equal(l.axis[0].input, 7);
    assert_int_equal(l.axis[0].data_step, 1);
    /* Neighbours that are only copied along become one. */
    l = loops_of(6, (int64_t[]){1, 3, 5, 6, 7, 8}, (int64_t[]){3, 2, 2, 1, 1, 1},
                 (int64_t[]){2, 1, 1, 1});
    tconv_loops_fold(&l);
    assert_int_equal(l.axes, 2);
    assert_int_equal(l.axis[1].input, 6 * 7 * 8);
    assert_int_equal(l.axis[1].output, 6 * 7 * 8);
    assert_int_equal(l.axis[1].data_step, 1);
    assert_int_equal(l.axis[0].data_step, 6 * 7 * 8);
    /* A single point stays an axis. */
    l = loops_of(4, (int64_t[]){2, 3, 1, 1}, (int64_t[]){3, 2, 1, 1}, (int64_t[]){1, 1});
    tconv_loops_fold(&l);
    assert_int_equal(l.axes, 1);
    /* A copied axis becomes batch items where there are more axes than algorithms have. */
    l = loops_of(6, (int64_t[]){1, 3, 5, 2, 4, 4}, (int64_t[]){3, 2, 3, 1, 3, 3},
                 (int64_t[]){1, 1, 1, 1});
    tconv_loops_fold(&l);
    assert_int_equal(l.axes, 3);
    assert_int_equal(l.batch, 2);
    assert_int_equal(l.data_batch_step, 4 * 4);
    assert_int_equal(l.output_batch_step, 6 * 6);
    assert_int_equal(l.axis[0].input, 5);
    assert_int_equal(l.axis[0].data_step, 2 * 4 * 4);
    l = loops_of(6, (int64_t[]){5, 1, 7, 5, 4, 4}, (int64_t[]){1, 1, 1, 3, 3, 3},
                 (int64_t[]){1, 1, 1, 1});
    tconv_loops_fold(&l);
    assert_int_equal(l.axes, 3);
    assert_int_equal(l.batch, 5 * 7);
    assert_int_equal(l.data_batch_step, 5 * 4 * 4);
    /* Not with several channels, which are between two batch items. */
    l = loops_of(6, (int64_t[]){5, 2, 7, 5, 4, 4}, (int64_t[]){2, 1, 1, 3, 3, 3},
                 (int64_t[]){1, 1, 1, 1});
    tconv_loops_fold(&l);
    assert_int_equal(l.axes, 4);
    assert_int_equal(l.batch, 5);
    /* What works is left alone. */
    l = loops_of(4, (int64_t[]){2, 3, 4, 5}, (int64_t[]){3, 2, 1, 3}, (int64_t[]){1, 1});
    tconv_loops_fold(&l);
    assert_int_equal(l.axes, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reach_is_what_the_definition_says),
        cmocka_unit_test(axes_are_folded),
    };
    return cmocka_run_group_tests_name("taps", tests, NULL, NULL);
}
