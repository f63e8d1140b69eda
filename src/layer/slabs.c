/* SPDX-License-Identifier: Apache-2.0 */
/* Computes a run in slabs. Each device has a worker, which takes the next slab again and again. It
 * uses two lanes in turn, so that one slab's transfers run beside the other's kernels. Plans and
 * packed filters are those that the layer keeps. */
#include "layer/division.h"

#include "base/error.h"
#include "base/inside.h"
#include "base/steps.h"
#include "device/lane.h"
#include "plan/place.h"
#include "plan/shares.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SETS = TCONV_SLABS_IN_FLIGHT };

/* The state that all workers share. */
struct job {
    tconv_layer *layer;
    const struct tconv_call *call;
    struct tconv_division division;
    struct tconv_keep *keep;        /* of each device: the layer's weights when the run began */
    bool keeps;                     /* the filter that the run gives, if it gives one */
    struct tconv_identity identity; /* of that filter, if the layer watches it */
    bool is_inside;                 /* the caller is inside a callback, and so all workers are */
    pthread_mutex_t lock;           /* guards the members below */
    int64_t next, done;
    bool stopped;
    tconv_error error; /* the first one */
};

/* A dense copy of a slab of a tensor that has steps, on the host. */
struct staging {
    void *elements;
    size_t bytes;
};

/* A slab in flight. */
struct set {
    struct tconv_lane *lane;
    tconv_tensor vector[TCONV_VECTORS]; /* of the run, where kernels read them */
    bool has_vectors;
    struct staging data, residual, output;
    struct tconv_use use;
    cl_event read; /* reads the output; NULL: the set has no slab */
    tconv_slab slab;
};

struct worker {
    struct job *job;
    int index;
    pthread_t thread;
    struct tconv_keep *keep; /* the job's, for all slabs alike */
    struct set set[SETS];
};

static tconv_status fail_bytes(tconv_error *error, cl_int code, const char *call, const char *what,
                               uint64_t bytes)
{
    return tconv_fail_opencl(error, code, call, "%s needs %" PRIu64 " bytes on the device", what,
                             bytes);
}

/* Keeps the first error, with the device's name, and stops the others. */
static void stop(struct worker *w, const tconv_error *error)
{
    struct job *job = w->job;
    pthread_mutex_lock(&job->lock);
    if (!job->stopped) {
        tconv_fail(&job->error, error->status, "%s: %.900s",
                   tconv_device_properties(w->keep->device)->name, error->message);
        job->error.opencl_code = error->opencl_code;
    }
    job->stopped = true;
    pthread_mutex_unlock(&job->lock);
}

/* Takes the next slab's number; -1 if there is none. */
static int64_t take(struct job *job)
{
    pthread_mutex_lock(&job->lock);
    const bool none = job->stopped || job->next >= tconv_division_slabs(&job->division);
    const int64_t number = none ? -1 : job->next++;
    pthread_mutex_unlock(&job->lock);
    return number;
}

/* ---- Transfers ---- */

/* The rows of one slab of a tensor. */
struct part {
    const struct tconv_slab_tensor *tensor;
    int64_t begin, end;
};

static struct part outputs_of(const struct tconv_slab_tensor *tensor, const tconv_slab *slab)
{
    return (struct part){tensor, slab->output_begin, slab->output_end};
}

/* A transfer of a part of a dense tensor of the host, to or from a dense buffer. */
struct rows {
    size_t host_origin[3], buffer_origin[3], region[3];
    size_t host_pitch;
};

static int rows_at(const struct job *job)
{
    return job->division.geometry.data_format == TCONV_NXC ? 1 : 2;
}

static struct rows rows_of(const struct job *job, const struct part *part, const tconv_slab *slab)
{
    const struct tconv_view *view = &part->tensor->view;
    const int axis = rows_at(job);
    const int64_t planes = axis == 1 ? 1 : view->extent[1]; /* of a batch item */
    const int64_t rows = view->extent[0] * planes * view->extent[axis];
    const size_t row = rows == 0 ? 0 : (size_t)(part->tensor->bytes / (uint64_t)rows);
    struct rows r = {.host_pitch = row * (size_t)view->extent[axis]};
    r.host_origin[0] = row * (size_t)part->begin;
    r.host_origin[1] = (size_t)(slab->batch_begin * planes);
    r.region[0] = row * (size_t)(part->end - part->begin);
    r.region[1] = (size_t)((slab->batch_end - slab->batch_begin) * planes);
    r.region[2] = 1;
    return r;
}

