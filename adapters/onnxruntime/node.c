/* SPDX-License-Identifier: Apache-2.0 */
/* Reads ConvTranspose and Conv nodes of ONNX Runtime's graphs: attributes, shapes and types; and
 * the tensors of a run. */
#include "node.h"

#include <stdlib.h>
#include <string.h>

tconv_type type_of(ONNXTensorElementDataType type)
{
    switch ((int)type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT: return TCONV_F32;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16: return TCONV_F16;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE: return TCONV_F64;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16: return TCONV_BF16;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8: return TCONV_I8;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8: return TCONV_U8;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32: return TCONV_I32;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64: return TCONV_I64;
    default: return TCONV_TYPE_DEFAULT;
    }
}

static bool is_floating(tconv_type type)
{
    return type == TCONV_F32 || type == TCONV_F16 || type == TCONV_F64 || type == TCONV_BF16;
}

bool is_operator(const OrtNode *node, const char *name)
{
    const char *type, *domain;
    return succeeded(ort.Node_GetOperatorType(node, &type), NULL) && strcmp(type, name) == 0 &&
           succeeded(ort.Node_GetDomain(node, &domain), NULL) &&
           (domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0);
}

bool is_conv_transpose(const OrtNode *node)
{
    return is_operator(node, "ConvTranspose");
}

bool is_conv(const OrtNode *node)
{
    return is_operator(node, "Conv");
}

/* ---- nodes that layers have ---- */

bool taken_create(struct taken *out, const char *provider, size_t count)
{
    *out = (struct taken){.provider = provider, .slots = 2};
    while (out->slots < 2 * count) out->slots *= 2;
    out->slot = calloc(out->slots, sizeof *out->slot);
    return out->slot != NULL;
}

void taken_release(struct taken *taken)
{
    free(taken->slot);
}

/* The slot of the node, or the empty one where it belongs. */
static const OrtNode **slot_of(const struct taken *taken, const OrtNode *node)
{
    const uint64_t mixed = (uint64_t)(uintptr_t)node * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    size_t i = (size_t)mixed & (taken->slots - 1);
    while (taken->slot[i] != NULL && taken->slot[i] != node) i = (i + 1) & (taken->slots - 1);
    return &taken->slot[i];
}

void taken_add(struct taken *taken, const OrtNode *node)
{
    *slot_of(taken, node) = node;
}

bool is_free(const OrtNode *node, const struct taken *taken)
{
    const char *taker = NULL;
    if (taken->slots != 0 && *slot_of(taken, node) != NULL) return false;
    return succeeded(ort.Node_GetEpName(node, &taker), NULL) &&
           (taker == NULL || taker[0] == '\0' || strcmp(taker, taken->provider) == 0);
}

/* ---- graphs ---- */

tconv_status nodes_of(const OrtGraph *graph, const OrtNode ***out, size_t *count,
                      tconv_error *error)
{
    if (!succeeded(ort.Graph_GetNumNodes(graph, count), error)) return error->status;
    const OrtNode **nodes = calloc(*count + 1, sizeof *nodes);
    if (nodes == NULL)
        return fail(error, TCONV_ERROR_HOST_MEMORY, "no memory for %zu nodes", *count);
    if (!succeeded(ort.Graph_GetNodes(graph, nodes, *count), error)) {
        free(nodes);
        return error->status;
    }
    *out = nodes;
    return TCONV_OK;
}

tconv_status inputs_of(const OrtNode *node, const OrtValueInfo ***out, size_t *count,
                       tconv_error *error)
{
    if (!succeeded(ort.Node_GetNumInputs(node, count), error)) return error->status;
    const OrtValueInfo **inputs = calloc(*count + 1, sizeof *inputs);
    if (inputs == NULL)
        return fail(error, TCONV_ERROR_HOST_MEMORY, "no memory for %zu inputs", *count);
    if (!succeeded(ort.Node_GetInputs(node, inputs, *count), error)) {
        free(inputs);
        return error->status;
    }
    *out = inputs;
    return TCONV_OK;
}

