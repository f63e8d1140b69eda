/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes are worth taking, before their extents are known. */
#ifndef TCONV_ONNXRUNTIME_TRIAL_H
#define TCONV_ONNXRUNTIME_TRIAL_H

#include "node.h"

/* True if the shapes are known and the layer has fewer than `least_macs` multiply-adds. */
bool is_small(const struct node_layer *layer, uint64_t least_macs);

/* Checks that a pair is worth computing as one layer, and that the library does so for some extents
 * of the data. */
tconv_status try_pair(const struct node_layer *layer, tconv_error *error);

/* Checks that the device can compute the layer, by making a plan, which compiles kernels. Unknown
 * extents are invented; therefore algorithms are not timed. */
tconv_status try_plan(tconv_device *device, const OrtLogger *logger, const struct node_layer *layer,
                      tconv_error *error);

#endif
