/* SPDX-License-Identifier: Apache-2.0 */
/* Costs on CPUs, and what kernels with explicit vectors choose by them. */
#ifndef TCONV_ALGORITHM_COST_CPU_H
#define TCONV_ALGORITHM_COST_CPU_H

#include "algorithm/any/folded.h"

/* The cost of a launch on a CPU, in multiply-adds at full speed of all compute units. `cost` counts
 * the work of all work-items. `largest` is the largest work-item's share of it. Compute units take
 * work-items one by one. All units but one begin late. */
double tconv_cpu_launch_cost(const struct tconv_folded *folded, double cost, double largest);

/* For kernels with explicit vectors: the lanes of the widest vector, and how many vectors of
 * accumulators stay in registers. */
int tconv_folded_widest(const struct tconv_folded *folded);
int tconv_folded_accumulators(const struct tconv_folded *folded);

/* For vectors whose lanes are channels: chooses the width of a vector and the vectors of a block. A
 * vector has at least 4 lanes and is not wider than all channels need. The block wastes the fewest
 * lanes; among equal blocks the first number in `order` wins. The choice does not depend on
 * extents, so that packed filters are shared. */
void tconv_folded_lanes(const struct tconv_folded *folded, int64_t channels, const int *order,
                        int count, int *vw, int *mw);

/* How many input channels one round of an innermost loop adds to `sums` vectors of sums. Channels
 * come `step` at a time, and none is left over. Unrolling pays because counting and addresses take
 * a third of the instructions in a round of 12 additions, but few in a round of 48, with any number
 * of registers. */
int tconv_folded_round(int sums, int64_t channels, int64_t step);

/* Input channels of a chunk, if all channels come in `chunks` chunks or fewer. More than 8 channels
 * come in multiples of 8, so that a round may have several. */
int64_t tconv_folded_chunk(int64_t channels, int64_t chunks);

/* Cycles in which CPUs with 16 vector registers issue the instructions of the innermost loop; 0
 * with 32 registers, where issue is never the bottleneck. */
double tconv_folded_issue(const struct tconv_folded *folded, double instructions);

/* For `nx` vectors of inputs and `mw` weights: the cycles of the innermost loop, divided by the
 * cycles that its multiply-adds need at best. Loads, chains of multiply-adds and the issue of
 * instructions can take longer than the multiply-adds. */
double tconv_folded_inefficiency(const struct tconv_folded *folded, int nx, int mw);

/* True if non-temporal stores pay: the output does not stay in caches, and `run` neighbouring
 * outputs fill whole cache lines or have at least `long_run` bytes (0: this does not count). Parts
 * of a line would be written to memory one by one. */
bool tconv_folded_non_temporal(const struct tconv_folded *folded, int64_t run, int64_t long_run);

/* The macro STREAM of kernels that store the channels of a point together. In a slice of the
 * channels of a larger tensor each point begins and ends at a line, or none does: then 2. */
int tconv_folded_point_stores(const struct tconv_folded *folded);

#endif
