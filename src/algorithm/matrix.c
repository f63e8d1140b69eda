/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix algorithm: parameters, cost and kernel plan of cl/matrix.cl. */
#include "algorithm/algorithms.h"

#include "algorithm/folded.h"
#include "base/checked.h"
#include "matrix_table.h"

enum {
    MOST_CLASSES = 1 << 12,
    MOST_TAPS = 1 << 16,
    MOST_CHANNELS = 128, /* of a tile */
    STAGE_WORDS = 16,
    ITEMS = 128,      /* of a work-group, where the device allows that many */
    PLACE_BYTES = 28, /* of struct places in cl/matrix.cl, for each place */
};

/* What a unit multiplies at once: the first lines of cl/matrix.clh. */
struct fragment {
    int macro; /* MATRIX */
    int lanes, channels, places, sums;
    int pad_places, pad_channels; /* words: PAD_PLACES and PAD_CHANNELS there */
};

/* The parameters of a kernel, and what follows from them. */
struct matrix {
    struct tconv_folded_layer folded;
    struct fragment fragment;
    int mt, nt, gm, gn, buffers; /* as in cl/matrix.cl */
    bool last;
    int64_t words;     /* of a place: groups of input channels that fill 32 bits */
    int64_t places[3]; /* along z, y, x */
    int64_t all_places, tiles, blocks, classes, taps;
};

/* Multiply-adds that the tiles issue: all taps with whole stages, whole tiles and blocks. */
static double issued(const struct matrix *g, const tconv_type data)
{
    const double word = 4 / (double)tconv_type_size(data),
                 stages = (double)tconv_ceil_div(g->words, STAGE_WORDS) * STAGE_WORDS;
    return (double)g->taps * stages * word * (double)g->tiles * (double)g->blocks *
           (double)g->folded.layer.groups * g->mt * g->nt;
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
    if (data == TCONV_F32 && request->math != TCONV_MATH_FAST)
        return tconv_refuse(reason, "it rounds f32 to 11 bits, which wants math=fast");
    if (request->epilogue->filter_zero_point != 0)
        return tconv_refuse(reason, "it takes no zero point away from the filter");
    static const struct fragment plain = {1, 32, 16, 8, 4, 8, 4}, nvidia = {2, 32, 16, 8, 4, 8, 4},
                                 wmma = {3, 32, 16, 16, 8, 16, 2}, mfma = {4, 64, 16, 16, 4, 4, 1};
    const int lanes = (int)request->device->subgroup_least; /* a multiplication is as wide as one */
    const struct fragment dpas = {5, lanes, 8, lanes, 8, 1, 1};
    *fragment = plain;
    switch (request->device->matrix_unit) {
    case TCONV_MATRIX_NONE:
    case TCONV_MATRIX_X86_AVX512_VNNI: /* dot_vector has these */
    case TCONV_MATRIX_X86_AVX_VNNI:
    case TCONV_MATRIX_PLAIN_QUADS: break;
    case TCONV_MATRIX_NVIDIA_MMA: *fragment = nvidia; break;
    case TCONV_MATRIX_AMD_WMMA:
        if (data != TCONV_F32) *fragment = wmma;
        break;
    case TCONV_MATRIX_AMD_MFMA:
        if (data != TCONV_F32 && !bytes) *fragment = mfma;
        break;
    case TCONV_MATRIX_INTEL_DPAS:
        if (data != TCONV_F32 && (lanes == 8 || lanes == 16)) *fragment = dpas;
        break;
    }
    return true;
}

/* Words of local memory: the tiles of a stage, or the sums on their way out. */
static int64_t local_bytes(const struct matrix *g)
{
    const int64_t stage = g->buffers * (int64_t)(g->mt + g->nt) * (STAGE_WORDS + 4);
    const int64_t rows = (int64_t)g->gm * g->fragment.channels;
    const int64_t finished = g->last ? g->nt * (rows + g->fragment.pad_channels)
                                     : rows * (g->nt + g->fragment.pad_places);
    return 4 * tconv_max(stage, finished) + (int64_t)PLACE_BYTES * g->nt + 4 * (int64_t)g->mt;
}

