/* SPDX-License-Identifier: Apache-2.0 */
/* The provider of a session: takes the nodes that the device can compute, and compiles them. */
#include "provider.h"
#include "concat.h"
#include "fuse.h"
#include "kernel.h"
#include "log.h"
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

static tconv_status try_layer(const struct provider *provider, const struct node_layer *layer,
                              tconv_error *error)
{
    return try_plan(provider->opened, provider->search, provider->logger, layer, error);
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
        struct node_layer layer = {0}, bytes;
        if (!is_conv_transpose(nodes[i]) || !is_free(nodes[i], &taken)) continue;
        if (layers == MOST_LAYERS && !provider->strict) {
            log_warning(provider->logger,
                        "tconv_cl: other providers, ONNX Runtime's own, compute ConvTranspose "
                        "\"%s\" and those after it: there are more than %d",
                        name_of(nodes[i]), MOST_LAYERS);
            break;
        }
        const bool known = provider->opened != NULL &&
                           node_read(nodes[i], &layer, &error) == TCONV_OK;
        if (known && is_small(&layer, provider->least_macs)) {
            node_release(&layer);
            continue;
        }
        if (known && provider->fuse) {
            fuse_followers(&layer, MOST_NODES, &taken);
            if (quantize(&layer, MOST_NODES, &taken, &bytes)) {
                const bool possible = try_layer(provider, &bytes, &error) == TCONV_OK;
                node_release(possible ? &layer : &bytes);
                if (possible) layer = bytes;
            }
            if (provider->fuse_concat) fuse_concat(&layer, MOST_NODES, &taken);
        }
        if (known && (provider->strict || try_layer(provider, &layer, &error) == TCONV_OK)) {
            status = ort.EpGraphSupportInfo_AddNodesToFuse(info, layer.node, layer.count, NULL);
            layers++;
            for (size_t k = 0; k < layer.count; k++) taken_add(&taken, layer.node[k]);
        } else if (provider->strict) { /* compile finds the error, which makes the session fail;
                                          here it would only be logged */
            status = ort.EpGraphSupportInfo_AddNodesToFuse(info, &nodes[i], 1, NULL);
        } else {
            log_warning(
                provider->logger,
                "tconv_cl: another provider, ONNX Runtime's own, computes ConvTranspose \"%s\": "
                "%s",
                name_of(nodes[i]), error.message);
            tconv_device_trace_fallback(provider->opened, "ONNX Runtime", name_of(nodes[i]),
                                        error.message);
        }
        node_release(&layer);
    }
    taken_release(&taken);
    free(nodes);
    return status;
}

/* Reads the layer that get_capability found at `node`, of `count` nodes. */
static tconv_status read_layer(const struct provider *provider, const OrtNode *node, size_t count,
                               struct node_layer *layer, tconv_error *error)
{
    const tconv_status status = node_read(node, layer, error);
    if (status != TCONV_OK) return status;
    const struct taken taken = {provider->name, NULL, 0};
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
    while (first < count && !is_conv_transpose(nodes[first])) first++;
    struct node_layer layer = {0};
    tconv_status status =
        first < count ? read_layer(provider, nodes[first], count, &layer, error)
                      : fail(error, TCONV_ERROR_INTERNAL, "there is no ConvTranspose to compile");
    if (status == TCONV_OK && provider->strict) status = try_layer(provider, &layer, error);
    const char *const own = first < count ? name_of(nodes[first]) : "";
    char name[128];
    snprintf(name, sizeof name, "ConvTranspose \"%.100s\"", own);
    layer.request.search = provider->search;
    if (status == TCONV_OK)
        status = kernel_create(provider, &layer, graph, fused, name, out, error);
    if (status != TCONV_OK) {
        const tconv_error reason = *error;
        snprintf(error->message, sizeof error->message, "ConvTranspose \"%.120s\": %.850s", own,
                 reason.message);
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
