/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of tiled.c and matrix.c: phases, rows and positions, costs, table, packing,
 * launches. */
#include "algorithm/gpu/positions.h"
#include "algorithm/cost/gpu.h"

#include "base/checked.h"
#include "gpu/copy_table.h"
#include "gpu/tiled_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_PHASES = 1 << 12,
    MOST_TAPS = 1 << 16,
    ROUND_TAPS = 32,           /* bits of a mask */
    MOST_WORKSPACE = 64 << 20, /* bytes: a layer with more sums has tiles enough without parts */
};

/* ---- phases -------------------------------------------------------------------------------- */

static void set_side(struct tconv_side *side, const struct tconv_axis *axis, bool merged)
{
    const int64_t s = axis->stride;
    side->axis = axis;
    side->merged = merged && s > 1;
    if (side->merged) {
        /* Output o + pad = q*s + r reads input q - j by tap j*s + r: the same inputs for all r. */
        const int64_t q = tconv_floor_div(axis->pad, s);
        side->first = q * s - axis->pad;
        side->positions = tconv_floor_div(axis->output - 1 + axis->pad, s) - q + 1;
        side->phases = 1;
        side->taps = tconv_ceil_div(axis->kernel, s);
    } else {
        side->first = 0;
        side->positions = tconv_ceil_div(axis->output, s);
        side->phases = s;
        side->taps = axis->kernel;
    }
}

static int64_t distance_of(const struct tconv_side *side, int64_t tap)
{
    return side->merged ? tconv_floor_div(side->axis->pad, side->axis->stride) - tap
                        : tconv_folded_distance(side->axis, tap);
}

static int64_t reaching_taps(const struct tconv_side *side)
{
    int64_t reaching = 0;
    for (int64_t k = 0; k < side->taps; k++) {
        const int64_t distance = distance_of(side, k);
        if (distance < side->axis->input && side->positions - 1 + distance >= 0) reaching++;
    }
    return reaching;
}

/* Phases of work-groups that have taps. */
static int64_t busy_phases(const struct tconv_side *side)
{
    return side->merged ? 1 : tconv_min(tconv_tap_step(side->axis), side->taps);
}

/* The most taps of a phase along an axis. */
static int64_t most_side_taps(const struct tconv_side *side)
{
    return side->merged ? side->taps : tconv_most_taps(side->axis);
}

/* If an axis has one input, its stride has no effect. It is set to the kernel's extent: then each
 * phase has one tap, and no position is computed that no tap reaches. */
static void lengthen_strides(struct tconv_positions *g)
{
    struct tconv_axis *const axes[] = {&g->folded.z, &g->folded.y, &g->folded.x};
    for (int a = 0; a < 3; a++) {
        struct tconv_axis *axis = axes[a];
        if (axis->input == 1 && axis->dilation == 1 && axis->pad == 0 &&
            axis->output <= axis->kernel)
            axis->stride = axis->kernel;
    }
}

/* The cost of a matrix of `matrix_rows` rows, in rows of the highest tile: the rows of whole tiles,
 * times what a multiply-add costs in tiles of this height. The cheapest height counts. */
static double row_cost(int64_t matrix_rows, const struct tconv_product *product)
{
    double least = 0;
    for (int i = 0; i < product->heights; i++) {
        const int64_t rows = product->height[i].rows;
        const double cost = (double)(tconv_ceil_div(matrix_rows, rows) * rows) *
                            product->height[i].cost;
        if (i == 0 || cost < least) least = cost;
    }
    return least;
}

/* The factor for phases along x in work-groups of their own, whose outputs are stored apart from
 * each other. With channels last each output has its channels beside it. Fewer channels than the
 * highest tile has rows leave a part of the tile, or of its speed, unused. */
static double apart_cost(const struct tconv_positions *g, const struct tconv_product *product)
{
    const struct tconv_folded_layer *f = &g->folded;
    if (f->x.stride == 1) return 1;
    if (f->layer.out_channels < product->height[0].rows) return 1.1;
    const struct tconv_axis *const axes[] = {&f->z, &f->y, &f->x};
    double products = (double)f->layer.in_channels; /* of an output */
    for (int a = 0; a < 3; a++) products *= (double)axes[a]->kernel / (double)axes[a]->stride;
    return 1.01 + (g->rows_last ? 0 : product->apart * (double)(f->x.stride - 1) / products);
}

