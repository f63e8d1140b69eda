/* SPDX-License-Identifier: Apache-2.0 */
/* Records runs of layers. A recording keeps plan, filter and vectors of the moment in which it was
 * made: the library does not see when the command buffer runs. */
#include "layer/layer_internal.h"

#include "base/cancel.h"
#include "base/error.h"
#include "base/process.h"
#include "plan/place.h"
#include "tconv_cl/recording.h"

#include <stdlib.h>

struct tconv_layer_recording {
    tconv_recording *inside; /* NULL: the tensors cannot be replaced */
    struct tconv_call call;  /* whose tensors are those that it has now */
    struct tconv_use use;
    cl_context context;
    cl_mem workspace; /* its own; NULL: it has none */
};

/* Finds the weights of a run and what else it needs: afterwards the tensors of the call are those
 * of its plan. The filter is packed when this returns. */
static tconv_status bind(tconv_layer_recording *recording, struct tconv_keep *keep,
                         const struct tconv_packing *packing, struct tconv_call *call,
                         struct tconv_use *use, tconv_error *error)
{
    const tconv_geometry *geometry = tconv_plan_geometry(use->plan);
    const uint64_t bytes = tconv_plan_workspace_bytes(use->plan);
    tconv_tensors *t = &call->tensors;
    tconv_tensor vector[TCONV_VECTORS];
    tconv_status status;
    if ((status = tconv_call_check(call, geometry, error)) != TCONV_OK ||
        (status = tconv_weights_vectors(call, geometry, use->vectors, vector, error)) != TCONV_OK ||
        (status = tconv_weights_filter(keep, call, packing, use, error)) != TCONV_OK ||
        (status = tconv_kept_filter_finish(keep, use->filter, error)) != TCONV_OK)
        return status;
    t->filter = (tconv_tensor)TCONV_TENSOR_INIT;
    t->packed = use->filter->packed;
    t->bias = vector[TCONV_EPILOGUE_BIAS];
    t->scale = vector[TCONV_EPILOGUE_SCALE];
    t->slope = vector[TCONV_EPILOGUE_SLOPE];
    if (bytes == 0 || tconv_is_given(&t->workspace)) return TCONV_OK;
    cl_int code;
    const cl_mem memory =
        clCreateBuffer(recording->context, CL_MEM_READ_WRITE, (size_t)bytes, NULL, &code);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clCreateBuffer",
                                 "creating a workspace of %llu bytes", (unsigned long long)bytes);
    recording->workspace = t->workspace.memory = memory;
    return TCONV_OK;
}

