/* SPDX-License-Identifier: Apache-2.0 */
/* Enqueues a plan: checks the caller's arguments, then enqueues the kernel plan's launches one
 * after another. Allocates nothing. */
#include "plan/plan_internal.h"
#include "plan/plan_trace.h"

#include "base/cancel.h"
#include "base/error.h"
#include "base/process.h"
#include "base/struct_size.h"
#include "device/device.h"

#include <stdio.h>
#include <string.h>

static tconv_status check_context(const tconv_plan *plan, const char *argument, cl_context context,
                                  tconv_error *error)
{
    if (context == tconv_device_context(plan->device)) return TCONV_OK;
    return tconv_fail(error, TCONV_ERROR_MISMATCH, "%s belongs to another context than the plan",
                      argument);
}

/* Checks that `device` is the plan's device or a part of it: programs built for the whole device
 * run on its parts. */
static tconv_status check_device(const tconv_plan *plan, const char *argument, cl_device_id device,
                                 tconv_error *error)
{
    const cl_device_id own = tconv_device_id_of(plan->device);
    cl_int code = CL_SUCCESS;
    while (code == CL_SUCCESS && device != own && device != NULL) {
        cl_device_id whole = NULL;
        code = clGetDeviceInfo(device, CL_DEVICE_PARENT_DEVICE, sizeof whole, &whole, NULL);
        device = whole;
    }
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clGetDeviceInfo",
                                 "reading which device the one of %s is a part of", argument);
    if (device == own) return TCONV_OK;
    return tconv_fail(error, TCONV_ERROR_MISMATCH, "%s belongs to another device than the plan",
                      argument);
}

tconv_status tconv_check_buffer(const tconv_plan *plan, const char *argument,
                                const tconv_buffer *buffer, uint64_t bytes, const char *why,
                                size_t unit, cl_mem_flags use, tconv_error *error)
{
    if (buffer->memory == NULL)
        return tconv_fail(error, TCONV_ERROR_BUFFER, "%s is missing: %llu bytes are needed",
                          argument, (unsigned long long)bytes);
    if (buffer->offset % unit != 0)
        return tconv_fail(error, TCONV_ERROR_BUFFER,
                          "%s begins at byte %zu, which is not a multiple of %zu", argument,
                          buffer->offset, unit);
    size_t size = 0;
    cl_context context = NULL;
    cl_mem_object_type type = 0;
    cl_mem_flags flags = 0;
    cl_int code = clGetMemObjectInfo(buffer->memory, CL_MEM_SIZE, sizeof size, &size, NULL);
    if (code == CL_SUCCESS)
        code = clGetMemObjectInfo(buffer->memory, CL_MEM_CONTEXT, sizeof context, &context, NULL);
    if (code == CL_SUCCESS)
        code = clGetMemObjectInfo(buffer->memory, CL_MEM_TYPE, sizeof type, &type, NULL);
    if (code == CL_SUCCESS)
        code = clGetMemObjectInfo(buffer->memory, CL_MEM_FLAGS, sizeof flags, &flags, NULL);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clGetMemObjectInfo", "reading what %s is", argument);
    if (type != CL_MEM_OBJECT_BUFFER)
        return tconv_fail(error, TCONV_ERROR_BUFFER, "%s is an image, not a buffer", argument);
    if ((use != CL_MEM_WRITE_ONLY && (flags & CL_MEM_WRITE_ONLY) != 0) ||
        (use != CL_MEM_READ_ONLY && (flags & CL_MEM_READ_ONLY) != 0))
        return tconv_fail(
            error, TCONV_ERROR_BUFFER, "%s was made with %s, but kernels %s it", argument,
            (flags & CL_MEM_READ_ONLY) != 0 ? "CL_MEM_READ_ONLY" : "CL_MEM_WRITE_ONLY",
            use == CL_MEM_READ_ONLY    ? "read"
            : use == CL_MEM_WRITE_ONLY ? "write"
                                       : "read and write");
    if (size < buffer->offset || size - buffer->offset < bytes)
        return tconv_fail(
            error, TCONV_ERROR_BUFFER,
            "%s is too small: its buffer has %zu bytes, but %llu are needed from byte %zu on%s",
            argument, size, (unsigned long long)bytes, buffer->offset, why);
    return check_context(plan, argument, context, error);
}

