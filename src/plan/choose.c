/* SPDX-License-Identifier: Apache-2.0 */
/* tconv_plan_create: begins a plan, chooses its algorithm and makes it. The choice follows a stored
 * result, a search, prepared programs, or the cost model. */
#include "base/cancel.h"
#include "base/error.h"
#include "base/struct_size.h"
#include "plan/measure.h"
#include "plan/plan_internal.h"
#include "plan/records.h"
#include "plan/unit.h"

#include <stdlib.h>
#include <string.h>

static tconv_status fail_refused(const char *name, const struct tconv_reason *reason,
                                 tconv_error *error)
{
    return tconv_fail(error, TCONV_ERROR_ALGORITHM,
                      "algorithm %.60s does not take this problem: %s",
                      name == NULL ? "auto" : name, reason->text);
}

/* Finds the cheapest candidate of a pattern. If it uses a unit, the unit has passed its test.
 * `*found` is false with a reason if no algorithm takes the problem. */
static tconv_status choose_candidate(tconv_plan *plan, const struct tconv_pattern *pattern,
                                     unsigned excluded, struct tconv_candidate *candidate,
                                     bool *found, struct tconv_reason *reason, tconv_error *error)
{
    tconv_status status = TCONV_OK;
    bool lost = true;
    while (lost && status == TCONV_OK) {
        *found = tconv_choose(&plan->request, pattern, excluded, candidate, reason);
        if (!*found) return TCONV_OK;
        status = tconv_plan_settle_unit(plan, candidate, &lost, error);
    }
    return status;
}

/* Tries to replace the plan's tile. `*made` is false if the unit fails its test with the new tile,
 * or if the kernels are unfit. */
static tconv_status make_other_tile(tconv_plan *plan, const struct tconv_candidate *candidate,
                                    bool *made, tconv_error *error)
{
    bool right;
    tconv_status status = tconv_plan_test_unit(plan, candidate, &right, error);
    *made = false;
    if (status == TCONV_OK && !right) return TCONV_OK;
    if (status == TCONV_OK) status = tconv_plan_make(plan, candidate, error);
    *made = status == TCONV_OK;
    return *made || tconv_kernel_is_unfit(error) ? TCONV_OK : status;
}

/* Register spills are not in the cost model. If the kernel has private memory on a GPU, try other
 * tiles of its algorithm that have none and cost at most twice as much. If there is none, the plan
 * keeps its tile. If another tile has as much private memory, spills are not the cause, and the
 * search ends. */
static tconv_status avoid_spills(tconv_plan *plan, tconv_error *error)
{
    enum { MOST_TILES = 3, DEAREST = 2 };
    const struct tconv_candidate first = plan->candidate;
    const tconv_device_info info = plan->info; /* each tile may lower limits for itself */
    struct tconv_candidates tiles;
    struct tconv_reason reason;
    if (plan->info.kind != TCONV_DEVICE_GPU) return TCONV_OK;
    const uint64_t spilled = tconv_plan_private_bytes(plan);
    if (spilled == 0 || !tconv_enumerate(first.algorithm, &plan->request, NULL, &tiles, &reason))
        return TCONV_OK;
    int tried = 0;
    for (int i = 0; i < tiles.count && tried < MOST_TILES; i++) {
        const struct tconv_candidate *tile = &tiles.list[i];
        if (memcmp(&tile->tile, &first.tile, sizeof first.tile) == 0) continue;
        if (tile->tile.images != first.tile.images) continue; /* only a search takes these */
        if (tile->cost > DEAREST * first.cost) break;
        bool made;
        const tconv_status status = make_other_tile(plan, tile, &made, error);
        if (status != TCONV_OK) return status;
        const uint64_t bytes = made ? tconv_plan_private_bytes(plan) : 0;
        if (made && bytes == 0) {
            tconv_trace_passed_over(plan, &first, "its kernel spills registers");
            return TCONV_OK;
        }
        plan->info = info;
        tried++;
        if (bytes >= spilled) break;
    }
    return tried == 0 ? TCONV_OK : tconv_plan_make(plan, &first, error);
}

static void forget_passed_over(tconv_plan *plan)
{
    for (int i = 0; i < TCONV_MAX_ALGORITHMS; i++) {
        free(plan->passed_over[i]);
        plan->passed_over[i] = NULL;
    }
}

/* Chooses a candidate by the cost model and makes it. An algorithm whose kernels do not build or
 * cannot run on the device is passed over, because a driver's defect in one kernel must not stop
 * other algorithms. An algorithm is not passed over if the caller named it, or if its kernels come
 * from a folder (TCONV_CL_KERNEL_DIR): whoever edits a kernel needs to see its errors. Every other
 * error, such as missing memory, ends the choice: the next algorithm would meet it too, or be
 * slower without need. */
