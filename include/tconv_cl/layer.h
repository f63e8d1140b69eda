/* SPDX-License-Identifier: Apache-2.0 */
/* Layers: one object that computes a layer of a network, wherever its tensors are. It keeps plans,
 * packed weights, queues and buffers from one run to the next.
 *
 *     tconv_device_open(TCONV_DEVICE_DEFAULT, &device, &err);
 *     tconv_layer_create(&device, 1, TCONV_FILTER_CONSTANT, &layer, &err);
 *     tconv_tensors tensors = TCONV_TENSORS_INIT;
 *     tensors.data.host = data;        // arrays of the host; or .memory = a buffer (cl_mem)
 *     tensors.filter.host = filter;
 *     tensors.output.host = output;
 *     tconv_layer_run(layer, &problem, NULL, &tensors, NULL, &err);
 *
 * Without a queue, a run returns when the output is complete. With one (tconv_run.queue), it
 * enqueues and returns, and its tensors are buffers or pointers.
 *
 * ARRAYS OF THE HOST. If device and host share memory (CL_DEVICE_HOST_UNIFIED_MEMORY), kernels use
 * the arrays in place and nothing is copied: an OpenCL buffer is made with CL_MEM_USE_HOST_PTR over
 * exactly the bytes of an array. Arrays that overlap each other are copied, as are arrays whose
 * alignment the device does not take. So the output may lie anywhere on top of the inputs, which
 * then are lost, except in a run that must be divided into slabs.
 *
 * SLABS. A run without a queue is divided into slabs of output rows, so that transfers run beside
 * kernels, if data, output and residual are arrays of the host and one of these is true:
 *   - the layer has several devices: each takes the next slab when it is ready;
 *   - data, output and residual take more bytes than tconv_run.memory_limit;
 *   - data or output takes more bytes than the device allows in one buffer;
 *   - data and output take more than 512 MiB, or more than a quarter of the device's memory. Not if
 *     an element of the output lies in the memory of another array;
 *   - the device's memory did not suffice otherwise (TCONV_ERROR_DEVICE_MEMORY). Not if the
 *     output's old contents are needed, or the memory of another tensor, because they may be lost.
 * In the first three cases no element of the output may lie in the memory of another array
 * (TCONV_ERROR_ARGUMENT), because that may be read after a slab stored its output. Data, residual
 * and output may be slices of one tensor, and the residual may be the output itself, with the same
 * steps. All slabs use the weights that the layer has when the run begins. An error's sentence
 * begins with the device's name.
 *
 * WORKSPACES of runs with a queue come from a pool of the tconv_device (device.h), unless the run
 * gives one.
 *
 * THREADS. Every function here may be called from any thread, also on the same layer at the same
 * time, with one exception: the release must not run beside another use of the layer. */
#ifndef TCONV_CL_LAYER_H
#define TCONV_CL_LAYER_H

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A layer. It keeps, for each device, the plans of the 128 most recent problems, the filter that
 * tconv_layer_set gave, and of those that runs gave the 16 packed last. Opaque. */
typedef struct tconv_layer tconv_layer;

/* Whether the filters that runs give have the same elements. */
typedef enum tconv_filter_use {
    TCONV_FILTER_VARIES = 0,   /* no: a filter is packed at every run that gives one */
    TCONV_FILTER_CONSTANT = 1, /* yes: it is packed once for each packed layout, and only then read
                                  (tconv_layer_refresh). With a queue, the packing is enqueued
                                  behind the wait list of the run that packs it (tconv_run.wait),
                                  also with TCONV_FILTER_WATCHED: other runs with this filter wait
                                  for these events, too. Where they must not, call tconv_layer_set
                                  first. */
    TCONV_FILTER_WATCHED = 2 /* mostly: every run hashes the filter (tconv_hash) and packs it again
                                if its elements have changed, for callers who cannot see every
                                change. A hash reads the filter once, at about the speed of
                                memory. A caller who does see the changes can give
                                tconv_tensors.filter_version instead: any number but 0 that this
                                layer never got with other elements, wherever they were. A filter
                                that is no array of the host and has no version is packed at every
                                run. */
} tconv_filter_use;

/* Makes a layer for one device or several, each given once. Returns TCONV_ERROR_ARGUMENT,
 * _HOST_MEMORY. Ownership: the caller's, until tconv_layer_release; the layer keeps the devices
 * alive. `*out` is written only on success. */
TCONV_API tconv_status tconv_layer_create(tconv_device *const *devices, int device_count,
                                          tconv_filter_use filter_use, tconv_layer **out,
                                          tconv_error *error);

/* Releases the layer. NULL is a no-op. Pending commands run to completion; OpenCL keeps what they
 * use until then. */
TCONV_API void tconv_layer_release(tconv_layer *layer);

