/* SPDX-License-Identifier: Apache-2.0 */
/* Tells whether an OpenCL loader exists, and finds calls that not every one has. A library that
 * links the loader does not start without it; one that opens the loader at run time
 * (opencl_calls.c) can say what is missing. */
#ifndef TCONV_DEVICE_OPENCL_LOADER_H
#define TCONV_DEVICE_OPENCL_LOADER_H

#include "base/os.h"

#include <stddef.h>

#if defined(TCONV_OPENCL_LIBRARY)
/* A clause that says why there is no OpenCL, or NULL if there is. Any thread. */
const char *tconv_opencl_missing(void);

/* Finds a call that not every loader has, as tconv_os_find_function does. Any thread. */
bool tconv_opencl_find(const char *name, void *call);
#else
static inline const char *tconv_opencl_missing(void)
{
    return NULL;
}

static inline bool tconv_opencl_find(const char *name, void *call)
{
    return tconv_os_find_function(NULL, name, call);
}
#endif

#endif
