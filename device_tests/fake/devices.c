/* SPDX-License-Identifier: Apache-2.0 */
/* Platforms, devices and contexts. */
#include "fake_internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Values that headers of OpenCL 1.2 do not name. */
enum {
    SVM_CAPABILITIES = 0x1053,
    MOST_SUBGROUPS = 0x105C,
    COMPUTE_CAPABILITY_MAJOR = 0x4000,
    COMPUTE_CAPABILITY_MINOR = 0x4001,
    EXTENSIONS_WITH_VERSION = 0x1060,
    C_FEATURES = 0x106F,
    MUTABLE_DISPATCH_CAPABILITIES = 0x12B0,
    MUTABLE_DISPATCH_ARGUMENTS = 1 << 3,
};

#define MUTABLE "cl_khr_command_buffer_mutable_dispatch"

static struct _cl_platform_id platforms[] = {
    {FAKE_PLATFORM, "OpenCL 3.0 fake 1", "cl_khr_icd cl_khr_command_buffer " MUTABLE},
    {FAKE_PLATFORM " of others", "OpenCL 1.2 fake 1", "cl_khr_icd"},
};
enum { PLATFORMS = sizeof platforms / sizeof *platforms };

struct _cl_device_id fake_devices[FAKE_DEVICES] = {
    [FAKE_CPU] = {.platform = &platforms[0],
                  .type = CL_DEVICE_TYPE_CPU,
                  .name = "Fake CPU",
                  .version = "OpenCL 3.0 fake",
                  .extensions = "cl_khr_fp64 cl_khr_byte_addressable_store "
                                "cl_khr_command_buffer " MUTABLE,
                  .units = 4,
                  .width = 8,
                  .group = 4096,
                  .local_memory = 1 << 19,
                  .memory = UINT64_C(4) << 30,
                  .local_type = CL_GLOBAL,
                  .unified = true,
                  .f64 = true,
                  .divides = true,
                  .svm = 3 /* coarse and fine-grained buffers */},
    [FAKE_GPU] = {.platform = &platforms[0],
                  .type = CL_DEVICE_TYPE_GPU,
                  .name = "Fake GPU",
                  .version = "OpenCL 2.1 fake",
                  .extensions = "cl_khr_fp64 cl_khr_fp16 cl_intel_unified_shared_memory",
                  .units = 16,
                  .width = 1,
                  .group = 1024,
                  .local_memory = 48 << 10,
                  .memory = UINT64_C(2) << 30,
                  .local_type = CL_LOCAL,
                  .f64 = true},
    [FAKE_PLAIN] = {.platform = &platforms[1],
                    .type = CL_DEVICE_TYPE_ACCELERATOR,
                    .name = "Fake accelerator",
                    .version = "OpenCL 1.2 fake",
                    .extensions = "cl_khr_byte_addressable_store",
                    .units = 2,
                    .width = 4,
                    .group = 256,
                    .local_memory = 16 << 10,
                    .memory = UINT64_C(1) << 30,
                    .local_type = CL_LOCAL,
                    .in_order = true},
    [FAKE_INTEGRATED] = {.platform = &platforms[1],
                         .type = CL_DEVICE_TYPE_GPU,
                         .name = "Fake integrated GPU",
                         .version = "OpenCL 2.0 fake",
                         .extensions = "cl_khr_fp64 cl_khr_fp16",
                         .units = 8,
                         .width = 1,
                         .group = 512,
                         .local_memory = 32 << 10,
                         .memory = UINT64_C(1) << 30,
                         .local_type = CL_LOCAL,
                         .unified = true,
                         .f64 = true,
                         .svm = 1},
};

/* Whether the last of the devices exists. */
static bool threadless;

static const char *least = ""; /* FAKE_OPENCL_LEAST */

/* fake_set_nvidia */
static struct nvidia {
    cl_uint major, minor;
    const char *how;
} nvidia;

API void fake_set_nvidia(unsigned major, unsigned minor, const char *how)
{
    static const char *plain;
    if (plain == NULL) plain = fake_devices[FAKE_GPU].extensions;
    nvidia = (struct nvidia){major, minor, how};
    fake_devices[FAKE_GPU].extensions = how == NULL ? plain
                                                    : "cl_khr_fp64 cl_nv_device_attribute_query";
}

bool fake_is_nvidia(cl_context context)
{
    return nvidia.how != NULL && context->device[0] == &fake_devices[FAKE_GPU];
}

bool fake_nvidia_does(const char *what, const char *options)
{
    const size_t length = strlen(what);
    if (nvidia.how == NULL || strncmp(nvidia.how, what, length) != 0) return false;
    return nvidia.how[length] == '\0' ||
           (nvidia.how[length] == ' ' && strstr(options, nvidia.how + length + 1) != NULL);
}

