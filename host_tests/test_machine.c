/* SPDX-License-Identifier: Apache-2.0 */
/* The machine of the cost model: the values that follow from a device, and the range of each field.
 */
#include "algorithm/cost/gpu.h"
#include "base/architectures.h"
#include "described.h"
#include "selecting.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void the_machine_follows_the_device(void **state)
{
    (void)state;
    tconv_device_info d = *described_device("CPU AVX-512");
    struct tconv_machine m = tconv_machine_of(&d, 4);
    const double usual = m.l3;
    assert_true(m.lanes == 16 && m.registers == 32 && m.units == d.compute_units);
    d.clock_mhz = 4100;
    d.cache_bytes = 8 << 20;
    m = tconv_machine_of(&d, 4);
    assert_true(m.clock == 4100 && m.l3 == 8 << 20);
    d.clock_mhz = 0; /* what runtimes that do not know it report, and of a second-level cache */
    d.cache_bytes = 1 << 20;
    m = tconv_machine_of(&d, 4);
    assert_true(m.clock == 3000 && m.l3 == usual);
    d.cache_bytes = UINT64_C(512) << 20;
    assert_true(tconv_machine_of(&d, 4).l3 == usual);
    const tconv_device_info narrow = *described_device("CPU AVX2");
    m = tconv_machine_of(&narrow, 4);
    assert_true(m.lanes == 8 && m.registers == 16 && m.sums == 12);

    /* Names are words and differ, values are numbers, units and meanings are told. */
    for (int i = 0; tconv_machine_field_at(i) != NULL; i++) {
        const struct tconv_machine_field *f = tconv_machine_field_at(i);
        assert_int_equal(strspn(f->name, "abcdefghijklmnopqrstuvwxyz0123456789_"), strlen(f->name));
        assert_true(f->unit[0] != '\0' && f->text[0] != '\0');
        for (int j = 0; j < i; j++)
            assert_string_not_equal(f->name, tconv_machine_field_at(j)->name);
    }
    struct tconv_reason reason;
    assert_true(tconv_machine_read(&m, " wake=5e3,\tl2=2097152\n", &reason));
    assert_true(m.wake == 5e3 && m.l2 == 2 << 20);
    assert_false(tconv_machine_read(&m, "units=3", &reason));
    assert_non_null(strstr(reason.text, "units"));
}

/* Fields that contradict each other are refused with their names, values and limits, whoever gives
 * them: the described device's family, or a user. */
static void relations_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *device, *fields, *words[3];
    } cases[] = {
        {"NVIDIA", "unit_issue=8", {"unit_issue * warp is 256", "unit_lanes, which is 128"}},
        {"NVIDIA", "unit_lanes=64", {"unit_issue * warp is 102.4", "unit_lanes, which is 64"}},
        {"AMD CDNA", "warp=256", {"unit_issue * warp is 204.8", "unit_lanes, which is 128"}},
        {"NVIDIA", "unit_registers=4095", {"item_sums * warp is 4096", "unit_registers"}},
        {"NVIDIA", "unit_dram=18", {"unit_dram is 18", "unit_l2, which is 17"}},
        {"CPU AVX2", "sums=17", {"sums is 17", "registers, which is 16"}},
        {"CPU AVX-512", "adds=7", {"adds is 7", "issue, which is 6"}},
        {"CPU AVX-512", "loads=7", {"loads is 7", "issue, which is 6"}},
        {"CPU AVX-512", "l1=2097152", {"l1 is 2.09715e+06", "l2, which is 1.04858e+06"}},
        {"CPU AVX-512", "l3=1000000", {"l2 is 1.04858e+06", "l3, which is 1e+06"}},
        {"CPU AVX-512", "line=65536", {"line is 65536", "l1, which is 49152"}},
        {"CPU AVX-512", "channels_l2=4", {"channels_l3 is 8", "channels_l2, which is 4"}},
    };
    struct tconv_reason reason;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tconv_machine m = tconv_machine_of(described_device(cases[i].device), 4);
        assert_true(tconv_machine_check(&m, &reason));
        if (tconv_machine_read(&m, cases[i].fields, &reason))
            fail_msg("%s is taken on %s", cases[i].fields, cases[i].device);
        for (int w = 0; w < 3 && cases[i].words[w] != NULL; w++)
            if (strstr(reason.text, cases[i].words[w]) == NULL)
                fail_msg("%s: no \"%s\" in: %s", cases[i].fields, cases[i].words[w], reason.text);
    }
    /* Both sides together. */
    struct tconv_machine m = tconv_machine_of(described_device("NVIDIA"), 4);
    assert_true(tconv_machine_read(&m, "unit_issue=8 unit_lanes=256", &reason));
    m.warp = 0;
    assert_false(tconv_machine_check(&m, &reason));
    assert_non_null(strstr(reason.text, "warp is 0: it must be 1 to"));
}

