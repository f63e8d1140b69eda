/* SPDX-License-Identifier: Apache-2.0 */
/* The packed algorithm for CPUs: an implicit matrix product that first packs its inputs into local
 * memory. It is output-stationary.
 *
 * Outputs are split by their phases: o = u*s + t along each axis, phase t, position u. Each tap
 * that reaches a phase (tz, ty, tx) reads its inputs at a fixed distance from the position. A slot
 * is one such distance. A work-item takes a tile of NX vectors of VW positions and
 *
 *   1. packs for every slot and input channel the inputs at that distance into local memory, zeros
 *      where there is no input: contiguous, whatever the tensor's steps are;
 *   2. for each phase and each block of MW output channels multiplies and adds
 *
 *        sum[m][position] += filter[tap][ci][m] * packed[slot of tap][ci][position]
 *
 *      in registers, over the phase's own taps and over ci;
 *   3. stores the sums.
 *
 *     work-item   PACKED_ITEM_TILES tiles x PACKED_ITEM_BLOCKS blocks of MW channels, every phase
 *     vector      VW positions of one phase of one channel
 *
 *   FLAT = 0   a vector's positions are neighbours in one row; a slot is a row of inputs, wider
 *              than the vector, and taps along x read it at an offset. A row's last vector may be
 *              half empty.
 *   FLAT = 1   they are neighbours in the order (batch item, z, y, x): small images share vectors.
 *              Each distance has a slot of its own.
 *   FLAT = 2   the same in the order (z, y, batch item, x): images of a batch that are smaller than
 *              a tile.
 *
 * With FLAT = 0 and 2 most tiles stay in one row of the images. Taps that read outside along z and
 * y are then skipped.
 *
 * MERGED phases along x are stored interleaved, so that stores are contiguous.
 *
 * If the input channels do not all fit into local memory, they come in chunks, and local memory
 * keeps the sums between chunks (CHUNKED). A zero of the padding must not meet a weight that is
 * infinite or NaN: see exact_output.
 *
 * taps.clh has the packed filter, packed_table.h the table, products.clh the innermost loop.
 *
 *   macro     meaning                                                   legal values
 *   VW        lanes of a vector                                         1, 2, 4, 8, 16
 *   NX        vectors of a tile                                         1 to 4
 *   MW        output channels of a block                                1 to 16
 *   ROW       inputs of a channel in a vector's slot                    VW; with FLAT = 0 VW and
 *                                                                       more
 *   ROUND     see products.clh                                          1, 2, 4, 8
 *   MERGED    phases along x that are stored together; 0: one by one    0, 1, 2, 3, 4
 *   FLAT      see above                                                 0, 1, 2
 *   CHUNKED   input channels come in chunks                             0, 1
 *   STREAM    see epilogue.clh                                          0, 1
 *
 * Registers: MW * NX vectors of sums; the sums of merged phases wait on the stack. Local memory: a
 * kernel argument of tiles * slots * chunk * NX * ROW elements, with CHUNKED also all sums of the
 * work-item. */
#include "cpu/packed_table.h"
#include "cpu/parts/products.clh"
#include "cpu/parts/taps.clh"

#if !defined(VW) || !defined(NX) || !defined(MW) || !defined(ROW) || !defined(MERGED) ||           \
    !defined(FLAT) || !defined(CHUNKED)
#error "VW, NX, MW, ROW, MERGED, FLAT and CHUNKED must be set"
#endif

/* The positions of a vector. */
struct positions {
    int n, z, y, x; /* of the first one */
    int count;      /* lanes that are positions */
    bool whole;     /* all positions are in one row */
};

struct tile {
    struct positions vector[NX];
    bool bordered; /* some inputs of the tile are zeros of the padding */
    ulong slots;   /* FLAT != 1: a bit for each slot that has any inputs */
};

