/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix algorithm: parameters, cost and kernel plan of cl/gpu/matrix.cl. */
#include "algorithm/registry.h"

#include "algorithm/gpu/places.h"
#include "base/checked.h"

#include <limits.h>

/* What a unit multiplies at once: the first lines of cl/gpu/matrix.clh. */
struct fragment {
    int macro; /* MATRIX */
    int lanes, rows, places, depth;
    int pad;        /* words: PAD_PLACES there */
    int least_wide; /* fragments along places that a sub-group has at least */
};

/* A tile: rows and places; those of a sub-group, or 0: a fragment's; slices; words of a stage. */
struct tile {
    int mt, nt, wm, wn, slices, kt;
};

/* From the largest to the smallest. Slices make more sub-groups of a tile, for layers with fewer
 * tiles than keep the compute units busy. */
static const struct tile tiles[] = {
    {128, 128, 64, 32, 1, 16}, {128, 128, 64, 64, 1, 16}, {128, 64, 64, 32, 1, 16},
    {64, 128, 32, 64, 1, 16},  {64, 64, 32, 32, 1, 32},   {64, 64, 32, 64, 4, 32},
    {64, 64, 32, 32, 2, 32},   {64, 32, 32, 32, 4, 32},   {32, 128, 32, 32, 1, 16},
    {32, 64, 32, 32, 4, 32},   {32, 64, 32, 16, 1, 32},   {32, 32, 32, 16, 4, 32},
    {32, 32, 16, 16, 1, 32},   {16, 256, 16, 64, 1, 16},  {16, 128, 16, 32, 1, 16},
    {16, 64, 16, 32, 4, 32},   {16, 64, 16, 16, 1, 32},   {16, 32, 16, 16, 4, 32},
};

/* Intel's compiler keeps few sums of a work-item in registers. */
static const struct tile intel_tiles[] = {
    {64, 4, 16, 0, 1, 16}, {32, 8, 16, 0, 1, 16}, {16, 8, 16, 0, 1, 16}, {8, 16, 8, 0, 1, 16}};

/* In plain OpenCL C it is for tests: as little work as tells. */
static const struct tile plain_tiles[] = {{64, 32, 32, 32, 2, 16},
                                          {32, 32, 16, 16, 1, 16},
                                          {16, 32, 16, 16, 1, 16},
                                          {16, 32, 16, 16, 2, 16},
                                          {16, 32, 16, 32, 1, 16}};

/* Multiply-adds that are issued for one that is useful: a stage's copies and the stores are for as
 * many places, however few the rows are. */
static const struct tconv_height heights[] = {{128, 1}, {64, 1.1}, {32, 1.5}, {16, 2.5}};

/* CDNA's mfma multiplies f32; others round it to TF32. */
static bool multiplies_f32(const tconv_device_info *device)
{
    return device->matrix_unit == TCONV_MATRIX_AMD_MFMA;
}

static bool rounds_f32(const struct tconv_request *request)
{
    return request->layer->data_type == TCONV_F32 && !multiplies_f32(request->device);
}

/* The unit that is to be used; false where none multiplies these types. */
static bool choose_fragment(const struct tconv_request *request, struct fragment *fragment,
                            struct tconv_reason *reason)
{
    const struct tconv_layer *layer = request->layer;
    const tconv_type data = layer->data_type;
    const bool bytes = tconv_type_size(data) == 1;
    if (bytes ? tconv_type_size(layer->filter_type) != 1
              : data != TCONV_F16 && data != TCONV_BF16 && data != TCONV_F32)
        return tconv_refuse(reason, "it multiplies f16, bf16, bytes, and f32 with math=fast");
    if (rounds_f32(request) && request->math != TCONV_MATH_FAST)
        return tconv_refuse(reason, "it rounds f32 to 11 bits, which wants math=fast");
    if (request->epilogue->filter_zero_point != 0)
        return tconv_refuse(reason, "it takes no zero point away from the filter");
    static const struct fragment plain = {1, 32, 16, 8, 8, 8, 2}, nvidia = {2, 32, 16, 8, 8, 8, 2},
                                 wmma = {3, 32, 16, 16, 8, 16, 1}, mfma = {4, 64, 16, 16, 8, 4, 1};
    const int lanes = (int)request->device->subgroup_least; /* a multiplication is as wide as one */
    const struct fragment dpas = {5, lanes, 8, lanes, 8, 1, 1};
    *fragment = plain;
    switch (request->device->matrix_unit) {
    case TCONV_MATRIX_NONE:
    case TCONV_MATRIX_X86_AVX512_VNNI: /* dot_vector has these */
    case TCONV_MATRIX_X86_AVX_VNNI:
    case TCONV_MATRIX_X86_AVX512_BF16:
    case TCONV_MATRIX_PLAIN_QUADS: break;
    case TCONV_MATRIX_NVIDIA_MMA: *fragment = nvidia; break;
    case TCONV_MATRIX_AMD_WMMA:
        if (data != TCONV_F32) *fragment = wmma;
        if (bytes) fragment->depth = 4;
        break;
    case TCONV_MATRIX_AMD_MFMA:
        if (!bytes) *fragment = mfma;
        if (data == TCONV_F32) fragment->depth = 16;
        break;
    case TCONV_MATRIX_INTEL_DPAS:
        if (data != TCONV_F32 && (lanes == 8 || lanes == 16)) *fragment = dpas;
        break;
    }
    return true;
}

