/* SPDX-License-Identifier: Apache-2.0 */
/* Plans, for applications with OpenCL queues of their own: plan once, pack the filter once, enqueue
 * often. The application owns context, queues, buffers and events. Of the calls below, only
 * tconv_plan_create, which compiles kernels, and tconv_wait block.
 *
 *     tconv_device_create(context, device, &dev, &err);
 *     tconv_plan_create(dev, &problem, NULL, &plan, &err);
 *     tconv_packed_filter_create(plan, NULL, &filter, &err);
 *     tconv_tensor weights = {w, 0, NULL, NULL};      // w, in and out are buffers (cl_mem)
 *     tconv_packed_filter_enqueue_pack(filter, queue, &weights, 0, NULL, NULL, &err);
 *     tconv_tensors tensors = TCONV_TENSORS_INIT;
 *     tensors.packed = filter;
 *     tensors.data.memory = in;
 *     tensors.output.memory = out;                 // and tensors.workspace, if the plan needs one
 *     tconv_plan_enqueue(plan, queue, &tensors, 0, NULL, &done, &err);
 *
 * This is for an in-order queue. On others, give the event of the packing to the execution.
 *
 * THREADS. Every function here may be called from any thread, also on the same device, plan or
 * filter at the same time, with two exceptions. The last release must not run beside another use of
 * the object. Packing must not be enqueued while another thread enqueues work that reads the same
 * filter; the application orders the commands themselves, through queues and events. Two executions
 * of one plan that may overlap in time need two workspaces.
 *
 * MEMORY. If a device's memory is full, the error is TCONV_ERROR_DEVICE_MEMORY, and its sentence
 * says how many bytes were needed. Many devices detect it only when a command is enqueued or runs,
 * not when a buffer is made. */
#ifndef TCONV_CL_PLAN_H
#define TCONV_CL_PLAN_H

#include "device.h"
#include "epilogue.h"
#include "problem.h"

#ifndef CL_TARGET_OPENCL_VERSION
/* OpenCL 1.2 is enough for the library. A program that calls later functions itself, such as
 * clSVMAlloc, defines a later version before it includes this. */
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tconv_plan tconv_plan; /* one problem on one device: immutable, reference counted */
typedef struct tconv_packed_filter
    tconv_packed_filter; /* packed weights, in the layout of one algorithm */

/* Called while candidates (an algorithm with a tile) are timed: before candidate `index` of `count`
 * is compiled, and after the last one (`index` equals `count`, `algorithm` is the fastest).
 * `best_ms` is the least time so far, 0 before there is one. If it returns false, the search ends:
 * the plan takes the best candidate so far, and nothing is stored. tconv_device_prepare calls it
 * before each group of programs, and once at the end with `algorithm` "" and `index` equal to
 * `count`; `best_ms` is 0, and if it returns false, the programs so far are kept. It is called in
 * the thread that makes the plan. It may do what a callback of tracing may do (trace.h), and must
 * return as that must. */
typedef bool (*tconv_search_progress)(void *context, const char *algorithm, int index, int count,
                                      double best_ms);

/* Options of a plan. Its struct_size (see tconv_cl.h) reaches at least up to `algorithm`. */
typedef struct tconv_plan_options {
    size_t struct_size;
    /* A name of tconv_algorithm_name; NULL or "auto": the library chooses. Some or all tile
     * parameters may follow, each once, as tconv_plan_tile writes them: "thin_vector vw=16
     * nx=2". */
    const char *algorithm;
    tconv_epilogue epilogue;  /* start from TCONV_EPILOGUE_INIT */
    uint64_t workspace_limit; /* bytes; an algorithm that needs more is rejected. 0: no limit */
    tconv_math math;          /* TCONV_MATH_FAST: also algorithms that round more */
    /* A window: only output rows [output_begin, output_end) of the outermost spatial axis, from the
     * input rows of tconv_window_input. Data and output are then tensors of these rows, dense
     * unless the problem gives steps. Both 0: all rows. */
    int64_t output_begin;
    int64_t output_end; /* see output_begin */
    /* How to search for the fastest algorithm; ignored unless `algorithm` is NULL or "auto".
     * Results are stored beside the compiled programs (tuning.h). A result holds for one device,
     * driver and version of the library, and for everything in the problem that speed depends on.
     */
    tconv_search search;
    /* Time limit for measuring, in ms; 0: 500. Compiling, packing and each algorithm's first run
     * are not counted. If the fastest candidate looks faster than the cost model's choice but
     * either ran fewer than four times, they run until both have four. */
    uint32_t search_ms;
    tconv_search_progress search_progress; /* or NULL */
    void *search_context;                  /* for search_progress */
} tconv_plan_options;

