/* SPDX-License-Identifier: Apache-2.0 */
/* A process that is forked after OpenCL was used gets a named error from every call, at once, and
 * its parent goes on. */
#include "tconv_cl/tconv_cl.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { CHANNELS = 8, EXTENT = 40, OUTPUTS = CHANNELS * (2 * EXTENT) * (2 * EXTENT), SECONDS = 5 };

/* What the parent has, which a child inherits. */
static struct {
    tconv_device *device;
    cl_command_queue queue;
    tconv_layer *layer;
    tconv_plan *plan;
    tconv_packed_filter *filter;
    cl_event event;
} own;

static int device_number(void)
{
    const char *text = getenv("TCONV_CL_TEST_DEVICE");
    return text != NULL && text[0] != '\0' ? atoi(text) : -1;
}

static tconv_problem problem_of(void)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    p.data = (tconv_shape){4, {1, CHANNELS, EXTENT, EXTENT}};
    p.filter = (tconv_shape){4, {CHANNELS, CHANNELS, 2, 2}};
    p.strides = (tconv_list){2, {2, 2}};
    return p;
}

/* One call on host arrays; all outputs are CHANNELS. */
static tconv_status compute(tconv_layer *layer, float *output, tconv_error *error)
{
    static float data[CHANNELS * EXTENT * EXTENT], filter[CHANNELS * CHANNELS * 4];
    for (size_t i = 0; i < sizeof data / sizeof *data; i++) data[i] = 1;
    for (size_t i = 0; i < sizeof filter / sizeof *filter; i++) filter[i] = 1;
    const tconv_problem p = problem_of();
    tconv_tensors tensors = TCONV_TENSORS_INIT;
    tensors.data.host = data;
    tensors.filter.host = filter;
    tensors.output.host = output;
    return tconv_layer_run(layer, &p, NULL, &tensors, NULL, error);
}

static void expect_right(void)
{
    static float output[OUTPUTS];
    tconv_error error = {TCONV_OK, 0, ""};
    memset(output, 0xff, sizeof output);
    assert_int_equal(compute(own.layer, output, &error), TCONV_OK);
    for (int i = 0; i < OUTPUTS; i++) assert_true(output[i] == CHANNELS);
}

/* Threads that a child does not have. */
static void hang(void *pool, void (*task)(void *argument), void *argument)
{
    (void)pool;
    (void)task;
    (void)argument;
    for (;;) pause();
}

/* In a child: 0 where each call says that it is one; else the number of the first that does not. */
static int refused_calls(void)
{
    static float output[OUTPUTS];
    tconv_error error = {TCONV_OK, 0, ""};
    int number = 0, count, device;
    cl_device_id id;
    tconv_device *opened = NULL;
    tconv_plan *plan = NULL;
    tconv_packed_filter *filter = NULL;
    size_t size = 0;
    if (number++, !tconv_process_forked()) return number;
    if (number++, tconv_device_count(&count, &error) != TCONV_ERROR_FORKED) return number;
    if (number++, strstr(error.message, "was forked from process") == NULL) return number;
    if (number++, tconv_device_at(0, NULL, &id, &error) != TCONV_ERROR_FORKED) return number;
    if (number++, tconv_device_default(&device, &error) != TCONV_ERROR_FORKED) return number;
    if (number++, tconv_device_open(-1, &opened, &error) != TCONV_ERROR_FORKED) return number;
    if (own.device == NULL) return 0;
    const tconv_problem p = problem_of();
    tconv_device *object = own.device;
    if (number++, compute(own.layer, output, &error) != TCONV_ERROR_FORKED) return number;
    if (number++, output[0] != 0) return number;
    const tconv_tensors none = TCONV_TENSORS_INIT;
    tconv_run run = TCONV_RUN_INIT;
    run.on_threads = hang;
    run.threads = 2;
    if (number++, tconv_layer_run(own.layer, &p, NULL, &none, &run, &error) != TCONV_ERROR_FORKED)
        return number;
    if (number++, tconv_layer_set(own.layer, &p, NULL, &none, NULL, &error) != TCONV_ERROR_FORKED)
        return number;
    if (number++, tconv_layer_prepare(own.layer, &p, NULL, NULL, &error) != TCONV_ERROR_FORKED)
        return number;
    if (number++, tconv_layer_plan(own.layer, &p, NULL, &plan, &error) != TCONV_ERROR_FORKED)
        return number;
    if (number++, tconv_plan_create(object, &p, NULL, &plan, &error) != TCONV_ERROR_FORKED)
        return number;
    if (number++, tconv_device_export_programs(object, NULL, &size, &error) != TCONV_ERROR_FORKED)
        return number;
    if (number++, tconv_packed_filter_create(own.plan, NULL, &filter, &error) != TCONV_ERROR_FORKED)
        return number;
    const tconv_tensors args = TCONV_TENSORS_INIT;
    cl_command_queue queue = own.queue;
    if (number++,
        tconv_plan_enqueue(own.plan, queue, &args, 0, NULL, NULL, &error) != TCONV_ERROR_FORKED)
        return number;
    if (number++,
        tconv_packed_filter_enqueue_pack(own.filter, queue, &(tconv_tensor){.memory = NULL}, 0,
                                         NULL, NULL, &error) != TCONV_ERROR_FORKED)
        return number;
    if (number++, tconv_wait(own.event, &error) != TCONV_ERROR_FORKED) return number;
    tconv_packed_filter_release(own.filter);
    tconv_plan_release(own.plan);
    tconv_layer_release(own.layer);
    tconv_device_release(own.device);
    return 0;
}