/* Chooses the axes whose phases become rows. The packed filter depends on it, so the choice depends
 * on channels, format, kernel, stride and dilation only. If the stride does not divide the kernel,
 * some phases lack taps, and zeros are multiplied instead. If the kernel exceeds the stride, most
 * pads add a position, which is a quarter more if a phase has four outputs. */
static void choose_phases(struct tconv_positions *g, const struct tconv_product *product)
{
    enum { MOST_ROWS = 1 << 14 };
    const double apart = apart_cost(g, product), one_more = 1.03;
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
                issued *= (double)axis->kernel * (a == 2 ? apart : 1);
                continue;
            }
            possible = possible && axis->stride > 1 && axis->dilation == 1 &&
                       merged * axis->stride * channels <= MOST_ROWS;
            merged *= axis->stride;
            issued *= (double)(tconv_ceil_div(axis->kernel, axis->stride) * axis->stride) *
                      (axis->kernel > axis->stride ? one_more : 1);
            if (!possible) break;
        }
        if (!possible) continue;
        const double cost = issued * row_cost(channels * merged, product) / (double)merged;
        if (best < 0 || cost < least) {
            least = cost;
            best = choice;
        }
    }
    g->merged = g->all_phases = g->phases = g->list_taps = g->reaching = g->most_taps = 1;
    for (int a = 0; a < 3; a++) {
        set_side(&g->side[a], axes[a], (best >> a & 1) != 0);
        g->merged *= g->side[a].merged ? axes[a]->stride : 1;
        g->all_phases *= g->side[a].phases;
        g->phases *= busy_phases(&g->side[a]);
        g->most_taps *= most_side_taps(&g->side[a]);
        g->list_taps *= g->side[a].taps;
        g->reaching *= reaching_taps(&g->side[a]);
    }
    g->matrix_rows = tconv_ceil_div(channels * g->merged, 4) * 4;
}

static size_t table_longs(const struct tconv_positions *p)
{
    return TILED_LONGS + (size_t)p->all_phases * TILED_KIND_LONGS +
           (size_t)p->list_taps * TAP_LONGS;
}

static bool has_long_steps(const struct tconv_layer *layer, const struct tconv_folded_layer *folded)
{
    const struct tconv_axis *const axes[] = {&folded->z, &folded->y, &folded->x};
    int64_t longest = tconv_max(tconv_max(layer->data_batch_step, layer->data_channel_step),
                                tconv_max(layer->output_batch_step, layer->output_channel_step));
    for (int a = 0; a < 3; a++)
        longest = tconv_max(longest, tconv_max(axes[a]->data_step, axes[a]->output_step));
    const double channels = (double)layer->groups * (double)layer->out_channels;
    return longest > INT32_MAX || channels * (double)layer->output_channel_step > INT32_MAX;
}

static bool prepare(struct tconv_positions *p, const struct tconv_request *request,
                    const struct tconv_product *product, bool copied, struct tconv_reason *reason)
{
    const struct tconv_layer *layer = request->layer;
    *p = (struct tconv_positions){.packing = product->packing, .parts = 1};
    if (!tconv_fold(request, &p->folded, reason)) return false;
    const bool last = layer->data_channel_step == 1 && layer->output_channel_step == 1 &&
                      (layer->in_channels > 1 || layer->out_channels > 1);
    p->last = last || copied;
    p->rows_last = last && layer->out_channels > 3; /* few channels have no quads */
    p->units = tconv_gpu_units(p->folded.machine, request->device);
    lengthen_strides(p);
    choose_phases(p, product);
    double positions = (double)p->folded.layer.batch;
    for (int a = 0; a < 3; a++) positions *= (double)p->side[a].positions;
    if (p->all_phases > MOST_PHASES)
        return tconv_refuse(reason, "more than %d phases", MOST_PHASES);
    if (p->list_taps > MOST_TAPS) return tconv_refuse(reason, "more than %d taps", MOST_TAPS);
    if (has_long_steps(layer, &p->folded))
        return tconv_refuse(reason, "more elements of a batch item than its 32-bit steps count");
    p->constant_table = table_longs(p) * sizeof(int64_t) <= (uint64_t)request->device->constant_kib
                                                                << 10;
    if (positions > INT32_MAX / 2)
        return tconv_refuse(reason, "more positions than its 32-bit indices count");
    p->all_positions = (int64_t)positions;
    for (int a = 0; a < 3; a++) {
        const struct tconv_axis *axis = p->side[a].axis;
        if (!tconv_divides(p->side[a].positions) || !tconv_divides(axis->stride) ||
            (double)axis->input * (double)axis->stride > INT32_MAX)
            return tconv_refuse(reason, "an axis is longer than its 32-bit indices count");
    }
    /* Kernels find weights by 32-bit indices from a stage's first weight. */
    if (p->matrix_rows > INT32_MAX / 256)
        return tconv_refuse(reason, "more rows than its 32-bit indices count");
    if (layer->groups > INT32_MAX / p->list_taps)
        return tconv_refuse(reason, "more taps of all groups than its 32-bit indices count");
    const size_t bytes = tconv_packed_bytes(request, product->packing);
    const int64_t word =
        product->packing == TCONV_PACK_WORDS ? 4 / (int64_t)tconv_type_size(layer->filter_type) : 0;
    p->packed_channels = word == 0 ? layer->in_channels
                                   : tconv_ceil_div(layer->in_channels, 4 * word) * 4;
    return tconv_filter_addressable((double)TAPS_HEADER(layer->groups, bytes) +
                                        (double)layer->groups * (double)p->list_taps *
                                            (double)p->packed_channels * (double)p->matrix_rows,
                                    bytes, reason);
}

