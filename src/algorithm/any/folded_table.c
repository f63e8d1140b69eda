/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the part of a table that cl/common/folded_table.h describes. */
#include "algorithm/any/folded.h"

#include "base/checked.h"
#include "common/divisor.h"
#include "common/folded_table.h"

#include <stdlib.h>

bool tconv_divides(int64_t number)
{
    return number >= 1 && number < 1 << DIVISOR_BITS;
}

int64_t tconv_divisor(int64_t number)
{
    int bits = 0;
    while (INT64_C(1) << bits < number) bits++;
    const uint64_t factor = ((UINT64_C(1) << (31 + bits)) + (uint64_t)number - 1) /
                            (uint64_t)number;
    return (int64_t)(factor << 32 | (uint64_t)bits << DIVISOR_BITS | (uint64_t)number);
}

static void write_reach(const struct tconv_axis *axis, const struct tconv_phase *phases,
                        int64_t *list)
{
    for (int64_t o = 0; o < axis->output; o++, list += REACH_LONGS) {
        const struct tconv_reach reach = tconv_reach_of(axis, phases, o);
        list[REACH_TAPS] = reach.taps;
        list[REACH_TAP] = reach.first_tap;
        list[REACH_INPUT] = reach.first_input;
    }
}

double tconv_folded_slices_longs(const struct tconv_folded *folded)
{
    return SLICE_LONGS * (double)folded->z.output + SLICE_TAP_LONGS * tconv_folded_slices(folded);
}

bool tconv_folded_write_slices(const struct tconv_folded *folded, size_t at, int64_t *t)
{
    const int axes = tconv_folded_outer_axes(folded);
    const struct tconv_axis *axis = folded->loops.axis;
    struct tconv_phase *phases[TCONV_MAX_AXES] = {NULL};
    bool memory = true;
    for (int a = 0; a < axes; a++) {
        phases[a] = tconv_phases_of(&axis[a]);
        memory = memory && phases[a] != NULL;
    }
    int64_t *slice = t + at, *tap = slice + folded->z.output * SLICE_LONGS;
    for (int64_t z = 0; memory && z < folded->z.output; z++, slice += SLICE_LONGS) {
        struct tconv_reach reach[TCONV_MAX_AXES];
        int64_t rest = z, taps = 1;
        for (int a = axes - 1; a >= 0; a--, rest /= axis[a + 1].output) {
            reach[a] = tconv_reach_of(&axis[a], phases[a], rest % axis[a].output);
            taps *= reach[a].taps;
        }
        slice[SLICE_TAPS] = taps;
        slice[SLICE_LIST] = tap - t;
        for (int64_t j = 0; j < taps; j++, tap += SLICE_TAP_LONGS) {
            int64_t number = j, kernel = 1, input = 1;
            tap[SLICE_TAP] = tap[SLICE_INPUT] = 0;
            for (int a = axes - 1; a >= 0; a--) {
                const int64_t i = number % reach[a].taps;
                number /= reach[a].taps;
                tap[SLICE_TAP] += kernel * (reach[a].first_tap + i * tconv_tap_step(&axis[a]));
                tap[SLICE_INPUT] += input * (reach[a].first_input - i * tconv_input_step(&axis[a]));
                kernel *= axis[a].kernel;
                input *= axis[a].input;
            }
        }
    }
    for (int a = 0; a < axes; a++) free(phases[a]);
    return memory;
}

static void write_phases(const struct tconv_folded *folded, const struct tconv_phase *phases,
                         int64_t *list)
{
    int64_t start = 0;
    for (int64_t r = 0; r < folded->x.stride; r++, list += PHASE_LONGS) {
        list[PHASE_TAPS] = phases[r].taps;
        list[PHASE_START] = start;
        list[PHASE_FIRST] = tconv_mod(r - folded->x.pad, folded->x.stride);
        list[PHASE_DISTANCE] =
            phases[r].taps == 0 ? 0
                                : tconv_folded_distance(&folded->x, phases[r].first) - folded->low;
        start += phases[r].taps;
    }
}

bool tconv_folded_table_fits(const struct tconv_folded *folded, double own,
                             struct tconv_reason *reason)
{
    return tconv_table_fits(FOLDED_LONGS + own + tconv_folded_slices_longs(folded) +
                                REACH_LONGS * (double)folded->y.output +
                                PHASE_LONGS * (double)folded->x.stride,
                            reason);
}

/* Where the lists begin when an algorithm's own numbers take `own` longs. */
static size_t slices_at(size_t own)
{
    return FOLDED_LONGS + own;
}

static size_t reach_y_at(const struct tconv_folded *folded, size_t own)
{
    return slices_at(own) + (size_t)tconv_folded_slices_longs(folded);
}

static size_t phases_at(const struct tconv_folded *folded, size_t own)
{
    return reach_y_at(folded, own) + (size_t)folded->y.output * REACH_LONGS;
}

size_t tconv_folded_table_size(const struct tconv_folded *folded, size_t own)
{
    return phases_at(folded, own) + (size_t)folded->x.stride * PHASE_LONGS;
}

