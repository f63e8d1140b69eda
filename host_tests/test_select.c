/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing algorithms for described devices: what an algorithm writes must fit the device that it
 * was written for. */
#include "algorithm/gpu/units.h"
#include "base/matrix_units.h"
#include "described.h"
#include "selecting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const tconv_epilogue no_epilogue = TCONV_EPILOGUE_INIT;
static const tconv_epilogue bias_only = {.bias = true, .alpha = 1};

static struct tconv_loops loops_of(const tconv_problem *p)
{
    tconv_geometry g = TCONV_GEOMETRY_INIT;
    assert_int_equal(tconv_resolve(p, &g, NULL), TCONV_OK);
    struct tconv_loops loops;
    tconv_loops_init(&loops, p, &g);
    return loops;
}

static tconv_problem plane(int64_t ci, int64_t co, int64_t x, int64_t k, int64_t s)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    p.data = (tconv_shape){4, {2, ci, x, x}};
    p.filter = (tconv_shape){4, {ci, co, k, k}};
    p.strides = (tconv_list){2, {s, s}};
    return p;
}

/* Devices whose numbers contradict each other would fail elsewhere, without a word of them. */
static void described_devices_are_possible(void **state)
{
    (void)state;
    char text[500];
    for (const struct described_device *d = described_devices; d->name != NULL; d++)
        if (described_wrongly(&d->info, text, sizeof text))
            fail_msg("the described device %s is impossible: %s", d->name, text);
}

/* What a test's sentence tells of a launch. */
struct about {
    const char *device, *algorithm;
};

static void check_launch(const struct about *about, const struct tconv_launch *launch,
                         const tconv_device_info *device)
{
    size_t group = 1;
    for (int i = 0; i < 3; i++) {
        if (launch->local[i] < 1 || launch->local[i] > device->work_item_limit[i])
            fail_msg("%s on %s: local size %d is %zu, but work_item_limit is %llu",
                     about->algorithm, about->device, i, launch->local[i],
                     (unsigned long long)device->work_item_limit[i]);
        if (launch->global[i] == 0 || launch->global[i] % launch->local[i] != 0)
            fail_msg("%s on %s: global size %d is %zu, no multiple of local size %zu",
                     about->algorithm, about->device, i, launch->global[i], launch->local[i]);
        group *= launch->local[i];
    }
    if (group > device->work_group_limit)
        fail_msg("%s on %s: a work-group has %zu items, but work_group_limit is %llu",
                 about->algorithm, about->device, group,
                 (unsigned long long)device->work_group_limit);
    if (launch->local_bytes > device->local_memory)
        fail_msg("%s on %s: it takes %llu bytes of local memory, but local_memory is %llu",
                 about->algorithm, about->device, (unsigned long long)launch->local_bytes,
                 (unsigned long long)device->local_memory);
}

/* Threads of a processor take ranges of work-groups along dimension 0: what lies along the others
 * would be left to one thread. */
static void check_shares(const struct about *about, const struct tconv_launch *run)
{
    if (run->global[1] > 1 || run->global[2] > 1)
        fail_msg("%s on %s: %s has a grid of %zu x %zu x %zu, of which threads share dimension 0",
                 about->algorithm, about->device, run->kernel, run->global[0], run->global[1],
                 run->global[2]);
}

/* What an algorithm writes for a problem; false where it refuses. */
static bool write_kernel_plan(const struct tconv_algorithm *algorithm, const tconv_problem *p,
                              const tconv_device_info *device, tconv_math math,
                              struct tconv_kernel_plan *kernel_plan)
{
    const struct tconv_loops loops = loops_of(p);
    const struct tconv_request request = request_for(&loops, device, &no_epilogue, math);
    struct tconv_reason reason;
    double cost;
    memset(kernel_plan, 0, sizeof *kernel_plan);
    if (!accepts(algorithm, &request, &cost, &reason)) return false;
    assert_int_equal(write_best(algorithm, &request, kernel_plan, NULL), TCONV_OK);
    return true;
}

static void check_kernel_plan(const char *device, const struct tconv_request *request,
                              const struct tconv_candidate *candidate)
{
    const struct about about = {device, candidate->algorithm->name};
    struct tconv_kernel_plan kernel_plan = {0};
    assert_int_equal(tconv_kernel_plan_write(request, candidate, &kernel_plan, NULL), TCONV_OK);
    /* Nothing is faster than the useful work but with fast arithmetic. */
    if (kernel_plan.error_factor <= 1 && candidate->cost < (double)request->loops->macs)
        fail_msg("%s on %s: a cost of %g multiply-adds, but the layer has %g", about.algorithm,
                 device, candidate->cost, (double)request->loops->macs);
    assert_true(kernel_plan.run_count >= 1 && kernel_plan.pack_count >= 1 &&
                kernel_plan.filter_bytes > 0);
    assert_true(strlen(kernel_plan.layout) > 0);
    double issued = 0;
    for (int i = 0; i < kernel_plan.run_count; i++) {
        check_launch(&about, &kernel_plan.run[i], request->device);
        if (candidate->algorithm->made_for == TCONV_FOR_VECTORS)
            check_shares(&about, &kernel_plan.run[i]);
        issued += kernel_plan.run[i].macs;
    }
    assert_true(kernel_plan.error_factor > 1 || issued == 0 ||
                issued >= (double)request->loops->macs);
    for (int i = 0; i < kernel_plan.pack_count; i++)
        check_launch(&about, &kernel_plan.pack[i], request->device);
    tconv_kernel_plan_clear(&kernel_plan);
}

/* A tile's text names just this candidate. */
static void check_text(const struct tconv_request *request, const struct tconv_candidate *candidate)
{
    char tile[TCONV_TILE_TEXT], text[TCONV_TILE_TEXT + 40], again[TCONV_TILE_TEXT];
    struct tconv_pattern pattern;
    struct tconv_candidate found;
    struct tconv_reason reason;
    assert_true(tconv_tile_text(candidate, tile, sizeof tile) < (int)sizeof tile);
    snprintf(text, sizeof text, "%s %s", candidate->algorithm->name, tile);
    assert_true(tconv_pattern_read(text, &pattern, &reason));
    assert_true(tconv_choose(request, &pattern, 0, &found, &reason));
    tconv_tile_text(&found, again, sizeof again);
    assert_string_equal(tile, again);
    assert_true(found.cost == candidate->cost);
}

/* All candidates, on each described device. */
static void kernel_plans_fit_their_device(void **state)
{
    (void)state;
    /* Few rows and positions, and many channels, which parts divide. */
    tconv_problem halves = plane(512, 8, 4, 3, 1);
    halves.data_type = TCONV_F16;
    halves.filter_type = TCONV_F16;
    halves.operation = TCONV_ONEAPI_CONV_BACKPROP;
    halves.data_format = TCONV_NXC;
    halves.filter_format = TCONV_OIX;
    halves.data = (tconv_shape){4, {1, 4, 4, 512}};
    const tconv_problem problems[] = {
        plane(3, 5, 7, 3, 2),   plane(64, 128, 32, 4, 2), plane(17, 1, 9, 9, 3),
        plane(2, 2, 3, 64, 32), plane(256, 256, 1, 4, 1), plane(8, 31, 130, 2, 2),
        plane(5, 7, 33, 1, 1),  plane(1, 1, 50, 40, 9),   halves,
    };
    int written = 0;
    for (const struct described_device *d = described_devices; d->name != NULL; d++)
        for (size_t p = 0; p < sizeof problems / sizeof *problems; p++)
            for (int a = 0; tconv_algorithm_at(a) != NULL; a++) {
                const struct tconv_loops loops = loops_of(&problems[p]);
                const struct tconv_request request =
                    request_for(&loops, &d->info, &no_epilogue, TCONV_MATH_FAST);
                struct tconv_reason reason = {""};
                struct tconv_candidates candidates;
                if (!tconv_enumerate(tconv_algorithm_at(a), &request, NULL, &candidates, &reason))
                    assert_true(strlen(reason.text) > 0);
                for (int i = 0; i < candidates.count; i++, written++) {
                    assert_true(i == 0 || candidates.list[i].cost >= candidates.list[i - 1].cost);
                    check_kernel_plan(d->name, &request, &candidates.list[i]);
                    if (p < 2) check_text(&request, &candidates.list[i]);
                }
            }
    assert_true(written > 500);
}

