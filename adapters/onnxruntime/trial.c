/* SPDX-License-Identifier: Apache-2.0 */
/* Tries a layer on the device, with invented extents where the model has none. */
#include "trial.h"
#include "log.h"

#include <math.h>

static bool is_extent_known(const tconv_shape *shape, int axis)
{
    return shape->rank != 0 && shape->dim[axis] >= 0;
}

/* Replaces the unknown extents of `known` by likely ones, for a try. */
static tconv_shape guess(const tconv_shape *known, int rank, int64_t first, int64_t second,
                         int64_t extent, const tconv_list *kernel)
{
    tconv_shape shape = {rank, {0}};
    for (int i = 0; i < rank; i++) {
        shape.dim[i] = i == 0 ? first : i == 1 ? second : extent;
        if (i > 1 && kernel != NULL && kernel->count != 0) shape.dim[i] = kernel->value[i - 2];
        if (is_extent_known(known, i)) shape.dim[i] = known->dim[i];
    }
    return shape;
}

static int64_t value_of(const tconv_list *list, int axis, int64_t absent)
{
    return list->count == 0 ? absent : list->value[axis];
}

/* The least extent, at least `extent`, with step * (extent - 1) >= lacking. If it is beyond all
 * bounds, the library's error says so. */
static int64_t grown(int64_t extent, double lacking, int64_t step)
{
    return (int64_t)fmin(fmax((double)extent, 1 + ceil(lacking / (double)step)), 0x1p40);
}

/* Lets invented extents of the data, enlarged if the layer upsamples, grow until they have place
 * for a convolution's filter. */
static void outgrow_filter(const struct node_layer *layer, tconv_shape *data,
                           const tconv_shape *filter)
{
    const tconv_problem *problem = &layer->request.problem;
    for (int i = 2; i < data->rank; i++) {
        const bool enlarged = problem->operation == TCONV_UPSAMPLE_CONV;
        const int64_t factor = enlarged ? value_of(&problem->strides, i - 2, 1) : 1;
        const double lacking = (double)value_of(&problem->dilations, i - 2, 1) *
                                   (double)(filter->dim[i] - 1) +
                               1 - (double)value_of(&problem->pads_begin, i - 2, 0) -
                               (double)value_of(&problem->pads_end, i - 2, 0) - (double)factor;
        if (!is_extent_known(&layer->data, i)) data->dim[i] = grown(data->dim[i], lacking, factor);
    }
}

/* Lets invented extents grow until the pads leave an element of the output: those of the data, or
 * those of the filter if only they are unknown. */
static void outgrow_pads(const struct node_layer *layer, tconv_shape *data, tconv_shape *filter)
{
    const tconv_problem *problem = &layer->request.problem;
    const bool is_kernel_given = layer->request.kernel.count != 0;
    for (int i = 2; i < data->rank; i++) {
        const int64_t stride = value_of(&problem->strides, i - 2, 1);
        const int64_t dilation = value_of(&problem->dilations, i - 2, 1);
        const double cut = (double)value_of(&problem->pads_begin, i - 2, 0) +
                           (double)value_of(&problem->pads_end, i - 2, 0) -
                           (double)value_of(&problem->output_padding, i - 2, 0);
        const double by_data = (double)stride * (double)(data->dim[i] - 1);
        const double by_filter = (double)dilation * (double)(filter->dim[i] - 1);
        if (!is_extent_known(&layer->data, i))
            data->dim[i] = grown(data->dim[i], cut - by_filter, stride);
        else if (!is_kernel_given && !is_extent_known(&layer->filter, i))
            filter->dim[i] = grown(filter->dim[i], cut - by_data, dilation);
    }
}

static bool is_known(const tconv_shape *shape)
{
    bool known = shape->rank != 0;
    for (int i = 0; i < shape->rank; i++) known = known && shape->dim[i] >= 0;
    return known;
}

bool is_small(const struct node_layer *layer, uint64_t least_macs)
{
    tconv_problem problem;
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    tconv_error error;
    return is_known(&layer->data) && is_known(&layer->filter) &&
           layer_resolve(&layer->request, &layer->data, &layer->filter, &problem, &geometry,
                         &error) == TCONV_OK &&
           geometry.macs < least_macs;
}

