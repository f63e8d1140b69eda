/* SPDX-License-Identifier: Apache-2.0 */
/* Runs plans in scratch buffers and on a queue of their own: on zeros for searches and for
 * tconv_device_prepare, on small numbers for tests of a unit. */
#ifndef TCONV_PLAN_SCRATCH_H
#define TCONV_PLAN_SCRATCH_H

#include "plan/plan_internal.h"

/* The tensors of one problem, for all of its plans. Every member may be missing after an error. */
struct tconv_scratch {
    cl_command_queue queue;
    cl_mem data, weights, output, workspace, channels, residual;
    uint64_t workspace_bytes;
};

/* What data, filter and output hold, instead of zeros: as many bytes as the problem of the plan
 * needs, up to a multiple of 4. */
struct tconv_contents {
    void *data, *weights, *output;
};

/* Makes queue and tensors for the problem of `plan`; `contents` may be NULL. */
tconv_status tconv_scratch_make(const tconv_plan *plan, const struct tconv_contents *contents,
                                struct tconv_scratch *scratch, tconv_error *error);

/* Waits for all commands and releases what was made. */
void tconv_scratch_free(struct tconv_scratch *scratch);

/* Packs a filter for a plan of the problem, and enlarges the workspace for it. The caller releases
 * the filter, also after an error if it is not NULL. Returns also TCONV_ERROR_ALGORITHM if the
 * device has no buffers as large as the workspace. */
tconv_status tconv_scratch_pack(struct tconv_scratch *scratch, tconv_plan *plan,
                                tconv_packed_filter **filter, tconv_error *error);

/* Runs `times` computations of a plan, one after another, and waits for them. Returns the
 * milliseconds of one, or a negative number if one fails. */
double tconv_scratch_run(const struct tconv_scratch *scratch, const tconv_plan *plan,
                         const tconv_packed_filter *filter, int times, tconv_error *error);

#endif
