/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the folder of records on disk. The folder must be the user's own, and links are
 * not followed, so that nobody else can put a program there. */
#include "store/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char suffix[] = ".program";
/* Begins the name of a file that is being written. tconv_os_file_write adds three numbers. */
static const char unfinished[] = "tconv-cl-new-";
enum {
    NAME_SIZE = TCONV_RECORD_NAME + sizeof suffix - 1,
    LEFT_OVER = 3600 /* seconds after which an unfinished file is taken for abandoned */
};

static void name_file(const char *key, size_t key_size, char name[NAME_SIZE])
{
    tconv_record_name(key, key_size, name);
    strcat(name, suffix);
}

/* True if the first bytes of a file show that the library wrote it. The folder may hold other
 * programs' files, which are neither replaced nor removed. */
static bool is_ours(struct tconv_os_folder *folder, const char *name)
{
    unsigned char head[TCONV_RECORD_HEAD];
    uint64_t size;
    return tconv_os_file_head(folder, name, head, sizeof head, &size) == TCONV_OS_READ &&
           tconv_record_is(head);
}

/* Reads the record of a file that has at most `limit` bytes, or the default limit if that is
 * larger: a record that was stored under a larger limit stays usable. The head of a record tells
 * its size. If the file has another size, nothing more is read. `*bytes` is from malloc and holds
 * what the record points to; NULL if nothing was read. */
static enum tconv_os_read read_record(struct tconv_os_folder *folder, const char *name,
                                      uint64_t limit, void **bytes, struct tconv_record *record)
{
    unsigned char head[TCONV_RECORD_HEAD];
    uint64_t size, key_size, binary_size;
    *bytes = NULL;
    enum tconv_os_read read = tconv_os_file_head(folder, name, head, sizeof head, &size);
    if (read != TCONV_OS_READ) return read;
    if (limit < TCONV_CACHE_LIMIT) limit = TCONV_CACHE_LIMIT;
    if (!tconv_record_read_head(head, &key_size, &binary_size) || size > limit || key_size > size ||
        binary_size > size || tconv_record_size((size_t)key_size, (size_t)binary_size) != size)
        return TCONV_OS_REFUSED;
    read = tconv_os_file_read(folder, name, (size_t)size, bytes);
    if (read != TCONV_OS_READ || tconv_record_read(*bytes, (size_t)size, record)) return read;
    free(*bytes);
    *bytes = NULL;
    return TCONV_OS_REFUSED;
}

bool tconv_folder_load(const char *path, uint64_t limit, const char *key, void **bytes,
                       struct tconv_record *record)
{
    struct tconv_os_folder *folder = tconv_os_folder_open(path, NULL, NULL);
    if (folder == NULL) return false;
    char name[NAME_SIZE];
    name_file(key, strlen(key), name);
    bool found = false;
    if (read_record(folder, name, limit, bytes, record) == TCONV_OS_READ) {
        found = record->key_size == strlen(key) && memcmp(record->key, key, record->key_size) == 0;
        if (found)
            tconv_os_file_touch(folder, name);
        else
            free(*bytes);
    }
    tconv_os_folder_close(folder);
    return found;
}

/* True for names as the library makes them. */
static bool is_program(const char *name)
{
    return strspn(name, "0123456789abcdef") == TCONV_RECORD_NAME - 1 &&
           strcmp(name + TCONV_RECORD_NAME - 1, suffix) == 0;
}

static bool is_unfinished(const char *name)
{
    const size_t begin = strlen(unfinished);
    return strncmp(name, unfinished, begin) == 0 &&
           strspn(name + begin, "0123456789-") == strlen(name + begin);
}

struct listing {
    struct tconv_os_folder *folder;
    uint64_t limit;
    tconv_folder_visit *visit;
    void *context;
};

/* Calls the visitor with one file of the folder. */
static void tell_file(void *context, const struct tconv_os_file *file)
{
    const struct listing *listing = context;
    char right_name[NAME_SIZE];
    struct tconv_record record;
    void *bytes;
    if (is_unfinished(file->name)) return;
    if (!is_program(file->name)) {
        listing->visit(listing->context, file->name, TCONV_FILE_STRANGE, NULL);
        return;
    }
    const enum tconv_os_read read =
        read_record(listing->folder, file->name, listing->limit, &bytes, &record);
    if (read == TCONV_OS_ABSENT) return; /* removed by another process */
    const bool whole = read == TCONV_OS_READ;
    if (whole) name_file(record.key, record.key_size, right_name);
    if (whole && strcmp(file->name, right_name) == 0)
        listing->visit(listing->context, file->name, TCONV_FILE_RECORD, &record);
    else
        listing->visit(listing->context, file->name, TCONV_FILE_DAMAGED, NULL);
    free(bytes);
}

void tconv_folder_list(const char *path, uint64_t limit, tconv_folder_visit *visit, void *context)
{
    struct listing listing = {tconv_os_folder_open(path, NULL, NULL), limit, visit, context};
    if (listing.folder == NULL) return;
    tconv_os_folder_visit(listing.folder, tell_file, &listing);
    tconv_os_folder_close(listing.folder);
}

/* A file of the folder. */
struct kept {
    char name[NAME_SIZE];
    int64_t used;
    uint64_t size;
};

static int longer_unused(const void *a, const void *b)
{
    const struct kept *s = a, *t = b;
    return (s->used > t->used) - (s->used < t->used);
}

