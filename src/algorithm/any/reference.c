/* SPDX-License-Identifier: Apache-2.0 */
/* The reference and the sparse algorithm: parameters, cost and kernel plans of cl/any/reference.cl
 * and cl/any/sparse.cl. The reference accepts whatever the API accepts, except long sums on devices
 * with a limit on loops. The sparse algorithm adds a kernel that computes only the outputs that
 * some tap reaches. */
#include "algorithm/registry.h"

#include "algorithm/any/folded.h"
#include "algorithm/cost/gpu.h"
#include "any/reference_table.h"
#include "base/checked.h"

#include <stdlib.h>

/* Loop iterations of a work-item: looking for the first tap along each axis, adding. */
static double iterations(const struct tconv_loops *loops)
{
    double terms = 1, taps = 0;
    for (int a = 0; a < loops->axes; a++) {
        terms *= (double)tconv_most_taps(&loops->axis[a]);
        taps += (double)loops->axis[a].kernel;
    }
    return taps + terms * ((double)loops->in_channels / REF_CHANNELS + 1 + 2 * loops->axes);
}

/* Elements of the output; with `reached` only those that taps may reach. */
static double outputs_of(const struct tconv_loops *loops, bool reached)
{
    double outputs = (double)loops->batch * (double)loops->groups * (double)loops->out_channels;
    for (int a = 0; a < loops->axes; a++) {
        const struct tconv_axis *axis = &loops->axis[a];
        const double most = (double)axis->input * (double)axis->kernel, all = (double)axis->output;
        outputs *= reached && most < all ? most : all;
    }
    return outputs;
}

static bool filter_fits(const struct tconv_request *request, struct tconv_reason *reason)
{
    const struct tconv_loops *loops = request->loops;
    double weights = (double)loops->groups * (double)loops->in_channels *
                     (double)loops->out_channels;
    for (int a = 0; a < loops->axes; a++) weights *= (double)loops->axis[a].kernel;
    return tconv_filter_addressable(weights, tconv_packed_bytes(request, TCONV_PACK_RAW), reason);
}

static bool enumerate(const struct tconv_request *request, struct tconv_candidates *candidates,
                      struct tconv_reason *reason)
{
    const struct tconv_loops *loops = request->loops;
    if (tconv_folded_group_too_long(iterations(loops), request->device))
        return tconv_refuse(
            reason, "each output needs %.0f loop iterations; this device may abort such kernels",
            iterations(loops));
    if (!filter_fits(request, reason)) return false;
    const double outputs = outputs_of(loops, false);
    const struct tconv_machine *m = &request->machine;
    const double cost = tconv_gpu_portable_cost(
        request, m->reference_tap * (double)loops->macs + m->reference_output * outputs,
        m->reference_wait, iterations(loops));
    tconv_candidates_add(candidates, &(struct tconv_tile){0}, cost);
    return true;
}

/* The length of a run leaves some work-items for each compute unit, and respects the device's limit
 * on loops. */
static bool enumerate_sparse(const struct tconv_request *request,
                             struct tconv_candidates *candidates, struct tconv_reason *reason)
{
    enum { LEAST_RUN = 64, MOST_RUN = 8192, ITEMS_A_UNIT = 16 };
    const struct tconv_loops *loops = request->loops;
    const struct tconv_machine *m = &request->machine;
    const double outputs = outputs_of(loops, false), reached = outputs_of(loops, true);
    double taps = 0;
    for (int a = 0; a < loops->axes; a++) taps += (double)loops->axis[a].kernel;
    const double output_iterations = 1 + 2 * taps + iterations(loops);
    int run = MOST_RUN;
    while (run > LEAST_RUN &&
           (outputs / (double)run < ITEMS_A_UNIT * m->units ||
            tconv_folded_group_too_long((double)run * output_iterations, request->device)))
        run /= 2;
    if (tconv_folded_group_too_long((double)run * output_iterations, request->device))
        return tconv_refuse(reason, "no part of the work is small enough for a work-item");
    if (!filter_fits(request, reason)) return false;
    tconv_candidates_add(candidates, &(struct tconv_tile){.run = run},
                         m->reference_tap * (double)loops->macs +
                             (m->reference_output + m->sparse_tap * taps) * reached +
                             m->sparse_fill * outputs);
    return true;
}

