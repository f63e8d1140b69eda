/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the gather algorithm: the numbers that follow those of folded_table.h. Read by the
 * host (C) and by the kernels (OpenCL C). */
#ifndef TCONV_GATHER_TABLE_H
#define TCONV_GATHER_TABLE_H

#include "common/folded_table.h"

enum {
    GATHER_HEADER = FOLDED_LONGS, /* elements of the packed filter before the weights: a word of
                                   flags for each group and block */
    /* The tiles of a row that have any input, and those of them that read the data directly; the
     * others read the stage. */
    GATHER_TILE_FIRST,
    GATHER_TILE_LAST,
    GATHER_DIRECT_FIRST,
    GATHER_DIRECT_LAST,
    GATHER_STAGED,    /* staged tiles of a row */
    GATHER_STAGE_ROW, /* elements of a staged tile */
    GATHER_TAPS_AT,   /* where the list of taps along x begins */
    GATHER_LONGS
};

/* One tap along x: its index in the packed filter. */
enum {
    GATHER_TAP_START, /* PHASE_START of its phase */
    GATHER_TAP_COUNT, /* PHASE_TAPS of its phase */
    GATHER_TAP_NUMBER,
    GATHER_TAP_LONGS
};

#endif
