/* SPDX-License-Identifier: Apache-2.0 */
/* Queues and tensors on which plans run that nobody asked to compute. */
#include "plan/scratch.h"

#include "base/error.h"
#include "base/os.h"
#include "plan/shares.h"

enum { NUMBER_BYTES = 8 }; /* the widest element of a bias, a scale or a slope */

/* Makes a buffer of `contents`, or of zeros. */
static tconv_status make_buffer(const tconv_plan *plan, const struct tconv_scratch *scratch,
                                uint64_t bytes, void *contents, cl_mem *buffer, tconv_error *error)
{
    const cl_uint zero = 0;
    const size_t size = ((size_t)bytes + sizeof zero - 1) / sizeof zero * sizeof zero;
    const char *call = "clCreateBuffer";
    cl_int code;
    if (bytes > plan->info.allocation_limit)
        return tconv_fail(error, TCONV_ERROR_ALGORITHM, "%s has no buffers of %llu bytes",
                          plan->info.name, (unsigned long long)bytes);
    *buffer = clCreateBuffer(plan->device->context,
                             contents == NULL ? CL_MEM_READ_WRITE : CL_MEM_COPY_HOST_PTR, size,
                             contents, &code);
    if (code != CL_SUCCESS) *buffer = NULL;
    if (code == CL_SUCCESS && contents == NULL) {
        call = "clEnqueueFillBuffer";
        code = clEnqueueFillBuffer(scratch->queue, *buffer, &zero, sizeof zero, 0, size, 0, NULL,
                                   NULL);
    }
    if (code == CL_SUCCESS) return TCONV_OK;
    return tconv_fail_opencl(error, code, call, "creating a buffer of %zu bytes", size);
}

tconv_status tconv_scratch_make(const tconv_plan *plan, const struct tconv_contents *contents,
                                struct tconv_scratch *scratch, tconv_error *error)
{
    const tconv_geometry *g = &plan->geometry;
    const uint64_t channels = (uint64_t)g->epilogue_channels * NUMBER_BYTES;
    const struct tconv_contents none = {NULL, NULL, NULL};
    const struct tconv_contents *c = contents == NULL ? &none : contents;
    const tconv_epilogue *e = &plan->epilogue;
    const struct {
        uint64_t bytes;
        void *contents;
        cl_mem *buffer;
    } tensors[] = {{g->data_bytes, c->data, &scratch->data},
                   {g->filter_bytes, c->weights, &scratch->weights},
                   {g->output_bytes, c->output, &scratch->output},
                   {channels, NULL, &scratch->channels},
                   {g->residual_bytes, NULL, &scratch->residual}};
    cl_int code;
    *scratch = (struct tconv_scratch){.queue = NULL};
    scratch->queue = clCreateCommandQueue(plan->device->context, plan->device->id, 0, &code);
    if (code != CL_SUCCESS) {
        scratch->queue = NULL;
        return tconv_fail_opencl(error, code, "clCreateCommandQueue", "creating a queue");
    }
    tconv_status status = TCONV_OK;
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors && status == TCONV_OK; i++)
        if (tensors[i].buffer != &scratch->residual || e->residual)
            status = make_buffer(plan, scratch, tensors[i].bytes, tensors[i].contents,
                                 tensors[i].buffer, error);
    return status;
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

static tconv_status make_workspace(const tconv_plan *plan, struct tconv_scratch *scratch,
                                   uint64_t bytes, tconv_error *error)
{
    if (bytes <= scratch->workspace_bytes) return TCONV_OK;
    if (scratch->workspace != NULL) clReleaseMemObject(scratch->workspace);
    scratch->workspace = NULL;
    scratch->workspace_bytes = 0;
    const tconv_status status = make_buffer(plan, scratch, bytes, NULL, &scratch->workspace, error);
    if (status == TCONV_OK) scratch->workspace_bytes = bytes;
    return status;
}

tconv_status tconv_scratch_pack(struct tconv_scratch *scratch, tconv_plan *plan,
                                tconv_packed_filter **filter, tconv_error *error)
{
    tconv_status status;
    if ((status = make_workspace(plan, scratch, plan->kernel_plan.workspace_bytes, error)) !=
            TCONV_OK ||
        (status = tconv_packed_filter_create(plan, NULL, filter, error)) != TCONV_OK)
        return status;
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
    if (tconv_activation_slope_count(e->activation) > 1) tensors.slope2.memory = scratch->channels;
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
