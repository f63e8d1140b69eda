/* SPDX-License-Identifier: Apache-2.0 */
/* The tiled algorithm for GPUs: computes layers as matrix products from local memory, with many
 * accumulators in the registers of a work-item. It is output-stationary, for all element types, and
 * uses plain multiply-adds.
 *
 * positions.clh has phases, rows, positions and the packed filter. For each phase of work-groups
 *
 *     sum[row][position] = sum over taps and input channels of
 *                          filter[tap][channel][row] * data[channel][position + distance of tap]
 *
 * is a product of matrices over all positions of all batch items.
 *
 *                          positions (n, z, y, x)
 *              +------------------- NT ------------------+
 *              |  4 x 4    |           |  4 x 4    |     |     A work-item has TM x TN sums,
 *     rows    MT  sums     |           |  sums     |     |     in blocks of 4 x 4 that are
 *              |-----------+           +-----------+     |     far apart: neighbours then
 *              |  4 x 4    |           |  4 x 4    |     |     read neighbouring quads.
 *              +-----------------------------------------+
 *
 * A stage is KS input channels of one tap. The outer loop goes over taps, the inner one over
 * channels. A work-item fetches the same positions in all stages, so that an address moves by a
 * constant from stage to stage. A mask, computed before the stages, has a bit for each of up to 32
 * taps: it is set if the position has an input for this tap. Taps that reach no position of the
 * tile are skipped.
 * Local memory holds two stages: while one is multiplied, the next is loaded through registers.
 * With SLICES, parts of the work-group multiply different channels of the stage for the same tile,
 * and add up their sums at the end in a fixed order. With SPLIT, work-groups have parts of the
 * channels, and write their sums to the workspace; tconv_tiled_finish adds them up in a fixed
 * order.
 *
 * A position without an input has a zero, which must not meet a weight that is infinite or NaN.
 * Packing therefore marks groups with such weights, and their outputs are computed one by one. If a
 * phase lacks a tap, the zero weight in its place may meet such an input: the outputs of a
 * work-item whose sums are not finite are also computed one by one.
 *
 *   macro       meaning                                                       legal values
 *   MT, NT      rows and positions of a tile                                  multiples of TM, TN
 *   TM, TN      rows and positions of a work-item                             4, 8, 12, 16
 *   KS          input channels of a stage                                     multiples of 4
 *   SLICES      parts of the work-group, each with its channels of a stage    divides KS and TM
 *   WHOLE       1: KS divides the number of input channels                    0, 1
 *   LAST        1: input channels are neighbours, as are output channels      0, 1
 *   FOLDED_LAST 1: with LAST, rows are quads of output channels of a phase    0, 1
 *   QUADS       1: with LAST, groups of 4 channels are aligned to their size  0, 1
 *               if the tensors are
 *   ROUNDS      1: a phase may have more than ROUND_TAPS taps; finding them   0, 1
 *               takes registers during the stages
 *   LACKING     1: some phases that are rows have fewer taps than others;     0, 1
 *               zero weights stand for the missing taps
 *   SPLIT       1: work-groups of several parts share the input channels;     0, 1, 2
 *               2: the kernel that adds up their sums: more slices with fewer
 *               rows or positions each; KS has no effect
 *   PZ, PY, PX  phases along each axis that are rows                          1, the stride
 *
 * Registers: TM * TN sums. */
#include "gpu/positions.clh"

#if !defined(MT) || !defined(NT) || !defined(TM) || !defined(TN) || !defined(KS) ||                \
    !defined(SLICES) || !defined(WHOLE) || !defined(LAST) || !defined(FOLDED_LAST) ||              \
    !defined(QUADS) || !defined(ROUNDS) || !defined(LACKING) || !defined(SPLIT) || !defined(PZ) || \
    !defined(PY) || !defined(PX)
#error "MT to SPLIT, PZ, PY and PX must be set"
#endif
#if MT % TM != 0 || NT % TN != 0 || TM % 4 != 0 || TN % 4 != 0 || KS % (4 * SLICES) != 0 ||        \
    TM % SLICES != 0
#error "the tile does not fit to its parts"
#endif

#define EACH _Pragma("unroll")
#define LANES_M (MT / TM)
#define LANES_N (NT / TN)
#define SLICE_ITEMS (LANES_M * LANES_N)
#if ITEMS != SLICES * LANES_M * LANES_N
#error "ITEMS must be the work-items of the tile"
#endif

/* Local memory of a stage: KS rows of weights, KS rows of inputs. The padding puts two neighbouring
 * quads of a position into different banks. */
