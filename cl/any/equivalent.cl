/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the filter of the transposed convolution that is equivalent to a convolution with nearest
 * upsampling, sums of the convolution's taps, rounded once; or with pixel shuffle, its taps in
 * another order. geometry/equivalent.h has the formulas, equivalent_table.h the numbers. */
#include "any/equivalent_table.h"
#include "common/common.clh"

#ifndef AXES
#error "AXES must be set"
#endif

/* The sum that is tap number `tap` of all axes; `w` is the first weight of the two channels. */
static acc_t sum_taps(__global const filter_t *w, __global const long *table, long tap)
{
    long count[AXES], all = 1;
#pragma unroll /* registers cannot be indexed */
    for (int a = AXES - 1; a >= 0; a--) {
        __global const long *axis = table + EQUIVALENT_AXES + a * EQUIVALENT_LONGS;
        const long t = tap % axis[EQUIVALENT_TAPS], d = axis[EQUIVALENT_DILATION];
        const long last = axis[EQUIVALENT_KERNEL] - 1, over = t - axis[EQUIVALENT_FACTOR] + 1;
        const long most = min(t / d, last), least = over <= 0 ? 0 : (over + d - 1) / d;
        tap /= axis[EQUIVALENT_TAPS];
        w += (last - most) * axis[EQUIVALENT_STEP] +
             t % axis[EQUIVALENT_FACTOR] * axis[EQUIVALENT_PHASE_STEP];
        count[a] = max(most - least + 1, 0L); /* 0: with dilation, no tap reaches */
        all *= count[a];
    }
    acc_t sum = 0;
    for (long i = 0; i < all; i++) {
        long rest = i, at = 0;
#pragma unroll
        for (int a = AXES - 1; a >= 0; a--) {
            at += rest % count[a] * table[EQUIVALENT_AXES + a * EQUIVALENT_LONGS + EQUIVALENT_STEP];
            rest /= count[a];
        }
        sum += PASTE(READ_, FILTER)(w + at);
    }
    return sum;
}

/* Writes element number `index` of the equivalent filter, [G*CI, CO, T...]. */
static void put_sum(__global const filter_t *w, __global packed_t *equivalent,
                    __global const long *table, const long index)
{
    long taps = 1;
    for (int a = 0; a < AXES; a++)
        taps *= table[EQUIVALENT_AXES + a * EQUIVALENT_LONGS + EQUIVALENT_TAPS];
    const long channels = index / taps, co = channels % table[EQUIVALENT_OUT_CHANNELS];
    const long rest = channels / table[EQUIVALENT_OUT_CHANNELS];
    w += rest / table[EQUIVALENT_IN_CHANNELS] * table[EQUIVALENT_GROUP_STEP] +
         rest % table[EQUIVALENT_IN_CHANNELS] * table[EQUIVALENT_IN_STEP] +
         co * table[EQUIVALENT_OUT_STEP];
    const acc_t sum = sum_taps(w, table, index % taps);
    PASTE(WRITE_, PACKED)(sum, equivalent + index);
}

/* The numbers of equivalent_table.h begin at table[first]. */
KERNEL void tconv_equivalent(__global const filter_t *restrict weights, const ulong weights_offset,
                             __global packed_t *restrict equivalent, const ulong equivalent_offset,
                             __global const long *restrict table, const long first, SHARE_PARAMETER)
{
    EACH_SHARED(i)
    if (SHARED_ITEM(i) < table[first + EQUIVALENT_ELEMENTS])
        put_sum(weights + weights_offset, equivalent + equivalent_offset, table + first,
                SHARED_ITEM(i));
}
