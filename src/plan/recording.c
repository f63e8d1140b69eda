/* SPDX-License-Identifier: Apache-2.0 */
/* Records a plan: appends the kernel plan's launches to a command buffer of the application's
 * (cl_khr_command_buffer). A recording is what replaces their tensors later.
 *
 * Each recording has kernel objects of its own, whose arguments nobody sets again: PoCL 3.1 reads
 * the arguments not when a launch is recorded, but when the command buffer is enqueued. The command
 * buffer keeps the kernel objects. */
#include "plan/plan_internal.h"

#include "base/cancel.h"
#include "base/error.h"
#include "base/process.h"
#include "device/recognise.h"
#include "device/trace.h"
#include "plan/place.h"
#include "tconv_cl/recording.h"

#include <stdlib.h>
#include <string.h>

/* A recorded launch, or a piece of one. */
struct command {
    const struct tconv_launch *launch;
    void *handle;
};

/* Where a recording is made. */
struct place {
    struct _cl_command_buffer_khr *command_buffer;
    cl_command_queue queue;
};

struct tconv_recording {
    tconv_plan *plan;
    struct _cl_command_buffer_khr *command_buffer;
    int count;
    struct command commands[];
};

/* True if a command buffer's only queue, as it answers, is this one. PoCL 3.1 answers with the
 * place where it keeps the queue. */
static bool is_queue(const tconv_plan *plan, cl_command_queue answer, cl_command_queue queue)
{
    return answer == queue || (strcmp(plan->info.platform, TCONV_POCL) == 0 && answer != NULL &&
                               *(const cl_command_queue *)(const void *)answer == queue);
}

/* A number that a command buffer tells of itself. */
static tconv_status ask(const tconv_plan *plan, struct _cl_command_buffer_khr *command_buffer,
                        cl_uint what, cl_uint *answer, tconv_error *error)
{
    const cl_int code = plan->device->extensions.clGetCommandBufferInfoKHR(
        command_buffer, what, sizeof *answer, answer, NULL);
    return code == CL_SUCCESS ? TCONV_OK
                              : tconv_fail_opencl(error, code, "clGetCommandBufferInfoKHR",
                                                  "reading queue and state of command_buffer");
}

static tconv_status check_command_buffer(const tconv_plan *plan,
                                         struct _cl_command_buffer_khr *command_buffer,
                                         cl_command_queue queue, tconv_error *error)
{
    const struct tconv_extensions *e = &plan->device->extensions;
    if (command_buffer == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "command_buffer is NULL");
    if (!e->command_buffers)
        return tconv_fail(error, TCONV_ERROR_DEVICE,
                          "command_buffer cannot be recorded: %s has no cl_khr_command_buffer",
                          plan->info.name);
    cl_uint queues = 0, state = 0;
    cl_command_queue answer = NULL;
    tconv_status status = tconv_check_queue(plan, "queue", queue, error);
    if (status == TCONV_OK)
        status = ask(plan, command_buffer, TCONV_CL_COMMAND_BUFFER_NUM_QUEUES, &queues, error);
    if (status == TCONV_OK)
        status = ask(plan, command_buffer, TCONV_CL_COMMAND_BUFFER_STATE, &state, error);
    if (status != TCONV_OK) return status;
    const cl_int code =
        queues != 1 ? CL_SUCCESS
                    : e->clGetCommandBufferInfoKHR(command_buffer, TCONV_CL_COMMAND_BUFFER_QUEUES,
                                                   sizeof(cl_command_queue), &answer, NULL);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clGetCommandBufferInfoKHR",
                                 "reading the queue of command_buffer");
    if (queues != 1)
        return tconv_fail(error, TCONV_ERROR_UNSUPPORTED,
                          "command_buffer has %u queues, but a plan is recorded for one", queues);
    if (!is_queue(plan, answer, queue))
        return tconv_fail(error, TCONV_ERROR_MISMATCH, "command_buffer belongs to another queue");
    if (state != TCONV_CL_COMMAND_BUFFER_RECORDING)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "command_buffer is already finalised (its state is %u): record before "
                          "clFinalizeCommandBufferKHR",
                          state);
    return TCONV_OK;
}

