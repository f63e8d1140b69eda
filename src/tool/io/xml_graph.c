/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the graph of an OpenVINO IR with expat. Bodies of If, Loop and TensorIterator hold graphs
 * of their own: each <layers> and <edges> belongs to the innermost element called net or ..._body
 * around it. */
#include "tool/io/xml_graph.h"

#include "tool/io/array.h"
#include "tool/io/in_file.h"

#include <errno.h>
#include <expat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LONGEST = 1 << 30 /* bytes of a file */,
    DEEPEST = 64,
    MOST = 1 << 17 /* layers, edges, ports */,
    MOST_ATTRIBUTES = 256
};

struct reader {
    XML_Parser parser;
    struct graph *graph;
    int depth;
    int64_t scopes[DEEPEST]; /* of each open element */
    size_t open[DEEPEST];    /* the layer of each open element, or NO_LAYER */
    int64_t next_scope;
    bool in_output;     /* inside <output>, not <input> */
    bool in_back_edges; /* of a loop: they connect no ports */
    bool in_dim;
    char dim[32];
    size_t dim_length;
    const char *mistake; /* not NULL: why reading stopped */
};

#define NO_LAYER SIZE_MAX

static void stop(struct reader *r, const char *mistake)
{
    if (r->mistake == NULL) r->mistake = mistake;
    XML_StopParser(r->parser, XML_FALSE);
}

static const char *value_of(const char **attributes, const char *name)
{
    for (; attributes[0] != NULL; attributes += 2)
        if (strcmp(attributes[0], name) == 0) return attributes[1];
    return NULL;
}

static bool read_id(struct reader *r, const char *text, int64_t *id)
{
    int count;
    if (text != NULL && parse_numbers(text, ',', id, 1, &count) == FLAW_NONE) return true;
    *id = 0;
    stop(r, "an id is missing or no number");
    return false;
}

static char *copy(struct reader *r, const char *text)
{
    char *own = strdup(text == NULL ? "" : text);
    if (own == NULL) stop(r, "no memory");
    return own;
}

/* Appends an element of `size` zero bytes to an array of at most `most`. Returns the array, or
 * NULL. */
static void *one_more(struct reader *r, void *array, size_t *count, size_t size, size_t most)
{
    char *more = *count >= most ? NULL : array_grow(array, *count, size);
    if (more == NULL) {
        stop(r, "no memory, or more elements than any model has");
        return NULL;
    }
    memset(more + *count * size, 0, size);
    ++*count;
    return more;
}

static void start_layer(struct reader *r, const char **attributes)
{
    struct graph *g = r->graph;
    struct graph_layer *layers = one_more(r, g->layers, &g->layer_count, sizeof *layers, MOST);
    if (layers == NULL) return;
    g->layers = layers;
    struct graph_layer *layer = &layers[g->layer_count - 1];
    r->open[r->depth] = g->layer_count - 1;
    layer->scope = r->scopes[r->depth];
    read_id(r, value_of(attributes, "id"), &layer->id);
    layer->name = copy(r, value_of(attributes, "name"));
    layer->type = copy(r, value_of(attributes, "type"));
}

static void start_data(struct reader *r, struct graph_layer *layer, const char **attributes)
{
    for (; attributes[0] != NULL; attributes += 2) {
        struct graph_attribute *all =
            one_more(r, layer->attributes, &layer->attribute_count, sizeof *all, MOST_ATTRIBUTES);
        if (all == NULL) return;
        layer->attributes = all;
        struct graph_attribute *attribute = &all[layer->attribute_count - 1];
        attribute->name = copy(r, attributes[0]);
        attribute->value = copy(r, attributes[1]);
    }
}

static void start_port(struct reader *r, struct graph_layer *layer, const char **attributes)
{
    struct graph_port *ports = one_more(r, layer->ports, &layer->port_count, sizeof *ports, MOST);
    if (ports == NULL) return;
    layer->ports = ports;
    struct graph_port *port = &ports[layer->port_count - 1];
    port->output = r->in_output;
    if (port->output && layer->outputs++ == 0) layer->output = layer->port_count - 1;
    port->precision = copy(r, value_of(attributes, "precision"));
    read_id(r, value_of(attributes, "id"), &port->id);
}

static void start_edge(struct reader *r, const char **attributes)
{
    struct graph *g = r->graph;
    struct graph_edge *edges = one_more(r, g->edges, &g->edge_count, sizeof *edges, MOST);
    if (edges == NULL) return;
    g->edges = edges;
    struct graph_edge *edge = &edges[g->edge_count - 1];
    edge->scope = r->scopes[r->depth];
    if (read_id(r, value_of(attributes, "from-layer"), &edge->from_layer) &&
        read_id(r, value_of(attributes, "from-port"), &edge->from_port) &&
        read_id(r, value_of(attributes, "to-layer"), &edge->to_layer))
        read_id(r, value_of(attributes, "to-port"), &edge->to_port);
}

static bool is_body(const char *name)
{
    const size_t length = strlen(name);
    return strcmp(name, "net") == 0 || (length >= 4 && strcmp(name + length - 4, "body") == 0);
}

