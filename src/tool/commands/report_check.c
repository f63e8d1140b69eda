/* SPDX-License-Identifier: Apache-2.0 */
/* The short check of tconv-cl report: layers of check's built-in set in several types, each by the
 * library's choice; and the device's matrix unit, by the algorithm that uses it. */
#include "tool/bench/trial.h"
#include "tool/commands/report.h"

#include "base/os.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 2000 };

/* Who computes: the library's choice, or the algorithm that uses a CPU's dot products or a GPU's
 * matrix unit. */
enum { AUTO, CPU_UNIT, GPU_UNIT };

/* The most telling ones come first: time may run out. */
static const struct row {
    const char *id; /* of the built-in set */
    tconv_type type;
    int by;
} rows[] = {
    {"C01", TCONV_F32, AUTO},      {"C01", TCONV_I8, CPU_UNIT},  {"C01", TCONV_U8, CPU_UNIT},
    {"C01", TCONV_BF16, CPU_UNIT}, {"C01", TCONV_F16, GPU_UNIT}, {"C01", TCONV_BF16, GPU_UNIT},
    {"C01", TCONV_I8, GPU_UNIT},   {"C08", TCONV_F32, AUTO},     {"C09", TCONV_F32, AUTO},
    {"C13", TCONV_F32, AUTO},      {"C07", TCONV_F16, AUTO},     {"C03", TCONV_U8, AUTO},
    {"C01", TCONV_F64, AUTO},      {"C04", TCONV_BF16, AUTO},    {"C02", TCONV_I32, AUTO},
};

static const char *algorithm_of(int by)
{
    return by == CPU_UNIT ? "dot_vector" : by == GPU_UNIT ? "matrix_group" : NULL;
}

/* The verdict of a trial, and the words behind it. */
struct verdict {
    const char *name;
    char text[1300];
};

/* Runs a layer. Small layers in these types are right on every device, or the device lacks the
 * type. */
static struct verdict run(struct trial *t, const struct opened *opened, const struct entry *layer,
                          const char *algorithm)
{
    struct verdict v = {"failed", ""};
    if (trial_prepare(t, opened, layer) && trial_run(t, algorithm) && trial_verify(t, SAMPLES)) {
        v.name = "passed";
        snprintf(v.text, sizeof v.text, "%.2g of bound", t->max_error);
        return v;
    }
    if (t->status == TCONV_ERROR_UNSUPPORTED || t->status == TCONV_ERROR_DEVICE ||
        (t->status == TCONV_ERROR_ALGORITHM && algorithm != NULL))
        v.name = "refused";
    else if (t->status == TCONV_ERROR_CANCELLED)
        v.name = "skipped";
    snprintf(v.text, sizeof v.text, "%s", t->error);
    return v;
}

static void count(struct report_tally *tally, int number, const char *problem,
                  const char *algorithm, const struct verdict *v)
{
    if (strcmp(v->name, "passed") == 0)
        tally->passed++;
    else if (strcmp(v->name, "refused") == 0)
        tally->refused++;
    else if (strcmp(v->name, "skipped") == 0)
        tally->skipped++;
    else
        report_failure(tally, "device %d, %s: %s: %s", number, algorithm, problem, v->text);
}

/* What is known of the matrix unit after a check that should use it; NULL: nothing. */
static const char *probed(const struct row *row, const struct trial *t)
{
    if (row->by == AUTO || t->plan == NULL) return NULL;
    return tconv_plan_matrix_unit(t->plan) == TCONV_MATRIX_NONE
               ? "not used: its probe failed on this device"
               : "used: its probe passed on this device";
}

/* Prints a row, and below it what is known of the matrix unit, what was passed over, or how to
 * repeat a failure. */
