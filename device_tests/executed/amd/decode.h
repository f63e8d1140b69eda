/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the text of `llvm-objdump -d` into operations. */
#ifndef DEVICE_TESTS_EXECUTED_AMD_DECODE_H
#define DEVICE_TESTS_EXECUTED_AMD_DECODE_H

#include "wave.h"

/* False if memory is missing or the text holds no instructions. `target` is a name as "gfx1100". An
 * operation that the executor does not know fails when a wave comes to it. */
bool program_read(struct program *program, const char *text, const char *target);

void program_free(struct program *program);

/* The operation at an address, or NULL. */
const struct operation *program_at(const struct program *program, uint64_t address);

#endif
