/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: a device with a context for host arrays. Also checks the arguments of calls on host
 * arrays. */
#include "session/session_internal.h"

#include "base/cancel.h"
#include "base/epilogue.h"
#include "base/error.h"
#include "base/process.h"
#include "base/struct_size.h"

#include <stdlib.h>

tconv_status tconv_session_create(int number, tconv_session **out, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (out == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "out is NULL");
    tconv_session *session = calloc(1, sizeof *session);
    if (session == NULL) return tconv_fail_memory(error, sizeof *session, "opening a device");
    tconv_status status = tconv_device_open(number, &session->device, error);
    cl_int code = CL_SUCCESS;
    if (status == TCONV_OK)
        session->queue = clCreateCommandQueue(tconv_device_context(session->device),
                                              tconv_device_id(session->device), 0, &code);
    if (code != CL_SUCCESS) {
        session->queue = NULL;
        status =
            tconv_fail_opencl(error, code, "clCreateCommandQueue", "opening device %d", number);
    }
    if (status == TCONV_OK)
        *out = session;
    else
        tconv_session_release(session);
    return status;
}

void tconv_session_release(tconv_session *session)
{
    TCONV_WITHOUT_CANCELLATION;
    if (session == NULL || tconv_process_forked()) return;
    if (session->queue != NULL) clReleaseCommandQueue(session->queue);
    tconv_device_release(session->device);
    free(session);
}

cl_context tconv_session_context(const tconv_session *session)
{
    return session == NULL ? NULL : tconv_device_context(session->device);
}

cl_command_queue tconv_session_queue(const tconv_session *session)
{
    return session == NULL ? NULL : session->queue;
}

tconv_device *tconv_session_device(const tconv_session *session)
{
    return session == NULL ? NULL : session->device;
}

uint64_t tconv_session_least_macs(const tconv_session *session)
{
    return session == NULL ? 0 : tconv_device_least_macs(session->device);
}

tconv_status tconv_session_read(const tconv_problem *problem, const tconv_plan_options *options,
                                const tconv_arrays *arrays, struct tconv_session_call *call,
                                tconv_error *error)
{
    if (problem == NULL || arrays == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          problem == NULL ? "problem" : "arrays");
    *call =
        (struct tconv_session_call){TCONV_PROBLEM_INIT, TCONV_PLAN_OPTIONS_INIT, TCONV_ARRAYS_INIT};
    tconv_status status;
    if ((status = tconv_struct_read(TCONV_SIZED_PROBLEM, problem, &call->problem, error)) !=
            TCONV_OK ||
        (status = tconv_struct_read(TCONV_SIZED_PLAN_OPTIONS, options, &call->options, error)) !=
            TCONV_OK)
        return status;
    return tconv_struct_read(TCONV_SIZED_ARRAYS, arrays, &call->arrays, error);
}

tconv_status tconv_session_check_arrays(const tconv_arrays *arrays, const tconv_geometry *geometry,
                                        const tconv_epilogue *epilogue, tconv_error *error)
{
    const char *missing = arrays->data == NULL && geometry->data_bytes != 0 ? "data"
                          : arrays->filter == NULL                          ? "filter"
                          : arrays->output == NULL                          ? "output"
                                                                            : NULL;
    if (missing != NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "arrays.%s is NULL", missing);
    const struct {
        enum tconv_epilogue_tensor tensor;
        const void *array;
    } optional[] = {{TCONV_EPILOGUE_BIAS, arrays->bias},
                    {TCONV_EPILOGUE_SCALE, arrays->scale},
                    {TCONV_EPILOGUE_RESIDUAL, arrays->residual},
                    {TCONV_EPILOGUE_SLOPE, arrays->slope}};
    tconv_status status = TCONV_OK;
    for (size_t i = 0; i < sizeof optional / sizeof *optional && status == TCONV_OK; i++)
        status = tconv_epilogue_check_given(epilogue, optional[i].tensor, optional[i].array != NULL,
                                            "arrays", error);
    return status;
}
