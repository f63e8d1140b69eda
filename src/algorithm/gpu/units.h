/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix units that cl/gpu/matrix.cl has code for, a row for each file of cl/gpu/unit/: what
 * matrix.c must know of them. */
#ifndef TCONV_ALGORITHM_UNITS_H
#define TCONV_ALGORITHM_UNITS_H

#include "algorithm/algorithm.h"

/* A tile: rows and positions; those of a sub-group; slices; words of a stage. */
struct tconv_matrix_tile {
    int mt, nt, wm, wn, slices, kt;
};

struct tconv_unit {
    int macro;                /* MATRIX */
    tconv_matrix_unit device; /* what device_info calls it; NONE: every device has it */

    /* A fragment, as in the unit's file. */
    int lanes; /* LANES. 0: as many as the device's sub-groups have, 8 or 16; then FRAG_N is the
                  same number, and the tiles' positions count in it */
    int rows, positions; /* FRAG_M, FRAG_N */
    int pad;             /* PAD_POSITIONS, words */
    int least_wide;      /* fragments along positions that a sub-group has at least */

    /* DEPTH for f32, for f16 and bf16, and for bytes; 0: it does not multiply them. */
    int f32_depth, half_depth, byte_depth;
    bool rounds_f32; /* ROUNDS_F32 */

    /* Its tiles, from the largest to the smallest, and the tiles of each factor in local memory: 2
     * where the next stage comes while one is multiplied, because copies need not wait for sums in
     * memory. */
    const struct tconv_matrix_tile *tiles;
    size_t tile_count;
    int buffers;

    /* Sums of a work-item that stay in registers: where channels of the data are neighbours, and
     * with plain data, whose loads of single elements take the registers of more sums. */
    int most_last_sums, most_sums;
    /* Work-items that share a fragment of factors, where the compiler reads those of a whole stage
     * in front of all products, so that registers depend on the tile. 0: it does not. */
    int sharing;
    int most_registers; /* of a tile, by that count; 0: there is no limit */

    bool unconditional; /* UNCONDITIONAL_LOADS */
    bool waits_for_all; /* beside matrix_stage_wait, the last warp waits at a barrier for its loads
                           behind what all others issue */
    double slowness;    /* a factor of the cost */
};

/* The unit that multiplies the types of a request. `lanes`: its own number, or the device's. NULL
 * where no unit multiplies them. */
const struct tconv_unit *tconv_unit_for(const struct tconv_request *request);

/* DEPTH of a unit for an element type of the data; 0: it does not multiply it. */
int tconv_unit_depth(const struct tconv_unit *unit, tconv_type data);

/* Tile number `index` of a unit that has so many lanes; false past the last one. */
bool tconv_unit_tile(const struct tconv_unit *unit, int lanes, size_t index,
                     struct tconv_matrix_tile *tile);

#endif
