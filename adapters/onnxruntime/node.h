/* SPDX-License-Identifier: Apache-2.0 */
/* Reads ConvTranspose and Conv nodes of ONNX Runtime's graphs, and the tensors of a run. */
#ifndef TCONV_ONNXRUNTIME_NODE_H
#define TCONV_ONNXRUNTIME_NODE_H

#include "layer.h"
#include "numbers.h"

enum tensor { TENSOR_DATA, TENSOR_FILTER, TENSOR_BIAS, TENSOR_SLOPE, TENSOR_RESIDUAL, TENSORS };

/* A ConvTranspose, or a Conv and the node that enlarges its data or shuffles its output (pair.h),
 * with the nodes that are fused into it (fuse.h). */
enum { MOST_NODES = 16, MOST_PARTS = 8 };

struct node_layer {
    struct layer_request request;
    const OrtNode *node[MOST_NODES]; /* the last one has the layer's output */
    size_t count;
    const OrtNode *convolution;          /* the one of them with filter and bias */
    const OrtValueInfo *tensor[TENSORS]; /* NULL: the layer has none */
    tconv_shape data, filter;            /* unknown extents are -1; rank 0: the rank is unknown */
    tconv_shape fixed; /* the data's extents from which factors follow; rank 0: none, -1: any */
    /* If `folded`, the sums are multiplied by scale, bias is added, and there is no TENSOR_BIAS.
     * Both have the type of the library's scales. */
    bool folded;
    struct numbers scale, bias;
    const OrtValueInfo *part[MOST_PARTS]; /* what a Concat joins, the layer's output among it */
    size_t parts, own_part;               /* parts 0: there is no Concat */
};

bool is_conv_transpose(const OrtNode *node);
bool is_conv(const OrtNode *node);

/* The nodes that layers of `provider` have already: a hash table, in which at most half of the
 * slots are taken. No slots: no node is taken. */
struct taken {
    const char *provider;
    const OrtNode **slot;
    size_t slots; /* a power of two */
};

/* Makes room for `count` nodes. False without memory. */
bool taken_create(struct taken *out, const char *provider, size_t count);
void taken_add(struct taken *taken, const OrtNode *node);
void taken_release(struct taken *taken);

/* True if no other provider and no other layer has the node. */
bool is_free(const OrtNode *node, const struct taken *taken);

/* Reads a ConvTranspose, or a Conv as upsampling by factors of 1, without the nodes around it. Call
 * node_release afterwards, even after an error. */
tconv_status node_read(const OrtNode *node, struct node_layer *layer, tconv_error *error);
void node_release(struct node_layer *layer);

/* The type of a tensor; TCONV_TYPE_DEFAULT if it is not supported. */
tconv_type type_of(ONNXTensorElementDataType type);

bool is_operator(const OrtNode *node, const char *name);

/* Finds the nodes that read the output of `node`, and which of their inputs it is. Returns 0 if the
 * graph also returns the output, or if there are more than MOST_READERS. */
enum { MOST_READERS = 2 };
size_t readers_of(const OrtNode *node, const OrtNode **readers, int64_t *inputs);

/* The only reader. NULL if there is none, or more than one. */
const OrtNode *reader_of(const OrtNode *node);

/* The node that computes the value. NULL if there is none. */
const OrtNode *producer_of(const OrtValueInfo *value);

/* The layer's output channels, as the graph claims them; 0 if they are unknown. Also 0 for a pixel
 * shuffle: what has a number for each of its output channels cannot be fused, because bias and
 * scale have one for each channel of the convolution. */
int64_t channels_of(const struct node_layer *layer);

int rank_of(const struct node_layer *layer);

/* All nodes of a graph, or all inputs of a node. The caller frees the list. */
tconv_status nodes_of(const OrtGraph *graph, const OrtNode ***out, size_t *count,
                      tconv_error *error);
tconv_status inputs_of(const OrtNode *node, const OrtValueInfo ***out, size_t *count,
                       tconv_error *error);

/* An input of the node. NULL if it is left out, or if the node has more than MOST_INPUTS. */
enum { MOST_INPUTS = 8 };
const OrtValueInfo *input_of(const OrtNode *node, size_t index);

/* True if both are the tensor of one name: a fused node has its own objects for its inputs. */
bool is_same_value(const OrtValueInfo *one, const OrtValueInfo *other);

/* Reads shape and type of a tensor. Unknown extents are -1. */
tconv_status tensor_of(const OrtValueInfo *value, tconv_shape *shape, tconv_type *type,
                       tconv_error *error);

/* Reads an input of a running node, which must have this type. */
tconv_status read_tensor(const OrtKernelContext *context, size_t input, tconv_type type,
                         tconv_shape *shape, const void **data, tconv_error *error);

/* Reads an attribute of at most `size` bytes; `size` becomes its size. False if the attribute is
 * missing, or has another type or does not fit. */
bool attribute_of(const OrtNode *node, const char *name, OrtOpAttrType type, void *data,
                  size_t *size);

/* Reads an attribute that is one number; `absent` if it is missing. */
double number_of(const OrtNode *node, const char *name, double absent);
int64_t integer_of(const OrtNode *node, const char *name, int64_t absent);

/* Reads an attribute that is a word; `absent` if it is missing, "?" if it is longer than any. */
enum { MOST_WORD = 32 };
void word_of(const OrtNode *node, const char *name, const char *absent, char out[MOST_WORD]);

#endif
