/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing the algorithm of a plan, and telling why. */
#include "base/error.h"
#include "base/struct_size.h"
#include "device/device.h"
#include "family/families.h"
#include "plan/plan.h"
#include "plan/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *tconv_algorithm_name(int index)
{
    const struct tconv_family *family = tconv_family_at(index);
    return family == NULL ? NULL : family->name;
}

const char *tconv_algorithm_summary(const char *name)
{
    const struct tconv_family *family = name == NULL ? NULL : tconv_family_named(name);
    return family == NULL ? NULL : family->summary;
}

/* An algorithm uses the device's matrix unit only where the unit passed its test for the problem's types. Tests it, and takes the
 * unit away from the plan where it failed. */
static tconv_status settle_matrix_unit(tconv_plan *plan, tconv_error *error)
{
    if (plan->info.matrix_unit == TCONV_MATRIX_NONE) return TCONV_OK;
    bool right;
    tconv_error own;
    const tconv_status status = tconv_probe_matrix(plan->device, plan->layer.data_type,
                                                   plan->layer.filter_type, &right, &own);
    if (status != TCONV_OK && error != NULL) {
        *error = own;
        snprintf(error->message, sizeof error->message,
                 "trying the device's matrix unit, which TCONV_CL_MATRIX=off leaves alone: %.800s",
                 own.message);
    }
    if (status != TCONV_OK || right) return status;
    plan->info.matrix_unit = TCONV_MATRIX_NONE;
    return tconv_plan_pass_over(
        plan, &tconv_matrix_group,
        "the device's matrix unit is not used: small problems of these element types came out "
        "wrong, or their kernels do not build or run",
        error);
}

/* What the cost model takes, or the algorithm of that name; NULL with a reason where none takes the problem. */
static tconv_status choose_by_model(tconv_plan *plan, const char *name, unsigned excluded,
                                    const struct tconv_family **family, struct tconv_reason *reason,
                                    tconv_error *error)
{
    *family = tconv_family_choose(&plan->request, name, excluded, reason);
    if (*family != &tconv_matrix_group) return TCONV_OK;
    const tconv_status status = settle_matrix_unit(plan, error);
    if (status == TCONV_OK) *family = tconv_family_choose(&plan->request, name, excluded, reason);
    return status;
}

/* Chooses an algorithm and makes it. One whose kernels do not build or cannot run on the device is passed
 * over, so that a driver's defect in one kernel does not take the others away; not where it was asked
 * for by name, and not where kernels come from a folder: who edits a kernel wants to see its errors.
 * Every other error, such as missing memory, ends the choice: the next algorithm would meet it too, or be
 * a slower one without need. */
static tconv_status choose(tconv_plan *plan, const char *name, tconv_error *error)
{
    const bool named = name != NULL && strcmp(name, "auto") != 0;
    unsigned excluded = 0;
    tconv_error first = {TCONV_OK, 0, ""};
    for (;;) {
        const struct tconv_family *family;
        struct tconv_reason reason = {""};
        tconv_error own;
        tconv_status status = choose_by_model(plan, name, excluded, &family, &reason, error);
        if (status != TCONV_OK) return status;
        if (family == NULL && excluded != 0) {
            if (error != NULL) *error = first;
            return first.status;
        }
        if (family == NULL)
            return tconv_fail(error, TCONV_ERROR_ALGORITHM,
                              "algorithm %.60s does not take this problem: %s",
                              name == NULL ? "auto" : name, reason.text);
        status = tconv_plan_make(plan, family, &own);
        if (status == TCONV_OK) return TCONV_OK;
        const bool edited = tconv_device_has_own_sources(plan->device) &&
                            status != TCONV_ERROR_ALGORITHM;
        if (named || edited || !tconv_kernel_is_unfit(&own)) {
            if (error != NULL) *error = own;
            return status;
        }
        if (excluded == 0) first = own;
        excluded |= 1u << tconv_family_index(family);
        status = tconv_plan_pass_over(plan, family, own.message, error);
        if (status != TCONV_OK) return status;
    }
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
    status = choose(plan, options.algorithm, error);
    if (status != TCONV_OK)
        tconv_plan_release(plan);
    else
        *out = plan;
    return status;
}

/* Appends a line to a text of `size` bytes as far as it fits; `*length` is the whole text's. */
static void add_line(char *text, size_t size, int *length, const struct tconv_family *family,
                     const char *before, const char *what)
{
    const size_t used = (size_t)*length < size ? (size_t)*length : size;
    *length += snprintf(size == 0 ? NULL : text + used, size - used, "%s%s: %s%s",
                        *length == 0 ? "" : "\n", family->name, before, what);
}

int tconv_plan_why(const tconv_plan *plan, char *text, size_t size)
{
    int length = 0;
    if (size > 0) text[0] = '\0';
    for (int i = 0; plan != NULL && tconv_family_at(i) != NULL; i++) {
        const struct tconv_family *family = tconv_family_at(i);
        const bool taken = family == plan->family;
        struct tconv_reason reason = {""};
        double cost = 0;
        if (plan->passed_over[i] != NULL && !taken) {
            add_line(text, size, &length, family, "passed over: ", plan->passed_over[i]);
            continue;
        }
        if (family->accepts(&plan->request, &cost, &reason))
            snprintf(reason.text, sizeof reason.text, "cost %.3g%s", cost, taken ? ", taken" : "");
        add_line(text, size, &length, family, "", reason.text);
    }
    return length;
}

int tconv_plan_passed_over(const tconv_plan *plan, char *text, size_t size)
{
    int length = 0;
    if (size > 0) text[0] = '\0';
    for (int i = 0; plan != NULL && tconv_family_at(i) != NULL; i++)
        if (plan->passed_over[i] != NULL)
            add_line(text, size, &length, tconv_family_at(i), "", plan->passed_over[i]);
    return length;
}
