/* SPDX-License-Identifier: Apache-2.0 */
/* Which operators are convolutions of stride 1, computed as transposed ones. */
#ifndef TCONV_BASE_CONVOLVES_H
#define TCONV_BASE_CONVOLVES_H

#include "tconv_cl/problem.h"

#include <stdbool.h>

/* True for a convolution and pixel shuffle. */
static inline bool tconv_shuffles(const tconv_problem *problem)
{
    return problem->operation == TCONV_CONV_PIXEL_SHUFFLE ||
           problem->operation == TCONV_CONV_PIXEL_SHUFFLE_DCR;
}

/* True for a convolution with upsampling or pixel shuffle, whose filter is [G*CO, CI, K...] or
 * [K..., CI, G*CO] and whose strides are the factors. */
static inline bool tconv_convolves(const tconv_problem *problem)
{
    return problem->operation == TCONV_UPSAMPLE_CONV || tconv_shuffles(problem);
}

/* The output channels of its filter: those of the convolution, of all groups. */
static inline int64_t tconv_forward_channels(const tconv_problem *problem)
{
    return problem->filter.dim[problem->filter_format == TCONV_XIO ? problem->filter.rank - 1 : 0];
}

#endif
