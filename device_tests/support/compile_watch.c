/* SPDX-License-Identifier: Apache-2.0 */
/* The calls are defined here, in the test program, so that the dynamic linker takes these for the
 * library's; each passes on to the OpenCL loader's. Implementations compile when a program is
 * built, when a kernel is made, or before a kernel first runs: the first wait after a kernel was
 * made counts, too, although it includes that run, which takes milliseconds. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "compile_watch.h"

#include "portable.h"

#if defined(TCONV_OPENCL_LIBRARY)
#include "base/os.h"
#else
#include <dlfcn.h>
#endif
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static atomic_int programs;
static atomic_long microseconds;
static atomic_bool refusing, refused, kernels_are_new;

void refuse_to_compile(bool refuse)
{
    atomic_store(&refusing, refuse);
    if (refuse) atomic_store(&refused, false);
}

bool compiling_was_refused(void)
{
    return atomic_load(&refused);
}

void report_compiling(void)
{
    const double seconds = 1e-6 * (double)atomic_load(&microseconds);
    const char *file = getenv("TCONV_CL_TEST_REPORT");
    printf("compiled %d programs in %.1f s\n", atomic_load(&programs), seconds);
    FILE *report = file == NULL ? NULL : fopen(file, "a");
    if (report == NULL) return;
    fprintf(report, "%s %d %.1f\n", program_name(), atomic_load(&programs), seconds);
    fclose(report);
}

static long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* The loader's call. Where the loader is opened at run time, calls of a shared library are not seen
 * here; those of a static one are. */
void find_next_call(const char *name, void *function)
{
#if defined(TCONV_OPENCL_LIBRARY)
    tconv_os_find_function(tconv_os_open_library(TCONV_OPENCL_LIBRARY), name, function);
#else
    void *next = dlsym(RTLD_NEXT, name);
    memcpy(function, &next, sizeof next);
#endif
}

const struct compile_watcher *compile_watcher;

/* A program's source, from malloc; NULL where there is none. */
static char *source_of(cl_program program)
{
    size_t size = 0;
    if (clGetProgramInfo(program, CL_PROGRAM_SOURCE, 0, NULL, &size) != CL_SUCCESS || size == 0)
        return NULL;
    char *source = malloc(size);
    if (source != NULL &&
        clGetProgramInfo(program, CL_PROGRAM_SOURCE, size, source, NULL) == CL_SUCCESS)
        return source;
    free(source);
    return NULL;
}

TCONV_API cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices,
                                const char *options, void(CL_CALLBACK *notify)(cl_program, void *),
                                void *user)
{
    cl_int (*next)(cl_program, cl_uint, const cl_device_id *, const char *,
                   void(CL_CALLBACK *)(cl_program, void *), void *);
    char *source = source_of(program);
    /* A program that tries the processor's instructions is always compiled: what it finds out holds
     * for all that a test program runs. */
    const bool is_probe = source != NULL && strstr(source, "tconv_words_probe(") != NULL;
    const bool is_refused = atomic_load(&refusing) && !is_probe;
    const bool is_dry = !is_refused && compile_watcher != NULL &&
                        compile_watcher->build(program, source, options, is_probe);
    free(source);
    if (is_refused) atomic_store(&refused, true);
    if (is_refused || is_dry) return is_refused ? CL_BUILD_PROGRAM_FAILURE : CL_SUCCESS;
    find_next_call("clBuildProgram", &next);
    const long begin = now();
    const cl_int code = next(program, count, devices, options, notify, user);
    atomic_fetch_add(&microseconds, now() - begin);
    atomic_fetch_add(&programs, 1);
    return code;
}

TCONV_API cl_kernel clCreateKernel(cl_program program, const char *name, cl_int *code)
{
    cl_kernel (*next)(cl_program, const char *, cl_int *);
    if (compile_watcher != NULL && compile_watcher->is_dry(program)) {
        *code = CL_SUCCESS;
        return compile_watcher->kernel(program, name, NULL);
    }
    find_next_call("clCreateKernel", &next);
    const long begin = now();
    cl_kernel kernel = next(program, name, code);
    atomic_fetch_add(&microseconds, now() - begin);
    atomic_store(&kernels_are_new, true);
    return compile_watcher == NULL ? kernel : compile_watcher->kernel(program, name, kernel);
}

TCONV_API cl_int clFinish(cl_command_queue queue)
{
    cl_int (*next)(cl_command_queue);
    find_next_call("clFinish", &next);
    const long begin = now();
    const cl_int code = next(queue);
    if (atomic_exchange(&kernels_are_new, false)) atomic_fetch_add(&microseconds, now() - begin);
    return code;
}

TCONV_API cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                     size_t offset, size_t size, void *to, cl_uint count,
                                     const cl_event *wait, cl_event *event)
{
    cl_int (*next)(cl_command_queue, cl_mem, cl_bool, size_t, size_t, void *, cl_uint,
                   const cl_event *, cl_event *);
    find_next_call("clEnqueueReadBuffer", &next);
    const long begin = now();
    const cl_int code = next(queue, buffer, blocking, offset, size, to, count, wait, event);
    if (blocking && atomic_exchange(&kernels_are_new, false))
        atomic_fetch_add(&microseconds, now() - begin);
    return code;
}
