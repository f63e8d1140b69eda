/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions on layers. A run is enqueued, computed in slabs or computed at once. */
#include "layer/layer_internal.h"

#include "base/cancel.h"
#include "base/error.h"
#include "base/process.h"
#include "base/struct_size.h"
#include "device/device.h"
#include "device/lane.h"
#include "geometry/window.h"
#include "plan/place.h"

#include <stdlib.h>

/* ---- Making ---- */

static tconv_status check_devices(tconv_device *const *devices, int count, tconv_error *error)
{
    if (devices == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "devices is NULL");
    if (count < 1)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "device_count is %d: it must be at least 1",
                          count);
    for (int i = 0; i < count; i++)
        for (int j = 0; j <= i; j++)
            if (devices[i] == NULL || (j < i && devices[j] == devices[i]))
                return tconv_fail(error, TCONV_ERROR_ARGUMENT, "devices[%d] is %s", i,
                                  devices[i] == NULL ? "NULL" : "given twice");
    return TCONV_OK;
}

tconv_status tconv_layer_create(tconv_device *const *devices, int device_count,
                                tconv_filter_use filter_use, tconv_layer **out, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    const tconv_status status = check_devices(devices, device_count, error);
    if (status != TCONV_OK) return status;
    if (out == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "out is NULL");
    if ((int)filter_use < TCONV_FILTER_VARIES || (int)filter_use > TCONV_FILTER_WATCHED)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "filter_use is %d: it must be a TCONV_FILTER_*, 0 to 2", (int)filter_use);
    const size_t bytes = sizeof(tconv_layer) + (size_t)device_count * sizeof(struct tconv_keep);
    tconv_layer *layer = calloc(1, bytes);
    bool made = layer != NULL;
    while (made && layer->device_count < device_count) {
        made = tconv_keep_init(&layer->keep[layer->device_count], devices[layer->device_count]);
        if (made) layer->device_count++;
    }
    if (!made) {
        tconv_layer_release(layer);
        return tconv_fail_memory(error, bytes, "making a layer");
    }
    layer->use = filter_use;
    *out = layer;
    return TCONV_OK;
}

void tconv_layer_release(tconv_layer *layer)
{
    TCONV_WITHOUT_CANCELLATION;
    if (layer == NULL || tconv_process_forked()) return;
    for (int i = 0; i < layer->device_count; i++) tconv_keep_destroy(&layer->keep[i]);
    free(layer);
}

/* Begins a call on a layer with another argument that must not be NULL. */
static tconv_status begin(const tconv_layer *layer, const char *name, const void *argument,
                          tconv_error *error)
{
    if (layer == NULL || argument == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          layer == NULL ? "layer" : name);
    return tconv_process_enter(error);
}

/* ---- Running ---- */

tconv_status tconv_run_check_without_queue(const tconv_run *run, tconv_error *error)
{
    const char *given = run->wait_count != 0 || run->wait != NULL ? "wait"
                        : run->done != NULL                       ? "done"
                                                                  : NULL;
    return given == NULL ? TCONV_OK
                         : tconv_fail(error, TCONV_ERROR_ARGUMENT,
                                      "run.%s is given, but run.queue is NULL: the call waits for "
                                      "nothing but its own work",
                                      given);
}

/* Tells of a run that was not divided. */
static tconv_status tell(const struct tconv_call *call, const tconv_geometry *g, tconv_error *error)
{
    const tconv_slab all = {0, 0, g->batch, 0, g->output[0], 0, g->input[0]};
    if (call->run.progress == NULL || g->output_bytes == 0 ||
        call->run.progress(call->run.user, &all, 1, 1))
        return TCONV_OK;
    return tconv_fail(error, TCONV_ERROR_CANCELLED, "stopped after 1 of 1 slabs");
}

/* Computes a run at once. `use` may have its plan, and is ended. */
static tconv_status run_whole(tconv_layer *layer, const struct tconv_call *call,
                              struct tconv_use *use, tconv_error *error)
{
    struct tconv_keep *keep = &layer->keep[0];
    tconv_status status = tconv_weights_plan(keep, call, use, error);
    if (status != TCONV_OK) return status;
    const tconv_geometry *g = tconv_plan_geometry(use->plan);
    if (g->output_bytes != 0) status = tconv_run_whole(layer, keep, call, use, error);
    if (status == TCONV_OK) status = tell(call, g, error);
    tconv_use_end(use);
    return status;
}

/* True if the rule of layer.h says so before the first try. The geometry is that of the kept plan,
 * if there is one: resolving the problem takes longer. */
static bool is_divided(const tconv_layer *layer, const struct tconv_call *call,
                       const tconv_plan *known)
{
    if (known != NULL) return tconv_slabs_wanted(layer, call, tconv_plan_geometry(known));
    const tconv_plan_options *options = &call->options;
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    return tconv_resolve_window(&call->problem, options->output_begin, options->output_end,
                                &geometry, NULL) == TCONV_OK &&
           tconv_slabs_wanted(layer, call, &geometry);
}

