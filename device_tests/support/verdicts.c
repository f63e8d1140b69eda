/* SPDX-License-Identifier: Apache-2.0 */
/* Stands between the library and OpenCL, as compile_watch.c does, and hashes the calls of a case.
 * Tests with verdicts call the library from one thread. */
#include "verdicts.h"

#include "compile_watch.h"
#include "device/device.h"
#include "device/recognise.h"
#include "portable.h"
#include "tconv_cl/tuning.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_ARGUMENTS = 64, MOST_BUFFERS = 64, MOST_DEVICES = 16, MOST_KEPT = 20000 };

struct program {
    struct program *next;
    cl_program handle;
    uint64_t hash; /* of source and options; 0: unknown */
    bool dry, is_probe;
};

struct kernel {
    struct kernel *next;
    cl_kernel handle; /* of a dry program: this structure */
    bool dry, is_probe;
    uint64_t program, name, arguments[MOST_ARGUMENTS]; /* hashes; program 0: unknown */
};

static struct program *programs;
static struct kernel *kernels;

/* The calls of the case that runs. */
static struct {
    bool dry;     /* programs are not built */
    bool unknown; /* something was done that the hash does not tell */
    int launches, buffer_count;
    uint64_t hash;
    struct {
        cl_mem handle;
        uint64_t hash;
    } buffers[MOST_BUFFERS];
} calls;

uint64_t hash_bytes(uint64_t before, const void *bytes, size_t size)
{
    return XXH3_64bits_withSeed(bytes, size, before + size);
}

static uint64_t hash_text(uint64_t before, const char *text)
{
    return hash_bytes(before, text, strlen(text));
}

/* ---- the calls ---- */

static struct program *program_of(cl_program handle)
{
    struct program *p = programs;
    while (p != NULL && p->handle != handle) p = p->next;
    return p;
}

static struct kernel *kernel_of(cl_kernel handle)
{
    struct kernel *k = kernels;
    while (k != NULL && k->handle != handle) k = k->next;
    return k;
}

/* Remembers a program that is built. True where it is not to be built. A program from a binary has
 * no source, and stays unknown. */
static bool watch_build(cl_program handle, const char *source, const char *options, bool is_probe)
{
    struct program *p = program_of(handle);
    if (p == NULL) {
        p = calloc(1, sizeof *p);
        assert_non_null(p);
        p->next = programs;
        p->handle = handle;
        programs = p;
    }
    p->hash = source == NULL || source[0] == '\0' ? 0 : hash_text(hash_text(1, source), options);
    p->is_probe = is_probe;
    p->dry = calls.dry && !is_probe;
    return p->dry;
}

/* Remembers a kernel; makes that of a program that was not built. */
static cl_kernel watch_kernel(cl_program handle, const char *name, cl_kernel made)
{
    const struct program *program = program_of(handle);
    const bool dry = program != NULL && program->dry;
    if (made == NULL && !dry) return NULL;
    struct kernel *k = calloc(1, sizeof *k);
    assert_non_null(k);
    k->next = kernels;
    k->handle = dry ? (cl_kernel)(void *)k : made;
    k->dry = dry;
    k->is_probe = program != NULL && program->is_probe;
    k->program = program == NULL ? 0 : program->hash;
    k->name = hash_text(0, name);
    kernels = k;
    return k->handle;
}

static bool watch_is_dry(cl_program handle)
{
    const struct program *program = program_of(handle);
    return program != NULL && program->dry;
}

static void write_verdicts(void);

__attribute__((constructor)) static void begin(void)
{
    static const struct compile_watcher watcher = {watch_build, watch_is_dry, watch_kernel};
    compile_watcher = &watcher;
    before_closing = write_verdicts;
}

TCONV_API cl_int clReleaseKernel(cl_kernel kernel)
{
    cl_int (*next)(cl_kernel);
    struct kernel **at = &kernels;
    while (*at != NULL && (*at)->handle != kernel) at = &(*at)->next;
    struct kernel *k = *at;
    const bool dry = k != NULL && k->dry;
    if (k != NULL) *at = k->next;
    free(k);
    if (dry) return CL_SUCCESS;
    find_next_call("clReleaseKernel", &next);
    return next(kernel);
}

