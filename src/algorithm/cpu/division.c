/* SPDX-License-Identifier: Apache-2.0 */
/* How the algorithms for CPUs divide a layer: local memory, blocks of channels. */
#include "algorithm/cpu/division.h"

#include "algorithm/cost/cpu.h"
#include "base/checked.h"

double tconv_local_budget(const struct tconv_folded *folded, double share,
                          const tconv_device_info *device)
{
    const double budget = share * folded->machine->l2, local = (double)device->local_memory;
    return local < budget ? local : budget;
}

int tconv_product_channels(const struct tconv_folded *folded, double block, double hold,
                           double work)
{
    enum { MOST_CHANNELS = 16 };
    const int64_t channels = folded->loops.out_channels;
    const int limit = tconv_folded_accumulators(folded);
    int best = 1;
    double least = 0;
    for (int mw = 1; mw <= MOST_CHANNELS && mw <= channels; mw++)
        for (int nx = mw > 4 ? 2 : 1; nx <= TCONV_PRODUCT_VECTORS && nx * mw <= limit; nx++) {
            const double cost =
                (double)(tconv_ceil_div(channels, mw) * mw) *
                (tconv_folded_inefficiency(folded, nx, mw) + block / mw + hold * mw / work);
            if (least == 0 || cost < least) {
                least = cost;
                best = mw;
            }
        }
    return best;
}

int tconv_divide_blocks(int64_t blocks, int64_t item_blocks[TCONV_BLOCK_DIVISIONS])
{
    static const int64_t parts[TCONV_BLOCK_DIVISIONS] = {1, 2, 3, 4, 6, 8, 12, 16, 32, 64};
    int count = 0;
    while (count < TCONV_BLOCK_DIVISIONS && parts[count] <= blocks) {
        item_blocks[count] = tconv_ceil_div(blocks, parts[count]);
        count++;
    }
    return count;
}
