/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: from the list of those that the device object keeps, from a folder on disk, or built
 * from source. Building happens outside the lock, so that threads do not wait for each other's
 * compilers; where two build the same program, the first to finish is kept. */
#include "base/error.h"
#include "base/os.h"
#include "base/sources.h"
#include "device/object.h"
#include "device/processor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file of the folder that TCONV_CL_KERNEL_DIR names, behind a #line that lets build logs name it.
 */
static tconv_status read_source(const char *folder, const char *name, char **text,
                                tconv_error *error)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = tconv_os_fopen(path, "rb");
    if (file == NULL)
        return tconv_fail(error, TCONV_ERROR_BUILD,
                          "TCONV_CL_KERNEL_DIR is set, but kernel source %s cannot be opened",
                          path);
    char line[300];
    const int line_length = snprintf(line, sizeof line, "#line 1 \"%s\"\n", name);
    long size = -1;
    char *whole = NULL;
    if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0 && fseek(file, 0, SEEK_SET) == 0)
        whole = malloc((size_t)line_length + (size_t)size + 1);
    bool read = whole != NULL;
    if (read) {
        memcpy(whole, line, (size_t)line_length);
        read = fread(whole + line_length, 1, (size_t)size, file) == (size_t)size;
        whole[(size_t)line_length + (size_t)size] = '\0';
    }
    fclose(file);
    if (!read) {
        free(whole);
        return tconv_fail(error, TCONV_ERROR_BUILD, "kernel source %s cannot be read", path);
    }
    *text = whole;
    return TCONV_OK;
}

static const char *embedded_source(const char *name)
{
    for (const struct tconv_source *source = tconv_sources; source->name != NULL; source++)
        if (strcmp(source->name, name) == 0) return source->text;
    return NULL;
}

/* The texts to compile. Those in `owned` are to be freed. */
static tconv_status gather_sources(const tconv_device *device, const char *const *names,
                                   const char **texts, char **owned, int *found, tconv_error *error)
{
    *found = 0;
    for (int i = 0; i < TCONV_MAX_SOURCES && names[i] != NULL; i++) {
        owned[i] = NULL;
        if (device->kernel_dir != NULL) {
            const tconv_status status = read_source(device->kernel_dir, names[i], &owned[i], error);
            if (status != TCONV_OK) return status;
            texts[i] = owned[i];
        } else {
            texts[i] = embedded_source(names[i]);
            if (texts[i] == NULL)
                return tconv_fail(error, TCONV_ERROR_INTERNAL,
                                  "kernel source %s is not in the library", names[i]);
        }
        ++*found;
    }
    return TCONV_OK;
}

static tconv_status build_failure(const tconv_device *device, cl_program program,
                                  const char *source, const char *options, cl_int code,
                                  tconv_error *error)
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
    for (char *at = log; at != NULL && *at != '\0'; at++) /* a message is one line */
        if (*at == '\n' || *at == '\r' || *at == '\t') *at = ' ';
    const tconv_status status = tconv_fail_opencl(
        error, code, "clBuildProgram", "building %s for %s with \"%s\" (log: %.300s)", source,
        device->info.name, options, log == NULL ? "none" : log);
    free(log);
    return status;
}

static tconv_status build(const tconv_device *device, const char *const *names, const char *options,
                          cl_program *out, tconv_error *error)
{
    const char *texts[1 + TCONV_MAX_SOURCES] = {"#define ASSEMBLY 0\n"};
    const int ahead = tconv_takes_assembly(&device->info) ? 0 : 1; /* texts before the sources */
    char *owned[TCONV_MAX_SOURCES];
    int found = 0;
    tconv_status status = gather_sources(device, names, texts + 1, owned, &found, error);
    if (status == TCONV_OK) {
        const char *source = names[found - 1]; /* the last one is the algorithm's own */
        cl_int code;
        cl_program program = clCreateProgramWithSource(device->context, (cl_uint)(ahead + found),
                                                       texts + 1 - ahead, NULL, &code);
        if (code != CL_SUCCESS) {
            status =
                tconv_fail_opencl(error, code, "clCreateProgramWithSource", "building %s", source);
        } else if ((code = clBuildProgram(program, 1, &device->id, options, NULL, NULL)) !=
                   CL_SUCCESS) {
            status = build_failure(device, program, source, options, code, error);
            clReleaseProgram(program);
        } else {
            *out = program;
        }
    }
    for (int i = 0; i < found; i++) free(owned[i]);
    return status;
}

tconv_status tconv_device_program(tconv_device *device, const char *const *names,
                                  const char *options, cl_program *program, tconv_error *error)
{
    size_t size = strlen(options) + 1;
    int last = 0;
    for (int i = 0; i < TCONV_MAX_SOURCES && names[i] != NULL; i++) last = i;
    size += strlen(names[last]) + 1;
    char *key = malloc(size);
    if (key == NULL) return tconv_fail_memory(error, size, "building a program");
    snprintf(key, size, "%s %s", names[last], options);
    *program = tconv_program_find(device, key);
    if (*program != NULL) {
        free(key);
        return TCONV_OK;
    }
    *program = tconv_program_load(device, key);
    if (*program == NULL) {
        const tconv_status status = build(device, names, options, program, error);
        if (status != TCONV_OK) {
            free(key);
            return status;
        }
        tconv_program_store(device, key, *program);
    }
    return tconv_program_keep(device, key, program, error);
}
