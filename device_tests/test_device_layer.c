/* SPDX-License-Identifier: Apache-2.0 */
/* Layers on the device: their results, weights as arrays, as buffers, replaced and shared, and the
 * pool of workspaces: one for executions that follow one another, several for those that may
 * overlap, none for two at a time. */
#include "setup.h"
#include "smoke.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { MOST_WORKSPACES = 4 }; /* of a device; device_layer.h says the number */
static const char *const WITH_WORKSPACE = "gather_group";

static cl_event new_gate(const struct device *device)
{
    cl_int code;
    cl_event gate = clCreateUserEvent(device->context, &code);
    assert_int_equal(code, CL_SUCCESS);
    return gate;
}

static void open_gate(cl_event gate)
{
    assert_int_equal(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    clReleaseEvent(gate);
}

static bool has_out_of_order(const struct device *device)
{
    cl_command_queue_properties properties = 0;
    assert_int_equal(clGetDeviceInfo(id_of(device), CL_DEVICE_QUEUE_PROPERTIES, sizeof properties,
                                     &properties, NULL),
                     CL_SUCCESS);
    return (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0;
}

/* In order, too, if the device has no others. */
static cl_command_queue new_queue(const struct device *device, bool in_order)
{
    cl_int code;
    in_order = in_order || !has_out_of_order(device);
    cl_command_queue queue =
        clCreateCommandQueue(device->context, id_of(device),
                             in_order ? 0 : CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code);
    assert_int_equal(code, CL_SUCCESS);
    return queue;
}

/* An event that the device has had time to end, if it could. */
static bool has_ended(cl_event event)
{
    cl_int state = CL_QUEUED;
    nanosleep(&(struct timespec){0, 50000000}, NULL);
    assert_int_equal(
        clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL),
        CL_SUCCESS);
    return state == CL_COMPLETE;
}

static tconv_weights weights_of(const struct tensors *t)
{
    tconv_weights weights = TCONV_WEIGHTS_INIT;
    weights.filter = t->filter;
    weights.scale = t->epilogue.scale ? t->scale : NULL;
    weights.slope = tconv_activation_has_slope(t->epilogue.activation) ? t->slope : NULL;
    return weights;
}

static tconv_device_layer *make_layer(const struct device *device, const tconv_problem *problem,
                                      const tconv_plan_options *options,
                                      const tconv_weights *weights)
{
    tconv_device_layer *layer;
    tconv_error error;
    expect_ok(tconv_device_layer_create(device->device, device->queue, problem, options, weights,
                                        &layer, &error),
              &error);
    return layer;
}

/* A layer with its tensors and its result, for executions that must all give the same bits. */
struct known {
    tconv_problem problem;
    struct tensors tensors;
    tconv_device_layer *layer;
    cl_mem data;
    size_t bytes; /* of the output */
};

static void run(const struct device *device, const struct known *k, cl_mem output)
{
    tconv_error error;
    expect_ok(tconv_device_layer_enqueue(k->layer, device->queue, &(tconv_buffer){k->data, 0, NULL},
                                         &(tconv_buffer){output, 0, NULL}, NULL, 0, NULL, NULL,
                                         &error),
              &error);
}

static void read_output(const struct device *device, cl_mem output, size_t bytes, void *target)
{
    assert_int_equal(
        clEnqueueReadBuffer(device->queue, output, CL_TRUE, 0, bytes, target, 0, NULL, NULL),
        CL_SUCCESS);
}

static void make_known(const struct device *device, const char *algorithm, int extent,
                       struct known *k)
{
    const tconv_plan_options options = options_for(algorithm, false);
    k->problem = plane_for(algorithm, 1, 6, 10, extent, 4, 2, 1);
    make_tensors(&k->problem, SMALL_INTEGERS, 4, &k->tensors);
    const tconv_weights weights = weights_of(&k->tensors);
    k->layer = make_layer(device, &k->problem, &options, &weights);
    k->bytes = (size_t)k->tensors.geometry.output_bytes;
    k->data = buffer_of(device, k->tensors.data, (size_t)k->tensors.geometry.data_bytes);
    cl_mem output = buffer_of(device, NULL, k->bytes);
    run(device, k, output);
    read_output(device, output, k->bytes, k->tensors.output);
    clReleaseMemObject(output);
    compare_with_oracle(device, &k->problem, algorithm, false, &k->tensors);
}

static void free_known(struct known *k)
{
    tconv_device_layer_release(k->layer);
    clReleaseMemObject(k->data);
    free_tensors(&k->tensors);
}

static void expect_known(const struct device *device, const struct known *k, cl_mem output)
{
    void *result = malloc(k->bytes);
    assert_non_null(result);
    read_output(device, output, k->bytes, result);
    assert_memory_equal(result, k->tensors.output, k->bytes);
    free(result);
}

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
            tconv_plan_options options = options_for(name, true);
            options.epilogue = e;
            options.epilogue.bias = true;
            tconv_weights weights = weights_of(&t);
            weights.bias = t.bias;
            tconv_device_layer *layer = make_layer(device, &p, &options, &weights);
            t.error_factor = tconv_plan_error_factor(tconv_device_layer_plan(layer));
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
            expect_ok(tconv_device_layer_enqueue(
                          layer, device->queue, &(tconv_buffer){data, GUARD, NULL},
                          &(tconv_buffer){output, GUARD, NULL},
                          &(tconv_buffer){residual, GUARD, NULL}, 0, NULL, &done, &error),
                      &error);
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
            tconv_device_layer_release(layer);
            free_tensors(&t);
        }
}

