/* SPDX-License-Identifier: Apache-2.0 */
/* tconv_device_prepare: afterwards no extent of the range compiles anything, in this process and in
 * later ones with the same folder; results are right and do not depend on the order of calls. */
#include "portable.h"
#include "setup.h"
#include "smoke.h"

#include "tconv_cl/tuning.h"

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

enum { LEAST = 1, MOST = 21, TILE = 300 }; /* one point has the same steps in both formats */

static tconv_problem problem_of(int64_t extent)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    set_shape(&p.data, 3, (int64_t[]){1, 5, extent});
    set_shape(&p.filter, 3, (int64_t[]){5, 7, 4});
    set_list(&p.strides, 1, (int64_t[]){2});
    return p;
}

/* What a device object did. */
struct heard {
    int compiled, plans, prepared;
};

static void hear(void *context, const tconv_trace_event *event)
{
    struct heard *h = context;
    if (event->kind == TCONV_TRACE_PROGRAM) h->compiled += strcmp(event->source, "compiler") == 0;
    if (event->kind != TCONV_TRACE_PLAN) return;
    h->plans++;
    h->prepared += strcmp(event->source, "prepared") == 0;
}

static tconv_device *open_device(const struct device *device, const char *cache, struct heard *h)
{
    tconv_device *own = device_with_cache(device, cache);
    *h = (struct heard){0, 0, 0};
    assert_int_equal(tconv_device_set_trace(own, TCONV_TRACE_ALL, hear, h, NULL), TCONV_OK);
    return own;
}

static int prepare(tconv_device *device, int64_t least, int64_t most)
{
    tconv_error error;
    const tconv_problem p = problem_of(least), last = problem_of(most);
    int programs = -1;
    expect_ok(tconv_device_prepare(device, &p, &last.data, NULL, &programs, &error), &error);
    return programs;
}

/* Makes a plan, and writes its algorithm with the tile. */
static void choose_problem(tconv_device *device, const tconv_problem *p, char name[TILE])
{
    tconv_error error;
    tconv_plan *plan;
    expect_ok(tconv_plan_create(device, p, NULL, &plan, &error), &error);
    const int length = snprintf(name, TILE, "%s ", tconv_plan_algorithm(plan));
    tconv_plan_tile(plan, name + length, TILE - (size_t)length);
    tconv_plan_release(plan);
}

static void choose(tconv_device *device, int64_t extent, char name[TILE])
{
    const tconv_problem p = problem_of(extent);
    choose_problem(device, &p, name);
}

static void compute(const struct device *device, int64_t extent)
{
    struct setup s;
    const tconv_problem p = problem_of(extent);
    set_up(&s, device, &p, NULL, false, SMALL_INTEGERS);
    pack(&s);
    enqueue(&s);
    download(&s, 0, NULL);
    compare_with_oracle(device, &p, tconv_plan_algorithm(s.plan), false, &s.tensors);
    tear_down(&s);
}

static void no_extent_of_the_range_compiles(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        static char first[MOST + 1][TILE];
        char again[TILE];
        struct heard h;
        assert_true(clear_folder(folder));
        struct device own = devices[d];
        own.device = open_device(&devices[d], folder, &h);
        const int programs = prepare(own.device, LEAST, MOST);
        /* Some are given up after compiling: rusticl allows kernels smaller groups than it says. */
        assert_true(programs > 0 && h.compiled < 2 * programs && h.plans == 0);
        h.compiled = 0;
        for (int x = MOST; x >= LEAST; x--) choose(own.device, x, first[x]);
        assert_int_equal(h.compiled, 0);
        assert_int_equal(h.plans, MOST - LEAST + 1);
        assert_int_equal(h.prepared, h.plans);
        compute(&own, LEAST);
        compute(&own, MOST);
        assert_int_equal(h.compiled, 0);

        /* A part of the range has nothing left to do. */
        assert_true(prepare(own.device, LEAST + 1, MOST - 1) <= programs);
        assert_int_equal(h.compiled, 0);
        tconv_device_release(own.device);

        /* A later process finds all in the folder, and chooses the same in any order. */
        own.device = open_device(&devices[d], folder, &h);
        for (int x = LEAST; x <= MOST; x++) {
            choose(own.device, x, again);
            assert_string_equal(again, first[x]);
        }
        assert_int_equal(h.compiled, 0);
        assert_int_equal(h.prepared, h.plans);
        assert_int_equal(prepare(own.device, LEAST, MOST), programs);
        assert_int_equal(h.compiled, 0);
        tconv_device_release(own.device);
    }
}

