/* SPDX-License-Identifier: Apache-2.0 */
/* Opens OpenCL devices, each once, for all sessions of the process. */
#include "device.h"

#include <pthread.h>
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

tconv_status device_open(const char *name, tconv_session **out, tconv_error *error)
{
    enum { MOST = 256 };
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static tconv_session *hosts[MOST]; /* by number */
    int number;
    /* In a forked child this fails. It comes before the mutex, which a thread of the parent may
     * have held. */
    if (tconv_device_find(name, &number, error) != TCONV_OK) return error->status;
    if (number >= MOST)
        return fail(error, TCONV_ERROR_NO_DEVICE, "device %d is beyond the first %d", number, MOST);
    pthread_mutex_lock(&mutex);
    const tconv_status status =
        hosts[number] != NULL ? TCONV_OK : tconv_session_create(number, &hosts[number], error);
    if (status == TCONV_OK) *out = hosts[number];
    pthread_mutex_unlock(&mutex);
    return status;
}
