/* SPDX-License-Identifier: Apache-2.0 */
/* Raises events of tracing, for src/device and src/plan. */
#ifndef TCONV_DEVICE_TRACE_H
#define TCONV_DEVICE_TRACE_H

#include "tconv_cl/trace.h"

#include <stdbool.h>

/* True if an event of this kind would be heard now: there is a callback for it, and this thread is
 * not inside one. If there is none, it takes one atomic load. */
bool tconv_traced(const tconv_device *device, tconv_trace_kind kind);

/* Calls the callback, if there still is one, with the event; its struct_size and device are set
 * here. No lock may be held that the callback could take. */
void tconv_trace(tconv_device *device, tconv_trace_event event);

/* Now, as an event's begin_ns. */
uint64_t tconv_trace_now(void);

#endif
