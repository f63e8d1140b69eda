/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing the algorithm of a plan, and telling why. */
#include "algorithm/registry.h"
#include "base/cancel.h"
#include "base/error.h"
#include "base/struct_size.h"
#include "device/device_internal.h"
#include "plan/measure.h"
#include "plan/plan_internal.h"
#include "plan/probe.h"
#include "plan/search_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Whether an algorithm would use what device_info.h calls the matrix unit. */
static bool uses_unit(const tconv_plan *plan, const struct tconv_algorithm *algorithm)
{
    if (algorithm == &tconv_dot) return tconv_dots(&plan->info, plan->layer.data_type) != 0;
    switch (plan->info.matrix_unit) {
    case TCONV_MATRIX_NVIDIA_MMA:
    case TCONV_MATRIX_AMD_WMMA:
    case TCONV_MATRIX_AMD_MFMA:
    case TCONV_MATRIX_INTEL_DPAS: return algorithm == &tconv_matrix_group;
    default: return false; /* of processors */
    }
}

static tconv_status probe_unit(const tconv_plan *plan, const struct tconv_candidate *candidate,
                               bool *right, tconv_error *error)
{
    if (candidate->algorithm == &tconv_dot)
        return tconv_probe_words(plan->device, plan->layer.data_type,
                                 tconv_word_channels(&plan->request), right, error);
    char text[TCONV_TILE_TEXT + 40], tile[TCONV_TILE_TEXT];
    tconv_tile_text(candidate, tile, sizeof tile);
    snprintf(text, sizeof text, "%s %s", candidate->algorithm->name, tile);
    return tconv_probe_matrix(plan->device, plan->layer.data_type, plan->layer.filter_type, text,
                              right, error);
}

/* Probes the unit for this tile and the problem's types. If the probe fails, the plan stops using
 * the unit; dot_vector falls back to portable code. */
static tconv_status settle_unit(tconv_plan *plan, const struct tconv_candidate *candidate,
                                tconv_error *error)
{
    const struct tconv_algorithm *algorithm = candidate->algorithm;
    if (!uses_unit(plan, algorithm)) return TCONV_OK;
    bool right;
    tconv_error own;
    const tconv_status status = probe_unit(plan, candidate, &right, &own);
    if (status != TCONV_OK && error != NULL) {
        *error = own;
        snprintf(error->message, sizeof error->message,
                 "trying the device's matrix unit, which TCONV_CL_MATRIX=off leaves alone: %.800s",
                 own.message);
    }
    if (status != TCONV_OK || right) return status;
    plan->info.matrix_unit = TCONV_MATRIX_NONE;
    if (algorithm == &tconv_dot) return TCONV_OK;
    return tconv_plan_pass_over(
        plan, algorithm,
        "the device's matrix unit is not used: small problems of these element types came out "
        "wrong, or their kernels do not build or run",
        error);
}

static tconv_status fail_refused(const char *name, const struct tconv_reason *reason,
                                 tconv_error *error)
{
    return tconv_fail(error, TCONV_ERROR_ALGORITHM,
                      "algorithm %.60s does not take this problem: %s",
                      name == NULL ? "auto" : name, reason->text);
}

/* What the cost model takes of what the caller asked for. `*found` is false with a reason where
 * nothing takes the problem. */
static tconv_status choose_by_model(tconv_plan *plan, unsigned excluded,
                                    struct tconv_candidate *candidate, bool *found,
                                    struct tconv_reason *reason, tconv_error *error)
{
    *found = tconv_choose(&plan->request, &plan->pattern, excluded, candidate, reason);
    if (!*found || !uses_unit(plan, candidate->algorithm)) return TCONV_OK;
    const tconv_status status = settle_unit(plan, candidate, error);
    if (status == TCONV_OK)
        *found = tconv_choose(&plan->request, &plan->pattern, excluded, candidate, reason);
    return status;
}

/* Tries to replace the plan's tile. `*made` is false if the matrix unit fails its probe for the new
 * tile. */
static tconv_status make_other_tile(tconv_plan *plan, const struct tconv_candidate *candidate,
                                    bool *made, tconv_error *error)
{
    bool right = true;
    tconv_error own;
    tconv_status status = TCONV_OK;
    if (uses_unit(plan, candidate->algorithm)) status = probe_unit(plan, candidate, &right, &own);
    *made = false;
    if (status == TCONV_OK && !right) return TCONV_OK;
    if (status == TCONV_OK) status = tconv_plan_make(plan, candidate, &own);
    *made = status == TCONV_OK;
    if (*made || tconv_kernel_is_unfit(&own)) return TCONV_OK;
    if (error != NULL) *error = own;
    return status;
}

