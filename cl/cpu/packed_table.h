/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the packed algorithm: the numbers that follow those of folded_table.h. Read by the
 * host (C) and by the kernels (OpenCL C). */
#ifndef TCONV_PACKED_TABLE_H
#define TCONV_PACKED_TABLE_H

#include "common/folded_table.h"

enum {
    PACKED_POSITIONS_Z = FOLDED_NUMBERS, /* outputs of one phase along each axis */
    PACKED_POSITIONS_Y,
    PACKED_POSITIONS_X,
    PACKED_POSITIONS,   /* positions of one phase, of all batch items and axes */
    PACKED_VECTORS,     /* vectors of these positions */
    PACKED_ALL_TILES,   /* tiles of these vectors, in one group */
    PACKED_ITEM_TILES,  /* of a work-item */
    PACKED_ITEM_BLOCKS, /* of a work-item */
    PACKED_CHUNK,       /* input channels in local memory at a time */
    PACKED_SLOTS,       /* how many */
    PACKED_SLOTS_AT,    /* where the lists begin */
    PACKED_PHASES_AT,   /* a kind for each phase, in the order of first outputs (tz, ty, tx) */
    PACKED_TAP_LIST_AT, /* the phases' taps */
    PACKED_LONGS
};

enum { MOST_TILES = 16 }; /* of a work-item */

/* A slot: the inputs at one distance from the positions of a tile. With FLAT = 0 a slot is a row of
 * inputs, and x is the distance of its first input. */
enum { SLOT_Z, SLOT_Y, SLOT_X, SLOT_LONGS };

enum {
    ENTRY_TAP, /* the tap's index in the packed filter */
    ENTRY_SLOT,
    ENTRY_OFFSET, /* of the tile's inputs for this tap in local memory */
    ENTRY_LONGS
};

#endif
