/* SPDX-License-Identifier: Apache-2.0 */
/* Records of compiled programs, and what keeps them: memory has those that were used last; in the
 * folder, what is damaged, foreign or not the user's own is not there, and what cannot be stored is
 * told. */
#include "portable.h"
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char base[200]; /* where the tests write */

static const char *in_base(const char *name)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", base, name);
    return path;
}

static struct tconv_record record_of(const char *key, const char *binary)
{
    return (struct tconv_record){key, strlen(key), binary, strlen(binary)};
}

enum { LIMIT = 1 << 20 }; /* bytes of the largest record that is read */

static bool load(const char *folder, const char *key, const char *binary)
{
    void *bytes;
    struct tconv_record record;
    if (!tconv_folder_load(folder, LIMIT, key, &bytes, &record)) return false;
    const bool equal = record.binary_size == strlen(binary) &&
                       memcmp(record.binary, binary, record.binary_size) == 0;
    free(bytes);
    assert_true(equal);
    return true;
}

static void store(const char *folder, uint64_t limit, const char *key, const char *binary)
{
    const struct tconv_record record = record_of(key, binary);
    assert_true(tconv_folder_store(folder, limit, &record, NULL));
}

/* A record that cannot be stored; the reason has these words. */
static void refuse(const char *folder, uint64_t limit, const char *key, const char *words)
{
    const struct tconv_record record = record_of(key, "binary");
    struct tconv_os_reason reason = {""};
    assert_false(tconv_folder_store(folder, limit, &record, &reason));
    if (strstr(reason.text, words) == NULL) fail_msg("%s: %s", folder, reason.text);
    assert_false(tconv_folder_store(folder, limit, &record, NULL));
}

/* The path of a key's file. */
static void path_of(const char *folder, const char *key, char path[400])
{
    char name[TCONV_RECORD_NAME];
    tconv_record_name(key, strlen(key), name);
    snprintf(path, 400, "%s/%s.program", folder, name);
}

static int files_in(const char *folder)
{
    DIR *d = opendir(folder);
    int count = 0;
    if (d == NULL) return -1;
    for (const struct dirent *e; (e = readdir(d)) != NULL;) count += e->d_name[0] != '.';
    closedir(d);
    return count;
}

static void records_tell_whether_they_are_whole(void **state)
{
    (void)state;
    const struct tconv_record record = record_of("a key", "some binary");
    const size_t size = tconv_record_size(record.key_size, record.binary_size);
    unsigned char bytes[200], damaged[200];
    assert_true(size < sizeof bytes);
    tconv_record_write(&record, bytes);
    struct tconv_record read;
    assert_true(tconv_record_read(bytes, size, &read));
    assert_true(tconv_record_read(bytes, sizeof bytes, &read)); /* more may follow */
    assert_int_equal(read.key_size, 5);
    assert_memory_equal(read.key, "a key", 5);
    assert_memory_equal(read.binary, "some binary", read.binary_size);
    for (size_t cut = 0; cut < size; cut++) assert_false(tconv_record_read(bytes, cut, &read));
    for (size_t i = 0; i < size; i++)
        for (int bit = 0; bit < 8; bit++) {
            memcpy(damaged, bytes, size);
            damaged[i] = (unsigned char)(damaged[i] ^ 1 << bit);
            assert_false(tconv_record_read(damaged, size, &read));
        }
    assert_int_equal(tconv_record_size(SIZE_MAX - 10, 20), 0);
    assert_int_equal(tconv_record_size(10, SIZE_MAX - 20), 0);
}

static int released[26]; /* how often each letter was */

static void release_letter(void *letter)
{
    released[*(const char *)letter - 'a']++;
}

static void *copy_letter(void *letter)
{
    return letter;
}

static void put(struct tconv_store *store, const char *key, const char *letter)
{
    assert_true(tconv_store_put(store, TCONV_STORED_PROGRAM, key, (void *)(uintptr_t)letter, NULL));
}

