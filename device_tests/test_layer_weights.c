/* SPDX-License-Identifier: Apache-2.0 */
/* The weights of layers on the application's queues: as arrays, as buffers, given by runs, replaced
 * while commands wait, used for other problems, and wrong ones. */
#include "known_layer.h"
#include "smoke.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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
            run_known(device, &k, output);
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
            expect_ok(set_weights(&k, queues[0], &weights, 1, &gate, &packed, &error), &error);
            memset(other, 0xff, (size_t)k.tensors.geometry.filter_bytes); /* it was copied */
            expect_ok(enqueue_known(&k, queues[1], outputs[1], 0, NULL, &done[1], &error), &error);
            clFlush(queues[1]);
            assert_false(has_ended(done[1])); /* it waits for the packing */
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
            run_known(device, &k, outputs[0]);
            expect_known(device, &k, outputs[0]);
            assert_int_equal(weight_bytes(&k), bytes);
            /* Wrong weights change nothing. */
            weights.filter.host = NULL;
            expect_error(set_weights(&k, queues[0], &weights, 0, NULL, NULL, &error),
                         TCONV_ERROR_ARGUMENT, &error, "tensors.filter is absent");
            run_known(device, &k, outputs[1]);
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
    run_known(device, other, output);
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
        expect_ok(set_weights(change->known, change->device->queue, change->weights, 0, NULL, NULL,
                              &error),
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
        expect_ok(set_weights(&k, device->queue, &weights, 0, NULL, NULL, &error), &error);
        other.tensors.filter[0] += 1;
        if (i % 2 == 1) k.options.algorithm = "reference";
        weights = weights_of(&other.tensors);
        weights.bias.host = other.tensors.bias;
        struct change change = {device, &k, &weights, 0};
        expect_ok(tconv_device_set_trace(device->device, TCONV_TRACE_PLAN, change_inside, &change,
                                         &error),
                  &error);
        cl_mem output = buffer_of(device, NULL, other.bytes);
        run_known(device, &other, output);
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
    expect_error(set_weights(known, device->queue, weights, 0, NULL, NULL, &error), status,        \
                 &error, words)
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
    expect_ok(set_weights(&biased, device->queue, &weights, 0, NULL, NULL, &error), &error);
    weights.bias.host = NULL;
    weights.bias.memory = small;
    SET(&biased, &weights, TCONV_ERROR_BUFFER, "tensors.bias is too small");
    expect_ok(enqueue_known(&biased, device->queue, output, 0, NULL, NULL, &error), &error);
    run_known(device, &k, output); /* the same filter, without a bias */
    expect_known(device, &k, output);
    clReleaseMemObject(small);
    clReleaseMemObject(written);
    clReleaseMemObject(output);
    free_known(&k);
}

int main(void)
{
    struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_may_be_buffers),
        cmocka_unit_test(runs_give_filters),
        cmocka_unit_test(a_failed_packing_is_repeated),
        smoke_test(weights_are_replaced),
        cmocka_unit_test(weights_serve_other_problems),
        cmocka_unit_test(weights_serve_other_problems_whatever_the_tile),
        cmocka_unit_test(weights_change_together),
        cmocka_unit_test(weights_that_do_not_fit_are_refused),
        cmocka_unit_test(wrong_weights),
    };
    return run_smoke_or_all("layer_weights", tests, open_all_devices, close_all_devices);
}
