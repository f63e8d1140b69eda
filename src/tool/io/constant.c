/* SPDX-License-Identifier: Apache-2.0 */
/* Reads constants of a model, and computes what follows from them. */
#include "tool/io/constant.h"

#include "base/checked.h"
#include "base/element_types.h"
#include "base/os.h"
#include "oracle/oracle.h"
#include "tool/system/system.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_COPIES = 16, /* copies of the whole file, in bytes */
    MOST_NODES = 64   /* behind one input: a damaged model may have a cycle, or too many paths */
};

void bin_open(struct bin *bin)
{
    bin->file = tconv_os_fopen(bin->path, "rb");
    if (bin->file == NULL) return;
    if (!system_file_size(bin->file, &bin->size)) {
        fclose(bin->file);
        bin->file = NULL;
        return;
    }
    if (__builtin_mul_overflow(bin->size, (uint64_t)MOST_COPIES, &bin->left))
        bin->left = UINT64_MAX;
}

/* The number of elements of a shape without open extents. False if there are open ones, or more
 * elements than 64 bits count. */
static bool count_elements(const tconv_shape *shape, uint64_t *count)
{
    *count = 1;
    bool counted = shape->rank <= TCONV_MAX_RANK;
    for (int i = 0; counted && i < shape->rank; i++)
        counted = shape->dim[i] >= 0 &&
                  !__builtin_mul_overflow(*count, (uint64_t)shape->dim[i], count);
    return counted;
}

/* The type, shape and place that a Const claims. */
static bool read_claims(struct entry *entry, const struct graph_layer *node, struct constant *c,
                        uint64_t *offset, uint64_t *bytes)
{
    const char *const element = graph_attribute_of(node, "element_type");
    const char *const texts[] = {graph_attribute_of(node, "offset"),
                                 graph_attribute_of(node, "size")};
    int64_t place[2];
    for (int i = 0; i < 2; i++) {
        int count;
        if (texts[i] == NULL || !graph_read_list(texts[i], &place[i], 1, &count) || count != 1 ||
            place[i] < 0) {
            entry_set_error(entry, "its constant %s has no valid offset and size", node->name);
            return false;
        }
    }
    if (element == NULL || !tconv_type_from_name(element, &c->type)) {
        entry_set_error(entry, "its constant %s has elements of type %s", node->name,
                        element == NULL ? "(none)" : element);
        return false;
    }
    if (!graph_read_list(graph_attribute_of(node, "shape"), c->shape.dim, TCONV_MAX_RANK,
                         &c->shape.rank)) {
        entry_set_error(entry, "its constant %s has a shape that cannot be read", node->name);
        return false;
    }
    *offset = (uint64_t)place[0];
    if (!count_elements(&c->shape, bytes) ||
        __builtin_mul_overflow(*bytes, (uint64_t)tconv_type_size(c->type), bytes) ||
        *bytes != (uint64_t)place[1]) {
        entry_set_error(
            entry, "its constant %s claims %" PRId64 " bytes, which its shape and type do not give",
            node->name, place[1]);
        return false;
    }
    return true;
}

/* Counts bytes that `node` takes. False, with the entry's error, if they are too many. */
static bool take(struct entry *entry, const struct graph_layer *node, struct bin *bin,
                 uint64_t bytes)
{
    if (bytes > bin->left) {
        entry_set_error(entry, "its %s %s is too much: layers took the bytes of %s %d times before",
                        strcmp(node->type, "Const") == 0 ? "constant" : node->type, node->name,
                        bin->path, MOST_COPIES);
        return false;
    }
    bin->left -= bytes;
    return true;
}

/* Copies the bytes out of the .bin, because offsets are not aligned. */
bool constant_read(struct entry *entry, const struct graph_layer *node, struct bin *bin,
                   struct constant *constant)
{
    uint64_t offset, bytes;
    *constant = (struct constant){.type = TCONV_F32};
    if (!read_claims(entry, node, constant, &offset, &bytes)) return false;
    if (bin->file == NULL) {
        entry_set_error(entry, "its weights are in %s, which cannot be opened", bin->path);
        entry->file_failed = true;
        return false;
    }
    if (offset > bin->size || bytes > bin->size - offset) {
        entry_set_error(
            entry, "its constant %s lies at bytes %" PRIu64 " to %" PRIu64 ", but %s has %" PRIu64,
            node->name, offset, offset + bytes, bin->path, bin->size);
        entry->file_failed = true;
        return false;
    }
    if (!take(entry, node, bin, bytes)) return false;
    void *values = tconv_allocate(bytes);
    if (values == NULL) {
        entry_set_error(entry, "there is no memory for the %" PRIu64 " bytes of its constant %s",
                        bytes, node->name);
        return false;
    }
    errno = 0; /* stays 0 if the file has been cut off since it was opened */
    if (fseeko(bin->file, (off_t)offset, SEEK_SET) != 0 ||
        fread(values, 1, (size_t)bytes, bin->file) != (size_t)bytes) {
        entry_set_error(entry, "its constant %s cannot be read from %s: %s", node->name, bin->path,
                        errno != 0 ? strerror(errno) : "it was cut off while it was read");
        entry->file_failed = true;
        free(values);
        return false;
    }
    constant->values = values;
    return true;
}

