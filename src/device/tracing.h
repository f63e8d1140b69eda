/* SPDX-License-Identifier: Apache-2.0 */
/* What a device object keeps for tracing; trace.h raises the events. */
#ifndef TCONV_DEVICE_TRACING_H
#define TCONV_DEVICE_TRACING_H

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
bool tconv_tracing_init(struct tconv_tracing *tracing);
void tconv_tracing_destroy(struct tconv_tracing *tracing);

#endif
