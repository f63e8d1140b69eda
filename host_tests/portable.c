/* SPDX-License-Identifier: Apache-2.0 */
/* Implements portable.h for POSIX and Windows. */
#if defined(_WIN32)
#include <direct.h>
#include <windows.h>
#elif defined(__linux__)
#define _GNU_SOURCE /* program_invocation_short_name */
#include <errno.h>
#endif
#include "portable.h"

#include <dirent.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(_WIN32)
const char *program_name(void)
{
    const char *slash = strrchr(_pgmptr, '\\');
    return slash == NULL ? _pgmptr : slash + 1;
}

void set_variable(const char *name, const char *value)
{
    _putenv_s(name, value == NULL ? "" : value); /* without a value it is removed */
}

bool make_temporary_folder(const char *name, char *path, size_t size)
{
    char folder[MAX_PATH + 1];
    if (GetTempPathA(sizeof folder, folder) == 0) return false;
    for (char *at = folder; *at != '\0'; at++)
        if (*at == '\\') *at = '/'; /* tests put paths together with these */
    const int length =
        snprintf(path, size, "%s%s-%lu-%lu", folder, name, GetCurrentProcessId(), GetTickCount());
    return length > 0 && (size_t)length < size && make_folder(path);
}

bool make_folder(const char *path)
{
    return _mkdir(path) == 0;
}

bool remove_folder(const char *path)
{
    char command[400];
    snprintf(command, sizeof command, "rd /s /q \"%s\"", path);
    for (char *at = command + strlen("rd /s /q "); *at != '\0'; at++)
        if (*at == '/') *at = '\\';
    return system(command) == 0;
}
#else
const char *program_name(void)
{
#if defined(__APPLE__)
    return getprogname();
#else
    return program_invocation_short_name;
#endif
}

void set_variable(const char *name, const char *value)
{
    if (value == NULL)
        unsetenv(name);
    else
        setenv(name, value, 1);
}

bool make_temporary_folder(const char *name, char *path, size_t size)
{
    const int length = snprintf(path, size, "/tmp/%s-XXXXXX", name);
    return length > 0 && (size_t)length < size && mkdtemp(path) != NULL;
}

bool make_folder(const char *path)
{
    return mkdir(path, 0700) == 0;
}

bool remove_folder(const char *path)
{
    char command[400];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    return system(command) == 0;
}
#endif

bool clear_folder(const char *path)
{
    DIR *d = opendir(path);
    if (d == NULL) return false;
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        char file[500];
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        if (e->d_name[0] != '.') unlink(file);
    }
    closedir(d);
    return true;
}
#if defined(__GLIBC__)
/* Writes a file of glibc's for the locale "point": a header of numbers, and the values of
 * LC_NUMERIC, which are decimal point, separator and grouping of thousands, both marks as wide
 * characters, and a character set. */
static bool write_locale(const char *folder, const char *point)
{
    enum { VALUES = 6, LC_NUMERIC_MAGIC = 0x20031114 };
    const uint32_t begin = (2 + VALUES) * sizeof(uint32_t), wide = begin + 16;
    const uint32_t header[2 + VALUES] = {LC_NUMERIC_MAGIC, VALUES, begin,    begin + 8,
                                         begin + 8,        wide,   wide + 4, wide + 8};
    const uint32_t marks[2] = {(unsigned char)point[0], 0};
    char path[300], texts[16] = "";
    snprintf(texts, 8, "%s", point);
    snprintf(path, sizeof path, "%s/point", folder);
    if (!make_folder(path)) return false;
    snprintf(path, sizeof path, "%s/point/LC_NUMERIC", folder);
    FILE *file = fopen(path, "wb");
    if (file == NULL) return false;
    fwrite(header, sizeof header, 1, file);
    fwrite(texts, sizeof texts, 1, file);
    fwrite(marks, sizeof marks, 1, file);
    fwrite("UTF-8", 6, 1, file);
    return fclose(file) == 0;
}

bool use_decimal_point(const char *point)
{
    char folder[200];
    if (!make_temporary_folder("tconv-locale", folder, sizeof folder)) return false;
    setenv("LOCPATH", folder, 1);
    const bool used = write_locale(folder, point) && setlocale(LC_NUMERIC, "point") != NULL;
    unsetenv("LOCPATH");
    remove_folder(folder);
    return used && strcmp(localeconv()->decimal_point, point) == 0;
}
#else
bool use_decimal_point(const char *point)
{
    static const char *const names[] = {"de_DE.UTF-8", "German_Germany", "de_DE"};
    for (int i = 0; i < 3; i++)
        if (setlocale(LC_NUMERIC, names[i]) != NULL &&
            strcmp(localeconv()->decimal_point, point) == 0)
            return true;
    return false;
}
#endif
