/* SPDX-License-Identifier: Apache-2.0 */
/* The thin algorithm for CPUs: for layers with few channels, where moving data costs as much as
 * adding; depthwise layers are the extreme case. It is output-stationary, and multiplies no zeros
 * of the padding along y and z.
 *
 * A work-item copies the input rows of its output rows into local memory, surrounded by zeros, so
 * that borders along x need no special case. All phases along x (o = u*S + t: phase t, position u)
 * are summed at the same time, so that one input vector serves them all. They are interleaved in
 * registers.
 *
 *     work-item   THIN_PLANES planes (batch item, group, block of MW output channels), THIN_BANDS
 *                 bands of one z, THIN_TILES tiles along x
 *     tile        NX*VW positions, all phases, RY rows (a band), MW channels
 *
 * Up to THIN_TOGETHER small images (groups of a batch item) are copied at a time. A tile is
 * computed for all of them before the next tile, because with one channel the preparation of a tile
 * takes as long as its additions. The last tile of a row overlaps the one before, if it may, so
 * that it ends with the row.
 *
 * Copying waits for memory, adding does not. If data do not stay in a cache, the rows of the next
 * image or work-item are therefore prefetched between rows of taps. They go into L2, because L1 is
 * full of the rows in use.
 *
 * A band of several rows begins at a row whose number plus the pad is a multiple of RY: an input
 * row of the first row then serves all rows of the band, with neighbouring rows of the filter.
 *
 * Along y and z the table lists the taps that reach an output row from inside the data. A zero of
 * the padding must not meet a weight that is infinite or NaN: exact_position computes blocks with
 * such weights. taps.clh has the packed filter, thin_table.h the table.
 *
 *   macro    meaning                                              legal values
 *   VW       lanes of a vector                                    1, 2, 4, 8, 16
 *   NX       vectors of a tile                                    1 to 4
 *   MW       output channels of a block                           1 to 16
 *   RY       rows of a band                                       1, or a divisor of the stride
 *                                                                 along y without dilation
 *   MERGED   stride along x, the number of phases                 1, 2, 3, 4, 8
 *   KX, DX, RX, LOW  see taps.clh; all absent: taps and dilation along x are read from the table,
 *            which takes stride 1 and several input channels, whose loop then hides the taps' loop
 *   SINGLE   groups of one input channel                          0, 1
 *   STREAM   see epilogue.clh                                     0, 1
 *
 * Registers: RY * MW * MERGED * NX vectors of sums. Local memory: a kernel argument. */
#include "cpu/parts/taps.clh"
#include "cpu/thin_table.h"

#if !defined(VW) || !defined(NX) || !defined(MW) || !defined(RY) || !defined(MERGED) ||            \
    !defined(SINGLE)
#error "VW, NX, MW, RY, MERGED and SINGLE must be set"
#endif
#ifdef KX
#define TAPS_X(table) KX
#define LARGEST_DISTANCE(table) DISTANCE(0)
#else
#if MERGED != 1
#error "KX, DX, RX and LOW must be set"
#endif
#define TAPS_X(table) (table)[FOLDED_KERNEL_X]
#define LARGEST_DISTANCE(table) ((int)(((table)[FOLDED_KERNEL_X] - 1) * (table)[FOLDED_DILATION_X]))
#endif
#define TILE (NX * VW)
#define SUMS (RY * MW * NX * PHASES)
#define SUM(j) [(j) / (MW * NX * PHASES)][(j) / (NX * PHASES) % MW][(j) / PHASES % NX][(j) % PHASES]

/* Where the inputs begin in a row of local memory: inputs whose number is a multiple of VW are
 * aligned as vectors. */
static int lead_of(__global const long *table)
{
    return (int)table[FOLDED_FIRST_INPUT] & (VW - 1);
}

/* The inputs that some tiles of a row read: `positions` of them, from input `first` on. Counted
 * from `first`, those from `begin` to `end` - 1 exist. */
