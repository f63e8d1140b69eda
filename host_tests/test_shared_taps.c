/* SPDX-License-Identifier: Apache-2.0 */
/* Taps that share inputs in local memory (cl/gpu/matrix_shared.clh): of random layers, each tap of
 * each position that has an output reads the input that it needs, or zeros. */
#include "common/divisor.h"
#include "described.h"
#include "geometry/loops.h"
#include "gpu/tiled_table.h"
#include "selecting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int64_t divisor(const int64_t *t, int at)
{
    return t[at] & ((1 << DIVISOR_BITS) - 1);
}

/* Positions along each axis, z, y, x. */
struct point {
    int64_t at[3];
};

/* The position with a number in its batch item. */
static struct point point_at(const int64_t *t, int64_t number)
{
    struct point p;
    for (int a = 2; a >= 0; a--) {
        p.at[a] = number % divisor(t, TILED_POSITIONS_Z + a);
        number /= divisor(t, TILED_POSITIONS_Z + a);
    }
    return p;
}

static bool is_input(const int64_t *t, const struct point *p)
{
    const int64_t inputs[] = {t[FOLDED_INPUT_Z], t[FOLDED_INPUT_Y], t[FOLDED_INPUT_X]};
    bool is = true;
    for (int a = 0; a < 3; a++) is = is && p->at[a] >= 0 && p->at[a] < inputs[a];
    return is;
}

/* Whether any output of a position exists, of a phase of work-groups or of phases that are rows. */
static bool has_outputs(const int64_t *t, const struct tconv_launch *run, int64_t phase,
                        const struct point *p)
{
    const int64_t outputs[] = {t[FOLDED_OUTPUT_Z], t[FOLDED_OUTPUT_Y], t[FOLDED_OUTPUT_X]},
                  strides[] = {t[FOLDED_STRIDE_Z], t[FOLDED_STRIDE_Y], t[FOLDED_STRIDE_X]};
    static const char *const rows[] = {"PZ", "PY", "PX"};
    bool has = true;
    for (int a = 2; a >= 0; a--) {
        const int64_t phases = divisor(t, TILED_PHASES_Z + a),
                      first = t[TILED_FIRST_Z + a] + p->at[a] * strides[a] + phase % phases;
        has = has && first < outputs[a] && first + option_of(run, rows[a]) > 0;
        phase /= phases;
    }
    return has;
}

/* The tap's shift, as the kernel has it. */
static int64_t shift_of(const int64_t *t, const int64_t *tap)
{
    return (tap[TAP_Z] * divisor(t, TILED_POSITIONS_Y) + tap[TAP_Y]) *
               divisor(t, TILED_POSITIONS_X) +
           tap[TAP_X];
}

static void check(const int64_t *t, const struct tconv_launch *run)
{
    const int64_t item = divisor(t, TILED_POSITIONS_Z) * divisor(t, TILED_POSITIONS_Y) *
                         divisor(t, TILED_POSITIONS_X),
                  all = t[TILED_ALL_POSITIONS];
    assert_int_equal(all, 2 * item);
    for (int64_t kind = 0; kind < t[TILED_KINDS]; kind++) {
        const int64_t *k = t + t[TILED_PHASES_AT] + kind * TILED_KIND_LONGS,
                      *taps = t + t[TILED_LIST_AT] + k[KIND_LIST] * TAP_LONGS;
        const int64_t most = shift_of(t, taps),
                      least = shift_of(t, taps + (k[KIND_TAPS] - 1) * TAP_LONGS);
        for (int64_t i = 0; i < k[KIND_TAPS]; i++) {
            const int64_t *tap = taps + i * TAP_LONGS, shift = shift_of(t, tap);
            assert_in_range(shift - least, 0, most - least);
            assert_true(most - least <= option_of(run, "HALO"));
            for (int64_t number = 0; number < all; number++) {
                const struct point p = point_at(t, number % item);
                if (!has_outputs(t, run, k[TILED_KIND_PHASE], &p)) continue;
                struct point input = p;
                for (int a = 0; a < 3; a++) input.at[a] += tap[TAP_Z + a];
                const int64_t other = number + shift;
                const struct point read = point_at(t, other < 0 ? 0 : other % item);
                if (is_input(t, &input)) {
                    assert_int_equal(other / item, number / item);
                    assert_memory_equal(&read, &input, sizeof read);
                } else {
                    assert_true(other < 0 || other >= all || !is_input(t, &read));
                }
            }
        }
    }
}

static int64_t draw(unsigned *seed, int64_t least, int64_t most)
{
    *seed = *seed * 1103515245u + 12345u;
    return least + (int64_t)(*seed >> 8) % (most - least + 1);
}

static void each_tap_reads_its_input(void **state)
{
    (void)state;
    enum { LAYERS = 3000 };
    unsigned seed = 1;
    int checked = 0, merged = 0;
    for (int i = 0; i < LAYERS; i++) {
        tconv_problem p = TCONV_PROBLEM_INIT;
        tconv_geometry geometry = TCONV_GEOMETRY_INIT;
        tconv_error error;
        const int axes = i % 3 + 1;
        p.operation = TCONV_ONEAPI_CONV_BACKPROP;
        p.data_format = TCONV_NXC;
        p.filter_format = TCONV_OIX;
        p.data_type = p.filter_type = TCONV_F16;
        p.data.rank = p.filter.rank = axes + 2;
        p.strides.count = p.dilations.count = p.pads_begin.count = p.pads_end.count = axes;
        p.data.dim[0] = 2;
        p.data.dim[axes + 1] = p.filter.dim[0] = 64;
        p.filter.dim[1] = draw(&seed, 0, 1) * 100 + 28;
        for (int a = 0; a < axes; a++) {
            p.data.dim[a + 1] = draw(&seed, 1, 7);
            p.filter.dim[a + 2] = draw(&seed, 1, 5);
            p.strides.value[a] = draw(&seed, 1, 3);
            p.dilations.value[a] = draw(&seed, 1, 3);
            p.pads_begin.value[a] = draw(&seed, 0, 9);
            p.pads_end.value[a] = draw(&seed, 0, 9);
        }
        if (tconv_resolve(&p, &geometry, &error) != TCONV_OK) continue;
        struct tconv_loops loops;
        tconv_loops_init(&loops, &p, &geometry);
        const tconv_epilogue epilogue = TCONV_EPILOGUE_INIT;
        const struct tconv_request request =
            request_for(&loops, described_device("NVIDIA wgmma"), &epilogue, TCONV_MATH_EXACT);
        struct tconv_pattern pattern;
        struct tconv_reason reason;
        struct tconv_candidate best;
        struct tconv_kernel_plan kernel_plan = {0};
        assert_true(tconv_pattern_read(
            i % 2 == 0 ? "matrix_group shared=32" : "matrix_group shared=192", &pattern, &reason));
        if (!tconv_choose(&request, &pattern, 0, &best, &reason)) continue;
        assert_int_equal(tconv_kernel_plan_write(&request, &best, &kernel_plan, &error), TCONV_OK);
        check(kernel_plan.table, &kernel_plan.run[0]);
        merged += option_of(&kernel_plan.run[0], "PX") > 1;
        checked++;
        tconv_kernel_plan_clear(&kernel_plan);
    }
    print_message("%d layers, %d with phases along x as rows\n", checked, merged);
    assert_true(checked > 500 && merged > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_tap_reads_its_input)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
