/* SPDX-License-Identifier: Apache-2.0 */
/* The begin of the tables of all algorithms on three axes, in longs. Read by the host (C) and by
 * the kernels (OpenCL C). Vectors run along x, the innermost axis; y and z are the outer axes.
 * Steps are in elements. */

#ifndef TCONV_FOLDED_TABLE_H
#define TCONV_FOLDED_TABLE_H

#include "common/epilogue_table.h"

enum {
    FOLDED_BATCHES = EPILOGUE_LONGS,
    FOLDED_GROUPS,
    FOLDED_IN_CHANNELS, /* of one group */
    FOLDED_OUT_CHANNELS,
    FOLDED_BLOCKS, /* of output channels in a group */
    /* The innermost axis. */
    FOLDED_KERNEL_X,
    FOLDED_STRIDE_X,
    FOLDED_DILATION_X,
    FOLDED_PAD_X,
    FOLDED_INPUT_STEP_X, /* between the inputs of neighbouring taps of one phase */
    FOLDED_INPUT_X,
    FOLDED_OUTPUT_X,
    FOLDED_FIRST_INPUT, /* the leftmost input that the position u = 0 reads; negative: outside */
    FOLDED_TILES,       /* of a row */
    /* The outer axes. */
    FOLDED_STRIDE_Z,
    FOLDED_STRIDE_Y,
    FOLDED_DILATION_Z,
    FOLDED_DILATION_Y,
    FOLDED_PAD_Z,
    FOLDED_PAD_Y,
    FOLDED_KERNEL_Z,
    FOLDED_KERNEL_Y,
    FOLDED_TAP_STEP_Y,
    FOLDED_INPUT_STEP_Y,
    FOLDED_INPUT_Z,
    FOLDED_INPUT_Y,
    FOLDED_INPUT_ROWS, /* z and y together */
    FOLDED_OUTPUT_Z,
    FOLDED_OUTPUT_Y,
    FOLDED_OUTPUT_ROWS,
    /* Tensors. */
    FOLDED_DATA_BATCH_STEP,
    FOLDED_DATA_CHANNEL_STEP,
    FOLDED_DATA_Z_STEP,
    FOLDED_DATA_Y_STEP,
    FOLDED_DATA_X_STEP,
    FOLDED_OUTPUT_BATCH_STEP,
    FOLDED_OUTPUT_CHANNEL_STEP,
    FOLDED_OUTPUT_Z_STEP,
    FOLDED_OUTPUT_Y_STEP,
    FOLDED_OUTPUT_X_STEP,
    FOLDED_SOURCE_GROUP_STEP, /* of the filter tensor as the caller has it */
    FOLDED_SOURCE_IN_STEP,
    FOLDED_SOURCE_OUT_STEP,
    FOLDED_SOURCE_Z_STEP,
    FOLDED_SOURCE_Y_STEP,
    FOLDED_SOURCE_X_STEP,
    FOLDED_NUMBERS, /* here the numbers of an algorithm without the lists below begin */
    /* Where in the table the lists begin. */
    FOLDED_SLICES_AT = FOLDED_NUMBERS, /* for each output along z a slice */
    FOLDED_REACH_Y_AT,                 /* for each output along y a reach */
    FOLDED_PHASES_AT,                  /* the phases along x */
    FOLDED_LONGS                       /* here an algorithm's own numbers begin */
};

/* A slice is one output along z, which may stand for several axes: how many taps reach it, and
 * where in the table their list begins. Each entry of the list has a tap and the input that it
 * reads. Taps are clipped to the data. */
enum { SLICE_TAPS, SLICE_LIST, SLICE_LONGS };
enum { SLICE_TAP, SLICE_INPUT, SLICE_TAP_LONGS };

/* A reach is one output row along y: the taps that reach it, and their inputs, clipped to the
 * data. */
enum { REACH_TAPS, REACH_TAP, REACH_INPUT, REACH_LONGS };

/* One phase along x; they are in the order of (o + pad) mod stride. */
enum {
    PHASE_TAPS,
    PHASE_START,    /* taps of all phases before this one: where the packed filter has it */
    PHASE_FIRST,    /* its first output; its others are first + position * stride */
    PHASE_DISTANCE, /* from the leftmost input that a position reads to the input of the phase's
                       first tap */
    PHASE_LONGS
};

/* For algorithms that list the taps of each phase along all axes. A kind is what the table has of
 * such a phase. */
enum {
    KIND_TAPS, /* how many taps reach its outputs */
    KIND_LIST, /* where they begin in the list */
    KIND_LONGS
};

/* Elements of `size` bytes in front of the weights, in a filter packed in the order of its taps: a
 * word of flags for each group and block, padded to whole cache lines. */
#define TAPS_HEADER(all_blocks, size) (((all_blocks) + 15) / 16 * (64 / (long)(size)))

#endif
