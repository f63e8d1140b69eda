/* SPDX-License-Identifier: Apache-2.0 */
/* The tiled col2im algorithm: computes a tile of columns in local memory, then adds up overlapping
 * columns by gathering. It needs no column buffer outside local memory, no atomics and no scatter.
 * Columns are only those of the innermost axis (x); along y and z it gathers taps.
 *
 * A work-group owns MC output channels at COL2IM_POSITIONS neighbouring positions u along x of one
 * output row (outputs o = u*s + t for every phase t), for one part of the phases:
 *
 *   1. column[k][c][i] = sum over kz, ky, ci of data[ci, iz, iy, i] * filter[ci, c, kz, ky, k]
 *      for the taps k of the part, the MC channels c, and the inputs i that the tile's outputs
 *      take: a matrix product, MW columns (pairs k, c) by NX*VW inputs at a time in registers.
 *      Inputs outside the data have columns of zeros and are not computed.
 *   2. output[c, o] = bias + sum over the taps k that reach o of column[k][c][(o + pad - k*d) / s].
 *
 *     column[0]  . . . . . . . . . .     output row   o0 o1 o2 o3 ...
 *     column[1]  . . . . . . . . . .       each takes one number from each column of its phase,
 *     column[2]  . . . . . . . . . .       shifted by the tap: a sum, never a shared write
 *
 * Packed filter: [group][block of MC channels][kz][ky][strip][ci][MW]; a strip is MW columns of a
 * part. col2im_table.h has the table.
 *
 *   macro     meaning                                   legal values
 *   VW        lanes of a vector                         1, 2, 4, 8, 16
 *   NX        vectors of a work-item along x            1 to 4; VW*NX at most the data's extent
 *   MW        columns of a strip                        1 to 16
 *   MC        output channels of a work-group           1 to 64
 *   WG        work-items of a work-group                powers of two; 1: no barrier is compiled in
 *
 * Local memory: a kernel argument. Registers: MW*NX vectors of sums. */
#include "any/col2im_table.h"
#include "common/epilogue.clh"

#if !defined(VW) || !defined(NX) || !defined(MW) || !defined(MC) || !defined(WG)
#error "VW, NX, MW, MC and WG must be set"
#endif
#define TILE (NX * VW)

#if WG > 1
#define GROUP_BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define TILE_FUNCTION /* barriers belong into kernels */
#else
#define GROUP_BARRIER
#define TILE_FUNCTION NOINLINE
#endif

/* Computes one tile: of one batch item, block of channels, output row and part. Element i of a
 * column is at TILE + i - low, so that vectors that are moved left to stay inside the data have
 * room. */
