/* SPDX-License-Identifier: Apache-2.0 */
/* The thin algorithm: parameters, cost and kernel plan of cl/cpu/thin.cl. */
#include "algorithm/registry.h"

#include "algorithm/any/folded.h"
#include "algorithm/cost/cpu.h"
#include "algorithm/cpu/division.h"
#include "base/checked.h"
#include "cpu/thin_table.h"

enum {
    MERGED_STRIDE = 4,
    MERGED_KERNEL = 16,
    LEAST_LOOPED = 3,    /* taps along x that are a loop */
    LEAST_BLOCK = 8,     /* output channels of such a layer */
    MOST_CHANNELS = 16,  /* MW */
    MOST_VECTORS = 4,    /* NX */
    TOGETHER = 8 << 10,  /* bytes of inputs that are copied at a time */
    MOST_PLANES = 64,    /* of a work-item that takes several images */
    MOST_COUNTS = 64,    /* numbers of planes that are tried */
    LONG_ROW = 24 << 10, /* bytes of an output row that is better stored with non-temporal stores */
};

/* The parameters of a kernel, and the numbers that follow from them. */
struct thin {
    struct tconv_folded folded;
    int vw, nx, mw, ry;
    int64_t blocks, tiles; /* of a row */
    /* Bands of ry rows; the first begins `lacking` rows before the output. */
    int64_t lacking, bands;
    int64_t item_planes, item_bands, item_tiles;
    int64_t together;        /* images (groups of a batch item) that are copied at a time */
    int64_t input_rows, row; /* in local memory */
    int64_t items;
    uint64_t local_bytes;
};

/* Cycles of adding the taps along x of `channels` input channels to a row of a tile: the longest of
 * (multiply-adds or loads, plus the loops themselves, `begin` for the first channel), chains of
 * multiply-adds, and issue (tconv_folded_issue). */
static double adding_cycles(const struct thin *g, double channels, double begin)
{
    const struct tconv_machine *m = g->folded.machine;
    const double k = (double)g->folded.x.kernel,
                 distances = (double)(g->folded.high - g->folded.low + 1);
    const double adds = k * g->mw * g->nx / m->adds;
    const double inputs = (distances < k ? distances : k) * g->nx / g->ry;
    const double loads = (k * g->mw + inputs) / m->loads;
    const double issue = tconv_folded_issue(
        &g->folded, k * g->mw * (g->nx + 1) + m->crossing * inputs + m->round / g->ry);
    const double chain = m->latency * k / (double)g->folded.x.stride / g->ry;
    const double most = adds > loads ? adds : loads;
    const double cycles = g->mw > 1 && g->nx > 1
                              ? (most + m->thin_block) * m->thin_block_factor
                              : (most + m->thin_row / g->ry) * (1 + m->thin_row_factor / g->ry);
    const double issued = channels * (cycles > issue ? cycles : issue) + begin;
    return issued > channels * chain ? issued : channels * chain;
}

/* The most sums of a tile. Compilers keep fewer sums in registers if they load the inputs for
 * several rows of the filter in advance. */
static int most_sums(const struct thin *g)
{
    const int sums = tconv_folded_accumulators(&g->folded);
    return g->ry > 1 ? (int)(sums * g->folded.machine->thin_rows) : sums;
}

/* Chooses the rows of a band. Several rows share their loads, which pays if a block is one channel;
 * their sums must stay in registers. */
static int choose_rows(const struct thin *g)
{
    const struct tconv_axis *y = &g->folded.y;
    struct thin several = *g;
    several.ry = y->stride == 4 ? 2 : (int)y->stride;
    if (g->mw > 1 || y->dilation > 1 || y->kernel < y->stride || y->stride > MERGED_STRIDE ||
        several.ry * (int)g->folded.x.stride > most_sums(&several))
        return 1;
    return several.ry;
}

/* Cycles of waiting, for an input channel: for inputs, which each block of one channel reads again
 * from the second cache, and for weights that do not stay in the first cache until the next
 * tile. */
static double fetch_cycles(const struct thin *g)
{
    const struct tconv_machine *m = g->folded.machine;
    const double k = (double)g->folded.x.kernel, bytes = k * g->mw * (double)g->folded.acc_bytes;
    const double inputs = g->mw == 1 && g->folded.loops.out_channels > 1 ? m->thin_again * k * g->nx
                                                                         : 0;
    const double weights = bytes * (double)g->folded.loops.in_channels >
                                   m->thin_held_weights * m->l1
                               ? bytes / m->line * m->thin_weights
                               : 0;
    return inputs + weights;
}

