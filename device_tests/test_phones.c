/* SPDX-License-Identifier: Apache-2.0 */
/* What selection takes for GPUs of phones, run by the devices that are there, with the described
 * ones' work-groups, local memory and sums: against the oracle. */
#include "algorithm/algorithm.h"
#include "device/device.h"
#include "plan/plan_internal.h"
#include "setup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char *const phones[] = {"Mali-G78", "Adreno 740", "PowerVR 4 KiB", "GPU minimal"};

enum { PHONES = sizeof phones / sizeof *phones };

/* Layers of the suite in small, and channels that do not fill vectors. */
static const struct {
    const char *why;
    int64_t batch, groups, in, out, x, k, s, pad;
} layers[] = {
    {"pix2pix", 1, 1, 24, 16, 9, 4, 2, 1},
    {"thin output", 2, 1, 16, 3, 12, 4, 2, 1},
    {"phases with different taps", 1, 1, 16, 8, 10, 3, 2, 1},
    {"a single tap for each phase", 1, 1, 40, 24, 7, 2, 2, 0},
    {"depthwise", 1, 16, 1, 1, 11, 4, 2, 1},
    {"stride 4", 1, 1, 20, 12, 6, 4, 4, 0},
    {"stride 3, one output channel", 1, 1, 12, 1, 13, 9, 3, 4},
    {"odd channels", 2, 1, 13, 7, 8, 5, 3, 2},
    {"many channels of small images", 3, 1, 264, 32, 2, 4, 1, 0},
    {"outputs that no tap reaches", 1, 2, 8, 8, 7, 2, 3, 0},
};

enum { LAYERS = sizeof layers / sizeof *layers };

static tconv_problem problem_of(size_t which, tconv_data_format format, tconv_type type)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    const int64_t n = layers[which].batch, x = layers[which].x, k = layers[which].k,
                  s = layers[which].s, pad = layers[which].pad, groups = layers[which].groups,
                  in = groups * layers[which].in;
    p.operation = TCONV_ONEAPI_CONV_BACKPROP;
    p.data_format = format;
    p.filter_format = TCONV_OIX;
    p.data_type = p.filter_type = type;
    if (type == TCONV_I8) p.output_type = TCONV_I32;
    p.groups = groups;
    set_shape(&p.data, 4,
              format == TCONV_NXC ? (int64_t[]){n, x, x, in} : (int64_t[]){n, in, x, x});
    set_shape(&p.filter, 4, (int64_t[]){in, layers[which].out, k, k});
    set_list(&p.strides, 2, (int64_t[]){s, s});
    set_list(&p.pads_begin, 2, (int64_t[]){pad, pad});
    set_list(&p.pads_end, 2, (int64_t[]){pad, pad});
    return p;
}

static void run_layer(const struct device *device, const char *phone, size_t which,
                      tconv_data_format format, tconv_type type, unsigned number)
{
    const tconv_problem p = problem_of(which, format, type);
    struct tensors t;
    tconv_error error;
    make_tensors(&p, number % 2 == 0 ? SMALL_INTEGERS : REAL_NUMBERS, number, &t);
    if (run_guarded(device, &p, "auto", number % 3 == 0, &t, &error) != TCONV_OK)
        failed("%s on %s: %s", layers[which].why, phone, error.message);
    compare_with_oracle(device, &p, "auto", number % 3 == 0, &t);
    free_tensors(&t);
}

/* In a sample each layer runs on one of the phones, in f32 in one format and in another type in the
 * other one. */
static void layers_are_right_on_phones(void **state)
{
    (void)state;
    static const tconv_type others[] = {TCONV_F16, TCONV_I8, TCONV_BF16};
    unsigned number = 0;
    for (int d = 0; d < device_count; d++) {
        tconv_device_info *info = &devices[d].device->info;
        const tconv_device_info own = *info;
        for (size_t phone = 0; phone < PHONES; phone++) {
            act_as(&devices[d], phones[phone]);
            for (size_t i = 0; i < LAYERS; i++)
                for (size_t c = 0; c < 4; c++, number++) {
                    const size_t turn = (i + phone + sample_seed()) % 4, last = c % 2,
                                 other = c / 2;
                    if ((turn < 3 || (turn + last + other) % 2 != 0) && !sample_is_whole())
                        continue;
                    run_layer(&devices[d], phones[phone], i, last ? TCONV_NXC : TCONV_NCX,
                              other ? others[(i + phone) % 3] : TCONV_F32, number);
                }
            *info = own;
        }
    }
}

/* A plan on a phone divides launches that are expected to take more than 50 ms; other GPUs take
 * 500. */
static void launches_are_short_on_phones(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double ms;
    } gpus[] = {{"Mali-G78", 50},
                {"Adreno 740", 50},
                {"PowerVR 4 KiB", 50},
                {"VideoCore VI", 50},
                {"NVIDIA", 500}};
    const tconv_problem p = plane(1, 512, 256, 128, 4, 2, 1);
    for (size_t g = 0; g < sizeof gpus / sizeof *gpus; g++) {
        struct device *device = &devices[0];
        const tconv_device_info own = device->device->info;
        const tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
        tconv_plan *plan = NULL;
        tconv_error error;
        act_as(device, gpus[g].name);
        if (device->device->launch_ms < 0)
            assert_true(tconv_launch_limit_ms(device->device) == gpus[g].ms);
        expect_ok(tconv_plan_create(device->device, &p, &options, &plan, &error), &error);
        const double ms = tconv_machine_ms(&plan->request.machine, plan->candidate.cost);
        const struct tconv_launch *run = &plan->kernel_plan.run[plan->kernel_plan.run_count - 1];
        print_message("%s: %s in %d pieces, expected in %.0f ms\n", gpus[g].name,
                      plan->candidate.algorithm->name, run->pieces, ms);
        assert_true(ms / run->pieces <= tconv_launch_limit_ms(device->device));
        tconv_plan_release(plan);
        device->device->info = own;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(layers_are_right_on_phones),
                                       cmocka_unit_test(launches_are_short_on_phones)};
    return cmocka_run_group_tests_name("phones", tests, open_all_devices, close_all_devices);
}
