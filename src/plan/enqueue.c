/* SPDX-License-Identifier: Apache-2.0 */
/* Packed filters, and executions: checks the caller's arguments, then enqueues the kernel plan's
 * launches one after another. place.c checks OpenCL's objects. */
#include "plan/place.h"
#include "plan/plan_internal.h"

#include "base/cancel.h"
#include "base/error.h"
#include "base/process.h"
#include "base/struct_size.h"
#include "device/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A packed filter begins at a multiple of this many bytes. */
enum { FILTER_ALIGNMENT = 64 };

/* The kernel arguments that an argument takes. */
static int parameters_of(enum tconv_arg arg)
{
    return arg <= TCONV_ARG_WORKSPACE || arg >= TCONV_ARG_DATA_IMAGE ? 2 : 1;
}

int tconv_list_arguments(const tconv_plan *plan, const struct tconv_launch *launch,
                         const struct tconv_bindings *bindings,
                         struct tconv_argument list[TCONV_MAX_ARGS])
{
    int count = 0;
    cl_uint index = 0;
    for (int i = 0; i < launch->arg_count; i++) {
        const enum tconv_arg arg = launch->args[i];
        if (!tconv_arg_used(&plan->epilogue, arg)) continue;
        struct tconv_argument *a = &list[count++];
        *a = (struct tconv_argument){.arg = arg, .index = index++};
        if (parameters_of(arg) == 1) continue;
        index++;
        if (arg > TCONV_ARG_WORKSPACE) continue;
        a->place = &bindings->place[arg];
        a->first = a->place->offset /
                   tconv_arg_unit(&plan->request, plan->candidate.algorithm->packing, arg);
    }
    return count;
}

cl_int tconv_set_arguments(const tconv_plan *plan, const struct tconv_launch *launch,
                           cl_kernel kernel, const struct tconv_bindings *bindings,
                           const char **call)
{
    struct tconv_argument list[TCONV_MAX_ARGS];
    const int count = tconv_list_arguments(plan, launch, bindings, list);
    cl_int code = CL_SUCCESS;
    for (int i = 0; i < count && code == CL_SUCCESS; i++) {
        const struct tconv_argument *a = &list[i];
        *call = "clSetKernelArg";
        if (a->arg == TCONV_ARG_TABLE) {
            code = clSetKernelArg(kernel, a->index, sizeof plan->table, &plan->table);
        } else if (a->arg == TCONV_ARG_LOCAL) {
            code = clSetKernelArg(kernel, a->index, launch->local_bytes, NULL);
        } else if (a->arg == TCONV_ARG_FIRST) {
            const cl_long first = launch->first;
            code = clSetKernelArg(kernel, a->index, sizeof first, &first);
        } else if (a->arg == TCONV_ARG_SHARE) {
            const cl_int2 whole = {{0, 0}};
            code = clSetKernelArg(kernel, a->index, sizeof whole, &whole);
        } else if (a->arg >= TCONV_ARG_DATA_IMAGE) {
            const struct tconv_image *image = &bindings->image[a->arg - TCONV_ARG_DATA_IMAGE];
            const bool made = image->memory != NULL;
            const cl_int first = made ? image->first : -1;
            code = clSetKernelArg(kernel, a->index, sizeof image->memory,
                                  made ? &image->memory : &plan->no_image);
            if (code == CL_SUCCESS)
                code = clSetKernelArg(kernel, a->index + 1, sizeof first, &first);
        } else {
            code = tconv_place_set(plan, a->place, kernel, a->index, call);
            if (code == CL_SUCCESS)
                code = clSetKernelArg(kernel, a->index + 1, sizeof a->first, &a->first);
        }
    }
    return code;
}

/* Bytes of all memory that launches are bound to, for the message of a launch that fails for lack
 * of memory: many devices allocate a buffer only when a kernel first uses it. */
static uint64_t bytes_of(const struct tconv_bindings *bindings)
{
    enum { COUNT = sizeof bindings->place / sizeof *bindings->place };
    uint64_t bytes = 0;
    for (int i = 0; i < COUNT; i++) {
        const struct tconv_place *place = &bindings->place[i];
        bool counted = false;
        for (int j = 0; j < i; j++)
            counted = counted || (bindings->place[j].memory == place->memory &&
                                  bindings->place[j].pointer == place->pointer);
        if (!counted) bytes += tconv_place_bytes(place);
    }
    return bytes;
}

