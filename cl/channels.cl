/* SPDX-License-Identifier: Apache-2.0 */
/* The channels family: lanes of a vector are output channels. Output-stationary and exact in work, for
 * processors: channels-last tensors, whose channels are contiguous, and small images of many channels.
 *
 * Outputs are split by their residues: o = u*s + t along each axis, residue t, place u. A work-item takes a box of
 * places and some blocks of output channels. It copies the inputs that the box needs into local memory, SEGMENT
 * channels of a place side by side, and then for each residue, and for PX places at a time,
 *
 *     sum[c][place] += filter[tap][ci][c] * local[place + distance of tap][ci]
 *
 * in registers, one vector of weights for PX broadcast inputs.
 *
 *     work-item   CHANNELS_BOX_Z x _Y x _X places, CHANNELS_ITEM_BLOCKS blocks of MW channels, every residue
 *     vector      VW output channels of one output
 *
 *   BATCHED = 0   the PX places are neighbours in a row. What lies outside the data is zero in local memory; taps
 *                 that reach all PX places from outside are left out.
 *   BATCHED = 1   they are one place in PX images of the batch: all have the same taps, and none is added in vain.
 *
 * A zero of the padding must not meet a weight that is infinite or NaN: see careful_output. taps.clh has the packed
 * filter, channels_table.h the table.
 *
 *   macro     meaning                                 legal values
 *   VW        lanes of a vector                       1, 2, 4, 8, 16
 *   MW        output channels of a block              multiples of VW
 *   PX        places at a time                        at least 1
 *   BATCHED   see above                               0, 1
 *   STREAM    see common.clh                          0, 1
 *
 * Registers: MW / VW * PX vectors of sums. Local memory: a kernel argument. */
#if !defined(VW) || !defined(MW) || !defined(PX) || !defined(BATCHED)
#error "VW, MW, PX and BATCHED must be set"
#endif
#define CV (MW / VW)

enum {
    SEGMENT = 64, /* channels; a constant, so that places lie at constant distances */
    AHEAD =
        2048 /* elements: weights, which stream past, are asked for 8 KiB before they are needed */
};

/* A work-item's part of the outputs. */
struct box {
    int n, z, y, x;                         /* the first image and place */
    int count_n, count_z, count_y, count_x; /* how many */
};

/* Steps in local memory, in elements. */
struct steps {
    int z, y, x, segment;
};

/* Copies all input channels of one place, or zeros. */
static void copy_channels(__global const elem_t *from, const long channel_step, const bool inside,
                          __local acc_t *to, const int segment_step, const int in_channels)
{
    for (int first = 0; first < in_channels; first += SEGMENT, to += segment_step) {
        const int count = min((int)SEGMENT, in_channels - first);
        int i = 0;
        if (!inside) {
            for (; i < count; i++) to[i] = 0;
        } else if (channel_step == 1) {
            for (; i + VW <= count; i += VW) STORE(LOAD(from + first + i), to + i);
            for (; i < count; i++) to[i] = (acc_t)from[first + i];
        } else
            for (; i < count; i++) to[i] = (acc_t)from[(first + i) * channel_step];
    }
}

