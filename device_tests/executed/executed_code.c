/* SPDX-License-Identifier: Apache-2.0 */
/* Executes the code that a vendor's compiler makes of the library's kernel plans, on the host, and
 * compares every output with the oracle. It is linked with one vendor's folder (vendor.h) into the
 * programs amd_code and so on. executed_code.py compiles what the first form lists.
 *
 *   amd_code programs CASES SUITE.csv
 *       prints a line for each case: its line of the list, the case as a line of its own, and the
 *       numbers of its programs; then one for each distinct program: number, target, source,
 *       options; with tabs between
 *   amd_code run CASES SUITE.csv FOLDER [FIRST EVERY]
 *       executes each case, or cases FIRST, FIRST + EVERY and so on, with the programs
 *       FOLDER/NUMBER.*; prints a line for each case
 *   amd_code banks CASES SUITE.csv FOLDER
 *       executes all cases, and prints the instructions with bank conflicts: kernel,
 *       cycles, cycles without conflicts, instruction
 *
 * Packed filter, workspace and output begin as bytes of 255: NaN, or a number that is wrong. */
#include "cases.h"
#include "described.h"
#include "numbers.h"
#include "oracle/oracle.h"
#include "selecting.h"
#include "tool/io/suite.h"
#include "vendor.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_LAUNCHES = 2 * TCONV_MAX_LAUNCHES,
    MOST_LAYERS = 200,
    FILTER_ALIGNMENT = 64 /* of a packed filter, as tconv_cl/plan.h says */
};

/* ---- the kernel plan of a case ---- */

struct planned {
    tconv_problem problem;
    tconv_geometry geometry;
    tconv_epilogue epilogue;
    struct tconv_loops loops;
    tconv_device_info device;
    struct tconv_request request;
    struct tconv_candidate candidate;
    struct tconv_kernel_plan plan;
};

enum outcome { PLANNED, LEFT_OUT, WRONG };

static tconv_epilogue epilogue_of(const struct executed_case *one)
{
    tconv_epilogue epilogue = TCONV_EPILOGUE_INIT;
    const int parameters = tconv_activation_parameter_count(one->activation);
    epilogue.bias = !one->no_bias;
    epilogue.activation = one->activation;
    epilogue.scale = one->scale || one->requantize;
    epilogue.residual = one->residual;
    if (one->residual && tconv_type_is_floating(one->data_type)) epilogue.alpha = 0.5;
    if (one->beta) epilogue.beta = 0.25;
    if (parameters > 0) epilogue.a = parameters > 1 ? -0.5 : 0.125;
    if (parameters > 1) epilogue.b = 0.75;
    if (one->requantize) {
        epilogue.requantize = true;
        epilogue.alpha = 0.01;
        epilogue.data_zero_point = one->data_type == TCONV_U8 ? 121 : -3;
        epilogue.output_zero_point = 5;
    }
    return epilogue;
}

/* Resolves the layer of a case into a request, or writes the reason why there is none. */
static enum outcome make_request(const struct executed_case *one, const struct suite *suite,
                                 struct planned *p, char *why, size_t size)
{
    const struct entry *entry = NULL;
    tconv_error error;
    for (size_t i = 0; i < suite->count; i++)
        if (strcmp(suite->entries[i].id, one->layer) == 0) entry = &suite->entries[i];
    if (entry == NULL || entry->error != NULL) {
        snprintf(why, size, "the suite has no layer %s", one->layer);
        return WRONG;
    }
    *p = (struct planned){.problem = entry->problem, .epilogue = epilogue_of(one)};
    p->geometry = (tconv_geometry)TCONV_GEOMETRY_INIT;
    p->problem.data_type = one->data_type;
    p->problem.filter_type = one->filter_type;
    p->problem.output_type = one->output_type;
    if (one->format == TCONV_NXC) suite_channels_last(&p->problem);
    if (tconv_resolve(&p->problem, &p->geometry, &error) != TCONV_OK) {
        snprintf(why, size, "%s", error.message);
        return one->may_refuse ? LEFT_OUT : WRONG;
    }
    if (one->most != 0 && p->geometry.macs > one->most) {
        snprintf(why, size, "it has %" PRIu64 " multiply-adds", p->geometry.macs);
        return LEFT_OUT;
    }
    tconv_loops_init(&p->loops, &p->problem, &p->geometry);
    const char *device = vendor_device(one);
    if (device == NULL) {
        snprintf(why, size, "this program does not execute the code of %s", one->target);
        return WRONG;
    }
    p->device = tconv_device_for(described_device(device), &p->loops);
    p->request = request_for(&p->loops, &p->device, &p->epilogue, one->math);
    return PLANNED;
}

