/* SPDX-License-Identifier: Apache-2.0 */
/* Implements os.h on Linux, macOS and other systems with POSIX. */
#if defined(__linux__)
#define _GNU_SOURCE /* secure_getenv, syscall */
#endif
#include "base/os.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#if defined(__ANDROID__)
#include <sys/auxv.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#include <sys/syscall.h>
#endif

/* ---- processes ---- */

long tconv_os_process(void)
{
    return (long)getpid();
}

/* On Linux the mark is a page of memory whose name has the process's id: children inherit it, new
 * programs do not. */
#if defined(__linux__)
static const char page_name[] = "tconv_cl_uses_opencl_in_";

void tconv_os_leave_mark(long own)
{
    char name[64];
    snprintf(name, sizeof name, "%s%ld", page_name, own);
    const int file = (int)syscall(SYS_memfd_create, name, 1u /* MFD_CLOEXEC */);
    if (file < 0) return;
    if (ftruncate(file, 1) == 0) /* never given back: it belongs to the process */
        (void)mmap(NULL, 1, PROT_NONE, MAP_SHARED, file, 0);
    close(file);
}

long tconv_os_find_mark(long own)
{
    FILE *file = fopen("/proc/self/maps", "re");
    if (file == NULL) return 0;
    char line[512]; /* the page's line is shorter; of others, parts are read as lines */
    long found = 0;
    while (found != own && fgets(line, sizeof line, file) != NULL) {
        const char *name = strstr(line, page_name);
        if (name != NULL) found = strtol(name + strlen(page_name), NULL, 10);
    }
    fclose(file);
    return found;
}
#else
void tconv_os_leave_mark(long own)
{
    (void)own;
}

long tconv_os_find_mark(long own)
{
    (void)own;
    return 0;
}
#endif

/* ---- libraries ---- */

