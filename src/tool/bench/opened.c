/* SPDX-License-Identifier: Apache-2.0 */
/* Opens devices. */
#include "tool/bench/opened.h"

#include <stdio.h>

tconv_status device_open(int number, struct opened *opened, tconv_error *error)
{
    *opened = (struct opened){.number = number};
    const tconv_status status = tconv_device_open(number, &opened->device, error);
    if (status != TCONV_OK) return status;
    cl_int code;
    const cl_command_queue queue = clCreateCommandQueue(tconv_device_context(opened->device),
                                                        tconv_device_id(opened->device), 0, &code);
    if (code == CL_SUCCESS) {
        opened->queue = queue;
        return TCONV_OK;
    }
    *error = (tconv_error){.status = TCONV_ERROR_OPENCL, .opencl_code = code};
    snprintf(error->message, sizeof error->message,
             "device %d gives no queue: clCreateCommandQueue failed (OpenCL code %d)", number,
             code);
    device_close(opened);
    return error->status;
}

void device_close(struct opened *opened)
{
    if (opened->queue != NULL) clReleaseCommandQueue(opened->queue);
    tconv_device_release(opened->device);
    *opened = (struct opened){.device = NULL};
}
