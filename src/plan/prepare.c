/* SPDX-License-Identifier: Apache-2.0 */
/* tconv_device_prepare: finds few programs that serve a layer with all extents of a range, compiles
 * them, and remembers them for later plans.
 *
 *   1. For each problem of the range, list the tiles that are nearly as good as the best one.
 *   2. Take patterns of tiles, each time the one that serves most of the problems that have none.
 *   3. Make each program that plans of these problems would then ask for, and run it once: some
 *      drivers finish compiling at the first launch.
 *
 * What cannot be built leaves the choice, which then begins again. */
#include "base/cancel.h"
#include "base/error.h"
#include "base/os.h"
#include "base/process.h"
#include "base/steps.h"
#include "base/struct_size.h"
#include "base/view.h"
#include "geometry/window.h"
#include "plan/measure.h"
#include "plan/records.h"
#include "plan/scratch.h"
#include "plan/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_PROBLEMS = 4096, /* of a range that are looked at; plan.h and serving.md say it, too */
    MOST_PATTERNS = 128,  /* of a range's tiles */
    MOST_NEAR = 32,       /* tiles of a problem that are nearly as good as its best one */
};

/* What is known of a pattern's programs. */
enum fitness {
    GOOD,
    SPILLS, /* on a GPU, its kernels have private memory: taken only if nothing else serves */
    UNFIT,  /* its kernels do not build or run */
};

/* The candidates of one problem that are nearly as good as the best one, with the indices of their
 * patterns. */
struct near {
    int count;
    unsigned char pattern[MOST_NEAR];
    struct tconv_candidate candidate[MOST_NEAR];
};

/* Programs that have to be made, with a problem and a candidate that use them. */
struct job {
    char *programs; /* their keys, one after another, and an empty one; from malloc */
    tconv_shape data;
    struct tconv_candidate candidate;
};

struct range {
    tconv_device *device;
    tconv_problem problem; /* with the least extents, until `set_problem`, and the largest steps */
    tconv_plan_options options;
    bool chooses; /* plans of the range look for prepared programs */
    tconv_shape least, most;
    struct tconv_view like[TCONV_SPACED_TENSORS]; /* the tensors of the largest problem */
    int axes;                                     /* of `most`; 0: only one problem */
    int64_t values[TCONV_MAX_RANK];               /* how many extents of each axis are looked at */
    size_t problems;
    struct near *near; /* of each problem */
    int patterns;
    struct tconv_pattern pattern[MOST_PATTERNS];
    enum fitness fitness[MOST_PATTERNS];
    struct tconv_prepared prepared, dropped;
    struct job *jobs;
    size_t job_count, jobs_done;
    struct tconv_os_reason not_stored; /* the first reason; "": all is stored */
};

static tconv_status check_range(const tconv_problem *problem, const tconv_shape *most,
                                tconv_error *error)
{
    const tconv_shape *least = &problem->data;
    if (most->rank != least->rank || most->rank < 3 || most->rank > TCONV_MAX_RANK)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "most has %d axes and problem.data %d: give both the same, from 3 to %d",
                          most->rank, least->rank, TCONV_MAX_RANK);
    for (int a = 0; a < most->rank; a++) {
        const bool channels = a == tconv_channels_axis(problem);
        const char *wrong = least->dim[a] < 0 ? "an extent is at least 0"
                            : channels && most->dim[a] != least->dim[a]
                                ? "channels are no range: give the same number"
                            : most->dim[a] < least->dim[a] ? "the range is empty"
                                                           : NULL;
        if (wrong != NULL)
            return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                              "most.dim[%d] is %lld, and problem.data.dim[%d] is %lld: %s", a,
                              (long long)most->dim[a], a, (long long)least->dim[a], wrong);
    }
    return TCONV_OK;
}

/* Decides how many extents are looked at: all, or about as many of each axis. */
static void count_problems(struct range *r)
{
    int64_t most = MOST_PROBLEMS; /* extents of one axis */
    do {
        int64_t all = 1;
        for (int a = 0; a < r->axes; a++) {
            const int64_t last = r->most.dim[a] - r->least.dim[a]; /* one more may overflow */
            r->values[a] = last < most ? last + 1 : most;
            all = all > MOST_PROBLEMS ? all : all * r->values[a];
        }
        r->problems = (size_t)all;
        most = most > 64 ? most * 7 / 8 : most - 1;
    } while (r->problems > MOST_PROBLEMS && most > 1);
}

