/* SPDX-License-Identifier: Apache-2.0 */
/* The channels algorithm for CPUs: the lanes of a vector are output channels. It is
 * output-stationary. It suits channels-last tensors, whose channels are contiguous, and small
 * images of many channels.
 *
 * Outputs are split by their phases: o = u*s + t along each axis, phase t, position u. A work-item
 * has a box of positions and some blocks of output channels. It copies the inputs of the box into
 * local memory, SEGMENT channels of an input point side by side. Then it computes for each phase,
 * and for PX positions at a time,
 *
 *     sum[c][position] += filter[tap][ci][c] * local[position + distance of tap][ci]
 *
 * in registers, one vector of weights for PX broadcast inputs.
 *
 *     work-item   CHANNELS_BOX_Z x _Y x _X positions, CHANNELS_ITEM_BLOCKS blocks of MW channels,
 *                 every phase
 *     vector      VW output channels of one output
 *
 *   WORD             inputs and weights are words of so many input channels, of bytes or
 *                    bf16: words.clh.
 *                    Counts, segments and chunks of channels are then those of words.
 *
 *   BATCHED = 0   the PX positions are neighbours in a row. What lies outside the data is zero in
 *                 local memory; taps that reach all PX positions from outside are left out. With
 *                 PARTS, taps that reach some of them are added to a part only: without the first
 *                 or last one, two, or half.
 *   BATCHED = 1   they are one position in PX images of the batch: all have the same taps, so no
 *                 work is wasted.
 *
 *   TRANSPOSED = 1   for tensors whose rows are contiguous: the accumulators of a box are kept in
 *                    local memory, the channels of an output side by side, and are stored row by
 *                    row; VW outputs of VW channels are transposed in registers.
 *   KEPT = 1         the accumulators of all phases are kept in local memory: for many input
 *                    channels, which a box processes CHANNELS_CHUNK at a time, so that a chunk's
 *                    weights of a phase stay in a cache for all rows of the box; and, with
 *                    TRANSPOSED, to store short rows together.
 *   PHASE_LANES = 1  for large strides along x: lanes are adjacent outputs of one channel; all
 *                    phases of one position are treated like channels. Along x the table then
 *                    describes quotients: stride 1, kernel / stride taps.
 *
 *   SLICED = 1       z counts the outputs of several axes: a box has one of them, and local memory
 *                    the inputs of all its slice's taps (folded_table.h) one behind the other.
 *
 * A zero of the padding must not meet a weight that is infinite or NaN: see exact_output. taps.clh
 * has the packed filter, channels_table.h the table.
 *
 *   macro        meaning                                 legal values
 *   VW           lanes of a vector                       1, 2, 4, 8, 16
 *   MW           output channels of a block              multiples of VW
 *   PX           positions at a time                     at least 1
 *   SEGMENT      channels of an input point side by      1 to 64
 *                side; a constant, so that points lie at
 *                constant distances
 *   ROUND        channels that an iteration of the       1, 2, 4, 8; divides
 *                innermost loop adds                     SEGMENT and all counts
 *   BATCHED      see above                               0, 1
 *   PHASE_LANES  see above                               0, 1
 *   TRANSPOSED   see above; not with PHASE_LANES         0, 1
 *   KEPT         see above                               0, 1
 *   SLICED       see above                               0, 1
 *   PARTS        see above; not with BATCHED, or WORD 4  0, 1
 *   WORD, DOTS   see words.clh; not with PHASE_LANES     absent; 2, 4; 0 to 2
 *   STREAM       see epilogue.clh                        0, 1, 2
 *
 * Registers: MW / VW * PX vectors of sums. Local memory: a kernel argument. */
#include "cpu/parts/box.clh"
#include "cpu/parts/lanes.clh"
#include "cpu/parts/taps.clh"
#include "cpu/parts/words.clh"

#if !defined(PX) || !defined(SEGMENT) || !defined(ROUND) || !defined(BATCHED) ||                   \
    !defined(PHASE_LANES) || !defined(TRANSPOSED) || !defined(KEPT) || !defined(SLICED) ||         \
    !defined(PARTS)
#error "PX, SEGMENT, ROUND, BATCHED, PHASE_LANES, TRANSPOSED, KEPT, SLICED and PARTS must be set"
#endif

enum { AHEAD = 2048 }; /* elements: weights are prefetched that early */

