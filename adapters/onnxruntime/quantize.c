/* SPDX-License-Identifier: Apache-2.0 */
/* Turns layers between DequantizeLinear and QuantizeLinear into layers of integers. */
#include "quantize.h"

#include "constant.h"

#include <float.h>
#include <math.h>

/* A DequantizeLinear, (q - zero_point) * scale, or a QuantizeLinear, the other way round. */
struct linear {
    const OrtNode *node;
    const OrtValueInfo *integers; /* the node's input or output */
    tconv_type type;              /* of the integers */
    double zero_point;
    struct numbers scale;
};

/* Reads a zero point: one number for all elements. */
static bool zero_point_of(const OrtNode *node, double *out)
{
    const OrtValueInfo *input = input_of(node, 2);
    struct constant constant;
    *out = 0;
    if (input == NULL) return true;
    if (!constant_of(input, &constant)) return false;
    const int64_t count = elements_of(&constant);
    if (count < 1) return false;
    *out = element_of(&constant, 0);
    for (int64_t i = 1; i < count; i++)
        if (element_of(&constant, i) != *out) return false;
    return true;
}

/* Reads one scale, or those along `axis`, which has `count` elements. */
static bool scales_of(const OrtNode *node, int64_t axis, int64_t count, struct numbers *out)
{
    struct constant constant;
    if (!constant_of(input_of(node, 1), &constant) || integer_of(node, "block_size", 0) != 0)
        return false;
    const int64_t given = integer_of(node, "axis", 1);
    const bool one = is_one_number(&constant.shape);
    if (!one && (constant.shape.rank != 1 || constant.shape.dim[0] != count || given != axis))
        return false;
    if (!numbers_of(&constant, out)) return false;
    for (int64_t i = 0; i < numbers_count(out); i++)
        if (!(numbers_at(out, i) > 0) || !isfinite(numbers_at(out, i))) return false;
    return true;
}

/* Reads such a node, with one scale, or one for each of `count` elements of `axis`. False, with
 * nothing to free, if it is not one or its operands are not constants. */
