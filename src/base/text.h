/* SPDX-License-Identifier: Apache-2.0 */
/* Text that is put together in a buffer. What does not fit is left out, but counted. */
#ifndef TCONV_BASE_TEXT_H
#define TCONV_BASE_TEXT_H

#include "base/format.h"

#include <stdbool.h>
#include <stddef.h>

struct tconv_text {
    char *begin;
    size_t size;   /* of the buffer, in bytes; 0 if `begin` is NULL */
    size_t length; /* of the whole text, even if it does not fit */
};

/* An empty text in a buffer. NULL has no room, whatever `size` says. */
struct tconv_text tconv_text_begin(char *buffer, size_t size);

/* The text that a buffer holds, to go on with it. */
struct tconv_text tconv_text_resume(char *buffer, size_t size);

void tconv_text_add(struct tconv_text *text, const char *format, ...) TCONV_PRINTF(2, 3);

/* Adds a line. Line breaks stand between lines, not at the end. */
void tconv_text_add_line(struct tconv_text *text, const char *format, ...) TCONV_PRINTF(2, 3);

bool tconv_text_fits(const struct tconv_text *text);

/* The small letter of a capital one, and the character itself otherwise. Only ASCII's letters,
 * whatever the application's locale is: in Turkish, "I" is not the capital of "i". */
char tconv_text_lower(char c);

/* True if two texts are equal but for capital letters. */
bool tconv_text_alike(const char *a, const char *b);

#endif