bool tconv_positions_prepare(struct tconv_positions *p, const struct tconv_request *request,
                             const struct tconv_product *product, struct tconv_reason *reason)
{
    return prepare(p, request, product, false, reason);
}

/* Work-groups of the copy along the channels of a point. */
static int64_t channel_tiles(const struct tconv_copy *copy, tconv_type type)
{
    return tconv_ceil_div(copy->row * (int64_t)tconv_type_size(type), COPIED_BYTES);
}

bool tconv_positions_prepare_copied(struct tconv_positions *p, const struct tconv_request *request,
                                    const struct tconv_product *product, int64_t quad,
                                    struct tconv_reason *reason)
{
    struct tconv_layer layer = *request->layer;
    struct tconv_copy copy = {.points = 1,
                              .channels = layer.groups * layer.in_channels,
                              .batch_step = layer.data_batch_step,
                              .channel_step = layer.data_channel_step};
    copy.row = tconv_ceil_div(copy.channels, quad) * quad;
    bool dense = layer.data_channel_step != 1 && layer.output_channel_step != 1;
    for (int a = layer.axes - 1; a >= 0; a--) {
        dense = dense && layer.axis[a].data_step == copy.points;
        layer.axis[a].data_step = copy.points * copy.row;
        copy.points *= layer.axis[a].input;
    }
    if (!dense || (layer.groups > 1 && layer.in_channels % quad != 0))
        return tconv_refuse(reason, "it copies plain data with groups of whole quads");
    copy.elements = layer.batch * copy.points * copy.row;
    if (copy.points > INT32_MAX / 2 || copy.elements / 64 > INT32_MAX ||
        !tconv_divides(tconv_ceil_div(copy.points, COPIED_POINTS)) ||
        !tconv_divides(channel_tiles(&copy, layer.data_type)))
        return tconv_refuse(reason, "its copy has more points than its 32-bit indices count");
    const uint64_t bytes = (uint64_t)copy.elements * tconv_type_size(layer.data_type);
    if ((request->workspace_limit != 0 && bytes > request->workspace_limit) ||
        bytes > request->device->allocation_limit)
        return tconv_refuse(reason, "its copy exceeds the limit of the workspace");
    layer.data_channel_step = 1;
    layer.data_batch_step = copy.points * copy.row;
    struct tconv_request copied = *request;
    copied.layer = &layer;
    if (!prepare(p, &copied, product, true, reason)) return false;
    p->folded.machine = &request->machine;
    p->copy = copy;
    return true;
}

/* ---- tiles ---------------------------------------------------------------------------------- */

void tconv_positions_set_tile(struct tconv_positions *p, int mt, int nt, int stage, int parts)
{
    p->mt = mt;
    p->nt = nt;
    p->stage = stage;
    p->parts = parts;
    p->tiles = tconv_ceil_div(p->all_positions, nt);
    p->blocks = tconv_ceil_div(p->matrix_rows, mt);
}

/* Tiles of a phase. */
static double phase_tiles(const struct tconv_positions *p)
{
    return (double)p->tiles * (double)p->blocks * (double)p->folded.layer.groups;
}

/* Work-groups of one part. */
static double part_groups(const struct tconv_positions *p)
{
    return phase_tiles(p) * (double)p->phases;
}

/* Work-groups of all parts. */
static double all_groups(const struct tconv_positions *p)
{
    return part_groups(p) * p->parts;
}