/* Refuses an event that has already failed: PoCL never ends what is enqueued behind it. */
static tconv_status check_state(cl_event event, cl_uint index, tconv_error *error)
{
    cl_int state = CL_QUEUED;
    const cl_int code =
        clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clGetEventInfo",
                                 "reading the state of event %u of the wait list", index);
    return state >= CL_COMPLETE ? TCONV_OK
                                : tconv_fail_opencl(error, state, "the command of the event",
                                                    "event %u of the wait list has failed", index);
}

tconv_status tconv_check_queue(const tconv_plan *plan, cl_command_queue queue, cl_uint wait_count,
                               const cl_event *wait, tconv_error *error)
{
    if (queue == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "queue is NULL");
    if ((wait_count == 0) != (wait == NULL))
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "the wait list is %s, but its count is %u",
                          wait == NULL ? "NULL" : "given", wait_count);
    cl_context context = NULL;
    cl_device_id device = NULL;
    cl_int code = clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
    if (code == CL_SUCCESS)
        code = clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, NULL);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clGetCommandQueueInfo",
                                 "reading context and device of the queue");
    tconv_status status = check_context(plan, "queue", context, error);
    if (status == TCONV_OK) status = check_device(plan, "queue", device, error);
    for (cl_uint i = 0; i < wait_count && status == TCONV_OK; i++) {
        if (wait[i] == NULL)
            return tconv_fail(error, TCONV_ERROR_ARGUMENT, "event %u of the wait list is NULL", i);
        code = clGetEventInfo(wait[i], CL_EVENT_CONTEXT, sizeof context, &context, NULL);
        if (code != CL_SUCCESS)
            return tconv_fail_opencl(error, code, "clGetEventInfo",
                                     "reading the context of event %u of the wait list", i);
        status = check_context(plan, "an event of the wait list", context, error);
        if (status == TCONV_OK) status = check_state(wait[i], i, error);
    }
    return status;
}

/* Sets the arguments of one launch; plan->lock is held. Returns the first code that is not
 * CL_SUCCESS. */
static cl_int set_arguments(const tconv_plan *plan, const struct tconv_launch *launch,
                            cl_kernel kernel, const struct tconv_bindings *bindings)
{
    cl_uint index = 0;
    cl_int code = CL_SUCCESS;
    for (int i = 0; i < launch->arg_count && code == CL_SUCCESS; i++) {
        const enum tconv_arg arg = launch->args[i];
        if (!tconv_arg_used(&plan->epilogue, arg)) continue;
        if (arg == TCONV_ARG_TABLE) {
            code = clSetKernelArg(kernel, index++, sizeof plan->table, &plan->table);
            continue;
        }
        if (arg == TCONV_ARG_LOCAL) {
            code = clSetKernelArg(kernel, index++, launch->local_bytes, NULL);
            continue;
        }
        const tconv_buffer *buffer = &bindings->buffer[arg]; /* without memory: NULL */
        const size_t unit = tconv_arg_unit(&plan->request, plan->candidate.algorithm->packing, arg);
        const cl_ulong offset = buffer->offset / unit;
        code = clSetKernelArg(kernel, index++, sizeof buffer->memory, &buffer->memory);
        if (code == CL_SUCCESS) code = clSetKernelArg(kernel, index++, sizeof offset, &offset);
    }
    return code;
}

/* Bytes of all buffers that launches are bound to, for the message of a launch that fails for lack
 * of memory: many devices allocate a buffer only when a kernel first uses it. */
static uint64_t bytes_of(const struct tconv_bindings *bindings)
{
    enum { COUNT = sizeof bindings->buffer / sizeof *bindings->buffer };
    uint64_t bytes = 0;
    for (int i = 0; i < COUNT; i++) {
        cl_mem memory = bindings->buffer[i].memory;
        bool counted = memory == NULL;
        for (int j = 0; j < i; j++) counted = counted || bindings->buffer[j].memory == memory;
        size_t size = 0;
        if (!counted &&
            clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof size, &size, NULL) == CL_SUCCESS)
            bytes += size;
    }
    return bytes;
}

