/* SPDX-License-Identifier: Apache-2.0 */
/* The launches of tiled.c and matrix.c: their options, sizes and arguments, and the multiply-adds
 * that they issue. */
#include "algorithm/gpu/positions_internal.h"

#include "base/checked.h"
#include "gpu/copy_table.h"
#include "gpu/tiled_table.h"

#include <inttypes.h>
#include <stdio.h>

/* The first and the last position of a tile along each axis, as range_of of cl/gpu/tiled.cl has
 * it. */
static void range_of(const struct tconv_positions *g, int64_t tile, int64_t first[3],
                     int64_t last[3])
{
    int64_t a = tile * g->nt, b = tconv_min(a + g->nt, g->all_positions) - 1;
    for (int axis = 2; axis >= 0; axis--) {
        const int64_t positions = g->side[axis].positions;
        first[axis] = a % positions;
        last[axis] = b % positions;
        a /= positions;
        b /= positions;
        for (int inner = axis; a != b && inner < 3; inner++) {
            first[inner] = 0;
            last[inner] = g->side[inner].positions - 1;
        }
    }
}

/* True if a tap reaches the range of a tile along each axis, as tiled.cl decides. */
static bool reaches_range(const struct tconv_positions *g, const int64_t first[3],
                          const int64_t last[3], const int64_t *tap)
{
    for (int a = 0; a < 3; a++)
        if (last[a] + tap[a] < 0 || first[a] + tap[a] >= g->side[a].axis->input) return false;
    return true;
}

/* True if a tap reaches a position of a tile, as matrix.cl decides. Goes from row to row. */
static bool reaches_position(const struct tconv_positions *g, int64_t tile, const int64_t *tap)
{
    const int64_t width = g->side[2].positions;
    const int64_t end = tconv_min(g->all_positions, (tile + 1) * g->nt);
    for (int64_t at = tile * g->nt; at < end; at = (at / width + 1) * width) {
        const int64_t x = at % width, y = at / width % g->side[1].positions,
                      z = at / width / g->side[1].positions % g->side[0].positions;
        const int64_t last = x + tconv_min(width - x, end - at) - 1;
        if (z + tap[0] >= 0 && z + tap[0] < g->side[0].axis->input && y + tap[1] >= 0 &&
            y + tap[1] < g->side[1].axis->input && last + tap[2] >= 0 &&
            x + tap[2] < g->side[2].axis->input)
            return true;
    }
    return false;
}

/* Positions of the last tile that sub-groups without positions leave out. */
static int left_out(const struct tconv_positions *g)
{
    const int positions = (int)((g->all_positions - 1) % g->nt) + 1;
    return (g->nt - positions) / g->columns * g->columns;
}

/* Multiply-adds that are issued: whole stages and tiles, without the taps that reach no position of
 * a tile. If there are many tiles, few are at a border, and all taps count. With shared taps none
 * is skipped. */
static double issued(const struct tconv_positions *g, const int64_t *table)
{
    enum { MOST_PAIRS = 1 << 16 };
    const double each = (double)(tconv_ceil_div(g->folded.loops.in_channels, g->stage) * g->stage) *
                        (double)g->nt * (double)(g->blocks * g->mt) *
                        (double)g->folded.loops.groups;
    if (g->order.items > 0)
        return (g->order.taps - g->order.last_taps * left_out(g) / g->nt) * each;
    if (g->halo > 0 || (double)g->tiles * (double)g->list_taps > MOST_PAIRS)
        return (double)g->list_taps * (double)g->tiles * each;
    int64_t pairs = 0;
    const bool exact = g->packing == TCONV_PACK_WORDS;
    for (int64_t tile = 0; tile < g->tiles; tile++) {
        int64_t first[3], last[3];
        range_of(g, tile, first, last);
        for (int64_t i = 0; i < g->list_taps; i++) {
            const int64_t *tap = table + table[TILED_LIST_AT] + i * TAP_LONGS + TAP_Z;
            pairs += exact ? reaches_position(g, tile, tap) : reaches_range(g, first, last, tap);
        }
    }
    return (double)pairs * each;
}

static int64_t merged_phases(const struct tconv_side *side)
{
    return side->merged ? side->axis->stride : 1;
}

/* True if phases that are rows have different numbers of taps. */
static bool lacks_taps(const struct tconv_positions *g)
{
    bool lacks = false;
    for (int a = 0; a < 3; a++)
        lacks = lacks ||
                (g->side[a].merged && g->side[a].axis->kernel % g->side[a].axis->stride != 0);
    return lacks;
}

