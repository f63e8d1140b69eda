/* SPDX-License-Identifier: Apache-2.0 */
/* Element types and epilogues: every algorithm against the oracle for all types, exhaustive
 * rounding of f16 and bf16, every activation, quantised layers. */
#include "random_problem.h"
#include "support.h"
#include "verdicts.h"

#include "base/view.h"
#include "common/activation_list.h"
#include "oracle/oracle.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* How often each algorithm took a problem: an algorithm that takes none would pass by doing
 * nothing. */
static int taken[32];

static tconv_problem plane(bool last, int64_t batch, int64_t in, int64_t out, int64_t groups,
                           int64_t y, int64_t x, int64_t k, int64_t s, int64_t d, int64_t pad)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    p.operation = TCONV_ONEAPI_CONV_BACKPROP;
    p.data_format = last ? TCONV_NXC : TCONV_NCX;
    p.filter_format = last ? TCONV_XIO : TCONV_OIX;
    p.groups = groups;
    if (last) {
        set_shape(&p.data, 4, (int64_t[]){batch, y, x, in});
        set_shape(&p.filter, 4, (int64_t[]){k, k, out / groups, in});
    } else {
        set_shape(&p.data, 4, (int64_t[]){batch, in, y, x});
        set_shape(&p.filter, 4, (int64_t[]){in, out / groups, k, k});
    }
    set_list(&p.strides, 2, (int64_t[]){s, s});
    set_list(&p.dilations, 2, (int64_t[]){d, d});
    set_list(&p.pads_begin, 2, (int64_t[]){pad, pad});
    set_list(&p.pads_end, 2, (int64_t[]){pad, pad});
    return p;
}

/* Small problems that between them take every algorithm through its ways of storing. */
static tconv_problem problem_of(int which)
{
    switch (which % 6) {
    case 0: return plane(false, 2, 5, 7, 1, 5, 37, 4, 2, 1, 1);   /* merged phases */
    case 1: return plane(true, 1, 19, 19, 19, 4, 21, 3, 2, 1, 1); /* depthwise, channels last */
    case 2: return plane(false, 1, 3, 2, 1, 3, 9, 8, 4, 1, 3);    /* phases as lanes */
    case 3: return plane(true, 2, 6, 34, 2, 3, 6, 3, 3, 1, 0);    /* channels as lanes, groups */
    case 4: return plane(false, 3, 2, 3, 1, 4, 5, 3, 2, 3, 2);    /* dilation, images in a vector */
    default: return plane(false, 1, 4, 5, 1, 4, 18, 3, 5, 1, 0);  /* outputs that no tap reaches */
    }
}

/* One of so many cases is in every sample. */
enum { OF_TYPES = 6, OF_EPILOGUES = 8 };

static unsigned case_number(unsigned seed, int algorithm, int one_of)
{
    return (seed + (unsigned)algorithm) % (unsigned)one_of == 1 ? ALWAYS : seed + 1;
}

/* Runs every algorithm that takes the problem, and compares. */
static void run_algorithms(const tconv_problem *p, const tconv_epilogue *epilogue,
                           enum contents contents, unsigned seed)
{
    struct tensors t;
    make_tensors(p, contents, seed, &t);
    if (epilogue != NULL) make_epilogue(p, epilogue, seed + 1, &t);
    for (int d = 0; d < device_count; d++)
        for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
            if (epilogue != NULL && (seed + (unsigned)a) % 2 == 0 &&
                tconv_algorithm_name(a + 1) != NULL)
                continue; /* with epilogues half of the algorithms, in turn */
            const char *algorithm = tconv_algorithm_name(a);
            const bool bias = epilogue != NULL ? epilogue->bias : (seed + (unsigned)a) % 2 == 0;
            const int one_of = epilogue != NULL ? OF_EPILOGUES : OF_TYPES;
            taken[a] +=
                check_algorithm(&devices[d], p, algorithm, bias, &t, case_number(seed, a, one_of));
        }
    free_tensors(&t);
}