/* Writes the kernel plan, or the reason why there is none. */
static enum outcome make_plan(const struct executed_case *one, const struct suite *suite,
                              struct planned *p, char *why, size_t size)
{
    tconv_error error;
    struct tconv_reason reason;
    struct tconv_pattern pattern;
    const enum outcome outcome = make_request(one, suite, p, why, size);
    if (outcome != PLANNED) return outcome;
    if (!tconv_pattern_read(one->algorithm, &pattern, &reason) ||
        !tconv_choose(&p->request, &pattern, 0, &p->candidate, &reason)) {
        snprintf(why, size, "%s", reason.text);
        return one->may_refuse ? LEFT_OUT : WRONG;
    }
    if (tconv_kernel_plan_write(&p->request, &p->candidate, &p->plan, &error) != TCONV_OK) {
        snprintf(why, size, "%s", error.message);
        return WRONG;
    }
    for (int i = 0; i < p->plan.run_count; i++) {
        struct tconv_launch *launch = &p->plan.run[i];
        const size_t groups = launch->global[0] / launch->local[0];
        if (launch->divides)
            launch->pieces = groups < (size_t)one->pieces ? (int)groups : one->pieces;
    }
    return PLANNED;
}

/* ---- all tiles of an algorithm ---- */

/* Adds a case for each tile that matches the pattern. Candidates that do not fit into a list are
 * found by fixing one more tile parameter. */
static bool add_tiles(struct executed_cases *cases, const struct executed_case *one,
                      const struct tconv_request *request, struct tconv_pattern pattern)
{
    struct tconv_candidates found;
    struct tconv_reason reason;
    const struct tconv_tile_parameter *open = pattern.algorithm->parameters;
    if (!tconv_enumerate(pattern.algorithm, request, &pattern.tile, &found, &reason)) return true;
    while (open->name != NULL && tconv_tile_value(&pattern.tile, open) != TCONV_ANY) open++;
    if (found.count < TCONV_MAX_CANDIDATES || open->name == NULL) {
        for (int i = 0; i < found.count; i++) {
            char tile[TCONV_TILE_TEXT], algorithm[2 * TCONV_TILE_TEXT];
            tconv_tile_text(&found.list[i], tile, sizeof tile);
            snprintf(algorithm, sizeof algorithm, "%s %s", pattern.algorithm->name, tile);
            if (!executed_cases_add(cases, one, algorithm)) return false;
        }
        return true;
    }
    bool done = true;
    for (int value = 0; value <= 256 && done; value = value == 0 ? 1 : 2 * value) {
        tconv_tile_set(&pattern.tile, open, value);
        done = add_tiles(cases, one, request, pattern);
    }
    return done;
}

/* Replaces cases "NAME *" by cases of all tiles. */
static bool expand_tiles(struct executed_cases *cases, const struct suite *suite)
{
    struct executed_cases all = {NULL, 0};
    bool done = true;
    for (size_t i = 0; i < cases->count && done; i++) {
        struct executed_case *one = &cases->list[i];
        struct planned p;
        struct tconv_pattern pattern;
        struct tconv_reason reason;
        char why[1100], *star = strstr(one->algorithm, " *");
        if (star == NULL) {
            done = executed_cases_add(&all, one, one->algorithm);
            continue;
        }
        *star = '\0';
        if (make_request(one, suite, &p, why, sizeof why) == PLANNED)
            done = tconv_pattern_read(one->algorithm, &pattern, &reason) &&
                   add_tiles(&all, one, &p.request, pattern);
    }
    executed_cases_free(cases);
    *cases = all;
    return done;
}

