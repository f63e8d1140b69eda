/* SPDX-License-Identifier: Apache-2.0 */
/* Reads files of results that tune --share wrote. A layer is a text of the tool's own options,
 * which are read as those of a command line are. */
#include "tool/bench/tuned.h"

#include "tool/bench/trial.h"
#include "tool/io/in_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const tuned_device[] = {"kind",   "platform", "architecture",  "vector_width", "name",
                                    "vendor", "driver",   "compute_units", "matrix_unit",  NULL};

enum {
    LONGEST = 1 << 24, /* bytes of a file */
    MOST_RESULTS = 1 << 15,
    MOST_WORDS = 120, /* of a layer */
    LAYER_TEXT = 2000,
};

/* The options that a layer may have. */
static const struct poptOption layer_table[] = {
    PART(shape_table, NULL), PART(attribute_table, NULL), PART(epilogue_table, NULL),
    PART(check_table, NULL), PART(math_table, NULL),      POPT_TABLEEND,
};

/* True if two words name one option: popt would forget the first value. */
static bool same_option(const char *a, const char *b)
{
    const size_t length = strcspn(a, "=");
    return strncmp(a, "--", 2) == 0 && strcspn(b, "=") == length && strncmp(a, b, length) == 0;
}

/* Cuts a text into words. Returns how many, or -1 after a message. */
static int cut(char *text, const char **words)
{
    int count = 0;
    words[count++] = "layer";
    for (char *at = text; *at != '\0';) {
        if (count == MOST_WORDS) {
            wrong_request("it has more than %d words", MOST_WORDS - 1);
            return -1;
        }
        char *word = at, *end = at + strcspn(at, " ");
        at = *end == '\0' ? end : end + 1;
        *end = '\0';
        for (int i = 1; i < count; i++)
            if (same_option(words[i], word)) {
                wrong_request("%s is given twice", words[i]);
                return -1;
            }
        words[count++] = word;
    }
    words[count] = NULL;
    return count;
}

/* Reads a layer into the global options, and from there. */
static bool read_words(int count, const char **words, struct tuned_result *r)
{
    poptContext context = poptGetContext("layer", count, words, layer_table, 0);
    if (context == NULL) {
        failed_work("its options cannot be read: no memory");
        return false;
    }
    const int result = poptGetNextOpt(context);
    bool good = result == -1 && poptPeekArg(context) == NULL;
    if (result < -1)
        wrong_request("%s: %s", poptBadOption(context, POPT_BADOPTION_NOALIAS),
                      poptStrerror(result));
    else if (!good)
        wrong_request("%s is not an option", poptPeekArg(context));
    poptFreeContext(context);
    tconv_epilogue epilogue;
    tconv_math math;
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    tconv_error error;
    if (good && options.math != NULL && !tconv_math_from_name(options.math, &math)) {
        wrong_request("--math is \"%s\": it must be exact or fast", options.math);
        good = false;
    }
    good = good && read_epilogue(&epilogue) && read_problem_with_shapes(&r->problem) == EXIT_DONE;
    if (good && tconv_resolve(&r->problem, &geometry, &error) != TCONV_OK) {
        failed_call(&error);
        good = false;
    }
    if (good) r->options = trial_options(NULL);
    return good;
}

static bool read_layer(const char *text, struct tuned_result *r)
{
    char *copy = strdup(text);
    if (copy == NULL) {
        failed_work("it cannot be read: no memory");
        return false;
    }
    const char *words[MOST_WORDS + 1];
    const int count = cut(copy, words);
    const struct options kept = options;
    options = (struct options){.quiet = kept.quiet, .json = NULL};
    const bool good = count > 0 && read_words(count, words, r);
    free_options();
    options = kept;
    free(copy);
    return good;
}

/* Takes a text of printable characters, 1 (or 0) to `most` bytes. False after a message. */
static bool take_text(const json_t *object, const char *key, size_t least, size_t most,
                      const char **text)
{
    const json_t *value = json_object_get(object, key);
    *text = json_string_value(value);
    bool good = *text != NULL && json_string_length(value) >= least &&
                json_string_length(value) <= most;
    for (const char *at = *text; good && *at != '\0'; at++)
        good = (unsigned char)*at >= 0x20 && *at != 0x7f;
    if (!good)
        wrong_request("%s must be a text of %d to %d bytes, without control characters", key,
                      (int)least, (int)most);
    return good;
}

/* Takes a time. False after a message. */
static bool take_time(const json_t *object, const char *key, double *ms)
{
    const json_t *value = json_object_get(object, key);
    *ms = json_is_number(value) ? json_number_value(value) : NAN;
    if (isnormal(*ms) && *ms > 0) return true;
    wrong_request("%s must be a number of milliseconds above 0", key);
    return false;
}

static bool read_result(const json_t *object, struct tuned_result *r)
{
    const char *algorithm, *tile;
    *r = (struct tuned_result){.problem = TCONV_PROBLEM_INIT,
                               .options = TCONV_PLAN_OPTIONS_INIT,
                               .found = {.file = "", .device = "", .problem = ""}};
    tconv_stored_search *f = &r->found;
    if (!take_text(object, "layer", 1, LAYER_TEXT, &f->layer) ||
        !take_text(object, "algorithm", 1, 40, &algorithm) ||
        !take_text(object, "tile", 0, TILE_TEXT, &tile) ||
        !take_time(object, "ms_model", &f->model_ms) ||
        !take_time(object, "ms_best", &f->best_ms) ||
        !take_time(object, "ms_median", &f->median_ms))
        return false;
    const json_t *candidates = json_object_get(object, "candidates");
    const json_int_t count = json_integer_value(candidates);
    if (!json_is_integer(candidates) || count < 1 || count > 1000) {
        wrong_request("candidates must be a whole number, 1 to 1000");
        return false;
    }
    f->candidates = (int32_t)count;
    const size_t outside = messages_within("layer");
    const bool good = read_layer(f->layer, r);
    messages_end(outside);
    if (!good) return false;
    const size_t size = strlen(algorithm) + strlen(tile) + 2;
    char *name = malloc(size);
    if (name == NULL) {
        failed_work("it cannot be read: no memory");
        return false;
    }
    snprintf(name, size, "%s%s%s", algorithm, tile[0] == '\0' ? "" : " ", tile);
    f->algorithm = name;
    return true;
}