/* Copies the inputs that a box reads; `data` is the group's first channel. */
static void copy_inputs(__global const elem_t *data, __global const long *table,
                        __local acc_t *local_memory, const struct box *box,
                        const struct steps *steps)
{
    const int in_channels = (int)table[ROWS_IN_CHANNELS];
    const int rows_z = box->count_z + (int)table[CHANNELS_SPAN_Z];
    const int rows_y = box->count_y + (int)table[CHANNELS_SPAN_Y];
    const int rows_x = box->count_x + (int)table[CHANNELS_SPAN_X];
    for (int iz = 0; iz < rows_z; iz++)
        for (int iy = 0; iy < rows_y; iy++)
            for (int ix = 0; ix < rows_x; ix++) {
                const long z = box->z + table[CHANNELS_LOW_Z] + iz;
                const long y = box->y + table[CHANNELS_LOW_Y] + iy;
                const long x = box->x + table[CHANNELS_LOW_X] + ix;
                if (z < 0 || z >= table[ROWS_INPUT_Z] || y < 0 || y >= table[ROWS_INPUT_Y])
                    continue;
                const bool inside = x >= 0 && x < table[ROWS_INPUT_X];
                __global const elem_t *from =
                    data + box->n * table[ROWS_DATA_BATCH_STEP] + z * table[ROWS_DATA_Z_STEP] +
                    y * table[ROWS_DATA_Y_STEP] + x * table[ROWS_DATA_X_STEP];
                __local acc_t *to = local_memory + iz * steps->z + iy * steps->y + ix * steps->x;
#if BATCHED
                if (!inside) continue;
                for (int v = 0; v < PX; v++)
                    copy_channels(from + v * table[ROWS_DATA_BATCH_STEP],
                                  table[ROWS_DATA_CHANNEL_STEP], v < box->count_n, to + v * SEGMENT,
                                  steps->segment, in_channels);
#else
                copy_channels(from, table[ROWS_DATA_CHANNEL_STEP], inside, to, steps->segment,
                              in_channels);
#endif
            }
#if !BATCHED
    /* The last tile of a row may have more places than the box. */
    for (int iz = 0; iz < rows_z; iz++)
        for (int iy = 0; iy < rows_y; iy++)
            for (int ix = rows_x; ix < rows_x + (box->count_x + PX - 1) / PX * PX - box->count_x;
                 ix++)
                copy_channels(data, 1, false,
                              local_memory + iz * steps->z + iy * steps->y + ix * steps->x,
                              steps->segment, in_channels);
#endif
}

/* Adds `count` input channels, at most SEGMENT, of one tap to PX places. */
static void add_segment(vec_t sum[CV][PX], __local const acc_t *x, __global const elem_t *w,
                        const int count)
{
    for (int ci = 0; ci < count; ci++, x++, w += MW) {
        vec_t weight[CV];
#pragma unroll
        for (int c = 0; c < CV; c++) {
            weight[c] = LOAD(w + c * VW);
            PREFETCH(w + AHEAD + c * VW);
        }
#pragma unroll
        for (int v = 0; v < PX; v++)
#pragma unroll
            for (int c = 0; c < CV; c++)
                sum[c][v] = MULTIPLY_ADD((vec_t)(x[v * SEGMENT]), weight[c], sum[c][v]);
    }
}

/* Stores the block's channels of one output. */
static void store_channels(__global elem_t *y, const vec_t value[CV], const long channel_step,
                           const int channels)
{
#pragma unroll
    for (int c = 0; c < CV; c++) {
        const int left = channels - c * VW;
        if (channel_step == 1 && left >= VW)
            STORE_OUTPUT(value[c], y + c * VW);
        else {
            acc_t lane[VW];
            STORE(value[c], lane);
            if (left >= VW) {
#pragma unroll
                for (int i = 0; i < VW; i++) y[(c * VW + i) * channel_step] = lane[i];
            } else
                for (int i = 0; i < left; i++) y[(c * VW + i) * channel_step] = lane[i];
        }
    }
}

/* Computes PX places of one residue (tz, ty, tx) and block. The first place is the `x`th of row (z, y) of the box;
 * `output` is the box's first image and the block's first channel, `data` as for careful_output. */
