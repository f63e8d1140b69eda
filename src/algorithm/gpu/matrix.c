/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix algorithm: parameters, cost and kernel plan of cl/gpu/matrix.cl. */
#include "algorithm/registry.h"

#include "algorithm/gpu/positions.h"
#include "algorithm/gpu/units.h"
#include "base/checked.h"
#include "base/element_types.h"
#include "base/matrix_units.h"
#include "gpu/tiled_table.h"

#include <inttypes.h>
#include <limits.h>

/* The unit of a request, and the fragment that it multiplies at once. */
struct fragment {
    const struct tconv_unit *unit;
    int lanes, positions, depth;
    int64_t local_memory; /* bytes that the device has for the tile */
};

/* Low tiles cost more, because they copy as many inputs for fewer multiply-adds. */
static const struct tconv_product product = {
    .packing = TCONV_PACK_WORDS,
    .height = {{128, 1}, {64, 1.1}, {32, 1.5}, {16, 2.5}},
    .heights = 4,
    .apart = 32,
};

static bool rounds_f32(const struct tconv_request *request, const struct tconv_unit *unit)
{
    return request->loops->data_type == TCONV_F32 && unit->rounds_f32;
}

/* True unless fewer than a quarter of the products of a matrix unit would be useful: a stage has a
 * position's elements of all channels, zeros where there are too few of them. Plain OpenCL C takes
 * any number of channels. Selection never takes it, but tests want small layers. */
static bool fills_unit(const struct tconv_request *request, const struct tconv_unit *unit,
                       struct tconv_reason *reason)
{
    const struct tconv_loops *loops = request->loops;
    struct tconv_tile t;
    int words = INT_MAX; /* of the shortest stage */
    for (size_t i = 0; tconv_unit_tile(unit, 1, i, &t); i++)
        if (t.kt < words) words = t.kt;
    const int64_t stage = words * (4 / (int64_t)tconv_type_size(loops->data_type));
    const int64_t least = tconv_ceil_div(stage, 4);
    return unit->device == TCONV_MATRIX_NONE || loops->in_channels >= least ||
           tconv_refuse(reason,
                        "the number of input channels in a group is %" PRId64 "; below %" PRId64
                        " most products of its matrix unit would be with zeros",
                        loops->in_channels, least);
}

/* Chooses unit number `number` of the request, and its fragment. False with a reason if no unit
 * multiplies these types. */
static bool choose_fragment(const struct tconv_request *request, int number,
                            struct fragment *fragment, struct tconv_reason *reason)
{
    const struct tconv_loops *loops = request->loops;
    const struct tconv_unit *unit = tconv_unit_for(request, number);
    if (unit == NULL ||
        (tconv_type_is_byte(loops->data_type) && !tconv_type_is_byte(loops->filter_type)))
        return tconv_refuse(reason, "it multiplies f16, bf16, bytes, and f32 with math=fast");
    if (rounds_f32(request, unit) && request->math != TCONV_MATH_FAST)
        return tconv_refuse(reason, "it rounds f32 to 11 bits, which needs math=fast");
    if (request->epilogue->filter_zero_point != 0)
        return tconv_refuse(reason, "it does not subtract a zero point of the filter");
    if (!fills_unit(request, unit, reason)) return false;
    *fragment = (struct fragment){unit, unit->lanes, unit->positions,
                                  tconv_unit_depth(unit, loops->data_type), 0};
    if (unit->lanes == 0)
        fragment->lanes = fragment->positions = (int)request->device->subgroup_least;
    return true;
}

static int items_of(const struct fragment *f, const struct tconv_tile *t)
{
    return f->lanes * t->slices * (t->mt / t->wm) * (t->nt / t->wn);
}

/* The same for the unit that has a tile. */
static void find_fragment(const struct tconv_request *request, const struct tconv_tile *tile,
                          struct fragment *fragment)
{
    struct tconv_reason reason;
    size_t index;
    const struct tconv_unit *unit = tconv_unit_of_tile(request, tile, &index);
    for (int number = 0; choose_fragment(request, number, fragment, &reason); number++)
        if (fragment->unit == unit) break;
    fragment->local_memory = tconv_unit_memory(fragment->unit, index, request->device);
}

