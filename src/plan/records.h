/* SPDX-License-Identifier: Apache-2.0 */
/* What a device object keeps for plans, in memory and in the folder: results of searches, and
 * prepared programs of layers with any extents (tconv_device_prepare). */
#ifndef TCONV_PLAN_RECORDS_H
#define TCONV_PLAN_RECORDS_H

#include "plan/plan_internal.h"

/* Finds the stored result of a search for the plan's problem, of kind SEARCH or IMPORTED; of the
 * latter the plan then knows the origin. False if there is none, if it is damaged, or if it names
 * an algorithm or parameter that this version does not have. */
bool tconv_search_find(tconv_plan *plan, enum tconv_stored kind, struct tconv_pattern *pattern,
                       tconv_choice *choice);

/* Stores what a search has just chosen for the plan. The plan is as good without it: it only says
 * why not (tconv_plan_not_stored). */
void tconv_search_keep(tconv_plan *plan, double median_ms);

/* Refuses a result from elsewhere that no search can have written. `*choice` becomes its times. */
tconv_status tconv_search_check(const tconv_stored_search *found, tconv_choice *choice,
                                tconv_error *error);

/* Stores it for the plan's problem, with the candidate that its algorithm has there. `*used` is
 * false if a search of this device comes first. */
tconv_status tconv_search_import(const tconv_plan *plan, const struct tconv_candidate *candidate,
                                 const tconv_stored_search *found, const tconv_choice *choice,
                                 bool *used, tconv_error *error);

/* Reads the text of a stored result, as tconv_search_find does. */
enum { TCONV_SEARCH_TEXT = 500 }; /* bytes that suffice for the lines up to the algorithm */
bool tconv_search_text_read(const char *text, struct tconv_pattern *pattern, tconv_choice *choice);

/* The programs of a range are chosen so that each problem that is looked at has one for which the
 * cost model expects at most TCONV_NEARLY times the time of the cheapest candidate. A plan takes
 * one at up to TCONV_ACCEPTED times, because its problem may lie between those. The model's own
 * error is of this size: docs/selection.md. */
#define TCONV_NEARLY 1.1
#define TCONV_ACCEPTED 1.25

/* Patterns that set all tile parameters on which programs depend, and no other. */
enum { TCONV_MOST_PREPARED = 48 };
struct tconv_prepared {
    int count;
    struct tconv_pattern pattern[TCONV_MOST_PREPARED];
};

/* What is remembered for the plan's layer. Without a record, or with a damaged one, the count
 * is 0. */
void tconv_prepared_read(const tconv_plan *plan, struct tconv_prepared *prepared);

/* Remembers it, with what others have stored meanwhile, such as another process with another range,
 * but for the patterns of `dropped`. False with a reason if it cannot be stored. */
bool tconv_prepared_keep(const tconv_plan *plan, const struct tconv_prepared *prepared,
                         const struct tconv_prepared *dropped, struct tconv_os_reason *reason);

/* The pattern of a candidate's programs. */
struct tconv_pattern tconv_prepared_pattern(const struct tconv_candidate *candidate);

/* True if one of the patterns is that of the candidate. */
bool tconv_is_prepared(const struct tconv_prepared *prepared,
                       const struct tconv_candidate *candidate);

bool tconv_prepared_equal(const struct tconv_pattern *a, const struct tconv_pattern *b);

/* Finds the cheapest candidate of a plan's problem with prepared programs. `*found` is false if
 * there is none, or if the cost model expects another candidate to be clearly faster (choose.c). */
tconv_status tconv_plan_prepared(tconv_plan *plan, const struct tconv_prepared *prepared,
                                 struct tconv_candidate *candidate, bool *found,
                                 tconv_error *error);

#endif
