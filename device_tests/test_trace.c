/* SPDX-License-Identifier: Apache-2.0 */
/* What trace.h promises: which events there are and what they say, threads, callbacks that call the
 * library, and that a removed callback is never called again. test_faults.c and test_divided.c have
 * failing calls and divided launches. */
#include "setup.h"
#include "smoke.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { KIND_COUNT = TCONV_TRACE_FALLBACK + 1, TEXT = 1200, RUNS = 50, THREADS = 4 };

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
}

/* What a callback heard: how many events of each kind, and the last one of each. */
struct heard {
    atomic_int count[KIND_COUNT];
    char problem[KIND_COUNT][TEXT], algorithm[KIND_COUNT][TEXT], tile[KIND_COUNT][TEXT];
    char name[KIND_COUNT][TEXT], source[KIND_COUNT][TEXT], message[KIND_COUNT][TEXT];
    tconv_trace_event last[KIND_COUNT];     /* its texts are no longer valid */
    cl_event launch;                        /* of the last launch, retained */
    int compiled;                           /* programs whose source is the compiler */
    int explained;                          /* length of what tconv_plan_explain says of the plan */
    char given[KIND_COUNT][TEXT];           /* the texts of given_problem */
    tconv_plan_options options[KIND_COUNT]; /* given_options */
};

static void copy(char *to, const char *from)
{
    snprintf(to, TEXT, "%s", from == NULL ? "" : from);
}

static void hear(void *context, const tconv_trace_event *event)
{
    struct heard *h = context;
    const int kind = (int)event->kind;
    h->count[kind]++;
    h->last[kind] = *event;
    copy(h->problem[kind], event->problem);
    copy(h->algorithm[kind], event->algorithm);
    copy(h->tile[kind], event->tile);
    copy(h->name[kind], event->name);
    copy(h->source[kind], event->source);
    copy(h->message[kind], event->message);
    h->compiled += event->source != NULL && strcmp(event->source, "compiler") == 0;
    if (event->plan != NULL) h->explained = tconv_plan_explain(event->plan, NULL, 0);
    if (event->given_problem != NULL) {
        tconv_problem_text(event->given_problem, h->given[kind], TEXT);
        h->options[kind] = *event->given_options;
    }
    if (event->kind != TCONV_TRACE_LAUNCH) return;
    if (h->launch != NULL) clReleaseEvent(h->launch);
    h->launch = clRetainEvent(event->event) == CL_SUCCESS ? event->event : NULL;
}

static void count_only(void *context, const tconv_trace_event *event)
{
    struct heard *h = context;
    h->count[event->kind]++;
}

static void set_trace(tconv_device *device, tconv_trace_callback callback, void *context)
{
    tconv_error error;
    expect_ok(tconv_device_set_trace(device, TCONV_TRACE_ALL, callback, context, &error), &error);
}

/* A device object of its own, in the context of a device under test. */
static tconv_device *new_device(const struct device *d)
{
    tconv_device *made;
    tconv_error error;
    expect_ok(tconv_device_create(d->context, id_of(d), &made, &error), &error);
    return made;
}

/* The device under test with another device object and a queue that profiles. */
static struct device traced_device(const struct device *d)
{
    cl_int code;
    struct device own = *d;
    own.device = new_device(d);
    assert_int_equal(tconv_device_set_cache(own.device, NULL, 0, NULL), TCONV_OK);
    own.queue = clCreateCommandQueue(d->context, id_of(d), CL_QUEUE_PROFILING_ENABLE, &code);
    assert_int_equal(code, CL_SUCCESS);
    return own;
}

static void release_device(const struct device *own)
{
    clReleaseCommandQueue(own->queue);
    tconv_device_release(own->device);
}

static void expect_times(const tconv_trace_event *event, const tconv_trace_event *later)
{
    assert_true(event->begin_ns > 0 && event->begin_ns <= event->end_ns);
    assert_true(later == NULL || event->end_ns <= later->begin_ns);
}