static int64_t word_of(const struct tconv_positions *g)
{
    return 4 / (int64_t)tconv_type_size(g->folded.loops.data_type);
}

/* Bytes of local memory with this number of stages: the stages, or what the epilogue needs (the
 * accumulators of one pass of stores, and the numbers of outputs and rows), whichever is more; for
 * bytes also the sums of weights. A pass is a fragment, or half of one if that exceeds the stages.
 * `early`: these numbers are beside the stages. */
static int64_t local_bytes_with(const struct tconv_positions *g, const struct fragment *f,
                                const struct tconv_tile *t, int buffers, bool early)
{
    const int pad = f->unit->swizzled ? 0 : 4;
    const int64_t stages = buffers * (int64_t)(t->mt + t->nt + g->halo) * (t->kt + pad);
    const int64_t ends = (int64_t)t->mt * (g->rows_last ? 2 : 3) +
                         t->nt * tconv_positions_output_bytes(g) / 4,
                  beside = early ? ends : 0, among = ends - beside;
    int64_t rows = (int64_t)(t->mt / t->wm) * f->unit->rows, finished;
    do {
        finished = t->slices * (g->rows_last ? t->nt * (rows + 4) : rows * (t->nt + f->unit->pad));
        rows /= 2;
    } while (f->unit->halves_rows && finished + among > stages &&
             rows == (t->mt / t->wm) * f->unit->rows / 2);
    return 4 * (tconv_max(stages, finished + among) + beside + (word_of(g) == 4 ? t->mt : 0));
}

/* Stages in local memory: as many as the unit uses and the device has memory for. */
static int buffers_of(const struct tconv_positions *g, const struct fragment *f,
                      const struct tconv_tile *t)
{
    int buffers = f->unit->buffers;
    while (buffers > 2 && local_bytes_with(g, f, t, buffers, false) > f->local_memory) buffers--;
    return buffers;
}

/* Whether the ends of a tile without parts can be found while its first stages are copied. Inputs
 * that pass through registers leave none for them, if there are many (clang 19 then spills in the
 * loop). */
static bool takes_early_ends(const struct tconv_positions *g, const struct fragment *f,
                             const struct tconv_tile *t)
{
    enum { MOST_QUADS = 2 }; /* of inputs, that a work-item holds */
    const bool fit = g->last || t->nt * t->kt / 4 <= MOST_QUADS * items_of(f, t);
    return f->unit->begins_products && fit && g->most_taps <= ROUND_TAPS &&
           local_bytes_with(g, f, t, buffers_of(g, f, t), true) <= f->local_memory;
}

/* Whether they are found then; parts have none. */
static bool has_early_ends(const struct tconv_positions *g, const struct fragment *f,
                           const struct tconv_tile *t)
{
    return g->parts == 1 && takes_early_ends(g, f, t);
}

static int64_t local_bytes(const struct tconv_positions *g, const struct fragment *f,
                           const struct tconv_tile *t)
{
    return local_bytes_with(g, f, t, buffers_of(g, f, t), has_early_ends(g, f, t));
}

/* Registers that the tile needs per work-item: the accumulators, and, on units whose compiler loads
 * a whole stage before multiplying, that stage's fragments and the prefetched loads. */
static double registers_of(const struct tconv_positions *g, const struct fragment *f,
                           const struct tconv_tile *t)
{
    const double sums = (double)t->wm * t->wn / f->lanes;
    if (f->unit->sharing == 0) return sums;
    const double quads = (double)t->kt / 4 / items_of(f, t); /* of a row or position */
    const double input = !g->last && word_of(g) == 2 ? 8 : 4;
    const double fragments = (double)(t->wm + t->wn) * t->kt / t->slices / f->unit->sharing;
    return sums + quads * (4 * t->mt + input * t->nt) + 1.1 * fragments;
}

/* Whether stages of several taps of the same channels follow each other. */
static bool taps_inside(const struct tconv_positions *g, const struct fragment *f)
{
    return f->unit->taps_inside && g->last && g->most_taps > 1 && g->halo == 0;
}

/* The same on a unit whose products run beside instructions. Predicted, not measured: published
 * times of such kernels are bounds of the multiplier, local memory or the cache divided by
 * wgmma_share. */