int tconv_share_index(const tconv_plan *plan, const struct tconv_launch *launch)
{
    int index = 0;
    for (int i = 0; i < launch->arg_count; i++) {
        if (launch->args[i] == TCONV_ARG_SHARE) return index;
        if (tconv_arg_used(&plan->epilogue, launch->args[i]))
            index += parameters_of(launch->args[i]);
    }
    return -1;
}

tconv_status tconv_fail_launch(const char *kernel, const struct tconv_bindings *bindings,
                               cl_int code, const char *call, tconv_error *error)
{
    if (bindings == NULL) return tconv_fail_opencl(error, code, call, "enqueueing %s", kernel);
    return tconv_fail_opencl(error, code, call, "enqueueing %s on buffers of %llu bytes in all",
                             kernel, (unsigned long long)bytes_of(bindings));
}

struct tconv_piece tconv_launch_piece(const struct tconv_launch *launch, int piece)
{
    const size_t pieces = (size_t)launch->pieces, number = (size_t)piece;
    const size_t groups = launch->global[0] / launch->local[0];
    const size_t begin = groups / pieces * number + groups % pieces * number / pieces,
                 end = groups / pieces * (number + 1) + groups % pieces * (number + 1) / pieces;
    return (struct tconv_piece){
        {begin * launch->local[0]},
        {(end - begin) * launch->local[0], launch->global[1], launch->global[2]}};
}

tconv_status tconv_enqueue_launches(const tconv_plan *plan, const struct tconv_launch *launches,
                                    const cl_kernel *kernels, int count, cl_command_queue queue,
                                    const struct tconv_bindings *bindings, cl_uint wait_count,
                                    const cl_event *wait, cl_event *done, tconv_error *error)
{
    cl_int code = CL_SUCCESS;
    const char *call = "clEnqueueMarkerWithWaitList", *kernel = "nothing";
    cl_event before = NULL, event = NULL;
    const bool traced = tconv_traced(plan->device, TCONV_TRACE_LAUNCH);
    if (count == 0 && (done != NULL || wait_count > 0))
        code = clEnqueueMarkerWithWaitList(queue, wait_count, wait, &event);
    pthread_mutex_lock(
        (pthread_mutex_t *)&plan
            ->lock); /* cast away const: setting arguments changes the plan's kernel objects */
    for (int i = 0, piece = 0; i < count && code == CL_SUCCESS;) {
        const int pieces = launches[i].pieces;
        const bool first = i == 0 && piece == 0, last = i == count - 1 && piece == pieces - 1;
        const struct tconv_piece extents = tconv_launch_piece(&launches[i], piece);
        const uint64_t begin = traced ? tconv_trace_now() : 0;
        kernel = launches[i].kernel;
        if (piece == 0 || traced)
            code = tconv_set_arguments(plan, &launches[i], kernels[i], bindings, &call);
        if (code != CL_SUCCESS) break;
        call = "clEnqueueNDRangeKernel";
        event = NULL;
        code = clEnqueueNDRangeKernel(queue, kernels[i], 3, pieces == 1 ? NULL : extents.offset,
                                      extents.global, launches[i].local, first ? wait_count : 1,
                                      first ? wait : &before,
                                      last && done == NULL && !traced ? NULL : &event);
        if (before != NULL) clReleaseEvent(before);
        before = NULL;
        if (code == CL_SUCCESS && traced) { /* without the lock: another thread may set arguments */
            pthread_mutex_unlock((pthread_mutex_t *)&plan->lock);
            tconv_trace_launch(
                plan, &launches[i], piece, &extents,
                (tconv_trace_event){
                    .kind = TCONV_TRACE_LAUNCH, .begin_ns = begin, .queue = queue, .event = event});
            pthread_mutex_lock((pthread_mutex_t *)&plan->lock);
        }
        if (code == CL_SUCCESS && !last) before = event;
        if (++piece == pieces) {
            piece = 0;
            i++;
        }
    }
    pthread_mutex_unlock((pthread_mutex_t *)&plan->lock);
    if (before != NULL) clReleaseEvent(before);
    if (code != CL_SUCCESS) return tconv_fail_launch(kernel, bindings, code, call, error);
    if (done != NULL)
        *done = event;
    else if (event != NULL)
        clReleaseEvent(event);
    return TCONV_OK;
}