/* Computes a run and waits for it. */
static tconv_status compute(tconv_layer *layer, const struct tconv_call *call, tconv_error *error)
{
    tconv_status status = tconv_run_check_without_queue(&call->run, error);
    if (status != TCONV_OK) return status;
    struct tconv_use use = {.plan = tconv_keep_known_plan(&layer->keep[0], call,
                                                          tconv_is_given(&call->tensors.filter))};
    if (is_divided(layer, call, use.plan)) {
        tconv_use_end(&use);
    } else {
        tconv_error first;
        status = run_whole(layer, call, &use, &first);
        if (status == TCONV_OK) return TCONV_OK;
        if (status != TCONV_ERROR_DEVICE_MEMORY || !tconv_slabs_may_follow(call))
            return tconv_fail_with(error, &first);
        tconv_lanes_release(layer->keep[0].device); /* what the first try has allocated */
    }
    status = tconv_run_slabs(layer, call, error);
    if (status == TCONV_OK) atomic_fetch_add(&layer->in_slabs, 1);
    return status;
}

tconv_status tconv_layer_run_call(tconv_layer *layer, const struct tconv_call *call,
                                  tconv_error *error)
{
    const tconv_status status = call->run.queue != NULL ? tconv_run_enqueue(layer, call, error)
                                                        : compute(layer, call, error);
    if (status == TCONV_OK) atomic_fetch_add(&layer->runs, 1);
    return status;
}

tconv_status tconv_layer_run(tconv_layer *layer, const tconv_problem *problem,
                             const tconv_plan_options *options, const tconv_tensors *tensors,
                             const tconv_run *run, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    struct tconv_call call;
    tconv_status status;
    if ((status = begin(layer, "tensors", tensors, error)) != TCONV_OK ||
        (status = tconv_call_read(problem, options, tensors, run, &call, error)) != TCONV_OK)
        return status;
    return tconv_layer_run_call(layer, &call, error);
}

/* ---- Weights ---- */

/* Refuses what no weights are. */
static tconv_status check_weights(const tconv_layer *layer, const struct tconv_call *call,
                                  tconv_error *error)
{
    const tconv_tensors *t = &call->tensors;
    const char *other = tconv_is_given(&t->data)       ? "data"
                        : tconv_is_given(&t->output)   ? "output"
                        : tconv_is_given(&t->residual) ? "residual"
                                                       : NULL;
    if (!tconv_is_given(&t->filter))
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "tensors.filter is absent: it has neither memory, a pointer nor an array "
                          "of the host");
    if (other != NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "tensors.%s is given, but only filter, bias, scale and slopes are set: "
                          "leave it out",
                          other);
    if (call->run.queue == NULL && layer->device_count > 1 && t->filter.host == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "tensors.filter is in the memory of one device, but the layer has %d: "
                          "give an array of the host, or a queue",
                          layer->device_count);
    return call->run.queue == NULL ? tconv_run_check_without_queue(&call->run, error) : TCONV_OK;
}

/* Sets the weights of the queue's device. */
static tconv_status enqueue_set(tconv_layer *layer, const struct tconv_call *call,
                                tconv_error *error)
{
    const struct tconv_packing packing = {.use = layer->use, .count = &layer->filters_packed};
    const tconv_run *run = &call->run;
    struct tconv_replaced old;
    struct tconv_keep *keep;
    struct tconv_use use;
    tconv_status status;
    if ((status = tconv_layer_find_queue(layer, run->queue, &keep, error)) != TCONV_OK ||
        (status = tconv_weights_pack(keep, call, &packing, &use, error)) != TCONV_OK)
        return status;
    const cl_int code = run->done == NULL ? CL_SUCCESS : clRetainEvent(use.filter->end);
    if (code == CL_SUCCESS) {
        if (run->done != NULL) *run->done = use.filter->end;
        tconv_keep_set(keep, &use, &old, 1);
    } else
        status = tconv_fail_opencl(error, code, "clRetainEvent", "packing weights");
    tconv_use_end(&use);
    return status;
}

/* Packs weights on one device, and waits. */
static tconv_status pack_now(tconv_layer *layer, struct tconv_keep *keep,
                             const struct tconv_call *call, struct tconv_use *use,
                             tconv_error *error)
{
    struct tconv_packing packing = {
        .use = layer->use, .alone = true, .count = &layer->filters_packed};
    tconv_status status = tconv_lane_take(keep->device, &packing.lane, error);
    if (status != TCONV_OK) return status;
    status = tconv_weights_pack(keep, call, &packing, use, error);
    tconv_lane_give_back(packing.lane);
    return status;
}

