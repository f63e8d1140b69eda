/* SPDX-License-Identifier: Apache-2.0 */
/* Fills the events of plans for tracing. */
#include "plan/plan_trace.h"

#include <stdlib.h>
#include <string.h>

bool tconv_trace_names_problem(const tconv_device *device)
{
    return tconv_traced(device, TCONV_TRACE_PLAN) ||
           tconv_traced(device, TCONV_TRACE_PASSED_OVER) ||
           tconv_traced(device, TCONV_TRACE_LAUNCH) || tconv_traced(device, TCONV_TRACE_RECORD);
}

char *tconv_trace_problem(const tconv_problem *problem)
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
    char tile[TCONV_TILE_TEXT];
    tconv_tile_text(candidate, tile, sizeof tile);
    event.problem = plan->problem;
    event.algorithm = candidate->algorithm->name;
    event.tile = tile;
    tconv_trace(plan->device, event);
}

static const char *chooser(const tconv_plan *plan)
{
    if (plan->pattern.algorithm != NULL) return "name";
    switch (plan->choice.source) {
    case TCONV_SEARCH_RECORDS: return "record";
    case TCONV_SEARCH_MEASURE: return "measurement";
    default: return "model";
    }
}

void tconv_trace_plan(const tconv_plan *plan, uint64_t begin)
{
    raise_event(plan, &plan->candidate,
                (tconv_trace_event){.kind = TCONV_TRACE_PLAN,
                                    .begin_ns = begin,
                                    .end_ns = tconv_trace_now(),
                                    .plan = plan,
                                    .source = chooser(plan)});
}

void tconv_trace_passed_over(const tconv_plan *plan, const struct tconv_candidate *candidate,
                             const char *why)
{
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
