/* SPDX-License-Identifier: Apache-2.0 */
/* Computes in slabs. Each device has a worker, which takes the next slab again and again. It uses
 * two queues in turn, so that one slab's transfers run beside the other's kernels. */
#include "tconv_cl/slabs.h"

#include "base/addressable.h"
#include "base/cancel.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/process.h"
#include "base/steps.h"
#include "base/struct_size.h"
#include "base/view.h"
#include "geometry/window.h"
#include "session/session_internal.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    SETS = 2,  /* slabs in flight on one device */
    PLANS = 4, /* kept by a worker: interior slabs share one */
    SLABS_A_DEVICE =
        6, /* the least slabs of each of several devices, so that they finish together */
};
static const uint64_t DEFAULT_LIMIT = UINT64_C(256) << 20;

/* The division into slabs: each has `items` batch items and `rows` output rows, the last ones
 * fewer. */
struct division {
    int64_t items, rows;
    int64_t item_parts, row_parts;
};

/* A tensor of the arrays. On devices slabs of it are dense. */
struct tensor {
    struct tconv_view view;
    size_t element; /* bytes */
    uint64_t bytes; /* if it were dense */
    bool dense;
};

/* The state that all workers share. */
struct job {
    struct tconv_session_call call;
    tconv_slabs_options slabs;
    /* The arrays' geometry: the problem's, or that of the window in call.options. */
    tconv_geometry geometry;
    struct division division;
    struct tensor data, output, residual;
    pthread_mutex_t lock; /* guards the members below */
    int64_t next, done;
    bool stopped;
    tconv_error error; /* the first one */
};

/* A plan for slabs of one kind, with its filter. */
struct kind {
    int64_t items, input, pad, output;
    tconv_plan *plan;
    tconv_packed_filter *filter;
    cl_mem workspace[SETS];
};

/* A dense copy of a slab of a tensor that has steps, on the host. */
struct staging {
    void *elements;
    size_t bytes;
};

/* A slab in flight. */
struct set {
    cl_command_queue queue;
    cl_mem data, residual, output;
    size_t data_bytes, output_bytes;
    struct staging staging_data, staging_residual, staging_output;
    cl_event read; /* reads the output; NULL: the set has no slab */
    tconv_slab slab;
};

struct worker {
    struct job *job;
    int index;
    tconv_session *session;
    pthread_t thread;
    cl_mem weights, bias, scale, slope;
    struct set set[SETS];
    struct kind kind[PLANS];
    int kinds;
};

/* Bytes of one of `rows` rows that have `bytes` in all. Empty data has neither. */
static uint64_t row_bytes(uint64_t bytes, int64_t rows)
{
    return rows == 0 ? 0 : bytes / (uint64_t)rows;
}

static int64_t count_of(const struct job *job)
{
    return job->division.item_parts * job->division.row_parts;
}

static tconv_slab slab_at(const struct job *job, int64_t number, int session)
{
    const struct division *d = &job->division;
    const int64_t item = number / d->row_parts * d->items, row = number % d->row_parts * d->rows;
    tconv_slab slab = {.session = session,
                       .batch_begin = item,
                       .batch_end = item + d->items,
                       .output_begin = row,
                       .output_end = row + d->rows};
    if (slab.batch_end > job->geometry.batch) slab.batch_end = job->geometry.batch;
    if (slab.output_end > job->geometry.output[0]) slab.output_end = job->geometry.output[0];
    tconv_window_input(&job->geometry, slab.output_begin, slab.output_end, &slab.input_begin,
                       &slab.input_end, NULL);
    return slab;
}

static uint64_t bias_bytes(const struct job *job)
{
    const tconv_geometry *g = &job->geometry;
    return (uint64_t)(g->groups * g->group_out_channels) *
           tconv_type_size(tconv_bias_type(&job->call.options.epilogue, g->output_type));
}

/* Of the slope, too. */
static uint64_t scale_bytes(const struct job *job)
{
    return (uint64_t)(job->geometry.groups * job->geometry.group_out_channels) *
           tconv_type_size(tconv_scale_type(job->call.problem.data_type));
}

