/* SPDX-License-Identifier: Apache-2.0 */
/* Packed filters: objects that are made from a plan and packed on the device. */
#include "plan/plan_internal.h"

#include "base/cancel.h"
#include "base/error.h"
#include "base/process.h"
#include "device/device.h"

#include <stdlib.h>
#include <string.h>

tconv_status tconv_packed_filter_create(tconv_plan *plan, cl_mem storage, size_t offset,
                                        tconv_packed_filter **out, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (plan == NULL || out == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL", plan == NULL ? "plan" : "out");
    tconv_status status = tconv_process_enter(error);
    if (status != TCONV_OK) return status;
    const size_t bytes = (size_t)plan->kernel_plan.filter_bytes;
    if (storage != NULL) {
        const tconv_buffer place = {storage, offset};
        status = tconv_check_buffer(plan, "storage", &place, bytes, "", TCONV_FILTER_ALIGNMENT,
                                    CL_MEM_READ_WRITE, error);
        if (status != TCONV_OK) return status;
    } else if (offset != 0) {
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "offset is %zu, but there is no storage",
                          offset);
    }
    tconv_packed_filter *filter = calloc(1, sizeof *filter);
    if (filter == NULL) return tconv_fail_memory(error, sizeof *filter, "creating a filter");
    cl_int code;
    if (storage != NULL) {
        code = clRetainMemObject(storage);
        filter->memory = storage;
    } else {
        filter->memory = clCreateBuffer(tconv_device_context(plan->device), CL_MEM_READ_WRITE,
                                        bytes, NULL, &code);
    }
    if (code != CL_SUCCESS) {
        free(filter);
        return tconv_fail_opencl(error, code,
                                 storage != NULL ? "clRetainMemObject" : "clCreateBuffer",
                                 "creating a packed filter of %zu bytes", bytes);
    }
    tconv_plan_retain(plan);
    filter->plan = plan;
    filter->offset = offset;
    atomic_init(&filter->packed, false);
    atomic_init(&filter->owners, 1);
    *out = filter;
    return TCONV_OK;
}

tconv_status tconv_packed_filter_enqueue_pack(tconv_packed_filter *filter, cl_command_queue queue,
                                              cl_mem weights, size_t offset, cl_uint wait_count,
                                              const cl_event *wait, cl_event *done,
                                              tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (filter == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "filter is NULL");
    const tconv_plan *plan = filter->plan;
    struct tconv_bindings bindings = {0};
    bindings.buffer[TCONV_ARG_WEIGHTS] = (tconv_buffer){weights, offset};
    bindings.buffer[TCONV_ARG_FILTER] = (tconv_buffer){filter->memory, filter->offset};
    bindings.buffer[TCONV_ARG_FLAGS] = bindings.buffer[TCONV_ARG_FILTER];
    struct tconv_range from, to;
    tconv_status status;
    if ((status = tconv_process_enter(error)) != TCONV_OK ||
        (status = tconv_check_queue(plan, queue, wait_count, wait, error)) != TCONV_OK ||
        (status = tconv_check_buffer(
             plan, "weights", &bindings.buffer[TCONV_ARG_WEIGHTS], plan->geometry.filter_bytes, "",
             tconv_arg_unit(&plan->request, plan->candidate.algorithm->packing, TCONV_ARG_WEIGHTS),
             CL_MEM_READ_ONLY, error)) != TCONV_OK ||
        (status = tconv_find_range("weights", &bindings.buffer[TCONV_ARG_WEIGHTS],
                                   plan->geometry.filter_bytes, &from, error)) != TCONV_OK ||
        (status = tconv_find_range("filter", &bindings.buffer[TCONV_ARG_FILTER],
                                   plan->kernel_plan.filter_bytes, &to, error)) != TCONV_OK ||
        (status = tconv_check_overlap("filter", &to, "weights", &from, error)) != TCONV_OK ||
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
           tconv_device_context(filter->plan->device) == tconv_device_context(plan->device) &&
           tconv_device_id_of(filter->plan->device) == tconv_device_id_of(plan->device) &&
           strcmp(filter->plan->kernel_plan.layout, plan->kernel_plan.layout) == 0;
}

void tconv_packed_filter_retain(tconv_packed_filter *filter)
{
    if (filter != NULL && !tconv_process_forked()) atomic_fetch_add(&filter->owners, 1);
}

void tconv_packed_filter_release(tconv_packed_filter *filter)
{
    TCONV_WITHOUT_CANCELLATION;
    if (filter == NULL || tconv_process_forked() || atomic_fetch_sub(&filter->owners, 1) > 1)
        return;
    clReleaseMemObject(filter->memory);
    tconv_plan_release(filter->plan);
    free(filter);
}
