/* SPDX-License-Identifier: Apache-2.0 */
/* dot_vector with each way to multiply words of bytes and of bf16: exact for the least and greatest
 * bytes, all zero points, and channels that do not fill words, vectors and chunks. A device is
 * tried with each kind of instructions that its processor has, in vectors of 16 and 8 lanes, with
 * none, and with plain quads; test_probe has what happens where instructions fail. */
#include "algorithm/algorithm.h"
#include "device/device.h"
#include "device/recognise.h"
#include "plan/unit.h"
#include "support.h"
#include "verdicts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    tconv_type data, filter;
} types[] = {
    {TCONV_I8, TCONV_I8}, {TCONV_U8, TCONV_I8}, {TCONV_U8, TCONV_U8}, {TCONV_BF16, TCONV_BF16}};

/* What all bytes of data and filter are; -1: random ones. */
static const struct {
    int data, filter;
} fills[] = {{-1, -1}, {0x80, 0x80}, {0xff, 0x80}, {0x00, 0x80}, {0x7f, 0x7f}, {0xff, 0xff}};

/* Problems of one axis, each for a reason. */
static const struct {
    bool last;
    int64_t batch, groups, in, out, x, k, s, d, pad;
    uint64_t local_memory; /* bytes that the device is said to have; 0: its own */
} shapes[] = {
    {true, 1, 1, 64, 32, 13, 4, 2, 1, 1, 0},      /* whole words and vectors */
    {false, 1, 1, 64, 32, 37, 4, 2, 1, 1, 0},     /* the same, rows contiguous */
    {true, 1, 1, 67, 33, 9, 3, 2, 1, 0, 0},       /* three channels in the last word */
    {false, 1, 1, 9, 5, 21, 3, 2, 1, 2, 0},       /* one, and pads beyond the data */
    {true, 2, 3, 6, 7, 5, 3, 1, 2, 1, 0},         /* groups whose data lie at odd addresses */
    {true, 1, 4, 1, 3, 9, 3, 1, 1, 0, 0},         /* groups as small as a part of a word */
    {false, 1, 1, 31, 20, 40, 3, 2, 1, 1, 0},     /* half a vector of words, transposed */
    {false, 1, 1, 14, 16, 19, 3, 1, 1, 1, 0},     /* a quarter of it */
    {false, 5, 1, 5, 18, 1, 4, 1, 1, 0, 0},       /* images in a vector */
    {false, 1, 1, 1, 1, 33, 2, 3, 1, 0, 0},       /* a single channel, outputs without taps */
    {true, 1, 1, 2085, 40, 11, 3, 2, 1, 1, 8000}, /* chunks of input channels */
    {false, 1, 1, 2085, 20, 11, 3, 2, 1, 1, 8000},
};

static int cases;

static tconv_problem problem_of(size_t shape, size_t type)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    const int64_t in = shapes[shape].groups * shapes[shape].in, out = shapes[shape].out;
    p.operation = TCONV_ONEAPI_CONV_BACKPROP;
    p.data_format = shapes[shape].last ? TCONV_NXC : TCONV_NCX;
    p.filter_format = TCONV_OIX;
    p.groups = shapes[shape].groups;
    p.data_type = types[type].data;
    p.filter_type = types[type].filter;
    p.output_type = tconv_type_is_floating(p.data_type) ? TCONV_F32 : TCONV_I32;
    set_shape(&p.data, 3,
              shapes[shape].last ? (int64_t[]){shapes[shape].batch, shapes[shape].x, in}
                                 : (int64_t[]){shapes[shape].batch, in, shapes[shape].x});
    set_shape(&p.filter, 3, (int64_t[]){in, out, shapes[shape].k});
    set_list(&p.strides, 1, &shapes[shape].s);
    set_list(&p.dilations, 1, &shapes[shape].d);
    set_list(&p.pads_begin, 1, &shapes[shape].pad);
    return p;
}

static int32_t zero_of(tconv_type type, unsigned which)
{
    const int32_t least = type == TCONV_I8 ? -128 : 0, middle = type == TCONV_I8 ? 0 : 128;
    return which % 4 == 0 ? middle : which % 4 == 1 ? least : which % 4 == 2 ? least + 255 : 5;
}

