/* SPDX-License-Identifier: Apache-2.0 */
/* Layers as rows along x. */
#include "algorithm/rows.h"

#include "base/checked.h"
#include "geometry/count.h"
#include "rows_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    INDEX_LIMIT = 1 << 30,
    STRIDE_LIMIT = 1 << 16,
    KERNEL_LIMIT = 1 << 20,
};

/* Elements of a tensor. Whatever algorithms count (tiles, blocks, weights with what fills up the
 * last block) then stays below 2^63. */
#define ELEMENT_LIMIT (INT64_C(1) << 44)

static bool fits(const struct tconv_axis *axis)
{
    return axis->input < INDEX_LIMIT && axis->output < INDEX_LIMIT && axis->kernel < KERNEL_LIMIT &&
           axis->stride < STRIDE_LIMIT && axis->dilation < INDEX_LIMIT && axis->pad < INDEX_LIMIT &&
           axis->pad > -INDEX_LIMIT;
}

static bool spans(const struct tconv_axis *axis)
{
    return axis->kernel * axis->dilation < INDEX_LIMIT;
}

static bool multiply(int64_t *elements, int64_t factor)
{
    return tconv_mul(*elements, factor, elements) && *elements <= ELEMENT_LIMIT;
}

/* Whether all tensors are within the limit; batch and channels are known to be. */
static bool countable(const struct tconv_layer *layer)
{
    int64_t data = layer->batch * layer->groups * layer->in_channels;
    int64_t output = layer->batch * layer->groups * layer->out_channels;
    int64_t filter = layer->groups * layer->in_channels;
    bool fit = multiply(&filter, layer->out_channels);
    for (int a = 0; a < layer->axes && fit; a++) {
        const struct tconv_axis *axis = &layer->axis[a];
        fit = multiply(&data, axis->input) && multiply(&output, axis->output) &&
              multiply(&filter, axis->kernel);
    }
    return fit;
}

/* The axes that z stands for: these many of the layer's, from the first on. */
static int outer_axes(const struct tconv_rows *rows)
{
    return rows->layer.axes > 2 ? rows->layer.axes - 2 : 0;
}

/* One axis in place of all but the last two: false where their points do not lie at even distances,
 * or are too many. */
static bool stack(struct tconv_rows *rows)
{
    const struct tconv_axis *axis = rows->layer.axis;
    const int last = outer_axes(rows) - 1;
    struct tconv_axis *z = &rows->z;
    *z = (struct tconv_axis){
        .input = 1,
        .kernel = 1,
        .stride = 1,
        .dilation = 1,
        .output = 1,
        .data_step = axis[last].data_step,
        .filter_step = axis[last].filter_step,
        .output_step = axis[last].output_step,
    };
    for (int a = last; a >= 0; a--) {
        if (!fits(z) || !fits(&axis[a]) || !spans(&axis[a]) ||
            axis[a].data_step != z->input * z->data_step ||
            axis[a].filter_step != z->kernel * z->filter_step ||
            axis[a].output_step != z->output * z->output_step)
            return false;
        z->input *= axis[a].input;
        z->kernel *= axis[a].kernel;
        z->output *= axis[a].output;
    }
    return true;
}