/* The view of a part. *at is its first byte in the tensor. */
static struct tconv_view view_of(const struct job *job, const struct part *part,
                                 const tconv_slab *slab, size_t *at)
{
    struct tconv_view view = part->tensor->view;
    const int rows = rows_at(job);
    view.extent[0] = slab->batch_end - slab->batch_begin;
    view.extent[rows] = part->end - part->begin;
    *at = (size_t)(slab->batch_begin * view.step[0] + part->begin * view.step[rows]) *
          part->tensor->element;
    return view;
}

/* Makes sure that a staging array has at least `bytes`. */
static tconv_status stage(struct staging *staging, size_t bytes, tconv_error *error)
{
    if (staging->bytes >= bytes) return TCONV_OK;
    free(staging->elements);
    staging->bytes = 0;
    staging->elements = malloc(bytes);
    if (staging->elements == NULL)
        return tconv_fail_memory(error, bytes, "copying a slab of a tensor that has steps");
    staging->bytes = bytes;
    return TCONV_OK;
}

/* Uploads a part, by way of `staging` if the tensor has steps. */
static tconv_status upload(const struct job *job, const struct set *set, const struct part *part,
                           cl_mem buffer, struct staging *staging, tconv_error *error)
{
    const struct rows r = rows_of(job, part, &set->slab);
    const size_t bytes = r.region[0] * r.region[1];
    const char *from = tconv_array_of(part->tensor->given);
    const cl_command_queue queue = tconv_lane_queue(set->lane);
    const char *call = "clEnqueueWriteBufferRect";
    cl_int code;
    if (part->tensor->dense) {
        code = clEnqueueWriteBufferRect(queue, buffer, CL_FALSE, r.buffer_origin, r.host_origin,
                                        r.region, r.region[0], 0, r.host_pitch, 0, from, 0, NULL,
                                        NULL);
    } else {
        size_t at;
        const struct tconv_view view = view_of(job, part, &set->slab, &at);
        const tconv_status status = stage(staging, bytes, error);
        if (status != TCONV_OK) return status;
        tconv_view_gather(&view, part->tensor->element, from + at, staging->elements);
        call = "clEnqueueWriteBuffer";
        code = clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, bytes, staging->elements, 0, NULL,
                                    NULL);
    }
    return code == CL_SUCCESS ? TCONV_OK : fail_bytes(error, code, call, "uploading a slab", bytes);
}

/* Enqueues the download of the slab's output. `complete` takes it from the staging array. */
static tconv_status download(const struct job *job, struct set *set, cl_mem buffer,
                             tconv_error *error)
{
    const struct part part = outputs_of(&job->division.output, &set->slab);
    const struct rows r = rows_of(job, &part, &set->slab);
    const size_t bytes = r.region[0] * r.region[1];
    const cl_command_queue queue = tconv_lane_queue(set->lane);
    const char *call = "clEnqueueReadBufferRect";
    cl_int code;
    if (part.tensor->dense) {
        code = clEnqueueReadBufferRect(queue, buffer, CL_FALSE, r.buffer_origin, r.host_origin,
                                       r.region, r.region[0], 0, r.host_pitch, 0,
                                       tconv_array_of(part.tensor->given), 0, NULL, &set->read);
    } else {
        const tconv_status status = stage(&set->output, bytes, error);
        if (status != TCONV_OK) return status;
        call = "clEnqueueReadBuffer";
        code = clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, bytes, set->output.elements, 0, NULL,
                                   &set->read);
    }
    return code == CL_SUCCESS ? TCONV_OK
                              : fail_bytes(error, code, call, "downloading a slab", bytes);
}

/* ---- One slab ---- */

/* Tells the progress function of a finished slab. */
static tconv_status tell(struct job *job, const struct set *set)
{
    const int64_t slabs = tconv_division_slabs(&job->division);
    const tconv_run *run = &job->call->run;
    pthread_mutex_lock(&job->lock);
    job->done++;
    if (run->progress != NULL && !job->stopped &&
        !run->progress(run->user, &set->slab, job->done, slabs)) {
        tconv_fail(&job->error, TCONV_ERROR_CANCELLED,
                   "stopped after %" PRId64 " of %" PRId64 " slabs", job->done, slabs);
        job->stopped = true;
    }
    const bool stopped = job->stopped;
    pthread_mutex_unlock(&job->lock);
    return stopped ? TCONV_ERROR_CANCELLED : TCONV_OK;
}

