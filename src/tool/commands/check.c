/* SPDX-License-Identifier: Apache-2.0 */
/* tconv-cl check: runs every algorithm on a problem, and compares each with the f64 oracle. */
#include "base/os.h"
#include "tool/bench/layers.h"
#include "tool/bench/trace.h"
#include "tool/bench/trial.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct poptOption table[] = {
    PART(shape_table, "One problem (without any: a built-in set):"),
    PART(attribute_table, "and attributes:"),
    PART(suite_table, "Or a suite:"),
    PART(model_table, "Or a model (--data-shape for extents that it leaves open):"),
    PART(epilogue_table, "Types and epilogue:"),
    PART(check_table, "with tensors of random numbers, or a model's filter:"),
    PART(algorithm_table, "How:"),
    PART(trace_table, NULL),
    END_WITH_DEVICE,
};

enum { SAMPLES = 20000 };

struct tally {
    int passed, failed, refused;
    struct failures failures; /* and refusals of an algorithm that --algorithm names */
    bool one;                 /* problem */
    json_t *results;
};

static void report(struct tally *tally, const struct entry *e, const char *algorithm,
                   const char *verdict, const struct trial *t)
{
    const bool compared = t->compared > 0 && isfinite(t->max_error);
    if (table_wanted()) {
        progress(0, 0, "");
        print_names(e->id, e->layer, 23);
        printf(" %-*s %-8s", ALGORITHM_WIDTH, algorithm, verdict);
        char text[100];
        snprintf(text, sizeof text, "max error %.2g of its bound, %zu outputs", t->max_error,
                 t->compared);
        print_wrapped(t->error[0] != '\0' ? t->error : text, next_part(56));
        fflush(stdout);
    }
    json_array_append_new(
        tally->results,
        json_pack("{s:o, s:o, s:s, s:s, s:o, s:o, s:I, s:o}", "id", text_json(e->id), "layer",
                  text_json(e->layer), "algorithm", algorithm, "verdict", verdict, "max_error",
                  known_json(compared, t->max_error), "error_bound",
                  known_json(compared, t->error_bound), "compared", (json_int_t)t->compared,
                  "error", text_json(t->error[0] == '\0' || t->empty ? NULL : t->error)));
}

static void failed(struct tally *tally, const struct entry *e, const char *algorithm,
                   const struct trial *t)
{
    failures_add(&tally->failures, e, strcmp(algorithm, "-") == 0 ? NULL : algorithm, t->status,
                 t->error);
    const bool refused = t->status == TCONV_ERROR_ALGORITHM;
    *(refused ? &tally->refused : &tally->failed) += 1;
    report(tally, e, algorithm, refused ? "refused" : "failed", t);
}

/* True if no algorithm takes the request that one algorithm refused. The reference takes whatever
 * any algorithm takes, unless the device would abort its loops (TCONV_ERROR_ALGORITHM). If another
 * one takes it, the trial keeps the first algorithm's status and message. */
static bool none_takes(struct trial *trial)
{
    const tconv_status status = trial->status;
    char error[sizeof trial->error];
    if (!tconv_status_is_request(status)) return false;
    memcpy(error, trial->error, sizeof error);
    if (!trial_run(trial, "reference") && tconv_status_is_request(trial->status) &&
        trial->status != TCONV_ERROR_ALGORITHM)
        return true;
    trial->status = status;
    memcpy(trial->error, error, sizeof error);
    return false;
}

static void check_entry(const struct opened *opened, const struct entry *entry, struct tally *tally)
{
    struct trial trial;
    if (!trial_prepare(&trial, opened, entry)) {
        if (trial.empty) { /* nothing to compute, which is right */
            tally->passed++;
            report(tally, entry, "-", "passed", &trial);
        } else if (trial.status == TCONV_ERROR_DEVICE_MEMORY &&
                   !tally->one) { /* one of many that does not fit is not a failure */
            tally->refused++;
            report(tally, entry, "-", "skipped", &trial);
        } else if (trial.status != TCONV_ERROR_CANCELLED) {
            failed(tally, entry, "-", &trial);
        }
        trial_free(&trial);
        return;
    }
    const bool forced = options.algorithm != NULL && strcmp(options.algorithm, "auto") != 0;
    for (int a = 0; forced ? a == 0 : tconv_algorithm_name(a) != NULL; a++) {
        const char *algorithm = forced ? options.algorithm : tconv_algorithm_name(a);
        trial.compared = 0;
        if (trial_run(&trial, algorithm) && trial_verify(&trial, SAMPLES)) {
            tally->passed++;
            report(tally, entry, algorithm, "passed", &trial);
        } else if (trial.status == TCONV_ERROR_CANCELLED) {
            break;
        } else if (trial.status == TCONV_ERROR_ALGORITHM && !forced) {
            tally->refused++;
            report(tally, entry, algorithm, "refused", &trial);
        } else if (!forced && none_takes(&trial)) {
            failed(tally, entry, "-", &trial); /* reported once */
            break;
        } else {
            failed(tally, entry, algorithm, &trial);
        }
    }
    trial_free(&trial);
}

static enum exit_code check(const struct work *work)
{
    const struct suite *suite = &work->suite;
    struct tally tally = {.one = suite->count == 1, .results = json_array()};
    enum exit_code code = EXIT_DONE;
    watch_interrupts();
    for (size_t i = 0; i < suite->count && !interrupted(); i++) {
        const struct entry *entry = &suite->entries[i];
        const double begin = tconv_os_seconds();
        progress((int)i, (int)suite->count, entry->layer);
        check_entry(&work->opened, entry, &tally);
        trace_layer(entry->id, entry->layer, begin);
    }
    progress(0, 0, "");
    if (table_wanted() && !options.quiet)
        printf("%d passed, %d failed, %d refused by an algorithm\n", tally.passed, tally.failed,
               tally.refused);
    code = write_json(json_pack("{s:s, s:i, s:i, s:i, s:o, s:b}", "max_error_is", MAX_ERROR_IS,
                                "passed", tally.passed, "failed", tally.failed, "refused",
                                tally.refused, "results", tally.results, "interrupted",
                                interrupted()));
    const enum exit_code traced = trace_write();
    if (code == EXIT_DONE) code = traced;
    if (code != EXIT_DONE) return code;
    char so_far[60];
    snprintf(so_far, sizeof so_far, "%d comparisons passed", tally.passed);
    return failures_verdict(&tally.failures, so_far,
                            tally.failed == tally.failures.count ? "comparisons failed"
                            : tally.failed == 0                  ? "comparisons were refused"
                                                : "comparisons failed or were refused");
}

enum exit_code command_check(int argc, const char **argv)
{
    bool leave;
    enum exit_code code = read_options(
        table,
        "[--data-shape ... --filter-shape ... ATTRIBUTES | [--suite FILE.csv] [--ids B01,...] | "
        "--model FILE.xml]",
        argc, argv, &leave);
    if (leave) return code;
    struct work work;
    if ((code = work_open(&work, built_in_checks)) == EXIT_DONE &&
        (code = trace_begin(&work.opened)) == EXIT_DONE)
        code = check(&work);
    trace_end();
    work_close(&work);
    return code;
}
