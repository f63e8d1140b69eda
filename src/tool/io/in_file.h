/* SPDX-License-Identifier: Apache-2.0 */
/* Input files; "-" is stdin, which can be read once. */
#ifndef TCONV_TOOL_IN_FILE_H
#define TCONV_TOOL_IN_FILE_H

#include <stdio.h>

/* NULL with errno where it cannot be opened. */
FILE *in_file_open(const char *path);

void in_file_close(FILE *file);

#endif
