/* SPDX-License-Identifier: Apache-2.0 */
/* Layers on the application's queues: their results, weights as arrays, as buffers, replaced, and
 * used for other problems, and the pool of workspaces: one for executions that follow one another,
 * several for those that may overlap, none for two at a time. */
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

enum { MOST_WORKSPACES = 4 }; /* of a device; device.h says the number */
static const char *const WITH_WORKSPACE = "gather_group";

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

static tconv_tensors weights_of(const struct tensors *t)
{
    tconv_tensors weights = TCONV_TENSORS_INIT;
    weights.filter.host = t->filter;
    weights.scale.host = t->epilogue.scale ? t->scale : NULL;
    weights.slope.host = tconv_activation_has_slope(t->epilogue.activation) ? t->slope : NULL;
    return weights;
}

static tconv_run run_on(cl_command_queue queue, cl_uint wait_count, const cl_event *wait,
                        cl_event *done)
{
    tconv_run run = TCONV_RUN_INIT;
    run.queue = queue;
    run.wait_count = wait_count;
    run.wait = wait;
    run.done = done;
    return run;
}

/* A layer with its tensors and its result, for executions that must all give the same bits. */
struct known {
    tconv_problem problem;
    tconv_plan_options options;
    struct tensors tensors;
    tconv_layer *layer;
    cl_mem data;
    size_t bytes; /* of the output */
};

static tconv_status set(const struct known *k, cl_command_queue queue, const tconv_tensors *weights,
                        cl_uint wait_count, const cl_event *wait, cl_event *done,
                        tconv_error *error)
{
    const tconv_run how = run_on(queue, wait_count, wait, done);
    return tconv_layer_set(k->layer, &k->problem, &k->options, weights, &how, error);
}

/* Makes a layer of a known problem, with its weights. */
static tconv_layer *make_layer(tconv_device *device, cl_command_queue queue, struct known *k,
                               const tconv_tensors *weights)
{
    tconv_error error;
    expect_ok(tconv_layer_create(&device, 1, TCONV_FILTER_CONSTANT, &k->layer, &error), &error);
    expect_ok(set(k, queue, weights, 0, NULL, NULL, &error), &error);
    return k->layer;
}

static tconv_plan *plan_of(const struct known *k)
{
    tconv_plan *plan;
    tconv_error error;
    expect_ok(tconv_layer_plan(k->layer, &k->problem, &k->options, &plan, &error), &error);
    tconv_plan_release(plan); /* the layer keeps it */
    return plan;
}

static uint64_t weight_bytes(const struct known *k)
{
    tconv_layer_counts counts = TCONV_LAYER_COUNTS_INIT;
    tconv_error error;
    expect_ok(tconv_layer_count(k->layer, &counts, &error), &error);
    return counts.weight_bytes;
}

static tconv_status enqueue_known(const struct known *k, cl_command_queue queue, cl_mem output,
                                  cl_uint wait_count, const cl_event *wait, cl_event *done,
                                  tconv_error *error)
{
    tconv_tensors tensors = TCONV_TENSORS_INIT;
    tensors.data.memory = k->data;
    tensors.output.memory = output;
    const tconv_run how = run_on(queue, wait_count, wait, done);
    return tconv_layer_run(k->layer, &k->problem, &k->options, &tensors, &how, error);
}

