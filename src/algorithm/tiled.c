/* SPDX-License-Identifier: Apache-2.0 */
/* The tiled algorithm: parameters, cost and kernel plan of cl/tiled.cl. */
#include "algorithm/algorithms.h"

#include "algorithm/folded.h"
#include "base/checked.h"
#include "tiled_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    MOST_PHASES = 1 << 12,
    MOST_TAPS = 1 << 16,
    ROUND_TAPS = 32, /* bits of a mask */
    MOST_PARTS = 8,
    MOST_WORKSPACE = 64 << 20, /* bytes: where sums are more, there are tiles enough */
    PLACE_BYTES = 20,          /* of struct outputs in cl/tiled.cl, for each place */
};

/* A tile, as cl/tiled.cl says: MT, NT, TM, TN, SLICES, KS. */
struct tile {
    int mt, nt, tm, tn, slices, ks;
};

/* From the largest to the smallest. Slices make more work-items of a tile, for layers with fewer
 * tiles than keep the compute units busy. */
static const struct tile tiles[] = {
    {128, 128, 8, 8, 1, 8}, {64, 128, 8, 8, 1, 8}, {128, 64, 8, 8, 1, 8}, {64, 64, 8, 8, 1, 8},
    {64, 64, 8, 8, 2, 16},  {64, 64, 8, 8, 4, 32}, {64, 64, 8, 4, 1, 8},  {32, 128, 8, 8, 1, 8},
    {32, 128, 8, 8, 4, 16}, {32, 64, 8, 4, 1, 8},  {32, 64, 8, 8, 4, 32}, {64, 32, 8, 4, 1, 8},
    {64, 32, 8, 8, 4, 32},  {32, 32, 4, 4, 1, 8},  {32, 32, 4, 4, 4, 32}, {16, 128, 4, 8, 1, 8},
    {16, 64, 4, 4, 1, 8},   {16, 64, 4, 4, 4, 16}, {64, 16, 4, 4, 1, 8},  {64, 16, 4, 4, 4, 32},
    {8, 256, 4, 8, 1, 4},   {8, 128, 4, 4, 1, 4},  {4, 256, 4, 4, 1, 4},  {16, 16, 4, 4, 4, 16},
    {16, 32, 4, 4, 1, 8},   {16, 16, 4, 4, 1, 8},
};

/* An axis as the kernel sees it. */
struct side {
    const struct tconv_axis *axis;
    bool merged;   /* phases are rows */
    int64_t first; /* the output of place 0 in phase 0 */
    int64_t places, phases, taps;
    int64_t reaching; /* taps that read an input for any place; the kernel skips the others */
};

/* The parameters of a kernel, and what follows from them. */
struct tiled {
    struct tconv_folded_layer folded;
    struct side side[3]; /* z, y, x */
    struct tile tile;
    int parts;      /* of the input channels, each with work-groups of its own */
    bool last;      /* channels are neighbours */
    bool rows_last; /* rows are quads of output channels */
    int64_t phases, list_taps, reaching; /* of all phases of work-groups */
    int64_t merged, matrix_rows;         /* phases that are rows; rows of the packed filter */
    int64_t all_places, tiles, blocks;
};

/* ---- phases -------------------------------------------------------------------------------- */

static void set_side(struct side *side, const struct tconv_axis *axis, bool merged)
{
    const int64_t s = axis->stride;
    side->axis = axis;
    side->merged = merged && s > 1;
    if (side->merged) {
        /* o + pad = q*s + r reads input q - j by tap j*s + r: for all r the same inputs. */
        const int64_t q = tconv_floor_div(axis->pad, s);
        side->first = q * s - axis->pad;
        side->places = tconv_floor_div(axis->output - 1 + axis->pad, s) - q + 1;
        side->phases = 1;
        side->taps = tconv_ceil_div(axis->kernel, s);
    } else {
        side->first = 0;
        side->places = tconv_ceil_div(axis->output, s);
        side->phases = s;
        side->taps = axis->kernel;
    }
}

static int64_t distance_of(const struct side *side, int64_t tap)
{
    return side->merged ? tconv_floor_div(side->axis->pad, side->axis->stride) - tap
                        : tconv_folded_distance(side->axis, tap);
}

