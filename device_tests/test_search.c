/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing an algorithm by time: what is measured, stored, found again, and refused; it never
 * changes a result. */
#include "portable.h"
#include "random_problem.h"
#include "setup.h"
#include "smoke.h"

#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[200];

static tconv_problem small_problem(void)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    set_shape(&p.data, 4, (int64_t[]){1, 5, 9, 11});
    set_shape(&p.filter, 4, (int64_t[]){5, 7, 4, 4});
    set_list(&p.strides, 2, (int64_t[]){2, 2});
    return p;
}

/* Does something to every file of the folder that has a search record, and tells how many these
 * are. */
static int for_each_record(void (*what)(const char *path))
{
    static char bytes[8192];
    int count = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[500];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        FILE *file = e->d_name[0] == '.' ? NULL : fopen(path, "rb");
        if (file == NULL) continue;
        const size_t size = fread(bytes, 1, sizeof bytes - 1, file);
        fclose(file);
        bool record = false; /* the text is behind binary numbers */
        for (size_t i = 0; i + 10 < size && !record; i++)
            record = memcmp(bytes + i, "best_ms ", 8) == 0;
        count += record;
        if (record && what != NULL) what(path);
    }
    closedir(d);
    return count;
}

static void damage(const char *path)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -20, SEEK_END), 0); /* a digit of the text */
    const int byte = fgetc(file);
    assert_int_equal(fseek(file, -20, SEEK_END), 0);
    fputc(byte ^ 1, file);
    fclose(file);
}

/* Makes a plan and returns how its algorithm was chosen; `name`, of 40 bytes, is the algorithm. */
static tconv_choice choose(tconv_device *device, const tconv_problem *problem,
                           const tconv_plan_options *options, char *name)
{
    tconv_error error;
    tconv_plan *plan;
    tconv_choice choice = TCONV_CHOICE_INIT;
    if (tconv_plan_create(device, problem, options, &plan, &error) != TCONV_OK ||
        tconv_plan_choice(plan, &choice, &error) != TCONV_OK)
        failed("%s", error.message);
    snprintf(name, 40, "%s", tconv_plan_algorithm(plan));
    tconv_plan_release(plan);
    return choice;
}

static tconv_plan_options with_search(tconv_search search)
{
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.search = search;
    options.search_ms = 5;
    return options;
}

static void results_are_stored_and_found_again(void **state)
{
    (void)state;
    const tconv_problem p = small_problem();
    for (int d = 0; d < device_count; d++) {
        char by_model[40], measured[40], found[40];
        tconv_plan_options options = with_search(TCONV_SEARCH_RECORDS);
        assert_true(clear_folder(folder));
        tconv_device *first = device_with_cache(&devices[d], folder);
        assert_string_equal(tconv_device_search_folder(first), folder);
        tconv_choice choice = choose(first, &p, &options, by_model); /* there is nothing yet */
        assert_int_equal(choice.source, TCONV_SEARCH_MODEL);
        assert_int_equal(choice.candidates, 0);
        assert_int_equal(for_each_record(NULL), 0);

        options.search = TCONV_SEARCH_MEASURE;
        const tconv_choice timed = choose(first, &p, &options, measured);
        print_message("device %d: %s, of %d algorithms; the model's takes %.2f times as long\n",
                      devices[d].number, measured, (int)timed.candidates,
                      timed.model_ms / timed.best_ms);
        assert_int_equal(timed.source, TCONV_SEARCH_MEASURE);
        assert_true(timed.candidates >= 1 && timed.best_ms > 0 && timed.model_ms >= timed.best_ms);
        if (timed.model_ms == timed.best_ms) assert_string_equal(measured, by_model);
        assert_int_equal(for_each_record(NULL), 1);
        tconv_device_release(first);

        /* By another device object, as after a restart; without measuring, though it may. */
        tconv_device *second = device_with_cache(&devices[d], folder);
        choice = choose(second, &p, &options, found);
        assert_int_equal(choice.source, TCONV_SEARCH_RECORDS);
        assert_int_equal(choice.candidates, timed.candidates);
        assert_string_equal(found, measured);
        options.search = TCONV_SEARCH_DEFAULT;
        assert_int_equal(choose(second, &p, &options, found).source, TCONV_SEARCH_RECORDS);
        options.search = TCONV_SEARCH_MODEL;
        assert_int_equal(choose(second, &p, &options, found).source, TCONV_SEARCH_MODEL);
        assert_string_equal(found, by_model);
        options.search = TCONV_SEARCH_RENEW;
        assert_int_equal(choose(second, &p, &options, found).source, TCONV_SEARCH_MEASURE);
        options.search = TCONV_SEARCH_RECORDS;
        options.algorithm = "reference"; /* a name goes first */
        assert_int_equal(choose(second, &p, &options, found).source, TCONV_SEARCH_MODEL);
        assert_string_equal(found, "reference");
        options.algorithm = NULL;

        /* Other problems and other options have results of their own. */
        tconv_problem other = p;
        set_shape(&other.data, 4, (int64_t[]){1, 5, 9, 12});
        assert_int_equal(choose(second, &other, &options, found).source, TCONV_SEARCH_MODEL);
        other = p; /* an upsampling, computed as p */
        other.operation = TCONV_UPSAMPLE_CONV;
        set_shape(&other.filter, 4, (int64_t[]){7, 5, 3, 3});
        set_list(&other.pads_begin, 2, (int64_t[]){2, 2});
        set_list(&other.pads_end, 2, (int64_t[]){2, 2});
        assert_int_equal(choose(second, &other, &options, found).source, TCONV_SEARCH_MODEL);
        options.epilogue.activation = TCONV_ACTIVATION_RELU;
        assert_int_equal(choose(second, &p, &options, found).source, TCONV_SEARCH_MODEL);
        tconv_device_release(second);
    }
}

