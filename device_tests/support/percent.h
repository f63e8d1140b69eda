/* SPDX-License-Identifier: Apache-2.0 */
/* The share of all cases that a run of tests has.
 *
 *   TCONV_CL_TEST_PERCENT   100 in nightly runs; 2 without it; 0 for the least
 *   TCONV_CL_TEST_SEED      of the draw; 1 without it
 *
 * The least still runs each algorithm. It is for where compiling is slow. */
#ifndef TCONV_DEVICE_TESTS_PERCENT_H
#define TCONV_DEVICE_TESTS_PERCENT_H

#include <stdbool.h>

/* Whether all cases run, whether the fewest do, and the seed. */
bool sample_is_whole(void);
bool sample_is_least(void);
unsigned sample_seed(void);

/* A draw that does not depend on what was drawn before: whether the case with that number belongs
 * to the sample. */
bool drawn(unsigned number);

/* That part of `usual`, one at least. */
int scaled(int usual);

#endif
