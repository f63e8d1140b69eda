/* SPDX-License-Identifier: Apache-2.0 */
/* What follows a ConvTranspose in a graph and is computed with it. */
#ifndef TCONV_ONNXRUNTIME_FUSE_H
#define TCONV_ONNXRUNTIME_FUSE_H

#include "node.h"

/* Takes in what follows and is free, until the layer has `most` nodes: what is together one factor
 * and one addend for each output channel, then one tensor that is added, then one activation. */
void fuse_followers(struct node_layer *layer, size_t most, const struct taken *taken);

#endif
