/* SPDX-License-Identifier: Apache-2.0 */
/* bench --plot: a picture by bench/plot_roofline.py, which is inside the tool, in a Python of the
 * user's. */
#include "base/sources.h"
#include "out_file.h"
#include "reports.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ; /* POSIX has it in no header */
extern const struct tconv_source tool_files[];

static const char *script(void)
{
    const struct tconv_source *file = tool_files;
    while (strcmp(file->name, "plot_roofline.py") != 0) file++;
    return file->text;
}

/* Runs Python with a program whose stdin and stdout are these; its exit code, or -1 with errno
 * where it cannot be started. `report`, where it is not NULL, is written into its stdin. */
static int run_python(const char *program, const json_t *report, int out)
{
    char *arguments[] = {"python3", "-c", (char *)program, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int ends[2], status;
    if (pipe(ends) != 0) return -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    /* Without a report, only the exit code counts, and Python's own words do not matter. */
    if (report == NULL)
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    errno = posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environ);
    const int reason = errno;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[0]);
    if (reason == 0 && report != NULL) {
        void (*before)(int) = signal(SIGPIPE, SIG_IGN); /* where the program ends early */
        json_dumpfd(report, ends[1], 0);
        close(ends[1]);
        signal(SIGPIPE, before);
    } else {
        close(ends[1]);
    }
    errno = reason;
    if (reason != 0) return -1;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

enum exit_code plot_check(void)
{
    const int code = run_python("import matplotlib", NULL, STDERR_FILENO);
    return code == 0 ? EXIT_DONE
                     : wrong_request("--plot needs Python with matplotlib, but %s: install "
                                     "python3-matplotlib, or leave --plot out",
                                     code < 0 || code == 127 ? "there is no python3 in PATH"
                                                             : "python3 has no module matplotlib");
}

enum exit_code plot_draw(const json_t *report)
{
    struct out_file file;
    const enum exit_code code = out_file_begin("--plot", options.plot, &file);
    if (code != EXIT_DONE) return code;
    fflush(file.stream);
    const int result = run_python(script(), report, fileno(file.stream));
    if (result == 0) return out_file_end(&file, true);
    out_file_discard(&file);
    return failed_work("--plot %s cannot be drawn: python3 ended with code %d", options.plot,
                       result);
}
