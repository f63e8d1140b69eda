/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the transposed convolutions in a model's graph: their attributes, constant filters and
 * output shapes. A layer that cannot be read exactly gets an error; nothing is guessed. */
#include "tool/io/model.h"

#include "base/convolves.h"
#include "base/element_types.h"
#include "base/members.h"
#include "base/text.h"
#include "tool/io/constant.h"
#include "tool/io/in_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The operator that tconv_cl.openvino.convert puts into models: a transposed convolution, or a
 * convolution with an upsampling or a shuffle, with what was fused behind it. */
static const char converted_type[] = "TransposedConvolution";

static bool is_true(const struct graph_layer *layer, const char *name)
{
    const char *value = graph_attribute_of(layer, name);
    return value != NULL && strcmp(value, "true") == 0;
}

static int number_of(const struct graph_layer *layer, const char *name)
{
    enum { MOST = 1000 }; /* a file may say anything */
    const char *value = graph_attribute_of(layer, name);
    const long number = value == NULL ? 0 : strtol(value, NULL, 10);
    return number < 0 ? 0 : number > MOST ? MOST : (int)number;
}

static tconv_activation activation_of(const struct graph_layer *layer)
{
    tconv_activation activation = TCONV_ACTIVATION_NONE;
    const char *name = graph_attribute_of(layer, "activation");
    if (name != NULL) tconv_activation_from_name(name, &activation);
    return activation;
}

/* The number of inputs of a converted operator beside data, filter and output_shape: they belong to
 * what was fused. */
static int fused_inputs(const struct graph_layer *layer)
{
    return is_true(layer, "scale") + is_true(layer, "bias") + is_true(layer, "residual") +
           tconv_activation_has_slope(activation_of(layer)) + number_of(layer, "concat_before") +
           number_of(layer, "concat_after");
}

static bool has_fused(const struct graph_layer *layer)
{
    return fused_inputs(layer) > 0 || activation_of(layer) != TCONV_ACTIVATION_NONE;
}

static void read_list(struct entry *entry, const struct graph_layer *layer, const char *name,
                      tconv_list *list)
{
    const char *text = graph_attribute_of(layer, name);
    if (!graph_read_list(text, list->value, TCONV_MAX_AXES, &list->count))
        entry_set_error(entry, "its %s is \"%s\", which is not a list of up to %d numbers", name,
                        text, TCONV_MAX_AXES);
}

static void read_attributes(struct entry *entry, const struct graph_layer *layer)
{
    tconv_problem *p = &entry->problem;
#define READ(kind, member, ...) read_list(entry, layer, #member, &p->member);
    TCONV_PROBLEM_LISTS(READ)
#undef READ
    const char *auto_pad = graph_attribute_of(layer, "auto_pad");
    if (auto_pad != NULL && !tconv_auto_pad_from_name(auto_pad, &p->auto_pad))
        entry_set_error(entry, "its auto_pad is \"%s\", which is not a padding mode", auto_pad);
}

/* Reads the filter: a constant, or what follows from constants. */
static void read_filter(struct entry *entry, const struct graph *graph,
                        const struct graph_layer *layer, struct bin *bin)
{
    struct constant filter;
    if (!constant_compute(entry, graph, layer, 1, "filter", bin, &filter)) return;
    entry->problem.filter = filter.shape;
    entry->weights = filter.values;
    entry->weights_type = entry->problem.filter_type = filter.type;
    if (filter.type != entry->problem.data_type)
        entry_set_error(entry, "its filter has elements of type %s, but its data %s",
                        tconv_type_name(filter.type), tconv_type_name(entry->problem.data_type));
}

/* Reads the third input: the output's spatial shape, a constant of any integer type. */
static void read_output_shape(struct entry *entry, const struct graph *graph,
                              const struct graph_layer *layer, struct bin *bin)
{
    const struct graph_layer *source = graph_producer(graph, layer, 2 + fused_inputs(layer));
    if (source == NULL || options.output_shape != NULL)
        return; /* --output-shape counts instead, and is read with the options */
    if (strcmp(source->type, "Const") != 0) {
        entry_set_error(
            entry,
            "its output_shape is computed by %s when the model runs: give it with --output-shape",
            source->type);
        return;
    }
    struct constant constant;
    if (!constant_read(entry, source, bin, &constant)) return;
    const unsigned char *const values = constant.values;
    const size_t size = tconv_type_size(constant.type);
    const bool is_signed = tconv_type_is_signed(constant.type);
    if (!tconv_type_is_integer(constant.type) || constant.shape.rank != 1 ||
        constant.shape.dim[0] > TCONV_MAX_AXES) {
        entry_set_error(entry, "its output_shape is not a list of up to %d integers",
                        TCONV_MAX_AXES);
    } else {
        tconv_list *list = &entry->problem.output_shape;
        list->count = (int)constant.shape.dim[0];
        for (int i = 0; i < list->count; i++) {
            uint64_t bits = 0;
            for (size_t b = 0; b < size; b++)
                bits |= (uint64_t)values[(size_t)i * size + b] << (8 * b);
            const unsigned spare = 64 - 8 * (unsigned)size;
            list->value[i] = is_signed ? (int64_t)(bits << spare) >> spare : (int64_t)bits;
        }
    }
    free(constant.values);
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
        entry_set_error(entry, "its data has elements of type %s, which is not an element type",
                        precision);
}

