/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the tables of the vectors. */
#include "table.h"

#include "support.h"
#include "tool/io/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void full_path(const char *file, char *path, size_t size)
{
    snprintf(path, size, "%s/%s", VECTORS, file);
}

/* Cuts `text` at every `separator` into `parts`; returns how many there are. */
static int cut(char *text, char separator, char ***parts)
{
    int count = 0;
    *parts = NULL;
    for (char *at = text;; at = strchr(at, '\0') + 1) {
        char *end = strchr(at, separator);
        char **more = realloc(*parts, ((size_t)count + 1) * sizeof *more);
        if (more == NULL) failed("no memory");
        *parts = more;
        more[count++] = at;
        if (end == NULL) return count;
        *end = '\0';
    }
}

void read_table(const char *file, struct table *t)
{
    char path[1000];
    full_path(file, path, sizeof path);
    FILE *in = fopen(path, "rb");
    if (in == NULL) failed("%s cannot be opened", path);
    fseek(in, 0, SEEK_END);
    const long size = ftell(in);
    rewind(in);
    t->text = malloc((size_t)size + 1);
    if (t->text == NULL || fread(t->text, 1, (size_t)size, in) != (size_t)size)
        failed("%s cannot be read", path);
    fclose(in);
    t->text[size] = '\0';
    if (size > 0 && t->text[size - 1] == '\n') t->text[size - 1] = '\0';
    char **lines;
    t->row_count = cut(t->text, '\n', &lines);
    t->rows = malloc((size_t)t->row_count * sizeof *t->rows);
    if (t->rows == NULL) failed("no memory");
    for (int r = 0; r < t->row_count; r++) {
        const int columns = cut(lines[r], ',', &t->rows[r]);
        if (r == 0) t->column_count = columns;
        if (columns != t->column_count)
            failed("%s line %d has %d fields, not %d", path, r + 1, columns, t->column_count);
    }
    free(lines);
}

void free_table(struct table *t)
{
    for (int r = 0; r < t->row_count; r++) free(t->rows[r]);
    free(t->rows);
    free(t->text);
}

const char *field(const struct table *t, int row, const char *column)
{
    for (int c = 0; c < t->column_count; c++)
        if (strcmp(t->rows[0][c], column) == 0) return t->rows[row][c];
    failed("there is no column %s", column);
}

void field_list(const struct table *t, int row, const char *column, tconv_list *list)
{
    list->count = 0;
    for (const char *at = field(t, row, column); *at != '\0';) {
        char *end;
        list->value[list->count++] = strtoll(at, &end, 10);
        at = *end == ' ' ? end + 1 : end;
    }
}

float *read_array(const char *file, tconv_shape *shape, size_t *count)
{
    char path[1000];
    full_path(file, path, sizeof path);
    struct npy npy;
    if (npy_read("vector", path, &npy) != EXIT_DONE || npy.type != TCONV_F32)
        failed("%s cannot be read", path);
    *shape = npy.shape;
    *count = 1;
    for (int i = 0; i < shape->rank; i++) *count *= (size_t)shape->dim[i];
    return npy.values;
}