static void damaged_and_foreign_results_count_as_none(void **state)
{
    (void)state;
    const tconv_problem p = small_problem();
    for (int d = 0; d < device_count; d++) {
        char name[40];
        tconv_error error;
        assert_true(clear_folder(folder));
        tconv_plan_options options = with_search(TCONV_SEARCH_MEASURE);
        tconv_device *first = device_with_cache(&devices[d], folder);
        choose(first, &p, &options, name);
        size_t size = 0;
        assert_int_equal(tconv_device_export_programs(first, NULL, &size, &error), TCONV_OK);
        unsigned char *bytes = malloc(size);
        assert_non_null(bytes);
        assert_int_equal(tconv_device_export_programs(first, bytes, &size, &error), TCONV_OK);
        tconv_device_release(first);

        assert_int_equal(for_each_record(damage), 1);
        options.search = TCONV_SEARCH_RECORDS;
        tconv_device *second = device_with_cache(&devices[d], folder);
        assert_int_equal(choose(second, &p, &options, name).source, TCONV_SEARCH_MODEL);
        tconv_device_release(second);

        /* What was exported comes back, except on other devices. */
        for (int other = 0; other < device_count; other++) {
            tconv_device *third = device_with_cache(&devices[other], NULL);
            assert_null(tconv_device_search_folder(third));
            int taken = 0;
            assert_int_equal(tconv_device_import_programs(third, bytes, size, &taken, &error),
                             TCONV_OK);
            const tconv_search wanted = other == d ? TCONV_SEARCH_RECORDS : TCONV_SEARCH_MODEL;
            if (other == d ||
                strcmp(devices[other].info->platform, devices[d].info->platform) != 0) {
                assert_int_equal(choose(third, &p, &options, name).source, wanted);
                assert_true((taken > 0) == (other == d));
            }
            tconv_device_release(third);
        }
        free(bytes);
    }
}

/* What tconv_device_stored_searches told. */
struct told {
    int used, imported, foreign, damaged, strange;
    double best_ms, median_ms;
    char problem[500], algorithm[300], layer[500], origin[300];
};

static void copy_texts(struct told *t, const tconv_stored_search *s)
{
    snprintf(t->problem, sizeof t->problem, "%s", s->problem);
    snprintf(t->algorithm, sizeof t->algorithm, "%s", s->algorithm);
    snprintf(t->layer, sizeof t->layer, "%s", s->layer);
    snprintf(t->origin, sizeof t->origin, "%s", s->origin);
    t->best_ms = s->best_ms;
    t->median_ms = s->median_ms;
    assert_string_equal(s->device, "");
    assert_true(s->candidates > 0 && s->best_ms > 0 && s->model_ms >= s->best_ms);
}

