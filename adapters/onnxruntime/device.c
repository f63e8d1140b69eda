/* SPDX-License-Identifier: Apache-2.0 */
/* Opens OpenCL devices, each once, for all sessions of the process. */
#include "device.h"

#include "log.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 256 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static tconv_device *opened[MOST];                        /* by number */
static uint32_t traced = LOGGED_EVENTS;
static tconv_trace_callback trace_callback = log_event;
static void *trace_context;

/* Under the mutex. A new device has no callback for which tconv_device_set_trace would wait. */
static tconv_status open_number(int number, tconv_error *error)
{
    tconv_device *device;
    tconv_status status = tconv_device_open(number, &device, error);
    if (status != TCONV_OK) return status;
    status = tconv_device_set_trace(device, traced, trace_callback, trace_context, error);
    if (status == TCONV_OK)
        opened[number] = device;
    else
        tconv_device_release(device);
    return status;
}

tconv_status device_open(const char *name, tconv_device **out, tconv_error *error)
{
    int number;
    /* In a forked child this fails. It comes before the mutex, which a thread of the parent may
     * have held. */
    if (tconv_device_find(name, &number, error) != TCONV_OK) return error->status;
    if (number >= MOST)
        return fail(error, TCONV_ERROR_NO_DEVICE, "device %d is beyond the first %d", number, MOST);
    pthread_mutex_lock(&mutex);
    const tconv_status status = opened[number] != NULL ? TCONV_OK : open_number(number, error);
    if (status == TCONV_OK) *out = opened[number];
    pthread_mutex_unlock(&mutex);
    return status;
}

tconv_status device_trace(uint32_t kinds, tconv_trace_callback callback, void *context,
                          tconv_error *error)
{
    if (tconv_process_forked())
        return fail(error, TCONV_ERROR_FORKED, "a forked child cannot trace its parent's devices");
    tconv_device *open[MOST];
    if (callback == NULL) kinds = LOGGED_EVENTS;
    if (callback == NULL) callback = log_event;
    pthread_mutex_lock(&mutex);
    traced = kinds;
    trace_callback = callback;
    trace_context = context;
    memcpy(open, opened, sizeof open);
    pthread_mutex_unlock(&mutex); /* earlier callbacks, which are waited for, may open devices */
    tconv_status status = TCONV_OK;
    for (int i = 0; i < MOST && status == TCONV_OK; i++)
        if (open[i] != NULL)
            status = tconv_device_set_trace(open[i], kinds, callback, context, error);
    return status;
}
