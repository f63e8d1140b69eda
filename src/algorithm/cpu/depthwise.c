/* SPDX-License-Identifier: Apache-2.0 */
/* The depthwise algorithm: parameters, cost and kernel plan of cl/cpu/depthwise.cl. */
#include "algorithm/registry.h"

#include "algorithm/any/folded.h"
#include "algorithm/cost/cpu.h"
#include "base/checked.h"
#include "cpu/depthwise_table.h"

#include <stdlib.h>

enum {
    MOST_POSITIONS = 8, /* of a tile */
    MOST_MERGED = 4,    /* strides and taps along x that are unrolled */
    MOST_MERGED_TAPS = 16,
    MOST_STRIDE = 1 << 12,
    MOST_TAPS = 1 << 16,
};

/* The parameters of a kernel, and the numbers that follow from them. */
struct depthwise {
    struct tconv_folded folded;
    int vw, mw, px;
    bool merged; /* a tile has all phases along x */
    int64_t blocks, item_rows, item_positions, items;
};

/* Turns groups into output channels of one group, each of which reads an input channel of its
 * own. */
static void fold_groups(struct tconv_loops *loops)
{
    loops->out_channels = loops->groups;
    loops->groups = 1;
    loops->filter_out_step = loops->filter_group_step;
}

/* Prefer blocks of two vectors, so that positions and phases share inputs and weights. Few channels
 * after the last whole block are computed by themselves. The choice depends on channels only, so
 * that packed filters are shared. */
static void choose_lanes(struct depthwise *g)
{
    static const int order[] = {2, 3, 1};
    const int64_t channels = g->folded.loops.out_channels;
    g->vw = tconv_folded_widest(&g->folded);
    while (g->vw > 4 && g->vw > channels) g->vw /= 2;
    g->mw = g->vw;
    int64_t least = channels;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        const int64_t block = (int64_t)order[i] * g->vw;
        if (block <= channels && channels % block < least) {
            least = channels % block;
            g->mw = (int)block;
        }
    }
}

/* Chooses the positions of a tile: as many as registers hold. */
static void choose_tile(struct depthwise *g)
{
    const struct tconv_axis *x = &g->folded.x;
    const int vectors = g->mw / g->vw;
    const int sums = tconv_folded_accumulators(&g->folded);
    const int64_t low = tconv_max(-g->folded.low, 0),
                  high = tconv_min(x->output / x->stride, x->input - g->folded.high);
    const int64_t most = tconv_min(high - low, MOST_POSITIONS);
    g->px = 1;
    if (x->stride <= MOST_MERGED && x->kernel <= MOST_MERGED_TAPS &&
        g->folded.high - g->folded.low < MOST_MERGED_TAPS) {
        /* In registers: sums, the inputs of a vector of channels, a weight, and nothing else. */
        const int span = (int)(g->folded.high - g->folded.low);
        const int positions = (sums * 6 / 5 - span - 1) / (vectors * (int)x->stride + 1);
        g->merged = positions >= 1 && most >= 1;
        if (g->merged) g->px = (int)tconv_min(positions, most);
    }
    while (!g->merged && 2 * g->px <= most && 2 * g->px * vectors <= sums) g->px *= 2;
}

/* Cycles of adding one tap to a tile: its loads or its multiply-adds. Merged tiles have their
 * inputs in registers. */
static double tap_cycles(const struct depthwise *g)
{
    const double vectors = g->mw / (double)g->vw;
    const struct tconv_machine *m = g->folded.machine;
    return m->depthwise_tap +
           (g->merged ? vectors * g->px / m->adds : vectors * (g->px + 1) / m->loads);
}

static double tiles_of(const struct depthwise *g, int64_t positions)
{
    /* 2: borders are computed position by position. */
    return (double)tconv_ceil_div(positions, g->px) + 2;
}

/* The cost of a tile, in multiply-adds at full speed. */
static double cost_of(const struct depthwise *g)
{
    const struct tconv_machine *m = g->folded.machine;
    const struct tconv_folded *r = &g->folded;
    const double tiles = tiles_of(g, g->item_positions) *
                         (double)tconv_ceil_div(r->positions, g->item_positions);
    const double adds = tconv_folded_slices(r) * tconv_folded_pairs(&r->y) * (double)r->x.kernel *
                        tiles * (double)g->blocks * tap_cycles(g);
    const double stores =
        (double)r->output_rows * tiles * (double)r->x.stride *
        (m->depthwise_tile +
         (double)g->blocks * (m->depthwise_store * g->mw / g->vw * g->px + m->depthwise_block));
    const double items = (double)g->items;
    const double cycles = (double)r->loops.batch * (adds + stores) + items * m->depthwise_item;
    return tconv_cpu_launch_cost(r, cycles * m->adds * m->lanes, 1 / items);
}

