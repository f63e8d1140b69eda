/* SPDX-License-Identifier: Apache-2.0 */
/* Work during which ONNX Runtime's threads rest. */
#ifndef TCONV_ONNXRUNTIME_REST_H
#define TCONV_ONNXRUNTIME_REST_H

#include "ort.h"

/* Runs `work` once, in the calling thread or in one of ONNX Runtime's, and returns when it has
 * ended. Up to `threads` - 1 other threads of ONNX Runtime sleep meanwhile. */
void rest_while(const OrtKernelContext *context, size_t threads, void (*work)(void *user),
                void *user);

#endif