/* Piece number `piece` of a launch. */
static struct tconv_piece piece_of(const struct tconv_launch *launch, int piece)
{
    const size_t *global = launch->global;
    const size_t pieces = (size_t)launch->pieces, number = (size_t)piece;
    const size_t groups = launch->global[0] / launch->local[0];
    const size_t begin = groups / pieces * number + groups % pieces * number / pieces,
                 end = groups / pieces * (number + 1) + groups % pieces * (number + 1) / pieces;
    if (pieces == 1) return (struct tconv_piece){{0}, {global[0], global[1], global[2]}};
    return (struct tconv_piece){{begin * launch->local[0], 0, 0},
                                {(end - begin) * launch->local[0], global[1], global[2]}};
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
        const struct tconv_piece extents = piece_of(&launches[i], piece);
        const uint64_t begin = traced ? tconv_trace_now() : 0;
        kernel = launches[i].kernel;
        call = "clSetKernelArg";
        if (piece == 0 || traced) code = set_arguments(plan, &launches[i], kernels[i], bindings);
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
            tconv_trace_launch(plan, &launches[i], piece, &extents, queue, event, begin);
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
    if (code != CL_SUCCESS && bindings != NULL)
        return tconv_fail_opencl(error, code, call, "enqueueing %s on buffers of %llu bytes in all",
                                 kernel, (unsigned long long)bytes_of(bindings));
    if (code != CL_SUCCESS) return tconv_fail_opencl(error, code, call, "enqueueing %s", kernel);
    if (done != NULL)
        *done = event;
    else if (event != NULL)
        clReleaseEvent(event);
    return TCONV_OK;
}

static tconv_status check_filter(const tconv_plan *plan, const tconv_packed_filter *filter,
                                 tconv_error *error)
{
    if (filter == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "args.filter is NULL");
    const tconv_device *device = filter->plan->device;
    const tconv_status status =
        check_context(plan, "args.filter", tconv_device_context(device), error);
    if (status != TCONV_OK) return status;
    if (tconv_device_id_of(device) != tconv_device_id_of(plan->device))
        return tconv_fail(error, TCONV_ERROR_MISMATCH,
                          "args.filter belongs to another device than the plan");
    if (filter->plan != plan &&
        strcmp(filter->plan->kernel_plan.layout, plan->kernel_plan.layout) != 0)
        return tconv_fail(error, TCONV_ERROR_MISMATCH,
                          "args.filter is packed as \"%s\", but this plan reads \"%s\"",
                          filter->plan->kernel_plan.layout, plan->kernel_plan.layout);
    if (!atomic_load(&((tconv_packed_filter *)filter)->packed))
        return tconv_fail(
            error, TCONV_ERROR_ARGUMENT,
            "args.filter was never packed: call tconv_packed_filter_enqueue_pack first");
    return TCONV_OK;
}

tconv_status tconv_find_range(const char *argument, const tconv_buffer *buffer, uint64_t bytes,
                              struct tconv_range *range, tconv_error *error)
{
    cl_mem whole = NULL;
    size_t offset = 0;
    cl_int code =
        clGetMemObjectInfo(buffer->memory, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof whole, &whole, NULL);
    if (code == CL_SUCCESS && whole != NULL)
        code = clGetMemObjectInfo(buffer->memory, CL_MEM_OFFSET, sizeof offset, &offset, NULL);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clGetMemObjectInfo",
                                 "reading which part of a buffer %s is", argument);
    range->memory = whole != NULL ? whole : buffer->memory;
    range->begin = (uint64_t)offset + buffer->offset;
    range->end = range->begin + bytes;
    return TCONV_OK;
}

tconv_status tconv_check_overlap(const char *written, const struct tconv_range *a,
                                 const char *argument, const struct tconv_range *b,
                                 tconv_error *error)
{
    if (a->memory != b->memory || a->end <= b->begin || b->end <= a->begin) return TCONV_OK;
    return tconv_fail(error, TCONV_ERROR_BUFFER,
                      "%s overlaps %s: they are bytes %llu to %llu and %llu to %llu of one buffer",
                      written, argument, (unsigned long long)a->begin, (unsigned long long)a->end,
                      (unsigned long long)b->begin, (unsigned long long)b->end);
}

