/* SPDX-License-Identifier: Apache-2.0 */
/* The tiled algorithm for GPUs: products of matrices from local memory, with many accumulators in
 * the registers of a work-item. Output-stationary; all element types, by plain multiply-adds.
 *
 * Along each axis, outputs are split by their phases: o = first + u*stride + t, place u, phase t.
 * Phases either have work-groups of their own (t), or they are rows of the matrix beside the output
 * channels (r), so that one tile has all outputs of its places. For each phase of work-groups
 *
 *     sum[row][place] = sum over taps and input channels of
 *                       filter[tap][channel][row] * data[channel][place + distance of tap]
 *
 * is a product of matrices over all places of all batch items.
 *
 *                            places (n, z, y, x)
 *              +------------------- NT --------------------+
 *              |  4 x 4    |           |  4 x 4    |        |     A work-item has TM x TN sums, in
 *     rows    MT  sums     |           |  sums     |        |     blocks of 4 x 4 that lie far
 * apart:
 *              |-----------+           +-----------+        |     neighbouring work-items then read
 *              |  4 x 4    |           |  4 x 4    |        |     neighbouring quads of local
 * memory.
 *              +-------------------------------------------+
 *
 * A stage is KS input channels of one tap; taps are outside, channels inside. A work-item fetches
 * the same places in all stages, so an address moves by a constant from stage to stage, and whether
 * a place has an input is one bit of a mask for each of up to 32 taps, computed in front of the
 * stages. Taps that reach no place of the tile are left out. Local memory holds two stages: while
 * one is multiplied, the next is on its way through registers. With SLICES, parts of the work-group
 * multiply different channels of the stage for the same tile, and add up their sums at the end in a
 * fixed order. With SPLIT, work-groups have parts of the channels, and leave their sums in the
 * workspace, where tconv_tiled_finish adds them up in a fixed order.
 *
 * A place without an input has a zero there, which must not meet a weight that is infinite or NaN.
 * Packing marks groups that have such weights; their outputs are computed one by one. So are those
 * of a work-item whose sums are not finite, where a phase lacks a tap and its zero may have met
 * such an input.
 *
 *   macro       meaning                                                       legal values
 *   MT, NT      rows and places of a tile                                     multiples of TM, TN
 *   TM, TN      rows and places of a work-item                                4, 8, 12, 16
 *   KS          input channels of a stage                                     multiples of 4
 *   SLICES      parts of the work-group, each with its channels of a stage    divides KS and TM
 *   WHOLE       1: KS divides the number of input channels                    0, 1
 *   LAST        1: input channels are neighbours, as are output channels      0, 1
 *   FOLDED_LAST   1: with LAST, rows are quads of output channels of a phase    0, 1
 *   QUADS       1: with LAST, groups of 4 channels are aligned to their size  0, 1
 *               wherever the tensors are
 *   ROUNDS      1: a phase may have more than 32 taps. Without, what finds    0, 1
 *               them needs no registers during the stages
 *   LACKING     1: some phases that are rows have fewer taps than others,     0, 1
 *               and zeros for them
 *   SPLIT       1: work-groups of several parts share the input channels;     0, 1, 2
 *               2: the kernel that adds up their sums, of which more slices
 *               have fewer rows or places each, and KS is of no consequence
 *   PZ, PY, PX  phases along each axis that are rows                          1, the stride
 *
 * Registers: TM * TN sums. */
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
#define ITEMS (SLICES * SLICE_ITEMS)
#define PHASE_ROWS (PZ * PY * PX)

/* Rows of local memory: KS of weights, KS of inputs. Two neighbouring quads of a place go to
 * different banks. */
#define INPUT_STEP (NT + 4 * LAST)
#define STAGE_NUMBERS (KS * (MT + INPUT_STEP))
#define SHARED_NUMBERS ((SLICES - 1) * (TM / SLICES) * TN * SLICE_ITEMS)
#define LOCAL_NUMBERS (2 * STAGE_NUMBERS > SHARED_NUMBERS ? 2 * STAGE_NUMBERS : SHARED_NUMBERS)

/* Weights of a stage in quads of rows, and how many of them a work-item moves. */
#define WEIGHT_QUADS (KS * MT / 4)
#define WEIGHT_PARTS ((WEIGHT_QUADS + ITEMS - 1) / ITEMS)

/* Inputs. Neighbouring work-items fetch neighbours in memory: places of a channel, or quads of
 * channels of a place. OWN_PLACES: places of a work-item, PLACES_APART from each other. Of each it
 * fetches OWN_CHANNELS channels, the first being FETCHED_CHANNEL, CHANNELS_APART from each other.
 * Places of a channel are spread in local memory such that the quad that a work-item reads has
 * places LANES_N apart, and a work-item stores beside its neighbour what lies beside it in the
 * output. */
