/* SPDX-License-Identifier: Apache-2.0 */
/* A host application with its own OpenCL context, queue and buffers: it plans a layer once, packs
 * the weights once, and enqueues the layer for every frame without waiting in between. */
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

static cl_mem buffer(cl_context context, const float *contents, uint64_t bytes)
{
    cl_int code;
    const cl_mem_flags copy = contents == NULL ? 0 : CL_MEM_COPY_HOST_PTR;
    cl_mem memory =
        clCreateBuffer(context, CL_MEM_READ_WRITE | copy, (size_t)bytes, (void *)contents, &code);
    check_cl(code, "clCreateBuffer");
    return memory;
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

    tconv_device *device;
    tconv_plan *plan;
    tconv_packed_filter *filter;
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.epilogue.bias = true;
    check(tconv_device_create(context, id, &device, &error), &error);
    check(tconv_plan_create(device, &problem, &options, &plan, &error), &error);
    check(tconv_packed_filter_create(plan, NULL, &filter, &error), &error);

    const tconv_geometry *geometry = tconv_plan_geometry(plan);
    float *data = calloc((size_t)geometry->data_bytes, 1),
          *weights = malloc((size_t)geometry->filter_bytes);
    float *output = malloc((size_t)geometry->output_bytes), bias[8];
    for (size_t i = 0; i < geometry->filter_bytes / sizeof *weights; i++) weights[i] = 1.0F;
    for (int c = 0; c < 8; c++) bias[c] = (float)c;
    cl_mem device_weights = buffer(context, weights, geometry->filter_bytes);
    check(tconv_packed_filter_enqueue_pack(filter, queue, &(tconv_buffer){.memory = device_weights},
                                           0, NULL, NULL, &error),
          &error);

    tconv_args args = TCONV_ARGS_INIT;
    args.filter = filter;
    args.data.memory = buffer(context, data, geometry->data_bytes);
    args.bias.memory = buffer(context, bias, sizeof bias);
    args.output.memory = buffer(context, NULL, geometry->output_bytes);
    const uint64_t workspace = tconv_plan_workspace_bytes(plan);
    if (workspace > 0) args.workspace.memory = buffer(context, NULL, workspace);

    for (int frame = 0; frame < 3; frame++) {
        data[0] = (float)frame; /* a new frame: one bright corner */
        check_cl(clEnqueueWriteBuffer(queue, args.data.memory, CL_FALSE, 0, sizeof *data, data, 0,
                                      NULL, NULL),
                 "upload");
        cl_event done;
        check(tconv_plan_enqueue(plan, queue, &args, 0, NULL, &done, &error), &error);
        check_cl(clEnqueueReadBuffer(queue, args.output.memory, CL_TRUE, 0,
                                     (size_t)geometry->output_bytes, output, 1, &done, NULL),
                 "download");
        clReleaseEvent(done);
        printf("frame %d: corner of channel 5 is %g\n", frame, (double)output[5 * 80 * 120]);
        if (output[5 * 80 * 120] != (float)frame + 5.0F) return 1; /* the corner, and the bias */
    }
    printf("%s on %s\n", tconv_plan_algorithm(plan), tconv_device_properties(device)->name);

    const cl_mem buffers[] = {device_weights, args.data.memory, args.bias.memory,
                              args.output.memory};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) clReleaseMemObject(buffers[i]);
    if (args.workspace.memory != NULL) clReleaseMemObject(args.workspace.memory);
    free(data);
    free(weights);
    free(output);
    tconv_packed_filter_release(filter);
    tconv_plan_release(plan);
    tconv_device_release(device);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    return 0;
}