static void run(const struct device *device, const struct known *k, cl_mem output)
{
    tconv_error error;
    expect_ok(enqueue_known(k, device->queue, output, 0, NULL, NULL, &error), &error);
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
    k->options = options_for(algorithm, false);
    k->problem = plane_for(algorithm, 1, 6, 10, extent, 4, 2, 1);
    make_tensors(&k->problem, SMALL_INTEGERS, 4, &k->tensors);
    const tconv_tensors weights = weights_of(&k->tensors);
    make_layer(device->device, device->queue, k, &weights);
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
    tconv_layer_release(k->layer);
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
        k.options = options_for("auto", true);
        tconv_layer_release(k.layer);
        tconv_tensors weights = TCONV_TENSORS_INIT;
        weights.filter = (tconv_tensor){both, GAP, NULL, NULL};
        weights.bias = (tconv_tensor){both, GAP + filter, NULL, NULL};
        tconv_layer *layers[2] = {make_layer(device->device, device->queue, &k, &weights)};
        assert_int_equal(weight_bytes(&k), tconv_plan_filter_bytes(plan_of(&k)));
        weights = (tconv_tensors)TCONV_TENSORS_INIT;
        weights.filter.host = t->filter;
        weights.bias.host = t->bias;
        layers[1] = make_layer(device->device, device->queue, &k, &weights);
        assert_int_equal(weight_bytes(&k), tconv_plan_filter_bytes(plan_of(&k)) + bias);
        cl_mem output = buffer_of(device, NULL, k.bytes);
        clReleaseMemObject(both); /* the layer is an owner, too */
        for (int i = 0; i < 2; i++) {
            k.layer = layers[i];
            run(device, &k, output);
            read_output(device, output, k.bytes, k.tensors.output);
            compare_with_oracle(device, &k.problem, "auto", true, &k.tensors);
            if (i == 0) tconv_layer_release(layers[0]);
        }
        clReleaseMemObject(output);
        free_known(&k);
    }
}

/* Filters that runs give: of a constant one, packed once, whatever the queue, only the first is
 * read; one that varies is read by every run. A run may bring its own workspace. */
static void runs_give_filters(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++)
        for (int use = TCONV_FILTER_VARIES; use <= TCONV_FILTER_WATCHED; use++) {
            const struct device *device = &devices[d];
            struct known k;
            tconv_error error;
            make_known(device, WITH_WORKSPACE, 7, &k);
            const struct tensors *t = &k.tensors;
            const size_t bytes = (size_t)t->geometry.filter_bytes;
            cl_command_queue queues[] = {new_queue(device, false), new_queue(device, true)};
            cl_mem filter = buffer_of(device, t->filter, bytes),
                   output = buffer_of(device, NULL, k.bytes),
                   workspace =
                       buffer_of(device, NULL, (size_t)tconv_plan_workspace_bytes(plan_of(&k)));
            tconv_layer_release(k.layer);
            expect_ok(
                tconv_layer_create(&device->device, 1, (tconv_filter_use)use, &k.layer, &error),
                &error);
            tconv_tensors tensors = TCONV_TENSORS_INIT;
            tensors.data.memory = k.data;
            tensors.filter.memory = filter;
            tensors.output.memory = output;
            for (int i = 0; i < 4; i++) {
                cl_event gate = new_gate(device), done;
                const tconv_run how = run_on(queues[i % 2], 1, &gate, &done);
                if (i == 2) tensors.workspace.memory = workspace;
                expect_ok(tconv_layer_run(k.layer, &k.problem, &k.options, &tensors, &how, &error),
                          &error);
                open_gate(gate);
                expect_ok(tconv_wait(done, &error), &error);
                clReleaseEvent(done);
                expect_known(device, &k, output);
            }
            tconv_layer_counts counts = TCONV_LAYER_COUNTS_INIT;
            expect_ok(tconv_layer_count(k.layer, &counts, &error), &error);
            assert_int_equal(counts.filters_packed, use == TCONV_FILTER_CONSTANT ? 1 : 4);
            assert_int_equal(counts.runs, 4);
            assert_int_equal(counts.plans_made, 1);
            /* A version tells a buffer's weights from others. */
            tensors.filter_version = 5;
            for (int i = 0; i < 2; i++) {
                const tconv_run how = run_on(device->queue, 0, NULL, NULL);
                expect_ok(tconv_layer_run(k.layer, &k.problem, &k.options, &tensors, &how, &error),
                          &error);
                expect_known(device, &k, output);
            }
            expect_ok(tconv_layer_count(k.layer, &counts, &error), &error);
            assert_int_equal(counts.filters_packed, use == TCONV_FILTER_VARIES    ? 6
                                                    : use == TCONV_FILTER_WATCHED ? 5
                                                                                  : 1);
            const cl_mem buffers[] = {filter, output, workspace};
            for (int i = 0; i < 3; i++) clReleaseMemObject(buffers[i]);
            for (int i = 0; i < 2; i++) clReleaseCommandQueue(queues[i]);
            free_known(&k);
        }
}