#define INPUT_STEP (NT + 4 * LAST)
#define STAGE_NUMBERS (KS * (MT + INPUT_STEP))
#define SHARED_NUMBERS ((SLICES - 1) * (TM / SLICES) * TN * SLICE_ITEMS)
#define LOCAL_NUMBERS (2 * STAGE_NUMBERS > SHARED_NUMBERS ? 2 * STAGE_NUMBERS : SHARED_NUMBERS)

/* Weights of a stage in quads of rows, and how many of them a work-item moves. */
#define WEIGHT_QUADS (KS * MT / 4)
#define WEIGHT_PARTS ((WEIGHT_QUADS + ITEMS - 1) / ITEMS)

/* Inputs. Neighbouring work-items fetch neighbours in memory: positions of a channel, or quads of
 * channels of a position. A work-item has OWN_POSITIONS positions, POSITIONS_APART from each other.
 * For each position it fetches OWN_CHANNELS channels, from FETCHED_CHANNEL on, CHANNELS_APART from
 * each other. Local memory has the positions of a channel in such an order that a work-item reads
 * quads of positions LANES_N apart. Neighbouring work-items then store neighbouring outputs. */
#if LAST
#define STAGE_QUADS (KS / 4)
#define OWN_POSITIONS ((NT * STAGE_QUADS + ITEMS - 1) / ITEMS)
#define POSITIONS_APART (ITEMS / STAGE_QUADS)
#define FETCHED_POSITION(item) ((item) / STAGE_QUADS)
#define FETCHED_CHANNEL(item) ((item) % STAGE_QUADS * 4)
#define OWN_CHANNELS 4
#define CHANNELS_APART 1
#define COLUMN(position) (position)
#define POSITION_OF(tn, block, lane) ((block)*4 * LANES_N + (tn)*4 + (lane))
#if ITEMS % STAGE_QUADS != 0
#error "a work-item would have several quads of a position"
#endif
#else
#define OWN_POSITIONS (NT > ITEMS ? NT / ITEMS : 1)
#define POSITIONS_APART ITEMS
#define FETCHED_POSITION(item) ((item) % NT)
#define FETCHED_CHANNEL(item) (NT > ITEMS ? 0 : (item) / NT)
#define CHANNELS_APART (NT > ITEMS ? 1 : ITEMS / NT)
#define OWN_CHANNELS (KS / CHANNELS_APART)
#define COLUMN(position)                                                                           \
    ((position) / (4 * LANES_N) * (4 * LANES_N) + (position) % LANES_N * 4 +                       \
     (position) % (4 * LANES_N) / LANES_N)
#define POSITION_OF(tn, block, lane) ((block)*4 * LANES_N + (lane)*LANES_N + (tn))
#if NT % ITEMS != 0 && ITEMS % NT != 0
#error "work-items have no positions of their own"
#endif
#endif
#define IS_FETCHED(position) (NT % POSITIONS_APART == 0 || (position) < NT)

/* ---- stages --------------------------------------------------------------------------------- */

#if SPLIT < 2
/* The range of positions of a tile along each axis. */
struct range {
    FIRST_MEMBER
    struct position first, last;
};

static struct range range_of(const int first, const int last, table_t table)
{
    struct range range;
    range.first = position_at(first, table);
    range.last = position_at(last, table);
    const bool all_z = range.first.n != range.last.n,
               all_y = all_z || range.first.z != range.last.z,
               all_x = all_y || range.first.y != range.last.y;
    if (all_z) {
        range.first.z = 0;
        range.last.z = divisor_of(table[TILED_POSITIONS_Z]) - 1;
    }
    if (all_y) {
        range.first.y = 0;
        range.last.y = divisor_of(table[TILED_POSITIONS_Y]) - 1;
    }
    if (all_x) {
        range.first.x = 0;
        range.last.x = divisor_of(table[TILED_POSITIONS_X]) - 1;
    }
    return range;
}

/* True if a tap at this distance reaches the range along each axis. Without branches. */
static bool reaches(const struct range *range, const int z, const int y, const int x,
                    const struct position *inputs)
{
    return (range->last.z + z >= 0) & (range->first.z + z < inputs->z) & (range->last.y + y >= 0) &
           (range->first.y + y < inputs->y) & (range->last.x + x >= 0) &
           (range->first.x + x < inputs->x);
}

/* Reads a quad of neighbouring channels, and one of packed weights, both aligned to their size. On
 * PoCL quads need no alignment, and its buffers may have none. */
