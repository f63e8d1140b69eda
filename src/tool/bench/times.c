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