static const struct tconv_launch *launch_at(const struct planned *p, int number)
{
    return number < p->plan.pack_count ? &p->plan.pack[number]
                                       : &p->plan.run[number - p->plan.pack_count];
}

/* ---- programs ---- */

struct needed_program {
    char target[16], options[TCONV_MAX_OPTIONS + 40];
    const char *source;
    struct code *code; /* NULL before it is loaded */
    uint64_t identity;
};

struct needed_programs {
    struct needed_program *list;
    int count;
};

/* The number of the program of a launch, which is added if it is new; -1 without memory. */
static int program_of(struct needed_programs *programs, const struct executed_case *one,
                      const struct planned *p, const struct tconv_launch *launch)
{
    char text[TCONV_MAX_OPTIONS], all[TCONV_MAX_OPTIONS + 40];
    const char *source = tconv_launch_source(launch, p->candidate.algorithm);
    if (!tconv_launch_all_options(launch, &p->request, p->candidate.algorithm, text, sizeof text))
        return -1;
    snprintf(all, sizeof all, "%s%s", text, vendor_options(one));
    for (int i = 0; i < programs->count; i++) {
        const struct needed_program *known = &programs->list[i];
        if (strcmp(known->target, one->target) == 0 && strcmp(known->source, source) == 0 &&
            strcmp(known->options, all) == 0)
            return i;
    }
    void *list = realloc(programs->list, (size_t)(programs->count + 1) * sizeof *programs->list);
    if (list == NULL) return -1;
    programs->list = list;
    struct needed_program *added = &programs->list[programs->count];
    *added = (struct needed_program){.source = source};
    snprintf(added->target, sizeof added->target, "%s", one->target);
    snprintf(added->options, sizeof added->options, "%s", all);
    return programs->count++;
}

static const struct code *code_of(struct needed_program *program, const char *folder, int number)
{
    char path[1000];
    snprintf(path, sizeof path, "%s/%d", folder, number);
    if (program->code == NULL) program->code = code_load(path, program->target);
    return program->code;
}

static uint64_t mixed(uint64_t a, uint64_t b)
{
    return (a ^ b) * UINT64_C(0x9e3779b97f4a7c15) + (a >> 29);
}

/* A number that is the same for cases that differ in the target and execute the same; 0: there is
 * none. */
static uint64_t identity_of(const struct executed_case *one, struct needed_programs *programs,
                            const int *numbers, int count, const char *folder)
{
    uint64_t all = 1;
    for (const char *text = strchr(one->text, ' '); *text != '\0'; text++)
        all = mixed(all, (uint8_t)*text);
    for (int n = 0; n < count; n++) {
        struct needed_program *program = &programs->list[numbers[n]];
        char path[1000];
        snprintf(path, sizeof path, "%s/%d", folder, numbers[n]);
        if (program->identity == 0) program->identity = code_identity(path);
        if (program->identity == 0) return 0;
        all = mixed(all, program->identity);
    }
    return all;
}

/* ---- tensors ---- */

/* Of every argument that is a buffer. */
struct tensors {
    void *bytes[TCONV_ARG_LOCAL];
    void *before; /* the output before the launches */
    uint64_t size[TCONV_ARG_LOCAL];
    uint64_t address[TCONV_ARG_LOCAL];
};

static double random_between(uint64_t *state, double least, double most)
{
    return least + (most - least) * (double)random_number(state) / (double)(UINT64_C(1) << 31);
}

static int64_t elements_of(const tconv_shape *shape)
{
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++) count *= shape->dim[i];
    return count;
}

