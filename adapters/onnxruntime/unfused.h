/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the nodes of a fused layer unfused, one by one: what was fused because of shapes that
 * the model claims is wrong in a run in which the tensors have others. */
#ifndef TCONV_ONNXRUNTIME_UNFUSED_H
#define TCONV_ONNXRUNTIME_UNFUSED_H

#include "node.h"
#include "provider.h"

struct unfused;

/* Describes the nodes of `graph`, which are the layer's, and of which ONNX Runtime has made the
 * node `fused`. The provider must outlive it. */
tconv_status unfused_create(const struct provider *provider, const struct node_layer *layer,
                            const OrtGraph *graph, const OrtNode *fused, struct unfused **out,
                            tconv_error *error);
void unfused_release(struct unfused *unfused);

/* Computes a run of the fused node, in which data and filter have this rank, by a session of its
 * nodes with the same provider, which fuses nothing there. The first call makes the session. Any
 * number of threads may call it at once. */
tconv_status unfused_run(struct unfused *unfused, int rank, OrtKernelContext *context,
                         tconv_error *error);

#endif
