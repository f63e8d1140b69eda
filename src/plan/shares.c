/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the launches of a kernel plan on several threads. Each takes the next share of a launch, a
 * range of its work-groups, until none is left. So it does not matter how many threads come, and
 * when. All wait before the next launch, which reads what this one wrote. */
#include "plan/shares.h"

#include "base/cancel.h"
#include "base/error.h"
#include "base/inside.h"
#include "base/os.h"
#include "base/process.h"
#include "device/events.h"
#include "device/lane.h"
#include "device/trace.h"
#include "plan/plan_internal.h"

#include <limits.h>
#include <stdlib.h>

/* Microseconds of work from which sleeping helpers are woken; and from which an application's pool
 * is called, whose threads are awake, but wait for each other at the end. */
enum { WAKES = 60, CALLS_POOL = 20 };

/* Microseconds of the shortest share; of a launch, for each thread, up to which its shares have one
 * size; of the last shares of others. Launching a share takes 3. */
enum { LEAST = 4, EVEN = 60, LAST = 10 };

/* How a launch is divided into shares. */
struct division {
    uint64_t groups; /* work-groups of the launch along dimension 0 */
    int shares, threads;
    uint64_t least; /* groups of a share at least; 0: all shares have one size */
};

struct shared_run {
    tconv_plan *plan;
    const struct tconv_launch *launches;
    const struct tconv_bindings *bindings;
    bool packs, traced;
    int count;
    struct division divisions[TCONV_MAX_LAUNCHES];
    atomic_int taken[TCONV_MAX_LAUNCHES], ended[TCONV_MAX_LAUNCHES];
    atomic_int threads; /* that may still begin */
    atomic_bool failed;
    pthread_mutex_t mutex; /* guards the error of the first failure */
    tconv_error *error;
    tconv_status status;
};

/* ---- hands ---- */

static void give_back(tconv_plan *plan, struct tconv_hand *hand)
{
    pthread_mutex_lock(&plan->lock);
    hand->next = plan->hands;
    plan->hands = hand;
    pthread_mutex_unlock(&plan->lock);
}

/* Makes the kernel objects that a hand lacks. */
static cl_int make_kernels(const struct shared_run *run, struct tconv_hand *hand, const char **call)
{
    cl_kernel *own = run->packs ? hand->pack : hand->run;
    const cl_kernel *kernels = run->packs ? run->plan->pack : run->plan->run;
    cl_int code = CL_SUCCESS;
    for (int i = 0; i < run->count && code == CL_SUCCESS; i++)
        if (own[i] == NULL)
            code = tconv_kernel_again(kernels[i], run->launches[i].kernel, &own[i], call);
    return code;
}

/* Makes the queue that a hand lacks; for a trace that hears of launches, one that profiles. */
static cl_int make_queue(const struct shared_run *run, struct tconv_hand *hand, const char **call)
{
    const tconv_device *device = run->plan->device;
    cl_int code;
    if (hand->queue != NULL && (hand->profiles || !run->traced)) return CL_SUCCESS;
    if (hand->queue != NULL) clReleaseCommandQueue(hand->queue);
    hand->profiles = run->traced;
    *call = "clCreateCommandQueue";
    hand->queue = clCreateCommandQueue(tconv_device_context(device), tconv_device_id(device),
                                       hand->profiles ? CL_QUEUE_PROFILING_ENABLE : 0, &code);
    if (code != CL_SUCCESS) hand->queue = NULL;
    return code;
}

static struct tconv_hand *take_hand(const struct shared_run *run, tconv_error *error)
{
    tconv_plan *plan = run->plan;
    pthread_mutex_lock(&plan->lock);
    struct tconv_hand *hand = plan->hands;
    if (hand != NULL) plan->hands = hand->next;
    pthread_mutex_unlock(&plan->lock);
    if (hand == NULL && (hand = calloc(1, sizeof *hand)) == NULL) {
        tconv_fail_memory(error, sizeof *hand, "launching kernels");
        return NULL;
    }
    const char *call = "";
    cl_int code = make_queue(run, hand, &call);
    if (code == CL_SUCCESS) code = make_kernels(run, hand, &call);
    if (code == CL_SUCCESS) return hand;
    give_back(plan, hand);
    tconv_fail_opencl(error, code, call, "launching kernels");
    return NULL;
}

