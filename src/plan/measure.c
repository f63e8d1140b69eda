/* SPDX-License-Identifier: Apache-2.0 */
/* Times the candidates for a problem in turn, and finds the fastest. */
#include "plan/measure.h"

#include "base/error.h"
#include "base/inside.h"
#include "base/number.h"
#include "base/os.h"
#include "base/text.h"
#include "plan/rounds.h"
#include "plan/scratch.h"

#include <stdlib.h>

enum {
    MOST_CANDIDATES = 8,
    MOST_TIMES = 10, /* computations of a run on a GPU, if so many take less than */
    RUN_MS = 1,      /* this */
    USUAL_MS = 500,  /* milliseconds for timing, by default */
    /* Rounds after which a candidate with twice the least time is dropped: if the model expects
     * that, and if it does not. */
    EXPECTED_AFTER = 2,
    UNEXPECTED_AFTER = 8,
    /* A slow candidate is run again only if its run takes less than this part (1 / LONG_RUNS) of
     * all the time. */
    LONG_RUNS = 20,
};

/* Further tiles of an algorithm are timed only if the model expects less than CLOSE times the best
 * candidate's time: tiles that are ranked far behind are not worth a compilation. */
static const double CLOSE = 2;

struct timed {
    struct tconv_candidate candidate;
    tconv_plan *plan;
    tconv_packed_filter *filter;
    struct tconv_rounds rounds;
};

/* The objects of timing. Every member may be missing after an error. */
struct bench {
    struct timed candidates[TCONV_MAX_ALGORITHMS * TCONV_MOST_TIMED_TILES];
    int count;
    struct tconv_scratch scratch;
    bool incomplete; /* a candidate could not be timed, maybe because of a transient failure */
};

static double now_ms(void)
{
    return 1e3 * tconv_os_seconds();
}

static int cheaper(const void *a, const void *b)
{
    const struct timed *c = a, *d = b;
    return (c->candidate.cost > d->candidate.cost) - (c->candidate.cost < d->candidate.cost);
}

/* Adds the best tiles of an algorithm. */
static void list_tiles(const tconv_plan *plan, const struct tconv_algorithm *algorithm,
                       struct bench *bench)
{
    struct tconv_candidates candidates;
    struct tconv_reason reason;
    if (!tconv_enumerate(algorithm, &plan->request, NULL, &candidates, &reason)) return;
    for (int i = 0; i < candidates.count && i < TCONV_MOST_TIMED_TILES; i++)
        bench->candidates[bench->count++].candidate = candidates.list[i];
}

/* Lists the candidates with the least expected cost, the best first. The reference only if there is
 * no other. */
static void list_candidates(const tconv_plan *plan, struct bench *bench)
{
    for (int i = 0; tconv_algorithm_at(i) != NULL; i++) {
        const bool last = tconv_algorithm_at(i + 1) == NULL;
        if (plan->passed_over[i] == NULL && !(last && bench->count > 0))
            list_tiles(plan, tconv_algorithm_at(i), bench);
    }
    qsort(bench->candidates, (size_t)bench->count, sizeof *bench->candidates, cheaper);
    unsigned seen = 0; /* algorithms */
    int kept = 0;
    for (int i = 0; i < bench->count && kept < MOST_CANDIDATES; i++) {
        const struct tconv_candidate c = bench->candidates[i].candidate;
        const unsigned bit = 1u << tconv_algorithm_index(c.algorithm);
        if ((seen & bit) != 0 && c.cost > CLOSE * bench->candidates[0].candidate.cost) continue;
        seen |= bit;
        bench->candidates[kept++].candidate = c;
    }
    bench->count = kept;
}

static void free_bench(struct bench *bench)
{
    tconv_scratch_free(&bench->scratch);
    for (int i = 0; i < bench->count; i++) {
        tconv_packed_filter_release(bench->candidates[i].filter);
        tconv_plan_release(bench->candidates[i].plan);
    }
}

/* Runs a candidate and waits. Returns the time of one computation; negative if one fails. */
static double run(const struct bench *bench, const struct timed *c, int times, tconv_error *error)
{
    return tconv_scratch_run(&bench->scratch, c->plan, c->filter, times, error);
}