/* The tiles of a unit; NULL past the last one. */
static const struct tile *tile_at(const struct fragment *f, size_t index, struct tile *own)
{
    const struct tile *list = f->macro == 5 ? intel_tiles : f->macro == 1 ? plain_tiles : tiles;
    const size_t count = f->macro == 5   ? sizeof intel_tiles / sizeof *intel_tiles
                         : f->macro == 1 ? sizeof plain_tiles / sizeof *plain_tiles
                                         : sizeof tiles / sizeof *tiles;
    if (index >= count) return NULL;
    *own = list[index];
    if (f->macro == 5) {
        own->wn = f->lanes;
        own->nt *= f->lanes;
    }
    return own;
}

static int items_of(const struct fragment *f, const struct tile *t)
{
    return f->lanes * t->slices * (t->mt / t->wm) * (t->nt / t->wn);
}

/* Where copies need not wait for sums in memory, the next stage comes while one is multiplied. */
static int buffers_of(const struct fragment *f)
{
    return f->macro == 5 ? 1 : 2;
}

static int64_t word_of(const struct tconv_places *g)
{
    return 4 / (int64_t)tconv_type_size(g->folded.layer.data_type);
}

/* The tiles of a stage, or the accumulators of one pass of stores; and what is known of outputs and
 * rows, but for factors. */
static int64_t local_bytes(const struct tconv_places *g, const struct fragment *f,
                           const struct tile *t)
{
    const int64_t stage = buffers_of(f) * (int64_t)(t->mt + t->nt) * (t->kt + 4);
    const int64_t rows = (int64_t)(t->mt / t->wm) * f->rows;
    const int64_t finished = t->slices *
                             (g->rows_last ? t->nt * (rows + 4) : rows * (t->nt + f->pad));
    const int64_t row = 1 + (g->rows_last ? 0 : 1) + (word_of(g) == 4 ? 1 : 0); /* words */
    return 4 * (tconv_max(stage, finished) + row * t->mt) + tconv_places_output_bytes(g) * t->nt;
}

/* The second launch, which adds up the sums of all parts. */
static double finish_cycles(const struct tconv_places *g, double units)
{
    const struct tconv_machine *m = g->folded.machine;
    if (g->parts == 1) return 0;
    const double sums = tconv_places_groups(g) * g->mt * g->nt / units;
    return m->gpu_launch + m->matrix_finish_wait + g->parts * m->matrix_part_wait +
           2 * sums * (double)g->folded.acc_bytes / m->unit_l2;
}

static bool is_amd(const struct fragment *f)
{
    return f->macro == 3 || f->macro == 4;
}

/* Registers of a work-item that depend on the tile: sums; with AMD's compilers also what is on its
 * way to the next stage, and the fragments of a whole stage, which they read in front of all
 * products. NVIDIA's need about as many for every tile. */
static double registers_of(const struct tconv_places *g, const struct fragment *f,
                           const struct tile *t)
{
    const double sums = (double)t->wm * t->wn / f->lanes;
    if (!is_amd(f)) return sums;
    const double quads = (double)t->kt / 4 / items_of(f, t); /* of a row or place */
    const double input = !g->last && word_of(g) == 2 ? 8 : 4;
    /* A fragment of 16 rows or places is spread over the lanes; wmma's has all words twice. */
    const double fragments = (double)(t->wm + t->wn) * t->kt / t->slices /
                             (f->macro == 3 ? 16 : f->lanes);
    return sums + quads * (4 * t->mt + input * t->nt) + 1.1 * fragments;
}