/* An input in all lanes, and weights as they are multiplied: words.clh, or accumulators. */
#if WORD > 1
#define INPUT_IN_LANES(p) word_in_lanes(p)
#define ADD_INPUT(x, w, sum) add_words(x, w, sum)
#define WEIGHTS_AT(p) LOAD(p)
typedef words_t weights_t, input_t;
#else
#define WEIGHTS_AT(p) READS_WEIGHT(p)
typedef vec_t weights_t;
typedef acc_t input_t; /* a variable of vectors would make LLVM order the loads worse */
#define INPUT_IN_LANES(p) (*(p))
#define ADD_INPUT(x, w, sum) MULTIPLY_ADD((vec_t)(x), w, sum)
#endif

/* Adds `count` (ROUND to SEGMENT) input channels of one tap to the positions from `first` to `end`
 * - 1 of PX. The loop runs at least once: some compilers (Intel's 2026.2) store all sums in each
 * round of a loop that may be skipped. */
static INLINED void add_segment(vec_t sum[CV][PX], __local const acc_t *x,
                                __global const packed_t *w, const int count, const int first,
                                const int end)
{
    int ci = 0;
    do {
#pragma unroll
        for (int i = 0; i < ROUND * MW; i += LINE / (int)sizeof(packed_t))
            PREFETCH(1, w + AHEAD + i);
#pragma unroll
        for (int i = 0; i < ROUND; i++) {
            weights_t weight[CV];
#pragma unroll
            for (int c = 0; c < CV; c++) weight[c] = WEIGHTS_AT(w + i * MW + c * VW);
#pragma unroll
            for (int v = first; v < end; v++) {
                const input_t input = INPUT_IN_LANES(x + v * SEGMENT + i);
#pragma unroll
                for (int c = 0; c < CV; c++) sum[c][v] = ADD_INPUT(input, weight[c], sum[c][v]);
            }
        }
        x += ROUND;
        w += ROUND * MW;
    } while ((ci += ROUND) < count);
}

/* Adds a chunk of one tap to the positions from `first` to `end` - 1. */
static INLINED void add_tap(vec_t sum[CV][PX], __local const acc_t *x, __global const packed_t *w,
                            const int count, const int segment_step, const int first, const int end)
{
    for (int ci = 0; ci < count; ci += SEGMENT, x += segment_step, w += SEGMENT * MW)
        add_segment(sum, x, w, min((int)SEGMENT, count - ci), first, end);
}

#if PARTS && (BATCHED || PACKED_SUMS)
#error "PARTS is not for BATCHED, or words of four"
#endif
#if PARTS && PX >= 4
#define HALF_POSITIONS ((PX + 1) / 2)
#define ADD_FIRST(n)                                                                               \
    if (end <= (n)) {                                                                              \
        add_tap(sum, x, w, count, segment_step, 0, n);                                             \
        return true;                                                                               \
    }
#define ADD_LAST(n)                                                                                \
    if (first >= PX - (n)) {                                                                       \
        add_tap(sum, x, w, count, segment_step, PX - (n), PX);                                     \
        return true;                                                                               \
    }
/* Adds to the smallest part of the positions that contains those from `first` to `end` - 1. False
 * if only the whole contains them. */
static INLINED bool add_to_part(vec_t sum[CV][PX], __local const acc_t *x,
                                __global const packed_t *w, const int count, const int segment_step,
                                const int first, const int end)
{
    if (first == 0 && end == PX) return false;
    ADD_FIRST(HALF_POSITIONS)
    ADD_LAST(HALF_POSITIONS)
    ADD_FIRST(PX - 2)
    ADD_LAST(PX - 2)
    ADD_FIRST(PX - 1)
    ADD_LAST(PX - 1)
    return false;
}
#endif

/* The lanes of a block that are outputs. */
struct span {
    int first, last;
};

static struct span lanes_of(__global const long *table, const int position, const int phase,
                            const int lanes)
{
#if PHASE_LANES
    const long first = position * table[CHANNELS_STRIDE] + phase - table[CHANNELS_CROP];
    return (struct span){(int)clamp(-first, 0L, (long)lanes),
                         (int)clamp(table[CHANNELS_OUTPUT] - first, 0L, (long)lanes)};
#else
    return (struct span){0, lanes};
#endif
}

/* The taps that reach a row of one phase from inside the data along z and y. */
struct reads {
    int count;
    int tap[MOST_READS];   /* the tap's index in the packed filter */
    long from[MOST_READS]; /* its input in local memory for the row's first position */
    int x[MOST_READS];     /* its input along x in the data */
};

