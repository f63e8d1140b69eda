/* SPDX-License-Identifier: Apache-2.0 */
/* What an event tells of its command and its queue, and waiting for it: first awake, then asleep,
 * because waking a sleeping thread takes longer than a small layer. */
#include "device/events.h"

#include "base/cancel.h"
#include "base/error.h"
#include "base/os.h"
#include "base/process.h"
#include "tconv_cl/plan.h"

#include <stdatomic.h>

cl_int tconv_event_state(cl_event event, cl_int *state)
{
    return clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof *state, state, NULL);
}

cl_command_queue tconv_event_queue(cl_event event)
{
    cl_command_queue queue = NULL;
    const cl_int code = clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof queue, &queue, NULL);
    return code == CL_SUCCESS ? queue : NULL;
}

cl_int tconv_event_flush(cl_event event)
{
    cl_command_queue queue = tconv_event_queue(event);
    const cl_int code = queue == NULL ? CL_SUCCESS : clFlush(queue);
    /* Intel's runtime names a queue that was released, which flushed it, but does not take it. */
    return code == CL_INVALID_COMMAND_QUEUE ? CL_SUCCESS : code;
}

tconv_status tconv_wait(cl_event event, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    /* Asking takes a lock that the device's threads also need, and a thread that waits for the lock
     * sleeps. So ask seldom. */
    enum { YIELDS = 5 };
    static const double awake = 200e-6; /* seconds */
    /* If other programs are busy, a thread that yields returns only after their turn, but a
     * sleeping thread is woken at once. So waits sleep for a while. */
    static const double lost = 1e-3, while_busy = 0.1; /* seconds */
    static atomic_llong busy_until;                    /* microseconds of tconv_os_seconds */
    const char *call = "clFlush";
    cl_int state = CL_QUEUED;
    tconv_status status;
    if (event == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "event is NULL");
    if ((status = tconv_process_enter(error)) != TCONV_OK) return status;
    cl_int code = tconv_event_flush(event);
    const double begin = tconv_os_seconds();
    const bool sleeps = 1e6 * begin < (double)atomic_load(&busy_until);
    double now = begin;
    while (!sleeps && code == CL_SUCCESS && state > CL_COMPLETE && now - begin < awake) {
        const double before = now;
        for (int i = 0; i < YIELDS && now - before < lost; i++) {
            tconv_os_yield(); /* the device may need this processor */
            now = tconv_os_seconds();
        }
        if (now - before >= lost) atomic_store(&busy_until, (long long)(1e6 * (now + while_busy)));
        call = "clGetEventInfo";
        code = tconv_event_state(event, &state);
    }
    if (code == CL_SUCCESS && state > CL_COMPLETE) {
        call = "clWaitForEvents";
        code = clWaitForEvents(1, &event);
        if (tconv_event_state(event, &state) == CL_SUCCESS && state < 0)
            code = CL_SUCCESS; /* the command failed, not the wait */
    }
    if (code == CL_SUCCESS && state < 0) {
        call = "the command";
        code = state;
    }
    return code == CL_SUCCESS ? TCONV_OK
                              : tconv_fail_opencl(error, code, call, "waiting for a command");
}
