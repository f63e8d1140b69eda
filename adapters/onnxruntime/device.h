/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL devices, each opened once. */
#ifndef TCONV_ONNXRUNTIME_DEVICE_H
#define TCONV_ONNXRUNTIME_DEVICE_H

#include <tconv_cl/tconv_cl.h>

/* Fills `error`, which is not NULL, as printf would, and returns `status`. */
__attribute__((format(printf, 3, 4))) tconv_status fail(tconv_error *error, tconv_status status,
                                                        const char *format, ...);

/* The device with that name (see tconv_device_find; "": the default one). Opened once, never
 * closed: when a process ends, OpenCL runtimes may be gone before this library is. */
tconv_status device_open(const char *name, tconv_session **out, tconv_error *error);

#endif