void tconv_folded_write_numbers(const struct tconv_folded *folded, int64_t blocks, int64_t tiles,
                                int64_t *t)
{
    const struct tconv_loops *loops = &folded->loops;
    const struct tconv_axis *z = &folded->z, *y = &folded->y, *x = &folded->x;
    t[FOLDED_BATCHES] = loops->batch;
    t[FOLDED_GROUPS] = loops->groups;
    t[FOLDED_IN_CHANNELS] = loops->in_channels;
    t[FOLDED_OUT_CHANNELS] = loops->out_channels;
    t[FOLDED_BLOCKS] = blocks;
    t[FOLDED_KERNEL_X] = x->kernel;
    t[FOLDED_STRIDE_X] = x->stride;
    t[FOLDED_DILATION_X] = x->dilation;
    t[FOLDED_PAD_X] = x->pad;
    t[FOLDED_INPUT_STEP_X] = tconv_input_step(x);
    t[FOLDED_INPUT_X] = x->input;
    t[FOLDED_OUTPUT_X] = x->output;
    t[FOLDED_FIRST_INPUT] = folded->low;
    t[FOLDED_TILES] = tiles;
    t[FOLDED_STRIDE_Z] = z->stride;
    t[FOLDED_STRIDE_Y] = y->stride;
    t[FOLDED_DILATION_Z] = z->dilation;
    t[FOLDED_DILATION_Y] = y->dilation;
    t[FOLDED_PAD_Z] = z->pad;
    t[FOLDED_PAD_Y] = y->pad;
    t[FOLDED_KERNEL_Z] = z->kernel;
    t[FOLDED_KERNEL_Y] = y->kernel;
    t[FOLDED_TAP_STEP_Y] = tconv_tap_step(y);
    t[FOLDED_INPUT_STEP_Y] = tconv_input_step(y);
    t[FOLDED_INPUT_Z] = z->input;
    t[FOLDED_INPUT_Y] = y->input;
    t[FOLDED_INPUT_ROWS] = folded->input_rows;
    t[FOLDED_OUTPUT_Z] = z->output;
    t[FOLDED_OUTPUT_Y] = y->output;
    t[FOLDED_OUTPUT_ROWS] = folded->output_rows;
    t[FOLDED_DATA_BATCH_STEP] = loops->data_batch_step;
    t[FOLDED_DATA_CHANNEL_STEP] = loops->data_channel_step;
    t[FOLDED_DATA_Z_STEP] = z->data_step;
    t[FOLDED_DATA_Y_STEP] = y->data_step;
    t[FOLDED_DATA_X_STEP] = x->data_step;
    t[FOLDED_OUTPUT_BATCH_STEP] = loops->output_batch_step;
    t[FOLDED_OUTPUT_CHANNEL_STEP] = loops->output_channel_step;
    t[FOLDED_OUTPUT_Z_STEP] = z->output_step;
    t[FOLDED_OUTPUT_Y_STEP] = y->output_step;
    t[FOLDED_OUTPUT_X_STEP] = x->output_step;
    t[FOLDED_SOURCE_GROUP_STEP] = loops->filter_group_step;
    t[FOLDED_SOURCE_IN_STEP] = loops->filter_in_step;
    t[FOLDED_SOURCE_OUT_STEP] = loops->filter_out_step;
    t[FOLDED_SOURCE_Z_STEP] = z->filter_step;
    t[FOLDED_SOURCE_Y_STEP] = y->filter_step;
    t[FOLDED_SOURCE_X_STEP] = x->filter_step;
}

bool tconv_folded_write_table(const struct tconv_folded *folded, int64_t blocks, int64_t tiles,
                              size_t own, int64_t *t)
{
    const struct tconv_axis *y = &folded->y, *x = &folded->x;
    const int64_t widest = tconv_max(x->stride, y->stride);
    struct tconv_phase *phases = malloc((size_t)widest * sizeof *phases);
    if (phases == NULL) return false;
    tconv_folded_write_numbers(folded, blocks, tiles, t);
    t[FOLDED_SLICES_AT] = (int64_t)slices_at(own);
    t[FOLDED_REACH_Y_AT] = (int64_t)reach_y_at(folded, own);
    t[FOLDED_PHASES_AT] = (int64_t)phases_at(folded, own);
    tconv_find_phases(y, phases);
    write_reach(y, phases, t + reach_y_at(folded, own));
    tconv_find_phases(x, phases);
    write_phases(folded, phases, t + phases_at(folded, own));
    free(phases);
    return tconv_folded_write_slices(folded, slices_at(own), t);
}

bool tconv_folded_write_phases(const struct tconv_folded *folded, tconv_write_entry *entry,
                               const void *self, int entry_longs, int64_t *kinds, int64_t *list)
{
    const struct tconv_axis *const axes[] = {&folded->z, &folded->y, &folded->x};
    struct tconv_phase *phases[3] = {NULL, NULL, NULL};
    bool memory = true;
    for (int a = 0; a < 3; a++) {
        phases[a] = tconv_phases_of(axes[a]);
        memory = memory && phases[a] != NULL;
    }
    int64_t start = 0;
    for (int64_t rz = 0; memory && rz < axes[0]->stride; rz++)
        for (int64_t ry = 0; ry < axes[1]->stride; ry++)
            for (int64_t rx = 0; rx < axes[2]->stride; rx++) {
                const int64_t r[] = {rz, ry, rx};
                int64_t t[3], taps = 1;
                for (int a = 0; a < 3; a++) {
                    t[a] = tconv_mod(r[a] - axes[a]->pad, axes[a]->stride); /* its first output */
                    taps *= phases[a][r[a]].taps;
                }
                int64_t *kind = kinds + ((t[0] * axes[1]->stride + t[1]) * axes[2]->stride + t[2]) *
                                            KIND_LONGS;
                kind[KIND_TAPS] = taps;
                kind[KIND_LIST] = start;
                for (int64_t j = 0; j < taps; j++, start++) {
                    int64_t rest = j, k[3];
                    for (int a = 2; a >= 0; a--) {
                        const struct tconv_phase *phase = &phases[a][r[a]];
                        k[a] = phase->first + rest % phase->taps * tconv_tap_step(axes[a]);
                        rest /= phase->taps;
                    }
                    entry(self, k, list + start * entry_longs);
                }
            }
    for (int a = 0; a < 3; a++) free(phases[a]);
    return memory;
}
