/* SPDX-License-Identifier: Apache-2.0 */
/* The thin family: few channels, so that moving data costs as much as adding. Output-stationary and exact
 * in work along y and z, for processors. Depthwise layers are its extreme.
 *
 * A work-item copies the input rows that its output rows need into local memory, surrounded by zeros; then
 * nothing along x is an exception any more. Residues along x (o = u*S + t: residue t, place u) are summed at
 * the same time, so that one input vector serves them all, and are interleaved in registers.
 *
 *     work-item   THIN_PLANES planes (batch item, group, block of MW output channels), THIN_BANDS bands of one z,
 *                 THIN_TILES tiles along x
 *     tile        NX*VW places, all residues, RY rows (a band), MW channels
 *
 * Copying waits for memory, adding does not need it: where data do not stay in a cache, the rows that are copied next, of the
 * next image or work-item, are asked for between rows of taps.
 *
 * A band of several rows begins where a row's number, plus the pad, is a multiple of RY: an input row that serves the first serves
 * all, with neighbouring rows of the filter.
 *
 * Along y and z the table lists which taps reach an output row from inside the data. A zero of the padding
 * must not meet a weight that is infinite or NaN: blocks with such weights go through careful_place.
 * taps.clh has the packed filter, thin_table.h the table.
 *
 *   macro    meaning                                              legal values
 *   VW       lanes of a vector                                    1, 2, 4, 8, 16
 *   NX       vectors of a tile                                    1 to 4
 *   MW       output channels of a block                           1 to 16
 *   RY       rows of a band                                       1, or a divisor of the stride along y without dilation
 *   MERGED   stride along x, the number of residues               1, 2, 3, 4, 8
 *   KX, DX   taps and dilation along x                            at least 1
 *   RX       pad_begin along x modulo MERGED                      0 to MERGED-1
 *   LOW      the least of all taps' distances before shifting     any
 *   SINGLE   groups of one input channel                          0, 1
 *   STREAM   see finish.clh                                       0, 1
 *
 * Registers: RY * MW * MERGED * NX vectors of sums. Local memory: a kernel argument. */
#if !defined(VW) || !defined(NX) || !defined(MW) || !defined(RY) || !defined(MERGED) ||            \
    !defined(KX) || !defined(DX) || !defined(RX) || !defined(LOW) || !defined(SINGLE)
#error "VW, NX, MW, RY, MERGED, KX, DX, RX, LOW and SINGLE must be set"
#endif
#define TILE (NX * VW)
#define LINE 64 /* bytes that are asked for together */
/* As in gather.cl. */
#define RESIDUE(k) (((k)*DX % MERGED - RX + MERGED) % MERGED)
#define DISTANCE(k) ((RESIDUE(k) + RX - (k)*DX) / MERGED - (LOW))

/* Where in a row of local memory the inputs begin: those whose number is a multiple of VW lie where a vector would. */
static int lead_of(__global const long *table)
{
    return (int)table[ROWS_FIRST_INPUT] & (VW - 1);
}

/* What some tiles of a row read: `places` inputs from `first` on, of which those from `begin` to `end`, counted from `first`, are
 * there. */
struct reading {
    int first, places, begin, end;
};

static struct reading reading_of(const int first_tile, const int last_tile,
                                 __global const long *table)
{
    struct reading r;
    r.first = first_tile * TILE + (int)table[ROWS_FIRST_INPUT];
    r.places = (last_tile - first_tile) * TILE + DISTANCE(0);
    r.begin = clamp(-r.first, 0, r.places);
    r.end = clamp((int)table[ROWS_INPUT_X] - r.first, r.begin, r.places);
    return r;
}

