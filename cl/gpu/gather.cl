/* SPDX-License-Identifier: Apache-2.0 */
/* The gather algorithm, which is output-stationary. A work-item has MW output channels at VW
 * neighbouring positions along the innermost axis (x). It keeps the sums in registers and gathers
 * every tap that reaches them.
 *
 * Along x, outputs are split by their phase: output o = u*SX + t has phase t and position u. The
 * taps of one phase read their inputs at fixed distances from u, so lanes run along u, nothing is
 * divided inside the loops and no zero is ever inserted.
 *
 *     work-group   WGX x WGY work-items: neighbouring tiles of a row, neighbouring rows
 *     work-item    a tile of VW positions u, all SX phases t, MW output channels; one row (z, y)
 *     vector       VW positions of one phase of one channel
 *
 *   MERGED = 1   the SX phases are summed at the same time and interleaved in registers: one
 *                input vector serves them all. KX, SX, DX and RX are compile-time numbers. For
 *                small strides.
 *   MERGED = 0   one phase after the other, stored with stride; what belongs to a phase is
 *                read from the table. For all other strides and for many taps.
 *
 * Along y and z the table lists the taps that reach each output row, and their input rows, clipped
 * to the data; z stands for all axes but the last two. Only along x can a tile extend beyond the
 * data. Such a tile reads a copy of its inputs with zeros around them, the stage, which is in the
 * workspace. All other tiles read the data. A zero times an infinite or NaN weight would be wrong.
 * Packing therefore sets a flag for a block of channels with such weights, and exact_output
 * computes its staged tiles tap by tap.
 *
 * Packed filter: a word of flags for each [group][block of MW channels], padded; then
 * [group][block][kz][ky] and within it the taps along x sorted by phase: [phase][ci][tap of the
 * phase][MW]. Channels past the last one are zero. With MERGED all taps are together.
 * gather_table.h has the table.
 *
 * With DOT, for bytes, ci counts quads of input channels, and a weight is a word of four bytes. The
 * data's zero point is not subtracted when data are read; its product with the sum of all weights
 * is subtracted from the sums.
 *
 *   macro      meaning                                                     legal values
 *   DOT        see dot.clh                                                 0, 1, 2
 *   VW         lanes of a vector                                           1, 2, 4
 *   MW         output channels of a work-item                              1 to 16
 *   WGX, WGY   work-items of a work-group                                  powers of two
 *   MERGED     see above                                                   0, 1
 *   SX         MERGED: stride along x, the number of phases                1 to 4
 *   KX, DX     MERGED: taps and dilation along x                           at least 1
 *   RX         MERGED: pad_begin along x modulo SX                         0 to SX-1
 *   LOW        MERGED: the least of all taps' distances before shifting    any
 *
 * Registers: MW * SX vectors of sums with MERGED, else MW. */
#include "common/epilogue.clh"
#include "gpu/dot.clh"
#include "gpu/gather_table.h"

#if !defined(VW) || !defined(MW) || !defined(WGX) || !defined(WGY) || !defined(MERGED)
#error "VW, MW, WGX, WGY and MERGED must be set"
#endif

#if MERGED
#if !defined(SX) || !defined(KX) || !defined(DX) || !defined(RX) || !defined(LOW)
#error "SX, KX, DX, RX and LOW must be set with MERGED"
#endif
#define PHASES SX
#if SX > 4 || KX > 16
#error "with MERGED there are at most 4 phases and 16 taps"
#endif
/* The phase of the outputs that tap k reaches, and the distance from the tile's first input to
 * the one that it reads for the tile's first position. From o + pad = i*SX + k*DX, o = u*SX + t,
 * pad = P*SX + RX: i = u + P + (t + RX - k*DX) / SX. */
#define PHASE_OF(k) (((k)*DX % SX - RX + SX) % SX)
#define DISTANCE(k) ((PHASE_OF(k) + RX - (k)*DX) / SX - (LOW))
#else
#define PHASES 1
#endif

/* Computes one output element from the data, tap by tap. `slice` and `reach_y` are those of its
 * row, `o` is its number in the row, `weights` and `m` are its block and channel. */
