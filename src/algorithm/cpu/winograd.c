/* SPDX-License-Identifier: Apache-2.0 */
/* The Winograd algorithm and the difference form: parameters, cost and kernel plans of
 * cl/cpu/winograd.cl. */
#include "algorithm/registry.h"

#include "algorithm/any/folded.h"
#include "algorithm/cost/cpu.h"
#include "algorithm/cpu/division.h"
#include "base/checked.h"
#include "cpu/winograd_table.h"

#include <stdio.h>

enum {
    MOST_TAPS = 3,         /* of a phase along one axis */
    MOST_POINTS = 6,       /* along one axis */
    MOST_PRODUCTS = 128,   /* points of a tile */
    MOST_STRIDE = 16,      /* along x */
    MOST_PHASES = 1 << 12, /* of all axes */
    MOST_RUN = 64,         /* outputs of a tile along x */
    MOST_TEAMS = 4,        /* of a work-item */
};

#define TOO_LARGE "no part of the work is small enough for a work-item"

/* The cut of one axis into tiles and points. */
struct cut {
    const struct tconv_axis *axis;
    int64_t positions, tiles;
    int64_t shift, pad_phase; /* floor(pad / stride), pad mod stride */
    int64_t lead;             /* outputs of the first tile in front of output 0 */
    int taps, m, points;
};

/* The parameters of a kernel, and the numbers that follow from them. */
struct winograd {
    struct tconv_folded folded;
    struct cut z, y, x;
    bool difference;
    int vw, nx, mw, begins;
    bool chunked;
    int points; /* of a tile */
    int64_t tiles, teams, blocks, chunk;
    int64_t item_teams, item_blocks, items;
    uint64_t local_bytes;
};

/* The factor by which `points` points along an axis enlarge rounding errors: the largest sum over p
 * of |A[i][p]| |G[p][k]| sum |B[p][j]|. docs/semantics.md has the bound. */
static double growth(int points)
{
    static const double factors[MOST_POINTS + 1] = {1, 1, 1, 3, 4, 9.8, 17};
    return factors[points];
}

static double error_factor(const struct winograd *g)
{
    return growth(g->z.points) * growth(g->y.points) * growth(g->x.points);
}

static void set_positions(struct cut *cut, int m)
{
    cut->m = m;
    cut->points = m + cut->taps - 1;
    cut->tiles = tconv_ceil_div(cut->positions, m);
}

static bool make_cut(struct cut *cut, const struct tconv_axis *axis, struct tconv_reason *reason)
{
    cut->axis = axis;
    if (axis->kernel > 1 && axis->dilation > 1)
        return tconv_refuse(reason, "an axis has dilation %d", (int)axis->dilation);
    const int64_t taps = tconv_ceil_div(axis->kernel, axis->stride);
    if (taps > MOST_TAPS)
        return tconv_refuse(reason, "more than %d taps of a phase along an axis", MOST_TAPS);
    cut->taps = (int)taps;
    cut->positions = tconv_ceil_div(axis->output, axis->stride);
    cut->shift = tconv_floor_div(axis->pad, axis->stride);
    cut->pad_phase = tconv_mod(axis->pad, axis->stride);
    set_positions(cut, 1);
    return true;
}

static int most_positions(const struct cut *cut)
{
    return cut->taps == 1 ? 1 : MOST_POINTS + 1 - cut->taps;
}

/* The number of phases along z and y. Each is computed by work-items of its own. */
static int64_t outer_phases(const struct winograd *g)
{
    return g->folded.z.stride * g->folded.y.stride;
}

static double team_lanes(const struct winograd *g)
{
    return (double)(g->nx * g->vw);
}

/* Bytes of local memory for `chunk` channels: transformed inputs, and sums at all points. */
static double local_bytes(const struct winograd *g, int64_t chunk)
{
    const double inputs = (double)g->begins * g->points * (double)(chunk + 1);
    const double sums = (double)g->points * (double)g->folded.x.stride * g->mw *
                        (double)g->item_blocks;
    return (double)g->folded.acc_bytes * (double)g->item_teams * team_lanes(g) * (inputs + sums);
}

