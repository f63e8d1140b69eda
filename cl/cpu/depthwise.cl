/* SPDX-License-Identifier: Apache-2.0 */
/* The depthwise algorithm for CPUs: for groups of one channel, channels last. The lanes of a vector
 * are groups. It is output-stationary.
 *
 * Outputs are split by their phases: o = u*s + t along each axis, phase t, position u. Inputs are
 * read from the data, not copied: neighbouring phases of a position read the same inputs while they
 * are in the first-level cache.
 *
 *     work-item   DEPTHWISE_ROWS output rows of one z, DEPTHWISE_POSITIONS positions along x
 *     tile        PX positions where all taps along x are inside the data, else one position: one
 *                 block of MW channels after the other. The channels of a position lie side by
 *                 side, so that processors fetch inputs, weights and outputs ahead.
 *
 *   MERGED > 0    an input that a tile has loaded serves all phases along x. A position by itself,
 *                 and the channels after the last whole block, are computed phase by phase.
 *   MERGED = 0    all tiles are computed phase by phase.
 *
 * Taps whose input is outside the data are skipped, so that no zero of the padding meets a weight.
 * lanes.clh stores blocks, taps.clh has the packed filter, depthwise_table.h the table.
 *
 *   macro     meaning                                 legal values
 *   VW, MW    see lanes.clh
 *   PX        positions of a tile                     at least 1
 *   MERGED    stride along x, or 0: see above         at least 0
 *   KX, DX, RX, LOW with MERGED > 0: see taps.clh
 *   STREAM    see epilogue.clh                        0, 1, 2
 *
 * Registers: MW / VW * PX vectors of sums, with MERGED > 0 times MERGED. */
#include "cpu/depthwise_table.h"
#include "cpu/parts/lanes.clh"
#include "cpu/parts/taps.clh"

#if !defined(PX) || !defined(MERGED)
#error "PX and MERGED must be set"
#endif

/* The taps along an axis that reach a position, or all positions of a tile: tap number `tap` + j *
 * step reads input number `input` - j * step of the inputs. */
struct reach {
    int taps, tap, input;
};

/* The reach of position u of a phase, if all its taps are inside the data. */
static struct reach whole_reach(__global const long *phase, const int u)
{
    return (struct reach){(int)phase[REACH_TAPS], (int)phase[REACH_TAP],
                          (int)phase[REACH_INPUT] + u};
}

/* The reach of position u of a phase, clipped to the data. */
static struct reach reach_of(__global const long *phase, const int u, const int tap_step,
                             const int input_step, const int inputs)
{
    struct reach reach = whole_reach(phase, u);
    if (reach.input >= inputs) {
        const int skipped = (reach.input - inputs) / input_step + 1;
        reach.taps -= skipped;
        reach.tap += skipped * tap_step;
        reach.input -= skipped * input_step;
    }
    reach.taps = reach.input < 0 ? 0 : clamp(reach.input / input_step + 1, 0, max(reach.taps, 0));
    return reach;
}

/* Loads the next lanes of one input, of which `left` exist. The other lanes may have any value:
 * they are loaded from the next input, except at the data's `end`. */
static vec_t load_lanes(__global const data_t *from, __global const data_t *end, const acc_t zero,
                        const int left)
{
    if (left >= VW || from + VW <= end) return READS_DATA(from, zero);
    acc_t lane[VW];
    for (int i = 0; i < VW; i++) lane[i] = i < left ? READ_DATA(from + i, zero) : (acc_t)0;
    return LOAD(lane);
}

/* Steps and pointers that all tiles use. */
struct steps {
    __global const data_t *end;       /* of the data */
    long data_z;                      /* between inputs along z, in elements */
    long data_y, data_x;              /* between the inputs of neighbouring taps */
    long position;                    /* between the inputs of neighbouring positions */
    int weight_z, weight_y, weight_x; /* between the weights of neighbouring taps; along z of all */
    long output, phase; /* between the outputs of neighbouring positions, and phases */
    long weights;       /* between the weights of neighbouring blocks */
    int channels;
    acc_t zero;
};

/* Where a tile's inputs and outputs begin, and how many taps reach it. */
struct tile {
    /* The input of the first tap along y and x (in compute_merged the leftmost input), at the first
     * input along z. */
    __global const data_t *data;
    __global const long *list_z; /* the taps along z: SLICE_TAP, SLICE_INPUT */
    int taps_z, taps_y, taps_x;
    long at; /* the outputs */
};

