/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the toy algorithm, in longs; read by the host (C) and by the kernels (OpenCL C). */
#ifndef TCONV_TOY_TABLE_H
#define TCONV_TOY_TABLE_H

#include "common/epilogue_table.h"

enum {
    TOY_OUTPUTS = EPILOGUE_LONGS, /* elements of the output */
    TOY_WEIGHTS,                  /* elements of the filter */
    TOY_GROUPS,
    TOY_IN_CHANNELS, /* of one group */
    TOY_OUT_CHANNELS,
    TOY_INPUT, /* the axis */
    TOY_KERNEL,
    TOY_STRIDE,
    TOY_DILATION,
    TOY_PAD,
    TOY_OUTPUT,
    TOY_DATA_BATCH_STEP, /* elements between neighbours of a tensor */
    TOY_DATA_CHANNEL_STEP,
    TOY_DATA_STEP,
    TOY_OUTPUT_BATCH_STEP,
    TOY_OUTPUT_CHANNEL_STEP,
    TOY_OUTPUT_STEP,
    TOY_SOURCE_GROUP_STEP, /* of the filter tensor as the caller has it */
    TOY_SOURCE_IN_STEP,
    TOY_SOURCE_OUT_STEP,
    TOY_SOURCE_STEP,
    TOY_LONGS
};

#endif
