/* SPDX-License-Identifier: Apache-2.0 */
/* What selection takes on GPUs of phones, for every layer of the suite: few sums in a work-item, no
 * copies into emulated local memory, work-groups and local memory within the device's limits. */
#include "base/sources.h"
#include "described.h"
#include "gpu/direct_table.h"
#include "selecting.h"
#include "suite_fixture.h"
#include "suite_layer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *name;
    bool stages; /* true if algorithms may copy into local memory */
    long sums;   /* sums of 32 bits in a work-item, at most */
} devices[] = {
    {"Mali-G78", false, 16},     {"Adreno 740", true, 32},   {"PowerVR 4 KiB", true, 32},
    {"VideoCore VI", false, 16}, {"GPU minimal", false, 16},
};

enum { DEVICES = sizeof devices / sizeof *devices };

static const tconv_type types[] = {TCONV_F32, TCONV_F16, TCONV_I8};
static const tconv_data_format formats[] = {TCONV_NCX, TCONV_NXC};
static const tconv_epilogue bias_only = {.bias = true, .alpha = 1};

/* Bytes of local memory, with the arrays of the tiled kernel: two stages of inputs and weights, or
 * the sums that slices exchange, unless the launch only adds up parts; and struct outputs of
 * cl/gpu/positions.clh, unless it leaves parts. */
static uint64_t local_bytes(const struct tconv_algorithm *algorithm, const struct tconv_launch *run)
{
    if (algorithm != &tconv_tiled_group) return run->local_bytes;
    const long mt = option_of(run, "MT"), nt = option_of(run, "NT"),
               slices = option_of(run, "SLICES"), split = option_of(run, "SPLIT"),
               merged = (option_of(run, "PZ") > 1) + (option_of(run, "PY") > 1) +
                        (option_of(run, "PX") > 1),
               stages = 2 * option_of(run, "KS") * (mt + nt + 4 * option_of(run, "LAST")),
               exchanged = (slices - 1) * mt * nt / slices,
               numbers = stages > exchanged ? stages : exchanged;
    return (uint64_t)((split == 2 ? 0 : 4 * numbers) + (split == 1 ? 0 : (8 + 4 * merged) * nt));
}

static void check_launch(const struct tconv_launch *launch, const tconv_device_info *device)
{
    size_t group = 1;
    for (int i = 0; i < 3; i++) {
        assert_true(launch->local[i] >= 1 && launch->local[i] <= device->work_item_limit[i]);
        assert_int_equal(launch->global[i] % launch->local[i], 0);
        group *= launch->local[i];
    }
    assert_true(group <= device->work_group_limit);
}

/* Checks a candidate's kernel plan; returns the most sums of its launches. */
static long check_candidate(const struct tconv_request *request,
                            const struct tconv_candidate *candidate, bool stages)
{
    const struct tconv_algorithm *algorithm = candidate->algorithm;
    struct tconv_kernel_plan kernel_plan = {0};
    long most = 0;
    assert_int_equal(tconv_kernel_plan_write(request, candidate, &kernel_plan, NULL), TCONV_OK);
    assert_true(stages || !algorithm->stages_locally);
    for (int i = 0; i < kernel_plan.pack_count; i++)
        check_launch(&kernel_plan.pack[i], request->device);
    for (int i = 0; i < kernel_plan.run_count; i++) {
        const struct tconv_launch *run = &kernel_plan.run[i];
        check_launch(run, request->device);
        assert_true(algorithm->stages_locally || run->local_bytes == 0);
        if (algorithm->made_for == TCONV_FOR_VECTORS || algorithm == &tconv_matrix_group) continue;
        assert_true(local_bytes(algorithm, run) <= request->device->local_memory);
        const long sums = sums_of(algorithm, run);
        if (sums > most) most = sums;
    }
    tconv_kernel_plan_clear(&kernel_plan);
    return most;
}

/* Checks all candidates, because a search may take each of them. The reference must not be the
 * choice. Returns the sums of the choice. */
static long check_layer(int d, const struct entry *entry, tconv_type type, tconv_data_format format)
{
    const char *id = entry->id;
    struct tconv_loops loops;
    assert_true(suite_layer(entry, type, format, &loops));
    const tconv_device_info device = tconv_device_for(described_device(devices[d].name), &loops);
    const struct tconv_request request = request_for(&loops, &device, &bias_only, TCONV_MATH_FAST);
    struct tconv_pattern any;
    struct tconv_candidate best;
    struct tconv_candidates candidates;
    struct tconv_reason reason = {""};
    assert_true(tconv_pattern_read("auto", &any, &reason));
    if (!tconv_choose(&request, &any, 0, &best, &reason) || best.algorithm == &tconv_reference)
        fail_msg("%s in %s on %s: %s", id, tconv_type_name(type), devices[d].name, reason.text);
    for (int a = 0; tconv_algorithm_at(a) != NULL; a++) {
        const struct tconv_algorithm *algorithm = tconv_algorithm_at(a);
        const bool taken = tconv_enumerate(algorithm, &request, NULL, &candidates, &reason);
        if (algorithm->stages_locally && !devices[d].stages) {
            assert_false(taken);
            assert_non_null(strstr(reason.text, "local memory"));
        }
        for (int i = 0; taken && i < candidates.count; i++) {
            const long sums = check_candidate(&request, &candidates.list[i], devices[d].stages);
            if (sums > devices[d].sums)
                fail_msg("%s in %s on %s: %s has %ld sums", id, tconv_type_name(type),
                         devices[d].name, algorithm->name, sums);
        }
    }
    return check_candidate(&request, &best, devices[d].stages);
}