/* ---- Dividing ---- */

/* Bytes of data and of output for one batch item and `rows` output rows. */
static void bytes_of(const struct job *job, int64_t rows, uint64_t *data, uint64_t *output)
{
    const tconv_geometry *g = &job->geometry;
    const int64_t span = g->dilation[0] * (g->kernel[0] - 1);
    int64_t inputs = (rows - 1 + span) / g->stride[0] + 2;
    if (inputs > g->input[0]) inputs = g->input[0];
    *data = row_bytes(job->data.bytes / (uint64_t)g->batch, g->input[0]) * (uint64_t)inputs;
    *output = row_bytes(job->output.bytes / (uint64_t)g->batch, g->output[0]) * (uint64_t)rows;
}

/* True if `items` batch items of `rows` output rows fit the limit, and each tensor fits into one
 * buffer. */
static bool fits(const struct job *job, int64_t items, int64_t rows, uint64_t limit,
                 uint64_t allocation)
{
    uint64_t data, output;
    bytes_of(job, rows, &data, &output);
    const double all =
        (double)items *
        ((double)data + (double)output * (job->call.options.epilogue.residual ? 2 : 1));
    return SETS * all <= (double)limit && (double)items * (double)data <= (double)allocation &&
           (double)items * (double)output <= (double)allocation;
}

/* Chooses the largest slabs that fit every device, but enough of them for several devices. */
static tconv_status divide(struct job *job, tconv_session *const *sessions, int session_count,
                           tconv_error *error)
{
    const tconv_geometry *g = &job->geometry;
    struct division *d = &job->division;
    const uint64_t limit = job->slabs.memory_limit != 0 ? job->slabs.memory_limit : DEFAULT_LIMIT;
    uint64_t allocation = UINT64_MAX;
    int smallest = 0;
    for (int i = 0; i < session_count; i++) {
        const uint64_t own =
            tconv_device_properties(tconv_session_device(sessions[i]))->allocation_limit;
        if (own < allocation) smallest = i;
        if (own < allocation) allocation = own;
    }
    const int64_t wanted = session_count > 1 ? (int64_t)session_count * SLABS_A_DEVICE : 1;
    *d = (struct division){.items = 1, .rows = g->output[0]};
    if (fits(job, 1, d->rows, limit, allocation) && g->batch >= wanted) {
        while (d->items * 2 <= g->batch / wanted &&
               fits(job, d->items * 2, d->rows, limit, allocation))
            d->items *= 2;
    } else {
        const int64_t most = tconv_ceil_div(g->output[0], tconv_ceil_div(wanted, g->batch));
        int64_t low = 0, high = most; /* the most rows that fit */
        while (low < high) {
            const int64_t middle = low + (high - low + 1) / 2;
            if (fits(job, 1, middle, limit, allocation))
                low = middle;
            else
                high = middle - 1;
        }
        uint64_t data, output;
        bytes_of(job, 1, &data, &output);
        if (low == 0)
            return tconv_fail(
                error, TCONV_ERROR_DEVICE_MEMORY,
                "one row of the outermost axis takes %" PRIu64 " bytes of data and %" PRIu64
                " of output; %d slabs at once must fit into %" PRIu64
                " bytes, and each into the %" PRIu64 " that %s allows in one buffer",
                data, output, SETS, limit, allocation,
                tconv_device_properties(tconv_session_device(sessions[smallest]))->name);
        d->rows = low;
        /* Whole strides, so that all inner slabs share a plan. */
        if (low > g->stride[0] && low < g->output[0]) d->rows = low / g->stride[0] * g->stride[0];
    }
    d->item_parts = tconv_ceil_div(g->batch, d->items);
    d->row_parts = tconv_ceil_div(g->output[0], d->rows);
    return TCONV_OK;
}

/* ---- One device ---- */

static const char *name_of(const struct worker *w)
{
    return tconv_device_properties(tconv_session_device(w->session))->name;
}