static struct tile tile_at(__global const long *table, const int number)
{
    struct tile tile;
    tile.bordered = false;
    tile.slots = 0;
    const int positions_x = (int)table[PACKED_POSITIONS_X];
#pragma unroll
    for (int v = 0; v < NX; v++) {
        struct positions *p = &tile.vector[v];
        const int vector = number * NX + v;
        const bool real = vector < table[PACKED_VECTORS];
#if FLAT
        long rest = real ? (long)vector * VW : 0;
        const long all = table[PACKED_POSITIONS] - rest;
        p->x = (int)(rest % positions_x);
        rest /= positions_x;
        p->count = (int)min((long)VW, all);
        p->whole = p->x + VW <= positions_x;
#else
        const int row_vectors = (int)table[FOLDED_TILES];
        p->x = real ? vector % row_vectors * VW : 0;
        int rest = real ? vector / row_vectors : 0;
        p->count = min(VW, positions_x - p->x);
        p->whole = true;
#endif
        if (!real) p->count = 0;
#if FLAT == 2
        p->n = (int)(rest % table[FOLDED_BATCHES]);
        rest /= table[FOLDED_BATCHES];
#endif
        p->y = (int)(rest % (int)table[PACKED_POSITIONS_Y]);
        rest /= (int)table[PACKED_POSITIONS_Y];
        p->z = (int)(rest % (int)table[PACKED_POSITIONS_Z]);
#if FLAT != 2
        p->n = (int)(rest / (int)table[PACKED_POSITIONS_Z]);
#endif
    }
    return tile;
}

/* Moves `lanes` positions further in the same row, or to the begin of the next row. */
static void advance(__global const long *table, struct positions *p, const int lanes)
{
    p->x += lanes;
    if (p->x < table[PACKED_POSITIONS_X]) return;
    p->x = 0;
#if FLAT == 2
    if (++p->n < table[FOLDED_BATCHES]) return;
    p->n = 0;
#endif
    if (++p->y < table[PACKED_POSITIONS_Y]) return;
    p->y = 0;
    if (++p->z < table[PACKED_POSITIONS_Z]) return;
    p->z = 0;
    p->n++;
}

#if FLAT
/* Packs one slot of a vector whose positions are in several rows. `data` is the first of `channels`
 * channels. Returns how many lanes have an input. */
static int pack_lanes(__global const data_t *data, __global const long *table,
                      __global const long *slot, __local acc_t *to, const struct positions *p,
                      const int channels)
{
    const acc_t zero = DATA_ZERO(table);
    int at[VW]; /* each lane's input in the data of its channel; -1: none. The host has checked that
                   int suffices */
    struct positions position = *p; /* a copy: some compilers pass structs without copying them */
    bool contiguous = true;
    int existing = 0;
    for (int i = 0, count = p->count; i < VW; i++) {
        const int z = position.z + (int)slot[SLOT_Z], y = position.y + (int)slot[SLOT_Y];
        const int x = position.x + (int)slot[SLOT_X];
        const bool inside = i < count && z >= 0 && z < table[FOLDED_INPUT_Z] && y >= 0 &&
                            y < table[FOLDED_INPUT_Y] && x >= 0 && x < table[FOLDED_INPUT_X];
        at[i] = inside ? (int)(position.n * table[FOLDED_DATA_BATCH_STEP] +
                               z * table[FOLDED_DATA_Z_STEP] + y * table[FOLDED_DATA_Y_STEP] +
                               x * table[FOLDED_DATA_X_STEP])
                       : -1;
        existing += inside;
        contiguous = contiguous && inside && at[i] == at[0] + i;
        advance(table, &position, 1);
    }
    for (int ci = 0; ci < channels; ci++, to += NX * ROW) {
        __global const data_t *from = data + ci * table[FOLDED_DATA_CHANNEL_STEP];
        if (contiguous)
            STORE(READS_DATA(from + at[0], zero), to);
        else if (existing == VW)
            for (int i = 0; i < VW; i++) to[i] = READ_DATA(from + at[i], zero);
        else
            for (int i = 0; i < VW; i++)
                to[i] = at[i] >= 0 ? READ_DATA(from + at[i], zero) : (acc_t)0;
    }
    return existing;
}
#endif

