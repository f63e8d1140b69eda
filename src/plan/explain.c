/* SPDX-License-Identifier: Apache-2.0 */
/* Telling why a plan has its algorithm: what algorithms there are, what each would cost, and what
 * was passed over or timed. */
#include "base/error.h"
#include "base/number.h"
#include "base/struct_size.h"
#include "base/text.h"
#include "plan/plan_internal.h"

const char *tconv_algorithm_name(int index)
{
    const struct tconv_algorithm *algorithm = tconv_algorithm_at(index);
    return algorithm == NULL ? NULL : algorithm->name;
}

const char *tconv_algorithm_summary(const char *name)
{
    const struct tconv_algorithm *algorithm = name == NULL ? NULL : tconv_algorithm_named(name);
    return algorithm == NULL ? NULL : algorithm->summary;
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
            tconv_text_add_line(
                &lines, "%s: %s ms expected%s%s%s", algorithm->name,
                tconv_number(tconv_machine_ms(&plan->request.machine, c->cost), 3).text,
                taken ? ", taken" : "", tile[0] == '\0' ? "" : ", ", tile);
        } else
            tconv_text_add_line(&lines, "%s: %s", algorithm->name, reason.text);
    }
    return (int)lines.length;
}

tconv_matrix_unit tconv_plan_matrix_unit(const tconv_plan *plan)
{
    const bool used = plan != NULL && tconv_unit_use(plan->candidate.algorithm, &plan->request) !=
                                          TCONV_USES_NO_UNIT;
    return used ? plan->info.matrix_unit : TCONV_MATRIX_NONE;
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

int tconv_plan_not_stored(const tconv_plan *plan, char *text, size_t size)
{
    struct tconv_text lines = tconv_text_begin(text, size);
    if (plan != NULL && plan->not_stored != NULL)
        tconv_text_add_line(&lines, "%s", plan->not_stored);
    return (int)lines.length;
}

int tconv_plan_timed(const tconv_plan *plan, char *text, size_t size)
{
    struct tconv_text lines = tconv_text_begin(text, size);
    if (plan != NULL && plan->timed != NULL) tconv_text_add_line(&lines, "%s", plan->timed);
    return (int)lines.length;
}
