/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes: queues with buffers for the arrays of one call, kept by their device object for later
 * calls. */
#include "device/lane.h"

#include "base/error.h"
#include "device/device.h"
#include "tconv_cl/plan.h"

#include <stdlib.h>
#include <string.h>

struct tconv_lane {
    struct tconv_lane *next; /* idle ones only */
    tconv_device *device;
    cl_command_queue queue;
    cl_mem buffer[TCONV_ROLES]; /* the lane's own */
    uint64_t size[TCONV_ROLES];
    cl_mem in_place[TCONV_ROLES]; /* buffers over the caller's arrays */
};

static const char *const names[TCONV_ROLES] = {
    "data",     "the filter", "the bias",          "the scale",    "the slope", "the second slope",
    "residual", "the output", "the packed filter", "the workspace"};

tconv_status tconv_lane_take(tconv_device *device, struct tconv_lane **out, tconv_error *error)
{
    pthread_mutex_lock(&device->lock);
    struct tconv_lane *lane = device->lanes;
    if (lane != NULL) device->lanes = lane->next;
    pthread_mutex_unlock(&device->lock);
    if (lane == NULL) {
        lane = calloc(1, sizeof *lane);
        if (lane == NULL) return tconv_fail_memory(error, sizeof *lane, "making a queue");
        cl_int code;
        lane->device = device;
        lane->queue = clCreateCommandQueue(device->context, device->id, 0, &code);
        if (code != CL_SUCCESS) {
            free(lane);
            return tconv_fail_opencl(error, code, "clCreateCommandQueue", "running a layer");
        }
    }
    *out = lane;
    return TCONV_OK;
}

static void release_buffers(struct tconv_lane *lane)
{
    for (int role = 0; role < TCONV_ROLES; role++) {
        if (lane->buffer[role] != NULL) clReleaseMemObject(lane->buffer[role]);
        lane->buffer[role] = NULL;
        lane->size[role] = 0;
    }
}

void tconv_lane_give_back(struct tconv_lane *lane)
{
    tconv_device *device = lane->device;
    clFinish(lane->queue);
    for (int role = 0; role < TCONV_ROLES; role++) {
        if (lane->in_place[role] != NULL) clReleaseMemObject(lane->in_place[role]);
        lane->in_place[role] = NULL;
    }
    pthread_mutex_lock(&device->lock);
    lane->next = device->lanes;
    device->lanes = lane;
    pthread_mutex_unlock(&device->lock);
}

void tconv_lanes_release(tconv_device *device)
{
    pthread_mutex_lock(&device->lock);
    struct tconv_lane *first = device->lanes, *next;
    device->lanes = NULL;
    pthread_mutex_unlock(&device->lock);
    for (struct tconv_lane *lane = first; lane != NULL; lane = next) {
        next = lane->next;
        release_buffers(lane);
        clReleaseCommandQueue(lane->queue);
        free(lane);
    }
}

cl_command_queue tconv_lane_queue(const struct tconv_lane *lane)
{
    return lane->queue;
}

tconv_status tconv_lane_finish(struct tconv_lane *lane, tconv_error *error)
{
    const cl_int code = clFinish(lane->queue);
    return code == CL_SUCCESS ? TCONV_OK
                              : tconv_fail_opencl(error, code, "clFinish", "running a layer");
}

tconv_status tconv_lane_space(struct tconv_lane *lane, enum tconv_role role, uint64_t bytes,
                              cl_mem *out, tconv_error *error)
{
    if (lane->size[role] < bytes) {
        if (lane->buffer[role] != NULL) clReleaseMemObject(lane->buffer[role]);
        lane->size[role] = 0;
        cl_int code;
        lane->buffer[role] =
            clCreateBuffer(lane->device->context, CL_MEM_READ_WRITE, (size_t)bytes, NULL, &code);
        if (code != CL_SUCCESS) {
            lane->buffer[role] = NULL;
            return tconv_fail_opencl(error, code, "clCreateBuffer",
                                     "%s needs %llu bytes on the device", names[role],
                                     (unsigned long long)bytes);
        }
        lane->size[role] = bytes;
    }
    *out = lane->buffer[role];
    return TCONV_OK;
}

/* Tries to make a buffer over the array. True if the lane now has one. */
static bool use_in_place(struct tconv_lane *lane, enum tconv_role role, void *array, uint64_t bytes,
                         size_t element, cl_mem_flags access)
{
    const size_t alignment = lane->device->in_place;
    if (alignment == 0 || (uintptr_t)array % alignment != 0 || (uintptr_t)array % element != 0)
        return false;
    cl_int code;
    cl_mem buffer = clCreateBuffer(lane->device->context, access | CL_MEM_USE_HOST_PTR,
                                   (size_t)bytes, array, &code);
    if (code != CL_SUCCESS) return false;
    if (lane->in_place[role] != NULL) clReleaseMemObject(lane->in_place[role]);
    lane->in_place[role] = buffer;
    return true;
}

