/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a table that cl/rows_table.h describes. */
#include "algorithm/rows.h"

#include "base/checked.h"
#include "rows_table.h"

#include <stdlib.h>

static void write_reach(const struct tconv_axis *axis, const struct tconv_class *classes,
                        int64_t *list)
{
    for (int64_t o = 0; o < axis->output; o++, list += REACH_LONGS) {
        const struct tconv_reach reach = tconv_reach_of(axis, classes, o);
        list[REACH_TAPS] = reach.taps;
        list[REACH_TAP] = reach.first_tap;
        list[REACH_INPUT] = reach.first_input;
    }
}

/* The slices, and behind them their taps; `t` is the table. */
static bool write_slices(const struct tconv_rows *rows, size_t at, int64_t *t)
{
    const int axes = tconv_rows_outer_axes(rows);
    const struct tconv_axis *axis = rows->layer.axis;
    struct tconv_class *classes[TCONV_MAX_AXES] = {NULL};
    bool memory = true;
    for (int a = 0; a < axes; a++) {
        classes[a] = malloc((size_t)axis[a].stride * sizeof *classes[a]);
        memory = memory && classes[a] != NULL;
        if (classes[a] != NULL) tconv_classes(&axis[a], classes[a]);
    }
    int64_t *slice = t + at, *tap = slice + rows->z.output * SLICE_LONGS;
    for (int64_t z = 0; memory && z < rows->z.output; z++, slice += SLICE_LONGS) {
        struct tconv_reach reach[TCONV_MAX_AXES];
        int64_t rest = z, taps = 1;
        for (int a = axes - 1; a >= 0; a--, rest /= axis[a + 1].output) {
            reach[a] = tconv_reach_of(&axis[a], classes[a], rest % axis[a].output);
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
    for (int a = 0; a < axes; a++) free(classes[a]);
    return memory;
}

static void write_classes(const struct tconv_rows *rows, const struct tconv_class *classes,
                          int64_t *list)
{
    int64_t start = 0;
    for (int64_t r = 0; r < rows->x.stride; r++, list += CLASS_LONGS) {
        int64_t phase, input = rows->low;
        if (classes[r].taps > 0) tconv_rows_tap(rows, classes[r].first, &phase, &input);
        list[CLASS_TAPS] = classes[r].taps;
        list[CLASS_START] = start;
        list[CLASS_PHASE] = tconv_mod(r - rows->x.pad, rows->x.stride);
        list[CLASS_DISTANCE] = input - rows->low;
        start += classes[r].taps;
    }
}

bool tconv_rows_table_fits(const struct tconv_rows *rows, double own, struct tconv_reason *reason)
{
    return tconv_table_fits(ROWS_LONGS + own + SLICE_LONGS * (double)rows->z.output +
                                SLICE_TAP_LONGS * tconv_rows_slices(rows) +
                                REACH_LONGS * (double)rows->y.output +
                                CLASS_LONGS * (double)rows->x.stride,
                            reason);
}

/* Where the lists begin when an algorithm's own numbers take `own` longs. */
static size_t slices_at(size_t own)
{
    return ROWS_LONGS + own;
}

static size_t reach_y_at(const struct tconv_rows *rows, size_t own)
{
    return slices_at(own) + (size_t)rows->z.output * SLICE_LONGS +
           (size_t)tconv_rows_slices(rows) * SLICE_TAP_LONGS;
}

static size_t classes_at(const struct tconv_rows *rows, size_t own)
{
    return reach_y_at(rows, own) + (size_t)rows->y.output * REACH_LONGS;
}

size_t tconv_rows_table_size(const struct tconv_rows *rows, size_t own)
{
    return classes_at(rows, own) + (size_t)rows->x.stride * CLASS_LONGS;
}

void tconv_rows_write_numbers(const struct tconv_rows *rows, int64_t blocks, int64_t tiles,
                              int64_t *t)
{
    const struct tconv_layer *layer = &rows->layer;
    const struct tconv_axis *z = &rows->z, *y = &rows->y, *x = &rows->x;
    t[ROWS_BATCHES] = layer->batch;
    t[ROWS_GROUPS] = layer->groups;
    t[ROWS_IN_CHANNELS] = layer->in_channels;
    t[ROWS_OUT_CHANNELS] = layer->out_channels;
    t[ROWS_BLOCKS] = blocks;
    t[ROWS_KERNEL_X] = x->kernel;
    t[ROWS_STRIDE_X] = x->stride;
    t[ROWS_DILATION_X] = x->dilation;
    t[ROWS_PAD_X] = x->pad;
    t[ROWS_INPUT_STEP_X] = tconv_input_step(x);
    t[ROWS_INPUT_X] = x->input;
    t[ROWS_OUTPUT_X] = x->output;
    t[ROWS_FIRST_INPUT] = rows->low;
    t[ROWS_TILES] = tiles;
    t[ROWS_STRIDE_Z] = z->stride;
    t[ROWS_STRIDE_Y] = y->stride;
    t[ROWS_DILATION_Z] = z->dilation;
    t[ROWS_DILATION_Y] = y->dilation;
    t[ROWS_PAD_Z] = z->pad;
    t[ROWS_PAD_Y] = y->pad;
    t[ROWS_KERNEL_Z] = z->kernel;
    t[ROWS_KERNEL_Y] = y->kernel;
    t[ROWS_TAP_STEP_Z] = tconv_tap_step(z);
    t[ROWS_TAP_STEP_Y] = tconv_tap_step(y);
    t[ROWS_INPUT_STEP_Z] = tconv_input_step(z);
    t[ROWS_INPUT_STEP_Y] = tconv_input_step(y);
    t[ROWS_INPUT_Z] = z->input;
    t[ROWS_INPUT_Y] = y->input;
    t[ROWS_INPUT_ROWS] = rows->input_rows;
    t[ROWS_OUTPUT_Z] = z->output;
    t[ROWS_OUTPUT_Y] = y->output;
    t[ROWS_OUTPUT_ROWS] = rows->output_rows;
    t[ROWS_DATA_BATCH_STEP] = layer->data_batch_step;
    t[ROWS_DATA_CHANNEL_STEP] = layer->data_channel_step;
    t[ROWS_DATA_Z_STEP] = z->data_step;
    t[ROWS_DATA_Y_STEP] = y->data_step;
    t[ROWS_DATA_X_STEP] = x->data_step;
    t[ROWS_OUTPUT_BATCH_STEP] = layer->output_batch_step;
    t[ROWS_OUTPUT_CHANNEL_STEP] = layer->output_channel_step;
    t[ROWS_OUTPUT_Z_STEP] = z->output_step;
    t[ROWS_OUTPUT_Y_STEP] = y->output_step;
    t[ROWS_OUTPUT_X_STEP] = x->output_step;
    t[ROWS_SOURCE_GROUP_STEP] = layer->filter_group_step;
    t[ROWS_SOURCE_IN_STEP] = layer->filter_in_step;
    t[ROWS_SOURCE_OUT_STEP] = layer->filter_out_step;
    t[ROWS_SOURCE_Z_STEP] = z->filter_step;
    t[ROWS_SOURCE_Y_STEP] = y->filter_step;
    t[ROWS_SOURCE_X_STEP] = x->filter_step;
}

bool tconv_rows_write_table(const struct tconv_rows *rows, int64_t blocks, int64_t tiles,
                            size_t own, int64_t *t)
{
    const struct tconv_axis *y = &rows->y, *x = &rows->x;
    const int64_t widest = tconv_max(x->stride, y->stride);
    struct tconv_class *classes = malloc((size_t)widest * sizeof *classes);
    if (classes == NULL) return false;
    tconv_rows_write_numbers(rows, blocks, tiles, t);
    t[ROWS_SLICES_AT] = (int64_t)slices_at(own);
    t[ROWS_REACH_Y_AT] = (int64_t)reach_y_at(rows, own);
    t[ROWS_CLASSES_AT] = (int64_t)classes_at(rows, own);
    tconv_classes(y, classes);
    write_reach(y, classes, t + reach_y_at(rows, own));
    tconv_classes(x, classes);
    write_classes(rows, classes, t + classes_at(rows, own));
    free(classes);
    return write_slices(rows, slices_at(own), t);
}

bool tconv_rows_write_phases(const struct tconv_rows *rows, tconv_write_entry *entry,
                             const void *self, int entry_longs, int64_t *kinds, int64_t *list)
{
    const struct tconv_axis *const axes[] = {&rows->z, &rows->y, &rows->x};
    struct tconv_class *classes[3] = {NULL, NULL, NULL};
    bool memory = true;
    for (int a = 0; a < 3; a++) {
        classes[a] = malloc((size_t)axes[a]->stride * sizeof *classes[a]);
        memory = memory && classes[a] != NULL;
        if (classes[a] != NULL) tconv_classes(axes[a], classes[a]);
    }
    int64_t start = 0;
    for (int64_t cz = 0; memory && cz < axes[0]->stride; cz++)
        for (int64_t cy = 0; cy < axes[1]->stride; cy++)
            for (int64_t cx = 0; cx < axes[2]->stride; cx++) {
                const int64_t c[] = {cz, cy, cx};
                int64_t t[3], taps = 1;
                for (int a = 0; a < 3; a++) {
                    t[a] = tconv_mod(c[a] - axes[a]->pad,
                                     axes[a]->stride); /* the phase that this class reaches */
                    taps *= classes[a][c[a]].taps;
                }
                int64_t *kind = kinds + ((t[0] * axes[1]->stride + t[1]) * axes[2]->stride + t[2]) *
                                            KIND_LONGS;
                kind[KIND_TAPS] = taps;
                kind[KIND_LIST] = start;
                for (int64_t j = 0; j < taps; j++, start++) {
                    int64_t rest = j, k[3];
                    for (int a = 2; a >= 0; a--) {
                        const struct tconv_class *class = &classes[a][c[a]];
                        k[a] = class->first + rest % class->taps * tconv_tap_step(axes[a]);
                        rest /= class->taps;
                    }
                    entry(self, k, list + start * entry_longs);
                }
            }
    for (int a = 0; a < 3; a++) free(classes[a]);
    return memory;
}