/* ---- weights ---- */

/* The same layer with weights in buffers, in the middle of one, with offsets. */
static void weights_may_be_buffers(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        const struct device *device = &devices[d];
        struct known k;
        make_known(device, "auto", 7, &k);
        const struct tensors *t = &k.tensors;
        const size_t filter = (size_t)t->geometry.filter_bytes, bias = t->channels * sizeof(float);
        enum { GAP = 64 };
        unsigned char *all = calloc(1, GAP + filter + bias);
        assert_non_null(all);
        memcpy(all + GAP, t->filter, filter);
        memcpy(all + GAP + filter, t->bias, bias);
        cl_mem both = buffer_of(device, all, GAP + filter + bias);
        free(all);
        tconv_plan_options options = options_for("auto", true);
        tconv_weights weights = TCONV_WEIGHTS_INIT;
        weights.filter_buffer = (tconv_buffer){both, GAP, NULL};
        weights.bias_buffer = (tconv_buffer){both, GAP + filter, NULL};
        tconv_device_layer *layer = make_layer(device, &k.problem, &options, &weights),
                           *array_layer;
        assert_int_equal(tconv_device_layer_bytes(layer),
                         tconv_plan_filter_bytes(tconv_device_layer_plan(layer)));
        weights = (tconv_weights)TCONV_WEIGHTS_INIT;
        weights.filter = t->filter;
        weights.bias = t->bias;
        array_layer = make_layer(device, &k.problem, &options, &weights);
        assert_int_equal(tconv_device_layer_bytes(array_layer),
                         tconv_plan_filter_bytes(tconv_device_layer_plan(layer)) + bias);
        tconv_device_layer_release(k.layer);
        cl_mem output = buffer_of(device, NULL, k.bytes);
        tconv_device_layer *const layers[] = {layer, array_layer};
        clReleaseMemObject(both); /* the layer is an owner, too */
        for (int i = 0; i < 2; i++) {
            k.layer = layers[i];
            run(device, &k, output);
            read_output(device, output, k.bytes, k.tensors.output);
            compare_with_oracle(device, &k.problem, "auto", true, &k.tensors);
            if (i == 0) tconv_device_layer_release(layer);
        }
        clReleaseMemObject(output);
        free_known(&k);
    }
}

/* Executions before the call have the old weights, those after it the new ones, whatever order the
 * queues have. */
