/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the example of two layers in docs/api.md, which install.sh cuts out as decode.h. */
#include <tconv_cl/tconv_cl.h>

#include "decode.h"

#include <stdio.h>

static const size_t numbers[3] = {8 * 16 * 16, 4 * 32 * 32, 2 * 64 * 64};
static float filter[8 * 4 * 2 * 2], output[2 * 64 * 64];

int main(void)
{
    tconv_error error = {0};
    int number;
    cl_platform_id platform;
    cl_device_id id;
    if (tconv_device_default(&number, &error) != TCONV_OK ||
        tconv_device_at(number, &platform, &id, &error) != TCONV_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    cl_context context = clCreateContext(NULL, 1, &id, NULL, NULL, NULL);
    cl_command_queue queue = clCreateCommandQueue(context, id, 0, NULL);
    tconv_tensor tensors[3] = {{NULL, 0, NULL, NULL}, {NULL, 0, NULL, NULL}, {NULL, 0, NULL, NULL}};
    const float one = 1, *const filters[2] = {filter, filter};
    for (size_t i = 0; i < sizeof filter / sizeof *filter; i++) filter[i] = 0.5F;
    for (int i = 0; i < 3; i++) {
        const size_t bytes = numbers[i] * sizeof one;
        tensors[i].memory = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, NULL);
        clEnqueueFillBuffer(queue, tensors[i].memory, &one, sizeof one, 0, bytes, 0, NULL, NULL);
    }
    const tconv_status status = decode(context, id, queue, filters, tensors, &error);
    if (status != TCONV_OK) return fprintf(stderr, "%s\n", error.message), 1;
    clEnqueueReadBuffer(queue, tensors[2].memory, CL_TRUE, 0, sizeof output, output, 0, NULL, NULL);
    for (size_t i = 0; i < numbers[2]; i++)
        if (output[i] != 8 * 0.5F * 4 * 0.5F)
            return fprintf(stderr, "output %zu is %g, not 8\n", i, (double)output[i]), 1;
    for (int i = 0; i < 3; i++) clReleaseMemObject(tensors[i].memory);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    return 0;
}
