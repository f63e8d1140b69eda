/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON, with the circumstances that figures depend on. */
#include "tool/io/out_file.h"
#include "tool/system/system.h"
#include "tool/tool.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum exit_code write_json_file(const char *option, const char *path, const json_t *json,
                               size_t flags)
{
    struct out_file file;
    const enum exit_code code = out_file_begin(option, path, &file);
    if (code != EXIT_DONE) return code;
    return out_file_end(&file, json_dumpf(json, file.stream, flags) == 0 &&
                                   fputc('\n', file.stream) != EOF);
}

enum exit_code write_json(json_t *json)
{
    if (options.json == NULL) {
        json_decref(json);
        return EXIT_DONE;
    }
    if (json == NULL) return failed_work("the JSON cannot be made: no memory");
    if (json_is_object(json)) json_object_set_new(json, "schema", json_integer(JSON_SCHEMA));
    const size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(9);
    const enum exit_code code = write_json_file("--json", options.json, json, flags);
    json_decref(json);
    return code;
}

/* The set environment variables that may change times. */
static json_t *variables_json(void)
{
    static const char *const prefixes[] = {"TCONV_CL_", "POCL_"};
    json_t *variables = json_object();
    for (char **at = system_environment(); *at != NULL; at++)
        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
            const char *equals = strchr(*at, '=');
            if (equals == NULL || strncmp(*at, prefixes[i], strlen(prefixes[i])) != 0) continue;
            json_object_setn_new(variables, *at, (size_t)(equals - *at), text_json(equals + 1));
        }
    return variables;
}

json_t *with_origin(json_t *report)
{
    char date[32];
    const time_t seconds = time(NULL);
    struct tm utc;
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &utc));
    json_t *environment = json_pack("{s:I, s:o}", "cpu_threads", (json_int_t)system_processors(),
                                    "variables", variables_json());
    json_t *origin = json_pack("{s:s, s:s, s:o}", "tool_version", TCONV_VERSION_STRING, "date",
                               date, "environment", environment);
    if (json_object_update_new(report, origin) == 0) return report;
    json_decref(report);
    return NULL;
}

json_t *real_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *known_json(bool known, double value)
{
    return known ? real_json(value) : json_null();
}

json_t *numbers_json(const int64_t *numbers, int count)
{
    json_t *array = json_array();
    for (int i = 0; i < count; i++) json_array_append_new(array, json_integer(numbers[i]));
    return array;
}

json_t *text_json(const char *text)
{
    if (text == NULL) return json_null();
    json_t *json = json_string(text);
    char *copy = json == NULL ? strdup(text) : NULL;
    for (char *at = copy; at != NULL && *at != '\0'; at++)
        if ((unsigned char)*at >= 0x80) *at = '?';
    if (copy != NULL) json = json_string(copy);
    free(copy);
    return json;
}
