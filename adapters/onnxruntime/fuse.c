/* SPDX-License-Identifier: Apache-2.0 */
/* Fuses the nodes behind a layer that tconv-cl can compute with it. */
#include "fuse.h"

#include "constant.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- numbers for each channel ---- */

/* True if a tensor of this shape has one number for each channel of the layer's output, and does
 * not broadcast the output. */
static bool is_per_channel(const struct node_layer *layer, const tconv_shape *shape)
{
    const int rank = rank_of(layer), axis = shape->rank - rank + 1;
    if (channels_of(layer) == 0 || (axis != 0 && axis != 1)) return false;
    for (int i = 0; i < shape->rank; i++)
        if (shape->dim[i] != (i == axis ? channels_of(layer) : 1)) return false;
    return true;
}

/* Reads a constant operand of the layer's output: one number, or one for each channel. */
static bool operand_of(const struct node_layer *layer, const OrtValueInfo *value,
                       struct numbers *out)
{
    struct constant constant;
    if (!constant_of(value, &constant)) return false;
    const bool one = is_one_number(&constant.shape) && constant.shape.rank <= rank_of(layer);
    return (one || is_per_channel(layer, &constant.shape)) && numbers_of(&constant, out);
}

/* Reads a constant list of one number for each channel. */
static bool list_of(const struct node_layer *layer, const OrtValueInfo *value, struct numbers *out)
{
    struct constant constant;
    const int64_t channels = channels_of(layer);
    return constant_of(value, &constant) && constant.shape.rank == 1 &&
           (channels == 0 || constant.shape.dim[0] == channels) && numbers_of(&constant, out);
}

/* ---- one factor and one addend for each channel ---- */

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* x * scale / sqrt(variance + epsilon) + (shift - mean * that) */
static bool normalization_of(const struct node_layer *layer, const OrtNode *node,
                             struct numbers *factor, struct numbers *addend)
{
    const double epsilon = number_of(node, "epsilon", (double)1e-5f);
    if (channels_of(layer) == 0 || integer_of(node, "training_mode", 0) != 0) return false;
    struct numbers mean = {0}, variance = {0};
    const bool known = list_of(layer, input_of(node, 1), factor) &&
                       list_of(layer, input_of(node, 2), addend) &&
                       list_of(layer, input_of(node, 3), &mean) &&
                       list_of(layer, input_of(node, 4), &variance);
    for (int64_t c = 0; known && c < numbers_count(factor); c++) {
        const double by = numbers_at(factor, c) / sqrt(numbers_at(&variance, c) + epsilon);
        numbers_set(factor, c, by);
        numbers_set(addend, c, numbers_at(addend, c) - numbers_at(&mean, c) * by);
    }
    numbers_release(&mean);
    numbers_release(&variance);
    return known;
}

static void negate(struct numbers *numbers)
{
    for (int64_t i = 0; i < numbers_count(numbers); i++)
        numbers_set(numbers, i, -numbers_at(numbers, i));
}

/* Reads a node that computes x * factor + addend of its input x. `factor` is 1 and `addend` 0
 * before. */
static bool affine_of(const struct node_layer *layer, const OrtNode *node, int64_t input,
                      struct numbers *factor, struct numbers *addend)
{
    if (is_operator(node, "BatchNormalization"))
        return input == 0 && normalization_of(layer, node, factor, addend);
    const OrtValueInfo *other = input_of(node, input == 0 ? 1 : 0);
    if (is_operator(node, "Add")) return operand_of(layer, other, addend);
    if (is_operator(node, "Mul")) return operand_of(layer, other, factor);
    if (is_operator(node, "Div")) {
        if (input != 0 || !operand_of(layer, other, factor)) return false;
        for (int64_t i = 0; i < numbers_count(factor); i++)
            numbers_set(factor, i, 1 / numbers_at(factor, i));
        return true;
    }
    if (!is_operator(node, "Sub") || !operand_of(layer, other, addend)) return false;
    negate(input == 0 ? addend : factor); /* x - a, or a - x */
    return true;
}

/* Gives the layer scale 1 and the node's bias as its bias. False if the node's bias is not a
 * constant. */
