/* SPDX-License-Identifier: Apache-2.0 */
/* A layer that a provider computes: the node that ONNX Runtime calls. */
#ifndef TCONV_ONNXRUNTIME_KERNEL_H
#define TCONV_ONNXRUNTIME_KERNEL_H

#include "node.h"

/* Makes the kernel of `layer`, whose tensors are among the inputs of `fused`. `name` is for
 * messages. With `strict`, a failure is an error of the session. */
tconv_status kernel_create(tconv_session *host, const struct node_layer *layer,
                           const OrtNode *fused, const char *name, bool strict,
                           OrtNodeComputeInfo **out, tconv_error *error);
void kernel_release(OrtNodeComputeInfo *info);

#endif
