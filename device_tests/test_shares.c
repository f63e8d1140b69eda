/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the device, and pools of the application, share the launches of random layers: the
 * bits are those of the launches enqueued whole on one thread.
 *
 *   TCONV_CL_TEST_LAUNCHES   how many launches are shared; without it 2000 in whole runs, else 200
 *
 * The device is PoCL's for the processor, with one whose kernels run in the thread that enqueues
 * them behind it. Where there is none, nothing is tested. */
#include "random_problem.h"
#include "setup.h"
#include "smoke.h"

#include "device/device.h" /* for what a device does, which the API does not show */

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    MOST_THREADS = 8, /* of a device */
    CALLERS = 8,      /* threads of the application */
    LAYERS = 48,
    LAUNCHES = 2000,
    GUARD = 256, /* bytes around an output */
    OPENED = 20,
    FEW_OPENED = 4,
    FEW_THREADS = 4, /* kinds of devices, where compiling takes long */
    EACH = 4,        /* one of so many algorithms there */
};
static const double most_work = 2e6; /* multiply-adds */

/* Devices with 1 to 8 threads; [0] is the one that tests compare with. */
static const int threads_of[MOST_THREADS] = {1, 2, 3, 8, 4, 5, 6, 7};
static struct device opened[MOST_THREADS];
static int devices_opened;
static int number = -1; /* of the device */

static long launches_wanted(void)
{
    const char *text = getenv("TCONV_CL_TEST_LAUNCHES");
    if (text != NULL && text[0] != '\0') return atol(text);
    return sample_is_whole() ? LAUNCHES : LAUNCHES / 10;
}

/* ---- layers ---- */

/* A layer on one device. */
struct copy {
    tconv_plan *plan;
    tconv_packed_filter *filter;
    tconv_tensors args; /* without output and workspace */
    cl_mem weights;
};

/* A random layer, with what it gives if it is enqueued whole. */
struct layer {
    char algorithm[CANDIDATE_NAME]; /* with its tile, whose choice depends on the threads */
    tconv_problem problem;
    struct tensors tensors;
    struct copy copy[MOST_THREADS];
    size_t output_bytes, workspace_bytes, filter_bytes, launches;
    unsigned char *output, *filter, *before;
};

static struct layer layers[LAYERS];
static int layer_count;

/* False if the device has no such tile. */
static bool make_copy(struct layer *l, const struct device *device, struct copy *c)
{
    const struct tensors *t = &l->tensors;
    const tconv_epilogue *e = &t->epilogue;
    const tconv_problem *p = &l->problem;
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    tconv_error error;
    options.algorithm = l->algorithm;
    options.math = TCONV_MATH_FAST;
    options.epilogue = *e;
    const size_t numbers = t->channels * tconv_type_size(tconv_scale_type(p->data_type));
    const tconv_status status = tconv_plan_create(device->device, p, &options, &c->plan, &error);
    if (status == TCONV_ERROR_ALGORITHM) return false;
    expect_ok(status, &error);
    expect_ok(tconv_packed_filter_create(c->plan, NULL, &c->filter, &error), &error);
    c->weights = buffer_of(device, t->filter, (size_t)t->geometry.filter_bytes);
    c->args = (tconv_tensors)TCONV_TENSORS_INIT;
    c->args.packed = c->filter;
    c->args.data.memory = buffer_of(device, t->data, (size_t)t->geometry.data_bytes);
    if (e->bias)
        c->args.bias.memory =
            buffer_of(device, t->bias,
                      t->channels * tconv_type_size(tconv_bias_type(e, t->geometry.output_type)));
    if (e->scale) c->args.scale.memory = buffer_of(device, t->scale, numbers);
    if (tconv_activation_has_slope(e->activation))
        c->args.slope.memory = buffer_of(device, t->slope, numbers);
    if (t->slope2 != NULL) c->args.slope2.memory = buffer_of(device, t->slope2, numbers);
    if (e->residual)
        c->args.residual.memory =
            buffer_of(device, t->residual, (size_t)t->geometry.residual_bytes);
    return true;
}

