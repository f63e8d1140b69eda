/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what the host does run on the fake implementation (fake/fake.h), where that is built:
 * all of them, in a short time. So a short run on PoCL has only the tests that are marked with
 * smoke_test, which show that a real implementation takes the calls that the fake one takes. */
#ifndef TCONV_DEVICE_TESTS_SMOKE_H
#define TCONV_DEVICE_TESTS_SMOKE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Whether a run has only the marked tests: a short one of a build that has the fake implementation,
 * where all devices are PoCL's. Of those nobody's tests depend on a driver that only they have. */
bool smoke_suffices(void);

extern char smoke_mark;
#define smoke_test(test) cmocka_unit_test_prestate(test, &smoke_mark)

/* Keeps the tests that this run has. Returns their number. */
size_t keep_smoke_tests(struct CMUnitTest *tests, size_t count);

/* Like cmocka_run_group_tests_name, for an array of tests that may change. */
#define run_smoke_or_all(name, tests, set_up, tear_down)                                           \
    _cmocka_run_group_tests(name, tests, keep_smoke_tests(tests, sizeof(tests) / sizeof *(tests)), \
                            set_up, tear_down)

#endif
