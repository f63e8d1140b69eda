/* SPDX-License-Identifier: Apache-2.0 */
/* Writes output files: into a temporary file beside the target, which is renamed at the end. */
#include "tool/io/out_file.h"

#include "base/os.h"
#include "tool/system/system.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static enum exit_code failed(struct out_file *file, int reason)
{
    const enum exit_code code =
        failed_work("%s %s cannot be written: %s", file->option, file->path, strerror(reason));
    free(file->path);
    free(file->temporary);
    *file = (struct out_file){NULL, NULL, NULL, NULL};
    return code;
}

/* Begins stdout as an output file; it stays open. */
static bool begin_stdout(const char *option, struct out_file *file)
{
    *file = (struct out_file){stdout, strdup("-"), NULL, option};
    return file->path != NULL;
}

enum exit_code out_file_begin(const char *option, const char *path, struct out_file *file)
{
    if (strcmp(path, "-") == 0)
        return begin_stdout(option, file) ? EXIT_DONE : failed(file, ENOMEM);
    const enum system_kind kind = system_kind(path);
    if (kind == SYSTEM_BROKEN_LINK)
        return failed_work("%s %s is a link to a file that is not there: name that file", option,
                           path);
    /* A link stays; the file that it names is written. /dev/stdout may lead to what has no path. */
    char *target = kind == SYSTEM_REGULAR ? system_real_path(path) : strdup(path);
    *file = (struct out_file){NULL, target == NULL ? strdup(path) : target, NULL, option};
    if (file->path == NULL || target == NULL) return failed(file, errno);
    if (path[0] == '\0') return failed(file, ENOENT);
    if (kind == SYSTEM_FOLDER) return failed(file, EISDIR);
    if (kind == SYSTEM_OTHER)
        file->stream = tconv_os_fopen(path, "wb");
    else
        file->stream = system_temporary(target, &file->temporary);
    if (file->stream == NULL) return failed(file, errno);
    system_remove_on_signal(file->temporary);
    return EXIT_DONE;
}

enum exit_code out_file_end(struct out_file *file, bool good)
{
    int reason = errno;
    const bool sound = good && ferror(file->stream) == 0;
    const bool closed = (file->stream == stdout ? fflush(stdout) : fclose(file->stream)) == 0;
    if (sound && !closed) reason = errno;
    bool written = sound && closed;
    if (written && file->temporary != NULL && !system_replace(file->temporary, file->path)) {
        written = false;
        reason = errno;
    }
    if (!written && file->temporary != NULL) system_remove(file->temporary);
    system_remove_on_signal(NULL);
    if (!written) return failed(file, reason);
    free(file->path);
    free(file->temporary);
    return EXIT_DONE;
}

void out_file_discard(struct out_file *file)
{
    if (file->stream != stdout) fclose(file->stream);
    if (file->temporary != NULL) system_remove(file->temporary);
    system_remove_on_signal(NULL);
    free(file->path);
    free(file->temporary);
}

enum exit_code out_file_check(const char *option, const char *path)
{
    if (strcmp(path, "-") == 0 || system_kind(path) == SYSTEM_OTHER)
        return EXIT_DONE; /* opening a pipe would wait for its reader */
    if (path[0] == '\0') return wrong_request("%s is empty: it must name a file", option);
    struct out_file file;
    const enum exit_code code = out_file_begin(option, path, &file);
    if (code != EXIT_DONE) return code;
    out_file_discard(&file);
    return EXIT_DONE;
}