static double cost_beside(const struct tconv_positions *g, const struct fragment *f,
                          const struct tconv_tile *t, const tconv_device_info *device)
{
    enum { OWN_REGISTERS = 64 }; /* of a work-item beside its sums */
    const struct tconv_machine *m = g->folded.machine;
    const double items = items_of(f, t), warps = items / m->warp, row = 4.0 * t->kt; /* bytes */
    const double taps = (double)g->reaching / (double)g->phases;
    /* Inputs of a stage: those that come from the second-level cache, and those that pass through
     * local memory, which is the first-level cache, too: what that has passes twice. With shared
     * taps, a stage copies a tap's part of all inputs. */
    const double reuses = taps_inside(g, f) ? taps : 1,
                 cached = g->halo > 0 ? (t->nt + g->halo) / taps : t->nt / reuses,
                 passing = g->halo > 0 ? cached : t->nt * (reuses > 1 ? 2.0 : 1.0),
                 copies = g->halo > 0 ? cached : t->nt;
    const double stages = tconv_positions_busiest_stages(g);
    const bool copied = g->last && word_of(g) > 1; /* by instructions that nobody waits for */
    const double element = copied ? 0 : 4 * (double)word_of(g) * m->matrix_element;
    const double issued =
        warps / m->unit_issue *
        (m->wgmma_stage +
         t->kt / 4 / items * (t->mt * m->matrix_quad + copies * (m->matrix_quad + element)));
    const double products = (double)t->mt * t->nt * t->kt / (m->unit_lanes * m->wgmma_speed);
    const double read = (double)t->mt / f->unit->rows * (t->nt / t->wn) * (f->unit->rows + t->wn),
                 local = row * (read + t->mt + passing) / m->wgmma_local;
    const double cache = row * (t->mt + cached) / m->wgmma_l2;
    const double stage =
        tconv_larger(tconv_larger(products, tconv_larger(local, cache)) / m->wgmma_share, issued);
    const double early = has_early_ends(g, f, t) ? m->wgmma_early_ends : 0,
                 ends = tconv_larger(m->wgmma_begin_wait - early, 0) +
                        m->wgmma_store_wait * t->mt * t->nt / items;
    const double wait = copied ? m->wgmma_stage_wait : m->matrix_stage_wait;
    const struct tconv_group_cost group = {
        .busy = stages * stage + ends / 2, /* another group covers the other half */
        .alone = stages * tconv_larger(stage, wait) + ends,
        .warps = warps,
        .registers = OWN_REGISTERS + registers_of(g, f, t),
        /* In the measure of what the device reports. */
        .local = (int64_t)((double)local_bytes(g, f, t) * m->unit_local *
                           (double)device->local_memory / (double)f->unit->local_memory),
        .finish = m->matrix_finish_wait + g->parts * m->matrix_part_wait,
    };
    return tconv_positions_cost(g, &group, device) * f->unit->slowness;
}

