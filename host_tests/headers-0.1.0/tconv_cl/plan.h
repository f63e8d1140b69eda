/* SPDX-License-Identifier: Apache-2.0 */
/* Plan once, pack the filter once, enqueue often. The application owns context, queues, buffers and
 * events; nothing here blocks but tconv_plan_create, which compiles kernels.
 *
 *     tconv_device_create(context, device, &dev, &err);
 *     tconv_plan_create(dev, &problem, NULL, &plan, &err);
 *     tconv_packed_filter_create(plan, NULL, 0, &filter, &err);
 *     tconv_packed_filter_enqueue_pack(filter, queue, weights, 0, 0, NULL, NULL, &err);
 *     tconv_plan_enqueue(plan, queue, &args, 0, NULL, &done, &err);
 *
 * THREADS. Every function here may be called from any thread, also on the same device, plan or
 * filter at the same time; only releasing the last reference must not run beside another use of
 * that object, and packing must not run beside the enqueueing of work that reads the same filter
 * (the order of the commands themselves is the application's, through queues and events). Two
 * executions of one plan that may overlap in time need two workspaces.
 *
 * MEMORY. Where a device's memory is full, the error is TCONV_ERROR_DEVICE_MEMORY, and its sentence
 * says how many bytes were needed. Many devices find out only when a command is enqueued or runs,
 * not when a buffer is made. */
#ifndef TCONV_CL_PLAN_H
#define TCONV_CL_PLAN_H

#include "device.h"
#include "epilogue.h"
#include "problem.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tconv_plan tconv_plan; /* one problem on one device: immutable, reference counted */
typedef struct tconv_packed_filter
    tconv_packed_filter; /* packed weights, as one algorithm wants them */

/* Called while candidates (an algorithm with a tile) are timed: before number `index` of `count` is
 * compiled, and when all are timed (`index` equals `count`, `algorithm` is the fastest one's).
 * `best_ms` is the least time so far, 0 before there is one. With false, the search ends: the best
 * so far is taken, and nothing is stored. In the thread that makes the plan. */
typedef bool (*tconv_search_progress)(void *context, const char *algorithm, int index, int count,
                                      double best_ms);

/* What a plan may be made with. Its struct_size (see tconv_cl.h) reaches at least up to
 * `algorithm`.
 */
typedef struct tconv_plan_options {
    size_t struct_size;
    /* From tconv_algorithm_name; NULL or "auto": the library chooses. Tile parameters may follow,
     * as tconv_plan_tile writes them, all of them or some, each once: "thin_vector vw=16 nx=2". */
    const char *algorithm;
    tconv_epilogue epilogue;  /* start from TCONV_EPILOGUE_INIT */
    uint64_t workspace_limit; /* bytes; an algorithm that needs more is rejected. 0: no limit */
    tconv_math math;          /* TCONV_MATH_FAST: also algorithms that round more */
    /* A window: only output rows [output_begin, output_end) of the outermost spatial axis, from the
     * input rows that tconv_window_input tells. Data and output then are dense tensors of these
     * rows. Both 0: all rows. */
    int64_t output_begin;
    int64_t output_end; /* see output_begin */
    /* Only where `algorithm` is NULL or "auto". Results are stored beside the compiled programs
     * (cache.h), for the device, its driver, this version of the library and all of the problem
     * that speed depends on. */
    tconv_search search;
    uint32_t search_ms; /* the most that timing takes, besides compiling, packing and the first run
                           of each algorithm; 0: 500 */
    tconv_search_progress search_progress; /* or NULL */
    void *search_context;                  /* for search_progress */
} tconv_plan_options;

#define TCONV_PLAN_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(tconv_plan_options), NULL, TCONV_EPILOGUE_INIT, 0, TCONV_MATH_EXACT, 0, 0,          \
            TCONV_SEARCH_DEFAULT, 0, NULL, NULL                                                    \
    }

/* A place in a buffer of the application's. `offset` is in bytes and a multiple of the element
 * size. */
typedef struct tconv_buffer {
    cl_mem memory; /* NULL: absent */
    size_t offset; /* bytes */
} tconv_buffer;

/* What one execution reads and writes. The tensors are dense, in the problem's formats; `output`
 * and `workspace` overlap nothing else, and buffers were made such that kernels may use them so
 * (TCONV_ERROR_BUFFER). Its struct_size reaches at least up to `output`. */
typedef struct tconv_args {
    size_t struct_size;
    const tconv_packed_filter *filter; /* packed, or being packed by an earlier command */
    tconv_buffer data;                 /* the input tensor; not read where it is empty */
    tconv_buffer
        output; /* every element is written; read before only where the epilogue's beta is not 0 */
    tconv_buffer workspace; /* only where tconv_plan_workspace_bytes is not 0; its contents do not
                               matter before or after */
    tconv_buffer bias;      /* this and those below only where the plan's epilogue has them */
    tconv_buffer scale;     /* one factor for each output channel */
    tconv_buffer slope;     /* activations with a slope */
    tconv_buffer residual;  /* a tensor like the output */
} tconv_args;

