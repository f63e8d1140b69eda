/* SPDX-License-Identifier: Apache-2.0 */
/* Costs on CPUs, and what kernels with explicit vectors choose by them. */
#ifndef TCONV_ALGORITHM_COST_CPU_H
#define TCONV_ALGORITHM_COST_CPU_H

#include "algorithm/any/folded.h"

/* The cost of a launch on a CPU, in multiply-adds at full speed of all compute units. `cost` is the
 * work-items' own, and the largest work-item is the share `largest` of it. Units take work-items as
 * they become free, and all units but one begin late. */
double tconv_cpu_launch_cost(const struct tconv_folded_layer *folded, double cost, double largest);

/* What kernels with explicit vectors choose by: lanes of the widest vector, and how many vectors of
 * accumulators stay in registers. */
int tconv_folded_widest(const struct tconv_folded_layer *folded);
int tconv_folded_accumulators(const struct tconv_folded_layer *folded);

/* For vectors whose lanes are channels: chooses how wide they are, 4 lanes at least and no wider
 * than all channels need, and a block of as many of them as leaves the fewest lanes in vain; of
 * several such numbers the first in `order`. Does not depend on extents: filters are shared. */
void tconv_folded_lanes(const struct tconv_folded_layer *folded, int64_t channels, const int *order,
                        int count, int *vw, int *mw);

/* How many input channels a round of an innermost loop adds that has `sums` vectors of them,
 * channels coming `step` at a time. Counting and addresses take a third of the instructions where a
 * round has 12 additions; with 48 few, however many registers there are. No channels are left
 * over. */
int tconv_folded_round(int sums, int64_t channels, int64_t step);

/* Input channels that come at a time, of more than 8 in so many chunks or fewer: a multiple of 8,
 * so that a round may have several. */
int64_t tconv_folded_chunk(int64_t channels, int64_t chunks);

/* Cycles in which a CPU with 16 vector registers issues the instructions of an innermost loop: it
 * has so many for each multiply-add that they count. With 32 registers 0: other things take
 * longer. */
double tconv_folded_issue(const struct tconv_folded_layer *folded, double instructions);

/* For `nx` vectors of inputs and `mw` weights: cycles of the innermost loop over those that its
 * multiply-adds need at best. It also loads, waits for chains of multiply-adds and issues
 * instructions. */
double tconv_folded_inefficiency(const struct tconv_folded_layer *folded, int nx, int mw);

/* True if to store past the caches (non-temporal): the output is so large that it would not stay in
 * them, and its `run` neighbouring outputs are whole cache lines, because parts of a line that do
 * not meet are written one by one, or at least `long_run` bytes (0: never). */
bool tconv_folded_non_temporal(const struct tconv_folded_layer *folded, int64_t run,
                               int64_t long_run);

#endif