/* A row of positions of one phase (tz, ty, tx), with the numbers that all its tiles share. */
struct row {
    int z, y, x;                   /* of its first output */
    int positions;                 /* BATCHED: images */
    long position_step, lane_step; /* in the output */
    int kept_step;                 /* between positions' sums in local memory */
    int phase, lanes;              /* of the block */
};

static void add_read(struct reads *reads, const int tap, const int from, const int x)
{
    reads->tap[reads->count] = tap;
    reads->from[reads->count] = from;
    reads->x[reads->count++] = x;
}

static void find_reads(__global const long *table, const struct box *box, const struct steps *steps,
                       const int z, const int y, const int kind_number, struct reads *reads)
{
    __global const long *kind = table + table[CHANNELS_PHASES_AT] + kind_number * KIND_LONGS;
    __global const long *read = table + table[CHANNELS_TAP_LIST_AT] + kind[KIND_LIST] * READ_LONGS;
#if SLICED
    __global const long *slice = slice_at(table, box->z);
    const int slice_taps = (int)table[FOLDED_KERNEL_Y] * (int)table[FOLDED_KERNEL_X];
#else
    const int low_z = box->z + z + (int)table[CHANNELS_LOW_Z];
#endif
    const int low_y = box->y + y + (int)table[CHANNELS_LOW_Y];
    const int low_x = box->x + (int)table[CHANNELS_LOW_X];
    reads->count = 0;
    for (int tap = (int)kind[KIND_TAPS]; tap > 0; tap--, read += READ_LONGS) {
        const int iy = (int)read[READ_Y], ix = (int)read[READ_X];
        if (low_y + iy < 0 || low_y + iy >= table[FOLDED_INPUT_Y]) continue;
        const int from = (y + iy) * steps->y + ix * steps->x;
#if SLICED
        __global const long *tap_z = table + slice[SLICE_LIST];
        for (int j = 0; j < slice[SLICE_TAPS]; j++, tap_z += SLICE_TAP_LONGS)
            add_read(reads, (int)tap_z[SLICE_TAP] * slice_taps + (int)read[READ_TAP],
                     from + j * steps->z, low_x + ix);
#else
        const int iz = (int)read[READ_Z];
        if (low_z + iz >= 0 && low_z + iz < table[FOLDED_INPUT_Z])
            add_read(reads, (int)read[READ_TAP], from + (z + iz) * steps->z, low_x + ix);
#endif
    }
}

/* One output element of a row, with care. */
static acc_t exact_one(__global const data_t *data, __global const packed_t *weights,
                       __global const long *table, const struct row *row, const int x, const int m)
{
#if SLICED
    return exact_position(data, weights, table, slice_at(table, row->z), row->y, x, m);
#else
    return exact_output(data, weights, table, row->z, row->y, x, m);
#endif
}

/* The sums of a tile before a chunk: 0, or with KEPT those of the chunks before. */
static INLINED void begin_sums(vec_t sum[CV][PX], __local const acc_t *kept, const struct row *row,
                               const struct chunk *chunk, const int positions)
{
#pragma unroll
    for (int c = 0; c < CV; c++)
#pragma unroll
        for (int v = 0; v < PX; v++)
            sum[c][v] = KEPT && chunk->first > 0 && v < positions
                            ? LOAD(kept + v * row->kept_step + c * VW)
                            : (vec_t)(0);
}

/* Prefetches the cache lines of a tile's outputs, which arrive while products are added. */
static INLINED void prefetch_outputs(const struct epilogue *f, const long at, const struct row *row,
                                     const struct chunk *chunk, const int positions)
{
#if !TRANSPOSED && !STREAM
    if (chunk->last && row->lane_step == 1)
#pragma unroll
        for (int v = 0; v < PX; v++)
            if (v < positions) {
#pragma unroll
                for (int m = 0; m < MW; m += LINE / (int)sizeof(output_t))
                    PREFETCH_TO_WRITE(f->output + at + v * row->position_step + m);
            }
#endif
}

