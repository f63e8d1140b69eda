/* SPDX-License-Identifier: Apache-2.0 */
/* tconv-cl check: every kernel family on a problem, compared with the f64 oracle. */
#include "roofs.h"
#include "suite.h"
#include "trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct poptOption layers[] = {
    {"suite", 0, POPT_ARG_STRING, &options.suite, 0,
     "check the layers of a list with the columns of bench/suite.csv", "FILE.csv"},
    {"ids", 0, POPT_ARG_STRING, &options.ids, 0, "only these layers of the suite", "B01,B02,..."},
    POPT_TABLEEND,
};

static const struct poptOption table[] = {
    {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)problem_table, 0,
     "One problem (without any: a built-in set):", NULL},
    {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)layers, 0, "Or a suite:", NULL},
    {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)algorithm_table, 0, "How:", NULL},
    {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)common_table, 0, "Options:", NULL},
    POPT_AUTOHELP POPT_TABLEEND,
};

enum { SAMPLES = 20000 };

/* The built-in set: small problems, each for a reason. */
static const struct {
    const char *why;
    tconv_operation operation;
    int rank;
    int64_t data[5], filter[6];
    int64_t s[3], d[3], pb[3], pe[3], op[3];
} built_in[] = {
    {"4x4 stride 2",
     TCONV_CONV_BACKPROP,
     4,
     {1, 16, 12, 40},
     {16, 12, 4, 4},
     {2, 2},
     {1, 1},
     {1, 1},
     {1, 1},
     {0, 0}},
    {"3x3 stride 2, output padding",
     TCONV_CONV_BACKPROP,
     4,
     {2, 7, 9, 33},
     {7, 19, 3, 3},
     {2, 2},
     {1, 1},
     {1, 1},
     {1, 1},
     {1, 1}},
    {"kernel equals stride",
     TCONV_CONV_BACKPROP,
     4,
     {1, 20, 17, 31},
     {20, 13, 2, 2},
     {2, 2},
     {1, 1},
     {0, 0},
     {0, 0},
     {0, 0}},
    {"kernel smaller than stride",
     TCONV_CONV_BACKPROP,
     4,
     {1, 5, 11, 13},
     {5, 7, 2, 2},
     {3, 3},
     {1, 1},
     {0, 0},
     {0, 0},
     {0, 0}},
    {"stride and dilation share a factor",
     TCONV_CONV_BACKPROP,
     4,
     {1, 5, 9, 10},
     {5, 6, 5, 5},
     {4, 4},
     {6, 6},
     {5, 5},
     {5, 5},
     {3, 3}},
    {"pads larger than the kernel",
     TCONV_CONV_BACKPROP,
     4,
     {1, 3, 14, 15},
     {3, 4, 3, 3},
     {2, 2},
     {1, 1},
     {6, 7},
     {5, 4},
     {0, 0}},
    {"groups",
     TCONV_GROUP_CONV_BACKPROP,
     4,
     {2, 12, 8, 18},
     {4, 3, 5, 4, 4},
     {2, 2},
     {1, 1},
     {1, 1},
     {1, 1},
     {0, 0}},
    {"depthwise",
     TCONV_GROUP_CONV_BACKPROP,
     4,
     {1, 13, 16, 21},
     {13, 1, 1, 8, 8},
     {4, 4},
     {1, 1},
     {2, 2},
     {2, 2},
     {0, 0}},
    {"vocoder", TCONV_CONV_BACKPROP, 3, {1, 24, 150}, {24, 17, 16}, {8}, {1}, {4}, {4}, {0}},
    {"dilated line", TCONV_CONV_BACKPROP, 3, {1, 8, 500}, {8, 8, 7}, {1}, {9}, {27}, {27}, {0}},
    {"segmentation head",
     TCONV_CONV_BACKPROP,
     4,
     {1, 5, 4, 5},
     {5, 5, 64, 64},
     {32, 32},
     {1, 1},
     {0, 0},
     {0, 0},
     {0, 0}},
    {"overlap-add", TCONV_CONV_BACKPROP, 3, {1, 1, 40}, {1, 1, 1024}, {256}, {1}, {0}, {0}, {0}},
    {"volume",
     TCONV_CONV_BACKPROP,
     5,
     {1, 6, 5, 6, 7},
     {6, 5, 3, 3, 3},
     {2, 2, 2},
     {1, 1, 1},
     {1, 1, 1},
     {1, 1, 1},
     {1, 1, 1}},
    {"one point",
     TCONV_CONV_BACKPROP,
     4,
     {3, 10, 1, 1},
     {10, 11, 4, 4},
     {1, 1},
     {1, 1},
     {0, 0},
     {0, 0},
     {0, 0}},
};

static void set_list(tconv_list *list, int axes, const int64_t *values)
{
    list->count = axes;
    memcpy(list->value, values, (size_t)axes * sizeof *values);
}

static enum exit_code built_in_set(struct suite *suite)
{
    for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++) {
        char id[32];
        snprintf(id, sizeof id, "C%02zu", i + 1);
        struct entry *entry = suite_add(suite, id, built_in[i].why);
        if (entry == NULL) return failed_work("no memory");
        tconv_problem *p = &entry->problem;
        const int axes = built_in[i].rank - 2;
        p->operation = built_in[i].operation;
        p->data.rank = built_in[i].rank;
        p->filter.rank = built_in[i].rank + (p->operation == TCONV_GROUP_CONV_BACKPROP);
        memcpy(p->data.dim, built_in[i].data, (size_t)p->data.rank * sizeof *p->data.dim);
        memcpy(p->filter.dim, built_in[i].filter, (size_t)p->filter.rank * sizeof *p->filter.dim);
        set_list(&p->strides, axes, built_in[i].s);
        set_list(&p->dilations, axes, built_in[i].d);
        set_list(&p->pads_begin, axes, built_in[i].pb);
        set_list(&p->pads_end, axes, built_in[i].pe);
        set_list(&p->output_padding, axes, built_in[i].op);
    }
    return EXIT_DONE;
}

