/* SPDX-License-Identifier: Apache-2.0 */
/* The direct algorithm: parameters, cost and kernel plan of cl/gpu/direct.cl. */
#include "algorithm/registry.h"

#include "algorithm/any/folded.h"
#include "algorithm/cost/gpu.h"
#include "base/architectures.h"
#include "base/checked.h"
#include "gpu/direct_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    ITEMS = 256,          /* of a work-group at most */
    MOST_WRITTEN = 4,     /* taps along an axis that are unrolled */
    SECTOR = 4,           /* longs */
    MOST_ROUNDS = 16,     /* of a work-item */
    MOST_STRIDE = 1 << 8, /* of phases in a work-group */
    MOST_BYTES = 16,      /* of a load or store */
    MOST_DENSE = 8,       /* input channels of a group, for vectors along x */
    PIXEL = 4,            /* elements */
    MOST_PRODUCTS = 64,   /* of a vector of outputs along x with a row of taps */
};

/* The parameters of a kernel, and the numbers that follow from them. */
struct direct {
    struct tconv_folded folded;
    bool last;
    struct tconv_tile tile;
    int64_t lanes[3];   /* of a work-group: of blocks of channels, along y and along x */
    bool depthwise;     /* groups have one input and one output channel */
    int near;           /* what loops keep: cl/gpu/near.clh */
    bool constant;      /* the table fits into constant memory */
    bool pixels;        /* data and weights can be read as images, where vectors can */
    int64_t blocks;     /* of output channels in a group */
    int64_t all_blocks; /* of all groups */
    int64_t tiles[3];   /* of work-groups, as the lanes */
    double groups;
};

/* The axis along which the outputs of a work-item lie, and the work-group's lanes there. */
static const struct tconv_axis *axis_along(const struct direct *g)
{
    return g->tile.along_y ? &g->folded.y : &g->folded.x;
}

/* Neighbouring outputs along x of a vector, and output channels. */
static int64_t vector_x(const struct direct *g)
{
    return g->last ? 1 : g->tile.vw;
}

static int64_t vector_channels(const struct direct *g)
{
    return g->last ? g->tile.vw : 1;
}

/* The outputs that lie between two outputs of a work-item. */
static int64_t apart_along(const struct direct *g)
{
    return g->tile.along_y ? g->lanes[1] : g->lanes[2] * vector_x(g);
}

/* The most products of one output. */
static double most_products(const struct tconv_folded *r)
{
    return (double)tconv_folded_taps_z(r) * (double)tconv_most_taps(&r->y) *
           (double)tconv_most_taps(&r->x) * (double)r->loops.in_channels;
}

/* ---- tiles ---------------------------------------------------------------------------------- */

/* The fewest lanes, a multiple of `step`, with which `count` takes no more tiles than with `most`
 * lanes. */
static int64_t even_lanes(int64_t count, int64_t most, int64_t step)
{
    most = tconv_max(most / step * step, step);
    const int64_t tiles = tconv_ceil_div(count, most);
    return tconv_ceil_div(tconv_ceil_div(count, tiles), step) * step;
}

/* Distributes the lanes of a work-group: first along the contiguous axis, then along the other axis
 * of the image, then to blocks of channels. Enough lanes are kept for the phases of the axis along
 * which the outputs of a work-item lie. False if the lanes do not suffice. */
static bool choose_lanes(struct direct *g, const tconv_device_info *device)
{
    const struct tconv_tile *t = &g->tile;
    const struct tconv_axis *x = &g->folded.x, *y = &g->folded.y;
    const int64_t most = tconv_min(
        ITEMS, tconv_min((int64_t)device->work_group_limit, (int64_t)device->work_item_limit[0]));
    /* A vector along x has whole periods of the phases. */
    const int64_t step_x = t->outputs > 1 && !t->along_y && vector_x(g) == 1 ? x->stride : 1,
                  step_y = t->along_y ? y->stride : 1;
    const int64_t vectors = tconv_ceil_div(x->output, vector_x(g));
    const int64_t count_x = t->along_y ? vectors : tconv_ceil_div(vectors, t->outputs),
                  count_y = t->along_y ? tconv_ceil_div(y->output, t->outputs) : y->output;
    const int64_t count_c = g->all_blocks;
    if (step_x * step_y > most) return false;
    int64_t left = most / step_y / step_x;
    if (g->last) {
        g->lanes[0] = even_lanes(count_c, left, 1);
        left = most / g->lanes[0] / step_y;
        g->lanes[2] = even_lanes(count_x, left, step_x);
        g->lanes[1] = even_lanes(count_y, most / g->lanes[0] / g->lanes[2], step_y);
    } else {
        g->lanes[2] = even_lanes(count_x, most / step_y, step_x);
        g->lanes[1] = even_lanes(count_y, most / g->lanes[2], step_y);
        g->lanes[0] = even_lanes(count_c, most / g->lanes[2] / g->lanes[1], 1);
    }
    return g->lanes[0] * g->lanes[1] * g->lanes[2] <= most;
}