/* A packing that fails is the error of the runs that need it; the next one packs again. */
static void a_failed_packing_is_repeated(void **state)
{
    (void)state;
    const struct device *device = &devices[0];
    if (strcmp(device->info->platform, "Intel(R) OpenCL") == 0) return; /* it packs all the same */
    struct known k;
    tconv_error error;
    make_known(device, "auto", 7, &k);
    const size_t bytes = (size_t)k.tensors.geometry.filter_bytes;
    cl_mem filter = buffer_of(device, k.tensors.filter, bytes),
           output = buffer_of(device, NULL, k.bytes);
    tconv_layer_refresh(k.layer);
    tconv_tensors tensors = TCONV_TENSORS_INIT;
    tensors.data.memory = k.data;
    tensors.filter.memory = filter;
    tensors.output.memory = output;
    cl_event gate = new_gate(device), done;
    cl_command_queue queue = new_queue(device, false);
    tconv_run how = run_on(queue, 1, &gate, &done);
    expect_ok(tconv_layer_run(k.layer, &k.problem, &k.options, &tensors, &how, &error), &error);
    assert_int_equal(clSetUserEventStatus(gate, CL_INVALID_OPERATION), CL_SUCCESS);
    clReleaseEvent(gate);
    clWaitForEvents(1, &done); /* it fails; rusticl tells its commands later */
    clReleaseEvent(done);
    how = run_on(device->queue, 0, NULL, NULL);
    expect_error(tconv_layer_run(k.layer, &k.problem, &k.options, &tensors, &how, &error),
                 TCONV_ERROR_OPENCL, &error, "packing the weights of the layer");
    expect_ok(tconv_layer_run(k.layer, &k.problem, &k.options, &tensors, &how, &error), &error);
    expect_known(device, &k, output);
    clReleaseCommandQueue(queue);
    clReleaseMemObject(filter);
    clReleaseMemObject(output);
    free_known(&k);
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
            tconv_tensors weights = TCONV_TENSORS_INIT;
            const uint64_t bytes = weight_bytes(&k);
            float *other = malloc((size_t)k.tensors.geometry.filter_bytes);
            assert_non_null(other);
            for (size_t i = 0; i < k.tensors.filter_count; i++)
                other[i] = 2 * k.tensors.filter[i] + 1;
            weights.filter.host = other;
            expect_ok(enqueue_known(&k, queues[0], outputs[0], 1, &gate, &done[0], &error), &error);
            expect_ok(set(&k, queues[0], &weights, 1, &gate, &packed, &error), &error);
            memset(other, 0xff, (size_t)k.tensors.geometry.filter_bytes); /* it was copied */
            expect_ok(enqueue_known(&k, queues[1], outputs[1], 0, NULL, &done[1], &error), &error);
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
            assert_int_equal(weight_bytes(&k), bytes);
            /* Wrong weights change nothing. */
            weights.filter.host = NULL;
            expect_error(set(&k, queues[0], &weights, 0, NULL, NULL, &error), TCONV_ERROR_ARGUMENT,
                         &error, "tensors.filter is absent");
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

/* Another problem of the layer, which has weights. */
static void make_other(const struct device *device, const struct known *k,
                       const tconv_problem *problem, const char *algorithm, struct known *other)
{
    *other = (struct known){
        .problem = *problem, .layer = k->layer, .options = options_for(algorithm, false)};
    make_tensors(&other->problem, SMALL_INTEGERS, 9, &other->tensors);
    memcpy(other->tensors.filter, k->tensors.filter, (size_t)k->tensors.geometry.filter_bytes);
    other->bytes = (size_t)other->tensors.geometry.output_bytes;
    other->data =
        buffer_of(device, other->tensors.data, (size_t)other->tensors.geometry.data_bytes);
}

/* Runs it without a filter, on a queue and without one, and compares. */
static void compare_other(const struct device *device, struct known *other)
{
    tconv_error error;
    tconv_tensors tensors = TCONV_TENSORS_INIT;
    cl_mem output = buffer_of(device, NULL, other->bytes);
    run(device, other, output);
    read_output(device, output, other->bytes, other->tensors.output);
    compare_with_oracle(device, &other->problem, other->options.algorithm, false, &other->tensors);
    memset(other->tensors.output, 0xff, other->bytes);
    tensors.data.host = other->tensors.data;
    tensors.output.host = other->tensors.output;
    expect_ok(
        tconv_layer_run(other->layer, &other->problem, &other->options, &tensors, NULL, &error),
        &error);
    compare_with_oracle(device, &other->problem, other->options.algorithm, false, &other->tensors);
    clReleaseMemObject(output);
}

static void free_other(struct known *other)
{
    clReleaseMemObject(other->data);
    free_tensors(&other->tensors);
}

/* Other batches and extents with the same packed filter. If the library is to choose, it would
 * choose another algorithm on a CPU. */
static void weights_serve_other_problems(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++)
        for (int named = 0; named < 2; named++) {
            const struct device *device = &devices[d];
            struct known k, other;
            make_known(device, WITH_WORKSPACE, 5, &k);
            for (int i = 0; i < 4; i++) {
                const tconv_problem p = plane(1 + i % 2, 6, 10, i < 2 ? 3 : 40, 4, 2, 1);
                const uint64_t bytes = weight_bytes(&k);
                make_other(device, &k, &p, named ? WITH_WORKSPACE : "auto", &other);
                assert_string_equal(tconv_plan_algorithm(plan_of(&other)), WITH_WORKSPACE);
                compare_other(device, &other);
                assert_int_equal(weight_bytes(&k), bytes);
                free_other(&other);
            }
            free_known(&k);
        }
}