/* A tensor of random numbers: below `span` for floating-point types, any for integers of 8 and 16
 * bits, below 2^30 for others. False if memory is missing. */
static bool fill(struct tensors *t, enum tconv_arg arg, tconv_type type, int64_t count, double span,
                 uint64_t *state)
{
    const size_t element = tconv_type_size(type);
    const bool is_float = tconv_type_is_floating(type);
    const bool is_unsigned = type == TCONV_U8 || type == TCONV_U16 || type == TCONV_U32 ||
                             type == TCONV_U64;
    const double most = is_float ? span : ldexp(1, element < 4 ? (int)(8 * element - 1) : 30);
    t->size[arg] = element * (uint64_t)count;
    t->bytes[arg] = malloc((size_t)t->size[arg] + 1);
    if (t->bytes[arg] == NULL) return false;
    for (int64_t i = 0; i < count; i++) {
        const double value = is_unsigned ? random_between(state, 0, 2 * most)
                                         : random_between(state, -most, most);
        tconv_oracle_write(type, t->bytes[arg], i, is_float ? value : floor(value));
    }
    return true;
}

/* Memory that kernels write first. */
static bool fill_garbage(struct tensors *t, enum tconv_arg arg, uint64_t size)
{
    t->size[arg] = size;
    t->bytes[arg] = malloc((size_t)size + 1);
    if (t->bytes[arg] != NULL) memset(t->bytes[arg], 0xff, (size_t)size);
    return t->bytes[arg] != NULL;
}

static bool make_tensors(const struct planned *p, struct tensors *t)
{
    const tconv_type output = p->loops.output_type, number = tconv_scale_type(p->loops.data_type);
    const tconv_type bias = tconv_bias_type(&p->epilogue, output);
    const int64_t channels = p->geometry.epilogue_channels;
    const int64_t outputs = elements_of(&p->geometry.output_shape);
    uint64_t state = 1;
    *t = (struct tensors){{NULL}, NULL, {0}, {0}};
    if (!fill(t, TCONV_ARG_DATA, p->loops.data_type, elements_of(&p->problem.data), 1, &state) ||
        !fill(t, TCONV_ARG_WEIGHTS, p->loops.filter_type, elements_of(&p->problem.filter), 1,
              &state) ||
        !fill(t, TCONV_ARG_BIAS, bias, channels, 1, &state) ||
        !fill(t, TCONV_ARG_SCALE, number, channels, 1, &state) ||
        !fill(t, TCONV_ARG_SLOPE, number, channels, 2, &state) ||
        !fill(t, TCONV_ARG_SLOPE2, number, channels, 2, &state) ||
        !fill(t, TCONV_ARG_RESIDUAL, output, outputs, 1, &state) ||
        !fill_garbage(t, TCONV_ARG_FILTER, p->plan.filter_bytes) ||
        !fill_garbage(t, TCONV_ARG_WORKSPACE, p->plan.workspace_bytes))
        return false;
    const struct tconv_equivalent *e = &p->loops.equivalent;
    const uint64_t unit =
        tconv_arg_unit(&p->request, p->candidate.algorithm->packing, TCONV_ARG_EQUIVALENT);
    if (e->axes != 0 && !p->candidate.algorithm->packs_given &&
        !fill_garbage(t, TCONV_ARG_EQUIVALENT, (uint64_t)e->elements * unit))
        return false;
    const bool filled =
        p->epilogue.beta != 0
            ? fill(t, TCONV_ARG_OUTPUT, output, outputs, 1, &state)
            : fill_garbage(t, TCONV_ARG_OUTPUT, tconv_type_size(output) * (uint64_t)outputs);
    t->before = filled ? malloc((size_t)t->size[TCONV_ARG_OUTPUT] + 1) : NULL;
    if (t->before == NULL) return false;
    memcpy(t->before, t->bytes[TCONV_ARG_OUTPUT], (size_t)t->size[TCONV_ARG_OUTPUT]);
    t->size[TCONV_ARG_TABLE] = p->plan.table_count * sizeof *p->plan.table;
    t->bytes[TCONV_ARG_TABLE] = p->plan.table;
    return true;
}

