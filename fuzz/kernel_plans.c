/* SPDX-License-Identifier: Apache-2.0 */
/* Checks selection and kernel plans of one layer, without any device. */
#include "kernel_plans.h"

#include "fuzz.h"

#include "common/epilogue_table.h"

#include <math.h>
#include <string.h>

/* Saturates. */
static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* The least that a packed filter can have: each weight once. */
static uint64_t least_filter_bytes(const struct tconv_request *request,
                                   const struct tconv_algorithm *algorithm)
{
    const struct tconv_loops *loops = request->loops;
    uint64_t weights = times((uint64_t)loops->groups, (uint64_t)loops->in_channels);
    weights = times(weights, (uint64_t)loops->out_channels);
    for (int a = 0; a < loops->axes; a++) weights = times(weights, (uint64_t)loops->axis[a].kernel);
    const bool in_words = algorithm->packing == TCONV_PACK_QUADS ||
                          algorithm->packing == TCONV_PACK_WORDS ||
                          algorithm->packing == TCONV_PACK_CHANNEL_WORDS;
    return times(weights, in_words ? tconv_type_size(loops->data_type)
                                   : tconv_packed_bytes(request, algorithm->packing));
}

static void check_launch(const struct tconv_request *request,
                         const struct tconv_algorithm *algorithm, const struct tconv_launch *launch)
{
    const tconv_device_info *device = request->device;
    uint64_t group = 1;
    for (int i = 0; i < 3; i++) {
        if (launch->local[i] < 1 || launch->local[i] > device->work_item_limit[i] ||
            launch->global[i] < 1 || launch->global[i] % launch->local[i] != 0)
            fuzz_fail("%s has %zu work-items in groups of %zu along dimension %d", launch->kernel,
                      launch->global[i], launch->local[i], i);
        if (i > 0 && launch->global[i] / launch->local[i] > TCONV_GRID_LIMIT)
            fuzz_fail("%s has %zu groups along dimension %d", launch->kernel,
                      launch->global[i] / launch->local[i], i);
        group = times(group, launch->local[i]);
    }
    if (group > device->work_group_limit)
        fuzz_fail("%s has groups of %llu", launch->kernel, (unsigned long long)group);
    if (launch->local_bytes > device->local_memory)
        fuzz_fail("%s takes %zu bytes of local memory", launch->kernel, launch->local_bytes);
    char options[TCONV_MAX_OPTIONS];
    if (!tconv_launch_all_options(launch, request, algorithm, options, sizeof options))
        fuzz_fail("the options of %s do not fit: %s", launch->kernel, options);
}

static void check_kernel_plan(const struct tconv_request *request,
                              const struct tconv_candidate *candidate)
{
    const struct tconv_algorithm *algorithm = candidate->algorithm;
    struct tconv_kernel_plan kernel_plan = {0};
    tconv_error error;
    if (!(isfinite(candidate->cost) && candidate->cost > 0))
        fuzz_fail("%s costs %g", algorithm->name, candidate->cost);
    if (tconv_kernel_plan_write(request, candidate, &kernel_plan, &error) != TCONV_OK)
        fuzz_fail("%s does not write: %s", algorithm->name, error.message);
    if (kernel_plan.table_count < EPILOGUE_LONGS || kernel_plan.table_count > TCONV_TABLE_LIMIT)
        fuzz_fail("%s writes a table of %zu numbers", algorithm->name, kernel_plan.table_count);
    const uint64_t least = least_filter_bytes(request, algorithm);
    if (kernel_plan.filter_bytes < least || kernel_plan.filter_bytes > PTRDIFF_MAX)
        fuzz_fail("a filter of %s has %llu bytes, and its weights %llu", algorithm->name,
                  (unsigned long long)kernel_plan.filter_bytes, (unsigned long long)least);
    if (kernel_plan.workspace_bytes > request->device->allocation_limit ||
        (request->workspace_limit != 0 && kernel_plan.workspace_bytes > request->workspace_limit))
        fuzz_fail("%s takes %llu bytes of workspace", algorithm->name,
                  (unsigned long long)kernel_plan.workspace_bytes);
    if (kernel_plan.pack_count < 1 || kernel_plan.run_count < 1 || kernel_plan.layout[0] == '\0')
        fuzz_fail("a kernel plan of %s lacks something", algorithm->name);
    for (int i = 0; i < kernel_plan.pack_count; i++)
        check_launch(request, algorithm, &kernel_plan.pack[i]);
    for (int i = 0; i < kernel_plan.run_count; i++)
        check_launch(request, algorithm, &kernel_plan.run[i]);
    tconv_kernel_plan_clear(&kernel_plan);
}

/* Returns the least cost, or infinity where it refuses. */
static double check_algorithm(const struct tconv_request *request,
                              const struct tconv_algorithm *algorithm)
{
    struct tconv_reason reason = {""};
    struct tconv_candidates candidates;
    if (!tconv_enumerate(algorithm, request, NULL, &candidates, &reason)) {
        if (reason.text[0] == '\0') fuzz_fail("%s refuses without a reason", algorithm->name);
        return INFINITY;
    }
    for (int i = 0; i < candidates.count; i++) check_kernel_plan(request, &candidates.list[i]);
    return candidates.list[0].cost;
}

void fuzz_check_kernel_plans(const struct tconv_request *request, uint64_t algorithm)
{
    int count = 0;
    while (tconv_algorithm_at(count) != NULL) count++;
    const int one = (int)(algorithm % ((unsigned)count + 1));
    if (one != 0) {
        check_algorithm(request, tconv_algorithm_at(one - 1));
        return;
    }
    const struct tconv_algorithm *cheapest = NULL;
    double least = INFINITY;
    for (int f = 0; f < count; f++) {
        const double cost = check_algorithm(request, tconv_algorithm_at(f));
        if (cost < least) {
            cheapest = tconv_algorithm_at(f);
            least = cost;
        }
    }
    struct tconv_reason reason;
    struct tconv_pattern any;
    struct tconv_candidate best = {.algorithm = NULL};
    tconv_pattern_read("auto", &any, &reason);
    tconv_choose(request, &any, 0, &best, &reason);
    if (best.algorithm != cheapest) fuzz_fail("selection does not take the cheapest algorithm");
}
