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
 * An output may be a vector of VW neighbours in memory, so that a work-item moves up to 16 bytes
 * with each load and store. With LAST the lanes of a vector are output channels. In depthwise
 * layers each lane reads its own input. In other layers all lanes read the same inputs, CHUNK
 * channels with each load. Without LAST the lanes are VW neighbouring outputs along x. The stride
 * divides VW, so a vector has all phases. Its inputs in a row are neighbours, and are read in
 * pieces of CHUNK elements.
 *
 * The loop over taps along x is unrolled if TAPS_X is set or vectors lie along x. An input outside
 * the data is not read, and its product is not added: no zero meets a weight that is infinite or
 * NaN.
 *
 *   macro       meaning                                                       legal values
 *   OUTPUTS     outputs of a work-item in each channel and round              1, 2, 4, 8
 *   CHANNELS    output channels of a work-item, besides those of a vector     1, 2, 4
 *   VW          lanes of an output                                            1, 4, 8
 *   CHUNK       neighbouring elements of the data that one load reads         1 to VW
 *   ALONG_Y     1: the outputs lie along y; 0: along x                        0, 1
 *   TAPS_X      taps along x of every phase; 0: they differ                   0 to 4
 *   ADJACENT    1: taps along x read neighbouring elements of the data        0, 1
 *   SINGLE      1: there is one input channel in a group                      0, 1
 *   LAST        1: output channels are neighbours                             0, 1
 *   DEPTHWISE   1: groups have one input and one output channel               0, 1
 *   KX, SX      VW > 1 without LAST: taps and stride along x                  SX divides VW
 *   RX          the same: pad_begin along x modulo SX                         0 to SX - 1
 *   SHIFT       the same: the input that output 0 reads by tap RX, modulo     0 to CHUNK - 1
 *               CHUNK
 *   NEAR        what loops keep: near.clh; absent: 0                          0, 1, 2
 *   FLAT        with NEAR: 1: no output has more than one tap along z         0, 1
 *   CONSTANT_TABLE  1: the table is in constant memory, from where a number   0, 1
 *               comes sooner
 *   IMAGES      LAST with VW > 1, f32 and f16: 1: data and weights are read   0, 1
 *               as images of pixels of four elements, which some GPUs read
 *               through a cache of their own. CHUNK is VW; absent: 0
 *
 * Registers: OUTPUTS * CHANNELS * VW sums. */
#include "common/divisor.h"
#include "common/epilogue.clh"
#include "gpu/direct_table.h"
#include "gpu/near.clh"
#include "gpu/wide.clh"

#if !defined(OUTPUTS) || !defined(CHANNELS) || !defined(ALONG_Y) || !defined(TAPS_X) ||            \
    !defined(ADJACENT) || !defined(SINGLE) || !defined(LAST) || !defined(VW) || !defined(CHUNK) || \
    !defined(DEPTHWISE) || !defined(CONSTANT_TABLE)
#error "a macro of the table above is not set"
#endif

/* What the lanes of an output are. */
#define LANES_X (VW > 1 && !LAST)
#define LANES_CHANNELS (VW > 1 && LAST)
#if LANES_X && (!defined(KX) || !defined(SX) || !defined(RX) || !defined(SHIFT))
#error "KX, SX, RX and SHIFT must be set for vectors along x"
#endif

#ifndef IMAGES
#define IMAGES 0
#endif
#if IMAGES
#if !LANES_CHANNELS || (CHUNK != VW && !DEPTHWISE)
#error "images want vectors of channels"
#endif
#define IMAGE_PARAMETERS                                                                           \
    , __read_only image1d_buffer_t data_image, __read_only image1d_buffer_t filter_image
#define IMAGE_ARGUMENTS , data_image, filter_image
#else
#define IMAGE_PARAMETERS
#define IMAGE_ARGUMENTS
#endif

#if CONSTANT_TABLE
typedef __constant long *table_t;
#else
typedef __global const long *table_t;
#endif

#define SUMS (OUTPUTS * CHANNELS)
#if TAPS_X > 0
#define EACH_TAP EACH
#else
#define EACH_TAP
#endif

/* The index of a weight in the packed filter, by steps of the table: channels outside, taps
 * inside, or with LAST taps outside. Along x, taps that reach the same outputs follow each
 * other. */
static int weight_at(const int channel, const int ci, const int tap, table_t table)
{
    return channel * (int)table[DIRECT_WEIGHT_CHANNEL] + ci * (int)table[DIRECT_WEIGHT_IN] +
           tap * (int)table[DIRECT_WEIGHT_TAP];
}

/* The index of tap k along x. 32 bits suffice: folded.c limits kernels, also dilated ones. */
static int tap_index_of(const int k, table_t table)
{
    int dilated = k * (int)table[FOLDED_DILATION_X], step = k;
    const int phase = split(&dilated, table[DIRECT_STRIDE_X]);
    split(&step, table[DIRECT_TAP_STEP_X]);
    return (int)table[(int)table[DIRECT_X_AT] + phase * REACH_LONGS + REACH_TAP] + step;
}

/* A work-item packs weights of one tap and input channel. Indices have 32 bits: multiplying and
 * dividing 64 bits takes up to hundreds of instructions on GPUs. */
