/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct lane {
    struct device *device;
    struct lane *next; /* idle ones only */
    cl_command_queue queue;
    cl_mem buffer[ROLES];
    size_t size[ROLES];
    cl_mem wrapped[ROLES]; /* the caller's memory */
};

struct device {
    int number;
    tconv_host *host;
    bool host_memory; /* buffers may lie in the caller's memory: nothing is copied */
    struct device *next;
    pthread_mutex_t mutex; /* of `idle` */
    struct lane *idle;
};

tconv_status fail(tconv_error *error, tconv_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    error->status = status;
    error->opencl_code = 0;
    return status;
}

static tconv_status check(cl_int code, const char *call, tconv_error *error)
{
    if (code == CL_SUCCESS) return TCONV_OK;
    fail(error, TCONV_ERROR_OPENCL, "%s failed with OpenCL code %d", call, (int)code);
    error->opencl_code = code;
    return error->status;
}

static tconv_status make_device(int number, struct device **out, tconv_error *error)
{
    struct device *device = calloc(1, sizeof *device);
    if (device == NULL) return fail(error, TCONV_ERROR_HOST_MEMORY, "no memory for a device");
    const tconv_status status = tconv_host_create(number, &device->host, error);
    if (status != TCONV_OK) {
        free(device);
        return status;
    }
    device->number = number;
    pthread_mutex_init(&device->mutex, NULL);
    device->host_memory = tconv_device_properties(tconv_host_device(device->host))->kind ==
                          TCONV_DEVICE_CPU;
    *out = device;
    return TCONV_OK;
}

tconv_status device_open(int number, struct device **out, tconv_error *error)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static struct device *devices;
    if (number < 0 && tconv_device_default(&number, error) != TCONV_OK) return error->status;
    tconv_status status = TCONV_OK;
    pthread_mutex_lock(&mutex);
    struct device *device = devices;
    while (device != NULL && device->number != number) device = device->next;
    if (device == NULL) {
        status = make_device(number, &device, error);
        if (status == TCONV_OK) {
            device->next = devices;
            devices = device;
        }
    }
    pthread_mutex_unlock(&mutex);
    if (status == TCONV_OK) *out = device;
    return status;
}

tconv_host *device_host(const struct device *device)
{
    return device->host;
}

static tconv_status make_lane(struct device *device, struct lane **out, tconv_error *error)
{
    cl_device_id id;
    cl_int code = clGetCommandQueueInfo(tconv_host_queue(device->host), CL_QUEUE_DEVICE, sizeof id,
                                        &id, NULL);
    if (check(code, "clGetCommandQueueInfo", error) != TCONV_OK) return error->status;
    struct lane *lane = calloc(1, sizeof *lane);
    if (lane == NULL) return fail(error, TCONV_ERROR_HOST_MEMORY, "no memory for a queue");
    lane->device = device;
    lane->queue = clCreateCommandQueue(tconv_host_context(device->host), id, 0, &code);
    if (check(code, "clCreateCommandQueue", error) != TCONV_OK) {
        free(lane);
        return error->status;
    }
    *out = lane;
    return TCONV_OK;
}

tconv_status lane_take(struct device *device, struct lane **out, tconv_error *error)
{
    pthread_mutex_lock(&device->mutex);
    struct lane *lane = device->idle;
    if (lane != NULL) device->idle = lane->next;
    pthread_mutex_unlock(&device->mutex);
    if (lane == NULL) return make_lane(device, out, error);
    *out = lane;
    return TCONV_OK;
}

void lane_give_back(struct lane *lane)
{
    clFinish(lane->queue);
    for (int role = 0; role < ROLES; role++) {
        if (lane->wrapped[role] != NULL) clReleaseMemObject(lane->wrapped[role]);
        lane->wrapped[role] = NULL;
    }
    pthread_mutex_lock(&lane->device->mutex);
    lane->next = lane->device->idle;
    lane->device->idle = lane;
    pthread_mutex_unlock(&lane->device->mutex);
}

cl_command_queue lane_queue(const struct lane *lane)
{
    return lane->queue;
}

tconv_status lane_wait(struct lane *lane, tconv_error *error)
{
    return check(clFinish(lane->queue), "clFinish", error);
}

tconv_status lane_space(struct lane *lane, enum role role, size_t bytes, cl_mem *out,
                        tconv_error *error)
{
    if (lane->size[role] < bytes) {
        if (lane->buffer[role] != NULL) clReleaseMemObject(lane->buffer[role]);
        lane->size[role] = 0;
        cl_int code;
        lane->buffer[role] = clCreateBuffer(tconv_host_context(lane->device->host),
                                            CL_MEM_READ_WRITE, bytes, NULL, &code);
        if (check(code, "clCreateBuffer", error) != TCONV_OK) {
            lane->buffer[role] = NULL;
            return error->status;
        }
        lane->size[role] = bytes;
    }
    *out = lane->buffer[role];
    return TCONV_OK;
}

/* False where the memory is not the device's own. OpenCL wants memory that it is given aligned to the types that kernels access
 * (1.2, appendix C.3), which are single elements; no region is larger than its tensor, so that none overlaps another one. */
static bool wrap(struct lane *lane, enum role role, void *memory, size_t bytes, cl_mem_flags flags)
{
    enum { ALIGNMENT = 8 }; /* of the largest element type */
    if (!lane->device->host_memory || (uintptr_t)memory % ALIGNMENT != 0) return false;
    cl_int code;
    cl_mem buffer = clCreateBuffer(tconv_host_context(lane->device->host),
                                   flags | CL_MEM_USE_HOST_PTR, bytes, memory, &code);
    if (code != CL_SUCCESS) return false;
    lane->wrapped[role] = buffer;
    return true;
}

tconv_status lane_upload(struct lane *lane, enum role role, const void *source, size_t bytes,
                         cl_mem *out, tconv_error *error)
{
    if (wrap(lane, role, (void *)(uintptr_t)source, bytes, CL_MEM_READ_ONLY)) {
        *out = lane->wrapped[role];
        return TCONV_OK;
    }
    if (lane_space(lane, role, bytes, out, error) != TCONV_OK) return error->status;
    return check(clEnqueueWriteBuffer(lane->queue, *out, CL_FALSE, 0, bytes, source, 0, NULL, NULL),
                 "clEnqueueWriteBuffer", error);
}

tconv_status lane_output(struct lane *lane, void *target, size_t bytes, cl_mem *out,
                         tconv_error *error)
{
    if (!wrap(lane, OUTPUT, target, bytes, CL_MEM_READ_WRITE))
        return lane_space(lane, OUTPUT, bytes, out, error);
    *out = lane->wrapped[OUTPUT];
    return TCONV_OK;
}

tconv_status lane_download(struct lane *lane, void *target, size_t bytes, tconv_error *error)
{
    cl_mem wrapped = lane->wrapped[OUTPUT];
    if (wrapped == NULL)
        return check(clEnqueueReadBuffer(lane->queue, lane->buffer[OUTPUT], CL_TRUE, 0, bytes,
                                         target, 0, NULL, NULL),
                     "clEnqueueReadBuffer", error);
    cl_int code;
    void *mapped = clEnqueueMapBuffer(lane->queue, wrapped, CL_TRUE, CL_MAP_READ, 0, bytes, 0, NULL,
                                      NULL, &code);
    if (check(code, "clEnqueueMapBuffer", error) != TCONV_OK) return error->status;
    return check(clEnqueueUnmapMemObject(lane->queue, wrapped, mapped, 0, NULL, NULL),
                 "clEnqueueUnmapMemObject", error);
}