/* How far number `at` of `count` extents that are looked at is above the least one. Small extents,
 * between which the tiles change most, are all looked at; then the gaps grow evenly. */
static int64_t extent_above(int64_t last, int64_t at, int64_t count)
{
    if (at == count - 1) return last;
    const double part = (double)at / (double)(count - 1);
    const int64_t grown = (int64_t)((double)last * part * part);
    return grown > at ? grown : at;
}

/* Makes `r->problem` the problem of this number. */
static void set_problem(struct range *r, size_t number)
{
    r->problem.data = r->least;
    for (int a = r->axes - 1; a >= 0; a--) {
        const int64_t values = r->values[a], at = (int64_t)(number % (size_t)values);
        number /= (size_t)values;
        r->problem.data.dim[a] += extent_above(r->most.dim[a] - r->least.dim[a], at, values);
    }
}

/* Gives the current problem steps like those of the largest one. */
static tconv_status lay_out(const struct range *r, tconv_problem *problem, tconv_error *error)
{
    tconv_steps *const steps[TCONV_SPACED_TENSORS] = {&problem->data_steps, &problem->output_steps,
                                                      &problem->residual_steps};
    const tconv_problem dense = tconv_without_steps(problem);
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    const tconv_status status = tconv_resolve_window(&dense, r->options.output_begin,
                                                     r->options.output_end, &geometry, error);
    for (int i = 0; i < TCONV_SPACED_TENSORS && status == TCONV_OK; i++) {
        if (steps[i]->count == 0) continue;
        struct tconv_view view = tconv_view_of(&dense, &geometry, (enum tconv_spaced)i);
        tconv_view_lay_out(&r->like[i], &view);
        memcpy(steps[i]->value, view.step, (size_t)view.rank * sizeof *view.step);
    }
    return status;
}

/* Begins a plan of the current problem. */
static tconv_status begin(struct range *r, tconv_plan **plan, tconv_error *error)
{
    tconv_problem problem = r->problem;
    tconv_status status = r->like[0].rank > 0 ? lay_out(r, &problem, error) : TCONV_OK;
    if (status == TCONV_OK)
        status = tconv_plan_begin(r->device, &problem, &r->options, plan, error);
    if (status != TCONV_OK) return status;
    status = tconv_plan_read_options(*plan, &r->options, error);
    (*plan)->retry.insist = true; /* the caller asks for these programs */
    if (status != TCONV_OK) tconv_plan_release(*plan);
    return status;
}

/* Checks the largest problem, so that all smaller ones are right, and keeps how its tensors lie in
 * memory. What is wrong with the least one, too, is not the range's fault. */
static tconv_status check_ends(struct range *r, tconv_error *error)
{
    tconv_plan *plan;
    tconv_error own;
    const tconv_problem given = r->problem;
    tconv_status status;
    if (r->axes > 0) r->problem = tconv_without_steps(&given);
    status = begin(r, &plan, error);
    if (status != TCONV_OK) return status;
    tconv_plan_release(plan);
    if (r->axes == 0) return TCONV_OK;
    r->problem = given;
    r->problem.data = r->most;
    status = begin(r, &plan, &own);
    if (status != TCONV_OK)
        return tconv_fail(error, status, "the largest shape of the range: %s", own.message);
    memcpy(r->like, plan->view, sizeof r->like);
    tconv_plan_release(plan);
    return TCONV_OK;
}

/* The index of a pattern, which is added if it is new; -1 if there is no room. */
static int pattern_index(struct range *r, const struct tconv_pattern *pattern)
{
    for (int i = 0; i < r->patterns; i++)
        if (tconv_prepared_equal(&r->pattern[i], pattern)) return i;
    if (r->patterns == MOST_PATTERNS) return -1;
    r->pattern[r->patterns] = *pattern;
    return r->patterns++;
}

