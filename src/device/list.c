/* SPDX-License-Identifier: Apache-2.0 */
/* The flat list of devices. */
#include "tconv_cl/device.h"

#include "base/error.h"
#include "device/environment.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    cl_platform_id platform;
    cl_device_id device;
    cl_device_type type;
};

struct list {
    struct entry *entries;
    int count;
    int platforms;
    char names[200]; /* of the platforms, for messages */
};

/* Adds a platform's devices; a platform without any, or one that fails, adds none. */
static bool add_platform(struct list *list, cl_platform_id platform)
{
    char name[80] = "";
    clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name, name, NULL);
    const size_t used = strlen(list->names);
    snprintf(list->names + used, sizeof list->names - used, "%s%s", used == 0 ? "" : ", ", name);
    list->platforms++;
    cl_uint count = 0;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &count) != CL_SUCCESS || count == 0)
        return true;
    cl_device_id *devices = malloc(count * sizeof *devices);
    struct entry *entries = realloc(list->entries, ((size_t)list->count + count) * sizeof *entries);
    if (entries != NULL) list->entries = entries;
    const bool memory = devices != NULL && entries != NULL;
    if (memory && clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices, NULL) == CL_SUCCESS)
        for (cl_uint i = 0; i < count; i++) {
            struct entry *entry = &entries[list->count++];
            *entry = (struct entry){platform, devices[i], 0};
            clGetDeviceInfo(devices[i], CL_DEVICE_TYPE, sizeof entry->type, &entry->type, NULL);
        }
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

/* One thread after the other: to those that ask while another one's first question makes it start, PoCL 3.1 says that it has
 * no device. */
static tconv_status read_list(struct list *list, tconv_error *error)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    const tconv_status status = read_platforms(list, error);
    pthread_mutex_unlock(&lock);
    return status;
}

static tconv_status no_device(const struct list *list, tconv_error *error)
{
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
    if (count == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "count is NULL");
    struct list list;
    const tconv_status status = read_list(&list, error);
    if (status != TCONV_OK) return status;
    *count = list.count;
    free(list.entries);
    return TCONV_OK;
}

tconv_status tconv_device_at(int number, cl_platform_id *platform, cl_device_id *device,
                             tconv_error *error)
{
    if (device == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "device is NULL");
    struct list list;
    tconv_status status = read_list(&list, error);
    if (status != TCONV_OK) return status;
    if (list.count == 0)
        status = no_device(&list, error);
    else if (number < 0 || number >= list.count)
        status = tconv_fail(error, TCONV_ERROR_NO_DEVICE,
                            "device %d does not exist: there are devices 0 to %d", number,
                            list.count - 1);
    else {
        if (platform != NULL) *platform = list.entries[number].platform;
        *device = list.entries[number].device;
    }
    free(list.entries);
    return status;
}

tconv_status tconv_device_default(int *number, tconv_error *error)
{
    static const cl_device_type preferred[] = {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ACCELERATOR,
                                               CL_DEVICE_TYPE_ALL};
    if (number == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "number is NULL");
    int found;
    tconv_status status = tconv_environment_device(&found, error);
    struct list list;
    if (status != TCONV_OK || (status = read_list(&list, error)) != TCONV_OK) return status;
    if (found >= list.count && list.count > 0) {
        status =
            tconv_fail(error, TCONV_ERROR_NO_DEVICE,
                       "the environment variable TCONV_CL_DEVICE is %d: there are devices 0 to %d",
                       found, list.count - 1);
    } else if (list.count == 0) {
        status = no_device(&list, error);
    } else {
        for (size_t p = 0; p < sizeof preferred / sizeof *preferred && found < 0; p++)
            for (int i = 0; i < list.count && found < 0; i++)
                if (preferred[p] == CL_DEVICE_TYPE_ALL ||
                    (list.entries[i].type & preferred[p]) != 0)
                    found = i;
        *number = found;
    }
    free(list.entries);
    return status;
}