static void compute(__global const elem_t *data, __global const elem_t *weights, const bool careful,
                    const vec_t bias[CV], __global elem_t *output, __global const long *table,
                    __local const acc_t *local_memory, const struct box *box,
                    const struct steps *steps, const int channels, const int z, const int y,
                    const int x, const int tz, const int ty, const int tx)
{
    const int oz = (box->z + z) * (int)table[ROWS_STRIDE_Z] + tz;
    const int oy = (box->y + y) * (int)table[ROWS_STRIDE_Y] + ty;
    const int ox = (box->x + x) * (int)table[ROWS_STRIDE_X] + tx;
    if (oz >= table[ROWS_OUTPUT_Z] || oy >= table[ROWS_OUTPUT_Y] || ox >= table[ROWS_OUTPUT_X])
        return;
    const int stride_x = (int)table[ROWS_STRIDE_X];
    const long channel_step = table[ROWS_OUTPUT_CHANNEL_STEP];
    __global elem_t *to = output + oz * table[ROWS_OUTPUT_Z_STEP] + oy * table[ROWS_OUTPUT_Y_STEP] +
                          ox * table[ROWS_OUTPUT_X_STEP];
#if BATCHED
    const int places = box->count_n;
    const long place_step = table[ROWS_OUTPUT_BATCH_STEP];
#else
    const int places = min(min((int)PX, box->count_x - x),
                           ((int)table[ROWS_OUTPUT_X] - ox + stride_x - 1) / stride_x);
    const long place_step = stride_x * table[ROWS_OUTPUT_X_STEP];
#endif
    const int in_channels = (int)table[ROWS_IN_CHANNELS];
    __global const long *kind = table + table[CHANNELS_CLASSES_AT] +
                                ((tz * table[ROWS_STRIDE_Y] + ty) * table[ROWS_STRIDE_X] + tx) *
                                    KIND_LONGS;
    __global const long *read = table + table[CHANNELS_TAP_LIST_AT] + kind[KIND_LIST] * READ_LONGS;
    const int low_z = box->z + z + (int)table[CHANNELS_LOW_Z];
    const int low_y = box->y + y + (int)table[CHANNELS_LOW_Y];
    const int low_x = box->x + x + (int)table[CHANNELS_LOW_X];
    const int input_z = (int)table[ROWS_INPUT_Z], input_y = (int)table[ROWS_INPUT_Y];
    const int input_x = (int)table[ROWS_INPUT_X];
    const int width = BATCHED ? 1 : places;
    __local const acc_t *own = local_memory + z * steps->z + y * steps->y + x * steps->x;

    vec_t sum[CV][PX];
#pragma unroll
    for (int c = 0; c < CV; c++)
#pragma unroll
        for (int v = 0; v < PX; v++) sum[c][v] = (vec_t)(0);
    bool padded = false;
    for (int tap = (int)kind[KIND_TAPS]; tap > 0; tap--, read += READ_LONGS) {
        const int iz = (int)read[READ_Z], iy = (int)read[READ_Y], ix = (int)read[READ_X];
        if (low_z + iz < 0 || low_z + iz >= input_z || low_y + iy < 0 || low_y + iy >= input_y ||
            low_x + ix + width <= 0 || low_x + ix >= input_x)
            continue;
        padded = padded || low_x + ix < 0 || low_x + ix + width > input_x;
        __local const acc_t *from = own + iz * steps->z + iy * steps->y + ix * steps->x;
        __global const elem_t *w = weights + read[READ_TAP] * in_channels * MW;
        for (int ci = 0; ci < in_channels; ci += SEGMENT, from += steps->segment, w += SEGMENT * MW)
            add_segment(sum, from, w, min((int)SEGMENT, in_channels - ci));
    }
    if (careful && padded) { /* never with BATCHED */
        for (int v = 0; v < places; v++)
            for (int m = 0; m < channels; m++) {
                const int lane = m % VW;
                acc_t own_bias[VW];
                STORE(bias[m / VW], own_bias);
                to[v * place_step + m * channel_step] =
                    careful_output(data, weights, table, oz, oy, ox + v * stride_x, m) +
                    own_bias[lane];
            }
        return;
    }
#pragma unroll
    for (int v = 0; v < PX; v++)
        if (v < places) {
            vec_t value[CV];
#pragma unroll
            for (int c = 0; c < CV; c++) value[c] = sum[c][v] + bias[c];
            store_channels(to + v * place_step, value, channel_step, channels);
        }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
tconv_channels(__global const elem_t *restrict data, const ulong data_offset,
               __global const elem_t *restrict filter, const ulong filter_offset,
               __global const uint *restrict flags, const ulong flags_offset,
               BIAS_PARAMETER __global elem_t *restrict output, const ulong output_offset,
               __global const long *restrict table, __local acc_t *restrict local_memory)
{
    const int blocks = (int)table[ROWS_BLOCKS], item_blocks = (int)table[CHANNELS_ITEM_BLOCKS];
    const int places_z = (int)table[CHANNELS_PLACES_Z], places_y = (int)table[CHANNELS_PLACES_Y];
    const int places_x = (int)table[CHANNELS_PLACES_X], batches = (int)table[ROWS_BATCHES];
    const int box_z = (int)table[CHANNELS_BOX_Z], box_y = (int)table[CHANNELS_BOX_Y];
    const int box_x = (int)table[CHANNELS_BOX_X], box_n = BATCHED ? PX : 1;

    /* Which blocks, places, images and group. Neighbouring work-items share their places. */
    const int block_parts = (blocks + item_blocks - 1) / item_blocks;
    const int parts_x = (places_x + box_x - 1) / box_x, parts_y = (places_y + box_y - 1) / box_y;
    const int parts_z = (places_z + box_z - 1) / box_z, parts_n = (batches + box_n - 1) / box_n;
    struct box box;
    int rest = (int)get_group_id(0);
    const int first_block = rest % block_parts * item_blocks;
    rest /= block_parts;
    box.x = rest % parts_x * box_x;
    rest /= parts_x;
    box.y = rest % parts_y * box_y;
    rest /= parts_y;
    box.z = rest % parts_z * box_z;
    rest /= parts_z;
    box.n = rest % parts_n * box_n;
    const int g = rest / parts_n;
    box.count_x = min(box_x, places_x - box.x);
    box.count_y = min(box_y, places_y - box.y);
    box.count_z = min(box_z, places_z - box.z);
    box.count_n = min(box_n, batches - box.n);
    const int last_block = min(first_block + item_blocks, blocks);

    const int in_channels = (int)table[ROWS_IN_CHANNELS];
    const int out_channels = (int)table[ROWS_OUT_CHANNELS];
    const int segments = (in_channels + SEGMENT - 1) / SEGMENT;
    struct steps steps;
#if BATCHED
    steps.segment = PX * SEGMENT;
    steps.x = segments * steps.segment;
    steps.y = (box_x + (int)table[CHANNELS_SPAN_X]) * steps.x;
#else
    steps.x = SEGMENT;
    steps.segment = ((box_x + PX - 1) / PX * PX + (int)table[CHANNELS_SPAN_X]) * SEGMENT;
    steps.y = segments * steps.segment;
#endif
    steps.z = (box_y + (int)table[CHANNELS_SPAN_Y]) * steps.y;

    __global const elem_t *own_data = data + data_offset +
                                      (long)g * in_channels * table[ROWS_DATA_CHANNEL_STEP];
    copy_inputs(own_data, table, local_memory, &box, &steps);

    const int stride_z = (int)table[ROWS_STRIDE_Z], stride_y = (int)table[ROWS_STRIDE_Y];
    const int stride_x = (int)table[ROWS_STRIDE_X];
    for (int block = first_block; block < last_block; block++) {
        const int all_blocks = g * blocks + block, channels = min(MW, out_channels - block * MW);
        const long co = (long)g * out_channels + block * MW;
        __global const elem_t *weights = weights_of(filter + filter_offset, table, all_blocks);
        __global elem_t *to = output + output_offset + box.n * table[ROWS_OUTPUT_BATCH_STEP] +
                              co * table[ROWS_OUTPUT_CHANNEL_STEP];
        vec_t bias_of_block[CV];
#pragma unroll
        for (int c = 0; c < CV; c++) {
            acc_t lane[VW];
            for (int i = 0; i < VW; i++)
                lane[i] = c * VW + i < channels ? BIAS_OF(bias_offset + co + c * VW + i) : (acc_t)0;
            bias_of_block[c] = LOAD(lane);
        }
        for (int tz = 0; tz < stride_z; tz++)
            for (int ty = 0; ty < stride_y; ty++)
                for (int tx = 0; tx < stride_x; tx++)
                    for (int z = 0; z < box.count_z; z++)
                        for (int y = 0; y < box.count_y; y++)
                            for (int x = 0; x < box.count_x; x += BATCHED ? 1 : PX)
                                compute(own_data + box.n * table[ROWS_DATA_BATCH_STEP], weights,
                                        flags[flags_offset + (ulong)all_blocks] != 0, bias_of_block,
                                        to, table, local_memory, &box, &steps, channels, z, y, x,
                                        tz, ty, tx);
    }
}
