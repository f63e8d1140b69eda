/* SPDX-License-Identifier: Apache-2.0 */
/* The list of programs that a device object keeps, the most recently used first. */
#include "base/error.h"
#include "device/device_internal.h"

#include <stdlib.h>
#include <string.h>

/* Under the lock: finds the program with this key, retains it and moves it to the front. NULL if
 * there is none. */
static cl_program find(tconv_device *device, const char *key)
{
    struct tconv_program **link = &device->programs;
    while (*link != NULL && strcmp((*link)->key, key) != 0) link = &(*link)->next;
    struct tconv_program *found = *link;
    if (found == NULL || clRetainProgram(found->program) != CL_SUCCESS) return NULL;
    *link = found->next;
    found->next = device->programs;
    device->programs = found;
    return found->program;
}

/* Under the lock: cuts excess programs off the end of the list. */
static struct tconv_program *take_excess(tconv_device *device)
{
    struct tconv_program **link = &device->programs;
    for (int i = 0; i < TCONV_MOST_PROGRAMS && *link != NULL; i++) link = &(*link)->next;
    struct tconv_program *excess = *link;
    *link = NULL;
    return excess;
}

void tconv_programs_release(struct tconv_program *first)
{
    for (struct tconv_program *p = first, *next; p != NULL; p = next) {
        next = p->next;
        clReleaseProgram(p->program);
        free(p->key);
        free(p);
    }
}

cl_program tconv_program_find(tconv_device *device, const char *key)
{
    pthread_mutex_lock(&device->lock);
    cl_program program = find(device, key);
    pthread_mutex_unlock(&device->lock);
    return program;
}

tconv_status tconv_program_keep(tconv_device *device, char *key, cl_program *program,
                                tconv_error *error)
{
    struct tconv_program *entry = malloc(sizeof *entry);
    const cl_int code = entry == NULL
                            ? CL_SUCCESS
                            : clRetainProgram(*program); /* one for the list, one for the caller */
    if (entry == NULL || code != CL_SUCCESS) {
        free(key);
        clReleaseProgram(*program);
        if (entry == NULL) return tconv_fail_memory(error, sizeof *entry, "keeping a program");
        free(entry);
        return tconv_fail_opencl(error, code, "clRetainProgram", "keeping a program");
    }
    pthread_mutex_lock(&device->lock);
    cl_program first = find(device, key);
    if (first == NULL) {
        *entry = (struct tconv_program){device->programs, key, *program};
        device->programs = entry;
    }
    struct tconv_program *excess = take_excess(device);
    pthread_mutex_unlock(&device->lock);
    tconv_programs_release(excess);
    if (first != NULL) {
        free(entry);
        free(key);
        clReleaseProgram(*program);
        clReleaseProgram(*program);
        *program = first;
    }
    return TCONV_OK;
}
