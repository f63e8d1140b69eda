/* SPDX-License-Identifier: Apache-2.0 */
/* The provider of a session: takes the nodes that the device can compute, and compiles them. */
#include "provider.h"
#include "concat.h"
#include "fuse.h"
#include "kernel.h"
#include "log.h"
#include "pair.h"
#include "quantize.h"
#include "trial.h"

#include <stdio.h>
#include <stdlib.h>

/* Layers of a graph. ONNX Runtime's fusion takes cubic time: 53 s for 1000 layers that read one
 * tensor (1.31.1), 0.5 s without a provider. */
enum { MOST_LAYERS = 128 };

static const char *provider_name(const OrtEp *ep)
{
    return ((const struct provider *)(const void *)ep)->name;
}

static const char *name_of(const OrtNode *node)
{
    const char *name = "";
    succeeded(ort.Node_GetName(node, &name), NULL);
    return name;
}

static const char *operator_of(const OrtNode *node)
{
    const char *name = "";
    succeeded(ort.Node_GetOperatorType(node, &name), NULL);
    return name;
}

/* True for the node that a layer's filter belongs to. */
static bool is_layer(const OrtNode *node)
{
    return is_conv_transpose(node) || is_pair(node);
}

/* Reads the layer of such a node, without the nodes behind it. Call node_release afterwards, even
 * after an error. */
static tconv_status begin_layer(const struct provider *provider, const OrtNode *node,
                                const struct taken *taken, struct node_layer *layer,
                                tconv_error *error)
{
    const bool pair = !is_conv_transpose(node);
    tconv_status status = pair ? pair_read(node, taken, layer, error)
                               : node_read(node, layer, error);
    layer->request.search = provider->search;
    layer->request.math = provider->math;
    return status == TCONV_OK && pair ? try_pair(layer, error) : status;
}

static tconv_status try_layer(const struct provider *provider, const struct node_layer *layer,
                              tconv_error *error)
{
    return try_plan(provider->opened, provider->logger, layer, error);
}

/* Fuses the nodes around a layer into it. */
static void extend_layer(const struct provider *provider, struct node_layer *layer,
                         const struct taken *taken)
{
    struct node_layer bytes;
    tconv_error error;
    fuse_followers(layer, MOST_NODES, taken);
    if (quantize(layer, MOST_NODES, taken, &bytes)) {
        const bool possible = try_layer(provider, &bytes, &error) == TCONV_OK;
        node_release(possible ? layer : &bytes);
        if (possible) *layer = bytes;
    }
    if (provider->fuse_concat) fuse_concat(layer, MOST_NODES, taken);
}

/* Logs and traces why ONNX Runtime computes a node: a warning for a ConvTranspose; for a pair a
 * line of information, because two operators of ONNX Runtime's are what the model has. */
static void leave(const struct provider *provider, const OrtNode *node, const tconv_error *error)
{
    if (is_conv_transpose(node))
        log_warning(
            provider->logger,
            "tconv_cl: another provider, ONNX Runtime's own, computes ConvTranspose \"%s\": %s",
            name_of(node), error->message);
    else
        log_begin(NULL, provider->logger);
    tconv_device_trace_fallback(provider->opened, "ONNX Runtime", name_of(node), error->message);
    log_end();
}

/* Claims the layer of `node` if the device can compute it. `*layers` counts them. */
static OrtStatus *claim(const struct provider *provider, const OrtNode *node, struct taken *taken,
                        OrtEpGraphSupportInfo *info, size_t *layers)
{
    struct node_layer layer;
    tconv_error error;
    OrtStatus *status = NULL;
    const bool read = begin_layer(provider, node, taken, &layer, &error) == TCONV_OK;
    const bool possible = read && provider->opened != NULL;
    const bool pair = is_pair(node);
    const uint64_t least = pair ? provider->least_pair_macs : provider->least_macs;
    if (read ? is_small(&layer, least) : pair) {
        if (!read) leave(provider, node, &error);
        node_release(&layer);
        return NULL;
    }
    if (possible && provider->fuse) extend_layer(provider, &layer, taken);
    if (possible && (provider->strict || try_layer(provider, &layer, &error) == TCONV_OK)) {
        status = ort.EpGraphSupportInfo_AddNodesToFuse(info, layer.node, layer.count, NULL);
        ++*layers;
        for (size_t k = 0; k < layer.count; k++) taken_add(taken, layer.node[k]);
    } else if (provider->strict) { /* compile finds the error, which makes the session fail; here
                                      it would only be logged */
        status = ort.EpGraphSupportInfo_AddNodesToFuse(info, &node, 1, NULL);
    } else {
        leave(provider, node, &error);
    }
    node_release(&layer);
    return status;
}