/* Refuses command buffers whose commands take no new arguments. */
static tconv_status check_mutable(const tconv_plan *plan,
                                  struct _cl_command_buffer_khr *command_buffer, tconv_error *error)
{
    const struct tconv_extensions *e = &plan->device->extensions;
    if (!e->new_arguments)
        return tconv_fail(error, TCONV_ERROR_DEVICE,
                          "the tensors of a recording cannot be replaced: %s has no "
                          "cl_khr_command_buffer_mutable_dispatch 0.9.2 for arguments of kernels",
                          plan->info.name);
    enum { MOST = 16 };
    cl_ulong properties[MOST] = {0}, flags = 0;
    const cl_int code = e->clGetCommandBufferInfoKHR(command_buffer,
                                                     TCONV_CL_COMMAND_BUFFER_PROPERTIES_ARRAY,
                                                     sizeof properties, properties, NULL);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clGetCommandBufferInfoKHR",
                                 "reading the properties of command_buffer");
    for (int i = 0; i + 1 < MOST && properties[i] != 0; i += 2)
        if (properties[i] == TCONV_CL_COMMAND_BUFFER_FLAGS) flags = properties[i + 1];
    return (flags & TCONV_CL_COMMAND_BUFFER_MUTABLE) != 0
               ? TCONV_OK
               : tconv_fail(error, TCONV_ERROR_ARGUMENT,
                            "command_buffer was made without CL_COMMAND_BUFFER_MUTABLE_KHR among "
                            "its flags: the tensors of its commands cannot be replaced");
}

/* Records one launch, each piece behind the one before. `last` is what it waits for, and becomes
 * what waits for it. `recording` may be NULL. */
static cl_int record_launch(const tconv_plan *plan, const struct tconv_launch *launch,
                            cl_kernel kernel, const struct place *place,
                            const struct tconv_bindings *bindings, cl_uint wait_count,
                            const cl_uint *wait, cl_uint *last, tconv_recording *recording,
                            const char **call)
{
    static const cl_ulong changes[] = {TCONV_CL_MUTABLE_DISPATCH_UPDATABLE_FIELDS,
                                       TCONV_CL_MUTABLE_DISPATCH_ARGUMENTS, 0};
    const struct tconv_extensions *e = &plan->device->extensions;
    const bool traced = tconv_traced(plan->device, TCONV_TRACE_RECORDING);
    cl_kernel own = NULL;
    uint64_t begin = traced ? tconv_trace_now() : 0;
    cl_int code = tconv_kernel_again(kernel, launch->kernel, &own, call);
    if (code == CL_SUCCESS) code = tconv_set_arguments(plan, launch, own, bindings, call);
    for (int piece = 0; piece < launch->pieces && code == CL_SUCCESS; piece++) {
        const struct tconv_piece extents = tconv_launch_piece(launch, piece);
        const cl_uint before = *last;
        const bool first = piece == 0;
        struct command *command = recording == NULL ? NULL : &recording->commands[recording->count];
        *call = "clCommandNDRangeKernelKHR";
        code = e->clCommandNDRangeKernelKHR(
            place->command_buffer, NULL, command == NULL ? NULL : changes, own, 3,
            launch->pieces == 1 ? NULL : extents.offset, extents.global, launch->local,
            first ? wait_count : 1, first ? wait : &before, last,
            command == NULL ? NULL : &command->handle);
        if (code != CL_SUCCESS) continue;
        if (command != NULL) {
            command->launch = launch;
            recording->count++;
        }
        if (!traced) continue;
        tconv_trace_launch(plan, launch, piece, &extents,
                           (tconv_trace_event){.kind = TCONV_TRACE_RECORDING,
                                               .begin_ns = begin,
                                               .queue = place->queue,
                                               .command_buffer = place->command_buffer});
        begin = tconv_trace_now();
    }
    if (own != NULL) clReleaseKernel(own);
    return code;
}