/* The largest chunk of input channels that fits, all chunks being equal: each chunk loads the sums
 * again. Too large if not even one channel fits. */
static int64_t largest_chunk(const struct winograd *g, double budget)
{
    const int64_t channels = g->folded.loops.in_channels, fewest = tconv_min(channels, 8);
    if (local_bytes(g, channels) <= budget) return channels;
    if (local_bytes(g, fewest) > budget) return fewest;
    const double none = local_bytes(g, 0), each = local_bytes(g, 1) - none;
    const int64_t most = (int64_t)((budget - none) / each) / 8 * 8;
    return tconv_folded_chunk(channels, tconv_ceil_div(channels, most));
}

/* The cost of waiting for weights of so many bytes. */
static double wait_for_weights(const struct winograd *g, double bytes, double products, double adds)
{
    const struct tconv_machine *m = g->folded.machine;
    const double first_teams = (double)tconv_ceil_div(g->teams, g->item_teams);
    if (!g->difference) /* the first team waits for the next product's in main memory */
        return bytes < m->winograd_far * m->l3
                   ? 0
                   : (double)g->folded.loops.groups * products * first_teams * m->winograd_wait;
    const double loads =
        bytes < m->l2 ? 0 : bytes * first_teams * (bytes < m->l3 ? m->wait_l3 : m->wait_memory);
    return tconv_larger(loads - m->hidden * adds, 0); /* as in the packed algorithm */
}

/* The cost of a division of the work, in useful multiply-adds at full speed. A vector's instruction
 * costs half of its lanes, or all if nothing else keeps the processor busy. */
static double cost_of(const struct winograd *g)
{
    const struct tconv_machine *m = g->folded.machine;
    const struct tconv_loops *loops = &g->folded.loops;
    const double groups = (double)loops->groups;
    const double in = (double)loops->in_channels, phases_x = (double)g->folded.x.stride;
    const double phases = phases_x * (double)outer_phases(g);
    const double channels = (double)(g->blocks * g->mw);
    const double lanes = g->vw < m->lanes ? m->lanes / g->vw : 1;
    const double teams = groups * (double)g->teams, positions = teams * team_lanes(g) * lanes;
    const double adds = positions * g->points * phases * channels * in *
                        tconv_folded_inefficiency(&g->folded, g->nx, g->mw);
    /* Gathering rows, then transforming every axis. */
    const double rows = g->z.points * g->y.points;
    const double runs = g->x.tiles < g->vw ? (double)g->vw / (double)g->x.tiles : 1;
    const double window = g->x.points + g->begins - 1;
    const double prepare = rows * (m->winograd_gather + m->winograd_gather_run * (runs + window)) +
                           (g->difference ? m->difference_transform : m->winograd_transform) *
                               g->points * g->begins *
                               ((g->z.m > 1) + (g->y.m > 1) + (g->x.m > 1) + 1);
    const double prepares = positions * in * (double)outer_phases(g) * prepare *
                            (double)tconv_ceil_div(g->blocks, g->item_blocks);
    /* Transforming sums and storing outputs. */
    const double outputs = (double)(g->z.m * g->y.m * g->x.m) * phases_x;
    /* Rows of a power of two are stored from registers. */
    const int64_t run = g->x.m * g->folded.x.stride;
    const double store = (run & (run - 1)) == 0 ? m->winograd_store + m->winograd_store_run * runs
                                                : m->winograd_store_apart;
    const double finish = m->winograd_sum * g->points * phases_x + outputs * store;
    const double finishes = positions * (double)outer_phases(g) * channels * finish *
                            (g->folded.x.output_step == 1 ? 1 : m->winograd_strided);
    /* The begin and end of each product's loop. With chunks, sums are loaded again from local
     * memory. */
    const double chunks = (double)tconv_ceil_div(loops->in_channels, g->chunk);
    const double products = (double)g->blocks * g->points * phases * chunks;
    const double weights = 4 * groups * channels * in * g->points * phases;
    const double restart = m->winograd_begin +
                           (chunks > 1 ? m->winograd_keep_again : m->winograd_keep) * g->mw *
                               team_lanes(g);
    const double cost = adds + prepares + finishes + products * teams * restart +
                        wait_for_weights(g, weights, products, adds) +
                        m->winograd_item * (double)g->items;
    return tconv_cpu_launch_cost(
        &g->folded, cost,
        (double)(g->item_teams * g->item_blocks) /
            (groups * (double)outer_phases(g) * (double)(g->teams * g->blocks)));
}

