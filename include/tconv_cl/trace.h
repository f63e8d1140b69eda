/* SPDX-License-Identifier: Apache-2.0 */
/* Tracing: a callback of the application that hears what a device object does: plans and how their
 * algorithm was chosen, algorithms that were passed over, programs, launches with events to
 * profile, what is recorded into command buffers, and fallbacks of adapters.
 *
 *     static void heard(void *context, const tconv_trace_event *event)
 *     {
 *         fprintf(stderr, "%s: %s %s (%s)\n", event->problem, event->algorithm, event->tile,
 *                 event->source);
 *     }
 *     tconv_device_set_trace(device, TCONV_TRACE_PLAN, heard, NULL, &err);
 *
 * THREADS. The callback runs in the thread whose call raised the event, inside that call, and in
 * any number of threads at once. Launches that threads share (tconv_cl/device.h) raise their events
 * in these threads: the application's, or the device object's own, which get no signals but those
 * of their own faults. No lock that guards a device, a plan or a filter is held meanwhile. If a
 * layer makes a plan or packs a filter, other threads that would do so for the same layer wait
 * until it is done, unless they are inside a callback.
 *
 * WHAT A CALLBACK MAY DO. Everything, also call this library on the same objects, except release an
 * object that the interrupted call uses, or wait for another thread that calls this library. Calls
 * from inside a callback raise no events, in this thread. A callback must return: no longjmp, no
 * exception.
 *
 * COST. Without a callback, or with a callback that hears no launches: one atomic load for each
 * call. With a callback that hears launches, the driver makes an event for each launch: docs/api.md
 * has figures. */
#ifndef TCONV_CL_TRACE_H
#define TCONV_CL_TRACE_H

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What happened: bits, so that a sum of them says which kinds a callback hears. */
typedef enum tconv_trace_kind {
    TCONV_TRACE_PLAN = 1 << 0,        /* tconv_plan_create made a plan */
    TCONV_TRACE_PASSED_OVER = 1 << 1, /* an algorithm, or its tile, was tried for a plan and not
                                    taken; comes before the plan's event, in the same thread */
    TCONV_TRACE_PROGRAM = 1 << 2,   /* a program was found or compiled, or did not compile; a second
                                       try has its own event */
    TCONV_TRACE_LAUNCH = 1 << 3,    /* a kernel was enqueued, also by searches and tests of units */
    TCONV_TRACE_FALLBACK = 1 << 4,  /* an adapter left a layer to its runtime */
    TCONV_TRACE_RECORDING = 1 << 5, /* a kernel was recorded into a command buffer */
    TCONV_TRACE_REPLAY =
        1 << 6 /* the application enqueued a command buffer, and called tconv_device_trace_replay */
} tconv_trace_kind;

/* All kinds, also those that later versions add: ignore those that you do not know. */
#define TCONV_TRACE_ALL UINT32_MAX

/* An event. Pointers are valid during the call of the callback; what a kind does not have is NULL
 * or 0. The brackets say which kinds have a member. */
typedef struct tconv_trace_event {
    size_t struct_size;    /* of the library's version: members behind it do not exist */
    tconv_trace_kind kind; /* which members it has */
    int32_t piece;  /* [launch, recording] number of the piece, from 0: long launches are divided,
                       and threads share launches (device.h) */
    int32_t pieces; /* [launch, recording] of how many */
    /* When it began and ended on the host, by a clock that never goes back: CLOCK_MONOTONIC, or on
     * Windows the performance counter. Of a launch or recording: the call that enqueued or recorded
     * it. Nanoseconds. */
    uint64_t begin_ns;
    uint64_t end_ns;      /* see begin_ns; equal to it for what takes no time */
    tconv_device *device; /* whose event it is */
    /* [plan, launch, recording] The plan: tconv_plan_explain, tconv_plan_choice and so on tell
     * more.
     */
    const tconv_plan *plan;
    /* [plan, passed over, launch, recording] The problem, as tconv_problem_text writes it; NULL
     * without memory. [fallback] The layer's name. */
    const char *problem;
    const char *algorithm; /* [plan, passed over, launch, recording] */
    const char *tile;      /* [plan, passed over, launch, recording] as tconv_plan_tile writes it */
    /* [program] Its file. [launch, recording] The kernel. [fallback] The adapter. [replay] What the
     * application calls it. */
    const char *name;
    /* [plan] Who chose the algorithm: "name" (the caller), "record" (a stored result), "imported"
     * (a result that was measured elsewhere), "measurement" (a search, just now), "prepared"
     * (tconv_device_prepare) or "model" (the cost model). [program] Where it came from: "memory",
     * "disk", "compiler" or "spirv" (a module of TCONV_CL_SPIRV). */
    const char *source;
    const char *options; /* [program] the options of its compilation */
    const char *message; /* [passed over, fallback] why; [program] the error if it did not compile;
                            [plan] why a search's result is not stored: tconv_plan_not_stored */
    cl_command_queue queue; /* [launch, recording, replay] */
    cl_event event;         /* [launch, replay] retain it to keep it; its times can be read if the
                               queue has CL_QUEUE_PROFILING_ENABLE */
    size_t offset[3];       /* [launch, recording] of the global ids */
    size_t global[3];       /* [launch, recording] work-items */
    size_t local[3];        /* [launch, recording] work-items of a work-group */
    struct _cl_command_buffer_khr *command_buffer; /* [recording, replay] */
    /* [plan, passed over, launch, recording] What to pass to tconv_plan_create or
     * tconv_device_prepare. Of the options: the algorithm without its tile, the epilogue, the
     * limit, the math and the window. */
    const tconv_problem *given_problem;
    const tconv_plan_options *given_options; /* see given_problem */
} tconv_trace_event;

/* Receives an event; `context` is that of tconv_device_set_trace. */
typedef void (*tconv_trace_callback)(void *context, const tconv_trace_event *event);

/* Sets the callback of a device object, instead of the one before; NULL: none. `kinds` is a sum of
 * tconv_trace_kind: it hears these; other bits have no effect. The events are those of all plans,
 * filters and layers of this device object. When the call returns, no other thread runs the
 * earlier callback, and none will: its context may be freed. It waits for that, so do not hold a
 * lock that the earlier callback takes. Inside a callback it does not wait, and then other threads
 * may still run the earlier one. Returns TCONV_ERROR_ARGUMENT, _FORKED. Any thread. */
TCONV_API tconv_status tconv_device_set_trace(tconv_device *device, uint32_t kinds,
                                              tconv_trace_callback callback, void *context,
                                              tconv_error *error);

/* For adapters: raises a TCONV_TRACE_FALLBACK, if there is a callback. `adapter` names the runtime,
 * `layer` the layer that the runtime computes itself, `why` is one sentence. Any of them may be
 * NULL. NULL for `device` is a no-op. Any thread. */
TCONV_API void tconv_device_trace_fallback(tconv_device *device, const char *adapter,
                                           const char *layer, const char *why);

/* For applications: raises a TCONV_TRACE_REPLAY, if there is a callback. The library does not see
 * clEnqueueCommandBufferKHR, so call this after it, with a command buffer in which plans or layers
 * of `device` are recorded and with the event of this run. `name` says what it computes. Each of
 * these may be NULL. The event stays the caller's. NULL for `device` is a no-op. Any thread. */
TCONV_API void tconv_device_trace_replay(tconv_device *device,
                                         struct _cl_command_buffer_khr *command_buffer,
                                         const char *name, cl_event event);

#ifdef __cplusplus
}
#endif

#endif