__kernel void tconv_direct_pack(__global const filter_t *restrict weights,
                                const ulong weights_offset, __global packed_t *restrict filter,
                                const ulong filter_offset, table_t restrict table)
{
    const int taps_x = (int)table[FOLDED_KERNEL_X],
              taps = taps_x * (int)table[FOLDED_KERNEL_Y] * (int)table[FOLDED_KERNEL_Z];
    const acc_t zero = FILTER_ZERO(table);
    const int channel = (int)get_global_id(0);
    int group = channel;
    const int own = split(&group, table[DIRECT_OUT_CHANNELS]);
    if (group >= (int)table[FOLDED_GROUPS]) return;
    weights += weights_offset;
    filter += filter_offset;
    const int first = group * (int)table[FOLDED_SOURCE_GROUP_STEP] +
                      own * (int)table[FOLDED_SOURCE_OUT_STEP];
    for (int tap = (int)get_global_id(1); tap < taps; tap += (int)get_global_size(1)) {
        int row = tap;
        const int tap_x = split(&row, table[DIRECT_TAPS_X]);
        const int packed_tap = row * taps_x + tap_index_of(tap_x, table);
        const int tap_y = split(&row, table[DIRECT_TAPS_Y]);
        const int from = first + row * (int)table[FOLDED_SOURCE_Z_STEP] +
                         tap_y * (int)table[FOLDED_SOURCE_Y_STEP] +
                         tap_x * (int)table[FOLDED_SOURCE_X_STEP];
        for (int ci = (int)get_global_id(2); ci < (int)table[FOLDED_IN_CHANNELS];
             ci += (int)get_global_size(2))
            PACK(weights + (from + ci * (int)table[FOLDED_SOURCE_IN_STEP]),
                 filter + weight_at(channel, ci, packed_tap, table), zero);
    }
}

/* The sums of a work-item, for output i in channel m, and its lane v. Lanes that are channels have
 * the same inputs, and so are a vector. */
#if LANES_CHANNELS
#define NUMBERS SUMS
typedef vec_t sum_t;
#define SUM(i, m, v) (*sums)[(i)*CHANNELS + (m)]
#else
#define NUMBERS (SUMS * VW)
typedef acc_t sum_t;
#define SUM(i, m, v) (*sums)[((i)*CHANNELS + (m)) * VW + (v)]
#endif

#if LANES_X
/* The chunks of a row that a vector of outputs reads, from the one with input_x - SHIFT on.
 * Multiples of KX make all dividends positive. */
#define FIRST_CHUNK ((SHIFT + (RX + SX - KX + SX * KX) / SX - KX + CHUNK * KX) / CHUNK - KX)
#define LAST_CHUNK ((SHIFT + (VW - 1 + RX) / SX) / CHUNK)
/* Where the packed filter has tap k of a row, and how many weights of the row one load reads. */
#define WEIGHT_OF(k) ((k) % SX * (KX / SX) + min((k) % SX, KX % SX) + (k) / SX)
#if KX % 8 == 0 && VW == 8
#define WEIGHT_CHUNK 8
#elif KX % 4 == 0
#define WEIGHT_CHUNK 4
#elif KX % 2 == 0
#define WEIGHT_CHUNK 2
#else
#define WEIGHT_CHUNK 1
#endif
#endif

/* The inputs, weights and steps of a work-item. Steps are in elements. */
struct item {
    FIRST_MEMBER
    PLACE(data_t) data; /* data of the group's first channel */
    PLACE(packed_t) filter;
    int channel;            /* its first one, of all groups */
    int weights;            /* the first weight of this channel and of tap_x, in the filter */
    int apart;              /* between inputs of two of its outputs */
    int apart_in;           /* the same distance, in inputs along the axis */
    int step, inputs, taps; /* along x: between inputs of neighbouring taps, of all */
    int step_y, inputs_y, taps_y;
#if NEAR
    int data_row, weights_row; /* between neighbouring taps along y */
    bool near;                 /* the data are near each other, and so are the weights */
#endif
    int tap_x, tap_y;  /* the first taps */
    int data_step;     /* between inputs of neighbouring taps along x */
    long channel_step; /* between input channels */
    int weight_in, weight_channel, weight_tap;
    int last;     /* the last of its channels */
    bool aligned; /* vectors and chunks, as wide.clh wants them */
#if IMAGES
    bool has_images;  /* false: buffers are read, element by element */
    int data_pixel;   /* the pixel of `data` */
    int weight_pixel; /* of the first weight of `channel` */
#endif
    int in_channels;
    acc_t zero;
};

/* Sets what the loops read from the table. It stands directly in front of them: Mesa's compilers
 * keep a number in a register from where it is read on. */
static INLINED void read_steps(struct item *item, table_t table)
{
    item->in_channels = (int)table[FOLDED_IN_CHANNELS];
    item->channel_step = table[FOLDED_DATA_CHANNEL_STEP];
    item->apart_in = (int)table[DIRECT_APART_IN];
    item->apart = (int)table[DIRECT_APART_DATA];
    item->step = (int)table[FOLDED_INPUT_STEP_X];
    item->inputs = (int)table[FOLDED_INPUT_X];
    item->step_y = (int)table[FOLDED_INPUT_STEP_Y];
    item->inputs_y = (int)table[FOLDED_INPUT_Y];
    item->data_step = (int)table[DIRECT_TAP_DATA];
    item->zero = DATA_ZERO(table);
    item->weight_in = (int)table[DIRECT_WEIGHT_IN];
    item->weight_channel = (int)table[DIRECT_WEIGHT_CHANNEL];
    item->weight_tap = LAST ? (int)table[DIRECT_WEIGHT_TAP] : 1;
    item->weights = item->channel * item->weight_channel + item->tap_x * item->weight_tap;
#if NEAR
    item->data_row = item->step_y * (int)table[FOLDED_DATA_Y_STEP];
    item->weights_row = (int)table[FOLDED_TAP_STEP_Y] * (int)table[FOLDED_KERNEL_X] *
                        item->weight_tap;
    item->near = IS_NEAR(POINTER_TO(data_t, item->data), table[DIRECT_DATA_SPAN]) &&
                 IS_NEAR(POINTER_TO(packed_t, item->filter), table[DIRECT_WEIGHTS]);
#endif
}

