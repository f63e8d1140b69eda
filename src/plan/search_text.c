/* SPDX-License-Identifier: Apache-2.0 */
/* Writes search results as texts, reads them, and lists the stored ones. */
#include "plan/search_text.h"

#include "base/cancel.h"
#include "base/error.h"
#include "base/members.h"
#include "base/number.h"
#include "base/text.h"
#include "device/device.h"
#include "store/store.h"
#include "tconv_cl/tuning.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD(kind, member, set, word) {set, word},

/* Adds a word for each part of the epilogue and each option of the plan that is set. */
static void add_words(struct tconv_text *t, const tconv_plan *plan)
{
    const tconv_epilogue *e = &plan->epilogue;
    const struct {
        bool set;
        const char *word;
    } words[] = {TCONV_EPILOGUE_MEMBERS(WORD)};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].set) tconv_text_add(t, " %s", words[i].word);
    if (plan->request.math != TCONV_MATH_EXACT)
        tconv_text_add(t, " %s", tconv_math_name(plan->request.math));
    if (plan->request.workspace_limit != 0)
        tconv_text_add(t, " workspace %llu", (unsigned long long)plan->request.workspace_limit);
}

/* Adds the channels' steps, which tell the formats apart; those of all axes unless data and output
 * are dense. */
static void add_steps(struct tconv_text *t, const struct tconv_loops *l)
{
    tconv_text_add(t, " steps %lld %lld", (long long)l->data_channel_step,
                   (long long)l->output_channel_step);
    if (!l->spaced) return;
    tconv_text_add(t, " batch %lld %lld axes", (long long)l->data_batch_step,
                   (long long)l->output_batch_step);
    for (int a = 0; a < l->axes; a++)
        tconv_text_add(t, " %lld %lld", (long long)l->axis[a].data_step,
                       (long long)l->axis[a].output_step);
}

static void add_residual_steps(struct tconv_text *t, const struct tconv_loops *l)
{
    tconv_text_add(t, " residual_steps");
    for (int i = 0; i < l->residual_axes; i++)
        tconv_text_add(t, " %lld %lld", (long long)l->residual_step[i][0],
                       (long long)l->residual_step[i][1]);
}

static void add_types(struct tconv_text *t, const struct tconv_loops *l)
{
    tconv_text_add(t, "%s", tconv_type_name(l->data_type));
    if (l->filter_type != l->data_type || l->output_type != l->data_type)
        tconv_text_add(t, " %s %s", tconv_type_name(l->filter_type),
                       tconv_type_name(l->output_type));
}

bool tconv_search_key(const tconv_plan *plan, char key[TCONV_SEARCH_KEY])
{
    const struct tconv_loops *l = &plan->loops;
    struct tconv_text t = tconv_text_begin(key, TCONV_SEARCH_KEY);
    add_types(&t, l);
    tconv_text_add(&t, " n%lld g%lld i%lld o%lld", (long long)l->batch, (long long)l->groups,
                   (long long)l->in_channels, (long long)l->out_channels);
    for (int a = 0; a < l->axes; a++) {
        const struct tconv_axis *x = &l->axis[a];
        tconv_text_add(&t, " x%lld k%lld s%lld d%lld p%lld y%lld", (long long)x->input,
                       (long long)x->kernel, (long long)x->stride, (long long)x->dilation,
                       (long long)x->pad, (long long)x->output);
    }
    add_steps(&t, l);
    if (plan->epilogue.residual && l->residual_axes != 0) add_residual_steps(&t, l);
    add_words(&t, plan);
    const uint32_t units = tconv_device_part_units(plan->device);
    if (units != 0) tconv_text_add(&t, " units %u", (unsigned)units);
    return tconv_text_fits(&t);
}

bool tconv_prepared_key(const tconv_plan *plan, char key[TCONV_SEARCH_KEY])
{
    const struct tconv_loops *l = &plan->loops;
    struct tconv_text t = tconv_text_begin(key, TCONV_SEARCH_KEY);
    add_types(&t, l);
    tconv_text_add(&t, " g%lld i%lld o%lld", (long long)l->groups, (long long)l->in_channels,
                   (long long)l->out_channels);
    for (int a = 0; a < l->axes; a++)
        tconv_text_add(&t, " k%lld s%lld d%lld", (long long)l->axis[a].kernel,
                       (long long)l->axis[a].stride, (long long)l->axis[a].dilation);
    /* Not by steps: those of an image of one point are the same in both formats. */
    if (plan->geometry.data_format == TCONV_NXC) tconv_text_add(&t, " channels_last");
    add_words(&t, plan);
    return tconv_text_fits(&t);
}