#if LAST
#define STAGE_QUADS (KS / 4)
#define OWN_PLACES ((NT * STAGE_QUADS + ITEMS - 1) / ITEMS)
#define PLACES_APART (ITEMS / STAGE_QUADS)
#define FETCHED_PLACE(item) ((item) / STAGE_QUADS)
#define FETCHED_CHANNEL(item) ((item) % STAGE_QUADS * 4)
#define OWN_CHANNELS 4
#define CHANNELS_APART 1
#define COLUMN(place) (place)
#define PLACE_OF(tn, block, lane) ((block)*4 * LANES_N + (tn)*4 + (lane))
#if ITEMS % STAGE_QUADS != 0
#error "a work-item would have several quads of a place"
#endif
#else
#define OWN_PLACES (NT > ITEMS ? NT / ITEMS : 1)
#define PLACES_APART ITEMS
#define FETCHED_PLACE(item) ((item) % NT)
#define FETCHED_CHANNEL(item) (NT > ITEMS ? 0 : (item) / NT)
#define CHANNELS_APART (NT > ITEMS ? 1 : ITEMS / NT)
#define OWN_CHANNELS (KS / CHANNELS_APART)
#define COLUMN(place)                                                                              \
    ((place) / (4 * LANES_N) * (4 * LANES_N) + (place) % LANES_N * 4 +                             \
     (place) % (4 * LANES_N) / LANES_N)
#define PLACE_OF(tn, block, lane) ((block)*4 * LANES_N + (lane)*LANES_N + (tn))
#if NT % ITEMS != 0 && ITEMS % NT != 0
#error "work-items have no places of their own"
#endif
#endif
#define IS_FETCHED(place) (NT % PLACES_APART == 0 || (place) < NT)

/* ---- filter --------------------------------------------------------------------------------- */

/* The packed filter: a word for each group, padded, which tells whether a weight is not finite;
 * then [group][tap][input channel][row]. A row is an output channel with a phase along each axis,
 * the channels outside, or with FOLDED_LAST inside and a multiple of 4. */
static __global const packed_t *weights_of(__global const packed_t *filter,
                                           __global const long *table, const long group)
{
    return filter + TAPS_HEADER(table[FOLDED_GROUPS], sizeof(packed_t)) +
           group * table[TILED_TAPS_Z] * table[TILED_TAPS_Y] * table[TILED_TAPS_X] *
               table[FOLDED_IN_CHANNELS] * table[TILED_ROWS];
}

static int channel_of(const int row, __global const long *table)
{
#if FOLDED_LAST && PHASE_ROWS > 1
    return row % (int)table[TILED_CHANNELS];
#elif FOLDED_LAST
    return row;
#else
    return row / PHASE_ROWS;
#endif
}

/* The phase of a row along all axes. */
static int phase_of(const int row, __global const long *table)
{
#if FOLDED_LAST && PHASE_ROWS > 1
    return row / (int)table[TILED_CHANNELS];
#else
    return row % PHASE_ROWS;
#endif
}
#define PHASE_Z(phase) ((phase) / PX / PY)
#define PHASE_Y(phase) ((phase) / PX % PY)
#define PHASE_X(phase) ((phase) % PX)

static int row_of(const int channel, const int phase, __global const long *table)
{
#if FOLDED_LAST && PHASE_ROWS > 1
    return phase * (int)table[TILED_CHANNELS] + channel;
#elif FOLDED_LAST
    return channel;
#else
    return channel * PHASE_ROWS + phase;
#endif
}

/* Before packing: no group is known to have weights that are not finite. */
__kernel void tconv_tiled_clear(__global uint *restrict flags, const ulong flags_offset,
                                __global const long *restrict table)
{
    if (get_global_id(0) < (ulong)table[FOLDED_GROUPS]) flags[flags_offset + get_global_id(0)] = 0;
}

/* A work-item packs one row of one input channel, for some taps of all groups. */
__kernel void tconv_tiled_pack(__global const filter_t *restrict weights,
                               const ulong weights_offset, __global packed_t *restrict filter,
                               const ulong filter_offset, __global uint *restrict flags,
                               const ulong flags_offset, __global const long *restrict table)
{
    const int row = (int)get_global_id(0);
    const long rows = table[TILED_ROWS], in_channels = table[FOLDED_IN_CHANNELS];
    if (row >= rows) return;
    const int channel = channel_of(row, table), phase = phase_of(row, table);
    const long taps_x = table[TILED_TAPS_X], taps_y = table[TILED_TAPS_Y];
    const long taps = table[TILED_TAPS_Z] * taps_y * taps_x, all = table[FOLDED_GROUPS] * taps;
    const acc_t zero = FILTER_ZERO(table);
    for (long number = (long)get_global_id(2); number < all; number += (long)get_global_size(2))
        for (long ci = (long)get_global_id(1); ci < in_channels; ci += (long)get_global_size(1)) {
            const long tap = number % taps, group = number / taps;
            const long kz = tap / taps_x / taps_y * PZ + PHASE_Z(phase),
                       ky = tap / taps_x % taps_y * PY + PHASE_Y(phase),
                       kx = tap % taps_x * PX + PHASE_X(phase);
            __global packed_t *to = filter + filter_offset +
                                    TAPS_HEADER(table[FOLDED_GROUPS], sizeof(packed_t)) +
                                    (number * in_channels + ci) * rows + row;
            if (channel >= table[FOLDED_OUT_CHANNELS] || kz >= table[FOLDED_KERNEL_Z] ||
                ky >= table[FOLDED_KERNEL_Y] || kx >= table[FOLDED_KERNEL_X]) {
                *to = 0;
                continue;
            }
            PACK(weights + weights_offset + group * table[FOLDED_SOURCE_GROUP_STEP] +
                     ci * table[FOLDED_SOURCE_IN_STEP] + channel * table[FOLDED_SOURCE_OUT_STEP] +
                     kz * table[FOLDED_SOURCE_Z_STEP] + ky * table[FOLDED_SOURCE_Y_STEP] +
                     kx * table[FOLDED_SOURCE_X_STEP],
                 to, zero);
            if (!IS_FINITE(READ_WEIGHT(to))) atomic_or(&flags[flags_offset + (ulong)group], 1u);
        }
}

