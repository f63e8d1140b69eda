/* SPDX-License-Identifier: Apache-2.0 */
/* The events of plans for tracing. */
#ifndef TCONV_PLAN_PLAN_TRACE_H
#define TCONV_PLAN_PLAN_TRACE_H

#include "plan/plan_internal.h"

/* Raises the event that a plan was made, if anybody hears it. */
void tconv_trace_plan(const tconv_plan *plan);

/* Raises the event that a candidate was not taken, if anybody hears it. `candidate` may lack a
 * tile. */
void tconv_trace_passed_over(const tconv_plan *plan, const struct tconv_candidate *candidate,
                             const char *why);

/* Raises the event that a piece of a launch was enqueued or recorded, from event.begin_ns until
 * now; only if tconv_traced is true for its kind. The event has its kind and what OpenCL gave.
 * plan->lock is not held. */
void tconv_trace_launch(const tconv_plan *plan, const struct tconv_launch *launch, int piece,
                        const struct tconv_piece *extents, tconv_trace_event event);

#endif
