/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lists of cases. A line has columns with lists, "gfx90a,gfx942", and stands for a case of
 * each combination. */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 4, MOST_VALUES = 100 };

/* The values of a list with commas; the text is changed. */
struct values {
    const char *list[MOST_VALUES];
    int count;
};

static struct values split(char *text)
{
    struct values values = {.count = 0};
    for (char *value = text; value != NULL && values.count < MOST_VALUES;) {
        values.list[values.count++] = value;
        value = strchr(value, ',');
        if (value != NULL) *value++ = '\0';
    }
    return values;
}

/* Replaces characters of a text. */
static void replace(char *text, char old, char new)
{
    for (; *text != '\0'; text++)
        if (*text == old) *text = new;
}

/* "gather_group:vw=4" as algorithms are named: with spaces. */
static void set_algorithm(struct executed_case *one, const char *text)
{
    snprintf(one->algorithm, sizeof one->algorithm, "%s", text);
    replace(one->algorithm, ':', ' ');
}

/* "u8/i8/i32": the types of data, filter and output. */
static bool set_types(struct executed_case *one, const char *text)
{
    char data[10] = "", filter[10] = "", output[10] = "";
    const int count = sscanf(text, "%9[^/]/%9[^/]/%9[^/]", data, filter, output);
    if (!tconv_type_from_name(data, &one->data_type)) return false;
    one->filter_type = one->data_type;
    one->output_type = TCONV_TYPE_DEFAULT;
    return (count < 2 || tconv_type_from_name(filter, &one->filter_type)) &&
           (count < 3 || tconv_type_from_name(output, &one->output_type));
}

/* The options that are on or off. */
static bool *flag_named(struct executed_case *one, const char *name)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"no_bias", &one->no_bias},       {"scale", &one->scale},
                 {"residual", &one->residual},     {"beta", &one->beta},
                 {"requantize", &one->requantize}, {"wave64", &one->wave64},
                 {"shifted", &one->shifted},       {"may_refuse", &one->may_refuse}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (strcmp(name, flags[i].name) == 0) return flags[i].flag;
    return NULL;
}

static bool set_option(struct executed_case *one, const char *option)
{
    bool *flag = flag_named(one, option);
    if (flag != NULL) return *flag = true;
    char name[20] = "", value[40] = "";
    if (sscanf(option, "%19[^=]=%39s", name, value) != 2) return false;
    if (strcmp(name, "activation") == 0) return tconv_activation_from_name(value, &one->activation);
    if (strcmp(name, "format") == 0) return tconv_data_format_from_name(value, &one->format);
    if (strcmp(name, "math") == 0) return tconv_math_from_name(value, &one->math);
    const unsigned long long number = strtoull(value, NULL, 10);
    if (strcmp(name, "pieces") == 0)
        one->pieces = (int)number;
    else if (strcmp(name, "seed") == 0)
        one->seed = number;
    else if (strcmp(name, "banks") == 0)
        one->banks = number;
    else if (strcmp(name, "most") == 0)
        one->most = number;
    else
        return false;
    return true;
}

static struct executed_case *add(struct executed_cases *cases)
{
    if ((cases->count & (cases->count + 1)) == 0) { /* 0, 1, 3, 7: make room for twice as many */
        void *list = realloc(cases->list, 2 * (cases->count + 1) * sizeof *cases->list);
        if (list == NULL) return NULL;
        cases->list = list;
    }
    return &cases->list[cases->count++];
}

bool executed_cases_add(struct executed_cases *cases, const struct executed_case *one,
                        const char *algorithm)
{
    struct executed_case *added = add(cases);
    char name[sizeof one->algorithm];
    if (added == NULL) return false;
    *added = *one;
    snprintf(added->algorithm, sizeof added->algorithm, "%s", algorithm);
    snprintf(name, sizeof name, "%s", algorithm);
    replace(name, ' ', ':');
    /* The text is "target algorithm types ...". */
    const char *rest = strchr(strchr(one->text, ' ') + 1, ' ');
    snprintf(added->text, sizeof added->text, "%s %s%s", one->target, name, rest);
    return true;
}