/* The tile of one problem need not suit the extents of another one. */
static void weights_serve_other_problems_whatever_the_tile(void **state)
{
    (void)state;
    const int64_t extents[][3] = {{7, 34, 18}, {1, 60, 2}, {4, 2, 60}, {2, 9, 9}};
    for (int d = 0; d < device_count; d++) {
        const struct device *device = &devices[d];
        struct known k = {.problem = plane(1, 16, 32, 15, 3, 2, 0),
                          .options = options_for("auto", false)},
                     other;
        k.problem.data.dim[3] = 33;
        make_tensors(&k.problem, SMALL_INTEGERS, 4, &k.tensors);
        const tconv_tensors weights = weights_of(&k.tensors);
        make_layer(device->device, device->queue, &k, &weights);
        for (size_t i = 0; i < sizeof extents / sizeof *extents; i++) {
            tconv_problem p = plane(extents[i][0], 16, 32, extents[i][1], 3, 2, 0);
            p.data.dim[3] = extents[i][2];
            make_other(device, &k, &p, "auto", &other);
            compare_other(device, &other);
            free_other(&other);
        }
        tconv_layer_release(k.layer);
        free_tensors(&k.tensors);
    }
}

/* New weights that arrive while a run makes its plans. */
struct change {
    const struct device *device;
    const struct known *known;
    const tconv_tensors *weights;
    int plans;
};

static void change_inside(void *to, const tconv_trace_event *event)
{
    struct change *change = to;
    tconv_error error;
    if (event->kind == TCONV_TRACE_PLAN && ++change->plans == 2) /* that of the kept filter */
        expect_ok(set(change->known, change->device->queue, change->weights, 0, NULL, NULL, &error),
                  &error);
}

/* A run that takes the algorithm of the filter that was set has filter and bias of one set, also if
 * the new ones are of another algorithm. Some devices choose that algorithm anyway. */
