/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a convolution, and the node that enlarges its data or shuffles its output, as one layer. */
#ifndef TCONV_ONNXRUNTIME_PAIR_H
#define TCONV_ONNXRUNTIME_PAIR_H

#include "node.h"

/* True for a Conv whose data is the output of a Resize or an Upsample, also with a Concat between,
 * or that is read by a DepthToSpace only. */
bool is_pair(const OrtNode *node);

/* Reads the pair to which this Conv belongs, without the nodes behind it. Fails, with a sentence
 * that says why, if the pair is not one layer: the graph then stays as it is. Call node_release
 * afterwards, even after an error. */
tconv_status pair_read(const OrtNode *conv, const struct taken *taken, struct node_layer *layer,
                       tconv_error *error);

#endif
