/* SPDX-License-Identifier: Apache-2.0 */
/* Results of OpenVINO, ONNX Runtime and PyTorch against every algorithm, under every rule set that
 * is listed for them. */
#include "support.h"
#include "table.h"
#include "verdicts.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void read_attributes(const struct table *t, int row, tconv_problem *p)
{
    field_list(t, row, "strides", &p->strides);
    field_list(t, row, "dilations", &p->dilations);
    field_list(t, row, "pads_begin", &p->pads_begin);
    field_list(t, row, "pads_end", &p->pads_end);
    field_list(t, row, "output_padding", &p->output_padding);
    field_list(t, row, "output_shape", &p->output_shape);
    if (!tconv_auto_pad_from_name(field(t, row, "auto_pad"), &p->auto_pad))
        failed("auto_pad of row %d", row);
}

static void expect_list(const struct table *t, int row, const char *column, const int64_t *got,
                        int count)
{
    tconv_list wanted;
    field_list(t, row, column, &wanted);
    if (wanted.count == 0 && strcmp(column, "resolved_pads_end") == 0)
        return; /* the listed rules differ */
    if (wanted.count != count || memcmp(wanted.value, got, (size_t)count * sizeof *got) != 0)
        failed("%s: %s does not resolve to %s", field(t, row, "id"), column, field(t, row, column));
}

/* One case by one algorithm; `bound` may be NULL: equality. False where the algorithm does not run
 * it. */
static bool run_one(const struct device *device, const char *algorithm, const char *id,
                    const tconv_problem *p, struct tensors *tensors, bool bias, const float *wanted,
                    const float *bound, unsigned number)
{
    const size_t bytes = tensors->output_count * sizeof *wanted;
    uint64_t expected = hash_bytes(0, wanted, bytes);
    if (bound != NULL) expected = hash_bytes(expected, bound, bytes);
    bool known;
    if (!run_case(device, p, algorithm, bias, tensors, number, expected, &known)) return false;
    for (size_t i = 0; !known && i < tensors->output_count; i++) {
        const double difference = fabs((double)tensors->output[i] - (double)wanted[i]);
        if (!(difference <= (bound == NULL ? 0 : (double)bound[i])))
            failed("%s under %s with %s: element %zu is %.9g, expected %.9g", id,
                   tconv_rules_name(p->rules), algorithm, i, (double)tensors->output[i],
                   (double)wanted[i]);
    }
    case_passed();
    return true;
}

/* With all candidates of the algorithms that are drawn for this case: in a short run for every
 * fourth case, since each candidate is a program. */
static void run_candidates(const struct device *device, const char *id, const tconv_problem *p,
                           struct tensors *tensors, bool bias, const float *wanted,
                           const float *bound, int row)
{
    static char names[MOST_CANDIDATES][CANDIDATE_NAME];
    if (!sample_is_whole() && row % 4 != 0) return;
    for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
        if (!drawn(1 + (unsigned)row * 32 + (unsigned)a)) continue;
        const int count = candidate_names(device, p, tconv_algorithm_name(a), bias, tensors, names);
        for (int i = 0; i < count; i++)
            if (!run_one(device, names[i], id, p, tensors, bias, wanted, bound, ALWAYS))
                failed("%s refuses %s", names[i], id);
    }
}

/* On every device with every algorithm that takes it; in a short run with those whose programs are
 * compiled, one at least. */
static void run_everywhere(const char *id, const tconv_problem *p, struct tensors *tensors,
                           bool bias, const float *wanted, const float *bound, int row)
{
    int algorithms = 0;
    while (tconv_algorithm_name(algorithms) != NULL) algorithms++;
    for (int d = 0; d < device_count; d++) {
        int ran = 0;
        for (int a = 0; a < algorithms; a++)
            ran += run_one(&devices[d], tconv_algorithm_name(a), id, p, tensors, bias, wanted,
                           bound, IF_NEEDED);
        /* The reference takes everything, and few programs suffice for it. */
        for (int a = 0; a < algorithms && ran < 2; a++)
            ran += run_one(&devices[d], tconv_algorithm_name((row + a) % algorithms), id, p,
                           tensors, bias, wanted, bound, ALWAYS);
        if (ran == 0) failed("%s was not run", id);
        run_candidates(&devices[d], id, p, tensors, bias, wanted, bound, row);
    }
}

static void load(const char *folder, const char *id, const char *what, float **array,
                 tconv_shape *shape, size_t *count)
{
    char file[300];
    snprintf(file, sizeof file, "%s/%s.%s.npy", folder, id, what);
    *array = read_array(file, shape, count);
}

