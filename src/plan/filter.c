/* SPDX-License-Identifier: Apache-2.0 */
/* Packed filters: objects that are made from a plan and packed on the device. */
#include "plan/plan_internal.h"

#include "base/cancel.h"
#include "base/error.h"
#include "base/process.h"

#include <stdlib.h>
#include <string.h>

tconv_status tconv_packed_filter_create(tconv_plan *plan, const tconv_tensor *storage,
                                        tconv_packed_filter **out, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (plan == NULL || out == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL", plan == NULL ? "plan" : "out");
    tconv_status status = tconv_process_enter(error);
    if (status != TCONV_OK) return status;
    const size_t bytes = (size_t)plan->kernel_plan.filter_bytes;
    struct tconv_place place = {.end = bytes};
    if (storage != NULL) {
        status = tconv_place_find(plan, "storage", storage, bytes, "", TCONV_FILTER_ALIGNMENT,
                                  CL_MEM_READ_WRITE, &place, error);
        if (status != TCONV_OK) return status;
    }
    tconv_packed_filter *filter = calloc(1, sizeof *filter);
    if (filter == NULL) return tconv_fail_memory(error, sizeof *filter, "creating a filter");
    cl_int code = CL_SUCCESS;
    if (storage == NULL)
        place.whole = place.memory =
            clCreateBuffer(plan->device->context, CL_MEM_READ_WRITE, bytes, NULL, &code);
    else if (place.memory != NULL)
        code = clRetainMemObject(place.memory);
    if (code != CL_SUCCESS) {
        free(filter);
        return tconv_fail_opencl(error, code,
                                 storage != NULL ? "clRetainMemObject" : "clCreateBuffer",
                                 "creating a packed filter of %zu bytes", bytes);
    }
    tconv_plan_retain(plan);
    filter->plan = plan;
    filter->place = place;
    atomic_init(&filter->packed, false);
    atomic_init(&filter->owners, 1);
    *out = filter;
    return TCONV_OK;
}

tconv_status tconv_packed_filter_enqueue_pack(tconv_packed_filter *filter, cl_command_queue queue,
                                              const tconv_tensor *weights, cl_uint wait_count,
                                              const cl_event *wait, cl_event *done,
                                              tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (filter == NULL || weights == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          filter == NULL ? "filter" : "weights");
    const tconv_plan *plan = filter->plan;
    struct tconv_bindings bindings = {0};
    struct tconv_place *from = &bindings.place[TCONV_ARG_WEIGHTS];
    bindings.place[TCONV_ARG_FLAGS] = bindings.place[TCONV_ARG_FILTER] = filter->place;
    tconv_status status;
    if ((status = tconv_process_enter(error)) != TCONV_OK ||
        (status = tconv_check_order(plan, queue, wait_count, wait, error)) != TCONV_OK ||
        (status = tconv_place_find(
             plan, "weights", weights, plan->geometry.filter_bytes, "",
             tconv_arg_unit(&plan->request, plan->candidate.algorithm->packing, TCONV_ARG_WEIGHTS),
             CL_MEM_READ_ONLY, from, error)) != TCONV_OK ||
        (status = tconv_place_apart("filter", &filter->place, "weights", from, error)) !=
            TCONV_OK ||
        (status = tconv_enqueue_launches(plan, plan->kernel_plan.pack, plan->pack,
                                         plan->kernel_plan.pack_count, queue, &bindings, wait_count,
                                         wait, done, error)) != TCONV_OK)
        return status;
    atomic_store(&filter->packed, true);
    return TCONV_OK;
}

bool tconv_packed_filter_fits(const tconv_packed_filter *filter, const tconv_plan *plan)
{
    return filter != NULL && plan != NULL &&
           filter->plan->device->context == plan->device->context &&
           filter->plan->device->id == plan->device->id &&
           strcmp(filter->plan->kernel_plan.layout, plan->kernel_plan.layout) == 0;
}

void tconv_packed_filter_retain(tconv_packed_filter *filter)
{
    if (filter != NULL) atomic_fetch_add(&filter->owners, 1);
}

void tconv_packed_filter_release(tconv_packed_filter *filter)
{
    TCONV_WITHOUT_CANCELLATION;
    if (filter == NULL || atomic_fetch_sub(&filter->owners, 1) > 1 || tconv_process_forked())
        return;
    if (filter->place.memory != NULL) clReleaseMemObject(filter->place.memory);
    tconv_plan_release(filter->plan);
    free(filter);
}
