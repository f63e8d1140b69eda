/* SPDX-License-Identifier: Apache-2.0 */
/* What selection takes for layers on described devices, as a table in Markdown for docs/gpus.md. */
#ifndef TCONV_HOST_TESTS_CHOICES_H
#define TCONV_HOST_TESTS_CHOICES_H

#include "tool/io/suite.h"

struct choices {
    tconv_type type;
    tconv_data_format format;
    char **devices; /* their names */
    int count;
};

/* Prints the table to stdout, and behind it why algorithms for GPUs were rejected. False after a
 * message on stderr. */
bool print_choices(const struct suite *suite, const struct choices *choices);

#endif
