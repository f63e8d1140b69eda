/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a plan: it begins as a checked and resolved problem, for which choose.c chooses a
 * candidate and make.c makes it. */
#include "plan/machine.h"
#include "plan/plan_internal.h"

#include "base/addressable.h"
#include "base/cancel.h"
#include "base/error.h"
#include "base/os.h"
#include "base/process.h"
#include "base/struct_size.h"
#include "geometry/window.h"

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

static void release_kernels(cl_kernel kernels[TCONV_MAX_LAUNCHES])
{
    for (int i = 0; i < TCONV_MAX_LAUNCHES; i++) {
        if (kernels[i] != NULL) clReleaseKernel(kernels[i]);
        kernels[i] = NULL;
    }
}

static void release_hands(struct tconv_hand *first)
{
    for (struct tconv_hand *hand = first, *next; hand != NULL; hand = next) {
        next = hand->next;
        release_kernels(hand->pack);
        release_kernels(hand->run);
        if (hand->queue != NULL) clReleaseCommandQueue(hand->queue);
        free(hand);
    }
}

void tconv_plan_clear(tconv_plan *plan)
{
    release_kernels(plan->pack);
    release_kernels(plan->run);
    release_hands(plan->hands);
    plan->hands = NULL;
    if (plan->table != NULL) clReleaseMemObject(plan->table);
    if (plan->no_image != NULL) clReleaseMemObject(plan->no_image);
    plan->table = plan->no_image = NULL;
    tconv_kernel_plan_clear(&plan->kernel_plan);
    plan->kernel_plan = (struct tconv_kernel_plan){0};
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