static void every_kind_says_what_happened(void **state)
{
    (void)state;
    for (int i = 0; i < device_count; i++) {
        const struct device own = traced_device(&devices[i]);
        static struct heard h;
        memset(&h, 0, sizeof h);
        set_trace(own.device, hear, &h);
        const tconv_problem p = plane(1, 5, 7, 9, 3, 2, 1);
        char text[TEXT], tile[TEXT];
        struct setup s;
        tconv_problem_text(&p, text, sizeof text);

        set_up(&s, &own, &p, "reference", false, SMALL_INTEGERS);
        const tconv_trace_event *plan = &h.last[TCONV_TRACE_PLAN],
                                *program = &h.last[TCONV_TRACE_PROGRAM],
                                *launch = &h.last[TCONV_TRACE_LAUNCH];
        assert_int_equal(h.count[TCONV_TRACE_PLAN], 1);
        assert_true(h.count[TCONV_TRACE_PROGRAM] > 0);
        assert_int_equal(h.count[TCONV_TRACE_LAUNCH], 0);
        assert_ptr_equal(plan->device, own.device);
        assert_ptr_equal(plan->plan, s.plan);
        assert_true(plan->struct_size == sizeof *plan && h.explained > 0);
        assert_string_equal(h.problem[TCONV_TRACE_PLAN], text);
        assert_string_equal(h.algorithm[TCONV_TRACE_PLAN], "reference");
        assert_string_equal(h.source[TCONV_TRACE_PLAN], "name");
        assert_non_null(strstr(h.name[TCONV_TRACE_PROGRAM], "reference"));
        assert_true(h.compiled > 0);
        assert_true(plan->begin_ns <= program->begin_ns && program->end_ns <= plan->end_ns);
        expect_times(program, NULL);

        pack(&s);
        const int packed = h.count[TCONV_TRACE_LAUNCH];
        assert_true(packed > 0);
        expect_times(plan, launch);
        enqueue(&s);
        download(&s, 0, NULL);
        compare_with_oracle(&own, &p, "reference", false, &s.tensors);
        assert_int_equal(h.count[TCONV_TRACE_LAUNCH], packed + 1);
        assert_ptr_equal(launch->plan, s.plan);
        assert_ptr_equal(launch->queue, own.queue);
        assert_ptr_equal(launch->event, h.launch);
        assert_string_equal(h.problem[TCONV_TRACE_LAUNCH], text);
        for (int which = 0; which < 2; which++) {
            const int k = which == 0 ? TCONV_TRACE_PLAN : TCONV_TRACE_LAUNCH;
            assert_string_equal(h.given[k], text);
            assert_string_equal(h.options[k].algorithm, "reference");
            assert_true(h.options[k].epilogue.alpha == 1 && !h.options[k].epilogue.bias);
        }
        assert_string_equal(h.algorithm[TCONV_TRACE_LAUNCH], "reference");
        assert_int_equal(strncmp(h.name[TCONV_TRACE_LAUNCH], "tconv_", 6), 0);
        assert_true(launch->piece == 0 && launch->pieces == 1 && launch->offset[0] == 0);
        assert_true(launch->global[0] * launch->global[1] * launch->global[2] >= 7 * 17 * 17);
        assert_true(launch->local[0] > 0 && launch->global[0] % launch->local[0] == 0);
        cl_ulong start = 0, end = 0;
        assert_int_equal(clGetEventProfilingInfo(h.launch, CL_PROFILING_COMMAND_START, sizeof start,
                                                 &start, NULL),
                         CL_SUCCESS);
        assert_int_equal(
            clGetEventProfilingInfo(h.launch, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL),
            CL_SUCCESS);
        assert_true(start <= end);
        tear_down(&s);

        /* The library's choice; then its programs are there. */
        for (int again = 0; again < 2; again++) {
            set_up(&s, &own, &p, NULL, false, SMALL_INTEGERS);
            assert_int_equal(h.count[TCONV_TRACE_PLAN], 2 + again);
            assert_string_equal(h.source[TCONV_TRACE_PLAN], "model");
            assert_string_equal(h.algorithm[TCONV_TRACE_PLAN], tconv_plan_algorithm(s.plan));
            tconv_plan_tile(s.plan, tile, sizeof tile);
            assert_string_equal(h.tile[TCONV_TRACE_PLAN], tile);
            tear_down(&s);
        }
        assert_string_equal(h.source[TCONV_TRACE_PROGRAM], "memory");
        assert_int_equal(h.count[TCONV_TRACE_PASSED_OVER], 0);

        tconv_device_trace_fallback(own.device, "a runtime", "layer 7", "its rank is 9");
        tconv_device_trace_fallback(NULL, "a runtime", "layer 7", "its rank is 9");
        assert_int_equal(h.count[TCONV_TRACE_FALLBACK], 1);
        assert_string_equal(h.name[TCONV_TRACE_FALLBACK], "a runtime");
        assert_string_equal(h.problem[TCONV_TRACE_FALLBACK], "layer 7");
        assert_string_equal(h.message[TCONV_TRACE_FALLBACK], "its rank is 9");

        if (h.launch != NULL) clReleaseEvent(h.launch);
        release_device(&own);
    }
}

