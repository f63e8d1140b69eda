/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that are cancelled (pthread_cancel) in calls of the library: each call ends as usual, and
 * later callers find no lock taken. A thread cancels itself first: it would end at the first
 * cancellation point that a call has, where the call did not prevent it. */
#include "portable.h"
#include "setup.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { THREADS = 8, MOST_BYTES = 1 << 24 };
static char folder[200];

/* One thread's work: all that it uses, and how far it came. */
struct work {
    const struct device *device;
    tconv_problem problem;
    const struct tensors *tensors;
    cl_mem data, weights, output;
    float *host_output;
    bool cancelled, finished;
    tconv_status status;
    tconv_error error;
};

/* Nothing between calls may be a cancellation point: the first failure ends the work. */
#define TRY(call)                                                                                  \
    if (w->status == TCONV_OK) w->status = call

static void ignore(void *context, const tconv_stored_search *stored)
{
    (void)context;
    (void)stored;
}

static void use_device(struct work *w)
{
    tconv_error *e = &w->error;
    char *programs = NULL;
    tconv_device *device = NULL;
    cl_platform_id platform;
    cl_device_id id;
    tconv_device_info info = {.struct_size = sizeof info};
    const tconv_stored_search imported = {.candidates = 1,
                                          .model_ms = 1,
                                          .best_ms = 1,
                                          .median_ms = 1,
                                          .algorithm = "reference",
                                          .origin = "elsewhere"};
    int count;
    size_t size = MOST_BYTES;
    TRY(tconv_device_count(&count, e));
    TRY(tconv_device_default(&count, e));
    TRY(tconv_device_find("cpu", &count, e));
    TRY(tconv_device_at(w->device->number, &platform, &id, e));
    TRY(tconv_device_describe(id, &info, e));
    TRY(tconv_device_create(w->device->context, id, &device, e));
    TRY(tconv_device_set_cache(device, folder, 0, e));
    TRY(tconv_device_set_machine(device, "", e));
    if (w->status == TCONV_OK) tconv_device_machine(device, NULL, 0);
    TRY(tconv_device_import_search(device, &w->problem, NULL, &imported, NULL, e));
    TRY(tconv_device_stored_searches(device, ignore, NULL, e));
    tconv_plan *plan = NULL;
    TRY(tconv_plan_create(device, &w->problem, NULL, &plan, e));
    tconv_plan_release(plan);
    if ((programs = malloc(size)) != NULL) {
        TRY(tconv_device_export_programs(device, programs, &size, e));
        TRY(tconv_device_import_programs(device, programs, size, NULL, e));
    }
    free(programs);
    tconv_device_release(device);
}

static void use_plan(struct work *w)
{
    tconv_error *e = &w->error;
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    tconv_plan *plan = NULL;
    tconv_packed_filter *filter = NULL;
    tconv_tensors args = TCONV_TENSORS_INIT;
    cl_event packed = NULL, done = NULL;
    options.algorithm = "reference"; /* without a workspace */
    TRY(tconv_plan_create(w->device->device, &w->problem, &options, &plan, e));
    TRY(tconv_packed_filter_create(plan, NULL, &filter, e));
    TRY(tconv_packed_filter_enqueue_pack(
        filter, w->device->queue, &(tconv_tensor){.memory = w->weights}, 0, NULL, &packed, e));
    args.packed = filter;
    args.data.memory = w->data;
    args.output.memory = w->output;
    TRY(tconv_plan_enqueue(plan, w->device->queue, &args, 1, &packed, &done, e));
    TRY(tconv_wait(done, e));
    if (packed != NULL) clReleaseEvent(packed);
    if (done != NULL) clReleaseEvent(done);
    tconv_packed_filter_release(filter);
    tconv_plan_release(plan);
}

/* A pool of one thread, which is cancelled if the caller is, and then computes or sleeps. */
struct pool {
    void (*task)(void *argument);
    void *argument;
    bool cancelled;
};

static void *call_task(void *user)
{
    const struct pool *pool = user;
    if (pool->cancelled) pthread_cancel(pthread_self());
    pool->task(pool->argument);
    return NULL;
}