static void free_tensors(struct tensors *t)
{
    t->bytes[TCONV_ARG_TABLE] = NULL; /* the kernel plan's */
    for (int a = 0; a < TCONV_ARG_LOCAL; a++) free(t->bytes[a]);
    free(t->before);
}

static void add_buffers(const struct executed_case *one, const struct planned *p, struct tensors *t,
                        struct memory *memory)
{
    static const char *const names[TCONV_ARG_LOCAL] = {
        [TCONV_ARG_DATA] = "the data",           [TCONV_ARG_WEIGHTS] = "the weights",
        [TCONV_ARG_FILTER] = "the filter",       [TCONV_ARG_BIAS] = "the bias",
        [TCONV_ARG_SCALE] = "the scale",         [TCONV_ARG_SLOPE] = "the slope",
        [TCONV_ARG_SLOPE2] = "the second slope", [TCONV_ARG_RESIDUAL] = "the residual",
        [TCONV_ARG_OUTPUT] = "the output",       [TCONV_ARG_WORKSPACE] = "the workspace",
        [TCONV_ARG_TABLE] = "the table",         [TCONV_ARG_EQUIVALENT] = "the equivalent filter"};
    for (int a = 0; a < TCONV_ARG_LOCAL; a++) {
        if (names[a] == NULL) continue;
        const bool output = a == TCONV_ARG_OUTPUT, shifts = one->shifted && a != TCONV_ARG_TABLE;
        const uint64_t unit =
            a == TCONV_ARG_FILTER
                ? FILTER_ALIGNMENT
                : tconv_arg_unit(&p->request, p->candidate.algorithm->packing, (enum tconv_arg)a);
        const uint64_t shift = shifts ? unit : 0;
        const bool writable = output || a == TCONV_ARG_FILTER || a == TCONV_ARG_WORKSPACE ||
                              a == TCONV_ARG_EQUIVALENT;
        t->address[a] = memory_add(memory, names[a], t->bytes[a], t->size[a], shift,
                                   !output || p->epilogue.beta != 0, writable);
    }
    t->address[TCONV_ARG_FLAGS] = t->address[TCONV_ARG_FILTER];
}

/* ---- a case ---- */

struct result {
    enum outcome outcome;
    char text[1100];
    int64_t outputs;
    double worst;
    uint64_t executed;
    struct bank_cycles banks;
    const char *same_as; /* the target of a case that executes the same, or NULL */
    int programs[MOST_LAUNCHES], program_count; /* the number of each launch's program */
};

/* The cases up to now that execute something else each. */
struct identities {
    uint64_t *list; /* of each case, 0 without one */
    const struct executed_cases *cases;
};

/* The target of an earlier case of the same identity, or NULL. */
static const char *target_of_same(const struct identities *known, size_t number, uint64_t identity)
{
    known->list[number] = identity;
    if (identity == 0) return NULL;
    for (size_t i = 0; i < number; i++)
        if (known->list[i] == identity &&
            strcmp(known->cases->list[i].target, known->cases->list[number].target) != 0)
            return known->cases->list[i].target;
    return NULL;
}

