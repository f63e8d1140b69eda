/* SPDX-License-Identifier: Apache-2.0 */
/* Tells whether an OpenCL loader exists. A library that links the loader does not start without it;
 * one that opens the loader at run time (opencl_calls.c) can say what is missing. */
#ifndef TCONV_DEVICE_OPENCL_LOADER_H
#define TCONV_DEVICE_OPENCL_LOADER_H

#include <stddef.h>

#if defined(TCONV_OPENCL_LIBRARY)
/* A clause that says why there is no OpenCL, or NULL if there is. Any thread. */
const char *tconv_opencl_missing(void);
#else
static inline const char *tconv_opencl_missing(void)
{
    return NULL;
}
#endif

#endif
