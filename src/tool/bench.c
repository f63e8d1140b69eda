/* SPDX-License-Identifier: Apache-2.0 */
/* tconv-cl bench: times layers, verifies each in the same run, and says how far each is from the
 * device's ceilings. */
#include "model.h"
#include "roofs.h"
#include "trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct poptOption layers[] = {
    {"suite", 0, POPT_ARG_STRING, &options.suite, 0,
     "a list of layers with the columns of bench/suite.csv; default: the built-in suite",
     "FILE.csv"},
    {"ids", 0, POPT_ARG_STRING, &options.ids, 0, "only these layers of the suite", "B01,B02,..."},
    {"model", 0, POPT_ARG_STRING, &options.model, 0,
     "every transposed convolution of an OpenVINO model; --data-shape for open extents",
     "FILE.xml"},
    {"layer", 0, POPT_ARG_STRING, &options.layer, 0, "only this layer of the model", "NAME"},
    {"runs", 0, POPT_ARG_INT, &options.runs, 0,
     "timed runs of each layer; default: as many as fit into half a second, 5 to 100", "N"},
    {"why", 0, POPT_ARG_NONE, &options.why, 0,
     "say what the cost model thought of each kernel family", NULL},
    POPT_TABLEEND,
};

static const struct poptOption table[] = {
    {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)layers, 0, "Which layers:", NULL},
    {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)problem_table, 0, "One layer, by its shapes:", NULL},
    {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)algorithm_table, 0, "How:", NULL},
    {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)common_table, 0, "Options:", NULL},
    POPT_AUTOHELP POPT_TABLEEND,
};

enum { SAMPLES = 2000, FEWEST_RUNS = 5, MOST_RUNS = 100 };

/* What is known of a layer after its runs. */
struct result {
    char algorithm[40];
    double ms_min, ms_median;
    int runs;
    double gflops, gbs, floor_ms;
    double max_error, error_bound;
    double first_call_ms;
    double workspace_bytes, filter_bytes;
    char error[1100];
    tconv_status status;
};

struct summary {
    double log_sum;
    int timed, failed, wrong_requests;
};

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The timed runs. */
static bool time_runs(struct trial *trial, struct result *r)
{
    double seconds[MOST_RUNS];
    const double begin = now();
    const int wanted = options.runs > MOST_RUNS ? MOST_RUNS : options.runs;
    for (r->runs = 0;
         wanted > 0 ? r->runs < wanted
                    : r->runs < FEWEST_RUNS || (r->runs < MOST_RUNS && now() - begin < 0.5);
         r->runs++) {
        seconds[r->runs] = trial_repeat(trial);
        if (seconds[r->runs] < 0) return false;
    }
    qsort(seconds, (size_t)r->runs, sizeof *seconds, by_value);
    r->ms_min = 1e3 * seconds[0];
    r->ms_median = 1e3 * (r->runs % 2 == 1 ? seconds[r->runs / 2]
                                           : (seconds[r->runs / 2 - 1] + seconds[r->runs / 2]) / 2);
    return true;
}

/* How many of `count` points, `step` apart, meet one of `partners` points, `partner_step` apart, inside the output: inputs
 * that some tap carries there, or taps that carry some input there. */
static int64_t meeting(int64_t count, int64_t step, int64_t partners, int64_t partner_step,
                       int64_t pad, int64_t output)
{
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t first =
            pad -
            i * step; /* the partner's place must be at least this, and less than first + output */
        const int64_t from = first <= 0 ? 0 : (first + partner_step - 1) / partner_step;
        found += from < partners && from * partner_step < first + output;
    }
    return found;
}

