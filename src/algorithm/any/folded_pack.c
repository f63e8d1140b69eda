/* SPDX-License-Identifier: Apache-2.0 */
/* Filters packed in the order of their taps, and the launches that pack and use them. */
#include "algorithm/any/folded.h"

#include "base/checked.h"
#include "common/folded_table.h"

#include <stdio.h>
#include <string.h>

void tconv_folded_layout(struct tconv_kernel_plan *kernel_plan, const char *algorithm,
                         const struct tconv_folded *folded)
{
    const int64_t kernel[] = {folded->z.kernel, folded->y.kernel, folded->x.kernel};
    tconv_kernel_plan_layout(kernel_plan, algorithm, &folded->loops, kernel, 3);
}

/* Input channels, or words of them, of each tap and output channel in a filter packed in the order
 * of its taps. */
static int64_t packed_channels(const struct tconv_folded *folded,
                               const struct tconv_request *request, enum tconv_packing packing)
{
    const struct tconv_loops *loops = &folded->loops;
    if (packing == TCONV_PACK_CHANNEL_WORDS) {
        const int word = tconv_word_channels(request); /* with 4, sums of weights follow */
        return tconv_ceil_div(loops->in_channels, word) + (word == 4);
    }
    return loops->in_channels;
}

bool tconv_folded_filter_fits(const struct tconv_folded *folded, int mw, int64_t blocks,
                              const struct tconv_request *request, enum tconv_packing packing,
                              struct tconv_reason *reason)
{
    const size_t bytes = tconv_packed_bytes(request, packing);
    const int64_t all_blocks = folded->loops.groups * blocks;
    const double taps = (double)folded->z.kernel * (double)folded->y.kernel *
                        (double)folded->x.kernel;
    const double weights = (double)all_blocks * mw * taps *
                           (double)packed_channels(folded, request, packing);
    /* Iterations of a tap: lanes x (channels + adding up the words). */
    const double loops = 1 + mw * ((double)folded->loops.in_channels +
                                   2.0 * (double)packed_channels(folded, request, packing));
    if (tconv_folded_too_long(taps * loops, request->device))
        return tconv_refuse(reason, "a work-item would pack too many weights");
    return tconv_filter_addressable(weights + (double)TAPS_HEADER(all_blocks, bytes), bytes,
                                    reason);
}

/* Packs with the kernel of `run`, a work-item for each block. The kernel packs if it gets no packed
 * filter. */
static void pack_with(struct tconv_launch *pack, const struct tconv_launch *run, int64_t items,
                      const tconv_device_info *device)
{
    enum tconv_arg args[TCONV_MAX_ARGS];
    for (int i = 0; i < run->arg_count; i++)
        args[i] = run->args[i] == TCONV_ARG_DATA     ? TCONV_ARG_WEIGHTS
                  : run->args[i] == TCONV_ARG_FILTER ? TCONV_ARG_NOTHING
                  : run->args[i] == TCONV_ARG_OUTPUT ? TCONV_ARG_FILTER
                                                     : run->args[i];
    memcpy(pack->options, run->options, sizeof pack->options);
    tconv_launch_items(pack, 0, items, 1, device);
    tconv_launch_args(pack, args, run->arg_count);
    pack->local_bytes = run->local_bytes;
}

void tconv_folded_pack(struct tconv_kernel_plan *kernel_plan, const struct tconv_folded *folded,
                       const char *kind, int mw, int64_t blocks, const struct tconv_launch *run,
                       const struct tconv_request *request, enum tconv_packing packing)
{
    const int64_t taps = folded->z.kernel * folded->y.kernel * folded->x.kernel;
    const int64_t all_blocks = folded->loops.groups * blocks;
    const size_t bytes = tconv_packed_bytes(request, packing);
    const int64_t in = packed_channels(folded, request, packing);
    char name[80];
    snprintf(name, sizeof name, "%s%d", kind, mw);
    tconv_folded_layout(kernel_plan, name, folded);
    kernel_plan->filter_bytes =
        (uint64_t)(TAPS_HEADER(all_blocks, bytes) + all_blocks * mw * taps * in) * bytes;

    pack_with(tconv_kernel_plan_pack(kernel_plan, run->kernel), run, all_blocks, request->device);
}

void tconv_folded_taps_options(const struct tconv_folded *folded, struct tconv_launch *run)
{
    const struct tconv_axis *x = &folded->x;
    tconv_launch_option(run, "KX", x->kernel);
    tconv_launch_option(run, "DX", x->dilation);
    tconv_launch_option(run, "RX", tconv_mod(x->pad, x->stride));
    tconv_launch_option(run, "LOW", folded->low - tconv_floor_div(x->pad, x->stride));
}

void tconv_folded_run(struct tconv_launch *run, int64_t items, uint64_t local_bytes,
                      const tconv_device_info *device)
{
    tconv_launch_items(run, 0, items, 1, device);
    TCONV_LAUNCH_ARGS(run, TCONV_ARG_DATA, TCONV_ARG_FILTER, TCONV_ARG_FLAGS, TCONV_ARGS_EPILOGUE,
                      TCONV_ARG_TABLE, TCONV_ARG_LOCAL, TCONV_ARG_SHARE);
    run->local_bytes = (size_t)local_bytes;
}

int64_t tconv_folded_tap_index(const struct tconv_folded *folded, const int64_t k[3])
{
    return (k[0] * folded->y.kernel + k[1]) * folded->x.kernel + k[2];
}