/* ---- places --------------------------------------------------------------------------------- */

/* Where a place is: batch item and number along each axis. */
struct place {
    int n, z, y, x;
};

static struct place place_at(int number, __global const long *table)
{
    const int count_z = (int)table[TILED_PLACES_Z], count_y = (int)table[TILED_PLACES_Y],
              count_x = (int)table[TILED_PLACES_X];
    struct place place;
    place.x = number % count_x;
    number /= count_x;
    place.y = number % count_y;
    number /= count_y;
    place.z = number % count_z;
    place.n = number / count_z;
    return place;
}

/* The range of places of a tile along each axis. */
struct range {
    struct place first, last;
};

static struct range range_of(const int first, const int last, __global const long *table)
{
    struct range range;
    range.first = place_at(first, table);
    range.last = place_at(last, table);
    const bool all_z = range.first.n != range.last.n,
               all_y = all_z || range.first.z != range.last.z,
               all_x = all_y || range.first.y != range.last.y;
    if (all_z) {
        range.first.z = 0;
        range.last.z = (int)table[TILED_PLACES_Z] - 1;
    }
    if (all_y) {
        range.first.y = 0;
        range.last.y = (int)table[TILED_PLACES_Y] - 1;
    }
    if (all_x) {
        range.first.x = 0;
        range.last.x = (int)table[TILED_PLACES_X] - 1;
    }
    return range;
}

/* Whether a tap reaches any place of a tile. */
static bool reaches(const struct range *range, __global const long *tap, __global const long *table)
{
    const int z = (int)tap[TAP_Z], y = (int)tap[TAP_Y], x = (int)tap[TAP_X];
    return range->last.z + z >= 0 && range->first.z + z < (int)table[FOLDED_INPUT_Z] &&
           range->last.y + y >= 0 && range->first.y + y < (int)table[FOLDED_INPUT_Y] &&
           range->last.x + x >= 0 && range->first.x + x < (int)table[FOLDED_INPUT_X];
}

/* Where the outputs of a tile's places are. */
struct outputs {
    long at[NT]; /* of phase 0 and the group's first channel; may lie outside the output */
    int z[NT], y[NT], x[NT];
};

/* The output's extents: held, since compilers read them again behind every store. */
static struct place extents_of(__global const long *table)
{
    struct place extents;
    extents.n = (int)table[FOLDED_BATCHES];
    extents.z = (int)table[FOLDED_OUTPUT_Z];
    extents.y = (int)table[FOLDED_OUTPUT_Y];
    extents.x = (int)table[FOLDED_OUTPUT_X];
    return extents;
}

/* Whether a place has an output in a phase of the rows. */
static bool has_output(__local const struct outputs *outputs, const int n, const int phase,
                       const struct place *extents)
{
    /* Constants stand on the left, where compilers do not warn of them. */
    return (PX == 1 || (uint)(outputs->x[n] + PHASE_X(phase)) < (uint)extents->x) &&
           ((PY == 1 || (uint)(outputs->y[n] + PHASE_Y(phase)) < (uint)extents->y) &&
            (uint)(outputs->z[n] + PHASE_Z(phase)) < (uint)extents->z);
}

static void find_outputs(__local struct outputs *outputs, const long first, const int count,
                         const int tz, const int ty, const int tx, __global const long *table)
{
    for (int n = (int)get_local_id(0); n < NT; n += ITEMS) {
        const struct place place = place_at((int)first + (n < count ? n : 0), table);
        const long z = table[TILED_FIRST_Z] + place.z * table[FOLDED_STRIDE_Z] + tz,
                   y = table[TILED_FIRST_Y] + place.y * table[FOLDED_STRIDE_Y] + ty,
                   x = table[TILED_FIRST_X] + place.x * table[FOLDED_STRIDE_X] + tx;
        outputs->at[n] = place.n * table[FOLDED_OUTPUT_BATCH_STEP] +
                         z * table[FOLDED_OUTPUT_Z_STEP] + y * table[FOLDED_OUTPUT_Y_STEP] +
                         x * table[FOLDED_OUTPUT_X_STEP];
        /* Where phases are no rows, what is outside along y and x is told along z. */
        const bool there = (PX > 1 || x < table[FOLDED_OUTPUT_X]) &&
                           ((PY > 1 || y < table[FOLDED_OUTPUT_Y]) && n < count);
        outputs->z[n] = there ? (int)z : -(1 << 30);
        outputs->y[n] = (int)y;
        outputs->x[n] = (int)x;
    }
}

