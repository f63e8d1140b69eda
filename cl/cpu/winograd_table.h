/* SPDX-License-Identifier: Apache-2.0 */
/* The Winograd algorithm's part of its table, behind that of folded_table.h. Read by the host (C)
 * and by the kernels (OpenCL C). */
#ifndef TCONV_WINOGRAD_TABLE_H
#define TCONV_WINOGRAD_TABLE_H

#include "common/folded_table.h"

enum {
    WINOGRAD_TILES_Z = FOLDED_NUMBERS, /* along each axis */
    WINOGRAD_TILES_Y,
    WINOGRAD_TILES_X,
    WINOGRAD_TILES,       /* tiles of all batch items and axes */
    WINOGRAD_TEAMS,       /* teams of NX * VW tiles */
    WINOGRAD_ITEM_TEAMS,  /* of a work-item */
    WINOGRAD_ITEM_BLOCKS, /* of a work-item */
    WINOGRAD_CHUNK,       /* input channels in local memory at a time */
    WINOGRAD_SLAB,        /* elements from one point's inputs of a team to the next one's */
    WINOGRAD_SHIFT_Z,     /* floor(pad / stride) */
    WINOGRAD_SHIFT_Y,
    WINOGRAD_SHIFT_X,
    WINOGRAD_PAD_PHASE_Z, /* pad modulo stride */
    WINOGRAD_PAD_PHASE_Y,
    WINOGRAD_PAD_PHASE_X,
    WINOGRAD_LONGS
};

#endif
