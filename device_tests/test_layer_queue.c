/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of layers on the application's queues: results, the order of commands, wrong calls, and the
 * pool of workspaces: one for executions that follow one another, several for those that may
 * overlap, none for two at a time. */
#include "known_layer.h"
#include "smoke.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_WORKSPACES = 4 }; /* of a device; device.h says the number */

/* ---- results ---- */

/* Data, output and residual in the middle of buffers, whose other bytes stay. */
static void every_algorithm_computes(void **state)
{
    (void)state;
    enum { GUARD = 256 };
    for (int d = 0; d < device_count; d++)
        for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
            const struct device *device = &devices[d];
            const char *name = tconv_algorithm_name(a);
            if (never_runs(device, name)) continue;
            const tconv_problem p = plane_for(name, 2, 6, 10, 9, 4, 2, 1);
            const bool integers = p.data_type != TCONV_F32;
            struct tensors t;
            make_tensors(&p, SMALL_INTEGERS, 4, &t);
            tconv_epilogue e = TCONV_EPILOGUE_INIT;
            e.residual = true;
            e.scale = !integers;
            e.activation = integers ? TCONV_ACTIVATION_NONE : TCONV_ACTIVATION_PRELU;
            make_epilogue(&p, &e, 6, &t);
            struct known k = {.problem = p, .options = options_for(name, true)};
            k.options.epilogue = e;
            k.options.epilogue.bias = true;
            tconv_tensors weights = weights_of(&t);
            weights.bias.host = t.bias;
            tconv_layer *layer = make_layer(device->device, device->queue, &k, &weights);
            t.error_factor = tconv_plan_error_factor(plan_of(&k));
            const size_t data_bytes = (size_t)t.geometry.data_bytes,
                         bytes = (size_t)t.geometry.output_bytes;
            unsigned char *filled = malloc(bytes + 2 * GUARD);
            assert_non_null(filled);
            memset(filled, 0xa5, bytes + 2 * GUARD);
            cl_mem data = buffer_of(device, NULL, data_bytes + GUARD),
                   residual = buffer_of(device, NULL, bytes + GUARD),
                   output = buffer_of(device, filled, bytes + 2 * GUARD);
            assert_int_equal(clEnqueueWriteBuffer(device->queue, data, CL_TRUE, GUARD, data_bytes,
                                                  t.data, 0, NULL, NULL),
                             CL_SUCCESS);
            assert_int_equal(clEnqueueWriteBuffer(device->queue, residual, CL_TRUE, GUARD, bytes,
                                                  t.residual, 0, NULL, NULL),
                             CL_SUCCESS);
            tconv_error error;
            cl_event done;
            tconv_tensors tensors = TCONV_TENSORS_INIT;
            tensors.data = (tconv_tensor){data, GUARD, NULL, NULL};
            tensors.output = (tconv_tensor){output, GUARD, NULL, NULL};
            tensors.residual = (tconv_tensor){residual, GUARD, NULL, NULL};
            const tconv_run how = run_on(device->queue, 0, NULL, &done);
            expect_ok(tconv_layer_run(layer, &p, &k.options, &tensors, &how, &error), &error);
            expect_ok(tconv_wait(done, &error), &error);
            clReleaseEvent(done);
            read_output(device, output, bytes + 2 * GUARD, filled);
            memcpy(t.output, filled + GUARD, bytes);
            compare_with_oracle(device, &p, name, true, &t);
            for (size_t i = 0; i < GUARD; i++) {
                assert_int_equal(filled[i], 0xa5);
                assert_int_equal(filled[GUARD + bytes + i], 0xa5);
            }
            const cl_mem buffers[] = {data, residual, output};
            for (int i = 0; i < 3; i++) clReleaseMemObject(buffers[i]);
            free(filled);
            tconv_layer_release(layer);
            free_tensors(&t);
        }
}

/* ---- the pool ---- */

enum { LAYERS = 5 };

static uint64_t workspace_of(const struct known *k)
{
    return tconv_plan_workspace_bytes(plan_of(k));
}

/* One workspace, as large as the largest layer's, for all layers on an in-order queue, even if
 * their commands wait. */
