/* SPDX-License-Identifier: Apache-2.0 */
/* Input files, and the endings of their names; "-" is stdin, which can be read once. */
#ifndef TCONV_TOOL_IN_FILE_H
#define TCONV_TOOL_IN_FILE_H

#include <stdbool.h>
#include <stdio.h>

/* Opens a file, in binary. NULL with errno if it cannot be opened. */
FILE *in_file_open(const char *path);

void in_file_close(FILE *file);

/* True if a path ends with, for example, ".xml", in any letter case. */
bool has_ending(const char *path, const char *ending);

#endif
