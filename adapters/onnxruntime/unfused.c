/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the nodes of a fused layer unfused, one by one, by a session of ONNX Runtime within a
 * run of another one. */
#include "unfused.h"

#include "constant.h"
#include "protobuf.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Models have no shapes but those of constants. Our provider needs the ranks of data and
 * filter, so the usual model states them; runs of other ranks use a model without, which ONNX
 * Runtime computes. */
enum model { RANKED, UNRANKED, MODELS };

struct unfused {
    const struct provider *provider;
    struct protobuf model[MODELS];
    int rank;
    char **input; /* the names of the fused node's inputs, in their order */
    size_t inputs;
    char *output;
    pthread_mutex_t mutex; /* guards what follows */
    OrtEnv *environment;
    OrtSession *session[MODELS]; /* NULL before the first call that needs it */
};

/* ---- the model ---- */

/* Numbers of fields in onnx.proto, by message. */
enum { MODEL_IR_VERSION = 1, MODEL_GRAPH = 7, MODEL_OPSET = 8 };
enum { OPSET_DOMAIN = 1, OPSET_VERSION = 2 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT, NODE_NAME, NODE_OPERATOR, NODE_ATTRIBUTE };
enum { VALUE_NAME = 1, VALUE_TYPE = 2, TYPE_TENSOR = 1 };
enum { TENSOR_ELEMENT = 1, TENSOR_SHAPE = 2, SHAPE_EXTENT = 1, EXTENT_VALUE = 1 };
enum {
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_FLOAT = 2,
    ATTRIBUTE_INT = 3,
    ATTRIBUTE_STRING = 4,
    ATTRIBUTE_FLOATS = 7,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_TYPE = 20
};
enum { TYPE_OF_FLOAT = 1, TYPE_OF_INT, TYPE_OF_STRING, TYPE_OF_FLOATS = 6, TYPE_OF_INTS };
enum { IR_VERSION = 8 };

/* Writes an attribute of a type that fused operators have. */
static tconv_status write_attribute(struct protobuf *out, const OrtOpAttr *attribute,
                                    tconv_error *error)
{
    enum { MOST = 512 }; /* bytes: two numbers for each axis, or a word */
    _Alignas(int64_t) char value[MOST];
    const char *name;
    OrtOpAttrType type;
    size_t size = 0;
    if (!succeeded(ort.OpAttr_GetName(attribute, &name), error) ||
        !succeeded(ort.OpAttr_GetType(attribute, &type), error) ||
        !succeeded(ort.ReadOpAttr(attribute, type, value, sizeof value, &size), error))
        return error->status;
    const int64_t *const integers = (const int64_t *)(const void *)value;
    const float *const floats = (const float *)(const void *)value;
    const size_t begin = protobuf_begin(out, NODE_ATTRIBUTE);
    protobuf_text(out, ATTRIBUTE_NAME, name);
    switch ((int)type) {
    case ORT_OP_ATTR_INT:
        protobuf_integer(out, ATTRIBUTE_TYPE, TYPE_OF_INT);
        protobuf_integer(out, ATTRIBUTE_INT, (uint64_t)integers[0]);
        break;
    case ORT_OP_ATTR_INTS:
        protobuf_integer(out, ATTRIBUTE_TYPE, TYPE_OF_INTS);
        for (size_t i = 0; i < size / sizeof *integers; i++)
            protobuf_integer(out, ATTRIBUTE_INTS, (uint64_t)integers[i]);
        break;
    case ORT_OP_ATTR_FLOAT:
        protobuf_integer(out, ATTRIBUTE_TYPE, TYPE_OF_FLOAT);
        protobuf_float(out, ATTRIBUTE_FLOAT, floats[0]);
        break;
    case ORT_OP_ATTR_FLOATS:
        protobuf_integer(out, ATTRIBUTE_TYPE, TYPE_OF_FLOATS);
        for (size_t i = 0; i < size / sizeof *floats; i++)
            protobuf_float(out, ATTRIBUTE_FLOATS, floats[i]);
        break;
    case ORT_OP_ATTR_STRING:
        protobuf_integer(out, ATTRIBUTE_TYPE, TYPE_OF_STRING);
        protobuf_bytes(out, ATTRIBUTE_STRING, value, size);
        break;
    default:
        return fail(error, TCONV_ERROR_INTERNAL, "the attribute %s has type %d", name, (int)type);
    }
    protobuf_end(out, begin);
    return TCONV_OK;
}