/* Loop iterations of a work-item: gathering and transforming inputs, adding, storing. */
static double iterations(const struct winograd *g)
{
    const double in = (double)g->folded.loops.in_channels, lanes = team_lanes(g);
    const double rows = g->z.points * g->y.points;
    const double outputs = (double)(g->z.m * g->y.m * g->x.m) * (double)g->folded.x.stride;
    /* Any output may be computed again, each weight from up to 8 others. */
    const double again = g->difference ? g->z.taps * g->y.taps * g->x.taps * (2 + in * 10) : 0;
    return (double)g->item_teams *
           (in * lanes * rows * (double)(g->x.points + 2) +
            (double)g->item_blocks * (g->points * (double)g->folded.x.stride * (in + 4) +
                                      lanes * g->mw * outputs * (1 + again)));
}

/* Derives numbers from the tile's positions and the vectors. */
static void derive(struct winograd *g, const int m[3])
{
    set_positions(&g->z, m[0]);
    set_positions(&g->y, m[1]);
    set_positions(&g->x, m[2]);
    g->points = g->z.points * g->y.points * g->x.points;
    g->tiles = g->folded.loops.batch * g->z.tiles * g->y.tiles * g->x.tiles;
    g->teams = tconv_ceil_div(g->tiles, g->vw * g->nx);
}

/* Derives numbers from item_teams, item_blocks and chunk. Returns the number of work-items, as a
 * double because it can exceed 64 bits. */
static double derive_division(struct winograd *g)
{
    const double items = (double)g->folded.loops.groups * (double)outer_phases(g) *
                         (double)tconv_ceil_div(g->teams, g->item_teams) *
                         (double)tconv_ceil_div(g->blocks, g->item_blocks);
    g->chunked = g->chunk < g->folded.loops.in_channels;
    g->items = items > INT32_MAX ? INT32_MAX : (int64_t)items;
    g->local_bytes = (uint64_t)local_bytes(g, g->chunk);
    return items;
}

/* Divides teams and blocks among work-items in all ways that fit into local memory. */
static void divide(struct winograd *g, const tconv_device_info *device,
                   struct tconv_candidates *candidates)
{
    const double budget =
        tconv_local_budget(&g->folded, g->folded.machine->winograd_budget, device);
    int64_t item_blocks[TCONV_BLOCK_DIVISIONS];
    const int block_count = tconv_divide_blocks(g->blocks, item_blocks);
    for (int64_t t = 1; t <= MOST_TEAMS && t <= g->teams; t++)
        for (int b = 0; b < block_count; b++) {
            g->item_teams = t;
            g->item_blocks = item_blocks[b];
            g->chunk = largest_chunk(g, budget);
            if (derive_division(g) > INT32_MAX || (double)g->local_bytes > budget ||
                tconv_folded_too_long(iterations(g), device))
                continue;
            const struct tconv_tile tile = {.mz = g->difference ? 0 : g->z.m,
                                            .my = g->difference ? 0 : g->y.m,
                                            .mx = g->difference ? 0 : g->x.m,
                                            .vw = g->vw,
                                            .nx = g->nx,
                                            .mw = g->mw,
                                            .teams = (int)g->item_teams,
                                            .blocks = (int)g->item_blocks,
                                            .chunk = (int)g->chunk};
            tconv_candidates_add(candidates, &tile, cost_of(g));
        }
}

