/* SPDX-License-Identifier: Apache-2.0 */
/* The tiled algorithm and the difference form: parameters, cost and kernel plans of
 * cl/gpu/tiled.cl.
 */
#include "algorithm/registry.h"

#include "algorithm/cost/gpu.h"
#include "algorithm/gpu/positions.h"
#include "base/checked.h"

/* A row of the list: MT, NT, TM, TN, SLICES and KS of cl/gpu/tiled.cl. */
#define TILE(rows, columns, item_rows, item_columns, parts, depth)                                 \
    {                                                                                              \
        .mt = rows, .nt = columns, .tm = item_rows, .tn = item_columns, .slices = parts,           \
        .ks = depth                                                                                \
    }

/* From the largest to the smallest. Slices divide a tile among more work-items, for layers with too
 * few tiles to keep the compute units busy. */
static const struct tconv_tile tiles[] = {
    TILE(128, 128, 8, 16, 1, 8), TILE(64, 128, 8, 16, 1, 8), TILE(64, 64, 8, 16, 1, 8),
    TILE(64, 64, 8, 16, 2, 16),  TILE(128, 128, 8, 8, 1, 8), TILE(64, 128, 8, 8, 1, 8),
    TILE(128, 64, 8, 8, 1, 16),  TILE(128, 64, 8, 8, 1, 8),  TILE(64, 64, 8, 8, 1, 8),
    TILE(64, 64, 8, 8, 2, 16),   TILE(64, 64, 8, 8, 4, 32),  TILE(64, 64, 8, 4, 1, 8),
    TILE(32, 128, 8, 8, 1, 8),   TILE(32, 64, 8, 4, 1, 8),   TILE(32, 64, 8, 8, 4, 32),
    TILE(64, 32, 8, 4, 1, 8),    TILE(64, 32, 8, 8, 4, 32),  TILE(32, 32, 4, 4, 1, 8),
    TILE(32, 32, 4, 4, 4, 32),   TILE(16, 128, 4, 8, 1, 8),  TILE(16, 64, 4, 4, 1, 8),
    TILE(16, 64, 4, 4, 4, 16),   TILE(64, 16, 4, 4, 1, 8),   TILE(64, 16, 4, 4, 4, 32),
    TILE(8, 256, 4, 8, 1, 4),    TILE(8, 128, 4, 4, 1, 4),   TILE(4, 256, 4, 4, 1, 4),
    TILE(16, 16, 4, 4, 4, 16),   TILE(16, 32, 4, 4, 1, 8),   TILE(16, 16, 4, 4, 1, 8),
};

/* Those of the difference form: rows are channels with 2 or 4 phases, of which a work-item has 4 or
 * 8 of all phases. */
static const struct tconv_tile difference_tiles[] = {
    TILE(128, 128, 16, 8, 1, 8), TILE(256, 64, 16, 8, 1, 8), TILE(128, 64, 16, 8, 1, 8),
    TILE(256, 64, 16, 4, 1, 8),  TILE(128, 64, 16, 4, 1, 8), TILE(128, 64, 16, 4, 1, 16),
    TILE(64, 64, 16, 4, 1, 8),   TILE(64, 64, 16, 4, 2, 16), TILE(128, 32, 16, 4, 2, 16),
    TILE(64, 32, 16, 4, 1, 8),   TILE(64, 32, 16, 4, 4, 32), TILE(32, 64, 16, 4, 1, 8),
    TILE(128, 64, 8, 8, 1, 8),   TILE(64, 128, 8, 8, 1, 8),  TILE(64, 64, 8, 8, 1, 8),
    TILE(64, 64, 8, 8, 4, 32),   TILE(64, 32, 8, 4, 1, 8),   TILE(32, 32, 8, 4, 4, 32),
    TILE(32, 32, 8, 4, 1, 8),    TILE(32, 32, 16, 4, 1, 8),
};

/* Low tiles cost more, because they load more for each multiply-add. */
static const struct tconv_product product = {
    .packing = TCONV_PACK_SUMMED,
    .height = {{128, 1}, {64, 1}, {32, 1.15}, {16, 1.5}, {8, 2}, {4, 3}},
    .heights = 6,
    .apart = 8,
};

static const struct tconv_product difference_product = {.packing = TCONV_PACK_SUMMED,
                                                        .difference = true};

/* ---- tiles ---------------------------------------------------------------------------------- */

static int items_of(const struct tconv_tile *t)
{
    return t->slices * (t->mt / t->tm) * (t->nt / t->tn);
}

