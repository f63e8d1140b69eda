/* SPDX-License-Identifier: Apache-2.0 */
/* Reads whole files. */
#include "base/file.h"

#include <stdlib.h>

char *tconv_file_read(FILE *file, size_t ahead, size_t *size)
{
    long end;
    if (fseek(file, 0, SEEK_END) != 0 || (end = ftell(file)) < 0 || fseek(file, 0, SEEK_SET) != 0)
        return NULL;
    *size = (size_t)end;
    char *whole = malloc(ahead + *size + 1);
    if (whole == NULL) return NULL;
    whole[ahead + *size] = '\0';
    if (fread(whole + ahead, 1, *size, file) == *size) return whole;
    free(whole);
    return NULL;
}