/* Options of a launch that computes are those of f32, but for the type that is packed from. */
static void same_launch(const struct tconv_request *plain, const struct tconv_launch *a,
                        const struct tconv_request *light, const struct tconv_launch *b,
                        const struct tconv_algorithm *algorithm)
{
    char options[2][TCONV_MAX_OPTIONS];
    assert_true(tconv_launch_all_options(a, plain, algorithm, options[0], TCONV_MAX_OPTIONS));
    assert_true(tconv_launch_all_options(b, light, algorithm, options[1], TCONV_MAX_OPTIONS));
    for (int i = 0; i < 2; i++) {
        char *const filter = strstr(options[i], "-DFILTER=f");
        char *const raw = strstr(options[i], "-DRAW=");
        if (filter == NULL || raw == NULL) fail_msg("no types in \"%s\"", options[i]);
        memcpy(filter + strlen("-DFILTER=f"), "32", 2);
        raw[strlen("-DRAW=")] = '0';
    }
    assert_string_equal(options[0], options[1]);
    assert_memory_equal(a->global, b->global, sizeof a->global);
    assert_memory_equal(a->local, b->local, sizeof a->local);
}

/* A filter of f16 beside data of f32 is packed as f32. So all that computes is that of f32, and
 * packed filters are told apart. */
static void light_weights_cost_what_f32_costs(void **state)
{
    (void)state;
    tconv_problem problems[] = {plane(64, 128, 32, 4, 2), plane(3, 5, 7, 3, 2),
                                plane(32, 32, 20, 3, 2)};
    problems[2].operation = TCONV_UPSAMPLE_CONV;
    int written = 0;
    for (const struct described_device *d = described_devices; d->name != NULL; d++)
        for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
            tconv_problem half = problems[i];
            half.filter_type = TCONV_F16;
            const struct tconv_loops loops[] = {loops_of(&problems[i]), loops_of(&half)};
            const struct tconv_request plain = request_for(&loops[0], &d->info, &no_epilogue,
                                                           TCONV_MATH_FAST),
                                       light = request_for(&loops[1], &d->info, &no_epilogue,
                                                           TCONV_MATH_FAST);
            for (int a = 0; tconv_algorithm_at(a) != NULL; a++) {
                struct tconv_candidates all[2];
                struct tconv_reason reasons[2] = {{""}, {""}};
                struct tconv_kernel_plan plans[2];
                memset(plans, 0, sizeof plans);
                const struct tconv_algorithm *const algorithm = tconv_algorithm_at(a);
                tconv_enumerate(algorithm, &plain, NULL, &all[0], &reasons[0]);
                tconv_enumerate(algorithm, &light, NULL, &all[1], &reasons[1]);
                assert_string_equal(reasons[0].text, reasons[1].text);
                assert_int_equal(all[0].count, all[1].count);
                for (int c = 0; c < all[0].count; c++) {
                    assert_true(all[0].list[c].cost == all[1].list[c].cost);
                    assert_memory_equal(&all[0].list[c].tile, &all[1].list[c].tile,
                                        sizeof all[0].list[c].tile);
                }
                if (all[0].count == 0) continue;
                assert_int_equal(tconv_kernel_plan_write(&plain, &all[0].list[0], &plans[0], NULL),
                                 TCONV_OK);
                assert_int_equal(tconv_kernel_plan_write(&light, &all[1].list[0], &plans[1], NULL),
                                 TCONV_OK);
                assert_int_equal(plans[0].filter_bytes, plans[1].filter_bytes);
                assert_string_not_equal(plans[0].layout, plans[1].layout);
                assert_int_equal(plans[0].run_count, plans[1].run_count);
                for (int r = 0; r < plans[0].run_count; r++)
                    same_launch(&plain, &plans[0].run[r], &light, &plans[1].run[r], algorithm);
                for (int k = 0; k < 2; k++) tconv_kernel_plan_clear(&plans[k]);
                written++;
            }
        }
    assert_true(written > 100);
}

static void tiles_are_asked_for(void **state)
{
    (void)state;
    const tconv_problem p = plane(64, 128, 32, 4, 2);
    const struct tconv_loops loops = loops_of(&p);
    const tconv_device_info cpu = *described_device("CPU AVX-512");
    const struct tconv_request request = request_for(&loops, &cpu, &no_epilogue, TCONV_MATH_EXACT);
    struct tconv_pattern pattern;
    struct tconv_candidate best;
    struct tconv_reason reason;
    assert_true(tconv_pattern_read("packed_vector nx=1,vw=8", &pattern, &reason));
    assert_true(tconv_choose(&request, &pattern, 0, &best, &reason));
    char text[TCONV_TILE_TEXT];
    tconv_tile_text(&best, text, sizeof text);
    assert_non_null(strstr(text, "vw=8 nx=1 "));
    assert_int_equal(tconv_tile_text(&best, NULL, 0), strlen(text));
    assert_true(tconv_pattern_read("packed_vector nx=77", &pattern, &reason));
    assert_false(tconv_choose(&request, &pattern, 0, &best, &reason));
    assert_non_null(strstr(reason.text, "no such tile; the best one is flat="));
    static const char *const wrong[] = {
        "packed_vector nx",    "packed_vector nx=",  "packed_vector nx=-1",
        "packed_vector nx=1x", "packed_vector ny=1", "packed_vector =1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_false(tconv_pattern_read(wrong[i], &pattern, &reason));
        assert_non_null(strstr(reason.text, "it has flat, vw, nx"));
    }
    static const char *const twice[] = {"packed_vector vw=16 vw=8", "packed_vector nx=1,vw=8,nx=1"};
    for (size_t i = 0; i < sizeof twice / sizeof *twice; i++) {
        assert_false(tconv_pattern_read(twice[i], &pattern, &reason));
        assert_non_null(strstr(reason.text, i == 0 ? "vw is given twice" : "nx is given twice"));
    }
    /* A number that no tile has is not taken for another one: here 16, if it lost its high bits. */
    assert_null(chosen(&request, "packed_vector vw=4294967312", &reason));
    assert_non_null(strstr(reason.text, "it has no such tile; the best one is"));
    assert_false(tconv_pattern_read("reference vw=1", &pattern, &reason));
    assert_non_null(strstr(reason.text, "it has none"));
    assert_false(tconv_pattern_read("auto vw=1", &pattern, &reason));
}

static void processors_get_vectors_and_gpus_get_groups(void **state)
{
    (void)state;
    const tconv_problem p = plane(64, 128, 32, 4, 2);
    const struct tconv_loops loops = loops_of(&p);
    struct tconv_reason reason;
    const tconv_device_info cpu = *described_device("CPU AVX-512"),
                            gpu = *described_device("NVIDIA");
    const struct tconv_request on_cpu = request_for(&loops, &cpu, &no_epilogue, TCONV_MATH_EXACT),
                               on_gpu = request_for(&loops, &gpu, &no_epilogue, TCONV_MATH_EXACT);
    assert_non_null(strstr(chosen(&on_cpu, NULL, &reason)->name, "_vector"));
    assert_non_null(strstr(chosen(&on_gpu, "auto", &reason)->name, "_group"));
}

/* Whether an algorithm takes a row's request by name. It must give the reason, if there is one, and
 * else take it. */
static bool takes_or_says(const struct tconv_request *request, const char *algorithm,
                          const char *wanted, size_t row)
{
    struct tconv_reason reason = {.text = ""};
    const bool takes = chosen(request, algorithm, &reason) != NULL;
    if (takes != (wanted == NULL)) fail_msg("row %d: %s", (int)row, reason.text);
    if (!takes) assert_string_equal(reason.text, wanted);
    return takes;
}

static void fast_arithmetic_is_only_taken_on_request(void **state)
{
    (void)state;
    const tconv_device_info cpu = *described_device("CPU AVX-512");
    tconv_problem large = plane(512, 128, 32, 4, 2), small = plane(3, 5, 7, 4, 2);
    large.pads_begin = large.pads_end = (tconv_list){2, {1, 1}};
    const struct tconv_loops all_loops[] = {loops_of(&large), loops_of(&small)};
    for (int i = 0; i < 2; i++)
        for (int fast = 0; fast < 2; fast++) {
            const struct tconv_request request = request_for(
                &all_loops[i], &cpu, &no_epilogue, fast ? TCONV_MATH_FAST : TCONV_MATH_EXACT);
            struct tconv_reason reason;
            const struct tconv_algorithm *algorithm = chosen(&request, NULL, &reason);
            assert_non_null(algorithm);
            const bool taken = strcmp(algorithm->name, "winograd_vector") == 0;
            if (!fast) assert_false(taken);
            if (fast && i == 0) assert_true(taken);
            const bool named = chosen(&request, "winograd_vector", &reason) != NULL;
            assert_true(named == (fast == 1));
            if (!named) assert_string_equal(reason.text, "it needs math=fast");
        }
}

