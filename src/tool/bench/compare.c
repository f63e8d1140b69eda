/* SPDX-License-Identifier: Apache-2.0 */
/* tconv-cl compare: compares two reports of bench, layer by layer, with the noise of both. bench
 * --compare does it with the report of its own run. */
#include "base/text.h"
#include "tool/bench/reports.h"
#include "tool/io/in_file.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct poptOption table[] = {
    PART(compare_table, "What counts as failure:"),
    PART(report_table, "Files:"),
    END_WITHOUT_DEVICE,
};

enum { FIGURES = 34 };    /* the column of a row's figures */
enum { FEWEST_RUNS = 4 }; /* the least runs whose quartiles measure noise */

enum { LONGEST = 1 << 28 }; /* bytes of a report: more than a million layers */

enum verdict { UNKNOWN, ALIKE, FASTER, SLOWER };

/* A layer in two reports. */
struct pair {
    const json_t *layer; /* from the new report, or from the old one if only the old one has it */
    double old_ms, new_ms, ratio, noise; /* NaN: not known */
    enum verdict verdict;
    char note[300]; /* why there is no ratio, or what else changed */
};

struct sums {
    double logarithms;
    int both, faster, slower;
};

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

static double number_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Reads a report of bench; `option` is named in messages. "-" is stdin. What cannot be read or is
 * damaged is failed work; JSON of something else is a wrong request. */
static enum exit_code report_read(const char *option, const char *path, json_t **report)
{
    json_error_t error;
    size_t size;
    bool opened;
    char *text = in_file_text(path, LONGEST, &size, &opened);
    if (text == NULL)
        return failed_work("%s %s cannot be %s: %s", option, path, opened ? "read" : "opened",
                           strerror(errno));
    *report = json_loadb(text, size, 0, &error);
    free(text);
    if (*report == NULL)
        return failed_work("%s %s is no JSON: line %d: %s", option, path, error.line, error.text);
    const json_t *layers = json_object_get(*report, "layers");
    bool whole = json_is_array(layers);
    size_t i;
    const json_t *layer;
    json_array_foreach(layers, i, layer) whole = whole &&
                                                 json_is_string(json_object_get(layer, "id")) &&
                                                 json_object_get(layer, "ms_median") != NULL;
    const json_t *schema = json_object_get(*report, "schema");
    const bool known = schema == NULL || json_integer_value(schema) == JSON_SCHEMA;
    if (whole && known) return EXIT_DONE;
    json_decref(*report);
    *report = NULL;
    if (!known)
        return wrong_request("%s %s has another schema than %d, the one that this version reads",
                             option, path, JSON_SCHEMA);
    return wrong_request("%s %s is not a report of tconv-cl bench: its layers must have id and "
                         "ms_median",
                         option, path);
}

/* The layers of a report by their ids: of equal ids the first. NULL without memory. */
static json_t *index_layers(const json_t *report)
{
    json_t *index = json_object();
    bool good = index != NULL;
    size_t i;
    json_t *layer;
    json_array_foreach(json_object_get(report, "layers"), i, layer)
    {
        const char *id = text_of(layer, "id");
        good = good &&
               (json_object_get(index, id) != NULL || json_object_set(index, id, layer) == 0);
    }
    if (good) return index;
    json_decref(index);
    return NULL;
}

/* The distance of the quartiles over the median; NaN after too few runs, and if it is less than 0,
 * which no distance is. */
static double spread_of(const json_t *layer)
{
    const double spread = number_of(layer, "spread");
    return number_of(layer, "runs") >= FEWEST_RUNS && spread >= 0 ? spread : NAN;
}

/* True of what can be printed as a percentage. */
static bool is_percentage(double fraction)
{
    return isfinite(100 * fraction);
}

/* Compares two layers with the same id. A difference beyond noise exceeds the sum of both
 * spreads. */
