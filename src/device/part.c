/* SPDX-License-Identifier: Apache-2.0 */
/* Sub-devices. PoCL 3.1 lists only the whole device in a context of sub-devices, builds programs
 * for it, and makes queues for each sub-device. */
#include "base/error.h"
#include "device/device.h"

#include <stdlib.h>

/* The device of a sub-device; NULL: it is a whole one, or does not say. */
static cl_int parent_of(cl_device_id device, cl_device_id *parent)
{
    *parent = NULL;
    return clGetDeviceInfo(device, CL_DEVICE_PARENT_DEVICE, sizeof *parent, parent, NULL);
}

bool tconv_is_part(cl_device_id device)
{
    cl_device_id parent;
    return parent_of(device, &parent) == CL_SUCCESS && parent != NULL;
}

cl_device_id tconv_whole_device(cl_device_id device)
{
    cl_device_id parent;
    while (parent_of(device, &parent) == CL_SUCCESS && parent != NULL) device = parent;
    return device;
}

uint32_t tconv_device_part_units(const tconv_device *device)
{
    return device->part ? device->info.compute_units : 0;
}

cl_int tconv_device_is_part(cl_device_id part, cl_device_id whole, bool *is)
{
    cl_int code = CL_SUCCESS;
    while (code == CL_SUCCESS && part != whole && part != NULL) {
        cl_device_id parent;
        code = parent_of(part, &parent);
        part = parent;
    }
    *is = part == whole;
    return code;
}

size_t tconv_device_place(const cl_device_id *list, size_t count, cl_device_id device)
{
    cl_int code = CL_SUCCESS;
    while (code == CL_SUCCESS && device != NULL) {
        for (size_t i = 0; i < count; i++)
            if (list[i] == device) return i;
        cl_device_id parent;
        code = parent_of(device, &parent);
        device = parent;
    }
    return count;
}

/* Refuses a device that the context does not list, unless it is a sub-device of a listed one for
 * which queues can be made. */
static tconv_status check_unlisted(cl_context context, const cl_device_id *list, size_t count,
                                   cl_device_id device, tconv_error *error)
{
    if (tconv_device_place(list, count, device) == count) {
        bool has_part = false;
        for (size_t i = 0; i < count && !has_part; i++)
            tconv_device_is_part(list[i], device, &has_part);
        return tconv_fail(error, TCONV_ERROR_MISMATCH,
                          "device is not one of the context's devices%s",
                          has_part ? ", which are sub-devices of it: give one of them" : "");
    }
    cl_int code;
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &code);
    if (code == CL_SUCCESS) {
        clReleaseCommandQueue(queue);
        return TCONV_OK;
    }
    if (code != CL_INVALID_DEVICE)
        return tconv_fail_opencl(error, code, "clCreateCommandQueue",
                                 "trying whether the context takes a sub-device of its device");
    return tconv_fail(error, TCONV_ERROR_MISMATCH,
                      "device is a sub-device of one of the context's devices, but not one of "
                      "them, and this OpenCL implementation makes no queue for it in the context: "
                      "give the listed device, or make a context of the sub-device");
}

tconv_status tconv_check_listed(cl_context context, cl_device_id device, tconv_error *error)
{
    static const char doing[] = "reading the devices of the context";
    size_t size = 0;
    cl_int code = clGetContextInfo(context, CL_CONTEXT_DEVICES, 0, NULL, &size);
    if (code != CL_SUCCESS) return tconv_fail_opencl(error, code, "clGetContextInfo", doing);
    cl_device_id *list = malloc(size);
    if (list == NULL) return tconv_fail_memory(error, size, doing);
    const size_t count = size / sizeof *list;
    tconv_status status = TCONV_OK;
    code = clGetContextInfo(context, CL_CONTEXT_DEVICES, size, list, NULL);
    if (code != CL_SUCCESS)
        status = tconv_fail_opencl(error, code, "clGetContextInfo", doing);
    else {
        bool found = false;
        for (size_t i = 0; i < count; i++) found = found || list[i] == device;
        if (!found) status = check_unlisted(context, list, count, device, error);
    }
    free(list);
    return status;
}
