/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the programs that a suite of layers would have built on GPUs, without any GPU: algorithms
 * write their kernel plans for described devices. scripts/offline_gate.py compiles what is listed.
 *
 *   usage: gpu_programs [SUITE.csv]     without a file: the built-in suite
 *          gpu_programs --listing TYPE FORMAT [OPTION...]     what selection launches: listing.h
 *          gpu_programs --choices TYPE FORMAT IDS DEVICE...   a table of choices: choices.h
 *
 * The first form prints a line for each device and program, with tabs between: device, algorithm,
 * options, source files (commas between), ids of the layers for which selection takes it (commas
 * between; none: it is built only where the algorithm is asked for by name). */
#include "base/matrix_units.h"
#include "choices.h"
#include "described.h"
#include "listing.h"
#include "selecting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Described devices. A name's first word is the vendor's, as the script wants it. */
static const char *const cards[] = {"AMD",       "AMD CDNA",   "Intel",
                                    "Intel Max", "Intel Gen9", "NVIDIA"};

/* Cards with matrix units: what only the algorithm for them would build. */
static const char *const units[] = {"AMD wmma",       "AMD wmma12", "AMD mfma",    "Intel dpas",
                                    "Intel Max dpas", "NVIDIA mma", "NVIDIA wgmma"};

/* The layer of which every tile for matrix units is built. Its input channels fill quads, but not
 * stages: copies take the most registers. */
static const char tiles_of[] = "B54";

/* A layer whose input channels do not fill quads: with channels last each is read by itself. */
static const char single_channels[] = "B57";

/* One program, and who takes it. */
struct program {
    struct program *next;
    const struct tconv_algorithm *algorithm;
    const char *source; /* the algorithm's, or that of the equivalent filter */
    char *options;
    char layers[2000]; /* ids with commas between */
};

static struct program *find_or_add(struct program **list, const struct tconv_algorithm *algorithm,
                                   const char *source, const char *text)
{
    for (; *list != NULL; list = &(*list)->next)
        if ((*list)->algorithm == algorithm && strcmp((*list)->source, source) == 0 &&
            strcmp((*list)->options, text) == 0)
            return *list;
    struct program *program = calloc(1, sizeof *program);
    if (program == NULL) return NULL;
    program->algorithm = algorithm;
    program->source = source;
    program->options = strdup(text);
    return *list = program;
}

/* Built even where selection takes none of them; the other algorithms are for processors. Of cards
 * with matrix units what is for them, and f32 of the other tiles that their makers' cards have. */
static bool for_gpus(const struct tconv_algorithm *algorithm, const tconv_device_info *device,
                     tconv_type type)
{
    const bool matrix = algorithm == &tconv_matrix_group;
    if (device->matrix_unit != TCONV_MATRIX_NONE)
        return matrix || (algorithm == &tconv_tiled_group && type == TCONV_F32);
    if (matrix) return false;
    return strstr(algorithm->name, "_group") != NULL || strcmp(algorithm->name, "reference") == 0 ||
           (strcmp(algorithm->name, "gather_dot") == 0 && device->integer_dot_product);
}

/* Adds the programs of one candidate; `id` is the layer's whose choice it is, or NULL. */
static bool add_candidate(struct program **list, const struct tconv_request *request,
                          const struct tconv_candidate *candidate, const char *id)
{
    struct tconv_kernel_plan kernel_plan = {0};
    tconv_error error;
    if (tconv_kernel_plan_write(request, candidate, &kernel_plan, &error) != TCONV_OK) {
        fprintf(stderr, "%s: %s\n", candidate->algorithm->name, error.message);
        return false;
    }
    for (int i = 0; i < kernel_plan.pack_count + kernel_plan.run_count; i++) {
        const struct tconv_launch *launch = i < kernel_plan.pack_count
                                                ? &kernel_plan.pack[i]
                                                : &kernel_plan.run[i - kernel_plan.pack_count];
        char text[TCONV_MAX_OPTIONS];
        if (!tconv_launch_all_options(launch, request, candidate->algorithm, text, sizeof text))
            return false;
        if (strstr(text, " -DMATRIX=1 ") != NULL) continue; /* plain OpenCL C is for tests */
        if (request->device->matrix_unit == TCONV_MATRIX_NVIDIA_WGMMA &&
            strstr(text, " -D" TCONV_SM_90A "=1") == NULL)
            continue; /* another card has the same program */
        struct program *program = find_or_add(
            list, candidate->algorithm, tconv_launch_source(launch, candidate->algorithm), text);
        if (program == NULL) return false;
        const size_t used = strlen(program->layers);
        if (id != NULL && i == 0)
            snprintf(program->layers + used, sizeof program->layers - used, "%s%s",
                     used == 0 ? "" : ",", id);
    }
    tconv_kernel_plan_clear(&kernel_plan);
    return true;
}

