/* SPDX-License-Identifier: Apache-2.0 */
/* Prints messages on stderr, and columns on stdout. */
#include "tool/system/system.h"
#include "tool/tool.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Replaces characters that would end the line or control the terminal by a question mark: texts may
 * come from files. */
static char shown_as(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f ? '?' : c;
}

static void say(const char *format, va_list arguments)
{
    progress(0, 0, "");
    char text[2000];
    vsnprintf(text, sizeof text, format, arguments);
    for (char *at = text; *at != '\0'; at++) *at = shown_as(*at);
    fprintf(stderr, "tconv-cl: %s\n", text);
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

static bool is_stdout(const char *path)
{
    return path != NULL && strcmp(path, "-") == 0;
}

bool table_wanted(void)
{
    if (is_stdout(options.json) || is_stdout(options.csv) || is_stdout(options.plot) ||
        is_stdout(options.trace))
        return false;
    return !options.quiet || (options.json == NULL && options.csv == NULL);
}

void paint(enum colour colour)
{
    static const char *const codes[] = {"\033[0m", "\033[33m", "\033[32m"};
    static bool begun;
    const char *off = getenv("NO_COLOR"), *terminal = getenv("TERM");
    if (!system_is_terminal(stdout) || (off != NULL && off[0] != '\0') ||
        (terminal != NULL && strcmp(terminal, "dumb") == 0))
        return;
    if (begun || colour != COLOUR_NONE) fputs(codes[colour], stdout);
    begun = colour != COLOUR_NONE;
}

void print_column(const char *text, int width)
{
    int shown = 0; /* counts characters: the second and later bytes of a UTF-8 character begin with
                      the bits 10 */
    for (; *text != '\0' && (shown < width || (*text & 0xc0) == 0x80); text++) {
        putchar(shown_as(*text));
        shown += (*text & 0xc0) != 0x80;
    }
    for (; shown < width; shown++) putchar(' ');
}

void print_wrapped(const char *text, int column)
{
    enum { WIDTH = 100 };
    const bool wraps = system_is_terminal(stdout);
    for (int at = column; *text != '\0';) {
        const int blanks = (int)strspn(text, " ");
        const int word = (int)strcspn(text + blanks, " ");
        if (wraps && at > column && at + blanks + word > WIDTH) {
            printf("\n%*s", column, "");
            at = column;
        } else {
            printf("%*s", blanks, "");
            at += blanks;
        }
        for (int i = 0; i < word; i++) putchar(shown_as(text[blanks + i]));
        text += blanks + word;
        at += word;
    }
    putchar('\n');
}

void progress(int done, int total, const char *what)
{
    static int shown; /* characters on the line */
    enum { WIDTH = 30 };
    if (options.quiet || !system_is_terminal(stderr) || (total == 0 && shown == 0)) return;
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