/* ---- nodes ---- */

/* What a computation has, and how many nodes it may still visit. */
struct computation {
    struct entry *entry;
    const struct graph *graph;
    struct bin *bin;
    const char *what;
    int nodes;
};

static bool compute(struct computation *c, const struct graph_layer *node, struct constant *out);

static bool compute_input(struct computation *c, const struct graph_layer *node, int64_t port,
                          struct constant *out)
{
    return compute(c, graph_producer(c->graph, node, port), out);
}

static int64_t elements_of(const struct constant *c)
{
    uint64_t count;
    count_elements(&c->shape, &count); /* its bytes were in a file */
    return (int64_t)count;
}

static bool is_floating(tconv_type type)
{
    return !tconv_type_is_integer(type);
}

static bool convert(struct computation *c, const struct graph_layer *node, struct constant *out)
{
    const char *const to = graph_attribute_of(node, "destination_type");
    tconv_type type;
    if (to == NULL || !tconv_type_from_name(to, &type) || !is_floating(type)) {
        entry_set_error(c->entry,
                        "its %s comes through a Convert to %s: it must be to f16, bf16, "
                        "f32 or f64",
                        c->what, to == NULL ? "nothing" : to);
        return false;
    }
    if (!compute_input(c, node, 0, out)) return false;
    if (type == out->type) return true;
    if (out->type == TCONV_I64 || out->type == TCONV_U64) {
        entry_set_error(c->entry, "its %s comes from integers of 64 bits through a Convert",
                        c->what);
        return false;
    }
    const int64_t count = elements_of(out);
    /* 8 times a file at most: bytes become f64. */
    const uint64_t bytes = (uint64_t)count * tconv_type_size(type);
    if (!take(c->entry, node, c->bin, bytes)) return false;
    void *values = tconv_allocate(bytes);
    if (values == NULL) {
        entry_set_error(c->entry, "there is no memory for its %s", c->what);
        return false;
    }
    for (int64_t i = 0; i < count; i++)
        tconv_oracle_write(type, values, i, tconv_oracle_read(out->type, out->values, i));
    free(out->values);
    out->values = values;
    out->type = type;
    return true;
}

/* True if a tensor of the first shape can be repeated along axes of extent 1, and along new axes in
 * front, to have the second shape. */
static bool broadcasts(const tconv_shape *from, const tconv_shape *to)
{
    bool fits = from->rank <= to->rank;
    for (int i = 0; fits && i < from->rank; i++) {
        const int64_t extent = from->dim[i];
        fits = extent == 1 || extent == to->dim[to->rank - from->rank + i];
    }
    return fits;
}

/* Element `index` of a tensor that is repeated to have the shape. */
static double read_broadcast(const struct constant *c, const tconv_shape *shape, int64_t index)
{
    int64_t at = 0, step = 1;
    for (int i = c->shape.rank - 1, j = shape->rank - 1; i >= 0; i--, j--) {
        if (c->shape.dim[i] != 1) at += index % shape->dim[j] * step;
        index /= shape->dim[j];
        step *= c->shape.dim[i];
    }
    return tconv_oracle_read(c->type, c->values, at);
}

/* Checks that a node broadcasts as NumPy does, or not at all. */
static bool check_broadcast(struct computation *c, const struct graph_layer *node)
{
    const char *const rule = graph_attribute_of(node, "auto_broadcast");
    if (rule == NULL || strcmp(rule, "numpy") == 0 || strcmp(rule, "none") == 0) return true;
    entry_set_error(c->entry,
                    "its %s comes through a %s with auto_broadcast \"%s\": it must be "
                    "numpy or none",
                    c->what, node->type, rule);
    return false;
}

/* Subtract or Multiply. The result takes the place of the operand that has its shape. */
static bool combine(struct computation *c, const struct graph_layer *node, struct constant *out)
{
    struct constant a = {.values = NULL}, b = {.values = NULL};
    const bool subtract = strcmp(node->type, "Subtract") == 0;
    bool good = check_broadcast(c, node) && compute_input(c, node, 0, &a) &&
                compute_input(c, node, 1, &b);
    if (good && (a.type != b.type || !is_floating(a.type))) {
        entry_set_error(c->entry,
                        "its %s comes through a %s of %s and %s: both must be the same "
                        "floating-point type",
                        c->what, node->type, tconv_type_name(a.type), tconv_type_name(b.type));
        good = false;
    }
    const bool into_a = good && broadcasts(&b.shape, &a.shape);
    if (good && !into_a && !broadcasts(&a.shape, &b.shape)) {
        entry_set_error(c->entry,
                        "its %s comes through a %s of two tensors of which none can be "
                        "broadcast to the other",
                        c->what, node->type);
        good = false;
    }
    struct constant *const result = into_a ? &a : &b, *const other = into_a ? &b : &a;
    const int64_t count = good ? elements_of(result) : 0;
    for (int64_t i = 0; i < count; i++) {
        const double x = read_broadcast(&a, &result->shape, i),
                     y = read_broadcast(&b, &result->shape, i);
        tconv_oracle_write(result->type, result->values, i, subtract ? x - y : x * y);
    }
    *out = *result;
    free(other->values);
    return good;
}