static bool fold(const struct tconv_request *request, struct tconv_rows *rows, int most_axes,
                 struct tconv_reason *reason)
{
    const struct tconv_layer *layer = request->layer;
    const struct tconv_axis point = {
        .input = 1, .kernel = 1, .stride = 1, .dilation = 1, .output = 1};
    struct tconv_layer *folded = &rows->layer;
    *folded = *layer;
    rows->machine = &request->machine;
    rows->acc_bytes = tconv_acc_bytes(layer);
    tconv_layer_fold(folded);
    if (folded->axes > most_axes)
        return tconv_refuse(reason, "it has %d spatial axes that cannot be folded into %d",
                            folded->axes, most_axes);
    rows->x = folded->axis[folded->axes - 1];
    rows->y = folded->axes > 1 ? folded->axis[folded->axes - 2] : point;
    rows->z = folded->axes > 2 ? folded->axis[folded->axes - 3] : point;
    if (folded->axes > 3 && !stack(rows))
        return tconv_refuse(reason, "its outer axes cannot be counted as one");
    if (!fits(&rows->x) || !fits(&rows->y) || !fits(&rows->z))
        return tconv_refuse(reason, "an extent, stride or pad exceeds its 32-bit indices");
    int64_t images;
    if (!tconv_mul(folded->batch, layer->groups, &images) ||
        !tconv_mul(images, layer->out_channels, &images) || images >= INDEX_LIMIT ||
        layer->in_channels * layer->groups >= INDEX_LIMIT || folded->batch >= INDEX_LIMIT / 2 ||
        folded->batch * layer->groups * layer->in_channels >= INDEX_LIMIT)
        return tconv_refuse(reason, "channels or batch exceed its 32-bit indices");
    if (!countable(folded)) return tconv_refuse(reason, "a tensor has more than 2^44 elements");
    if (!spans(&rows->x) || !spans(&rows->y) || !spans(&rows->z))
        return tconv_refuse(reason, "the dilated kernel exceeds its 32-bit indices");
    rows->output_rows = rows->z.output * rows->y.output;
    rows->input_rows = rows->z.input * rows->y.input;
    rows->places = tconv_ceil_div(rows->x.output, rows->x.stride);
    int64_t phase;
    tconv_rows_tap(rows, 0, &phase, &rows->high); /* the later the tap, the earlier its input */
    tconv_rows_tap(rows, rows->x.kernel - 1, &phase, &rows->low);
    return true;
}

bool tconv_rows_fold(const struct tconv_request *request, struct tconv_rows *rows,
                     struct tconv_reason *reason)
{
    return fold(request, rows, 3, reason);
}

bool tconv_rows_of(const struct tconv_request *request, struct tconv_rows *rows,
                   struct tconv_reason *reason)
{
    if (!tconv_rows_any(request, rows, reason)) return false;
    if (rows->x.data_step != 1 || rows->x.output_step != 1)
        return tconv_refuse(
            reason,
            "its vectors run along the last axis, which is not contiguous in this data format");
    return true;
}

bool tconv_rows_any(const struct tconv_request *request, struct tconv_rows *rows,
                    struct tconv_reason *reason)
{
    if (!fold(request, rows, TCONV_MAX_AXES, reason)) return false;
    if (rows->output_rows >= INDEX_LIMIT || rows->input_rows >= INDEX_LIMIT)
        return tconv_refuse(reason, "rows exceed its 32-bit indices");
    return true;
}

int64_t tconv_rows_distance(const struct tconv_axis *axis, int64_t k)
{
    return -tconv_floor_div(k * axis->dilation - axis->pad, axis->stride);
}

void tconv_rows_tap(const struct tconv_rows *rows, int64_t k, int64_t *phase, int64_t *input)
{
    const struct tconv_axis *x = &rows->x;
    const int64_t place = k * x->dilation - x->pad; /* of the output that input 0 reaches */
    *phase = tconv_mod(place, x->stride);
    *input = tconv_rows_distance(x, k);
}

double tconv_rows_pairs(const struct tconv_axis *axis)
{
    uint64_t pairs = 0;
    const bool fit = tconv_count_pairs(axis->input, axis->kernel, axis->stride, axis->dilation,
                                       axis->pad, axis->output, &pairs);
    return fit ? (double)pairs : 0;
}

double tconv_rows_slices(const struct tconv_rows *rows)
{
    double pairs = 1;
    for (int a = 0; a < outer_axes(rows); a++) pairs *= tconv_rows_pairs(&rows->layer.axis[a]);
    return pairs;
}

int64_t tconv_rows_taps_z(const struct tconv_rows *rows)
{
    int64_t taps = 1;
    for (int a = 0; a < outer_axes(rows); a++) taps *= tconv_most_taps(&rows->layer.axis[a]);
    return taps;
}