/* True if the taps along x are unrolled, which makes a program for each kernel and dilation. With
 * stride 1 a tap does not decide to which accumulators it is added. A loop over taps then takes no
 * time beside the additions if there are several taps and input channels, and registers for blocks
 * of many channels: with 8 or 16 accumulators it takes a tenth (AVX-512). */
static bool unrolls(const struct thin *g)
{
    const struct tconv_loops *loops = &g->folded.loops;
    return g->folded.x.stride > 1 || g->folded.x.kernel < LEAST_LOOPED || loops->in_channels == 1 ||
           loops->out_channels < LEAST_BLOCK ||
           tconv_folded_accumulators(&g->folded) < 2 * LEAST_BLOCK;
}

/* Chooses MW. It may depend on channels, kernel, stride and dilation, not on extents and pads, so
 * that packed filters are shared. If taps are not unrolled, it depends on channels alone, so that
 * layers of all kernels share a program; blocks are then as large as the sums of short kernels
 * allow, also where their weights come from the second cache. */
static int choose_channels(const struct thin *g)
{
    const int64_t channels = g->folded.loops.out_channels;
    struct thin one = *g;
    one.ry = 1;
    one.folded.x.pad = 0; /* any pad will do, if it is the same for all layers */
    if (!unrolls(g)) {
        one.folded.x.kernel = LEAST_LOOPED;
        one.folded.x.dilation = 1;
    }
    one.folded.low = tconv_folded_distance(&one.folded.x, one.folded.x.kernel - 1);
    one.folded.high = tconv_folded_distance(&one.folded.x, 0);
    int best = 1;
    double least = 0;
    for (one.mw = 1; one.mw <= MOST_CHANNELS && one.mw <= channels; one.mw++)
        for (one.nx = 1; one.nx <= MOST_VECTORS &&
                         (one.mw * one.nx == 1 || one.nx * one.mw * (int)g->folded.x.stride <=
                                                      tconv_folded_accumulators(&g->folded));
             one.nx++) {
            const double cost =
                (double)tconv_ceil_div(channels, one.mw) *
                (adding_cycles(&one, 1, 0) + (unrolls(g) ? fetch_cycles(&one) : 0)) / one.nx;
            if (least == 0 || cost < least) {
                least = cost;
                best = one.mw;
            }
        }
    return best;
}

/* The most input rows of one z that `bands` neighbouring bands read. */
static int64_t input_rows(const struct thin *g, int64_t bands)
{
    const struct tconv_axis *y = &g->folded.y;
    const int64_t rows = bands * g->ry, span = (y->kernel - 1) * y->dilation + 1;
    if (g->ry == 1) return tconv_min(tconv_ceil_div(rows + span - 1, y->stride), y->input);
    int64_t most = 0;
    for (int64_t r = 0; r < y->stride; r += g->ry) /* rows at which a band may begin */
        most = tconv_max(most, tconv_floor_div(r + rows - 1, y->stride) -
                                   tconv_floor_div(r - span, y->stride));
    return tconv_min(most, y->input);
}

/* Cycles that each block waits for a byte of its inputs. Inputs come from the second cache unless
 * they are few. If rows are long, they are too far apart to be prefetched. */
static double waiting_cycles(const struct thin *g)
{
    const struct tconv_machine *m = g->folded.machine;
    const bool far_apart = (double)g->row * (double)g->folded.acc_bytes > m->thin_ahead;
    if ((double)g->local_bytes <= m->l1) return 0;
    return far_apart ? m->thin_far : (double)g->local_bytes > 2 * m->l1 ? m->thin_near : 0;
}

/* True if the next input rows are prefetched, because the data do not stay in a cache. */
static bool prefetches(const struct thin *g)
{
    return tconv_folded_data_bytes(&g->folded) > g->folded.machine->l2;
}

/* Cycles of copying an input row to local memory: from a cache, or from memory after a prefetch. */
static double copy_cycles(const struct thin *g)
{
    const double vectors = (double)g->row / g->vw;
    const struct tconv_machine *m = g->folded.machine;
    return prefetches(g) ? m->thin_ahead_begin + m->thin_ahead_copy * vectors
                         : m->thin_copy_begin + m->thin_copy * vectors;
}