static void release_copy(struct copy *c)
{
    tconv_packed_filter_release(c->filter);
    tconv_plan_release(c->plan);
    const cl_mem buffers[] = {
        c->weights,           c->args.data.memory,   c->args.bias.memory,    c->args.scale.memory,
        c->args.slope.memory, c->args.slope2.memory, c->args.residual.memory};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (buffers[i] != NULL) clReleaseMemObject(buffers[i]);
}

static tconv_epilogue random_epilogue(unsigned *seed, tconv_type output)
{
    tconv_epilogue e = TCONV_EPILOGUE_INIT;
    e.bias = random_between(seed, 0, 1) != 0;
    e.residual = random_between(seed, 0, 2) == 0;
    if (!tconv_type_is_floating(output)) return e; /* integers take no more */
    e.scale = random_between(seed, 0, 2) == 0;
    if (random_between(seed, 0, 2) == 0) e.activation = TCONV_ACTIVATION_RELU;
    if (random_between(seed, 0, 5) == 0) e.beta = 0.5F;
    return e;
}

/* ---- one run ---- */

/* What a thread has on one device. cmocka's assertions belong to the main thread: others keep a
 * sentence for it. */
struct caller {
    pthread_t thread;
    cl_command_queue queue[MOST_THREADS];
    const struct layer *only; /* NULL: any */
    unsigned seed;
    long launches, wanted;
    char wrong[2600];
};

static void new_caller(struct caller *c, unsigned seed, long wanted)
{
    cl_int code;
    *c = (struct caller){.seed = seed, .wanted = wanted};
    for (int i = 0; i < devices_opened; i++) {
        c->queue[i] = clCreateCommandQueue(opened[i].context, id_of(&opened[i]), 0, &code);
        assert_int_equal(code, CL_SUCCESS);
    }
}

static void end_caller(struct caller *c)
{
    for (int i = 0; i < devices_opened; i++) clReleaseCommandQueue(c->queue[i]);
    if (c->wrong[0] != '\0') failed("%s", c->wrong);
}

static bool complain(struct caller *c, const struct layer *l, int threads, const char *what)
{
    char text[1000];
    tconv_problem_text(&l->problem, text, sizeof text);
    snprintf(c->wrong, sizeof c->wrong, "%d threads: %s: tconv-cl check --algorithm \"%s\" %s",
             threads, what, l->algorithm, text);
    return false;
}

/* Bytes that are a NaN in every floating-point type. */
static void fill_with_nans(unsigned char *bytes, size_t count)
{
    static const unsigned char bits[] = {0xf5, 0x7f, 0xf8, 0x7f};
    for (size_t i = 0; i < count; i++) bytes[i] = bits[i % sizeof bits];
}

/* Buffers for one run, the output between guards. */
struct room {
    cl_mem output, workspace;
    unsigned char *image, *result;
    size_t bytes;
};

static bool make_room(const struct layer *l, const struct device *device, struct room *r)
{
    cl_int code;
    r->bytes = l->output_bytes + 2 * GUARD;
    r->image = malloc(r->bytes);
    r->result = malloc(r->bytes);
    if (r->image == NULL || r->result == NULL) return false;
    fill_with_nans(r->image, r->bytes);
    if (l->before != NULL) memcpy(r->image + GUARD, l->before, l->output_bytes);
    r->output = clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, r->bytes,
                               r->image, &code);
    if (code != CL_SUCCESS) return false;
    r->workspace =
        clCreateBuffer(device->context, CL_MEM_READ_WRITE, l->workspace_bytes + 1, NULL, &code);
    return code == CL_SUCCESS;
}

static void free_room(struct room *r)
{
    if (r->output != NULL) clReleaseMemObject(r->output);
    if (r->workspace != NULL) clReleaseMemObject(r->workspace);
    free(r->image);
    free(r->result);
}