struct reading {
    int first, positions, begin, end;
};

static struct reading reading_of(const int first_tile, const int last_tile,
                                 __global const long *table)
{
    struct reading r;
    r.first = first_tile * TILE + (int)table[FOLDED_FIRST_INPUT];
    r.positions = (last_tile - first_tile) * TILE + LARGEST_DISTANCE(table);
    r.begin = clamp(-r.first, 0, r.positions);
    r.end = clamp((int)table[FOLDED_INPUT_X] - r.first, r.begin, r.positions);
    return r;
}

/* Copies an input row to local memory. Not inlined: compilers would duplicate the code. */
static NOINLINE void copy_row(__global const data_t *from, const acc_t zero,
                              const struct reading *r, __local acc_t *to)
{
    from += r->first;
    int i = r->begin;
    for (; i + VW <= r->end; i += VW) STORE(READS_DATA(from + i, zero), to + i);
    if (i < r->end &&
        r->end - r->begin >= VW) { /* copy some inputs again, so that the rest is a vector */
        STORE(READS_DATA(from + r->end - VW, zero), to + r->end - VW);
        return;
    }
#pragma unroll 1
    for (; i < r->end; i++) to[i] = READ_DATA(from + i, zero);
}

/* Clears the elements without inputs around `count` rows in local memory. */
static COLD void clear_around(__local acc_t *to, const int count, const int row,
                              const struct reading *r)
{
    for (int j = 0; j < count; j++, to += row) {
        for (int i = 0; i < r->begin; i++) to[i] = 0;
        for (int i = r->end; i < r->positions; i++) to[i] = 0;
    }
}

/* Input channels of a group. */
static int in_channels_of(__global const long *table)
{
    return SINGLE ? 1 : (int)table[FOLDED_IN_CHANNELS];
}

/* Adds one tap, which reaches phase `t`, of `count` rows of the filter: from the inputs `x` and the
 * weights `w`. */
static INLINED void add_tap(vec_t sum[RY][MW][NX][PHASES], const int t, const int count,
                            __local const acc_t *x, __global const packed_t *w,
                            const long filter_row)
{
    vec_t in[NX];
#pragma unroll
    for (int v = 0; v < NX; v++) in[v] = LOAD(x + v * VW);
#pragma unroll
    for (int r = 0; r < RY; r++)
        if (r < count) {
#pragma unroll
            for (int m = 0; m < MW; m++) {
                const vec_t weight = (vec_t)(READ_WEIGHT(w + r * filter_row + m));
#pragma unroll
                for (int v = 0; v < NX; v++)
                    sum[r][m][v][t] = MULTIPLY_ADD(in[v], weight, sum[r][m][v][t]);
            }
        }
}

/* The taps of a part, and how their inputs in local memory and their weights follow each other.
 * Steps are in elements. */
struct taps {
    __global const long *list_z;
    int count_z, rows; /* taps along z; input rows of each of them */
    int in_channels, row;
#ifndef KX
    int count_x, dilation_x;
#endif
    long filter_row, filter_step, filter_z; /* from a row of the filter, a tap along y or z to the
                                               next */
    long input_step;
};

