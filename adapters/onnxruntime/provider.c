/* SPDX-License-Identifier: Apache-2.0 */
/* The execution provider: the functions that ONNX Runtime calls. It has a factory of providers, a
 * provider for each session, and the layers that a provider computes. */
#include "concat.h"
#include "fuse.h"
#include "log.h"
#include "quantize.h"

#include <ctype.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct ort ort;

struct factory {
    OrtEpFactory base;
    char name[64]; /* the name under which the library was registered */
};

struct provider {
    OrtEp base;
    const struct factory *factory;
    const OrtLogger *logger; /* the session's */
    tconv_session *host;     /* NULL: there is no device */
    tconv_error refusal;     /* with `strict`, why there is no device: compile returns it */
    bool strict; /* a failure is an error of the session; no other provider computes instead */
    tconv_search search; /* how algorithms are chosen */
    uint64_t least_macs; /* multiply-adds: nodes with fewer are left to others */
    bool fuse_concat;    /* layers write into concatenated outputs */
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
    void *scale,
        *bias; /* constants for each channel, in the type of scales; NULL: the layer has none */
    atomic_flag told;
};

/* Makes the status of an error. After ORT_EP_FAIL, ONNX Runtime's Python makes the session again
 * without this provider. So ORT_EP_FAIL is not used for a wrong request, which other providers
 * would also refuse, nor in a forked child, where releasing the old session would wait for threads
 * that do not exist. */
static OrtStatus *status_of(const char *name, const tconv_error *error, bool strict)
{
    char line[1200];
    snprintf(line, sizeof line, "tconv_cl: %s: %s", name, error->message);
    return ort.CreateStatus(tconv_status_is_request(error->status)          ? ORT_INVALID_ARGUMENT
                            : strict || error->status == TCONV_ERROR_FORKED ? ORT_FAIL
                                                                            : ORT_EP_FAIL,
                            line);
}

/* ---- a layer that runs ---- */

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

/* ---- a session's provider ---- */

static const char *provider_name(const OrtEp *ep)
{
    return ((const struct provider *)(const void *)ep)->factory->name;
}

static const char *name_of(const OrtNode *node)
{
    const char *name = "";
    succeeded(ort.Node_GetName(node, &name), NULL);
    return name;
}

/* Reads all nodes of a graph. The caller frees the list. */
static bool nodes_of(const OrtGraph *graph, const OrtNode ***out, size_t *count, tconv_error *error)
{
    if (!succeeded(ort.Graph_GetNumNodes(graph, count), error)) return false;
    const OrtNode **nodes = calloc(*count + 1, sizeof *nodes);
    if (nodes == NULL) {
        fail(error, TCONV_ERROR_HOST_MEMORY, "no memory for %zu nodes", *count);
        return false;
    }
    if (!succeeded(ort.Graph_GetNodes(graph, nodes, *count), error)) {
        free(nodes);
        return false;
    }
    *out = nodes;
    return true;
}

static bool is_extent_known(const tconv_shape *shape, int axis)
{
    return shape->rank != 0 && shape->dim[axis] >= 0;
}

