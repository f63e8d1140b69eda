/* SPDX-License-Identifier: Apache-2.0 */
/* Status codes, and the explanation of an error. Needs no OpenCL header. */
#ifndef TCONV_CL_STATUS_H
#define TCONV_CL_STATUS_H

#include <stdbool.h>

/* TCONV_EXPORTS: the library is being compiled; TCONV_STATIC: it is not a DLL. CMake defines
 * them. */
#if defined(_WIN32) && defined(TCONV_EXPORTS)
#define TCONV_API __declspec(dllexport)
#elif defined(_WIN32) && !defined(TCONV_STATIC)
#define TCONV_API __declspec(dllimport)
#elif defined(__GNUC__)
#define TCONV_API __attribute__((visibility("default")))
#else
#define TCONV_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The status that a call returns. Codes never change their value; new ones may be added.
 *
 *   1..19   invalid request: fix it and retry
 *   20..39  valid request, but not supported by this version or this device
 *   40..59  a resource is missing or exhausted
 *   60..79  an OpenCL call failed; tconv_error.opencl_code holds its code
 *   80      cancelled by a callback of the application
 *   99      internal error: a defect of this library */
typedef enum tconv_status {
    TCONV_OK = 0,             /* done */
    TCONV_ERROR_ARGUMENT = 1, /* a pointer is NULL, an enumeration has no such value, a struct_size
                                 is too small, an environment variable has an illegal value */
    TCONV_ERROR_SHAPE =
        2, /* ranks, extents or channels that do not fit each other, or do not fit in memory */
    TCONV_ERROR_ATTRIBUTE = 3, /* an attribute of a wrong length or outside its range */
    TCONV_ERROR_TYPE = 4,      /* element types that differ */
    TCONV_ERROR_BUFFER = 5,    /* a buffer is too small, its offset misaligned, or it is missing */
    TCONV_ERROR_MISMATCH = 6,  /* objects that do not belong together: context, filter and plan */
    TCONV_ERROR_ALGORITHM =
        7, /* the named algorithm does not exist or does not accept this problem */
    TCONV_ERROR_UNSUPPORTED =
        20,                  /* this version has no code for it, for example for an element type */
    TCONV_ERROR_DEVICE = 21, /* this device cannot do it */
    TCONV_ERROR_HOST_MEMORY = 40,   /* an allocation in host memory failed */
    TCONV_ERROR_DEVICE_MEMORY = 41, /* the device's memory is full */
    TCONV_ERROR_NO_DEVICE = 42,     /* no OpenCL device, or none with that number or name */
    TCONV_ERROR_FORKED = 43,        /* this process was forked from one that had used OpenCL */
    TCONV_ERROR_FILE = 44,          /* a file cannot be written; the message says where and why */
    TCONV_ERROR_OPENCL = 60,        /* an OpenCL call failed */
    TCONV_ERROR_BUILD =
        61, /* a kernel source did not build; the message holds the start of the build log */
    TCONV_ERROR_CANCELLED = 80, /* a callback of the application returned false */
    TCONV_ERROR_INTERNAL = 99   /* a defect of this library */
} tconv_status;

/* The explanation of an error, for a person. The caller owns it; every function that takes one
 * accepts NULL, leaves it untouched on success and fills it completely on an error. */
typedef struct tconv_error {
    tconv_status status; /* what the call returned */
    int opencl_code;     /* the raw code of the OpenCL call that failed, else 0 */
    char message[1000];  /* one sentence that names the argument, the axis and the values; always
                            terminated */
} tconv_error;

/* The name of a status, for example "TCONV_ERROR_SHAPE"; never NULL, a static string. Any thread.
 */
TCONV_API const char *tconv_status_name(tconv_status status);

/* True if the request itself is wrong or unsupported (codes 1 to 39): trying again will not help.
 * Any thread. */
TCONV_API bool tconv_status_is_request(tconv_status status);

/* True in a process that was forked from one in which the library had used OpenCL. Calls that would
 * use OpenCL return TCONV_ERROR_FORKED there (tconv_cl.h). A program should ask before its own
 * OpenCL calls. Any thread. */
TCONV_API bool tconv_process_forked(void);

#ifdef __cplusplus
}
#endif

#endif