#ifdef KX
/* Adds the taps along x of `count` (at most RY) rows of the filter, each to its row of a band. */
static INLINED void add_rows(vec_t sum[RY][MW][NX][PHASES], const int count, __local const acc_t *x,
                             __global const packed_t *weights, const struct taps *taps)
{
    for (int ci = 0; ci < taps->in_channels; ci++, x += taps->row) {
        __global const packed_t *w = weights + ci * MW;
#pragma unroll
        for (int k = 0; k < KX; k++)
            add_tap(sum, PHASE_OF(k), count, x + DISTANCE(k), w + k * taps->in_channels * MW,
                    taps->filter_row);
    }
}
#else
/* The same with as many taps as the table says. They are added in fours, then the rest. */
static INLINED void add_rows(vec_t sum[RY][MW][NX][PHASES], const int count, __local const acc_t *x,
                             __global const packed_t *weights, const struct taps *taps)
{
    const int tap_step = taps->in_channels * MW;
#define ADD_TAPS(n)                                                                                \
    {                                                                                              \
        _Pragma("unroll") for (int j = 0; j < n; j++)                                              \
            add_tap(sum, 0, count, in - j * taps->dilation_x, w + j * tap_step, taps->filter_row); \
        in -= n * taps->dilation_x;                                                                \
        w += n * tap_step;                                                                         \
    }
    x += (taps->count_x - 1) * taps->dilation_x;
    for (int ci = 0; ci < taps->in_channels; ci++, x += taps->row) {
        __local const acc_t *in = x;
        __global const packed_t *w = weights + ci * MW;
        for (int left = taps->count_x; left >= 4; left -= 4) ADD_TAPS(4)
        if (taps->count_x & 2) ADD_TAPS(2)
        if (taps->count_x & 1) ADD_TAPS(1)
    }
#undef ADD_TAPS
}
#endif

/* Stores a tile of one channel, all phases. */
static void store_whole(const struct epilogue *f, const long at, const vec_t sum[NX][PHASES],
                        const long channel)
{
    vec_t result[NX][PHASES];
#pragma unroll
    for (int v = 0; v < NX; v++) interleave(sum[v], result[v]);
#pragma unroll
    for (int i = 0; i < NX * PHASES; i++)
        put(f, affine(f, result[i / PHASES][i % PHASES], channel), at + i * VW, channel);
}

/* Stores the first `left` outputs of a tile. */
static NOINLINE void store_left(const struct epilogue *f, const long at,
                                const vec_t sum[NX][PHASES], const long channel, const int left)
{
    vec_t result[NX][PHASES];
#pragma unroll
    for (int v = 0; v < NX; v++) interleave(sum[v], result[v]);
    lane_t lanes[VW];
#pragma unroll
    for (int i = 0; i < NX * PHASES; i++) {
        const result_vec_t value = affine(f, result[i / PHASES][i % PHASES], channel);
        if ((i + 1) * VW <= left)
            put(f, value, at + i * VW, channel);
        else if (i * VW < left)
            TO_LANES(f, value, SLOPES_OF(f, channel), lanes);
    }
    const int whole = left / VW * VW;
    int i = 0;
    for (; i + 4 <= left - whole; i += 4) put_four(f, lanes + i, at + whole + i, channel);
    for (; i < left - whole; i++) PUT_LANE(f, lanes[i], at + whole + i, channel);
}

/* Prefetches the cache lines of a tile's outputs, of all rows and channels, if there is enough to
 * add until they arrive. */
static INLINED void prefetch_outputs(const struct epilogue *f, const long at,
                                     __global const long *table)
{
#if !STREAM && !SINGLE
#pragma unroll
    for (int r = 0; r < RY; r++)
#pragma unroll
        for (int m = 0; m < MW; m++)
#pragma unroll
            for (int i = 0; i < NX * PHASES * VW; i += LINE / (int)sizeof(output_t))
                PREFETCH_TO_WRITE(f->output + at + r * table[FOLDED_OUTPUT_Y_STEP] +
                                  m * table[FOLDED_OUTPUT_CHANNEL_STEP] + i);
#endif
}

/* Stores a tile of all rows of a band and all channels of a block. */
static INLINED void store_band(const struct epilogue *f, const long at,
                               const vec_t sum[RY][MW][NX][PHASES], const long channel,
                               __global const long *table)
{
#pragma unroll
    for (int r = 0; r < RY; r++)
#pragma unroll
        for (int m = 0; m < MW; m++)
            store_whole(
                f, at + r * table[FOLDED_OUTPUT_Y_STEP] + m * table[FOLDED_OUTPUT_CHANNEL_STEP],
                sum[r][m], channel + m);
}