/* Keeps the first error, with the device's name, and stops the others. */
static void fail(struct worker *w, const tconv_error *error)
{
    struct job *job = w->job;
    pthread_mutex_lock(&job->lock);
    if (!job->stopped) {
        tconv_fail(&job->error, error->status, "%s: %.900s", name_of(w), error->message);
        job->error.opencl_code = error->opencl_code;
    }
    job->stopped = true;
    pthread_mutex_unlock(&job->lock);
}

static bool fail_opencl(struct worker *w, cl_int code, const char *call, const char *doing)
{
    tconv_error error;
    tconv_fail_opencl(&error, code, call, "%s", doing);
    fail(w, &error);
    return false;
}

/* As fail, for a call that may lack memory: the message says how many bytes were needed. */
static bool fail_bytes(struct worker *w, cl_int code, const char *call, const char *what,
                       uint64_t bytes)
{
    tconv_error error;
    tconv_fail_opencl(&error, code, call, "%s needs %" PRIu64 " bytes on the device", what, bytes);
    fail(w, &error);
    return false;
}

/* Takes the next slab's number; -1 if there is none. */
static int64_t take(struct job *job)
{
    pthread_mutex_lock(&job->lock);
    const int64_t number = job->stopped || job->next >= count_of(job) ? -1 : job->next++;
    pthread_mutex_unlock(&job->lock);
    return number;
}

static bool make_buffer(struct worker *w, const char *what, const void *source, size_t bytes,
                        cl_mem *buffer)
{
    cl_int code;
    cl_mem made = clCreateBuffer(tconv_session_context(w->session),
                                 CL_MEM_READ_WRITE | (source != NULL ? CL_MEM_COPY_HOST_PTR : 0),
                                 bytes, (void *)source, &code);
    if (code != CL_SUCCESS) return fail_bytes(w, code, "clCreateBuffer", what, bytes);
    *buffer = made;
    return true;
}

/* Makes sure that a buffer has at least `bytes`. */
static bool grow(struct worker *w, const char *what, size_t bytes, size_t *have, cl_mem *buffer)
{
    if (bytes == 0 || (*buffer != NULL && *have >= bytes)) return true;
    if (*buffer != NULL) clReleaseMemObject(*buffer);
    *buffer = NULL;
    *have = bytes;
    return make_buffer(w, what, NULL, bytes, buffer);
}

static bool prepare(struct worker *w)
{
    const struct job *job = w->job;
    const tconv_arrays *a = &job->call.arrays;
    const size_t filter = (size_t)job->geometry.filter_bytes, bias = (size_t)bias_bytes(job),
                 numbers = (size_t)scale_bytes(job);
    if (!make_buffer(w, "the filter", a->filter, filter, &w->weights) ||
        (a->bias != NULL && !make_buffer(w, "bias", a->bias, bias, &w->bias)) ||
        (a->scale != NULL && !make_buffer(w, "scale", a->scale, numbers, &w->scale)) ||
        (a->slope != NULL && !make_buffer(w, "slope", a->slope, numbers, &w->slope)))
        return false;
    cl_device_id device;
    cl_int code = clGetCommandQueueInfo(tconv_session_queue(w->session), CL_QUEUE_DEVICE,
                                        sizeof device, &device, NULL);
    if (code != CL_SUCCESS)
        return fail_opencl(w, code, "clGetCommandQueueInfo", "reading the device of a queue");
    for (int i = 0; i < SETS && code == CL_SUCCESS; i++) {
        w->set[i].queue = clCreateCommandQueue(tconv_session_context(w->session), device, 0, &code);
        if (code != CL_SUCCESS) w->set[i].queue = NULL;
    }
    return code == CL_SUCCESS || fail_opencl(w, code, "clCreateCommandQueue", "making two queues");
}

static void clear_kind(struct kind *kind)
{
    tconv_packed_filter_release(kind->filter);
    tconv_plan_release(kind->plan);
    for (int i = 0; i < SETS; i++)
        if (kind->workspace[i] != NULL) clReleaseMemObject(kind->workspace[i]);
    *kind = (struct kind){0};
}