/* Without more registers Intel's compiler keeps few sums beside the copies. */
static bool takes_large_registers(const struct tconv_tile *t, const tconv_device_info *device)
{
    enum { FEW = 16 };
    return t->tm * t->tn > FEW && tconv_has_large_registers(device);
}

/* Bytes of local memory: of a stage, or of the sums that slices exchange, whichever is more. */
static int64_t local_bytes(const struct tconv_positions *g, const struct tconv_tile *t)
{
    const int64_t stages = 2 * t->ks * (int64_t)(t->mt + t->nt + (g->last ? 4 : 0));
    const int64_t shared = (int64_t)(t->slices - 1) * t->mt * t->nt / t->slices;
    return tconv_max(stages, shared) * (int64_t)g->folded.acc_bytes +
           tconv_positions_output_bytes(g) * t->nt;
}

/* Instructions of a warp in a stage, cycles of a compute unit, and bytes from the second-level
 * cache. */
struct stage {
    double instructions, cycles, l2;
};

/* A stage of a kind of products, whose number has the bits of cl/gpu/tiled.cl; the tiled algorithm
 * has kind 0 only. */
static struct stage stage_of(const struct tconv_positions *g, const struct tconv_tile *t, int kind)
{
    const struct tconv_machine *m = g->folded.machine;
    const int sets = kind == 0 ? 1 : kind == 3 ? 4 : 2;
    const double all_sets = g->difference == 0 ? 1 : (double)g->merged;
    const double mt = t->mt * sets / all_sets, tm = t->tm * sets / all_sets;
    const double items = items_of(t), k = t->ks / t->slices;
    /* Numbers of 64 bits, and integers, take two instructions. */
    const double adds = g->folded.acc_bytes > 4 || tconv_adds_integers(&g->folded.loops) ? 2 : 1;
    const double reads = k * (tm + t->tn) / 4 * (double)(g->folded.acc_bytes / 4);
    const double instructions =
        tm * t->tn * k * adds + reads + m->tiled_stage + m->tiled_weight * t->ks * mt / 4 / items +
        (m->tiled_input + m->tiled_difference * (sets - 1)) * t->ks * t->nt / items;
    /* The other inputs of a difference along x come with the same cache lines. */
    const int lines = kind > 1 || (kind == 1 && g->difference == 2) ? 2 : 1;
    return (struct stage){
        .instructions = instructions,
        .cycles = tconv_larger(instructions / m->unit_issue, reads * m->unit_read),
        .l2 = t->ks * (mt + lines * t->nt) * (double)g->folded.acc_bytes,
    };
}

/* The cost of the layer with this tile. */
static double cost_of(const struct tconv_positions *g, const struct tconv_tile *t,
                      const tconv_device_info *device)
{
    const struct tconv_machine *m = g->folded.machine;
    const double sums = t->tm * t->tn;
    const double warps = (double)tconv_ceil_div(items_of(t), (int64_t)m->warp);

    /* Instructions of a warp in the stages and outside of them, and the waits of a group that has
     * the compute unit for itself. Of the difference form each tap of the other axes has a stage of
     * each kind, and each kind begins with a wait. */
    const int kinds = g->difference == 0 ? 1 : (int)g->merged;
    const double stages = tconv_positions_busiest_stages(g) / kinds;
    const double around = m->tiled_begin + sums * m->tiled_store;
    double busy = around / m->unit_issue, l2 = 0;
    double alone = around * m->tiled_around_wait + m->tiled_begin_wait +
                   (kinds - 1) * m->tiled_stage_wait;
    for (int kind = 0; kind < kinds; kind++) {
        const struct stage stage = stage_of(g, t, kind);
        busy += stages * stage.cycles;
        alone += stages * (stage.instructions + m->tiled_stage_wait);
        l2 += tconv_positions_stages(g) / kinds * stage.l2;
    }
    alone += (warps - 1) * busy;

    const double words = (double)g->folded.acc_bytes / 4;
    const double sliced = t->slices > 1 && t->tm * t->tn == 64 ? m->tiled_sliced : 0;
    const struct tconv_group_cost group = {
        .busy = warps * busy,
        .alone = alone,
        .warps = warps,
        .registers = tconv_gpu_registers(m, device, takes_large_registers(t, device),
                                         m->tiled_registers + sliced + words * t->tm * t->tn),
        .local = local_bytes(g, t),
        .l2 = l2,
        .finish = 2 * m->tiled_begin_wait + g->parts * m->tiled_part_wait,
    };
    return tconv_positions_cost(g, &group, device);
}