static void count_stored(void *context, const tconv_stored_search *s)
{
    struct told *t = context;
    if (s->state == TCONV_RECORD_USED) {
        t->used++;
        copy_texts(t, s);
        assert_string_equal(s->origin, "");
        return;
    }
    if (s->state == TCONV_RECORD_IMPORTED) {
        t->imported++;
        copy_texts(t, s);
        return;
    }
    if (s->state == TCONV_RECORD_DAMAGED) {
        t->damaged++;
        assert_string_equal(s->problem, "");
        assert_string_equal(s->algorithm, "");
    } else if (s->device[0] != '\0') {
        t->foreign++;
        assert_non_null(strstr(s->device, "driver "));
        assert_true(s->problem[0] != '\0' && s->algorithm[0] != '\0' && s->best_ms > 0);
    } else {
        t->strange++;
        assert_string_equal(s->file, "notes.txt");
    }
}

static struct told stored_results(const tconv_device *device)
{
    struct told told = {.used = 0};
    tconv_error error;
    assert_int_equal(tconv_device_stored_searches(device, count_stored, &told, &error), TCONV_OK);
    return told;
}

static void results_can_be_listed(void **state)
{
    (void)state;
    const tconv_problem p = small_problem();
    assert_true(clear_folder(folder));
    for (int d = 0; d < device_count; d++) {
        char name[40], notes[300];
        tconv_plan_options options = with_search(TCONV_SEARCH_MEASURE);
        tconv_device *own = device_with_cache(&devices[d], folder);
        if (stored_results(own).used > 0) { /* another device of the same kind stored them */
            tconv_device_release(own);
            continue;
        }
        const int before = stored_results(own).foreign;
        choose(own, &p, &options, name);
        struct told told = stored_results(own);
        assert_int_equal(told.used, 1);
        assert_int_equal(told.foreign, before);
        assert_true(before > 0 || d == 0);
        assert_memory_equal(told.algorithm, name, strlen(name));
        assert_string_equal(told.problem, "f32 n1 g1 i5 o7 x9 k4 s2 d1 p0 y20 x11 k4 s2 d1 p0 y24 "
                                          "steps 99 480");
        /* The algorithm with its tile can be asked for. */
        options.algorithm = told.algorithm;
        char again[40];
        choose(own, &p, &options, again);
        assert_string_equal(again, name);

        snprintf(notes, sizeof notes, "%s/notes.txt", folder);
        FILE *file = fopen(notes, "w");
        assert_non_null(file);
        fclose(file);
        assert_int_equal(stored_results(own).strange, 1);
        unlink(notes);

        /* All of the problem that speed depends on is in the text. */
        options = with_search(TCONV_SEARCH_MEASURE);
        options.epilogue.bias = true;
        options.epilogue.activation = TCONV_ACTIVATION_RELU;
        options.math = TCONV_MATH_FAST;
        options.workspace_limit = 1 << 20;
        choose(own, &p, &options, name);
        assert_int_equal(stored_results(own).used, 2);
        /* Steps are, too. */
        tconv_problem spaced = p;
        options = with_search(TCONV_SEARCH_MEASURE);
        spaced.output_steps = (tconv_steps){4, {9999, 500, 24, 1}};
        choose(own, &spaced, &options, name);
        assert_int_equal(stored_results(own).used, 3);
        options.epilogue.residual = true;
        choose(own, &spaced, &options, name);
        assert_int_equal(stored_results(own).used, 4);
        spaced.residual_steps = (tconv_steps){4, {0, 1, 0, 0}};
        choose(own, &spaced, &options, name);
        assert_int_equal(stored_results(own).used, 5);
        tconv_device_release(own);
        own = device_with_cache(&devices[d], NULL); /* without a folder */
        assert_int_equal(stored_results(own).used, 0);
        tconv_device_release(own);
    }
    tconv_device *last = device_with_cache(&devices[0], folder);
    for_each_record(damage);
    assert_int_equal(stored_results(last).damaged, for_each_record(NULL));
    tconv_device_release(last);
    tconv_error error;
    assert_int_equal(tconv_device_stored_searches(NULL, count_stored, NULL, &error),
                     TCONV_ERROR_ARGUMENT);
}

