/* SPDX-License-Identifier: Apache-2.0 */
/* Running and verifying one layer. */
#include "trial.h"

#include "oracle/oracle.h"
#include "roofs.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool give_up(struct trial *t, tconv_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool give_up(struct trial *t, tconv_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(t->error, sizeof t->error, format, arguments);
    va_end(arguments);
    t->status = status;
    return false;
}

static bool give_up_call(struct trial *t, const tconv_error *error)
{
    return give_up(t, error->status, "%s", error->message);
}

/* Layers that do not fit are told before anything is allocated. */
static bool check_fit(struct trial *t)
{
    const tconv_device_info *d = tconv_device_properties(tconv_host_device(t->host));
    const struct {
        const char *what;
        uint64_t bytes;
    } tensors[] = {{"data", t->geometry.data_bytes},
                   {"filter", t->geometry.filter_bytes},
                   {"output", t->geometry.output_bytes}};
    uint64_t sum = 0;
    int largest = 0;
    for (int i = 0; i < 3; i++) {
        sum += tensors[i].bytes;
        if (tensors[i].bytes > tensors[largest].bytes) largest = i;
    }
    if (tensors[largest].bytes > d->allocation_limit)
        return give_up(
            t, TCONV_ERROR_DEVICE_MEMORY,
            "does not fit: its %s takes %.3f GB, the device allows %.3f GB in one buffer",
            tensors[largest].what, 1e-9 * (double)tensors[largest].bytes,
            1e-9 * (double)d->allocation_limit);
    if (sum > d->global_memory)
        return give_up(t, TCONV_ERROR_DEVICE_MEMORY,
                       "does not fit: its tensors take %.3f GB, the device has %.3f GB",
                       1e-9 * (double)sum, 1e-9 * (double)d->global_memory);
    return true;
}

/* Reproducible numbers in [-2, 2). */
static float *make_array(uint64_t bytes, uint32_t seed)
{
    const size_t count = (size_t)bytes / sizeof(float);
    float *array = malloc(count == 0 ? 1 : count * sizeof *array);
    for (size_t i = 0; array != NULL && i < count; i++) {
        seed = seed * 1664525U + 1013904223U;
        array[i] = (float)(int32_t)seed * 0x1p-30F;
    }
    return array;
}

/* A buffer with the contents of an array, or empty; none for no bytes. */
static bool make_buffer(struct trial *t, const char *what, const void *source, uint64_t bytes,
                        cl_mem *buffer)
{
    if (bytes == 0) return true;
    cl_int code;
    *buffer =
        clCreateBuffer(tconv_host_context(t->host), CL_MEM_READ_WRITE, (size_t)bytes, NULL, &code);
    if (code == CL_SUCCESS && source != NULL)
        code = clEnqueueWriteBuffer(tconv_host_queue(t->host), *buffer, CL_TRUE, 0, (size_t)bytes,
                                    source, 0, NULL, NULL);
    return code == CL_SUCCESS ||
           give_up(t, TCONV_ERROR_DEVICE_MEMORY,
                   "does not fit: %llu bytes for the %s cannot be had (OpenCL code %d)",
                   (unsigned long long)bytes, what, code);
}

bool trial_prepare(struct trial *t, tconv_host *host, const tconv_problem *problem,
                   const float *weights)
{
    *t = (struct trial){.bias = options.with_bias != 0,
                        .host = host,
                        .problem = problem,
                        .geometry = TCONV_GEOMETRY_INIT,
                        .args = TCONV_ARGS_INIT};
    tconv_error error;
    if (tconv_resolve(problem, &t->geometry, &error) != TCONV_OK) return give_up_call(t, &error);
    if (problem->data_type != TCONV_F32)
        return give_up(t, TCONV_ERROR_UNSUPPORTED,
                       "element type %s is not supported yet: this version computes f32",
                       tconv_type_name(problem->data_type));
    if (t->geometry.output_bytes == 0)
        return give_up(t, TCONV_ERROR_SHAPE,
                       "is empty: its batch is 0, and there is nothing to compute");
    if (!check_fit(t)) return false;
    t->data = make_array(t->geometry.data_bytes, 1);
    t->filter = make_array(t->geometry.filter_bytes, 2);
    const uint64_t bias_bytes = (uint64_t)(t->geometry.groups * t->geometry.group_out_channels) *
                                sizeof(float);
    t->biases = make_array(bias_bytes, 3);
    if (t->data == NULL || t->filter == NULL || t->biases == NULL)
        return give_up(t, TCONV_ERROR_HOST_MEMORY, "does not fit: no host memory for its tensors");
    if (weights != NULL) memcpy(t->filter, weights, (size_t)t->geometry.filter_bytes);
    return make_buffer(t, "data", t->data, t->geometry.data_bytes, &t->device_data) &&
           make_buffer(t, "filter", t->filter, t->geometry.filter_bytes, &t->device_filter) &&
           make_buffer(t, "bias", t->biases, bias_bytes, &t->device_bias) &&
           make_buffer(t, "output", NULL, t->geometry.output_bytes, &t->device_output);
}

static void free_plan(struct trial *t)
{
    tconv_filter_release(t->packed);
    tconv_plan_release(t->plan);
    if (t->workspace != NULL) clReleaseMemObject(t->workspace);
    t->packed = NULL;
    t->plan = NULL;
    t->workspace = NULL;
}

