/* SPDX-License-Identifier: Apache-2.0 */
/* TCONV_PRINTF: what a compiler checks of functions that take a format as printf does. */
#ifndef TCONV_BASE_FORMAT_H
#define TCONV_BASE_FORMAT_H

#if defined(__MINGW32__) && !defined(__clang__) /* "printf" would mean Microsoft's formats */
#define TCONV_PRINTF(text, first) __attribute__((format(gnu_printf, text, first)))
#elif defined(__GNUC__)
#define TCONV_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define TCONV_PRINTF(text, first)
#endif

#endif
