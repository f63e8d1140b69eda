/* SPDX-License-Identifier: Apache-2.0 */
/* Finds algorithms whose order of additions does not depend on an output's position. */
#include "plan/steady.h"

#include "base/error.h"
#include "base/text.h"
#include "plan/plan_internal.h"
#include "plan/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A text with its expected cost for each problem. */
struct steady {
    char text[TCONV_STEADY_TEXT];
    double cost[TCONV_STEADY_CASES];
    int index; /* of its algorithm */
};

enum { MOST_STEADY = 64 };
struct steadies {
    int count;
    struct steady list[MOST_STEADY];
};

/* True if a parameter of the algorithm's tiles decides about the order, or the packed layout. */
static bool decides(const struct tconv_algorithm *algorithm, const char *parameter)
{
    const size_t length = strlen(parameter);
    if (algorithm->order == TCONV_ORDER_BY_TILE) return true;
    for (const char *word = algorithm->order_parameters; *word != '\0';
         word += strcspn(word, " "), word += strspn(word, " "))
        if (strcspn(word, " ") == length && strncmp(word, parameter, length) == 0) return true;
    return false;
}

/* Writes the algorithm and the parameters that decide. */
static bool write_text(const struct tconv_candidate *candidate, char text[TCONV_STEADY_TEXT])
{
    const struct tconv_algorithm *algorithm = candidate->algorithm;
    struct tconv_text to = tconv_text_begin(text, TCONV_STEADY_TEXT);
    if (algorithm->order == TCONV_ORDER_BY_POSITION) return false;
    tconv_text_add(&to, "%s", algorithm->name);
    for (const struct tconv_tile_parameter *p = algorithm->parameters; p->name != NULL; p++)
        if (decides(algorithm, p->name))
            tconv_text_add(&to, " %s=%d", p->name, tconv_tile_value(&candidate->tile, p));
    return tconv_text_fits(&to);
}

bool tconv_plan_steady(const tconv_plan *plan, char text[TCONV_STEADY_TEXT])
{
    return write_text(&plan->candidate, text);
}

bool tconv_steady_may_try_another(const tconv_error *error)
{
    return tconv_kernel_is_unfit(error);
}

/* Finds the cheapest tile of a text for a problem, and the name of its packed layout. False if
 * there is none. */
static bool find_tile(const tconv_plan *plan, const struct tconv_pattern *pattern, double *cost,
                      char layout[sizeof((struct tconv_kernel_plan *)NULL)->layout])
{
    struct tconv_candidates found;
    struct tconv_reason reason;
    struct tconv_kernel_plan kernel_plan = {.table = NULL};
    tconv_error ignored;
    if (!tconv_enumerate(pattern->algorithm, &plan->request, &pattern->tile, &found, &reason))
        return false;
    const bool written =
        tconv_kernel_plan_write(&plan->request, &found.list[0], &kernel_plan, &ignored) == TCONV_OK;
    *cost = found.list[0].cost;
    memcpy(layout, kernel_plan.layout, sizeof kernel_plan.layout);
    tconv_kernel_plan_clear(&kernel_plan);
    return written;
}

/* Adds a candidate's text, unless the list has it, or the algorithm does not take all problems with
 * one packed filter. */
static void add(struct steadies *all, tconv_plan *const *plans, int count,
                const struct tconv_candidate *candidate)
{
    struct steady *s = &all->list[all->count];
    if (all->count == MOST_STEADY || !write_text(candidate, s->text)) return;
    for (int i = 0; i < all->count; i++)
        if (strcmp(all->list[i].text, s->text) == 0) return;
    struct tconv_reason reason;
    struct tconv_pattern pattern;
    char layout[2][sizeof((struct tconv_kernel_plan *)NULL)->layout];
    if (!tconv_pattern_read(s->text, &pattern, &reason)) return;
    for (int i = 0; i < count; i++)
        if (!find_tile(plans[i], &pattern, &s->cost[i], layout[i > 0]) ||
            (i > 0 && strcmp(layout[0], layout[1]) != 0))
            return;
    s->index = tconv_algorithm_index(candidate->algorithm);
    all->count++;
}