static bool write_table(const struct tconv_loops *loops, struct tconv_kernel_plan *kernel_plan)
{
    if (!tconv_kernel_plan_table(kernel_plan, REF_AXES + (size_t)loops->axes * AXIS_LONGS))
        return false;
    int64_t kernel_points = 1, output_points = 1;
    for (int a = loops->axes - 1; a >= 0; a--) {
        const struct tconv_axis *axis = &loops->axis[a];
        int64_t *row = kernel_plan->table + REF_AXES + (size_t)a * AXIS_LONGS;
        row[AXIS_INPUT] = axis->input;
        row[AXIS_KERNEL] = axis->kernel;
        row[AXIS_STRIDE] = axis->stride;
        row[AXIS_DILATION] = axis->dilation;
        row[AXIS_PAD] = axis->pad;
        row[AXIS_OUTPUT] = axis->output;
        row[AXIS_DATA_STEP] = axis->data_step;
        row[AXIS_OUTPUT_STEP] = axis->output_step;
        row[AXIS_FILTER_STEP] = kernel_points;
        row[AXIS_SOURCE_STEP] = axis->filter_step;
        row[AXIS_TAP_STEP] = tconv_tap_step(axis);
        row[AXIS_INPUT_STEP] = tconv_input_step(axis);
        kernel_points *= axis->kernel;
        output_points *= axis->output;
    }
    int64_t *t = kernel_plan->table;
    t[REF_OUTPUTS] = loops->batch * loops->groups * loops->out_channels * output_points;
    t[REF_WEIGHTS] = loops->groups * loops->in_channels * loops->out_channels * kernel_points;
    t[REF_GROUPS] = loops->groups;
    t[REF_IN_CHANNELS] = loops->in_channels;
    t[REF_OUT_CHANNELS] = loops->out_channels;
    t[REF_KERNEL_POINTS] = kernel_points;
    t[REF_DATA_BATCH_STEP] = loops->data_batch_step;
    t[REF_DATA_CHANNEL_STEP] = loops->data_channel_step;
    t[REF_OUTPUT_BATCH_STEP] = loops->output_batch_step;
    t[REF_OUTPUT_CHANNEL_STEP] = loops->output_channel_step;
    t[REF_SOURCE_GROUP_STEP] = loops->filter_group_step;
    t[REF_SOURCE_IN_STEP] = loops->filter_in_step;
    t[REF_SOURCE_OUT_STEP] = loops->filter_out_step;
    return true;
}

/* All kernels of a kernel plan are built with the same options, so that they share a program. */
static void write_options(struct tconv_launch *launch, const struct tconv_loops *loops,
                          int64_t run_outputs)
{
    tconv_launch_option(launch, "AXES", loops->axes);
    if (run_outputs != 0) tconv_launch_option(launch, "RUN", run_outputs);
}

/* Writes the plan of either algorithm. */
static tconv_status write(const struct tconv_request *request,
                          const struct tconv_candidate *candidate,
                          struct tconv_kernel_plan *kernel_plan, tconv_error *error)
{
    const bool sparse = candidate->algorithm == &tconv_sparse;
    const int64_t run_outputs = candidate->tile.run;
    const struct tconv_loops *loops = request->loops;
    if (!write_table(loops, kernel_plan)) return tconv_fail_table(error, kernel_plan);
    int64_t kernel[TCONV_MAX_AXES];
    int axes = 0;
    for (int a = 0; a < loops->axes; a++) /* single taps do not change the order of weights */
        if (loops->axis[a].kernel > 1) kernel[axes++] = loops->axis[a].kernel;
    tconv_kernel_plan_layout(kernel_plan, "reference", loops, kernel, axes);
    kernel_plan->filter_bytes = (uint64_t)kernel_plan->table[REF_WEIGHTS] *
                                tconv_packed_bytes(request, TCONV_PACK_RAW);

    struct tconv_launch *pack = tconv_kernel_plan_pack(kernel_plan, "tconv_reference_pack");
    write_options(pack, loops, run_outputs);
    tconv_launch_items(pack, 0, kernel_plan->table[REF_WEIGHTS], 64, request->device);
    TCONV_LAUNCH_ARGS(pack, TCONV_ARG_WEIGHTS, TCONV_ARG_FILTER, TCONV_ARG_TABLE, TCONV_ARG_SHARE);

    struct tconv_launch *run =
        tconv_kernel_plan_run(kernel_plan, sparse ? "tconv_sparse" : "tconv_reference");
    run->divides = true;
    write_options(run, loops, run_outputs);
    if (sparse)
        tconv_launch_items(run, 0, tconv_ceil_div(kernel_plan->table[REF_OUTPUTS], run_outputs), 1,
                           request->device);
    else
        tconv_launch_items(run, 0, kernel_plan->table[REF_OUTPUTS], 64, request->device);
    run->macs = (double)loops->macs;
    TCONV_LAUNCH_ARGS(run, TCONV_ARG_DATA, TCONV_ARG_FILTER, TCONV_ARGS_EPILOGUE, TCONV_ARG_TABLE,
                      TCONV_ARG_SHARE);
    return TCONV_OK;
}

const struct tconv_algorithm tconv_sparse = {
    .name = "sparse_vector",
    .summary = "large strides: fills the outputs that no tap reaches and computes the rest one "
               "by one",
    .source = "any/sparse.cl",
    .packing = TCONV_PACK_RAW,
    .made_for = TCONV_FOR_VECTORS,
    .order = TCONV_ORDER_BY_PARAMETERS,
    .order_parameters = "",
    .parameters = {TCONV_TILE(run)},
    .program_parameters = 1,
    .enumerate = enumerate_sparse,
    .write = write,
};

const struct tconv_algorithm tconv_reference = {
    .name = "reference",
    .summary = "one work-item for each output element; slow, plain, for what the others refuse",
    .source = "any/reference.cl",
    .packing = TCONV_PACK_RAW,
    .takes_empty = true,
    .order = TCONV_ORDER_BY_PARAMETERS,
    .order_parameters = "",
    .enumerate = enumerate,
    .write = write,
};
