/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the flat list of devices, and finds devices in it by number or name. */
#include "tconv_cl/device.h"

#include "base/cancel.h"
#include "base/error.h"
#include "base/os.h"
#include "base/process.h"
#include "base/text.h"
#include "device/device.h"
#include "device/environment.h"
#include "device/opencl_loader.h"
#include "device/recognise.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct list {
    struct tconv_listed *entries;
    int count;
    int platforms;
    char names[200]; /* of the platforms, for messages */
};

/* What PoCL's devices for the processor are, by their names: before PoCL 4 and since. */
enum kind { OTHER, THREADED, THREADLESS };

static enum kind kind_of(cl_device_id device)
{
    static const struct {
        const char *beginning;
        enum kind kind;
    } names[] = {{"basic", THREADLESS},
                 {"cpu-minimal", THREADLESS},
                 {"pthread", THREADED},
                 {"cpu-", THREADED}};
    enum kind kind = OTHER;
    size_t size = 0;
    clGetDeviceInfo(device, CL_DEVICE_NAME, 0, NULL, &size);
    char *name = calloc(size + 1, 1);
    if (name == NULL || clGetDeviceInfo(device, CL_DEVICE_NAME, size, name, NULL) != CL_SUCCESS)
        size = 0;
    for (size_t i = 0; size > 0 && kind == OTHER && i < sizeof names / sizeof *names; i++)
        if (strncmp(name, names[i].beginning, strlen(names[i].beginning)) == 0)
            kind = names[i].kind;
    free(name);
    return kind;
}

/* Adds devices of a platform. If PoCL has a device with threads for the processor, the ones without
 * are no further devices, wherever they stand: PoCL lists them first. */
static void add_devices(struct list *list, cl_platform_id platform, const cl_device_id *devices,
                        cl_uint count, bool pocl)
{
    cl_device_id threadless = NULL;
    bool threads = false;
    for (cl_uint i = 0; pocl && i < count; i++) {
        const enum kind kind = kind_of(devices[i]);
        threads = threads || kind == THREADED;
        if (kind == THREADLESS && threadless == NULL) threadless = devices[i];
    }
    for (cl_uint i = 0; i < count; i++) {
        const enum kind kind = threadless == NULL ? OTHER : kind_of(devices[i]);
        if (kind == THREADLESS && threads) continue;
        struct tconv_listed *entry = &list->entries[list->count++];
        *entry = (struct tconv_listed){platform, devices[i], 0,
                                       kind == THREADLESS ? devices[i]
                                       : kind == THREADED ? threadless
                                                          : NULL};
        clGetDeviceInfo(devices[i], CL_DEVICE_TYPE, sizeof entry->type, &entry->type, NULL);
    }
}

/* Adds a platform's devices. A platform that fails adds none. */
static bool add_platform(struct list *list, cl_platform_id platform)
{
    char name[80] = "";
    clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name, name, NULL);
    struct tconv_text names = tconv_text_resume(list->names, sizeof list->names);
    tconv_text_add(&names, "%s%s", names.length == 0 ? "" : ", ", name);
    list->platforms++;
    cl_uint count = 0;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &count) != CL_SUCCESS || count == 0)
        return true;
    cl_device_id *devices = malloc(count * sizeof *devices);
    struct tconv_listed *entries =
        realloc(list->entries, ((size_t)list->count + count) * sizeof *entries);
    if (entries != NULL) list->entries = entries;
    const bool memory = devices != NULL && entries != NULL;
    if (memory && clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices, NULL) == CL_SUCCESS)
        add_devices(list, platform, devices, count, strcmp(name, TCONV_POCL) == 0);
    free(devices);
    return memory;
}

static tconv_status read_platforms(struct list *list, tconv_error *error)
{
    *list = (struct list){NULL, 0, 0, ""};
    cl_uint count = 0;
    /* The loader says CL_PLATFORM_NOT_FOUND_KHR where there is no platform at all: an empty list.
     */
    if (clGetPlatformIDs(0, NULL, &count) != CL_SUCCESS || count == 0) return TCONV_OK;
    cl_platform_id *platforms = malloc(count * sizeof *platforms);
    bool memory = platforms != NULL;
    if (memory && clGetPlatformIDs(count, platforms, NULL) == CL_SUCCESS)
        for (cl_uint i = 0; i < count && memory; i++) memory = add_platform(list, platforms[i]);
    free(platforms);
    if (memory) return TCONV_OK;
    free(list->entries);
    return tconv_fail_memory(error, count * sizeof *platforms, "listing the OpenCL devices");
}

/* One thread at a time: while one thread's first question makes PoCL 3.1 start, it tells other
 * threads that it has no device. */
static tconv_status read_list(struct list *list, tconv_error *error)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    tconv_status status = tconv_process_enter(error);
    if (status != TCONV_OK) return status;
    pthread_mutex_lock(&lock);
    status = read_platforms(list, error);
    pthread_mutex_unlock(&lock);
    return status;
}

static tconv_status no_device(const struct list *list, tconv_error *error)
{
    const char *missing = tconv_opencl_missing();
    if (missing != NULL)
        return tconv_fail(error, TCONV_ERROR_NO_DEVICE, "no OpenCL device was found: %s", missing);
    if (list->platforms == 0)
        return tconv_fail(error, TCONV_ERROR_NO_DEVICE,
                          "no OpenCL device was found, and no OpenCL platform: install a driver, "
                          "for example pocl-opencl-icd for the processor");
    return tconv_fail(error, TCONV_ERROR_NO_DEVICE,
                      "no OpenCL device was found: none of the platforms installed (%s) gives one",
                      list->names);
}

