/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of integers, which models have as floats between DequantizeLinear and QuantizeLinear. */
#ifndef TCONV_ONNXRUNTIME_QUANTIZE_H
#define TCONV_ONNXRUNTIME_QUANTIZE_H

#include "node.h"

/* The same layer of floats, with what is fused, as one of bytes: where data and filter come from a
 * DequantizeLinear each, the output goes to a QuantizeLinear, all numbers of these are constants,
 * and no sum exceeds 32 bits. It has these nodes, too, and that of the bias, which must be free,
 * and at most `most`. False where there is none. What `out` has is given back with node_release. */
bool quantize(const struct node_layer *layer, size_t most, const struct taken *taken,
              struct node_layer *out);

#endif