static bool fill_with_nan(struct trial *t)
{
    const cl_float nan_value = NAN;
    if (t->device_output == NULL) return true;
    const cl_int code = clEnqueueFillBuffer(tconv_host_queue(t->host), t->device_output, &nan_value,
                                            sizeof nan_value, 0, (size_t)t->geometry.output_bytes,
                                            0, NULL, NULL);
    return (code == CL_SUCCESS && clFinish(tconv_host_queue(t->host)) == CL_SUCCESS) ||
           give_up(t, TCONV_ERROR_OPENCL, "the output cannot be cleared (OpenCL code %d)", code);
}

bool trial_run(struct trial *t, const char *algorithm)
{
    free_plan(t);
    t->error[0] = '\0';
    if (!fill_with_nan(t)) return false;
    tconv_error error;
    tconv_plan_options plan = TCONV_PLAN_OPTIONS_INIT;
    plan.algorithm = algorithm;
    plan.bias = t->bias;
    plan.math = chosen_math();
    const double start = now();
    if (tconv_plan_create(tconv_host_device(t->host), t->problem, &plan, &t->plan, &error) !=
        TCONV_OK)
        return give_up_call(t, &error);
    if (!make_buffer(t, "workspace", NULL, tconv_plan_workspace_bytes(t->plan), &t->workspace))
        return false;
    t->args = (tconv_args)TCONV_ARGS_INIT;
    if (tconv_filter_create(t->plan, NULL, 0, &t->packed, &error) != TCONV_OK ||
        tconv_filter_enqueue_pack(t->packed, tconv_host_queue(t->host), t->device_filter, 0, 0,
                                  NULL, NULL, &error) != TCONV_OK)
        return give_up_call(t, &error);
    t->args.filter = t->packed;
    t->args.data.memory = t->device_data;
    if (t->bias) t->args.bias.memory = t->device_bias;
    t->args.output.memory = t->device_output;
    t->args.workspace.memory = t->workspace;
    const double seconds = trial_repeat(t);
    t->first_call_seconds = now() - start;
    return seconds >= 0;
}

double trial_repeat(struct trial *t)
{
    tconv_error error;
    const double start = now();
    if (tconv_plan_enqueue(t->plan, tconv_host_queue(t->host), &t->args, 0, NULL, NULL, &error) !=
        TCONV_OK) {
        give_up_call(t, &error);
        return -1;
    }
    const cl_int code = clFinish(tconv_host_queue(t->host));
    if (code != CL_SUCCESS) {
        give_up(t, TCONV_ERROR_OPENCL, "the device failed while computing (OpenCL code %d)", code);
        return -1;
    }
    return now() - start;
}

/* Compares one position; remembers the worst. */
static bool compare(struct trial *t, size_t at)
{
    const struct tconv_expected expected = tconv_oracle_element_of(
        t->problem, &t->geometry, t->data, t->filter, t->bias ? t->biases : NULL, (int64_t)at,
        tconv_plan_error_factor(t->plan));
    const double error = tconv_oracle_error(&expected, t->output[at]);
    if (error > t->max_error || t->compared == 0) {
        t->max_error = error;
        t->error_bound = expected.bound;
    }
    t->compared++;
    return error <= 1 ||
           give_up(t, TCONV_ERROR_INTERNAL,
                   "wrong result: output element %zu is %.9g, but should be %.9g within %.3g", at,
                   (double)t->output[at], expected.value, expected.bound);
}

bool trial_verify(struct trial *t, size_t most)
{
    const size_t count = (size_t)t->geometry.output_bytes / sizeof(float);
    t->max_error = t->error_bound = 0;
    t->compared = 0;
    if (count == 0) return true;
    if (t->output == NULL) t->output = malloc(count * sizeof *t->output);
    if (t->output == NULL)
        return give_up(t, TCONV_ERROR_HOST_MEMORY, "no host memory to verify its output");
    const cl_int code = clEnqueueReadBuffer(tconv_host_queue(t->host), t->device_output, CL_TRUE, 0,
                                            count * sizeof *t->output, t->output, 0, NULL, NULL);
    if (code != CL_SUCCESS)
        return give_up(t, TCONV_ERROR_OPENCL, "its output cannot be downloaded (OpenCL code %d)",
                       code);
    const size_t samples = count < most ? count : most;
    uint32_t seed = 1;
    bool right = samples == count || (compare(t, 0) && compare(t, count - 1));
    for (size_t i = 0; i < samples && right;
         i++) { /* one in each of `samples` equal parts, where in it is random */
        seed = seed * 1664525U + 1013904223U;
        const size_t from = (size_t)((double)count * (double)i / (double)samples);
        const size_t to = (size_t)((double)count * (double)(i + 1) / (double)samples);
        right = compare(t, from + (to > from + 1 ? (seed >> 8) % (to - from) : 0));
    }
    for (size_t i = 0; i < count && right;
         i++) /* data and weights are finite: a NaN was never written, or computed wrongly */
        if (isnan(t->output[i])) right = compare(t, i);
    return right;
}

void trial_free(struct trial *t)
{
    free_plan(t);
    const cl_mem buffers[] = {t->device_data, t->device_filter, t->device_bias, t->device_output};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (buffers[i] != NULL) clReleaseMemObject(buffers[i]);
    free(t->data);
    free(t->filter);
    free(t->biases);
    free(t->output);
    *t = (struct trial){0};
}