/* The caller's plan and its event, without the caller's done event: nothing is left over, and a
 * plan from before the callback tells its problem. */
static void a_callback_may_come_late_and_go(void **state)
{
    (void)state;
    const struct device own = traced_device(&devices[0]);
    const tconv_problem p = plane(1, 5, 7, 9, 3, 2, 1);
    static struct heard h;
    struct setup s;
    set_up(&s, &own, &p, NULL, false, SMALL_INTEGERS);
    pack(&s);
    set_trace(own.device, hear, &h);
    enqueue(&s);
    const int heard = h.count[TCONV_TRACE_LAUNCH];
    assert_true(heard > 0);
    char text[TEXT];
    tconv_problem_text(&p, text, sizeof text);
    assert_string_equal(h.problem[TCONV_TRACE_LAUNCH], text);
    set_trace(own.device, NULL, NULL);
    enqueue(&s);
    assert_int_equal(h.count[TCONV_TRACE_LAUNCH], heard);
    clReleaseEvent(h.launch);
    tear_down(&s);
    release_device(&own);
}

static void searches_tell_their_source(void **state)
{
    (void)state;
    const struct device own = traced_device(&devices[0]);
    const tconv_problem p = plane(1, 16, 16, 9, 3, 2, 1);
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    tconv_plan *plan;
    tconv_error error;
    static struct heard h;
    set_trace(own.device, hear, &h);
    options.search = TCONV_SEARCH_RENEW;
    options.search_ms = 20;
    expect_ok(tconv_plan_create(own.device, &p, &options, &plan, &error), &error);
    tconv_plan_release(plan);
    assert_int_equal(h.count[TCONV_TRACE_PLAN], 1); /* not those that it timed */
    assert_string_equal(h.source[TCONV_TRACE_PLAN], "measurement");
    assert_true(h.count[TCONV_TRACE_LAUNCH] > 0);
    options.search = TCONV_SEARCH_RECORDS;
    expect_ok(tconv_plan_create(own.device, &p, &options, &plan, &error), &error);
    tconv_plan_release(plan);
    assert_string_equal(h.source[TCONV_TRACE_PLAN], "record");
    clReleaseEvent(h.launch);
    release_device(&own);
}

/* A callback hears what it asked for, and nothing else. */
static void kinds_are_chosen(void **state)
{
    (void)state;
    const struct device own = traced_device(&devices[0]);
    const tconv_problem p = plane(1, 5, 7, 9, 3, 2, 1);
    static struct heard h;
    tconv_error error;
    struct setup s;
    char text[TEXT];
    const uint32_t kinds = TCONV_TRACE_PLAN | TCONV_TRACE_FALLBACK;
    expect_ok(tconv_device_set_trace(own.device, kinds, hear, &h, &error), &error);
    set_up(&s, &own, &p, "reference", false, SMALL_INTEGERS);
    pack(&s);
    tconv_device_trace_fallback(own.device, "test", "", "");
    assert_int_equal(h.count[TCONV_TRACE_PLAN], 1);
    assert_int_equal(h.count[TCONV_TRACE_FALLBACK], 1);
    assert_int_equal(h.count[TCONV_TRACE_PROGRAM] + h.count[TCONV_TRACE_LAUNCH], 0);
    tconv_problem_text(&p, text, sizeof text);
    assert_string_equal(h.problem[TCONV_TRACE_PLAN], text);
    tear_down(&s);
    release_device(&own);
}

