/* SPDX-License-Identifier: Apache-2.0 */
/* The reference algorithm: one work-item computes one output element, for any rank, format and
 * attribute. It is slow and plain.
 *
 *   sum[n, g, co, o] = sum over ci, k of data[n, g, ci, i] * filter[g, ci, co, k]   where o + pad =
 *                                                                                   i*s + k*d
 *
 * The packed filter is the filter tensor, dense, in the order [group][in][out][taps].
 * reference_table.h has the table.
 *
 *   macro   meaning                     legal values
 *   AXES    spatial axes of the layer   1 to 6 */
#include "any/reference_table.h"
#include "common/epilogue.clh"

#ifndef AXES
#error "AXES must be set"
#endif

/* Adds the product of an input channel. An iteration adds several channels, because some drivers
 * abort long loops; more channels would need more registers than GPUs have. */
#define CHANNEL(ci)                                                                                \
    if ((ci) < in_channels)                                                                        \
        sum = MULTIPLY_ADD(READ_DATA(x + (ci)*table[REF_DATA_CHANNEL_STEP], zero),                 \
                           READ_WEIGHT(w + (ci)*out_channels * table[REF_KERNEL_POINTS]), sum);

/* Computes output element number `index`. */
static NOINLINE void reference_output(__global const data_t *restrict data,
                                      __global const packed_t *restrict filter,
                                      const struct epilogue *f, __global const long *restrict table,
                                      const long index)
{
    const long in_channels = table[REF_IN_CHANNELS], out_channels = table[REF_OUT_CHANNELS];

    /* The element's coordinates: batch, group, channel, then the axes, innermost last. */
    long rest = index;
    long coordinate[AXES];
    for (int a = AXES - 1; a >= 0; a--) {
        const long extent = table[REF_AXES + a * AXIS_LONGS + AXIS_OUTPUT];
        coordinate[a] = rest % extent;
        rest /= extent;
    }
    const long co = rest % out_channels;
    const long g = rest / out_channels % table[REF_GROUPS];
    const long n = rest / out_channels / table[REF_GROUPS];

    /* Along each axis: the first tap that reaches the element from inside the data, its input, and
     * how many taps do. */
    long tap[AXES], input[AXES], taps[AXES], turn[AXES];
    long terms = 1;
    for (int a = 0; a < AXES; a++) {
        __global const long *axis = table + REF_AXES + a * AXIS_LONGS;
        const long reach = coordinate[a] + axis[AXIS_PAD];
        tap[a] = 0;
        input[a] = 0;
        taps[a] = 0;
        turn[a] = 0;
        for (long k = 0; k < axis[AXIS_KERNEL] && taps[a] == 0; k++) {
            const long distance = reach - k * axis[AXIS_DILATION];
            if (distance < 0) break;
            if (distance % axis[AXIS_STRIDE] != 0 ||
                distance / axis[AXIS_STRIDE] >= axis[AXIS_INPUT])
                continue;
            tap[a] = k;
            input[a] = distance / axis[AXIS_STRIDE];
            taps[a] = min((axis[AXIS_KERNEL] - 1 - k) / axis[AXIS_TAP_STEP],
                          input[a] / axis[AXIS_INPUT_STEP]) +
                      1;
        }
        terms *= taps[a];
    }

    const acc_t zero = DATA_ZERO(table);
    acc_t sum = 0;
    for (long term = 0; term < terms; term++) {
        __global const data_t *x = data + n * table[REF_DATA_BATCH_STEP] +
                                   g * in_channels * table[REF_DATA_CHANNEL_STEP];
        __global const packed_t *w = filter + (g * in_channels * out_channels + co) *
                                                  table[REF_KERNEL_POINTS];
        for (int a = 0; a < AXES; a++) {
            __global const long *axis = table + REF_AXES + a * AXIS_LONGS;
            x += (input[a] - turn[a] * axis[AXIS_INPUT_STEP]) * axis[AXIS_DATA_STEP];
            w += (tap[a] + turn[a] * axis[AXIS_TAP_STEP]) * axis[AXIS_FILTER_STEP];
        }
        for (long ci = 0; ci < in_channels; ci += REF_CHANNELS) {
            CHANNEL(ci)
            CHANNEL(ci + 1)
            CHANNEL(ci + 2)
            CHANNEL(ci + 3)
        }
        /* The next combination of taps, innermost axis first. */
        for (int a = AXES - 1; a >= 0; a--) {
            if (++turn[a] < taps[a]) break;
            turn[a] = 0;
        }
    }

    const long channel = g * out_channels + co;
    long at = n * table[REF_OUTPUT_BATCH_STEP] + channel * table[REF_OUTPUT_CHANNEL_STEP];
    for (int a = 0; a < AXES; a++)
        at += coordinate[a] * table[REF_AXES + a * AXIS_LONGS + AXIS_OUTPUT_STEP];
    put_one(f, affine_one(f, sum, channel), at, channel);
}

KERNEL void tconv_reference(__global const data_t *restrict data, const ulong data_offset,
                            __global const packed_t *restrict filter, const ulong filter_offset,
                            EPILOGUE_PARAMETERS, __global const long *restrict table,
                            SHARE_PARAMETER)
{
    EPILOGUE(epilogue, table)
    EACH_SHARED(i)
    if (SHARED_ITEM(i) < table[REF_OUTPUTS])
        reference_output(data + data_offset, filter + filter_offset, &epilogue, table,
                         SHARED_ITEM(i));
}

/* Copies the filter element with this number from where its format has it. */
static void pack_element(__global const filter_t *restrict w, __global packed_t *restrict filter,
                         __global const long *restrict table, const long index)
{
    long rest = index;
    for (int a = AXES - 1; a >= 0; a--) {
        __global const long *axis = table + REF_AXES + a * AXIS_LONGS;
        w += rest % axis[AXIS_KERNEL] * axis[AXIS_SOURCE_STEP];
        rest /= axis[AXIS_KERNEL];
    }
    w += rest % table[REF_OUT_CHANNELS] * table[REF_SOURCE_OUT_STEP];
    rest /= table[REF_OUT_CHANNELS];
    w += rest % table[REF_IN_CHANNELS] * table[REF_SOURCE_IN_STEP] +
         rest / table[REF_IN_CHANNELS] * table[REF_SOURCE_GROUP_STEP];
    PACK(w, filter + (ulong)index, FILTER_ZERO(table));
}

KERNEL void tconv_reference_pack(__global const filter_t *restrict weights,
                                 const ulong weights_offset, __global packed_t *restrict filter,
                                 const ulong filter_offset, __global const long *restrict table,
                                 SHARE_PARAMETER)
{
    EACH_SHARED(i)
    if (SHARED_ITEM(i) < table[REF_WEIGHTS])
        pack_element(weights + weights_offset, filter + filter_offset, table, SHARED_ITEM(i));
}