/* Lists the tiles of a plan's problem that are nearly as good as the best one. */
static tconv_status list_near(struct range *r, tconv_plan *plan, struct near *near,
                              tconv_error *error)
{
    struct tconv_candidates all[TCONV_MAX_ALGORITHMS];
    struct tconv_reason reason;
    double best = 0;
    int algorithms = 0;
    const tconv_status status = tconv_plan_settle_units(plan, error);
    if (status != TCONV_OK) return status;
    for (int i = 0; tconv_algorithm_at(i) != NULL; i++) {
        struct tconv_candidates *c = &all[algorithms];
        if (plan->passed_over[i] != NULL ||
            !tconv_enumerate(tconv_algorithm_at(i), &plan->request, NULL, c, &reason))
            continue;
        if (algorithms++ == 0 || c->list[0].cost < best) best = c->list[0].cost;
    }
    for (int i = 0; i < algorithms; i++)
        for (int j = 0; j < all[i].count && near->count < MOST_NEAR; j++) {
            const struct tconv_pattern pattern = tconv_prepared_pattern(&all[i].list[j]);
            if (all[i].list[j].cost > TCONV_NEARLY * best) break;
            const int index = pattern_index(r, &pattern);
            if (index < 0) continue;
            near->pattern[near->count] = (unsigned char)index;
            near->candidate[near->count++] = all[i].list[j];
        }
    return TCONV_OK;
}

static tconv_status list_problems(struct range *r, tconv_error *error)
{
    tconv_status status = TCONV_OK;
    for (size_t i = 0; i < r->problems && status == TCONV_OK; i++) {
        tconv_plan *plan;
        set_problem(r, i);
        if ((status = begin(r, &plan, error)) != TCONV_OK) break;
        if (i == 0) {
            r->chooses = plan->pattern.algorithm == NULL && plan->search != TCONV_SEARCH_MODEL;
            if (r->chooses) tconv_prepared_read(plan, &r->prepared);
        }
        if (r->chooses) status = list_near(r, plan, &r->near[i], error);
        tconv_plan_release(plan);
    }
    return status;
}

static bool serves(const struct near *near, int pattern)
{
    for (int i = 0; i < near->count; i++)
        if (near->pattern[i] == pattern) return true;
    return false;
}

/* Takes patterns of at most this fitness until each problem is served that can be. */
static void serve(struct range *r, bool *served, enum fitness worst)
{
    for (;;) {
        int best = -1;
        size_t most = 0;
        for (int p = 0; p < r->patterns; p++) {
            size_t count = 0;
            for (size_t i = 0; i < r->problems && r->fitness[p] <= worst; i++)
                count += !served[i] && serves(&r->near[i], p);
            if (count > most) {
                most = count;
                best = p;
            }
        }
        if (best < 0 || r->prepared.count == TCONV_MOST_PREPARED) return;
        r->prepared.pattern[r->prepared.count++] = r->pattern[best];
        for (size_t i = 0; i < r->problems; i++) served[i] |= serves(&r->near[i], best);
    }
}

/* Chooses patterns for the problems that the remembered ones do not serve. */
static tconv_status choose_patterns(struct range *r, tconv_error *error)
{
    bool *served = calloc(r->problems, sizeof *served);
    if (served == NULL) return tconv_fail_memory(error, r->problems, "preparing programs");
    for (int k = 0; k < r->prepared.count; k++)
        for (int p = 0; p < r->patterns; p++)
            for (size_t i = 0;
                 i < r->problems && tconv_prepared_equal(&r->pattern[p], &r->prepared.pattern[k]);
                 i++)
                served[i] |= serves(&r->near[i], p);
    serve(r, served, GOOD);
    serve(r, served, SPILLS);
    free(served);
    return TCONV_OK;
}

static bool has_key(const char *programs, const char *key)
{
    for (; *programs != '\0'; programs += strlen(programs) + 1)
        if (strcmp(programs, key) == 0) return true;
    return false;
}

