/* SPDX-License-Identifier: Apache-2.0 */
/* Opens input files, or stdin, and tells the endings of their names. */
#include "tool/io/in_file.h"

#include "base/os.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

FILE *in_file_open(const char *path)
{
    return strcmp(path, "-") == 0 ? stdin : tconv_os_fopen(path, "rb");
}

void in_file_close(FILE *file)
{
    if (file != stdin) fclose(file);
}

void *in_file_read(FILE *file, size_t most, size_t first, size_t *length)
{
    enum { SOME = 1 << 16 };
    char *bytes = NULL;
    size_t room = 0;
    for (*length = 0; bytes == NULL || (*length == room && room < most);) {
        const size_t wanted = room != 0    ? (room > SIZE_MAX / 2 ? SIZE_MAX : 2 * room)
                              : first != 0 ? first
                                           : SOME;
        room = wanted < most ? wanted : most;
        char *more = realloc(bytes, room == 0 ? 1 : room);
        int reason = ENOMEM;
        if (more != NULL) {
            bytes = more;
            *length += fread(bytes + *length, 1, room - *length, file);
            if (!ferror(file)) continue;
            reason = errno;
        }
        free(bytes);
        errno = reason;
        return NULL;
    }
    return bytes;
}

char *in_file_text(const char *path, size_t most, size_t *length, bool *opened)
{
    FILE *file = in_file_open(path);
    *opened = file != NULL;
    if (file == NULL) return NULL;
    char *text = in_file_read(file, most + 1, 0, length);
    int reason = errno;
    in_file_close(file);
    if (text != NULL && *length > most) {
        free(text);
        text = NULL;
        reason = EFBIG;
    }
    errno = reason;
    return text;
}

bool has_ending(const char *path, const char *ending)
{
    const size_t length = strlen(path), size = strlen(ending);
    return length >= size && strcasecmp(path + length - size, ending) == 0;
}
