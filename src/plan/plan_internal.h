/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a plan and of a filter, and the functions that carry out kernel plans. Only files
 * of src/plan include it.
 *
 * Functions that choose and make need an error to fill, because they read it to decide what is
 * next. What it says after TCONV_OK means nothing. */
#ifndef TCONV_PLAN_PLAN_INTERNAL_H
#define TCONV_PLAN_PLAN_INTERNAL_H

#include "algorithm/algorithm.h"
#include "base/view.h"
#include "device/program.h"
#include "tconv_cl/plan.h"

#include <pthread.h>
#include <stdatomic.h>

/* What a thread needs to launch kernels of a plan: no other one may set the arguments of its kernel
 * objects, or use its queue. */
struct tconv_hand {
    struct tconv_hand *next; /* of those that no thread has */
    cl_command_queue queue;
    bool profiles; /* the queue does */
    cl_kernel pack[TCONV_MAX_LAUNCHES], run[TCONV_MAX_LAUNCHES];
};

struct tconv_plan {
    atomic_int owners;
    tconv_device *device;
    tconv_geometry geometry;
    struct tconv_view view[TCONV_SPACED_TENSORS]; /* how these tensors lie in memory */
    bool has_steps[TCONV_SPACED_TENSORS];         /* the problem says so */
    struct tconv_loops loops;
    tconv_epilogue epilogue;
    tconv_device_info info; /* a copy of the device's; make.c lowers its limits to those of the
                               plan's kernels, unit.c removes a unit that failed its probe */
    struct tconv_request request;            /* points to layer, info and epilogue */
    struct tconv_pattern pattern;            /* what the caller asked for */
    tconv_search search;                     /* how to search; never TCONV_SEARCH_DEFAULT */
    struct tconv_candidate candidate;        /* the candidate that was made */
    tconv_choice choice;                     /* how it was chosen */
    char *passed_over[TCONV_MAX_ALGORITHMS]; /* why a cheaper algorithm could not be made, from
                                                malloc, or NULL */
    struct tconv_retry retry;                /* programs that failed to build, maybe transiently */
    char *timed;                             /* the text of tconv_plan_timed, or NULL */
    char *not_stored;                        /* the text of tconv_plan_not_stored, or NULL */
    char *origin;                         /* of the imported result that was found last, or NULL */
    tconv_problem problem;                /* as the caller gave it: for tracing */
    int64_t output_begin, output_end;     /* the window that the caller asked for; both 0: none */
    struct tconv_kernel_plan kernel_plan; /* without its table, which is in the buffer below */
    cl_mem table;
    cl_mem no_image; /* the argument for an image that an execution does not have; NULL: no kernel
                        reads images */
    cl_kernel pack[TCONV_MAX_LAUNCHES], run[TCONV_MAX_LAUNCHES];
    struct tconv_hand *hands; /* that no thread has (shares.c) */
    pthread_mutex_t lock;     /* guards `hands`, and OpenCL lets only one thread at a time set the
                                 arguments of a kernel object */
};

/* Where a tensor is that kernels use: a buffer, or a pointer into shared memory. The range of its
 * bytes counts from a buffer's begin, and a sub-buffer's from its parent's. The range of a pointer,
 * and of a buffer that was made over memory of the host, counts from address 0. */
struct tconv_place {
    cl_mem memory;
    size_t offset;       /* bytes, in the buffer */
    const void *pointer; /* to the tensor's first byte; NULL: a buffer, or nothing */
    bool usm;            /* the pointer is one of cl_intel_unified_shared_memory, not of SVM */
    cl_mem whole;        /* what the range is in; NULL: all addresses */
    uint64_t begin, end; /* the range */
};

struct tconv_packed_filter {
    tconv_plan *plan; /* the plan it was made for, with the kernels that pack it */
    struct tconv_place place;
    atomic_bool packed;
    atomic_int owners;
};

/* A buffer seen as an image, and the pixel at which a tensor begins there. */
struct tconv_image {
    cl_mem memory; /* NULL: kernels read the buffer itself */
    cl_int first;
};

/* What the launches of a kernel plan are bound to, by enum tconv_arg. */
struct tconv_bindings {
    struct tconv_place place[TCONV_ARG_TABLE];
    struct tconv_image image[2]; /* from TCONV_ARG_DATA_IMAGE on */
};

/* Begins a plan: checks and resolves the problem. The caller then makes an algorithm with
 * tconv_plan_make. Both structures are of this version. */
tconv_status tconv_plan_begin(tconv_device *device, const tconv_problem *problem,
                              const tconv_plan_options *options, tconv_plan **out,
                              tconv_error *error);

/* The same for a caller's structures of any version. Sets `options` to a copy of theirs. */
tconv_status tconv_plan_begin_given(tconv_device *device, const tconv_problem *given_problem,
                                    const tconv_plan_options *given_options,
                                    tconv_plan_options *options, tconv_plan **out,
                                    tconv_error *error);

