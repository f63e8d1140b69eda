/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of a problem: the only form in which algorithms see it. They have extents and element
 * steps, but no operators, formats and group axes. */
#ifndef TCONV_GEOMETRY_LOOPS_H
#define TCONV_GEOMETRY_LOOPS_H

#include "geometry/equivalent.h"

/* One spatial axis. A step is the distance in elements between neighbours along the axis. */
struct tconv_axis {
    int64_t input, kernel, stride, dilation;
    int64_t pad; /* pad_begin: output o gets input i through tap k if o + pad = i*stride +
                    k*dilation */
    int64_t output;
    int64_t data_step, filter_step, output_step;
};

struct tconv_loops {
    tconv_type data_type, filter_type, output_type;
    int64_t batch, groups, in_channels, out_channels; /* channels of one group */
    int64_t data_batch_step, data_channel_step;
    int64_t output_batch_step, output_channel_step;
    int64_t filter_group_step, filter_in_step, filter_out_step;
    int axes;
    struct tconv_axis axis[TCONV_MAX_AXES];
    uint64_t macs;
    struct tconv_equivalent equivalent; /* the steps below are those of its filter */
    bool spaced; /* data or output has steps that are not those of a dense tensor */
    /* Maps an output index to a residual index. Divide the output index by [0][0], the remainder by
     * [1][0], and so on; the quotients, multiplied by [0][1], [1][1], ..., add up to the residual
     * index. If residual_axes is 0, both indices are equal. */
    int residual_axes;
    int64_t residual_step[TCONV_MAX_AXES + 2][2];
    /* Maps an output index to the index of its bias, scale and slope, if they differ by phase.
     * Divide the output index by the first axis's output_step, the remainder by the second's, and
     * so on. A quotient counts as (quotient + first) % period, or as it is if period is 0. Times
     * index_step they add up, and phase_base with them, to the index. If phase_axes is 0, the index
     * is the channel. */
    int phase_axes;
    int64_t phase_base;
    struct tconv_phase_axis {
        int64_t output_step, output; /* the latter: how many there are */
        int64_t period, first, index_step;
    } phase[TCONV_MAX_AXES + 2];
};

/* The loops of a resolved problem. */
void tconv_loops_init(struct tconv_loops *loops, const tconv_problem *problem,
                      const tconv_geometry *geometry);

/* Folds axes, so that algorithms for three axes take as many problems as possible. Removes axes
 * with one input point, one tap and one output point. Merges neighbouring axes with one tap, stride
 * 1 and nothing cut off, if their points lie at even distances. With more than three axes and a
 * batch of 1, such an axis becomes the batch. One axis always remains. */
void tconv_loops_fold(struct tconv_loops *loops);

#endif
