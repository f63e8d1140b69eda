/* SPDX-License-Identifier: Apache-2.0 */
/* Puts a program's source together: the files that a kernel file includes, then the file itself. */
#include "device/kernel_source.h"

#include "base/error.h"
#include "base/file.h"
#include "base/os.h"
#include "base/sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char INCLUDE[] = "#include \"";

/* Reads a file of a folder, and puts a #line in front, so that build logs name the file. */
static tconv_status read_file(const char *folder, const char *name, char **text, tconv_error *error)
{
    char path[TCONV_OS_PATH + TCONV_FILE_NAME];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = tconv_os_fopen(path, "rb");
    if (file == NULL)
        return tconv_fail(error, TCONV_ERROR_BUILD,
                          "TCONV_CL_KERNEL_DIR is set, but kernel source %s cannot be opened",
                          path);
    char line[TCONV_FILE_NAME + 20];
    const int line_length = snprintf(line, sizeof line, "#line 1 \"%s\"\n", name);
    size_t size;
    *text = tconv_file_read(file, (size_t)line_length, &size);
    fclose(file);
    if (*text == NULL)
        return tconv_fail(error, TCONV_ERROR_BUILD, "kernel source %s cannot be read", path);
    memcpy(*text, line, (size_t)line_length);
    return TCONV_OK;
}

static const char *embedded(const char *name)
{
    for (const struct tconv_source *source = tconv_sources; source->name != NULL; source++)
        if (strcmp(source->name, name) == 0) return source->text;
    return NULL;
}

static tconv_status add_piece(struct tconv_kernel_source *source, const char *begin,
                              const char *end, tconv_error *error)
{
    if (begin == end) return TCONV_OK;
    if (source->pieces == TCONV_MOST_PIECES)
        return tconv_fail(error, TCONV_ERROR_BUILD, "kernel sources include more than %d files",
                          TCONV_MOST_PIECES);
    source->piece[source->pieces] = begin;
    source->length[source->pieces++] = (size_t)(end - begin);
    return TCONV_OK;
}

static bool is_known(const struct tconv_kernel_source *source, const char *name, size_t length)
{
    for (int i = 0; i < source->files; i++)
        if (strlen(source->name[i]) == length && strncmp(source->name[i], name, length) == 0)
            return true;
    return false;
}

/* The next line that includes a file, or NULL. */
static const char *next_include(const char *text)
{
    const char *at = strstr(text, INCLUDE);
    while (at != NULL && at != text && at[-1] != '\n') at = strstr(at + 1, INCLUDE);
    return at;
}

/* Adds the files that a file includes, then the file. */
static tconv_status add_file(const char *folder, const char *name, size_t length,
                             struct tconv_kernel_source *source, tconv_error *error)
{
    if (is_known(source, name, length)) return TCONV_OK;
    if (source->files == TCONV_MOST_FILES || length >= TCONV_FILE_NAME)
        return tconv_fail(error, TCONV_ERROR_BUILD,
                          "kernel source %.*s cannot be included: a program has at most %d files",
                          (int)(length < TCONV_FILE_NAME ? length : TCONV_FILE_NAME), name,
                          TCONV_MOST_FILES);
    const int number = source->files++;
    char *own = source->name[number];
    snprintf(own, TCONV_FILE_NAME, "%.*s", (int)length, name);
    if (folder != NULL) {
        const tconv_status status = read_file(folder, own, &source->owned[number], error);
        if (status != TCONV_OK) return status;
    }
    const char *text = folder != NULL ? source->owned[number] : embedded(own);
    if (text == NULL)
        return tconv_fail(error, TCONV_ERROR_BUILD, "kernel source %s is not in the library", own);
    for (const char *line = next_include(text); line != NULL; line = next_include(line + 1)) {
        const char *included = line + strlen(INCLUDE);
        const tconv_status status =
            add_file(folder, included, strcspn(included, "\"\n"), source, error);
        if (status != TCONV_OK) return status;
    }
    for (const char *line; (line = next_include(text)) != NULL; text = line + strcspn(line, "\n")) {
        const tconv_status status = add_piece(source, text, line, error);
        if (status != TCONV_OK) return status;
    }
    return add_piece(source, text, text + strlen(text), error);
}

tconv_status tconv_kernel_source_read(const char *folder, const char *name,
                                      struct tconv_kernel_source *source, tconv_error *error)
{
    *source = (struct tconv_kernel_source){.files = 0};
    return add_file(folder, name, strlen(name), source, error);
}

void tconv_kernel_source_free(struct tconv_kernel_source *source)
{
    for (int i = 0; i < source->files; i++) free(source->owned[i]);
}
