/* SPDX-License-Identifier: Apache-2.0 */
/* A layer that a provider computes: finds its tensors, reads them, and runs it. */
#include "kernel.h"
#include "concat.h"
#include "log.h"
#include "unfused.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Constants for the channels in the type of scales: channel c has value[c % count]. `value` is NULL
 * if the layer has none. */
struct channel_numbers {
    void *value;
    int64_t count;
};

struct kernel {
    OrtNodeComputeInfo base;
    struct layer_request request;
    struct layer *layer;
    bool strict;
    char name[128];
    size_t input[TENSORS]; /* index of each of the layer's tensors among the fused node's inputs */
    bool has[TENSORS];
    struct concat concat;
    struct channel_numbers scale, bias;
    /* What was fused because the model claims it. Other tensors are computed unfused. */
    int rank;                     /* of the output */
    int64_t channels;             /* of the output; 0: any */
    tconv_shape claimed[TENSORS]; /* rank 0: any; an extent -1: any */
    struct unfused *unfused;      /* NULL: nothing is fused */
    atomic_flag told_slabs, told_unfused;
};

static tconv_status read_input(const struct kernel *kernel, const OrtKernelContext *context,
                               enum tensor tensor, tconv_shape *shape, const void **data,
                               tconv_error *error)
{
    const tconv_problem *problem = &kernel->request.problem;
    return read_tensor(context, kernel->input[tensor],
                       tensor == TENSOR_FILTER ? problem->filter_type : problem->data_type, shape,
                       data, error);
}

static bool agrees(const tconv_shape *shape, const tconv_shape *claimed)
{
    bool same = claimed->rank == 0 || shape->rank == claimed->rank;
    for (int i = 0; same && i < claimed->rank; i++)
        same = claimed->dim[i] == -1 || shape->dim[i] == claimed->dim[i];
    return same;
}

/* Reads bias or slopes: one number for each output channel, of a pixel shuffle for each channel of
 * the convolution. */
static tconv_status read_channels(const struct kernel *kernel, const OrtKernelContext *context,
                                  enum tensor tensor, const tconv_geometry *geometry,
                                  const void **data, tconv_error *error)
{
    const int64_t channels = geometry->epilogue_channels;
    tconv_shape shape;
    if (!kernel->has[tensor]) return TCONV_OK;
    const tconv_status status = read_input(kernel, context, tensor, &shape, data, error);
    if (status != TCONV_OK) return status;
    int64_t count = 1;
    for (int i = 0; i < shape.rank; i++)
        if (shape.dim[i] != 1) count = count == 1 ? shape.dim[i] : -1;
    if (count != channels || !agrees(&shape, &kernel->claimed[tensor]))
        return fail(error, TCONV_ERROR_SHAPE, "%s has not one number for each of %lld channels",
                    tensor == TENSOR_BIAS ? "the bias" : "the slope", (long long)channels);
    return TCONV_OK;
}

static tconv_status read_residual(const struct kernel *kernel, const OrtKernelContext *context,
                                  const tconv_geometry *geometry, const void **data,
                                  tconv_error *error)
{
    tconv_shape shape;
    if (!kernel->has[TENSOR_RESIDUAL]) return TCONV_OK;
    const tconv_status status = read_input(kernel, context, TENSOR_RESIDUAL, &shape, data, error);
    if (status != TCONV_OK) return status;
    const tconv_shape *output = &geometry->output_shape;
    bool same = shape.rank == output->rank;
    for (int i = 0; same && i < shape.rank; i++) same = shape.dim[i] == output->dim[i];
    return same ? TCONV_OK
                : fail(error, TCONV_ERROR_SHAPE,
                       "the tensor that is added does not have the shape of the output");
}

/* True if the constants belong to so many channels. */
static bool has_all(const struct channel_numbers *numbers, int64_t channels)
{
    return numbers->count == 1 || numbers->count == channels;
}

