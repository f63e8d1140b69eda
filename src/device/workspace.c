/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of workspaces. A workspace that an execution takes is in no list until it is given back,
 * so under the lock OpenCL is only asked for the states and queues of events. Released buffers live
 * until the commands that use them have ended: OpenCL sees to that. */
#include "device/workspace.h"

#include "base/cancel.h"
#include "base/error.h"
#include "base/process.h"
#include "device/device.h"
#include "device/events.h"
#include "device/lane.h"

#include <stdlib.h>

/* Changes what the pool has in all, workspaces that are taken included. */
static void count(tconv_device *device, int workspaces, uint64_t more, uint64_t less)
{
    pthread_mutex_lock(&device->lock);
    device->workspace_count += workspaces;
    device->workspace_bytes = device->workspace_bytes + more - less;
    pthread_mutex_unlock(&device->lock);
}

/* Releases workspaces that are in no list of the pool any more. */
static void discard(tconv_device *device, struct tconv_workspace *first)
{
    for (struct tconv_workspace *w = first, *next; w != NULL; w = next) {
        next = w->next;
        if (w->memory != NULL) clReleaseMemObject(w->memory);
        if (w->last != NULL) clReleaseEvent(w->last);
        count(device, -1, 0, w->bytes);
        free(w);
    }
}

/* The state of the last execution, for a new one on `queue`: CL_COMPLETE if the new one need not
 * wait for it. The pool does not retain queues itself: rusticl (Mesa 22.3) loses commands behind a
 * user event if one owner of several releases their queue. */
static cl_int state_of(const struct tconv_workspace *w, cl_command_queue queue, bool in_order)
{
    cl_int state = CL_QUEUED;
    if (w->last == NULL || (in_order && tconv_event_queue(w->last) == queue)) return CL_COMPLETE;
    return tconv_event_state(w->last, &state) == CL_SUCCESS ? state : CL_QUEUED;
}

/* Takes a workspace out of the list. In this order: the smallest that is free and large enough; one
 * that is free; none, if the pool may have another one; the least recently used one, of those that
 * are large enough if there are any. Without `grow` only one that is large enough. NULL: none.
 * Workspaces whose execution failed are forgotten: Intel's runtime for CPUs executes it anyway, at
 * an unknown time. */
static struct tconv_workspace *pick(tconv_device *device, uint64_t bytes, cl_command_queue queue,
                                    bool in_order, bool grow)
{
    struct tconv_workspace *failed = NULL, **fits = NULL, **small = NULL, **busy_fits = NULL,
                           **busy = NULL, **chosen = NULL, *picked = NULL;
    pthread_mutex_lock(&device->lock);
    for (struct tconv_workspace **link = &device->workspaces; *link != NULL;) {
        struct tconv_workspace *w = *link;
        const cl_int state = state_of(w, queue, in_order);
        const bool large = w->bytes >= bytes;
        if (state < 0) {
            *link = w->next;
            w->next = failed;
            failed = w;
            continue;
        }
        if (state == CL_COMPLETE && large) {
            if (fits == NULL || w->bytes < (*fits)->bytes) fits = link;
        } else if (state == CL_COMPLETE)
            small = link;
        else if (large)
            busy_fits = link; /* the last one was used least recently */
        else
            busy = link;
        link = &w->next;
    }
    const bool more = grow && device->workspace_count < TCONV_MOST_WORKSPACES;
    if (fits != NULL)
        chosen = fits;
    else if (grow && small != NULL)
        chosen = small;
    else if (!more && busy_fits != NULL)
        chosen = busy_fits;
    else if (!more && grow)
        chosen = busy;
    if (chosen != NULL) {
        picked = *chosen;
        *chosen = picked->next;
        picked->next = NULL;
    }
    pthread_mutex_unlock(&device->lock);
    discard(device, failed);
    if (picked != NULL) picked->waits = chosen != fits && chosen != small;
    return picked;
}

/* Replaces the buffer by one of `bytes`. */
static tconv_status grow(tconv_device *device, struct tconv_workspace *w, uint64_t bytes,
                         tconv_error *error)
{
    if (w->memory != NULL) clReleaseMemObject(w->memory);
    count(device, 0, 0, w->bytes);
    w->bytes = 0;
    cl_int code;
    w->memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE, (size_t)bytes, NULL, &code);
    if (code != CL_SUCCESS) {
        w->memory = NULL;
        return tconv_fail_opencl(error, code, "clCreateBuffer",
                                 "creating a workspace of %llu bytes", (unsigned long long)bytes);
    }
    w->bytes = bytes;
    w->waits = false; /* nobody else uses the new buffer */
    count(device, 0, bytes, 0);
    return TCONV_OK;
}

tconv_status tconv_workspace_take(tconv_device *device, uint64_t bytes, cl_command_queue queue,
                                  struct tconv_workspace **out, tconv_error *error)
{
    cl_command_queue_properties properties = 0;
    const cl_int code =
        clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clGetCommandQueueInfo",
                                 "reading the properties of the queue");
    const bool in_order = (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0;
    struct tconv_workspace *w = pick(device, bytes, queue, in_order, true);
    if (w == NULL) {
        w = calloc(1, sizeof *w);
        if (w == NULL) return tconv_fail_memory(error, sizeof *w, "making a workspace");
        count(device, 1, 0, 0);
    }
    tconv_error own;
    if (w->bytes < bytes && grow(device, w, bytes, &own) != TCONV_OK) {
        discard(device, w);
        w = pick(device, bytes, queue, in_order, false); /* is there one to wait for? */
        if (w == NULL) return tconv_fail_with(error, &own);
    }
    if (w->waits) tconv_event_flush(w->last); /* on a queue that nobody may have flushed */
    *out = w;
    return TCONV_OK;
}

/* It becomes the first of the list. If the list then has too many, the last one goes. */
void tconv_workspace_give_back_unused(tconv_device *device, struct tconv_workspace *w)
{
    struct tconv_workspace *surplus = NULL;
    pthread_mutex_lock(&device->lock);
    w->next = device->workspaces;
    device->workspaces = w;
    if (device->workspace_count > TCONV_MOST_WORKSPACES) {
        struct tconv_workspace **link = &device->workspaces;
        while ((*link)->next != NULL) link = &(*link)->next;
        surplus = *link;
        *link = NULL;
    }
    pthread_mutex_unlock(&device->lock);
    discard(device, surplus);
}

void tconv_workspace_give_back(tconv_device *device, struct tconv_workspace *w, cl_event last)
{
    if (last == NULL) {
        discard(device, w);
        return;
    }
    if (w->last != NULL) clReleaseEvent(w->last);
    w->last = last;
    tconv_workspace_give_back_unused(device, w);
}

uint64_t tconv_device_workspace_bytes(tconv_device *device)
{
    if (device == NULL) return 0;
    pthread_mutex_lock(&device->lock);
    const uint64_t bytes = device->workspace_bytes;
    pthread_mutex_unlock(&device->lock);
    return bytes;
}

void tconv_device_trim_workspaces(tconv_device *device)
{
    TCONV_WITHOUT_CANCELLATION;
    if (device == NULL || tconv_process_forked()) return;
    pthread_mutex_lock(&device->lock);
    struct tconv_workspace *all = device->workspaces;
    device->workspaces = NULL;
    pthread_mutex_unlock(&device->lock);
    discard(device, all);
    tconv_lanes_release(device);
}