static void finish_queues(struct worker *w)
{
    for (int i = 0; i < SETS; i++)
        if (w->set[i].queue != NULL) clFinish(w->set[i].queue);
}

/* Plans slabs like `slab`, packs the filter, and waits for that, so that both queues may use it. */
static bool make_kind(struct worker *w, const tconv_slab *slab, struct kind *kind)
{
    struct job *job = w->job;
    tconv_problem problem = tconv_without_steps(&job->call.problem); /* slabs are dense */
    tconv_plan_options options = job->call.options;
    tconv_error error;
    problem.data.dim[0] = kind->items;
    const int64_t first = job->call.options.output_begin; /* 0 without a window */
    options.output_begin = first + slab->output_begin;
    options.output_end = first + slab->output_end;
    tconv_status status = tconv_plan_create(tconv_session_device(w->session), &problem, &options,
                                            &kind->plan, &error);
    if (status == TCONV_OK)
        status = tconv_packed_filter_create(kind->plan, NULL, &kind->filter, &error);
    if (status == TCONV_OK)
        status = tconv_packed_filter_enqueue_pack(kind->filter, w->set[0].queue,
                                                  &(tconv_buffer){.memory = w->weights}, 0, NULL,
                                                  NULL, &error);
    if (status != TCONV_OK) {
        fail(w, &error);
        return false;
    }
    const cl_int code = clFinish(w->set[0].queue);
    if (code != CL_SUCCESS)
        return fail_bytes(w, code, "clFinish", "packing the filter",
                          tconv_plan_filter_bytes(kind->plan));
    const size_t workspace = (size_t)tconv_plan_workspace_bytes(kind->plan);
    for (int i = 0; i < SETS && workspace != 0; i++)
        if (!make_buffer(w, "the workspace", NULL, workspace, &kind->workspace[i])) return false;
    return true;
}

static struct kind *kind_of(struct worker *w, const tconv_slab *slab)
{
    const tconv_geometry *g = &w->job->geometry;
    const struct kind wanted = {.items = slab->batch_end - slab->batch_begin,
                                .input = slab->input_end - slab->input_begin,
                                .pad = g->pad_begin[0] + slab->output_begin -
                                       slab->input_begin * g->stride[0],
                                .output = slab->output_end - slab->output_begin};
    for (int i = 0; i < w->kinds; i++) {
        const struct kind *k = &w->kind[i];
        if (k->items == wanted.items && k->input == wanted.input && k->pad == wanted.pad &&
            k->output == wanted.output)
            return &w->kind[i];
    }
    if (w->kinds == PLANS) { /* release the oldest */
        finish_queues(w);
        clear_kind(&w->kind[0]);
        memmove(&w->kind[0], &w->kind[1], (PLANS - 1) * sizeof w->kind[0]);
        w->kind[PLANS - 1] = (struct kind){0};
        w->kinds--;
    }
    struct kind *kind = &w->kind[w->kinds++];
    *kind = wanted;
    return make_kind(w, slab, kind) ? kind : NULL;
}

/* A transfer of rows [begin, end) of `batch` items between a host tensor and a dense buffer. */
struct rows {
    size_t host_origin[3], buffer_origin[3], region[3];
    size_t host_pitch;
};

static struct rows rows_of(const tconv_geometry *g, int64_t channels, const struct tensor *tensor,
                           const tconv_slab *slab, int64_t begin, int64_t end)
{
    const int64_t planes = g->data_format == TCONV_NXC ? 1 : channels; /* of a batch item */
    const int64_t extent = tensor->view.extent[g->data_format == TCONV_NXC ? 1 : 2];
    const size_t row = (size_t)row_bytes(tensor->bytes, g->batch * planes * extent);
    struct rows r = {.host_pitch = row * (size_t)extent};
    r.host_origin[0] = row * (size_t)begin;
    r.host_origin[1] = (size_t)(slab->batch_begin * planes);
    r.region[0] = row * (size_t)(end - begin);
    r.region[1] = (size_t)((slab->batch_end - slab->batch_begin) * planes);
    r.region[2] = 1;
    return r;
}

