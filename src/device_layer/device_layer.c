/* SPDX-License-Identifier: Apache-2.0 */
/* Layers on the device: a plan, weights, and a workspace of the device's pool for each execution.
 * Weights never change: new ones take their place, while executions that were enqueued before
 * still read the old ones. */
#include "tconv_cl/device_layer.h"

#include "base/cancel.h"
#include "base/epilogue.h"
#include "base/error.h"
#include "base/process.h"
#include "base/struct_size.h"
#include "device/device.h"
#include "device/events.h"
#include "device/workspace.h"
#include "plan/place.h"
#include "plan/renew.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The caller's tensors: vectors with one number for each output channel, then the filter. */
enum {
    BIAS = TCONV_EPILOGUE_BIAS,
    SCALE = TCONV_EPILOGUE_SCALE,
    SLOPE = TCONV_EPILOGUE_SLOPE,
    VECTORS = TCONV_EPILOGUE_RESIDUAL, /* the first that is no vector */
    FILTER = VECTORS,
    SOURCES
};

/* Weights are shared by layers, and by the calls that enqueue executions with them. */
struct weights {
    atomic_int owners;
    tconv_packed_filter *filter;
    tconv_tensor vector[VECTORS]; /* each buffer retained */
    tconv_type type[VECTORS];
    uint64_t bytes;
    cl_event packed;   /* the end of the packing; NULL until it is enqueued */
    atomic_bool ready; /* `packed` need not be waited for any more */
};

/* A plan that another one has replaced. It stays as long as the layer, because the application may
 * have asked for it. */
struct former {
    struct former *next;
    tconv_plan *plan;
};

struct tconv_device_layer {
    tconv_device *device;
    tconv_epilogue epilogue;
    tconv_type type[SOURCES]; /* also of absent ones */
    pthread_mutex_t mutex;    /* guards the members below */
    tconv_plan *plan;
    struct weights *weights; /* packed for the plan */
    bool renewed; /* a call has set out to replace the plan because it is stale; only one does */
    struct former *former;
};

/* What one call uses of a layer: a plan, and weights that are packed for it. */
struct use {
    tconv_plan *plan;
    struct weights *weights;
};

static void drop_weights(struct weights *w)
{
    if (w == NULL || atomic_fetch_sub(&w->owners, 1) > 1) return;
    tconv_packed_filter_release(w->filter);
    for (int i = 0; i < VECTORS; i++)
        if (w->vector[i].memory != NULL) clReleaseMemObject(w->vector[i].memory);
    if (w->packed != NULL) clReleaseEvent(w->packed);
    free(w);
}

/* The layer's weights, which stay until drop_weights. */
static struct weights *use_weights(tconv_device_layer *layer)
{
    pthread_mutex_lock(&layer->mutex);
    struct weights *w = layer->weights;
    atomic_fetch_add(&w->owners, 1);
    pthread_mutex_unlock(&layer->mutex);
    return w;
}

/* The layer's plan and weights, which stay until end_use. */
static struct use begin_use(tconv_device_layer *layer)
{
    pthread_mutex_lock(&layer->mutex);
    const struct use use = {layer->plan, layer->weights};
    tconv_plan_retain(use.plan);
    atomic_fetch_add(&use.weights->owners, 1);
    pthread_mutex_unlock(&layer->mutex);
    return use;
}

static void end_use(const struct use *use)
{
    drop_weights(use->weights);
    tconv_plan_release(use->plan);
}

/* The arguments of an execution that are the layer's. */
static tconv_tensors own_args(const struct use *use)
{
    tconv_tensors args = TCONV_TENSORS_INIT;
    args.packed = use->weights->filter;
    args.bias = use->weights->vector[BIAS];
    args.scale = use->weights->vector[SCALE];
    args.slope = use->weights->vector[SLOPE];
    return args;
}

/* ---- weights ---- */

static bool is_given(const tconv_tensor *buffer)
{
    return buffer->memory != NULL || buffer->pointer != NULL;
}

/* One tensor of the caller's structure. */
struct source {
    const char *name;
    const void *array;
    const tconv_tensor *buffer;
};

static void list_sources(const tconv_weights *given, struct source sources[SOURCES])
{
    sources[BIAS] = (struct source){"bias", given->bias, &given->bias_buffer};
    sources[SCALE] = (struct source){"scale", given->scale, &given->scale_buffer};
    sources[SLOPE] = (struct source){"slope", given->slope, &given->slope_buffer};
    sources[FILTER] = (struct source){"filter", given->filter, &given->filter_buffer};
}