static int64_t reaching_taps(const struct side *side)
{
    int64_t reaching = 0;
    for (int64_t k = 0; k < side->taps; k++) {
        const int64_t distance = distance_of(side, k);
        if (distance < side->axis->input && side->places - 1 + distance >= 0) reaching++;
    }
    return reaching;
}

/* Where an axis has one input, its stride has no effect. As long as the kernel, it makes phases of
 * all taps, each with one of them, and no place is computed that has none. */
static void lengthen_strides(struct tiled *g)
{
    struct tconv_axis *const axes[] = {&g->folded.z, &g->folded.y, &g->folded.x};
    for (int a = 0; a < 3; a++) {
        struct tconv_axis *axis = axes[a];
        if (axis->input == 1 && axis->dilation == 1 && axis->pad == 0 &&
            axis->output <= axis->kernel)
            axis->stride = axis->kernel;
    }
}

/* Multiply-adds that are issued for one that is useful, by how many rows there are: tiles with few
 * rows load more for each. */
static double row_cost(int64_t matrix_rows)
{
    static const struct {
        int rows;
        double cost;
    } heights[] = {{128, 1}, {64, 1}, {32, 1.15}, {16, 1.5}, {8, 2}, {4, 3}};
    double least = 0;
    for (size_t i = 0; i < sizeof heights / sizeof *heights; i++) {
        const int64_t rows = heights[i].rows;
        const double cost = (double)(tconv_ceil_div(matrix_rows, rows) * rows) * heights[i].cost;
        if (i == 0 || cost < least) least = cost;
    }
    return least;
}

/* Which axes' phases become rows. By channels, kernel, stride and dilation only, because the packed
 * filter depends on it: where the stride does not divide the kernel, taps are missing in some
 * phases, and zeros are multiplied. */
static void choose_phases(struct tiled *g)
{
    enum { MOST_ROWS = 1 << 14 };
    const double apart = 1.1; /* phases along x that are stored by different work-groups */
    const struct tconv_axis *const axes[] = {&g->folded.z, &g->folded.y, &g->folded.x};
    const int64_t channels = g->rows_last ? tconv_ceil_div(g->folded.layer.out_channels, 4) * 4
                                          : g->folded.layer.out_channels;
    double least = 0;
    int best = -1;
    for (int choice = 0; choice < 8; choice++) {
        int64_t merged = 1;
        double issued = 1;
        bool possible = true;
        for (int a = 0; a < 3; a++) {
            const struct tconv_axis *axis = axes[a];
            if ((choice >> a & 1) == 0) {
                issued *= (double)axis->kernel * (a == 2 && axis->stride > 1 ? apart : 1);
                continue;
            }
            possible = possible && axis->stride > 1 && axis->dilation == 1 &&
                       merged * axis->stride * channels <= MOST_ROWS;
            merged *= axis->stride;
            issued *= (double)(tconv_ceil_div(axis->kernel, axis->stride) * axis->stride);
            if (!possible) break;
        }
        if (!possible) continue;
        const double cost = issued * row_cost(channels * merged) / (double)merged;
        if (best < 0 || cost < least) {
            least = cost;
            best = choice;
        }
    }
    g->merged = g->phases = g->list_taps = g->reaching = 1;
    for (int a = 0; a < 3; a++) {
        set_side(&g->side[a], axes[a], (best >> a & 1) != 0);
        g->merged *= g->side[a].merged ? axes[a]->stride : 1;
        g->phases *= g->side[a].phases;
        g->list_taps *= g->side[a].taps;
        g->reaching *= reaching_taps(&g->side[a]);
    }
    g->matrix_rows = tconv_ceil_div(channels * g->merged, 4) * 4;
}

/* ---- tiles ---------------------------------------------------------------------------------- */

static int items_of(const struct tile *t)
{
    return t->slices * (t->mt / t->tm) * (t->nt / t->tn);
}

/* Of a stage, or of the sums that slices exchange. */
static int64_t local_bytes(const struct tiled *g, const struct tile *t)
{
    const int64_t stages = 2 * t->ks * (int64_t)(t->mt + t->nt + (g->last ? 4 : 0));
    const int64_t shared = (int64_t)(t->slices - 1) * t->mt * t->nt / t->slices;
    return tconv_max(stages, shared) * (int64_t)g->folded.acc_bytes + PLACE_BYTES * (int64_t)t->nt;
}