static bool linear_of(const OrtNode *node, const char *name, int64_t axis, int64_t count,
                      struct linear *out)
{
    tconv_shape shape;
    tconv_error error;
    *out = (struct linear){.node = node};
    if (node == NULL || !is_operator(node, name)) return false;
    out->integers = input_of(node, 0);
    if (name[0] == 'Q' && !succeeded(ort.Node_GetOutputs(node, &out->integers, 1), NULL))
        return false;
    if (out->integers != NULL && zero_point_of(node, &out->zero_point) &&
        scales_of(node, axis, count, &out->scale) &&
        tensor_of(out->integers, &shape, &out->type, &error) == TCONV_OK)
        return true;
    numbers_release(&out->scale);
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
static bool bias_of(const struct node_layer *layer, struct numbers *out, const OrtNode **node)
{
    const int64_t channels = channels_of(layer);
    const OrtValueInfo *value = layer->tensor[TENSOR_BIAS];
    struct constant constant;
    struct linear linear = {0};
    const OrtNode *producer = producer_of(value);
    if (producer != NULL) {
        if (!linear_of(producer, "DequantizeLinear", 0, channels, &linear)) return false;
        value = linear.integers;
        *node = producer;
    }
    const bool fits = constant_of(value, &constant) && numbers_of(&constant, out) &&
                      numbers_count(out) == channels;
    for (int64_t c = 0; fits && producer != NULL && c < channels; c++)
        numbers_set(out, c,
                    (numbers_at(out, c) - linear.zero_point) * numbers_at(&linear.scale, c));
    numbers_release(&linear.scale);
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

/* Scale and bias of the sums of integers, in units of the output's: those of the float layer, of
 * which the bias is given. */
static bool in_units(const struct node_layer *layer, const struct numbers *bias, double data,
                     const struct numbers *filter, double output, struct node_layer *out)
{
    int64_t count = layer->folded ? numbers_count(&layer->scale) : 1;
    if (numbers_count(filter) > count) count = numbers_count(filter);
    if (!numbers_create(&out->scale, count) || !numbers_create(&out->bias, numbers_count(bias)))
        return false;
    for (int64_t c = 0; c < count; c++) {
        const double before = layer->folded ? numbers_at(&layer->scale, c) : 1;
        numbers_set(&out->scale, c, before * data * numbers_at(filter, c) / output);
        if (!(fabs(numbers_at(&out->scale, c)) <= (double)FLT_MAX)) return false;
    }
    for (int64_t c = 0; c < numbers_count(bias); c++) {
        numbers_set(&out->bias, c, numbers_at(bias, c) / output);
        if (!(fabs(numbers_at(&out->bias, c)) <= (double)FLT_MAX)) return false;
    }
    return true;
}

/* Turns a copy of a layer of floats, without its scale and bias, into a layer of integers. False if
 * that is not possible. */
static bool change(const struct node_layer *layer, struct node_layer *out,
                   const struct linear *data, const struct linear *filter,
                   const struct linear *output, size_t most, const struct taken *taken)
{
    const OrtNode *first = layer->convolution, *bias_node = NULL;
    const double step = output->scale.one;
    tconv_epilogue *epilogue = &out->request.epilogue;
    struct numbers bias = {0};
    const bool is_tensor = layer->tensor[TENSOR_BIAS] != NULL;
    const bool possible =
        is_byte(data->type) && is_byte(filter->type) && is_byte(output->type) &&
        sums_fit(layer, data, filter) && scale_activation(epilogue, step) &&
        reader_of(data->node) == first && reader_of(filter->node) == first &&
        (!is_tensor || bias_of(layer, &bias, &bias_node)) &&
        (bias_node == NULL || reader_of(bias_node) == first) &&
        take(out, (const OrtNode *[]){data->node, filter->node, bias_node, output->node}, 4, most,
             taken) &&
        in_units(layer, is_tensor ? &bias : &layer->bias, data->scale.one, &filter->scale, step,
                 out);
    numbers_release(&bias);
    if (!possible) return false;
    tconv_problem *problem = &out->request.problem;
    problem->data_type = data->type;
    problem->filter_type = filter->type;
    problem->output_type = output->type;
    epilogue->bias = numbers_differ(&out->bias, 0);
    epilogue->scale = epilogue->requantize = true;
    epilogue->data_zero_point = (int32_t)data->zero_point;
    epilogue->filter_zero_point = (int32_t)filter->zero_point;
    epilogue->output_zero_point = (int32_t)output->zero_point;
    out->folded = true;
    out->tensor[TENSOR_DATA] = data->integers;
    out->tensor[TENSOR_FILTER] = filter->integers;
    out->tensor[TENSOR_BIAS] = NULL;
    return succeeded(
        ort.ValueInfo_IsConstantInitializer(filter->integers, &out->request.constant_filter), NULL);
}

bool quantize(const struct node_layer *layer, size_t most, const struct taken *taken,
              struct node_layer *out)
{
    const OrtNode *last = reader_of(layer->node[layer->count - 1]);
    struct linear data = {0}, filter = {0}, output = {0};
    if (layer->request.problem.operation != TCONV_ONEAPI_CONV_BACKPROP || channels_of(layer) == 0 ||
        layer->tensor[TENSOR_RESIDUAL] != NULL || layer->tensor[TENSOR_SLOPE] != NULL ||
        layer->request.problem.data_type != TCONV_F32 ||
        !linear_of(producer_of(layer->tensor[TENSOR_DATA]), "DequantizeLinear", 1, 1, &data))
        return false;
    *out = *layer;
    out->scale = out->bias = (struct numbers){0};
    const bool done = linear_of(producer_of(layer->tensor[TENSOR_FILTER]), "DequantizeLinear", 1,
                                layer->filter.dim[1], &filter) &&
                      linear_of(last, "QuantizeLinear", 1, 1, &output) &&
                      change(layer, out, &data, &filter, &output, most, taken);
    numbers_release(&data.scale);
    numbers_release(&filter.scale);
    numbers_release(&output.scale);
    if (!done) node_release(out);
    return done;
}