static void weights_change_together(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * device_count; i++) {
        const struct device *device = &devices[i / 2];
        const tconv_problem p = plane(1, 6, 10, 40, 4, 2, 1);
        struct known k, other;
        tconv_error error;
        make_known(device, WITH_WORKSPACE, 5, &k);
        make_other(device, &k, &p, "auto", &other);
        k.options.epilogue.bias = other.options.epilogue.bias = true;
        float *const old = calloc(other.tensors.channels, sizeof *old);
        assert_non_null(old);
        tconv_tensors weights = weights_of(&k.tensors);
        weights.bias.host = old;
        expect_ok(set(&k, device->queue, &weights, 0, NULL, NULL, &error), &error);
        other.tensors.filter[0] += 1;
        if (i % 2 == 1) k.options.algorithm = "reference";
        weights = weights_of(&other.tensors);
        weights.bias.host = other.tensors.bias;
        struct change change = {device, &k, &weights, 0};
        expect_ok(tconv_device_set_trace(device->device, TCONV_TRACE_PLAN, change_inside, &change,
                                         &error),
                  &error);
        cl_mem output = buffer_of(device, NULL, other.bytes);
        run(device, &other, output);
        expect_ok(tconv_device_set_trace(device->device, 0, NULL, NULL, &error), &error);
        if (strcmp(device->info->name, "Fake CPU") == 0) assert_true(change.plans >= 2);
        if (change.plans >= 2) {
            read_output(device, output, other.bytes, other.tensors.output);
            compare_with_oracle(device, &p, "auto", true, &other.tensors);
        }
        clReleaseMemObject(output);
        free(old);
        free_other(&other);
        free_known(&k);
    }
}

static void weights_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    struct known k;
    tconv_error error;
    make_known(&devices[0], WITH_WORKSPACE, 5, &k);
    cl_mem output = buffer_of(&devices[0], NULL, k.bytes);
    struct known other = k;
    other.problem = plane(1, 6, 10, 5, 3, 2, 1);
    expect_error(enqueue_known(&other, devices[0].queue, output, 0, NULL, NULL, &error),
                 TCONV_ERROR_MISMATCH, &error, "packed for other channels, taps, types, formats");
    other = k;
    other.options.epilogue.bias = true;
    expect_error(enqueue_known(&other, devices[0].queue, output, 0, NULL, NULL, &error),
                 TCONV_ERROR_ARGUMENT, &error,
                 "tensors.bias is absent, but options.epilogue.bias is true");
    other = k;
    other.options = options_for("reference", false);
    expect_error(enqueue_known(&other, devices[0].queue, output, 0, NULL, NULL, &error),
                 TCONV_ERROR_MISMATCH, &error, "its algorithm reference");
    tconv_plan *none = NULL;
    expect_error(tconv_layer_plan(k.layer, &other.problem, &other.options, &none, &error),
                 TCONV_ERROR_MISMATCH, &error, "its algorithm reference");
    tconv_layer_refresh(k.layer);
    expect_error(enqueue_known(&k, devices[0].queue, output, 0, NULL, NULL, &error),
                 TCONV_ERROR_ARGUMENT, &error, "the layer keeps no filter");
    assert_null(none);
    clReleaseMemObject(output);
    free_known(&k);
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
            if (!report(t, set(k, t->queue, &same, 0, NULL, NULL, &error), &error)) break;
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

/* ---- wrong calls ---- */

