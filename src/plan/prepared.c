/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and keeps the list of a layer's prepared programs: a line for each, with the algorithm and
 * the tile parameters on which its programs depend. */
#include "plan/prepared.h"

#include "base/os.h"
#include "base/text.h"
#include "device/device.h"
#include "plan/search_text.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = TCONV_MOST_PREPARED * (TCONV_TILE_TEXT + 40) };

struct tconv_pattern tconv_prepared_pattern(const struct tconv_candidate *candidate)
{
    struct tconv_pattern pattern = {.algorithm = candidate->algorithm};
    for (int i = 0; i < TCONV_MAX_TILE; i++)
        pattern.tile[i] = i < candidate->algorithm->program_parameters ? candidate->tile[i]
                                                                       : TCONV_ANY;
    return pattern;
}

bool tconv_prepared_equal(const struct tconv_pattern *a, const struct tconv_pattern *b)
{
    return a->algorithm == b->algorithm && memcmp(a->tile, b->tile, sizeof a->tile) == 0;
}

bool tconv_is_prepared(const struct tconv_prepared *prepared,
                       const struct tconv_candidate *candidate)
{
    const struct tconv_pattern pattern = tconv_prepared_pattern(candidate);
    for (int i = 0; i < prepared->count; i++)
        if (tconv_prepared_equal(&prepared->pattern[i], &pattern)) return true;
    return false;
}

static void add_pattern(struct tconv_text *t, const struct tconv_pattern *pattern)
{
    tconv_text_add(t, "%s", pattern->algorithm->name);
    for (int i = 0; i < pattern->algorithm->program_parameters; i++)
        tconv_text_add(t, " %s=%" PRId64, pattern->algorithm->tile_names[i], pattern->tile[i]);
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

void tconv_prepared_read(const tconv_plan *plan, struct tconv_prepared *prepared)
{
    char key[TCONV_SEARCH_KEY];
    prepared->count = 0;
    char *text = tconv_prepared_key(plan, key) ? tconv_store_text(tconv_device_store(plan->device),
                                                                  TCONV_STORED_PREPARED, key)
                                               : NULL;
    if (text != NULL && !read_lines(text, prepared)) prepared->count = 0;
    free(text);
}

bool tconv_prepared_keep(const tconv_plan *plan, const struct tconv_prepared *prepared,
                         struct tconv_os_reason *reason)
{
    char key[TCONV_SEARCH_KEY], text[TEXT_BYTES];
    struct tconv_text t = tconv_text_begin(text, sizeof text);
    for (int i = 0; i < prepared->count; i++) add_pattern(&t, &prepared->pattern[i]);
    if (tconv_prepared_key(plan, key) && tconv_text_fits(&t))
        return tconv_store_keep_text(tconv_device_store(plan->device), TCONV_STORED_PREPARED, key,
                                     text, reason);
    snprintf(reason->text, sizeof reason->text, "its text is too long");
    return false;
}