/* Cycles of interleaving phases and storing a vector. */
static double store_cycles(const struct thin *g)
{
    const struct tconv_machine *m = g->folded.machine;
    const int64_t stride = g->folded.x.stride;
    return stride == 1                  ? m->thin_store_one
           : stride == 3 || stride == 8 ? m->thin_store_odd
                                        : m->thin_store_even;
}

/* The cost of a tile, in multiply-adds at full speed. */
static double cost_of(const struct thin *g)
{
    const struct tconv_machine *m = g->folded.machine;
    const struct tconv_folded *r = &g->folded;
    const struct tconv_loops *loops = &r->loops;
    const double planes = (double)loops->batch * (double)loops->groups * (double)g->blocks;
    const double in = (double)loops->in_channels, tiles = (double)g->tiles;
    const double pairs = tconv_folded_slices(r) * tconv_folded_pairs(&r->y); /* rows of taps */
    const double adds = planes * tiles * pairs * adding_cycles(g, in, m->thin_begin / g->ry);
    const double stores = planes * tiles * (double)r->output_rows *
                          (m->thin_store_begin + m->thin_store_band / g->ry +
                           store_cycles(g) * g->mw * g->nx * (double)r->x.stride);
    /* The end of a row that does not fill a vector is stored in fours and one by one, unless the
     * last tile overlaps the one before. It mostly does if it may. */
    const int64_t left = g->item_tiles > 1 && r->x.output % r->x.stride == 0 ? 0
                                                                             : r->x.output % g->vw;
    const double ends = planes / (double)g->blocks * (double)loops->out_channels *
                        (double)r->output_rows * (double)(left > 0 ? 3 + left / 4 + left % 4 : 0);
    const double waits = planes * pairs * in * (double)tconv_ceil_div(g->tiles, g->item_tiles) *
                         (double)g->row * (double)r->acc_bytes * waiting_cycles(g);
    const double bands = (double)(tconv_ceil_div(g->tiles, g->item_tiles) *
                                  tconv_ceil_div(g->bands, g->item_bands)); /* of one z */
    const double copies = planes / (double)tconv_min(g->blocks, g->item_planes) * bands *
                          tconv_folded_slices(r) * (double)g->input_rows * in * copy_cycles(g);
    const double per_plane = planes * bands * (double)r->z.output * m->thin_plane /
                             (double)g->together;
    const double items = (double)g->items;
    const double cycles = adds + stores + ends + waits + copies + per_plane + items * m->thin_item;
    return tconv_cpu_launch_cost(r, cycles * m->adds * m->lanes, 1 / items);
}

/* Loop iterations of a work-item: copying input rows, adding, storing the ends of rows, all with
 * care. */
static double iterations(const struct thin *g)
{
    const struct tconv_folded *r = &g->folded;
    const double in = (double)r->loops.in_channels, taps_z = (double)tconv_folded_taps_z(r);
    const double taps_y = (double)tconv_most_taps(&r->y);
    const double tile = (double)g->mw * g->nx * g->vw * (double)r->x.stride;
    return (double)g->item_planes *
           (taps_z * (double)g->input_rows * in * (double)g->row +
            (double)(g->item_bands * g->ry * g->item_tiles) *
                (taps_z * taps_y * (in + 4) + tile * (1 + tconv_folded_exact_loops(r))));
}

/* Elements of an input row in local memory: what its tiles read, beginning at a vector's boundary
 * (lead_of in cl/cpu/thin.cl). */
static int64_t row_length(const struct thin *g)
{
    const int64_t low = g->folded.low,
                  inputs = g->item_tiles * g->vw * g->nx + g->folded.high - low;
    return tconv_ceil_div(tconv_mod(low, g->vw) + inputs, g->vw) * g->vw;
}

/* Lists how many planes a work-item may take: an equal part of an image, or 1, 2, 4, ... whole
 * images, so that input rows are copied once for each image. Returns the length of the list. */
static int plane_counts(int64_t planes, int64_t blocks, int64_t counts[MOST_COUNTS])
{
    int found = 0;
    for (int64_t p = 1; p * p <= blocks && found + 1 < MOST_COUNTS; p++)
        if (blocks % p == 0) {
            counts[found++] = p;
            if (p * p < blocks) counts[found++] = blocks / p;
        }
    for (int64_t p = 2 * blocks; p <= planes && p <= MOST_PLANES && found < MOST_COUNTS; p *= 2)
        counts[found++] = p;
    return found;
}

/* How many images of a work-item are copied at a time. Each has `bytes`, local memory has `budget`
 * bytes. */