/* ---- shares ---- */

/* Microseconds of work that a plan is expected to be for one thread. */
static double work_of(const tconv_plan *plan, bool packs)
{
    static const double packed = 2e3; /* bytes in a microsecond */
    const struct tconv_machine *machine = &plan->request.machine;
    return packs ? (double)plan->kernel_plan.filter_bytes / packed
                 : 1e3 * machine->units * tconv_machine_ms(machine, plan->candidate.cost);
}

/* The work-groups of the next share where `left` are left: 3/5 of a thread's part of them. So few
 * shares are launched, and the threads end together, even if one began late or was interrupted. */
static uint64_t next_share(const struct division *d, uint64_t left)
{
    const uint64_t share = left * 3 / (5 * (uint64_t)d->threads),
                   larger = share > d->least ? share : d->least;
    return larger < left ? larger : left;
}

/* Divides a launch that is `work` microseconds for one thread. */
static struct division divide(const struct tconv_launch *launch, double work, int threads)
{
    struct division d = {.groups = launch->global[0] / launch->local[0], .threads = threads};
    const double groups = (double)d.groups;
    if (threads > 1 && work > EVEN * threads) {
        d.least = work > LAST * groups ? 1 : (uint64_t)(LAST * groups / work);
        for (uint64_t left = d.groups; left > 0; d.shares++) left -= next_share(&d, left);
    } else {
        double shares = work / LEAST < threads ? work / LEAST : threads;
        if (shares > groups) shares = groups;
        d.shares = shares < 1 ? 1 : (int)shares;
    }
    return d;
}

/* The first work-group of a share. */
static uint64_t share_begin(const struct division *d, int share)
{
    if (d->least == 0) return d->groups * (uint64_t)share / (uint64_t)d->shares;
    uint64_t left = d->groups;
    for (int i = 0; i < share; i++) left -= next_share(d, left);
    return d->groups - left;
}

/* Launches one share, and waits: one work-group computes it (cl/common/common.clh). */
static cl_int launch_share(const struct shared_run *run, const struct tconv_hand *hand, int i,
                           cl_kernel kernel, int share, const char **call)
{
    const struct tconv_launch *launch = &run->launches[i];
    const struct division *d = &run->divisions[i];
    const size_t begin = (size_t)share_begin(d, share), end = (size_t)share_begin(d, share + 1);
    const cl_int2 own = {{(cl_int)begin, (cl_int)end}};
    const uint64_t now = run->traced ? tconv_trace_now() : 0;
    cl_event event = NULL;
    *call = "clSetKernelArg";
    cl_int code =
        clSetKernelArg(kernel, (cl_uint)tconv_share_index(run->plan, launch), sizeof own, &own);
    if (code != CL_SUCCESS) return code;
    *call = "clEnqueueNDRangeKernel";
    code = clEnqueueNDRangeKernel(hand->queue, kernel, 3, NULL, launch->local, launch->local, 0,
                                  NULL, &event);
    if (code != CL_SUCCESS) return code;
    cl_int state = CL_COMPLETE;
    *call = "clFinish";
    code = clFinish(hand->queue);
    if (code == CL_SUCCESS) {
        *call = "clGetEventInfo";
        code = tconv_event_state(event, &state);
    }
    if (code == CL_SUCCESS && state < 0) {
        *call = "the command";
        code = state;
    }
    if (run->traced) {
        struct tconv_launch shared = *launch;
        const struct tconv_piece extents = {
            {begin * launch->local[0]},
            {(end - begin) * launch->local[0], launch->global[1], launch->global[2]}};
        shared.pieces = d->shares;
        tconv_trace_launch(
            run->plan, &shared, share, &extents,
            (tconv_trace_event){
                .kind = TCONV_TRACE_LAUNCH, .begin_ns = now, .queue = hand->queue, .event = event});
    }
    clReleaseEvent(event);
    return code;
}

