/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring what a device can do at most. */
#ifndef TCONV_TOOL_ROOFS_H
#define TCONV_TOOL_ROOFS_H

#include "tool.h"

enum { MOST_SIZES = 12 };

struct roofs {
    double peak_gflops;       /* 2 flops for each f32 multiply-add */
    double launch_us;         /* median from enqueueing an empty kernel until clFinish returns */
    int sizes;                /* 0: nothing was measured */
    double bytes[MOST_SIZES]; /* working sets, growing */
    double gbs[MOST_SIZES];   /* bandwidth of a triad over each */
};

/* Takes about a second on the host's queue. */
enum exit_code roofs_measure(tconv_host *host, struct roofs *roofs);

/* Measures again and keeps the larger figures: a machine that was busy the first time must not make layers look good. Tells where
 * they differ by more than a tenth. */
enum exit_code roofs_measure_again(tconv_host *host, struct roofs *roofs);

/* The bandwidth for a working set of that size: of the smallest measured one that is not smaller,
 * else of the largest. */
double roofs_bandwidth(const struct roofs *roofs, double bytes);

/* Seconds since some fixed moment. */
double now(void);

/* The median of times, which it sorts. */
double median(double *seconds, int count);

#endif