static bool begin_affine(struct node_layer *layer)
{
    if (layer->folded) return true;
    const OrtValueInfo *bias = layer->tensor[TENSOR_BIAS];
    const bool own = bias == input_of(layer->convolution, TENSOR_BIAS);
    layer->scale = (struct numbers){.one = 1};
    return bias == NULL ||
           (own ? list_of(layer, bias, &layer->bias) : operand_of(layer, bias, &layer->bias));
}

static bool fold(struct node_layer *layer, const struct numbers *factor,
                 const struct numbers *addend)
{
    const double most = layer->request.problem.data_type == TCONV_F64 ? DBL_MAX : (double)FLT_MAX;
    const int64_t count = larger(numbers_count(&layer->scale), numbers_count(factor));
    const int64_t bias_count =
        larger(numbers_count(&layer->bias), larger(numbers_count(factor), numbers_count(addend)));
    struct numbers scale, bias = {0};
    bool fits = numbers_create(&scale, count) && numbers_create(&bias, bias_count);
    for (int64_t c = 0; fits && c < count; c++) {
        numbers_set(&scale, c, numbers_at(&layer->scale, c) * numbers_at(factor, c));
        fits = fabs(numbers_at(&scale, c)) <= most;
    }
    for (int64_t c = 0; fits && c < bias_count; c++) {
        numbers_set(&bias, c,
                    numbers_at(&layer->bias, c) * numbers_at(factor, c) + numbers_at(addend, c));
        fits = fabs(numbers_at(&bias, c)) <= most;
    }
    if (!fits) {
        numbers_release(&scale);
        numbers_release(&bias);
        return false;
    }
    node_release(layer);
    layer->folded = true;
    layer->scale = scale;
    layer->bias = bias;
    layer->tensor[TENSOR_BIAS] = NULL;
    layer->request.epilogue.scale = numbers_differ(&scale, 1);
    layer->request.epilogue.bias = numbers_differ(&bias, 0);
    return true;
}

static bool fuse_affine(struct node_layer *layer, const OrtNode *node, int64_t input)
{
    const tconv_type type = layer->request.problem.data_type;
    /* For other types the library's scale has another type: the bias would be rounded twice. */
    if (type != tconv_scale_type(type)) return false;
    struct numbers factor = {.one = 1}, addend = {0};
    const bool fused = affine_of(layer, node, input, &factor, &addend) && begin_affine(layer) &&
                       fold(layer, &factor, &addend);
    numbers_release(&factor);
    numbers_release(&addend);
    if (!layer->folded) node_release(layer);
    return fused;
}

/* ---- tensors that are added ---- */

/* Fuses an added bias that is not a constant, or has a type that is not folded. */
static bool fuse_bias(struct node_layer *layer, const OrtNode *node, int64_t input)
{
    if (layer->folded || layer->tensor[TENSOR_BIAS] != NULL || !is_operator(node, "Add"))
        return false;
    const OrtValueInfo *other = input_of(node, input == 0 ? 1 : 0);
    tconv_shape shape;
    tconv_type type;
    tconv_error error;
    if (other == NULL || tensor_of(other, &shape, &type, &error) != TCONV_OK ||
        type != layer->request.problem.data_type || !is_per_channel(layer, &shape))
        return false;
    layer->tensor[TENSOR_BIAS] = other;
    layer->request.epilogue.bias = true;
    return true;
}

/* True if two tensors have the same shape at every run. Unknown extents must have the same name; a
 * rank of 0 may be an unknown one. */
static bool is_same_shape(const OrtValueInfo *one, const OrtValueInfo *other)
{
    const OrtValueInfo *const value[2] = {one, other};
    tconv_shape shape[2];
    tconv_type type[2];
    const char *name[2][TCONV_MAX_RANK];
    tconv_error error;
    for (int i = 0; i < 2; i++) {
        const OrtTypeInfo *info;
        const OrtTensorTypeAndShapeInfo *tensor = NULL;
        if (tensor_of(value[i], &shape[i], &type[i], &error) != TCONV_OK ||
            !succeeded(ort.GetValueInfoTypeInfo(value[i], &info), NULL) ||
            !succeeded(ort.CastTypeInfoToTensorInfo(info, &tensor), NULL) ||
            !succeeded(ort.GetSymbolicDimensions(tensor, name[i], (size_t)shape[i].rank), NULL))
            return false;
    }
    if (type[0] != type[1] || shape[0].rank != shape[1].rank || shape[0].rank == 0) return false;
    for (int i = 0; i < shape[0].rank; i++)
        if (shape[0].dim[i] != shape[1].dim[i] ||
            (shape[0].dim[i] < 0 && (name[0][i][0] == '\0' || strcmp(name[0][i], name[1][i]) != 0)))
            return false;
    return true;
}