static void layers_on_an_in_order_queue_share_a_workspace(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        const struct device *device = &devices[d];
        struct known k[LAYERS];
        cl_mem output[LAYERS];
        tconv_error error;
        uint64_t most = 0;
        tconv_device_trim_workspaces(device->device);
        assert_int_equal(tconv_device_workspace_bytes(device->device), 0);
        for (int i = 0; i < LAYERS; i++) {
            make_known(device, WITH_WORKSPACE, 10 + (i * 7) % LAYERS, &k[i]);
            output[i] = buffer_of(device, NULL, k[i].bytes);
            if (workspace_of(&k[i]) > most) most = workspace_of(&k[i]);
        }
        assert_true(most > workspace_of(&k[0]));
        assert_int_equal(tconv_device_workspace_bytes(device->device), most);
        tconv_device_trim_workspaces(device->device);
        cl_event gate = new_gate(device);
        cl_command_queue queue = new_queue(device, true);
        for (int i = 0; i < LAYERS; i++)
            expect_ok(
                enqueue_known(&k[i], queue, output[i], i == 0, i == 0 ? &gate : NULL, NULL, &error),
                &error);
        assert_int_equal(tconv_device_workspace_bytes(device->device), most);
        open_gate(gate);
        assert_int_equal(clFinish(queue), CL_SUCCESS);
        for (int i = 0; i < LAYERS; i++) {
            expect_known(device, &k[i], output[i]);
            clReleaseMemObject(output[i]);
            free_known(&k[i]);
        }
        clReleaseCommandQueue(queue);
    }
}

/* Executions that wait for a gate, in an out-of-order queue, or each in a queue of its own if the
 * device has none: each gets a workspace. Those that come
 * when all are in use wait, on whatever queue, although nothing else holds them. `trim`: the pool
 * forgets the workspaces meanwhile, so that later ones need not wait. */
static void executions_that_may_overlap(const struct device *device, bool trim)
{
    enum { MORE = 3 };
    struct known k;
    cl_mem output[MOST_WORKSPACES + MORE];
    cl_event done[MORE];
    tconv_error error;
    make_known(device, WITH_WORKSPACE, 10, &k);
    tconv_device_trim_workspaces(device->device);
    const uint64_t bytes = workspace_of(&k);
    cl_event gate = new_gate(device);
    cl_command_queue first[MOST_WORKSPACES],
        queues[] = {new_queue(device, false), new_queue(device, true)};
    for (int i = 0; i < MOST_WORKSPACES; i++) {
        first[i] = i == 0 || !has_out_of_order(device) ? new_queue(device, false) : first[0];
        output[i] = buffer_of(device, NULL, k.bytes);
        expect_ok(enqueue_known(&k, first[i], output[i], 1, &gate, NULL, &error), &error);
        assert_int_equal(tconv_device_workspace_bytes(device->device), (uint64_t)(i + 1) * bytes);
    }
    if (trim) {
        tconv_device_trim_workspaces(device->device);
        assert_int_equal(tconv_device_workspace_bytes(device->device), 0);
    }
    for (int i = 0; i < MORE; i++) {
        cl_mem *place = &output[MOST_WORKSPACES + i];
        *place = buffer_of(device, NULL, k.bytes);
        expect_ok(enqueue_known(&k, queues[i % 2], *place, 0, NULL, &done[i], &error), &error);
        clFlush(queues[i % 2]);
        assert_true(trim == has_ended(done[i]));
    }
    if (!trim)
        assert_int_equal(tconv_device_workspace_bytes(device->device), MOST_WORKSPACES * bytes);
    open_gate(gate); /* the first queues were never flushed by this test */
    for (int i = 0; i < MORE; i++) {
        assert_int_equal(clWaitForEvents(1, &done[i]), CL_SUCCESS);
        clReleaseEvent(done[i]);
    }
    for (int i = 0; i < MOST_WORKSPACES; i++) assert_int_equal(clFinish(first[i]), CL_SUCCESS);
    for (int i = 0; i < MOST_WORKSPACES + MORE; i++) {
        expect_known(device, &k, output[i]);
        clReleaseMemObject(output[i]);
    }
    /* A larger one takes the place of another one. */
    struct known larger;
    make_known(device, WITH_WORKSPACE, 30, &larger);
    assert_true(tconv_device_workspace_bytes(device->device) <=
                (MOST_WORKSPACES - 1) * bytes + workspace_of(&larger));
    free_known(&larger);
    for (int i = 0; i < 2; i++) clReleaseCommandQueue(queues[i]);
    for (int i = 0; i < MOST_WORKSPACES; i++)
        if (i == 0 || first[i] != first[0]) clReleaseCommandQueue(first[i]);
    free_known(&k);
}