#define IS_HALF_f16 1
#define IS_HALF_bf16 2
#if NATIVE || !FLOATING
#define READ_QUAD(p, zero) READS_DATA(p, zero)
#elif PASTE(IS_HALF_, DATA) == 1 && HALF
#define READ_QUAD(p, zero) FLOATS_OF(*(__global const half4 *)(p))
#elif PASTE(IS_HALF_, DATA) == 1
#define READ_QUAD(p, zero) vloada_half4(0, (__global const half *)(p))
#elif PASTE(IS_HALF_, DATA) == 2
#define READ_QUAD(p, zero) as_float4(convert_uint4(*(__global const ushort4 *)(p)) << 16)
#else
#define READ_QUAD(p, zero) (*(__global const vec_t *)(p))
#endif
#if NATIVE
#define READ_WEIGHTS(p) LOAD(p)
#else
#define READ_WEIGHTS(p) (*(__global const vec_t *)(p))
#endif

/* Where the inputs and weights are that a work-item fetches in every stage. */
struct fetch {
    FIRST_MEMBER
    __global const data_t *data[OWN_POSITIONS]; /* input of its first channel, for distance 0 */
    uint inside[OWN_POSITIONS]; /* a bit for each tap, the highest being the first */
    uint weights[WEIGHT_PARTS]; /* from the stage's first weight */
    int channel;
    int in_channels, rows;
    uint channel_step; /* unsigned: signs take instructions in every address */
    bool aligned;      /* quads of channels are aligned as READ_QUAD needs them */
    acc_t zero;
};

/* Begins `fetch`: the channels that the work-group adds up. With SPLIT, `data` and `weights` move
 * to the first channel of its part. */
static INLINED void find_channels(struct fetch *fetch, __global const data_t **data,
                                  __global const packed_t **weights, const struct tile *tile,
                                  table_t table)
{
    fetch->channel = FETCHED_CHANNEL((int)get_local_id(0));
    fetch->in_channels = (int)table[FOLDED_IN_CHANNELS];
    fetch->rows = (int)table[TILED_ROWS];
    fetch->channel_step = (uint)STEP(table, DATA_CHANNEL);
#if SPLIT
    const int skipped = tile->part * (int)table[TILED_PART_CHANNELS];
    *data += (ulong)skipped * fetch->channel_step;
    *weights += (long)skipped * fetch->rows;
    fetch->in_channels = min(fetch->in_channels - skipped, (int)table[TILED_PART_CHANNELS]);
#endif
    fetch->aligned = (size_t)*data % (4 * sizeof(data_t)) == 0;
    fetch->zero = DATA_ZERO(table);
}

/* Finds the positions whose inputs a work-item fetches, and these inputs for distance 0. */
static INLINED void find_inputs(struct fetch *fetch, struct position position[OWN_POSITIONS],
                                __global const data_t *data, const struct tile *tile, table_t table)
{
    const int item = (int)get_local_id(0);
    EACH for (int p = 0; p < OWN_POSITIONS; p++)
    {
        const int own = FETCHED_POSITION(item) + p * POSITIONS_APART;
        position[p] = position_at(tile->first + (own < tile->count ? own : 0), table);
        fetch->data[p] = data + input_at(&position[p], table) +
                         (ulong)fetch->channel * fetch->channel_step;
        if (own >= tile->count) position[p].z = -(1 << 30); /* outside for every tap */
    }
}

/* Finds the weights that a work-item fetches. Rows past the last one are other tiles' rows; their
 * sums are not stored. */
static INLINED void find_weights(struct fetch *fetch, const struct tile *tile)
{
    EACH for (int i = 0; i < WEIGHT_PARTS; i++)
    {
        const int own = (i * ITEMS + (int)get_local_id(0)) % WEIGHT_QUADS;
        fetch->weights[i] = (uint)(own / (MT / 4) * fetch->rows +
                                   min(tile->first_row + own % (MT / 4) * 4, fetch->rows - 4));
    }
}

/* A stage that is being loaded. */
struct waiting {
    FIRST_MEMBER
    vec_t weights[WEIGHT_PARTS];
    acc_t inputs[OWN_POSITIONS][OWN_CHANNELS];
};

static struct stage stage_of(const uint taps, table_t list, __global const packed_t *weights,
                             const struct fetch *fetch)
{
    struct stage stage = {.tap = 0, .channel = 0, .data = 0, .weights = weights};
    if (taps == 0) return stage; /* never added: the list may end here */
    stage.tap = UNIFORM((int)clz(taps));
    stage.data = list[stage.tap * TAP_LONGS + TAP_OFFSET];
    stage.weights = weights + list[stage.tap * TAP_LONGS + TAP_WEIGHTS];
    return stage;
}