static bool fuse_residual(struct node_layer *layer, const OrtNode *node, int64_t input)
{
    const OrtValueInfo *output;
    if (!is_operator(node, "Add")) return false;
    const OrtValueInfo *sum = input_of(node, (size_t)input);
    const OrtValueInfo *other = input_of(node, input == 0 ? 1 : 0);
    if (sum == NULL || other == NULL || !succeeded(ort.Node_GetOutputs(node, &output, 1), NULL) ||
        !is_same_shape(sum, other) || !is_same_shape(sum, output))
        return false;
    layer->tensor[TENSOR_RESIDUAL] = other;
    layer->request.epilogue.residual = true;
    return true;
}

/* ---- activations ---- */

static double largest(tconv_type type)
{
    switch ((int)type) {
    case TCONV_F16: return 65504;
    case TCONV_BF16: return 0x1.fep127;
    case TCONV_F64: return DBL_MAX;
    default: return (double)FLT_MAX;
    }
}

/* True if the layer takes it as a number of an activation. */
static bool is_number(const struct node_layer *layer, double number)
{
    return fabs(number) <= (layer->request.problem.data_type == TCONV_F64 ? DBL_MAX : FLT_MAX);
}

static bool fuse_clip(struct node_layer *layer, const OrtNode *node)
{
    tconv_epilogue *epilogue = &layer->request.epilogue;
    const double most = largest(layer->request.problem.data_type);
    /* The bounds are attributes up to version 6, then inputs. */
    double bound[2] = {number_of(node, "min", -most), number_of(node, "max", most)};
    for (size_t i = 0; i < 2; i++) {
        const OrtValueInfo *input = input_of(node, i + 1);
        if (input != NULL && !number_in(input, &bound[i])) return false;
    }
    if (!is_number(layer, bound[0]) || !is_number(layer, bound[1]) || bound[0] > bound[1])
        return false;
    epilogue->activation = TCONV_ACTIVATION_CLAMP;
    epilogue->a = bound[0];
    epilogue->b = bound[1];
    return true;
}

static bool fuse_prelu(struct node_layer *layer, const OrtNode *node)
{
    tconv_epilogue *epilogue = &layer->request.epilogue;
    const OrtValueInfo *slope = input_of(node, 1);
    const tconv_type type = layer->request.problem.data_type;
    tconv_type slope_type;
    tconv_shape shape;
    tconv_error error;
    double only;
    if (number_in(slope, &only)) {
        if (!is_number(layer, only)) return false;
        epilogue->activation = TCONV_ACTIVATION_LEAKY_RELU;
        epilogue->a = only;
        return true;
    }
    /* For other types the library's slopes have another type. */
    if (type != tconv_scale_type(type) || slope == NULL ||
        tensor_of(slope, &shape, &slope_type, &error) != TCONV_OK || slope_type != type ||
        !is_per_channel(layer, &shape))
        return false;
    epilogue->activation = TCONV_ACTIVATION_PRELU;
    layer->tensor[TENSOR_SLOPE] = slope;
    return true;
}

static bool fuse_gelu(struct node_layer *layer, const OrtNode *node)
{
    char text[MOST_WORD];
    word_of(node, "approximate", "none", text);
    layer->request.epilogue.activation = strcmp(text, "tanh") == 0 ? TCONV_ACTIVATION_GELU_TANH
                                                                   : TCONV_ACTIVATION_GELU;
    return true;
}

