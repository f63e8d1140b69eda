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
    TILED_ROWS, /* rows of the packed filter for one tap and input channel, a multiple of 4 */
    TILED_GROUP_WEIGHTS, /* packed weights of a group */
    TILED_CHANNELS,      /* divisor: output channels of a group, rounded up to a multiple of 4 */
    TILED_OUTPUT_QUADS,  /* 1: with LAST, quads of output channels are aligned as the output is */
    TILED_PARTS,         /* with SPLIT: parts of the input channels */
    TILED_PART_CHANNELS, /* input channels of a part: whole stages */
    TILED_FULL_CHUNKS,   /* chunks of TILED_SPREAD tiles; one chunk with other tiles may follow: */
    TILED_LAST_GROUPS,   /* its work-groups, */
    TILED_TURNS,         /* and its rounds that are in the opposite order, a bit for each */
    TILED_KINDS,         /* phases with taps; phases without follow in the list */
    TILED_PART,          /* divisors (divisor.h) from here on: the work-groups of a part */
    TILED_BLOCKS,        /* blocks of rows */
    TILED_TILES,         /* tiles along positions */
    TILED_PHASE_TILES,   /* tiles of a phase: along blocks, positions and groups */
    TILED_CHUNK,         /* work-groups of a chunk: own_tile of cl/gpu/positions.clh */
    TILED_SPREAD,        /* tiles of a chunk, */
    TILED_LAST_SPREAD,   /* and of the last one */
    TILED_UNITS,         /* compute units: the work-groups of a round */
    TILED_NEAREST_Z,     /* if phases are rows: the distance to the input of tap 0 */
    TILED_NEAREST_Y,
    TILED_NEAREST_X,
    TILED_COPY_POINTS,     /* with COPY: cl/gpu/copy.clh. Points of a batch item */
    TILED_COPY_CHANNELS,   /* channels of all groups */
    TILED_COPY_ROW,        /* elements of a point in the copy */
    TILED_COPY_BATCH_STEP, /* of the data */
    TILED_COPY_CHANNEL_STEP,
    TILED_COPY_POINT_TILES, /* divisors: work-groups along points, and along channels */
    TILED_COPY_CHANNEL_TILES,
    TILED_PHASES_AT,   /* a kind for each phase of work-groups, those with most taps first */
    TILED_LIST_AT,     /* their taps */
    TILED_ZERO,        /* 0: table_again of cl/gpu/positions.clh */
    TILED_SLOTS,       /* with SORTED: slots of a phase, */
    TILED_SLOTS_AT,    /* those of all phases, in the order of the list, */
    TILED_ITEMS,       /* divisors: the batch items that are sorted together, */
    TILED_SORTED,      /* and their positions in a phase */
    TILED_PRODUCTS_AT, /* of the difference form: for each tap of the other axes, in the order of
                          the list, where in a group's weights those of its products begin */
    TILED_LONGS
};

enum { TILED_TURN_BITS = 64 }; /* rounds that TILED_TURNS can turn */

/* Taps that a work-group takes at a time, if a phase has more (ROUNDS): bits of the mask of taps
 * that a position has inputs for. */
enum { ROUND_TAPS = 32 };

/* Bytes. Sums of parts begin at a multiple of it: some kernels read four sums at once. */
enum { SUMS_ALIGNMENT = 16 };

/* Rows of a tile for each work-group of the matrix algorithm's second launch, which adds up
 * parts. */
enum { FINISHED_ROWS = 16 };

/* A phase of work-groups: KIND_TAPS and KIND_LIST of folded_table.h, and its number. */
enum { TILED_KIND_PHASE = KIND_LONGS, TILED_KIND_LONGS };

/* A slot: a position without its batch item, in the order in which tiles have them; all batch items
 * of a slot that are sorted together are neighbours. From the lowest bit on SLOT_BITS for x, y and
 * z; in the upper 32 bits one for each tap, the highest being the first: set if an output of the
 * phase needs this tap there. */
enum { SLOT_BITS = 10 };

/* A tap of a phase: its weights in the packed filter of a group, the distance from a position to
 * its input along each axis, and this distance in elements of the data. Within a phase no distance
 * is larger than those of the taps before. */
enum { TAP_WEIGHTS, TAP_Z, TAP_Y, TAP_X, TAP_OFFSET, TAP_LONGS };

#endif
