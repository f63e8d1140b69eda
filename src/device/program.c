/* SPDX-License-Identifier: Apache-2.0 */
/* Gets programs: from the device object's list, from the folder on disk, or built from source.
 * Building happens outside the lock, so that threads do not wait for each other's compilers. If two
 * build the same program, the first to finish is kept. rejection.c knows what did not build. */
#include "base/error.h"
#include "base/os.h"
#include "device/device_members.h"
#include "device/kernel_source.h"
#include "device/processor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `*whole` is the log, from malloc, or NULL. */
static tconv_status build_failure(const tconv_device *device, cl_program program,
                                  const char *source, const char *options, cl_int code,
                                  char **whole, tconv_error *error)
{
    size_t size = 0;
    char *log = NULL;
    if (clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &size) ==
            CL_SUCCESS &&
        size > 0)
        log = malloc(size + 1);
    if (log != NULL) {
        log[size] = '\0';
        if (clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, size, log, NULL) !=
            CL_SUCCESS)
            log[0] = '\0';
    }
    *whole = log == NULL ? NULL : strdup(log);
    for (char *at = log; at != NULL && *at != '\0'; at++) /* a message is one line */
        if (*at == '\n' || *at == '\r' || *at == '\t') *at = ' ';
    const tconv_status status = tconv_fail_opencl(
        error, code, "clBuildProgram", "building %s for %s with \"%s\" (log: %.300s)", source,
        device->info.name, options, log == NULL ? "none" : log);
    free(log);
    return status;
}

static tconv_status build(const tconv_device *device, const char *name, const char *options,
                          cl_program *out, char **log, tconv_error *error)
{
    struct tconv_kernel_source source;
    const char *texts[1 + TCONV_MOST_PIECES] = {"#define ASSEMBLY 0\n"};
    size_t lengths[1 + TCONV_MOST_PIECES] = {0}; /* 0: the text ends with a zero */
    const int ahead = tconv_takes_assembly(&device->info) ? 0 : 1; /* texts before the sources */
    tconv_status status = tconv_kernel_source_read(device->kernel_dir, name, &source, error);
    if (status == TCONV_OK) {
        memcpy(texts + 1, source.piece, (size_t)source.pieces * sizeof *texts);
        memcpy(lengths + 1, source.length, (size_t)source.pieces * sizeof *lengths);
        cl_int code;
        cl_program program =
            clCreateProgramWithSource(device->context, (cl_uint)(ahead + source.pieces),
                                      texts + 1 - ahead, lengths + 1 - ahead, &code);
        if (code != CL_SUCCESS) {
            status =
                tconv_fail_opencl(error, code, "clCreateProgramWithSource", "building %s", name);
        } else if ((code = clBuildProgram(program, 1, &device->id, options, NULL, NULL)) !=
                   CL_SUCCESS) {
            status = build_failure(device, program, name, options, code, log, error);
            clReleaseProgram(program);
        } else {
            *out = program;
        }
    }
    tconv_kernel_source_free(&source);
    return status;
}

/* True if the next build of the same program may succeed. Whoever edits a kernel wants to see its
 * errors, once. */
static bool may_pass(const tconv_device *device, const tconv_error *error)
{
    switch (error->opencl_code) {
    case CL_BUILD_PROGRAM_FAILURE:
    case CL_COMPILE_PROGRAM_FAILURE:
    case CL_LINK_PROGRAM_FAILURE:
    case CL_INVALID_BINARY: return device->kernel_dir == NULL;
    default: return false;
    }
}

