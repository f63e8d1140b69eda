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

/* Whether commands take new arguments by the call as it is since version 0.9.2. */
static inline bool recorder_replaces(cl_device_id device)
{
    enum { WITH_VERSION = 0x1060, MOST = 400 }; /* CL_DEVICE_EXTENSIONS_WITH_VERSION */
    static struct {
        cl_uint version;
        char name[64];
    } all[MOST];
    size_t size = 0;
    if (clGetDeviceInfo(device, WITH_VERSION, sizeof all, all, &size) != CL_SUCCESS) return false;
    for (size_t i = 0; i < size / sizeof *all; i++)
        if (strcmp(all[i].name, "cl_khr_command_buffer_mutable_dispatch") == 0)
            return all[i].version >= (9 << 12 | 2);
    return false;
}

/* A command buffer whose commands take new arguments, of a device that has them. */
static inline recording recorder_create_mutable(const struct recorder *r, cl_command_queue queue)
{
    const cl_bitfield properties[] = {0x1293 /* CL_COMMAND_BUFFER_FLAGS_KHR */,
                                      1 << 1 /* CL_COMMAND_BUFFER_MUTABLE_KHR */, 0};
    cl_int code;
    return r->create(1, &queue, properties, &code);
}

/* The same; NULL: the device has none. */
static inline recording recorder_begin_mutable(const struct recorder *r, cl_device_id device,
                                               cl_command_queue queue)
{
    return recorder_replaces(device) ? recorder_create_mutable(r, queue) : NULL;
}

#endif
