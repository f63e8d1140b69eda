/* SPDX-License-Identifier: Apache-2.0 */
/* Steady algorithms: plans of different extents that give an output the same bits, wherever it is.
 * Their text, an algorithm with some parameters of its tile, decides about the order in which
 * products are added up, and about the packed filter (enum tconv_order). */
#ifndef TCONV_PLAN_STEADY_H
#define TCONV_PLAN_STEADY_H

#include "tconv_cl/plan.h"

enum { TCONV_STEADY_TEXT = 200, TCONV_STEADY_CASES = 5 };

/* Writes the text of a plan's algorithm. False if its order depends on positions. */
bool tconv_plan_steady(const tconv_plan *plan, char text[TCONV_STEADY_TEXT]);

/* Chooses among the algorithms that the options ask for the one that is never much slower than the
 * fastest: the largest ratio, of the first `usual` of `count` problems that differ in their
 * extents, is the least. It takes all of them, with one packed filter.
 * `excluded` are algorithms that are skipped (tconv_choose); `*index` becomes the chosen one's.
 * Compiles only what tests a device's units. */
tconv_status tconv_steady_choose(tconv_device *device, const tconv_problem *problems,
                                 const tconv_plan_options *options, int count, int usual,
                                 unsigned excluded, char text[TCONV_STEADY_TEXT], int *index,
                                 tconv_error *error);

/* True if the error says that a kernel does not build or cannot run on the device, so that another
 * algorithm may be tried. */
bool tconv_steady_may_try_another(const tconv_error *error);

#endif