/* Where a work-item's inputs and weights are. With NEAR = 2 it keeps an address for each input and
 * weight of an input channel (KEEPS), or, where these are more than MOST_KEPT, for each output and
 * output channel. The addresses WALK from input channel to input channel, or, if there is only one,
 * from row to row of taps. With NEAR = 1 it keeps OFFSETS, the distances (near.clh) of its outputs
 * and output channels. */
#define WALK (NEAR > 1 && !LANES_CHANNELS)
#define MOST_KEPT 8
#if LANES_X
#define ROW_CHUNKS (LAST_CHUNK - FIRST_CHUNK + 1)
#define KEEPS (OUTPUTS * ROW_CHUNKS <= MOST_KEPT)
#define KEPT_DATA (KEEPS ? ROW_CHUNKS : 1)
#define KEPT_WEIGHTS 1
#define KEPT_AT(k) (KEEPS ? (FIRST_CHUNK + (k)) * CHUNK : 0)
#else
#define KEEPS (TAPS_X > 0 && (OUTPUTS + CHANNELS) * TAPS_X <= MOST_KEPT)
#define KEPT_DATA (KEEPS ? TAPS_X : 1)
#define KEPT_WEIGHTS KEPT_DATA
#define KEPT_AT(k) (-(k)*DATA_STEP(item))
#endif
#define DATA_STEP(item) (ADJACENT ? 1 : (item)->data_step)
#define TAP_STEP(item) (LAST ? (item)->weight_tap : 1)
#if WALK
#define WALK_PARAMETERS                                                                            \
    PLACE(data_t)                                                                                  \
    (*own_data)[OUTPUTS * KEPT_DATA], PLACE(packed_t)(*own_weights)[CHANNELS * KEPT_WEIGHTS]
#define DATA_PLACE(i, k, at)                                                                       \
    (KEEPS ? (*own_data)[(i)*KEPT_DATA + (k) % KEPT_DATA]                                          \
           : BEHIND(data_t, (*own_data)[i], at, near))
#define WEIGHT_PLACE(m, k, at)                                                                     \
    (KEEPS ? (*own_weights)[(m)*KEPT_WEIGHTS + (k) % KEPT_WEIGHTS]                                 \
           : BEHIND(packed_t, (*own_weights)[m], at, near))

/* The places begin one step in front of their first elements. If places shared one upper half, the
 * loop would have to copy it. Therefore without checks, where all inputs exist, each place gets an
 * upper half of its own, by an addition of 64 bits. */
static INLINED void begin_walk(const struct item *item, const bool checked, const bool near,
                               const PLACE(data_t) data, const PLACE(packed_t) weights,
                               const long data_bytes, const long weight_bytes, WALK_PARAMETERS)
{
    EACH for (int i = 0; i < OUTPUTS; i++) EACH for (int k = 0; k < KEPT_DATA; k++)
    {
        const PLACE(data_t)
            first = BEHIND(data_t, data, i * item->apart + KEPT_AT(k), near && checked);
        (*own_data)[i * KEPT_DATA + k] = BEHIND(char, first, -data_bytes, near);
    }
    EACH for (int m = 0; m < CHANNELS; m++) EACH for (int k = 0; k < KEPT_WEIGHTS; k++)
    {
        const int from = min(m, item->last) * item->weight_channel + k * TAP_STEP(item);
        const PLACE(packed_t) first = BEHIND(packed_t, weights, from, near && checked);
        (*own_weights)[m * KEPT_WEIGHTS + k] = BEHIND(char, first, -weight_bytes, near);
    }
}

static INLINED void walk(const bool near, const long data_bytes, const long weight_bytes,
                         WALK_PARAMETERS)
{
    EACH for (int i = 0; i < OUTPUTS * KEPT_DATA; i++)(*own_data)[i] =
        BEHIND(char, (*own_data)[i], data_bytes, near);
    EACH for (int m = 0; m < CHANNELS * KEPT_WEIGHTS; m++)(*own_weights)[m] =
        BEHIND(char, (*own_weights)[m], weight_bytes, near);
}
#elif NEAR
#define DATA_PLACE(i, k, from)                                                                     \
    BEYOND(data_t, data, data_from[i] + DISTANCE(data_t, from, near), near)
#define WEIGHT_PLACE(m, k, from)                                                                   \
    BEYOND(packed_t, weights, weights_from[m] + DISTANCE(packed_t, from, near), near)
#define OFFSETS                                                                                    \
    int data_from[OUTPUTS], weights_from[CHANNELS];                                                \
    EACH for (int i = 0; i < OUTPUTS; i++) data_from[i] = DISTANCE(data_t, i * item->apart, near); \
    EACH for (int m = 0; m < CHANNELS; m++)                                                        \
        weights_from[m] = DISTANCE(packed_t, min(m, item->last) * item->weight_channel, near);
#else
#define DATA_PLACE(i, k, from) BEHIND(data_t, data, at + (i)*item->apart + (from), near)
#define WEIGHT_PLACE(m, k, from)                                                                   \
    BEHIND(packed_t, weights, min(m, item->last) * item->weight_channel + (from), near)