/* Computes `positions` (1 or PX) positions of a block, and stores all of them except the first
 * `stored`. Only the first `count` lanes of the block exist. Inline, because its loops unroll only
 * if positions and lanes are constants. */
static INLINED void compute(const int positions, const int count, const int stored,
                            const struct epilogue *f, const struct lanes *lanes,
                            const struct steps *steps, const struct tile *tile,
                            __global const packed_t *weights, const long channel)
{
    __global const data_t *data = tile->data + channel;
    const long at = tile->at + channel;
    vec_t sum[CV][PX];
#pragma unroll
    for (int c = 0; c < CV; c++)
#pragma unroll
        for (int v = 0; v < PX; v++) sum[c][v] = (vec_t)(0);
    __global const long *tap_z = tile->list_z;
    for (int jz = 0; jz < tile->taps_z; jz++, tap_z += SLICE_TAP_LONGS)
        for (int jy = 0; jy < tile->taps_y; jy++) {
            __global const data_t *x = data + tap_z[SLICE_INPUT] * steps->data_z -
                                       jy * steps->data_y;
            __global const packed_t *w = weights + tap_z[SLICE_TAP] * steps->weight_z +
                                         jy * steps->weight_y;
            for (int jx = 0; jx < tile->taps_x; jx++, x -= steps->data_x, w += steps->weight_x) {
                vec_t weight[CV];
#pragma unroll
                for (int c = 0; c < CV; c++) weight[c] = READS_WEIGHT(w + c * VW);
#pragma unroll
                for (int v = 0; v < PX; v++)
                    if (v < positions) {
#pragma unroll
                        for (int c = 0; c < CV; c++) {
                            __global const data_t *from = x + v * steps->position + c * VW;
                            sum[c][v] = MULTIPLY_ADD(
                                load_lanes(from, steps->end, steps->zero, count - c * VW),
                                weight[c], sum[c][v]);
                        }
                    }
            }
        }
#pragma unroll
    for (int v = 0; v < PX; v++)
        if (v < positions && v >= stored) {
            result_vec_t value[CV];
#pragma unroll
            for (int c = 0; c < CV; c++)
                value[c] = affine_lanes(sum[c][v], lanes->factor[c], lanes->bias[c]);
            store_lanes(f, lanes, at + v * steps->output, value, 1, 0, count);
        }
}

#if MERGED
/* Computes all phases of a whole tile and block. */
static void compute_merged(const int stored, const struct epilogue *f, const struct steps *steps,
                           const struct tile *tile, __global const packed_t *weights,
                           const long channel)
{
    __global const data_t *data = tile->data + channel;
    const long at = tile->at + channel;
    struct lanes lanes;
    find_lanes(f, channel, MW, &lanes);
    vec_t sum[PX][MERGED][CV];
#pragma unroll
    for (int v = 0; v < PX; v++)
#pragma unroll
        for (int t = 0; t < MERGED; t++)
#pragma unroll
            for (int c = 0; c < CV; c++) sum[v][t][c] = (vec_t)(0);
    __global const long *tap_z = tile->list_z;
    for (int jz = 0; jz < tile->taps_z; jz++, tap_z += SLICE_TAP_LONGS)
        for (int jy = 0; jy < tile->taps_y; jy++) {
            __global const data_t *x = data + tap_z[SLICE_INPUT] * steps->data_z -
                                       jy * steps->data_y;
            __global const packed_t *w = weights + tap_z[SLICE_TAP] * steps->weight_z +
                                         jy * steps->weight_y;
#pragma unroll
            for (int c = 0; c < CV; c++) {
                vec_t in[PX + DISTANCE(0)];
#pragma unroll
                for (int i = 0; i < PX + DISTANCE(0); i++)
                    in[i] = READS_DATA(x + i * steps->position + c * VW, steps->zero);
#pragma unroll
                for (int k = 0; k < KX; k++) {
                    const vec_t weight = READS_WEIGHT(w + k * MW + c * VW);
#pragma unroll
                    for (int v = 0; v < PX; v++)
                        sum[v][PHASE_OF(k)][c] =
                            MULTIPLY_ADD(in[v + DISTANCE(k)], weight, sum[v][PHASE_OF(k)][c]);
                }
            }
        }
#pragma unroll
    for (int v = 0; v < PX; v++)
        if (v >= stored) {
#pragma unroll
            for (int t = 0; t < MERGED; t++) {
                result_vec_t value[CV];
#pragma unroll
                for (int c = 0; c < CV; c++)
                    value[c] = affine_lanes(sum[v][t][c], lanes.factor[c], lanes.bias[c]);
                store_lanes(f, &lanes, at + v * steps->output + t * steps->phase, value, 1, 0, MW);
            }
        }
}
#endif

