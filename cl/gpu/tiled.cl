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
 * The difference form (DIFFERENCE) computes nearest upsampling by 2 and a convolution of three taps
 * along x, y or both. Along such an axis the equivalent filter has 4 taps e, and phases are rows:
 * the outputs of position q are
 *
 *   e[0] x[q] + e[2] x[q-1]  =  W x[q] + e[2] (x[q-1] - x[q])
 *   e[1] x[q] + e[3] x[q-1]  =  W x[q] + e[3] (x[q-1] - x[q])
 *
 * because e[0] + e[2] = e[1] + e[3] = W, the sum of the three taps. So both outputs share a
 * product: 3 products for 2 outputs, with two axes 9 for 4. A kind of products takes along each
 * axis either x[q] (with W, for both phases) or the difference (with e[2] and e[3]). The kinds are
 * added up one after the other in the same sums, first that which most outputs share:
 *
 *   along both axes   W            then copied to the phases along x
 *                     e along x    added to these two
 *                     e along y    two other sums; now each phase gets a sum of both pairs
 *                     e            added to the four phases
 *
 * So there are never more sums than outputs. The weights of a kind are sets of rows, one for each
 * phase that it tells apart. Along all other axes taps are added as usual. Differences of
 * infinities are NaN, and sums of weights may overflow. Therefore an output that is not finite is
 * computed again from the equivalent filter, which stands in front of the products' weights.
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
 *   DIFFERENCE  the axes of the difference form, whose phases are the rows:   absent, 1, 2, 3
 *               1 for x, 2 for y, 3 for both; TM is a multiple of 4 rows of
 *               each phase
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

/* SETS: sets of rows, with DIFFERENCE one for each phase. Of the number of a kind of products, bit
 * 1 says that it takes the difference along the last axis of DIFFERENCE, and bit 2 along the one
 * before. */
#ifdef DIFFERENCE
#define SETS PHASE_ROWS
#if PZ > 1 || PX != 1 + (DIFFERENCE & 1) || PY != 1 + DIFFERENCE / 2 || ROUNDS ||                  \
    TM % (4 * SETS) != 0
#error "the phases do not fit to DIFFERENCE"
#endif
#else
#define SETS 1
#endif
/* Functions that are called for each kind. They are inlined, so that the kind is a constant in each
 * and their loops are unrolled. */
#ifdef DIFFERENCE
#define PER_KIND INLINED
#else
#define PER_KIND
#endif
#define SETS_OF(kind) ((kind) == 0 ? 1 : (kind) == 3 ? 4 : 2)
#define SETS_BEFORE(kind)                                                                          \
    ((kind) == 0 ? 0 : (kind) == 1 ? 1 : (kind) == 2 ? 3 : (kind) == 3 ? 5 : 9)

/* Rows of some sets, in a tile and of a work-item. */
#define ROWS_OF(sets) (MT / SETS * (sets))
#define OWN_ROWS_OF(sets) (TM / SETS * (sets))

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
#define WEIGHT_QUADS(sets) (KS * ROWS_OF(sets) / 4)
#define WEIGHT_PARTS(sets) ((WEIGHT_QUADS(sets) + ITEMS - 1) / ITEMS)

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

#ifdef DIFFERENCE
/* ---- weights of products -------------------------------------------------------------------- */

/* Makes the weights of products from a group's equivalent filter, and puts them behind it: for each
 * tap of the other axes those of all kinds, in the order [kind][input channel][set][channel], with
 * channels padded to a multiple of 4. A work-item makes those of one output channel and one input
 * channel. */
