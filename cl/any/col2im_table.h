/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the col2im algorithm: the numbers that follow those of folded_table.h. Read by the
 * host (C) and by the kernels (OpenCL C). */
#ifndef TCONV_COL2IM_TABLE_H
#define TCONV_COL2IM_TABLE_H

#include "common/folded_table.h"

enum {
    COL2IM_POSITIONS = FOLDED_LONGS, /* of a tile: neighbouring outputs of one phase */
    COL2IM_INPUTS,                   /* that a tile reads: positions and reach */
    COL2IM_COLUMNS,                  /* columns in local memory, whole strips */
    COL2IM_ROW,    /* elements of a column in local memory: at least TILE + COL2IM_INPUTS + TILE */
    COL2IM_STRIPS, /* strips of MW columns in all parts together: the strips of one (kz, ky) of a
                      block in the packed filter */
    COL2IM_PARTS,
    COL2IM_PARTS_AT,   /* where the list of parts begins; a part is the phases whose columns are in
                          local memory together */
    COL2IM_COLUMNS_AT, /* for each column of each strip: tap along x * MC + channel in the block, or
                          -1 for padding */
    COL2IM_LONGS
};

/* One part. */
enum {
    PART_STRIP,      /* its first strip */
    PART_STRIPS,     /* how many strips */
    PART_PHASE,      /* its first phase */
    PART_PHASES,     /* how many phases */
    PART_PHASE_TAPS, /* taps of all phases before PART_PHASE */
    PART_LONGS
};

#endif
