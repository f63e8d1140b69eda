/* SPDX-License-Identifier: Apache-2.0 */
/* Finds how a convolution's filter becomes that of the equivalent transposed convolution. */
#include "geometry/equivalent.h"

#include "base/checked.h"
#include "base/convolves.h"
#include "base/view.h"

int64_t tconv_phase_steps(const tconv_problem *problem, const tconv_geometry *g,
                          int64_t step[TCONV_MAX_AXES])
{
    const bool dcr = problem->operation == TCONV_CONV_PIXEL_SHUFFLE_DCR;
    int64_t phases = 1;
    for (int a = g->axes - 1; a >= 0; a--) {
        step[a] = dcr ? phases * g->group_out_channels : phases;
        phases *= g->stride[a];
    }
    return dcr ? 1 : phases;
}

struct tconv_equivalent tconv_equivalent_of(const tconv_problem *problem, const tconv_geometry *g)
{
    struct tconv_equivalent e = {.axes = 0};
    if (!tconv_convolves(problem)) return e;
    const bool xio = problem->filter_format == TCONV_XIO, shuffles = tconv_shuffles(problem);
    const struct tconv_view view = tconv_view_of(problem, g, TCONV_SPACED_FILTER);
    int64_t channel = 1;
    if (shuffles) channel = tconv_phase_steps(problem, g, e.phase_step);
    e.axes = g->axes;
    e.elements = g->groups * g->group_in_channels * g->group_out_channels;
    for (int a = g->axes - 1; a >= 0; a--) {
        e.factor[a] = g->stride[a];
        e.dilation[a] = shuffles ? g->stride[a] /* one weight for each tap */
                        : problem->dilations.count == 0 || g->stride[a] == 1
                            ? 1 /* the taps stay as they are, and have the dilation themselves */
                            : problem->dilations.value[a];
        e.kernel[a] = problem->filter.dim[a + (xio ? 0 : 2)];
        e.taps[a] = g->kernel[a];
        e.step[a] = view.step[a + (xio ? 0 : 2)];
        e.elements *= e.taps[a];
    }
    const int64_t out_step = view.step[xio ? view.rank - 1 : 0];
    for (int a = 0; a < g->axes; a++) e.phase_step[a] = tconv_distance(e.phase_step[a], out_step);
    e.out_step = tconv_distance(channel, out_step);
    e.in_step = view.step[xio ? view.rank - 2 : 1];
    e.group_step = tconv_distance(tconv_forward_channels(problem) / g->groups, out_step);
    return e;
}