#define TCONV_PLAN_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(tconv_plan_options), NULL, TCONV_EPILOGUE_INIT, 0, TCONV_MATH_EXACT, 0, 0,          \
            TCONV_SEARCH_DEFAULT, 0, NULL, NULL                                                    \
    }

/* Where a tensor is: in a buffer of the application, behind a pointer into memory that the host and
 * the device share, or in memory of the host; from an offset on. The tensor must begin at a
 * multiple of the element size. Start from TCONV_TENSOR_INIT: a member with a random value is an
 * error, or is used. Functions that only enqueue take no memory of the host.
 *
 * A pointer is one that clSVMAlloc returned (OpenCL 2.0), or one into an allocation of
 * cl_intel_unified_shared_memory; where kernels may use all memory of the host, as on some CPUs,
 * any pointer. Other devices, and pointers that are not of the plan's context, are refused.
 * Coarse-grained memory must not be mapped while the commands run. On devices with memory of their
 * own, pointers of SVM are not checked: a wrong one makes the command fail or compute nonsense.
 * docs/api.md has an example. */
typedef struct tconv_tensor {
    cl_mem memory;    /* a buffer, or NULL */
    size_t offset;    /* bytes, from the begin of `memory`, or from `pointer` or `host` on */
    void *pointer;    /* into shared memory, or NULL */
    const void *host; /* an array of the host, or NULL; that of an output is written */
} tconv_tensor;

#define TCONV_TENSOR_INIT                                                                          \
    {                                                                                              \
        NULL, 0, NULL, NULL                                                                        \
    }

/* The tensors of one execution, in the problem's formats and element steps, dense without steps.
 * What is absent has neither memory nor a pointer nor an array. bias, scale, slopes and residual
 * must be there if and only if the epilogue has them. Data, output and residual may be slices of
 * one buffer or allocation (docs/semantics.md). The flags of each buffer must allow kernels to read
 * or write it (else TCONV_ERROR_BUFFER). Its struct_size reaches at least up to `output`. */
typedef struct tconv_tensors {
    size_t struct_size;
    tconv_tensor data;                 /* the input tensor; not read if it is empty */
    tconv_tensor filter;               /* layers: the weights; plans read `packed` instead */
    const tconv_packed_filter *packed; /* plans: packed, or being packed by an earlier command */
    tconv_tensor output;     /* every element is written, nothing between them; read before only if
                                the epilogue's beta is not 0 */
    tconv_tensor bias;       /* one number for each output channel, with pixel shuffle for each
                                channel of the convolution; so are the next two. Types as
                                tconv_epilogue says */
    tconv_tensor scale;      /* one factor for each of these channels */
    tconv_tensor slope;      /* activations with a slope */
    tconv_tensor residual;   /* like the output, but with its own steps */
    tconv_tensor workspace;  /* plans: needed if tconv_plan_workspace_bytes is not 0; its contents
                                do not matter before or after */
    uint64_t filter_version; /* layers that watch their weights (layer.h); else 0 */
    tconv_tensor slope2;     /* activations with two slopes: like `slope` */
} tconv_tensors;

#define TCONV_TENSORS_INIT                                                                         \
    {                                                                                              \
        sizeof(tconv_tensors), TCONV_TENSOR_INIT, TCONV_TENSOR_INIT, NULL, TCONV_TENSOR_INIT,      \
            TCONV_TENSOR_INIT, TCONV_TENSOR_INIT, TCONV_TENSOR_INIT, TCONV_TENSOR_INIT,            \
            TCONV_TENSOR_INIT, 0, TCONV_TENSOR_INIT                                                \
    }

/* The algorithms by index, in order of preference; NULL past the end. Any thread. */
TCONV_API const char *tconv_algorithm_name(int index);

