/* SPDX-License-Identifier: Apache-2.0 */
/* The table of matrix units, and the choice of a unit for a request. units.h explains the columns.
 */
#include "algorithm/gpu/units.h"

#include "base/element_types.h"

/* A row of a list. */
#define TILE(rows, columns, own_rows, own_columns, parts, depth)                                   \
    {                                                                                              \
        .mt = rows, .nt = columns, .wm = own_rows, .wn = own_columns, .slices = parts, .kt = depth \
    }

/* The same with shared taps: all taps of a phase share the inputs of the columns and of `more`. */
#define SHARED_TILE(rows, columns, own_rows, own_columns, depth, more)                             \
    {                                                                                              \
        .mt = rows, .nt = columns, .wm = own_rows, .wn = own_columns, .slices = 1, .kt = depth,    \
        .shared = more                                                                             \
    }

/* A tile with slices has more sub-groups: for layers that have too few tiles to keep the compute
 * units busy. */
static const struct tconv_tile usual_tiles[] = {
    TILE(128, 128, 64, 32, 1, 16), TILE(128, 128, 64, 64, 1, 16), TILE(128, 64, 64, 32, 1, 16),
    TILE(64, 128, 32, 64, 1, 16),  TILE(64, 64, 32, 32, 1, 32),   TILE(64, 32, 32, 32, 4, 32),
    TILE(32, 128, 32, 32, 1, 16),  TILE(32, 64, 32, 16, 1, 32),   TILE(32, 32, 16, 16, 1, 32),
    TILE(16, 256, 16, 64, 1, 16),  TILE(16, 128, 16, 32, 1, 16),  TILE(16, 64, 16, 16, 1, 32),
    TILE(16, 32, 16, 16, 4, 32),
};

/* NVIDIA's: those that were within 5 % of the fastest for some layer on an H100. */
static const struct tconv_tile nvidia_tiles[] = {
    TILE(128, 128, 64, 32, 1, 16), TILE(128, 128, 32, 64, 1, 16), TILE(128, 128, 64, 64, 1, 16),
    TILE(128, 64, 64, 32, 1, 16),  TILE(128, 64, 64, 32, 1, 32),  TILE(128, 64, 32, 32, 1, 32),
    TILE(64, 128, 32, 64, 1, 32),  TILE(64, 128, 32, 32, 1, 32),  TILE(64, 128, 32, 64, 1, 16),
    TILE(64, 64, 32, 32, 1, 32),   TILE(64, 64, 16, 32, 1, 32),   TILE(64, 64, 32, 32, 2, 32),
    TILE(64, 32, 32, 32, 4, 32),   TILE(32, 128, 32, 32, 1, 16),  TILE(32, 128, 32, 32, 1, 32),
    TILE(32, 64, 32, 32, 4, 32),   TILE(32, 64, 32, 16, 1, 32),   TILE(32, 32, 32, 16, 4, 32),
    TILE(32, 32, 16, 16, 1, 32),   TILE(16, 256, 16, 64, 1, 16),  TILE(16, 128, 16, 32, 1, 16),
    TILE(16, 64, 16, 16, 1, 32),   TILE(16, 32, 16, 16, 4, 32),
};

/* NVIDIA's wgmma. A warpgroup has 64 rows. The last one is the trial. */
static const struct tconv_tile wgmma_tiles[] = {
    SHARED_TILE(128, 256, 64, 256, 32, 192), TILE(128, 256, 64, 256, 1, 32),
    TILE(256, 128, 64, 128, 1, 32),          SHARED_TILE(128, 128, 64, 128, 32, 32),
    TILE(128, 128, 64, 128, 1, 32),          TILE(64, 128, 64, 128, 1, 32),
    TILE(128, 128, 64, 128, 1, 16)};

/* Small tiles, because Intel's compiler keeps few sums of a work-item in registers. nt and wn are
 * multiplied by the lanes of the sub-group: tconv_unit_tile. */
static const struct tconv_tile intel_tiles[] = {
    TILE(64, 4, 16, 1, 1, 16), TILE(32, 8, 16, 1, 1, 16), TILE(16, 8, 16, 1, 1, 16),
    TILE(8, 16, 8, 1, 1, 16)};

