/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the element steps that a problem gives. */
#include "base/steps.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/members.h"
#include "base/range.h"
#include "base/view.h"

#include <inttypes.h>

/* Names of tensors and of the members that give their steps. */
static const char *const names[] = {"the data", "the output", "the residual", "the filter"};
#define MEMBER(kind, member, ...) #member,
static const char *const members[] = {TCONV_PROBLEM_STEPS(MEMBER)};
#define LEAST(kind, member, option, reads, least) least,
static const int64_t least_steps[] = {TCONV_PROBLEM_STEPS(LEAST)};

static tconv_status check_values(const tconv_steps *steps, int rank, enum tconv_spaced tensor,
                                 tconv_error *error)
{
    if (steps->count != 0 && steps->count != rank)
        return tconv_fail(error, TCONV_ERROR_ATTRIBUTE,
                          "%s has %d values: it must have one for each of the %d axes of %s, or "
                          "none",
                          members[tensor], steps->count, rank, names[tensor]);
    tconv_status status = TCONV_OK;
    for (int a = 0; a < steps->count && status == TCONV_OK; a++)
        status = tconv_range_check(members[tensor], "axis", a, steps->value[a], least_steps[tensor],
                                   INT64_MAX, error);
    return status;
}

/* Each step must be larger than what the axes with smaller steps reach. */
static tconv_status check_overlap(const struct tconv_view *view, tconv_error *error)
{
    int order[TCONV_TENSOR_AXES];
    const int count = tconv_view_order(view, order);
    int64_t last = 0;
    for (int i = 0; i < count; i++) {
        const int a = order[i];
        if (view->step[a] <= last)
            return tconv_fail(error, TCONV_ERROR_ATTRIBUTE,
                              "output_steps is %" PRId64
                              " at axis %d, but with the smaller steps the last element is number "
                              "%" PRId64 ": so that outputs do not overlap, it must be at least "
                              "%" PRId64,
                              view->step[a], a, last, last + 1);
        last += (view->extent[a] - 1) * view->step[a];
    }
    return TCONV_OK;
}

static tconv_status check_bytes(const struct tconv_view *view, enum tconv_spaced tensor,
                                tconv_type type, tconv_error *error)
{
    int64_t elements, bytes;
    if (tconv_view_span(view, &elements) &&
        tconv_mul(elements, (int64_t)tconv_type_size(type), &bytes))
        return TCONV_OK;
    const int axis = tconv_view_longest(view);
    return tconv_fail(error, TCONV_ERROR_ATTRIBUTE,
                      "%s is %" PRId64 " at axis %d, whose extent is %" PRId64
                      ": the bytes that %s reaches overflow 63 bits",
                      members[tensor], view->step[axis], axis, view->extent[axis], names[tensor]);
}

tconv_status tconv_steps_resolve(const tconv_problem *p, tconv_geometry *g, tconv_error *error)
{
    tconv_status status = TCONV_OK;
    for (int i = TCONV_SPACED_DATA; i <= TCONV_SPACED_FILTER && status == TCONV_OK; i++) {
        const enum tconv_spaced tensor = (enum tconv_spaced)i;
        const tconv_steps *steps = tconv_given_steps(p, tensor);
        if (steps->count == 0) continue; /* count_bytes has checked dense tensors */
        const bool filter = tensor == TCONV_SPACED_FILTER;
        status = check_values(steps, filter ? p->filter.rank : g->axes + 2, tensor, error);
        if (status != TCONV_OK) break;
        const struct tconv_view view = tconv_view_of(p, g, tensor);
        status = check_bytes(&view, tensor,
                             filter                        ? p->filter_type
                             : tensor == TCONV_SPACED_DATA ? p->data_type
                                                           : g->output_type,
                             error);
        if (status == TCONV_OK && tensor == TCONV_SPACED_OUTPUT)
            status = check_overlap(&view, error);
    }
    if (status == TCONV_OK) tconv_count_bytes(p, g);
    return status;
}

tconv_status tconv_steps_check_residual(const tconv_problem *p, bool residual, tconv_error *error)
{
    if (residual || p->residual_steps.count == 0) return TCONV_OK;
    return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                      "residual_steps has %d values, but epilogue.residual is not set: leave the "
                      "steps out, or set epilogue.residual (tconv-cl: --with-residual)",
                      p->residual_steps.count);
}

tconv_problem tconv_without_steps(const tconv_problem *problem)
{
    tconv_problem dense = *problem;
    dense.data_steps.count = dense.output_steps.count = dense.residual_steps.count = 0;
    return dense;
}
