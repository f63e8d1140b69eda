/* SPDX-License-Identifier: Apache-2.0 */
/* Reads suites of layers from CSV files. */
#include "tool/io/suite.h"

#include "base/checked.h"
#include "base/convolves.h"
#include "base/members.h"
#include "base/os.h"
#include "tool/io/array.h"
#include "tool/io/in_file.h"
#include "tool/io/tool_file.h"

#include <csv.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LONGEST = 4 << 20 }; /* bytes of a file: some hundred thousand layers */

/* The lists of a problem are columns by their members' names. */
#define LIST_COLUMN(kind, member, ...) LIST_##member,
#define LIST_NAME(kind, member, ...) {#member, ""},

enum column {
    ID,
    LAYER,
    BATCH,
    IN_CHANNELS,
    OUT_CHANNELS,
    GROUPS,
    INPUT,
    KERNEL,
    TYPE,
    UPSAMPLE,
    PIXEL_SHUFFLE,
    TCONV_PROBLEM_LISTS(LIST_COLUMN) COLUMNS
};

static const struct {
    const char *name;
    const char *absent; /* the value of an absent column or empty field; NULL: it must be there */
} columns[COLUMNS] = {
    {"id", NULL},          {"layer", ""},          {"batch", "1"},
    {"in_channels", NULL}, {"out_channels", NULL}, {"groups", "1"},
    {"input", NULL},       {"kernel", NULL},       {"type", "f32"},
    {"upsample", ""},      {"pixel_shuffle", ""},  TCONV_PROBLEM_LISTS(LIST_NAME)};

/* The state of reading a file. */
struct reader {
    const char *path;
    struct suite *suite;
    int column_at[COLUMNS]; /* field number of each column, or -1 */
    char **fields;
    int count;
    int row;   /* the first names the columns; empty lines do not count */
    bool stop; /* true after the first mistake, or without memory */
    enum exit_code code;
};

struct entry *suite_add(struct suite *suite, const char *id, const char *layer)
{
    struct entry *entries = array_grow(suite->entries, suite->count, sizeof *entries);
    if (entries == NULL) return NULL;
    suite->entries = entries;
    struct entry *entry = &entries[suite->count];
    *entry =
        (struct entry){.id = strdup(id), .layer = strdup(layer), .problem = TCONV_PROBLEM_INIT};
    if (entry->id == NULL || entry->layer == NULL) {
        free(entry->id);
        free(entry->layer);
        return NULL;
    }
    suite->count++;
    return entry;
}

void suite_take_groups(tconv_problem *p)
{
    if (p->filter.rank <= 2) return;
    p->groups = p->filter.dim[0];
    p->filter.dim[1] *= p->groups;
    p->filter.rank--;
    memmove(p->filter.dim, p->filter.dim + 1, (size_t)p->filter.rank * sizeof *p->filter.dim);
}

void suite_oneapi(tconv_problem *p)
{
    p->data_format = TCONV_NXC;
    if (tconv_convolves(p)) return; /* it has formats */
    if (p->operation == TCONV_GROUP_CONV_BACKPROP) suite_take_groups(p);
    p->operation = TCONV_ONEAPI_CONV_BACKPROP;
    p->filter_format = TCONV_OIX;
}

void suite_channels_last(tconv_problem *p)
{
    suite_oneapi(p);
    const int axes = p->data.rank - 2;
    const int64_t channels = p->data.dim[1];
    memmove(p->data.dim + 1, p->data.dim + 2, (size_t)axes * sizeof *p->data.dim);
    p->data.dim[axes + 1] = channels;
}

