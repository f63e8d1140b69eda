/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of models that converters and NNCF wrote: computed from constants, or refused. */
#include "portable.h"
#include "tool/io/constant.h"
#include "tool/io/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[200]; /* where the tests write */

/* Writes model.xml or model.bin. */
static const char *write_file(const char *ending, const void *bytes, size_t size)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/model.%s", folder, ending);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
    return path;
}

/* The .bin; constants name its members by their offsets. */
static const struct {
    int8_t i8[4];
    uint8_t u8[4], zero[2], padding[2];
    float scale[2];
    uint16_t half[2]; /* 0.5, 0.25 */
    float low, high;
    float f32[4];
    int64_t i64[4];
    uint16_t tenths[4]; /* 0.1 */
    uint16_t third;     /* 0.3 */
} bin = {{1, -2, 3, -4},
         {130, 128, 126, 0},
         {128, 127},
         {0},
         {0.5F, 0.25F},
         {0x3800, 0x3400},
         -1,
         1,
         {0.1F, -3, 0.6F, 0.9F},
         {1, 2, 3, 4},
         {0x2e66, 0x2e66, 0x2e66, 0x2e66},
         0x34cd};

/* The layer has the number 9 and takes its filter from node 8. */
#define NET(nodes)                                                                                 \
    "<net name=\"m\"><layers>"                                                                     \
    "<layer id=\"9\" name=\"up\" type=\"ConvolutionBackpropData\"><data/><input>"                  \
    "<port id=\"0\" precision=\"FP32\"><dim>1</dim><dim>2</dim><dim>5</dim></port>"                \
    "</input></layer></layers><edges>" EDGE(8, 9, 1) "</edges>"                                    \
                                                     "<layers>" nodes "</edges></net>"
#define EDGE(from, to, port)                                                                       \
    "<edge from-layer=\"" #from "\" from-port=\"0\" to-layer=\"" #to "\" to-port=\"" #port "\"/>"
#define CONSTANT(id, type, shape, offset, size)                                                    \
    "<layer id=\"" #id "\" name=\"c" #id "\" type=\"Const\"><data element_type=\"" #type           \
    "\" shape=\"" shape "\" offset=\"" #offset "\" size=\"" #size "\"/></layer>"
#define NODE(id, type, data)                                                                       \
    "<layer id=\"" #id "\" name=\"n" #id "\" type=\"" #type "\"><data " data "/></layer>"
#define RESHAPE(id, extent)                                                                        \
    "<layer id=\"" #id "\" name=\"n" #id "\" type=\"Reshape\"><output><port id=\"1\"><dim>" extent \
    "</dim><dim>1</dim><dim>2</dim></port></output></layer>"
#define TO_F32 "destination_type=\"f32\""
#define TO_F16 "destination_type=\"f16\""
#define EDGES "</layers><edges>"

#define I8 CONSTANT(1, i8, "2,1,2", 0, 4)
#define U8 CONSTANT(1, u8, "2,1,2", 4, 4)
#define ZERO CONSTANT(2, u8, "1,1,2", 8, 2)
#define SCALE CONSTANT(3, f32, "1,1,2", 12, 8)
#define HALF CONSTANT(3, f16, "1,1,2", 20, 4)
#define LOW CONSTANT(4, f32, "", 24, 4)
#define HIGH CONSTANT(5, f32, "", 28, 4)
#define F32 CONSTANT(1, f32, "2,1,2", 32, 16)
#define I64 CONSTANT(1, i64, "2,1,2", 48, 32)
#define TENTHS CONSTANT(1, f16, "2,1,2", 80, 8)
#define THIRD CONSTANT(3, f16, "1", 88, 2)

static void read_model(const char *xml, struct suite *suite)
{
    write_file("bin", &bin, sizeof bin);
    assert_int_equal(model_read(write_file("xml", xml, strlen(xml)), suite), EXIT_DONE);
    assert_int_equal(suite->count, 1);
}

#define LIMITS EDGE(4, 8, 1) EDGE(5, 8, 2) EDGE(4, 8, 3) EDGE(5, 8, 4)