/* ---- exact outputs -------------------------------------------------------------------------- */

#if FLOATING
/* The input along one axis that tap k of output o reads; negative where there is none. */
static long input_of(const long o, const long k, const long stride, const long dilation,
                     const long pad, const long input)
{
    const long d = o + pad - k * dilation;
    return d >= 0 && d % stride == 0 && d / stride < input ? d / stride : -1;
}

/* One output, tap by tap, of a batch item's data: no zero of the padding is multiplied. */
static acc_t exact_output(__global const data_t *data, __global const packed_t *weights,
                          __global const long *table, const long oz, const long oy, const long ox,
                          const int channel)
{
    const long in_channels = table[FOLDED_IN_CHANNELS], rows = table[TILED_ROWS];
    acc_t sum = 0;
    for (long kz = 0; kz < table[FOLDED_KERNEL_Z]; kz++)
        for (long ky = 0; ky < table[FOLDED_KERNEL_Y]; ky++)
            for (long kx = 0; kx < table[FOLDED_KERNEL_X]; kx++) {
                const long z = input_of(oz, kz, table[FOLDED_STRIDE_Z], table[FOLDED_DILATION_Z],
                                        table[FOLDED_PAD_Z], table[FOLDED_INPUT_Z]),
                           y = input_of(oy, ky, table[FOLDED_STRIDE_Y], table[FOLDED_DILATION_Y],
                                        table[FOLDED_PAD_Y], table[FOLDED_INPUT_Y]),
                           x = input_of(ox, kx, table[FOLDED_STRIDE_X], table[FOLDED_DILATION_X],
                                        table[FOLDED_PAD_X], table[FOLDED_INPUT_X]);
                if (z < 0 || y < 0 || x < 0) continue;
                __global const data_t *from = data + z * table[FOLDED_DATA_Z_STEP] +
                                              y * table[FOLDED_DATA_Y_STEP] +
                                              x * table[FOLDED_DATA_X_STEP];
                const int phase = (int)((kz % PZ * PY + ky % PY) * PX + kx % PX);
                const long tap = (kz / PZ * table[TILED_TAPS_Y] + ky / PY) * table[TILED_TAPS_X] +
                                 kx / PX;
                __global const packed_t *w = weights + tap * in_channels * rows +
                                             row_of(channel, phase, table);
                for (long ci = 0; ci < in_channels; ci++)
                    sum = MULTIPLY_ADD(READ_DATA(from + ci * table[FOLDED_DATA_CHANNEL_STEP], 0),
                                       READ_WEIGHT(w + ci * rows), sum);
            }
    return sum;
}
#endif

/* ---- stages --------------------------------------------------------------------------------- */

#if SPLIT < 2
/* A quad of neighbouring channels, and one of packed weights, both aligned to their size. PoCL has
 * no need of that and may have buffers that are not. */
#define IS_HALF_f16 1
#define IS_HALF_bf16 2
#if NATIVE || !FLOATING
#define READ_QUAD(p, zero) READS_DATA(p, zero)
#elif PASTE(IS_HALF_, DATA) == 1 && HALF
#define READ_QUAD(p, zero) convert_float4(*(__global const half4 *)(p))
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

/* What a work-item fetches in every stage. */
struct fetch {
    __global const data_t *data[OWN_PLACES]; /* of its first channel, for distance 0 */
    uint inside[OWN_PLACES];                 /* a bit for each tap, the highest being the first */
    int weights[WEIGHT_PARTS];               /* from the stage's first weight */
    int channel;
    int in_channels, rows;
    long channel_step;
    bool aligned; /* quads of channels are where READ_QUAD takes them */
    acc_t zero;
};

/* A stage: one tap, input channels from `channel` on. */
struct stage {
    __global const packed_t *weights; /* of the first channel */
    long data;                        /* from a place to its input in the first channel */
    int tap, channel;
};

/* A stage on its way. */
struct waiting {
    vec_t weights[WEIGHT_PARTS];
    acc_t inputs[OWN_PLACES][OWN_CHANNELS];
};

