/* SPDX-License-Identifier: Apache-2.0 */
/* Gets programs: from memory, from the folder, or built from source or SPIR-V. Building happens
 * outside the lock, so that threads do not wait for each other's compilers. If two build the same
 * program, the first to finish is kept.
 *
 * A program that does not build is a rejection. The first failure is retried at once, because it
 * may be transient: a signal interrupts the compiler, or memory, disk or file handles are missing.
 * If both logs blame the source, the program is given up. Else later plans retry, the first at
 * once, the others after pauses of 10, 30, 70... times the build time, 8 times in all, so that a
 * driver that always refuses costs little. A plan that names the algorithm does not wait. */
#include "device/program.h"

#include "base/error.h"
#include "base/os.h"
#include "device/kernel_source.h"
#include "device/recognise.h"
#include "device/sm_90a.h"
#include "device/spirv.h"
#include "device/trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- rejections ---- */

enum {
    MOST_REJECTIONS = 64, /* kept for a device */
    AT_ONCE = 2,          /* failures without a pause behind them */
    MOST_FAILURES = 10,
    PAUSE = 10 /* times a try, the shortest pause */
};
static const double LEAST_SECONDS = 0.01; /* shortest build time assumed for the pause */

/* Under the lock. NULL if the program has not failed. */
static struct tconv_rejection *failed(const tconv_device *device, const char *key)
{
    struct tconv_rejection *r = device->rejections;
    while (r != NULL && strcmp(r->key, key) != 0) r = r->next;
    return r;
}

static void note_time(struct tconv_retry *retry, double again)
{
    if (again > 0 && again < INFINITY && (retry->again == 0 || again < retry->again))
        retry->again = again;
}

/* Notes that a plan does without a program, which may build later. */
static void note(struct tconv_retry *retry, const struct tconv_rejection *r)
{
    retry->unsure = true;
    note_time(retry, r->again);
}

void tconv_retry_join(struct tconv_retry *to, const struct tconv_retry *from)
{
    to->waits = to->waits || from->waits;
    to->unsure = to->unsure || from->unsure;
    note_time(to, from->again);
}

bool tconv_rejection_allows(tconv_device *device, const char *key, struct tconv_retry *retry,
                            tconv_error *error)
{
    bool allowed = true;
    pthread_mutex_lock(&device->lock);
    const struct tconv_rejection *r = failed(device, key);
    if (r != NULL && r->failures >= AT_ONCE) {
        const bool just_now = r->last >= retry->begun;
        const bool waits = !r->for_good && !just_now && tconv_os_seconds() < r->again;
        allowed = !r->for_good && !just_now && (!waits || retry->insist);
        if (!allowed) *error = r->error;
        if (!allowed && !r->for_good) note(retry, r);
        retry->waits = retry->waits || (!allowed && waits);
    }
    pthread_mutex_unlock(&device->lock);
    return allowed;
}

/* Under the lock: adds a program to the list. NULL without memory. */
static struct tconv_rejection *add(tconv_device *device, const char *key)
{
    struct tconv_rejection *r = calloc(1, sizeof *r + strlen(key) + 1);
    if (r == NULL) return NULL;
    strcpy(r->key, key);
    r->next = device->rejections;
    device->rejections = r;
    struct tconv_rejection **link = &device->rejections;
    for (int i = 0; i < MOST_REJECTIONS && *link != NULL; i++) link = &(*link)->next;
    tconv_rejections_release(*link);
    *link = NULL;
    return r;
}

