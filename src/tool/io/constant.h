/* SPDX-License-Identifier: Apache-2.0 */
/* The constants of a model: tensors of the .bin, and what nodes compute from them. Converters and
 * NNCF store filters in smaller types, with such nodes in front of the layer. */
#ifndef TCONV_TOOL_CONSTANT_H
#define TCONV_TOOL_CONSTANT_H

#include "tool/io/suite.h"
#include "tool/io/xml_graph.h"

#include <stdio.h>

/* The weights file. */
struct bin {
    const char *path;
    FILE *file; /* NULL: there is none */
    uint64_t size;
    uint64_t left; /* bytes that constants and their conversions may still take: each layer gets a
                      copy, and many layers may name the same constant */
};

/* Opens the file at bin->path, if it is a regular one: only its size can be trusted. */
void bin_open(struct bin *bin);

struct constant {
    tconv_type type;
    tconv_shape shape;
    void *values; /* from malloc */
};

/* Reads a Const. If its bytes are missing, returns false and sets the entry's error. */
bool constant_read(struct entry *entry, const struct graph_layer *node, struct bin *bin,
                   struct constant *constant);

/* Computes what comes to an input port of a layer from constants alone, in the element types that
 * the model gives: Const, Convert to floating point, Subtract, Multiply, Reshape, FakeQuantize. If
 * anything else is in the way, returns false and sets the entry's error; `what` names the input in
 * it. */
bool constant_compute(struct entry *entry, const struct graph *graph,
                      const struct graph_layer *layer, int64_t port, const char *what,
                      struct bin *bin, struct constant *constant);

#endif
