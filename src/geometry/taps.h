/* SPDX-License-Identifier: Apache-2.0 */
/* Which taps and inputs reach an output: the phases of stride and dilation along one axis.
 *
 * Output o takes tap k from input i where o + pad = i*s + k*d. With g = gcd(s, d), the outputs with
 * (o + pad) mod s = r are phase r. If g does not divide r, the phase takes nothing; otherwise it
 * takes taps first, first + S, first + 2S, ... with S = s/g, and with q = floor((o + pad) / s) tap
 * number j reads input q - shift - j*D, D = d/g. Every tap belongs to exactly one phase, so the
 * work of all phases together is exactly the useful work.
 *
 * This order of phases does not depend on the pad, so packed filters are in it. Where outputs are
 * stored, a phase goes by its first output t = o mod s instead, and r = (t + pad) mod s. */
#ifndef TCONV_GEOMETRY_TAPS_H
#define TCONV_GEOMETRY_TAPS_H

#include "geometry/loops.h"

struct tconv_phase {
    int64_t taps;  /* how many; 0: only zeros (and the bias) */
    int64_t first; /* the first tap */
    int64_t shift; /* of the first tap */
};

int64_t tconv_tap_step(const struct tconv_axis *axis);   /* S */
int64_t tconv_input_step(const struct tconv_axis *axis); /* D */

/* How many taps reach one output at most. */
int64_t tconv_most_taps(const struct tconv_axis *axis);

/* Fills phases[0 .. stride): phase r is phases[r]. */
void tconv_find_phases(const struct tconv_axis *axis, struct tconv_phase *phases);

/* The same in memory from malloc; NULL if there is none. */
struct tconv_phase *tconv_phases_of(const struct tconv_axis *axis);

/* The phase of an output, of phases[0 .. stride). */
const struct tconv_phase *tconv_phase_of(const struct tconv_axis *axis,
                                         const struct tconv_phase *phases, int64_t output);

/* The taps that really reach one output: their inputs lie inside the data. */
struct tconv_reach {
    int64_t taps;
    int64_t first_tap;
    int64_t first_input; /* tap first_tap + j*S reads input first_input - j*D */
};

struct tconv_reach tconv_reach_of(const struct tconv_axis *axis, const struct tconv_phase *phases,
                                  int64_t output);

#endif
