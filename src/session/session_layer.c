/* SPDX-License-Identifier: Apache-2.0 */
/* Computes on host arrays. A session layer keeps plans, by problem, and packed filters between
 * calls. */
#include "base/cancel.h"
#include "base/error.h"
#include "base/inside.h"
#include "base/process.h"
#include "base/struct_size.h"
#include "session/key.h"
#include "session/lane.h"
#include "session/session_internal.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PLANS = 128, MOST_FILTERS = 16 };

/* `users` counts the layer, while it keeps the plan, and the calls that use it. `renewed` is true
 * when a call has set out to replace the plan because it is stale; only one does. */
struct kept_plan {
    struct tconv_key key;
    tconv_plan *plan;
    int users;
    bool renewed;
};

struct kept_filter {
    tconv_packed_filter *filter;
    tconv_operation operation; /* this and the format tell in which order the weights were read */
    tconv_filter_format format;
    XXH128_hash_t hash; /* the weights' identity, if the layer watches them */
    int users;
};

struct tconv_session_layer {
    tconv_session *session;
    bool constant_filter, watch;
    pthread_mutex_t making; /* held while a plan is made or a filter packed: see begin_making */
    pthread_mutex_t mutex;  /* guards all members below except the counts of runs */
    struct kept_plan *plan[MOST_PLANS];       /* the most recently used first */
    struct kept_filter *filter[MOST_FILTERS]; /* the most recently packed first */
    uint64_t plans_made, refreshes;
    atomic_uint_least64_t runs, filters_packed;
};

/* Waits until no other thread makes a plan or packs a filter, because it may be the same one. A
 * thread inside a callback does not wait, and may then make another one of the same: the
 * thread that it would wait for may be inside a callback, too, and wait for this one. Returns
 * whether end_making must be called. */
static bool begin_making(tconv_session_layer *layer)
{
    if (tconv_is_inside()) return false;
    pthread_mutex_lock(&layer->making);
    return true;
}

static void end_making(tconv_session_layer *layer, bool begun)
{
    if (begun) pthread_mutex_unlock(&layer->making);
}

static void drop_plan(struct kept_plan *plan)
{
    if (--plan->users > 0) return;
    tconv_plan_release(plan->plan);
    free(plan);
}

static void drop_filter(struct kept_filter *filter)
{
    if (--filter->users > 0) return;
    tconv_packed_filter_release(filter->filter);
    free(filter);
}

static tconv_status make_plan(tconv_session *session, const struct tconv_session_call *call,
                              const struct tconv_key *key, struct kept_plan **out,
                              tconv_error *error)
{
    struct kept_plan *made = calloc(1, sizeof *made);
    if (made == NULL) return tconv_fail_memory(error, sizeof *made, "keeping a plan");
    const tconv_status status =
        tconv_plan_create(session->device, &call->problem, &call->options, &made->plan, error);
    if (status != TCONV_OK) {
        free(made);
        return status;
    }
    made->key = *key;
    made->users = 1;
    *out = made;
    return TCONV_OK;
}

/* Under the lock: the place of the plan with this key, or else of the first free one. */
static int plan_place(const tconv_session_layer *layer, const struct tconv_key *key)
{
    int place = 0;
    while (place < MOST_PLANS && layer->plan[place] != NULL &&
           !tconv_key_equal(&layer->plan[place]->key, key))
        place++;
    return place;
}

/* Under the lock: puts a plan first, before those in front of `place`. */
static void put_first(tconv_session_layer *layer, struct kept_plan *plan, int place)
{
    memmove(&layer->plan[1], layer->plan, (size_t)place * sizeof *layer->plan);
    layer->plan[0] = plan;
}

/* The kept plan with this key, which counts as used until drop_plan; NULL if there is none.
 * `*renew` is true if the caller is to replace it. */
static struct kept_plan *find_plan(tconv_session_layer *layer, const struct tconv_key *key,
                                   bool *renew)
{
    pthread_mutex_lock(&layer->mutex);
    const int place = plan_place(layer, key);
    struct kept_plan *found = place < MOST_PLANS ? layer->plan[place] : NULL;
    *renew = found != NULL && !found->renewed && tconv_plan_is_stale(found->plan);
    if (found != NULL) {
        put_first(layer, found, place);
        found->users++;
        found->renewed = found->renewed || *renew;
    }
    pthread_mutex_unlock(&layer->mutex);
    return found;
}

