/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the useful multiply-adds of a geometry. */
#ifndef TCONV_GEOMETRY_COUNT_H
#define TCONV_GEOMETRY_COUNT_H

#include "tconv_cl/problem.h"

/* The useful multiply-adds of a geometry: pairs (input point, tap) whose target lies inside the
 * output, times channels and batch. Takes logarithmic time for any extents. Returns false if the
 * count does not fit into 64 bits. */
bool tconv_count_macs(const tconv_geometry *geometry, uint64_t *macs);

/* The same along one axis: the pairs (x, k), 0 <= x < input, 0 <= k < kernel, with 0 <= x*stride +
 * k*dilation - pad < output. */
bool tconv_count_pairs(int64_t input, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad,
                       int64_t output, uint64_t *pairs);

#endif
