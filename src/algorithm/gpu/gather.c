/* SPDX-License-Identifier: Apache-2.0 */
/* The gather algorithm: parameters, cost and kernel plan of cl/gpu/gather.cl. */
#include "algorithm/registry.h"

#include "algorithm/any/folded.h"
#include "algorithm/cost/gpu.h"
#include "base/checked.h"
#include "base/element_types.h"
#include "gpu/gather_table.h"

#include <stdio.h>
#include <stdlib.h>

enum { WIDEST = 4, MERGED_STRIDE = 4, MERGED_KERNEL = 16, FLAG_ALIGNMENT = 16, MANY_PAGES = 64 };

/* The parameters of a kernel, and the numbers that follow from them. */
struct gather {
    struct tconv_folded folded;
    bool merged;
    int vw, mw, group_x, group_y;
    int64_t in; /* input channels, or with DOT quads of them */
    int64_t blocks, tiles;
    int64_t tile_first, tile_last, direct_first, direct_last; /* as in cl/gpu/gather_table.h */
    int64_t staged, stage_row;
    double stage_elements;
};

/* How many vectors of `vw` lanes of sums may be in registers. A GPU's work-item has 128 or 255
 * registers. Intel's GPUs (the only ones that report a sub-group's size) have 128, and their
 * compiler copies all sums for each loop that work-items leave one by one. Without merging there is
 * one more such loop. */
static int sums_limit(const struct gather *g, enum tconv_packing packing, int vw,
                      const tconv_device_info *device)
{
    const int usual = device->subgroup_least == 0 ? 64 : g->merged ? 32 : 24;
    const int sums = (int)tconv_min(usual, (int64_t)g->folded.machine->item_sums) / vw;
    /* Numbers of 64 bits take two registers, and integers are multiplied and added in two steps. */
    const bool wide = g->folded.acc_bytes > sizeof(float),
               integers = tconv_adds_integers(&g->folded.loops) && packing != TCONV_PACK_QUADS;
    /* Registers of Intel's older GPUs have 32 bytes, and programs for them spill sums of f64. */
    const bool old = device->subgroup_least > 0 && !tconv_has_large_registers(device);
    return wide && (integers || old) ? sums / 4 : wide || integers ? sums / 2 : sums;
}

/* True if the sums of a work-item are in registers. One block of channels may have more of them
 * than sums_limit allows. */
static bool holds_sums(const struct gather *g)
{
    const int64_t phases = g->merged ? g->folded.x.stride : 1,
                  words = (int64_t)(g->folded.acc_bytes / sizeof(float));
    return g->vw == 1 || g->vw * g->mw * phases * words <= (int64_t)g->folded.machine->item_sums;
}

/* Time of a vector's multiply-add, at best 1. Loads of inputs and weights compete with it. */
static double inefficiency(const struct gather *g, int mw)
{
    const struct tconv_machine *m = g->folded.machine;
    const double adds = mw, loads = mw + 1;
    return (m->gather_tile + m->gather_load * loads / adds) * m->gather_narrow;
}

/* Multiply-adds that are issued: whole tiles and blocks, with rows clipped to the data. */
static double issued(const struct gather *g)
{
    const struct tconv_loops *loops = &g->folded.loops;
    return tconv_folded_slices(&g->folded) * tconv_folded_pairs(&g->folded.y) *
           (double)(g->tile_last - g->tile_first) * g->vw * (double)g->folded.x.kernel *
           (double)loops->batch * (double)loops->groups * (double)g->in *
           (double)(g->blocks * g->mw);
}

/* Derives numbers from vw and mw. */
static void derive(struct gather *g)
{
    const struct tconv_folded *r = &g->folded;
    const int64_t tile = g->vw;
    g->blocks = tconv_ceil_div(r->loops.out_channels, g->mw);
    g->tiles = tconv_ceil_div(r->positions, tile);
    g->tile_first = tconv_min(g->tiles, tconv_max(0, tconv_ceil_div(1 - tile - r->high, tile)));
    g->tile_last =
        tconv_max(g->tile_first, tconv_min(g->tiles, tconv_ceil_div(r->x.input - r->low, tile)));
    g->direct_first =
        tconv_max(g->tile_first, tconv_min(g->tile_last, tconv_ceil_div(-r->low, tile)));
    g->direct_last =
        tconv_max(g->direct_first,
                  tconv_min(g->tile_last, tconv_floor_div(r->x.input - tile - r->high, tile) + 1));
    g->staged = g->direct_first - g->tile_first + g->tile_last - g->direct_last;
    g->stage_row = tile + r->high - r->low;
    g->stage_elements = (double)g->staged * (double)g->stage_row * (double)r->input_rows *
                        (double)r->loops.batch * (double)r->loops.groups *
                        (double)r->loops.in_channels;
}