enum { INTEL_CORES = 8 }; /* compute units as Intel counts them that share local memory */

/* Groups of the unit that has most; with many, their mean. */
static double rounds_of(double groups, double units)
{
    enum { MANY = 1 << 20 };
    const double each = groups / units;
    return each > MANY ? each : (double)tconv_ceil_div((int64_t)groups, (int64_t)units);
}

/* Input channels of a part: whole stages. */
static int64_t part_channels(const struct tiled *g, const struct tile *t)
{
    return tconv_ceil_div(tconv_ceil_div(g->folded.layer.in_channels, t->ks), g->parts) * t->ks;
}

/* Stages of one work-group, the mean of all phases. */
static double stages_of(const struct tiled *g, const struct tile *t)
{
    return (double)g->reaching / (double)g->phases * (double)(part_channels(g, t) / t->ks);
}

/* Work-groups that a unit holds. */
static double resident_groups(const struct tiled *g, const struct tile *t,
                              const tconv_device_info *device)
{
    const struct tconv_machine *m = g->folded.machine;
    const int64_t warp = (int64_t)m->warp, warps = tconv_ceil_div(items_of(t), warp);
    const int64_t words = (int64_t)g->folded.acc_bytes / 4;
    const double sliced = t->slices > 1 && t->tm * t->tn == 64 ? m->tiled_sliced : 0;
    const int64_t registers = ((int64_t)(m->tiled_registers + sliced) + words * t->tm * t->tn) *
                              warp * warps;
    const int64_t local = 2 * (int64_t)device->local_memory / local_bytes(g, t);
    const int64_t groups = tconv_min(
        tconv_min((int64_t)m->unit_registers / registers, (int64_t)m->unit_warps / warps), local);
    return (double)tconv_max(groups, 1);
}

/* The second launch, which adds up the sums of all parts: `groups` of a unit wrote them. */
static double finish_cycles(const struct tiled *g, const struct tile *t, double groups)
{
    const struct tconv_machine *m = g->folded.machine;
    if (g->parts == 1) return 0;
    const double bytes = 2 * groups * t->mt * t->nt * (double)g->folded.acc_bytes;
    return m->gpu_launch + 2 * m->tiled_begin_wait + g->parts * m->tiled_part_wait +
           bytes / m->unit_l2;
}

/* The time of a tile, in multiply-adds that all units could have done in it. */
static double cost_of(const struct tiled *g, const struct tile *t, const tconv_device_info *device)
{
    const struct tconv_machine *m = g->folded.machine;
    const double units = device->subgroup_least > 0 && m->units >= INTEL_CORES
                             ? (double)((int64_t)m->units / INTEL_CORES)
                             : m->units;
    const double groups = (double)tconv_ceil_div(g->all_places, t->nt) *
                          (double)tconv_ceil_div(g->matrix_rows, t->mt) * (double)g->phases *
                          (double)g->folded.layer.groups * g->parts;
    const double items = items_of(t), sums = t->tm * t->tn, k = t->ks / t->slices;
    const double warps = (double)tconv_ceil_div(items_of(t), (int64_t)m->warp);
    /* Numbers of 64 bits, and integers, take two instructions. */
    const double adds = g->folded.acc_bytes > 4 || tconv_adds_integers(&g->folded.layer) ? 2 : 1;
    const double reads = k * (t->tm + t->tn) / 4 * (double)(g->folded.acc_bytes / 4);

    /* A stage, and what is around all stages: instructions of a warp, and how long a group waits
     * at its barrier if it is alone. */
    const double stage = sums * k * adds + reads + m->tiled_stage +
                         m->tiled_weight * t->ks * t->mt / 4 / items +
                         m->tiled_input * t->ks * t->nt / items;
    const double stage_cycles = tconv_larger(stage / m->unit_issue, reads * m->unit_read);
    const double around = m->tiled_begin + sums * m->tiled_store;
    const double stages = stages_of(g, t);
    const double busy = stages * stage_cycles + around / m->unit_issue;
    const double alone = stages * (stage + m->tiled_stage_wait) + around * m->tiled_around_wait +
                         m->tiled_begin_wait + (warps - 1) * busy;

    const double each = rounds_of(groups, units), held = resident_groups(g, t, device);
    const double full = (double)(int64_t)(each / held), rest = each - full * held;
    const double cycles = full * tconv_larger(held * warps * busy, alone) +
                          (rest > 0 ? tconv_larger(rest * warps * busy, alone) : 0);
    const double l2 = groups * stages * t->ks * (t->mt + t->nt) * (double)g->folded.acc_bytes /
                      units / m->unit_l2;
    const double dram =
        (tconv_folded_data_bytes(&g->folded) + tconv_folded_output_bytes(&g->folded)) / units /
        m->unit_dram;
    return (tconv_larger(cycles, tconv_larger(l2, dram)) + m->gpu_launch +
            finish_cycles(g, t, groups / units)) *
           units * m->unit_lanes;
}

