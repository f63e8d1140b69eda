/* SPDX-License-Identifier: Apache-2.0 */
/* Each member of a request, one after the other: what differs in it has another text, and never the
 * plan of the other. The members are the rows of base/members.h. */
#include "base/members.h"
#include "layer/key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* In the oneAPI form, whose text has all members. */
static const tconv_problem plain = {
    .struct_size = sizeof(tconv_problem),
    .operation = TCONV_ONEAPI_CONV_BACKPROP,
    .data_type = TCONV_F32,
    .filter_type = TCONV_F32,
    .data = {4, {1, 6, 8, 8}},
    .filter = {4, {6, 4, 3, 3}},
    .groups = 1,
    .data_format = TCONV_NCX,
    .filter_format = TCONV_OIX,
};

static bool keys_differ(const tconv_problem *p, const tconv_plan_options *o)
{
    const tconv_plan_options plain_options = TCONV_PLAN_OPTIONS_INIT;
    struct tconv_key one, other;
    assert_true(tconv_key_make(&plain, &plain_options, &one));
    assert_true(tconv_key_make(p, o, &other));
    return !tconv_key_equal(&one, &other);
}

static void check_problem(const char *member, const tconv_problem *p)
{
    const tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    char one[2000], other[2000];
    tconv_problem_text(&plain, one, sizeof one);
    tconv_problem_text(p, other, sizeof other);
    if (strcmp(one, other) == 0) fail_msg("%s is not in the text: %s", member, one);
    if (!keys_differ(p, &options)) fail_msg("%s is not in the key of plans", member);
}

static void check_options(const char *member, const tconv_plan_options *o, bool tells)
{
    if (keys_differ(&plain, o) != tells)
        fail_msg("%s %s in the key of plans", member, tells ? "is not" : "is");
}

#define CHANGE_SHAPE(x) x.dim[x.rank - 1]++;
#define CHANGE_LIST(x) x = (tconv_list){2, {3, 3}};
#define CHANGE_STEPS(x) x = (tconv_steps){4, {999, 99, 9, 1}};
#define CHANGE_NAME(x) x++;
#define CHANGE_NUMBER(x) x++;
#define CHANGE_IMPLIED(x) x--;
#define PROBLEM(kind, member, ...)                                                                 \
    {                                                                                              \
        tconv_problem changed = plain;                                                             \
        CHANGE_##kind(changed.member) check_problem(#member, &changed);                            \
    }

static void members_of_problems_are_told_apart(void **state)
{
    (void)state;
    TCONV_PROBLEM_MEMBERS(PROBLEM)
}

#define SET_NUMBER(x) x = 1;
#define SET_REAL(x) x = 0.5;
#define SET_RESERVED(x) x[0] = 1;
#define SET_ALGORITHM(x) x = "reference";
#define SET_EPILOGUE(x) x.bias = true;
#define SET_WINDOW(x) /* windows_are_told_apart */
#define SET_SEARCH(x) memset(&x, 1, sizeof x);
enum {
    TELLS_NUMBER = 1,
    TELLS_ALGORITHM = 1,
    TELLS_EPILOGUE = 1,
    TELLS_WINDOW = 0,
    TELLS_SEARCH = 0
};
#define OPTION(kind, member)                                                                       \
    {                                                                                              \
        tconv_plan_options changed = TCONV_PLAN_OPTIONS_INIT;                                      \
        SET_##kind(changed.member) check_options(#member, &changed, TELLS_##kind);                 \
    }
#define EPILOGUE(kind, member, ...)                                                                \
    {                                                                                              \
        tconv_plan_options changed = TCONV_PLAN_OPTIONS_INIT;                                      \
        SET_##kind(changed.epilogue.member) check_options(#member, &changed, true);                \
    }

static void members_of_options_are_told_apart(void **state)
{
    (void)state;
    TCONV_PLAN_OPTIONS_MEMBERS(OPTION)
    TCONV_EPILOGUE_MEMBERS(EPILOGUE)
}

/* "auto" and no name are the same. */
static void the_library_chooses(void **state)
{
    (void)state;
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.algorithm = "auto";
    assert_false(keys_differ(&plain, &options));
}

static struct tconv_key key_of_window(const tconv_problem *p, int64_t begin, int64_t end)
{
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    struct tconv_key key;
    options.output_begin = begin;
    options.output_end = end;
    assert_true(tconv_key_make(p, &options, &key));
    return key;
}

/* Windows with the same rows of input and output and the same pad have one plan, others not. One
 * that the output does not have has no key. */
static void windows_are_told_apart(void **state)
{
    (void)state;
    tconv_problem p = plain;
    p.strides = (tconv_list){2, {2, 2}}; /* 8 rows become 17 */
    const struct tconv_key whole = key_of_window(&p, 0, 0), first = key_of_window(&p, 4, 8),
                           alike = key_of_window(&p, 6, 10), other_pad = key_of_window(&p, 5, 9),
                           longer = key_of_window(&p, 4, 9), edge = key_of_window(&p, 0, 4);
    assert_true(tconv_key_equal(&first, &alike));
    assert_false(tconv_key_equal(&first, &whole));
    assert_false(tconv_key_equal(&first, &other_pad));
    assert_false(tconv_key_equal(&first, &longer));
    assert_false(tconv_key_equal(&first, &edge));
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    struct tconv_key key;
    options.output_begin = 9;
    options.output_end = 18;
    assert_false(tconv_key_make(&p, &options, &key));
}

static bool readings_differ(const tconv_problem *p)
{
    struct tconv_reading one, other;
    tconv_reading_make(&plain, &one);
    tconv_reading_make(p, &other);
    return !tconv_reading_equal(&one, &other);
}

/* The column `reads`, by its effect. */
#define READING(kind, member, ...) READS(kind, member, __VA_ARGS__, 0)
#define READS(kind, member, option, reads, ...)                                                    \
    {                                                                                              \
        tconv_problem changed = plain;                                                             \
        CHANGE_##kind(changed.member) if (readings_differ(&changed) != (reads))                    \
            fail_msg(#member " %s the reading of a filter", (reads) ? "is not in" : "is in");      \
    }

static void members_that_change_the_filters_order_are_told_apart(void **state)
{
    (void)state;
    TCONV_PROBLEM_MEMBERS(READING)
}

/* Places behind a list's count do not count, and a list that is too long has no key. */
static void lists_count_up_to_their_length(void **state)
{
    (void)state;
    const tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    tconv_problem p = plain;
    struct tconv_key key;
    p.strides.value[3] = 7;
    assert_false(keys_differ(&p, &options));
    p.strides.count = TCONV_MAX_AXES + 1;
    assert_false(tconv_key_make(&p, &options, &key));
    p = plain;
    p.data.rank = -1;
    assert_false(tconv_key_make(&p, &options, &key));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_of_problems_are_told_apart),
        cmocka_unit_test(members_of_options_are_told_apart),
        cmocka_unit_test(the_library_chooses),
        cmocka_unit_test(windows_are_told_apart),
        cmocka_unit_test(members_that_change_the_filters_order_are_told_apart),
        cmocka_unit_test(lists_count_up_to_their_length),
    };
    return cmocka_run_group_tests_name("members", tests, NULL, NULL);
}
