/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions, for programs whose tensors are host arrays: one call computes a problem, or a layer is
 * made once and runs often.
 *
 * If device and host share memory (CL_DEVICE_HOST_UNIFIED_MEMORY), kernels use the arrays in place
 * and nothing is copied: an OpenCL buffer is made with CL_MEM_USE_HOST_PTR over exactly the bytes
 * of an array. Arrays that overlap each other are copied, as are arrays whose alignment the device
 * does not take. So the output may lie anywhere on top of the inputs, which then are lost. */
#ifndef TCONV_CL_SESSION_H
#define TCONV_CL_SESSION_H

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A context, an in-order queue and a tconv_device on one device. Opaque. */
typedef struct tconv_session tconv_session;

/* Opens the device with this number (see tconv_device_at). TCONV_DEVICE_DEFAULT, or any negative
 * number, opens the default device. Returns TCONV_ERROR_ARGUMENT, _NO_DEVICE, _HOST_MEMORY,
 * _DEVICE_MEMORY, _OPENCL. Ownership: the caller's, until tconv_session_release. Threads: any may
 * create sessions, and any number may use one at once. */
TCONV_API tconv_status tconv_session_create(int number, tconv_session **out, tconv_error *error);

/* Releases everything. Layers of the session are released before it, and none of its calls may
 * run. NULL is a no-op. */
TCONV_API void tconv_session_release(tconv_session *session);

/* The session's context, queue and device, for use with plan.h on the same device. Borrowed: valid
 * as long as `session`. */
TCONV_API cl_context tconv_session_context(const tconv_session *session);
TCONV_API cl_command_queue tconv_session_queue(const tconv_session *session);
TCONV_API tconv_device *tconv_session_device(const tconv_session *session);

/* The multiply-adds (tconv_geometry.macs) that the host computes in about the time of launching a
 * kernel: 2 million on a CPU (some 12 us on two cores with AVX-512), 0 on other devices. A program
 * with its own implementation may use that for smaller problems. NULL: 0. */
TCONV_API uint64_t tconv_session_least_macs(const tconv_session *session);

/* Host arrays, in the problem's shapes, formats and element steps. `bias`, `scale`, `slope` and
 * `residual` must be set if and only if the epilogue has them; NULL: absent. If the output has no
 * elements, no array is looked at. The struct_size (see tconv_cl.h) reaches at least up to
 * `output`. */
typedef struct tconv_arrays {
    size_t struct_size;
    const void *data;        /* the input tensor; may be NULL if it is empty */
    const void *filter;      /* the weights */
    void *output;            /* every element is written; nothing between them */
    const void *bias;        /* one number for each output channel; types as tconv_epilogue says */
    const void *scale;       /* one number for each output channel */
    const void *slope;       /* one number for each output channel */
    const void *residual;    /* like the output, but with its own steps */
    uint64_t filter_version; /* see tconv_session_layer_watch, which it is for; 0: none */
} tconv_arrays;

#define TCONV_ARRAYS_INIT                                                                          \
    {                                                                                              \
        sizeof(tconv_arrays), NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0                          \
    }

/* Computes output = epilogue(operation(data, filter)) on host arrays and returns when `output` is
 * complete. `options` may be NULL: all defaults, without bias, scale and residual. An array that
 * the epilogue does not have, or a missing one that it has, is TCONV_ERROR_ARGUMENT. Returns what
 * tconv_plan_create and tconv_plan_enqueue return. After an error each element of `output` has its
 * old value or the result. Threads: any number at once on one tconv_session. */
TCONV_API tconv_status tconv_session_run(tconv_session *session, const tconv_problem *problem,
                                         const tconv_plan_options *options,
                                         const tconv_arrays *arrays, tconv_error *error);

/* One layer of a model, which runs often. It keeps the plans of the 128 most recent problems,
 * packed weights, and, in its session, a queue with buffers for each running thread. Opaque. */
typedef struct tconv_session_layer tconv_session_layer;

/* Creates a layer. `constant_filter` means that the filter has the same elements at every run: it
 * is packed once for each packed layout. Otherwise it is packed at every run. `session` must
 * outlive the layer. Returns TCONV_ERROR_ARGUMENT, _HOST_MEMORY. Ownership: the caller's, until
 * tconv_session_layer_release. Any thread. */
TCONV_API tconv_status tconv_session_layer_create(tconv_session *session, bool constant_filter,
                                                  tconv_session_layer **out, tconv_error *error);

/* Releases everything. NULL is a no-op. No other thread may use the layer meanwhile. */
TCONV_API void tconv_session_layer_release(tconv_session_layer *layer);

/* As tconv_session_run, with the same arguments and errors. Uses the kept plan of the same problem
 * and options if there is one. A constant filter is read only when it is packed, or at every run
 * with tconv_session_layer_watch. Threads: any number at once on one layer. */
