/* SPDX-License-Identifier: Apache-2.0 */
/* What a device object keeps for plans, as texts by keys: results of searches and prepared
 * programs. Writes keys and texts, reads them, and lists the stored searches. */
#include "plan/records.h"

#include "base/cancel.h"
#include "base/epilogue.h"
#include "base/error.h"
#include "base/members.h"
#include "base/number.h"
#include "base/struct_size.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY = 1200, PREPARED_TEXT = TCONV_MOST_PREPARED * (TCONV_TILE_TEXT + 40) };

/* ---- keys ---- */

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

/* Adds the taps of a convolution behind an upsampling, which not all algorithms add up. Pixel
 * shuffle is as fast as the transposed convolution that computes it. */
static void add_taps(struct tconv_text *t, const struct tconv_equivalent *e)
{
    for (int a = 0; a < e->axes && tconv_has_sums(e); a++)
        tconv_text_add(t, " taps%lld d%lld", (long long)e->kernel[a], (long long)e->dilation[a]);
}

/* Writes everything of a problem that speed depends on: "f32 n1 g1 i20 o10 x224 k3 s2 d1 p1 y447
 * steps 50176 199809 bias relu". False if it does not fit. */
static bool search_key(const tconv_plan *plan, char key[KEY])
{
    const struct tconv_loops *l = &plan->loops;
    struct tconv_text t = tconv_text_begin(key, KEY);
    add_types(&t, l);
    tconv_text_add(&t, " n%lld g%lld i%lld o%lld", (long long)l->batch, (long long)l->groups,
                   (long long)l->in_channels, (long long)l->out_channels);
    for (int a = 0; a < l->axes; a++) {
        const struct tconv_axis *x = &l->axis[a];
        tconv_text_add(&t, " x%lld k%lld s%lld d%lld p%lld y%lld", (long long)x->input,
                       (long long)x->kernel, (long long)x->stride, (long long)x->dilation,
                       (long long)x->pad, (long long)x->output);
    }
    add_taps(&t, &l->equivalent);
    add_steps(&t, l);
    if (l->phase_axes > 0) tconv_text_add(&t, " phases");
    if (plan->epilogue.residual && l->residual_axes != 0) add_residual_steps(&t, l);
    add_words(&t, plan);
    const uint32_t units = tconv_device_part_units(plan->device);
    if (units != 0) tconv_text_add(&t, " units %u", (unsigned)units);
    return tconv_text_fits(&t);
}

/* Writes what the programs of a layer depend on, whatever its extents and pads are: the key of its
 * prepared programs. False if it does not fit. */
static bool prepared_key(const tconv_plan *plan, char key[KEY])
{
    const struct tconv_loops *l = &plan->loops;
    struct tconv_text t = tconv_text_begin(key, KEY);
    add_types(&t, l);
    tconv_text_add(&t, " g%lld i%lld o%lld", (long long)l->groups, (long long)l->in_channels,
                   (long long)l->out_channels);
    for (int a = 0; a < l->axes; a++)
        tconv_text_add(&t, " k%lld s%lld d%lld", (long long)l->axis[a].kernel,
                       (long long)l->axis[a].stride, (long long)l->axis[a].dilation);
    if (l->equivalent.axes > 0) tconv_text_add(&t, " sums"); /* one program more */
    add_taps(&t, &l->equivalent);
    if (l->phase_axes > 0) tconv_text_add(&t, " phases");
    /* Not by steps: those of an image of one point are the same in both formats. */
    if (plan->geometry.data_format == TCONV_NXC) tconv_text_add(&t, " channels_last");
    add_words(&t, plan);
    return tconv_text_fits(&t);
}

/* ---- results of searches ---- */

/* The lines of a result up to the algorithm have room for TCONV_SEARCH_TEXT bytes. */
enum { LAYER = 1600, ORIGIN = 201, RECORD = TCONV_SEARCH_TEXT + LAYER + ORIGIN + 100 };

/* What is stored of a search besides the candidate. */
struct result {
    const tconv_choice *choice;
    double median_ms;
    const char *origin; /* NULL: measured here */
};

/* Adds the plan's problem as options of the tool, if they can say it. */
static void add_layer(struct tconv_text *t, const tconv_plan *plan)
{
    char layer[LAYER];
    if (plan->output_end != 0 || plan->request.workspace_limit != 0 ||
        tconv_device_part_units(plan->device) != 0 ||
        tconv_problem_text(&plan->problem, layer, sizeof layer) >= LAYER)
        return;
    struct tconv_text options = tconv_text_resume(layer, sizeof layer);
    tconv_epilogue_text(&plan->epilogue, &options);
    if (plan->request.math != TCONV_MATH_EXACT)
        tconv_text_add(&options, " --math %s", tconv_math_name(plan->request.math));
    if (tconv_text_fits(&options)) tconv_text_add(t, "layer %s\n", layer);
}