/* Packs `channels` input channels of one tile. `data` is the first of them in the group. */
static void pack_tile(__global const data_t *data, __global const long *table,
                      __local acc_t *packed, struct tile *tile, const int channels)
{
    const int slots = (int)table[PACKED_SLOTS], chunk = (int)table[PACKED_CHUNK];
    const long channel_step = table[FOLDED_DATA_CHANNEL_STEP], x_step = table[FOLDED_DATA_X_STEP];
    const acc_t zero = DATA_ZERO(table);
    for (int s = 0; s < slots; s++, packed += chunk * NX * ROW) {
        __global const long *slot = table + table[PACKED_SLOTS_AT] + s * SLOT_LONGS;
        bool inside[NX], any = false;
#pragma unroll
        for (int v = 0; v < NX; v++) {
            const int z = tile->vector[v].z + (int)slot[SLOT_Z];
            const int y = tile->vector[v].y + (int)slot[SLOT_Y];
            inside[v] = tile->vector[v].count > 0 && z >= 0 && z < table[FOLDED_INPUT_Z] &&
                        y >= 0 && y < table[FOLDED_INPUT_Y];
            any = any || inside[v];
        }
#if FLAT == 0
        if (!any) continue;
#endif
#if FLAT != 1
        if (any) tile->slots |= 1UL << s; /* the host allows no more than 64 slots */
#endif
        for (int v = 0; v < NX; v++) {
            const struct positions *p = &tile->vector[v];
            __local acc_t *to = packed + v * ROW;
#if FLAT
            if (!p->whole) {
                const int existing = pack_lanes(data, table, slot, to, p, channels);
                if (existing < VW) tile->bordered = true;
#if FLAT == 2
                if (existing > 0) tile->slots |= 1UL << s;
#endif
                continue;
            }
#endif
            const int x = p->x + (int)slot[SLOT_X];
            const int begin = inside[v] ? clamp(-x, 0, ROW) : ROW;
            const int end = inside[v] ? clamp((int)table[FOLDED_INPUT_X] - x, begin, ROW) : ROW;
            if (begin > 0 || end < ROW) tile->bordered = true;
            __global const data_t *from = data + p->n * table[FOLDED_DATA_BATCH_STEP] +
                                          (p->z + slot[SLOT_Z]) * table[FOLDED_DATA_Z_STEP] +
                                          (p->y + slot[SLOT_Y]) * table[FOLDED_DATA_Y_STEP] +
                                          x * x_step;
            for (int ci = 0; ci < channels; ci++, from += channel_step, to += NX * ROW) {
                int i = 0;
                if (x_step == 1 && begin == 0 && end >= VW) {
                    STORE(READS_DATA(from, zero), to);
                    i = VW;
                } else
#pragma unroll 1
                    for (; i < begin; i++) to[i] = 0;
#pragma unroll 1
                for (; i < end; i++) to[i] = READ_DATA(from + i * x_step, zero);
#pragma unroll 1
                for (; i < ROW; i++) to[i] = 0;
            }
        }
    }
}

/* Adds the taps of one phase over `channels` (at least one) input channels. Its loops run at least
 * once: see products.clh. */
static void add_taps(vec_t sum[MW][NX], __local const acc_t *packed,
                     __global const packed_t *weights, __global const long *table,
                     __global const long *kind, const ulong live, const int first_channel,
                     const int channels)
{
    const int taps = (int)kind[KIND_TAPS];
    const long in_channels = table[FOLDED_IN_CHANNELS];
    __global const long *list = table + table[PACKED_TAP_LIST_AT] + kind[KIND_LIST] * ENTRY_LONGS;
    for (int tap = 0; tap < taps; tap++, list += ENTRY_LONGS) {
#if FLAT != 1
        while (tap < taps && (live >> list[ENTRY_SLOT] & 1) == 0) {
            tap++;
            list += ENTRY_LONGS;
        }
        if (tap == taps) break;
#endif
        const long skip =
            tap + 1 < taps
                ? ((list[ENTRY_LONGS + ENTRY_TAP] - list[ENTRY_TAP]) * in_channels - channels) * MW
                : 0;
        add_products(sum, packed + list[ENTRY_OFFSET], ROW,
                     weights + (list[ENTRY_TAP] * in_channels + first_channel) * MW, channels,
                     skip);
    }
}

