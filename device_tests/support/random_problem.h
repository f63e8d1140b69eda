/* SPDX-License-Identifier: Apache-2.0 */
/* Draws random problems: of every kind, or of the kinds that an algorithm takes. */
#ifndef TCONV_DEVICE_TESTS_RANDOM_PROBLEM_H
#define TCONV_DEVICE_TESTS_RANDOM_PROBLEM_H

#include "support.h"

/* A problem with `axes` spatial axes and extents up to `most`, of any form, format and rule set. */
tconv_problem random_problem(unsigned *seed, int axes, int most);

/* A problem of nearest upsampling and a convolution, likewise; and of a convolution and pixel
 * shuffle. */
tconv_problem random_upsampling(unsigned *seed, int axes, int most);
tconv_problem random_shuffle(unsigned *seed, int axes, int most);

/* Gives data and output random steps: gaps between rows, channels or batch items, elements that are
 * not neighbours, axes in another order. */
void random_steps(unsigned *seed, tconv_problem *problem);

/* Gives the filter random steps. */
void random_filter_steps(unsigned *seed, tconv_problem *problem);

/* Gives the residual random steps, also of 0. The epilogue must have a residual. */
void random_residual_steps(unsigned *seed, tconv_problem *problem);

/* One of any rank, with steps or without, and of several element types that the algorithm takes on
 * this device with fast arithmetic, with at most so many multiply-adds and outputs. False where
 * many draws have none. */
bool random_problem_for(const struct device *device, const char *algorithm, double most_work,
                        unsigned *seed, tconv_problem *problem);

/* A problem that differs in batch, extents, pads and outputs, on which few programs depend. */
bool random_relative(const tconv_problem *of, double most_work, unsigned *seed,
                     tconv_problem *problem);

#endif