/* Sets the arguments as the library does; offsets are not 0, so that kernels must add them. */
static void set_arguments(const struct planned *p, const struct tconv_launch *launch,
                          const struct tensors *t, struct dispatch *dispatch)
{
    for (int i = 0; i < launch->arg_count; i++) {
        const enum tconv_arg arg = launch->args[i];
        struct kernel_argument *argument = &dispatch->argument[dispatch->argument_count];
        if (!tconv_arg_used(&p->epilogue, arg)) continue;
        if (arg == TCONV_ARG_SHARE || arg == TCONV_ARG_FIRST) {
            /* a share of the whole: both numbers are 0 */
            const uint64_t value = arg == TCONV_ARG_FIRST ? (uint64_t)launch->first : 0;
            *argument = (struct kernel_argument){value, false};
            dispatch->argument_count++;
            continue;
        }
        if (arg == TCONV_ARG_LOCAL || arg == TCONV_ARG_TABLE) {
            const bool local = arg == TCONV_ARG_LOCAL;
            *argument =
                (struct kernel_argument){local ? launch->local_bytes : t->address[arg], local};
            dispatch->argument_count++;
            continue;
        }
        const uint64_t unit = tconv_arg_unit(&p->request, p->candidate.algorithm->packing, arg);
        const uint64_t offset = arg == TCONV_ARG_NOTHING ? 0 : (uint64_t)arg + 1;
        argument[0].value = arg == TCONV_ARG_NOTHING ? 0 : t->address[arg] - offset * unit;
        argument[1].value = offset;
        dispatch->argument_count += 2;
    }
}

/* Adds up the cycles of a program's operations; prints those with conflicts if `prints`. */
static void add_banks(const struct code *code, const char *kernel, const struct bank_cycles *banks,
                      bool prints, struct bank_cycles *all)
{
    const int count = code_operation_count(code);
    for (int i = 0; i < count; i++) {
        char text[100];
        all->taken += banks[i].taken;
        all->least += banks[i].least;
        if (!prints || banks[i].taken <= banks[i].least) continue;
        code_operation_text(code, i, text, sizeof text);
        printf("%s\t%" PRIu64 "\t%" PRIu64 "\t%s\n", kernel, banks[i].taken, banks[i].least, text);
    }
}

static bool run_launch(const struct executed_case *one, const struct planned *p,
                       const struct tconv_launch *launch, const struct code *code,
                       const struct tensors *t, struct memory *memory, struct bank_cycles *banks)
{
    const uint64_t groups = launch->global[0] / launch->local[0];
    for (int piece = 0; piece < launch->pieces; piece++) {
        const uint64_t begin = groups * (uint64_t)piece / (uint64_t)launch->pieces;
        const uint64_t end = groups * (uint64_t)(piece + 1) / (uint64_t)launch->pieces;
        struct dispatch dispatch = {
            .kernel = launch->kernel,
            .groups = {end - begin, launch->global[1] / launch->local[1],
                       launch->global[2] / launch->local[2]},
            .first_group = begin,
            .local = {(uint32_t)launch->local[0], (uint32_t)launch->local[1],
                      (uint32_t)launch->local[2]},
            .banks = banks,
            .seed = one->seed,
        };
        set_arguments(p, launch, t, &dispatch);
        if (!memory_begin_launch(memory)) {
            snprintf(memory->failed, sizeof memory->failed, "memory is missing");
            return false;
        }
        if (!code_run(code, &dispatch, memory)) return false;
    }
    return true;
}

/* Compares every element with the oracle. */
static bool compare(const struct planned *p, const struct tensors *t, struct result *result)
{
    const struct tconv_operands operands = {
        .problem = &p->problem,
        .geometry = &p->geometry,
        .epilogue = &p->epilogue,
        .error_factor = p->plan.error_factor,
        .data = t->bytes[TCONV_ARG_DATA],
        .filter = t->bytes[TCONV_ARG_WEIGHTS],
        .bias = t->bytes[TCONV_ARG_BIAS],
        .scale = t->bytes[TCONV_ARG_SCALE],
        .slope = t->bytes[TCONV_ARG_SLOPE],
        .slope2 = t->bytes[TCONV_ARG_SLOPE2],
        .residual = t->bytes[TCONV_ARG_RESIDUAL],
        .before = t->before,
    };
    const tconv_type type = p->loops.output_type;
    const void *output = t->bytes[TCONV_ARG_OUTPUT];
    int64_t wrong = 0;
    result->outputs = elements_of(&p->geometry.output_shape);
    for (int64_t i = 0; i < result->outputs; i++) {
        const struct tconv_expected expected = tconv_oracle_element(&operands, i);
        const double error = tconv_oracle_error(&expected, type, output, i);
        if (error > result->worst) result->worst = error;
        if (error <= 1) continue;
        if (wrong++ == 0)
            snprintf(result->text, sizeof result->text,
                     "element %" PRId64 " is %.9g, expected %.9g with an error of at most %.3g", i,
                     tconv_oracle_read(type, output, i), expected.value, expected.bound);
    }
    if (wrong == 0) return true;
    const size_t used = strlen(result->text);
    snprintf(result->text + used, sizeof result->text - used, "; wrong: %" PRId64 " of %" PRId64,
             wrong, result->outputs);
    return false;
}

