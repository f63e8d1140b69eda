/* SPDX-License-Identifier: Apache-2.0 */
/* Fills the events of plans for tracing. */
#include "plan/plan_internal.h"

#include "device/trace.h"

#include <stdlib.h>
#include <string.h>

/* The text of a problem, from malloc; NULL without memory. */
static char *text_of(const tconv_problem *problem)
{
    const int length = tconv_problem_text(problem, NULL, 0);
    char *text = malloc((size_t)length + 1);
    if (text != NULL) tconv_problem_text(problem, text, (size_t)length + 1);
    return text;
}

/* Raises an event about a candidate, which gets its names. */
static void raise_event(const tconv_plan *plan, const struct tconv_candidate *candidate,
                        tconv_trace_event event)
{
    char tile[TCONV_TILE_TEXT], *problem = text_of(&plan->problem);
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    tconv_tile_text(candidate, tile, sizeof tile);
    options.algorithm = plan->pattern.algorithm == NULL ? NULL : plan->pattern.algorithm->name;
    options.epilogue = plan->epilogue;
    options.workspace_limit = plan->request.workspace_limit;
    options.math = plan->request.math;
    options.output_begin = plan->output_begin;
    options.output_end = plan->output_end;
    event.problem = problem;
    event.algorithm = candidate->algorithm->name;
    event.tile = tile;
    event.given_problem = &plan->problem;
    event.given_options = &options;
    tconv_trace(plan->device, event);
    free(problem);
}

static const char *chooser(const tconv_plan *plan)
{
    if (plan->pattern.algorithm != NULL) return "name";
    switch (plan->choice.source) {
    case TCONV_SEARCH_RECORDS: return "record";
    case TCONV_SEARCH_IMPORTED: return "imported";
    case TCONV_SEARCH_MEASURE: return "measurement";
    case TCONV_SEARCH_PREPARED: return "prepared";
    default: return "model";
    }
}

void tconv_trace_plan(const tconv_plan *plan)
{
    if (!tconv_traced(plan->device, TCONV_TRACE_PLAN)) return;
    raise_event(plan, &plan->candidate,
                (tconv_trace_event){.kind = TCONV_TRACE_PLAN,
                                    .begin_ns = (uint64_t)(1e9 * plan->retry.begun),
                                    .end_ns = tconv_trace_now(),
                                    .plan = plan,
                                    .source = chooser(plan),
                                    .message = plan->not_stored});
}

void tconv_trace_passed_over(const tconv_plan *plan, const struct tconv_candidate *candidate,
                             const char *why)
{
    if (!tconv_traced(plan->device, TCONV_TRACE_PASSED_OVER)) return;
    const uint64_t now = tconv_trace_now();
    raise_event(
        plan, candidate,
        (tconv_trace_event){
            .kind = TCONV_TRACE_PASSED_OVER, .begin_ns = now, .end_ns = now, .message = why});
}

void tconv_trace_launch(const tconv_plan *plan, const struct tconv_launch *launch, int piece,
                        const struct tconv_piece *extents, tconv_trace_event event)
{
    event.end_ns = tconv_trace_now();
    event.piece = piece;
    event.pieces = launch->pieces;
    event.plan = plan;
    event.name = launch->kernel;
    memcpy(event.offset, extents->offset, sizeof event.offset);
    memcpy(event.global, extents->global, sizeof event.global);
    memcpy(event.local, launch->local, sizeof event.local);
    raise_event(plan, &plan->candidate, event);
}