/* Input channels of a part: whole stages. */
static int64_t part_channels(const struct tconv_positions *p)
{
    return tconv_ceil_div(tconv_ceil_div(p->folded.layer.in_channels, p->stage), p->parts) *
           p->stage;
}

double tconv_positions_stages(const struct tconv_positions *p)
{
    return (double)p->reaching / (double)p->phases * (double)(part_channels(p) / p->stage);
}

double tconv_positions_busiest_stages(const struct tconv_positions *p)
{
    const double mean = tconv_positions_stages(p),
                 most =
                     (double)(tconv_min(p->most_taps, p->reaching) * (part_channels(p) / p->stage));
    return tconv_larger(mean, most / tconv_gpu_rounds(all_groups(p), p->units));
}

/* Bytes that parts leave for the second launch: the sums of all tiles, with alignment. */
static double workspace_bytes(const struct tconv_positions *p)
{
    return (all_groups(p) * p->mt * p->nt + 1) * (double)p->folded.acc_bytes;
}

int64_t tconv_positions_output_bytes(const struct tconv_positions *p)
{
    int64_t bytes = (int64_t)sizeof(int64_t);
    for (int a = 0; a < 3; a++) bytes += p->side[a].merged ? (int64_t)sizeof(int32_t) : 0;
    return bytes;
}

bool tconv_positions_may_split(const struct tconv_positions *p, const struct tconv_request *request)
{
    const int64_t stages = tconv_ceil_div(p->folded.layer.in_channels, p->stage);
    uint64_t limit = MOST_WORKSPACE;
    if (request->workspace_limit != 0 && request->workspace_limit < limit)
        limit = request->workspace_limit;
    return p->copy.elements == 0 && stages >= 2 * p->parts &&
           tconv_ceil_div(stages, tconv_ceil_div(stages, p->parts)) == p->parts &&
           workspace_bytes(p) <= (double)limit;
}

bool tconv_positions_check(const struct tconv_positions *p, int items,
                           const tconv_device_info *device, struct tconv_reason *reason)
{
    const double every = phase_tiles(p) * (double)p->all_phases * p->parts;
    if (every * items > INT32_MAX || !tconv_divides((int64_t)part_groups(p)))
        return tconv_refuse(reason, "more work-items than its 32-bit indices can count");
    const double own = (double)p->mt * p->nt / items;
    if (tconv_folded_group_too_long(
            tconv_positions_stages(p) + own * (1 + tconv_folded_exact_loops(&p->folded)), device))
        return tconv_refuse(reason, "no part of the work is small enough for a work-item");
    return true;
}

double tconv_positions_cost(const struct tconv_positions *p, const struct tconv_group_cost *group,
                            const tconv_device_info *device)
{
    const struct tconv_machine *m = p->folded.machine;
    const double units = p->units, groups = all_groups(p);
    const int64_t local = (int64_t)(m->unit_local * (double)device->local_memory);
    const int64_t registers = (int64_t)(group->registers * m->warp * group->warps);
    const int64_t fitting = tconv_min(tconv_min((int64_t)m->unit_registers / registers,
                                                (int64_t)m->unit_warps / (int64_t)group->warps),
                                      local / group->local);
    const double held = (double)tconv_max(fitting, 1);
    /* The last groups of a unit share it with fewer others. */
    const double each = tconv_gpu_rounds(groups, units);
    const double full = (double)(int64_t)(each / held), rest = each - full * held;
    const double stored = tconv_folded_output_bytes(&p->folded) * (double)p->phases /
                          (double)p->all_phases;
    const struct tconv_gpu_launch run = {
        .units = units,
        .cycles = full * tconv_larger(held * group->busy, group->alone) +
                  (rest > 0 ? tconv_larger(rest * group->busy, group->alone) : 0),
        .l2 = groups * group->l2,
        .dram = tconv_folded_data_bytes(&p->folded) + stored,
    };
    double cost = tconv_gpu_launch_cost(m, &run);
    if (p->all_phases > p->phases) {
        const struct tconv_gpu_launch fill = {
            .units = units, .dram = tconv_folded_output_bytes(&p->folded) - stored};
        cost += tconv_gpu_launch_cost(m, &fill);
    }
    if (p->copy.elements > 0) {
        const struct tconv_gpu_launch copy = {
            .units = units,
            .dram = tconv_folded_data_bytes(&p->folded) +
                    (double)p->copy.elements * (double)tconv_type_size(p->folded.layer.data_type)};
        cost += tconv_gpu_launch_cost(m, &copy);
    }
    if (p->parts == 1) return cost;
    /* Each part's sums are written and read, from the second-level cache. */
    const double bytes = 2 * groups * p->mt * p->nt * (double)p->folded.acc_bytes;
    const struct tconv_gpu_launch finish = {
        .units = units,
        .cycles = group->finish + bytes / units / m->unit_l2,
    };
    return cost + tconv_gpu_launch_cost(m, &finish);
}

