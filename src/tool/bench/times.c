/* SPDX-License-Identifier: Apache-2.0 */
/* The clock, and what several measured times say together. */
#include "tool/bench/times.h"

#include "base/os.h"

#include <stdlib.h>

double now(void)
{
    return tconv_os_seconds();
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median(double *seconds, int count)
{
    qsort(seconds, (size_t)count, sizeof *seconds, by_value);
    return count % 2 == 1 ? seconds[count / 2] : (seconds[count / 2 - 1] + seconds[count / 2]) / 2;
}

/* A quantile of sorted times: 0 is the first, 1 the last, interpolated between. */
static double quantile(const double *sorted, int count, double where)
{
    const double at = where * (count - 1);
    const int below = (int)at, above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

double relative_spread(const double *sorted, int count)
{
    return (quantile(sorted, count, 0.75) - quantile(sorted, count, 0.25)) /
           quantile(sorted, count, 0.5);
}