static tconv_status make_by_model(tconv_plan *plan, const char *name, tconv_error *error)
{
    unsigned excluded = 0; /* algorithms that a search passed over are tried again: if none is left,
                              the caller gets their error */
    tconv_error first = {TCONV_OK, 0, ""};
    for (;;) {
        struct tconv_candidate candidate;
        struct tconv_reason reason = {""};
        bool found;
        tconv_status status =
            choose_candidate(plan, &plan->pattern, excluded, &candidate, &found, &reason, error);
        if (status != TCONV_OK) return status;
        if (!found && plan->retry.waits && !plan->retry.insist) {
            /* Nothing is left: do not wait. */
            plan->retry = (struct tconv_retry){.begun = plan->retry.begun, .insist = true};
            forget_passed_over(plan);
            excluded = 0;
            continue;
        }
        if (!found && excluded != 0) {
            *error = first;
            return first.status;
        }
        if (!found) return fail_refused(name, &reason, error);
        status = tconv_plan_make(plan, &candidate, error);
        if (status == TCONV_OK)
            return plan->pattern.algorithm == NULL ? avoid_spills(plan, error) : TCONV_OK;
        const bool edited = plan->device->kernel_dir != NULL && status != TCONV_ERROR_ALGORITHM;
        if (plan->pattern.algorithm != NULL || edited || !tconv_kernel_is_unfit(error))
            return status;
        if (tconv_plan_refuse_tile(plan, &candidate)) {
            tconv_trace_passed_over(plan, &candidate, error->message);
            continue;
        }
        if (excluded == 0) first = *error;
        excluded |= 1u << tconv_algorithm_index(candidate.algorithm);
        status = tconv_plan_pass_over(plan, &candidate, error->message, error);
        if (status != TCONV_OK) return status;
    }
}

tconv_status tconv_plan_recorded(tconv_plan *plan, struct tconv_candidate *candidate, bool *found,
                                 tconv_choice *choice, tconv_error *error)
{
    static const enum tconv_stored kinds[] = {TCONV_STORED_SEARCH, TCONV_STORED_IMPORTED};
    struct tconv_reason reason;
    struct tconv_pattern pattern;
    tconv_status status = TCONV_OK;
    *found = false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && status == TCONV_OK && !*found; i++) {
        if (!tconv_search_find(plan, kinds[i], &pattern, choice)) continue;
        status = choose_candidate(plan, &pattern, 0, candidate, found, &reason, error);
        if (status == TCONV_OK && !*found)
            tconv_trace_passed_over(plan, &(struct tconv_candidate){.algorithm = pattern.algorithm},
                                    reason.text);
    }
    return status;
}

/* The cheapest listed candidate with prepared programs; its algorithm is NULL if there is none. */
static struct tconv_candidate cheapest_prepared(const tconv_plan *plan,
                                                const struct tconv_prepared *prepared)
{
    struct tconv_candidate cheapest = {.algorithm = NULL};
    struct tconv_candidates all;
    struct tconv_reason reason;
    for (int i = 0; tconv_algorithm_at(i) != NULL; i++)
        if (tconv_enumerate(tconv_algorithm_at(i), &plan->request, NULL, &all, &reason))
            for (int c = 0; c < all.count; c++)
                if ((cheapest.algorithm == NULL || all.list[c].cost < cheapest.cost) &&
                    tconv_is_prepared(prepared, &all.list[c]))
                    cheapest = all.list[c];
    return cheapest;
}

tconv_status tconv_plan_prepared(tconv_plan *plan, const struct tconv_prepared *prepared,
                                 struct tconv_candidate *candidate, bool *found, tconv_error *error)
{
    struct tconv_candidate best;
    struct tconv_reason reason;
    bool lost = false;
    *found = false;
    if (prepared->count == 0) return TCONV_OK;
    tconv_status status = choose_candidate(plan, &plan->pattern, 0, &best, found, &reason, error);
    if (status != TCONV_OK || !*found) return status;
    *candidate = cheapest_prepared(plan, prepared);
    *found = candidate->algorithm != NULL && candidate->cost <= TCONV_ACCEPTED * best.cost;
    if (*found) status = tconv_plan_settle_unit(plan, candidate, &lost, error);
    *found = *found && !lost;
    return status;
}

/* Makes the cheapest prepared program. `*made` is false if there is none that is good enough. */
static tconv_status make_prepared(tconv_plan *plan, bool *made, tconv_error *error)
{
    struct tconv_prepared prepared;
    struct tconv_candidate candidate;
    bool found;
    tconv_prepared_read(plan, &prepared);
    const tconv_status status = tconv_plan_prepared(plan, &prepared, &candidate, &found, error);
    if (status != TCONV_OK || !found) return status;
    plan->choice.source = TCONV_SEARCH_PREPARED;
    return tconv_plan_try(plan, &candidate, made, error);
}

