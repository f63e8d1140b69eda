/* SPDX-License-Identifier: Apache-2.0 */
/* Runs and verifies one layer. */
#include "tool/bench/trial.h"

#include "base/checked.h"
#include "base/os.h"
#include "base/text.h"
#include "tool/bench/trace.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *plan_text(const tconv_plan *plan, int (*write)(const tconv_plan *, char *, size_t))
{
    const int length = write(plan, NULL, 0);
    char *text = length == 0 ? NULL : malloc((size_t)length + 1);
    if (text != NULL) write(plan, text, (size_t)length + 1);
    return text;
}

void tell_plan(const char *layer, const char *passed_over, const char *not_stored)
{
    const char *const colon = layer[0] == '\0' ? "" : ": ", *line;
    int length;
    while ((line = next_line(&passed_over, &length)) != NULL)
        notice("%s%spassed over %.*s", layer, colon, length, line);
    if (not_stored != NULL) notice("%s%s%s", layer, colon, not_stored);
}

static bool give_up(struct trial *t, tconv_status status, const char *format, ...)
    TCONV_PRINTF(3, 4);
static bool give_up(struct trial *t, tconv_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(t->error, sizeof t->error, format, arguments);
    va_end(arguments);
    t->status = status;
    return false;
}

/* False, after giving up, if the program was interrupted. */
static bool go_on(struct trial *t)
{
    return !interrupted() || give_up(t, TCONV_ERROR_CANCELLED, "interrupted");
}

/* Gives up after a failed call. If the program was interrupted, that is the reason: the terminal's
 * signal also ends the processes in which an OpenCL runtime compiles. */
static bool give_up_call(struct trial *t, const tconv_error *error)
{
    return go_on(t) && give_up(t, error->status, "%s", error->message);
}

bool tensors_fit(const tconv_device_info *d, const tconv_geometry *g, char *why, size_t size)
{
    const struct {
        const char *what;
        uint64_t bytes;
    } tensors[] = {
        {"data", g->data_bytes}, {"filter", g->filter_bytes}, {"output", g->output_bytes}};
    uint64_t sum = 0;
    int largest = 0;
    for (int i = 0; i < 3; i++) {
        sum += tensors[i].bytes;
        if (tensors[i].bytes > tensors[largest].bytes) largest = i;
    }
    const bool one = tensors[largest].bytes <= d->allocation_limit, all = sum <= d->global_memory;
    if (!one)
        snprintf(why, size,
                 "does not fit: its %s takes %.3f GB, the device allows %.3f GB in one buffer",
                 tensors[largest].what, 1e-9 * (double)tensors[largest].bytes,
                 1e-9 * (double)d->allocation_limit);
    else if (!all)
        snprintf(why, size, "does not fit: its tensors take %.3f GB, the device has %.3f GB",
                 1e-9 * (double)sum, 1e-9 * (double)d->global_memory);
    return one && all;
}

/* Refuses a layer that does not fit, before anything is allocated. */
static bool check_fit(struct trial *t)
{
    char why[200];
    return tensors_fit(tconv_device_properties(t->opened->device), &t->geometry, why, sizeof why) ||
           give_up(t, TCONV_ERROR_DEVICE_MEMORY, "%s", why);
}

/* Makes reproducible elements: numbers in [-2, 2), integers of any value. NULL if memory is
 * missing. */
static void *make_array(tconv_type type, uint64_t bytes, uint32_t seed)
{
    const size_t count = (size_t)bytes / tconv_type_size(type);
    void *array = tconv_allocate(bytes);
    for (size_t i = 0; array != NULL && i < count; i++) {
        seed = seed * 1664525U + 1013904223U;
        const double value = (double)(int32_t)seed * 0x1p-30;
        uint64_t bits = seed * UINT64_C(0x9e3779b97f4a7c15);
        bits ^= bits >> 32;
        if (type == TCONV_F32)
            ((float *)array)[i] = (float)value;
        else if (tconv_type_is_floating(type))
            tconv_oracle_write(type, array, (int64_t)i, value);
        else
            memcpy((char *)array + i * tconv_type_size(type), &bits, tconv_type_size(type));
    }
    return array;
}

