/* SPDX-License-Identifier: Apache-2.0 */
/* The packed algorithm: parameters, cost and kernel plan of cl/cpu/packed.cl. */
#include "algorithm/registry.h"

#include "algorithm/any/folded.h"
#include "algorithm/cost/cpu.h"
#include "algorithm/cpu/division.h"
#include "base/checked.h"
#include "cpu/packed_table.h"

#include <stdlib.h>

enum {
    MERGED_STRIDE = 4,
    MOST_ROWS = 64,   /* slots that are rows */
    MOST_SLOTS = 512, /* slots at all */
    MOST_PHASES = 1 << 16,
    MOST_SPREAD = 32, /* phases along an axis with one input */
    MOST_TAPS = 1 << 16,
    LONG_ROW = 1 << 10, /* bytes of an output row that is better stored with non-temporal stores */
};

/* The distances from a position to its inputs along one axis, in falling order: distance number i
 * is the first distance minus i. */
struct distances {
    int64_t low, high;
};

/* The parameters of a kernel, and the numbers that follow from them. */
struct packed {
    struct tconv_folded folded;
    int vw, nx, mw, merged;
    int flat;
    bool chunked;
    int64_t positions_z, positions_y, positions_x;
    double row_pairs; /* pairs of outputs and taps along z and y; counted once for all choices */
    struct distances z, y, x;
    int64_t slots, row, chunk;
    int64_t taps, phases;
    int64_t blocks, row_vectors, vectors, tiles; /* of one group */
    int64_t item_tiles, item_blocks, items;
    uint64_t local_bytes;
};

static struct distances distances_of(const struct tconv_axis *axis)
{
    return (struct distances){tconv_folded_distance(axis, axis->kernel - 1),
                              tconv_folded_distance(axis, 0)};
}

static int64_t count_of(const struct distances *d)
{
    return d->high - d->low + 1;
}

/* Chooses MW. Data are assumed to come from a cache. If taps do not overlap, an output takes so
 * little work that storing many channels at once slows down the rest. */
static int choose_channels(const struct packed *g)
{
    const struct tconv_machine *m = g->folded.machine;
    const double work = (double)(g->folded.loops.in_channels * g->taps) /
                        (double)g->phases; /* of an output */
    return tconv_product_channels(&g->folded, m->packed_block,
                                  g->taps <= g->phases ? m->packed_hold : 0, work > 64 ? work : 64);
}

/* Derives numbers from vw, nx and flat. */
static void derive(struct packed *g)
{
    const struct tconv_folded *r = &g->folded;
    const int64_t lines = r->loops.batch * g->positions_z * g->positions_y;
    g->blocks = tconv_ceil_div(r->loops.out_channels, g->mw);
    g->row_vectors = tconv_ceil_div(g->positions_x, g->vw);
    g->vectors = g->flat ? tconv_ceil_div(lines * g->positions_x, g->vw) : lines * g->row_vectors;
    g->tiles = tconv_ceil_div(g->vectors, g->nx);
    g->slots = count_of(&g->z) * count_of(&g->y) * (g->flat ? count_of(&g->x) : 1);
    g->row = g->vw + (g->flat ? 0 : g->x.high - g->x.low);
}

/* Bytes of local memory for `chunk` channels: packed inputs, and the sums if they have to wait for
 * the next chunk. */
static double local_bytes(const struct packed *g, int64_t chunk, int64_t tiles, int64_t blocks)
{
    const double sums = chunk < g->folded.loops.in_channels
                            ? (double)blocks * (double)g->phases * g->mw * g->vw * g->nx
                            : 0;
    return (double)g->folded.acc_bytes * (double)tiles *
           ((double)g->slots * (double)chunk * (double)(g->nx * g->row) + sums);
}

/* True if the inputs of all positions follow each other in memory in the order of the positions. */
static bool contiguous(const struct packed *g)
{
    const struct tconv_axis *z = &g->folded.z, *y = &g->folded.y, *x = &g->folded.x;
    return g->slots == 1 && (g->flat == 1 || g->folded.loops.batch == 1) && g->z.low == 0 &&
           g->y.low == 0 && g->x.low == 0 && g->positions_z == z->input &&
           g->positions_y == y->input && g->positions_x == x->input && x->data_step == 1 &&
           (y->input == 1 || y->data_step == x->input) &&
           (z->input == 1 || z->data_step == x->input * y->input);
}