double tconv_rows_shared(const struct tconv_rows *rows, double cost, double largest)
{
    /* A thread is awake after some 10 us, and at speed later. Never so late that others had no part
     * in the work. */
    const struct tconv_machine *m = rows->machine;
    const double most_late = m->wake * m->adds * m->lanes, most_share = cost * m->wake_share;
    const double item = cost * largest;
    if (item <= 0 || 1 / largest > INT32_MAX) return cost; /* many, however they are shared */
    const int64_t items = (int64_t)(1 / largest + 0.999999), units = (int64_t)m->units;
    const double late = (most_late < most_share ? most_late : most_share) / item; /* in items */
    const int64_t begun = (int64_t)late;
    /* The unit that begins first also ends last, or another does. */
    const double first =
        (double)tconv_min(tconv_ceil_div(items + (units - 1) * (begun + 1), units), items);
    const double other = (double)tconv_ceil_div(items - begun, units) + late;
    return (first < other ? first : other) * item * (double)units;
}

double tconv_rows_gpu_cost(const struct tconv_request *request, double cost, double loads,
                           double iterations)
{
    const struct tconv_machine *m = &request->machine;
    if (request->device->kind != TCONV_DEVICE_GPU) return cost;
    return cost * loads + (m->gpu_begin + m->gpu_wait * iterations) * m->unit_lanes * m->units;
}

bool tconv_rows_too_long(double iterations, const tconv_device_info *device)
{
    enum { MOST_ITERATIONS = 30000 };
    return device->vector_width <= 1 && iterations > MOST_ITERATIONS;
}

bool tconv_rows_group_too_long(double iterations, const tconv_device_info *device)
{
    return device->kind == TCONV_DEVICE_CPU && tconv_rows_too_long(iterations, device);
}

double tconv_rows_exact_loops(const struct tconv_rows *rows)
{
    if (!tconv_type_is_floating(rows->layer.data_type)) return 0;
    const double taps = (double)(rows->z.kernel * rows->y.kernel * rows->x.kernel);
    const double phases = (double)(rows->z.stride * rows->y.stride * rows->x.stride);
    return taps * (1 + (double)rows->layer.in_channels / phases);
}

int tconv_rows_widest(const struct tconv_rows *rows)
{
    const double lanes = rows->machine->lanes;
    return lanes <= 1 ? 4 : lanes < 16 ? (int)lanes : 16;
}

int tconv_rows_sums(const struct tconv_rows *rows)
{
    return (int)rows->machine->sums;
}

void tconv_rows_lanes(const struct tconv_rows *rows, int64_t channels, const int *order, int count,
                      int *vw, int *mw)
{
    *vw = tconv_rows_widest(rows);
    while (*vw > 4 && *vw / 2 >= channels) *vw /= 2;
    int64_t least = INT64_MAX;
    for (int i = 0; i < count; i++) {
        const int64_t block = (int64_t)order[i] * *vw,
                      lanes = tconv_ceil_div(channels, block) * block;
        if (lanes < least) {
            least = lanes;
            *mw = (int)block;
        }
    }
}

double tconv_rows_issue(const struct tconv_rows *rows, double instructions)
{
    const struct tconv_machine *m = rows->machine;
    return m->registers < 32 ? instructions / m->issue : 0;
}

int tconv_rows_round(int sums, int64_t channels, int64_t step)
{
    enum { MOST_CHANNELS = 8, MOST_ADDITIONS = 48 };
    int round = MOST_CHANNELS;
    while (round > 1 && (round * sums > MOST_ADDITIONS || channels % round != 0 ||
                         (step < channels && step % round != 0)))
        round /= 2;
    return round;
}

int64_t tconv_rows_chunk(int64_t channels, int64_t chunks)
{
    enum { STEP = 8 };
    return tconv_ceil_div(tconv_ceil_div(channels, chunks), STEP) * STEP;
}