static tconv_status copy_up(struct tconv_lane *lane, enum tconv_role role, const void *source,
                            uint64_t bytes, cl_mem *out, tconv_error *error)
{
    const tconv_status status = tconv_lane_space(lane, role, bytes, out, error);
    if (status != TCONV_OK) return status;
    const cl_int code =
        clEnqueueWriteBuffer(lane->queue, *out, CL_FALSE, 0, (size_t)bytes, source, 0, NULL, NULL);
    return code == CL_SUCCESS ? TCONV_OK
                              : tconv_fail_opencl(error, code, "clEnqueueWriteBuffer",
                                                  "uploading %s needs %llu bytes on the device",
                                                  names[role], (unsigned long long)bytes);
}

tconv_status tconv_lane_upload(struct tconv_lane *lane, enum tconv_role role, const void *source,
                               uint64_t bytes, size_t element, bool alone, cl_mem *out,
                               tconv_error *error)
{
    if (!alone ||
        !use_in_place(lane, role, (void *)(uintptr_t)source, bytes, element, CL_MEM_READ_ONLY))
        return copy_up(lane, role, source, bytes, out, error);
    *out = lane->in_place[role];
    return TCONV_OK;
}

tconv_status tconv_lane_output(struct tconv_lane *lane, void *target, uint64_t bytes,
                               size_t element, bool read, cl_mem *out, tconv_error *error)
{
    const enum tconv_role role = TCONV_ROLE_OUTPUT;
    if (use_in_place(lane, role, target, bytes, element, CL_MEM_READ_WRITE)) {
        *out = lane->in_place[role];
        return TCONV_OK;
    }
    return read ? copy_up(lane, role, target, bytes, out, error)
                : tconv_lane_space(lane, role, bytes, out, error);
}

/* Maps and unmaps the output's buffer: OpenCL guarantees the contents of an array in place only
 * after a map (open.c tries devices that need none). Both commands are enqueued without a wait
 * between them, because each wait takes microseconds. */
static cl_int map_output(struct tconv_lane *lane, void *target, uint64_t bytes,
                         const struct tconv_view *view, size_t element, cl_event *unmapped,
                         const char **call)
{
    cl_mem buffer = lane->in_place[TCONV_ROLE_OUTPUT];
    cl_int code;
    *call = "clEnqueueMapBuffer";
    void *mapped = clEnqueueMapBuffer(lane->queue, buffer, CL_FALSE, CL_MAP_READ, 0, (size_t)bytes,
                                      0, NULL, NULL, &code);
    if (code != CL_SUCCESS) return code;
    if (mapped != target) { /* a map in place must return the array itself */
        *call = "clFinish";
        if ((code = clFinish(lane->queue)) != CL_SUCCESS) return code;
        tconv_view_copy(view, element, mapped, target);
    }
    *call = "clEnqueueUnmapMemObject";
    code = clEnqueueUnmapMemObject(lane->queue, buffer, mapped, 0, NULL, unmapped);
    if (code == CL_INVALID_VALUE) { /* rusticl takes the unmap only when the map has completed */
        clFinish(lane->queue);
        code = clEnqueueUnmapMemObject(lane->queue, buffer, mapped, 0, NULL, unmapped);
    }
    return code;
}

/* Reads an output with steps by way of an array of its own. */
static tconv_status read_elements(struct tconv_lane *lane, void *target, uint64_t bytes,
                                  const struct tconv_view *view, size_t element, cl_int *code,
                                  tconv_error *error)
{
    void *all = malloc((size_t)bytes);
    if (all == NULL)
        return tconv_fail_memory(error, (size_t)bytes, "downloading an output that has steps");
    *code = clEnqueueReadBuffer(lane->queue, lane->buffer[TCONV_ROLE_OUTPUT], CL_TRUE, 0,
                                (size_t)bytes, all, 0, NULL, NULL);
    if (*code == CL_SUCCESS) tconv_view_copy(view, element, all, target);
    free(all);
    return TCONV_OK;
}

tconv_status tconv_lane_download(struct tconv_lane *lane, void *target, uint64_t bytes,
                                 const struct tconv_view *view, size_t element, tconv_error *error)
{
    const bool in_place = lane->in_place[TCONV_ROLE_OUTPUT] != NULL;
    if (in_place && lane->device->stores_at_once) return tconv_lane_finish(lane, error);
    const char *call = "clEnqueueReadBuffer";
    cl_event done = NULL;
    cl_int code = CL_SUCCESS;
    tconv_status status = TCONV_OK;
    if (in_place)
        code = map_output(lane, target, bytes, view, element, &done, &call);
    else if (tconv_view_is_dense(view))
        code = clEnqueueReadBuffer(lane->queue, lane->buffer[TCONV_ROLE_OUTPUT], CL_TRUE, 0,
                                   (size_t)bytes, target, 0, NULL, NULL);
    else
        status = read_elements(lane, target, bytes, view, element, &code, error);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, call, "downloading the output of %llu bytes",
                                 (unsigned long long)bytes);
    if (!in_place) return status;
    status = tconv_wait(done, error);
    clReleaseEvent(done);
    return status;
}
