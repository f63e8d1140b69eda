/* SPDX-License-Identifier: Apache-2.0 */
/* The files of results in tuning/: each algorithm takes its layer, with its tile, on a described
 * device of the kind that ran it. usage: test_tuned FOLDER */
#include "described.h"
#include "portable.h"
#include "selecting.h"
#include "tool/bench/tuned.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const char *folder;

/* True if a described device is of the kind that ran a file. */
static bool is_like(const tconv_device_info *info, const struct tuned_file *file)
{
    static const char *const members[] = {"kind", "architecture", "vector_width"};
    json_t *own = device_json(0, info, 1);
    bool like = own != NULL;
    for (int i = 0; i < 3; i++)
        like = like && json_equal(json_object_get(own, members[i]),
                                  json_object_get(file->device, members[i]));
    json_decref(own);
    return like;
}

/* True if the device, with as many compute units as the file's, takes the result with its tile. */
static bool is_taken(const tconv_device_info *info, const struct tuned_file *file,
                     const struct tuned_result *r, struct tconv_reason *reason)
{
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    struct tconv_loops loops;
    tconv_device_info device = *info;
    device.compute_units =
        (uint32_t)json_integer_value(json_object_get(file->device, "compute_units"));
    assert_int_equal(tconv_resolve(&r->problem, &geometry, NULL), TCONV_OK);
    tconv_loops_init(&loops, &r->problem, &geometry);
    device = tconv_device_for(&device, &loops);
    const struct tconv_request request =
        request_for(&loops, &device, &r->options.epilogue, r->options.math);
    return chosen(&request, r->found.algorithm, reason) != NULL;
}

static int replay(const char *path)
{
    struct tuned_file file;
    int wrong = 0;
    if (tuned_read(path, &file) != EXIT_DONE) fail_msg("%s is refused", path);
    for (size_t i = 0; i < file.count; i++) {
        struct tconv_reason reason = {"no described device is of its kind"};
        bool taken = false;
        for (const struct described_device *d = described_devices; d->name != NULL; d++)
            taken = taken || (is_like(&d->info, &file) &&
                              is_taken(&d->info, &file, &file.results[i], &reason));
        if (!taken)
            print_error("%s: %s: %s: %s\n", path, file.results[i].found.layer,
                        file.results[i].found.algorithm, reason.text);
        wrong += !taken;
    }
    tuned_free(&file);
    return wrong;
}

static void results_are_of_known_algorithms_with_legal_tiles(void **state)
{
    (void)state;
    int files = 0, wrong = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[1000];
        const char *ending = strrchr(e->d_name, '.');
        if (ending == NULL || strcmp(ending, ".json") != 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        wrong += replay(path);
        files++;
    }
    closedir(d);
    assert_true(files > 0);
    assert_int_equal(wrong, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_of_known_algorithms_with_legal_tiles)};
    folder = argc > 1 ? argv[1] : "tuning";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