/* Adds a chunk of all taps of a tile. True if zeros of the padding were added, too. */
static INLINED bool add_taps(vec_t sum[CV][PX], __global const packed_t *weights,
                             __global const long *table, __local const acc_t *local_memory,
                             const struct reads *reads, const struct steps *steps,
                             const struct chunk *chunk, const int x, const int width)
{
    const int input_x = (int)table[FOLDED_INPUT_X];
    const int packed_channels = PACKED_CHANNELS((int)table[FOLDED_IN_CHANNELS]);
    bool padded = false;
#if PACKED_SUMS
    vec_t weight_sum[CV]; /* of all taps */
#pragma unroll
    for (int c = 0; c < CV; c++) weight_sum[c] = (vec_t)(0);
#endif
    for (int j = 0; j < reads->count; j++) {
        const int input = reads->x[j] + x, first = max(-input, 0),
                  end = min(width, input_x - input);
        if (first >= end) continue;
        __global const packed_t *w = weights +
                                     ((long)reads->tap[j] * packed_channels + chunk->first) * MW;
#if PACKED_SUMS
#pragma unroll
        for (int c = 0; c < CV; c++)
            weight_sum[c] +=
                LOAD(weights + c * VW +
                     ((long)reads->tap[j] * packed_channels + packed_channels - 1) * MW);
#endif
        padded = padded || first > 0 || end < width;
        __local const acc_t *from = local_memory + reads->from[j] + x * steps->x;
#if PARTS && PX >= 4
        if (add_to_part(sum, from, w, chunk->count, steps->segment, first, end)) continue;
#endif
        add_tap(sum, from, w, chunk->count, steps->segment, 0, PX);
    }
#if PACKED_SUMS
    if (chunk->first == 0) {
#pragma unroll
        for (int c = 0; c < CV; c++) {
            const vec_t too_much = weight_sum[c] * (vec_t)(WORD_ZERO(DATA_ZERO(table)));
#pragma unroll
            for (int v = 0; v < PX; v++) sum[c][v] -= too_much;
        }
    }
#endif
    return padded;
}

/* Computes the outputs of a tile one by one: zeros of the padding must not meet its weights. */
static INLINED void exact_tile(__global const data_t *data, __global const packed_t *weights,
                               const struct epilogue *f, const struct lanes *lanes, const long at,
                               __global const long *table, __local acc_t *kept,
                               const struct row *row, const int ox, const int positions)
{
    for (int v = 0; v < positions; v++) {
        const int o = ox + v * (int)table[FOLDED_STRIDE_X];
#if TRANSPOSED
        for (int m = 0; m < MW; m++) /* all lanes are read later; those without an output are 0 */
            kept[v * row->kept_step + m] =
                m < row->lanes ? exact_one(data, weights, table, row, o, m) : 0;
#else
        const struct span own_lanes = lanes_of(table, o, row->phase, row->lanes);
        for (int m = own_lanes.first; m < own_lanes.last; m++) {
            const acc_t own = exact_one(data, weights, table, row, o, m);
            const long channel = lanes->channel + (PHASE_LANES ? 0 : m);
            put_one(f, affine_one(f, own, channel),
                    at + v * row->position_step + m * row->lane_step, channel);
        }
#endif
    }
}

/* Keeps the sums of a tile in local memory. */
static INLINED void keep_sums(const vec_t sum[CV][PX], __local acc_t *kept, const struct row *row,
                              const int positions)
{
#pragma unroll
    for (int v = 0; v < PX; v++)
        if (v < positions) {
#pragma unroll
            for (int c = 0; c < CV; c++) STORE(sum[c][v], kept + v * row->kept_step + c * VW);
        }
}

#if !TRANSPOSED
/* Finishes and stores the outputs of a tile: all at once if all lanes are outputs and neighbours,
 * else position by position. */
static INLINED void store_tile(const vec_t sum[CV][PX], const struct epilogue *f,
                               const struct lanes *lanes, const long at, __global const long *table,
                               const struct row *row, const int ox, const int positions)
{
    /* Copies: outputs of bytes may alias everything, so that compilers would load the originals
     * again after each store. */
    const struct epilogue own_f = *f;
    const struct lanes own = *lanes;
    const long position_step = row->position_step;
    const struct span first_lanes = lanes_of(table, ox, row->phase, row->lanes);
    const struct span last_lanes = lanes_of(
        table, BATCHED ? ox : ox + (PX - 1) * (int)table[FOLDED_STRIDE_X], row->phase, row->lanes);
    const bool any_positions = !PHASE_LANES;
    if ((any_positions || positions == PX) && row->lane_step == 1 && first_lanes.first == 0 &&
        last_lanes.last == MW) {
#pragma unroll
        for (int v = 0; v < PX; v++)
            if (v < positions) {
#pragma unroll
                for (int c = 0; c < CV; c++)
                    put_lanes(&own_f, affine_lanes(sum[c][v], own.factor[c], own.bias[c]),
                              at + v * position_step + c * VW, own.slope[c]);
            }
        return;
    }
#pragma unroll
    for (int v = 0; v < PX; v++)
        if (v < positions) {
            result_vec_t value[CV];
#pragma unroll
            for (int c = 0; c < CV; c++)
                value[c] = affine_lanes(sum[c][v], own.factor[c], own.bias[c]);
            const struct span own_lanes = lanes_of(
                table, BATCHED ? ox : ox + v * (int)table[FOLDED_STRIDE_X], row->phase, row->lanes);
            store_lanes(&own_f, &own, at + v * position_step, value, row->lane_step,
                        own_lanes.first, own_lanes.last);
        }
}
#endif