static void judge(const json_t *old, const json_t *new, const char *old_name, const char *new_name,
                  struct pair *p)
{
    *p = (struct pair){new == NULL ? old : new, NAN, NAN, NAN, NAN, UNKNOWN, ""};
    if (old == NULL || new == NULL) {
        snprintf(p->note, sizeof p->note, "only in %s", old == NULL ? new_name : old_name);
        return;
    }
    if (strcmp(text_of(old, "problem"), text_of(new, "problem")) != 0) {
        snprintf(p->note, sizeof p->note, "another problem in each");
        return;
    }
    p->old_ms = number_of(old, "ms_median");
    p->new_ms = number_of(new, "ms_median");
    if (!(p->old_ms > 0) || !(p->new_ms > 0)) {
        snprintf(p->note, sizeof p->note, "not timed in %s", p->old_ms > 0 ? new_name : old_name);
        return;
    }
    p->ratio = p->old_ms / p->new_ms;
    if (!isnormal(p->ratio) || !isnormal(1 / p->ratio)) {
        p->ratio = NAN;
        snprintf(p->note, sizeof p->note, "times of %g and %g ms have no ratio", p->old_ms,
                 p->new_ms);
        return;
    }
    p->noise = spread_of(old) + spread_of(new);
    if (!is_percentage(p->noise)) p->noise = NAN;
    if (!isnan(p->noise))
        p->verdict = p->ratio > 1 + p->noise         ? FASTER
                     : p->ratio < 1 / (1 + p->noise) ? SLOWER
                                                     : ALIKE;
    if (strcmp(text_of(old, "algorithm"), text_of(new, "algorithm")) != 0)
        snprintf(p->note, sizeof p->note, "by %s, before %s", text_of(new, "algorithm"),
                 text_of(old, "algorithm"));
}

/* The columns of --csv. */
static const char *const columns[] = {"id",    "layer",   "ms_old", "ms_new", "ratio",
                                      "noise", "verdict", "note",   NULL};

static const char *word(enum verdict verdict)
{
    return verdict == FASTER ? "faster" : verdict == SLOWER ? "slower" : "";
}

/* Numbers as they stand in a table, however large or small damaged reports make them. */
struct number_text {
    char text[24];
};

static struct number_text ratio_text(double ratio)
{
    struct number_text t;
    snprintf(t.text, sizeof t.text, ratio >= 0.0005 && ratio < 1e6 ? "%.3f" : "%.3g", ratio);
    return t;
}

static struct number_text noise_text(double noise)
{
    struct number_text t = {"-"};
    if (!isnan(noise))
        snprintf(t.text, sizeof t.text, noise < 1e4 ? "%.1f%%" : "%.3g%%", 100 * noise);
    return t;
}

static json_t *pair_json(const struct pair *p)
{
    static const char *const verdicts[] = {NULL, "alike", "faster", "slower"};
    return json_pack(
        "{s:O, s:o, s:o, s:o, s:o, s:o, s:s?, s:o}", "id", json_object_get(p->layer, "id"), "layer",
        text_json(text_of(p->layer, "layer")), "ms_old", real_json(p->old_ms), "ms_new",
        real_json(p->new_ms), "ratio", real_json(p->ratio), "noise", real_json(p->noise), "verdict",
        verdicts[p->verdict], "note", text_json(p->note[0] == '\0' ? NULL : p->note));
}

static void print_head(void)
{
    printf("%-4s %-28s", "id", "layer");
    next_part(FIGURES);
    printf("%9s %9s %6s %6s\n", "old ms", "new ms", "ratio", "noise");
}