/* A slab: batch items [batch_begin, batch_end) and output rows [output_begin, output_end) of the
 * outermost spatial axis, computed from the input rows [input_begin, input_end). With a window in
 * the options, rows count from the window's first ones. */
typedef struct tconv_slab {
    int device;           /* the layer's device that computed it, counted from 0 */
    int64_t batch_begin;  /* first batch item */
    int64_t batch_end;    /* one behind the last batch item */
    int64_t output_begin; /* first output row */
    int64_t output_end;   /* one behind the last output row */
    int64_t input_begin;  /* first input row */
    int64_t input_end;    /* one behind the last input row */
} tconv_slab;

/* Called after each slab, when its part of the output is complete, with the number of finished
 * slabs and of all slabs; of a run that was not divided, which is one slab, at its end. It is
 * called by one thread at a time, in the thread that computed the slab; other threads of the run
 * may wait until it returns. If it returns false, the run stops and returns TCONV_ERROR_CANCELLED.
 */
typedef bool (*tconv_progress)(void *user, const tconv_slab *slab, int64_t done, int64_t slabs);

/* A function of the application that calls task(argument) on threads of its pool, at the same time,
 * and returns when all these calls have returned. It may call the task on fewer threads, several
 * times on one, or on none: what is left to do is done by the calling thread. */
typedef void (*tconv_on_threads)(void *pool, void (*task)(void *argument), void *argument);

/* How to run a layer. Its struct_size (see tconv_cl.h) reaches at least up to `done`. */
typedef struct tconv_run {
    size_t struct_size;
    /* Of one of the layer's devices, or of a part of it: the run is enqueued here, behind the
     * events of the wait list, and nothing waits for it. NULL: the call computes and returns when
     * the output is complete; the members up to `done` must then be 0. */
    cl_command_queue queue;
    cl_uint wait_count;    /* how many events are in `wait` */
    const cl_event *wait;  /* `wait_count` events, or NULL. If the run packs a filter that the layer
                              keeps, later runs with that filter wait for them, too. */
    cl_event *done;        /* receives an event, which the caller releases; may be NULL */
    uint64_t memory_limit; /* bytes of device memory for tensors, on each device: larger tensors are
                              computed in slabs, two at a time of which fit. The filter and the
                              algorithm's workspace come on top. 0: slabs take 256 MiB. */
    tconv_progress progress; /* only without a queue; may be NULL */
    void *user;              /* for `progress` */
    /* Lets threads of the application compute, on a device with tconv_device_threads above 0. Those
     * of OpenMP and of most runtimes wait awake for some time after their own work, so that none
     * must be woken. Trace callbacks about launches then come on these threads; they must not wait
     * for the pool. Layers that take less than some 20 us are computed by the calling thread, and
     * slabs by the helpers (device.h). NULL: the helpers compute; on other devices, the driver's
     * threads. Only without a queue. */
    tconv_on_threads on_threads;
    void *pool;       /* for `on_threads` */
    uint64_t threads; /* the most that compute, the calling one included; 0, or more than
                         tconv_device_threads: as many as that */
} tconv_run;

#define TCONV_RUN_INIT                                                                             \
    {                                                                                              \
        sizeof(tconv_run), NULL, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL, 0                       \
    }

/* Computes output = epilogue(operation(data, filter)); the formulas are at tconv_resolve and
 * tconv_epilogue. Uses the kept plan of the same problem and options if there is one, else makes
 * one, which compiles kernels: also a run with a queue then blocks, which tconv_layer_prepare
 * avoids. `options` may be NULL: all defaults. `run` may be NULL: without a queue.
 *
 * Filter, bias, scale and slope may be absent if tconv_layer_set gave them; a filter that another
 * run gave is no substitute. If the library would choose an algorithm that reads another packed
 * layout than that of the filter that was set, a run without a filter takes the algorithm of that
 * filter instead: batch, extents and pads may differ from those for which it was packed (an extent
 * of 1 may need another layout, and so may pads and gaps along an axis with a kernel of 1).
 *
 * A tensor that the epilogue does not have, or a missing one that it has, is TCONV_ERROR_ARGUMENT.
 * If the output has no elements, no tensor is looked at. Without a queue, commands of the
 * application that use the buffers of `tensors` must have ended. With a queue, the output must not
 * overlap another tensor (TCONV_ERROR_BUFFER), executions that may overlap in time need their own
 * outputs, and errors of events are as those of tconv_plan_enqueue.
 *
 * Returns what tconv_plan_create and tconv_plan_enqueue return, TCONV_ERROR_MISMATCH if the filter
 * that was set does not fit the problem or the algorithm that `options` name, _CANCELLED. After an
 * error each element of the output has its old value or the result; slabs for which `progress` was
 * called are complete. */
