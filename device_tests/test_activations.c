/* SPDX-License-Identifier: Apache-2.0 */
/* Every activation over the whole range of its numbers, in every floating-point type: zeros,
 * subnormal and huge numbers, infinities, NaN, and numbers around 0. Tails are where a formula may
 * cancel or overflow. */
#include "support.h"
#include "verdicts.h"

#include "common/activation_list.h"
#include "oracle/oracle.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_VALUES = 4000, CHANNELS = 7 };
static double values[MOST_VALUES];
static int value_count;

static void add_both_signs(double value)
{
    assert_true(value_count + 2 <= MOST_VALUES);
    values[value_count++] = value;
    values[value_count++] = -value;
}

static int fill_values(void **state)
{
    for (int exponent = -151; exponent < 128; exponent++) /* f64 has no more, since f32 has none */
        for (int i = 0; i < 3; i++) add_both_signs(ldexp(1 + 0.3 * i, exponent));
    for (int i = 0; i <= 800; i++) add_both_signs(i / 8.0); /* to 100: exp(-100) is subnormal */
    for (int exponent = -38; exponent <= 38; exponent++) add_both_signs(pow(10, exponent));
    add_both_signs(0);
    add_both_signs(INFINITY);
    add_both_signs(NAN);
    return open_all_devices(state);
}

/* A tap of 1: the sums are the values, for each of the channels. */
static tconv_problem identity(tconv_type type)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    p.data_type = p.filter_type = type;
    set_shape(&p.data, 3, (int64_t[]){1, 1, value_count});
    set_shape(&p.filter, 3, (int64_t[]){1, CHANNELS, 1});
    return p;
}

static void make_values(const tconv_problem *p, tconv_activation activation, struct tensors *t)
{
    static const double slopes[CHANNELS] = {0.3, -2.5, 0, 60, 1e-3, NAN, 1};
    static const double slopes2[CHANNELS] = {2, -0.4, 1, 0, 50, 2, NAN};
    tconv_epilogue e = TCONV_EPILOGUE_INIT;
    e.activation = activation;
    const int parameters = tconv_activation_parameter_count(activation);
    if (parameters > 0) e.a = parameters == 2 ? -0.7 : 0.3;
    if (parameters > 1) e.b = 1.9;
    make_tensors(p, SMALL_INTEGERS, 1, t);
    make_epilogue(p, &e, 1, t);
    for (int i = 0; i < value_count; i++) tconv_oracle_write(p->data_type, t->data, i, values[i]);
    for (int c = 0; c < CHANNELS; c++) {
        tconv_oracle_write(p->filter_type, t->filter, c, 1);
        tconv_oracle_write(tconv_scale_type(p->data_type), t->slope, c, slopes[c]);
        if (t->slope2 != NULL)
            tconv_oracle_write(tconv_scale_type(p->data_type), t->slope2, c, slopes2[c]);
    }
}

static struct tconv_expected expected_at(const tconv_problem *p, const struct tensors *t,
                                         int64_t index)
{
    const struct tconv_operands operands = {.problem = p,
                                            .geometry = &t->geometry,
                                            .epilogue = &t->epilogue,
                                            .data = t->data,
                                            .filter = t->filter,
                                            .slope = t->slope,
                                            .slope2 = t->slope2};
    return tconv_oracle_element(&operands, index);
}

static void compare(const struct device *device, const tconv_problem *p, const char *algorithm,
                    const struct tensors *t)
{
    for (int64_t i = 0; i < (int64_t)t->output_count; i++) {
        const struct tconv_expected expected = expected_at(p, t, i);
        if (tconv_oracle_error(&expected, t->geometry.output_type, t->output, i) <= 1) continue;
        failed("%s of %.9g in %s, channel %lld, is %.9g with %s on device %d; %.9g is right, at "
               "most %.3g off",
               tconv_activation_name(t->epilogue.activation), values[i % value_count],
               tconv_type_name(p->data_type), (long long)(i / value_count),
               tconv_oracle_read(t->geometry.output_type, t->output, i), algorithm, device->number,
               expected.value, expected.bound);
    }
}

