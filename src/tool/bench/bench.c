/* SPDX-License-Identifier: Apache-2.0 */
/* tconv-cl bench: times layers, verifies each in the same run, and compares each with the device's
 * ceilings. */
#include "base/element_types.h"
#include "base/os.h"
#include "base/spread.h"
#include "base/view.h"
#include "tool/bench/layers.h"
#include "tool/bench/reports.h"
#include "tool/bench/roofline.h"
#include "tool/bench/trace.h"
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
    PART(algorithm_table, "How:"),
    PART(bench_table, NULL),
    PART(report_table, NULL),
    PART(compare_table, NULL),
    PART(trace_table, NULL),
    END_WITH_DEVICE,
};

/* How a layer is timed: the number of runs (0: as many as fit), and the computations of each
 * run. */
struct timing {
    int64_t runs, repeat;
};

static const double SLOW = 0.5; /* of the roofline: rows below are coloured */

enum { FIGURES = 51 }; /* the column of a row's figures */
enum { SAMPLES = 2000, FEWEST_RUNS = 5, USUAL_RUNS = 100, MOST_RUNS = 1000, PERCENT_SIZE = 16 };

/* The result of a layer's runs. */
struct result {
    char algorithm[40], tile[TILE_TEXT];
    double ms_min, ms_median, spread;
    int runs;
    char percent[PERCENT_SIZE]; /* percentage of the floor, as printed */
    double flops, bytes;        /* useful operations, and bytes that must move */
    double max_error, error_bound, error_factor;
    double first_call_ms, first_call_warm_ms;
    double workspace_bytes, filter_bytes;
    tconv_choice choice;
    char *passed_over; /* from malloc, or NULL: tconv_plan_passed_over */
    char error[1100];
    tconv_status status;
};

struct summary {
    int timed; /* layers; an interrupted one is neither timed nor failed */
    struct failures failures;
};

/* The least possible time; NaN without ceilings. */
static double floor_ms(const struct result *r, const struct roofline *roofline)
{
    if (roofline->sizes == 0) return NAN;
    return fmax(1e-6 * r->flops / roofline_peak(roofline),
                1e-6 * r->bytes / roofline_bandwidth(roofline, r->bytes));
}

/* True if a layer cannot exceed the f32 peak: it uses plain multiply-adds, not fewer of them
 * (--math fast), and no units for narrow types. */
static bool bounded_by_peak(const struct result *r, tconv_type type, const tconv_device_info *d)
{
    return r->error_factor == 1 &&
           (type == TCONV_F32 || (d->matrix_unit == TCONV_MATRIX_NONE && !d->integer_dot_product &&
                                  !tconv_type_is_byte(type)));
}

/* Raises the ceilings if a verified layer exceeds them: something else kept the device busy while
 * they were measured. */
static void raise_roofline(struct roofline *roofline, const struct result *r, tconv_type type,
                           const tconv_device_info *d)
{
    if (roofline->sizes == 0 || r->error[0] != '\0') return;
    roofline_raise(roofline, bounded_by_peak(r, type, d) ? 1e-6 * r->flops / r->ms_min : 0,
                   r->bytes, 1e-6 * r->bytes / r->ms_min);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool time_runs(struct trial *trial, const struct timing *timing, struct result *r)
{
    const int64_t wanted = timing->runs;
    double seconds[MOST_RUNS];
    const double begin = tconv_os_seconds();
    for (r->runs = 0; wanted > 0 ? r->runs < wanted
                                 : r->runs < FEWEST_RUNS ||
                                       (r->runs < USUAL_RUNS && tconv_os_seconds() - begin < 0.5);
         r->runs++) {
        seconds[r->runs] = trial_repeat(trial, (int)timing->repeat);
        if (seconds[r->runs] < 0) return false;
    }
    qsort(seconds, (size_t)r->runs, sizeof *seconds, by_value);
    r->ms_median = 1e3 * tconv_quantile(seconds, r->runs, 0.5);
    r->ms_min = 1e3 * seconds[0];
    r->spread = tconv_spread(seconds, r->runs);
    return true;
}

/* How many of `count` points, `step` apart, have a partner (of `partners`, `partner_step` apart)
 * with which they reach an output: inputs with any tap, or taps with any input. */
static int64_t meeting(int64_t count, int64_t step, int64_t partners, int64_t partner_step,
                       int64_t pad, int64_t output)
{
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        /* The partner's coordinate must be at least this, and less than first + output. */
        const int64_t first = pad - i * step;
        const int64_t from = first <= 0 ? 0 : (first + partner_step - 1) / partner_step;
        found += from < partners && from * partner_step < first + output;
    }
    return found;
}

