/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* secure_getenv */
#include "device/environment.h"

#include "base/error.h"
#include "cache/folder.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NULL where the variable is not set or empty. */
static const char *value_of(const char *name)
{
    const char *value = secure_getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static tconv_status fail_value(tconv_error *error, const char *name, const char *value,
                               const char *possible)
{
    return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                      "the environment variable %s is \"%.60s\": %s, or leave it unset", name,
                      value, possible);
}

/* A whole number of digits alone, from 0 to `most`. */
static bool read_number(const char *text, unsigned long long most, unsigned long long *number)
{
    if (strspn(text, "0123456789") != strlen(text)) return false;
    errno = 0;
    *number = strtoull(text, NULL, 10);
    return errno == 0 && *number <= most;
}

const char *tconv_environment_device(void)
{
    return value_of("TCONV_CL_DEVICE");
}

tconv_status tconv_environment_matrix(enum tconv_matrix_use *use, tconv_error *error)
{
    static const char name[] = "TCONV_CL_MATRIX";
    const char *value = value_of(name);
    *use = TCONV_MATRIX_USUAL;
    if (value == NULL) return TCONV_OK;
    if (strcmp(value, "off") != 0 && strcmp(value, "try") != 0)
        return fail_value(error, name, value, "set it to off or try");
    *use = strcmp(value, "off") == 0 ? TCONV_MATRIX_OFF : TCONV_MATRIX_TRY;
    return TCONV_OK;
}

tconv_status tconv_environment_search(tconv_search *search, tconv_error *error)
{
    static const char name[] = "TCONV_CL_SEARCH";
    const char *value = value_of(name);
    *search = TCONV_SEARCH_RECORDS;
    if (value == NULL || tconv_search_from_name(value, search)) return TCONV_OK;
    return fail_value(error, name, value, "set it to model, records, measure or renew");
}

const char *tconv_environment_kernel_dir(void)
{
    return value_of("TCONV_CL_KERNEL_DIR");
}

static tconv_status read_limit(uint64_t *limit, tconv_error *error)
{
    static const char name[] = "TCONV_CL_CACHE_MIB";
    const char *value = value_of(name);
    unsigned long long mib = 0;
    *limit = TCONV_CACHE_LIMIT;
    if (value == NULL) return TCONV_OK;
    if (!read_number(value, UINT64_MAX >> 20, &mib))
        return fail_value(error, name, value, "set it to a whole number of MiB, 0 or more");
    *limit = (uint64_t)mib << 20;
    return TCONV_OK;
}

static tconv_status read_switch(bool *on, tconv_error *error)
{
    static const char name[] = "TCONV_CL_CACHE";
    const char *value = value_of(name);
    *on = true;
    if (value == NULL || strcmp(value, "on") == 0 || strcmp(value, "1") == 0) return TCONV_OK;
    if (strcmp(value, "off") != 0 && strcmp(value, "0") != 0)
        return fail_value(error, name, value, "set it to off or on");
    *on = false;
    return TCONV_OK;
}

/* From malloc; NULL without memory. */
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
    const char *own = value_of("TCONV_CL_CACHE_DIR");
    const char *cache = value_of("XDG_CACHE_HOME"), *home = value_of("HOME");
    /* A path that is not absolute is to be ignored, says the XDG base directory specification. */
    *named = own != NULL;
    if (own != NULL)
        *folder = strdup(own);
    else if (cache != NULL && cache[0] == '/')
        *folder = joined(cache, "/tconv-cl");
    else if (home != NULL && home[0] == '/')
        *folder = joined(home, "/.cache/tconv-cl");
    return TCONV_OK;
}