static void executions_that_may_overlap_have_workspaces(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) executions_that_may_overlap(&devices[d], false);
}

static void a_trimmed_pool_serves_later_executions(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) executions_that_may_overlap(&devices[d], true);
}

/* Everything is released while executions wait: first the queues, which later executions of the
 * pool still have to wait for, then the rest. */
static void release_while_commands_are_pending(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        const struct device *device = &devices[d];
        struct known k;
        tconv_error error;
        make_known(device, WITH_WORKSPACE, 10, &k);
        struct device own = *device;
        expect_ok(tconv_device_create(device->context, id_of(device), &own.device, &error), &error);
        const tconv_tensors weights = weights_of(&k.tensors);
        struct known pending = k;
        make_layer(own.device, device->queue, &pending, &weights);
        enum { ALL = MOST_WORKSPACES + 2 };
        cl_event gate = new_gate(device), done[ALL];
        cl_mem output[ALL];
        for (int i = 0; i < ALL; i++) {
            cl_command_queue queue = new_queue(device, false);
            const bool gated = i < MOST_WORKSPACES;
            output[i] = buffer_of(device, NULL, k.bytes);
            expect_ok(enqueue_known(&pending, queue, output[i], gated, gated ? &gate : NULL,
                                    &done[i], &error),
                      &error);
            clReleaseCommandQueue(queue);
        }
        tconv_layer_release(pending.layer);
        tconv_device_release(own.device);
        open_gate(gate);
        for (int i = 0; i < ALL; i++) {
            assert_int_equal(clWaitForEvents(1, &done[i]), CL_SUCCESS);
            clReleaseEvent(done[i]);
            expect_known(device, &k, output[i]);
            clReleaseMemObject(output[i]);
        }
        free_known(&k);
    }
}

/* ---- threads ---- */

enum { THREADS = 8, TURNS = 60 };

struct thread {
    pthread_t id;
    int number;
    const struct device *device;
    cl_command_queue queue;
    struct known *known;
    cl_mem output[LAYERS];
    void *result;
    char wrong[1300];
};

static bool report(struct thread *t, tconv_status status, const tconv_error *error)
{
    if (status != TCONV_OK) snprintf(t->wrong, sizeof t->wrong, "%s", error->message);
    return status == TCONV_OK;
}

/* All layers at once, then their outputs. */
static void *run_layers(void *argument)
{
    struct thread *t = argument;
    for (int turn = 0; turn < TURNS && t->wrong[0] == '\0'; turn++) {
        cl_event done[LAYERS];
        int begun = 0;
        tconv_error error;
        if (t->number == 0 && turn % 8 == 0) tconv_device_trim_workspaces(t->device->device);
        if (t->number == 1 && turn % 8 == 0) {
            const struct known *k = &t->known[turn / 8 % LAYERS];
            const tconv_tensors same = weights_of(&k->tensors);
            if (!report(t, set_weights(k, t->queue, &same, 0, NULL, NULL, &error), &error)) break;
        }
        for (; begun < LAYERS; begun++) {
            const struct known *k = &t->known[(begun + t->number) % LAYERS];
            if (!report(t,
                        enqueue_known(k, t->queue, t->output[begun], 0, NULL, &done[begun], &error),
                        &error))
                break;
        }
        for (int i = 0; i < begun; i++) {
            const struct known *k = &t->known[(i + t->number) % LAYERS];
            cl_event read;
            const cl_int code = clEnqueueReadBuffer(t->queue, t->output[i], CL_FALSE, 0, k->bytes,
                                                    t->result, 1, &done[i], &read);
            if (code != CL_SUCCESS)
                snprintf(t->wrong, sizeof t->wrong, "clEnqueueReadBuffer fails with %d", code);
            else if (report(t, tconv_wait(read, &error), &error) &&
                     memcmp(t->result, k->tensors.output, k->bytes) != 0)
                snprintf(t->wrong, sizeof t->wrong, "layer %d has other results", i);
            if (code == CL_SUCCESS) clReleaseEvent(read);
            clReleaseEvent(done[i]);
        }
    }
    return NULL;
}

