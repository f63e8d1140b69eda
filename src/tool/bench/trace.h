/* SPDX-License-Identifier: Apache-2.0 */
/* --trace of bench and check: what the library and the device did when, in Chrome's trace format,
 * which chrome://tracing and Perfetto show. Without the option these functions do nothing. */
#ifndef TCONV_TOOL_TRACE_H
#define TCONV_TOOL_TRACE_H

#include "tool/bench/opened.h"

/* Begins to follow the device object. Call trace_end in any case. */
enum exit_code trace_begin(const struct opened *opened);

/* Follows another object of the device, too. */
void trace_device(tconv_device *device);

/* The queue for launches: of the device that a trace follows one that profiles, else opened->queue.
 */
cl_command_queue trace_queue(const struct opened *opened);

/* Ends the span of a layer that began at `begin` seconds (tconv_os_seconds). Waits for its launches
 * and reads their times. */
void trace_layer(const char *id, const char *layer, double begin);

/* Writes the file. */
enum exit_code trace_write(void);

/* Stops following, and releases everything. */
void trace_end(void);

#endif
