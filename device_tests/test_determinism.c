/* SPDX-License-Identifier: Apache-2.0 */
/* The same plan, device and inputs give the same bits: a thousand runs of every algorithm, while
 * another thread runs the same plan with other inputs, and another algorithm's, through another
 * queue. */
#include "setup.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum {
    RUNS = 1000,
    LEAST = 20,  /* where a device is slow: */
    SECONDS = 3, /* for one algorithm, then fewer runs suffice */
    OTHERS = 2,
};

/* The other work. */
struct others {
    pthread_t thread;
    cl_command_queue queue;
    struct {
        const tconv_plan *plan;
        tconv_tensors args; /* with buffers of its own */
    } work[OTHERS];
    atomic_bool stop;
    atomic_long runs;
    atomic_bool wrong;
};

static void *work_on(void *argument)
{
    struct others *o = argument;
    while (!atomic_load(&o->stop) && !atomic_load(&o->wrong)) {
        for (int i = 0; i < OTHERS; i++)
            if (tconv_plan_enqueue(o->work[i].plan, o->queue, &o->work[i].args, 0, NULL, NULL,
                                   NULL) != TCONV_OK)
                atomic_store(&o->wrong, true);
        if (clFinish(o->queue) != CL_SUCCESS) atomic_store(&o->wrong, true);
        atomic_fetch_add(&o->runs, OTHERS);
    }
    return NULL;
}

/* Other work of the same plan: the data begin with their second half, and only the filter is
 * shared. */
static void other_buffers(const struct setup *s, tconv_tensors *args)
{
    const size_t element = tconv_type_size(s->problem.data_type);
    const size_t bytes = s->tensors.data_count * element,
                 half = s->tensors.data_count / 2 * element;
    unsigned char *data = malloc(bytes);
    assert_non_null(data);
    memcpy(data, (const unsigned char *)s->tensors.data + half, bytes - half);
    memcpy(data + (bytes - half), s->tensors.data, half);
    *args = s->args;
    args->data.memory = buffer_of(s->device, data, bytes);
    args->output.memory = buffer_of(s->device, NULL, s->output_bytes);
    args->workspace.memory = buffer_of(s->device, NULL, s->workspace_bytes);
    free(data);
}

static void start_others(struct others *o, const struct setup *s, const struct setup *other)
{
    const struct setup *const setups[OTHERS] = {s, other};
    cl_int code;
    o->queue = clCreateCommandQueue(s->device->context, id_of(s->device), 0, &code);
    assert_int_equal(code, CL_SUCCESS);
    for (int i = 0; i < OTHERS; i++) {
        o->work[i].plan = setups[i]->plan;
        other_buffers(setups[i], &o->work[i].args);
    }
    atomic_init(&o->stop, false);
    atomic_init(&o->runs, 0);
    atomic_init(&o->wrong, false);
    assert_int_equal(pthread_create(&o->thread, NULL, work_on, o), 0);
    while (atomic_load(&o->runs) == 0)
        sched_yield(); /* short tests end before a thread has begun */
}

static void stop_others(struct others *o)
{
    atomic_store(&o->stop, true);
    assert_int_equal(pthread_join(o->thread, NULL), 0);
    assert_false(atomic_load(&o->wrong));
    for (int i = 0; i < OTHERS; i++) {
        clReleaseMemObject(o->work[i].args.data.memory);
        clReleaseMemObject(o->work[i].args.output.memory);
        clReleaseMemObject(o->work[i].args.workspace.memory);
    }
    clReleaseCommandQueue(o->queue);
}

static void fill(const struct setup *s, cl_mem buffer, size_t bytes, cl_uchar value)
{
    if (bytes != 0)
        assert_int_equal(
            clEnqueueFillBuffer(s->device->queue, buffer, &value, 1, 0, bytes, 0, NULL, NULL),
            CL_SUCCESS);
}

/* What lies in output and workspace before a run is another pattern each time. */
static void run_once(struct setup *s, int number)
{
    fill(s, s->output, s->output_bytes, (cl_uchar)(number * 37));
    fill(s, s->workspace, s->workspace_bytes, (cl_uchar)(0xff - number));
    enqueue(s);
    download(s, 0, NULL);
}

static int run_often(struct setup *s, const char *algorithm)
{
    void *first = malloc(s->output_bytes);
    assert_non_null(first);
    run_once(s, 0);
    compare_with_oracle(s->device, &s->problem, algorithm, true, &s->tensors);
    memcpy(first, s->tensors.output, s->output_bytes);
    const time_t begin = time(NULL);
    int runs = 1;
    for (; runs < scaled(RUNS) && (runs < LEAST || time(NULL) - begin < scaled(SECONDS)); runs++) {
        run_once(s, runs);
        if (memcmp(first, s->tensors.output, s->output_bytes) != 0)
            failed("%s: run %d on device %d has other bits than the first", algorithm, runs,
                   s->device->number);
    }
    free(first);
    return runs;
}

static void same_inputs_same_bits(void **state)
{
    (void)state;
    if (threads_left_out()) return;
    for (int d = 0; d < device_count; d++) {
        const tconv_problem p = plane(1, 7, 9, 17, 4, 2, 1);
        struct setup other;
        set_up(&other, &devices[d], &p, "gather_group", true, REAL_NUMBERS);
        pack(&other);
        int fewest = RUNS;
        for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
            const char *algorithm = tconv_algorithm_name(a);
            if (never_runs(&devices[d], algorithm)) continue;
            const tconv_problem q = plane_for(algorithm, 1, 12, 10, 19, 4, 2, 1);
            struct setup s;
            set_up(&s, &devices[d], &q, algorithm, true, REAL_NUMBERS);
            pack(&s);
            assert_int_equal(clFinish(devices[d].queue), CL_SUCCESS); /* filters are read by both */
            struct others o;
            start_others(&o, &s, &other);
            const int runs = run_often(&s, algorithm);
            if (runs < fewest) fewest = runs;
            stop_others(&o);
            tear_down(&s);
        }
        print_message("device %d: %d runs of each algorithm, or more\n", devices[d].number, fewest);
        tear_down(&other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_inputs_same_bits)};
    return cmocka_run_group_tests_name("determinism", tests, open_all_devices, close_all_devices);
}
