/* SPDX-License-Identifier: Apache-2.0 */
/* base/os.h on the system that the test runs on: files, folders and variables with names that are
 * not ASCII, and threads that replace one file all the time. */
#include "base/os.h"
#include "base/process.h"
#include "portable.h"
#include "store/folder.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__linux__)
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <cmocka.h>

#define NAME "ÄÖÜ–плюс–加.bin" /* letters that no code page of Windows has together */

static char base[300]; /* where the tests write */

static const char *in_base(const char *name)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", base, name);
    return path;
}

static struct tconv_os_folder *open_folder(const char *name)
{
    char path[400];
    snprintf(path, sizeof path, "%s", in_base(name));
    assert_true(tconv_os_make_folders(path, NULL));
    struct tconv_os_folder *folder = tconv_os_folder_open(path, NULL, NULL);
    assert_non_null(folder);
    return folder;
}

static void expect_file(struct tconv_os_folder *folder, const char *name, const char *text)
{
    void *bytes;
    char head[4];
    uint64_t size;
    assert_int_equal(tconv_os_file_head(folder, name, head, sizeof head, &size), TCONV_OS_READ);
    assert_int_equal(size, strlen(text));
    assert_memory_equal(head, text, sizeof head);
    assert_int_equal(tconv_os_file_read(folder, name, strlen(text), &bytes), TCONV_OS_READ);
    assert_memory_equal(bytes, text, strlen(text));
    free(bytes);
    assert_int_equal(tconv_os_file_read(folder, name, strlen(text) - 1, &bytes), TCONV_OS_REFUSED);
    assert_null(bytes);
}

/* Counts files, and those with the name above. */
struct seen {
    int files, named;
    int64_t used;
};

static void see(void *context, const struct tconv_os_file *file)
{
    struct seen *seen = context;
    seen->files++;
    if (strcmp(file->name, NAME) != 0) return;
    assert_true(file->ordinary);
    assert_int_equal(file->size, 6);
    seen->named++;
    seen->used = file->used;
}

static void files_are_written_replaced_and_removed(void **state)
{
    (void)state;
    struct tconv_os_folder *folder = open_folder("new/folders/žluť");
    void *bytes;
    char head[4] = "abc";
    uint64_t size;
    assert_int_equal(tconv_os_file_read(folder, NAME, 5, &bytes), TCONV_OS_ABSENT);
    assert_null(bytes);
    assert_int_equal(tconv_os_file_head(folder, NAME, head, 4, &size), TCONV_OS_ABSENT);
    assert_true(tconv_os_file_write(folder, "new-", NAME, "first", 5, NULL));
    expect_file(folder, NAME, "first");
    assert_true(tconv_os_file_write(folder, "new-", NAME, "second", 6, NULL));
    expect_file(folder, NAME, "second");
    assert_true(tconv_os_file_write(folder, "new-", "empty", "", 0, NULL));
    assert_int_equal(tconv_os_file_head(folder, "empty", head, 4, &size), TCONV_OS_READ);
    assert_int_equal(size, 0);
    assert_memory_equal(head, "\0\0\0", 4);

    struct seen seen = {0};
    tconv_os_folder_visit(folder, see, &seen);
    assert_int_equal(seen.files, 2); /* and nothing that begins with new- */
    assert_int_equal(seen.named, 1);
    const double age = (double)time(NULL) - 1e-9 * (double)seen.used;
    assert_true(age > -60 && age < 600); /* seconds */
    tconv_os_file_touch(folder, NAME);
    tconv_os_folder_visit(folder, see, &seen);
    assert_true((double)time(NULL) - 1e-9 * (double)seen.used <= age + 600);

    assert_true(tconv_os_file_remove(folder, NAME, NULL));
    assert_false(tconv_os_file_remove(folder, NAME, NULL));
    assert_int_equal(tconv_os_file_read(folder, NAME, 6, &bytes), TCONV_OS_ABSENT);
    tconv_os_folder_close(folder);
}

static void what_is_no_folder_is_refused(void **state)
{
    (void)state;
    bool absent = false;
    assert_null(tconv_os_folder_open(in_base("none"), &absent, NULL));
    assert_true(absent);
    struct tconv_os_folder *folder = open_folder("plain");
    assert_true(tconv_os_file_write(folder, "new-", "file", "x", 1, NULL));
    assert_true(make_folder(in_base("plain/inside")));
    assert_null(tconv_os_folder_open(in_base("plain/file"), &absent, NULL));
    assert_false(absent);
    void *bytes;
    assert_int_equal(tconv_os_file_read(folder, "inside", 1, &bytes), TCONV_OS_REFUSED);
    assert_null(bytes);
    tconv_os_folder_close(folder);
    assert_null(tconv_os_folder_open("", &absent, NULL));
}

