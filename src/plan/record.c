/* SPDX-License-Identifier: Apache-2.0 */
/* Records a plan: appends the kernel plan's launches to a command buffer of the application's
 * (cl_khr_command_buffer).
 *
 * Each recording has kernel objects of its own, whose arguments nobody sets again: PoCL 3.1 reads
 * the arguments not when a launch is recorded, but when the command buffer is enqueued. The command
 * buffer keeps the kernel objects. */
#include "plan/plan_internal.h"

#include "base/cancel.h"
#include "base/error.h"
#include "base/process.h"
#include "device/device.h"
#include "device/extensions.h"
#include "device/processor.h"

#include <string.h>

/* True if a command buffer's only queue, as it answers, is this one. PoCL 3.1 answers with the
 * place where it keeps the queue. */
static bool is_queue(const tconv_plan *plan, cl_command_queue answer, cl_command_queue queue)
{
    return answer == queue || (strcmp(plan->info.platform, TCONV_POCL) == 0 && answer != NULL &&
                               *(const cl_command_queue *)(const void *)answer == queue);
}

static tconv_status check_command_buffer(const tconv_plan *plan,
                                         struct _cl_command_buffer_khr *command_buffer,
                                         cl_command_queue queue, tconv_error *error)
{
    const struct tconv_extensions *e = tconv_device_extensions(plan->device);
    if (command_buffer == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "command_buffer is NULL");
    if (!e->command_buffers)
        return tconv_fail(error, TCONV_ERROR_DEVICE,
                          "command_buffer cannot be recorded: %s has no cl_khr_command_buffer",
                          plan->info.name);
    const tconv_status status = tconv_check_queue(plan, "queue", queue, error);
    if (status != TCONV_OK) return status;
    cl_uint queues = 0, state = 0;
    cl_command_queue answer = NULL;
    cl_int code = e->clGetCommandBufferInfoKHR(command_buffer, TCONV_CL_COMMAND_BUFFER_NUM_QUEUES,
                                               sizeof queues, &queues, NULL);
    if (code == CL_SUCCESS)
        code = e->clGetCommandBufferInfoKHR(command_buffer, TCONV_CL_COMMAND_BUFFER_STATE,
                                            sizeof state, &state, NULL);
    if (code == CL_SUCCESS && queues == 1)
        code = e->clGetCommandBufferInfoKHR(command_buffer, TCONV_CL_COMMAND_BUFFER_QUEUES,
                                            sizeof(cl_command_queue), &answer, NULL);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clGetCommandBufferInfoKHR",
                                 "reading queue and state of command_buffer");
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

/* Makes another kernel object of the same kernel. */
static cl_int make_again(cl_kernel kernel, const char *name, cl_kernel *made, const char **call)
{
    cl_program program = NULL;
    *call = "clGetKernelInfo";
    cl_int code = clGetKernelInfo(kernel, CL_KERNEL_PROGRAM, sizeof(cl_program), &program, NULL);
    if (code != CL_SUCCESS) return code;
    *call = "clCreateKernel";
    *made = clCreateKernel(program, name, &code);
    return code;
}

/* Records one launch, each piece behind the one before. `last` is what it waits for, and becomes
 * what waits for it. */
static cl_int record_launch(const tconv_plan *plan, const struct tconv_launch *launch,
                            cl_kernel kernel, struct _cl_command_buffer_khr *command_buffer,
                            const struct tconv_bindings *bindings, cl_uint wait_count,
                            const cl_uint *wait, cl_uint *last, const char **call)
{
    const struct tconv_extensions *e = tconv_device_extensions(plan->device);
    cl_kernel own = NULL;
    cl_int code = make_again(kernel, launch->kernel, &own, call);
    if (code == CL_SUCCESS) code = tconv_set_arguments(plan, launch, own, bindings, call);
    for (int piece = 0; piece < launch->pieces && code == CL_SUCCESS; piece++) {
        size_t offset[3], global[3];
        const cl_uint before = *last;
        const bool first = piece == 0;
        tconv_launch_piece(launch, piece, offset, global);
        *call = "clCommandNDRangeKernelKHR";
        code = e->clCommandNDRangeKernelKHR(
            command_buffer, NULL, NULL, own, 3, launch->pieces == 1 ? NULL : offset, global,
            launch->local, first ? wait_count : 1, first ? wait : &before, last, NULL);
    }
    if (own != NULL) clReleaseKernel(own);
    return code;
}

tconv_status tconv_plan_record(const tconv_plan *plan,
                               struct _cl_command_buffer_khr *command_buffer,
                               cl_command_queue queue, const tconv_args *args, uint32_t wait_count,
                               const uint32_t *wait, uint32_t *done, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (plan == NULL || args == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          plan == NULL ? "plan" : "args");
    if ((wait_count == 0) != (wait == NULL))
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "the wait list is %s, but its count is %u",
                          wait == NULL ? "NULL" : "given", wait_count);
    struct tconv_bindings bindings = {0};
    tconv_status status;
    if ((status = tconv_process_enter(error)) != TCONV_OK ||
        (status = check_command_buffer(plan, command_buffer, queue, error)) != TCONV_OK ||
        (status = tconv_bind_arguments(plan, args, &bindings, error)) != TCONV_OK)
        return status;
    if (plan->geometry.batch == 0) { /* there is nothing to record */
        if (done == NULL) return TCONV_OK;
        return tconv_fail(error, TCONV_ERROR_UNSUPPORTED,
                          "the plan's batch is 0, so that nothing is recorded that has a sync "
                          "point: let done be NULL");
    }
    cl_uint last = 0;
    const char *call = "";
    for (int i = 0; i < plan->kernel_plan.run_count; i++) {
        const struct tconv_launch *launch = &plan->kernel_plan.run[i];
        const cl_uint before = last;
        const cl_int code = record_launch(plan, launch, plan->run[i], command_buffer, &bindings,
                                          i == 0 ? wait_count : 1, i == 0 ? wait : &before, &last,
                                          &call);
        if (code != CL_SUCCESS)
            return tconv_fail_opencl(error, code, call, "recording %s", launch->kernel);
    }
    if (done != NULL) *done = last;
    return TCONV_OK;
}