/* Expects that a result is refused with these words. */
static void refuse_import(tconv_device *device, tconv_stored_search found, tconv_status status,
                          const char *words)
{
    const tconv_problem p = small_problem();
    tconv_error error;
    bool used = true;
    assert_int_equal(tconv_device_import_search(device, &p, NULL, &found, &used, &error), status);
    if (strstr(error.message, words) == NULL) fail_msg("%s", error.message);
    assert_true(used);
}

static void what_no_search_writes_is_not_imported(tconv_device *device, tconv_stored_search found)
{
    const tconv_problem p = small_problem();
    tconv_error error;
    const char *const names[] = {"nobody", "auto", "reference vw=4", "depthwise_vector"},
                      *const words[] = {"nobody", "auto", "vw", "does not take this problem"};
    for (int i = 0; i < 4; i++) {
        tconv_stored_search other = found;
        other.algorithm = names[i];
        refuse_import(device, other, TCONV_ERROR_ALGORITHM, words[i]);
    }
    const double times[][3] = {{1, 2, 2}, {0, 0, 1}, {2, 1, -1}, {1.0 / 0.0, 1, 1}};
    for (int i = 0; i < 4; i++) {
        tconv_stored_search other = found;
        other.model_ms = times[i][0];
        other.best_ms = times[i][1];
        other.median_ms = times[i][2];
        refuse_import(device, other, TCONV_ERROR_ARGUMENT, "which no search measures");
    }
    const char *const origins[] = {NULL, "", "two\nlines"};
    for (int i = 0; i < 3; i++) {
        tconv_stored_search other = found;
        other.origin = origins[i];
        refuse_import(device, other, TCONV_ERROR_ARGUMENT, "must be one line");
    }
    assert_int_equal(tconv_device_import_search(device, &p, NULL, NULL, NULL, &error),
                     TCONV_ERROR_ARGUMENT);
    assert_int_equal(stored_results(device).imported, 0);
}

/* A result of another driver version of the same device is imported: plans take it, and say so,
 * until this driver has a result of its own. */
static void results_travel(void **state)
{
    (void)state;
    const tconv_problem p = small_problem();
    char name[40], text[4000];
    for (int d = 0; d < device_count; d++) {
        const bool fake = strncmp(devices[d].info->platform, "Fake OpenCL", 11) == 0;
        tconv_plan_options options = with_search(TCONV_SEARCH_MEASURE);
        tconv_error error;
        bool used;
        assert_true(clear_folder(folder));
        tconv_device *first = device_with_cache(&devices[d], folder);
        choose(first, &p, &options, name);
        struct told told = stored_results(first);
        tconv_device_release(first);
        tconv_problem_text(&p, text, sizeof text);
        assert_string_equal(told.layer, text);
        assert_true(told.median_ms > 0.99 * told.best_ms);

        if (fake) /* a newer driver: what the old one stored is foreign now */
            set_variable("FAKE_OPENCL_DRIVER", "7.7");
        else
            assert_true(clear_folder(folder));
        tconv_device *second = device_with_cache(&devices[d], folder);
        assert_int_equal(stored_results(second).foreign, fake);
        options.search = TCONV_SEARCH_RECORDS;
        assert_int_equal(choose(second, &p, &options, name).source, TCONV_SEARCH_MODEL);
        const tconv_stored_search found = {.candidates = 3,
                                           .model_ms = 2,
                                           .best_ms = 1,
                                           .median_ms = 1.5,
                                           .algorithm = "reference",
                                           .origin = "a file, driver 1.0"};
        what_no_search_writes_is_not_imported(second, found);
        assert_int_equal(tconv_device_import_search(second, &p, NULL, &found, &used, &error),
                         TCONV_OK);
        assert_true(used);
        tconv_device_release(second);

        tconv_device *third = device_with_cache(&devices[d], folder);
        tconv_choice choice = choose(third, &p, &options, name);
        assert_int_equal(choice.source, TCONV_SEARCH_IMPORTED);
        assert_string_equal(name, "reference");
        assert_true(choice.candidates == 3 && choice.model_ms == 2 && choice.best_ms == 1);
        tconv_plan *plan;
        assert_int_equal(tconv_plan_create(third, &p, &options, &plan, &error), TCONV_OK);
        tconv_plan_explain(plan, text, sizeof text);
        assert_non_null(strstr(text, "taken; imported from a file, driver 1.0"));
        tconv_plan_release(plan);
        told = stored_results(third);
        assert_int_equal(told.imported, 1);
        assert_int_equal(told.used, 0);
        assert_string_equal(told.origin, "a file, driver 1.0");
        assert_true(told.median_ms == 1.5);

        options.search = TCONV_SEARCH_RENEW; /* a result of this driver's own */
        assert_int_equal(choose(third, &p, &options, name).source, TCONV_SEARCH_MEASURE);
        options.search = TCONV_SEARCH_RECORDS;
        assert_int_equal(choose(third, &p, &options, name).source, TCONV_SEARCH_RECORDS);
        assert_int_equal(tconv_device_import_search(third, &p, NULL, &found, &used, &error),
                         TCONV_OK);
        assert_false(used);
        assert_int_equal(choose(third, &p, &options, name).source, TCONV_SEARCH_RECORDS);
        told = stored_results(third);
        assert_true(told.imported == 1 && told.used == 1);
        tconv_device_release(third);
        set_variable("FAKE_OPENCL_DRIVER", NULL);
    }
}