/* Adds the programs of every tile of the algorithm for matrix units: a search, or a best tile that
 * spills, leads to tiles that are the best one of no layer here. */
static bool add_all_tiles(struct program **list, const struct tconv_request *request)
{
    for (int mt = 8; mt <= 128; mt *= 2)
        for (int nt = 8, kt = 16; nt <= 256; kt == 16 ? (kt = 32) : (kt = 16, nt *= 2)) {
            char text[80];
            snprintf(text, sizeof text, "%s mt=%d nt=%d kt=%d split=0", tconv_matrix_group.name, mt,
                     nt, kt);
            struct tconv_pattern pattern;
            struct tconv_candidates tiles;
            struct tconv_reason reason;
            if (!tconv_pattern_read(text, &pattern, &reason)) return false;
            if (!tconv_enumerate(pattern.algorithm, request, &pattern.tile, &tiles, &reason))
                continue;
            for (int i = 0; i < tiles.count; i++)
                if (!add_candidate(list, request, &tiles.list[i], NULL)) return false;
        }
    return true;
}

/* What is built of a layer. */
enum extent {
    ITS_CHOICE,     /* the algorithm that selection takes */
    ALL_ALGORITHMS, /* all algorithms for GPUs */
    ALL_TILES       /* and all tiles of the one for matrix units */
};

/* Adds the programs of one layer. */
static bool add_layer(struct program **list, const tconv_device_info *device,
                      const struct entry *entry, tconv_data_format format, tconv_type type,
                      tconv_activation activation, tconv_math math, enum extent extent)
{
    tconv_problem problem = entry->problem;
    if (format == TCONV_NXC) suite_channels_last(&problem);
    problem.data_type = problem.filter_type = type;
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    tconv_error error;
    if (entry->error != NULL || tconv_resolve(&problem, &geometry, &error) != TCONV_OK) {
        fprintf(stderr, "%s: %s\n", entry->id, entry->error != NULL ? entry->error : error.message);
        return false;
    }
    struct tconv_loops loops;
    tconv_loops_init(&loops, &problem, &geometry);
    tconv_epilogue epilogue = TCONV_EPILOGUE_INIT;
    epilogue.bias = true;
    epilogue.activation = activation;
    const struct tconv_request request = request_for(&loops, device, &epilogue, math);
    struct tconv_reason reason;
    const struct tconv_algorithm *taken = chosen(&request, NULL, &reason);
    for (int a = 0; tconv_algorithm_at(a) != NULL; a++) {
        const struct tconv_algorithm *algorithm = tconv_algorithm_at(a);
        if ((device->matrix_unit != TCONV_MATRIX_NONE || algorithm != taken) &&
            !for_gpus(algorithm, device, type))
            continue;
        if (extent == ITS_CHOICE && algorithm != taken) continue;
        struct tconv_candidates candidates;
        if (!tconv_enumerate(algorithm, &request, NULL, &candidates, &reason)) continue;
        if (!add_candidate(list, &request, &candidates.list[0],
                           algorithm == taken ? entry->id : NULL))
            return false;
        if (extent == ALL_TILES && algorithm == &tconv_matrix_group &&
            !add_all_tiles(list, &request))
            return false;
    }
    return true;
}

/* Adds the program that selection takes for the same channels and extents behind nearest upsampling
 * by 2, with 3 taps along each axis. */
