/* SPDX-License-Identifier: Apache-2.0 */
/* What the tool writes as JSON. */
#include "out_file.h"
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum exit_code write_json(json_t *json)
{
    if (json == NULL) return failed_work("the JSON cannot be made: no memory");
    const size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(9);
    enum exit_code code = EXIT_DONE;
    if (strcmp(options.json, "-") == 0) {
        json_dumpf(json, stdout, flags); /* whether stdout took it is asked at the end */
        fputc('\n', stdout);
    } else {
        struct out_file file;
        code = out_file_begin("--json", options.json, &file);
        if (code == EXIT_DONE)
            code = out_file_end(&file, json_dumpf(json, file.stream, flags) == 0 &&
                                           fputc('\n', file.stream) != EOF);
    }
    json_decref(json);
    return code;
}

json_t *text_json(const char *text)
{
    json_t *json = json_string(text);
    char *copy = json == NULL ? strdup(text) : NULL;
    for (char *at = copy; at != NULL && *at != '\0'; at++)
        if ((unsigned char)*at >= 0x80) *at = '?';
    if (copy != NULL) json = json_string(copy);
    free(copy);
    return json;
}