/* True if the device takes work-groups of this tile, and its registers hold the sums. */
static bool fits(const struct tconv_positions *g, const struct tconv_tile *t,
                 const tconv_device_info *device)
{
    /* Tiles that spill, or are slower than others. Intel's compiler keeps few sums in registers
     * beside the copies, fewer of integers, and none of narrow tiles with slices. AMD's gfx10 to
     * gfx12 need registers to convert elements. Numbers of 64 bits take two registers, and their
     * products more. 128 sums spill on CDNA; on NVIDIA, whose compiler keeps them, other tiles are
     * faster. llvmpipe does not unroll the loops over 128 sums, so that a channel takes 147 of the
     * iterations that it allows. */
    const bool cpu = device->kind == TCONV_DEVICE_CPU; /* all tiles for tests */
    const bool intel = device->subgroup_least > 0 && !cpu, wide = g->folded.acc_bytes > 4;
    const bool integers = tconv_adds_integers(&g->folded.loops);
    const bool few = (intel && (integers || !tconv_has_large_registers(device))) ||
                     tconv_folded_ends_loops(device);
    const bool converts = tconv_type_size(g->folded.loops.data_type) < g->folded.acc_bytes;
    const struct tconv_machine *m = g->folded.machine;
    const int64_t usual = few || wide ? 16 : converts ? 32 : cpu ? 128 : (int64_t)m->tiled_sums;
    const int64_t sums = tconv_min(usual, (int64_t)m->item_sums / (wide ? 2 : 1));
    /* With channels last a stage of 16 channels reads more of each cache line. It matters on
     * NVIDIA's GPUs only. */
    const bool is_long = t->ks == 16 && t->slices == 1;
    const bool excluded = (is_long && device->kind == TCONV_DEVICE_GPU && m->tiled_long == 0) ||
                          (wide && (intel || integers)) || (intel && t->slices > 1 && t->nt <= 32);
    const uint64_t items = (uint64_t)items_of(t);
    return !excluded && t->tm * t->tn <= sums && items <= device->work_group_limit &&
           items <= device->work_item_limit[0] &&
           local_bytes(g, t) <= (int64_t)device->local_memory;
}

static bool prepare(const struct tconv_algorithm *algorithm, const struct tconv_request *request,
                    struct tconv_positions *g, struct tconv_reason *reason)
{
    return tconv_positions_prepare(
        g, request, algorithm == &tconv_difference_group ? &difference_product : &product, reason);
}

/* The tiles, and how many they are. */
static const struct tconv_tile *tiles_of(const struct tconv_positions *g, size_t *count)
{
    *count = g->difference == 0 ? sizeof tiles / sizeof *tiles
                                : sizeof difference_tiles / sizeof *difference_tiles;
    return g->difference == 0 ? tiles : difference_tiles;
}

static bool enumerate(const struct tconv_request *request, struct tconv_candidates *candidates,
                      struct tconv_reason *reason)
{
    struct tconv_positions g;
    if (!prepare(candidates->algorithm, request, &g, reason)) return false;
    tconv_refuse(reason, "it needs larger work-groups or more local memory%s",
                 g.difference == 0 ? "" : " or registers");
    size_t count;
    const struct tconv_tile *list = tiles_of(&g, &count);
    for (size_t i = 0; i < count; i++) {
        const struct tconv_tile *t = &list[i];
        if (g.difference != 0 && t->tm % (4 * g.merged) != 0) continue;
        if (!fits(&g, t, request->device)) continue;
        for (int parts = 1; parts <= TCONV_MOST_PARTS; parts *= 2) {
            tconv_positions_set_tile(&g, t->mt, t->nt, t->ks, parts);
            if (parts > 1 && !tconv_positions_may_split(&g, request)) break;
            struct tconv_tile tile = *t;
            tile.split = parts > 1;
            tile.parts = parts;
            if (tconv_positions_check(&g, items_of(t), request->device, reason))
                tconv_candidates_add(candidates, &tile, cost_of(&g, t, request->device));
        }
    }
    return candidates->count > 0;
}

static void write_options(const struct tconv_positions *g, const struct tconv_tile *t,
                          enum tconv_split split, const tconv_device_info *device,
                          struct tconv_launch *launch)
{
    if (takes_large_registers(t, device)) tconv_launch_large_registers(launch);
    tconv_launch_option(launch, "MT", t->mt);
    tconv_launch_option(launch, "NT", t->nt);
    tconv_launch_option(launch, "TM", t->tm);
    tconv_launch_option(launch, "TN", t->tn);
    tconv_launch_option(launch, "KS", t->ks);
    tconv_launch_option(launch, "SLICES", t->slices);
    tconv_launch_option(launch, "QUADS", tconv_positions_has_groups(g, false, 4));
    tconv_positions_options(g, split, items_of(t), launch);
}