static struct stage stage_of(const uint taps, __global const long *list,
                             __global const packed_t *weights, const struct fetch *fetch)
{
    struct stage stage = {.tap = 0, .channel = 0, .data = 0, .weights = weights};
    if (taps == 0) return stage; /* never added: the list may end here */
    stage.tap = (int)clz(taps);
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
        /* Past the last channel, where inputs are zeros, any finite weight will do. */
        const int k = (i * ITEMS + (int)get_local_id(0)) % WEIGHT_QUADS / (MT / 4),
                  past = max(0, stage->channel + k - (fetch->in_channels - 1));
        waiting->weights[i] = READ_WEIGHTS(stage->weights + fetch->weights[i] - past * fetch->rows);
#endif
    }
    EACH for (int p = 0; p < OWN_PLACES; p++)
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
                    ? READ_DATA(from + j * CHANNELS_APART * fetch->channel_step, fetch->zero)
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
    EACH for (int p = 0; p < OWN_PLACES; p++)
    {
        const int place = FETCHED_PLACE(item) + p * PLACES_APART;
        if (!IS_FETCHED(place)) continue;
        EACH for (int j = 0; j < OWN_CHANNELS; j++)
            inputs[(FETCHED_CHANNEL(item) + j * CHANNELS_APART) * INPUT_STEP + COLUMN(place)] =
                waiting->inputs[p][j];
    }
}

/* Adds the products of a stage, of one slice's channels. */
static void multiply_stage(acc_t sums[TM][TN], __local const acc_t *weights,
                           __local const acc_t *inputs)
{
    EACH for (int k = 0; k < KS / SLICES; k++)
    {
        vec_t w[TM / 4], x[TN / 4];
        EACH for (int i = 0; i < TM / 4; i++)
            w[i] = *(__local const vec_t *)(weights + k * MT + i * 4 * LANES_M);
        EACH for (int i = 0; i < TN / 4; i++)
            x[i] = *(__local const vec_t *)(inputs + k * INPUT_STEP + i * 4 * LANES_N);
        EACH for (int m = 0; m < TM; m++) EACH for (int n = 0; n < TN; n++)
            sums[m][n] = MULTIPLY_ADD(LANE(w[m / 4], m % 4), LANE(x[n / 4], n % 4), sums[m][n]);
    }
}
#endif

/* ---- epilogue ------------------------------------------------------------------------------- */

/* Of a work-item's sums, those that it has to finish: with SLICES, a part of the rows, or with
 * FOLDED_LAST of the places, from PART_M(slice), PART_N(slice) on. */
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
/* Slice `slice` receives the sums of its part from the others, and adds them in their order. Each
 * part is the first one when its turn comes: registers have no index, and loops with barriers are
 * not unrolled. */
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
/* What a work-item has to finish, computed output by output. */
static void store_exact(const struct epilogue *f, const int slice,
                        __local const struct outputs *outputs, __global const data_t *data,
                        __global const packed_t *weights, __global const long *table,
                        const long group, const int first_row, const int first, const int tm,
                        const int tn)
{
    const int out_channels = (int)table[FOLDED_OUT_CHANNELS];
    const struct place extents = extents_of(table);
#pragma unroll 1
    for (int i = 0; i < OWN_M * OWN_N; i++) {
        const int row = first_row + ROW_OF(tm, PART_M(slice) + i / OWN_N),
                  own_n = PART_N(slice) + i % OWN_N, n = PLACE_OF(tn, own_n / 4, own_n % 4);
        const int channel = channel_of(row, table), phase = phase_of(row, table);
        if (row >= table[TILED_ROWS] || channel >= out_channels ||
            !has_output(outputs, n, phase, &extents))
            continue;
        const long oz = outputs->z[n] + PHASE_Z(phase), oy = outputs->y[n] + PHASE_Y(phase),
                   ox = outputs->x[n] + PHASE_X(phase), all = group * out_channels + channel;
        const acc_t sum =
            exact_output(data + place_at(first + n, table).n * table[FOLDED_DATA_BATCH_STEP],
                         weights, table, oz, oy, ox, channel);
        put_one(f, affine_one(f, sum, all),
                outputs->at[n] + all * table[FOLDED_OUTPUT_CHANNEL_STEP] +
                    PHASE_Z(phase) * table[FOLDED_OUTPUT_Z_STEP] +
                    PHASE_Y(phase) * table[FOLDED_OUTPUT_Y_STEP] +
                    PHASE_X(phase) * table[FOLDED_OUTPUT_X_STEP],
                all);
    }
}

/* Whether sums may be wrong: where a phase lacks a tap, an input that is infinite or NaN met a
 * zero. */
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

/* Where an epilogue takes many instructions they are not written out for each sum; the sums move up
 * instead, since registers have no index. Nor for Intel's pvc, which spills otherwise. */
#if HEAVY || defined(SUBGROUP)
#define EACH_PART _Pragma("unroll 1")
#else
#define EACH_PART EACH
#endif

#if FOLDED_LAST
/* The same as factor_of, BIAS_OF and SLOPE_OF for four channels. */
#define FOUR_OF(one, f, channel)                                                                   \
    ((result_vec_t)(one(f, channel), one(f, (channel) + 1), one(f, (channel) + 2),                 \
                    one(f, (channel) + 3)))

/* Stores the sums of four neighbouring channels; `aligned`: quads of the output are aligned to
 * their size. */
