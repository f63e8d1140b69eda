/* SPDX-License-Identifier: Apache-2.0 */
/* Reads PTX into operations. */
#ifndef DEVICE_TESTS_EXECUTED_NVIDIA_DECODE_H
#define DEVICE_TESTS_EXECUTED_NVIDIA_DECODE_H

#include "warp.h"

/* Reads a text, which it changes. False if it cannot be read; `why` says what. An operation that
 * the executor does not know fails when a warp comes to it. */
bool code_read(struct code *code, char *text, char *why, size_t why_size);

void code_clear(struct code *code);

/* Writes into each branch where its lanes meet again (flow.c). False if memory is missing. */
bool find_joins(struct kernel *kernel);

/* Bytes of a number in memory. */
int type_bytes(enum number_type type);

#endif