static void add_algorithm(struct steadies *all, tconv_plan *const *plans, int count,
                          const struct tconv_algorithm *algorithm)
{
    const struct tconv_pattern *asked = &plans[0]->pattern;
    for (int i = 0; i < count; i++) {
        struct tconv_candidates found;
        struct tconv_reason reason;
        if (tconv_enumerate(algorithm, &plans[i]->request,
                            asked->algorithm == NULL ? NULL : &asked->tile, &found, &reason))
            for (int c = 0; c < found.count; c++) add(all, plans, count, &found.list[c]);
    }
}

/* The one whose largest ratio to the cheapest, of all usual problems, is the smallest. NULL: there
 * is none. */
static const struct steady *best_of(const struct steadies *all, int usual)
{
    const struct steady *best = NULL;
    double least[TCONV_STEADY_CASES], best_ratio = INFINITY;
    for (int i = 0; i < usual; i++) {
        least[i] = INFINITY;
        for (int j = 0; j < all->count; j++)
            if (all->list[j].cost[i] < least[i]) least[i] = all->list[j].cost[i];
    }
    for (int j = 0; j < all->count; j++) {
        double ratio = 0;
        for (int i = 0; i < usual; i++)
            if (least[i] > 0 && all->list[j].cost[i] / least[i] > ratio)
                ratio = all->list[j].cost[i] / least[i];
        if (best == NULL || ratio < best_ratio) {
            best = &all->list[j];
            best_ratio = ratio;
        }
    }
    return best;
}

static tconv_status choose(tconv_plan *const *plans, int count, int usual, unsigned excluded,
                           char text[TCONV_STEADY_TEXT], int *index, tconv_error *error)
{
    const struct tconv_algorithm *asked = plans[0]->pattern.algorithm;
    struct steadies *all = calloc(1, sizeof *all);
    if (all == NULL) return tconv_fail_memory(error, sizeof *all, "choosing an algorithm");
    /* Which tiles are candidates depends on the length, so an algorithm whose whole tile decides
     * about the order may find none for all lengths: it is tried only if the options name it. */
    for (int i = 0; tconv_algorithm_at(i) != NULL; i++)
        if ((excluded >> i & 1) == 0 &&
            (asked == NULL ? tconv_algorithm_at(i)->order == TCONV_ORDER_BY_PARAMETERS
                           : asked == tconv_algorithm_at(i)))
            add_algorithm(all, plans, count, tconv_algorithm_at(i));
    const struct steady *best = best_of(all, usual);
    if (best != NULL) {
        memcpy(text, best->text, sizeof best->text);
        *index = best->index;
    }
    free(all);
    if (best != NULL) return TCONV_OK;
    if (asked != NULL && asked->order == TCONV_ORDER_BY_POSITION)
        return tconv_fail(error, TCONV_ERROR_ALGORITHM,
                          "algorithm %s adds products up in an order that depends on where an "
                          "output is, which a stream must not: name another one, or \"auto\"",
                          asked->name);
    struct tconv_candidate none; /* only the error is used: that of making a plan */
    const tconv_status status = tconv_plan_cheapest(plans[0], &none, error);
    return status != TCONV_OK ? status
                              : tconv_fail(error, TCONV_ERROR_ALGORITHM,
                                           "no algorithm takes this problem for streams of all "
                                           "lengths");
}

tconv_status tconv_steady_choose(tconv_device *device, const tconv_problem *problems,
                                 const tconv_plan_options *options, int count, int usual,
                                 unsigned excluded, char text[TCONV_STEADY_TEXT], int *index,
                                 tconv_error *error)
{
    tconv_plan *plans[TCONV_STEADY_CASES] = {NULL};
    tconv_status status = TCONV_OK;
    tconv_error own; /* the caller's may be NULL, and these functions read it */
    for (int i = 0; i < count && status == TCONV_OK; i++) {
        status = tconv_plan_begin(device, &problems[i], &options[i], &plans[i], &own);
        if (status == TCONV_OK) status = tconv_plan_read_options(plans[i], &options[i], &own);
        if (status == TCONV_OK) status = tconv_plan_settle_units(plans[i], &own);
    }
    if (status == TCONV_OK) status = choose(plans, count, usual, excluded, text, index, &own);
    for (int i = 0; i < count; i++) tconv_plan_release(plans[i]);
    return status == TCONV_OK ? TCONV_OK : tconv_fail_with(error, &own);
}