static void filters_are_computed_from_constants(void **state)
{
    (void)state;
    static const struct {
        const char *what, *xml;
        float filter[4];
    } rows[] = {
        {"NNCF: i8 with a scale",
         NET(I8 SCALE NODE(6, Convert, TO_F32) NODE(8, Multiply, "auto_broadcast=\"numpy\"")
                 EDGES EDGE(1, 6, 0) EDGE(6, 8, 0) EDGE(3, 8, 1)),
         {0.5F, -0.5F, 1.5F, -1}},
        {"compressed: u8 with a zero point and a scale, in f16",
         NET(U8 ZERO HALF NODE(4, Convert, TO_F16) NODE(5, Convert, TO_F16) NODE(6, Subtract, "")
                 NODE(7, Multiply, "") NODE(8, Convert, TO_F32) EDGES EDGE(1, 4, 0) EDGE(2, 5, 0)
                     EDGE(4, 6, 0) EDGE(5, 6, 1) EDGE(6, 7, 0) EDGE(3, 7, 1) EDGE(7, 8, 0)),
         {1, 0.25F, -1, -31.75F}},
        {"a product of f16 is rounded to f16",
         NET(TENTHS THIRD NODE(6, Multiply, "") NODE(8, Convert, TO_F32) EDGES EDGE(1, 6, 0)
                 EDGE(3, 6, 1) EDGE(6, 8, 0)),
         {0.0299987793F, 0.0299987793F, 0.0299987793F, 0.0299987793F}},
        {"the smaller operand first",
         NET(F32 HIGH NODE(8, Subtract, "") EDGES EDGE(5, 8, 0) EDGE(1, 8, 1)),
         {1 - 0.1F, 4, 1 - 0.6F, 1 - 0.9F}},
        {"another shape",
         NET(CONSTANT(1, i8, "4", 0, 4) NODE(6, Convert, TO_F32) RESHAPE(8, "2") EDGES EDGE(1, 6, 0)
                 EDGE(6, 8, 0)),
         {1, -2, 3, -4}},
        {"three levels from -1 to 1",
         NET(F32 LOW HIGH NODE(8, FakeQuantize, "levels=\"3\"") EDGES EDGE(1, 8, 0) LIMITS),
         {0, -1, 1, 1}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct suite suite;
        read_model(rows[i].xml, &suite);
        const struct entry *e = &suite.entries[0];
        if (e->error != NULL) fail_msg("%s: %s", rows[i].what, e->error);
        const tconv_shape shape = {3, {2, 1, 2}};
        assert_memory_equal(&e->problem.filter, &shape, sizeof shape);
        assert_int_equal(e->weights_type, TCONV_F32);
        for (int k = 0; k < 4; k++) {
            const float got = ((const float *)e->weights)[k];
            if (got != rows[i].filter[k])
                fail_msg("%s: weight %d is %.9g, not %.9g", rows[i].what, k, (double)got,
                         (double)rows[i].filter[k]);
        }
        suite_free(&suite);
    }
}

static void other_filters_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *xml, *words;
    } rows[] = {
        {NET(NODE(8, Parameter, "") EDGES), "its filter comes from Parameter n8: only constants"},
        {NET(F32 NODE(8, Convert, "destination_type=\"i32\"") EDGES EDGE(1, 8, 0)),
         "a Convert to i32"},
        {NET(F32 NODE(8, Convert, "") EDGES EDGE(1, 8, 0)), "a Convert to nothing"},
        {NET(I64 NODE(8, Convert, TO_F32) EDGES EDGE(1, 8, 0)), "integers of 64 bits"},
        {NET(I8 SCALE NODE(8, Multiply, "") EDGES EDGE(1, 8, 0) EDGE(3, 8, 1)),
         "Multiply of i8 and f32"},
        {NET(I8 ZERO NODE(8, Subtract, "") EDGES EDGE(1, 8, 0) EDGE(2, 8, 1)),
         "Subtract of i8 and u8"},
        {NET(F32 CONSTANT(3, f32, "3,1,1", 12, 12) NODE(8, Multiply, "") EDGES EDGE(1, 8, 0)
                 EDGE(3, 8, 1)),
         "none can be broadcast"},
        {NET(F32 SCALE NODE(8, Multiply, "auto_broadcast=\"pdpd\"") EDGES EDGE(1, 8, 0)
                 EDGE(3, 8, 1)),
         "auto_broadcast \"pdpd\""},
        {NET(F32 RESHAPE(8, "3") EDGES EDGE(1, 8, 0)), "another number of elements"},
        {NET(F32 RESHAPE(8, "-1") EDGES EDGE(1, 8, 0)), "another number of elements"},
        {NET(F32 LOW HIGH NODE(8, FakeQuantize, "levels=\"1\"") EDGES EDGE(1, 8, 0) LIMITS),
         "without a valid number of levels"},
        {NET(TENTHS LOW HIGH NODE(8, FakeQuantize, "levels=\"3\"") EDGES EDGE(1, 8, 0) LIMITS),
         "not all f32"},
        {NET(I8 NODE(6, Convert, TO_F32) NODE(8, Convert, TO_F32) EDGES EDGE(6, 8, 0)
                 EDGE(8, 6, 0)),
         "more than 64 nodes"},
        {NET(NODE(8, Multiply, "") EDGES EDGE(8, 8, 0) EDGE(8, 8, 1)), "more than 64 nodes"},
        {NET(I8 NODE(8, Convert, TO_F16) EDGES EDGE(1, 8, 0)),
         "elements of type f16, but its data"},
        {NET(CONSTANT(1, u4, "2,1,2", 0, 2) NODE(8, Convert, TO_F32) EDGES EDGE(1, 8, 0)),
         "elements of type u4"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct suite suite;
        read_model(rows[i].xml, &suite);
        const char *const error = suite.entries[0].error;
        if (error == NULL || strstr(error, rows[i].words) == NULL)
            fail_msg("row %zu: %s", i, error == NULL ? "no error" : error);
        suite_free(&suite);
    }
}