/* Plain OpenCL C is mainly for tests: a few small tiles that cover the code. */
static const struct tconv_tile plain_tiles[] = {
    TILE(64, 32, 32, 32, 2, 16), TILE(32, 32, 16, 16, 1, 16), TILE(16, 32, 16, 16, 1, 16),
    TILE(16, 32, 16, 16, 2, 16), TILE(16, 32, 16, 32, 1, 16)};

#define TILES(list) .tiles = (list), .tile_count = sizeof(list) / sizeof *(list)

/* What AMD's units have in common. */
#define AMD_UNIT                                                                                   \
    .rows = 16, .positions = 16, .least_wide = 1, .half_depth = 8, TILES(usual_tiles),             \
    .buffers = 2, .most_sums = 64, .unconditional = true, .waits_for_all = true, .slowness = 1

/* The first rows that fit are preferred. The last row fits every device. */
static const struct tconv_unit units[] = {
    {
        .macro = 7,
        .device = TCONV_MATRIX_NVIDIA_WGMMA,
        .lanes = 128,
        .rows = 64,
        .positions = 8,
        .halves_rows = true,
        .pad = 8,
        .least_wide = 8,
        .f32_depth = 8,
        .half_depth = 8,
        .byte_depth = 8,
        .rounds_f32 = true,
        TILES(wgmma_tiles),
        .buffers = 3,
        .local_memory = 227 << 10,
        .begins_products = true,
        .swizzled = true,
        .most_last_sums = 128,
        .most_sums = 64,
        .taps_inside = true,
        .slowness = 1,
    },
    {
        .macro = 2,
        .device = TCONV_MATRIX_NVIDIA_MMA,
        .lanes = 32,
        .rows = 16,
        .positions = 8,
        .pad = 8,
        .least_wide = 2,
        .f32_depth = 8,
        .half_depth = 8,
        .byte_depth = 8,
        .rounds_f32 = true,
        TILES(nvidia_tiles),
        .buffers = 3,
        .swizzled = true,
        .most_last_sums = 128,
        .most_sums = 64,
        .taps_inside = true,
        .slowness = 1,
    },
    {
        .macro = 3,
        .device = TCONV_MATRIX_AMD_WMMA,
        AMD_UNIT,
        .lanes = 32,
        .pad = 16,
        .byte_depth = 4,
        .most_last_sums = 64,  /* because copies go through registers */
        .sharing = 16,         /* not 32: two lanes have the same words */
        .most_registers = 210, /* of 256: clang 19 spills above this */
    },
    {
        .macro = 6,
        .device = TCONV_MATRIX_AMD_WMMA12,
        AMD_UNIT,
        .lanes = 32,
        .pad = 2,
        .byte_depth = 4,
        .swizzled = true,
        .most_last_sums = 64, /* because copies go through registers */
        .sharing = 32,
        .most_registers = 210, /* of 256: clang 19 spills above this */
    },
    {
        .macro = 4,
        .device = TCONV_MATRIX_AMD_MFMA,
        AMD_UNIT,
        .lanes = 64,
        .pad = 4,
        .f32_depth = 16,
        .swizzled = true,
        .most_last_sums = 128,
        .sharing = 64,
    },
    {
        .macro = 5,
        .device = TCONV_MATRIX_INTEL_DPAS,
        .rows = 8,
        .pad = 1,
        .least_wide = 1,
        .half_depth = 8,
        .byte_depth = 8,
        TILES(intel_tiles),
        .buffers = 1,
        .most_last_sums = 128,
        .most_sums = 64,
        .slowness = 1,
    },
    {
        .macro = 1, /* plain OpenCL C */
        .device = TCONV_MATRIX_NONE,
        .lanes = 32,
        .rows = 16,
        .positions = 8,
        .pad = 8,
        .least_wide = 2,
        .f32_depth = 8,
        .half_depth = 8,
        .byte_depth = 8,
        .rounds_f32 = true,
        TILES(plain_tiles),
        .buffers = 3,
        .swizzled = true,
        .most_last_sums = 128,
        .most_sums = 64,
        .taps_inside = true,
        .slowness = 1000,
    },
};