static tconv_status check_filter(const tconv_plan *plan, const tconv_tensors *tensors,
                                 tconv_error *error)
{
    const tconv_packed_filter *filter = tensors->packed;
    if (tconv_is_given(&tensors->filter))
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "tensors.filter is given, but plans read packed filters: pack it, and "
                          "give tensors.packed instead");
    if (filter == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "tensors.packed is NULL");
    const tconv_device *device = filter->plan->device;
    const tconv_status status = tconv_check_context(plan, "tensors.packed", device->context, error);
    if (status != TCONV_OK) return status;
    if (device->id != plan->device->id)
        return tconv_fail(error, TCONV_ERROR_MISMATCH,
                          "tensors.packed belongs to another device than the plan");
    if (filter->plan != plan &&
        strcmp(filter->plan->kernel_plan.layout, plan->kernel_plan.layout) != 0)
        return tconv_fail(error, TCONV_ERROR_MISMATCH,
                          "tensors.packed is packed as \"%s\", but this plan reads \"%s\"",
                          filter->plan->kernel_plan.layout, plan->kernel_plan.layout);
    if (!atomic_load(&((tconv_packed_filter *)filter)->packed))
        return tconv_fail(
            error, TCONV_ERROR_ARGUMENT,
            "tensors.packed was never packed: call tconv_packed_filter_enqueue_pack first");
    return TCONV_OK;
}

/* A buffer of the arguments besides filter and workspace. */
struct argument {
    enum tconv_arg arg;
    const char *name, *option;
    const tconv_tensor *tensor;
    uint64_t bytes; /* 0: one element for each output channel */
    cl_mem_flags use;
    const char *steps; /* the member that may give steps, or NULL */
    enum tconv_spaced spaced;
    struct tconv_place *place;
};

enum { ARGUMENTS = 7 }; /* the output is the last one */

/* Where a tensor with steps reaches, for a sentence. */
struct reach {
    char text[160];
};

static struct reach reach_of(const tconv_plan *plan, const struct argument *a)
{
    struct reach reach = {""};
    if (a->steps == NULL || !plan->has_steps[a->spaced]) return reach;
    const struct tconv_view *view = &plan->view[a->spaced];
    const int axis = tconv_view_longest(view);
    snprintf(reach.text, sizeof reach.text, ": %s is %lld at axis %d, whose extent is %lld",
             a->steps, (long long)view->step[axis], axis, (long long)view->extent[axis]);
    return reach;
}

/* Checks one of them, and finds its place, which stays empty if no kernel uses it. */
static tconv_status check_argument(const tconv_plan *plan, const struct argument *a,
                                   tconv_error *error)
{
    const size_t unit = tconv_arg_unit(&plan->request, plan->candidate.algorithm->packing, a->arg);
    const uint64_t channels = (uint64_t)(plan->loops.groups * plan->loops.out_channels);
    const uint64_t bytes = a->bytes != 0 ? a->bytes : channels * unit;
    if (!tconv_arg_used(&plan->epilogue, a->arg)) {
        if (!tconv_is_given(a->tensor)) return TCONV_OK;
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "%s is given, but the plan's epilogue was made without it: see its "
                          "member %s",
                          a->name, a->option);
    }
    return tconv_place_find(
        plan,
        &(struct tconv_wanted){a->name, a->tensor, a->use, unit, bytes, reach_of(plan, a).text},
        a->place, error);
}

/* Finds the place of the workspace, which stays empty if there is none. */
static tconv_status check_workspace(const tconv_plan *plan, const tconv_tensor *workspace,
                                    struct tconv_place *place, tconv_error *error)
{
    const uint64_t bytes = plan->kernel_plan.workspace_bytes;
    if (bytes == 0) return TCONV_OK;
    const size_t unit =
        tconv_arg_unit(&plan->request, plan->candidate.algorithm->packing, TCONV_ARG_WORKSPACE);
    return tconv_place_find(
        plan,
        &(struct tconv_wanted){"tensors.workspace", workspace, CL_MEM_READ_WRITE, unit, bytes, ""},
        place, error);
}

/* True if the tensor and the output share no element, although their ranges overlap. */
static bool lies_between(const tconv_plan *plan, const struct argument *output,
                         const struct argument *a)
{
    if (a->steps == NULL || (!plan->has_steps[a->spaced] && !plan->has_steps[TCONV_SPACED_OUTPUT]))
        return false;
    const tconv_type type = a->spaced == TCONV_SPACED_DATA ? plan->loops.data_type
                                                           : plan->loops.output_type;
    const struct tconv_placed own = {&plan->view[a->spaced], a->place->begin,
                                     tconv_type_size(type)},
                              written = {&plan->view[TCONV_SPACED_OUTPUT], output->place->begin,
                                         tconv_type_size(plan->loops.output_type)};
    return tconv_placed_apart(&written, &own);
}