static bool stop_at_second(void *context, const char *algorithm, int index, int count,
                           double best_ms)
{
    assert_true(index >= 0 && index <= count && best_ms >= 0);
    assert_non_null(algorithm);
    ++*(int *)context;
    return index < 1;
}

/* What the cost model uses for a field on a device. */
static double field_of(tconv_device *device, const char *name)
{
    char text[20000] = "\n", start[60];
    assert_true(tconv_device_machine(device, text + 1, sizeof text - 1) < (int)sizeof text - 1);
    snprintf(start, sizeof start, "\n%s ", name);
    const char *at = strstr(text, start);
    assert_non_null(at);
    return strtod(at + strlen(start), NULL);
}

static void the_machine_is_stored(void **state)
{
    (void)state;
    const tconv_problem p = small_problem();
    for (int d = 0; d < device_count; d++) {
        tconv_error error;
        char usual[40], name[40], fields[200];
        const tconv_plan_options options = with_search(TCONV_SEARCH_MODEL);
        assert_true(clear_folder(folder));
        tconv_device *first = device_with_cache(&devices[d], folder);
        const double tap = field_of(first, "reference_tap");
        choose(first, &p, &options, usual);
        assert_string_not_equal(usual, "reference");

        /* What makes the reference free has it taken, also after a restart. */
        snprintf(fields, sizeof fields,
                 "reference_tap=0, reference_output=0\nreference_wait=0 gpu_begin=0 gpu_wait=0");
        assert_int_equal(tconv_device_set_machine(first, fields, &error), TCONV_OK);
        choose(first, &p, &options, name);
        assert_string_equal(name, "reference");
        tconv_device_release(first);
        tconv_device *second = device_with_cache(&devices[d], folder);
        assert_true(field_of(second, "reference_tap") == 0);
        choose(second, &p, &options, name);
        assert_string_equal(name, "reference");

        /* What is wrong changes nothing. */
        const struct {
            const char *fields, *why;
        } wrong[] = {{"reference_tap=1 no_field=2", "no_field"},
                     {"lanes=4", "lanes"},
                     {"reference_tap=", "reference_tap="},
                     {"wake=-1", "wake=-1"},
                     {"clock=nan", "clock=nan"},
                     {"l2=0", "l2=0"},
                     {"warp=0", "warp=0"},
                     {"unit_l2=0", "unit_l2=0"},
                     {"sums=1e12", "sums=1e12"},
                     {"wake=1e99", "wake=1e99"},
                     {"wake", "wake"}};
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            assert_int_equal(tconv_device_set_machine(second, wrong[i].fields, &error),
                             TCONV_ERROR_ARGUMENT);
            assert_non_null(strstr(error.message, wrong[i].why));
            assert_true(field_of(second, "reference_tap") == 0);
        }
        assert_int_equal(tconv_device_set_machine(second, NULL, &error), TCONV_ERROR_ARGUMENT);
        assert_int_equal(tconv_device_set_machine(NULL, "", &error), TCONV_ERROR_ARGUMENT);
        assert_int_equal(tconv_device_machine(NULL, fields, sizeof fields), 0);

        assert_int_equal(tconv_device_set_machine(second, "", &error), TCONV_OK);
        assert_true(field_of(second, "reference_tap") == tap);
        tconv_device_release(second);

        /* Without a folder it is known to one object. */
        tconv_device *alone = device_with_cache(&devices[d], NULL);
        assert_int_equal(tconv_device_set_machine(alone, "reference_tap=7", &error), TCONV_OK);
        assert_true(field_of(alone, "reference_tap") == 7);
        tconv_device_release(alone);
    }
}

