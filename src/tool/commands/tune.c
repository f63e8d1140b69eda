/* SPDX-License-Identifier: Apache-2.0 */
/* tconv-cl tune: times the algorithms for layers and stores the fastest, for later plans on this
 * device. --records is in records.c, --share and --import are in share.c, --machine and --fields in
 * tune_machine.c. */
#include "tool/bench/layers.h"
#include "tool/bench/trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct poptOption table[] = {
    LAYER_PARTS,
    PART(attribute_table, "and attributes:"),
    PART(epilogue_table, "Types and epilogue:"),
    PART(check_table, "with tensors of random numbers:"),
    PART(math_table, "How:"),
    PART(tune_table, NULL),
    END_WITH_DEVICE,
};

enum { MOST_BUDGET = 1000000 };
enum { FIGURES = 51 }; /* the column of a row's figures */

static const double NOISY = 0.1; /* noise that an idle machine does not have */

/* The result of a layer. */
struct tuned {
    char algorithm[40], tile[TILE_TEXT];
    char *timed;      /* from malloc, or NULL: tconv_plan_timed */
    char *not_stored; /* likewise: tconv_plan_not_stored */
    tconv_choice choice;
    tconv_status status;
    char error[1100]; /* not empty: it was not timed */
};

/* Gives up a layer: returns false, with the reason in tuned->error. */
static bool give_up(struct tuned *t, tconv_status status, const char *why)
{
    t->status = status;
    snprintf(t->error, sizeof t->error, "%s", why);
    return false;
}

static bool tune_layer(tconv_device *device, const struct place *place, uint32_t budget,
                       struct tuned *t)
{
    const struct entry *entry = place->entry;
    *t = (struct tuned){.choice = TCONV_CHOICE_INIT};
    if (interrupted()) return give_up(t, TCONV_ERROR_CANCELLED, "interrupted");
    if (entry->error != NULL) return give_up(t, entry_status(entry), entry->error);
    tconv_plan_options plan_options = trial_options(place);
    plan_options.search = TCONV_SEARCH_RENEW;
    plan_options.search_ms = budget;
    tconv_plan *plan = NULL;
    tconv_error error;
    if (tconv_plan_create(device, &entry->problem, &plan_options, &plan, &error) != TCONV_OK)
        return give_up(t, error.status, error.message);
    snprintf(t->algorithm, sizeof t->algorithm, "%s", tconv_plan_algorithm(plan));
    tconv_plan_tile(plan, t->tile, sizeof t->tile);
    t->timed = plan_text(plan, tconv_plan_timed);
    t->not_stored = plan_text(plan, tconv_plan_not_stored);
    tconv_plan_choice(plan, &t->choice, NULL);
    char why[200];
    const tconv_geometry *g = tconv_plan_geometry(plan);
    const bool empty = g->output_bytes == 0,
               fits = tensors_fit(tconv_device_properties(device), g, why, sizeof why);
    tconv_plan_release(plan);
    if (interrupted()) return give_up(t, TCONV_ERROR_CANCELLED, "interrupted");
    if (empty) return give_up(t, TCONV_OK, "not timed: its output has no elements");
    if (t->choice.source == TCONV_SEARCH_MEASURE) return true;
    if (!fits) return give_up(t, TCONV_ERROR_DEVICE_MEMORY, why);
    return give_up(t, TCONV_ERROR_OPENCL,
                   "not timed: the device cannot make its tensors, or runs no candidate");
}

static double gain(const struct tuned *t)
{
    return t->choice.model_ms / t->choice.best_ms;
}

/* Turns lines "ALGORITHM TILE cost C ms M" into objects. The tile is several words or none. */
static json_t *timed_json(const char *lines)
{
    json_t *list = json_array();
    const char *line;
    for (int length; (line = next_line(&lines, &length)) != NULL;) {
        const size_t name = strcspn(line, " \n");
        const char *cost = strstr(line, " cost "), *ms = cost == NULL ? NULL : strstr(cost, " ms ");
        if (ms == NULL) break;
        const char *tile = line + name + (line + name < cost);
        json_array_append_new(list, json_pack("{s:s%, s:s%, s:f, s:f}", "algorithm", line, name,
                                              "tile", tile, (size_t)(cost - tile), "cost",
                                              strtod(cost + strlen(" cost "), NULL), "ms",
                                              strtod(ms + strlen(" ms "), NULL)));
    }
    return list;
}

static json_t *layer_json(const struct entry *entry, const struct tuned *t)
{
    const bool timed = t->error[0] == '\0';
    const double noise = t->choice.noise;
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "id", text_json(entry->id),
        "layer", text_json(entry->layer), "algorithm", text_json(timed ? t->algorithm : NULL),
        "tile", text_json(timed ? t->tile : NULL), "candidates", (int)t->choice.candidates, "timed",
        timed_json(t->timed), "ms_model", known_json(timed, t->choice.model_ms), "ms_best",
        known_json(timed, t->choice.best_ms), "gain", known_json(timed, gain(t)), "noise",
        known_json(timed && noise > 0, noise), "not_stored", text_json(t->not_stored), "error",
        text_json(timed ? NULL : t->error));
}

