/* SPDX-License-Identifier: Apache-2.0 */
/* The graph in an OpenVINO IR .xml file: layers with their attributes and ports, and edges. Nothing
 * of it is interpreted here. */
#ifndef TCONV_TOOL_XML_GRAPH_H
#define TCONV_TOOL_XML_GRAPH_H

#include "tool/tool.h"

struct graph_attribute {
    char *name, *value;
};

struct graph_port {
    int64_t id;
    bool output;
    char *precision;
    tconv_shape shape; /* -1: dynamic */
};

struct graph_layer {
    int64_t scope; /* of the <layers> that it stands in: ids are unique within one */
    int64_t id;
    char *name, *type;
    struct graph_attribute *attributes; /* of its <data> */
    size_t attribute_count;
    struct graph_port *ports;
    size_t port_count;
    size_t outputs; /* of the ports */
    size_t output;  /* the first of these */
};

struct graph_edge {
    int64_t scope, from_layer, from_port, to_layer, to_port;
    const struct graph_layer *from; /* NULL: there is no such layer */
};

struct graph {
    struct graph_layer *layers; /* in the file's order */
    size_t layer_count;
    struct graph_edge *edges;
    size_t edge_count;
    const struct graph_edge **producers; /* the first edge from a layer to each input, in the order
                                            of scope, layer and port */
    size_t producer_count;
};

enum exit_code graph_read(const char *path, struct graph *graph);
void graph_free(struct graph *graph);

/* An attribute's value; NULL if it is absent. */
const char *graph_attribute_of(const struct graph_layer *layer, const char *name);

/* Reads the numbers of an attribute, "2, 2"; "" and NULL are none. False if it is no list of up to
 * `most` numbers. */
bool graph_read_list(const char *text, int64_t *numbers, int most, int *count);

/* The input port with that number, or NULL. */
const struct graph_port *graph_input(const struct graph_layer *layer, int64_t id);

/* The first output port, or NULL. */
const struct graph_port *graph_output(const struct graph_layer *layer);

/* The layer whose output feeds that input port, or NULL. */
const struct graph_layer *graph_producer(const struct graph *graph, const struct graph_layer *layer,
                                         int64_t port);

#endif