/* A device object that takes another folder has the fields that are stored there. */
static void each_folder_has_a_machine(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        tconv_error error;
        assert_true(clear_folder(folder));
        tconv_device *device = device_with_cache(&devices[d], folder);
        expect_ok(tconv_device_set_machine(device, "reference_tap=0", &error), &error);
        assert_true(tconv_device_machine_fields(device, NULL, 0) > 0);
        expect_ok(tconv_device_set_cache(device, NULL, 0, &error), &error);
        assert_int_equal(tconv_device_machine_fields(device, NULL, 0), 0);
        expect_ok(tconv_device_set_cache(device, folder, 0, &error), &error);
        assert_true(tconv_device_machine_fields(device, NULL, 0) > 0);
        tconv_device_release(device);
    }
    assert_true(clear_folder(folder));
}

#if !defined(_WIN32) /* where others may write to a folder that is not looked at */
static void keep_message(void *context, const tconv_trace_event *event)
{
    if (event->message != NULL) snprintf(context, 500, "%s", event->message);
}

/* In a folder that others may write to nothing is stored. Plans are as good, and say so. */
static void what_cannot_be_stored_is_told(void **state)
{
    (void)state;
    const tconv_problem p = small_problem();
    for (int d = 0; d < device_count; d++) {
        tconv_error error;
        tconv_plan *plan;
        char text[500] = "", traced[500] = "", words[400];
        tconv_plan_options options = with_search(TCONV_SEARCH_MEASURE);
        snprintf(words, sizeof words, "cannot be stored in %s: others may write", folder);
        assert_true(clear_folder(folder));
        tconv_device *device = device_with_cache(&devices[d], folder);
        assert_int_equal(tconv_device_machine_fields(device, text, sizeof text), 0);
        assert_int_equal(tconv_device_set_machine(device, "reference_tap=7", &error), TCONV_OK);
        assert_int_equal(tconv_device_machine_fields(device, NULL, 0), 15);
        assert_int_equal(chmod(folder, 0777), 0);
        assert_int_equal(tconv_device_set_machine(device, "reference_tap=8", &error),
                         TCONV_ERROR_FILE);
        assert_non_null(strstr(error.message, words));
        assert_int_equal(tconv_device_set_machine(device, "", &error), TCONV_ERROR_FILE);
        assert_non_null(strstr(error.message, "cannot be removed from"));
        assert_int_equal(tconv_device_machine_fields(device, text, sizeof text), 15);
        assert_string_equal(text, "reference_tap=7"); /* what was there stays */
        assert_int_equal(
            tconv_device_set_trace(device, TCONV_TRACE_PLAN, keep_message, traced, &error),
            TCONV_OK);
        assert_int_equal(tconv_plan_create(device, &p, &options, &plan, &error), TCONV_OK);
        tconv_plan_not_stored(plan, text, sizeof text);
        assert_non_null(strstr(text, words));
        assert_string_equal(traced, text);
        assert_int_equal(tconv_plan_not_stored(plan, NULL, 0), strlen(text));
        tconv_plan_release(plan);
        assert_int_equal(chmod(folder, 0700), 0);
        assert_int_equal(for_each_record(NULL), 0);

        options.search = TCONV_SEARCH_RENEW; /* again, where it can be stored */
        assert_int_equal(tconv_plan_create(device, &p, &options, &plan, &error), TCONV_OK);
        assert_int_equal(tconv_plan_not_stored(plan, text, sizeof text), 0);
        assert_string_equal(text, "");
        tconv_plan_release(plan);
        assert_int_equal(tconv_plan_not_stored(NULL, text, sizeof text), 0);
        assert_int_equal(for_each_record(NULL), 1);
        assert_int_equal(tconv_device_set_machine(device, "", &error), TCONV_OK);
        assert_int_equal(tconv_device_machine_fields(device, NULL, 0), 0);
        tconv_device_release(device);
        device = device_with_cache(&devices[d], folder); /* another process has none, either */
        assert_int_equal(tconv_device_machine_fields(device, NULL, 0), 0);
        assert_int_equal(tconv_device_machine_fields(NULL, text, sizeof text), 0);
        tconv_device_release(device);
    }
}
#endif

