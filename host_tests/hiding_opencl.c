/* SPDX-License-Identifier: Apache-2.0 */
/* An OpenCL library as Google's phones have it: it shows none of its calls, and answers only after
 * it was enabled. It has no platform. */
#include <CL/cl.h>
#include <stddef.h>

void enableOpenCL(void);
void *loadOpenCLPointer(const char *name);

static int enabled;

/* Stands for every call: none but this is made. */
static cl_int CL_API_CALL no_platform(cl_uint n, cl_platform_id *ids, cl_uint *count)
{
    (void)n;
    (void)ids;
    if (count != NULL) *count = 0;
    return enabled == 1 ? CL_SUCCESS : CL_INVALID_OPERATION;
}

__attribute__((visibility("default"))) void enableOpenCL(void)
{
    enabled++;
}

__attribute__((visibility("default"))) void *loadOpenCLPointer(const char *name)
{
    if (name[0] != 'c' || name[1] != 'l' || enabled == 0) return NULL;
    union {
        cl_int(CL_API_CALL *call)(cl_uint, cl_platform_id *, cl_uint *);
        void *pointer;
    } found = {no_platform};
    return found.pointer;
}
