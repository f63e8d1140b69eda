/* SPDX-License-Identifier: Apache-2.0 */
/* Puts a program's source together: the files that a kernel file includes, each once, then the file
 * itself. */
#ifndef TCONV_DEVICE_KERNEL_SOURCE_H
#define TCONV_DEVICE_KERNEL_SOURCE_H

#include "tconv_cl/status.h"

#include <stddef.h>

enum { TCONV_MOST_FILES = 32, TCONV_MOST_PIECES = 96, TCONV_FILE_NAME = 64 };

/* The source as clCreateProgramWithSource takes it: pieces of files, without their #include
 * lines. */
struct tconv_kernel_source {
    int files, pieces;
    char name[TCONV_MOST_FILES][TCONV_FILE_NAME];
    char *owned[TCONV_MOST_FILES]; /* texts that were read from a folder */
    const char *piece[TCONV_MOST_PIECES];
    size_t length[TCONV_MOST_PIECES];
};

/* Reads the file `name` and what it includes: from `folder`, or with NULL from the library. An
 * #include stands at the beginning of its line, and its file is named from the top folder of the
 * kernels. Errors: TCONV_ERROR_BUILD. Call tconv_kernel_source_free also after an error. */
tconv_status tconv_kernel_source_read(const char *folder, const char *name,
                                      struct tconv_kernel_source *source, tconv_error *error);
void tconv_kernel_source_free(struct tconv_kernel_source *source);

#endif