/* Whether the device takes work-groups of this tile, and its registers hold the sums. */
static bool fits(const struct tiled *g, const struct tile *t, const tconv_device_info *device)
{
    /* Intel's compiler keeps few sums beside the copies in registers, and none of narrow tiles
     * with slices; AMD's gfx10 to gfx12 take registers to convert elements; numbers of 64 bits take
     * two registers, and their products more. */
    const bool intel = device->subgroup_least > 0, wide = g->folded.acc_bytes > 4;
    const bool converts = tconv_type_size(g->folded.layer.data_type) < g->folded.acc_bytes;
    const int64_t sums = intel || wide ? 16 : converts ? 32 : 64;
    const bool spills = (wide && (intel || tconv_adds_integers(&g->folded.layer))) ||
                        (intel && t->slices > 1 && t->nt <= 32);
    const uint64_t items = (uint64_t)items_of(t);
    return !spills && t->tm * t->tn <= sums && items <= device->work_group_limit &&
           items <= device->work_item_limit[0] &&
           local_bytes(g, t) <= (int64_t)device->local_memory;
}

/* What follows from the tile. */
static void derive(struct tiled *g)
{
    g->tiles = tconv_ceil_div(g->all_places, g->tile.nt);
    g->blocks = tconv_ceil_div(g->matrix_rows, g->tile.mt);
}

/* ---- kernel plan
 * --------------------------------------------------------------------------------- */

/* Everything that all candidates have in common. */
static bool prepare(const struct tconv_request *request, struct tiled *g,
                    struct tconv_reason *reason)
{
    const struct tconv_layer *layer = request->layer;
    *g = (struct tiled){0};
    if (!tconv_fold(request, &g->folded, reason)) return false;
    g->last = layer->data_channel_step == 1 && layer->output_channel_step == 1 &&
              (layer->in_channels > 1 || layer->out_channels > 1);
    g->rows_last = g->last && layer->out_channels > 3; /* no quads of few */
    lengthen_strides(g);
    choose_phases(g);
    double places = (double)g->folded.layer.batch;
    for (int a = 0; a < 3; a++) places *= (double)g->side[a].places;
    if (g->phases > MOST_PHASES) return tconv_refuse(reason, "more than %d phases", MOST_PHASES);
    if (g->list_taps > MOST_TAPS) return tconv_refuse(reason, "more than %d taps", MOST_TAPS);
    if (places > INT32_MAX / 2)
        return tconv_refuse(reason, "more places than its 32-bit indices count");
    g->all_places = (int64_t)places;
    /* Weights are found by 32-bit indices from a stage's first one. */
    if (g->matrix_rows > INT32_MAX / 64)
        return tconv_refuse(reason, "more rows than its 32-bit indices count");
    const size_t bytes = tconv_packed_bytes(request, TCONV_PACK_SUMMED);
    return tconv_filter_addressable((double)TAPS_HEADER(layer->groups, bytes) +
                                        (double)layer->groups * (double)g->list_taps *
                                            (double)layer->in_channels * (double)g->matrix_rows,
                                    bytes, reason);
}