/* The cost of storing an output, in multiply-adds at full speed: as part of a vector, alone, or in
 * a page of its own. */
static double store_cost(const struct gather *g)
{
    const int64_t stride = g->folded.x.stride;
    const struct tconv_machine *m = g->folded.machine;
    if (stride >= MANY_PAGES) return m->gather_store_page;
    return g->merged && stride != 3 ? m->gather_store : m->gather_store_apart;
}

/* The cost of one choice, in useful multiply-adds at full speed. */
static double cost_of(const struct gather *g)
{
    const struct tconv_loops *loops = &g->folded.loops;
    const double outputs = (double)loops->batch * (double)loops->groups *
                           (double)loops->out_channels * (double)g->folded.output_rows *
                           (double)g->folded.x.output;
    return issued(g) * inefficiency(g, g->mw) + outputs * store_cost(g) +
           g->folded.machine->gather_stage * g->stage_elements;
}

/* Chooses MW. The packed filter depends on it, so MW may depend on channels, kernel and stride, but
 * not on extents. */
static int choose_channels(const struct gather *g, enum tconv_packing packing,
                           const tconv_device_info *device)
{
    const int phases = g->merged ? (int)g->folded.x.stride : 1;
    const int64_t channels = g->folded.loops.out_channels;
    double least = 0;
    int best = 1;
    for (int mw = 1; mw <= 16 && mw <= channels &&
                     (mw == 1 || mw * phases <= sums_limit(g, packing, WIDEST, device));
         mw++) {
        const double cost = (double)(tconv_ceil_div(channels, mw) * mw) * inefficiency(g, mw);
        if (mw == 1 || cost < least) {
            least = cost;
            best = mw;
        }
    }
    return best;
}

/* A work-group's shape: as many neighbouring tiles as there are, the rest neighbouring rows. */
static void choose_group(struct gather *g, const tconv_device_info *device)
{
    int64_t most = 64;
    while (most > 1 && most > (int64_t)device->work_group_limit) most /= 2;
    g->group_x = 1;
    while (g->group_x * 2 <= most && g->group_x < g->tiles &&
           (uint64_t)g->group_x * 2 <= device->work_item_limit[0])
        g->group_x *= 2;
    g->group_y = 1;
    while (g->group_x * g->group_y * 2 <= most && g->group_y < g->folded.output_rows &&
           (uint64_t)g->group_y * 2 <= device->work_item_limit[1])
        g->group_y *= 2;
}

/* Groups: for each image, block of channels, `group_y` rows and `group_x` tiles. */
static double work_groups(const struct gather *g)
{
    return (double)(g->folded.loops.batch * g->folded.loops.groups * g->blocks) *
           (double)tconv_ceil_div(g->folded.output_rows, g->group_y) *
           (double)tconv_ceil_div(g->tiles, g->group_x);
}

/* Longs of gather's own part of the table: its numbers and the list of taps along x. */
static double own_longs(const struct gather *g)
{
    return GATHER_LONGS - FOLDED_LONGS + (double)g->folded.x.kernel * GATHER_TAP_LONGS;
}

/* Elements of a packed filter in front of the weights. */
static int64_t header_of(const struct gather *g)
{
    return tconv_ceil_div(g->folded.loops.groups * g->blocks, FLAG_ALIGNMENT) * FLAG_ALIGNMENT;
}

/* True if the packed filter's size fits. */
static bool filter_fits(const struct gather *g, const struct tconv_request *request,
                        enum tconv_packing packing, struct tconv_reason *reason)
{
    const struct tconv_folded *r = &g->folded;
    const double taps = (double)r->z.kernel * (double)r->y.kernel * (double)r->x.kernel;
    const double blocks = (double)r->loops.groups * (double)g->blocks;
    return tconv_filter_addressable((double)header_of(g) + blocks * g->mw * taps * (double)g->in,
                                    tconv_packed_bytes(request, packing), reason);
}

