/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of layers: the built-in suite, a suite in a CSV file, the transposed convolutions of a
 * model. */
#ifndef TCONV_TOOL_SUITE_H
#define TCONV_TOOL_SUITE_H

#include "tool/tool.h"

/* One layer to time. */
struct entry {
    char *id;
    char *layer; /* its name */
    tconv_problem problem;
    void *weights; /* the filter's values; NULL: any will do */
    tconv_type weights_type;
    char *error;      /* not NULL: why the layer cannot be run */
    bool file_failed; /* the error is a file that could not be read */
    bool is_listed;   /* --ids names it */
};

struct suite {
    struct entry *entries;
    size_t count;
};

/* Reads a CSV file with the columns of bench/suite.csv, bench/upsampling.csv or
 * bench/convolutions.csv, and output_shape; NULL: the built-in suite; "upsampling", "convolutions":
 * the built-in ones of convolutions with upsampling or pixel shuffle, and of ordinary ones. */
enum exit_code suite_read(const char *path, struct suite *suite);

/* Reads a file with these columns that the tool embeds: "suite.csv", "upsampling.csv",
 * "convolutions.csv" or "check.csv". */
enum exit_code suite_read_own(const char *name, struct suite *suite);

/* Keeps the entries that --ids names, in the suite's order; unknown names are a wrong request. */
enum exit_code suite_select(struct suite *suite, const char *ids);

/* Adds an entry with copies of the texts; NULL if memory is missing. */
struct entry *suite_add(struct suite *suite, const char *id, const char *layer);

/* Says why an entry's layer cannot be run. The first reason counts. */
void entry_set_error(struct entry *entry, const char *format, ...) TCONV_PRINTF(2, 3);

/* The status of an entry's error: of a file that could not be read, or of the request. */
tconv_status entry_status(const struct entry *entry);

/* Makes the filter's axis of groups a number of groups: [G, A, B, ...] becomes [G*A, B, ...]. */
void suite_take_groups(tconv_problem *problem);

/* Makes a layer one with channels last: a transposed convolution one of the oneAPI form, with its
 * operation, formats and groups; a convolution stays one. The numbers of the filter stay where they
 * are. */
void suite_oneapi(tconv_problem *problem);

/* Changes a layer of NCX data to the same layer of NXC data, as suite_oneapi does. */
void suite_channels_last(tconv_problem *problem);

void suite_free(struct suite *suite);

#endif
