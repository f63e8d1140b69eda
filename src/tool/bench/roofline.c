/* SPDX-License-Identifier: Apache-2.0 */
/* Measures a device with the kernels of cl/any/roofline.cl: the peak of multiply-adds, the
 * bandwidth by working set, and the time of a launch. */
#include "tool/bench/roofline.h"

#include "base/os.h"
#include "tool/io/tool_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where the kernels run. Each is one launch, so a device whose launches threads share, in parts,
 * is replaced by that of the list, whose driver has threads. */
struct meter {
    const tconv_device_info *info;
    cl_context context;
    cl_command_queue queue;
    bool owned; /* context and queue are the meter's own */
};

static void meter_close(struct meter *m)
{
    if (!m->owned) return;
    if (m->queue != NULL) clReleaseCommandQueue(m->queue);
    if (m->context != NULL) clReleaseContext(m->context);
}

/* The device that was opened. */
static struct meter meter_of(const struct opened *opened)
{
    return (struct meter){.info = tconv_device_properties(opened->device),
                          .context = tconv_device_context(opened->device),
                          .queue = opened->queue};
}

static enum exit_code meter_open(const struct opened *opened, struct meter *m)
{
    const int threads = tconv_device_threads(opened->device);
    *m = meter_of(opened);
    if (threads == 0) return EXIT_DONE;
    *m = (struct meter){.info = m->info, .owned = true};
    tconv_error error;
    cl_device_id device;
    if (tconv_device_at(opened->number, NULL, &device, &error) != TCONV_OK)
        return failed_call(&error);
    if (device == tconv_device_id(opened->device) && threads > 1)
        notice("the ceilings are those of one thread: PoCL offers no device with threads of its "
               "own (POCL_DEVICES)");
    else if ((uint32_t)threads < m->info->compute_units)
        notice("the ceilings are those of %u compute units, but TCONV_CL_THREADS lets %d compute",
               (unsigned)m->info->compute_units, threads);
    cl_int code;
    m->context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    if (code != CL_SUCCESS) m->context = NULL;
    if (code == CL_SUCCESS) m->queue = clCreateCommandQueue(m->context, device, 0, &code);
    if (code == CL_SUCCESS) return EXIT_DONE;
    m->queue = NULL;
    meter_close(m);
    return failed_work("device %d gives no queue to measure its ceilings (OpenCL code %d)",
                       opened->number, code);
}

/* How to spread work over a device. */
struct spread {
    int vw, chains, chunk;
    size_t local, items; /* of a group; of the peak kernel */
};

static struct spread spread_of(const tconv_device_info *d)
{
    if (d->kind == TCONV_DEVICE_CPU && d->vector_width > 1)
        return (struct spread){
            .vw = d->vector_width > 16 ? 16 : (int)d->vector_width,
            .chains = d->vector_width >= 16 ? 24 : 12,
            .chunk = 256,
            .local = 1,
            .items = (size_t)d->compute_units * 16,
        };
    size_t local = 256;
    while (local > d->work_group_limit || local > d->work_item_limit[0]) local /= 2;
    return (struct spread){.vw = 4,
                           .chains = 8,
                           .chunk = 4,
                           .local = local,
                           .items = (size_t)d->compute_units * 2048 / local * local};
}

static cl_program build(const struct meter *m, const struct spread *spread, cl_int *code)
{
    const char *text = tool_file("roofline.cl");
    cl_program program = clCreateProgramWithSource(m->context, 1, &text, NULL, code);
    if (*code != CL_SUCCESS) return NULL;
    char flags[200];
    snprintf(flags, sizeof flags, "-cl-std=CL1.2 -DVW=%d -DCHAINS=%d -DCHUNK=%d -DUSE_FMA=%d",
             spread->vw, spread->chains, spread->chunk, m->info->fma);
    *code = clBuildProgram(program, 0, NULL, flags, NULL, NULL);
    if (*code == CL_SUCCESS) return program;
    clReleaseProgram(program);
    return NULL;
}

/* Seconds from enqueueing a kernel `times` times until tconv_wait returns, divided by `times`.
 * Negative if a call fails. */