void entry_set_error(struct entry *entry, const char *format, ...)
{
    if (entry->error != NULL) return;
    char text[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    entry->error = strdup(text);
}

tconv_status entry_status(const struct entry *entry)
{
    return entry->file_failed ? TCONV_ERROR_INTERNAL : TCONV_ERROR_ARGUMENT;
}

static void free_entry(struct entry *entry)
{
    free(entry->id);
    free(entry->layer);
    free(entry->weights);
    free(entry->error);
}

void suite_free(struct suite *suite)
{
    for (size_t i = 0; i < suite->count; i++) free_entry(&suite->entries[i]);
    free(suite->entries);
    *suite = (struct suite){NULL, 0};
}

static void stop(struct reader *r, enum exit_code code)
{
    r->stop = true;
    r->code = code;
}

static const char *field(const struct reader *r, enum column column)
{
    const int at = r->column_at[column];
    const char *text = at >= 0 && at < r->count ? r->fields[at] : "";
    return text[0] == '\0' && columns[column].absent != NULL ? columns[column].absent : text;
}

/* Reads "4x4" as numbers; an empty text as none. */
static bool read_numbers_x(struct reader *r, enum column column, int64_t *numbers, int most,
                           int *count)
{
    const char *const text = field(r, column);
    *count = 0;
    if (text[0] == '\0' || parse_numbers(text, 'x', numbers, most, count) == FLAW_NONE) return true;
    stop(r, wrong_request(most == 1 ? "%s row %d: column %s is \"%s\": it must be a number"
                                    : "%s row %d: column %s is \"%s\": it must be up to %d numbers "
                                      "with x between them, for example 4x4",
                          r->path, r->row, columns[column].name, text, most));
    return false;
}

static bool read_one(struct reader *r, enum column column, int64_t *number)
{
    int count;
    if (!read_numbers_x(r, column, number, 1, &count)) return false;
    if (count == 1) return true;
    stop(r, wrong_request("%s row %d: column %s is empty", r->path, r->row, columns[column].name));
    return false;
}

static void read_columns(struct reader *r)
{
    for (int c = 0; c < COLUMNS; c++) {
        r->column_at[c] = -1;
        for (int i = 0; i < r->count; i++)
            if (strcmp(r->fields[i], columns[c].name) == 0) r->column_at[c] = i;
        if (r->column_at[c] < 0 && columns[c].absent == NULL && !r->stop)
            stop(r, wrong_request("%s has no column %s; its first row must name the columns, as "
                                  "bench/suite.csv does",
                                  r->path, columns[c].name));
    }
}

/* Makes the layer a convolution with upsampling or pixel shuffle, if its columns have factors. */
static bool read_factors(struct reader *r, tconv_problem *p)
{
    tconv_list upsample, shuffle;
    if (!read_numbers_x(r, UPSAMPLE, upsample.value, TCONV_MAX_AXES, &upsample.count) ||
        !read_numbers_x(r, PIXEL_SHUFFLE, shuffle.value, TCONV_MAX_AXES, &shuffle.count))
        return false;
    if (upsample.count == 0 && shuffle.count == 0) return true;
    if ((upsample.count > 0) + (shuffle.count > 0) + (p->strides.count > 0) > 1) {
        stop(r, wrong_request("%s row %d: a layer has one of the columns upsample, pixel_shuffle "
                              "and strides",
                              r->path, r->row));
        return false;
    }
    p->groups = 1;
    if (p->operation == TCONV_GROUP_CONV_BACKPROP) suite_take_groups(p);
    int64_t *dim = p->filter.dim;
    const int64_t in = dim[0] / p->groups, out = dim[1] * p->groups;
    dim[0] = out;
    dim[1] = in;
    p->operation = upsample.count > 0 ? TCONV_UPSAMPLE_CONV : TCONV_CONV_PIXEL_SHUFFLE;
    p->strides = upsample.count > 0 ? upsample : shuffle;
    for (int a = 0; a < shuffle.count; a++)
        if (!tconv_mul(dim[0], shuffle.value[a], &dim[0])) dim[0] = INT64_MAX;
    return true;
}

static void read_layer(struct reader *r)
{
    int64_t batch, in, out, groups, input[TCONV_MAX_AXES], kernel[TCONV_MAX_AXES];
    int axes, kernel_axes;
    if (!read_one(r, BATCH, &batch) || !read_one(r, IN_CHANNELS, &in) ||
        !read_one(r, OUT_CHANNELS, &out) || !read_one(r, GROUPS, &groups) ||
        !read_numbers_x(r, INPUT, input, TCONV_MAX_AXES, &axes) ||
        !read_numbers_x(r, KERNEL, kernel, TCONV_MAX_AXES, &kernel_axes))
        return;
    if (groups < 1 || in % groups != 0 || out % groups != 0) {
        stop(r, wrong_request("%s row %d: %" PRId64 " groups do not divide %" PRId64 " and %" PRId64
                              " channels",
                              r->path, r->row, groups, in, out));
        return;
    }
    const char *id = field(r, ID);
    const size_t length = strlen(id);
    if (length > 0 && (id[0] == ' ' || id[length - 1] == ' ')) {
        stop(r, wrong_request("%s row %d: column id is \"%s\": spaces at its ends must go, because "
                              "--ids takes names without them",
                              r->path, r->row, id));
        return;
    }
    struct entry *entry = suite_add(r->suite, id, field(r, LAYER));
    if (entry == NULL) {
        stop(r, failed_work("%s cannot be read: no memory", r->path));
        return;
    }
    tconv_problem *p = &entry->problem;
    p->data.rank = axes + 2;
    p->data.dim[0] = batch;
    p->data.dim[1] = in;
    memcpy(p->data.dim + 2, input, (size_t)axes * sizeof *input);
    const int front = groups > 1 ? 3 : 2;
    p->operation = groups > 1 ? TCONV_GROUP_CONV_BACKPROP : TCONV_CONV_BACKPROP;
    p->filter.rank = kernel_axes + front;
    p->filter.dim[0] = groups;
    p->filter.dim[front - 2] = in / groups;
    p->filter.dim[front - 1] = out / groups;
    memcpy(p->filter.dim + front, kernel, (size_t)kernel_axes * sizeof *kernel);
#define READ_LIST(kind, member, ...)                                                               \
    if (!read_numbers_x(r, LIST_##member, p->member.value, TCONV_MAX_AXES, &p->member.count))      \
        return;
    TCONV_PROBLEM_LISTS(READ_LIST)
    if (!read_factors(r, p)) return;
    if (!tconv_type_from_name(field(r, TYPE), &p->data_type)) {
        stop(r, wrong_request("%s row %d: column type is \"%s\", which is not an element type",
                              r->path, r->row, field(r, TYPE)));
        return;
    }
    p->filter_type = p->data_type;
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    tconv_error error;
    if (tconv_resolve(p, &geometry, &error) != TCONV_OK)
        stop(r, wrong_request("%s row %d (%s): %s", r->path, r->row, entry->id, error.message));
}

static void on_field(void *text, size_t length, void *state)
{
    struct reader *r = state;
    if (r->stop) return;
    char **fields = array_grow(r->fields, (size_t)r->count, sizeof *fields);
    char *copy = fields == NULL ? NULL
                                : strndup(text == NULL ? "" : text, text == NULL ? 0 : length);
    if (fields != NULL) r->fields = fields;
    if (copy == NULL)
        stop(r, failed_work("%s cannot be read: no memory", r->path));
    else
        r->fields[r->count++] = copy;
}

static void on_line(int terminator, void *state)
{
    (void)terminator;
    struct reader *r = state;
    r->row++;
    if (!r->stop) {
        if (r->row == 1)
            read_columns(r);
        else
            read_layer(r);
    }
    for (int i = 0; i < r->count; i++) free(r->fields[i]);
    r->count = 0;
}

/* Reads a text that is said to be from `path`. */
static enum exit_code read_layers(const char *path, const char *text, size_t length,
                                  struct suite *suite)
{
    struct reader r = {.path = path, .suite = suite};
    json_t *utf8 = json_stringn(text, length);
    if (utf8 == NULL) return wrong_request("%s is not in UTF-8", path);
    json_decref(utf8);
    if (memchr(text, '\0', length) != NULL)
        return wrong_request("%s is not a text: it has a zero byte", path);
    const size_t mark = length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0
                            ? 3
                            : 0; /* some editors begin files with a byte order mark */
    struct csv_parser parser;
    if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI) != 0)
        return failed_work("%s cannot be read: no memory", path);
    if (csv_parse(&parser, text + mark, length - mark, on_field, on_line, &r) != length - mark ||
        csv_fini(&parser, on_field, on_line, &r) != 0) {
        if (!r.stop)
            stop(&r, failed_work("%s row %d: a quote is not closed, or stands inside a field", path,
                                 r.row + 1));
    } else if (!r.stop && suite->count == 0) {
        stop(&r, wrong_request("%s has no layers", path));
    }
    csv_free(&parser);
    for (int i = 0; i < r.count; i++) free(r.fields[i]);
    free(r.fields);
    if (r.stop) suite_free(suite);
    return r.stop ? r.code : EXIT_DONE;
}

enum exit_code suite_read_own(const char *name, struct suite *suite)
{
    *suite = (struct suite){NULL, 0};
    const char *text = tool_file(name);
    return read_layers("the built-in suite", text, strlen(text), suite);
}

enum exit_code suite_read(const char *path, struct suite *suite)
{
    if (path == NULL) return suite_read_own("suite.csv", suite);
    static const char *const own[][2] = {{"upsampling", "upsampling.csv"},
                                         {"convolutions", "convolutions.csv"}};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(path, own[i][0]) == 0) return suite_read_own(own[i][1], suite);
    *suite = (struct suite){NULL, 0};
    size_t length;
    bool opened;
    char *text = in_file_text(path, LONGEST, &length, &opened);
    if (text == NULL) return failed_work("%s cannot be read: %s", path, strerror(errno));
    const enum exit_code code = read_layers(path, text, length, suite);
    free(text);
    return code;
}