/* A buffer of the arguments besides filter and workspace. */
struct argument {
    enum tconv_arg arg;
    const char *name, *option;
    const tconv_buffer *buffer;
    uint64_t bytes; /* 0: one element for each output channel */
    cl_mem_flags use;
    const char *steps; /* the member that may give steps, or NULL */
    enum tconv_spaced spaced;
    struct tconv_range range;
};

enum { ARGUMENTS = 6 }; /* the output is the last one */

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

/* Checks one of them, and finds its range, which stays empty if no kernel uses it. */
static tconv_status check_argument(const tconv_plan *plan, struct argument *a, tconv_error *error)
{
    const size_t unit = tconv_arg_unit(&plan->request, plan->candidate.algorithm->packing, a->arg);
    const uint64_t channels = (uint64_t)(plan->layer.groups * plan->layer.out_channels);
    const uint64_t bytes = a->bytes != 0 ? a->bytes : channels * unit;
    if (!tconv_arg_used(&plan->epilogue, a->arg)) {
        if (a->buffer->memory == NULL) return TCONV_OK;
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "%s is given, but the plan's epilogue was made without it: see its "
                          "member %s",
                          a->name, a->option);
    }
    const tconv_status status = tconv_check_buffer(plan, a->name, a->buffer, bytes,
                                                   reach_of(plan, a).text, unit, a->use, error);
    if (status != TCONV_OK) return status;
    return tconv_find_range(a->name, a->buffer, bytes, &a->range, error);
}

/* Finds the range of the workspace, which stays empty if there is none. */
static tconv_status check_workspace(const tconv_plan *plan, const tconv_buffer *workspace,
                                    struct tconv_range *range, tconv_error *error)
{
    const uint64_t bytes = plan->kernel_plan.workspace_bytes;
    if (bytes == 0) return TCONV_OK;
    const size_t unit =
        tconv_arg_unit(&plan->request, plan->candidate.algorithm->packing, TCONV_ARG_WORKSPACE);
    const tconv_status status = tconv_check_buffer(plan, "args.workspace", workspace, bytes, "",
                                                   unit, CL_MEM_READ_WRITE, error);
    if (status != TCONV_OK) return status;
    return tconv_find_range("args.workspace", workspace, bytes, range, error);
}

/* True if the tensor and the output share no element, although their ranges overlap. */
static bool lies_between(const tconv_plan *plan, const struct argument *output,
                         const struct argument *a)
{
    if (a->steps == NULL || (!plan->has_steps[a->spaced] && !plan->has_steps[TCONV_SPACED_OUTPUT]))
        return false;
    const tconv_type type = a->spaced == TCONV_SPACED_DATA ? plan->layer.data_type
                                                           : plan->layer.output_type;
    const struct tconv_placed own = {&plan->view[a->spaced], a->range.begin, tconv_type_size(type)},
                              written = {&plan->view[TCONV_SPACED_OUTPUT], output->range.begin,
                                         tconv_type_size(plan->layer.output_type)};
    return tconv_placed_apart(&written, &own);
}

/* Output and workspace must not overlap each other or what is read. */
static tconv_status check_overlaps(const tconv_plan *plan, const struct argument *arguments,
                                   const struct tconv_range *filter,
                                   const struct tconv_range *workspace, tconv_error *error)
{
    const struct argument *last = &arguments[ARGUMENTS - 1];
    const struct tconv_range *output = &last->range;
    tconv_status status = tconv_check_overlap("args.output", output, "args.filter", filter, error);
    if (status == TCONV_OK)
        status = tconv_check_overlap("args.workspace", workspace, "args.filter", filter, error);
    for (size_t i = 0; i < ARGUMENTS && status == TCONV_OK; i++) {
        const struct argument *a = &arguments[i];
        status = tconv_check_overlap("args.workspace", workspace, a->name, &a->range, error);
        if (status == TCONV_OK && a != last && !lies_between(plan, last, a))
            status = tconv_check_overlap("args.output", output, a->name, &a->range, error);
    }
    return status;
}