/* Waits for the slab of a set. */
static tconv_status complete(struct worker *w, struct set *set, tconv_error *error)
{
    struct job *job = w->job;
    if (set->read == NULL) return TCONV_OK;
    const struct part part = outputs_of(&job->division.output, &set->slab);
    const tconv_geometry *own = tconv_plan_geometry(set->use.plan);
    const cl_int code = clWaitForEvents(1, &set->read);
    clReleaseEvent(set->read);
    set->read = NULL;
    if (code != CL_SUCCESS)
        return fail_bytes(error, code, "clWaitForEvents", "computing a slab",
                          own->data_bytes + own->output_bytes);
    if (!part.tensor->dense) {
        size_t at;
        const struct tconv_view view = view_of(job, &part, &set->slab, &at);
        tconv_view_scatter(&view, part.tensor->element, set->output.elements,
                           (char *)tconv_array_of(part.tensor->given) + at);
    }
    tconv_use_end(&set->use);
    set->use = (struct tconv_use){.plan = NULL};
    return tell(job, set);
}

/* The call that computes a slab: dense, and a window of the problem. */
static void call_of(const struct job *job, const tconv_slab *slab, struct tconv_call *call)
{
    const int64_t first = job->call->options.output_begin; /* 0 without a window */
    *call = *job->call;
    call->problem = tconv_without_steps(&job->call->problem);
    call->problem.data.dim[0] = slab->batch_end - slab->batch_begin;
    call->options.output_begin = first + slab->output_begin;
    call->options.output_end = first + slab->output_end;
    tconv_call_make_key(call);
}

/* Brings the vectors of the run to the lane of a set: once, because the lane keeps them. */
static tconv_status bring_vectors(const struct job *job, const struct tconv_call *call,
                                  struct set *set, tconv_error *error)
{
    static const enum tconv_role roles[] = {TCONV_ROLE_BIAS, TCONV_ROLE_SCALE, TCONV_ROLE_SLOPE,
                                            TCONV_ROLE_SLOPE2};
    const tconv_geometry *g = &job->division.geometry;
    const tconv_epilogue *e = &call->options.epilogue;
    const tconv_type type = call->problem.data_type;
    tconv_tensor vector[TCONV_VECTORS];
    if (set->has_vectors) return TCONV_OK;
    tconv_status status = tconv_weights_vectors(call, g, set->use.vectors, vector, error);
    for (int i = 0; i < TCONV_VECTORS && status == TCONV_OK; i++) {
        const enum tconv_epilogue_tensor which = (enum tconv_epilogue_tensor)i;
        if (vector[i].host == NULL)
            set->vector[i] = vector[i];
        else
            status = tconv_lane_upload(
                set->lane, roles[i], tconv_array_of(&vector[i]),
                tconv_epilogue_bytes(e, which, type, g),
                tconv_type_size(tconv_epilogue_type(e, which, type, g->output_type)), false,
                &set->vector[i].memory, error);
    }
    set->has_vectors = status == TCONV_OK;
    return status;
}

/* Takes plan and packed filter of a slab. Each worker packs a filter that the layer does not keep
 * once for each packed layout. */
static tconv_status take_weights(struct worker *w, const struct tconv_call *call, struct set *set,
                                 tconv_error *error)
{
    struct job *job = w->job;
    const struct tconv_packing packing = {.use = job->keeps ? job->layer->use
                                                            : TCONV_FILTER_CONSTANT,
                                          .lane = set->lane,
                                          .count = &job->layer->filters_packed,
                                          .identity = &job->identity};
    set->use = (struct tconv_use){.plan = NULL};
    tconv_status status = tconv_weights_plan(w->keep, call, &set->use, error);
    if (status == TCONV_OK)
        status = tconv_weights_filter(w->keep, call, &packing, &set->use, error);
    if (status == TCONV_OK) status = tconv_kept_filter_finish(w->keep, set->use.filter, error);
    return status;
}