/* Whether the work of this tile can be handed out. */
static bool check_work(const struct tiled *g, const tconv_device_info *device,
                       struct tconv_reason *reason)
{
    const double groups = (double)g->tiles * (double)g->blocks * (double)g->phases *
                          (double)g->folded.layer.groups * g->parts;
    if (groups * items_of(&g->tile) > INT32_MAX)
        return tconv_refuse(reason, "more work-items than its 32-bit indices can count");
    const double own = (double)g->tile.mt * g->tile.nt / items_of(&g->tile);
    if (tconv_folded_group_too_long(
            stages_of(g, &g->tile) + own * (1 + tconv_folded_exact_loops(&g->folded)), device))
        return tconv_refuse(reason, "no part of the work is small enough for a work-item");
    return true;
}

/* Of what parts leave for the second launch: sums of the work-items of all tiles, and what aligns
 * them. */
static double workspace_bytes(const struct tiled *g)
{
    const double groups = (double)g->tiles * (double)g->blocks * (double)g->phases *
                          (double)g->folded.layer.groups;
    return (groups * g->parts * g->tile.mt * g->tile.nt + 1) * (double)g->folded.acc_bytes;
}

/* Whether so many parts have two stages each, and the workspace that they need may be had. */
static bool may_split(const struct tiled *g, const struct tconv_request *request)
{
    const int64_t stages = tconv_ceil_div(g->folded.layer.in_channels, g->tile.ks);
    uint64_t limit = MOST_WORKSPACE;
    if (request->workspace_limit != 0 && request->workspace_limit < limit)
        limit = request->workspace_limit;
    return stages >= 2 * g->parts &&
           tconv_ceil_div(stages, tconv_ceil_div(stages, g->parts)) == g->parts &&
           workspace_bytes(g) <= (double)limit;
}

static bool enumerate(const struct tconv_request *request, struct tconv_candidates *candidates,
                      struct tconv_reason *reason)
{
    struct tiled g;
    if (!prepare(request, &g, reason)) return false;
    tconv_refuse(reason, "it needs larger work-groups or more local memory");
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        const struct tile *t = &tiles[i];
        if (!fits(&g, t, request->device)) continue;
        g.tile = *t;
        derive(&g);
        for (g.parts = 1; g.parts <= MOST_PARTS; g.parts *= 2) {
            if (g.parts > 1 && !may_split(&g, request)) break;
            const int64_t tile[] = {t->mt,     t->nt, t->tm,       t->tn,
                                    t->slices, t->ks, g.parts > 1, g.parts};
            if (check_work(&g, request->device, reason))
                tconv_candidates_add(candidates, tile, cost_of(&g, t, request->device));
        }
    }
    return candidates->count > 0;
}

/* The taps of one phase along an axis: tap number `first` + i * `step` of the packed filter, and
 * how far from a place its input lies. */
struct reach {
    int64_t taps, first, step;
};

static struct reach reach_of(const struct side *side, const struct tconv_class *classes,
                             int64_t phase)
{
    if (side->merged) return (struct reach){side->taps, 0, 1};
    const struct tconv_class *class =
        &classes[tconv_mod(phase + side->axis->pad, side->axis->stride)];
    return (struct reach){class->taps, class->first, tconv_tap_step(side->axis)};
}

/* Writes a kind for each phase of work-groups, and all taps. */
static bool write_phases(const struct tiled *g, int64_t *kind, int64_t *tap)
{
    const struct side *side = g->side;
    struct tconv_class *classes[3] = {NULL, NULL, NULL};
    bool memory = true;
    for (int a = 0; a < 3; a++) {
        classes[a] = malloc((size_t)side[a].axis->stride * sizeof *classes[a]);
        memory = memory && classes[a] != NULL;
        if (classes[a] != NULL) tconv_classes(side[a].axis, classes[a]);
    }
    int64_t start = 0;
    for (int64_t phase = 0; memory && phase < g->phases; phase++, kind += KIND_LONGS) {
        const int64_t t[] = {phase / side[2].phases / side[1].phases,
                             phase / side[2].phases % side[1].phases, phase % side[2].phases};
        struct reach reach[3];
        for (int a = 0; a < 3; a++) reach[a] = reach_of(&side[a], classes[a], t[a]);
        kind[KIND_TAPS] = reach[0].taps * reach[1].taps * reach[2].taps;
        kind[KIND_LIST] = start;
        start += kind[KIND_TAPS];
        for (int64_t i = 0; i < kind[KIND_TAPS]; i++, tap += TAP_LONGS) {
            int64_t rest = i, k[3];
            for (int a = 2; a >= 0; a--) {
                k[a] = reach[a].first + rest % reach[a].taps * reach[a].step;
                rest /= reach[a].taps;
                tap[TAP_Z + a] = distance_of(&side[a], k[a]);
                tap[TAP_OFFSET] += tap[TAP_Z + a] * side[a].axis->data_step;
            }
            tap[TAP_WEIGHTS] = ((k[0] * side[1].taps + k[1]) * side[2].taps + k[2]) *
                               g->folded.layer.in_channels * g->matrix_rows;
        }
    }
    for (int a = 0; a < 3; a++) free(classes[a]);
    return memory;
}