/* Case option `banks`: no limit, but instructions with conflicts are printed. */
static const uint64_t PRINTED_BANKS = UINT32_MAX;

static bool execute(const struct executed_case *one, const struct planned *p,
                    struct needed_programs *programs, const int *numbers, const char *folder,
                    struct result *result)
{
    struct tensors t;
    struct memory memory = {.count = 0};
    const int launches = p->plan.pack_count + p->plan.run_count;
    bool done = make_tensors(p, &t);
    if (!done) snprintf(result->text, sizeof result->text, "memory is missing");
    if (done) add_buffers(one, p, &t, &memory);
    for (int i = 0; i < launches && done; i++) {
        const struct code *code = code_of(&programs->list[numbers[i]], folder, numbers[i]);
        const struct tconv_launch *launch = launch_at(p, i);
        struct bank_cycles *banks = NULL;
        if (one->banks != 0 && code != NULL)
            banks = calloc((size_t)code_operation_count(code) + 1, sizeof *banks);
        done = code != NULL && run_launch(one, p, launch, code, &t, &memory, banks);
        if (banks != NULL)
            add_banks(code, launch->kernel, banks, one->banks == PRINTED_BANKS, &result->banks);
        free(banks);
        if (!done)
            snprintf(result->text, sizeof result->text, "%s: %s", launch->kernel,
                     code == NULL ? "its program is missing" : memory.failed);
    }
    done = done && compare(p, &t, result);
    if (done && result->banks.taken * 100 > result->banks.least * one->banks) {
        snprintf(result->text, sizeof result->text,
                 "local memory takes %" PRIu64 " cycles, %" PRIu64 " without bank conflicts",
                 result->banks.taken, result->banks.least);
        done = false;
    }
    result->executed = memory.executed;
    memory_free(&memory);
    free_tensors(&t);
    return done;
}

/* Plans a case and finds its programs; executes it if it is `mine` and no earlier case executes the
 * same. `folder` has the programs, or is NULL. */
static struct result try_case(size_t number, const struct suite *suite,
                              struct needed_programs *programs, const struct identities *known,
                              const char *folder, bool mine)
{
    const struct executed_case *one = &known->cases->list[number];
    struct result result = {.outcome = WRONG};
    struct planned p;
    int *numbers = result.programs;
    result.outcome = make_plan(one, suite, &p, result.text, sizeof result.text);
    if (result.outcome != PLANNED) return result;
    const int count = p.plan.pack_count + p.plan.run_count;
    result.program_count = count;
    for (int n = 0; n < count; n++) {
        numbers[n] = program_of(programs, one, &p, launch_at(&p, n));
        if (numbers[n] < 0) result.outcome = WRONG;
    }
    if (folder != NULL && result.outcome == PLANNED) {
        const uint64_t identity = identity_of(one, programs, numbers, count, folder);
        result.same_as = target_of_same(known, number, identity);
        if (mine && result.same_as == NULL && !execute(one, &p, programs, numbers, folder, &result))
            result.outcome = WRONG;
    }
    tconv_kernel_plan_clear(&p.plan);
    return result;
}

/* A case of a list, and its programs. */
static void print_case(const struct executed_case *one, const struct result *result)
{
    printf("%d\t%s\t", one->line, one->text);
    for (int i = 0; i < result->program_count; i++)
        printf("%s%d", i == 0 ? "" : " ", result->programs[i]);
    printf("\n");
}

