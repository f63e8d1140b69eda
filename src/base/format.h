/* SPDX-License-Identifier: Apache-2.0 */
/* TCONV_PRINTF: makes compilers check the arguments of functions with a format as printf's. */
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
