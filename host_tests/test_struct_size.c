/* SPDX-License-Identifier: Apache-2.0 */
/* Structures of programs that were compiled with other headers: shorter ones get defaults, longer
 * ones are taken where what this version does not know is 0, and nothing is written behind
 * struct_size. */
#include "base/struct_size.h"
#include "tconv_cl/tconv_cl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { JUNK = 0xa5, ROOM = 64 };

/* ---- The helper, with a structure that has grown twice ---- */

struct example {
    size_t struct_size;
    uint64_t needed;
    uint64_t second; /* default 2 */
    uint64_t third;  /* default 3 */
};
enum {
    FIRST = offsetof(struct example, needed)
}; /* behind struct_size, and what the system pads it with */
#define EXAMPLE TCONV_SIZED(struct example, needed, "example", "EXAMPLE_INIT")

static const struct example defaults = {sizeof defaults, 0, 2, 3};

/* A structure of `size` bytes with junk behind it. */
static union place {
    struct example example;
    unsigned char bytes[sizeof(struct example) + ROOM];
} junk_behind(size_t size)
{
    union place place;
    memset(&place, JUNK, sizeof place);
    const struct example given = {size, 10, 20, 30};
    memcpy(&place, &given, size < sizeof given ? size : sizeof given);
    memcpy(&place, &size, sizeof size);
    return place;
}

static void shorter_ones_have_defaults(void **state)
{
    (void)state;
    for (int members = 1; members <= 3; members++) {
        const union place given = junk_behind(FIRST + (size_t)members * sizeof(uint64_t));
        struct example own = defaults;
        assert_int_equal(tconv_struct_read(EXAMPLE, &given, &own, NULL), TCONV_OK);
        assert_int_equal(own.struct_size, sizeof own);
        assert_int_equal(own.needed, 10);
        assert_int_equal(own.second, members > 1 ? 20 : 2);
        assert_int_equal(own.third, members > 2 ? 30 : 3);
    }
    struct example own = defaults; /* none at all */
    assert_int_equal(tconv_struct_read(EXAMPLE, NULL, &own, NULL), TCONV_OK);
    assert_memory_equal(&own, &defaults, sizeof own);
}

static void impossible_sizes_are_refused(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, sizeof(size_t), FIRST + 7, 4097, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        union place given = junk_behind(0);
        given.example.struct_size = sizes[i];
        struct example own = defaults;
        tconv_error error;
        assert_int_equal(tconv_struct_read(EXAMPLE, &given, &own, &error), TCONV_ERROR_ARGUMENT);
        assert_memory_equal(&own, &defaults, sizeof own);
        char size[80];
        snprintf(size, sizeof size, "struct_size of example is %zu, but must be %d to 4096 bytes",
                 sizes[i], FIRST + 8);
        assert_non_null(strstr(error.message, size));
        assert_non_null(strstr(error.message, "start from EXAMPLE_INIT"));
        assert_int_equal(tconv_struct_check(EXAMPLE, &given, NULL), TCONV_ERROR_ARGUMENT);
    }
}

static void longer_ones_are_taken_where_the_rest_is_zero(void **state)
{
    (void)state;
    for (size_t more = 1; more <= ROOM; more++) {
        union place given = junk_behind(sizeof(struct example));
        given.example.struct_size += more;
        memset(given.bytes + sizeof(struct example), 0, more);
        struct example own = defaults;
        assert_int_equal(tconv_struct_read(EXAMPLE, &given, &own, NULL), TCONV_OK);
        assert_int_equal(own.third, 30);
        assert_int_equal(own.struct_size, sizeof own);
        given.bytes[sizeof(struct example) + more - 1] = 1; /* the last byte counts, too */
        own = defaults;
        tconv_error error;
        assert_int_equal(tconv_struct_read(EXAMPLE, &given, &own, &error), TCONV_ERROR_UNSUPPORTED);
        assert_memory_equal(&own, &defaults, sizeof own);
        assert_non_null(strstr(error.message, "struct_size of example"));
        assert_non_null(strstr(error.message, "built for a newer version"));
    }
}