static void store_four(const struct epilogue *f, const vec_t sum, const long at, const long channel,
                       const bool aligned)
{
    const result_vec_t value =
        affine_lanes(sum, FOUR_OF(factor_of, f, channel), FOUR_OF(BIAS_OF, f, channel));
#if PLAIN && !NATIVE && !BETA && !RESIDUAL
    if (aligned) {
        *(__global result_vec_t *)(f->output + at) =
            finished(f, value, FOUR_OF(SLOPE_OF, f, channel));
        return;
    }
#endif
    put_lanes(f, value, at, FOUR_OF(SLOPE_OF, f, channel));
}

static void store_sums(const struct epilogue *f, acc_t sums[TM][TN], const int slice,
                       __local const struct outputs *outputs, __global const long *table,
                       const long group, const int first_row, const int tm, const int tn)
{
    const int out_channels = (int)table[FOLDED_OUT_CHANNELS];
    const struct place extents = extents_of(table);
    const long channel_step = table[FOLDED_OUTPUT_CHANNEL_STEP],
               z_step = table[FOLDED_OUTPUT_Z_STEP], y_step = table[FOLDED_OUTPUT_Y_STEP],
               x_step = table[FOLDED_OUTPUT_X_STEP];
    const int rows = (int)table[TILED_ROWS];
    const bool aligned = (size_t)f->output % (4 * sizeof(output_t)) == 0 &&
                         table[TILED_OUTPUT_QUADS] != 0;
    EACH_PART for (int m = 0; m < TM; m += 4)
    {
        const int row = first_row + ROW_OF(tm, m);
        const int channel = channel_of(row, table), phase = phase_of(row, table);
        const long all = group * out_channels + channel;
        const long from = all * channel_step + PHASE_Z(phase) * z_step + PHASE_Y(phase) * y_step +
                          PHASE_X(phase) * x_step;
        EACH for (int j = 0; j < OWN_N; j++)
        {
            const int n = PART_N(slice) + j;
            const int place = PLACE_OF(tn, n / 4, n % 4);
            if (row >= rows || !has_output(outputs, place, phase, &extents)) continue;
            const long at = outputs->at[place] + from;
            const vec_t four = (vec_t)(sums[0][j], sums[1][j], sums[2][j], sums[3][j]);
            if (channel + 4 <= out_channels)
                store_four(f, four, at, all, aligned);
            else
                EACH for (int i = 0; i < 3; i++) if (channel + i < out_channels)
                    put_one(f, affine_one(f, LANE(four, i), all + i), at + i, all + i);
        }
        EACH for (int next = 4; next < TM; next++) EACH for (int j = 0; j < OWN_N; j++)
            sums[next - 4][j] = sums[next][j];
    }
}
#else
static void store_sums(const struct epilogue *f, acc_t sums[TM][TN], const int slice,
                       __local const struct outputs *outputs, __global const long *table,
                       const long group, const int first_row, const int tm, const int tn)
{
    const int out_channels = (int)table[FOLDED_OUT_CHANNELS];
    const struct place extents = extents_of(table);
    const long channel_step = table[FOLDED_OUTPUT_CHANNEL_STEP],
               z_step = table[FOLDED_OUTPUT_Z_STEP], y_step = table[FOLDED_OUTPUT_Y_STEP],
               x_step = table[FOLDED_OUTPUT_X_STEP];
    EACH_PART for (int i = 0; i < OWN_M; i++)
    {
        const int row = first_row + ROW_OF(tm, PART_M(slice) + i);
        const int channel = channel_of(row, table), phase = phase_of(row, table);
        const long all = group * out_channels + channel;
        const long from = all * channel_step + PHASE_Z(phase) * z_step + PHASE_Y(phase) * y_step +
                          PHASE_X(phase) * x_step;
        if (channel < out_channels) {
            const result_t factor = factor_of(f, all), bias = BIAS_OF(f, all);
            EACH for (int n = 0; n < TN; n++)
            {
                const int place = PLACE_OF(tn, n / 4, n % 4);
                if (has_output(outputs, place, phase, &extents))
                    put_one(f, affine_with(sums[0][n], factor, bias), outputs->at[place] + from,
                            all);
            }
        }
        EACH for (int next = 1; next < OWN_M; next++) EACH for (int n = 0; n < TN; n++)
            sums[next - 1][n] = sums[next][n];
    }
}
#endif

/* ---- kernels -------------------------------------------------------------------------------- */

/* What a work-group computes. */
struct tile {
    int phase, first_row, first,
        count; /* its rows and places from these on; places that there are */
    long group;
    int number, part; /* among all tiles of a part */
};

/* Phases first: they write between each other's outputs. Then blocks, which read the same
 * inputs. */
static struct tile own_tile(__global const long *table)
{
    const int phases = (int)(table[TILED_PHASES_Z] * table[TILED_PHASES_Y] * table[TILED_PHASES_X]);
    const int blocks = (int)table[FOLDED_BLOCKS], tiles = (int)table[FOLDED_TILES];
    struct tile tile;
    int number = (int)get_group_id(0);
#if SPLIT
    const int all = phases * blocks * tiles * (int)table[FOLDED_GROUPS];
    tile.part = number / all;
    number -= tile.part * all;
    tile.number = number;
#endif
    tile.phase = number % phases;
    number /= phases;
    tile.first_row = number % blocks * MT;
    number /= blocks;
    tile.first = number % tiles * NT;
    tile.group = number / tiles;
    tile.count = (int)min((long)NT, table[FOLDED_BATCHES] * table[TILED_PLACES_Z] *
                                            table[TILED_PLACES_Y] * table[TILED_PLACES_X] -
                                        tile.first);
    return tile;
}

