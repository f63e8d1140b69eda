/* SPDX-License-Identifier: Apache-2.0 */
/* What plan.h and layer.h promise to threads: eight of them run shared plans of every algorithm,
 * each with its own queue and buffers, while others make and release plans, filters and device
 * objects in the same context. */
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

enum { OTHER_TILES = 1 << 16 /* bytes */ };
enum {
    RUNNERS = 8,
    MOST_LAYERS = 32,
    SMOKE_LAYERS = 4,
    MILLISECONDS = 10000, /* for which the threads go on */
    RUNS = 8, /* of a layer, before the next one's turn: so that threads meet at one plan */
};

/* What the threads share. */
struct common {
    const struct device *device;
    int count;
    struct setup layers[MOST_LAYERS]; /* their tensors' outputs are what every run must give */
    tconv_device *opened;
    tconv_device *object; /* where programs are built by all at once */
    pthread_barrier_t start;
    atomic_bool stop;
};

/* A thread, with its own queue and its own buffers for each layer. cmocka's assertions belong to
 * the main thread: others keep a sentence for it. */
struct thread {
    pthread_t id;
    struct common *common;
    cl_command_queue queue;
    cl_mem data[MOST_LAYERS], output[MOST_LAYERS], workspace[MOST_LAYERS];
    void *result;
    long runs;
    char wrong[1300];
};

static const char *name_of(const struct thread *t, int layer)
{
    return t->common->layers[layer].algorithm;
}

static bool report(struct thread *t, const char *doing, int layer, tconv_status status,
                   const tconv_error *error)
{
    if (status == TCONV_OK) return true;
    snprintf(t->wrong, sizeof t->wrong, "%s of %s: %s: %s", doing, name_of(t, layer),
             tconv_status_name(status), error->message);
    return false;
}

static bool report_opencl(struct thread *t, const char *call, cl_int code)
{
    if (code != CL_SUCCESS) snprintf(t->wrong, sizeof t->wrong, "%s fails with %d", call, code);
    return code == CL_SUCCESS;
}

/* One run on the thread's own buffers, whose output holds NaNs before. */
static bool start(struct thread *t, int layer, const tconv_plan *plan,
                  const tconv_packed_filter *filter)
{
    const struct setup *s = &t->common->layers[layer];
    static const cl_uint nothing = UINT32_MAX;
    tconv_tensors args = s->args;
    tconv_error error;
    args.packed = filter;
    args.data.memory = t->data[layer];
    args.output.memory = t->output[layer];
    args.workspace.memory = t->workspace[layer];
    return report_opencl(t, "clEnqueueFillBuffer",
                         clEnqueueFillBuffer(t->queue, t->output[layer], &nothing, sizeof nothing,
                                             0, s->output_bytes, 0, NULL, NULL)) &&
           report(t, "enqueueing", layer,
                  tconv_plan_enqueue(plan, t->queue, &args, 0, NULL, NULL, &error), &error);
}

static bool finish(struct thread *t, int layer)
{
    const struct setup *s = &t->common->layers[layer];
    if (!report_opencl(t, "clEnqueueReadBuffer",
                       clEnqueueReadBuffer(t->queue, t->output[layer], CL_TRUE, 0, s->output_bytes,
                                           t->result, 0, NULL, NULL)))
        return false;
    t->runs++;
    if (memcmp(t->result, s->tensors.output, s->output_bytes) == 0) return true;
    snprintf(t->wrong, sizeof t->wrong, "%s gives other bits than alone", name_of(t, layer));
    return false;
}

/* ---- What threads do ---- */

static void *run_shared_plans(void *argument)
{
    struct thread *t = argument;
    const struct common *c = t->common;
    for (int i = 0; t->wrong[0] == '\0' && (i < RUNS || !atomic_load(&c->stop)); i++) {
        const int layer = i / RUNS % c->count;
        (void)(start(t, layer, c->layers[layer].plan, c->layers[layer].filter) && finish(t, layer));
    }
    return NULL;
}

