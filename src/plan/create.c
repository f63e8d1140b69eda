/* SPDX-License-Identifier: Apache-2.0 */
/* tconv_plan_create: checks the arguments, resolves the problem and chooses an algorithm. */
#include "base/cancel.h"
#include "base/error.h"
#include "base/struct_size.h"
#include "plan/plan_internal.h"
#include "plan/plan_trace.h"

static tconv_status check_arguments(const tconv_device *device, const tconv_problem *problem,
                                    tconv_plan **out, tconv_error *error)
{
    if (device != NULL && problem != NULL && out != NULL) return TCONV_OK;
    return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                      device == NULL    ? "device"
                      : problem == NULL ? "problem"
                                        : "out");
}

tconv_status tconv_plan_create(tconv_device *device, const tconv_problem *given_problem,
                               const tconv_plan_options *given_options, tconv_plan **out,
                               tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    tconv_problem problem = TCONV_PROBLEM_INIT;
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    tconv_plan *plan = NULL;
    tconv_status status;
    if ((status = check_arguments(device, given_problem, out, error)) != TCONV_OK) return status;
    const bool traced = tconv_traced(device, TCONV_TRACE_PLAN);
    const uint64_t begin = traced ? tconv_trace_now() : 0;
    if ((status = tconv_struct_read(TCONV_SIZED_PROBLEM, given_problem, &problem, error)) !=
            TCONV_OK ||
        (status = tconv_struct_read(TCONV_SIZED_PLAN_OPTIONS, given_options, &options, error)) !=
            TCONV_OK ||
        (status = tconv_plan_begin(device, &problem, &options, &plan, error)) != TCONV_OK)
        return status;
    status = tconv_plan_choose(plan, &options, error);
    if (status != TCONV_OK) {
        tconv_plan_release(plan);
        return status;
    }
    if (traced) tconv_trace_plan(plan, begin);
    *out = plan;
    return TCONV_OK;
}