/* Factors that bring the sums of requantised integers into the range of a byte. */
static void make_scales(struct trial *t, float *scale, size_t count)
{
    const double outputs = (double)tconv_oracle_outputs(&t->operands);
    const double terms = fmax(1, (double)t->geometry.macs / outputs);
    for (size_t i = 0; i < count; i++)
        scale[i] = (float)((0.5 + 0.25 * fabs((double)scale[i])) / (100 * sqrt(terms)));
}

/* Makes a buffer with the contents of an array, or without contents; no buffer for 0 bytes. Only
 * missing memory counts as a layer that does not fit: other codes tell of a device that fails. */
static bool make_buffer(struct trial *t, const char *what, const void *source, uint64_t bytes,
                        cl_mem *buffer)
{
    if (bytes == 0) return true;
    cl_int code;
    *buffer = clCreateBuffer(tconv_device_context(t->opened->device), CL_MEM_READ_WRITE,
                             (size_t)bytes, NULL, &code);
    /* Of an upload CL_OUT_OF_RESOURCES tells of a device that fails. */
    bool missing = code == CL_OUT_OF_RESOURCES || code == CL_INVALID_BUFFER_SIZE;
    if (code == CL_SUCCESS && source != NULL)
        code = clEnqueueWriteBuffer(trace_queue(t->opened), *buffer, CL_TRUE, 0, (size_t)bytes,
                                    source, 0, NULL, NULL);
    missing = missing || code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY;
    return code == CL_SUCCESS ||
           give_up(t, missing ? TCONV_ERROR_DEVICE_MEMORY : TCONV_ERROR_OPENCL,
                   "%s%llu bytes for the %s cannot be had (OpenCL code %d)",
                   missing ? "does not fit: " : "", (unsigned long long)bytes, what, code);
}

/* A tensor of a trial: its elements on the host, and its buffer. */
struct tensor {
    const char *what;
    bool wanted;
    tconv_type type;
    uint64_t bytes;
    const void **array; /* NULL: it has no contents */
    cl_mem *buffer;     /* NULL: it is not uploaded */
};

enum { TENSORS = 9 };

/* The tensors of the layer and of the epilogue. */
static void list_tensors(struct trial *t, struct tensor list[TENSORS])
{
    const tconv_geometry *g = &t->geometry;
    const tconv_problem *p = t->problem;
    const tconv_epilogue *e = &t->epilogue;
    const tconv_type number = tconv_scale_type(p->data_type);
    const uint64_t channels = (uint64_t)g->epilogue_channels;
    struct tconv_operands *o = &t->operands;
    const tconv_type bias = tconv_bias_type(e, g->output_type);
    const struct tensor tensors[TENSORS] = {
        {"data", true, p->data_type, g->data_bytes, &o->data, &t->args.data.memory},
        {"filter", true, p->filter_type, g->filter_bytes, &o->filter, &t->weights},
        {"bias", e->bias, bias, channels * tconv_type_size(bias), &o->bias, &t->args.bias.memory},
        {"scale", e->scale, number, channels * tconv_type_size(number), &o->scale,
         &t->args.scale.memory},
        {"slope", tconv_activation_has_slope(e->activation), number,
         channels * tconv_type_size(number), &o->slope, &t->args.slope.memory},
        {"slope2", tconv_activation_slope_count(e->activation) > 1, number,
         channels * tconv_type_size(number), &o->slope2, &t->args.slope2.memory},
        {"residual", e->residual, g->output_type, g->residual_bytes, &o->residual,
         &t->args.residual.memory},
        {"output before", e->beta != 0, g->output_type, g->output_bytes, &o->before, NULL},
        {"output", true, g->output_type, g->output_bytes, NULL, &t->args.output.memory},
    };
    memcpy(list, tensors, sizeof tensors);
}