/* Keeps a new plan, in place of one that is stale, unless a callback made the same one meanwhile.
 * The one that is kept counts as used. */
static struct kept_plan *keep_plan(tconv_session_layer *layer, struct kept_plan *made)
{
    pthread_mutex_lock(&layer->mutex);
    layer->plans_made++;
    int place = plan_place(layer, &made->key);
    if (place < MOST_PLANS && layer->plan[place] != NULL && !layer->plan[place]->renewed) {
        struct kept_plan *first = layer->plan[place];
        drop_plan(made);
        made = first;
    } else if (place == MOST_PLANS)
        drop_plan(layer->plan[--place]);
    else if (layer->plan[place] != NULL)
        drop_plan(layer->plan[place]);
    put_first(layer, made, place);
    made->users++;
    pthread_mutex_unlock(&layer->mutex);
    return made;
}

/* Replaces a plan that counts as used by a new one that does. If none can be made, the old one
 * stays, for good. */
static struct kept_plan *renew_plan(tconv_session_layer *layer,
                                    const struct tconv_session_call *call, struct kept_plan *old)
{
    struct kept_plan *made = NULL;
    const bool begun = begin_making(layer);
    if (make_plan(layer->session, call, &old->key, &made, NULL) == TCONV_OK)
        made = keep_plan(layer, made);
    end_making(layer, begun);
    if (made == NULL) return old;
    pthread_mutex_lock(&layer->mutex);
    drop_plan(old);
    pthread_mutex_unlock(&layer->mutex);
    return made;
}

/* Finds or makes the plan of a call, which counts as used until drop_plan. */
static tconv_status take_plan(tconv_session_layer *layer, const struct tconv_session_call *call,
                              struct kept_plan **out, tconv_error *error)
{
    struct tconv_key key;
    const bool known = tconv_key_make(&call->problem, &call->options, &key);
    if (!known) return make_plan(layer->session, call, &key, out, error); /* the error */
    bool renew;
    struct kept_plan *found = find_plan(layer, &key, &renew), *made = NULL;
    tconv_status status = TCONV_OK;
    if (found == NULL) {
        const bool begun = begin_making(layer);
        found = find_plan(layer, &key, &renew); /* the thread waited for may have made it */
        if (found == NULL) status = make_plan(layer->session, call, &key, &made, error);
        if (found == NULL && status == TCONV_OK) found = keep_plan(layer, made);
        end_making(layer, begun);
    }
    if (renew) found = renew_plan(layer, call, found);
    if (status == TCONV_OK) *out = found;
    return status;
}

/* True if [array, array + bytes) and [other, other + size) overlap. */
static bool overlap(const void *array, uint64_t bytes, const void *other, uint64_t size)
{
    const uintptr_t a = (uintptr_t)array, b = (uintptr_t)other;
    return a < b ? b - a < bytes : a - b < size;
}

/* A host array of a call. */
struct array {
    enum tconv_role role;
    const void *elements; /* NULL: the call has none */
    uint64_t bytes;       /* 0: empty, which needs no buffer */
    size_t element;       /* bytes of one */
    cl_mem *memory;       /* receives its buffer */
};

static tconv_status pack(tconv_plan *plan, struct tconv_lane *lane,
                         const struct tconv_session_call *call, bool alone, cl_mem storage,
                         tconv_packed_filter **out, tconv_error *error)
{
    tconv_packed_filter *filter;
    tconv_status status = tconv_packed_filter_create(
        plan, storage == NULL ? NULL : &(tconv_buffer){.memory = storage}, &filter, error);
    if (status != TCONV_OK) return status;
    cl_mem buffer;
    if ((status = tconv_lane_upload(
             lane, TCONV_ROLE_FILTER, call->arrays.filter, tconv_plan_geometry(plan)->filter_bytes,
             tconv_type_size(call->problem.filter_type), alone, &buffer, error)) != TCONV_OK ||
        (status = tconv_packed_filter_enqueue_pack(filter, tconv_lane_queue(lane),
                                                   &(tconv_buffer){.memory = buffer}, 0, NULL, NULL,
                                                   error)) != TCONV_OK) {
        tconv_packed_filter_release(filter);
        return status;
    }
    *out = filter;
    return TCONV_OK;
}

