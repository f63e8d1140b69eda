/* SPDX-License-Identifier: Apache-2.0 */
/* How the tables of all algorithms that work along rows begin, in longs; read by the host (C) and
 * by the kernels (OpenCL C). Vectors run along x, the innermost axis; y and z are the two outer
 * ones. Steps are in elements. */

#ifndef TCONV_ROWS_TABLE_H
#define TCONV_ROWS_TABLE_H

#ifndef __OPENCL_VERSION__ /* for kernels the host puts epilogue_table.h in front */
#include "epilogue_table.h"
#endif

enum {
    ROWS_BATCHES = EPILOGUE_LONGS,
    ROWS_GROUPS,
    ROWS_IN_CHANNELS, /* of one group */
    ROWS_OUT_CHANNELS,
    ROWS_BLOCKS, /* of output channels in a group */
    /* The innermost axis. */
    ROWS_KERNEL_X,
    ROWS_STRIDE_X,
    ROWS_DILATION_X,
    ROWS_PAD_X,
    ROWS_INPUT_STEP_X, /* between the inputs of neighbouring taps of one phase */
    ROWS_INPUT_X,
    ROWS_OUTPUT_X,
    ROWS_FIRST_INPUT, /* the leftmost input that the place u = 0 reads; negative: outside */
    ROWS_TILES,       /* of a row */
    /* The outer axes. */
    ROWS_STRIDE_Z,
    ROWS_STRIDE_Y,
    ROWS_DILATION_Z,
    ROWS_DILATION_Y,
    ROWS_PAD_Z,
    ROWS_PAD_Y,
    ROWS_KERNEL_Z,
    ROWS_KERNEL_Y,
    ROWS_TAP_STEP_Z, /* between taps that reach the same output */
    ROWS_TAP_STEP_Y,
    ROWS_INPUT_STEP_Z, /* between the inputs of these */
    ROWS_INPUT_STEP_Y,
    ROWS_INPUT_Z,
    ROWS_INPUT_Y,
    ROWS_INPUT_ROWS, /* z and y together */
    ROWS_OUTPUT_Z,
    ROWS_OUTPUT_Y,
    ROWS_OUTPUT_ROWS,
    /* Tensors. */
    ROWS_DATA_BATCH_STEP,
    ROWS_DATA_CHANNEL_STEP,
    ROWS_DATA_Z_STEP,
    ROWS_DATA_Y_STEP,
    ROWS_DATA_X_STEP,
    ROWS_OUTPUT_BATCH_STEP,
    ROWS_OUTPUT_CHANNEL_STEP,
    ROWS_OUTPUT_Z_STEP,
    ROWS_OUTPUT_Y_STEP,
    ROWS_OUTPUT_X_STEP,
    ROWS_SOURCE_GROUP_STEP, /* of the filter tensor as the caller has it */
    ROWS_SOURCE_IN_STEP,
    ROWS_SOURCE_OUT_STEP,
    ROWS_SOURCE_Z_STEP,
    ROWS_SOURCE_Y_STEP,
    ROWS_SOURCE_X_STEP,
    ROWS_NUMBERS, /* here the numbers of an algorithm without the lists below begin */
    /* Where in the table the lists begin. */
    ROWS_SLICES_AT = ROWS_NUMBERS, /* for each output along z a slice */
    ROWS_REACH_Y_AT,               /* for each output along y a reach */
    ROWS_CLASSES_AT,               /* for each phase along x a class */
    ROWS_LONGS                     /* here an algorithm's own numbers begin */
};

/* One output along z, which may stand for several axes: how many taps reach it, and where in the
 * table they begin; clipped to the data. A tap, and the input that it reads. */
enum { SLICE_TAPS, SLICE_LIST, SLICE_LONGS };
enum { SLICE_TAP, SLICE_INPUT, SLICE_TAP_LONGS };

/* One output row along y: which taps reach it, from which inputs, clipped to the data. */
enum { REACH_TAPS, REACH_TAP, REACH_INPUT, REACH_LONGS };

/* One phase of the outputs along x. */
enum {
    CLASS_TAPS,
    CLASS_START,    /* taps of all classes before this one: where the packed filter has it */
    CLASS_PHASE,    /* which outputs: phase + place * stride */
    CLASS_DISTANCE, /* from the leftmost input that a place reads to the one that the class's first
                       tap reads */
    CLASS_LONGS
};

/* For algorithms that list the taps of each phase (tz, ty, tx) of the outputs. */
enum {
    KIND_TAPS, /* how many taps reach the outputs of this phase */
    KIND_LIST, /* where they begin in the list */
    KIND_LONGS
};

/* Elements of `size` bytes in front of the weights of a filter in the order of taps: a word of
 * flags for each group and block, padded to whole cache lines. */
#define TAPS_HEADER(all_blocks, size) (((all_blocks) + 15) / 16 * (64 / (long)(size)))

#endif