/* Register spills are not in the cost model. If the kernel spills on a GPU, try other tiles of its
 * algorithm that do not spill and cost at most twice as much. If there is none, the plan keeps its
 * tile. */
static tconv_status avoid_spills(tconv_plan *plan, tconv_error *error)
{
    enum { MOST_TILES = 3, DEAREST = 2 };
    const struct tconv_candidate first = plan->candidate;
    struct tconv_candidates tiles;
    struct tconv_reason reason;
    if (plan->info.kind != TCONV_DEVICE_GPU || tconv_plan_private_bytes(plan) == 0 ||
        !tconv_enumerate(first.algorithm, &plan->request, NULL, &tiles, &reason))
        return TCONV_OK;
    int tried = 0;
    for (int i = 0; i < tiles.count && tried < MOST_TILES; i++) {
        const struct tconv_candidate *tile = &tiles.list[i];
        if (memcmp(tile->tile, first.tile, sizeof first.tile) == 0) continue;
        if (tile->cost > DEAREST * first.cost) break;
        bool made;
        const tconv_status status = make_other_tile(plan, tile, &made, error);
        if (status != TCONV_OK || (made && tconv_plan_private_bytes(plan) == 0)) return status;
        tried++;
    }
    return tried == 0 ? TCONV_OK : tconv_plan_make(plan, &first, error);
}

/* Chooses a candidate and makes it. An algorithm whose kernels do not build or cannot run on the
 * device is passed over, so that a driver's defect in one kernel does not take the others away; not
 * where it was asked for by name, and not where kernels come from a folder: who edits a kernel
 * wants to see its errors. Every other error, such as missing memory, ends the choice: the next
 * algorithm would meet it too, or be a slower one without need. */
static tconv_status make_by_model(tconv_plan *plan, const char *name, tconv_error *error)
{
    unsigned excluded = 0; /* what a search passed over is tried again: its error is the call's
                              where nothing else is left */
    tconv_error first = {TCONV_OK, 0, ""};
    for (;;) {
        struct tconv_candidate candidate;
        struct tconv_reason reason = {""};
        tconv_error own;
        bool found;
        tconv_status status = choose_by_model(plan, excluded, &candidate, &found, &reason, error);
        if (status != TCONV_OK) return status;
        if (!found && excluded != 0) {
            if (error != NULL) *error = first;
            return first.status;
        }
        if (!found) return fail_refused(name, &reason, error);
        status = tconv_plan_make(plan, &candidate, &own);
        if (status == TCONV_OK)
            return plan->pattern.algorithm == NULL ? avoid_spills(plan, error) : TCONV_OK;
        const bool edited = tconv_device_has_own_sources(plan->device) &&
                            status != TCONV_ERROR_ALGORITHM;
        if (plan->pattern.algorithm != NULL || edited || !tconv_kernel_is_unfit(&own)) {
            if (error != NULL) *error = own;
            return status;
        }
        if (excluded == 0) first = own;
        excluded |= 1u << tconv_algorithm_index(candidate.algorithm);
        status = tconv_plan_pass_over(plan, candidate.algorithm, own.message, error);
        if (status != TCONV_OK) return status;
    }
}

/* Finds the candidate that a record names. `*found` is false if there is no record, or if this
 * version has no such candidate for the problem. */
static tconv_status find_recorded(tconv_plan *plan, const char *key,
                                  struct tconv_candidate *candidate, bool *found,
                                  tconv_choice *choice, tconv_error *error)
{
    struct tconv_reason reason;
    struct tconv_pattern pattern;
    char *text = tconv_device_search_record(plan->device, key);
    *found = text != NULL && tconv_search_text_read(text, &pattern, choice);
    free(text);
    *found = *found && tconv_choose(&plan->request, &pattern, 0, candidate, &reason);
    if (!*found) return TCONV_OK;
    const tconv_status status = settle_unit(plan, candidate, error);
    *found = status == TCONV_OK && tconv_choose(&plan->request, &pattern, 0, candidate, &reason);
    return status;
}

/* Makes a candidate that was recorded or timed. One that is unfit is passed over, and `*made` is
 * false. */