#endif
/* The parameters of add_row, which with WALK gets one input channel, and else loops over all. */
#ifndef OFFSETS
#define OFFSETS
#endif
#if WALK
#define ROW_PARAMETERS WALK_PARAMETERS
#define EACH_CHANNEL
#else
#if NEAR
#define ROW_PARAMETERS PLACE(data_t) data, PLACE(packed_t) weights
#else
#define ROW_PARAMETERS __global const data_t *data, const int at, __global const packed_t *weights
#endif
#if SINGLE
#define EACH_CHANNEL
#else
#define EACH_CHANNEL                                                                               \
    for (int ci = 0; ci < item->in_channels; ci++,                                                 \
             data = BEHIND(data_t, data, item->channel_step, near),                                \
             weights = BEHIND(packed_t, weights, item->weight_in, near))
#endif
#endif

/* Whether output i has an input at tap j of a row that is given as x. Where there are few
 * registers, a bit for each is in one of them. */
#if NEAR && !WALK && TAPS_X > 0
#define SET_INSIDE                                                                                 \
    uint inside = 0;                                                                               \
    EACH for (int i = 0; checked && i < OUTPUTS; i++) EACH for (int j = 0; j < TAPS_X; j++)        \
        inside |= (uint)((uint)((*x)[i] - j * item->step) < (uint)item->inputs)                    \
                  << (i * TAPS_X + j);
#define INSIDE(i, j) ((inside >> ((i)*TAPS_X + (j)) & 1) != 0)
#else
#define SET_INSIDE
#define INSIDE(i, j) ((uint)((*x)[i] - (j)*item->step) < (uint)item->inputs)
#endif

/* Adds the products of a row of taps. The first tap reads `data` from element `at` on, with NEAR
 * from its first element on, which is input x[i] of the row for output i. If `checked` is true,
 * inputs may lie outside. If `aligned` is true, vectors and chunks are aligned. Both are constants,
 * because compilers put loads together only if no branch lies between them. They also tell whether
 * the tensors are near: add_taps passes `aligned` for vectors, and no `checked` for single numbers,
 * only if the tensors are near. */
#if VW == 1
static INLINED void add_row(sum_t (*sums)[NUMBERS], const struct item *item, const bool checked,
                            const bool aligned, const int (*x)[OUTPUTS], ROW_PARAMETERS)
{
    const bool near = !checked;
    OFFSETS
    SET_INSIDE
    EACH_CHANNEL
    {
        EACH_TAP for (int j = 0; j < (TAPS_X > 0 ? TAPS_X : item->taps); j++)
        {
            acc_t w[CHANNELS];
            EACH for (int m = 0; m < CHANNELS; m++)
                w[m] = READ_WEIGHT(POINTER_TO(packed_t, WEIGHT_PLACE(m, j, j * TAP_STEP(item))));
            EACH for (int i = 0; i < OUTPUTS; i++)
            {
                if (!checked || INSIDE(i, j)) {
                    const acc_t value = READ_DATA(
                        POINTER_TO(data_t, DATA_PLACE(i, j, -j * DATA_STEP(item))), item->zero);
                    EACH for (int m = 0; m < CHANNELS; m++)
                        SUM(i, m, 0) = MULTIPLY_ADD(value, w[m], SUM(i, m, 0));
                }
            }
        }
    }
}
#elif LAST
/* Neighbouring channels: a vector of weights, and for each lane its own input or that of all. */
static INLINED void add_row(sum_t (*sums)[NUMBERS], const struct item *item, const bool checked,
                            const bool aligned, const int (*x)[OUTPUTS], ROW_PARAMETERS)
{
    const bool near = aligned;
    SET_INSIDE
#if NEAR
    int from[OUTPUTS];
    EACH for (int i = 0; i < OUTPUTS; i++) from[i] = DISTANCE(data_t, i * item->apart, near);
#define INPUT_PLACE(i, j)                                                                          \
    BEYOND(data_t, data, from[i] - DISTANCE(data_t, (j)*item->data_step, near), near)
#else
#define INPUT_PLACE(i, j) (data + (at + (i)*item->apart - (j)*item->data_step))
#endif
    for (int ci = 0; ci < (DEPTHWISE ? 1 : item->in_channels); ci += CHUNK,
             data = BEHIND(data_t, data, CHUNK, near),
             weights = BEHIND(packed_t, weights, CHUNK * item->weight_in, near)) {
        EACH_TAP for (int j = 0; j < (TAPS_X > 0 ? TAPS_X : item->taps); j++)
        {
            __global const packed_t *const tap =
                POINTER_TO(packed_t, BEHIND(packed_t, weights, j * item->weight_tap, near));
#define READ_OF(c) read_weights(tap + (c)*item->weight_in, aligned)
#if NEAR && !DEPTHWISE /* Mesa would load them for each output anew */
            const bool keeps = aligned || VW * CHUNK <= 16; /* registers hold no more */
            PLACE(packed_t) place = PLACE_OF(tap);
            vec_t w[CHUNK];
            EACH for (int c = 0; keeps && c < CHUNK; c++)
            {
                w[c] = read_weights(POINTER_TO(packed_t, place), aligned);
                place = BEHIND(packed_t, place, item->weight_in, near);
            }
#define WEIGHTS_OF(c) (keeps ? w[c] : READ_OF(c))
#else
#define WEIGHTS_OF(c) READ_OF(c)
#endif
#if DEPTHWISE
            const vec_t w = read_weights(tap, aligned);
#endif
            EACH for (int i = 0; i < OUTPUTS; i++)
            {
                if (checked && !INSIDE(i, j)) continue;
                __global const data_t *const input = POINTER_TO(data_t, INPUT_PLACE(i, j));
#if DEPTHWISE
                SUM(i, 0, 0) = MULTIPLY_ADD(read_data(input, aligned), w, SUM(i, 0, 0));
#else
                acc_t in[CHUNK];
                READ_WIDE(DATA, input, CHUNK, aligned, in, 0);
                EACH for (int c = 0; c < CHUNK; c++)
                    SUM(i, 0, 0) = MULTIPLY_ADD((vec_t)(in[c]), WEIGHTS_OF(c), SUM(i, 0, 0));
#endif
            }
        }
    }
}
#if IMAGES
/* The same with pixels number `data` and `weights` on. */
static INLINED void add_pixels(sum_t (*sums)[NUMBERS], const struct item *item, const bool checked,
                               const int (*x)[OUTPUTS], int data, int weights IMAGE_PARAMETERS)
{
    const int apart = item->apart / PIXEL, data_step = item->data_step / PIXEL,
              weight_in = item->weight_in / PIXEL, weight_tap = item->weight_tap / PIXEL;
    for (int ci = 0; ci < (DEPTHWISE ? 1 : item->in_channels);
         ci += VW, data += VW / PIXEL, weights += VW * weight_in) {
        int tap_data = data, tap_weights = weights;
        EACH_TAP for (int j = 0; j < (TAPS_X > 0 ? TAPS_X : item->taps);
                      j++, tap_data -= data_step, tap_weights += weight_tap)
        {
            int at = tap_data;
#if DEPTHWISE
            const vec_t w = READ_PIXELS(filter_image, tap_weights);
#else
            vec_t w[VW];
            int from = tap_weights; /* sums: Mesa would multiply for each weight */
            EACH for (int c = 0; c < VW; c++, from += weight_in)
                w[c] = READ_PIXELS(filter_image, from);
#endif
            EACH for (int i = 0; i < OUTPUTS; i++, at += apart)
            {
                if (checked && (uint)((*x)[i] - j * item->step) >= (uint)item->inputs) continue;
                const vec_t in = READ_PIXELS(data_image, at);
#if DEPTHWISE
                SUM(i, 0, 0) = MULTIPLY_ADD(in, w, SUM(i, 0, 0));
#else
                EACH for (int c = 0; c < VW; c++)
                    SUM(i, 0, 0) = MULTIPLY_ADD((vec_t)(LANE(in, c)), w[c], SUM(i, 0, 0));
#endif
            }
        }
    }
}
#endif
#else
/* Neighbouring outputs along x. Input number i of the row, counted from input_x - SHIFT on, reaches
 * lane v by tap v + RX - SX * (i - SHIFT), if there is such a tap. */
