/* SPDX-License-Identifier: Apache-2.0 */
/* Enqueues runs on the application's queues. An execution waits for the caller's events, for the
 * packing of its filter, and for the last execution in its workspace, which is one of the device's
 * pool. */
#include "layer/layer_internal.h"

#include "base/error.h"
#include "device/device.h"
#include "device/workspace.h"
#include "plan/place.h"

#include <stdlib.h>

tconv_status tconv_layer_find_queue(tconv_layer *layer, cl_command_queue queue,
                                    struct tconv_keep **out, tconv_error *error)
{
    *out = &layer->keep[0];
    if (layer->device_count == 1) return TCONV_OK;
    cl_context context;
    cl_device_id device;
    cl_int code = clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
    if (code == CL_SUCCESS)
        code = clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, NULL);
    for (int i = 0; i < layer->device_count && code == CL_SUCCESS; i++) {
        bool is = false;
        *out = &layer->keep[i];
        if (tconv_device_context((*out)->device) != context) continue;
        code = tconv_device_is_part(device, tconv_device_id((*out)->device), &is);
        if (is) return TCONV_OK;
    }
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clGetCommandQueueInfo",
                                 "reading the device of run.queue");
    return tconv_fail(error, TCONV_ERROR_MISMATCH,
                      "run.queue belongs to none of the layer's %d devices", layer->device_count);
}

/* What an execution waits for besides the caller's wait list. */
struct extra {
    cl_uint count;
    cl_event event[2];
};

/* tconv_plan_enqueue with a longer wait list. */
static tconv_status enqueue_behind(const tconv_plan *plan, const tconv_run *run,
                                   const tconv_tensors *tensors, const struct extra *extra,
                                   cl_event *done, tconv_error *error)
{
    struct tconv_waits waits;
    tconv_status status =
        tconv_waits_join(run->wait_count, run->wait, extra->count, extra->event, &waits, error);
    if (status != TCONV_OK) return status;
    status = tconv_plan_enqueue(plan, run->queue, tensors, waits.count, waits.list, done, error);
    free(waits.own);
    return status;
}

/* Enqueues an execution in a workspace of the pool. */
static tconv_status enqueue_pooled(tconv_device *device, const tconv_plan *plan,
                                   const tconv_run *run, tconv_tensors *tensors,
                                   struct extra *extra, tconv_error *error)
{
    struct tconv_workspace *workspace;
    tconv_status status = tconv_workspace_take(device, tconv_plan_workspace_bytes(plan), run->queue,
                                               &workspace, error);
    if (status != TCONV_OK) return status;
    tensors->workspace.memory = workspace->memory;
    if (workspace->waits) extra->event[extra->count++] = workspace->last;
    cl_event end = NULL;
    status = enqueue_behind(plan, run, tensors, extra, &end, error);
    if (status == TCONV_OK && run->done != NULL) {
        *run->done = end;
        if (clRetainEvent(end) != CL_SUCCESS) end = NULL; /* the pool does without this workspace */
    }
    if (tconv_status_is_request(status)) /* nothing was enqueued */
        tconv_workspace_give_back_unused(device, workspace);
    else
        tconv_workspace_give_back(device, workspace, end);
    return status;
}

/* Refuses what only runs without a queue take. */
static tconv_status check_call(const struct tconv_call *call, tconv_error *error)
{
    const tconv_tensors *t = &call->tensors;
    const char *host = t->data.host != NULL       ? "data"
                       : t->filter.host != NULL   ? "filter"
                       : t->output.host != NULL   ? "output"
                       : t->bias.host != NULL     ? "bias"
                       : t->scale.host != NULL    ? "scale"
                       : t->slope.host != NULL    ? "slope"
                       : t->slope2.host != NULL   ? "slope2"
                       : t->residual.host != NULL ? "residual"
                                                  : NULL;
    if (host != NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "tensors.%s is an array of the host, but the run has a queue: give a "
                          "buffer, or leave run.queue out",
                          host);
    if (call->run.progress != NULL || call->run.memory_limit != 0)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "run.%s is given, but the run has a queue, where no layer is divided: "
                          "leave one of them out",
                          call->run.progress != NULL ? "progress" : "memory_limit");
    if (call->run.on_threads != NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "run.on_threads is given, but the run has a queue, and nothing waits for "
                          "the layer: leave one of them out");
    return TCONV_OK;
}

/* Enqueues the execution of use->plan, whose filter is packed now if the run gives one. */
static tconv_status enqueue(tconv_layer *layer, struct tconv_keep *keep,
                            const struct tconv_call *call, struct tconv_use *use,
                            tconv_error *error)
{
    const struct tconv_packing packing = {.use = layer->use, .count = &layer->filters_packed};
    const tconv_geometry *geometry = tconv_plan_geometry(use->plan);
    tconv_tensors tensors = call->tensors;
    tconv_tensor vector[TCONV_VECTORS];
    struct extra extra = {0};
    cl_event packed = NULL;
    tconv_status status;
    if ((status = tconv_call_check(call, geometry, error)) != TCONV_OK ||
        (status = tconv_weights_vectors(call, geometry, use->vectors, vector, error)) != TCONV_OK ||
        (status = tconv_weights_filter(keep, call, &packing, use, error)) != TCONV_OK ||
        (status = tconv_kept_filter_end(keep, use->filter, &packed, error)) != TCONV_OK)
        return status;
    if (packed != NULL) extra.event[extra.count++] = packed;
    tensors.filter = (tconv_tensor)TCONV_TENSOR_INIT;
    tensors.packed = use->filter->packed;
    tensors.bias = vector[TCONV_EPILOGUE_BIAS];
    tensors.scale = vector[TCONV_EPILOGUE_SCALE];
    tensors.slope = vector[TCONV_EPILOGUE_SLOPE];
    tensors.slope2 = vector[TCONV_EPILOGUE_SLOPE2];
    status = tconv_plan_workspace_bytes(use->plan) == 0 || tconv_is_given(&tensors.workspace)
                 ? enqueue_behind(use->plan, &call->run, &tensors, &extra, call->run.done, error)
                 : enqueue_pooled(keep->device, use->plan, &call->run, &tensors, &extra, error);
    if (status == TCONV_OK || packed == NULL) return status;
    /* The packing may have failed since it was asked: that is then the reason. */
    tconv_error reason;
    return tconv_kept_filter_end(keep, use->filter, &packed, &reason) == TCONV_OK
               ? status
               : tconv_fail_with(error, &reason);
}

tconv_status tconv_run_enqueue(tconv_layer *layer, const struct tconv_call *call,
                               tconv_error *error)
{
    struct tconv_keep *keep;
    struct tconv_use use = {.plan = NULL};
    tconv_status status;
    if ((status = check_call(call, error)) != TCONV_OK ||
        (status = tconv_layer_find_queue(layer, call->run.queue, &keep, error)) != TCONV_OK ||
        (status = tconv_weights_plan(keep, call, &use, error)) != TCONV_OK)
        return status;
    if (tconv_plan_geometry(use.plan)->output_bytes == 0) /* there is still an order to keep */
        status = enqueue_behind(use.plan, &call->run, &(tconv_tensors)TCONV_TENSORS_INIT,
                                &(struct extra){0}, call->run.done, error);
    else
        status = enqueue(layer, keep, call, &use, error);
    tconv_use_end(&use);
    return status;
}
