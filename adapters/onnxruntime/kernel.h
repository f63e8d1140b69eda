/* SPDX-License-Identifier: Apache-2.0 */
/* A layer that a provider computes: the node that ONNX Runtime calls. */
#ifndef TCONV_ONNXRUNTIME_KERNEL_H
#define TCONV_ONNXRUNTIME_KERNEL_H

#include "node.h"
#include "provider.h"

/* Makes the kernel of `layer`, whose nodes are those of `graph` and whose tensors are among the
 * inputs of `fused`. `name` is for messages. The provider must outlive it. */
tconv_status kernel_create(const struct provider *provider, const struct node_layer *layer,
                           const OrtGraph *graph, const OrtNode *fused, const char *name,
                           OrtNodeComputeInfo **out, tconv_error *error);
void kernel_release(OrtNodeComputeInfo *info);

#endif
