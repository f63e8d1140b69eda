/* SPDX-License-Identifier: Apache-2.0 */
/* Names and values that other systems have for what the tool's options say. */
#include "tool/foreign_list.h"
#include "tool/tool.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

struct foreign {
    const char *names, *write;
};

static const struct foreign list[] = {
#define F(names, write) {names, write},
    FOREIGN_OPTIONS(F) FOREIGN_TOOL_OPTIONS(F)
#undef F
};

static const struct {
    const char *options;
    struct foreign value;
} values[] = {
#define V(options, names, write) {options, {names, write}},
    FOREIGN_VALUES(V)
#undef V
};

/* True if a word is one of the names, in any letter case. */
static bool is_among(const char *names, const char *word, size_t length)
{
    for (const char *name = names; *name != '\0'; name += strspn(name, " ")) {
        const size_t own = strcspn(name, " ");
        size_t i = 0;
        while (i < own && own == length &&
               tolower((unsigned char)name[i]) == tolower((unsigned char)word[i]))
            i++;
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

/* What our option takes in place of a value of the option that a template replaces: a translation's
 * first word, or the value itself. `at` is where the value goes, behind the name of our option. */
static const char *translated(const char *template, const char *at, const char *value, int *length)
{
    const char *end = at > template && at[-1] == ' ' ? at - 1 : at, *name = end;
    while (name > template && name[-1] != ' ') name--;
    if (end == at || strncmp(name, "--", 2) != 0) return value;
    const char *write =
        find_value(name + 2, (size_t)(end - name) - 2, value, strcspn(value, ":")); /* cuda:0 */
    if (write == NULL) return value;
    *length = (int)strcspn(write, ",; ");
    return write;
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
    if (is_among("same", value, strlen(value)))
        snprintf(
            text, size,
            "--pads-begin and --pads-end, together kernel - stride, the smaller half first; or, if "
            "no kernel is smaller than its stride, --rules onnx --auto-pad same_upper");
    else
        snprintf(text, size, "--auto-pad %s", value);
}

bool foreign_option(const char *name, size_t length, const char *value, char *text, size_t size)
{
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        if (!is_among(list[i].names, name, length)) continue;
        const bool pads = is_among("padding pad pads", name, length);
        if (pads && value != NULL && isalpha((unsigned char)value[0]))
            write_pads(value, text, size);
        else
            write_for(list[i].write, value == NULL ? "..." : value, text, size);
        return true;
    }
    return false;
}
