/* SPDX-License-Identifier: Apache-2.0 */
/* Text files inside the tool. */
#include "tool/io/tool_file.h"

#include "base/sources.h"

#include <stddef.h>
#include <string.h>

extern const struct tconv_source tool_files[]; /* generated */

const char *tool_file(const char *name)
{
    const struct tconv_source *file = tool_files;
    while (file->name != NULL && strcmp(file->name, name) != 0) file++;
    return file->text;
}