/* The extents between those that are looked at. */
static void large_ranges_are_served(void **state)
{
    (void)state;
    enum { SIDE = 34, FAR = 90 };
    for (int d = 0; d < device_count; d++) {
        char name[TILE];
        struct heard h;
        tconv_error error;
        tconv_problem p = TCONV_PROBLEM_INIT;
        tconv_shape most = {4, {1, 4, SIDE, SIDE}};
        set_shape(&p.data, 4, (int64_t[]){1, 4, 1, 1});
        set_shape(&p.filter, 4, (int64_t[]){4, 3, 3, 3});
        set_list(&p.strides, 2, (int64_t[]){2, 2});
        tconv_device *device = open_device(&devices[d], NULL, &h);
        for (int range = 0; range < 2; range++) {
            expect_ok(tconv_device_prepare(device, &p, &most, NULL, NULL, &error), &error);
            h = (struct heard){0, 0, 0};
            for (int i = 0; i < 400; i++) {
                tconv_problem one = p;
                one.data.dim[2] = 1 + i * 37 % most.dim[2];
                one.data.dim[3] = 1 + i * 11 % most.dim[3];
                choose_problem(device, &one, name);
            }
            assert_int_equal(h.compiled, 0);
            assert_int_equal(h.prepared, h.plans);
            if (d > 0) break;
            most.dim[2] = most.dim[3] = FAR;
        }
        tconv_device_release(device);
    }
}

/* True if a file of the folder has these bytes. */
static bool folder_has(const char *bytes)
{
    static char file[1 << 20];
    bool found = false;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (const struct dirent *e; !found && (e = readdir(d)) != NULL;) {
        char path[500];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        FILE *in = e->d_name[0] == '.' ? NULL : fopen(path, "rb");
        const size_t size = in == NULL ? 0 : fread(file, 1, sizeof file, in);
        if (in != NULL) fclose(in);
        for (size_t i = 0; i + strlen(bytes) < size && !found; i++)
            found = memcmp(file + i, bytes, strlen(bytes)) == 0;
    }
    closedir(d);
    return found;
}

/* PoCL compiles a kernel for its work-groups at the first run, and then calls it so in its binary.
 * Without that, the first run of a later process would compile it again. */
static void the_folder_has_finished_kernels(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        if (strcmp(devices[d].info->platform, "Portable Computing Language") != 0) continue;
        struct heard h;
        assert_true(clear_folder(folder));
        tconv_device *device = open_device(&devices[d], folder, &h);
        prepare(device, MOST, MOST);
        assert_true(folder_has("-goffs0"));
        tconv_device_release(device);
    }
}

/* Without the list of prepared programs, plans follow the cost model; a damaged list is none. */
static void other_plans_follow_the_model(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        char name[TILE], by_model[TILE];
        struct heard h;
        tconv_device *device = open_device(&devices[d], NULL, &h);
        choose(device, MOST, by_model);
        tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
        options.search = TCONV_SEARCH_MODEL;
        tconv_error error;
        tconv_problem p = problem_of(MOST);
        int programs = 0;
        expect_ok(tconv_device_prepare(device, &p, NULL, &options, &programs, &error), &error);
        assert_true(programs > 0);
        choose(device, MOST, name);
        assert_string_equal(name, by_model);
        assert_int_equal(h.prepared, 0);

        options = (tconv_plan_options)TCONV_PLAN_OPTIONS_INIT;
        options.algorithm = "reference";
        h.compiled = 0;
        expect_ok(tconv_device_prepare(device, &p, NULL, &options, &programs, &error), &error);
        choose(device, MOST, name);
        assert_int_equal(h.prepared, 0);
        assert_int_equal(h.compiled, programs);

        prepare(device, LEAST, MOST); /* in memory, without a folder */
        choose(device, LEAST, name);
        assert_int_equal(h.prepared, 1);
        tconv_device_release(device);
    }
}

