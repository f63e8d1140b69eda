/* SPDX-License-Identifier: Apache-2.0 */
/* Finds or packs the weights of runs. */
#include "layer/weights.h"

#include "base/error.h"
#include "device/device.h"
#include "device/lane.h"
#include "plan/place.h"
#include "plan/shares.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- packing ---- */

/* Makes a buffer with a copy of an array of the host. */
static tconv_status copy_array(const struct tconv_keep *keep, const char *name,
                               const tconv_tensor *tensor, uint64_t bytes, cl_mem *out,
                               tconv_error *error)
{
    cl_int code;
    const cl_mem made = clCreateBuffer(tconv_device_context(keep->device),
                                       CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, (size_t)bytes,
                                       tconv_array_of(tensor), &code);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clCreateBuffer",
                                 "copying tensors.%s of %llu bytes to the device", name,
                                 (unsigned long long)bytes);
    *out = made;
    return TCONV_OK;
}

/* Where the filter of a call is on the device: in the lane, in a copy, which the caller releases,
 * or where the caller has it. */
static tconv_status find_filter(const struct tconv_keep *keep, const struct tconv_call *call,
                                const struct tconv_packing *packing, const tconv_plan *plan,
                                tconv_tensor *from, cl_mem *copy, tconv_error *error)
{
    const tconv_tensor *filter = &call->tensors.filter;
    const uint64_t bytes = tconv_plan_geometry(plan)->filter_bytes;
    const size_t element = tconv_type_size(call->problem.filter_type);
    *from = *filter;
    *copy = NULL;
    if (filter->host == NULL)
        return tconv_place_check(plan, "tensors.filter", filter, bytes, element, error);
    *from = (tconv_tensor)TCONV_TENSOR_INIT;
    if (packing->lane != NULL)
        return tconv_lane_upload(packing->lane, TCONV_ROLE_FILTER, tconv_array_of(filter), bytes,
                                 element, packing->alone, &from->memory, error);
    const tconv_status status = copy_array(keep, "filter", filter, bytes, copy, error);
    from->memory = *copy;
    return status;
}

/* Packs the filter of a call for a plan. In the queue of a run, executions in other queues may wait
 * for the packing, so the queue is flushed. */
static tconv_status pack(const struct tconv_keep *keep, const struct tconv_call *call,
                         const struct tconv_packing *packing, const tconv_tensor *storage,
                         tconv_plan *plan, struct tconv_kept_filter **out, tconv_error *error)
{
    const bool in_lane = packing->lane != NULL;
    const tconv_run *run = &call->run;
    struct tconv_kept_filter *made;
    tconv_tensor from;
    cl_mem copy = NULL;
    tconv_status status = tconv_kept_filter_create(plan, &call->problem, storage, &made, error);
    if (status != TCONV_OK) return status;
    const struct tconv_pool pool = {run->on_threads, run->pool, run->threads};
    status = find_filter(keep, call, packing, plan, &from, &copy, error);
    if (status == TCONV_OK && in_lane)
        status = tconv_packed_filter_execute(made->packed, tconv_lane_queue(packing->lane), &pool,
                                             &from, error);
    else if (status == TCONV_OK)
        status = tconv_packed_filter_enqueue_pack(made->packed, run->queue, &from, run->wait_count,
                                                  run->wait, &made->end, error);
    if (copy != NULL) clReleaseMemObject(copy);
    cl_int code = CL_SUCCESS;
    if (status == TCONV_OK && !in_lane) code = clFlush(run->queue);
    if (code != CL_SUCCESS) status = tconv_fail_opencl(error, code, "clFlush", "packing weights");
    if (status != TCONV_OK) {
        tconv_kept_filter_release(made);
        return status;
    }
    if (packing->count != NULL) atomic_fetch_add(packing->count, 1);
    *out = made;
    return TCONV_OK;
}

/* ---- the filter of a run ---- */

/* Packs the filter for this run alone, in a lane into the lane's own buffer. */
static tconv_status pack_once(const struct tconv_keep *keep, const struct tconv_call *call,
                              const struct tconv_packing *packing, struct tconv_use *use,
                              tconv_error *error)
{
    tconv_tensor storage = TCONV_TENSOR_INIT;
    if (packing->lane == NULL)
        return pack(keep, call, packing, NULL, use->plan, &use->filter, error);
    const tconv_status status = tconv_lane_space(packing->lane, TCONV_ROLE_PACKED,
                                                 tconv_plan_filter_bytes(use->plan),
                                                 &storage.memory, error);
    return status == TCONV_OK ? pack(keep, call, packing, &storage, use->plan, &use->filter, error)
                              : status;
}