/* Of a kernel that was not compiled nothing is known; the library then takes the device's limits.
 */
TCONV_API cl_int clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device,
                                          cl_kernel_work_group_info what, size_t size, void *value,
                                          size_t *needed)
{
    cl_int (*next)(cl_kernel, cl_device_id, cl_kernel_work_group_info, size_t, void *, size_t *);
    const struct kernel *k = kernel_of(kernel);
    if (k != NULL && k->dry) return CL_INVALID_VALUE;
    find_next_call("clGetKernelWorkGroupInfo", &next);
    return next(kernel, device, what, size, value, needed);
}

static void remember_buffer(cl_mem made, uint64_t hash)
{
    if (calls.buffer_count == MOST_BUFFERS)
        calls.unknown = true;
    else if (made != NULL) {
        calls.buffers[calls.buffer_count].handle = made;
        calls.buffers[calls.buffer_count++].hash = hash;
    }
}

/* That of the newest buffer of this handle; 0: there is none. */
static uint64_t buffer_hash(cl_mem handle)
{
    for (int i = calls.buffer_count - 1; i >= 0; i--)
        if (calls.buffers[i].handle == handle) return calls.buffers[i].hash;
    return 0;
}

/* A buffer is named by its place among those of the case, and by its contents. */
TCONV_API cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host,
                                cl_int *code)
{
    cl_mem (*next)(cl_context, cl_mem_flags, size_t, void *, cl_int *);
    find_next_call("clCreateBuffer", &next);
    uint64_t hash = hash_bytes((uint64_t)calls.buffer_count, &flags, sizeof flags);
    hash = host == NULL ? hash_bytes(hash, &size, sizeof size) : hash_bytes(hash, host, size);
    cl_mem made = next(context, flags, size, host, code);
    remember_buffer(made, hash);
    return made;
}

/* An image is named by its buffer and its pixels. */
TCONV_API cl_mem clCreateImage(cl_context context, cl_mem_flags flags,
                               const cl_image_format *format, const cl_image_desc *shape,
                               void *host, cl_int *code)
{
    cl_mem (*next)(cl_context, cl_mem_flags, const cl_image_format *, const cl_image_desc *, void *,
                   cl_int *);
    find_next_call("clCreateImage", &next);
    uint64_t hash = hash_bytes(buffer_hash(shape->buffer), format, sizeof *format);
    hash = hash_bytes(hash, &shape->image_width, sizeof shape->image_width);
    cl_mem made = next(context, flags, format, shape, host, code);
    remember_buffer(made, hash);
    return made;
}

TCONV_API cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
    cl_int (*next)(cl_kernel, cl_uint, size_t, const void *);
    struct kernel *k = kernel_of(kernel);
    uint64_t hash = value == NULL ? hash_text(size, "local") : hash_bytes(1, value, size);
    for (int i = calls.buffer_count - 1; i >= 0 && value != NULL && size == sizeof(cl_mem); i--)
        if (memcmp(value, &calls.buffers[i].handle, size) == 0) { /* the newest of that handle */
            hash = calls.buffers[i].hash;
            break;
        }
    if (k == NULL || index >= MOST_ARGUMENTS)
        calls.unknown = true;
    else
        k->arguments[index] = hash;
    if (k != NULL && k->dry) return CL_SUCCESS;
    find_next_call("clSetKernelArg", &next);
    return next(kernel, index, size, value);
}