#define TCONV_ARGS_INIT                                                                            \
    {                                                                                              \
        sizeof(tconv_args), NULL, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0},           \
            {NULL, 0},                                                                             \
        {                                                                                          \
            NULL, 0                                                                                \
        }                                                                                          \
    }

/* The algorithms by index, in order of preference; NULL past the end. Any thread. */
TCONV_API const char *tconv_algorithm_name(int index);

/* What the algorithm with that name is, in one sentence; NULL where there is none. Any thread. */
TCONV_API const char *tconv_algorithm_summary(const char *name);

/* Resolves the problem, chooses an algorithm and its parameters, and compiles what is not compiled
 * yet. Where the library chooses, an algorithm whose kernels do not build or cannot run on the
 * device is passed over (tconv_plan_passed_over); every other failure is the call's error and never
 * changes the choice. Where algorithms are timed (`search`), the scratch buffers are as large as
 * the problem's tensors and respect `workspace_limit`; where they cannot be had, the cost model
 * chooses. `options` may be NULL. Returns what tconv_resolve returns, TCONV_ERROR_ALGORITHM,
 * _UNSUPPORTED, _DEVICE, _HOST_MEMORY, _DEVICE_MEMORY, _OPENCL, _BUILD. Ownership: the caller's,
 * until tconv_plan_release; the plan keeps `device` alive. `*out` is written only on success. */
TCONV_API tconv_status tconv_plan_create(tconv_device *device, const tconv_problem *problem,
                                         const tconv_plan_options *options, tconv_plan **out,
                                         tconv_error *error);

/* One more owner, who releases the plan, too. NULL is a no-op. Any thread. */
TCONV_API void tconv_plan_retain(tconv_plan *plan);

/* Releases the plan; the last owner's call destroys it. NULL is a no-op. Pending commands run to
 * completion, or fail with the error of an event that they wait for. Filters made from the plan
 * keep it alive. */
TCONV_API void tconv_plan_release(tconv_plan *plan);

/* What the plan decided; with a window, the geometry is the window's. The pointers are valid as
 * long as the plan. NULL or 0 where `plan` is NULL. */
TCONV_API const tconv_geometry *tconv_plan_geometry(const tconv_plan *plan);
TCONV_API const char *tconv_plan_algorithm(const tconv_plan *plan);

/* Writes the algorithm's tile parameters as "vw=16 nx=2": at most `size` bytes with the terminating
 * zero; returns the length that the whole text has. An empty text where it has none. Any thread. */
TCONV_API int tconv_plan_tile(const tconv_plan *plan, char *text, size_t size);

/* Bytes of device memory that an execution needs as tconv_args.workspace; 0: none. */
TCONV_API uint64_t tconv_plan_workspace_bytes(const tconv_plan *plan);

/* Bytes of device memory that the packed filter takes. */
TCONV_API uint64_t tconv_plan_filter_bytes(const tconv_plan *plan);

/* How the algorithm was chosen. */
typedef struct tconv_choice {
    size_t struct_size;
    tconv_search source; /* MODEL (also where it was named), RECORDS, or MEASURE: timed just now */
    int32_t candidates;  /* that were timed, now or when the result was stored; 0 with MODEL */
    double model_ms;     /* least time of what the cost model takes; 0 with MODEL */
    double best_ms;      /* least time of the algorithm; 0 with MODEL */
} tconv_choice;

#define TCONV_CHOICE_INIT                                                                          \
    {                                                                                              \
        sizeof(tconv_choice), TCONV_SEARCH_MODEL, 0, 0, 0                                          \
    }

/* Writes how the plan's algorithm was chosen. Returns TCONV_ERROR_ARGUMENT. Any thread. */
TCONV_API tconv_status tconv_plan_choice(const tconv_plan *plan, tconv_choice *choice,
                                         tconv_error *error);

/* One line for each candidate of the plan's algorithm, the one with the least expected time first:
 * its tile, as tconv_plan_options.algorithm takes it behind the algorithm's name. Where tile
 * parameters were asked for, of these candidates. Writes and returns as tconv_plan_explain does. */
TCONV_API int tconv_plan_candidates(const tconv_plan *plan, char *text, size_t size);

/* One line for each candidate that was timed for this plan: "ALGORITHM TILE cost C ms M", C in
 * useful multiply-adds at the device's best speed. An empty text where none was. Writes and returns
 * as tconv_plan_explain does. */
TCONV_API int tconv_plan_timed(const tconv_plan *plan, char *text, size_t size);

/* By which factor the bound of rounding errors exceeds that of the defined products added up in
 * some order: 1, or more with TCONV_MATH_FAST. docs/semantics.md has the bound. */
TCONV_API double tconv_plan_error_factor(const tconv_plan *plan);

/* One line for each algorithm: its expected milliseconds and its best tile (the plan's own of the
 * one that was taken), or the reason why it was rejected. Writes at most `size` bytes with the
 * terminating zero; returns the length that the whole text has. */
