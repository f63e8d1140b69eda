/* SPDX-License-Identifier: Apache-2.0 */
/* Writing beside the target and renaming. */
#include "out_file.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The temporary file that a signal would leave behind; one at a time is open. */
static char *volatile in_progress;

static void on_signal(int number)
{
    if (in_progress != NULL) unlink(in_progress);
    signal(number, SIG_DFL);
    raise(number);
}

static void watch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction old;
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            signal(numbers[i], on_signal);
    }
}

static enum exit_code failed(struct out_file *file, int reason)
{
    const enum exit_code code =
        failed_work("%s %s cannot be written: %s", file->option, file->path, strerror(reason));
    free(file->path);
    free(file->temporary);
    *file = (struct out_file){NULL, NULL, NULL, NULL};
    return code;
}

/* The folder that a path is in, without links and dots; NULL where there is none. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL   ? strdup(".")
                   : slash == path ? strdup("/")
                                   : strndup(path, (size_t)(slash - path));
    char *real = folder == NULL ? NULL : realpath(folder, NULL);
    free(folder);
    return real;
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

bool out_file_same(const char *a, const char *b)
{
    if (strcmp(a, b) == 0) return true;
    struct stat of_a, of_b;
    const bool a_there = stat(a, &of_a) == 0, b_there = stat(b, &of_b) == 0;
    if (a_there && b_there)
        return S_ISREG(of_a.st_mode) && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
    if (a_there || b_there || strcmp(name_of(a), name_of(b)) != 0) return false;
    char *folder_a = folder_of(a), *folder_b = folder_of(b);
    const bool same = folder_a != NULL && folder_b != NULL && strcmp(folder_a, folder_b) == 0;
    free(folder_a);
    free(folder_b);
    return same;
}

/* stdout, which stays open. */
static bool begin_stdout(const char *option, struct out_file *file)
{
    *file = (struct out_file){stdout, strdup("-"), NULL, option};
    return file->path != NULL;
}

enum exit_code out_file_begin(const char *option, const char *path, struct out_file *file)
{
    struct stat status;
    if (strcmp(path, "-") == 0)
        return begin_stdout(option, file) ? EXIT_DONE : failed(file, ENOMEM);
    const bool there = stat(path, &status) == 0;
    char *target = there ? realpath(path, NULL)
                         : strdup(path); /* a link stays, and what it names is written */
    *file = (struct out_file){NULL, target == NULL ? strdup(path) : target, NULL, option};
    if (file->path == NULL || target == NULL) return failed(file, errno);
    if (path[0] == '\0') return failed(file, ENOENT);
    if (there && !S_ISREG(status.st_mode)) {
        file->stream = fopen(path, "wb");
        return file->stream == NULL ? failed(file, errno) : EXIT_DONE;
    }
    const size_t size = strlen(target) + 8;
    file->temporary = malloc(size);
    if (file->temporary == NULL) return failed(file, ENOMEM);
    snprintf(file->temporary, size, "%s.XXXXXX", target);
    const int descriptor = mkstemp(file->temporary);
    if (descriptor < 0) return failed(file, errno);
    in_progress = file->temporary;
    watch_signals();
    const mode_t mask = umask(0); /* mkstemp's file is private; an output is an ordinary file */
    umask(mask);
    fchmod(descriptor, there ? status.st_mode & 07777 : 0666 & ~mask);
    file->stream = fdopen(descriptor, "wb");
    if (file->stream != NULL) return EXIT_DONE;
    const int reason = errno;
    close(descriptor);
    unlink(file->temporary);
    in_progress = NULL;
    return failed(file, reason);
}

enum exit_code out_file_end(struct out_file *file, bool good)
{
    int reason = errno;
    const bool sound = good && ferror(file->stream) == 0;
    const bool closed = (file->stream == stdout ? fflush(stdout) : fclose(file->stream)) == 0;
    if (sound && !closed) reason = errno;
    bool written = sound && closed;
    if (written && file->temporary != NULL && rename(file->temporary, file->path) != 0) {
        written = false;
        reason = errno;
    }
    if (!written && file->temporary != NULL) unlink(file->temporary);
    in_progress = NULL;
    if (!written) return failed(file, reason);
    free(file->path);
    free(file->temporary);
    return EXIT_DONE;
}

void out_file_discard(struct out_file *file)
{
    if (file->stream != stdout) fclose(file->stream);
    if (file->temporary != NULL) unlink(file->temporary);
    in_progress = NULL;
    free(file->path);
    free(file->temporary);
}

enum exit_code out_file_check(const char *option, const char *path)
{
    struct stat status;
    if (strcmp(path, "-") == 0) return EXIT_DONE;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
        return EXIT_DONE; /* opening a pipe would wait for its reader */
    struct out_file file;
    const enum exit_code code = out_file_begin(option, path, &file);
    if (code != EXIT_DONE) return code;
    out_file_discard(&file);
    return EXIT_DONE;
}