static void print_layer(const struct entry *entry, const struct tuned *t)
{
    progress(0, 0, "");
    print_names(entry->id, entry->layer, 27);
    if (t->error[0] != '\0') {
        print_wrapped(t->error, next_part(33));
    } else {
        printf(" %-*s", ALGORITHM_WIDTH, t->algorithm);
        next_part(FIGURES);
        printf("%10d %9.4g %9.4g %6.2f ", (int)t->choice.candidates, t->choice.model_ms,
               t->choice.best_ms, gain(t));
        const double noise = t->choice.noise;
        if (noise > 0)
            printf("%5.*f%%\n", noise < 9.99 ? 1 : 0, 100 * noise);
        else
            printf("%6s\n", "-");
    }
    fflush(stdout);
}

/* Tells where results are stored, and that noise may have hidden faster algorithms. */
static void tell_results(size_t layers, int timed, int lost, int noisy, const char *folder)
{
    if (folder != NULL && timed > lost) notice("stored in %s", folder);
    if (noisy > 0)
        notice("the noise of %d of %zu layers is above %.0f %%: the machine was busy; an algorithm "
               "that is faster by less is not seen, so run tune again when the machine is idle",
               noisy, layers, 100 * NOISY);
}

/* Prints the end of the table and the messages about failures. */
static enum exit_code conclude(const struct suite *suite, const struct tuned *results,
                               const char *folder)
{
    double logarithms = 0;
    int timed = 0, lost = 0, noisy = 0;
    const char *why = "";
    struct failures failures = {0};
    for (size_t i = 0; i < suite->count; i++) {
        const struct tuned *t = &results[i];
        if (t->error[0] == '\0') {
            timed++;
            logarithms += log(gain(t));
            noisy += t->choice.noise > NOISY;
            lost += t->not_stored != NULL;
            if (t->not_stored != NULL) why = t->not_stored;
        } else if (is_failure(t->status, suite->count)) {
            failures_add(&failures, &suite->entries[i], NULL, t->status, t->error);
        }
    }
    if (table_wanted() && !options.quiet && timed == 0)
        print_line("0 of %zu layers timed", suite->count);
    else if (table_wanted() && !options.quiet)
        print_line("%d of %zu layers timed; geometric mean of gain %.3f", timed, suite->count,
                   exp(logarithms / timed));
    tell_results(suite->count, timed, lost, noisy, folder);
    char so_far[80], what[40];
    snprintf(so_far, sizeof so_far, "the results of %d of %zu layers are %s", timed - lost,
             suite->count, folder == NULL ? "known, and nothing is stored" : "stored");
    snprintf(what, sizeof what, "of %zu layers failed", suite->count);
    const enum exit_code code = failures_verdict(&failures, so_far, what);
    if (lost == 0) return code;
    return failed_work("the results of %d of %zu layers are lost: %s", lost, suite->count, why);
}

static enum exit_code tune(const struct work *work, uint32_t budget)
{
    const struct suite *suite = &work->suite;
    tconv_device *device = work->opened.device;
    struct tuned *results = calloc(suite->count, sizeof *results);
    if (results == NULL) return failed_work("the results need memory that is not there");
    const char *folder = results_folder(device);
    watch_interrupts();
    if (table_wanted()) {
        print_device(work->number, device);
        printf("%-4s %-27s %-*s", "id", "layer", ALGORITHM_WIDTH, "fastest");
        next_part(FIGURES);
        printf("%10s %9s %9s %6s %6s\n", "candidates", "ms model", "ms best", "gain", "noise");
    }
    json_t *layers = json_array();
    for (size_t i = 0; i < suite->count; i++) {
        const struct place place = {&suite->entries[i], (int)i, (int)suite->count};
        tune_layer(device, &place, budget, &results[i]);
        if (table_wanted() && results[i].status != TCONV_ERROR_CANCELLED)
            print_layer(place.entry, &results[i]);
        json_array_append_new(layers, layer_json(place.entry, &results[i]));
    }
    progress(0, 0, "");
    json_t *report = json_pack("{s:o, s:o, s:o, s:b}", "device",
                               device_object_json(work->number, device), "folder",
                               text_json(folder), "layers", layers, "interrupted", interrupted());
    enum exit_code code = write_json(with_origin(report));
    const enum exit_code verdict = conclude(suite, results, folder);
    if (code == EXIT_DONE) code = verdict;
    for (size_t i = 0; i < suite->count; i++) {
        free(results[i].timed);
        free(results[i].not_stored);
    }
    free(results);
    return code;
}

enum exit_code command_tune(int argc, const char **argv)
{
    bool leave;
    enum exit_code code =
        read_options(table,
                     "[--suite FILE.csv] [--ids B01,...] | --model FILE.xml | "
                     "--data-shape ... --filter-shape ... | --records | --share FILE.json | "
                     "--import FILE.json | --machine",
                     argc, argv, &leave);
    if (leave) return code;
    const bool machine = options.machine || options.fields != NULL;
    if (options.records + machine + (options.share != NULL) + (options.import != NULL) > 1)
        return wrong_request("--records lists what is stored, --share writes it to a file, and "
                             "--import, --machine and --fields change it: give one of them");
    if (options.records) return list_records();
    if (options.share != NULL) return share_results();
    if (options.import != NULL) return import_results();
    if (machine) return tune_machine();
    struct work work = {.number = 0};
    int64_t budget = 0;
    if (!read_number("--budget", options.budget, 1, MOST_BUDGET, " milliseconds", &budget))
        return EXIT_REQUEST_WRONG;
    if ((code = work_open(&work, built_in_suite)) == EXIT_DONE)
        code = tune(&work, (uint32_t)budget);
    work_close(&work);
    return code;
}