static bool stop(void *context, const char *algorithm, int index, int count, double best_ms)
{
    assert_true(index == 0 && count > 0 && best_ms == 0 && algorithm != NULL);
    ++*(int *)context;
    return false;
}

static void it_can_be_stopped(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        struct heard h;
        tconv_error error;
        int calls = 0, programs = -1;
        tconv_device *device = open_device(&devices[d], NULL, &h);
        tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
        options.search_progress = stop;
        options.search_context = &calls;
        const tconv_problem p = problem_of(MOST);
        expect_ok(tconv_device_prepare(device, &p, NULL, &options, &programs, &error), &error);
        assert_int_equal(calls, 1);
        assert_int_equal(programs, 0);
        assert_int_equal(h.compiled, 0);
        tconv_device_release(device);
    }
}

static void expect_refusal(const tconv_problem *p, const tconv_shape *most, const char *words)
{
    tconv_error error;
    expect_error(tconv_device_prepare(devices[0].device, p, most, NULL, NULL, &error),
                 TCONV_ERROR_ARGUMENT, &error, words);
}

/* Steps of the largest shape say how tensors of all others lie: here channels are their last axis
 * in memory, and rows of data have two elements more. */
static void views_are_prepared(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        char name[TILE];
        struct heard h;
        tconv_error error;
        tconv_problem p = problem_of(LEAST);
        const tconv_problem largest = problem_of(MOST);
        p.data_steps = (tconv_steps){3, {7 * MOST, 1, 7}};
        p.output_steps = (tconv_steps){3, {999, 1, 7}};
        tconv_device *device = open_device(&devices[d], NULL, &h);
        expect_ok(tconv_device_prepare(device, &p, &largest.data, NULL, NULL, &error), &error);
        h = (struct heard){0, 0, 0};
        for (int x = LEAST; x <= MOST; x++) {
            p.data.dim[2] = x;
            p.data_steps.value[0] = 7 * x;
            choose_problem(device, &p, name);
        }
        assert_int_equal(h.compiled, 0);
        assert_int_equal(h.prepared, h.plans);
        tconv_device_release(device);
    }
}

/* Another device object prepares another range of the layer while the first one does. */
struct other {
    tconv_device *device;
    bool done;
};

static bool prepare_other(void *context, const char *algorithm, int index, int count,
                          double best_ms)
{
    struct other *other = context;
    (void)algorithm, (void)index, (void)count, (void)best_ms;
    if (!other->done) prepare(other->device, 3, 3);
    other->done = true;
    return true;
}

static void lists_of_two_ranges_are_joined(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        struct heard h, h_other;
        char name[TILE];
        tconv_error error;
        assert_true(clear_folder(folder));
        tconv_device *device = open_device(&devices[d], folder, &h);
        struct other other = {open_device(&devices[d], folder, &h_other), false};
        tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
        options.search_progress = prepare_other;
        options.search_context = &other;
        const tconv_problem p = problem_of(4000);
        expect_ok(tconv_device_prepare(device, &p, NULL, &options, NULL, &error), &error);
        assert_true(other.done);
        tconv_device_release(other.device);
        tconv_device_release(device);
        device = open_device(&devices[d], folder, &h);
        choose(device, 3, name);
        choose(device, 4000, name);
        assert_int_equal(h.prepared, 2);
        assert_int_equal(h.compiled, 0);
        tconv_device_release(device);
    }
}

static uint64_t folder_bytes(void)
{
    uint64_t bytes = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[500];
        struct stat s;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.' && stat(path, &s) == 0) bytes += (uint64_t)s.st_size;
    }
    closedir(d);
    return bytes;
}

/* A folder that removes the first programs for the last ones. */
static void a_small_limit_is_told(void **state)
{
    (void)state;
    struct heard h;
    tconv_error error;
    const tconv_problem p = problem_of(LEAST), last = problem_of(MOST);
    assert_true(clear_folder(folder));
    tconv_device *device = open_device(&devices[0], folder, &h);
    assert_true(prepare(device, LEAST, MOST) > 1);
    tconv_device_release(device);
    const uint64_t all = folder_bytes(); /* not exactly: rusticl's binaries vary */
    for (int less = 0; less < 2; less++) {
        assert_true(clear_folder(folder));
        device = open_device(&devices[0], folder, &h);
        expect_ok(
            tconv_device_set_cache(device, folder, less == 0 ? all + all / 8 : all / 2, &error),
            &error);
        const tconv_status status =
            tconv_device_prepare(device, &p, &last.data, NULL, NULL, &error);
        if (less == 0)
            expect_ok(status, &error);
        else
            expect_error(status, TCONV_ERROR_FILE, &error, "bytes is too small for all of them");
        tconv_device_release(device);
    }
}

