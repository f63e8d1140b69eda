/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates: lists of the cheapest tiles, tiles as text, and the choice among all algorithms. */
#include "algorithm/registry.h"

#include "base/error.h"
#include "base/text.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct tconv_tile_parameter *parameter_named(const struct tconv_algorithm *algorithm,
                                                          const char *name, size_t length)
{
    for (const struct tconv_tile_parameter *p = algorithm->parameters; p->name != NULL; p++)
        if (strlen(p->name) == length && strncmp(p->name, name, length) == 0) return p;
    return NULL;
}

static bool read_parameter(const char *text, size_t length, struct tconv_pattern *pattern,
                           struct tconv_reason *reason)
{
    const char *equal = memchr(text, '=', length);
    char *end = NULL;
    const struct tconv_tile_parameter *p =
        equal == NULL ? NULL : parameter_named(pattern->algorithm, text, (size_t)(equal - text));
    const long long value = p == NULL ? -1 : strtoll(equal + 1, &end, 10);
    if (p != NULL && tconv_tile_value(&pattern->tile, p) != TCONV_ANY)
        return tconv_refuse(reason, "tile parameter %s is given twice: give it once", p->name);
    if (p != NULL && equal[1] >= '0' && equal[1] <= '9' && end == text + length) {
        tconv_tile_set(&pattern->tile, p, value < INT_MAX ? (int)value : INT_MAX); /* of no tile */
        return true;
    }
    char names[120];
    struct tconv_text list = tconv_text_begin(names, sizeof names);
    for (p = pattern->algorithm->parameters; p->name != NULL; p++)
        tconv_text_add(&list, "%s%s", list.length == 0 ? "" : ", ", p->name);
    return tconv_refuse(reason, "\"%.*s\" is not a tile parameter with a number; it has %s",
                        (int)(length < 40 ? length : 40), text, names[0] == '\0' ? "none" : names);
}

bool tconv_pattern_read(const char *text, struct tconv_pattern *pattern,
                        struct tconv_reason *reason)
{
    static const char spaces[] = " ,";
    char name[64];
    *pattern = (struct tconv_pattern){.algorithm = NULL};
    if (text == NULL) text = "auto";
    const size_t length = strcspn(text, spaces);
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name), text);
    if (strcmp(text, "auto") == 0) return true;
    pattern->algorithm = tconv_algorithm_named(name);
    if (pattern->algorithm == NULL)
        return tconv_refuse(reason, "there is no such algorithm; `tconv-cl algorithms` lists them");
    for (const struct tconv_tile_parameter *p = pattern->algorithm->parameters; p->name != NULL;
         p++)
        tconv_tile_set(&pattern->tile, p, TCONV_ANY);
    for (text += length, text += strspn(text, spaces); *text != '\0';
         text += strspn(text, spaces)) {
        const size_t part = strcspn(text, spaces);
        if (!read_parameter(text, part, pattern, reason)) return false;
        text += part;
    }
    return true;
}

static bool same_program(const struct tconv_candidate *candidate, const struct tconv_tile *tile)
{
    const struct tconv_algorithm *algorithm = candidate->algorithm;
    for (int i = 0; i < algorithm->program_parameters; i++)
        if (tconv_tile_value(&candidate->tile, &algorithm->parameters[i]) !=
            tconv_tile_value(tile, &algorithm->parameters[i]))
            return false;
    return true;
}

static bool is_wanted(const struct tconv_candidates *candidates, const struct tconv_tile *tile)
{
    for (const struct tconv_tile_parameter *p = candidates->algorithm->parameters; p->name != NULL;
         p++) {
        const int wanted = tconv_tile_value(candidates->wanted, p);
        if (wanted != TCONV_ANY && wanted != tconv_tile_value(tile, p)) return false;
    }
    return true;
}

void tconv_candidates_add(struct tconv_candidates *candidates, const struct tconv_tile *tile,
                          double cost)
{
    struct tconv_candidate *list = candidates->list;
    if (isnan(cost)) cost = INFINITY; /* a field that was set by hand can make the cost NaN */
    int at = 0, end = candidates->count;
    if (end == TCONV_MAX_CANDIDATES && cost >= list[end - 1].cost) return;
    if (candidates->wanted != NULL && !is_wanted(candidates, tile)) return;
    while (at < end && list[at].cost <= cost) {
        if (same_program(&list[at], tile)) return;
        at++;
    }
    /* The moved candidates overwrite the one with the same program, or the last one. */
    int position = at;
    while (position < end && !same_program(&list[position], tile)) position++;
    if (position == end && end < TCONV_MAX_CANDIDATES) candidates->count++;
    if (position == TCONV_MAX_CANDIDATES) position--;
    memmove(list + at + 1, list + at, (size_t)(position - at) * sizeof *list);
    list[at] = (struct tconv_candidate){candidates->algorithm, *tile, cost};
}