static tconv_status write_attributes(struct protobuf *out, const OrtNode *node, tconv_error *error)
{
    enum { MOST = 32 }; /* no fused operator has more */
    const OrtOpAttr *attributes[MOST];
    size_t count;
    if (!succeeded(ort.Node_GetNumAttributes(node, &count), error)) return error->status;
    if (count > MOST) return fail(error, TCONV_ERROR_INTERNAL, "a node has %zu attributes", count);
    if (!succeeded(ort.Node_GetAttributes(node, attributes, count), error)) return error->status;
    tconv_status status = TCONV_OK;
    for (size_t i = 0; i < count && status == TCONV_OK; i++)
        status = write_attribute(out, attributes[i], error);
    return status;
}

static tconv_status write_name(struct protobuf *out, int field, const OrtValueInfo *value,
                               tconv_error *error)
{
    const char *name = ""; /* of an input that is left out */
    if (value != NULL && !succeeded(ort.GetValueInfoName(value, &name), error))
        return error->status;
    protobuf_text(out, field, name);
    return TCONV_OK;
}

static tconv_status write_node(struct protobuf *out, const OrtNode *node, tconv_error *error)
{
    const char *name, *type;
    const OrtValueInfo **inputs, *output;
    size_t count;
    if (!succeeded(ort.Node_GetName(node, &name), error) ||
        !succeeded(ort.Node_GetOperatorType(node, &type), error) ||
        !succeeded(ort.Node_GetOutputs(node, &output, 1), error))
        return error->status;
    tconv_status status = inputs_of(node, &inputs, &count, error);
    if (status != TCONV_OK) return status;
    const size_t begin = protobuf_begin(out, GRAPH_NODE);
    for (size_t i = 0; i < count && status == TCONV_OK; i++)
        status = write_name(out, NODE_INPUT, inputs[i], error);
    free(inputs);
    if (status == TCONV_OK) status = write_name(out, NODE_OUTPUT, output, error);
    protobuf_text(out, NODE_NAME, name);
    protobuf_text(out, NODE_OPERATOR, type);
    if (status == TCONV_OK) status = write_attributes(out, node, error);
    protobuf_end(out, begin);
    return status;
}

/* Writes a tensor of the model with its type and, if its rank is not 0, its shape; extents of -1
 * are unknown. */
static tconv_status write_value(struct protobuf *out, int field, const OrtValueInfo *value,
                                const tconv_shape *shape, tconv_error *error)
{
    const OrtTypeInfo *info;
    const OrtTensorTypeAndShapeInfo *tensor;
    ONNXTensorElementDataType element;
    if (!succeeded(ort.GetValueInfoTypeInfo(value, &info), error) ||
        !succeeded(ort.CastTypeInfoToTensorInfo(info, &tensor), error) ||
        !succeeded(ort.GetTensorElementType(tensor, &element), error))
        return error->status;
    const size_t begin = protobuf_begin(out, field);
    const tconv_status status = write_name(out, VALUE_NAME, value, error);
    const size_t type = protobuf_begin(out, VALUE_TYPE);
    const size_t inner = protobuf_begin(out, TYPE_TENSOR);
    protobuf_integer(out, TENSOR_ELEMENT, (uint64_t)element);
    if (shape->rank != 0) {
        const size_t extents = protobuf_begin(out, TENSOR_SHAPE);
        for (int i = 0; i < shape->rank; i++) {
            const size_t extent = protobuf_begin(out, SHAPE_EXTENT);
            if (shape->dim[i] >= 0) protobuf_integer(out, EXTENT_VALUE, (uint64_t)shape->dim[i]);
            protobuf_end(out, extent);
        }
        protobuf_end(out, extents);
    }
    protobuf_end(out, inner);
    protobuf_end(out, type);
    protobuf_end(out, begin);
    return status;
}