/* A name of a list with commas, without the spaces around it. */
struct name {
    const char *begin;
    int length;
};

/* Takes the next name of the list at *at, and moves *at behind its comma; NULL after the last one.
 */
static struct name next_name(const char **at)
{
    struct name name = {*at + strspn(*at, " "), 0};
    const size_t comma = strcspn(name.begin, ",");
    name.length = (int)comma;
    while (name.length > 0 && name.begin[name.length - 1] == ' ') name.length--;
    *at = name.begin[comma] == ',' ? name.begin + comma + 1 : NULL;
    return name;
}

/* Compares a name with an entry's id, in any letter case. */
static int compare_name(const void *wanted, const void *candidate)
{
    const struct name *name = wanted;
    const char *id = (*(const struct entry *const *)candidate)->id;
    const int order = strncasecmp(name->begin, id, (size_t)name->length);
    return order != 0 ? order : strlen(id) > (size_t)name->length ? -1 : 0;
}

static int compare_ids(const void *a, const void *b)
{
    return strcasecmp((*(struct entry *const *)a)->id, (*(struct entry *const *)b)->id);
}

/* Marks the entries that the list names. `sorted` has them by their ids. */
static enum exit_code mark_listed(struct entry **sorted, size_t count, const char *ids)
{
    for (const char *at = ids; at != NULL;) {
        const struct name name = next_name(&at);
        struct entry **found = bsearch(&name, sorted, count, sizeof *sorted, compare_name);
        if (found == NULL)
            return wrong_request("--ids names \"%.*s\", which no layer of the suite is called; "
                                 "tconv-cl bench --list%s%s prints the ids",
                                 name.length, name.begin, options.suite != NULL ? " --suite " : "",
                                 options.suite != NULL ? options.suite : "");
        /* Layers may share an id. Equal ids are adjacent: mark all. */
        if ((*found)->is_listed) continue;
        while (found > sorted && compare_name(&name, found - 1) == 0) found--;
        for (; found < sorted + count && compare_name(&name, found) == 0; found++)
            (*found)->is_listed = true;
    }
    return EXIT_DONE;
}

enum exit_code suite_select(struct suite *suite, const char *ids)
{
    struct entry **sorted = malloc((suite->count + 1) * sizeof *sorted);
    if (sorted == NULL) return failed_work("--ids needs memory that is not there");
    for (size_t i = 0; i < suite->count; i++) {
        sorted[i] = &suite->entries[i];
        sorted[i]->is_listed = false;
    }
    qsort(sorted, suite->count, sizeof *sorted, compare_ids);
    const enum exit_code code = mark_listed(sorted, suite->count, ids);
    free(sorted);
    if (code != EXIT_DONE) return code;
    size_t kept = 0;
    for (size_t i = 0; i < suite->count; i++)
        if (suite->entries[i].is_listed)
            suite->entries[kept++] = suite->entries[i];
        else
            free_entry(&suite->entries[i]);
    suite->count = kept;
    return EXIT_DONE;
}
