/* SPDX-License-Identifier: Apache-2.0 */
/* Functions on reports of bench: compare two, write rows of CSV, draw a picture. */
#ifndef TCONV_TOOL_REPORTS_H
#define TCONV_TOOL_REPORTS_H

#include "tool/tool.h"

/* Writes the layers of a report as CSV to the file that --csv names. */
enum exit_code report_csv(const json_t *report);

/* Checks that a picture can be drawn: a wrong request if Python or matplotlib is missing. */
enum exit_code plot_check(void);

/* Draws a report's layers under the roofline into the file that --plot names. */
enum exit_code plot_draw(const json_t *report);

#endif
