/* SPDX-License-Identifier: Apache-2.0 */
/* The library's interface to the operating system. os_posix.c and os_windows.c implement it; no
 * other code of the library depends on the system. Paths and environment variables are UTF-8
 * everywhere. Threads are POSIX threads everywhere; MinGW-w64 has them on Windows. */
#ifndef TCONV_BASE_OS_H
#define TCONV_BASE_OS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- processes ---- */

/* The number of this process; 0 on systems without fork. */
long tconv_os_process(void);

/* A mark in the memory that children inherit: it says that a process has used OpenCL. A process may
 * hold several copies of this library (an application's, a Python package's, a plug-in's); the mark
 * is common to all. `leave` sets the mark of process `own`. `find` returns the process whose mark
 * exists (this one, else a parent), or 0. New programs have no mark. */
void tconv_os_leave_mark(long own);
long tconv_os_find_mark(long own);

/* ---- libraries ---- */

/* Opens a library by the system's rules, but never from the current folder. NULL if it is not
 * there. */
void *tconv_os_open_library(const char *name);

/* Puts the address of a library's function into `*function`, a pointer to a function. False if the
 * library has no such function. `library` NULL: searches what the program was started with, if the
 * system can. */
bool tconv_os_find_function(void *library, const char *name, void *function);

/* ---- time ---- */

/* Seconds of a clock that never goes back. */
double tconv_os_seconds(void);

/* Lets another thread have this processor. */
void tconv_os_yield(void);

/* ---- threads ---- */

/* Starts a thread that gets none of the application's signals, but those of its own faults. False
 * if there can be none. */
bool tconv_os_start_thread(pthread_t *thread, void *(*run)(void *argument), void *argument);

/* How many processors this process may use; at least 1. */
int tconv_os_processors(void);

/* Stands in loops that wait for another thread for less than a microsecond or so. */
static inline void tconv_os_pause(void)
{
#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) && defined(__GNUC__)
    __asm__ volatile("yield");
#endif
}

/* ---- environment ---- */

/* The length of an environment variable's value; 0 if it is not set or empty, or if the program
 * runs with more rights than the user who set it. `value` gets as much as fits into `size` bytes
 * with the terminating zero. */
size_t tconv_os_environment(const char *name, char *value, size_t size);

/* Sets a variable of this process that is not set. False if it is, or without memory. No other
 * thread may use the environment meanwhile. */
bool tconv_os_add_environment(const char *name, const char *value);

/* The user's cache folder: $XDG_CACHE_HOME or $HOME/.cache; %LOCALAPPDATA% on Windows. False if
 * there is none, or if it does not fit. */
bool tconv_os_cache_home(char *path, size_t size);

/* ---- text ---- */

#if defined(_WIN32)
/* POSIX's, which Windows lacks. Under a name of the library's, because a program that links the
 * static library may have one, too. */
char *tconv_os_strndup(const char *text, size_t size);
#define strndup tconv_os_strndup
#endif

/* ---- files ---- */

/* As fopen. */
FILE *tconv_os_fopen(const char *path, const char *mode);

enum { TCONV_OS_PATH = 4096 }; /* bytes of the longest path */

/* Why a call failed, in the system's words or in ours. Functions that fill one take NULL, too. */
struct tconv_os_reason {
    char text[200];
};

/* A folder that is the user's own: nobody else can put a file there. Files are named relative to
 * it, and no link is followed. */
struct tconv_os_folder;

/* Opens a folder. NULL if it does not exist, if it is not the user's own, or without memory. If
 * `absent` is not NULL, it says whether the folder does not exist. */
struct tconv_os_folder *tconv_os_folder_open(const char *path, bool *absent,
                                             struct tconv_os_reason *reason);
void tconv_os_folder_close(struct tconv_os_folder *folder);

/* Makes a folder and its missing parents, for this user alone. False if one cannot be made. */
bool tconv_os_make_folders(const char *path, struct tconv_os_reason *reason);

enum tconv_os_read {
    TCONV_OS_READ,
    TCONV_OS_ABSENT,
    TCONV_OS_REFUSED /* not an ordinary file, not the user's own, unreadable, another size, or no
                        memory */
};

/* Reads up to `head_size` first bytes of a file into `head`, and fills up with zeros. `*size` is
 * the size of the file. */
enum tconv_os_read tconv_os_file_head(struct tconv_os_folder *folder, const char *name, void *head,
                                      size_t head_size, uint64_t *size);

/* Reads a file of exactly `size` bytes. `*bytes` is from malloc; NULL if nothing was read. */
enum tconv_os_read tconv_os_file_read(struct tconv_os_folder *folder, const char *name, size_t size,
                                      void **bytes);

/* Sets the file's time to now: it was used. */
void tconv_os_file_touch(struct tconv_os_folder *folder, const char *name);

/* Writes a file that appears whole or not at all, and replaces an older one. It is first written
 * under another name, which begins with `unfinished`. */
bool tconv_os_file_write(struct tconv_os_folder *folder, const char *unfinished, const char *name,
                         const void *bytes, size_t size, struct tconv_os_reason *reason);

bool tconv_os_file_remove(struct tconv_os_folder *folder, const char *name,
                          struct tconv_os_reason *reason);

/* A file of a folder. Times are nanoseconds since 1970. */
struct tconv_os_file {
    const char *name; /* valid during the call */
    bool ordinary;    /* not a folder, link or pipe */
    uint64_t size;
    int64_t used;
};

/* Calls `visit` for every file except those whose names begin with a dot, in no particular order.
 * `visit` may remove files. */
typedef void tconv_os_visit(void *context, const struct tconv_os_file *file);
void tconv_os_folder_visit(struct tconv_os_folder *folder, tconv_os_visit *visit, void *context);

#endif