/* The cost of the layer with this tile. */
static double cost_of(const struct tconv_positions *g, const struct fragment *f,
                      const struct tconv_tile *t, const tconv_device_info *device)
{
    if (f->unit->begins_products) return cost_beside(g, f, t, device);
    const struct tconv_machine *m = g->folded.machine;
    const double items = items_of(f, t), word = (double)word_of(g);
    const double warps = (double)tconv_ceil_div((int64_t)items, (int64_t)m->warp);
    const double stages = tconv_positions_busiest_stages(g);

    /* Instructions of a warp in a stage and outside the stages, and the waits of a group that has
     * the compute unit for itself. */
    const double products = (double)(t->wm / f->unit->rows) * (t->wn / f->positions) *
                            ((double)t->kt / f->depth / t->slices);
    const double reads = (double)(t->wm + t->wn) / 16 * ((double)t->kt / 8 / t->slices);
    const double inputs = (double)t->nt * t->kt / 4 / items, /* quads of a work-item */
        weights = (double)t->mt * t->kt / 4 / items;
    const double input = g->last ? m->matrix_quad : m->matrix_quad + 4 * word * m->matrix_element,
                 weight = g->last ? m->matrix_quad : m->matrix_weight;
    const double stage = products + reads + m->matrix_stage + weights * weight + inputs * input;
    const double speed = word == 1 && !f->unit->rounds_f32 ? 1 : m->matrix_speed;
    const double multiply = (double)t->mt * t->nt * t->kt / (m->unit_lanes * speed);
    const double stage_cycles = tconv_larger(stage * warps / m->unit_issue, multiply);
    const double outputs = (double)t->mt * t->nt / items;
    const double store = g->rows_last ? m->matrix_store / 2 : m->matrix_store;
    const double around = m->matrix_begin + outputs * store;
    const double busy = stages * stage_cycles + around * warps / m->unit_issue;
    /* matrix_stage_wait was measured with two buffers. A third one (predicted) gives the loads of a
     * stage the time of one more stage. */
    const double cycles = tconv_larger(stage, multiply),
                 more = tconv_larger(0, buffers_of(g, f, t) - 2),
                 wait = tconv_larger(0, m->matrix_stage_wait - more * cycles);
    const double alone = stages * (cycles + wait) + m->matrix_begin_wait +
                         outputs * m->matrix_store_wait;

    const double issued = f->unit->waits_for_all ? busy * (warps - 1) / warps : 0;

    /* How often a work-group reads an input; all but the first from the first-level cache. */
    const double all_reuses = g->order.items > 0 ? g->order.reuses : tconv_positions_taps(g),
                 reuses = taps_inside(g, f) ? all_reuses : 1;

    const struct tconv_group_cost group = {
        .busy = busy,
        .alone = alone + issued,
        .warps = warps,
        .registers = m->matrix_registers + registers_of(g, f, t),
        .local = local_bytes(g, f, t),
        .l2 = tconv_positions_stages(g) * t->kt * 4 * (t->mt + t->nt / reuses),
        .finish = m->matrix_finish_wait + g->parts * m->matrix_part_wait,
    };
    return tconv_positions_cost(g, &group, device) * f->unit->slowness;
}

/* Takes the order of positions that costs least, and returns the cost. */
static double take_order(struct tconv_positions *g, const struct fragment *f,
                         const struct tconv_tile *t, const tconv_device_info *device)
{
    double least = cost_of(g, f, t, device);
    int best = 0;
    for (int i = 1; tconv_positions_set_order(g, i, t->wn); i++) {
        const double cost = cost_of(g, f, t, device);
        if (cost < least) {
            least = cost;
            best = i;
        }
    }
    tconv_positions_set_order(g, best, t->wn);
    return least;
}

/* True if the device can run work-groups of this tile. */
static bool fits(const struct tconv_positions *g, const struct fragment *f,
                 const struct tconv_tile *t, const tconv_device_info *device)
{
    const struct tconv_unit *unit = f->unit;
    const uint64_t items = (uint64_t)items_of(f, t);
    const int64_t sums = (int64_t)t->wm * t->wn / f->lanes,
                  most_sums = g->last ? unit->most_last_sums : unit->most_sums;
    const int stage_quads = t->kt / 4;
    /* With plain data, a work-item without a quad of its own would read past the tensor. */
    if (!g->last && items > (uint64_t)t->nt * (uint64_t)stage_quads) return false;
    if (unit->most_registers != 0 && registers_of(g, f, t) > unit->most_registers) return false;
    return t->wm % unit->rows == 0 && t->wn % (f->positions * unit->least_wide) == 0 &&
           sums <= most_sums && items <= device->work_group_limit &&
           items <= device->work_item_limit[0] && items % (uint64_t)stage_quads == 0 &&
           t->kt % (f->depth * t->slices) == 0 && local_bytes(g, f, t) <= f->local_memory;
}

/* `copied`: the kernel reads a copy of plain data. */
static bool prepare(const struct tconv_request *request, bool copied, struct tconv_positions *g,
                    struct tconv_reason *reason)
{
    const int64_t quad = 16 / (int64_t)tconv_type_size(request->loops->data_type);
    return copied ? tconv_positions_prepare_copied(g, request, &product, quad, reason)
                  : tconv_positions_prepare(g, request, &product, reason);
}

/* Whether inputs are copied in quads. */
static bool has_quads(const struct tconv_positions *g)
{
    return g->copy.elements > 0 || tconv_positions_has_groups(g, false, 4 * (int)word_of(g));
}

