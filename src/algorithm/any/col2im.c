/* SPDX-License-Identifier: Apache-2.0 */
/* The tiled col2im algorithm: parameters, cost and kernel plan of cl/any/col2im.cl. */
#include "algorithm/registry.h"

#include "algorithm/any/folded.h"
#include "algorithm/cost/cpu.h"
#include "algorithm/cost/gpu.h"
#include "any/col2im_table.h"
#include "base/checked.h"

#include <stdio.h>
#include <stdlib.h>

enum { WIDEST_TILE = 32 }; /* two vectors of 16 */

/* The parameters of a kernel, and what follows from them. */
struct col2im {
    struct tconv_folded folded;
    int vw, nx, mw, mc, group;
    int64_t phase_taps; /* the most that any phase has */
    int64_t width;      /* inputs of a column in local memory */
    int64_t part_phases, parts;
    int64_t columns, row; /* COL2IM_COLUMNS, COL2IM_ROW */
    int64_t blocks;
    int64_t positions, inputs, tiles; /* as in cl/any/col2im_table.h */
};

/* Elements of local memory that a work-group may take. */
static int64_t capacity(const struct col2im *g, bool vector, const tconv_device_info *device)
{
    /* CPUs: the columns live in the first-level cache. GPUs: room for several groups on a compute
     * unit. */
    const uint64_t wanted = vector ? 32 << 10 : 16 << 10;
    return (int64_t)((wanted < device->local_memory ? wanted : device->local_memory) /
                     g->folded.acc_bytes);
}

/* Elements of a column in local memory besides the inputs. On CPUs: room for a vector of the widest
 * kind on both sides. On GPUs vectors have one lane. There the whole column has an odd number of
 * elements (widths are even), so that work-items that clear or read neighbouring columns use
 * different banks. */
static int64_t margins(bool vector)
{
    return vector ? 2 * WIDEST_TILE : 3;
}

/* Divides the phases into parts that fit into local memory with `width` inputs of each column and
 * margins. The result may depend on channels, kernel, stride and dilation, but not on extents and
 * pads, so that packed filters and programs are shared. False if not even one phase fits. */
static bool divide(struct col2im *g, bool vector, int64_t width, int64_t room)
{
    const struct tconv_axis *x = &g->folded.x;
    g->width = width;
    g->row = width + margins(vector);
    const int64_t most_columns = room / g->row / g->mw * g->mw;
    g->part_phases = tconv_min(x->stride, most_columns / (g->phase_taps * g->mc));
    if (g->part_phases < 1) return false;
    g->parts = tconv_ceil_div(x->stride, g->part_phases);
    g->columns = tconv_ceil_div(g->part_phases * g->phase_taps * g->mc, g->mw) * g->mw;
    g->blocks = tconv_ceil_div(g->folded.loops.out_channels, g->mc);
    return g->columns <= most_columns;
}

/* The largest distance between two inputs of one position, for any pads. */
static int64_t widest_reach(const struct tconv_axis *x)
{
    return (x->kernel - 1) * x->dilation / x->stride + 1;
}

/* Work-groups of a launch. */
static double groups_of(const struct col2im *g)
{
    const struct tconv_loops *loops = &g->folded.loops;
    return (double)loops->batch * (double)loops->groups * (double)g->blocks *
           (double)g->folded.output_rows * (double)(g->tiles * g->parts);
}

