/* SPDX-License-Identifier: Apache-2.0 */
/* Each algorithm is chosen for some layer of the built-in suite, in either data format, for one
 * with a large stride or for an upsampling, on some described device: one that never is would be of
 * no use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "described.h"
#include "selecting.h"
#include "tool/bench/trial.h"

_Static_assert((int)TILE_TEXT == (int)TCONV_TILE_TEXT, "the tool has room for each tile's text");

/* Counts the choice for one layer in one element type, with both kinds of arithmetic. */
static void count_choices(tconv_problem p, tconv_type type, const tconv_device_info *device,
                          long counts[TCONV_MAX_ALGORITHMS])
{
    p.data_type = p.filter_type = type;
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    tconv_error error;
    assert_int_equal(tconv_resolve(&p, &geometry, &error), TCONV_OK);
    struct tconv_loops loops;
    tconv_loops_init(&loops, &p, &geometry);
    const tconv_epilogue epilogue = TCONV_EPILOGUE_INIT;
    const tconv_device_info own = tconv_device_for(device, &loops);
    for (int fast = 0; fast < 2; fast++) {
        const struct tconv_request request =
            request_for(&loops, &own, &epilogue, fast ? TCONV_MATH_FAST : TCONV_MATH_EXACT);
        struct tconv_reason reason;
        const struct tconv_algorithm *algorithm = chosen(&request, "auto", &reason);
        for (int a = 0; tconv_algorithm_at(a) != NULL; a++)
            if (tconv_algorithm_at(a) == algorithm) counts[a]++;
    }
}

static void each_algorithm_is_chosen(void **state)
{
    (void)state;
    static const tconv_type types[] = {TCONV_F32, TCONV_F16, TCONV_BF16, TCONV_I8};
    long counts[TCONV_MAX_ALGORITHMS] = {0};
    struct suite suite;
    assert_int_equal(suite_read(NULL, &suite), EXIT_DONE);
    for (size_t i = 0; i < suite.count; i++) {
        assert_null(suite.entries[i].error);
        const tconv_problem p = suite.entries[i].problem;
        tconv_problem channels_last = p;
        suite_channels_last(&channels_last);
        for (const struct described_device *d = described_devices; d->name != NULL; d++)
            for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
                count_choices(p, types[t], &d->info, counts);
                count_choices(channels_last, types[t], &d->info, counts);
            }
    }
    suite_free(&suite);
    tconv_problem large_stride = TCONV_PROBLEM_INIT;
    large_stride.data = (tconv_shape){4, {1, 3, 64, 2}};
    large_stride.filter = (tconv_shape){4, {3, 2, 3, 3}};
    large_stride.strides = (tconv_list){2, {46889, 4}};
    tconv_problem upsampling = TCONV_PROBLEM_INIT;
    upsampling.operation = TCONV_UPSAMPLE_CONV;
    upsampling.data = (tconv_shape){4, {1, 512, 64, 64}};
    upsampling.filter = (tconv_shape){4, {512, 512, 3, 3}};
    upsampling.strides = (tconv_list){2, {2, 2}};
    upsampling.pads_begin = upsampling.pads_end = (tconv_list){2, {1, 1}};
    for (const struct described_device *d = described_devices; d->name != NULL; d++) {
        count_choices(large_stride, TCONV_F32, &d->info, counts);
        count_choices(upsampling, TCONV_F32, &d->info, counts);
    }
    for (int a = 0; tconv_algorithm_at(a) != NULL; a++) {
        print_message("%-18s %ld\n", tconv_algorithm_at(a)->name, counts[a]);
        if (counts[a] == 0) fail_msg("%s is never chosen", tconv_algorithm_at(a)->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_algorithm_is_chosen)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
