/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the algorithm of a plan and builds its kernels. The choice follows a stored result, a
 * search, prepared programs, or the cost model. */
#include "base/error.h"
#include "base/os.h"
#include "base/text.h"
#include "device/device.h"
#include "plan/measure.h"
#include "plan/plan_internal.h"
#include "plan/plan_trace.h"
#include "plan/prepared.h"
#include "plan/search_text.h"
#include "plan/unit.h"
#include "store/store.h"

#include <stdio.h>
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
    tconv_error own;
    tconv_status status = tconv_plan_test_unit(plan, candidate, &right, &own);
    *made = false;
    if (status == TCONV_OK && !right) return TCONV_OK;
    if (status == TCONV_OK) status = tconv_plan_make(plan, candidate, &own);
    *made = status == TCONV_OK;
    if (*made || tconv_kernel_is_unfit(&own)) return TCONV_OK;
    return tconv_fail_with(error, &own);
}

/* Register spills are not in the cost model. If the kernel spills on a GPU, try other tiles of its
 * algorithm that do not spill and cost at most twice as much. If there is none, the plan keeps its
 * tile. */
static tconv_status avoid_spills(tconv_plan *plan, tconv_error *error)
{
    enum { MOST_TILES = 3, DEAREST = 2 };
    const struct tconv_candidate first = plan->candidate;
    const tconv_device_info info = plan->info; /* each tile may lower limits for itself */
    struct tconv_candidates tiles;
    struct tconv_reason reason;
    if (plan->info.kind != TCONV_DEVICE_GPU || tconv_plan_private_bytes(plan) == 0 ||
        !tconv_enumerate(first.algorithm, &plan->request, NULL, &tiles, &reason))
        return TCONV_OK;
    int tried = 0;
    for (int i = 0; i < tiles.count && tried < MOST_TILES; i++) {
        const struct tconv_candidate *tile = &tiles.list[i];
        if (memcmp(&tile->tile, &first.tile, sizeof first.tile) == 0) continue;
        if (tile->cost > DEAREST * first.cost) break;
        bool made;
        const tconv_status status = make_other_tile(plan, tile, &made, error);
        if (status != TCONV_OK) return status;
        if (made && tconv_plan_private_bytes(plan) == 0) {
            if (tconv_traced(plan->device, TCONV_TRACE_PASSED_OVER))
                tconv_trace_passed_over(plan, &first, "its kernel spills registers");
            return TCONV_OK;
        }
        plan->info = info;
        tried++;
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
        tconv_error own;
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
        if (!found && excluded != 0) return tconv_fail_with(error, &first);
        if (!found) return fail_refused(name, &reason, error);
        status = tconv_plan_make(plan, &candidate, &own);
        if (status == TCONV_OK)
            return plan->pattern.algorithm == NULL ? avoid_spills(plan, error) : TCONV_OK;
        const bool edited = tconv_device_has_own_sources(plan->device) &&
                            status != TCONV_ERROR_ALGORITHM;
        if (plan->pattern.algorithm != NULL || edited || !tconv_kernel_is_unfit(&own))
            return tconv_fail_with(error, &own);
        if (excluded == 0) first = own;
        excluded |= 1u << tconv_algorithm_index(candidate.algorithm);
        status = tconv_plan_pass_over(plan, &candidate, own.message, error);
        if (status != TCONV_OK) return status;
    }
}