static void weights_are_replaced(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++)
        for (int in_order = 0; in_order < 2; in_order++) {
            const struct device *device = &devices[d];
            struct known k;
            make_known(device, "auto", 7, &k);
            cl_command_queue queues[] = {new_queue(device, in_order), new_queue(device, in_order)};
            cl_event gate = new_gate(device), packed, done[2];
            cl_mem outputs[] = {buffer_of(device, NULL, k.bytes), buffer_of(device, NULL, k.bytes)};
            tconv_error error;
            tconv_weights weights = TCONV_WEIGHTS_INIT;
            const uint64_t bytes = tconv_device_layer_bytes(k.layer);
            float *other = malloc((size_t)k.tensors.geometry.filter_bytes);
            assert_non_null(other);
            for (size_t i = 0; i < k.tensors.filter_count; i++)
                other[i] = 2 * k.tensors.filter[i] + 1;
            weights.filter = other;
            const tconv_buffer data = {k.data, 0, NULL};
            expect_ok(tconv_device_layer_enqueue(k.layer, queues[0], &data,
                                                 &(tconv_buffer){outputs[0], 0, NULL}, NULL, 1,
                                                 &gate, &done[0], &error),
                      &error);
            expect_ok(tconv_device_layer_set_weights(k.layer, queues[0], &weights, 1, &gate,
                                                     &packed, &error),
                      &error);
            memset(other, 0xff, (size_t)k.tensors.geometry.filter_bytes); /* it was copied */
            expect_ok(tconv_device_layer_enqueue(k.layer, queues[1], &data,
                                                 &(tconv_buffer){outputs[1], 0, NULL}, NULL, 0,
                                                 NULL, &done[1], &error),
                      &error);
            clFlush(queues[1]);
            assert_false(has_ended(done[1])); /* the packing has not begun */
            open_gate(gate);
            for (int i = 0; i < 2; i++) {
                expect_ok(tconv_wait(done[i], &error), &error);
                clReleaseEvent(done[i]);
            }
            expect_known(device, &k, outputs[0]);
            for (size_t i = 0; i < k.tensors.filter_count; i++)
                k.tensors.filter[i] = 2 * k.tensors.filter[i] + 1;
            read_output(device, outputs[1], k.bytes, k.tensors.output);
            compare_with_oracle(device, &k.problem, "auto", false, &k.tensors);
            expect_ok(tconv_wait(packed, &error), &error);
            clReleaseEvent(packed);
            run(device, &k, outputs[0]);
            expect_known(device, &k, outputs[0]);
            assert_int_equal(tconv_device_layer_bytes(k.layer), bytes);
            /* Wrong weights change nothing. */
            weights.filter = NULL;
            expect_error(
                tconv_device_layer_set_weights(k.layer, queues[0], &weights, 0, NULL, NULL, &error),
                TCONV_ERROR_ARGUMENT, &error, "weights.filter is NULL");
            run(device, &k, outputs[1]);
            expect_known(device, &k, outputs[1]);
            for (int i = 0; i < 2; i++) {
                clReleaseMemObject(outputs[i]);
                clReleaseCommandQueue(queues[i]);
            }
            free(other);
            free_known(&k);
        }
}

/* Makes a layer with the weights of `k` for another problem, and compares what it computes. */
static void share(struct known *k, const tconv_problem *problem, const tconv_plan_options *options,
                  struct known *shared)
{
    tconv_error error;
    *shared = (struct known){.problem = *problem};
    make_tensors(&shared->problem, SMALL_INTEGERS, 9, &shared->tensors);
    memcpy(shared->tensors.filter, k->tensors.filter, (size_t)k->tensors.geometry.filter_bytes);
    expect_ok(tconv_device_layer_share(k->layer, &shared->problem, options, &shared->layer, &error),
              &error);
    assert_int_equal(tconv_device_layer_bytes(shared->layer), tconv_device_layer_bytes(k->layer));
}

static void compare_shared(const struct device *device, struct known *shared, const char *name)
{
    shared->bytes = (size_t)shared->tensors.geometry.output_bytes;
    shared->data =
        buffer_of(device, shared->tensors.data, (size_t)shared->tensors.geometry.data_bytes);
    cl_mem output = buffer_of(device, NULL, shared->bytes);
    run(device, shared, output);
    read_output(device, output, shared->bytes, shared->tensors.output);
    compare_with_oracle(device, &shared->problem, name, false, &shared->tensors);
    clReleaseMemObject(output);
}

/* Other batches and extents with the same packed filter. If the library is to choose, it would
 * choose another algorithm on a CPU. */
