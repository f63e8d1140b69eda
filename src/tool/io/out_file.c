/* SPDX-License-Identifier: Apache-2.0 */
/* Writes output files: into a temporary file beside the target, which is renamed at the end. */
#include "tool/io/out_file.h"

#include "base/os.h"
#include "tool/system/system.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void forget(struct out_file *file)
{
    free(file->path);
    free(file->temporary);
    *file = (struct out_file){NULL, NULL, NULL, NULL};
}

static enum exit_code failed(struct out_file *file, int reason)
{
    const enum exit_code code =
        failed_work("%s %s cannot be written: %s", file->option, file->path, strerror(reason));
    forget(file);
    return code;
}

static enum exit_code write_protected(struct out_file *file, int reason)
{
    const enum exit_code code =
        failed_work("%s %s exists and cannot be written: %s; name another file, or change its "
                    "permissions",
                    file->option, file->path, strerror(reason));
    forget(file);
    return code;
}

/* Writes `count` letters and digits: a name that is unlikely to exist. */
static void random_name(char *to, size_t count)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    static uint64_t state;
    state += (uint64_t)(1e9 * tconv_os_seconds()) + (uint64_t)tconv_os_process();
    for (size_t i = 0; i < count; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407; /* Knuth's MMIX */
        to[i] = letters[(state >> 33) % (sizeof letters - 1)];
    }
}

/* Makes the temporary file beside the target. Name: target + "." + six letters; if too long,
 * letters only, no longer than the target's name. */
static FILE *begin_beside(const char *target, char **temporary)
{
    enum { LETTERS = 6, MOST_LETTERS = 12, TRIES = 100 };
    const size_t length = strlen(target), folder = system_folder_length(target);
    const size_t own = length - folder, letters = own < MOST_LETTERS ? own : MOST_LETTERS;
    bool brief = false;
    *temporary = malloc(length + 1 + LETTERS + 1);
    FILE *file = NULL;
    for (int i = 0; i < TRIES && *temporary != NULL && file == NULL; i++) {
        char *const name = *temporary + (brief ? folder : length + 1);
        memcpy(*temporary, target, length);
        if (!brief) (*temporary)[length] = '.';
        random_name(name, brief ? letters : LETTERS);
        name[brief ? letters : LETTERS] = '\0';
        file = system_create(*temporary, target);
        const bool too_long = errno == ENAMETOOLONG || errno == ENOENT;
        if (file == NULL && errno != EEXIST && (brief || own == 0 || !too_long)) break;
        brief = brief || (file == NULL && too_long);
    }
    if (file != NULL) return file;
    free(*temporary);
    *temporary = NULL;
    return NULL;
}

/* The standard stream that a path leads to, or NULL. To replace what it leads to would lose what
 * else is written there. Options name stdout "-", however it was given (options.c). */
static FILE *standard_stream(const char *path)
{
    return strcmp(path, "-") == 0 ? stdout : system_leads_to(path, stderr) ? stderr : NULL;
}

static bool is_standard(const FILE *stream)
{
    return stream == stdout || stream == stderr;
}

/* Begins a file on a stream that is there already: stdout or stderr, which stay open, or one of a
 * descriptor. */
static enum exit_code begin_on(FILE *stream, const char *option, const char *path,
                               struct out_file *file)
{
    const int reason = errno;
    *file = (struct out_file){stream, strdup(path), NULL, option};
    if (stream == NULL) return failed(file, reason);
    if (file->path != NULL) return EXIT_DONE;
    out_file_discard(file);
    return failed_work("%s %s cannot be written: %s", option, path, strerror(ENOMEM));
}

bool out_file_replaces(const char *path)
{
    const enum system_kind kind = system_kind(path);
    return (kind == SYSTEM_ABSENT || kind == SYSTEM_REGULAR) && standard_stream(path) == NULL &&
           system_descriptor(path) < 0;
}

enum exit_code out_file_begin(const char *option, const char *path, struct out_file *file)
{
    FILE *const standard = standard_stream(path);
    if (standard != NULL) return begin_on(standard, option, path, file);
    const int descriptor = system_descriptor(path);
    if (descriptor >= 0) return begin_on(system_open_descriptor(descriptor), option, path, file);
    const enum system_kind kind = system_kind(path);
    if (kind == SYSTEM_BROKEN_LINK)
        return failed_work("%s %s is a link to a file that is not there: name that file", option,
                           path);
    /* A link stays; the file that it names is written. */
    char *target = kind == SYSTEM_REGULAR ? system_target(path) : strdup(path);
    *file = (struct out_file){NULL, target == NULL ? strdup(path) : target, NULL, option};
    if (file->path == NULL || target == NULL) return failed(file, errno);
    if (path[0] == '\0') return failed(file, ENOENT);
    if (kind == SYSTEM_FOLDER) return failed(file, EISDIR);
    /* Renaming would replace even a write-protected file, so ask first. */
    if (kind == SYSTEM_REGULAR && !system_may_write(target)) return write_protected(file, errno);
    if (kind == SYSTEM_OTHER)
        file->stream = tconv_os_fopen(path, "wb");
    else
        file->stream = begin_beside(target, &file->temporary);
    if (file->stream == NULL) return failed(file, errno);
    system_remove_on_signal(file->temporary);
    return EXIT_DONE;
}

enum exit_code out_file_end(struct out_file *file, bool good)
{
    int reason = errno;
    if (file->stream == stdout && (good || ferror(stdout) != 0)) {
        forget(file);
        return EXIT_DONE; /* main tells if stdout does not take it */
    }
    const bool sound = good && ferror(file->stream) == 0;
    const bool closed = (is_standard(file->stream) ? fflush(file->stream) : fclose(file->stream)) ==
                        0;
    if (sound && !closed) reason = errno;
    bool written = sound && closed;
    if (written && file->temporary != NULL && !system_replace(file->temporary, file->path)) {
        written = false;
        reason = errno;
    }
    if (!written && file->temporary != NULL) system_remove(file->temporary);
    system_remove_on_signal(NULL);
    if (!written) return failed(file, reason);
    forget(file);
    return EXIT_DONE;
}

void out_file_discard(struct out_file *file)
{
    if (!is_standard(file->stream)) fclose(file->stream);
    if (file->temporary != NULL) system_remove(file->temporary);
    system_remove_on_signal(NULL);
    forget(file);
}

enum exit_code out_file_check(const char *option, const char *path)
{
    if (system_kind(path) == SYSTEM_OTHER && system_descriptor(path) < 0)
        return EXIT_DONE; /* opening a pipe would wait for its reader */
    if (path[0] == '\0') return wrong_request("%s is empty: it must name a file", option);
    struct out_file file;
    const enum exit_code code = out_file_begin(option, path, &file);
    if (code != EXIT_DONE) return code;
    out_file_discard(&file);
    return EXIT_DONE;
}