/* What tells the weights of a call from others. */
static XXH128_hash_t identity(const tconv_plan *plan, const tconv_arrays *arrays)
{
    if (arrays->filter_version != 0) return (XXH128_hash_t){arrays->filter_version, 0};
    return XXH3_128bits(arrays->filter, (size_t)tconv_plan_geometry(plan)->filter_bytes);
}

/* Forgets the filters that were packed from other weights. */
static void drop_other_filters(tconv_session_layer *layer, XXH128_hash_t hash)
{
    int kept = 0;
    for (int i = 0; i < MOST_FILTERS && layer->filter[i] != NULL; i++) {
        struct kept_filter *filter = layer->filter[i];
        layer->filter[i] = NULL;
        if (XXH128_isEqual(filter->hash, hash))
            layer->filter[kept++] = filter;
        else
            drop_filter(filter);
    }
}

/* True if the plan reads the filter, and it was packed from weights in the problem's order. */
static bool is_wanted(const struct kept_filter *filter, const tconv_plan *plan,
                      const tconv_problem *problem)
{
    return filter->operation == problem->operation && filter->format == problem->filter_format &&
           tconv_packed_filter_fits(filter->filter, plan);
}

/* Under the lock: the place of the wanted filter, or else of the first free one. */
static int filter_place(const tconv_session_layer *layer, const tconv_plan *plan,
                        const tconv_problem *problem)
{
    int place = 0;
    while (place < MOST_FILTERS && layer->filter[place] != NULL &&
           !is_wanted(layer->filter[place], plan, problem))
        place++;
    return place;
}

/* The kept filter for the plan, which counts as used until drop_filter; NULL if there is none. Also
 * tells how often the layer has been refreshed. */
static struct kept_filter *find_filter(tconv_session_layer *layer, const tconv_plan *plan,
                                       const tconv_problem *problem, XXH128_hash_t hash,
                                       uint64_t *refreshes)
{
    pthread_mutex_lock(&layer->mutex);
    if (layer->watch) drop_other_filters(layer, hash);
    const int place = filter_place(layer, plan, problem);
    struct kept_filter *found = place < MOST_FILTERS ? layer->filter[place] : NULL;
    if (found != NULL) found->users++;
    *refreshes = layer->refreshes;
    pthread_mutex_unlock(&layer->mutex);
    return found;
}

/* Keeps a new filter, unless the layer was refreshed meanwhile. */
static void keep_filter(tconv_session_layer *layer, const tconv_plan *plan,
                        const tconv_problem *problem, struct kept_filter *made, uint64_t refreshes)
{
    pthread_mutex_lock(&layer->mutex);
    if (layer->refreshes == refreshes) {
        int place = filter_place(layer, plan, problem);
        if (place < MOST_FILTERS && layer->filter[place] != NULL)
            drop_filter(layer->filter[place]); /* a callback packed it meanwhile */
        else if (place == MOST_FILTERS)
            drop_filter(layer->filter[--place]);
        memmove(&layer->filter[1], layer->filter, (size_t)place * sizeof *layer->filter);
        layer->filter[0] = made;
        made->users++;
    }
    pthread_mutex_unlock(&layer->mutex);
}

/* Packs a filter for the plan, which counts as used, and keeps it. */
static tconv_status make_filter(tconv_session_layer *layer, tconv_plan *plan,
                                struct tconv_lane *lane, const struct tconv_session_call *call,
                                XXH128_hash_t hash, uint64_t refreshes, struct kept_filter **out,
                                tconv_error *error)
{
    struct kept_filter *made = calloc(1, sizeof *made);
    if (made == NULL) return tconv_fail_memory(error, sizeof *made, "keeping a filter");
    tconv_status status = pack(plan, lane, call, true, NULL, &made->filter, error);
    if (status == TCONV_OK) status = tconv_lane_finish(lane, error); /* other lanes read it */
    if (status != TCONV_OK) {
        tconv_packed_filter_release(made->filter);
        free(made);
        return status;
    }
    atomic_fetch_add(&layer->filters_packed, 1);
    made->operation = call->problem.operation;
    made->format = call->problem.filter_format;
    made->hash = hash;
    made->users = 1;
    if (!layer->watch || XXH128_isEqual(hash, identity(plan, &call->arrays)))
        keep_filter(layer, plan, &call->problem, made,
                    refreshes); /* not if the weights changed meanwhile */
    *out = made;
    return TCONV_OK;
}