/* The part of a tensor with rows [begin, end) of the slab's batch items. *at is its first element.
 */
static struct tconv_view part_of(const tconv_geometry *g, const struct tensor *tensor,
                                 const tconv_slab *slab, int64_t begin, int64_t end, size_t *at)
{
    struct tconv_view view = tensor->view;
    const int rows = g->data_format == TCONV_NXC ? 1 : 2;
    view.extent[0] = slab->batch_end - slab->batch_begin;
    view.extent[rows] = end - begin;
    *at = (size_t)(slab->batch_begin * view.step[0] + begin * view.step[rows]) * tensor->element;
    return view;
}

/* Makes sure that a staging array has at least `bytes`. */
static bool stage(struct worker *w, struct staging *staging, size_t bytes)
{
    if (staging->bytes >= bytes) return true;
    free(staging->elements);
    staging->bytes = 0;
    staging->elements = malloc(bytes);
    if (staging->elements != NULL) {
        staging->bytes = bytes;
        return true;
    }
    tconv_error error;
    tconv_fail_memory(&error, bytes, "copying a slab of a tensor that has steps");
    fail(w, &error);
    return false;
}

/* Uploads rows [begin, end) of the slab's batch items, by way of `staging` if the tensor has
 * steps. */
static bool upload(struct worker *w, const struct set *set, cl_mem buffer,
                   const struct tensor *tensor, int64_t channels, int64_t begin, int64_t end,
                   const void *from, struct staging *staging)
{
    const tconv_geometry *g = &w->job->geometry;
    const struct rows r = rows_of(g, channels, tensor, &set->slab, begin, end);
    const size_t bytes = r.region[0] * r.region[1];
    cl_int code;
    if (tensor->dense) {
        code = clEnqueueWriteBufferRect(set->queue, buffer, CL_FALSE, r.buffer_origin,
                                        r.host_origin, r.region, r.region[0], 0, r.host_pitch, 0,
                                        from, 0, NULL, NULL);
        return code == CL_SUCCESS ||
               fail_bytes(w, code, "clEnqueueWriteBufferRect", "uploading a slab", bytes);
    }
    if (!stage(w, staging, bytes)) return false;
    size_t at;
    const struct tconv_view view = part_of(g, tensor, &set->slab, begin, end, &at);
    tconv_view_gather(&view, tensor->element, (const char *)from + at, staging->elements);
    code = clEnqueueWriteBuffer(set->queue, buffer, CL_FALSE, 0, bytes, staging->elements, 0, NULL,
                                NULL);
    return code == CL_SUCCESS ||
           fail_bytes(w, code, "clEnqueueWriteBuffer", "uploading a slab", bytes);
}

/* Enqueues the download of the slab's output. `complete` takes it from the staging array. */
static bool download(struct worker *w, struct set *set)
{
    const struct job *job = w->job;
    const tconv_geometry *g = &job->geometry;
    const struct rows r = rows_of(g, g->groups * g->group_out_channels, &job->output, &set->slab,
                                  set->slab.output_begin, set->slab.output_end);
    const size_t bytes = r.region[0] * r.region[1];
    cl_int code;
    if (job->output.dense) {
        code = clEnqueueReadBufferRect(set->queue, set->output, CL_FALSE, r.buffer_origin,
                                       r.host_origin, r.region, r.region[0], 0, r.host_pitch, 0,
                                       job->call.arrays.output, 0, NULL, &set->read);
        return code == CL_SUCCESS ||
               fail_bytes(w, code, "clEnqueueReadBufferRect", "downloading a slab", bytes);
    }
    if (!stage(w, &set->staging_output, bytes)) return false;
    code = clEnqueueReadBuffer(set->queue, set->output, CL_FALSE, 0, bytes,
                               set->staging_output.elements, 0, NULL, &set->read);
    return code == CL_SUCCESS ||
           fail_bytes(w, code, "clEnqueueReadBuffer", "downloading a slab", bytes);
}