/* Reads the output, whose guards must be untouched. */
static bool read_room(struct caller *c, const struct layer *l, int d, struct room *r)
{
    if (clEnqueueReadBuffer(c->queue[d], r->output, CL_TRUE, 0, r->bytes, r->result, 0, NULL,
                            NULL) != CL_SUCCESS)
        return complain(c, l, threads_of[d], "clEnqueueReadBuffer fails");
    if (memcmp(r->image, r->result, GUARD) != 0 ||
        memcmp(r->image + r->bytes - GUARD, r->result + r->bytes - GUARD, GUARD) != 0)
        return complain(c, l, threads_of[d], "bytes around the output were written");
    return true;
}

/* Runs a layer on the device with d + 1 threads; enqueued, or else shared. */
static bool run_layer(struct caller *c, const struct layer *l, int d, bool enqueued, struct room *r)
{
    const struct copy *copy = &l->copy[d];
    tconv_tensors args = copy->args;
    tconv_error error;
    if (!make_room(l, &opened[d], r)) return complain(c, l, threads_of[d], "no memory");
    args.output.memory = r->output;
    args.output.offset = GUARD;
    args.workspace.memory = r->workspace;
    const tconv_status status =
        enqueued ? tconv_plan_enqueue(copy->plan, c->queue[d], &args, 0, NULL, NULL, &error)
                 : tconv_plan_run(copy->plan, &args, &error);
    if (status != TCONV_OK) return complain(c, l, threads_of[d], error.message);
    return read_room(c, l, d, r);
}

static bool run_and_compare(struct caller *c, const struct layer *l, int d)
{
    struct room r = {0};
    bool right = run_layer(c, l, d, false, &r);
    if (right && memcmp(r.result + GUARD, l->output, l->output_bytes) != 0)
        right = complain(c, l, threads_of[d], "other bits than launches that are enqueued whole");
    free_room(&r);
    c->launches += (long)l->launches;
    return right;
}

/* Packs on the device with d + 1 threads, into memory of this call alone. */
static bool pack_and_compare(struct caller *c, const struct layer *l, int d)
{
    cl_int code;
    tconv_error error;
    tconv_packed_filter *filter = NULL;
    tconv_tensor place = {0};
    unsigned char *bytes = malloc(l->filter_bytes + 1);
    bool right = bytes != NULL;
    fill_with_nans(bytes, right ? l->filter_bytes : 0);
    place.memory = clCreateBuffer(opened[d].context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                  l->filter_bytes + 1, bytes, &code);
    if (code != CL_SUCCESS ||
        tconv_packed_filter_create(l->copy[d].plan, &place, &filter, &error) != TCONV_OK ||
        tconv_packed_filter_pack(filter, &(tconv_tensor){.memory = l->copy[d].weights}, &error) !=
            TCONV_OK ||
        clEnqueueReadBuffer(c->queue[d], place.memory, CL_TRUE, 0, l->filter_bytes, bytes, 0, NULL,
                            NULL) != CL_SUCCESS)
        right = complain(c, l, threads_of[d], error.message);
    if (right && memcmp(bytes, l->filter, l->filter_bytes) != 0)
        right = complain(c, l, threads_of[d], "another packed filter than launches enqueued whole");
    tconv_packed_filter_release(filter);
    clReleaseMemObject(place.memory);
    free(bytes);
    c->launches++;
    return right;
}

static void *run_random_layers(void *user)
{
    struct caller *c = user;
    while (c->wrong[0] == '\0' && c->launches < c->wanted) {
        const struct layer *l =
            c->only != NULL ? c->only : &layers[random_between(&c->seed, 0, layer_count - 1)];
        const int d = random_between(&c->seed, 0, devices_opened - 1);
        (void)(random_between(&c->seed, 0, 7) == 0 ? pack_and_compare(c, l, d)
                                                   : run_and_compare(c, l, d));
    }
    return NULL;
}

/* ---- set-up ---- */