void tconv_search_text_write(const tconv_plan *plan, char text[TCONV_SEARCH_TEXT])
{
    char tile[TCONV_TILE_TEXT];
    tconv_tile_text(&plan->candidate, tile, sizeof tile);
    snprintf(text, TCONV_SEARCH_TEXT, "candidates %d\nmodel_ms %s\nbest_ms %s\nalgorithm %s%s%s\n",
             plan->choice.candidates, tconv_number(plan->choice.model_ms, 6).text,
             tconv_number(plan->choice.best_ms, 6).text, plan->candidate.algorithm->name,
             tile[0] == '\0' ? "" : " ", tile);
}

/* True for times that a search can have written: positive, finite, best not above the model's. */
static bool is_measured(const tconv_choice *choice)
{
    return choice->candidates > 0 && choice->best_ms > 0 && choice->best_ms <= choice->model_ms &&
           isfinite(choice->model_ms) && isfinite(choice->model_ms / choice->best_ms);
}

/* Splits the text, and refuses one that no search wrote; `name` is the algorithm with its tile. All
 * who read such a text come through here. */
static bool split(const char *text, tconv_choice *choice, char name[TCONV_SEARCH_TEXT])
{
    int candidates = 0;
    char model[24], best[24], *model_end, *best_end;
    if (sscanf(text, "candidates %d model_ms %23s best_ms %23s algorithm %499[^\n]", &candidates,
               model, best, name) != 4)
        return false;
    choice->model_ms = tconv_number_read(model, &model_end);
    choice->best_ms = tconv_number_read(best, &best_end);
    if (*model_end != '\0' || *best_end != '\0') return false;
    choice->source = TCONV_SEARCH_RECORDS;
    choice->candidates = candidates;
    return is_measured(choice);
}

bool tconv_search_text_read(const char *text, struct tconv_pattern *pattern, tconv_choice *choice)
{
    char name[TCONV_SEARCH_TEXT];
    struct tconv_reason reason;
    return split(text, choice, name) && tconv_pattern_read(name, pattern, &reason) &&
           pattern->algorithm != NULL;
}

struct listing {
    const struct tconv_store *store;
    tconv_search_visit visit;
    void *context;
    bool memory;
};

/* Tells of a record with that text, unless it is of another kind than results of searches. `whole`
 * is its key, which is cut apart. */
static void tell(const struct listing *l, const char *file, char *whole, const char *text)
{
    char name[TCONV_SEARCH_TEXT] = "";
    tconv_choice choice = TCONV_CHOICE_INIT;
    struct tconv_pattern pattern;
    const struct tconv_stored_key key = tconv_store_read_key(l->store, whole);
    const bool search = key.kind == TCONV_STORED_SEARCH, used = key.own && search;
    if (!search && key.kind != TCONV_STORED_KINDS) return;
    if (search && key.identity_size > 0) whole[key.identity_size - 1] = '\0'; /* its last line */
    tconv_stored_search stored = {used ? TCONV_RECORD_USED : TCONV_RECORD_FOREIGN,
                                  0,
                                  0,
                                  0,
                                  file,
                                  search && !key.own ? whole : "",
                                  key.key,
                                  ""};
    /* A record of another version may name an algorithm that this version does not have. */
    const bool right = search && text[0] != '\0' && split(text, &choice, name) &&
                       (!used || tconv_search_text_read(text, &pattern, &choice));
    if (right) {
        stored.algorithm = name;
        stored.candidates = choice.candidates;
        stored.model_ms = choice.model_ms;
        stored.best_ms = choice.best_ms;
    } else if (used) {
        stored.state = TCONV_RECORD_DAMAGED;
    }
    l->visit(l->context, &stored);
}

static void tell_file(void *context, const char *name, enum tconv_file_state state,
                      const struct tconv_record *record)
{
    struct listing *l = context;
    if (!l->memory) return;
    if (record == NULL) {
        const tconv_stored_search stored = {state == TCONV_FILE_DAMAGED ? TCONV_RECORD_DAMAGED
                                                                        : TCONV_RECORD_FOREIGN,
                                            0,
                                            0,
                                            0,
                                            name,
                                            "",
                                            "",
                                            ""};
        l->visit(l->context, &stored);
        return;
    }
    char *key = strndup(record->key, record->key_size);
    char *text = strndup(record->binary, record->binary_size);
    l->memory = key != NULL && text != NULL;
    if (l->memory) tell(l, name, key, text);
    free(key);
    free(text);
}

tconv_status tconv_device_stored_searches(const tconv_device *device, tconv_search_visit visit,
                                          void *context, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (device == NULL || visit == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          device == NULL ? "device" : "visit");
    const struct tconv_store *store = tconv_device_store((tconv_device *)(uintptr_t)device);
    struct listing l = {store, visit, context, true};
    if (tconv_store_has_folder(store, TCONV_STORED_SEARCH))
        tconv_folder_list(store->folder, store->limit, tell_file, &l);
    return l.memory ? TCONV_OK
                    : tconv_fail_memory(error, TCONV_SEARCH_KEY, "listing stored search results");
}
