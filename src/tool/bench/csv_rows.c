/* SPDX-License-Identifier: Apache-2.0 */
/* bench --csv: writes the layers of a report as rows, with the keys of its JSON as columns. */
#include "tool/bench/reports.h"
#include "tool/io/out_file.h"

#include <csv.h>
#include <stdio.h>
#include <string.h>

static const char *const columns[] = {"id",
                                      "layer",
                                      "problem",
                                      "type",
                                      "algorithm",
                                      "tile",
                                      "chosen_by",
                                      "ms_min",
                                      "ms_median",
                                      "spread",
                                      "runs",
                                      "gflops",
                                      "gbs",
                                      "floor_ms",
                                      "fraction_of_floor",
                                      "max_error",
                                      "error_bound",
                                      "first_call_ms",
                                      "workspace_bytes",
                                      "error"};

enum { COLUMNS = sizeof columns / sizeof *columns };

/* Writes a field, empty for null and for a missing value. */
static bool write_field(FILE *file, const json_t *value)
{
    const char *text = json_string_value(value);
    if (text != NULL) return csv_fwrite(file, text, strlen(text)) == 0;
    if (json_is_integer(value))
        return fprintf(file, "%lld", (long long)json_integer_value(value)) > 0;
    return !json_is_real(value) || fprintf(file, "%.9g", json_real_value(value)) > 0;
}

static bool write_rows(FILE *file, const json_t *report)
{
    bool good = true;
    for (int c = 0; c < COLUMNS && good; c++)
        good = fprintf(file, "%s%s", c == 0 ? "" : ",", columns[c]) > 0;
    good = good && fputc('\n', file) != EOF;
    size_t i;
    const json_t *layer;
    json_array_foreach(json_object_get(report, "layers"), i, layer)
    {
        for (int c = 0; c < COLUMNS && good; c++)
            good = (c == 0 || fputc(',', file) != EOF) &&
                   write_field(file, json_object_get(layer, columns[c]));
        good = good && fputc('\n', file) != EOF;
    }
    return good;
}

enum exit_code report_csv(const json_t *report)
{
    struct out_file file;
    const enum exit_code code = out_file_begin("--csv", options.csv, &file);
    return code != EXIT_DONE ? code : out_file_end(&file, write_rows(file.stream, report));
}