/* What the layer gives if its launches are enqueued. */
static void expect_of(struct layer *l)
{
    struct caller c;
    struct room r = {0};
    tconv_error error;
    const struct copy *first = &l->copy[0];
    new_caller(&c, 1, 0);
    cl_int code;
    tconv_packed_filter *filter = NULL;
    tconv_tensor place = {0};
    l->filter_bytes = (size_t)tconv_plan_filter_bytes(first->plan);
    l->filter = malloc(l->filter_bytes + 1);
    assert_non_null(l->filter);
    fill_with_nans(l->filter, l->filter_bytes);
    place.memory = clCreateBuffer(opened[0].context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                  l->filter_bytes + 1, l->filter, &code);
    assert_int_equal(code, CL_SUCCESS);
    expect_ok(tconv_packed_filter_create(first->plan, &place, &filter, &error), &error);
    expect_ok(tconv_packed_filter_enqueue_pack(filter, c.queue[0],
                                               &(tconv_tensor){.memory = first->weights}, 0, NULL,
                                               NULL, &error),
              &error);
    assert_int_equal(clEnqueueReadBuffer(c.queue[0], place.memory, CL_TRUE, 0, l->filter_bytes,
                                         l->filter, 0, NULL, NULL),
                     CL_SUCCESS);
    tconv_packed_filter_release(filter);
    clReleaseMemObject(place.memory);
    for (int d = 0; d < devices_opened; d++)
        expect_ok(tconv_packed_filter_pack(l->copy[d].filter,
                                           &(tconv_tensor){.memory = l->copy[d].weights}, &error),
                  &error);
    if (run_layer(&c, l, 0, true, &r)) {
        l->output = malloc(l->output_bytes);
        assert_non_null(l->output);
        memcpy(l->output, r.result + GUARD, l->output_bytes);
    }
    free_room(&r);
    end_caller(&c);
    void *own = l->tensors.output;
    l->tensors.output = (void *)l->output;
    l->tensors.error_factor = tconv_plan_error_factor(first->plan);
    compare_with_oracle(&opened[0], &l->problem, l->algorithm, l->tensors.epilogue.bias,
                        &l->tensors);
    l->tensors.output = own;
}

static void free_layer(struct layer *l)
{
    for (int d = 0; d < devices_opened; d++) release_copy(&l->copy[d]);
    free(l->output);
    free(l->filter);
    free_tensors(&l->tensors);
}

/* A layer that the algorithm takes; false: none was drawn that all devices take. */
static bool make_layer(struct layer *l, const char *algorithm, unsigned *seed)
{
    char names[MOST_CANDIDATES][CANDIDATE_NAME];
    *l = (struct layer){.launches = 1};
    if (!random_problem_for(&opened[0], algorithm, most_work, seed, &l->problem)) return false;
    struct tensors *t = &l->tensors;
    make_tensors(&l->problem, REAL_NUMBERS, *seed, t);
    const tconv_epilogue e = random_epilogue(seed, t->geometry.output_type);
    make_epilogue(&l->problem, &e, *seed, t);
    t->epilogue.bias = e.bias;
    t->math = TCONV_MATH_FAST;
    const int candidates = candidate_names(&opened[0], &l->problem, algorithm, e.bias, t, names);
    assert_true(candidates > 0);
    memcpy(l->algorithm, names[random_between(seed, 0, candidates - 1)], CANDIDATE_NAME);
    bool made = true;
    for (int d = 0; d < devices_opened && made; d++) made = make_copy(l, &opened[d], &l->copy[d]);
    if (!made) {
        free_layer(l);
        return false;
    }
    l->output_bytes = (size_t)t->geometry.output_bytes;
    l->workspace_bytes = (size_t)tconv_plan_workspace_bytes(l->copy[0].plan);
    l->before = e.beta != 0 ? t->before : NULL;
    expect_of(l);
    return true;
}

static void open_with(int threads, struct device *device)
{
    char text[16];
    tconv_error error;
    cl_int code;
    snprintf(text, sizeof text, "%d", threads);
    assert_int_equal(setenv("TCONV_CL_THREADS", text, 1), 0);
    *device = (struct device){.number = number};
    expect_ok(tconv_device_open(number, &device->device, &error), &error);
    device->info = tconv_device_properties(device->device);
    device->context = tconv_device_context(device->device);
    device->queue =
        clCreateCommandQueue(device->context, tconv_device_id(device->device), 0, &code);
    assert_int_equal(code, CL_SUCCESS);
    assert_int_equal(unsetenv("TCONV_CL_THREADS"), 0);
}