/* Finds or packs the constant filter for the plan. The packed filter counts as used until
 * drop_filter. */
static tconv_status take_filter(tconv_session_layer *layer, tconv_plan *plan,
                                struct tconv_lane *lane, const struct tconv_session_call *call,
                                struct kept_filter **out, tconv_error *error)
{
    tconv_status status = TCONV_OK;
    XXH128_hash_t hash = {0, 0};
    uint64_t refreshes;
    if (layer->watch) hash = identity(plan, &call->arrays);
    struct kept_filter *found = find_filter(layer, plan, &call->problem, hash, &refreshes);
    if (found == NULL) {
        const bool begun = begin_making(layer);
        found = find_filter(layer, plan, &call->problem, hash, &refreshes);
        if (found == NULL)
            status = make_filter(layer, plan, lane, call, hash, refreshes, &found, error);
        end_making(layer, begun);
    }
    if (status == TCONV_OK) *out = found;
    return status;
}

/* Runs a plan in a lane. If `filter` is NULL, the call packs the weights. */
static tconv_status run_in_lane(tconv_plan *plan, struct tconv_lane *lane,
                                const struct tconv_session_call *call, tconv_packed_filter *filter,
                                tconv_error *error)
{
    const tconv_geometry *g = tconv_plan_geometry(plan);
    const tconv_epilogue *epilogue = &call->options.epilogue;
    const tconv_arrays *arrays = &call->arrays;
    const uint64_t channels = (uint64_t)(g->groups * g->group_out_channels);
    const size_t data = tconv_type_size(call->problem.data_type),
                 filter_element = tconv_type_size(call->problem.filter_type),
                 output = tconv_type_size(g->output_type),
                 number = tconv_type_size(tconv_scale_type(call->problem.data_type)),
                 bias = tconv_type_size(tconv_bias_type(epilogue, g->output_type));
    tconv_args args = TCONV_ARGS_INIT;
    cl_mem packed;
    tconv_packed_filter *own = NULL;
    const struct array inputs[] = {
        {TCONV_ROLE_DATA, arrays->data, g->data_bytes, data, &args.data.memory},
        {TCONV_ROLE_FILTER, filter == NULL ? arrays->filter : NULL, g->filter_bytes, filter_element,
         NULL},
        {TCONV_ROLE_BIAS, arrays->bias, channels * bias, bias, &args.bias.memory},
        {TCONV_ROLE_SCALE, arrays->scale, channels * number, number, &args.scale.memory},
        {TCONV_ROLE_SLOPE, arrays->slope, channels * number, number, &args.slope.memory},
        {TCONV_ROLE_RESIDUAL, arrays->residual, g->residual_bytes, output, &args.residual.memory},
    };
    const size_t count = sizeof inputs / sizeof *inputs;
    tconv_status status = TCONV_OK;
    for (size_t i = 0; i < count && status == TCONV_OK; i++) {
        if (inputs[i].elements == NULL || inputs[i].bytes == 0) continue;
        bool alone = !overlap(inputs[i].elements, inputs[i].bytes, arrays->output, g->output_bytes);
        for (size_t j = 0; j < count && alone; j++)
            alone =
                j == i || inputs[j].elements == NULL ||
                !overlap(inputs[i].elements, inputs[i].bytes, inputs[j].elements, inputs[j].bytes);
        if (inputs[i].role != TCONV_ROLE_FILTER)
            status = tconv_lane_upload(lane, inputs[i].role, inputs[i].elements, inputs[i].bytes,
                                       inputs[i].element, alone, inputs[i].memory, error);
        else if ((status = tconv_lane_space(lane, TCONV_ROLE_PACKED, tconv_plan_filter_bytes(plan),
                                            &packed, error)) == TCONV_OK)
            status = pack(plan, lane, call, alone, packed, &own, error);
    }
    args.filter = filter != NULL ? filter : own;
    const uint64_t workspace = tconv_plan_workspace_bytes(plan);
    if (status == TCONV_OK && workspace != 0)
        status =
            tconv_lane_space(lane, TCONV_ROLE_WORKSPACE, workspace, &args.workspace.memory, error);
    if (status == TCONV_OK)
        status = tconv_lane_output(lane, arrays->output, g->output_bytes, output,
                                   epilogue->beta != 0, &args.output.memory, error);
    if (status == TCONV_OK)
        status = tconv_plan_enqueue(plan, tconv_lane_queue(lane), &args, 0, NULL, NULL, error);
    const struct tconv_view view = tconv_view_of(&call->problem, g, TCONV_SPACED_OUTPUT);
    if (status == TCONV_OK)
        status = tconv_lane_download(lane, arrays->output, g->output_bytes, &view, output, error);
    tconv_packed_filter_release(own);
    return status;
}

