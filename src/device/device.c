/* SPDX-License-Identifier: Apache-2.0 */
/* The device object: properties, and programs built so far. Building happens outside the lock, so
 * that threads do not wait for each other's compilers; where two build the same program, the first
 * to finish is kept. */
#include "device/device.h"

#include "base/error.h"
#include "base/sources.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SOURCES = 8 };

struct program {
    struct program *next;
    char *key; /* file names and options */
    cl_program program;
};

struct tconv_device {
    atomic_int owners;
    cl_context context;
    cl_device_id id;
    tconv_device_info info;
    char *kernel_dir; /* NULL: the sources inside the library */
    pthread_mutex_t lock;
    struct program *programs;
};

static tconv_status check_context(cl_context context, cl_device_id device, tconv_error *error)
{
    size_t size = 0;
    cl_int code = clGetContextInfo(context, CL_CONTEXT_DEVICES, 0, NULL, &size);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clGetContextInfo",
                                 "reading the devices of the context");
    cl_device_id *devices = malloc(size);
    if (devices == NULL)
        return tconv_fail_memory(error, size, "reading the devices of the context");
    code = clGetContextInfo(context, CL_CONTEXT_DEVICES, size, devices, NULL);
    bool found = false;
    for (size_t i = 0; code == CL_SUCCESS && i < size / sizeof *devices; i++)
        found = found || devices[i] == device;
    free(devices);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clGetContextInfo",
                                 "reading the devices of the context");
    if (!found)
        return tconv_fail(error, TCONV_ERROR_MISMATCH,
                          "device is not one of the context's devices");
    return TCONV_OK;
}

tconv_status tconv_device_create(cl_context context, cl_device_id id, tconv_device **out,
                                 tconv_error *error)
{
    if (context == NULL || id == NULL || out == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          context == NULL ? "context"
                          : id == NULL    ? "device"
                                          : "out");
    tconv_device_info info = {.struct_size = sizeof info};
    tconv_status status;
    if ((status = check_context(context, id, error)) != TCONV_OK ||
        (status = tconv_device_describe(id, &info, error)) != TCONV_OK)
        return status;
    const char *folder = getenv("TCONV_CL_KERNEL_DIR");
    const bool own_folder = folder != NULL && folder[0] != '\0';
    tconv_device *device = calloc(1, sizeof *device);
    char *kernel_dir = own_folder ? strdup(folder) : NULL;
    if (device == NULL || (own_folder && kernel_dir == NULL) ||
        pthread_mutex_init(&device->lock, NULL) != 0) {
        free(device);
        free(kernel_dir);
        return tconv_fail_memory(error, sizeof *device, "creating a device object");
    }
    const cl_int code = clRetainContext(context);
    if (code != CL_SUCCESS) {
        pthread_mutex_destroy(&device->lock);
        free(device);
        free(kernel_dir);
        return tconv_fail_opencl(error, code, "clRetainContext", "creating a device object");
    }
    atomic_init(&device->owners, 1);
    device->context = context;
    device->id = id;
    device->info = info;
    device->kernel_dir = kernel_dir;
    *out = device;
    return TCONV_OK;
}

void tconv_device_retain(tconv_device *device)
{
    atomic_fetch_add(&device->owners, 1);
}

void tconv_device_release(tconv_device *device)
{
    if (device == NULL || atomic_fetch_sub(&device->owners, 1) > 1) return;
    for (struct program *p = device->programs, *next; p != NULL; p = next) {
        next = p->next;
        clReleaseProgram(p->program);
        free(p->key);
        free(p);
    }
    clReleaseContext(device->context);
    pthread_mutex_destroy(&device->lock);
    free(device->kernel_dir);
    free(device);
}

cl_context tconv_device_context(const tconv_device *device)
{
    return device->context;
}

cl_device_id tconv_device_id_of(const tconv_device *device)
{
    return device->id;
}

bool tconv_device_has_own_sources(const tconv_device *device)
{
    return device->kernel_dir != NULL;
}

const tconv_device_info *tconv_device_properties(const tconv_device *device)
{
    return &device->info;
}

/* A file of the folder that TCONV_CL_KERNEL_DIR names, behind a #line that lets build logs name it.
 */
static tconv_status read_source(const char *folder, const char *name, char **text,
                                tconv_error *error)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
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
static tconv_status gather_sources(const tconv_device *device, const char *const *names, int count,
                                   const char **texts, char **owned, int *found, tconv_error *error)
{
    *found = 0;
    for (int i = 0; i < count && names[i] != NULL; i++) {
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

static tconv_status build(const tconv_device *device, const char *const *names, int count,
                          const char *options, cl_program *out, tconv_error *error)
{
    const char *texts[MOST_SOURCES];
    char *owned[MOST_SOURCES];
    int found = 0;
    tconv_status status = gather_sources(device, names, count < MOST_SOURCES ? count : MOST_SOURCES,
                                         texts, owned, &found, error);
    if (status == TCONV_OK) {
        const char *source = names[found - 1]; /* the last one is the family's own */
        cl_int code;
        cl_program program =
            clCreateProgramWithSource(device->context, (cl_uint)found, texts, NULL, &code);
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

/* Under the lock: the program of that key, retained, or NULL. */
static cl_program find(const tconv_device *device, const char *key)
{
    for (const struct program *p = device->programs; p != NULL; p = p->next)
        if (strcmp(p->key, key) == 0 && clRetainProgram(p->program) == CL_SUCCESS)
            return p->program;
    return NULL;
}

/* Keeps a program that was just built, unless another thread was faster: then `*program` becomes
 * that thread's. */
static tconv_status keep(tconv_device *device, char *key, cl_program *program, tconv_error *error)
{
    struct program *entry = malloc(sizeof *entry);
    cl_int code = entry == NULL
                      ? CL_OUT_OF_HOST_MEMORY
                      : clRetainProgram(*program); /* one for the list, one for the caller */
    if (code != CL_SUCCESS) {
        free(entry);
        free(key);
        clReleaseProgram(*program);
        return tconv_fail_opencl(error, code, "clRetainProgram", "keeping a program");
    }
    pthread_mutex_lock(&device->lock);
    cl_program first = find(device, key);
    if (first == NULL) {
        *entry = (struct program){device->programs, key, *program};
        device->programs = entry;
    }
    pthread_mutex_unlock(&device->lock);
    if (first != NULL) {
        free(entry);
        free(key);
        clReleaseProgram(*program);
        clReleaseProgram(*program);
        *program = first;
    }
    return TCONV_OK;
}

tconv_status tconv_device_program(tconv_device *device, const char *const *names, int count,
                                  const char *options, cl_program *program, tconv_error *error)
{
    size_t size = strlen(options) + 1;
    int last = 0;
    for (int i = 0; i < count && names[i] != NULL; i++) last = i;
    size += strlen(names[last]) + 1;
    char *key = malloc(size);
    if (key == NULL) return tconv_fail_memory(error, size, "building a program");
    snprintf(key, size, "%s %s", names[last], options);
    pthread_mutex_lock(&device->lock);
    *program = find(device, key);
    pthread_mutex_unlock(&device->lock);
    if (*program != NULL) {
        free(key);
        return TCONV_OK;
    }
    const tconv_status status = build(device, names, count, options, program, error);
    if (status != TCONV_OK) {
        free(key);
        return status;
    }
    return keep(device, key, program, error);
}
