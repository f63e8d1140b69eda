/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes structures of callers that were compiled with other headers. */
#include "base/struct_size.h"

#include "base/error.h"
#include "tconv_cl/version.h"

#include <string.h>

/* No structure will ever be longer: a larger struct_size was not set by a program. */
enum { LONGEST = 4096 };

static size_t size_of(const void *given)
{
    return *(const size_t *)given;
}

static size_t shorter(size_t a, size_t b)
{
    return a < b ? a : b;
}

tconv_status tconv_struct_check(struct tconv_sized sized, const void *given, tconv_error *error)
{
    const size_t size = size_of(given);
    if (size >= sized.least && size <= LONGEST) return TCONV_OK;
    return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                      "struct_size of %s is %zu, but must be %zu to %d bytes: start from %s",
                      sized.argument, size, sized.least, (int)LONGEST, sized.start);
}

tconv_status tconv_struct_read(struct tconv_sized sized, const void *given, void *own,
                               tconv_error *error)
{
    if (given == NULL) return TCONV_OK;
    const tconv_status status = tconv_struct_check(sized, given, error);
    if (status != TCONV_OK) return status;
    const size_t size = size_of(given);
    const unsigned char *bytes = given;
    for (size_t i = sized.size; i < size; i++)
        if (bytes[i] != 0)
            return tconv_fail(
                error, TCONV_ERROR_UNSUPPORTED,
                "struct_size of %s is %zu and its byte %zu is not 0: the program was built for a "
                "newer version of tconv-cl and uses what version " TCONV_VERSION_STRING
                ", with %zu bytes, does not have; install the newer version",
                sized.argument, size, i, sized.size);
    memcpy(own, given, shorter(size, sized.size));
    memcpy(own, &sized.size, sizeof sized.size);
    return TCONV_OK;
}

void tconv_struct_write(struct tconv_sized sized, const void *own, void *given)
{
    const size_t size = size_of(given), known = shorter(size, sized.size);
    memcpy(given, own, known);
    memset((char *)given + known, 0, size - known);
    memcpy(given, &size, sizeof size);
}
