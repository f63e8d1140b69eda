/* SPDX-License-Identifier: Apache-2.0 */
/* Counts conflicts of banks of local memory: 32 banks, each of which serves one word of 4 bytes in
 * a cycle. Lanes that access the same word share it.
 *
 * Only some lanes are served together. AMD publishes which for 16 bytes ("Understanding AMD GPU LDS
 * and Bank Conflicts", a page of Composable Kernel): eight neighbouring lanes of a write, and other
 * eights of a read. Narrower accesses are counted in as many neighbouring lanes as access 32 words.
 * The same is assumed of RDNA, and of the two halves of ds_read2 and ds_write2. gfx950 has 64
 * banks. */
#ifndef DEVICE_TESTS_AMD_BANKS_H
#define DEVICE_TESTS_AMD_BANKS_H

#include <stdint.h>

struct wave;
struct operation;

/* Cycles of accesses, and how many they would be without conflicts. */
struct bank_cycles {
    uint64_t taken, least;
};

/* Adds what an operation takes, if it loads from local memory or stores there. */
void banks_count(const struct wave *wave, const struct operation *operation,
                 struct bank_cycles *cycles);

#endif
