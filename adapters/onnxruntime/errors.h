/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of this library and statuses of ONNX Runtime. */
#ifndef TCONV_ONNXRUNTIME_ERRORS_H
#define TCONV_ONNXRUNTIME_ERRORS_H

#include "ort.h"

#include <tconv_cl/tconv_cl.h>

/* Fills `error`, which must not be NULL, as printf does, and returns `status`. */
__attribute__((format(printf, 3, 4))) tconv_status fail(tconv_error *error, tconv_status status,
                                                        const char *format, ...);

/* True if a call into ONNX Runtime succeeded. Otherwise its message goes to `error`, if that is not
 * NULL. */
bool succeeded(OrtStatus *status, tconv_error *error);

/* Makes the status of an error of `name`, a layer or a step. With `strict`, no other provider
 * computes instead. */
OrtStatus *status_of(const char *name, const tconv_error *error, bool strict);

#endif
