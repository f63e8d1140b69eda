/* SPDX-License-Identifier: Apache-2.0 */
/* Command buffers of cl_khr_command_buffer, as an application makes and enqueues them. */
#ifndef TCONV_DEVICE_TESTS_RECORDER_H
#define TCONV_DEVICE_TESTS_RECORDER_H

#include "tconv_cl/tconv_cl.h"

#include <string.h>

typedef struct _cl_command_buffer_khr *recording;

/* The calls; NULL: the device has no command buffers. */
struct recorder {
    recording(CL_API_CALL *create)(cl_uint, const cl_command_queue *, const cl_bitfield *,
                                   cl_int *);
    cl_int(CL_API_CALL *finalize)(recording);
    cl_int(CL_API_CALL *release)(recording);
    cl_int(CL_API_CALL *enqueue)(cl_uint, cl_command_queue *, recording, cl_uint, const cl_event *,
                                 cl_event *);
};

static inline bool recorder_find(cl_device_id device, struct recorder *r)
{
    static char extensions[20000];
    cl_platform_id platform = NULL;
    memset(r, 0, sizeof *r);
    clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL);
    clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof extensions - 1, extensions, NULL);
    if (strstr(extensions, "cl_khr_command_buffer") == NULL) return false;
    const struct {
        const char *name;
        void *call;
    } calls[] = {{"clCreateCommandBufferKHR", &r->create},
                 {"clFinalizeCommandBufferKHR", &r->finalize},
                 {"clReleaseCommandBufferKHR", &r->release},
                 {"clEnqueueCommandBufferKHR", &r->enqueue}};
    for (int i = 0; i < 4; i++) {
        void *address = clGetExtensionFunctionAddressForPlatform(platform, calls[i].name);
        memcpy(calls[i].call, &address, sizeof address);
    }
    return r->create != NULL;
}

#endif