/* Fails if the shapes of data and filter are not those because of which nodes were fused. */
static tconv_status check_claims(const struct kernel *kernel, const tconv_problem *problem,
                                 const tconv_geometry *geometry, tconv_error *error)
{
    const int64_t channels = geometry->epilogue_channels;
    if (kernel->unfused == NULL) return TCONV_OK;
    if (geometry->output_shape.rank != kernel->rank)
        return fail(error, TCONV_ERROR_SHAPE, "the output has rank %d, and %d in the model",
                    geometry->output_shape.rank, kernel->rank);
    if (!agrees(&problem->filter, &kernel->claimed[TENSOR_FILTER]))
        return fail(error, TCONV_ERROR_SHAPE, "the filter has another shape than in the model");
    const bool known = kernel->channels != 0;
    if (known ? channels != kernel->channels
              : !has_all(&kernel->scale, channels) || !has_all(&kernel->bias, channels))
        return fail(error, TCONV_ERROR_SHAPE,
                    "the output has %lld channels, and another number in the model",
                    (long long)channels);
    return TCONV_OK;
}

/* Repeats constants for all channels of an output, unless the output is empty. */
static tconv_status spread(const struct channel_numbers *numbers, const tconv_geometry *geometry,
                           size_t size, unsigned char **own, const void **out, tconv_error *error)
{
    const int64_t channels = geometry->epilogue_channels;
    *out = numbers->value;
    if (numbers->value == NULL || numbers->count == channels || geometry->output_bytes == 0)
        return TCONV_OK;
    *out = *own = calloc((size_t)channels, size);
    if (*own == NULL)
        return fail(error, TCONV_ERROR_HOST_MEMORY, "no memory for %lld channels",
                    (long long)channels);
    const size_t bytes = (size_t)numbers->count * size;
    for (int64_t c = 0; c < channels; c += numbers->count)
        memcpy(*own + (size_t)c * size, numbers->value, bytes);
    return TCONV_OK;
}

/* The tensors of a run. */
struct run {
    tconv_problem problem;
    tconv_geometry geometry;
    tconv_tensors tensors;
    struct whole whole;
};

/* Reads the tensors that come after the layer's sums. Fails with TCONV_ERROR_SHAPE if they, or the
 * sums, do not have the shapes because of which nodes were fused. */
static tconv_status read_fused(const struct kernel *kernel, const OrtKernelContext *context,
                               struct run *run, tconv_error *error)
{
    const tconv_geometry *geometry = &run->geometry;
    tconv_status status = check_claims(kernel, &run->problem, geometry, error);
    if (status == TCONV_OK)
        status =
            read_channels(kernel, context, TENSOR_BIAS, geometry, &run->tensors.bias.host, error);
    if (status == TCONV_OK)
        status =
            read_channels(kernel, context, TENSOR_SLOPE, geometry, &run->tensors.slope.host, error);
    if (status == TCONV_OK)
        status = read_residual(kernel, context, geometry, &run->tensors.residual.host, error);
    return status;
}

static tconv_status compute_fused(struct kernel *kernel, OrtKernelContext *context, struct run *run,
                                  tconv_error *error)
{
    const struct whole *whole = &run->whole;
    OrtValue *value;
    void *output;
    if (!succeeded(ort.KernelContext_GetOutput(context, 0, whole->shape.dim,
                                               (size_t)whole->shape.rank, &value),
                   error) ||
        !succeeded(ort.GetTensorMutableData(value, &output), error))
        return error->status;
    run->tensors.output.host = (unsigned char *)output + whole->own_begin;
    run->problem.output_steps = whole->steps;
    int64_t slabs;
    const tconv_status status =
        layer_run(kernel->layer, context, &run->problem, &run->tensors, &slabs, error);
    if (status == TCONV_OK && slabs > 1 && !atomic_flag_test_and_set(&kernel->told_slabs))
        log_warning(log_of(context), "tconv_cl: %s is computed in slabs, %lld of them: it is large",
                    kernel->name, (long long)slabs);
    return status == TCONV_OK ? copy_parts(whole, context, output, error) : status;
}

/* Computes the nodes unfused, one by one. `reason` is for the log. */
static tconv_status compute_unfused(struct kernel *kernel, int rank, OrtKernelContext *context,
                                    const tconv_error *reason, tconv_error *error)
{
    tconv_error failure;
    const tconv_status status = unfused_run(kernel->unfused, rank, context, &failure);
    if (status != TCONV_OK)
        return fail(error, status, "%.300s; unfused: %.600s", reason->message, failure.message);
    if (!atomic_flag_test_and_set(&kernel->told_unfused))
        log_warning(log_of(context), "tconv_cl: %s is computed unfused: %s", kernel->name,
                    reason->message);
    return TCONV_OK;
}

