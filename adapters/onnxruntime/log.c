/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for ONNX Runtime's log: warnings, and what the library's tracing tells. */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>

/* Where this thread's events go. */
static _Thread_local struct {
    const OrtKernelContext *context;
    const OrtLogger *logger;
} place;

__attribute__((format(printf, 3, 0))) static void
write_line(const OrtLogger *logger, OrtLoggingLevel level, const char *format, va_list arguments)
{
    char line[1400];
    vsnprintf(line, sizeof line, format, arguments);
    const bool written =
        logger != NULL &&
        succeeded(ort.Logger_LogMessage(logger, level, line, __FILE__, __LINE__, "tconv_cl"), NULL);
    if (!written && level == ORT_LOGGING_LEVEL_WARNING) fprintf(stderr, "%s\n", line);
}

void log_warning(const OrtLogger *logger, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_line(logger, ORT_LOGGING_LEVEL_WARNING, format, arguments);
    va_end(arguments);
}

const OrtLogger *log_of(const OrtKernelContext *context)
{
    const OrtLogger *logger = NULL;
    succeeded(ort.KernelContext_GetLogger(context, &logger), NULL);
    return logger;
}

/* Writes to this thread's log, if it has one. */
__attribute__((format(printf, 2, 3))) static void tell(OrtLoggingLevel level, const char *format,
                                                       ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_line(place.context != NULL ? log_of(place.context) : place.logger, level, format,
               arguments);
    va_end(arguments);
}

void log_begin(const OrtKernelContext *context, const OrtLogger *logger)
{
    place.context = context;
    place.logger = logger;
}

void log_end(void)
{
    log_begin(NULL, NULL);
}

void log_event(void *unused, const tconv_trace_event *event)
{
    (void)unused;
    /* Tenths of a millisecond. The locale of the application must not choose the decimal point. */
    const unsigned long long tenths = (event->end_ns - event->begin_ns) / 100000;
    const char *problem = event->problem == NULL ? "" : event->problem;
    switch (event->kind) {
    case TCONV_TRACE_PLAN:
        tell(ORT_LOGGING_LEVEL_INFO, "tconv_cl: %s %s, chosen by %s, planned in %llu.%llu ms: %s",
             event->algorithm, event->tile, event->source, tenths / 10, tenths % 10, problem);
        break;
    case TCONV_TRACE_PASSED_OVER:
        tell(ORT_LOGGING_LEVEL_VERBOSE, "tconv_cl: %s %s is passed over, %s: %s", event->algorithm,
             event->tile, event->message, problem);
        break;
    case TCONV_TRACE_PROGRAM:
        if (event->message != NULL)
            tell(ORT_LOGGING_LEVEL_VERBOSE, "tconv_cl: %s does not compile: %s", event->name,
                 event->message);
        else
            tell(ORT_LOGGING_LEVEL_VERBOSE, "tconv_cl: %s from %s in %llu.%llu ms", event->name,
                 event->source, tenths / 10, tenths % 10);
        break;
    case TCONV_TRACE_FALLBACK:
        tell(ORT_LOGGING_LEVEL_INFO, "tconv_cl: Conv \"%s\" stays ONNX Runtime's: %s", problem,
             event->message);
        break;
    default: break;
    }
}