/* The number of the output element of a position and phase, without the channel. */
static long output_at(__global const long *table, const struct positions *position, const int tz,
                      const int ty, const int tx)
{
    return position->n * table[FOLDED_OUTPUT_BATCH_STEP] +
           (position->z * table[FOLDED_STRIDE_Z] + tz) * table[FOLDED_OUTPUT_Z_STEP] +
           (position->y * table[FOLDED_STRIDE_Y] + ty) * table[FOLDED_OUTPUT_Y_STEP] +
           (position->x * table[FOLDED_STRIDE_X] + tx) * table[FOLDED_OUTPUT_X_STEP];
}

static bool output_exists(__global const long *table, const struct positions *position,
                          const int tz, const int ty, const int tx)
{
    return position->z * table[FOLDED_STRIDE_Z] + tz < table[FOLDED_OUTPUT_Z] &&
           position->y * table[FOLDED_STRIDE_Y] + ty < table[FOLDED_OUTPUT_Y] &&
           position->x * table[FOLDED_STRIDE_X] + tx < table[FOLDED_OUTPUT_X];
}

/* Stores the phases of a vector's positions for `channels` channels from `co` on, whose outputs
 * begin at `first`. The positions must be neighbours in the output, or with MERGED = 0 a stride
 * apart. */
static void store_whole(const struct epilogue *f, __global const long *table, const long first,
                        vec_t sum[MW][PHASES], const long co, const int channels)
{
    const long channel_step = table[FOLDED_OUTPUT_CHANNEL_STEP];
#pragma unroll
    for (int m = 0; m < MW; m++)
        if (m < channels) {
#if MERGED == 0
            const long step = table[FOLDED_STRIDE_X] * table[FOLDED_OUTPUT_X_STEP];
            lane_t lane[VW];
            TO_LANES(f, affine(f, sum[m][0], co + m), SLOPES_OF(f, co + m), lane);
#pragma unroll
            for (int i = 0; i < VW; i++)
                PUT_LANE(f, lane[i], first + m * channel_step + i * step, co + m);
#else
#pragma unroll
            for (int t = 0; t < PHASES; t++)
                put(f, affine(f, sum[m][t], co + m), first + m * channel_step + t * VW, co + m);
#endif
        }
}

/* The same for any positions: in fours if they are in one row of the output, else one by one. */
static NOINLINE void store_pieces(const struct epilogue epilogue, __global const long *table,
                                  const long first, const struct positions *p,
                                  vec_t sum[MW][PHASES], const long co, const int channels,
                                  const bool rows, const int tz, const int ty, const int tx)
{
    const struct epilogue *f = &epilogue;
    const long channel_step = table[FOLDED_OUTPUT_CHANNEL_STEP],
               x_step = table[FOLDED_OUTPUT_X_STEP];
    const int output_x = (int)table[FOLDED_OUTPUT_X], stride_x = (int)table[FOLDED_STRIDE_X];
    lane_t lanes[MW][VW * PHASES];
#pragma unroll
    for (int m = 0; m < MW; m++)
#pragma unroll
        for (int t = 0; t < PHASES; t++)
            TO_LANES(f, affine(f, sum[m][t], co + min(m, channels - 1)),
                     SLOPES_OF(f, co + min(m, channels - 1)), lanes[m] + t * VW);
    struct positions position = *p;
    for (int i = 0; i < p->count;) {
        const bool four = rows && i + 4 <= p->count &&
                          position.x + 4 <= table[PACKED_POSITIONS_X] &&
                          (position.x + 4) * PHASES <= output_x;
        const int left = four ? 4 * PHASES : min(PHASES, output_x - (position.x * stride_x + tx));
        const bool exists = output_exists(table, &position, tz, ty, tx);
        long at = first + output_at(table, &position, tz, ty, tx);
        for (int m = 0; exists && m < channels; m++, at += channel_step)
            if (four) {
#pragma unroll
                for (int j = 0; j < PHASES; j++)
                    put_four(f, lanes[m] + i * PHASES + 4 * j, at + 4 * j, co + m);
            } else
                for (int t = 0; t < left; t++)
                    PUT_LANE(f, lanes[m][i * PHASES + t], at + t * x_step, co + m);
        i += four ? 4 : 1;
        advance(table, &position, four ? 4 : 1);
    }
}

