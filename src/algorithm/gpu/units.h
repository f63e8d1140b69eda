/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix units that cl/gpu/matrix.cl has code for: one row for each file of cl/gpu/unit/, with
 * what matrix.c must know of the unit. */
#ifndef TCONV_ALGORITHM_UNITS_H
#define TCONV_ALGORITHM_UNITS_H

#include "algorithm/algorithm.h"

struct tconv_unit {
    int macro;                /* MATRIX */
    tconv_matrix_unit device; /* what device_info calls it; NONE: every device has it */

    /* A fragment, as in the unit's file. */
    int lanes; /* LANES. 0: as many as the device's sub-groups have, 8 or 16; FRAG_N is then the
                  same number, and nt and wn are multiples of it */
    int rows, positions; /* FRAG_M, FRAG_N */
    bool halves_rows;    /* HALVES_ROWS */
    int pad;             /* PAD_POSITIONS, words */
    int least_wide;      /* fragments along positions that a sub-group has at least */

    /* DEPTH for f32, for f16 and bf16, and for bytes; 0: it does not multiply them. */
    int f32_depth, half_depth, byte_depth;
    bool rounds_f32; /* ROUNDS_F32 */

    /* The unit's tiles, from the largest to the smallest. `buffers` is the most that BUFFERS may
     * be: stages in local memory. One is multiplied while the others are loaded. */
    const struct tconv_tile *tiles;
    size_t tile_count;
    int buffers;

    /* The most sums of a work-item that stay in registers, for channels-last data and for plain
     * data. Plain data leave fewer, because loads of single elements need registers. */
    int most_last_sums, most_sums;
    /* Work-items that share a fragment of factors, if the compiler reads the factors of a whole
     * stage before all products: registers then depend on the tile. 0: it does not read ahead. */
    int sharing;
    int most_registers; /* the most that a tile may need by that count; 0: no limit */

    /* Bytes of local memory that its kernels may take, whatever OpenCL reports. 0: what OpenCL
     * reports. Else that limits the last tile alone, the unit's trial: it is probed before any
     * other tile, and if it fails, the unit is not used at all. */
    int64_t local_memory;

    bool begins_products; /* BEGINS_PRODUCTS, and SM_90A */
    bool swizzled;        /* SWIZZLED */
    bool unconditional;   /* UNCONDITIONAL_LOADS */
    bool taps_inside;     /* TAPS_INSIDE, if several taps read neighbouring channels */
    bool waits_for_all;   /* besides matrix_stage_wait, the last warp's loads wait behind what all
                             other warps issue */
    double slowness;      /* a factor of the cost */
};

/* The units that multiply the types of a request on its device, by number, the preferred one first;
 * NULL past the last one. Plain OpenCL C is among them only if there is no other. */
const struct tconv_unit *tconv_unit_for(const struct tconv_request *request, int number);

/* The unit that has a tile, and the tile's number there; NULL if none of the request's units has
 * it. No two of them have the same tile. */
const struct tconv_unit *tconv_unit_of_tile(const struct tconv_request *request,
                                            const struct tconv_tile *tile, size_t *index);

/* Whether a unit's tile is its trial. */
bool tconv_unit_is_trial(const struct tconv_unit *unit, size_t index);

/* Bytes of local memory that a device has for a unit's tile. */
int64_t tconv_unit_memory(const struct tconv_unit *unit, size_t index,
                          const tconv_device_info *device);

/* DEPTH of a unit for an element type of the data; 0: the unit does not multiply this type. */
int tconv_unit_depth(const struct tconv_unit *unit, tconv_type data);

/* Writes tile number `index` of a unit with `lanes` lanes. False past the last tile. */
bool tconv_unit_tile(const struct tconv_unit *unit, int lanes, size_t index,
                     struct tconv_tile *tile);

#endif