static void print_pair(const struct pair *p)
{
    char text[320];
    const char *const verdict = word(p->verdict);
    paint(p->verdict == SLOWER ? COLOUR_SLOW : p->verdict == FASTER ? COLOUR_FAST : COLOUR_NONE);
    print_names(text_of(p->layer, "id"), text_of(p->layer, "layer"), 28);
    const int figures = next_part(FIGURES);
    if (isnan(p->ratio)) {
        print_wrapped(p->note, figures);
    } else {
        printf("%9.4g %9.4g %6s %6s", p->old_ms, p->new_ms, ratio_text(p->ratio).text,
               noise_text(p->noise).text);
        snprintf(text, sizeof text, "%s%s%s%s", verdict[0] == '\0' && p->note[0] == '\0' ? "" : " ",
                 verdict, verdict[0] != '\0' && p->note[0] != '\0' ? ", " : "", p->note);
        print_wrapped(text, figures + 33);
    }
    paint(COLOUR_NONE);
}

/* Writes the ids of all layers with a verdict. */
static void list_ids(struct tconv_text *list, enum verdict verdict, const json_t *layers)
{
    size_t i;
    const json_t *layer;
    json_array_foreach(layers, i, layer) if (strcmp(text_of(layer, "verdict"), word(verdict)) == 0)
        tconv_text_add(list, " %s", text_of(layer, "id"));
}

static void print_list(const char *what, enum verdict verdict, int count, const json_t *layers)
{
    char text[4000];
    struct tconv_text list = tconv_text_begin(text, sizeof text);
    tconv_text_add(&list, "%s beyond noise: %d", what, count);
    list_ids(&list, verdict, layers);
    print_wrapped(text, 0);
}

/* How many layers were compared with known noise. */
static int judged_of(const json_t *layers)
{
    int count = 0;
    size_t i;
    const json_t *layer;
    json_array_foreach(layers, i, layer) count += text_of(layer, "verdict")[0] != '\0';
    return count;
}

enum exit_code compare_verdict(const json_t *comparison)
{
    const int slower = (int)json_integer_value(json_object_get(comparison, "slower"));
    if (!options.fail) return EXIT_DONE;
    const int both = (int)json_integer_value(json_object_get(comparison, "layers_in_both"));
    if (judged_of(json_object_get(comparison, "layers")) == 0)
        return failed_work("--fail can judge no layer: %d are in both reports, and noise is known "
                           "only where both have %d runs or more",
                           both, FEWEST_RUNS);
    if (slower == 0) return EXIT_DONE;
    char text[4000];
    struct tconv_text list = tconv_text_begin(text, sizeof text);
    list_ids(&list, SLOWER, json_object_get(comparison, "layers"));
    return failed_work("%d of %d layers %s slower beyond noise:%s", slower, both,
                       slower == 1 ? "is" : "are", text);
}

static void add(struct sums *sums, const struct pair *p)
{
    if (isnan(p->ratio)) return;
    sums->both++;
    sums->logarithms += log(p->ratio);
    sums->faster += p->verdict == FASTER;
    sums->slower += p->verdict == SLOWER;
}

static void take(const struct pair *p, struct sums *sums, json_t *list)
{
    add(sums, p);
    if (table_wanted()) print_pair(p);
    json_array_append_new(list, pair_json(p));
}

/* Where a report comes from. */
static json_t *origin_json(const json_t *report, const char *name)
{
    return json_pack("{s:o, s:O?, s:O?, s:O?}", "file", text_json(name), "device",
                     json_object_get(report, "device"), "date", json_object_get(report, "date"),
                     "tool_version", json_object_get(report, "tool_version"));
}

/* How many computations a run had: --repeat. Earlier versions always had one. */
static json_int_t repeat_of(const json_t *report)
{
    const json_t *repeat = json_object_get(report, "repeat");
    return json_is_integer(repeat) ? json_integer_value(repeat) : 1;
}

/* Compares two reports, layer by layer: prints a table where one is wanted, and returns the same as
 * JSON; NULL if memory is missing. The names are for messages. `whole`: with layers that only the
 * old report has. */
