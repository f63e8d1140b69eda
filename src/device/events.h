/* SPDX-License-Identifier: Apache-2.0 */
/* What an event tells of its command and its queue. */
#ifndef TCONV_DEVICE_EVENTS_H
#define TCONV_DEVICE_EVENTS_H

#include "tconv_cl/device.h"

#include <CL/cl.h>

/* The state of the event's command: CL_COMPLETE, a larger number before that, a negative code if
 * the command failed. Returns the code of the call. */
cl_int tconv_event_state(cl_event event, cl_int *state);

/* The queue of an event. NULL: user events have none, and some implementations do not tell it.
 * Events keep their queues: while one lives, no other queue has its address. */
cl_command_queue tconv_event_queue(cl_event event);

/* Flushes the event's queue, if it is told: asking for the event's state does not start its
 * commands. Returns the code of clFlush. */
cl_int tconv_event_flush(cl_event event);

#endif
