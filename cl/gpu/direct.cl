/* SPDX-License-Identifier: Apache-2.0 */
/* The direct algorithm for GPUs: for layers that move more than they multiply, such as depthwise
 * layers and layers with few output channels. It is output-stationary and uses no local memory.
 *
 *   sum[n, g, co, o] = sum over ci, k of filter[g, ci, co, k] * data[n, g, ci, i]   where o + pad =
 *                                                                                   i*s + k*d
 *
 * Neighbouring work-items have neighbouring outputs: stores fill cache lines, and loads read the
 * same inputs or neighbours. In a round a work-item has OUTPUTS outputs of a row, or with ALONG_Y
 * of a column, and CHANNELS channels of each. Further rounds have as many outputs behind them. A
 * work-item's outputs are a multiple of the stride apart, and so have the same phase. Therefore one
 * weight serves all outputs of a round, one input serves all channels, and the computations for the
 * phase serve all rounds.
 *
 *            x ->  item 0  item 1  item 2  ...  item 0  item 1  item 2  ...
 *                 `----- lanes along x -----'  `---- output 1 of each ----'
 *
 * The loops over taps are unrolled if all phases have the same number of taps. An input outside the
 * data is not read, and its product is not added: no zero meets a weight that is infinite or NaN.
 *
 *   macro       meaning                                                       legal values
 *   OUTPUTS     outputs of a work-item in each channel and round              1, 2, 4, 8
 *   CHANNELS    output channels of a work-item                                1, 2, 4
 *   ALONG_Y     1: the outputs lie along y; 0: along x                        0, 1
 *   TAPS_X      taps along x of every phase; 0: they differ                   0 to 4
 *   ADJACENT    1: taps along x read neighbouring elements of the data        0, 1
 *   SINGLE      1: there is one input channel in a group                      0, 1
 *   LAST        1: output channels are neighbours                             0, 1
 *
 * Registers: OUTPUTS * CHANNELS sums. */
#include "common/divisor.h"
#include "common/epilogue.clh"
#include "gpu/direct_table.h"

#if !defined(OUTPUTS) || !defined(CHANNELS) || !defined(ALONG_Y) || !defined(TAPS_X) ||            \
    !defined(ADJACENT) || !defined(SINGLE) || !defined(LAST)
#error "OUTPUTS, CHANNELS, ALONG_Y, TAPS_X, ADJACENT, SINGLE and LAST must be set"
#endif

#define EACH _Pragma("unroll")
#define SUMS (OUTPUTS * CHANNELS)
#if TAPS_X > 0
#define EACH_TAP EACH
#else
#define EACH_TAP
#endif

/* The index of a weight in the packed filter, by steps of the table: channels outside, taps
 * inside, or with LAST taps outside. Along x, taps that reach the same outputs follow each
 * other. */
static int weight_at(const int channel, const int ci, const int tap, __global const long *table)
{
    return channel * (int)table[DIRECT_WEIGHT_CHANNEL] + ci * (int)table[DIRECT_WEIGHT_IN] +
           tap * (int)table[DIRECT_WEIGHT_TAP];
}

/* The index of tap k along x. */
static int tap_index_of(const int k, __global const long *table)
{
    const long phase = k * table[FOLDED_DILATION_X] % table[FOLDED_STRIDE_X];
    return (int)(table[table[DIRECT_X_AT] + phase * REACH_LONGS + REACH_TAP] +
                 k / table[DIRECT_TAP_STEP_X]);
}