/* A plane behind a doubling, with `k` taps along each axis. */
static tconv_problem doubled(int64_t in, int64_t out, int64_t x, int64_t k)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    p.operation = TCONV_UPSAMPLE_CONV;
    p.data = (tconv_shape){4, {1, in, x, x}};
    p.filter = (tconv_shape){4, {out, in, k, k}};
    p.strides = (tconv_list){2, {2, 2}};
    p.pads_begin = p.pads_end = (tconv_list){2, {k / 2, k / 2}};
    return p;
}

/* The difference form is exact arithmetic, for upsampling by 2 and 3 taps; it is taken where
 * products take more time than sums. */
static void differences_are_for_doubled_planes(void **state)
{
    (void)state;
    const tconv_device_info cpu = *described_device("CPU AVX-512");
    tconv_problem dilated = doubled(64, 64, 32, 3), mixed = doubled(64, 64, 32, 3);
    dilated.dilations = (tconv_list){2, {1, 2}};
    dilated.filter.dim[3] = 2; /* as many taps of the equivalent filter */
    mixed.strides.value[0] = 1;
    tconv_problem shuffled = doubled(64, 64, 32, 3);
    shuffled.operation = TCONV_CONV_PIXEL_SHUFFLE;
    const struct {
        tconv_problem problem;
        const char *reason; /* NULL: none */
        bool taken;
    } rows[] = {
        {doubled(512, 512, 64, 3), NULL, true},
        {doubled(1280, 1280, 16, 3), NULL, true},
        {doubled(256, 256, 128, 3), NULL, true},
        {doubled(128, 64, 128, 3), NULL, true},
        {doubled(16, 16, 128, 3), NULL, false},
        {doubled(32, 32, 64, 3), NULL, false},
        {doubled(64, 64, 32, 5),
         "an axis has another factor than 2, or other taps than 3 side by side", false},
        {dilated, "an axis has another factor than 2, or other taps than 3 side by side", false},
        {mixed, "an axis has another factor than 2, or other taps than 3 side by side", false},
        {shuffled, "it takes nearest upsampling and a convolution only", false},
        {plane(512, 512, 64, 4, 2), "it takes nearest upsampling and a convolution only", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct tconv_loops loops = loops_of(&rows[i].problem);
        const struct tconv_request request =
            request_for(&loops, &cpu, &no_epilogue, TCONV_MATH_EXACT);
        struct tconv_reason reason;
        const struct tconv_algorithm *algorithm = chosen(&request, NULL, &reason);
        assert_non_null(algorithm);
        if ((algorithm == &tconv_difference) != rows[i].taken)
            fail_msg("row %d takes %s", (int)i, algorithm->name);
        takes_or_says(&request, "difference_vector", rows[i].reason, i);
    }
}

/* On GPUs it is taken along the last two axes, where products of many channels take more time than
 * what is around them. Other axes have taps. */
static void differences_are_for_gpus(void **state)
{
    (void)state;
    tconv_problem flat = doubled(256, 256, 64, 3), half = flat, cube = TCONV_PROBLEM_INIT;
    flat.strides.value[0] = 1; /* factor 2 along x only, 3 taps along y */
    half.data_type = half.filter_type = TCONV_F16;
    cube.operation = TCONV_UPSAMPLE_CONV;
    cube.data = (tconv_shape){5, {1, 256, 8, 32, 32}};
    cube.filter = (tconv_shape){5, {256, 256, 3, 3, 3}};
    cube.strides = (tconv_list){3, {2, 2, 2}};
    cube.pads_begin = cube.pads_end = (tconv_list){3, {1, 1, 1}};
    tconv_problem long_z = cube;
    long_z.filter.dim[2] = 17;
    long_z.pads_begin.value[0] = long_z.pads_end.value[0] = 8;
    tconv_problem thin = doubled(256, 256, 64, 3);
    thin.strides.value[1] = 1; /* factor 2 along y only, 3 taps along x */
    const struct {
        const char *device;
        tconv_problem problem;
        const char *reason; /* NULL: none */
        bool taken;
        double factor; /* on the bound */
    } rows[] = {
        {"NVIDIA", doubled(512, 512, 64, 3), NULL, true, 27},
        {"NVIDIA", doubled(256, 256, 128, 3), NULL, true, 27},
        {"NVIDIA", doubled(128, 128, 128, 3), NULL, true, 27},
        {"AMD", doubled(512, 512, 64, 3), NULL, true, 27},
        {"Intel", doubled(512, 512, 64, 3), NULL, true, 27},
        {"NVIDIA", flat, NULL, true, 18},
        {"NVIDIA", cube, NULL, true, 54},
        {"NVIDIA", doubled(8, 8, 128, 3), NULL, false, 27},
        {"NVIDIA", doubled(64, 64, 32, 5),
         "the last axis has another factor than 2, or other taps than 3 side by side", false, 0},
        {"NVIDIA", thin,
         "the last axis has another factor than 2, or other taps than 3 side by side", false, 0},
        {"NVIDIA", half, "element type f16; it takes f32", false, 0},
        {"NVIDIA", long_z, "more than 8 taps of a phase along the other axes", false, 0},
        {"Intel Gen9", doubled(512, 512, 64, 3),
         "it needs larger work-groups or more local memory or registers", false, 0},
        {"NVIDIA", plane(512, 512, 64, 4, 2), "it takes nearest upsampling and a convolution only",
         false, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tconv_device_info *device = described_device(rows[i].device);
        const struct tconv_loops loops = loops_of(&rows[i].problem);
        const struct tconv_request request =
            request_for(&loops, device, &no_epilogue, TCONV_MATH_EXACT);
        struct tconv_reason reason;
        const struct tconv_algorithm *algorithm = chosen(&request, NULL, &reason);
        assert_non_null(algorithm);
        if ((algorithm == &tconv_difference_group) != rows[i].taken)
            fail_msg("row %d takes %s", (int)i, algorithm->name);
        if (!takes_or_says(&request, "difference_group", rows[i].reason, i)) continue;
        struct tconv_kernel_plan difference, tiled;
        assert_true(write_kernel_plan(&tconv_difference_group, &rows[i].problem, device,
                                      TCONV_MATH_EXACT, &difference));
        assert_true(write_kernel_plan(&tconv_tiled_group, &rows[i].problem, device,
                                      TCONV_MATH_EXACT, &tiled));
        assert_true(difference.error_factor == rows[i].factor);
        /* 9 of 16 multiply-adds, or 3 of 4; tiles and positions of borders add some. */
        if (rows[i].taken && i != 5)
            assert_true(difference.run[0].macs > 0.5 * tiled.run[0].macs &&
                        difference.run[0].macs < 0.65 * tiled.run[0].macs);
        tconv_kernel_plan_clear(&difference);
        tconv_kernel_plan_clear(&tiled);
    }
}

/* The direct algorithm counts weights, the caller's and its own, with 32 bits. */
static void direct_sums_say_what_they_cannot_count(void **state)
{
    (void)state;
    tconv_problem steps = plane(1, 1, 8, 2, 1), channels = plane(1, 1 << 26, 1, 1, 1);
    steps.filter_steps = (tconv_steps){4, {1, 1, 2, (1 << 30) - 3}}; /* 2^30 in all */
    tconv_problem far = steps;
    far.filter_steps.value[3]++;
    const struct {
        tconv_problem problem;
        const char *reason; /* NULL: none */
    } rows[] = {{steps, NULL},
                {far, "the filter's steps exceed its 32-bit indices"},
                {channels, "more output channels than it divides by"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct tconv_loops loops = loops_of(&rows[i].problem);
        const struct tconv_request request =
            request_for(&loops, described_device("NVIDIA"), &no_epilogue, TCONV_MATH_EXACT);
        takes_or_says(&request, "direct_group", rows[i].reason, i);
    }
}

/* It packs the convolution's filter; no equivalent one is made. The packed filter has 9 weights for
 * the equivalent one's 16, and the bound of its errors is larger. */
static void differences_pack_the_given_filter(void **state)
{
    (void)state;
    const tconv_problem p = doubled(64, 24, 32, 3);
    const tconv_device_info cpu = *described_device("CPU AVX-512");
    struct tconv_kernel_plan kernel_plan;
    assert_true(write_kernel_plan(&tconv_difference, &p, &cpu, TCONV_MATH_EXACT, &kernel_plan));
    assert_true(kernel_plan.error_factor == 9);
    assert_true(kernel_plan.filter_bytes < 9 * sizeof(float) * 64 * 32);
    assert_null(strstr(kernel_plan.layout, "sums"));
    for (int i = 0; i < kernel_plan.pack_count; i++)
        assert_int_equal(kernel_plan.pack[i].args[0], TCONV_ARG_WEIGHTS);
    tconv_kernel_plan_clear(&kernel_plan);
}

static void the_reference_takes_what_is_left(void **state)
{
    (void)state;
    tconv_problem p = TCONV_PROBLEM_INIT; /* more taps than others list */
    p.operation = TCONV_ONEAPI_CONV_BACKPROP;
    p.filter_format = TCONV_OIX;
    p.data_format = TCONV_NXC;
    p.data = (tconv_shape){4, {1, 9, 9, 2}};
    p.filter = (tconv_shape){4, {2, 2, 300, 300}};
    struct tconv_loops loops = loops_of(&p);
    const tconv_device_info cpu = *described_device("CPU AVX-512"), gpu = *described_device("AMD");
    struct tconv_request request = request_for(&loops, &cpu, &no_epilogue, TCONV_MATH_EXACT);
    struct tconv_reason reason;
    assert_string_equal(chosen(&request, "auto", &reason)->name, "reference");
    assert_null(chosen(&request, "channels_vector", &reason));
    assert_non_null(strstr(reason.text, "taps reach one output"));
    assert_null(chosen(&request, "nonsense", &reason));
    assert_non_null(strstr(reason.text, "no such"));

    /* Where rows are contiguous there is something better for any number of axes. */
    p.data_format = TCONV_NCX;
    p.data = (tconv_shape){6, {1, 2, 3, 3, 3, 3}};
    p.filter = (tconv_shape){6, {2, 2, 2, 2, 2, 2}};
    loops = loops_of(&p);
    assert_null(chosen(&request, "packed_vector", &reason));
    assert_non_null(strstr(reason.text, "4 spatial axes"));
    assert_non_null(chosen(&request, "col2im_vector", &reason));
    assert_string_not_equal(chosen(&request, "auto", &reason)->name, "reference");
    request = request_for(&loops, &gpu, &no_epilogue, TCONV_MATH_EXACT);
    assert_non_null(chosen(&request, "gather_group", &reason));
    assert_string_not_equal(chosen(&request, "auto", &reason)->name, "reference");
}

/* What layers differ in. */
struct channels {
    int64_t groups, in, out; /* in and out: of one group */
};
struct window {
    int64_t kernel, stride, dilation; /* along every axis */
};

static tconv_problem problem_of(int axes, int64_t extent, bool last, const struct channels *c,
                                const struct window *w, tconv_type type)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    p.operation = TCONV_ONEAPI_CONV_BACKPROP;
    p.filter_format = TCONV_OIX;
    p.data_format = last ? TCONV_NXC : TCONV_NCX;
    p.data_type = p.filter_type = p.output_type = type;
    p.groups = c->groups;
    p.data.rank = p.filter.rank = axes + 2;
    p.data.dim[0] = 2;
    p.data.dim[last ? axes + 1 : 1] = c->groups * c->in;
    p.filter.dim[0] = c->groups * c->in;
    p.filter.dim[1] = c->out;
    p.strides.count = p.dilations.count = axes;
    for (int a = 0; a < axes; a++) {
        p.data.dim[a + 2 - last] = extent;
        p.filter.dim[a + 2] = w->kernel;
        p.strides.value[a] = w->stride;
        p.dilations.value[a] = w->dilation;
    }
    return p;
}

/* No number of axes, data format, kind of group or element type is left to the reference on a
 * described processor with vectors. */
static void no_ordering_is_left_to_the_reference(void **state)
{
    (void)state;
    enum { MOST_AXES = 4, TYPES = 8, CHANNELS = 8, WINDOWS = 7 };
    static const int64_t extents[MOST_AXES] = {4096, 64, 16, 8};
    static const tconv_type types[TYPES] = {TCONV_F32, TCONV_F64, TCONV_F16, TCONV_BF16,
                                            TCONV_I8,  TCONV_U8,  TCONV_I32, TCONV_I64};
    static const struct channels channels[CHANNELS] = {{1, 1, 1},  {1, 3, 5},  {1, 48, 32},
                                                       {1, 64, 3}, {4, 16, 8}, {8, 4, 8},
                                                       {7, 1, 1},  {64, 1, 1}};
    static const struct window windows[WINDOWS] = {{1, 1, 1}, {3, 1, 1}, {3, 2, 1}, {4, 2, 1},
                                                   {2, 2, 1}, {2, 1, 3}, {2, 4, 1}};
    for (const struct described_device *d = described_devices; d->name != NULL; d++)
        for (int i = 0; i < MOST_AXES * TYPES * CHANNELS * WINDOWS * 2; i++) {
            if (d->info.kind != TCONV_DEVICE_CPU || d->info.vector_width == 1) break;
            const bool last = i % 2 == 1;
            const int axes = i / 2 % MOST_AXES + 1;
            const tconv_type type = types[i / 2 / MOST_AXES % TYPES];
            const struct channels *c = &channels[i / 2 / MOST_AXES / TYPES % CHANNELS];
            const struct window *w = &windows[i / 2 / MOST_AXES / TYPES / CHANNELS];
            const tconv_problem p = problem_of(axes, extents[axes - 1], last, c, w, type);
            const struct tconv_loops loops = loops_of(&p);
            const struct tconv_request request =
                request_for(&loops, &d->info, &no_epilogue, TCONV_MATH_EXACT);
            struct tconv_reason reason;
            if (strcmp(chosen(&request, "auto", &reason)->name, "reference") == 0)
                fail_msg("%s, %d axes, %s, %s, %lld groups of %lld to %lld, kernel %lld, stride "
                         "%lld: the reference",
                         d->name, axes, last ? "NXC" : "NCX", tconv_type_name(type),
                         (long long)c->groups, (long long)c->in, (long long)c->out,
                         (long long)w->kernel, (long long)w->stride);
        }
}

/* More phases than others list, or a stride beyond their indices: taps reach few outputs. */
static void large_strides_are_sparse(void **state)
{
    (void)state;
    static const struct {
        int64_t x[2], k[2], s[2];
    } rows[] = {
        {{64, 2}, {3, 3}, {46889, 4}},
        {{64, 4}, {3, 4}, {4, 46889}},
        {{1, 300}, {1, 5}, {1, 70001}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tconv_problem p = TCONV_PROBLEM_INIT;
        p.data = (tconv_shape){4, {1, 3, rows[i].x[0], rows[i].x[1]}};
        p.filter = (tconv_shape){4, {3, 2, rows[i].k[0], rows[i].k[1]}};
        p.strides = (tconv_list){2, {rows[i].s[0], rows[i].s[1]}};
        const struct tconv_loops loops = loops_of(&p);
        const struct tconv_request request =
            request_for(&loops, described_device("CPU AVX2"), &no_epilogue, TCONV_MATH_EXACT);
        struct tconv_reason reason;
        assert_string_equal(chosen(&request, "auto", &reason)->name, "sparse_vector");
    }
}

/* Where processors end the loops of a work-item, what would need more is refused; GPUs have no such
 * end. */
static void long_loops_are_refused_where_they_end(void **state)
{
    (void)state;
    const tconv_device_info cpu = *described_device("CPU scalar"),
                            gpu = *described_device("NVIDIA");
    const tconv_problem few = plane(8, 16, 9, 5, 1), many = plane(8192, 16, 9, 5, 1);
    const struct tconv_algorithm *const algorithms[] = {&tconv_gather_group, &tconv_matrix_group,
                                                        &tconv_col2im_group, &tconv_reference};
    for (size_t a = 0; a < sizeof algorithms / sizeof *algorithms; a++) {
        const struct {
            const tconv_problem *problem;
            const tconv_device_info *device;
            bool taken;
        } cases[] = {
            {&few, &cpu, true}, {&few, &gpu, true}, {&many, &cpu, false}, {&many, &gpu, true}};
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            const struct tconv_loops loops = loops_of(cases[i].problem);
            const struct tconv_request request =
                request_for(&loops, cases[i].device, &no_epilogue, TCONV_MATH_FAST);
            struct tconv_reason reason;
            double cost;
            assert_true(accepts(algorithms[a], &request, &cost, &reason) == cases[i].taken);
        }
    }
}

/* An axis that is only copied along takes the batch's place, or joins it where the next item is
 * behind its end. */
static void copied_axes_join_the_batch(void **state)
{
    (void)state;
    const tconv_device_info cpu = *described_device("CPU AVX-512");
    static const struct {
        int64_t batch;
        tconv_data_format format;
        bool fast;
    } cases[] = {
        {1, TCONV_NCX, true}, {1, TCONV_NXC, true}, {3, TCONV_NXC, true}, {3, TCONV_NCX, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tconv_problem p = TCONV_PROBLEM_INIT;
        p.operation = TCONV_ONEAPI_CONV_BACKPROP;
        p.data_format = cases[i].format;
        p.filter_format = TCONV_OIX;
        p.data = cases[i].format == TCONV_NXC ? (tconv_shape){6, {cases[i].batch, 4, 3, 3, 3, 2}}
                                              : (tconv_shape){6, {cases[i].batch, 2, 4, 3, 3, 3}};
        p.filter = (tconv_shape){6, {2, 2, 1, 2, 2, 2}};
        const struct tconv_loops loops = loops_of(&p);
        const struct tconv_request request =
            request_for(&loops, &cpu, &no_epilogue, TCONV_MATH_EXACT);
        struct tconv_reason reason;
        double cost;
        assert_true(accepts(&tconv_packed, &request, &cost, &reason) == cases[i].fast);
    }
}

static void a_limit_of_workspace_is_kept(void **state)
{
    (void)state;
    const tconv_problem p = plane(64, 128, 30, 4, 2);
    const struct tconv_loops loops = loops_of(&p);
    const tconv_device_info cpu = *described_device("CPU AVX-512");
    struct tconv_request request = request_for(&loops, &cpu, &no_epilogue, TCONV_MATH_EXACT);
    struct tconv_reason reason;
    struct tconv_kernel_plan kernel_plan = {0};
    double cost;
    assert_true(accepts(&tconv_gather_group, &request, &cost, &reason));
    assert_int_equal(write_best(&tconv_gather_group, &request, &kernel_plan, NULL), TCONV_OK);
    assert_true(kernel_plan.workspace_bytes > 0);
    tconv_kernel_plan_clear(&kernel_plan);
    request.workspace_limit = kernel_plan.workspace_bytes - 1;
    assert_false(accepts(&tconv_gather_group, &request, &cost, &reason));
    assert_non_null(strstr(reason.text, "workspace"));
    assert_non_null(chosen(&request, NULL, &reason)); /* others need none */
    request.workspace_limit = kernel_plan.workspace_bytes;
    assert_true(accepts(&tconv_gather_group, &request, &cost, &reason));
}

/* Sums of parts have no room in a buffer that the device does not allow. */
static void a_workspace_fits_the_device(void **state)
{
    (void)state;
    const tconv_problem p = plane(256, 128, 64, 4, 2);
    const struct tconv_loops loops = loops_of(&p);
    for (const struct described_device *d = described_devices; d->name != NULL; d++) {
        tconv_device_info device = d->info;
        device.allocation_limit = UINT64_C(16) << 20;
        const struct tconv_request request =
            request_for(&loops, &device, &no_epilogue, TCONV_MATH_EXACT);
        const struct tconv_algorithm *algorithm;
        for (int i = 0; (algorithm = tconv_algorithm_at(i)) != NULL; i++) {
            struct tconv_candidates candidates;
            struct tconv_reason reason;
            if (!tconv_enumerate(algorithm, &request, NULL, &candidates, &reason)) continue;
            for (int c = 0; c < candidates.count; c++) {
                struct tconv_kernel_plan plan = {0};
                assert_int_equal(
                    tconv_kernel_plan_write(&request, &candidates.list[c], &plan, NULL), TCONV_OK);
                assert_true(plan.workspace_bytes <= device.allocation_limit);
                tconv_kernel_plan_clear(&plan);
            }
        }
    }
}

static void layouts_are_shared_where_they_are_equal(void **state)
{
    (void)state;
    const tconv_device_info cpu = *described_device("CPU AVX-512");
    tconv_problem a = plane(64, 128, 32, 4, 2), b = a;
    b.data.dim[0] = 5; /* another batch, other pads: the same packed filter */
    b.pads_begin = b.pads_end = (tconv_list){2, {1, 1}};
    b.output_padding = (tconv_list){2, {2, 2}};
    const struct tconv_loops all_loops[] = {loops_of(&a), loops_of(&b)};
    struct tconv_kernel_plan kernel_plans[2];
    memset(kernel_plans, 0, sizeof kernel_plans);
    for (int i = 0; i < 2; i++) {
        const struct tconv_request request =
            request_for(&all_loops[i], &cpu, &no_epilogue, TCONV_MATH_EXACT);
        assert_int_equal(write_best(&tconv_gather_group, &request, &kernel_plans[i], NULL),
                         TCONV_OK);
        tconv_kernel_plan_clear(&kernel_plans[i]);
    }
    assert_string_equal(kernel_plans[0].layout, kernel_plans[1].layout);
    assert_int_equal(kernel_plans[0].filter_bytes, kernel_plans[1].filter_bytes);
}

/* Whether options are the same but for the shape of a tile, which suits the extents. */
static bool same_but_for_tiles(const char *a, const char *b)
{
    static const char *const shape[] = {
        " -DVW=", " -DNX=", " -DPX=", " -DROUND=",  " -DMT=",     " -DNT=",
        " -DTM=", " -DTN=", " -DKS=", " -DSLICES=", " -DROUNDS=", " -DWHOLE="};
    while (*a != '\0' && *b != '\0') {
        size_t compared = 1 + strcspn(a + 1, " ");
        for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
            if (strncmp(a, shape[i], strlen(shape[i])) == 0) compared = strlen(shape[i]);
        if (strncmp(a, b, compared) != 0) return false;
        a += 1 + strcspn(a + 1, " ");
        b += 1 + strcspn(b + 1, " ");
    }
    return *a == *b;
}

/* Programs of one layer with other pads and the same extents: docs/kernels.md says which algorithms
 * share them. */
static void pads_share_programs(void **state)
{
    (void)state;
    static const struct {
        int64_t begin;
        bool always; /* whether all algorithms share the program */
    } pads[] = {{1, true}, {3, true}, {2, false}};
    int compared = 0;
    for (const struct described_device *d = described_devices; d->name != NULL; d++)
        for (int a = 0; tconv_algorithm_at(a) != NULL; a++) {
            const struct tconv_algorithm *algorithm = tconv_algorithm_at(a);
            const bool depends = algorithm == &tconv_packed || algorithm == &tconv_thin ||
                                 algorithm == &tconv_winograd || algorithm == &tconv_gather_group ||
                                 algorithm == &tconv_gather_dot;
            struct tconv_kernel_plan first = {0};
            for (size_t i = 0; i < sizeof pads / sizeof *pads; i++) {
                tconv_problem p = plane(16, 16, 1024, 4, 2);
                p.pads_begin = p.pads_end = (tconv_list){2, {pads[i].begin, pads[i].begin}};
                p.output_padding = (tconv_list){2, {2 * pads[i].begin, 2 * pads[i].begin}};
                struct tconv_kernel_plan kernel_plan = {0};
                if (!write_kernel_plan(algorithm, &p, &d->info, TCONV_MATH_FAST, &kernel_plan))
                    continue;
                const char *options = kernel_plan.run[kernel_plan.run_count - 1].options;
                const char *expected =
                    first.run[first.run_count > 0 ? first.run_count - 1 : 0].options;
                if (first.run_count > 0 && (pads[i].always || !depends)) {
                    if (!same_but_for_tiles(options, expected))
                        fail_msg("%s on %s: %s and %s", algorithm->name, d->name, expected,
                                 options);
                    compared++;
                }
                tconv_kernel_plan_clear(&kernel_plan);
                if (first.run_count == 0) first = kernel_plan;
            }
        }
    assert_true(compared > 100);
}

/* The options with which thin_vector compiles a convolution of stride 1 along one axis. */
static void thin_options(int64_t channels, int64_t kernel, int64_t dilation, const char *device,
                         char options[TCONV_MAX_OPTIONS])
{
    struct tconv_kernel_plan kernel_plan;
    tconv_problem p = TCONV_PROBLEM_INIT;
    const int64_t pad = dilation * (kernel - 1) / 2;
    p.operation = TCONV_UPSAMPLE_CONV;
    p.data = (tconv_shape){3, {1, channels, 6400}};
    p.filter = (tconv_shape){3, {channels, channels, kernel}};
    p.dilations = (tconv_list){1, {dilation}};
    p.pads_begin = p.pads_end = (tconv_list){1, {pad}};
    assert_true(write_kernel_plan(&tconv_thin, &p, described_device(device), TCONV_MATH_EXACT,
                                  &kernel_plan));
    strcpy(options, kernel_plan.run[0].options);
    tconv_kernel_plan_clear(&kernel_plan);
}

/* A model's convolutions of stride 1 share a program, whatever kernels and dilations they have,
 * where there are registers for many channels. */
static void kernels_share_programs(void **state)
{
    (void)state;
    static const int64_t kernels[] = {3, 4, 7, 11, 16}, dilations[] = {1, 3, 5, 9};
    char first[TCONV_MAX_OPTIONS], options[TCONV_MAX_OPTIONS];
    for (int64_t channels = 32; channels <= 256; channels *= 2) {
        thin_options(channels, 3, 1, "CPU AVX-512", first);
        assert_null(strstr(first, "-DKX="));
        for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
            for (size_t d = 0; d < sizeof dilations / sizeof *dilations; d++) {
                thin_options(channels, kernels[k], dilations[d], "CPU AVX-512", options);
                if (!same_but_for_tiles(options, first)) fail_msg("%s and %s", first, options);
            }
    }
    thin_options(64, 2, 3, "CPU AVX-512", options); /* few taps or registers: unrolled */
    assert_non_null(strstr(options, " -DKX=2 -DDX=3 "));
    thin_options(64, 7, 3, "CPU AVX2", options);
    assert_non_null(strstr(options, " -DKX=7 -DDX=3 "));
}

/* Compares the layouts that an algorithm gives one filter, `p`'s, for several batches, extents and
 * pads. Returns how many. */
static int compare_layouts(const struct tconv_algorithm *algorithm, const tconv_device_info *device,
                           tconv_problem p)
{
    static const struct {
        int64_t batch, x, pad;
    } places[] = {{1, 40, 0}, {1, 9, 1}, {3, 33, 2}, {16, 5, 1}, {1, 200, 3}};
    struct tconv_kernel_plan first, kernel_plan;
    int written = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        p.data.dim[0] = places[i].batch;
        p.data.dim[2] = p.data.dim[3] = places[i].x;
        p.pads_begin = p.pads_end = (tconv_list){2, {places[i].pad, places[i].pad}};
        if (!write_kernel_plan(algorithm, &p, device, TCONV_MATH_EXACT, &kernel_plan)) continue;
        tconv_kernel_plan_clear(&kernel_plan);
        if (written++ == 0) first = kernel_plan;
        assert_string_equal(kernel_plan.layout, first.layout);
        assert_int_equal(kernel_plan.filter_bytes, first.filter_bytes);
    }
    return written > 0 ? written - 1 : 0;
}

/* A filter packed for one layer serves all others that differ in batch, extents and pads only. */
static void layouts_follow_the_filter_alone(void **state)
{
    (void)state;
    const tconv_device_info devices[] = {
        *described_device("CPU AVX-512"),
        *described_device("CPU AVX2"),
        *described_device("CPU 4 lanes"),
        *described_device("NVIDIA"),
    };
    static const int64_t channels[][2] = {{1, 1},   {16, 24}, {3, 7},   {64, 64},
                                          {128, 3}, {20, 13}, {32, 48}, {5, 100}};
    int compared = 0;
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++)
        for (size_t c = 0; c < sizeof channels / sizeof *channels; c++)
            for (int64_t k = 1; k <= 8; k++)
                for (int64_t s = 1; s <= 5; s++)
                    for (int a = 0; tconv_algorithm_at(a) != NULL; a++)
                        compared += compare_layouts(tconv_algorithm_at(a), &devices[d],
                                                    plane(channels[c][0], channels[c][1], 1, k, s));
    assert_true(compared > 10000);
}

/* What does not fit into a kernel plan is told, and nothing is written past its end. */
static void kernel_plans_have_limits(void **state)
{
    (void)state;
    const tconv_problem p = plane(3, 5, 7, 4, 2);
    const struct tconv_loops loops = loops_of(&p);
    const int64_t kernel[] = {4, 4};
    enum tconv_arg args[TCONV_MAX_ARGS + 1] = {TCONV_ARG_DATA};
    char name[400];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';

    struct tconv_kernel_plan launches = {0}, options = {0}, arguments = {0}, layout = {0};
    for (int i = 0; i <= TCONV_MAX_LAUNCHES; i++) {
        assert_true(tconv_kernel_plan_fits(&launches));
        assert_non_null(tconv_kernel_plan_run(&launches, "kernel"));
    }
    assert_false(tconv_kernel_plan_fits(&launches));
    assert_int_equal(launches.run_count, TCONV_MAX_LAUNCHES);

    struct tconv_launch *launch = tconv_kernel_plan_run(&options, "kernel");
    tconv_launch_option(launch, "VW", 16);
    assert_true(tconv_kernel_plan_fits(&options));
    tconv_launch_option(launch, name, 1);
    assert_false(tconv_kernel_plan_fits(&options));
    assert_true(strlen(launch->options) < sizeof launch->options);

    launch = tconv_kernel_plan_pack(&arguments, "kernel");
    tconv_launch_args(launch, args, TCONV_MAX_ARGS);
    assert_true(tconv_kernel_plan_fits(&arguments));
    tconv_launch_args(launch, args, TCONV_MAX_ARGS + 1);
    assert_false(tconv_kernel_plan_fits(&arguments));

    tconv_kernel_plan_layout(&layout, "algorithm", &loops, kernel, 2);
    assert_true(tconv_kernel_plan_fits(&layout));
    tconv_kernel_plan_layout(&layout, name, &loops, kernel, 2);
    assert_false(tconv_kernel_plan_fits(&layout));
    assert_true(strlen(layout.layout) < sizeof layout.layout);
}

/* A device that would take wide sub-groups by itself is told to take its narrowest. */
static void narrow_subgroups_are_asked_for(void **state)
{
    (void)state;
    const tconv_problem p = plane(64, 128, 32, 4, 2);
    const struct tconv_loops loops = loops_of(&p);
    for (uint32_t least = 0; least <= 16; least += 8) {
        tconv_device_info gpu = *described_device("NVIDIA");
        gpu.subgroup_least = least;
        const struct tconv_request request =
            request_for(&loops, &gpu, &bias_only, TCONV_MATH_EXACT);
        struct tconv_kernel_plan kernel_plan = {0};
        assert_int_equal(write_best(&tconv_gather_group, &request, &kernel_plan, NULL), TCONV_OK);
        const struct tconv_launch *run = &kernel_plan.run[kernel_plan.run_count - 1];
        char options[TCONV_MAX_OPTIONS];
        assert_true(
            tconv_launch_all_options(run, &request, &tconv_gather_group, options, sizeof options));
        assert_true((strstr(options, " -DSUBGROUP=16 ") != NULL) == (least == 16));
        assert_non_null(strstr(options, " -DBIAS=1 "));
        const long sums = option_of(run, "MW") * option_of(run, "VW") * option_of(run, "SX");
        assert_true(sums <= (least == 0 ? 64 : 32));
        tconv_kernel_plan_clear(&kernel_plan);
    }
}

/* Fragments for Intel are as wide as a sub-group; a tile that AMD's compiler spills is not made. */
static void matrix_tiles_suit_their_compilers(void **state)
{
    (void)state;
    static const char *const intel[] = {"Intel dpas", "Intel Max dpas"};
    tconv_problem p = plane(64, 128, 32, 4, 2);
    p.data_type = p.filter_type = TCONV_F16;
    for (int i = 0; i < 2; i++) {
        const tconv_device_info *gpu = described_device(intel[i]);
        struct tconv_kernel_plan kernel_plan;
        assert_true(
            write_kernel_plan(&tconv_matrix_group, &p, gpu, TCONV_MATH_EXACT, &kernel_plan));
        assert_int_equal(option_of(&kernel_plan.run[0], "LANES"), gpu->subgroup_least);
        tconv_kernel_plan_clear(&kernel_plan);
    }
    const struct tconv_loops loops = loops_of(&p);
    const struct tconv_request request =
        request_for(&loops, described_device("AMD wmma"), &bias_only, TCONV_MATH_EXACT);
    struct tconv_reason reason;
    assert_non_null(chosen(&request, "matrix_group mt=128 nt=64", &reason));
    assert_null(chosen(&request, "matrix_group mt=64 nt=64 slices=1 copy=0", &reason));
}

/* A matrix unit is refused where most of its products would be with zeros, by a sentence that says
 * how many channels there must be. Devices without one take any number, for tests. */
static void matrix_units_want_channels(void **state)
{
    (void)state;
    static const struct {
        tconv_type type;
        int64_t least;
    } types[] = {{TCONV_F16, 8}, {TCONV_BF16, 8}, {TCONV_I8, 16}, {TCONV_F32, 4}};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int64_t in = 1; in <= types[t].least; in++) {
            tconv_problem p = plane(in, 16, 9, 5, 1);
            p.data_type = p.filter_type = types[t].type;
            const struct tconv_loops loops = loops_of(&p);
            struct tconv_reason reason;
            double cost;
            const struct tconv_request unit = request_for(&loops, described_device("NVIDIA mma"),
                                                          &no_epilogue, TCONV_MATH_FAST),
                                       plain = request_for(&loops, described_device("NVIDIA"),
                                                           &no_epilogue, TCONV_MATH_FAST);
            assert_true(accepts(&tconv_matrix_group, &plain, &cost, &reason));
            const bool taken = accepts(&tconv_matrix_group, &unit, &cost, &reason);
            assert_true(taken == (in == types[t].least));
            if (taken) continue;
            char words[80];
            snprintf(words, sizeof words, "in a group is %d; below %d ", (int)in,
                     (int)types[t].least);
            assert_non_null(strstr(reason.text, words));
        }
}