/* Forks; a child that takes longer than SECONDS is ended by the system. The calls take less than
 * one; a busy machine more. */
static void expect_refusals(void)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(SECONDS);
        _exit(refused_calls());
    }
    int result = 0;
    assert_int_equal(waitpid(child, &result, 0), child);
    if (!WIFEXITED(result))
        fail_msg("a child was ended by signal %d: a call hangs", WTERMSIG(result));
    assert_int_equal(WEXITSTATUS(result), 0);
}

static void a_child_may_be_the_first(void **state)
{
    (void)state;
    const pid_t child = fork();
    assert_true(child >= 0);
    int count;
    if (child == 0) _exit(tconv_device_count(&count, NULL) == TCONV_OK && count > 0 ? 0 : 1);
    int result = 0;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 0);
}

static void devices_were_listed(void **state)
{
    (void)state;
    int count = 0;
    assert_int_equal(tconv_device_count(&count, NULL), TCONV_OK);
    expect_refusals();
}

static void a_device_was_opened(void **state)
{
    (void)state;
    tconv_error error = {TCONV_OK, 0, ""};
    const tconv_problem p = problem_of();
    cl_int code;
    assert_int_equal(tconv_device_open(device_number(), &own.device, &error), TCONV_OK);
    own.queue = clCreateCommandQueue(tconv_device_context(own.device), tconv_device_id(own.device),
                                     0, &code);
    assert_int_equal(code, CL_SUCCESS);
    assert_int_equal(tconv_layer_create(&own.device, 1, TCONV_FILTER_CONSTANT, &own.layer, &error),
                     TCONV_OK);
    assert_int_equal(tconv_plan_create(own.device, &p, NULL, &own.plan, &error), TCONV_OK);
    assert_int_equal(tconv_packed_filter_create(own.plan, NULL, &own.filter, &error), TCONV_OK);
    assert_int_equal(clEnqueueMarkerWithWaitList(own.queue, 0, NULL, &own.event), CL_SUCCESS);
    expect_refusals();
}

static void a_layer_was_computed(void **state)
{
    (void)state;
    expect_right();
    expect_refusals();
    expect_right();
}

static atomic_bool stop;

static void *work(void *unused)
{
    (void)unused;
    float *output = malloc(OUTPUTS * sizeof *output);
    while (output != NULL && !atomic_load(&stop)) compute(own.layer, output, NULL);
    free(output);
    return NULL;
}

static void other_threads_compute(void **state)
{
    (void)state;
    pthread_t threads[2];
    atomic_store(&stop, false);
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
    for (int i = 0; i < 20; i++) expect_refusals();
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    expect_right();
}

static void *fork_here(void *unused)
{
    (void)unused;
    expect_refusals();
    return NULL;
}

static void another_thread_forks(void **state)
{
    (void)state;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fork_here, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    expect_right();
    clReleaseEvent(own.event);
    clReleaseCommandQueue(own.queue);
    tconv_packed_filter_release(own.filter);
    tconv_plan_release(own.plan);
    tconv_layer_release(own.layer);
    tconv_device_release(own.device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_may_be_the_first), cmocka_unit_test(devices_were_listed),
        cmocka_unit_test(a_device_was_opened),      cmocka_unit_test(a_layer_was_computed),
        cmocka_unit_test(other_threads_compute),    cmocka_unit_test(another_thread_forks),
    };
    return cmocka_run_group_tests_name("fork", tests, NULL, NULL);
}
