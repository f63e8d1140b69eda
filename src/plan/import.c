/* SPDX-License-Identifier: Apache-2.0 */
/* Takes results of searches from elsewhere, for problems whose algorithm accepts them. */
#include "plan/records.h"

#include "base/cancel.h"
#include "base/error.h"

/* Stores a result for the plan's problem, if the algorithm of the result takes that problem. */
static tconv_status import(tconv_plan *plan, const tconv_stored_search *found,
                           const tconv_choice *choice, bool *used, tconv_error *error)
{
    struct tconv_candidate candidate;
    if (plan->pattern.algorithm == NULL)
        return tconv_fail(error, TCONV_ERROR_ALGORITHM,
                          "found.algorithm is auto: name an algorithm");
    const tconv_status status = tconv_plan_cheapest(plan, &candidate, error);
    return status != TCONV_OK ? status
                              : tconv_search_import(plan, &candidate, found, choice, used, error);
}

tconv_status tconv_device_import_search(tconv_device *device, const tconv_problem *given_problem,
                                        const tconv_plan_options *given_options,
                                        const tconv_stored_search *found, bool *used,
                                        tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    tconv_plan_options options;
    tconv_plan *plan = NULL;
    tconv_choice choice;
    tconv_error own;
    bool taken = false;
    tconv_status status;
    if (device == NULL || given_problem == NULL || found == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          device == NULL          ? "device"
                          : given_problem == NULL ? "problem"
                                                  : "found");
    if ((status = tconv_search_check(found, &choice, &own)) == TCONV_OK &&
        (status = tconv_plan_begin_given(device, given_problem, given_options, &options, &plan,
                                         &own)) == TCONV_OK) {
        options.algorithm = found->algorithm;
        status = tconv_plan_read_options(plan, &options, &own);
        if (status == TCONV_OK) status = import(plan, found, &choice, &taken, &own);
    }
    tconv_plan_release(plan);
    if (status != TCONV_OK) return tconv_fail_with(error, &own);
    if (used != NULL) *used = taken;
    return TCONV_OK;
}
