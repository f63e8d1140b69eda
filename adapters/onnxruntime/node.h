/* SPDX-License-Identifier: Apache-2.0 */
/* ConvTranspose in ONNX Runtime's graphs: what the node asks for, and what follows it that is
 * fused. */
#ifndef TCONV_ONNXRUNTIME_NODE_H
#define TCONV_ONNXRUNTIME_NODE_H

#include "layer.h"
#include "ort.h"

enum tensor { TENSOR_DATA, TENSOR_FILTER, TENSOR_BIAS, TENSOR_SLOPE, TENSORS };

/* A ConvTranspose, an Add of one number for each channel, an activation; the first always, the
 * others where they are. */
enum { MOST_NODES = 3 };

struct node_layer {
    struct layer_request request;
    const OrtNode *node[MOST_NODES];
    size_t count;
    const OrtValueInfo *tensor[TENSORS]; /* NULL: the layer has none */
    tconv_shape data, filter; /* extents that are not known are -1; of rank 0: no rank is known */
};

bool is_conv_transpose(const OrtNode *node);

/* Whether no provider but this one has taken the node. */
bool is_free(const OrtNode *node, const char *provider);

/* The node alone. */
tconv_status node_read(const OrtNode *node, struct node_layer *layer, tconv_error *error);

/* Takes in what follows and is free, until the layer has `most` nodes. */
void node_fuse(struct node_layer *layer, size_t most, const char *provider);

/* The type of a tensor; TCONV_TYPE_DEFAULT where it is none of the library's floating ones. */
tconv_type type_of(ONNXTensorElementDataType type);

/* Whether a call into ONNX Runtime went well; its message goes to `error`, where that is not
 * NULL. */
bool succeeded(OrtStatus *status, tconv_error *error);

#endif