/* Makes a filter for a plan, packs it, enqueues a run. */
static bool start_with_filter(struct thread *t, int layer, tconv_plan *plan,
                              tconv_packed_filter **filter)
{
    const struct setup *s = &t->common->layers[layer];
    tconv_error error;
    return report(t, "a filter", layer, tconv_packed_filter_create(plan, NULL, filter, &error),
                  &error) &&
           report(t, "packing", layer,
                  tconv_packed_filter_enqueue_pack(*filter, t->queue,
                                                   &(tconv_tensor){.memory = s->weights}, 0, NULL,
                                                   NULL, &error),
                  &error) &&
           start(t, layer, plan, *filter);
}

/* Filters come and go while their commands run. */
static void *make_filters(void *argument)
{
    struct thread *t = argument;
    const struct common *c = t->common;
    for (int i = 0; t->wrong[0] == '\0' && (i == 0 || !atomic_load(&c->stop)); i++) {
        const int layer = i % c->count;
        tconv_packed_filter *filter = NULL;
        const bool started = start_with_filter(t, layer, c->layers[layer].plan, &filter);
        tconv_packed_filter_release(filter);
        if (started) finish(t, layer);
    }
    return NULL;
}

/* A plan on `device`, which are both released while their commands run. */
static bool make_plan(struct thread *t, int layer, tconv_device *device)
{
    const struct setup *s = &t->common->layers[layer];
    const tconv_plan_options options = options_for(name_of(t, layer), false);
    tconv_error error;
    tconv_plan *plan = NULL;
    tconv_packed_filter *filter = NULL;
    const tconv_status status = tconv_plan_create(device, &s->problem, &options, &plan, &error);
    char why[3000];
    const bool started = report(t, "a plan", layer, status, &error) &&
                         tconv_plan_explain(plan, why, sizeof why) > 0 &&
                         start_with_filter(t, layer, plan, &filter);
    tconv_plan_release(plan);
    tconv_packed_filter_release(filter);
    return started && finish(t, layer);
}

static void *make_plans(void *argument)
{
    struct thread *t = argument;
    const struct common *c = t->common;
    for (int i = 0; t->wrong[0] == '\0' && (i == 0 || !atomic_load(&c->stop)); i++)
        make_plan(t, i % c->count, c->device->device);
    return NULL;
}

/* The programs of the object that all share, for a new one. Not on PoCL 3.1, which fails an
 * assertion of its own where a program is exported, or taken from a binary, while its kernels
 * run. */
static bool take_programs(struct thread *t, tconv_device *device)
{
    if (strcmp(t->common->device->info->platform, "Portable Computing Language") == 0) return true;
    tconv_device *shared = t->common->device->device;
    tconv_error error;
    size_t size = 0;
    void *bytes = NULL;
    const int layer = t->common->count - 1; /* for the sentence */
    bool right = report(t, "sizing the programs", layer,
                        tconv_device_export_programs(shared, NULL, &size, &error), &error);
    if (right) bytes = malloc(size + 1);
    right = right && bytes != NULL &&
            report(t, "exporting the programs", layer,
                   tconv_device_export_programs(shared, bytes, &size, &error), &error) &&
            report(t, "importing the programs", layer,
                   tconv_device_import_programs(device, bytes, size, NULL, &error), &error);
    free(bytes);
    return right;
}

/* Every other one compiles its programs, or has them from disk. */
static void *make_devices(void *argument)
{
    struct thread *t = argument;
    const struct common *c = t->common;
    for (int i = 0; t->wrong[0] == '\0' && (i == 0 || !atomic_load(&c->stop)); i++) {
        const int layer = c->count - 1 - i % c->count;
        tconv_device *device = NULL;
        tconv_error error;
        if (report(t, "a device object", layer,
                   tconv_device_create(c->device->context, id_of(c->device), &device, &error),
                   &error) &&
            (i % 2 == 0 || take_programs(t, device)))
            make_plan(t, layer, device);
        tconv_device_release(device);
    }
    return NULL;
}