/* Writes the result of a search for the plan, with its times. */
static void write_search(const tconv_plan *plan, const struct tconv_candidate *candidate,
                         const struct result *r, char text[RECORD])
{
    char tile[TCONV_TILE_TEXT];
    tconv_tile_text(candidate, tile, sizeof tile);
    struct tconv_text t = tconv_text_begin(text, RECORD);
    tconv_text_add(&t, "candidates %d\nmodel_ms %s\nbest_ms %s\nalgorithm %s%s%s\n",
                   r->choice->candidates, tconv_number(r->choice->model_ms, 6).text,
                   tconv_number(r->choice->best_ms, 6).text, candidate->algorithm->name,
                   tile[0] == '\0' ? "" : " ", tile);
    tconv_text_add(&t, "median_ms %s\n", tconv_number(r->median_ms, 6).text);
    if (r->origin != NULL) tconv_text_add(&t, "origin %s\n", r->origin);
    add_layer(&t, plan);
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

/* Copies the line of a result that begins with a word and a blank, without these; "" if there is
 * none, or if it does not fit. */
static void copy_line(const char *text, const char *word, char *line, size_t size)
{
    const size_t length = strlen(word);
    line[0] = '\0';
    while (text != NULL && (strncmp(text, word, length) != 0 || text[length] != ' '))
        text = strchr(text, '\n') == NULL ? NULL : strchr(text, '\n') + 1;
    if (text == NULL) return;
    text += length + 1;
    const size_t bytes = strcspn(text, "\n");
    if (bytes < size) snprintf(line, size, "%.*s", (int)bytes, text);
}

bool tconv_search_find(tconv_plan *plan, enum tconv_stored kind, struct tconv_pattern *pattern,
                       tconv_choice *choice)
{
    char key[KEY], origin[ORIGIN];
    char *text = search_key(plan, key) ? tconv_store_text(&plan->device->store, kind, key) : NULL;
    bool found = text != NULL && tconv_search_text_read(text, pattern, choice);
    if (found && kind == TCONV_STORED_IMPORTED) {
        choice->source = TCONV_SEARCH_IMPORTED;
        copy_line(text, "origin", origin, sizeof origin);
        free(plan->origin);
        plan->origin = strdup(origin);
        found = plan->origin != NULL;
    }
    free(text);
    return found;
}

/* Keeps a result. False with a reason if the folder does not take it. */
static bool keep(const tconv_plan *plan, enum tconv_stored kind, const char *key,
                 const struct tconv_candidate *candidate, const struct result *result,
                 struct tconv_os_reason *reason)
{
    char text[RECORD];
    struct tconv_store *store = &plan->device->store;
    write_search(plan, candidate, result, text);
    return tconv_store_keep_text(store, kind, key, text, reason) ||
           !tconv_store_has_folder(store, kind);
}

/* The words of a message: what cannot be stored where, and why. */
#define NOT_STORED "the result cannot be stored in %s: %s"

void tconv_search_keep(tconv_plan *plan, double median_ms)
{
    char key[KEY];
    struct tconv_os_reason reason = {""};
    const struct result result = {&plan->choice, median_ms, NULL};
    if (!search_key(plan, key) ||
        keep(plan, TCONV_STORED_SEARCH, key, &plan->candidate, &result, &reason))
        return;
    const char *folder = plan->device->store.folder;
    const size_t size = strlen(folder) + sizeof reason + sizeof NOT_STORED;
    plan->not_stored = malloc(size);
    if (plan->not_stored != NULL) snprintf(plan->not_stored, size, NOT_STORED, folder, reason.text);
}

/* ---- results from elsewhere ---- */

tconv_status tconv_search_check(const tconv_stored_search *found, tconv_choice *choice,
                                tconv_error *error)
{
    *choice = (tconv_choice)TCONV_CHOICE_INIT;
    choice->candidates = found->candidates;
    choice->model_ms = found->model_ms;
    choice->best_ms = found->best_ms;
    const char *origin = found->origin;
    if (found->algorithm == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "found.algorithm is NULL");
    if (origin == NULL || origin[0] == '\0' || strlen(origin) >= ORIGIN ||
        strchr(origin, '\n') != NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "found.origin is %s: it must be one line of 1 to %d bytes",
                          origin == NULL            ? "NULL"
                          : origin[0] == '\0'       ? "empty"
                          : strlen(origin) < ORIGIN ? "more than a line"
                                                    : "too long",
                          ORIGIN - 1);
    if (!is_measured(choice) || !(found->median_ms > 0) || !isfinite(found->median_ms))
        return tconv_fail(
            error, TCONV_ERROR_ARGUMENT,
            "found has %d candidates, best_ms %s, median_ms %s and model_ms %s, which "
            "no search measures: it takes at least one candidate, finite times above 0, and "
            "best_ms at most model_ms",
            (int)found->candidates, tconv_number(found->best_ms, 6).text,
            tconv_number(found->median_ms, 6).text, tconv_number(found->model_ms, 6).text);
    return TCONV_OK;
}

tconv_status tconv_search_import(const tconv_plan *plan, const struct tconv_candidate *candidate,
                                 const tconv_stored_search *found, const tconv_choice *choice,
                                 bool *used, tconv_error *error)
{
    char key[KEY];
    struct tconv_os_reason reason = {""};
    struct tconv_store *store = &plan->device->store;
    const struct result result = {choice, found->median_ms, found->origin};
    if (!search_key(plan, key))
        return tconv_fail(error, TCONV_ERROR_UNSUPPORTED,
                          "the problem is too long for a key of the store");
    if (!keep(plan, TCONV_STORED_IMPORTED, key, candidate, &result, &reason))
        return tconv_fail(error, TCONV_ERROR_FILE, NOT_STORED, store->folder, reason.text);
    char *own = tconv_store_text(store, TCONV_STORED_SEARCH, key);
    *used = own == NULL;
    free(own);
    return TCONV_OK;
}

/* ---- listing results ---- */

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
    char name[TCONV_SEARCH_TEXT] = "", layer[LAYER], origin[ORIGIN], median[24], *end;
    tconv_choice choice = TCONV_CHOICE_INIT;
    struct tconv_pattern pattern;
    const struct tconv_stored_key key = tconv_store_read_key(l->store, whole);
    const bool imported = key.kind == TCONV_STORED_IMPORTED,
               search = imported || key.kind == TCONV_STORED_SEARCH, used = key.own && search;
    if (!search && key.kind != TCONV_STORED_KINDS) return;
    if (search && key.identity_size > 0) whole[key.identity_size - 1] = '\0'; /* its last line */
    tconv_stored_search stored = {.state = !used      ? TCONV_RECORD_FOREIGN
                                           : imported ? TCONV_RECORD_IMPORTED
                                                      : TCONV_RECORD_USED,
                                  .file = file,
                                  .device = search && !key.own ? whole : "",
                                  .problem = key.key,
                                  .algorithm = "",
                                  .layer = "",
                                  .origin = ""};
    /* A record of another version may name an algorithm that this version does not have. */
    const bool right = search && text[0] != '\0' && split(text, &choice, name) &&
                       (!used || tconv_search_text_read(text, &pattern, &choice));
    if (right) {
        stored.algorithm = name;
        stored.candidates = choice.candidates;
        stored.model_ms = choice.model_ms;
        stored.best_ms = choice.best_ms;
        copy_line(text, "median_ms", median, sizeof median);
        copy_line(text, "layer", layer, sizeof layer);
        copy_line(text, "origin", origin, sizeof origin);
        stored.median_ms = tconv_number_read(median, &end);
        stored.layer = layer;
        stored.origin = origin;
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
        const bool damaged = state == TCONV_FILE_DAMAGED;
        const tconv_stored_search stored = {.state = damaged ? TCONV_RECORD_DAMAGED
                                                             : TCONV_RECORD_FOREIGN,
                                            .file = name,
                                            .device = "",
                                            .problem = "",
                                            .algorithm = "",
                                            .layer = "",
                                            .origin = ""};
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
    const struct tconv_store *store = &device->store;
    struct listing l = {store, visit, context, true};
    if (tconv_store_has_folder(store, TCONV_STORED_SEARCH))
        tconv_folder_list(store->folder, store->limit, tell_file, &l);
    return l.memory ? TCONV_OK : tconv_fail_memory(error, KEY, "listing stored search results");
}

/* ---- prepared programs ---- */

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
    const struct tconv_tile_parameter *parameters = pattern->algorithm->parameters;
    tconv_text_add(t, "%s", pattern->algorithm->name);
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
    char key[KEY];
    read_text(prepared_key(plan, key)
                  ? tconv_store_text(&plan->device->store, TCONV_STORED_PREPARED, key)
                  : NULL,
              prepared);
}

bool tconv_prepared_keep(const tconv_plan *plan, const struct tconv_prepared *prepared,
                         const struct tconv_prepared *dropped, struct tconv_os_reason *reason)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* from reading to writing */
    char key[KEY], text[PREPARED_TEXT];
    struct tconv_text t = tconv_text_begin(text, sizeof text);
    struct tconv_store *store = &plan->device->store;
    struct tconv_prepared others;
    bool stored = false;
    const bool named = prepared_key(plan, key);
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
