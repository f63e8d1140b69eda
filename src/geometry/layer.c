/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a layer of a problem: turns operators and formats into element steps, and folds axes. */
#include "geometry/layer.h"

#include "base/checked.h"
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
static void relate_residual(struct tconv_layer *layer, const struct tconv_view *output,
                            const struct tconv_view *residual)
{
    int64_t extent[TCONV_TENSOR_AXES], (*step)[2] = layer->residual_step;
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
    layer->residual_axes = kept;
}

void tconv_layer_init(struct tconv_layer *layer, const tconv_problem *problem,
                      const tconv_geometry *g)
{
    *layer = (struct tconv_layer){
        .data_type = problem->data_type,
        .filter_type = problem->filter_type,
        .output_type = g->output_type,
        .batch = g->batch,
        .groups = g->groups,
        .in_channels = g->group_in_channels,
        .out_channels = g->group_out_channels,
        .axes = g->axes,
        .macs = g->macs,
    };
    const bool nxc = g->data_format == TCONV_NXC;
    int64_t data[TCONV_MAX_AXES], output[TCONV_MAX_AXES], filter[TCONV_MAX_AXES];
    const struct tconv_view data_view = tconv_view_of(problem, g, TCONV_SPACED_DATA),
                            output_view = tconv_view_of(problem, g, TCONV_SPACED_OUTPUT),
                            residual_view = tconv_view_of(problem, g, TCONV_SPACED_RESIDUAL);
    layer->data_channel_step = take_steps(&data_view, nxc, data);
    layer->data_batch_step = data_view.step[0];
    layer->output_channel_step = take_steps(&output_view, nxc, output);
    layer->output_batch_step = output_view.step[0];
    layer->spaced = !tconv_view_is_dense(&data_view) || !tconv_view_is_dense(&output_view);
    relate_residual(layer, &output_view, &residual_view);
    const bool xio = problem->operation == TCONV_ONEAPI_CONV_BACKPROP &&
                     problem->filter_format != TCONV_OIX;
    const int64_t all_in = g->groups * g->group_in_channels;
    if (xio) { /* [K..., CO/G, G*CI] */
        dense_steps(g->kernel, g->axes, g->group_out_channels * all_in, filter);
        layer->filter_out_step = all_in;
        layer->filter_in_step = 1;
        layer->filter_group_step = g->group_in_channels;
    } else { /* [G*CI, CO/G, K...], which is byte for byte [G, CI, CO/G, K...] */
        layer->filter_out_step = dense_steps(g->kernel, g->axes, 1, filter);
        layer->filter_in_step = layer->filter_out_step * g->group_out_channels;
        layer->filter_group_step = layer->filter_in_step * g->group_in_channels;
    }
    for (int a = 0; a < g->axes; a++)
        layer->axis[a] = (struct tconv_axis){
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
static bool continues_batch(const struct tconv_layer *layer, const struct tconv_axis *axis)
{
    return layer->batch == 1 ||
           (tconv_is_product(layer->data_batch_step, axis->input, axis->data_step) &&
            tconv_is_product(layer->output_batch_step, axis->output, axis->output_step));
}

static void remove_axis(struct tconv_layer *layer, int a)
{
    layer->axes--;
    memmove(layer->axis + a, layer->axis + a + 1, (size_t)(layer->axes - a) * sizeof *layer->axis);
}

void tconv_layer_fold(struct tconv_layer *layer)
{
    for (int a = layer->axes - 1; a >= 0 && layer->axes > 1; a--)
        if (does_nothing(&layer->axis[a])) remove_axis(layer, a);
    for (int a = layer->axes - 2; a >= 0; a--) {
        const struct tconv_axis *outer = &layer->axis[a], *inner = &layer->axis[a + 1];
        if (!copies(outer) || !copies(inner) || !continues(outer, inner)) continue;
        layer->axis[a + 1].input *= outer->input;
        layer->axis[a + 1].output *= outer->output;
        remove_axis(layer, a);
    }
    /* Take the outermost such axis, so that the innermost stays in place if it is contiguous. */
    for (int a = 0; a < layer->axes && layer->axes > ALGORITHM_AXES; a++) {
        const struct tconv_axis axis = layer->axis[a];
        if (!copies(&axis) || !continues_batch(layer, &axis)) continue;
        /* No other axis can follow: the batch items are one after another now. */
        layer->batch *= axis.input;
        layer->data_batch_step = axis.data_step;
        layer->output_batch_step = axis.output_step;
        remove_axis(layer, a);
    }
}