/* Runs a plan. If `layer` is NULL, nothing is kept. */
static tconv_status run_plan(tconv_session *session, tconv_session_layer *layer, tconv_plan *plan,
                             const struct tconv_session_call *call, tconv_error *error)
{
    const tconv_geometry *geometry = tconv_plan_geometry(plan);
    if (geometry->output_bytes == 0) return TCONV_OK;
    struct tconv_lane *lane;
    struct kept_filter *filter = NULL;
    tconv_status status;
    if ((status = tconv_session_check_arrays(&call->arrays, geometry, &call->options.epilogue,
                                             error)) != TCONV_OK ||
        (status = tconv_lane_take(session, &lane, error)) != TCONV_OK)
        return status;
    if (layer != NULL && layer->constant_filter)
        status = take_filter(layer, plan, lane, call, &filter, error);
    if (status == TCONV_OK)
        status = run_in_lane(plan, lane, call, filter == NULL ? NULL : filter->filter, error);
    tconv_lane_give_back(lane, layer != NULL);
    if (layer != NULL && filter == NULL && status == TCONV_OK)
        atomic_fetch_add(&layer->filters_packed, 1);
    if (filter != NULL) {
        pthread_mutex_lock(&layer->mutex);
        drop_filter(filter);
        pthread_mutex_unlock(&layer->mutex);
    }
    return status;
}

tconv_status tconv_session_run(tconv_session *session, const tconv_problem *problem,
                               const tconv_plan_options *options, const tconv_arrays *arrays,
                               tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (session == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "session is NULL");
    struct tconv_session_call call;
    tconv_plan *plan;
    tconv_status status;
    if ((status = tconv_session_read(problem, options, arrays, &call, error)) != TCONV_OK ||
        (status = tconv_plan_create(session->device, &call.problem, &call.options, &plan, error)) !=
            TCONV_OK)
        return status;
    status = run_plan(session, NULL, plan, &call, error);
    tconv_plan_release(plan);
    return status;
}

static bool make_locks(tconv_session_layer *layer)
{
    if (pthread_mutex_init(&layer->making, NULL) != 0) return false;
    if (pthread_mutex_init(&layer->mutex, NULL) == 0) return true;
    pthread_mutex_destroy(&layer->making);
    return false;
}

tconv_status tconv_session_layer_create(tconv_session *session, bool constant_filter,
                                        tconv_session_layer **out, tconv_error *error)
{
    if (session == NULL || out == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          session == NULL ? "session" : "out");
    tconv_session_layer *layer = calloc(1, sizeof *layer);
    if (layer == NULL || !make_locks(layer)) {
        free(layer);
        return tconv_fail_memory(error, sizeof *layer, "making a layer");
    }
    layer->session = session;
    layer->constant_filter = constant_filter;
    atomic_init(&layer->runs, 0);
    atomic_init(&layer->filters_packed, 0);
    *out = layer;
    return TCONV_OK;
}

tconv_session *tconv_session_of_layer(const tconv_session_layer *layer)
{
    return layer->session;
}

void tconv_session_layer_release(tconv_session_layer *layer)
{
    TCONV_WITHOUT_CANCELLATION;
    if (layer == NULL || tconv_process_forked()) return;
    tconv_session_layer_refresh(layer);
    for (int i = 0; i < MOST_PLANS && layer->plan[i] != NULL; i++) drop_plan(layer->plan[i]);
    pthread_mutex_destroy(&layer->mutex);
    pthread_mutex_destroy(&layer->making);
    free(layer);
}