TCONV_API tconv_status tconv_session_layer_run(tconv_session_layer *layer,
                                               const tconv_problem *problem,
                                               const tconv_plan_options *options,
                                               const tconv_arrays *arrays, tconv_error *error);

/* The plan with which runs of the layer compute this problem: the kept one, or a new one, which is
 * kept as that of a run. So tconv_plan_algorithm, tconv_plan_explain and so on tell what runs do;
 * another plan for the same problem may be of another algorithm, for example if a result was stored
 * in between. `options` as for a run. Returns what tconv_plan_create returns. Ownership: the
 * caller's, until tconv_plan_release, also after the layer has been released. Any thread. */
TCONV_API tconv_status tconv_session_layer_plan(tconv_session_layer *layer,
                                                const tconv_problem *problem,
                                                const tconv_plan_options *options, tconv_plan **out,
                                                tconv_error *error);

/* A function of the application that calls task(argument) once on each thread of its pool, on all
 * at the same time, and returns when all these calls have returned. */
typedef void (*tconv_on_threads)(void *pool, void (*task)(void *argument), void *argument);

/* Multiply-adds, for tconv_session_layer_run_beside. */
enum {
    TCONV_BESIDE_MACS = 62500, /* that one core does in the 2.5 us that waking a thread takes */
};

/* As tconv_session_layer_run, for an application whose threads wait awake for some time after their
 * own work, as those of OpenMP and of most runtimes do. If the device is the processor, they hold
 * cores that its kernels need. Here they sleep until the layer is computed.
 *
 * `on_threads` is called at most once, with `pool`; it may call the task on fewer threads, or on
 * none. The calling thread makes the plan, if there is none yet. One of the task's calls computes
 * the layer, so its trace callbacks come on that thread; they must not wait for the pool.
 *
 * Use it for layers of at least TCONV_BESIDE_MACS * n * n multiply-adds (tconv_geometry.macs),
 * where n is the number of threads. For smaller layers, waking the threads takes longer than the
 * layer: `on_threads` NULL is faster.
 *
 * The application's threads are left alone if `on_threads` is NULL, if the device is a GPU or
 * another device that is not the processor, if it has one compute unit, and inside a callback. */
TCONV_API tconv_status tconv_session_layer_run_beside(tconv_session_layer *layer,
                                                      tconv_on_threads on_threads, void *pool,
                                                      const tconv_problem *problem,
                                                      const tconv_plan_options *options,
                                                      const tconv_arrays *arrays,
                                                      tconv_error *error);

/* A tconv_on_threads for OpenMP's threads. `gomp_parallel` is the address of GOMP_parallel, a
 * function of GCC's and of LLVM's OpenMP library; NULL: the calling thread computes. Uses as many
 * threads as a parallel region of the calling thread. */
TCONV_API void tconv_on_openmp(void *gomp_parallel, void (*task)(void *argument), void *argument);

/* Says that the constant filter has changed: runs that begin from now on pack it again. NULL is a
 * no-op. Any thread. */
TCONV_API void tconv_session_layer_refresh(tconv_session_layer *layer);

/* With `watch`, every run of a layer with a constant filter hashes the filter (tconv_hash) and
 * packs it again if its elements have changed: for callers who cannot see every change. A hash
 * reads the filter once, at about the speed of memory. A caller who does see the changes can pass
 * filter_version in the arrays instead: any number but 0 that this layer never got with other
 * elements, wherever they were. The filter is then not hashed. Off in new layers. NULL is a no-op.
 * No other thread may use the layer meanwhile. */
TCONV_API void tconv_session_layer_watch(tconv_session_layer *layer, bool watch);

/* Writes the hash of `size` bytes (XXH3, 128 bits). `memory` may be NULL if `size` is 0. Any
 * thread. */
TCONV_API void tconv_hash(const void *memory, size_t size, uint64_t hash[2]);

/* Counts of what a layer did so far. Its struct_size (see tconv_cl.h) reaches at least up to
 * `filters_packed`. */
typedef struct tconv_session_layer_counts {
    size_t struct_size;
    uint64_t runs;           /* runs that succeeded */
    uint64_t plans_made;     /* plans made, because none was kept */
    uint64_t plans_kept;     /* now */
    uint64_t filters_packed; /* how often a filter was packed */
} tconv_session_layer_counts;

#define TCONV_SESSION_LAYER_COUNTS_INIT                                                            \
    {                                                                                              \
        sizeof(tconv_session_layer_counts), 0, 0, 0, 0                                             \
    }

/* Writes the counts of a layer. Returns TCONV_ERROR_ARGUMENT. Any thread. */
TCONV_API tconv_status tconv_session_layer_count(const tconv_session_layer *layer,
                                                 tconv_session_layer_counts *counts,
                                                 tconv_error *error);

#ifdef __cplusplus
}
#endif

#endif