__kernel void tconv_difference_pack(__global packed_t *restrict filter, const ulong filter_offset,
                                    table_t restrict table)
{
    const int channels = divisor_of(table[TILED_CHANNELS]), channel = (int)get_global_id(0);
    const int in_channels = (int)table[FOLDED_IN_CHANNELS], rows = (int)table[TILED_ROWS];
    if (channel >= channels) return;
    const int taps = (int)table[TILED_TAPS_Z] * (int)table[TILED_TAPS_Y] *
                     (int)table[TILED_TAPS_X] / SETS;
    const long tap_weights = (long)in_channels * rows, set_weights = (long)in_channels * channels;
    const bool exists = channel < (int)table[FOLDED_OUT_CHANNELS];
    filter += filter_offset + TAPS_HEADER((int)table[FOLDED_GROUPS], sizeof(packed_t));
    for (int number = (int)get_global_id(2); number < (int)table[FOLDED_GROUPS] * taps;
         number += (int)get_global_size(2)) {
        const int tap = number % taps;
        __global packed_t *group = filter + number / taps * table[TILED_GROUP_WEIGHTS];
        for (int ci = (int)get_global_id(1); ci < in_channels; ci += (int)get_global_size(1)) {
            __global const packed_t *from = group + tap * SETS * tap_weights + (long)ci * rows;
            __global packed_t *to = group + taps * SETS * tap_weights +
                                    tap * SETS_BEFORE(SETS) * set_weights + channel;
            for (int kind = 0; kind < SETS; kind++)
                for (int set = 0; set < SETS_OF(kind); set++) {
                    const int phase = kind == 2 ? set * 2 : set;
                    const int row = FOLDED_LAST ? phase * channels + channel
                                                : channel * SETS + phase;
                    acc_t sum = 0;
                    for (int corner = kind; exists && corner < SETS; corner++)
                        if ((corner & kind) == kind)
                            sum += READ_WEIGHT(from + corner * tap_weights + row);
                    to[SETS_BEFORE(kind) * set_weights +
                       ((long)ci * SETS_OF(kind) + set) * channels] = sum;
                }
        }
    }
}
#endif

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
    uint inside[OWN_POSITIONS];       /* a bit for each tap, the highest being the first */
    uint weights[WEIGHT_PARTS(SETS)]; /* from the stage's first weight */
    int channel;
    int in_channels, rows;
    uint channel_step; /* unsigned: signs take instructions in every address */
    bool aligned;      /* quads of channels are aligned as READ_QUAD needs them */
    acc_t zero;
#ifdef DIFFERENCE
    table_t products; /* for each tap of the other axes, where the weights of its products begin */
    long kind;        /* from there to those of the kind and of the part's first channel */
    int skipped;      /* channels of other parts */
    uint back[2];     /* elements to the input before, along the axes of the kinds' bits 1 and 2 */
#endif
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
#ifdef DIFFERENCE
    fetch->skipped = skipped;
#else
    *weights += (long)skipped * fetch->rows;
#endif
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

/* Finds the weights that a work-item fetches of `sets` sets of rows. Rows past the last one are
 * other tiles' rows; their sums are not stored. */
static INLINED void find_weights(struct fetch *fetch, const struct tile *tile, const int sets)
{
    EACH for (int i = 0; i < WEIGHT_PARTS(SETS); i++)
    {
        if (i >= WEIGHT_PARTS(sets)) continue;
        const int own = (i * ITEMS + (int)get_local_id(0)) % WEIGHT_QUADS(sets),
                  row = own % (ROWS_OF(sets) / 4) * 4, rows = fetch->rows / sets;
        fetch->weights[i] = (uint)(own / (ROWS_OF(sets) / 4) * fetch->rows +
                                   row / ROWS_OF(1) * rows +
                                   min(tile->first_row / SETS + row % ROWS_OF(1), rows - 4));
    }
}

/* A stage that is being loaded. */
struct waiting {
    FIRST_MEMBER
    vec_t weights[WEIGHT_PARTS(SETS)];
    acc_t inputs[OWN_POSITIONS][OWN_CHANNELS];
};

static struct stage stage_of(const uint taps, table_t list, __global const packed_t *weights,
                             const struct fetch *fetch)
{
    struct stage stage = {.tap = 0, .channel = 0, .data = 0, .weights = weights};
    if (taps == 0) return stage; /* never added: the list may end here */
    stage.tap = UNIFORM((int)clz(taps));
    stage.data = list[stage.tap * TAP_LONGS + TAP_OFFSET];
#ifdef DIFFERENCE
    stage.weights = weights + (fetch->products[stage.tap / SETS] + fetch->kind);
#else
    stage.weights = weights + list[stage.tap * TAP_LONGS + TAP_WEIGHTS];
#endif
    return stage;
}

/* True if the input of a tap lies inside the data. */
static bool is_inside(const struct fetch *fetch, const int p, const int tap)
{
    return (int)(fetch->inside[p] << tap) < 0;
}

/* A corner is an input that a difference is made of. The bits of its number say along which axes it
 * is the input before that of the position. The taps of corners follow each other in the list. */