/* Waits for the slab of a set, and calls the progress function. */
static bool complete(struct worker *w, struct set *set)
{
    if (set->read == NULL) return true;
    struct job *job = w->job;
    const cl_int code = clWaitForEvents(1, &set->read);
    clReleaseEvent(set->read);
    set->read = NULL;
    if (code != CL_SUCCESS)
        return fail_bytes(w, code, "clWaitForEvents", "computing a slab",
                          set->data_bytes + set->output_bytes);
    if (!job->output.dense) {
        size_t at;
        const struct tconv_view view = part_of(&job->geometry, &job->output, &set->slab,
                                               set->slab.output_begin, set->slab.output_end, &at);
        tconv_view_scatter(&view, job->output.element, set->staging_output.elements,
                           (char *)job->call.arrays.output + at);
    }
    pthread_mutex_lock(&job->lock);
    job->done++;
    if (job->slabs.done != NULL && !job->stopped &&
        !job->slabs.done(job->slabs.user, &set->slab, job->done, count_of(job))) {
        tconv_fail(&job->error, TCONV_ERROR_CANCELLED,
                   "stopped after %" PRId64 " of %" PRId64 " slabs", job->done, count_of(job));
        job->stopped = true;
    }
    const bool go_on = !job->stopped;
    pthread_mutex_unlock(&job->lock);
    return go_on;
}

static bool start(struct worker *w, int index, int64_t number)
{
    struct job *job = w->job;
    const tconv_geometry *g = &job->geometry;
    const tconv_arrays *a = &job->call.arrays;
    const tconv_epilogue *e = &job->call.options.epilogue;
    struct set *set = &w->set[index];
    set->slab = slab_at(job, number, w->index);
    const tconv_slab *slab = &set->slab;
    struct kind *kind = kind_of(w, slab);
    if (kind == NULL) return false;
    const tconv_geometry *own = tconv_plan_geometry(kind->plan);
    const size_t outputs = (size_t)own->output_bytes;
    const bool larger = outputs > set->output_bytes;
    if (!grow(w, "the data of a slab", (size_t)own->data_bytes, &set->data_bytes, &set->data))
        return false;
    if (larger && set->residual != NULL) {
        clReleaseMemObject(set->residual);
        set->residual = NULL;
    }
    if (!grow(w, "the output of a slab", outputs, &set->output_bytes, &set->output) ||
        (e->residual && set->residual == NULL &&
         !make_buffer(w, "the residual of a slab", NULL, set->output_bytes, &set->residual)))
        return false;
    const int64_t out_channels = g->groups * g->group_out_channels;
    if ((own->data_bytes != 0 &&
         !upload(w, set, set->data, &job->data, g->groups * g->group_in_channels, slab->input_begin,
                 slab->input_end, a->data, &set->staging_data)) ||
        (e->residual &&
         !upload(w, set, set->residual, &job->residual, out_channels, slab->output_begin,
                 slab->output_end, a->residual, &set->staging_residual)) ||
        (e->beta != 0 &&
         !upload(w, set, set->output, &job->output, out_channels, slab->output_begin,
                 slab->output_end, a->output, &set->staging_output)))
        return false;

    tconv_args args = TCONV_ARGS_INIT;
    args.filter = kind->filter;
    args.data.memory = set->data;
    args.bias.memory = w->bias;
    args.scale.memory = w->scale;
    args.slope.memory = w->slope;
    args.residual.memory = set->residual;
    args.output.memory = set->output;
    args.workspace.memory = kind->workspace[index];
    tconv_error error;
    if (tconv_plan_enqueue(kind->plan, set->queue, &args, 0, NULL, NULL, &error) != TCONV_OK) {
        fail(w, &error);
        return false;
    }
    if (!download(w, set)) return false;
    const cl_int code = clFlush(set->queue);
    return code == CL_SUCCESS || fail_opencl(w, code, "clFlush", "starting a slab");
}

