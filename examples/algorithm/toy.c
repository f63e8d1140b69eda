/* SPDX-License-Identifier: Apache-2.0 */
/* The toy algorithm, an example for docs/adding-an-algorithm.md: parameters, cost and kernel plan
 * of cl/any/toy.cl. */
#include "algorithm/registry.h"

#include "algorithm/any/folded.h"
#include "any/toy_table.h"

enum { ITEMS = 64 }; /* of a work-group */

/* The loops with as few axes as possible: false with a reason where these are more than one. */
static bool prepare(const struct tconv_request *request, struct tconv_loops *loops,
                    struct tconv_reason *reason)
{
    *loops = *request->loops;
    tconv_loops_fold(loops);
    if (loops->axes != 1) return tconv_refuse(reason, "%d spatial axes; it takes one", loops->axes);
    const double weights = (double)loops->groups * (double)loops->in_channels *
                           (double)loops->out_channels * (double)loops->axis[0].kernel;
    return tconv_filter_addressable(weights, tconv_packed_bytes(request, TCONV_PACK_RAW), reason);
}

static bool enumerate(const struct tconv_request *request, struct tconv_candidates *candidates,
                      struct tconv_reason *reason)
{
    struct tconv_loops loops;
    if (!prepare(request, &loops, reason)) return false;
    /* A loop of plain products, as the reference has it. */
    const double rounds = (double)loops.axis[0].kernel * (1 + (double)loops.in_channels);
    if (tconv_folded_group_too_long(rounds, request->device))
        return tconv_refuse(
            reason, "each output needs %.0f loop iterations; this device may abort such kernels",
            rounds);
    const double outputs = (double)loops.batch * (double)loops.groups * (double)loops.out_channels *
                           (double)loops.axis[0].output;
    tconv_candidates_add(candidates, &(struct tconv_tile){.items = ITEMS},
                         request->machine.reference_tap * outputs * rounds);
    return true;
}

static bool write_table(const struct tconv_loops *loops, struct tconv_kernel_plan *kernel_plan)
{
    const struct tconv_axis *axis = &loops->axis[0];
    const int64_t channels = loops->groups * loops->out_channels;
    if (!tconv_kernel_plan_table(kernel_plan, TOY_LONGS)) return false;
    int64_t *t = kernel_plan->table;
    t[TOY_OUTPUTS] = loops->batch * channels * axis->output;
    t[TOY_WEIGHTS] = channels * loops->in_channels * axis->kernel;
    t[TOY_GROUPS] = loops->groups;
    t[TOY_IN_CHANNELS] = loops->in_channels;
    t[TOY_OUT_CHANNELS] = loops->out_channels;
    t[TOY_INPUT] = axis->input;
    t[TOY_KERNEL] = axis->kernel;
    t[TOY_STRIDE] = axis->stride;
    t[TOY_DILATION] = axis->dilation;
    t[TOY_PAD] = axis->pad;
    t[TOY_OUTPUT] = axis->output;
    t[TOY_DATA_BATCH_STEP] = loops->data_batch_step;
    t[TOY_DATA_CHANNEL_STEP] = loops->data_channel_step;
    t[TOY_DATA_STEP] = axis->data_step;
    t[TOY_OUTPUT_BATCH_STEP] = loops->output_batch_step;
    t[TOY_OUTPUT_CHANNEL_STEP] = loops->output_channel_step;
    t[TOY_OUTPUT_STEP] = axis->output_step;
    t[TOY_SOURCE_GROUP_STEP] = loops->filter_group_step;
    t[TOY_SOURCE_IN_STEP] = loops->filter_in_step;
    t[TOY_SOURCE_OUT_STEP] = loops->filter_out_step;
    t[TOY_SOURCE_STEP] = axis->filter_step;
    return true;
}

static tconv_status write(const struct tconv_request *request,
                          const struct tconv_candidate *candidate,
                          struct tconv_kernel_plan *kernel_plan, tconv_error *error)
{
    struct tconv_loops loops;
    struct tconv_reason reason;
    prepare(request, &loops, &reason);
    if (!write_table(&loops, kernel_plan)) return tconv_fail_table(error, kernel_plan);
    tconv_kernel_plan_layout(kernel_plan, "toy", &loops, &loops.axis[0].kernel, 1);
    kernel_plan->filter_bytes = (uint64_t)kernel_plan->table[TOY_WEIGHTS] *
                                tconv_packed_bytes(request, TCONV_PACK_RAW);
    struct tconv_launch *pack = tconv_kernel_plan_pack(kernel_plan, "tconv_toy_pack");
    tconv_launch_option(pack, "ITEMS", candidate->tile.items);
    tconv_launch_items(pack, 0, kernel_plan->table[TOY_WEIGHTS], (size_t)candidate->tile.items,
                       request->device);
    TCONV_LAUNCH_ARGS(pack, TCONV_ARG_WEIGHTS, TCONV_ARG_FILTER, TCONV_ARG_TABLE, TCONV_ARG_SHARE);
    struct tconv_launch *run = tconv_kernel_plan_run(kernel_plan, "tconv_toy");
    tconv_launch_option(run, "ITEMS", candidate->tile.items);
    tconv_launch_items(run, 0, kernel_plan->table[TOY_OUTPUTS], (size_t)candidate->tile.items,
                       request->device);
    TCONV_LAUNCH_ARGS(run, TCONV_ARG_DATA, TCONV_ARG_FILTER, TCONV_ARGS_EPILOGUE, TCONV_ARG_TABLE,
                      TCONV_ARG_SHARE);
    return TCONV_OK;
}

const struct tconv_algorithm tconv_toy = {
    .name = "toy",
    .summary = "an example: one work-item for each output element of a layer of one axis",
    .source = "any/toy.cl",
    .packing = TCONV_PACK_RAW,
    .made_for = TCONV_FOR_ALL,
    .parameters = {TCONV_TILE(items)},
    .program_parameters = 1,
    .enumerate = enumerate,
    .write = write,
};
