/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the loops of a problem: turns operators and formats into element steps, and folds axes. */
#include "geometry/loops.h"

#include "base/checked.h"
#include "base/convolves.h"
#include "base/view.h"

#include <string.h>

enum { ALGORITHM_AXES = 3 }; /* axes of the fast algorithms */

/* Steps of the spatial axes of a dense tensor whose spatial extents stand together, the innermost
 * having step `inner`. Returns the step past the outermost axis. */
static int64_t dense_steps(const int64_t *extent, int axes, int64_t inner, int64_t *step)
{
    for (int a = axes - 1; a >= 0; a--) {
        step[a] = inner;
        inner *= extent[a];
    }
    return inner;
}

/* The step of the channels, and those of the spatial axes. */
static int64_t take_steps(const struct tconv_view *view, bool nxc, int64_t *step)
{
    memcpy(step, view->step + (nxc ? 1 : 2), (size_t)(view->rank - 2) * sizeof *step);
    return view->step[nxc ? view->rank - 1 : 1];
}

/* Sets how the residual's indices follow from the output's. An axis that continues the one before
 * in both tensors is not listed by itself. */
static void relate_residual(struct tconv_loops *loops, const struct tconv_view *output,
                            const struct tconv_view *residual)
{
    int64_t extent[TCONV_TENSOR_AXES], (*step)[2] = loops->residual_step;
    int count = 0;
    bool equal = true;
    for (int a = 0; a < output->rank; a++) {
        if (output->extent[a] <= 1) continue;
        int place = count++;
        for (; place > 0 && step[place - 1][0] < output->step[a]; place--) {
            extent[place] = extent[place - 1];
            memcpy(step[place], step[place - 1], sizeof *step);
        }
        extent[place] = output->extent[a];
        step[place][0] = output->step[a];
        step[place][1] = residual->step[a];
        equal = equal && output->step[a] == residual->step[a];
    }
    if (equal) count = 0;
    int kept = 0;
    for (int i = 0; i < count; i++) {
        if (kept > 0 && tconv_is_product(step[kept - 1][0], extent[i], step[i][0]) &&
            tconv_is_product(step[kept - 1][1], extent[i], step[i][1])) {
            extent[i] *= extent[kept - 1];
            kept--;
        }
        extent[kept] = extent[i];
        memmove(step[kept++], step[i], sizeof *step);
    }
    loops->residual_axes = kept;
}

/* Lists an axis of the output, whose axes are in the order of their steps. */
static void add_phase_axis(struct tconv_loops *loops, const struct tconv_phase_axis *axis)
{
    if (axis->output <= 1) { /* it needs no division */
        if (axis->period > 0) loops->phase_base += axis->first % axis->period * axis->index_step;
        return;
    }
    int place = loops->phase_axes++;
    for (; place > 0 && loops->phase[place - 1].output_step < axis->output_step; place--)
        loops->phase[place] = loops->phase[place - 1];
    loops->phase[place] = *axis;
}

/* Sets how the indices of bias, scale and slope follow from the output's. */
static void relate_phases(struct tconv_loops *loops, const tconv_problem *problem,
                          const tconv_geometry *g, const struct tconv_view *output)
{
    if (!tconv_shuffles(problem)) return;
    const bool nxc = g->data_format == TCONV_NXC;
    const int channels = nxc ? output->rank - 1 : 1;
    int64_t step[TCONV_MAX_AXES];
    const int64_t channel_step = tconv_phase_steps(problem, g, step);
    add_phase_axis(loops, &(struct tconv_phase_axis){output->step[0], output->extent[0], 0, 0, 0});
    add_phase_axis(loops, &(struct tconv_phase_axis){output->step[channels],
                                                     output->extent[channels], 0, 0, channel_step});
    for (int a = 0; a < g->axes; a++) {
        /* o + pad = i*r + t, and a pad of the whole is a multiple of r: t mod r is the phase. */
        const int64_t r = g->stride[a], first = tconv_mod(g->pad_begin[a], r);
        const int at = a + (nxc ? 1 : 2);
        add_phase_axis(loops,
                       &(struct tconv_phase_axis){output->step[at], output->extent[at],
                                                  r > 1 ? r : 0, first, r > 1 ? step[a] : 0});
    }
    /* An axis that only repeats needs no division if it is the innermost one, or if the next one's
     * quotients go on in its period. */
    struct tconv_phase_axis *phase = loops->phase;
    while (loops->phase_axes > 0 && phase[loops->phase_axes - 1].index_step == 0)
        loops->phase_axes--;
    for (int i = loops->phase_axes - 2; i >= 0; i--)
        if (phase[i].index_step == 0 && phase[i + 1].period > 0 &&
            phase[i + 1].output % phase[i + 1].period == 0 &&
            tconv_is_product(phase[i].output_step, phase[i + 1].output, phase[i + 1].output_step)) {
            phase[i + 1].output *= phase[i].output;
            loops->phase_axes--;
            memmove(phase + i, phase + i + 1, (size_t)(loops->phase_axes - i) * sizeof *phase);
        }
}

