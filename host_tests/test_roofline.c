/* SPDX-License-Identifier: Apache-2.0 */
/* The ceilings that bench holds layers to: what is measured of the device, raised by what layers
 * reach. */
#include "base/spread.h"
#include "tool/bench/roofline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { LAYERS = 200 };
static struct roofline_layer layers[LAYERS];

/* Ceilings as a busy machine measures them, with a bandwidth of each size. */
static struct roofline measured(void)
{
    return (struct roofline){.probed_gflops = 143,
                             .sizes = 3,
                             .bytes = {100, 400, 1600},
                             .gbs = {50, 80, 20},
                             .layers = layers};
}

static void faster_layers_raise_the_peak(void **state)
{
    (void)state;
    struct roofline roofline = measured();
    assert_true(roofline_peak(&roofline) == 143);
    roofline_raise(&roofline, 100, 10, 1);
    assert_true(roofline_peak(&roofline) == 143);
    roofline_raise(&roofline, 352, 10, 1);
    roofline_raise(&roofline, 200, 10, 1);
    assert_true(roofline_peak(&roofline) == 352);
    assert_true(roofline.probed_gflops == 143); /* stays known */
    roofline.probed_gflops = 400;               /* measured again */
    assert_true(roofline_peak(&roofline) == 400);
}

static void layers_raise_the_bandwidth_of_what_is_not_larger(void **state)
{
    (void)state;
    struct roofline roofline = measured();
    roofline_raise(&roofline, 0, 300, 100);
    assert_true(roofline_peak(&roofline) == 143);
    assert_true(roofline_bandwidth(&roofline, 100) == 50); /* has a measurement of its own */
    assert_true(roofline_bandwidth(&roofline, 101) == 100);
    assert_true(roofline_bandwidth(&roofline, 300) == 100);
    assert_true(roofline_bandwidth(&roofline, 301) == 80); /* may not fit the cache of 300 bytes */
    assert_true(roofline_bandwidth(&roofline, 400) == 80);
    assert_true(roofline_bandwidth(&roofline, 401) == 20);
    roofline_raise(&roofline, 0, 350, 60); /* slower than measured */
    assert_true(roofline_bandwidth(&roofline, 301) == 80);
    assert_true(roofline_memory_bandwidth(&roofline) == 20);
    roofline_raise(&roofline, 0, 1500, 30); /* could be a cache */
    assert_true(roofline_memory_bandwidth(&roofline) == 20);
    assert_true(roofline_bandwidth(&roofline, 1500) == 30);
    roofline_raise(&roofline, 0, 5000,
                   25); /* beyond the largest size is memory, whatever the size */
    assert_true(roofline_memory_bandwidth(&roofline) == 25);
    assert_true(roofline_bandwidth(&roofline, 1550) == 25);
    assert_true(roofline_bandwidth(&roofline, 9000) == 25);
}

static void no_layer_is_above_the_ceilings(void **state)
{
    (void)state;
    struct roofline roofline = measured();
    double gflops[LAYERS];
    uint32_t seed = 1;
    for (int i = 0; i < LAYERS; i++) {
        seed = seed * 1664525U + 1013904223U;
        gflops[i] = seed >> 22;
        roofline_raise(&roofline, gflops[i], (seed >> 10) % 3000, (seed >> 16) % 200);
    }
    for (int i = 0; i < LAYERS; i++) {
        assert_true(gflops[i] <= roofline_peak(&roofline));
        assert_true(layers[i].gbs <= roofline_bandwidth(&roofline, layers[i].bytes));
    }
}

static void the_spread_is_relative(void **state)
{
    (void)state;
    const double one[] = {7}, two[] = {1, 3}, five[] = {1, 2, 4, 6, 100};
    assert_true(tconv_spread(one, 1) == 0);
    assert_true(tconv_spread(two, 2) == 0.5);
    assert_true(tconv_spread(five, 5) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faster_layers_raise_the_peak),
        cmocka_unit_test(layers_raise_the_bandwidth_of_what_is_not_larger),
        cmocka_unit_test(no_layer_is_above_the_ceilings),
        cmocka_unit_test(the_spread_is_relative),
    };
    return cmocka_run_group_tests_name("roofline", tests, NULL, NULL);
}
