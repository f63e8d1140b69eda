/* SPDX-License-Identifier: Apache-2.0 */
/* Makes, runs and releases a plan with its buffers. */
#include "setup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

tconv_problem plane(int64_t n, int64_t ci, int64_t co, int64_t x, int64_t k, int64_t s, int64_t pad)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    set_shape(&p.data, 4, (int64_t[]){n, ci, x, x});
    set_shape(&p.filter, 4, (int64_t[]){ci, co, k, k});
    set_list(&p.strides, 2, (int64_t[]){s, s});
    set_list(&p.pads_begin, 2, (int64_t[]){pad, pad});
    set_list(&p.pads_end, 2, (int64_t[]){pad, pad});
    return p;
}

tconv_problem plane_for(const char *algorithm, int64_t n, int64_t ci, int64_t co, int64_t x,
                        int64_t k, int64_t s, int64_t pad)
{
    if (strcmp(algorithm, "phases_vector") == 0) return plane(n, ci, co, x, 8, 4, pad);
    tconv_problem p = plane(n, ci, co, x, k, s, pad);
    if (strcmp(algorithm, "gather_dot") == 0 || strcmp(algorithm, "matrix_group") == 0 ||
        strcmp(algorithm, "dot_vector") == 0) {
        p.data_type = p.filter_type = TCONV_I8;
        p.output_type = TCONV_I32;
    }
    if (is_difference_form(algorithm)) {
        p.operation = TCONV_UPSAMPLE_CONV;
        set_shape(&p.filter, 4, (int64_t[]){co, ci, 3, 3});
    }
    if (strcmp(algorithm, "depthwise_vector") != 0) return p;
    p.operation = TCONV_ONEAPI_CONV_BACKPROP;
    p.data_format = TCONV_NXC;
    p.filter_format = TCONV_OIX;
    p.groups = ci;
    set_shape(&p.data, 4, (int64_t[]){n, x, x, ci});
    set_shape(&p.filter, 4, (int64_t[]){ci, 1, k, k});
    return p;
}

cl_mem buffer_of(const struct device *device, const void *contents, size_t bytes)
{
    cl_int code;
    const cl_mem_flags copy = contents == NULL ? 0 : CL_MEM_COPY_HOST_PTR;
    cl_mem buffer = clCreateBuffer(device->context, CL_MEM_READ_WRITE | copy,
                                   bytes == 0 ? 1 : bytes, (void *)contents, &code);
    assert_int_equal(code, CL_SUCCESS);
    return buffer;
}

cl_event new_gate(const struct device *device)
{
    cl_int code;
    cl_event gate = clCreateUserEvent(device->context, &code);
    if (code != CL_SUCCESS) failed("no user event: %d", code);
    return gate;
}

cl_device_id id_of(const struct device *device)
{
    cl_device_id id;
    assert_int_equal(clGetCommandQueueInfo(device->queue, CL_QUEUE_DEVICE, sizeof id, &id, NULL),
                     CL_SUCCESS);
    return id;
}

tconv_device *device_with_cache(const struct device *device, const char *folder)
{
    tconv_error error;
    tconv_device *own;
    expect_ok(tconv_device_create(device->context, id_of(device), &own, &error), &error);
    expect_ok(tconv_device_set_cache(own, folder, 0, &error), &error);
    return own;
}

void expect_ok(tconv_status status, const tconv_error *error)
{
    if (status != TCONV_OK) failed("%s: %s", tconv_status_name(status), error->message);
}

void expect_error(tconv_status got, tconv_status wanted, const tconv_error *error,
                  const char *words)
{
    if (got != wanted)
        failed("%s, not %s: %s", tconv_status_name(got), tconv_status_name(wanted),
               got == TCONV_OK ? "" : error->message);
    assert_int_equal(error->status, wanted);
    if (strstr(error->message, words) == NULL)
        failed("\"%s\" is not in: %s", words, error->message);
}

tconv_plan_options options_for(const char *algorithm, bool bias)
{
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.algorithm = algorithm;
    options.epilogue.bias = bias;
    if (algorithm != NULL && strcmp(algorithm, "winograd_vector") == 0)
        options.math = TCONV_MATH_FAST;
    return options;
}

void set_up(struct setup *s, const struct device *device, const tconv_problem *problem,
            const char *algorithm, bool bias, enum contents contents)
{
    tconv_error error;
    *s = (struct setup){
        .device = device, .algorithm = algorithm, .problem = *problem, .args = TCONV_TENSORS_INIT};
    struct tensors *t = &s->tensors;
    make_tensors(problem, contents, 17, t);
    const tconv_plan_options options = options_for(algorithm, bias);
    expect_ok(tconv_plan_create(device->device, problem, &options, &s->plan, &error), &error);
    expect_ok(tconv_packed_filter_create(s->plan, NULL, &s->filter, &error), &error);
    t->error_factor = tconv_plan_error_factor(s->plan);
    s->output_bytes = (size_t)t->geometry.output_bytes;
    s->workspace_bytes = (size_t)tconv_plan_workspace_bytes(s->plan);
    s->data = buffer_of(device, t->data, (size_t)t->geometry.data_bytes);
    s->weights = buffer_of(device, t->filter, (size_t)t->geometry.filter_bytes);
    s->bias = buffer_of(device, t->bias, t->channels * tconv_type_size(t->geometry.output_type));
    s->output = buffer_of(device, NULL, s->output_bytes);
    s->workspace = buffer_of(device, NULL, s->workspace_bytes);
    s->args.packed = s->filter;
    s->args.data.memory = s->data;
    if (bias) s->args.bias.memory = s->bias;
    s->args.output.memory = s->output;
    s->args.workspace.memory = s->workspace;
}

void tear_down(struct setup *s)
{
    tconv_packed_filter_release(s->filter);
    tconv_plan_release(s->plan);
    const cl_mem buffers[] = {s->data, s->weights, s->bias, s->output, s->workspace};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) clReleaseMemObject(buffers[i]);
    free_tensors(&s->tensors);
}

void pack(struct setup *s)
{
    tconv_error error;
    expect_ok(tconv_packed_filter_enqueue_pack(s->filter, s->device->queue,
                                               &(tconv_tensor){.memory = s->weights}, 0, NULL, NULL,
                                               &error),
              &error);
}

void enqueue(struct setup *s)
{
    tconv_error error;
    expect_ok(tconv_plan_enqueue(s->plan, s->device->queue, &s->args, 0, NULL, NULL, &error),
              &error);
}

void download(struct setup *s, cl_uint waits, const cl_event *wait)
{
    assert_int_equal(clEnqueueReadBuffer(s->device->queue, s->output, CL_TRUE, 0, s->output_bytes,
                                         s->tensors.output, waits, wait, NULL),
                     CL_SUCCESS);
}
