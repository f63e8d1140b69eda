/* SPDX-License-Identifier: Apache-2.0 */
/* The depthwise algorithm's own part of its table; folded_table.h has the part before, which
 * describes a single group with as many output channels as there are groups. Read by the host (C)
 * and by the kernels (OpenCL C). */
#ifndef TCONV_DEPTHWISE_TABLE_H
#define TCONV_DEPTHWISE_TABLE_H

#include "common/folded_table.h"

enum {
    DEPTHWISE_ROWS = FOLDED_NUMBERS, /* output rows of a work-item, of one z */
    DEPTHWISE_PLACES,                /* places along x of a work-item */
    DEPTHWISE_TAP_STEP_X,            /* as FOLDED_TAP_STEP_Y */
    /* For each phase along an axis a reach: its taps, the first of them, and the input that this
     * one reads for place 0; not clipped to the data. */
    DEPTHWISE_Y_AT,
    DEPTHWISE_X_AT,
    DEPTHWISE_SLICES_AT, /* for each output along z a slice: folded_table.h */
    DEPTHWISE_LONGS
};

#endif