static void fetch_stage(struct waiting *waiting, const struct stage *stage,
                        const struct fetch *fetch)
{
    EACH for (int i = 0; i < WEIGHT_PARTS; i++)
    {
#if WHOLE
        waiting->weights[i] = READ_WEIGHTS(stage->weights + fetch->weights[i]);
#else
        /* Past the last channel inputs are zeros, so any finite weight will do. */
        const int k = (i * ITEMS + (int)get_local_id(0)) % WEIGHT_QUADS / (MT / 4),
                  past = max(0, stage->channel + k - (fetch->in_channels - 1));
        waiting->weights[i] =
            READ_WEIGHTS(stage->weights + (int)fetch->weights[i] - past * fetch->rows);
#endif
    }
    EACH for (int p = 0; p < OWN_POSITIONS; p++)
    {
        const bool inside = (int)(fetch->inside[p] << stage->tap) < 0;
        __global const data_t *from = fetch->data[p] + stage->data;
#if LAST && QUADS
        if (fetch->aligned) {
            const vec_t quad =
                inside && (WHOLE || stage->channel + fetch->channel < fetch->in_channels)
                    ? READ_QUAD(from, fetch->zero)
                    : (vec_t)(0);
            EACH for (int j = 0; j < 4; j++) waiting->inputs[p][j] = LANE(quad, j);
            continue;
        }
#endif
        EACH for (int j = 0; j < OWN_CHANNELS; j++)
        {
            const int channel = stage->channel + fetch->channel + j * CHANNELS_APART;
            waiting->inputs[p][j] =
                inside && (WHOLE || channel < fetch->in_channels)
                    ? READ_DATA(from + (ulong)(j * CHANNELS_APART) * fetch->channel_step,
                                fetch->zero)
                    : (acc_t)0;
        }
    }
}

static void put_stage(const struct waiting *waiting, __local acc_t *weights, __local acc_t *inputs)
{
    const int item = (int)get_local_id(0);
    EACH for (int i = 0; i < WEIGHT_PARTS; i++)
    {
        const int own = i * ITEMS + item;
        if (WEIGHT_QUADS % ITEMS == 0 || own < WEIGHT_QUADS)
            *(__local vec_t *)(weights + own * 4) = waiting->weights[i];
    }
    EACH for (int p = 0; p < OWN_POSITIONS; p++)
    {
        const int position = FETCHED_POSITION(item) + p * POSITIONS_APART;
        if (!IS_FETCHED(position)) continue;
        EACH for (int j = 0; j < OWN_CHANNELS; j++)
            inputs[(FETCHED_CHANNEL(item) + j * CHANNELS_APART) * INPUT_STEP + COLUMN(position)] =
                waiting->inputs[p][j];
    }
}

/* The weights and inputs of one channel that a work-item multiplies. */
struct operands {
    FIRST_MEMBER
    vec_t weights[TM / 4], inputs[TN / 4];
};

static void read_operands(struct operands *own, __local const acc_t *weights,
                          __local const acc_t *inputs)
{
    EACH for (int i = 0; i < TM / 4; i++)
        own->weights[i] = *(__local const vec_t *)(weights + i * 4 * LANES_M);
    EACH for (int i = 0; i < TN / 4; i++)
        own->inputs[i] = *(__local const vec_t *)(inputs + i * 4 * LANES_N);
}

/* AHEAD = 1: a channel is read while the one before is multiplied; compilers do not do so by
 * themselves. Not with 64 sums, because NVIDIA's compiler then needs 40 registers more, which costs
 * more than it gains. */
#define AHEAD (TM * TN != 64)

/* Adds the products of one channel. The lanes of vectors are written out, because Mesa's compilers
 * unroll no long loop. */
#define ADD_PRODUCT(m, n, weight, input)                                                           \
    sums[i + (m)][j * 4 + (n)] = MULTIPLY_ADD(weight, input, sums[i + (m)][j * 4 + (n)])
#define ADD_ROW(m, weight)                                                                         \
    EACH for (int j = 0; j < TN / 4; j++)                                                          \
    {                                                                                              \
        ADD_PRODUCT(m, 0, weight, own->inputs[j].s0);                                              \
        ADD_PRODUCT(m, 1, weight, own->inputs[j].s1);                                              \
        ADD_PRODUCT(m, 2, weight, own->inputs[j].s2);                                              \
        ADD_PRODUCT(m, 3, weight, own->inputs[j].s3);                                              \
    }