void *tconv_os_open_library(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

bool tconv_os_find_function(void *library, const char *name, void *function)
{
    void *address = dlsym(library == NULL ? RTLD_DEFAULT : library, name);
    memcpy(function, &address, sizeof address); /* POSIX, not C, makes a function of it */
    return address != NULL;
}

/* ---- time ---- */

double tconv_os_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void tconv_os_yield(void)
{
    sched_yield();
}

/* ---- threads ---- */

bool tconv_os_start_thread(pthread_t *thread, void *(*run)(void *argument), void *argument)
{
    /* What a thread does itself: a blocked one of these ends the process, and no handler that the
     * application may have hears of it. */
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t others, before;
    sigfillset(&others);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) sigdelset(&others, own[i]);
    pthread_sigmask(SIG_SETMASK, &others, &before);
    const bool started = pthread_create(thread, NULL, run, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

int tconv_os_processors(void)
{
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
#endif
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online < 1 ? 1 : online > 1024 ? 1024 : (int)online;
}

/* ---- environment ---- */

static const char *trusted_value(const char *name)
{
#if defined(__ANDROID__) /* secure_getenv came late */
    return getauxval(AT_SECURE) != 0 ? NULL : getenv(name);
#elif defined(__linux__)
    return secure_getenv(name);
#elif defined(__APPLE__)
    return issetugid() ? NULL : getenv(name);
#else
    return getuid() != geteuid() || getgid() != getegid() ? NULL : getenv(name);
#endif
}

size_t tconv_os_environment(const char *name, char *value, size_t size)
{
    const char *own = trusted_value(name);
    return own == NULL ? 0 : (size_t)snprintf(value, size, "%s", own);
}

bool tconv_os_add_environment(const char *name, const char *value)
{
    return getenv(name) == NULL && setenv(name, value, 0) == 0;
}

/* The variable's value, if it fits and is an absolute path. */
static bool absolute_path(const char *name, char *path, size_t size)
{
    const size_t length = tconv_os_environment(name, path, size);
    return length > 0 && length < size && path[0] == '/';
}

bool tconv_os_cache_home(char *path, size_t size)
{
    static const char below_home[] = "/.cache";
    /* The XDG base directory specification says to ignore a path that is not absolute. */
    if (absolute_path("XDG_CACHE_HOME", path, size)) return true;
    if (!absolute_path("HOME", path, size) || strlen(path) + sizeof below_home > size) return false;
    strcat(path, below_home);
    return true;
}

/* ---- files ---- */

FILE *tconv_os_fopen(const char *path, const char *mode)
{
    return fopen(path, mode);
}

struct tconv_os_folder {
    int descriptor;
};

static void tell(struct tconv_os_reason *reason, int number)
{
    if (reason != NULL) snprintf(reason->text, sizeof reason->text, "%s", strerror(number));
}

/* True if only this user can have written it. */
static bool own(const struct stat *s)
{
    return s->st_uid == geteuid() && (s->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

struct tconv_os_folder *tconv_os_folder_open(const char *path, bool *absent,
                                             struct tconv_os_reason *reason)
{
    const int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (absent != NULL) *absent = descriptor < 0 && errno == ENOENT;
    if (descriptor < 0) {
        tell(reason, errno);
        return NULL;
    }
    struct stat s;
    struct tconv_os_folder *folder = NULL;
    if (fstat(descriptor, &s) != 0)
        tell(reason, errno);
    else if (own(&s) && (folder = malloc(sizeof *folder)) == NULL)
        tell(reason, ENOMEM);
    else if (folder == NULL && reason != NULL)
        snprintf(reason->text, sizeof reason->text, "%s",
                 s.st_uid == geteuid() ? "others may write to this folder"
                                       : "this folder belongs to another user");
    if (folder != NULL)
        folder->descriptor = descriptor;
    else
        close(descriptor);
    return folder;
}

void tconv_os_folder_close(struct tconv_os_folder *folder)
{
    close(folder->descriptor);
    free(folder);
}

bool tconv_os_make_folders(const char *path, struct tconv_os_reason *reason)
{
    char *part = strdup(path);
    if (part == NULL) {
        tell(reason, ENOMEM);
        return false;
    }
    int first = 0; /* the first cause: later errors follow from it */
    for (char *slash = part; *slash != '\0' && (slash = strchr(slash + 1, '/')) != NULL;) {
        *slash = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST && first == 0) first = errno;
        *slash = '/';
    }
    /* mkdir of an existing folder may fail with another code than EEXIST, so only the last part
     * decides. */
    const bool made = mkdir(part, 0700) == 0 || errno == EEXIST;
    if (!made) tell(reason, first == 0 || errno != ENOENT ? errno : first);
    free(part);
    return made;
}

static bool read_all(int file, char *to, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = read(file, to + done, size - done);
        if (n == 0 || (n < 0 && errno != EINTR)) return false;
        if (n > 0) done += (size_t)n;
    }
    return true;
}

static bool write_all(int file, const char *from, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = write(file, from + done, size - done);
        if (n < 0 && errno != EINTR) return false;
        if (n > 0) done += (size_t)n;
    }
    return true;
}

/* Opens an ordinary file of the user's own. */
static enum tconv_os_read open_own(struct tconv_os_folder *folder, const char *name, int *file,
                                   uint64_t *size)
{
    *file = openat(folder->descriptor, name,
                   O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK); /* it may be a pipe */
    if (*file < 0) return errno == ENOENT ? TCONV_OS_ABSENT : TCONV_OS_REFUSED;
    struct stat s;
    const bool good = fstat(*file, &s) == 0 && S_ISREG(s.st_mode) && own(&s) && s.st_size >= 0;
    if (good)
        *size = (uint64_t)s.st_size;
    else
        close(*file);
    return good ? TCONV_OS_READ : TCONV_OS_REFUSED;
}

enum tconv_os_read tconv_os_file_head(struct tconv_os_folder *folder, const char *name, void *head,
                                      size_t head_size, uint64_t *size)
{
    int file;
    const enum tconv_os_read opened = open_own(folder, name, &file, size);
    if (opened != TCONV_OS_READ) return opened;
    memset(head, 0, head_size);
    const bool good = read_all(file, head, *size < head_size ? (size_t)*size : head_size);
    close(file);
    return good ? TCONV_OS_READ : TCONV_OS_REFUSED;
}

enum tconv_os_read tconv_os_file_read(struct tconv_os_folder *folder, const char *name, size_t size,
                                      void **bytes)
{
    int file;
    uint64_t found;
    *bytes = NULL;
    const enum tconv_os_read opened = open_own(folder, name, &file, &found);
    if (opened != TCONV_OS_READ) return opened;
    const bool good = found == size && size > 0 && (*bytes = malloc(size)) != NULL &&
                      read_all(file, *bytes, size);
    close(file);
    if (good) return TCONV_OS_READ;
    free(*bytes);
    *bytes = NULL;
    return TCONV_OS_REFUSED;
}

void tconv_os_file_touch(struct tconv_os_folder *folder, const char *name)
{
    utimensat(folder->descriptor, name, NULL, AT_SYMLINK_NOFOLLOW);
}

bool tconv_os_file_write(struct tconv_os_folder *folder, const char *unfinished, const char *name,
                         const void *bytes, size_t size, struct tconv_os_reason *reason)
{
    char own_name[64];
    int file = -1;
    for (unsigned i = 0; i < 100 && file < 0 && (i == 0 || errno == EEXIST); i++) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        snprintf(own_name, sizeof own_name, "%s%ld-%ld-%u", unfinished, (long)getpid(), now.tv_nsec,
                 i);
        file = openat(folder->descriptor, own_name,
                      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    }
    bool done = file >= 0 && write_all(file, bytes, size);
    if (!done) tell(reason, errno);
    if (file < 0) return false;
    const bool closed = close(file) == 0;
    if (done &&
        (!closed || renameat(folder->descriptor, own_name, folder->descriptor, name) != 0)) {
        tell(reason, errno);
        done = false;
    }
    if (!done) unlinkat(folder->descriptor, own_name, 0);
    return done;
}

bool tconv_os_file_remove(struct tconv_os_folder *folder, const char *name,
                          struct tconv_os_reason *reason)
{
    const bool done = unlinkat(folder->descriptor, name, 0) == 0;
    if (!done) tell(reason, errno);
    return done;
}

static int64_t changed(const struct stat *s)
{
#if defined(__APPLE__)
    const struct timespec *t = &s->st_mtimespec;
#else
    const struct timespec *t = &s->st_mtim;
#endif
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

/* Opens the folder's entries, at the first one. NULL if they cannot be read. */
static DIR *open_entries(int descriptor)
{
    const int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    DIR *entries = copy < 0 ? NULL : fdopendir(copy);
    if (entries == NULL && copy >= 0) close(copy);
    if (entries != NULL) rewinddir(entries); /* both descriptors have one position */
    return entries;
}

void tconv_os_folder_visit(struct tconv_os_folder *folder, tconv_os_visit *visit, void *context)
{
    DIR *entries = open_entries(folder->descriptor);
    if (entries == NULL) return;
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        struct stat s;
        if (entry->d_name[0] == '.' ||
            fstatat(folder->descriptor, entry->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        const struct tconv_os_file file = {entry->d_name, S_ISREG(s.st_mode), (uint64_t)s.st_size,
                                           changed(&s)};
        visit(context, &file);
    }
    closedir(entries);
}
