/* SPDX-License-Identifier: Apache-2.0 */
/* What all probes share, those that run a plan and those that run a kernel: a queue, buffers, and
 * verdicts that the device keeps. */
#ifndef TCONV_PLAN_PROBE_PARTS_H
#define TCONV_PLAN_PROBE_PARTS_H

#include "plan/plan_internal.h"

/* The objects of a probe. Each may be NULL, but `retry`, which is passed to every request for a
 * program. */
struct tconv_probe {
    struct tconv_retry retry;
    tconv_plan *plan;
    tconv_packed_filter *filter;
    cl_command_queue queue;
    cl_mem data, weights, output, workspace;
};

/* Make a queue, and a buffer with a copy of `numbers`, or with garbage if they are NULL. What is
 * made is NULL after an error. */
tconv_status tconv_probe_queue(const tconv_device *device, cl_command_queue *queue,
                               tconv_error *error);
tconv_status tconv_probe_buffer(const tconv_device *device, size_t bytes, void *numbers,
                                cl_mem *memory, tconv_error *error);

/* Waits for the queue and reads the output. */
tconv_status tconv_probe_read(const struct tconv_probe *probe, void *output, size_t bytes,
                              tconv_error *error);

/* Waits for the queue and releases all objects. */
void tconv_probe_clear(struct tconv_probe *probe);

/* The verdict of the probe with this name; NULL with an error if host memory is missing. `*known`
 * is false if the probe did not run yet on the device. `*right` is true if it passed. */
atomic_int *tconv_probe_verdict(tconv_device *device, const char *name, bool *known, bool *right,
                                tconv_error *error);

/* Keeps the verdict of a probe that ended with `status` and `*own`; the probe passed if `*right` is
 * still true then. An error that is not the kernel's own is returned instead. If a program did not
 * build that may build later (`retry`), nothing is kept. */
tconv_status tconv_probe_keep(atomic_int *verdict, tconv_status status, const tconv_error *own,
                              const struct tconv_retry *retry, bool *right, tconv_error *error);

#endif
