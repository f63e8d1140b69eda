/* SPDX-License-Identifier: Apache-2.0 */
/* Output files that appear whole or not at all, even if the program is interrupted. A device or a
 * pipe is written directly, and so is what the program has open: "-" and every path that leads to
 * stdout are stdout, likewise stderr, and /dev/fd/N is the descriptor N. */
#ifndef TCONV_TOOL_OUT_FILE_H
#define TCONV_TOOL_OUT_FILE_H

#include "tool/tool.h"

#include <stdio.h>

struct out_file {
    FILE *stream;
    char *path;      /* where it is to appear; links are followed */
    char *temporary; /* the temporary file; NULL if the path itself is written */
    const char *option;
};

/* Begins a file; `option` is named in messages. */
enum exit_code out_file_begin(const char *option, const char *path, struct out_file *file);

/* Ends a file. If `good` is true, it appears under its name, with the permissions of the file that
 * it replaces; else nothing is left. */
enum exit_code out_file_end(struct out_file *file, bool good);

/* Gives up a file, instead of out_file_end: nothing appears. */
void out_file_discard(struct out_file *file);

/* True if a path names, or would name, a regular file that appears whole: npy_write_begin can map
 * it. */
bool out_file_replaces(const char *path);

/* Checks that a file could be begun there, before long work. Leaves nothing behind. */
enum exit_code out_file_check(const char *option, const char *path);

#endif