static void weights_are_shared(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++)
        for (int named = 0; named < 2; named++)
            for (int i = 0; i < 4; i++) {
                const struct device *device = &devices[d];
                const char *name = named ? WITH_WORKSPACE : "auto";
                struct known k, shared;
                make_known(device, WITH_WORKSPACE, 5, &k);
                const tconv_plan_options options = options_for(name, false);
                const tconv_problem p = plane(1 + i % 2, 6, 10, i < 2 ? 3 : 40, 4, 2, 1);
                share(&k, &p, &options, &shared);
                assert_string_equal(tconv_plan_algorithm(tconv_device_layer_plan(shared.layer)),
                                    WITH_WORKSPACE);
                if (i % 2 == 0) { /* the other one may go */
                    tconv_device_layer_release(k.layer);
                    k.layer = NULL;
                }
                compare_shared(device, &shared, name);
                free_known(&shared);
                free_known(&k);
            }
}

/* The tile of one layer need not suit the extents of another one. */
static void weights_are_shared_whatever_the_tile(void **state)
{
    (void)state;
    const int64_t extents[][3] = {{7, 34, 18}, {1, 60, 2}, {4, 2, 60}, {2, 9, 9}};
    const tconv_plan_options options = options_for("auto", false);
    for (int d = 0; d < device_count; d++) {
        const struct device *device = &devices[d];
        struct known k = {.problem = plane(1, 16, 32, 15, 3, 2, 0)}, shared;
        k.problem.data.dim[3] = 33;
        make_tensors(&k.problem, SMALL_INTEGERS, 4, &k.tensors);
        const tconv_weights weights = weights_of(&k.tensors);
        k.layer = make_layer(device, &k.problem, &options, &weights);
        for (size_t i = 0; i < sizeof extents / sizeof *extents; i++) {
            tconv_problem p = plane(extents[i][0], 16, 32, extents[i][1], 3, 2, 0);
            p.data.dim[3] = extents[i][2];
            share(&k, &p, &options, &shared);
            compare_shared(device, &shared, "auto");
            free_known(&shared);
        }
        tconv_device_layer_release(k.layer);
        free_tensors(&k.tensors);
    }
}

static void weights_that_do_not_fit_are_not_shared(void **state)
{
    (void)state;
    struct known k;
    tconv_device_layer *none = NULL;
    tconv_error error;
    make_known(&devices[0], WITH_WORKSPACE, 5, &k);
    tconv_problem p = plane(1, 6, 10, 5, 3, 2, 1);
    tconv_plan_options options = options_for(WITH_WORKSPACE, false);
    expect_error(tconv_device_layer_share(k.layer, &p, &options, &none, &error),
                 TCONV_ERROR_MISMATCH, &error, "packed for other channels, taps, types, zero ");
    options.epilogue.bias = true;
    expect_error(tconv_device_layer_share(k.layer, &k.problem, &options, &none, &error),
                 TCONV_ERROR_MISMATCH, &error, "layer has no bias");
    options = options_for("reference", false);
    expect_error(tconv_device_layer_share(k.layer, &k.problem, &options, &none, &error),
                 TCONV_ERROR_MISMATCH, &error, "its algorithm reference");
    expect_error(tconv_device_layer_share(NULL, &p, NULL, &none, &error), TCONV_ERROR_ARGUMENT,
                 &error, "layer is NULL");
    expect_error(tconv_device_layer_share(k.layer, &p, NULL, NULL, &error), TCONV_ERROR_ARGUMENT,
                 &error, "out is NULL");
    assert_null(none);
    free_known(&k);
}

/* ---- the pool ---- */

enum { LAYERS = 5 };