/* A sentence about the algorithm with this name; NULL if there is none. Any thread. */
TCONV_API const char *tconv_algorithm_summary(const char *name);

/* Resolves the problem, chooses an algorithm and its parameters, and compiles kernels that are not
 * compiled yet. If the library chooses, it passes over an algorithm whose kernels cannot run on the
 * device, or do not build in two tries (tconv_plan_passed_over, tconv_plan_is_stale). Every other
 * failure is the call's error and never changes the choice. If algorithms are timed (`search`), the
 * scratch buffers are as large as the problem's tensors and respect `workspace_limit`; if they
 * cannot be allocated, the cost model chooses. `options` may be NULL. Returns what tconv_resolve
 * returns, TCONV_ERROR_ALGORITHM, _UNSUPPORTED, _DEVICE, _HOST_MEMORY, _DEVICE_MEMORY, _OPENCL,
 * _BUILD. Ownership: the caller's, until tconv_plan_release; the plan keeps `device` alive. `*out`
 * is written only on success. */
TCONV_API tconv_status tconv_plan_create(tconv_device *device, const tconv_problem *problem,
                                         const tconv_plan_options *options, tconv_plan **out,
                                         tconv_error *error);

/* Adds an owner, who must also release the plan. NULL is a no-op. Any thread. */
TCONV_API void tconv_plan_retain(tconv_plan *plan);

/* Releases the plan; the last owner's call destroys it. NULL is a no-op. Pending commands run to
 * completion, or fail with the error of an event that they wait for. Filters made from the plan
 * keep it alive. */
TCONV_API void tconv_plan_release(tconv_plan *plan);

/* The plan's decisions. With a window, the geometry is the window's. The pointers are valid as long
 * as the plan. NULL or 0 if `plan` is NULL. */
TCONV_API const tconv_geometry *tconv_plan_geometry(const tconv_plan *plan);
TCONV_API const char *tconv_plan_algorithm(const tconv_plan *plan);

/* Writes the algorithm's tile parameters as "vw=16 nx=2", or an empty text if it has none. Writes
 * at most `size` bytes with the terminating zero, and returns the length of the whole text. Any
 * thread. */
TCONV_API int tconv_plan_tile(const tconv_plan *plan, char *text, size_t size);

/* The unit of the device that the plan's algorithm computes with: a GPU's matrix unit, or
 * dot-product instructions of a CPU. TCONV_MATRIX_NONE: none, or it failed its test, or `plan` is
 * NULL. Any thread. */
TCONV_API tconv_matrix_unit tconv_plan_matrix_unit(const tconv_plan *plan);

/* Bytes of device memory that an execution needs as tconv_tensors.workspace; 0: none. */
TCONV_API uint64_t tconv_plan_workspace_bytes(const tconv_plan *plan);

/* Bytes of device memory of the packed filter. */
TCONV_API uint64_t tconv_plan_filter_bytes(const tconv_plan *plan);

/* How the algorithm was chosen. */
typedef struct tconv_choice {
    size_t struct_size;
    tconv_search source; /* MODEL (also if the caller named it), RECORDS, IMPORTED, PREPARED, or
                            MEASURE: timed just now */
    int32_t candidates; /* how many were timed, now or when the result was stored; 0 unless timed */
    double model_ms;    /* least time of the cost model's choice; 0 unless timed */
    double best_ms;     /* least time of the algorithm; 0 unless timed */
    /* MEASURE: relative uncertainty of model_ms / best_ms (0.05: 5 %). A smaller gain is not taken.
     * 0: too few runs, or another source. */
    double noise;
} tconv_choice;

#define TCONV_CHOICE_INIT                                                                          \
    {                                                                                              \
        sizeof(tconv_choice), TCONV_SEARCH_MODEL, 0, 0, 0, 0                                       \
    }

/* Writes how the plan's algorithm was chosen. Returns TCONV_ERROR_ARGUMENT. Any thread. */
TCONV_API tconv_status tconv_plan_choice(const tconv_plan *plan, tconv_choice *choice,
                                         tconv_error *error);

