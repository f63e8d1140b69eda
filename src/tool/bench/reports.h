/* SPDX-License-Identifier: Apache-2.0 */
/* Functions on reports of bench: compare two, and write what comes of it as JSON, as rows of CSV
 * and as a picture. */
#ifndef TCONV_TOOL_REPORTS_H
#define TCONV_TOOL_REPORTS_H

#include "tool/tool.h"

/* Writes the files that options ask for: --csv with these columns, the last of which is NULL,
 * --plot and --json. Takes the reference. Goes on after an error; the first error counts. */
enum exit_code reports_write(json_t *report, const char *const *columns);

/* Writes the layers of a report as CSV to the file that --csv names; columns are keys of a layer.
 */
enum exit_code csv_rows_write(const json_t *report, const char *const *columns);

/* Reads the report that --compare names; NULL if it is not given. */
enum exit_code compare_open(json_t **old);

/* Compares a report with the old one: prints a table where one is wanted, and adds the comparison
 * to the report. Returns a reference of its own, or NULL if there is no old report. */
json_t *compare_with(const json_t *old, json_t *report);

/* What --fail makes of a comparison, which may be NULL. */
enum exit_code compare_verdict(const json_t *comparison);

/* Checks that a picture can be drawn: a wrong request if Python or matplotlib is missing. */
enum exit_code plot_check(void);

/* Draws a report into the file that --plot names: the layers under the roofline, or the ratios of a
 * comparison. */
enum exit_code plot_draw(const json_t *report);

#endif
