/* SPDX-License-Identifier: Apache-2.0 */
/* Fills a tconv_error: the only way in which this library reports a failure. */
#ifndef TCONV_BASE_ERROR_H
#define TCONV_BASE_ERROR_H

#include "base/format.h"
#include "tconv_cl/status.h"

#include <stddef.h>

/* Fills `error`, if it is not NULL, and returns `status`. */
tconv_status tconv_fail(tconv_error *error, tconv_status status, const char *format, ...)
    TCONV_PRINTF(3, 4);

/* The same for a failed OpenCL call. The status follows from `code`: memory, device memory, or
 * TCONV_ERROR_OPENCL. The message becomes "<what was being done>: <call> failed with <name of the
 * code> (<code>)". */
tconv_status tconv_fail_opencl(tconv_error *error, int code, const char *call, const char *format,
                               ...) TCONV_PRINTF(4, 5);

/* The same with an error that another call gave. */
tconv_status tconv_fail_with(tconv_error *error, const tconv_error *other);

/* The same for host memory that cannot be allocated. */
tconv_status tconv_fail_memory(tconv_error *error, size_t bytes, const char *what);

#endif