/* Computes a block of `positions` positions. */
static INLINED void compute_block(const int positions, const int stored, const struct epilogue *f,
                                  const struct steps *steps, const struct tile *tile,
                                  __global const packed_t *weights, const long channel)
{
    struct lanes lanes;
    find_lanes(f, channel, MW, &lanes);
    compute(positions, MW, stored, f, &lanes, steps, tile, weights, channel);
}

/* Computes the channels after the last whole block, from `channel` on. */
static NOINLINE void compute_left(const int positions, const int stored, const struct epilogue *f,
                                  const struct lanes *lanes, const struct steps *steps,
                                  const struct tile *tile, __global const packed_t *weights,
                                  const long channel)
{
    struct tile position = *tile;
    for (int v = 0; v < positions;
         v++, position.data += steps->position, position.at += steps->output)
        if (v >= stored)
            compute(1, steps->channels - (int)channel, 0, f, lanes, steps, &position, weights,
                    channel);
}

/* The whole work of work-item number `item`. */
static NOINLINE void depthwise_item(const int item, __global const data_t *restrict data,
                                    __global const packed_t *restrict filter,
                                    const struct epilogue *f, __global const long *restrict table)
{
    const int stride_y = (int)table[FOLDED_STRIDE_Y], stride_x = (int)table[FOLDED_STRIDE_X];
    const int output_z = (int)table[FOLDED_OUTPUT_Z], output_y = (int)table[FOLDED_OUTPUT_Y],
              output_x = (int)table[FOLDED_OUTPUT_X];
    const int input_x = (int)table[FOLDED_INPUT_X], kernel_x = (int)table[FOLDED_KERNEL_X];
    const int tap_step_y = (int)table[FOLDED_TAP_STEP_Y],
              tap_step_x = (int)table[DEPTHWISE_TAP_STEP_X];
    const int input_step_y = (int)table[FOLDED_INPUT_STEP_Y],
              input_step_x = (int)table[FOLDED_INPUT_STEP_X];
    __global const long *phases_x = table + table[DEPTHWISE_X_AT];

    /* The work-item's positions, rows and image. */
    const int item_rows = (int)table[DEPTHWISE_ROWS],
              item_positions = (int)table[DEPTHWISE_POSITIONS];
    const int positions = (output_x + stride_x - 1) / stride_x;
    const int parts_x = (positions + item_positions - 1) / item_positions,
              parts_y = (output_y + item_rows - 1) / item_rows;
    int rest = item;
    const int first_position = rest % parts_x * item_positions,
              last_position = min(first_position + item_positions, positions);
    rest /= parts_x;
    const int first_y = rest % parts_y * item_rows, last_y = min(first_y + item_rows, output_y);
    rest /= parts_y;
    const int z = rest % output_z, n = rest / output_z;

    const struct epilogue epilogue = *f; /* in registers */
    struct steps steps;
    steps.end = data + ((int)table[FOLDED_BATCHES] - 1) * table[FOLDED_DATA_BATCH_STEP] +
                ((int)table[FOLDED_INPUT_Z] - 1) * table[FOLDED_DATA_Z_STEP] +
                ((int)table[FOLDED_INPUT_Y] - 1) * table[FOLDED_DATA_Y_STEP] +
                (input_x - 1) * table[FOLDED_DATA_X_STEP] + (int)table[FOLDED_OUT_CHANNELS];
    steps.position = table[FOLDED_DATA_X_STEP];
    steps.data_z = table[FOLDED_DATA_Z_STEP];
    steps.data_y = input_step_y * table[FOLDED_DATA_Y_STEP];
    steps.data_x = input_step_x * steps.position;
    steps.weight_x = tap_step_x * MW;
    steps.weight_y = (int)((long)tap_step_y * kernel_x * MW); /* not used if there is one tap */
    steps.weight_z = (int)table[FOLDED_KERNEL_Y] * kernel_x * MW;
    steps.output = stride_x * table[FOLDED_OUTPUT_X_STEP];
    steps.phase = table[FOLDED_OUTPUT_X_STEP];
    steps.weights = table[FOLDED_KERNEL_Z] * table[FOLDED_KERNEL_Y] * kernel_x * MW;
    steps.channels = (int)table[FOLDED_OUT_CHANNELS];
    steps.zero = DATA_ZERO(table);
    __global const packed_t *weights = weights_of(filter, table, 0);
    const int whole_channels = steps.channels / MW * MW;
    const struct steps seldom_steps =
        steps; /* a copy for a function that takes its address: the original stays in registers */
    struct lanes left_lanes;
    if (whole_channels < steps.channels)
        find_lanes(&epilogue, whole_channels, steps.channels - whole_channels, &left_lanes);

    /* The positions whose taps along x are all inside the data, and whose outputs all exist. */
    int low = 0, high = output_x / stride_x;
    for (int t = 0; t < stride_x; t++) {
        __global const long *phase = phases_x + t * REACH_LONGS;
        const int input = (int)phase[REACH_INPUT], taps = (int)phase[REACH_TAPS];
        if (taps == 0) continue;
        low = max(low, (taps - 1) * input_step_x - input);
        high = min(high, input_x - input);
    }

    __global const long *slice = table + table[DEPTHWISE_SLICES_AT] + z * SLICE_LONGS;
    for (int y = first_y; y < last_y; y++) {
        const struct reach reach_y =
            reach_of(table + table[DEPTHWISE_Y_AT] + y % stride_y * REACH_LONGS, y / stride_y,
                     tap_step_y, input_step_y, (int)table[FOLDED_INPUT_Y]);
        __global const data_t *row = data + n * table[FOLDED_DATA_BATCH_STEP] +
                                     reach_y.input * table[FOLDED_DATA_Y_STEP];
        const long line = n * table[FOLDED_OUTPUT_BATCH_STEP] + z * table[FOLDED_OUTPUT_Z_STEP] +
                          y * table[FOLDED_OUTPUT_Y_STEP];
        struct tile tile;
        tile.list_z = table + slice[SLICE_LIST];
        tile.taps_z = (int)slice[SLICE_TAPS];
        tile.taps_y = reach_y.taps;
        const long tap = (long)reach_y.tap * kernel_x;
        const int end = min(high, last_position);
        for (int u = first_position; u < last_position;) {
            /* The last tile overlaps the one before. */
            const bool whole = u >= low && u < end && end - PX >= low;
            const int begin = whole ? min(u, end - PX) : u, stored = u - begin;
            const int count = whole ? PX : 1;
            u = begin + count;
#if MERGED
            if (whole) {
                tile.data = row + (begin + table[FOLDED_FIRST_INPUT]) * steps.position;
                tile.at = line + begin * steps.output;
                __global const packed_t *w = weights + tap * MW;
                for (int channel = 0; channel < whole_channels; channel += MW, w += steps.weights)
                    compute_merged(stored, &epilogue, &steps, &tile, w, channel);
                if (whole_channels == steps.channels) continue;
            }
#endif
            for (int t = 0; t < stride_x; t++) {
                __global const long *phase = phases_x + t * REACH_LONGS;
                const int x = begin * stride_x + t;
                if (x >= output_x) break;
                const struct reach reach =
                    whole ? whole_reach(phase, begin)
                          : reach_of(phase, begin, tap_step_x, input_step_x, input_x);
                tile.data = row + reach.input * steps.position;
                tile.taps_x = reach.taps;
                tile.at = line + x * steps.phase;
                __global const packed_t *w = weights + (tap + reach.tap) * MW;
#define COMPUTE_BLOCKS(positions, stored)                                                          \
    for (int channel = 0; channel < whole_channels; channel += MW, w += steps.weights)             \
    compute_block(positions, stored, &epilogue, &steps, &tile, w, channel)
#if MERGED
                if (!whole) COMPUTE_BLOCKS(1, 0);
#else
                if (whole && PX > 1)
                    COMPUTE_BLOCKS(PX, stored);
                else
                    COMPUTE_BLOCKS(1, 0);
#endif
                if (whole_channels < steps.channels)
                    compute_left(count, stored, f, &left_lanes, &seldom_steps, &tile,
                                 weights + (tap + reach.tap) * MW +
                                     whole_channels / MW * steps.weights,
                                 whole_channels);
            }
        }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
tconv_depthwise(__global const data_t *restrict data, const ulong data_offset,
                __global const packed_t *restrict filter, const ulong filter_offset,
                __global uint *restrict flags, const ulong flags_offset, EPILOGUE_PARAMETERS,
                __global const long *restrict table, SHARE_PARAMETER)
{
    PACK_WITHOUT_FILTER
    EPILOGUE(epilogue, table)
    EACH_SHARED(i)
    depthwise_item(SHARED_GROUP(i), data + data_offset, filter + filter_offset, &epilogue, table);
}
