/* SPDX-License-Identifier: Apache-2.0 */
/* Tracing: the callback of a device object. The callback runs without the lock; a list of the calls
 * that run lets tconv_device_set_trace wait for those of the callback before. */
#include "device/trace.h"

#include "base/cancel.h"
#include "base/error.h"
#include "base/inside.h"
#include "base/os.h"
#include "base/process.h"
#include "device/device.h"
#include "device/events.h"

/* A call of a callback; it lives on the stack of its thread. */
struct tconv_trace_call {
    struct tconv_trace_call *previous, *next;
    uint64_t version; /* of the callback */
};

bool tconv_traced(const tconv_device *device, tconv_trace_kind kind)
{
    const uint32_t kinds = atomic_load_explicit(&device->tracing.kinds, memory_order_relaxed);
    return (kinds & (uint32_t)kind) != 0 && !tconv_is_inside();
}

uint64_t tconv_trace_now(void)
{
    return (uint64_t)(1e9 * tconv_os_seconds());
}

/* Under the lock: adds a call to the list, whose first member has the oldest version. */
static void begin_call(struct tconv_tracing *tracing, struct tconv_trace_call *call)
{
    call->version = tracing->version;
    call->previous = tracing->last;
    call->next = NULL;
    *(call->previous == NULL ? &tracing->first : &call->previous->next) = call;
    tracing->last = call;
}

static void end_call(struct tconv_tracing *tracing, const struct tconv_trace_call *call)
{
    *(call->previous == NULL ? &tracing->first : &call->previous->next) = call->next;
    *(call->next == NULL ? &tracing->last : &call->next->previous) = call->previous;
}

void tconv_trace(tconv_device *device, tconv_trace_event event)
{
    struct tconv_tracing *tracing = &device->tracing;
    struct tconv_trace_call call;
    pthread_mutex_lock(&tracing->lock);
    const bool heard = (atomic_load(&tracing->kinds) & (uint32_t)event.kind) != 0;
    const tconv_trace_callback callback = heard ? tracing->callback : NULL;
    void *context = tracing->context;
    if (callback != NULL) begin_call(tracing, &call);
    pthread_mutex_unlock(&tracing->lock);
    if (callback == NULL) return;
    event.struct_size = sizeof event;
    event.device = device;
    const bool was_inside = tconv_enter_callback();
    callback(context, &event);
    tconv_leave_callback(was_inside);
    pthread_mutex_lock(&tracing->lock);
    end_call(tracing, &call);
    pthread_cond_broadcast(&tracing->ended);
    pthread_mutex_unlock(&tracing->lock);
}

tconv_status tconv_device_set_trace(tconv_device *device, uint32_t kinds,
                                    tconv_trace_callback callback, void *context,
                                    tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (device == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "device is NULL");
    const tconv_status status = tconv_process_enter(error);
    if (status != TCONV_OK) return status;
    struct tconv_tracing *tracing = &device->tracing;
    pthread_mutex_lock(&tracing->lock);
    tracing->callback = callback;
    tracing->context = context;
    const uint64_t version = ++tracing->version;
    atomic_store(&tracing->kinds, callback == NULL ? 0 : kinds);
    while (!tconv_is_inside() && tracing->first != NULL && tracing->first->version < version)
        pthread_cond_wait(&tracing->ended, &tracing->lock);
    pthread_mutex_unlock(&tracing->lock);
    return TCONV_OK;
}

void tconv_device_trace_fallback(tconv_device *device, const char *adapter, const char *layer,
                                 const char *why)
{
    TCONV_WITHOUT_CANCELLATION;
    if (device == NULL || tconv_process_forked() || !tconv_traced(device, TCONV_TRACE_FALLBACK))
        return;
    const uint64_t now = tconv_trace_now();
    tconv_trace(device, (tconv_trace_event){.kind = TCONV_TRACE_FALLBACK,
                                            .begin_ns = now,
                                            .end_ns = now,
                                            .problem = layer,
                                            .name = adapter,
                                            .message = why});
}

void tconv_device_trace_replay(tconv_device *device, struct _cl_command_buffer_khr *command_buffer,
                               const char *name, cl_event event)
{
    TCONV_WITHOUT_CANCELLATION;
    if (device == NULL || tconv_process_forked() || !tconv_traced(device, TCONV_TRACE_REPLAY))
        return;
    const uint64_t now = tconv_trace_now();
    tconv_trace(device,
                (tconv_trace_event){.kind = TCONV_TRACE_REPLAY,
                                    .begin_ns = now,
                                    .end_ns = now,
                                    .name = name,
                                    .queue = event == NULL ? NULL : tconv_event_queue(event),
                                    .event = event,
                                    .command_buffer = command_buffer});
}