static void every_type_in_every_algorithm(void **state)
{
    (void)state;
    for (int type = TCONV_F16; tconv_type_size((tconv_type)type) != 0; type++) {
        /* The others differ from these in how they are read and stored only. */
        const bool alone = type == TCONV_F16 || type == TCONV_BF16 || type == TCONV_F64 ||
                           type == TCONV_I8 || type == TCONV_U64;
        for (int i = 0; i < (alone ? 3 : 1); i++) {
            tconv_problem p = problem_of(alone ? 2 * i + type % 2 : type);
            p.data_type = p.filter_type = (tconv_type)type;
            run_algorithms(&p, NULL, REAL_NUMBERS, (unsigned)(type * 3 + i));
        }
    }
}

/* So many channels that tiles for GPUs are as large as they become. */
static void many_channels(void **state)
{
    (void)state;
    static const tconv_type types[] = {TCONV_F16, TCONV_BF16, TCONV_U8};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        tconv_problem p = plane(i == 1, 2, 45, 131, 1, 6, 7, 4, 2, 1, 1);
        p.data_type = p.filter_type = types[i];
        if (types[i] == TCONV_U8) p.output_type = TCONV_I32;
        run_algorithms(&p, NULL, REAL_NUMBERS, (unsigned)(9000 + i));
    }
}

/* Channels last that fill 16 bytes whole: an algorithm may move them at once. */
static void quads_of_channels(void **state)
{
    (void)state;
    static const tconv_type types[] = {TCONV_F16, TCONV_U8, TCONV_I8, TCONV_U8};
    for (int i = 0; i < 4; i++) {
        tconv_problem p = plane(true, 2, 48, 18, 1, 3, 5, 3, 2, 1, 1);
        p.data_type = p.filter_type = types[i];
        if (types[i] != TCONV_F16) p.output_type = TCONV_I32;
        tconv_epilogue e = TCONV_EPILOGUE_INIT;
        e.data_zero_point = 131;
        run_algorithms(&p, types[i] == TCONV_U8 ? &e : NULL, REAL_NUMBERS, 9100 + (unsigned)i);
    }
}

static void outputs_of_other_types(void **state)
{
    (void)state;
    static const tconv_type types[][3] = {
        {TCONV_F16, TCONV_F16, TCONV_F32}, {TCONV_F32, TCONV_BF16, TCONV_F32},
        {TCONV_F32, TCONV_F16, TCONV_F32}, {TCONV_BF16, TCONV_BF16, TCONV_F32},
        {TCONV_U8, TCONV_I8, TCONV_I32},   {TCONV_U8, TCONV_U8, TCONV_I32},
        {TCONV_I8, TCONV_I8, TCONV_U8}};
    for (int i = 0; i < 7; i++) {
        tconv_problem p = problem_of(i);
        p.data_type = types[i][0];
        p.filter_type = types[i][1];
        p.output_type = types[i][2];
        run_algorithms(&p, NULL, REAL_NUMBERS, (unsigned)i);
    }
}

/* What each kind of operator makes of a filter; in the last two it is not the one that is packed.
 */
static tconv_problem light_problem(int which)
{
    tconv_problem p = problem_of(which);
    if (which == 5) {
        p.operation = TCONV_GROUP_CONV_BACKPROP;
        p.data_format = TCONV_DATA_DEFAULT;
        p.filter_format = TCONV_FILTER_DEFAULT;
        p.groups = 0;
        set_shape(&p.filter, 5, (int64_t[]){2, 2, 5, 3, 3});
    }
    if (which < 6) return p;
    p = plane(false, 1, 6, 9, 1, 5, 18, 3, 2, 1, 1);
    p.operation = which == 6 ? TCONV_UPSAMPLE_CONV : TCONV_CONV_PIXEL_SHUFFLE;
    set_shape(&p.filter, 4, (int64_t[]){which == 6 ? 9 : 12, 6, 3, 3});
    return p;
}

/* Runs every algorithm on `other`, whose weights are those of `plain` but lie otherwise, and
 * compares the outputs' bits. Returns how often. */
