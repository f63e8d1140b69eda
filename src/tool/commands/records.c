/* SPDX-License-Identifier: Apache-2.0 */
/* tconv-cl tune --records: lists the records that earlier runs stored, and useless files. */
#include "tool/commands/records.h"

#include "tool/io/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXTS(s)                                                                                   \
    {                                                                                              \
        &(s)->file, &(s)->device, &(s)->problem, &(s)->algorithm, &(s)->layer, &(s)->origin        \
    }

static void keep(void *context, const tconv_stored_search *found)
{
    struct records *r = context;
    if (!r->memory) return;
    tconv_stored_search *more = array_grow(r->list, r->count, sizeof *more);
    r->memory = more != NULL;
    if (!r->memory) return;
    r->list = more;
    tconv_stored_search *s = &r->list[r->count++];
    *s = *found;
    const char **const texts[] = TEXTS(s);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        *texts[i] = strdup(*texts[i]);
        r->memory = r->memory && *texts[i] != NULL;
    }
}

void records_free(struct records *r)
{
    for (size_t i = 0; i < r->count; i++) {
        const char **const texts[] = TEXTS(&r->list[i]);
        for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) free((char *)*texts[t]);
    }
    free(r->list);
}

static int in_order(const void *a, const void *b)
{
    const tconv_stored_search *s = a, *t = b;
    const int problem = strcmp(s->problem, t->problem);
    if (problem != 0) return problem;
    return s->state != t->state ? (s->state > t->state) - (s->state < t->state)
                                : strcmp(s->file, t->file);
}

enum exit_code records_open(const char *why, int *number, tconv_device **device)
{
    tconv_error error;
    enum exit_code code = refuse_layers(why);
    if (code == EXIT_DONE) code = choose_device(number);
    if (code == EXIT_DONE && tconv_device_open(*number, device, &error) != TCONV_OK)
        code = failed_call(&error);
    return code;
}

enum exit_code records_read(const tconv_device *device, struct records *r)
{
    tconv_error error;
    *r = (struct records){NULL, 0, true};
    if (tconv_device_stored_searches(device, keep, r, &error) != TCONV_OK)
        return failed_call(&error);
    if (!r->memory) return failed_work("the list needs memory that is not there");
    if (r->count > 0) qsort(r->list, r->count, sizeof *r->list, in_order);
    return EXIT_DONE;
}

static bool is_imported(const tconv_stored_search *s)
{
    return s->state == TCONV_RECORD_IMPORTED;
}

/* True of results that plans take: an imported one unless the device has its own, which then stands
 * before it. */
static bool is_taken(const struct records *r, size_t i)
{
    const tconv_stored_search *s = &r->list[i];
    if (!is_imported(s)) return s->state == TCONV_RECORD_USED;
    for (size_t j = i; j-- > 0 && strcmp(r->list[j].problem, s->problem) == 0;)
        if (r->list[j].state == TCONV_RECORD_USED) return false;
    return true;
}

/* Says why a file is useless. */
static const char *reason(const tconv_stored_search *s)
{
    if (s->state == TCONV_RECORD_DAMAGED) return "damaged, or not the user's own file";
    return s->problem[0] != '\0' ? "of another device, driver or version of tconv-cl"
                                 : "no file of this version of tconv-cl";
}

static json_t *record_json(const tconv_stored_search *s)
{
    const size_t name = strcspn(s->algorithm, " ");
    return json_pack(
        "{s:o, s:o, s:o, s:s%, s:s, s:i, s:f, s:f, s:o, s:f, s:o}", "file", text_json(s->file),
        "problem", text_json(s->problem), "layer", text_json(s->layer[0] == '\0' ? NULL : s->layer),
        "algorithm", s->algorithm, name, "tile", s->algorithm + name + (s->algorithm[name] == ' '),
        "candidates", (int)s->candidates, "ms_model", s->model_ms, "ms_best", s->best_ms,
        "ms_median", known_json(s->median_ms > 0, s->median_ms), "gain", s->model_ms / s->best_ms,
        "origin", text_json(is_imported(s) ? s->origin : NULL));
}

static json_t *skipped_json(const tconv_stored_search *s)
{
    return json_pack("{s:o, s:s, s:o, s:o}", "file", text_json(s->file), "why", reason(s), "device",
                     text_json(s->device[0] == '\0' ? NULL : s->device), "problem",
                     text_json(s->problem[0] == '\0' ? NULL : s->problem));
}

static json_t *report_json(int number, const tconv_device *device, const char *folder,
                           const struct records *r)
{
    json_t *used = json_array(), *imported = json_array(), *skipped = json_array();
    for (size_t i = 0; i < r->count; i++)
        if (is_imported(&r->list[i]))
            json_array_append_new(imported, record_json(&r->list[i]));
        else if (r->list[i].state == TCONV_RECORD_USED)
            json_array_append_new(used, record_json(&r->list[i]));
        else
            json_array_append_new(skipped, skipped_json(&r->list[i]));
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "device", device_object_json(number, device),
                     "folder", text_json(folder), "records", used, "imported", imported, "skipped",
                     skipped);
}

static void print_records(const struct records *r, const char *folder)
{
    enum { COLUMN = 17 };
    size_t used = 0, imported = 0;
    printf("%9s %6s %s\n", "ms", "gain", "problem: algorithm and tile");
    for (size_t i = 0; i < r->count; i++) {
        const tconv_stored_search *s = &r->list[i];
        char text[2000];
        if (s->state != TCONV_RECORD_USED && !is_imported(s)) continue;
        used += !is_imported(s);
        imported += is_imported(s);
        printf("%9.4g %6.2f ", s->best_ms, s->model_ms / s->best_ms);
        snprintf(text, sizeof text, "%s: %s%s%s%s", s->problem, s->algorithm,
                 is_imported(s) ? "; imported from " : "", s->origin,
                 is_taken(r, i) ? "" : "; not taken: this device has a result of its own");
        print_wrapped(text, COLUMN);
    }
    if (!options.quiet)
        print_line("%zu %s stored%s%s", used, used == 1 ? "result is" : "results are",
                   folder == NULL ? "" : " in ", folder == NULL ? "" : folder);
    if (!options.quiet && imported > 0)
        print_line("%zu %s imported", imported, imported == 1 ? "result is" : "results are");
}

enum exit_code list_records(void)
{
    int number;
    tconv_device *device = NULL;
    struct records records;
    enum exit_code code = records_open(
        "--records lists what is stored for all of them, and times nothing", &number, &device);
    if (code != EXIT_DONE) return code;
    const char *folder = results_folder(device);
    code = records_read(device, &records);
    if (code == EXIT_DONE) {
        for (size_t i = 0; i < records.count; i++)
            if (records.list[i].state != TCONV_RECORD_USED && !is_imported(&records.list[i]))
                notice("%s: skipped: %s", records.list[i].file, reason(&records.list[i]));
        if (table_wanted()) {
            print_device(number, device);
            print_records(&records, folder);
        }
        code = write_json(with_origin(report_json(number, device, folder, &records)));
    }
    records_free(&records);
    tconv_device_release(device);
    return code;
}
