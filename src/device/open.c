/* SPDX-License-Identifier: Apache-2.0 */
/* The device object: creates, shares and releases it. */
#include "base/cancel.h"
#include "base/error.h"
#include "base/os.h"
#include "base/process.h"
#include "device/crew.h"
#include "device/describe.h"
#include "device/environment.h"
#include "device/program.h"

#include <stdlib.h>
#include <string.h>

/* Retains the context, and a sub-device: only sub-devices are reference counted. */
static cl_int retain(cl_context context, cl_device_id id, bool *part, const char **call)
{
    *part = tconv_is_part(id);
    *call = "clRetainDevice";
    cl_int code = *part ? clRetainDevice(id) : CL_SUCCESS;
    if (code != CL_SUCCESS) return code;
    *call = "clRetainContext";
    code = clRetainContext(context);
    if (code != CL_SUCCESS && *part) clReleaseDevice(id);
    return code;
}

/* The alignment in bytes that arrays need for kernels to use them in place, beside that of their
 * elements; 0: copying is better. OpenCL requires memory from the caller to be aligned to what
 * kernels access (1.2, appendix C.3): single elements here. Drivers of GPUs that share the host's
 * memory map whole pages, and copy arrays that do not begin at a page. */
static size_t alignment_of(const tconv_device *device)
{
    enum { ANY = 1, PAGE = 4096 };
    cl_bool unified = CL_FALSE;
    if (clGetDeviceInfo(device->id, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof unified, &unified,
                        NULL) != CL_SUCCESS ||
        !unified)
        return 0;
    return device->info.kind == TCONV_DEVICE_CPU ? ANY : PAGE;
}

/* True if commands on a buffer over an array of the host store into the array itself. OpenCL
 * guarantees that only behind a map, which takes as long as launching a small layer does. So a
 * device whose kernels run in the thread that enqueues them is tried. */
static bool is_stored_at_once(const tconv_device *device)
{
    enum { BYTES = 64 };
    static const unsigned char wanted = 0x5a;
    unsigned char memory[BYTES + 1] = {0}, *const array = memory + 1; /* as aligned as any */
    bool right = false;
    cl_int code;
    const cl_command_queue queue = clCreateCommandQueue(device->context, device->id, 0, &code);
    if (code != CL_SUCCESS) return false;
    const cl_mem buffer = clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                         BYTES, array, &code);
    if (code == CL_SUCCESS) {
        code = clEnqueueFillBuffer(queue, buffer, &wanted, sizeof wanted, 0, BYTES, 0, NULL, NULL);
        right = clFinish(queue) == CL_SUCCESS && code == CL_SUCCESS;
        for (int i = 0; i < BYTES; i++) right = right && array[i] == wanted;
        clReleaseMemObject(buffer);
    }
    clReleaseCommandQueue(queue);
    return right;
}

static void *copy_program(void *program)
{
    return clRetainProgram(program) == CL_SUCCESS ? program : NULL;
}

static void release_program(void *program)
{
    clReleaseProgram(program);
}

/* Ends what new_device began. */
static void delete_device(tconv_device *device)
{
    tconv_tracing_destroy(&device->tracing);
    pthread_mutex_destroy(&device->lock);
    tconv_store_destroy(&device->store);
    tconv_crew_release(device->crew);
    free(device->kernel_dir);
    free(device->spirv_dir);
    free(device);
}

/* A device object without a device; its sources are in a folder, or with "" in the library, and its
 * modules of SPIR-V in another one, or with "" nowhere. NULL without memory. */
static tconv_device *new_device(const char *kernel_dir, const char *spirv_dir, int threads)
{
    tconv_device *device = calloc(1, sizeof *device);
    if (device == NULL) return NULL;
    if (threads > 0) device->crew = tconv_crew_create(threads);
    if (kernel_dir[0] != '\0') device->kernel_dir = strdup(kernel_dir);
    if (spirv_dir[0] != '\0') device->spirv_dir = strdup(spirv_dir);
    const bool stores = (kernel_dir[0] == '\0' || device->kernel_dir != NULL) &&
                        (spirv_dir[0] == '\0' || device->spirv_dir != NULL) &&
                        (threads == 0 || device->crew != NULL) &&
                        tconv_store_init(&device->store, copy_program, release_program);
    const bool locked = stores && pthread_mutex_init(&device->lock, NULL) == 0;
    if (locked && tconv_tracing_init(&device->tracing)) return device;
    if (locked) pthread_mutex_destroy(&device->lock);
    if (stores) tconv_store_destroy(&device->store);
    tconv_crew_release(device->crew);
    free(device->kernel_dir);
    free(device->spirv_dir);
    free(device);
    return NULL;
}

/* Creates the object. `threads` compute on a device whose kernels run in the thread that enqueues
 * them, and which has the name of the `listed` one; 0: the driver has threads. */
