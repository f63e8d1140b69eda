/* SPDX-License-Identifier: Apache-2.0 */
/* Text that is put together in a buffer (src/base/text.h). */
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void what_does_not_fit_is_left_out_and_counted(void **state)
{
    (void)state;
    for (size_t size = 0; size <= 8; size++) {
        char buffer[8] = "????????";
        buffer[7] = '!';
        struct tconv_text text = tconv_text_begin(size == 0 ? NULL : buffer, size);
        tconv_text_add(&text, "%s", "ab");
        tconv_text_add(&text, "%d", 123);
        tconv_text_add(&text, "%s", "");
        assert_int_equal(text.length, 5);
        assert_true(tconv_text_fits(&text) == (size > 5));
        if (size > 0) {
            assert_int_equal(strlen(buffer), size > 5 ? 5 : size - 1);
            assert_memory_equal(buffer, "ab123", strlen(buffer));
        }
        if (size < 8) assert_int_equal(buffer[7], '!');
    }
}

static void without_a_buffer_all_is_counted(void **state)
{
    (void)state;
    struct tconv_text text = tconv_text_begin(NULL, 100);
    tconv_text_add(&text, "%d", 123);
    assert_int_equal(text.length, 3);
    assert_false(tconv_text_fits(&text));
}

static void a_text_goes_on_where_its_buffer_ends(void **state)
{
    (void)state;
    char buffer[8];
    struct tconv_text text = tconv_text_begin(buffer, sizeof buffer);
    assert_string_equal(buffer, "");
    tconv_text_add(&text, "abc");
    text = tconv_text_resume(buffer, sizeof buffer);
    tconv_text_add(&text, "defg");
    assert_string_equal(buffer, "abcdefg");
    assert_true(tconv_text_fits(&text));
    tconv_text_add(&text, "h");
    assert_string_equal(buffer, "abcdefg");
    text = tconv_text_resume(buffer, sizeof buffer); /* full, and another letter does not fit */
    tconv_text_add(&text, "i");
    assert_false(tconv_text_fits(&text));
}

static void breaks_stand_between_lines(void **state)
{
    (void)state;
    char buffer[20];
    struct tconv_text text = tconv_text_begin(buffer, sizeof buffer);
    tconv_text_add_line(&text, "%d", 1);
    assert_string_equal(buffer, "1");
    tconv_text_add_line(&text, "two");
    assert_string_equal(buffer, "1\ntwo");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_fit_is_left_out_and_counted),
        cmocka_unit_test(without_a_buffer_all_is_counted),
        cmocka_unit_test(a_text_goes_on_where_its_buffer_ends),
        cmocka_unit_test(breaks_stand_between_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