/* Makes the contents of all tensors: the given weights, or any. */
static bool make_arrays(struct trial *t, const void *weights, tconv_type type)
{
    const tconv_geometry *g = &t->geometry;
    struct tensor list[TENSORS];
    list_tensors(t, list);
    for (size_t i = 0; i < TENSORS; i++) {
        if (!list[i].wanted || list[i].array == NULL) continue;
        void *array = make_array(list[i].type, list[i].bytes, (uint32_t)i + 1);
        *list[i].array = array;
        if (array == NULL)
            return give_up(t, TCONV_ERROR_HOST_MEMORY,
                           "does not fit: no host memory for its tensors");
        if (list[i].array == &t->operands.scale && t->epilogue.requantize)
            make_scales(t, array, (size_t)g->epilogue_channels);
        for (size_t w = 0; list[i].array == &t->operands.filter && weights != NULL &&
                           w < (size_t)g->filter_bytes / tconv_type_size(list[i].type);
             w++)
            tconv_oracle_write(list[i].type, array, (int64_t)w,
                               tconv_oracle_read(type, weights, (int64_t)w));
    }
    return true;
}

/* Makes the buffers of all tensors, and uploads their contents. */
static bool upload(struct trial *t)
{
    struct tensor list[TENSORS];
    list_tensors(t, list);
    for (size_t i = 0; i < TENSORS; i++)
        if (list[i].wanted && list[i].buffer != NULL &&
            !make_buffer(t, list[i].what, list[i].array == NULL ? NULL : *list[i].array,
                         list[i].bytes, list[i].buffer))
            return false;
    return true;
}

static void release_buffers(struct trial *t)
{
    cl_mem *const buffers[] = {&t->weights,
                               &t->args.data.memory,
                               &t->args.bias.memory,
                               &t->args.scale.memory,
                               &t->args.slope.memory,
                               &t->args.slope2.memory,
                               &t->args.residual.memory,
                               &t->args.output.memory};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        if (*buffers[i] != NULL) clReleaseMemObject(*buffers[i]);
        *buffers[i] = NULL;
    }
}

static bool tell_progress(void *context, const char *algorithm, int index, int count,
                          double best_ms)
{
    const struct place *p = context;
    char text[160];
    struct tconv_text line = tconv_text_begin(text, sizeof text);
    tconv_text_add(&line, "%s %s, %d of %d", p->entry->id, algorithm,
                   index < count ? index + 1 : count, count);
    if (best_ms > 0) tconv_text_add(&line, ", best %.4g ms", best_ms);
    progress(p->layer, p->layers, text);
    return !interrupted();
}

tconv_plan_options trial_options(const struct place *place)
{
    tconv_plan_options o = TCONV_PLAN_OPTIONS_INIT;
    read_epilogue(&o.epilogue); /* cannot fail: read_options has checked it */
    o.epilogue.bias = options.with_bias != 0;
    o.epilogue.scale = options.with_scale != 0;
    o.epilogue.residual = options.with_residual != 0;
    o.math = chosen_math();
    o.search_progress = place == NULL ? NULL : tell_progress;
    o.search_context = (void *)place;
    return o;
}

bool trial_prepare(struct trial *t, const struct opened *opened, const struct entry *entry)
{
    const tconv_problem *problem = &entry->problem;
    *t = (struct trial){.opened = opened,
                        .problem = problem,
                        .geometry = TCONV_GEOMETRY_INIT,
                        .args = TCONV_TENSORS_INIT};
    if (!go_on(t)) return false;
    if (entry->error != NULL) return give_up(t, entry_status(entry), "%s", entry->error);
    tconv_error error;
    if (tconv_resolve(problem, &t->geometry, &error) != TCONV_OK) return give_up_call(t, &error);
    t->epilogue = trial_options(NULL).epilogue;
    t->operands = (struct tconv_operands){
        .problem = problem, .geometry = &t->geometry, .epilogue = &t->epilogue};
    t->empty = t->geometry.output_bytes == 0;
    if (t->empty) return give_up(t, TCONV_OK, "nothing to compute: the batch of its data is 0");
    return check_fit(t) && make_arrays(t, entry->weights, entry->weights_type) && upload(t);
}