/* Options with which fewer instructions stand before the stages. The tiled algorithm does not have
 * them: its tiles take longer. */
static void write_short_cuts(const struct tconv_positions *p, struct tconv_launch *launch)
{
    const struct tconv_axis *z = p->side[0].axis;
    /* With plain data some compilers then need more instructions in the stages. */
    if (p->last && tconv_positions_even(p))
        tconv_launch_option(launch, "EVEN", 1);
    else if (p->last && tconv_positions_full_chunks(p) == 0)
        tconv_launch_option(launch, "ONE_CHUNK", 1);
    if (z->input == 1 && z->output == 1 && z->kernel == 1 && z->pad == 0)
        tconv_launch_option(launch, "FLAT", 1);
}

void tconv_positions_options(const struct tconv_positions *p, enum tconv_split split, int items,
                             struct tconv_launch *launch)
{
    tconv_launch_option(launch, "VW", 4);
    tconv_launch_option(launch, "ITEMS", items);
    tconv_launch_option(launch, "WHOLE", p->folded.loops.in_channels % p->stage == 0);
    tconv_launch_option(launch, "LAST", p->last);
    if (p->copy.elements > 0) tconv_launch_option(launch, "COPY", 1);
    if (p->halo > 0) tconv_launch_option(launch, "HALO", p->halo);
    tconv_launch_option(launch, "FOLDED_LAST", p->rows_last);
    if (p->order.items > 0) tconv_launch_option(launch, "SORTED", left_out(p) > 0 ? 2 : 1);
    if (p->packing == TCONV_PACK_WORDS) write_short_cuts(p, launch);
    tconv_launch_option(launch, "ROUNDS", p->most_taps > ROUND_TAPS);
    tconv_launch_option(launch, "LACKING", lacks_taps(p));
    tconv_launch_option(launch, "SPLIT", split);
    tconv_launch_option(launch, "EMPTY", p->all_phases > p->phases);
    tconv_launch_option(launch, "CONSTANT_TABLE", p->constant_table);
    tconv_launch_option(launch, "PZ", merged_phases(&p->side[0]));
    tconv_launch_option(launch, "PY", merged_phases(&p->side[1]));
    tconv_launch_option(launch, "PX", merged_phases(&p->side[2]));
    if (p->difference != 0) tconv_launch_option(launch, "DIFFERENCE", p->difference);
}

struct tconv_launch *tconv_positions_copy(const struct tconv_positions *p, int items,
                                          struct tconv_kernel_plan *kernel_plan)
{
    const struct tconv_copy *copy = &p->copy;
    if (copy->elements == 0) return NULL;
    kernel_plan->workspace_bytes = (uint64_t)copy->elements *
                                   tconv_type_size(p->folded.loops.data_type);
    struct tconv_launch *launch = tconv_kernel_plan_run(kernel_plan, "tconv_copy_points");
    launch->local[0] = (size_t)items;
    launch->divides = true;
    launch->global[0] = (size_t)items * (size_t)tconv_ceil_div(copy->points, COPIED_POINTS) *
                        (size_t)tconv_copy_channel_tiles(copy, p->folded.loops.data_type) *
                        (size_t)(copy->elements / copy->points / copy->row);
    TCONV_LAUNCH_ARGS(launch, TCONV_ARG_DATA, TCONV_ARG_WORKSPACE, TCONV_ARG_TABLE);
    return launch;
}

struct tconv_launch *tconv_positions_run(const struct tconv_positions *p, const char *kernel,
                                         int items, struct tconv_kernel_plan *kernel_plan)
{
    struct tconv_launch *run = tconv_kernel_plan_run(kernel_plan, kernel);
    run->local[0] = (size_t)items;
    run->divides = true;
    run->macs = issued(p, kernel_plan->table);
    if (p->difference != 0)
        run->macs *= (double)tconv_positions_products(p) / (double)(p->merged * p->merged);
    run->global[0] = (size_t)items * (size_t)tconv_positions_groups(p);
    if (p->parts == 1) {
        const enum tconv_arg data = p->copy.elements > 0 ? TCONV_ARG_WORKSPACE : TCONV_ARG_DATA;
        TCONV_LAUNCH_ARGS(run, data, TCONV_ARG_FILTER, TCONV_ARG_FLAGS, TCONV_ARGS_EPILOGUE,
                          TCONV_ARG_TABLE);
        return run;
    }
    kernel_plan->workspace_bytes = (uint64_t)tconv_positions_workspace_bytes(p);
    TCONV_LAUNCH_ARGS(run, TCONV_ARG_DATA, TCONV_ARG_FILTER, TCONV_ARG_FLAGS, TCONV_ARG_WORKSPACE,
                      TCONV_ARG_TABLE);
    return run;
}

