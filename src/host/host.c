/* SPDX-License-Identifier: Apache-2.0 */
/* Host arrays: upload, run, download. Every call has buffers of its own, so that calls do not
 * disturb each other. */
#include "host/host.h"

#include "base/error.h"
#include "base/process.h"
#include "base/struct_size.h"

#include <stdlib.h>

struct tconv_host {
    cl_context context;
    cl_command_queue queue;
    tconv_device *device;
};

tconv_status tconv_host_create(int number, tconv_host **out, tconv_error *error)
{
    if (out == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "out is NULL");
    cl_platform_id platform;
    cl_device_id id;
    tconv_status status;
    if ((number < 0 && (status = tconv_device_default(&number, error)) != TCONV_OK) ||
        (status = tconv_device_at(number, &platform, &id, error)) != TCONV_OK)
        return status;
    tconv_host *host = calloc(1, sizeof *host);
    if (host == NULL) return tconv_fail_memory(error, sizeof *host, "opening a device");
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                (cl_context_properties)platform, 0};
    cl_int code;
    host->context = clCreateContext(properties, 1, &id, NULL, NULL, &code);
    if (code != CL_SUCCESS) {
        host->context = NULL;
        status = tconv_fail_opencl(error, code, "clCreateContext", "opening device %d", number);
    } else if ((host->queue = clCreateCommandQueue(host->context, id, 0, &code),
                code != CL_SUCCESS)) {
        host->queue = NULL;
        status =
            tconv_fail_opencl(error, code, "clCreateCommandQueue", "opening device %d", number);
    } else {
        status = tconv_device_create(host->context, id, &host->device, error);
    }
    if (status == TCONV_OK)
        *out = host;
    else
        tconv_host_release(host);
    return status;
}

void tconv_host_release(tconv_host *host)
{
    if (host == NULL || tconv_process_forked()) return;
    tconv_device_release(host->device);
    if (host->queue != NULL) clReleaseCommandQueue(host->queue);
    if (host->context != NULL) clReleaseContext(host->context);
    free(host);
}

cl_context tconv_host_context(const tconv_host *host)
{
    return host == NULL ? NULL : host->context;
}

cl_command_queue tconv_host_queue(const tconv_host *host)
{
    return host == NULL ? NULL : host->queue;
}

tconv_device *tconv_host_device(const tconv_host *host)
{
    return host == NULL ? NULL : host->device;
}

/* What one call holds. */
struct run {
    tconv_plan *plan;
    tconv_filter *filter;
    cl_mem weights;
    tconv_args args;
};

/* A buffer of `bytes`, filled from `source` where that is not NULL. The copy is complete when this
 * returns. */
static tconv_status make_buffer(const tconv_host *host, const char *what, const void *source,
                                uint64_t bytes, cl_mem *out, tconv_error *error)
{
    cl_int code;
    cl_mem buffer = clCreateBuffer(host->context, CL_MEM_READ_WRITE, (size_t)bytes, NULL, &code);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clCreateBuffer", "%s needs %llu bytes on the device",
                                 what, (unsigned long long)bytes);
    *out = buffer;
    if (source == NULL) return TCONV_OK;
    code =
        clEnqueueWriteBuffer(host->queue, buffer, CL_TRUE, 0, (size_t)bytes, source, 0, NULL, NULL);
    return code == CL_SUCCESS ? TCONV_OK
                              : tconv_fail_opencl(error, code, "clEnqueueWriteBuffer",
                                                  "uploading %s needs %llu bytes on the device",
                                                  what, (unsigned long long)bytes);
}

static tconv_status run_plan(tconv_host *host, struct run *run, const tconv_problem *problem,
                             const tconv_epilogue *epilogue, const tconv_arrays *arrays,
                             tconv_error *error)
{
    const tconv_geometry *g = tconv_plan_geometry(run->plan);
    const uint64_t channels = (uint64_t)(g->groups * g->group_out_channels);
    const size_t number = tconv_type_size(tconv_scale_type(problem->data_type));
    const size_t bias = tconv_type_size(tconv_bias_type(epilogue, g->output_type));
    tconv_args *args = &run->args;
    const struct {
        const char *what;
        const void *source;
        uint64_t bytes;
        cl_mem *buffer;
        bool wanted;
    } buffers[] = {
        {"data", arrays->data, g->data_bytes, &args->data.memory, true},
        {"filter", arrays->filter, g->filter_bytes, &run->weights, true},
        {"bias", arrays->bias, channels * bias, &args->bias.memory, epilogue->bias},
        {"scale", arrays->scale, channels * number, &args->scale.memory, epilogue->scale},
        {"slope", arrays->slope, channels * number, &args->slope.memory, arrays->slope != NULL},
        {"residual", arrays->residual, g->output_bytes, &args->residual.memory, epilogue->residual},
        {"the output", epilogue->beta != 0 ? arrays->output : NULL, g->output_bytes,
         &args->output.memory, true},
        {"the workspace", NULL, tconv_plan_workspace_bytes(run->plan), &args->workspace.memory,
         tconv_plan_workspace_bytes(run->plan) != 0},
    };
    tconv_status status;
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (buffers[i].wanted &&
            (status = make_buffer(host, buffers[i].what, buffers[i].source, buffers[i].bytes,
                                  buffers[i].buffer, error)) != TCONV_OK)
            return status;
    if ((status = tconv_filter_create(run->plan, NULL, 0, &run->filter, error)) != TCONV_OK ||
        (status = tconv_filter_enqueue_pack(run->filter, host->queue, run->weights, 0, 0, NULL,
                                            NULL, error)) != TCONV_OK)
        return status;
    args->filter = run->filter;
    cl_event done;
    if ((status = tconv_plan_enqueue(run->plan, host->queue, args, 0, NULL, &done, error)) !=
        TCONV_OK)
        return status;
    const cl_int code = clEnqueueReadBuffer(host->queue, args->output.memory, CL_TRUE, 0,
                                            (size_t)g->output_bytes, arrays->output, 1, &done,
                                            NULL);
    clReleaseEvent(done);
    return code == CL_SUCCESS ? TCONV_OK
                              : tconv_fail_opencl(error, code, "clEnqueueReadBuffer",
                                                  "downloading the output of %llu bytes",
                                                  (unsigned long long)g->output_bytes);
}

