/* SPDX-License-Identifier: Apache-2.0 */
/* The times of a candidate in rounds, in each of which all candidates ran once, and what they say
 * of two candidates. */
#ifndef TCONV_PLAN_ROUNDS_H
#define TCONV_PLAN_ROUNDS_H

#include <stdbool.h>

enum {
    TCONV_MOST_ROUNDS = 100,
    TCONV_FEWEST_ROUNDS = 4, /* whose quartiles tell how much times differ */
};

struct tconv_rounds {
    int count;
    double least; /* 0: there is none yet */
    float each[TCONV_MOST_ROUNDS];
};

/* Adds a time. There must be room for it. */
void tconv_rounds_add(struct tconv_rounds *rounds, double ms);

/* How many rounds both have. */
int tconv_rounds_common(const struct tconv_rounds *a, const struct tconv_rounds *b);

/* The relative uncertainty of the ratio of two candidates' times: the sum of their spreads after
 * TCONV_FEWEST_ROUNDS, and less after more, as the error of a mean. 0: fewer than
 * TCONV_FEWEST_ROUNDS. */
double tconv_rounds_noise(const struct tconv_rounds *a, const struct tconv_rounds *b);

/* The median of the times; there must be one. */
double tconv_rounds_median(const struct tconv_rounds *rounds);

/* True if `a`'s least time is below 0.97 of the other's. */
bool tconv_rounds_may_be_faster(const struct tconv_rounds *a, const struct tconv_rounds *than);

/* True if a candidate is faster beyond the noise. */
bool tconv_rounds_are_faster(const struct tconv_rounds *a, const struct tconv_rounds *than);

#endif