/* Records all launches. */
static tconv_status record(const tconv_plan *plan, const struct place *place,
                           const struct tconv_bindings *bindings, uint32_t wait_count,
                           const uint32_t *wait, uint32_t *done, tconv_recording *recording,
                           tconv_error *error)
{
    cl_uint last = 0;
    const char *call = "";
    for (int i = 0; i < plan->kernel_plan.run_count; i++) {
        const struct tconv_launch *launch = &plan->kernel_plan.run[i];
        const cl_uint before = last;
        const cl_int code = record_launch(plan, launch, plan->run[i], place, bindings,
                                          i == 0 ? wait_count : 1, i == 0 ? wait : &before, &last,
                                          recording, &call);
        if (code != CL_SUCCESS)
            return tconv_fail_opencl(error, code, call, "recording %s", launch->kernel);
    }
    if (done != NULL) *done = last;
    return TCONV_OK;
}

/* Checks all arguments of a recording. */
static tconv_status check(const tconv_plan *plan, struct _cl_command_buffer_khr *command_buffer,
                          cl_command_queue queue, const tconv_tensors *tensors, uint32_t wait_count,
                          const uint32_t *wait, const uint32_t *done,
                          struct tconv_bindings *bindings, tconv_error *error)
{
    if (plan == NULL || tensors == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          plan == NULL ? "plan" : "tensors");
    tconv_status status;
    if ((status = tconv_check_wait_list(wait_count, wait, error)) != TCONV_OK ||
        (status = tconv_process_enter(error)) != TCONV_OK ||
        (status = check_command_buffer(plan, command_buffer, queue, error)) != TCONV_OK ||
        (status = tconv_bind_arguments(plan, tensors, bindings, error)) != TCONV_OK)
        return status;
    if (plan->geometry.batch > 0 || done == NULL) return TCONV_OK;
    return tconv_fail(error, TCONV_ERROR_UNSUPPORTED,
                      "the plan's batch is 0, so that nothing is recorded that has a sync point: "
                      "let done be NULL");
}

tconv_status tconv_plan_record(const tconv_plan *plan,
                               struct _cl_command_buffer_khr *command_buffer,
                               cl_command_queue queue, const tconv_tensors *tensors,
                               uint32_t wait_count, const uint32_t *wait, uint32_t *done,
                               tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    struct tconv_bindings bindings = {0};
    const tconv_status status =
        check(plan, command_buffer, queue, tensors, wait_count, wait, done, &bindings, error);
    if (status != TCONV_OK || plan->geometry.batch == 0) return status;
    return record(plan, &(struct place){command_buffer, queue}, &bindings, wait_count, wait, done,
                  NULL, error);
}

/* Refuses pointers that new arguments cannot be. */
static tconv_status check_pointers(const tconv_plan *plan, const struct tconv_bindings *bindings,
                                   tconv_error *error)
{
    for (int i = 0; i < TCONV_ARG_TABLE; i++)
        if (bindings->place[i].usm)
            return tconv_fail(error, TCONV_ERROR_UNSUPPORTED,
                              "tensors has pointer %p of cl_intel_unified_shared_memory, but %s "
                              "replaces only buffers and pointers of SVM in a recording",
                              bindings->place[i].pointer, plan->info.name);
    return TCONV_OK;
}

tconv_status tconv_recording_create(tconv_plan *plan, struct _cl_command_buffer_khr *command_buffer,
                                    cl_command_queue queue, const tconv_tensors *tensors,
                                    uint32_t wait_count, const uint32_t *wait, uint32_t *done,
                                    tconv_recording **out, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    struct tconv_bindings bindings = {0};
    tconv_status status;
    if (out == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "out is NULL");
    if ((status = check(plan, command_buffer, queue, tensors, wait_count, wait, done, &bindings,
                        error)) != TCONV_OK ||
        (status = check_mutable(plan, command_buffer, error)) != TCONV_OK ||
        (status = check_pointers(plan, &bindings, error)) != TCONV_OK)
        return status;
    int count = 0;
    for (int i = 0; i < plan->kernel_plan.run_count; i++) count += plan->kernel_plan.run[i].pieces;
    const size_t bytes = sizeof(tconv_recording) + (size_t)count * sizeof(struct command);
    tconv_recording *made = calloc(1, bytes);
    if (made == NULL) return tconv_fail_memory(error, bytes, "making a recording");
    if (plan->geometry.batch > 0)
        status = record(plan, &(struct place){command_buffer, queue}, &bindings, wait_count, wait,
                        done, made, error);
    if (status != TCONV_OK) {
        free(made);
        return status;
    }
    tconv_plan_retain(plan);
    made->plan = plan;
    made->command_buffer = command_buffer;
    *out = made;
    return TCONV_OK;
}

