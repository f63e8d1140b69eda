/* SPDX-License-Identifier: Apache-2.0 */
/* ConvTranspose in ONNX Runtime's graphs: what the node asks for. */
#ifndef TCONV_ONNXRUNTIME_NODE_H
#define TCONV_ONNXRUNTIME_NODE_H

#include "layer.h"
#include "ort.h"

enum tensor { TENSOR_DATA, TENSOR_FILTER, TENSOR_BIAS, TENSOR_SLOPE, TENSOR_RESIDUAL, TENSORS };

/* A ConvTranspose, and what is fused with it (fuse.h). */
enum { MOST_NODES = 16 };

struct node_layer {
    struct layer_request request;
    const OrtNode *node[MOST_NODES];
    size_t count;
    const OrtValueInfo *tensor[TENSORS]; /* NULL: the layer has none */
    tconv_shape data, filter; /* extents that are not known are -1; of rank 0: no rank is known */
    /* Where `channels` is not 0, the sums are multiplied by scale[c], and bias[c] is added; then
     * there is no TENSOR_BIAS. They are of the type that the library scales with. */
    int64_t channels;
    double *scale, *bias;
};

bool is_conv_transpose(const OrtNode *node);

/* The nodes that layers have already, which are listed for `provider`. */
struct taken {
    const char *provider;
    const OrtNode **node;
    size_t count;
};

/* Whether neither another provider nor another layer has the node. */
bool is_free(const OrtNode *node, const struct taken *taken);

/* The node alone. What it has is given back with node_release, also after an error. */
tconv_status node_read(const OrtNode *node, struct node_layer *layer, tconv_error *error);
void node_release(struct node_layer *layer);

/* The type of a tensor; TCONV_TYPE_DEFAULT where it is none that is used here. */
tconv_type type_of(ONNXTensorElementDataType type);

bool is_operator(const OrtNode *node, const char *name);

/* The nodes that read the output of `node`, and as which input. 0 where the graph returns it, too,
 * or there are more than MOST_READERS. */
enum { MOST_READERS = 2 };
size_t readers_of(const OrtNode *node, const OrtNode **readers, int64_t *inputs);

/* The only reader; NULL where there is none, or more. */
const OrtNode *reader_of(const OrtNode *node);

/* The node that computes the value; NULL where there is none. */
const OrtNode *producer_of(const OrtValueInfo *value);

/* The layer's output channels; 0 where they are not known. */
int64_t channels_of(const struct node_layer *layer);

/* NULL where the input is left out. */
const OrtValueInfo *input_of(const OrtNode *node, size_t index);

/* Shape and type of a tensor: extents that are not known are -1. */
tconv_status tensor_of(const OrtValueInfo *value, tconv_shape *shape, tconv_type *type,
                       tconv_error *error);

/* False where the attribute is not there, or not of that type or size: `size` in bytes, then
 * what there is. */
bool attribute_of(const OrtNode *node, const char *name, OrtOpAttrType type, void *data,
                  size_t *size);

/* The same for one number, which is `absent` where it is not there. */
double number_of(const OrtNode *node, const char *name, double absent);

/* Whether a call into ONNX Runtime went well; its message goes to `error`, where that is not
 * NULL. */
bool succeeded(OrtStatus *status, tconv_error *error);

#endif
