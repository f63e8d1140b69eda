/* SPDX-License-Identifier: Apache-2.0 */
/* tconv-cl tune: times the algorithms for layers and stores the fastest, for later plans on this
 * device. --records is in records.c, --machine and --fields in tune_machine.c. */
#include "base/text.h"
#include "tool/bench/layers.h"
#include "tool/bench/trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct poptOption table[] = {
    {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)suite_table, 0, "A suite of layers:", NULL},
    {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)model_table, 0,
     "Or a model (--data-shape for extents that it leaves open):", NULL},
    {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)shape_table, 0, "Or one layer, by its shapes:", NULL},
    {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)attribute_table, 0, "and attributes:", NULL},
    {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)epilogue_table, 0, "Types and epilogue:", NULL},
    {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)check_table, 0,
     "with tensors of random numbers:", NULL},
    {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)math_table, 0, "How:", NULL},
    {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)tune_table, 0, NULL, NULL},
    {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)device_table, 0, "Options:", NULL},
    {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)common_table, 0, NULL, NULL},
    {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)help_table, 0, "Help options:", NULL},
    POPT_TABLEEND,
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

/* Where tuning is, for the progress bar. */
struct place {
    const struct entry *entry;
    int layer, layers;
};

static bool tell_progress(void *context, const char *algorithm, int index, int count,
                          double best_ms)
{
    const struct place *p = context;
    char text[160];
    struct tconv_text line = tconv_text_begin(text, sizeof text);
    tconv_text_add(&line, "%s %s, %d of %d", p->entry->id, algorithm,
                   index < count ? index + 1 : count, count);
    if (best_ms > 0) tconv_text_add(&line, ", best %.4g ms", best_ms);
    progress(p->layer, p->layers, text);
    return !interrupted();
}

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
    if (entry->error != NULL)
        return give_up(t, entry->file_failed ? TCONV_ERROR_INTERNAL : TCONV_ERROR_ARGUMENT,
                       entry->error);
    tconv_plan_options plan_options = TCONV_PLAN_OPTIONS_INIT;
    trial_epilogue(&plan_options.epilogue);
    plan_options.math = chosen_math();
    plan_options.search = TCONV_SEARCH_RENEW;
    plan_options.search_ms = budget;
    plan_options.search_progress = tell_progress;
    plan_options.search_context = (void *)place;
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
    for (const char *line = lines; line != NULL && *line != '\0';) {
        const size_t length = strcspn(line, "\n"), name = strcspn(line, " \n");
        const char *cost = strstr(line, " cost "), *ms = cost == NULL ? NULL : strstr(cost, " ms ");
        if (ms == NULL) break;
        const char *tile = line + name + (line + name < cost);
        json_array_append_new(list, json_pack("{s:s%, s:s%, s:f, s:f}", "algorithm", line, name,
                                              "tile", tile, (size_t)(cost - tile), "cost",
                                              strtod(cost + strlen(" cost "), NULL), "ms",
                                              strtod(ms + strlen(" ms "), NULL)));
        line += length + (line[length] == '\n');
    }
    return list;
}

static json_t *layer_json(const struct entry *entry, const struct tuned *t)
{
    const bool timed = t->error[0] == '\0';
    const double noise = t->choice.noise;
    return json_pack("{s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "id",
                     text_json(entry->id), "layer", text_json(entry->layer), "algorithm",
                     timed ? json_string(t->algorithm) : json_null(), "tile",
                     timed ? json_string(t->tile) : json_null(), "candidates",
                     (int)t->choice.candidates, "timed", timed_json(t->timed), "ms_model",
                     timed ? json_real(t->choice.model_ms) : json_null(), "ms_best",
                     timed ? json_real(t->choice.best_ms) : json_null(), "gain",
                     timed ? real_json(gain(t)) : json_null(), "noise",
                     timed && noise > 0 ? json_real(noise) : json_null(), "not_stored",
                     t->not_stored != NULL ? text_json(t->not_stored) : json_null(), "error",
                     timed ? json_null() : text_json(t->error));
}

static void print_layer(const struct entry *entry, const struct tuned *t)
{
    progress(0, 0, "");
    print_names(entry->id, entry->layer, 28);
    if (t->error[0] != '\0') {
        print_wrapped(t->error, next_part(34));
    } else {
        printf(" %-16s", t->algorithm);
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
        } else if (t->status != TCONV_OK && t->status != TCONV_ERROR_CANCELLED &&
                   !(t->status == TCONV_ERROR_DEVICE_MEMORY && suite->count > 1)) {
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
    const char *folder = tconv_device_search_folder(device);
    if (folder == NULL)
        notice("the results are not stored: there is no folder for them (TCONV_CL_CACHE, "
               "TCONV_CL_CACHE_DIR)");
    watch_interrupts();
    if (table_wanted()) {
        print_device(work->number, device);
        printf("%-4s %-28s %-16s", "id", "layer", "fastest");
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
                               folder == NULL ? json_null() : text_json(folder), "layers", layers,
                               "interrupted", interrupted());
    enum exit_code code = EXIT_DONE;
    if (options.json != NULL)
        code = write_json(with_origin(report));
    else
        json_decref(report);
    const enum exit_code verdict = conclude(suite, results, folder);
    if (code == EXIT_DONE) code = verdict;
    for (size_t i = 0; i < suite->count; i++) {
        free(results[i].timed);
        free(results[i].not_stored);
    }
    free(results);
    return code;
}

static enum exit_code read_budget(uint32_t *budget)
{
    int64_t wanted = 0;
    int count;
    *budget = 0;
    if (options.budget == NULL) return EXIT_DONE;
    if (!read_numbers("--budget", options.budget, &wanted, 1, &count)) return EXIT_REQUEST_WRONG;
    if (wanted < 1 || wanted > MOST_BUDGET)
        return wrong_request("--budget is %s: it must be 1 to %d milliseconds", options.budget,
                             MOST_BUDGET);
    *budget = (uint32_t)wanted;
    return EXIT_DONE;
}

enum exit_code command_tune(int argc, const char **argv)
{
    bool leave;
    enum exit_code code =
        read_options(table,
                     "[--suite FILE.csv] [--ids B01,...] | --model FILE.xml | "
                     "--data-shape ... --filter-shape ... | --records | --machine",
                     argc, argv, &leave);
    if (leave) return code;
    if (options.records && (options.machine || options.fields != NULL))
        return wrong_request("--records lists, and --machine and --fields change what is stored: "
                             "give one of them");
    if (options.records) return list_records();
    if (options.machine || options.fields != NULL) return tune_machine();
    struct work work = {.number = 0};
    uint32_t budget;
    if ((code = read_budget(&budget)) == EXIT_DONE &&
        (code = work_open(&work, built_in_suite)) == EXIT_DONE)
        code = tune(&work, budget);
    work_close(&work);
    return code;
}