double tconv_rows_inefficiency(const struct tconv_rows *rows, int nx, int mw)
{
    const struct tconv_machine *m = rows->machine;
    const double adds = mw * nx / m->adds;
    if (m->registers < 32) {
        const bool spills = mw * nx + nx + 1 > m->registers; /* accumulators, inputs, a weight */
        const int round =
            tconv_rows_round(mw * nx, rows->layer.in_channels, rows->layer.in_channels);
        const double issue =
            tconv_rows_issue(rows, mw * nx + mw + m->crossing * nx + m->round / round);
        const double least = adds > m->latency ? adds : m->latency;
        return ((issue > least ? issue : least) + (spills ? m->spill : 0)) / adds;
    }
    const double loads = (mw + nx + 1) / m->loads, issue = (mw * nx + mw + nx + 4) / m->issue;
    const double most = loads > m->latency ? loads : m->latency;
    const double cycles = adds > most ? adds : most;
    return (cycles > issue ? cycles : issue) / adds * (nx == 1 ? m->narrow : 1) + m->overhead;
}

static double bytes_of(const struct tconv_layer *layer, int64_t batch_step, tconv_type type)
{
    return (double)layer->batch * (double)batch_step * (double)tconv_type_size(type);
}

double tconv_rows_data_bytes(const struct tconv_rows *rows)
{
    return bytes_of(&rows->layer, rows->layer.data_batch_step, rows->layer.data_type);
}

double tconv_rows_output_bytes(const struct tconv_rows *rows)
{
    return bytes_of(&rows->layer, rows->layer.output_batch_step, rows->layer.output_type);
}

bool tconv_rows_streams(const struct tconv_rows *rows)
{
    return tconv_rows_output_bytes(rows) > rows->machine->streamed_output * rows->machine->l3;
}

bool tconv_rows_non_temporal(const struct tconv_rows *rows, int64_t run, int64_t long_run)
{
    const int64_t line = (int64_t)rows->machine->line,
                  bytes = run * (int64_t)tconv_type_size(rows->layer.output_type);
    return tconv_rows_streams(rows) && (bytes % line == 0 || (long_run > 0 && bytes >= long_run));
}

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
    const int axes = outer_axes(rows);
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

void tconv_rows_layout(struct tconv_recipe *recipe, const char *algorithm,
                       const struct tconv_rows *rows)
{
    const int64_t kernel[] = {rows->z.kernel, rows->y.kernel, rows->x.kernel};
    tconv_recipe_layout(recipe, algorithm, &rows->layer, kernel, 3);
}

/* What a filter packed in the order of its taps has of each output channel: input channels, or
 * words of them. */
static int64_t packed_channels(const struct tconv_rows *rows, const struct tconv_request *request,
                               enum tconv_packing packing)
{
    const struct tconv_layer *layer = &rows->layer;
    if (packing == TCONV_PACK_CHANNEL_WORDS) {
        const int word = tconv_word_channels(request); /* with 4, sums of weights follow */
        return tconv_ceil_div(layer->in_channels, word) + (word == 4);
    }
    if (packing != TCONV_PACK_WORDS) return layer->in_channels;
    const int64_t words =
        tconv_ceil_div(layer->in_channels * (int64_t)tconv_type_size(layer->filter_type),
                       (int64_t)tconv_packed_bytes(request, packing));
    return tconv_ceil_div(words, 4) * 4;
}

bool tconv_rows_filter_fits(const struct tconv_rows *rows, int mw, int64_t blocks,
                            const struct tconv_request *request, enum tconv_packing packing,
                            struct tconv_reason *reason)
{
    const size_t bytes = tconv_packed_bytes(request, packing);
    const int64_t all_blocks = rows->layer.groups * blocks;
    const double taps = (double)rows->z.kernel * (double)rows->y.kernel * (double)rows->x.kernel;
    const double weights = (double)all_blocks * mw * taps *
                           (double)packed_channels(rows, request, packing);
    /* Each lane's words are also added up. */
    const double loops = packing == TCONV_PACK_CHANNEL_WORDS
                             ? 2.0 * mw * (double)packed_channels(rows, request, packing)
                             : (double)rows->layer.in_channels;
    if (packing != TCONV_PACK_WORDS && tconv_rows_too_long(taps * loops, request->device))
        return tconv_refuse(reason, "a work-item would pack too many weights");
    return tconv_filter_addressable(weights + (double)TAPS_HEADER(all_blocks, bytes), bytes,
                                    reason);
}

/* Packs with the kernel of `run`, which does so where it gets no packed filter: a work-item for
 * each block. */