/* Lists the keys of a candidate's programs, each once. From malloc. */
static tconv_status list_programs(const tconv_plan *plan, const struct tconv_candidate *candidate,
                                  char **out, tconv_error *error)
{
    struct tconv_kernel_plan kernel_plan = {.table = NULL};
    const size_t size = 2 * TCONV_MAX_LAUNCHES * TCONV_PROGRAM_KEY + 1;
    char *keys = calloc(1, size), *end = keys, key[TCONV_PROGRAM_KEY];
    if (keys == NULL) return tconv_fail_memory(error, size, "preparing programs");
    const tconv_status status =
        tconv_kernel_plan_write(&plan->request, candidate, &kernel_plan, error);
    for (int i = 0; i < kernel_plan.pack_count + kernel_plan.run_count && status == TCONV_OK; i++) {
        const struct tconv_launch *launch = i < kernel_plan.pack_count
                                                ? &kernel_plan.pack[i]
                                                : &kernel_plan.run[i - kernel_plan.pack_count];
        /* If a key does not fit, making the plan reports it. */
        if (tconv_program_key(&plan->request, candidate->algorithm, launch, key) &&
            !has_key(keys, key)) {
            strcpy(end, key);
            end += strlen(key) + 1;
        }
    }
    tconv_kernel_plan_clear(&kernel_plan);
    if (status == TCONV_OK)
        *out = keys;
    else
        free(keys);
    return status;
}

/* True if each of the programs is in a job already. */
static bool is_planned(const struct range *r, const char *programs)
{
    bool known = true;
    for (const char *key = programs; *key != '\0' && known; key += strlen(key) + 1) {
        known = false;
        for (size_t j = 0; j < r->job_count && !known; j++)
            known = has_key(r->jobs[j].programs, key);
    }
    return known;
}

static tconv_status add_job(struct range *r, char *programs,
                            const struct tconv_candidate *candidate, tconv_error *error)
{
    if (is_planned(r, programs)) {
        free(programs);
        return TCONV_OK;
    }
    struct job *more = realloc(r->jobs, (r->job_count + 1) * sizeof *more);
    if (more == NULL) {
        free(programs);
        return tconv_fail_memory(error, (r->job_count + 1) * sizeof *more, "preparing programs");
    }
    r->jobs = more;
    r->jobs[r->job_count++] = (struct job){programs, r->problem.data, *candidate};
    return TCONV_OK;
}

/* Finds the candidate that a plan of problem number `i` takes if nothing is measured. */
static tconv_status expect(const struct range *r, size_t i, tconv_plan *plan,
                           struct tconv_candidate *candidate, tconv_error *error)
{
    const struct near *near = &r->near[i];
    bool found = false;
    tconv_choice choice;
    if (!r->chooses) return tconv_plan_cheapest(plan, candidate, error);
    tconv_status status = tconv_plan_recorded(plan, candidate, &found, &choice, error);
    if (status != TCONV_OK || found) return status;
    for (int c = 0; c < near->count; c++) { /* as tconv_plan_prepared, without listing them again */
        if ((found && near->candidate[c].cost >= candidate->cost) ||
            !tconv_is_prepared(&r->prepared, &near->candidate[c]))
            continue;
        *candidate = near->candidate[c];
        found = true;
    }
    if (!found) status = tconv_plan_prepared(plan, &r->prepared, candidate, &found, error);
    return status != TCONV_OK || found ? status : tconv_plan_cheapest(plan, candidate, error);
}

/* Lists the programs that plans of the range would ask for, behind those that were made. */
static tconv_status list_jobs(struct range *r, tconv_error *error)
{
    tconv_status status = TCONV_OK;
    while (r->job_count > r->jobs_done) free(r->jobs[--r->job_count].programs);
    for (size_t i = 0; i < r->problems && status == TCONV_OK; i++) {
        tconv_plan *plan;
        struct tconv_candidate candidate;
        char *programs = NULL;
        set_problem(r, i);
        if ((status = begin(r, &plan, error)) != TCONV_OK) break;
        status = expect(r, i, plan, &candidate, error);
        if (status == TCONV_OK) status = list_programs(plan, &candidate, &programs, error);
        tconv_plan_release(plan);
        if (status == TCONV_OK) status = add_job(r, programs, &candidate, error);
    }
    return status;
}

