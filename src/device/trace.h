/* SPDX-License-Identifier: Apache-2.0 */
/* Raises events of tracing, for src/device and src/plan. */
#ifndef TCONV_DEVICE_TRACE_H
#define TCONV_DEVICE_TRACE_H

#include "tconv_cl/trace.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* The callback of tconv_device_set_trace. */
struct tconv_tracing {
    atomic_uint_least32_t kinds; /* that the callback hears; 0: there is none */
    pthread_mutex_t lock;
    pthread_cond_t ended; /* a call of a callback has ended */
    tconv_trace_callback callback;
    void *context;
    uint64_t version;                      /* counts the callbacks that were set */
    struct tconv_trace_call *first, *last; /* the calls that run, the oldest first */
};

/* False without memory. */
bool tconv_trace_init(struct tconv_tracing *tracing);
void tconv_trace_destroy(struct tconv_tracing *tracing);

/* True if an event of this kind would be heard now: there is a callback for it, and this thread is
 * not inside one. If there is none, it takes one atomic load. */
bool tconv_traced(const tconv_device *device, tconv_trace_kind kind);

/* Calls the callback, if there still is one, with the event; its struct_size and device are set
 * here. No lock may be held that the callback could take. */
void tconv_trace(tconv_device *device, tconv_trace_event event);

/* Now, as an event's begin_ns. */
uint64_t tconv_trace_now(void);

#endif