static void fail(struct shared_run *run, const tconv_error *own)
{
    pthread_mutex_lock(&run->mutex);
    if (run->status == TCONV_OK) run->status = tconv_fail_with(run->error, own);
    pthread_mutex_unlock(&run->mutex);
    atomic_store(&run->failed, true);
}

/* Takes shares of one launch until none is left. `*hand` is taken before the first one. */
static void take_shares(struct shared_run *run, int i, struct tconv_hand **hand)
{
    const struct tconv_launch *launch = &run->launches[i];
    bool bound = false;
    for (;;) {
        const int share = atomic_fetch_add(&run->taken[i], 1);
        if (share >= run->divisions[i].shares) return;
        const char *call = "";
        cl_int code = CL_SUCCESS;
        tconv_error own;
        if (!atomic_load(&run->failed)) {
            if (*hand == NULL && (*hand = take_hand(run, &own)) == NULL) fail(run, &own);
            const cl_kernel kernel = *hand == NULL ? NULL
                                     : run->packs  ? (*hand)->pack[i]
                                                   : (*hand)->run[i];
            if (kernel != NULL && !bound)
                code = tconv_set_arguments(run->plan, launch, kernel, run->bindings, &call);
            bound = true;
            if (kernel != NULL && code == CL_SUCCESS)
                code = launch_share(run, *hand, i, kernel, share, &call);
            if (code != CL_SUCCESS) {
                tconv_fail_launch(launch->kernel, run->bindings, code, call, &own);
                fail(run, &own);
            }
        }
        atomic_fetch_add(&run->ended[i], 1);
    }
}

static void share(void *argument)
{
    TCONV_WITHOUT_CANCELLATION; /* on a thread of the application */
    struct shared_run *run = argument;
    struct tconv_hand *hand = NULL;
    if (atomic_fetch_sub(&run->threads, 1) <= 0) return;
    for (int i = 0; i < run->count; i++) {
        take_shares(run, i, &hand);
        if (i + 1 == run->count) break; /* nothing reads it before all threads have left */
        for (int turn = 1; atomic_load(&run->ended[i]) < run->divisions[i].shares; turn++) {
            tconv_os_pause();
            if (turn % 100 == 0) tconv_os_yield();
        }
    }
    if (hand != NULL) give_back(run->plan, hand);
}

/* True if all launches can be divided into shares. */
static bool can_share(const struct shared_run *run)
{
    for (int i = 0; i < run->count; i++) {
        const struct tconv_launch *launch = &run->launches[i];
        if (tconv_share_index(run->plan, launch) < 0 ||
            launch->global[0] / launch->local[0] > INT_MAX)
            return false;
    }
    return true;
}

/* Enqueues launches that cannot be divided, and waits for them. */
static tconv_status run_undivided(const struct shared_run *run, cl_command_queue queue,
                                  tconv_error *error)
{
    const tconv_plan *plan = run->plan;
    cl_event done = NULL;
    tconv_status status = tconv_enqueue_launches(plan, run->launches,
                                                 run->packs ? plan->pack : plan->run, run->count,
                                                 queue, run->bindings, 0, NULL, &done, error);
    if (status != TCONV_OK) return status;
    status = tconv_wait(done, error);
    clReleaseEvent(done);
    return status;
}