/* The least bytes that must move: each input and each weight that reaches an output, once, and the
 * output. */
static double compulsory_bytes(const tconv_problem *problem, const tconv_geometry *g)
{
    const struct tconv_view in = tconv_view_of(problem, g, TCONV_SPACED_DATA),
                            out = tconv_view_of(problem, g, TCONV_SPACED_OUTPUT),
                            weights = tconv_view_of(problem, g, TCONV_SPACED_FILTER);
    double data = (double)tconv_view_elements(&in) * (double)tconv_type_size(problem->data_type);
    double filter = (double)tconv_view_elements(&weights) *
                    (double)tconv_type_size(problem->filter_type);
    for (int a = 0; a < g->axes; a++) {
        const int64_t x = g->input[a], k = g->kernel[a], s = g->stride[a], d = g->dilation[a];
        if (x != 0) data *= (double)meeting(x, s, k, d, g->pad_begin[a], g->output[a]) / (double)x;
        filter *= (double)meeting(k, d, x, s, g->pad_begin[a], g->output[a]) / (double)k;
    }
    return data + filter +
           (double)tconv_view_elements(&out) * (double)tconv_type_size(g->output_type);
}

/* Prints which algorithms were passed over, and with --why the choice among all. */
static void tell_choice(const struct entry *entry, const tconv_plan *plan, struct result *r)
{
    char names[300], *not_stored = plan_text(plan, tconv_plan_not_stored);
    r->passed_over = plan_text(plan, tconv_plan_passed_over);
    tconv_plan_choice(plan, &r->choice, NULL);
    snprintf(names, sizeof names, "%s %s", entry->id, entry->layer);
    tell_plan(names, r->passed_over, not_stored);
    free(not_stored);
    if (!options.why) return;
    char *why = plan_text(plan, tconv_plan_explain);
    progress(0, 0, "");
    if (why != NULL) write_wrapped(stderr, names, 0, 4);
    const char *line, *at = why;
    for (int length; (line = next_line(&at, &length)) != NULL;) {
        why[line - why + length] = '\0';
        write_wrapped(stderr, line, 0, 4);
    }
    free(why);
}

static void describe_plan(const struct entry *entry, const tconv_plan *plan, struct result *r)
{
    snprintf(r->algorithm, sizeof r->algorithm, "%s", tconv_plan_algorithm(plan));
    tconv_plan_tile(plan, r->tile, sizeof r->tile);
    r->workspace_bytes = (double)tconv_plan_workspace_bytes(plan);
    r->filter_bytes = (double)tconv_plan_filter_bytes(plan);
    r->error_factor = tconv_plan_error_factor(plan);
    tell_choice(entry, plan, r);
}