static void failures_are_told(void **state)
{
    (void)state;
    static struct heard h;
    tconv_error error;
    expect_error(tconv_device_set_trace(NULL, TCONV_TRACE_ALL, hear, &h, &error),
                 TCONV_ERROR_ARGUMENT, &error, "device is NULL");
    /* A plan that is not made has no event. */
    const struct device own = traced_device(&devices[0]);
    const tconv_problem p = plane(1, 5, 7, 9, 3, 2, 1);
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    tconv_plan *plan = NULL;
    set_trace(own.device, hear, &h);
    options.algorithm = "none of them";
    expect_error(tconv_plan_create(own.device, &p, &options, &plan, &error), TCONV_ERROR_ALGORITHM,
                 &error, "none of them");
    assert_int_equal(h.count[TCONV_TRACE_PLAN], 0);
    release_device(&own);
}

/* ---- threads ---- */

struct runner {
    pthread_t id;
    struct setup *setup;
    cl_command_queue queue;
    cl_mem output;
    bool failed;
};

static void *run_often(void *argument)
{
    struct runner *r = argument;
    tconv_tensors args = r->setup->args;
    args.output.memory = r->output;
    for (int i = 0; i < RUNS && !r->failed; i++)
        r->failed = tconv_plan_enqueue(r->setup->plan, r->queue, &args, 0, NULL, NULL, NULL) !=
                    TCONV_OK;
    r->failed = clFinish(r->queue) != CL_SUCCESS || r->failed;
    return NULL;
}