/* What must move at least: each input and each weight that reaches the output once, and the output. */
static double compulsory_bytes(const tconv_geometry *g)
{
    double data = (double)g->data_bytes, filter = (double)g->filter_bytes;
    for (int a = 0; a < g->axes; a++) {
        const int64_t x = g->input[a], k = g->kernel[a], s = g->stride[a], d = g->dilation[a];
        data *= (double)meeting(x, s, k, d, g->pad_begin[a], g->output[a]) / (double)x;
        filter *= (double)meeting(k, d, x, s, g->pad_begin[a], g->output[a]) / (double)k;
    }
    return data + filter + (double)g->output_bytes;
}

static void measure(tconv_host *host, const struct roofs *roofs, const struct entry *entry,
                    struct result *r)
{
    *r = (struct result){.algorithm = ""};
    if (entry->error != NULL) {
        snprintf(r->error, sizeof r->error, "%s", entry->error);
        r->status = TCONV_ERROR_ARGUMENT;
        return;
    }
    struct trial trial;
    const bool ran = trial_prepare(&trial, host, &entry->problem, entry->weights) &&
                     trial_run(&trial, options.algorithm) && trial_verify(&trial, SAMPLES) &&
                     time_runs(&trial, r);
    if (trial.plan != NULL) {
        snprintf(r->algorithm, sizeof r->algorithm, "%s", tconv_plan_algorithm(trial.plan));
        r->workspace_bytes = (double)tconv_plan_workspace_bytes(trial.plan);
        r->filter_bytes = (double)tconv_plan_filter_bytes(trial.plan);
        r->first_call_ms = 1e3 * trial.first_call_seconds;
        r->max_error = trial.max_error;
        r->error_bound = trial.error_bound;
    }
    if (ran) {
        const double flops = 2.0 * (double)trial.geometry.macs;
        const double bytes = compulsory_bytes(&trial.geometry);
        r->gflops = 1e-6 * flops / r->ms_median;
        r->gbs = 1e-6 * bytes / r->ms_median;
        r->floor_ms =
            fmax(1e-6 * flops / roofs->peak_gflops, 1e-6 * bytes / roofs_bandwidth(roofs, bytes));
    }
    if (options.why && trial.plan != NULL) {
        char why[2000];
        tconv_plan_why(trial.plan, why, sizeof why);
        notice("%s\n%s", entry->id, why);
    }
    snprintf(r->error, sizeof r->error, "%s", trial.error);
    r->status = trial.status;
    trial_free(&trial);
}

static json_t *real_or_null(bool known, double value)
{
    return known && isfinite(value) ? json_real(value) : json_null();
}

static json_t *result_json(const struct entry *e, const struct result *r)
{
    const bool timed = r->error[0] == '\0';
    char problem[1000];
    tconv_problem_text(&e->problem, problem, sizeof problem);
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o}",
        "id", e->id, "layer", e->layer, "problem", problem, "type",
        tconv_type_name(e->problem.data_type), "algorithm",
        r->algorithm[0] == '\0' ? json_null() : json_string(r->algorithm), "ms_min",
        real_or_null(timed, r->ms_min), "ms_median", real_or_null(timed, r->ms_median), "runs",
        r->runs, "gflops", real_or_null(timed, r->gflops), "gbs", real_or_null(timed, r->gbs),
        "floor_ms", real_or_null(timed, r->floor_ms), "fraction_of_floor",
        real_or_null(timed, r->floor_ms / r->ms_median), "max_error",
        real_or_null(r->algorithm[0] != '\0', r->max_error), "error_bound",
        real_or_null(r->algorithm[0] != '\0', r->error_bound), "first_call_ms",
        real_or_null(r->algorithm[0] != '\0', r->first_call_ms), "workspace_bytes",
        r->algorithm[0] == '\0' ? json_null() : json_integer((json_int_t)r->workspace_bytes),
        "packed_filter_bytes",
        r->algorithm[0] == '\0' ? json_null() : json_integer((json_int_t)r->filter_bytes), "error",
        timed ? json_null() : json_string(r->error));
}

