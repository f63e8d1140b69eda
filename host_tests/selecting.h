/* SPDX-License-Identifier: Apache-2.0 */
/* Selection as tests ask for it: one algorithm's best candidate, its cost and its kernel plan. */
#ifndef HOST_TESTS_SELECTING_H
#define HOST_TESTS_SELECTING_H

#include "algorithm/registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A request without a limit of the workspace. */
static inline struct tconv_request request_for(const struct tconv_loops *loops,
                                               const tconv_device_info *device,
                                               const tconv_epilogue *epilogue, tconv_math math)
{
    return (struct tconv_request){.loops = loops,
                                  .device = device,
                                  .epilogue = epilogue,
                                  .math = math,
                                  .machine = tconv_machine_of(device, tconv_acc_bytes(loops))};
}

/* Whether an algorithm takes a request, and its best candidate's cost. */
static inline bool accepts(const struct tconv_algorithm *algorithm,
                           const struct tconv_request *request, double *cost,
                           struct tconv_reason *reason)
{
    struct tconv_candidates candidates;
    if (!tconv_enumerate(algorithm, request, NULL, &candidates, reason)) return false;
    *cost = candidates.list[0].cost;
    return true;
}

/* The kernel plan of an algorithm's best candidate; TCONV_ERROR_ALGORITHM where there is none. */
static inline tconv_status write_best(const struct tconv_algorithm *algorithm,
                                      const struct tconv_request *request,
                                      struct tconv_kernel_plan *kernel_plan, tconv_error *error)
{
    struct tconv_candidates candidates;
    struct tconv_reason reason;
    if (!tconv_enumerate(algorithm, request, NULL, &candidates, &reason))
        return TCONV_ERROR_ALGORITHM;
    return tconv_kernel_plan_write(request, &candidates.list[0], kernel_plan, error);
}

/* The algorithm that is chosen for what a caller asks for, or NULL. */
static inline const struct tconv_algorithm *chosen(const struct tconv_request *request,
                                                   const char *text, struct tconv_reason *reason)
{
    struct tconv_pattern pattern;
    struct tconv_candidate best;
    if (!tconv_pattern_read(text, &pattern, reason) ||
        !tconv_choose(request, &pattern, 0, &best, reason))
        return NULL;
    return best.algorithm;
}

/* The number of an option of a launch's program; -1 if the program does not have it. */
static inline long option_of(const struct tconv_launch *launch, const char *name)
{
    char wanted[40];
    snprintf(wanted, sizeof wanted, "-D%s=", name);
    const char *at = strstr(launch->options, wanted);
    return at == NULL ? -1 : atol(at + strlen(wanted));
}

/* The sums that a work-item of a launch has in registers, for algorithms made for GPUs but
 * matrix_group. */
static inline long sums_of(const struct tconv_algorithm *algorithm, const struct tconv_launch *run)
{
    if (algorithm == &tconv_tiled_group) return option_of(run, "TM") * option_of(run, "TN");
    if (algorithm == &tconv_direct_group)
        return option_of(run, "OUTPUTS") * option_of(run, "CHANNELS") * option_of(run, "VW");
    if (algorithm == &tconv_gather_group || algorithm == &tconv_gather_dot) {
        const long phases = option_of(run, "SX"); /* only if they are merged */
        return option_of(run, "MW") * option_of(run, "VW") * (phases > 0 ? phases : 1);
    }
    if (algorithm == &tconv_col2im_group) return option_of(run, "MW");
    return 1;
}

#endif