/* The changes of all commands, in one piece of memory: the application may replace tensors in each
 * frame. */
struct changes {
    struct tconv_change change;
    struct tconv_argument list[TCONV_MAX_ARGS];
    struct tconv_new_argument arguments[2 * TCONV_MAX_ARGS], pointers[TCONV_MAX_ARGS];
};

/* Lists the new arguments of a command. */
static void list_changes(const tconv_plan *plan, const struct command *command,
                         const struct tconv_bindings *bindings, struct changes *c)
{
    const int count = tconv_list_arguments(plan, command->launch, bindings, c->list);
    cl_uint arguments = 0, pointers = 0;
    for (int i = 0; i < count; i++) {
        const struct tconv_argument *a = &c->list[i];
        if (a->place == NULL) continue;
        if (a->place->pointer != NULL)
            c->pointers[pointers++] =
                (struct tconv_new_argument){a->index, sizeof a->place->pointer, a->place->pointer};
        else
            c->arguments[arguments++] =
                (struct tconv_new_argument){a->index, sizeof a->place->memory, &a->place->memory};
        c->arguments[arguments++] =
            (struct tconv_new_argument){a->index + 1, sizeof a->first, &a->first};
    }
    c->change = (struct tconv_change){.command = command->handle,
                                      .argument_count = arguments,
                                      .pointer_count = pointers,
                                      .arguments = c->arguments,
                                      .pointers = pointers > 0 ? c->pointers : NULL};
}

tconv_status tconv_recording_update(tconv_recording *recording, const tconv_tensors *tensors,
                                    tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (recording == NULL || tensors == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          recording == NULL ? "recording" : "tensors");
    const tconv_plan *plan = recording->plan;
    struct tconv_bindings bindings = {0};
    cl_uint state = TCONV_CL_COMMAND_BUFFER_RECORDING;
    tconv_status status;
    if ((status = tconv_process_enter(error)) != TCONV_OK ||
        (status = tconv_bind_arguments(plan, tensors, &bindings, error)) != TCONV_OK ||
        (status = check_pointers(plan, &bindings, error)) != TCONV_OK ||
        (status = ask(plan, recording->command_buffer, TCONV_CL_COMMAND_BUFFER_STATE, &state,
                      error)) != TCONV_OK)
        return status;
    if (state == TCONV_CL_COMMAND_BUFFER_RECORDING)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "the recording's command buffer is not finalised yet: replace tensors "
                          "after clFinalizeCommandBufferKHR");
    if (recording->count == 0) return TCONV_OK;
    const size_t count = (size_t)recording->count,
                 bytes = sizeof(struct changes) + sizeof(void *) + sizeof(cl_uint);
    struct changes *changes = calloc(count, bytes);
    if (changes == NULL)
        return tconv_fail_memory(error, count * bytes, "replacing the tensors of a recording");
    const void **list = (const void **)(void *)(changes + count);
    cl_uint *types = (cl_uint *)(void *)(list + count);
    for (size_t i = 0; i < count; i++) {
        list_changes(plan, &recording->commands[i], &bindings, &changes[i]);
        list[i] = &changes[i].change;
        types[i] = TCONV_CL_MUTABLE_DISPATCH_CONFIG;
    }
    const cl_int code = plan->device->extensions.clUpdateMutableCommandsKHR(
        recording->command_buffer, (cl_uint)count, types, list);
    free(changes);
    return code == CL_SUCCESS ? TCONV_OK
                              : tconv_fail_opencl(error, code, "clUpdateMutableCommandsKHR",
                                                  "replacing the tensors of a recording");
}

void tconv_recording_release(tconv_recording *recording)
{
    TCONV_WITHOUT_CANCELLATION;
    if (recording == NULL || tconv_process_forked()) return;
    tconv_plan_release(recording->plan);
    free(recording);
}