/* Output and workspace must not overlap each other or what is read. */
static tconv_status check_overlaps(const tconv_plan *plan, const struct argument *arguments,
                                   const struct tconv_bindings *bindings, tconv_error *error)
{
    const struct argument *last = &arguments[ARGUMENTS - 1];
    const struct tconv_place *workspace = &bindings->place[TCONV_ARG_WORKSPACE],
                             *filter = &bindings->place[TCONV_ARG_FILTER];
    tconv_status status =
        tconv_place_apart("tensors.output", last->place, "tensors.packed", filter, error);
    if (status == TCONV_OK)
        status = tconv_place_apart("tensors.workspace", workspace, "tensors.packed", filter, error);
    for (size_t i = 0; i < ARGUMENTS && status == TCONV_OK; i++) {
        const struct argument *a = &arguments[i];
        status = tconv_place_apart("tensors.workspace", workspace, a->name, a->place, error);
        if (status == TCONV_OK && a != last && !lies_between(plan, last, a))
            status = tconv_place_apart("tensors.output", last->place, a->name, a->place, error);
    }
    return status;
}

/* Checks the tensors of an execution that has something to compute, and finds their places. */
static tconv_status bind_tensors(const tconv_plan *plan, const tconv_tensors *tensors,
                                 struct tconv_bindings *bindings, tconv_error *error)
{
    struct tconv_place *place = bindings->place;
    const struct argument arguments[ARGUMENTS] = {
        {TCONV_ARG_DATA, "tensors.data", NULL, &tensors->data, plan->geometry.data_bytes,
         CL_MEM_READ_ONLY, "data_steps", TCONV_SPACED_DATA, &place[TCONV_ARG_DATA]},
        {TCONV_ARG_BIAS, "tensors.bias", "bias", &tensors->bias, 0, CL_MEM_READ_ONLY, NULL, 0,
         &place[TCONV_ARG_BIAS]},
        {TCONV_ARG_SCALE, "tensors.scale", "scale", &tensors->scale, 0, CL_MEM_READ_ONLY, NULL, 0,
         &place[TCONV_ARG_SCALE]},
        {TCONV_ARG_SLOPE, "tensors.slope", "activation", &tensors->slope, 0, CL_MEM_READ_ONLY, NULL,
         0, &place[TCONV_ARG_SLOPE]},
        {TCONV_ARG_SLOPE2, "tensors.slope2", "activation", &tensors->slope2, 0, CL_MEM_READ_ONLY,
         NULL, 0, &place[TCONV_ARG_SLOPE2]},
        {TCONV_ARG_RESIDUAL, "tensors.residual", "residual", &tensors->residual,
         plan->geometry.residual_bytes, CL_MEM_READ_ONLY, "residual_steps", TCONV_SPACED_RESIDUAL,
         &place[TCONV_ARG_RESIDUAL]},
        {TCONV_ARG_OUTPUT, "tensors.output", NULL, &tensors->output, plan->geometry.output_bytes,
         plan->epilogue.beta != 0 ? CL_MEM_READ_WRITE : CL_MEM_WRITE_ONLY, "output_steps",
         TCONV_SPACED_OUTPUT, &place[TCONV_ARG_OUTPUT]},
    };
    tconv_status status = TCONV_OK;
    for (size_t i = 0; i < ARGUMENTS && status == TCONV_OK; i++)
        if (arguments[i].arg != TCONV_ARG_DATA || plan->geometry.data_bytes > 0)
            status = check_argument(plan, &arguments[i], error);
    place[TCONV_ARG_FLAGS] = place[TCONV_ARG_FILTER] = tensors->packed->place;
    if (status == TCONV_OK)
        status = check_workspace(plan, &tensors->workspace, &place[TCONV_ARG_WORKSPACE], error);
    if (status == TCONV_OK) status = check_overlaps(plan, arguments, bindings, error);
    return status;
}

tconv_status tconv_bind_arguments(const tconv_plan *plan, const tconv_tensors *given,
                                  struct tconv_bindings *bindings, tconv_error *error)
{
    tconv_tensors tensors = TCONV_TENSORS_INIT;
    tconv_status status = tconv_struct_read(TCONV_SIZED_TENSORS, given, &tensors, error);
    if (status != TCONV_OK || plan->geometry.batch == 0) return status;
    status = check_filter(plan, &tensors, error);
    return status == TCONV_OK ? bind_tensors(plan, &tensors, bindings, error) : status;
}