static void add_products(acc_t sums[TM][TN], const struct operands *own)
{
    EACH for (int i = 0; i < TM; i += 4)
    {
        ADD_ROW(0, own->weights[i / 4].s0)
        ADD_ROW(1, own->weights[i / 4].s1)
        ADD_ROW(2, own->weights[i / 4].s2)
        ADD_ROW(3, own->weights[i / 4].s3)
    }
}

/* Adds the products of one slice's channels of a stage, two in turn: where the loop is not
 * unrolled, operands are in registers nevertheless. */
static void multiply_stage(acc_t sums[TM][TN], __local const acc_t *weights,
                           __local const acc_t *inputs)
{
    struct operands even, odd;
    if (AHEAD) read_operands(&even, weights, inputs);
    EACH for (int k = 0; k < KS / SLICES; k += 2)
    {
        if (!AHEAD) read_operands(&even, weights + k * MT, inputs + k * INPUT_STEP);
        if (AHEAD) read_operands(&odd, weights + (k + 1) * MT, inputs + (k + 1) * INPUT_STEP);
        add_products(sums, &even);
        if (!AHEAD) read_operands(&odd, weights + (k + 1) * MT, inputs + (k + 1) * INPUT_STEP);
        if (AHEAD && k + 2 < KS / SLICES)
            read_operands(&even, weights + (k + 2) * MT, inputs + (k + 2) * INPUT_STEP);
        add_products(sums, &odd);
    }
}
#endif

/* ---- epilogue ------------------------------------------------------------------------------- */

/* The sums that a work-item finishes: with SLICES, a part of its rows (with FOLDED_LAST of its
 * positions) from PART_M(slice), PART_N(slice) on. */
#if FOLDED_LAST
#define OWN_M TM
#define OWN_N (TN / SLICES)
#define PART_M(slice) 0
#define PART_N(slice) ((slice)*OWN_N)
#else
#define OWN_M (TM / SLICES)
#define OWN_N TN
#define PART_M(slice) ((slice)*OWN_M)
#define PART_N(slice) 0
#endif
#define ROW_OF(tm, m) ((m) / 4 * 4 * LANES_M + (tm)*4 + (m) % 4)

#if SLICES > 1 && SPLIT < 2
/* Slice `slice` receives the sums of its part from the other slices, and adds them in a fixed
 * order. Then next_part moves all sums up, so that the next part is the first one, because
 * registers cannot be indexed and loops with barriers are not unrolled. */