const OrtValueInfo *input_of(const OrtNode *node, size_t index)
{
    const OrtValueInfo *inputs[MOST_INPUTS] = {NULL};
    size_t count;
    if (!succeeded(ort.Node_GetNumInputs(node, &count), NULL) || index >= count ||
        count > MOST_INPUTS || !succeeded(ort.Node_GetInputs(node, inputs, count), NULL) ||
        inputs[index] == NULL)
        return NULL;
    const char *name = "";
    return succeeded(ort.GetValueInfoName(inputs[index], &name), NULL) && name[0] != '\0'
               ? inputs[index]
               : NULL;
}

bool is_same_value(const OrtValueInfo *one, const OrtValueInfo *other)
{
    const char *name, *other_name;
    return one != NULL && other != NULL && succeeded(ort.GetValueInfoName(one, &name), NULL) &&
           succeeded(ort.GetValueInfoName(other, &other_name), NULL) &&
           strcmp(name, other_name) == 0;
}

tconv_status tensor_of(const OrtValueInfo *value, tconv_shape *shape, tconv_type *type,
                       tconv_error *error)
{
    const OrtTypeInfo *info;
    const OrtTensorTypeAndShapeInfo *tensor = NULL;
    ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    size_t rank = 0;
    if (!succeeded(ort.GetValueInfoTypeInfo(value, &info), error) ||
        !succeeded(ort.CastTypeInfoToTensorInfo(info, &tensor), error))
        return error->status;
    if (tensor == NULL) return fail(error, TCONV_ERROR_TYPE, "an input is not a tensor");
    if (!succeeded(ort.GetTensorElementType(tensor, &element), error) ||
        !succeeded(ort.GetDimensionsCount(tensor, &rank), error))
        return error->status;
    if (rank > TCONV_MAX_RANK) return fail(error, TCONV_ERROR_SHAPE, "a tensor has rank %zu", rank);
    *type = type_of(element);
    *shape = (tconv_shape){(int)rank, {0}};
    if (!succeeded(ort.GetDimensions(tensor, shape->dim, rank), error)) return error->status;
    return TCONV_OK;
}

tconv_status read_tensor(const OrtKernelContext *context, size_t input, tconv_type type,
                         tconv_shape *shape, const void **data, tconv_error *error)
{
    const OrtValue *value;
    ONNXTensorElementDataType element;
    const int64_t *extents;
    size_t rank;
    if (!succeeded(ort.KernelContext_GetInput(context, input, &value), error) ||
        !succeeded(ort.GetTensorElementTypeAndShapeDataReference(value, &element, &extents, &rank),
                   error) ||
        !succeeded(ort.GetTensorData(value, data), error))
        return error->status;
    if (rank > TCONV_MAX_RANK) return fail(error, TCONV_ERROR_SHAPE, "a tensor has rank %zu", rank);
    if (type_of(element) != type)
        return fail(error, TCONV_ERROR_TYPE, "an input has another type than it had");
    *shape = (tconv_shape){(int)rank, {0}};
    if (rank != 0) memcpy(shape->dim, extents, rank * sizeof *extents);
    return TCONV_OK;
}

bool attribute_of(const OrtNode *node, const char *name, OrtOpAttrType type, void *data,
                  size_t *size)
{
    const OrtOpAttr *attribute = NULL;
    return succeeded(ort.Node_GetAttributeByName(node, name, &attribute), NULL) &&
           attribute != NULL && succeeded(ort.ReadOpAttr(attribute, type, data, *size, size), NULL);
}

double number_of(const OrtNode *node, const char *name, double absent)
{
    float value;
    size_t size = sizeof value;
    return attribute_of(node, name, ORT_OP_ATTR_FLOAT, &value, &size) ? (double)value : absent;
}

int64_t integer_of(const OrtNode *node, const char *name, int64_t absent)
{
    int64_t value;
    size_t size = sizeof value;
    return attribute_of(node, name, ORT_OP_ATTR_INT, &value, &size) ? value : absent;
}

