/* SPDX-License-Identifier: Apache-2.0 */
/* For LD_PRELOAD: the first program of a process does not build, however often it is tried, until
 * another one is built; from then on all do. So a compiler is that is short of memory for a while.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <CL/cl.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef void CL_CALLBACK build_callback(cl_program program, void *user);
typedef cl_int build_function(cl_program, cl_uint, const cl_device_id *, const char *,
                              build_callback *, void *);

__attribute__((visibility("default"))) cl_int clBuildProgram(cl_program program, cl_uint count,
                                                             const cl_device_id *devices,
                                                             const char *options,
                                                             build_callback *notify, void *user)
{
    static char first[4000];
    static bool is_over;
    build_function *real;
    void *address = dlsym(RTLD_NEXT, "clBuildProgram");
    memcpy(&real, &address, sizeof real);
    if (first[0] == '\0') snprintf(first, sizeof first, "%s", options);
    is_over = is_over || strcmp(first, options) != 0;
    return is_over ? real(program, count, devices, options, notify, user)
                   : CL_BUILD_PROGRAM_FAILURE;
}