static tconv_status make_chosen(tconv_plan *plan, const struct tconv_candidate *candidate,
                                const tconv_choice *choice, bool *made, tconv_error *error)
{
    tconv_error own;
    const tconv_status status = tconv_plan_make(plan, candidate, &own);
    *made = status == TCONV_OK;
    if (*made) plan->choice = *choice;
    if (!*made && tconv_kernel_is_unfit(&own))
        return tconv_plan_pass_over(plan, candidate->algorithm, own.message, error);
    if (!*made && error != NULL) *error = own;
    return status;
}

/* Takes what is recorded, or what timing finds, as far as `search` says so. `*made` is false where
 * the cost model is to choose. */
static tconv_status choose_by_time(tconv_plan *plan, const tconv_plan_options *options,
                                   tconv_search search, bool *made, tconv_error *error)
{
    char key[TCONV_SEARCH_KEY], text[TCONV_SEARCH_TEXT];
    struct tconv_candidate candidate;
    tconv_choice choice = TCONV_CHOICE_INIT;
    tconv_status status = TCONV_OK;
    bool found = false;
    *made = false;
    if (!tconv_search_key(plan, key)) return TCONV_OK;
    if (search != TCONV_SEARCH_RENEW)
        status = find_recorded(plan, key, &candidate, &found, &choice, error);
    if (status == TCONV_OK && found) status = make_chosen(plan, &candidate, &choice, made, error);
    if (status != TCONV_OK || *made || search == TCONV_SEARCH_RECORDS) return status;

    struct tconv_measured m;
    struct tconv_candidates candidates;
    struct tconv_reason reason;
    for (int i = 0; status == TCONV_OK && tconv_algorithm_at(i) != NULL; i++) {
        const struct tconv_algorithm *one = tconv_algorithm_at(i);
        if (!uses_unit(plan, one) ||
            !tconv_enumerate(one, &plan->request, NULL, &candidates, &reason))
            continue;
        for (int c = 0; c < candidates.count && c < TCONV_MOST_TIMED_TILES && status == TCONV_OK;
             c++)
            status = settle_unit(plan, &candidates.list[c], error);
    }
    if (status == TCONV_OK) status = tconv_measure(plan, options, &m, error);
    if (status != TCONV_OK || m.candidates == 0) return status;
    choice.source = TCONV_SEARCH_MEASURE;
    choice.candidates = m.candidates;
    choice.model_ms = m.model_ms;
    choice.best_ms = m.best_ms;
    status = make_chosen(plan, &m.best, &choice, made, error);
    if (*made && !m.stopped) {
        tconv_search_text_write(plan, text);
        tconv_device_keep_search_record(plan->device, key, text);
    }
    return status;
}

static tconv_status choose(tconv_plan *plan, const tconv_plan_options *options, tconv_error *error)
{
    const char *name = options->algorithm;
    const tconv_search search = options->search == TCONV_SEARCH_DEFAULT
                                    ? tconv_device_search(plan->device)
                                    : options->search;
    if ((unsigned)search > TCONV_SEARCH_RENEW)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "search is %d: it must be a TCONV_SEARCH_*, 0 to 4", (int)search);
    struct tconv_reason reason;
    if (!tconv_pattern_read(name, &plan->pattern, &reason))
        return fail_refused(name, &reason, error);
    bool made = false;
    if (plan->pattern.algorithm == NULL && search != TCONV_SEARCH_MODEL) {
        const tconv_status status = choose_by_time(plan, options, search, &made, error);
        if (status != TCONV_OK) return status;
    }
    return made ? TCONV_OK : make_by_model(plan, name, error);
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
    tconv_problem problem = TCONV_PROBLEM_INIT;
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    tconv_plan *plan = NULL;
    tconv_status status;
    if ((status = check_arguments(device, given_problem, out, error)) != TCONV_OK ||
        (status = tconv_struct_read(TCONV_SIZED_PROBLEM, given_problem, &problem, error)) !=
            TCONV_OK ||
        (status = tconv_struct_read(TCONV_SIZED_PLAN_OPTIONS, given_options, &options, error)) !=
            TCONV_OK ||
        (status = tconv_plan_begin(device, &problem, &options, &plan, error)) != TCONV_OK)
        return status;
    status = choose(plan, &options, error);
    if (status != TCONV_OK)
        tconv_plan_release(plan);
    else
        *out = plan;
    return status;
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
