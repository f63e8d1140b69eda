/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the ceilings of a device: peak, bandwidths, and the time of a launch. */
#ifndef TCONV_TOOL_ROOFLINE_H
#define TCONV_TOOL_ROOFLINE_H

#include "tool/bench/opened.h"

enum { MOST_SIZES = 12 };

/* The evidence of a layer: `bytes` can be moved at this bandwidth. */
struct roofline_layer {
    double bytes, gbs;
};

struct roofline {
    double probed_gflops; /* 2 flops for each f32 multiply-add of the kernel that measures them */
    double layers_gflops; /* the highest rate that a layer reached */
    double launch_us; /* the least time from enqueueing an empty kernel until tconv_wait returns */
    double queued_us; /* the same for each of many kernels that are enqueued one after another */
    int sizes;        /* 0: nothing was measured */
    double bytes[MOST_SIZES];      /* working sets, growing */
    double gbs[MOST_SIZES];        /* bandwidth of a triad over each */
    struct roofline_layer *layers; /* room for as many as roofline_raise is called for */
    size_t layer_count;
};

/* Takes about a second. Where threads of the device compute (tconv_device_threads), the driver's
 * own threads run the kernels of peak and bandwidths, as many of them. */
enum exit_code roofline_measure(const struct opened *opened, struct roofline *roofline);

/* Measures again and keeps the larger figures: a machine that was busy the first time must not make
 * layers look good. */
enum exit_code roofline_measure_again(const struct opened *opened, struct roofline *roofline);

/* Raises the ceilings to what a layer reached: the peak is at least `gflops` (0: unknown), and
 * `bytes` can be moved at `gbs`. */
void roofline_raise(struct roofline *roofline, double gflops, double bytes, double gbs);

/* The highest rate of multiply-adds that was measured or reached. */
double roofline_peak(const struct roofline *roofline);

/* The bandwidth for a working set of `bytes`: that of the smallest measured working set that is at
 * least as large, else of the largest. A layer of a size between these two raises it; sizes beyond
 * the largest measured one count as that one. A layer says nothing about larger working sets, which
 * may not fit into its cache. */
double roofline_bandwidth(const struct roofline *roofline, double bytes);

/* The bandwidth of the largest working set. */
double roofline_memory_bandwidth(const struct roofline *roofline);

#endif