static tconv_status check_sources(const tconv_epilogue *epilogue,
                                  const struct source sources[SOURCES], tconv_error *error)
{
    for (int i = 0; i < SOURCES; i++) {
        const struct source *s = &sources[i];
        const bool given = s->array != NULL || is_given(s->buffer);
        if (s->array != NULL && is_given(s->buffer))
            return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                              "weights.%s and weights.%s_buffer are both given: leave one out",
                              s->name, s->name);
        if (i == FILTER && !given)
            return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                              "weights.filter is NULL, and weights.filter_buffer is absent");
        if (i == FILTER) continue;
        const tconv_status status = tconv_epilogue_check_given(
            epilogue, (enum tconv_epilogue_tensor)i, given, "weights", error);
        if (status != TCONV_OK) return status;
    }
    return TCONV_OK;
}

/* Makes a buffer with a copy of a host array, or adds an owner to the caller's buffer. Memory
 * behind a pointer has no owners. */
static tconv_status take_source(const tconv_device_layer *layer, const struct source *source,
                                uint64_t bytes, tconv_tensor *out, tconv_error *error)
{
    cl_int code = CL_SUCCESS;
    tconv_tensor taken = *source->buffer;
    if (source->array == NULL) {
        if (taken.memory != NULL) code = clRetainMemObject(taken.memory);
    } else {
        taken.memory = clCreateBuffer(tconv_device_context(layer->device),
                                      CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, (size_t)bytes,
                                      (void *)(uintptr_t)source->array, &code);
        taken.offset = 0;
    }
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(
            error, code, source->array == NULL ? "clRetainMemObject" : "clCreateBuffer",
            "taking weights.%s of %llu bytes", source->name, (unsigned long long)bytes);
    *out = taken;
    return TCONV_OK;
}

/* Refuses a buffer that cannot be read, a vector before any execution does: later, the weights that
 * it replaced are gone. */
static tconv_status check_source(const tconv_plan *plan, const struct source *source,
                                 uint64_t bytes, tconv_type type, tconv_error *error)
{
    char name[40];
    if (source->array != NULL) return TCONV_OK;
    snprintf(name, sizeof name, "weights.%s_buffer", source->name);
    return tconv_place_check(plan, name, source->buffer, bytes, tconv_type_size(type), error);
}

static tconv_status take_vectors(const tconv_device_layer *layer, const tconv_plan *plan,
                                 const struct source sources[SOURCES], struct weights *w,
                                 tconv_error *error)
{
    const tconv_geometry *g = tconv_plan_geometry(plan);
    const uint64_t channels = (uint64_t)(g->groups * g->group_out_channels);
    tconv_status status = TCONV_OK;
    for (int i = 0; i < VECTORS && status == TCONV_OK; i++) {
        const uint64_t bytes = channels * tconv_type_size(layer->type[i]);
        w->type[i] = layer->type[i];
        if (!tconv_epilogue_has(&layer->epilogue, (enum tconv_epilogue_tensor)i)) continue;
        if ((status = check_source(plan, &sources[i], bytes, w->type[i], error)) == TCONV_OK)
            status = take_source(layer, &sources[i], bytes, &w->vector[i], error);
        if (status == TCONV_OK && sources[i].array != NULL) w->bytes += bytes;
    }
    return status;
}

/* Enqueues the packing of new weights, and flushes the queue: executions on other queues may wait
 * for it. */
static tconv_status pack(const tconv_device_layer *layer, tconv_plan *plan, cl_command_queue queue,
                         const struct source *filter, cl_uint wait_count, const cl_event *wait,
                         struct weights *w, tconv_error *error)
{
    tconv_tensor from = TCONV_TENSOR_INIT;
    tconv_status status = tconv_packed_filter_create(plan, NULL, &w->filter, error);
    if (status != TCONV_OK) return status;
    w->bytes += tconv_plan_filter_bytes(plan);
    const uint64_t bytes = tconv_plan_geometry(plan)->filter_bytes;
    if ((status = check_source(plan, filter, bytes, layer->type[FILTER], error)) != TCONV_OK ||
        (status = take_source(layer, filter, bytes, &from, error)) != TCONV_OK)
        return status;
    status = tconv_packed_filter_enqueue_pack(w->filter, queue, &from, wait_count, wait, &w->packed,
                                              error);
    if (from.memory != NULL) clReleaseMemObject(from.memory);
    if (status != TCONV_OK) return status;
    const cl_int code = clFlush(queue);
    return code == CL_SUCCESS ? TCONV_OK
                              : tconv_fail_opencl(error, code, "clFlush", "packing weights");
}