static void wrong_weights(void **state)
{
    (void)state;
    const struct device *device = &devices[0];
    struct known k;
    tconv_error error;
    make_known(device, WITH_WORKSPACE, 7, &k);
    struct known biased = k;
    biased.options = options_for(WITH_WORKSPACE, true);
    tconv_tensors weights = weights_of(&k.tensors);
#define SET(known, weights, status, words)                                                         \
    expect_error(set(known, device->queue, weights, 0, NULL, NULL, &error), status, &error, words)
    expect_error(tconv_layer_set(NULL, &k.problem, NULL, &weights, NULL, &error),
                 TCONV_ERROR_ARGUMENT, &error, "layer is NULL");
    expect_error(tconv_layer_set(k.layer, NULL, NULL, &weights, NULL, &error), TCONV_ERROR_ARGUMENT,
                 &error, "problem is NULL");
    SET(&k, NULL, TCONV_ERROR_ARGUMENT, "tensors is NULL");
    SET(&biased, &weights, TCONV_ERROR_ARGUMENT,
        "tensors.bias is absent, but options.epilogue.bias is true");
    weights.slope.host = k.tensors.filter;
    SET(&k, &weights, TCONV_ERROR_ARGUMENT,
        "tensors.slope is given, but options.epilogue.activation is none");
    weights = weights_of(&k.tensors);
    weights.filter.memory = k.data;
    SET(&k, &weights, TCONV_ERROR_ARGUMENT, "tensors.filter has both an array of the host");
    weights.filter.host = NULL;
    weights.filter.offset = 4;
    SET(&k, &weights, TCONV_ERROR_BUFFER, "tensors.filter is too small");
    weights = weights_of(&k.tensors);
    weights.data.memory = k.data;
    SET(&k, &weights, TCONV_ERROR_ARGUMENT, "tensors.data is given, but only filter, bias");
    /* What no execution could read. */
    const size_t channels = 4 * k.tensors.channels;
    cl_mem small = buffer_of(device, NULL, channels - 4), written = NULL;
    cl_int code;
    written = clCreateBuffer(device->context, CL_MEM_WRITE_ONLY, channels, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    weights = weights_of(&k.tensors);
    weights.bias.memory = small;
    SET(&biased, &weights, TCONV_ERROR_BUFFER, "tensors.bias is too small: its buffer has ");
    weights.bias.memory = k.data;
    weights.bias.offset = 2;
    SET(&biased, &weights, TCONV_ERROR_BUFFER,
        "tensors.bias begins at byte 2, which is not a multiple of 4");
    weights.bias = (tconv_tensor){written, 0, NULL, NULL};
    SET(&biased, &weights, TCONV_ERROR_BUFFER, "tensors.bias was made with CL_MEM_WRITE_ONLY");
    weights.bias.pointer = &weights;
    SET(&biased, &weights, TCONV_ERROR_ARGUMENT, "tensors.bias has both a buffer");
    weights = weights_of(&k.tensors);
    weights.struct_size = 8;
    SET(&k, &weights, TCONV_ERROR_ARGUMENT, "struct_size of tensors");
    weights = weights_of(&k.tensors);
    struct known wide = k;
    wide.problem.data.dim[1] = 3;
    SET(&wide, &weights, TCONV_ERROR_SHAPE, "channels");
    /* The old weights stay, with a vector that other problems cannot have. */
    cl_mem output = buffer_of(device, NULL, k.bytes);
    weights.bias.host = k.tensors.filter;
    expect_ok(set(&biased, device->queue, &weights, 0, NULL, NULL, &error), &error);
    weights.bias.host = NULL;
    weights.bias.memory = small;
    SET(&biased, &weights, TCONV_ERROR_BUFFER, "tensors.bias is too small");
    expect_ok(enqueue_known(&biased, device->queue, output, 0, NULL, NULL, &error), &error);
    run(device, &k, output); /* the same filter, without a bias */
    expect_known(device, &k, output);
    clReleaseMemObject(small);
    clReleaseMemObject(written);
    clReleaseMemObject(output);
    free_known(&k);
}

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
    run(device, &k, output);
    expect_known(device, &k, output);
    const uint64_t pool = tconv_device_workspace_bytes(device->device);
    tensors.output.memory = k.data;
    RUN(TCONV_ERROR_BUFFER, "tensors.output");
    assert_int_equal(tconv_device_workspace_bytes(device->device), pool);
    run(device, &k, output);
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
        cmocka_unit_test(weights_may_be_buffers),
        cmocka_unit_test(runs_give_filters),
        cmocka_unit_test(a_failed_packing_is_repeated),
        cmocka_unit_test(buffers_need_no_queue),
        smoke_test(weights_are_replaced),
        cmocka_unit_test(weights_serve_other_problems),
        cmocka_unit_test(weights_serve_other_problems_whatever_the_tile),
        cmocka_unit_test(weights_change_together),
        cmocka_unit_test(weights_that_do_not_fit_are_refused),
        cmocka_unit_test(layers_on_an_in_order_queue_share_a_workspace),
        smoke_test(executions_that_may_overlap_have_workspaces),
        cmocka_unit_test(a_trimmed_pool_serves_later_executions),
        smoke_test(release_while_commands_are_pending),
        cmocka_unit_test(threads_share_layers_and_the_pool),
        cmocka_unit_test(wrong_weights),
        cmocka_unit_test(wrong_runs),
        cmocka_unit_test(an_empty_batch_keeps_the_order),
    };
    return run_smoke_or_all("layer_queue", tests, open_all_devices, close_all_devices);
}