/* Enqueues the launches of kernels that read images, which live until the launches have ended. */
static tconv_status enqueue_with_images(const tconv_plan *plan, cl_command_queue queue,
                                        struct tconv_bindings *bindings, cl_uint wait_count,
                                        const cl_event *wait, cl_event *done, tconv_error *error)
{
    struct tconv_images *images = NULL;
    cl_event event = NULL;
    tconv_status status = tconv_images_make(plan, bindings, &images, error);
    if (status != TCONV_OK) return status;
    status = tconv_enqueue_launches(plan, plan->kernel_plan.run, plan->run,
                                    plan->kernel_plan.run_count, queue, bindings, wait_count, wait,
                                    &event, error);
    /* Launches in front of the one that failed may still run. */
    if (status != TCONV_OK && clEnqueueMarkerWithWaitList(queue, 0, NULL, &event) != CL_SUCCESS)
        event = NULL;
    tconv_images_release_after(images, event);
    if (status == TCONV_OK && done != NULL)
        *done = event;
    else if (event != NULL)
        clReleaseEvent(event);
    return status;
}

tconv_status tconv_plan_enqueue(const tconv_plan *plan, cl_command_queue queue,
                                const tconv_tensors *tensors, cl_uint wait_count,
                                const cl_event *wait, cl_event *done, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (plan == NULL || tensors == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          plan == NULL ? "plan" : "tensors");
    struct tconv_bindings bindings = {0};
    tconv_status status;
    if ((status = tconv_process_enter(error)) != TCONV_OK ||
        (status = tconv_check_order(plan, queue, wait_count, wait, error)) != TCONV_OK ||
        (status = tconv_bind_arguments(plan, tensors, &bindings, error)) != TCONV_OK)
        return status;
    if (plan->geometry.batch ==
        0) /* nothing to read or write, but there is still an order to keep */
        return tconv_enqueue_launches(plan, NULL, NULL, 0, queue, NULL, wait_count, wait, done,
                                      error);
    if (plan->no_image != NULL)
        return enqueue_with_images(plan, queue, &bindings, wait_count, wait, done, error);
    return tconv_enqueue_launches(plan, plan->kernel_plan.run, plan->run,
                                  plan->kernel_plan.run_count, queue, &bindings, wait_count, wait,
                                  done, error);
}

/* ---- packed filters ---- */

tconv_status tconv_packed_filter_create(tconv_plan *plan, const tconv_tensor *storage,
                                        tconv_packed_filter **out, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (plan == NULL || out == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL", plan == NULL ? "plan" : "out");
    tconv_status status = tconv_process_enter(error);
    if (status != TCONV_OK) return status;
    const size_t bytes = (size_t)plan->kernel_plan.filter_bytes;
    struct tconv_place place = {.end = bytes};
    if (storage != NULL) {
        const struct tconv_wanted wanted = {"storage",        storage, CL_MEM_READ_WRITE,
                                            FILTER_ALIGNMENT, bytes,   ""};
        status = tconv_place_find(plan, &wanted, &place, error);
        if (status != TCONV_OK) return status;
    }
    tconv_packed_filter *filter = calloc(1, sizeof *filter);
    if (filter == NULL) return tconv_fail_memory(error, sizeof *filter, "creating a filter");
    cl_int code = CL_SUCCESS;
    if (storage == NULL)
        place.whole = place.memory =
            clCreateBuffer(plan->device->context, CL_MEM_READ_WRITE, bytes, NULL, &code);
    else if (place.memory != NULL)
        code = clRetainMemObject(place.memory);
    if (code != CL_SUCCESS) {
        free(filter);
        return tconv_fail_opencl(error, code,
                                 storage != NULL ? "clRetainMemObject" : "clCreateBuffer",
                                 "creating a packed filter of %zu bytes", bytes);
    }
    tconv_plan_retain(plan);
    filter->plan = plan;
    filter->place = place;
    atomic_init(&filter->packed, false);
    atomic_init(&filter->owners, 1);
    *out = filter;
    return TCONV_OK;
}

/* Makes a buffer for the equivalent filter, which lasts as long as it is packed. */
static tconv_status bind_equivalent(const tconv_plan *plan, struct tconv_bindings *bindings,
                                    tconv_error *error)
{
    const struct tconv_equivalent *e = &plan->loops.equivalent;
    if (e->axes == 0 || plan->candidate.algorithm->packs_given) return TCONV_OK;
    const uint64_t bytes =
        (uint64_t)e->elements *
        tconv_arg_unit(&plan->request, plan->candidate.algorithm->packing, TCONV_ARG_EQUIVALENT);
    if (bytes > plan->info.allocation_limit)
        return tconv_fail(
            error, TCONV_ERROR_DEVICE_MEMORY,
            "packing: the equivalent filter needs %llu bytes, but %s allows %llu in a "
            "buffer",
            (unsigned long long)bytes, plan->info.name,
            (unsigned long long)plan->info.allocation_limit);
    cl_int code;
    const cl_mem memory =
        clCreateBuffer(plan->device->context, CL_MEM_READ_WRITE, (size_t)bytes, NULL, &code);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clCreateBuffer",
                                 "packing: the equivalent filter needs %llu bytes",
                                 (unsigned long long)bytes);
    bindings->place[TCONV_ARG_EQUIVALENT] =
        (struct tconv_place){.memory = memory, .whole = memory, .end = bytes};
    return TCONV_OK;
}

