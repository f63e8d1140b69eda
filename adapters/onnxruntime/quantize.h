/* SPDX-License-Identifier: Apache-2.0 */
/* Turns layers of floats between DequantizeLinear and QuantizeLinear into layers of integers. */
#ifndef TCONV_ONNXRUNTIME_QUANTIZE_H
#define TCONV_ONNXRUNTIME_QUANTIZE_H

#include "node.h"

/* Makes a layer of bytes from a layer of floats and its fused nodes. Data and filter must each come
 * from a DequantizeLinear, the output must go to a QuantizeLinear, their numbers must be constants,
 * and no sum may exceed 32 bits. The new layer also has these nodes and that of the bias. They must
 * be free, and all nodes at most `most`. False if it is not such a layer. Call node_release for
 * `out`. */
bool quantize(const struct node_layer *layer, size_t most, const struct taken *taken,
              struct node_layer *out);

#endif