static void print_head(void)
{
    printf("%-4s %-36s %-14s %9s %8s %8s %7s %10s\n", "id", "layer", "algorithm", "ms", "GFLOP/s",
           "GB/s", "% floor", "max error");
}

static void print_result(const struct entry *e, const struct result *r)
{
    progress(0, 0, "");
    printf("%-4s %-36.36s ", e->id, e->layer);
    if (r->error[0] != '\0')
        printf("%-14s %s\n", r->algorithm[0] == '\0' ? "-" : r->algorithm, r->error);
    else
        printf("%-14s %9.4g %8.1f %8.1f %7.1f %10.2g\n", r->algorithm, r->ms_median, r->gflops,
               r->gbs, 100 * r->floor_ms / r->ms_median, r->max_error);
    fflush(stdout);
}

static json_t *report_json(int number, const tconv_device_info *d, const struct roofs *roofs,
                           json_t *results, const struct summary *s)
{
    json_t *sizes = json_array();
    for (int i = 0; i < roofs->sizes; i++)
        json_array_append_new(sizes, json_pack("{s:I, s:f}", "bytes", (json_int_t)roofs->bytes[i],
                                               "gbs", roofs->gbs[i]));
    return json_pack("{s:o, s:f, s:f, s:o, s:o, s:o}", "device", device_json(number, d),
                     "peak_gflops", roofs->peak_gflops, "bandwidth_gbs",
                     roofs->gbs[roofs->sizes - 1], "bandwidth_by_working_set", sizes, "layers",
                     results, "geomean_fraction_of_floor",
                     real_or_null(s->timed > 0, exp(s->log_sum / s->timed)));
}

static enum exit_code bench(int number, tconv_host *host, const struct suite *suite)
{
    const tconv_device_info *d = tconv_device_properties(tconv_host_device(host));
    const bool table_wanted = options.json == NULL || strcmp(options.json, "-") != 0;
    struct roofs roofs;
    progress(0, (int)suite->count + 1, "measuring the device's ceilings");
    enum exit_code code = roofs_measure(host, &roofs);
    if (code != EXIT_DONE) return code;
    progress(0, 0, "");
    if (table_wanted) {
        printf("device %d: %s (%s), peak %.1f GFLOP/s, %.1f GB/s from memory\n", number, d->name,
               d->platform, roofs.peak_gflops, roofs.gbs[roofs.sizes - 1]);
        print_head();
    }
    json_t *results = json_array();
    struct summary s = {0, 0, 0, 0};
    for (size_t i = 0; i < suite->count; i++) {
        const struct entry *entry = &suite->entries[i];
        struct result r;
        progress((int)i + 1, (int)suite->count + 1, entry->layer);
        measure(host, &roofs, entry, &r);
        if (table_wanted) print_result(entry, &r);
        json_array_append_new(results, result_json(entry, &r));
        if (r.error[0] == '\0') {
            s.timed++;
            s.log_sum += log(r.floor_ms / r.ms_median);
        } else if (r.status != TCONV_ERROR_DEVICE_MEMORY) { /* that a layer does not fit is a
                                                               finding, not a failure */
            s.failed++;
            s.wrong_requests += tconv_status_is_request(r.status);
        }
        if (suite->count == 1 && r.error[0] != '\0') failed_work("%s: %s", entry->layer, r.error);
    }
    progress(0, 0, "");
    if (table_wanted) {
        printf("%d of %zu layers timed, each verified against an f64 computation", s.timed,
               suite->count);
        if (s.timed > 0) printf("; geometric mean of floor/time %.3f", exp(s.log_sum / s.timed));
        printf("\n");
    }
    if (options.json != NULL)
        code = write_json(options.json, report_json(number, d, &roofs, results, &s));
    else
        json_decref(results);
    if (code != EXIT_DONE || s.failed == 0) return code;
    return s.wrong_requests == s.failed ? EXIT_REQUEST_WRONG : EXIT_WORK_FAILED;
}

