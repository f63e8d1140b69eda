/* SPDX-License-Identifier: Apache-2.0 */
/* The list of programs that were built for a device so far. */
#include "base/error.h"
#include "device/object.h"

#include <stdlib.h>
#include <string.h>

/* Under the lock: the program of that key, retained, or NULL. */
static cl_program find(const tconv_device *device, const char *key)
{
    for (const struct tconv_program *p = device->programs; p != NULL; p = p->next)
        if (strcmp(p->key, key) == 0 && clRetainProgram(p->program) == CL_SUCCESS)
            return p->program;
    return NULL;
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
        *entry = (struct tconv_program){device->programs, key, *program};
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