struct inventory {
    struct tconv_os_folder *folder;
    int64_t now;
    struct kept *list;
    size_t count, room;
    uint64_t all; /* bytes */
};

/* Adds a file to the inventory if it is a program, and removes it if it was never finished; a crash
 * may leave it empty. */
static void take_stock(void *context, const struct tconv_os_file *file)
{
    struct inventory *i = context;
    if (!file->ordinary) return;
    if (is_unfinished(file->name) && i->now - file->used > (int64_t)LEFT_OVER * 1000000000 &&
        (file->size == 0 || is_ours(i->folder, file->name)))
        tconv_os_file_remove(i->folder, file->name, NULL);
    if (!is_program(file->name)) return;
    if (i->count == i->room) {
        struct kept *more = realloc(i->list, (2 * i->room + 64) * sizeof *i->list);
        if (more == NULL) return;
        i->room = 2 * i->room + 64;
        i->list = more;
    }
    struct kept *kept = &i->list[i->count++];
    memcpy(kept->name, file->name, NAME_SIZE);
    kept->used = file->used;
    kept->size = file->size;
    i->all += file->size;
}

/* True if no file has this name, or if the library wrote it. An empty file may be replaced, too: a
 * power failure may leave a record empty. */
static bool may_replace(struct tconv_os_folder *folder, const char *name)
{
    unsigned char head[TCONV_RECORD_HEAD];
    uint64_t size;
    const enum tconv_os_read read = tconv_os_file_head(folder, name, head, sizeof head, &size);
    return read == TCONV_OS_ABSENT ||
           (read == TCONV_OS_READ && (size == 0 || tconv_record_is(head)));
}

/* Removes other programs' files from the inventory. */
static void leave_others(struct inventory *i)
{
    size_t ours = 0;
    for (size_t n = 0; n < i->count; n++)
        if (is_ours(i->folder, i->list[n].name))
            i->list[ours++] = i->list[n];
        else
            i->all -= i->list[n].size;
    i->count = ours;
}

/* Removes the least recently used files until the rest fits the limit. */
static void trim(struct tconv_os_folder *folder, uint64_t limit)
{
    struct inventory i = {.folder = folder, .now = (int64_t)time(NULL) * 1000000000};
    tconv_os_folder_visit(folder, take_stock, &i);
    if (i.all > limit) leave_others(&i);
    if (i.all > limit) qsort(i.list, i.count, sizeof *i.list, longer_unused);
    for (size_t n = 0; n < i.count && i.all > limit; n++)
        if (tconv_os_file_remove(folder, i.list[n].name, NULL)) i.all -= i.list[n].size;
    free(i.list);
}

static bool refuse(struct tconv_os_reason *reason, const char *text)
{
    if (reason != NULL) snprintf(reason->text, sizeof reason->text, "%s", text);
    return false;
}

/* Opens a folder, and makes it if it does not exist. */
static struct tconv_os_folder *open_or_make(const char *path, struct tconv_os_reason *reason)
{
    bool absent;
    struct tconv_os_folder *folder = tconv_os_folder_open(path, &absent, reason);
    return absent && tconv_os_make_folders(path, reason) ? tconv_os_folder_open(path, NULL, reason)
                                                         : folder;
}

/* True if the file exists and has these bytes. Then it counts as used. */
static bool is_there(struct tconv_os_folder *folder, const char *name, const char *bytes,
                     size_t size)
{
    void *there;
    if (tconv_os_file_read(folder, name, size, &there) != TCONV_OS_READ) return false;
    const bool equal = memcmp(there, bytes, size) == 0;
    free(there);
    if (equal) tconv_os_file_touch(folder, name);
    return equal;
}

bool tconv_folder_store(const char *path, uint64_t limit, const struct tconv_record *record,
                        struct tconv_os_reason *reason)
{
    const size_t size = tconv_record_size(record->key_size, record->binary_size);
    if (size == 0 || size > limit) return refuse(reason, "it is larger than the cache limit");
    struct tconv_os_folder *folder = open_or_make(path, reason);
    if (folder == NULL) return false;
    char name[NAME_SIZE];
    name_file(record->key, record->key_size, name);
    char *bytes = malloc(size);
    bool stored = false;
    if (bytes == NULL) {
        refuse(reason, "no memory");
    } else if (!may_replace(folder, name)) {
        refuse(reason, "a file of another program, or of another user, has its name");
    } else {
        tconv_record_write(record, bytes);
        stored = is_there(folder, name, bytes, size) ||
                 tconv_os_file_write(folder, unfinished, name, bytes, size, reason);
        if (stored) trim(folder, limit);
    }
    free(bytes);
    tconv_os_folder_close(folder);
    return stored;
}

bool tconv_folder_has(const char *path, const char *key)
{
    struct tconv_os_folder *folder = tconv_os_folder_open(path, NULL, NULL);
    if (folder == NULL) return false;
    char name[NAME_SIZE];
    name_file(key, strlen(key), name);
    const bool there = is_ours(folder, name);
    tconv_os_folder_close(folder);
    return there;
}

bool tconv_folder_forget(const char *path, const char *key, struct tconv_os_reason *reason)
{
    bool absent;
    struct tconv_os_folder *folder = tconv_os_folder_open(path, &absent, reason);
    if (folder == NULL) return absent;
    char name[NAME_SIZE];
    name_file(key, strlen(key), name);
    const bool forgotten = !is_ours(folder, name) || tconv_os_file_remove(folder, name, reason);
    tconv_os_folder_close(folder);
    return forgotten;
}