static void *run_host_arrays(void *argument)
{
    struct thread *t = argument;
    const struct common *c = t->common;
    for (int i = 0; t->wrong[0] == '\0' && (i == 0 || !atomic_load(&c->stop)); i++) {
        const int layer = i % c->count;
        const struct setup *s = &c->layers[layer];
        const tconv_plan_options options = options_for(name_of(t, layer), false);
        tconv_tensors arrays = TCONV_TENSORS_INIT;
        tconv_error error;
        arrays.data.host = s->tensors.data;
        arrays.filter.host = s->tensors.filter;
        arrays.output.host = t->result;
        if (!report(t, "a run on host arrays", layer,
                    compute_once(c->opened, &s->problem, &options, &arrays, NULL, &error), &error))
            break;
        t->runs++;
        if (memcmp(t->result, s->tensors.output, s->output_bytes) != 0)
            snprintf(t->wrong, sizeof t->wrong, "%s gives other bits on host arrays",
                     name_of(t, layer));
    }
    return NULL;
}

/* All begin at once, so that programs are looked for, built and kept by all at once. */
static void *plan_at_once(void *argument)
{
    struct thread *t = argument;
    pthread_barrier_wait(&t->common->start);
    make_plan(t, t->common->count - 1, t->common->object);
    return NULL;
}

/* ---- The tests ---- */

static void begin(struct common *c, const struct device *device)
{
    *c = (struct common){.device = device};
    atomic_init(&c->stop, false);
    const int most = smoke_suffices() ? SMOKE_LAYERS : MOST_LAYERS;
    for (int a = 0; tconv_algorithm_name(a) != NULL && c->count < most; a++) {
        const char *name = tconv_algorithm_name(a);
        if (never_runs(device, name)) continue;
        const tconv_problem p = plane_for(name, 1, 6, 10, 20, 4, 2, 1);
        struct setup *s = &c->layers[c->count++];
        set_up(s, device, &p, name, false, SMALL_INTEGERS);
        pack(s);
        enqueue(s);
        download(s, 0, NULL);
        compare_with_oracle(device, &p, name, false, &s->tensors);
    }
}

static void end(struct common *c)
{
    assert_true(c->count < MOST_LAYERS); /* else algorithms were left out */
    for (int i = 0; i < c->count; i++) tear_down(&c->layers[i]);
}

static struct thread *new_thread(struct common *c)
{
    struct thread *t = calloc(1, sizeof *t);
    assert_non_null(t);
    t->common = c;
    cl_int code;
    t->queue = clCreateCommandQueue(c->device->context, id_of(c->device), 0, &code);
    assert_int_equal(code, CL_SUCCESS);
    size_t most = 1;
    for (int i = 0; i < c->count; i++) {
        const struct setup *s = &c->layers[i];
        t->data[i] = buffer_of(c->device, s->tensors.data, (size_t)s->tensors.geometry.data_bytes);
        t->output[i] = buffer_of(c->device, NULL, s->output_bytes);
        /* A device object of tconv_device_create may have fewer compute units, and another tile. */
        t->workspace[i] = buffer_of(c->device, NULL, s->workspace_bytes + OTHER_TILES);
        if (s->output_bytes > most) most = s->output_bytes;
    }
    t->result = malloc(most);
    assert_non_null(t->result);
    return t;
}

static void launch(struct thread *t, void *(*work)(void *))
{
    assert_int_equal(pthread_create(&t->id, NULL, work, t), 0);
}

/* Waits for a thread; returns its runs. */
static long join(struct thread *t)
{
    assert_int_equal(pthread_join(t->id, NULL), 0);
    if (t->wrong[0] != '\0') failed("%s", t->wrong);
    const long runs = t->runs;
    for (int i = 0; i < t->common->count; i++) {
        clReleaseMemObject(t->data[i]);
        clReleaseMemObject(t->output[i]);
        clReleaseMemObject(t->workspace[i]);
    }
    clReleaseCommandQueue(t->queue);
    free(t->result);
    free(t);
    return runs;
}