/* Sets what all candidates have in common. */
static bool prepare(const struct tconv_request *request, enum tconv_packing packing,
                    struct gather *g, struct tconv_reason *reason)
{
    const struct tconv_loops *loops = request->loops;
    *g = (struct gather){0};
    if (!tconv_fold_rows(request, &g->folded, reason) ||
        !tconv_folded_table_fits(&g->folded, own_longs(g), reason))
        return false;
    g->in = loops->in_channels;
    if (packing == TCONV_PACK_QUADS) {
        if (!tconv_type_is_byte(loops->data_type) || !tconv_type_is_byte(loops->filter_type))
            return tconv_refuse(reason, "it multiplies i8 and u8 only");
        if (request->epilogue->filter_zero_point != 0)
            return tconv_refuse(reason, "it does not subtract a zero point of the filter");
        g->in = tconv_ceil_div(g->in, 4);
    }
    g->merged = g->folded.x.stride <= MERGED_STRIDE && g->folded.x.kernel <= MERGED_KERNEL;
    g->mw = choose_channels(g, packing, request->device);
    g->blocks = tconv_ceil_div(loops->out_channels, g->mw);
    return filter_fits(g, request, packing, reason);
}

/* Loop iterations that add products, for all phases along z and y. */
static double additions(const struct gather *g, const struct tconv_loops *loops)
{
    return (double)(g->folded.z.kernel * g->folded.y.kernel) * (double)loops->in_channels *
           (g->merged ? 1 : (double)g->folded.x.kernel);
}

/* True if the work of this tile fits into indices and the device's limits. */
static bool check_work(const struct gather *g, const struct tconv_request *request,
                       struct tconv_reason *reason)
{
    if (work_groups(g) * g->group_x > INT32_MAX)
        return tconv_refuse(reason, "more work-items than its 32-bit indices can count");
    const struct tconv_loops *loops = request->loops;
    if ((double)loops->batch * (double)loops->groups * (double)loops->in_channels > INT32_MAX ||
        g->folded.input_rows > INT32_MAX)
        return tconv_refuse(reason, "more channels or rows than its 32-bit indices can count");
    if ((double)g->folded.x.kernel * (double)(g->folded.y.kernel * g->folded.z.kernel) > INT32_MAX)
        return tconv_refuse(reason, "more taps than its 32-bit indices can count");
    /* Adding for all phases, or computing outputs one by one with care. */
    const double iterations = additions(g, loops) + (double)(g->mw * g->vw) *
                                                        (double)g->folded.x.stride *
                                                        (1 + tconv_folded_exact_loops(&g->folded));
    if (tconv_folded_group_too_long(iterations, request->device))
        return tconv_refuse(reason, "no part of the work is small enough for a work-item");
    return true;
}

/* True if the workspace is within the caller's limit. */
static bool check_workspace(const struct gather *g, const struct tconv_request *request,
                            struct tconv_reason *reason)
{
    const struct tconv_loops *loops = request->loops;
    const double bytes = g->stage_elements * (double)tconv_type_size(loops->data_type);
    const uint64_t limit = tconv_workspace_limit(request);
    if (bytes > (double)limit)
        return tconv_refuse(reason, "it needs %.0f bytes of workspace, more than the limit of %llu",
                            bytes, (unsigned long long)limit);
    const double images = (double)g->folded.loops.batch * (double)loops->groups;
    const double tensors =
        images *
        ((double)loops->in_channels * (double)g->folded.input_rows * (double)g->folded.x.input +
         (double)loops->out_channels * (double)g->folded.output_rows * (double)g->folded.x.output);
    /* A kernel whose extent is far larger than the data's. */
    if (g->stage_elements > 8 * tensors + (1 << 20))
        return tconv_refuse(reason, "it needs %.0f bytes of workspace, many times the tensors",
                            bytes);
    return true;
}

/* The cost of a GPU's work-items before the first product and after the last: some 1200
 * instructions, counted in compiled code. */
static double begin_cost(const struct gather *g, const tconv_device_info *device)
{
    const double items = work_groups(g) * (double)g->group_x;
    return device->kind == TCONV_DEVICE_GPU ? g->folded.machine->gather_begin * items : 0;
}

