/* SPDX-License-Identifier: Apache-2.0 */
/* Reads whole files. */
#ifndef TCONV_BASE_FILE_H
#define TCONV_BASE_FILE_H

#include <stddef.h>
#include <stdio.h>

/* Reads the `*size` bytes of a file behind `ahead` bytes for the caller, and puts a zero behind
 * them. From malloc; NULL if the file cannot be read, or without memory. */
char *tconv_file_read(FILE *file, size_t ahead, size_t *size);

#endif