/* Makes another plan of the same problem, device and options, without an algorithm. */
tconv_status tconv_plan_begin_again(const tconv_plan *plan, tconv_plan **out, tconv_error *error);

/* Reads which algorithm and which search the options ask for (choose.c). */
tconv_status tconv_plan_read_options(tconv_plan *plan, const tconv_plan_options *options,
                                     tconv_error *error);

/* Finds the candidate that a record names. `*found` is false if there is no record, or if this
 * version has no such candidate for the problem (choose.c). */
tconv_status tconv_plan_recorded(tconv_plan *plan, struct tconv_candidate *candidate, bool *found,
                                 tconv_choice *choice, tconv_error *error);

/* The most tiles of an algorithm that a search times: its cheapest candidates. */
enum { TCONV_MOST_TIMED_TILES = 3 };

/* Finds the cheapest candidate of those that the caller asked for (choose.c). */
tconv_status tconv_plan_cheapest(tconv_plan *plan, struct tconv_candidate *candidate,
                                 tconv_error *error);

/* Writes the key of a launch's program. False if its options exceed TCONV_MAX_OPTIONS bytes. */
enum { TCONV_PROGRAM_KEY = TCONV_MAX_OPTIONS + 80 };
bool tconv_program_key(const struct tconv_request *request, const struct tconv_algorithm *algorithm,
                       const struct tconv_launch *launch, char key[TCONV_PROGRAM_KEY]);

/* Compiles the kernels of a candidate and makes their table, instead of those that the plan had. If
 * a kernel can run only in smaller work-groups or with less local memory, or its compiler refuses
 * the option for more registers, the algorithm's best candidate under these limits is made instead.
 * If there is none, or the kernels do not build or run, the plan has no algorithm;
 * tconv_kernel_is_unfit tells these errors from others. */
tconv_status tconv_plan_make(tconv_plan *plan, const struct tconv_candidate *candidate,
                             tconv_error *error);

/* The same. A candidate that is unfit is passed over, and `*made` is false. */
tconv_status tconv_plan_try(tconv_plan *plan, const struct tconv_candidate *candidate, bool *made,
                            tconv_error *error);

/* Releases everything that belongs to the candidate that was made. */
void tconv_plan_clear(tconv_plan *plan);

/* The longest expected launch on a device, in ms; 0: no limit. By default GPUs have a limit:
 * drivers abort long launches (Windows after 2 s), and the display freezes meanwhile. */
double tconv_launch_limit_ms(const tconv_device *device);

/* Bytes of private memory of a work-item, the most of all kernels: its arrays and spilled
 * registers. 0 if the device does not say. */
uint64_t tconv_plan_private_bytes(const tconv_plan *plan);

/* Records why a candidate's algorithm is not taken. */
tconv_status tconv_plan_pass_over(tconv_plan *plan, const struct tconv_candidate *candidate,
                                  const char *why, tconv_error *error);

/* True if an error says that a kernel does not build or cannot run on the device, now and later.
 * Missing memory or a lost device says nothing about the kernel. */
bool tconv_kernel_is_unfit(const tconv_error *error);

/* A piece of a launch: the first of its global ids, and its work-items. */
struct tconv_piece {
    size_t offset[3], global[3];
};

/* Enqueues `count` launches. The first waits for the wait list, each other one for the launch
 * before. Without launches, `done` is the event of a marker. */
tconv_status tconv_enqueue_launches(const tconv_plan *plan, const struct tconv_launch *launches,
                                    const cl_kernel *kernels, int count, cl_command_queue queue,
                                    const struct tconv_bindings *bindings, cl_uint wait_count,
                                    const cl_event *wait, cl_event *done, tconv_error *error);

/* What an execution wants of a tensor: that kernels may use its memory in this way
 * (CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY or CL_MEM_READ_WRITE), that it begins at a multiple of
 * `unit`, and that `bytes` from there on are inside. `why` ends the sentence if they are not. */
struct tconv_wanted {
    const char *argument;
    const tconv_tensor *tensor;
    cl_mem_flags use;
    size_t unit;
    uint64_t bytes;
    const char *why;
};

/* Finds where a tensor is, and checks that it is in the plan's context and as it is wanted. place.c
 * says what cannot be checked of a pointer. */
tconv_status tconv_place_find(const tconv_plan *plan, const struct tconv_wanted *wanted,
                              struct tconv_place *place, tconv_error *error);

/* Refuses an argument whose range overlaps the range of an argument that is written. */
tconv_status tconv_place_apart(const char *written, const struct tconv_place *a,
                               const char *argument, const struct tconv_place *b,
                               tconv_error *error);

/* Sets it as argument `index` of a kernel; NULL if the place is empty. `*call` becomes the name of
 * the call whose code is returned. */
