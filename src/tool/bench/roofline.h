/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring what a device can do at most. */
#ifndef TCONV_TOOL_ROOFLINE_H
#define TCONV_TOOL_ROOFLINE_H

#include "tool/tool.h"

enum { MOST_SIZES = 12 };

/* What a layer has shown: so many bytes can be moved at this bandwidth. */
struct roofline_layer {
    double bytes, gbs;
};

struct roofline {
    double probed_gflops; /* 2 flops for each f32 multiply-add of the kernel that measures them */
    double layers_gflops; /* what a layer reached */
    double launch_us;     /* least from enqueueing an empty kernel until tconv_wait returns */
    double queued_us;     /* the same of one of many that are enqueued one behind the other */
    int sizes;            /* 0: nothing was measured */
    double bytes[MOST_SIZES];      /* working sets, growing */
    double gbs[MOST_SIZES];        /* bandwidth of a triad over each */
    struct roofline_layer *layers; /* room for as many as roofline_raise is called for */
    size_t layer_count;
};

/* Takes about a second on the host's queue. */
enum exit_code roofline_measure(tconv_session *session, struct roofline *roofline);

/* Measures again and keeps the larger figures: a machine that was busy the first time must not make
 * layers look good. */
enum exit_code roofline_measure_again(tconv_session *session, struct roofline *roofline);

/* What a layer reached is no less than what the device can do: the peak is at least `gflops` (0:
 * this layer says nothing about it), and `bytes` can be moved at `gbs`. */
void roofline_raise(struct roofline *roofline, double gflops, double bytes, double gbs);

/* The highest rate of multiply-adds that was measured or reached. */
double roofline_peak(const struct roofline *roofline);

/* The bandwidth for a working set of that size: of the smallest measured one that is not smaller,
 * else of the largest; or, if that is higher, of a layer between the two, where sizes beyond the
 * largest count as it. A layer says nothing about larger working sets: they may not fit the cache
 * that it was in. */
double roofline_bandwidth(const struct roofline *roofline, double bytes);

/* The bandwidth of the largest working set. */
double roofline_memory_bandwidth(const struct roofline *roofline);

/* Seconds since some fixed moment. */
double now(void);

/* The median of times, which it sorts. */
double median(double *seconds, int count);

/* The distance between the first and the third quartile of sorted times, over their median. */
double relative_spread(const double *sorted, int count);

#endif