_Static_assert(TILED_LONGS + MOST_PHASES * KIND_LONGS + MOST_TAPS * TAP_LONGS <= TCONV_TABLE_LIMIT,
               "the largest table");

/* Whether quads of neighbouring channels lie at multiples of 4 elements from a tensor's begin. */
static bool has_quads(const struct tiled *g, bool output)
{
    const struct tconv_layer *layer = &g->folded.layer;
    bool quads = g->last && (output ? layer->out_channels : layer->in_channels) % 4 == 0 &&
                 (output ? layer->output_batch_step : layer->data_batch_step) % 4 == 0;
    for (int a = 0; a < 3; a++) {
        const struct tconv_axis *axis = g->side[a].axis;
        quads = quads && (output ? axis->output_step : axis->data_step) % 4 == 0;
    }
    return quads;
}

static bool write_table(const struct tiled *g, struct tconv_kernel_plan *kernel_plan)
{
    const size_t phases_at = TILED_LONGS, list_at = phases_at + (size_t)g->phases * KIND_LONGS;
    if (!tconv_kernel_plan_table(kernel_plan, list_at + (size_t)g->list_taps * TAP_LONGS))
        return false;
    int64_t *t = kernel_plan->table;
    tconv_folded_write_numbers(&g->folded, g->blocks, g->tiles, t);
    for (int a = 0; a < 3; a++) {
        t[TILED_PLACES_Z + a] = g->side[a].places;
        t[TILED_FIRST_Z + a] = g->side[a].first;
        t[TILED_PHASES_Z + a] = g->side[a].phases;
        t[TILED_TAPS_Z + a] = g->side[a].taps;
    }
    t[TILED_ROWS] = g->matrix_rows;
    t[TILED_CHANNELS] = tconv_ceil_div(g->folded.layer.out_channels, 4) * 4;
    t[TILED_OUTPUT_QUADS] = has_quads(g, true);
    t[TILED_PARTS] = g->parts;
    t[TILED_PART_CHANNELS] = part_channels(g, &g->tile);
    t[TILED_PHASES_AT] = (int64_t)phases_at;
    t[TILED_LIST_AT] = (int64_t)list_at;
    return write_phases(g, t + phases_at, t + list_at);
}

/* The first and the last place of a tile along each axis, as range_of of cl/tiled.cl has it. */
static void range_of(const struct tiled *g, int64_t tile, int64_t first[3], int64_t last[3])
{
    int64_t a = tile * g->tile.nt, b = tconv_min(a + g->tile.nt, g->all_places) - 1;
    for (int axis = 2; axis >= 0; axis--) {
        const int64_t places = g->side[axis].places;
        first[axis] = a % places;
        last[axis] = b % places;
        a /= places;
        b /= places;
        for (int inner = axis; a != b && inner < 3; inner++) {
            first[inner] = 0;
            last[inner] = g->side[inner].places - 1;
        }
    }
}

/* Multiply-adds that are issued: whole stages and tiles, without the taps that reach no place of a
 * tile. Of many tiles few are at a border: then all taps count. */