/* Makes room for a tensor of a slab in its lane, and uploads it if kernels read it. */
static tconv_status bring(const struct job *job, const struct set *set, enum tconv_role role,
                          const struct part *part, uint64_t bytes, bool read,
                          struct staging *staging, cl_mem *memory, tconv_error *error)
{
    if (bytes == 0) return TCONV_OK;
    const tconv_status status = tconv_lane_space(set->lane, role, bytes, memory, error);
    return status == TCONV_OK && read ? upload(job, set, part, *memory, staging, error) : status;
}

/* Brings all tensors of a slab to its lane. */
static tconv_status bring_tensors(const struct job *job, struct set *set, tconv_tensors *to,
                                  tconv_error *error)
{
    const struct tconv_division *d = &job->division;
    const tconv_geometry *own = tconv_plan_geometry(set->use.plan);
    const tconv_epilogue *e = &job->call->options.epilogue;
    const uint64_t workspace = tconv_plan_workspace_bytes(set->use.plan);
    const struct part data = {&d->data, set->slab.input_begin, set->slab.input_end},
                      output = outputs_of(&d->output, &set->slab),
                      residual = outputs_of(&d->residual, &set->slab);
    tconv_status status;
    if ((status = bring(job, set, TCONV_ROLE_DATA, &data, own->data_bytes, true, &set->data,
                        &to->data.memory, error)) != TCONV_OK ||
        (status = bring(job, set, TCONV_ROLE_RESIDUAL, &residual,
                        e->residual ? own->output_bytes : 0, true, &set->residual,
                        &to->residual.memory, error)) != TCONV_OK ||
        (status = bring(job, set, TCONV_ROLE_OUTPUT, &output, own->output_bytes, e->beta != 0,
                        &set->output, &to->output.memory, error)) != TCONV_OK)
        return status;
    if (workspace != 0)
        status = tconv_lane_space(set->lane, TCONV_ROLE_WORKSPACE, workspace, &to->workspace.memory,
                                  error);
    to->packed = set->use.filter->packed;
    to->bias = set->vector[TCONV_EPILOGUE_BIAS];
    to->scale = set->vector[TCONV_EPILOGUE_SCALE];
    to->slope = set->vector[TCONV_EPILOGUE_SLOPE];
    to->slope2 = set->vector[TCONV_EPILOGUE_SLOPE2];
    return status;
}

/* Enqueues the computation of a slab, with its transfers. */
static tconv_status start(struct worker *w, struct set *set, int64_t number, tconv_error *error)
{
    const struct job *job = w->job;
    struct tconv_call call;
    tconv_tensors tensors = TCONV_TENSORS_INIT;
    tconv_status status;
    set->slab = tconv_division_slab(&job->division, number, w->index);
    call_of(job, &set->slab, &call);
    if ((status = take_weights(w, &call, set, error)) != TCONV_OK ||
        (status = bring_vectors(job, &call, set, error)) != TCONV_OK ||
        (status = bring_tensors(job, set, &tensors, error)) != TCONV_OK ||
        (status = tconv_plan_execute(set->use.plan, tconv_lane_queue(set->lane), NULL, &tensors,
                                     NULL, error)) != TCONV_OK ||
        (status = download(job, set, tensors.output.memory, error)) != TCONV_OK)
        return status;
    const cl_int code = clFlush(tconv_lane_queue(set->lane));
    return code == CL_SUCCESS ? TCONV_OK
                              : tconv_fail_opencl(error, code, "clFlush", "starting a slab");
}

/* ---- One device ---- */

static tconv_status begin_worker(struct worker *w, tconv_error *error)
{
    tconv_status status = TCONV_OK;
    for (int i = 0; i < SETS && status == TCONV_OK; i++)
        status = tconv_lane_take(w->keep->device, &w->set[i].lane, error);
    return status;
}

/* Commands end, with their lanes, before what they use is released. */
static void end_worker(struct worker *w)
{
    for (int i = 0; i < SETS; i++) {
        struct set *set = &w->set[i];
        if (set->lane != NULL) tconv_lane_give_back(set->lane);
        if (set->read != NULL) clReleaseEvent(set->read);
        tconv_use_end(&set->use);
        free(set->data.elements);
        free(set->residual.elements);
        free(set->output.elements);
    }
}