/* The letters in memory, the one used last first. */
static void expect_letters(const struct tconv_store *store, const char *letters)
{
    const struct tconv_entry *e = store->drawer[TCONV_STORED_PROGRAM].first;
    for (; *letters != '\0'; letters++, e = e->next) {
        assert_non_null(e);
        assert_int_equal(*(const char *)e->value, *letters);
    }
    assert_null(e);
}

static void expect_found(struct tconv_store *store, const char *key, const char *letter)
{
    const char *found = tconv_store_find(store, TCONV_STORED_PROGRAM, key);
    if (letter == NULL)
        assert_null(found);
    else
        assert_string_equal(found, letter);
}

/* What is found counts as used, and what was not used for the longest time goes. */
static void memory_has_what_was_used_last(void **state)
{
    (void)state;
    struct tconv_store kept;
    memset(released, 0, sizeof released);
    assert_true(tconv_store_init(&kept, copy_letter, release_letter));
    kept.drawer[TCONV_STORED_PROGRAM].most = 3;
    expect_found(&kept, "1", NULL);
    put(&kept, "1", "a");
    put(&kept, "2", "b");
    put(&kept, "3", "c");
    expect_letters(&kept, "cba");
    expect_found(&kept, "1", "a");
    expect_letters(&kept, "acb");
    expect_found(&kept, "3", "c");
    expect_found(&kept, "3", "c");
    expect_found(&kept, "4", NULL);
    expect_letters(&kept, "cab");
    put(&kept, "4", "d");
    expect_letters(&kept, "dca");
    assert_int_equal(released['b' - 'a'], 1);
    expect_found(&kept, "2", NULL);
    put(&kept, "1", "e"); /* in place of another one */
    expect_letters(&kept, "edc");
    assert_int_equal(released['a' - 'a'], 1);
    tconv_store_destroy(&kept);
    for (int i = 0; i < 5; i++) assert_int_equal(released[i], 1);
}

static void what_was_stored_is_found(void **state)
{
    (void)state;
    const char *folder = in_base("new/and/deep");
    char path[400];
    assert_false(load(folder, "k", "b")); /* there is no folder yet */
    store(folder, 1 << 20, "k", "binary of k");
    struct stat s;
    assert_int_equal(stat(folder, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0700);
    path_of(folder, "k", path);
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0600);
    assert_true(load(folder, "k", "binary of k"));
    assert_false(load(folder, "another", ""));
    store(folder, 1 << 20, "k", "a newer one");
    assert_true(load(folder, "k", "a newer one"));
    assert_int_equal(files_in(folder), 1);
}