static void on_start(void *state, const char *name, const char **attributes)
{
    struct reader *r = state;
    if (r->depth + 1 >= DEEPEST) {
        stop(r, "elements are nested deeper than in any model");
        return;
    }
    r->depth++;
    r->scopes[r->depth] = is_body(name) ? ++r->next_scope : r->scopes[r->depth - 1];
    r->open[r->depth] = is_body(name) ? NO_LAYER : r->open[r->depth - 1];
    if (strcmp(name, "layer") == 0) {
        start_layer(r, attributes);
        return;
    }
    if (strcmp(name, "back_edges") == 0) r->in_back_edges = true;
    if (strcmp(name, "edge") == 0) {
        if (!r->in_back_edges) start_edge(r, attributes);
        return;
    }
    if (r->open[r->depth] == NO_LAYER) return;
    struct graph_layer *layer = &r->graph->layers[r->open[r->depth]];
    if (strcmp(name, "data") == 0) start_data(r, layer, attributes);
    if (strcmp(name, "input") == 0) r->in_output = false;
    if (strcmp(name, "output") == 0) r->in_output = true;
    if (strcmp(name, "port") == 0) start_port(r, layer, attributes);
    if (strcmp(name, "dim") == 0) {
        r->in_dim = true;
        r->dim_length = 0;
    }
}

static void on_text(void *state, const char *text, int length)
{
    struct reader *r = state;
    if (!r->in_dim) return;
    if ((size_t)length >= sizeof r->dim - r->dim_length) {
        stop(r, "an extent is longer than any number");
        return;
    }
    memcpy(r->dim + r->dim_length, text, (size_t)length);
    r->dim_length += (size_t)length;
}

static void end_dim(struct reader *r)
{
    struct graph_layer *layer =
        r->open[r->depth] == NO_LAYER ? NULL : &r->graph->layers[r->open[r->depth]];
    r->in_dim = false;
    r->dim[r->dim_length] = '\0';
    if (layer == NULL || layer->port_count == 0) return;
    tconv_shape *shape = &layer->ports[layer->port_count - 1].shape;
    if (shape->rank < TCONV_MAX_RANK) read_id(r, r->dim, &shape->dim[shape->rank]);
    shape->rank++; /* counts beyond the limit, too: such a tensor belongs to other layers */
}

static void on_end(void *state, const char *name)
{
    struct reader *r = state;
    if (strcmp(name, "dim") == 0) end_dim(r);
    if (strcmp(name, "back_edges") == 0) r->in_back_edges = false;
    r->depth--;
}

static void on_doctype(void *state, const char *name, const char *system_id, const char *public_id,
                       int internal)
{
    (void)name;
    (void)system_id;
    (void)public_id;
    (void)internal;
    stop(state, "it has a document type declaration, which models do not have");
}

/* ---- who feeds an input ---- */

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_layers(const void *a, const void *b)
{
    const struct graph_layer *x = *(const struct graph_layer *const *)a,
                             *y = *(const struct graph_layer *const *)b;
    const int scope = compare_numbers(x->scope, y->scope);
    return scope != 0 ? scope : compare_numbers(x->id, y->id);
}

static int compare_targets(const void *a, const void *b)
{
    const struct graph_edge *x = *(const struct graph_edge *const *)a,
                            *y = *(const struct graph_edge *const *)b;
    const int scope = compare_numbers(x->scope, y->scope);
    const int layer = compare_numbers(x->to_layer, y->to_layer);
    return scope != 0 ? scope : layer != 0 ? layer : compare_numbers(x->to_port, y->to_port);
}

/* The same orders; of equal ones the first in the file comes first, as in its array. */
static int layers_in_order(const void *a, const void *b)
{
    const struct graph_layer *x = *(const struct graph_layer *const *)a,
                             *y = *(const struct graph_layer *const *)b;
    const int order = compare_layers(a, b);
    return order != 0 ? order : (x > y) - (x < y);
}

static int targets_in_order(const void *a, const void *b)
{
    const struct graph_edge *x = *(const struct graph_edge *const *)a,
                            *y = *(const struct graph_edge *const *)b;
    const int order = compare_targets(a, b);
    return order != 0 ? order : (x > y) - (x < y);
}

/* Keeps the first of equal elements of a sorted array of pointers. Returns how many are kept. */
static size_t keep_first(const void **sorted, size_t count,
                         int (*compare)(const void *, const void *))
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || compare(&sorted[kept - 1], &sorted[i]) != 0) sorted[kept++] = sorted[i];
    return kept;
}

/* Finds the layers from which edges come, and sorts the edges by where they lead to. A model may
 * have a hundred thousand of both. False without memory. */