static tconv_status create(cl_context context, cl_device_id id, cl_device_id listed, int threads,
                           tconv_device **out, tconv_error *error)
{
    if (context == NULL || id == NULL || out == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          context == NULL ? "context"
                          : id == NULL    ? "device"
                                          : "out");
    tconv_device_info info = {.struct_size = sizeof info}, shown = info;
    char kernel_dir[TCONV_OS_PATH], spirv_dir[TCONV_OS_PATH];
    tconv_status status;
    if ((status = tconv_process_enter(error)) != TCONV_OK ||
        (status = tconv_check_listed(context, id, error)) != TCONV_OK ||
        (status = tconv_device_describe(id, &info, error)) != TCONV_OK ||
        (status = tconv_device_check_integers(id, &info, error)) != TCONV_OK ||
        (threads > 0 && (status = tconv_device_describe(listed, &shown, error)) != TCONV_OK) ||
        (status = tconv_environment_kernel_dir(kernel_dir, sizeof kernel_dir, error)) != TCONV_OK ||
        (status = tconv_environment_spirv(spirv_dir, sizeof spirv_dir, error)) != TCONV_OK)
        return status;
    if (threads > 0) { /* choices, and so bits, do not depend on the number of threads */
        info.compute_units = listed == id ? (uint32_t)tconv_os_processors() : shown.compute_units;
        memcpy(info.name, shown.name, sizeof info.name);
    }
    tconv_device *device = new_device(kernel_dir, spirv_dir, threads);
    if (device == NULL) return tconv_fail_memory(error, sizeof *device, "creating a device object");
    const char *call;
    const cl_int code = retain(context, id, &device->part, &call);
    if (code != CL_SUCCESS) {
        delete_device(device);
        return tconv_fail_opencl(error, code, call, "creating a device object");
    }
    atomic_init(&device->owners, 1);
    device->context = context;
    device->id = id;
    device->info = info;
    device->in_place = alignment_of(device);
    device->stores_at_once = device->crew != NULL && device->in_place != 0 &&
                             is_stored_at_once(device);
    tconv_extensions_find(id, &device->extensions);
    if ((status = tconv_environment_search(&device->search, error)) == TCONV_OK &&
        (status = tconv_environment_launch_ms(&device->launch_ms, error)) == TCONV_OK &&
        device->kernel_dir == NULL)
        status = tconv_device_start_cache(device, error);
    if (status != TCONV_OK)
        tconv_device_release(device);
    else
        *out = device;
    return status;
}

tconv_status tconv_device_create(cl_context context, cl_device_id id, tconv_device **out,
                                 tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    return create(context, id, id, 0, out, error);
}

int tconv_device_threads(const tconv_device *device)
{
    return device == NULL || device->crew == NULL ? 0 : tconv_crew_threads(device->crew);
}

bool tconv_threads_enable(void)
{
    int threads = 0;
    tconv_error ignored;
    return tconv_environment_threads(&threads, &ignored) == TCONV_OK && threads > 0 &&
           !tconv_process_entered() && tconv_os_add_environment("POCL_DEVICES", "pthread basic");
}

tconv_status tconv_device_open(int number, tconv_device **out, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (out == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "out is NULL");
    struct tconv_listed listed;
    int threads;
    tconv_status status;
    if ((number < 0 && (status = tconv_device_default(&number, error)) != TCONV_OK) ||
        (status = tconv_device_listed(number, &listed, error)) != TCONV_OK ||
        (status = tconv_environment_threads(&threads, error)) != TCONV_OK)
        return status;
    if (listed.threadless == NULL) threads = 0;
    const cl_device_id id = threads > 0 ? listed.threadless : listed.device;
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                (cl_context_properties)listed.platform, 0};
    cl_int code;
    const cl_context context = clCreateContext(properties, 1, &id, NULL, NULL, &code);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clCreateContext", "opening device %d", number);
    status = create(context, id, listed.device, threads, out, error);
    clReleaseContext(context); /* the device object is an owner */
    return status;
}

void tconv_device_retain(tconv_device *device)
{
    if (device != NULL) atomic_fetch_add(&device->owners, 1);
}

void tconv_device_release(tconv_device *device)
{
    TCONV_WITHOUT_CANCELLATION;
    if (device == NULL || atomic_fetch_sub(&device->owners, 1) > 1 || tconv_process_forked())
        return;
    tconv_device_trim_workspaces(device);
    tconv_rejections_release(device->rejections);
    for (struct tconv_verdict *verdict = device->verdicts, *next; verdict != NULL; verdict = next) {
        next = verdict->next;
        free(verdict);
    }
    const cl_context context = device->context;
    const cl_device_id part = device->part ? device->id : NULL;
    delete_device(device); /* its programs before their context */
    clReleaseContext(context);
    if (part != NULL) clReleaseDevice(part);
}

cl_context tconv_device_context(const tconv_device *device)
{
    return device == NULL ? NULL : device->context;
}

cl_device_id tconv_device_id(const tconv_device *device)
{
    return device == NULL ? NULL : device->id;
}

uint64_t tconv_device_least_macs(const tconv_device *device)
{
    enum { CPU_MACS = 2000000, SHARED_MACS = 500000 };
    if (device == NULL || device->info.kind != TCONV_DEVICE_CPU) return 0;
    return device->crew != NULL ? SHARED_MACS : CPU_MACS;
}

const tconv_device_info *tconv_device_properties(const tconv_device *device)
{
    return device == NULL ? NULL : &device->info;
}