/* Stores by store_whole or store_pieces. `first` is the first channel's first output. */
static void store(const struct epilogue *f, __global const long *table, const long first,
                  const struct positions *p, vec_t sum[MW][PHASES], const long co,
                  const int channels, const int tz, const int ty, const int tx)
{
    const bool rows = MERGED > 0 && table[FOLDED_OUTPUT_X_STEP] == 1;
    const bool regular = MERGED == 0 || rows;
    const int end = (p->x + VW - 1) * (int)table[FOLDED_STRIDE_X] + tx + PHASES;
    if (p->whole && p->count == VW && end <= table[FOLDED_OUTPUT_X] && regular) {
        if (output_exists(table, p, tz, ty, tx))
            store_whole(f, table, first + output_at(table, p, tz, ty, tx), sum, co, channels);
    } else {
        vec_t copy[MW][PHASES]; /* a copy for this call: the sums stay in registers */
#pragma unroll
        for (int j = 0; j < MW * PHASES; j++)
            copy[j / PHASES][j % PHASES] = sum[j / PHASES][j % PHASES];
        store_pieces(*f, table, first, p, copy, co, channels, rows, tz, ty, tx);
    }
}

/* Computes one block of channels of one tile, for the phases (tz, ty) and all phases tx, or with
 * MERGED = 0 one phase tx. */
static void compute(__global const data_t *data, __global const packed_t *weights, const uint flags,
                    const struct epilogue *f, __global const long *table,
                    __local const acc_t *packed, __local acc_t *partial, const struct tile *tile,
                    const long co, const int channels, const int tz, const int ty, const int tx,
                    const int first_channel, const int chunk)
{
    const bool last = first_channel + chunk >= table[FOLDED_IN_CHANNELS];
    const long first = co * table[FOLDED_OUTPUT_CHANNEL_STEP];
    __global const long *kind = table + table[PACKED_PHASES_AT] +
                                ((tz * table[FOLDED_STRIDE_Y] + ty) * table[FOLDED_STRIDE_X] + tx) *
                                    KIND_LONGS;
    if (flags != 0 && tile->bordered) {
        for (int v = 0; v < NX && last; v++) {
            struct positions position = tile->vector[v];
            for (int i = 0; i < tile->vector[v].count; i++, advance(table, &position, 1))
                for (int t = 0; t < PHASES; t++)
                    for (int m = 0; m < channels; m++)
                        if (output_exists(table, &position, tz, ty, tx + t)) {
                            const acc_t sum = exact_output(
                                data + position.n * table[FOLDED_DATA_BATCH_STEP], weights, table,
                                position.z * table[FOLDED_STRIDE_Z] + tz,
                                position.y * table[FOLDED_STRIDE_Y] + ty,
                                position.x * table[FOLDED_STRIDE_X] + tx + t, m);
                            put_one(f, affine_one(f, sum, co + m),
                                    first + m * table[FOLDED_OUTPUT_CHANNEL_STEP] +
                                        output_at(table, &position, tz, ty, tx + t),
                                    co + m);
                        }
        }
        return;
    }
    vec_t sum[PHASES][MW][NX];
#pragma unroll
    for (int t = 0; t < PHASES; t++) {
#pragma unroll
        for (int m = 0; m < MW; m++)
#pragma unroll
            for (int v = 0; v < NX; v++)
#if CHUNKED
                sum[t][m][v] = first_channel == 0 ? (vec_t)(0)
                                                  : LOAD(partial + ((t * MW + m) * NX + v) * VW);
#else
                sum[t][m][v] = (vec_t)(0);
#endif
        add_taps(sum[t], packed, weights, table, kind + t * KIND_LONGS, tile->slots, first_channel,
                 chunk);
    }
#if CHUNKED
    if (!last) {
#pragma unroll
        for (int t = 0; t < PHASES; t++)
#pragma unroll
            for (int m = 0; m < MW; m++)
#pragma unroll
                for (int v = 0; v < NX; v++)
                    STORE(sum[t][m][v], partial + ((t * MW + m) * NX + v) * VW);
        return;
    }
#endif
#pragma unroll
    for (int v = 0; v < NX; v++) {
        vec_t result[MW][PHASES];
#pragma unroll
        for (int m = 0; m < MW; m++) {
            vec_t one[PHASES];
#pragma unroll
            for (int t = 0; t < PHASES; t++) one[t] = sum[t][m][v];
            interleave(one, result[m]);
        }
        store(f, table, first, &tile->vector[v], result, co, channels, tz, ty, tx);
    }
}