/* The first device with threads; -1: none. */
static int find_device(void)
{
    tconv_error error;
    int count;
    expect_ok(tconv_device_count(&count, &error), &error);
    for (int i = 0; i < count; i++) {
        tconv_device *device;
        expect_ok(tconv_device_open(i, &device, &error), &error);
        const int threads = tconv_device_threads(device);
        tconv_device_release(device);
        if (threads > 0) return i;
    }
    return -1;
}

static int set_up_layers(void **state)
{
    (void)state;
    number = find_device();
    if (number < 0) {
        print_message("skipped: no device whose launches threads can share\n");
        return 0;
    }
    const bool few = smoke_suffices() && getenv("TCONV_CL_TEST_LAUNCHES") == NULL;
    devices_opened = few ? FEW_THREADS : MOST_THREADS;
    for (int i = 0; i < devices_opened; i++) open_with(threads_of[i], &opened[i]);
    unsigned seed = sample_seed();
    const int each = sample_is_whole() ? 3 : 1;
    for (int a = few ? (int)(seed % EACH) : 0; tconv_algorithm_name(a) != NULL; a += few ? EACH : 1)
        for (int i = 0; i < each && layer_count < LAYERS; i++)
            if (make_layer(&layers[layer_count], tconv_algorithm_name(a), &seed)) layer_count++;
    print_message("device %d (%s, %s): %d layers\n", number, opened[0].info->name,
                  opened[0].info->platform, layer_count);
    return 0;
}

static int tear_down_layers(void **state)
{
    (void)state;
    for (int i = 0; i < layer_count; i++) free_layer(&layers[i]);
    for (int i = 0; number >= 0 && i < devices_opened; i++) {
        clReleaseCommandQueue(opened[i].queue);
        tconv_device_release(opened[i].device);
    }
    return 0;
}

/* ---- the tests ---- */

/* Callers run at the same time, all of them `only`, or any layer. Returns the launches. */
static long run_callers(int count, const struct layer *only, long wanted, unsigned seed)
{
    struct caller callers[CALLERS];
    long launches = 0;
    for (int i = 0; i < count; i++) {
        new_caller(&callers[i], seed + 77 * (unsigned)i, wanted / count);
        callers[i].only = only;
    }
    for (int i = 0; i < count; i++)
        assert_int_equal(pthread_create(&callers[i].thread, NULL, run_random_layers, &callers[i]),
                         0);
    for (int i = 0; i < count; i++) assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
    for (int i = 0; i < count; i++) launches += callers[i].launches;
    for (int i = 0; i < count; i++) end_caller(&callers[i]);
    return launches;
}

static void one_caller(void **state)
{
    (void)state;
    if (number < 0) return;
    const long launches = run_callers(1, NULL, launches_wanted() * 3 / 4, 3);
    print_message("one caller: %ld launches\n", launches);
}

static void several_layers_at_once(void **state)
{
    (void)state;
    if (number < 0) return;
    const long launches = run_callers(CALLERS, NULL, launches_wanted() / 8, 5);
    print_message("%d callers: %ld launches\n", CALLERS, launches);
}

static void the_same_layer_at_once(void **state)
{
    (void)state;
    if (number < 0) return;
    long launches = 0;
    for (int i = 0; i < layer_count; i++)
        launches +=
            run_callers(CALLERS, &layers[i], launches_wanted() / 8 / layer_count + CALLERS, 7);
    print_message("%d callers of the same layer: %ld launches\n", CALLERS, launches);
}

/* A pool of the application. */
struct pool {
    int threads;  /* that call the task at the same time; 0: none */
    int repeated; /* how often the calling thread does, in turn */
    bool forbidden;
    bool cancelled; /* its threads are, before they call it */
};

