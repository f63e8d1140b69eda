/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the channels algorithm: the numbers that follow those of folded_table.h. Read by
 * the host (C) and by the kernels (OpenCL C). */
#ifndef TCONV_CHANNELS_TABLE_H
#define TCONV_CHANNELS_TABLE_H

#include "common/folded_table.h"

enum {
    CHANNELS_POSITIONS_Z = FOLDED_NUMBERS, /* outputs of one phase along each axis */
    CHANNELS_POSITIONS_Y,
    CHANNELS_POSITIONS_X,
    CHANNELS_BOX_Z, /* positions of a work-item along each axis */
    CHANNELS_BOX_Y,
    CHANNELS_BOX_X,
    CHANNELS_LOW_Z, /* position u reads at most the inputs u + low to u + low + span */
    CHANNELS_LOW_Y,
    CHANNELS_LOW_X,
    CHANNELS_SPAN_Z,
    CHANNELS_SPAN_Y,
    CHANNELS_SPAN_X,
    CHANNELS_ITEM_BLOCKS, /* of a work-item */
    CHANNELS_LANE_STEP,   /* between the outputs of neighbouring lanes, in elements */
    CHANNELS_CHUNK,       /* KEPT: input channels at a time, a multiple of SEGMENT */
    CHANNELS_KEPT_AT,     /* where in local memory sums are kept, in elements */
    /* PHASE_LANES: the axis x has the positions of the layer's axis as its outputs, and a single
     * phase. Of the layer's axis: */
    CHANNELS_STRIDE,
    CHANNELS_CROP, /* output = position * stride + phase - crop */
    CHANNELS_OUTPUT,
    CHANNELS_PHASE_BLOCKS, /* of an output channel */
    CHANNELS_PHASES_AT,    /* a kind for each phase, in the order of first outputs (tz, ty, tx) */
    CHANNELS_TAP_LIST_AT,  /* the phases' taps */
    CHANNELS_SLICES_AT,    /* SLICED: for each output along z a slice; the taps are of y and x */
    CHANNELS_LONGS
};

/* A tap of a phase: its index in the packed filter, and its distance minus CHANNELS_LOW along each
 * axis. */
enum { READ_TAP, READ_Z, READ_Y, READ_X, READ_LONGS };

enum { MOST_READS = 1024 }; /* taps of a phase */

#endif
