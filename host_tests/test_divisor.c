/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the kernels' division by multiplication with division. */
#include "algorithm/any/folded.h"
#include "common/divisor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* split() of cl/common/divisor.h. */
static int64_t quotient(int64_t n, int64_t divisor)
{
    const uint64_t product = (uint64_t)(uint32_t)(2 * n) * ((uint64_t)divisor >> 32);
    return (int64_t)(product >> 32 >> ((uint32_t)divisor >> DIVISOR_BITS));
}

static void check(int64_t n, int64_t d)
{
    if (n < 0 || n > INT32_MAX || !tconv_divides(d)) return;
    assert_int_equal(quotient(n, tconv_divisor(d)), n / d);
    assert_int_equal(tconv_divisor(d) & ((1 << DIVISOR_BITS) - 1), d);
}

static void divisors_divide(void **state)
{
    (void)state;
    assert_true(tconv_divides(1) && tconv_divides((1 << DIVISOR_BITS) - 1));
    assert_false(tconv_divides(0) || tconv_divides(1 << DIVISOR_BITS));
    for (int64_t d = 1; d <= 3000; d++)
        for (int64_t n = 0; n <= 3000; n++) check(n, d);
    /* Around multiples, and around powers of two, of numbers of every size. */
    for (int64_t base = 1; base <= INT32_MAX; base += base / 7 + 1)
        for (int64_t d = base; d < base + 4 && d <= INT32_MAX; d++)
            for (int64_t q = 1; q <= INT32_MAX / d; q += q / 5 + 1)
                for (int64_t e = -1; e <= 1; e++) check(q * d + e, d);
    for (int power = 0; power < 31; power++)
        for (int64_t e = -1; e <= 1; e++) {
            const int64_t d = (INT64_C(1) << power) + e;
            if (d < 1) continue;
            for (int64_t n = INT32_MAX - 3; n <= INT32_MAX; n++) check(n, d);
            check(d - 1, d);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(divisors_divide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