static TILE_FUNCTION void col2im_tile(__global const data_t *restrict data,
                                      __global const packed_t *restrict filter,
                                      const struct epilogue *f, __global const long *restrict table,
                                      __local acc_t *column, const int item, const int tile,
                                      __global const long *part, const int row, const int image)
{
    const int batches = (int)table[FOLDED_BATCHES];
    const int n = image % batches, all_blocks = image / batches;
    const int g = all_blocks / (int)table[FOLDED_BLOCKS],
              block = all_blocks % (int)table[FOLDED_BLOCKS];
    const int in_channels = (int)table[FOLDED_IN_CHANNELS],
              out_channels = (int)table[FOLDED_OUT_CHANNELS];
    const int z = row / (int)table[FOLDED_OUTPUT_Y], y = row % (int)table[FOLDED_OUTPUT_Y];
    __global const long *slice = table + table[FOLDED_SLICES_AT] + z * SLICE_LONGS;
    __global const long *reach_y = table + table[FOLDED_REACH_Y_AT] + y * REACH_LONGS;
    const int taps_y = (int)reach_y[REACH_TAPS];
    const int strips = (int)part[PART_STRIPS];

    const int positions = (int)table[COL2IM_POSITIONS], inputs = (int)table[COL2IM_INPUTS];
    const int input_x = (int)table[FOLDED_INPUT_X], output_x = (int)table[FOLDED_OUTPUT_X];
    const int first_position = tile * positions;
    const int low = first_position + (int)table[FOLDED_FIRST_INPUT];
    const int from = max(low, 0), to = min(low + inputs, input_x); /* the inputs that exist */
    const int columns = (int)table[COL2IM_COLUMNS], elements = (int)table[COL2IM_ROW];
    const int vectors = from < to ? (to - from + TILE - 1) / TILE : 0;

    /* Zeros where there is no input, up to the last element that the overlap-add may read. */
    const int zeros_left = vectors > 0 ? TILE + from - low : elements;
    for (int c = item; c < columns; c += WG) {
        for (int i = 0; i < zeros_left; i++) column[c * elements + i] = 0;
        for (int i = zeros_left == elements ? elements : TILE + to - low; i < elements; i++)
            column[c * elements + i] = 0;
    }
    GROUP_BARRIER;

    /* 1. The columns. */
    const long channel_step = table[FOLDED_DATA_CHANNEL_STEP], y_step = table[FOLDED_DATA_Y_STEP],
               z_step = table[FOLDED_DATA_Z_STEP];
    const acc_t zero = DATA_ZERO(table);
    __global const data_t *own_data = data + n * table[FOLDED_DATA_BATCH_STEP] +
                                      (long)g * in_channels * channel_step +
                                      reach_y[REACH_INPUT] * y_step;
    const long row_weights = table[COL2IM_STRIPS] * in_channels * MW; /* of one (kz, ky) */
    __global const packed_t *own_weights =
        filter + (long)all_blocks * table[FOLDED_KERNEL_Z] * table[FOLDED_KERNEL_Y] * row_weights +
        part[PART_STRIP] * in_channels * MW;
    for (int job = item; job < strips * vectors; job += WG) {
        const int strip = job / vectors;
        const int start = from + job % vectors * TILE; /* the first input that is this job's own */
        const int at = min(
            start,
            input_x - TILE); /* the first input that it computes: vectors stay inside the data */
        vec_t sum[MW][NX];
#pragma unroll
        for (int m = 0; m < MW; m++)
#pragma unroll
            for (int v = 0; v < NX; v++) sum[m][v] = (vec_t)(0);
        for (int jz = 0; jz < slice[SLICE_TAPS]; jz++)
            for (int jy = 0; jy < taps_y; jy++) {
                __global const long *tap_z = table + slice[SLICE_LIST] + jz * SLICE_TAP_LONGS;
                const long kz = tap_z[SLICE_TAP];
                const long ky = reach_y[REACH_TAP] + jy * table[FOLDED_TAP_STEP_Y];
                __global const packed_t *w = own_weights +
                                             (kz * table[FOLDED_KERNEL_Y] + ky) * row_weights +
                                             (long)strip * in_channels * MW;
                __global const data_t *x = own_data + at + tap_z[SLICE_INPUT] * z_step -
                                           jy * table[FOLDED_INPUT_STEP_Y] * y_step;
                for (int ci = 0; ci < in_channels; ci++, x += channel_step, w += MW) {
                    vec_t in[NX];
#pragma unroll
                    for (int v = 0; v < NX; v++) in[v] = READS_DATA(x + v * VW, zero);
#pragma unroll
                    for (int m = 0; m < MW; m++)
#pragma unroll
                        for (int v = 0; v < NX; v++)
                            sum[m][v] = MULTIPLY_ADD(in[v], (vec_t)(READ_WEIGHT(w + m)), sum[m][v]);
                }
            }
#pragma unroll
        for (int m = 0; m < MW; m++) {
            __local acc_t *to_column = column + (strip * MW + m) * elements + TILE + at - low;
#if WG > 1 /* inputs before `start` belong to another work-item */
#pragma unroll
            for (int v = 0; v < NX; v++) {
                acc_t lane[VW];
                STORE(sum[m][v], lane);
                for (int i = 0; i < VW; i++)
                    if (at + v * VW + i >= start) to_column[v * VW + i] = lane[i];
            }
#else
#pragma unroll
            for (int v = 0; v < NX; v++) STORE(sum[m][v], to_column + v * VW);
#endif
        }
    }
    GROUP_BARRIER;

    /* 2. The overlap-add. */
    const int stride = (int)table[FOLDED_STRIDE_X], input_step = (int)table[FOLDED_INPUT_STEP_X];
    const int channels = min(MC, out_channels - block * MC), phases = (int)part[PART_PHASES];
    const int row_vectors = (positions + VW - 1) / VW;
    const long co = (long)g * out_channels + block * MC;
    const long own_output = n * table[FOLDED_OUTPUT_BATCH_STEP] +
                            co * table[FOLDED_OUTPUT_CHANNEL_STEP] +
                            z * table[FOLDED_OUTPUT_Z_STEP] + y * table[FOLDED_OUTPUT_Y_STEP];
    for (int c = 0; c < phases; c++) {
        __global const long *phase = table + table[FOLDED_PHASES_AT] +
                                     (part[PART_PHASE] + c) * PHASE_LONGS;
        const int taps = (int)phase[PHASE_TAPS], first = (int)phase[PHASE_FIRST];
        const int first_column = (int)(phase[PHASE_START] - part[PART_PHASE_TAPS]) * MC;
        for (int job = item; job < channels * row_vectors; job += WG) {
            const int m = job / row_vectors, u = job % row_vectors * VW;
            vec_t sum = (vec_t)(0);
            __local const acc_t *one = column + (first_column + m) * elements + TILE +
                                       (int)phase[PHASE_DISTANCE] + u;
            for (int j = 0; j < taps; j++) sum += LOAD(one + j * (MC * elements - input_step));
            const result_vec_t value = affine(f, sum, co + m);
            const long to_row = own_output + m * table[FOLDED_OUTPUT_CHANNEL_STEP];
            const int o = (first_position + u) * stride + first;
            if (stride == 1 && u + VW <= positions && o + VW <= output_x) {
                put(f, value, to_row + o, co + m);
            } else {
                lane_t lane[VW];
                TO_LANES(f, value, SLOPES_OF(f, co + m), lane);
                for (int i = 0; i < VW; i++)
                    if (u + i < positions && o + i * stride < output_x)
                        PUT_LANE(f, lane[i], to_row + o + i * stride, co + m);
            }
        }
    }
}