/* Derives numbers from the tile. */
static void derive(struct direct *g)
{
    const struct tconv_tile *t = &g->tile;
    const struct tconv_loops *loops = &g->folded.loops;
    const int64_t channels = t->channels * vector_channels(g);
    g->blocks = tconv_ceil_div(loops->out_channels, channels);
    g->all_blocks = g->depthwise ? tconv_ceil_div(loops->groups, vector_channels(g))
                                 : loops->groups * g->blocks;
    g->tiles[0] = tconv_ceil_div(g->all_blocks, tconv_max(g->lanes[0], 1));
    const int64_t outputs = t->outputs * t->rounds;
    g->tiles[1] =
        tconv_ceil_div(g->folded.y.output, tconv_max(g->lanes[1], 1) * (t->along_y ? outputs : 1));
    g->tiles[2] = tconv_ceil_div(g->folded.x.output, tconv_max(g->lanes[2], 1) * vector_x(g) *
                                                         (t->along_y ? 1 : outputs));
    g->groups = (double)g->tiles[0] * (double)g->tiles[1] * (double)g->tiles[2] *
                (double)g->folded.z.output * (double)loops->batch;
}

/* The number of taps of every phase of an axis if they are few and all phases have equally many,
 * else 0. */
static int64_t written_taps(const struct tconv_axis *axis)
{
    const int64_t taps = axis->kernel / axis->stride;
    return axis->dilation == 1 && axis->kernel % axis->stride == 0 && taps <= MOST_WRITTEN ? taps
                                                                                           : 0;
}

/* ---- vectors -------------------------------------------------------------------------------- */

/* True if vectors of `count` elements remain aligned, whatever the indices along other axes. */
static bool has_steps(const struct direct *g, bool output, int64_t count)
{
    const struct tconv_folded *r = &g->folded;
    const struct tconv_loops *l = &r->loops;
    const struct {
        int64_t points, step;
    } in[] = {{l->batch, l->data_batch_step},
              {l->groups * l->in_channels, l->data_channel_step},
              {r->z.input, r->z.data_step},
              {r->y.input, r->y.data_step},
              {r->x.input, r->x.data_step}},
      out[] = {{l->batch, l->output_batch_step},
               {l->groups * l->out_channels, l->output_channel_step},
               {r->z.output, r->z.output_step},
               {r->y.output, r->y.output_step},
               {r->x.output, r->x.output_step}};
    const int own = g->last ? 1 : 4; /* the axis along which vectors lie */
    for (int a = 0; a < 5; a++) {
        const int64_t points = output ? out[a].points : in[a].points,
                      step = output ? out[a].step : in[a].step;
        if (a != own && points > 1 && step % count != 0) return false;
    }
    return true;
}

/* Elements of the data that one load reads, neighbours and aligned to their size: with LAST input
 * channels, else inputs along x, of which a vector of outputs has vw / stride to itself. */
static int64_t chunk_of(const struct direct *g)
{
    const int64_t vw = g->tile.vw;
    if (vw == 1) return 1;
    if (g->last) return g->depthwise || g->folded.loops.in_channels % vw == 0 ? vw : 1;
    int64_t chunk = vw / g->folded.x.stride;
    while (!has_steps(g, false, chunk) || g->folded.x.input % chunk != 0) chunk /= 2;
    return chunk;
}

/* True if work-items may have vectors of vw lanes. */
static bool has_vectors(const struct direct *g, const struct tconv_request *request, int64_t vw)
{
    const struct tconv_loops *loops = request->loops;
    const struct tconv_axis *x = &g->folded.x;
    const int64_t size = (int64_t)tconv_type_size(loops->data_type);
    if (vw == 1) return true;
    if ((loops->data_type != TCONV_F32 && size != 2) || !tconv_type_is_floating(loops->data_type) ||
        vw * size > MOST_BYTES)
        return false;
    const double most = g->last ? g->folded.machine->direct_dense : MOST_DENSE;
    if ((double)loops->in_channels > most || !has_steps(g, true, vw)) return false;
    if (g->last)
        return (g->depthwise ? loops->groups : loops->out_channels) % vw == 0 &&
               has_steps(g, false, g->depthwise || loops->in_channels % vw == 0 ? vw : 1);
    return x->output % vw == 0 && vw % x->stride == 0 && x->dilation == 1 && x->output_step == 1 &&
           x->data_step == 1 && x->kernel * vw / x->stride <= MOST_PRODUCTS;
}

