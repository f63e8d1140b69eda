/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of an application whose locale has another decimal point, or other letters' cases, are the
 * same as of any other. */
#include "base/number.h"
#include "plan/plan_internal.h"
#include "portable.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Arabic's and Persian's has two bytes. */
static const char *const points[] = {".", ",", "\xd9\xab"};

enum { POINTS = sizeof points / sizeof *points, READERS = 4 };

/* Begins a locale with this point. False if the system has none. */
static bool begin(const char *point)
{
    if (strcmp(point, ".") == 0) return true;
    if (!use_decimal_point(point)) {
        print_message("no locale here has the decimal point %s\n", point);
        return false;
    }
    char text[20];
    snprintf(text, sizeof text, "%.1f", 0.5);
    assert_memory_equal(text + 1, point, strlen(point));
    return true;
}

static void end(void)
{
    assert_non_null(setlocale(LC_ALL, "C"));
}

#if defined(__GLIBC__)
static void glibc_has_them_all(void **state)
{
    (void)state;
    for (int i = 0; i < POINTS; i++) {
        assert_true(begin(points[i]));
        end();
    }
}
#endif

static void expect_text(double value, int digits, const char *text)
{
    assert_string_equal(tconv_number(value, digits).text, text);
}

static void expect_read(const char *text, double value, const char *rest)
{
    char *stop;
    const double read = tconv_number_read(text, &stop);
    assert_memory_equal(&read, &value, sizeof read);
    assert_string_equal(stop, rest);
}

static void numbers_have_a_point(void **state)
{
    (void)state;
    for (int i = 0; i < POINTS; i++) {
        if (!begin(points[i])) continue;
        expect_text(1.5, 6, "1.5");
        expect_text(-0.000912645, 3, "-0.000913");
        expect_text(1e300, 6, "1e+300");
        expect_text(1.25e-7, 6, "1.25e-07");
        expect_text(-DBL_MAX, 17, "-1.7976931348623157e+308");
        expect_text(12345678, 6, "1.23457e+07");
        expect_text(0, 6, "0");
        expect_text((double)INFINITY, 6, "inf");
        expect_read("2.5", 2.5, "");
        expect_read("-2.5e-3 ms", -2.5e-3, " ms");
        expect_read(".5", .5, "");
        expect_read("1.", 1, "");
        expect_read("7", 7, "");
        expect_read("1.5.5", 1.5, ".5");
        expect_read("1,5", 1, ",5");
        expect_read("1e", 1, "e");
        expect_read("", 0, "");
        expect_read(" 1", 0, " 1");
        expect_read("x1.5", 0, "x1.5");
        expect_read("1 2.5", 1, " 2.5");
        char all[80] = "", *stop; /* too long for a number */
        for (size_t n = 0; n < sizeof all - 1; n++) all[n] = n == 1 ? '.' : '1';
        assert_true(tconv_number_read(all, &stop) < 1.2);
        assert_int_equal(strlen(stop), sizeof all - 1 - 63);
        end();
    }
}

/* Counts numbers that are not read or written with a point. */
static void *read_and_write(void *wrong)
{
    for (int i = 0; i < 1000; i++) {
        char *stop;
        *(int *)wrong += strcmp(tconv_number(1.5, 6).text, "1.5") != 0;
        *(int *)wrong += tconv_number_read("2.5", &stop) != 2.5;
    }
    return NULL;
}

static void threads_keep_the_locale_of_the_application(void **state)
{
    (void)state;
    if (!begin(",")) skip();
    pthread_t threads[READERS];
    int wrong[READERS] = {0};
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_and_write, &wrong[i]), 0);
    for (int i = 0; i < READERS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < READERS; i++) assert_int_equal(wrong[i], 0);
    assert_string_equal(localeconv()->decimal_point, ",");
    end();
}

/* The error of an epilogue that is wrong. */
static void expect_epilogue_error(const tconv_epilogue *epilogue, const char *sentence)
{
    tconv_problem problem = TCONV_PROBLEM_INIT;
    problem.data_type = problem.filter_type = TCONV_F32;
    const tconv_geometry geometry = {.output_type = TCONV_F32};
    tconv_error error;
    assert_int_equal(tconv_check_epilogue(&problem, &geometry, epilogue, &error),
                     TCONV_ERROR_ARGUMENT);
    assert_string_equal(error.message, sentence);
}

static void sentences_have_a_point(void **state)
{
    (void)state;
    for (int i = 0; i < POINTS; i++) {
        if (!begin(points[i])) continue;
        tconv_epilogue epilogue = TCONV_EPILOGUE_INIT;
        epilogue.activation = TCONV_ACTIVATION_CLAMP;
        epilogue.a = 0.5;
        epilogue.b = 0.25;
        expect_epilogue_error(&epilogue,
                              "epilogue.a is 0.5 and b 0.25: clamp needs the lower number first");
        epilogue.b = 1.5e300;
        expect_epilogue_error(&epilogue, "epilogue.b is 1.5e+300, which is not a finite f32");
        epilogue.activation = TCONV_ACTIVATION_NONE;
        epilogue.b = 0;
        expect_epilogue_error(
            &epilogue, "epilogue.a is 0.5, but activation none does not use it: set it to 0");

        const tconv_device_info info = {.struct_size = sizeof info};
        struct tconv_machine machine = tconv_machine_of(&info, sizeof(float));
        struct tconv_reason reason = {""};
        assert_true(tconv_machine_read(&machine, "wake=2.5e3 wake_share=0.75", &reason));
        assert_true(machine.wake == 2500 && machine.wake_share == 0.75);
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#if defined(__GLIBC__)
        cmocka_unit_test(glibc_has_them_all),
#endif
        cmocka_unit_test(numbers_have_a_point),
        cmocka_unit_test(threads_keep_the_locale_of_the_application),
        cmocka_unit_test(sentences_have_a_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