/* Reads the attribute `form` of a converted operator. False if it is unknown. */
static bool read_form(const char *form, tconv_operation *operation)
{
    static const struct {
        const char *form;
        tconv_operation operation;
    } forms[] = {
        {"upsample", TCONV_UPSAMPLE_CONV},
        {"shuffle", TCONV_CONV_PIXEL_SHUFFLE},
        {"shuffle_dcr", TCONV_CONV_PIXEL_SHUFFLE_DCR},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(form, forms[i].form) == 0) {
            *operation = forms[i].operation;
            return true;
        }
    return strcmp(form, "transposed") == 0;
}

static bool read_layer(struct suite *suite, const struct graph *graph,
                       const struct graph_layer *layer, struct bin *bin)
{
    char id[32];
    snprintf(id, sizeof id, "%zu", suite->count);
    struct entry *entry = suite_add(suite, id, layer->name);
    if (entry == NULL) return false;
    tconv_problem *p = &entry->problem;
    const bool grouped = is_true(layer, "grouped") ||
                         strcmp(layer->type, "GroupConvolutionBackpropData") == 0;
    const char *form = graph_attribute_of(layer, "form");
    p->operation = grouped ? TCONV_GROUP_CONV_BACKPROP : TCONV_CONV_BACKPROP;
    if (form != NULL && !read_form(form, &p->operation))
        entry_set_error(entry, "its form is \"%s\", which this version does not know", form);
    const bool forward = tconv_convolves(p);
    p->rules = forward ? TCONV_RULES_SPEC : TCONV_RULES_OPENVINO;
    if (options.rules != NULL) tconv_rules_from_name(options.rules, &p->rules);
    const struct graph_port *data = graph_input(layer, 0);
    if (data == NULL) {
        entry_set_error(entry, "it has no data input");
        return true;
    }
    p->data = data->shape;
    read_type(entry, data->precision);
    if (is_true(layer, "requantize"))
        entry_set_error(entry, "tconv_cl.openvino.convert made it compute with integers: give the "
                               "original model");
    read_attributes(entry, layer);
    read_filter(entry, graph, layer, bin);
    if (forward && grouped) suite_take_groups(p);
    if (is_true(layer, "channels_last")) suite_oneapi(p);
    if (!forward) /* its factors are attributes */
        read_output_shape(entry, graph, layer, bin);
    return true;
}

/* "model.xml" -> "model.bin" */
char *model_weights_path(const char *path)
{
    const size_t stem = strlen(path) - (has_ending(path, ".xml") ? strlen(".xml") : 0);
    char *name = malloc(stem + 5);
    if (name != NULL) snprintf(name, stem + 5, "%.*s.bin", (int)stem, path);
    return name;
}

enum exit_code model_read(const char *path, struct suite *suite)
{
    *suite = (struct suite){NULL, 0};
    struct graph graph;
    enum exit_code code = graph_read(path, &graph);
    if (code != EXIT_DONE) return code;
    char *name = model_weights_path(path);
    struct bin bin = {.path = name == NULL ? "" : name};
    if (name != NULL) bin_open(&bin);
    bool memory = name != NULL;
    int fused = 0;
    for (size_t i = 0; i < graph.layer_count && memory; i++) {
        const struct graph_layer *layer = &graph.layers[i];
        const bool converted = strcmp(layer->type, converted_type) == 0;
        if (!converted && strcmp(layer->type, "ConvolutionBackpropData") != 0 &&
            strcmp(layer->type, "GroupConvolutionBackpropData") != 0)
            continue;
        memory = read_layer(suite, &graph, layer, &bin);
        fused += converted && memory && has_fused(layer) &&
                 suite->entries[suite->count - 1].error == NULL;
    }
    if (!memory)
        code = failed_work("--model %s cannot be read: no memory", path);
    else if (suite->count == 0)
        code = wrong_request("--model %s has no layer of type ConvolutionBackpropData or "
                             "GroupConvolutionBackpropData",
                             path);
    else if (fused > 0)
        notice(
            "--model %s was saved after tconv_cl.openvino.convert: what was fused into %d of its "
            "layers is left out (bias, scale, residual, activation, Concat)",
            path, fused);
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

bool model_set_data(struct entry *entry, const tconv_shape *data)
{
    if (model_data_fits(entry, data)) {
        entry->problem.data = *data;
        return true;
    }
    const tconv_shape *own = &entry->problem.data;
    char want[NUMBERS_TEXT], got[NUMBERS_TEXT];
    write_numbers(own->dim, own->rank < TCONV_MAX_RANK ? own->rank : TCONV_MAX_RANK, want,
                  sizeof want);
    write_numbers(data->dim, data->rank, got, sizeof got);
    entry_set_error(entry, "its data has shape %s in the model, not %s", want, got);
    return false;
}