/* The share of a row's vectors for which `lanes` of them are handled one by one. */
static double apart(const struct packed *g)
{
    if (!g->flat || g->positions_x % g->vw == 0) return 0;
    return g->positions_x > g->vw ? (double)(g->vw - 1) / (double)g->positions_x : 1;
}

/* The cost of storing an output, in multiply-adds at full speed: as part of a vector, of four,
 * alone. */
static double store_cost(const struct packed *g)
{
    const struct tconv_machine *m = g->folded.machine;
    if (g->merged == 0) return m->packed_store_phase;
    if (g->folded.x.output_step != 1) return m->packed_store_apart;
    const double whole = g->merged == 3 ? m->packed_store_thirds : m->packed_store,
                 pieces = whole +
                          (g->positions_x % 4 == 0 ? m->packed_store_fours : m->packed_store_ones);
    if (g->flat) return whole + (pieces - whole) * apart(g);
    const double full = (double)(g->positions_x / g->vw * g->vw) / (double)g->positions_x;
    return whole * full + pieces * (1 - full);
}

/* The cost of copying an input, likewise. At a row's ends inputs are copied one by one. */
static double copy_cost(const struct packed *g)
{
    const struct tconv_machine *m = g->folded.machine;
    if (contiguous(g)) return m->packed_copy;
    if (g->folded.x.data_step != 1) return m->packed_copy_apart;
    const double vectors = (double)g->positions_x / g->vw;
    const bool borders = g->x.low < 0 || g->positions_x + g->x.high > g->folded.x.input;
    const double ends = !borders ? 0 : vectors > 2 ? 2 / vectors : 1;
    return m->packed_copy + m->packed_copy_border * (ends > apart(g) ? ends : apart(g));
}

/* The cost of a division of the work, in useful multiply-adds at full speed. */
static double cost_of(const struct packed *g)
{
    const struct tconv_machine *m = g->folded.machine;
    const struct tconv_folded *r = &g->folded;
    const double groups = (double)r->loops.groups;
    const double positions = groups * (double)(g->tiles * g->nx * g->vw);
    const double lanes = g->vw < m->lanes ? m->lanes / g->vw : 1;
    const double channels = (double)(g->blocks * g->mw), in = (double)r->loops.in_channels;
    /* Tiles in one row skip taps whose inputs lie outside along z and y. */
    const double full_rows = (double)(g->positions_z * g->positions_y) *
                             (double)(r->z.kernel * r->y.kernel);
    const double row = (double)g->positions_x * (g->flat == 2 ? (double)r->loops.batch : 1);
    const double exact =
        g->flat == 1 || (g->flat == 2 && row < g->nx * g->vw) ? 1 : g->row_pairs / full_rows;
    const double adds = positions * channels * in * (double)g->taps * exact *
                        tconv_folded_inefficiency(&g->folded, g->nx, g->mw) * lanes *
                        (g->mw == 1 ? m->packed_single : m->packed_several);
    const double outputs = groups * (double)r->loops.batch * (double)r->loops.out_channels *
                           (double)(r->z.output * r->y.output * r->x.output);
    const double copies = positions * in * (double)g->slots * (double)g->row / g->vw *
                          copy_cost(g) * (double)tconv_ceil_div(g->blocks, g->item_blocks);
    /* Weights are read again for each group of tiles, from the cache that holds them. Only the part
     * that additions do not hide counts. */
    const double weights = 4 * groups * channels * in * (double)g->taps;
    const double streamed = weights * (double)tconv_ceil_div(g->tiles, g->item_tiles);
    const double loads =
        weights < m->l2 ? 0 : streamed * (weights < m->l3 ? m->wait_l3 : m->wait_memory);
    const double hidden = m->hidden * adds, waits = loads > hidden ? loads - hidden : 0;
    /* The begin and end of each tap's loop. */
    const double chunks = (double)tconv_ceil_div(r->loops.in_channels, g->chunk);
    const double loops = groups * (double)(g->tiles * g->blocks) * (double)g->taps * chunks *
                         m->packed_tap;
    const double cost = adds + outputs * store_cost(g) + copies + waits + loops +
                        m->packed_item * (double)g->items;
    return tconv_cpu_launch_cost(&g->folded, cost * (chunks > 1 ? m->packed_chunks : 1),
                                 (double)(g->item_tiles * g->item_blocks) /
                                     (groups * (double)(g->tiles * g->blocks)));
}