static void *work(void *worker)
{
    struct worker *w = worker;
    int64_t number = -1;
    if (prepare(w)) {
        int index = 0;
        while (complete(w, &w->set[index]) && (number = take(w->job)) >= 0 &&
               start(w, index, number))
            index = (index + 1) % SETS;
        for (int i = 0; i < SETS; i++) complete(w, &w->set[(index + i) % SETS]);
    }
    finish_queues(w); /* commands must finish before their buffers are released */
    for (int i = 0; i < w->kinds; i++) clear_kind(&w->kind[i]);
    for (int i = 0; i < SETS; i++) {
        struct set *set = &w->set[i];
        const cl_mem buffers[] = {set->data, set->residual, set->output};
        for (size_t b = 0; b < sizeof buffers / sizeof *buffers; b++)
            if (buffers[b] != NULL) clReleaseMemObject(buffers[b]);
        free(set->staging_data.elements);
        free(set->staging_residual.elements);
        free(set->staging_output.elements);
        if (set->read != NULL) clReleaseEvent(set->read);
        if (set->queue != NULL) clReleaseCommandQueue(set->queue);
    }
    const cl_mem buffers[] = {w->weights, w->bias, w->scale, w->slope};
    for (size_t b = 0; b < sizeof buffers / sizeof *buffers; b++)
        if (buffers[b] != NULL) clReleaseMemObject(buffers[b]);
    return NULL;
}

/* ---- All devices ---- */

static tconv_status run_workers(struct job *job, tconv_session *const *sessions, int session_count,
                                tconv_error *error)
{
    struct worker *workers = calloc((size_t)session_count, sizeof *workers);
    if (workers == NULL)
        return tconv_fail_memory(error, (size_t)session_count * sizeof *workers,
                                 "starting workers");
    int started = 0;
    for (int i = 0; i < session_count; i++)
        workers[i] = (struct worker){.job = job, .index = i, .session = sessions[i]};
    for (int i = 1; i < session_count; i++, started++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
            tconv_error own;
            tconv_fail(&own, TCONV_ERROR_HOST_MEMORY, "no thread can be started");
            fail(&workers[i], &own);
            break;
        }
    work(&workers[0]);
    for (int i = 1; i <= started; i++) pthread_join(workers[i].thread, NULL);
    free(workers);
    return job->stopped ? tconv_fail_with(error, &job->error) : TCONV_OK;
}

static tconv_status check_sessions(tconv_session *const *sessions, int session_count,
                                   tconv_error *error)
{
    if (sessions == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "sessions is NULL");
    if (session_count < 1)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "session_count is %d: it must be at least 1",
                          session_count);
    for (int i = 0; i < session_count; i++)
        for (int j = 0; j <= i; j++)
            if (sessions[i] == NULL || (j < i && sessions[j] == sessions[i]))
                return tconv_fail(error, TCONV_ERROR_ARGUMENT, "sessions[%d] is %s", i,
                                  sessions[i] == NULL ? "NULL" : "given twice");
    return TCONV_OK;
}

/* An array that a run reads. `tensor` says how it lies in memory; NULL: densely, with one number
 * for each output channel, or as the filter. */
struct input {
    const char *name;
    const void *array; /* NULL: the call has none */
    uint64_t bytes;
    const struct tensor *tensor;
};

/* True if an input may have an element in the memory of an output's element. */
static bool overlaps_output(const struct job *job, const struct input *input)
{
    const uintptr_t begin = (uintptr_t)input->array, output = (uintptr_t)job->call.arrays.output;
    if (input->array == NULL || input->bytes == 0 || begin + input->bytes <= output ||
        output + job->geometry.output_bytes <= begin)
        return false;
    if (input->tensor == NULL) return true;
    const struct tconv_placed own = {&input->tensor->view, begin, input->tensor->element},
                              written = {&job->output.view, output, job->output.element};
    return !tconv_placed_apart(&written, &own);
}

/* True if each element of the residual lies where its output does: a slab then reads it before it
 * stores there. */
static bool residual_is_output(const struct job *job)
{
    if (job->call.arrays.residual != job->call.arrays.output) return false;
    for (int a = 0; a < job->output.view.rank; a++)
        if (job->residual.view.step[a] != job->output.view.step[a]) return false;
    return true;
}

/* Refuses an output that overlaps an input: a slab may read data and residual, and a device may
 * copy the others, after another slab stored its outputs there. */
