/* SPDX-License-Identifier: Apache-2.0 */
/* A host application with its own OpenCL context, queue and buffers: it gives a layer its
 * weights once, and runs it for every frame with data and output alone. */
#include <tconv_cl/tconv_cl.h>

#include <stdio.h>
#include <stdlib.h>

static void check(tconv_status status, const tconv_error *error)
{
    if (status == TCONV_OK) return;
    fprintf(stderr, "%s: %s\n", tconv_status_name(status), error->message);
    exit(1);
}

static void check_cl(cl_int code, const char *what)
{
    if (code == CL_SUCCESS) return;
    fprintf(stderr, "%s: OpenCL code %d\n", what, (int)code);
    exit(1);
}

static tconv_tensor buffer(cl_context context, size_t bytes)
{
    cl_int code;
    const tconv_tensor made = {clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, &code), 0,
                               NULL};
    check_cl(code, "clCreateBuffer");
    return made;
}

int main(void)
{
    tconv_error error;
    int number;
    cl_platform_id platform;
    cl_device_id id;
    check(tconv_device_default(&number, &error), &error);
    check(tconv_device_at(number, &platform, &id, &error), &error);
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                (cl_context_properties)platform, 0};
    cl_int code;
    cl_context context = clCreateContext(properties, 1, &id, NULL, NULL, &code);
    check_cl(code, "clCreateContext");
    cl_command_queue queue = clCreateCommandQueue(context, id, 0, &code);
    check_cl(code, "clCreateCommandQueue");

    /* 16 channels of 40x60 to 8 channels of 80x120, kernel 4x4, stride 2. */
    tconv_problem problem = TCONV_PROBLEM_INIT;
    problem.data = (tconv_shape){4, {1, 16, 40, 60}};
    problem.filter = (tconv_shape){4, {16, 8, 4, 4}};
    problem.strides = (tconv_list){2, {2, 2}};
    problem.pads_begin = problem.pads_end = (tconv_list){2, {1, 1}};
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.epilogue.bias = true;

    static float data[16 * 40 * 60], filter[16 * 8 * 4 * 4], output[8 * 80 * 120], bias[8];
    for (size_t i = 0; i < sizeof filter / sizeof *filter; i++) filter[i] = 1.0F;
    for (int c = 0; c < 8; c++) bias[c] = (float)c;

    tconv_device *device;
    tconv_layer *layer;
    tconv_tensors weights = TCONV_TENSORS_INIT, tensors = TCONV_TENSORS_INIT;
    tconv_run run = TCONV_RUN_INIT;
    weights.filter.host = filter;
    weights.bias.host = bias;
    check(tconv_device_create(context, id, &device, &error), &error);
    check(tconv_layer_create(&device, 1, TCONV_FILTER_CONSTANT, &layer, &error), &error);
    run.queue = queue;
    check(tconv_layer_set(layer, &problem, &options, &weights, &run, &error), &error);
    const tconv_tensor from = buffer(context, sizeof data), to = buffer(context, sizeof output);
    tensors.data = from;
    tensors.output = to;
    for (int frame = 0; frame < 3; frame++) {
        data[0] = (float)frame; /* a new frame: one bright corner */
        check_cl(
            clEnqueueWriteBuffer(queue, from.memory, CL_FALSE, 0, sizeof data, data, 0, NULL, NULL),
            "upload");
        check(tconv_layer_run(layer, &problem, &options, &tensors, &run, &error), &error);
        check_cl(
            clEnqueueReadBuffer(queue, to.memory, CL_TRUE, 0, sizeof output, output, 0, NULL, NULL),
            "download");
        printf("frame %d: corner of channel 5 is %g\n", frame, (double)output[5 * 80 * 120]);
        if (output[5 * 80 * 120] != (float)frame + 5.0F) return 1; /* the corner, and the bias */
    }
    tconv_plan *plan; /* the one that the runs had */
    check(tconv_layer_plan(layer, &problem, &options, &plan, &error), &error);
    printf("%s on %s\n", tconv_plan_algorithm(plan), tconv_device_properties(device)->name);

    tconv_plan_release(plan);
    tconv_layer_release(layer);
    tconv_device_release(device);
    clReleaseMemObject(from.memory);
    clReleaseMemObject(to.memory);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    return 0;
}
