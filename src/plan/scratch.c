/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of zeros on which plans run. */
#include "plan/scratch.h"

#include "base/error.h"
#include "base/os.h"
#include "device/device.h"
#include "plan/shares.h"

enum { NUMBER_BYTES = 8 }; /* the widest element of a bias, a scale or a slope */

/* Makes a buffer of zeros. False if it cannot be allocated. */
static bool make_buffer(const tconv_plan *plan, const struct tconv_scratch *scratch, uint64_t bytes,
                        cl_mem *buffer)
{
    const cl_uint zero = 0;
    const size_t size = ((size_t)bytes + sizeof zero - 1) / sizeof zero * sizeof zero;
    cl_int code;
    if (bytes > plan->info.allocation_limit) return false;
    *buffer =
        clCreateBuffer(tconv_device_context(plan->device), CL_MEM_READ_WRITE, size, NULL, &code);
    if (code != CL_SUCCESS) *buffer = NULL;
    return code == CL_SUCCESS && clEnqueueFillBuffer(scratch->queue, *buffer, &zero, sizeof zero, 0,
                                                     size, 0, NULL, NULL) == CL_SUCCESS;
}

bool tconv_scratch_make(const tconv_plan *plan, struct tconv_scratch *scratch)
{
    const tconv_geometry *g = &plan->geometry;
    const uint64_t channels = (uint64_t)(g->groups * g->group_out_channels) * NUMBER_BYTES;
    cl_int code;
    *scratch = (struct tconv_scratch){.queue = NULL};
    scratch->queue = clCreateCommandQueue(tconv_device_context(plan->device),
                                          tconv_device_id(plan->device), 0, &code);
    if (code != CL_SUCCESS) scratch->queue = NULL;
    return code == CL_SUCCESS && make_buffer(plan, scratch, g->data_bytes, &scratch->data) &&
           make_buffer(plan, scratch, g->filter_bytes, &scratch->weights) &&
           make_buffer(plan, scratch, g->output_bytes, &scratch->output) &&
           make_buffer(plan, scratch, channels, &scratch->channels) &&
           (!plan->epilogue.residual ||
            make_buffer(plan, scratch, g->residual_bytes, &scratch->residual));
}

void tconv_scratch_free(struct tconv_scratch *scratch)
{
    if (scratch->queue != NULL) clFinish(scratch->queue);
    const cl_mem buffers[] = {scratch->data,      scratch->weights,  scratch->output,
                              scratch->workspace, scratch->channels, scratch->residual};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (buffers[i] != NULL) clReleaseMemObject(buffers[i]);
    if (scratch->queue != NULL) clReleaseCommandQueue(scratch->queue);
}

static bool make_workspace(const tconv_plan *plan, struct tconv_scratch *scratch, uint64_t bytes)
{
    if (bytes <= scratch->workspace_bytes) return true;
    if (scratch->workspace != NULL) clReleaseMemObject(scratch->workspace);
    scratch->workspace = NULL;
    scratch->workspace_bytes = 0;
    if (!make_buffer(plan, scratch, bytes, &scratch->workspace)) return false;
    scratch->workspace_bytes = bytes;
    return true;
}

tconv_status tconv_scratch_pack(struct tconv_scratch *scratch, tconv_plan *plan,
                                tconv_packed_filter **filter, tconv_error *error)
{
    const uint64_t workspace = tconv_plan_workspace_bytes(plan);
    if (!make_workspace(plan, scratch, workspace))
        return tconv_fail(error,
                          workspace > plan->info.allocation_limit ? TCONV_ERROR_ALGORITHM
                                                                  : TCONV_ERROR_DEVICE_MEMORY,
                          "no workspace of %llu bytes", (unsigned long long)workspace);
    const tconv_status status = tconv_packed_filter_create(plan, NULL, filter, error);
    if (status != TCONV_OK) return status;
    return tconv_packed_filter_execute(*filter, scratch->queue, NULL,
                                       &(tconv_tensor){.memory = scratch->weights}, error);
}

double tconv_scratch_run(const struct tconv_scratch *scratch, const tconv_plan *plan,
                         const tconv_packed_filter *filter, int times, tconv_error *error)
{
    tconv_tensors tensors = TCONV_TENSORS_INIT;
    tensors.packed = filter;
    tensors.data.memory = scratch->data;
    tensors.output.memory = scratch->output;
    tensors.workspace.memory = scratch->workspace;
    const tconv_epilogue *e = &plan->epilogue;
    if (e->bias) tensors.bias.memory = scratch->channels;
    if (e->scale) tensors.scale.memory = scratch->channels;
    if (tconv_activation_has_slope(e->activation)) tensors.slope.memory = scratch->channels;
    tensors.residual.memory = scratch->residual;
    cl_event done = NULL;
    bool ran = true;
    const double start = tconv_os_seconds();
    for (int i = 0; i < times && ran; i++)
        ran = tconv_plan_execute(plan, scratch->queue, NULL, &tensors, i + 1 < times ? NULL : &done,
                                 error) == TCONV_OK;
    ran = ran && (done == NULL || tconv_wait(done, error) == TCONV_OK);
    const double ms = 1e3 * (tconv_os_seconds() - start) / times;
    if (done != NULL) clReleaseEvent(done);
    return ran ? ms : -1;
}
