/* SPDX-License-Identifier: Apache-2.0 */
/* The layer of faults.h: a function for each call, which the linker puts in the call's place
 * (--wrap). */
#include "faults.h"

#include "base/os.h"
#include "device/extensions.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
#define CALL(name, ...) CALL_##name,
#define WAIT CALL
#define ANSWER CALL
#define BUILD CALL
#define EVENT_CALL CALL
#define RETAIN CALL
#define RELEASE CALL
#define CREATE CALL
#define MAP CALL
#define FIND CALL
#include "device/extension_calls.h"
#include "device/opencl_calls.h"
#undef CALL
#undef RELEASE
#undef MAP
    CALL_malloc,
    CALL_calloc,
    CALL_realloc,
    CALL_strdup,
    CALL_strndup,
    CALL_pthread_create,
    CALL_pthread_mutex_init,
};

#define NO_MEMORY                                                                                  \
    (const cl_int[])                                                                               \
    {                                                                                              \
        1, 0                                                                                       \
    }
const struct fault_call fault_calls[] = {
#define ROW(name, gone, ...) {#name, (const cl_int[]){__VA_ARGS__, 0}, gone},
#undef WAIT
#undef ANSWER
#undef BUILD
#undef EVENT_CALL
#undef RETAIN
#undef CREATE
#define CALL(name, parameters, arguments, ...) ROW(name, false, __VA_ARGS__)
#define WAIT CALL
#define ANSWER CALL
#define BUILD CALL
#define EVENT_CALL CALL
#define RETAIN(name, kind, parameters, arguments, ...) ROW(name, false, __VA_ARGS__)
#define RELEASE(name, kind, parameters, arguments, ...) ROW(name, true, __VA_ARGS__)
#define CREATE(name, kind, type, parameters, arguments, ...) ROW(name, false, __VA_ARGS__)
#define MAP CALL
#include "device/extension_calls.h"
#include "device/opencl_calls.h"
    {"malloc", NO_MEMORY, false},
    {"calloc", NO_MEMORY, false},
    {"realloc", NO_MEMORY, false},
    {"strdup", NO_MEMORY, false},
    {"strndup", NO_MEMORY, false},
    {"pthread_create", NO_MEMORY, false},
    {"pthread_mutex_init", NO_MEMORY, false},
    {NULL, NULL, false},
};

int fault_call_named(const char *name)
{
    int call = 0;
    while (strcmp(fault_calls[call].name, name) != 0) call++;
    return call;
}

static atomic_int armed_call = -1, calls_left, armed_times, failures;
static atomic_int armed_code;
static atomic_long alive_now[KINDS];

void fault_arm(int call, int n, cl_int code)
{
    fault_arm_times(call, n, 1, code);
}

void fault_arm_times(int call, int n, int times, cl_int code)
{
    failures = 0;
    armed_times = times;
    armed_code = code;
    calls_left = n;
    armed_call = n == 0 ? -1 : call;
}

bool fault_disarm(void)
{
    armed_call = -1;
    return failures > 0;
}

void fault_alive(long alive[KINDS])
{
    for (int k = 0; k < KINDS; k++) alive[k] = alive_now[k];
}

const char *fault_kind_name(int kind)
{
    static const char *const names[KINDS] = {"devices", "contexts",         "queues",
                                             "buffers", "programs",         "kernels",
                                             "events",  "blocks of memory", "locks"};
    return names[kind];
}

static const char *limited_kernel;
static size_t limited_group;
static cl_ulong limited_memory;

void fault_limit(const char *kernel, size_t work_group, cl_ulong local_memory)
{
    limited_kernel = kernel;
    limited_group = work_group;
    limited_memory = local_memory;
}

static bool is_limited(cl_kernel kernel)
{
    char name[100] = "";
    return limited_kernel != NULL &&
           clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL) ==
               CL_SUCCESS &&
           strcmp(name, limited_kernel) == 0;
}

static void limit(cl_kernel_work_group_info what, void *value)
{
    if (what == CL_KERNEL_WORK_GROUP_SIZE) memcpy(value, &limited_group, sizeof limited_group);
    if (what == CL_KERNEL_LOCAL_MEM_SIZE) memcpy(value, &limited_memory, sizeof limited_memory);
}

static int spilling = -1;

