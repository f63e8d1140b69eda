/* SPDX-License-Identifier: Apache-2.0 */
/* Every algorithm on problems that are small enough for Oclgrind, which simulates each work-item
 * and reports races, accesses out of bounds and uses of uninitialized memory. A problem is in the
 * list because its kernels address memory in a way of their own.
 * usage: test_accesses [RANDOM-PROBLEMS]      so many more, drawn by TCONV_CL_TEST_SEED for one
 *                                             algorithm after the other */
#include "random_problem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int random_problems;
static int taken[32]; /* problems of each algorithm */

enum form {
    FIRST,    /* channels first */
    LAST,     /* channels last */
    UPSAMPLED /* channels first, nearest upsampling by `s` */
};

enum finish {
    PLAIN,       /* bias only */
    EPILOGUE,    /* bias, residual, activation and what was there before */
    ZERO_POINTS, /* and requantization */
};

/* Problems with two axes. Where `tiles` is false, matrix_group is left out, which takes a hundred
 * times as long as the others. */
static const struct row {
    const char *why;
    enum form form;
    int64_t batch, groups, in, out, y, x, k, s, d, pad;
    tconv_type type;
    enum finish finish;
    bool tiles;
} rows[] = {
    {"phases together", FIRST, 1, 1, 3, 5, 3, 9, 4, 2, 1, 1, TCONV_F32, PLAIN, false},
    {"channels last", LAST, 1, 1, 3, 5, 3, 5, 4, 2, 1, 1, TCONV_F16, EPILOGUE, true},
    {"small images, dilation", FIRST, 3, 1, 2, 3, 4, 3, 3, 2, 3, 2, TCONV_F32, EPILOGUE, true},
    {"groups", FIRST, 1, 3, 2, 3, 3, 5, 3, 2, 1, 1, TCONV_BF16, PLAIN, false},
    {"groups, channels last", LAST, 2, 2, 3, 17, 2, 5, 3, 3, 1, 0, TCONV_F32, PLAIN, true},
    {"depthwise", FIRST, 2, 5, 1, 1, 3, 9, 3, 2, 1, 1, TCONV_F32, EPILOGUE, false},
    {"depthwise, channels last", LAST, 1, 19, 1, 1, 3, 7, 3, 2, 1, 1, TCONV_F16, PLAIN, false},
    {"vectors of channels", LAST, 1, 16, 1, 1, 3, 5, 3, 2, 1, 1, TCONV_F16, EPILOGUE, false},
    {"vectors of outputs", FIRST, 1, 2, 1, 1, 3, 8, 4, 2, 1, 1, TCONV_BF16, EPILOGUE, false},
    {"phases as lanes", FIRST, 1, 1, 3, 2, 3, 5, 8, 4, 1, 3, TCONV_F32, PLAIN, false},
    {"without taps", FIRST, 1, 1, 4, 5, 3, 6, 3, 5, 1, 0, TCONV_F32, EPILOGUE, false},
    {"kernel equal to stride", FIRST, 1, 1, 6, 3, 3, 6, 2, 2, 1, 0, TCONV_F16, PLAIN, false},
    {"kernel equal to stride, channels last", LAST, 2, 1, 5, 19, 3, 13, 2, 2, 1, 0, TCONV_F32,
     EPILOGUE, false},
    {"kernel below the stride, channels last", LAST, 1, 2, 3, 17, 2, 7, 2, 3, 1, 0, TCONV_F64,
     PLAIN, false},
    {"many channels", FIRST, 4, 1, 37, 18, 1, 1, 4, 1, 1, 0, TCONV_F32, PLAIN, false},
    {"bytes", FIRST, 1, 1, 5, 7, 3, 5, 3, 2, 1, 1, TCONV_U8, ZERO_POINTS, true},
    {"bytes in fours", FIRST, 1, 1, 8, 7, 3, 5, 3, 2, 1, 1, TCONV_I8, PLAIN, false},
    {"bytes, channels last", LAST, 1, 1, 16, 5, 2, 3, 3, 2, 1, 1, TCONV_U8, ZERO_POINTS, false},
    {"bytes, depthwise", LAST, 1, 17, 1, 1, 2, 5, 3, 2, 1, 1, TCONV_I8, PLAIN, false},
    {"fast arithmetic", FIRST, 1, 1, 3, 4, 5, 9, 3, 1, 1, 1, TCONV_F32, PLAIN, false},
    {"upsampling", UPSAMPLED, 2, 1, 3, 5, 3, 9, 3, 2, 1, 1, TCONV_F32, EPILOGUE, false},
    {"upsampling, other pads", UPSAMPLED, 1, 2, 3, 2, 2, 5, 3, 2, 1, 2, TCONV_F32, PLAIN, false},
    {"long rows", FIRST, 1, 1, 2, 3, 1, 70, 8, 2, 1, 3, TCONV_F32, PLAIN, false},
};

