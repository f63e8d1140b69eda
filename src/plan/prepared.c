/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and keeps the list of a layer's prepared programs: a line for each, with the algorithm and
 * the tile parameters on which its programs depend. */
#include "plan/prepared.h"

#include "base/os.h"
#include "base/text.h"
#include "device/device.h"
#include "plan/search_text.h"
#include "store/store.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = TCONV_MOST_PREPARED * (TCONV_TILE_TEXT + 40) };

struct tconv_pattern tconv_prepared_pattern(const struct tconv_candidate *candidate)
{
    struct tconv_pattern pattern = {.algorithm = candidate->algorithm};
    const struct tconv_tile_parameter *parameters = candidate->algorithm->parameters;
    for (int i = 0; parameters[i].name != NULL; i++)
        tconv_tile_set(&pattern.tile, &parameters[i],
                       i < candidate->algorithm->program_parameters
                           ? tconv_tile_value(&candidate->tile, &parameters[i])
                           : TCONV_ANY);
    return pattern;
}

bool tconv_prepared_equal(const struct tconv_pattern *a, const struct tconv_pattern *b)
{
    return a->algorithm == b->algorithm && memcmp(&a->tile, &b->tile, sizeof a->tile) == 0;
}

static bool has(const struct tconv_prepared *prepared, const struct tconv_pattern *pattern)
{
    for (int i = 0; i < prepared->count; i++)
        if (tconv_prepared_equal(&prepared->pattern[i], pattern)) return true;
    return false;
}

bool tconv_is_prepared(const struct tconv_prepared *prepared,
                       const struct tconv_candidate *candidate)
{
    const struct tconv_pattern pattern = tconv_prepared_pattern(candidate);
    return has(prepared, &pattern);
}

static void add_pattern(struct tconv_text *t, const struct tconv_pattern *pattern)
{
    tconv_text_add(t, "%s", pattern->algorithm->name);
    const struct tconv_tile_parameter *parameters = pattern->algorithm->parameters;
    for (int i = 0; i < pattern->algorithm->program_parameters; i++)
        tconv_text_add(t, " %s=%d", parameters[i].name,
                       tconv_tile_value(&pattern->tile, &parameters[i]));
    tconv_text_add(t, "\n");
}

/* Reads the lines of `text`, which are cut apart. False if one is damaged. */
static bool read_lines(char *text, struct tconv_prepared *prepared)
{
    for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        struct tconv_pattern *pattern = &prepared->pattern[prepared->count];
        struct tconv_reason reason;
        if (prepared->count == TCONV_MOST_PREPARED || !tconv_pattern_read(line, pattern, &reason) ||
            pattern->algorithm == NULL)
            return false;
        prepared->count++;
    }
    return true;
}

/* Reads a text from malloc, or NULL, and frees it. */
static void read_text(char *text, struct tconv_prepared *prepared)
{
    prepared->count = 0;
    if (text != NULL && !read_lines(text, prepared)) prepared->count = 0;
    free(text);
}

void tconv_prepared_read(const tconv_plan *plan, struct tconv_prepared *prepared)
{
    char key[TCONV_SEARCH_KEY];
    read_text(tconv_prepared_key(plan, key)
                  ? tconv_store_text(tconv_device_store(plan->device), TCONV_STORED_PREPARED, key)
                  : NULL,
              prepared);
}

bool tconv_prepared_keep(const tconv_plan *plan, const struct tconv_prepared *prepared,
                         const struct tconv_prepared *dropped, struct tconv_os_reason *reason)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* from reading to writing */
    char key[TCONV_SEARCH_KEY], text[TEXT_BYTES];
    struct tconv_text t = tconv_text_begin(text, sizeof text);
    struct tconv_store *store = tconv_device_store(plan->device);
    struct tconv_prepared others;
    bool stored = false;
    const bool named = tconv_prepared_key(plan, key);
    pthread_mutex_lock(&lock);
    read_text(named ? tconv_store_text_anew(store, TCONV_STORED_PREPARED, key) : NULL, &others);
    for (int i = 0; i < prepared->count; i++) add_pattern(&t, &prepared->pattern[i]);
    for (int i = 0, room = TCONV_MOST_PREPARED - prepared->count; i < others.count && room > 0; i++)
        if (!has(prepared, &others.pattern[i]) && !has(dropped, &others.pattern[i])) {
            add_pattern(&t, &others.pattern[i]);
            room--;
        }
    if (named && tconv_text_fits(&t))
        stored = tconv_store_keep_text(store, TCONV_STORED_PREPARED, key, text, reason);
    else
        snprintf(reason->text, sizeof reason->text, "its text is too long");
    pthread_mutex_unlock(&lock);
    return stored;
}
