/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan tells: its properties, how it was chosen, and why not otherwise. */
#include "plan/plan_internal.h"

#include "base/error.h"
#include "base/number.h"
#include "base/os.h"
#include "base/struct_size.h"
#include "base/text.h"

const tconv_geometry *tconv_plan_geometry(const tconv_plan *plan)
{
    return plan == NULL ? NULL : &plan->geometry;
}

const char *tconv_plan_algorithm(const tconv_plan *plan)
{
    return plan == NULL ? NULL : plan->candidate.algorithm->name;
}

int tconv_plan_tile(const tconv_plan *plan, char *text, size_t size)
{
    tconv_text_begin(text, size);
    return plan == NULL ? 0 : tconv_tile_text(&plan->candidate, text, size);
}

uint64_t tconv_plan_workspace_bytes(const tconv_plan *plan)
{
    return plan == NULL ? 0 : plan->kernel_plan.workspace_bytes;
}

uint64_t tconv_plan_filter_bytes(const tconv_plan *plan)
{
    return plan == NULL ? 0 : plan->kernel_plan.filter_bytes;
}

bool tconv_plan_is_stale(const tconv_plan *plan)
{
    return plan != NULL && plan->retry.again > 0 && tconv_os_seconds() >= plan->retry.again;
}

double tconv_plan_error_factor(const tconv_plan *plan)
{
    return plan != NULL && plan->kernel_plan.error_factor > 1 ? plan->kernel_plan.error_factor : 1;
}

int tconv_plan_explain(const tconv_plan *plan, char *text, size_t size)
{
    struct tconv_text lines = tconv_text_begin(text, size);
    for (int i = 0; plan != NULL && tconv_algorithm_at(i) != NULL; i++) {
        const struct tconv_algorithm *algorithm = tconv_algorithm_at(i);
        const bool taken = algorithm == plan->candidate.algorithm;
        struct tconv_reason reason = {""};
        struct tconv_candidates candidates;
        char tile[TCONV_TILE_TEXT];
        if (plan->passed_over[i] != NULL && !taken) {
            tconv_text_add_line(&lines, "%s: passed over: %s", algorithm->name,
                                plan->passed_over[i]);
        } else if (tconv_enumerate(algorithm, &plan->request, NULL, &candidates, &reason)) {
            const struct tconv_candidate *c = taken ? &plan->candidate : &candidates.list[0];
            tconv_tile_text(c, tile, sizeof tile);
            const bool imported = taken && plan->choice.source == TCONV_SEARCH_IMPORTED;
            tconv_text_add_line(
                &lines, "%s: %s ms expected%s%s%s%s%s", algorithm->name,
                tconv_number(tconv_machine_ms(&plan->request.machine, c->cost), 3).text,
                taken ? ", taken" : "", tile[0] == '\0' ? "" : ", ", tile,
                imported ? "; imported from " : "", imported ? plan->origin : "");
        } else
            tconv_text_add_line(&lines, "%s: %s", algorithm->name, reason.text);
    }
    return (int)lines.length;
}

tconv_matrix_unit tconv_plan_matrix_unit(const tconv_plan *plan)
{
    if (plan == NULL) return TCONV_MATRIX_NONE;
    switch (tconv_unit_use(plan->candidate.algorithm, &plan->request)) {
    case TCONV_USES_MATRIX: return tconv_candidate_unit(&plan->request, &plan->candidate).unit;
    case TCONV_USES_WORDS: return plan->info.matrix_unit;
    case TCONV_USES_NO_UNIT: break;
    }
    return TCONV_MATRIX_NONE;
}

tconv_status tconv_plan_choice(const tconv_plan *plan, tconv_choice *choice, tconv_error *error)
{
    if (plan == NULL || choice == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          plan == NULL ? "plan" : "choice");
    const tconv_status status = tconv_struct_check(TCONV_SIZED_CHOICE, choice, error);
    if (status == TCONV_OK) tconv_struct_write(TCONV_SIZED_CHOICE, &plan->choice, choice);
    return status;
}

int tconv_plan_passed_over(const tconv_plan *plan, char *text, size_t size)
{
    struct tconv_text lines = tconv_text_begin(text, size);
    for (int i = 0; plan != NULL && tconv_algorithm_at(i) != NULL; i++)
        if (plan->passed_over[i] != NULL && tconv_algorithm_at(i) != plan->candidate.algorithm)
            tconv_text_add_line(&lines, "%s: %s", tconv_algorithm_at(i)->name,
                                plan->passed_over[i]);
    return (int)lines.length;
}

int tconv_plan_candidates(const tconv_plan *plan, char *text, size_t size)
{
    struct tconv_text lines = tconv_text_begin(text, size);
    struct tconv_candidates candidates;
    struct tconv_reason reason;
    if (plan == NULL ||
        !tconv_enumerate(plan->candidate.algorithm, &plan->request,
                         plan->pattern.algorithm == NULL ? NULL : &plan->pattern.tile, &candidates,
                         &reason))
        return 0;
    for (int i = 0; i < candidates.count; i++) {
        char tile[TCONV_TILE_TEXT];
        tconv_tile_text(&candidates.list[i], tile, sizeof tile);
        tconv_text_add_line(&lines, "%s", tile);
    }
    return (int)lines.length;
}

/* Copies lines that a plan keeps, or NULL. */
static int tell(const char *lines, char *text, size_t size)
{
    struct tconv_text told = tconv_text_begin(text, size);
    if (lines != NULL) tconv_text_add_line(&told, "%s", lines);
    return (int)told.length;
}

int tconv_plan_not_stored(const tconv_plan *plan, char *text, size_t size)
{
    return tell(plan == NULL ? NULL : plan->not_stored, text, size);
}

int tconv_plan_timed(const tconv_plan *plan, char *text, size_t size)
{
    return tell(plan == NULL ? NULL : plan->timed, text, size);
}