/* Threads share a plan. Each launch is heard once, and has the arguments of its own thread. */
static void each_launch_of_each_thread_is_heard_once(void **state)
{
    (void)state;
    if (threads_left_out()) return;
    const struct device own = traced_device(&devices[0]);
    const tconv_problem p = plane(1, 5, 7, 9, 3, 2, 1);
    static struct heard h;
    struct setup s;
    struct runner runners[THREADS];
    set_up(&s, &own, &p, "reference", false, SMALL_INTEGERS);
    pack(&s);
    assert_int_equal(clFinish(own.queue), CL_SUCCESS); /* other queues read the filter */
    set_trace(own.device, count_only, &h);
    for (int t = 0; t < THREADS; t++) {
        cl_int code;
        runners[t] = (struct runner){.setup = &s, .output = buffer_of(&own, NULL, s.output_bytes)};
        runners[t].queue = clCreateCommandQueue(own.context, id_of(&own), 0, &code);
        assert_int_equal(code, CL_SUCCESS);
        assert_int_equal(pthread_create(&runners[t].id, NULL, run_often, &runners[t]), 0);
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(runners[t].id, NULL);
        assert_false(runners[t].failed);
        assert_int_equal(clEnqueueReadBuffer(runners[t].queue, runners[t].output, CL_TRUE, 0,
                                             s.output_bytes, s.tensors.output, 0, NULL, NULL),
                         CL_SUCCESS);
        compare_with_oracle(&own, &p, "reference", false, &s.tensors);
        clReleaseCommandQueue(runners[t].queue);
        clReleaseMemObject(runners[t].output);
    }
    assert_int_equal(h.count[TCONV_TRACE_LAUNCH], THREADS * RUNS);
    tear_down(&s);
    release_device(&own);
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Prints what docs/api.md says: the host's time of an enqueue, behind an event that holds the queue
 * back, without and with a callback in turn. */
static void what_an_enqueue_costs(void **state)
{
    (void)state;
    enum { ROUNDS = 40 };
    const struct device own = traced_device(&devices[0]);
    const tconv_problem p = plane(1, 5, 7, 9, 3, 2, 1);
    static struct heard h;
    static double us[2][ROUNDS];
    struct setup s;
    set_up(&s, &own, &p, NULL, false, SMALL_INTEGERS);
    pack(&s);
    for (int i = 0; i < 2 * ROUNDS; i++) {
        cl_event hold = new_gate(&own);
        assert_int_equal(clEnqueueMarkerWithWaitList(own.queue, 1, &hold, NULL), CL_SUCCESS);
        set_trace(own.device, i % 2 == 0 ? NULL : count_only, &h);
        const double begin = now_us();
        for (int n = 0; n < RUNS; n++)
            assert_int_equal(tconv_plan_enqueue(s.plan, own.queue, &s.args, 0, NULL, NULL, NULL),
                             TCONV_OK);
        us[i % 2][i / 2] = (now_us() - begin) / RUNS;
        clSetUserEventStatus(hold, CL_COMPLETE);
        clFinish(own.queue);
        clReleaseEvent(hold);
    }
    for (int i = 0; i < 2; i++) qsort(us[i], ROUNDS, sizeof *us[i], by_value);
    print_message("an enqueue takes %.1f us, with a callback %.1f us (medians of %d)\n",
                  us[0][ROUNDS / 2], us[1][ROUNDS / 2], (int)ROUNDS);
    assert_int_equal(h.count[TCONV_TRACE_LAUNCH] % (ROUNDS * RUNS), 0);
    download(&s, 0, NULL);
    compare_with_oracle(&own, &p, NULL, false, &s.tensors);
    tear_down(&s);
    release_device(&own);
}

/* ---- callbacks that call the library ---- */

struct caller {
    tconv_device *opened;
    tconv_layer *layer;
    tconv_problem problem;
    tconv_tensors arrays;
    int depth, deepest, calls, failures;
};

/* A pool whose threads a callback must not wait for. */
static void not_asked(void *pool, void (*task)(void *argument), void *argument)
{
    struct caller *c = pool;
    c->failures++;
    task(argument);
}

/* Runs the layer whose run raised the event, makes a plan, and sets itself again. */
static void call_back(void *context, const tconv_trace_event *event)
{
    struct caller *c = context;
    tconv_plan *plan = NULL;
    tconv_device *device = c->opened;
    c->calls++;
    if (++c->depth > c->deepest) c->deepest = c->depth;
    c->failures += event->device != device;
    tconv_run beside = TCONV_RUN_INIT;
    beside.on_threads = not_asked;
    beside.pool = c;
    beside.threads = 2;
    c->failures += tconv_layer_run(c->layer, &c->problem, NULL, &c->arrays, &beside, NULL) !=
                   TCONV_OK;
    c->failures += tconv_plan_create(device, &c->problem, NULL, &plan, NULL) != TCONV_OK;
    c->failures += tconv_device_set_trace(device, TCONV_TRACE_ALL, call_back, c, NULL) != TCONV_OK;
    tconv_device_trace_fallback(device, "test", "", ""); /* not heard */
    tconv_plan_release(plan);
    c->depth--;
}

static void a_callback_may_call_the_library(void **state)
{
    (void)state;
    for (int i = 0; i < device_count; i++) {
        struct caller c = {.problem = plane(1, 5, 7, 9, 3, 2, 1), .arrays = TCONV_TENSORS_INIT};
        tconv_error error;
        struct tensors t;
        make_tensors(&c.problem, SMALL_INTEGERS, 4, &t);
        float *other = malloc((size_t)t.geometry.output_bytes);
        assert_non_null(other);
        c.arrays.data.host = t.data;
        c.arrays.filter.host = t.filter;
        c.arrays.output.host = other;
        expect_ok(tconv_device_open(devices[i].number, &c.opened, &error), &error);
        expect_ok(tconv_layer_create(&c.opened, 1, TCONV_FILTER_CONSTANT, &c.layer, &error),
                  &error);
        set_trace(c.opened, call_back, &c);
        tconv_tensors arrays = c.arrays;
        arrays.output.host = t.output;
        for (int run = 0; run < 3; run++)
            expect_ok(tconv_layer_run(c.layer, &c.problem, NULL, &arrays, NULL, &error), &error);
        compare_with_oracle(&devices[i], &c.problem, NULL, false, &t);
        assert_memory_equal(other, t.output, (size_t)t.geometry.output_bytes);
        assert_int_equal(c.failures, 0);
        assert_int_equal(c.deepest, 1);
        assert_true(c.calls >= 5); /* a program, a plan, three runs */
        tconv_layer_counts counts = TCONV_LAYER_COUNTS_INIT;
        expect_ok(tconv_layer_count(c.layer, &counts, &error), &error);
        assert_int_equal(counts.plans_kept, 1);
        set_trace(c.opened, NULL, NULL);
        tconv_layer_release(c.layer);
        tconv_device_release(c.opened);
        free(other);
        free_tensors(&t);
    }
}

/* ---- locks that callbacks meet ---- */

enum { LAYERS = 2 };

/* Two layers, each made by a thread of its own, whose callback runs the other one. */
static struct crossing {
    tconv_layer *layer[LAYERS];
    tconv_problem problem[LAYERS];
    tconv_tensors arrays;
    size_t output_bytes;
    atomic_int inside, failures, done;
} crossing;
static _Thread_local int own_layer = -1;

static void run_one(int layer, int problem)
{
    tconv_tensors arrays = crossing.arrays;
    void *output = malloc(crossing.output_bytes);
    arrays.output.host = output;
    if (output == NULL || tconv_layer_run(crossing.layer[layer], &crossing.problem[problem], NULL,
                                          &arrays, NULL, NULL) != TCONV_OK)
        atomic_fetch_add(&crossing.failures, 1);
    free(output);
}

/* Both threads are here before one goes on. */
static void run_the_other_layer(void *context, const tconv_trace_event *event)
{
    (void)context;
    if (own_layer < 0 || event->kind != TCONV_TRACE_PLAN) return;
    atomic_fetch_add(&crossing.inside, 1);
    for (int ms = 0; ms < 10000 && atomic_load(&crossing.inside) < LAYERS; ms++) sleep_ms(1);
    run_one(1 - own_layer, own_layer);
}

static void *run_own_layer(void *argument)
{
    own_layer = *(const int *)argument;
    run_one(own_layer, own_layer);
    atomic_fetch_add(&crossing.done, 1);
    return NULL;
}

static void callbacks_do_not_wait_for_each_other(void **state)
{
    (void)state;
    static const int numbers[LAYERS] = {0, 1};
    pthread_t threads[LAYERS];
    tconv_device *opened;
    tconv_error error;
    struct tensors t;
    if (threads_left_out()) return;
    for (int i = 0; i < LAYERS; i++) crossing.problem[i] = plane(1, 5, 7, 8 + i, 3, 2, 1);
    make_tensors(&crossing.problem[LAYERS - 1], SMALL_INTEGERS, 4, &t);
    crossing.arrays = (tconv_tensors)TCONV_TENSORS_INIT;
    crossing.arrays.data.host = t.data;
    crossing.arrays.filter.host = t.filter;
    crossing.output_bytes = (size_t)t.geometry.output_bytes;
    expect_ok(tconv_device_open(devices[0].number, &opened, &error), &error);
    for (int i = 0; i < LAYERS; i++)
        expect_ok(tconv_layer_create(&opened, 1, TCONV_FILTER_CONSTANT, &crossing.layer[i], &error),
                  &error);
    set_trace(opened, run_the_other_layer, NULL);
    for (int i = 0; i < LAYERS; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, run_own_layer, (void *)(uintptr_t)&numbers[i]), 0);
    for (int ms = 0; ms < 60000 && atomic_load(&crossing.done) < LAYERS; ms++) sleep_ms(1);
    if (atomic_load(&crossing.done) < LAYERS) failed("two callbacks wait for each other");
    for (int i = 0; i < LAYERS; i++) pthread_join(threads[i], NULL);
    set_trace(opened, NULL, NULL);
    assert_int_equal(crossing.inside, LAYERS);
    assert_int_equal(crossing.failures, 0);
    for (int i = 0; i < LAYERS; i++) tconv_layer_release(crossing.layer[i]);
    tconv_device_release(opened);
    free_tensors(&t);
}

