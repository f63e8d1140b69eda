/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers with which all algorithms write their kernel plans. */
#include "algorithm/algorithm.h"

#include "base/architectures.h"
#include "base/error.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool tconv_table_fits(double numbers, struct tconv_reason *reason)
{
    if (numbers <= TCONV_TABLE_LIMIT) return true;
    return tconv_refuse(reason, "its table would have %.0f numbers; it may have at most %d",
                        numbers, TCONV_TABLE_LIMIT);
}

bool tconv_filter_addressable(double elements, size_t bytes, struct tconv_reason *reason)
{
    if (elements * (double)bytes <= (double)(PTRDIFF_MAX / 2)) return true;
    return tconv_refuse(reason, "its packed filter would have %.0f bytes",
                        elements * (double)bytes);
}

uint64_t tconv_workspace_limit(const struct tconv_request *request)
{
    const uint64_t given = request->workspace_limit, device = request->device->allocation_limit,
                   most = device > PTRDIFF_MAX ? PTRDIFF_MAX : device;
    return given != 0 && given < most ? given : most;
}

bool tconv_kernel_plan_table(struct tconv_kernel_plan *kernel_plan, size_t count)
{
    kernel_plan->table = calloc(count, sizeof *kernel_plan->table);
    kernel_plan->table_count = count;
    return kernel_plan->table != NULL;
}

void tconv_kernel_plan_clear(struct tconv_kernel_plan *kernel_plan)
{
    free(kernel_plan->table);
    kernel_plan->table = NULL;
    kernel_plan->table_count = 0;
}

bool tconv_kernel_plan_fits(const struct tconv_kernel_plan *kernel_plan)
{
    bool fits = !kernel_plan->overflow;
    for (int i = 0; i < kernel_plan->pack_count; i++) fits = fits && !kernel_plan->pack[i].overflow;
    for (int i = 0; i < kernel_plan->run_count; i++) fits = fits && !kernel_plan->run[i].overflow;
    return fits;
}

void tconv_kernel_plan_layout(struct tconv_kernel_plan *kernel_plan, const char *algorithm,
                              const struct tconv_loops *loops, const int64_t *kernel, int axes)
{
    struct tconv_text layout = tconv_text_begin(kernel_plan->layout, sizeof kernel_plan->layout);
    tconv_text_add(&layout, "%s %s %s g%" PRId64 " i%" PRId64 " o%" PRId64 " k", algorithm,
                   tconv_type_name(loops->filter_type), tconv_type_name(loops->data_type),
                   loops->groups, loops->in_channels, loops->out_channels);
    for (int a = 0; a < axes; a++)
        tconv_text_add(&layout, "%s%" PRId64, a == 0 ? "" : "x", kernel[a]);
    if (!tconv_text_fits(&layout)) kernel_plan->overflow = true;
}

void tconv_kernel_plan_types(struct tconv_kernel_plan *kernel_plan,
                             const struct tconv_request *request, enum tconv_packing packing)
{
    struct tconv_text layout = tconv_text_resume(kernel_plan->layout, sizeof kernel_plan->layout);
    tconv_text_add(&layout, "%s %zu bytes zero %d",
                   packing == TCONV_PACK_QUADS   ? " quads"
                   : packing == TCONV_PACK_WORDS ? " words"
                                                 : "",
                   tconv_packed_bytes(request, packing), (int)request->epilogue->filter_zero_point);
    if (!tconv_text_fits(&layout)) kernel_plan->overflow = true;
}

static struct tconv_launch *one_more(struct tconv_kernel_plan *kernel_plan,
                                     struct tconv_launch *launches, int *count, const char *kernel)
{
    if (*count == TCONV_MAX_LAUNCHES)
        kernel_plan->overflow = true; /* the caller writes into the last launch again */
    else
        ++*count;
    struct tconv_launch *launch = &launches[*count - 1];
    *launch = (struct tconv_launch){
        .kernel = kernel, .global = {1, 1, 1}, .local = {1, 1, 1}, .pieces = 1};
    return launch;
}

struct tconv_launch *tconv_kernel_plan_pack(struct tconv_kernel_plan *kernel_plan,
                                            const char *kernel)
{
    return one_more(kernel_plan, kernel_plan->pack, &kernel_plan->pack_count, kernel);
}

