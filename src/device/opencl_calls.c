/* SPDX-License-Identifier: Apache-2.0 */
/* Finds OpenCL at run time (TCONV_OPENCL_AT_RUN_TIME). Every OpenCL call of the library, the tool
 * and the tests is a function here that passes the call on to the OpenCL loader, the library
 * TCONV_OPENCL_LIBRARY. The first call opens the loader. It is never closed, because drivers keep
 * threads. If it is missing, calls return CL_PLATFORM_NOT_FOUND_KHR, as a loader without drivers
 * does. All are calls of OpenCL 1.2. If a program links the loader itself, or a test defines the
 * calls, those functions are used. */
#include "base/os.h"
#include "device/opencl_loader.h"

#include <CL/cl.h>
#include <pthread.h>

#if defined(_WIN32) /* its linkers find no weak functions */
#define REPLACEABLE
#else
#define REPLACEABLE __attribute__((weak))
#endif

enum { NO_OPENCL = -1001 }; /* CL_PLATFORM_NOT_FOUND_KHR of CL/cl_ext.h */

/* Further calls, which the tool and the tests use. opencl_calls.h has the library's calls; its
 * codes are not used here. */
#define OTHER_CALLS                                                                                \
    CALL(clSetUserEventStatus, (cl_event event, cl_int status), (event, status), 0)                \
    CALL(clCreateSubDevices,                                                                       \
         (cl_device_id device, const cl_device_partition_property *properties, cl_uint n,          \
          cl_device_id *ids, cl_uint *count),                                                      \
         (device, properties, n, ids, count), 0)                                                   \
    CREATE(clCreateUserEvent, EVENTS, cl_event, (cl_context context, cl_int * code),               \
           (context, code), 0)                                                                     \
    CREATE(clCreateSubBuffer, BUFFERS, cl_mem,                                                     \
           (cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void *region,     \
            cl_int *code),                                                                         \
           (buffer, flags, type, region, code), 0)

#define WAIT CALL
#define ANSWER CALL
#define BUILD CALL
#define EVENT_CALL CALL
#define RETAIN(name, kind, parameters, arguments, ...) CALL(name, parameters, arguments, 0)
#define RELEASE RETAIN
#define MAP(name, parameters, arguments, ...) CREATE(name, , void *, parameters, arguments, 0)

static struct {
#define CALL(name, ...) __typeof__(name) *name;
#define CREATE CALL
#define FIND CALL
#include "device/opencl_calls.h"
    OTHER_CALLS
#undef CALL
#undef CREATE
} calls;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *library; /* the loader, or NULL */
static char missing[300];

/* Finds a call: the program's own if the program links a loader or one was preloaded (as Oclgrind
 * does), else the one in `library`. */
static bool find(const char *name, void *call)
{
    if (tconv_os_find_function(NULL, name, call)) return true;
    if (library == NULL)
        snprintf(
            missing, sizeof missing,
            "the OpenCL loader %s cannot be opened: install the driver of your GPU, or for the "
            "processor ocl-icd-libopencl1 and pocl-opencl-icd",
            TCONV_OPENCL_LIBRARY);
    else if (!tconv_os_find_function(library, name, call))
        snprintf(missing, sizeof missing,
                 "the OpenCL loader %s has no %s, which is a call of OpenCL 1.2: install a newer "
                 "one",
                 TCONV_OPENCL_LIBRARY, name);
    return missing[0] == '\0';
}

static void open_loader(void)
{
    library = tconv_os_open_library(TCONV_OPENCL_LIBRARY);
    (void)(
#define CALL(name, ...) find(#name, &calls.name) &&
#define CREATE CALL
#include "device/opencl_calls.h"
        OTHER_CALLS
#undef CALL
#undef CREATE
        true);
}

const char *tconv_opencl_missing(void)
{
    pthread_once(&once, open_loader);
    return missing[0] == '\0' ? NULL : missing;
}

bool tconv_opencl_find(const char *name, void *call)
{
    pthread_once(&once, open_loader);
    return tconv_os_find_function(NULL, name, call) ||
           (library != NULL && tconv_os_find_function(library, name, call));
}

#define CALL(name, parameters, arguments, ...)                                                     \
    REPLACEABLE cl_int CL_API_CALL name parameters                                                 \
    {                                                                                              \
        return tconv_opencl_missing() == NULL ? calls.name arguments : NO_OPENCL;                  \
    }
#define CREATE(name, kind, type, parameters, arguments, ...)                                       \
    REPLACEABLE type CL_API_CALL name parameters                                                   \
    {                                                                                              \
        if (tconv_opencl_missing() == NULL) return calls.name arguments;                           \
        if (code != NULL) *code = NO_OPENCL;                                                       \
        return NULL;                                                                               \
    }
#undef FIND
#define FIND(name, parameters, arguments, ...)                                                     \
    REPLACEABLE void *CL_API_CALL name parameters                                                  \
    {                                                                                              \
        return tconv_opencl_missing() == NULL ? calls.name arguments : NULL;                       \
    }
#include "device/opencl_calls.h"
OTHER_CALLS