/* Makes weights for a plan of the layer's. */
static tconv_status make_weights(const tconv_device_layer *layer, tconv_plan *plan,
                                 cl_command_queue queue, const tconv_weights *given,
                                 cl_uint wait_count, const cl_event *wait, struct weights **out,
                                 tconv_error *error)
{
    tconv_weights own = TCONV_WEIGHTS_INIT;
    struct source sources[SOURCES];
    tconv_status status = tconv_struct_read(TCONV_SIZED_WEIGHTS, given, &own, error);
    if (status != TCONV_OK) return status;
    list_sources(&own, sources);
    if ((status = check_sources(&layer->epilogue, sources, error)) != TCONV_OK) return status;
    struct weights *w = calloc(1, sizeof *w);
    if (w == NULL) return tconv_fail_memory(error, sizeof *w, "making the weights of a layer");
    atomic_init(&w->owners, 1);
    atomic_init(&w->ready, false);
    if ((status = take_vectors(layer, plan, sources, w, error)) != TCONV_OK ||
        (status = pack(layer, plan, queue, &sources[FILTER], wait_count, wait, w, error)) !=
            TCONV_OK)
        drop_weights(w);
    else
        *out = w;
    return status;
}

/* ---- layers ---- */

/* Makes a layer without weights. */
static tconv_status make_layer(tconv_device *device, const tconv_problem *problem,
                               const tconv_plan_options *options, tconv_device_layer **out,
                               tconv_error *error)
{
    tconv_plan *plan, *again;
    tconv_status status = tconv_plan_create(device, problem, options, &plan, error);
    if (status != TCONV_OK) return status;
    if (tconv_plan_is_stale(plan) && tconv_plan_renew(plan, &again, NULL) == TCONV_OK) {
        tconv_plan_release(plan);
        plan = again;
    }
    tconv_device_layer *layer = calloc(1, sizeof *layer);
    if (layer == NULL || pthread_mutex_init(&layer->mutex, NULL) != 0) {
        free(layer);
        tconv_plan_release(plan);
        return tconv_fail_memory(error, sizeof *layer, "making a layer");
    }
    tconv_device_retain(device);
    layer->device = device;
    layer->plan = plan;
    layer->epilogue = options->epilogue;
    layer->type[BIAS] = tconv_bias_type(&options->epilogue, tconv_plan_geometry(plan)->output_type);
    layer->type[SCALE] = layer->type[SLOPE] = tconv_scale_type(problem->data_type);
    layer->type[FILTER] = problem->filter_type;
    *out = layer;
    return TCONV_OK;
}

/* Reads the caller's structures. `options` may be NULL. */
static tconv_status read_request(const tconv_problem *given_problem,
                                 const tconv_plan_options *given_options, tconv_problem *problem,
                                 tconv_plan_options *options, tconv_error *error)
{
    if (given_problem == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "problem is NULL");
    *problem = (tconv_problem)TCONV_PROBLEM_INIT;
    *options = (tconv_plan_options)TCONV_PLAN_OPTIONS_INIT;
    const tconv_status status =
        tconv_struct_read(TCONV_SIZED_PROBLEM, given_problem, problem, error);
    if (status != TCONV_OK) return status;
    return tconv_struct_read(TCONV_SIZED_PLAN_OPTIONS, given_options, options, error);
}

tconv_status tconv_device_layer_create(tconv_device *device, cl_command_queue queue,
                                       const tconv_problem *given_problem,
                                       const tconv_plan_options *given_options,
                                       const tconv_weights *weights, tconv_device_layer **out,
                                       tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (device == NULL || weights == NULL || out == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          device == NULL    ? "device"
                          : weights == NULL ? "weights"
                                            : "out");
    tconv_problem problem;
    tconv_plan_options options;
    tconv_device_layer *layer;
    tconv_status status;
    if ((status = tconv_process_enter(error)) != TCONV_OK ||
        (status = read_request(given_problem, given_options, &problem, &options, error)) !=
            TCONV_OK ||
        (status = make_layer(device, &problem, &options, &layer, error)) != TCONV_OK)
        return status;
    if ((status = make_weights(layer, layer->plan, queue, weights, 0, NULL, &layer->weights,
                               error)) == TCONV_OK)
        status = tconv_wait(layer->weights->packed, error);
    if (status != TCONV_OK) {
        tconv_device_layer_release(layer);
        return status;
    }
    atomic_store(&layer->weights->ready, true);
    *out = layer;
    return TCONV_OK;
}