/* Runs a plan once, so that its kernels are compiled to the end, then stores its programs. */
static void run_once(struct range *r, tconv_plan *plan, const char *programs)
{
    struct tconv_scratch scratch = {.queue = NULL};
    tconv_packed_filter *filter = NULL;
    tconv_error own;
    if (plan->geometry.output_bytes > 0 &&
        tconv_scratch_make(plan, NULL, &scratch, &own) == TCONV_OK &&
        tconv_scratch_pack(&scratch, plan, &filter, &own) == TCONV_OK)
        tconv_scratch_run(&scratch, plan, filter, 1, &own);
    tconv_packed_filter_release(filter);
    tconv_scratch_free(&scratch);
    for (const char *key = programs; *key != '\0'; key += strlen(key) + 1) {
        struct tconv_os_reason reason = {""};
        if (!tconv_device_complete_program(plan->device, key, &reason) &&
            r->not_stored.text[0] == '\0')
            r->not_stored = reason;
    }
}

/* Takes the pattern of a candidate out of the choice. */
static void give_up(struct range *r, const struct tconv_candidate *candidate, enum fitness fitness)
{
    const struct tconv_pattern pattern = tconv_prepared_pattern(candidate);
    int kept = 0;
    for (int p = 0; p < r->patterns; p++)
        if (tconv_prepared_equal(&r->pattern[p], &pattern)) r->fitness[p] = fitness;
    for (int k = 0; k < r->prepared.count; k++)
        if (!tconv_prepared_equal(&r->prepared.pattern[k], &pattern))
            r->prepared.pattern[kept++] = r->prepared.pattern[k];
    r->prepared.count = kept;
    if (r->dropped.count < TCONV_MOST_PREPARED) r->dropped.pattern[r->dropped.count++] = pattern;
}

static enum fitness fitness_of(const struct range *r, const struct tconv_candidate *candidate)
{
    const struct tconv_pattern pattern = tconv_prepared_pattern(candidate);
    for (int p = 0; p < r->patterns; p++)
        if (tconv_prepared_equal(&r->pattern[p], &pattern)) return r->fitness[p];
    return UNFIT; /* not from the choice: nothing takes it out */
}

/* Makes the programs of one job. `*again` is true if its pattern left the choice. */
static tconv_status make_job(struct range *r, const struct job *job, bool *again,
                             tconv_error *error)
{
    tconv_plan *plan;
    r->problem.data = job->data;
    tconv_status status = begin(r, &plan, error);
    if (status != TCONV_OK) return status;
    status = tconv_plan_make(plan, &job->candidate, error);
    const enum fitness known = fitness_of(r, &job->candidate);
    if (status != TCONV_OK && tconv_kernel_is_unfit(error) && r->chooses) {
        *again = known != UNFIT;
        if (*again) give_up(r, &job->candidate, UNFIT);
        job->programs[0] = '\0';
        status = TCONV_OK; /* a plan of this problem passes it over */
    } else if (status == TCONV_OK) {
        run_once(r, plan, job->programs);
        *again = known == GOOD && plan->info.kind == TCONV_DEVICE_GPU &&
                 tconv_plan_private_bytes(plan) > 0;
        if (*again) give_up(r, &job->candidate, SPILLS);
    }
    tconv_plan_release(plan);
    return status;
}

/* Tells the caller how far it is. False if the caller wants no more. */
static bool go_on(const struct range *r, const char *algorithm)
{
    return tconv_search_goes_on(&r->options, algorithm, (int)r->jobs_done, (int)r->job_count, 0);
}

/* Makes all programs. If a pattern leaves the choice, others may be needed. */
static tconv_status make_programs(struct range *r, bool *stopped, tconv_error *error)
{
    tconv_status status = TCONV_OK;
    bool again = true;
    while (again && status == TCONV_OK && !*stopped) {
        again = false;
        if (r->chooses) status = choose_patterns(r, error);
        if (status == TCONV_OK) status = list_jobs(r, error);
        while (r->jobs_done < r->job_count && status == TCONV_OK && !again && !*stopped) {
            const struct job *job = &r->jobs[r->jobs_done];
            *stopped = !go_on(r, job->candidate.algorithm->name);
            if (*stopped) break;
            status = make_job(r, job, &again, error);
            r->jobs_done++;
        }
    }
    if (status == TCONV_OK && !*stopped) go_on(r, "");
    return status;
}