/* Loop iterations of a work-item: packing inputs, adding, storing one by one, all with care. */
static double iterations(const struct packed *g)
{
    const double in = (double)g->folded.loops.in_channels, lanes = (double)(g->nx * g->vw);
    const double exact_loops = g->mw * (1 + tconv_folded_exact_loops(&g->folded));
    return (double)g->item_tiles *
           ((double)g->slots * in * (double)(g->nx * g->row) +
            (double)g->item_blocks *
                ((double)g->taps * (in + 4) + (double)g->phases * lanes * (exact_loops + 2)));
}

/* Derives numbers from item_tiles, item_blocks and chunk. */
static void derive_division(struct packed *g)
{
    g->chunked = g->chunk < g->folded.loops.in_channels;
    g->items = g->folded.loops.groups * tconv_ceil_div(g->tiles, g->item_tiles) *
               tconv_ceil_div(g->blocks, g->item_blocks);
    g->local_bytes = (uint64_t)local_bytes(g, g->chunk, g->item_tiles, g->item_blocks);
}

static void add_candidate(struct packed *g, const tconv_device_info *device,
                          struct tconv_candidates *candidates)
{
    derive_division(g);
    if (g->items > INT32_MAX || tconv_folded_too_long(iterations(g), device)) return;
    const struct tconv_tile tile = {.flat = g->flat,
                                    .vw = g->vw,
                                    .nx = g->nx,
                                    .mw = g->mw,
                                    .tiles = (int)g->item_tiles,
                                    .blocks = (int)g->item_blocks,
                                    .chunk = (int)g->chunk};
    tconv_candidates_add(candidates, &tile, cost_of(g));
}

/* Divides tiles and blocks among work-items in all ways that fit into local memory. */
static void divide(struct packed *g, const tconv_device_info *device,
                   struct tconv_candidates *candidates)
{
    const double budget = tconv_local_budget(&g->folded, g->folded.machine->packed_budget, device);
    int64_t item_blocks[TCONV_BLOCK_DIVISIONS];
    const int block_count = tconv_divide_blocks(g->blocks, item_blocks);
    for (int64_t t = 1; t <= MOST_TILES && t <= g->tiles; t++)
        for (int b = 0; b < block_count; b++) {
            g->item_tiles = t;
            g->item_blocks = item_blocks[b];
            /* All input channels at once if they fit; else a half, a quarter and so on, because
             * chunks that just fit are slower. */
            g->chunk = g->folded.loops.in_channels;
            while (g->chunk > 8 && local_bytes(g, g->chunk, g->item_tiles, g->item_blocks) > budget)
                g->chunk = tconv_folded_chunk(g->chunk, 2);
            if (local_bytes(g, g->chunk, g->item_tiles, g->item_blocks) <= budget)
                add_candidate(g, device, candidates);
        }
}

/* The largest distance between two inputs of one channel, in elements. */
static double farthest(const struct tconv_folded *r)
{
    return (double)(r->loops.batch - 1) * (double)r->loops.data_batch_step +
           (double)(r->z.input - 1) * (double)r->z.data_step +
           (double)(r->y.input - 1) * (double)r->y.data_step +
           (double)(r->x.input - 1) * (double)r->x.data_step;
}

/* Along an axis with a single input each output takes at most one tap, for any stride. The stride
 * is set to span the outputs: each tap then has a phase of its own, and no work is wasted. */
static void spread(struct tconv_axis *axis)
{
    const int64_t span = tconv_max(axis->output, (axis->kernel - 1) * axis->dilation + 1);
    if (axis->input == 1 && span > axis->stride && span <= MOST_SPREAD) axis->stride = span;
}