/* Replaces the unknown extents of `known` by likely ones, for a try. */
static tconv_shape guess(const tconv_shape *known, int rank, int64_t batch, int64_t channels,
                         int64_t extent, const tconv_list *kernel)
{
    tconv_shape shape = {rank, {0}};
    for (int i = 0; i < rank; i++) {
        shape.dim[i] = i == 0 ? batch : i == 1 ? channels : extent;
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

/* True if the shapes are known and the layer has too few multiply-adds for a launch. */
static bool is_small(const struct provider *provider, const struct node_layer *layer)
{
    tconv_problem problem;
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    tconv_error error;
    return is_known(&layer->data) && is_known(&layer->filter) &&
           layer_resolve(&layer->request, &layer->data, &layer->filter, &problem, &geometry,
                         &error) == TCONV_OK &&
           geometry.macs < provider->least_macs;
}

/* Checks that the device can compute the layer, by making a plan, which compiles kernels. Unknown
 * extents are invented; therefore algorithms are not timed. */
static tconv_status try_plan(const struct provider *provider, const struct node_layer *layer,
                             tconv_error *error)
{
    enum { EXTENT = 64, KERNEL = 3 };
    const struct layer_request *request = &layer->request;
    const int rank = rank_of(layer);
    const int64_t groups = request->problem.groups;
    int64_t channels = groups;
    if (layer->data.rank == rank && layer->data.dim[1] >= 0) channels = layer->data.dim[1];
    if (layer->filter.rank == rank && layer->filter.dim[0] >= 0) channels = layer->filter.dim[0];
    if (layer->filter.rank != 0 && layer->filter.rank != rank)
        return fail(error, TCONV_ERROR_SHAPE, "data has rank %d, the filter %d", rank,
                    layer->filter.rank);
    tconv_shape data = guess(&layer->data, rank, 1, channels, EXTENT, NULL);
    tconv_shape filter = guess(&layer->filter, rank, channels, 1, KERNEL, &request->kernel);
    outgrow_pads(layer, &data, &filter);
    tconv_problem problem;
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    tconv_status status = layer_resolve(request, &data, &filter, &problem, &geometry, error);
    if (status != TCONV_OK) return status;
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.epilogue = request->epilogue;
    options.search = provider->search == TCONV_SEARCH_MODEL ? TCONV_SEARCH_MODEL
                                                            : TCONV_SEARCH_RECORDS;
    tconv_plan *plan;
    log_begin(NULL, provider->logger);
    status =
        tconv_plan_create(tconv_session_device(provider->host), &problem, &options, &plan, error);
    log_end();
    if (status == TCONV_OK) tconv_plan_release(plan);
    return status;
}

static OrtStatus *get_capability(OrtEp *ep, const OrtGraph *graph, OrtEpGraphSupportInfo *info)
{
    const struct provider *provider = (const struct provider *)(void *)ep;
    if (provider->host == NULL && !provider->strict)
        return NULL; /* the log said so when the session began */
    const OrtNode **nodes;
    size_t count;
    tconv_error error;
    if (!nodes_of(graph, &nodes, &count, &error))
        return status_of("a graph", &error, provider->strict);
    struct taken taken = {provider->factory->name, calloc(count + 1, sizeof(OrtNode *)), 0};
    OrtStatus *status = NULL;
    if (taken.node == NULL) status = ort.CreateStatus(ORT_EP_FAIL, "tconv_cl: there is no memory");
    for (size_t i = 0; i < count && status == NULL; i++) {
        struct node_layer layer = {0}, bytes;
        if (!is_conv_transpose(nodes[i]) || !is_free(nodes[i], &taken)) continue;
        const bool known = provider->host != NULL &&
                           node_read(nodes[i], &layer, &error) == TCONV_OK;
        if (known && is_small(provider, &layer)) {
            node_release(&layer);
            continue;
        }
        if (known) {
            fuse_followers(&layer, MOST_NODES, &taken);
            if (quantize(&layer, MOST_NODES, &taken, &bytes)) {
                const bool possible = try_plan(provider, &bytes, &error) == TCONV_OK;
                node_release(possible ? &layer : &bytes);
                if (possible) layer = bytes;
            }
            if (provider->fuse_concat) fuse_concat(&layer, MOST_NODES, &taken);
        }
        if (known && (provider->strict || try_plan(provider, &layer, &error) == TCONV_OK)) {
            status = ort.EpGraphSupportInfo_AddNodesToFuse(info, layer.node, layer.count, NULL);
            for (size_t k = 0; k < layer.count; k++) taken.node[taken.count++] = layer.node[k];
        } else if (provider->strict) { /* compile finds the error, which makes the session fail;
                                          here it would only be logged */
            status = ort.EpGraphSupportInfo_AddNodesToFuse(info, &nodes[i], 1, NULL);
        } else {
            log_warning(
                provider->logger,
                "tconv_cl: another provider, ONNX Runtime's own, computes ConvTranspose \"%s\": "
                "%s",
                name_of(nodes[i]), error.message);
            tconv_device_trace_fallback(tconv_session_device(provider->host), "ONNX Runtime",
                                        name_of(nodes[i]), error.message);
        }
        node_release(&layer);
    }
    free(taken.node);
    free(nodes);
    return status;
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

static void release_kernel(struct kernel *kernel)
{
    if (kernel == NULL) return;
    layer_release(kernel->layer);
    free(kernel->scale);
    free(kernel->bias);
    free(kernel);
}

static tconv_status make_kernel(const struct provider *provider, const OrtGraph *graph,
                                const OrtNode *fused, struct kernel **out, tconv_error *error)
{
    const OrtNode **nodes;
    size_t count;
    if (!nodes_of(graph, &nodes, &count, error)) return error->status;
    size_t first = 0;
    while (first < count && !is_conv_transpose(nodes[first])) first++;
    struct node_layer layer = {0};
    struct kernel *kernel = calloc(1, sizeof *kernel);
    tconv_status status = TCONV_OK;
    if (kernel == NULL)
        status = fail(error, TCONV_ERROR_HOST_MEMORY, "no memory for a kernel");
    else if (first == count)
        status = fail(error, TCONV_ERROR_INTERNAL, "there is no ConvTranspose to compile");
    else
        status = node_read(nodes[first], &layer, error);
    if (status == TCONV_OK) {
        const struct taken taken = {provider->factory->name, NULL, 0};
        fuse_followers(&layer, count, &taken);
        fuse_concat(&layer, count, &taken);
        struct node_layer bytes;
        /* If these were all nodes, ONNX Runtime would log that the data have no producer. */
        if (layer.count != count && quantize(&layer, count, &taken, &bytes)) {
            node_release(&layer);
            layer = bytes;
            fuse_concat(&layer, count, &taken);
        }
        if (layer.count != count)
            status =
                fail(error, TCONV_ERROR_INTERNAL, "%zu of %zu nodes are known", layer.count, count);
    }
    if (status == TCONV_OK && provider->strict) status = try_plan(provider, &layer, error);
    if (status == TCONV_OK) status = find_inputs(kernel, &layer, fused, error);
    if (status == TCONV_OK) status = keep_constants(kernel, &layer, error);
    layer.request.search = provider->search;
    if (status == TCONV_OK)
        status = layer_create(provider->host, &layer.request, &kernel->layer, error);
    if (status == TCONV_OK) {
        snprintf(kernel->name, sizeof kernel->name, "ConvTranspose \"%s\"", name_of(nodes[first]));
        kernel->request = layer.request;
        kernel->strict = provider->strict;
        kernel->base.ort_version_supported = ORT_VERSION;
        kernel->base.CreateState = kernel_create_state;
        kernel->base.Compute = kernel_compute;
        kernel->base.ReleaseState = kernel_release_state;
        *out = kernel;
    } else {
        const tconv_error reason = *error;
        snprintf(error->message, sizeof error->message, "ConvTranspose \"%s\": %.900s",
                 first < count ? name_of(nodes[first]) : "", reason.message);
        release_kernel(kernel);
    }
    node_release(&layer);
    free(nodes);
    return status;
}

static void release_kernels(OrtEp *ep, OrtNodeComputeInfo **infos, size_t count)
{
    (void)ep;
    for (size_t i = 0; i < count; i++) {
        release_kernel((struct kernel *)(void *)infos[i]);
        infos[i] = NULL;
    }
}

static OrtStatus *compile(OrtEp *ep, const OrtGraph **graphs, const OrtNode **fused_nodes,
                          size_t count, OrtNodeComputeInfo **out, OrtNode **ep_context_nodes)
{
    (void)ep_context_nodes;
    const struct provider *provider = (const struct provider *)(void *)ep;
    if (provider->host == NULL)
        return status_of("the session is not made", &provider->refusal, true);
    for (size_t i = 0; i < count; i++) {
        struct kernel *kernel = NULL;
        tconv_error error;
        if (make_kernel(provider, graphs[i], fused_nodes[i], &kernel, &error) != TCONV_OK) {
            release_kernels(ep, out, i);
            return status_of("compiling", &error, provider->strict);
        }
        out[i] = &kernel->base;
    }
    return NULL;
}

/* ---- the factory ---- */

static const char *factory_name(const OrtEpFactory *factory)
{
    return ((const struct factory *)(const void *)factory)->name;
}

static const char *factory_vendor(const OrtEpFactory *factory)
{
    (void)factory;
    return "tconv-cl";
}

static uint32_t factory_vendor_id(const OrtEpFactory *factory)
{
    (void)factory;
    return 0; /* 0: it is not a vendor of hardware */
}

static const char *factory_version(const OrtEpFactory *factory)
{
    (void)factory;
    return TCONV_VERSION_STRING;
}

/* All tensors are in host memory: NULL is ONNX Runtime's own allocator, and nothing is
 * transferred. */
static OrtStatus *create_allocator(OrtEpFactory *factory, const OrtMemoryInfo *info,
                                   const OrtKeyValuePairs *options, OrtAllocator **out)
{
    (void)factory;
    (void)info;
    (void)options;
    *out = NULL;
    return NULL;
}

static void release_allocator(OrtEpFactory *factory, OrtAllocator *allocator)
{
    (void)factory;
    (void)allocator;
}

static OrtStatus *create_data_transfer(OrtEpFactory *factory, OrtDataTransferImpl **out)
{
    (void)factory;
    *out = NULL;
    return NULL;
}

static bool is_stream_aware(const OrtEpFactory *factory)
{
    (void)factory;
    return false;
}

/* The provider belongs to the processor, whichever OpenCL device computes, because tensors stay in
 * host memory. */
static OrtStatus *get_supported_devices(OrtEpFactory *factory,
                                        const OrtHardwareDevice *const *devices,
                                        size_t device_count, OrtEpDevice **out, size_t most,
                                        size_t *count)
{
    *count = 0;
    for (size_t i = 0; i < device_count && *count == 0 && most > 0; i++)
        if (ort.HardwareDevice_Type(devices[i]) == OrtHardwareDeviceType_CPU) {
            OrtStatus *status = ort.CreateEpDevice(factory, devices[i], NULL, NULL, &out[0]);
            if (status != NULL) return status;
            *count = 1;
        }
    return NULL;
}

/* Reads one of the provider's options; "" if it is not given. */
static tconv_status read_option(const char *provider, const OrtSessionOptions *options,
                                const char *name, char *value, size_t size, tconv_error *error)
{
    char key[96];
    int there = 0;
    size_t length = (size_t)snprintf(key, sizeof key, "ep.%s.%s", provider, name);
    for (size_t i = 0; i < length && i < sizeof key; i++)
        key[i] = (char)tolower((unsigned char)key[i]);
    value[0] = '\0';
    if (!succeeded(ort.HasSessionConfigEntry(options, key, &there), error)) return error->status;
    if (there && !succeeded(ort.GetSessionConfigEntry(options, key, value, &size), error))
        return error->status;
    return TCONV_OK;
}

/* Reads the options and opens the device. If there is no device and none was asked for, the
 * provider takes no nodes. */
static tconv_status start(struct provider *provider, const OrtSessionOptions *options,
                          tconv_error *error)
{
    const char *name = provider->factory->name;
    /* No device has a name longer than 255 characters. */
    char device[256], fallback[16], search[16], macs[24], concat[4];
    provider->strict = true; /* until the option says otherwise */
    if (read_option(name, options, "fallback", fallback, sizeof fallback, error) != TCONV_OK)
        return error->status;
    if (fallback[0] != '\0' && strcmp(fallback, "warn") != 0 && strcmp(fallback, "error") != 0)
        return fail(error, TCONV_ERROR_ARGUMENT,
                    "fallback is \"%s\": it must be \"warn\" or \"error\"", fallback);
    provider->strict = strcmp(fallback, "error") == 0;
    if (read_option(name, options, "device", device, sizeof device, error) != TCONV_OK ||
        read_option(name, options, "search", search, sizeof search, error) != TCONV_OK ||
        read_option(name, options, "least_macs", macs, sizeof macs, error) != TCONV_OK ||
        read_option(name, options, "fuse_concat", concat, sizeof concat, error) != TCONV_OK)
        return error->status;
    provider->search = TCONV_SEARCH_DEFAULT;
    if (search[0] != '\0' && !tconv_search_from_name(search, &provider->search))
        return fail(error, TCONV_ERROR_ARGUMENT,
                    "search is \"%s\": it must be \"model\", \"records\", \"measure\" or "
                    "\"renew\"",
                    search);
    provider->least_macs = strtoull(macs, NULL, 10);
    if (macs[strspn(macs, "0123456789")] != '\0')
        return fail(error, TCONV_ERROR_ARGUMENT,
                    "least_macs is \"%s\": it must be a number of multiply-adds", macs);
    provider->fuse_concat = strcmp(concat, "0") != 0;
    if (concat[0] != '\0' && strcmp(concat, "0") != 0 && strcmp(concat, "1") != 0)
        return fail(error, TCONV_ERROR_ARGUMENT, "fuse_concat is \"%s\": it must be \"0\" or \"1\"",
                    concat);
    const tconv_status status = device_open(device, &provider->host, error);
    if (macs[0] == '\0' && !provider->strict)
        provider->least_macs = tconv_session_least_macs(provider->host);
    if (status == TCONV_OK || provider->strict || device[0] != '\0' ||
        tconv_status_is_request(status))
        return status;
    log_warning(provider->logger, "tconv_cl: other providers, ONNX Runtime's own, compute all: %s",
                error->message);
    return TCONV_OK;
}

static OrtStatus *create_provider(OrtEpFactory *factory, const OrtHardwareDevice *const *devices,
                                  const OrtKeyValuePairs *const *metadata, size_t device_count,
                                  const OrtSessionOptions *options, const OrtLogger *logger,
                                  OrtEp **out)
{
    (void)devices;
    (void)metadata;
    (void)device_count;
    struct provider *provider = calloc(1, sizeof *provider);
    if (provider == NULL) return ort.CreateStatus(ORT_EP_FAIL, "tconv_cl: there is no memory");
    provider->factory = (const struct factory *)(void *)factory;
    provider->logger = logger;
    provider->base.ort_version_supported = ORT_VERSION;
    provider->base.GetName = provider_name;
    provider->base.GetCapability = get_capability;
    provider->base.Compile = compile;
    provider->base.ReleaseNodeComputeInfos = release_kernels;
    /* If a provider fails here, ONNX Runtime's Python makes the session again without it, but not
     * if compile fails. So with `strict`, compile returns the error. */
    if (start(provider, options, &provider->refusal) != TCONV_OK && !provider->strict) {
        char line[1200];
        snprintf(line, sizeof line, "tconv_cl: %s", provider->refusal.message);
        free(provider);
        return ort.CreateStatus(ORT_INVALID_ARGUMENT, line);
    }
    *out = &provider->base;
    return NULL;
}

static void release_provider(OrtEpFactory *factory, OrtEp *ep)
{
    (void)factory;
    free(ep);
}

static bool ort_load(const OrtApiBase *base)
{
    const OrtApi *api = base->GetApi(ORT_VERSION);
    if (api == NULL) return false;
    struct ort loaded;
#define LOAD(place, result, name, arguments)                                                       \
    memcpy(&loaded.name, (const unsigned char *)table + (place) * sizeof(void *),                  \
           sizeof loaded.name);
    const void *table = api;
    ORT_API_ENTRIES(LOAD)
    table = loaded.GetEpApi();
    ORT_EP_API_ENTRIES(LOAD)
#undef LOAD
    /* Sessions may run while the library is registered again. */
    if (memcmp(&ort, &loaded, sizeof ort) != 0) ort = loaded;
    return true;
}

EXPORT OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base,
                                    const OrtLogger *logger, OrtEpFactory **out, size_t most,
                                    size_t *count);
EXPORT OrtStatus *ReleaseEpFactory(OrtEpFactory *factory);
EXPORT tconv_status tconv_cl_onnxruntime_open(const char *device, tconv_error *error);
EXPORT tconv_status tconv_cl_onnxruntime_trace(uint32_t kinds, tconv_trace_callback callback,
                                               void *context, tconv_error *error);
EXPORT const char *tconv_cl_onnxruntime_device_name(const tconv_device *device);
EXPORT void tconv_cl_onnxruntime_statistics(uint64_t *out, size_t count);

EXPORT OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base,
                                    const OrtLogger *logger, OrtEpFactory **out, size_t most,
                                    size_t *count)
{
    (void)logger;
    *count = 0;
    if (!ort_load(base)) { /* no function can report the error yet */
        fprintf(stderr, "tconv_cl: ONNX Runtime is %s: it must be 1.24 or later\n",
                base->GetVersionString());
        return NULL;
    }
    struct factory *factory = calloc(1, sizeof *factory);
    if (factory == NULL || most < 1 || strlen(name) >= sizeof factory->name) {
        free(factory);
        return ort.CreateStatus(ORT_EP_FAIL, "tconv_cl: no memory, or too long a name");
    }
    strcpy(factory->name, name);
    factory->base.ort_version_supported = ORT_VERSION;
    factory->base.GetName = factory_name;
    factory->base.GetVendor = factory_vendor;
    factory->base.GetVendorId = factory_vendor_id;
    factory->base.GetVersion = factory_version;
    factory->base.GetSupportedDevices = get_supported_devices;
    factory->base.CreateEp = create_provider;
    factory->base.ReleaseEp = release_provider;
    factory->base.CreateAllocator = create_allocator;
    factory->base.ReleaseAllocator = release_allocator;
    factory->base.CreateDataTransfer = create_data_transfer;
    factory->base.IsStreamAware = is_stream_aware;
    out[0] = &factory->base;
    *count = 1;
    return NULL;
}

EXPORT OrtStatus *ReleaseEpFactory(OrtEpFactory *factory)
{
    free(factory);
    return NULL;
}

/* Opens a device as a session with the option `device` does, which also reads the environment. For
 * callers who want its error before they make a session. */
EXPORT tconv_status tconv_cl_onnxruntime_open(const char *device, tconv_error *error)
{
    tconv_session *host;
    return device_open(device, &host, error);
}

/* tconv_device_set_trace for all devices that sessions have opened and will open. Meanwhile
 * ONNX Runtime's log gets no plans; with NULL it does again. One thread at a time, and not from a
 * callback. */
EXPORT tconv_status tconv_cl_onnxruntime_trace(uint32_t kinds, tconv_trace_callback callback,
                                               void *context, tconv_error *error)
{
    return device_trace(kinds, callback, context, error);
}

/* The name of an event's device. */
EXPORT const char *tconv_cl_onnxruntime_device_name(const tconv_device *device)
{
    return tconv_device_properties(device)->name;
}

/* Writes the first `count` of these counts: layers computed, those of them in slabs, plans made,
 * filters packed. */
EXPORT void tconv_cl_onnxruntime_statistics(uint64_t *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = i < LAYER_COUNTS ? layer_statistics((enum layer_count)i) : 0;
}