/* Sets the weights of all devices at once, or of none. */
static tconv_status set_all(tconv_layer *layer, const struct tconv_call *call, tconv_error *error)
{
    const int count = layer->device_count;
    const size_t bytes = (size_t)count * (sizeof(struct tconv_use) + sizeof(struct tconv_replaced));
    struct tconv_use *use = calloc((size_t)count, sizeof *use);
    struct tconv_replaced *old = calloc((size_t)count, sizeof *old);
    tconv_status status = TCONV_OK;
    if (use == NULL || old == NULL) status = tconv_fail_memory(error, bytes, "setting weights");
    for (int i = 0; i < count && status == TCONV_OK; i++)
        status = pack_now(layer, &layer->keep[i], call, &use[i], error);
    if (status == TCONV_OK) tconv_keep_set(layer->keep, use, old, count);
    for (int i = 0; i < count && use != NULL; i++) tconv_use_end(&use[i]);
    free(use);
    free(old);
    return status;
}

tconv_status tconv_layer_set(tconv_layer *layer, const tconv_problem *problem,
                             const tconv_plan_options *options, const tconv_tensors *tensors,
                             const tconv_run *run, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    struct tconv_call call;
    tconv_status status;
    if ((status = begin(layer, "tensors", tensors, error)) != TCONV_OK ||
        (status = tconv_call_read(problem, options, tensors, run, &call, error)) != TCONV_OK ||
        (status = check_weights(layer, &call, error)) != TCONV_OK)
        return status;
    return call.run.queue != NULL ? enqueue_set(layer, &call, error) : set_all(layer, &call, error);
}

void tconv_layer_refresh(tconv_layer *layer)
{
    TCONV_WITHOUT_CANCELLATION;
    if (layer == NULL || tconv_process_forked()) return;
    for (int i = 0; i < layer->device_count; i++) tconv_keep_refresh(&layer->keep[i]);
}

/* ---- Plans ---- */

tconv_status tconv_layer_prepare(tconv_layer *layer, const tconv_problem *problem,
                                 const tconv_shape *most, const tconv_plan_options *options,
                                 tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    struct tconv_call call;
    tconv_status status;
    if ((status = begin(layer, "layer", layer, error)) != TCONV_OK ||
        (status = tconv_call_read(problem, options, NULL, NULL, &call, error)) != TCONV_OK)
        return status;
    for (int i = 0; i < layer->device_count && status == TCONV_OK; i++) {
        struct tconv_keep *keep = &layer->keep[i];
        tconv_plan *plan = NULL;
        if (most != NULL)
            status =
                tconv_device_prepare(keep->device, &call.problem, most, &call.options, NULL, error);
        if (status == TCONV_OK) status = tconv_keep_plan(keep, &call, true, &plan, error);
        tconv_plan_release(plan);
    }
    return status;
}

tconv_status tconv_layer_plan(tconv_layer *layer, const tconv_problem *problem,
                              const tconv_plan_options *options, tconv_plan **out,
                              tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    struct tconv_call call;
    tconv_status status;
    if ((status = begin(layer, "out", out, error)) != TCONV_OK ||
        (status = tconv_call_read(problem, options, NULL, NULL, &call, error)) != TCONV_OK)
        return status;
    struct tconv_keep *keep = &layer->keep[0];
    struct tconv_use use = {.plan = NULL};
    if (!tconv_keep_has_set(keep)) return tconv_keep_plan(keep, &call, true, out, error);
    if ((status = tconv_weights_plan(keep, &call, &use, error)) != TCONV_OK) return status;
    tconv_plan_retain(use.plan);
    *out = use.plan;
    tconv_use_end(&use);
    return TCONV_OK;
}

/* ---- Counts ---- */

tconv_status tconv_layer_count(const tconv_layer *layer, tconv_layer_counts *counts,
                               tconv_error *error)
{
    if (layer == NULL || counts == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          layer == NULL ? "layer" : "counts");
    const tconv_status status = tconv_struct_check(TCONV_SIZED_LAYER_COUNTS, counts, error);
    if (status != TCONV_OK) return status;
    tconv_layer_counts own = TCONV_LAYER_COUNTS_INIT;
    tconv_layer *inside = (tconv_layer *)(uintptr_t)layer; /* for its locks */
    struct tconv_keep_counts kept = {0};
    for (int i = 0; i < layer->device_count; i++) tconv_keep_count(&inside->keep[i], &kept);
    own.runs = atomic_load(&inside->runs);
    own.plans_made = kept.plans_made;
    own.plans_kept = kept.plans_kept;
    own.filters_packed = atomic_load(&inside->filters_packed);
    own.in_slabs = atomic_load(&inside->in_slabs);
    own.weight_bytes = kept.bytes;
    tconv_struct_write(TCONV_SIZED_LAYER_COUNTS, &own, counts);
    return TCONV_OK;
}
