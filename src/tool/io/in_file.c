/* SPDX-License-Identifier: Apache-2.0 */
/* Opens input files, or stdin, and tells the endings of their names. */
#include "tool/io/in_file.h"

#include "base/os.h"

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

bool has_ending(const char *path, const char *ending)
{
    const size_t length = strlen(path), size = strlen(ending);
    return length >= size && strcasecmp(path + length - size, ending) == 0;
}