static void make_least(void)
{
    if (strcmp(least, "V3D") != 0) return;
    platforms[1].name = "rusticl";
    for (int i = 0; i < FAKE_DEVICES; i++)
        if (fake_devices[i].platform == &platforms[1]) fake_devices[i].name = "V3D 4.2.14.0";
}

static void read_environment(void)
{
    if (getenv("FAKE_OPENCL_LEAST") != NULL) least = getenv("FAKE_OPENCL_LEAST");
    make_least();
    const char *wanted = getenv("FAKE_OPENCL_THREADLESS");
    threadless = wanted != NULL;
    if (!threadless) return;
    platforms[0].name = "Portable Computing Language";
    struct _cl_device_id *basic = &fake_devices[FAKE_THREADLESS]; /* the processor once more */
    *basic = fake_devices[FAKE_CPU];
    basic->name = "basic-fake";
    basic->units = 1;
    basic->divides = false;
    basic->copies = strcmp(wanted, "copies") == 0;
    fake_devices[FAKE_CPU].name = "pthread-fake";
}

static void begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_environment);
}

/* With the lock. */
static bool is_part(cl_device_id device, const char *call)
{
    return fake_lives(device, DEVICE_PART, call);
}

static bool is_whole(cl_device_id device)
{
    return device >= fake_devices && device < fake_devices + FAKE_DEVICES;
}

static bool is_device(cl_device_id device, const char *call)
{
    if (is_whole(device)) return true;
    fake_lock();
    const bool is = is_part(device, call);
    fake_unlock();
    return is;
}

API cl_int clGetPlatformIDs(cl_uint n, cl_platform_id *ids, cl_uint *count)
{
    if (ids == NULL && count == NULL) return CL_INVALID_VALUE;
    begin();
    for (cl_uint i = 0; i < PLATFORMS && ids != NULL && i < n; i++) ids[i] = &platforms[i];
    if (count != NULL) *count = PLATFORMS;
    return CL_SUCCESS;
}

API cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info what, size_t size,
                             void *value, size_t *needed)
{
    if (platform < platforms || platform >= platforms + PLATFORMS) return CL_INVALID_PLATFORM;
    const char *text = what == CL_PLATFORM_NAME         ? platform->name
                       : what == CL_PLATFORM_VERSION    ? platform->version
                       : what == CL_PLATFORM_EXTENSIONS ? platform->extensions
                       : what == CL_PLATFORM_VENDOR     ? "Fake vendor"
                       : what == CL_PLATFORM_PROFILE    ? "FULL_PROFILE"
                                                        : NULL;
    if (text == NULL) return CL_INVALID_VALUE;
    return fake_answer(text, strlen(text) + 1, size, value, needed);
}

API cl_int clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint n,
                          cl_device_id *ids, cl_uint *count)
{
    cl_uint found = 0;
    for (int order = 0; order < FAKE_DEVICES; order++) {
        const int i = order == 0 ? FAKE_THREADLESS : order - 1; /* as PoCL, which lists it first */
        if (fake_devices[i].platform != platform || (fake_devices[i].type & type) == 0 ||
            (i == FAKE_THREADLESS && !threadless))
            continue;
        if (ids != NULL && found < n) ids[found] = &fake_devices[i];
        found++;
    }
    if (count != NULL) *count = found;
    return found == 0 ? CL_DEVICE_NOT_FOUND : CL_SUCCESS;
}

/* What the CPU's extensions have: their versions are told by OpenCL 3.0. */
struct version {
    cl_uint version;
    char name[64];
};

/* Where the answer to a question goes. */
struct answer {
    size_t room;
    void *value;
    size_t *needed;
};

static cl_int text(struct answer to, const char *value)
{
    return fake_answer(value, strlen(value) + 1, to.room, to.value, to.needed);
}

static cl_int wide(struct answer to, cl_ulong value)
{
    return fake_answer(&value, sizeof value, to.room, to.value, to.needed);
}

static cl_int narrow(struct answer to, cl_uint value)
{
    return fake_answer(&value, sizeof value, to.room, to.value, to.needed);
}

static cl_int machine(struct answer to, size_t value)
{
    return fake_answer(&value, sizeof value, to.room, to.value, to.needed);
}