static bool enumerate(const struct tconv_request *request, struct tconv_candidates *candidates,
                      struct tconv_reason *reason)
{
    const enum tconv_packing packing = candidates->algorithm->packing;
    struct gather g;
    if (!prepare(request, packing, &g, reason)) return false;
    /* Elsewhere products of bytes take longer than those of words: Intel's processors (2026.2) 60
     * times as long. */
    const bool fast = request->device->integer_dot_product &&
                      request->device->kind == TCONV_DEVICE_GPU;
    const double factor = packing == TCONV_PACK_QUADS && !fast ? request->machine.gather_bytes : 1;
    /* Taps of one output: a work-item waits for the loads of each. */
    const double waits = additions(&g, request->loops) /
                         (double)(g.folded.z.stride * g.folded.y.stride);
    /* Four phases of vectors with an activation are too much to unroll on GPUs: compilers spill the
     * vectors to memory. */
    const bool unrolled = request->device->kind != TCONV_DEVICE_GPU || !g.merged ||
                          g.folded.x.stride < 4;
    for (g.vw = unrolled ? WIDEST : 1; g.vw >= 1; g.vw /= 2) {
        if (!holds_sums(&g)) continue;
        derive(&g);
        choose_group(&g, request->device);
        if (!check_work(&g, request, reason) || !check_workspace(&g, request, reason)) continue;
        const struct tconv_tile tile = {.vw = g.vw, .mw = g.mw};
        const double cost = cost_of(&g) + begin_cost(&g, request->device);
        tconv_candidates_add(
            candidates, &tile,
            tconv_gpu_portable_cost(request, cost, request->machine.gather_wait, waits) * factor);
    }
    return candidates->count > 0;
}

/* Writes the index of each tap along x in the packed filter. With merged phases all taps are
 * together, in their own order. */
static bool write_taps(const struct gather *g, int64_t *list)
{
    const struct tconv_axis *x = &g->folded.x;
    struct tconv_phase *phases = tconv_phases_of(x);
    if (phases == NULL) return false;
    int64_t start = 0;
    for (int64_t r = 0; r < x->stride; r++) {
        for (int64_t j = 0; j < phases[r].taps; j++) {
            const int64_t k = phases[r].first + j * tconv_tap_step(x);
            int64_t *tap = list + k * GATHER_TAP_LONGS;
            tap[GATHER_TAP_START] = g->merged ? 0 : start;
            tap[GATHER_TAP_COUNT] = g->merged ? x->kernel : phases[r].taps;
            tap[GATHER_TAP_NUMBER] = g->merged ? k : j;
        }
        start += phases[r].taps;
    }
    free(phases);
    return true;
}

static bool write_table(const struct gather *g, struct tconv_kernel_plan *kernel_plan)
{
    const size_t own = (size_t)own_longs(g);
    if (!tconv_kernel_plan_table(kernel_plan, tconv_folded_table_size(&g->folded, own)))
        return false;
    int64_t *t = kernel_plan->table;
    t[GATHER_HEADER] = header_of(g);
    t[GATHER_TILE_FIRST] = g->tile_first;
    t[GATHER_TILE_LAST] = g->tile_last;
    t[GATHER_DIRECT_FIRST] = g->direct_first;
    t[GATHER_DIRECT_LAST] = g->direct_last;
    t[GATHER_STAGED] = g->staged;
    t[GATHER_STAGE_ROW] = g->stage_row;
    t[GATHER_TAPS_AT] = GATHER_LONGS;
    return write_taps(g, t + GATHER_LONGS) &&
           tconv_folded_write_table(&g->folded, g->blocks, g->tiles, own, t);
}

/* All kernels of a kernel plan are built with the same options, so that they share a program. */
static void write_options(struct tconv_launch *launch, const struct gather *g)
{
    tconv_launch_option(launch, "VW", g->vw);
    tconv_launch_option(launch, "MW", g->mw);
    tconv_launch_option(launch, "WGX", g->group_x);
    tconv_launch_option(launch, "WGY", g->group_y);
    tconv_launch_option(launch, "MERGED", g->merged);
    if (!g->merged) return;
    tconv_launch_option(launch, "SX", g->folded.x.stride);
    tconv_folded_taps_options(&g->folded, launch);
}

