/* SPDX-License-Identifier: Apache-2.0 */
/* The share of all cases that a run of tests has.
 *
 *   TCONV_CL_TEST_PERCENT   100 in nightly runs; 10 without it; less for simulators
 *   TCONV_CL_TEST_SEED      of the draw; 1 without it */
#ifndef TCONV_DEVICE_TESTS_PERCENT_H
#define TCONV_DEVICE_TESTS_PERCENT_H

#include <stdbool.h>

/* The percentage, whether it is all of them, and the seed. */
int sample_percent(void);
bool sample_is_whole(void);
unsigned sample_seed(void);

/* A draw that does not depend on what was drawn before: whether the case with that number belongs
 * to the sample. */
bool drawn(unsigned number);

/* That part of `usual`, one at least. */
int scaled(int usual);

#endif
