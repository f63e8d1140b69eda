/* SPDX-License-Identifier: Apache-2.0 */
/* What a search measures: which of two candidates is faster, by the times of their runs, where
 * noise is not taken. And what it stores: texts that no search wrote are refused. */
#include "plan/records.h"
#include "plan/rounds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* Times around `ms`: each is longer by up to `noise` of it. */
static struct tconv_rounds times(int count, double ms, double noise, uint32_t seed)
{
    struct tconv_rounds rounds = {.count = 0};
    for (int i = 0; i < count; i++) {
        seed = seed * 1664525U + 1013904223U;
        tconv_rounds_add(&rounds, ms * (1 + noise * (seed >> 16) / 65536));
    }
    return rounds;
}

static void few_rounds_tell_nothing(void **state)
{
    (void)state;
    for (int count = 1; count < TCONV_FEWEST_ROUNDS; count++) {
        const struct tconv_rounds slow = times(count, 11.8, 0, 1), fast = times(20, 1, 0, 1);
        assert_true(tconv_rounds_noise(&fast, &slow) == 0);
        assert_true(tconv_rounds_may_be_faster(&fast, &slow));
        assert_false(tconv_rounds_are_faster(&fast, &slow));
    }
    const struct tconv_rounds slow = times(TCONV_FEWEST_ROUNDS, 11.8, 0, 1),
                              fast = times(TCONV_FEWEST_ROUNDS, 1, 0, 1);
    assert_true(tconv_rounds_are_faster(&fast, &slow));
}

/* What a search saw on a machine whose processors others held: the cost model's choice, and a
 * candidate that no run on the idle machine shows as faster. */
static void a_busy_machine_decides_nothing(void **state)
{
    (void)state;
    struct tconv_rounds model = {.count = 0}, other = {.count = 0};
    const double of_model[] = {14.16, 35.9, 17.2, 88.1, 16.4},
                 of_other[] = {9.6, 4.8, 61.0, 1.2, 12.9};
    for (int i = 0; i < 5; i++) {
        tconv_rounds_add(&model, of_model[i]);
        tconv_rounds_add(&other, of_other[i]);
    }
    assert_true(model.least / other.least > 11.7 && model.least / other.least < 11.9);
    assert_true(tconv_rounds_noise(&other, &model) > 1.9); /* a ratio of 2.9 may be none */
    assert_false(tconv_rounds_are_faster(&other, &model));
}

static void noise_is_the_sum_of_both_spreads_and_shrinks(void **state)
{
    (void)state;
    struct tconv_rounds a = {.count = 0}, b = {.count = 0};
    const double of_a[] = {1, 2, 3, 4}; /* quartiles 1.75, 2.5, 3.25 */
    for (int i = 0; i < 4; i++) tconv_rounds_add(&a, of_a[i]);
    for (int i = 0; i < 4; i++) tconv_rounds_add(&b, 7);
    assert_true(a.least == 1 && a.count == 4 && tconv_rounds_median(&a) == 2.5);
    assert_true(tconv_rounds_noise(&a, &b) == 0.6);
    assert_true(tconv_rounds_noise(&b, &a) == 0.6);
    assert_true(tconv_rounds_noise(&a, &a) == 1.2);
    struct tconv_rounds many = times(100, 1, 0.2, 3), few = times(4, 1, 0.2, 3);
    assert_true(tconv_rounds_noise(&many, &many) < 0.06);
    assert_true(tconv_rounds_noise(&few, &few) > 0.06);
    assert_int_equal(tconv_rounds_common(&many, &few), 4);
}

/* On an idle machine, runs of one algorithm differ by 3 %. */
static void what_is_faster_is_taken_and_what_is_not_is_not(void **state)
{
    (void)state;
    int wrong = 0;
    for (uint32_t seed = 1; seed <= 200; seed++) {
        const struct tconv_rounds model = times(40, 1, 0.03, seed),
                                  equal = times(40, 1, 0.03, seed + 1000),
                                  faster = times(40, 0.94, 0.03, seed + 2000),
                                  noisy = times(40, 1, 0.5, seed + 3000),
                                  half = times(40, 0.5, 0.5, seed + 4000);
        assert_true(tconv_rounds_are_faster(&faster, &model));
        assert_false(tconv_rounds_are_faster(&model, &faster));
        assert_true(tconv_rounds_are_faster(&half, &noisy));
        wrong += tconv_rounds_are_faster(&equal, &model);
        wrong += tconv_rounds_are_faster(&noisy, &model);
    }
    assert_int_equal(wrong, 0);
}

static void stored_texts_are_what_a_search_can_have_measured(void **state)
{
    (void)state;
    static const struct {
        const char *candidates, *model, *best;
        bool right;
    } rows[] = {
        {"3", "1.5", "1", true},    {"1", "0.25", "0.25", true}, {"0", "1.5", "1", false},
        {"-1", "1.5", "1", false},  {"3", "1", "0", false},      {"3", "inf", "1", false},
        {"3", "inf", "inf", false}, {"3", "nan", "nan", false},  {"3", "1", "nan", false},
        {"3", "nan", "1", false},   {"3", "-1", "1", false},     {"3", "1", "-1", false},
        {"3", "-1", "-1", false},   {"3", "1", "1.5", false},    {"3", "1e308", "1e-308", false},
        {"3", "1e999", "1", false}, {"3", "1", "1e-999", false}, {"3", "1x", "1", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[TCONV_SEARCH_TEXT];
        struct tconv_pattern pattern;
        tconv_choice choice = TCONV_CHOICE_INIT;
        snprintf(text, sizeof text,
                 "candidates %s\nmodel_ms %s\nbest_ms %s\nalgorithm thin_vector vw=16\n",
                 rows[i].candidates, rows[i].model, rows[i].best);
        if (tconv_search_text_read(text, &pattern, &choice) != rows[i].right)
            fail_msg("%s is %s", text, rows[i].right ? "refused" : "taken");
        if (!rows[i].right) continue;
        assert_int_equal(choice.source, TCONV_SEARCH_RECORDS);
        assert_true(choice.model_ms >= choice.best_ms && choice.best_ms > 0);
        assert_string_equal(pattern.algorithm->name, "thin_vector");
    }
    struct tconv_pattern pattern;
    tconv_choice choice = TCONV_CHOICE_INIT;
    assert_false(tconv_search_text_read("", &pattern, &choice));
    assert_false(tconv_search_text_read("candidates 3\nmodel_ms 2\nbest_ms 1\nalgorithm nobody\n",
                                        &pattern, &choice));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_rounds_tell_nothing),
        cmocka_unit_test(a_busy_machine_decides_nothing),
        cmocka_unit_test(noise_is_the_sum_of_both_spreads_and_shrinks),
        cmocka_unit_test(what_is_faster_is_taken_and_what_is_not_is_not),
        cmocka_unit_test(stored_texts_are_what_a_search_can_have_measured),
    };
    return cmocka_run_group_tests_name("measured", tests, NULL, NULL);
}
