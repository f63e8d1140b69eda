/* SPDX-License-Identifier: Apache-2.0 */
/* Counts bank conflicts in local memory. Local memory has 32 banks. In a cycle, a bank serves one
 * word of 4 bytes to all lanes that access this word.
 *
 * A cycle serves a group of lanes. AMD publishes the groups for 16 bytes ("Understanding AMD GPU
 * LDS and Bank Conflicts", a page of Composable Kernel): a write serves eight neighbouring lanes, a
 * read other groups of eight (banks.c). For narrower accesses, a group is assumed to be the
 * neighbouring lanes that access 32 words. RDNA, and both halves of ds_read2 and ds_write2, are
 * assumed to have the same groups. gfx950 has 64 banks and is not counted. */
#ifndef DEVICE_TESTS_EXECUTED_AMD_BANKS_H
#define DEVICE_TESTS_EXECUTED_AMD_BANKS_H

struct wave;
struct operation;
struct bank_cycles;

/* Adds what an operation takes, if it loads from local memory or stores there. */
void banks_count(const struct wave *wave, const struct operation *operation,
                 struct bank_cycles *cycles);

#endif
