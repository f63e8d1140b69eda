/* SPDX-License-Identifier: Apache-2.0 */
/* The folder on disk. Files are opened relative to the folder after it was found to be the user's
 * own, without following links, so that nobody else can put a program there. */
#include "cache/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char suffix[] = ".program";
static const char unfinished[] = "new-"; /* begins the name of a file that is being written */
enum {
    NAME_SIZE = TCONV_KEY_NAME + sizeof suffix - 1,
    LEFT_OVER = 3600 /* seconds after which a file that was never renamed belongs to nobody */
};

static void name_file(const char *key, size_t key_size, char name[NAME_SIZE])
{
    tconv_key_name(key, key_size, name);
    strcat(name, suffix);
}

/* Makes the folder and those around it, as far as they are missing. */
static void make_folders(const char *folder)
{
    char *path = strdup(folder);
    if (path == NULL) return;
    for (char *slash = path; *slash != '\0' && (slash = strchr(slash + 1, '/')) != NULL;) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    mkdir(path, 0700);
    free(path);
}

/* Whether only this user can have written it. */
static bool own(const struct stat *s)
{
    return s->st_uid == geteuid() && (s->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* The opened folder; -1 where there is none that is the user's own. */
static int open_folder(const char *folder)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat s;
    if (fd < 0 || (fstat(fd, &s) == 0 && own(&s))) return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

static bool read_all(int fd, char *to, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = read(fd, to + done, size - done);
        if (n == 0 || (n < 0 && errno != EINTR)) return false;
        if (n > 0) done += (size_t)n;
    }
    return true;
}

static bool write_all(int fd, const char *from, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = write(fd, from + done, size - done);
        if (n < 0 && errno != EINTR) return false;
        if (n > 0) done += (size_t)n;
    }
    return true;
}