/* Adds candidates with all vectors for one number of positions along each axis. */
static void add_vectors(struct winograd *g, const int m[3], const tconv_device_info *device,
                        struct tconv_candidates *candidates)
{
    const int widest = tconv_folded_widest(&g->folded),
              limit = tconv_folded_accumulators(&g->folded);
    for (g->vw = widest; g->vw == widest || (g->vw >= 4 && 2 * g->vw == widest); g->vw /= 2)
        for (g->nx = 1; g->nx <= TCONV_PRODUCT_VECTORS && (g->nx == 1 || g->nx * g->mw <= limit);
             g->nx++) {
            derive(g, m);
            if (m[0] * m[1] * m[2] > 1 && g->points <= MOST_PRODUCTS) divide(g, device, candidates);
        }
}

/* Folds the layer, if its type is taken. */
static bool fold(const struct tconv_request *request, struct winograd *g,
                 struct tconv_reason *reason)
{
    if (request->loops->data_type != TCONV_F32)
        return tconv_refuse(reason, "element type %s; it takes f32",
                            tconv_type_name(request->loops->data_type));
    return tconv_fold(request, &g->folded, reason);
}

/* Chooses the blocks, if positions and weights are not too many. */
static bool make_blocks(struct winograd *g, int most_points, struct tconv_reason *reason)
{
    const struct tconv_loops *loops = &g->folded.loops;
    const double positions = (double)loops->batch * (double)g->z.positions *
                             (double)g->y.positions * (double)g->x.positions;
    if (positions > INT32_MAX / 2)
        return tconv_refuse(reason, "more positions than its 32-bit indices count");
    g->mw = tconv_product_channels(&g->folded, g->folded.machine->winograd_block, 0, 1);
    g->blocks = tconv_ceil_div(loops->out_channels, g->mw);
    const double products = (double)loops->groups * (double)outer_phases(g) * most_points *
                            (double)g->folded.x.stride;
    return tconv_filter_addressable(
        products * (double)g->blocks * g->mw * (double)loops->in_channels, sizeof(float), reason);
}

/* Sets what all candidates of the Winograd algorithm have in common. */
static bool prepare_winograd(const struct tconv_request *request, struct winograd *g,
                             struct tconv_reason *reason)
{
    *g = (struct winograd){.begins = 1};
    if (request->math != TCONV_MATH_FAST) return tconv_refuse(reason, "it needs math=fast");
    if (!fold(request, g, reason) || !make_cut(&g->z, &g->folded.z, reason) ||
        !make_cut(&g->y, &g->folded.y, reason) || !make_cut(&g->x, &g->folded.x, reason))
        return false;
    if (g->z.taps == 1 && g->y.taps == 1 && g->x.taps == 1)
        return tconv_refuse(reason, "no output takes two taps along an axis");
    if (g->folded.x.stride > MOST_STRIDE)
        return tconv_refuse(reason, "its stride along the last axis exceeds %d", MOST_STRIDE);
    if (outer_phases(g) * g->folded.x.stride > MOST_PHASES)
        return tconv_refuse(reason, "more than %d phases", MOST_PHASES);
    g->begins = g->x.pad_phase > 0 ? 2 : 1;
    return make_blocks(g, MOST_PRODUCTS, reason);
}

/* Cuts an axis of the difference form: two outputs of each tile, of one phase, from the taps of the
 * given filter. */