static void on_threads(void *user, void (*task)(void *argument), void *argument)
{
    pthread_t thread;
    struct pool *pool = user;
    pool->task = task;
    pool->argument = argument;
    const bool started = pthread_create(&thread, NULL, call_task, pool) == 0;
    task(argument);
    if (started) pthread_join(thread, NULL);
}

static void use_session(struct work *w)
{
    tconv_error *e = &w->error;
    tconv_tensors arrays = TCONV_TENSORS_INIT;
    tconv_device *opened = NULL;
    tconv_layer *layer = NULL;
    arrays.data.host = w->tensors->data;
    arrays.filter.host = w->tensors->filter;
    arrays.output.host = w->host_output;
    TRY(tconv_device_open(w->device->number, &opened, e));
    TRY(compute_once(opened, &w->problem, NULL, &arrays, NULL, e));
    TRY(tconv_layer_create(&opened, 1, TCONV_FILTER_CONSTANT, &layer, e));
    TRY(tconv_layer_run(layer, &w->problem, NULL, &arrays, NULL, e));
    tconv_layer_refresh(layer);
    TRY(tconv_layer_run(layer, &w->problem, NULL, &arrays, NULL, e));
    struct pool pool = {.cancelled = w->cancelled};
    tconv_run beside = TCONV_RUN_INIT, slabs = TCONV_RUN_INIT;
    beside.on_threads = on_threads;
    beside.pool = &pool;
    slabs.memory_limit = w->tensors->geometry.output_bytes;
    for (int i = 0; i < 5; i++) TRY(tconv_layer_run(layer, &w->problem, NULL, &arrays, &beside, e));
    TRY(tconv_layer_run(layer, &w->problem, NULL, &arrays, &slabs, e));
    tconv_layer_release(layer);
    tconv_device_release(opened);
}

static void *work(void *user)
{
    struct work *w = user;
    if (w->cancelled) pthread_cancel(pthread_self());
    use_device(w);
    use_plan(w);
    use_session(w);
    w->finished = true;
    pthread_testcancel();
    return NULL;
}

/* Runs all threads to their end, cancelled or not. */
static void run_threads(const struct setup *s, bool cancelled)
{
    struct work w[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        w[i] = (struct work){.device = s->device,
                             .problem = s->problem,
                             .tensors = &s->tensors,
                             .data = s->data,
                             .weights = s->weights,
                             .output = buffer_of(s->device, NULL, s->output_bytes),
                             .host_output = malloc(s->output_bytes),
                             .cancelled = cancelled};
        assert_non_null(w[i].host_output);
        assert_int_equal(pthread_create(&threads[i], NULL, work, &w[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_true((result == PTHREAD_CANCELED) == cancelled);
        expect_ok(w[i].status, &w[i].error);
        assert_true(w[i].finished);
        assert_memory_equal(w[i].host_output, s->tensors.output, s->output_bytes);
        clReleaseMemObject(w[i].output);
        free(w[i].host_output);
    }
}

static void cancelled_threads_finish_their_calls(void **state)
{
    (void)state;
    if (threads_left_out()) return;
    for (int d = 0; d < device_count; d++) {
        struct setup s;
        const tconv_problem p = plane(1, 3, 4, 8, 3, 2, 1);
        set_up(&s, &devices[d], &p, NULL, false, SMALL_INTEGERS);
        pack(&s);
        enqueue(&s);
        download(&s, 0, NULL);
        compare_with_oracle(&devices[d], &p, NULL, false, &s.tensors);
        alarm(300); /* a lock that nobody gives back */
        run_threads(&s, true);
        run_threads(&s, false);
        alarm(0);
        tear_down(&s);
    }
}

static int set_up_all(void **state)
{
    return !make_temporary_folder("tconv-cancel", folder, sizeof folder) ||
           open_all_devices(state) != 0;
}

static int tear_down_all(void **state)
{
    return !remove_folder(folder) || close_all_devices(state) != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cancelled_threads_finish_their_calls)};
    return cmocka_run_group_tests_name("cancel", tests, set_up_all, tear_down_all);
}