/* Copies an input row to local memory; zeros where there is no input, unless those are there. */
static void copy_row(__global const data_t *from, const acc_t zero, const struct reading *r,
                     __local acc_t *to, const bool zeros_too)
{
    from += r->first;
    int i = r->begin;
    for (; i + VW <= r->end; i += VW) STORE(READS_DATA(from + i, zero), to + i);
    if (i < r->end && r->end - r->begin >= VW) /* some again, so that the rest is a vector */
        STORE(READS_DATA(from + r->end - VW, zero), to + r->end - VW);
    else
        for (; i < r->end; i++) to[i] = READ_DATA(from + i, zero);
    if (!zeros_too) return;
    for (i = 0; i < r->begin; i++) to[i] = 0;
    for (i = r->end; i < r->places; i++) to[i] = 0;
}

/* Of a group. */
static int in_channels_of(__global const long *table)
{
    return SINGLE ? 1 : (int)table[ROWS_IN_CHANNELS];
}

/* Adds the taps along x of `count` rows of the filter, RY at most, each to its row of a band. */
static __attribute__((always_inline)) void add_rows(vec_t sum[RY][MW][NX][RESIDUES],
                                                    const int count, __local const acc_t *x,
                                                    __global const packed_t *weights,
                                                    const int in_channels, const int row)
{
    const long filter_row = (long)KX * MW * in_channels;
    for (int ci = 0; ci < in_channels; ci++, x += row) {
        __global const packed_t *w = weights + ci * MW;
#pragma unroll
        for (int k = 0; k < KX; k++) {
            vec_t in[NX];
#pragma unroll
            for (int v = 0; v < NX; v++) in[v] = LOAD(x + DISTANCE(k) + v * VW);
#pragma unroll
            for (int r = 0; r < RY; r++)
                if (r < count) {
#pragma unroll
                    for (int m = 0; m < MW; m++) {
                        const vec_t weight =
                            (vec_t)(READ_WEIGHT(w + r * filter_row + k * in_channels * MW + m));
#pragma unroll
                        for (int v = 0; v < NX; v++)
                            sum[r][m][v][RESIDUE(k)] =
                                MULTIPLY_ADD(in[v], weight, sum[r][m][v][RESIDUE(k)]);
                    }
                }
        }
    }
}

