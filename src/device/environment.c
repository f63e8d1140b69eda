/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the environment variables of the library. */
#include "device/environment.h"

#include "base/error.h"
#include "base/os.h"
#include "store/folder.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 100 }; /* bytes of the longest legal value that is not a path */

/* Reads the value of a variable, "" if it is not set. Returns an error if it is too long to be
 * legal. */
static tconv_status read_value(const char *name, char *value, size_t size, tconv_error *error)
{
    value[0] = '\0';
    const size_t length = tconv_os_environment(name, value, size);
    if (length < size) return TCONV_OK;
    return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                      "the environment variable %s is \"%.60s...\": it has %zu bytes, at most %zu "
                      "are allowed; shorten it, or leave it unset",
                      name, value, length, size - 1);
}

static tconv_status fail_value(tconv_error *error, const char *name, const char *value,
                               const char *possible)
{
    return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                      "the environment variable %s is \"%.60s\": %s, or leave it unset", name,
                      value, possible);
}

/* Reads a whole number from 0 to `most`, written in digits alone. `*number` stays if the variable
 * is not set. */
static tconv_status read_number(const char *name, unsigned long long most, const char *possible,
                                unsigned long long *number, tconv_error *error)
{
    char value[WORD];
    const tconv_status status = read_value(name, value, sizeof value, error);
    if (status != TCONV_OK || value[0] == '\0') return status;
    errno = 0;
    const unsigned long long read = strtoull(value, NULL, 10);
    if (strspn(value, "0123456789") != strlen(value) || errno != 0 || read > most)
        return fail_value(error, name, value, possible);
    *number = read;
    return TCONV_OK;
}

tconv_status tconv_environment_device(char *name, size_t size, tconv_error *error)
{
    return read_value("TCONV_CL_DEVICE", name, size, error);
}

tconv_status tconv_environment_matrix(enum tconv_matrix_use *use, tconv_error *error)
{
    static const char name[] = "TCONV_CL_MATRIX";
    char value[WORD];
    *use = TCONV_USE_USUAL;
    const tconv_status status = read_value(name, value, sizeof value, error);
    if (status != TCONV_OK || value[0] == '\0') return status;
    if (strcmp(value, "off") != 0 && strcmp(value, "try") != 0)
        return fail_value(error, name, value, "set it to off or try");
    *use = strcmp(value, "off") == 0 ? TCONV_USE_OFF : TCONV_USE_TRY;
    return TCONV_OK;
}

tconv_status tconv_environment_search(tconv_search *search, tconv_error *error)
{
    static const char name[] = "TCONV_CL_SEARCH";
    char value[WORD];
    *search = TCONV_SEARCH_RECORDS;
    const tconv_status status = read_value(name, value, sizeof value, error);
    if (status != TCONV_OK || value[0] == '\0' || tconv_search_from_name(value, search))
        return status;
    return fail_value(error, name, value, "set it to model, records, measure or renew");
}

tconv_status tconv_environment_threads(int *threads, tconv_error *error)
{
    static const char name[] = "TCONV_CL_THREADS",
                      possible[] = "set it to off, or to a number from 1 to 1024";
    enum { MOST = 1024 };
    char value[WORD];
    unsigned long long number = (unsigned long long)tconv_os_processors();
    tconv_status status = read_value(name, value, sizeof value, error);
    if (status != TCONV_OK) return status;
    if (strcmp(value, "off") == 0)
        number = 0;
    else if ((status = read_number(name, MOST, possible, &number, error)) != TCONV_OK)
        return status;
    else if (number == 0)
        return fail_value(error, name, value, possible);
    *threads = (int)number;
    return TCONV_OK;
}

tconv_status tconv_environment_launch_ms(double *ms, tconv_error *error)
{
    const unsigned long long none = ULLONG_MAX;
    unsigned long long number = none;
    const tconv_status status = read_number("TCONV_CL_LAUNCH_MS", INT_MAX,
                                            "set it to a whole number of ms, 0 for no limit",
                                            &number, error);
    *ms = number == none ? -1 : (double)number;
    return status;
}

tconv_status tconv_environment_kernel_dir(char *folder, size_t size, tconv_error *error)
{
    return read_value("TCONV_CL_KERNEL_DIR", folder, size, error);
}

tconv_status tconv_environment_spirv(char *folder, size_t size, tconv_error *error)
{
    return read_value("TCONV_CL_SPIRV", folder, size, error);
}

static tconv_status read_limit(uint64_t *limit, tconv_error *error)
{
    unsigned long long mib = TCONV_CACHE_LIMIT >> 20;
    const tconv_status status = read_number("TCONV_CL_CACHE_MIB", UINT64_MAX >> 20,
                                            "set it to a whole number of MiB, 0 or more", &mib,
                                            error);
    *limit = (uint64_t)mib << 20;
    return status;
}

static tconv_status read_switch(bool *on, tconv_error *error)
{
    static const char name[] = "TCONV_CL_CACHE";
    char value[WORD];
    *on = true;
    const tconv_status status = read_value(name, value, sizeof value, error);
    if (status != TCONV_OK || value[0] == '\0' || strcmp(value, "on") == 0 ||
        strcmp(value, "1") == 0)
        return status;
    if (strcmp(value, "off") != 0 && strcmp(value, "0") != 0)
        return fail_value(error, name, value, "set it to off or on");
    *on = false;
    return TCONV_OK;
}

/* Joins two parts of a path. From malloc; NULL without memory. */
static char *joined(const char *folder, const char *rest)
{
    const size_t size = strlen(folder) + strlen(rest) + 1;
    char *path = malloc(size);
    if (path != NULL) snprintf(path, size, "%s%s", folder, rest);
    return path;
}

tconv_status tconv_environment_cache(char **folder, uint64_t *limit, bool *named,
                                     tconv_error *error)
{
    bool on;
    tconv_status status;
    *folder = NULL;
    *named = false;
    if ((status = read_limit(limit, error)) != TCONV_OK ||
        (status = read_switch(&on, error)) != TCONV_OK || !on)
        return status;
    char path[TCONV_OS_PATH];
    if ((status = read_value("TCONV_CL_CACHE_DIR", path, sizeof path, error)) != TCONV_OK)
        return status;
    *named = path[0] != '\0';
    if (*named)
        *folder = joined(path, "");
    else if (tconv_os_cache_home(path, sizeof path))
        *folder = joined(path, "/tconv-cl");
    return TCONV_OK;
}