static double issued(const struct tiled *g, const int64_t *table)
{
    enum { MOST_PAIRS = 1 << 16 };
    const struct tile *t = &g->tile;
    const double each = (double)(tconv_ceil_div(g->folded.layer.in_channels, t->ks) * t->ks) *
                        (double)t->nt * (double)(g->blocks * t->mt) *
                        (double)g->folded.layer.groups;
    if ((double)g->tiles * (double)g->list_taps > MOST_PAIRS)
        return (double)g->list_taps * (double)g->tiles * each;
    int64_t pairs = 0;
    for (int64_t tile = 0; tile < g->tiles; tile++) {
        int64_t first[3], last[3];
        range_of(g, tile, first, last);
        for (int64_t i = 0; i < g->list_taps; i++) {
            const int64_t *tap = table + table[TILED_LIST_AT] + i * TAP_LONGS + TAP_Z;
            bool reaches = true;
            for (int a = 0; a < 3; a++)
                reaches = reaches && last[a] + tap[a] >= 0 &&
                          first[a] + tap[a] < g->side[a].axis->input;
            pairs += reaches;
        }
    }
    return (double)pairs * each;
}

static int64_t merged_phases(const struct side *side)
{
    return side->merged ? side->axis->stride : 1;
}

/* How many taps a phase has at most. */
static int64_t most_taps(const struct tiled *g)
{
    int64_t taps = 1;
    for (int a = 0; a < 3; a++)
        taps *= g->side[a].merged ? g->side[a].taps : tconv_most_taps(g->side[a].axis);
    return taps;
}

/* Whether phases that are rows have different numbers of taps. */
static bool lacks_taps(const struct tiled *g)
{
    bool lacks = false;
    for (int a = 0; a < 3; a++)
        lacks = lacks ||
                (g->side[a].merged && g->side[a].axis->kernel % g->side[a].axis->stride != 0);
    return lacks;
}

/* SPLIT of cl/tiled.cl. */
enum split { WHOLE_SUMS, PART_SUMS, FINISHED_SUMS };

static void write_options(const struct tiled *g, const struct tile *t, enum split split,
                          struct tconv_launch *launch)
{
    tconv_launch_option(launch, "VW", 4);
    tconv_launch_option(launch, "MT", t->mt);
    tconv_launch_option(launch, "NT", t->nt);
    tconv_launch_option(launch, "TM", t->tm);
    tconv_launch_option(launch, "TN", t->tn);
    tconv_launch_option(launch, "KS", t->ks);
    tconv_launch_option(launch, "SLICES", t->slices);
    tconv_launch_option(launch, "WHOLE", g->folded.layer.in_channels % t->ks == 0);
    tconv_launch_option(launch, "LAST", g->last);
    tconv_launch_option(launch, "FOLDED_LAST", g->rows_last);
    tconv_launch_option(launch, "QUADS", has_quads(g, false));
    tconv_launch_option(launch, "ROUNDS", most_taps(g) > ROUND_TAPS);
    tconv_launch_option(launch, "LACKING", lacks_taps(g));
    tconv_launch_option(launch, "SPLIT", split);
    tconv_launch_option(launch, "PZ", merged_phases(&g->side[0]));
    tconv_launch_option(launch, "PY", merged_phases(&g->side[1]));
    tconv_launch_option(launch, "PX", merged_phases(&g->side[2]));
}

/* The same tile for the kernel that adds up the sums of parts, in as many slices as a work-group
 * has: each work-item then has few sums. */
static struct tile finishing_tile(const struct tile *tile, const tconv_device_info *device)
{
    enum { ITEMS = 256 };
    const int64_t most = tconv_min(
        ITEMS, tconv_min((int64_t)device->work_group_limit, (int64_t)device->work_item_limit[0]));
    struct tile t = *tile;
    t.slices = 1;
    while (2 * items_of(&t) <= most && 2 * t.slices <= t.tm && 2 * t.slices <= t.tn) t.slices *= 2;
    t.ks = 4 * t.slices;
    return t;
}

static tconv_status write(const struct tconv_request *request, const int64_t *tile,
                          struct tconv_kernel_plan *kernel_plan, tconv_error *error)
{
    struct tiled g;
    struct tconv_reason reason;
    prepare(request, &g, &reason);
    g.tile = (struct tile){(int)tile[0], (int)tile[1], (int)tile[2],
                           (int)tile[3], (int)tile[4], (int)tile[5]};
    g.parts = (int)tile[7];
    derive(&g);
    if (!write_table(&g, kernel_plan)) return tconv_fail_table(error, kernel_plan);
    const struct tconv_layer *layer = request->layer;
    const tconv_device_info *device = request->device;
    char name[64];
    snprintf(name, sizeof name, "tiled%s %" PRId64 "x%" PRId64 "x%" PRId64,
             g.rows_last ? " last" : "", merged_phases(&g.side[0]), merged_phases(&g.side[1]),
             merged_phases(&g.side[2]));
    tconv_folded_layout(kernel_plan, name, &g.folded);
    const size_t bytes = tconv_packed_bytes(request, TCONV_PACK_SUMMED);
    kernel_plan->filter_bytes =
        (uint64_t)(TAPS_HEADER(layer->groups, bytes) +
                   layer->groups * g.list_taps * layer->in_channels * g.matrix_rows) *
        bytes;

