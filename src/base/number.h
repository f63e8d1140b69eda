/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes numbers in the "C" locale, whatever the application's locale is, for texts that
 * are stored. */
#ifndef TCONV_BASE_NUMBER_H
#define TCONV_BASE_NUMBER_H

#include <stddef.h>

/* As strtod. */
double tconv_number_read(const char *text, char **end);

/* Writes at most six digits. Returns `text`. */
const char *tconv_number_write(double value, char *text, size_t size);

#endif
