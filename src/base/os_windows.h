/* SPDX-License-Identifier: Apache-2.0 */
/* Converts text between UTF-8 and UTF-16, for the files that implement base/os.h and the tool's
 * system.h on Windows. */
#ifndef TCONV_BASE_OS_WINDOWS_H
#define TCONV_BASE_OS_WINDOWS_H

#ifndef _WIN32_WINNT
#define _WIN32_WINNT 0x0A00
#endif
#include <wchar.h>
#include <windows.h>

/* UTF-8 to UTF-16, and back. From malloc; NULL without memory. */
wchar_t *tconv_os_wide(const char *text);
char *tconv_os_narrow(const wchar_t *text);

#endif