/* Remembers the patterns. */
static tconv_status keep(struct range *r, tconv_error *error)
{
    tconv_plan *plan;
    if (!r->chooses) return TCONV_OK;
    set_problem(r, 0);
    const tconv_status status = begin(r, &plan, error);
    if (status != TCONV_OK) return status;
    struct tconv_os_reason reason = {""};
    if (!tconv_prepared_keep(plan, &r->prepared, &r->dropped, &reason)) r->not_stored = reason;
    tconv_plan_release(plan);
    return TCONV_OK;
}

/* Checks that all programs are in the folder: its limit may have removed the first ones while the
 * last ones were stored. */
static void check_stored(struct range *r)
{
    const struct tconv_store *store = &r->device->store;
    if (!tconv_store_has_folder(store, TCONV_STORED_PROGRAM)) return;
    for (size_t i = 0; i < r->jobs_done; i++)
        for (const char *key = r->jobs[i].programs; *key != '\0'; key += strlen(key) + 1)
            if (r->not_stored.text[0] == '\0' && !tconv_store_has(store, TCONV_STORED_PROGRAM, key))
                snprintf(r->not_stored.text, sizeof r->not_stored.text,
                         "its limit of %llu bytes is too small for all of them: set a larger one "
                         "(TCONV_CL_CACHE_MIB)",
                         (unsigned long long)store->limit);
}

static tconv_status prepare(struct range *r, int *programs, tconv_error *error)
{
    bool stopped = false;
    tconv_status status = check_ends(r, error);
    if (status != TCONV_OK) return status;
    count_problems(r);
    r->near = calloc(r->problems, sizeof *r->near);
    if (r->near == NULL)
        return tconv_fail_memory(error, r->problems * sizeof *r->near, "preparing programs");
    status = list_problems(r, error);
    if (status == TCONV_OK) status = make_programs(r, &stopped, error);
    if (status == TCONV_OK && !stopped) status = keep(r, error);
    if (status == TCONV_OK && !stopped) check_stored(r);
    if (status == TCONV_OK && programs != NULL) {
        *programs = 0;
        for (size_t i = 0; i < r->jobs_done; i++)
            for (const char *key = r->jobs[i].programs; *key != '\0'; key += strlen(key) + 1)
                ++*programs;
    }
    for (size_t i = 0; i < r->job_count; i++) free(r->jobs[i].programs);
    free(r->jobs);
    free(r->near);
    if (status != TCONV_OK || r->not_stored.text[0] == '\0') return status;
    return tconv_fail(error, TCONV_ERROR_FILE,
                      "the programs are prepared, but cannot be stored in %s: %s",
                      tconv_device_search_folder(r->device), r->not_stored.text);
}

tconv_status tconv_device_prepare(tconv_device *device, const tconv_problem *problem,
                                  const tconv_shape *most, const tconv_plan_options *options,
                                  int *programs, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (device == NULL || problem == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          device == NULL ? "device" : "problem");
    tconv_error own;
    tconv_status status = tconv_process_enter(error);
    if (status != TCONV_OK) return status;
    struct range *r = calloc(1, sizeof *r);
    if (r == NULL) return tconv_fail_memory(error, sizeof *r, "preparing programs");
    r->device = device;
    r->problem = (tconv_problem)TCONV_PROBLEM_INIT;
    r->options = (tconv_plan_options)TCONV_PLAN_OPTIONS_INIT;
    if ((status = tconv_struct_read(TCONV_SIZED_PROBLEM, problem, &r->problem, &own)) == TCONV_OK &&
        (status = tconv_struct_read(TCONV_SIZED_PLAN_OPTIONS, options, &r->options, &own)) ==
            TCONV_OK &&
        (most == NULL || (status = check_range(&r->problem, most, &own)) == TCONV_OK)) {
        r->least = r->problem.data;
        if (most != NULL) r->most = *most;
        r->axes = r->most.rank;
        status = prepare(r, programs, &own);
    }
    free(r);
    return status == TCONV_OK ? TCONV_OK : tconv_fail_with(error, &own);
}
