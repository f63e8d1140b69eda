/* SPDX-License-Identifier: Apache-2.0 */
/* Devices, guarded buffers and comparison for the device tests. */
#include "support.h"

#include "oracle/oracle.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { GUARD = 96 }; /* floats before and after each tensor; a multiple of a filter's alignment */

void failed(const char *format, ...)
{
    char text[3000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fail_msg("%s", text);
    abort(); /* fail_msg does not return, but does not say so */
}

unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

int random_between(unsigned *state, int least, int most)
{
    return least + (int)(next_random(state) % (unsigned)(most - least + 1));
}

void set_shape(tconv_shape *shape, int rank, const int64_t *dim)
{
    shape->rank = rank;
    memcpy(shape->dim, dim, (size_t)rank * sizeof *dim);
}

void set_list(tconv_list *list, int count, const int64_t *value)
{
    list->count = count;
    memcpy(list->value, value, (size_t)count * sizeof *value);
}

static void open_device(int number, struct device *device)
{
    tconv_error error = {TCONV_OK, 0, ""};
    cl_platform_id platform;
    cl_device_id id;
    if (tconv_device_at(number, &platform, &id, &error) != TCONV_OK) failed("%s", error.message);
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                (cl_context_properties)platform, 0};
    cl_int code;
    device->number = number;
    device->context = clCreateContext(properties, 1, &id, NULL, NULL, &code);
    if (code != CL_SUCCESS) failed("no context on device %d: %d", number, code);
    device->queue = clCreateCommandQueue(device->context, id, 0, &code);
    if (code != CL_SUCCESS) failed("no queue on device %d: %d", number, code);
    if (tconv_device_create(device->context, id, &device->device, &error) != TCONV_OK)
        failed("%s", error.message);
    device->info = tconv_device_properties(device->device);
    print_message("device %d: %s (%s)\n", number, device->info->name, device->info->platform);
}

int open_devices(struct device **devices)
{
    tconv_error error = {TCONV_OK, 0, ""};
    const char *only = getenv("TCONV_CL_TEST_DEVICE");
    int count = 1, first = only == NULL ? 0 : atoi(only);
    if (only == NULL && tconv_device_count(&count, &error) != TCONV_OK) failed("%s", error.message);
    if (count == 0) failed("there is no OpenCL device to test");
    *devices = calloc((size_t)count, sizeof **devices);
    assert_non_null(*devices);
    for (int i = 0; i < count; i++) open_device(first + i, &(*devices)[i]);
    return count;
}

void close_devices(struct device *devices, int count)
{
    for (int i = 0; i < count; i++) {
        tconv_device_release(devices[i].device);
        clReleaseCommandQueue(devices[i].queue);
        clReleaseContext(devices[i].context);
    }
    free(devices);
}

static float *make_array(size_t count, enum contents contents, unsigned *seed)
{
    float *array = malloc((count + 1) * sizeof *array);
    assert_non_null(array);
    for (size_t i = 0; i < count; i++)
        array[i] = contents == SMALL_INTEGERS
                       ? (float)random_between(seed, -3, 3)
                       : (float)random_between(seed, -1000000, 1000000) / 524288.0F;
    return array;
}

void make_tensors(const tconv_problem *problem, enum contents contents, unsigned seed,
                  struct tensors *t)
{
    tconv_error error = {TCONV_OK, 0, ""};
    t->geometry = (tconv_geometry)TCONV_GEOMETRY_INIT;
    if (tconv_resolve(problem, &t->geometry, &error) != TCONV_OK) {
        char text[1000];
        tconv_problem_text(problem, text, sizeof text);
        failed("%s: %s", text, error.message);
    }
    t->data_count = t->geometry.data_bytes / sizeof(float);
    t->filter_count = t->geometry.filter_bytes / sizeof(float);
    t->bias_count = (size_t)(t->geometry.groups * t->geometry.group_out_channels);
    t->output_count = t->geometry.output_bytes / sizeof(float);
    t->data = make_array(t->data_count, contents, &seed);
    t->filter = make_array(t->filter_count, contents, &seed);
    t->bias = make_array(t->bias_count, contents, &seed);
    t->output = make_array(t->output_count, contents, &seed);
    t->math = TCONV_MATH_EXACT;
    t->error_factor = 1;
}

void free_tensors(struct tensors *t)
{
    free(t->data);
    free(t->filter);
    free(t->bias);
    free(t->output);
}

/* A tensor in a buffer, with NaNs of a known kind in front and behind. */
struct guarded {
    const char *name;
    cl_mem memory;
    size_t count;
    float *image; /* what the whole buffer held before the run */
};

static float guard_value(void)
{
    const uint32_t bits = 0x7fc0dead;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void make_guarded(const struct device *device, const char *name, const float *contents,
                         size_t count, struct guarded *g)
{
    const size_t whole = count + 2 * GUARD;
    g->name = name;
    g->count = count;
    g->image = malloc(whole * sizeof *g->image);
    assert_non_null(g->image);
    for (size_t i = 0; i < whole; i++) g->image[i] = guard_value();
    if (contents != NULL) memcpy(g->image + GUARD, contents, count * sizeof *contents);
    cl_int code;
    g->memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                               whole * sizeof *g->image, g->image, &code);
    if (code != CL_SUCCESS) failed("no buffer of %zu floats for %s: %d", whole, name, code);
}

