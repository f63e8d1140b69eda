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

/* True if a weight of the equivalent filter may be a sum of several: with nearest upsampling, but
 * not with factors of 1, an ordinary convolution. */
static inline bool tconv_sums_weights(const tconv_problem *problem)
{
    if (problem->operation != TCONV_UPSAMPLE_CONV) return false;
    for (int a = 0; a < problem->strides.count && a < TCONV_MAX_AXES; a++)
        if (problem->strides.value[a] > 1) return true;
    return false;
}

/* The output channels of its filter: those of the convolution, of all groups. */
static inline int64_t tconv_forward_channels(const tconv_problem *problem)
{
    return problem->filter.dim[problem->filter_format == TCONV_XIO ? problem->filter.rank - 1 : 0];
}

#endif