#define TAP_OF(v, i) ((v) + RX - SX * ((i)-SHIFT))
/* Adds the products of chunk number c of output i, and those of its element n. Both are written one
 * after the other, because Mesa's compilers unroll no long loop, and keep arrays in memory that are
 * then indexed. */
#define ADD_CHUNK(c)                                                                               \
    do {                                                                                           \
        if (checked && (uint)((*x)[i] + (c)*CHUNK) >= (uint)item->inputs) break;                   \
        acc_t in[CHUNK];                                                                           \
        READ_WIDE(DATA, POINTER_TO(data_t, DATA_PLACE(i, (c)-FIRST_CHUNK, (c)*CHUNK)), CHUNK,      \
                  aligned, in, 0);                                                                 \
        ADD_INPUTS(c)                                                                              \
    } while (0)
#define ADD_INPUT(c, number)                                                                       \
    {                                                                                              \
        int n = (number); /* a variable: types.clh */                                              \
        EACH for (int v = 0; v < VW; v++)                                                          \
        {                                                                                          \
            const int k = TAP_OF(v, (c)*CHUNK + n);                                                \
            if (k < 0 || k >= KX) continue;                                                        \
            EACH for (int m = 0; m < CHANNELS; m++)                                                \
                SUM(i, m, v) = MULTIPLY_ADD(in[n], w[m][WEIGHT_OF(k)], SUM(i, m, v));              \
        }                                                                                          \
    }
#define ADD_TWO(c, n) ADD_INPUT(c, n) ADD_INPUT(c, (n) + 1)
#define ADD_FOUR(c, n) ADD_TWO(c, n) ADD_TWO(c, (n) + 2)
#if CHUNK == 1
#define ADD_INPUTS(c) ADD_INPUT(c, 0)
#elif CHUNK == 2
#define ADD_INPUTS(c) ADD_TWO(c, 0)
#elif CHUNK == 4
#define ADD_INPUTS(c) ADD_FOUR(c, 0)
#elif CHUNK == 8
#define ADD_INPUTS(c) ADD_FOUR(c, 0) ADD_FOUR(c, 4)
#else
#error "CHUNK must be 1, 2, 4 or 8"
#endif
static INLINED void add_row(sum_t (*sums)[NUMBERS], const struct item *item, const bool checked,
                            const bool aligned, const int (*x)[OUTPUTS], ROW_PARAMETERS)
{
    const bool near = aligned;
    OFFSETS
    EACH_CHANNEL
    {
        acc_t w[CHANNELS][KX];
        EACH for (int m = 0; m < CHANNELS; m++)
        {
            const PLACE(packed_t) row = WEIGHT_PLACE(m, 0, 0);
            EACH for (int k = 0; k < KX; k += WEIGHT_CHUNK)
                READ_WIDE(PACKED, POINTER_TO(packed_t, BEHIND(packed_t, row, k, near)),
                          WEIGHT_CHUNK, aligned, w[m], k);
        }
        EACH for (int i = 0; i < OUTPUTS; i++)
        {
            ADD_CHUNK(FIRST_CHUNK);
#if FIRST_CHUNK + 1 <= LAST_CHUNK
            ADD_CHUNK(FIRST_CHUNK + 1);
#endif
#if FIRST_CHUNK + 2 <= LAST_CHUNK
            ADD_CHUNK(FIRST_CHUNK + 2);
#endif
#if FIRST_CHUNK + 3 <= LAST_CHUNK
            for (int c = FIRST_CHUNK + 3; c <= LAST_CHUNK; c++) ADD_CHUNK(c);
#endif
        }
    }
}
#endif