/* How many bytes of a text are shown: at most so many, and no part of a character of UTF-8. */
static int shown(const char *text, int most)
{
    int bytes = (int)strnlen(text, (size_t)most + 1);
    if (bytes > most)
        for (bytes = most; bytes > 0 && ((unsigned char)text[bytes] & 0xc0) == 0x80;) bytes--;
    return bytes;
}

/* Writes where the results come from: a line of UTF-8, whatever the path's bytes are. */
static bool write_origin(struct tuned_file *file, const char *path, const char *name,
                         const char *driver)
{
    char line[sizeof file->origin];
    const char *base = strrchr(path, '/') == NULL ? path : strrchr(path, '/') + 1;
    if (strcmp(path, "-") == 0) base = "stdin";
    snprintf(line, sizeof line, "%.*s: %.*s, driver %.*s", shown(base, 40), base, shown(name, 70),
             name, shown(driver, 30), driver);
    for (char *at = line; *at != '\0'; at++) /* of the path */
        if ((unsigned char)*at < 0x20 || *at == 0x7f) *at = '?';
    json_t *text = text_json(line);
    if (text != NULL)
        snprintf(file->origin, sizeof file->origin, "%s", json_string_value(text));
    else
        failed_work("it cannot be read: no memory");
    json_decref(text);
    return text != NULL;
}

/* Reads what ran it. False after a message. */
static bool read_device(struct tuned_file *file, const char *path)
{
    const char *name = "", *driver = "", *text;
    file->device = json_object_get(file->json, "device");
    for (int i = 0; tuned_device[i] != NULL; i++) {
        const char *key = tuned_device[i];
        if (strcmp(key, "vector_width") == 0 || strcmp(key, "compute_units") == 0) {
            if (json_is_integer(json_object_get(file->device, key))) continue;
            wrong_request("%s must be a whole number", key);
            return false;
        }
        if (!take_text(file->device, key, 0, 127, &text)) return false;
        if (strcmp(key, "name") == 0) name = text;
        if (strcmp(key, "driver") == 0) driver = text;
    }
    return write_origin(file, path, name, driver);
}

/* Reads the parts of a file. False after a message that begins with the part. */
static bool read_parts(struct tuned_file *file, const char *path)
{
    const json_t *results = json_object_get(file->json, "results");
    const size_t count = json_array_size(results);
    size_t outside = messages_within("device");
    bool good = read_device(file, path);
    messages_end(outside);
    file->results = calloc(count, sizeof *file->results);
    if (good && file->results == NULL) {
        failed_work("it cannot be read: no memory");
        good = false;
    }
    while (good && file->count < count) {
        char part[60];
        struct tuned_result *r = &file->results[file->count];
        snprintf(part, sizeof part, "result %d", (int)file->count + 1);
        outside = messages_within(part);
        good = read_result(json_array_get(results, file->count++), r);
        messages_end(outside);
        r->found.origin = file->origin;
    }
    return good;
}

void tuned_free(struct tuned_file *file)
{
    for (size_t i = 0; i < file->count; i++) free((char *)file->results[i].found.algorithm);
    free(file->results);
    json_decref(file->json);
    *file = (struct tuned_file){.json = NULL};
}

/* The whole of a file that is JSON. */
static enum exit_code read_json(struct tuned_file *file, const char *path)
{
    const json_t *schema = json_object_get(file->json, "schema"),
                 *results = json_object_get(file->json, "results");
    if (!json_is_integer(schema) || !json_is_object(json_object_get(file->json, "device")) ||
        !json_is_array(results))
        return wrong_request("it is not a file of tconv-cl tune --share, which has schema, device "
                             "and results");
    if (json_integer_value(schema) != JSON_SCHEMA)
        return wrong_request("its schema is %lld: this version reads %d",
                             (long long)json_integer_value(schema), JSON_SCHEMA);
    if (json_array_size(results) < 1 || json_array_size(results) > MOST_RESULTS)
        return wrong_request("it has %d results: there must be 1 to %d",
                             (int)json_array_size(results), MOST_RESULTS);
    return read_parts(file, path) ? EXIT_DONE : EXIT_REQUEST_WRONG;
}

enum exit_code tuned_read(const char *path, struct tuned_file *file)
{
    json_error_t error;
    size_t size;
    bool opened;
    *file = (struct tuned_file){.json = NULL};
    char *text = in_file_text(path, LONGEST, &size, &opened);
    if (text == NULL)
        return failed_work("--import %s cannot be %s: %s", path, opened ? "read" : "opened",
                           strerror(errno));
    file->json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (file->json == NULL)
        return failed_work("--import %s is no JSON: line %d: %s", path, error.line, error.text);
    char where[400];
    snprintf(where, sizeof where, "--import %.300s", path);
    const size_t outside = messages_within(where);
    const enum exit_code code = read_json(file, path);
    messages_end(outside);
    if (code != EXIT_DONE) tuned_free(file);
    return code;
}