/* The tile for the kernel that adds up the sums of parts: the same, in as many slices as a
 * work-group holds, so that each work-item has few sums. */
static struct tconv_tile finishing_tile(const struct tconv_tile *tile,
                                        const tconv_device_info *device)
{
    enum { ITEMS = 256 };
    const int64_t most = tconv_min(
        ITEMS, tconv_min((int64_t)device->work_group_limit, (int64_t)device->work_item_limit[0]));
    struct tconv_tile t = *tile;
    t.slices = 1;
    while (2 * items_of(&t) <= most && 2 * t.slices <= t.tm && 2 * t.slices <= t.tn) t.slices *= 2;
    t.ks = 4 * t.slices;
    return t;
}

/* The factor of docs/semantics.md: 3 for each axis of the difference form, times the kinds of
 * products and times the taps of the other axes that are added up one after the other. With two
 * axes these are 3 of the 4 kinds: that along y only has sums of its own. */
static double error_factor(const struct tconv_positions *g)
{
    const int64_t kinds = g->merged == 4 ? 3 : 2;
    return (double)(tconv_positions_products(g) * kinds * g->most_taps / g->merged);
}

static tconv_status write(const struct tconv_request *request,
                          const struct tconv_candidate *candidate,
                          struct tconv_kernel_plan *kernel_plan, tconv_error *error)
{
    struct tconv_positions g;
    struct tconv_reason reason;
    prepare(candidate->algorithm, request, &g, &reason);
    const struct tconv_tile *t = &candidate->tile;
    tconv_positions_set_tile(&g, t->mt, t->nt, t->ks, t->parts);
    if (!tconv_positions_write_table(&g, kernel_plan)) return tconv_fail_table(error, kernel_plan);
    if (g.difference != 0) kernel_plan->error_factor = error_factor(&g);
    struct tconv_launch *run = tconv_positions_run(&g, "tconv_tiled", items_of(t), kernel_plan);
    write_options(&g, t, g.parts > 1 ? TCONV_PART_SUMS : TCONV_WHOLE_SUMS, request->device, run);
    /* The program that computes without parts packs filters. */
    struct tconv_launch whole = {0};
    write_options(&g, t, TCONV_WHOLE_SUMS, request->device, &whole);
    tconv_positions_pack(&g, g.difference == 0 ? "tiled" : "difference", &whole, request,
                         kernel_plan);
    struct tconv_launch *fill = tconv_positions_fill(&g, items_of(t), kernel_plan);
    if (fill != NULL) write_options(&g, t, TCONV_WHOLE_SUMS, request->device, fill);
    if (g.parts == 1) return TCONV_OK;
    const struct tconv_tile finishing = finishing_tile(t, request->device);
    struct tconv_launch *finish =
        tconv_positions_finish(&g, "tconv_tiled_finish", items_of(&finishing), 1, kernel_plan);
    write_options(&g, &finishing, TCONV_FINISHED_SUMS, request->device, finish);
    return TCONV_OK;
}

const struct tconv_algorithm tconv_tiled_group = {
    .name = "tiled_group",
    .summary = "implicit matrix product from local memory, many accumulators in a work-item's "
               "registers: for GPUs",
    .source = "gpu/tiled.cl",
    .made_for = TCONV_FOR_LANES,
    .order = TCONV_ORDER_BY_PARAMETERS,
    .order_parameters = "slices ks split parts",
    .stages_locally = true,
    .parameters = {TCONV_TILE(mt), TCONV_TILE(nt), TCONV_TILE(tm), TCONV_TILE(tn),
                   TCONV_TILE(slices), TCONV_TILE(ks), TCONV_TILE(split), TCONV_TILE(parts)},
    .program_parameters = 7,
    .enumerate = enumerate,
    .write = write,
};

const struct tconv_algorithm tconv_difference_group = {
    .name = "difference_group",
    .summary = "nearest upsampling by 2 and a convolution of 3 taps along the last axes, from "
               "differences of inputs in local memory: for GPUs",
    .source = "gpu/tiled.cl",
    .made_for = TCONV_FOR_LANES,
    .order = TCONV_ORDER_BY_POSITION, /* if a sum is not finite, neighbours are computed again */
    .stages_locally = true,
    .parameters = {TCONV_TILE(mt), TCONV_TILE(nt), TCONV_TILE(tm), TCONV_TILE(tn),
                   TCONV_TILE(slices), TCONV_TILE(ks), TCONV_TILE(split), TCONV_TILE(parts)},
    .program_parameters = 7,
    .enumerate = enumerate,
    .write = write,
};