static bool make_difference(struct cut *cut, struct tconv_axis *axis,
                            const struct tconv_loops *loops, struct tconv_reason *reason)
{
    const struct tconv_equivalent *e = &loops->equivalent;
    *cut = (struct cut){.axis = axis, .positions = axis->output, .shift = axis->pad, .taps = 1};
    if (axis->kernel > 1) {
        const int a = tconv_folded_number(loops, axis);
        if (!tconv_folded_is_doubled(loops, axis))
            return tconv_refuse(
                reason, "an axis has another factor than 2, or other taps than 3 side by side");
        /* The second enlarged input of tile 0 is number pad - 1 - lead, which is even. */
        cut->lead = tconv_mod(axis->pad - 1, 2);
        cut->shift = tconv_floor_div(axis->pad - 1, 2);
        cut->positions += cut->lead;
        cut->taps = 2;
        axis->kernel = e->kernel[a];
        axis->stride = 1;
        axis->filter_step = e->step[a];
    }
    set_positions(cut, cut->taps);
    return true;
}

/* Sets what all candidates of the difference form have in common. */
static bool prepare_difference(const struct tconv_request *request, struct winograd *g,
                               struct tconv_reason *reason)
{
    const struct tconv_loops *given = request->loops;
    *g = (struct winograd){.difference = true, .begins = 1};
    if (!tconv_has_sums(&given->equivalent))
        return tconv_refuse(reason, "it takes nearest upsampling and a convolution only");
    struct tconv_folded *folded = &g->folded;
    if (!fold(request, g, reason) || !make_difference(&g->z, &folded->z, given, reason) ||
        !make_difference(&g->y, &folded->y, given, reason) ||
        !make_difference(&g->x, &folded->x, given, reason))
        return false;
    if (g->z.taps == 1 && g->y.taps == 1 && g->x.taps == 1)
        return tconv_refuse(reason, "no output takes two taps along an axis");
    folded->loops.filter_group_step = given->equivalent.group_step;
    folded->loops.filter_in_step = given->equivalent.in_step;
    folded->loops.filter_out_step = given->equivalent.out_step;
    g->points = g->z.points * g->y.points * g->x.points;
    if (!make_blocks(g, g->points + 1, reason)) return false;
    /* A work-item finds a block's flag, or packs weights of an input channel. */
    const double block = (double)folded->loops.in_channels * g->mw * g->points * 4;
    if (tconv_folded_too_long(block, request->device))
        return tconv_refuse(reason, "a work-item would look at too many weights");
    return true;
}

/* Tries all positions of a tile and all vectors. */
static bool enumerate_winograd(const struct tconv_request *request,
                               struct tconv_candidates *candidates, struct tconv_reason *reason)
{
    struct winograd g;
    if (!prepare_winograd(request, &g, reason)) return false;
    int m[3];
    for (m[0] = 1; m[0] <= most_positions(&g.z); m[0]++)
        for (m[1] = 1; m[1] <= most_positions(&g.y); m[1]++)
            for (m[2] = 1; m[2] <= most_positions(&g.x) && m[2] * g.folded.x.stride <= MOST_RUN;
                 m[2]++)
                add_vectors(&g, m, request->device, candidates);
    return candidates->count > 0 || tconv_refuse(reason, TOO_LARGE);
}

/* Tries all vectors. */
static bool enumerate_difference(const struct tconv_request *request,
                                 struct tconv_candidates *candidates, struct tconv_reason *reason)
{
    struct winograd g;
    if (!prepare_difference(request, &g, reason)) return false;
    if (tconv_folded_ends_loops(request->device))
        return tconv_refuse(reason, "the device ends long loops, as those that compute outputs "
                                    "again which are not finite");
    const int m[] = {g.z.taps, g.y.taps, g.x.taps};
    add_vectors(&g, m, request->device, candidates);
    return candidates->count > 0 || tconv_refuse(reason, TOO_LARGE);
}

static void use_tile(struct winograd *g, const struct tconv_tile *tile)
{
    const int m[] = {g->difference ? g->z.taps : tile->mz, g->difference ? g->y.taps : tile->my,
                     g->difference ? g->x.taps : tile->mx};
    g->vw = tile->vw;
    g->nx = tile->nx;
    g->mw = tile->mw;
    derive(g, m);
    g->item_teams = tile->teams;
    g->item_blocks = tile->blocks;
    g->chunk = tile->chunk;
    derive_division(g);
}

