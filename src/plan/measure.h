/* SPDX-License-Identifier: Apache-2.0 */
/* Times the candidates for a problem, to find the fastest. */
#ifndef TCONV_PLAN_MEASURE_H
#define TCONV_PLAN_MEASURE_H

#include "plan/plan_internal.h"

struct tconv_measured {
    struct tconv_candidate best;     /* the fastest */
    int candidates;                  /* how many candidates were timed; 0: none could be */
    double model_ms, best_ms, noise; /* as in tconv_choice */
    double median_ms;                /* of the fastest */
    bool stopped;                    /* by the caller's progress function */
    bool incomplete; /* a candidate could not be timed, maybe because of a transient failure */
};

/* Times the candidates with the least expected cost, on scratch buffers and a queue of its own.
 * Algorithms whose kernels do not build or run are passed over. If scratch buffers cannot be
 * allocated, nothing is timed. Returns those errors of tconv_plan_make that are not the fault of
 * one algorithm. */
tconv_status tconv_measure(tconv_plan *plan, const tconv_plan_options *options,
                           struct tconv_measured *measured, tconv_error *error);

/* Tells the application's progress function, if there is one, how far a search or preparation is.
 * False if the application wants no more. */
bool tconv_search_goes_on(const tconv_plan_options *options, const char *algorithm, int done,
                          int count, double best_ms);

#endif