/* Computes a chunk of PX positions, from position `x` of a row on. Their outputs begin at `at`,
 * their sums at `kept`. `data` is as for exact_output, for the block's first lane. */
static void compute(__global const data_t *data, __global const packed_t *weights,
                    const bool nonfinite, const struct epilogue *f, const struct lanes *lanes,
                    const long at, __global const long *table, __local const acc_t *local_memory,
                    __local acc_t *kept, const struct reads *reads, const struct row *row,
                    const struct steps *steps, const struct chunk *chunk, const int x)
{
    const int positions = BATCHED ? row->positions : min((int)PX, row->positions - x);
    const int width = BATCHED ? 1 : positions;
    const int ox = row->x + x * (int)table[FOLDED_STRIDE_X];

    vec_t sum[CV][PX];
    begin_sums(sum, kept, row, chunk, positions);
    prefetch_outputs(f, at, row, chunk, positions);
    const bool padded = add_taps(sum, weights, table, local_memory, reads, steps, chunk, x, width);
#if FLOATING
    if (nonfinite && padded && chunk->last) { /* never with BATCHED */
        exact_tile(data, weights, f, lanes, at, table, kept, row, ox, positions);
        return;
    }
#endif
#if TRANSPOSED || KEPT
    if (TRANSPOSED || !chunk->last) {
        keep_sums(sum, kept, row, positions);
        return;
    }
#endif
#if !TRANSPOSED
    store_tile(sum, f, lanes, at, table, row, ox, positions);
#endif
}

/* Computes a chunk of all rows of a box for one phase (tz, ty, tx) and block. The outputs of the
 * box's first image and the block's first lane begin at `at`, their sums at `kept`. */
static void compute_rows(__global const data_t *data, __global const packed_t *weights,
                         const bool nonfinite, const struct epilogue *f,
                         const struct lanes *own_lanes, const long at, __global const long *table,
                         __local const acc_t *local_memory, __local acc_t *kept,
                         const struct box *box, const struct steps *steps,
                         const struct chunk *chunk, const int phase, const int lanes, const int tz,
                         const int ty, const int tx)
{
    const int stride_z = (int)table[FOLDED_STRIDE_Z], stride_y = (int)table[FOLDED_STRIDE_Y];
    const int stride_x = (int)table[FOLDED_STRIDE_X];
    const int kind = (tz * stride_y + ty) * stride_x + tx;
    struct row row;
    row.phase = phase;
    row.lanes = lanes;
    row.lane_step = table[CHANNELS_LANE_STEP];
    row.x = box->x * stride_x + tx;
    const int left = (int)table[FOLDED_OUTPUT_X] - row.x; /* outputs */
    const int positions_x = min(box->count_x, (left + stride_x - 1) / stride_x);
    row.positions = BATCHED ? box->count_n : positions_x;
    row.position_step = BATCHED ? table[FOLDED_OUTPUT_BATCH_STEP]
                                : stride_x * table[FOLDED_OUTPUT_X_STEP];
    const int kept_rows = KEPT ? box->outputs_z * box->outputs_y : box->count_z * box->count_y;
    row.kept_step = (BATCHED ? kept_rows * box->outputs_x : stride_x) * MW;
    for (int z = 0; z < box->count_z; z++)
        for (int y = 0; y < box->count_y; y++) {
            row.z = (box->z + z) * stride_z + tz;
            row.y = (box->y + y) * stride_y + ty;
            if (row.z >= table[FOLDED_OUTPUT_Z] || row.y >= table[FOLDED_OUTPUT_Y]) continue;
            const int kept_row = KEPT ? (z * stride_z + tz) * box->outputs_y + y * stride_y + ty
                                      : z * box->count_y + y;
            struct reads reads;
            find_reads(table, box, steps, z, y, kind, &reads);
            for (int x = 0; x < positions_x; x += BATCHED ? 1 : PX)
                compute(data, weights, nonfinite, f, own_lanes,
                        at + row.z * table[FOLDED_OUTPUT_Z_STEP] +
                            row.y * table[FOLDED_OUTPUT_Y_STEP] +
                            (row.x + x * stride_x) * table[FOLDED_OUTPUT_X_STEP],
                        table, local_memory,
                        kept + (kept_row * box->outputs_x + tx + x * stride_x) * MW, &reads, &row,
                        steps, chunk, x);
        }
}