/* Sets what all candidates have in common. */
static bool prepare(const struct tconv_request *request, struct packed *g,
                    struct tconv_reason *reason)
{
    const struct tconv_loops *loops = request->loops;
    *g = (struct packed){.phases = 1, .taps = 1};
    if (!tconv_fold(request, &g->folded, reason)) return false;
    const struct tconv_axis *const axes[] = {&g->folded.z, &g->folded.y, &g->folded.x};
    for (int a = 0; a < 3; a++) {
        g->taps *= axes[a]->kernel;
        if (g->taps > MOST_TAPS) return tconv_refuse(reason, "more than %d taps", MOST_TAPS);
        g->phases *= axes[a]->stride;
        if (g->phases > MOST_PHASES)
            return tconv_refuse(reason, "more than %d phases", MOST_PHASES);
    }
    g->mw = choose_channels(g); /* before: it must not depend on extents */
    if (!tconv_folded_filter_fits(&g->folded, g->mw, tconv_ceil_div(loops->out_channels, g->mw),
                                  request, TCONV_PACK_SUMMED, reason))
        return false;
    spread(&g->folded.z);
    spread(&g->folded.y);
    spread(&g->folded.x);
    g->phases = g->folded.z.stride * g->folded.y.stride * g->folded.x.stride;
    if (g->phases > MOST_PHASES) return tconv_refuse(reason, "more than %d phases", MOST_PHASES);
    g->row_pairs = tconv_folded_pairs(&g->folded.z) * tconv_folded_pairs(&g->folded.y);
    g->z = distances_of(&g->folded.z);
    g->y = distances_of(&g->folded.y);
    g->x = distances_of(&g->folded.x);
    if (count_of(&g->z) > MOST_SLOTS || count_of(&g->y) > MOST_SLOTS ||
        count_of(&g->x) > MOST_SLOTS)
        return tconv_refuse(reason, "its inputs would lie at more than %d distances", MOST_SLOTS);
    g->positions_z = tconv_ceil_div(g->folded.z.output, g->folded.z.stride);
    g->positions_y = tconv_ceil_div(g->folded.y.output, g->folded.y.stride);
    g->positions_x = tconv_ceil_div(g->folded.x.output, g->folded.x.stride);
    const double positions = (double)g->folded.loops.batch * (double)g->positions_z *
                             (double)g->positions_y * (double)g->positions_x;
    if (positions > INT32_MAX / 2)
        return tconv_refuse(reason, "more positions than its 32-bit indices count");
    g->merged = g->folded.x.stride <= MERGED_STRIDE ? (int)g->folded.x.stride : 0;
    return true;
}

/* Tries rows and flat, and all vectors. */
static bool enumerate(const struct tconv_request *request, struct tconv_candidates *candidates,
                      struct tconv_reason *reason)
{
    const tconv_device_info *device = request->device;
    struct packed g;
    if (!prepare(request, &g, reason)) return false;
    const int widest = tconv_folded_widest(&g.folded), limit = tconv_folded_accumulators(&g.folded);
    const bool far = farthest(&g.folded) > INT32_MAX;
    for (g.flat = 0; g.flat <= (g.folded.loops.batch > 1 ? 2 : 1); g.flat++)
        for (g.vw = widest; g.vw >= 4 || g.vw == widest; g.vw /= 2)
            for (g.nx = 1; g.nx <= TCONV_PRODUCT_VECTORS && (g.nx == 1 || g.nx * g.mw <= limit);
                 g.nx++) {
                derive(&g);
                if (!(g.flat && (g.slots > MOST_SLOTS || far)) &&
                    !(g.flat != 1 && g.slots > MOST_ROWS))
                    divide(&g, device, candidates);
            }
    return candidates->count > 0 ||
           tconv_refuse(reason, "no part of the work is small enough for a work-item");
}

static void use_tile(struct packed *g, const struct tconv_tile *tile)
{
    g->flat = tile->flat;
    g->vw = tile->vw;
    g->nx = tile->nx;
    g->mw = tile->mw;
    derive(g);
    g->item_tiles = tile->tiles;
    g->item_blocks = tile->blocks;
    g->chunk = tile->chunk;
    derive_division(g);
}

/* A tap's index in the packed filter, and where its inputs lie in local memory. */
static void write_entry(const void *packed, const int64_t k[3], int64_t *entry)
{
    const struct packed *g = packed;
    const int64_t z = tconv_folded_distance(&g->folded.z, k[0]) - g->z.low,
                  y = tconv_folded_distance(&g->folded.y, k[1]) - g->y.low;
    const int64_t x = tconv_folded_distance(&g->folded.x, k[2]) - g->x.low;
    const int64_t slot = g->flat ? (z * count_of(&g->y) + y) * count_of(&g->x) + x
                                 : z * count_of(&g->y) + y;
    entry[ENTRY_TAP] = tconv_folded_tap_index(&g->folded, k);
    entry[ENTRY_SLOT] = slot;
    entry[ENTRY_OFFSET] = slot * g->chunk * g->nx * g->row + (g->flat ? 0 : x);
}

static void write_slots(const struct packed *g, int64_t *slot)
{
    for (int64_t z = g->z.low; z <= g->z.high; z++)
        for (int64_t y = g->y.low; y <= g->y.high; y++)
            for (int64_t x = g->x.low; x <= (g->flat ? g->x.high : g->x.low);
                 x++, slot += SLOT_LONGS) {
                slot[SLOT_Z] = z;
                slot[SLOT_Y] = y;
                slot[SLOT_X] = x;
            }
}