static void measure(const struct opened *opened, const struct entry *entry,
                    const struct timing *timing, struct result *r)
{
    *r = (struct result){.algorithm = "", .choice = TCONV_CHOICE_INIT};
    struct trial trial;
    const double begin = tconv_os_seconds();
    const bool ran = trial_prepare(&trial, opened, entry) && trial_run(&trial, options.algorithm);
    /* Describe this plan now: trial_run_anew replaces it. */
    if (trial.plan != NULL) describe_plan(entry, trial.plan, r);
    if (ran && trial_verify(&trial, SAMPLES) && time_runs(&trial, timing, r))
        trial_run_anew(&trial);
    r->flops = 2.0 * (double)trial.geometry.macs;
    r->bytes = trial.error[0] == '\0' ? compulsory_bytes(trial.problem, &trial.geometry) : 0;
    r->first_call_ms = 1e3 * trial.first_call_seconds;
    r->first_call_warm_ms = 1e3 * trial.warm_call_seconds;
    r->max_error = trial.max_error;
    r->error_bound = trial.error_bound;
    snprintf(r->error, sizeof r->error, "%s", trial.error);
    r->status = trial.status;
    trial_free(&trial);
    trace_layer(entry->id, entry->layer, begin);
}

static const char *chooser(const struct result *r)
{
    if (options.algorithm != NULL && strcmp(options.algorithm, "auto") != 0) return "name";
    switch (r->choice.source) {
    case TCONV_SEARCH_RECORDS: return "record";
    case TCONV_SEARCH_IMPORTED: return "imported";
    case TCONV_SEARCH_MEASURE: return "measurement";
    case TCONV_SEARCH_PREPARED: return "prepared";
    default: return "model";
    }
}

static json_t *result_json(const struct entry *e, const struct result *r,
                           const struct roofline *roofline)
{
    const bool timed = r->error[0] == '\0', planned = r->algorithm[0] != '\0';
    char problem[1000];
    tconv_problem_text(&e->problem, problem, sizeof problem);
    return json_pack(
        "{s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:o, "
        "s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "id", text_json(e->id), "layer", text_json(e->layer), "problem", problem, "type",
        tconv_type_name(e->problem.data_type), "algorithm",
        text_json(planned ? r->algorithm : NULL), "tile", text_json(planned ? r->tile : NULL),
        "chosen_by", text_json(planned ? chooser(r) : NULL), "passed_over",
        text_json(r->passed_over), "ms_min", known_json(timed, r->ms_min), "ms_median",
        known_json(timed, r->ms_median), "spread", known_json(timed, r->spread), "runs", r->runs,
        "gflops", known_json(timed, 1e-6 * r->flops / r->ms_median), "gbs",
        known_json(timed, 1e-6 * r->bytes / r->ms_median), "floor_ms",
        known_json(timed, floor_ms(r, roofline)), "floor_bandwidth_gbs",
        timed && roofline->sizes > 0 ? json_real(roofline_bandwidth(roofline, r->bytes))
                                     : json_null(),
        "fraction_of_floor", known_json(timed, floor_ms(r, roofline) / r->ms_median), "max_error",
        known_json(planned, r->max_error), "error_bound", known_json(planned, r->error_bound),
        "error_factor", known_json(planned, r->error_factor), "first_call_ms",
        known_json(planned, r->first_call_ms), "first_call_warm_ms",
        known_json(timed, r->first_call_warm_ms), "workspace_bytes",
        planned ? json_integer((json_int_t)r->workspace_bytes) : json_null(), "packed_filter_bytes",
        planned ? json_integer((json_int_t)r->filter_bytes) : json_null(), "error",
        text_json(timed ? NULL : r->error));
}

static void print_head(void)
{
    printf("%-4s %-27s %-*s", "id", "layer", ALGORITHM_WIDTH, "algorithm");
    next_part(FIGURES);
    printf("%8s %6s %8s %6s %7s %9s\n", "ms", "spread", "GFLOP/s", "GB/s", "% floor", "max error");
}

static void write_percent(const struct result *r, const struct roofline *roofline, char *text)
{
    snprintf(text, PERCENT_SIZE, "-");
    if (roofline->sizes > 0)
        snprintf(text, PERCENT_SIZE, "%.1f", 100 * floor_ms(r, roofline) / r->ms_median);
}