static bool stop_at_end(void *context, const char *algorithm, int index, int count, double best_ms)
{
    (void)context;
    (void)algorithm;
    (void)best_ms;
    return index < count;
}

/* What was timed until then is taken, and not stored. */
static void a_stopped_search_is_not_stored(void **state)
{
    (void)state;
    const tconv_problem p = small_problem();
    for (int d = 0; d < device_count; d++) {
        char name[40];
        assert_true(clear_folder(folder));
        tconv_plan_options options = with_search(TCONV_SEARCH_RENEW);
        tconv_device *device = device_with_cache(&devices[d], folder);
        options.search_progress = stop_at_end;
        const tconv_choice choice = choose(device, &p, &options, name);
        assert_int_equal(choice.source, TCONV_SEARCH_MEASURE);
        assert_true(choice.candidates > 0);
        assert_int_equal(for_each_record(NULL), 0);
        options = with_search(TCONV_SEARCH_RECORDS);
        assert_int_equal(choose(device, &p, &options, name).source, TCONV_SEARCH_MODEL);
        tconv_device_release(device);
    }
}

/* The one algorithm whose launches take no longer than they do. */
static void delay_others(void *context, const tconv_trace_event *event)
{
    const char *fast = context;
    if (strcmp(event->algorithm, fast) != 0) nanosleep(&(struct timespec){0, 3000000}, NULL);
}

/* The algorithms of a plan's candidates that were timed: the one that the model expects to take
 * longest, if it is another one than the best. */
static bool find_last_timed(tconv_device *device, const tconv_problem *p, char *last)
{
    char text[4000], first[40];
    tconv_error error;
    tconv_plan *plan;
    const tconv_plan_options options = with_search(TCONV_SEARCH_RENEW);
    expect_ok(tconv_plan_create(device, p, &options, &plan, &error), &error);
    assert_true(tconv_plan_timed(plan, text, sizeof text) < (int)sizeof text);
    tconv_plan_release(plan);
    assert_int_equal(sscanf(text, "%39s", first), 1);
    for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (*line != '\0') assert_int_equal(sscanf(line, "%39s", last), 1);
    }
    return strcmp(first, last) != 0;
}

/* Keeps the least time that a search tells in the end. */
static bool keep_best(void *context, const char *algorithm, int index, int count, double best_ms)
{
    (void)algorithm;
    if (index == count) *(double *)context = best_ms;
    return true;
}

/* Whatever the model expects. Where other programs hold the processors, more time may be needed. */
static void the_fastest_is_taken(void **state)
{
    (void)state;
    enum { LEAST_MS = 60, MOST_MS = 8000 };
    const tconv_problem p = small_problem();
    int compared = 0;
    for (int d = 0; d < device_count; d++) {
        char fast[40], name[40] = "";
        tconv_error error;
        tconv_choice choice = TCONV_CHOICE_INIT;
        tconv_device *device = device_with_cache(&devices[d], NULL);
        double told_ms = 0;
        const bool has_several = find_last_timed(device, &p, fast);
        tconv_plan_options options = with_search(TCONV_SEARCH_RENEW);
        expect_ok(tconv_device_set_trace(device, TCONV_TRACE_LAUNCH, delay_others, fast, &error),
                  &error);
        for (uint32_t ms = LEAST_MS; has_several && ms < MOST_MS && strcmp(name, fast) != 0;
             ms *= 2) {
            options.search_ms = ms;
            options.search_progress = keep_best;
            options.search_context = &told_ms;
            choice = choose(device, &p, &options, name);
        }
        if (has_several) {
            assert_string_equal(name, fast);
            assert_true(choice.best_ms < choice.model_ms);
            assert_true(told_ms > 0 && told_ms <= choice.best_ms);
            compared++;
        }
        tconv_device_release(device);
    }
    assert_true(compared > 0);
}

static void a_search_can_be_stopped(void **state)
{
    (void)state;
    const tconv_problem p = small_problem();
    for (int d = 0; d < device_count; d++) {
        char name[40], by_model[40];
        int calls = 0;
        assert_true(clear_folder(folder));
        tconv_plan_options options = with_search(TCONV_SEARCH_MODEL);
        tconv_device *device = device_with_cache(&devices[d], folder);
        choose(device, &p, &options, by_model);
        options = with_search(TCONV_SEARCH_RENEW);
        options.search_progress = stop_at_second;
        options.search_context = &calls;
        choose(device, &p, &options, name);
        assert_string_equal(name, by_model); /* nothing was timed yet */
        assert_true(calls >= 1 && calls <= 2);
        assert_int_equal(for_each_record(NULL), 0);
        tconv_device_release(device);
    }
}

