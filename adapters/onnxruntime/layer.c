/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves and computes one layer of a model on a device, and counts what was done. */
#include "layer.h"

#include "log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct layer {
    tconv_device *device;
    struct layer_request request;
    tconv_layer *inside;
    pthread_mutex_t mutex;      /* guards `counted` */
    tconv_layer_counts counted; /* the part already added to `counts` */
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

void layer_release(struct layer *layer)
{
    if (layer == NULL) return;
    tconv_layer_release(layer->inside);
    pthread_mutex_destroy(&layer->mutex);
    free(layer);
}

tconv_status layer_create(tconv_device *device, const struct layer_request *request,
                          struct layer **out, tconv_error *error)
{
    struct layer *layer = calloc(1, sizeof *layer);
    if (layer == NULL) return fail(error, TCONV_ERROR_HOST_MEMORY, "no memory for a layer");
    layer->device = device;
    layer->request = *request;
    layer->counted = (tconv_layer_counts)TCONV_LAYER_COUNTS_INIT;
    pthread_mutex_init(&layer->mutex, NULL);
    const tconv_status status = tconv_layer_create(
        &device, 1, request->constant_filter ? TCONV_FILTER_CONSTANT : TCONV_FILTER_VARIES,
        &layer->inside, error);
    if (status != TCONV_OK)
        layer_release(layer);
    else
        *out = layer;
    return status;
}

/* Adds what the layer did since the last call. */
static void count_made(struct layer *layer)
{
    tconv_layer_counts now = TCONV_LAYER_COUNTS_INIT;
    pthread_mutex_lock(&layer->mutex);
    if (tconv_layer_count(layer->inside, &now, NULL) == TCONV_OK) {
        atomic_fetch_add(&counts[PLANS], now.plans_made - layer->counted.plans_made);
        atomic_fetch_add(&counts[PACKS], now.filters_packed - layer->counted.filters_packed);
        atomic_fetch_add(&counts[COMPUTED], now.runs - layer->counted.runs);
        atomic_fetch_add(&counts[COMPUTED_IN_SLABS], now.in_slabs - layer->counted.in_slabs);
        layer->counted = now;
    }
    pthread_mutex_unlock(&layer->mutex);
}

/* ONNX Runtime's threads while a run computes, and the run's log, which each of them needs. */
struct pool {
    const OrtKernelContext *context;
    size_t threads;
    void (*task)(void *argument);
    void *argument;
};

static void start(void *user, size_t index)
{
    (void)index;
    const struct pool *pool = user;
    log_begin(pool->context, NULL);
    pool->task(pool->argument);
    log_end();
}

static void on_threads(void *user, void (*task)(void *argument), void *argument)
{
    struct pool *pool = user;
    pool->task = task;
    pool->argument = argument;
    succeeded(ort.KernelContext_ParallelFor(pool->context, start, pool->threads, 0, pool), NULL);
    log_begin(pool->context, NULL); /* this thread may have been one of them */
}

static bool hear_slabs(void *user, const tconv_slab *slab, int64_t done, int64_t slabs)
{
    (void)slab;
    (void)done;
    *(int64_t *)user = slabs;
    return true;
}

tconv_status layer_run(struct layer *layer, const OrtKernelContext *context,
                       const tconv_problem *problem, const tconv_tensors *tensors, int64_t *slabs,
                       tconv_error *error)
{
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.epilogue = layer->request.epilogue;
    options.search = layer->request.search;
    options.math = layer->request.math;
    struct pool pool = {.context = context,
                        .threads = tconv_device_properties(layer->device)->compute_units};
    tconv_run run = TCONV_RUN_INIT;
    run.on_threads = on_threads;
    run.pool = &pool;
    run.progress = hear_slabs;
    run.user = slabs;
    *slabs = 1;
    log_begin(context, NULL);
    const tconv_status status =
        tconv_layer_run(layer->inside, problem, &options, tensors, &run, error);
    log_end();
    if (status != TCONV_ERROR_FORKED) count_made(layer);
    return status;
}