static bool add_doubled(struct program **list, const tconv_device_info *device,
                        const struct entry *entry, tconv_data_format format)
{
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    tconv_error error;
    if (tconv_resolve(&entry->problem, &geometry, &error) != TCONV_OK) {
        fprintf(stderr, "%s: %s\n", entry->id, error.message);
        return false;
    }
    struct entry doubled = *entry;
    tconv_problem *p = &doubled.problem;
    *p = (tconv_problem)TCONV_PROBLEM_INIT;
    p->operation = TCONV_UPSAMPLE_CONV;
    p->groups = geometry.groups;
    p->data = entry->problem.data;
    p->filter.rank = p->data.rank;
    p->filter.dim[0] = geometry.groups * geometry.group_out_channels;
    p->filter.dim[1] = geometry.group_in_channels;
    p->strides.count = p->pads_begin.count = p->pads_end.count = p->data.rank - 2;
    for (int a = 0; a < p->strides.count; a++) {
        p->filter.dim[2 + a] = 3;
        p->strides.value[a] = 2;
        p->pads_begin.value[a] = p->pads_end.value[a] = 1;
    }
    return add_layer(list, device, &doubled, format, TCONV_F32, TCONV_ACTIVATION_NONE,
                     TCONV_MATH_EXACT, ITS_CHOICE);
}

static void print_and_free(const char *device, struct program *list)
{
    for (struct program *next; list != NULL; list = next) {
        printf("%s\t%s\t%s\t%s\t%s\n", device, list->algorithm->name, list->options, list->source,
               list->layers);
        next = list->next;
        free(list->options);
        free(list);
    }
}

enum { ALL_EVERY = 4, LAST_EVERY = 3, OTHERS_EVERY = 26, UNITS_EVERY = 5 };
static const struct {
    tconv_type type;
    tconv_activation activation;
} others[] = {
    {TCONV_F16, TCONV_ACTIVATION_NONE},  {TCONV_I8, TCONV_ACTIVATION_NONE},
    {TCONV_U16, TCONV_ACTIVATION_NONE},  {TCONV_F64, TCONV_ACTIVATION_NONE},
    {TCONV_F32, TCONV_ACTIVATION_RELU},  {TCONV_BF16, TCONV_ACTIVATION_NONE},
    {TCONV_I64, TCONV_ACTIVATION_NONE},  {TCONV_F32, TCONV_ACTIVATION_GELU},
    {TCONV_F32, TCONV_ACTIVATION_SNAKE}, {TCONV_F16, TCONV_ACTIVATION_TANH},
    {TCONV_BF16, TCONV_ACTIVATION_SILU},
};

static bool is_described(const char *name)
{
    for (const struct described_device *d = described_devices; d->name != NULL; d++)
        if (strcmp(d->name, name) == 0) return true;
    return false;
}

static int usage(void)
{
    fprintf(stderr, "usage: gpu_programs [SUITE.csv]\n"
                    "       gpu_programs --listing TYPE NCX|NXC [--device NAME] [--algorithm NAME]"
                    " [--math exact|fast] [--suite FILE.csv]\n"
                    "       gpu_programs --choices TYPE NCX|NXC IDS DEVICE...\n");
    return EXIT_REQUEST_WRONG;
}

/* The second form, from the type on. */
static int list_launches(int argc, char **argv)
{
    struct listing listing = {.math = TCONV_MATH_EXACT};
    const char *path = NULL;
    if (argc < 2 || argc % 2 != 0 || !tconv_type_from_name(argv[0], &listing.type) ||
        !tconv_data_format_from_name(argv[1], &listing.format))
        return usage();
    for (int i = 2; i < argc; i += 2) {
        const char *option = argv[i], *value = argv[i + 1];
        if (strcmp(option, "--device") == 0 && is_described(value))
            listing.device = value;
        else if (strcmp(option, "--algorithm") == 0)
            listing.algorithm = value;
        else if (strcmp(option, "--suite") == 0)
            path = value;
        else if (strcmp(option, "--math") != 0 || !tconv_math_from_name(value, &listing.math))
            return usage();
    }
    struct suite suite;
    if (suite_read(path, &suite) != EXIT_DONE) return EXIT_WORK_FAILED;
    const bool done = print_listing(&suite, &listing);
    suite_free(&suite);
    return done ? EXIT_DONE : EXIT_WORK_FAILED;
}

