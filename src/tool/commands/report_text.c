/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of tconv-cl report: short enough for an issue, and without the user's name. */
#include "base/os.h"
#include "tool/commands/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The home folder without a slash at its end; "" if there is none, or if it is the root. */
static void find_home(char *home, size_t size)
{
    size_t length = tconv_os_environment("HOME", home, size);
    if (length == 0) length = tconv_os_environment("USERPROFILE", home, size);
    if (length >= size) length = 0;
    while (length > 0 && (home[length - 1] == '/' || home[length - 1] == '\\')) length--;
    home[length] = '\0';
}

/* True if a folder's name that begins at `at` and has `length` bytes is neither the end nor the
 * begin of a longer one. */
static bool stands_alone(const char *text, const char *at, size_t length)
{
    static const char within[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    return (at == text || strchr(within, at[-1]) == NULL) &&
           (at[length] == '\0' || strchr(within, at[length]) == NULL);
}

char *without_home(const char *text)
{
    char home[TCONV_OS_PATH];
    find_home(home, sizeof home);
    const size_t length = strlen(home);
    char *result = malloc(strlen(text) + 1), *end = result;
    if (result == NULL) return NULL;
    for (const char *at = text; *at != '\0';)
        if (length > 0 && strncmp(at, home, length) == 0 && stands_alone(text, at, length)) {
            *end++ = '~';
            at += length;
        } else
            *end++ = *at++;
    *end = '\0';
    return result;
}

json_t *private_json(const char *text)
{
    char *shown = text == NULL ? NULL : without_home(text);
    json_t *json = shown == NULL && text != NULL ? NULL : text_json(shown);
    free(shown);
    return json;
}

void report_line(int indent, const char *format, ...)
{
    enum { WIDTH = 80 };
    if (!table_wanted()) return;
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, arguments);
    char *whole = length < 0 ? NULL : malloc((size_t)length + 1);
    if (whole != NULL) vsnprintf(whole, (size_t)length + 1, format, again);
    va_end(again);
    va_end(arguments);
    char *text = whole == NULL ? NULL : without_home(whole);
    progress(0, 0, "");
    printf("%*s", indent, "");
    if (text == NULL)
        putchar('\n');
    else
        write_lines(stdout, text, indent, indent + 2, WIDTH);
    fflush(stdout); /* if a driver ends the process, all until here is there */
    free(text);
    free(whole);
}

void report_failure(struct report_tally *tally, const char *format, ...)
{
    if (tally->failed++ > 0) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(tally->first, sizeof tally->first, format, arguments);
    va_end(arguments);
}
