/* SPDX-License-Identifier: Apache-2.0 */
/* A program of the first release: compiled with host_tests/headers-0.1.0 alone, run with the
 * library of today. It uses every structure and expects exact results. */
#include <tconv_cl/tconv_cl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CI = 2, CO = 3, X = 5, K = 3, S = 2, PAD = 1, Y = S * (X - 1) + K - PAD };

static float data[CI * X], filter[CI * CO * K], bias[CO], scale[CO], slope[CO], residual[CO * Y];
static float output[CO * Y], wanted[CO * Y];
static tconv_error error;
static int slabs_seen;

static void require(int holds, const char *what)
{
    if (holds) return;
    printf("FAILED: %s\n", what);
    exit(1);
}

static void ok(tconv_status status)
{
    require(status == TCONV_OK, error.message);
}

static void fill(float *values, int count, int seed)
{
    for (int i = 0; i < count; i++) values[i] = (float)((i * 7 + seed) % 9 - 4);
}

/* prelu(2 * sum * scale[c] + bias[c] + 3 * before + residual), all of it small integers. */
static void compute(void)
{
    for (int co = 0; co < CO; co++)
        for (int y = 0; y < Y; y++) {
            float sum = 0;
            for (int ci = 0; ci < CI; ci++)
                for (int x = 0; x < X; x++)
                    for (int k = 0; k < K; k++)
                        if (x * S + k - PAD == y)
                            sum += data[ci * X + x] * filter[(ci * CO + co) * K + k];
            const float value = 2 * sum * scale[co] + bias[co] + 3 * (float)y +
                                residual[co * Y + y];
            wanted[co * Y + y] = value < 0 ? slope[co] * value : value;
        }
}

static void set_before(void)
{
    for (int i = 0; i < CO * Y; i++) output[i] = (float)(i % Y);
}

static void compare(const char *what)
{
    require(memcmp(output, wanted, sizeof output) == 0, what);
}

static cl_mem upload(cl_context context, const void *from, size_t bytes)
{
    cl_int code;
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes,
                                   (void *)from, &code);
    require(code == CL_SUCCESS, "clCreateBuffer");
    return buffer;
}

static void enqueue(tconv_device *device, cl_command_queue queue, const tconv_problem *p,
                    const tconv_plan_options *options)
{
    tconv_plan *plan;
    tconv_packed_filter *packed;
    ok(tconv_plan_create(device, p, options, &plan, &error));
    require(tconv_plan_geometry(plan)->output_bytes == sizeof output &&
                tconv_plan_geometry(plan)->output_type == TCONV_F32,
            "the plan's geometry");
    ok(tconv_packed_filter_create(plan, NULL, &packed, &error));
    cl_context context = tconv_device_context(device);
    cl_mem weights = upload(context, filter, sizeof filter);
    ok(tconv_packed_filter_enqueue_pack(packed, queue, &(tconv_tensor){.memory = weights}, 0, NULL,
                                        NULL, &error));
    cl_int code;
    const size_t workspace = (size_t)tconv_plan_workspace_bytes(plan);
    tconv_tensors args = TCONV_TENSORS_INIT;
    args.packed = packed;
    args.data.memory = upload(context, data, sizeof data);
    args.bias.memory = upload(context, bias, sizeof bias);
    args.scale.memory = upload(context, scale, sizeof scale);
    args.slope.memory = upload(context, slope, sizeof slope);
    args.residual.memory = upload(context, residual, sizeof residual);
    args.output.memory = upload(context, output, sizeof output);
    args.workspace.memory = clCreateBuffer(context, CL_MEM_READ_WRITE, workspace + 1, NULL, &code);
    require(code == CL_SUCCESS, "clCreateBuffer");
    ok(tconv_plan_enqueue(plan, queue, &args, 0, NULL, NULL, &error));
    require(clEnqueueReadBuffer(queue, args.output.memory, CL_TRUE, 0, sizeof output, output, 0,
                                NULL, NULL) == CL_SUCCESS,
            "clEnqueueReadBuffer");
    const cl_mem buffers[] = {
        weights,           args.data.memory,     args.bias.memory,   args.scale.memory,
        args.slope.memory, args.residual.memory, args.output.memory, args.workspace.memory};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) clReleaseMemObject(buffers[i]);
    tconv_packed_filter_release(packed);
    tconv_plan_release(plan);
}

/* The same as a layer; the bias is in a buffer. */
static void enqueue_layer(tconv_device *device, cl_command_queue queue, const tconv_problem *p,
                          const tconv_plan_options *options)
{
    cl_context context = tconv_device_context(device);
    tconv_layer *layer;
    tconv_tensors weights = TCONV_TENSORS_INIT, tensors = TCONV_TENSORS_INIT;
    tconv_run run = TCONV_RUN_INIT;
    weights.filter.host = filter;
    weights.bias.memory = upload(context, bias, sizeof bias);
    weights.scale.host = scale;
    weights.slope.host = slope;
    run.queue = queue;
    ok(tconv_layer_create(&device, 1, TCONV_FILTER_CONSTANT, &layer, &error));
    ok(tconv_layer_set(layer, p, options, &weights, &run, &error));
    tensors.data.memory = upload(context, data, sizeof data);
    tensors.output.memory = upload(context, output, sizeof output);
    tensors.residual.memory = upload(context, residual, sizeof residual);
    ok(tconv_layer_run(layer, p, options, &tensors, &run, &error));
    require(clEnqueueReadBuffer(queue, tensors.output.memory, CL_TRUE, 0, sizeof output, output, 0,
                                NULL, NULL) == CL_SUCCESS,
            "clEnqueueReadBuffer");
    tconv_layer_counts counts = TCONV_LAYER_COUNTS_INIT;
    ok(tconv_layer_count(layer, &counts, &error));
    require(counts.runs == 1 && counts.plans_made == 1 && counts.filters_packed == 1, "the counts");
    tconv_layer_release(layer);
    const cl_mem buffers[] = {weights.bias.memory, tensors.data.memory, tensors.output.memory,
                              tensors.residual.memory};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) clReleaseMemObject(buffers[i]);
}

