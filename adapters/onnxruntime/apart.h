/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the nodes of a fused layer unfused, one by one: what was fused because of shapes that
 * the model claims is wrong in a run in which the tensors have others. */
#ifndef TCONV_ONNXRUNTIME_APART_H
#define TCONV_ONNXRUNTIME_APART_H

#include "node.h"
#include "provider.h"

struct apart;

/* Describes the nodes of `graph`, which are the layer's, and of which ONNX Runtime has made the
 * node `fused`. The provider must outlive it. */
tconv_status apart_create(const struct provider *provider, const struct node_layer *layer,
                          const OrtGraph *graph, const OrtNode *fused, struct apart **out,
                          tconv_error *error);
void apart_release(struct apart *apart);

/* Computes a run of the fused node, in which data and filter have this rank, by a session of its
 * nodes with the same provider, which fuses nothing there. The first call makes the session. Any
 * number of threads may call it at once. */
tconv_status apart_run(struct apart *apart, int rank, OrtKernelContext *context,
                       tconv_error *error);

#endif