/* ---- cost ----------------------------------------------------------------------------------- */

/* What a warp does for a row of taps of one input channel: loads, in cycles of 128 bytes, and
 * instructions. */
struct row_work {
    double loads, instructions;
};

static struct row_work row_work(const struct direct *g)
{
    const struct tconv_machine *m = g->folded.machine;
    const struct tconv_folded *r = &g->folded;
    const struct tconv_tile *t = &g->tile;
    const double channels = (double)r->loops.in_channels, taps = (double)tconv_most_taps(&r->x);
    const double size = (double)tconv_type_size(r->loops.data_type);
    const double chunk = (double)chunk_of(g), vw = (double)t->vw;
    const double wide = r->acc_bytes > 4 || tconv_adds_integers(&r->loops) ? 2 : 1;
    /* Channels last: neighbouring lanes do not load neighbouring elements. */
    const double apart =
        g->last && channels > 1 ? tconv_larger(1, m->warp / (double)g->lanes[0] / 4) : 1;
    /* With several input channels, each load computes an address. */
    const double load = channels > 1 ? m->direct_address : 1;
    double inputs = taps * (double)t->outputs, weights = taps * (double)t->channels;
    double words = 1, weight_words = 1, converted = 0; /* of 32 bits */
    double products = inputs * (double)t->channels;
    if (t->vw > 1) {
        products *= vw;
        words = tconv_larger(1, chunk * size / 4);
        weight_words = vw * size / 4;
        if (!g->last) { /* a row of the filter is the same for all lanes */
            weights = (double)(r->x.kernel * t->channels) / vw;
            weight_words = 1;
            inputs = (double)t->outputs *
                     ((vw + (double)r->x.kernel) / (double)r->x.stride / chunk + 1);
        } else
            inputs /= chunk_of(g) > 1 && !g->depthwise ? chunk : 1;
        converted = size == 2 ? inputs * chunk + weights * vw : 0;
    }
    return (struct row_work){
        .loads = inputs * words * apart + weights * weight_words,
        .instructions = (inputs + weights) * load + converted + products * (wide + 0.2),
    };
}

/* The time of a tile, in multiply-adds that all units could have done in it. */
static double cost_of(const struct direct *g)
{
    const struct tconv_machine *m = g->folded.machine;
    const struct tconv_folded *r = &g->folded;
    const struct tconv_tile *t = &g->tile;
    const double items = (double)(g->lanes[0] * g->lanes[1] * g->lanes[2]);
    const double group_warps = (double)tconv_ceil_div((int64_t)items, (int64_t)m->warp);
    const double rows = tconv_folded_slices(r) / (double)r->z.output *
                        (double)tconv_most_taps(&r->y);
    const double channels = (double)r->loops.in_channels;
    const double stored = (double)(t->outputs * t->channels);
    const double bytes = (double)t->vw * (double)tconv_type_size(r->loops.output_type);
    const double stores = t->vw == 1 ? stored : stored * bytes / 4;
    const double rounds = (double)t->rounds;
    const struct row_work row = row_work(g);
    const double loads = m->direct_begin_loads + rounds * (rows * channels * row.loads + stores);
    const bool written = written_taps(&r->x) > 0 || vector_x(g) > 1;
    const double parts = rows * channels * (written ? 1 : (double)tconv_most_taps(&r->x));
    const double instructions =
        m->direct_begin +
        rounds *
            (rows * m->direct_row + parts * m->direct_part + rows * channels * row.instructions +
             stored * (m->direct_store + m->direct_store_lane * (double)(t->vw - 1)));
    const double alone =
        m->direct_begin_wait +
        rounds * (rows * m->direct_row_wait + (parts - rows) * m->direct_part_wait) + instructions;
    const double warps = tconv_gpu_rounds(g->groups, m->units) * group_warps;
    const double waves = warps / m->unit_warps > 1 ? warps / m->unit_warps : 1;
    const struct tconv_gpu_launch run = {
        .units = m->units,
        .cycles =
            tconv_larger(warps * tconv_larger(instructions / m->unit_issue, loads), waves * alone),
        .dram = tconv_folded_data_bytes(r) + tconv_folded_output_bytes(r),
    };
    return tconv_gpu_launch_cost(m, &run);
}