static bool write_table(const struct winograd *g, struct tconv_kernel_plan *kernel_plan)
{
    if (!tconv_kernel_plan_table(kernel_plan, WINOGRAD_LONGS)) return false;
    int64_t *t = kernel_plan->table;
    tconv_folded_write_numbers(&g->folded, g->blocks, g->x.tiles, t);
    t[WINOGRAD_TILES_Z] = g->z.tiles;
    t[WINOGRAD_TILES_Y] = g->y.tiles;
    t[WINOGRAD_TILES_X] = g->x.tiles;
    t[WINOGRAD_TILES] = g->tiles;
    t[WINOGRAD_TEAMS] = g->teams;
    t[WINOGRAD_ITEM_TEAMS] = g->item_teams;
    t[WINOGRAD_ITEM_BLOCKS] = g->item_blocks;
    t[WINOGRAD_CHUNK] = g->chunk;
    /* One more, so that slabs are not a power of two apart. */
    t[WINOGRAD_SLAB] = (g->chunk + 1) * g->nx * g->vw;
    t[WINOGRAD_SHIFT_Z] = g->z.shift;
    t[WINOGRAD_SHIFT_Y] = g->y.shift;
    t[WINOGRAD_SHIFT_X] = g->x.shift;
    t[WINOGRAD_PAD_PHASE_Z] = g->z.pad_phase;
    t[WINOGRAD_PAD_PHASE_Y] = g->y.pad_phase;
    t[WINOGRAD_PAD_PHASE_X] = g->x.pad_phase;
    t[WINOGRAD_LEAD_Z] = g->z.lead;
    t[WINOGRAD_LEAD_Y] = g->y.lead;
    t[WINOGRAD_LEAD_X] = g->x.lead;
    return true;
}

/* All kernels of a kernel plan are built with the same options, so that they share a program. */
static void write_options(struct tconv_launch *launch, const struct winograd *g)
{
    tconv_launch_option(launch, "VW", g->vw);
    tconv_launch_option(launch, "NX", g->nx);
    tconv_launch_option(launch, "MW", g->mw);
    tconv_launch_option(launch, "ROUND",
                        tconv_folded_round(g->mw * g->nx, g->folded.loops.in_channels, g->chunk));
    tconv_launch_option(launch, "MZ", g->z.m);
    tconv_launch_option(launch, "MY", g->y.m);
    tconv_launch_option(launch, "MX", g->x.m);
    tconv_launch_option(launch, "TZ", g->z.taps);
    tconv_launch_option(launch, "TY", g->y.taps);
    tconv_launch_option(launch, "TX", g->x.taps);
    tconv_launch_option(launch, "RX", g->folded.x.stride);
    tconv_launch_option(launch, "AX", g->begins);
    tconv_launch_option(launch, "CHUNKED", g->chunked);
    tconv_launch_option(launch, "DIFFERENCE", g->difference);
}

