/* SPDX-License-Identifier: Apache-2.0 */
/* Opens input files, or stdin. */
#include "tool/io/in_file.h"

#include "base/os.h"

#include <string.h>

FILE *in_file_open(const char *path)
{
    return strcmp(path, "-") == 0 ? stdin : tconv_os_fopen(path, "rb");
}

void in_file_close(FILE *file)
{
    if (file != stdin) fclose(file);
}