static void run_row(const struct table *t, int row)
{
    const char *id = field(t, row, "id");
    tconv_problem p = TCONV_PROBLEM_INIT;
    struct tensors tensors = {.geometry = TCONV_GEOMETRY_INIT, .epilogue = TCONV_EPILOGUE_INIT};
    tconv_shape output_shape;
    size_t wanted_count, bound_count;
    float *wanted, *bound = NULL;
    load("data", id, "data", &tensors.data, &p.data, &tensors.data_count);
    load("data", id, "filter", &tensors.filter, &p.filter, &tensors.filter_count);
    load("data", id, "output", &wanted, &output_shape, &wanted_count);
    if (strcmp(field(t, row, "check"), "close") == 0)
        load("data", id, "bound", &bound, &output_shape, &bound_count);
    read_attributes(t, row, &p);
    const char *data_format = field(t, row, "data_format"),
               *filter_format = field(t, row, "filter_format");
    const int groups = atoi(field(t, row, "groups"));
    if (strcmp(field(t, row, "op"), "group_conv_backprop") == 0) {
        p.operation = TCONV_GROUP_CONV_BACKPROP;
    } else if (groups > 1 || strcmp(data_format, "NCX") != 0 || strcmp(filter_format, "OIX") != 0) {
        p.operation = TCONV_ONEAPI_CONV_BACKPROP;
        p.groups = groups;
        if (!tconv_data_format_from_name(data_format, &p.data_format) ||
            !tconv_filter_format_from_name(filter_format, &p.filter_format))
            failed("%s: formats", id);
    }
    int tried = 0;
    for (int r = TCONV_RULES_SPEC; r <= TCONV_RULES_ONNX; r++) {
        if (strstr(field(t, row, "rules"), tconv_rules_name((tconv_rules)r)) == NULL) continue;
        p.rules = (tconv_rules)r;
        tconv_error error;
        if (tconv_resolve(&p, &tensors.geometry, &error) != TCONV_OK)
            failed("%s: %s", id, error.message);
        expect_list(t, row, "resolved_pads_begin", tensors.geometry.pad_begin,
                    tensors.geometry.axes);
        expect_list(t, row, "resolved_pads_end", tensors.geometry.pad_end, tensors.geometry.axes);
        expect_list(t, row, "output_spatial", tensors.geometry.output, tensors.geometry.axes);
        tensors.output_count = (size_t)tensors.geometry.output_bytes / sizeof(float);
        assert_int_equal(tensors.output_count, wanted_count);
        tensors.output = calloc(wanted_count, sizeof(float));
        if (tried++ == 0) /* rules that resolve alike compute alike */
            run_everywhere(id, &p, &tensors, false, wanted, bound, row);
        free(tensors.output);
    }
    assert_true(tried > 0);
    free(tensors.data);
    free(tensors.filter);
    free(wanted);
    free(bound);
}

static void every_case_of_other_systems(void **state)
{
    (void)state;
    struct table t;
    read_table("cases.csv", &t);
    assert_int_equal(t.row_count, 164);
    for (int row = 1; row < t.row_count; row++) run_row(&t, row);
    free_table(&t);
}

static void the_onnx_models(void **state)
{
    (void)state;
    struct table t;
    read_table("onnx/models.csv", &t);
    assert_int_equal(t.row_count, 5);
    for (int row = 1; row < t.row_count; row++) {
        const char *id = field(&t, row, "model");
        tconv_problem p = TCONV_PROBLEM_INIT;
        struct tensors tensors = {.geometry = TCONV_GEOMETRY_INIT, .epilogue = TCONV_EPILOGUE_INIT};
        tconv_shape output_shape, bias_shape;
        size_t wanted_count, bound_count;
        float *wanted, *bound;
        load("onnx", id, "input", &tensors.data, &p.data, &tensors.data_count);
        load("onnx", id, "filter", &tensors.filter, &p.filter, &tensors.filter_count);
        load("onnx", id, "output", &wanted, &output_shape, &wanted_count);
        load("onnx", id, "bound", &bound, &output_shape, &bound_count);
        const bool bias = strstr(id, "bias") != NULL;
        if (bias) load("onnx", id, "bias", &tensors.bias, &bias_shape, &tensors.channels);
        read_attributes(&t, row, &p);
        p.operation = TCONV_ONEAPI_CONV_BACKPROP; /* ONNX's filter is OIX, byte for byte */
        p.data_format = TCONV_NCX;
        p.filter_format = TCONV_OIX;
        p.groups = atoi(field(&t, row, "groups"));
        p.rules = TCONV_RULES_ONNX;
        tconv_error error;
        if (tconv_resolve(&p, &tensors.geometry, &error) != TCONV_OK)
            failed("%s: %s", id, error.message);
        tensors.output_count = (size_t)tensors.geometry.output_bytes / sizeof(float);
        assert_int_equal(tensors.output_count, wanted_count);
        tensors.output = calloc(wanted_count, sizeof(float));
        run_everywhere(id, &p, &tensors, bias, wanted, bound, row);
        free(bound);
        free(wanted);
        free_tensors(&tensors);
    }
    free_table(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_of_other_systems),
        cmocka_unit_test(the_onnx_models),
    };
    return cmocka_run_group_tests_name("vectors", tests, open_all_devices, close_all_devices);
}
