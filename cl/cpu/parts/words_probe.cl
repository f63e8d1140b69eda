/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel with which plan/unit.c tests the instructions of a CPU that multiply words. It
 * has PROBE_WORDS words of data, each with a vector of words of weights, and computes
 *
 *     sums[lane] += data[i] * weights[i][lane]
 *
 * by add_words of words.clh, which has the macros. For bf16 it also rounds the sums to that type.
 * One work-item; `numbers` holds data, weights, sums and rounded sums in this order. */
#include "common/words_probe.h"
#include "cpu/parts/words.clh"

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
tconv_words_probe(__global uint *restrict numbers)
{
    __global uint *sums = numbers + PROBE_WORDS + PROBE_WORDS * VW;
    vec_t sum = SIZED(PASTE(as_, ACC))(LOAD(sums));
    for (int i = 0; i < PROBE_WORDS; i++)
        sum = add_words((words_t)(numbers[i]), LOAD(numbers + PROBE_WORDS + i * VW), sum);
    STORE(SIZED(as_uint)(sum), sums);
#if FLOATING
    WRITES_bf16(sum, (__global ushort *)(sums + VW));
#endif
}
