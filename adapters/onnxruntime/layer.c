/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves and computes one layer of a model on a device, and counts what was done. */
#include "layer.h"

#include "log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct layer {
    tconv_session *host;
    struct layer_request request;
    tconv_session_layer *inside;
    pthread_mutex_t mutex;              /* guards `counted` */
    tconv_session_layer_counts counted; /* the part already added to `counts` */
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
    tconv_session_layer_release(layer->inside);
    pthread_mutex_destroy(&layer->mutex);
    free(layer);
}

tconv_status layer_create(tconv_session *host, const struct layer_request *request,
                          struct layer **out, tconv_error *error)
{
    struct layer *layer = calloc(1, sizeof *layer);
    if (layer == NULL) return fail(error, TCONV_ERROR_HOST_MEMORY, "no memory for a layer");
    layer->host = host;
    layer->request = *request;
    layer->counted = (tconv_session_layer_counts)TCONV_SESSION_LAYER_COUNTS_INIT;
    pthread_mutex_init(&layer->mutex, NULL);
    const tconv_status status =
        tconv_session_layer_create(host, request->constant_filter, &layer->inside, error);
    if (status != TCONV_OK)
        layer_release(layer);
    else
        *out = layer;
    return status;
}

/* Adds the plans and filters that the layer made since the last call. */
static void count_made(struct layer *layer)
{
    tconv_session_layer_counts now = TCONV_SESSION_LAYER_COUNTS_INIT;
    pthread_mutex_lock(&layer->mutex);
    if (tconv_session_layer_count(layer->inside, &now, NULL) == TCONV_OK) {
        atomic_fetch_add(&counts[PLANS], now.plans_made - layer->counted.plans_made);
        atomic_fetch_add(&counts[PACKS], now.filters_packed - layer->counted.filters_packed);
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

tconv_status layer_run(struct layer *layer, const OrtKernelContext *context,
                       const tconv_problem *problem, uint64_t macs, const tconv_arrays *arrays,
                       tconv_error *in_slabs, tconv_error *error)
{
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.epilogue = layer->request.epilogue;
    options.search = layer->request.search;
    const tconv_device_info *device = tconv_device_properties(tconv_session_device(layer->host));
    struct pool pool = {.context = context, .threads = device->compute_units};
    const bool sleeps = macs >= (uint64_t)TCONV_BESIDE_MACS * pool.threads * pool.threads;
    log_begin(context, NULL);
    tconv_status status = tconv_session_layer_run_beside(layer->inside, sleeps ? on_threads : NULL,
                                                         &pool, problem, &options, arrays, error);
    if (status != TCONV_ERROR_FORKED) count_made(layer);
    if (status != TCONV_OK && status != TCONV_ERROR_FORKED && !tconv_status_is_request(status)) {
        *in_slabs = *error;
        status = tconv_slabs_run(&layer->host, 1, problem, &options, NULL, arrays, error);
        if (status == TCONV_OK) atomic_fetch_add(&counts[COMPUTED_IN_SLABS], 1);
    }
    log_end();
    if (status == TCONV_OK) atomic_fetch_add(&counts[COMPUTED], 1);
    return status;
}