#if FLOATING
static acc_t exact_output(__global const data_t *data, __global const packed_t *weights,
                          __global const long *table, __global const long *slice,
                          __global const long *reach_y, const long o, const int m)
{
    const long in_channels = table[FOLDED_IN_CHANNELS];
    const acc_t zero = DATA_ZERO(table);
    acc_t sum = 0;
    for (long jz = 0; jz < slice[SLICE_TAPS]; jz++)
        for (long jy = 0; jy < reach_y[REACH_TAPS]; jy++) {
            __global const long *tap_z = table + slice[SLICE_LIST] + jz * SLICE_TAP_LONGS;
            __global const data_t *x = data + tap_z[SLICE_INPUT] * table[FOLDED_DATA_Z_STEP] +
                                       (reach_y[REACH_INPUT] - jy * table[FOLDED_INPUT_STEP_Y]) *
                                           table[FOLDED_DATA_Y_STEP];
            const long kz = tap_z[SLICE_TAP];
            const long ky = reach_y[REACH_TAP] + jy * table[FOLDED_TAP_STEP_Y];
            __global const packed_t *w = weights + (kz * table[FOLDED_KERNEL_Y] + ky) *
                                                       table[FOLDED_KERNEL_X] * in_channels * MW;
            for (long k = 0; k < table[FOLDED_KERNEL_X]; k++) {
                /* 32 bits suffice; dividing 64 bits takes many registers on a GPU. */
                const int distance = (int)(o + table[FOLDED_PAD_X] - k * table[FOLDED_DILATION_X]);
                const int stride = (int)table[FOLDED_STRIDE_X], i = distance / stride;
                if (distance < 0 || i * stride != distance || i >= table[FOLDED_INPUT_X]) continue;
                __global const long *tap = table + table[GATHER_TAPS_AT] + k * GATHER_TAP_LONGS;
                for (long ci = 0; ci < in_channels; ci++)
                    sum = MULTIPLY_ADD(
                        READ_DATA(x + ci * table[FOLDED_DATA_CHANNEL_STEP] + i, zero),
                        READ_WEIGHT(w +
                                    (tap[GATHER_TAP_START] * in_channels +
                                     ci * tap[GATHER_TAP_COUNT] + tap[GATHER_TAP_NUMBER]) *
                                        MW +
                                    m),
                        sum);
            }
        }
    return sum;
}
#endif

/* Stores the sums of phase t of a tile: position i is element first + t + i*step of its row, if
 * that is inside; `at` is the number of output `first`. */
static void store_phase(const struct epilogue *f, const vec_t sum, const long at,
                        const long channel, const int first, const int t, const int step,
                        const int output_x)
{
#ifdef LANE
    const result_vec_t value = affine(f, sum, channel);
#pragma unroll
    for (int i = 0; i < VW; i++) {
        const int position = t + i * step;
        if (first + position < output_x) put_one(f, LANE(value, i), at + position, channel);
    }
#else
    lane_t lane[VW];
    TO_LANES(f, affine(f, sum, channel), SLOPES_OF(f, channel), lane);
#if !NATIVE /* registers cannot be indexed */
#pragma unroll
#endif
    for (int i = 0; i < VW; i++) {
        const int position = t + i * step;
        if (first + position < output_x) PUT_LANE(f, lane[i], at + position, channel);
    }
#endif
}

/* Stores a tile of one channel: phase t of position i is element first + t + i*step of the row, if
 * that is inside. `row` is the number of the row's first output. */