/* ---- kernel plan ---------------------------------------------------------------------------- */

/* Rounds `at` up to a sector of memory: 32 bytes, which one load moves. Lists begin there. */
static int64_t list_at(int64_t at)
{
    return tconv_ceil_div(at, SECTOR) * SECTOR;
}

/* Where the table has the reaches of the phases along y and x, and how many longs are its own. */
static int64_t reach_y_at(void)
{
    return list_at(DIRECT_LONGS);
}

static int64_t reach_x_at(const struct tconv_folded *r)
{
    return list_at(reach_y_at() + REACH_LONGS * r->y.stride);
}

static size_t own_longs(const struct tconv_folded *r)
{
    return (size_t)(reach_x_at(r) + REACH_LONGS * r->x.stride - FOLDED_LONGS);
}

/* Elements from the first weight of the caller's filter to the last. */
static double source_span(const struct tconv_folded *r)
{
    const struct tconv_loops *l = &r->loops;
    const struct {
        int64_t points, step;
    } axes[] = {{l->groups, l->filter_group_step},     {l->in_channels, l->filter_in_step},
                {l->out_channels, l->filter_out_step}, {r->z.kernel, r->z.filter_step},
                {r->y.kernel, r->y.filter_step},       {r->x.kernel, r->x.filter_step}};
    double span = 1;
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++)
        span += ((double)axes[i].points - 1) * (double)axes[i].step;
    return span;
}

/* What the loops of a kernel keep: near.clh. */
static int near_of(tconv_architecture architecture)
{
    if (!tconv_has_trait(architecture, TCONV_TRAIT_NARROW)) return 0;
    return tconv_has_trait(architecture, TCONV_TRAIT_KEEPS) ? 2 : 1;
}

/* Elements from the first one of some channels of an image of the batch to their last. */
static int64_t data_span(const struct tconv_folded *r, int64_t channels)
{
    return 1 + (channels - 1) * r->loops.data_channel_step + (r->z.input - 1) * r->z.data_step +
           (r->y.input - 1) * r->y.data_step + (r->x.input - 1) * r->x.data_step;
}

/* True if data and weights can be read as images, where vectors can: of floating-point numbers, in
 * whole pixels of four, which the device's images and the kernel's indices can count. */
static bool has_pixels(const struct tconv_request *request, const struct direct *g, double weights)
{
    const struct tconv_folded *r = &g->folded;
    const struct tconv_loops *l = &r->loops;
    const tconv_type types[] = {l->data_type, tconv_source_type(request, &tconv_direct_group)};
    const int64_t steps[] = {l->data_batch_step, r->z.data_step, r->y.data_step, r->x.data_step};
    const double images = PIXEL * (double)request->device->image_pixels,
                 most = images < INT32_MAX ? images : INT32_MAX,
                 data = ((double)l->batch - 1) * (double)l->data_batch_step +
                        (double)data_span(r, l->groups * l->in_channels);
    bool can = g->last && data <= most && weights <= most;
    for (int i = 0; i < 2; i++) can = can && (types[i] == TCONV_F32 || types[i] == TCONV_F16);
    for (int i = 0; i < 4; i++) can = can && steps[i] % PIXEL == 0;
    return can;
}

/* Sets what all candidates have in common. */
static bool prepare(const struct tconv_request *request, struct direct *g,
                    struct tconv_reason *reason)
{
    enum { INDEX_LIMIT = 1 << 30 };
    const struct tconv_loops *loops = request->loops;
    *g = (struct direct){0};
    if (!tconv_fold_any_format(request, &g->folded, reason)) return false;
    const struct tconv_folded *r = &g->folded;
    g->last = loops->data_channel_step == 1 && loops->output_channel_step == 1 &&
              (loops->in_channels > 1 || loops->out_channels > 1 || loops->groups > 1);
    if (r->x.stride > MOST_STRIDE || r->y.stride > MOST_STRIDE)
        return tconv_refuse(reason, "a stride of more than %d", MOST_STRIDE);
    if ((double)r->y.input * (double)r->y.data_step + (double)r->x.input * (double)r->x.data_step >
        INDEX_LIMIT)
        return tconv_refuse(reason, "an image exceeds its 32-bit indices");
    const double taps = (double)r->z.kernel * (double)r->y.kernel * (double)r->x.kernel;
    if (taps > 1 << 20) return tconv_refuse(reason, "more than %d taps", 1 << 20);
    if (tconv_folded_group_too_long(most_products(r), request->device))
        return tconv_refuse(reason, "a work-item would add too many products");
    if (!tconv_folded_table_fits(
            r, DIRECT_LONGS - FOLDED_LONGS + REACH_LONGS * 2 * MOST_STRIDE + 2 * SECTOR, reason))
        return false;
    g->constant = tconv_folded_table_size(r, own_longs(r)) * sizeof(int64_t) <=
                  (uint64_t)request->device->constant_kib << 10;
    g->near = near_of(request->device->architecture);
    g->depthwise = loops->in_channels == 1 && loops->out_channels == 1;
    const double weights = taps * (double)loops->groups * (double)loops->in_channels *
                           (double)loops->out_channels;
    if (weights > INDEX_LIMIT)
        return tconv_refuse(reason, "more weights than its 32-bit indices count");
    if (source_span(r) > INDEX_LIMIT)
        return tconv_refuse(reason, "the filter's steps exceed its 32-bit indices");
    if (!tconv_divides(loops->out_channels))
        return tconv_refuse(reason, "more output channels than it divides by");
    g->pixels = has_pixels(request, g, weights);
    return tconv_filter_addressable(weights, tconv_packed_bytes(request, TCONV_PACK_RAW), reason);
}