static void free_plan(struct trial *t)
{
    /* Commands must finish before their buffers are released and the program ends. */
    if (t->plan != NULL) clFinish(trace_queue(t->opened));
    tconv_packed_filter_release(t->packed);
    tconv_plan_release(t->plan);
    if (t->args.workspace.memory != NULL) clReleaseMemObject(t->args.workspace.memory);
    t->packed = NULL;
    t->plan = NULL;
    t->args.workspace.memory = NULL;
}

/* Sets the output before a run: with beta its old contents, else a pattern that is NaN in every
 * floating-point type, and an unlikely integer. */
static bool clear_output(struct trial *t)
{
    const cl_uint nan_bits = 0x7ff87ff8;
    const cl_command_queue queue = trace_queue(t->opened);
    const size_t bytes = (size_t)t->geometry.output_bytes;
    const size_t pattern = bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1;
    cl_int code = t->operands.before != NULL
                      ? clEnqueueWriteBuffer(queue, t->args.output.memory, CL_TRUE, 0, bytes,
                                             t->operands.before, 0, NULL, NULL)
                      : clEnqueueFillBuffer(queue, t->args.output.memory, &nan_bits, pattern, 0,
                                            bytes, 0, NULL, NULL);
    if (code == CL_SUCCESS) code = clFinish(queue);
    return code == CL_SUCCESS ||
           give_up(t, TCONV_ERROR_OPENCL, "the output cannot be cleared (OpenCL code %d)", code);
}

/* True if threads of the device compute: only for calls that need no queue. */
static bool has_threads(const struct trial *t)
{
    return tconv_device_threads(t->opened->device) > 0;
}

static tconv_status pack(struct trial *t, tconv_error *error)
{
    const tconv_tensor weights = {.memory = t->weights};
    return has_threads(t) ? tconv_packed_filter_pack(t->packed, &weights, error)
                          : tconv_packed_filter_enqueue_pack(t->packed, trace_queue(t->opened),
                                                             &weights, 0, NULL, NULL, error);
}

/* Plans, packs and runs once with a device object, and takes the time of all of it. */
static bool first_call(struct trial *t, tconv_device *device, const char *algorithm,
                       double *all_seconds)
{
    free_plan(t);
    if (!go_on(t)) return false;
    tconv_error error;
    tconv_plan_options plan = trial_options(NULL);
    plan.algorithm = algorithm;
    const double start = tconv_os_seconds();
    if (tconv_plan_create(device, t->problem, &plan, &t->plan, &error) != TCONV_OK)
        return give_up_call(t, &error);
    if (!make_buffer(t, "workspace", NULL, tconv_plan_workspace_bytes(t->plan),
                     &t->args.workspace.memory))
        return false;
    if (tconv_packed_filter_create(t->plan, NULL, &t->packed, &error) != TCONV_OK ||
        pack(t, &error) != TCONV_OK)
        return give_up_call(t, &error);
    t->args.packed = t->packed;
    t->operands.error_factor = tconv_plan_error_factor(t->plan);
    const double seconds = trial_repeat(t, 1);
    *all_seconds = tconv_os_seconds() - start;
    return seconds >= 0;
}

bool trial_run(struct trial *t, const char *algorithm)
{
    t->error[0] = '\0';
    return clear_output(t) && first_call(t, t->opened->device, algorithm, &t->first_call_seconds);
}

/* Opens the device once more, and makes the buffers again in that context: threads are of a device
 * object that was opened. */
static bool open_again(struct trial *t)
{
    tconv_error error;
    free_plan(t);
    release_buffers(t);
    if (device_open(t->opened->number, &t->again, &error) != TCONV_OK)
        return give_up_call(t, &error);
    trace_device(t->again.device);
    t->opened = &t->again;
    return upload(t);
}

bool trial_run_anew(struct trial *t)
{
    tconv_error error;
    tconv_device *device = NULL;
    char algorithm[64 + TILE_TEXT], tile[TILE_TEXT];
    tconv_plan_tile(t->plan, tile, sizeof tile);
    snprintf(algorithm, sizeof algorithm, "%s %s", tconv_plan_algorithm(t->plan), tile);
    if (has_threads(t))
        return open_again(t) && first_call(t, t->again.device, algorithm, &t->warm_call_seconds);
    if (tconv_device_create(tconv_device_context(t->opened->device),
                            tconv_device_id(t->opened->device), &device, &error) != TCONV_OK)
        return give_up_call(t, &error);
    trace_device(device);
    const bool done = first_call(t, device, algorithm, &t->warm_call_seconds);
    tconv_device_release(device); /* the plan keeps it */
    return done;
}

