/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the reference algorithm, in longs; read by the host (C) and by the kernels (OpenCL
 * C). */
#ifndef TCONV_REFERENCE_TABLE_H
#define TCONV_REFERENCE_TABLE_H

#include "common/epilogue_table.h"

/* Input channels that an iteration of the loop adds: llvmpipe ends all loops of a work-item after
 * 65535 iterations. */
enum { REF_CHANNELS = 4 };

/* The layer. */
enum {
    REF_OUTPUTS = EPILOGUE_LONGS, /* elements of the output */
    REF_WEIGHTS,                  /* elements of the filter */
    REF_GROUPS,
    REF_IN_CHANNELS, /* of one group */
    REF_OUT_CHANNELS,
    REF_KERNEL_POINTS, /* taps of all axes together */
    REF_DATA_BATCH_STEP,
    REF_DATA_CHANNEL_STEP,
    REF_OUTPUT_BATCH_STEP,
    REF_OUTPUT_CHANNEL_STEP,
    REF_SOURCE_GROUP_STEP, /* of the filter tensor as the caller has it */
    REF_SOURCE_IN_STEP,
    REF_SOURCE_OUT_STEP,
    REF_AXES /* the axes begin here */
};

/* One axis; the table holds as many as the layer has, outermost first. */
enum {
    AXIS_INPUT,
    AXIS_KERNEL,
    AXIS_STRIDE,
    AXIS_DILATION,
    AXIS_PAD,
    AXIS_OUTPUT,
    AXIS_DATA_STEP,
    AXIS_OUTPUT_STEP,
    AXIS_FILTER_STEP, /* of the packed filter */
    AXIS_SOURCE_STEP, /* of the filter tensor as the caller has it */
    AXIS_TAP_STEP,    /* between taps that reach the same output */
    AXIS_INPUT_STEP,  /* between the inputs of such taps */
    AXIS_LONGS
};

#endif