/* Stores rows `begin` to `end` of a band and `channels` channels of a block, `left` outputs of
 * each. Copies the sums first, so that the originals stay in registers. */
static INLINED void store_band_left(const struct epilogue *f, const long at,
                                    const vec_t sum[RY][MW][NX][PHASES], const long channel,
                                    __global const long *table, const int channels, const int begin,
                                    const int end, const int left)
{
    vec_t copy[RY][MW][NX][PHASES];
#pragma unroll
    for (int j = 0; j < SUMS; j++) copy SUM(j) = sum SUM(j);
    for (int r = max(begin, 0); r < min(RY, end); r++)
        for (int m = 0; m < channels; m++)
            store_left(f,
                       at + r * table[FOLDED_OUTPUT_Y_STEP] + m * table[FOLDED_OUTPUT_CHANNEL_STEP],
                       copy[r][m], channel + m, left);
}

/* The part of the outputs that a work-item computes, and the input rows that it reads. */
struct part {
    int first_tile, last_tile;
    int first_band, last_band, first_y, last_y, z;
    int first_plane, last_plane;
    int low, high;
};

static COLD struct part part_of(const int number, __global const long *table)
{
    const int output_y = (int)table[FOLDED_OUTPUT_Y], output_z = (int)table[FOLDED_OUTPUT_Z];
    const int tiles = (int)table[FOLDED_TILES], item_tiles = (int)table[THIN_TILES];
    const int item_bands = (int)table[THIN_BANDS], item_planes = (int)table[THIN_PLANES];
    const int lacking = (int)table[THIN_LACKING], bands = (output_y + lacking + RY - 1) / RY;
    const int planes = (int)table[FOLDED_BATCHES] * (int)table[FOLDED_GROUPS] *
                       (int)table[FOLDED_BLOCKS];
    const int parts_x = (tiles + item_tiles - 1) / item_tiles;
    const int parts_y = (bands + item_bands - 1) / item_bands;
    struct part part;
    int rest = number;
    part.first_tile = rest % parts_x * item_tiles;
    part.last_tile = min(part.first_tile + item_tiles, tiles);
    rest /= parts_x;
    part.first_band = rest % parts_y * item_bands;
    part.last_band = min(part.first_band + item_bands, bands);
    part.first_y = max(part.first_band * RY - lacking, 0);
    part.last_y = min(part.last_band * RY - lacking, output_y);
    rest /= parts_y;
    part.z = rest % output_z;
    rest /= output_z;
    part.first_plane = rest * item_planes;
    part.last_plane = min(part.first_plane + item_planes, planes);

    __global const long *reach = table + table[FOLDED_REACH_Y_AT];
    part.low = (int)table[FOLDED_INPUT_Y];
    part.high = -1;
    for (int y = part.first_y; y < part.last_y; y++) {
        const int taps = (int)reach[y * REACH_LONGS + REACH_TAPS];
        const int input = (int)reach[y * REACH_LONGS + REACH_INPUT];
        if (taps > 0)
            part.low = min(part.low, input - (taps - 1) * (int)table[FOLDED_INPUT_STEP_Y]);
        if (taps > 0) part.high = max(part.high, input);
    }
    return part;
}

/* The first input channel of an image, that is of a group of a batch item. */
static __global const data_t *inputs_of(__global const data_t *data, __global const long *table,
                                        const int image)
{
    const int groups = (int)table[FOLDED_GROUPS];
    return data + image / groups * table[FOLDED_DATA_BATCH_STEP] +
           (long)(image % groups) * in_channels_of(table) * table[FOLDED_DATA_CHANNEL_STEP];
}

/* Copies the input rows of a part to local memory, in the order of memory: all rows of a channel,
 * then the next channel. Writes zeros around them unless they are there already. */