static void store_row(const struct epilogue *f, const long row, const long channel,
                      const vec_t (*sums)[PHASES], const int first, const int step,
                      const int output_x)
{
    const long at = row + first;
    int zero = 0; /* a variable: types.clh */
#if PHASES == 1
    if (step == 1 && first + VW <= output_x) {
        put(f, affine(f, (*sums)[zero], channel), at, channel);
        return;
    }
#elif PHASES == 2 && VW > 1
    if (first + 2 * VW <= output_x) {
        const vec_t a = (*sums)[zero], b = (*sums)[zero + 1];
        put(f, affine(f, low_pairs(a, b), channel), at, channel);
        put(f, affine(f, high_pairs(a, b), channel), at + VW, channel);
        return;
    }
#elif PHASES == 4 && VW > 1
    if (first + 4 * VW <= output_x) {
        const vec_t a = (*sums)[zero], b = (*sums)[zero + 1], c = (*sums)[zero + 2],
                    d = (*sums)[zero + 3];
        const vec_t low_ac = low_pairs(a, c), low_bd = low_pairs(b, d), high_ac = high_pairs(a, c),
                    high_bd = high_pairs(b, d);
        put(f, affine(f, low_pairs(low_ac, low_bd), channel), at, channel);
        put(f, affine(f, high_pairs(low_ac, low_bd), channel), at + VW, channel);
        put(f, affine(f, low_pairs(high_ac, high_bd), channel), at + 2 * VW, channel);
        put(f, affine(f, high_pairs(high_ac, high_bd), channel), at + 3 * VW, channel);
        return;
    }
#endif
    /* Written out: see MESA of types.clh. */
    store_phase(f, (*sums)[zero], at, channel, first, 0, step, output_x);
#if PHASES > 1
    store_phase(f, (*sums)[zero + 1], at, channel, first, 1, step, output_x);
#endif
#if PHASES > 2
    store_phase(f, (*sums)[zero + 2], at, channel, first, 2, step, output_x);
#endif
#if PHASES > 3
    store_phase(f, (*sums)[zero + 3], at, channel, first, 3, step, output_x);
#endif
}

/* The operations of a tap: read inputs from p on, add their products with the weight at w, and add
 * up the weight itself. */
#if DOT
#define INPUTS(p) quads_at(p, channel_step, min(4, in_channels - 4 * ci))
#define ADD_PRODUCTS(in, w, sum) ((sum) + dot_quads(in, *(w)))
#else
#define INPUTS(p) READS_DATA(p, zero)
#define ADD_PRODUCTS(in, w, sum) MULTIPLY_ADD(in, (vec_t)(READ_WEIGHT(w)), sum)
#endif
#if DOT && QUANTIZED
#define ADD_WEIGHT(w, sum) (sum) += sum_of_quad(*(w))
#else
#define ADD_WEIGHT(w, sum)
#endif

#if MERGED
/* Adds the products of tap `number`; and the taps of a row, written out: see MESA of types.clh. */
#define ADD_TAP(number)                                                                            \
    {                                                                                              \
        int k = (number);                                                                          \
        const vec_t in = INPUTS(x + DISTANCE(k));                                                  \
        _Pragma("unroll") for (int m = 0; m < MW; m++)                                             \
        {                                                                                          \
            ADD_WEIGHT(w + k * MW + m, weight_sum[m][PHASE_OF(k)]);                                \
            sum[m][PHASE_OF(k)] = ADD_PRODUCTS(in, w + k * MW + m, sum[m][PHASE_OF(k)]);           \
        }                                                                                          \
    }
#define TAPS_1(f) f(0)
#define TAPS_2(f) TAPS_1(f) f(1)
#define TAPS_3(f) TAPS_2(f) f(2)
#define TAPS_4(f) TAPS_3(f) f(3)
#define TAPS_5(f) TAPS_4(f) f(4)
#define TAPS_6(f) TAPS_5(f) f(5)
#define TAPS_7(f) TAPS_6(f) f(6)
#define TAPS_8(f) TAPS_7(f) f(7)
#define TAPS_9(f) TAPS_8(f) f(8)
#define TAPS_10(f) TAPS_9(f) f(9)
#define TAPS_11(f) TAPS_10(f) f(10)
#define TAPS_12(f) TAPS_11(f) f(11)
#define TAPS_13(f) TAPS_12(f) f(12)
#define TAPS_14(f) TAPS_13(f) f(13)
#define TAPS_15(f) TAPS_14(f) f(14)
#define TAPS_16(f) TAPS_15(f) f(15)
#endif

