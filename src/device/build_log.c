/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the logs of compilers: whether a program that did not build is wrong, or whether something
 * was missing that may be there later. */
#include "device/program.h"

#include <string.h>

/* True if `text` begins with ":LINE:COLUMN:", as compilers name a place in a source, or as PoCL
 * names one in a macro, with ":LINE:COLUMN <". */
static bool is_place(const char *text)
{
    static const char digits[] = "0123456789";
    if (text[1] < '1' || text[1] > '9') return false;
    const char *column = text + 1 + strspn(text + 1, digits);
    const char *end = column + 1 + (*column == ':' ? strspn(column + 1, digits) : 0);
    return *column == ':' && end > column + 1 && (*end == ':' || strncmp(end, " <", 2) == 0);
}

/* True if a line tells an error at a place of the source: "1:35: error: what", or as PoCL writes
 * it, "error: name:1:35: what". */
static bool is_error_at_place(const char *line, size_t length)
{
    static const char word[] = "error:";
    const char *end = line + length;
    bool error = false, place = false;
    for (const char *at = line; at < end && !(error && place); at++) {
        error = error || strncmp(at, word, strlen(word)) == 0;
        place = place || (*at == ':' && is_place(at));
    }
    return error && place;
}

/* True if a log tells an error at a place of the source. */
static bool has_place(const char *log)
{
    for (const char *line = log; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        if (is_error_at_place(line, length)) return true;
        line += length + (line[length] == '\n');
    }
    return false;
}

/* True if a log tells of a transient failure: a file that cannot be opened or written, missing
 * memory or space, a process that ended. */
static bool is_transient(const char *log)
{
    static const char *const words[] = {" file",   "memory",  "space left", "signal", "nterrupt",
                                        "emporar", "esource", "illed",      "Unable", "unable"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(log, words[i]) != NULL) return true;
    return false;
}

bool tconv_logs_blame_source(const char *first, const char *second)
{
    if (first == NULL || second == NULL) return false;
    if (is_transient(first) || is_transient(second)) return false;
    /* PoCL on a full disk says only that it failed to build the program. */
    return (strcmp(first, second) == 0 && strstr(first, "rror") != NULL) ||
           (has_place(first) && has_place(second));
}