static bool fuse_activation(struct node_layer *layer, const OrtNode *node, int64_t input)
{
    tconv_epilogue *epilogue = &layer->request.epilogue;
    if (input != 0) return false;
    if (is_operator(node, "Clip")) return fuse_clip(layer, node);
    if (is_operator(node, "PRelu")) return fuse_prelu(layer, node);
    if (is_operator(node, "Gelu")) return fuse_gelu(layer, node);
    static const struct {
        const char *name;
        tconv_activation activation;
        double alpha;
    } simple[] = {
        {"Relu", TCONV_ACTIVATION_RELU, 0},       {"LeakyRelu", TCONV_ACTIVATION_LEAKY_RELU, 0.01f},
        {"Sigmoid", TCONV_ACTIVATION_SIGMOID, 0}, {"Tanh", TCONV_ACTIVATION_TANH, 0},
        {"Elu", TCONV_ACTIVATION_ELU, 1},         {"HardSwish", TCONV_ACTIVATION_HARDSWISH, 0},
        {"Mish", TCONV_ACTIVATION_MISH, 0},
    };
    for (size_t i = 0; i < sizeof simple / sizeof *simple; i++) {
        if (!is_operator(node, simple[i].name)) continue;
        const double alpha = number_of(node, "alpha", simple[i].alpha);
        if (!is_number(layer, alpha)) return false;
        epilogue->activation = simple[i].activation;
        epilogue->a = alpha;
        return true;
    }
    return false;
}

/* The activation x * f(x) that has this node as its f. */
static tconv_activation gate_of(const OrtNode *node)
{
    if (is_operator(node, "Sigmoid")) return TCONV_ACTIVATION_SILU;
    if (is_operator(node, "Softplus")) return TCONV_ACTIVATION_MISH; /* with a Tanh behind it */
    if (is_operator(node, "HardSigmoid") && fabs(number_of(node, "alpha", 0.2) - 1.0 / 6) < 1e-7 &&
        fabs(number_of(node, "beta", 0.5) - 0.5) < 1e-7)
        return TCONV_ACTIVATION_HARDSWISH;
    return TCONV_ACTIVATION_NONE;
}

/* Finds x * f(x) written as separate nodes. Returns their number, or 0 if it is something else. */
static size_t gate_nodes(const OrtNode *const *readers, const OrtNode **nodes,
                         tconv_activation *activation)
{
    for (int first = 0; first < 2; first++) {
        const OrtNode *product = readers[1 - first];
        size_t count = 0;
        *activation = gate_of(readers[first]);
        if (*activation == TCONV_ACTIVATION_NONE || !is_operator(product, "Mul")) continue;
        nodes[count++] = readers[first];
        if (*activation == TCONV_ACTIVATION_MISH) {
            nodes[count] = reader_of(nodes[count - 1]);
            if (nodes[count] == NULL || !is_operator(nodes[count], "Tanh")) continue;
            count++;
        }
        if (reader_of(nodes[count - 1]) != product) continue;
        nodes[count++] = product;
        return count;
    }
    return 0;
}

/* Fuses the nodes that read the layer's output. False if the layer is unchanged. */
static bool fuse_next(struct node_layer *layer, size_t most, const struct taken *taken)
{
    enum { GATE_NODES = 3 };
    const OrtNode *readers[MOST_READERS], *nodes[GATE_NODES] = {NULL};
    int64_t inputs[MOST_READERS];
    tconv_activation gate = TCONV_ACTIVATION_NONE;
    size_t count = readers_of(layer->node[layer->count - 1], readers, inputs);
    if (count == 1) nodes[0] = readers[0];
    if (count == 2) count = gate_nodes(readers, nodes, &gate);
    if (count == 0 || layer->count + count > most) return false;
    for (size_t i = 0; i < count; i++)
        if (!is_free(nodes[i], taken)) return false;

    const bool sum_is_open = layer->tensor[TENSOR_RESIDUAL] == NULL;
    if (gate != TCONV_ACTIVATION_NONE)
        layer->request.epilogue.activation = gate;
    else if (!(sum_is_open &&
               (fuse_affine(layer, nodes[0], inputs[0]) || fuse_bias(layer, nodes[0], inputs[0]) ||
                fuse_residual(layer, nodes[0], inputs[0]))) &&
             !fuse_activation(layer, nodes[0], inputs[0]))
        return false;
    for (size_t i = 0; i < count; i++) layer->node[layer->count++] = nodes[i];
    return true;
}

void fuse_followers(struct node_layer *layer, size_t most, const struct taken *taken)
{
    if (most > MOST_NODES) most = MOST_NODES;
    while (layer->request.epilogue.activation == TCONV_ACTIVATION_NONE &&
           fuse_next(layer, most, taken)) {
    }
}