/* Computes one tile, of one batch item, block of channels and output row. */
static NOINLINE void
gather_tile(__global const data_t *restrict data, __global const data_t *restrict stage,
            __global const packed_t *restrict filter, __global const uint *restrict flags,
            const struct epilogue *epilogue, __global const long *restrict table, const int tile,
            const int row, const int image)
{
    /* The tile's batch item, group, block of channels and row. */
    const int batches = (int)table[FOLDED_BATCHES];
    const int n = image % batches, all_blocks = image / batches;
    const int g = all_blocks / (int)table[FOLDED_BLOCKS],
              block = all_blocks % (int)table[FOLDED_BLOCKS];
    const int in_channels = (int)table[FOLDED_IN_CHANNELS],
              out_channels = (int)table[FOLDED_OUT_CHANNELS];
    const int output_x = (int)table[FOLDED_OUTPUT_X];
    const int z = row / (int)table[FOLDED_OUTPUT_Y], y = row % (int)table[FOLDED_OUTPUT_Y];
    __global const long *slice = table + table[FOLDED_SLICES_AT] + z * SLICE_LONGS;
    __global const long *taps_z = table + slice[SLICE_LIST];
    __global const long *reach_y = table + table[FOLDED_REACH_Y_AT] + y * REACH_LONGS;
    const int taps_y = (int)reach_y[REACH_TAPS];
    const int quads = DOT ? (in_channels + 3) / 4 : in_channels;
    const long row_weights = table[FOLDED_KERNEL_X] * quads * MW; /* of one (kz, ky) */
    __global const packed_t *weights = filter + table[GATHER_HEADER] +
                                       all_blocks * table[FOLDED_KERNEL_Z] *
                                           table[FOLDED_KERNEL_Y] * row_weights;
    const long co = (long)g * out_channels + block * MW;
    const long to = n * table[FOLDED_OUTPUT_BATCH_STEP] + co * table[FOLDED_OUTPUT_CHANNEL_STEP] +
                    z * table[FOLDED_OUTPUT_Z_STEP] + y * table[FOLDED_OUTPUT_Y_STEP];
    const acc_t zero = DATA_ZERO(table);
    const int channels = min(MW, out_channels - block * MW);

    /* The tile's inputs are in the data or in the stage. */
    const bool sees_data = tile >= table[GATHER_TILE_FIRST] && tile < table[GATHER_TILE_LAST];
    const bool staged = tile < table[GATHER_DIRECT_FIRST] || tile >= table[GATHER_DIRECT_LAST];
    const long channel = (long)n * table[FOLDED_GROUPS] * in_channels + (long)g * in_channels;
    __global const data_t *own_data = data + n * table[FOLDED_DATA_BATCH_STEP] +
                                      (long)g * in_channels * table[FOLDED_DATA_CHANNEL_STEP];
    __global const data_t *from;
    long channel_step, z_step, y_step;
    if (staged) {
        const long slot = tile < table[GATHER_DIRECT_FIRST]
                              ? tile - table[GATHER_TILE_FIRST]
                              : tile - table[GATHER_DIRECT_LAST] + table[GATHER_DIRECT_FIRST] -
                                    table[GATHER_TILE_FIRST];
        y_step = table[GATHER_STAGED] * table[GATHER_STAGE_ROW];
        z_step = table[FOLDED_INPUT_Y] * y_step;
        channel_step = table[FOLDED_INPUT_ROWS] * y_step;
        from = stage + channel * channel_step + slot * table[GATHER_STAGE_ROW];
    } else {
        y_step = table[FOLDED_DATA_Y_STEP];
        z_step = table[FOLDED_DATA_Z_STEP];
        channel_step = table[FOLDED_DATA_CHANNEL_STEP];
        from = own_data + (long)tile * VW + table[FOLDED_FIRST_INPUT];
    }
    from += reach_y[REACH_INPUT] * y_step;

#if FLOATING
    if (sees_data && staged && flags[all_blocks] != 0) {
        const int step = (int)table[FOLDED_STRIDE_X];
        const int last = min((tile + 1) * VW * step, output_x);
        for (int m = 0; m < channels; m++)
            for (int o = tile * VW * step; o < last; o++)
                put_one(epilogue,
                        affine_one(epilogue,
                                   exact_output(own_data, weights, table, slice, reach_y, o, m),
                                   co + m),
                        to + m * table[FOLDED_OUTPUT_CHANNEL_STEP] + o, co + m);
        return;
    }
#endif

#if MERGED
    {
        const int first = tile * VW * SX, step = SX;
#else
    for (int c = 0; c < table[FOLDED_STRIDE_X]; c++) {
        __global const long *phase = table + table[FOLDED_PHASES_AT] + c * PHASE_LONGS;
        const int step = (int)table[FOLDED_STRIDE_X];
        const int first = tile * VW * step + (int)phase[PHASE_FIRST];
        const int taps = (int)phase[PHASE_TAPS];
#endif
        vec_t sum[MW][PHASES];
#pragma unroll
        for (int m = 0; m < MW; m++)
#pragma unroll
            for (int t = 0; t < PHASES; t++) sum[m][t] = (vec_t)(0);
#if DOT && QUANTIZED
        uint weight_sum[MW][PHASES];
#pragma unroll
        for (int m = 0; m < MW; m++)
#pragma unroll
            for (int t = 0; t < PHASES; t++) weight_sum[m][t] = 0;
#endif

        /* A single loop over all rows of taps: some compilers copy all sums for each surrounding
         * loop. */
        const int rows = sees_data ? (int)slice[SLICE_TAPS] * taps_y : 0;
        for (int j = 0, jz = 0, jy = 0; j < rows; j++) {
            const long kz = taps_z[jz * SLICE_TAP_LONGS + SLICE_TAP];
            const long ky = reach_y[REACH_TAP] + jy * table[FOLDED_TAP_STEP_Y];
            __global const packed_t *w = weights + (kz * table[FOLDED_KERNEL_Y] + ky) * row_weights;
            __global const data_t *x = from + taps_z[jz * SLICE_TAP_LONGS + SLICE_INPUT] * z_step -
                                       jy * table[FOLDED_INPUT_STEP_Y] * y_step;
            if (++jy == taps_y) {
                jy = 0;
                jz++;
            }
#if MERGED
            for (int ci = 0; ci < quads; ci++, x += (DOT ? 4 : 1) * channel_step, w += KX * MW) {
                PASTE(TAPS_, KX)(ADD_TAP)
            }
#else
            const int input_step = (int)table[FOLDED_INPUT_STEP_X];
            x += phase[PHASE_DISTANCE];
            w += phase[PHASE_START] * quads * MW;
            for (int ci = 0; ci < quads; ci++, x += (DOT ? 4 : 1) * channel_step)
                for (int t = 0; t < taps; t++, w += MW) {
                    const vec_t in = INPUTS(x - t * input_step);
#pragma unroll
                    for (int m = 0; m < MW; m++) {
                        ADD_WEIGHT(w + m, weight_sum[m][0]);
                        sum[m][0] = ADD_PRODUCTS(in, w + m, sum[m][0]);
                    }
                }
#endif
        }

#if DOT && QUANTIZED
#pragma unroll
        for (int m = 0; m < MW; m++)
#pragma unroll
            for (int t = 0; t < PHASES; t++) sum[m][t] -= (vec_t)(zero * weight_sum[m][t]);
#endif
#if (HEAVY && (defined(LANE) || !NATIVE)) || MESA
        int zero_sum = 0; /* a variable: types.clh */
#pragma unroll 1
        for (int m = 0; m < channels; m++) {
            /* Store the first sum and shift the others down by one: registers cannot be indexed,
             * and compilers do not unroll a loop of this length. */
            store_row(epilogue, to + m * table[FOLDED_OUTPUT_CHANNEL_STEP], co + m,
                      (const vec_t(*)[PHASES]) & sum[zero_sum], first, step, output_x);
#pragma unroll
            for (int i = 0; i + 1 < MW; i++)
#pragma unroll
                for (int t = 0; t < PHASES; t++) sum[i][t] = sum[i + 1][t];
        }
#else
#pragma unroll
        for (int m = 0; m < MW; m++)
            if (m < channels)
                store_row(epilogue, to + m * table[FOLDED_OUTPUT_CHANNEL_STEP], co + m,
                          (const vec_t(*)[PHASES]) & sum[m], first, step, output_x);
#endif
    }
}

KERNEL __attribute__((reqd_work_group_size(WGX, WGY, 1))) void
tconv_gather(__global const data_t *restrict data, const ulong data_offset,
             __global const data_t *restrict stage, const ulong stage_offset,
             __global const packed_t *restrict filter, const ulong filter_offset,
             __global const uint *restrict flags, const ulong flags_offset, EPILOGUE_PARAMETERS,
             __global const long *restrict table)
{
    /* Groups are numbered along tiles first, then rows, then images. A group has one image and,
     * with WGY = 1, one row, so that compilers load weights once for all its work-items. A grid
     * loop would keep its invariants in registers all the time. */
    const int groups_x = ((int)table[FOLDED_TILES] + WGX - 1) / WGX,
              groups_y = ((int)table[FOLDED_OUTPUT_ROWS] + WGY - 1) / WGY;
    const int group = GROUP_NUMBER;
    const int tile = group % groups_x * WGX + (int)get_local_id(0);
    const int row = group / groups_x % groups_y * WGY + (WGY > 1 ? (int)get_local_id(1) : 0);
    if (tile >= table[FOLDED_TILES] || row >= table[FOLDED_OUTPUT_ROWS]) return;
    EPILOGUE(epilogue, table)
    gather_tile(data + data_offset, stage + stage_offset, filter + filter_offset,
                flags + flags_offset, &epilogue, table, tile, row, group / groups_x / groups_y);
}

/* Copies the inputs of staged tile number `slot` of one input row, with zeros around them. */
static NOINLINE void stage_row(__global const data_t *restrict data,
                               __global data_t *restrict stage, __global const long *restrict table,
                               const long plane, const long row, const long slot)
{
    /* 32 bits suffice, as in pack_tap. To divide 64 bits, Mesa's compiler for Mali spills 2 KiB. */
    const uint all_channels = (uint)table[FOLDED_GROUPS] * (uint)table[FOLDED_IN_CHANNELS],
               input_y = (uint)table[FOLDED_INPUT_Y];
    const uint batch = (uint)plane / all_channels, channel = (uint)plane - batch * all_channels;
    const uint z = (uint)row / input_y, y = (uint)row - z * input_y;
    const data_t zero = (data_t)DATA_ZERO(
        table); /* the element of the padding; its bits are 0 except for integers */
    const long left = table[GATHER_DIRECT_FIRST] - table[GATHER_TILE_FIRST];
    const long tile = slot < left ? table[GATHER_TILE_FIRST] + slot
                                  : table[GATHER_DIRECT_LAST] + slot - left;
    const int length = (int)table[GATHER_STAGE_ROW];
    const long begin = tile * VW +
                       table[FOLDED_FIRST_INPUT]; /* the input at the stage's element 0 */
    const int from = (int)clamp(-begin, 0L, (long)length),
              to = (int)clamp(table[FOLDED_INPUT_X] - begin, 0L, (long)length);
    __global const data_t *x =
        data + batch * table[FOLDED_DATA_BATCH_STEP] + channel * table[FOLDED_DATA_CHANNEL_STEP] +
        z * table[FOLDED_DATA_Z_STEP] + y * table[FOLDED_DATA_Y_STEP] + begin;
    __global data_t *s =
        stage + ((plane * table[FOLDED_INPUT_ROWS] + row) * table[GATHER_STAGED] + slot) * length;
    for (int i = 0; i < from; i++) s[i] = zero;
    for (int i = from; i < to; i++) s[i] = x[i];
    for (int i = to; i < length; i++) s[i] = zero;
}

/* Each work-item copies one staged tile after another, of one input row each. */
KERNEL void tconv_gather_stage(__global const data_t *restrict data, const ulong data_offset,
                               __global data_t *restrict stage, const ulong stage_offset,
                               __global const long *restrict table)
{
    const long slot = (long)get_global_id(0);
    const long planes = table[FOLDED_BATCHES] * table[FOLDED_GROUPS] * table[FOLDED_IN_CHANNELS];
    if (slot >= table[GATHER_STAGED]) return;
    for (long plane = (long)get_global_id(2); plane < planes; plane += (long)get_global_size(2))
        for (long row = (long)get_global_id(1); row < table[FOLDED_INPUT_ROWS];
             row += (long)get_global_size(1))
            stage_row(data + data_offset, stage + stage_offset, table, plane, row, slot);
}

/* Packs the MW weights, or quads, of one (group, block), tap and ci. */
static NOINLINE void pack_tap(__global const filter_t *restrict weights,
                              __global packed_t *restrict filter, __global uint *restrict flags,
                              __global const long *restrict table, const long all_blocks,
                              const long tap_number, const long ci)
{
    const long in_channels = table[FOLDED_IN_CHANNELS];
    const long quads = DOT ? (in_channels + 3) / 4 : in_channels;
    const acc_t zero = FILTER_ZERO(table);
    /* 32 bits suffice (gather.c); dividing 64 bits takes hundreds of instructions on GPUs. */
    const uint kernel_x = (uint)table[FOLDED_KERNEL_X], kernel_y = (uint)table[FOLDED_KERNEL_Y],
               blocks = (uint)table[FOLDED_BLOCKS];
    const uint kzy_number = (uint)tap_number / kernel_x, kz = kzy_number / kernel_y,
               group = (uint)all_blocks / blocks;
    const long kernel_zy = table[FOLDED_KERNEL_Z] * kernel_y, kzy = kzy_number;
    const long k = (uint)tap_number - kzy_number * kernel_x, ky = kzy_number - kz * kernel_y;
    const long g = group, block = (uint)all_blocks - group * blocks;
    __global const long *tap = table + table[GATHER_TAPS_AT] + k * GATHER_TAP_LONGS;
    __global const filter_t *from =
        weights + g * table[FOLDED_SOURCE_GROUP_STEP] +
        (DOT ? 4 : 1) * ci * table[FOLDED_SOURCE_IN_STEP] +
        block * MW * table[FOLDED_SOURCE_OUT_STEP] + kz * table[FOLDED_SOURCE_Z_STEP] +
        ky * table[FOLDED_SOURCE_Y_STEP] + k * table[FOLDED_SOURCE_X_STEP];
    __global packed_t *to =
        filter + table[GATHER_HEADER] +
        (((all_blocks * kernel_zy + kzy) * kernel_x + tap[GATHER_TAP_START]) * quads +
         ci * tap[GATHER_TAP_COUNT] + tap[GATHER_TAP_NUMBER]) *
            MW;
    bool finite = true;
    for (int m = 0; m < MW; m++) {
        if (block * MW + m < table[FOLDED_OUT_CHANNELS]) {
#if DOT
            uint quad = 0;
            for (int i = 0; i < 4 && 4 * ci + i < in_channels; i++)
                quad |=
                    (uint)(uchar)
                        from[m * table[FOLDED_SOURCE_OUT_STEP] + i * table[FOLDED_SOURCE_IN_STEP]]
                    << 8 * i;
            to[m] = quad;
#else
            PACK(from + m * table[FOLDED_SOURCE_OUT_STEP], to + m, zero);
            finite = finite && IS_FINITE(READ_WEIGHT(to + m));
#endif
        } else
            to[m] = 0;
    }
    if (!finite) atomic_or(&flags[all_blocks], 1u);
}

/* Clears all flags before packing: no block has infinite or NaN weights yet. A work-item for each
 * word. */
KERNEL void tconv_gather_clear(__global uint *restrict flags, const ulong flags_offset,
                               __global const long *restrict table)
{
    if (get_global_id(0) < (ulong)(table[FOLDED_GROUPS] * table[FOLDED_BLOCKS]))
        flags[flags_offset + get_global_id(0)] = 0;
}

/* Each work-item packs one input channel, or quad, after another. */
KERNEL void tconv_gather_pack(__global const filter_t *restrict weights, const ulong weights_offset,
                              __global packed_t *restrict filter, const ulong filter_offset,
                              __global uint *restrict flags, const ulong flags_offset,
                              __global const long *restrict table)
{
    const long ci = (long)get_global_id(0), in_channels = table[FOLDED_IN_CHANNELS];
    const long taps = table[FOLDED_KERNEL_Z] * table[FOLDED_KERNEL_Y] * table[FOLDED_KERNEL_X];
    if (ci >= (DOT ? (in_channels + 3) / 4 : in_channels)) return;
    for (long all_blocks = (long)get_global_id(2);
         all_blocks < table[FOLDED_GROUPS] * table[FOLDED_BLOCKS];
         all_blocks += (long)get_global_size(2))
        for (long tap = (long)get_global_id(1); tap < taps; tap += (long)get_global_size(1))
            pack_tap(weights + weights_offset, filter + filter_offset, flags + flags_offset, table,
                     all_blocks, tap, ci);
}