/* A work-item packs weights of one tap and input channel. */
__kernel void tconv_direct_pack(__global const filter_t *restrict weights,
                                const ulong weights_offset, __global packed_t *restrict filter,
                                const ulong filter_offset, __global const long *restrict table)
{
    const int out_channels = (int)table[FOLDED_OUT_CHANNELS],
              channels = (int)table[FOLDED_GROUPS] * out_channels,
              taps_x = (int)table[FOLDED_KERNEL_X], taps_y = (int)table[FOLDED_KERNEL_Y],
              taps = taps_x * taps_y * (int)table[FOLDED_KERNEL_Z];
    const acc_t zero = FILTER_ZERO(table);
    const int channel = (int)get_global_id(0);
    if (channel >= channels) return;
    for (int tap = (int)get_global_id(1); tap < taps; tap += (int)get_global_size(1))
        for (int ci = (int)get_global_id(2); ci < table[FOLDED_IN_CHANNELS];
             ci += (int)get_global_size(2))
            PACK(weights + weights_offset +
                     channel / out_channels * table[FOLDED_SOURCE_GROUP_STEP] +
                     channel % out_channels * table[FOLDED_SOURCE_OUT_STEP] +
                     ci * table[FOLDED_SOURCE_IN_STEP] +
                     tap / taps_x / taps_y * table[FOLDED_SOURCE_Z_STEP] +
                     tap / taps_x % taps_y * table[FOLDED_SOURCE_Y_STEP] +
                     tap % taps_x * table[FOLDED_SOURCE_X_STEP],
                 filter + filter_offset +
                     weight_at(channel, ci,
                               tap / taps_x * taps_x + tap_index_of(tap % taps_x, table), table),
                 zero);
}

/* The inputs, weights and steps of a work-item. Steps are in elements. */
struct item {
    __global const data_t *data; /* data of the group's first channel */
    __global const packed_t *weights;
    int apart;              /* between inputs of two of its outputs */
    int apart_in;           /* the same distance, in inputs along the axis */
    int step, inputs, taps; /* along x: between inputs of neighbouring taps, of all */
    int step_y, inputs_y, taps_y;
    int tap_x, tap_y;  /* the first taps */
    int data_step;     /* between inputs of neighbouring taps along x */
    long channel_step; /* between input channels */
    int weight_in, weight_channel, weight_tap;
    int last; /* the last of its channels */
    int in_channels;
    acc_t zero;
};

/* Adds the products of a row of taps. The first tap reads element `at` on, which is input x[i] of
 * the row for output i. If `checked` is true, inputs may lie outside. */
static void add_row(acc_t sums[OUTPUTS][CHANNELS], const struct item *item, const bool checked,
                    __global const data_t *data, const int at, const int x[OUTPUTS],
                    __global const packed_t *weights)
{
    const int data_step = ADJACENT ? 1 : item->data_step;
    const int tap_step = LAST ? item->weight_tap : 1;
#if !SINGLE
    for (int ci = 0; ci < item->in_channels;
         ci++, data += item->channel_step, weights += item->weight_in)
#endif
    {
        EACH_TAP for (int j = 0; j < (TAPS_X > 0 ? TAPS_X : item->taps); j++)
        {
            acc_t w[CHANNELS];
            EACH for (int m = 0; m < CHANNELS; m++) w[m] =
                READ_WEIGHT(weights + min(m, item->last) * item->weight_channel + j * tap_step);
            EACH for (int i = 0; i < OUTPUTS; i++)
            {
                if (checked && (uint)(x[i] - j * item->step) >= (uint)item->inputs) continue;
                const acc_t value =
                    READ_DATA(data + (at + i * item->apart) - j * data_step, item->zero);
                EACH for (int m = 0; m < CHANNELS; m++)
                    sums[i][m] = MULTIPLY_ADD(value, w[m], sums[i][m]);
            }
        }
    }
}