API cl_int clGetDeviceInfo(cl_device_id d, cl_device_info what, size_t size, void *value,
                           size_t *needed)
{
    static const struct version versions[] = {
        {1 << 22, "cl_khr_fp64"}, {1 << 22, "cl_khr_command_buffer"}, {9 << 12 | 3, MUTABLE}};
    static const struct version first_versions[] = {
        {1 << 22, "cl_khr_fp64"}, {9 << 12, "cl_khr_command_buffer"}, {9 << 12, MUTABLE}};
    static const struct version features[] = {
        {1 << 22, "__opencl_c_fp64"},
        {1 << 22, "__opencl_c_integer_dot_product_input_4x8bit_packed"}};
    if (!is_device(d, "clGetDeviceInfo")) return CL_INVALID_DEVICE;
    const struct answer to = {size, value, needed};
    switch (what) {
    case CL_DEVICE_TYPE: return wide(to, d->type);
    case CL_DEVICE_NAME: return text(to, d->name);
    case CL_DEVICE_VENDOR: return text(to, "Fake vendor");
    case CL_DEVICE_VENDOR_ID: return narrow(to, 0xfa4e);
    case CL_DRIVER_VERSION:
        if (getenv("FAKE_OPENCL_DRIVER") != NULL) return text(to, getenv("FAKE_OPENCL_DRIVER"));
        return text(to, threadless ? "5.0" : "1.0"); /* PoCL 5 takes no assembly */
    case CL_DEVICE_VERSION: return text(to, d->version);
    case CL_DEVICE_PROFILE:
        return text(to, d->platform == &platforms[1] && strcmp(least, "embedded") == 0
                            ? "EMBEDDED_PROFILE"
                            : "FULL_PROFILE");
    case CL_DEVICE_EXTENSIONS: return text(to, d->extensions);
    case CL_DEVICE_PLATFORM:
        return fake_answer(&d->platform, sizeof(cl_platform_id), size, value, needed);
    case CL_DEVICE_MAX_COMPUTE_UNITS: return narrow(to, d->units);
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT: return narrow(to, d->width);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE: return machine(to, d->group);
    case CL_DEVICE_MAX_WORK_ITEM_SIZES: {
        const size_t items[] = {d->group, d->group, d->group};
        return fake_answer(items, sizeof items, size, value, needed);
    }
    case CL_DEVICE_LOCAL_MEM_SIZE: return wide(to, d->local_memory);
    case CL_DEVICE_LOCAL_MEM_TYPE: return narrow(to, d->local_type);
    case CL_DEVICE_GLOBAL_MEM_SIZE: return wide(to, d->memory);
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE: return wide(to, d->memory / 32);
    case CL_DEVICE_GLOBAL_MEM_CACHE_SIZE: return wide(to, 1 << 20);
    case CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE: return wide(to, 64 << 10);
    case CL_DEVICE_MAX_CLOCK_FREQUENCY: return narrow(to, 1000);
    case CL_DEVICE_ADDRESS_BITS: return narrow(to, 64);
    case CL_DEVICE_MEM_BASE_ADDR_ALIGN: return narrow(to, 1024);
    case CL_DEVICE_HOST_UNIFIED_MEMORY: return narrow(to, d->unified);
    case CL_DEVICE_SINGLE_FP_CONFIG:
        return wide(to, CL_FP_FMA | CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST);
    case CL_DEVICE_DOUBLE_FP_CONFIG: return wide(to, d->f64 ? CL_FP_FMA | CL_FP_INF_NAN : 0);
    case CL_DEVICE_QUEUE_PROPERTIES:
        return wide(to, CL_QUEUE_PROFILING_ENABLE |
                            (d->in_order ? 0 : CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE));
    case CL_DEVICE_PARENT_DEVICE:
        return fake_answer(&d->parent, sizeof(cl_device_id), size, value, needed);
    case CL_DEVICE_PARTITION_MAX_SUB_DEVICES: return narrow(to, d->divides ? d->units : 1);
    case CL_DEVICE_PARTITION_PROPERTIES: {
        const cl_device_partition_property ways[] = {d->divides ? CL_DEVICE_PARTITION_EQUALLY : 0};
        return fake_answer(ways, sizeof ways, size, value, needed);
    }
    case CL_DEVICE_AVAILABLE:
    case CL_DEVICE_COMPILER_AVAILABLE: return narrow(to, CL_TRUE);
    case SVM_CAPABILITIES:
        if (d->svm == 0) return CL_INVALID_VALUE;
        return wide(to, d->svm);
    case MOST_SUBGROUPS: return narrow(to, 0);
    case COMPUTE_CAPABILITY_MAJOR:
    case COMPUTE_CAPABILITY_MINOR:
        if (d != &fake_devices[FAKE_GPU] || nvidia.how == NULL) return CL_INVALID_VALUE;
        return narrow(to, what == COMPUTE_CAPABILITY_MAJOR ? nvidia.major : nvidia.minor);
    case EXTENSIONS_WITH_VERSION:
        if (d->platform != &platforms[0] || d->type != CL_DEVICE_TYPE_CPU) return CL_INVALID_VALUE;
        return fake_answer(getenv("FAKE_OPENCL_FIRST_BUFFERS") != NULL ? first_versions : versions,
                           sizeof versions, size, value, needed);
    case C_FEATURES:
        if (getenv("FAKE_OPENCL_DOT_FEATURE") == NULL) return CL_INVALID_VALUE;
        return fake_answer(features, sizeof features, size, value, needed);
    case MUTABLE_DISPATCH_CAPABILITIES:
        if (d->platform != &platforms[0] || d->type != CL_DEVICE_TYPE_CPU) return CL_INVALID_VALUE;
        return wide(to, MUTABLE_DISPATCH_ARGUMENTS);
    default: return CL_INVALID_VALUE;
    }
}