#ifdef DIFFERENCE
#define CORNER(from, corner)                                                                       \
    ((from) - ((corner)&1 ? (ulong)fetch->back[0] : 0) - ((corner)&2 ? (ulong)fetch->back[1] : 0))
#else
#define CORNER(from, corner) (from)
#endif

/* Sets `value` to what a kind multiplies: an input, a difference, or a difference of differences.
 * one(corner) reads a corner. Those that are one step away from corner number `kind` are
 * subtracted, others added. */
#define DIFFERENCE_OF(kind, value, one)                                                            \
    value = one(kind);                                                                             \
    EACH for (int corner = 0; corner < (kind); corner++)                                           \
    {                                                                                              \
        if ((corner & ~(kind)) != 0) continue;                                                     \
        value = ((kind) ^ corner) == 3 ? value + one(corner) : value - one(corner);                \
    }

static PER_KIND void fetch_stage(struct waiting *waiting, const struct stage *stage,
                                 const struct fetch *fetch, const int kind)
{
    const int sets = SETS_OF(kind);
    EACH for (int i = 0; i < WEIGHT_PARTS(SETS); i++)
    {
        if (i >= WEIGHT_PARTS(sets)) continue;
#if WHOLE
        waiting->weights[i] = READ_WEIGHTS(stage->weights + fetch->weights[i]);
#else
        /* Past the last channel inputs are zeros, so any finite weight will do. */
        const int k = (i * ITEMS + (int)get_local_id(0)) % WEIGHT_QUADS(sets) / (ROWS_OF(sets) / 4),
                  past = max(0, stage->channel + k - (fetch->in_channels - 1));
        waiting->weights[i] =
            READ_WEIGHTS(stage->weights + (int)fetch->weights[i] - past * fetch->rows);
#endif
    }
    EACH for (int p = 0; p < OWN_POSITIONS; p++)
    {
        __global const data_t *from = fetch->data[p] + stage->data;
#if LAST && QUADS
        if (fetch->aligned) {
#define QUAD(corner)                                                                               \
    (is_inside(fetch, p, stage->tap + (corner)) &&                                                 \
             (WHOLE || stage->channel + fetch->channel < fetch->in_channels)                       \
         ? READ_QUAD(CORNER(from, corner), fetch->zero)                                            \
         : (vec_t)(0))
            vec_t quad;
            DIFFERENCE_OF(kind, quad, QUAD)
            EACH for (int j = 0; j < 4; j++) waiting->inputs[p][j] = LANE(quad, j);
            continue;
        }
#endif
        EACH for (int j = 0; j < OWN_CHANNELS; j++)
        {
            const int channel = stage->channel + fetch->channel + j * CHANNELS_APART;
            const ulong at = (ulong)(j * CHANNELS_APART) * fetch->channel_step;
#define INPUT(corner)                                                                              \
    (is_inside(fetch, p, stage->tap + (corner)) && (WHOLE || channel < fetch->in_channels)         \
         ? READ_DATA(CORNER(from + at, corner), fetch->zero)                                       \
         : (acc_t)0)
            DIFFERENCE_OF(kind, waiting->inputs[p][j], INPUT)
        }
    }
}