/* Half of the queues are out of order. None is with Intel's runtime for CPUs (2024), which hangs
 * when several threads read from such queues, also without this library. */
static void threads_share_layers_and_the_pool(void **state)
{
    (void)state;
    if (threads_left_out()) return;
    for (int d = 0; d < device_count; d++) {
        const bool in_order = strcmp(devices[d].info->platform, "Intel(R) OpenCL") == 0;
        struct known known[LAYERS];
        struct thread threads[THREADS];
        size_t most = 0;
        uint64_t most_workspace = 0;
        for (int i = 0; i < LAYERS; i++) {
            make_known(&devices[d], WITH_WORKSPACE, 10 + i, &known[i]);
            if (known[i].bytes > most) most = known[i].bytes;
            if (workspace_of(&known[i]) > most_workspace) most_workspace = workspace_of(&known[i]);
        }
        for (int i = 0; i < THREADS; i++) {
            struct thread *t = &threads[i];
            *t = (struct thread){.number = i, .device = &devices[d], .known = known};
            t->queue = new_queue(&devices[d], in_order || i % 2 == 0);
            t->result = malloc(most);
            assert_non_null(t->result);
            for (int j = 0; j < LAYERS; j++) t->output[j] = buffer_of(&devices[d], NULL, most);
        }
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i].id, NULL, run_layers, &threads[i]), 0);
        for (int i = 0; i < THREADS; i++) {
            struct thread *t = &threads[i];
            assert_int_equal(pthread_join(t->id, NULL), 0);
            if (t->wrong[0] != '\0') failed("thread %d: %s", i, t->wrong);
            for (int j = 0; j < LAYERS; j++) clReleaseMemObject(t->output[j]);
            clReleaseCommandQueue(t->queue);
            free(t->result);
        }
        assert_true(tconv_device_workspace_bytes(devices[d].device) <=
                    MOST_WORKSPACES * most_workspace);
        for (int i = 0; i < LAYERS; i++) free_known(&known[i]);
    }
}

/* ---- order and wrong calls ---- */

static void on_no_threads(void *pool, void (*task)(void *argument), void *argument)
{
    (void)pool;
    (void)task;
    (void)argument;
}