static void threads_share_plans_while_others_come_and_go(void **state)
{
    (void)state;
    if (threads_left_out()) return;
    /* Two of each, so that they meet at the counts of owners, too. */
    static void *(*const works[])(void *) = {make_filters,    make_filters,   make_plans,
                                             make_plans,      make_devices,   make_devices,
                                             run_host_arrays, run_host_arrays};
    enum { OTHERS = sizeof works / sizeof *works };
    for (int d = 0; d < device_count; d++) {
        struct common c;
        struct thread *threads[RUNNERS + OTHERS];
        tconv_error error;
        begin(&c, &devices[d]);
        expect_ok(tconv_device_open(devices[d].number, &c.opened, &error), &error);
        for (int i = 0; i < RUNNERS + OTHERS; i++) threads[i] = new_thread(&c);
        for (int i = 0; i < RUNNERS + OTHERS; i++)
            launch(threads[i], i < RUNNERS ? run_shared_plans : works[i - RUNNERS]);
        const int ms = scaled(MILLISECONDS);
        nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
        atomic_store(&c.stop, true);
        long shared = 0, own = 0;
        for (int i = 0; i < RUNNERS + OTHERS; i++)
            *(i < RUNNERS ? &shared : &own) += join(threads[i]);
        print_message("device %d: %ld runs of shared plans beside %ld of own ones\n",
                      devices[d].number, shared, own);
        tconv_device_release(c.opened);
        end(&c);
    }
}

static void threads_build_the_same_programs_at_once(void **state)
{
    (void)state;
    if (threads_left_out()) return;
    for (int d = 0; d < device_count; d++) {
        struct common c;
        struct thread *threads[RUNNERS];
        tconv_error error;
        begin(&c, &devices[d]);
        expect_ok(tconv_device_create(devices[d].context, id_of(&devices[d]), &c.object, &error),
                  &error);
        assert_int_equal(pthread_barrier_init(&c.start, NULL, RUNNERS), 0);
        for (int i = 0; i < RUNNERS; i++) threads[i] = new_thread(&c);
        for (int i = 0; i < RUNNERS; i++) launch(threads[i], plan_at_once);
        for (int i = 0; i < RUNNERS; i++) assert_int_equal(join(threads[i]), 1);
        pthread_barrier_destroy(&c.start);
        tconv_device_release(c.object);
        end(&c);
    }
}

static void *count_devices(void *user)
{
    pthread_barrier_wait(user);
    tconv_error error;
    int *count = malloc(sizeof *count);
    if (count != NULL && tconv_device_count(count, &error) != TCONV_OK) *count = -1;
    return count;
}

/* The first calls of the process: drivers start meanwhile. */
static void the_first_calls_come_at_once(void **state)
{
    (void)state;
    pthread_t threads[RUNNERS];
    pthread_barrier_t start;
    assert_int_equal(pthread_barrier_init(&start, NULL, RUNNERS), 0);
    for (int i = 0; i < RUNNERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_devices, &start), 0);
    for (int i = 0; i < RUNNERS; i++) {
        void *count;
        assert_int_equal(pthread_join(threads[i], &count), 0);
        assert_non_null(count);
        assert_true(*(int *)count > 0);
        free(count);
    }
    pthread_barrier_destroy(&start);
}

int main(void)
{
    const struct CMUnitTest first[] = {cmocka_unit_test(the_first_calls_come_at_once)};
    const int failed = cmocka_run_group_tests_name("first calls", first, NULL, NULL);
    if (failed != 0) return failed;
    struct CMUnitTest tests[] = {
        smoke_test(threads_share_plans_while_others_come_and_go),
        cmocka_unit_test(threads_build_the_same_programs_at_once),
    };
    return run_smoke_or_all("threads", tests, open_all_devices, close_all_devices);
}