/* Checks that a layer may use weights that were made for another one. */
static tconv_status check_shared(const tconv_device_layer *layer, const struct weights *w,
                                 tconv_error *error)
{
    static const char *const names[VECTORS] = {"bias", "scale", "slope"};
    if (!tconv_packed_filter_fits(w->filter, layer->plan))
        return tconv_fail(error, TCONV_ERROR_MISMATCH,
                          "the filter of layer is packed for other channels, taps, types, zero "
                          "points, axes of extent or kernel 1, or another algorithm than this "
                          "problem and its algorithm %s need: make a layer with weights of its own",
                          tconv_plan_algorithm(layer->plan));
    for (int i = 0; i < VECTORS; i++) {
        const bool has = is_given(&w->vector[i]);
        const bool wanted = tconv_epilogue_has(&layer->epilogue, (enum tconv_epilogue_tensor)i);
        if (has != wanted)
            return tconv_fail(error, TCONV_ERROR_MISMATCH,
                              "layer has %s %s, but options.epilogue says otherwise",
                              has ? "a" : "no", names[i]);
        if (has && w->type[i] != layer->type[i])
            return tconv_fail(error, TCONV_ERROR_MISMATCH,
                              "the %s of layer is of type %s, but this problem needs %s", names[i],
                              tconv_type_name(w->type[i]), tconv_type_name(layer->type[i]));
    }
    return TCONV_OK;
}

/* Makes a layer that reads the packed layout of another one: by its algorithm, with a tile that
 * suits the problem, or with the same tile if that decides about the layout. */
static tconv_status make_alike(tconv_device *device, const struct use *from,
                               const tconv_problem *problem, const tconv_plan_options *given,
                               tconv_device_layer **out, tconv_error *error)
{
    enum { TILE = 200 };
    char algorithm[TILE];
    tconv_plan_options options = *given;
    tconv_error reason;
    options.algorithm = algorithm;
    const int length =
        snprintf(algorithm, sizeof algorithm, "%s", tconv_plan_algorithm(from->plan));
    tconv_status status = make_layer(device, problem, &options, out, &reason);
    if (status == TCONV_OK && !tconv_packed_filter_fits(from->weights->filter, (*out)->plan)) {
        tconv_device_layer_release(*out);
        algorithm[length] = ' ';
        tconv_plan_tile(from->plan, algorithm + length + 1, sizeof algorithm - (size_t)length - 1);
        status = make_layer(device, problem, &options, out, &reason);
    }
    if (status == TCONV_ERROR_ALGORITHM)
        return tconv_fail(error, TCONV_ERROR_MISMATCH,
                          "the filter of layer is packed for its algorithm: %.800s",
                          reason.message);
    return status == TCONV_OK ? TCONV_OK : tconv_fail_with(error, &reason);
}

/* Makes a layer, without weights, that may use those of another one. */
static tconv_status make_sharing(tconv_device *device, const struct use *from,
                                 const tconv_problem *problem, const tconv_plan_options *options,
                                 tconv_device_layer **out, tconv_error *error)
{
    tconv_device_layer *layer;
    tconv_status status = make_layer(device, problem, options, &layer, error);
    if (status != TCONV_OK) return status;
    if (!tconv_packed_filter_fits(from->weights->filter, layer->plan) &&
        (options->algorithm == NULL || strcmp(options->algorithm, "auto") == 0)) {
        tconv_device_layer_release(layer);
        status = make_alike(device, from, problem, options, &layer, error);
        if (status != TCONV_OK) return status;
    }
    if ((status = check_shared(layer, from->weights, error)) != TCONV_OK)
        tconv_device_layer_release(layer);
    else
        *out = layer;
    return status;
}