static tconv_status compute(struct kernel *kernel, OrtKernelContext *context, tconv_error *error)
{
    struct run run = {.geometry = TCONV_GEOMETRY_INIT, .tensors = TCONV_TENSORS_INIT};
    tconv_shape data, filter;
    tconv_status status =
        read_input(kernel, context, TENSOR_DATA, &data, &run.tensors.data.host, error);
    if (status == TCONV_OK)
        status =
            read_input(kernel, context, TENSOR_FILTER, &filter, &run.tensors.filter.host, error);
    if (status != TCONV_OK) return status;
    if (!agrees(&data, &kernel->claimed[TENSOR_DATA])) {
        status = fail(error, TCONV_ERROR_SHAPE, "the data have another shape than in the model");
    } else {
        status =
            layer_resolve(&kernel->request, &data, &filter, &run.problem, &run.geometry, error);
        if (status != TCONV_OK) return status;
        status = read_fused(kernel, context, &run, error);
    }
    if (status == TCONV_ERROR_SHAPE && kernel->unfused != NULL) {
        const tconv_error reason = *error;
        return compute_unfused(kernel, data.rank, context, &reason, error);
    }
    if (status == TCONV_OK)
        status = whole_of(&kernel->concat, context, &run.geometry, &run.whole, error);
    const size_t size = tconv_type_size(tconv_scale_type(run.problem.data_type));
    unsigned char *scale = NULL, *bias = NULL;
    if (status == TCONV_OK)
        status =
            spread(&kernel->scale, &run.geometry, size, &scale, &run.tensors.scale.host, error);
    if (status == TCONV_OK && kernel->bias.value != NULL)
        status = spread(&kernel->bias, &run.geometry, size, &bias, &run.tensors.bias.host, error);
    if (status == TCONV_OK) status = compute_fused(kernel, context, &run, error);
    free(scale);
    free(bias);
    return status;
}

static OrtStatus *kernel_create_state(OrtNodeComputeInfo *info, OrtNodeComputeContext *context,
                                      void **state)
{
    (void)context;
    *state = info;
    return NULL;
}

static OrtStatus *kernel_compute(OrtNodeComputeInfo *info, void *state, OrtKernelContext *context)
{
    (void)info;
    struct kernel *kernel = state;
    tconv_error error;
    return compute(kernel, context, &error) == TCONV_OK
               ? NULL
               : status_of(kernel->name, &error, kernel->strict);
}

static void kernel_release_state(OrtNodeComputeInfo *info, void *state)
{
    (void)info;
    (void)state;
}

/* Finds a tensor among the inputs of the fused node. */
static tconv_status find_input(const OrtValueInfo *const *inputs, size_t count,
                               const OrtValueInfo *tensor, size_t *out, tconv_error *error)
{
    for (*out = 0; *out < count; ++*out)
        if (is_same_value(inputs[*out], tensor)) return TCONV_OK;
    return fail(error, TCONV_ERROR_INTERNAL, "an input of the layer is missing");
}

/* Finds all tensors of the layer. */
static tconv_status find_inputs(struct kernel *kernel, const struct node_layer *layer,
                                const OrtNode *fused, tconv_error *error)
{
    const OrtValueInfo **inputs;
    size_t count;
    tconv_status status = inputs_of(fused, &inputs, &count, error);
    if (status != TCONV_OK) return status;
    for (int tensor = 0; tensor < TENSORS && status == TCONV_OK; tensor++) {
        kernel->has[tensor] = layer->tensor[tensor] != NULL;
        if (kernel->has[tensor])
            status =
                find_input(inputs, count, layer->tensor[tensor], &kernel->input[tensor], error);
    }
    struct concat *concat = &kernel->concat;
    concat->parts = layer->parts;
    concat->own = layer->own_part;
    for (size_t i = 0; i < concat->parts && status == TCONV_OK; i++)
        if (i != concat->own)
            status = find_input(inputs, count, layer->part[i], &concat->input[i], error);
    free(inputs);
    return status;
}

