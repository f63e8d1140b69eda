/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of this library and statuses of ONNX Runtime. */
#include "errors.h"

#include <stdarg.h>
#include <stdio.h>

tconv_status fail(tconv_error *error, tconv_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    error->status = status;
    error->opencl_code = 0;
    return status;
}

bool succeeded(OrtStatus *status, tconv_error *error)
{
    if (status == NULL) return true;
    if (error != NULL) fail(error, TCONV_ERROR_INTERNAL, "%s", ort.GetErrorMessage(status));
    ort.ReleaseStatus(status);
    return false;
}

/* After ORT_EP_FAIL, ONNX Runtime's Python makes the session again
 * without this provider. So ORT_EP_FAIL is not used for a wrong request, which other providers
 * would also refuse, nor in a forked child, where releasing the old session would wait for threads
 * that do not exist. */
OrtStatus *status_of(const char *name, const tconv_error *error, bool strict)
{
    char line[1200];
    snprintf(line, sizeof line, "tconv_cl: %s: %s", name, error->message);
    return ort.CreateStatus(tconv_status_is_request(error->status)          ? ORT_INVALID_ARGUMENT
                            : strict || error->status == TCONV_ERROR_FORKED ? ORT_FAIL
                                                                            : ORT_EP_FAIL,
                            line);
}