/* Stores a tile of one channel, all residues; `left` outputs from the first one on belong to the row. */
static void store_tile(const struct finish *f, const long at, const vec_t sum[NX][RESIDUES],
                       const long channel, const int left)
{
    vec_t result[NX][RESIDUES];
#pragma unroll
    for (int v = 0; v < NX; v++) interleave(sum[v], result[v]);
    if (left >= TILE * RESIDUES) {
#pragma unroll
        for (int i = 0; i < NX * RESIDUES; i++)
            put(f, affine(f, result[i / RESIDUES][i % RESIDUES], channel), at + i * VW, channel);
        return;
    }
    lane_t lanes[VW];
#pragma unroll
    for (int i = 0; i < NX * RESIDUES; i++) {
        const result_vec_t value = affine(f, result[i / RESIDUES][i % RESIDUES], channel);
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

/* One output element, tap by tap: as careful_output, but z may stand for several axes. */
static acc_t careful_place(__global const data_t *data, __global const packed_t *weights,
                           __global const long *table, __global const long *slice, const int y,
                           const int x, const int m)
{
    __global const long *tap = table + slice[SLICE_LIST];
    acc_t sum = 0;
    for (long j = 0; j < slice[SLICE_TAPS]; j++, tap += SLICE_TAP_LONGS)
        sum = careful_slice(sum, data + tap[SLICE_INPUT] * table[ROWS_DATA_Z_STEP],
                            slice_of(weights, table, tap[SLICE_TAP], m), table, y, x);
    return sum;
}

/* What a work-item computes, and which input rows that reads. */
struct part {
    int first_tile, last_tile;
    int first_band, last_band, first_y, last_y, z;
    int first_plane, last_plane;
    int low, high;
};

static struct part part_of(const int number, __global const long *table)
{
    const int output_y = (int)table[ROWS_OUTPUT_Y], output_z = (int)table[ROWS_OUTPUT_Z];
    const int tiles = (int)table[ROWS_TILES], item_tiles = (int)table[THIN_TILES];
    const int item_bands = (int)table[THIN_BANDS], item_planes = (int)table[THIN_PLANES];
    const int lacking = (int)table[THIN_LACKING], bands = (output_y + lacking + RY - 1) / RY;
    const int planes = (int)table[ROWS_BATCHES] * (int)table[ROWS_GROUPS] * (int)table[ROWS_BLOCKS];
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

    __global const long *reach = table + table[ROWS_REACH_Y_AT];
    part.low = (int)table[ROWS_INPUT_Y];
    part.high = -1;
    for (int y = part.first_y; y < part.last_y; y++) {
        const int taps = (int)reach[y * REACH_LONGS + REACH_TAPS];
        const int input = (int)reach[y * REACH_LONGS + REACH_INPUT];
        if (taps > 0) part.low = min(part.low, input - (taps - 1) * (int)table[ROWS_INPUT_STEP_Y]);
        if (taps > 0) part.high = max(part.high, input);
    }
    return part;
}

/* A plane: batch item, group and block of output channels. */
struct plane {
    int n, g, block;
};

static struct plane plane_of(const int number, __global const long *table)
{
    const int groups = (int)table[ROWS_GROUPS], blocks = (int)table[ROWS_BLOCKS];
    const int image = number / blocks;
    return (struct plane){image / groups, image % groups, number % blocks};
}

static void next_plane(struct plane *plane, __global const long *table)
{
    if (++plane->block < table[ROWS_BLOCKS]) return;
    plane->block = 0;
    if (++plane->g < table[ROWS_GROUPS]) return;
    plane->g = 0;
    plane->n++;
}

/* The first input channel of its group. */
static __global const data_t *inputs_of(__global const data_t *data, __global const long *table,
                                        const struct plane plane)
{
    return data + plane.n * table[ROWS_DATA_BATCH_STEP] +
           (long)plane.g * in_channels_of(table) * table[ROWS_DATA_CHANNEL_STEP];
}

/* Copies the input rows of a part to local memory; rows of a channel, which follow each other, one after the other. */
static void copy_rows(__global const data_t *from, __global const long *table,
                      const struct part *part, __local acc_t *packed, const bool zeros_too)
{
    __global const long *slice = table + table[ROWS_SLICES_AT] + part->z * SLICE_LONGS;
    __global const long *list_z = table + slice[SLICE_LIST];
    const struct reading reading = reading_of(part->first_tile, part->last_tile, table);
    const int in_channels = in_channels_of(table), row = (int)table[THIN_ROW];
    const int rows = part->high - part->low + 1, taps_z = (int)slice[SLICE_TAPS];
    const acc_t zero = DATA_ZERO(table);
    for (int jz = 0; jz < taps_z; jz++)
        for (int ci = 0; ci < in_channels; ci++)
            for (int y = 0; y < rows; y++)
                copy_row(from + ci * table[ROWS_DATA_CHANNEL_STEP] +
                             list_z[jz * SLICE_TAP_LONGS + SLICE_INPUT] * table[ROWS_DATA_Z_STEP] +
                             (part->low + y) * table[ROWS_DATA_Y_STEP],
                         zero, &reading,
                         packed + ((long)(jz * rows + y) * in_channels + ci) * row + lead_of(table),
                         zeros_too);
}

/* The input rows to ask for, channel after channel. */
struct ahead {
    __global const data_t *row;
    int y, rows, channels, elements, share;
    long y_step, channel_step;
};

/* Those that are copied after the ones of `plane`, the first plane of its image in a work-item's part: of the next image, or of the
 * next work-item. */
static struct ahead ahead_of(__global const data_t *data, __global const long *table,
                             const struct part *own, const int plane)
{
    struct ahead ahead = {.y_step = table[ROWS_DATA_Y_STEP],
                          .channel_step = table[ROWS_DATA_CHANNEL_STEP]};
    if (!table[THIN_AHEAD]) return ahead;
    const int blocks = (int)table[ROWS_BLOCKS], number = (int)get_group_id(0) + 1;
    const int end_plane = (plane / blocks + 1) * blocks; /* of the image */
    const bool same = end_plane < own->last_plane;
    if (!same && number == (int)get_num_groups(0)) return ahead;
    const struct part next = same ? *own : part_of(number, table);
    __global const long *slice = table + table[ROWS_SLICES_AT] + next.z * SLICE_LONGS;
    if (next.high < next.low || slice[SLICE_TAPS] == 0) return ahead;
    const struct reading reading = reading_of(next.first_tile, next.last_tile, table);
    ahead.rows = next.high - next.low + 1;
    ahead.channels = in_channels_of(table);
    ahead.elements = reading.end - reading.begin;
    ahead.row = inputs_of(data, table, plane_of(same ? end_plane : next.first_plane, table)) +
                table[slice[SLICE_LIST] + SLICE_INPUT] * table[ROWS_DATA_Z_STEP] +
                next.low * ahead.y_step + reading.first + reading.begin;
    /* Rows of taps that this image has still to do; more than 32 bits where filters are large. */
    const long taps_y =
        clamp((table[ROWS_KERNEL_Y] + table[ROWS_TAP_STEP_Y] - 1) / table[ROWS_TAP_STEP_Y], 1l,
              max(own->high - own->low + 1l, 1l));
    const long times = taps_y * (own->last_tile - own->first_tile) *
                       (own->last_band - own->first_band) *
                       (min(end_plane, own->last_plane) - plane);
    ahead.share = (int)(((long)ahead.rows * ahead.channels + times - 1) / times);
    return ahead;
}

/* Asks for the share of them that belongs to a row of taps of a tile. */
static void ask_ahead(struct ahead *ahead)
{
    for (int i = 0; i < ahead->share && ahead->channels > 0; i++) {
        for (int x = 0; x < ahead->elements; x += LINE / (int)sizeof(data_t))
            PREFETCH(ahead->row + x);
        if (ahead->elements > 0) /* rows begin anywhere in a line */
            PREFETCH(ahead->row + ahead->elements - 1);
        ahead->row += ahead->y_step;
        if (++ahead->y == ahead->rows) {
            ahead->row += ahead->channel_step - ahead->rows * ahead->y_step;
            ahead->y = 0;
            ahead->channels--;
        }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
tconv_thin(__global const data_t *restrict data, const ulong data_offset,
           __global const packed_t *restrict filter, const ulong filter_offset,
           __global const uint *restrict flags, const ulong flags_offset, FINISH_PARAMETERS,
           __global const long *restrict table, __local acc_t *restrict packed)
{
    const int in_channels = in_channels_of(table);
    const int out_channels = (int)table[ROWS_OUT_CHANNELS];
    const int output_x = (int)table[ROWS_OUTPUT_X], output_y = (int)table[ROWS_OUTPUT_Y];
    const int row = (int)table[THIN_ROW], lead = lead_of(table);
    const long filter_row = (long)KX * MW * in_channels; /* elements, as of the next two */
    const long filter_step = table[ROWS_TAP_STEP_Y] * filter_row;
    const long input_step = table[ROWS_INPUT_STEP_Y] * in_channels * row;
    const long channel_step = table[ROWS_OUTPUT_CHANNEL_STEP];

    const struct part part = part_of((int)get_group_id(0), table);
    __global const long *slice = table + table[ROWS_SLICES_AT] + part.z * SLICE_LONGS;
    __global const long *list_z = table + slice[SLICE_LIST];
    const int rows = part.high - part.low + 1, taps_z = (int)slice[SLICE_TAPS];

    FINISH(finish, table)
    __global const data_t *copied = 0;
    struct ahead ahead;
    struct plane plane = plane_of(part.first_plane, table);
    for (int p = part.first_plane; p < part.last_plane; p++, next_plane(&plane, table)) {
        const int all_blocks = plane.g * (int)table[ROWS_BLOCKS] + plane.block;
        const int channels = min(MW, out_channels - plane.block * MW);
        const long co = (long)plane.g * out_channels + plane.block * MW;
        __global const data_t *from = inputs_of(data + data_offset, table, plane);
        __global const packed_t *weights = weights_of(filter + filter_offset, table, all_blocks);
        const long to = plane.n * table[ROWS_OUTPUT_BATCH_STEP] + co * channel_step +
                        part.z * table[ROWS_OUTPUT_Z_STEP];

        if (flags[flags_offset + (ulong)all_blocks] != 0) {
            const int last = min(part.last_tile * TILE * MERGED, output_x);
            for (int m = 0; m < channels; m++)
                for (int y = part.first_y; y < part.last_y; y++)
                    for (int x = part.first_tile * TILE * MERGED; x < last; x++)
                        put_one(&finish,
                                affine_one(&finish,
                                           careful_place(from, weights, table, slice, y, x, m),
                                           co + m),
                                to + m * channel_step + y * table[ROWS_OUTPUT_Y_STEP] + x, co + m);
            continue;
        }
        if (from != copied) {
            copy_rows(from, table, &part, packed, copied == 0);
            ahead = ahead_of(data + data_offset, table, &part, p);
        }
        copied = from;

        for (int band = part.first_band; band < part.last_band; band++) {
            const int first_y = band * RY - (int)table[THIN_LACKING];
            const long line = to + first_y * table[ROWS_OUTPUT_Y_STEP];
#if RY > 1
            /* The first row of the filter that meets the newest input row of all, and that row. */
            const int place = first_y + (int)table[ROWS_PAD_Y], stride = (int)table[ROWS_STRIDE_Y];
            const int newest = place >= 0 ? place / stride : -1,
                      first_tap = place - newest * stride;
            const int skipped = max(newest - part.high, 0);
            const int taps_y = min(((int)table[ROWS_KERNEL_Y] - first_tap + stride - 1) / stride,
                                   newest - part.low + 1);
#else
            __global const long *reach_y = table + table[ROWS_REACH_Y_AT] + first_y * REACH_LONGS;
            const int taps_y = (int)reach_y[REACH_TAPS], skipped = 0;
            const int newest = (int)reach_y[REACH_INPUT], first_tap = (int)reach_y[REACH_TAP];
#endif
            for (int tile = part.first_tile; tile < part.last_tile; tile++) {
                vec_t sum[RY][MW][NX][RESIDUES];
#pragma unroll
                for (int i = 0; i < RY * MW * NX * RESIDUES; i++)
                    sum[i / (MW * NX * RESIDUES)][i / (NX * RESIDUES) % MW][i / RESIDUES % NX]
                       [i % RESIDUES] = (vec_t)(0);
                for (int jz = 0; jz < taps_z; jz++) {
                    const long kz = list_z[jz * SLICE_TAP_LONGS + SLICE_TAP];
                    __local const acc_t *in =
                        packed + (long)(jz * rows + newest - part.low) * in_channels * row + lead +
                        (tile - part.first_tile) * TILE;
                    __global const packed_t *w = weights + (kz * table[ROWS_KERNEL_Y] + first_tap) *
                                                               filter_row;
                    for (int jy = skipped; jy < taps_y; jy++) {
                        __local const acc_t *x = in - jy * input_step;
                        __global const packed_t *w_y = w + jy * filter_step;
#if RY > 1
                        const int count = (int)table[ROWS_KERNEL_Y] - first_tap -
                                          jy * (int)table[ROWS_STRIDE_Y];
                        if (count < RY)
                            add_rows(sum, count, x, w_y, in_channels, row);
                        else
#endif
                            add_rows(sum, RY, x, w_y, in_channels, row);
                        ask_ahead(&ahead);
                    }
                }
                const int x = tile * TILE * MERGED;
#pragma unroll
                for (int r = 0; r < RY; r++)
#pragma unroll
                    for (int m = 0; m < MW; m++)
                        if (m < channels && first_y + r >= 0 && first_y + r < output_y)
                            store_tile(&finish,
                                       line + r * table[ROWS_OUTPUT_Y_STEP] + m * channel_step + x,
                                       sum[r][m], co + m, output_x - x);
            }
        }
    }
}
