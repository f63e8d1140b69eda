/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the tiled and matrix algorithms: the numbers that follow those of folded_table.h.
 * Read by the host (C) and by the kernels (OpenCL C). Numbers for three axes are in the order z, y,
 * x. */
#ifndef TCONV_TILED_TABLE_H
#define TCONV_TILED_TABLE_H

#include "common/folded_table.h"

enum {
    TILED_POSITIONS_Z = FOLDED_NUMBERS, /* along each axis; divisors (divisor.h) */
    TILED_POSITIONS_Y,
    TILED_POSITIONS_X,
    TILED_FIRST_Z, /* the output of position 0 in phase 0: 0, or negative where phases are rows */
    TILED_FIRST_Y,
    TILED_FIRST_X,
    TILED_PHASES_Z, /* divisors: phases that have work-groups of their own: the stride, or 1 if
                       phases are rows */
    TILED_PHASES_Y,
    TILED_PHASES_X,
    TILED_TAPS_Z, /* taps of the packed filter along each axis */
    TILED_TAPS_Y,
    TILED_TAPS_X,
    TILED_ALL_POSITIONS, /* positions of all batch items */
    TILED_ROWS,     /* rows of the packed filter for one tap and input channel, a multiple of 4 */
    TILED_CHANNELS, /* divisor: output channels of a group, rounded up to a multiple of 4 */
    TILED_OUTPUT_QUADS,  /* 1: with LAST, quads of output channels are aligned as the output is */
    TILED_PARTS,         /* with SPLIT: parts of the input channels */
    TILED_PART_CHANNELS, /* input channels of a part, a multiple of KS */
    TILED_PART,          /* divisors (divisor.h) from here on: the work-groups of a part */
    TILED_ALL_PHASES,    /* phases that have work-groups of their own */
    TILED_BLOCKS,        /* blocks of rows */
    TILED_TILES,
    TILED_NEAREST_Z, /* if phases are rows: the distance to the input of tap 0 */
    TILED_NEAREST_Y,
    TILED_NEAREST_X,
    TILED_PHASES_AT, /* for each phase (tz, ty, tx) of work-groups a kind: see folded_table.h */
    TILED_LIST_AT,   /* their taps */
    TILED_ZERO,      /* 0: table_again of cl/gpu/positions.clh */
    TILED_LONGS
};

/* A tap of a phase: its weights in the packed filter of a group, the distance from a position to
 * its input along each axis, and this distance in elements of the data. */
enum { TAP_WEIGHTS, TAP_Z, TAP_Y, TAP_X, TAP_OFFSET, TAP_LONGS };

#endif