/* A program with instructions of a unit is one that plans test the unit for, on every device. */
static void units_are_tested_where_they_are_used(void **state)
{
    (void)state;
    static const tconv_type types[] = {TCONV_F32, TCONV_F16, TCONV_BF16, TCONV_I8, TCONV_I32};
    int matrix = 0, words = 0;
    for (const struct described_device *d = described_devices; d->name != NULL; d++)
        for (int unit = TCONV_MATRIX_NONE; unit <= TCONV_MATRIX_NVIDIA_WGMMA; unit++)
            for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
                tconv_device_info device = d->info;
                device.matrix_unit = (tconv_matrix_unit)unit;
                tconv_problem p = plane(64, 128, 32, 4, 2);
                p.data_type = p.filter_type = types[t];
                const struct tconv_loops loops = loops_of(&p);
                const struct tconv_request request =
                    request_for(&loops, &device, &bias_only, TCONV_MATH_FAST);
                for (int f = 0; tconv_algorithm_at(f) != NULL; f++) {
                    struct tconv_kernel_plan kernel_plan = {0};
                    tconv_error error;
                    if (write_best(tconv_algorithm_at(f), &request, &kernel_plan, &error) !=
                        TCONV_OK)
                        continue;
                    const struct tconv_launch *run = &kernel_plan.run[0];
                    const enum tconv_unit_use use = tconv_unit_use(tconv_algorithm_at(f), &request);
                    assert_int_equal(use == TCONV_USES_MATRIX, option_of(run, "MATRIX") > 1);
                    assert_int_equal(use == TCONV_USES_WORDS, option_of(run, "DOTS") > 0);
                    matrix += use == TCONV_USES_MATRIX;
                    words += use == TCONV_USES_WORDS;
                    tconv_kernel_plan_clear(&kernel_plan);
                }
            }
    assert_true(matrix > 0 && words > 0);
}