/* The nodes of a layer, with the tensors that go in and come out. */
struct part {
    const OrtGraph *graph;
    const OrtNode **nodes;
    const OrtValueInfo **inputs, *output;
    size_t node_count, input_count;
    const struct node_layer *layer;
};

/* The shape with which an input is written. ONNX Runtime refuses a Resize if it does not know how
 * many sizes there are. */
static tconv_shape shape_of(const struct part *part, const OrtValueInfo *input, bool ranked)
{
    const OrtValueInfo *const *const own = part->layer->tensor;
    tconv_shape shape = {0, {0}};
    struct constant constant;
    if (is_same_value(input, own[TENSOR_DATA]) || is_same_value(input, own[TENSOR_FILTER])) {
        shape.rank = ranked ? rank_of(part->layer) : 0;
        for (int i = 0; i < shape.rank; i++) shape.dim[i] = -1;
        return shape;
    }
    for (size_t i = 0; i < part->node_count; i++)
        for (size_t k = 0; k < MOST_INPUTS; k++) {
            const OrtValueInfo *value = input_of(part->nodes[i], k);
            if (is_same_value(value, input) && constant_of(value, &constant)) return constant.shape;
        }
    return shape;
}

static tconv_status write_graph(struct protobuf *out, const struct part *part, bool ranked,
                                tconv_error *error)
{
    tconv_status status = TCONV_OK;
    const tconv_shape unknown = {0, {0}};
    const size_t begin = protobuf_begin(out, MODEL_GRAPH);
    for (size_t i = 0; i < part->node_count && status == TCONV_OK; i++)
        status = write_node(out, part->nodes[i], error);
    protobuf_text(out, GRAPH_NAME, "unfused");
    for (size_t i = 0; i < part->input_count && status == TCONV_OK; i++) {
        const tconv_shape shape = shape_of(part, part->inputs[i], ranked);
        status = write_value(out, GRAPH_INPUT, part->inputs[i], &shape, error);
    }
    if (status == TCONV_OK) status = write_value(out, GRAPH_OUTPUT, part->output, &unknown, error);
    protobuf_end(out, begin);
    return status;
}

static tconv_status write_operator_sets(struct protobuf *out, const OrtGraph *graph,
                                        tconv_error *error)
{
    size_t count;
    if (!succeeded(ort.Graph_GetNumOperatorSets(graph, &count), error)) return error->status;
    const char **domains = calloc(count + 1, sizeof *domains);
    int64_t *versions = calloc(count + 1, sizeof *versions);
    tconv_status status = TCONV_OK;
    if (domains == NULL || versions == NULL)
        status = fail(error, TCONV_ERROR_HOST_MEMORY, "no memory for %zu operator sets", count);
    else if (!succeeded(ort.Graph_GetOperatorSets(graph, domains, versions, count), error))
        status = error->status;
    for (size_t i = 0; i < count && status == TCONV_OK; i++) {
        const size_t begin = protobuf_begin(out, MODEL_OPSET);
        protobuf_text(out, OPSET_DOMAIN, domains[i]);
        protobuf_integer(out, OPSET_VERSION, (uint64_t)versions[i]);
        protobuf_end(out, begin);
    }
    free(domains);
    free(versions);
    return status;
}

static tconv_status write_model(struct protobuf *out, const struct part *part, bool ranked,
                                tconv_error *error)
{
    protobuf_integer(out, MODEL_IR_VERSION, IR_VERSION);
    tconv_status status = write_operator_sets(out, part->graph, error);
    if (status == TCONV_OK) status = write_graph(out, part, ranked, error);
    if (status == TCONV_OK && out->failed)
        status = fail(error, TCONV_ERROR_HOST_MEMORY, "no memory for a model");
    return status;
}

static tconv_status copy_name(const OrtValueInfo *value, char **out, tconv_error *error)
{
    const char *name;
    if (!succeeded(ort.GetValueInfoName(value, &name), error)) return error->status;
    *out = strdup(name);
    return *out != NULL ? TCONV_OK : fail(error, TCONV_ERROR_HOST_MEMORY, "no memory for a name");
}

