/* SPDX-License-Identifier: Apache-2.0 */
/* Tells whether one candidate is faster than another, by their times. */
#include "plan/rounds.h"

#include "base/spread.h"

#include <stdlib.h>

/* One candidate is faster than another only if its least time is below CLEARLY_FASTER of the
 * other's, if the ratio of these times and the median of all rounds' ratios are beyond the noise,
 * and if it was faster in MOSTLY of the rounds. The rest is noise of a shared machine: runs of one
 * algorithm differ by 1 to 3 % on an idle one, and by a factor of ten where other programs hold the
 * processors. */
static const double CLEARLY_FASTER = 0.97, MOSTLY = 0.75;

void tconv_rounds_add(struct tconv_rounds *rounds, double ms)
{
    if (rounds->count == 0 || ms < rounds->least) rounds->least = ms;
    rounds->each[rounds->count++] = (float)ms;
}

int tconv_rounds_common(const struct tconv_rounds *a, const struct tconv_rounds *b)
{
    return a->count < b->count ? a->count : b->count;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sort(const struct tconv_rounds *rounds, int count, double sorted[TCONV_MOST_ROUNDS])
{
    for (int r = 0; r < count; r++) sorted[r] = (double)rounds->each[r];
    qsort(sorted, (size_t)count, sizeof *sorted, by_value);
}

static double spread_of(const struct tconv_rounds *rounds, int count)
{
    double sorted[TCONV_MOST_ROUNDS];
    sort(rounds, count, sorted);
    return tconv_spread(sorted, count);
}

double tconv_rounds_median(const struct tconv_rounds *rounds)
{
    double sorted[TCONV_MOST_ROUNDS];
    sort(rounds, rounds->count, sorted);
    return tconv_quantile(sorted, rounds->count, 0.5);
}

double tconv_rounds_noise(const struct tconv_rounds *a, const struct tconv_rounds *b)
{
    const int count = tconv_rounds_common(a, b);
    int root = 2; /* of the rounds, a whole number: the library does without libm */
    if (count < TCONV_FEWEST_ROUNDS) return 0;
    while ((root + 1) * (root + 1) <= count) root++;
    return 2 * (spread_of(a, count) + spread_of(b, count)) / root;
}

bool tconv_rounds_may_be_faster(const struct tconv_rounds *a, const struct tconv_rounds *than)
{
    return a->least < CLEARLY_FASTER * than->least;
}

/* The median ratio of the rounds: robust against disturbances that last over a round. */
static double median_ratio(const struct tconv_rounds *a, const struct tconv_rounds *than, int count)
{
    double sorted[TCONV_MOST_ROUNDS];
    for (int r = 0; r < count; r++) sorted[r] = (double)than->each[r] / (double)a->each[r];
    qsort(sorted, (size_t)count, sizeof *sorted, by_value);
    return tconv_quantile(sorted, count, 0.5);
}

bool tconv_rounds_are_faster(const struct tconv_rounds *a, const struct tconv_rounds *than)
{
    const int count = tconv_rounds_common(a, than);
    int wins = 0;
    if (count < TCONV_FEWEST_ROUNDS || !tconv_rounds_may_be_faster(a, than)) return false;
    for (int r = 0; r < count; r++) wins += a->each[r] < than->each[r];
    const double beyond = 1 + tconv_rounds_noise(a, than);
    return wins >= MOSTLY * count && than->least > beyond * a->least &&
           median_ratio(a, than, count) > beyond;
}
