/* SPDX-License-Identifier: Apache-2.0 */
/* Fuses a Concat along channels behind a layer: the layer writes into its part of the output, and
 * the other parts are copied into theirs. */
#ifndef TCONV_ONNXRUNTIME_CONCAT_H
#define TCONV_ONNXRUNTIME_CONCAT_H

#include "node.h"

/* Fuses a free Concat behind the layer, unless it then had more than `most` nodes. False if the
 * layer is unchanged. */
bool fuse_concat(struct node_layer *layer, size_t most, const struct taken *taken);

/* The parts of a concatenated output, as inputs of the fused node. */
struct concat {
    size_t parts;             /* 0: nothing is concatenated */
    size_t own;               /* which part the layer computes */
    size_t input[MOST_PARTS]; /* of the others */
};

/* The whole output of one run: the layer's, or the concatenated one. */
struct whole {
    tconv_shape shape;
    tconv_steps steps;   /* of the layer's part; none: it is dense */
    int64_t batch;       /* items, 0 if the output is empty */
    size_t item_bytes;   /* of an item of the whole output */
    size_t own_begin;    /* the byte where the layer's part begins */
    size_t copied_count; /* the parts that are copied */
    struct copied {
        const unsigned char *data;
        size_t begin; /* in the item of the output */
        size_t bytes; /* of an item */
    } copied[MOST_PARTS];
};

/* Reads the shapes of all parts, among which the layer's has this geometry. */
tconv_status whole_of(const struct concat *concat, const OrtKernelContext *context,
                      const tconv_geometry *geometry, struct whole *out, tconv_error *error);

/* Copies the other parts into the output, with the threads of ONNX Runtime. */
tconv_status copy_parts(const struct whole *whole, const OrtKernelContext *context, void *output,
                        tconv_error *error);

#endif