/* Packs the filter of a candidate and runs it once. */
static tconv_status run_first(struct bench *bench, struct timed *c, tconv_error *error)
{
    const tconv_status status = tconv_scratch_pack(&bench->scratch, c->plan, &c->filter, error);
    if (status != TCONV_OK) return status;
    return run(bench, c, 1, error) < 0 ? error->status : TCONV_OK;
}

/* Compiles a candidate, packs its filter and runs it once. If it cannot be timed it has no plan
 * afterwards. */
static tconv_status prepare(tconv_plan *plan, struct bench *bench, struct timed *c,
                            tconv_error *error)
{
    tconv_status status = tconv_plan_begin_again(plan, &c->plan, error);
    if (status != TCONV_OK) return status;
    const bool made = (status = tconv_plan_make(c->plan, &c->candidate, error)) == TCONV_OK;
    tconv_retry_join(&plan->retry, &c->plan->retry);
    if (made && run_first(bench, c, error) == TCONV_OK) return TCONV_OK;
    const bool unfit = tconv_kernel_is_unfit(error);
    tconv_plan_release(c->plan);
    c->plan = NULL;
    bench->incomplete = bench->incomplete || (made && !unfit);
    if (made || !unfit) return status;
    return tconv_plan_pass_over(plan, &c->candidate, error->message, error);
}

static const struct timed *fastest(const struct bench *bench)
{
    const struct timed *best = NULL;
    for (int i = 0; i < bench->count; i++) {
        const struct timed *c = &bench->candidates[i];
        if (c->rounds.count > 0 && (best == NULL || c->rounds.least < best->rounds.least)) best = c;
    }
    return best;
}

bool tconv_search_goes_on(const tconv_plan_options *options, const char *algorithm, int done,
                          int count, double best_ms)
{
    if (options->search_progress == NULL) return true;
    const bool was_inside = tconv_enter_callback();
    const bool wanted =
        options->search_progress(options->search_context, algorithm, done, count, best_ms);
    tconv_leave_callback(was_inside);
    return wanted;
}

static bool go_on(const tconv_plan_options *options, const struct bench *bench, int index)
{
    const struct timed *best = fastest(bench);
    const struct timed *next = index < bench->count ? &bench->candidates[index] : best;
    return tconv_search_goes_on(options, next == NULL ? "" : next->candidate.algorithm->name, index,
                                bench->count, best == NULL ? 0 : best->rounds.least);
}

/* The cost model's choice: the first candidate that could be timed. */
static const struct timed *model_choice(const struct bench *bench)
{
    for (int i = 0; i < bench->count; i++)
        if (bench->candidates[i].plan != NULL) return &bench->candidates[i];
    return NULL;
}

/* True if timing a candidate further is useless. */
static bool hopeless(const struct bench *bench, const struct timed *c, int round, double most_ms)
{
    const struct timed *best = fastest(bench), *model = model_choice(bench);
    const double ms = c->rounds.least;
    if (c == model || best == NULL || ms <= 2 * best->rounds.least) return false;
    const bool expected = c->candidate.cost > 1.5 * model->candidate.cost;
    return round >= (expected ? EXPECTED_AFTER : UNEXPECTED_AFTER) || ms * LONG_RUNS > most_ms;
}

/* How many computations a timed run has. On a GPU several, if one takes microseconds: the time to
 * start it and to notice its end is longer, and differs from run to run. */
static int times_of(const struct timed *c)
{
    const double ms = c->rounds.least;
    if (c->plan->info.kind != TCONV_DEVICE_GPU || ms == 0) return 1;
    return ms * MOST_TIMES > RUN_MS ? (int)(RUN_MS / ms) + 1 : MOST_TIMES;
}

/* Times a candidate once more. False if its run fails. */
static bool time_once(struct bench *bench, struct timed *c)
{
    tconv_error own;
    const double ms = run(bench, c, times_of(c), &own);
    bench->incomplete = bench->incomplete || ms < 0;
    if (ms > 0) tconv_rounds_add(&c->rounds, ms);
    return ms > 0;
}

