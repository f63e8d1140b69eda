/* SPDX-License-Identifier: Apache-2.0 */
/* A layer with weights whose result is known, for tests of layers on queues. */
#ifndef TCONV_DEVICE_TESTS_KNOWN_LAYER_H
#define TCONV_DEVICE_TESTS_KNOWN_LAYER_H

#include "setup.h"

#define WITH_WORKSPACE "gather_group" /* an algorithm */

/* A layer with its tensors and its result, for executions that must all give the same bits. */
struct known {
    tconv_problem problem;
    tconv_plan_options options;
    struct tensors tensors;
    tconv_layer *layer;
    cl_mem data;
    size_t bytes; /* of the output */
};

/* Ends an event of new_gate, and releases it. */
void open_gate(cl_event gate);

/* True if the device has queues that are out of order. */
bool has_out_of_order(const struct device *device);

/* In order, too, if the device has no others. */
cl_command_queue new_queue(const struct device *device, bool in_order);

/* True if the event has ended. The device has had time to end it, if it could. */
bool has_ended(cl_event event);

/* Filter, scale and slopes of an epilogue, as arrays of the host. */
tconv_tensors weights_of(const struct tensors *t);
tconv_run run_on(cl_command_queue queue, cl_uint wait_count, const cl_event *wait, cl_event *done);

/* tconv_layer_set of a known layer, on a queue. */
tconv_status set_weights(const struct known *k, cl_command_queue queue,
                         const tconv_tensors *weights, cl_uint wait_count, const cl_event *wait,
                         cl_event *done, tconv_error *error);

/* Makes a layer of a known problem, with its weights. */
tconv_layer *make_layer(tconv_device *device, cl_command_queue queue, struct known *k,
                        const tconv_tensors *weights);

/* The layer's plan of the problem; the layer keeps it. */
tconv_plan *plan_of(const struct known *k);
uint64_t weight_bytes(const struct known *k);

/* Runs the layer on a queue, or on that of the device. */
tconv_status enqueue_known(const struct known *k, cl_command_queue queue, cl_mem output,
                           cl_uint wait_count, const cl_event *wait, cl_event *done,
                           tconv_error *error);
void run_known(const struct device *device, const struct known *k, cl_mem output);
void read_output(const struct device *device, cl_mem output, size_t bytes, void *target);

/* A layer of an algorithm, for an image of this extent, with its result, which the oracle has. */
void make_known(const struct device *device, const char *algorithm, int extent, struct known *k);
void free_known(struct known *k);

/* Compares an output with the known result. */
void expect_known(const struct device *device, const struct known *k, cl_mem output);

#endif
