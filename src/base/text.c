/* SPDX-License-Identifier: Apache-2.0 */
/* Text that is put together in a buffer. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct tconv_text tconv_text_begin(char *buffer, size_t size)
{
    if (buffer == NULL) size = 0;
    if (size > 0) buffer[0] = '\0';
    return (struct tconv_text){buffer, size, 0};
}

struct tconv_text tconv_text_resume(char *buffer, size_t size)
{
    return (struct tconv_text){buffer, size, strlen(buffer)};
}

static void add(struct tconv_text *text, const char *format, va_list arguments) TCONV_PRINTF(2, 0);
static void add(struct tconv_text *text, const char *format, va_list arguments)
{
    const bool room = text->length < text->size;
    const int length = vsnprintf(room ? text->begin + text->length : NULL,
                                 room ? text->size - text->length : 0, format, arguments);
    if (length > 0) text->length += (size_t)length;
}

void tconv_text_add(struct tconv_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add(text, format, arguments);
    va_end(arguments);
}

void tconv_text_add_line(struct tconv_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (text->length > 0) tconv_text_add(text, "\n");
    add(text, format, arguments);
    va_end(arguments);
}

bool tconv_text_fits(const struct tconv_text *text)
{
    return text->length < text->size;
}

char tconv_text_lower(char c)
{
    static const char capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const char *at = c == '\0' ? NULL : strchr(capitals, c);
    return at == NULL ? c : "abcdefghijklmnopqrstuvwxyz"[at - capitals];
}

bool tconv_text_alike(const char *a, const char *b)
{
    while (*a != '\0' && tconv_text_lower(*a) == tconv_text_lower(*b)) a++, b++;
    return *a == *b;
}
