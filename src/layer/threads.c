/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of applications, for tconv_run.on_threads. */
#include "tconv_cl/layer.h"

#include <string.h>

void tconv_on_openmp(void *gomp_parallel, void (*task)(void *argument), void *argument)
{
    void (*parallel)(void (*task)(void *), void *argument, unsigned threads, unsigned flags);
    if (gomp_parallel == NULL) return;
    memcpy(&parallel, &gomp_parallel, sizeof parallel); /* a cast is POSIX's, not C's */
    parallel(task, argument, 0, 0);                     /* 0: as many threads as are set */
}
