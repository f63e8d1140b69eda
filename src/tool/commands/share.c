/* SPDX-License-Identifier: Apache-2.0 */
/* tconv-cl tune --share and --import: carries results of searches to other machines, as a file. */
#include "tool/bench/tuned.h"
#include "tool/commands/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- --share ---- */

static json_t *result_json(const tconv_stored_search *s)
{
    const size_t name = strcspn(s->algorithm, " ");
    return json_pack("{s:s, s:s%, s:s, s:i, s:f, s:f, s:f}", "layer", s->layer, "algorithm",
                     s->algorithm, name, "tile", s->algorithm + name + (s->algorithm[name] == ' '),
                     "candidates", (int)s->candidates, "ms_model", s->model_ms, "ms_best",
                     s->best_ms, "ms_median", s->median_ms);
}

/* The file without its results. */
static json_t *share_json(int number, const tconv_device *device, json_t *results)
{
    char date[32];
    struct tm utc;
    const time_t seconds = time(NULL);
    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&seconds, &utc));
    json_t *all = device_object_json(number, device), *said = json_object();
    for (int i = 0; tuned_device[i] != NULL; i++)
        json_object_set(said, tuned_device[i], json_object_get(all, tuned_device[i]));
    json_decref(all);
    return json_pack("{s:i, s:s, s:s, s:o, s:O}", "schema", JSON_SCHEMA, "tool_version",
                     TCONV_VERSION_STRING, "date", date, "device", said, "results", results);
}