static tconv_problem problem_of(const struct row *r)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    const int64_t in = r->groups * r->in;
    p.operation = TCONV_ONEAPI_CONV_BACKPROP;
    p.groups = r->groups;
    p.data_type = p.filter_type = r->type;
    if (r->form == LAST) {
        p.data_format = TCONV_NXC;
        p.filter_format = TCONV_XIO;
        set_shape(&p.data, 4, (int64_t[]){r->batch, r->y, r->x, in});
        set_shape(&p.filter, 4, (int64_t[]){r->k, r->k, r->out, in});
    } else {
        p.data_format = TCONV_NCX;
        p.filter_format = TCONV_OIX;
        set_shape(&p.data, 4, (int64_t[]){r->batch, in, r->y, r->x});
        set_shape(&p.filter, 4, (int64_t[]){in, r->out, r->k, r->k});
    }
    if (r->form == UPSAMPLED) {
        p.operation = TCONV_UPSAMPLE_CONV;
        set_shape(&p.filter, 4, (int64_t[]){r->groups * r->out, r->in, r->k, r->k});
    }
    set_list(&p.strides, 2, (int64_t[]){r->s, r->s});
    set_list(&p.dilations, 2, (int64_t[]){r->d, r->d});
    set_list(&p.pads_begin, 2, (int64_t[]){r->pad, r->pad});
    set_list(&p.pads_end, 2, (int64_t[]){r->pad, r->pad});
    return p;
}

static void run_all(const tconv_problem *p, const tconv_epilogue *epilogue, bool tiles,
                    unsigned number)
{
    struct tensors t;
    make_tensors(p, REAL_NUMBERS, number, &t);
    if (epilogue != NULL) make_epilogue(p, epilogue, number, &t);
    t.math = TCONV_MATH_FAST; /* without it, some algorithms refuse; the others do not change */
    const bool bias = epilogue != NULL ? epilogue->bias : true;
    for (int d = 0; d < device_count; d++)
        for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
            const char *algorithm = tconv_algorithm_name(a);
            if (!tiles && strcmp(algorithm, "matrix_group") == 0) continue;
            /* The least run has half of them, and each algorithm once at least. */
            if (sample_is_least() && taken[a] > 0 && (number + (unsigned)a) % 2 == 0) continue;
            if (!run_algorithm(&devices[d], p, algorithm, bias, &t, ALWAYS)) continue;
            compare_with_oracle(&devices[d], p, algorithm, bias, &t);
            taken[a]++;
        }
    free_tensors(&t);
}

static void the_list_has_problems_for_every_algorithm(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tconv_problem p = problem_of(&rows[i]);
        tconv_epilogue e = TCONV_EPILOGUE_INIT;
        e.bias = true;
        if (rows[i].finish == EPILOGUE) {
            e.activation = TCONV_ACTIVATION_LEAKY_RELU;
            e.a = 0.1;
            e.residual = true;
            e.beta = 0.5;
        }
        if (rows[i].finish == ZERO_POINTS) {
            p.filter_type = TCONV_I8;
            p.output_type = TCONV_U8;
            e.requantize = e.scale = true;
            e.data_zero_point = 131;
            e.filter_zero_point = 5;
            e.output_zero_point = 100;
        } else if (rows[i].type == TCONV_I8)
            p.output_type = TCONV_I32;
        print_message("%s\n", rows[i].why);
        run_all(&p, rows[i].finish == PLAIN ? NULL : &e, rows[i].tiles, 1 + (unsigned)i);
    }
    for (int a = 0; tconv_algorithm_name(a) != NULL; a++)
        if (taken[a] == 0) failed("no problem of the list is for %s", tconv_algorithm_name(a));
}

/* Each algorithm has its part of them, and may take some that are drawn for another. */
static void random_problems_for_every_algorithm(void **state)
{
    (void)state;
    enum { MOST_WORK = 10000 };
    unsigned seed = sample_seed();
    for (int i = 0; i < random_problems;)
        for (int a = 0; tconv_algorithm_name(a) != NULL && i < random_problems; a++) {
            const char *algorithm = tconv_algorithm_name(a);
            if (strcmp(algorithm, "matrix_group") == 0) continue; /* see `tiles` */
            if (never_runs(&devices[0], algorithm)) continue;
            const int before = taken[a];
            tconv_problem p;
            if (!random_problem_for(&devices[0], algorithm, MOST_WORK, &seed, &p))
                failed("%s takes no random problem", algorithm);
            run_all(&p, NULL, false, 100 + (unsigned)i++);
            if (taken[a] == before) failed("%s did not run what was drawn for it", algorithm);
        }
}

int main(int argc, char **argv)
{
    if (argc > 1) random_problems = atoi(argv[1]);
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_list_has_problems_for_every_algorithm),
                                       cmocka_unit_test(random_problems_for_every_algorithm)};
    return cmocka_run_group_tests_name("accesses", tests, open_all_devices, close_all_devices);
}
