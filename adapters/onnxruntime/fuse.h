/* SPDX-License-Identifier: Apache-2.0 */
/* Fuses the nodes that follow a layer and that tconv-cl can compute in the same kernel. */
#ifndef TCONV_ONNXRUNTIME_FUSE_H
#define TCONV_ONNXRUNTIME_FUSE_H

#include "node.h"

/* Fuses free nodes behind the layer, until it has `most` nodes: nodes that together are one factor
 * and one addend for each output channel, then an added tensor, then an activation. */
void fuse_followers(struct node_layer *layer, size_t most, const struct taken *taken);

#endif