static bool slab_is_done(void *user, const tconv_slab *slab, int64_t done, int64_t slabs)
{
    require(user == &slabs_seen && slab->device == 0 && slab->batch_end == 1 &&
                slab->output_end > slab->output_begin && done == slabs_seen + 1 && slabs > 1,
            "a slab");
    slabs_seen++;
    return true;
}

int main(void)
{
    fill(data, CI * X, 1);
    fill(filter, CI * CO * K, 2);
    fill(bias, CO, 3);
    fill(scale, CO, 4);
    fill(slope, CO, 5);
    fill(residual, CO * Y, 6);
    compute();

    tconv_problem p = TCONV_PROBLEM_INIT;
    p.data = (tconv_shape){3, {1, CI, X}};
    p.filter = (tconv_shape){3, {CI, CO, K}};
    p.strides = (tconv_list){1, {S}};
    p.pads_begin = (tconv_list){1, {PAD}};
    tconv_geometry g = TCONV_GEOMETRY_INIT;
    ok(tconv_resolve(&p, &g, &error));
    require(g.axes == 1 && g.output[0] == Y && g.output_shape.dim[2] == Y &&
                g.output_bytes == sizeof output && g.output_type == TCONV_F32,
            "the geometry");
    int64_t begin, end;
    ok(tconv_window_input(&g, 2, 4, &begin, &end, &error));
    require(begin == 1 && end == 3, "the window");
    char text[200];
    tconv_problem_text(&p, text, sizeof text);
    require(strcmp(text, "--data-shape 1,2,5 --filter-shape 2,3,3 --strides 2 --pads-begin 1") == 0,
            text);
    p.strides.value[0] = 0;
    require(tconv_resolve(&p, &g, &error) == TCONV_ERROR_ATTRIBUTE &&
                error.status == TCONV_ERROR_ATTRIBUTE && strstr(error.message, "strides") != NULL,
            "an error");
    p.strides.value[0] = S;

    const char *number = getenv("TCONV_CL_TEST_DEVICE");
    tconv_device *device;
    ok(tconv_device_open(number == NULL ? TCONV_DEVICE_DEFAULT : atoi(number), &device, &error));
    const tconv_device_info *info = tconv_device_properties(device);
    tconv_device_info described = TCONV_DEVICE_INFO_INIT;
    ok(tconv_device_describe(tconv_device_id(device), &described, &error));
    cl_int code;
    cl_command_queue queue =
        clCreateCommandQueue(tconv_device_context(device), tconv_device_id(device), 0, &code);
    require(code == CL_SUCCESS, "clCreateCommandQueue");
    require(described.struct_size == sizeof described && info->struct_size >= sizeof *info &&
                strcmp(described.name, info->name) == 0 && described.compute_units > 0 &&
                described.allocation_limit == info->allocation_limit &&
                described.matrix_unit == info->matrix_unit,
            "the description");

    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.algorithm = "reference";
    options.epilogue.bias = options.epilogue.scale = options.epilogue.residual = true;
    options.epilogue.alpha = 2;
    options.epilogue.beta = 3;
    options.epilogue.activation = TCONV_ACTIVATION_PRELU;
    set_before();
    enqueue(device, queue, &p, &options);
    compare("the output of plan, pack, enqueue");
    set_before();
    enqueue_layer(device, queue, &p, &options);
    compare("the output of a layer on a queue");

    tconv_layer *layer;
    tconv_tensors tensors = TCONV_TENSORS_INIT;
    tensors.data.host = data;
    tensors.filter.host = filter;
    tensors.output.host = output;
    tensors.bias.host = bias;
    tensors.scale.host = scale;
    tensors.slope.host = slope;
    tensors.residual.host = residual;
    ok(tconv_layer_create(&device, 1, TCONV_FILTER_VARIES, &layer, &error));
    set_before();
    ok(tconv_layer_run(layer, &p, &options, &tensors, NULL, &error));
    compare("the output of arrays of the host");

    tconv_run run = TCONV_RUN_INIT;
    run.memory_limit = 2 * (sizeof data + 2 * sizeof output) / 3;
    run.progress = slab_is_done;
    run.user = &slabs_seen;
    set_before();
    ok(tconv_layer_run(layer, &p, &options, &tensors, &run, &error));
    compare("the output of slabs");
    require(slabs_seen > 1, "the number of slabs");
    tconv_layer_release(layer);
    clReleaseCommandQueue(queue);
    tconv_device_release(device);
    printf("a program of version " TCONV_VERSION_STRING " works\n");
    return 0;
}