bool tconv_has_identity(const struct tconv_call *call)
{
    return call->tensors.filter.host != NULL || call->tensors.filter_version != 0;
}

struct tconv_identity tconv_weights_identity(const struct tconv_call *call,
                                             const tconv_geometry *geometry)
{
    struct tconv_identity identity = {{call->tensors.filter_version, 0}};
    if (call->tensors.filter_version == 0)
        tconv_hash(tconv_array_of(&call->tensors.filter), (size_t)geometry->filter_bytes,
                   identity.word);
    return identity;
}

/* Packs the filter and keeps it, but not if its elements changed meanwhile. */
static tconv_status pack_to_keep(struct tconv_keep *keep, const struct tconv_call *call,
                                 const struct tconv_packing *packing,
                                 const struct tconv_identity *identity, struct tconv_use *use,
                                 tconv_error *error)
{
    tconv_status status = pack(keep, call, packing, NULL, use->plan, &use->filter, error);
    if (status == TCONV_OK && packing->lane != NULL)
        status = tconv_lane_finish(packing->lane, error); /* other lanes read it */
    if (status != TCONV_OK) return status;
    if (identity != NULL) {
        const struct tconv_identity now =
            tconv_weights_identity(call, tconv_plan_geometry(use->plan));
        if (memcmp(&now, identity, sizeof now) != 0) return TCONV_OK;
        use->filter->identity = *identity;
    }
    tconv_keep_filter(keep, use);
    return TCONV_OK;
}

tconv_status tconv_weights_filter(struct tconv_keep *keep, const struct tconv_call *call,
                                  const struct tconv_packing *packing, struct tconv_use *use,
                                  tconv_error *error)
{
    if (!tconv_is_given(&call->tensors.filter)) return TCONV_OK; /* tconv_weights_plan has it */
    const bool watched = packing->use == TCONV_FILTER_WATCHED;
    if (packing->use == TCONV_FILTER_VARIES || (watched && !tconv_has_identity(call)))
        return pack_once(keep, call, packing, use, error);
    struct tconv_identity identity, *wanted = NULL;
    if (watched) {
        identity = packing->identity != NULL
                       ? *packing->identity
                       : tconv_weights_identity(call, tconv_plan_geometry(use->plan));
        wanted = &identity;
    }
    tconv_keep_find(keep, &call->problem, wanted, use);
    if (use->filter != NULL) return TCONV_OK;
    const bool begun = tconv_keep_begin(keep);
    tconv_status status = TCONV_OK;
    tconv_keep_find(keep, &call->problem, wanted, use); /* another thread may have packed it */
    if (use->filter == NULL) status = pack_to_keep(keep, call, packing, wanted, use, error);
    tconv_keep_end(keep, begun);
    return status;
}

/* ---- the plan of a run ---- */

/* True if the caller named the algorithm. */
static bool is_named(const tconv_plan_options *options)
{
    return options->algorithm != NULL && strcmp(options->algorithm, "auto") != 0;
}

/* Takes a plan by the algorithm of the filter that was set, with a tile that suits the problem, or
 * with the same tile if that decides about the layout, and filter and vectors if it then fits. They
 * may be others than those that were set before: the filter never goes without its vectors. */
static tconv_status take_alike(struct tconv_keep *keep, const struct tconv_call *call,
                               const tconv_plan *kept, struct tconv_use *use, tconv_error *error)
{
    enum { TILE = 200 };
    char algorithm[TILE];
    struct tconv_call alike = *call;
    alike.options.algorithm = algorithm;
    const int length = snprintf(algorithm, sizeof algorithm, "%s", tconv_plan_algorithm(kept));
    tconv_status status = TCONV_OK;
    for (int tiled = 0; tiled < 2 && use->filter == NULL && status == TCONV_OK; tiled++) {
        if (tiled) {
            algorithm[length] = ' ';
            tconv_plan_tile(kept, algorithm + length + 1, sizeof algorithm - (size_t)length - 1);
        }
        tconv_plan *plan;
        tconv_call_make_key(&alike);
        status = tconv_keep_plan(keep, &alike, false, &plan, error);
        if (status != TCONV_OK) break;
        tconv_plan_release(use->plan);
        use->plan = plan;
        tconv_keep_find_set(keep, &call->problem, use);
    }
    return status;
}