TCONV_API cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint axes,
                                        const size_t *offset, const size_t *global,
                                        const size_t *local, cl_uint count, const cl_event *wait,
                                        cl_event *event)
{
    cl_int (*next)(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *,
                   const size_t *, cl_uint, const cl_event *, cl_event *);
    const struct kernel *k = kernel_of(kernel);
    if (k == NULL || k->program == 0)
        calls.unknown = true;
    else if (!k->is_probe) {
        const size_t *const ranges[] = {offset, global, local};
        uint64_t hash = hash_bytes(calls.hash, &k->program, sizeof k->program);
        hash = hash_bytes(hash, &k->name, sizeof k->name);
        hash = hash_bytes(hash, k->arguments, sizeof k->arguments);
        for (uint64_t i = 0; i < 3; i++)
            hash = ranges[i] == NULL ? hash_bytes(hash, &i, sizeof i)
                                     : hash_bytes(hash, ranges[i], axes * sizeof *global);
        calls.hash = hash_bytes(hash, &count, sizeof count);
        calls.launches++;
    }
    if (k != NULL && k->dry)
        return event == NULL ? CL_SUCCESS : clEnqueueMarkerWithWaitList(queue, count, wait, event);
    find_next_call("clEnqueueNDRangeKernel", &next);
    return next(queue, kernel, axes, offset, global, local, count, wait, event);
}

