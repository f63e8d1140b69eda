/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a plan, and what it tells: it begins as a checked and resolved problem, for which
 * choose.c chooses a candidate and make.c makes it. */
#include "plan/plan_internal.h"
#include "plan/records.h"

#include "base/addressable.h"
#include "base/cancel.h"
#include "base/error.h"
#include "base/number.h"
#include "base/os.h"
#include "base/process.h"
#include "base/struct_size.h"
#include "base/text.h"
#include "geometry/window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tconv_status check_math(const tconv_plan_options *options, tconv_error *error)
{
    if (options->math != TCONV_MATH_EXACT && options->math != TCONV_MATH_FAST)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "math is %d: it must be exact or fast",
                          (int)options->math);
    return TCONV_OK;
}

static tconv_status check_device(const tconv_device *device, const tconv_problem *problem,
                                 tconv_error *error)
{
    const tconv_device_info *info = &device->info;
    if (problem->data_type != TCONV_F64 || info->double_arithmetic) return TCONV_OK;
    return tconv_fail(
        error, TCONV_ERROR_DEVICE,
        "element type f64: %s has no double precision (cl_khr_fp64); choose another device or type",
        info->name);
}

/* Allocates a plan. The caller sets the members that describe the problem. */
static tconv_status new_plan(tconv_device *device, tconv_plan **out, tconv_error *error)
{
    tconv_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL || pthread_mutex_init(&plan->lock, NULL) != 0) {
        free(plan);
        return tconv_fail_memory(error, sizeof *plan, "creating a plan");
    }
    atomic_init(&plan->owners, 1);
    tconv_device_retain(device);
    plan->device = device;
    plan->choice = (tconv_choice)TCONV_CHOICE_INIT;
    plan->request.loops = &plan->loops;
    plan->request.device = &plan->info;
    plan->request.epilogue = &plan->epilogue;
    *out = plan;
    return TCONV_OK;
}

/* Gives a plan the properties of its device, without the limits of kernels that it had. */
static void reset_info(tconv_plan *plan)
{
    plan->info = tconv_device_for(&plan->device->info, &plan->loops);
    plan->request.machine =
        tconv_machine_for(plan->device, &plan->info, tconv_acc_bytes(&plan->loops));
}

tconv_status tconv_plan_begin(tconv_device *device, const tconv_problem *problem,
                              const tconv_plan_options *options, tconv_plan **out,
                              tconv_error *error)
{
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    tconv_plan *plan = NULL;
    tconv_status status;
    if ((status = check_math(options, error)) != TCONV_OK ||
        (status = tconv_resolve_window(problem, options->output_begin, options->output_end,
                                       &geometry, error)) != TCONV_OK ||
        (status = tconv_check_addressable(&geometry, error)) != TCONV_OK ||
        (status = tconv_check_epilogue(problem, &geometry, &options->epilogue, error)) !=
            TCONV_OK ||
        (status = check_device(device, problem, error)) != TCONV_OK ||
        (status = tconv_process_enter(error)) != TCONV_OK ||
        (status = new_plan(device, &plan, error)) != TCONV_OK)
        return status;
    plan->epilogue = options->epilogue;
    plan->geometry = geometry;
    for (int i = 0; i < TCONV_SPACED_TENSORS; i++) {
        plan->view[i] = tconv_view_of(problem, &geometry, (enum tconv_spaced)i);
        plan->has_steps[i] = tconv_given_steps(problem, (enum tconv_spaced)i)->count != 0;
    }
    tconv_loops_init(&plan->loops, problem, &geometry);
    if (plan->loops.batch == 0)
        plan->loops.batch = 1; /* nothing will run, but filters are packed as usual */
    reset_info(plan);
    plan->request.workspace_limit = options->workspace_limit;
    plan->request.math = options->math;
    plan->problem = *problem;
    plan->output_begin = options->output_begin;
    plan->output_end = options->output_end;
    plan->retry.begun = tconv_os_seconds();
    *out = plan;
    return TCONV_OK;
}

tconv_status tconv_plan_begin_given(tconv_device *device, const tconv_problem *given_problem,
                                    const tconv_plan_options *given_options,
                                    tconv_plan_options *options, tconv_plan **out,
                                    tconv_error *error)
{
    tconv_problem problem = TCONV_PROBLEM_INIT;
    tconv_status status;
    *options = (tconv_plan_options)TCONV_PLAN_OPTIONS_INIT;
    if ((status = tconv_struct_read(TCONV_SIZED_PROBLEM, given_problem, &problem, error)) !=
            TCONV_OK ||
        (status = tconv_struct_read(TCONV_SIZED_PLAN_OPTIONS, given_options, options, error)) !=
            TCONV_OK)
        return status;
    return tconv_plan_begin(device, &problem, options, out, error);
}

tconv_status tconv_plan_begin_again(const tconv_plan *plan, tconv_plan **out, tconv_error *error)
{
    tconv_plan *copy = NULL;
    const tconv_status status = new_plan(plan->device, &copy, error);
    if (status != TCONV_OK) return status;
    copy->epilogue = plan->epilogue;
    copy->geometry = plan->geometry;
    copy->loops = plan->loops;
    memcpy(copy->view, plan->view, sizeof plan->view);
    memcpy(copy->has_steps, plan->has_steps, sizeof plan->has_steps);
    copy->info = plan->info;
    copy->pattern = plan->pattern;
    copy->request.workspace_limit = plan->request.workspace_limit;
    copy->request.math = plan->request.math;
    copy->request.machine = plan->request.machine;
    copy->problem = plan->problem;
    copy->output_begin = plan->output_begin;
    copy->output_end = plan->output_end;
    copy->retry.begun = plan->retry.begun;
    copy->retry.insist = plan->retry.insist;
    *out = copy;
    return TCONV_OK;
}

void tconv_plan_retain(tconv_plan *plan)
{
    if (plan != NULL) atomic_fetch_add(&plan->owners, 1);
}

static void destroy(tconv_plan *plan)
{
    TCONV_WITHOUT_CANCELLATION;
    tconv_plan_clear(plan);
    for (int i = 0; i < TCONV_MAX_ALGORITHMS; i++) free(plan->passed_over[i]);
    free(plan->timed);
    free(plan->not_stored);
    free(plan->origin);
    tconv_device_release(plan->device);
    pthread_mutex_destroy(&plan->lock);
    free(plan);
}

void tconv_plan_release(tconv_plan *plan)
{
    if (plan == NULL || atomic_fetch_sub(&plan->owners, 1) > 1 || tconv_process_forked()) return;
    destroy(plan);
}

/* ---- what a plan tells ---- */

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