/* Adds the cases of a line, whose options are read already, for one activation. */
static bool add_all(struct executed_cases *cases, const struct executed_case *options,
                    const struct values columns[COLUMNS], const char *words)
{
    for (int t = 0; t < columns[0].count; t++)
        for (int a = 0; a < columns[1].count; a++)
            for (int k = 0; k < columns[2].count; k++)
                for (int l = 0; l < columns[3].count; l++) {
                    struct executed_case *one = add(cases);
                    if (one == NULL) return false;
                    *one = *options;
                    snprintf(one->target, sizeof one->target, "%s", columns[0].list[t]);
                    set_algorithm(one, columns[1].list[a]);
                    if (!set_types(one, columns[2].list[k])) return false;
                    snprintf(one->layer, sizeof one->layer, "%s", columns[3].list[l]);
                    snprintf(one->text, sizeof one->text, "%s %s %s %s%s%s%s%s", one->target,
                             columns[1].list[a], columns[2].list[k], one->layer, *words ? " " : "",
                             words, one->activation ? " activation=" : "",
                             one->activation ? tconv_activation_name(one->activation) : "");
                }
    return true;
}

/* Reads the options of a line; the activations, which may be several, are left to the caller. */
static bool read_options(char *text, struct executed_case *options, struct values *activations,
                         char *words, size_t size)
{
    size_t used = 0;
    words[0] = '\0';
    for (char *word = strtok(text, " \n"); word != NULL; word = strtok(NULL, " \n")) {
        if (strncmp(word, "activation=", 11) == 0) {
            *activations = split(word + 11);
            continue;
        }
        if (!set_option(options, word)) return false;
        if (used < size)
            used += (size_t)snprintf(words + used, size - used, "%s%s", used ? " " : "", word);
    }
    return true;
}

static bool read_line(struct executed_cases *cases, char *line, const char *const *layers)
{
    char *column[COLUMNS], words[160];
    for (int c = 0; c < COLUMNS; c++) {
        line += strspn(line, " ");
        column[c] = line;
        line += strcspn(line, " \n");
        if (line == column[c]) return false;
        if (*line != '\0') *line++ = '\0';
    }
    struct values columns[COLUMNS], activations = {{"none"}, 1};
    for (int c = 0; c < COLUMNS; c++) columns[c] = split(column[c]);
    if (strcmp(columns[3].list[0], "*") == 0)
        for (columns[3].count = 0; layers[columns[3].count] != NULL; columns[3].count++)
            columns[3].list[columns[3].count] = layers[columns[3].count];
    struct executed_case options = {.format = TCONV_NCX, .math = TCONV_MATH_EXACT, .pieces = 1};
    if (!read_options(line, &options, &activations, words, sizeof words)) return false;
    for (int a = 0; a < activations.count; a++)
        if (!tconv_activation_from_name(activations.list[a], &options.activation) ||
            !add_all(cases, &options, columns, words))
            return false;
    return true;
}

bool executed_cases_read(const char *path, const char *const *layers, struct executed_cases *cases)
{
    char line[2000], copy[2000];
    bool done = true;
    int number = 0;
    *cases = (struct executed_cases){NULL, 0};
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    if (file == NULL) {
        fprintf(stderr, "%s cannot be read\n", path);
        return false;
    }
    while (done && fgets(line, sizeof line, file) != NULL) {
        number++;
        if (line[0] == '#' || line[strspn(line, " \n")] == '\0') continue;
        memcpy(copy, line, sizeof copy);
        const size_t before = cases->count;
        done = read_line(cases, line, layers);
        for (size_t i = before; i < cases->count; i++) cases->list[i].line = number;
        if (!done) fprintf(stderr, "%s: this line is wrong: %s", path, copy);
    }
    if (file != stdin) fclose(file);
    return done;
}

void executed_cases_free(struct executed_cases *cases)
{
    free(cases->list);
}
