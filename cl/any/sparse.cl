/* SPDX-License-Identifier: Apache-2.0 */
/* The sparse algorithm, for strides so large that no tap reaches most outputs. A work-item has RUN
 * neighbouring output elements of a channel. It repeats:
 *
 *   fill the outputs before the next one that some tap reaches
 *   compute that one as the reference algorithm does
 *
 * reference.cl has that computation, the table and the packing.
 *
 *   macro   meaning                             legal values
 *   RUN     output elements of a work-item      1 to 2^30 */
#include "any/reference.cl"

#ifndef RUN
#error "RUN must be set"
#endif

/* The first coordinate along an axis, at or after `from`, that a tap reaches from inside the data.
 * The axis's extent if there is none. */
static long reached_coordinate(__global const long *restrict axis, const long from)
{
    long first = axis[AXIS_OUTPUT];
    for (long k = 0; k < axis[AXIS_KERNEL]; k++) {
        const long base = k * axis[AXIS_DILATION] - axis[AXIS_PAD]; /* the output of input 0 */
        const long input = from <= base ? 0
                                        : (from - base + axis[AXIS_STRIDE] - 1) / axis[AXIS_STRIDE];
        if (input < axis[AXIS_INPUT]) first = min(first, base + input * axis[AXIS_STRIDE]);
    }
    return first;
}

/* The number of an output within its channel. */
static long point_at(__global const long *restrict table, const long coordinate[AXES])
{
    long point = 0;
    for (int a = 0; a < AXES; a++)
        point = point * table[REF_AXES + a * AXIS_LONGS + AXIS_OUTPUT] + coordinate[a];
    return point;
}

/* The first output of a channel, at or after `from`, that taps reach along all axes. `end` if there
 * is none before `end`. */
static long reached_point(__global const long *restrict table, const long from, const long end)
{
    long coordinate[AXES], rest = from;
    for (int a = AXES - 1; a >= 0; a--) {
        const long extent = table[REF_AXES + a * AXIS_LONGS + AXIS_OUTPUT];
        coordinate[a] = rest % extent;
        rest /= extent;
    }
    for (int a = 0; a < AXES;) {
        __global const long *axis = table + REF_AXES + a * AXIS_LONGS;
        const long reached = reached_coordinate(axis, coordinate[a]);
        const bool none = reached == axis[AXIS_OUTPUT]; /* the axis before it goes on */
        if (none && a == 0) return end;
        if (none || reached > coordinate[a]) /* inner axes begin again */
            for (int b = a + 1; b < AXES; b++) coordinate[b] = 0;
        coordinate[a] = none ? 0 : reached;
        if (!none) {
            a++;
            continue;
        }
        coordinate[--a]++;
        if (point_at(table, coordinate) >= end) return end;
    }
    return min(point_at(table, coordinate), end);
}

/* Stores `count` outputs of a row of a channel that no tap reaches. */
static void fill(const struct epilogue *f, const long at, const long count, const long step,
                 const long channel)
{
    const result_t value = affine_one(f, 0, channel);
    if (step == 1) /* a loop that compilers vectorize */
        for (long i = 0; i < count; i++) put_one(f, value, at + i, channel);
    else
        for (long i = 0; i < count; i++) put_one(f, value, at + i * step, channel);
}

/* Where the output number `point` of a channel lies, behind the channel's first one. *left is how
 * many outputs from there on have equal distances: those of the channel, or of the row. */
static long place_of(__global const long *restrict table, const long point, const bool even,
                     long *left)
{
    __global const long *axis = table + REF_AXES + (AXES - 1) * AXIS_LONGS;
    if (even) return point * axis[AXIS_OUTPUT_STEP];
    long place = 0, rest = point;
    *left = axis[AXIS_OUTPUT] - point % axis[AXIS_OUTPUT];
    for (int a = AXES - 1; a >= 0; a--, axis -= AXIS_LONGS) {
        place += rest % axis[AXIS_OUTPUT] * axis[AXIS_OUTPUT_STEP];
        rest /= axis[AXIS_OUTPUT];
    }
    return place;
}

static NOINLINE void sparse_outputs(__global const data_t *restrict data,
                                    __global const packed_t *restrict filter,
                                    const struct epilogue *f, __global const long *restrict table,
                                    long index, const long end)
{
    const long channels = table[REF_GROUPS] * table[REF_OUT_CHANNELS];
    const long step = table[REF_AXES + (AXES - 1) * AXIS_LONGS + AXIS_OUTPUT_STEP];
    long points = 1;
    bool even = true; /* all outputs of a channel have equal distances */
    for (int a = AXES - 1; a >= 0; a--) {
        even = even && table[REF_AXES + a * AXIS_LONGS + AXIS_OUTPUT_STEP] == points * step;
        points *= table[REF_AXES + a * AXIS_LONGS + AXIS_OUTPUT];
    }
    while (index < end) {
        const long image = index / points, channel = image % channels; /* a channel's outputs */
        const long point = index - image * points, last = min(points, point + end - index);
        const long next = reached_point(table, point, last);
        const long at = image / channels * table[REF_OUTPUT_BATCH_STEP] +
                        channel * table[REF_OUTPUT_CHANNEL_STEP];
        for (long first = point, left; first < next; first += left) {
            left = next - first;
            const long place = place_of(table, first, even, &left);
            left = min(left, next - first);
            fill(f, at + place, left, step, channel);
        }
        if (next < last) reference_output(data, filter, f, table, image * points + next);
        index = image * points + min(next + 1, last);
    }
}

KERNEL void tconv_sparse(__global const data_t *restrict data, const ulong data_offset,
                         __global const packed_t *restrict filter, const ulong filter_offset,
                         EPILOGUE_PARAMETERS, __global const long *restrict table, SHARE_PARAMETER)
{
    EPILOGUE(epilogue, table)
    EACH_SHARED(i)
    if (SHARED_ITEM(i) * RUN < table[REF_OUTPUTS])
        sparse_outputs(data + data_offset, filter + filter_offset, &epilogue, table,
                       SHARED_ITEM(i) * RUN, min((SHARED_ITEM(i) + 1) * RUN, table[REF_OUTPUTS]));
}
