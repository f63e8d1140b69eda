/* SPDX-License-Identifier: Apache-2.0 */
/* Functions on reports of bench: compare two, write rows of CSV, draw a picture. */
#ifndef TCONV_TOOL_REPORTS_H
#define TCONV_TOOL_REPORTS_H

#include "tool/tool.h"

/* Writes the layers of a report as CSV to the file that --csv names. */
enum exit_code report_csv(const json_t *report);

/* Reads the report that --compare names; NULL if it is not given. */
enum exit_code compare_open(json_t **old);

/* Compares a report with the old one: prints a table where one is wanted, and adds the comparison
 * to the report. Returns a reference of its own, or NULL if there is no old report. */
json_t *compare_with(const json_t *old, json_t *report);

/* What --fail makes of a comparison, which may be NULL. */
enum exit_code compare_verdict(const json_t *comparison);

/* Checks that a picture can be drawn: a wrong request if Python or matplotlib is missing. */
enum exit_code plot_check(void);

/* Draws a report's layers under the roofline into the file that --plot names. */
enum exit_code plot_draw(const json_t *report);

#endif
