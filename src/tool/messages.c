/* SPDX-License-Identifier: Apache-2.0 */
/* What the tool says on stderr, and JSON. */
#include "tool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void say(const char *format, va_list arguments)
{
    progress(0, 0, "");
    fputs("tconv-cl: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

enum exit_code wrong_request(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    return EXIT_REQUEST_WRONG;
}

enum exit_code failed_work(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    return EXIT_WORK_FAILED;
}

enum exit_code failed_call(const tconv_error *error)
{
    return tconv_status_is_request(error->status) ? wrong_request("%s", error->message)
                                                  : failed_work("%s", error->message);
}

void notice(const char *format, ...)
{
    if (options.quiet) return;
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

void progress(int done, int total, const char *what)
{
    static int shown; /* characters on the line */
    enum { WIDTH = 30 };
    if (options.quiet || !isatty(STDERR_FILENO) || (total == 0 && shown == 0)) return;
    if (total == 0) {
        fprintf(stderr, "\r%*s\r", shown, "");
        shown = 0;
        return;
    }
    char bar[WIDTH + 1];
    const int full = WIDTH * done / total;
    for (int i = 0; i < WIDTH; i++) bar[i] = i < full ? '#' : '.';
    bar[WIDTH] = '\0';
    const int length = fprintf(stderr, "\r[%s] %d/%d %-40.40s", bar, done, total, what);
    shown = length > shown ? length : shown;
    fflush(stderr);
}

enum exit_code write_json(const char *path, json_t *json)
{
    if (json == NULL) return failed_work("host memory for the JSON could not be allocated");
    const size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(9);
    const bool to_stdout = strcmp(path, "-") == 0;
    FILE *file = to_stdout ? stdout : fopen(path, "w");
    bool written = file != NULL && json_dumpf(json, file, flags) == 0 && fputc('\n', file) != EOF;
    if (file != NULL && (to_stdout ? fflush(file) : fclose(file)) != 0) written = false;
    json_decref(json);
    return written ? EXIT_DONE : failed_work("%s cannot be written: %s", path, strerror(errno));
}