static int64_t images_together(const struct thin *g, double bytes, double budget)
{
    const int64_t images =
        tconv_min(tconv_ceil_div(g->item_planes, g->blocks), g->folded.loops.groups);
    const double fitting = (budget < TOGETHER ? budget : TOGETHER) / (bytes > 1 ? bytes : 1);
    return tconv_max(tconv_min(images, (int64_t)fitting), 1);
}

/* Bytes of local memory for input rows. */
static double budget_of(const struct thin *g, const tconv_device_info *device)
{
    return tconv_local_budget(&g->folded, g->folded.machine->thin_budget, device);
}

/* The number of all planes. A plane is one batch item, group and block. */
static int64_t planes_of(const struct thin *g)
{
    return g->folded.loops.batch * g->folded.loops.groups * g->blocks;
}

/* Derives numbers from item_tiles and item_bands. Returns the bytes of local memory for the inputs
 * of an image. */
static double image_bytes(struct thin *g)
{
    g->row = row_length(g);
    g->input_rows = input_rows(g, g->item_bands);
    return (double)g->folded.acc_bytes * (double)tconv_folded_taps_z(&g->folded) *
           (double)g->input_rows * (double)g->folded.loops.in_channels * (double)g->row;
}

/* Derives the remaining numbers, which depend on item_planes, too. */
static void derive_division(struct thin *g, double bytes, double budget)
{
    g->together = images_together(g, bytes, budget);
    g->local_bytes = (uint64_t)bytes * (uint64_t)g->together;
    g->items = tconv_ceil_div(g->tiles, g->item_tiles) * g->folded.z.output *
               tconv_ceil_div(g->bands, g->item_bands) *
               tconv_ceil_div(planes_of(g), g->item_planes);
}

static void add_candidate(const struct thin *g, const tconv_device_info *device,
                          struct tconv_candidates *candidates)
{
    if (g->items >= INT32_MAX || tconv_folded_too_long(iterations(g), device)) return;
    const struct tconv_tile tile = {.vw = g->vw,
                                    .nx = g->nx,
                                    .mw = g->mw,
                                    .ry = g->ry,
                                    .tiles = (int)g->item_tiles,
                                    .bands = (int)g->item_bands,
                                    .planes = (int)g->item_planes};
    tconv_candidates_add(candidates, &tile, cost_of(g));
}

/* Divides planes, rows and tiles among work-items in all ways that fit into local memory. */
static void divide(struct thin *g, const tconv_device_info *device,
                   struct tconv_candidates *candidates)
{
    const double budget = budget_of(g, device);
    int64_t counts[MOST_COUNTS];
    const int count = plane_counts(planes_of(g), g->blocks, counts);
    for (g->item_tiles = g->tiles;; g->item_tiles = tconv_ceil_div(g->item_tiles, 2)) {
        for (g->item_bands = g->bands;; g->item_bands = tconv_ceil_div(g->item_bands, 2)) {
            const double bytes = image_bytes(g);
            for (int i = 0; bytes <= budget && i < count; i++) {
                g->item_planes = counts[i];
                derive_division(g, bytes, budget);
                add_candidate(g, device, candidates);
            }
            if (g->item_bands == 1) break;
        }
        if (g->item_tiles == 1) break;
    }
}

/* Sets what all candidates have in common. */
static bool prepare(const struct tconv_request *request, struct thin *g,
                    struct tconv_reason *reason)
{
    const struct tconv_loops *loops = request->loops;
    *g = (struct thin){0};
    if (!tconv_fold_rows(request, &g->folded, reason) ||
        !tconv_folded_table_fits(&g->folded, THIN_LONGS - FOLDED_LONGS, reason))
        return false;
    const struct tconv_axis *x = &g->folded.x;
    if ((x->stride > MERGED_STRIDE && x->stride != 8) || x->kernel > MERGED_KERNEL)
        return tconv_refuse(
            reason,
            "stride %lld and kernel %lld along the last axis; it takes strides up to %d and 8, "
            "kernels up to %d",
            (long long)x->stride, (long long)x->kernel, MERGED_STRIDE, MERGED_KERNEL);
    g->mw = choose_channels(g);
    g->blocks = tconv_ceil_div(loops->out_channels, g->mw);
    if (!tconv_folded_filter_fits(&g->folded, g->mw, g->blocks, request, TCONV_PACK_SUMMED, reason))
        return false;
    g->ry = choose_rows(g);
    g->lacking = tconv_mod(g->folded.y.pad, g->ry);
    g->bands = tconv_ceil_div(g->folded.y.output + g->lacking, g->ry);
    return true;
}