static bool is_made_for(const struct tconv_algorithm *algorithm, const tconv_device_info *device)
{
    const bool vectors = device->kind == TCONV_DEVICE_CPU && device->vector_width > 1;
    return algorithm->made_for == TCONV_FOR_ALL ||
           (algorithm->made_for == TCONV_FOR_VECTORS) == vectors;
}

static bool is_empty(const struct tconv_loops *loops)
{
    for (int a = 0; a < loops->axes; a++)
        if (loops->axis[a].input == 0) return true;
    return false;
}

bool tconv_enumerate(const struct tconv_algorithm *algorithm, const struct tconv_request *request,
                     const struct tconv_tile *wanted, struct tconv_candidates *candidates,
                     struct tconv_reason *reason)
{
    *candidates = (struct tconv_candidates){.algorithm = algorithm};
    if (is_empty(request->loops) && !algorithm->takes_empty)
        return tconv_refuse(reason, "the data has a spatial extent of 0");
    if (algorithm->stages_locally && tconv_emulates_local_memory(request->device))
        return tconv_refuse(reason, "the device has no local memory apart from global memory");
    if (wanted != NULL) {
        struct tconv_candidates all;
        if (!tconv_enumerate(algorithm, request, NULL, &all, reason)) return false;
        candidates->wanted = wanted;
        const bool listed = algorithm->enumerate(request, candidates, reason);
        if (!listed || candidates->count == 0) {
            char text[TCONV_TILE_TEXT];
            tconv_tile_text(&all.list[0], text, sizeof text);
            return tconv_refuse(reason, "it has no such tile; the best one is %.140s", text);
        }
    } else if (!algorithm->enumerate(request, candidates, reason))
        return false;
    if (!is_made_for(algorithm, request->device))
        for (int i = 0; i < candidates->count; i++)
            candidates->list[i].cost =
                tconv_machine_unsuited(request->device, candidates->list[i].cost);
    return true;
}

bool tconv_choose(const struct tconv_request *request, const struct tconv_pattern *pattern,
                  unsigned excluded, struct tconv_candidate *best, struct tconv_reason *reason)
{
    bool found = false;
    for (int i = 0; tconv_algorithm_at(i) != NULL; i++) {
        const struct tconv_algorithm *algorithm = tconv_algorithm_at(i);
        struct tconv_candidates candidates;
        if ((excluded >> i & 1) == 0 &&
            (pattern->algorithm == NULL || pattern->algorithm == algorithm) &&
            tconv_enumerate(algorithm, request, pattern->algorithm == NULL ? NULL : &pattern->tile,
                            &candidates, reason) &&
            (!found || candidates.list[0].cost < best->cost)) {
            *best = candidates.list[0];
            found = true;
        }
    }
    return found;
}

int tconv_tile_text(const struct tconv_candidate *candidate, char *text, size_t size)
{
    struct tconv_text tile = tconv_text_begin(text, size);
    for (const struct tconv_tile_parameter *p = candidate->algorithm->parameters; p->name != NULL;
         p++)
        tconv_text_add(&tile, "%s%s=%d", tile.length == 0 ? "" : " ", p->name,
                       tconv_tile_value(&candidate->tile, p));
    return (int)tile.length;
}

tconv_status tconv_kernel_plan_write(const struct tconv_request *request,
                                     const struct tconv_candidate *candidate,
                                     struct tconv_kernel_plan *kernel_plan, tconv_error *error)
{
    const struct tconv_algorithm *algorithm = candidate->algorithm;
    const tconv_status status = algorithm->write(request, candidate, kernel_plan, error);
    if (status != TCONV_OK) return status;
    tconv_write_epilogue(request, kernel_plan->table);
    tconv_kernel_plan_types(kernel_plan, request, algorithm->packing);
    if (request->loops->equivalent.axes > 0 && !algorithm->packs_given &&
        !tconv_equivalent_write(request, kernel_plan))
        return tconv_fail_table(error, kernel_plan);
    if (tconv_kernel_plan_fits(kernel_plan)) return TCONV_OK;
    return tconv_fail(error, TCONV_ERROR_INTERNAL,
                      "the kernel plan of algorithm %s exceeds a kernel plan's limits",
                      algorithm->name);
}