/* The third form, from the type on. */
static int list_choices(int argc, char **argv)
{
    struct choices choices = {.devices = argv + 3, .count = argc - 3};
    if (argc < 4 || !tconv_type_from_name(argv[0], &choices.type) ||
        !tconv_data_format_from_name(argv[1], &choices.format))
        return usage();
    for (int d = 0; d < choices.count; d++)
        if (!is_described(choices.devices[d])) return usage();
    struct suite suite;
    if (suite_read(NULL, &suite) != EXIT_DONE) return EXIT_WORK_FAILED;
    const bool done = suite_select(&suite, argv[2]) == EXIT_DONE && print_choices(&suite, &choices);
    suite_free(&suite);
    return done ? EXIT_DONE : EXIT_WORK_FAILED;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--choices") == 0) return list_choices(argc - 2, argv + 2);
    if (argc > 1 && strcmp(argv[1], "--listing") == 0) return list_launches(argc - 2, argv + 2);
    struct suite suite;
    if (suite_read(argc > 1 ? argv[1] : NULL, &suite) != EXIT_DONE) return 1;
    bool done = true;
    for (size_t d = 0; d < sizeof cards / sizeof *cards && done; d++) {
        const tconv_device_info *device = described_device(cards[d]);
        struct program *list = NULL;
        for (size_t i = 0; i < suite.count && done; i++)
            done = add_layer(&list, device, &suite.entries[i], TCONV_NCX, TCONV_F32,
                             TCONV_ACTIVATION_NONE, TCONV_MATH_EXACT,
                             i % ALL_EVERY == 0 ? ALL_ALGORITHMS : ITS_CHOICE);
        for (size_t i = 0; i < suite.count && done; i += LAST_EVERY)
            done = add_layer(&list, device, &suite.entries[i], TCONV_NXC, TCONV_F32,
                             TCONV_ACTIVATION_NONE, TCONV_MATH_EXACT, ITS_CHOICE);
        /* Other types, and an epilogue, for a few layers: the loops are the same. f16 only where
         * conversions are the compiler's own: those of libclc are not what drivers have. */
        for (size_t i = 0; i < suite.count && done; i += OTHERS_EVERY)
            for (size_t t = 0; t < sizeof others / sizeof *others && done; t++)
                if ((others[t].type != TCONV_F64 || device->double_arithmetic) &&
                    (others[t].type != TCONV_F16 || device->half_arithmetic))
                    done = add_layer(&list, device, &suite.entries[i], TCONV_NCX, others[t].type,
                                     others[t].activation, TCONV_MATH_EXACT, ALL_ALGORITHMS);
        for (size_t i = 0; i < suite.count && done; i += OTHERS_EVERY)
            done = add_doubled(&list, device, &suite.entries[i], TCONV_NCX) &&
                   add_doubled(&list, device, &suite.entries[i], TCONV_NXC);
        print_and_free(cards[d], list);
    }
    for (size_t u = 0; u < sizeof units / sizeof *units && done; u++) {
        static const tconv_type types[] = {TCONV_F16, TCONV_BF16, TCONV_I8, TCONV_U8, TCONV_F32};
        static const tconv_type last_types[] = {TCONV_F32, TCONV_F16};
        struct program *list = NULL;
        for (size_t i = 0; i < suite.count && done; i += UNITS_EVERY)
            for (size_t t = 0; t < sizeof types / sizeof *types && done; t++)
                done = add_layer(&list, described_device(units[u]), &suite.entries[i], TCONV_NCX,
                                 types[t], i == 0 ? TCONV_ACTIVATION_RELU : TCONV_ACTIVATION_NONE,
                                 TCONV_MATH_FAST, ALL_ALGORITHMS);
        for (size_t i = 0; i < suite.count && done; i++)
            if (strcmp(suite.entries[i].id, tiles_of) == 0)
                done = add_layer(&list, described_device(units[u]), &suite.entries[i], TCONV_NCX,
                                 TCONV_F16, TCONV_ACTIVATION_NONE, TCONV_MATH_FAST, ALL_TILES);
        for (size_t i = 0; i < suite.count && done; i++)
            for (size_t t = 0; t < sizeof last_types / sizeof *last_types && done; t++) {
                if (i % UNITS_EVERY != 0 && strcmp(suite.entries[i].id, single_channels) != 0)
                    continue;
                done = add_layer(&list, described_device(units[u]), &suite.entries[i], TCONV_NXC,
                                 last_types[t], TCONV_ACTIVATION_NONE, TCONV_MATH_EXACT,
                                 ALL_ALGORITHMS);
            }
        print_and_free(units[u], list);
    }
    suite_free(&suite);
    return done ? 0 : 1;
}
