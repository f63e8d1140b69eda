/* SPDX-License-Identifier: Apache-2.0 */
/* For programs whose tensors are host arrays: one call computes a problem, or a layer is made once
 * and runs often.
 *
 * Where device and host share memory (CL_DEVICE_HOST_UNIFIED_MEMORY), kernels work in the arrays
 * themselves and nothing is copied: OpenCL buffers are made with CL_MEM_USE_HOST_PTR over exactly
 * the bytes of an array, so that none overlaps another. Copied are arrays that overlap each other,
 * and those whose alignment the device does not take in place. */
#ifndef TCONV_CL_SESSION_H
#define TCONV_CL_SESSION_H

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A context, an in-order queue and a tconv_device on one device. Opaque. */
typedef struct tconv_session tconv_session;

/* Opens the device with that number (see tconv_device_at); TCONV_DEVICE_DEFAULT, and any negative
 * number, the default one.
 * Returns TCONV_ERROR_ARGUMENT, _NO_DEVICE, _HOST_MEMORY, _OPENCL. Ownership: the caller's, until
 * tconv_session_release. */
TCONV_API tconv_status tconv_session_create(int number, tconv_session **out, tconv_error *error);

/* Releases everything. NULL is a no-op. */
TCONV_API void tconv_session_release(tconv_session *session);

/* What the session is made of, to go on with plan.h on the same device. Borrowed: valid as long as
 * `session`. */
TCONV_API cl_context tconv_session_context(const tconv_session *session);
TCONV_API cl_command_queue tconv_session_queue(const tconv_session *session);
TCONV_API tconv_device *tconv_session_device(const tconv_session *session);

/* Multiply-adds (tconv_geometry.macs) that the host computes in about the time in which a kernel is
 * launched: on a CPU 2 million, which two cores with AVX-512 compute in some 12 us. Elsewhere 0.
 * Programs that have an implementation of their own may use it for smaller problems. NULL: 0. */
TCONV_API uint64_t tconv_session_least_macs(const tconv_session *session);

/* Host arrays, in the problem's shapes and formats. `bias`, `scale`, `slope` and `residual` are set
 * exactly where the epilogue has them; NULL: absent. Its struct_size (see tconv_cl.h) reaches at
 * least up to `output`. */
typedef struct tconv_arrays {
    size_t struct_size;
    const void *data;     /* the input tensor; may be NULL where it is empty */
    const void *filter;   /* the weights */
    void *output;         /* every element is written */
    const void *bias;     /* one number for each output channel; types as tconv_epilogue says */
    const void *scale;    /* one number for each output channel */
    const void *slope;    /* one number for each output channel */
    const void *residual; /* like the output */
} tconv_arrays;

#define TCONV_ARRAYS_INIT                                                                          \
    {                                                                                              \
        sizeof(tconv_arrays), NULL, NULL, NULL, NULL, NULL, NULL, NULL                             \
    }

/* Computes output = epilogue(operation(data, filter)) on host arrays and returns when `output` is
 * complete. `options` may be NULL: all at their defaults, so without bias, scale and residual. An
 * array that the epilogue does not have, or one that it has and that is NULL, is a
 * TCONV_ERROR_ARGUMENT. Returns what tconv_plan_create and tconv_plan_enqueue return; on an error
 * each element of `output` is what it was or the result. Threads: any number at once on one
 * tconv_session. */
TCONV_API tconv_status tconv_session_run(tconv_session *session, const tconv_problem *problem,
                                         const tconv_plan_options *options,
                                         const tconv_arrays *arrays, tconv_error *error);

/* One layer of a model, which runs often: keeps the plans of the 128 problems that it computed
 * last, packed weights, and, in its session, a queue with buffers for each thread that runs.
 * Opaque. */
typedef struct tconv_session_layer tconv_session_layer;

/* `constant_filter`: the filter has the same elements at every run, and they are packed at the
 * first one; for plans that read another packed layout, once more. Else they are packed at every
 * run. `session` must outlive the layer. Returns TCONV_ERROR_ARGUMENT, _HOST_MEMORY. Ownership: the
 * caller's, until tconv_session_layer_release. Any thread. */
TCONV_API tconv_status tconv_session_layer_create(tconv_session *session, bool constant_filter,
                                                  tconv_session_layer **out, tconv_error *error);

/* Releases everything. NULL is a no-op. Not beside another use of the layer. */
TCONV_API void tconv_session_layer_release(tconv_session_layer *layer);

/* As tconv_session_run, with the same arguments and errors. The plan is that of the same problem
 * and options, where one is kept. A constant filter is read only when it is packed, or at every run
 * with tconv_session_layer_watch. Threads: any number at once on one layer. */
TCONV_API tconv_status tconv_session_layer_run(tconv_session_layer *layer,
                                               const tconv_problem *problem,
                                               const tconv_plan_options *options,
                                               const tconv_arrays *arrays, tconv_error *error);

/* The constant filter has changed: runs that begin from now on pack it anew. NULL is fine. Any
 * thread. */
TCONV_API void tconv_session_layer_refresh(tconv_session_layer *layer);

/* With `watch`, every run of a layer with a constant filter hashes the filter (XXH3, 128 bits) and
 * packs it anew where its elements are not those that were packed: for callers who cannot see every
 * change. A hash reads the filter once, at about the speed of memory. Off in new layers. NULL is
 * fine. Not beside another use of the layer. */
TCONV_API void tconv_session_layer_watch(tconv_session_layer *layer, bool watch);

/* What a layer did so far. Its struct_size (see tconv_cl.h) reaches at least up to
 * `filters_packed`. */
typedef struct tconv_session_layer_counts {
    size_t struct_size;
    uint64_t runs;           /* that succeeded */
    uint64_t plans_made;     /* runs for which none was kept */
    uint64_t plans_kept;     /* now */
    uint64_t filters_packed; /* how often */
} tconv_session_layer_counts;

#define TCONV_SESSION_LAYER_COUNTS_INIT                                                            \
    {                                                                                              \
        sizeof(tconv_session_layer_counts), 0, 0, 0, 0                                             \
    }

/* Returns TCONV_ERROR_ARGUMENT. Any thread. */
TCONV_API tconv_status tconv_session_layer_count(const tconv_session_layer *layer,
                                                 tconv_session_layer_counts *counts,
                                                 tconv_error *error);

#ifdef __cplusplus
}
#endif

#endif
