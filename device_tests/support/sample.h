/* SPDX-License-Identifier: Apache-2.0 */
/* Which cases a run of device tests has. Compiling takes nearly all of their time, so a short run
 * compiles few programs: for each algorithm as many as it needs to meet every rank, format,
 * operator and rule set that it takes, and some more, which a seed draws; the least run (0 %) has
 * only the cases that are ALWAYS there. What shares a compiled program is run as well. percent.h
 * has percentage and seed. */
#ifndef TCONV_DEVICE_TESTS_SAMPLE_H
#define TCONV_DEVICE_TESTS_SAMPLE_H

#include "percent.h"
#include "tconv_cl/tconv_cl.h"

/* What a test's sample is to cover, if not all of that: only operators and 1 to 3 axes; or no more
 * than what is drawn or ALWAYS there. For tests of other things, as device.algorithms covers all.
 */
enum coverage { OPERATORS_AND_AXES, WHAT_IS_DRAWN };
void sample_covers(enum coverage coverage);

/* Before an algorithm runs a problem, and after it: the first refuses to compile what the sample
 * does not need, the second returns false where that left the problem out. `number` tells cases
 * apart for the draw; ALWAYS belongs to every sample, IF_NEEDED is not drawn, IF_COMPILED runs only
 * where its program is compiled already, in whole runs, too. */
enum { ALWAYS = 0, IF_COMPILED = 0x7ffffffe, IF_NEEDED = 0x7fffffff };
void sample_begin(const char *algorithm, const tconv_problem *problem, unsigned number);
bool sample_end(const char *algorithm, const tconv_problem *problem, tconv_status status);

/* Fails the test where an algorithm accepted a rank, a format, an operator or a rule set, but was
 * never run on it; not in the least run. */
void expect_all_features(void);

#endif
