/* SPDX-License-Identifier: Apache-2.0 */
/* bench --plot: draws a picture with bench/plot_roofline.py, which is built into the tool, in the
 * user's Python. */
#include "tool/bench/reports.h"
#include "tool/io/out_file.h"
#include "tool/io/tool_file.h"
#include "tool/system/system.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Runs a Python program with `input` as its stdin and `output` as its stdout. Returns its exit
 * code, or -1 with errno if Python cannot be started. If `input` is NULL, only the exit code
 * matters. */
static int run_python(const char *program, const char *input, FILE *output)
{
    char *arguments[] = {"python3", "-c", (char *)program, NULL};
    return system_run(arguments, input, output);
}

enum exit_code plot_check(void)
{
    const int code = run_python("import matplotlib", NULL, stderr);
    if (code < 0 && errno == ENOSYS)
        return wrong_request(
            "--plot cannot start Python on this system: give the file of --json to "
            "bench/plot_roofline.py instead");
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
    char *text = json_dumps(report, 0);
    const int result = text == NULL ? -1
                                    : run_python(tool_file("plot_roofline.py"), text, file.stream);
    free(text);
    if (result == 0) return out_file_end(&file, true);
    out_file_discard(&file);
    return failed_work("--plot %s cannot be drawn: python3 ended with code %d", options.plot,
                       result);
}