static int same_bits(const tconv_problem *plain, struct tensors *t, const tconv_problem *other,
                     struct tensors *of_other, unsigned number)
{
    int compared = 0;
    t->math = of_other->math = TCONV_MATH_FAST; /* some algorithms are for this only */
    memcpy(of_other->data, t->data, (size_t)t->geometry.data_bytes);
    memcpy(of_other->bias, t->bias, t->channels * tconv_type_size(t->geometry.output_type));
    for (int d = 0; d < device_count; d++)
        for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
            const char *const algorithm = tconv_algorithm_name(a);
            tconv_error error;
            bool known;
            /* Each case compiles two programs, and their other features are tested elsewhere. */
            if (!sample_is_whole() && (number + (unsigned)a) % OF_TYPES != 1) continue;
            if (!run_case(&devices[d], other, algorithm, true, of_other,
                          case_number(number, a, OF_TYPES), 0, &known))
                continue;
            compared++;
            if (known) continue;
            assert_int_equal(run_guarded(&devices[d], plain, algorithm, true, t, &error), TCONV_OK);
            if (memcmp(t->output, of_other->output, (size_t)t->geometry.output_bytes) != 0) {
                char text[1000];
                tconv_problem_text(other, text, sizeof text);
                failed("%s on device %d gives other bits for %s than for a dense filter of the "
                       "data's type",
                       algorithm, devices[d].number, text);
            }
            case_passed();
        }
    return compared;
}

/* A filter that has its axes in another order in memory, and room between them. */
static void filters_with_steps_are_packed(void **state)
{
    (void)state;
    int compared = 0;
    for (int i = 0; i < 8; i++) {
        tconv_problem plain = light_problem(i);
        if (i % 3 == 2) plain.data_type = plain.filter_type = TCONV_F16;
        tconv_problem spaced = plain;
        unsigned seed = 60 + (unsigned)i;
        do {
            random_filter_steps(&seed, &spaced);
        } while (spaced.filter_steps.value[spaced.filter.rank - 1] == 1);
        struct tensors t, of_spaced;
        make_tensors(&plain, REAL_NUMBERS, 40, &t);
        make_tensors(&spaced, REAL_NUMBERS, 40, &of_spaced);
        const struct tconv_view view =
            tconv_view_of(&spaced, &of_spaced.geometry, TCONV_SPACED_FILTER);
        tconv_view_gather(&view, tconv_type_size(plain.filter_type), of_spaced.filter, t.filter);
        compared += same_bits(&plain, &t, &spaced, &of_spaced, (unsigned)i + 3);
        free_tensors(&t);
        free_tensors(&of_spaced);
    }
    assert_true(compared >= 8);
}

/* Weights of f16 or bf16 beside data of f32 give the bits of the same weights in f32. */
static void light_weights_are_converted(void **state)
{
    (void)state;
    int compared = 0;
    for (int i = 0; i < 8; i++) {
        const tconv_problem plain = light_problem(i);
        tconv_problem light = plain;
        light.filter_type = i % 2 == 0 ? TCONV_F16 : TCONV_BF16;
        struct tensors t, of_light;
        make_tensors(&plain, REAL_NUMBERS, 40, &t);
        make_tensors(&light, REAL_NUMBERS, 40, &of_light);
        memcpy(of_light.filter, (uint16_t[]){1, 0x3555}, 2 * sizeof(uint16_t)); /* subnormal */
        if (i % 4 == 3) tconv_oracle_write(light.filter_type, of_light.filter, 5, INFINITY);
        for (size_t w = 0; w < t.filter_count; w++)
            t.filter[w] = (float)tconv_oracle_read(light.filter_type, of_light.filter, (int64_t)w);
        compared += same_bits(&plain, &t, &light, &of_light, (unsigned)i);
        free_tensors(&t);
        free_tensors(&of_light);
    }
    assert_true(compared >= 8);
}

/* Zero points and saturation, borders included: padding counts as the zero point. */
static void quantised_layers(void **state)
{
    (void)state;
    static const tconv_type outputs[] = {TCONV_I8, TCONV_U8, TCONV_I32,
                                         TCONV_U8, TCONV_I8, TCONV_U8};
    for (int i = 0; i < 6; i++) {
        tconv_problem p = problem_of(i);
        p.data_type = i % 2 == 0 ? TCONV_U8 : TCONV_I8;
        p.filter_type = TCONV_I8;
        p.output_type = outputs[i];
        tconv_epilogue e = TCONV_EPILOGUE_INIT;
        e.requantize = outputs[i] != TCONV_I32;
        e.data_zero_point = i % 2 == 0 ? 131 : -7;
        e.filter_zero_point = i % 3 == 0 ? 5 : 0;
        e.output_zero_point = !e.requantize ? 0 : outputs[i] == TCONV_U8 ? 100 : -11;
        e.bias = i % 3 != 1;
        e.scale = e.requantize;
        if (i == 3) e.activation = TCONV_ACTIVATION_RELU;
        run_algorithms(&p, &e, REAL_NUMBERS, (unsigned)i);
    }
}