/* Adds the candidates of a tile. */
static void add_tile(const struct tconv_request *request, struct tconv_positions *g,
                     const struct fragment *f, const struct tconv_tile *t,
                     struct tconv_candidates *candidates, struct tconv_reason *reason)
{
    struct tconv_positions shared;
    if (t->shared != 0) {
        shared = *g;
        g = &shared;
        if (word_of(g) == 1 || !has_quads(g) || !tconv_positions_share(g, t->shared)) return;
    }
    if (!fits(g, f, t, request->device)) return;
    for (int parts = 1; parts <= TCONV_MOST_PARTS; parts *= 2) {
        tconv_positions_set_tile(g, t->mt, t->nt, t->kt * (int)word_of(g), parts);
        if (parts > 1 && (t->mt % FINISHED_ROWS != 0 || !tconv_positions_may_split(g, request)))
            break;
        struct tconv_tile tile = *t;
        tile.split = parts > 1;
        tile.copy = g->copy.elements > 0;
        tile.parts = parts;
        if (tconv_positions_check(g, items_of(f, t), request->device, reason))
            tconv_candidates_add(candidates, &tile, take_order(g, f, t, request->device));
    }
}

static bool enumerate(const struct tconv_request *request, struct tconv_candidates *candidates,
                      struct tconv_reason *reason)
{
    struct tconv_positions plain, g;
    struct fragment f;
    if (!choose_fragment(request, 0, &f, reason) || !prepare(request, false, &plain, reason))
        return false;
    struct tconv_reason other;
    const bool may_copy = prepare(request, true, &g, &other);
    struct tconv_tile t;
    int least = INT_MAX;
    for (int n = 0; choose_fragment(request, n, &f, &other); n++)
        for (size_t i = 0; tconv_unit_tile(f.unit, f.lanes, i, &t); i++)
            if (items_of(&f, &t) < least) least = items_of(&f, &t);
    tconv_refuse(reason, "it needs work-groups of %d work-items, or more local memory", least);
    int preferred_rows = INT_MAX, preferred_positions = INT_MAX;
    for (int n = 0; choose_fragment(request, n, &f, &other); n++) {
        const int before = candidates->count;
        for (size_t i = 0; tconv_unit_tile(f.unit, f.lanes, i, &t); i++) {
            if (f.unit->local_memory != 0 && (request->refused_tiles >> i & 1) != 0) continue;
            /* A preferred unit has these. The costs of both units are from different models. */
            if (t.mt >= preferred_rows && t.nt >= preferred_positions) continue;
            f.local_memory = tconv_unit_memory(f.unit, i, request->device);
            add_tile(request, &plain, &f, &t, candidates, reason);
            if (may_copy) add_tile(request, &g, &f, &t, candidates, reason);
        }
        if (candidates->count == before) continue;
        for (size_t i = 0; tconv_unit_tile(f.unit, f.lanes, i, &t); i++) {
            preferred_rows = t.mt < preferred_rows ? t.mt : preferred_rows;
            preferred_positions = t.nt < preferred_positions ? t.nt : preferred_positions;
        }
    }
    return candidates->count > 0;
}

static void write_options(const struct tconv_positions *g, const struct fragment *f,
                          const struct tconv_tile *t, enum tconv_split split, int items,
                          struct tconv_launch *launch)
{
    const int gm = t->mt / t->wm, gn = t->nt / t->wn;
    tconv_launch_option(launch, "MATRIX", f->unit->macro);
    if (f->unit->begins_products && split != TCONV_FINISHED_SUMS)
        tconv_launch_option(launch, TCONV_SM_90A, 1);
    if (f->unit->lanes == 0) tconv_launch_option(launch, "LANES", f->lanes);
    tconv_launch_option(launch, "MT", t->mt);
    tconv_launch_option(launch, "NT", t->nt);
    tconv_launch_option(launch, "KT", t->kt);
    tconv_launch_option(launch, "BUFFERS", buffers_of(g, f, t));
    tconv_launch_option(launch, "GM", gm);
    tconv_launch_option(launch, "GN", gn);
    tconv_launch_option(launch, "FM", t->wm / f->unit->rows);
    tconv_launch_option(launch, "FN", t->wn / f->positions);
    tconv_launch_option(launch, "SLICES", t->slices);
    tconv_launch_option(launch, "TAPS_INSIDE", taps_inside(g, f));
    const bool whole_quads = g->folded.loops.in_channels % (4 * word_of(g)) == 0;
    tconv_launch_option(launch, "WHOLE_QUADS", f->unit->unconditional && whole_quads);
    tconv_launch_option(launch, "QUADS", has_quads(g));
    if (split == TCONV_WHOLE_SUMS && takes_early_ends(g, f, t))
        tconv_launch_option(launch, "EARLY_ENDS", 1);
    tconv_launch_option(launch, "OUTPUT_QUADS",
                        tconv_positions_has_groups(g, true, 8)   ? 2
                        : tconv_positions_has_groups(g, true, 4) ? 1
                                                                 : 0);
    tconv_positions_options(g, split, items, launch);
}