/* Runs two of the algorithms that take the problem, from number `first` on; one is in every sample.
 * All of them finish sums with the same lines. */
static void run_algorithms(const struct device *device, const tconv_problem *p, int first,
                           struct tensors *t)
{
    int algorithms = 0, ran = 0;
    while (tconv_algorithm_name(algorithms) != NULL) algorithms++;
    for (int i = 0; i < algorithms && ran < 2; i++) {
        const char *algorithm = tconv_algorithm_name((first + i) % algorithms);
        bool known;
        if (!run_case(device, p, algorithm, false, t, ran == 0 ? ALWAYS : IF_NEEDED, 0, &known))
            continue;
        if (!known) compare(device, p, algorithm, t);
        case_passed();
        ran++;
    }
    if (ran == 0 && (p->data_type != TCONV_F64 || device->info->double_arithmetic))
        failed("no algorithm took %s", tconv_type_name(p->data_type));
}

static void activations_are_right_everywhere(void **state)
{
    (void)state;
    static const tconv_type types[] = {TCONV_F32, TCONV_F16, TCONV_BF16, TCONV_F64};
    for (int activation = TCONV_ACTIVATION_RELU; activation < ACTIVATION_COUNT; activation++)
        for (int i = 0; i < 4; i++) {
            tconv_problem p = identity(types[i]);
            /* The tails of 16-bit types are seen in f32, too. */
            if (activation % 2 == 0 && tconv_type_size(types[i]) == 2) p.output_type = TCONV_F32;
            struct tensors t;
            make_values(&p, (tconv_activation)activation, &t);
            for (int d = 0; d < device_count; d++)
                run_algorithms(&devices[d], &p, activation * 4 + i, &t);
            free_tensors(&t);
        }
}

/* Layers of which each algorithm takes one. */
static tconv_problem layer_for_slopes(int number)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    set_shape(&p.data, 4, (int64_t[]){1, 6, 5, 7});
    set_shape(&p.filter, 4, (int64_t[]){6, 5, 3, 3});
    p.strides = (tconv_list){2, {2, 2}};
    switch (number) {
    case 1:
        p.strides = (tconv_list){2, {1, 8}};
        set_shape(&p.filter, 4, (int64_t[]){6, 5, 3, 8});
        break;
    case 2: /* depthwise, channels last */
        p.operation = TCONV_ONEAPI_CONV_BACKPROP;
        p.groups = 20;
        set_shape(&p.data, 4, (int64_t[]){1, 5, 7, 20});
        set_shape(&p.filter, 4, (int64_t[]){3, 3, 1, 20});
        break;
    case 3: /* nearest upsampling and a convolution */
        p.operation = TCONV_UPSAMPLE_CONV;
        set_shape(&p.filter, 4, (int64_t[]){5, 6, 3, 3});
        p.pads_begin = p.pads_end = (tconv_list){2, {1, 1}};
        break;
    case 4: p.data_type = p.filter_type = TCONV_F16; break;
    case 5: p.data_type = p.filter_type = TCONV_U8; break;
    default: break;
    }
    return p;
}

/* The second slope is an argument of each algorithm's kernels, and each lays out slopes for the
 * lanes of its own tiles. */
static void both_slopes_reach_every_algorithm(void **state)
{
    (void)state;
    enum { LAYERS = 6 };
    for (int d = 0; d < device_count; d++)
        for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
            const char *algorithm = tconv_algorithm_name(a);
            bool ran = false;
            for (int i = 0; i < LAYERS && !ran; i++) {
                const tconv_problem p = layer_for_slopes(i);
                const bool bytes = p.data_type == TCONV_U8;
                tconv_epilogue e = TCONV_EPILOGUE_INIT;
                struct tensors t;
                e.activation = TCONV_ACTIVATION_SNAKEBETA;
                e.requantize = bytes;
                e.scale = bytes;
                make_tensors(&p, bytes ? SMALL_INTEGERS : REAL_NUMBERS, 1, &t);
                make_epilogue(&p, &e, 1, &t);
                t.math = TCONV_MATH_FAST;
                ran = check_algorithm(&devices[d], &p, algorithm, false, &t, ALWAYS);
                free_tensors(&t);
            }
            if (!ran) failed("%s took no layer with two slopes", algorithm);
        }
}