TCONV_API int tconv_plan_explain(const tconv_plan *plan, char *text, size_t size);

/* The algorithms that were expected to be faster than the plan's, but whose kernels do not build or
 * cannot run on this device: one line for each, its name and the error. A matrix unit that failed
 * its test is told in the line of the algorithm that uses it. An empty text where there is none, as
 * usual. Writes and returns as tconv_plan_explain does. */
TCONV_API int tconv_plan_passed_over(const tconv_plan *plan, char *text, size_t size);

/* An empty filter object for `plan` and every other plan with the same packed layout: the same
 * algorithm, device, element types, zero points, channels, groups, kernel, strides and dilations;
 * batch, extents and pads may differ. (Where "auto" takes another algorithm for other extents,
 * force the first plan's by name. With TCONV_MATH_FAST the layout may follow the extents.)
 * `storage` is where the packed weights will lie, tconv_plan_filter_bytes from `offset` on (a
 * multiple of 64), in a buffer that kernels may read and write; NULL: the library allocates them in
 * the plan's context. Returns TCONV_ERROR_ARGUMENT, _BUFFER, _MISMATCH, _HOST_MEMORY,
 * _DEVICE_MEMORY, _OPENCL. Ownership: the caller's, until tconv_packed_filter_release; a given
 * `storage` is retained until then. */
TCONV_API tconv_status tconv_packed_filter_create(tconv_plan *plan, cl_mem storage, size_t offset,
                                                  tconv_packed_filter **out, tconv_error *error);

/* Enqueues the packing of `weights` (the problem's filter tensor, from byte `offset` on). To be
 * repeated whenever the weights change. `done`, where not NULL, receives an event that the caller
 * releases; executions that read the filter wait for it, or run later on the same in-order queue.
 * `queue` is of the plan's device, or of a part of it; `weights` overlap no storage of the filter.
 * Failed events of the wait list: see tconv_plan_enqueue. Returns
 * TCONV_ERROR_ARGUMENT, _BUFFER, _MISMATCH, _OPENCL, _DEVICE_MEMORY, _HOST_MEMORY. */
TCONV_API tconv_status tconv_packed_filter_enqueue_pack(tconv_packed_filter *filter,
                                                        cl_command_queue queue, cl_mem weights,
                                                        size_t offset, cl_uint wait_count,
                                                        const cl_event *wait, cl_event *done,
                                                        tconv_error *error);

/* Whether executions of `plan` may read the filter: it is packed as they need it, and on the same
 * device. Any thread. */
TCONV_API bool tconv_packed_filter_fits(const tconv_packed_filter *filter, const tconv_plan *plan);

/* One more owner, who releases the filter, too. NULL is a no-op. Any thread. */
TCONV_API void tconv_packed_filter_retain(tconv_packed_filter *filter);

/* Releases the filter; the last owner's call destroys it. NULL is a no-op. Pending commands that
 * pack or read it run to completion; OpenCL keeps the packed weights until then. */
TCONV_API void tconv_packed_filter_release(tconv_packed_filter *filter);

/* Enqueues one execution: output = epilogue(operation(data, filter)); the formulas are at
 * tconv_resolve and tconv_epilogue. It starts after the events of the wait list; `done`, where not
 * NULL, receives an event that the caller releases. Works on in-order and out-of-order queues of
 * the plan's device, or of a part of it.
 *
 * An event of the wait list that has already failed is the call's error, with the event's code. If
 * one fails later, OpenCL cancels the execution and sets `done` to an error; Intel's runtime for
 * CPUs executes it anyway.
 *
 * On an error no event is returned. If an argument was refused, the output is unchanged. An
 * execution may take several commands, the last of them in pieces if it would keep a GPU busy for
 * long. If the device refuses a command, the commands before it are enqueued and use the buffers of
 * `args` until they end; each element of the output then has its old value or the result.
 *
 * Returns TCONV_ERROR_ARGUMENT, _BUFFER, _MISMATCH, _OPENCL, _DEVICE_MEMORY, _HOST_MEMORY. */
TCONV_API tconv_status tconv_plan_enqueue(const tconv_plan *plan, cl_command_queue queue,
                                          const tconv_args *args, cl_uint wait_count,
                                          const cl_event *wait, cl_event *done, tconv_error *error);

/* Waits until the command of `event` has ended, like clWaitForEvents, but does not sleep for the
 * first 200 microseconds: it asks for the event's state and lets other threads run in between. To
 * be woken takes a thread longer than small layers take, and on a CPU the kernel's threads wake
 * faster on a processor that is not asleep. Where other programs keep the processors busy, it
 * sleeps at once for a while. Flushes the event's queue. The event stays the caller's. Returns
 * TCONV_ERROR_ARGUMENT where `event` is NULL; TCONV_ERROR_OPENCL, _DEVICE_MEMORY, _HOST_MEMORY with
 * the code of the call that failed, or that the command ended with. Any thread. */
TCONV_API tconv_status tconv_wait(cl_event event, tconv_error *error);

#ifdef __cplusplus
}
#endif

#endif
