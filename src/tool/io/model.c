/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the transposed convolutions in a model's graph: their attributes, constant filters and
 * output shapes. A layer that cannot be read exactly gets an error; nothing is guessed. */
#include "tool/io/model.h"

#include "base/element_types.h"
#include "base/os.h"
#include "base/text.h"
#include "tool/io/xml_graph.h"
#include "tool/system/system.h"

#include <CL/cl_half.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The weights file. */
struct bin {
    const char *path;
    FILE *file; /* NULL: there is none */
    uint64_t size;
    uint64_t left; /* bytes that constants may still take: each layer gets a copy, and many layers
                      may name the same constant */
};

enum { MOST_COPIES = 16 }; /* copies of the whole file, in bytes */

static void set_error(struct entry *entry, const char *format, ...) TCONV_PRINTF(2, 3);
static void set_error(struct entry *entry, const char *format, ...)
{
    if (entry->error != NULL) return; /* the first one counts */
    char text[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    entry->error = strdup(text);
}

/* "2, 2" into numbers; "" and NULL are none. */
static bool read_list(const char *text, int64_t *numbers, int most, int *count)
{
    *count = 0;
    if (text == NULL) return true;
    for (const char *at = text + strspn(text, " "); *at != '\0';) {
        char *end;
        errno = 0;
        const long long number = strtoll(at, &end, 10);
        if (end == at || errno == ERANGE || *count == most) return false;
        numbers[(*count)++] = number;
        at = end + strspn(end, " ");
        if (*at == '\0') return true;
        if (*at != ',') return false;
        at += 1 + strspn(at + 1, " ");
    }
    return true;
}

static void read_attributes(struct entry *entry, const struct graph_layer *layer)
{
    tconv_problem *p = &entry->problem;
    const struct {
        const char *name;
        tconv_list *list;
    } lists[] = {{"strides", &p->strides},
                 {"dilations", &p->dilations},
                 {"pads_begin", &p->pads_begin},
                 {"pads_end", &p->pads_end},
                 {"output_padding", &p->output_padding}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const char *text = graph_attribute_of(layer, lists[i].name);
        if (!read_list(text, lists[i].list->value, TCONV_MAX_AXES, &lists[i].list->count))
            set_error(entry, "its %s is \"%s\", which is not a list of up to %d numbers",
                      lists[i].name, text, TCONV_MAX_AXES);
    }
    const char *auto_pad = graph_attribute_of(layer, "auto_pad");
    if (auto_pad != NULL && !tconv_auto_pad_from_name(auto_pad, &p->auto_pad))
        set_error(entry, "its auto_pad is \"%s\", which is not a padding mode", auto_pad);
}

/* Copies the bytes of a constant out of the .bin, because offsets are not aligned. If they are
 * missing, returns NULL and sets the entry's error. */
static void *read_constant(struct entry *entry, const struct graph_layer *constant, struct bin *bin,
                           tconv_type *type, tconv_shape *shape)
{
    const char *const element = graph_attribute_of(constant, "element_type");
    const char *const texts[] = {graph_attribute_of(constant, "offset"),
                                 graph_attribute_of(constant, "size")};
    int64_t place[2];
    for (int i = 0; i < 2; i++) {
        int count;
        if (texts[i] == NULL || !read_list(texts[i], &place[i], 1, &count) || count != 1 ||
            place[i] < 0) {
            set_error(entry, "its constant %s has no valid offset and size", constant->name);
            return NULL;
        }
    }
    if (element == NULL || !tconv_type_from_name(element, type)) {
        set_error(entry, "its constant %s has elements of type %s", constant->name,
                  element == NULL ? "(none)" : element);
        return NULL;
    }
    if (!read_list(graph_attribute_of(constant, "shape"), shape->dim, TCONV_MAX_RANK,
                   &shape->rank)) {
        set_error(entry, "its constant %s has a shape that cannot be read", constant->name);
        return NULL;
    }
    uint64_t bytes = tconv_type_size(*type);
    bool counted = true;
    for (int i = 0; i < shape->rank; i++)
        counted &= shape->dim[i] >= 0 &&
                   !__builtin_mul_overflow(bytes, (uint64_t)shape->dim[i], &bytes);
    if (!counted || bytes != (uint64_t)place[1]) {
        set_error(entry,
                  "its constant %s claims %" PRId64 " bytes, which its shape and type do not give",
                  constant->name, place[1]);
        return NULL;
    }
    if (bin->file == NULL) {
        set_error(entry, "its weights are in %s, which cannot be opened", bin->path);
        entry->file_failed = true;
        return NULL;
    }
    if ((uint64_t)place[0] > bin->size || bytes > bin->size - (uint64_t)place[0]) {
        set_error(entry,
                  "its constant %s lies at bytes %" PRId64 " to %" PRIu64 ", but %s has %" PRIu64,
                  constant->name, place[0], (uint64_t)place[0] + bytes, bin->path, bin->size);
        entry->file_failed = true;
        return NULL;
    }
    if (bytes > bin->left) {
        set_error(entry, "its constant %s is too much: layers took the bytes of %s %d times before",
                  constant->name, bin->path, MOST_COPIES);
        return NULL;
    }
    bin->left -= bytes;
    void *values = bytes > PTRDIFF_MAX ? NULL : malloc(bytes == 0 ? 1 : (size_t)bytes);
    if (values == NULL) {
        set_error(entry, "there is no memory for the %" PRIu64 " bytes of its constant %s", bytes,
                  constant->name);
        return NULL;
    }
    if (fseeko(bin->file, (off_t)place[0], SEEK_SET) != 0 ||
        fread(values, 1, (size_t)bytes, bin->file) != (size_t)bytes) {
        set_error(entry, "its constant %s cannot be read from %s", constant->name, bin->path);
        free(values);
        return NULL;
    }
    return values;
}

/* Converts f16 or f32 numbers to f32 or f64. NULL if memory is missing. */
static void *widen(const void *values, tconv_type from, size_t count, tconv_type to)
{
    void *wide = count > PTRDIFF_MAX / tconv_type_size(to)
                     ? NULL
                     : malloc((count == 0 ? 1 : count) * tconv_type_size(to));
    for (size_t i = 0; wide != NULL && i < count; i++) {
        const float value = from == TCONV_F16 ? cl_half_to_float(((const cl_half *)values)[i])
                                              : ((const float *)values)[i];
        if (to == TCONV_F64)
            ((double *)wide)[i] = value;
        else
            ((float *)wide)[i] = value;
    }
    return wide;
}

/* Reads the filter: a constant of any type, or one behind a Convert to f32 or f64 (models with
 * compressed constants). */
static void read_filter(struct entry *entry, const struct graph *graph,
                        const struct graph_layer *layer, struct bin *bin)
{
    const struct graph_layer *source = graph_producer(graph, layer, 1), *convert = NULL;
    if (source != NULL && strcmp(source->type, "Convert") == 0) {
        convert = source;
        source = graph_producer(graph, convert, 0);
    }
    const char *to = convert == NULL ? NULL : graph_attribute_of(convert, "destination_type");
    tconv_type wide = TCONV_F32;
    if (source == NULL || strcmp(source->type, "Const") != 0 ||
        (convert != NULL && (to == NULL || !tconv_type_from_name(to, &wide) ||
                             (wide != TCONV_F32 && wide != TCONV_F64)))) {
        set_error(entry,
                  "its filter comes from %s%s%s%s: only a constant, or one behind a Convert to f32 "
                  "or f64, can be read",
                  convert == NULL ? "" : "Convert to ",
                  convert == NULL ? ""
                  : to == NULL    ? "nothing"
                                  : to,
                  convert == NULL ? "" : " <- ", source == NULL ? "nothing" : source->type);
        return;
    }
    tconv_type type = TCONV_F32;
    void *values = read_constant(entry, source, bin, &type, &entry->problem.filter);
    if (values == NULL) return;
    if (convert != NULL && (type == TCONV_F16 || (type == TCONV_F32 && wide == TCONV_F64))) {
        size_t count = 1;
        for (int i = 0; i < entry->problem.filter.rank; i++)
            count *= (size_t)entry->problem.filter.dim[i];
        entry->weights = widen(values, type, count, wide);
        if (entry->weights == NULL) set_error(entry, "there is no memory for its filter");
        free(values);
        type = wide;
    } else if (convert == NULL || type == wide) {
        entry->weights = values;
    } else {
        set_error(entry,
                  "its filter has elements of type %s behind a Convert to %s: f16 can be read "
                  "there, and f32",
                  tconv_type_name(type), tconv_type_name(wide));
        free(values);
    }
    entry->weights_type = entry->problem.filter_type = type;
    if (entry->error == NULL && type != entry->problem.data_type)
        set_error(entry, "its filter has elements of type %s, but its data %s",
                  tconv_type_name(type), tconv_type_name(entry->problem.data_type));
}

/* Reads the third input: the output's spatial shape, a constant of any integer type. */
static void read_output_shape(struct entry *entry, const struct graph *graph,
                              const struct graph_layer *layer, struct bin *bin)
{
    const struct graph_layer *source = graph_producer(graph, layer, 2);
    if (source == NULL || options.output_shape != NULL)
        return; /* --output-shape counts instead, and is read with the options */
    if (strcmp(source->type, "Const") != 0) {
        set_error(
            entry,
            "its output_shape is computed by %s when the model runs: give it with --output-shape",
            source->type);
        return;
    }
    tconv_type type = TCONV_I64;
    tconv_shape shape;
    unsigned char *values = read_constant(entry, source, bin, &type, &shape);
    if (values == NULL) return;
    const size_t size = tconv_type_size(type);
    const bool is_signed = tconv_type_is_signed(type);
    if (!tconv_type_is_integer(type) || shape.rank != 1 || shape.dim[0] > TCONV_MAX_AXES) {
        set_error(entry, "its output_shape is not a list of up to %d integers", TCONV_MAX_AXES);
    } else {
        tconv_list *list = &entry->problem.output_shape;
        list->count = (int)shape.dim[0];
        for (int i = 0; i < list->count; i++) {
            uint64_t bits = 0;
            for (size_t b = 0; b < size; b++)
                bits |= (uint64_t)values[(size_t)i * size + b] << (8 * b);
            const unsigned spare = 64 - 8 * (unsigned)size;
            list->value[i] = is_signed ? (int64_t)(bits << spare) >> spare : (int64_t)bits;
        }
    }
    free(values);
}

/* Reads the element type of a layer's data, as ports spell it: FP32, FP16, BF16, FP64, I8, U64. */
static void read_type(struct entry *entry, const char *precision)
{
    char name[16];
    if (precision[0] == '\0') return;
    const bool floating = strncmp(precision, "FP", 2) == 0;
    snprintf(name, sizeof name, "%s%.12s", floating ? "f" : "", precision + (floating ? 2 : 0));
    tconv_type type;
    if (tconv_type_from_name(name, &type))
        entry->problem.data_type = type;
    else
        set_error(entry, "its data has elements of type %s, which is not an element type",
                  precision);
}

static bool read_layer(struct suite *suite, const struct graph *graph,
                       const struct graph_layer *layer, struct bin *bin)
{
    char id[32];
    snprintf(id, sizeof id, "%zu", suite->count);
    struct entry *entry = suite_add(suite, id, layer->name);
    if (entry == NULL) return false;
    tconv_problem *p = &entry->problem;
    p->operation = strcmp(layer->type, "GroupConvolutionBackpropData") == 0
                       ? TCONV_GROUP_CONV_BACKPROP
                       : TCONV_CONV_BACKPROP;
    p->rules = TCONV_RULES_OPENVINO;
    if (options.rules != NULL) tconv_rules_from_name(options.rules, &p->rules);
    const struct graph_port *data = graph_input(layer, 0);
    if (data == NULL) {
        set_error(entry, "it has no data input");
        return true;
    }
    p->data = data->shape;
    read_type(entry, data->precision);
    read_attributes(entry, layer);
    read_filter(entry, graph, layer, bin);
    read_output_shape(entry, graph, layer, bin);
    return true;
}

/* "model.xml" -> "model.bin" */
char *model_weights_path(const char *path)
{
    const size_t length = strlen(path),
                 stem = length >= 4 && strcasecmp(path + length - 4, ".xml") == 0 ? length - 4
                                                                                  : length;
    char *name = malloc(stem + 5);
    if (name != NULL) snprintf(name, stem + 5, "%.*s.bin", (int)stem, path);
    return name;
}

/* Only a regular file has a size that can be trusted. */
static void open_bin(struct bin *bin)
{
    bin->file = tconv_os_fopen(bin->path, "rb");
    if (bin->file == NULL) return;
    if (!system_file_size(bin->file, &bin->size)) {
        fclose(bin->file);
        bin->file = NULL;
        return;
    }
    if (__builtin_mul_overflow(bin->size, MOST_COPIES, &bin->left)) bin->left = UINT64_MAX;
}

enum exit_code model_read(const char *path, struct suite *suite)
{
    *suite = (struct suite){NULL, 0};
    struct graph graph;
    enum exit_code code = graph_read(path, &graph);
    if (code != EXIT_DONE) return code;
    char *name = model_weights_path(path);
    struct bin bin = {.path = name == NULL ? "" : name};
    if (name != NULL) open_bin(&bin);
    bool memory = name != NULL;
    for (size_t i = 0; i < graph.layer_count && memory; i++) {
        const struct graph_layer *layer = &graph.layers[i];
        if (strcmp(layer->type, "ConvolutionBackpropData") == 0 ||
            strcmp(layer->type, "GroupConvolutionBackpropData") == 0)
            memory = read_layer(suite, &graph, layer, &bin);
    }
    if (!memory)
        code = failed_work("--model %s cannot be read: no memory", path);
    else if (suite->count == 0)
        code = wrong_request("--model %s has no layer of type ConvolutionBackpropData or "
                             "GroupConvolutionBackpropData",
                             path);
    if (bin.file != NULL) fclose(bin.file);
    free(name);
    graph_free(&graph);
    if (code != EXIT_DONE) suite_free(suite);
    return code;
}

struct entry *model_layer(const char *path, const struct suite *suite, const char *name)
{
    if (name == NULL && suite->count == 1) return &suite->entries[0];
    struct entry *found = NULL;
    int same = 0;
    char known[800];
    struct tconv_text list = tconv_text_begin(known, sizeof known);
    for (size_t i = 0; i < suite->count; i++) {
        struct entry *entry = &suite->entries[i];
        if (name != NULL && strcmp(entry->layer, name) == 0) {
            found = entry;
            same++;
        }
        tconv_text_add(&list, "%s%s %s", i == 0 ? "" : ", ", entry->id, entry->layer);
    }
    for (size_t i = 0; i < suite->count && name != NULL && same == 0; i++)
        if (strcmp(suite->entries[i].id, name) == 0) return &suite->entries[i];
    if (same == 1) return found;
    if (name == NULL)
        wrong_request("--model %s has %zu transposed convolutions: name one with --layer (%s)",
                      path, suite->count, known);
    else if (same > 1)
        wrong_request("--layer %s names %d layers of %s: give its number (%s)", name, same, path,
                      known);
    else
        wrong_request("--layer %s is not a transposed convolution of %s; there are: %s", name, path,
                      known);
    return NULL;
}

enum exit_code model_failure(const char *path, const struct entry *entry)
{
    return entry->file_failed
               ? failed_work("layer %s of --model %s: %s", entry->layer, path, entry->error)
               : wrong_request("layer %s of --model %s: %s", entry->layer, path, entry->error);
}

bool model_data_fits(const struct entry *entry, const tconv_shape *data)
{
    const tconv_shape *own = &entry->problem.data;
    bool fits = own->rank == 0 || own->rank == data->rank; /* rank 0: the model does not say */
    for (int i = 0; fits && i < own->rank; i++)
        fits = own->dim[i] == -1 || own->dim[i] == data->dim[i];
    return fits;
}

static const char *shape_text(const tconv_shape *shape, char *buffer, size_t size)
{
    struct tconv_text text = tconv_text_begin(buffer, size);
    for (int i = 0; i < shape->rank && i < TCONV_MAX_RANK; i++)
        tconv_text_add(&text, "%s%" PRId64, i == 0 ? "" : ",", shape->dim[i]);
    return buffer;
}

bool model_set_data(struct entry *entry, const tconv_shape *data)
{
    if (model_data_fits(entry, data)) {
        entry->problem.data = *data;
        return true;
    }
    const tconv_shape own = entry->problem.data;
    char want[200], got[200];
    set_error(entry, "its data has shape %s in the model, not %s",
              shape_text(&own, want, sizeof want), shape_text(data, got, sizeof got));
    return false;
}