TCONV_API tconv_status tconv_layer_run(tconv_layer *layer, const tconv_problem *problem,
                                       const tconv_plan_options *options,
                                       const tconv_tensors *tensors, const tconv_run *run,
                                       tconv_error *error);

/* Gives the weights of later runs, instead of all that the layer kept: the filter, and what the
 * epilogue of `options` has of bias, scale and slope. They are packed for the plan of this problem,
 * which compiles kernels if there is none. Arrays of the host are copied during the call. The
 * filter's buffer is read by the packing. The buffers of bias, scale and slope are retained and
 * used in place, so their contents must stay as long as executions read them; nothing retains
 * memory behind a pointer. Data, output and residual are absent. Runs that give a filter or vectors
 * of their own use those, and leave what was set as it is.
 *
 * With a queue in `run`, the packing is enqueued behind the wait list, and nothing waits for it.
 * Executions that were enqueued before use the old weights; those enqueued after it the new ones,
 * on any queue: they wait for the packing. Only the queue's device gets them. Without a queue, all
 * devices get them, and the call waits; several devices take arrays of the host only. On an error
 * the layer keeps what it had, on all devices. Returns what tconv_plan_create and
 * tconv_packed_filter_enqueue_pack return. */
TCONV_API tconv_status tconv_layer_set(tconv_layer *layer, const tconv_problem *problem,
                                       const tconv_plan_options *options,
                                       const tconv_tensors *tensors, const tconv_run *run,
                                       tconv_error *error);

/* Forgets the weights that the layer keeps: a constant filter has changed, and runs that begin from
 * now on pack it again. NULL is a no-op. */
TCONV_API void tconv_layer_refresh(tconv_layer *layer);

/* Makes and keeps the plan of a problem, on all devices, so that a later run does not compile. With
 * `most`, tconv_device_prepare makes ready a range of extents first. These are plans of the whole
 * problem: a run that is divided (several devices, or arrays larger than SLABS says) makes those of
 * its slabs itself. `options` may be NULL. Returns what tconv_device_prepare returns. */
TCONV_API tconv_status tconv_layer_prepare(tconv_layer *layer, const tconv_problem *problem,
                                           const tconv_shape *most,
                                           const tconv_plan_options *options, tconv_error *error);

/* The plan with which runs compute this problem on the layer's first device: the kept one, or a new
 * one, which is kept as that of a run. If weights were set, that of runs without a filter. So
 * tconv_plan_algorithm, tconv_plan_explain and so on tell what runs do; another plan for the same
 * problem may be of another algorithm, for example if a record was stored in between. Slabs have
 * plans of their own. `options` as for a run. Returns what tconv_plan_create returns, and
 * TCONV_ERROR_MISMATCH as a run. Ownership: the caller's, until tconv_plan_release, also after the
 * layer has been released. */
TCONV_API tconv_status tconv_layer_plan(tconv_layer *layer, const tconv_problem *problem,
                                        const tconv_plan_options *options, tconv_plan **out,
                                        tconv_error *error);

/* Counts of what a layer did so far, on all devices. Its struct_size (see tconv_cl.h) reaches at
 * least up to `filters_packed`. */
typedef struct tconv_layer_counts {
    size_t struct_size;
    uint64_t runs;           /* runs that succeeded, or were enqueued */
    uint64_t plans_made;     /* plans made, because none was kept */
    uint64_t plans_kept;     /* now */
    uint64_t filters_packed; /* how often a filter was packed */
    uint64_t in_slabs;       /* runs, of those above, that were divided */
    uint64_t weight_bytes;   /* of device memory, now: kept filters, and copies of arrays */
} tconv_layer_counts;

#define TCONV_LAYER_COUNTS_INIT                                                                    \
    {                                                                                              \
        sizeof(tconv_layer_counts), 0, 0, 0, 0, 0, 0                                               \
    }

/* Writes the counts of a layer. Returns TCONV_ERROR_ARGUMENT. */
TCONV_API tconv_status tconv_layer_count(const tconv_layer *layer, tconv_layer_counts *counts,
                                         tconv_error *error);

/* Writes the hash of `size` bytes (XXH3, 128 bits). `memory` may be NULL if `size` is 0. */
TCONV_API void tconv_hash(const void *memory, size_t size, uint64_t hash[2]);

/* A tconv_on_threads for OpenMP's threads. `gomp_parallel` is the address of GOMP_parallel, a
 * function of GCC's and of LLVM's OpenMP library; NULL: the calling thread computes. Uses as many
 * threads as a parallel region of the calling thread. */
TCONV_API void tconv_on_openmp(void *gomp_parallel, void (*task)(void *argument), void *argument);

#ifdef __cplusplus
}
#endif

#endif
