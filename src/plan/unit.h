/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether a plan may use the unit that a candidate needs: only if the unit passed its test
 * (probe.h) for the problem's types and the candidate's tile. */
#ifndef TCONV_PLAN_UNIT_H
#define TCONV_PLAN_UNIT_H

#include "plan/plan_internal.h"

/* Probes the unit that a candidate would use. `*right` is also true if it uses no unit. */
tconv_status tconv_plan_test_unit(tconv_plan *plan, const struct tconv_candidate *candidate,
                                  bool *right, tconv_error *error);

/* The same. If the probe fails, the plan stops using the unit and `*lost` is true. Candidates must
 * then be enumerated again: algorithms with portable code have other candidates, the others are
 * passed over. */
tconv_status tconv_plan_settle_unit(tconv_plan *plan, const struct tconv_candidate *candidate,
                                    bool *lost, tconv_error *error);

/* Settles the unit for all tiles that a search may time. */
tconv_status tconv_plan_settle_units(tconv_plan *plan, tconv_error *error);

#endif