static tconv_status write(const struct tconv_request *request,
                          const struct tconv_candidate *candidate,
                          struct tconv_kernel_plan *kernel_plan, tconv_error *error)
{
    enum { FINISHING_ITEMS = 128 };
    struct tconv_positions g;
    struct fragment f;
    struct tconv_reason reason;
    const struct tconv_tile *t = &candidate->tile;
    find_fragment(request, t, &f);
    prepare(request, t->copy != 0, &g, &reason);
    if (t->shared != 0) tconv_positions_share(&g, t->shared);
    tconv_positions_set_tile(&g, t->mt, t->nt, t->kt * (int)word_of(&g), t->parts);
    take_order(&g, &f, t, request->device);
    if (!tconv_positions_write_table(&g, kernel_plan)) return tconv_fail_table(error, kernel_plan);
    const int items = items_of(&f, t);
    struct tconv_launch *copy = tconv_positions_copy(&g, items, kernel_plan);
    if (copy != NULL) write_options(&g, &f, t, TCONV_WHOLE_SUMS, items, copy);
    struct tconv_launch *run = tconv_positions_run(&g, "tconv_matrix", items, kernel_plan);
    write_options(&g, &f, t, g.parts > 1 ? TCONV_PART_SUMS : TCONV_WHOLE_SUMS, items, run);
    /* The filter is packed by the program without parts, whatever the number of parts is. */
    struct tconv_launch whole = {0};
    write_options(&g, &f, t, TCONV_WHOLE_SUMS, items, &whole);
    const bool f32 = request->loops->data_type == TCONV_F32, rounds = rounds_f32(request, f.unit);
    tconv_positions_pack(&g, f32 && !rounds ? "f32 words" : "words", &whole, request, kernel_plan);
    struct tconv_launch *fill = tconv_positions_fill(&g, items, kernel_plan);
    if (fill != NULL) write_options(&g, &f, t, TCONV_WHOLE_SUMS, items, fill);
    if (g.parts > 1) {
        const int finishing = items < FINISHING_ITEMS ? items : FINISHING_ITEMS;
        struct tconv_launch *finish = tconv_positions_finish(&g, "tconv_matrix_finish", finishing,
                                                             t->mt / FINISHED_ROWS, kernel_plan);
        write_options(&g, &f, t, TCONV_FINISHED_SUMS, finishing, finish);
    }
    /* TF32 rounds each factor by at most 2^-11, so a product errs by little more than 2^-10. The
     * oracle's bound counts roundings of f32; this factor makes it large enough. */
    if (rounds)
        kernel_plan->error_factor =
            (double)(g.folded.z.kernel * g.folded.y.kernel * g.folded.x.kernel) + 1 +
            16400.0 / ((double)request->loops->in_channels + 20.0 * request->loops->axes);
    return TCONV_OK;
}

const struct tconv_algorithm tconv_matrix_group = {
    .name = "matrix_group",
    .summary = "products of matrices in local memory by matrix units: f16, bf16, bytes, and f32 "
               "as TF32 on request or by CDNA's mfma; for GPUs",
    .source = "gpu/matrix.cl",
    .packing = TCONV_PACK_WORDS,
    .made_for = TCONV_FOR_LANES,
    .stages_locally = true,
    .parameters = {TCONV_TILE(mt), TCONV_TILE(nt), TCONV_TILE(wm), TCONV_TILE(wn),
                   TCONV_TILE(slices), TCONV_TILE(kt), TCONV_TILE(shared), TCONV_TILE(split),
                   TCONV_TILE(copy), TCONV_TILE(parts)},
    .program_parameters = 9,
    .enumerate = enumerate,
    .write = write,
};