/* The time of a tile, in multiply-adds that all units could have done in it. */
static double cost_of(const struct tconv_places *g, const struct fragment *f, const struct tile *t,
                      const tconv_device_info *device)
{
    const struct tconv_machine *m = g->folded.machine;
    const double units = tconv_places_units(m, device);
    const double items = items_of(f, t), word = (double)word_of(g);
    const double warps = (double)tconv_ceil_div((int64_t)items, (int64_t)m->warp);
    const double stages = tconv_places_stages(g);

    /* A stage, and what is around all stages: instructions of a warp, and how long a group waits
     * at its barrier if it is alone. */
    const double products = (double)(t->wm / f->rows) * (t->wn / f->places) *
                            ((double)t->kt / f->depth / t->slices);
    const double reads = (double)(t->wm + t->wn) / 16 * ((double)t->kt / 8 / t->slices);
    const double inputs = (double)t->nt * t->kt / 4 / items, /* quads of a work-item */
        weights = (double)t->mt * t->kt / 4 / items;
    const double input = g->last ? m->matrix_quad : m->matrix_quad + 4 * word * m->matrix_element,
                 weight = g->last ? m->matrix_quad : m->matrix_weight;
    const double stage = products + reads + m->matrix_stage + weights * weight + inputs * input;
    const double speed = word == 1 && multiplies_f32(device) ? 1 : m->matrix_speed;
    const double multiply = (double)t->mt * t->nt * t->kt / (m->unit_lanes * speed);
    const double stage_cycles = tconv_larger(stage * warps / m->unit_issue, multiply);
    const double outputs = (double)t->mt * t->nt / items;
    const double store = g->last ? m->matrix_store / 2 : m->matrix_store;
    const double around = m->matrix_begin + outputs * store;
    const double busy = stages * stage_cycles + around * warps / m->unit_issue;
    const double alone = stages * (tconv_larger(stage, multiply) + m->matrix_stage_wait) +
                         m->matrix_begin_wait + outputs * m->matrix_store_wait;

    /* At a barrier the last warp waits for its loads behind what all others issue; NVIDIA's
     * matrix_stage_wait includes that. */
    const double issued = is_amd(f) ? busy * (warps - 1) / warps : 0;

    const struct tconv_group_cost group = {
        .busy = busy,
        .alone = alone + issued,
        .warps = warps,
        .registers = m->matrix_registers + registers_of(g, f, t),
        .local = local_bytes(g, f, t),
        .l2 = stages * t->kt * 4 * (t->mt + t->nt),
        .finish = finish_cycles(g, units),
    };
    const double all = tconv_places_cost(g, &group, device);
    return f->macro == 1 ? all * 1000 : all;
}

/* Whether the device takes work-groups of this tile. */
static bool fits(const struct tconv_places *g, const struct fragment *f, const struct tile *t,
                 const tconv_device_info *device)
{
    enum { MOST_WMMA_REGISTERS = 210 }; /* of the tile; above it, clang 19 spills some of 256 */
    const uint64_t items = (uint64_t)items_of(f, t);
    /* Loads of single elements, with plain data, take the registers of more sums; so do copies on
     * their way through registers with wmma. */
    const int64_t sums = (int64_t)t->wm * t->wn / f->lanes,
                  most_sums = g->last && f->macro != 3 ? 128 : 64;
    const int stage_quads = t->kt / 4;
    if (f->macro == 3 && registers_of(g, f, t) > MOST_WMMA_REGISTERS) return false;
    return t->wm % f->rows == 0 && t->wn % (f->places * f->least_wide) == 0 && sums <= most_sums &&
           items <= device->work_group_limit && items <= device->work_item_limit[0] &&
           items % (uint64_t)stage_quads == 0 && t->kt % (f->depth * t->slices) == 0 &&
           local_bytes(g, f, t) + 4 * t->mt <= (int64_t)device->local_memory;
}

static bool prepare(const struct tconv_request *request, struct tconv_places *g,
                    struct fragment *fragment, struct tconv_reason *reason)
{
    return choose_fragment(request, fragment, reason) &&
           tconv_places_prepare(g, request, TCONV_PACK_WORDS, heights,
                                sizeof heights / sizeof *heights, reason);
}

static bool enumerate(const struct tconv_request *request, struct tconv_candidates *candidates,
                      struct tconv_reason *reason)
{
    struct tconv_places g;
    struct fragment f;
    if (!prepare(request, &g, &f, reason)) return false;
    struct tile t;
    int least = INT_MAX;
    for (size_t i = 0; tile_at(&f, i, &t) != NULL; i++)
        if (items_of(&f, &t) < least) least = items_of(&f, &t);
    tconv_refuse(reason, "it needs work-groups of %d work-items, or more local memory", least);
    for (size_t i = 0; tile_at(&f, i, &t) != NULL; i++) {
        if (!fits(&g, &f, &t, request->device)) continue;
        for (int parts = 1; parts <= TCONV_MOST_PARTS; parts *= 2) {
            tconv_places_set_tile(&g, t.mt, t.nt, t.kt * (int)word_of(&g), parts);
            if (parts > 1 && !tconv_places_may_split(&g, request)) break;
            const int64_t tile[] = {t.mt, t.nt, t.wm, t.wn, t.slices, t.kt, parts > 1, parts};
            if (tconv_places_check(&g, items_of(&f, &t), request->device, reason))
                tconv_candidates_add(candidates, tile, cost_of(&g, &f, &t, request->device));
        }
    }
    return candidates->count > 0;
}

