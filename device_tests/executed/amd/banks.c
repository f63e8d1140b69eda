/* SPDX-License-Identifier: Apache-2.0 */
/* Counts bank conflicts in local memory. */
#include "banks.h"

#include "executed/vendor.h"
#include "wave.h"

enum { BANKS = 32, MOST_TOGETHER = 32, READ_QUADS = 8 };

/* The groups of lanes that a read of 16 bytes serves in one cycle, for lanes 0 to 31. Lanes 32 to
 * 63 have the same groups. */
static const int read_together[4][READ_QUADS] = {{0, 1, 2, 3, 20, 21, 22, 23},
                                                 {4, 5, 6, 7, 16, 17, 18, 19},
                                                 {8, 9, 10, 11, 28, 29, 30, 31},
                                                 {12, 13, 14, 15, 24, 25, 26, 27}};

/* The cycles of lanes that are served together: the most words that one bank has of them. */
static uint64_t cycles_of(const uint32_t *words, int count)
{
    uint64_t most = 0;
    uint64_t in_bank[BANKS] = {0};
    for (int i = 0; i < count; i++) {
        int same = 0;
        while (words[same] != words[i]) same++;
        if (same == i && ++in_bank[words[i] % BANKS] > most) most = in_bank[words[i] % BANKS];
    }
    return most;
}

/* One access of `width` bytes of each lane, at its address and `offset`. */
static void count_access(const struct wave *w, const struct operation *op, bool writes,
                         int64_t offset, struct bank_cycles *cycles)
{
    const struct operand *address = &op->operand[writes ? 0 : 1];
    const int each = op->width < 4 ? 1 : op->width / 4;
    const int together = each == 3 ? READ_QUADS : MOST_TOGETHER / each;
    for (int first = 0; first < w->lanes; first += together) {
        uint32_t words[MOST_TOGETHER];
        int count = 0;
        for (int i = 0; i < together; i++) {
            int lane = first + i;
            if (each == 4 && !writes)
                lane = first / 32 * 32 + read_together[first % 32 / READ_QUADS][i];
            if (!bit(register_mask(w, EXEC), lane)) continue;
            const uint32_t at = read_u32(w, address, lane) + (uint32_t)offset;
            for (int n = 0; n < each; n++) words[count++] = at / 4 + (uint32_t)n;
        }
        cycles->taken += cycles_of(words, count);
        cycles->least += count > 0;
    }
}

void banks_count(const struct wave *w, const struct operation *op, struct bank_cycles *cycles)
{
    const bool writes = op->run == store_local || op->run == store_local_twice;
    const bool twice = op->run == load_local_twice || op->run == store_local_twice;
    if (!writes && op->run != load_local && op->run != load_local_twice) return;
    count_access(w, op, writes, twice ? op->offset * op->stride : op->offset, cycles);
    if (twice) count_access(w, op, writes, op->offset1 * op->stride, cycles);
}