static void print_result(const struct entry *e, struct result *r, const struct roofline *roofline)
{
    progress(0, 0, "");
    const bool known = r->error[0] == '\0' && roofline->sizes > 0;
    paint(known && floor_ms(r, roofline) < SLOW * r->ms_median ? COLOUR_SLOW : COLOUR_NONE);
    print_names(e->id, e->layer, 27);
    if (r->error[0] != '\0') {
        printf(" %-*s", ALGORITHM_WIDTH, r->algorithm[0] == '\0' ? "-" : r->algorithm);
        print_wrapped(r->error, next_part(FIGURES));
    } else {
        write_percent(r, roofline, r->percent);
        /* However long or unsteady the runs were, columns keep their widths. */
        printf(" %-*s", ALGORITHM_WIDTH, r->algorithm);
        next_part(FIGURES);
        printf(r->ms_median < 10000 ? "%8.4g" : "%8.0f", r->ms_median);
        printf(" %5.*f%% %8.1f %6.1f %7s %9.2g\n", r->spread < 9.99 ? 1 : 0, 100 * r->spread,
               1e-6 * r->flops / r->ms_median, 1e-6 * r->bytes / r->ms_median, r->percent,
               r->max_error);
    }
    paint(COLOUR_NONE);
    fflush(stdout);
}

/* Prints the ceilings of the whole run, and repeats the rows that were printed under lower
 * ceilings. */
static void print_ceilings(const struct suite *suite, struct result *results,
                           const struct roofline *roofline)
{
    char measured[60] = "";
    if (roofline->layers_gflops > roofline->probed_gflops)
        snprintf(measured, sizeof measured, " (by a layer; %.1f measured)",
                 roofline->probed_gflops);
    print_line("ceilings: peak %.1f GFLOP/s%s, %.1f GB/s from memory, %.1f us a launch",
               roofline_peak(roofline), measured, roofline_memory_bandwidth(roofline),
               roofline->launch_us);
    bool told = false;
    for (size_t i = 0; i < suite->count; i++) {
        char percent[PERCENT_SIZE];
        if (results[i].error[0] != '\0') continue;
        write_percent(&results[i], roofline, percent);
        if (strcmp(percent, results[i].percent) == 0) continue;
        if (!told) printf("corrected by these ceilings:\n");
        print_result(&suite->entries[i], &results[i], roofline);
        told = true;
    }
}

static void count(struct summary *s, const struct suite *suite, size_t i, const struct result *r)
{
    if (r->error[0] == '\0')
        s->timed++;
    else if (is_failure(r->status, suite->count))
        failures_add(&s->failures, &suite->entries[i], NULL, r->status, r->error);
}

static enum exit_code verdict(const struct summary *s, size_t layers)
{
    char so_far[60], what[40];
    snprintf(so_far, sizeof so_far, "%d of %zu layers were timed", s->timed, layers);
    snprintf(what, sizeof what, "of %zu layers failed", layers);
    return failures_verdict(&s->failures, so_far, what);
}

/* The geometric mean of floor over time. */
static double mean_fraction(const struct result *results, size_t layers,
                            const struct roofline *roofline)
{
    double sum = 0;
    int timed = 0;
    for (size_t i = 0; i < layers; i++)
        if (results[i].error[0] == '\0') {
            sum += log(floor_ms(&results[i], roofline) / results[i].ms_median);
            timed++;
        }
    return exp(sum / timed);
}

static json_t *report_json(int number, const tconv_device *device, const struct timing *timing,
                           const struct roofline *roofline, const struct suite *suite,
                           const struct result *results)
{
    json_t *sizes = json_array(), *layers = json_array();
    for (int i = 0; i < roofline->sizes; i++)
        json_array_append_new(sizes,
                              json_pack("{s:I, s:f}", "bytes", (json_int_t)roofline->bytes[i],
                                        "gbs", roofline_bandwidth(roofline, roofline->bytes[i])));
    for (size_t i = 0; i < suite->count; i++)
        json_array_append_new(layers, result_json(&suite->entries[i], &results[i], roofline));
    const bool known = roofline->sizes > 0;
    return json_pack(
        "{s:o, s:I, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "device",
        device_object_json(number, device), "repeat", (json_int_t)timing->repeat, "max_error_is",
        MAX_ERROR_IS, "launch_us", known_json(known, roofline->launch_us), "peak_gflops",
        known_json(known, roofline_peak(roofline)), "probed_peak_gflops",
        known_json(known, roofline->probed_gflops), "bandwidth_gbs",
        known ? json_real(roofline_memory_bandwidth(roofline)) : json_null(),
        "bandwidth_by_working_set", sizes, "layers", layers, "geomean_fraction_of_floor",
        known_json(known, mean_fraction(results, suite->count, roofline)), "interrupted",
        interrupted());
}

