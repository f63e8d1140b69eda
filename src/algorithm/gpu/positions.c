/* SPDX-License-Identifier: Apache-2.0 */
/* A layer as a matrix product for tiled.c and matrix.c: phases, rows and positions, tiles and what
 * they cost. positions_table.c writes them down for kernels, positions_launches.c launches these.
 */
#include "algorithm/cost/gpu.h"
#include "algorithm/gpu/positions_internal.h"

#include "base/checked.h"
#include "gpu/copy_table.h"
#include "gpu/tiled_table.h"

enum {
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

static int64_t reaching_taps(const struct tconv_side *side)
{
    int64_t reaching = 0;
    for (int64_t k = 0; k < side->taps; k++) {
        const int64_t distance = tconv_side_distance(side, k);
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

/* Cost of `matrix_rows` rows, padded to whole tiles, in rows of the highest tile. Tries each tile
 * height, weights its rows by the relative cost of that height, and returns the minimum. */
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
    const struct tconv_folded *f = &g->folded;
    if (f->x.stride == 1) return 1;
    if (f->loops.out_channels < product->height[0].rows) return 1.1;
    const struct tconv_axis *const axes[] = {&f->z, &f->y, &f->x};
    double products = (double)f->loops.in_channels; /* of an output */
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
    const int64_t channels = g->rows_last ? tconv_ceil_div(g->folded.loops.out_channels, 4) * 4
                                          : g->folded.loops.out_channels;
    double least = 0;
    int best = -1;
    if (g->difference != 0) best = (g->difference & 1) << 2 | (g->difference & 2);
    for (int choice = 0; choice < 8 && g->difference == 0; choice++) {
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

size_t tconv_positions_table_longs(const struct tconv_positions *p)
{
    return TILED_LONGS + (size_t)p->all_phases * TILED_KIND_LONGS +
           (size_t)p->list_taps * TAP_LONGS + (size_t)(p->slots * p->all_phases) +
           (size_t)tconv_positions_other_taps(p);
}

int64_t tconv_positions_tap_weights(const struct tconv_positions *p)
{
    return p->list_taps * p->packed_channels * p->matrix_rows;
}

int64_t tconv_positions_products(const struct tconv_positions *p)
{
    return p->merged == 4 ? 9 : 3;
}

int64_t tconv_positions_product_weights(const struct tconv_positions *p)
{
    return tconv_positions_other_taps(p) * tconv_positions_products(p) * p->packed_channels *
           tconv_ceil_div(p->folded.loops.out_channels, 4) * 4;
}

double tconv_positions_filter_elements(const struct tconv_positions *p, size_t bytes)
{
    const int64_t groups = p->folded.loops.groups;
    return (double)TAPS_HEADER(groups, bytes) +
           (double)groups *
               ((double)p->list_taps * (double)p->packed_channels * (double)p->matrix_rows +
                (double)tconv_positions_product_weights(p));
}

/* True if a kernel's 32-bit steps cannot count the elements; or, where matrix.cl keeps them in 32
 * bits, the offset of a row's first output. */
static bool has_long_steps(const struct tconv_positions *p)
{
    const struct tconv_loops *loops = &p->folded.loops;
    int64_t longest = tconv_max(tconv_max(loops->data_batch_step, loops->data_channel_step),
                                tconv_max(loops->output_batch_step, loops->output_channel_step));
    const double channels = (double)loops->groups * (double)loops->out_channels;
    double row = (channels - 1) * (double)loops->output_channel_step;
    for (int a = 0; a < 3; a++) {
        const struct tconv_axis *axis = p->side[a].axis;
        longest = tconv_max(longest, tconv_max(axis->data_step, axis->output_step));
        if (p->side[a].merged) row += (double)(axis->stride - 1) * (double)axis->output_step;
    }
    const bool counts_rows = p->packing == TCONV_PACK_WORDS && !p->rows_last;
    return longest > INT32_MAX || (counts_rows && row > INT32_MAX);
}

/* Finds the axes along which the difference form multiplies. */
static bool find_differences(struct tconv_positions *p, const struct tconv_loops *given,
                             struct tconv_reason *reason)
{
    if (!tconv_has_sums(&given->equivalent))
        return tconv_refuse(reason, "it takes nearest upsampling and a convolution only");
    if (given->data_type != TCONV_F32)
        return tconv_refuse(reason, "element type %s; it takes f32",
                            tconv_type_name(given->data_type));
    const bool x = tconv_folded_is_doubled(given, &p->folded.x),
               y = tconv_folded_is_doubled(given, &p->folded.y);
    if (!x && !(y && p->folded.x.kernel == 1))
        return tconv_refuse(
            reason, "the last axis has another factor than 2, or other taps than 3 side by side");
    p->difference = (x ? 1 : 0) + (y ? 2 : 0);
    return true;
}

static bool prepare(struct tconv_positions *p, const struct tconv_request *request,
                    const struct tconv_product *product, bool copied, struct tconv_reason *reason)
{
    const struct tconv_loops *loops = request->loops;
    *p = (struct tconv_positions){.packing = product->packing, .parts = 1};
    if (!tconv_fold(request, &p->folded, reason)) return false;
    const bool last = loops->data_channel_step == 1 && loops->output_channel_step == 1 &&
                      (loops->in_channels > 1 || loops->out_channels > 1);
    p->last = last || copied;
    p->rows_last = last && loops->out_channels > 3; /* few channels have no quads */
    p->units = tconv_gpu_units(p->folded.machine, request->device);
    if (product->difference) {
        if (!find_differences(p, loops, reason)) return false;
    } else {
        lengthen_strides(p);
    }
    choose_phases(p, product);
    double positions = (double)p->folded.loops.batch;
    for (int a = 0; a < 3; a++) positions *= (double)p->side[a].positions;
    if (p->all_phases > TCONV_MOST_PHASES)
        return tconv_refuse(reason, "more than %d phases", TCONV_MOST_PHASES);
    if (p->list_taps > TCONV_MOST_TAPS)
        return tconv_refuse(reason, "more than %d taps", TCONV_MOST_TAPS);
    if (p->difference != 0 && p->most_taps > ROUND_TAPS)
        return tconv_refuse(reason, "more than %d taps of a phase along the other axes",
                            (int)(ROUND_TAPS / p->merged));
    if (has_long_steps(p))
        return tconv_refuse(reason, "more elements of a batch item than its 32-bit steps count");
    p->slots = 0;
    p->apart = product->apart;
    p->constant_table = tconv_positions_table_longs(p) * sizeof(int64_t) <=
                        (uint64_t)request->device->constant_kib << 10;
    if (positions > INT32_MAX / 2)
        return tconv_refuse(reason, "more positions than its 32-bit indices count");
    p->all_positions = (int64_t)positions;
    p->slots = tconv_positions_slots(p);
    if (p->constant_table && tconv_positions_table_longs(p) * sizeof(int64_t) >
                                 (uint64_t)request->device->constant_kib << 10)
        p->slots = 0;
    for (int a = 0; a < 3; a++) {
        const struct tconv_axis *axis = p->side[a].axis;
        if (!tconv_divides(p->side[a].positions) || !tconv_divides(axis->stride) ||
            (double)axis->input * (double)axis->stride > INT32_MAX)
            return tconv_refuse(reason, "an axis is longer than its 32-bit indices count");
    }
    /* Kernels find weights by 32-bit indices from a stage's first weight. */
    if (p->matrix_rows > INT32_MAX / 256)
        return tconv_refuse(reason, "more rows than its 32-bit indices count");
    if (loops->groups > INT32_MAX / p->list_taps)
        return tconv_refuse(reason, "more taps of all groups than its 32-bit indices count");
    const size_t bytes = tconv_packed_bytes(request, product->packing);
    const int64_t word =
        product->packing == TCONV_PACK_WORDS ? 4 / (int64_t)tconv_type_size(loops->data_type) : 0;
    p->packed_channels = word == 0 ? loops->in_channels
                                   : tconv_ceil_div(loops->in_channels, 4 * word) * 4;
    return tconv_filter_addressable(tconv_positions_filter_elements(p, bytes), bytes, reason);
}

bool tconv_positions_prepare(struct tconv_positions *p, const struct tconv_request *request,
                             const struct tconv_product *product, struct tconv_reason *reason)
{
    return prepare(p, request, product, false, reason);
}

int64_t tconv_copy_channel_tiles(const struct tconv_copy *copy, tconv_type type)
{
    return tconv_ceil_div(copy->row * (int64_t)tconv_type_size(type), COPIED_BYTES);
}

bool tconv_positions_prepare_copied(struct tconv_positions *p, const struct tconv_request *request,
                                    const struct tconv_product *product, int64_t quad,
                                    struct tconv_reason *reason)
{
    struct tconv_loops loops = *request->loops;
    struct tconv_copy copy = {.points = 1,
                              .channels = loops.groups * loops.in_channels,
                              .batch_step = loops.data_batch_step,
                              .channel_step = loops.data_channel_step};
    copy.row = tconv_ceil_div(copy.channels, quad) * quad;
    bool dense = loops.data_channel_step != 1 && loops.output_channel_step != 1;
    for (int a = loops.axes - 1; a >= 0; a--) {
        dense = dense && loops.axis[a].data_step == copy.points;
        loops.axis[a].data_step = copy.points * copy.row;
        copy.points *= loops.axis[a].input;
    }
    if (!dense || (loops.groups > 1 && loops.in_channels % quad != 0))
        return tconv_refuse(reason, "it copies plain data with groups of whole quads");
    copy.elements = loops.batch * copy.points * copy.row;
    if (copy.points > INT32_MAX / 2 || copy.elements / 64 > INT32_MAX ||
        !tconv_divides(tconv_ceil_div(copy.points, COPIED_POINTS)) ||
        !tconv_divides(tconv_copy_channel_tiles(&copy, loops.data_type)))
        return tconv_refuse(reason, "its copy has more points than its 32-bit indices count");
    const uint64_t bytes = (uint64_t)copy.elements * tconv_type_size(loops.data_type);
    if (bytes > tconv_workspace_limit(request))
        return tconv_refuse(reason, "its copy exceeds the limit of the workspace");
    loops.data_channel_step = 1;
    loops.data_batch_step = copy.points * copy.row;
    struct tconv_request copied = *request;
    copied.loops = &loops;
    if (!prepare(p, &copied, product, true, reason)) return false;
    p->folded.machine = &request->machine;
    p->copy = copy;
    return true;
}

/* The positions along an axis with shared taps: so many that the input of a tap for each position
 * is in the same row, or is one of the positions without inputs behind this row or the row before.
 * Later taps have smaller distances, so the first and the last tap decide. */
static int64_t shared_positions(const struct tconv_side *side)
{
    const int64_t most = tconv_side_distance(side, 0),
                  least = tconv_side_distance(side, side->taps - 1);
    const int64_t positions = side->positions + tconv_max(most, 0);
    return least < 0 ? tconv_max(positions, side->axis->input - least) : positions;
}

bool tconv_positions_share(struct tconv_positions *p, int halo)
{
    double positions = (double)p->folded.loops.batch, apart = 0;
    if (p->most_taps < 2) return false;
    for (int a = 0; a < 3; a++) {
        struct tconv_side *side = &p->side[a];
        const int64_t taps = most_side_taps(side),
                      step = side->merged ? 1 : tconv_tap_step(side->axis);
        side->positions = shared_positions(side);
        positions *= (double)side->positions;
        apart *= (double)side->positions;
        if (taps > 1)
            apart += (double)((taps - 1) *
                              (tconv_side_distance(side, 0) - tconv_side_distance(side, step)));
        if (!tconv_divides(side->positions)) return false;
    }
    if (positions > INT32_MAX / 4 || apart > halo) return false;
    p->all_positions = (int64_t)positions;
    p->halo = halo;
    p->slots = 0;
    p->reaching = p->list_taps;
    return true;
}

bool tconv_positions_has_groups(const struct tconv_positions *g, bool output, int count)
{
    const struct tconv_loops *loops = &g->folded.loops;
    bool groups = g->last && (output ? loops->out_channels : loops->in_channels) % count == 0 &&
                  (output ? loops->output_batch_step : loops->data_batch_step) % count == 0;
    for (int a = 0; a < 3; a++) {
        const struct tconv_axis *axis = g->side[a].axis;
        groups = groups && (output ? axis->output_step : axis->data_step) % count == 0;
    }
    return groups;
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
    tconv_positions_set_order(p, 0, nt);
}

double tconv_positions_phase_tiles(const struct tconv_positions *p)
{
    return (double)p->tiles * (double)p->blocks * (double)p->folded.loops.groups;
}

double tconv_positions_part_groups(const struct tconv_positions *p)
{
    return tconv_positions_phase_tiles(p) * (double)p->phases;
}

double tconv_positions_groups(const struct tconv_positions *p)
{
    return tconv_positions_part_groups(p) * p->parts;
}

int64_t tconv_positions_part_channels(const struct tconv_positions *p)
{
    return tconv_ceil_div(tconv_ceil_div(p->folded.loops.in_channels, p->stage), p->parts) *
           p->stage;
}

double tconv_positions_taps(const struct tconv_positions *p)
{
    const double taps = p->order.items > 0 ? p->order.taps / (double)p->tiles : (double)p->reaching;
    return taps / (double)p->phases;
}

double tconv_positions_stages(const struct tconv_positions *p)
{
    return tconv_positions_taps(p) * (double)(tconv_positions_part_channels(p) / p->stage);
}

double tconv_positions_busiest_stages(const struct tconv_positions *p)
{
    const double mean = tconv_positions_stages(p),
                 most = (double)((p->order.items > 0 ? p->order.most_taps
                                                     : tconv_min(p->most_taps, p->reaching)) *
                                 (tconv_positions_part_channels(p) / p->stage));
    return tconv_larger(mean, most / tconv_gpu_rounds(tconv_positions_groups(p), p->units));
}

double tconv_positions_workspace_bytes(const struct tconv_positions *p)
{
    return tconv_positions_groups(p) * p->mt * p->nt * (double)p->folded.acc_bytes + SUMS_ALIGNMENT;
}

int64_t tconv_positions_output_bytes(const struct tconv_positions *p)
{
    int64_t bytes = (int64_t)sizeof(int64_t);
    for (int a = 0; a < 3; a++) bytes += p->side[a].merged ? (int64_t)sizeof(int32_t) : 0;
    return bytes;
}

bool tconv_positions_may_split(const struct tconv_positions *p, const struct tconv_request *request)
{
    const int64_t stages = tconv_ceil_div(p->folded.loops.in_channels, p->stage);
    const uint64_t limit = tconv_workspace_limit(request);
    return p->copy.elements == 0 && stages >= 2 * p->parts &&
           tconv_ceil_div(stages, tconv_ceil_div(stages, p->parts)) == p->parts &&
           tconv_positions_workspace_bytes(p) <=
               (double)(limit < MOST_WORKSPACE ? limit : MOST_WORKSPACE);
}

bool tconv_positions_check(const struct tconv_positions *p, int items,
                           const tconv_device_info *device, struct tconv_reason *reason)
{
    const double every = tconv_positions_phase_tiles(p) * (double)p->all_phases * p->parts;
    if (every * items > INT32_MAX || !tconv_divides((int64_t)tconv_positions_part_groups(p)))
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
    const double units = p->units, groups = tconv_positions_groups(p);
    const int64_t local = (int64_t)(m->unit_local * (double)device->local_memory);
    const int64_t registers = tconv_max((int64_t)(group->registers * m->warp * group->warps), 1);
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
                    (double)p->copy.elements * (double)tconv_type_size(p->folded.loops.data_type)};
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