_Static_assert(PACKED_LONGS + MOST_SLOTS * SLOT_LONGS + MOST_PHASES * KIND_LONGS +
                       MOST_TAPS * ENTRY_LONGS <=
                   TCONV_TABLE_LIMIT,
               "the largest table");

static bool write_table(const struct packed *g, struct tconv_kernel_plan *kernel_plan)
{
    const size_t slots_at = PACKED_LONGS, phases_at = slots_at + (size_t)g->slots * SLOT_LONGS;
    const size_t list_at = phases_at + (size_t)g->phases * KIND_LONGS;
    if (!tconv_kernel_plan_table(kernel_plan, list_at + (size_t)g->taps * ENTRY_LONGS))
        return false;
    int64_t *t = kernel_plan->table;
    tconv_folded_write_numbers(&g->folded, g->blocks, g->row_vectors, t);
    t[PACKED_POSITIONS_Z] = g->positions_z;
    t[PACKED_POSITIONS_Y] = g->positions_y;
    t[PACKED_POSITIONS_X] = g->positions_x;
    t[PACKED_POSITIONS] = g->folded.loops.batch * g->positions_z * g->positions_y * g->positions_x;
    t[PACKED_VECTORS] = g->vectors;
    t[PACKED_ALL_TILES] = g->tiles;
    t[PACKED_ITEM_TILES] = g->item_tiles;
    t[PACKED_ITEM_BLOCKS] = g->item_blocks;
    t[PACKED_CHUNK] = g->chunk;
    t[PACKED_SLOTS] = g->slots;
    t[PACKED_SLOTS_AT] = (int64_t)slots_at;
    t[PACKED_PHASES_AT] = (int64_t)phases_at;
    t[PACKED_TAP_LIST_AT] = (int64_t)list_at;
    write_slots(g, t + slots_at);
    return tconv_folded_write_phases(&g->folded, write_entry, g, ENTRY_LONGS, t + phases_at,
                                     t + list_at);
}

/* All kernels of a kernel plan are built with the same options, so that they share a program. */
static void write_options(struct tconv_launch *launch, const struct packed *g)
{
    tconv_launch_option(launch, "VW", g->vw);
    tconv_launch_option(launch, "NX", g->nx);
    tconv_launch_option(launch, "MW", g->mw);
    tconv_launch_option(launch, "ROW", g->row);
    tconv_launch_option(launch, "ROUND",
                        tconv_folded_round(g->mw * g->nx, g->folded.loops.in_channels, g->chunk));
    tconv_launch_option(launch, "MERGED", g->merged);
    tconv_launch_option(launch, "FLAT", g->flat);
    tconv_launch_option(launch, "CHUNKED", g->chunked);
    tconv_launch_option(launch, "STREAM",
                        tconv_folded_non_temporal(&g->folded, g->folded.x.output, LONG_ROW));
}

static tconv_status write(const struct tconv_request *request,
                          const struct tconv_candidate *candidate,
                          struct tconv_kernel_plan *kernel_plan, tconv_error *error)
{
    struct packed g;
    struct tconv_reason reason;
    prepare(request, &g, &reason);
    use_tile(&g, &candidate->tile);
    if (!write_table(&g, kernel_plan)) return tconv_fail_table(error, kernel_plan);
    struct tconv_launch *run = tconv_kernel_plan_run(kernel_plan, "tconv_packed");
    write_options(run, &g);
    tconv_folded_run(run, g.items, g.local_bytes, request->device);
    tconv_folded_pack(kernel_plan, &g.folded, "taps", g.mw, g.blocks, run, request,
                      TCONV_PACK_SUMMED);
    return TCONV_OK;
}

const struct tconv_algorithm tconv_packed = {
    .name = "packed_vector",
    .summary = "inputs of a tile packed into local memory, then products in registers; wide "
               "vectors: for CPUs",
    .source = "cpu/packed.cl",
    .made_for = TCONV_FOR_VECTORS,
    .order = TCONV_ORDER_BY_PARAMETERS,
    .order_parameters = "mw chunk",
    .stages_locally = true,
    .parameters = {TCONV_TILE(flat), TCONV_TILE(vw), TCONV_TILE(nx), TCONV_TILE(mw),
                   TCONV_TILE(tiles), TCONV_TILE(blocks), TCONV_TILE(chunk)},
    .program_parameters = 4,
    .enumerate = enumerate,
    .write = write,
};