void word_of(const OrtNode *node, const char *name, const char *absent, char out[MOST_WORD])
{
    size_t size = MOST_WORD - 1;
    memset(out, 0, MOST_WORD);
    if (!attribute_of(node, name, ORT_OP_ATTR_STRING, out, &size))
        strcpy(out, size > MOST_WORD - 1 ? "?" : absent);
}

/* Reads lists with one number for each axis, or `parts` such lists. An absent list stays empty. */
static tconv_status lists_of(const OrtNode *node, const char *name, int axes, int parts,
                             tconv_list *lists, tconv_error *error)
{
    int64_t values[2 * TCONV_MAX_AXES];
    size_t size = sizeof values;
    for (int part = 0; part < parts; part++) lists[part].count = 0;
    if (!attribute_of(node, name, ORT_OP_ATTR_INTS, values, &size)) {
        if (size > sizeof values)
            return fail(error, TCONV_ERROR_ATTRIBUTE, "%s has too many numbers", name);
        return TCONV_OK;
    }
    const int count = (int)(size / sizeof *values);
    if (count == 0) return TCONV_OK;
    if (count != parts * axes)
        return fail(error, TCONV_ERROR_ATTRIBUTE, "%s has %d numbers, not %d", name, count,
                    parts * axes);
    for (int part = 0; part < parts; part++) {
        lists[part].count = axes;
        memcpy(lists[part].value, values + part * axes, (size_t)axes * sizeof *values);
    }
    return TCONV_OK;
}

static tconv_status auto_pad_of(const OrtNode *node, tconv_auto_pad *out, tconv_error *error)
{
    char text[MOST_WORD];
    *out = TCONV_EXPLICIT;
    word_of(node, "auto_pad", "", text);
    if (text[0] != '\0' && !tconv_auto_pad_from_name(text, out))
        return fail(error, TCONV_ERROR_ATTRIBUTE, "auto_pad is none of ONNX's");
    return TCONV_OK;
}

static tconv_status attributes_of(const OrtNode *node, int axes, struct layer_request *request,
                                  tconv_error *error)
{
    tconv_problem *p = &request->problem;
    tconv_list pads[2];
    tconv_status status = TCONV_OK;
    p->groups = integer_of(node, "group", 1);
    if (p->groups < 1)
        status = fail(error, TCONV_ERROR_ATTRIBUTE, "group is %lld", (long long)p->groups);
    if (status == TCONV_OK) status = auto_pad_of(node, &p->auto_pad, error);
    const struct {
        const char *name;
        int parts;
        tconv_list *lists;
    } all[] = {
        {"strides", 1, &p->strides},
        {"dilations", 1, &p->dilations},
        {"pads", 2, pads},
        {"output_padding", 1, &p->output_padding},
        {"output_shape", 1, &p->output_shape},
        {"kernel_shape", 1, &request->kernel},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all && status == TCONV_OK; i++)
        status = lists_of(node, all[i].name, axes, all[i].parts, all[i].lists, error);
    if (status == TCONV_OK && p->auto_pad == TCONV_EXPLICIT) { /* otherwise ONNX ignores pads */
        p->pads_begin = pads[0];
        p->pads_end = pads[1];
    }
    return status;
}