static uint64_t workspace_of(const struct known *k)
{
    return tconv_plan_workspace_bytes(tconv_device_layer_plan(k->layer));
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
            expect_ok(tconv_device_layer_enqueue(k[i].layer, queue,
                                                 &(tconv_buffer){k[i].data, 0, NULL},
                                                 &(tconv_buffer){output[i], 0, NULL}, NULL, i == 0,
                                                 i == 0 ? &gate : NULL, NULL, &error),
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
    const tconv_buffer data = {k.data, 0, NULL};
    cl_event gate = new_gate(device);
    cl_command_queue first[MOST_WORKSPACES],
        queues[] = {new_queue(device, false), new_queue(device, true)};
    for (int i = 0; i < MOST_WORKSPACES; i++) {
        first[i] = i == 0 || !has_out_of_order(device) ? new_queue(device, false) : first[0];
        output[i] = buffer_of(device, NULL, k.bytes);
        expect_ok(tconv_device_layer_enqueue(k.layer, first[i], &data,
                                             &(tconv_buffer){output[i], 0, NULL}, NULL, 1, &gate,
                                             NULL, &error),
                  &error);
        assert_int_equal(tconv_device_workspace_bytes(device->device), (uint64_t)(i + 1) * bytes);
    }
    if (trim) {
        tconv_device_trim_workspaces(device->device);
        assert_int_equal(tconv_device_workspace_bytes(device->device), 0);
    }
    for (int i = 0; i < MORE; i++) {
        cl_mem *place = &output[MOST_WORKSPACES + i];
        *place = buffer_of(device, NULL, k.bytes);
        expect_ok(tconv_device_layer_enqueue(k.layer, queues[i % 2], &data,
                                             &(tconv_buffer){*place, 0, NULL}, NULL, 0, NULL,
                                             &done[i], &error),
                  &error);
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
        const tconv_plan_options options = options_for(WITH_WORKSPACE, false);
        const tconv_weights weights = weights_of(&k.tensors);
        tconv_device_layer *layer = make_layer(&own, &k.problem, &options, &weights);
        enum { ALL = MOST_WORKSPACES + 2 };
        cl_event gate = new_gate(device), done[ALL];
        cl_mem output[ALL];
        for (int i = 0; i < ALL; i++) {
            cl_command_queue queue = new_queue(device, false);
            const bool gated = i < MOST_WORKSPACES;
            output[i] = buffer_of(device, NULL, k.bytes);
            expect_ok(tconv_device_layer_enqueue(layer, queue, &(tconv_buffer){k.data, 0, NULL},
                                                 &(tconv_buffer){output[i], 0, NULL}, NULL, gated,
                                                 gated ? &gate : NULL, &done[i], &error),
                      &error);
            clReleaseCommandQueue(queue);
        }
        tconv_device_layer_release(layer);
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
            const tconv_weights same = weights_of(&k->tensors);
            if (!report(t,
                        tconv_device_layer_set_weights(k->layer, t->queue, &same, 0, NULL, NULL,
                                                       &error),
                        &error))
                break;
        }
        for (; begun < LAYERS; begun++) {
            const struct known *k = &t->known[(begun + t->number) % LAYERS];
            if (!report(t,
                        tconv_device_layer_enqueue(k->layer, t->queue,
                                                   &(tconv_buffer){k->data, 0, NULL},
                                                   &(tconv_buffer){t->output[begun], 0, NULL}, NULL,
                                                   0, NULL, &done[begun], &error),
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

/* ---- wrong calls ---- */

static void wrong_calls(void **state)
{
    (void)state;
    const struct device *device = &devices[0];
    struct known k;
    tconv_device_layer *none = NULL;
    tconv_error error;
    make_known(device, WITH_WORKSPACE, 7, &k);
    tconv_weights weights = weights_of(&k.tensors);
    const tconv_plan_options options = options_for(WITH_WORKSPACE, false);
    tconv_plan_options biased = options_for(WITH_WORKSPACE, true);
#define CREATE(device, queue, problem, options, weights, status, words)                            \
    expect_error(                                                                                  \
        tconv_device_layer_create(device, queue, problem, options, weights, &none, &error),        \
        status, &error, words)
    CREATE(NULL, device->queue, &k.problem, NULL, &weights, TCONV_ERROR_ARGUMENT, "device is NULL");
    CREATE(device->device, NULL, &k.problem, NULL, &weights, TCONV_ERROR_ARGUMENT, "queue is NULL");
    CREATE(device->device, device->queue, NULL, NULL, &weights, TCONV_ERROR_ARGUMENT,
           "problem is NULL");
    CREATE(device->device, device->queue, &k.problem, NULL, NULL, TCONV_ERROR_ARGUMENT,
           "weights is NULL");
    CREATE(device->device, device->queue, &k.problem, &biased, &weights, TCONV_ERROR_ARGUMENT,
           "weights.bias is NULL, but options.epilogue.bias is true");
    weights.slope = weights.filter;
    CREATE(device->device, device->queue, &k.problem, NULL, &weights, TCONV_ERROR_ARGUMENT,
           "weights.slope is given, but options.epilogue.activation is none");
    weights = weights_of(&k.tensors);
    weights.filter_buffer.memory = k.data;
    CREATE(device->device, device->queue, &k.problem, NULL, &weights, TCONV_ERROR_ARGUMENT,
           "weights.filter and weights.filter_buffer are both given");
    weights.filter = NULL;
    weights.filter_buffer.offset = 4;
    CREATE(device->device, device->queue, &k.problem, &options, &weights, TCONV_ERROR_BUFFER,
           "weights.filter_buffer is too small");
    /* What no execution could read. */
    const size_t channels = 4 * k.tensors.channels;
    cl_mem small = buffer_of(device, NULL, channels - 4), written = NULL;
    cl_int code;
    written = clCreateBuffer(device->context, CL_MEM_WRITE_ONLY, channels, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    weights = weights_of(&k.tensors);
    weights.bias_buffer.memory = small;
    CREATE(device->device, device->queue, &k.problem, &biased, &weights, TCONV_ERROR_BUFFER,
           "weights.bias_buffer is too small: its buffer has ");
    weights.bias_buffer.memory = k.data;
    weights.bias_buffer.offset = 2;
    CREATE(device->device, device->queue, &k.problem, &biased, &weights, TCONV_ERROR_BUFFER,
           "weights.bias_buffer begins at byte 2, which is not a multiple of 4");
    weights.bias_buffer = (tconv_buffer){written, 0, NULL};
    CREATE(device->device, device->queue, &k.problem, &biased, &weights, TCONV_ERROR_BUFFER,
           "weights.bias_buffer was made with CL_MEM_WRITE_ONLY");
    weights.bias_buffer.pointer = &weights;
    CREATE(device->device, device->queue, &k.problem, &biased, &weights, TCONV_ERROR_ARGUMENT,
           "weights.bias_buffer has both a buffer");
    tconv_device_layer *with_bias;
    weights.bias_buffer = (tconv_buffer){NULL, 0, NULL};
    weights.bias = k.tensors.filter;
    expect_ok(tconv_device_layer_create(device->device, device->queue, &k.problem, &biased,
                                        &weights, &with_bias, &error),
              &error);
    weights.bias = NULL;
    weights.bias_buffer.memory = small;
    expect_error(
        tconv_device_layer_set_weights(with_bias, device->queue, &weights, 0, NULL, NULL, &error),
        TCONV_ERROR_BUFFER, &error, "weights.bias_buffer is too small");
    clReleaseMemObject(small);
    clReleaseMemObject(written);
    weights = weights_of(&k.tensors);
    weights.struct_size = 8;
    CREATE(device->device, device->queue, &k.problem, NULL, &weights, TCONV_ERROR_ARGUMENT,
           "struct_size of weights");
    weights = weights_of(&k.tensors);
    tconv_problem p = k.problem;
    p.data.dim[1] = 3;
    CREATE(device->device, device->queue, &p, NULL, &weights, TCONV_ERROR_SHAPE, "channels");
    assert_null(none);

    cl_mem output = buffer_of(device, NULL, k.bytes);
    const tconv_buffer data = {k.data, 0, NULL}, target = {output, 0, NULL},
                       none_given = {NULL, 0, NULL};
#define ENQUEUE(layer, queue, data, output, residual, count, wait, status, words)                  \
    expect_error(tconv_device_layer_enqueue(layer, queue, data, output, residual, count, wait,     \
                                            NULL, &error),                                         \
                 status, &error, words)
    ENQUEUE(NULL, device->queue, &data, &target, NULL, 0, NULL, TCONV_ERROR_ARGUMENT,
            "layer is NULL");
    ENQUEUE(k.layer, NULL, &data, &target, NULL, 0, NULL, TCONV_ERROR_ARGUMENT, "queue is NULL");
    ENQUEUE(k.layer, device->queue, NULL, &target, NULL, 0, NULL, TCONV_ERROR_ARGUMENT,
            "data is NULL");
    ENQUEUE(k.layer, device->queue, &data, NULL, NULL, 0, NULL, TCONV_ERROR_ARGUMENT,
            "output is NULL");
    ENQUEUE(k.layer, device->queue, &data, &none_given, NULL, 0, NULL, TCONV_ERROR_BUFFER,
            "args.output is missing");
    ENQUEUE(k.layer, device->queue, &data, &target, &data, 0, NULL, TCONV_ERROR_ARGUMENT,
            "args.residual is given");
    ENQUEUE(k.layer, device->queue, &data, &data, NULL, 0, NULL, TCONV_ERROR_BUFFER, "args.output");
    ENQUEUE(k.layer, device->queue, &data, &target, NULL, 1, NULL, TCONV_ERROR_ARGUMENT,
            "the wait list is NULL, but its count is 1");
    expect_error(
        tconv_device_layer_set_weights(NULL, device->queue, &weights, 0, NULL, NULL, &error),
        TCONV_ERROR_ARGUMENT, &error, "layer is NULL");
    expect_error(
        tconv_device_layer_set_weights(k.layer, device->queue, NULL, 0, NULL, NULL, &error),
        TCONV_ERROR_ARGUMENT, &error, "weights is NULL");
    /* The old weights, which the wrong ones did not replace. */
    expect_ok(tconv_device_layer_enqueue(with_bias, device->queue, &data, &target, NULL, 0, NULL,
                                         NULL, &error),
              &error);
    tconv_device_layer_release(with_bias);
    /* The pool still works. */
    run(device, &k, output);
    expect_known(device, &k, output);
    /* A wrong call takes nothing out of it. */
    const uint64_t pool = tconv_device_workspace_bytes(device->device);
    ENQUEUE(k.layer, device->queue, &data, &data, NULL, 0, NULL, TCONV_ERROR_BUFFER, "args.output");
    assert_int_equal(tconv_device_workspace_bytes(device->device), pool);
    run(device, &k, output);
    expect_known(device, &k, output);
    clReleaseMemObject(output);
    assert_int_equal(tconv_device_layer_bytes(NULL), 0);
    assert_int_equal(tconv_device_workspace_bytes(NULL), 0);
    assert_null(tconv_device_layer_plan(NULL));
    tconv_device_trim_workspaces(NULL);
    tconv_device_layer_release(NULL);
    free_known(&k);
}

static void an_empty_batch_keeps_the_order(void **state)
{
    (void)state;
    const struct device *device = &devices[0];
    const tconv_problem p = plane(0, 5, 7, 11, 3, 2, 1);
    const float filter[5 * 7 * 3 * 3] = {0};
    tconv_weights weights = TCONV_WEIGHTS_INIT;
    weights.filter = filter;
    tconv_device_layer *layer = make_layer(device, &p, NULL, &weights);
    tconv_error error;
    cl_event done;
    expect_ok(tconv_device_layer_enqueue(layer, device->queue, &(tconv_buffer){NULL, 0, NULL},
                                         &(tconv_buffer){NULL, 0, NULL}, NULL, 0, NULL, &done,
                                         &error),
              &error);
    expect_ok(tconv_wait(done, &error), &error);
    clReleaseEvent(done);
    tconv_device_layer_release(layer);
}

int main(void)
{
    struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_computes),
        cmocka_unit_test(weights_may_be_buffers),
        smoke_test(weights_are_replaced),
        cmocka_unit_test(weights_are_shared),
        cmocka_unit_test(weights_are_shared_whatever_the_tile),
        cmocka_unit_test(weights_that_do_not_fit_are_not_shared),
        cmocka_unit_test(layers_on_an_in_order_queue_share_a_workspace),
        smoke_test(executions_that_may_overlap_have_workspaces),
        cmocka_unit_test(a_trimmed_pool_serves_later_executions),
        smoke_test(release_while_commands_are_pending),
        cmocka_unit_test(threads_share_layers_and_the_pool),
        cmocka_unit_test(wrong_calls),
        cmocka_unit_test(an_empty_batch_keeps_the_order),
    };
    return run_smoke_or_all("device_layer", tests, open_all_devices, close_all_devices);
}
