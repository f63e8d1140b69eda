/* SPDX-License-Identifier: Apache-2.0 */
/* The CSV files of device_tests/vectors: no field has a comma or a quote, lists are separated by
 * one blank. */
#ifndef TCONV_DEVICE_TESTS_TABLE_H
#define TCONV_DEVICE_TESTS_TABLE_H

#include "tconv_cl/tconv_cl.h"

struct table {
    char *text;
    char ***rows; /* rows[0] names the columns */
    int row_count, column_count;
};

/* Reads a file below the folder of the vectors; fails the test where it cannot. */
void read_table(const char *file, struct table *table);
void free_table(struct table *table);

/* The field of a row (1 is the first after the names); fails the test where there is no such
 * column. */
const char *field(const struct table *table, int row, const char *column);

/* A list of numbers; an empty field is an empty list. */
void field_list(const struct table *table, int row, const char *column, tconv_list *list);

/* An .npy file of f32 below that folder. */
float *read_array(const char *file, tconv_shape *shape, size_t *count);

#endif