/* Takes a plan that reads the filter that was set, by its algorithm; another filter may be set
 * meanwhile. */
static tconv_status take_set_alike(struct tconv_keep *keep, const struct tconv_call *call,
                                   struct tconv_use *use, tconv_error *error)
{
    tconv_error reason;
    bool changed;
    do {
        struct tconv_kept_filter *set = tconv_keep_take_set(keep), *now;
        if (set == NULL)
            return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                              "tensors.filter is absent, and the layer keeps no filter that was "
                              "set: give it, or call tconv_layer_set before");
        reason.status = TCONV_OK;
        if (is_named(&call->options))
            tconv_keep_find_set(keep, &call->problem, use);
        else
            take_alike(keep, call, set->plan, use, &reason);
        now = tconv_keep_take_set(keep);
        changed = use->filter == NULL && now != set;
        tconv_kept_filter_release(now);
        tconv_kept_filter_release(set);
    } while (changed);
    if (use->filter != NULL) return TCONV_OK;
    if (reason.status == TCONV_ERROR_ALGORITHM)
        return tconv_fail(error, TCONV_ERROR_MISMATCH,
                          "tensors.filter is absent, and the kept filter is packed for its "
                          "algorithm: %.800s",
                          reason.message);
    if (reason.status != TCONV_OK) return tconv_fail_with(error, &reason);
    return tconv_fail(error, TCONV_ERROR_MISMATCH,
                      "tensors.filter is absent, and the kept filter is packed for other channels, "
                      "taps, types, formats, zero points, axes of extent or kernel 1, or another "
                      "algorithm than this problem and its algorithm %s need: give it",
                      tconv_plan_algorithm(use->plan));
}

tconv_status tconv_weights_plan(struct tconv_keep *keep, const struct tconv_call *call,
                                struct tconv_use *use, tconv_error *error)
{
    const bool given = tconv_is_given(&call->tensors.filter);
    tconv_status status = use->plan != NULL ? TCONV_OK
                                            : tconv_keep_plan(keep, call, given, &use->plan, error);
    if (status != TCONV_OK || tconv_plan_geometry(use->plan)->output_bytes == 0) return status;
    if (given) {
        use->vectors = tconv_keep_take_vectors(keep);
        return TCONV_OK;
    }
    tconv_keep_find_set(keep, &call->problem, use);
    if (use->filter == NULL) status = take_set_alike(keep, call, use, error);
    if (status != TCONV_OK) {
        tconv_use_end(use);
        *use = (struct tconv_use){.plan = NULL};
    }
    return status;
}

/* ---- vectors ---- */

/* Takes one of the vectors that were set, if it suits the problem. */
static tconv_status take_vector(const struct tconv_call *call, const tconv_geometry *geometry,
                                const struct tconv_vectors *vectors,
                                enum tconv_epilogue_tensor which, tconv_tensor *out,
                                tconv_error *error)
{
    const tconv_epilogue *epilogue = &call->options.epilogue;
    const tconv_type type =
        tconv_epilogue_type(epilogue, which, call->problem.data_type, geometry->output_type);
    const uint64_t bytes = tconv_epilogue_bytes(epilogue, which, call->problem.data_type, geometry);
    if (vectors->type[which] != type || vectors->bytes[which] != bytes)
        return tconv_fail(error, TCONV_ERROR_MISMATCH,
                          "tensors.%s is absent, and that of tconv_layer_set has %llu bytes of %s, "
                          "but this problem needs %llu of %s: give it",
                          tconv_epilogue_name(which), (unsigned long long)vectors->bytes[which],
                          tconv_type_name(vectors->type[which]), (unsigned long long)bytes,
                          tconv_type_name(type));
    *out = vectors->tensor[which];
    return TCONV_OK;
}