static double run_once(cl_command_queue queue, cl_kernel kernel, size_t global, size_t local,
                       int times)
{
    cl_event done = NULL;
    bool ran = true;
    const double start = tconv_os_seconds();
    for (int i = 0; i < times && ran; i++)
        ran = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &local, 0, NULL,
                                     i + 1 < times ? NULL : &done) == CL_SUCCESS;
    ran = ran && tconv_wait(done, NULL) == TCONV_OK;
    const double seconds = tconv_os_seconds() - start;
    if (done != NULL) clReleaseEvent(done);
    return ran ? seconds / times : -1;
}

/* The shortest of several runs within `budget` seconds. Negative if a call fails. */
static double shortest(cl_command_queue queue, cl_kernel kernel, size_t global, size_t local,
                       int times, double budget)
{
    double least = -1;
    const double begin = tconv_os_seconds();
    for (int run = 0; run < 3 || tconv_os_seconds() - begin < budget; run++) {
        const double seconds = run_once(queue, kernel, global, local, times);
        if (seconds < 0) return -1;
        if (least < 0 || seconds < least) least = seconds;
    }
    return least;
}

static bool measure_peak(const struct meter *m, cl_program program, const struct spread *spread,
                         double *gflops)
{
    cl_int code;
    cl_kernel kernel = clCreateKernel(program, "peak", &code);
    if (code != CL_SUCCESS) return false;
    cl_mem out =
        clCreateBuffer(m->context, CL_MEM_READ_WRITE, spread->items * sizeof(float), NULL, &code);
    bool measured = code == CL_SUCCESS;
    const float a = 0.999F, b = 1e-3F;
    double seconds = 0;
    /* Find steps that take some 20 ms, so that the launch does not matter. */
    for (cl_int steps = 1000; measured && seconds < 0.02 && steps < 1 << 28; steps *= 4) {
        measured = clSetKernelArg(kernel, 0, sizeof out, &out) == CL_SUCCESS &&
                   clSetKernelArg(kernel, 1, sizeof a, &a) == CL_SUCCESS &&
                   clSetKernelArg(kernel, 2, sizeof b, &b) == CL_SUCCESS &&
                   clSetKernelArg(kernel, 3, sizeof steps, &steps) == CL_SUCCESS;
        seconds = measured ? shortest(m->queue, kernel, spread->items, spread->local, 1, 0.1) : -1;
        measured = seconds > 0;
        *gflops = 2e-9 * steps * spread->chains * spread->vw * (double)spread->items / seconds;
    }
    if (out != NULL) clReleaseMemObject(out);
    clReleaseKernel(kernel);
    return measured;
}

/* Measures the shortest launch. An average would mislead: on PoCL an empty kernel often takes
 * longer than one of 10 us, because its threads go to sleep while they are being woken. */
static bool measure_launch(const struct meter *m, cl_program program, struct roofline *roofline)
{
    enum { MANY = 50 };
    cl_int code;
    cl_kernel kernel = clCreateKernel(program, "empty", &code);
    if (code != CL_SUCCESS) return false;
    roofline->launch_us = 1e6 * shortest(m->queue, kernel, 1, 1, 1, 0.02);
    roofline->queued_us = 1e6 * shortest(m->queue, kernel, 1, 1, MANY, 0.02);
    clReleaseKernel(kernel);
    return roofline->launch_us > 0 && roofline->queued_us > 0;
}

static bool measure_bandwidth(const struct meter *m, cl_program program,
                              const struct spread *spread, struct roofline *roofline)
{
    const tconv_device_info *d = m->info;
    cl_int code;
    cl_kernel kernel = clCreateKernel(program, "triad", &code);
    if (code != CL_SUCCESS) return false;
    const size_t group = spread->local * (size_t)spread->chunk * (size_t)spread->vw * sizeof(float);
    const float s = 0.5F;
    bool measured = true;
    roofline->sizes = 0;
    for (size_t array = 64 << 10;
         measured && roofline->sizes < MOST_SIZES && array <= (size_t)256 << 20; array *= 4) {
        if (array > d->allocation_limit || 4 * array > d->global_memory) break;
        const size_t bytes = array / group * group;
        cl_mem buffers[3] = {NULL, NULL, NULL};
        for (cl_uint i = 0; i < 3 && measured; i++) {
            const cl_float zero = 0;
            buffers[i] = clCreateBuffer(m->context, CL_MEM_READ_WRITE, array, NULL, &code);
            measured = code == CL_SUCCESS &&
                       clEnqueueFillBuffer(m->queue, buffers[i], &zero, sizeof zero, 0, array, 0,
                                           NULL, NULL) == CL_SUCCESS &&
                       clSetKernelArg(kernel, i, sizeof buffers[i], &buffers[i]) == CL_SUCCESS;
        }
        measured = measured && clSetKernelArg(kernel, 3, sizeof s, &s) == CL_SUCCESS &&
                   clFinish(m->queue) == CL_SUCCESS;
        const double seconds =
            measured ? shortest(m->queue, kernel,
                                bytes / sizeof(float) / (size_t)(spread->vw * spread->chunk),
                                spread->local, 1, 0.1)
                     : -1;
        measured = seconds > 0;
        roofline->bytes[roofline->sizes] = 3.0 * (double)bytes;
        roofline->gbs[roofline->sizes++] = 3e-9 * (double)bytes / seconds;
        for (int i = 0; i < 3; i++)
            if (buffers[i] != NULL) clReleaseMemObject(buffers[i]);
    }
    clReleaseKernel(kernel);
    return measured && roofline->sizes > 0;
}

