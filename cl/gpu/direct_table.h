/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the direct algorithm: the numbers that follow those of folded_table.h. Read by the
 * host (C) and by the kernels (OpenCL C). */
#ifndef TCONV_DIRECT_TABLE_H
#define TCONV_DIRECT_TABLE_H

#include "common/folded_table.h"

enum {
    /* Divisors (divisor.h). Lanes of a work-group, the innermost first: along x,
     * along y, of blocks of channels; with LAST of blocks, along x, along y. */
    DIRECT_LANES_0 = FOLDED_LONGS,
    DIRECT_LANES_1,
    DIRECT_TILES_0, /* work-groups, in the same order */
    DIRECT_TILES_1,
    DIRECT_TILES_2,
    DIRECT_POINTS_Z, /* outputs along z */
    DIRECT_BLOCKS,   /* of output channels in a group */
    DIRECT_STRIDE_Y,
    DIRECT_STRIDE_X,
    DIRECT_LANES_2,
    DIRECT_OUT_CHANNELS, /* of a group */
    DIRECT_TAPS_Y,
    DIRECT_TAPS_X,
    DIRECT_TAP_STEP_X, /* between taps that reach the same output */
    /* Numbers. */
    DIRECT_ALL_BLOCKS, /* of all groups */
    DIRECT_PAD_Y,      /* modulo the stride */
    DIRECT_PAD_X,
    DIRECT_FIRST_X,        /* the input that output 0 reads by tap DIRECT_PAD_X */
    DIRECT_ROUNDS,         /* the most rounds of OUTPUTS outputs of a work-item */
    DIRECT_APART,          /* between the outputs of a work-item, along their axis */
    DIRECT_APART_IN,       /* between the inputs of these outputs, along the same axis */
    DIRECT_APART_DATA,     /* the same in elements of the data */
    DIRECT_APART_OUTPUT,   /* between the outputs, in elements */
    DIRECT_TAP_DATA,       /* between inputs of neighbouring taps along x, in elements */
    DIRECT_WEIGHT_CHANNEL, /* of the packed filter, in weights */
    DIRECT_WEIGHT_IN,
    DIRECT_WEIGHT_TAP,
    DIRECT_DATA_GROUP, /* between the data of two groups, in elements */
    DIRECT_DATA_SPAN,  /* from the first element of a group's data to the last, both counted */
    DIRECT_WEIGHTS,    /* of the packed filter */
    DIRECT_Y_AT,       /* for each phase (y + pad) mod stride a reach of folded_table.h */
    DIRECT_X_AT,
    DIRECT_LONGS
};

#endif