struct tconv_launch *tconv_kernel_plan_run(struct tconv_kernel_plan *kernel_plan,
                                           const char *kernel)
{
    return one_more(kernel_plan, kernel_plan->run, &kernel_plan->run_count, kernel);
}

void tconv_launch_option(struct tconv_launch *launch, const char *name, int64_t value)
{
    struct tconv_text options = tconv_text_resume(launch->options, sizeof launch->options);
    tconv_text_add(&options, " -D%s=%" PRId64, name, value);
    if (!tconv_text_fits(&options)) launch->overflow = true;
}

bool tconv_has_large_registers(const tconv_device_info *device)
{
    return tconv_has_trait(device->architecture, TCONV_TRAIT_LARGE) && device->subgroup_least > 0;
}

void tconv_launch_large_registers(struct tconv_launch *launch)
{
    struct tconv_text options = tconv_text_resume(launch->options, sizeof launch->options);
    tconv_text_add(&options, "%s", TCONV_LARGE_REGISTERS);
    if (!tconv_text_fits(&options)) launch->overflow = true;
}

bool tconv_launch_all_options(const struct tconv_launch *launch,
                              const struct tconv_request *request,
                              const struct tconv_algorithm *algorithm, char *text, size_t size)
{
    /* Where a sub-group has 16 lanes at least, Intel's compiler (IGC 1.0.12504) takes 32 unless
     * told, even if sums then go to memory. Where it has 8, kernels that need just as many ask for
     * them themselves (OF_LANES in cl/gpu/unit/intel.clh), and it finds the best number for the
     * others.
     */
    const uint32_t lanes = request->device->subgroup_least;
    char types[TCONV_MAX_OPTIONS];
    const tconv_epilogue none = TCONV_EPILOGUE_INIT;
    struct tconv_request own = *request;
    const bool sums = launch->source != NULL; /* makes the equivalent filter, and no output */
    if (sums) own.epilogue = &none;
    const enum tconv_packing packing = sums ? TCONV_PACK_RAW : algorithm->packing;
    const tconv_type filter = sums ? request->loops->filter_type
                                   : tconv_source_type(request, algorithm);
    const bool fits = tconv_type_options(&own, packing, filter, types, sizeof types) <
                      (int)sizeof types;
    struct tconv_text all = tconv_text_begin(text, size);
    tconv_text_add(&all, "%s", types);
    if (lanes >= 16 && request->device->kind == TCONV_DEVICE_GPU)
        tconv_text_add(&all, " -DSUBGROUP=%" PRIu32, lanes);
    if (launch->pieces > 1) tconv_text_add(&all, " -DDIVIDED=1");
    tconv_text_add(&all, "%s", launch->options);
    return fits && tconv_text_fits(&all);
}

void tconv_launch_args(struct tconv_launch *launch, const enum tconv_arg *args, int count)
{
    if (count > TCONV_MAX_ARGS) launch->overflow = true;
    launch->arg_count = count < TCONV_MAX_ARGS ? count : TCONV_MAX_ARGS;
    memcpy(launch->args, args, (size_t)launch->arg_count * sizeof *args);
}

size_t tconv_group_allowed(size_t group, int dimension, const tconv_device_info *device)
{
    while (group > 1 &&
           (group > device->work_group_limit || group > device->work_item_limit[dimension]))
        group /= 2;
    return group;
}

void tconv_launch_items(struct tconv_launch *launch, int dimension, int64_t count, size_t group,
                        const tconv_device_info *device)
{
    group = tconv_group_allowed(group, dimension, device);
    uint64_t groups = ((uint64_t)count + group - 1) / group;
    if (dimension > 0 && groups > TCONV_GRID_LIMIT) groups = TCONV_GRID_LIMIT;
    if (count < 1 || groups > SIZE_MAX / group) {
        launch->overflow = true;
        groups = 1;
    }
    launch->local[dimension] = group;
    launch->global[dimension] = (size_t)groups * group;
}

tconv_status tconv_fail_table(tconv_error *error, const struct tconv_kernel_plan *kernel_plan)
{
    return tconv_fail_memory(error, kernel_plan->table_count * sizeof *kernel_plan->table,
                             "writing the table of a plan");
}