tconv_status tconv_device_layer_share(tconv_device_layer *from, const tconv_problem *given_problem,
                                      const tconv_plan_options *given_options,
                                      tconv_device_layer **out, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (from == NULL || out == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          from == NULL ? "layer" : "out");
    tconv_problem problem;
    tconv_plan_options options;
    tconv_status status;
    if ((status = tconv_process_enter(error)) != TCONV_OK ||
        (status = read_request(given_problem, given_options, &problem, &options, error)) !=
            TCONV_OK)
        return status;
    const struct use use = begin_use(from);
    tconv_device_layer *layer;
    status = make_sharing(from->device, &use, &problem, &options, &layer, error);
    if (status == TCONV_OK) {
        atomic_fetch_add(&use.weights->owners, 1);
        layer->weights = use.weights;
        *out = layer;
    }
    end_use(&use);
    return status;
}

void tconv_device_layer_release(tconv_device_layer *layer)
{
    TCONV_WITHOUT_CANCELLATION;
    if (layer == NULL || tconv_process_forked()) return;
    drop_weights(layer->weights);
    tconv_plan_release(layer->plan);
    for (struct former *f = layer->former, *next; f != NULL; f = next) {
        next = f->next;
        tconv_plan_release(f->plan);
        free(f);
    }
    tconv_device_release(layer->device);
    pthread_mutex_destroy(&layer->mutex);
    free(layer);
}

/* Makes a new plan of a layer whose plan is stale, with the place in which the old one is kept.
 * False if it is not, or if none can be made. */
static bool renew_plan(tconv_device_layer *layer, tconv_plan **plan, struct former **former)
{
    pthread_mutex_lock(&layer->mutex);
    tconv_plan *stale = layer->renewed || !tconv_plan_is_stale(layer->plan) ? NULL : layer->plan;
    layer->renewed = layer->renewed || stale != NULL;
    pthread_mutex_unlock(&layer->mutex);
    if (stale == NULL) return false; /* else it stays: no other call replaces it */
    *former = malloc(sizeof **former);
    if (*former != NULL && tconv_plan_renew(stale, plan, NULL) == TCONV_OK) return true;
    free(*former);
    return false;
}

/* Gives a layer new weights, and the plan for which they are packed. `former` is NULL if that is
 * the plan which the layer has. */
static void replace(tconv_device_layer *layer, tconv_plan *plan, struct weights *weights,
                    struct former *former)
{
    pthread_mutex_lock(&layer->mutex);
    struct weights *before = layer->weights;
    layer->weights = weights;
    if (former != NULL) {
        *former = (struct former){layer->former, layer->plan};
        layer->former = former;
        layer->plan = plan;
        layer->renewed = false;
    }
    pthread_mutex_unlock(&layer->mutex);
    drop_weights(before);
}

tconv_status tconv_device_layer_set_weights(tconv_device_layer *layer, cl_command_queue queue,
                                            const tconv_weights *weights, cl_uint wait_count,
                                            const cl_event *wait, cl_event *done,
                                            tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (layer == NULL || weights == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          layer == NULL ? "layer" : "weights");
    struct weights *made;
    struct former *former = NULL;
    tconv_status status = tconv_process_enter(error);
    if (status != TCONV_OK) return status;
    struct use use = begin_use(layer);
    tconv_plan *plan = use.plan;
    const bool renewed = renew_plan(layer, &plan, &former);
    status = make_weights(layer, plan, queue, weights, wait_count, wait, &made, error);
    const cl_int code = status != TCONV_OK || done == NULL ? CL_SUCCESS
                                                           : clRetainEvent(made->packed);
    if (code != CL_SUCCESS) {
        drop_weights(made);
        status = tconv_fail_opencl(error, code, "clRetainEvent", "packing weights");
    }
    if (status == TCONV_OK) {
        if (done != NULL) *done = made->packed;
        replace(layer, plan, made, renewed ? former : NULL);
    } else if (renewed) { /* another call may try again */
        pthread_mutex_lock(&layer->mutex);
        layer->renewed = false;
        pthread_mutex_unlock(&layer->mutex);
        tconv_plan_release(plan);
        free(former);
    }
    end_use(&use);
    return status;
}

/* ---- executions ---- */

/* What an execution waits for besides the caller's wait list. */
struct extra {
    cl_uint count;
    cl_event event[2];
};

/* Adds the packing of the weights, if it has not ended. */
static tconv_status wait_for_weights(struct weights *w, struct extra *extra, tconv_error *error)
{
    cl_int state = CL_QUEUED;
    if (atomic_load(&w->ready)) return TCONV_OK;
    const cl_int code = tconv_event_state(w->packed, &state);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clGetEventInfo",
                                 "asking whether the weights are packed");
    if (state < 0)
        return tconv_fail_opencl(error, state, "the command", "packing the weights of the layer");
    if (state == CL_COMPLETE)
        atomic_store(&w->ready, true);
    else
        extra->event[extra->count++] = w->packed;
    return TCONV_OK;
}