static tconv_status keep(struct unfused *unfused, const struct part *part, tconv_error *error)
{
    tconv_status status = TCONV_OK;
    unfused->rank = rank_of(part->layer);
    for (int i = 0; i < MODELS && status == TCONV_OK; i++)
        status = write_model(&unfused->model[i], part, i == RANKED, error);
    unfused->input = calloc(part->input_count + 1, sizeof *unfused->input);
    if (status == TCONV_OK && unfused->input == NULL)
        status = fail(error, TCONV_ERROR_HOST_MEMORY, "no memory for names");
    for (; status == TCONV_OK && unfused->inputs < part->input_count; unfused->inputs++)
        status = copy_name(part->inputs[unfused->inputs], &unfused->input[unfused->inputs], error);
    return status == TCONV_OK ? copy_name(part->output, &unfused->output, error) : status;
}

tconv_status unfused_create(const struct provider *provider, const struct node_layer *layer,
                            const OrtGraph *graph, const OrtNode *fused, struct unfused **out,
                            tconv_error *error)
{
    struct unfused *unfused = calloc(1, sizeof *unfused);
    if (unfused == NULL) return fail(error, TCONV_ERROR_HOST_MEMORY, "no memory for a model");
    unfused->provider = provider;
    pthread_mutex_init(&unfused->mutex, NULL);
    struct part part = {.graph = graph, .layer = layer};
    tconv_status status = nodes_of(graph, &part.nodes, &part.node_count, error);
    if (status == TCONV_OK) status = inputs_of(fused, &part.inputs, &part.input_count, error);
    if (status == TCONV_OK && !succeeded(ort.Node_GetOutputs(fused, &part.output, 1), error))
        status = error->status;
    if (status == TCONV_OK) status = keep(unfused, &part, error);
    free(part.nodes);
    free(part.inputs);
    if (status == TCONV_OK)
        *out = unfused;
    else
        unfused_release(unfused);
    return status;
}

void unfused_release(struct unfused *unfused)
{
    if (unfused == NULL) return;
    for (int i = 0; i < MODELS; i++) {
        if (unfused->session[i] != NULL) ort.ReleaseSession(unfused->session[i]);
        protobuf_release(&unfused->model[i]);
    }
    if (unfused->environment != NULL) ort.ReleaseEnv(unfused->environment);
    pthread_mutex_destroy(&unfused->mutex);
    for (size_t i = 0; i < unfused->inputs; i++) free(unfused->input[i]);
    free(unfused->input);
    free(unfused->output);
    free(unfused);
}

/* ---- runs ---- */

/* Adds this provider to the options of a session, to compute layers of any size, each by itself. */
static tconv_status add_provider(const struct provider *provider, OrtEnv *environment,
                                 OrtSessionOptions *options, tconv_error *error)
{
    const char *const search =
        provider->search == TCONV_SEARCH_DEFAULT ? "" : tconv_search_name(provider->search);
    const char *const keys[] = {"device", "fallback", "search", "math", "least_macs", "fuse"};
    const char *const values[] = {provider->device,
                                  provider->strict ? "error" : "warn",
                                  search,
                                  tconv_math_name(provider->math),
                                  "0",
                                  "0"};
    const OrtEpDevice *const *devices;
    size_t count;
    if (!succeeded(ort.GetEpDevices(environment, &devices, &count), error)) return error->status;
    for (size_t i = 0; i < count; i++)
        if (strcmp(ort.EpDevice_EpName(devices[i]), provider->name) == 0)
            return succeeded(ort.SessionOptionsAppendExecutionProvider_V2(
                                 options, environment, &devices[i], 1, keys, values,
                                 sizeof keys / sizeof *keys),
                             error)
                       ? TCONV_OK
                       : error->status;
    return fail(error, TCONV_ERROR_INTERNAL, "the provider %s is not registered any more",
                provider->name);
}

/* Makes the session. One thread, because the outer session's thread waits; logging off, because
 * errors are returned. */