/* Adds all taps of the outputs whose first input is (input_y, input_x) in a slice along z. */
static void add_taps(acc_t sums[OUTPUTS][CHANNELS], const struct item *item, const int input_y,
                     const int input_x, __global const long *slice, __global const long *table)
{
    const int past = (OUTPUTS - 1) * item->apart_in;
    const bool whole = input_x - (item->taps - 1) * item->step >= 0 &&
                       input_y - (item->taps_y - 1) * item->step_y >= 0 &&
                       input_x + (ALONG_Y ? 0 : past) < item->inputs &&
                       input_y + (ALONG_Y ? past : 0) < item->inputs_y;
    __global const long *list = table + slice[SLICE_LIST];
    for (int s = (int)slice[SLICE_TAPS]; s > 0; s--, list += SLICE_TAP_LONGS) {
        __global const data_t *data = item->data + list[SLICE_INPUT] * table[FOLDED_DATA_Z_STEP];
        const int tap_z = (int)list[SLICE_TAP] * (int)table[FOLDED_KERNEL_Y] + item->tap_y;
#pragma unroll 1
        for (int j = 0; j < item->taps_y; j++) {
            const int y = input_y - j * item->step_y;
            const int tap = (tap_z + j * (int)table[FOLDED_TAP_STEP_Y]) *
                                (int)table[FOLDED_KERNEL_X] +
                            item->tap_x;
            const int at = y * (int)table[FOLDED_DATA_Y_STEP] +
                           input_x * (int)table[FOLDED_DATA_X_STEP];
            int x[OUTPUTS]; /* far outside if the row is outside */
            EACH for (int i = 0; i < OUTPUTS; i++)
                x[i] = (uint)(y + (ALONG_Y ? i * item->apart_in : 0)) < (uint)item->inputs_y
                           ? input_x + (ALONG_Y ? 0 : i * item->apart_in)
                           : -(1 << 30);
            __global const packed_t *weights = item->weights + tap * item->weight_tap;
            if (whole)
                add_row(sums, item, false, data, at, x, weights);
            else
                add_row(sums, item, true, data, at, x, weights);
        }
    }
}

/* A heavy epilogue is not unrolled for each sum. A loop handles the first sum and moves the others
 * up, because registers cannot be indexed. */
#if HEAVY
#define EACH_PART _Pragma("unroll 1")
#else
#define EACH_PART EACH
#endif