struct work {
    const struct pool *pool;
    void (*task)(void *argument);
    void *argument;
};

static void *call_task(void *user)
{
    const struct work *w = user;
    if (w->pool->cancelled) pthread_cancel(pthread_self());
    w->task(w->argument);
    return NULL;
}

static void on_threads(void *user, void (*task)(void *argument), void *argument)
{
    const struct pool *pool = user;
    struct work work = {pool, task, argument};
    pthread_t threads[16];
    int started = 0;
    if (pool->forbidden) abort();
    while (started < pool->threads &&
           pthread_create(&threads[started], NULL, call_task, &work) == 0)
        started++;
    for (int i = 0; i < pool->repeated; i++) task(argument);
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
}

/* A layer of host arrays that is worth many shares. */
struct arrays {
    tconv_problem problem;
    tconv_plan_options options;
    struct tensors tensors;
    tconv_tensors args;
    void *expected;
};

static void make_arrays(struct arrays *a, int64_t channels, int64_t extent)
{
    tconv_error error;
    a->problem = plane(1, channels, channels, extent, 4, 2, 1);
    a->options = (tconv_plan_options)TCONV_PLAN_OPTIONS_INIT;
    make_tensors(&a->problem, REAL_NUMBERS, 9, &a->tensors);
    a->args = arrays_of(&a->tensors);
    const size_t bytes = (size_t)a->tensors.geometry.output_bytes;
    expect_ok(compute_once(opened[0].device, &a->problem, &a->options, &a->args, NULL, &error),
              &error);
    a->expected = malloc(bytes);
    assert_non_null(a->expected);
    memcpy(a->expected, a->tensors.output, bytes);
}

static void free_arrays(struct arrays *a)
{
    free(a->expected);
    free_tensors(&a->tensors);
}

static void expect_right(struct arrays *a, tconv_status status, const tconv_error *error)
{
    const size_t bytes = (size_t)a->tensors.geometry.output_bytes;
    expect_ok(status, error);
    assert_memory_equal(a->tensors.output, a->expected, bytes);
    fill_with_nans((unsigned char *)a->tensors.output, bytes);
}

static void pools_of_the_application(void **state)
{
    (void)state;
    if (number < 0) return;
    static const struct pool pools[] = {
        {0, 0, false, false}, {0, 3, false, false},  {1, 0, false, false}, {2, 1, false, false},
        {5, 0, false, false}, {16, 1, false, false}, {3, 0, false, true},
    };
    struct arrays a;
    make_arrays(&a, 32, 20);
    for (int d = 0; d < devices_opened; d++) {
        tconv_layer *layer = NULL;
        tconv_error error;
        expect_ok(tconv_layer_create(&opened[d].device, 1, TCONV_FILTER_CONSTANT, &layer, &error),
                  &error);
        for (size_t i = 0; i < sizeof pools / sizeof *pools; i++) {
            tconv_run run = TCONV_RUN_INIT;
            run.on_threads = on_threads;
            run.pool = (void *)&pools[i];
            for (int turn = 0; turn < 3; turn++)
                expect_right(&a,
                             tconv_layer_run(layer, &a.problem, &a.options, &a.args, &run, &error),
                             &error);
        }
        tconv_layer_release(layer);
    }
    free_arrays(&a);
}

