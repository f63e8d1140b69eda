/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the Winograd algorithm: the numbers that follow those of folded_table.h. Read by
 * the host (C) and by the kernels (OpenCL C). */
#ifndef TCONV_WINOGRAD_TABLE_H
#define TCONV_WINOGRAD_TABLE_H

#include "common/folded_table.h"

enum {
    WINOGRAD_TILES_Z = FOLDED_NUMBERS, /* tiles along each axis */
    WINOGRAD_TILES_Y,
    WINOGRAD_TILES_X,
    WINOGRAD_TILES,       /* of all batch items and axes */
    WINOGRAD_TEAMS,       /* teams of NX * VW tiles */
    WINOGRAD_ITEM_TEAMS,  /* teams of a work-item */
    WINOGRAD_ITEM_BLOCKS, /* blocks of output channels of a work-item */
    WINOGRAD_CHUNK,       /* input channels in local memory at a time */
    WINOGRAD_SLAB,        /* elements from one point's inputs of a team to the next one's */
    WINOGRAD_SHIFT_Z,     /* floor(pad / stride) */
    WINOGRAD_SHIFT_Y,
    WINOGRAD_SHIFT_X,
    WINOGRAD_PAD_PHASE_Z, /* pad modulo stride */
    WINOGRAD_PAD_PHASE_Y,
    WINOGRAD_PAD_PHASE_X,
    WINOGRAD_LEAD_Z, /* outputs of the first tile in front of output 0: DIFFERENCE */
    WINOGRAD_LEAD_Y,
    WINOGRAD_LEAD_X,
    WINOGRAD_LONGS
};

#endif