tconv_status tconv_layer_record(tconv_layer *layer, const tconv_problem *problem,
                                const tconv_plan_options *options,
                                struct _cl_command_buffer_khr *command_buffer,
                                cl_command_queue queue, const tconv_tensors *tensors,
                                bool replaceable, uint32_t wait_count, const uint32_t *wait,
                                uint32_t *done, tconv_layer_recording **out, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    const char *missing = layer == NULL     ? "layer"
                          : tensors == NULL ? "tensors"
                          : out == NULL     ? "out"
                                            : NULL;
    if (missing != NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL", missing);
    tconv_status status = tconv_process_enter(error);
    if (status != TCONV_OK) return status;
    const struct tconv_packing packing = {layer->use, NULL, false, &layer->filters_packed, NULL};
    struct tconv_keep *keep;
    tconv_layer_recording *made = calloc(1, sizeof *made);
    if (made == NULL) return tconv_fail_memory(error, sizeof *made, "recording a layer");
    struct tconv_call *call = &made->call;
    if ((status = tconv_call_read(problem, options, tensors, NULL, call, error)) == TCONV_OK &&
        (status = tconv_layer_find_queue(layer, queue, &keep, error)) == TCONV_OK &&
        (status = tconv_weights_plan(keep, call, &made->use, error)) == TCONV_OK) {
        call->run.queue = queue;
        made->context = tconv_device_context(keep->device);
        if (tconv_plan_geometry(made->use.plan)->output_bytes != 0)
            status = bind(made, keep, &packing, call, &made->use, error);
    }
    if (status == TCONV_OK)
        status = replaceable
                     ? tconv_recording_create(made->use.plan, command_buffer, queue, &call->tensors,
                                              wait_count, wait, done, &made->inside, error)
                     : tconv_plan_record(made->use.plan, command_buffer, queue, &call->tensors,
                                         wait_count, wait, done, error);
    if (status != TCONV_OK) {
        tconv_layer_recording_release(made);
        return status;
    }
    *out = made;
    return TCONV_OK;
}

/* Finds the weights that a layer has now for a recorded plan. `use` has the plan. */
static tconv_status find_weights(const tconv_layer_recording *recording, tconv_layer *layer,
                                 struct tconv_keep **keep, struct tconv_use *use,
                                 tconv_error *error)
{
    const tconv_status status =
        tconv_layer_find_queue(layer, recording->call.run.queue, keep, error);
    if (status != TCONV_OK) return status;
    tconv_keep_find(*keep, &recording->call.problem, NULL, use);
    return use->filter != NULL ? TCONV_OK
                               : tconv_fail(error, TCONV_ERROR_MISMATCH,
                                            "the weights of layer are packed for another plan than "
                                            "the recorded one: record it again");
}

/* Reads the tensors that replace those of a recording; `use` has its plan, and receives the
 * weights. */
static tconv_status replace(tconv_layer_recording *recording, tconv_layer *layer,
                            const tconv_tensors *tensors, struct tconv_call *call,
                            struct tconv_use *use, tconv_error *error)
{
    const struct tconv_call *before = &recording->call;
    const tconv_tensors *old = &before->tensors;
    struct tconv_keep *keep;
    tconv_status status =
        tconv_call_read(&before->problem, &before->options, tensors, NULL, call, error);
    if (status != TCONV_OK) return status;
    tconv_tensors *t = &call->tensors;
    call->run.queue = before->run.queue;
    if (tconv_is_given(&t->filter))
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "tensors.filter is given, but a recording has the packed filter of a "
                          "layer: leave it out");
    if (!tconv_is_given(&t->workspace)) t->workspace = old->workspace;
    if (layer != NULL)
        return (status = find_weights(recording, layer, &keep, use, error)) == TCONV_OK
                   ? bind(recording, keep, NULL, call, use, error)
                   : status;
    t->packed = old->packed;
    if (!tconv_is_given(&t->bias)) t->bias = old->bias;
    if (!tconv_is_given(&t->scale)) t->scale = old->scale;
    if (!tconv_is_given(&t->slope)) t->slope = old->slope;
    return TCONV_OK;
}

tconv_status tconv_layer_recording_update(tconv_layer_recording *recording, tconv_layer *layer,
                                          const tconv_tensors *tensors, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (recording == NULL || tensors == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          recording == NULL ? "recording" : "tensors");
    if (recording->inside == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "the tensors of recording cannot be replaced: it was recorded without "
                          "`replaceable`");
    tconv_status status = tconv_process_enter(error);
    if (status != TCONV_OK) return status;
    struct tconv_call call;
    struct tconv_use use = {.plan = recording->use.plan};
    tconv_plan_retain(use.plan);
    if (tconv_plan_geometry(use.plan)->output_bytes == 0)
        status = tconv_call_read(&recording->call.problem, &recording->call.options, tensors, NULL,
                                 &call, error);
    else
        status = replace(recording, layer, tensors, &call, &use, error);
    if (status == TCONV_OK)
        status = tconv_recording_update(recording->inside, &call.tensors, error);
    if (status == TCONV_OK) {
        recording->call.tensors = call.tensors;
        if (layer != NULL) { /* else `use` has the plan alone */
            tconv_use_end(&recording->use);
            recording->use = use;
            return TCONV_OK;
        }
    }
    tconv_use_end(&use);
    return status;
}

void tconv_layer_recording_release(tconv_layer_recording *recording)
{
    TCONV_WITHOUT_CANCELLATION;
    if (recording == NULL || tconv_process_forked()) return;
    tconv_recording_release(recording->inside);
    tconv_use_end(&recording->use);
    if (recording->workspace != NULL) clReleaseMemObject(recording->workspace);
    free(recording);
}