static void share_part(acc_t sums[TM][TN], __local acc_t *shared, const int slice, const int own)
{
    const int item = (int)get_local_id(0) % SLICE_ITEMS;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (own != slice) {
        const int from = own < slice ? own : own - 1;
        EACH for (int m = 0; m < OWN_M; m++) EACH for (int n = 0; n < OWN_N; n++)
            shared[((from * OWN_M + m) * OWN_N + n) * SLICE_ITEMS + item] = sums[m][n];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (own == slice)
        for (int from = 0; from < SLICES - 1; from++)
            EACH for (int m = 0; m < OWN_M; m++) EACH for (int n = 0; n < OWN_N; n++)
                sums[m][n] += shared[((from * OWN_M + m) * OWN_N + n) * SLICE_ITEMS + item];
}

static void next_part(acc_t sums[TM][TN])
{
#if FOLDED_LAST
    EACH for (int m = 0; m < TM; m++) EACH for (int n = OWN_N; n < TN; n++)
        sums[m][n - OWN_N] = sums[m][n];
#else
    EACH for (int m = OWN_M; m < TM; m++) EACH for (int n = 0; n < TN; n++)
        sums[m - OWN_M][n] = sums[m][n];
#endif
}
#endif

#if FLOATING
/* Computes and stores the outputs that a work-item finishes, one by one. */
static void store_exact(const struct epilogue *f, const int slice,
                        __local const struct outputs *outputs, __global const data_t *data,
                        __global const packed_t *weights, table_t table, const struct tile *tile,
                        const int tm, const int tn)
{
    const int out_channels = (int)table[FOLDED_OUT_CHANNELS];
    const struct position extents = extents_of(table);
#pragma unroll 1
    for (int i = 0; i < OWN_M * OWN_N; i++) {
        const int row = tile->first_row + ROW_OF(tm, PART_M(slice) + i / OWN_N),
                  own_n = PART_N(slice) + i % OWN_N, n = POSITION_OF(tn, own_n / 4, own_n % 4);
        const int channel = channel_of(row, table), phase = phase_of(row, table);
        if (row >= table[TILED_ROWS] || channel >= out_channels ||
            !has_output(outputs, n, phase, &extents))
            continue;
        const long all = tile->group * out_channels + channel;
        const struct position position = position_at(tile->first + n, table);
        const acc_t sum =
            exact_output(data, weights, table, kind_at(tile->kind, table), &position, row);
        put_one(f, affine_one(f, sum, all),
                outputs->at[n] + row_offset(tile, channel, phase, table), all);
    }
}

/* True if sums may be wrong: if a phase lacks a tap, the zero in its place may have met an infinite
 * or NaN input. */
static bool is_wrong(const acc_t sums[TM][TN])
{
    bool finite = true;
#if LACKING
    EACH for (int m = 0; m < OWN_M; m++) EACH for (int n = 0; n < OWN_N; n++)
        finite = finite && isfinite(sums[m][n]);
#endif
    return !finite;
}
#endif

/* A heavy epilogue is not unrolled for each sum. A loop handles the first sums and moves the others
 * up, because registers cannot be indexed. Intel's pvc (SUBGROUP) would spill otherwise. */
#if HEAVY || defined(SUBGROUP)
#define EACH_PART _Pragma("unroll 1")
#else
#define EACH_PART EACH
#endif

#if FOLDED_LAST
static INLINED void store_sums(const struct epilogue *f, acc_t sums[TM][TN], const int slice,
                               __local const struct outputs *outputs, table_t table,
                               const struct tile *tile, const int tm, const int tn)
{
    const int out_channels = (int)table[FOLDED_OUT_CHANNELS], rows = (int)table[TILED_ROWS];
    const struct position extents = extents_of(table);
    const bool aligned = (size_t)f->output % (4 * sizeof(output_t)) == 0 &&
                         table[TILED_OUTPUT_QUADS] != 0;
    int zero = 0; /* a variable: types.clh */
    EACH_PART for (int m = 0; m < TM; m += 4)
    {
        const int row = tile->first_row + ROW_OF(tm, m);
        const int channel = channel_of(row, table), phase = phase_of(row, table),
                  count = row < rows ? out_channels - channel : 0;
        const long all = tile->group * out_channels + channel,
                   from = row_offset(tile, channel, phase, table);
        const result_vec_t factor = FOUR_OF(factor_of, f, all, count),
                           bias = FOUR_OF(BIAS_OF, f, all, count);
        const slope_vec_t slope = EACH_SLOPE(FOUR_OF, f, all, count);
        EACH for (int j = 0; j < OWN_N; j++)
        {
            const int n = PART_N(slice) + j;
            const int position = POSITION_OF(tn, n / 4, n % 4);
            if (count <= 0 || !has_output(outputs, position, phase, &extents)) continue;
            const long at = outputs->at[position] + from;
            const result_vec_t value = affine_lanes(
                (vec_t)(sums[zero][j], sums[zero + 1][j], sums[zero + 2][j], sums[zero + 3][j]),
                factor, bias);
            if (count < 4) {
                EACH for (int i = 0; i < 3; i++) if (i < count)
                    put_one(f, LANE(value, i), at + i, all + i);
                continue;
            }
#if PLAIN && !NATIVE && !PLACED
            if (aligned) {
                *(__global result_vec_t *)(f->output + at) = finished(f, value, slope);
                continue;
            }
#endif
            put_lanes(f, value, at, slope);
        }
        EACH for (int next = 4; next < TM; next++) EACH for (int j = 0; j < OWN_N; j++)
            sums[next - 4][j] = sums[next][j];
    }
}
#else
static INLINED void store_sums(const struct epilogue *f, acc_t sums[TM][TN], const int slice,
                               __local const struct outputs *outputs, table_t table,
                               const struct tile *tile, const int tm, const int tn)
{
    const int out_channels = (int)table[FOLDED_OUT_CHANNELS];
    const struct position extents = extents_of(table);
    int zero = 0; /* a variable: types.clh */
    EACH_PART for (int i = 0; i < OWN_M; i++)
    {
        const int row = tile->first_row + ROW_OF(tm, PART_M(slice) + i);
        const int channel = channel_of(row, table), phase = phase_of(row, table);
        if (channel < out_channels) {
            const long all = tile->group * out_channels + channel,
                       from = row_offset(tile, channel, phase, table);
            const result_t factor = factor_of(f, all), bias = BIAS_OF(f, all);
            EACH for (int n = 0; n < TN; n++)
            {
                const int position = POSITION_OF(tn, n / 4, n % 4);
                if (has_output(outputs, position, phase, &extents))
                    put_one(f, affine_with(sums[zero][n], factor, bias),
                            outputs->at[position] + from, all);
            }
        }
        EACH for (int next = 1; next < OWN_M; next++) EACH for (int n = 0; n < TN; n++)
            sums[next - 1][n] = sums[next][n];
    }
}
#endif

/* ---- kernels -------------------------------------------------------------------------------- */

/* A work-item's index among those that multiply the same channels of a stage. */
#if LAST
#define OWN_TM(item) ((item) % SLICE_ITEMS % LANES_M)
#define OWN_TN(item) ((item) % SLICE_ITEMS / LANES_M)
#else
#define OWN_TM(item) ((item) % SLICE_ITEMS / LANES_N)
#define OWN_TN(item) ((item) % SLICE_ITEMS % LANES_N)
#endif

#if SPLIT
/* A work-item's first sum in the workspace, of part 0. A part's sums are in the order [tile][row of
 * a work-item][position of a work-item][work-item of a slice]. */
#define SUM_AT(m, n) (((m)*TN + (n)) * SLICE_ITEMS)
static __global acc_t *own_sums(__global acc_t *workspace, const ulong offset, const int tile,
                                const int slice)
{
    return tile_accumulators(workspace, offset, tile) + SUM_AT(PART_M(slice), PART_N(slice)) +
           get_local_id(0) % SLICE_ITEMS;
}
#endif

#if SPLIT < 2
KERNEL __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
tconv_tiled(__global const data_t *restrict data, const ulong data_offset,
            __global const packed_t *restrict filter, const ulong filter_offset,
            __global const uint *restrict flags, const ulong flags_offset,
#if SPLIT
            __global acc_t *restrict workspace, const ulong workspace_offset,
#else
            EPILOGUE_PARAMETERS,
#endif
            table_t restrict table)
{
    __local acc_t numbers[LOCAL_NUMBERS] __attribute__((aligned(32)));
    const struct tile tile = own_tile(GROUP_NUMBER, table);
    /* Before all branches: after them some compilers no longer know that these values are the same
     * for all work-items. */
    table_t kind = kind_at(tile.kind, table);
    table_t list = list_of(kind, table);
    int left = (int)kind[KIND_TAPS];
#if !SPLIT
    __local struct outputs outputs;
    find_tile_outputs(&outputs, &tile, table); /* a barrier follows */
#endif
    __global const data_t *own_data = data + data_offset + group_data(tile.group, table);
    __global const packed_t *weights = weights_of(filter + filter_offset, table, tile.group);
#if FLOATING
    const bool exact = flags[flags_offset + (ulong)tile.group] != 0;
#else
    const bool exact = false;
#endif

    const int item = (int)get_local_id(0);
    const int slice = item / SLICE_ITEMS, tm = OWN_TM(item), tn = OWN_TN(item);
    struct fetch fetch;
    struct position position[OWN_POSITIONS];
    find_channels(&fetch, &own_data, &weights, &tile, table);
    find_inputs(&fetch, position, own_data, &tile, table);
    find_weights(&fetch, &tile);
    const struct range range = range_of(tile.first, tile.first + tile.count - 1, table);
    const struct position inputs = inputs_of(table);

    acc_t sums[TM][TN];
    EACH for (int m = 0; m < TM; m++) EACH for (int n = 0; n < TN; n++) sums[m][n] = 0;
    const int tap_stages = (fetch.in_channels + KS - 1) / KS;
#if ROUNDS
    for (; left > 0; left -= ROUND_TAPS, list += ROUND_TAPS * TAP_LONGS)
#endif
    {
        /* The taps that reach the tile, and those that have an input for each position. */
        uint taps = 0;
        EACH for (int p = 0; p < OWN_POSITIONS; p++) fetch.inside[p] = 0;
        for (int t = 0; t < min(left, ROUND_TAPS); t++) {
            table_t tap = list + t * TAP_LONGS;
            const int z = (int)tap[TAP_Z], y = (int)tap[TAP_Y], x = (int)tap[TAP_X];
            const uint bit = reaches(&range, z, y, x, &inputs) ? 0x80000000u >> t : 0;
            taps |= bit;
            EACH for (int p = 0; p < OWN_POSITIONS;
                      p++) if (has_input(&position[p], z, y, x, &inputs)) fetch.inside[p] |= bit;
        }
        const int stages = (int)popcount(taps) * tap_stages;
        struct stage stage = stage_of(taps, list, weights, &fetch);
        struct waiting waiting;
#if ROUNDS
        barrier(CLK_LOCAL_MEM_FENCE); /* the products of the round before are done */
#endif
        if (stages > 0) {
            fetch_stage(&waiting, &stage, &fetch);
            put_stage(&waiting, numbers, numbers + KS * MT);
        }
        for (int number = 0; number < stages; number++) {
            __local acc_t *now = numbers + number % 2 * STAGE_NUMBERS,
                          *other = numbers + (number + 1) % 2 * STAGE_NUMBERS;
            barrier(CLK_LOCAL_MEM_FENCE); /* this stage is loaded, and the products of the stage
                                             before are done */
            const bool more = number + 1 < stages;
            stage.channel += KS;
            if (stage.channel < fetch.in_channels) {
                stage.data += (long)((ulong)KS * fetch.channel_step);
                stage.weights += KS * fetch.rows;
            } else if (more) {
                taps &= 0x7fffffffu >> stage.tap;
                stage = stage_of(taps, list, weights, &fetch);
            }
            if (more) fetch_stage(&waiting, &stage, &fetch);
            multiply_stage(sums, now + slice * (KS / SLICES) * MT + tm * 4,
                           now + KS * MT + slice * (KS / SLICES) * INPUT_STEP + tn * 4);
            /* Also after the last stage, when it stores an old stage again: with a branch around
             * it, compilers move the products behind the branch, and all their operands stay in
             * registers that long. */
            put_stage(&waiting, other, other + KS * MT);
        }
    }

    table = table_again(table);
#if !SPLIT
    EPILOGUE(epilogue, table)
    barrier(CLK_LOCAL_MEM_FENCE); /* without stages there was no barrier yet */
#endif
    /* One part, or one part after another. */
#pragma unroll 1
    for (int part = 0; part < SLICES; part++) {
#if SLICES > 1
        share_part(sums, numbers, part, slice);
#endif
        if (slice == part) {
#if SPLIT
            __global acc_t *to = own_sums(workspace, workspace_offset, tile.number, slice) +
                                 tile.part * part_step(table);
            EACH for (int m = 0; m < OWN_M; m++) EACH for (int n = 0; n < OWN_N; n++)
                to[SUM_AT(m, n)] = sums[m][n];
#else
#if FLOATING
            if (exact || is_wrong(sums))
                store_exact(&epilogue, part, &outputs, own_data, weights, table, &tile, tm, tn);
            else
#endif
                store_sums(&epilogue, sums, part, &outputs, table, &tile, tm, tn);
#endif
        }
#if SLICES > 1
        next_part(sums);
#endif
    }
}

#else
/* Adds up the sums of all parts in a fixed order, and finishes them. */
KERNEL __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
tconv_tiled_finish(__global const data_t *restrict data, const ulong data_offset,
                   __global const packed_t *restrict filter, const ulong filter_offset,
                   __global const uint *restrict flags, const ulong flags_offset,
                   __global acc_t *restrict workspace, const ulong workspace_offset,
                   EPILOGUE_PARAMETERS, table_t restrict table)
{
    __local struct outputs outputs;
    const struct tile own = own_tile(GROUP_NUMBER, table);
    find_tile_outputs(&outputs, &own, table);
    barrier(CLK_LOCAL_MEM_FENCE);
    const int item = (int)get_local_id(0);
    const int slice = item / SLICE_ITEMS, tm = OWN_TM(item), tn = OWN_TN(item);
    acc_t sums[TM][TN];
    EACH for (int m = 0; m < TM; m++) EACH for (int n = 0; n < TN; n++) sums[m][n] = 0;
    __global const acc_t *from = own_sums(workspace, workspace_offset, own.number, slice);
    const long step = part_step(table);
    for (int part = 0; part < (int)table[TILED_PARTS]; part++, from += step)
        EACH for (int m = 0; m < OWN_M; m++) EACH for (int n = 0; n < OWN_N; n++)
            sums[m][n] += from[SUM_AT(m, n)];
    EPILOGUE(epilogue, table)
#if FLOATING
    if (flags[flags_offset + (ulong)own.group] != 0 || is_wrong(sums))
        store_exact(&epilogue, slice, &outputs, data + data_offset + group_data(own.group, table),
                    weights_of(filter + filter_offset, table, own.group), table, &own, tm, tn);
    else
#endif
        store_sums(&epilogue, sums, slice, &outputs, table, &own, tm, tn);
}
#endif
