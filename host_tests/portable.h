/* SPDX-License-Identifier: Apache-2.0 */
/* The tests' interface to the operating system. */
#ifndef TCONV_HOST_TESTS_PORTABLE_H
#define TCONV_HOST_TESTS_PORTABLE_H

#include <stdbool.h>
#include <stddef.h>

/* The file name of the running program. */
const char *program_name(void);

/* Sets an environment variable; NULL removes it. */
void set_variable(const char *name, const char *value);

/* Makes an empty folder for temporary files, whose path begins with a name like "tconv-test". */
bool make_temporary_folder(const char *name, char *path, size_t size);

bool make_folder(const char *path);

/* Removes the files of a folder but those whose names begin with a point. False if there is no such
 * folder. */
bool clear_folder(const char *path);

/* Removes a folder with all that is in it. */
bool remove_folder(const char *path);

/* Makes the process's numbers have a decimal point like "," in texts that printf writes, by a
 * locale of the system's, or of the test's own where the C library is glibc. False if the system
 * has neither. setlocale(LC_ALL, "C") ends it. */
bool use_decimal_point(const char *point);

#endif