/* Weights that are cut off after the file was opened: a file that failed, not a wrong request. */
static void weights_may_be_cut_off_while_they_are_read(void **state)
{
    (void)state;
    struct graph_attribute attributes[] = {
        {"element_type", "f32"}, {"shape", "4"}, {"offset", "32"}, {"size", "16"}};
    const struct graph_layer node = {.name = "w", .attributes = attributes, .attribute_count = 4};
    char path[300];
    snprintf(path, sizeof path, "%s", write_file("bin", &bin, sizeof bin));
    struct suite suite = {NULL, 0};
    struct entry *entry = suite_add(&suite, "0", "up");
    struct bin opened = {.path = path};
    struct constant constant;
    bin_open(&opened);
    assert_non_null(opened.file);
    write_file("bin", &bin, 40);
    assert_false(constant_read(entry, &node, &opened, &constant));
    assert_non_null(strstr(entry->error, "its constant w cannot be read from "));
    assert_non_null(strstr(entry->error, "cut off"));
    assert_true(entry->file_failed);
    assert_int_equal(model_failure("m", entry), EXIT_WORK_FAILED);
    fclose(opened.file);
    suite_free(&suite);
}

static int make_own_folder(void **state)
{
    (void)state;
    return !make_temporary_folder("tconv-constants", folder, sizeof folder);
}

static int remove_own_folder(void **state)
{
    (void)state;
    unlink(write_file("xml", "", 0));
    unlink(write_file("bin", "", 0));
    return rmdir(folder);
}

/* Each layer has 4 bytes of a constant as 32 bytes of f64: 16 times the file is soon taken. */
static void memory_follows_the_size_of_the_file(void **state)
{
    (void)state;
    enum { LAYERS = 100, LEAST = 16 * (int)sizeof bin / 36 };
    static char xml[LAYERS * 400];
    size_t at = (size_t)snprintf(
        xml, sizeof xml, "%s",
        "<net><layers>" I8 NODE(8, Convert, "destination_type=\"f64\"") "</layers>"
                                                                        "<layers>");
    for (int i = 0; i < LAYERS; i++)
        at += (size_t)snprintf(xml + at, sizeof xml - at,
                               "<layer id=\"%d\" name=\"up\" type=\"ConvolutionBackpropData\">"
                               "<data/><input><port id=\"0\" precision=\"FP64\"><dim>1</dim>"
                               "<dim>2</dim><dim>5</dim></port></input></layer>",
                               i + 10);
    at += (size_t)snprintf(xml + at, sizeof xml - at, "</layers><edges>" EDGE(1, 8, 0));
    for (int i = 0; i < LAYERS; i++)
        at += (size_t)snprintf(xml + at, sizeof xml - at,
                               "<edge from-layer=\"8\" from-port=\"0\" to-layer=\"%d\" "
                               "to-port=\"1\"/>",
                               i + 10);
    snprintf(xml + at, sizeof xml - at, "</edges></net>");
    struct suite suite;
    write_file("bin", &bin, sizeof bin);
    assert_int_equal(model_read(write_file("xml", xml, strlen(xml)), &suite), EXIT_DONE);
    assert_int_equal(suite.count, LAYERS);
    for (int i = 0; i < LAYERS; i++) {
        const char *const error = suite.entries[i].error;
        if (i < LEAST) {
            assert_null(error);
            continue;
        }
        assert_non_null(error);
        assert_non_null(strstr(error, "is too much: layers took the bytes of"));
    }
    suite_free(&suite);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filters_are_computed_from_constants),
        cmocka_unit_test(other_filters_are_refused),
        cmocka_unit_test(weights_may_be_cut_off_while_they_are_read),
        cmocka_unit_test(memory_follows_the_size_of_the_file),
    };
    return cmocka_run_group_tests_name("constants", tests, make_own_folder, remove_own_folder);
}
