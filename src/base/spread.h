/* SPDX-License-Identifier: Apache-2.0 */
/* How much measured times differ. */
#ifndef TCONV_BASE_SPREAD_H
#define TCONV_BASE_SPREAD_H

/* A quantile of sorted values: 0 is the first, 1 the last, interpolated between. */
static inline double tconv_quantile(const double *sorted, int count, double where)
{
    const double at = where * (count - 1);
    const int below = (int)at, above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

/* The distance between the first and the third quartile of sorted times, over their median. */
static inline double tconv_spread(const double *sorted, int count)
{
    return (tconv_quantile(sorted, count, 0.75) - tconv_quantile(sorted, count, 0.25)) /
           tconv_quantile(sorted, count, 0.5);
}

#endif