static void find_tile_outputs(__local struct outputs *outputs, const struct tile *tile,
                              __global const long *table)
{
    const int phases_y = (int)table[TILED_PHASES_Y], phases_x = (int)table[TILED_PHASES_X];
    find_outputs(outputs, tile->first, tile->count, tile->phase / phases_x / phases_y,
                 tile->phase / phases_x % phases_y, tile->phase % phases_x, table);
    barrier(CLK_LOCAL_MEM_FENCE); /* outputs are known */
}

/* A work-item's place among those that multiply the same channels of a stage. */
#if LAST
#define OWN_TM(item) ((item) % SLICE_ITEMS % LANES_M)
#define OWN_TN(item) ((item) % SLICE_ITEMS / LANES_M)
#else
#define OWN_TM(item) ((item) % SLICE_ITEMS / LANES_N)
#define OWN_TN(item) ((item) % SLICE_ITEMS % LANES_N)
#endif

#if SPLIT
/* A work-item's first sum in the workspace, of part 0. Those of a part lie as
 * [tile][row of a work-item][place of a work-item][work-item of a slice]. */
#define SUM_AT(m, n) (((m)*TN + (n)) * SLICE_ITEMS)
static __global acc_t *own_sums(__global acc_t *workspace, const ulong offset, const int tile,
                                const int slice)
{
    return workspace + (offset * sizeof(data_t) + sizeof(acc_t) - 1) / sizeof(acc_t) +
           (long)tile * (TM * TN * SLICE_ITEMS) + SUM_AT(PART_M(slice), PART_N(slice)) +
           get_local_id(0) % SLICE_ITEMS;
}