/* The cost of one choice, in useful multiply-adds at full speed. */
static double cost_of(const struct col2im *g, bool vector)
{
    const struct tconv_machine *m = g->folded.machine;
    const struct tconv_folded *r = &g->folded;
    const struct tconv_loops *loops = &r->loops;
    const double tile = (double)g->vw * g->nx;
    const double inputs = (double)g->tiles *
                          (double)tconv_ceil_div(tconv_min(g->inputs, r->x.input), g->vw * g->nx) *
                          tile;
    const double columns =
        (double)g->parts *
        (double)tconv_ceil_div((r->x.kernel + g->parts - 1) / g->parts * g->mc, g->mw) * g->mw;
    const double images = (double)loops->batch * (double)loops->groups;
    const double adds = images * (double)g->blocks * tconv_folded_slices(r) *
                        tconv_folded_pairs(&r->y) * inputs * columns * (double)loops->in_channels;
    const double lanes = vector && g->vw < m->lanes ? m->lanes / g->vw : 1;
    const double loads = 1 + m->col2im_load * (g->mw + g->nx) / (g->mw * g->nx);
    const double outputs = images * (double)loops->out_channels * (double)r->output_rows *
                           (double)r->x.output;
    const double tap = vector ? m->col2im_tap : m->col2im_group_tap;
    const double store = vector ? m->col2im_store : m->col2im_group_store;
    const double add_up = (double)g->phase_taps * tap + store;
    const double zeros = images * (double)g->blocks * (double)r->output_rows *
                         (double)(g->tiles * g->parts * g->columns) * tile *
                         (vector ? m->col2im_zero : 0);
    const double items = groups_of(g);
    const double cost = adds * lanes * loads * (g->nx == 1 ? m->col2im_narrow : 1) +
                        outputs * add_up + zeros;
    return vector ? tconv_cpu_launch_cost(r, cost + m->col2im_item * items, 1 / items) : cost;
}

/* Picks the numbers that the packed filter depends on, for rows of any length. False if nothing
 * fits. */
static bool choose_packing(struct col2im *g, bool vector, const tconv_device_info *device)
{
    static const int channels[] = {1, 2, 3, 4, 6, 8, 12, 16};
    static const int widths[] = {64, 32, 96, 128, 192, 256, 384, 512, 768, 1024, 2048};
    const double load = g->folded.machine->col2im_load;
    const struct tconv_axis *x = &g->folded.x;
    const int sums = vector ? tconv_folded_accumulators(&g->folded) : 16, nx = vector ? 2 : 1;
    const int64_t room = capacity(g, vector, device), reach = widest_reach(x);
    struct col2im best = *g;
    double least = 0;
    bool found = false;
    for (g->mw = 1; g->mw <= 16 && g->mw * nx <= sums; g->mw++)
        for (size_t c = 0; c < sizeof channels / sizeof *channels; c++)
            for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
                g->mc = channels[c];
                if ((g->mc > 1 && g->mc > g->folded.loops.out_channels) || widths[w] <= reach ||
                    !divide(g, vector, widths[w], room))
                    continue;
                /* For each output of a channel: columns computed, halo included, and their zeros
                 * and sums. */
                const double halo = (double)widths[w] / (double)(widths[w] - reach);
                const double filled = (double)(g->parts * g->columns) / (double)(x->kernel * g->mc);
                const double padded = (double)(g->blocks * g->mc) /
                                      (double)g->folded.loops.out_channels;
                const double adds = filled * padded * halo *
                                    (1 + load * (g->mw + nx) / (g->mw * nx));
                const double work = (double)g->folded.loops.in_channels *
                                    (double)(g->folded.z.kernel * g->folded.y.kernel);
                const double cost = work * adds +
                                    2.0 * (double)margins(vector) / widths[w] * filled * padded;
                if (!found || cost < least) {
                    found = true;
                    least = cost;
                    best = *g;
                }
            }
    *g = best;
    return found;
}

/* Picks the vectors: as wide as the row of inputs allows. They may depend on everything. */
static void choose_vectors(struct col2im *g, bool vector)
{
    const struct tconv_folded *r = &g->folded;
    g->vw = vector ? tconv_folded_widest(r) : 1;
    while (g->vw > r->x.input) g->vw /= 2;
    g->nx = vector && 2 * g->vw <= r->x.input &&
                    (r->x.input % (2 * g->vw) == 0 || r->x.input >= 6 * g->vw)
                ? 2
                : 1;
}

