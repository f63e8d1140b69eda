/* SPDX-License-Identifier: Apache-2.0 */
/* Reads numbers and lists of numbers, and the values of options that have them. */
#include "base/range.h"
#include "base/text.h"
#include "tool/tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum flaw parse_numbers(const char *text, char separator, int64_t *numbers, int most, int *count)
{
    *count = 0;
    for (const char *at = text;; at++) {
        char *end;
        errno = 0;
        const long long number = strtoll(at, &end, 10);
        if (end == at) return FLAW_TEXT;
        end += strspn(end, " ");
        if (*end != '\0' && (*end != separator || most == 1)) return FLAW_TEXT;
        if (errno == ERANGE) return FLAW_RANGE;
        if (*count == most) return FLAW_COUNT;
        numbers[(*count)++] = number;
        if (*end == '\0') return FLAW_NONE;
        at = end;
    }
}

bool read_numbers(const char *option, const char *text, int64_t *numbers, int most, int *count)
{
    switch (parse_numbers(text, ',', numbers, most, count)) {
    case FLAW_NONE: return true;
    case FLAW_TEXT:
        wrong_request(
            most == 1
                ? "%s is \"%s\": it must be a number"
                : "%s is \"%s\": it must be numbers with commas between them, for example 2,2",
            option, text);
        break;
    case FLAW_RANGE:
        wrong_request("%s is \"%s\": a number does not fit into 64 bits", option, text);
        break;
    case FLAW_COUNT: wrong_request("%s is \"%s\": more than %d numbers", option, text, most);
    }
    return false;
}

bool read_number(const char *option, const char *text, int64_t least, int64_t most,
                 const char *unit, int64_t *number)
{
    int count;
    char range[TCONV_RANGE_TEXT];
    if (text == NULL) return true;
    if (!read_numbers(option, text, number, 1, &count)) return false;
    if (*number >= least && *number <= most) return true;
    tconv_range_text(least, most, range);
    wrong_request("%s is %" PRId64 ": it must be %s%s", option, *number, range, unit);
    return false;
}

int read_reals(const char *option, const char *text, double *numbers, int most)
{
    int count = 0;
    for (const char *at = text;; at++) {
        char *end;
        const double number = strtod(at, &end);
        if (end == at || (*end != ',' && *end != '\0') || count == most) {
            wrong_request("%s is \"%s\": %s needed", option, text,
                          most == 1 ? "a number is" : "two numbers with a comma between them are");
            return -1;
        }
        numbers[count++] = number;
        if (*end == '\0') return count;
        at = end;
    }
}

void write_numbers(const int64_t *numbers, int count, char *text, size_t size)
{
    struct tconv_text list = tconv_text_begin(text, size);
    for (int i = 0; i < count; i++)
        tconv_text_add(&list, "%s%" PRId64, i == 0 ? "" : ",", numbers[i]);
}
