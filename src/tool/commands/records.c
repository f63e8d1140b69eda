/* SPDX-License-Identifier: Apache-2.0 */
/* tconv-cl tune --records: lists the records that earlier runs stored, and useless files. */
#include "tool/io/array.h"
#include "tool/tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One file of the folder; its texts are from malloc. */
struct stored {
    tconv_record_state state;
    char *file, *device, *problem, *algorithm;
    int candidates;
    double model_ms, best_ms;
};

struct records {
    struct stored *list;
    size_t count;
    bool memory;
};

static void keep(void *context, const tconv_stored_search *found)
{
    struct records *r = context;
    if (!r->memory) return;
    struct stored *more = array_grow(r->list, r->count, sizeof *more);
    r->memory = more != NULL;
    if (!r->memory) return;
    r->list = more;
    struct stored *s = &r->list[r->count++];
    *s = (struct stored){found->state,
                         strdup(found->file),
                         strdup(found->device),
                         strdup(found->problem),
                         strdup(found->algorithm),
                         (int)found->candidates,
                         found->model_ms,
                         found->best_ms};
    r->memory = s->file != NULL && s->device != NULL && s->problem != NULL && s->algorithm != NULL;
}

static void free_records(struct records *r)
{
    for (size_t i = 0; i < r->count; i++) {
        free(r->list[i].file);
        free(r->list[i].device);
        free(r->list[i].problem);
        free(r->list[i].algorithm);
    }
    free(r->list);
}

/* Orders records by problem, then by file. */
static int in_order(const void *a, const void *b)
{
    const struct stored *s = a, *t = b;
    const int problem = strcmp(s->problem, t->problem);
    return problem != 0 ? problem : strcmp(s->file, t->file);
}

/* Says why a file is useless. */
static const char *reason(const struct stored *s)
{
    if (s->state == TCONV_RECORD_DAMAGED) return "damaged, or not the user's own file";
    return s->problem[0] != '\0' ? "of another device, driver or version of tconv-cl"
                                 : "no file of this version of tconv-cl";
}

static json_t *record_json(const struct stored *s)
{
    const size_t name = strcspn(s->algorithm, " ");
    return json_pack("{s:o, s:o, s:s%, s:s, s:i, s:f, s:f, s:f}", "file", text_json(s->file),
                     "problem", text_json(s->problem), "algorithm", s->algorithm, name, "tile",
                     s->algorithm + name + (s->algorithm[name] == ' '), "candidates", s->candidates,
                     "ms_model", s->model_ms, "ms_best", s->best_ms, "gain",
                     s->model_ms / s->best_ms);
}

static json_t *skipped_json(const struct stored *s)
{
    return json_pack("{s:o, s:s, s:o, s:o}", "file", text_json(s->file), "why", reason(s), "device",
                     s->device[0] == '\0' ? json_null() : text_json(s->device), "problem",
                     s->problem[0] == '\0' ? json_null() : text_json(s->problem));
}

static json_t *report_json(int number, const tconv_device *device, const char *folder,
                           const struct records *r)
{
    json_t *used = json_array(), *skipped = json_array();
    for (size_t i = 0; i < r->count; i++)
        if (r->list[i].state == TCONV_RECORD_USED)
            json_array_append_new(used, record_json(&r->list[i]));
        else
            json_array_append_new(skipped, skipped_json(&r->list[i]));
    return json_pack("{s:o, s:o, s:o, s:o}", "device", device_object_json(number, device), "folder",
                     folder == NULL ? json_null() : text_json(folder), "records", used, "skipped",
                     skipped);
}

static void print_records(const struct records *r, const char *folder)
{
    enum { COLUMN = 17 };
    size_t used = 0;
    printf("%9s %6s %s\n", "ms", "gain", "problem: algorithm and tile");
    for (size_t i = 0; i < r->count; i++) {
        const struct stored *s = &r->list[i];
        char text[2000];
        if (s->state != TCONV_RECORD_USED) continue;
        used++;
        printf("%9.4g %6.2f ", s->best_ms, s->model_ms / s->best_ms);
        snprintf(text, sizeof text, "%s: %s", s->problem, s->algorithm);
        print_wrapped(text, COLUMN);
    }
    if (!options.quiet)
        print_line("%zu %s stored%s%s", used, used == 1 ? "result is" : "results are",
                   folder == NULL ? "" : " in ", folder == NULL ? "" : folder);
}

enum exit_code list_records(void)
{
    int number;
    tconv_error error;
    tconv_device *device = NULL;
    struct records records = {NULL, 0, true};
    enum exit_code code =
        refuse_layers("--records lists what is stored for all of them, and times nothing");
    if (code == EXIT_DONE) code = choose_device(&number);
    if (code != EXIT_DONE) return code;
    if (tconv_device_open(number, &device, &error) != TCONV_OK) return failed_call(&error);
    const char *folder = tconv_device_search_folder(device);
    if (tconv_device_stored_searches(device, keep, &records, &error) != TCONV_OK)
        code = failed_call(&error);
    else if (!records.memory)
        code = failed_work("the list needs memory that is not there");
    if (code == EXIT_DONE) {
        if (records.count > 0) qsort(records.list, records.count, sizeof *records.list, in_order);
        if (folder == NULL)
            notice("there is no folder for results (TCONV_CL_CACHE, TCONV_CL_CACHE_DIR)");
        for (size_t i = 0; i < records.count; i++)
            if (records.list[i].state != TCONV_RECORD_USED)
                notice("%s: skipped: %s", records.list[i].file, reason(&records.list[i]));
        if (table_wanted()) {
            print_device(number, device);
            print_records(&records, folder);
        }
        if (options.json != NULL)
            code = write_json(with_origin(report_json(number, device, folder, &records)));
    }
    free_records(&records);
    tconv_device_release(device);
    return code;
}
