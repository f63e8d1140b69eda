/* SPDX-License-Identifier: Apache-2.0 */
/* For programs whose tensors are host arrays: upload, run, download, in one call. A small layer
 * over plan.h. */
#ifndef TCONV_CL_HOST_H
#define TCONV_CL_HOST_H

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A context, an in-order queue and a tconv_device on one device. Opaque. */
typedef struct tconv_host tconv_host;

/* Opens the device with that number (see tconv_device_at); a negative number opens the default one.
 * Returns TCONV_ERROR_ARGUMENT, _NO_DEVICE, _HOST_MEMORY, _OPENCL. Ownership: the caller's, until
 * tconv_host_release. */
TCONV_API tconv_status tconv_host_create(int number, tconv_host **out, tconv_error *error);

/* Gives everything back; NULL is fine. */
TCONV_API void tconv_host_release(tconv_host *host);

/* What it is made of, to go on with plan.h on the same device. Borrowed: valid as long as `host`.
 */
TCONV_API cl_context tconv_host_context(const tconv_host *host);
TCONV_API cl_command_queue tconv_host_queue(const tconv_host *host);
TCONV_API tconv_device *tconv_host_device(const tconv_host *host);

/* Host arrays, in the problem's shapes and formats. `bias`, `scale`, `slope` and `residual` are given
 * exactly where the epilogue has them, and NULL elsewhere. Its struct_size (see tconv_cl.h) reaches at
 * least up to `output`. */
typedef struct tconv_arrays {
    size_t struct_size;
    const void *data, *filter;
    void *output;
    const void *bias, *scale,
        *slope;           /* one number for each output channel; types as tconv_epilogue says */
    const void *residual; /* like the output */
} tconv_arrays;

#define TCONV_ARRAYS_INIT                                                                          \
    {                                                                                              \
        sizeof(tconv_arrays), NULL, NULL, NULL, NULL, NULL, NULL, NULL                             \
    }

/* Computes output = epilogue(operation(data, filter)) on host arrays and returns when `output` is
 * complete. `options` may be NULL: all at their defaults, so without bias, scale and residual. An array
 * that the epilogue does not have, or one that it has and that is NULL, is a TCONV_ERROR_ARGUMENT.
 * Returns what tconv_plan_create and tconv_plan_enqueue return; on an error before the download `output`
 * is untouched. Threads: any number at once on one tconv_host. */
TCONV_API tconv_status tconv_host_run(tconv_host *host, const tconv_problem *problem,
                                      const tconv_plan_options *options, const tconv_arrays *arrays,
                                      tconv_error *error);

#ifdef __cplusplus
}
#endif

#endif
