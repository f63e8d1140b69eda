/* SPDX-License-Identifier: Apache-2.0 */
/* The toy algorithm, an example for docs/adding-an-algorithm.md: one work-item computes one output
 * element of a layer of one axis.
 *
 *   sum[n, g, co, o] = sum over ci, k of data[n, g, ci, i] * filter[g, ci, co, k]   where o + pad =
 *                                                                                   i*s + k*d
 *
 * The packed filter is in the order [group][out][tap][in]. toy_table.h has the table.
 *
 *   macro   meaning                      legal values
 *   ITEMS   work-items of a work-group   1 and more; unused here, as an example of a tile parameter
 */
#include "any/toy_table.h"
#include "common/epilogue.clh"

#ifndef ITEMS
#error "ITEMS must be set"
#endif

/* Computes the output element with this number. */
static void toy_output(__global const data_t *restrict data,
                       __global const packed_t *restrict filter, const struct epilogue *epilogue,
                       __global const long *restrict table, const long index)
{
    const long o = index % table[TOY_OUTPUT], rest = index / table[TOY_OUTPUT];
    const long channel = rest % (table[TOY_GROUPS] * table[TOY_OUT_CHANNELS]);
    const long n = rest / (table[TOY_GROUPS] * table[TOY_OUT_CHANNELS]);
    const long in = table[TOY_IN_CHANNELS], g = channel / table[TOY_OUT_CHANNELS];
    const acc_t zero = DATA_ZERO(table);
    acc_t sum = 0;
    for (long k = 0; k < table[TOY_KERNEL]; k++) {
        const long distance = o + table[TOY_PAD] - k * table[TOY_DILATION];
        const long i = distance / table[TOY_STRIDE];
        if (distance < 0 || distance % table[TOY_STRIDE] != 0 || i >= table[TOY_INPUT]) continue;
        __global const data_t *x = data + n * table[TOY_DATA_BATCH_STEP] +
                                   g * in * table[TOY_DATA_CHANNEL_STEP] + i * table[TOY_DATA_STEP];
        __global const packed_t *w = filter + (channel * table[TOY_KERNEL] + k) * in;
        for (long ci = 0; ci < in; ci++)
            sum = MULTIPLY_ADD(READ_DATA(x + ci * table[TOY_DATA_CHANNEL_STEP], zero),
                               READ_WEIGHT(w + ci), sum);
    }
    put_one(epilogue, affine_one(epilogue, sum, channel),
            n * table[TOY_OUTPUT_BATCH_STEP] + channel * table[TOY_OUTPUT_CHANNEL_STEP] +
                o * table[TOY_OUTPUT_STEP],
            channel);
}

KERNEL void tconv_toy(__global const data_t *restrict data, const ulong data_offset,
                      __global const packed_t *restrict filter, const ulong filter_offset,
                      EPILOGUE_PARAMETERS, __global const long *restrict table, SHARE_PARAMETER)
{
    EPILOGUE(epilogue, table)
    EACH_SHARED(i)
    if (SHARED_ITEM(i) < table[TOY_OUTPUTS])
        toy_output(data + data_offset, filter + filter_offset, &epilogue, table, SHARED_ITEM(i));
}

/* Copies the weight with this number. */
static void toy_weight(__global const filter_t *restrict weights,
                       __global packed_t *restrict filter, __global const long *restrict table,
                       const long index)
{
    const long in = table[TOY_IN_CHANNELS], out = table[TOY_OUT_CHANNELS];
    const long ci = index % in, k = index / in % table[TOY_KERNEL];
    const long channel = index / in / table[TOY_KERNEL];
    PACK(weights + channel / out * table[TOY_SOURCE_GROUP_STEP] +
             channel % out * table[TOY_SOURCE_OUT_STEP] + ci * table[TOY_SOURCE_IN_STEP] +
             k * table[TOY_SOURCE_STEP],
         filter + index, FILTER_ZERO(table));
}

KERNEL void tconv_toy_pack(__global const filter_t *restrict weights, const ulong weights_offset,
                           __global packed_t *restrict filter, const ulong filter_offset,
                           __global const long *restrict table, SHARE_PARAMETER)
{
    EACH_SHARED(i)
    if (SHARED_ITEM(i) < table[TOY_WEIGHTS])
        toy_weight(weights + weights_offset, filter + filter_offset, table, SHARED_ITEM(i));
}
