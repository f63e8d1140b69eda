/* SPDX-License-Identifier: Apache-2.0 */
/* Text files inside a binary, as cmake/embed.cmake writes them. */
#ifndef TCONV_BASE_SOURCES_H
#define TCONV_BASE_SOURCES_H

struct tconv_source {
    const char *name; /* of the file, without its folder */
    const char *text;
};

/* The library's kernel sources. A NULL name ends the list. */
extern const struct tconv_source tconv_sources[];

#endif