static void refresh_once(void *context, const tconv_trace_event *event)
{
    tconv_layer **layer = context;
    if (event->kind != TCONV_TRACE_LAUNCH) return;
    tconv_layer_refresh(*layer);
    *layer = NULL;
}

/* The filter that is being packed does not survive the refresh. */
static void a_callback_may_refresh_the_layer(void **state)
{
    (void)state;
    tconv_device *opened;
    tconv_layer *layer, *refreshed;
    tconv_error error;
    struct tensors t;
    const tconv_problem p = plane(1, 5, 7, 9, 3, 2, 1);
    make_tensors(&p, SMALL_INTEGERS, 4, &t);
    tconv_tensors arrays = TCONV_TENSORS_INIT;
    arrays.data.host = t.data;
    arrays.filter.host = t.filter;
    arrays.output.host = t.output;
    expect_ok(tconv_device_open(devices[0].number, &opened, &error), &error);
    expect_ok(tconv_layer_create(&opened, 1, TCONV_FILTER_CONSTANT, &layer, &error), &error);
    refreshed = layer;
    set_trace(opened, refresh_once, &refreshed);
    for (int run = 0; run < 3; run++)
        expect_ok(tconv_layer_run(layer, &p, NULL, &arrays, NULL, &error), &error);
    set_trace(opened, NULL, NULL);
    tconv_layer_counts counts = TCONV_LAYER_COUNTS_INIT;
    expect_ok(tconv_layer_count(layer, &counts, &error), &error);
    assert_int_equal(counts.filters_packed, 2);
    compare_with_oracle(&devices[0], &p, NULL, false, &t);
    tconv_layer_release(layer);
    tconv_device_release(opened);
    free_tensors(&t);
}