/* The inputs x[i] that a tap in row y of the data has for the outputs whose first ones are input_x:
 * far outside if the row is outside. */
#define SET_X                                                                                      \
    int x[OUTPUTS];                                                                                \
    EACH for (int i = 0; i < OUTPUTS; i++)                                                         \
        x[i] = (uint)(y + (ALONG_Y ? i * item->apart_in : 0)) < (uint)item->inputs_y               \
                   ? input_x + (ALONG_Y ? 0 : i * item->apart_in)                                  \
                   : -(1 << 30);

#if NEAR
#if FLAT
#define EACH_SLICE_TAP if (slice[SLICE_TAPS] > 0)
#else
#define EACH_SLICE_TAP for (int s = (int)slice[SLICE_TAPS]; s > 0; s--, list += SLICE_TAP_LONGS)
#endif

/* add_taps for constant `checked` and `aligned`: each way has its own loop over rows, so that
 * `near` is constant in all of it. */
static INLINED void add_slice(sum_t (*sums)[NUMBERS], const struct item *item, const bool checked,
                              const bool aligned, const int input_y, const int input_x,
                              table_t slice, table_t table)
{
    const bool near = VW == 1 ? !checked : aligned;
    const int first = input_y * (int)table[FOLDED_DATA_Y_STEP] +
                      input_x * (int)table[FOLDED_DATA_X_STEP];
    const int weights_y = (int)table[FOLDED_KERNEL_X] * item->weight_tap,
              weights_z = (int)table[FOLDED_KERNEL_Y] * weights_y;
    const int first_weight = item->weights + item->tap_y * weights_y;
    table_t list = table + slice[SLICE_LIST];
    EACH_SLICE_TAP
    {
        PLACE(data_t)
        data =
            BEHIND(data_t, item->data, list[SLICE_INPUT] * table[FOLDED_DATA_Z_STEP] + first, near);
        PLACE(packed_t)
        weights =
            BEHIND(packed_t, item->filter, first_weight + (int)list[SLICE_TAP] * weights_z, near);
        int y = input_y;
#if WALK
        /* Rows of taps follow each other downwards. */
        const long data_bytes = (SINGLE ? -item->data_row : item->channel_step) *
                                (long)sizeof(data_t),
                   weight_bytes = (SINGLE ? item->weights_row : item->weight_in) *
                                  (long)sizeof(packed_t);
        PLACE(data_t) own_data[OUTPUTS * KEPT_DATA];
        PLACE(packed_t) own_weights[CHANNELS * KEPT_WEIGHTS];
#if SINGLE
        begin_walk(item, checked, near, data, weights, data_bytes, weight_bytes, &own_data,
                   &own_weights);
#endif
#endif
#pragma unroll 1
        for (int j = 0; j < item->taps_y; j++) {
            SET_X
#if WALK
#if !SINGLE
            begin_walk(item, checked, near, data, weights, data_bytes, weight_bytes, &own_data,
                       &own_weights);
            for (int ci = 0; ci < item->in_channels; ci++)
#endif
            {
                walk(near, data_bytes, weight_bytes, &own_data, &own_weights);
                add_row(sums, item, checked, aligned, &x, &own_data, &own_weights);
            }
#else
            add_row(sums, item, checked, aligned, &x, data, weights);
#endif
            y -= item->step_y;
            data = BEHIND(data_t, data, -item->data_row, near);
            weights = BEHIND(packed_t, weights, item->weights_row, near);
        }
    }
}
#endif

#if IMAGES
/* add_taps for images and a constant `checked`. */
static INLINED void add_image_slice(sum_t (*sums)[NUMBERS], const struct item *item,
                                    const bool checked, const int input_y, const int input_x,
                                    table_t slice, table_t table IMAGE_PARAMETERS)
{
    const int data_y = (int)table[FOLDED_DATA_Y_STEP] / PIXEL,
              data_x = (int)table[FOLDED_DATA_X_STEP] / PIXEL,
              data_z = (int)table[FOLDED_DATA_Z_STEP] / PIXEL,
              weight_tap = item->weight_tap / PIXEL, kernel_x = (int)table[FOLDED_KERNEL_X];
    table_t list = table + slice[SLICE_LIST];
    for (int s = (int)slice[SLICE_TAPS]; s > 0; s--, list += SLICE_TAP_LONGS) {
        const int row = (int)list[SLICE_TAP] * (int)table[FOLDED_KERNEL_Y] + item->tap_y;
        int y = input_y;
        int data = item->data_pixel + (int)list[SLICE_INPUT] * data_z + y * data_y +
                   input_x * data_x,
            weights = item->weight_pixel + (row * kernel_x + item->tap_x) * weight_tap;
#pragma unroll 1
        for (int j = 0; j < item->taps_y; j++) {
            SET_X
            add_pixels(sums, item, checked, &x, data, weights IMAGE_ARGUMENTS);
            y -= item->step_y;
            data -= item->step_y * data_y;
            weights += (int)table[FOLDED_TAP_STEP_Y] * kernel_x * weight_tap;
        }
    }
}
#endif

