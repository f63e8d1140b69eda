/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the files that options ask for, from the report of a command. */
#include "tool/bench/reports.h"

enum exit_code reports_write(json_t *report, const char *const *columns)
{
    if (report == NULL) return failed_work("the results need memory that is not there");
    enum exit_code code = options.csv == NULL ? EXIT_DONE : csv_rows_write(report, columns);
    const enum exit_code drawn = options.plot == NULL ? EXIT_DONE : plot_draw(report);
    if (code == EXIT_DONE) code = drawn;
    const enum exit_code written = write_json(report);
    return code == EXIT_DONE ? written : code;
}