/* Searches, and makes the fastest candidate. `*made` is false if none could be timed. */
static tconv_status make_fastest(tconv_plan *plan, const tconv_plan_options *options, bool *made,
                                 tconv_error *error)
{
    struct tconv_measured m;
    tconv_status status = tconv_plan_settle_units(plan, error);
    if (status == TCONV_OK) status = tconv_measure(plan, options, &m, error);
    if (status != TCONV_OK || m.candidates == 0) return status;
    plan->choice.source = TCONV_SEARCH_MEASURE;
    plan->choice.candidates = m.candidates;
    plan->choice.model_ms = m.model_ms;
    plan->choice.best_ms = m.best_ms;
    plan->choice.noise = m.noise;
    status = tconv_plan_try(plan, &m.best, made, error);
    if (*made && !m.stopped && !m.incomplete && !plan->retry.unsure)
        tconv_search_keep(plan, m.median_ms);
    return status;
}

/* Makes the stored or imported result. If there is none, makes a prepared program
 * (TCONV_SEARCH_RECORDS), or else the result of a new search. `*made` is false if the cost model
 * must choose. */
static tconv_status make_by_time(tconv_plan *plan, const tconv_plan_options *options, bool *made,
                                 tconv_error *error)
{
    struct tconv_candidate candidate;
    tconv_status status = TCONV_OK;
    bool found = false;
    if (plan->search != TCONV_SEARCH_RENEW)
        status = tconv_plan_recorded(plan, &candidate, &found, &plan->choice, error);
    if (status == TCONV_OK && found) status = tconv_plan_try(plan, &candidate, made, error);
    if (*made || status != TCONV_OK) return status;
    plan->choice = (tconv_choice)TCONV_CHOICE_INIT;
    status = plan->search == TCONV_SEARCH_RECORDS ? make_prepared(plan, made, error)
                                                  : make_fastest(plan, options, made, error);
    if (!*made) plan->choice = (tconv_choice)TCONV_CHOICE_INIT;
    return status;
}

tconv_status tconv_plan_cheapest(tconv_plan *plan, struct tconv_candidate *candidate,
                                 tconv_error *error)
{
    struct tconv_reason reason = {""};
    bool found = false;
    const tconv_status status =
        choose_candidate(plan, &plan->pattern, 0, candidate, &found, &reason, error);
    if (status != TCONV_OK || found) return status;
    return fail_refused(plan->pattern.algorithm == NULL ? NULL : plan->pattern.algorithm->name,
                        &reason, error);
}

tconv_status tconv_plan_read_options(tconv_plan *plan, const tconv_plan_options *options,
                                     tconv_error *error)
{
    struct tconv_reason reason;
    plan->search = options->search == TCONV_SEARCH_DEFAULT ? plan->device->search : options->search;
    if ((unsigned)plan->search > TCONV_SEARCH_RENEW)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "search is %d: it must be a TCONV_SEARCH_*, 0 to 4", (int)plan->search);
    if (!tconv_pattern_read(options->algorithm, &plan->pattern, &reason))
        return tconv_fail(error, TCONV_ERROR_ALGORITHM, "algorithm is \"%.60s\": %s",
                          options->algorithm, reason.text);
    return TCONV_OK;
}

/* Chooses an algorithm as the options say, and makes it. */
static tconv_status choose(tconv_plan *plan, const tconv_plan_options *options, tconv_error *error)
{
    tconv_status status = tconv_plan_read_options(plan, options, error);
    if (status != TCONV_OK) return status;
    bool made = false;
    plan->retry.insist = plan->pattern.algorithm != NULL;
    if (plan->pattern.algorithm == NULL && plan->search != TCONV_SEARCH_MODEL)
        status = make_by_time(plan, options, &made, error);
    return made || status != TCONV_OK ? status : make_by_model(plan, options->algorithm, error);
}

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
    tconv_plan_options options;
    tconv_plan *plan = NULL;
    tconv_error own;
    tconv_status status;
    if ((status = check_arguments(device, given_problem, out, &own)) == TCONV_OK &&
        (status = tconv_plan_begin_given(device, given_problem, given_options, &options, &plan,
                                         &own)) == TCONV_OK)
        status = choose(plan, &options, &own);
    if (status != TCONV_OK) {
        tconv_plan_release(plan);
        return tconv_fail_with(error, &own);
    }
    tconv_trace_plan(plan);
    *out = plan;
    return TCONV_OK;
}
