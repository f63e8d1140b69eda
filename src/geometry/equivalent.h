/* SPDX-License-Identifier: Apache-2.0 */
/* The transposed convolutions that compute a convolution of stride 1 behind nearest upsampling, or
 * in front of pixel shuffle.
 *
 * Upsampling (of factor s,
 * dilation d, kernel k, pad p along an axis). An enlarged point u = i*s + r, 0 <= r < s, reaches
 * the output o = u - j*d + p through tap j. In o + pad = i*s + t with pad = d*(k - 1) - p the tap
 * is t = r + d*(k - 1 - j). So tap t has the sum of the filter's taps j with
 *
 *   0 <= t - d*(k - 1 - j) < s
 *
 * along each axis, and there are d*(k - 1) + s taps. With a factor of 1 each tap is one of the
 * filter's, and the transposed convolution has the dilation. A dilation above another factor would
 * leave taps without any summand, and is refused.
 *
 * Pixel shuffle by r: the output o = r*z + f has the convolution's output z of the channel of phase
 * f, to which tap j brings the input i = z + j - p. In o + pad = i*r + t with pad = r*(k - 1 - p)
 * the tap is t = r*(k - 1 - j) + f. So each tap has one weight, that of tap j = k - 1 - floor(t/r)
 * and of phase t mod r: the sums above with a dilation of r, and the filter of the phase. With a
 * factor of 1 it is the convolution, with its dilation.
 *
 * Both filters, [G*CI, CO, T...], are called the equivalent ones. */
#ifndef TCONV_GEOMETRY_EQUIVALENT_H
#define TCONV_GEOMETRY_EQUIVALENT_H

#include "tconv_cl/problem.h"

#include <stdbool.h>

/* How the given filter becomes the equivalent one. */
struct tconv_equivalent {
    int axes; /* 0: the filter is that of a transposed convolution, and used as it is */
    int64_t factor[TCONV_MAX_AXES], dilation[TCONV_MAX_AXES], kernel[TCONV_MAX_AXES];
    int64_t taps[TCONV_MAX_AXES];
    /* Elements between neighbours in the given filter; between phases 0 if all have one filter. */
    int64_t step[TCONV_MAX_AXES], phase_step[TCONV_MAX_AXES], in_step, out_step, group_step;
    int64_t elements; /* of the equivalent filter */
};

/* Whether the weights are sums: those of an upsampling are, if a factor is not 1. */
static inline bool tconv_has_sums(const struct tconv_equivalent *e)
{
    if (e->axes == 0 || e->phase_step[0] != 0) return false;
    for (int a = 0; a < e->axes; a++)
        if (e->factor[a] > 1) return true;
    return false;
}

/* The channels of a convolution in front of pixel shuffle, by output channel and phase: how far
 * apart neighbouring output channels are, and neighbouring phases along each axis. Returns the
 * former. For a resolved problem. */
int64_t tconv_phase_steps(const tconv_problem *problem, const tconv_geometry *geometry,
                          int64_t step[TCONV_MAX_AXES]);

/* How the filter of a resolved problem becomes the equivalent one. */
struct tconv_equivalent tconv_equivalent_of(const tconv_problem *problem,
                                            const tconv_geometry *geometry);

#endif
