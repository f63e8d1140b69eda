/* SPDX-License-Identifier: Apache-2.0 */
#include "layer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PLANS = 32, MOST_PACKED = 16 };

struct entry {
    tconv_shape data, filter;
    tconv_plan *plan;
    int users; /* the cache, while it is there, and runs */
};

struct packed {
    const char *algorithm; /* lives as long as the library */
    tconv_filter *filter;
};

struct layer {
    struct device *device;
    struct layer_request request;
    pthread_mutex_t mutex;           /* of all below */
    struct entry *entry[MOST_PLANS]; /* the last used first */
    struct packed packed[MOST_PACKED];
};

static atomic_uint_least64_t counts[LAYER_COUNTS];

uint64_t layer_statistics(enum layer_count what)
{
    return atomic_load(&counts[what]);
}

tconv_status layer_resolve(const struct layer_request *request, const tconv_shape *data,
                           const tconv_shape *filter, tconv_problem *problem,
                           tconv_geometry *geometry, tconv_error *error)
{
    *problem = request->problem;
    problem->data = *data;
    problem->filter = *filter;
    for (int i = 0; i < request->kernel.count; i++)
        if (i + 2 >= filter->rank || filter->dim[i + 2] != request->kernel.value[i])
            return fail(error, TCONV_ERROR_SHAPE,
                        "kernel_shape is %lld at spatial axis %d, not as the filter",
                        (long long)request->kernel.value[i], i);
    return tconv_resolve(problem, geometry, error);
}

tconv_status layer_create(struct device *device, const struct layer_request *request,
                          struct layer **out, tconv_error *error)
{
    struct layer *layer = calloc(1, sizeof *layer);
    if (layer == NULL) return fail(error, TCONV_ERROR_HOST_MEMORY, "no memory for a layer");
    layer->device = device;
    layer->request = *request;
    pthread_mutex_init(&layer->mutex, NULL);
    *out = layer;
    return TCONV_OK;
}

static void drop(struct entry *entry)
{
    if (--entry->users > 0) return;
    tconv_plan_release(entry->plan);
    free(entry);
}

void layer_release(struct layer *layer)
{
    if (layer == NULL) return;
    for (int i = 0; i < MOST_PACKED; i++) tconv_filter_release(layer->packed[i].filter);
    for (int i = 0; i < MOST_PLANS && layer->entry[i] != NULL; i++) drop(layer->entry[i]);
    pthread_mutex_destroy(&layer->mutex);
    free(layer);
}

static bool equal(const tconv_shape *a, const tconv_shape *b)
{
    return a->rank == b->rank && memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) == 0;
}

static tconv_status make_entry(struct layer *layer, const tconv_problem *problem,
                               struct entry **out, tconv_error *error)
{
    struct entry *entry = malloc(sizeof *entry);
    if (entry == NULL) return fail(error, TCONV_ERROR_HOST_MEMORY, "no memory for a plan");
    *entry = (struct entry){problem->data, problem->filter, NULL, 1};
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.epilogue = layer->request.epilogue;
    const tconv_status status = tconv_plan_create(tconv_host_device(device_host(layer->device)),
                                                  problem, &options, &entry->plan, error);
    if (status != TCONV_OK) {
        free(entry);
        return status;
    }
    atomic_fetch_add(&counts[PLANS], 1);
    *out = entry;
    return TCONV_OK;
}

/* The plan for these shapes, until give_back. */
static tconv_status take(struct layer *layer, const tconv_problem *problem, struct entry **out,
                         tconv_error *error)
{
    tconv_status status = TCONV_OK;
    struct entry *entry = NULL;
    int place = 0;
    /* The lock is held while kernels are compiled: others would compile the same ones. */
    pthread_mutex_lock(&layer->mutex);
    for (; place < MOST_PLANS && layer->entry[place] != NULL; place++)
        if (equal(&layer->entry[place]->data, &problem->data) &&
            equal(&layer->entry[place]->filter, &problem->filter)) {
            entry = layer->entry[place];
            break;
        }
    if (entry == NULL) status = make_entry(layer, problem, &entry, error);
    if (status == TCONV_OK) {
        if (place == MOST_PLANS) drop(layer->entry[--place]);
        memmove(&layer->entry[1], layer->entry, (size_t)place * sizeof *layer->entry);
        layer->entry[0] = entry;
        entry->users++;
        *out = entry;
    }
    pthread_mutex_unlock(&layer->mutex);
    return status;
}

static void give_back(struct layer *layer, struct entry *entry)
{
    pthread_mutex_lock(&layer->mutex);
    drop(entry);
    pthread_mutex_unlock(&layer->mutex);
}

static tconv_status pack(tconv_plan *plan, struct lane *lane, const void *weights,
                         tconv_filter **out, tconv_error *error)
{
    tconv_filter *filter;
    tconv_status status = tconv_filter_create(plan, NULL, 0, &filter, error);
    if (status != TCONV_OK) return status;
    cl_mem buffer;
    status = lane_upload(lane, WEIGHTS, weights, tconv_plan_geometry(plan)->filter_bytes, &buffer,
                         error);
    if (status == TCONV_OK)
        status =
            tconv_filter_enqueue_pack(filter, lane_queue(lane), buffer, 0, 0, NULL, NULL, error);
    if (status != TCONV_OK) {
        tconv_filter_release(filter);
        return status;
    }
    atomic_fetch_add(&counts[PACKS], 1);
    *out = filter;
    return TCONV_OK;
}

