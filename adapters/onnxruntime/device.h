/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL devices, each opened once. */
#ifndef TCONV_ONNXRUNTIME_DEVICE_H
#define TCONV_ONNXRUNTIME_DEVICE_H

#include "errors.h"

/* Opens the device with this name (see tconv_device_find; "": the default one), or returns the open
 * one. It is never closed: when a process ends, OpenCL runtimes may be gone before this library. */
tconv_status device_open(const char *name, tconv_device **out, tconv_error *error);

/* tconv_device_set_trace for all devices, open ones and those that are opened later. NULL for
 * `callback`: events go to ONNX Runtime's log, as at first. One thread at a time, and not from a
 * callback. */
tconv_status device_trace(uint32_t kinds, tconv_trace_callback callback, void *context,
                          tconv_error *error);

#endif
