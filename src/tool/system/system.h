/* SPDX-License-Identifier: Apache-2.0 */
/* What operating systems do differently for the tool, beside base/os.h: terminals, output files,
 * mapped files, signals, programs. system_posix.c and system_windows.c implement it. Paths are
 * UTF-8. Where a call fails, errno says why. */
#ifndef TCONV_TOOL_SYSTEM_H
#define TCONV_TOOL_SYSTEM_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* To be called first: returns the program's arguments in UTF-8, sets the terminal to UTF-8 and the
 * standard streams to bytes as they are. NULL without memory. */
char **system_begin(int *argc, char **argv);

bool system_is_terminal(FILE *stream);
int system_processors(void);

/* "NAME=value" of every environment variable; NULL ends the list. */
char **system_environment(void);

/* ---- files ---- */

enum system_kind { SYSTEM_ABSENT, SYSTEM_REGULAR, SYSTEM_FOLDER, SYSTEM_OTHER };
enum system_kind system_kind(const char *path);

/* Bytes of an open file; false where it is no regular one, whose size says nothing. */
bool system_file_size(FILE *file, uint64_t *size);

/* The absolute path of a file that is there, without links, from malloc; else NULL. */
char *system_real_path(const char *path);

/* Whether two paths name one regular file, or would once it is there. */
bool system_same_file(const char *a, const char *b);

/* A new file beside `target`, open for writing and mapping, with the permissions of `target` if
 * that is there. `*path` is from malloc. NULL: no file, and `*path` is NULL. */
FILE *system_temporary(const char *target, char **path);

/* Gives a closed file another name, at once, also where that one is taken. */
bool system_replace(const char *from, const char *to);

/* Removes a file. The one of system_temporary may still be open: then it vanishes when closed. */
void system_remove(const char *path);

/* The file to be removed where a signal ends the program; NULL: none. */
void system_remove_on_signal(const char *path);

/* A file's first bytes in memory, to be read; or NULL. */
void *system_map(FILE *file, size_t size);

/* The same to be read and written, for a file of system_temporary, which gets this size and space
 * on the disk for it. */
void *system_map_output(FILE *file, size_t size);
void system_unmap(void *mapping, size_t size);

/* Memory of a mapping may be taken; it is read again when needed. */
void system_drop(void *mapping, size_t size);

/* ---- signals and programs ---- */

/* From now on the first signal that asks the program to end sets `*caught` instead. */
void system_watch_interrupts(volatile sig_atomic_t *caught);

/* Runs a program found by the system's rules, with `input` as its stdin and `output` as its stdout.
 * Without input its stderr is dropped. Returns its exit code; -1: it cannot be started, with ENOSYS
 * where the tool cannot start programs on this system. `arguments` begins with the program's name
 * and ends with NULL. */
int system_run(char *const *arguments, const char *input, FILE *output);

#endif
