/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts and values of the first release's headers are those of today's: what may change is that
 * structures with struct_size have more members at their end. */
#include "abi_layout.h"
#include "tconv_cl/version.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void layouts_and_values_stay(void **state)
{
    (void)state;
    for (const struct abi_entry *a = first_release; a->name != NULL; a++) {
        const struct abi_entry *b = today;
        while (b->name != NULL && strcmp(a->name, b->name) != 0) b++;
        if (b->name == NULL) fail_msg("%s is not there any more", a->name);
        const bool grown = a->kind == ABI_GROWING && b->size > a->size;
        if ((!grown && a->size != b->size) || a->place != b->place)
            fail_msg("%s was %zu, %zu and is %zu, %zu", a->name, a->place, a->size, b->place,
                     b->size);
        if (a->kind == ABI_GROWING && a->place != a->size)
            fail_msg("%s ends with padding, which a later member would share", a->name);
    }
}

static void the_version_is_that_of_the_header(void **state)
{
    (void)state;
    assert_int_equal(tconv_version_number(), TCONV_VERSION);
    char text[40];
    snprintf(text, sizeof text, "%d.%d.%d", TCONV_VERSION / 1000000, TCONV_VERSION / 1000 % 1000,
             TCONV_VERSION % 1000);
    assert_string_equal(tconv_version(), text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_and_values_stay),
        cmocka_unit_test(the_version_is_that_of_the_header),
    };
    return cmocka_run_group_tests_name("abi", tests, NULL, NULL);
}
