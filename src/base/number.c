/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes numbers with a decimal point. printf and strtod use that of the application's
 * locale, which may have several bytes. We replace it in the text: a locale of the thread's own is
 * not there on every system, takes memory, and is seen by the application's other threads on some.
 */
#include "base/number.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* True if a character belongs to a number without its decimal point. */
static bool is_plain(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '+' || c == '-';
}

struct tconv_number tconv_number(double value, int digits)
{
    struct tconv_number number;
    snprintf(number.text, sizeof number.text, "%.*g", digits, value);
    char *to = number.text;
    for (const char *from = number.text; *from != '\0';) {
        const bool plain = is_plain(*from);
        *to++ = plain ? *from++ : '.';
        while (!plain && *from != '\0' && !is_plain(*from)) from++;
    }
    *to = '\0';
    return number;
}

/* Writes the locale's decimal point and returns its length. */
static size_t locale_point(char point[16])
{
    snprintf(point, 16, "%.1f", 0.5);
    const size_t length = strlen(point) - 2;
    memmove(point, point + 1, length);
    point[length] = '\0';
    return length;
}

double tconv_number_read(const char *text, char **end)
{
    enum { MOST = 63 };
    char number[MOST + 16], point[16];
    const size_t span = strspn(text, "0123456789+-.eE"), begin = strcspn(text, ".");
    const size_t length = span < MOST ? span : MOST, point_bytes = locale_point(point);
    const bool has_point = begin < length;
    memcpy(number, text, length);
    number[length] = '\0';
    if (has_point) {
        memmove(number + begin + point_bytes, number + begin + 1, length - begin);
        memcpy(number + begin, point, point_bytes);
    }
    char *stop;
    const double value = strtod(number, &stop);
    size_t read = (size_t)(stop - number);
    if (has_point && read > begin) read -= point_bytes - 1;
    *end = (char *)text + read;
    return value;
}
