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
    const char *option;
    struct foreign value;
} values[] = {
#define V(option, names, write) {option, {names, write}},
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

const char *foreign_value(const char *option, const char *value)
{
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (strcmp(values[i].option, option) == 0 &&
            is_among(values[i].value.names, value, strlen(value)))
            return values[i].value.write;
    return NULL;
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
        at += first || second;
        const char *from = second && halves ? middle : value;
        const int length = first && halves ? (int)(middle - value) - 1 : (int)strlen(from);
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
            "the pads as numbers: both together kernel - stride, the smaller half in "
            "--pads-begin (Keras, JAX); --auto-pad same_upper with --rules onnx gives the same "
            "where the kernel is not smaller than the stride");
    else
        snprintf(text, size, "--auto-pad %s", value);
}

bool foreign_option(const char *name, size_t length, const char *value, char *text, size_t size)
{
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        if (!is_among(list[i].names, name, length)) continue;
        const bool pads = is_among("padding pad pads", name, length);
        const char *format = value == NULL || strstr(list[i].write, "--data-format") == NULL
                                 ? NULL
                                 : foreign_value("data-format", value);
        if (pads && value != NULL && isalpha((unsigned char)value[0]))
            write_pads(value, text, size);
        else
            write_for(list[i].write,
                      format != NULL  ? format
                      : value == NULL ? "..."
                                      : value,
                      text, size);
        return true;
    }
    return false;
}