/* The layers of a model, with --data-shape put in where the model leaves extents open. */
static enum exit_code layers_of_model(struct suite *suite)
{
    enum exit_code code = model_read(options.model, suite);
    if (code != EXIT_DONE) return code;
    if (options.layer != NULL) {
        const struct entry *only = model_layer(options.model, suite, options.layer);
        if (only == NULL) return EXIT_REQUEST_WRONG;
        char id[32];
        snprintf(id, sizeof id, "%s", only->id);
        if ((code = suite_select(suite, id)) != EXIT_DONE) return code;
    }
    tconv_shape data;
    if (options.data_shape != NULL &&
        !read_numbers("--data-shape", options.data_shape, data.dim, TCONV_MAX_RANK, &data.rank))
        return EXIT_REQUEST_WRONG;
    for (size_t i = 0; i < suite->count; i++) {
        struct entry *entry = &suite->entries[i];
        bool open = entry->problem.data.rank == 0;
        for (int a = 0; a < entry->problem.data.rank && a < TCONV_MAX_RANK; a++)
            open = open || entry->problem.data.dim[a] == -1;
        if (options.data_shape != NULL)
            model_set_data(entry, &data);
        else if (open && entry->error == NULL)
            entry->error =
                strdup("the model leaves extents of its data open: give them with --data-shape");
        if (entry->error == NULL) tell_rules(entry->layer, &entry->problem);
    }
    return EXIT_DONE;
}

static enum exit_code one_layer(struct suite *suite)
{
    tconv_problem problem = TCONV_PROBLEM_INIT;
    const enum exit_code code = read_problem_with_shapes(&problem);
    if (code != EXIT_DONE) return code;
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    tconv_error error;
    if (tconv_resolve(&problem, &geometry, &error) != TCONV_OK) return failed_call(&error);
    struct entry *entry = suite_add(suite, "1", "by options");
    if (entry == NULL) return failed_work("no memory");
    entry->problem = problem;
    tell_rules("", &problem);
    return EXIT_DONE;
}

static enum exit_code choose_layers(struct suite *suite)
{
    const bool by_shape = options.data_shape != NULL || options.filter_shape != NULL;
    *suite = (struct suite){NULL, 0};
    if (options.model != NULL &&
        (options.suite != NULL || options.ids != NULL || options.filter_shape != NULL))
        return wrong_request("--model cannot be given together with %s",
                             options.suite != NULL ? "--suite"
                             : options.ids != NULL ? "--ids"
                                                   : "--filter-shape");
    if (options.model == NULL && options.layer != NULL)
        return wrong_request("--layer needs --model");
    if (options.runs < 0) return wrong_request("--runs is %d: at least 1 is needed", options.runs);
    if (options.model != NULL) return layers_of_model(suite);
    if (by_shape && (options.suite != NULL || options.ids != NULL))
        return wrong_request("%s cannot be given together with a layer's shapes",
                             options.suite != NULL ? "--suite" : "--ids");
    if (by_shape) return one_layer(suite);
    const enum exit_code code = suite_read(options.suite, suite);
    return code == EXIT_DONE && options.ids != NULL ? suite_select(suite, options.ids) : code;
}

enum exit_code command_bench(int argc, const char **argv)
{
    bool leave;
    enum exit_code code = read_options(table,
                                       "[--suite FILE.csv] [--ids B01,...] | --model FILE.xml | "
                                       "--data-shape ... --filter-shape ...",
                                       argc, argv, &leave);
    if (leave) return code;
    struct suite suite;
    int number;
    tconv_host *host = NULL;
    tconv_error error;
    if ((code = choose_layers(&suite)) == EXIT_DONE &&
        (code = choose_device(&number)) == EXIT_DONE) {
        if (tconv_host_create(number, &host, &error) != TCONV_OK)
            code = failed_call(&error);
        else
            code = bench(number, host, &suite);
    }
    tconv_host_release(host);
    suite_free(&suite);
    return code;
}