static void wrong_runs(void **state)
{
    (void)state;
    const struct device *device = &devices[0];
    struct known k;
    tconv_error error;
    make_known(device, WITH_WORKSPACE, 7, &k);
    cl_mem output = buffer_of(device, NULL, k.bytes);
    tconv_tensors good = TCONV_TENSORS_INIT, tensors;
    good.data.memory = k.data;
    good.output.memory = output;
    tconv_run how = run_on(device->queue, 0, NULL, NULL);
#define RUN(status, words)                                                                         \
    expect_error(tconv_layer_run(k.layer, &k.problem, &k.options, &tensors, &how, &error), status, \
                 &error, words)
    tensors = good;
    tensors.data.memory = NULL;
    RUN(TCONV_ERROR_ARGUMENT, "tensors.data is absent");
    tensors.data.host = k.tensors.data;
    RUN(TCONV_ERROR_ARGUMENT, "tensors.data is an array of the host, but the run has a queue");
    tensors = good;
    tensors.output.memory = NULL;
    RUN(TCONV_ERROR_ARGUMENT, "tensors.output is absent");
    tensors = good;
    tensors.residual.memory = k.data;
    RUN(TCONV_ERROR_ARGUMENT, "tensors.residual is given");
    tensors = good;
    tensors.output.memory = k.data;
    RUN(TCONV_ERROR_BUFFER, "tensors.output");
    tensors = good;
    how.wait_count = 1;
    RUN(TCONV_ERROR_ARGUMENT, "the wait list is NULL, but its count is 1");
    how = run_on(device->queue, 0, NULL, NULL);
    how.memory_limit = 1;
    RUN(TCONV_ERROR_ARGUMENT, "run.memory_limit is given, but the run has a queue");
    how.memory_limit = 0;
    how.on_threads = on_no_threads;
    RUN(TCONV_ERROR_ARGUMENT, "run.on_threads is given, but the run has a queue");
    how.on_threads = NULL;
    /* The pool still works, and a wrong call takes nothing out of it. */
    run_known(device, &k, output);
    expect_known(device, &k, output);
    const uint64_t pool = tconv_device_workspace_bytes(device->device);
    tensors.output.memory = k.data;
    RUN(TCONV_ERROR_BUFFER, "tensors.output");
    assert_int_equal(tconv_device_workspace_bytes(device->device), pool);
    run_known(device, &k, output);
    expect_known(device, &k, output);
    assert_int_equal(tconv_device_workspace_bytes(NULL), 0);
    tconv_device_trim_workspaces(NULL);
    clReleaseMemObject(output);
    free_known(&k);
}

/* Buffers without a queue, and a buffer beside an array of the host: the call waits. */
static void buffers_need_no_queue(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++)
        for (int host = 0; host < 4; host++) {
            const struct device *device = &devices[d];
            struct known k;
            tconv_error error;
            make_known(device, "auto", 7, &k);
            cl_mem output = buffer_of(device, NULL, k.bytes);
            float *array = calloc(1, k.bytes);
            assert_non_null(array);
            tconv_tensors tensors = TCONV_TENSORS_INIT;
            if (host & 1)
                tensors.data.host = k.tensors.data;
            else
                tensors.data.memory = k.data;
            if (host & 2)
                tensors.output.host = array;
            else
                tensors.output.memory = output;
            expect_ok(tconv_layer_run(k.layer, &k.problem, &k.options, &tensors, NULL, &error),
                      &error);
            if (host & 2)
                assert_memory_equal(array, k.tensors.output, k.bytes);
            else
                expect_known(device, &k, output);
            free(array);
            clReleaseMemObject(output);
            free_known(&k);
        }
}

static void an_empty_batch_keeps_the_order(void **state)
{
    (void)state;
    const struct device *device = &devices[0];
    struct known k = {.problem = plane(0, 5, 7, 11, 3, 2, 1),
                      .options = options_for("auto", false)};
    const float filter[5 * 7 * 3 * 3] = {0};
    tconv_tensors weights = TCONV_TENSORS_INIT;
    weights.filter.host = filter;
    make_layer(device->device, device->queue, &k, &weights);
    tconv_error error;
    for (int set = 0; set < 2; set++) {
        cl_event done, gate = new_gate(device);
        expect_ok(enqueue_known(&k, device->queue, NULL, 1, &gate, &done, &error), &error);
        assert_int_equal(clFlush(device->queue), CL_SUCCESS);
        assert_false(has_ended(done));
        open_gate(gate);
        expect_ok(tconv_wait(done, &error), &error);
        clReleaseEvent(done);
        tconv_layer_refresh(k.layer); /* it needs no weights either */
    }
    tconv_layer_release(k.layer);
}

int main(void)
{
    struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_computes),
        cmocka_unit_test(buffers_need_no_queue),
        cmocka_unit_test(layers_on_an_in_order_queue_share_a_workspace),
        smoke_test(executions_that_may_overlap_have_workspaces),
        cmocka_unit_test(a_trimmed_pool_serves_later_executions),
        smoke_test(release_while_commands_are_pending),
        cmocka_unit_test(threads_share_layers_and_the_pool),
        cmocka_unit_test(wrong_runs),
        cmocka_unit_test(an_empty_batch_keeps_the_order),
    };
    return run_smoke_or_all("layer_queue", tests, open_all_devices, close_all_devices);
}