static void overwrite(const char *path, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static void make_old(const char *path)
{
    const struct timespec old[2] = {{1000, 0}, {1000, 0}};
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
}

static void what_is_not_whole_or_not_ours_is_not_there(void **state)
{
    (void)state;
    const char *folder = in_base("damaged");
    char path[400], other[400];
    store(folder, 1 << 20, "k", "binary");
    path_of(folder, "k", path);
    assert_true(load(folder, "k", "binary"));
    assert_int_equal(truncate(path, 30), 0);
    assert_false(load(folder, "k", "binary"));
    overwrite(path, "", 0);
    assert_false(load(folder, "k", "binary"));
    overwrite(path, "tconvcl\1\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
              24);
    assert_false(load(folder, "k", "binary"));

    store(folder, 1 << 20, "other", "binary"); /* a file of that name, but of another key */
    path_of(folder, "other", other);
    assert_int_equal(rename(other, path), 0);
    assert_false(load(folder, "k", "binary"));

    store(folder, 1 << 20, "k", "binary");
    assert_int_equal(chmod(path, 0622), 0); /* others may have written it */
    assert_false(load(folder, "k", "binary"));
    assert_int_equal(chmod(path, 0600), 0);
    assert_true(load(folder, "k", "binary"));
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(symlink(other, path), 0);
    assert_false(load(folder, "k", "binary"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_false(load(folder, "k", "binary"));
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0); /* opening it must not wait for a writer */
    assert_false(load(folder, "k", "binary"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rename(other, path), 0);

    assert_int_equal(chmod(folder, 0770), 0);
    assert_false(load(folder, "k", "binary"));
    refuse(folder, 1 << 20, "l", "others may write");
    struct tconv_os_reason reason = {""};
    assert_false(tconv_folder_forget(folder, "k", &reason));
    assert_non_null(strstr(reason.text, "others may write"));
    assert_int_equal(files_in(folder), 1);
    assert_int_equal(chmod(folder, 0700), 0);
    assert_true(load(folder, "k", "binary"));
    if (geteuid() == 0) { /* only root can give a file away */
        assert_int_equal(chown(path, 12345, 12345), 0);
        assert_false(load(folder, "k", "binary"));
        assert_int_equal(chown(folder, 12345, 12345), 0);
        refuse(folder, 1 << 20, "l", "another user");
        assert_int_equal(files_in(folder), 1);
    }
}

static void what_is_forgotten_is_gone(void **state)
{
    (void)state;
    char folder[300], path[400];
    snprintf(folder, sizeof folder, "%s", in_base("forgetting"));
    assert_true(tconv_folder_forget(folder, "k", NULL)); /* there is no folder */
    store(folder, 1 << 20, "k", "binary");
    store(folder, 1 << 20, "l", "binary");
    assert_true(tconv_folder_forget(folder, "k", NULL));
    assert_false(load(folder, "k", "binary"));
    assert_true(load(folder, "l", "binary"));
    assert_true(tconv_folder_forget(folder, "k", NULL)); /* there is no file */
    path_of(folder, "k", path);
    overwrite(path, "somebody's work, which nobody else has", 38);
    assert_true(tconv_folder_forget(folder, "k", NULL)); /* it is no record */
    refuse(folder, 1 << 20, "k", "another program");
    assert_int_equal(files_in(folder), 2);
}

/* A disk that is full: here a limit of the process. What was there stays. */
static void a_full_disk_is_told(void **state)
{
    (void)state;
    char folder[300];
    snprintf(folder, sizeof folder, "%s", in_base("full"));
    store(folder, 1 << 20, "k", "old");
    const struct tconv_record record = record_of("k", "newer");
    struct tconv_os_reason reason = {""};
    struct rlimit before, little = {20, 20};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    little.rlim_max = before.rlim_max;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    const bool stored = tconv_folder_store(folder, 1 << 20, &record, &reason);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_false(stored);
    assert_string_equal(reason.text, strerror(EFBIG));
    assert_true(load(folder, "k", "old"));
    assert_int_equal(files_in(folder), 1); /* nothing unfinished */
}

/* What is there already needs no writing: a folder may be read-only, or its disk full. */
static void equal_bytes_are_not_written(void **state)
{
    (void)state;
    char folder[300], path[400];
    snprintf(folder, sizeof folder, "%s", in_base("equal"));
    store(folder, LIMIT, "k", "binary");
    store(folder, LIMIT, "other", "binary");
    path_of(folder, "k", path);
    make_old(path);
    struct stat before, after;
    assert_int_equal(stat(path, &before), 0);
    struct rlimit limit, none = {0, 0};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    none.rlim_max = limit.rlim_max;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    assert_int_equal(chmod(folder, 0500), 0);
    const struct tconv_record equal = record_of("k", "binary"), longer = record_of("k", "binary 2"),
                              changed = record_of("k", "bInary");
    struct tconv_os_reason reason = {""};
    const bool stored = tconv_folder_store(folder, LIMIT, &equal, &reason),
               stored_changed = tconv_folder_store(folder, LIMIT, &changed, NULL),
               stored_longer = tconv_folder_store(folder, LIMIT, &longer, NULL);
    assert_int_equal(chmod(folder, 0700), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    signal(SIGXFSZ, handler);
    assert_true(stored);
    assert_string_equal(reason.text, "");
    assert_false(stored_changed || stored_longer);
    assert_true(load(folder, "k", "binary"));
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(after.st_ino, before.st_ino);
    assert_true(after.st_mtime > before.st_mtime); /* it was used */
    assert_int_equal(files_in(folder), 2);
    overwrite(path, "", 0); /* a damaged file is written again */
    store(folder, LIMIT, "k", "binary");
    assert_true(load(folder, "k", "binary"));
}

/* How many files of each state tconv_folder_list told of. */
static void count_file(void *context, const char *name, enum tconv_file_state state,
                       const struct tconv_record *record)
{
    ((int *)context)[state]++;
    assert_true((record != NULL) == (state == TCONV_FILE_RECORD));
    if (record != NULL) assert_memory_equal(record->binary, "binary", record->binary_size);
    if (state == TCONV_FILE_STRANGE) assert_string_equal(name, "notes.txt");
}

static void the_folder_can_be_listed(void **state)
{
    (void)state;
    char folder[300], path[400], other[400];
    int files[3] = {0, 0, 0};
    snprintf(folder, sizeof folder, "%s", in_base("listed"));
    tconv_folder_list(folder, LIMIT, count_file, files); /* it is not there */
    assert_int_equal(files[0] + files[1] + files[2], 0);
    for (int i = 0; i < 4; i++)
        store(folder, 1 << 20, (const char *[]){"k", "l", "m", "n"}[i], "binary");
    path_of(folder, "l", path);
    assert_int_equal(truncate(path, 30), 0);
    path_of(folder, "m", path);
    path_of(folder, "of another key", other);
    assert_int_equal(rename(path, other), 0);
    path_of(folder, "n", path);
    assert_int_equal(chmod(path, 0622), 0);
    path_of(folder, "k", path);
    struct stat before, after;
    const struct timespec old[2] = {{1000, 0}, {1000, 0}};
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
    assert_int_equal(stat(path, &before), 0);
    overwrite(in_base("listed/notes.txt"), "not a program", 13);
    overwrite(in_base("listed/tconv-cl-new-1-2-3"), "half a program", 14);
    tconv_folder_list(folder, LIMIT, count_file, files);
    assert_int_equal(files[TCONV_FILE_RECORD], 1);
    assert_int_equal(files[TCONV_FILE_DAMAGED], 3);
    assert_int_equal(files[TCONV_FILE_STRANGE], 1);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(after.st_mtime, before.st_mtime); /* it was not used */
}

static void a_folder_that_cannot_be_is_told(void **state)
{
    (void)state;
    const struct {
        const char *path;
        int reason;
    } impossible[] = {{"", ENOENT}, {"/proc/tconv", ENOENT}, {"/dev/null/x", ENOTDIR}};
    for (int i = 0; i < 3; i++) {
        refuse(impossible[i].path, 1 << 20, "k", strerror(impossible[i].reason));
        assert_false(load(impossible[i].path, "k", "b"));
    }
    overwrite(in_base("file"), "x", 1);
    refuse(in_base("file"), 1 << 20, "k", strerror(ENOTDIR));
    assert_false(load(in_base("file"), "k", "b"));
    refuse(in_base("file/below/it"), 1 << 20, "k", strerror(ENOTDIR));
}

/* One after the other past the limit: those that were used last are there. */
static void the_limit_is_kept(void **state)
{
    (void)state;
    const char *folder = in_base("limited");
    static char binary[1001];
    memset(binary, 'b', 1000);
    char key[20], path[400];
    for (int i = 0; i < 8; i++) {
        snprintf(key, sizeof key, "key %d", i);
        store(folder, 1 << 20, key, binary);
        path_of(folder, key, path);
        const struct timespec old[2] = {{1000 + i, 0}, {1000 + i, 0}};
        assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
    }
    assert_true(load(folder, "key 0", binary)); /* used just now */
    overwrite(in_base("limited/notes.txt"), "not a program", 13);
    overwrite(in_base("limited/tconv-cl-new-1-2-3"), "tconvcl\1 half a program", 23);
    make_old(in_base("limited/tconv-cl-new-1-2-3"));
    overwrite(in_base("limited/tconv-cl-new-4-5-6"), "", 0); /* of a process that was killed */
    make_old(in_base("limited/tconv-cl-new-4-5-6"));
    folder = in_base("limited");
    store(folder, 4500, "key 8", binary);
    for (int i = 0; i < 9; i++) {
        snprintf(key, sizeof key, "key %d", i);
        assert_true(load(folder, key, binary) == (i == 0 || i >= 6));
    }
    assert_int_equal(files_in(folder), 5); /* with the notes */
    refuse(folder, 10, "key 9",
           "larger than the cache limit"); /* larger than the limit by itself */
    assert_false(load(folder, "key 9", binary));
    assert_true(load(folder, "key 8", binary));
}

static bool is_a_name_of_ours(const char *name)
{
    return strcmp(name, "tconv-cl-new-1-2-3") == 0 || strcmp(name, "tconv-cl-new-") == 0 ||
           strcmp(name, "00112233445566778899aabbccddeeff.program") == 0;
}

/* Files of others stay as they are, whatever their names: the library takes away and replaces only
 * what has its name and begins as its files do. */
static void files_of_others_survive(void **state)
{
    (void)state;
    static const char *const names[] = {
        "new-thesis.tex",
        "new-1-2-3",
        "tconv-cl-new-thesis.tex",
        "tconv-cl-new-1-2-3",
        "tconv-cl-new-",
        "00112233445566778899aabbccddeeff.program",
        "00112233445566778899AABBCCDDEEFF.program",
        "00112233445566778899aabbccddeeff",
        "machine.program",
        "search.txt",
    };
    enum { NAMES = sizeof names / sizeof *names };
    /* What begins as a record does is the library's only under its names. */
    static const char *const contents[] = {"somebody's work, which nobody else has", "tconv",
                                           "tconvcl\1 is what this text is about"};
    static const int with_its_names = 2;
    char folder[300], path[400];
    snprintf(folder, sizeof folder, "%s", in_base("shared with others"));
    static char binary[1001];
    memset(binary, 'b', 1000);
    for (size_t c = 0; c < sizeof contents / sizeof *contents; c++) {
        assert_true(c > 0 || make_folder(folder));
        for (int i = 0; i < NAMES; i++) {
            snprintf(path, sizeof path, "%s/%s", folder, names[i]);
            overwrite(path, contents[c], strlen(contents[c]));
            make_old(path);
        }
        path_of(folder, "taken", path); /* where a record would be */
        overwrite(path, contents[c], strlen(contents[c]));
        make_old(path);
        if ((int)c == with_its_names)
            store(folder, LIMIT, "taken", binary);
        else
            refuse(folder, LIMIT, "taken", "another program");
        assert_true(load(folder, "taken", binary) == ((int)c == with_its_names));
        for (int i = 0; i < 8; i++) { /* past the limit */
            char key[20];
            snprintf(key, sizeof key, "key %d", i);
            store(folder, 4500, key, binary);
        }
        assert_true(load(folder, "key 7", binary));
        for (int i = 0; i <= NAMES; i++) {
            if ((int)c == with_its_names && (i == NAMES || is_a_name_of_ours(names[i]))) continue;
            if (i < NAMES) snprintf(path, sizeof path, "%s/%s", folder, names[i]);
            if (i == NAMES) path_of(folder, "taken", path);
            char text[100] = "";
            FILE *file = fopen(path, "rb");
            if (file == NULL) fail_msg("%s is gone", path);
            assert_int_equal(fread(text, 1, sizeof text, file), strlen(contents[c]));
            assert_memory_equal(text, contents[c], strlen(contents[c]));
            fclose(file);
        }
    }
    path_of(folder, "of somebody", path); /* large: it must not count against the limit */
    overwrite(path, contents[0], strlen(contents[0]));
    assert_int_equal(truncate(path, 100000), 0);
    store(folder, 4500, "key 8", binary);
    store(folder, 4500, "key 9", binary);
    assert_true(load(folder, "key 8", binary) && load(folder, "key 9", binary));
    path_of(folder, "folder", path);
    assert_true(make_folder(path));
    refuse(folder, LIMIT, "folder", "another program");
    path_of(folder, "pipe", path);
    assert_int_equal(mkfifo(path, 0600), 0);
    refuse(folder, LIMIT, "pipe", "another program");
    assert_false(load(folder, "folder", binary) || load(folder, "pipe", binary));
    path_of(folder, "link", path); /* a link to a file of somebody's, where a record would be */
    assert_int_equal(symlink("new-thesis.tex", path), 0);
    refuse(folder, LIMIT, "link", "another program");
    struct stat s;
    assert_int_equal(lstat(path, &s), 0);
    assert_true(S_ISLNK(s.st_mode));
    path_of(folder, "pipe", path);
    assert_int_equal(lstat(path, &s), 0);
    assert_true(S_ISFIFO(s.st_mode));
}

/* What is larger than the limit, or than its beginning says, is not read. */
static void large_files_are_not_read(void **state)
{
    (void)state;
    const char *folder = in_base("large");
    char path[400];
    store(folder, LIMIT, "k", "binary");
    path_of(folder, "k", path);
    assert_true(load(folder, "k", "binary"));
    assert_int_equal(truncate(path, (off_t)3 << 40), 0); /* of sparse bytes */
    assert_false(load(folder, "k", "binary"));
    unsigned char head[24] = "tconvcl\1"; /* a key of one byte, and a binary of 3 TiB */
    head[8] = 1;
    head[16 + 5] = 3;
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fwrite(head, 1, sizeof head, file), sizeof head);
    fclose(file);
    assert_int_equal(truncate(path, ((off_t)3 << 40) + 41), 0);
    assert_false(load(folder, "k", "binary"));
    int files[3] = {0, 0, 0};
    tconv_folder_list(folder, LIMIT, count_file, files);
    assert_int_equal(files[TCONV_FILE_DAMAGED], 1);
    store(folder, LIMIT, "k", "binary"); /* it takes the damaged one's place */
    assert_true(load(folder, "k", "binary"));
}

/* Processes that write and read the same keys: each finds a whole record or none. */
static void many_processes_at_once(void **state)
{
    (void)state;
    char folder[300];
    snprintf(folder, sizeof folder, "%s", in_base("shared"));
    static char binary[60001];
    for (int p = 0; p < 8; p++)
        if (fork() == 0) {
            int found = 0;
            memset(binary, 'a' + p, 60000); /* equal bytes would not be written again */
            for (int i = 0; i < 100; i++) {
                char key[20];
                snprintf(key, sizeof key, "key %d", (i + p) % 5);
                store(folder, 4 * 60200, key, binary);
                void *bytes;
                struct tconv_record record;
                if (!tconv_folder_load(folder, LIMIT, key, &bytes, &record)) continue;
                found++;
                const char *read = record.binary; /* all of one process */
                if (record.binary_size != 60000 || memcmp(read, read + 1, 59999) != 0) _exit(2);
                free(bytes);
            }
            _exit(found > 0 ? 0 : 1);
        }
    for (int p = 0; p < 8; p++) {
        int status;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    assert_true(files_in(folder) <= 5);
}

static int make_base(void **state)
{
    (void)state;
    return !make_temporary_folder("tconv-cache", base, sizeof base);
}

static int remove_base(void **state)
{
    (void)state;
    return !remove_folder(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_tell_whether_they_are_whole),
        cmocka_unit_test(memory_has_what_was_used_last),
        cmocka_unit_test(what_was_stored_is_found),
        cmocka_unit_test(what_is_not_whole_or_not_ours_is_not_there),
        cmocka_unit_test(the_folder_can_be_listed),
        cmocka_unit_test(a_folder_that_cannot_be_is_told),
        cmocka_unit_test(what_is_forgotten_is_gone),
        cmocka_unit_test(a_full_disk_is_told),
        cmocka_unit_test(equal_bytes_are_not_written),
        cmocka_unit_test(the_limit_is_kept),
        cmocka_unit_test(files_of_others_survive),
        cmocka_unit_test(large_files_are_not_read),
        cmocka_unit_test(many_processes_at_once),
    };
    return cmocka_run_group_tests_name("records", tests, make_base, remove_base);
}