/* ---- table ---------------------------------------------------------------------------------- */

/* The taps of one phase along an axis: tap number `first` + i * `step` of the packed filter, and
 * how far from a position its input lies. */
struct reach {
    int64_t taps, first, step;
};

static struct reach reach_of(const struct tconv_side *side, const struct tconv_class *classes,
                             int64_t phase)
{
    if (side->merged) return (struct reach){side->taps, 0, 1};
    const struct tconv_class *class =
        &classes[tconv_mod(phase + side->axis->pad, side->axis->stride)];
    return (struct reach){class->taps, class->first, tconv_tap_step(side->axis)};
}

/* Phases with more taps come first. */
static int by_taps(const void *one, const void *other)
{
    const int64_t *a = one, *b = other;
    if (a[KIND_TAPS] != b[KIND_TAPS]) return a[KIND_TAPS] > b[KIND_TAPS] ? -1 : 1;
    return a[TILED_KIND_PHASE] < b[TILED_KIND_PHASE] ? -1 : 1;
}

/* Writes a kind for each phase of work-groups, and all taps. */
static bool write_phases(const struct tconv_positions *g, int64_t *kinds, int64_t *tap)
{
    const struct tconv_side *side = g->side;
    struct tconv_class *classes[3] = {NULL, NULL, NULL};
    int64_t *kind = kinds;
    bool memory = true;
    for (int a = 0; a < 3; a++) {
        classes[a] = malloc((size_t)side[a].axis->stride * sizeof *classes[a]);
        memory = memory && classes[a] != NULL;
        if (classes[a] != NULL) tconv_classes(side[a].axis, classes[a]);
    }
    int64_t start = 0;
    for (int64_t phase = 0; memory && phase < g->all_phases; phase++, kind += TILED_KIND_LONGS) {
        const int64_t t[] = {phase / side[2].phases / side[1].phases,
                             phase / side[2].phases % side[1].phases, phase % side[2].phases};
        struct reach reach[3];
        for (int a = 0; a < 3; a++) reach[a] = reach_of(&side[a], classes[a], t[a]);
        kind[KIND_TAPS] = reach[0].taps * reach[1].taps * reach[2].taps;
        kind[KIND_LIST] = start;
        kind[TILED_KIND_PHASE] = phase;
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
                               g->packed_channels * g->matrix_rows;
        }
    }
    for (int a = 0; a < 3; a++) free(classes[a]);
    qsort(kinds, (size_t)g->all_phases, TILED_KIND_LONGS * sizeof *kinds, by_taps);
    return memory;
}

enum { MOST_UNITS = 1 << 12 };

/* Groups of the last chunk in rounds of one for each unit, and the taps of each group. */
struct rounds {
    const int64_t *kinds;
    int64_t tiles, groups, units;
};

/* The work of the busiest unit if the rounds of `turns` are in the opposite order; equal ones by
 * the sum of squares. */
static double unevenness(const struct rounds *r, uint64_t turns)
{
    int64_t load[MOST_UNITS] = {0}, most = 0;
    double squares = 0, all = 1;
    for (int64_t i = 0; i < r->groups; i++) {
        const int64_t round = i / r->units, first = round * r->units,
                      count = tconv_min(r->units, r->groups - first);
        const bool turned = round < TILED_TURN_BITS && (turns >> round & 1) != 0;
        load[turned ? first + count - 1 - i : i - first] +=
            r->kinds[i / r->tiles * TILED_KIND_LONGS + KIND_TAPS];
    }
    for (int64_t u = 0; u < r->units; u++) {
        most = tconv_max(most, load[u]);
        squares += (double)load[u] * (double)load[u];
        all += (double)load[u];
    }
    return (double)most + squares / (all * all);
}

/* Chooses which rounds are turned: from every other round on, turns single rounds and pairs of
 * neighbours as long as it helps. */