/* Derives numbers from the packing and the vectors. */
static void derive(struct col2im *g)
{
    const struct tconv_folded *r = &g->folded;
    const int64_t reach = r->high - r->low;
    g->positions = tconv_min(g->width - reach, r->positions);
    g->inputs = g->positions + reach;
    g->tiles = tconv_ceil_div(r->positions, g->positions);
}

/* Loop iterations of a work-item: zeros, columns, overlap-add. */
static double iterations(const struct col2im *g)
{
    const double rows = (double)(g->folded.z.kernel * g->folded.y.kernel);
    const int64_t jobs = g->columns / g->mw * tconv_ceil_div(g->inputs, (int64_t)g->vw * g->nx);
    return (double)(tconv_ceil_div(g->columns, g->group) * g->row) +
           (double)tconv_ceil_div(jobs, g->group) * rows * (double)g->folded.loops.in_channels +
           (double)(g->part_phases * tconv_ceil_div(g->mc * g->positions, g->group) *
                    (g->phase_taps + 1));
}

/* Sets what all candidates have in common. */
static bool prepare(const struct tconv_request *request, bool vector, struct col2im *g,
                    struct tconv_reason *reason)
{
    *g = (struct col2im){0};
    if (!tconv_fold_rows(request, &g->folded, reason)) return false;
    g->phase_taps = tconv_most_taps(&g->folded.x);
    g->group = vector ? 1 : (int)tconv_group_allowed(64, 0, request->device);
    return true;
}

/* False with a reason if the table or the filter is too large. */
static bool check_sizes(const struct col2im *g, const struct tconv_request *request,
                        struct tconv_reason *reason)
{
    /* Each part with taps may have a strip that is not full. */
    const double columns = (double)g->folded.x.kernel * (g->mc + g->mw - 1);
    const double blocks = (double)g->folded.loops.groups * (double)g->blocks;
    const double kernel_rows = (double)g->folded.z.kernel * (double)g->folded.y.kernel;
    return tconv_folded_table_fits(
               &g->folded, COL2IM_LONGS - FOLDED_LONGS + (double)g->parts * PART_LONGS + columns,
               reason) &&
           tconv_filter_addressable(blocks * kernel_rows * columns *
                                        (double)g->folded.loops.in_channels,
                                    tconv_packed_bytes(request, TCONV_PACK_SUMMED), reason);
}

static bool is_vector(const struct tconv_algorithm *algorithm)
{
    return algorithm->made_for == TCONV_FOR_VECTORS;
}

static bool enumerate(const struct tconv_request *request, struct tconv_candidates *candidates,
                      struct tconv_reason *reason)
{
    const bool vector = is_vector(candidates->algorithm);
    const tconv_device_info *device = request->device;
    struct col2im g;
    if (!prepare(request, vector, &g, reason)) return false;
    if (!choose_packing(&g, vector, device))
        return tconv_refuse(reason, "the columns of one phase do not fit into local memory");
    if (!check_sizes(&g, request, reason)) return false;
    choose_vectors(&g, vector);
    derive(&g);
    if (groups_of(&g) * g.group > INT32_MAX)
        return tconv_refuse(reason, "more work-items than its 32-bit indices can count");
    if (vector ? tconv_folded_too_long(iterations(&g), device)
               : tconv_folded_group_too_long(iterations(&g), device))
        return tconv_refuse(reason, "no part of the work is small enough for a work-item");
    const struct tconv_tile tile = {
        .vw = g.vw, .nx = g.nx, .mw = g.mw, .mc = g.mc, .width = (int)g.width};
    const double cost = cost_of(&g, vector);
    tconv_candidates_add(
        candidates, &tile,
        vector ? cost : tconv_gpu_portable_cost(request, cost, g.folded.machine->col2im_wait, 0));
    return true;
}

static void use_tile(struct col2im *g, bool vector, const struct tconv_tile *tile,
                     const tconv_device_info *device)
{
    g->vw = tile->vw;
    g->nx = tile->nx;
    g->mw = tile->mw;
    g->mc = tile->mc;
    divide(g, vector, tile->width, capacity(g, vector, device));
    derive(g);
}