static OrtStatus *get_capability(OrtEp *ep, const OrtGraph *graph, OrtEpGraphSupportInfo *info)
{
    const struct provider *provider = (const struct provider *)(void *)ep;
    if (provider->opened == NULL && !provider->strict)
        return NULL; /* the log said so when the session began */
    const OrtNode **nodes;
    size_t count;
    tconv_error error;
    if (nodes_of(graph, &nodes, &count, &error) != TCONV_OK)
        return status_of("a graph", &error, provider->strict);
    struct taken taken;
    OrtStatus *status = NULL;
    size_t layers = 0;
    if (!taken_create(&taken, provider->name, count))
        status = ort.CreateStatus(ORT_EP_FAIL, "tconv_cl: there is no memory");
    for (size_t i = 0; i < count && status == NULL; i++) {
        if (!is_layer(nodes[i]) || !is_free(nodes[i], &taken)) continue;
        if (layers == MOST_LAYERS && !provider->strict) {
            log_warning(provider->logger,
                        "tconv_cl: other providers, ONNX Runtime's own, compute %s "
                        "\"%s\" and those after it: there are more than %d",
                        operator_of(nodes[i]), name_of(nodes[i]), MOST_LAYERS);
            break;
        }
        status = claim(provider, nodes[i], &taken, info, &layers);
    }
    taken_release(&taken);
    free(nodes);
    return status;
}

/* Reads the layer that get_capability found at `node`, of `count` nodes. */
static tconv_status read_layer(const struct provider *provider, const OrtNode *node, size_t count,
                               struct node_layer *layer, tconv_error *error)
{
    const struct taken taken = {provider->name, NULL, 0};
    const tconv_status status = begin_layer(provider, node, &taken, layer, error);
    if (status != TCONV_OK) return status;
    fuse_followers(layer, count, &taken);
    fuse_concat(layer, count, &taken);
    struct node_layer bytes;
    /* If these were all nodes, ONNX Runtime would log that the data have no producer. */
    if (layer->count != count && quantize(layer, count, &taken, &bytes)) {
        node_release(layer);
        *layer = bytes;
        fuse_concat(layer, count, &taken);
    }
    return layer->count == count ? TCONV_OK
                                 : fail(error, TCONV_ERROR_INTERNAL, "%zu of %zu nodes are known",
                                        layer->count, count);
}

static tconv_status make_kernel(const struct provider *provider, const OrtGraph *graph,
                                const OrtNode *fused, OrtNodeComputeInfo **out, tconv_error *error)
{
    const OrtNode **nodes;
    size_t count;
    if (nodes_of(graph, &nodes, &count, error) != TCONV_OK) return error->status;
    size_t first = 0;
    while (first < count && !is_layer(nodes[first])) first++;
    struct node_layer layer = {0};
    tconv_status status = first < count
                              ? read_layer(provider, nodes[first], count, &layer, error)
                              : fail(error, TCONV_ERROR_INTERNAL,
                                     "it has neither a ConvTranspose nor a pair with a Conv");
    if (status == TCONV_OK && provider->strict) status = try_layer(provider, &layer, error);
    char name[128] = "";
    if (first < count)
        snprintf(name, sizeof name, "%s \"%.100s\"", operator_of(nodes[first]),
                 name_of(nodes[first]));
    if (status == TCONV_OK)
        status = kernel_create(provider, &layer, graph, fused, name, out, error);
    if (status != TCONV_OK) {
        const tconv_error reason = *error;
        snprintf(error->message, sizeof error->message, "%s: %.850s", name, reason.message);
    }
    node_release(&layer);
    free(nodes);
    return status;
}

static void release_kernels(OrtEp *ep, OrtNodeComputeInfo **infos, size_t count)
{
    (void)ep;
    for (size_t i = 0; i < count; i++) {
        kernel_release(infos[i]);
        infos[i] = NULL;
    }
}

static OrtStatus *compile(OrtEp *ep, const OrtGraph **graphs, const OrtNode **fused_nodes,
                          size_t count, OrtNodeComputeInfo **out, OrtNode **ep_context_nodes)
{
    (void)ep_context_nodes;
    const struct provider *provider = (const struct provider *)(void *)ep;
    if (provider->opened == NULL)
        return status_of("the session is not made", &provider->refusal, true);
    for (size_t i = 0; i < count; i++) {
        tconv_error error;
        if (make_kernel(provider, graphs[i], fused_nodes[i], &out[i], &error) != TCONV_OK) {
            release_kernels(ep, out, i);
            return status_of("compiling", &error, provider->strict);
        }
    }
    return NULL;
}

const OrtEp provider_functions = {
    .ort_version_supported = ORT_VERSION,
    .GetName = provider_name,
    .GetCapability = get_capability,
    .Compile = compile,
    .ReleaseNodeComputeInfos = release_kernels,
};