#if TRANSPOSED
/* Stores the sums that compute_rows left in local memory. With KEPT tz and ty are 0, and it stores
 * all phases, rows that follow each other in memory together. Otherwise it stores the phases (tz,
 * ty) and all phases along x. */
static void store_rows(const struct epilogue *f, __local acc_t *kept, __global const long *table,
                       const struct box *box, const long at, const long channel, const int lanes,
                       const int tz, const int ty)
{
    const int step_z = KEPT ? 1 : (int)table[FOLDED_STRIDE_Z];
    const int step_y = KEPT ? 1 : (int)table[FOLDED_STRIDE_Y];
    const int rows_z = KEPT ? box->outputs_z : box->count_z;
    const int rows_y = KEPT ? box->outputs_y : box->count_y;
    const bool together = KEPT && box->outputs_x == table[FOLDED_OUTPUT_X] &&
                          table[FOLDED_OUTPUT_Y_STEP] == table[FOLDED_OUTPUT_X];
    const int rows = together ? rows_y : 1, count = rows * box->outputs_x;
    const long first_z = box->z * table[FOLDED_STRIDE_Z], first_y = box->y * table[FOLDED_STRIDE_Y];
    for (int n = 0; n < box->count_n; n++)
        for (int z = tz; z < tz + rows_z * step_z; z += step_z)
            for (int y = ty; y < ty + rows_y * step_y; y += rows * step_y, kept += count * MW)
                if (z < box->outputs_z && y < box->outputs_y)
                    store_transposed(f, kept, count,
                                     at + n * table[FOLDED_OUTPUT_BATCH_STEP] +
                                         (first_z + z) * table[FOLDED_OUTPUT_Z_STEP] +
                                         (first_y + y) * table[FOLDED_OUTPUT_Y_STEP] +
                                         box->x * table[FOLDED_STRIDE_X],
                                     table[CHANNELS_LANE_STEP], channel, lanes);
}
#endif

/* The number of outputs along an axis that belong to `count` positions from `first` on, of all
 * phases. */
static int outputs_of(const int first, const int count, const long stride, const long output)
{
    return (int)min(count * stride, output - first * stride);
}