/* Tries all vectors that would not be half empty. */
static bool enumerate(const struct tconv_request *request, struct tconv_candidates *candidates,
                      struct tconv_reason *reason)
{
    const tconv_device_info *device = request->device;
    struct thin g;
    if (!prepare(request, &g, reason)) return false;
    const int limit = most_sums(&g);
    int widest = tconv_folded_widest(&g.folded);
    while (widest >= 8 && g.folded.positions <= widest / 2) widest /= 2;
    const int sums = g.ry * g.mw * (int)g.folded.x.stride; /* sums for each vector of positions */
    for (g.vw = widest; g.vw >= 4 || g.vw == widest; g.vw /= 2)
        for (g.nx = 1; g.nx == 1 || (g.nx <= MOST_VECTORS && g.nx * sums <= limit); g.nx++) {
            g.tiles = tconv_ceil_div(g.folded.positions, (int64_t)g.vw * g.nx);
            divide(&g, device, candidates);
        }
    return candidates->count > 0 ||
           tconv_refuse(reason, "no part of the work is small enough for a work-item");
}

static void use_tile(struct thin *g, const struct tconv_tile *tile, const tconv_device_info *device)
{
    g->vw = tile->vw;
    g->nx = tile->nx;
    g->mw = tile->mw;
    g->ry = tile->ry;
    g->tiles = tconv_ceil_div(g->folded.positions, (int64_t)g->vw * g->nx);
    g->item_tiles = tile->tiles;
    g->item_bands = tile->bands;
    g->item_planes = tile->planes;
    derive_division(g, image_bytes(g), budget_of(g, device));
}

static tconv_status write(const struct tconv_request *request,
                          const struct tconv_candidate *candidate,
                          struct tconv_kernel_plan *kernel_plan, tconv_error *error)
{
    struct thin g;
    struct tconv_reason reason;
    const size_t own = THIN_LONGS - FOLDED_LONGS;
    prepare(request, &g, &reason);
    use_tile(&g, &candidate->tile, request->device);
    if (!tconv_kernel_plan_table(kernel_plan, tconv_folded_table_size(&g.folded, own)) ||
        !tconv_folded_write_table(&g.folded, g.blocks, g.tiles, own, kernel_plan->table))
        return tconv_fail_table(error, kernel_plan);
    int64_t *t = kernel_plan->table;
    t[THIN_PLANES] = g.item_planes;
    t[THIN_TOGETHER] = g.together;
    t[THIN_BANDS] = g.item_bands;
    t[THIN_LACKING] = g.lacking;
    t[THIN_TILES] = g.item_tiles;
    t[THIN_ROW] = g.row;
    t[THIN_PREFETCHES] = prefetches(&g);

    const struct tconv_axis *x = &g.folded.x;
    struct tconv_launch *run = tconv_kernel_plan_run(kernel_plan, "tconv_thin");
    tconv_launch_option(run, "VW", g.vw);
    tconv_launch_option(run, "NX", g.nx);
    tconv_launch_option(run, "MW", g.mw);
    tconv_launch_option(run, "RY", g.ry);
    tconv_launch_option(run, "MERGED", x->stride);
    if (unrolls(&g)) tconv_folded_taps_options(&g.folded, run);
    tconv_launch_option(run, "SINGLE", request->loops->in_channels == 1);
    tconv_launch_option(run, "STREAM", tconv_folded_non_temporal(&g.folded, x->output, LONG_ROW));
    tconv_folded_run(run, g.items, g.local_bytes, request->device);
    tconv_folded_pack(kernel_plan, &g.folded, "taps", g.mw, g.blocks, run, request,
                      TCONV_PACK_SUMMED);
    return TCONV_OK;
}

const struct tconv_algorithm tconv_thin = {
    .name = "thin_vector",
    .summary = "few channels, depthwise: input rows in local memory, all phases at once; wide "
               "vectors: for CPUs",
    .source = "cpu/thin.cl",
    .made_for = TCONV_FOR_VECTORS,
    .order = TCONV_ORDER_BY_PARAMETERS,
    .order_parameters = "mw",
    .stages_locally = true,
    .parameters = {TCONV_TILE(vw), TCONV_TILE(nx), TCONV_TILE(mw), TCONV_TILE(ry),
                   TCONV_TILE(tiles), TCONV_TILE(bands), TCONV_TILE(planes)},
    .program_parameters = 4,
    .enumerate = enumerate,
    .write = write,
};