tconv_status tconv_bind_weights(tconv_packed_filter *filter, const tconv_tensor *weights,
                                struct tconv_bindings *bindings, tconv_error *error)
{
    const tconv_plan *plan = filter->plan;
    struct tconv_place *from = &bindings->place[TCONV_ARG_WEIGHTS];
    const struct tconv_wanted wanted = {
        "weights",
        weights,
        CL_MEM_READ_ONLY,
        tconv_arg_unit(&plan->request, plan->candidate.algorithm->packing, TCONV_ARG_WEIGHTS),
        plan->geometry.filter_bytes,
        ""};
    bindings->place[TCONV_ARG_FLAGS] = bindings->place[TCONV_ARG_FILTER] = filter->place;
    tconv_status status;
    if ((status = tconv_place_find(plan, &wanted, from, error)) != TCONV_OK ||
        (status = tconv_place_apart("filter", &filter->place, "weights", from, error)) != TCONV_OK)
        return status;
    return bind_equivalent(plan, bindings, error);
}

void tconv_unbind_weights(const struct tconv_bindings *bindings)
{
    const cl_mem equivalent = bindings->place[TCONV_ARG_EQUIVALENT].memory;
    if (equivalent != NULL) clReleaseMemObject(equivalent);
}

tconv_status tconv_packed_filter_enqueue_pack(tconv_packed_filter *filter, cl_command_queue queue,
                                              const tconv_tensor *weights, cl_uint wait_count,
                                              const cl_event *wait, cl_event *done,
                                              tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (filter == NULL || weights == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          filter == NULL ? "filter" : "weights");
    const tconv_plan *plan = filter->plan;
    struct tconv_bindings bindings = {0};
    tconv_status status;
    if ((status = tconv_process_enter(error)) != TCONV_OK ||
        (status = tconv_check_order(plan, queue, wait_count, wait, error)) != TCONV_OK ||
        (status = tconv_bind_weights(filter, weights, &bindings, error)) != TCONV_OK)
        return status;
    status = tconv_enqueue_launches(plan, plan->kernel_plan.pack, plan->pack,
                                    plan->kernel_plan.pack_count, queue, &bindings, wait_count,
                                    wait, done, error);
    tconv_unbind_weights(&bindings);
    if (status == TCONV_OK) atomic_store(&filter->packed, true);
    return status;
}

bool tconv_packed_filter_fits(const tconv_packed_filter *filter, const tconv_plan *plan)
{
    return filter != NULL && plan != NULL &&
           filter->plan->device->context == plan->device->context &&
           filter->plan->device->id == plan->device->id &&
           strcmp(filter->plan->kernel_plan.layout, plan->kernel_plan.layout) == 0;
}

void tconv_packed_filter_retain(tconv_packed_filter *filter)
{
    if (filter != NULL) atomic_fetch_add(&filter->owners, 1);
}

void tconv_packed_filter_release(tconv_packed_filter *filter)
{
    TCONV_WITHOUT_CANCELLATION;
    if (filter == NULL || atomic_fetch_sub(&filter->owners, 1) > 1 || tconv_process_forked())
        return;
    if (filter->place.memory != NULL) clReleaseMemObject(filter->place.memory);
    tconv_plan_release(filter->plan);
    free(filter);
}