/* A launch takes what it takes on the device that computes layers. */
static bool measure_own_launch(const struct opened *opened, const struct meter *m,
                               cl_program program, const struct spread *spread,
                               struct roofline *roofline)
{
    struct meter own = meter_of(opened);
    cl_int code = CL_SUCCESS;
    const bool same = own.context == m->context;
    cl_program launched = same ? program : build(&own, spread, &code);
    const bool measured = launched != NULL && measure_launch(&own, launched, roofline);
    if (!same && launched != NULL) clReleaseProgram(launched);
    return measured;
}

enum exit_code roofline_measure(const struct opened *opened, struct roofline *roofline)
{
    struct meter m;
    const enum exit_code opens = meter_open(opened, &m);
    if (opens != EXIT_DONE) return opens;
    const struct spread spread = spread_of(m.info);
    cl_int code;
    cl_program program = build(&m, &spread, &code);
    if (program == NULL) {
        meter_close(&m);
        return failed_work("the kernels that measure the device's ceilings do not build (%d)",
                           code);
    }
    const bool measured = measure_peak(&m, program, &spread, &roofline->probed_gflops) &&
                          measure_own_launch(opened, &m, program, &spread, roofline) &&
                          measure_bandwidth(&m, program, &spread, roofline);
    clReleaseProgram(program);
    meter_close(&m);
    return measured
               ? EXIT_DONE
               : failed_work("the device's ceilings cannot be measured: an OpenCL call failed");
}

enum exit_code roofline_measure_again(const struct opened *opened, struct roofline *roofline)
{
    struct roofline later = {0};
    const enum exit_code code = roofline_measure(opened, &later);
    if (code != EXIT_DONE) return code;
    roofline->probed_gflops = fmax(roofline->probed_gflops, later.probed_gflops);
    roofline->launch_us = fmin(roofline->launch_us, later.launch_us);
    for (int i = 0; i < roofline->sizes && i < later.sizes; i++)
        roofline->gbs[i] = fmax(roofline->gbs[i], later.gbs[i]);
    return EXIT_DONE;
}

void roofline_raise(struct roofline *roofline, double gflops, double bytes, double gbs)
{
    roofline->layers_gflops = fmax(roofline->layers_gflops, gflops);
    roofline->layers[roofline->layer_count++] = (struct roofline_layer){bytes, gbs};
}

double roofline_peak(const struct roofline *roofline)
{
    return fmax(roofline->probed_gflops, roofline->layers_gflops);
}

double roofline_bandwidth(const struct roofline *roofline, double bytes)
{
    const double largest = roofline->bytes[roofline->sizes - 1];
    int size = 0;
    while (roofline->bytes[size] < fmin(bytes, largest)) size++;
    double gbs = roofline->gbs[size];
    for (size_t i = 0; i < roofline->layer_count; i++) {
        const double moved = fmin(roofline->layers[i].bytes, largest);
        if (moved >= fmin(bytes, largest) && moved <= roofline->bytes[size])
            gbs = fmax(gbs, roofline->layers[i].gbs);
    }
    return gbs;
}

double roofline_memory_bandwidth(const struct roofline *roofline)
{
    return roofline_bandwidth(roofline, roofline->bytes[roofline->sizes - 1]);
}