static void every_activation_in_every_algorithm(void **state)
{
    (void)state;
    for (int activation = TCONV_ACTIVATION_NONE; activation < ACTIVATION_COUNT; activation++) {
        tconv_problem p = problem_of(activation);
        p.data_type = p.filter_type = activation % 4 == 3 ? TCONV_F16 : TCONV_F32;
        tconv_epilogue e = TCONV_EPILOGUE_INIT;
        e.activation = (tconv_activation)activation;
        const int parameters = tconv_activation_parameter_count(e.activation);
        e.a = parameters == 0 ? 0 : parameters == 2 ? -0.7 : 0.3;
        e.b = parameters < 2 ? 0 : 1.9;
        e.bias = activation % 2 == 0;
        e.scale = activation % 3 == 0;
        e.residual = activation % 5 < 2;
        e.alpha = activation % 3 == 1 ? -0.6 : 1;
        e.beta = activation % 4 == 2 ? 1.5 : 0;
        run_algorithms(&p, &e, REAL_NUMBERS, (unsigned)activation);
    }
}

/* Several tiles in a row of which the last is not whole, in bands or blocks that lack rows or
 * channels: what a tile stores beyond itself would be read by the next. */
static void outputs_before_count_once(void **state)
{
    (void)state;
    const tconv_problem problems[] = {
        plane(false, 1, 3, 3, 3, 6, 70, 3, 2, 1, 1),
        plane(false, 1, 3, 17, 1, 3, 101, 3, 2, 1, 1),
        plane(true, 1, 19, 19, 19, 3, 24, 3, 2, 1, 1),
    };
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        tconv_epilogue e = TCONV_EPILOGUE_INIT;
        e.beta = 0.5;
        run_algorithms(&problems[i], &e, REAL_NUMBERS, (unsigned)i);
    }
}

static void epilogues_of_f64(void **state)
{
    (void)state;
    static const tconv_activation activations[] = {TCONV_ACTIVATION_GELU, TCONV_ACTIVATION_PRELU};
    for (int i = 0; i < 2; i++) {
        tconv_problem p = problem_of(3 * i);
        p.data_type = p.filter_type = TCONV_F64;
        tconv_epilogue e = TCONV_EPILOGUE_INIT;
        e.activation = activations[i];
        e.bias = e.scale = e.residual = true;
        e.alpha = 0.1;
        e.beta = -0.3;
        run_algorithms(&p, &e, REAL_NUMBERS, (unsigned)i);
    }
}

/* One channel, one tap: every algorithm must give the same bits, since nothing is added in another
 * order. */
static void same_bits_from_every_algorithm(void **state)
{
    (void)state;
    tconv_problem p = plane(false, 1, 1, 1, 1, 4, 33, 1, 1, 1, 0);
    p.data_type = p.filter_type = TCONV_BF16;
    tconv_epilogue e = TCONV_EPILOGUE_INIT;
    e.activation = TCONV_ACTIVATION_LEAKY_RELU;
    e.a = 0.1;
    e.bias = e.scale = e.residual = true;
    e.alpha = 0.3;
    struct tensors t;
    make_tensors(&p, REAL_NUMBERS, 5, &t);
    make_epilogue(&p, &e, 6, &t);
    for (int d = 0; d < device_count; d++) {
        uint16_t first[4 * 33];
        int algorithms = 0;
        for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
            tconv_error error;
            if (run_guarded(&devices[d], &p, tconv_algorithm_name(a), true, &t, &error) != TCONV_OK)
                continue;
            if (algorithms++ == 0) memcpy(first, t.output, sizeof first);
            assert_memory_equal(first, t.output, sizeof first);
        }
        assert_true(algorithms >= (never_runs(&devices[d], "packed_vector") ? 3 : 5));
    }
    free_tensors(&t);
}