/* Adds all taps of the outputs whose first input is (input_y, input_x) in a slice along z. */
static INLINED void add_taps(sum_t (*sums)[NUMBERS], struct item *item, const int input_y,
                             const int input_x, table_t slice, table_t table IMAGE_PARAMETERS)
{
    read_steps(item, table);
    const int past = (OUTPUTS - 1) * item->apart_in;
#if LANES_X
    const int least_x = input_x + FIRST_CHUNK * CHUNK, most_x = input_x + LAST_CHUNK * CHUNK;
#else
    const int least_x = input_x - (item->taps - 1) * item->step, most_x = input_x;
#endif
    /* & in place of &&: Mesa's compilers put the branches of && behind each other, and each branch
     * then keeps the registers of the other branches. */
    const bool whole = (least_x >= 0) & (input_y - (item->taps_y - 1) * item->step_y >= 0) &
                       (most_x + (ALONG_Y ? 0 : past) < item->inputs) &
                       (input_y + (ALONG_Y ? past : 0) < item->inputs_y);
#if IMAGES
    if (item->has_images & whole)
        add_image_slice(sums, item, false, input_y, input_x, slice, table IMAGE_ARGUMENTS);
    else if (item->has_images)
        add_image_slice(sums, item, true, input_y, input_x, slice, table IMAGE_ARGUMENTS);
    if (item->has_images) return;
#endif
#if NEAR
    const bool known = !IMAGES && (VW == 1 || item->aligned & item->near);
    if (!known)
        add_slice(sums, item, true, false, input_y, input_x, slice, table);
    else if (whole & item->near)
        add_slice(sums, item, false, true, input_y, input_x, slice, table);
    else
        add_slice(sums, item, true, true, input_y, input_x, slice, table);
#else
    table_t list = table + slice[SLICE_LIST];
    for (int s = (int)slice[SLICE_TAPS]; s > 0; s--, list += SLICE_TAP_LONGS) {
        __global const data_t *data = item->data + list[SLICE_INPUT] * table[FOLDED_DATA_Z_STEP];
        const int tap_z = (int)list[SLICE_TAP] * (int)table[FOLDED_KERNEL_Y] + item->tap_y;
#pragma unroll 1
        for (int j = 0; j < item->taps_y; j++) {
            const int y = input_y - j * item->step_y;
            const int tap = (tap_z + j * (int)table[FOLDED_TAP_STEP_Y]) *
                            (int)table[FOLDED_KERNEL_X];
            const int at = y * (int)table[FOLDED_DATA_Y_STEP] +
                           input_x * (int)table[FOLDED_DATA_X_STEP];
            SET_X
            __global const packed_t *weights = item->filter +
                                               (item->weights + tap * item->weight_tap);
            if (IMAGES || (VW > 1 && !item->aligned))
                add_row(sums, item, true, false, &x, data, at, weights);
            else if (whole)
                add_row(sums, item, false, true, &x, data, at, weights);
            else
                add_row(sums, item, true, true, &x, data, at, weights);
        }
    }
#endif
}

/* A heavy epilogue is not unrolled for each sum. A loop handles the first sum and moves the others
 * up, because registers cannot be indexed. */
#if HEAVY
#define EACH_PART _Pragma("unroll 1")
#else
#define EACH_PART EACH
#endif

/* Stores an output, or a vector from output number `at` on. */
static INLINED void put_sum(const struct epilogue *f, const vec_t sum, const long at,
                            const int channel, const bool aligned)
{
#if VW == 1
    put_one(f, affine_one(f, sum, channel), at, channel);
#else
    put_wide(f,
             affine_lanes(sum, VECTOR_OF(factor_of, f, channel, LAST),
                          VECTOR_OF(BIAS_OF, f, channel, LAST)),
             at, aligned, EACH_SLOPE(VECTOR_OF, f, channel, LAST));
#endif
}

#if VW == 1 || LAST
#define FIRST_SUM sums[0]
#define SUM_NUMBERS 1
#else
#define SUM_NUMBERS VW
#define SUM_OF_LANE(sums, lane) sums[lane]
#define FIRST_SUM VECTOR_OF(SUM_OF_LANE, sums, 0, 1)
#endif

/* Only work-items with one input channel have several rounds. */
#if SINGLE
#define EACH_ROUND                                                                                 \
    _Pragma("unroll 1") for (; done < OUTPUTS * (int)table[DIRECT_ROUNDS] &&                       \
                               done * (int)table[DIRECT_APART] < left;                             \
                             done += OUTPUTS)
#else
#define EACH_ROUND
#endif

#if IMAGES
#define IMAGES_OF_KERNEL                                                                           \
    , __read_only image1d_buffer_t data_image, const int data_pixel,                               \
        __read_only image1d_buffer_t filter_image, const int filter_pixel
