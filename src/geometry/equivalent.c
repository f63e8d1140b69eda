/* SPDX-License-Identifier: Apache-2.0 */
/* Finds how a convolution's filter becomes that of the equivalent transposed convolution. */
#include "geometry/equivalent.h"

struct tconv_equivalent tconv_equivalent_of(const tconv_problem *problem, const tconv_geometry *g)
{
    struct tconv_equivalent e = {.axes = 0};
    if (problem->operation != TCONV_UPSAMPLE_CONV) return e;
    const bool xio = problem->filter_format == TCONV_XIO;
    const int64_t all_out = g->groups * g->group_out_channels;
    int64_t step = xio ? g->group_in_channels * all_out : 1;
    e.axes = g->axes;
    e.elements = g->groups * g->group_in_channels * g->group_out_channels;
    for (int a = g->axes - 1; a >= 0; a--) {
        e.factor[a] = g->stride[a];
        e.dilation[a] = problem->dilations.count == 0 || g->stride[a] == 1
                            ? 1 /* the taps stay as they are, and have the dilation themselves */
                            : problem->dilations.value[a];
        e.kernel[a] = problem->filter.dim[a + (xio ? 0 : 2)];
        e.taps[a] = g->kernel[a];
        e.step[a] = step;
        step *= e.kernel[a];
        e.elements *= e.taps[a];
    }
    e.out_step = xio ? 1 : step * g->group_in_channels;
    e.in_step = xio ? all_out : step;
    e.group_step = e.out_step * g->group_out_channels;
    return e;
}