static void print_result(const struct executed_case *one, const struct result *result)
{
    if (result->outcome != PLANNED) {
        printf("%s  %s: %s\n", result->outcome == WRONG ? "FAILED" : "left out", one->text,
               result->text);
        return;
    }
    if (result->same_as != NULL) {
        printf("same    %s: the programs are those of %s\n", one->text, result->same_as);
        return;
    }
    printf("passed  %s: %" PRId64 " outputs, error %.2f of its bound, %" PRIu64 " operations",
           one->text, result->outputs, result->worst, result->executed);
    if (one->banks != 0)
        printf(", %.1f %% of the least cycles of local memory",
               100 * (double)result->banks.taken / fmax(1, (double)result->banks.least));
    printf("\n");
}

static void print_programs(const struct needed_programs *programs)
{
    for (int i = 0; i < programs->count; i++)
        printf("%d\t%s\t%s\t%s\n", i, programs->list[i].target, programs->list[i].source,
               programs->list[i].options);
}

/* Runs cases FIRST, FIRST + EVERY and so on; true if none failed. Plans all cases, so that a
 * program has the same number in every process. */
static bool run_cases(const struct executed_cases *cases, const struct suite *suite,
                      const char *folder, size_t first, size_t every)
{
    struct needed_programs programs = {NULL, 0};
    const struct identities known = {calloc(cases->count + 1, sizeof *known.list), cases};
    int wrong = 0;
    if (known.list == NULL) return false;
    for (size_t i = 0; i < cases->count; i++) {
        const bool mine = folder != NULL && i % every == first;
        const struct result result = try_case(i, suite, &programs, &known, folder, mine);
        if (folder == NULL && result.outcome == WRONG)
            fprintf(stderr, "%s: %s\n", cases->list[i].text, result.text);
        if (folder == NULL) print_case(&cases->list[i], &result);
        if (mine) print_result(&cases->list[i], &result);
        wrong += (mine || folder == NULL) && result.outcome == WRONG;
        fflush(stdout);
    }
    free(known.list);
    if (folder == NULL) print_programs(&programs);
    for (int i = 0; i < programs.count; i++)
        if (programs.list[i].code != NULL) code_free(programs.list[i].code);
    free(programs.list);
    return wrong == 0;
}

int main(int argc, char **argv)
{
    const bool lists = argc == 4 && strcmp(argv[1], "programs") == 0;
    const bool banks = argc == 5 && strcmp(argv[1], "banks") == 0;
    const bool runs = banks || ((argc == 5 || argc == 7) && strcmp(argv[1], "run") == 0);
    if (!lists && !runs) {
        fprintf(stderr,
                "usage: %s programs CASES SUITE.csv\n"
                "       %s run CASES SUITE.csv FOLDER [FIRST EVERY]\n"
                "       %s banks CASES SUITE.csv FOLDER\n",
                argv[0], argv[0], argv[0]);
        return 2;
    }
    struct suite suite;
    struct executed_cases cases;
    const char *layers[MOST_LAYERS + 1] = {NULL};
    if (suite_read(argv[3], &suite) != EXIT_DONE) return 2;
    for (size_t i = 0; i < suite.count && i < MOST_LAYERS; i++) layers[i] = suite.entries[i].id;
    if (!executed_cases_read(argv[2], layers, &cases) || !expand_tiles(&cases, &suite)) return 2;
    for (size_t i = 0; i < cases.count && banks; i++) cases.list[i].banks = PRINTED_BANKS;
    const size_t first = argc == 7 ? strtoul(argv[5], NULL, 10) : 0;
    const size_t every = argc == 7 ? strtoul(argv[6], NULL, 10) : 1;
    const bool done = run_cases(&cases, &suite, runs ? argv[4] : NULL, first, every);
    executed_cases_free(&cases);
    suite_free(&suite);
    return done ? 0 : 1;
}
