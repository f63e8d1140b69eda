/* SPDX-License-Identifier: Apache-2.0 */
/* --plot: draws a picture with bench/plot_report.py, which is built into the tool, in the user's
 * Python. */
#include "tool/bench/reports.h"
#include "tool/io/out_file.h"
#include "tool/io/tool_file.h"
#include "tool/system/system.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Runs a Python program with `input` as its stdin, and copies its stdout to `output`. Returns its
 * exit code, or -1 with errno if Python cannot be started. */
static int run_python(const char *program, const char *input, FILE *output)
{
    char *arguments[] = {"python3", "-c", (char *)program, NULL};
    return system_run(arguments, input, output);
}

/* Ends with code 0 if there is matplotlib; else says which interpreter lacks it. */
static const char probe[] = "import sys\n"
                            "try:\n"
                            "    import matplotlib\n"
                            "except ImportError:\n"
                            "    print(sys.executable)\n"
                            "    sys.exit(1)\n";

static enum exit_code lacks_matplotlib(FILE *answer)
{
    char path[1000] = "";
    if (answer != NULL) rewind(answer);
    if (answer == NULL || fgets(path, sizeof path, answer) == NULL || path[0] == '\n')
        snprintf(path, sizeof path, "python3");
    path[strcspn(path, "\n")] = '\0';
    return wrong_request(
        "--plot needs matplotlib, which %s lacks: run %s -m pip install matplotlib", path, path);
}

enum exit_code plot_check(void)
{
    FILE *answer = tmpfile(); /* NULL: the sentence then names no path */
    const int result = run_python(probe, NULL, answer != NULL ? answer : stderr);
    enum exit_code code = EXIT_DONE;
    if (result < 0 && errno == ENOSYS)
        code =
            wrong_request("--plot cannot start Python on this system: give the file of --json to "
                          "bench/plot_report.py instead");
    else if (result < 0 || result == 127)
        code = wrong_request("--plot needs Python with matplotlib, but there is no python3 in "
                             "PATH: install python3-matplotlib, or leave --plot out");
    else if (result != 0)
        code = lacks_matplotlib(answer);
    if (answer != NULL) fclose(answer);
    return code;
}

enum exit_code plot_draw(const json_t *report)
{
    struct out_file file;
    const enum exit_code code = out_file_begin("--plot", options.plot, &file);
    if (code != EXIT_DONE) return code;
    char *text = json_dumps(report, 0);
    const int result = text == NULL ? -1
                                    : run_python(tool_file("plot_report.py"), text, file.stream);
    const int reason = errno;
    free(text);
    errno = reason; /* why the picture cannot be written, where that is so */
    if (result == 0) return out_file_end(&file, true);
    out_file_discard(&file);
    return failed_work("--plot %s cannot be drawn: python3 ended with code %d", options.plot,
                       result);
}
