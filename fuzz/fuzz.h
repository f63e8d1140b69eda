/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzz targets share: a folder in memory, the tool's messages caught and checked, and a
 * way to stop. */
#ifndef TCONV_FUZZ_FUZZ_H
#define TCONV_FUZZ_FUZZ_H

#include "base/format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The two functions that libFuzzer calls, and replay.c: before all inputs, and with each. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* A finding that no sanitizer sees: says what is wrong and aborts. */
_Noreturn void fuzz_fail(const char *format, ...) TCONV_PRINTF(1, 2);

/* Makes a folder of this process, in memory where the system has that, and goes there; it
 * disappears at the end. Relative paths among the arguments become absolute ones. From now on the
 * tool's messages are kept, and its results go nowhere; those of libFuzzer and the sanitizers are
 * shown as ever. */
void fuzz_prepare(int argc, char **argv);

/* Writes a file into that folder, or removes it where `bytes` is NULL. */
void fuzz_file(const char *name, const void *bytes, size_t size);

/* Removes everything from that folder. */
void fuzz_clear(void);

/* Whether the messages since the last call are what an exit code of 0 (false) or another (true)
 * needs: a failure is told, and every message is one line that begins with "tconv-cl: ". */
void fuzz_check_messages(bool failed);

#endif