bool tconv_rejection_add(tconv_device *device, const char *key, const tconv_error *error,
                         const char *log, double seconds, bool for_good, struct tconv_retry *retry)
{
    bool first = false;
    char *own = log == NULL ? NULL : strdup(log);
    pthread_mutex_lock(&device->lock);
    struct tconv_rejection *r = failed(device, key);
    if (r == NULL) r = add(device, key);
    if (r != NULL) {
        r->failures += for_good ? MOST_FAILURES : 1;
        first = r->failures < AT_ONCE;
        r->for_good = for_good || (!first && tconv_logs_blame_source(r->log, own));
        r->error = *error;
        r->last = tconv_os_seconds();
        const double pause = PAUSE * (seconds > LEAST_SECONDS ? seconds : LEAST_SECONDS);
        const int doubled = r->failures - AT_ONCE; /* how often */
        r->again = r->failures >= MOST_FAILURES ? INFINITY
                   : doubled <= 0               ? r->last
                                                : r->last + pause * ((1 << doubled) - 1);
        if (!first && !r->for_good) note(retry, r);
        char *before = r->log;
        r->log = own;
        own = before;
    }
    pthread_mutex_unlock(&device->lock);
    free(own);
    return first;
}

void tconv_rejection_remove(tconv_device *device, const char *key)
{
    pthread_mutex_lock(&device->lock);
    struct tconv_rejection **link = &device->rejections;
    while (*link != NULL && strcmp((*link)->key, key) != 0) link = &(*link)->next;
    struct tconv_rejection *r = *link;
    if (r != NULL) *link = r->next;
    if (r != NULL) r->next = NULL;
    pthread_mutex_unlock(&device->lock);
    tconv_rejections_release(r);
}

void tconv_rejections_release(struct tconv_rejection *first)
{
    for (struct tconv_rejection *r = first, *next; r != NULL; r = next) {
        next = r->next;
        free(r->log);
        free(r);
    }
}

/* ---- binaries ---- */

bool tconv_compiles_late(const tconv_device *device)
{
    return strcmp(device->info.platform, TCONV_POCL) == 0;
}

/* Makes a program of a binary, which is still to be built. NULL with a code. */
static cl_program create_of(const tconv_device *device, const unsigned char *binary, size_t size,
                            cl_int *code)
{
    cl_int accepted = CL_INVALID_BINARY;
    cl_program program =
        clCreateProgramWithBinary(device->context, 1, &device->id, &size, &binary, &accepted, code);
    if (*code != CL_SUCCESS) return NULL;
    if (accepted == CL_SUCCESS) return program;
    *code = accepted;
    clReleaseProgram(program);
    return NULL;
}

cl_program tconv_program_of(const tconv_device *device, const char *key,
                            const struct tconv_record *record)
{
    cl_int code;
    size_t size = record->binary_size;
    const char *lacks = "nothing to change";
    /* The driver may have given what the program was before it was changed. */
    unsigned char *changed =
        tconv_needs_sm_90a(key) ? tconv_sm_90a(record->binary, size, &size, &lacks) : NULL;
    if (changed == NULL && lacks == NULL) return NULL; /* without memory */
    cl_program program = create_of(device, changed != NULL ? changed : record->binary, size, &code);
    free(changed);
    if (program == NULL) return NULL;
    if (clBuildProgram(program, 1, &device->id, "", NULL, NULL) == CL_SUCCESS) return program;
    clReleaseProgram(program);
    return NULL;
}

/* The context may have other devices. One thread at a time: PoCL 3.1 crashes if two threads ask for
 * the binaries of one program. */
unsigned char *tconv_program_binary(const tconv_device *device, cl_program program, size_t *size)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    cl_uint count = 0;
    if (clGetProgramInfo(program, CL_PROGRAM_NUM_DEVICES, sizeof count, &count, NULL) !=
            CL_SUCCESS ||
        count == 0)
        return NULL;
    cl_device_id *ids = calloc(count, sizeof *ids);
    size_t *sizes = calloc(count, sizeof *sizes);
    unsigned char **binaries = calloc(count, sizeof *binaries), *own = NULL;
    pthread_mutex_lock(&lock);
    if (ids != NULL && sizes != NULL && binaries != NULL &&
        clGetProgramInfo(program, CL_PROGRAM_DEVICES, count * sizeof *ids, ids, NULL) ==
            CL_SUCCESS &&
        clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, count * sizeof *sizes, sizes, NULL) ==
            CL_SUCCESS) {
        const size_t i = tconv_device_place(ids, count, device->id);
        if (i < count && sizes[i] > 0) own = malloc(sizes[i]);
        if (own != NULL) {
            *size = sizes[i];
            binaries[i] = own; /* drivers skip entries that are NULL */
            if (clGetProgramInfo(program, CL_PROGRAM_BINARIES, count * sizeof *binaries, binaries,
                                 NULL) != CL_SUCCESS) {
                free(own);
                own = NULL;
            }
        }
    }
    pthread_mutex_unlock(&lock);
    free(ids);
    free(sizes);
    free(binaries);
    return own;
}

