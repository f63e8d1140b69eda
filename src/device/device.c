/* SPDX-License-Identifier: Apache-2.0 */
/* The device object: creates, shares and releases it, and answers what it knows of the device. */
#include "base/architectures.h"
#include "base/cancel.h"
#include "base/error.h"
#include "base/os.h"
#include "base/process.h"
#include "device/crew.h"
#include "device/device_members.h"
#include "device/environment.h"

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

/* Creates the object. `threads` compute on a device whose kernels run in the thread that enqueues
 * them; 0: the driver has threads. */
static tconv_status create(cl_context context, cl_device_id id, int threads, tconv_device **out,
                           tconv_error *error)
{
    if (context == NULL || id == NULL || out == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          context == NULL ? "context"
                          : id == NULL    ? "device"
                                          : "out");
    tconv_device_info info = {.struct_size = sizeof info};
    tconv_status status;
    if ((status = tconv_process_enter(error)) != TCONV_OK ||
        (status = tconv_check_listed(context, id, error)) != TCONV_OK ||
        (status = tconv_device_describe(id, &info, error)) != TCONV_OK)
        return status;
    if (threads > 0) info.compute_units = (uint32_t)threads;
    char folder[TCONV_OS_PATH];
    if ((status = tconv_environment_kernel_dir(folder, sizeof folder, error)) != TCONV_OK)
        return status;
    const bool replaced = folder[0] != '\0';
    tconv_device *device = calloc(1, sizeof *device);
    char *kernel_dir = replaced ? strdup(folder) : NULL;
    const bool stores = device != NULL && (!replaced || kernel_dir != NULL) &&
                        tconv_device_init_store(device);
    struct tconv_crew *crew = threads == 0 ? NULL : tconv_crew_create(threads);
    const bool locked = stores && (threads == 0 || crew != NULL) &&
                        pthread_mutex_init(&device->lock, NULL) == 0;
    if (!locked || !tconv_trace_init(&device->tracing)) {
        if (locked) pthread_mutex_destroy(&device->lock);
        if (stores) tconv_store_destroy(&device->store);
        tconv_crew_release(crew);
        free(device);
        free(kernel_dir);
        return tconv_fail_memory(error, sizeof *device, "creating a device object");
    }
    const char *call;
    const cl_int code = retain(context, id, &device->part, &call);
    if (code != CL_SUCCESS) {
        tconv_trace_destroy(&device->tracing);
        pthread_mutex_destroy(&device->lock);
        tconv_store_destroy(&device->store);
        tconv_crew_release(crew);
        free(device);
        free(kernel_dir);
        return tconv_fail_opencl(error, code, call, "creating a device object");
    }
    atomic_init(&device->owners, 1);
    device->context = context;
    device->id = id;
    device->info = info;
    device->crew = crew;
    device->in_place = alignment_of(device);
    tconv_extensions_find(id, &device->extensions);
    device->kernel_dir = kernel_dir;
    if ((status = tconv_environment_search(&device->search, error)) == TCONV_OK &&
        (status = tconv_environment_launch_ms(&device->launch_ms, error)) == TCONV_OK && !replaced)
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
    return create(context, id, 0, out, error);
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

struct tconv_crew *tconv_device_crew(const tconv_device *device)
{
    return device->crew;
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
    status = create(context, id, threads, out, error);
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
    tconv_crew_release(device->crew);
    tconv_store_destroy(&device->store);
    tconv_rejections_release(device->rejections);
    for (struct tconv_verdict *verdict = device->verdicts, *next; verdict != NULL; verdict = next) {
        next = verdict->next;
        free(verdict);
    }
    clReleaseContext(device->context);
    if (device->part) clReleaseDevice(device->id);
    tconv_trace_destroy(&device->tracing);
    pthread_mutex_destroy(&device->lock);
    free(device->kernel_dir);
    free(device);
}

struct tconv_store *tconv_device_store(tconv_device *device)
{
    return &device->store;
}

tconv_search tconv_device_search(const tconv_device *device)
{
    return device->search;
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

bool tconv_device_shares_memory(const tconv_device *device)
{
    return device->in_place != 0;
}

const struct tconv_extensions *tconv_device_extensions(const tconv_device *device)
{
    return &device->extensions;
}

atomic_int *tconv_device_verdict(tconv_device *device, const char *probe)
{
    pthread_mutex_lock(&device->lock);
    struct tconv_verdict *verdict = device->verdicts;
    while (verdict != NULL && strcmp(verdict->probe, probe) != 0) verdict = verdict->next;
    if (verdict == NULL && (verdict = malloc(sizeof *verdict + strlen(probe) + 1)) != NULL) {
        atomic_init(&verdict->right, 0);
        strcpy(verdict->probe, probe);
        verdict->next = device->verdicts;
        device->verdicts = verdict;
    }
    pthread_mutex_unlock(&device->lock);
    return verdict == NULL ? NULL : &verdict->right;
}

double tconv_device_launch_ms(const tconv_device *device)
{
    enum { GPU_MS = 500, MOBILE_MS = 50 };
    if (device->launch_ms >= 0) return device->launch_ms;
    if (device->info.kind != TCONV_DEVICE_GPU) return 0;
    return tconv_has_trait(device->info.architecture, TCONV_TRAIT_PHONE) ? MOBILE_MS : GPU_MS;
}

uint32_t tconv_device_part_units(const tconv_device *device)
{
    return device->part ? device->info.compute_units : 0;
}

bool tconv_device_has_own_sources(const tconv_device *device)
{
    return device->kernel_dir != NULL;
}

const tconv_device_info *tconv_device_properties(const tconv_device *device)
{
    return device == NULL ? NULL : &device->info;
}
