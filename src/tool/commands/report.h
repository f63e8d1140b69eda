/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of tconv-cl report share: lines of at most 80 characters without the name of the
 * user's home folder, and the checks of a device. */
#ifndef TCONV_TOOL_REPORT_H
#define TCONV_TOOL_REPORT_H

#include "tool/bench/opened.h"
#include "tool/io/suite.h"

/* Prints a line, wrapped at blanks; further lines are indented by two more. Does nothing if a table
 * is not wanted. */
void report_line(int indent, const char *format, ...) TCONV_PRINTF(2, 3);

/* A text with ~ for the user's home folder, from malloc, or as JSON. NULL without memory. */
char *without_home(const char *text);
json_t *private_json(const char *text);

struct report_tally {
    int passed, refused, skipped;
    int failed;       /* checks that failed, and devices that do not answer or open */
    char first[1300]; /* sentence about the first failure */
};

/* Counts a failure; the first one's sentence is kept. */
void report_failure(struct report_tally *tally, const char *format, ...) TCONV_PRINTF(2, 3);

/* Computes small layers in several types on a device, and compares them with the f64 oracle. Those
 * that have not begun after `seconds` are skipped. Returns the results as a JSON array. */
json_t *report_check(int number, const struct opened *opened, const struct suite *layers,
                     double seconds, struct report_tally *tally);

#endif
