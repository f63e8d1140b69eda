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