static void write_options(const struct tconv_places *g, const struct fragment *f,
                          const struct tile *t, enum tconv_split split, int items,
                          struct tconv_launch *launch)
{
    const int gm = t->mt / t->wm, gn = t->nt / t->wn;
    tconv_launch_option(launch, "MATRIX", f->macro);
    if (f->macro == 5) tconv_launch_option(launch, "LANES", f->lanes);
    tconv_launch_option(launch, "MT", t->mt);
    tconv_launch_option(launch, "NT", t->nt);
    tconv_launch_option(launch, "KT", t->kt);
    tconv_launch_option(launch, "BUFFERS", buffers_of(f));
    tconv_launch_option(launch, "GM", gm);
    tconv_launch_option(launch, "GN", gn);
    tconv_launch_option(launch, "FM", t->wm / f->rows);
    tconv_launch_option(launch, "FN", t->wn / f->places);
    tconv_launch_option(launch, "SLICES", t->slices);
    const bool whole_quads = g->folded.layer.in_channels % (4 * word_of(g)) == 0;
    tconv_launch_option(launch, "WHOLE_QUADS", is_amd(f) && whole_quads);
    tconv_launch_option(launch, "QUADS", tconv_places_has_groups(g, false, 4 * (int)word_of(g)));
    tconv_launch_option(launch, "OUTPUT_QUADS", tconv_places_has_groups(g, true, 4));
    tconv_places_options(g, split, items, launch);
}

static tconv_status write(const struct tconv_request *request,
                          const struct tconv_candidate *candidate,
                          struct tconv_kernel_plan *kernel_plan, tconv_error *error)
{
    enum { FINISHED_ROWS = 16, FINISHING_ITEMS = 128 }; /* PASS_ROWS of cl/gpu/matrix.cl */
    struct tconv_places g;
    struct fragment f;
    struct tconv_reason reason;
    prepare(request, &g, &f, &reason);
    const struct tile t = {(int)candidate->tile[0], (int)candidate->tile[1],
                           (int)candidate->tile[2], (int)candidate->tile[3],
                           (int)candidate->tile[4], (int)candidate->tile[5]};
    tconv_places_set_tile(&g, t.mt, t.nt, t.kt * (int)word_of(&g), (int)candidate->tile[7]);
    if (!tconv_places_write_table(&g, kernel_plan)) return tconv_fail_table(error, kernel_plan);
    const int items = items_of(&f, &t);
    struct tconv_launch *run = tconv_places_run(&g, "tconv_matrix", items, kernel_plan);
    write_options(&g, &f, &t, g.parts > 1 ? TCONV_PART_SUMS : TCONV_WHOLE_SUMS, items, run);
    /* Filters are packed by the program that computes without parts. */
    struct tconv_launch whole = {0};
    write_options(&g, &f, &t, TCONV_WHOLE_SUMS, items, &whole);
    const bool f32 = request->layer->data_type == TCONV_F32, rounds = rounds_f32(request);
    tconv_places_pack(&g, f32 && !rounds ? "f32 words" : "words", &whole, request, kernel_plan);
    if (g.parts > 1) {
        const int finishing = items < FINISHING_ITEMS ? items : FINISHING_ITEMS;
        struct tconv_launch *finish = tconv_places_finish(&g, "tconv_matrix_finish", finishing,
                                                          t.mt / FINISHED_ROWS, kernel_plan);
        write_options(&g, &f, &t, TCONV_FINISHED_SUMS, finishing, finish);
    }
    /* TF32 rounds each factor by 2^-11 at most, a product errs by a little more than 2^-10: the
     * bound with this factor is the oracle's, which counts in roundings of f32. */
    if (rounds)
        kernel_plan->error_factor =
            (double)(g.folded.z.kernel * g.folded.y.kernel * g.folded.x.kernel) + 1 +
            16400.0 / ((double)request->layer->in_channels + 20.0 * request->layer->axes);
    return TCONV_OK;
}

const struct tconv_algorithm tconv_matrix_group = {
    .name = "matrix_group",
    .summary = "products of matrices in local memory by matrix units: f16, bf16, bytes, and f32 "
               "as TF32 on request or by CDNA's mfma; for GPUs",
    .source = "gpu/matrix.cl",
    .packing = TCONV_PACK_WORDS,
    .made_for = TCONV_FOR_LANES,
    .tile_names = {"mt", "nt", "wm", "wn", "slices", "kt", "split", "parts"},
    .program_parameters = 7,
    .enumerate = enumerate,
    .write = write,
};