/* Writes a program into the folder, if there is one for programs. False with a reason, which may be
 * NULL, if that cannot be done. */
static bool store_program(const tconv_device *device, const char *key, cl_program program,
                          struct tconv_os_reason *reason)
{
    if (!tconv_store_has_folder(&device->store, TCONV_STORED_PROGRAM)) return true;
    size_t size = 0;
    unsigned char *binary = tconv_program_binary(device, program, &size);
    bool stored = false;
    if (binary != NULL)
        stored = tconv_store_write(&device->store, TCONV_STORED_PROGRAM, key, binary, size, reason);
    else if (reason != NULL)
        snprintf(reason->text, sizeof reason->text, "the driver does not give a program's binary");
    free(binary);
    return stored;
}

/* Reads a program from the folder and builds it. NULL if it is not there or cannot be used. */
static cl_program load(const tconv_device *device, const char *key)
{
    void *bytes;
    struct tconv_record record;
    if (!tconv_store_load(&device->store, TCONV_STORED_PROGRAM, key, &bytes, &record)) return NULL;
    cl_program program = tconv_program_of(device, key, &record);
    free(bytes);
    return program;
}

/* ---- memory ---- */

cl_program tconv_program_find(tconv_device *device, const char *key)
{
    return tconv_store_find(&device->store, TCONV_STORED_PROGRAM, key);
}

tconv_status tconv_program_keep(tconv_device *device, const char *key, cl_program *program,
                                tconv_error *error)
{
    const cl_int code = clRetainProgram(*program); /* one for memory, one for the caller */
    void *first = NULL;
    if (code != CL_SUCCESS) {
        clReleaseProgram(*program);
        return tconv_fail_opencl(error, code, "clRetainProgram", "keeping a program");
    }
    if (!tconv_store_put(&device->store, TCONV_STORED_PROGRAM, key, *program, &first)) {
        for (int owners = 0; owners < 2; owners++) clReleaseProgram(*program);
        return tconv_fail_memory(error, strlen(key), "keeping a program");
    }
    if (first != NULL) {
        clReleaseProgram(*program);
        *program = first;
    }
    return TCONV_OK;
}

/* ---- source ---- */

/* A request for a program. */
struct order {
    tconv_device *device;
    const char *key, *options;  /* these are the end of the key */
    char name[TCONV_FILE_NAME]; /* of the file: the key's begin */
    struct tconv_retry *retry;
    const char *source; /* from where it came */
    bool again;         /* it did not build, and is to be built once more */
    bool for_good;      /* it never will: the driver does not take its changed binary */
};

static struct order order_of(tconv_device *device, const char *key, struct tconv_retry *retry)
{
    struct order order = {.device = device, .key = key, .retry = retry};
    const size_t length = strcspn(key, " ");
    snprintf(order.name, sizeof order.name, "%.*s", (int)length, key);
    order.options = key + length + (key[length] == ' ');
    return order;
}

/* `*whole` is the log, from malloc, or NULL. */
static tconv_status build_failure(const tconv_device *device, cl_program program, const char *name,
                                  const char *options, cl_int code, char **whole,
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
    *whole = log == NULL ? NULL : strdup(log);
    for (char *at = log; at != NULL && *at != '\0'; at++) /* a message is one line */
        if (*at == '\n' || *at == '\r' || *at == '\t') *at = ' ';
    const tconv_status status = tconv_fail_opencl(
        error, code, "clBuildProgram", "building %s for %s with \"%s\" (log: %.300s)", name,
        device->info.name, options, log == NULL ? "none" : log);
    free(log);
    return status;
}

