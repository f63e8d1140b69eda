/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a command without sleeping at once. */
#include "base/error.h"
#include "base/os.h"
#include "tconv_cl/plan.h"

/* What a command's event says, or the code of the call that failed. */
static cl_int state_of(cl_event event)
{
    cl_int state;
    const cl_int code =
        clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    return code == CL_SUCCESS ? state : code;
}

tconv_status tconv_wait(cl_event event, tconv_error *error)
{
    /* Each question takes a lock that the threads of the device need, too, and one that has to wait
     * for it sleeps. */
    enum { YIELDS = 5 };
    static const double awake = 200e-6; /* seconds */
    if (event == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "event is NULL");
    /* Nothing else makes a queue begin: not what asks for a state. User events have no queue. */
    cl_command_queue queue = NULL;
    cl_int code = clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof queue, &queue, NULL);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clGetEventInfo", "waiting for a command");
    if (queue != NULL && (code = clFlush(queue)) != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clFlush", "waiting for a command");
    const double begin = tconv_os_seconds();
    cl_int state;
    do {
        for (int i = 0; i < YIELDS; i++) tconv_os_yield(); /* the device may need this processor */
        state = state_of(event);
    } while (state > CL_COMPLETE && tconv_os_seconds() - begin < awake);
    if (state > CL_COMPLETE && (code = clWaitForEvents(1, &event)) != CL_SUCCESS &&
        (state = state_of(event)) >= CL_COMPLETE)
        return tconv_fail_opencl(error, code, "clWaitForEvents", "waiting for a command");
    return state >= CL_COMPLETE
               ? TCONV_OK
               : tconv_fail_opencl(error, state, "clGetEventInfo", "a command ended with an error");
}