tconv_status tconv_host_read(const tconv_problem *problem, const tconv_plan_options *options,
                             const tconv_arrays *arrays, struct tconv_host_call *call,
                             tconv_error *error)
{
    if (problem == NULL || arrays == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          problem == NULL ? "problem" : "arrays");
    *call =
        (struct tconv_host_call){TCONV_PROBLEM_INIT, TCONV_PLAN_OPTIONS_INIT, TCONV_ARRAYS_INIT};
    tconv_status status;
    if ((status = tconv_struct_read(TCONV_SIZED_PROBLEM, problem, &call->problem, error)) !=
            TCONV_OK ||
        (status = tconv_struct_read(TCONV_SIZED_PLAN_OPTIONS, options, &call->options, error)) !=
            TCONV_OK)
        return status;
    return tconv_struct_read(TCONV_SIZED_ARRAYS, arrays, &call->arrays, error);
}

tconv_status tconv_host_check_arrays(const tconv_arrays *arrays, const tconv_epilogue *epilogue,
                                     tconv_error *error)
{
    const char *missing = arrays->data == NULL     ? "data"
                          : arrays->filter == NULL ? "filter"
                          : arrays->output == NULL ? "output"
                                                   : NULL;
    if (missing != NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "arrays.%s is NULL", missing);
    const struct {
        const char *array, *member;
        const void *given;
        bool wanted;
        const char *value; /* of the member, where it is no bool */
    } optional[] = {
        {"bias", "bias", arrays->bias, epilogue->bias, NULL},
        {"scale", "scale", arrays->scale, epilogue->scale, NULL},
        {"residual", "residual", arrays->residual, epilogue->residual, NULL},
        {"slope", "activation", arrays->slope, tconv_activation_slopes(epilogue->activation),
         tconv_activation_name(epilogue->activation)},
    };
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++)
        if ((optional[i].given != NULL) != optional[i].wanted)
            return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                              "arrays.%s is %s, but options.epilogue.%s is %s: change one of them",
                              optional[i].array, optional[i].wanted ? "NULL" : "given",
                              optional[i].member,
                              optional[i].value != NULL ? optional[i].value
                              : optional[i].wanted      ? "true"
                                                        : "false");
    return TCONV_OK;
}

tconv_status tconv_host_run(tconv_host *host, const tconv_problem *problem,
                            const tconv_plan_options *options, const tconv_arrays *arrays,
                            tconv_error *error)
{
    if (host == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "host is NULL");
    struct tconv_host_call call;
    struct run run = {.args = TCONV_ARGS_INIT};
    tconv_status status;
    if ((status = tconv_host_read(problem, options, arrays, &call, error)) != TCONV_OK ||
        (status = tconv_plan_create(host->device, &call.problem, &call.options, &run.plan,
                                    error)) != TCONV_OK)
        return status;
    const tconv_epilogue *epilogue = &call.options.epilogue;
    if (tconv_plan_geometry(run.plan)->output_bytes != 0 &&
        (status = tconv_host_check_arrays(&call.arrays, epilogue, error)) == TCONV_OK)
        status = run_plan(host, &run, &call.problem, epilogue, &call.arrays, error);
    if (status != TCONV_OK)
        clFinish(host->queue); /* no command outlives the buffers that it uses */
    tconv_filter_release(run.filter);
    const cl_mem buffers[] = {run.weights,
                              run.args.data.memory,
                              run.args.bias.memory,
                              run.args.scale.memory,
                              run.args.slope.memory,
                              run.args.residual.memory,
                              run.args.output.memory,
                              run.args.workspace.memory};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (buffers[i] != NULL) clReleaseMemObject(buffers[i]);
    tconv_plan_release(run.plan);
    return status;
}
