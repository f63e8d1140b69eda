/* SPDX-License-Identifier: Apache-2.0 */
/* Checks buffers and wait lists before there is an execution that reads them, for src/layer. */
#ifndef TCONV_PLAN_PLACE_H
#define TCONV_PLAN_PLACE_H

#include "tconv_cl/plan.h"

/* False if a tensor is absent. */
static inline bool tconv_is_given(const tconv_tensor *tensor)
{
    return tensor->memory != NULL || tensor->pointer != NULL || tensor->host != NULL;
}

/* Checks, as tconv_plan_enqueue does, that kernels of the plan may read `bytes` of an argument,
 * which begins at a multiple of `unit`. */
tconv_status tconv_place_check(const tconv_plan *plan, const char *argument,
                               const tconv_tensor *tensor, uint64_t bytes, size_t unit,
                               tconv_error *error);

/* Refuses a list without a count, and the reverse. */
tconv_status tconv_check_wait_list(uint32_t count, const void *list, tconv_error *error);

#endif