static void write_pack(const struct winograd *g, struct tconv_kernel_plan *kernel_plan,
                       const tconv_device_info *device)
{
    const struct tconv_loops *loops = &g->folded.loops;
    const int64_t products = loops->groups * outer_phases(g) * g->points * g->folded.x.stride;
    char name[100];
    if (g->difference)
        snprintf(name, sizeof name, "difference%d", g->mw);
    else
        snprintf(name, sizeof name, "winograd%d m%dx%dx%d s%dx%dx%d", g->mw, g->z.m, g->y.m, g->x.m,
                 (int)g->folded.z.stride, (int)g->folded.y.stride, (int)g->folded.x.stride);
    tconv_folded_layout(kernel_plan, name, &g->folded);
    const int64_t all_blocks = loops->groups * g->blocks,
                  header = g->difference ? TAPS_HEADER(all_blocks, sizeof(float)) : 0;
    kernel_plan->filter_bytes =
        (uint64_t)(header + products * g->blocks * loops->in_channels * g->mw) * sizeof(float);
    if (g->difference) {
        struct tconv_launch *flags = tconv_kernel_plan_pack(kernel_plan, "tconv_difference_flags");
        write_options(flags, g);
        tconv_launch_items(flags, 0, all_blocks, 1, device);
        TCONV_LAUNCH_ARGS(flags, TCONV_ARG_WEIGHTS, TCONV_ARG_FILTER, TCONV_ARG_TABLE,
                          TCONV_ARG_SHARE);
    }
    struct tconv_launch *pack = tconv_kernel_plan_pack(kernel_plan, "tconv_winograd_pack");
    write_options(pack, g);
    tconv_launch_items(pack, 0, loops->in_channels, 32, device);
    tconv_launch_items(pack, 1, g->blocks, 1, device);
    tconv_launch_items(pack, 2, products, 1, device);
    TCONV_LAUNCH_ARGS(pack, TCONV_ARG_WEIGHTS, TCONV_ARG_FILTER, TCONV_ARG_TABLE, TCONV_ARG_SHARE);
}

static tconv_status write(const struct tconv_request *request,
                          const struct tconv_candidate *candidate,
                          struct tconv_kernel_plan *kernel_plan, tconv_error *error)
{
    struct winograd g;
    struct tconv_reason reason;
    if (candidate->algorithm == &tconv_difference)
        prepare_difference(request, &g, &reason);
    else
        prepare_winograd(request, &g, &reason);
    use_tile(&g, &candidate->tile);
    if (!write_table(&g, kernel_plan)) return tconv_fail_table(error, kernel_plan);
    kernel_plan->error_factor = error_factor(&g);
    write_pack(&g, kernel_plan, request->device);
    struct tconv_launch *run = tconv_kernel_plan_run(kernel_plan, "tconv_winograd");
    write_options(run, &g);
    tconv_launch_items(run, 0, g.items, 1, request->device);
    TCONV_LAUNCH_ARGS(run, TCONV_ARG_DATA, TCONV_ARG_FILTER, TCONV_ARGS_EPILOGUE, TCONV_ARG_TABLE,
                      TCONV_ARG_LOCAL, TCONV_ARG_SHARE);
    run->local_bytes = (size_t)g.local_bytes;
    return TCONV_OK;
}

const struct tconv_algorithm tconv_winograd = {
    .name = "winograd_vector",
    .summary = "fewer multiply-adds, more rounding: only with fast arithmetic; wide vectors: for "
               "CPUs",
    .source = "cpu/winograd.cl",
    .made_for = TCONV_FOR_VECTORS,
    .order = TCONV_ORDER_BY_POSITION,
    .stages_locally = true,
    .parameters = {TCONV_TILE(mz), TCONV_TILE(my), TCONV_TILE(mx), TCONV_TILE(vw), TCONV_TILE(nx),
                   TCONV_TILE(mw), TCONV_TILE(teams), TCONV_TILE(blocks), TCONV_TILE(chunk)},
    .program_parameters = 6,
    .enumerate = enumerate_winograd,
    .write = write,
};

const struct tconv_algorithm tconv_difference = {
    .name = "difference_vector",
    .summary = "nearest upsampling by 2 and a convolution of 3 taps along each axis, from "
               "differences of inputs; wide vectors: for CPUs",
    .source = "cpu/winograd.cl",
    .made_for = TCONV_FOR_VECTORS,
    .order = TCONV_ORDER_BY_POSITION,
    .stages_locally = true,
    .packs_given = true,
    .parameters = {TCONV_TILE(vw), TCONV_TILE(nx), TCONV_TILE(mw), TCONV_TILE(teams),
                   TCONV_TILE(blocks), TCONV_TILE(chunk)},
    .program_parameters = 3,
    .enumerate = enumerate_difference,
    .write = write,
};
