/* SPDX-License-Identifier: Apache-2.0 */
/* Computes a layer at once, in a lane of the device: arrays of the host are used in place or
 * copied, buffers and pointers where they are. */
#include "layer/layer_internal.h"

#include "base/view.h"
#include "device/lane.h"
#include "plan/place.h"
#include "plan/shares.h"

/* A tensor that the run reads, besides the packed filter. */
struct input {
    enum tconv_role role;
    const tconv_tensor *tensor;
    uint64_t bytes;     /* 0: empty, which needs no buffer */
    size_t element;     /* bytes of one */
    tconv_tensor *into; /* receives where it is on the device; NULL: packing takes it */
};

enum { MOST_INPUTS = 6 };

struct inputs {
    int count;
    struct input list[MOST_INPUTS];
};

static void add(struct inputs *inputs, enum tconv_role role, const tconv_tensor *tensor,
                uint64_t bytes, tconv_type type, tconv_tensor *into)
{
    if (tconv_is_given(tensor))
        inputs->list[inputs->count++] =
            (struct input){role, tensor, bytes, tconv_type_size(type), into};
}

static void list_inputs(const struct tconv_call *call, const tconv_geometry *g,
                        const tconv_tensor vector[TCONV_VECTORS], tconv_tensors *into,
                        struct inputs *inputs)
{
    static const enum tconv_role roles[] = {TCONV_ROLE_BIAS, TCONV_ROLE_SCALE, TCONV_ROLE_SLOPE,
                                            TCONV_ROLE_SLOPE2};
    tconv_tensor *const vectors[] = {&into->bias, &into->scale, &into->slope, &into->slope2};
    const tconv_problem *p = &call->problem;
    const tconv_epilogue *e = &call->options.epilogue;
    const tconv_tensors *t = &call->tensors;
    inputs->count = 0;
    add(inputs, TCONV_ROLE_DATA, &t->data, g->data_bytes, p->data_type, &into->data);
    add(inputs, TCONV_ROLE_FILTER, &t->filter, g->filter_bytes, p->filter_type, NULL);
    add(inputs, TCONV_ROLE_RESIDUAL, &t->residual, g->residual_bytes, g->output_type,
        &into->residual);
    for (int i = 0; i < TCONV_VECTORS; i++) {
        const enum tconv_epilogue_tensor which = (enum tconv_epilogue_tensor)i;
        if (tconv_is_given(&vector[i]))
            add(inputs, roles[i], &vector[i], tconv_epilogue_bytes(e, which, p->data_type, g),
                tconv_epilogue_type(e, which, p->data_type, g->output_type), vectors[i]);
    }
}

/* True if an array of the host overlaps another one. */
static bool overlap(const tconv_tensor *a, uint64_t a_bytes, const tconv_tensor *b,
                    uint64_t b_bytes)
{
    if (a->host == NULL || b->host == NULL) return false;
    const uintptr_t one = (uintptr_t)tconv_array_of(a), other = (uintptr_t)tconv_array_of(b);
    return one < other ? other - one < a_bytes : one - other < b_bytes;
}

/* True if no other array of the run overlaps this one, so that kernels may use it in place. */
static bool is_alone(const struct inputs *inputs, const struct input *own,
                     const tconv_tensor *output, uint64_t output_bytes)
{
    bool alone = !overlap(own->tensor, own->bytes, output, output_bytes);
    for (int i = 0; i < inputs->count && alone; i++) {
        const struct input *other = &inputs->list[i];
        alone = other == own || !overlap(own->tensor, own->bytes, other->tensor, other->bytes);
    }
    return alone;
}

/* Takes the packed filter: a kept one, or the run's, which is packed now. */
static tconv_status take_filter(tconv_layer *layer, struct tconv_keep *keep,
                                const struct tconv_call *call, struct tconv_lane *lane, bool alone,
                                struct tconv_use *use, tconv_error *error)
{
    const struct tconv_packing packing = {
        .use = layer->use, .lane = lane, .alone = alone, .count = &layer->filters_packed};
    const tconv_status status = tconv_weights_filter(keep, call, &packing, use, error);
    return status == TCONV_OK ? tconv_kept_filter_finish(keep, use->filter, error) : status;
}