tconv_status tconv_plan_recorded(tconv_plan *plan, struct tconv_candidate *candidate, bool *found,
                                 tconv_choice *choice, tconv_error *error)
{
    char key[TCONV_SEARCH_KEY];
    struct tconv_reason reason;
    struct tconv_pattern pattern;
    char *text = tconv_search_key(plan, key)
                     ? tconv_store_text(tconv_device_store(plan->device), TCONV_STORED_SEARCH, key)
                     : NULL;
    *found = text != NULL && tconv_search_text_read(text, &pattern, choice);
    free(text);
    if (!*found) return TCONV_OK;
    const tconv_status status =
        choose_candidate(plan, &pattern, 0, candidate, found, &reason, error);
    if (status == TCONV_OK && !*found && tconv_traced(plan->device, TCONV_TRACE_PASSED_OVER))
        tconv_trace_passed_over(plan, &(struct tconv_candidate){.algorithm = pattern.algorithm},
                                reason.text);
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

/* Makes a candidate that was recorded, prepared or timed. If it is unfit, it is passed over, and
 * `*made` is false. */
static tconv_status make_chosen(tconv_plan *plan, const struct tconv_candidate *candidate,
                                const tconv_choice *choice, bool *made, tconv_error *error)
{
    tconv_error own;
    const tconv_status status = tconv_plan_make(plan, candidate, &own);
    *made = status == TCONV_OK;
    if (*made) plan->choice = *choice;
    if (!*made && tconv_kernel_is_unfit(&own))
        return tconv_plan_pass_over(plan, candidate, own.message, error);
    return *made ? TCONV_OK : tconv_fail_with(error, &own);
}

static tconv_status choose_prepared(tconv_plan *plan, bool *made, tconv_error *error)
{
    struct tconv_prepared prepared;
    struct tconv_candidate candidate;
    bool found;
    tconv_choice choice = TCONV_CHOICE_INIT;
    choice.source = TCONV_SEARCH_PREPARED;
    tconv_prepared_read(plan, &prepared);
    tconv_status status = tconv_plan_prepared(plan, &prepared, &candidate, &found, error);
    if (status == TCONV_OK && found) status = make_chosen(plan, &candidate, &choice, made, error);
    return status;
}

/* Stores the result of a search. The plan is as good without it: it only says why not. */
static void store(tconv_plan *plan, const char *key)
{
    char text[TCONV_SEARCH_TEXT];
    struct tconv_os_reason reason = {""};
    tconv_search_text_write(plan, text);
    const char *folder = tconv_device_search_folder(plan->device);
    if (tconv_store_keep_text(tconv_device_store(plan->device), TCONV_STORED_SEARCH, key, text,
                              &reason) ||
        folder == NULL)
        return;
    const size_t size = strlen(folder) + sizeof reason + 60;
    plan->not_stored = malloc(size);
    if (plan->not_stored != NULL)
        snprintf(plan->not_stored, size, "the result cannot be stored in %s: %s", folder,
                 reason.text);
}

/* Makes the stored result. If there is none, makes a prepared program (TCONV_SEARCH_RECORDS), or
 * else the result of a new search. `*made` is false if the cost model must choose. */
static tconv_status choose_by_time(tconv_plan *plan, const tconv_plan_options *options, bool *made,
                                   tconv_error *error)
{
    char key[TCONV_SEARCH_KEY];
    struct tconv_candidate candidate;
    tconv_choice choice = TCONV_CHOICE_INIT;
    tconv_status status = TCONV_OK;
    bool found = false;
    *made = false;
    if (plan->search != TCONV_SEARCH_RENEW)
        status = tconv_plan_recorded(plan, &candidate, &found, &choice, error);
    if (status == TCONV_OK && found) status = make_chosen(plan, &candidate, &choice, made, error);
    if (status != TCONV_OK || *made) return status;
    if (plan->search == TCONV_SEARCH_RECORDS) return choose_prepared(plan, made, error);

    struct tconv_measured m;
    status = tconv_plan_settle_units(plan, error);
    if (status == TCONV_OK) status = tconv_measure(plan, options, &m, error);
    if (status != TCONV_OK || m.candidates == 0) return status;
    choice.source = TCONV_SEARCH_MEASURE;
    choice.candidates = m.candidates;
    choice.model_ms = m.model_ms;
    choice.best_ms = m.best_ms;
    choice.noise = m.noise;
    status = make_chosen(plan, &m.best, &choice, made, error);
    if (*made && !m.stopped && !m.incomplete && !plan->retry.unsure && tconv_search_key(plan, key))
        store(plan, key);
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
    plan->search = options->search == TCONV_SEARCH_DEFAULT ? tconv_device_search(plan->device)
                                                           : options->search;
    if ((unsigned)plan->search > TCONV_SEARCH_RENEW)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "search is %d: it must be a TCONV_SEARCH_*, 0 to 4", (int)plan->search);
    if (!tconv_pattern_read(options->algorithm, &plan->pattern, &reason))
        return tconv_fail(error, TCONV_ERROR_ALGORITHM, "algorithm is \"%.60s\": %s",
                          options->algorithm, reason.text);
    return TCONV_OK;
}

tconv_status tconv_plan_choose(tconv_plan *plan, const tconv_plan_options *options,
                               tconv_error *error)
{
    tconv_status status = tconv_plan_read_options(plan, options, error);
    if (status != TCONV_OK) return status;
    const bool named = plan->pattern.algorithm != NULL;
    bool made = false;
    plan->retry.insist = named;
    if (!named && plan->search != TCONV_SEARCH_MODEL)
        status = choose_by_time(plan, options, &made, error);
    return made || status != TCONV_OK ? status : make_by_model(plan, options->algorithm, error);
}