static long part_step(__global const long *table)
{
    return table[TILED_PHASES_Z] * table[TILED_PHASES_Y] * table[TILED_PHASES_X] *
           table[FOLDED_BLOCKS] * table[FOLDED_TILES] * table[FOLDED_GROUPS] *
           (TM * TN * SLICE_ITEMS);
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
            __global const long *restrict table)
{
    __local acc_t numbers[LOCAL_NUMBERS] __attribute__((aligned(32)));
    const struct tile own = own_tile(table);
    const int first = own.first, first_row = own.first_row, count = own.count;
    const long group = own.group;
#if !SPLIT
    __local struct outputs outputs;
    find_tile_outputs(&outputs, &own, table);
#endif
    __global const data_t *own_data =
        data + data_offset + group * table[FOLDED_IN_CHANNELS] * table[FOLDED_DATA_CHANNEL_STEP];
    __global const packed_t *weights = weights_of(filter + filter_offset, table, group);
#if FLOATING
    const bool exact = flags[flags_offset + (ulong)group] != 0;
#else
    const bool exact = false;
#endif

    const int item = (int)get_local_id(0);
    const int slice = item / SLICE_ITEMS, tm = OWN_TM(item), tn = OWN_TN(item);
    struct fetch fetch;
    fetch.channel = FETCHED_CHANNEL(item);
    fetch.in_channels = (int)table[FOLDED_IN_CHANNELS];
    fetch.rows = (int)table[TILED_ROWS];
    fetch.channel_step = table[FOLDED_DATA_CHANNEL_STEP];
#if SPLIT
    const int skipped = own.part * (int)table[TILED_PART_CHANNELS];
    own_data += skipped * fetch.channel_step;
    weights += (long)skipped * fetch.rows;
    fetch.in_channels = min(fetch.in_channels - skipped, (int)table[TILED_PART_CHANNELS]);
#endif
    fetch.aligned = (size_t)own_data % (4 * sizeof(data_t)) == 0;
    fetch.zero = DATA_ZERO(table);
    struct place place[OWN_PLACES];
    EACH for (int p = 0; p < OWN_PLACES; p++)
    {
        const int own = FETCHED_PLACE(item) + p * PLACES_APART;
        place[p] = place_at(first + (own < count ? own : 0), table);
        fetch.data[p] = own_data + place[p].n * table[FOLDED_DATA_BATCH_STEP] +
                        place[p].z * table[FOLDED_DATA_Z_STEP] +
                        place[p].y * table[FOLDED_DATA_Y_STEP] +
                        place[p].x * table[FOLDED_DATA_X_STEP] + fetch.channel * fetch.channel_step;
        if (own >= count) place[p].z = -(1 << 30); /* outside for every tap */
    }
    EACH for (int i = 0; i < WEIGHT_PARTS; i++)
    {
        /* Rows past the last one are those of others, and are not stored. */
        const int own = (i * ITEMS + item) % WEIGHT_QUADS;
        fetch.weights[i] = own / (MT / 4) * fetch.rows +
                           min(first_row + own % (MT / 4) * 4, fetch.rows - 4);
    }
    const struct range range = range_of(first, first + count - 1, table);

    acc_t sums[TM][TN];
    EACH for (int m = 0; m < TM; m++) EACH for (int n = 0; n < TN; n++) sums[m][n] = 0;
    __global const long *kind = table + table[TILED_PHASES_AT] + own.phase * KIND_LONGS;
    __global const long *list = table + table[TILED_LIST_AT] + kind[KIND_LIST] * TAP_LONGS;
    const int tap_stages = (fetch.in_channels + KS - 1) / KS;
    int left = exact ? 0 : (int)kind[KIND_TAPS];
#if ROUNDS
    for (; left > 0; left -= 32, list += 32 * TAP_LONGS)
#endif
    {
        uint taps = 0;
        EACH for (int p = 0; p < OWN_PLACES; p++) fetch.inside[p] = 0;
        for (int t = 0; t < min(left, 32); t++) {
            __global const long *tap = list + t * TAP_LONGS;
            const uint bit = reaches(&range, tap, table) ? 0x80000000u >> t : 0;
            taps |= bit;
            EACH for (int p = 0; p < OWN_PLACES;
                      p++) if ((uint)(place[p].z + (int)tap[TAP_Z]) < (uint)table[FOLDED_INPUT_Z] &&
                               (uint)(place[p].y + (int)tap[TAP_Y]) < (uint)table[FOLDED_INPUT_Y] &&
                               (uint)(place[p].x + (int)tap[TAP_X]) < (uint)table[FOLDED_INPUT_X])
                fetch.inside[p] |= bit;
        }
        const int stages = (int)popcount(taps) * tap_stages;
        struct stage stage = stage_of(taps, list, weights, &fetch);
        struct waiting waiting;
#if ROUNDS
        barrier(CLK_LOCAL_MEM_FENCE); /* the round before is multiplied */
#endif
        if (stages > 0) {
            fetch_stage(&waiting, &stage, &fetch);
            put_stage(&waiting, numbers, numbers + KS * MT);
        }
        for (int number = 0; number < stages; number++) {
            __local acc_t *tile = numbers + number % 2 * STAGE_NUMBERS,
                          *other = numbers + (number + 1) % 2 * STAGE_NUMBERS;
            barrier(CLK_LOCAL_MEM_FENCE); /* this stage is there, the one before is multiplied */
            const bool more = number + 1 < stages;
            stage.channel += KS;
            if (stage.channel < fetch.in_channels) {
                stage.data += KS * fetch.channel_step;
                stage.weights += KS * fetch.rows;
            } else if (more) {
                taps &= 0x7fffffffu >> stage.tap;
                stage = stage_of(taps, list, weights, &fetch);
            }
            if (more) fetch_stage(&waiting, &stage, &fetch);
            multiply_stage(sums, tile + slice * (KS / SLICES) * MT + tm * 4,
                           tile + KS * MT + slice * (KS / SLICES) * INPUT_STEP + tn * 4);
            if (more) put_stage(&waiting, other, other + KS * MT);
        }
    }

#if !SPLIT
    EPILOGUE(epilogue, table)
#endif
    /* One part, or one after the other. */
#pragma unroll 1
    for (int part = 0; part < SLICES; part++) {
#if SLICES > 1
        share_part(sums, numbers, part, slice);
#endif
        if (slice == part) {
#if SPLIT
            __global acc_t *to = own_sums(workspace, workspace_offset, own.number, slice) +
                                 own.part * part_step(table);
            EACH for (int m = 0; m < OWN_M; m++) EACH for (int n = 0; n < OWN_N; n++)
                to[SUM_AT(m, n)] = sums[m][n];
#else
#if FLOATING
            if (exact || is_wrong(sums))
                store_exact(&epilogue, part, &outputs, own_data, weights, table, group, first_row,
                            first, tm, tn);
            else
#endif
                store_sums(&epilogue, sums, part, &outputs, table, group, first_row, tm, tn);
#endif
        }
#if SLICES > 1
        next_part(sums);
#endif
    }
}

#else
/* Adds up the sums of all parts in their order, and finishes them. */
KERNEL __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
tconv_tiled_finish(__global const data_t *restrict data, const ulong data_offset,
                   __global const packed_t *restrict filter, const ulong filter_offset,
                   __global const uint *restrict flags, const ulong flags_offset,
                   __global acc_t *restrict workspace, const ulong workspace_offset,
                   EPILOGUE_PARAMETERS, __global const long *restrict table)
{
    __local struct outputs outputs;
    const struct tile own = own_tile(table);
    find_tile_outputs(&outputs, &own, table);
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
        store_exact(&epilogue, slice, &outputs,
                    data + data_offset +
                        own.group * table[FOLDED_IN_CHANNELS] * table[FOLDED_DATA_CHANNEL_STEP],
                    weights_of(filter + filter_offset, table, own.group), table, own.group,
                    own.first_row, own.first, tm, tn);
    else
#endif
        store_sums(&epilogue, sums, slice, &outputs, table, own.group, own.first_row, tm, tn);
}
#endif