/* Multiply-adds that are issued for the columns of `strips`, the strips of all parts. */
static double issued(const struct col2im *g, int64_t strips)
{
    const struct tconv_folded *r = &g->folded;
    const int64_t vector = (int64_t)g->vw * g->nx;
    double inputs = 0; /* of all tiles of a row: whole vectors, up to the end of the data */
    for (int64_t tile = 0; tile < g->tiles; tile++) {
        const int64_t low = tile * g->positions + r->low;
        const int64_t from = tconv_max(low, 0), to = tconv_min(low + g->inputs, r->x.input);
        if (from < to) inputs += (double)(tconv_ceil_div(to - from, vector) * vector);
    }
    return (double)r->loops.batch * (double)r->loops.groups * (double)g->blocks *
           tconv_folded_slices(r) * tconv_folded_pairs(&r->y) * inputs * (double)(strips * g->mw) *
           (double)r->loops.in_channels;
}

/* Writes parts and columns, and returns the number of strips. If both are NULL it only counts. */
static int64_t write_parts(const struct col2im *g, const struct tconv_phase *phases, int64_t *parts,
                           int64_t *columns)
{
    const struct tconv_axis *x = &g->folded.x;
    int64_t strips = 0, taps_before = 0;
    for (int64_t p = 0; p < g->parts; p++) {
        const int64_t first = p * g->part_phases,
                      last = tconv_min(first + g->part_phases, x->stride);
        int64_t taps = 0;
        for (int64_t c = first; c < last; c++) {
            for (int64_t j = 0; columns != NULL && j < phases[c].taps; j++)
                for (int m = 0; m < g->mc; m++)
                    columns[strips * g->mw + (taps + j) * g->mc + m] =
                        (phases[c].first + j * tconv_tap_step(x)) * g->mc + m;
            taps += phases[c].taps;
        }
        const int64_t part_strips = tconv_ceil_div(taps * g->mc, g->mw);
        if (columns != NULL) {
            for (int64_t i = taps * g->mc; i < part_strips * g->mw; i++)
                columns[strips * g->mw + i] = -1;
            int64_t *part = parts + p * PART_LONGS;
            part[PART_STRIP] = strips;
            part[PART_STRIPS] = part_strips;
            part[PART_PHASE] = first;
            part[PART_PHASES] = last - first;
            part[PART_PHASE_TAPS] = taps_before;
        }
        strips += part_strips;
        taps_before += taps;
    }
    return strips;
}

static bool write_table(const struct col2im *g, struct tconv_kernel_plan *kernel_plan)
{
    struct tconv_phase *phases = tconv_phases_of(&g->folded.x);
    if (phases == NULL) return false;
    const int64_t strips = write_parts(g, phases, NULL, NULL);
    const size_t parts_at = COL2IM_LONGS, columns_at = parts_at + (size_t)g->parts * PART_LONGS;
    const size_t own = columns_at + (size_t)(strips * g->mw) - FOLDED_LONGS;
    bool written = tconv_kernel_plan_table(kernel_plan, tconv_folded_table_size(&g->folded, own));
    if (written) {
        int64_t *t = kernel_plan->table;
        t[COL2IM_POSITIONS] = g->positions;
        t[COL2IM_INPUTS] = g->inputs;
        t[COL2IM_COLUMNS] = g->columns;
        t[COL2IM_ROW] = g->row;
        t[COL2IM_STRIPS] = strips;
        t[COL2IM_PARTS] = g->parts;
        t[COL2IM_PARTS_AT] = (int64_t)parts_at;
        t[COL2IM_COLUMNS_AT] = (int64_t)columns_at;
        write_parts(g, phases, t + parts_at, t + columns_at);
        written = tconv_folded_write_table(&g->folded, g->blocks, g->tiles, own, t);
    }
    free(phases);
    return written;
}

