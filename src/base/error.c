/* SPDX-License-Identifier: Apache-2.0 */
/* Names status codes and OpenCL codes, and fills tconv_error. */
#include "base/error.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* OpenCL's codes are numbers here, so that src/base needs no OpenCL header. The standard fixes the
 * values. */
static const struct {
    int code;
    const char *name;
} opencl_names[] = {
    {-1, "CL_DEVICE_NOT_FOUND"},
    {-2, "CL_DEVICE_NOT_AVAILABLE"},
    {-3, "CL_COMPILER_NOT_AVAILABLE"},
    {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {-5, "CL_OUT_OF_RESOURCES"},
    {-6, "CL_OUT_OF_HOST_MEMORY"},
    {-7, "CL_PROFILING_INFO_NOT_AVAILABLE"},
    {-11, "CL_BUILD_PROGRAM_FAILURE"},
    {-12, "CL_MAP_FAILURE"},
    {-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
    {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    {-15, "CL_COMPILE_PROGRAM_FAILURE"},
    {-17, "CL_LINK_PROGRAM_FAILURE"},
    {-30, "CL_INVALID_VALUE"},
    {-32, "CL_INVALID_PLATFORM"},
    {-33, "CL_INVALID_DEVICE"},
    {-34, "CL_INVALID_CONTEXT"},
    {-35, "CL_INVALID_QUEUE_PROPERTIES"},
    {-36, "CL_INVALID_COMMAND_QUEUE"},
    {-37, "CL_INVALID_HOST_PTR"},
    {-38, "CL_INVALID_MEM_OBJECT"},
    {-42, "CL_INVALID_BINARY"},
    {-43, "CL_INVALID_BUILD_OPTIONS"},
    {-44, "CL_INVALID_PROGRAM"},
    {-45, "CL_INVALID_PROGRAM_EXECUTABLE"},
    {-46, "CL_INVALID_KERNEL_NAME"},
    {-47, "CL_INVALID_KERNEL_DEFINITION"},
    {-48, "CL_INVALID_KERNEL"},
    {-49, "CL_INVALID_ARG_INDEX"},
    {-50, "CL_INVALID_ARG_VALUE"},
    {-51, "CL_INVALID_ARG_SIZE"},
    {-52, "CL_INVALID_KERNEL_ARGS"},
    {-53, "CL_INVALID_WORK_DIMENSION"},
    {-54, "CL_INVALID_WORK_GROUP_SIZE"},
    {-55, "CL_INVALID_WORK_ITEM_SIZE"},
    {-56, "CL_INVALID_GLOBAL_OFFSET"},
    {-57, "CL_INVALID_EVENT_WAIT_LIST"},
    {-58, "CL_INVALID_EVENT"},
    {-59, "CL_INVALID_OPERATION"},
    {-61, "CL_INVALID_BUFFER_SIZE"},
    {-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
    {-64, "CL_INVALID_PROPERTY"},
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
    {-1138, "CL_INVALID_COMMAND_BUFFER_KHR"},
    {-1139, "CL_INVALID_SYNC_POINT_WAIT_LIST_KHR"},
    {-1140, "CL_INCOMPATIBLE_COMMAND_QUEUE_KHR"},
    {-1141, "CL_INVALID_MUTABLE_COMMAND_KHR"},
};

static const char *opencl_name(int code)
{
    for (size_t i = 0; i < sizeof opencl_names / sizeof *opencl_names; i++)
        if (opencl_names[i].code == code) return opencl_names[i].name;
    return "an unnamed code";
}

static tconv_status opencl_status(int code)
{
    switch (code) {
    case -4:  /* CL_MEM_OBJECT_ALLOCATION_FAILURE */
    case -5:  /* CL_OUT_OF_RESOURCES */
    case -61: /* CL_INVALID_BUFFER_SIZE: larger than the device allows */
        return TCONV_ERROR_DEVICE_MEMORY;
    case -6: /* CL_OUT_OF_HOST_MEMORY */ return TCONV_ERROR_HOST_MEMORY;
    case -11: /* CL_BUILD_PROGRAM_FAILURE */ return TCONV_ERROR_BUILD;
    default: return TCONV_ERROR_OPENCL;
    }
}

tconv_status tconv_fail(tconv_error *error, tconv_status status, const char *format, ...)
{
    if (error == NULL) return status;
    error->status = status;
    error->opencl_code = 0;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    return status;
}

tconv_status tconv_fail_opencl(tconv_error *error, int code, const char *call, const char *format,
                               ...)
{
    const tconv_status status = opencl_status(code);
    if (error == NULL) return status;
    error->status = status;
    error->opencl_code = code;
    char what[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    snprintf(error->message, sizeof error->message, "%s: %s failed with %s (%d)", what, call,
             opencl_name(code), code);
    return status;
}

tconv_status tconv_fail_with(tconv_error *error, const tconv_error *other)
{
    if (error != NULL) *error = *other;
    return other->status;
}

tconv_status tconv_fail_memory(tconv_error *error, size_t bytes, const char *what)
{
    return tconv_fail(error, TCONV_ERROR_HOST_MEMORY,
                      "%s: %zu bytes of host memory could not be allocated", what, bytes);
}

const char *tconv_status_name(tconv_status status)
{
    switch (status) {
    case TCONV_OK: return "TCONV_OK";
    case TCONV_ERROR_ARGUMENT: return "TCONV_ERROR_ARGUMENT";
    case TCONV_ERROR_SHAPE: return "TCONV_ERROR_SHAPE";
    case TCONV_ERROR_ATTRIBUTE: return "TCONV_ERROR_ATTRIBUTE";
    case TCONV_ERROR_TYPE: return "TCONV_ERROR_TYPE";
    case TCONV_ERROR_BUFFER: return "TCONV_ERROR_BUFFER";
    case TCONV_ERROR_MISMATCH: return "TCONV_ERROR_MISMATCH";
    case TCONV_ERROR_ALGORITHM: return "TCONV_ERROR_ALGORITHM";
    case TCONV_ERROR_UNSUPPORTED: return "TCONV_ERROR_UNSUPPORTED";
    case TCONV_ERROR_DEVICE: return "TCONV_ERROR_DEVICE";
    case TCONV_ERROR_HOST_MEMORY: return "TCONV_ERROR_HOST_MEMORY";
    case TCONV_ERROR_DEVICE_MEMORY: return "TCONV_ERROR_DEVICE_MEMORY";
    case TCONV_ERROR_NO_DEVICE: return "TCONV_ERROR_NO_DEVICE";
    case TCONV_ERROR_FORKED: return "TCONV_ERROR_FORKED";
    case TCONV_ERROR_FILE: return "TCONV_ERROR_FILE";
    case TCONV_ERROR_OPENCL: return "TCONV_ERROR_OPENCL";
    case TCONV_ERROR_BUILD: return "TCONV_ERROR_BUILD";
    case TCONV_ERROR_CANCELLED: return "TCONV_ERROR_CANCELLED";
    case TCONV_ERROR_INTERNAL: return "TCONV_ERROR_INTERNAL";
    }
    return "an unknown status";
}

bool tconv_status_is_request(tconv_status status)
{
    return status >= TCONV_ERROR_ARGUMENT && status < TCONV_ERROR_HOST_MEMORY;
}