/* An enumerator of device.h without a row in matrix_units.h does not compile. */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"
static bool is_of_gpu(tconv_matrix_unit unit)
{
#define OF_GPU(unit, name, ...)                                                                    \
    case TCONV_MATRIX_##unit: return true;
    switch (unit) {
        MATRIX_UNITS(OF_GPU)
    case TCONV_MATRIX_X86_AVX512_VNNI:
    case TCONV_MATRIX_X86_AVX_VNNI:
    case TCONV_MATRIX_X86_AVX512_BF16:
    case TCONV_MATRIX_PLAIN_QUADS:
    case TCONV_MATRIX_NONE: break;
    }
    return false;
}
#pragma GCC diagnostic pop

/* Without its row in units.c a unit is never used, without its device in described.c never
 * tested: both would go unnoticed. */
static void units_of_gpus_have_rows_and_devices(void **state)
{
    (void)state;
    enum { LAST = 64 };
    tconv_problem p = plane(64, 128, 32, 4, 2);
    p.data_type = p.filter_type = TCONV_F16;
    const struct tconv_loops loops = loops_of(&p);
    for (int unit = 0; unit <= LAST; unit++) {
        if (!is_of_gpu((tconv_matrix_unit)unit)) continue;
        const struct described_device *d = described_devices;
        while (d->name != NULL && (int)d->info.matrix_unit != unit) d++;
        if (d->name == NULL) fail_msg("described.c has no device with matrix unit %d", unit);
        const struct tconv_request request =
            request_for(&loops, &d->info, &bias_only, TCONV_MATH_EXACT);
        const struct tconv_unit *row = tconv_unit_for(&request, 0);
        if (row == NULL || (int)row->device != unit)
            fail_msg("units.c has no row of matrix unit %d", unit);
    }
}