struct tconv_launch *tconv_positions_finish(const struct tconv_positions *p, const char *kernel,
                                            int items, int groups,
                                            struct tconv_kernel_plan *kernel_plan)
{
    struct tconv_launch *finish = tconv_kernel_plan_run(kernel_plan, kernel);
    finish->local[0] = (size_t)items;
    finish->global[0] = (size_t)items * (size_t)tconv_positions_part_groups(p) * (size_t)groups;
    TCONV_LAUNCH_ARGS(finish, TCONV_ARG_DATA, TCONV_ARG_FILTER, TCONV_ARG_FLAGS,
                      TCONV_ARG_WORKSPACE, TCONV_ARGS_EPILOGUE, TCONV_ARG_TABLE);
    return finish;
}

struct tconv_launch *tconv_positions_fill(const struct tconv_positions *p, int items,
                                          struct tconv_kernel_plan *kernel_plan)
{
    if (p->all_phases == p->phases) return NULL;
    struct tconv_launch *fill = tconv_kernel_plan_run(kernel_plan, "tconv_rows_fill");
    fill->local[0] = (size_t)items;
    fill->divides = true;
    fill->global[0] = (size_t)items * (size_t)tconv_positions_phase_tiles(p) *
                      (size_t)(p->all_phases - p->phases);
    TCONV_LAUNCH_ARGS(fill, TCONV_ARGS_EPILOGUE, TCONV_ARG_TABLE);
    return fill;
}

void tconv_positions_pack(const struct tconv_positions *p, const char *kind,
                          const struct tconv_launch *run, const struct tconv_request *request,
                          struct tconv_kernel_plan *kernel_plan)
{
    const struct tconv_loops *loops = request->loops;
    const tconv_device_info *device = request->device;
    char name[64];
    snprintf(name, sizeof name, "%s%s %" PRId64 "x%" PRId64 "x%" PRId64, kind,
             p->rows_last ? " last" : "", merged_phases(&p->side[0]), merged_phases(&p->side[1]),
             merged_phases(&p->side[2]));
    tconv_folded_layout(kernel_plan, name, &p->folded);
    const size_t bytes = tconv_packed_bytes(request, p->packing);
    kernel_plan->filter_bytes = (uint64_t)tconv_positions_filter_elements(p, bytes) * bytes;
    struct tconv_launch *clear = tconv_kernel_plan_pack(kernel_plan, "tconv_rows_clear");
    snprintf(clear->options, sizeof clear->options, "%s", run->options);
    tconv_launch_items(clear, 0, loops->groups, 64, device);
    TCONV_LAUNCH_ARGS(clear, TCONV_ARG_FLAGS, TCONV_ARG_TABLE);
    struct tconv_launch *pack = tconv_kernel_plan_pack(kernel_plan, "tconv_rows_pack");
    snprintf(pack->options, sizeof pack->options, "%s", run->options);
    tconv_launch_items(pack, 0, p->matrix_rows, 64, device);
    tconv_launch_items(pack, 1, p->packed_channels, 1, device);
    tconv_launch_items(pack, 2, loops->groups * p->list_taps, 1, device);
    TCONV_LAUNCH_ARGS(pack, TCONV_ARG_WEIGHTS, TCONV_ARG_FILTER, TCONV_ARG_FLAGS, TCONV_ARG_TABLE);
    if (p->difference == 0) return;
    struct tconv_launch *products = tconv_kernel_plan_pack(kernel_plan, "tconv_difference_pack");
    snprintf(products->options, sizeof products->options, "%s", run->options);
    tconv_launch_items(products, 0, tconv_ceil_div(loops->out_channels, 4) * 4, 64, device);
    tconv_launch_items(products, 1, loops->in_channels, 1, device);
    tconv_launch_items(products, 2, loops->groups * tconv_positions_other_taps(p), 1, device);
    TCONV_LAUNCH_ARGS(products, TCONV_ARG_FILTER, TCONV_ARG_TABLE);
}