/* True if 32-bit indices can count the work of this tile and the outputs of a work-item. */
static bool check_work(const struct direct *g, struct tconv_reason *reason)
{
    const struct tconv_tile *t = &g->tile;
    const double span = (double)(t->outputs * t->rounds * vector_x(g)) * ITEMS *
                        (double)axis_along(g)->output_step;
    bool fit = g->groups * ITEMS <= INT32_MAX && span <= INT32_MAX;
    for (int i = 0; i < 3; i++) fit = fit && tconv_divides(g->tiles[i]);
    fit = fit && tconv_divides(g->folded.z.output) && tconv_divides(g->blocks);
    return fit || tconv_refuse(reason, "more work-items than its 32-bit indices can count");
}

/* Sets the tile and its lanes. Lanes follow from the device's limits and are not parameters of the
 * tile: a plan whose kernel can run only in smaller work-groups keeps its tile. False if there are
 * no such lanes. */
static bool set_tile(struct direct *g, const struct tconv_tile *tile,
                     const tconv_device_info *device)
{
    g->tile = *tile;
    for (int i = 0; i < 3; i++) g->lanes[i] = 0;
    derive(g);
    const bool chosen = choose_lanes(g, device);
    derive(g);
    return chosen;
}

/* True if some work-item has outputs in the last half of its rounds, and not too much to do. Rounds
 * share the code before the input channels, which is little if there are several. */
static bool has_rounds(const struct direct *g, const tconv_device_info *device)
{
    const struct tconv_tile *t = &g->tile;
    const int64_t outputs = t->outputs * t->rounds;
    return t->rounds == 1 ||
           (g->folded.loops.in_channels == 1 &&
            apart_along(g) * outputs / 2 < axis_along(g)->output &&
            !tconv_folded_group_too_long(most_products(&g->folded) * (double)outputs, device));
}

/* True if compilers keep the sums of a work-item in registers. Each output has inputs and an
 * address as well, with channels last addresses for every tap: compiled for AMD's gfx1030 with 64
 * registers instead of 256, 16 sums in vectors spill up to 124 of them, and 8 outputs of one lane
 * up to 41. For Adreno, where loops keep addresses, 16 sums of one lane spill none. */
static bool holds_sums(const struct direct *g, const struct tconv_tile *tile,
                       const tconv_device_info *device)
{
    const bool intel = device->subgroup_least > 0; /* its compiler spills more */
    const int64_t bytes = tile->outputs * tile->channels * tile->vw * (int64_t)g->folded.acc_bytes;
    const int64_t most = (int64_t)g->folded.machine->item_sums;
    if (bytes / 2 > most || (g->last && tile->outputs > most / 4)) return false;
    if (tile->vw == 1) return bytes <= (intel ? 16 : g->near > 1 ? 64 : 32);
    return bytes <= (intel ? 32 : 128);
}

/* Adds the tile that is set, and behind it the same with images. What images gain was measured on
 * no device: the cost model never prefers them, and a search times them where they have a cache of
 * their own. */
static void add_tile(const struct tconv_request *request, const struct direct *g,
                     struct tconv_candidates *candidates)
{
    const double cost = cost_of(g);
    struct tconv_tile tile = g->tile;
    tconv_candidates_add(candidates, &tile, cost);
    if (!g->pixels || tile.vw == 1 || (!g->depthwise && chunk_of(g) < tile.vw)) return;
    tile.images = 1;
    tconv_candidates_add(
        candidates, &tile,
        tconv_has_trait(request->device->architecture, TCONV_TRAIT_TEXTURES) ? cost : 4 * cost);
}