static void files_open_as_streams_by_names_in_utf8(void **state)
{
    (void)state;
    FILE *file = tconv_os_fopen(in_base(NAME), "wb");
    assert_non_null(file);
    assert_int_equal(fputs("text\n", file) >= 0, 1);
    assert_int_equal(fclose(file), 0);
    file = tconv_os_fopen(in_base(NAME), "rb");
    char text[10] = "";
    assert_int_equal(fread(text, 1, sizeof text, file), 5); /* the line's end is one byte */
    fclose(file);
    assert_null(tconv_os_fopen(in_base("none"), "rb"));
}

static void variables_are_set_or_not(void **state)
{
    (void)state;
    char value[10] = "";
    set_variable("TCONV_CL_TEST_OS", "ninebytes");
    assert_int_equal(tconv_os_environment("TCONV_CL_TEST_OS", value, sizeof value), 9);
    assert_string_equal(value, "ninebytes");
    assert_int_equal(tconv_os_environment("TCONV_CL_TEST_OS", value, 5), 9);
    assert_string_equal(value, "nine"); /* cut off */
    set_variable("TCONV_CL_TEST_OS", "");
    assert_int_equal(tconv_os_environment("TCONV_CL_TEST_OS", value, sizeof value), 0);
    set_variable("TCONV_CL_TEST_OS", NULL);
    assert_int_equal(tconv_os_environment("TCONV_CL_TEST_OS", value, sizeof value), 0);
}

static void the_cache_has_a_home(void **state)
{
    (void)state;
#if defined(_WIN32)
    static const char name[] = "LOCALAPPDATA", home[] = "C:\\users\\somebody";
#else
    static const char name[] = "XDG_CACHE_HOME", home[] = "/somebody/cache";
#endif
    char path[TCONV_OS_PATH];
    set_variable(name, home);
    assert_true(tconv_os_cache_home(path, sizeof path));
    assert_string_equal(path, home);
    set_variable(name, "relative");
    assert_false(tconv_os_cache_home(path, sizeof path) && strcmp(path, "relative") == 0);
    set_variable(name, NULL);
}

static void time_goes_on(void **state)
{
    (void)state;
    const double begin = tconv_os_seconds();
    double now = begin;
    for (int i = 0; i < 100000000 && now == begin; i++) {
        tconv_os_yield();
        now = tconv_os_seconds();
    }
    assert_true(now > begin && now < begin + 60);
}

/* Threads that store and load one record: each finds a whole one or none. */
static void *store_and_load(void *wrong)
{
    enum { SIZE = 60000 };
    char *binary = malloc(SIZE);
    memset(binary, 'b', SIZE);
    int found = 0;
    for (int i = 0; i < 50; i++) {
        const struct tconv_record record = {"key", 3, binary, SIZE};
        tconv_folder_store(base, 1 << 20, &record, NULL);
        void *bytes;
        struct tconv_record read;
        if (!tconv_folder_load(base, 1 << 20, "key", &bytes, &read)) continue;
        found++;
        if (read.binary_size != SIZE || memcmp(read.binary, binary, SIZE) != 0) *(int *)wrong = 1;
        free(bytes);
    }
    if (found == 0) *(int *)wrong = 2;
    free(binary);
    return NULL;
}

static void replaced_files_are_whole(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    int wrong[THREADS] = {0};
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, store_and_load, &wrong[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(wrong[i], 0);
    }
}

static void libraries_are_found(void **state)
{
    (void)state;
    assert_null(tconv_os_open_library("tconv-library-that-nobody-has"));
#if defined(_WIN32)
    void *library = tconv_os_open_library("kernel32.dll"), (*function)(void) = NULL;
    assert_non_null(library);
    assert_true(tconv_os_find_function(library, "GetCurrentProcess", &function));
    assert_true(function != NULL);
    assert_false(tconv_os_find_function(library, "NoSuchFunction", &function));
#endif
}

static int make_base(void **state)
{
    (void)state;
    return !make_temporary_folder("tconv-os", base, sizeof base);
}

static int remove_base(void **state)
{
    (void)state;
    return !remove_folder(base);
}

#if defined(__linux__)
/* Another copy of the library has used OpenCL in the parent; this one has not been used yet. */
static void other_copies_leave_marks(void **state)
{
    (void)state;
    assert_false(tconv_process_forked());
    tconv_os_leave_mark(tconv_os_process());
    if (tconv_os_find_mark(tconv_os_process()) == 0) skip(); /* the system has no marks */
    assert_false(tconv_process_forked());
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(tconv_process_forked() ? 0 : 1);
    int result = 1;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_written_replaced_and_removed),
        cmocka_unit_test(what_is_no_folder_is_refused),
        cmocka_unit_test(files_open_as_streams_by_names_in_utf8),
        cmocka_unit_test(variables_are_set_or_not),
        cmocka_unit_test(the_cache_has_a_home),
        cmocka_unit_test(time_goes_on),
        cmocka_unit_test(replaced_files_are_whole),
        cmocka_unit_test(libraries_are_found),
#if defined(__linux__)
        cmocka_unit_test(other_copies_leave_marks),
#endif
    };
    return cmocka_run_group_tests_name("os", tests, make_base, remove_base);
}