/* The tile's channels follow from channels only, not from extents: filters are shared. */
static bool choose_tile(struct matrix *g, const tconv_device_info *device,
                        struct tconv_reason *reason)
{
    const struct fragment *f = &g->fragment;
    const bool intel = f->macro == 5; /* its compiler keeps few sums of a work-item in registers */
    int groups = intel ? 16 : ITEMS / f->lanes;
    while (groups > 0 && ((uint64_t)(groups * f->lanes) > device->work_group_limit ||
                          (uint64_t)(groups * f->lanes) > device->work_item_limit[0]))
        groups /= 2;
    if (groups == 0) return tconv_refuse(reason, "it needs work-groups of %d work-items", f->lanes);
    int64_t least = INT64_MAX;
    for (int mt = intel ? MOST_CHANNELS / 2 : MOST_CHANNELS; mt >= f->channels; mt /= 2) {
        const int64_t channels = tconv_ceil_div(g->folded.layer.out_channels, mt) * mt;
        if (channels < least) {
            least = channels;
            g->mt = mt;
        }
    }
    g->gm = 1;
    while (g->gm * g->gm < groups && g->mt >= 2 * g->gm * f->channels) g->gm *= 2;
    g->gn = groups / g->gm;
    /* Where copies need not be waited for, the next stage comes while this one is multiplied. */
    for (g->buffers = f->macro <= 2 ? 2 : 1; g->buffers > 0; g->buffers--) {
        g->nt = g->mt < 64 ? 128 : 64;
        if (intel) g->nt = (int)tconv_max(g->gn, g->mt < 64 ? 8 : 4) * f->lanes;
        if (f->macro == 1) g->nt = g->gn * f->places; /* for tests: as little work as tells */
        for (; g->nt >= g->gn * f->places; g->nt /= 2)
            if (local_bytes(g) <= (int64_t)device->local_memory &&
                (g->nt / 2 < g->gn * f->places || g->nt / 2 < g->all_places))
                return true;
    }
    g->buffers = 1;
    g->nt = g->gn * f->places;
    return tconv_refuse(reason, "it needs %lld bytes of local memory", (long long)local_bytes(g));
}

/* Everything that all candidates have in common. */
static bool prepare(const struct tconv_request *request, struct matrix *g,
                    struct tconv_reason *reason)
{
    const struct tconv_layer *layer = request->layer;
    *g = (struct matrix){.classes = 1, .taps = 1};
    if (!tconv_fold(request, &g->folded, reason) || !choose_fragment(request, &g->fragment, reason))
        return false;
    const struct tconv_axis *axes[] = {&g->folded.z, &g->folded.y, &g->folded.x};
    double places = (double)g->folded.layer.batch;
    for (int a = 0; a < 3; a++) {
        g->taps *= axes[a]->kernel;
        if (g->taps > MOST_TAPS) return tconv_refuse(reason, "more than %d taps", MOST_TAPS);
        g->classes *= axes[a]->stride;
        if (g->classes > MOST_CLASSES)
            return tconv_refuse(reason, "more than %d phases", MOST_CLASSES);
        g->places[a] = tconv_ceil_div(axes[a]->output, axes[a]->stride);
        places *= (double)g->places[a];
    }
    if (places > INT32_MAX / 2)
        return tconv_refuse(reason, "more places than its 32-bit indices count");
    g->all_places = (int64_t)places;
    g->last = layer->data_channel_step == 1 && layer->in_channels > 1;
    const int64_t word = 4 / (int64_t)tconv_type_size(layer->data_type);
    g->words = tconv_ceil_div(layer->in_channels, word);
    return true;
}

/* What follows from the tile. */
static void derive(struct matrix *g)
{
    g->tiles = tconv_ceil_div(g->all_places, g->nt);
    g->blocks = tconv_ceil_div(g->folded.layer.out_channels, g->mt);
}

/* Work-groups of one phase. */
static double work_groups(const struct matrix *g)
{
    return (double)g->tiles * (double)g->blocks * (double)g->folded.layer.groups;
}

/* From data sheets, not yet measured: the units multiply 8 times as fast as f32 is multiplied and
 * added, bytes 16 times, TF32 4 times; half of that is counted on. In plain OpenCL C it is for
 * tests only. */
static double cost_of(const struct matrix *g, const struct tconv_layer *layer)
{
    const struct tconv_machine *m = g->folded.machine;
    const double word = 4.0 / (double)tconv_type_size(layer->data_type);
    const double outputs = (double)g->all_places * (double)g->classes * (double)layer->groups *
                           (double)layer->out_channels;
    const double speed = g->fragment.macro != 1 ? m->matrix_speed * word : 0.01;
    return issued(g, layer->data_type) / speed + m->matrix_store * outputs;
}

static bool enumerate(const struct tconv_request *request, struct tconv_candidates *candidates,
                      struct tconv_reason *reason)
{
    struct matrix g;
    if (!prepare(request, &g, reason) || !choose_tile(&g, request->device, reason)) return false;
    derive(&g);
    if (!tconv_folded_filter_fits(&g.folded, g.mt, g.blocks, request, TCONV_PACK_WORDS, reason))
        return false;
    const double items = (double)g.fragment.lanes * g.gm * g.gn;
    if (work_groups(&g) * (double)g.classes * items > INT32_MAX)
        return tconv_refuse(reason, "more work-items than its 32-bit indices can count");
    const double own = (double)g.mt * g.nt / items; /* outputs of a work-item */
    if (tconv_folded_group_too_long(own * (1 + tconv_folded_exact_loops(&g.folded)),
                                    request->device))
        return tconv_refuse(reason, "no part of the work is small enough for a work-item");
    const int64_t tile[] = {g.mt, g.nt, g.gm, g.gn, g.buffers};
    tconv_candidates_add(candidates, tile, cost_of(&g, request->layer));
    return true;
}