tconv_matrix_unit tconv_unit_behind(tconv_matrix_unit unit)
{
    return unit == TCONV_MATRIX_NVIDIA_WGMMA ? TCONV_MATRIX_NVIDIA_MMA : TCONV_MATRIX_NONE;
}

static bool has_unit(const tconv_device_info *device, const struct tconv_unit *unit)
{
    const uint64_t lanes = device->subgroup_least;
    tconv_matrix_unit own = device->matrix_unit;
    while (own != unit->device && own != TCONV_MATRIX_NONE) own = tconv_unit_behind(own);
    return own == unit->device &&
           (own == TCONV_MATRIX_NONE || unit->lanes != 0 || lanes == 8 || lanes == 16);
}

int tconv_unit_depth(const struct tconv_unit *unit, tconv_type data)
{
    if (tconv_type_is_byte(data)) return unit->byte_depth;
    return data == TCONV_F32                         ? unit->f32_depth
           : data == TCONV_F16 || data == TCONV_BF16 ? unit->half_depth
                                                     : 0;
}

const struct tconv_unit *tconv_unit_for(const struct tconv_request *request, int number)
{
    int found = 0;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (has_unit(request->device, &units[i]) &&
            tconv_unit_depth(&units[i], request->loops->data_type) != 0 &&
            (units[i].device != TCONV_MATRIX_NONE || found == 0) && found++ == number)
            return &units[i];
    return NULL;
}

static bool same_tile(const struct tconv_tile *a, const struct tconv_tile *b)
{
    return a->mt == b->mt && a->nt == b->nt && a->wm == b->wm && a->wn == b->wn &&
           a->slices == b->slices && a->kt == b->kt && a->shared == b->shared;
}

const struct tconv_unit *tconv_unit_of_tile(const struct tconv_request *request,
                                            const struct tconv_tile *tile, size_t *index)
{
    const struct tconv_unit *unit;
    struct tconv_tile one;
    for (int n = 0; (unit = tconv_unit_for(request, n)) != NULL; n++)
        for (*index = 0; tconv_unit_tile(unit, (int)request->device->subgroup_least, *index, &one);
             ++*index)
            if (same_tile(tile, &one)) return unit;
    return NULL;
}

bool tconv_unit_is_trial(const struct tconv_unit *unit, size_t index)
{
    return unit->local_memory != 0 && index == unit->tile_count - 1;
}

int64_t tconv_unit_memory(const struct tconv_unit *unit, size_t index,
                          const tconv_device_info *device)
{
    const int64_t reported = (int64_t)device->local_memory;
    return unit->local_memory <= reported || tconv_unit_is_trial(unit, index) ? reported
                                                                              : unit->local_memory;
}

bool tconv_unit_tile(const struct tconv_unit *unit, int lanes, size_t index,
                     struct tconv_tile *tile)
{
    if (index >= unit->tile_count) return false;
    *tile = unit->tiles[index];
    if (unit->lanes == 0) {
        tile->nt *= lanes;
        tile->wn *= lanes;
    }
    return true;
}

struct tconv_candidate_unit tconv_candidate_unit(const struct tconv_request *request,
                                                 const struct tconv_candidate *candidate)
{
    size_t index;
    const struct tconv_unit *unit = candidate->algorithm->packing == TCONV_PACK_WORDS
                                        ? tconv_unit_of_tile(request, &candidate->tile, &index)
                                        : NULL;
    if (unit == NULL)
        return (struct tconv_candidate_unit){.unit = TCONV_MATRIX_NONE,
                                             .local_memory = request->device->local_memory};
    struct tconv_candidate_unit its = {
        .unit = unit->device,
        .has_trial = unit->local_memory != 0,
        .is_trial = tconv_unit_is_trial(unit, index),
        .tile = 1u << index,
        .trial = candidate->tile,
        .local_memory = (uint64_t)tconv_unit_memory(unit, index, request->device)};
    if (its.has_trial) {
        its.trial = unit->tiles[unit->tile_count - 1];
        its.trial.parts = candidate->tile.parts;
        its.trial.copy = candidate->tile.copy;
    }
    return its;
}

bool tconv_uses_matrix_unit(const struct tconv_request *request)
{
    const struct tconv_unit *unit = tconv_unit_for(request, 0);
    return unit != NULL && unit->device != TCONV_MATRIX_NONE;
}