/* True for codes that tell of the program. */
static bool refuses_program(cl_int code)
{
    switch (code) {
    case CL_BUILD_PROGRAM_FAILURE:
    case CL_COMPILE_PROGRAM_FAILURE:
    case CL_LINK_PROGRAM_FAILURE:
    case CL_INVALID_BINARY: return true;
    default: return false;
    }
}

/* Builds the changed binary of a program that needs that, instead of the program (sm_90a.h). */
static tconv_status change(struct order *order, cl_program *program, char **log, tconv_error *error)
{
    const tconv_device *device = order->device;
    size_t size = 0, changed_size = 0;
    const char *lacks = "is not given";
    unsigned char *binary = tconv_program_binary(device, *program, &size), *changed = NULL;
    if (binary != NULL) changed = tconv_sm_90a(binary, size, &changed_size, &lacks);
    clReleaseProgram(*program);
    *program = NULL;
    free(binary);
    order->for_good = lacks != NULL;
    if (changed == NULL && lacks == NULL)
        return tconv_fail_memory(error, size, "changing a program's binary");
    if (changed == NULL)
        return tconv_fail(error, TCONV_ERROR_BUILD,
                          "%s cannot be changed for sm_90a: its binary %s on %s with driver %s",
                          order->name, lacks, device->info.name, device->info.driver);
    cl_int code;
    cl_program made = create_of(device, changed, changed_size, &code);
    free(changed);
    order->for_good = refuses_program(code);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clCreateProgramWithBinary", "building %s for sm_90a",
                                 order->name);
    code = clBuildProgram(made, 1, &device->id, "", NULL, NULL);
    order->for_good = refuses_program(code);
    if (code == CL_SUCCESS) {
        *program = made;
        return TCONV_OK;
    }
    const tconv_status status =
        build_failure(device, made, order->name, order->options, code, log, error);
    clReleaseProgram(made);
    return status;
}

/* Builds a program from its module of SPIR-V. NULL if there is none, or if it cannot be used: then
 * the trace tells why. */
static cl_program build_module(struct order *order, const struct tconv_kernel_source *source)
{
    const tconv_device *device = order->device;
    const uint64_t begin = tconv_trace_now();
    tconv_error error;
    if (tconv_needs_sm_90a(order->key)) return NULL;
    cl_program program = tconv_spirv_program(device, order->name, order->options, source, &error);
    if (program != NULL) order->source = "spirv";
    if (error.status != TCONV_OK && tconv_traced(device, TCONV_TRACE_PROGRAM))
        tconv_trace(order->device, (tconv_trace_event){.kind = TCONV_TRACE_PROGRAM,
                                                       .begin_ns = begin,
                                                       .end_ns = tconv_trace_now(),
                                                       .name = order->name,
                                                       .source = "spirv",
                                                       .options = order->options,
                                                       .message = error.message});
    return program;
}

static tconv_status build(struct order *order, cl_program *out, char **log, tconv_error *error)
{
    const tconv_device *device = order->device;
    struct tconv_kernel_source source;
    const char *texts[1 + TCONV_MOST_PIECES] = {"#define ASSEMBLY 0\n"};
    size_t lengths[1 + TCONV_MOST_PIECES] = {0}; /* 0: the text ends with a zero */
    const int ahead = tconv_takes_assembly(&device->info) ? 0 : 1; /* texts before the sources */
    tconv_status status = tconv_kernel_source_read(device->kernel_dir, order->name, &source, error);
    if (status == TCONV_OK) *out = build_module(order, &source);
    if (status == TCONV_OK && *out == NULL) {
        memcpy(texts + 1, source.piece, (size_t)source.pieces * sizeof *texts);
        memcpy(lengths + 1, source.length, (size_t)source.pieces * sizeof *lengths);
        cl_int code;
        cl_program program =
            clCreateProgramWithSource(device->context, (cl_uint)(ahead + source.pieces),
                                      texts + 1 - ahead, lengths + 1 - ahead, &code);
        if (code != CL_SUCCESS) {
            status = tconv_fail_opencl(error, code, "clCreateProgramWithSource", "building %s",
                                       order->name);
        } else if ((code = clBuildProgram(program, 1, &device->id, order->options, NULL, NULL)) !=
                   CL_SUCCESS) {
            status = build_failure(device, program, order->name, order->options, code, log, error);
            clReleaseProgram(program);
        } else {
            *out = program;
            if (tconv_needs_sm_90a(order->key)) status = change(order, out, log, error);
        }
    }
    tconv_kernel_source_free(&source);
    return status;
}