tconv_status tconv_device_count(int *count, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (count == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "count is NULL");
    struct list list;
    const tconv_status status = read_list(&list, error);
    if (status != TCONV_OK) return status;
    *count = list.count;
    free(list.entries);
    return TCONV_OK;
}

tconv_status tconv_device_listed(int number, struct tconv_listed *out, tconv_error *error)
{
    struct list list;
    tconv_status status = read_list(&list, error);
    if (status != TCONV_OK) return status;
    if (list.count == 0)
        status = no_device(&list, error);
    else if (number < 0 || number >= list.count)
        status = tconv_fail(error, TCONV_ERROR_NO_DEVICE,
                            "device %d does not exist: there are devices 0 to %d", number,
                            list.count - 1);
    else
        *out = list.entries[number];
    free(list.entries);
    return status;
}

tconv_status tconv_device_at(int number, cl_platform_id *platform, cl_device_id *device,
                             tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (device == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "device is NULL");
    struct tconv_listed listed = {0};
    const tconv_status status = tconv_device_listed(number, &listed, error);
    if (status != TCONV_OK) return status;
    if (platform != NULL) *platform = listed.platform;
    *device = listed.device;
    return TCONV_OK;
}

/* True if `text` contains `part`, or with `whole` equals it. The case of letters does not
 * matter. */
static bool matches(const char *text, const char *part, bool whole)
{
    const size_t length = strlen(part);
    for (; strlen(text) >= length; text++) {
        size_t i = 0;
        while (i < length && tconv_text_lower(text[i]) == tconv_text_lower(part[i])) i++;
        if (i == length && (!whole || text[length] == '\0')) return true;
        if (whole) return false;
    }
    return false;
}

/* True if `name` names this device. */
static bool is_named(const struct tconv_listed *entry, const char *name)
{
    static const struct {
        const char *name;
        cl_device_type type;
    } kinds[] = {{"gpu", CL_DEVICE_TYPE_GPU},
                 {"cpu", CL_DEVICE_TYPE_CPU},
                 {"accelerator", CL_DEVICE_TYPE_ACCELERATOR}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (matches(name, kinds[i].name, true)) return (entry->type & kinds[i].type) != 0;
    char own[256] = "", platform[256] = "";
    clGetDeviceInfo(entry->device, CL_DEVICE_NAME, sizeof own, own, NULL);
    clGetPlatformInfo(entry->platform, CL_PLATFORM_NAME, sizeof platform, platform, NULL);
    return matches(own, name, false) || matches(platform, name, false);
}

/* The index of the device named `name`; past the list's end if there is none. */
static int find_named(const struct list *list, const char *name)
{
    if (strspn(name, "0123456789") == strlen(name)) {
        const unsigned long number = strtoul(name, NULL, 10);
        return number < (unsigned long)list->count ? (int)number : list->count;
    }
    int found = 0;
    while (found < list->count && !is_named(&list->entries[found], name)) found++;
    return found;
}

/* The index of the default device. */
static int find_preferred(const struct list *list)
{
    static const cl_device_type preferred[] = {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ACCELERATOR};
    for (size_t p = 0; p < sizeof preferred / sizeof *preferred; p++)
        for (int i = 0; i < list->count; i++)
            if ((list->entries[i].type & preferred[p]) != 0) return i;
    return 0;
}

/* Returns an error that lists the devices. `who` named one that does not exist: the caller, or an
 * environment variable. */
static tconv_status none_named(const struct list *list, const char *who, const char *name,
                               tconv_error *error)
{
    char all[700];
    struct tconv_text devices = tconv_text_begin(all, sizeof all);
    for (int i = 0; i < list->count; i++) {
        char own[100] = "";
        clGetDeviceInfo(list->entries[i].device, CL_DEVICE_NAME, sizeof own, own, NULL);
        tconv_text_add(&devices, "%s%d (%s)", i == 0 ? "" : ", ", i, own);
    }
    return tconv_fail(
        error, TCONV_ERROR_NO_DEVICE,
        "%sno device is \"%.60s\": use a number, gpu, cpu, accelerator or a part of a "
        "name; the devices are %s",
        who, name, all);
}

tconv_status tconv_device_find(const char *name, int *number, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (number == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "number is NULL");
    const char *who = "";
    char named[TCONV_OS_PATH];
    if (name == NULL || name[0] == '\0') {
        const tconv_status status = tconv_environment_device(named, sizeof named, error);
        if (status != TCONV_OK) return status;
        name = named[0] == '\0' ? NULL : named;
        who = "the environment variable TCONV_CL_DEVICE: ";
    }
    struct list list;
    tconv_status status = read_list(&list, error);
    if (status != TCONV_OK) return status;
    const int found = name == NULL ? find_preferred(&list) : find_named(&list, name);
    if (list.count == 0)
        status = no_device(&list, error);
    else if (found >= list.count)
        status = none_named(&list, who, name, error);
    else
        *number = found;
    free(list.entries);
    return status;
}

tconv_status tconv_device_default(int *number, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    return tconv_device_find(NULL, number, error);
}