static void try_case(const struct device *device, size_t shape, size_t type, size_t fill,
                     unsigned number)
{
    const tconv_problem p = problem_of(shape, type);
    struct tensors t;
    make_tensors(&p, REAL_NUMBERS, number, &t);
    const bool bytes = !tconv_type_is_floating(p.data_type);
    if (bytes && fills[fill].data >= 0) memset(t.data, fills[fill].data, t.data_count);
    if (bytes && fills[fill].filter >= 0) memset(t.filter, fills[fill].filter, t.filter_count);
    tconv_epilogue e = TCONV_EPILOGUE_INIT;
    e.bias = number % 2 == 0;
    if (number % 5 != 0 && bytes) {
        e.data_zero_point = zero_of(p.data_type, number);
        e.filter_zero_point = zero_of(p.filter_type, number % 3 == 0 ? number / 3 : 0);
    }
    make_epilogue(&p, &e, number, &t);
    cases += check_algorithm(device, &p, "dot_vector", e.bias, &t, number);
    free_tensors(&t);
}

static void every_unit_is_exact(void **state)
{
    (void)state;
    int devices_left = 0;
    for (int i = 0; i < device_count; i++) {
        struct device d = devices[i];
        if (never_runs(&d, "dot_vector")) continue;
        devices_left++;
        tconv_device_info *info = &d.device->info;
        const tconv_device_info own = *info;
        /* A unit that this processor does not have is never given to it. */
        struct {
            tconv_matrix_unit unit;
            uint32_t lanes;
        } units[6] = {{TCONV_MATRIX_NONE, own.vector_width},
                      {TCONV_MATRIX_PLAIN_QUADS, own.vector_width}};
        size_t unit_count = 2;
        if (tconv_dots(&own, TCONV_U8) != 0) {
            const struct tconv_processor processor = tconv_processor_read();
            units[unit_count].unit = own.matrix_unit;
            units[unit_count++].lanes = own.vector_width;
            const tconv_matrix_unit narrow[] = {TCONV_MATRIX_X86_AVX512_BF16,
                                                TCONV_MATRIX_X86_AVX512_VNNI,
                                                TCONV_MATRIX_X86_AVX_VNNI};
            for (size_t n = 0; n < 3 && own.vector_width >= 8; n++)
                if (tconv_processor_has(&processor, narrow[n])) {
                    units[unit_count].unit = narrow[n];
                    units[unit_count++].lanes = 8;
                }
        }
        unsigned number = 0;
        for (size_t u = 0; u < unit_count; u++)
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
                for (size_t type = 0; type < sizeof types / sizeof *types; type++)
                    for (size_t fill = 0; fill < sizeof fills / sizeof *fills; fill++, number++) {
                        if (tconv_type_is_floating(types[type].data) && fill > 1) break;
                        info->matrix_unit = units[u].unit;
                        info->vector_width = units[u].lanes;
                        if (shapes[s].local_memory != 0 &&
                            shapes[s].local_memory < own.local_memory)
                            info->local_memory = shapes[s].local_memory;
                        /* In every sample each unit has all types, each shape half the units. */
                        const bool always = fill == 1 && (u + s) % 2 == 0 &&
                                            type == (u + s / 2) % 4;
                        try_case(&d, s, type, fill, always ? ALWAYS : number);
                        *info = own;
                    }
    }
    printf("%d cases\n", cases);
    assert_true(cases > 0 || devices_left == 0);
}

/* Also of devices without instructions, in plain OpenCL C. */
static void the_probe_is_right_on_every_device(void **state)
{
    (void)state;
    for (int i = 0; i < device_count; i++) {
        tconv_device *device = devices[i].device;
        tconv_error error;
        bool right = false;
        struct tconv_retry retry = {.insist = false};
        if (device->info.kind != TCONV_DEVICE_CPU || device->info.vector_width < 4) continue;
        static const struct {
            tconv_type type;
            int word;
        } words[] = {{TCONV_U8, 2}, {TCONV_U8, 4}, {TCONV_BF16, 2}};
        for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
            if (tconv_probe_words(device, words[w].type, words[w].word, &retry, &right, &error) !=
                TCONV_OK)
                failed("%s", error.message);
            assert_true(right);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_unit_is_exact),
        cmocka_unit_test(the_probe_is_right_on_every_device),
    };
    return cmocka_run_group_tests_name("words", tests, open_all_devices, close_all_devices);
}
