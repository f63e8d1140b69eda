/* SPDX-License-Identifier: Apache-2.0 */
/* Input files, and the endings of their names; "-" is stdin, which can be read once. */
#ifndef TCONV_TOOL_IN_FILE_H
#define TCONV_TOOL_IN_FILE_H

#include <stdbool.h>
#include <stdio.h>

/* Opens a file, in binary. NULL with errno if it cannot be opened. */
FILE *in_file_open(const char *path);

void in_file_close(FILE *file);

/* Reads what is left of a file, up to `most` bytes, into memory from malloc, which begins with
 * `first` bytes (0: some) and grows as they come. NULL with errno. */
void *in_file_read(FILE *file, size_t most, size_t first, size_t *length);

/* The same of a whole file, which is refused with EFBIG if it has more than `most` bytes; `*opened`
 * says whether it could be opened. */
char *in_file_text(const char *path, size_t most, size_t *length, bool *opened);

/* True if a path ends with, for example, ".xml", in any letter case. */
bool has_ending(const char *path, const char *ending);

#endif