static void nothing_is_written_behind_struct_size(void **state)
{
    (void)state;
    const struct example result = {sizeof result, 11, 22, 33};
    for (size_t size = FIRST + 8; size <= sizeof result + ROOM; size++) {
        union place given = junk_behind(size < sizeof result ? size : sizeof result);
        given.example.struct_size = size;
        assert_int_equal(tconv_struct_check(EXAMPLE, &given, NULL), TCONV_OK);
        tconv_struct_write(EXAMPLE, &result, &given);
        assert_int_equal(given.example.struct_size, size);
        for (size_t i = sizeof size; i < sizeof given; i++)
            assert_int_equal(given.bytes[i], i >= size ? JUNK
                                             : i >= sizeof result
                                                 ? 0
                                                 : ((const unsigned char *)&result)[i]);
    }
}

/* ---- The public functions that need no device ---- */

static const tconv_problem whole = {
    .struct_size = sizeof whole,
    .operation = TCONV_CONV_BACKPROP,
    .rules = TCONV_RULES_SPEC,
    .data_type = TCONV_F32,
    .filter_type = TCONV_F32,
    .data = {4, {1, 2, 8, 9}},
    .filter = {4, {2, 3, 3, 3}},
};

static union {
    tconv_problem problem;
    unsigned char bytes[sizeof(tconv_problem) + ROOM];
} p;
static union {
    tconv_geometry geometry;
    unsigned char bytes[sizeof(tconv_geometry) + ROOM];
} g;

/* `whole` in so many bytes with junk behind it. */
static void set_problem(size_t size)
{
    memset(&p, JUNK, sizeof p);
    memcpy(&p, &whole, size < sizeof whole ? size : sizeof whole);
    p.problem.struct_size = size;
}

static void set_geometry(size_t size)
{
    memset(&g, JUNK, sizeof g);
    g.geometry.struct_size = size;
}

static void problems_may_be_of_any_version(void **state)
{
    (void)state;
    tconv_geometry wanted = TCONV_GEOMETRY_INIT;
    char text[200], wanted_text[200];
    assert_int_equal(tconv_resolve(&whole, &wanted, NULL), TCONV_OK);
    tconv_problem_text(&whole, wanted_text, sizeof wanted_text);
    const size_t least = offsetof(tconv_problem, strides);
    for (size_t size = least; size <= sizeof whole + ROOM; size += 8) {
        set_problem(size);
        if (size > sizeof whole) memset(p.bytes + sizeof whole, 0, size - sizeof whole);
        tconv_geometry geometry = TCONV_GEOMETRY_INIT;
        assert_int_equal(tconv_resolve(&p.problem, &geometry, NULL), TCONV_OK);
        assert_memory_equal(&geometry, &wanted, sizeof wanted);
        tconv_problem_text(&p.problem, text, sizeof text);
        assert_string_equal(text, wanted_text);
    }
    /* A member counts as soon as the structure has it. */
    set_problem(least + sizeof(tconv_list));
    p.problem.strides = (tconv_list){2, {2, 2}};
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    assert_int_equal(tconv_resolve(&p.problem, &geometry, NULL), TCONV_OK);
    assert_int_equal(geometry.output[0], 17);

    tconv_error error;
    set_problem(least - 8);
    assert_int_equal(tconv_resolve(&p.problem, &geometry, &error), TCONV_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "TCONV_PROBLEM_INIT"));
    tconv_problem_text(&p.problem, text, sizeof text);
    assert_string_equal(text, "no problem");
    set_problem(sizeof whole + 8);
    assert_int_equal(tconv_resolve(&p.problem, &geometry, &error), TCONV_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "newer version"));
    tconv_problem_text(&p.problem, text, sizeof text);
    assert_string_equal(text, "no problem");
}

