/* SPDX-License-Identifier: Apache-2.0 */
/* The promises of tuning.h: programs come back from a folder or from exported bytes, and whatever
 * is wrong with them is compiled anew, with the right result and without an error. */
#include "portable.h"
#include "support.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[200];

static tconv_problem small_problem(void)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    set_shape(&p.data, 4, (int64_t[]){1, 3, 9, 11});
    set_shape(&p.filter, 4, (int64_t[]){3, 5, 4, 4});
    set_list(&p.strides, 2, (int64_t[]){2, 2});
    return p;
}

/* The files of the folder: how many, and a number that changes where one is replaced. */
static int programs_in_folder(uint64_t *identity)
{
    DIR *d = opendir(folder);
    int count = 0;
    if (identity != NULL) *identity = 0;
    if (d == NULL) return 0;
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[500];
        struct stat s;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] == '.' || stat(path, &s) != 0) continue;
        count++;
        if (identity != NULL) *identity += (uint64_t)s.st_ino * 31 + (uint64_t)s.st_size;
    }
    closedir(d);
    return count;
}

/* Does something to every file of the folder. */
static void for_each_file(void (*what)(const char *path))
{
    DIR *d = opendir(folder);
    if (d == NULL) return;
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[500];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.') what(path);
    }
    closedir(d);
}

static void remove_file(const char *path)
{
    assert_int_equal(unlink(path), 0);
}

static void cut_off(const char *path)
{
    struct stat s;
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(truncate(path, (long)(s.st_size / 2)), 0);
}

static void flip_a_bit(const char *path)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -40, SEEK_END), 0);
    const int byte = fgetc(file);
    assert_int_equal(fseek(file, -40, SEEK_END), 0);
    fputc(byte ^ 4, file);
    fclose(file);
}

static tconv_device *new_device(const struct device *device)
{
    tconv_error error;
    tconv_device *own;
    cl_device_id id;
    if (tconv_device_at(device->number, NULL, &id, &error) != TCONV_OK ||
        tconv_device_create(device->context, id, &own, &error) != TCONV_OK)
        failed("%s", error.message);
    return own;
}

/* Runs the problem with a device object, and checks the result. */
static void run_by(const struct device *device, tconv_device *object, const char *algorithm)
{
    const tconv_problem p = small_problem();
    struct tensors t;
    tconv_error error;
    struct device own = *device;
    own.device = object;
    make_tensors(&p, SMALL_INTEGERS, 5, &t);
    if (run_guarded(&own, &p, algorithm, true, &t, &error) != TCONV_OK) failed("%s", error.message);
    compare_with_oracle(&own, &p, algorithm, true, &t);
    free_tensors(&t);
}

/* The same by one algorithm, with a device object that has compiled nothing yet. */
static void run_with(const struct device *device, tconv_device *object)
{
    run_by(device, object, "gather_group");
}

static void run_with_folder(const struct device *device, const char *path, uint64_t limit)
{
    tconv_error error;
    tconv_device *own = new_device(device);
    assert_int_equal(tconv_device_set_cache(own, path, limit, &error), TCONV_OK);
    if (path == NULL)
        assert_null(tconv_device_cache(own));
    else
        assert_string_equal(tconv_device_cache(own), path);
    run_with(device, own);
    tconv_device_release(own);
}

static void programs_come_back_from_the_folder(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        uint64_t before, after;
        for_each_file(remove_file);
        run_with_folder(&devices[d], NULL, 0);
        assert_int_equal(programs_in_folder(NULL), 0);
        run_with_folder(&devices[d], folder, 0);
        const int count = programs_in_folder(&before);
        print_message("device %d keeps %d programs\n", devices[d].number, count);
        assert_true(count > 0);
        run_with_folder(&devices[d], folder, 0);
        assert_int_equal(programs_in_folder(&after), count);
        assert_true(after == before); /* nothing was compiled and written again */

        static void (*const damages[])(const char *) = {cut_off, flip_a_bit, remove_file};
        for (int i = 0; i < 3; i++) {
            for_each_file(damages[i]);
            run_with_folder(&devices[d], folder, 0);
            assert_int_equal(programs_in_folder(&after), count);
            run_with_folder(&devices[d], folder, 0);
        }
        run_with_folder(&devices[d], "/proc/no/such/place", 0);
        run_with_folder(&devices[d], folder, 1); /* no room for anything: what was there is used */
        assert_int_equal(programs_in_folder(&after), count);
    }
}