/* True if a work-item of this division has too many loop iterations. */
static bool too_long(const struct depthwise *g, const tconv_device_info *device)
{
    const struct tconv_folded *r = &g->folded;
    const double taps = (double)tconv_folded_taps_z(r) * (double)tconv_most_taps(&r->y) *
                        (double)r->x.kernel;
    return tconv_folded_too_long((double)(g->item_rows * g->item_positions * g->blocks) *
                                     (taps + (double)r->x.stride * 2 * g->mw),
                                 device);
}

/* Work-items of a division, as a double because they can exceed 64 bits. */
static double items_of(const struct depthwise *g)
{
    const struct tconv_folded *r = &g->folded;
    return (double)r->loops.batch * (double)r->z.output *
           (double)tconv_ceil_div(r->y.output, g->item_rows) *
           (double)tconv_ceil_div(r->positions, g->item_positions);
}

/* Divides rows and positions among work-items in all ways. */
static void divide(struct depthwise *g, const tconv_device_info *device,
                   struct tconv_candidates *candidates)
{
    for (g->item_rows = g->folded.y.output;; g->item_rows = tconv_ceil_div(g->item_rows, 2)) {
        for (g->item_positions = g->folded.positions;;
             g->item_positions =
                 tconv_ceil_div(tconv_ceil_div(g->item_positions, 2), g->px) * g->px) {
            const double items = items_of(g);
            if (items < INT32_MAX && !too_long(g, device)) {
                g->items = (int64_t)items;
                const struct tconv_tile tile = {.vw = g->vw,
                                                .mw = g->mw,
                                                .px = g->px,
                                                .merged = g->merged,
                                                .rows = (int)g->item_rows,
                                                .positions = (int)g->item_positions};
                tconv_candidates_add(candidates, &tile, cost_of(g));
            }
            if (g->item_positions <= g->px) break;
        }
        if (g->item_rows == 1) break;
    }
}

/* Sets what all candidates have in common. */
static bool prepare(const struct tconv_request *request, struct depthwise *g,
                    struct tconv_reason *reason)
{
    const struct tconv_loops *loops = request->loops;
    *g = (struct depthwise){0};
    if (!tconv_fold_any_format(request, &g->folded, reason)) return false;
    if (loops->groups == 1 || loops->in_channels != 1 || loops->out_channels != 1)
        return tconv_refuse(
            reason, "groups: %lld, of %lld to %lld channels; it takes several, of one channel",
            (long long)loops->groups, (long long)loops->in_channels,
            (long long)loops->out_channels);
    if (loops->data_channel_step != 1 || loops->output_channel_step != 1)
        return tconv_refuse(reason, "its vectors run along channels, which are not contiguous in "
                                    "this format or by these steps");
    fold_groups(&g->folded.loops);
    const struct tconv_axis *axes[] = {&g->folded.z, &g->folded.y, &g->folded.x};
    int64_t taps = 1;
    for (int a = 0; a < 3; a++) {
        taps *= axes[a]->kernel;
        if (taps > MOST_TAPS) return tconv_refuse(reason, "more than %d taps", MOST_TAPS);
        if (axes[a]->stride > MOST_STRIDE)
            return tconv_refuse(reason, "stride %lld; it takes up to %d",
                                (long long)axes[a]->stride, MOST_STRIDE);
    }
    if (!tconv_table_fits(
            (double)(DEPTHWISE_LONGS + (g->folded.y.stride + g->folded.x.stride) * REACH_LONGS) +
                tconv_folded_slices_longs(&g->folded),
            reason))
        return false;
    choose_lanes(g);
    choose_tile(g);
    g->blocks = tconv_ceil_div(g->folded.loops.out_channels, g->mw);
    return tconv_folded_filter_fits(&g->folded, g->mw, g->blocks, request, TCONV_PACK_RAW, reason);
}

static bool enumerate(const struct tconv_request *request, struct tconv_candidates *candidates,
                      struct tconv_reason *reason)
{
    struct depthwise g;
    if (!prepare(request, &g, reason)) return false;
    divide(&g, request->device, candidates);
    return candidates->count > 0 ||
           tconv_refuse(reason, "no part of the work is small enough for a work-item");
}

