/* SPDX-License-Identifier: Apache-2.0 */
/* The ceilings that bench holds layers to: what is measured of the device, raised by what layers reach. */
#include "roofs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { LAYERS = 200 };
static struct roofs_layer layers[LAYERS];

/* Ceilings as a busy machine measures them, with a bandwidth of each size. */
static struct roofs measured(void)
{
    return (struct roofs){.probed_gflops = 143,
                          .sizes = 3,
                          .bytes = {100, 400, 1600},
                          .gbs = {50, 80, 20},
                          .layers = layers};
}

static void faster_layers_raise_the_peak(void **state)
{
    (void)state;
    struct roofs roofs = measured();
    assert_true(roofs_peak(&roofs) == 143);
    roofs_raise(&roofs, 100, 10, 1);
    assert_true(roofs_peak(&roofs) == 143);
    roofs_raise(&roofs, 352, 10, 1);
    roofs_raise(&roofs, 200, 10, 1);
    assert_true(roofs_peak(&roofs) == 352);
    assert_true(roofs.probed_gflops == 143); /* stays known */
    roofs.probed_gflops = 400;               /* measured again */
    assert_true(roofs_peak(&roofs) == 400);
}

static void layers_raise_the_bandwidth_of_what_is_not_larger(void **state)
{
    (void)state;
    struct roofs roofs = measured();
    roofs_raise(&roofs, 0, 300, 100);
    assert_true(roofs_peak(&roofs) == 143);
    assert_true(roofs_bandwidth(&roofs, 100) == 50); /* has a measurement of its own */
    assert_true(roofs_bandwidth(&roofs, 101) == 100);
    assert_true(roofs_bandwidth(&roofs, 300) == 100);
    assert_true(roofs_bandwidth(&roofs, 301) == 80); /* may not fit the cache of 300 bytes */
    assert_true(roofs_bandwidth(&roofs, 400) == 80);
    assert_true(roofs_bandwidth(&roofs, 401) == 20);
    roofs_raise(&roofs, 0, 350, 60); /* slower than measured */
    assert_true(roofs_bandwidth(&roofs, 301) == 80);
    assert_true(roofs_memory_bandwidth(&roofs) == 20);
    roofs_raise(&roofs, 0, 1500, 30); /* could be a cache */
    assert_true(roofs_memory_bandwidth(&roofs) == 20);
    assert_true(roofs_bandwidth(&roofs, 1500) == 30);
    roofs_raise(&roofs, 0, 5000, 25); /* beyond the largest size is memory, whatever the size */
    assert_true(roofs_memory_bandwidth(&roofs) == 25);
    assert_true(roofs_bandwidth(&roofs, 1550) == 25);
    assert_true(roofs_bandwidth(&roofs, 9000) == 25);
}

static void no_layer_is_above_the_ceilings(void **state)
{
    (void)state;
    struct roofs roofs = measured();
    double gflops[LAYERS];
    uint32_t seed = 1;
    for (int i = 0; i < LAYERS; i++) {
        seed = seed * 1664525U + 1013904223U;
        gflops[i] = seed >> 22;
        roofs_raise(&roofs, gflops[i], (seed >> 10) % 3000, (seed >> 16) % 200);
    }
    for (int i = 0; i < LAYERS; i++) {
        assert_true(gflops[i] <= roofs_peak(&roofs));
        assert_true(layers[i].gbs <= roofs_bandwidth(&roofs, layers[i].bytes));
    }
}

static void the_spread_is_relative(void **state)
{
    (void)state;
    const double one[] = {7}, two[] = {1, 3}, five[] = {1, 2, 4, 6, 100};
    assert_true(relative_spread(one, 1) == 0);
    assert_true(relative_spread(two, 2) == 0.5);
    assert_true(relative_spread(five, 5) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faster_layers_raise_the_peak),
        cmocka_unit_test(layers_raise_the_bandwidth_of_what_is_not_larger),
        cmocka_unit_test(no_layer_is_above_the_ceilings),
        cmocka_unit_test(the_spread_is_relative),
    };
    return cmocka_run_group_tests_name("roofs", tests, NULL, NULL);
}