/* Converts constants to a type of scales, f32 or f64. */
static tconv_status in_type(const struct numbers *numbers, tconv_type type,
                            struct channel_numbers *out, tconv_error *error)
{
    const bool is_double = type == TCONV_F64;
    out->count = numbers_count(numbers);
    out->value = calloc((size_t)out->count, is_double ? sizeof(double) : sizeof(float));
    if (out->value == NULL)
        return fail(error, TCONV_ERROR_HOST_MEMORY, "no memory for scales and biases");
    for (int64_t i = 0; i < out->count; i++) {
        if (is_double)
            ((double *)out->value)[i] = numbers_at(numbers, i);
        else
            ((float *)out->value)[i] = (float)numbers_at(numbers, i);
    }
    return TCONV_OK;
}

static tconv_status keep_constants(struct kernel *kernel, const struct node_layer *layer,
                                   tconv_error *error)
{
    const tconv_type type = tconv_scale_type(layer->request.problem.data_type);
    const tconv_epilogue *epilogue = &layer->request.epilogue;
    tconv_status status = TCONV_OK;
    kernel->scale.count = kernel->bias.count = 1;
    if (!layer->folded) return TCONV_OK;
    if (epilogue->scale) status = in_type(&layer->scale, type, &kernel->scale, error);
    if (epilogue->bias && status == TCONV_OK)
        status = in_type(&layer->bias, type, &kernel->bias, error);
    return status;
}

/* Keeps the shapes because of which nodes were fused. */
static tconv_status keep_claims(struct kernel *kernel, const struct node_layer *layer,
                                tconv_error *error)
{
    const OrtValueInfo *const bias = layer->tensor[TENSOR_BIAS];
    const OrtValueInfo *const slope = layer->tensor[TENSOR_SLOPE];
    tconv_type type;
    tconv_status status = TCONV_OK;
    kernel->rank = rank_of(layer);
    kernel->channels = channels_of(layer);
    kernel->claimed[TENSOR_DATA] = layer->fixed;
    if (layer->request.epilogue.requantize) /* sums of more terms could exceed 32 bits */
        kernel->claimed[TENSOR_FILTER] = layer->filter;
    if (bias != NULL && bias == input_of(layer->convolution, TENSOR_BIAS))
        kernel->claimed[TENSOR_BIAS] = (tconv_shape){1, {-1}};
    else if (bias != NULL)
        status = tensor_of(bias, &kernel->claimed[TENSOR_BIAS], &type, error);
    if (status == TCONV_OK && slope != NULL)
        status = tensor_of(slope, &kernel->claimed[TENSOR_SLOPE], &type, error);
    return status;
}

void kernel_release(OrtNodeComputeInfo *info)
{
    struct kernel *kernel = (struct kernel *)(void *)info;
    if (kernel == NULL) return;
    layer_release(kernel->layer);
    unfused_release(kernel->unfused);
    free(kernel->scale.value);
    free(kernel->bias.value);
    free(kernel);
}

tconv_status kernel_create(const struct provider *provider, const struct node_layer *layer,
                           const OrtGraph *graph, const OrtNode *fused, const char *name,
                           OrtNodeComputeInfo **out, tconv_error *error)
{
    struct kernel *kernel = calloc(1, sizeof *kernel);
    if (kernel == NULL) return fail(error, TCONV_ERROR_HOST_MEMORY, "no memory for a kernel");
    kernel->base.ort_version_supported = ORT_VERSION;
    kernel->base.CreateState = kernel_create_state;
    kernel->base.Compute = kernel_compute;
    kernel->base.ReleaseState = kernel_release_state;
    kernel->request = layer->request;
    kernel->strict = provider->strict;
    snprintf(kernel->name, sizeof kernel->name, "%s", name);
    tconv_status status = find_inputs(kernel, layer, fused, error);
    if (status == TCONV_OK) status = keep_constants(kernel, layer, error);
    if (status == TCONV_OK) status = keep_claims(kernel, layer, error);
    if (status == TCONV_OK && layer->count > 1)
        status = unfused_create(provider, layer, graph, fused, &kernel->unfused, error);
    if (status == TCONV_OK)
        status = layer_create(provider->opened, &layer->request, &kernel->layer, error);
    if (status == TCONV_OK)
        *out = &kernel->base;
    else
        kernel_release(&kernel->base);
    return status;
}