KERNEL __attribute__((reqd_work_group_size(WG, 1, 1))) void
tconv_col2im(__global const data_t *restrict data, const ulong data_offset,
             __global const packed_t *restrict filter, const ulong filter_offset,
             EPILOGUE_PARAMETERS, __global const long *restrict table,
             __local acc_t *restrict column, SHARE_PARAMETER)
{
    EPILOGUE(epilogue, table)
    const int tiles = (int)table[FOLDED_TILES], parts = (int)table[COL2IM_PARTS],
              rows = (int)table[FOLDED_OUTPUT_ROWS];
    EACH_SHARED(i)
    {
        const int row_and_image = SHARED_GROUP(i) / (tiles * parts);
        __global const long *part = table + table[COL2IM_PARTS_AT] +
                                    SHARED_GROUP(i) / tiles % parts * PART_LONGS;
        col2im_tile(data + data_offset, filter + filter_offset, &epilogue, table, column,
                    (int)get_local_id(0), SHARED_GROUP(i) % tiles, part, row_and_image % rows,
                    row_and_image / rows);
        GROUP_BARRIER; /* all work-items have read the columns */
    }
}

/* Packs the MW weights of one (group, block), (kz, ky), strip and ci. */
static NOINLINE void pack_strip(__global const filter_t *restrict weights,
                                __global packed_t *restrict filter,
                                __global const long *restrict table, const long all_blocks,
                                const long kzy, const long strip, const long ci)
{
    const long in_channels = table[FOLDED_IN_CHANNELS], strips = table[COL2IM_STRIPS];
    const long kernel_y = table[FOLDED_KERNEL_Y], kernel_zy = table[FOLDED_KERNEL_Z] * kernel_y;
    const acc_t zero = FILTER_ZERO(table);
    const long g = all_blocks / table[FOLDED_BLOCKS], block = all_blocks % table[FOLDED_BLOCKS];
    __global const filter_t *from =
        weights + g * table[FOLDED_SOURCE_GROUP_STEP] + ci * table[FOLDED_SOURCE_IN_STEP] +
        kzy / kernel_y * table[FOLDED_SOURCE_Z_STEP] + kzy % kernel_y * table[FOLDED_SOURCE_Y_STEP];
    __global packed_t *to =
        filter + (((all_blocks * kernel_zy + kzy) * strips + strip) * in_channels + ci) * MW;
    for (int m = 0; m < MW; m++) {
        const long pair = table[table[COL2IM_COLUMNS_AT] + strip * MW + m];
        const long co = block * MC + pair % MC;
        const bool real = pair >= 0 && co < table[FOLDED_OUT_CHANNELS];
        if (real)
            PACK(from + co * table[FOLDED_SOURCE_OUT_STEP] +
                     pair / MC * table[FOLDED_SOURCE_X_STEP],
                 to + m, zero);
        else
            to[m] = 0;
    }
}

/* A work-item packs one input channel after the other. */
KERNEL void tconv_col2im_pack(__global const filter_t *restrict weights, const ulong weights_offset,
                              __global packed_t *restrict filter, const ulong filter_offset,
                              __global const long *restrict table, SHARE_PARAMETER)
{
    const long strips = table[COL2IM_STRIPS];
    const long rows = table[FOLDED_KERNEL_Z] * table[FOLDED_KERNEL_Y] * strips;
    EACH_SHARED(i)
    if (SHARED_ITEM(i) < table[FOLDED_IN_CHANNELS])
        for (long all_blocks = (long)get_global_id(2);
             all_blocks < table[FOLDED_GROUPS] * table[FOLDED_BLOCKS];
             all_blocks += (long)get_global_size(2))
            for (long row = (long)get_global_id(1); row < rows; row += (long)get_global_size(1))
                pack_strip(weights + weights_offset, filter + filter_offset, table, all_blocks,
                           row / strips, row % strips, SHARED_ITEM(i));
}
