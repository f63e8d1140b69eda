/* SPDX-License-Identifier: Apache-2.0 */
/* Results of searches as texts: a key that names the problem, and a text with the algorithm that
 * was found. */
#ifndef TCONV_PLAN_SEARCH_TEXT_H
#define TCONV_PLAN_SEARCH_TEXT_H

#include "plan/plan_internal.h"

enum { TCONV_SEARCH_KEY = 1200, TCONV_SEARCH_TEXT = 500 };

/* Writes everything of a problem that speed depends on: "f32 n1 g1 i20 o10 x224 k3 s2 d1 p1 y447
 * steps 50176 199809 bias relu". False if it does not fit. */
bool tconv_search_key(const tconv_plan *plan, char key[TCONV_SEARCH_KEY]);

/* Writes what the programs of a layer depend on, whatever its extents and pads are: the key of its
 * prepared programs. False if it does not fit. */
bool tconv_prepared_key(const tconv_plan *plan, char key[TCONV_SEARCH_KEY]);

/* Writes what a search chose for the plan, with its times. */
void tconv_search_text_write(const tconv_plan *plan, char text[TCONV_SEARCH_TEXT]);

/* Reads such a text. False if it is damaged, or names an algorithm or parameter that this version
 * does not have. */
bool tconv_search_text_read(const char *text, struct tconv_pattern *pattern, tconv_choice *choice);

#endif