/* Numbers that tconv_resolve never writes: a division by 0, and sums and products that overflow. */
static void windows_need_a_resolved_geometry(void **state)
{
    (void)state;
    tconv_geometry good = TCONV_GEOMETRY_INIT;
    int64_t begin = -5, end = -5;
    assert_int_equal(tconv_window_input(&good, 0, 1, &begin, &end, NULL), TCONV_ERROR_ARGUMENT);
    assert_int_equal(tconv_resolve(&whole, &good, NULL), TCONV_OK);
    tconv_geometry bad[8];
    for (int i = 0; i < 8; i++) bad[i] = good;
    bad[0].stride[0] = 0;
    bad[1].stride[0] = -1;
    bad[2].kernel[0] = INT64_MIN;
    bad[3].dilation[0] = INT64_MAX;
    bad[3].kernel[0] = INT64_MAX;
    bad[4].pad_begin[0] = INT64_MAX;
    bad[5].pad_begin[0] = INT64_MIN;
    bad[5].dilation[0] = 8;
    bad[5].kernel[0] = 2;
    bad[6].input[0] = INT64_MIN;
    bad[7].dilation[0] = INT64_MIN;
    bad[7].kernel[0] = 2;
    for (int i = 0; i < 8; i++) {
        tconv_error error = {TCONV_OK, 0, ""};
        assert_int_equal(tconv_window_input(&bad[i], 3, 5, &begin, &end, &error),
                         TCONV_ERROR_ARGUMENT);
        assert_non_null(strstr(error.message, "tconv_resolve"));
        assert_int_equal(begin, -5);
    }
}

static void geometries_may_be_of_any_version(void **state)
{
    (void)state;
    tconv_geometry wanted = TCONV_GEOMETRY_INIT;
    assert_int_equal(tconv_resolve(&whole, &wanted, NULL), TCONV_OK);
    const size_t least = offsetof(tconv_geometry, output_shape);
    int64_t begin, end;
    for (size_t size = least; size <= sizeof wanted + ROOM; size += 8) {
        set_geometry(size);
        assert_int_equal(tconv_resolve(&whole, &g.geometry, NULL), TCONV_OK);
        assert_int_equal(g.geometry.struct_size, size);
        for (size_t i = sizeof size; i < sizeof g; i++)
            assert_int_equal(g.bytes[i], i >= size            ? JUNK
                                         : i >= sizeof wanted ? 0
                                                              : ((unsigned char *)&wanted)[i]);
        assert_int_equal(tconv_window_input(&g.geometry, 3, 5, &begin, &end, NULL), TCONV_OK);
        assert_int_equal(begin, 1);
        assert_int_equal(end, 5);
    }
    tconv_error error;
    g.bytes[sizeof wanted] = 1;
    assert_int_equal(tconv_window_input(&g.geometry, 3, 5, &begin, &end, &error),
                     TCONV_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "struct_size of geometry"));
    set_geometry(least - 8);
    assert_int_equal(tconv_resolve(&whole, &g.geometry, &error), TCONV_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "TCONV_GEOMETRY_INIT"));
    assert_int_equal(tconv_window_input(&g.geometry, 3, 5, &begin, &end, &error),
                     TCONV_ERROR_ARGUMENT);
}

/* ---- The public headers ---- */

/* A later member that took the place of padding would be read from programs without it.
 * base/members.h checks tconv_problem. */
static void no_structure_ends_with_padding(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t end, size;
    } rows[] = {
#define ROW(type, last) {#type, offsetof(type, last) + sizeof(((type *)NULL)->last), sizeof(type)}
        ROW(tconv_geometry, epilogue_channels),
        ROW(tconv_device_info, image_pixels),
        ROW(tconv_plan_options, search_context),
        ROW(tconv_trace_event, given_options),
        ROW(tconv_choice, noise),
        ROW(tconv_tensors, slope2),
        ROW(tconv_run, threads),
        ROW(tconv_layer_counts, weight_bytes),
        ROW(tconv_stream_options, columns),
        ROW(tconv_stream_info, bytes),
#undef ROW
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].end != rows[i].size)
            fail_msg("%s has %d bytes behind the last member named here", rows[i].name,
                     (int)(rows[i].size - rows[i].end));
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
        cmocka_unit_test(shorter_ones_have_defaults),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(longer_ones_are_taken_where_the_rest_is_zero),
        cmocka_unit_test(nothing_is_written_behind_struct_size),
        cmocka_unit_test(problems_may_be_of_any_version),
        cmocka_unit_test(windows_need_a_resolved_geometry),
        cmocka_unit_test(geometries_may_be_of_any_version),
        cmocka_unit_test(no_structure_ends_with_padding),
        cmocka_unit_test(the_version_is_that_of_the_header),
    };
    return cmocka_run_group_tests_name("struct_size", tests, NULL, NULL);
}
