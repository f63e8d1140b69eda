/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for ONNX Runtime's log: warnings, and what the library's tracing tells. */
#ifndef TCONV_ONNXRUNTIME_LOG_H
#define TCONV_ONNXRUNTIME_LOG_H

#include "errors.h"

/* Writes one warning. Without a logger it goes to stderr. */
__attribute__((format(printf, 2, 3))) void log_warning(const OrtLogger *logger, const char *format,
                                                       ...);

/* The log of a run; NULL if ONNX Runtime gives none. */
const OrtLogger *log_of(const OrtKernelContext *context);

/* Writes what this thread makes the library do to a log, until log_end: that of `context`, of a
 * run, or else `logger`. Plans and the choice of their algorithms, and what is left alone, are
 * information; algorithms that were passed over, and programs, are verbose. */
void log_begin(const OrtKernelContext *context, const OrtLogger *logger);
void log_end(void);

/* The callback for tconv_device_set_trace that log_begin needs, and the events it is for. */
#define LOGGED_EVENTS                                                                              \
    (TCONV_TRACE_PLAN | TCONV_TRACE_PASSED_OVER | TCONV_TRACE_PROGRAM | TCONV_TRACE_FALLBACK)
void log_event(void *unused, const tconv_trace_event *event);

#endif