/* Members of a described device that contradict each other, likewise. */
static void impossible_devices_are_told(void **state)
{
    (void)state;
    const tconv_device_info gpu = *described_device("NVIDIA mma"),
                            cpu = *described_device("CPU AVX2");
    tconv_device_info d[11] = {gpu, gpu, gpu, gpu, gpu, gpu, gpu, gpu, gpu, cpu, gpu};
    static const char *const words[11] = {
        "compute_units is 0, but must be at least 1",
        "allocation_limit is 42949672961, but must be at most global_memory (42949672960)",
        "work_group_limit is 2048, but must be at most unit_warps * warp (1024)",
        "local_memory is 1000, but must be at least 1024",
        "work_item_limit[1] is 0",
        "vector_width is 17",
        "constant_kib is 10485761, but must be at most allocation_kib",
        "kind is 0, and must be 2",
        "subgroup_least is 0, but the matrix unit dpas",
        "architecture is 1, but kind is 1",
        "matrix_unit is mfma, of the family 3, but architecture is 1",
    };
    d[0].compute_units = 0;
    d[1].allocation_limit = d[1].global_memory + 1;
    d[2].work_group_limit = 2048;
    d[3].local_memory = 1000;
    d[4].work_item_limit[1] = 0;
    d[5].vector_width = 17;
    d[6].constant_kib = (10 << 20) + 1;
    d[7].kind = TCONV_DEVICE_OTHER;
    d[8].matrix_unit = TCONV_MATRIX_INTEL_DPAS;
    d[9].architecture = TCONV_ARCHITECTURE_NVIDIA;
    d[10].matrix_unit = TCONV_MATRIX_AMD_MFMA;
    char text[500];
    for (int i = 0; i < 11; i++) {
        if (!described_wrongly(&d[i], text, sizeof text)) fail_msg("taken: %s", words[i]);
        if (strstr(text, words[i]) == NULL) fail_msg("no \"%s\" in: %s", words[i], text);
    }
}

/* Without its numbers in fields.h a family is as any other GPU, without its device in described.c
 * never tested: both would go unnoticed. */
static void check_family(tconv_architecture family, const char *name)
{
    const tconv_device_info other = *described_device("GPU vec4");
    tconv_device_info own = other;
    own.architecture = family;
    const struct tconv_machine m = tconv_machine_of(&own, 4), usual = tconv_machine_of(&other, 4);
    if (memcmp(&m, &usual, sizeof m) == 0)
        fail_msg("fields.h has no numbers of the family %s", name);
    const struct described_device *d = described_devices;
    while (d->name != NULL && d->info.architecture != family) d++;
    if (d->name == NULL) fail_msg("described.c has no device of the family %s", name);
}

static void families_have_numbers_and_devices(void **state)
{
    (void)state;
#define ROW(family, name, ...) check_family(TCONV_ARCHITECTURE_##family, name);
    ARCHITECTURES(ROW)
#undef ROW
}

/* An enumerator of device.h without a row in architectures.h does not compile. */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"
static bool is_family(tconv_architecture architecture)
{
#define ROW(row, name, ...)                                                                        \
    case TCONV_ARCHITECTURE_##row: return true;
    switch (architecture) {
        ARCHITECTURES(ROW)
    case TCONV_ARCHITECTURE_OTHER: break;
    }
#undef ROW
    return false;
}
#pragma GCC diagnostic pop

static void every_family_has_a_row(void **state)
{
    (void)state;
    assert_true(is_family(TCONV_ARCHITECTURE_NVIDIA) && !is_family(TCONV_ARCHITECTURE_OTHER));
}

/* OpenCL counts vector engines of Intel's GPUs, the model cores; data sheets say what a core
 * holds. */