/* Makes the layer's problem, with invented extents where the model has none. */
static tconv_status invent(const struct node_layer *layer, tconv_problem *problem,
                           tconv_error *error)
{
    enum { EXTENT = 64, KERNEL = 3 };
    const struct layer_request *request = &layer->request;
    const int rank = rank_of(layer);
    const int64_t groups = request->problem.groups;
    const bool convolves = request->problem.operation != TCONV_ONEAPI_CONV_BACKPROP;
    int64_t channels = groups, outputs = groups;
    if (request->problem.operation !=
        TCONV_UPSAMPLE_CONV) /* a channel for each phase of a shuffle */
        for (int a = 0; a < request->problem.strides.count; a++)
            if (__builtin_mul_overflow(outputs, request->problem.strides.value[a], &outputs))
                outputs = groups; /* the library's error says more */
    if (layer->data.rank == rank && layer->data.dim[1] >= 0) channels = layer->data.dim[1];
    if (layer->filter.rank == rank && !convolves && layer->filter.dim[0] >= 0)
        channels = layer->filter.dim[0];
    if (layer->filter.rank == rank && convolves && layer->filter.dim[1] >= 0 &&
        __builtin_mul_overflow(layer->filter.dim[1], groups, &channels))
        channels = groups; /* the library's error says more */
    if (layer->filter.rank != 0 && layer->filter.rank != rank)
        return fail(error, TCONV_ERROR_SHAPE, "data has rank %d, the filter %d", rank,
                    layer->filter.rank);
    tconv_shape data = guess(&layer->data, rank, 1, channels, EXTENT, NULL);
    tconv_shape filter =
        convolves
            ? guess(&layer->filter, rank, outputs, channels / groups, KERNEL, &request->kernel)
            : guess(&layer->filter, rank, channels, 1, KERNEL, &request->kernel);
    if (convolves)
        outgrow_filter(layer, &data, &filter);
    else
        outgrow_pads(layer, &data, &filter);
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    return layer_resolve(request, &data, &filter, problem, &geometry, error);
}

/* True if an output takes fewer multiply-adds than the convolution of the enlarged data does.
 * `*bytes` are those of the sums of weights, and `*growth` how many times the filter's they are. */
static bool saves(const tconv_problem *problem, double *bytes, double *growth)
{
    double taps = 1, enlarged = 1, sums = 1;
    for (int a = 0; a < problem->filter.rank - 2; a++) {
        const double kernel = (double)problem->filter.dim[a + 2];
        const double factor = (double)value_of(&problem->strides, a, 1);
        const double dilation = (double)value_of(&problem->dilations, a, 1);
        enlarged *= kernel;
        const double taken = factor == 1 ? kernel : dilation * (kernel - 1) + factor;
        taps *= taken / factor;
        sums *= taken;
    }
    *growth = sums / enlarged;
    *bytes = (double)problem->filter.dim[0] * (double)problem->filter.dim[1] * sums *
             (double)tconv_type_size(problem->filter_type);
    return taps < enlarged;
}

tconv_status try_pair(const struct node_layer *layer, tconv_error *error)
{
    /* Output channels for each input channel. ONNX Runtime was faster from 16 on, by 1.1 at 4 to 64
     * and by 1.6 at 1 to 64 channels, and slower at 8 to 64. */
    enum { MOST_OUT = 16, MOST_GROWTH = 16, MOST_BYTES = 1 << 26 };
    tconv_problem problem;
    const tconv_shape *filter = &layer->filter;
    bool known = layer->request.kernel.count != 0 || filter->rank != 0;
    for (int i = 2; i < filter->rank && layer->request.kernel.count == 0; i++)
        known = known && filter->dim[i] >= 0;
    if (!known)
        return fail(error, TCONV_ERROR_UNSUPPORTED, "the extents of its filter are unknown");
    const tconv_status status = invent(layer, &problem, error);
    if (status != TCONV_OK) return status;
    if (problem.operation != TCONV_UPSAMPLE_CONV) return TCONV_OK;
    double bytes, growth;
    if (!saves(&problem, &bytes, &growth))
        return fail(error, TCONV_ERROR_UNSUPPORTED,
                    "as one layer it would take as many multiply-adds: its kernel is 1 where the "
                    "data grow, or its dilation the factor");
    if (growth > MOST_GROWTH && bytes > MOST_BYTES)
        return fail(error, TCONV_ERROR_UNSUPPORTED,
                    "its sums of weights would take %.0f times as much memory as its filter",
                    growth);
    if (problem.filter.dim[0] / problem.groups / MOST_OUT >= problem.filter.dim[1])
        return fail(error, TCONV_ERROR_UNSUPPORTED,
                    "it has %lld output channels for %lld input channels: as two operators it is "
                    "faster",
                    (long long)(problem.filter.dim[0] / problem.groups),
                    (long long)problem.filter.dim[1]);
    return TCONV_OK;
}

tconv_status try_plan(tconv_device *device, const OrtLogger *logger, const struct node_layer *layer,
                      tconv_error *error)
{
    const struct layer_request *request = &layer->request;
    tconv_problem problem;
    tconv_status status = invent(layer, &problem, error);
    if (status != TCONV_OK) return status;
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.epilogue = request->epilogue;
    options.math = request->math;
    options.search = request->search == TCONV_SEARCH_MODEL ? TCONV_SEARCH_MODEL
                                                           : TCONV_SEARCH_RECORDS;
    tconv_plan *plan;
    log_begin(NULL, logger);
    status = tconv_plan_create(device, &problem, &options, &plan, error);
    log_end();
    if (status == TCONV_OK) tconv_plan_release(plan);
    return status;
}
