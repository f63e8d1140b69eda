/* SPDX-License-Identifier: Apache-2.0 */
/* --csv: writes the layers of a report as rows, with keys of its JSON as columns. */
#include "tool/bench/reports.h"
#include "tool/io/out_file.h"

#include <csv.h>
#include <stdio.h>
#include <string.h>

/* Writes a field, empty for null and for a missing value. */
static bool write_field(FILE *file, const json_t *value)
{
    const char *text = json_string_value(value);
    if (text != NULL) return csv_fwrite(file, text, strlen(text)) == 0;
    if (json_is_integer(value))
        return fprintf(file, "%lld", (long long)json_integer_value(value)) > 0;
    return !json_is_real(value) || fprintf(file, "%.9g", json_real_value(value)) > 0;
}

static bool write_rows(FILE *file, const json_t *report, const char *const *columns)
{
    bool good = true;
    for (int c = 0; columns[c] != NULL && good; c++)
        good = fprintf(file, "%s%s", c == 0 ? "" : ",", columns[c]) > 0;
    good = good && fputc('\n', file) != EOF;
    size_t i;
    const json_t *layer;
    json_array_foreach(json_object_get(report, "layers"), i, layer)
    {
        for (int c = 0; columns[c] != NULL && good; c++)
            good = (c == 0 || fputc(',', file) != EOF) &&
                   write_field(file, json_object_get(layer, columns[c]));
        good = good && fputc('\n', file) != EOF;
    }
    return good;
}

enum exit_code csv_rows_write(const json_t *report, const char *const *columns)
{
    struct out_file file;
    const enum exit_code code = out_file_begin("--csv", options.csv, &file);
    return code != EXIT_DONE ? code : out_file_end(&file, write_rows(file.stream, report, columns));
}