/* What the documents say of infinite sums; a kernel that follows another formula fails above. */
static void limits_are_those_of_the_documents(void **state)
{
    (void)state;
    static const struct {
        tconv_activation activation;
        double below, above; /* at -infinity and infinity */
    } limits[] = {
        {TCONV_ACTIVATION_RELU, 0, INFINITY},
        {TCONV_ACTIVATION_RELU6, 0, 6},
        {TCONV_ACTIVATION_SIGMOID, 0, 1},
        {TCONV_ACTIVATION_TANH, -1, 1},
        {TCONV_ACTIVATION_GELU, NAN, INFINITY},
        {TCONV_ACTIVATION_GELU_TANH, NAN, INFINITY},
        {TCONV_ACTIVATION_SILU, NAN, INFINITY},
        {TCONV_ACTIVATION_MISH, NAN, INFINITY},
        {TCONV_ACTIVATION_HARDSWISH, 0, INFINITY},
        {TCONV_ACTIVATION_SNAKE, -INFINITY, INFINITY},
        {TCONV_ACTIVATION_SNAKEBETA, -INFINITY, INFINITY},
        {TCONV_ACTIVATION_ELU, -(double)0.3f, INFINITY},
    };
    const tconv_problem p = identity(TCONV_F32);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct tensors t;
        make_values(&p, limits[i].activation, &t);
        for (int64_t at = 0; at < value_count; at++) {
            if (!isinf(values[at])) continue;
            const struct tconv_expected e = expected_at(&p, &t, at);
            const double wanted = values[at] < 0 ? limits[i].below : limits[i].above;
            if (isnan(wanted) ? isnan(e.value) : e.value == wanted && !(e.bound > 1e-4)) continue;
            failed("%s of %g is %.17g +- %g; %.17g is right",
                   tconv_activation_name(limits[i].activation), values[at], e.value, e.bound,
                   wanted);
        }
        free_tensors(&t);
    }
}

/* The oracle allows next to nothing where a function vanishes, however large its argument is. */
static void bounds_vanish_with_the_function(void **state)
{
    (void)state;
    static const tconv_activation vanishing[] = {TCONV_ACTIVATION_SIGMOID, TCONV_ACTIVATION_GELU,
                                                 TCONV_ACTIVATION_GELU_TANH, TCONV_ACTIVATION_SILU,
                                                 TCONV_ACTIVATION_MISH};
    static const tconv_type types[] = {TCONV_F32, TCONV_F64};
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < sizeof vanishing / sizeof *vanishing; k++) {
            const tconv_problem p = identity(types[i]);
            struct tensors t;
            make_values(&p, vanishing[k], &t);
            for (int64_t at = 0; at < value_count; at++) {
                const struct tconv_expected e = expected_at(&p, &t, at);
                if (!(values[at] < -2) || e.special) continue;
                if (!(e.bound <= 1e-3 * fabs(e.value) + 128 * (double)FLT_MIN))
                    failed("%s of %g in %s is %g: %g off would pass",
                           tconv_activation_name(vanishing[k]), values[at],
                           tconv_type_name(types[i]), e.value, e.bound);
            }
            free_tensors(&t);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(activations_are_right_everywhere),
                                       cmocka_unit_test(both_slopes_reach_every_algorithm),
                                       cmocka_unit_test(limits_are_those_of_the_documents),
                                       cmocka_unit_test(bounds_vanish_with_the_function)};
    return cmocka_run_group_tests_name("activations", tests, fill_values, close_all_devices);
}