#else
#define IMAGES_OF_KERNEL
#endif
KERNEL void tconv_direct(__global const data_t *restrict data, const ulong data_offset,
                         __global const packed_t *restrict filter, const ulong filter_offset,
                         EPILOGUE_PARAMETERS, table_t restrict table IMAGES_OF_KERNEL)
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
    const int outputs = OUTPUTS * (SINGLE ? (int)table[DIRECT_ROUNDS] : 1),
              outputs_x = ALONG_Y ? 1 : outputs, outputs_y = ALONG_Y ? outputs : 1;
#if LAST
    int block = position_0 + lane_0;
    const int first_x = position_1 * outputs_x + lane_1, first_y = position_2 * outputs_y + rest;
#else
    const int first_x = (position_0 * outputs_x + lane_0) * VW,
              first_y = position_1 * outputs_y + lane_1;
    int block = position_2 + rest;
#endif
    const int output_x = (int)table[FOLDED_OUTPUT_X], output_y = (int)table[FOLDED_OUTPUT_Y];
    if (block >= (int)table[DIRECT_ALL_BLOCKS] || first_x >= output_x || first_y >= output_y)
        return;
    int group = block;
    const int channel_lanes = LANES_CHANNELS ? VW : 1; /* of a group, or DEPTHWISE of groups */
    const int first = split(&group, table[DIRECT_BLOCKS]) * CHANNELS *
                      (DEPTHWISE ? 1 : channel_lanes);
    if (DEPTHWISE) group *= channel_lanes;
    const int out_channels = (int)table[FOLDED_OUT_CHANNELS];
    const int channel = group * out_channels + first;

    /* The work-item's phases and their taps. */
    int position_x = first_x + (int)table[DIRECT_PAD_X],
        position_y = first_y + (int)table[DIRECT_PAD_Y];
    const int phase_x = split(&position_x, table[DIRECT_STRIDE_X]),
              phase_y = split(&position_y, table[DIRECT_STRIDE_Y]);
    table_t reach_x = table + table[DIRECT_X_AT] + phase_x * REACH_LONGS;
    table_t reach_y = table + table[DIRECT_Y_AT] + phase_y * REACH_LONGS;
#if LANES_X
    int input_x = position_x + (int)table[DIRECT_FIRST_X] - SHIFT;
#else
    int input_x = position_x + (int)reach_x[REACH_INPUT];
#endif
    int input_y = position_y + (int)reach_y[REACH_INPUT];

    struct item item;
    item.taps = TAPS_X > 0 ? TAPS_X : (int)reach_x[REACH_TAPS];
    item.taps_y = (int)reach_y[REACH_TAPS];
    item.tap_x = LANES_X ? 0 : (int)reach_x[REACH_TAP];
    item.tap_y = (int)reach_y[REACH_TAP];
    item.aligned = false;
    item.last = min(CHANNELS, out_channels - first) - 1;
    item.channel = channel;
    item.filter = PLACE_OF(filter + filter_offset);
    item.data = PLACE_OF(data + data_offset + batch * table[FOLDED_DATA_BATCH_STEP] +
                         group * table[DIRECT_DATA_GROUP]);
#if IMAGES
    item.has_images = data_pixel >= 0 && filter_pixel >= 0;
    item.data_pixel = data_pixel + (batch * (int)table[FOLDED_DATA_BATCH_STEP] +
                                    group * (int)table[DIRECT_DATA_GROUP]) /
                                       PIXEL;
    item.weight_pixel = filter_pixel + channel / PIXEL;
#endif
#if VW > 1
    item.aligned = ((size_t)(data + data_offset) | (size_t)(filter + filter_offset) |
                    (size_t)(output + output_offset)) %
                       WIDE_BYTES ==
                   0;
#if RESIDUAL == 1
    item.aligned = item.aligned && (size_t)(residual + residual_offset) % WIDE_BYTES == 0;
#endif
#endif
    long row = batch * table[FOLDED_OUTPUT_BATCH_STEP] + z * table[FOLDED_OUTPUT_Z_STEP] +
               first_y * table[FOLDED_OUTPUT_Y_STEP] + first_x * table[FOLDED_OUTPUT_X_STEP];
    const int left = ALONG_Y ? output_y - first_y : output_x - first_x;
    int done = 0;
    EACH_ROUND
    {
        sum_t sums[NUMBERS];
        EACH for (int i = 0; i < NUMBERS; i++) sums[i] = 0;
        add_taps(&sums, &item, input_y, input_x, table + table[FOLDED_SLICES_AT] + z * SLICE_LONGS,
                 table IMAGE_ARGUMENTS);
        /* What is needed from here on is read here: registers are for the loops above. */
        EPILOGUE(epilogue, table)
        const long channel_at = table[FOLDED_OUTPUT_CHANNEL_STEP];
        const long at = row + channel * channel_at;
        const int apart = (int)table[DIRECT_APART], apart_at = (int)table[DIRECT_APART_OUTPUT];
        EACH_PART for (int i = 0; i < SUMS; i++)
        {
            const int o = i / CHANNELS, m = i % CHANNELS;
            if ((done + o) * apart < left && m <= item.last)
                put_sum(&epilogue, FIRST_SUM, at + o * apart_at + m * channel_at, channel + m,
                        item.aligned);
            EACH for (int next = SUM_NUMBERS; next < NUMBERS; next++)
                sums[next - SUM_NUMBERS] = sums[next];
        }
        row += OUTPUTS * apart_at;
        if (ALONG_Y)
            input_y += OUTPUTS * item.apart_in;
        else
            input_x += OUTPUTS * item.apart_in;
    }
}