static void print_row(int number, const struct entry *layer, const char *algorithm,
                      const char *problem, const char *unit, const char *passed_over,
                      const struct verdict *v)
{
    const bool failed = strcmp(v->name, "failed") == 0;
    report_line(7, "%-3s %-22.22s %-4s %-*s %s%s%s", layer->id, layer->layer,
                tconv_type_name(layer->problem.data_type), ALGORITHM_WIDTH, algorithm, v->name,
                failed ? "" : ", ", failed ? "" : v->text);
    if (failed) {
        report_line(11, "%s", v->text);
        report_line(11, "tconv-cl check --device %d %s", number, problem);
    }
    if (unit != NULL) report_line(11, "matrix unit %s", unit);
    const char *line;
    for (int length; (line = next_line(&passed_over, &length)) != NULL;)
        report_line(11, "passed over: %.*s", length, line);
}

static json_t *check_row(int number, const struct opened *opened, const struct row *row,
                         const struct entry *layer, double until, struct report_tally *tally)
{
    struct trial trial = {.opened = NULL};
    struct entry own = *layer;
    struct verdict v = {"skipped", "no time left; run it again, then programs are compiled"};
    const char *wanted = algorithm_of(row->by);
    char problem[600];
    own.problem.data_type = own.problem.filter_type = row->type;
    tconv_problem_text(&own.problem, problem, sizeof problem);
    const bool tried = tconv_os_seconds() < until && !interrupted();
    if (tried) v = run(&trial, opened, &own, wanted);
    const char *algorithm = wanted != NULL       ? wanted
                            : trial.plan != NULL ? tconv_plan_algorithm(trial.plan)
                                                 : "-";
    char *passed_over = trial.plan == NULL ? NULL : plan_text(trial.plan, tconv_plan_passed_over);
    const char *unit = probed(row, &trial);
    print_row(number, &own, algorithm, problem, unit, passed_over, &v);
    count(tally, number, problem, algorithm, &v);
    const bool compared = trial.compared > 0 && isfinite(trial.max_error);
    json_t *json = json_pack("{s:o, s:o, s:s, s:s, s:s, s:s, s:o, s:s?, s:o, s:o}", "id",
                             text_json(own.id), "layer", text_json(own.layer), "problem", problem,
                             "type", tconv_type_name(row->type), "algorithm", algorithm, "verdict",
                             v.name, "max_error", known_json(compared, trial.max_error),
                             "matrix_unit", unit, "passed_over", private_json(passed_over), "error",
                             private_json(strcmp(v.name, "passed") == 0 ? NULL : v.text));
    free(passed_over);
    if (tried) trial_free(&trial);
    return json;
}

/* Which algorithm uses the device's unit; AUTO: it has none. */
static int unit_of(const tconv_device_info *d)
{
    switch (d->matrix_unit) {
    case TCONV_MATRIX_NONE:
    case TCONV_MATRIX_PLAIN_QUADS: return AUTO; /* the latter is code, not a unit */
    default: return d->kind == TCONV_DEVICE_CPU ? CPU_UNIT : GPU_UNIT;
    }
}

/* False if the unit does not multiply this type. Of GPUs' units the algorithm says so. */
static bool takes(const tconv_device_info *d, tconv_type type)
{
    return type != TCONV_BF16 || d->kind != TCONV_DEVICE_CPU ||
           d->matrix_unit == TCONV_MATRIX_X86_AVX512_BF16;
}

json_t *report_check(int number, const struct opened *opened, const struct suite *layers,
                     double seconds, struct report_tally *tally)
{
    const tconv_device_info *d = tconv_device_properties(opened->device);
    const int unit = unit_of(d);
    const double until = tconv_os_seconds() + seconds;
    json_t *results = json_array();
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        if (rows[r].by != AUTO && (rows[r].by != unit || !takes(d, rows[r].type))) continue;
        for (size_t i = 0; i < layers->count; i++)
            if (strcmp(layers->entries[i].id, rows[r].id) == 0)
                json_array_append_new(results, check_row(number, opened, &rows[r],
                                                         &layers->entries[i], until, tally));
    }
    return results;
}