static NOINLINE void copy_rows(__global const data_t *from, __global const long *table,
                               const struct part *part, const struct reading *reading,
                               __local acc_t *packed, const bool zeros_too)
{
    __global const long *slice = table + table[FOLDED_SLICES_AT] + part->z * SLICE_LONGS;
    __global const long *list_z = table + slice[SLICE_LIST];
    const int in_channels = in_channels_of(table), row = (int)table[THIN_ROW];
    const int rows = part->high - part->low + 1, taps_z = (int)slice[SLICE_TAPS];
    const acc_t zero = DATA_ZERO(table);
    packed += lead_of(table);
    if (zeros_too) clear_around(packed, taps_z * rows * in_channels, row, reading);
    for (int jz = 0; jz < taps_z; jz++)
        for (int ci = 0; ci < in_channels; ci++)
            for (int y = 0; y < rows; y++)
                copy_row(from + ci * table[FOLDED_DATA_CHANNEL_STEP] +
                             list_z[jz * SLICE_TAP_LONGS + SLICE_INPUT] *
                                 table[FOLDED_DATA_Z_STEP] +
                             (part->low + y) * table[FOLDED_DATA_Y_STEP],
                         zero, reading, packed + ((long)(jz * rows + y) * in_channels + ci) * row);
}

/* The input rows to prefetch, channel after channel. */
struct upcoming {
    __global const data_t *row;
    int y, rows, channels, elements, share;
    long y_step, channel_step;
};

/* The input rows that are copied after those of `images` images from `plane` on: rows of the next
 * images, or of the next work-item. `plane` is the first plane of its image in the work-item's
 * part. */
static COLD struct upcoming prefetch_of(__global const data_t *data, __global const long *table,
                                        const struct part *own, const int item, const int items,
                                        const int plane, const int images)
{
    struct upcoming upcoming = {.y_step = table[FOLDED_DATA_Y_STEP],
                                .channel_step = table[FOLDED_DATA_CHANNEL_STEP]};
    if (!table[THIN_PREFETCHES]) return upcoming;
    const int blocks = (int)table[FOLDED_BLOCKS], number = item + 1;
    const int end_plane = (plane / blocks + images) * blocks; /* of the images */
    const bool same = end_plane < own->last_plane;
    if (!same && number == items) return upcoming;
    const struct part next = same ? *own : part_of(number, table);
    __global const long *slice = table + table[FOLDED_SLICES_AT] + next.z * SLICE_LONGS;
    if (next.high < next.low || slice[SLICE_TAPS] == 0) return upcoming;
    const struct reading reading = reading_of(next.first_tile, next.last_tile, table);
    upcoming.rows = next.high - next.low + 1;
    upcoming.channels = in_channels_of(table) * images; /* images mostly follow each other */
    upcoming.elements = reading.end - reading.begin;
    upcoming.row = inputs_of(data, table, (same ? end_plane : next.first_plane) / blocks) +
                   table[slice[SLICE_LIST] + SLICE_INPUT] * table[FOLDED_DATA_Z_STEP] +
                   next.low * upcoming.y_step + reading.first + reading.begin;
    /* Rows of taps that remain for these images. Large filters need more than 32 bits. */
    const long taps_y =
        clamp((table[FOLDED_KERNEL_Y] + table[FOLDED_TAP_STEP_Y] - 1) / table[FOLDED_TAP_STEP_Y],
              1l, max(own->high - own->low + 1l, 1l));
    const long times = taps_y * (own->last_tile - own->first_tile) *
                       (own->last_band - own->first_band) *
                       (min(end_plane, own->last_plane) - plane);
    upcoming.share = (int)(((long)upcoming.rows * upcoming.channels + times - 1) / times);
    return upcoming;
}