    struct tconv_launch *clear = tconv_kernel_plan_pack(kernel_plan, "tconv_tiled_clear");
    write_options(&g, &g.tile, WHOLE_SUMS, clear);
    tconv_launch_items(clear, 0, layer->groups, 64, device);
    tconv_launch_args(clear, (enum tconv_arg[]){TCONV_ARG_FLAGS, TCONV_ARG_TABLE}, 2);
    struct tconv_launch *pack = tconv_kernel_plan_pack(kernel_plan, "tconv_tiled_pack");
    write_options(&g, &g.tile, WHOLE_SUMS, pack);
    tconv_launch_items(pack, 0, g.matrix_rows, 64, device);
    tconv_launch_items(pack, 1, layer->in_channels, 1, device);
    tconv_launch_items(pack, 2, layer->groups * g.list_taps, 1, device);
    tconv_launch_args(
        pack,
        (enum tconv_arg[]){TCONV_ARG_WEIGHTS, TCONV_ARG_FILTER, TCONV_ARG_FLAGS, TCONV_ARG_TABLE},
        4);

    const size_t items = (size_t)items_of(&g.tile),
                 groups = (size_t)(g.phases * g.tiles * g.blocks * layer->groups);
    struct tconv_launch *run = tconv_kernel_plan_run(kernel_plan, "tconv_tiled");
    write_options(&g, &g.tile, g.parts > 1 ? PART_SUMS : WHOLE_SUMS, run);
    run->local[0] = items;
    run->macs = issued(&g, kernel_plan->table);
    run->global[0] = items * groups * (size_t)g.parts;
    if (g.parts == 1) {
        tconv_launch_args(run,
                          (enum tconv_arg[]){TCONV_ARG_DATA, TCONV_ARG_FILTER, TCONV_ARG_FLAGS,
                                             TCONV_ARGS_EPILOGUE, TCONV_ARG_TABLE},
                          9);
        return TCONV_OK;
    }
    kernel_plan->workspace_bytes = (uint64_t)workspace_bytes(&g);
    tconv_launch_args(run,
                      (enum tconv_arg[]){TCONV_ARG_DATA, TCONV_ARG_FILTER, TCONV_ARG_FLAGS,
                                         TCONV_ARG_WORKSPACE, TCONV_ARG_TABLE},
                      5);
    struct tconv_launch *finish = tconv_kernel_plan_run(kernel_plan, "tconv_tiled_finish");
    const struct tile finishing = finishing_tile(&g.tile, device);
    write_options(&g, &finishing, FINISHED_SUMS, finish);
    finish->local[0] = (size_t)items_of(&finishing);
    finish->global[0] = finish->local[0] * groups;
    tconv_launch_args(finish,
                      (enum tconv_arg[]){TCONV_ARG_DATA, TCONV_ARG_FILTER, TCONV_ARG_FLAGS,
                                         TCONV_ARG_WORKSPACE, TCONV_ARGS_EPILOGUE, TCONV_ARG_TABLE},
                      10);
    return TCONV_OK;
}

const struct tconv_algorithm tconv_tiled_group = {
    .name = "tiled_group",
    .summary = "implicit matrix product from local memory, many accumulators in a work-item's "
               "registers: for GPUs",
    .sources = {"types.clh", "epilogue_table.h", "common.clh", "epilogue.clh", "folded_table.h",
                "tiled_table.h", "tiled.cl"},
    .made_for = TCONV_FOR_LANES,
    .tile_names = {"mt", "nt", "tm", "tn", "slices", "ks", "split", "parts"},
    .program_parameters = 7,
    .enumerate = enumerate,
    .write = write,
};