/* The whole work of work-item number `item`. */
static NOINLINE void channels_item(const int item, __global const data_t *restrict data,
                                   __global const packed_t *restrict filter,
                                   __global const uint *restrict flags, const struct epilogue *f,
                                   __global const long *restrict table,
                                   __local acc_t *restrict local_memory)
{
    const int blocks = (int)table[FOLDED_BLOCKS], item_blocks = (int)table[CHANNELS_ITEM_BLOCKS];
    const int positions_z = (int)table[CHANNELS_POSITIONS_Z],
              positions_y = (int)table[CHANNELS_POSITIONS_Y];
    const int positions_x = (int)table[CHANNELS_POSITIONS_X], batches = (int)table[FOLDED_BATCHES];
    const int box_z = (int)table[CHANNELS_BOX_Z], box_y = (int)table[CHANNELS_BOX_Y];
    const int box_x = (int)table[CHANNELS_BOX_X], box_n = BATCHED ? PX : 1;

    /* The work-item's blocks, positions, images and group. Neighbouring work-items share their
     * positions. */
    const int block_parts = (blocks + item_blocks - 1) / item_blocks;
    const int parts_x = (positions_x + box_x - 1) / box_x,
              parts_y = (positions_y + box_y - 1) / box_y;
    const int parts_z = (positions_z + box_z - 1) / box_z, parts_n = (batches + box_n - 1) / box_n;
    struct box box;
    int rest = item;
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
    box.count_x = min(box_x, positions_x - box.x);
    box.count_y = min(box_y, positions_y - box.y);
    box.count_z = min(box_z, positions_z - box.z);
    box.count_n = min(box_n, batches - box.n);
    box.outputs_x = outputs_of(box.x, box.count_x, table[FOLDED_STRIDE_X], table[FOLDED_OUTPUT_X]);
    box.outputs_y = outputs_of(box.y, box.count_y, table[FOLDED_STRIDE_Y], table[FOLDED_OUTPUT_Y]);
    box.outputs_z = outputs_of(box.z, box.count_z, table[FOLDED_STRIDE_Z], table[FOLDED_OUTPUT_Z]);
    const int last_block = min(first_block + item_blocks, blocks);

    const int in_channels = (int)table[FOLDED_IN_CHANNELS];
    const int out_channels = (int)table[FOLDED_OUT_CHANNELS];
    const int inputs = PACKED_WORDS(in_channels);
    const int chunk_channels = KEPT ? (int)table[CHANNELS_CHUNK] : inputs;
    const int segments = (chunk_channels + SEGMENT - 1) / SEGMENT;
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

    const struct epilogue epilogue = *f; /* in registers */
    __global const data_t *own_data = data +
                                      (long)g * in_channels * table[FOLDED_DATA_CHANNEL_STEP];
    struct chunk chunk;
    for (chunk.first = 0; chunk.first < inputs; chunk.first += chunk_channels) {
        chunk.count = min(chunk_channels, inputs - chunk.first);
        chunk.last = chunk.first + chunk.count == inputs;
        copy_inputs(own_data, table, local_memory, &box, &steps, &chunk);
        __local acc_t *kept = local_memory + table[CHANNELS_KEPT_AT];

        for (int block = first_block; block < last_block; block++) {
            const int all_blocks = g * blocks + block;
#if PHASE_LANES
            const int phase_blocks = (int)table[CHANNELS_PHASE_BLOCKS];
            const int phase = block % phase_blocks * MW;
            const int lanes = min(MW, (int)table[CHANNELS_STRIDE] - phase);
            const long co = (long)g * out_channels + block / phase_blocks;
#else
            const int phase = 0, lanes = min(MW, out_channels - block * MW);
            const long co = (long)g * out_channels + block * MW;
#endif
            __global const packed_t *weights = weights_of(filter, table, all_blocks);
            const long to =
                box.n * table[FOLDED_OUTPUT_BATCH_STEP] + co * table[FOLDED_OUTPUT_CHANNEL_STEP] +
                (PHASE_LANES ? (phase - table[CHANNELS_CROP]) * table[CHANNELS_LANE_STEP] : 0);
            struct lanes own_lanes;
            find_lanes(&epilogue, co, lanes, &own_lanes);

            for (int tz = 0; tz < table[FOLDED_STRIDE_Z]; tz++)
                for (int ty = 0; ty < table[FOLDED_STRIDE_Y]; ty++) {
                    for (int tx = 0; tx < table[FOLDED_STRIDE_X]; tx++)
                        compute_rows(own_data + box.n * table[FOLDED_DATA_BATCH_STEP], weights,
                                     flags[all_blocks] != 0, &epilogue, &own_lanes, to, table,
                                     local_memory, kept, &box, &steps, &chunk, phase, lanes, tz, ty,
                                     tx);
#if TRANSPOSED && !KEPT
                    store_rows(&epilogue, kept, table, &box, to, co, lanes, tz, ty);
#endif
                }
#if TRANSPOSED && KEPT
            if (chunk.last) store_rows(&epilogue, kept, table, &box, to, co, lanes, 0, 0);
#endif
#if KEPT
            kept += box.count_n * box.outputs_z * box.outputs_y * box.outputs_x * MW;
#endif
        }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
tconv_channels(__global const data_t *restrict data, const ulong data_offset,
               __global const packed_t *restrict filter, const ulong filter_offset,
               __global uint *restrict flags, const ulong flags_offset, EPILOGUE_PARAMETERS,
               __global const long *restrict table, __local acc_t *restrict local_memory,
               SHARE_PARAMETER)
{
    PACK_WITHOUT_FILTER
    EPILOGUE(epilogue, table)
    EACH_SHARED(i)
    channels_item(SHARED_GROUP(i), data + data_offset, filter + filter_offset, flags + flags_offset,
                  &epilogue, table, local_memory);
}