/* Ranges whose largest shape, or whose count of extents, exceeds 63 bits. */
static void huge_ranges_are_refused(void **state)
{
    (void)state;
    tconv_error error;
    tconv_problem p = problem_of(0);
    tconv_shape most = {3, {1, 5, INT64_MAX}};
    expect_error(tconv_device_prepare(devices[0].device, &p, &most, NULL, NULL, &error),
                 TCONV_ERROR_SHAPE, &error, "the largest shape of the range: ");
    p = problem_of(LEAST);
    p.data.dim[0] = 0;
    most = (tconv_shape){3, {INT64_MAX, 5, LEAST}};
    expect_error(tconv_device_prepare(devices[0].device, &p, &most, NULL, NULL, &error),
                 TCONV_ERROR_SHAPE, &error, "the largest shape of the range: ");
}

static void misuse_is_refused(void **state)
{
    (void)state;
    tconv_error error;
    const tconv_problem p = problem_of(LEAST);
    tconv_problem other = problem_of(MOST);
    expect_error(tconv_device_prepare(NULL, &p, NULL, NULL, NULL, &error), TCONV_ERROR_ARGUMENT,
                 &error, "device is NULL");
    expect_refusal(NULL, NULL, "problem is NULL");
    expect_refusal(&other, &p.data, "most.dim[2] is 1, and problem.data.dim[2] is 21: the range");
    other.data.dim[1] = 6;
    expect_refusal(&p, &other.data, "most.dim[1] is 6, and problem.data.dim[1] is 5: channels");
    other.data.rank = 4;
    expect_refusal(&p, &other.data, "most has 4 axes and problem.data 3");
    other = problem_of(-3);
    expect_refusal(&other, &p.data, "problem.data.dim[2] is -3: an extent");
    other = problem_of(LEAST);
    other.data.rank = 4000;
    assert_true(tconv_device_prepare(devices[0].device, &other, NULL, NULL, NULL, &error) !=
                TCONV_ERROR_ARGUMENT);
    other = problem_of(LEAST);
    other.data_steps = (tconv_steps){2, {99, 9}};
    expect_error(tconv_device_prepare(devices[0].device, &other, &p.data, NULL, NULL, &error),
                 TCONV_ERROR_ATTRIBUTE, &error, "data_steps has 2 values");
    other = problem_of(LEAST); /* channels last: the last axis has them */
    other.operation = TCONV_ONEAPI_CONV_BACKPROP;
    set_shape(&other.data, 3, (int64_t[]){1, LEAST, 5});
    const tconv_shape most = {3, {1, LEAST, 6}};
    expect_refusal(&other, &most, "most.dim[2] is 6, and problem.data.dim[2] is 5: channels");
}

static int set_up_all(void **state)
{
    return !make_temporary_folder("tconv-prepare", folder, sizeof folder) ||
           open_all_devices(state) != 0;
}

static int tear_down_all(void **state)
{
    return !clear_folder(folder) || rmdir(folder) != 0 || close_all_devices(state) != 0;
}

int main(void)
{
    struct CMUnitTest tests[] = {
        cmocka_unit_test(no_extent_of_the_range_compiles),
        cmocka_unit_test(large_ranges_are_served),
        smoke_test(the_folder_has_finished_kernels),
        cmocka_unit_test(other_plans_follow_the_model),
        cmocka_unit_test(it_can_be_stopped),
        cmocka_unit_test(views_are_prepared),
        cmocka_unit_test(a_small_limit_is_told),
        cmocka_unit_test(lists_of_two_ranges_are_joined),
        cmocka_unit_test(huge_ranges_are_refused),
        cmocka_unit_test(misuse_is_refused),
    };
    return run_smoke_or_all("prepare", tests, set_up_all, tear_down_all);
}