/* A kernel plan finds the unit of a tile by the tile. With wgmma, mma.sync has no tile of its size.
 */
static void a_tile_belongs_to_one_unit(void **state)
{
    (void)state;
    tconv_problem p = plane(256, 256, 64, 4, 2);
    p.data_type = p.filter_type = TCONV_F16;
    const struct tconv_loops loops = loops_of(&p);
    int units = 0;
    for (const struct described_device *d = described_devices; d->name != NULL; d++) {
        const struct tconv_request request =
            request_for(&loops, &d->info, &bias_only, TCONV_MATH_EXACT);
        const struct tconv_unit *unit;
        for (int n = 0; (unit = tconv_unit_for(&request, n)) != NULL; n++, units++) {
            struct tconv_tile tile;
            size_t index;
            for (size_t i = 0; tconv_unit_tile(unit, (int)d->info.subgroup_least, i, &tile); i++) {
                assert_ptr_equal(tconv_unit_of_tile(&request, &tile, &index), unit);
                assert_int_equal(index, i);
            }
        }
    }
    assert_true(units > 0);
    const struct tconv_request request =
        request_for(&loops, described_device("NVIDIA wgmma"), &bias_only, TCONV_MATH_EXACT);
    struct tconv_candidates all;
    struct tconv_reason reason;
    assert_true(tconv_enumerate(&tconv_matrix_group, &request, NULL, &all, &reason));
    assert_int_equal(tconv_candidate_unit(&request, &all.list[0]).unit, TCONV_MATRIX_NVIDIA_WGMMA);
    for (int i = 0; i < all.count; i++)
        if (tconv_candidate_unit(&request, &all.list[i]).unit != TCONV_MATRIX_NVIDIA_WGMMA)
            assert_true(all.list[i].tile.mt < 64 || all.list[i].tile.nt < 128);
    /* Tiles that failed their probes are left out, the trial last. */
    struct tconv_request refused = request;
    refused.refused_tiles = tconv_candidate_unit(&request, &all.list[0]).tile;
    struct tconv_candidates others;
    assert_true(tconv_enumerate(&tconv_matrix_group, &refused, NULL, &others, &reason));
    for (int i = 0; i < others.count; i++)
        assert_true(tconv_candidate_unit(&request, &others.list[i]).unit !=
                        TCONV_MATRIX_NVIDIA_WGMMA ||
                    tconv_candidate_unit(&request, &others.list[i]).tile != refused.refused_tiles);
}

