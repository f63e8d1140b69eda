/* SPDX-License-Identifier: Apache-2.0 */
/* Names and values that other systems have for what the tool's options say. */
#include "tool/foreign_list.h"
#include "tool/tool.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define HALVES "--pads-begin %< --pads-end %>"
#define UNKNOWN "..." /* stands for a value that is not known */

struct foreign {
    const char *names, *write;
};

static const struct foreign list[] = {
#define F(names, write) {names, write},
    FOREIGN_OPTIONS(F) FOREIGN_TOOL_OPTIONS(F)
#undef F
};

static const struct {
    struct foreign axis;
    const char *absent;
} axes_list[] = {
#define A(names, absent, write) {{names, write}, absent},
    FOREIGN_AXES(A)
#undef A
};

static const struct {
    const char *options;
    struct foreign value;
} values[] = {
#define V(options, names, write) {options, {names, write}},
    FOREIGN_VALUES(V)
#undef V
};

static char folded(char c)
{
    return c == '_' ? '-' : (char)tolower((unsigned char)c);
}

/* True if a word is one of the names, in any letter case, _ and - being the same. */
static bool is_among(const char *names, const char *word, size_t length)
{
    for (const char *name = names; *name != '\0'; name += strspn(name, " ")) {
        const size_t own = strcspn(name, " ");
        size_t i = 0;
        while (i < own && own == length && folded(name[i]) == folded(word[i])) i++;
        if (i == length && own == length) return true;
        name += own;
    }
    return false;
}

static const char *find_value(const char *option, size_t length, const char *value, size_t size)
{
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (is_among(values[i].options, option, length) &&
            is_among(values[i].value.names, value, size))
            return values[i].value.write;
    return NULL;
}

const char *foreign_value(const char *option, const char *value)
{
    return find_value(option, strlen(option), value, strlen(value));
}

/* Where the second half of a list begins; the end if it has no two halves. */
static const char *middle_of(const char *value)
{
    size_t commas = 0;
    for (const char *at = value; *at != '\0'; at++) commas += *at == ',';
    if (commas % 2 == 0) return value + strlen(value);
    const char *at = value;
    for (size_t seen = 0; seen <= commas / 2; at++) seen += *at == ',';
    return at;
}

/* How many numbers a list with commas has; 0 if it is none. */
static int count_numbers(const char *text)
{
    int64_t numbers[2 * TCONV_MAX_RANK];
    int count;
    const int most = sizeof numbers / sizeof *numbers;
    return parse_numbers(text, ',', numbers, most, &count) == FLAW_NONE ? count : 0;
}

/* True if our option may have this value. */
static bool is_value(const char *option, size_t length, const char *value)
{
    tconv_type type;
    tconv_data_format data;
    tconv_filter_format filter;
    if (is_among("strides dilations pads-begin pads-end output-padding output-shape groups runs "
                 "memory-limit",
                 option, length))
        return count_numbers(value) > 0;
    if (is_among("type filter-type output-type", option, length))
        return tconv_type_from_name(value, &type);
    if (is_among("data-format", option, length)) return tconv_data_format_from_name(value, &data);
    if (is_among("filter-format", option, length))
        return tconv_filter_format_from_name(value, &filter);
    return value[0] != '\0';
}

/* What our option takes in place of a value of the option that a template replaces: a translation
 * without its explanation, or the value itself, or three dots. `at` is where the value goes, behind
 * the name of our option. */
static const char *translated(const char *template, const char *at, const char *value, int *length)
{
    const char *end = at > template && at[-1] == ' ' ? at - 1 : at, *name = end;
    while (name > template && name[-1] != ' ') name--;
    if (end == at || strncmp(name, "--", 2) != 0) return value;
    const size_t own = (size_t)(end - name) - 2;
    const char *write = find_value(name + 2, own, value, strcspn(value, ":")); /* cuda:0 */
    if (write != NULL)
        *length = (int)strcspn(write, ",;");
    else if (!is_value(name + 2, own, value))
        *length = (int)strlen(write = UNKNOWN);
    return write == NULL ? value : write;
}

/* Writes what stands for the option with this value. */
static void write_for(const char *template, const char *value, char *text, size_t size)
{
    const char *middle = middle_of(value);
    const bool halves = *middle != '\0';
    size_t used = 0;
    for (const char *at = template; *at != '\0' && used + 1 < size; at++) {
        if (*at != '%') {
            text[used++] = *at;
            continue;
        }
        const bool first = at[1] == '<', second = at[1] == '>';
        const char *from = second && halves ? middle : value;
        int length = first && halves ? (int)(middle - value) - 1 : (int)strlen(from);
        if (!first && !second) from = translated(template, at, value, &length);
        at += first || second;
        const int written = snprintf(text + used, size - used, "%.*s", length, from);
        used += (size_t)written < size - used ? (size_t)written : size - used - 1;
    }
    text[used] = '\0';
}

