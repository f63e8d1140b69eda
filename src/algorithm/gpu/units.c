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

/* The first row that fits is taken. The last row fits every device. */
static const struct tconv_unit units[] = {
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

static bool has_unit(const tconv_device_info *device, const struct tconv_unit *unit)
{
    const uint64_t lanes = device->subgroup_least;
    return unit->device == TCONV_MATRIX_NONE ||
           (unit->device == device->matrix_unit && (unit->lanes != 0 || lanes == 8 || lanes == 16));
}

int tconv_unit_depth(const struct tconv_unit *unit, tconv_type data)
{
    if (tconv_type_is_byte(data)) return unit->byte_depth;
    return data == TCONV_F32                         ? unit->f32_depth
           : data == TCONV_F16 || data == TCONV_BF16 ? unit->half_depth
                                                     : 0;
}

const struct tconv_unit *tconv_unit_for(const struct tconv_request *request)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (has_unit(request->device, &units[i]) &&
            tconv_unit_depth(&units[i], request->loops->data_type) != 0)
            return &units[i];
    return NULL;
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

bool tconv_uses_matrix_unit(const struct tconv_request *request)
{
    const struct tconv_unit *unit = tconv_unit_for(request);
    return unit != NULL && unit->device != TCONV_MATRIX_NONE;
}