KERNEL void tconv_direct(__global const data_t *restrict data, const ulong data_offset,
                         __global const packed_t *restrict filter, const ulong filter_offset,
                         EPILOGUE_PARAMETERS, __global const long *restrict table)
{
    int rest = (int)get_local_id(0), number = GROUP_NUMBER;
    const int lane_0 = split(&rest, table[DIRECT_LANES_0]),
              lane_1 = split(&rest, table[DIRECT_LANES_1]);
    const int tile_0 = split(&number, table[DIRECT_TILES_0]),
              tile_1 = split(&number, table[DIRECT_TILES_1]),
              tile_2 = split(&number, table[DIRECT_TILES_2]),
              z = split(&number, table[DIRECT_POINTS_Z]);
    const int batch = number;
    const int position_0 = tile_0 * divisor_of(table[DIRECT_LANES_0]),
              position_1 = tile_1 * divisor_of(table[DIRECT_LANES_1]),
              position_2 = tile_2 * divisor_of(table[DIRECT_LANES_2]);
    const int outputs = OUTPUTS * (int)table[DIRECT_ROUNDS], outputs_x = ALONG_Y ? 1 : outputs,
              outputs_y = ALONG_Y ? outputs : 1;
#if LAST
    int block = position_0 + lane_0;
    const int first_x = position_1 * outputs_x + lane_1, first_y = position_2 * outputs_y + rest;
#else
    const int first_x = position_0 * outputs_x + lane_0, first_y = position_1 * outputs_y + lane_1;
    int block = position_2 + rest;
#endif
    const int output_x = (int)table[FOLDED_OUTPUT_X], output_y = (int)table[FOLDED_OUTPUT_Y];
    if (block >= (int)table[DIRECT_ALL_BLOCKS] || first_x >= output_x || first_y >= output_y)
        return;
    int group = block;
    const int first = split(&group, table[DIRECT_BLOCKS]) * CHANNELS;
    const int out_channels = (int)table[FOLDED_OUT_CHANNELS];
    const int channel = group * out_channels + first;

    /* The work-item's phases and their taps. */
    int position_x = first_x + (int)table[DIRECT_PAD_X],
        position_y = first_y + (int)table[DIRECT_PAD_Y];
    const int phase_x = split(&position_x, table[DIRECT_STRIDE_X]),
              phase_y = split(&position_y, table[DIRECT_STRIDE_Y]);
    __global const long *reach_x = table + table[DIRECT_X_AT] + phase_x * REACH_LONGS,
                        *reach_y = table + table[DIRECT_Y_AT] + phase_y * REACH_LONGS;
    int input_x = position_x + (int)reach_x[REACH_INPUT],
        input_y = position_y + (int)reach_y[REACH_INPUT];

    struct item item;
    item.in_channels = (int)table[FOLDED_IN_CHANNELS];
    item.channel_step = table[FOLDED_DATA_CHANNEL_STEP];
    item.apart_in = (int)table[DIRECT_APART_IN];
    item.apart = (int)table[DIRECT_APART_DATA];
    item.step = (int)table[FOLDED_INPUT_STEP_X];
    item.inputs = (int)table[FOLDED_INPUT_X];
    item.taps = TAPS_X > 0 ? TAPS_X : (int)reach_x[REACH_TAPS];
    item.step_y = (int)table[FOLDED_INPUT_STEP_Y];
    item.inputs_y = (int)table[FOLDED_INPUT_Y];
    item.taps_y = (int)reach_y[REACH_TAPS];
    item.tap_x = (int)reach_x[REACH_TAP];
    item.tap_y = (int)reach_y[REACH_TAP];
    item.data_step = (int)table[DIRECT_TAP_DATA];
    item.zero = DATA_ZERO(table);
    item.last = min(CHANNELS, out_channels - first) - 1;
    item.weight_in = (int)table[DIRECT_WEIGHT_IN];
    item.weight_channel = (int)table[DIRECT_WEIGHT_CHANNEL];
    item.weight_tap = LAST ? (int)table[DIRECT_WEIGHT_TAP] : 1;
    item.weights = filter + filter_offset + channel * item.weight_channel;
    item.data = data + data_offset + batch * table[FOLDED_DATA_BATCH_STEP] +
                (long)group * item.in_channels * item.channel_step;
    EPILOGUE(epilogue, table)
    const int apart = (int)table[DIRECT_APART];
    const long channel_at = table[FOLDED_OUTPUT_CHANNEL_STEP];
    const int apart_at = (int)table[DIRECT_APART_OUTPUT];
    long at = batch * table[FOLDED_OUTPUT_BATCH_STEP] + channel * channel_at +
              z * table[FOLDED_OUTPUT_Z_STEP] + first_y * table[FOLDED_OUTPUT_Y_STEP] +
              first_x * table[FOLDED_OUTPUT_X_STEP];
    const int left = ALONG_Y ? output_y - first_y : output_x - first_x;
    __global const long *slice = table + table[FOLDED_SLICES_AT] + z * SLICE_LONGS;
#pragma unroll 1
    for (int done = 0; done < outputs && done * apart < left; done += OUTPUTS) {
        acc_t sums[OUTPUTS][CHANNELS];
        EACH for (int i = 0; i < OUTPUTS; i++) EACH for (int m = 0; m < CHANNELS; m++)
            sums[i][m] = 0;
        add_taps(sums, &item, input_y, input_x, slice, table);
        EACH_PART for (int i = 0; i < SUMS; i++)
        {
            const int o = i / CHANNELS, m = i % CHANNELS;
            if ((done + o) * apart < left && m <= item.last)
                put_one(&epilogue, affine_one(&epilogue, sums[0][0], channel + m),
                        at + o * apart_at + m * channel_at, channel + m);
            EACH for (int next = 1; next < SUMS; next++)
                sums[(next - 1) / CHANNELS][(next - 1) % CHANNELS] =
                    sums[next / CHANNELS][next % CHANNELS];
        }
        at += OUTPUTS * apart_at;
        if (ALONG_Y)
            input_y += OUTPUTS * item.apart_in;
        else
            input_x += OUTPUTS * item.apart_in;
    }
}
