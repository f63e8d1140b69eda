/* SPDX-License-Identifier: Apache-2.0 */
/* Turns layers between DequantizeLinear and QuantizeLinear into layers of integers. */
#include "quantize.h"

#include "constant.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* A DequantizeLinear, (q - zero_point) * scale, or a QuantizeLinear, the other way round. */
struct linear {
    const OrtNode *node;
    const OrtValueInfo *integers; /* the node's input or output */
    tconv_type type;              /* of the integers */
    double zero_point;
    double *scale; /* `count` */
    int64_t count;
};

static void release(struct linear *linear)
{
    free(linear->scale);
    linear->scale = NULL;
}

/* Reads a zero point: one number for all elements. */
static bool zero_point_of(const OrtNode *node, double *out)
{
    const OrtValueInfo *input = input_of(node, 2);
    struct constant constant;
    *out = 0;
    if (input == NULL) return true;
    if (!constant_of(input, &constant)) return false;
    int64_t count = 1;
    for (int i = 0; i < constant.shape.rank; i++) count *= constant.shape.dim[i];
    if (count < 1) return false;
    *out = element_of(&constant, 0);
    for (int64_t i = 1; i < count; i++)
        if (element_of(&constant, i) != *out) return false;
    return true;
}

/* Reads scales along `axis`, which has `count` elements. */
static bool scales_of(const OrtNode *node, int64_t axis, int64_t count, double *out)
{
    struct constant constant;
    int64_t given = 1, block = 0;
    size_t size = sizeof given;
    if (!constant_of(input_of(node, 1), &constant)) return false;
    if (attribute_of(node, "block_size", ORT_OP_ATTR_INT, &block, &size) && block != 0)
        return false;
    size = sizeof given;
    if (!attribute_of(node, "axis", ORT_OP_ATTR_INT, &given, &size)) given = 1;
    const bool one = is_one_number(&constant.shape);
    if (!one && (constant.shape.rank != 1 || constant.shape.dim[0] != count || given != axis))
        return false;
    for (int64_t i = 0; i < count; i++) {
        out[i] = element_of(&constant, one ? 0 : i);
        if (!(out[i] > 0) || !isfinite(out[i])) return false;
    }
    return true;
}

/* Reads such a node, with one scale for each of `count` elements of `axis`. False, with nothing to
 * free, if it is not one or its operands are not constants. */
static bool linear_of(const OrtNode *node, const char *name, int64_t axis, int64_t count,
                      struct linear *out)
{
    tconv_shape shape;
    tconv_error error;
    *out = (struct linear){.node = node, .count = count};
    if (node == NULL || !is_operator(node, name)) return false;
    out->integers = input_of(node, 0);
    if (name[0] == 'Q' && !succeeded(ort.Node_GetOutputs(node, &out->integers, 1), NULL))
        return false;
    out->scale = calloc((size_t)count, sizeof *out->scale);
    if (out->integers != NULL && out->scale != NULL && zero_point_of(node, &out->zero_point) &&
        scales_of(node, axis, count, out->scale) &&
        tensor_of(out->integers, &shape, &out->type, &error) == TCONV_OK)
        return true;
    release(out);
    return false;
}

static bool is_byte(tconv_type type)
{
    return type == TCONV_I8 || type == TCONV_U8;
}

/* The largest distance of an integer from the zero point. */
static double reach(const struct linear *linear)
{
    const double least = linear->type == TCONV_U8 ? 0 : -128;
    return fmax(linear->zero_point - least, least + 255 - linear->zero_point);
}

/* True if the largest sum fits into 32 bits. */
static bool sums_fit(const struct node_layer *layer, const struct linear *data,
                     const struct linear *filter)
{
    double terms = 1;
    for (int i = 0; i < layer->filter.rank; i++) {
        if (i == 1) continue;
        if (layer->filter.dim[i] < 0) return false; /* unknown */
        terms *= (double)layer->filter.dim[i];
    }
    terms /= (double)layer->request.problem.groups;
    return terms * reach(data) * reach(filter) <= INT32_MAX;
}

/* Reads the bias that the layer has as a tensor. `*node` becomes the node that computes it, if
 * there is one. */
static bool bias_of(const struct node_layer *layer, double *out, const OrtNode **node)
{
    const int64_t channels = channels_of(layer);
    const OrtValueInfo *value = layer->tensor[TENSOR_BIAS];
    struct constant constant;
    struct linear linear = {0};
    if (value == NULL) return true; /* `out` has what is folded, or zeros */
    const OrtNode *producer = producer_of(value);
    if (producer != NULL) {
        if (!linear_of(producer, "DequantizeLinear", 0, channels, &linear)) return false;
        value = linear.integers;
        *node = producer;
    }
    int64_t count = 1;
    const bool known = constant_of(value, &constant);
    for (int i = 0; known && i < constant.shape.rank; i++) count *= constant.shape.dim[i];
    const bool fits = known && count == channels;
    for (int64_t c = 0; fits && c < channels; c++) {
        out[c] = element_of(&constant, c);
        if (producer != NULL) out[c] = (out[c] - linear.zero_point) * linear.scale[c];
    }
    release(&linear);
    return fits;
}