static void applications_keep_programs(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        tconv_error error;
        size_t size = 1, again;
        int taken = -1;
        tconv_device *first = new_device(&devices[d]), *second = new_device(&devices[d]);
        assert_int_equal(tconv_device_set_cache(first, NULL, 0, &error), TCONV_OK);
        assert_int_equal(tconv_device_set_cache(second, NULL, 0, &error), TCONV_OK);
        assert_int_equal(tconv_device_export_programs(first, NULL, &size, &error), TCONV_OK);
        assert_int_equal(size, 0);
        run_with(&devices[d], first);
        assert_int_equal(tconv_device_export_programs(first, NULL, &size, &error), TCONV_OK);
        assert_true(size > 0);
        unsigned char *bytes = malloc(size), *damaged = malloc(size);
        assert_non_null(bytes);
        assert_non_null(damaged);
        again = size - 1;
        assert_int_equal(tconv_device_export_programs(first, bytes, &again, &error),
                         TCONV_ERROR_BUFFER);
        assert_int_equal(again, size);
        assert_non_null(strstr(error.message, "bytes"));
        assert_int_equal(tconv_device_export_programs(first, bytes, &again, &error), TCONV_OK);
        assert_int_equal(again, size);

        memcpy(damaged, bytes, size);
        damaged[30]++; /* the key of the first one */
        assert_int_equal(tconv_device_import_programs(second, damaged, size, &taken, &error),
                         TCONV_OK);
        assert_int_equal(taken, 0);
        assert_int_equal(tconv_device_import_programs(second, bytes, 20, &taken, &error), TCONV_OK);
        assert_int_equal(taken, 0);
        assert_int_equal(tconv_device_import_programs(second, NULL, 0, &taken, &error), TCONV_OK);
        assert_int_equal(taken, 0);
        assert_int_equal(tconv_device_import_programs(second, bytes, size, &taken, &error),
                         TCONV_OK);
        print_message("device %d: %d programs in %d bytes\n", devices[d].number, taken, (int)size);
        assert_true(taken > 0);
        run_with(&devices[d], second);
        const int all = taken;
        assert_int_equal(tconv_device_import_programs(second, bytes, size, &taken, &error),
                         TCONV_OK); /* those that are there already stay */
        assert_int_equal(taken, all);
        for (int other = 0; other < device_count; other++) {
            if (strcmp(devices[other].info->platform, devices[d].info->platform) == 0) continue;
            tconv_device *foreign = new_device(&devices[other]);
            assert_int_equal(tconv_device_import_programs(foreign, bytes, size, &taken, &error),
                             TCONV_OK);
            assert_int_equal(taken, 0);
            tconv_device_release(foreign);
        }
        free(bytes);
        free(damaged);
        tconv_device_release(first);
        tconv_device_release(second);
    }
}

static size_t number_at(const unsigned char *bytes)
{
    uint64_t number = 0;
    for (int i = 7; i >= 0; i--) number = number << 8 | bytes[i];
    return (size_t)number;
}

/* A blob of all programs, from malloc. */
static unsigned char *export_all(tconv_device *device, size_t *size)
{
    tconv_error error;
    assert_int_equal(tconv_device_export_programs(device, NULL, size, &error), TCONV_OK);
    unsigned char *bytes = malloc(*size);
    assert_non_null(bytes);
    assert_int_equal(tconv_device_export_programs(device, bytes, size, &error), TCONV_OK);
    return bytes;
}

/* A device object that imported programs keeps those longest that were used last by the one that
 * exported them: when it exports them in turn, it has them in the same order. */
static void imports_keep_the_order_of_use(void **state)
{
    (void)state;
    enum { HEAD = 24, CHECKSUM = 16 }; /* of a record, with the sizes of key and binary */
    for (int d = 0; d < device_count; d++) {
        tconv_error error;
        size_t size, again;
        int taken, records = 0;
        tconv_device *first = new_device(&devices[d]), *second = new_device(&devices[d]);
        assert_int_equal(tconv_device_set_cache(first, NULL, 0, &error), TCONV_OK);
        assert_int_equal(tconv_device_set_cache(second, NULL, 0, &error), TCONV_OK);
        run_by(&devices[d], first, "gather_group");
        run_by(&devices[d], first, "reference");
        unsigned char *bytes = export_all(first, &size);
        assert_int_equal(tconv_device_import_programs(second, bytes, size, &taken, &error),
                         TCONV_OK);
        assert_true(taken > 1);
        unsigned char *copies = export_all(second, &again);
        const unsigned char *at = bytes, *other = copies;
        while (at < bytes + size && other < copies + again) {
            const size_t key = number_at(at + 8);
            assert_int_equal(number_at(other + 8), key);
            assert_memory_equal(other + HEAD, at + HEAD, key);
            at += HEAD + key + number_at(at + 16) + CHECKSUM; /* binaries may differ */
            other += HEAD + key + number_at(other + 16) + CHECKSUM;
            records++;
        }
        assert_int_equal(records, taken);
        assert_true(at == bytes + size && other == copies + again);
        free(bytes);
        free(copies);
        tconv_device_release(first);
        tconv_device_release(second);
    }
}

static void misuse_is_refused(void **state)
{
    (void)state;
    tconv_error error;
    size_t size = 0;
    tconv_device *own = new_device(&devices[0]);
    assert_int_equal(tconv_device_set_cache(NULL, folder, 0, &error), TCONV_ERROR_ARGUMENT);
    assert_int_equal(tconv_device_set_cache(own, "", 0, &error), TCONV_ERROR_ARGUMENT);
    assert_null(tconv_device_cache(NULL));
    assert_int_equal(tconv_device_export_programs(NULL, NULL, &size, &error), TCONV_ERROR_ARGUMENT);
    assert_int_equal(tconv_device_export_programs(own, NULL, NULL, &error), TCONV_ERROR_ARGUMENT);
    assert_int_equal(tconv_device_import_programs(NULL, "x", 1, NULL, &error),
                     TCONV_ERROR_ARGUMENT);
    assert_int_equal(tconv_device_import_programs(own, NULL, 1, NULL, &error),
                     TCONV_ERROR_ARGUMENT);
    tconv_device_release(own);
}

static int set_up_all(void **state)
{
    return !make_temporary_folder("tconv-programs", folder, sizeof folder) ||
           open_all_devices(state) != 0;
}

static int tear_down_all(void **state)
{
    for_each_file(remove_file);
    return rmdir(folder) != 0 || close_all_devices(state) != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_come_back_from_the_folder),
        cmocka_unit_test(applications_keep_programs),
        cmocka_unit_test(imports_keep_the_order_of_use),
        cmocka_unit_test(misuse_is_refused),
    };
    return cmocka_run_group_tests_name("cache", tests, set_up_all, tear_down_all);
}
