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

static char within[500]; /* words before messages */

size_t messages_within(const char *words)
{
    const size_t outside = strlen(within);
    snprintf(within + outside, sizeof within - outside, "%s: ", words);
    return outside;
}

void messages_end(size_t outside)
{
    within[outside] = '\0';
}

static void say(const char *format, va_list arguments)
{
    progress(0, 0, "");
    char text[2000];
    const size_t before = strlen(within);
    memcpy(text, within, before);
    vsnprintf(text + before, sizeof text - before, format, arguments);
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

/* Prints a text in a column of `width` characters, cut off or padded. */
static void print_column(const char *text, int width)
{
    int shown = 0; /* counts characters: the second and later bytes of a UTF-8 character begin with
                      the bits 10 */
    for (; *text != '\0' && (shown < width || (*text & 0xc0) == 0x80); text++) {
        putchar(shown_as(*text));
        shown += (*text & 0xc0) != 0x80;
    }
    for (; shown < width; shown++) putchar(' ');
}

void print_names(const char *id, const char *layer, int width)
{
    enum { LEAST = 4 };
    const int length = (int)strlen(id);
    print_column(id, length < LEAST ? LEAST : length);
    putchar(' ');
    print_column(layer, width);
}

const char *next_line(const char **text, int *length)
{
    const char *line = *text;
    if (line == NULL || *line == '\0') return NULL;
    *length = (int)strcspn(line, "\n");
    *text = line + *length + (line[*length] == '\n');
    return line;
}

void add_name(struct names *names, const char *name)
{
    if (strcmp(name, "?") == 0) return;
    const size_t used = strlen(names->text);
    snprintf(names->text + used, sizeof names->text - used, "%s%s", used == 0 ? "" : ", ", name);
    names->last = used == 0 ? 0 : used + 2;
}

void end_names(struct names *names, const char *conjunction)
{
    char last[100];
    if (names->last == 0) return;
    snprintf(last, sizeof last, "%s", names->text + names->last);
    snprintf(names->text + names->last - 2, sizeof names->text - names->last + 2, " %s %s",
             conjunction, last);
}

const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

enum { WIDTH = 100 /* of tables */ };

/* The columns of the terminal behind a stream: COLUMNS, else what the terminal says, else those of
 * tables. 0 if it is not a terminal. */
static int columns_of(FILE *stream)
{
    enum { FEWEST = 40 };
    if (!system_is_terminal(stream)) return 0;
    const char *const given = getenv("COLUMNS");
    int columns = given == NULL ? 0 : atoi(given);
    if (columns <= 0) columns = system_columns(stream);
    if (columns <= 0) return WIDTH;
    return columns < FEWEST ? FEWEST : columns;
}

static bool is_narrow(void)
{
    const int columns = columns_of(stdout);
    return columns > 0 && columns < WIDTH;
}

int next_part(int column)
{
    enum { INDENT = 5 }; /* below what follows the id */
    if (!is_narrow()) {
        putchar(' ');
        return column;
    }
    printf("\n%*s", INDENT, "");
    return INDENT;
}

void write_lines(FILE *stream, const char *text, int column, int below, int width)
{
    for (int at = column, begin = column; *text != '\0';) {
        const int blanks = (int)strspn(text, " ");
        const int word = (int)strcspn(text + blanks, " ");
        if (width > 0 && at > begin && at + blanks + word > width) {
            fprintf(stream, "\n%*s", below, "");
            at = begin = below;
        } else {
            fprintf(stream, "%*s", blanks, "");
            at += blanks;
        }
        for (int i = 0; i < word; i++) putc(shown_as(text[blanks + i]), stream);
        text += blanks + word;
        at += word;
    }
    putc('\n', stream);
}

void write_wrapped(FILE *stream, const char *text, int column, int below)
{
    const int columns = columns_of(stream);
    write_lines(stream, text, column, below, columns < WIDTH ? columns : WIDTH);
}

void print_wrapped(const char *text, int column)
{
    write_wrapped(stdout, text, column, column);
}

void print_line(const char *format, ...)
{
    char text[1000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    print_wrapped(text, 0);
}

void progress(int done, int total, const char *what)
{
    static int shown; /* characters on the line */
    enum { BAR = 30, NARROW_BAR = 10, TEXT = 40 };
    const int columns = columns_of(stderr);
    if (options.quiet || columns == 0 || (total == 0 && shown == 0)) return;
    if (total == 0) {
        fprintf(stderr, "\r%*s\r", shown, "");
        shown = 0;
        return;
    }
    char line[BAR + 40] = "[";
    const int bar = columns < WIDTH ? NARROW_BAR : BAR, full = bar * done / total;
    for (int i = 0; i < bar; i++) line[1 + i] = i < full ? '#' : '.';
    const int front =
        1 + bar + snprintf(line + 1 + bar, sizeof line - 1 - (size_t)bar, "] %d/%d ", done, total);
    /* A line that reached the last column could not be written anew. */
    const int room = columns - 1 - front, text = room < TEXT ? room : TEXT;
    const int length = fprintf(stderr, "\r%s%-*.*s", line, text, text, what) - 1;
    shown = length > shown ? length : shown;
    fflush(stderr);
}

void print_algorithms(void)
{
    enum { COLUMN = ALGORITHM_WIDTH + 1 };
    for (int i = 0; tconv_algorithm_name(i) != NULL; i++) {
        const char *name = tconv_algorithm_name(i);
        printf("%-*s", COLUMN, name);
        print_wrapped(tconv_algorithm_summary(name), COLUMN);
    }
}