static json_t *report_compare(const json_t *old, const char *old_name, const json_t *new,
                              const char *new_name, bool whole)
{
    const char *old_device = text_of(json_object_get(old, "device"), "name");
    const char *new_device = text_of(json_object_get(new, "device"), "name");
    if (strcmp(old_device, new_device) != 0)
        notice("the devices differ: %s is of %s, %s of %s", old_name, old_device, new_name,
               new_device);
    if (repeat_of(old) != repeat_of(new))
        notice("runs of %s have --repeat %" PRId64 ", of %s %" PRId64
               ": what a launch takes differs",
               old_name, (int64_t)repeat_of(old), new_name, (int64_t)repeat_of(new));
    struct sums sums = {0};
    struct pair pair;
    size_t i;
    const json_t *layer;
    json_t *list = json_array(), *of_old = index_layers(old), *of_new = index_layers(new);
    if (list == NULL || of_old == NULL || of_new == NULL) {
        json_decref(list);
        json_decref(of_old);
        json_decref(of_new);
        return NULL;
    }
    if (table_wanted()) print_head();
    json_array_foreach(json_object_get(new, "layers"), i, layer)
    {
        judge(json_object_get(of_old, text_of(layer, "id")), layer, old_name, new_name, &pair);
        take(&pair, &sums, list);
    }
    json_array_foreach(json_object_get(old, "layers"), i, layer)
    {
        if (!whole || json_object_get(of_new, text_of(layer, "id")) != NULL) continue;
        judge(layer, NULL, old_name, new_name, &pair);
        take(&pair, &sums, list);
    }
    json_decref(of_old);
    json_decref(of_new);
    const double mean = sums.both == 0 ? NAN : exp(sums.logarithms / sums.both);
    if (table_wanted() && !options.quiet) {
        char text[70] = "";
        if (sums.both > 0)
            snprintf(text, sizeof text, "; geometric mean of old / new time %s",
                     ratio_text(mean).text);
        print_line("%d layer%s in both%s", sums.both, plural(sums.both), text);
        print_list("faster", FASTER, sums.faster, list);
        print_list("slower", SLOWER, sums.slower, list);
    }
    return json_pack("{s:o, s:o, s:o, s:i, s:o, s:i, s:i}", "old", origin_json(old, old_name),
                     "new", origin_json(new, new_name), "layers", list, "layers_in_both", sums.both,
                     "geomean_ratio", real_json(mean), "faster", sums.faster, "slower",
                     sums.slower);
}

enum exit_code compare_open(json_t **old)
{
    *old = NULL;
    if (options.compare != NULL) return report_read("--compare", options.compare, old);
    return options.fail ? wrong_request("--fail is given, but without --compare there is nothing "
                                        "to compare with")
                        : EXIT_DONE;
}

json_t *compare_with(const json_t *old, json_t *report)
{
    if (old == NULL || report == NULL) return NULL;
    if (table_wanted()) print_line("compared with %s:", options.compare);
    json_t *comparison = report_compare(old, options.compare, report, "this run", false);
    json_object_set(report, "comparison", comparison);
    return comparison;
}

enum exit_code command_compare(int argc, const char **argv)
{
    bool leave;
    json_t *old = NULL, *new = NULL;
    enum exit_code code = read_arguments(table, "OLD.json NEW.json", argc, argv, 2, &leave);
    if (leave) return code;
    const char *const old_name = options.arguments[0], *const new_name = options.arguments[1];
    if (options.device != NULL)
        return wrong_request("--device is given, but compare reads reports and needs no device");
    if (old_name == NULL || new_name == NULL)
        return wrong_request(
            "compare needs two reports of tconv-cl bench --json: OLD.json NEW.json");
    if ((options.plot == NULL || (code = plot_check()) == EXIT_DONE) &&
        (code = report_read("report", old_name, &old)) == EXIT_DONE &&
        (code = report_read("report", new_name, &new)) == EXIT_DONE) {
        json_t *comparison = report_compare(old, old_name, new, new_name, true);
        const enum exit_code verdict = comparison == NULL ? EXIT_DONE : compare_verdict(comparison);
        code = reports_write(comparison, columns);
        if (code == EXIT_DONE) code = verdict;
    }
    json_decref(old);
    json_decref(new);
    return code;
}