/* Writes one line for each candidate of the plan's algorithm, the one with the least expected time
 * first: its tile, as tconv_plan_options.algorithm takes it after the algorithm's name. If tile
 * parameters were asked for, only candidates with these. Writes and returns as tconv_plan_explain
 * does. */
TCONV_API int tconv_plan_candidates(const tconv_plan *plan, char *text, size_t size);

/* Writes one line for each candidate that was timed for this plan: "ALGORITHM TILE cost C ms M",
 * with C in useful multiply-adds at the device's best speed. An empty text if none was. Writes and
 * returns as tconv_plan_explain does. */
TCONV_API int tconv_plan_timed(const tconv_plan *plan, char *text, size_t size);

/* Writes why the result of the search that made this plan could not be stored (tuning.h): the
 * folder and the system's reason. An empty text if it was stored, if there is no folder, or if the
 * plan was not made by a search. Writes and returns as tconv_plan_explain does. */
TCONV_API int tconv_plan_not_stored(const tconv_plan *plan, char *text, size_t size);

/* The factor by which the bound of rounding errors exceeds that of the defined sum of products: 1,
 * or more with TCONV_MATH_FAST, or if `difference_vector` or `difference_group` computes a nearest
 * upsampling and a convolution. docs/semantics.md has the bound. */
TCONV_API double tconv_plan_error_factor(const tconv_plan *plan);

/* Writes one line for each algorithm: its expected milliseconds and its best tile (for the plan's
 * algorithm the plan's tile), or the reason why it was rejected. If the plan's algorithm comes from
 * an imported result, its line ends with "; imported from ORIGIN". No newline follows the last
 * line. Writes at most `size` bytes with the terminating zero, and returns the length of the whole
 * text, often more than 1000 bytes. */
TCONV_API int tconv_plan_explain(const tconv_plan *plan, char *text, size_t size);

/* Writes one line, with name and error, for each algorithm that was expected to be faster than the
 * plan's, but whose kernels do not build or cannot run on this device. If a matrix unit failed its
 * test, the line of the algorithm that uses it says so. Usually an empty text. Writes and returns
 * as tconv_plan_explain does. */
TCONV_API int tconv_plan_passed_over(const tconv_plan *plan, char *text, size_t size);

/* True when a new plan of the same problem may be faster: kernels of this plan failed to build,
 * perhaps transiently (a signal, missing memory or disk), and the next try is due. Who keeps plans
 * should then make a new one, which builds these kernels again: the first time at once, later after
 * growing pauses, 8 times at most. With TCONV_CL_KERNEL_DIR nothing is built twice. Layers
 * ask by themselves. False if `plan` is NULL. Any thread. */
TCONV_API bool tconv_plan_is_stale(const tconv_plan *plan);

/* An empty filter object for `plan` and every other plan with the same packed layout: the same
 * algorithm, device, element types, zero points, channels, groups, kernel, strides and dilations;
 * batch, extents and pads may differ. (If "auto" takes another algorithm for other extents, name
 * the first plan's algorithm. Extents of 1 may need another layout, and so may pads and gaps along
 * axes with a kernel of 1; with TCONV_MATH_FAST other extents, too: ask tconv_packed_filter_fits.)
 * `storage` receives the packed weights: tconv_plan_filter_bytes that kernels may read and write,
 * from a multiple of 64 on. NULL: the library allocates a buffer in the plan's context. Returns
 * TCONV_ERROR_ARGUMENT, _BUFFER, _MISMATCH, _DEVICE, _HOST_MEMORY, _DEVICE_MEMORY, _OPENCL.
 * Ownership: the caller's, until tconv_packed_filter_release. Until then a given buffer is
 * retained, and memory behind a given pointer must not be freed. */
TCONV_API tconv_status tconv_packed_filter_create(tconv_plan *plan, const tconv_tensor *storage,
                                                  tconv_packed_filter **out, tconv_error *error);

/* Enqueues the packing of `weights`, the problem's filter tensor. Repeat it whenever the weights
 * change. If `done` is not NULL, it receives an event that the caller releases. Executions that
 * read the filter must wait for it, or run later on the same in-order queue. `queue` must be of the
 * plan's device, or of a sub-device of it; `weights` must not overlap the filter's storage. Failed
 * events of the wait list: see tconv_plan_enqueue. Returns TCONV_ERROR_ARGUMENT, _BUFFER,
 * _MISMATCH, _DEVICE, _OPENCL, _DEVICE_MEMORY, _HOST_MEMORY. */