static void pack_with(struct tconv_launch *pack, const struct tconv_launch *run, int64_t items,
                      const tconv_device_info *device)
{
    enum tconv_arg args[TCONV_MAX_ARGS];
    for (int i = 0; i < run->arg_count; i++)
        args[i] = run->args[i] == TCONV_ARG_DATA     ? TCONV_ARG_WEIGHTS
                  : run->args[i] == TCONV_ARG_FILTER ? TCONV_ARG_NOTHING
                  : run->args[i] == TCONV_ARG_OUTPUT ? TCONV_ARG_FILTER
                                                     : run->args[i];
    memcpy(pack->options, run->options, sizeof pack->options);
    tconv_launch_items(pack, 0, items, 1, device);
    tconv_launch_args(pack, args, run->arg_count);
    pack->local_bytes = run->local_bytes;
}

void tconv_rows_pack(struct tconv_recipe *recipe, const struct tconv_rows *rows, const char *kind,
                     int mw, int64_t blocks, const struct tconv_launch *run,
                     const struct tconv_request *request, enum tconv_packing packing)
{
    const int64_t taps = rows->z.kernel * rows->y.kernel * rows->x.kernel;
    const int64_t all_blocks = rows->layer.groups * blocks;
    const tconv_device_info *device = request->device;
    const size_t bytes = tconv_packed_bytes(request, packing);
    const int64_t in = packed_channels(rows, request, packing);
    char name[80];
    snprintf(name, sizeof name, "%s%d", kind, mw);
    tconv_rows_layout(recipe, name, rows);
    recipe->filter_bytes =
        (uint64_t)(TAPS_HEADER(all_blocks, bytes) + all_blocks * mw * taps * in) * bytes;

    if (packing != TCONV_PACK_WORDS) {
        pack_with(tconv_recipe_pack(recipe, run->kernel), run, all_blocks, device);
        return;
    }
    struct tconv_launch *clear = tconv_recipe_pack(recipe, "tconv_taps_clear");
    snprintf(clear->options, sizeof clear->options, "%s", run->options);
    tconv_launch_items(clear, 0, all_blocks, 64, device);
    tconv_launch_args(clear, (enum tconv_arg[]){TCONV_ARG_FLAGS, TCONV_ARG_TABLE}, 2);
    struct tconv_launch *pack = tconv_recipe_pack(recipe, "tconv_taps_pack");
    snprintf(pack->options, sizeof pack->options, "%s", run->options);
    tconv_launch_items(pack, 0, in, 32, device);
    tconv_launch_items(pack, 1, taps, 1, device);
    tconv_launch_items(pack, 2, all_blocks, 1, device);
    tconv_launch_args(
        pack,
        (enum tconv_arg[]){TCONV_ARG_WEIGHTS, TCONV_ARG_FILTER, TCONV_ARG_FLAGS, TCONV_ARG_TABLE},
        4);
}

void tconv_rows_taps_options(const struct tconv_rows *rows, struct tconv_launch *run)
{
    const struct tconv_axis *x = &rows->x;
    tconv_launch_option(run, "KX", x->kernel);
    tconv_launch_option(run, "DX", x->dilation);
    tconv_launch_option(run, "RX", tconv_mod(x->pad, x->stride));
    tconv_launch_option(run, "LOW", rows->low - tconv_floor_div(x->pad, x->stride));
}

void tconv_rows_run(struct tconv_launch *run, int64_t items, uint64_t local_bytes,
                    const tconv_device_info *device)
{
    tconv_launch_items(run, 0, items, 1, device);
    tconv_launch_args(run,
                      (enum tconv_arg[]){TCONV_ARG_DATA, TCONV_ARG_FILTER, TCONV_ARG_FLAGS,
                                         TCONV_ARGS_EPILOGUE, TCONV_ARG_TABLE, TCONV_ARG_LOCAL},
                      10);
    run->local_bytes = (size_t)local_bytes;
}

int64_t tconv_rows_tap_index(const struct tconv_rows *rows, const int64_t k[3])
{
    return (k[0] * rows->y.kernel + k[1]) * rows->x.kernel + k[2];
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