/* tconv_plan_enqueue with a longer wait list. */
static tconv_status enqueue_behind(const tconv_plan *plan, cl_command_queue queue,
                                   const tconv_tensors *args, cl_uint wait_count,
                                   const cl_event *wait, const struct extra *extra, cl_event *done,
                                   tconv_error *error)
{
    if (extra->count == 0 || (wait_count == 0) != (wait == NULL)) /* the latter is refused */
        return tconv_plan_enqueue(plan, queue, args, wait_count, wait, done, error);
    const size_t given = wait_count * sizeof *wait, more = extra->count * sizeof *wait;
    cl_event *all = malloc(given + more);
    if (all == NULL) return tconv_fail_memory(error, given + more, "enqueueing a layer");
    if (given != 0) memcpy(all, wait, given);
    memcpy(all + wait_count, extra->event, more);
    const tconv_status status =
        tconv_plan_enqueue(plan, queue, args, wait_count + extra->count, all, done, error);
    free(all);
    return status;
}

/* Enqueues an execution in a workspace of the pool. */
static tconv_status enqueue_pooled(const tconv_device_layer *layer, const tconv_plan *plan,
                                   cl_command_queue queue, tconv_tensors *args, cl_uint wait_count,
                                   const cl_event *wait, struct extra *extra, cl_event *done,
                                   tconv_error *error)
{
    struct tconv_workspace *workspace;
    tconv_status status = tconv_workspace_take(layer->device, tconv_plan_workspace_bytes(plan),
                                               queue, &workspace, error);
    if (status != TCONV_OK) return status;
    args->workspace.memory = workspace->memory;
    if (workspace->waits) extra->event[extra->count++] = workspace->last;
    cl_event end = NULL;
    status = enqueue_behind(plan, queue, args, wait_count, wait, extra, &end, error);
    if (status == TCONV_OK && done != NULL) {
        *done = end;
        if (clRetainEvent(end) != CL_SUCCESS) end = NULL; /* the pool does without this workspace */
    }
    if (tconv_status_is_request(status)) /* nothing was enqueued */
        tconv_workspace_give_back_unused(layer->device, workspace);
    else
        tconv_workspace_give_back(layer->device, workspace, end);
    return status;
}

tconv_status tconv_device_layer_enqueue(tconv_device_layer *layer, cl_command_queue queue,
                                        const tconv_tensor *data, const tconv_tensor *output,
                                        const tconv_tensor *residual, cl_uint wait_count,
                                        const cl_event *wait, cl_event *done, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    const char *missing = layer == NULL    ? "layer"
                          : queue == NULL  ? "queue"
                          : data == NULL   ? "data"
                          : output == NULL ? "output"
                                           : NULL;
    if (missing != NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL", missing);
    tconv_status status = tconv_process_enter(error);
    if (status != TCONV_OK) return status;
    const struct use use = begin_use(layer);
    struct extra extra = {0};
    tconv_tensors args = own_args(&use);
    args.data = *data;
    args.output = *output;
    if (residual != NULL) args.residual = *residual;
    if ((status = wait_for_weights(use.weights, &extra, error)) == TCONV_OK)
        status = tconv_plan_workspace_bytes(use.plan) == 0
                     ? enqueue_behind(use.plan, queue, &args, wait_count, wait, &extra, done, error)
                     : enqueue_pooled(layer, use.plan, queue, &args, wait_count, wait, &extra, done,
                                      error);
    end_use(&use);
    return status;
}

/* ---- questions ---- */

const tconv_plan *tconv_device_layer_plan(const tconv_device_layer *layer)
{
    if (layer == NULL) return NULL;
    tconv_device_layer *inside = (tconv_device_layer *)(uintptr_t)layer; /* for its lock */
    pthread_mutex_lock(&inside->mutex);
    const tconv_plan *plan = layer->plan;
    pthread_mutex_unlock(&inside->mutex);
    return plan;
}

uint64_t tconv_device_layer_bytes(const tconv_device_layer *layer)
{
    TCONV_WITHOUT_CANCELLATION;
    if (layer == NULL) return 0;
    struct weights *w = use_weights((tconv_device_layer *)(uintptr_t)layer); /* for its lock */
    const uint64_t bytes = w->bytes;
    drop_weights(w);
    return bytes;
}