static uint64_t choose_turns(const struct rounds *r)
{
    enum { MOST_TRIES = 8 };
    const int64_t rounds = tconv_min(tconv_ceil_div(r->groups, r->units), TILED_TURN_BITS);
    uint64_t turns = UINT64_C(0x5555555555555555);
    double least = unevenness(r, turns);
    bool better = true;
    for (int tries = 0; better && tries < MOST_TRIES; tries++) {
        better = false;
        for (int64_t i = 0; i < 2 * rounds - 1; i++) {
            const uint64_t flipped = turns ^
                                     (i < rounds ? UINT64_C(1) << i : UINT64_C(3) << (i - rounds));
            const double own = unevenness(r, flipped);
            if (own >= least) continue;
            least = own;
            turns = flipped;
            better = true;
        }
    }
    return turns;
}

/* Writes the order of work-groups: own_tile of cl/gpu/positions.clh. */
static void write_order(const struct tconv_positions *g, const int64_t *kinds, int64_t *t)
{
    const int64_t tiles = (int64_t)phase_tiles(g) * g->parts;
    const int64_t units = tconv_min(tconv_max((int64_t)g->units, 1), MOST_UNITS);
    const bool even = kinds[KIND_TAPS] == kinds[(g->phases - 1) * TILED_KIND_LONGS + KIND_TAPS];
    const int64_t spread = even ? 1 : units, full = tiles / spread;
    /* The last chunk has up to two tiles for a unit, so that there is more to choose from. */
    const int64_t whole = tiles % spread == 0 ? full : tconv_max(full - 1, 0),
                  last = tiles - whole * spread;
    t[TILED_FULL_CHUNKS] = whole;
    t[TILED_KINDS] = g->phases;
    t[TILED_LAST_GROUPS] = g->phases * last;
    t[TILED_PHASE_TILES] = tconv_divisor((int64_t)phase_tiles(g));
    t[TILED_CHUNK] = tconv_divisor(g->phases * spread);
    t[TILED_SPREAD] = tconv_divisor(spread);
    t[TILED_LAST_SPREAD] = tconv_divisor(tconv_max(last, 1));
    t[TILED_UNITS] = tconv_divisor(units);
    if (last == 0) return;
    const struct rounds rounds = {kinds, last, g->phases * last, units};
    t[TILED_TURNS] = (int64_t)choose_turns(&rounds);
}

_Static_assert(TILED_LONGS + MOST_PHASES * TILED_KIND_LONGS + MOST_TAPS * TAP_LONGS <=
                   TCONV_TABLE_LIMIT,
               "the largest table");

bool tconv_positions_has_groups(const struct tconv_positions *g, bool output, int count)
{
    const struct tconv_layer *layer = &g->folded.layer;
    bool groups = g->last && (output ? layer->out_channels : layer->in_channels) % count == 0 &&
                  (output ? layer->output_batch_step : layer->data_batch_step) % count == 0;
    for (int a = 0; a < 3; a++) {
        const struct tconv_axis *axis = g->side[a].axis;
        groups = groups && (output ? axis->output_step : axis->data_step) % count == 0;
    }
    return groups;
}

bool tconv_positions_write_table(const struct tconv_positions *g,
                                 struct tconv_kernel_plan *kernel_plan)
{
    const size_t phases_at = TILED_LONGS,
                 list_at = phases_at + (size_t)g->all_phases * TILED_KIND_LONGS;
    if (!tconv_kernel_plan_table(kernel_plan, table_longs(g))) return false;
    int64_t *t = kernel_plan->table;
    tconv_folded_write_numbers(&g->folded, g->blocks, g->tiles, t);
    for (int a = 0; a < 3; a++) {
        t[TILED_POSITIONS_Z + a] = tconv_divisor(g->side[a].positions);
        t[TILED_FIRST_Z + a] = g->side[a].first;
        t[TILED_PHASES_Z + a] = tconv_divisor(g->side[a].phases);
        if (g->side[a].merged) t[TILED_NEAREST_Z + a] = distance_of(&g->side[a], 0);
        t[TILED_TAPS_Z + a] = g->side[a].taps;
    }
    t[TILED_ALL_POSITIONS] = g->all_positions;
    t[TILED_ROWS] = g->matrix_rows;
    t[TILED_GROUP_WEIGHTS] = g->list_taps * g->packed_channels * g->matrix_rows;
    t[TILED_CHANNELS] = tconv_divisor(tconv_ceil_div(g->folded.layer.out_channels, 4) * 4);
    t[TILED_OUTPUT_QUADS] = tconv_positions_has_groups(g, true, 4);
    t[TILED_PARTS] = g->parts;
    t[TILED_PART_CHANNELS] = part_channels(g);
    t[TILED_PART] = tconv_divisor((int64_t)part_groups(g));
    t[TILED_BLOCKS] = tconv_divisor(g->blocks);
    t[TILED_TILES] = tconv_divisor(g->tiles);
    if (g->copy.elements > 0) {
        t[TILED_COPY_POINTS] = g->copy.points;
        t[TILED_COPY_CHANNELS] = g->copy.channels;
        t[TILED_COPY_ROW] = g->copy.row;
        t[TILED_COPY_BATCH_STEP] = g->copy.batch_step;
        t[TILED_COPY_CHANNEL_STEP] = g->copy.channel_step;
        t[TILED_COPY_POINT_TILES] = tconv_divisor(tconv_ceil_div(g->copy.points, COPIED_POINTS));
        t[TILED_COPY_CHANNEL_TILES] =
            tconv_divisor(channel_tiles(&g->copy, g->folded.layer.data_type));
    }
    t[TILED_PHASES_AT] = (int64_t)phases_at;
    t[TILED_LIST_AT] = (int64_t)list_at;
    if (!write_phases(g, t + phases_at, t + list_at)) return false;
    write_order(g, t + phases_at, t);
    return true;
}

