/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into tests of adapters: counts the copies between host memory and buffers. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <dlfcn.h>
#include <stdatomic.h>

static atomic_int copies;

/* The number of copies so far. */
int copies_counted(void)
{
    return atomic_load(&copies);
}

/* The loader's own function: the loader may have been opened for a Python package alone, where
 * RTLD_NEXT does not look. */
static void *function_of_loader(const char *name)
{
    static void *loader;
    if (loader == NULL) loader = dlopen("libOpenCL.so.1", RTLD_LAZY);
    return dlsym(loader, name);
}

cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
                            size_t size, const void *from, cl_uint count, const cl_event *wait,
                            cl_event *event)
{
    cl_int (*next)(cl_command_queue, cl_mem, cl_bool, size_t, size_t, const void *, cl_uint,
                   const cl_event *, cl_event *);
    *(void **)&next = function_of_loader("clEnqueueWriteBuffer");
    atomic_fetch_add(&copies, 1);
    return next(queue, buffer, blocking, offset, size, from, count, wait, event);
}

cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
                           size_t size, void *to, cl_uint count, const cl_event *wait,
                           cl_event *event)
{
    cl_int (*next)(cl_command_queue, cl_mem, cl_bool, size_t, size_t, void *, cl_uint,
                   const cl_event *, cl_event *);
    *(void **)&next = function_of_loader("clEnqueueReadBuffer");
    atomic_fetch_add(&copies, 1);
    return next(queue, buffer, blocking, offset, size, to, count, wait, event);
}

cl_int clEnqueueWriteBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                const size_t *origin, const size_t *host_origin,
                                const size_t *region, size_t row, size_t slice, size_t host_row,
                                size_t host_slice, const void *from, cl_uint count,
                                const cl_event *wait, cl_event *event)
{
    cl_int (*next)(cl_command_queue, cl_mem, cl_bool, const size_t *, const size_t *,
                   const size_t *, size_t, size_t, size_t, size_t, const void *, cl_uint,
                   const cl_event *, cl_event *);
    *(void **)&next = function_of_loader("clEnqueueWriteBufferRect");
    atomic_fetch_add(&copies, 1);
    return next(queue, buffer, blocking, origin, host_origin, region, row, slice, host_row,
                host_slice, from, count, wait, event);
}

cl_int clEnqueueReadBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                               const size_t *origin, const size_t *host_origin,
                               const size_t *region, size_t row, size_t slice, size_t host_row,
                               size_t host_slice, void *to, cl_uint count, const cl_event *wait,
                               cl_event *event)
{
    cl_int (*next)(cl_command_queue, cl_mem, cl_bool, const size_t *, const size_t *,
                   const size_t *, size_t, size_t, size_t, size_t, void *, cl_uint,
                   const cl_event *, cl_event *);
    *(void **)&next = function_of_loader("clEnqueueReadBufferRect");
    atomic_fetch_add(&copies, 1);
    return next(queue, buffer, blocking, origin, host_origin, region, row, slice, host_row,
                host_slice, to, count, wait, event);
}