/* The output is right by whatever a search chose; a limit of the workspace holds for all that is
 * timed. */
static void results_are_right(void **state)
{
    (void)state;
    unsigned seed = 7;
    for (int d = 0; d < device_count; d++)
        for (int i = 0; i < 4; i++) {
            char name[40];
            struct tensors t;
            tconv_error error;
            struct device own = devices[d];
            const tconv_problem p = i == 3 ? random_upsampling(&seed, 2, 6)
                                           : random_problem(&seed, 1 + i % 3, 6);
            make_tensors(&p, SMALL_INTEGERS, 5, &t);
            tconv_plan_options options = with_search(TCONV_SEARCH_RENEW);
            options.workspace_limit = 1;
            own.device = device_with_cache(&devices[d], NULL);
            choose(own.device, &p, &options, name);
            if (run_guarded(&own, &p, name, false, &t, &error) != TCONV_OK)
                failed("%s", error.message);
            compare_with_oracle(&own, &p, name, false, &t);
            free_tensors(&t);
            tconv_device_release(own.device);
        }
}

static void misuse_is_refused(void **state)
{
    (void)state;
    const tconv_problem p = small_problem();
    tconv_error error;
    tconv_plan *plan = NULL;
    tconv_choice choice = TCONV_CHOICE_INIT;
    tconv_plan_options options = with_search((tconv_search)9);
    assert_int_equal(tconv_plan_create(devices[0].device, &p, &options, &plan, &error),
                     TCONV_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "search is 9"));
    assert_int_equal(tconv_plan_choice(NULL, &choice, &error), TCONV_ERROR_ARGUMENT);
    assert_null(tconv_device_search_folder(NULL));
}

static void *search_in_thread(void *device)
{
    char name[40];
    const tconv_problem p = small_problem();
    const tconv_plan_options options = with_search(TCONV_SEARCH_RENEW);
    choose(device, &p, &options, name);
    return NULL;
}

static void threads_may_search_at_once(void **state)
{
    (void)state;
    if (threads_left_out()) return;
    assert_true(clear_folder(folder));
    for (int d = 0; d < device_count; d++) {
        pthread_t threads[3];
        tconv_device *device = device_with_cache(&devices[d], folder);
        for (int i = 0; i < 3; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, search_in_thread, device), 0);
        for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
        tconv_device_release(device);
        char name[40];
        const tconv_problem p = small_problem();
        const tconv_plan_options options = with_search(TCONV_SEARCH_RECORDS);
        device = device_with_cache(&devices[d], folder);
        assert_int_equal(choose(device, &p, &options, name).source, TCONV_SEARCH_RECORDS);
        tconv_device_release(device);
    }
}

static int set_up_all(void **state)
{
    return !make_temporary_folder("tconv-search", folder, sizeof folder) ||
           open_all_devices(state) != 0;
}

static int tear_down_all(void **state)
{
    assert_true(clear_folder(folder));
    return rmdir(folder) != 0 || close_all_devices(state) != 0;
}

int main(void)
{
    struct CMUnitTest tests[] = {
        smoke_test(results_are_stored_and_found_again),
        cmocka_unit_test(damaged_and_foreign_results_count_as_none),
        cmocka_unit_test(results_can_be_listed),
        cmocka_unit_test(results_travel),
        cmocka_unit_test(the_machine_is_stored),
        cmocka_unit_test(each_folder_has_a_machine),
#if !defined(_WIN32)
        cmocka_unit_test(what_cannot_be_stored_is_told),
#endif
        cmocka_unit_test(a_search_can_be_stopped),
        cmocka_unit_test(a_stopped_search_is_not_stored),
        cmocka_unit_test(the_fastest_is_taken),
        cmocka_unit_test(results_are_right),
        cmocka_unit_test(misuse_is_refused),
        cmocka_unit_test(threads_may_search_at_once),
    };
    return run_smoke_or_all("search", tests, set_up_all, tear_down_all);
}