static tconv_status make_session(struct unfused *unfused, enum model model, tconv_error *error)
{
    OrtSessionOptions *options;
    if (unfused->environment == NULL && /* the process has only one */
        !succeeded(ort.CreateEnv(ORT_LOGGING_LEVEL_WARNING, "tconv_cl", &unfused->environment),
                   error))
        return error->status;
    if (!succeeded(ort.CreateSessionOptions(&options), error)) return error->status;
    tconv_status status = TCONV_OK;
    if (!succeeded(ort.SetSessionLogSeverityLevel(options, ORT_LOGGING_LEVEL_FATAL), error) ||
        !succeeded(ort.SetIntraOpNumThreads(options, 1), error))
        status = error->status;
    if (status == TCONV_OK)
        status = add_provider(unfused->provider, unfused->environment, options, error);
    if (status == TCONV_OK &&
        !succeeded(ort.CreateSessionFromArray(unfused->environment, unfused->model[model].bytes,
                                              unfused->model[model].size, options,
                                              &unfused->session[model]),
                   error))
        status = error->status;
    ort.ReleaseSessionOptions(options);
    return status;
}

static tconv_status session_of(struct unfused *unfused, enum model model, OrtSession **out,
                               tconv_error *error)
{
    int count;
    /* In a forked child this fails. It comes before the mutex, which a thread of the parent may
     * have held. */
    if (tconv_device_count(&count, error) != TCONV_OK) return error->status;
    pthread_mutex_lock(&unfused->mutex);
    const tconv_status status =
        unfused->session[model] != NULL ? TCONV_OK : make_session(unfused, model, error);
    *out = unfused->session[model];
    pthread_mutex_unlock(&unfused->mutex);
    return status;
}

/* Copies a tensor into the output of a run. */
static tconv_status copy_output(const OrtValue *tensor, OrtKernelContext *context,
                                tconv_error *error)
{
    ONNXTensorElementDataType element;
    const int64_t *extents;
    size_t rank, size;
    const void *from;
    OrtValue *output;
    void *to;
    if (!succeeded(ort.GetTensorElementTypeAndShapeDataReference(tensor, &element, &extents, &rank),
                   error) ||
        !succeeded(ort.GetTensorSizeInBytes(tensor, &size), error) ||
        !succeeded(ort.GetTensorData(tensor, &from), error) ||
        !succeeded(ort.KernelContext_GetOutput(context, 0, extents, rank, &output), error) ||
        !succeeded(ort.GetTensorMutableData(output, &to), error))
        return error->status;
    if (size != 0) memcpy(to, from, size);
    return TCONV_OK;
}

/* The status of a failed run: ONNX Runtime refuses the shapes, or the provider failed in it. */
static tconv_status failure_of(OrtStatus *status, tconv_error *error)
{
    const bool is_failure = ort.GetErrorCode(status) == ORT_EP_FAIL;
    succeeded(status, error);
    return error->status = is_failure ? TCONV_ERROR_INTERNAL : TCONV_ERROR_SHAPE;
}

tconv_status unfused_run(struct unfused *unfused, int rank, OrtKernelContext *context,
                         tconv_error *error)
{
    OrtSession *session = NULL;
    OrtValue *output = NULL;
    tconv_status status =
        session_of(unfused, rank == unfused->rank ? RANKED : UNRANKED, &session, error);
    if (status != TCONV_OK) return status;
    const OrtValue **inputs = calloc(unfused->inputs + 1, sizeof *inputs);
    if (inputs == NULL)
        return fail(error, TCONV_ERROR_HOST_MEMORY, "no memory for %zu inputs", unfused->inputs);
    for (size_t i = 0; i < unfused->inputs && status == TCONV_OK; i++)
        if (!succeeded(ort.KernelContext_GetInput(context, i, &inputs[i]), error))
            status = error->status;
    if (status == TCONV_OK) {
        const char *const output_name = unfused->output;
        OrtStatus *const ran = ort.Run(session, NULL, (const char *const *)unfused->input, inputs,
                                       unfused->inputs, &output_name, 1, &output);
        status = ran == NULL ? copy_output(output, context, error) : failure_of(ran, error);
    }
    if (output != NULL) ort.ReleaseValue(output);
    free(inputs);
    return status;
}