static void layers_suit_phones(void **state)
{
    (void)state;
    for (int d = 0; d < DEVICES; d++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
                long most = 0, above = 0;
                for (size_t i = 0; i < suite.count; i++) {
                    const long sums = check_layer(d, &suite.entries[i], types[t], formats[f]);
                    if (sums > most) most = sums;
                    above += sums > 16;
                }
                print_message("%s %s %s: %ld sums at most, above 16 in %ld of %d layers\n",
                              devices[d].name, tconv_type_name(types[t]),
                              formats[f] == TCONV_NCX ? "NCX" : "NXC", most, above,
                              (int)suite.count);
            }
}

/* A forgotten `stages_locally` would let an algorithm into emulated local memory. */
static void algorithms_tell_of_local_memory(void **state)
{
    (void)state;
    for (int a = 0; tconv_algorithm_at(a) != NULL; a++) {
        const struct tconv_algorithm *algorithm = tconv_algorithm_at(a);
        const struct tconv_source *source = tconv_sources;
        while (source->name != NULL && strcmp(source->name, algorithm->source) != 0) source++;
        assert_non_null(source->name);
        if (algorithm->stages_locally != (strstr(source->text, "__local ") != NULL))
            fail_msg("%s", algorithm->name);
    }
}

/* Channels last, most layers load neighbouring input channels at once: four floats; eight halves,
 * or four if two outputs of four channels take fewer loads than one of eight. The other layers have
 * few channels, or channels that do not fill vectors. */
static void channels_are_loaded_in_vectors(void **state)
{
    (void)state;
    for (int d = 0; d < DEVICES; d++)
        for (int half = 0; half < 2; half++) {
            const long elements = half && devices[d].sums > 16 ? 8 : 4;
            size_t wide = 0;
            for (size_t i = 0; i < suite.count; i++) {
                struct tconv_loops loops;
                assert_true(suite_layer(&suite.entries[i], half ? TCONV_F16 : TCONV_F32, TCONV_NXC,
                                        &loops));
                const struct tconv_request request = request_for(
                    &loops, described_device(devices[d].name), &bias_only, TCONV_MATH_EXACT);
                struct tconv_kernel_plan kernel_plan = {0};
                if (write_best(&tconv_direct_group, &request, &kernel_plan, NULL) != TCONV_OK)
                    continue;
                wide += option_of(&kernel_plan.run[0], "CHUNK") >= elements;
                tconv_kernel_plan_clear(&kernel_plan);
            }
            print_message("%s: %ld %s or more in %d of %d layers\n", devices[d].name, elements,
                          half ? "halves" : "floats", (int)wide, (int)suite.count);
            assert_true(wide > suite.count / 2);
        }
}

/* On Adreno loops of the direct algorithm keep an address for each element, which leaves registers
 * for 16 sums. The table says how far data and weights reach, so that the kernel sees whether the
 * upper halves of their addresses are the same: B20 has 16 channels of 256 x 256 inputs, and 12 x
 * 16 x 2 x 2 weights. */
static void loops_keep_addresses(void **state)
{
    (void)state;
    for (int d = 0; d < DEVICES; d++) {
        const tconv_device_info *device = described_device(devices[d].name);
        const bool keeps = device->architecture == TCONV_ARCHITECTURE_ADRENO,
                   mali = device->architecture == TCONV_ARCHITECTURE_MALI;
        struct tconv_loops loops;
        struct tconv_kernel_plan kernel_plan = {0};
        size_t i = 0;
        while (i < suite.count && strcmp(suite.entries[i].id, "B20") != 0) i++;
        assert_true(suite_layer(&suite.entries[i], TCONV_F32, TCONV_NCX, &loops));
        const struct tconv_request request =
            request_for(&loops, device, &bias_only, TCONV_MATH_EXACT);
        assert_int_equal(write_best(&tconv_direct_group, &request, &kernel_plan, NULL), TCONV_OK);
        const struct tconv_launch *run = &kernel_plan.run[0];
        assert_int_equal(option_of(run, "NEAR"), keeps ? 2 : mali ? 1 : -1);
        assert_int_equal(option_of(run, "FLAT"), keeps || mali ? 1 : -1);
        assert_int_equal(option_of(run, "OUTPUTS") * option_of(run, "CHANNELS"), keeps ? 16 : 8);
        assert_int_equal(kernel_plan.table[DIRECT_DATA_SPAN], 16 * 256 * 256);
        assert_int_equal(kernel_plan.table[DIRECT_WEIGHTS], 12 * 16 * 2 * 2);
        tconv_kernel_plan_clear(&kernel_plan);
    }
}

/* The machine knows the width of a warp, because OpenCL 1.2 does not tell it. */
static void architectures_have_warps(void **state)
{
    (void)state;
    static const double warps[DEVICES] = {16, 64, 32, 16, 32};
    for (int d = 0; d < DEVICES; d++) {
        const struct tconv_machine m = tconv_machine_of(described_device(devices[d].name), 4);
        assert_true(m.warp == warps[d]);
        assert_true(m.item_sums >= (double)devices[d].sums);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_suit_phones), cmocka_unit_test(algorithms_tell_of_local_memory),
        cmocka_unit_test(channels_are_loaded_in_vectors), cmocka_unit_test(loops_keep_addresses),
        cmocka_unit_test(architectures_have_warps)};
    return cmocka_run_group_tests_name("mobile", tests, read_suite, free_suite);
}
