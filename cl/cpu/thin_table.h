/* SPDX-License-Identifier: Apache-2.0 */
/* The thin algorithm's own part of its table; folded_table.h has the part before. Read by the host
 * (C) and by the kernels (OpenCL C). */
#ifndef TCONV_THIN_TABLE_H
#define TCONV_THIN_TABLE_H

#include "common/folded_table.h"

enum {
    THIN_PLANES = FOLDED_LONGS, /* of a work-item: batch items, groups and blocks */
    THIN_TOGETHER,              /* images whose inputs are copied at a time, at most */
    THIN_BANDS,                 /* bands of output rows of a work-item */
    THIN_LACKING,               /* rows that the first band begins before the output */
    THIN_TILES,                 /* tiles along x of a work-item */
    THIN_ROW,                   /* elements of an input row in local memory */
    THIN_PREFETCHES,            /* whether the input rows that are copied next are prefetched */
    THIN_LONGS
};

#endif