/* Times all candidates in turn, again and again until the time is over. */
static void time_rounds(struct bench *bench, double most_ms)
{
    const double start = now_ms();
    for (int round = 0; round < TCONV_MOST_ROUNDS; round++)
        for (int i = 0; i < bench->count; i++) {
            struct timed *c = &bench->candidates[i];
            if (c->plan == NULL || hopeless(bench, c, round, most_ms)) continue;
            if (c->rounds.count == round) time_once(bench, c); /* else a run of it has failed */
            if (now_ms() - start > most_ms) return;
        }
}

/* If the time was over before the fastest candidate and the model's choice had the rounds that tell
 * whether one is faster, both get them now. */
static void time_fastest(struct bench *bench)
{
    const struct timed *best = fastest(bench), *model = model_choice(bench);
    if (best == NULL || !tconv_rounds_may_be_faster(&best->rounds, &model->rounds)) return;
    while (tconv_rounds_common(&best->rounds, &model->rounds) < TCONV_FEWEST_ROUNDS) {
        const struct timed *next = best->rounds.count < model->rounds.count ? best : model;
        if (!time_once(bench, &bench->candidates[next - bench->candidates])) return;
    }
}

static void conclude(const struct bench *bench, struct tconv_measured *m)
{
    const struct timed *model = model_choice(bench), *best = model;
    m->incomplete = bench->incomplete;
    if (model == NULL || model->rounds.count == 0) return;
    for (int i = 0; i < bench->count; i++) {
        const struct timed *c = &bench->candidates[i];
        m->candidates += c->rounds.count > 0;
        if (c->rounds.count > 0 && c->rounds.least < best->rounds.least &&
            tconv_rounds_are_faster(&c->rounds, &model->rounds))
            best = c;
    }
    m->best = best->candidate;
    m->model_ms = model->rounds.least;
    m->best_ms = best->rounds.least;
    m->median_ms = tconv_rounds_median(&best->rounds);
    m->noise = tconv_rounds_noise(&best->rounds, &model->rounds);
}

/* Writes the text of tconv_plan_timed. NULL if memory is missing. */
static char *report(const struct bench *bench)
{
    enum { LINE_BYTES = TCONV_TILE_TEXT + 120 };
    const size_t size = (size_t)bench->count * LINE_BYTES + 1;
    char *text = malloc(size);
    if (text == NULL) return NULL;
    struct tconv_text lines = tconv_text_begin(text, size);
    for (int i = 0; i < bench->count; i++) {
        const struct timed *c = &bench->candidates[i];
        char tile[TCONV_TILE_TEXT];
        tconv_tile_text(&c->candidate, tile, sizeof tile);
        if (c->rounds.count > 0)
            tconv_text_add_line(&lines, "%s%s%s cost %s ms %s", c->candidate.algorithm->name,
                                tile[0] == '\0' ? "" : " ", tile,
                                tconv_number(c->candidate.cost, 6).text,
                                tconv_number(c->rounds.least, 6).text);
    }
    return text;
}

tconv_status tconv_measure(tconv_plan *plan, const tconv_plan_options *options,
                           struct tconv_measured *measured, tconv_error *error)
{
    struct bench bench = {.count = 0};
    tconv_status status = TCONV_OK;
    *measured = (struct tconv_measured){.candidates = 0};
    list_candidates(plan, &bench);
    if (bench.count > 0 && plan->geometry.output_bytes > 0 &&
        tconv_scratch_make(plan, NULL, &bench.scratch, error) == TCONV_OK) {
        for (int i = 0; i < bench.count && status == TCONV_OK && !measured->stopped; i++) {
            measured->stopped = !go_on(options, &bench, i);
            if (!measured->stopped) status = prepare(plan, &bench, &bench.candidates[i], error);
        }
        if (status == TCONV_OK && !measured->stopped) {
            time_rounds(&bench, options->search_ms == 0 ? USUAL_MS : options->search_ms);
            time_fastest(&bench);
            measured->stopped = !go_on(options, &bench, bench.count);
        }
        conclude(&bench, measured);
        free(plan->timed);
        plan->timed = report(&bench);
    }
    free_bench(&bench);
    return status;
}
