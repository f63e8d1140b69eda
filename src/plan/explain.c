/* SPDX-License-Identifier: Apache-2.0 */
/* Telling why a plan has its algorithm: what algorithms there are, what each would cost, and what
 * was passed over or timed. */
#include "base/error.h"
#include "base/struct_size.h"
#include "plan/plan_internal.h"

#include <stdarg.h>
#include <stdio.h>

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

/* Appends a line to a text of `size` bytes as far as it fits; `*length` is the whole text's. */
static void add_line(char *text, size_t size, int *length, const char *format, ...)
    TCONV_PRINTF(4, 5);
static void add_line(char *text, size_t size, int *length, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    for (int part = *length == 0; part < 2; part++) { /* a new line, then the text */
        const size_t used = (size_t)*length < size ? (size_t)*length : size;
        char *to = size == 0 ? NULL : text + used;
        *length += part == 0 ? snprintf(to, size - used, "\n")
                             : vsnprintf(to, size - used, format, arguments);
    }
    va_end(arguments);
}

int tconv_plan_explain(const tconv_plan *plan, char *text, size_t size)
{
    int length = 0;
    if (size > 0) text[0] = '\0';
    for (int i = 0; plan != NULL && tconv_algorithm_at(i) != NULL; i++) {
        const struct tconv_algorithm *algorithm = tconv_algorithm_at(i);
        const bool taken = algorithm == plan->candidate.algorithm;
        struct tconv_reason reason = {""};
        struct tconv_candidates candidates;
        char tile[TCONV_TILE_TEXT];
        if (plan->passed_over[i] != NULL && !taken) {
            add_line(text, size, &length, "%s: passed over: %s", algorithm->name,
                     plan->passed_over[i]);
        } else if (tconv_enumerate(algorithm, &plan->request, NULL, &candidates, &reason)) {
            const struct tconv_candidate *c = taken ? &plan->candidate : &candidates.list[0];
            tconv_tile_text(c, tile, sizeof tile);
            add_line(text, size, &length, "%s: %.3g ms expected%s%s%s", algorithm->name,
                     tconv_machine_ms(&plan->request.machine, c->cost), taken ? ", taken" : "",
                     tile[0] == '\0' ? "" : ", ", tile);
        } else
            add_line(text, size, &length, "%s: %s", algorithm->name, reason.text);
    }
    return length;
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
    int length = 0;
    if (size > 0) text[0] = '\0';
    for (int i = 0; plan != NULL && tconv_algorithm_at(i) != NULL; i++)
        if (plan->passed_over[i] != NULL)
            add_line(text, size, &length, "%s: %s", tconv_algorithm_at(i)->name,
                     plan->passed_over[i]);
    return length;
}

int tconv_plan_candidates(const tconv_plan *plan, char *text, size_t size)
{
    int length = 0;
    struct tconv_candidates candidates;
    struct tconv_reason reason;
    if (size > 0) text[0] = '\0';
    if (plan == NULL ||
        !tconv_enumerate(plan->candidate.algorithm, &plan->request,
                         plan->pattern.algorithm == NULL ? NULL : plan->pattern.tile, &candidates,
                         &reason))
        return 0;
    for (int i = 0; i < candidates.count; i++) {
        char tile[TCONV_TILE_TEXT];
        tconv_tile_text(&candidates.list[i], tile, sizeof tile);
        add_line(text, size, &length, "%s", tile);
    }
    return length;
}

int tconv_plan_timed(const tconv_plan *plan, char *text, size_t size)
{
    int length = 0;
    if (size > 0) text[0] = '\0';
    if (plan != NULL && plan->timed != NULL) add_line(text, size, &length, "%s", plan->timed);
    return length;
}
