/* SPDX-License-Identifier: Apache-2.0 */
/* The machine of the cost model: the values that follow from a device, and the range of each field.
 */
#include "algorithm/cost/gpu.h"
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
static struct tconv_layer small_layer(int axes, tconv_type type, tconv_data_format format)
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
    struct tconv_layer layer;
    tconv_layer_init(&layer, &p, &g);
    return layer;
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
    const struct tconv_layer layers[] = {small_layer(2, TCONV_F32, TCONV_NXC),
                                         small_layer(2, TCONV_F16, TCONV_NCX)};
    const tconv_epilogue epilogue = TCONV_EPILOGUE_INIT;
    for (const struct described_device *d = described_devices; d->name != NULL; d++)
        for (int which = 0; which < 2; which++) {
            struct tconv_request request =
                request_for(&layers[which], &d->info, &epilogue, TCONV_MATH_FAST);
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
        cmocka_unit_test(cores_of_intel_are_as_data_sheets_say),
        cmocka_unit_test(fields_may_have_their_least_value),
    };
    return cmocka_run_group_tests_name("machine", tests, NULL, NULL);
}