tconv_status node_read(const OrtNode *node, struct node_layer *layer, tconv_error *error)
{
    const tconv_problem problem = TCONV_PROBLEM_INIT;
    const tconv_epilogue epilogue = TCONV_EPILOGUE_INIT;
    memset(layer, 0, sizeof *layer);
    layer->node[0] = layer->convolution = node;
    layer->count = 1;
    struct layer_request *request = &layer->request;
    request->problem = problem;
    request->epilogue = epilogue;
    tconv_problem *p = &request->problem;
    /* With these formats, ONNX's operators. */
    p->operation = is_conv(node) ? TCONV_UPSAMPLE_CONV : TCONV_ONEAPI_CONV_BACKPROP;
    p->rules = is_conv(node) ? TCONV_RULES_SPEC : TCONV_RULES_ONNX;
    p->data_format = TCONV_NCX;
    p->filter_format = TCONV_OIX;

    for (size_t i = 0; i <= TENSOR_BIAS; i++) layer->tensor[i] = input_of(node, i);
    if (layer->tensor[TENSOR_DATA] == NULL || layer->tensor[TENSOR_FILTER] == NULL)
        return fail(error, TCONV_ERROR_ARGUMENT, "an input is missing");
    request->epilogue.bias = layer->tensor[TENSOR_BIAS] != NULL;

    tconv_status status = tensor_of(layer->tensor[TENSOR_DATA], &layer->data, &p->data_type, error);
    if (status == TCONV_OK)
        status = tensor_of(layer->tensor[TENSOR_FILTER], &layer->filter, &p->filter_type, error);
    if (status != TCONV_OK) return status;
    if (!is_floating(p->data_type) || p->filter_type != p->data_type)
        return fail(error, TCONV_ERROR_TYPE,
                    "only float, float16, double and bfloat16 are computed");
    const int rank = rank_of(layer);
    if (rank < 3)
        return fail(error, TCONV_ERROR_SHAPE,
                    rank == 0 ? "the rank of its inputs is not known" : "there is no spatial axis");
    if (rank - 2 > TCONV_MAX_AXES)
        return fail(error, TCONV_ERROR_SHAPE, "there are %d spatial axes", rank - 2);
    status = attributes_of(node, rank - 2, request, error);
    if (status != TCONV_OK) return status;
    if (!succeeded(ort.ValueInfo_IsConstantInitializer(layer->tensor[TENSOR_FILTER],
                                                       &request->constant_filter),
                   error))
        return error->status;
    return TCONV_OK;
}

void node_release(struct node_layer *layer)
{
    numbers_release(&layer->scale);
    numbers_release(&layer->bias);
}

size_t readers_of(const OrtNode *node, const OrtNode **readers, int64_t *inputs)
{
    const OrtValueInfo *output;
    size_t count = 0;
    bool visible = true;
    if (!succeeded(ort.Node_GetNumOutputs(node, &count), NULL) || count != 1 ||
        !succeeded(ort.Node_GetOutputs(node, &output, 1), NULL) ||
        !succeeded(ort.ValueInfo_IsGraphOutput(output, &visible), NULL) || visible ||
        !succeeded(ort.ValueInfo_GetValueNumConsumers(output, &count), NULL) ||
        count > MOST_READERS ||
        !succeeded(ort.ValueInfo_GetValueConsumers(output, readers, inputs, count), NULL))
        return 0;
    for (size_t i = 0; i < count; i++)
        if (readers[i] == NULL || inputs[i] < 0) return 0;
    return count;
}

const OrtNode *reader_of(const OrtNode *node)
{
    const OrtNode *readers[MOST_READERS];
    int64_t inputs[MOST_READERS];
    return readers_of(node, readers, inputs) == 1 ? readers[0] : NULL;
}

const OrtNode *producer_of(const OrtValueInfo *value)
{
    const OrtNode *node = NULL;
    return value != NULL && succeeded(ort.ValueInfo_GetValueProducer(value, &node, NULL), NULL)
               ? node
               : NULL;
}

int rank_of(const struct node_layer *layer)
{
    return layer->data.rank != 0 ? layer->data.rank : layer->filter.rank;
}

int64_t channels_of(const struct node_layer *layer)
{
    const tconv_problem *problem = &layer->request.problem;
    const tconv_shape *filter = &layer->filter;
    const bool all = problem->operation == TCONV_UPSAMPLE_CONV; /* axis 0 has those of all groups */
    const bool shuffles = !all && problem->operation != TCONV_ONEAPI_CONV_BACKPROP;
    int64_t channels = 0;
    if (shuffles || filter->rank == 0 || filter->dim[all ? 0 : 1] < 1 ||
        __builtin_mul_overflow(filter->dim[all ? 0 : 1], all ? 1 : problem->groups, &channels))
        return 0;
    return channels;
}