static void use_tile(struct depthwise *g, const struct tconv_tile *tile)
{
    g->vw = tile->vw;
    g->mw = tile->mw;
    g->px = tile->px;
    g->merged = tile->merged != 0;
    g->item_rows = tile->rows;
    g->item_positions = tile->positions;
    g->items = (int64_t)items_of(g);
}

/* Writes a reach for each phase of the outputs along an axis. False only if host memory is
 * missing. */
static bool write_axis(const struct tconv_axis *axis, int64_t *list)
{
    struct tconv_phase *phases = tconv_phases_of(axis);
    if (phases == NULL) return false;
    for (int64_t t = 0; t < axis->stride; t++, list += REACH_LONGS) {
        const struct tconv_phase *phase = tconv_phase_of(axis, phases, t);
        list[REACH_TAPS] = phase->taps;
        list[REACH_TAP] = phase->first;
        list[REACH_INPUT] = phase->taps == 0 ? 0 : tconv_folded_distance(axis, phase->first);
    }
    free(phases);
    return true;
}

static bool write_table(const struct depthwise *g, struct tconv_kernel_plan *kernel_plan)
{
    const struct tconv_folded *r = &g->folded;
    const size_t y_at = DEPTHWISE_LONGS, x_at = y_at + (size_t)r->y.stride * REACH_LONGS,
                 slices_at = x_at + (size_t)r->x.stride * REACH_LONGS;
    if (!tconv_kernel_plan_table(kernel_plan, slices_at + (size_t)tconv_folded_slices_longs(r)))
        return false;
    int64_t *t = kernel_plan->table;
    tconv_folded_write_numbers(r, g->blocks, 0, t);
    t[DEPTHWISE_ROWS] = g->item_rows;
    t[DEPTHWISE_POSITIONS] = g->item_positions;
    t[DEPTHWISE_TAP_STEP_X] = tconv_tap_step(&r->x);
    t[DEPTHWISE_Y_AT] = (int64_t)y_at;
    t[DEPTHWISE_X_AT] = (int64_t)x_at;
    t[DEPTHWISE_SLICES_AT] = (int64_t)slices_at;
    return write_axis(&r->y, t + y_at) && write_axis(&r->x, t + x_at) &&
           tconv_folded_write_slices(r, slices_at, t);
}

static tconv_status write(const struct tconv_request *request,
                          const struct tconv_candidate *candidate,
                          struct tconv_kernel_plan *kernel_plan, tconv_error *error)
{
    struct depthwise g;
    struct tconv_reason reason;
    prepare(request, &g, &reason);
    use_tile(&g, &candidate->tile);
    if (!write_table(&g, kernel_plan)) return tconv_fail_table(error, kernel_plan);
    struct tconv_launch *run = tconv_kernel_plan_run(kernel_plan, "tconv_depthwise");
    tconv_launch_option(run, "VW", g.vw);
    tconv_launch_option(run, "MW", g.mw);
    tconv_launch_option(run, "PX", g.px);
    tconv_launch_option(run, "MERGED", g.merged ? g.folded.x.stride : 0);
    if (g.merged) tconv_folded_taps_options(&g.folded, run);
    /* There is little to add: as long as outputs stay in the last cache, plain stores are
     * faster. */
    const bool large = tconv_folded_output_bytes(&g.folded) > g.folded.machine->l3;
    tconv_launch_option(run, "STREAM", large ? tconv_folded_point_stores(&g.folded) : 0);
    tconv_launch_items(run, 0, g.items, 1, request->device);
    TCONV_LAUNCH_ARGS(run, TCONV_ARG_DATA, TCONV_ARG_FILTER, TCONV_ARG_FLAGS, TCONV_ARGS_EPILOGUE,
                      TCONV_ARG_TABLE, TCONV_ARG_SHARE);
    tconv_folded_pack(kernel_plan, &g.folded, "taps", g.mw, g.blocks, run, request, TCONV_PACK_RAW);
    return TCONV_OK;
}

const struct tconv_algorithm tconv_depthwise = {
    .name = "depthwise_vector",
    .summary =
        "lanes are groups of one channel: channels-last depthwise layers; wide vectors: for CPUs",
    .source = "cpu/depthwise.cl",
    .packing = TCONV_PACK_RAW,
    .made_for = TCONV_FOR_VECTORS,
    .order = TCONV_ORDER_BY_PARAMETERS,
    .order_parameters = "mw",
    .parameters = {TCONV_TILE(vw), TCONV_TILE(mw), TCONV_TILE(px), TCONV_TILE(merged),
                   TCONV_TILE(rows), TCONV_TILE(positions)},
    .program_parameters = 4,
    .enumerate = enumerate,
    .write = write,
};