/* What plans do not call; if they begin to, no case is kept until it is hashed. */
#define UNKNOWN(type, name, parameters, arguments)                                                 \
    TCONV_API type name parameters                                                                 \
    {                                                                                              \
        type(*next) parameters;                                                                    \
        find_next_call(#name, &next);                                                              \
        calls.unknown = true;                                                                      \
        return next arguments;                                                                     \
    }
UNKNOWN(cl_int, clEnqueueFillBuffer,
        (cl_command_queue queue, cl_mem buffer, const void *pattern, size_t pattern_size,
         size_t offset, size_t size, cl_uint count, const cl_event *wait, cl_event *event),
        (queue, buffer, pattern, pattern_size, offset, size, count, wait, event))
UNKNOWN(cl_int, clEnqueueWriteBuffer,
        (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
         const void *from, cl_uint count, const cl_event *wait, cl_event *event),
        (queue, buffer, blocking, offset, size, from, count, wait, event))
UNKNOWN(cl_int, clEnqueueWriteBufferRect,
        (cl_command_queue queue, cl_mem buffer, cl_bool blocking, const size_t *origin,
         const size_t *host_origin, const size_t *region, size_t row, size_t slice, size_t host_row,
         size_t host_slice, const void *from, cl_uint count, const cl_event *wait, cl_event *event),
        (queue, buffer, blocking, origin, host_origin, region, row, slice, host_row, host_slice,
         from, count, wait, event))
UNKNOWN(void *, clEnqueueMapBuffer,
        (cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags, size_t offset,
         size_t size, cl_uint count, const cl_event *wait, cl_event *event, cl_int *code),
        (queue, buffer, blocking, flags, offset, size, count, wait, event, code))

static void begin_calls(bool dry)
{
    calls.dry = dry;
    calls.unknown = false;
    calls.launches = calls.buffer_count = 0;
    calls.hash = 0;
}

/* ---- the verdicts ---- */

static struct {
    bool read;
    uint64_t program; /* hash of what judges; 0: no verdicts are kept */
    char path[1000];
    uint64_t *keys, *passed; /* sorted ones of the file; of this run */
    size_t key_count, passed_count, known_count;
    uint64_t current; /* the key of the case that runs; 0: its verdict is not kept */
} kept;

/* Device objects for dry runs. */
static struct {
    const tconv_device *of;
    tconv_device *dry;
    uint64_t hash; /* 0: verdicts of this device are not kept */
} shadows[MOST_DEVICES];

static int compare_keys(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t hash_file(const char *path)
{
    static char part[1 << 16];
    uint64_t hash = 1;
    size_t got;
    FILE *file = fopen(path, "rb");
    if (file == NULL) return 0;
    while ((got = fread(part, 1, sizeof part, file)) > 0) hash = hash_bytes(hash, part, got);
    fclose(file);
    return hash;
}

/* What judges: the test program, or where it links the library's objects the files that
 * TCONV_CL_TEST_JUDGES lists, with a colon between them. 0 without one of them. */
static uint64_t hash_judges(void)
{
    const char *list = getenv("TCONV_CL_TEST_JUDGES");
    uint64_t hash = 1;
    if (list == NULL || list[0] == '\0') return hash_file("/proc/self/exe");
    while (hash != 0 && *list != '\0') {
        char path[1000];
        const size_t length = strcspn(list, ":");
        snprintf(path, sizeof path, "%.*s", (int)length, list);
        const uint64_t of_file = hash_file(path);
        hash = of_file == 0 ? 0 : hash_bytes(hash, &of_file, sizeof of_file);
        list += length + (list[length] == ':');
    }
    return hash;
}

static void read_verdicts(void)
{
    const char *folder = getenv("TCONV_CL_TEST_VERDICTS");
    if (kept.read) return;
    kept.read = true;
    if (folder == NULL || folder[0] == '\0' || strcmp(folder, "off") == 0) return;
    if ((kept.program = hash_judges()) == 0) return;
    kept.keys = malloc(MOST_KEPT * sizeof *kept.keys);
    kept.passed = malloc(MOST_KEPT * sizeof *kept.passed);
    assert_true(kept.keys != NULL && kept.passed != NULL);
    snprintf(kept.path, sizeof kept.path, "%s/%s", folder, program_name());
    FILE *file = fopen(kept.path, "r");
    unsigned long long key;
    while (file != NULL && kept.key_count < MOST_KEPT && fscanf(file, "%llx\n", &key) == 1)
        kept.keys[kept.key_count++] = key;
    if (file != NULL) fclose(file);
    qsort(kept.keys, kept.key_count, sizeof *kept.keys, compare_keys);
}

static bool is_kept(uint64_t key)
{
    return kept.key_count > 0 &&
           bsearch(&key, kept.keys, kept.key_count, sizeof key, compare_keys) != NULL;
}

/* Writes the verdicts of this run, then those of earlier runs while there is room. */
static void write_verdicts(void)
{
    char part[sizeof kept.path + 8];
    for (int i = 0; i < MOST_DEVICES && shadows[i].of != NULL; i++)
        tconv_device_release(shadows[i].dry);
    memset(shadows, 0, sizeof shadows);
    if (kept.program == 0) return;
    print_message("%d of %d cases passed before and were not run again\n", (int)kept.known_count,
                  (int)kept.passed_count);
    qsort(kept.passed, kept.passed_count, sizeof *kept.passed, compare_keys);
    snprintf(part, sizeof part, "%s.part", kept.path);
    FILE *file = fopen(part, "w");
    bool written = file != NULL;
    size_t count = kept.passed_count;
    for (size_t i = 0; i < kept.passed_count && written; i++)
        written = fprintf(file, "%016llx\n", (unsigned long long)kept.passed[i]) > 0;
    for (size_t i = 0; i < kept.key_count && written && count < MOST_KEPT; i++)
        if (bsearch(&kept.keys[i], kept.passed, kept.passed_count, sizeof *kept.passed,
                    compare_keys) == NULL) {
            written = fprintf(file, "%016llx\n", (unsigned long long)kept.keys[i]) > 0;
            count++;
        }
    if (file != NULL && fclose(file) != 0) written = false;
    if (!written || rename(part, kept.path) != 0) remove(part);
    free(kept.keys);
    free(kept.passed);
    memset(&kept, 0, sizeof kept);
}

/* What results depend on besides the calls: the device, its driver and PoCL's environment. 0 for
 * devices whose verdicts are not kept. */
static uint64_t hash_device(const struct device *device)
{
    const cl_device_info of_device[] = {CL_DEVICE_NAME, CL_DEVICE_VERSION, CL_DRIVER_VERSION};
    uint64_t hash = kept.program, sum = 0;
    char text[1000];
    cl_platform_id platform = NULL;
    if (kept.program == 0 || strcmp(device->info->platform, TCONV_POCL) != 0 ||
        clGetDeviceInfo(device->device->id, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL) !=
            CL_SUCCESS ||
        clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof text, text, NULL) != CL_SUCCESS)
        return 0;
    hash = hash_text(hash, text);
    for (int i = 0; i < 3; i++) {
        if (clGetDeviceInfo(device->device->id, of_device[i], sizeof text, text, NULL) !=
            CL_SUCCESS)
            return 0;
        hash = hash_text(hash, text);
    }
#if !defined(_WIN32)
    extern char **environ;
    for (char **variable = environ; *variable != NULL; variable++)
        if (strncmp(*variable, "POCL_", 5) == 0 && strncmp(*variable, "POCL_CACHE", 10) != 0)
            sum += hash_text(1, *variable); /* in any order */
#endif
    hash = hash_bytes(hash, &sum, sizeof sum);
    return hash_bytes(hash, &device->pages, sizeof device->pages);
}

/* The number of the shadow of a device; negative where no verdicts are kept. */
static int shadow_of(const struct device *device)
{
    read_verdicts();
    for (int i = 0; i < MOST_DEVICES; i++) {
        if (shadows[i].of == NULL) {
            shadows[i].of = device->device;
            shadows[i].hash = hash_device(device);
            if (shadows[i].hash != 0 && kept.key_count > 0 &&
                (tconv_device_create(device->context, device->device->id, &shadows[i].dry, NULL) !=
                     TCONV_OK ||
                 tconv_device_set_cache(shadows[i].dry, NULL, 0, NULL) != TCONV_OK))
                failed("no device for dry runs");
        }
        if (shadows[i].of == device->device) return shadows[i].hash == 0 ? -1 : i;
    }
    return -1;
}

/* The key of the case whose calls were made; 0 where they do not tell enough. */
static uint64_t key_of(const struct device *device, const tconv_problem *problem,
                       const char *algorithm, bool bias, const struct tensors *t, uint64_t wanted)
{
    if (calls.unknown || calls.launches == 0) return 0;
    uint64_t hash = hash_bytes(shadows[shadow_of(device)].hash, &calls.hash, sizeof calls.hash);
    hash = hash_text(hash_bytes(hash, &wanted, sizeof wanted), algorithm);
    hash = hash_bytes(hash_bytes(hash, problem, sizeof *problem), &bias, sizeof bias);
    hash = hash_bytes(hash_bytes(hash, &t->epilogue, sizeof t->epilogue), &t->math, sizeof t->math);
    return hash_bytes(hash, &t->error_factor, sizeof t->error_factor);
}

bool run_case(const struct device *device, const tconv_problem *problem, const char *algorithm,
              bool bias, struct tensors *tensors, unsigned number, uint64_t wanted, bool *known)
{
    const int shadow = shadow_of(device);
    *known = false;
    kept.current = 0;
    if (shadow >= 0 && shadows[shadow].dry != NULL) {
        struct device dry = *device;
        dry.device = shadows[shadow].dry;
        dry.dry = true;
        dry.device->info = device->device->info; /* which a test may have changed */
        begin_calls(true);
        const bool runs = run_algorithm(&dry, problem, algorithm, bias, tensors, number);
        kept.current = runs ? key_of(device, problem, algorithm, bias, tensors, wanted) : 0;
        begin_calls(false);
        *known = kept.current != 0 && is_kept(kept.current);
        kept.known_count += *known;
        if (*known) return true;
        if (runs) number = ALWAYS;
    }
    begin_calls(false);
    if (!run_algorithm(device, problem, algorithm, bias, tensors, number)) return false;
    kept.current = shadow < 0 ? 0 : key_of(device, problem, algorithm, bias, tensors, wanted);
    return true;
}

void case_passed(void)
{
    if (kept.current == 0 || kept.passed_count == MOST_KEPT) return;
    kept.passed[kept.passed_count++] = kept.current;
    kept.current = 0;
}

bool check_algorithm(const struct device *device, const tconv_problem *problem,
                     const char *algorithm, bool bias, struct tensors *tensors, unsigned number)
{
    bool known;
    if (!run_case(device, problem, algorithm, bias, tensors, number, 0, &known)) return false;
    if (!known) compare_with_oracle(device, problem, algorithm, bias, tensors);
    case_passed();
    return true;
}
