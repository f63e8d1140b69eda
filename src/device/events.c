/* SPDX-License-Identifier: Apache-2.0 */
/* What an event tells of its command and its queue. */
#include "device/events.h"

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
