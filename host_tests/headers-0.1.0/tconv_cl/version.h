/* SPDX-License-Identifier: Apache-2.0 */
/* The version of tconv-cl. This file is its only source: the build reads it from here. */
#ifndef TCONV_CL_VERSION_H
#define TCONV_CL_VERSION_H

#include "status.h"

/* Changes that break programs. */
#define TCONV_VERSION_MAJOR 0
/* New functions; before 1.0 also changes that break programs. */
#define TCONV_VERSION_MINOR 1
/* Corrections. */
#define TCONV_VERSION_PATCH 0
/* The three numbers. */
#define TCONV_VERSION_STRING "0.1.0"

/* One number, for comparisons: 1002003 is 1.2.3. */
#define TCONV_VERSION                                                                              \
    (TCONV_VERSION_MAJOR * 1000000 + TCONV_VERSION_MINOR * 1000 + TCONV_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that is loaded, as TCONV_VERSION and as TCONV_VERSION_STRING, which
 * are those of the header. Any thread. */
TCONV_API int tconv_version_number(void);
TCONV_API const char *tconv_version(void);

#ifdef __cplusplus
}
#endif

#endif