static bool reshape(struct computation *c, const struct graph_layer *node, struct constant *out)
{
    const struct graph_port *const port = graph_output(node);
    uint64_t count;
    if (!compute_input(c, node, 0, out)) return false;
    if (port == NULL || !count_elements(&port->shape, &count) ||
        count != (uint64_t)elements_of(out)) {
        entry_set_error(c->entry,
                        "its %s comes through the Reshape %s, whose output has another "
                        "number of elements than its input",
                        c->what, node->name);
        return false;
    }
    out->shape = port->shape;
    return true;
}

/* FakeQuantize as OpenVINO defines it: in f32, rounded to the nearest level, ties to even. */
static float quantize(float x, const float *limits, float steps)
{
    const float in_low = limits[0], in_high = limits[1], low = limits[2], high = limits[3];
    if (x <= fminf(in_low, in_high)) return low;
    if (x > fmaxf(in_low, in_high)) return high;
    return nearbyintf((x - in_low) / (in_high - in_low) * steps) / steps * (high - low) + low;
}

static bool fake_quantize(struct computation *c, const struct graph_layer *node,
                          struct constant *out)
{
    enum { LIMITS = 4, MOST_LEVELS = 1 << 24 /* f32 counts exactly so far */ };
    struct constant limit[LIMITS] = {{.values = NULL}};
    int64_t levels = 0;
    int count;
    if (!graph_read_list(graph_attribute_of(node, "levels"), &levels, 1, &count) || count != 1 ||
        levels < 2 || levels > MOST_LEVELS) {
        entry_set_error(c->entry,
                        "its %s comes through a FakeQuantize without a valid number of "
                        "levels",
                        c->what);
        return false;
    }
    bool good = check_broadcast(c, node) && compute_input(c, node, 0, out);
    for (int i = 0; good && i < LIMITS; i++) {
        good = compute_input(c, node, i + 1, &limit[i]);
        if (good && (limit[i].type != TCONV_F32 || out->type != TCONV_F32 ||
                     !broadcasts(&limit[i].shape, &out->shape))) {
            entry_set_error(c->entry,
                            "its %s comes through a FakeQuantize whose inputs are not "
                            "all f32, or whose limits cannot be broadcast to its data",
                            c->what);
            good = false;
        }
    }
    const int64_t elements = good ? elements_of(out) : 0;
    for (int64_t i = 0; i < elements; i++) {
        float at[LIMITS];
        for (int l = 0; l < LIMITS; l++) at[l] = (float)read_broadcast(&limit[l], &out->shape, i);
        float *const x = &((float *)out->values)[i];
        *x = quantize(*x, at, (float)(levels - 1));
    }
    for (int i = 0; i < LIMITS; i++) free(limit[i].values);
    return good;
}

/* Sets out->values to NULL or to memory that the caller frees, also after a failure. */
static bool compute(struct computation *c, const struct graph_layer *node, struct constant *out)
{
    static const struct {
        const char *type;
        bool (*compute)(struct computation *c, const struct graph_layer *node,
                        struct constant *out);
    } nodes[] = {{"Convert", convert},
                 {"Subtract", combine},
                 {"Multiply", combine},
                 {"Reshape", reshape},
                 {"FakeQuantize", fake_quantize}};
    *out = (struct constant){.values = NULL};
    if (c->nodes-- <= 0) {
        entry_set_error(c->entry, "its %s comes through more than %d nodes", c->what, MOST_NODES);
        return false;
    }
    if (node != NULL && strcmp(node->type, "Const") == 0)
        return constant_read(c->entry, node, c->bin, out);
    for (size_t i = 0; node != NULL && i < sizeof nodes / sizeof *nodes; i++)
        if (strcmp(node->type, nodes[i].type) == 0) return nodes[i].compute(c, node, out);
    entry_set_error(c->entry,
                    "its %s comes from %s%s%s: only constants can be read, and Convert, "
                    "Subtract, Multiply, Reshape and FakeQuantize of them",
                    c->what, node == NULL ? "nothing" : node->type, node == NULL ? "" : " ",
                    node == NULL ? "" : node->name);
    return false;
}

bool constant_compute(struct entry *entry, const struct graph *graph,
                      const struct graph_layer *layer, int64_t port, const char *what,
                      struct bin *bin, struct constant *constant)
{
    struct computation c = {entry, graph, bin, what, MOST_NODES};
    if (compute_input(&c, layer, port, constant)) return true;
    free(constant->values);
    constant->values = NULL;
    return false;
}
