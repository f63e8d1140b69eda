/* SPDX-License-Identifier: Apache-2.0 */
/* Defers the cancellation of threads (pthread_cancel) until a call returns. OpenCL implementations
 * and system calls for files have cancellation points. A thread that ended there would never
 * release the locks of the library and of the implementation. Android has no cancellation. */
#ifndef TCONV_BASE_CANCEL_H
#define TCONV_BASE_CANCEL_H

#include <pthread.h>

#if !defined(__ANDROID__)
static inline int tconv_cancel_disable(void)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void tconv_cancel_restore(const int *before)
{
    int ignored;
    pthread_setcancelstate(*before, &ignored);
}
#endif

/* Stands first in every public function that calls OpenCL or uses files. A cancellation takes
 * effect after the function has returned. */
#if defined(__GNUC__) && !defined(__ANDROID__)
#define TCONV_WITHOUT_CANCELLATION                                                                 \
    const int cancel_state                                                                         \
        __attribute__((unused, cleanup(tconv_cancel_restore))) = tconv_cancel_disable()
#else
#define TCONV_WITHOUT_CANCELLATION (void)0
#endif

#endif