/* Runs the launches behind the commands of `queue`. */
static tconv_status run_launches(tconv_plan *plan, bool packs, cl_command_queue queue,
                                 const struct tconv_pool *pool,
                                 const struct tconv_bindings *bindings, tconv_error *error)
{
    struct shared_run run = {.plan = plan, .bindings = bindings, .packs = packs, .error = error};
    struct tconv_crew *crew = plan->device->crew;
    run.launches = packs ? plan->kernel_plan.pack : plan->kernel_plan.run;
    run.count = packs ? plan->kernel_plan.pack_count : plan->kernel_plan.run_count;
    if (!can_share(&run)) return run_undivided(&run, queue, error);
    run.traced = tconv_traced(plan->device, TCONV_TRACE_LAUNCH);
    const cl_int code = clFinish(queue);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clFinish", "waiting for what a launch reads");
    if (pthread_mutex_init(&run.mutex, NULL) != 0)
        return tconv_fail_memory(error, sizeof run.mutex, "sharing a launch");
    const double work = work_of(plan, packs);
    int most = 1, threads = tconv_crew_threads(crew);
    if (pool != NULL && pool->threads != 0 && pool->threads < (uint64_t)threads)
        threads = (int)pool->threads;
    if (tconv_is_inside()) threads = 1; /* a callback waits for no other thread */
    atomic_init(&run.threads, threads);
    for (int i = 0; i < run.count; i++) {
        run.divisions[i] = divide(&run.launches[i], work, threads);
        if (run.divisions[i].shares > most) most = run.divisions[i].shares;
        atomic_init(&run.taken[i], 0);
        atomic_init(&run.ended[i], 0);
    }
    const bool has_pool = pool != NULL && pool->on_threads != NULL;
    if (most == 1 || (has_pool && work < CALLS_POOL))
        share(&run);
    else if (has_pool) {
        pool->on_threads(pool->pool, share, &run);
        share(&run); /* whatever the pool did: what is left */
    } else {
        tconv_crew_run(crew, work >= WAKES, share, &run);
    }
    pthread_mutex_destroy(&run.mutex);
    return run.status;
}

tconv_status tconv_plan_execute(const tconv_plan *plan, cl_command_queue queue,
                                const struct tconv_pool *pool, const tconv_tensors *tensors,
                                cl_event *done, tconv_error *error)
{
    struct tconv_bindings bindings = {0};
    if (done != NULL) *done = NULL;
    if (plan->device->crew == NULL)
        return tconv_plan_enqueue(plan, queue, tensors, 0, NULL, done, error);
    const tconv_status status = tconv_bind_arguments(plan, tensors, &bindings, error);
    if (status != TCONV_OK || plan->geometry.batch == 0) return status;
    /* cast away const: a plan's hands change, as its kernel objects do */
    return run_launches((tconv_plan *)plan, false, queue, pool, &bindings, error);
}

tconv_status tconv_packed_filter_execute(tconv_packed_filter *filter, cl_command_queue queue,
                                         const struct tconv_pool *pool, const tconv_tensor *weights,
                                         tconv_error *error)
{
    struct tconv_bindings bindings = {0};
    if (filter->plan->device->crew == NULL)
        return tconv_packed_filter_enqueue_pack(filter, queue, weights, 0, NULL, NULL, error);
    tconv_status status = tconv_bind_weights(filter, weights, &bindings, error);
    if (status != TCONV_OK) return status;
    status = run_launches(filter->plan, true, queue, pool, &bindings, error);
    tconv_unbind_weights(&bindings);
    if (status == TCONV_OK) atomic_store(&filter->packed, true);
    return status;
}

tconv_status tconv_plan_run(const tconv_plan *plan, const tconv_tensors *tensors,
                            tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (plan == NULL || tensors == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          plan == NULL ? "plan" : "tensors");
    struct tconv_lane *lane;
    cl_event done = NULL;
    tconv_status status = tconv_process_enter(error);
    if (status == TCONV_OK) status = tconv_lane_take(plan->device, &lane, error);
    if (status != TCONV_OK) return status;
    status = tconv_plan_execute(plan, tconv_lane_queue(lane), NULL, tensors, &done, error);
    if (done != NULL) {
        status = tconv_wait(done, error);
        clReleaseEvent(done);
    }
    tconv_lane_give_back(lane);
    return status;
}

tconv_status tconv_packed_filter_pack(tconv_packed_filter *filter, const tconv_tensor *weights,
                                      tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (filter == NULL || weights == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          filter == NULL ? "filter" : "weights");
    struct tconv_lane *lane;
    tconv_status status = tconv_process_enter(error);
    if (status == TCONV_OK) status = tconv_lane_take(filter->plan->device, &lane, error);
    if (status != TCONV_OK) return status;
    status = tconv_packed_filter_execute(filter, tconv_lane_queue(lane), NULL, weights, error);
    if (status == TCONV_OK) status = tconv_lane_finish(lane, error);
    tconv_lane_give_back(lane);
    return status;
}