/* What a type with 16 bits holds for a number; NaN is any NaN. */
static bool same_element(tconv_type type, uint16_t got, uint16_t wanted)
{
    const double a = tconv_oracle_read(type, &got, 0), b = tconv_oracle_read(type, &wanted, 0);
    return isnan(b) ? isnan(a) : a == b; /* sums begin with 0: -0 becomes 0 */
}

/* Subnormals of bf16 are those of f32, which a device may flush to zero. */
static bool may_be_flushed(tconv_type type, uint16_t wanted, uint16_t got)
{
    return type == TCONV_BF16 && (wanted & 0x7f80) == 0 && (got & 0x7fff) == 0;
}

static void all_65536(tconv_type type, const tconv_problem *p, const uint16_t *weights,
                      const uint16_t *data, const uint16_t *wanted)
{
    for (int d = 0; d < device_count; d++)
        for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
            struct tensors t;
            make_tensors(p, SMALL_INTEGERS, 1, &t);
            memcpy(t.data, data, (size_t)t.geometry.data_bytes);
            memcpy(t.filter, weights, (size_t)t.geometry.filter_bytes);
            const char *algorithm = tconv_algorithm_name(a);
            bool known;
            const bool ran = run_case(&devices[d], p, algorithm, false, &t, 6000 + (unsigned)a,
                                      hash_bytes(0, wanted, 65536 * sizeof *wanted), &known);
            const uint16_t *output = (const uint16_t *)t.output;
            for (int i = 0; ran && !known && i < 65536; i++)
                if (!same_element(type, output[i], wanted[i]) &&
                    !may_be_flushed(type, wanted[i], output[i]))
                    failed("%s on device %d makes %04x of %s %04x; %04x is right", algorithm,
                           devices[d].number, output[i], tconv_type_name(type), data[i], wanted[i]);
            if (ran) case_passed();
            free_tensors(&t);
        }
}

/* Every element through a 1x1 identity, and every element plus half of its last place: exactly
 * between two neighbours. */
static void rounding_is_exhaustive(void **state)
{
    (void)state;
    uint16_t *data = malloc(2 * 65536 * sizeof *data), *wanted = malloc(65536 * sizeof *wanted);
    assert_non_null(data);
    assert_non_null(wanted);
    for (int t = 0; t < 2; t++) {
        const tconv_type type = t == 0 ? TCONV_F16 : TCONV_BF16;
        uint16_t ones[2];
        for (int i = 0; i < 2; i++) tconv_oracle_write(type, ones, i, 1);
        for (int i = 0; i < 65536; i++) wanted[i] = data[i] = (uint16_t)i;
        tconv_problem p = plane(false, 1, 1, 1, 1, 64, 1024, 1, 1, 1, 0);
        p.data_type = p.filter_type = type;
        all_65536(type, &p, ones, data, wanted);

        const uint16_t exponents = type == TCONV_F16 ? 0x7c00 : 0x7f80;
        const int digits = type == TCONV_F16 ? 11 : 8;
        for (int i = 0; i < 65536; i++) {
            const double x = tconv_oracle_read(type, data, i);
            int exponent = 0;
            frexp(x, &exponent);
            double half = isfinite(x) && x != 0 ? ldexp(x < 0 ? -1 : 1, exponent - digits - 1) : 0;
            /* Where half of the last place cannot be stored as an element: nothing is added. */
            tconv_oracle_write(type, data, 65536 + i, half);
            if (tconv_oracle_read(type, data, 65536 + i) != half || (data[i] & exponents) == 0) {
                half = 0;
                tconv_oracle_write(type, data, 65536 + i, 0);
            }
            tconv_oracle_write(type, wanted, i, x + half);
        }
        p = plane(false, 1, 2, 1, 1, 64, 1024, 1, 1, 1, 0);
        p.data_type = p.filter_type = type;
        all_65536(type, &p, ones, data, wanted);
    }
    free(data);
    free(wanted);
}

/* NaN and infinity, in the data or in the filter, reach what uses them, in every floating-point
 * type. */
