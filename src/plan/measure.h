/* SPDX-License-Identifier: Apache-2.0 */
/* Timing the candidates for a problem. */
#ifndef TCONV_PLAN_MEASURE_H
#define TCONV_PLAN_MEASURE_H

#include "plan/plan_internal.h"

/* So many tiles of an algorithm are timed, the first of its candidates. */
enum { TCONV_MOST_TIMED_TILES = 3 };

struct tconv_measured {
    struct tconv_candidate best; /* the fastest */
    int candidates;              /* that were timed; 0: none could be */
    double model_ms, best_ms;
    bool stopped; /* by the caller's progress function */
};

/* Times the candidates of which the cost model expects most, on scratch buffers and a queue of its
 * own. Algorithms whose kernels do not build or run are passed over. Returns the errors of
 * tconv_plan_make that say nothing about one algorithm; where scratch buffers cannot be had,
 * nothing is timed. */
tconv_status tconv_measure(tconv_plan *plan, const tconv_plan_options *options,
                           struct tconv_measured *measured, tconv_error *error);

#endif