/* Sets the filter's steps to channels and groups, and those of its spatial axes. */
static void take_filter_steps(struct tconv_loops *loops, const tconv_problem *problem,
                              const tconv_geometry *g, int64_t *step)
{
    if (loops->equivalent.axes > 0) { /* [G*CI, CO/G, K...], dense */
        loops->filter_out_step = dense_steps(g->kernel, g->axes, 1, step);
        loops->filter_in_step = loops->filter_out_step * g->group_out_channels;
        loops->filter_group_step = loops->filter_in_step * g->group_in_channels;
        return;
    }
    const struct tconv_view view = tconv_view_of(problem, g, TCONV_SPACED_FILTER);
    const bool grouped = problem->operation == TCONV_GROUP_CONV_BACKPROP;
    const bool xio = problem->operation == TCONV_ONEAPI_CONV_BACKPROP &&
                     problem->filter_format != TCONV_OIX; /* [K..., CO/G, G*CI] */
    const int in = xio ? view.rank - 1 : grouped, out = xio ? in - 1 : in + 1;
    memcpy(step, view.step + (xio ? 0 : out + 1), (size_t)g->axes * sizeof *step);
    loops->filter_in_step = view.step[in];
    loops->filter_out_step = view.step[out];
    loops->filter_group_step = grouped ? view.step[0]
                                       : tconv_distance(g->group_in_channels, view.step[in]);
}

void tconv_loops_init(struct tconv_loops *loops, const tconv_problem *problem,
                      const tconv_geometry *g)
{
    *loops = (struct tconv_loops){
        .data_type = problem->data_type,
        .filter_type = problem->filter_type,
        .output_type = g->output_type,
        .batch = g->batch,
        .groups = g->groups,
        .in_channels = g->group_in_channels,
        .out_channels = g->group_out_channels,
        .axes = g->axes,
        .macs = g->macs,
        .equivalent = tconv_equivalent_of(problem, g),
    };
    const bool nxc = g->data_format == TCONV_NXC;
    int64_t data[TCONV_MAX_AXES], output[TCONV_MAX_AXES], filter[TCONV_MAX_AXES];
    const struct tconv_view data_view = tconv_view_of(problem, g, TCONV_SPACED_DATA),
                            output_view = tconv_view_of(problem, g, TCONV_SPACED_OUTPUT),
                            residual_view = tconv_view_of(problem, g, TCONV_SPACED_RESIDUAL);
    loops->data_channel_step = take_steps(&data_view, nxc, data);
    loops->data_batch_step = data_view.step[0];
    loops->output_channel_step = take_steps(&output_view, nxc, output);
    loops->output_batch_step = output_view.step[0];
    loops->spaced = !tconv_view_is_dense(&data_view) || !tconv_view_is_dense(&output_view);
    relate_residual(loops, &output_view, &residual_view);
    relate_phases(loops, problem, g, &output_view);
    take_filter_steps(loops, problem, g, filter);
    for (int a = 0; a < g->axes; a++)
        loops->axis[a] = (struct tconv_axis){
            .input = g->input[a],
            .kernel = g->kernel[a],
            .stride = g->stride[a],
            .dilation = g->dilation[a],
            .pad = g->pad_begin[a],
            .output = g->output[a],
            .data_step = data[a],
            .filter_step = filter[a],
            .output_step = output[a],
        };
}

/* True if every output point is the input point of the same position: the axis only repeats the
 * work of the other axes. */
static bool copies(const struct tconv_axis *axis)
{
    return axis->kernel == 1 && axis->stride == 1 && axis->pad == 0 && axis->input == axis->output;
}

/* True if a step past the end of the inner axis leads to the next point of the outer one, in data
 * and output. */
static bool continues(const struct tconv_axis *outer, const struct tconv_axis *inner)
{
    return tconv_is_product(outer->data_step, inner->input, inner->data_step) &&
           tconv_is_product(outer->output_step, inner->output, inner->output_step);
}

static bool does_nothing(const struct tconv_axis *axis)
{
    return axis->kernel == 1 && axis->pad == 0 && axis->input == 1 && axis->output == 1;
}

/* True if a step past the end of the axis leads to the next batch item: then axis and batch can be
 * merged. */
static bool continues_batch(const struct tconv_loops *loops, const struct tconv_axis *axis)
{
    return loops->batch == 1 ||
           (tconv_is_product(loops->data_batch_step, axis->input, axis->data_step) &&
            tconv_is_product(loops->output_batch_step, axis->output, axis->output_step));
}

static void remove_axis(struct tconv_loops *loops, int a)
{
    loops->axes--;
    memmove(loops->axis + a, loops->axis + a + 1, (size_t)(loops->axes - a) * sizeof *loops->axis);
}

void tconv_loops_fold(struct tconv_loops *loops)
{
    for (int a = loops->axes - 1; a >= 0 && loops->axes > 1; a--)
        if (does_nothing(&loops->axis[a])) remove_axis(loops, a);
    for (int a = loops->axes - 2; a >= 0; a--) {
        const struct tconv_axis *outer = &loops->axis[a], *inner = &loops->axis[a + 1];
        if (!copies(outer) || !copies(inner) || !continues(outer, inner)) continue;
        loops->axis[a + 1].input *= outer->input;
        loops->axis[a + 1].output *= outer->output;
        remove_axis(loops, a);
    }
    /* Take the outermost such axis, so that the innermost stays in place if it is contiguous. */
    for (int a = 0; a < loops->axes && loops->axes > ALGORITHM_AXES; a++) {
        const struct tconv_axis axis = loops->axis[a];
        if (!copies(&axis) || !continues_batch(loops, &axis)) continue;
        /* No other axis can follow: the batch items are one after another now. */
        loops->batch *= axis.input;
        loops->data_batch_step = axis.data_step;
        loops->output_batch_step = axis.output_step;
        remove_axis(loops, a);
    }
}
