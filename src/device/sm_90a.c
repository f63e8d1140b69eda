/* SPDX-License-Identifier: Apache-2.0 */
/* Changes PTX for sm_90 to PTX for sm_90a. */
#include "device/sm_90a.h"

#include "base/matrix_units.h"

#include <stdlib.h>
#include <string.h>

bool tconv_needs_sm_90a(const char *options)
{
    return strstr(options, " -D" TCONV_SM_90A "=1") != NULL;
}

/* A part of a text. */
struct span {
    const char *at, *end;
};

static size_t length(struct span text)
{
    return (size_t)(text.end - text.at);
}

static bool begins(struct span text, const char *word)
{
    return length(text) >= strlen(word) && memcmp(text.at, word, strlen(word)) == 0;
}

/* Where a word is next; the end if it is nowhere. */
static const char *find(struct span text, const char *word)
{
    while (text.at < text.end && !begins(text, word)) {
        const char *next = memchr(text.at + 1, word[0], length(text) - 1);
        text.at = next == NULL ? text.end : next;
    }
    return text.at;
}

/* Where a line that begins with a word is next; the end if there is none. Text begins a line. */
static const char *find_line(struct span text, const char *word)
{
    const char *at = find(text, word);
    while (at < text.end && at > text.at && at[-1] != '\n')
        at = find((struct span){at + 1, text.end}, word);
    return at;
}

/* The new text. */
struct changed {
    unsigned char *bytes;
    size_t used;
};

static void put(struct changed *to, const char *from, size_t bytes)
{
    memcpy(to->bytes + to->used, from, bytes);
    to->used += bytes;
}

/* The directive behind a mark in a body, without what follows it; empty if there is none. */
static struct span directive_of(struct span body)
{
    static const char directive[] = TCONV_SM_90A_MARK ".minnctapersm ";
    struct span found = {find(body, directive), body.end};
    if (found.at == body.end) return (struct span){body.end, body.end};
    found.at += strlen(TCONV_SM_90A_MARK);
    const char *end = found.at + 1;
    while (end < body.end && strchr("\n\r;", *end) == NULL) end++;
    return (struct span){found.at, end};
}

/* Copies a text without marks, and without directives behind them. */
static void put_unmarked(struct changed *to, struct span text)
{
    while (text.at < text.end) {
        const char *mark = find(text, TCONV_SM_90A_MARK);
        put(to, text.at, (size_t)(mark - text.at));
        text.at = mark;
        if (mark == text.end) break;
        text.at += strlen(TCONV_SM_90A_MARK);
        if (begins(text, ".minnctapersm "))
            while (text.at < text.end && *text.at != '\n') text.at++;
    }
}

/* Copies a kernel, from its .entry on. Its body begins at the first brace. A mark in front of that
 * stays a comment: only what is taken out of the body makes room for the directive. */
static void put_kernel(struct changed *to, struct span kernel)
{
    const struct span body = {find(kernel, "{"), kernel.end}, directive = directive_of(body);
    put(to, kernel.at, (size_t)(body.at - kernel.at));
    if (length(directive) > 0) {
        put(to, directive.at, length(directive));
        put(to, "\n", 1);
    }
    put_unmarked(to, body);
}

static const char target[] = ".target sm_90";

/* True for that target, but not for those whose names go on. */
static bool names_sm_90(struct span text)
{
    if (!begins(text, target) || length(text) == strlen(target)) return false;
    const char next = text.at[strlen(target)];
    return next == ',' || next == ' ' || next == '\r' || next == '\n';
}

unsigned char *tconv_sm_90a(const unsigned char *binary, size_t size, size_t *changed,
                            const char **lacks)
{
    static const char entry[] = ".entry ";
    struct span text = {(const char *)binary, (const char *)binary + size};
    const char *name = find_line(text, target);
    *lacks = NULL;
    if (find_line(text, ".version ") == text.end)
        *lacks = "is no PTX";
    else if (find(text, TCONV_SM_90A_MARK) == text.end)
        *lacks = "lacks the comments of the kernels";
    else if (!names_sm_90((struct span){name, text.end}))
        *lacks = "is not for sm_90";
    if (*lacks != NULL) return NULL;
    /* A kernel grows by less than a directive, which moves, and a line's end. */
    struct changed to = {malloc(size + 1), 0};
    if (to.bytes == NULL) return NULL;
    name += strlen(target);
    put(&to, text.at, (size_t)(name - text.at));
    put(&to, "a", 1);
    text.at = name;
    const char *next = find(text, entry);
    put_unmarked(&to, (struct span){text.at, next});
    while (next < text.end) {
        const struct span rest = {next + 1, text.end};
        const struct span kernel = {next, find(rest, entry)};
        put_kernel(&to, kernel);
        next = kernel.end;
    }
    *changed = to.used;
    return to.bytes;
}