static void special_values_of_every_type(void **state)
{
    (void)state;
    static const tconv_type types[] = {TCONV_F16, TCONV_BF16, TCONV_F64};
    const double values[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++)
        for (int which = 0; which < 2; which++) {
            tconv_problem p = problem_of((i + 2 * which) % 4);
            p.data_type = p.filter_type = types[i];
            struct tensors t;
            make_tensors(&p, REAL_NUMBERS, 9, &t);
            tconv_oracle_write(types[i], t.data, 4, values[(i + which) % 3]);
            tconv_oracle_write(types[i], t.filter, 7, values[(i + which + 1) % 3]);
            for (int d = 0; d < device_count; d++)
                for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
                    check_algorithm(&devices[d], &p, tconv_algorithm_name(a), true, &t,
                                    case_number((unsigned)(7000 + i + which), a, OF_TYPES));
                }
            free_tensors(&t);
        }
}

/* Epilogues that do not go with their types are refused, with a sentence that says why. */
static void epilogues_are_refused(void **state)
{
    (void)state;
    struct {
        tconv_type data, filter, output;
        tconv_epilogue epilogue;
        tconv_status status;
        const char *word;
    } cases[] = {
        {TCONV_I32, TCONV_I32, 0, TCONV_EPILOGUE_INIT, TCONV_ERROR_UNSUPPORTED, "alpha"},
        {TCONV_I32, TCONV_I32, 0, TCONV_EPILOGUE_INIT, TCONV_ERROR_UNSUPPORTED, "activation"},
        {TCONV_F32, TCONV_F32, 0, TCONV_EPILOGUE_INIT, TCONV_ERROR_TYPE, "requantize"},
        {TCONV_F32, TCONV_F32, 0, TCONV_EPILOGUE_INIT, TCONV_ERROR_ARGUMENT, "data_zero_point"},
        {TCONV_U8, TCONV_I8, TCONV_U8, TCONV_EPILOGUE_INIT, TCONV_ERROR_ARGUMENT, "0 to 255"},
        {TCONV_I8, TCONV_I8, TCONV_I8, TCONV_EPILOGUE_INIT, TCONV_ERROR_UNSUPPORTED, "residual"},
        {TCONV_I8, TCONV_I8, TCONV_I8, TCONV_EPILOGUE_INIT, TCONV_ERROR_ARGUMENT, "requantize"},
        {TCONV_F32, TCONV_F32, 0, TCONV_EPILOGUE_INIT, TCONV_ERROR_ARGUMENT, "not an activation"},
        {TCONV_F32, TCONV_F32, 0, TCONV_EPILOGUE_INIT, TCONV_ERROR_ARGUMENT, "lower number first"},
        {TCONV_F32, TCONV_F32, 0, TCONV_EPILOGUE_INIT, TCONV_ERROR_ARGUMENT, "not a finite f32"},
        {TCONV_F32, TCONV_F32, 0, TCONV_EPILOGUE_INIT, TCONV_ERROR_ARGUMENT, "a is 5, but"},
        {TCONV_F32, TCONV_F32, 0, TCONV_EPILOGUE_INIT, TCONV_ERROR_ARGUMENT, "b is 5, but"},
        {TCONV_F16, TCONV_F32, 0, TCONV_EPILOGUE_INIT, TCONV_ERROR_TYPE, "same element type"},
        {TCONV_F32, TCONV_F32, TCONV_F16, TCONV_EPILOGUE_INIT, TCONV_ERROR_TYPE, "output f16"},
        {TCONV_U8, TCONV_I8, 0, TCONV_EPILOGUE_INIT, TCONV_ERROR_TYPE, "i32, i8 or u8"},
    };
    cases[0].epilogue.alpha = 2;
    cases[1].epilogue.activation = TCONV_ACTIVATION_RELU;
    cases[2].epilogue.requantize = true;
    cases[3].epilogue.data_zero_point = 1;
    cases[4].epilogue.data_zero_point = -3;
    cases[5].epilogue.requantize = cases[5].epilogue.residual = true;
    cases[6].epilogue.filter_zero_point = 4;
    cases[7].epilogue.activation = (tconv_activation)99;
    cases[8].epilogue.activation = TCONV_ACTIVATION_CLAMP;
    cases[8].epilogue.a = 1;
    cases[9].epilogue.alpha = 1e300;
    cases[10].epilogue.activation = TCONV_ACTIVATION_RELU;
    cases[10].epilogue.a = 5;
    cases[11].epilogue.activation = TCONV_ACTIVATION_ELU;
    cases[11].epilogue.b = 5;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tconv_problem p = problem_of(0);
        p.data_type = cases[i].data;
        p.filter_type = cases[i].filter;
        p.output_type = cases[i].output;
        tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
        options.epilogue = cases[i].epilogue;
        tconv_plan *plan = NULL;
        tconv_error error = {TCONV_OK, 0, ""};
        const tconv_status status =
            tconv_plan_create(devices[0].device, &p, &options, &plan, &error);
        if (status != cases[i].status || strstr(error.message, cases[i].word) == NULL)
            failed("case %zu: %s: %s", i, tconv_status_name(status), error.message);
        assert_null(plan);
    }
}