void fault_spill(int answers)
{
    spilling = answers;
}

static void spill(cl_kernel_work_group_info what, void *value)
{
    const cl_ulong bytes = spilling > 0 ? 64 : 0;
    if (what != CL_KERNEL_PRIVATE_MEM_SIZE || spilling < 0) return;
    memcpy(value, &bytes, sizeof bytes);
    if (spilling > 0) spilling--;
}

static const char *refused_option;
static cl_int refusal;
static int refusals;

void fault_refuse(const char *option, cl_int code)
{
    refused_option = option;
    refusal = code;
    refusals = 0;
}

int fault_refusals(void)
{
    return refusals;
}

static bool is_refused(const char *options)
{
    if (refused_option == NULL || options == NULL || strstr(options, refused_option) == NULL)
        return false;
    refusals++;
    return true;
}

/* The code that this call is to fail with, or 0. */
static cl_int fault(int call)
{
    if (armed_call != call) return 0;
    const int left = atomic_fetch_sub(&calls_left, 1);
    if (left > 1 || left <= 1 - armed_times) return 0;
    failures++;
    return armed_code;
}

/* Adds to a count where a call succeeded; passes its code on. */
static cl_int counted_code(cl_int code, int kind, long change)
{
    if (code == CL_SUCCESS) alive_now[kind] += change;
    return code;
}

