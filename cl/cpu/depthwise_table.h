/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the depthwise algorithm: the numbers that follow those of folded_table.h. The
 * folded layer is a single group with an output channel for each group. Read by the host (C) and
 * by the kernels (OpenCL C). */
#ifndef TCONV_DEPTHWISE_TABLE_H
#define TCONV_DEPTHWISE_TABLE_H

#include "common/folded_table.h"

enum {
    DEPTHWISE_ROWS = FOLDED_NUMBERS, /* output rows of a work-item, of one z */
    DEPTHWISE_POSITIONS,             /* positions along x of a work-item */
    DEPTHWISE_TAP_STEP_X,            /* as FOLDED_TAP_STEP_Y */
    /* For each phase along an axis a reach: its taps, the first tap, and the input that the first
     * tap reads for position 0. Not clipped to the data. */
    DEPTHWISE_Y_AT,
    DEPTHWISE_X_AT,
    DEPTHWISE_SLICES_AT, /* for each output along z a slice: folded_table.h */
    DEPTHWISE_LONGS
};

#endif
