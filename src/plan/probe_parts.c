/* SPDX-License-Identifier: Apache-2.0 */
/* What all probes share: a queue, buffers, and verdicts that the device keeps. See probe_parts.h.
 */
#include "plan/probe_parts.h"

#include "base/error.h"
#include "device/device.h"

#include <string.h>

tconv_status tconv_probe_buffer(const tconv_device *device, size_t bytes, void *numbers,
                                cl_mem *memory, tconv_error *error)
{
    cl_int code;
    *memory = clCreateBuffer(tconv_device_context(device),
                             numbers == NULL ? 0 : CL_MEM_COPY_HOST_PTR, bytes, numbers, &code);
    if (code == CL_SUCCESS) return TCONV_OK;
    *memory = NULL;
    return tconv_fail_opencl(error, code, "clCreateBuffer", "creating a buffer of %zu bytes",
                             bytes);
}

tconv_status tconv_probe_queue(const tconv_device *device, cl_command_queue *queue,
                               tconv_error *error)
{
    cl_int code;
    *queue =
        clCreateCommandQueue(tconv_device_context(device), tconv_device_id_of(device), 0, &code);
    if (code == CL_SUCCESS) return TCONV_OK;
    *queue = NULL;
    return tconv_fail_opencl(error, code, "clCreateCommandQueue", "creating a queue");
}

tconv_status tconv_probe_read(const struct tconv_probe *p, void *output, size_t bytes,
                              tconv_error *error)
{
    const cl_int code =
        clEnqueueReadBuffer(p->queue, p->output, CL_TRUE, 0, bytes, output, 0, NULL, NULL);
    if (code == CL_SUCCESS) return TCONV_OK;
    return tconv_fail_opencl(error, code, "clEnqueueReadBuffer",
                             "reading a small problem's result");
}

void tconv_probe_clear(struct tconv_probe *p)
{
    if (p->queue != NULL) clFinish(p->queue);
    const cl_mem buffers[] = {p->data, p->weights, p->output, p->workspace};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (buffers[i] != NULL) clReleaseMemObject(buffers[i]);
    tconv_packed_filter_release(p->filter);
    if (p->queue != NULL) clReleaseCommandQueue(p->queue);
    tconv_plan_release(p->plan);
}

atomic_int *tconv_probe_verdict(tconv_device *device, const char *name, bool *known, bool *right,
                                tconv_error *error)
{
    atomic_int *verdict = tconv_device_verdict(device, name);
    if (verdict == NULL) {
        tconv_fail_memory(error, strlen(name) + 1, "keeping the verdict of a probe");
        return NULL;
    }
    const int found = atomic_load(verdict);
    *known = found != 0;
    *right = found > 0;
    return verdict;
}

tconv_status tconv_probe_keep(atomic_int *verdict, tconv_status status, const tconv_error *own,
                              const struct tconv_retry *retry, bool *right, tconv_error *error)
{
    if (status != TCONV_OK && !tconv_kernel_is_unfit(own)) return tconv_fail_with(error, own);
    *right = status == TCONV_OK && *right;
    if (status == TCONV_OK || !retry->unsure) atomic_store(verdict, *right ? 1 : -1);
    return TCONV_OK;
}