tconv_status tconv_plan_enqueue(const tconv_plan *plan, cl_command_queue queue,
                                const tconv_args *given, cl_uint wait_count, const cl_event *wait,
                                cl_event *done, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (plan == NULL || given == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          plan == NULL ? "plan" : "args");
    tconv_args own = TCONV_ARGS_INIT;
    const tconv_args *args = &own;
    tconv_status status;
    if ((status = tconv_struct_read(TCONV_SIZED_ARGS, given, &own, error)) != TCONV_OK ||
        (status = tconv_process_enter(error)) != TCONV_OK ||
        (status = tconv_check_queue(plan, queue, wait_count, wait, error)) != TCONV_OK ||
        (status = check_filter(plan, args->filter, error)) != TCONV_OK)
        return status;
    if (plan->geometry.batch ==
        0) /* nothing to read or write, but there is still an order to keep */
        return tconv_enqueue_launches(plan, NULL, NULL, 0, queue, NULL, wait_count, wait, done,
                                      error);

    const uint64_t outputs = plan->geometry.output_bytes;
    struct argument arguments[ARGUMENTS] = {
        {TCONV_ARG_DATA,
         "args.data",
         NULL,
         &args->data,
         plan->geometry.data_bytes,
         CL_MEM_READ_ONLY,
         "data_steps",
         TCONV_SPACED_DATA,
         {0}},
        {TCONV_ARG_BIAS, "args.bias", "bias", &args->bias, 0, CL_MEM_READ_ONLY, NULL, 0, {0}},
        {TCONV_ARG_SCALE, "args.scale", "scale", &args->scale, 0, CL_MEM_READ_ONLY, NULL, 0, {0}},
        {TCONV_ARG_SLOPE,
         "args.slope",
         "activation",
         &args->slope,
         0,
         CL_MEM_READ_ONLY,
         NULL,
         0,
         {0}},
        {TCONV_ARG_RESIDUAL,
         "args.residual",
         "residual",
         &args->residual,
         plan->geometry.residual_bytes,
         CL_MEM_READ_ONLY,
         "residual_steps",
         TCONV_SPACED_RESIDUAL,
         {0}},
        {TCONV_ARG_OUTPUT,
         "args.output",
         NULL,
         &args->output,
         outputs,
         plan->epilogue.beta != 0 ? CL_MEM_READ_WRITE : CL_MEM_WRITE_ONLY,
         "output_steps",
         TCONV_SPACED_OUTPUT,
         {0}},
    };
    struct tconv_range filter, workspace = {NULL, 0, 0};
    struct tconv_bindings bindings = {0};
    for (size_t i = 0; i < ARGUMENTS; i++) {
        if (arguments[i].arg == TCONV_ARG_DATA && plan->geometry.data_bytes == 0)
            continue; /* read by nobody */
        if ((status = check_argument(plan, &arguments[i], error)) != TCONV_OK) return status;
        bindings.buffer[arguments[i].arg] = *arguments[i].buffer;
    }
    bindings.buffer[TCONV_ARG_FILTER] = (tconv_buffer){args->filter->memory, args->filter->offset};
    if ((status = check_workspace(plan, &args->workspace, &workspace, error)) != TCONV_OK ||
        (status = tconv_find_range("args.filter", &bindings.buffer[TCONV_ARG_FILTER],
                                   plan->kernel_plan.filter_bytes, &filter, error)) != TCONV_OK ||
        (status = check_overlaps(plan, arguments, &filter, &workspace, error)) != TCONV_OK)
        return status;
    bindings.buffer[TCONV_ARG_FLAGS] = bindings.buffer[TCONV_ARG_FILTER];
    bindings.buffer[TCONV_ARG_WORKSPACE] = args->workspace;
    return tconv_enqueue_launches(plan, plan->kernel_plan.run, plan->run,
                                  plan->kernel_plan.run_count, queue, &bindings, wait_count, wait,
                                  done, error);
}