/* True if the next build of the same program may succeed. Whoever edits a kernel wants to see its
 * errors, once. */
static bool may_pass(const tconv_device *device, const tconv_error *error)
{
    return refuses_program(error->opencl_code) && device->kernel_dir == NULL;
}

/* Builds a program, unless it must wait or was rejected. */
static tconv_status compile(struct order *order, cl_program *program, tconv_error *error)
{
    tconv_device *device = order->device;
    if (!tconv_rejection_allows(device, order->key, order->retry, error)) return error->status;
    order->source = "compiler";
    char *log = NULL;
    const double begin = tconv_os_seconds();
    const tconv_status status = build(order, program, &log, error);
    if (status == TCONV_OK) {
        tconv_rejection_remove(device, order->key);
        store_program(device, order->key, *program, NULL); /* else it is compiled again */
        return TCONV_OK;
    }
    if (order->for_good || may_pass(device, error))
        order->again = tconv_rejection_add(device, order->key, error, log,
                                           tconv_os_seconds() - begin, order->for_good,
                                           order->retry);
    free(log);
    return status;
}

static tconv_status get_program(struct order *order, cl_program *program, tconv_error *error)
{
    order->source = "memory";
    if ((*program = tconv_program_find(order->device, order->key)) != NULL) return TCONV_OK;
    if ((*program = load(order->device, order->key)) != NULL) {
        order->source = "disk";
    } else {
        const tconv_status status = compile(order, program, error);
        if (status != TCONV_OK) return status;
    }
    return tconv_program_keep(order->device, order->key, program, error);
}

/* The same with an event of tracing. */
static tconv_status get_traced(struct order *order, cl_program *program, tconv_error *error)
{
    if (!tconv_traced(order->device, TCONV_TRACE_PROGRAM))
        return get_program(order, program, error);
    const uint64_t begin = tconv_trace_now();
    const tconv_status status = get_program(order, program, error);
    tconv_trace(order->device,
                (tconv_trace_event){.kind = TCONV_TRACE_PROGRAM,
                                    .begin_ns = begin,
                                    .end_ns = tconv_trace_now(),
                                    .name = order->name,
                                    .source = order->source,
                                    .options = order->options,
                                    .message = status == TCONV_OK ? NULL : error->message});
    return status;
}

tconv_status tconv_device_program(tconv_device *device, const char *key, struct tconv_retry *retry,
                                  cl_program *program, tconv_error *error)
{
    tconv_status status;
    struct order order = order_of(device, key, retry);
    do {
        order.again = false;
        status = get_traced(&order, program, error);
    } while (order.again);
    return status;
}

bool tconv_device_complete_program(tconv_device *device, const char *key,
                                   struct tconv_os_reason *reason)
{
    cl_program program = NULL;
    char *log = NULL;
    bool stored = false;
    if (!tconv_store_has_folder(&device->store, TCONV_STORED_PROGRAM)) return true;
    struct order order = order_of(device, key, NULL);
    if (!tconv_compiles_late(device))
        program = tconv_program_find(device, key);
    else if (build(&order, &program, &log, NULL) != TCONV_OK)
        program = NULL;
    if (program != NULL) {
        stored = store_program(device, key, program, reason);
        clReleaseProgram(program);
    } else
        snprintf(reason->text, sizeof reason->text, "a program is no longer there");
    free(log);
    return stored;
}
