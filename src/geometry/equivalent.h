/* SPDX-License-Identifier: Apache-2.0 */
/* The transposed convolution that computes nearest upsampling and a convolution (of factor s,
 * dilation d, kernel k, pad p along an axis). An enlarged point u = i*s + r, 0 <= r < s, reaches
 * the output o = u - j*d + p through tap j. In o + pad = i*s + t with pad = d*(k - 1) - p the tap
 * is t = r + d*(k - 1 - j). So tap t has the sum of the filter's taps j with
 *
 *   0 <= t - d*(k - 1 - j) < s
 *
 * along each axis, and there are d*(k - 1) + s taps. With a factor of 1 each tap is one of the
 * filter's, and the transposed convolution has the dilation. A dilation above another factor would
 * leave taps without any summand, and is refused. Its filter, [G*CI, CO, T...], is called the
 * equivalent one. */
#ifndef TCONV_GEOMETRY_EQUIVALENT_H
#define TCONV_GEOMETRY_EQUIVALENT_H

#include "tconv_cl/problem.h"

/* How the given filter becomes the equivalent one. */
struct tconv_equivalent {
    int axes; /* 0: the filter is that of a transposed convolution, and used as it is */
    int64_t factor[TCONV_MAX_AXES], dilation[TCONV_MAX_AXES], kernel[TCONV_MAX_AXES];
    int64_t taps[TCONV_MAX_AXES];
    /* Elements between neighbours in the given filter. */
    int64_t step[TCONV_MAX_AXES], in_step, out_step, group_step;
    int64_t elements; /* of the equivalent filter */
};

/* The same of a resolved problem. */
struct tconv_equivalent tconv_equivalent_of(const tconv_problem *problem,
                                            const tconv_geometry *geometry);

#endif