/* Measures and prints one layer after the other. After an interruption the rest of them give up at
 * once. */
static struct summary time_layers(const struct opened *opened, const struct suite *suite,
                                  const struct timing *timing, struct roofline *roofline,
                                  struct result *results)
{
    const tconv_device_info *d = tconv_device_properties(opened->device);
    struct summary s = {0};
    for (size_t i = 0; i < suite->count; i++) {
        const struct entry *entry = &suite->entries[i];
        struct result *r = &results[i];
        progress((int)i, (int)suite->count, entry->layer);
        measure(opened, entry, timing, r);
        raise_roofline(roofline, r, entry->problem.data_type, d);
        if (table_wanted() && r->status != TCONV_ERROR_CANCELLED) print_result(entry, r, roofline);
        count(&s, suite, i, r);
    }
    return s;
}

static void print_end(const struct suite *suite, const struct summary *s, struct result *results,
                      const struct roofline *roofline)
{
    if (roofline->sizes > 0) print_ceilings(suite, results, roofline);
    if (options.quiet) return;
    int recorded = 0, imported = 0;
    for (size_t i = 0; i < suite->count; i++) {
        recorded += results[i].choice.source == TCONV_SEARCH_RECORDS;
        imported += results[i].choice.source == TCONV_SEARCH_IMPORTED;
    }
    if (recorded > 0)
        print_line("chosen by stored results of tconv-cl tune: %d of %zu algorithms", recorded,
                   suite->count);
    if (imported > 0)
        print_line("chosen by imported results of tconv-cl tune: %d of %zu algorithms", imported,
                   suite->count);
    char mean[60] = "";
    if (s->timed > 0 && roofline->sizes > 0)
        snprintf(mean, sizeof mean, "; geometric mean of floor/time %.3f",
                 mean_fraction(results, suite->count, roofline));
    print_line("%d of %zu layers timed, each verified against an f64 computation%s", s->timed,
               suite->count, mean);
}

/* The columns of --csv. */
/* clang-format off */
static const char *const columns[] = {
    "id", "layer", "problem", "type", "algorithm", "tile", "chosen_by", "ms_min", "ms_median",
    "spread", "runs", "gflops", "gbs", "floor_ms", "fraction_of_floor", "max_error", "error_bound",
    "first_call_ms", "workspace_bytes", "error", NULL,
};
/* clang-format on */

/* Writes the results: the report, the comparison with an old one, the trace. The first error
 * counts; a layer that lost time is the last. */
static enum exit_code conclude(json_t *report, const json_t *old, enum exit_code code,
                               const struct summary *s, size_t layers)
{
    json_t *comparison = compare_with(old, report);
    const enum exit_code written = reports_write(report, columns);
    if (code == EXIT_DONE) code = written;
    const enum exit_code traced = trace_write();
    if (code == EXIT_DONE) code = traced;
    if (code == EXIT_DONE) code = verdict(s, layers);
    if (code == EXIT_DONE) code = compare_verdict(comparison);
    json_decref(comparison);
    return code;
}