static void use_tile(struct matrix *g, const int64_t *tile)
{
    g->mt = (int)tile[0];
    g->nt = (int)tile[1];
    g->gm = (int)tile[2];
    g->gn = (int)tile[3];
    g->buffers = (int)tile[4];
    derive(g);
}

static void write_pair(const void *matrix, const int64_t k[3], int64_t *pair)
{
    const struct matrix *g = matrix;
    pair[PAIR_TAP] = tconv_folded_tap_index(&g->folded, k);
    pair[PAIR_Z] = tconv_folded_distance(&g->folded.z, k[0]);
    pair[PAIR_Y] = tconv_folded_distance(&g->folded.y, k[1]);
    pair[PAIR_X] = tconv_folded_distance(&g->folded.x, k[2]);
}

_Static_assert(MATRIX_LONGS + MOST_CLASSES * KIND_LONGS + MOST_TAPS * PAIR_LONGS <=
                   TCONV_TABLE_LIMIT,
               "the largest table");

static bool write_table(const struct matrix *g, struct tconv_kernel_plan *kernel_plan)
{
    const size_t classes_at = MATRIX_LONGS, list_at = classes_at + (size_t)g->classes * KIND_LONGS;
    if (!tconv_kernel_plan_table(kernel_plan, list_at + (size_t)g->taps * PAIR_LONGS)) return false;
    int64_t *t = kernel_plan->table;
    tconv_folded_write_numbers(&g->folded, g->blocks, g->tiles, t);
    for (int a = 0; a < 3; a++) t[MATRIX_PLACES_Z + a] = g->places[a];
    t[MATRIX_CLASSES_AT] = (int64_t)classes_at;
    t[MATRIX_TAP_LIST_AT] = (int64_t)list_at;
    return tconv_folded_write_phases(&g->folded, write_pair, g, PAIR_LONGS, t + classes_at,
                                     t + list_at);
}

static tconv_status write(const struct tconv_request *request, const int64_t *tile,
                          struct tconv_kernel_plan *kernel_plan, tconv_error *error)
{
    struct matrix g;
    struct tconv_reason reason;
    prepare(request, &g, &reason);
    use_tile(&g, tile);
    if (!write_table(&g, kernel_plan)) return tconv_fail_table(error, kernel_plan);
    const struct fragment *f = &g.fragment;
    struct tconv_launch *run = tconv_kernel_plan_run(kernel_plan, "tconv_matrix");
    tconv_launch_option(run, "MATRIX", f->macro);
    if (f->macro == 5) tconv_launch_option(run, "LANES", f->lanes);
    tconv_launch_option(run, "MT", g.mt);
    tconv_launch_option(run, "MW", g.mt); /* as cl/taps.clh calls it */
    tconv_launch_option(run, "NT", g.nt);
    tconv_launch_option(run, "KT", STAGE_WORDS);
    tconv_launch_option(run, "BUFFERS", g.buffers);
    tconv_launch_option(run, "GM", g.gm);
    tconv_launch_option(run, "GN", g.gn);
    tconv_launch_option(run, "FM", g.mt / g.gm / f->channels);
    tconv_launch_option(run, "FN", g.nt / g.gn / f->places);
    tconv_launch_option(run, "LAST", g.last);
    const size_t items = (size_t)(f->lanes * g.gm * g.gn);
    run->local[0] = items;
    run->global[0] = items * (size_t)(g.classes * g.tiles * g.blocks * g.folded.layer.groups);
    run->macs = issued(&g, request->layer->data_type);
    tconv_launch_args(run,
                      (enum tconv_arg[]){TCONV_ARG_DATA, TCONV_ARG_FILTER, TCONV_ARG_FLAGS,
                                         TCONV_ARGS_EPILOGUE, TCONV_ARG_TABLE},
                      9);
    tconv_folded_pack(kernel_plan, &g.folded, "words", g.mt, g.blocks, run, request,
                      TCONV_PACK_WORDS);
    /* TF32 rounds each factor by 2^-11 at most, a product errs by a little more than 2^-10: the
     * bound with this factor is the oracle's, which counts in roundings of f32. */
    if (request->layer->data_type == TCONV_F32)
        kernel_plan->error_factor =
            (double)g.taps + 1 +
            16400.0 / ((double)request->layer->in_channels + 20.0 * request->layer->axes);
    return TCONV_OK;
}

const struct tconv_algorithm tconv_matrix_group = {
    .name = "matrix_group",
    .summary = "products of matrices in local memory by matrix units: f16, bf16, bytes, and f32 "
               "as TF32 on request; for GPUs",
    .sources = {"types.clh", "epilogue_table.h", "common.clh", "epilogue.clh", "folded_table.h",
                "matrix_table.h", "dot.clh", "matrix.clh", "taps.clh", "matrix.cl"},
    .packing = TCONV_PACK_WORDS,
    .made_for = TCONV_FOR_LANES,
    .tile_names = {"mt", "nt", "gm", "gn", "buffers"},
    .program_parameters = 5,
    .enumerate = enumerate,
    .write = write,
};
