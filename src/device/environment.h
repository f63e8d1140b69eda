/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the environment variables of the library. An empty variable counts as not set. An illegal
 * or too long value is TCONV_ERROR_ARGUMENT. */
#ifndef TCONV_DEVICE_ENVIRONMENT_H
#define TCONV_DEVICE_ENVIRONMENT_H

#include "tconv_cl/problem.h"

#include <stddef.h>
#include <stdint.h>

/* TCONV_CL_DEVICE: the name of the default device, as tconv_device_find takes it; "": not set. */
tconv_status tconv_environment_device(char *name, size_t size, tconv_error *error);

/* TCONV_CL_MATRIX: which matrix units may be used. */
enum tconv_matrix_use {
    TCONV_USE_OFF,
    TCONV_USE_USUAL,
    TCONV_USE_TRY /* on processors without products of bytes: also their form in plain OpenCL C */
};
tconv_status tconv_environment_matrix(enum tconv_matrix_use *use, tconv_error *error);

/* TCONV_CL_SEARCH: model, records (the default), measure or renew. */
tconv_status tconv_environment_search(tconv_search *search, tconv_error *error);

/* TCONV_CL_LAUNCH_MS: the longest expected launch in ms, 0 for no limit. Negative if the variable
 * is not set. */
tconv_status tconv_environment_launch_ms(double *ms, tconv_error *error);

/* TCONV_CL_THREADS: how many threads compute on a CPU device whose driver has none; "off" is 0: no
 * such device is used. If the variable is not set, as many as the process may use processors. */
tconv_status tconv_environment_threads(int *threads, tconv_error *error);

/* TCONV_CL_KERNEL_DIR: the folder of kernel sources; "": the library's own sources. */
tconv_status tconv_environment_kernel_dir(char *folder, size_t size, tconv_error *error);

/* TCONV_CL_SPIRV: the folder of modules of SPIR-V; "": none. */
tconv_status tconv_environment_spirv(char *folder, size_t size, tconv_error *error);

/* TCONV_CL_CACHE, TCONV_CL_CACHE_DIR and TCONV_CL_CACHE_MIB: the folder of compiled programs, from
 * malloc, and its limit in bytes. `*folder` is NULL if the cache is off, if there is no place for
 * it, or without memory. `*named` is true if a variable names the folder, false if it is the
 * default one. */
tconv_status tconv_environment_cache(char **folder, uint64_t *limit, bool *named,
                                     tconv_error *error);

#endif