tconv_status tconv_layer_prepare(tconv_session_layer *layer, const tconv_problem *problem,
                                 const tconv_plan_options *options, const tconv_arrays *arrays,
                                 struct tconv_layer_run *run, tconv_error *error)
{
    tconv_status status;
    if (layer == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "layer is NULL");
    run->layer = layer;
    if ((status = tconv_process_enter(error)) != TCONV_OK ||
        (status = tconv_session_read(problem, options, arrays, &run->call, error)) != TCONV_OK)
        return status;
    return take_plan(layer, &run->call, &run->plan, error);
}

tconv_status tconv_layer_execute(struct tconv_layer_run *run, tconv_error *error)
{
    tconv_session_layer *layer = run->layer;
    const tconv_status status = run_plan(layer->session, layer, run->plan->plan, &run->call, error);
    pthread_mutex_lock(&layer->mutex);
    drop_plan(run->plan);
    pthread_mutex_unlock(&layer->mutex);
    if (status != TCONV_OK) return status;
    atomic_fetch_add(&layer->runs, 1);
    return TCONV_OK;
}

tconv_status tconv_session_layer_run(tconv_session_layer *layer, const tconv_problem *problem,
                                     const tconv_plan_options *options, const tconv_arrays *arrays,
                                     tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    struct tconv_layer_run run;
    const tconv_status status = tconv_layer_prepare(layer, problem, options, arrays, &run, error);
    return status == TCONV_OK ? tconv_layer_execute(&run, error) : status;
}

tconv_status tconv_session_layer_plan(tconv_session_layer *layer, const tconv_problem *problem,
                                      const tconv_plan_options *options, tconv_plan **out,
                                      tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    struct tconv_layer_run run;
    const tconv_arrays none = TCONV_ARRAYS_INIT;
    if (out == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "out is NULL");
    const tconv_status status = tconv_layer_prepare(layer, problem, options, &none, &run, error);
    if (status != TCONV_OK) return status;
    tconv_plan_retain(run.plan->plan);
    *out = run.plan->plan;
    pthread_mutex_lock(&layer->mutex);
    drop_plan(run.plan);
    pthread_mutex_unlock(&layer->mutex);
    return TCONV_OK;
}

void tconv_session_layer_refresh(tconv_session_layer *layer)
{
    TCONV_WITHOUT_CANCELLATION;
    if (layer == NULL || tconv_process_forked()) return;
    pthread_mutex_lock(&layer->mutex);
    for (int i = 0; i < MOST_FILTERS && layer->filter[i] != NULL; i++) {
        drop_filter(layer->filter[i]);
        layer->filter[i] = NULL;
    }
    layer->refreshes++;
    pthread_mutex_unlock(&layer->mutex);
}

void tconv_session_layer_watch(tconv_session_layer *layer, bool watch)
{
    if (layer == NULL) return;
    if (watch != layer->watch) tconv_session_layer_refresh(layer);
    layer->watch = watch;
}

void tconv_hash(const void *memory, size_t size, uint64_t hash[2])
{
    const XXH128_hash_t own = XXH3_128bits(memory, size);
    hash[0] = own.low64;
    hash[1] = own.high64;
}

tconv_status tconv_session_layer_count(const tconv_session_layer *layer,
                                       tconv_session_layer_counts *counts, tconv_error *error)
{
    if (layer == NULL || counts == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          layer == NULL ? "layer" : "counts");
    const tconv_status status = tconv_struct_check(TCONV_SIZED_SESSION_LAYER_COUNTS, counts, error);
    if (status != TCONV_OK) return status;
    tconv_session_layer_counts own = TCONV_SESSION_LAYER_COUNTS_INIT;
    tconv_session_layer *inside = (tconv_session_layer *)(uintptr_t)layer; /* for its lock */
    own.runs = atomic_load(&inside->runs);
    own.filters_packed = atomic_load(&inside->filters_packed);
    pthread_mutex_lock(&inside->mutex);
    own.plans_made = layer->plans_made;
    while (own.plans_kept < MOST_PLANS && layer->plan[own.plans_kept] != NULL) own.plans_kept++;
    pthread_mutex_unlock(&inside->mutex);
    tconv_struct_write(TCONV_SIZED_SESSION_LAYER_COUNTS, &own, counts);
    return TCONV_OK;
}
