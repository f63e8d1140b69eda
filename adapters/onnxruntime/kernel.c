/* SPDX-License-Identifier: Apache-2.0 */
/* A layer that a provider computes: finds its tensors, reads them, and runs it. */
#include "kernel.h"
#include "concat.h"
#include "log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kernel {
    OrtNodeComputeInfo base;
    struct layer_request request;
    struct layer *layer;
    bool strict;
    char name[128];
    size_t input[TENSORS]; /* index of each of the layer's tensors among the fused node's inputs */
    bool has[TENSORS];
    struct concat concat;
    void *scale,
        *bias; /* constants for each channel, in the type of scales; NULL: the layer has none */
    atomic_flag told;
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

/* Reads bias or slopes: one number for each output channel. */
static tconv_status read_channels(const struct kernel *kernel, const OrtKernelContext *context,
                                  enum tensor tensor, const tconv_geometry *geometry,
                                  const void **data, tconv_error *error)
{
    const int64_t channels = geometry->groups * geometry->group_out_channels;
    tconv_shape shape;
    if (!kernel->has[tensor]) return TCONV_OK;
    const tconv_status status = read_input(kernel, context, tensor, &shape, data, error);
    if (status != TCONV_OK) return status;
    int64_t count = 1;
    for (int i = 0; i < shape.rank; i++)
        if (shape.dim[i] != 1) count = count == 1 ? shape.dim[i] : -1;
    if (count != channels)
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

static tconv_status compute(struct kernel *kernel, OrtKernelContext *context, tconv_error *error)
{
    tconv_arrays arrays = TCONV_ARRAYS_INIT;
    tconv_problem problem;
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    tconv_shape data, filter;
    tconv_status status = read_input(kernel, context, TENSOR_DATA, &data, &arrays.data, error);
    if (status == TCONV_OK)
        status = read_input(kernel, context, TENSOR_FILTER, &filter, &arrays.filter, error);
    if (status == TCONV_OK)
        status = layer_resolve(&kernel->request, &data, &filter, &problem, &geometry, error);
    arrays.scale = kernel->scale;
    arrays.bias = kernel->bias;
    if (status == TCONV_OK)
        status = read_channels(kernel, context, TENSOR_BIAS, &geometry, &arrays.bias, error);
    if (status == TCONV_OK)
        status = read_channels(kernel, context, TENSOR_SLOPE, &geometry, &arrays.slope, error);
    if (status == TCONV_OK)
        status = read_residual(kernel, context, &geometry, &arrays.residual, error);
    struct whole whole;
    if (status == TCONV_OK) status = whole_of(&kernel->concat, context, &geometry, &whole, error);
    if (status != TCONV_OK) return status;

    OrtValue *value;
    void *output;
    if (!succeeded(ort.KernelContext_GetOutput(context, 0, whole.shape.dim,
                                               (size_t)whole.shape.rank, &value),
                   error) ||
        !succeeded(ort.GetTensorMutableData(value, &output), error))
        return error->status;
    arrays.output = (unsigned char *)output + whole.own_begin;
    problem.output_steps = whole.steps;
    tconv_error in_slabs = {TCONV_OK, 0, ""};
    status = layer_run(kernel->layer, context, &problem, geometry.macs, &arrays, &in_slabs, error);
    if (status == TCONV_OK && in_slabs.status != TCONV_OK &&
        !atomic_flag_test_and_set(&kernel->told))
        log_warning(log_of(context), "tconv_cl: %s is computed in slabs: %s", kernel->name,
                    in_slabs.message);
    return status == TCONV_OK ? copy_parts(&whole, context, output, error) : status;
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
    const char *wanted, *name;
    if (!succeeded(ort.GetValueInfoName(tensor, &wanted), error)) return error->status;
    for (*out = 0; *out < count; ++*out)
        if (inputs[*out] != NULL && succeeded(ort.GetValueInfoName(inputs[*out], &name), NULL) &&
            strcmp(name, wanted) == 0)
            return TCONV_OK;
    return fail(error, TCONV_ERROR_INTERNAL, "input %s is missing", wanted);
}

/* Finds all tensors of the layer. */
static tconv_status find_inputs(struct kernel *kernel, const struct node_layer *layer,
                                const OrtNode *fused, tconv_error *error)
{
    enum { MOST = 64 };
    const OrtValueInfo *inputs[MOST];
    size_t count;
    if (!succeeded(ort.Node_GetNumInputs(fused, &count), error)) return error->status;
    if (count > MOST) return fail(error, TCONV_ERROR_INTERNAL, "there are %zu inputs", count);
    if (!succeeded(ort.Node_GetInputs(fused, inputs, count), error)) return error->status;
    tconv_status status = TCONV_OK;
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
    return status;
}

/* Converts numbers for each channel to a type of scales, f32 or f64. The caller frees them. */
static void *in_type(const double *values, int64_t count, tconv_type type)
{
    const bool is_double = type == TCONV_F64;
    void *out = calloc((size_t)count, is_double ? sizeof(double) : sizeof(float));
    for (int64_t i = 0; out != NULL && i < count; i++) {
        if (is_double)
            ((double *)out)[i] = values[i];
        else
            ((float *)out)[i] = (float)values[i];
    }
    return out;
}

static tconv_status keep_constants(struct kernel *kernel, const struct node_layer *layer,
                                   tconv_error *error)
{
    const tconv_type type = tconv_scale_type(layer->request.problem.data_type);
    const tconv_epilogue *epilogue = &layer->request.epilogue;
    if (layer->channels == 0) return TCONV_OK;
    if (epilogue->scale) kernel->scale = in_type(layer->scale, layer->channels, type);
    if (epilogue->bias) kernel->bias = in_type(layer->bias, layer->channels, type);
    if ((epilogue->scale && kernel->scale == NULL) || (epilogue->bias && kernel->bias == NULL))
        return fail(error, TCONV_ERROR_HOST_MEMORY, "no memory for scales and biases");
    return TCONV_OK;
}

void kernel_release(OrtNodeComputeInfo *info)
{
    struct kernel *kernel = (struct kernel *)(void *)info;
    if (kernel == NULL) return;
    layer_release(kernel->layer);
    free(kernel->scale);
    free(kernel->bias);
    free(kernel);
}

tconv_status kernel_create(tconv_session *host, const struct node_layer *layer,
                           const OrtNode *fused, const char *name, bool strict,
                           OrtNodeComputeInfo **out, tconv_error *error)
{
    struct kernel *kernel = calloc(1, sizeof *kernel);
    if (kernel == NULL) return fail(error, TCONV_ERROR_HOST_MEMORY, "no memory for a kernel");
    kernel->base.ort_version_supported = ORT_VERSION;
    kernel->base.CreateState = kernel_create_state;
    kernel->base.Compute = kernel_compute;
    kernel->base.ReleaseState = kernel_release_state;
    kernel->request = layer->request;
    kernel->strict = strict;
    snprintf(kernel->name, sizeof kernel->name, "%s", name);
    tconv_status status = find_inputs(kernel, layer, fused, error);
    if (status == TCONV_OK) status = keep_constants(kernel, layer, error);
    if (status == TCONV_OK) status = layer_create(host, &layer->request, &kernel->layer, error);
    if (status == TCONV_OK)
        *out = &kernel->base;
    else
        kernel_release(&kernel->base);
    return status;
}