double trial_repeat(struct trial *t, int times)
{
    if (!go_on(t)) return -1;
    tconv_error error;
    tconv_status status = TCONV_OK;
    cl_event done = NULL;
    const double start = tconv_os_seconds();
    for (int i = 0; i < times && status == TCONV_OK; i++)
        status = has_threads(t) ? tconv_plan_run(t->plan, &t->args, &error)
                                : tconv_plan_enqueue(t->plan, trace_queue(t->opened), &t->args, 0,
                                                     NULL, i + 1 < times ? NULL : &done, &error);
    if (status == TCONV_OK && done != NULL) status = tconv_wait(done, &error);
    const double seconds = tconv_os_seconds() - start;
    if (done != NULL) clReleaseEvent(done);
    if (status == TCONV_OK) return seconds / times;
    give_up_call(t, &error);
    return -1;
}

/* Compares one element, and remembers the largest error. */
static bool compare(struct trial *t, size_t at)
{
    const struct tconv_expected expected = tconv_oracle_element(&t->operands, (int64_t)at);
    const tconv_type type = t->geometry.output_type;
    const int64_t place = tconv_oracle_place(&t->operands, (int64_t)at);
    const double error = tconv_oracle_error(&expected, type, t->output, place);
    if (error > t->max_error || t->compared == 0) {
        t->max_error = error;
        t->error_bound = expected.bound;
    }
    t->compared++;
    return error <= 1 ||
           give_up(t, TCONV_ERROR_INTERNAL,
                   "wrong result: output element %zu is %.9g, but should be %.9g within %.3g", at,
                   tconv_oracle_read(type, t->output, place), expected.value, expected.bound);
}

/* Whether a NaN is anywhere in the output's memory, between its elements included: finding each
 * element's place takes much longer. */
static bool may_have_nan(const struct trial *t, tconv_type type, size_t bytes)
{
    const size_t count = tconv_type_is_floating(type) ? bytes / tconv_type_size(type) : 0;
    for (size_t i = 0; i < count; i++)
        if (isnan(tconv_oracle_read(type, t->output, (int64_t)i))) return true;
    return false;
}

bool trial_verify(struct trial *t, size_t most)
{
    const tconv_type type = t->geometry.output_type;
    const size_t bytes = (size_t)t->geometry.output_bytes,
                 count = (size_t)tconv_oracle_outputs(&t->operands);
    t->max_error = t->error_bound = 0;
    t->compared = 0;
    if (count == 0) return true;
    if (t->output == NULL) t->output = malloc(bytes);
    if (t->output == NULL)
        return give_up(t, TCONV_ERROR_HOST_MEMORY, "no host memory to verify its output");
    const cl_int code = clEnqueueReadBuffer(trace_queue(t->opened), t->args.output.memory, CL_TRUE,
                                            0, bytes, t->output, 0, NULL, NULL);
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
        right = go_on(t) && compare(t, from + (to > from + 1 ? (seed >> 8) % (to - from) : 0));
    }
    const bool searches = right && may_have_nan(t, type, bytes);
    for (size_t i = 0; searches && i < count && right;
         i++) /* data and weights are finite: a NaN was never written, or computed wrongly */
        if (isnan(tconv_oracle_read(type, t->output, tconv_oracle_place(&t->operands, (int64_t)i))))
            right = compare(t, i);
    return right;
}

void trial_free(struct trial *t)
{
    free_plan(t);
    release_buffers(t);
    const void *const arrays[] = {t->operands.data,     t->operands.filter, t->operands.bias,
                                  t->operands.scale,    t->operands.slope,  t->operands.slope2,
                                  t->operands.residual, t->operands.before, t->output};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free((void *)arrays[i]);
    device_close(&t->again);
    *t = (struct trial){0};
}