/* Adds the candidates for vectors of vw lanes and so many outputs and channels. */
static void add_tiles(const struct tconv_request *request, struct direct *g, int vw, int outputs,
                      int channels, struct tconv_candidates *candidates,
                      struct tconv_reason *reason)
{
    for (int along_y = 0; along_y < (outputs > 1 && g->folded.y.output > 1 ? 2 : 1); along_y++)
        for (int rounds = 1; rounds <= (outputs > 1 ? MOST_ROUNDS : 1); rounds *= 2) {
            const struct tconv_tile tile = {.outputs = outputs,
                                            .channels = channels,
                                            .along_y = along_y,
                                            .vw = vw,
                                            .rounds = rounds};
            if (!holds_sums(g, &tile, request->device)) return;
            if (set_tile(g, &tile, request->device) && has_rounds(g, request->device) &&
                check_work(g, reason))
                add_tile(request, g, candidates);
        }
}

static bool enumerate(const struct tconv_request *request, struct tconv_candidates *candidates,
                      struct tconv_reason *reason)
{
    static const int outputs[] = {1, 2, 4, 8}, channels[] = {1, 2, 4}, lanes[] = {8, 4, 1};
    struct direct g;
    if (!prepare(request, &g, reason)) return false;
    tconv_refuse(reason, "it needs larger work-groups");
    for (size_t v = 0; v < sizeof lanes / sizeof *lanes; v++) {
        if (!has_vectors(&g, request, lanes[v])) continue;
        for (size_t c = 0; c < sizeof channels / sizeof *channels; c++) {
            if (c > 0 && (g.last || channels[c] / 2 >= g.folded.loops.out_channels)) continue;
            for (size_t o = 0; o < sizeof outputs / sizeof *outputs; o++)
                add_tiles(request, &g, lanes[v], outputs[o], channels[c], candidates, reason);
        }
    }
    return candidates->count > 0;
}

/* Writes a reach for each phase (o + pad) mod stride of the outputs along an axis. REACH_INPUT is
 * the input for the position (o + pad mod stride) / stride = 0. REACH_TAP is the first tap, or its
 * index in a filter that is `sorted` by phases. False only if host memory is missing. */
static bool write_axis(const struct tconv_axis *axis, bool sorted, int64_t *list)
{
    int64_t start = 0;
    struct tconv_phase *phases = tconv_phases_of(axis);
    if (phases == NULL) return false;
    const int64_t positions = tconv_floor_div(axis->pad, axis->stride);
    for (int64_t p = 0; p < axis->stride; p++, list += REACH_LONGS) {
        list[REACH_TAPS] = phases[p].taps;
        list[REACH_TAP] = sorted ? start : phases[p].first;
        start += phases[p].taps;
        list[REACH_INPUT] = positions - phases[p].shift;
    }
    free(phases);
    return true;
}