/* Computes slabs until there is none. */
static tconv_status compute(struct worker *w, tconv_error *error)
{
    int index = 0;
    int64_t number = 0;
    tconv_status status = TCONV_OK;
    while (status == TCONV_OK && number >= 0) {
        struct set *set = &w->set[index];
        status = complete(w, set, error);
        if (status == TCONV_OK) number = take(w->job);
        if (status == TCONV_OK && number >= 0) status = start(w, set, number, error);
        if (number >= 0) index = (index + 1) % SETS;
    }
    for (int i = 0; i < SETS; i++) {
        tconv_error own;
        const tconv_status last = complete(w, &w->set[(index + i) % SETS], &own);
        if (status == TCONV_OK && last != TCONV_OK) {
            *error = own;
            status = last;
        }
    }
    return status;
}

static void *work(void *worker)
{
    struct worker *w = worker;
    tconv_error error;
    tconv_status status = begin_worker(w, &error);
    if (status == TCONV_OK) status = compute(w, &error);
    if (status != TCONV_OK) stop(w, &error);
    end_worker(w);
    return NULL;
}

/* Works on a thread of its own, which is inside a callback if its starter is. */
static void *work_beside(void *worker)
{
    const struct worker *w = worker;
    if (!w->job->is_inside) return work(worker);
    const bool was_inside = tconv_enter_callback();
    work(worker);
    tconv_leave_callback(was_inside);
    return NULL;
}

/* ---- All devices ---- */

/* Copies the weights that the layer has now, without filters that are not the one that the run
 * gives. */
static tconv_status copy_weights(struct job *job, tconv_error *error)
{
    tconv_layer *layer = job->layer;
    const bool given = tconv_is_given(&job->call->tensors.filter),
               watched = layer->use == TCONV_FILTER_WATCHED && tconv_has_identity(job->call);
    const size_t count = (size_t)layer->device_count;
    job->keeps = layer->use == TCONV_FILTER_CONSTANT || watched;
    if (given && watched)
        job->identity = tconv_weights_identity(job->call, &job->division.geometry);
    job->keep = calloc(count, sizeof *job->keep);
    if (job->keep != NULL &&
        tconv_keep_copy(job->keep, layer->keep, layer->device_count, !given || job->keeps,
                        given && job->keeps, given && watched ? &job->identity : NULL))
        return TCONV_OK;
    free(job->keep);
    return tconv_fail_memory(error, count * sizeof *job->keep, "keeping the weights of a run");
}

static tconv_status run_workers(struct job *job, tconv_error *error)
{
    const int count = job->layer->device_count;
    struct worker *workers = calloc((size_t)count, sizeof *workers);
    if (workers == NULL)
        return tconv_fail_memory(error, (size_t)count * sizeof *workers, "starting workers");
    const tconv_status status = copy_weights(job, error);
    if (status != TCONV_OK) {
        free(workers);
        return status;
    }
    int started = 0;
    for (int i = 0; i < count; i++)
        workers[i] = (struct worker){.job = job, .index = i, .keep = &job->keep[i]};
    for (int i = 1; i < count; i++, started++)
        if (pthread_create(&workers[i].thread, NULL, work_beside, &workers[i]) != 0) {
            tconv_error own;
            tconv_fail(&own, TCONV_ERROR_HOST_MEMORY, "no thread can be started");
            stop(&workers[i], &own);
            break;
        }
    work(&workers[0]);
    for (int i = 1; i <= started; i++) pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < count; i++) tconv_keep_destroy(&job->keep[i]);
    free(job->keep);
    free(workers);
    return job->stopped ? tconv_fail_with(error, &job->error) : TCONV_OK;
}

tconv_status tconv_run_slabs(tconv_layer *layer, const struct tconv_call *call, tconv_error *error)
{
    struct job job = {.layer = layer, .call = call, .is_inside = tconv_is_inside()};
    tconv_status status = tconv_divide(layer, call, &job.division, error);
    if (status != TCONV_OK || tconv_division_slabs(&job.division) == 0) return status;
    if (pthread_mutex_init(&job.lock, NULL) != 0)
        return tconv_fail_memory(error, sizeof job.lock, "making a lock");
    status = run_workers(&job, error);
    pthread_mutex_destroy(&job.lock);
    return status;
}