static tconv_status write(const struct tconv_request *request,
                          const struct tconv_candidate *candidate,
                          struct tconv_kernel_plan *kernel_plan, tconv_error *error)
{
    const enum tconv_packing packing = candidate->algorithm->packing;
    struct gather g;
    struct tconv_reason reason;
    prepare(request, packing, &g, &reason);
    g.vw = candidate->tile.vw;
    g.mw = candidate->tile.mw;
    derive(&g);
    choose_group(&g, request->device);
    if (!write_table(&g, kernel_plan)) return tconv_fail_table(error, kernel_plan);
    const struct tconv_loops *loops = request->loops;
    const int64_t rows = g.folded.z.kernel * g.folded.y.kernel * g.folded.x.kernel,
                  all_blocks = loops->groups * g.blocks;
    char name[64];
    snprintf(name, sizeof name, "gather %s%d s%lld d%lld", g.merged ? "merged" : "phases", g.mw,
             g.merged ? 1LL : (long long)g.folded.x.stride,
             g.merged ? 1LL : (long long)g.folded.x.dilation);
    tconv_folded_layout(kernel_plan, name, &g.folded);
    kernel_plan->filter_bytes =
        (uint64_t)(kernel_plan->table[GATHER_HEADER] + all_blocks * g.mw * rows * g.in) *
        tconv_packed_bytes(request, packing);
    kernel_plan->workspace_bytes = (uint64_t)g.stage_elements * tconv_type_size(loops->data_type);

    struct tconv_launch *clear = tconv_kernel_plan_pack(kernel_plan, "tconv_gather_clear");
    write_options(clear, &g);
    tconv_launch_items(clear, 0, all_blocks, 64, request->device);
    TCONV_LAUNCH_ARGS(clear, TCONV_ARG_FLAGS, TCONV_ARG_TABLE);
    struct tconv_launch *pack = tconv_kernel_plan_pack(kernel_plan, "tconv_gather_pack");
    write_options(pack, &g);
    tconv_launch_items(pack, 0, g.in, 32, request->device);
    tconv_launch_items(pack, 1, rows, 1, request->device);
    tconv_launch_items(pack, 2, all_blocks, 1, request->device);
    TCONV_LAUNCH_ARGS(pack, TCONV_ARG_WEIGHTS, TCONV_ARG_FILTER, TCONV_ARG_FLAGS, TCONV_ARG_TABLE);

    if (g.stage_elements > 0) {
        struct tconv_launch *stage = tconv_kernel_plan_run(kernel_plan, "tconv_gather_stage");
        write_options(stage, &g);
        tconv_launch_items(stage, 0, g.staged, 1, request->device);
        tconv_launch_items(stage, 1, g.folded.input_rows, 32, request->device);
        tconv_launch_items(stage, 2, g.folded.loops.batch * loops->groups * loops->in_channels, 1,
                           request->device);
        TCONV_LAUNCH_ARGS(stage, TCONV_ARG_DATA, TCONV_ARG_WORKSPACE, TCONV_ARG_TABLE);
    }
    struct tconv_launch *run = tconv_kernel_plan_run(kernel_plan, "tconv_gather");
    run->divides = true;
    write_options(run, &g);
    /* All groups along the first dimension: the other two have lower limits. */
    run->local[0] = (size_t)g.group_x;
    run->local[1] = (size_t)g.group_y;
    run->global[0] = (size_t)work_groups(&g) * (size_t)g.group_x;
    run->global[1] = (size_t)g.group_y;
    run->macs = issued(&g) * (packing == TCONV_PACK_QUADS ? 4 : 1);
    TCONV_LAUNCH_ARGS(run, TCONV_ARG_DATA,
                      g.stage_elements > 0 ? TCONV_ARG_WORKSPACE : TCONV_ARG_DATA, TCONV_ARG_FILTER,
                      TCONV_ARG_FLAGS, TCONV_ARGS_EPILOGUE, TCONV_ARG_TABLE);
    return TCONV_OK;
}

/* Both algorithms are one source; they differ in how weights are packed. */
#define COMMON                                                                                     \
    .source = "gpu/gather.cl", .made_for = TCONV_FOR_LANES,                                        \
    .parameters = {TCONV_TILE(vw), TCONV_TILE(mw)}, .program_parameters = 2,                       \
    .order = TCONV_ORDER_BY_PARAMETERS, .order_parameters = "mw", .enumerate = enumerate,          \
    .write = write

const struct tconv_algorithm tconv_gather_group = {
    .name = "gather_group",
    .summary = "output-stationary gather with merged phases; work-items side by side along a row: "
               "for GPUs",
    COMMON,
};

const struct tconv_algorithm tconv_gather_dot = {
    .name = "gather_dot",
    .summary = "gather_group for bytes, four input channels at a time: for GPUs with products of "
               "bytes",
    .packing = TCONV_PACK_QUADS,
    COMMON,
};