/* Checks the guards and, where `unchanged`, the tensor; `result` receives the tensor where it is
 * not NULL. */
static void check_guarded(const struct device *device, const char *problem, const char *algorithm,
                          struct guarded *g, bool unchanged, float *result)
{
    const size_t whole = g->count + 2 * GUARD;
    float *now = malloc(whole * sizeof *now);
    assert_non_null(now);
    const cl_int code = clEnqueueReadBuffer(device->queue, g->memory, CL_TRUE, 0,
                                            whole * sizeof *now, now, 0, NULL, NULL);
    if (code != CL_SUCCESS) failed("%s cannot be read: %d", g->name, code);
    for (size_t i = 0; i < whole; i++) {
        const bool guard = i < GUARD || i >= GUARD + g->count;
        if ((guard || unchanged) && memcmp(&now[i], &g->image[i], sizeof *now) != 0)
            failed("%s wrote %s at element %lld (%g) on device %d: tconv-cl check %s", algorithm,
                   g->name, (long long)i - GUARD, (double)now[i], device->number, problem);
    }
    if (result != NULL) memcpy(result, now + GUARD, g->count * sizeof *now);
    free(now);
    free(g->image);
    clReleaseMemObject(g->memory);
}

static void require(tconv_status status, const tconv_error *error, const char *what,
                    const char *problem, const char *algorithm)
{
    if (status != TCONV_OK)
        failed("%s fails with %s (%s): tconv-cl check --algorithm %s %s", what,
               tconv_status_name(status), error->message, algorithm, problem);
}

tconv_status run_guarded(const struct device *device, const tconv_problem *problem,
                         const char *algorithm, bool bias, struct tensors *t, tconv_error *error)
{
    char text[1000];
    tconv_problem_text(problem, text, sizeof text);
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.algorithm = algorithm;
    options.bias = bias;
    options.math = t->math;
    tconv_plan *plan = NULL;
    const tconv_status status = tconv_plan_create(device->device, problem, &options, &plan, error);
    if (status != TCONV_OK) return status;
    t->error_factor = tconv_plan_error_factor(plan);

    struct guarded data, weights, biases, output, packed, workspace;
    const size_t offset = GUARD * sizeof(float);
    make_guarded(device, "data", t->data, t->data_count, &data);
    make_guarded(device, "filter", t->filter, t->filter_count, &weights);
    make_guarded(device, "bias", t->bias, t->bias_count, &biases);
    make_guarded(device, "output", NULL, t->output_count, &output);
    make_guarded(device, "packed filter", NULL,
                 (size_t)tconv_plan_filter_bytes(plan) / sizeof(float), &packed);
    make_guarded(device, "workspace", NULL,
                 (size_t)tconv_plan_workspace_bytes(plan) / sizeof(float), &workspace);

    tconv_filter *filter = NULL;
    require(tconv_filter_create(plan, packed.memory, offset, &filter, error), error,
            "creating the filter", text, algorithm);
    require(tconv_filter_enqueue_pack(filter, device->queue, weights.memory, offset, 0, NULL, NULL,
                                      error),
            error, "packing", text, algorithm);
    tconv_args args = TCONV_ARGS_INIT;
    args.filter = filter;
    args.data = (tconv_buffer){data.memory, offset};
    if (bias) args.bias = (tconv_buffer){biases.memory, offset};
    args.output = (tconv_buffer){output.memory, offset};
    args.workspace = (tconv_buffer){workspace.memory, offset};
    require(tconv_plan_enqueue(plan, device->queue, &args, 0, NULL, NULL, error), error,
            "enqueueing", text, algorithm);
    const cl_int code = clFinish(device->queue);
    if (code != CL_SUCCESS)
        failed("clFinish fails with %d: tconv-cl check --algorithm %s %s", code, algorithm, text);

    check_guarded(device, text, algorithm, &data, true, NULL);
    check_guarded(device, text, algorithm, &weights, true, NULL);
    check_guarded(device, text, algorithm, &biases, true, NULL);
    check_guarded(device, text, algorithm, &output, false, t->output);
    check_guarded(device, text, algorithm, &packed, false, NULL);
    check_guarded(device, text, algorithm, &workspace, false, NULL);
    tconv_filter_release(filter);
    tconv_plan_release(plan);
    return TCONV_OK;
}

void compare_with_oracle(const struct device *device, const tconv_problem *problem,
                         const char *algorithm, bool bias, const struct tensors *t)
{
    for (size_t i = 0; i < t->output_count; i++) {
        const struct tconv_expected expected =
            tconv_oracle_element_of(problem, &t->geometry, t->data, t->filter,
                                    bias ? t->bias : NULL, (int64_t)i, t->error_factor);
        const double error = tconv_oracle_error(&expected, t->output[i]);
        if (error <= 1) continue;
        char text[1000];
        tconv_problem_text(problem, text, sizeof text);
        failed(
            "output element %zu is %.9g, expected %.9g (bound %.3g) on device %d: tconv-cl check "
            "--algorithm %s%s %s",
            i, (double)t->output[i], expected.value, expected.bound, device->number, algorithm,
            bias ? " --with-bias" : "", text);
    }
}