static bool write_table(const struct direct *g, struct tconv_kernel_plan *kernel_plan)
{
    const struct tconv_folded *r = &g->folded;
    const struct tconv_tile *t = &g->tile;
    const int64_t y_at = reach_y_at(), x_at = reach_x_at(r);
    const size_t own = own_longs(r);
    if (!tconv_kernel_plan_table(kernel_plan, tconv_folded_table_size(r, own))) return false;
    int64_t *n = kernel_plan->table;
    if (!tconv_folded_write_table(r, g->blocks, 0, own, n)) return false;
    /* Blocks of channels are the innermost lanes, or the outermost. */
    const int order[2][3] = {{2, 1, 0}, {0, 2, 1}};
    for (int i = 0; i < 3; i++) {
        n[i < 2 ? DIRECT_LANES_0 + i : DIRECT_LANES_2] = tconv_divisor(g->lanes[order[g->last][i]]);
        n[DIRECT_TILES_0 + i] = tconv_divisor(g->tiles[order[g->last][i]]);
    }
    n[DIRECT_POINTS_Z] = tconv_divisor(r->z.output);
    n[DIRECT_BLOCKS] = tconv_divisor(g->blocks);
    n[DIRECT_STRIDE_Y] = tconv_divisor(r->y.stride);
    n[DIRECT_STRIDE_X] = tconv_divisor(r->x.stride);
    n[DIRECT_OUT_CHANNELS] = tconv_divisor(r->loops.out_channels);
    n[DIRECT_TAPS_Y] = tconv_divisor(r->y.kernel);
    n[DIRECT_TAPS_X] = tconv_divisor(r->x.kernel);
    n[DIRECT_TAP_STEP_X] = tconv_divisor(tconv_tap_step(&r->x));
    n[DIRECT_ALL_BLOCKS] = g->all_blocks;
    n[DIRECT_PAD_Y] = tconv_mod(r->y.pad, r->y.stride);
    n[DIRECT_PAD_X] = tconv_mod(r->x.pad, r->x.stride);
    n[DIRECT_FIRST_X] = tconv_floor_div(r->x.pad, r->x.stride);
    const struct tconv_axis *axis = axis_along(g);
    n[DIRECT_ROUNDS] = t->rounds;
    n[DIRECT_APART] = apart_along(g);
    n[DIRECT_APART_IN] = t->outputs == 1 ? 0 : n[DIRECT_APART] / axis->stride;
    n[DIRECT_APART_DATA] = n[DIRECT_APART_IN] * axis->data_step;
    n[DIRECT_APART_OUTPUT] = n[DIRECT_APART] * axis->output_step;
    n[DIRECT_TAP_DATA] = tconv_input_step(&r->x) * r->x.data_step;
    const int64_t taps = r->z.kernel * r->y.kernel * r->x.kernel, in = r->loops.in_channels;
    n[DIRECT_WEIGHT_CHANNEL] = g->last ? 1 : taps * in;
    n[DIRECT_WEIGHT_IN] = g->last ? r->loops.groups * r->loops.out_channels : taps;
    n[DIRECT_WEIGHT_TAP] = g->last ? n[DIRECT_WEIGHT_IN] * in : 1;
    const struct tconv_loops *l = &r->loops;
    n[DIRECT_DATA_GROUP] = in * l->data_channel_step;
    n[DIRECT_DATA_SPAN] = data_span(r, in);
    n[DIRECT_WEIGHTS] = l->groups * l->out_channels * in * taps;
    n[DIRECT_Y_AT] = y_at;
    n[DIRECT_X_AT] = x_at;
    return write_axis(&r->y, false, n + y_at) && write_axis(&r->x, true, n + x_at);
}

static void write_options(const struct direct *g, struct tconv_launch *launch)
{
    tconv_launch_option(launch, "OUTPUTS", g->tile.outputs);
    tconv_launch_option(launch, "CHANNELS", g->tile.channels);
    tconv_launch_option(launch, "ALONG_Y", g->tile.along_y);
    tconv_launch_option(launch, "TAPS_X", written_taps(&g->folded.x));
    tconv_launch_option(launch, "ADJACENT",
                        g->folded.x.data_step * tconv_input_step(&g->folded.x) == 1);
    tconv_launch_option(launch, "SINGLE", g->folded.loops.in_channels == 1);
    tconv_launch_option(launch, "LAST", g->last);
    tconv_launch_option(launch, "DEPTHWISE", g->depthwise);
    tconv_launch_option(launch, "CONSTANT_TABLE", g->constant);
    if (g->tile.images) tconv_launch_option(launch, "IMAGES", 1);
    if (g->near > 0) {
        tconv_launch_option(launch, "NEAR", g->near);
        tconv_launch_option(launch, "FLAT", g->folded.z.kernel == 1);
    }
    tconv_launch_option(launch, "VW", g->tile.vw);
    const int64_t chunk = chunk_of(g);
    tconv_launch_option(launch, "CHUNK", chunk);
    if (vector_x(g) == 1) return;
    const struct tconv_axis *x = &g->folded.x;
    tconv_launch_option(launch, "KX", x->kernel);
    tconv_launch_option(launch, "SX", x->stride);
    tconv_launch_option(launch, "RX", tconv_mod(x->pad, x->stride));
    tconv_launch_option(launch, "SHIFT", tconv_mod(tconv_floor_div(x->pad, x->stride), chunk));
}

/* The taps inside the data that all work-items along an axis add to their outputs. Each work-item
 * has `outputs` outputs, `lanes` apart. Outputs past the last one count, unless the first output of
 * the work-item is already past it. */
static double taps_along(const struct tconv_axis *axis, int64_t lanes, int64_t outputs)
{
    enum { MOST_COUNTED = 1 << 16 };
    const double mean = (double)axis->kernel / (double)axis->stride;
    struct tconv_phase *phases = axis->output > MOST_COUNTED ? NULL : tconv_phases_of(axis);
    if (phases == NULL) return mean * (double)axis->output;
    int64_t taps = 0;
    for (int64_t o = 0; o < axis->output; o++)
        for (int64_t i = 0; i < outputs && o % (lanes * outputs) < lanes; i++)
            taps += tconv_reach_of(axis, phases, o + i * lanes).taps;
    free(phases);
    return (double)taps;
}