/* The packed filter that all runs share; under the layer's lock. Plans of one layer differ only
 * in extents, so a family has one layout. */
static tconv_status shared_filter(struct layer *layer, tconv_plan *plan, struct lane *lane,
                                  const void *weights, tconv_filter **out, tconv_error *error)
{
    const char *algorithm = tconv_plan_algorithm(plan);
    struct packed *packed = layer->packed;
    while (packed->filter != NULL && strcmp(packed->algorithm, algorithm) != 0)
        if (++packed == layer->packed + MOST_PACKED)
            return fail(error, TCONV_ERROR_INTERNAL, "there are too many kernel families");
    if (packed->filter == NULL) {
        tconv_filter *filter;
        tconv_status status = pack(plan, lane, weights, &filter, error);
        if (status != TCONV_OK) return status;
        status = lane_wait(lane, error); /* other lanes read it */
        if (status != TCONV_OK) {
            tconv_filter_release(filter);
            return status;
        }
        *packed = (struct packed){algorithm, filter};
    }
    *out = packed->filter;
    return TCONV_OK;
}

static tconv_status enqueue(const tconv_plan *plan, struct lane *lane, const tconv_filter *filter,
                            const tconv_epilogue *epilogue, const tconv_arrays *arrays,
                            tconv_error *error)
{
    const tconv_geometry *geometry = tconv_plan_geometry(plan);
    const uint64_t channels = (uint64_t)(geometry->groups * geometry->group_out_channels);
    const tconv_type type = geometry->output_type;
    tconv_args args = TCONV_ARGS_INIT;
    args.filter = filter;
    tconv_status status =
        lane_upload(lane, DATA, arrays->data, geometry->data_bytes, &args.data.memory, error);
    if (status == TCONV_OK && arrays->bias != NULL)
        status = lane_upload(lane, BIAS, arrays->bias,
                             channels * tconv_type_size(tconv_bias_type(epilogue, type)),
                             &args.bias.memory, error);
    if (status == TCONV_OK && arrays->slope != NULL)
        status = lane_upload(lane, SLOPE, arrays->slope,
                             channels * tconv_type_size(tconv_scale_type(type)), &args.slope.memory,
                             error);
    const uint64_t workspace = tconv_plan_workspace_bytes(plan);
    if (status == TCONV_OK && workspace != 0)
        status = lane_space(lane, WORKSPACE, workspace, &args.workspace.memory, error);
    if (status == TCONV_OK)
        status =
            lane_output(lane, arrays->output, geometry->output_bytes, &args.output.memory, error);
    if (status == TCONV_OK)
        status = tconv_plan_enqueue(plan, lane_queue(lane), &args, 0, NULL, NULL, error);
    if (status == TCONV_OK)
        status = lane_download(lane, arrays->output, geometry->output_bytes, error);
    return status;
}

static tconv_status run_at_once(struct layer *layer, const tconv_problem *problem,
                                const tconv_arrays *arrays, tconv_error *error)
{
    struct entry *entry;
    struct lane *lane;
    tconv_status status = take(layer, problem, &entry, error);
    if (status != TCONV_OK) return status;
    status = lane_take(layer->device, &lane, error);
    if (status == TCONV_OK) {
        tconv_filter *filter = NULL;
        if (layer->request.constant_filter) {
            pthread_mutex_lock(&layer->mutex);
            status = shared_filter(layer, entry->plan, lane, arrays->filter, &filter, error);
            pthread_mutex_unlock(&layer->mutex);
        } else {
            status = pack(entry->plan, lane, arrays->filter, &filter, error);
        }
        if (status == TCONV_OK)
            status = enqueue(entry->plan, lane, filter, &layer->request.epilogue, arrays, error);
        lane_give_back(lane);
        if (!layer->request.constant_filter) tconv_filter_release(filter);
    }
    give_back(layer, entry);
    return status;
}

tconv_status layer_run(struct layer *layer, const tconv_problem *problem,
                       const tconv_geometry *geometry, const tconv_arrays *arrays,
                       tconv_error *in_slabs, tconv_error *error)
{
    tconv_status status = TCONV_OK;
    if (geometry->output_bytes != 0) status = run_at_once(layer, problem, arrays, error);
    if (status != TCONV_OK && !tconv_status_is_request(status)) {
        *in_slabs = *error;
        tconv_host *host = device_host(layer->device);
        tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
        options.epilogue = layer->request.epilogue;
        status = tconv_slabs_run(&host, 1, problem, &options, NULL, arrays, error);
        if (status == TCONV_OK) atomic_fetch_add(&counts[COMPUTED_IN_SLABS], 1);
    }
    if (status == TCONV_OK) atomic_fetch_add(&counts[COMPUTED], 1);
    return status;
}