cl_int tconv_place_set(const tconv_plan *plan, const struct tconv_place *place, cl_kernel kernel,
                       cl_uint index, const char **call);

/* Bytes of the whole buffer; of a pointer, bytes of the tensor. */
uint64_t tconv_place_bytes(const struct tconv_place *place);

/* Refuses what belongs to another context than the plan. */
tconv_status tconv_check_context(const tconv_plan *plan, const char *argument, cl_context context,
                                 tconv_error *error);

/* Checks an epilogue against the types of a resolved problem. */
tconv_status tconv_check_epilogue(const tconv_problem *problem, const tconv_geometry *geometry,
                                  const tconv_epilogue *epilogue, tconv_error *error);

/* Checks that a queue is of the plan's context and device. */
tconv_status tconv_check_queue(const tconv_plan *plan, const char *argument, cl_command_queue queue,
                               tconv_error *error);

/* Checks queue and wait list of an enqueueing function. */
tconv_status tconv_check_order(const tconv_plan *plan, cl_command_queue queue, cl_uint wait_count,
                               const cl_event *wait, tconv_error *error);

/* Checks the arguments of an execution, and finds the places of its tensors, which stay empty if
 * the plan's batch is 0. */
tconv_status tconv_bind_arguments(const tconv_plan *plan, const tconv_tensors *given,
                                  struct tconv_bindings *bindings, tconv_error *error);

/* Checks the weights that a filter is packed from, and binds both. If the equivalent filter is
 * packed, it gets a buffer in `bindings`, which tconv_unbind_weights releases. */
tconv_status tconv_bind_weights(tconv_packed_filter *filter, const tconv_tensor *weights,
                                struct tconv_bindings *bindings, tconv_error *error);
void tconv_unbind_weights(const struct tconv_bindings *bindings);

/* Makes the image that stands for those that executions do not have, if the plan's kernels read
 * images (image.c). */
tconv_status tconv_image_make_none(tconv_plan *plan, tconv_error *error);

/* Makes the images of an execution, and binds them. */
struct tconv_images;
tconv_status tconv_images_make(const tconv_plan *plan, struct tconv_bindings *bindings,
                               struct tconv_images **out, tconv_error *error);

/* Releases them when the event's command has ended, and waits for that if the device does not call
 * back. Without an event they are released at once. */
void tconv_images_release_after(struct tconv_images *images, cl_event event);

/* An argument of a kernel. A tensor takes two: where it is, and the number of its first element
 * there. */
struct tconv_argument {
    enum tconv_arg arg;
    cl_uint index;                   /* of the kernel's arguments; a tensor has the next one, too */
    const struct tconv_place *place; /* NULL: no tensor */
    cl_ulong first;
};

/* Lists the arguments of one launch, and returns how many there are. */
int tconv_list_arguments(const tconv_plan *plan, const struct tconv_launch *launch,
                         const struct tconv_bindings *bindings,
                         struct tconv_argument list[TCONV_MAX_ARGS]);

/* Sets the arguments of one launch. If `kernel` is the plan's, plan->lock is held. Returns the
 * first code that is not CL_SUCCESS, and the call that returned it. */
cl_int tconv_set_arguments(const tconv_plan *plan, const struct tconv_launch *launch,
                           cl_kernel kernel, const struct tconv_bindings *bindings,
                           const char **call);

/* The index of the argument that says which share of a launch a kernel computes. -1: it has none.
 */
int tconv_share_index(const tconv_plan *plan, const struct tconv_launch *launch);

/* Makes another kernel object of the kernel `name`. Returns the first code that is not CL_SUCCESS,
 * and the call that returned it. */
cl_int tconv_kernel_again(cl_kernel kernel, const char *name, cl_kernel *made, const char **call);

/* The error of a launch on `bindings`, which may be NULL. */
tconv_status tconv_fail_launch(const char *kernel, const struct tconv_bindings *bindings,
                               cl_int code, const char *call, tconv_error *error);

/* Piece number `piece` of a launch. */
struct tconv_piece tconv_launch_piece(const struct tconv_launch *launch, int piece);

/* Events of tracing: plan_trace.c. */

/* Raises the event that a plan was made, if anybody hears it. */
void tconv_trace_plan(const tconv_plan *plan);

/* Raises the event that a candidate was not taken, if anybody hears it. `candidate` may lack a
 * tile. */
void tconv_trace_passed_over(const tconv_plan *plan, const struct tconv_candidate *candidate,
                             const char *why);

/* Raises the event that a piece of a launch was enqueued or recorded, from event.begin_ns until
 * now; only if tconv_traced is true for its kind. The event has its kind and what OpenCL gave.
 * plan->lock is not held. */
void tconv_trace_launch(const tconv_plan *plan, const struct tconv_launch *launch, int piece,
                        const struct tconv_piece *extents, tconv_trace_event event);

#endif