/* Multiply-adds that are issued. */
static double issued(const struct direct *g)
{
    const struct tconv_folded *r = &g->folded;
    const struct tconv_tile *t = &g->tile;
    return (double)r->loops.batch * (double)(g->all_blocks * t->channels * vector_channels(g)) *
           (double)r->loops.in_channels * tconv_folded_slices(r) *
           taps_along(&r->y, g->lanes[1], t->along_y ? t->outputs : 1) *
           taps_along(&r->x, g->lanes[2] * vector_x(g), t->along_y ? 1 : t->outputs);
}

static tconv_status write(const struct tconv_request *request,
                          const struct tconv_candidate *candidate,
                          struct tconv_kernel_plan *kernel_plan, tconv_error *error)
{
    struct direct g;
    struct tconv_reason reason;
    prepare(request, &g, &reason);
    set_tile(&g, &candidate->tile, request->device);
    if (!write_table(&g, kernel_plan)) return tconv_fail_table(error, kernel_plan);
    const struct tconv_loops *loops = request->loops;
    const struct tconv_folded *r = &g.folded;
    char name[64]; /* with the numbers that decide the order of taps along x */
    snprintf(name, sizeof name, "direct%s %" PRId64 "/%" PRId64, g.last ? " last" : "",
             r->x.dilation % r->x.stride, r->x.stride);
    tconv_folded_layout(kernel_plan, name, r);
    const int64_t channels = loops->groups * loops->out_channels,
                  taps = r->z.kernel * r->y.kernel * r->x.kernel;
    kernel_plan->filter_bytes = (uint64_t)(channels * loops->in_channels * taps) *
                                tconv_packed_bytes(request, TCONV_PACK_RAW);

    struct tconv_launch *pack = tconv_kernel_plan_pack(kernel_plan, "tconv_direct_pack");
    write_options(&g, pack);
    tconv_launch_items(pack, 0, channels, 64, request->device);
    tconv_launch_items(pack, 1, taps, 1, request->device);
    tconv_launch_items(pack, 2, loops->in_channels, 1, request->device);
    TCONV_LAUNCH_ARGS(pack, TCONV_ARG_WEIGHTS, TCONV_ARG_FILTER, TCONV_ARG_TABLE);

    struct tconv_launch *run = tconv_kernel_plan_run(kernel_plan, "tconv_direct");
    run->divides = true;
    write_options(&g, run);
    run->local[0] = (size_t)(g.lanes[0] * g.lanes[1] * g.lanes[2]);
    run->global[0] = run->local[0] * (size_t)g.groups;
    run->macs = issued(&g);
    const int64_t round = g.tile.outputs * apart_along(&g);
    run->trips[0] = (double)tconv_ceil_div(axis_along(&g)->output, round) /
                    (double)g.tiles[g.tile.along_y ? 1 : 2];
    run->trips[1] = tconv_folded_slices(r) / (double)r->z.output;
    run->trips[2] = (double)r->y.kernel / (double)r->y.stride;
    if (g.tile.images)
        TCONV_LAUNCH_ARGS(run, TCONV_ARG_DATA, TCONV_ARG_FILTER, TCONV_ARGS_EPILOGUE,
                          TCONV_ARG_TABLE, TCONV_ARG_DATA_IMAGE, TCONV_ARG_FILTER_IMAGE);
    else
        TCONV_LAUNCH_ARGS(run, TCONV_ARG_DATA, TCONV_ARG_FILTER, TCONV_ARGS_EPILOGUE,
                          TCONV_ARG_TABLE);
    return TCONV_OK;
}

const struct tconv_algorithm tconv_direct_group = {
    .name = "direct_group",
    .summary = "output-stationary, several outputs of a phase in a work-item: depthwise layers and "
               "few channels, for GPUs",
    .source = "gpu/direct.cl",
    .packing = TCONV_PACK_RAW,
    .made_for = TCONV_FOR_LANES,
    .order = TCONV_ORDER_BY_PARAMETERS,
    .order_parameters = "vw",
    .parameters = {TCONV_TILE(outputs), TCONV_TILE(channels), TCONV_TILE(along_y), TCONV_TILE(vw),
                   TCONV_TILE(images), TCONV_TILE(rounds)},
    .program_parameters = 5,
    .enumerate = enumerate,
    .write = write,
};