enum exit_code share_results(void)
{
    int number;
    size_t unsaid = 0;
    struct records records = {NULL, 0, true};
    tconv_device *device = NULL;
    enum exit_code code = records_open(
        "--share is about what is stored for a device, and times nothing", &number, &device);
    if (code == EXIT_DONE) code = records_read(device, &records);
    json_t *results = json_array();
    for (size_t i = 0; i < records.count && code == EXIT_DONE; i++) {
        const tconv_stored_search *s = &records.list[i];
        if (s->state != TCONV_RECORD_USED) continue;
        if (s->layer[0] == '\0')
            unsaid++;
        else
            json_array_append_new(results, result_json(s));
    }
    const size_t count = json_array_size(results);
    if (unsaid > 0)
        notice("%zu result%s left out: of a window, of a limited workspace, or stored by an "
               "earlier version, so that options of tconv-cl cannot say the layer",
               unsaid, unsaid == 1 ? " is" : "s are");
    if (code == EXIT_DONE && count == 0)
        code = failed_work("there is nothing to share: no result is stored for this device, driver "
                           "and version; run tconv-cl tune first");
    json_t *file = code == EXIT_DONE ? share_json(number, device, results) : NULL;
    if (code == EXIT_DONE && file == NULL) code = failed_work("the JSON cannot be made: no memory");
    if (code == EXIT_DONE)
        code = write_json_file("--share", options.share, file,
                               JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    if (code == EXIT_DONE)
        notice("%zu result%s written to %s", count, count == 1 ? " is" : "s are", options.share);
    json_decref(file);
    json_decref(results);
    records_free(&records);
    tconv_device_release(device);
    return code;
}

/* ---- --import ---- */

/* What became of the results. */
struct tally {
    size_t taken, own, skipped;
};

/* The results of a file hold for devices of its kind, platform, architecture and vectors. */
static enum exit_code check_device(const struct tuned_file *file, const json_t *own)
{
    for (int i = 0; i < TUNED_SAME; i++) {
        const json_t *theirs = json_object_get(file->device, tuned_device[i]),
                     *ours = json_object_get(own, tuned_device[i]);
        if (json_equal(theirs, ours)) continue;
        char *other = json_dumps(theirs, JSON_ENCODE_ANY),
             *here = json_dumps(ours, JSON_ENCODE_ANY);
        const enum exit_code code = wrong_request(
            "--import %s has results of another kind of device: its device.%s is %s, and that of "
            "this device %s; choose another with --device",
            options.import, tuned_device[i], other == NULL ? "?" : other,
            here == NULL ? "?" : here);
        free(other);
        free(here);
        return code;
    }
    const char *theirs = json_string_value(json_object_get(file->device, "name")),
               *ours = json_string_value(json_object_get(own, "name"));
    if (theirs != NULL && ours != NULL && strcmp(theirs, ours) != 0)
        notice("the results were measured on %s, which may differ from this device, %s", theirs,
               ours);
    return EXIT_DONE;
}

/* True if the request is at fault, or the device for this layer: other results may do. */
static bool is_refusal(tconv_status status)
{
    return tconv_status_is_request(status) || status == TCONV_ERROR_UNSUPPORTED ||
           status == TCONV_ERROR_DEVICE;
}

static json_t *state_json(const struct tuned_result *r, const char *state, const char *why)
{
    return json_pack("{s:s, s:s, s:s, s:o}", "layer", r->found.layer, "algorithm",
                     r->found.algorithm, "state", state, "why", text_json(why));
}

/* Stores the results one after another. */
static enum exit_code import_all(tconv_device *device, const struct tuned_file *file,
                                 struct tally *tally, json_t *states)
{
    for (size_t i = 0; i < file->count; i++) {
        const struct tuned_result *r = &file->results[i];
        tconv_error error;
        bool used;
        const tconv_status status =
            tconv_device_import_search(device, &r->problem, &r->options, &r->found, &used, &error);
        if (status != TCONV_OK && !is_refusal(status)) return failed_call(&error);
        if (status != TCONV_OK)
            notice("result %zu of %s is skipped: %s: %s", i + 1, options.import, r->found.layer,
                   error.message);
        const char *state = status != TCONV_OK ? "skipped" : used ? "imported" : "own";
        json_array_append_new(states,
                              state_json(r, state, status == TCONV_OK ? NULL : error.message));
        tally->skipped += status != TCONV_OK;
        tally->taken += status == TCONV_OK && used;
        tally->own += status == TCONV_OK && !used;
    }
    return EXIT_DONE;
}

static void print_tally(const struct tuned_file *file, const struct tally *tally,
                        const char *folder)
{
    print_line("%zu of %zu results imported from %s into %s", tally->taken + tally->own,
               file->count, file->origin, folder);
    if (tally->own > 0)
        print_line("%zu of them %s not taken: this device has its own", tally->own,
                   tally->own == 1 ? "is" : "are");
    if (tally->skipped > 0) print_line("%zu skipped", tally->skipped);
}

enum exit_code import_results(void)
{
    int number;
    struct tally tally = {0, 0, 0};
    struct tuned_file file;
    tconv_device *device = NULL;
    enum exit_code code = tuned_read(options.import, &file);
    if (code != EXIT_DONE) return code;
    code = records_open("--import is about what is stored for a device, and times nothing", &number,
                        &device);
    json_t *own = device == NULL ? NULL : device_object_json(number, device),
           *states = json_array();
    const char *folder = tconv_device_search_folder(device);
    if (code == EXIT_DONE) code = check_device(&file, own);
    if (code == EXIT_DONE && folder == NULL)
        code = failed_work("nothing can be imported: there is no folder for results "
                           "(TCONV_CL_CACHE, TCONV_CL_CACHE_DIR)");
    if (code == EXIT_DONE) code = import_all(device, &file, &tally, states);
    if (code == EXIT_DONE) {
        if (table_wanted() && !options.quiet) print_tally(&file, &tally, folder);
        code = write_json(
            with_origin(json_pack("{s:O, s:o, s:s, s:O}", "device", own, "folder",
                                  text_json(folder), "origin", file.origin, "results", states)));
    }
    if (code == EXIT_DONE && tally.skipped == file.count)
        code = failed_work("no result of %s can be used on this device", options.import);
    json_decref(own);
    json_decref(states);
    tuned_free(&file);
    tconv_device_release(device);
    return code;
}