/* Brings all inputs to the device, the filter packed. */
static tconv_status take_inputs(tconv_layer *layer, struct tconv_keep *keep,
                                const struct tconv_call *call, struct tconv_lane *lane,
                                struct tconv_use *use, tconv_tensors *into, tconv_error *error)
{
    const tconv_geometry *g = tconv_plan_geometry(use->plan);
    struct inputs inputs;
    tconv_tensor vector[TCONV_VECTORS];
    bool filter_alone = true;
    tconv_status status = tconv_weights_vectors(call, g, use->vectors, vector, error);
    if (status != TCONV_OK) return status;
    list_inputs(call, g, vector, into, &inputs);
    for (int i = 0; i < inputs.count && status == TCONV_OK; i++) {
        const struct input *input = &inputs.list[i];
        const bool alone = is_alone(&inputs, input, &call->tensors.output, g->output_bytes);
        if (input->into == NULL)
            filter_alone = alone;
        else if (input->tensor->host == NULL)
            *input->into = *input->tensor;
        else if (input->bytes != 0)
            status = tconv_lane_upload(lane, input->role, tconv_array_of(input->tensor),
                                       input->bytes, input->element, alone, &input->into->memory,
                                       error);
    }
    if (status == TCONV_OK) status = take_filter(layer, keep, call, lane, filter_alone, use, error);
    if (status == TCONV_OK) into->packed = use->filter->packed;
    return status;
}

/* Finds the memory of output and workspace. */
static tconv_status take_outputs(const struct tconv_call *call, struct tconv_lane *lane,
                                 const tconv_plan *plan, tconv_tensors *into, tconv_error *error)
{
    const tconv_geometry *g = tconv_plan_geometry(plan);
    const uint64_t workspace = tconv_plan_workspace_bytes(plan);
    tconv_status status = TCONV_OK;
    into->output = call->tensors.output;
    into->workspace = call->tensors.workspace;
    if (workspace != 0 && !tconv_is_given(&into->workspace))
        status =
            tconv_lane_space(lane, TCONV_ROLE_WORKSPACE, workspace, &into->workspace.memory, error);
    if (status != TCONV_OK || into->output.host == NULL) return status;
    into->output = (tconv_tensor)TCONV_TENSOR_INIT;
    return tconv_lane_output(lane, tconv_array_of(&call->tensors.output), g->output_bytes,
                             tconv_type_size(g->output_type), call->options.epilogue.beta != 0,
                             &into->output.memory, error);
}

/* Runs the plan, and waits until the output is complete. */
static tconv_status execute(const struct tconv_call *call, struct tconv_lane *lane,
                            const tconv_plan *plan, const tconv_tensors *tensors,
                            tconv_error *error)
{
    const tconv_geometry *g = tconv_plan_geometry(plan);
    const tconv_tensor *output = &call->tensors.output;
    const bool is_array = output->host != NULL;
    const struct tconv_pool pool = {call->run.on_threads, call->run.pool, call->run.threads};
    cl_event done = NULL;
    tconv_status status = tconv_plan_execute(plan, tconv_lane_queue(lane), &pool, tensors,
                                             is_array ? NULL : &done, error);
    if (status != TCONV_OK) return status;
    if (is_array) {
        const struct tconv_view view = tconv_view_of(&call->problem, g, TCONV_SPACED_OUTPUT);
        return tconv_lane_download(lane, tconv_array_of(output), g->output_bytes, &view,
                                   tconv_type_size(g->output_type), error);
    }
    if (done == NULL) return TCONV_OK; /* it has ended */
    status = tconv_wait(done, error);
    clReleaseEvent(done);
    return status;
}

tconv_status tconv_run_whole(tconv_layer *layer, struct tconv_keep *keep,
                             const struct tconv_call *call, struct tconv_use *use,
                             tconv_error *error)
{
    struct tconv_lane *lane;
    tconv_tensors tensors = TCONV_TENSORS_INIT;
    tconv_status status;
    if ((status = tconv_call_check(call, tconv_plan_geometry(use->plan), error)) != TCONV_OK ||
        (status = tconv_lane_take(keep->device, &lane, error)) != TCONV_OK)
        return status;
    if ((status = take_inputs(layer, keep, call, lane, use, &tensors, error)) == TCONV_OK &&
        (status = take_outputs(call, lane, use->plan, &tensors, error)) == TCONV_OK)
        status = execute(call, lane, use->plan, &tensors, error);
    tconv_lane_give_back(lane);
    return status;
}