/* Builds a program, unless it must wait or was rejected. `*again` says whether to try once more. */
static tconv_status compile(tconv_device *device, const char *key, const char *name,
                            const char *options, struct tconv_retry *retry, cl_program *program,
                            const char **source, bool *again, tconv_error *error)
{
    tconv_error own;
    if (!tconv_rejection_allows(device, key, retry, &own)) return tconv_fail_with(error, &own);
    *source = "compiler";
    char *log = NULL;
    const double begin = tconv_os_seconds();
    const tconv_status status = build(device, name, options, program, &log, &own);
    if (status == TCONV_OK) {
        tconv_rejection_remove(device, key);
        tconv_program_store(device, key, *program, NULL); /* else it is compiled again */
        return TCONV_OK;
    }
    if (may_pass(device, &own))
        *again = tconv_rejection_add(device, key, &own, log, tconv_os_seconds() - begin, retry);
    free(log);
    return tconv_fail_with(error, &own);
}

/* The key of a program, from malloc. NULL without memory. */
static char *key_of(const char *name, const char *options)
{
    const size_t size = strlen(name) + strlen(options) + 2;
    char *key = malloc(size);
    if (key != NULL) snprintf(key, size, "%s %s", name, options);
    return key;
}

/* Gets a program; `*source` says from where. */
static tconv_status get_program(tconv_device *device, const char *name, const char *options,
                                struct tconv_retry *retry, cl_program *program, const char **source,
                                bool *again, tconv_error *error)
{
    char *key = key_of(name, options);
    if (key == NULL)
        return tconv_fail_memory(error, strlen(name) + strlen(options) + 2, "building a program");
    *program = tconv_program_find(device, key);
    *source = "memory";
    if (*program != NULL) {
        free(key);
        return TCONV_OK;
    }
    *program = tconv_program_load(device, key);
    if (*program == NULL) {
        const tconv_status status =
            compile(device, key, name, options, retry, program, source, again, error);
        if (status != TCONV_OK) {
            free(key);
            return status;
        }
    } else
        *source = "disk";
    const tconv_status status = tconv_program_keep(device, key, program, error);
    free(key);
    return status;
}

/* The same with an event of tracing. */
static tconv_status get_traced(tconv_device *device, const char *name, const char *options,
                               struct tconv_retry *retry, cl_program *program, bool *again,
                               tconv_error *error)
{
    const char *source = NULL;
    if (!tconv_traced(device, TCONV_TRACE_PROGRAM))
        return get_program(device, name, options, retry, program, &source, again, error);
    tconv_error own = {TCONV_OK, 0, ""};
    const uint64_t begin = tconv_trace_now();
    const tconv_status status =
        get_program(device, name, options, retry, program, &source, again, &own);
    tconv_trace(device, (tconv_trace_event){.kind = TCONV_TRACE_PROGRAM,
                                            .begin_ns = begin,
                                            .end_ns = tconv_trace_now(),
                                            .name = name,
                                            .source = source,
                                            .options = options,
                                            .message = status == TCONV_OK ? NULL : own.message});
    return status == TCONV_OK ? TCONV_OK : tconv_fail_with(error, &own);
}

tconv_status tconv_device_program(tconv_device *device, const char *name, const char *options,
                                  struct tconv_retry *retry, cl_program *program,
                                  tconv_error *error)
{
    tconv_status status;
    bool again;
    do {
        again = false;
        status = get_traced(device, name, options, retry, program, &again, error);
    } while (again);
    return status;
}

bool tconv_device_complete_program(tconv_device *device, const char *name, const char *options,
                                   struct tconv_os_reason *reason)
{
    cl_program program = NULL;
    if (tconv_device_cache(device) == NULL) return true;
    char *key = key_of(name, options), *log = NULL;
    bool stored = false;
    if (key != NULL) {
        if (!tconv_compiles_late(device))
            program = tconv_program_find(device, key);
        else if (build(device, name, options, &program, &log, NULL) != TCONV_OK)
            program = NULL;
    }
    if (program != NULL) {
        stored = tconv_program_store(device, key, program, reason);
        clReleaseProgram(program);
    } else
        snprintf(reason->text, sizeof reason->text, "a program is no longer there");
    free(log);
    free(key);
    return stored;
}
