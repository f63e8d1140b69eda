/* SPDX-License-Identifier: Apache-2.0 */
/* What follows a ConvTranspose in a graph and is computed with it. */
#ifndef TCONV_ONNXRUNTIME_FUSE_H
#define TCONV_ONNXRUNTIME_FUSE_H

#include "node.h"

/* Adds the nodes that follow the ConvTranspose to the layer, until it has `most` nodes, in this
 * order: nodes that multiply each output channel by a constant or add one to it (together one
 * factor and one addend a channel); one addition of a tensor; one activation. Stops at the first
 * node of another kind, and at one that is taken. */
void fuse_followers(struct node_layer *layer, size_t most, const struct taken *taken);

#endif