static void cores_of_intel_are_as_data_sheets_say(void **state)
{
    (void)state;
    static const struct {
        const char *device;
        int cores, items,
            items_with_more_registers; /* of a core, of sub-groups as small as can be */
    } rows[] = {{"Intel", 512 / 16, 16 * 8 * 8, 16 * 4 * 8},
                {"Intel Max", 512 / 8, 8 * 8 * 16, 8 * 4 * 16},
                {"Intel Gen9", 24 / 8, 8 * 7 * 8, 8 * 7 * 8}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tconv_device_info *gpu = described_device(rows[i].device);
        const struct tconv_machine m = tconv_machine_of(gpu, sizeof(float));
        assert_int_equal(tconv_gpu_units(&m, gpu), rows[i].cores);
        for (int large = 0; large < 2; large++)
            assert_int_equal(m.unit_registers / tconv_gpu_registers(&m, gpu, large, 100) + 0.5,
                             large ? rows[i].items_with_more_registers : rows[i].items);
        if (gpu->architecture != TCONV_ARCHITECTURE_INTEL_XE_HP) continue;
        assert_int_equal(tconv_gpu_registers(&m, gpu, false, 100), 128);
        assert_int_equal(m.unit_local * (double)gpu->local_memory, 128 << 10);
    }
}

/* A layer of the oneAPI form with strides of 2, of one, two or three axes. */
static struct tconv_loops small_loops(int axes, tconv_type type, tconv_data_format format)
{
    const bool last = format == TCONV_NXC;
    tconv_problem p = TCONV_PROBLEM_INIT;
    p.operation = TCONV_ONEAPI_CONV_BACKPROP;
    p.data_type = p.filter_type = type;
    p.data_format = format;
    p.filter_format = TCONV_OIX;
    p.data = (tconv_shape){2 + axes, {2}};
    p.filter = (tconv_shape){2 + axes, {24, 40}};
    p.data.dim[last ? 1 + axes : 1] = 24;
    p.strides.count = p.dilations.count = p.pads_begin.count = p.pads_end.count = axes;
    for (int a = 0; a < axes; a++) {
        p.data.dim[(last ? 1 : 2) + a] = 12;
        p.filter.dim[2 + a] = 3;
        p.strides.value[a] = 2;
        p.dilations.value[a] = 1;
    }
    tconv_geometry g = TCONV_GEOMETRY_INIT;
    assert_int_equal(tconv_resolve(&p, &g, NULL), TCONV_OK);
    struct tconv_loops loops;
    tconv_loops_init(&loops, &p, &g);
    return loops;
}

/* Algorithms refuse a request or give a cost. */
static void check_costs(const struct tconv_request *request)
{
    const struct tconv_algorithm *algorithm;
    for (int a = 0; (algorithm = tconv_algorithm_at(a)) != NULL; a++) {
        struct tconv_reason reason;
        double cost;
        if (accepts(algorithm, request, &cost, &reason)) assert_true(isfinite(cost) && cost >= 0);
    }
}

static void fields_may_have_their_least_value(void **state)
{
    (void)state;
    const struct tconv_loops all_loops[] = {small_loops(2, TCONV_F32, TCONV_NXC),
                                            small_loops(2, TCONV_F16, TCONV_NCX)};
    const tconv_epilogue epilogue = TCONV_EPILOGUE_INIT;
    for (const struct described_device *d = described_devices; d->name != NULL; d++)
        for (int which = 0; which < 2; which++) {
            struct tconv_request request =
                request_for(&all_loops[which], &d->info, &epilogue, TCONV_MATH_FAST);
            const struct tconv_machine usual = request.machine;
            const struct tconv_machine_field *f;
            for (int i = 0; (f = tconv_machine_field_at(i)) != NULL; i++) {
                request.machine = usual;
                memcpy((char *)&request.machine + f->offset, &f->least, sizeof f->least);
                check_costs(&request);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_machine_follows_the_device),
        cmocka_unit_test(relations_are_told),
        cmocka_unit_test(impossible_devices_are_told),
        cmocka_unit_test(families_have_numbers_and_devices),
        cmocka_unit_test(every_family_has_a_row),
        cmocka_unit_test(cores_of_intel_are_as_data_sheets_say),
        cmocka_unit_test(fields_may_have_their_least_value),
    };
    return cmocka_run_group_tests_name("machine", tests, NULL, NULL);
}