static bool sort_edges(struct graph *graph)
{
    const struct graph_layer **layers = malloc((graph->layer_count + 1) * sizeof *layers);
    graph->producers = malloc((graph->edge_count + 1) * sizeof *graph->producers);
    if (layers == NULL || graph->producers == NULL) {
        free(layers);
        return false;
    }
    for (size_t i = 0; i < graph->layer_count; i++) layers[i] = &graph->layers[i];
    qsort(layers, graph->layer_count, sizeof *layers, layers_in_order);
    const size_t ids = keep_first((const void **)layers, graph->layer_count, compare_layers);
    size_t count = 0;
    for (size_t e = 0; e < graph->edge_count; e++) {
        struct graph_edge *edge = &graph->edges[e];
        const struct graph_layer wanted = {.scope = edge->scope, .id = edge->from_layer};
        const struct graph_layer *key = &wanted, *const *found = bsearch(&key, layers, ids,
                                                                         sizeof *layers,
                                                                         compare_layers);
        edge->from = found == NULL ? NULL : *found;
        if (found != NULL) graph->producers[count++] = edge;
    }
    free(layers);
    qsort(graph->producers, count, sizeof *graph->producers, targets_in_order);
    graph->producer_count = keep_first((const void **)graph->producers, count, compare_targets);
    return true;
}

/* ---- reading ---- */

/* True for files of other formats that OpenVINO converts to IR: that also resolves the shapes
 * between their layers, which these files need not hold. */
static bool is_convertible(const char *path)
{
    static const char *const endings[] = {".onnx", ".tflite", ".pb", ".pdmodel"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (has_ending(path, endings[i])) return true;
    return false;
}

static enum exit_code not_a_model(const char *path, const struct reader *r)
{
    if (is_convertible(path))
        return wrong_request(
            "--model %s is not OpenVINO IR: convert it with `pip install openvino` "
            "and `ovc '%s' --compress_to_fp16=False`, and give the .xml that this writes into the "
            "current folder",
            path, path);
    return failed_work("--model %s is not a model: line %lu: %s", path,
                       (unsigned long)XML_GetCurrentLineNumber(r->parser),
                       r->mistake != NULL ? r->mistake
                                          : XML_ErrorString(XML_GetErrorCode(r->parser)));
}

enum exit_code graph_read(const char *path, struct graph *graph)
{
    *graph = (struct graph){0};
    size_t length;
    bool opened;
    char *text = in_file_text(path, LONGEST, &length, &opened);
    if (text == NULL)
        return failed_work("--model %s cannot be %s: %s", path, opened ? "read" : "opened",
                           strerror(errno));
    struct reader r = {.parser = XML_ParserCreate(NULL), .graph = graph};
    enum exit_code code;
    if (r.parser == NULL) {
        code = failed_work("--model %s cannot be read: no memory", path);
    } else {
        r.open[0] = NO_LAYER;
        XML_SetUserData(r.parser, &r);
        XML_SetElementHandler(r.parser, on_start, on_end);
        XML_SetCharacterDataHandler(r.parser, on_text);
        XML_SetStartDoctypeDeclHandler(r.parser, on_doctype);
        /* In one piece: before 2.6 expat begins anew with an unfinished name at each. */
        if (XML_Parse(r.parser, text, (int)length, true) != XML_STATUS_OK)
            code = not_a_model(path, &r);
        else if (!sort_edges(graph))
            code = failed_work("--model %s cannot be read: no memory", path);
        else
            code = EXIT_DONE;
        XML_ParserFree(r.parser);
    }
    free(text);
    if (code != EXIT_DONE) graph_free(graph);
    return code;
}

void graph_free(struct graph *graph)
{
    for (size_t i = 0; i < graph->layer_count; i++) {
        struct graph_layer *layer = &graph->layers[i];
        free(layer->name);
        free(layer->type);
        for (size_t a = 0; a < layer->attribute_count; a++) {
            free(layer->attributes[a].name);
            free(layer->attributes[a].value);
        }
        for (size_t p = 0; p < layer->port_count; p++) free(layer->ports[p].precision);
        free(layer->attributes);
        free(layer->ports);
    }
    free(graph->layers);
    free(graph->edges);
    free(graph->producers);
    *graph = (struct graph){0};
}

const char *graph_attribute_of(const struct graph_layer *layer, const char *name)
{
    for (size_t i = 0; i < layer->attribute_count; i++)
        if (strcmp(layer->attributes[i].name, name) == 0) return layer->attributes[i].value;
    return NULL;
}

bool graph_read_list(const char *text, int64_t *numbers, int most, int *count)
{
    *count = 0;
    return text == NULL || text[strspn(text, " ")] == '\0' ||
           parse_numbers(text, ',', numbers, most, count) == FLAW_NONE;
}

const struct graph_port *graph_input(const struct graph_layer *layer, int64_t id)
{
    for (size_t i = 0; i < layer->port_count; i++)
        if (!layer->ports[i].output && layer->ports[i].id == id) return &layer->ports[i];
    return NULL;
}

const struct graph_port *graph_output(const struct graph_layer *layer)
{
    return layer->outputs == 0 ? NULL : &layer->ports[layer->output];
}

const struct graph_layer *graph_producer(const struct graph *graph, const struct graph_layer *layer,
                                         int64_t port)
{
    const struct graph_edge wanted = {
        .scope = layer->scope, .to_layer = layer->id, .to_port = port};
    const struct graph_edge *key = &wanted, *const *found = bsearch(
                                                &key, graph->producers, graph->producer_count,
                                                sizeof *graph->producers, compare_targets);
    return found == NULL ? NULL : (*found)->from;
}