/* The whole work of work-item number `item`. */
static NOINLINE void packed_item(const int item, __global const data_t *restrict data,
                                 __global const packed_t *restrict filter,
                                 __global const uint *restrict flags, const struct epilogue *f,
                                 __global const long *restrict table,
                                 __local acc_t *restrict local_memory)
{
    const int blocks = (int)table[FOLDED_BLOCKS], all_tiles = (int)table[PACKED_ALL_TILES];
    const int item_tiles = (int)table[PACKED_ITEM_TILES];
    const int item_blocks = (int)table[PACKED_ITEM_BLOCKS];
    const int block_parts = (blocks + item_blocks - 1) / item_blocks;
    const int tile_parts = (all_tiles + item_tiles - 1) / item_tiles;

    /* The work-item's group, tiles and blocks. Neighbouring work-items share their tiles. */
    int rest = item;
    const int first_block = rest % block_parts * item_blocks;
    rest /= block_parts;
    const int first_tile = rest % tile_parts * item_tiles, g = rest / tile_parts;
    const int tiles = min(item_tiles, all_tiles - first_tile);
    const int last_block = min(first_block + item_blocks, blocks);

    const int in_channels = (int)table[FOLDED_IN_CHANNELS];
    const int out_channels = (int)table[FOLDED_OUT_CHANNELS];
    const int stride_z = (int)table[FOLDED_STRIDE_Z], stride_y = (int)table[FOLDED_STRIDE_Y];
    const int stride_x = (int)table[FOLDED_STRIDE_X], chunk = (int)table[PACKED_CHUNK];
    const long tile_elements = table[PACKED_SLOTS] * chunk * NX * ROW;
    const struct epilogue epilogue = *f; /* in registers */
    __global const data_t *own_data = data +
                                      (long)g * in_channels * table[FOLDED_DATA_CHANNEL_STEP];
    __local acc_t *partial = local_memory + item_tiles * tile_elements;
    struct tile tile[MOST_TILES];

    for (int ci = 0; ci < in_channels; ci += chunk) {
        const int channels = min(chunk, in_channels - ci);
        for (int t = 0; t < tiles; t++) {
            tile[t] = tile_at(table, first_tile + t);
            pack_tile(own_data + ci * table[FOLDED_DATA_CHANNEL_STEP], table,
                      local_memory + t * tile_elements, &tile[t], channels);
        }
        __local acc_t *sums = partial;
        for (int tz = 0; tz < stride_z; tz++)
            for (int ty = 0; ty < stride_y; ty++)
                for (int block = first_block; block < last_block; block++) {
                    if (tz >= table[FOLDED_OUTPUT_Z] || ty >= table[FOLDED_OUTPUT_Y]) continue;
                    const long all_blocks = (long)g * blocks + block;
                    const int own_channels = min(MW, out_channels - block * MW);
                    const long co = (long)g * out_channels + block * MW;
                    for (int t = 0; t < tiles; t++)
                        for (int tx = 0; tx < stride_x;
                             tx += PHASES, sums += PHASES * MW * NX * VW) {
                            compute(own_data, weights_of(filter, table, all_blocks),
                                    flags[all_blocks], &epilogue, table,
                                    local_memory + t * tile_elements, sums, &tile[t], co,
                                    own_channels, tz, ty, tx, ci, channels);
                        }
                }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
tconv_packed(__global const data_t *restrict data, const ulong data_offset,
             __global const packed_t *restrict filter, const ulong filter_offset,
             __global uint *restrict flags, const ulong flags_offset, EPILOGUE_PARAMETERS,
             __global const long *restrict table, __local acc_t *restrict local_memory,
             SHARE_PARAMETER)
{
    PACK_WITHOUT_FILTER
    EPILOGUE(epilogue, table)
    EACH_SHARED(i)
    packed_item(SHARED_GROUP(i), data + data_offset, filter + filter_offset, flags + flags_offset,
                &epilogue, table, local_memory);
}