#undef CALL
#undef WAIT
#undef ANSWER
#undef BUILD
#undef EVENT_CALL
#undef RETAIN
#undef RELEASE
#undef CREATE
#undef MAP
#undef FIND
#define DECLARE(type, name, parameters)                                                            \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters
#define CALL(name, parameters, arguments, ...)                                                     \
    DECLARE(cl_int, name, parameters)                                                              \
    {                                                                                              \
        const cl_int failure = fault(CALL_##name);                                                 \
        return failure != 0 ? failure : __real_##name arguments;                                   \
    }
/* What it waits for is over even if it says that it failed: the test goes on to read it. */
#define WAIT(name, parameters, arguments, ...)                                                     \
    DECLARE(cl_int, name, parameters)                                                              \
    {                                                                                              \
        const cl_int failure = fault(CALL_##name), code = __real_##name arguments;                 \
        return failure != 0 ? failure : code;                                                      \
    }
#define ANSWER(name, parameters, arguments, ...)                                                   \
    DECLARE(cl_int, name, parameters)                                                              \
    {                                                                                              \
        const cl_int failure = fault(CALL_##name);                                                 \
        if (failure != 0) return failure;                                                          \
        const cl_int code = __real_##name arguments;                                               \
        if (code == CL_SUCCESS && is_limited(kernel)) limit(what, value);                          \
        if (code == CL_SUCCESS) spill(what, value);                                                \
        return code;                                                                               \
    }
#define BUILD(name, parameters, arguments, ...)                                                    \
    DECLARE(cl_int, name, parameters)                                                              \
    {                                                                                              \
        const cl_int failure = fault(CALL_##name);                                                 \
        if (failure != 0) return failure;                                                          \
        return is_refused(build_options) ? refusal : __real_##name arguments;                      \
    }
#define EVENT_CALL(name, parameters, arguments, ...)                                               \
    DECLARE(cl_int, name, parameters)                                                              \
    {                                                                                              \
        const cl_int failure = fault(CALL_##name);                                                 \
        if (failure != 0) return failure;                                                          \
        return counted_code(__real_##name arguments, EVENTS, event != NULL);                       \
    }
#define RETAIN(name, kind, parameters, arguments, ...)                                             \
    DECLARE(cl_int, name, parameters)                                                              \
    {                                                                                              \
        const cl_int failure = fault(CALL_##name);                                                 \
        return failure != 0 ? failure : counted_code(__real_##name arguments, kind, 1);            \
    }
#define RELEASE(name, kind, parameters, arguments, ...)                                            \
    DECLARE(cl_int, name, parameters)                                                              \
    {                                                                                              \
        const cl_int failure = fault(CALL_##name),                                                 \
                     code = counted_code(__real_##name arguments, kind, -1);                       \
        return failure != 0 ? failure : code;                                                      \
    }
#define CREATE(name, kind, type, parameters, arguments, ...)                                       \
    DECLARE(type, name, parameters)                                                                \
    {                                                                                              \
        const cl_int failure = fault(CALL_##name);                                                 \
        if (failure != 0) {                                                                        \
            *code = failure;                                                                       \
            return NULL;                                                                           \
        }                                                                                          \
        type object = __real_##name arguments;                                                     \
        counted_code(*code, kind, 1);                                                              \
        return object;                                                                             \
    }
#define MAP(name, parameters, arguments, ...)                                                      \
    DECLARE(void *, name, parameters)                                                              \
    {                                                                                              \
        *code = fault(CALL_##name);                                                                \
        return *code != 0 ? NULL : __real_##name arguments;                                        \
    }
/* A call of an extension is not linked but looked for: the layer is put in between then. */
#define FIND(name, parameters, arguments, ...)                                                     \
    DECLARE(void *, name, parameters)                                                              \
    {                                                                                              \
        return fault(CALL_##name) != 0 ? NULL : between(call, __real_##name arguments);            \
    }
static void *between(const char *name, void *real);
#include "device/opencl_calls.h"

#undef CALL
#define CALL(name, parameters, arguments, ...)                                                     \
    static cl_int(CL_API_CALL *real_##name) parameters;                                            \
    static cl_int CL_API_CALL faulty_##name parameters                                             \
    {                                                                                              \
        const cl_int failure = fault(CALL_##name);                                                 \
        return failure != 0 ? failure : real_##name arguments;                                     \
    }
#include "device/extension_calls.h"

/* The function that stands between the library and the call with this name, at `real`. */
static void *between(const char *name, void *real)
{
    void *layer = real;
#undef CALL
#define CALL(other, parameters, ...)                                                               \
    if (strcmp(name, #other) == 0 &&                                                               \
        (real != NULL || tconv_os_find_function(NULL, name, &real_##other))) {                     \
        cl_int(CL_API_CALL *faulty) parameters = faulty_##other;                                   \
        memcpy(&layer, &faulty, sizeof layer);                                                     \
        if (real != NULL) memcpy(&real_##other, &real, sizeof real);                               \
    }
#include "device/extension_calls.h"
    return layer;
}

/* Memory: blocks of the library's and the test's own, not of the OpenCL implementation. */
static void *counted(void *block)
{
    if (block != NULL) alive_now[BLOCKS]++;
    return block;
}

DECLARE(void *, malloc, (size_t size))
{
    return fault(CALL_malloc) != 0 ? NULL : counted(__real_malloc(size));
}

DECLARE(void *, calloc, (size_t number, size_t size))
{
    return fault(CALL_calloc) != 0 ? NULL : counted(__real_calloc(number, size));
}

DECLARE(void *, realloc, (void *block, size_t size))
{
    if (fault(CALL_realloc) != 0) return NULL;
    void *moved = __real_realloc(block, size);
    return block == NULL ? counted(moved) : moved;
}

DECLARE(char *, strdup, (const char *text))
{
    return fault(CALL_strdup) != 0 ? NULL : counted(__real_strdup(text));
}

DECLARE(char *, strndup, (const char *text, size_t size))
{
    return fault(CALL_strndup) != 0 ? NULL : counted(__real_strndup(text, size));
}

/* The fake implementation knows which memory commands use (fake/fake.h). Others do not have it. */
__attribute__((weak)) void fake_expect_unused(const void *memory);

DECLARE(void, free, (void *block))
{
    if (block != NULL) alive_now[BLOCKS]--;
    if (block != NULL && fake_expect_unused != NULL) fake_expect_unused(block);
    __real_free(block);
}

DECLARE(int, pthread_create,
        (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *user))
{
    return fault(CALL_pthread_create) != 0 ? 11 /* EAGAIN */
                                           : __real_pthread_create(thread, attributes, run, user);
}

DECLARE(int, pthread_mutex_init, (pthread_mutex_t * mutex, const pthread_mutexattr_t *attributes))
{
    if (fault(CALL_pthread_mutex_init) != 0) return 12; /* ENOMEM */
    const int code = __real_pthread_mutex_init(mutex, attributes);
    if (code == 0) alive_now[LOCKS]++;
    return code;
}

DECLARE(int, pthread_mutex_destroy, (pthread_mutex_t * mutex))
{
    alive_now[LOCKS]--;
    return __real_pthread_mutex_destroy(mutex);
}