/* Writes what stands for pads that are named. */
static void write_pads(const char *value, char *text, size_t size)
{
    const size_t length = strlen(value);
    if (is_among("same", value, length))
        snprintf(
            text, size,
            "--pads-begin and --pads-end, together kernel - stride, the smaller half first; or, if "
            "no kernel is smaller than its stride, --rules onnx --auto-pad same_upper; else with "
            "--output-padding, stride - kernel");
    else if (is_among("valid", value, length))
        snprintf(text, size,
                 "nothing if no kernel is smaller than its stride, else --output-padding, stride - "
                 "kernel");
    else if (is_among("same_upper same_lower", value, length))
        snprintf(text, size,
                 "--auto-pad %s; with --rules onnx the output has stride times the extent", value);
    else if (is_among("explicit notset none", value, length))
        snprintf(text, size, "nothing: pads are numbers by default, --pads-begin and --pads-end");
    else
        snprintf(text, size, "--pads-begin and --pads-end, numbers: \"%.40s\" has no equivalent",
                 value);
}

/* The value that an option has on the command line: what follows "=", or the next argument. NULL if
 * it is not there, or has none. */
static const char *value_of(const char *names, int argc, const char **argv, bool *given)
{
    *given = false;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i] + strspn(argv[i], "-");
        const size_t length = strcspn(word, "=");
        if (word == argv[i] || !is_among(names, word, length)) continue;
        *given = true;
        if (word[length] == '=') return word + length + 1;
        return i + 1 < argc && argv[i + 1][0] != '-' ? argv[i + 1] : NULL;
    }
    return NULL;
}

/* The same for one of the options that each have a number, which is `absent` if none is there. */
static const char *number_of(const char *names, const char *absent, int argc, const char **argv)
{
    bool given;
    const char *value = value_of(names, argc, argv, &given);
    if (!given) return absent;
    return value != NULL && count_numbers(value) == 1 ? value : UNKNOWN;
}

/* Writes what stands for options of one axis each. */
static bool write_axis(const char *name, size_t length, int argc, const char **argv, char *text,
                       size_t size)
{
    char side[40], both[100];
    if (length < 3 || !is_among("-h -w", name + length - 2, 2)) return false;
    for (size_t i = 0; i < sizeof axes_list / sizeof *axes_list; i++) {
        if (!is_among(axes_list[i].axis.names, name, length - 2)) continue;
        snprintf(side, sizeof side, "%.*s-h", (int)length - 2, name);
        const char *height = number_of(side, axes_list[i].absent, argc, argv);
        snprintf(side, sizeof side, "%.*s-w", (int)length - 2, name);
        const char *width = number_of(side, axes_list[i].absent, argc, argv);
        snprintf(both, sizeof both, "%.40s,%.40s", height, width);
        write_for(axes_list[i].axis.write, both, text, size);
        return true;
    }
    return false;
}

/* Writes what stands for options of one side each. */
static void write_sides(int argc, const char **argv, char *text, size_t size)
{
    snprintf(text, size, "--pads-begin %.20s,%.20s --pads-end %.20s,%.20s",
             number_of("pad-top", "0", argc, argv), number_of("pad-left", "0", argc, argv),
             number_of("pad-bottom", "0", argc, argv), number_of("pad-right", "0", argc, argv));
}

bool foreign_option(const char *name, size_t length, int argc, const char **argv, char *text,
                    size_t size)
{
    if (write_axis(name, length, argc, argv, text, size)) return true;
    if (is_among("pad-top pad-left pad-bottom pad-right", name, length)) {
        write_sides(argc, argv, text, size);
        return true;
    }
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        if (!is_among(list[i].names, name, length)) continue;
        bool given;
        char own[40];
        snprintf(own, sizeof own, "%.*s", (int)length, name);
        const char *value = value_of(own, argc, argv, &given), *write = list[i].write;
        if (is_among("padding pad pads", name, length) && value != NULL) {
            if (isalpha((unsigned char)value[0])) {
                write_pads(value, text, size);
                return true;
            }
            const char *data = value_of("data-shape", argc, argv, &given);
            const int axes = data == NULL ? 0 : count_numbers(data) - 2;
            const int count = count_numbers(value);
            const bool onnx = is_among("pads", name, length);
            if (count == 2 * (axes > 0 ? axes : 2))
                write = HALVES; /* all begins, then all ends */
            else if (count == 0 ||
                     (onnx ? count > 1 && count % 2 != 0 : axes > 0 && count > 1 && count != axes))
                value = NULL;
        }
        write_for(write, value == NULL ? UNKNOWN : value, text, size);
        return true;
    }
    return false;
}
