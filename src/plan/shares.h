/* SPDX-License-Identifier: Apache-2.0 */
/* Executes plans at once: on a device with a crew (device/crew.h) its threads, or the
 * application's, share each launch; on others the launches are enqueued. */
#ifndef TCONV_PLAN_SHARES_H
#define TCONV_PLAN_SHARES_H

#include "device/crew.h"
#include "tconv_cl/plan.h"

/* Executes a plan as tconv_plan_enqueue does, behind the commands of `queue`, which no other thread
 * uses. On a device with a crew, the execution has ended when it returns, and `*done` is NULL. */
tconv_status tconv_plan_execute(const tconv_plan *plan, cl_command_queue queue,
                                const struct tconv_pool *pool, const tconv_tensors *tensors,
                                cl_event *done, tconv_error *error);

/* Packs a filter likewise. */
tconv_status tconv_packed_filter_execute(tconv_packed_filter *filter, cl_command_queue queue,
                                         const struct tconv_pool *pool, const tconv_tensor *weights,
                                         tconv_error *error);

#endif
