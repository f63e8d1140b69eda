/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the unit of a plan's device. If it fails, the plan stops using it: see unit.h. */
#include "plan/unit.h"

#include "plan/measure.h"
#include "plan/probe.h"

#include <stdio.h>

tconv_status tconv_plan_test_unit(tconv_plan *plan, const struct tconv_candidate *candidate,
                                  bool *right, tconv_error *error)
{
    const tconv_type data = plan->layer.data_type;
    char text[TCONV_TILE_TEXT + 40], tile[TCONV_TILE_TEXT];
    *right = true;
    switch (tconv_unit_use(candidate->algorithm, &plan->request)) {
    case TCONV_USES_NO_UNIT: return TCONV_OK;
    case TCONV_USES_WORDS:
        return tconv_probe_words(plan->device, data, tconv_word_channels(&plan->request),
                                 &plan->retry, right, error);
    case TCONV_USES_MATRIX: break;
    }
    tconv_tile_text(candidate, tile, sizeof tile);
    snprintf(text, sizeof text, "%s %s", candidate->algorithm->name, tile);
    return tconv_probe_matrix(plan->device, data, plan->layer.filter_type, text, &plan->retry,
                              right, error);
}

tconv_status tconv_plan_settle_unit(tconv_plan *plan, const struct tconv_candidate *candidate,
                                    bool *lost, tconv_error *error)
{
    const struct tconv_algorithm *algorithm = candidate->algorithm;
    bool right;
    tconv_error own;
    const tconv_status status = tconv_plan_test_unit(plan, candidate, &right, &own);
    *lost = status == TCONV_OK && !right;
    if (status != TCONV_OK && error != NULL) {
        *error = own;
        snprintf(error->message, sizeof error->message,
                 "trying the device's matrix unit, which TCONV_CL_MATRIX=off leaves alone: %.800s",
                 own.message);
    }
    if (!*lost) return status;
    const bool needed = tconv_unit_use(algorithm, &plan->request) == TCONV_USES_MATRIX;
    plan->info.matrix_unit = TCONV_MATRIX_NONE;
    if (!needed) return TCONV_OK;
    return tconv_plan_pass_over(
        plan, candidate,
        "the device's matrix unit is not used: small problems of these element types came out "
        "wrong, or their kernels do not build or run",
        error);
}

tconv_status tconv_plan_settle_units(tconv_plan *plan, tconv_error *error)
{
    tconv_status status = TCONV_OK;
    struct tconv_candidates candidates;
    struct tconv_reason reason;
    for (int i = 0; status == TCONV_OK && tconv_algorithm_at(i) != NULL; i++) {
        const struct tconv_algorithm *one = tconv_algorithm_at(i);
        if (tconv_unit_use(one, &plan->request) == TCONV_USES_NO_UNIT ||
            !tconv_enumerate(one, &plan->request, NULL, &candidates, &reason))
            continue;
        bool lost = false;
        for (int c = 0;
             c < candidates.count && c < TCONV_MOST_TIMED_TILES && !lost && status == TCONV_OK; c++)
            status = tconv_plan_settle_unit(plan, &candidates.list[c], &lost, error);
    }
    return status;
}
