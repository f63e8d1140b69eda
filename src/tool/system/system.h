/* SPDX-License-Identifier: Apache-2.0 */
/* The tool's interface to the operating system, beside base/os.h: terminals, output files, mapped
 * files, signals, programs. system_posix.c and system_windows.c implement it, and signals.c for
 * both. Paths are UTF-8. If a call fails, errno says why. */
#ifndef TCONV_TOOL_SYSTEM_H
#define TCONV_TOOL_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Must be the first call. Returns the program's arguments in UTF-8, and sets the terminal to UTF-8
 * and the standard streams to binary. NULL without memory. */
char **system_begin(int *argc, char **argv);

bool system_is_terminal(FILE *stream);

/* The columns of the terminal behind a stream; 0 if it does not tell them. */
int system_columns(FILE *stream);

/* True if a path names a terminal, as /dev/tty does. */
bool system_names_terminal(const char *path);

int system_processors(void);

/* Name and version of the operating system, and the kind of processor, for people; parts that the
 * system does not tell are left out. */
void system_names(char *system, size_t system_size, char *processor, size_t processor_size);

/* "NAME=value" of every environment variable; NULL ends the list. */
char **system_environment(void);

/* ---- files ---- */

enum system_kind {
    SYSTEM_ABSENT,
    SYSTEM_BROKEN_LINK, /* to what does not exist or cannot be reached; not told on Windows */
    SYSTEM_REGULAR,
    SYSTEM_FOLDER,
    SYSTEM_OTHER
};
enum system_kind system_kind(const char *path);

/* Bytes of an open file. False if it is not a regular file: its size says nothing. */
bool system_file_size(FILE *file, uint64_t *size);

/* Size and modification time of an open regular file: they differ when it has been written or cut
 * off in between. All 0 if it cannot be asked. */
struct system_stamp {
    uint64_t size;
    int64_t changed; /* when, in nanoseconds */
};
struct system_stamp system_stamp(FILE *file);

/* Resolves the links of an existing path. From malloc; NULL if that fails. */
char *system_target(const char *path);

/* True if this user may write an existing regular file, as `>` and cp ask: its permissions, and
 * whether its disk can be written. The file stays as it is. */
bool system_may_write(const char *path);

/* The bytes of a path in front of its last part: the folder with its separator, or none. */
size_t system_folder_length(const char *path);

/* True if two paths name one regular file, pipe or socket, or would name one file when it exists.
 */
bool system_same_file(const char *a, const char *b);

/* True if a path leads to the file, pipe, socket or terminal behind a stream, as /dev/stdout does.
 * False for /dev/null and its like, which are nobody's. */
bool system_leads_to(const char *path, FILE *stream);

/* The descriptor that /dev/stdout, /dev/fd/N or /proc/self/fd/N names, if it is open; -1 for other
 * paths, and on Windows. */
int system_descriptor(const char *path);

/* A new stream that writes to a copy of a descriptor, where it stands. NULL on failure. */
FILE *system_open_descriptor(int descriptor);

/* Makes a new file, open for writing and mapping. If the file `like` exists, it gets that one's
 * permissions. NULL on failure: EEXIST if a file has this path already, ENAMETOOLONG if the file
 * system takes no path so long; Windows does not always tell that from ENOENT. */
FILE *system_create(const char *path, const char *like);

/* Renames a closed file in one step, and replaces a file that has this name. */
bool system_replace(const char *from, const char *to);

/* Removes a file. A file of system_create may still be open; it then vanishes when it is closed. */
void system_remove(const char *path);

/* Sets the file that is removed if a signal ends the program; NULL: none. */
void system_remove_on_signal(const char *path);

/* Removes it now. May be called by a signal's handler. */
void system_remove_unfinished(void);

/* Maps the first bytes of a file for reading. NULL on failure. Another program may cut the file off
 * while it is mapped. Any thread that reads what is gone then ends the program: the file of
 * system_remove_on_signal is removed, the line `lost` printed on stderr, and the exit code is 1.
 * `lost` must live until system_unmap. On Windows the system lets nobody cut off a file that is
 * mapped. */
void *system_map(FILE *file, size_t size, const char *lost);

/* Maps a file of system_create for reading and writing; `lost` as above. The file gets this size,
 * and space on the disk. */
void *system_map_output(FILE *file, size_t size, const char *lost);
void system_unmap(void *mapping, size_t size);

/* Lets the system reclaim the memory of a mapping; it is read again on the next access. */
void system_drop(void *mapping, size_t size);

/* ---- programs ---- */

/* Runs a program found by the system's rules, with `input` as its stdin, and copies its stdout to
 * `output`, after the program has read the input; if that fails, ferror and errno tell. Without
 * input its stderr is dropped. Returns its exit code; -1: it cannot be started, with ENOSYS where
 * the tool cannot start programs on this system. `arguments` begins with the program's name and
 * ends with NULL. */
int system_run(char *const *arguments, const char *input, FILE *output);

#endif