/* A filter that was packed around another zero point does not fit. */
static void filters_know_their_zero_point(void **state)
{
    (void)state;
    tconv_problem p = problem_of(0);
    p.data_type = p.filter_type = TCONV_I8;
    p.output_type = TCONV_I32;
    tconv_plan *plans[2] = {NULL, NULL};
    tconv_packed_filter *filter = NULL;
    struct tensors t;
    make_tensors(&p, SMALL_INTEGERS, 1, &t);
    tconv_error error = {TCONV_OK, 0, ""};
    cl_mem buffer = clCreateBuffer(devices[0].context, CL_MEM_READ_WRITE, 1 << 20, NULL, NULL);
    assert_non_null(buffer);
    for (int i = 0; i < 2; i++) {
        tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
        options.epilogue.data_zero_point = 3;
        options.epilogue.filter_zero_point = i;
        if (tconv_plan_create(devices[0].device, &p, &options, &plans[i], &error) != TCONV_OK)
            failed("%s", error.message);
    }
    assert_int_equal(tconv_packed_filter_create(plans[0], NULL, &filter, &error), TCONV_OK);
    assert_int_equal(tconv_packed_filter_enqueue_pack(filter, devices[0].queue,
                                                      &(tconv_tensor){.memory = buffer}, 0, NULL,
                                                      NULL, &error),
                     TCONV_OK);
    tconv_tensors args = TCONV_TENSORS_INIT;
    args.packed = filter;
    args.data.memory = args.output.memory = buffer;
    assert_int_equal(tconv_plan_enqueue(plans[1], devices[0].queue, &args, 0, NULL, NULL, &error),
                     TCONV_ERROR_MISMATCH);
    assert_non_null(strstr(error.message, "zero 1"));
    clFinish(devices[0].queue);
    tconv_packed_filter_release(filter);
    for (int i = 0; i < 2; i++) tconv_plan_release(plans[i]);
    clReleaseMemObject(buffer);
    free_tensors(&t);
}

static void every_algorithm_took_part(void **state)
{
    (void)state;
    for (int a = 0; tconv_algorithm_name(a) != NULL; a++)
        if (taken[a] == 0 && sample_is_whole() &&
            !never_runs(&devices[0], tconv_algorithm_name(a)) &&
            strcmp(tconv_algorithm_name(a), "winograd_vector") != 0 &&
            !is_difference_form(tconv_algorithm_name(a)))
            failed("%s took no problem", tconv_algorithm_name(a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_in_every_algorithm),
        cmocka_unit_test(many_channels),
        cmocka_unit_test(quads_of_channels),
        cmocka_unit_test(outputs_of_other_types),
        cmocka_unit_test(light_weights_are_converted),
        cmocka_unit_test(filters_with_steps_are_packed),
        cmocka_unit_test(quantised_layers),
        cmocka_unit_test(every_activation_in_every_algorithm),
        cmocka_unit_test(outputs_before_count_once),
        cmocka_unit_test(epilogues_of_f64),
        cmocka_unit_test(same_bits_from_every_algorithm),
        cmocka_unit_test(rounding_is_exhaustive),
        cmocka_unit_test(special_values_of_every_type),
        cmocka_unit_test(epilogues_are_refused),
        cmocka_unit_test(filters_know_their_zero_point),
        cmocka_unit_test(every_algorithm_took_part),
    };
    sample_covers(WHAT_IS_DRAWN);
    return cmocka_run_group_tests_name("types", tests, open_all_devices, close_all_devices);
}