/* A table of more taps than constant memory takes stays in global memory. */
static void small_tables_are_in_constant_memory(void **state)
{
    (void)state;
    const tconv_device_info *devices[] = {described_device("NVIDIA"), described_device("AMD")};
    static const struct {
        int64_t kernel;
        int device, constant;
    } cases[] = {{4, 0, 1}, {39, 0, 1}, {41, 0, 0}, {41, 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tconv_problem p = plane(4, 3, 60, cases[i].kernel, 1);
        struct tconv_kernel_plan kernel_plan;
        assert_true(write_kernel_plan(&tconv_tiled_group, &p, devices[cases[i].device],
                                      TCONV_MATH_EXACT, &kernel_plan));
        const struct tconv_launch *run = &kernel_plan.run[kernel_plan.run_count - 1];
        assert_int_equal(option_of(run, "CONSTANT_TABLE"), cases[i].constant);
        tconv_kernel_plan_clear(&kernel_plan);
    }
}

/* Extents must not decide what is compiled: a program for each width would stall an application at
 * each new one. */
static void programs_do_not_depend_on_extents(void **state)
{
    (void)state;
    const tconv_device_info devices[] = {*described_device("CPU AVX-512"),
                                         *described_device("NVIDIA")};
    for (int d = 0; d < 2; d++)
        for (int a = 0; tconv_algorithm_at(a) != NULL; a++) {
            char known[40][TCONV_MAX_OPTIONS];
            int count = 0, most = 16;
            for (int64_t x = 1; x <= 300; x++) {
                const tconv_problem p = plane(24, 40, x, 4, 2);
                struct tconv_kernel_plan kernel_plan;
                if (!write_kernel_plan(tconv_algorithm_at(a), &p, &devices[d], TCONV_MATH_FAST,
                                       &kernel_plan))
                    continue;
                const char *options = kernel_plan.run[kernel_plan.run_count - 1].options;
                int i = 0;
                while (i < count && strcmp(known[i], options) != 0) i++;
                assert_true(i < 40);
                if (i == count) snprintf(known[count++], sizeof known[0], "%s", options);
                tconv_kernel_plan_clear(&kernel_plan);
                if (kernel_plan.error_factor > 1) most = 32; /* tiles of several sizes */
            }
            assert_true(count <= most);
        }
}

/* Nothing about a request may make planning long or large. */
static void hostile_extents_are_refused_quickly(void **state)
{
    (void)state;
    const tconv_device_info cpu = *described_device("CPU AVX-512");
    static const struct {
        int64_t data[2], kernel[2], stride[2], dilation[2];
    } rows[] = {
        {{INT64_C(1) << 40, 6}, {1, 1}, {1, 1}, {1, 1}},
        {{2000000, 6}, {1, 1}, {1, 1}, {1, 1}},
        {{2, 2}, {1, 1}, {1, INT64_C(1) << 40}, {1, 1}},
        {{2, 2}, {3, 3}, {1, 1}, {INT64_C(1) << 40, 1}},
        {{2, 2}, {INT64_C(1) << 40, 1}, {1, 1}, {1, 1}},
        {{2, 2}, {1, INT64_C(1) << 40}, {1, 1}, {1, 1}},
        {{2, 2}, {1, 1}, {INT64_C(1) << 30, 1}, {1, 1}},
        {{2, 2}, {1, 65537}, {1, 65535}, {1, 65537}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tconv_problem p = TCONV_PROBLEM_INIT;
        p.data = (tconv_shape){4, {1, 1, rows[i].data[0], rows[i].data[1]}};
        p.filter = (tconv_shape){4, {1, 1, rows[i].kernel[0], rows[i].kernel[1]}};
        p.strides = (tconv_list){2, {rows[i].stride[0], rows[i].stride[1]}};
        p.dilations = (tconv_list){2, {rows[i].dilation[0], rows[i].dilation[1]}};
        p.output_shape = (tconv_list){2, {8, 8}};
        p.rules = TCONV_RULES_OPENVINO;
        const struct tconv_loops loops = loops_of(&p);
        const struct tconv_request request =
            request_for(&loops, &cpu, &no_epilogue, TCONV_MATH_EXACT);
        struct tconv_reason reason;
        const struct tconv_algorithm *algorithm = chosen(&request, NULL, &reason);
        if (algorithm == NULL) { /* none can pack a filter that a process cannot address */
            assert_true((uint64_t)(rows[i].kernel[0] * rows[i].kernel[1]) >
                        PTRDIFF_MAX / 2 / sizeof(float));
            continue;
        }
        struct tconv_kernel_plan kernel_plan;
        memset(&kernel_plan, 0, sizeof kernel_plan);
        assert_int_equal(write_best(algorithm, &request, &kernel_plan, NULL), TCONV_OK);
        assert_true(kernel_plan.table_count < 1 << 24);
        tconv_kernel_plan_clear(&kernel_plan);
    }
}

/* Sizes that no tensor has, though each of them is valid. With sanitizers a conversion that
 * overflows is told. */
static void impossible_sizes_are_refused(void **state)
{
    (void)state;
    tconv_problem many_outputs = TCONV_PROBLEM_INIT, large_filter = TCONV_PROBLEM_INIT;
    many_outputs.operation = large_filter.operation = TCONV_ONEAPI_CONV_BACKPROP;
    many_outputs.data_type = many_outputs.filter_type = TCONV_I8;
    large_filter.data_type = large_filter.filter_type = TCONV_I8;
    many_outputs.filter_format = large_filter.filter_format = TCONV_OIX;
    many_outputs.groups = large_filter.groups = 1;
    many_outputs.data_format = large_filter.data_format = TCONV_NCX;
    many_outputs.data = (tconv_shape){5, {15, 64, 12, 3, 32}};
    many_outputs.filter = (tconv_shape){5, {64, 8388607, 32, 5, 1}};
    many_outputs.strides = (tconv_list){3, {5, 4, 6689}};
    many_outputs.dilations = (tconv_list){3, {9, 9, 114}};
    many_outputs.pads_begin = (tconv_list){3, {0, 15, 0}};
    many_outputs.output_shape = (tconv_list){3, {1048575, 127, 20}};
    /* 2^62 weights of a byte; an algorithm that packs them in words of four bytes has 2^64
     * bytes. */
    large_filter.data = (tconv_shape){3, {1, 1 << 29, 4}};
    large_filter.filter = (tconv_shape){3, {1 << 29, 1 << 29, 16}};
    large_filter.output_shape = (tconv_list){1, {8}};
    const tconv_problem problems[] = {many_outputs, large_filter};
    for (const struct described_device *d = described_devices; d->name != NULL; d++)
        for (size_t p = 0; p < sizeof problems / sizeof *problems; p++)
            for (int a = 0; tconv_algorithm_at(a) != NULL; a++) {
                struct tconv_kernel_plan kernel_plan = {0};
                if (!write_kernel_plan(tconv_algorithm_at(a), &problems[p], &d->info,
                                       TCONV_MATH_FAST, &kernel_plan))
                    continue;
                const tconv_shape *filter = &problems[p].filter;
                uint64_t weights = 1;
                for (int i = 0; i < filter->rank; i++) weights *= (uint64_t)filter->dim[i];
                if (kernel_plan.filter_bytes < weights)
                    fail_msg("%s on %s: a filter of %llu bytes", tconv_algorithm_at(a)->name,
                             d->name, (unsigned long long)kernel_plan.filter_bytes);
                tconv_kernel_plan_clear(&kernel_plan);
            }
}

/* An extent times its step may overflow although no element is so far away. Only a build with
 * sanitizers notices that. */
static void products_of_large_steps_do_not_overflow(void **state)
{
    (void)state;
    tconv_problem p = TCONV_PROBLEM_INIT;
    struct tconv_kernel_plan kernel_plan;
    p.data_type = p.filter_type = TCONV_I8;
    p.data = (tconv_shape){6, {1, 2, 1, 4, 3, 3}};
    p.filter = (tconv_shape){6, {2, 2, 2, 2, 2, 2}};
    p.data_steps = (tconv_steps){6, {1, 9, 1, (INT64_C(1) << 61) + 1, 3, 1}};
    for (const struct described_device *d = described_devices; d->name != NULL; d++)
        for (int i = 0; tconv_algorithm_at(i) != NULL; i++) {
            const struct tconv_algorithm *algorithm = tconv_algorithm_at(i);
            if (write_kernel_plan(algorithm, &p, &d->info, TCONV_MATH_EXACT, &kernel_plan))
                tconv_kernel_plan_clear(&kernel_plan);
            else
                assert_ptr_not_equal(algorithm, &tconv_reference);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(described_devices_are_possible),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(kernel_plans_fit_their_device),
        cmocka_unit_test(light_weights_cost_what_f32_costs),
        cmocka_unit_test(tiles_are_asked_for),
        cmocka_unit_test(processors_get_vectors_and_gpus_get_groups),
        cmocka_unit_test(fast_arithmetic_is_only_taken_on_request),
        cmocka_unit_test(differences_are_for_doubled_planes),
        cmocka_unit_test(differences_are_for_gpus),
        cmocka_unit_test(direct_sums_say_what_they_cannot_count),
        cmocka_unit_test(differences_pack_the_given_filter),
        cmocka_unit_test(the_reference_takes_what_is_left),
        cmocka_unit_test(no_ordering_is_left_to_the_reference),
        cmocka_unit_test(copied_axes_join_the_batch),
        cmocka_unit_test(a_limit_of_workspace_is_kept),
        cmocka_unit_test(a_workspace_fits_the_device),
        cmocka_unit_test(layouts_are_shared_where_they_are_equal),
        cmocka_unit_test(pads_share_programs),
        cmocka_unit_test(kernels_share_programs),
        cmocka_unit_test(layouts_follow_the_filter_alone),
        cmocka_unit_test(kernel_plans_have_limits),
        cmocka_unit_test(narrow_subgroups_are_asked_for),
        cmocka_unit_test(matrix_tiles_suit_their_compilers),
        cmocka_unit_test(matrix_units_want_channels),
        cmocka_unit_test(units_are_tested_where_they_are_used),
        cmocka_unit_test(units_of_gpus_have_rows_and_devices),
        cmocka_unit_test(a_tile_belongs_to_one_unit),
        cmocka_unit_test(small_tables_are_in_constant_memory),
        cmocka_unit_test(programs_do_not_depend_on_extents),
        cmocka_unit_test(hostile_extents_are_refused_quickly),
        cmocka_unit_test(long_loops_are_refused_where_they_end),
        cmocka_unit_test(large_strides_are_sparse),
        cmocka_unit_test(products_of_large_steps_do_not_overflow),
    };
    return cmocka_run_group_tests_name("select", tests, NULL, NULL);
}