/* Both kernels are built with the same options, so that they share a program. */
static void write_options(struct tconv_launch *launch, const struct col2im *g)
{
    tconv_launch_option(launch, "VW", g->vw);
    tconv_launch_option(launch, "NX", g->nx);
    tconv_launch_option(launch, "MW", g->mw);
    tconv_launch_option(launch, "MC", g->mc);
    tconv_launch_option(launch, "WG", g->group);
}

static tconv_status write(const struct tconv_request *request,
                          const struct tconv_candidate *candidate,
                          struct tconv_kernel_plan *kernel_plan, tconv_error *error)
{
    struct col2im g;
    struct tconv_reason reason;
    const bool vector = is_vector(candidate->algorithm);
    prepare(request, vector, &g, &reason);
    use_tile(&g, vector, &candidate->tile, request->device);
    const struct tconv_loops *loops = request->loops;
    if (!write_table(&g, kernel_plan)) return tconv_fail_table(error, kernel_plan);

    const int64_t kernel_rows = g.folded.z.kernel * g.folded.y.kernel,
                  all_blocks = loops->groups * g.blocks;
    const int64_t strips = kernel_plan->table[COL2IM_STRIPS];
    char name[80];
    snprintf(name, sizeof name, "col2im mw%d mc%d part%lld s%lld d%lld", g.mw, g.mc,
             (long long)g.part_phases, (long long)g.folded.x.stride,
             (long long)g.folded.x.dilation);
    tconv_folded_layout(kernel_plan, name, &g.folded);
    kernel_plan->filter_bytes =
        (uint64_t)(all_blocks * kernel_rows * strips * loops->in_channels * g.mw) *
        tconv_packed_bytes(request, TCONV_PACK_SUMMED);

    struct tconv_launch *pack = tconv_kernel_plan_pack(kernel_plan, "tconv_col2im_pack");
    write_options(pack, &g);
    tconv_launch_items(pack, 0, loops->in_channels, 32, request->device);
    tconv_launch_items(pack, 1, kernel_rows * strips, 1, request->device);
    tconv_launch_items(pack, 2, all_blocks, 1, request->device);
    TCONV_LAUNCH_ARGS(pack, TCONV_ARG_WEIGHTS, TCONV_ARG_FILTER, TCONV_ARG_TABLE, TCONV_ARG_SHARE);

    struct tconv_launch *run = tconv_kernel_plan_run(kernel_plan, "tconv_col2im");
    write_options(run, &g);
    tconv_launch_items(run, 0, (int64_t)groups_of(&g) * g.group, (size_t)g.group, request->device);
    TCONV_LAUNCH_ARGS(run, TCONV_ARG_DATA, TCONV_ARG_FILTER, TCONV_ARGS_EPILOGUE, TCONV_ARG_TABLE,
                      TCONV_ARG_LOCAL, TCONV_ARG_SHARE);
    run->local_bytes = (size_t)(g.columns * g.row) * g.folded.acc_bytes;
    run->macs = issued(&g, strips);
    return TCONV_OK;
}

/* The common members of both algorithms. */
#define COMMON                                                                                     \
    .source = "any/col2im.cl", .stages_locally = true,                                             \
    .parameters = {TCONV_TILE(vw), TCONV_TILE(nx), TCONV_TILE(mw), TCONV_TILE(mc),                 \
                   TCONV_TILE(width)},                                                             \
    .program_parameters = 4, .enumerate = enumerate, .write = write

const struct tconv_algorithm tconv_col2im_vector = {
    .name = "col2im_vector",
    .summary = "columns of a tile in local memory, then a gather overlap-add; wide vectors, one "
               "work-item a group: for CPUs",
    .made_for = TCONV_FOR_VECTORS,
    COMMON,
};

const struct tconv_algorithm tconv_col2im_group = {
    .name = "col2im_group",
    .summary = "columns of a tile in local memory, then a gather overlap-add; a work-group shares "
               "the tile: for GPUs",
    .made_for = TCONV_FOR_LANES,
    COMMON,
};
