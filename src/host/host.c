/* SPDX-License-Identifier: Apache-2.0 */
/* Host arrays: upload, run, download. Every call has buffers of its own, so that calls do not
 * disturb each other. */
#include "tconv_cl/host.h"

#include "base/error.h"

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
    if (host == NULL) return;
    tconv_device_release(host->device);
    if (host->queue != NULL) clReleaseCommandQueue(host->queue);
    if (host->context != NULL) clReleaseContext(host->context);
    free(host);
}

cl_context tconv_host_context(const tconv_host *host)
{
    return host->context;
}

cl_command_queue tconv_host_queue(const tconv_host *host)
{
    return host->queue;
}

tconv_device *tconv_host_device(const tconv_host *host)
{
    return host->device;
}

/* What one call holds. */
struct run {
    tconv_plan *plan;
    tconv_filter *filter;
    cl_mem data, weights, bias, output, workspace;
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
    return code == CL_SUCCESS
               ? TCONV_OK
               : tconv_fail_opencl(error, code, "clEnqueueWriteBuffer", "uploading %s", what);
}

static tconv_status run_plan(tconv_host *host, struct run *run, const void *data,
                             const void *filter, const void *bias, void *output,
                             uint64_t bias_bytes, tconv_error *error)
{
    const tconv_geometry *geometry = tconv_plan_geometry(run->plan);
    const uint64_t workspace = tconv_plan_workspace_bytes(run->plan);
    tconv_status status;
    if ((status = make_buffer(host, "data", data, geometry->data_bytes, &run->data, error)) !=
            TCONV_OK ||
        (status = make_buffer(host, "filter", filter, geometry->filter_bytes, &run->weights,
                              error)) != TCONV_OK ||
        (bias != NULL &&
         (status = make_buffer(host, "bias", bias, bias_bytes, &run->bias, error)) != TCONV_OK) ||
        (status = make_buffer(host, "the output", NULL, geometry->output_bytes, &run->output,
                              error)) != TCONV_OK ||
        (workspace != 0 && (status = make_buffer(host, "the workspace", NULL, workspace,
                                                 &run->workspace, error)) != TCONV_OK) ||
        (status = tconv_filter_create(run->plan, NULL, 0, &run->filter, error)) != TCONV_OK ||
        (status = tconv_filter_enqueue_pack(run->filter, host->queue, run->weights, 0, 0, NULL,
                                            NULL, error)) != TCONV_OK)
        return status;
    tconv_args args = TCONV_ARGS_INIT;
    args.filter = run->filter;
    args.data.memory = run->data;
    args.bias.memory = run->bias;
    args.output.memory = run->output;
    args.workspace.memory = run->workspace;
    cl_event done;
    if ((status = tconv_plan_enqueue(run->plan, host->queue, &args, 0, NULL, &done, error)) !=
        TCONV_OK)
        return status;
    const cl_int code = clEnqueueReadBuffer(host->queue, run->output, CL_TRUE, 0,
                                            (size_t)geometry->output_bytes, output, 1, &done, NULL);
    clReleaseEvent(done);
    return code == CL_SUCCESS
               ? TCONV_OK
               : tconv_fail_opencl(error, code, "clEnqueueReadBuffer", "downloading the output");
}

tconv_status tconv_host_run(tconv_host *host, const tconv_problem *problem,
                            const tconv_plan_options *options, const void *data, const void *filter,
                            const void *bias, void *output, tconv_error *error)
{
    if (host == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "host is NULL");
    tconv_plan_options own = TCONV_PLAN_OPTIONS_INIT;
    if (options != NULL && options->struct_size != sizeof own)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "struct_size of options is wrong: start from TCONV_PLAN_OPTIONS_INIT");
    if (options != NULL) own = *options;
    own.bias = bias != NULL;
    struct run run = {0};
    tconv_status status = tconv_plan_create(host->device, problem, &own, &run.plan, error);
    if (status != TCONV_OK) return status;
    const tconv_geometry *geometry = tconv_plan_geometry(run.plan);
    if (geometry->output_bytes != 0) {
        if (data == NULL || filter == NULL || output == NULL)
            status = tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                                data == NULL     ? "data"
                                : filter == NULL ? "filter"
                                                 : "output");
        else
            status = run_plan(host, &run, data, filter, bias, output,
                              (uint64_t)(geometry->groups * geometry->group_out_channels) *
                                  tconv_type_size(problem->data_type),
                              error);
    }
    if (status != TCONV_OK)
        clFinish(host->queue); /* no command outlives the buffers that it uses */
    tconv_filter_release(run.filter);
    const cl_mem buffers[] = {run.data, run.weights, run.bias, run.output, run.workspace};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (buffers[i] != NULL) clReleaseMemObject(buffers[i]);
    tconv_plan_release(run.plan);
    return status;
}