/* ---- parts of devices ---- */

API cl_int clCreateSubDevices(cl_device_id whole, const cl_device_partition_property *way,
                              cl_uint room, cl_device_id *parts, cl_uint *count)
{
    if (!is_device(whole, "clCreateSubDevices")) return CL_INVALID_DEVICE;
    if (!whole->divides || way[0] != CL_DEVICE_PARTITION_EQUALLY || way[1] <= 0 ||
        (cl_uint)way[1] > whole->units)
        return CL_INVALID_VALUE;
    const cl_uint units = (cl_uint)way[1], made = whole->units / units;
    if (count != NULL) *count = made;
    if (parts == NULL) return CL_SUCCESS;
    if (room < made) return CL_INVALID_VALUE;
    fake_lock();
    for (cl_uint i = 0; i < made; i++) {
        cl_device_id part = fake_new(DEVICE_PART, sizeof *part);
        const struct object object = part->object;
        *part = *whole;
        part->object = object;
        part->parent = whole;
        part->units = units;
        part->divides = false;
        parts[i] = part;
    }
    fake_unlock();
    return CL_SUCCESS;
}

API cl_int clRetainDevice(cl_device_id device)
{
    return is_whole(device) ? CL_SUCCESS
                            : fake_retain(device, DEVICE_PART, CL_INVALID_DEVICE, "clRetainDevice");
}

API cl_int clReleaseDevice(cl_device_id device)
{
    return is_whole(device)
               ? CL_SUCCESS
               : fake_release(device, DEVICE_PART, CL_INVALID_DEVICE, "clReleaseDevice");
}

/* ---- contexts ---- */

API cl_context clCreateContext(
    const cl_context_properties *properties, cl_uint count, const cl_device_id *ids,
    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user, cl_int *code)
{
    (void)notify;
    (void)user;
    cl_int own;
    if (code == NULL) code = &own;
    *code = CL_INVALID_DEVICE;
    if (count == 0 || count > FAKE_DEVICES || ids == NULL) return NULL;
    for (cl_uint i = 0; i < count; i++)
        if (!is_device(ids[i], "clCreateContext")) return NULL;
    *code = CL_INVALID_PLATFORM;
    for (cl_uint i = 0; i < count; i++)
        if (ids[i]->platform != ids[0]->platform ||
            (properties != NULL && properties[0] == CL_CONTEXT_PLATFORM &&
             (cl_platform_id)properties[1] != ids[i]->platform))
            return NULL;
    fake_lock();
    cl_context made = fake_new(CONTEXT, sizeof *made);
    memcpy(made->device, ids, count * sizeof *ids);
    made->count = count;
    for (cl_uint i = 0; i < count; i++)
        if (!is_whole(ids[i])) fake_use(ids[i]);
    fake_unlock();
    *code = CL_SUCCESS;
    return made;
}

API cl_int clGetContextInfo(cl_context context, cl_context_info what, size_t size, void *value,
                            size_t *needed)
{
    fake_lock();
    cl_int code = CL_INVALID_CONTEXT;
    if (fake_lives(context, CONTEXT, "clGetContextInfo")) {
        const cl_uint owners = (cl_uint)context->object.owners;
        code = what == CL_CONTEXT_DEVICES
                   ? fake_answer(context->device, context->count * sizeof(cl_device_id), size,
                                 value, needed)
               : what == CL_CONTEXT_NUM_DEVICES
                   ? fake_answer(&context->count, sizeof(cl_uint), size, value, needed)
               : what == CL_CONTEXT_REFERENCE_COUNT
                   ? fake_answer(&owners, sizeof owners, size, value, needed)
                   : CL_INVALID_VALUE;
    }
    fake_unlock();
    return code;
}

API cl_int clRetainContext(cl_context context)
{
    return fake_retain(context, CONTEXT, CL_INVALID_CONTEXT, "clRetainContext");
}

API cl_int clReleaseContext(cl_context context)
{
    return fake_release(context, CONTEXT, CL_INVALID_CONTEXT, "clReleaseContext");
}

API void *clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name)
{
    (void)platform;
    return fake_extension(name);
}
