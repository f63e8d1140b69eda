/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the thin algorithm: the numbers that follow those of folded_table.h. Read by the
 * host (C) and by the kernels (OpenCL C). */
#ifndef TCONV_THIN_TABLE_H
#define TCONV_THIN_TABLE_H

#include "common/folded_table.h"

enum {
    THIN_PLANES = FOLDED_LONGS, /* of a work-item: batch items, groups and blocks */
    THIN_TOGETHER,              /* the most images whose inputs are copied at a time */
    THIN_BANDS,                 /* bands of output rows of a work-item */
    THIN_LACKING,               /* how many rows before the output the first band begins */
    THIN_TILES,                 /* tiles along x of a work-item */
    THIN_ROW,                   /* elements of an input row in local memory */
    THIN_PREFETCHES,            /* 1: the input rows that are copied next are prefetched */
    THIN_LONGS
};

#endif
