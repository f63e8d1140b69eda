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
    struct tconv_call call;  /* whose tensors are those that the application gave last */
    struct tconv_use use;
    cl_context context;
    cl_mem workspace; /* its own; NULL: it has none */
};

/* Finds the tensors of the plan in `use`: those of the call and, where it has none, the weights in
 * `use` and a workspace of the recording. */
static tconv_status bind(tconv_layer_recording *recording, const struct tconv_call *call,
                         const struct tconv_use *use, tconv_tensors *t, tconv_error *error)
{
    const tconv_geometry *geometry = tconv_plan_geometry(use->plan);
    const uint64_t bytes = tconv_plan_workspace_bytes(use->plan);
    tconv_tensor vector[TCONV_VECTORS];
    tconv_status status;
    *t = call->tensors;
    if (geometry->output_bytes == 0) return TCONV_OK;
    if ((status = tconv_call_check(call, geometry, error)) != TCONV_OK ||
        (status = tconv_weights_vectors(call, geometry, use->vectors, vector, error)) != TCONV_OK)
        return status;
    t->filter = (tconv_tensor)TCONV_TENSOR_INIT;
    t->packed = use->filter->packed;
    t->bias = vector[TCONV_EPILOGUE_BIAS];
    t->scale = vector[TCONV_EPILOGUE_SCALE];
    t->slope = vector[TCONV_EPILOGUE_SLOPE];
    t->slope2 = vector[TCONV_EPILOGUE_SLOPE2];
    if (bytes == 0 || tconv_is_given(&t->workspace)) return TCONV_OK;
    cl_int code = CL_SUCCESS;
    if (recording->workspace == NULL)
        recording->workspace =
            clCreateBuffer(recording->context, CL_MEM_READ_WRITE, (size_t)bytes, NULL, &code);
    if (code != CL_SUCCESS) {
        recording->workspace = NULL;
        return tconv_fail_opencl(error, code, "clCreateBuffer",
                                 "creating a workspace of %llu bytes", (unsigned long long)bytes);
    }
    t->workspace.memory = recording->workspace;
    return TCONV_OK;
}

/* Takes plan and weights of the recorded run. The filter is packed when this returns. */
static tconv_status take_weights(tconv_layer_recording *recording, tconv_layer *layer,
                                 tconv_error *error)
{
    const struct tconv_packing packing = {.use = layer->use, .count = &layer->filters_packed};
    struct tconv_call *call = &recording->call;
    struct tconv_use *use = &recording->use;
    struct tconv_keep *keep;
    tconv_status status;
    if ((status = tconv_layer_find_queue(layer, call->run.queue, &keep, error)) != TCONV_OK ||
        (status = tconv_weights_plan(keep, call, use, error)) != TCONV_OK)
        return status;
    recording->context = tconv_device_context(keep->device);
    call->options.algorithm = NULL; /* the caller's, and the plan has it */
    if (tconv_plan_geometry(use->plan)->output_bytes == 0) return TCONV_OK;
    if ((status = tconv_call_check(call, tconv_plan_geometry(use->plan), error)) != TCONV_OK ||
        (status = tconv_weights_filter(keep, call, &packing, use, error)) != TCONV_OK)
        return status;
    return tconv_kept_filter_finish(keep, use->filter, error);
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
    tconv_layer_recording *made = calloc(1, sizeof *made);
    if (made == NULL) return tconv_fail_memory(error, sizeof *made, "recording a layer");
    tconv_tensors bound;
    status = tconv_call_read(problem, options, tensors, NULL, &made->call, error);
    made->call.run.queue = queue;
    if (status == TCONV_OK && (status = take_weights(made, layer, error)) == TCONV_OK &&
        (status = bind(made, &made->call, &made->use, &bound, error)) == TCONV_OK)
        status = replaceable ? tconv_recording_create(made->use.plan, command_buffer, queue, &bound,
                                                      wait_count, wait, done, &made->inside, error)
                             : tconv_plan_record(made->use.plan, command_buffer, queue, &bound,
                                                 wait_count, wait, done, error);
    if (status != TCONV_OK) {
        tconv_layer_recording_release(made);
        return status;
    }
    *out = made;
    return TCONV_OK;
}

/* Finds the weights that a layer has now for a recorded plan: those that were set or, if none were,
 * a filter that a run gave. `use` has the plan. */
static tconv_status find_weights(const tconv_layer_recording *recording, tconv_layer *layer,
                                 struct tconv_use *use, tconv_error *error)
{
    const tconv_problem *problem = &recording->call.problem;
    struct tconv_keep *keep;
    const tconv_status status =
        tconv_layer_find_queue(layer, recording->call.run.queue, &keep, error);
    if (status != TCONV_OK) return status;
    tconv_keep_find_set(keep, problem, use);
    if (use->filter == NULL && !tconv_keep_has_set(keep)) tconv_keep_find(keep, problem, NULL, use);
    return use->filter != NULL ? tconv_kept_filter_finish(keep, use->filter, error)
                               : tconv_fail(error, TCONV_ERROR_MISMATCH,
                                            "the weights of layer are packed for another plan than "
                                            "the recorded one: record it again");
}

/* True if the weights in `use` have that vector. */
static bool has_vector(const struct tconv_use *use, enum tconv_epilogue_tensor which)
{
    return use->vectors != NULL && tconv_is_given(&use->vectors->tensor[which]);
}

/* What the application leaves out stays as it gave it before, except vectors that are among new
 * weights. */
static void complete(tconv_tensors *t, const tconv_tensors *before, const struct tconv_use *weights)
{
    const struct {
        tconv_tensor *now;
        const tconv_tensor *before;
        bool is_new;
    } all[] = {
        {&t->workspace, &before->workspace, false},
        {&t->bias, &before->bias, has_vector(weights, TCONV_EPILOGUE_BIAS)},
        {&t->scale, &before->scale, has_vector(weights, TCONV_EPILOGUE_SCALE)},
        {&t->slope, &before->slope, has_vector(weights, TCONV_EPILOGUE_SLOPE)},
        {&t->slope2, &before->slope2, has_vector(weights, TCONV_EPILOGUE_SLOPE2)},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!tconv_is_given(all[i].now) && !all[i].is_new) *all[i].now = *all[i].before;
}

/* Reads the tensors that replace those of a recording, and finds those of its plan; `use` has the
 * plan, and receives the weights of `layer`, which may be NULL. */
static tconv_status replace(tconv_layer_recording *recording, tconv_layer *layer,
                            const tconv_tensors *tensors, struct tconv_call *call,
                            struct tconv_use *use, tconv_tensors *bound, tconv_error *error)
{
    const struct tconv_call *before = &recording->call;
    const bool empty = tconv_plan_geometry(use->plan)->output_bytes == 0;
    tconv_status status =
        tconv_call_read(&before->problem, &before->options, tensors, NULL, call, error);
    if (status != TCONV_OK) return status;
    call->run.queue = before->run.queue;
    if (tconv_is_given(&call->tensors.filter) && !empty)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "tensors.filter is given, but a recording has the packed filter of a "
                          "layer: leave it out");
    if (layer != NULL && !empty &&
        (status = find_weights(recording, layer, use, error)) != TCONV_OK)
        return status;
    complete(&call->tensors, &before->tensors, use);
    return bind(recording, call, layer != NULL ? use : &recording->use, bound, error);
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
    tconv_tensors bound;
    tconv_plan_retain(use.plan);
    status = replace(recording, layer, tensors, &call, &use, &bound, error);
    if (status == TCONV_OK) status = tconv_recording_update(recording->inside, &bound, error);
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
