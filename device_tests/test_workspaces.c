/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of workspaces of a device: when its memory is full, and when many are taken at once. */
#include "device/workspace.h"
#include "faults.h"
#include "setup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* Makes a layer whose executions need a workspace. */
static tconv_layer *make_layer(const struct device *device, const struct setup *s)
{
    tconv_layer *layer;
    tconv_error error;
    const tconv_plan_options options = options_for(s->algorithm, false);
    tconv_tensors weights = TCONV_TENSORS_INIT;
    weights.filter.host = s->tensors.filter;
    expect_ok(tconv_layer_create(&device->device, 1, TCONV_FILTER_CONSTANT, &layer, &error),
              &error);
    expect_ok(tconv_layer_set(layer, &s->problem, &options, &weights, NULL, &error), &error);
    return layer;
}

static tconv_status enqueue_layer(tconv_layer *layer, const struct setup *s, cl_command_queue queue,
                                  cl_mem output, const cl_event *wait, cl_event *done,
                                  tconv_error *error)
{
    const tconv_plan_options options = options_for(s->algorithm, false);
    tconv_tensors tensors = TCONV_TENSORS_INIT;
    tconv_run run = TCONV_RUN_INIT;
    tensors.data.memory = s->data;
    tensors.output.memory = output;
    run.queue = queue;
    run.wait_count = wait != NULL;
    run.wait = wait;
    run.done = done;
    return tconv_layer_run(layer, &s->problem, &options, &tensors, &run, error);
}

static void expect_output(struct setup *s, cl_command_queue queue, cl_mem output)
{
    assert_int_equal(clEnqueueReadBuffer(queue, output, CL_TRUE, 0, s->output_bytes,
                                         s->tensors.output, 0, NULL, NULL),
                     CL_SUCCESS);
    compare_with_oracle(s->device, &s->problem, s->algorithm, false, &s->tensors);
}

static void fill_memory(void)
{
    fault_arm(fault_call_named("clCreateBuffer"), 1, CL_MEM_OBJECT_ALLOCATION_FAILURE);
}

/* If there is no memory for another workspace, an execution waits for the one that is in use. If
 * there is none, it fails; a later one works. */
static void executions_wait_if_memory_is_full(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        const struct device *device = &devices[d];
        const tconv_problem p = plane(1, 6, 10, 20, 4, 2, 1);
        struct setup s;
        tconv_error error;
        cl_int code, ended = CL_QUEUED;
        set_up(&s, device, &p, "gather_group", false, SMALL_INTEGERS);
        tconv_layer *layer = make_layer(device, &s);
        cl_event gate = new_gate(device), done;
        cl_command_queue other = clCreateCommandQueue(device->context, id_of(device), 0, &code);
        assert_int_equal(code, CL_SUCCESS);
        cl_mem own = buffer_of(device, NULL, s.output_bytes);
        expect_ok(enqueue_layer(layer, &s, device->queue, s.output, &gate, NULL, &error), &error);
        fill_memory();
        const tconv_status status = enqueue_layer(layer, &s, other, own, NULL, &done, &error);
        assert_true(fault_disarm());
        expect_ok(status, &error);
        assert_int_equal(tconv_device_workspace_bytes(device->device), s.workspace_bytes);
        assert_int_equal(clFlush(other), CL_SUCCESS);
        nanosleep(&(struct timespec){0, 50000000}, NULL);
        assert_int_equal(
            clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof ended, &ended, NULL),
            CL_SUCCESS);
        assert_true(ended > CL_COMPLETE);
        assert_int_equal(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
        expect_output(&s, device->queue, s.output);
        expect_output(&s, other, own);

        tconv_device_trim_workspaces(device->device);
        fill_memory();
        const tconv_status refused = enqueue_layer(layer, &s, other, own, NULL, NULL, &error);
        assert_true(fault_disarm());
        expect_error(refused, TCONV_ERROR_DEVICE_MEMORY, &error, "creating a workspace of");
        assert_int_equal(tconv_device_workspace_bytes(device->device), 0);
        expect_ok(enqueue_layer(layer, &s, other, own, NULL, NULL, &error), &error);
        expect_output(&s, other, own);
        clReleaseEvent(done);
        clReleaseEvent(gate);
        clReleaseMemObject(own);
        clReleaseCommandQueue(other);
        tconv_layer_release(layer);
        tear_down(&s);
    }
}

/* As many as threads ask for at once, but no more are kept than device.h says. */
static void few_workspaces_are_kept(void **state)
{
    (void)state;
    enum { TAKEN = TCONV_MOST_WORKSPACES + 3, BYTES = 1000 };
    for (int d = 0; d < device_count; d++) {
        tconv_device *device = devices[d].device;
        struct tconv_workspace *taken[TAKEN];
        tconv_error error;
        tconv_device_trim_workspaces(device);
        for (int turn = 0; turn < 2; turn++) {
            for (int i = 0; i < TAKEN; i++) {
                expect_ok(tconv_workspace_take(device, BYTES, devices[d].queue, &taken[i], &error),
                          &error);
                assert_false(taken[i]->waits);
                for (int j = 0; j < i; j++) assert_true(taken[i]->memory != taken[j]->memory);
            }
            assert_int_equal(tconv_device_workspace_bytes(device), TAKEN * BYTES);
            for (int i = 0; i < TAKEN; i++) tconv_workspace_give_back_unused(device, taken[i]);
            assert_int_equal(tconv_device_workspace_bytes(device), TCONV_MOST_WORKSPACES * BYTES);
        }
        tconv_device_trim_workspaces(device);
        assert_int_equal(tconv_device_workspace_bytes(device), 0);
    }
}

/* What an execution that failed had is forgotten: nobody knows when its commands end. */
static void workspaces_of_failed_executions_go(void **state)
{
    (void)state;
    enum { BYTES = 1000 };
    for (int d = 0; d < device_count; d++) {
        tconv_device *device = devices[d].device;
        struct tconv_workspace *taken[TCONV_MOST_WORKSPACES], *next;
        tconv_error error;
        tconv_device_trim_workspaces(device);
        for (int i = 0; i < TCONV_MOST_WORKSPACES; i++)
            expect_ok(tconv_workspace_take(device, BYTES, devices[d].queue, &taken[i], &error),
                      &error);
        for (int i = 0; i < TCONV_MOST_WORKSPACES; i++) {
            cl_event failing = new_gate(&devices[d]);
            assert_int_equal(clSetUserEventStatus(failing, -1), CL_SUCCESS);
            tconv_workspace_give_back(device, taken[i], failing);
        }
        expect_ok(tconv_workspace_take(device, BYTES, devices[d].queue, &next, &error), &error);
        assert_false(next->waits);
        assert_int_equal(tconv_device_workspace_bytes(device), BYTES);
        tconv_workspace_give_back_unused(device, next);
        tconv_device_trim_workspaces(device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(executions_wait_if_memory_is_full),
                                       cmocka_unit_test(few_workspaces_are_kept),
                                       cmocka_unit_test(workspaces_of_failed_executions_go)};
    return cmocka_run_group_tests_name("workspaces", tests, open_all_devices, close_all_devices);
}
