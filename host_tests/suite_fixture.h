/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in suite of layers, which a test program reads before its tests and releases behind
 * them: setup and teardown of a group of cmocka's. */
#ifndef HOST_TESTS_SUITE_FIXTURE_H
#define HOST_TESTS_SUITE_FIXTURE_H

#include "tool/io/suite.h"

static struct suite suite;

static int read_suite(void **state)
{
    (void)state;
    return suite_read(NULL, &suite) == EXIT_DONE ? 0 : -1;
}

static int free_suite(void **state)
{
    (void)state;
    suite_free(&suite);
    return 0;
}

#endif
