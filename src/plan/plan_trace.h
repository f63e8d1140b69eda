/* SPDX-License-Identifier: Apache-2.0 */
/* The events of plans for tracing. The functions that raise one are called only if tconv_traced
 * is true for it. */
#ifndef TCONV_PLAN_PLAN_TRACE_H
#define TCONV_PLAN_PLAN_TRACE_H

#include "device/trace.h"
#include "plan/plan_internal.h"

/* A plan was made, from `begin` until now. */
void tconv_trace_plan(const tconv_plan *plan, uint64_t begin);

/* A candidate was not taken. `candidate` may lack a tile. */
void tconv_trace_passed_over(const tconv_plan *plan, const struct tconv_candidate *candidate,
                             const char *why);

/* A piece of a launch was enqueued or recorded, from event.begin_ns until now. The event has its
 * kind and what OpenCL gave. plan->lock is not held. */
void tconv_trace_launch(const tconv_plan *plan, const struct tconv_launch *launch, int piece,
                        const struct tconv_piece *extents, tconv_trace_event event);

#endif