/* `old`: the report to compare with, or NULL. */
static enum exit_code bench(const struct work *work, const struct timing *timing, const json_t *old)
{
    const struct suite *suite = &work->suite;
    const struct opened *opened = &work->opened;
    struct result *results = calloc(suite->count, sizeof *results);
    struct roofline roofline = {.layers = calloc(suite->count, sizeof *roofline.layers)};
    enum exit_code code = results == NULL || roofline.layers == NULL
                              ? failed_work("the results need memory that is not there")
                              : EXIT_DONE;
    watch_interrupts();
    if (code == EXIT_DONE && !options.no_ceilings) {
        progress(0, (int)suite->count, "measuring the device's ceilings");
        code = roofline_measure(opened, &roofline);
        progress(0, 0, "");
    }
    if (code == EXIT_DONE) code = trace_begin(opened);
    if (code == EXIT_DONE) {
        const double first_peak = roofline.probed_gflops;
        if (table_wanted()) {
            print_device(work->number, opened->device);
            print_head();
        }
        const struct summary s = time_layers(opened, suite, timing, &roofline, results);
        if (!options.no_ceilings && !interrupted())
            code = roofline_measure_again(opened, &roofline);
        progress(0, 0, "");
        if (roofline_peak(&roofline) > 1.1 * first_peak)
            notice(
                "the peak was %.1f GFLOP/s before the layers and is %.1f after them: the machine "
                "was busy",
                first_peak, roofline_peak(&roofline));
        if (table_wanted()) print_end(suite, &s, results, &roofline);
        code = conclude(with_origin(report_json(work->number, opened->device, timing, &roofline,
                                                suite, results)),
                        old, code, &s, suite->count);
    }
    trace_end();
    free(roofline.layers);
    for (size_t i = 0; results != NULL && i < suite->count; i++) free(results[i].passed_over);
    free(results);
    return code;
}

/* Prints the layers that the options choose. Needs no device. */
static enum exit_code list_layers(void)
{
    struct suite suite;
    enum exit_code code = refuse_times("--list times nothing: leave it out");
    if (code != EXIT_DONE) return code;
    code = choose_layers(&suite, built_in_suite);
    json_t *list = json_array();
    for (size_t i = 0; code == EXIT_DONE && i < suite.count; i++) {
        const struct entry *e = &suite.entries[i];
        char problem[1000];
        tconv_problem_text(&e->problem, problem, sizeof problem);
        const bool whole = e->error == NULL;
        json_array_append_new(list, json_pack("{s:o, s:o, s:o, s:o}", "id", text_json(e->id),
                                              "layer", text_json(e->layer), "problem",
                                              text_json(whole ? problem : NULL), "error",
                                              text_json(e->error)));
        if (!table_wanted()) continue;
        print_names(e->id, e->layer, 28);
        print_wrapped(whole ? problem : e->error, next_part(34));
    }
    suite_free(&suite);
    json_t *report = with_origin(json_pack("{s:o}", "layers", list));
    if (code == EXIT_DONE) return write_json(report);
    json_decref(report);
    return code;
}

enum exit_code command_bench(int argc, const char **argv)
{
    bool leave;
    enum exit_code code = read_options(table,
                                       "[--suite FILE.csv] [--ids B01,...] | --model FILE.xml | "
                                       "--data-shape ... --filter-shape ...",
                                       argc, argv, &leave);
    if (leave) return code;
    if (options.list) return list_layers();
    struct work work = {.number = 0};
    struct timing timing = {.runs = 0, .repeat = 1};
    json_t *old = NULL;
    if (options.plot != NULL && options.no_ceilings)
        return wrong_request("--plot is given, but --no-ceilings leaves out the roofline that it "
                             "draws");
    if (!read_number("--runs", options.runs, 1, MOST_RUNS, "", &timing.runs) ||
        !read_number("--repeat", options.repeat, 1, MOST_RUNS, "", &timing.repeat))
        return EXIT_REQUEST_WRONG;
    if ((code = compare_open(&old)) == EXIT_DONE &&
        (code = work_open(&work, built_in_suite)) == EXIT_DONE &&
        (options.plot == NULL || (code = plot_check()) == EXIT_DONE))
        code = bench(&work, &timing, old);
    json_decref(old);
    work_close(&work);
    return code;
}
