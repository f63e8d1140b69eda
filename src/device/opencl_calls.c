/* SPDX-License-Identifier: Apache-2.0 */
/* Finds OpenCL at run time (TCONV_OPENCL_AT_RUN_TIME). Every OpenCL call of the library, the tool
 * and the tests is a function here that passes the call on to the OpenCL loader, the first library
 * of TCONV_OPENCL_LIBRARY that has OpenCL's calls: names with | between them. The first call opens
 * it. It is never closed, because drivers keep threads. If it is missing, calls return
 * CL_PLATFORM_NOT_FOUND_KHR, as a loader without drivers does. All are calls of OpenCL 1.2. If a
 * program links the loader itself, or a test defines the calls, those functions are used.
 *
 * Google's phones have a library that hides its calls: enableOpenCL lets the process use OpenCL,
 * and loadOpenCLPointer finds a call. */
#include "base/os.h"
#include "device/opencl_loader.h"

#include <CL/cl.h>
#include <pthread.h>
#include <string.h>

#if defined(_WIN32) /* its linkers find no weak functions */
#define REPLACEABLE
#else
#define REPLACEABLE __attribute__((weak))
#endif

#if defined(__ANDROID__)
#define INSTALL                                                                                    \
    "install an application whose manifest has <uses-native-library "                              \
    "android:name=\"libOpenCL.so\">, or run it on a phone that has OpenCL"
#else
#define INSTALL                                                                                    \
    "install the driver of your GPU, or for the processor ocl-icd-libopencl1 and pocl-opencl-icd"
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
static char loader[200], missing[sizeof TCONV_OPENCL_LIBRARY + 300];
static void *(*hidden_call)(const char *name); /* NULL: the loader shows its calls */

enum { LOADER_NAME = sizeof loader };

static bool find_in_library(const char *name, void *call)
{
    if (hidden_call == NULL) return tconv_os_find_function(library, name, call);
    void *const found = hidden_call(name);
    memcpy(call, &found, sizeof found); /* POSIX, not C, makes a function of it */
    return found != NULL;
}

/* Opens a library; true if it has OpenCL. */
static bool open_library(const char *name, size_t length)
{
    void (*enable)(void);
    cl_int(CL_API_CALL * first)(cl_uint, cl_platform_id *, cl_uint *);
    char file[LOADER_NAME];
    if (length >= sizeof file) return false;
    memcpy(file, name, length);
    file[length] = '\0';
    void *opened = tconv_os_open_library(file);
    if (opened == NULL) return false;
    library = opened;
    memcpy(loader, file, sizeof file);
    hidden_call = NULL;
    if (tconv_os_find_function(library, "enableOpenCL", &enable)) {
        enable();
        tconv_os_find_function(library, "loadOpenCLPointer", &hidden_call);
    }
    return find_in_library("clGetPlatformIDs", &first);
}

/* Finds a call: the program's own if the program links a loader or one was preloaded (as Oclgrind
 * does), else the one in `library`. */
static bool find(const char *name, void *call)
{
    if (tconv_os_find_function(NULL, name, call)) return true;
    if (library == NULL)
        snprintf(missing, sizeof missing, "the OpenCL loader %s cannot be opened: " INSTALL,
                 TCONV_OPENCL_LIBRARY);
    else if (!find_in_library(name, call))
        snprintf(missing, sizeof missing,
                 "the OpenCL loader %s has no %s, which is a call of OpenCL 1.2: install a newer "
                 "one",
                 loader, name);
    return missing[0] == '\0';
}

static void open_loader(void)
{
    const char *at = TCONV_OPENCL_LIBRARY;
    while (!open_library(at, strcspn(at, "|")) && at[strcspn(at, "|")] != '\0')
        at += strcspn(at, "|") + 1;
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
           (library != NULL && find_in_library(name, call));
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