/* PoCL's basic device never ends a command that waits for a user event. */
static void user_events_are_refused(void **state)
{
    (void)state;
    if (number < 0) return;
    struct arrays a;
    make_arrays(&a, 8, 9);
    const struct device *device = &opened[0];
    tconv_error error;
    tconv_layer *layer = NULL;
    cl_int code;
    cl_event event = clCreateUserEvent(device->context, &code);
    assert_int_equal(code, CL_SUCCESS);
    tconv_tensors tensors = TCONV_TENSORS_INIT;
    const struct {
        tconv_tensor *tensor;
        const void *bytes;
        uint64_t size;
    } list[] = {{&tensors.data, a.tensors.data, a.tensors.geometry.data_bytes},
                {&tensors.filter, a.tensors.filter, a.tensors.geometry.filter_bytes},
                {&tensors.output, a.tensors.output, a.tensors.geometry.output_bytes}};
    for (int i = 0; i < 3; i++)
        list[i].tensor->memory = buffer_of(device, list[i].bytes, (size_t)list[i].size);
    expect_ok(tconv_layer_create(&device->device, 1, TCONV_FILTER_CONSTANT, &layer, &error),
              &error);
    tconv_run run = TCONV_RUN_INIT;
    run.queue = device->queue;
    run.wait_count = 1;
    run.wait = &event;
    assert_int_equal(tconv_layer_run(layer, &a.problem, NULL, &tensors, &run, &error),
                     TCONV_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "event 0 of the wait list is a user event"));
    assert_int_equal(clSetUserEventStatus(event, CL_COMPLETE), CL_SUCCESS);
    expect_ok(tconv_layer_run(layer, &a.problem, NULL, &tensors, &run, &error), &error);
    assert_int_equal(clFinish(device->queue), CL_SUCCESS);
    for (int i = 0; i < 3; i++) clReleaseMemObject(list[i].tensor->memory);
    clReleaseEvent(event);
    tconv_layer_release(layer);
    free_arrays(&a);
}

/* What a callback of tracing does: runs another layer, whose pool is not called. */
struct nested {
    tconv_layer *layer;
    struct arrays inner[16]; /* of one call each */
    pthread_t caller;
    atomic_int calls, elsewhere, wrong, pieces;
};

/* Threads of the device get no signals of the application, but those of their own faults. */
static bool masks_are_right(void)
{
    sigset_t set;
    return pthread_sigmask(SIG_BLOCK, NULL, &set) == 0 && sigismember(&set, SIGUSR1) == 1 &&
           sigismember(&set, SIGTERM) == 1 && sigismember(&set, SIGSEGV) == 0;
}

static void heard(void *context, const tconv_trace_event *event)
{
    struct nested *n = context;
    static const struct pool never = {0, 0, true, false};
    tconv_run run = TCONV_RUN_INIT;
    tconv_error error;
    const int call = atomic_fetch_add(&n->calls, 1);
    atomic_store(&n->pieces, event->pieces);
    if (!pthread_equal(pthread_self(), n->caller)) {
        atomic_fetch_add(&n->elsewhere, 1);
        if (!masks_are_right()) atomic_fetch_add(&n->wrong, 1);
    }
    if (call >= 16) return;
    struct arrays *a = &n->inner[call];
    run.on_threads = on_threads;
    run.pool = (void *)&never;
    if (tconv_layer_run(n->layer, &a->problem, &a->options, &a->args, &run, &error) != TCONV_OK ||
        memcmp(a->tensors.output, a->expected, (size_t)a->tensors.geometry.output_bytes) != 0)
        atomic_fetch_add(&n->wrong, 1);
}

static void callbacks_run_layers(void **state)
{
    (void)state;
    if (number < 0) return;
    static struct nested n;
    struct arrays a;
    tconv_error error;
    tconv_layer *layer = NULL;
    tconv_device *device = opened[3].device;
    make_arrays(&a, 32, 20);
    for (int i = 0; i < 16; i++) make_arrays(&n.inner[i], 24, 20);
    n.caller = pthread_self();
    expect_ok(tconv_layer_create(&device, 1, TCONV_FILTER_CONSTANT, &layer, &error), &error);
    expect_ok(tconv_layer_create(&device, 1, TCONV_FILTER_CONSTANT, &n.layer, &error), &error);
    for (int turn = 0; turn < 50 && (turn < 5 || atomic_load(&n.elsewhere) == 0); turn++) {
        atomic_store(&n.calls, 0);
        expect_ok(tconv_device_set_trace(device, TCONV_TRACE_LAUNCH, heard, &n, &error), &error);
        expect_right(&a, tconv_layer_run(layer, &a.problem, &a.options, &a.args, NULL, &error),
                     &error);
        expect_ok(tconv_device_set_trace(device, 0, NULL, NULL, &error), &error);
        assert_int_equal(atomic_load(&n.wrong), 0);
        assert_true(atomic_load(&n.calls) >= atomic_load(&n.pieces));
        assert_true(atomic_load(&n.pieces) > 1);
    }
    assert_true(atomic_load(&n.elsewhere) > 0);
    tconv_layer_release(layer);
    tconv_layer_release(n.layer);
    for (int i = 0; i < 16; i++) free_arrays(&n.inner[i]);
    free_arrays(&a);
}

