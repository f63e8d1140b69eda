/* SPDX-License-Identifier: Apache-2.0 */
/* tconv-cl prepare: compiles what plans of layers need, for their extents or for a range of them,
 * and stores it for later processes. */
#include "base/os.h"
#include "base/view.h"
#include "tool/bench/layers.h"
#include "tool/bench/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct poptOption table[] = {
    LAYER_PARTS,
    PART(prepare_table, NULL),
    PART(attribute_table, "and attributes:"),
    PART(epilogue_table, "Types and epilogue:"),
    PART(check_table, NULL),
    PART(algorithm_table, "How:"),
    END_WITH_DEVICE,
};

/* The result of a layer. */
struct prepared {
    int programs;
    double seconds;
    tconv_error error;
};

static void prepare_layer(tconv_device *device, const struct place *place, const tconv_shape *most,
                          struct prepared *p)
{
    const struct entry *entry = place->entry;
    *p = (struct prepared){.error = {TCONV_OK, 0, ""}};
    tconv_plan_options plan_options = trial_options(place);
    plan_options.algorithm = options.algorithm;
    if (entry->error != NULL) {
        p->error.status = entry_status(entry);
        snprintf(p->error.message, sizeof p->error.message, "%s", entry->error);
        return;
    }
    const double begin = tconv_os_seconds();
    tconv_device_prepare(device, &entry->problem, most, &plan_options, &p->programs, &p->error);
    p->seconds = tconv_os_seconds() - begin;
    if (p->error.status != TCONV_OK || !interrupted()) return;
    p->error.status = TCONV_ERROR_CANCELLED;
    snprintf(p->error.message, sizeof p->error.message, "interrupted");
}

static void print_layer(const struct entry *entry, const struct prepared *p)
{
    progress(0, 0, "");
    print_names(entry->id, entry->layer, 28);
    if (p->error.status != TCONV_OK)
        print_wrapped(p->error.message, next_part(34));
    else
        printf(" %8d %8.2f\n", p->programs, p->seconds);
    fflush(stdout);
}

static json_t *layer_json(const struct entry *entry, const struct prepared *p)
{
    const bool done = p->error.status == TCONV_OK;
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o}", "id", text_json(entry->id), "layer", text_json(entry->layer),
        "programs", done ? json_integer(p->programs) : json_null(), "seconds",
        known_json(done, p->seconds), "error", text_json(done ? NULL : p->error.message));
}

/* Checks --up-to against the layer's own shape, which --data-shape, a suite or a model gives. */
static enum exit_code check_most(const tconv_problem *problem, const tconv_shape *most)
{
    const tconv_shape *least = &problem->data;
    if (most->rank != least->rank)
        return wrong_request("--up-to %s has %d axes, and the layer's data %d: give the data's "
                             "shape with the largest extents",
                             options.up_to, most->rank, least->rank);
    for (int a = 0; a < most->rank; a++) {
        const bool channels = a == tconv_channels_axis(problem);
        const char *wrong = channels && most->dim[a] != least->dim[a]
                                ? "channels are no range: give the same number"
                            : most->dim[a] < least->dim[a] ? "the range is empty"
                                                           : NULL;
        if (wrong != NULL)
            return wrong_request("--up-to %s has %lld at axis %d, and the layer's data %lld: %s",
                                 options.up_to, (long long)most->dim[a], a,
                                 (long long)least->dim[a], wrong);
    }
    return EXIT_DONE;
}

/* Reads --up-to, for the only layer. `most` has rank 0 without it. */
static enum exit_code read_most(const struct suite *suite, tconv_shape *most)
{
    most->rank = 0;
    if (options.up_to == NULL) return EXIT_DONE;
    if (suite->count != 1)
        return wrong_request("--up-to is for one layer, and these are %zu: choose one by --ids, "
                             "--layer or by its shapes",
                             suite->count);
    if (!read_numbers("--up-to", options.up_to, most->dim, TCONV_MAX_RANK, &most->rank))
        return EXIT_REQUEST_WRONG;
    const struct entry *entry = &suite->entries[0];
    return entry->error == NULL ? check_most(&entry->problem, most) : EXIT_DONE;
}

static void tell_folder(tconv_device *device)
{
    const char *lists = results_folder(device), *programs = tconv_device_cache(device);
    if (lists == NULL) return;
    if (programs == NULL)
        notice("lists are stored in %s; the programs are in PoCL's cache. To copy both, set "
               "TCONV_CL_CACHE_DIR",
               lists);
    else
        notice("stored in %s", lists);
}

static enum exit_code prepare(const struct work *work)
{
    const struct suite *suite = &work->suite;
    tconv_device *device = work->opened.device;
    struct failures failures = {0};
    tconv_shape most;
    enum exit_code code = read_most(suite, &most);
    if (code != EXIT_DONE) return code;
    watch_interrupts();
    if (table_wanted()) {
        print_device(work->number, device);
        printf("%-4s %-28s %8s %8s\n", "id", "layer", "programs", "seconds");
    }
    json_t *layers = json_array();
    int done = 0;
    for (size_t i = 0; i < suite->count && !interrupted(); i++) {
        const struct place place = {&suite->entries[i], (int)i, (int)suite->count};
        struct prepared p;
        prepare_layer(device, &place, most.rank == 0 ? NULL : &most, &p);
        if (p.error.status == TCONV_OK)
            done++;
        else if (p.error.status != TCONV_ERROR_CANCELLED)
            failures_add(&failures, place.entry, NULL, p.error.status, p.error.message);
        if (table_wanted() && p.error.status != TCONV_ERROR_CANCELLED) print_layer(place.entry, &p);
        json_array_append_new(layers, layer_json(place.entry, &p));
    }
    progress(0, 0, "");
    const char *folder = tconv_device_search_folder(device);
    json_t *report = json_pack("{s:o, s:o, s:o, s:b}", "device",
                               device_object_json(work->number, device), "folder",
                               text_json(folder), "layers", layers, "interrupted", interrupted());
    code = write_json(with_origin(report));
    if (done > 0) tell_folder(device);
    if (code != EXIT_DONE) return code;
    char so_far[80], what[40];
    snprintf(so_far, sizeof so_far, "%d of %zu layers are prepared", done, suite->count);
    snprintf(what, sizeof what, "of %zu layers failed", suite->count);
    return failures_verdict(&failures, so_far, what);
}

enum exit_code command_prepare(int argc, const char **argv)
{
    bool leave;
    enum exit_code code = read_options(table,
                                       "[--suite FILE.csv] [--ids B01,...] | --model FILE.xml | "
                                       "--data-shape ... --filter-shape ... [--up-to ...]",
                                       argc, argv, &leave);
    if (leave) return code;
    struct work work = {.number = 0};
    if ((code = work_open(&work, built_in_suite)) == EXIT_DONE) code = prepare(&work);
    work_close(&work);
    return code;
}
