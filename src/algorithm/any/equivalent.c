/* SPDX-License-Identifier: Apache-2.0 */
/* Packs the filter of a convolution with upsampling or pixel shuffle: the first launch adds up its
 * taps, or puts them into another order. */
#include "algorithm/algorithm.h"
#include "any/equivalent_table.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void write_numbers(const struct tconv_loops *loops, int64_t *to)
{
    const struct tconv_equivalent *e = &loops->equivalent;
    to[EQUIVALENT_ELEMENTS] = e->elements;
    to[EQUIVALENT_OUT_CHANNELS] = loops->out_channels;
    to[EQUIVALENT_IN_CHANNELS] = loops->in_channels;
    to[EQUIVALENT_OUT_STEP] = e->out_step;
    to[EQUIVALENT_IN_STEP] = e->in_step;
    to[EQUIVALENT_GROUP_STEP] = e->group_step;
    for (int a = 0; a < e->axes; a++) {
        int64_t *axis = to + EQUIVALENT_AXES + a * EQUIVALENT_LONGS;
        axis[EQUIVALENT_TAPS] = e->taps[a];
        axis[EQUIVALENT_FACTOR] = e->factor[a];
        axis[EQUIVALENT_DILATION] = e->dilation[a];
        axis[EQUIVALENT_KERNEL] = e->kernel[a];
        axis[EQUIVALENT_STEP] = e->step[a];
        axis[EQUIVALENT_PHASE_STEP] = e->phase_step[a];
    }
}

/* Two filters with equal layouts hold equal weights: so the layout names the sums, or the order. An
 * order is one of all outputs' phases: their steps along the axes differ with it. */
static void name_layout(const struct tconv_equivalent *e, struct tconv_kernel_plan *kernel_plan)
{
    struct tconv_text layout = tconv_text_resume(kernel_plan->layout, sizeof kernel_plan->layout);
    for (int a = 0; a < e->axes; a++) {
        tconv_text_add(&layout, "%s%" PRId64 "/%" PRId64 "/%" PRId64, a == 0 ? " sums " : "x",
                       e->factor[a], e->kernel[a], e->dilation[a]);
        if (e->phase_step[a] != 0)
            tconv_text_add(&layout, "/%s", e->phase_step[a] < e->out_step ? "crd" : "dcr");
    }
    if (!tconv_text_fits(&layout)) kernel_plan->overflow = true;
}

bool tconv_equivalent_write(const struct tconv_request *request,
                            struct tconv_kernel_plan *kernel_plan)
{
    enum { GROUP = 64 };
    const struct tconv_equivalent *e = &request->loops->equivalent;
    const size_t own = kernel_plan->table_count,
                 count = own + EQUIVALENT_AXES + (size_t)e->axes * EQUIVALENT_LONGS;
    int64_t *table = realloc(kernel_plan->table, count * sizeof *table);
    if (table == NULL) return false;
    kernel_plan->table = table;
    kernel_plan->table_count = count;
    write_numbers(request->loops, table + own);
    name_layout(e, kernel_plan);
    for (int i = 0; i < kernel_plan->pack_count; i++)
        for (int a = 0; a < kernel_plan->pack[i].arg_count; a++)
            if (kernel_plan->pack[i].args[a] == TCONV_ARG_WEIGHTS)
                kernel_plan->pack[i].args[a] = TCONV_ARG_EQUIVALENT;
    tconv_kernel_plan_pack(kernel_plan, "tconv_equivalent"); /* makes room */
    memmove(kernel_plan->pack + 1, kernel_plan->pack,
            (size_t)(kernel_plan->pack_count - 1) * sizeof *kernel_plan->pack);
    struct tconv_launch *sums = kernel_plan->pack;
    *sums = (struct tconv_launch){.source = "any/equivalent.cl",
                                  .kernel = "tconv_equivalent",
                                  .first = (int64_t)own,
                                  .global = {1, 1, 1},
                                  .local = {1, 1, 1},
                                  .pieces = 1};
    tconv_launch_option(sums, "AXES", e->axes);
    tconv_launch_items(sums, 0, e->elements, GROUP, request->device);
    TCONV_LAUNCH_ARGS(sums, TCONV_ARG_WEIGHTS, TCONV_ARG_EQUIVALENT, TCONV_ARG_TABLE,
                      TCONV_ARG_FIRST, TCONV_ARG_SHARE);
    return true;
}