static tconv_status check_overlap(const struct job *job, tconv_error *error)
{
    const tconv_arrays *arrays = &job->call.arrays;
    const tconv_geometry *g = &job->geometry;
    const struct input inputs[] = {
        {"data", arrays->data, g->data_bytes, &job->data},
        {"filter", arrays->filter, g->filter_bytes, NULL},
        {"bias", arrays->bias, bias_bytes(job), NULL},
        {"scale", arrays->scale, scale_bytes(job), NULL},
        {"slope", arrays->slope, scale_bytes(job), NULL},
        {"residual", residual_is_output(job) ? NULL : arrays->residual, g->residual_bytes,
         &job->residual},
    };
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        if (overlaps_output(job, &inputs[i]))
            return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                              "arrays.output overlaps arrays.%s, which may be read after a slab "
                              "stored its output: give the output memory of its own",
                              inputs[i].name);
    return TCONV_OK;
}

static struct tensor tensor_of(const struct job *job, enum tconv_spaced which, tconv_type type)
{
    struct tensor tensor = {.view = tconv_view_of(&job->call.problem, &job->geometry, which),
                            .element = tconv_type_size(type),
                            .bytes = tconv_type_size(type)};
    tensor.dense = tconv_view_is_dense(&tensor.view);
    for (int a = 0; a < tensor.view.rank; a++) tensor.bytes *= (uint64_t)tensor.view.extent[a];
    return tensor;
}

/* Resolves the problem for the arrays, which have the rows of the window, and finds how they lie in
 * memory. Slabs are parts of these rows. */
static tconv_status resolve_arrays(struct job *job, tconv_error *error)
{
    const tconv_problem *problem = &job->call.problem;
    const tconv_plan_options *options = &job->call.options;
    tconv_status status;
    if ((status = tconv_resolve_window(problem, options->output_begin, options->output_end,
                                       &job->geometry, error)) != TCONV_OK ||
        (status = tconv_steps_check_residual(problem, options->epilogue.residual, error)) !=
            TCONV_OK)
        return status;
    job->data = tensor_of(job, TCONV_SPACED_DATA, problem->data_type);
    job->output = tensor_of(job, TCONV_SPACED_OUTPUT, job->geometry.output_type);
    job->residual = tensor_of(job, TCONV_SPACED_RESIDUAL, job->geometry.output_type);
    return TCONV_OK;
}

tconv_status tconv_slabs_run(tconv_session *const *sessions, int session_count,
                             const tconv_problem *problem, const tconv_plan_options *options,
                             const tconv_slabs_options *slabs, const tconv_arrays *arrays,
                             tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    struct job job = {.geometry = TCONV_GEOMETRY_INIT, .slabs = TCONV_SLABS_OPTIONS_INIT};
    tconv_status status;
    if ((status = check_sessions(sessions, session_count, error)) != TCONV_OK ||
        (status = tconv_session_read(problem, options, arrays, &job.call, error)) != TCONV_OK ||
        (status = tconv_struct_read(TCONV_SIZED_SLABS_OPTIONS, slabs, &job.slabs, error)) !=
            TCONV_OK ||
        (status = resolve_arrays(&job, error)) != TCONV_OK ||
        (status = tconv_check_addressable(&job.geometry, error)) != TCONV_OK)
        return status;
    if (job.geometry.output_bytes == 0) return TCONV_OK;
    if ((status = tconv_session_check_arrays(&job.call.arrays, &job.geometry,
                                             &job.call.options.epilogue, error)) != TCONV_OK ||
        (status = check_overlap(&job, error)) != TCONV_OK ||
        (status = tconv_process_enter(error)) != TCONV_OK ||
        (status = divide(&job, sessions, session_count, error)) != TCONV_OK)
        return status;
    if (pthread_mutex_init(&job.lock, NULL) != 0)
        return tconv_fail_memory(error, sizeof job.lock, "making a lock");
    status = run_workers(&job, sessions, session_count, error);
    pthread_mutex_destroy(&job.lock);
    return status;
}