static void pause_for(long microseconds)
{
    nanosleep(&(struct timespec){0, 1000 * microseconds}, NULL);
}

/* Awake or asleep, they end with their device. */
static void devices_are_released_at_once(void **state)
{
    (void)state;
    if (number < 0) return;
    struct arrays a;
    make_arrays(&a, 32, 20);
    for (int i = 0; i < (smoke_suffices() ? FEW_OPENED : OPENED); i++) {
        struct device device;
        tconv_error error;
        open_with(2 + i % MOST_THREADS, &device);
        clReleaseCommandQueue(device.queue);
        expect_right(&a, compute_once(device.device, &a.problem, &a.options, &a.args, NULL, &error),
                     &error);
        if (i % 4 == 0) pause_for(i % 8 == 0 ? 150 : 2000);
        tconv_device_release(device.device);
    }
    free_arrays(&a);
}

static void *run_cancelled(void *user)
{
    struct arrays *a = user;
    tconv_error error;
    pthread_cancel(pthread_self());
    expect_right(a,
                 compute_once(opened[2].device, &a->problem, &a->options, &a->args, NULL, &error),
                 &error);
    pthread_testcancel();
    return user;
}

static void callers_are_cancelled(void **state)
{
    (void)state;
    if (number < 0) return;
    struct arrays a;
    void *result;
    make_arrays(&a, 32, 20);
    for (int i = 0; i < 10; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, run_cancelled, &a), 0);
        assert_int_equal(pthread_join(thread, &result), 0);
        assert_ptr_equal(result, PTHREAD_CANCELED);
    }
    free_arrays(&a);
}

static void children_are_refused(void **state)
{
    (void)state;
    if (number < 0) return;
    struct arrays a;
    tconv_error error;
    int how = 1;
    make_arrays(&a, 32, 20);
    expect_right(&a, compute_once(opened[3].device, &a.problem, &a.options, &a.args, NULL, &error),
                 &error);
    const pid_t child = fork(); /* while the helpers are awake */
    if (child == 0) {
        const struct copy *c = &layers[0].copy[3];
        alarm(20);
        const bool refused = tconv_plan_run(c->plan, &c->args, &error) == TCONV_ERROR_FORKED &&
                             tconv_packed_filter_pack(c->filter,
                                                      &(tconv_tensor){.memory = c->weights},
                                                      &error) == TCONV_ERROR_FORKED;
        tconv_device_release(opened[3].device);
        _exit(refused ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    expect_right(&a, compute_once(opened[3].device, &a.problem, &a.options, &a.args, NULL, &error),
                 &error);
    free_arrays(&a);
}

/* Its kernels store into arrays of the host, so no call waits for a map. */
static void arrays_need_no_map(void **state)
{
    (void)state;
    for (int i = 0; i < devices_opened; i++) assert_true(opened[i].device->stores_at_once);
}

int main(void)
{
    tconv_threads_enable();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_need_no_map),       cmocka_unit_test(one_caller),
        cmocka_unit_test(several_layers_at_once),   cmocka_unit_test(the_same_layer_at_once),
        cmocka_unit_test(pools_of_the_application), cmocka_unit_test(user_events_are_refused),
        cmocka_unit_test(callbacks_run_layers),     cmocka_unit_test(devices_are_released_at_once),
        cmocka_unit_test(callers_are_cancelled),    cmocka_unit_test(children_are_refused),
    };
    return cmocka_run_group_tests_name("shares", tests, set_up_layers, tear_down_layers);
}