/* ---- removal ---- */

struct slow {
    tconv_device *device;
    atomic_int state; /* 1: in the callback, 2: it returns */
};

static void be_slow(void *context, const tconv_trace_event *event)
{
    struct slow *slow = context;
    (void)event;
    atomic_store(&slow->state, 1);
    sleep_ms(200);
    atomic_store(&slow->state, 2);
}

static void *raise_one(void *argument)
{
    const struct slow *slow = argument;
    tconv_device_trace_fallback(slow->device, "test", "", "");
    return NULL;
}

static void remove_oneself(void *context, const tconv_trace_event *event)
{
    atomic_int *calls = context;
    ++*calls;
    tconv_device_set_trace(event->device, TCONV_TRACE_ALL, NULL, NULL, NULL);
}

static void removal_waits_for_running_calls(void **state)
{
    (void)state;
    tconv_device *device = new_device(&devices[0]);
    atomic_int calls = 0;
    set_trace(device, remove_oneself, &calls);
    tconv_device_trace_fallback(device, "test", "", "");
    tconv_device_trace_fallback(device, "test", "", "");
    assert_int_equal(calls, 1);
    static struct heard h;
    for (int replaced = 0; replaced < 2 && !threads_left_out(); replaced++) {
        struct slow slow = {.device = device};
        pthread_t thread;
        set_trace(device, be_slow, &slow);
        assert_int_equal(pthread_create(&thread, NULL, raise_one, &slow), 0);
        while (atomic_load(&slow.state) == 0) sleep_ms(1);
        set_trace(device, replaced ? count_only : NULL, &h);
        assert_int_equal(atomic_load(&slow.state), 2);
        tconv_device_trace_fallback(device, "test", "", "");
        assert_int_equal(h.count[TCONV_TRACE_FALLBACK], replaced);
        pthread_join(thread, NULL);
    }
    tconv_device_release(device);
}

int main(void)
{
    struct CMUnitTest tests[] = {
        smoke_test(every_kind_says_what_happened),
        cmocka_unit_test(a_callback_may_come_late_and_go),
        cmocka_unit_test(searches_tell_their_source),
        cmocka_unit_test(kinds_are_chosen),
        cmocka_unit_test(failures_are_told),
        cmocka_unit_test(each_launch_of_each_thread_is_heard_once),
        cmocka_unit_test(what_an_enqueue_costs),
        cmocka_unit_test(a_callback_may_call_the_library),
        cmocka_unit_test(callbacks_do_not_wait_for_each_other),
        cmocka_unit_test(a_callback_may_refresh_the_layer),
        cmocka_unit_test(removal_waits_for_running_calls),
    };
    return run_smoke_or_all("trace", tests, open_all_devices, close_all_devices);
}