/* True if the activation of x is scale times the activation of x / scale. Its numbers are then
 * converted to units of the output's integers. */
static bool scale_activation(tconv_epilogue *epilogue, double scale)
{
    switch ((int)epilogue->activation) {
    case TCONV_ACTIVATION_NONE:
    case TCONV_ACTIVATION_RELU:
    case TCONV_ACTIVATION_LEAKY_RELU: return true;
    case TCONV_ACTIVATION_CLAMP:
        epilogue->a = fmax(epilogue->a / scale, -(double)FLT_MAX);
        epilogue->b = fmin(epilogue->b / scale, (double)FLT_MAX);
        return true;
    default: return false;
    }
}

/* Adds the nodes of the integers to the layer's. False if another layer has one of them. */
static bool take(struct node_layer *layer, const OrtNode *const *nodes, size_t count, size_t most,
                 const struct taken *taken)
{
    if (most > MOST_NODES) most = MOST_NODES;
    for (size_t i = 0; i < count; i++) {
        if (nodes[i] == NULL) continue;
        if (layer->count == most || !is_free(nodes[i], taken)) return false;
        layer->node[layer->count++] = nodes[i];
    }
    return true;
}

/* Turns a layer of floats with scale and bias into a layer of integers. False if that is not
 * possible. */
static bool change(struct node_layer *layer, const struct linear *data, const struct linear *filter,
                   const struct linear *output, size_t most, const struct taken *taken)
{
    const int64_t channels = channels_of(layer);
    const OrtNode *first = layer->node[0], *bias_node = NULL;
    tconv_epilogue *epilogue = &layer->request.epilogue;
    if (!is_byte(data->type) || !is_byte(filter->type) || !is_byte(output->type) ||
        !sums_fit(layer, data, filter) || !scale_activation(epilogue, output->scale[0]) ||
        reader_of(data->node) != first || reader_of(filter->node) != first ||
        !bias_of(layer, layer->bias, &bias_node) ||
        (bias_node != NULL && reader_of(bias_node) != first) ||
        !take(layer, (const OrtNode *[]){data->node, filter->node, bias_node, output->node}, 4,
              most, taken))
        return false;
    epilogue->bias = false;
    for (int64_t c = 0; c < channels; c++) {
        const double before = layer->channels != 0 ? layer->scale[c] : 1;
        layer->scale[c] = before * data->scale[0] * filter->scale[c % filter->count] /
                          output->scale[0];
        layer->bias[c] /= output->scale[0];
        epilogue->bias |= layer->bias[c] != 0;
        if (!(fabs(layer->scale[c]) <= (double)FLT_MAX && fabs(layer->bias[c]) <= (double)FLT_MAX))
            return false;
    }
    tconv_problem *problem = &layer->request.problem;
    problem->data_type = data->type;
    problem->filter_type = filter->type;
    problem->output_type = output->type;
    epilogue->scale = epilogue->requantize = true;
    epilogue->data_zero_point = (int32_t)data->zero_point;
    epilogue->filter_zero_point = (int32_t)filter->zero_point;
    epilogue->output_zero_point = (int32_t)output->zero_point;
    layer->channels = channels;
    layer->tensor[TENSOR_DATA] = data->integers;
    layer->tensor[TENSOR_FILTER] = filter->integers;
    layer->tensor[TENSOR_BIAS] = NULL;
    return succeeded(
        ort.ValueInfo_IsConstantInitializer(filter->integers, &layer->request.constant_filter),
        NULL);
}

bool quantize(const struct node_layer *layer, size_t most, const struct taken *taken,
              struct node_layer *out)
{
    const int64_t channels = channels_of(layer);
    const OrtNode *last = reader_of(layer->node[layer->count - 1]);
    struct linear data = {0}, filter = {0}, output = {0};
    if (channels == 0 || layer->tensor[TENSOR_RESIDUAL] != NULL ||
        layer->tensor[TENSOR_SLOPE] != NULL || layer->request.problem.data_type != TCONV_F32 ||
        !linear_of(producer_of(layer->tensor[TENSOR_DATA]), "DequantizeLinear", 1, 1, &data))
        return false;
    *out = *layer;
    out->scale = calloc((size_t)channels, sizeof *out->scale);
    out->bias = calloc((size_t)channels, sizeof *out->bias);
    for (int64_t c = 0; out->scale != NULL && out->bias != NULL && c < channels; c++) {
        out->scale[c] = layer->channels != 0 ? layer->scale[c] : 1;
        out->bias[c] = layer->channels != 0 ? layer->bias[c] : 0;
    }
    const bool done = out->scale != NULL && out->bias != NULL &&
                      linear_of(producer_of(layer->tensor[TENSOR_FILTER]), "DequantizeLinear", 1,
                                layer->filter.dim[1], &filter) &&
                      linear_of(last, "QuantizeLinear", 1, 1, &output) &&
                      change(out, &data, &filter, &output, most, taken);
    release(&data);
    release(&filter);
    release(&output);
    if (!done) node_release(out);
    return done;
}
