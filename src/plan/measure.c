/* SPDX-License-Identifier: Apache-2.0 */
/* Times the candidates for a problem in turn, and finds the fastest. */
#include "plan/measure.h"

#include "base/error.h"
#include "base/inside.h"
#include "base/number.h"
#include "base/os.h"
#include "base/text.h"
#include "device/device.h"

#include <stdlib.h>

enum {
    MOST_CANDIDATES = 8,
    MOST_ROUNDS = 100,
    MOST_TIMES = 10,  /* computations of a run on a GPU, if so many take less than */
    RUN_MS = 1,       /* this */
    USUAL_MS = 500,   /* milliseconds for timing, by default */
    NUMBER_BYTES = 8, /* the widest element of a bias, a scale or a slope */
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

/* A candidate replaces the cost model's choice only if its least time is below CLEARLY_FASTER of
 * the other's, and if it was faster in MOSTLY of the rounds. Smaller differences, and those that
 * few rounds show, are noise of a shared machine: repeated runs of one algorithm differ by 1 to 3
 * %. */
static const double CLEARLY_FASTER = 0.97, MOSTLY = 0.75;

struct timed {
    struct tconv_candidate candidate;
    tconv_plan *plan;
    tconv_packed_filter *filter;
    double ms; /* the least time; 0: not timed yet */
    int rounds;
    float each[MOST_ROUNDS]; /* the time of each round */
};

/* The objects of timing. Every member may be missing after an error. */
struct bench {
    struct timed candidates[TCONV_MAX_ALGORITHMS * TCONV_MOST_TIMED_TILES];
    int count;
    cl_command_queue queue;
    cl_mem data, weights, output, workspace, channels, residual;
    uint64_t workspace_bytes;
    bool incomplete; /* a candidate could not be timed, maybe because of the moment */
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

/* Makes a buffer of zeros. False if it cannot be allocated. */
static bool make_scratch(const tconv_plan *plan, const struct bench *bench, uint64_t bytes,
                         cl_mem *buffer)
{
    const cl_uint zero = 0;
    const size_t size = ((size_t)bytes + sizeof zero - 1) / sizeof zero * sizeof zero;
    cl_int code;
    if (bytes > plan->info.allocation_limit) return false;
    *buffer =
        clCreateBuffer(tconv_device_context(plan->device), CL_MEM_READ_WRITE, size, NULL, &code);
    if (code != CL_SUCCESS) *buffer = NULL;
    return code == CL_SUCCESS && clEnqueueFillBuffer(bench->queue, *buffer, &zero, sizeof zero, 0,
                                                     size, 0, NULL, NULL) == CL_SUCCESS;
}

static bool make_bench(const tconv_plan *plan, struct bench *bench)
{
    const tconv_geometry *g = &plan->geometry;
    const uint64_t channels = (uint64_t)(g->groups * g->group_out_channels) * NUMBER_BYTES;
    cl_int code;
    bench->queue = clCreateCommandQueue(tconv_device_context(plan->device),
                                        tconv_device_id_of(plan->device), 0, &code);
    if (code != CL_SUCCESS) bench->queue = NULL;
    return code == CL_SUCCESS && make_scratch(plan, bench, g->data_bytes, &bench->data) &&
           make_scratch(plan, bench, g->filter_bytes, &bench->weights) &&
           make_scratch(plan, bench, g->output_bytes, &bench->output) &&
           make_scratch(plan, bench, channels, &bench->channels) &&
           (!plan->epilogue.residual ||
            make_scratch(plan, bench, g->residual_bytes, &bench->residual));
}

static bool make_workspace(const tconv_plan *plan, struct bench *bench, uint64_t bytes)
{
    if (bytes <= bench->workspace_bytes) return true;
    if (bench->workspace != NULL) clReleaseMemObject(bench->workspace);
    bench->workspace = NULL;
    bench->workspace_bytes = 0;
    if (!make_scratch(plan, bench, bytes, &bench->workspace)) return false;
    bench->workspace_bytes = bytes;
    return true;
}

static void free_bench(struct bench *bench)
{
    if (bench->queue != NULL) clFinish(bench->queue);
    for (int i = 0; i < bench->count; i++) {
        tconv_packed_filter_release(bench->candidates[i].filter);
        tconv_plan_release(bench->candidates[i].plan);
    }
    const cl_mem buffers[] = {bench->data,      bench->weights,  bench->output,
                              bench->workspace, bench->channels, bench->residual};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (buffers[i] != NULL) clReleaseMemObject(buffers[i]);
    if (bench->queue != NULL) clReleaseCommandQueue(bench->queue);
}

/* Runs `times` computations one after another. Returns the mean time of one, or a negative number
 * if one fails. */
static double run(const struct bench *bench, const struct timed *c, int times, tconv_error *error)
{
    tconv_args args = TCONV_ARGS_INIT;
    args.filter = c->filter;
    args.data.memory = bench->data;
    args.output.memory = bench->output;
    args.workspace.memory = bench->workspace;
    const tconv_epilogue *e = &c->plan->epilogue;
    if (e->bias) args.bias.memory = bench->channels;
    if (e->scale) args.scale.memory = bench->channels;
    if (tconv_activation_has_slope(e->activation)) args.slope.memory = bench->channels;
    args.residual.memory = bench->residual;
    cl_event done = NULL;
    bool ran = true;
    const double start = now_ms();
    for (int i = 0; i < times && ran; i++)
        ran = tconv_plan_enqueue(c->plan, bench->queue, &args, 0, NULL,
                                 i + 1 < times ? NULL : &done, error) == TCONV_OK;
    ran = ran && tconv_wait(done, error) == TCONV_OK;
    const double ms = (now_ms() - start) / times;
    if (done != NULL) clReleaseEvent(done);
    return ran ? ms : -1;
}

/* Packs the filter of a candidate and runs it once. */
static tconv_status run_first(tconv_plan *plan, struct bench *bench, struct timed *c,
                              tconv_error *error)
{
    tconv_status status;
    const uint64_t workspace = tconv_plan_workspace_bytes(c->plan);
    if (!make_workspace(plan, bench, workspace))
        return tconv_fail(error,
                          workspace > plan->info.allocation_limit ? TCONV_ERROR_ALGORITHM
                                                                  : TCONV_ERROR_DEVICE_MEMORY,
                          "no workspace of %llu bytes", (unsigned long long)workspace);
    if ((status = tconv_packed_filter_create(c->plan, NULL, &c->filter, error)) == TCONV_OK &&
        (status = tconv_packed_filter_enqueue_pack(c->filter, bench->queue,
                                                   &(tconv_buffer){.memory = bench->weights}, 0,
                                                   NULL, NULL, error)) == TCONV_OK &&
        run(bench, c, 1, error) < 0)
        status = error->status;
    return status;
}

/* Compiles a candidate, packs its filter and runs it once. If it cannot be timed it has no plan
 * afterwards. */
static tconv_status prepare(tconv_plan *plan, struct bench *bench, struct timed *c,
                            tconv_error *error)
{
    tconv_error own;
    tconv_status status = tconv_plan_begin_again(plan, &c->plan, &own);
    if (status == TCONV_OK) status = tconv_plan_make(c->plan, &c->candidate, &own);
    if (c->plan != NULL) tconv_retry_join(&plan->retry, &c->plan->retry);
    if (status != TCONV_OK) {
        tconv_plan_release(c->plan);
        c->plan = NULL;
        if (tconv_kernel_is_unfit(&own))
            return tconv_plan_pass_over(plan, &c->candidate, own.message, error);
        return tconv_fail_with(error, &own);
    }
    if (run_first(plan, bench, c, &own) != TCONV_OK) {
        bench->incomplete = bench->incomplete || !tconv_kernel_is_unfit(&own);
        tconv_plan_release(c->plan);
        c->plan = NULL;
    }
    return TCONV_OK;
}

static const struct timed *fastest(const struct bench *bench)
{
    const struct timed *best = NULL;
    for (int i = 0; i < bench->count; i++) {
        const struct timed *c = &bench->candidates[i];
        if (c->ms > 0 && (best == NULL || c->ms < best->ms)) best = c;
    }
    return best;
}

static bool go_on(const tconv_plan_options *options, const struct bench *bench, int index)
{
    if (options->search_progress == NULL) return true;
    const struct timed *best = fastest(bench);
    const struct tconv_algorithm *algorithm = index < bench->count
                                                  ? bench->candidates[index].candidate.algorithm
                                              : best != NULL ? best->candidate.algorithm
                                                             : NULL;
    const bool was_inside = tconv_enter_callback();
    const bool wanted = options->search_progress(options->search_context,
                                                 algorithm == NULL ? "" : algorithm->name, index,
                                                 bench->count, best == NULL ? 0 : best->ms);
    tconv_leave_callback(was_inside);
    return wanted;
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
    if (c == model || best == NULL || c->ms <= 2 * best->ms) return false;
    const bool expected = c->candidate.cost > 1.5 * model->candidate.cost;
    return round >= (expected ? EXPECTED_AFTER : UNEXPECTED_AFTER) || c->ms * LONG_RUNS > most_ms;
}

/* How many computations a timed run has. On a GPU several, if one takes microseconds: the time to
 * start it and to notice its end is longer, and differs from run to run. */
static int times_of(const struct timed *c)
{
    if (c->plan->info.kind != TCONV_DEVICE_GPU || c->ms == 0) return 1;
    return c->ms * MOST_TIMES > RUN_MS ? (int)(RUN_MS / c->ms) + 1 : MOST_TIMES;
}

/* Times all candidates in turn, again and again until the time is over. */
static void time_rounds(struct bench *bench, double most_ms)
{
    const double start = now_ms();
    for (int round = 0; round < MOST_ROUNDS; round++)
        for (int i = 0; i < bench->count; i++) {
            struct timed *c = &bench->candidates[i];
            if (c->plan == NULL || hopeless(bench, c, round, most_ms)) continue;
            tconv_error own;
            const double ms = run(bench, c, times_of(c), &own);
            bench->incomplete = bench->incomplete || ms < 0;
            if (ms > 0 && (c->ms == 0 || ms < c->ms)) c->ms = ms;
            if (ms > 0 && c->rounds == round) c->each[c->rounds++] = (float)ms;
            if (now_ms() - start > most_ms) return;
        }
}

static bool clearly_faster(const struct timed *c, const struct timed *model)
{
    int both = 0, wins = 0;
    for (; both < c->rounds && both < model->rounds; both++)
        wins += c->each[both] < model->each[both];
    return c->ms < CLEARLY_FASTER * model->ms && wins >= MOSTLY * both;
}

static void conclude(const struct bench *bench, struct tconv_measured *m)
{
    const struct timed *model = model_choice(bench), *best = model;
    m->incomplete = bench->incomplete;
    if (model == NULL || model->ms == 0) return;
    for (int i = 0; i < bench->count; i++) {
        const struct timed *c = &bench->candidates[i];
        m->candidates += c->ms > 0;
        if (c->ms > 0 && c->ms < best->ms && clearly_faster(c, model)) best = c;
    }
    m->best = best->candidate;
    m->model_ms = model->ms;
    m->best_ms = best->ms;
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
        if (c->ms > 0)
            tconv_text_add_line(&lines, "%s%s%s cost %s ms %s", c->candidate.algorithm->name,
                                tile[0] == '\0' ? "" : " ", tile,
                                tconv_number(c->candidate.cost, 6).text,
                                tconv_number(c->ms, 6).text);
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
    if (bench.count > 0 && plan->geometry.output_bytes > 0 && make_bench(plan, &bench)) {
        for (int i = 0; i < bench.count && status == TCONV_OK && !measured->stopped; i++) {
            measured->stopped = !go_on(options, &bench, i);
            if (!measured->stopped) status = prepare(plan, &bench, &bench.candidates[i], error);
        }
        if (status == TCONV_OK && !measured->stopped) {
            time_rounds(&bench, options->search_ms == 0 ? USUAL_MS : options->search_ms);
            measured->stopped = !go_on(options, &bench, bench.count);
        }
        conclude(&bench, measured);
        free(plan->timed);
        plan->timed = report(&bench);
    }
    free_bench(&bench);
    return status;
}