tconv_status tconv_weights_vectors(const struct tconv_call *call, const tconv_geometry *geometry,
                                   const struct tconv_vectors *set,
                                   tconv_tensor vector[TCONV_VECTORS], tconv_error *error)
{
    const tconv_epilogue *epilogue = &call->options.epilogue;
    tconv_status status = TCONV_OK;
    for (int i = 0; i < TCONV_VECTORS && status == TCONV_OK; i++) {
        const enum tconv_epilogue_tensor which = (enum tconv_epilogue_tensor)i;
        const tconv_tensor *given = tconv_call_tensor(&call->tensors, which);
        vector[i] = *given;
        if (!tconv_is_given(given) && tconv_epilogue_has(epilogue, which) && set != NULL &&
            tconv_is_given(&set->tensor[i]))
            status = take_vector(call, geometry, set, which, &vector[i], error);
        else
            status = tconv_epilogue_check_given(epilogue, which, tconv_is_given(given), "tensors",
                                                error);
    }
    return status;
}

/* Takes a vector of tconv_layer_set: copies an array, or adds an owner to a buffer. It is checked
 * before any execution does: later, what it replaced is gone. */
static tconv_status set_vector(const struct tconv_keep *keep, const struct tconv_call *call,
                               const tconv_plan *plan, enum tconv_epilogue_tensor which,
                               struct tconv_vectors *vectors, tconv_error *error)
{
    const tconv_epilogue *epilogue = &call->options.epilogue;
    const tconv_tensor *given = tconv_call_tensor(&call->tensors, which);
    const tconv_geometry *geometry = tconv_plan_geometry(plan);
    const char *const name = tconv_epilogue_name(which);
    char argument[40];
    tconv_status status =
        tconv_epilogue_check_given(epilogue, which, tconv_is_given(given), "tensors", error);
    if (status != TCONV_OK || !tconv_is_given(given)) return status;
    const tconv_type type =
        tconv_epilogue_type(epilogue, which, call->problem.data_type, geometry->output_type);
    const uint64_t bytes = tconv_epilogue_bytes(epilogue, which, call->problem.data_type, geometry);
    vectors->type[which] = type;
    vectors->bytes[which] = bytes;
    if (given->host != NULL) {
        vectors->own_bytes += bytes;
        return copy_array(keep, name, given, bytes, &vectors->tensor[which].memory, error);
    }
    snprintf(argument, sizeof argument, "tensors.%s", name);
    if ((status = tconv_place_check(plan, argument, given, bytes, tconv_type_size(type), error)) !=
        TCONV_OK)
        return status;
    const cl_int code = given->memory == NULL ? CL_SUCCESS : clRetainMemObject(given->memory);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clRetainMemObject", "taking %s", argument);
    vectors->tensor[which] = *given;
    return TCONV_OK;
}

static tconv_status set_vectors(const struct tconv_keep *keep, const struct tconv_call *call,
                                const tconv_plan *plan, struct tconv_vectors **out,
                                tconv_error *error)
{
    struct tconv_vectors *made = calloc(1, sizeof *made);
    if (made == NULL) return tconv_fail_memory(error, sizeof *made, "keeping weights");
    atomic_init(&made->owners, 1);
    tconv_status status = TCONV_OK;
    for (int i = 0; i < TCONV_VECTORS && status == TCONV_OK; i++)
        status = set_vector(keep, call, plan, (enum tconv_epilogue_tensor)i, made, error);
    if (status == TCONV_OK)
        *out = made;
    else
        tconv_vectors_release(made);
    return status;
}

tconv_status tconv_weights_pack(struct tconv_keep *keep, const struct tconv_call *call,
                                const struct tconv_packing *packing, struct tconv_use *out,
                                tconv_error *error)
{
    struct tconv_use use = {.plan = NULL};
    tconv_status status = tconv_keep_plan(keep, call, true, &use.plan, error);
    if (status != TCONV_OK) return status;
    if ((status = set_vectors(keep, call, use.plan, &use.vectors, error)) == TCONV_OK)
        status = pack(keep, call, packing, NULL, use.plan, &use.filter, error);
    if (status == TCONV_OK && packing->lane != NULL)
        status = tconv_lane_finish(packing->lane, error);
    if (status != TCONV_OK) {
        tconv_use_end(&use);
        return status;
    }
    if (packing->use == TCONV_FILTER_WATCHED && tconv_has_identity(call))
        use.filter->identity = tconv_weights_identity(call, tconv_plan_geometry(use.plan));
    *out = use;
    return TCONV_OK;
}