static int open_file(int fd, const char *name)
{
    return openat(fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
}

/* The record of an open file that only this user can have written. `*bytes` is from malloc and
 * holds what the record points to. */
static bool read_record(int file, void **bytes, struct tconv_record *record)
{
    struct stat s;
    *bytes = NULL;
    if (fstat(file, &s) == 0 && S_ISREG(s.st_mode) && own(&s) && s.st_size > 0 &&
        (uint64_t)s.st_size < SIZE_MAX && (*bytes = malloc((size_t)s.st_size)) != NULL &&
        read_all(file, *bytes, (size_t)s.st_size) &&
        tconv_record_read(*bytes, (size_t)s.st_size, record))
        return true;
    free(*bytes);
    return false;
}

bool tconv_folder_load(const char *folder, const char *key, void **bytes,
                       struct tconv_record *record)
{
    const int fd = open_folder(folder);
    if (fd < 0) return false;
    char name[NAME_SIZE];
    name_file(key, strlen(key), name);
    const int file = open_file(fd, name);
    close(fd);
    if (file < 0) return false;
    bool found = false;
    if (read_record(file, bytes, record)) {
        found = record->key_size == strlen(key) && memcmp(record->key, key, record->key_size) == 0;
        if (found)
            futimens(file, NULL); /* it was used just now */
        else
            free(*bytes);
    }
    close(file);
    return found;
}

/* A file of the folder. */
struct kept {
    char name[NAME_SIZE];
    struct timespec used;
    uint64_t size;
};

static int longer_unused(const void *a, const void *b)
{
    const struct timespec *s = &((const struct kept *)a)->used,
                          *t = &((const struct kept *)b)->used;
    if (s->tv_sec != t->tv_sec) return s->tv_sec < t->tv_sec ? -1 : 1;
    return s->tv_nsec < t->tv_nsec ? -1 : s->tv_nsec > t->tv_nsec;
}

/* A kept program's name, or the one that it has before it is renamed. */
static bool is_program(const char *name)
{
    return strspn(name, "0123456789abcdef") == TCONV_KEY_NAME - 1 &&
           strcmp(name + TCONV_KEY_NAME - 1, suffix) == 0;
}

static bool is_left_over(const char *name, const struct stat *s, time_t now)
{
    return strncmp(name, unfinished, strlen(unfinished)) == 0 && now - s->st_mtime > LEFT_OVER;
}

/* Tells of one file of the folder. */
static void visit_file(int fd, const char *name, tconv_folder_visit *visit, void *context)
{
    char right_name[NAME_SIZE];
    struct tconv_record record;
    void *bytes;
    if (!is_program(name)) {
        visit(context, name, TCONV_FILE_STRANGE, NULL);
        return;
    }
    const int file = open_file(fd, name);
    if (file < 0 && errno == ENOENT) return; /* removed by another process */
    const bool whole = file >= 0 && read_record(file, &bytes, &record);
    if (file >= 0) close(file);
    if (whole) name_file(record.key, record.key_size, right_name);
    if (whole && strcmp(name, right_name) == 0)
        visit(context, name, TCONV_FILE_RECORD, &record);
    else
        visit(context, name, TCONV_FILE_DAMAGED, NULL);
    if (whole) free(bytes);
}

/* The folder's entries, from the first on; NULL where they cannot be read. */
static DIR *open_entries(int fd)
{
    const int own = fd < 0 ? -1 : dup(fd);
    DIR *entries = own < 0 ? NULL : fdopendir(own);
    if (entries == NULL && own >= 0) close(own);
    if (entries != NULL) rewinddir(entries); /* both descriptors have one position */
    return entries;
}

void tconv_folder_list(const char *folder, tconv_folder_visit *visit, void *context)
{
    const int fd = open_folder(folder);
    DIR *entries = open_entries(fd);
    for (const struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;)
        if (entry->d_name[0] != '.' && strncmp(entry->d_name, unfinished, strlen(unfinished)) != 0)
            visit_file(fd, entry->d_name, visit, context);
    if (entries != NULL) closedir(entries);
    if (fd >= 0) close(fd);
}

/* Removes what was not used for longest until the rest fits the limit. */
static void trim(int fd, uint64_t limit)
{
    DIR *folder = open_entries(fd);
    struct kept *list = NULL;
    size_t count = 0, room = 0;
    uint64_t all = 0;
    if (folder == NULL) return;
    const time_t now = time(NULL);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        struct stat s;
        if (fstatat(fd, entry->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(s.st_mode))
            continue;
        if (is_left_over(entry->d_name, &s, now)) unlinkat(fd, entry->d_name, 0);
        if (!is_program(entry->d_name)) continue;
        if (count == room) {
            struct kept *more = realloc(list, (room = 2 * room + 64) * sizeof *list);
            if (more == NULL) break;
            list = more;
        }
        memcpy(list[count].name, entry->d_name, NAME_SIZE);
        list[count].used = s.st_mtim;
        list[count++].size = (uint64_t)s.st_size;
        all += (uint64_t)s.st_size;
    }
    closedir(folder);
    if (all > limit) qsort(list, count, sizeof *list, longer_unused);
    for (size_t i = 0; i < count && all > limit; i++)
        if (unlinkat(fd, list[i].name, 0) == 0) all -= list[i].size;
    free(list);
}

/* Writes a file under a name of its own first, so that nobody sees half of it. */
static bool write_file(int fd, const char *name, const char *bytes, size_t size)
{
    char own_name[64];
    int file = -1;
    for (unsigned i = 0; i < 100 && file < 0 && (i == 0 || errno == EEXIST); i++) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        snprintf(own_name, sizeof own_name, "%s%ld-%ld-%u", unfinished, (long)getpid(), now.tv_nsec,
                 i);
        file = openat(fd, own_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    }
    if (file < 0) return false;
    bool done = write_all(file, bytes, size);
    done = close(file) == 0 && done;
    done = done && renameat(fd, own_name, fd, name) == 0;
    if (!done) unlinkat(fd, own_name, 0);
    return done;
}

void tconv_folder_store(const char *folder, uint64_t limit, const struct tconv_record *record)
{
    const size_t size = tconv_record_size(record->key_size, record->binary_size);
    if (size == 0 || size > limit) return;
    int fd = open_folder(folder);
    if (fd < 0 && errno == ENOENT) {
        make_folders(folder);
        fd = open_folder(folder);
    }
    if (fd < 0) return;
    char *bytes = malloc(size);
    if (bytes != NULL) {
        char name[NAME_SIZE];
        name_file(record->key, record->key_size, name);
        tconv_record_write(record, bytes);
        if (write_file(fd, name, bytes, size)) trim(fd, limit);
    }
    free(bytes);
    close(fd);
}
