/* SPDX-License-Identifier: Apache-2.0 */
/* Makes, runs and compares layers on queues. */
#include "known_layer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

void open_gate(cl_event gate)
{
    assert_int_equal(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    clReleaseEvent(gate);
}

bool has_out_of_order(const struct device *device)
{
    cl_command_queue_properties properties = 0;
    assert_int_equal(clGetDeviceInfo(id_of(device), CL_DEVICE_QUEUE_PROPERTIES, sizeof properties,
                                     &properties, NULL),
                     CL_SUCCESS);
    return (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0;
}

cl_command_queue new_queue(const struct device *device, bool in_order)
{
    cl_int code;
    in_order = in_order || !has_out_of_order(device);
    cl_command_queue queue =
        clCreateCommandQueue(device->context, id_of(device),
                             in_order ? 0 : CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code);
    assert_int_equal(code, CL_SUCCESS);
    return queue;
}

bool has_ended(cl_event event)
{
    cl_int state = CL_QUEUED;
    nanosleep(&(struct timespec){0, 50000000}, NULL);
    assert_int_equal(
        clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL),
        CL_SUCCESS);
    return state == CL_COMPLETE;
}

tconv_tensors weights_of(const struct tensors *t)
{
    tconv_tensors weights = TCONV_TENSORS_INIT;
    weights.filter.host = t->filter;
    weights.scale.host = t->epilogue.scale ? t->scale : NULL;
    weights.slope.host = tconv_activation_has_slope(t->epilogue.activation) ? t->slope : NULL;
    weights.slope2.host = t->slope2;
    return weights;
}

tconv_run run_on(cl_command_queue queue, cl_uint wait_count, const cl_event *wait, cl_event *done)
{
    tconv_run run = TCONV_RUN_INIT;
    run.queue = queue;
    run.wait_count = wait_count;
    run.wait = wait;
    run.done = done;
    return run;
}

tconv_status set_weights(const struct known *k, cl_command_queue queue,
                         const tconv_tensors *weights, cl_uint wait_count, const cl_event *wait,
                         cl_event *done, tconv_error *error)
{
    const tconv_run how = run_on(queue, wait_count, wait, done);
    return tconv_layer_set(k->layer, &k->problem, &k->options, weights, &how, error);
}

tconv_layer *make_layer(tconv_device *device, cl_command_queue queue, struct known *k,
                        const tconv_tensors *weights)
{
    tconv_error error;
    expect_ok(tconv_layer_create(&device, 1, TCONV_FILTER_CONSTANT, &k->layer, &error), &error);
    expect_ok(set_weights(k, queue, weights, 0, NULL, NULL, &error), &error);
    return k->layer;
}

tconv_plan *plan_of(const struct known *k)
{
    tconv_plan *plan;
    tconv_error error;
    expect_ok(tconv_layer_plan(k->layer, &k->problem, &k->options, &plan, &error), &error);
    tconv_plan_release(plan); /* the layer keeps it */
    return plan;
}

uint64_t weight_bytes(const struct known *k)
{
    tconv_layer_counts counts = TCONV_LAYER_COUNTS_INIT;
    tconv_error error;
    expect_ok(tconv_layer_count(k->layer, &counts, &error), &error);
    return counts.weight_bytes;
}

tconv_status enqueue_known(const struct known *k, cl_command_queue queue, cl_mem output,
                           cl_uint wait_count, const cl_event *wait, cl_event *done,
                           tconv_error *error)
{
    tconv_tensors tensors = TCONV_TENSORS_INIT;
    tensors.data.memory = k->data;
    tensors.output.memory = output;
    const tconv_run how = run_on(queue, wait_count, wait, done);
    return tconv_layer_run(k->layer, &k->problem, &k->options, &tensors, &how, error);
}

void run_known(const struct device *device, const struct known *k, cl_mem output)
{
    tconv_error error;
    expect_ok(enqueue_known(k, device->queue, output, 0, NULL, NULL, &error), &error);
}

void read_output(const struct device *device, cl_mem output, size_t bytes, void *target)
{
    assert_int_equal(
        clEnqueueReadBuffer(device->queue, output, CL_TRUE, 0, bytes, target, 0, NULL, NULL),
        CL_SUCCESS);
}

void make_known(const struct device *device, const char *algorithm, int extent, struct known *k)
{
    k->options = options_for(algorithm, false);
    k->problem = plane_for(algorithm, 1, 6, 10, extent, 4, 2, 1);
    make_tensors(&k->problem, SMALL_INTEGERS, 4, &k->tensors);
    const tconv_tensors weights = weights_of(&k->tensors);
    make_layer(device->device, device->queue, k, &weights);
    k->bytes = (size_t)k->tensors.geometry.output_bytes;
    k->data = buffer_of(device, k->tensors.data, (size_t)k->tensors.geometry.data_bytes);
    cl_mem output = buffer_of(device, NULL, k->bytes);
    run_known(device, k, output);
    read_output(device, output, k->bytes, k->tensors.output);
    clReleaseMemObject(output);
    compare_with_oracle(device, &k->problem, algorithm, false, &k->tensors);
}

void free_known(struct known *k)
{
    tconv_layer_release(k->layer);
    clReleaseMemObject(k->data);
    free_tensors(&k->tensors);
}

void expect_known(const struct device *device, const struct known *k, cl_mem output)
{
    void *result = malloc(k->bytes);
    assert_non_null(result);
    read_output(device, output, k->bytes, result);
    assert_memory_equal(result, k->tensors.output, k->bytes);
    free(result);
}
