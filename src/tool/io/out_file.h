/* SPDX-License-Identifier: Apache-2.0 */
/* Output files that appear whole or not at all, also when the program is interrupted. What is no
 * ordinary file (a device, a pipe) is written as it is; "-" is stdout. */
#ifndef TCONV_TOOL_OUT_FILE_H
#define TCONV_TOOL_OUT_FILE_H

#include "tool/tool.h"

#include <stdio.h>

struct out_file {
    FILE *stream;
    char *path;      /* where it is to appear; links are followed */
    char *temporary; /* beside it; NULL where the path itself is written */
    const char *option;
};

/* Begins a file; `option` is named in messages. */
enum exit_code out_file_begin(const char *option, const char *path, struct out_file *file);

/* Ends it: with `good` it appears under its name, keeping the permissions of the file that it
 * replaces; else nothing is left. */
enum exit_code out_file_end(struct out_file *file, bool good);

/* Instead of out_file_end: nothing appears. */
void out_file_discard(struct out_file *file);

/* Whether a file could be begun there, before long work: leaves nothing behind. */
enum exit_code out_file_check(const char *option, const char *path);

#endif