/* Prefetches the share of the upcoming rows that belongs to one row of taps of a tile. */
static NOINLINE void prefetch_rows(struct upcoming *upcoming)
{
    for (int i = 0; i < upcoming->share && upcoming->channels > 0; i++) {
        for (int x = 0; x < upcoming->elements; x += LINE / (int)sizeof(data_t))
            PREFETCH(2, upcoming->row + x);
        if (upcoming->elements > 0) /* a row may begin anywhere in a cache line */
            PREFETCH(2, upcoming->row + upcoming->elements - 1);
        upcoming->row += upcoming->y_step;
        if (++upcoming->y == upcoming->rows) {
            upcoming->row += upcoming->channel_step - upcoming->rows * upcoming->y_step;
            upcoming->y = 0;
            upcoming->channels--;
        }
    }
}

/* Computes a work-item's outputs of a block whose weights are not all finite. */
static COLD void exact_part(const struct epilogue *f, __global const data_t *from,
                            __global const packed_t *weights, __global const long *table,
                            const struct part *part, const int channels, const long channel,
                            const long at)
{
    __global const long *slice = table + table[FOLDED_SLICES_AT] + part->z * SLICE_LONGS;
    const int last = min(part->last_tile * TILE * MERGED, (int)table[FOLDED_OUTPUT_X]);
    for (int m = 0; m < channels; m++)
        for (int y = part->first_y; y < part->last_y; y++)
            for (int x = part->first_tile * TILE * MERGED; x < last; x++)
                put_one(f,
                        affine_one(f, exact_position(from, weights, table, slice, y, x, m),
                                   channel + m),
                        at + m * table[FOLDED_OUTPUT_CHANNEL_STEP] +
                            y * table[FOLDED_OUTPUT_Y_STEP] + x,
                        channel + m);
}

/* The taps of a part. */
static INLINED void find_taps(struct taps *taps, const struct part *part,
                              __global const long *table)
{
    taps->in_channels = in_channels_of(table);
    taps->row = (int)table[THIN_ROW];
#ifndef KX
    taps->count_x = (int)table[FOLDED_KERNEL_X];
    taps->dilation_x = (int)table[FOLDED_DILATION_X];
#endif
    taps->filter_row = (long)TAPS_X(table) * MW * taps->in_channels;
    taps->filter_step = table[FOLDED_TAP_STEP_Y] * taps->filter_row;
    taps->filter_z = table[FOLDED_KERNEL_Y] * taps->filter_row;
    taps->input_step = table[FOLDED_INPUT_STEP_Y] * taps->in_channels * taps->row;
    __global const long *slice = table + table[FOLDED_SLICES_AT] + part->z * SLICE_LONGS;
    taps->list_z = table + slice[SLICE_LIST];
    taps->rows = part->high - part->low + 1;
    taps->count_z = (int)slice[SLICE_TAPS];
}

/* Filter rows that contribute to a band of outputs: number j, skipped <= j < end. Number 0 is the
 * filter row `first_tap`, which meets the input row `newest`; each next one is filter_step further
 * in the filter, and its input row is input_step back. */
struct band {
    int skipped, end, newest, first_tap;
#if RY > 1
    int taps; /* rows of taps, if the data had no borders */
    int cut;  /* rows of the band that the last row of taps serves; RY or more: all */
#endif
};

#if RY > 1
static INLINED void find_band(struct band *band, const int newest, const int first_tap,
                              const int kernel_y, const int stride, const struct part *part)
{
    band->newest = newest;
    band->first_tap = first_tap;
    band->taps = kernel_y / stride + (first_tap < kernel_y % stride);
    band->cut = kernel_y - first_tap - (band->taps - 1) * stride;
    band->skipped = max(newest - part->high, 0);
    band->end = min(band->taps, newest - part->low + 1);
}
#else
static INLINED void find_band(struct band *band, const int first_y, __global const long *table)
{
    __global const long *reach_y = table + table[FOLDED_REACH_Y_AT] + first_y * REACH_LONGS;
    band->skipped = 0;
    band->end = (int)reach_y[REACH_TAPS];
    band->newest = (int)reach_y[REACH_INPUT];
    band->first_tap = (int)reach_y[REACH_TAP];
}
#endif