TCONV_API tconv_status tconv_packed_filter_enqueue_pack(tconv_packed_filter *filter,
                                                        cl_command_queue queue,
                                                        const tconv_tensor *weights,
                                                        cl_uint wait_count, const cl_event *wait,
                                                        cl_event *done, tconv_error *error);

/* True if executions of `plan` may read the filter: it has their packed layout, and is on the same
 * device. Any thread. */
TCONV_API bool tconv_packed_filter_fits(const tconv_packed_filter *filter, const tconv_plan *plan);

/* Adds an owner, who must also release the filter. NULL is a no-op. Any thread. */
TCONV_API void tconv_packed_filter_retain(tconv_packed_filter *filter);

/* Releases the filter; the last owner's call destroys it. NULL is a no-op. Pending commands that
 * pack or read it run to completion; OpenCL keeps the packed weights until then. */
TCONV_API void tconv_packed_filter_release(tconv_packed_filter *filter);

/* Enqueues one execution: output = epilogue(operation(data, filter)); the formulas are at
 * tconv_resolve and tconv_epilogue. It starts after the events of the wait list. If `done` is not
 * NULL, it receives an event that the caller releases. Works on in-order and out-of-order queues of
 * the plan's device, or of a sub-device of it.
 *
 * On a device with threads (tconv_device_threads), a user event of the wait list that has not ended
 * is TCONV_ERROR_UNSUPPORTED, and no command that this one waits for may wait for a user event:
 * PoCL's basic device never ends them.
 *
 * An event of the wait list that has already failed is the call's error, with the event's code. If
 * one fails later, OpenCL cancels the execution and sets `done` to an error; Intel's runtime for
 * CPUs executes it anyway.
 *
 * On an error no event is returned. If an argument was refused, the output is unchanged. An
 * execution may take several commands, the last of them in pieces if it would keep a GPU busy for
 * long. If the device refuses a command, the commands before it are enqueued and use the buffers of
 * `tensors` until they end; each element of the output then has its old value or the result.
 *
 * Returns TCONV_ERROR_ARGUMENT, _BUFFER, _MISMATCH, _DEVICE, _OPENCL, _DEVICE_MEMORY,
 * _HOST_MEMORY. */
TCONV_API tconv_status tconv_plan_enqueue(const tconv_plan *plan, cl_command_queue queue,
                                          const tconv_tensors *tensors, cl_uint wait_count,
                                          const cl_event *wait, cl_event *done, tconv_error *error);

/* Executes at once: as tconv_plan_enqueue, but in queues of the device object's own, and it returns
 * when the output is complete. Commands of the application that use the buffers of `tensors` must
 * have ended. On a device that tconv_device_open gave threads (device.h), these compute; plans on
 * it that are enqueued are computed by one thread. Returns what tconv_plan_enqueue and tconv_wait
 * return. */
TCONV_API tconv_status tconv_plan_run(const tconv_plan *plan, const tconv_tensors *tensors,
                                      tconv_error *error);

/* Packs at once: tconv_packed_filter_enqueue_pack likewise. */
TCONV_API tconv_status tconv_packed_filter_pack(tconv_packed_filter *filter,
                                                const tconv_tensor *weights, tconv_error *error);

/* Waits until the command of `event` has ended, like clWaitForEvents, but does not sleep for the
 * first 200 microseconds: it asks for the event's state and lets other threads run in between.
 * Waking a sleeping thread takes longer than a small layer, and on a CPU the kernel's threads wake
 * faster on a processor that is not asleep. While other programs keep the processors busy, it
 * sleeps at once. Flushes the event's queue. The event stays the caller's. Returns
 * TCONV_ERROR_ARGUMENT if `event` is NULL; TCONV_ERROR_OPENCL, _DEVICE_MEMORY, _HOST_MEMORY with
 * the code of the failed call, or the code with which the command ended. Any thread. */
TCONV_API tconv_status tconv_wait(cl_event event, tconv_error *error);

#ifdef __cplusplus
}
#endif

#endif