/* ---- kernel plan ---------------------------------------------------------------------------- */

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

/* Multiply-adds that are issued: whole stages and tiles, without the taps that reach no position of
 * a tile. If there are many tiles, few are at a border, and all taps count. */
static double issued(const struct tconv_positions *g, const int64_t *table)
{
    enum { MOST_PAIRS = 1 << 16 };
    const double each = (double)(tconv_ceil_div(g->folded.layer.in_channels, g->stage) * g->stage) *
                        (double)g->nt * (double)(g->blocks * g->mt) *
                        (double)g->folded.layer.groups;
    if ((double)g->tiles * (double)g->list_taps > MOST_PAIRS)
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

void tconv_positions_options(const struct tconv_positions *p, enum tconv_split split, int items,
                             struct tconv_launch *launch)
{
    tconv_launch_option(launch, "VW", 4);
    tconv_launch_option(launch, "ITEMS", items);
    tconv_launch_option(launch, "WHOLE", p->folded.layer.in_channels % p->stage == 0);
    tconv_launch_option(launch, "LAST", p->last);
    if (p->copy.elements > 0) tconv_launch_option(launch, "COPY", 1);
    tconv_launch_option(launch, "FOLDED_LAST", p->rows_last);
    tconv_launch_option(launch, "ROUNDS", p->most_taps > ROUND_TAPS);
    tconv_launch_option(launch, "LACKING", lacks_taps(p));
    tconv_launch_option(launch, "SPLIT", split);
    tconv_launch_option(launch, "EMPTY", p->all_phases > p->phases);
    tconv_launch_option(launch, "CONSTANT_TABLE", p->constant_table);
    tconv_launch_option(launch, "PZ", merged_phases(&p->side[0]));
    tconv_launch_option(launch, "PY", merged_phases(&p->side[1]));
    tconv_launch_option(launch, "PX", merged_phases(&p->side[2]));
}

struct tconv_launch *tconv_positions_copy(const struct tconv_positions *p, int items,
                                          struct tconv_kernel_plan *kernel_plan)
{
    const struct tconv_copy *copy = &p->copy;
    if (copy->elements == 0) return NULL;
    kernel_plan->workspace_bytes = (uint64_t)copy->elements *
                                   tconv_type_size(p->folded.layer.data_type);
    struct tconv_launch *launch = tconv_kernel_plan_run(kernel_plan, "tconv_copy_points");
    launch->local[0] = (size_t)items;
    launch->divides = true;
    launch->global[0] = (size_t)items * (size_t)tconv_ceil_div(copy->points, COPIED_POINTS) *
                        (size_t)channel_tiles(copy, p->folded.layer.data_type) *
                        (size_t)(copy->elements / copy->points / copy->row);
    tconv_launch_args(launch,
                      (enum tconv_arg[]){TCONV_ARG_DATA, TCONV_ARG_WORKSPACE, TCONV_ARG_TABLE}, 3);
    return launch;
}

struct tconv_launch *tconv_positions_run(const struct tconv_positions *p, const char *kernel,
                                         int items, struct tconv_kernel_plan *kernel_plan)
{
    struct tconv_launch *run = tconv_kernel_plan_run(kernel_plan, kernel);
    run->local[0] = (size_t)items;
    run->divides = true;
    run->macs = issued(p, kernel_plan->table);
    run->global[0] = (size_t)items * (size_t)all_groups(p);
    if (p->parts == 1) {
        const enum tconv_arg data = p->copy.elements > 0 ? TCONV_ARG_WORKSPACE : TCONV_ARG_DATA;
        tconv_launch_args(run,
                          (enum tconv_arg[]){data, TCONV_ARG_FILTER, TCONV_ARG_FLAGS,
                                             TCONV_ARGS_EPILOGUE, TCONV_ARG_TABLE},
                          9);
        return run;
    }
    kernel_plan->workspace_bytes = (uint64_t)workspace_bytes(p);
    tconv_launch_args(run,
                      (enum tconv_arg[]){TCONV_ARG_DATA, TCONV_ARG_FILTER, TCONV_ARG_FLAGS,
                                         TCONV_ARG_WORKSPACE, TCONV_ARG_TABLE},
                      5);
    return run;
}

struct tconv_launch *tconv_positions_finish(const struct tconv_positions *p, const char *kernel,
                                            int items, int groups,
                                            struct tconv_kernel_plan *kernel_plan)
{
    struct tconv_launch *finish = tconv_kernel_plan_run(kernel_plan, kernel);
    finish->local[0] = (size_t)items;
    finish->global[0] = (size_t)items * (size_t)part_groups(p) * (size_t)groups;
    tconv_launch_args(finish,
                      (enum tconv_arg[]){TCONV_ARG_DATA, TCONV_ARG_FILTER, TCONV_ARG_FLAGS,
                                         TCONV_ARG_WORKSPACE, TCONV_ARGS_EPILOGUE, TCONV_ARG_TABLE},
                      10);
    return finish;
}

struct tconv_launch *tconv_positions_fill(const struct tconv_positions *p, int items,
                                          struct tconv_kernel_plan *kernel_plan)
{
    if (p->all_phases == p->phases) return NULL;
    struct tconv_launch *fill = tconv_kernel_plan_run(kernel_plan, "tconv_rows_fill");
    fill->local[0] = (size_t)items;
    fill->divides = true;
    fill->global[0] = (size_t)items * (size_t)phase_tiles(p) * (size_t)(p->all_phases - p->phases);
    tconv_launch_args(fill, (enum tconv_arg[]){TCONV_ARGS_EPILOGUE, TCONV_ARG_TABLE}, 6);
    return fill;
}

void tconv_positions_pack(const struct tconv_positions *p, const char *kind,
                          const struct tconv_launch *run, const struct tconv_request *request,
                          struct tconv_kernel_plan *kernel_plan)
{
    const struct tconv_layer *layer = request->layer;
    const tconv_device_info *device = request->device;
    char name[64];
    snprintf(name, sizeof name, "%s%s %" PRId64 "x%" PRId64 "x%" PRId64, kind,
             p->rows_last ? " last" : "", merged_phases(&p->side[0]), merged_phases(&p->side[1]),
             merged_phases(&p->side[2]));
    tconv_folded_layout(kernel_plan, name, &p->folded);
    const size_t bytes = tconv_packed_bytes(request, p->packing);
    kernel_plan->filter_bytes =
        (uint64_t)(TAPS_HEADER(layer->groups, bytes) +
                   layer->groups * p->list_taps * p->packed_channels * p->matrix_rows) *
        bytes;
    struct tconv_launch *clear = tconv_kernel_plan_pack(kernel_plan, "tconv_rows_clear");
    snprintf(clear->options, sizeof clear->options, "%s", run->options);
    tconv_launch_items(clear, 0, layer->groups, 64, device);
    tconv_launch_args(clear, (enum tconv_arg[]){TCONV_ARG_FLAGS, TCONV_ARG_TABLE}, 2);
    struct tconv_launch *pack = tconv_kernel_plan_pack(kernel_plan, "tconv_rows_pack");
    snprintf(pack->options, sizeof pack->options, "%s", run->options);
    tconv_launch_items(pack, 0, p->matrix_rows, 64, device);
    tconv_launch_items(pack, 1, p->packed_channels, 1, device);
    tconv_launch_items(pack, 2, layer->groups * p->list_taps, 1, device);
    tconv_launch_args(
        pack,
        (enum tconv_arg[]){TCONV_ARG_WEIGHTS, TCONV_ARG_FILTER, TCONV_ARG_FLAGS, TCONV_ARG_TABLE},
        4);
}