static enum exit_code choose_problems(struct suite *suite)
{
    *suite = (struct suite){NULL, 0};
    if (options.data_shape == NULL && options.filter_shape == NULL) {
        if (options.suite == NULL && options.ids == NULL) return built_in_set(suite);
        const enum exit_code code = suite_read(options.suite, suite);
        return code == EXIT_DONE && options.ids != NULL ? suite_select(suite, options.ids) : code;
    }
    tconv_problem problem = TCONV_PROBLEM_INIT;
    const enum exit_code code = read_problem_with_shapes(&problem);
    if (code != EXIT_DONE) return code;
    struct entry *entry = suite_add(suite, "1", "by options");
    if (entry == NULL) return failed_work("no memory");
    entry->problem = problem;
    return EXIT_DONE;
}

struct tally {
    int passed, failed, refused, wrong_requests;
    json_t *results;
};

static void report(struct tally *tally, const struct entry *e, const char *algorithm,
                   const char *verdict, const struct trial *t)
{
    const bool compared = t->compared > 0 && isfinite(t->max_error);
    if (options.json == NULL) {
        progress(0, 0, "");
        printf("%-4s %-36.36s %-14s %-8s", e->id, e->layer, algorithm, verdict);
        if (t->error[0] != '\0')
            printf(" %s\n", t->error);
        else
            printf(" max error %.2g of its bound, %zu positions\n", t->max_error, t->compared);
        fflush(stdout);
    }
    json_array_append_new(tally->results,
                          json_pack("{s:s, s:s, s:s, s:s, s:o, s:I, s:o}", "id", e->id, "layer",
                                    e->layer, "algorithm", algorithm, "verdict", verdict,
                                    "max_error", compared ? json_real(t->max_error) : json_null(),
                                    "compared", (json_int_t)t->compared, "error",
                                    t->error[0] == '\0' ? json_null() : json_string(t->error)));
}

static void check_entry(tconv_host *host, const struct entry *entry, struct tally *tally)
{
    struct trial trial;
    if (!trial_prepare(&trial, host, &entry->problem, NULL)) {
        tally->failed++;
        tally->wrong_requests += tconv_status_is_request(trial.status);
        report(tally, entry, "-", "failed", &trial);
        trial_free(&trial);
        return;
    }
    const bool one = options.algorithm != NULL && strcmp(options.algorithm, "auto") != 0;
    for (int a = 0; one ? a == 0 : tconv_algorithm_name(a) != NULL; a++) {
        const char *algorithm = one ? options.algorithm : tconv_algorithm_name(a);
        trial.compared = 0;
        if (trial_run(&trial, algorithm) && trial_verify(&trial, SAMPLES)) {
            tally->passed++;
            report(tally, entry, algorithm, "passed", &trial);
        } else if (trial.status == TCONV_ERROR_ALGORITHM && !one) {
            tally->refused++;
            report(tally, entry, algorithm, "refused", &trial);
        } else {
            tally->failed++;
            tally->wrong_requests += tconv_status_is_request(trial.status);
            report(tally, entry, algorithm, "failed", &trial);
        }
    }
    trial_free(&trial);
}

enum exit_code command_check(int argc, const char **argv)
{
    bool leave;
    enum exit_code code =
        read_options(table, "[--data-shape ... --filter-shape ... ATTRIBUTES | --suite FILE.csv]",
                     argc, argv, &leave);
    if (leave) return code;
    struct suite suite;
    int number;
    tconv_host *host = NULL;
    tconv_error error;
    struct tally tally = {0, 0, 0, 0, json_array()};
    code = choose_problems(&suite);
    if (code == EXIT_DONE && (code = choose_device(&number)) == EXIT_DONE &&
        tconv_host_create(number, &host, &error) != TCONV_OK)
        code = failed_call(&error);
    for (size_t i = 0; i < suite.count && code == EXIT_DONE; i++) {
        progress((int)i, (int)suite.count, suite.entries[i].layer);
        check_entry(host, &suite.entries[i], &tally);
    }
    progress(0, 0, "");
    if (code == EXIT_DONE && options.json != NULL)
        code = write_json(options.json, json_pack("{s:i, s:i, s:i, s:O}", "passed", tally.passed,
                                                  "failed", tally.failed, "refused", tally.refused,
                                                  "results", tally.results));
    else if (code == EXIT_DONE)
        printf("%d passed, %d failed, %d refused by a family\n", tally.passed, tally.failed,
               tally.refused);
    json_decref(tally.results);
    if (code == EXIT_DONE && tally.failed > 0) {
        code = tally.wrong_requests == tally.failed ? EXIT_REQUEST_WRONG : EXIT_WORK_FAILED;
        if (code == EXIT_REQUEST_WRONG)
            wrong_request("the problem cannot be checked: see above");
        else
            failed_work("%d comparisons failed", tally.failed);
    }
    tconv_host_release(host);
    suite_free(&suite);
    return code;
}