/* Adds all taps of a band to a tile, whose inputs and weights of the first row of taps begin at
 * `inputs` and `weights`. */
static INLINED void add_taps(vec_t sum[RY][MW][NX][PHASES], __local const acc_t *inputs,
                             __global const packed_t *weights, const struct taps *taps,
                             const struct band *band, struct upcoming *upcoming,
                             const bool prefetches)
{
    for (int jz = 0; jz < taps->count_z; jz++) {
        __local const acc_t *in = inputs + (long)jz * taps->rows * taps->in_channels * taps->row;
        __global const packed_t *w = weights + taps->list_z[jz * SLICE_TAP_LONGS + SLICE_TAP] *
                                                   taps->filter_z;
        for (int jy = band->skipped; jy < band->end;
             jy++, in -= taps->input_step, w += taps->filter_step) {
#if RY > 1
            if (band->cut < RY && jy == band->taps - 1)
                add_rows(sum, band->cut, in, w, taps);
            else
#endif
                add_rows(sum, RY, in, w, taps);
            if (prefetches) prefetch_rows(upcoming);
        }
    }
}

/* The whole work of work-item number `item` of `items`. */
static NOINLINE void thin_item(const int item, const int items,
                               __global const data_t *restrict data,
                               __global const packed_t *restrict filter,
                               __global const uint *restrict flags, const struct epilogue *f,
                               __global const long *restrict table, __local acc_t *restrict packed)
{
    const int in_channels = in_channels_of(table);
    const int out_channels = (int)table[FOLDED_OUT_CHANNELS];
    const int output_x = (int)table[FOLDED_OUTPUT_X], output_y = (int)table[FOLDED_OUTPUT_Y];
    const int row = (int)table[THIN_ROW], lead = lead_of(table);
    const long channel_step = table[FOLDED_OUTPUT_CHANNEL_STEP];

    const struct part part = part_of(item, table);
    struct taps taps;
    find_taps(&taps, &part, table);
    const int rows = taps.rows, taps_z = taps.count_z;
    const long filter_row = taps.filter_row, filter_step = taps.filter_step;

    /* Where a row's last tile begins so that it ends with the row. Tiles must not overlap if
     * outputs are read before they are stored, or if the row ends between the phases of a position.
     */
    const int last_position = BETA || output_x % MERGED != 0 ? INT_MAX : output_x / MERGED - TILE;
#if RY > 1
    /* The first band's first row, plus the pad, and the newest input row that it meets. */
    const int stride = (int)table[FOLDED_STRIDE_Y], kernel_y = (int)table[FOLDED_KERNEL_Y],
              first_position = part.first_band * RY - (int)table[THIN_LACKING] +
                               (int)table[FOLDED_PAD_Y],
              first_newest = first_position >= 0 ? first_position / stride : -1;
#endif

    const struct epilogue epilogue = *f; /* in registers */
    const struct reading reading = reading_of(part.first_tile, part.last_tile, table);
    const int groups = (int)table[FOLDED_GROUPS], blocks = (int)table[FOLDED_BLOCKS];
    /* Steps between images of a batch item: of inputs in local memory, weights and output
     * channels. */
    const long image_elements = (long)taps_z * max(rows, 0) * in_channels * row;
    const long image_weights = table[FOLDED_KERNEL_Z] * taps.filter_z * blocks,
               image_step = out_channels * channel_step;
    int images, zeroed = 0;
    for (int p = part.first_plane; p < part.last_plane; p += images * blocks) {
        const int image = p / blocks, g = image % groups;
        const int first_block = p % blocks,
                  last_block = min(blocks, first_block + part.last_plane - p);
        images = min(min((int)table[THIN_TOGETHER], groups - g),
                     (part.last_plane - 1) / blocks - image + 1);
        __global const data_t *from = inputs_of(data, table, image);
        const long from_step = in_channels * table[FOLDED_DATA_CHANNEL_STEP];
        for (int i = 0; i < images; i++)
            copy_rows(from + i * from_step, table, &part, &reading, packed + i * image_elements,
                      i >= zeroed);
        zeroed = max(zeroed, images);
        struct upcoming upcoming = prefetch_of(data, table, &part, item, items, p, images);
        const bool prefetches = upcoming.channels > 0;

        for (int block = first_block; block < last_block; block++) {
            const int channels = min(MW, out_channels - block * MW);
            const long co = (long)g * out_channels + block * MW;
            __global const packed_t *weights = weights_of(filter, table, g * blocks + block);
            __global const uint *flag = flags + g * blocks + block;
            const long to = image / groups * table[FOLDED_OUTPUT_BATCH_STEP] + co * channel_step +
                            part.z * table[FOLDED_OUTPUT_Z_STEP];
            for (int i = 0; i < images; i++)
                if (flag[i * blocks] != 0)
                    exact_part(f, from + i * from_step, weights + i * image_weights, table, &part,
                               channels, co + i * out_channels, to + i * image_step);

#if RY > 1
            int newest = first_newest, first_tap = first_position - first_newest * stride;
#endif
            for (int number = part.first_band; number < part.last_band; number++) {
                const int first_y = number * RY - (int)table[THIN_LACKING];
                const long line = to + first_y * table[FOLDED_OUTPUT_Y_STEP];
                struct band band;
#if RY > 1
                find_band(&band, newest, first_tap, kernel_y, stride, &part);
#else
                find_band(&band, first_y, table);
#endif
                /* The inputs and weights of the band's first row of taps, for the first tap along
                 * z. */
                __local const acc_t *inputs_y =
                    packed + (long)(band.newest - band.skipped - part.low) * in_channels * row +
                    lead;
                __global const packed_t *weights_y = weights + band.first_tap * filter_row +
                                                     band.skipped * filter_step;
                const bool inside = channels == MW && first_y >= 0 && first_y + RY <= output_y;
                for (int tile = part.first_tile; tile < part.last_tile; tile++) {
                    const int position = tile > part.first_tile ? min(tile * TILE, last_position)
                                                                : tile * TILE;
                    const int x = position * MERGED;
                    const bool whole = inside && output_x - x >= TILE * MERGED;
                    for (int i = 0; i < images; i++) {
                        if (flag[i * blocks] != 0) continue;
                        const long at = line + i * image_step + x, channel = co + i * out_channels;
                        if (whole) prefetch_outputs(&epilogue, at, table);
                        vec_t sum[RY][MW][NX][PHASES];
#pragma unroll
                        for (int j = 0; j < SUMS; j++) sum SUM(j) = (vec_t)(0);
                        add_taps(
                            sum, inputs_y + i * image_elements + position - part.first_tile * TILE,
                            weights_y + i * image_weights, &taps, &band, &upcoming, prefetches);
                        if (whole)
                            store_band(&epilogue, at, sum, channel, table);
                        else
                            store_band_left(f, at, sum, channel, table, channels, -first_y,
                                            output_y - first_y, min(output_x - x, TILE * MERGED));
                    }
                }
#if RY > 1
                first_tap += RY;
                if (first_tap == stride) {
                    first_tap = 0;
                    newest++;
                }
#endif
            }
        }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
tconv_thin(__global const data_t *restrict data, const ulong data_offset,
           __global const packed_t *restrict filter, const ulong filter_offset,
           __global uint *restrict flags, const ulong flags_offset, EPILOGUE_PARAMETERS,
           __global const long *restrict table, __local acc_t *restrict packed, SHARE_PARAMETER)
{
    PACK_WITHOUT_FILTER
    EPILOGUE(epilogue, table)
    EACH_SHARED(i)
    thin_item(SHARED_GROUP(i), SHARED_END, data + data_offset, filter + filter_offset,
              flags + flags_offset, &epilogue, table, packed);
}