static PER_KIND void put_stage(const struct waiting *waiting, __local acc_t *weights,
                               __local acc_t *inputs, const int sets)
{
    const int item = (int)get_local_id(0);
    EACH for (int i = 0; i < WEIGHT_PARTS(SETS); i++)
    {
        const int own = i * ITEMS + item;
        if (i >= WEIGHT_PARTS(sets)) continue;
        if (WEIGHT_QUADS(sets) % ITEMS == 0 || own < WEIGHT_QUADS(sets))
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

static PER_KIND void read_operands(struct operands *own, __local const acc_t *weights,
                                   __local const acc_t *inputs, const int sets)
{
    EACH for (int i = 0; i < TM / 4; i++) if (i < OWN_ROWS_OF(sets) / 4)
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
    sums[first + i + (m)][j * 4 + (n)] =                                                           \
        MULTIPLY_ADD(weight, input, sums[first + i + (m)][j * 4 + (n)])
#define ADD_ROW(m, weight)                                                                         \
    EACH for (int j = 0; j < TN / 4; j++)                                                          \
    {                                                                                              \
        ADD_PRODUCT(m, 0, weight, own->inputs[j].s0);                                              \
        ADD_PRODUCT(m, 1, weight, own->inputs[j].s1);                                              \
        ADD_PRODUCT(m, 2, weight, own->inputs[j].s2);                                              \
        ADD_PRODUCT(m, 3, weight, own->inputs[j].s3);                                              \
    }
static PER_KIND void add_products(acc_t sums[TM][TN], const struct operands *own, const int sets,
                                  const int first)
{
    EACH for (int i = 0; i < TM; i += 4)
    {
        if (i >= OWN_ROWS_OF(sets)) continue;
        ADD_ROW(0, own->weights[i / 4].s0)
        ADD_ROW(1, own->weights[i / 4].s1)
        ADD_ROW(2, own->weights[i / 4].s2)
        ADD_ROW(3, own->weights[i / 4].s3)
    }
}

/* Adds the products of one slice's channels of a stage, two in turn: where the loop is not
 * unrolled, operands are in registers nevertheless. `sets` sets of rows are added to the sums from
 * row `first` on. */
static PER_KIND void multiply_stage(acc_t sums[TM][TN], __local const acc_t *weights,
                                    __local const acc_t *inputs, const int sets, const int first)
{
    const int step = ROWS_OF(sets);
    struct operands even, odd;
    if (AHEAD) read_operands(&even, weights, inputs, sets);
    EACH for (int k = 0; k < KS / SLICES; k += 2)
    {
        if (!AHEAD) read_operands(&even, weights + k * step, inputs + k * INPUT_STEP, sets);
        if (AHEAD)
            read_operands(&odd, weights + (k + 1) * step, inputs + (k + 1) * INPUT_STEP, sets);
        add_products(sums, &even, sets, first);
        if (!AHEAD)
            read_operands(&odd, weights + (k + 1) * step, inputs + (k + 1) * INPUT_STEP, sets);
        if (AHEAD && k + 2 < KS / SLICES)
            read_operands(&even, weights + (k + 2) * step, inputs + (k + 2) * INPUT_STEP, sets);
        add_products(sums, &odd, sets, first);
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

/* The row of a work-item's sums number m, at least TILED_ROWS if there is none. */
static int row_at(const struct tile *tile, const int tm, const int m, table_t table)
{
#ifdef DIFFERENCE
    const int channel = tile->first_row / SETS + ROW_OF(tm, m % (TM / SETS)), set = m / (TM / SETS),
              channels = divisor_of(table[TILED_CHANNELS]);
    if (channel >= channels) return (int)table[TILED_ROWS];
    return FOLDED_LAST ? set * channels + channel : channel * SETS + set;
#else
    return tile->first_row + ROW_OF(tm, m);
#endif
}

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
        const int row = row_at(tile, tm, PART_M(slice) + i / OWN_N, table),
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
 * or NaN input; a difference may be of infinities. */
static bool is_wrong(const acc_t sums[TM][TN])
{
    bool finite = true;
#if LACKING || defined(DIFFERENCE)
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
        const int row = row_at(tile, tm, m, table);
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
        const int row = row_at(tile, tm, PART_M(slice) + i, table);
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
/* Adds the stages of some taps. With DIFFERENCE those of the products of one kind, to the sums from
 * row `first` on; else `kind` and `first` are 0. */
static PER_KIND void add_stages(acc_t sums[TM][TN], __local acc_t *numbers, uint taps, table_t list,
                                __global const packed_t *weights, const struct fetch *fetch,
                                const int kind, const int first)
{
    const int item = (int)get_local_id(0);
    const int slice = item / SLICE_ITEMS, tm = OWN_TM(item), tn = OWN_TN(item);
    const int sets = SETS_OF(kind);
    const int stages = (int)popcount(taps) * ((fetch->in_channels + KS - 1) / KS);
    struct stage stage = stage_of(taps, list, weights, fetch);
    struct waiting waiting;
#if ROUNDS || defined(DIFFERENCE)
    barrier(CLK_LOCAL_MEM_FENCE); /* the products of the stages before are done */
#endif
    if (stages > 0) {
        fetch_stage(&waiting, &stage, fetch, kind);
        put_stage(&waiting, numbers, numbers + KS * MT, sets);
    }
    for (int number = 0; number < stages; number++) {
        __local acc_t *now = numbers + number % 2 * STAGE_NUMBERS,
                      *other = numbers + (number + 1) % 2 * STAGE_NUMBERS;
        barrier(CLK_LOCAL_MEM_FENCE); /* this stage is loaded, and the products of the stage
                                         before are done */
        const bool more = number + 1 < stages;
        stage.channel += KS;
        if (stage.channel < fetch->in_channels) {
            stage.data += (long)((ulong)KS * fetch->channel_step);
            stage.weights += KS * fetch->rows;
        } else if (more) {
            taps &= 0x7fffffffu >> stage.tap;
            stage = stage_of(taps, list, weights, fetch);
        }
        if (more) fetch_stage(&waiting, &stage, fetch, kind);
        multiply_stage(sums, now + slice * (KS / SLICES) * ROWS_OF(sets) + tm * 4,
                       now + KS * MT + slice * (KS / SLICES) * INPUT_STEP + tn * 4, sets, first);
        /* Also after the last stage, when it stores an old stage again: with a branch around it,
         * compilers move the products behind the branch, and all their operands stay in registers
         * that long. */
        put_stage(&waiting, other, other + KS * MT, sets);
    }
}

#ifdef DIFFERENCE
/* Adds the products of one kind. */
static INLINED void add_kind(acc_t sums[TM][TN], __local acc_t *numbers, const uint taps,
                             table_t list, __global const packed_t *weights, struct fetch *fetch,
                             const struct tile *tile, table_t table, const int kind,
                             const int first)
{
    const int channels = divisor_of(table[TILED_CHANNELS]);
    fetch->rows = SETS_OF(kind) * channels;
    fetch->kind = (long)SETS_BEFORE(kind) * (int)table[FOLDED_IN_CHANNELS] * channels +
                  (long)fetch->skipped * fetch->rows;
    find_weights(fetch, tile, SETS_OF(kind));
    add_stages(sums, numbers, taps, list, weights, fetch, kind, first);
}

/* Adds the products of all kinds, in the order and the sums that the top of the file explains. */
static INLINED void add_differences(acc_t sums[TM][TN], __local acc_t *numbers, uint taps,
                                    table_t kind, __global const packed_t *weights,
                                    struct fetch *fetch, const struct tile *tile, table_t table)
{
    enum { SET = TM / SETS };
    table_t list = list_of(kind, table);
    fetch->products = table + table[TILED_PRODUCTS_AT] + kind[KIND_LIST] / SETS;
    fetch->back[0] = (uint)(DIFFERENCE == 2 ? STEP(table, DATA_Y) : STEP(table, DATA_X));
    fetch->back[1] = (uint)STEP(table, DATA_Y);
#if !SPLIT
    fetch->skipped = 0;
#endif
    /* The taps of the other axes for which any corner reaches the tile. */
#if SETS == 4
    taps = (taps | taps << 1 | taps << 2 | taps << 3) & 0x88888888u;
#else
    taps = (taps | taps << 1) & 0xaaaaaaaau;
#endif
    add_kind(sums, numbers, taps, list, weights, fetch, tile, table, 0, 0);
    EACH for (int m = 0; m < SET; m++) EACH for (int n = 0; n < TN; n++)
        sums[SET + m][n] = sums[m][n];
    add_kind(sums, numbers, taps, list, weights, fetch, tile, table, 1, 0);
#if SETS == 4
    add_kind(sums, numbers, taps, list, weights, fetch, tile, table, 2, 2 * SET);
    EACH for (int m = 0; m < SET; m++) EACH for (int n = 0; n < TN; n++)
    {
        const acc_t x0 = sums[m][n], x1 = sums[SET + m][n], y0 = sums[2 * SET + m][n],
                    y1 = sums[3 * SET + m][n];
        sums[m][n] = x0 + y0;
        sums[SET + m][n] = x1 + y0;
        sums[2 * SET + m][n] = x0 + y1;
        sums[3 * SET + m][n] = x1 + y1;
    }
    add_kind(sums, numbers, taps, list, weights, fetch, tile, table, 3, 0);
#endif
}
#endif

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
#ifndef DIFFERENCE
    find_weights(&fetch, &tile, 1);
#endif
    const struct range range = range_of(tile.first, tile.first + tile.count - 1, table);
    const struct position inputs = inputs_of(table);

    acc_t sums[TM][TN];
    EACH for (int m = 0; m < TM; m++) EACH for (int n = 0; n < TN; n++) sums[m][n] = 0;
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
#ifdef DIFFERENCE
        add_differences(sums, numbers, taps, kind, weights, &fetch, &tile, table);
#else
        add_stages(sums, numbers, taps, list, weights, &fetch, 0, 0);
#endif
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
