/* SPDX-License-Identifier: Apache-2.0 */
/* Resolving: the worked examples of the operators' pages and of three runtimes, the rejections, the
 * count of useful work. */
#include "base/addressable.h"
#include "base/element_types.h"
#include "common/activation_list.h"
#include "tconv_cl/epilogue.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static tconv_problem line(int64_t x, int64_t k, int64_t stride)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    p.data = (tconv_shape){3, {1, 1, x}};
    p.filter = (tconv_shape){3, {1, 1, k}};
    p.strides = (tconv_list){1, {stride}};
    return p;
}

static tconv_problem plane(int64_t ci, int64_t co, int64_t x, int64_t k)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    p.data = (tconv_shape){4, {1, ci, x, x}};
    p.filter = (tconv_shape){4, {ci, co, k, k}};
    return p;
}

static tconv_geometry resolved(const tconv_problem *p)
{
    tconv_geometry g = TCONV_GEOMETRY_INIT;
    tconv_error error = {TCONV_OK, 0, ""};
    if (tconv_resolve(p, &g, &error) != TCONV_OK) fail_msg("%s", error.message);
    return g;
}

static void the_pages_examples(void **state)
{
    (void)state;
    tconv_problem p = plane(20, 10, 224, 3); /* example 1: pads 1, stride 2 */
    p.strides = (tconv_list){2, {2, 2}};
    p.pads_begin = p.pads_end = (tconv_list){2, {1, 1}};
    tconv_geometry g = resolved(&p);
    assert_int_equal(g.output_shape.rank, 4);
    assert_int_equal(g.output_shape.dim[1], 10);
    assert_int_equal(g.output_shape.dim[2], 447);
    assert_int_equal(g.output_shape.dim[3], 447);

    p = plane(20, 10, 2, 3); /* example 2: output padding */
    p.strides = (tconv_list){2, {3, 3}};
    p.output_padding = (tconv_list){2, {2, 2}};
    g = resolved(&p);
    assert_int_equal(g.output[0], 8);
    assert_int_equal(g.output[1], 8);

    p = plane(20, 10, 224, 3); /* example 3: an output_shape beyond the natural extent: negative
                                  pads, by the formula */
    p.pads_begin = p.pads_end = (tconv_list){2, {1, 1}};
    p.auto_pad = TCONV_VALID;
    p.output_shape = (tconv_list){2, {450, 450}};
    g = resolved(&p);
    assert_int_equal(g.output[0], 450);
    assert_int_equal(g.pad_begin[0], -112);
    p.rules = TCONV_RULES_OPENVINO;
    g = resolved(&p);
    assert_int_equal(g.output[0], 450);
    assert_int_equal(g.pad_begin[0], 0);

    p = (tconv_problem)TCONV_PROBLEM_INIT; /* the group page: filter [4, 5, 2, 3, 3] */
    p.operation = TCONV_GROUP_CONV_BACKPROP;
    p.data = (tconv_shape){4, {1, 20, 224, 224}};
    p.filter = (tconv_shape){5, {4, 5, 2, 3, 3}};
    p.strides = (tconv_list){2, {2, 2}};
    p.pads_begin = p.pads_end = (tconv_list){2, {1, 1}};
    g = resolved(&p);
    assert_int_equal(g.groups, 4);
    assert_int_equal(g.output_shape.dim[1], 8);
    assert_int_equal(g.output[0], 447);
}

/* One axis of X = 2, K = 3, s = 2 (natural extent 5) through every branch of the three rules. */
static void every_branch_of_the_rules(void **state)
{
    (void)state;
    const struct {
        tconv_rules rules;
        tconv_auto_pad auto_pad;
        int64_t pads, padding, requested; /* requested output, 0: none */
        int64_t pad_begin, output;
    } rows[] = {
        {TCONV_RULES_SPEC, TCONV_EXPLICIT, 0, 0, 0, 0, 5},
        {TCONV_RULES_SPEC, TCONV_EXPLICIT, 1, 0, 0, 1, 3},
        {TCONV_RULES_SPEC, TCONV_VALID, 1, 0, 0, 0, 5},
        {TCONV_RULES_SPEC, TCONV_SAME_UPPER, 1, 3, 0, 0, 8},
        {TCONV_RULES_SPEC, TCONV_EXPLICIT, 1, 0, 4, 0, 4},
        {TCONV_RULES_SPEC, TCONV_VALID, 0, 0, 2, 1, 2},
        {TCONV_RULES_SPEC, TCONV_SAME_UPPER, 0, 0, 4, 1, 4}, /* the odd unit at the begin */
        {TCONV_RULES_SPEC, TCONV_SAME_LOWER, 0, 0, 4, 0, 4},
        {TCONV_RULES_SPEC, TCONV_SAME_LOWER, 0, 1, 4, 1, 4},  /* output_padding moves data */
        {TCONV_RULES_SPEC, TCONV_SAME_LOWER, 0, 0, 6, -1, 6}, /* floor(-1 / 2) */
        {TCONV_RULES_SPEC, TCONV_SAME_UPPER, 0, 0, 6, 0, 6},
        {TCONV_RULES_SPEC, TCONV_EXPLICIT, 0, 0, 8, -2, 8},
        {TCONV_RULES_OPENVINO, TCONV_EXPLICIT, 1, 0, 7, 1, 7},
        {TCONV_RULES_OPENVINO, TCONV_EXPLICIT, 0, 0, 3, 0, 3},
        {TCONV_RULES_OPENVINO, TCONV_VALID, 1, 0, 3, 0, 3},
        {TCONV_RULES_OPENVINO, TCONV_SAME_UPPER, 1, 0, 0, 0, 5},
        {TCONV_RULES_OPENVINO, TCONV_SAME_UPPER, 0, 0, 4, 1, 4},
        {TCONV_RULES_OPENVINO, TCONV_SAME_LOWER, 0, 0, 4, 0, 4},
        {TCONV_RULES_OPENVINO, TCONV_SAME_LOWER, 0, 0, 8, 0, 8}, /* clamped */
        {TCONV_RULES_OPENVINO, TCONV_SAME_UPPER, 0, 1, 5, 1, 5},
        {TCONV_RULES_ONNX, TCONV_SAME_UPPER, 0, 0, 0, 0, 4}, /* X*s, the odd unit at the end */
        {TCONV_RULES_ONNX, TCONV_SAME_LOWER, 0, 0, 0, 1, 4},
        {TCONV_RULES_ONNX, TCONV_SAME_UPPER, 0, 1, 0, 1, 4}, /* the padding is absorbed */
        {TCONV_RULES_ONNX, TCONV_SAME_UPPER, 0, 0, 4, 0, 4},
        {TCONV_RULES_ONNX, TCONV_SAME_LOWER, 0, 0, 4, 1, 4},
        {TCONV_RULES_ONNX, TCONV_EXPLICIT, 2, 0, 4, 1, 4},
        {TCONV_RULES_ONNX, TCONV_VALID, 0, 0, 3, 1, 3},
        {TCONV_RULES_ONNX, TCONV_EXPLICIT, 1, 0, 0, 1, 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tconv_problem p = line(2, 3, 2);
        p.rules = rows[i].rules;
        p.auto_pad = rows[i].auto_pad;
        p.pads_begin = p.pads_end = (tconv_list){1, {rows[i].pads}};
        p.output_padding = (tconv_list){1, {rows[i].padding}};
        if (rows[i].requested > 0) p.output_shape = (tconv_list){1, {rows[i].requested}};
        const tconv_geometry g = resolved(&p);
        if (g.pad_begin[0] != rows[i].pad_begin || g.output[0] != rows[i].output)
            fail_msg("row %zu: pad %" PRId64 " output %" PRId64, i, g.pad_begin[0], g.output[0]);
    }
    tconv_problem p =
        line(3, 1, 3); /* K < s under ONNX same: clamped, so that Y is less than X*s */
    p.rules = TCONV_RULES_ONNX;
    p.auto_pad = TCONV_SAME_UPPER;
    assert_int_equal(resolved(&p).output[0], 7);
}

static void formats_of_the_oneapi_form(void **state)
{
    (void)state;
    tconv_problem p = TCONV_PROBLEM_INIT;
    p.operation = TCONV_ONEAPI_CONV_BACKPROP;
    p.data = (tconv_shape){4, {2, 5, 6, 8}};   /* NXC is the default: 8 channels */
    p.filter = (tconv_shape){4, {3, 4, 7, 8}}; /* XIO: kernel 3x4, 7 outputs of a group, 8 inputs */
    p.groups = 2;
    tconv_geometry g = resolved(&p);
    assert_int_equal(g.group_in_channels, 4);
    assert_int_equal(g.group_out_channels, 7);
    assert_int_equal(g.output_shape.dim[1], 7);
    assert_int_equal(g.output_shape.dim[2], 9);
    assert_int_equal(g.output_shape.dim[3], 14);
    p.data_format = TCONV_NCX;
    p.data = (tconv_shape){4, {2, 8, 5, 6}};
    p.filter_format = TCONV_OIX;
    p.filter = (tconv_shape){4, {8, 7, 3, 4}};
    g = resolved(&p);
    assert_int_equal(g.output_shape.dim[1], 14);
    assert_int_equal(g.output_shape.dim[2], 7);
    assert_int_equal(g.output_shape.dim[3], 9);
}

static void legal_oddities(void **state)
{
    (void)state;
    tconv_problem p = line(5, 3, 1);
    p.output_padding = (tconv_list){1, {9}}; /* output_padding >= stride */
    assert_int_equal(resolved(&p).output[0], 16);
    p = line(6, 3, 1);
    p.pads_begin = (tconv_list){1, {4}}; /* pads larger than the kernel */
    assert_int_equal(resolved(&p).output[0], 4);
    p.data.dim[0] = 0; /* no batch */
    const tconv_geometry g = resolved(&p);
    assert_int_equal(g.output_bytes, 0);
    assert_int_equal(g.macs, 0);
    p = line(6, 3, 1); /* an output asked for that far beyond takes an output padding as large */
    p.data_type = p.filter_type = TCONV_I8;
    p.output_padding = (tconv_list){1, {INT64_MAX}};
    p.output_shape = (tconv_list){1, {INT64_MAX / 2}};
    p.rules = TCONV_RULES_ONNX;
    assert_int_equal(resolved(&p).pad_end[0], (INT64_MAX / 2 + 9) / 2);
    p = line(1, 1, 1); /* no tap reaches the output: no work, whatever the channels would give */
    p.data_type = p.filter_type = TCONV_I8;
    p.data.dim[0] = p.filter.dim[1] = p.data.dim[1] = p.filter.dim[0] = INT64_C(1) << 25;
    p.pads_begin = p.output_padding = (tconv_list){1, {1}};
    assert_int_equal(resolved(&p).macs, 0);
}

/* What must be refused: how the problem is broken, the status, and words that the message must
 * have. */
struct refusal {
    void (*break_it)(tconv_problem *p);
    tconv_status status;
    const char *words[3];
};

static void data_rank_2(tconv_problem *p)
{
    p->data.rank = 2;
}
static void data_rank_9(tconv_problem *p)
{
    p->data.rank = 9;
}
static void filter_rank(tconv_problem *p)
{
    p->filter.rank = 3;
}
static void channels(tconv_problem *p)
{
    p->filter.dim[0] = 16;
}
static void oneapi_channels(tconv_problem *p)
{
    p->operation = TCONV_ONEAPI_CONV_BACKPROP;
}
static void formats_left_out(tconv_problem *p)
{
    p->operation = TCONV_ONEAPI_CONV_BACKPROP;
    p->groups = 2;
}
static void filter_format_wrong(tconv_problem *p)
{
    p->operation = TCONV_ONEAPI_CONV_BACKPROP;
    p->data_format = TCONV_NCX;
    p->filter_format = TCONV_XIO;
}
static void data_format_wrong(tconv_problem *p)
{
    p->operation = TCONV_ONEAPI_CONV_BACKPROP;
    p->data_format = TCONV_NXC;
    p->filter_format = TCONV_OIX;
}
static void group_channels(tconv_problem *p)
{
    p->operation = TCONV_GROUP_CONV_BACKPROP;
    p->filter = (tconv_shape){5, {3, 7, 2, 3, 3}};
}
static void channels_last(tconv_problem *p)
{
    p->data = (tconv_shape){4, {1, 8, 8, 20}};
}
static void group_channels_last(tconv_problem *p)
{
    p->operation = TCONV_GROUP_CONV_BACKPROP;
    p->data = (tconv_shape){4, {1, 8, 8, 20}};
    p->filter = (tconv_shape){5, {2, 10, 2, 3, 3}};
}
static void oneapi_groups(tconv_problem *p)
{
    p->operation = TCONV_ONEAPI_CONV_BACKPROP;
    p->data_format = TCONV_NCX;
    p->filter_format = TCONV_OIX;
    p->groups = 3;
}
static void negative_groups(tconv_problem *p)
{
    oneapi_groups(p);
    p->groups = -2;
}
static void strides_length(tconv_problem *p)
{
    p->strides = (tconv_list){3, {1, 1, 1}};
}
static void pads_length(tconv_problem *p)
{
    p->pads_end = (tconv_list){1, {1}};
}
static void huge_length(tconv_problem *p)
{
    p->output_padding.count = 1000;
}
static void negative_length(tconv_problem *p)
{
    p->dilations.count = -1;
}
static void zero_stride(tconv_problem *p)
{
    p->strides = (tconv_list){2, {1, 0}};
}
static void negative_dilation(tconv_problem *p)
{
    p->dilations = (tconv_list){2, {-1, 1}};
}
static void negative_pad(tconv_problem *p)
{
    p->pads_begin = (tconv_list){2, {0, -3}};
}
static void negative_padding(tconv_problem *p)
{
    p->output_padding = (tconv_list){2, {-1, 0}};
}
static void zero_output(tconv_problem *p)
{
    p->output_shape = (tconv_list){2, {4, 0}};
}
static void nothing_left(tconv_problem *p)
{
    p->pads_begin = (tconv_list){2, {0, 9}};
    p->pads_end = (tconv_list){2, {0, 5}};
}
static void no_channels(tconv_problem *p)
{
    p->data.dim[1] = p->filter.dim[0] = 0;
}
static void nothing_from_empty_data(tconv_problem *p)
{
    p->data.dim[2] = 0;
    p->strides = (tconv_list){2, {3, 1}};
}
static void negative_extent(tconv_problem *p)
{
    p->data.dim[3] = -1;
}
static void zero_kernel(tconv_problem *p)
{
    p->filter.dim[3] = 0;
}
static void negative_batch(tconv_problem *p)
{
    p->data.dim[0] = -1;
}
static void huge_stride(tconv_problem *p)
{
    p->strides = (tconv_list){2, {INT64_MAX, 1}};
}
static void huge_output(tconv_problem *p)
{
    p->strides = (tconv_list){2, {INT64_MAX / 16, 1}};
}
static void huge_data(tconv_problem *p)
{
    p->data = (tconv_shape){4, {INT64_MAX / 2, 20, 8, 8}};
}
static void hidden_by_no_batch(tconv_problem *p)
{
    p->data = (tconv_shape){4, {0, 20, INT64_MAX / 8, 8}};
}
static void types(tconv_problem *p)
{
    p->filter_type = TCONV_F64;
}
static void heavy_weights(tconv_problem *p)
{
    p->data_type = TCONV_BF16;
}
static void light_weights_and_output(tconv_problem *p)
{
    p->filter_type = p->output_type = TCONV_F16;
}
static void no_type(tconv_problem *p)
{
    p->data_type = (tconv_type)99;
}
static void no_operation(tconv_problem *p)
{
    p->operation = (tconv_operation)0;
}
static void no_rules(tconv_problem *p)
{
    p->rules = (tconv_rules)7;
}
static void no_auto_pad(tconv_problem *p)
{
    p->auto_pad = (tconv_auto_pad)-1;
}
static void groups_elsewhere(tconv_problem *p)
{
    p->groups = 2;
}
static void format_elsewhere(tconv_problem *p)
{
    p->data_format = TCONV_NXC;
}
static void size_of_struct(tconv_problem *p)
{
    p->struct_size = 8;
}

static const struct refusal refusals[] = {
    {data_rank_2, TCONV_ERROR_SHAPE, {"data", "rank 2", "3 to 8"}},
    {data_rank_9, TCONV_ERROR_SHAPE, {"data", "rank 9", "3 to 8"}},
    {filter_rank, TCONV_ERROR_SHAPE, {"filter", "rank 3", "rank 4"}},
    {channels, TCONV_ERROR_SHAPE, {"20 channels (axis 1)", "16", "axis 0"}},
    {oneapi_channels,
     TCONV_ERROR_SHAPE,
     {"axis 3 of data_format NXC", "axis 3", "filter_format XIO"}},
    {formats_left_out,
     TCONV_ERROR_SHAPE,
     {"8 channels (axis 3 of data_format NXC)", "3 input channels (axis 3 of filter_format XIO",
      "; they fit with data_format NCX and filter_format OIX"}},
    {filter_format_wrong,
     TCONV_ERROR_SHAPE,
     {"20 channels", "3 input", "; they fit with data_format NCX and filter_format OIX"}},
    {data_format_wrong,
     TCONV_ERROR_SHAPE,
     {"8 channels", "20 input", "; they fit with data_format NCX and filter_format OIX"}},
    {channels_last,
     TCONV_ERROR_SHAPE,
     {"8 channels (axis 1)", "20 input",
      "; they fit in the oneAPI form with data_format NXC and filter_format OIX"}},
    {group_channels, TCONV_ERROR_SHAPE, {"20 channels (axis 1)", "3 groups", "7"}},
    {group_channels_last,
     TCONV_ERROR_SHAPE,
     {"8 channels (axis 1)", "2 groups",
      "; for channels last, use the oneAPI form (data_format NXC, groups) with"}},
    {oneapi_groups, TCONV_ERROR_SHAPE, {"20 channels", "3 groups", "axis 1"}},
    {negative_groups, TCONV_ERROR_ATTRIBUTE, {"groups", "-2", "1"}},
    {strides_length, TCONV_ERROR_ATTRIBUTE, {"strides", "3 values", "2 spatial axes"}},
    {pads_length, TCONV_ERROR_ATTRIBUTE, {"pads_end", "1 values", "2 spatial axes"}},
    {huge_length, TCONV_ERROR_ATTRIBUTE, {"output_padding", "1000 values", "2 spatial axes"}},
    {negative_length, TCONV_ERROR_ATTRIBUTE, {"dilations", "-1 values", "2 spatial axes"}},
    {zero_stride, TCONV_ERROR_ATTRIBUTE, {"strides is 0", "axis 1", "1"}},
    {negative_dilation, TCONV_ERROR_ATTRIBUTE, {"dilations is -1", "axis 0", "1"}},
    {negative_pad, TCONV_ERROR_ATTRIBUTE, {"pads_begin is -3", "axis 1", "0"}},
    {negative_padding, TCONV_ERROR_ATTRIBUTE, {"output_padding is -1", "axis 0", "0"}},
    {zero_output, TCONV_ERROR_ATTRIBUTE, {"output_shape is 0", "axis 1", "1"}},
    {nothing_left, TCONV_ERROR_SHAPE, {"extent -4", "axis 1", "pads 9 and 5"}},
    {no_channels, TCONV_ERROR_SHAPE, {"data", "extent 0", "axis 1"}},
    {nothing_from_empty_data, TCONV_ERROR_SHAPE, {"extent 0 at spatial axis 0", "input 0", "3"}},
    {negative_extent, TCONV_ERROR_SHAPE, {"data", "extent -1", "axis 3"}},
    {zero_kernel, TCONV_ERROR_SHAPE, {"filter", "extent 0", "axis 3"}},
    {negative_batch, TCONV_ERROR_SHAPE, {"data", "extent -1", "axis 0"}},
    {huge_stride, TCONV_ERROR_SHAPE, {"axis 0", "overflow", "stride 9223372036854775807"}},
    {huge_output, TCONV_ERROR_SHAPE, {"output", "too large", "axis 2"}},
    {huge_data, TCONV_ERROR_SHAPE, {"data", "too large", "axis"}},
    {hidden_by_no_batch, TCONV_ERROR_SHAPE, {"data", "too large", "axis 2"}},
    {types, TCONV_ERROR_TYPE, {"data is f32", "filter is f64", "same"}},
    {heavy_weights, TCONV_ERROR_TYPE, {"data is bf16", "filter is f32", "f16 or bf16"}},
    {light_weights_and_output, TCONV_ERROR_TYPE, {"filter f16", "output f16", "must be f32"}},
    {no_type, TCONV_ERROR_ARGUMENT, {"data_type", "99", ""}},
    {no_operation, TCONV_ERROR_ARGUMENT, {"operation", "0", ""}},
    {no_rules, TCONV_ERROR_ARGUMENT, {"rules", "7", ""}},
    {no_auto_pad, TCONV_ERROR_ARGUMENT, {"auto_pad", "-1", ""}},
    {groups_elsewhere, TCONV_ERROR_ARGUMENT, {"groups", "oneAPI", ""}},
    {format_elsewhere, TCONV_ERROR_ARGUMENT, {"data_format", "oneAPI", ""}},
    {size_of_struct, TCONV_ERROR_ARGUMENT, {"struct_size", "problem", "TCONV_PROBLEM_INIT"}},
};

static void wrong_requests_are_refused_with_axis_and_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        tconv_problem p = plane(20, 10, 8, 3);
        refusals[i].break_it(&p);
        tconv_geometry g = TCONV_GEOMETRY_INIT;
        const tconv_geometry before = g;
        tconv_error error = {TCONV_OK, 7, ""};
        const tconv_status status = tconv_resolve(&p, &g, &error);
        if (status != refusals[i].status)
            fail_msg("refusal %zu gives %s: %s", i, tconv_status_name(status), error.message);
        assert_int_equal(error.status, status);
        assert_int_equal(error.opencl_code, 0);
        assert_true(tconv_status_is_request(status));
        assert_memory_equal(&g, &before, sizeof g); /* nothing half-written */
        for (int w = 0; w < 3; w++)
            if (strstr(error.message, refusals[i].words[w]) == NULL)
                fail_msg("refusal %zu does not say \"%s\": %s", i, refusals[i].words[w],
                         error.message);
        assert_int_equal(tconv_resolve(&p, &g, NULL), status); /* and without an explanation */
    }
    tconv_geometry g = TCONV_GEOMETRY_INIT;
    tconv_problem p = plane(20, 10, 8, 3);
    assert_int_equal(tconv_resolve(NULL, &g, NULL), TCONV_ERROR_ARGUMENT);
    assert_int_equal(tconv_resolve(&p, NULL, NULL), TCONV_ERROR_ARGUMENT);
    g.struct_size = 0;
    assert_int_equal(tconv_resolve(&p, &g, NULL), TCONV_ERROR_ARGUMENT);
}

/* Without input points the formulas hold as they are: natural = d*(K-1) + 1 - s. */
static void empty_data_resolves_by_the_formulas(void **state)
{
    (void)state;
    const struct {
        tconv_rules rules;
        tconv_auto_pad auto_pad;
        int64_t stride, pads, padding, output, pad_begin, extent; /* output 0: absent */
    } cases[] = {
        {TCONV_RULES_SPEC, TCONV_EXPLICIT, 2, 0, 0, 0, 0, 3},
        {TCONV_RULES_SPEC, TCONV_EXPLICIT, 2, 1, 1, 0, 1, 2},
        {TCONV_RULES_SPEC, TCONV_EXPLICIT, 9, 0, 6, 0, 0, 2}, /* natural -4 */
        {TCONV_RULES_SPEC, TCONV_SAME_UPPER, 9, 0, 0, 3, -3, 3},
        {TCONV_RULES_OPENVINO, TCONV_EXPLICIT, 9, 1, 0, 4, 1, 4},
        {TCONV_RULES_OPENVINO, TCONV_SAME_LOWER, 1, 0, 0, 1, 1, 1},
        {TCONV_RULES_ONNX, TCONV_SAME_UPPER, 9, 0, 0, 5, 0, 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tconv_problem p = line(0, 5, cases[i].stride);
        p.rules = cases[i].rules;
        p.auto_pad = cases[i].auto_pad;
        p.pads_begin = p.pads_end = (tconv_list){1, {cases[i].pads}};
        p.output_padding = (tconv_list){1, {cases[i].padding}};
        p.output_shape = (tconv_list){cases[i].output != 0, {cases[i].output}};
        const tconv_geometry g = resolved(&p);
        assert_int_equal(g.pad_begin[0], cases[i].pad_begin);
        assert_int_equal(g.output[0], cases[i].extent);
        assert_int_equal(g.macs, 0);
        assert_int_equal(g.data_bytes, 0);
        assert_int_equal(g.output_bytes, 4 * cases[i].extent);
    }
    tconv_problem p = line(0, 5, INT64_MAX); /* natural - output leaves 64 bits */
    p.output_shape = (tconv_list){1, {INT64_MAX / 4}};
    tconv_geometry g = TCONV_GEOMETRY_INIT;
    assert_int_equal(tconv_resolve(&p, &g, NULL), TCONV_ERROR_SHAPE);
}

static uint64_t pairs_counted(const tconv_geometry *g, int a)
{
    uint64_t count = 0;
    for (int64_t x = 0; x < g->input[a]; x++)
        for (int64_t k = 0; k < g->kernel[a]; k++) {
            const int64_t y = x * g->stride[a] + k * g->dilation[a] - g->pad_begin[a];
            count += y >= 0 && y < g->output[a];
        }
    return count;
}

static void useful_work_is_counted_exactly(void **state)
{
    (void)state;
    unsigned seed = 5;
    for (int i = 0; i < 20000; i++) {
        int64_t v[8];
        const int most[8] = {12, 9, 6, 6, 8, 8, 6, 40};
        for (int j = 0; j < 8; j++) {
            seed = seed * 1664525u + 1013904223u;
            v[j] = (seed >> 10) % (unsigned)most[j];
        }
        tconv_problem p = line(v[0], v[1] + 1, v[2] + 1);
        p.data.dim[1] = p.filter.dim[0] = 3;
        p.dilations = (tconv_list){1, {v[3] + 1}};
        p.pads_begin = (tconv_list){1, {v[4]}};
        p.pads_end = (tconv_list){1, {v[5]}};
        p.output_padding = (tconv_list){1, {v[6]}};
        if (v[7] > 0) p.output_shape = (tconv_list){1, {v[7]}};
        tconv_geometry g = TCONV_GEOMETRY_INIT;
        if (tconv_resolve(&p, &g, NULL) != TCONV_OK) continue;
        assert_int_equal(g.macs, 3 * pairs_counted(&g, 0));
    }
    tconv_problem p = line(1, 1, 1); /* extents for which nobody counts one by one */
    p.data.dim[2] = INT64_C(1) << 40;
    p.filter.dim[2] = INT64_C(1) << 20;
    p.strides = (tconv_list){1, {3}};
    assert_int_equal(resolved(&p).macs, UINT64_C(1) << 60);
}

static void a_problem_has_a_text(void **state)
{
    (void)state;
    char text[500];
    tconv_problem p = plane(20, 10, 224, 3);
    p.strides = (tconv_list){2, {2, 2}};
    p.auto_pad = TCONV_SAME_LOWER;
    p.rules = TCONV_RULES_ONNX;
    const char *expected = "--data-shape 1,20,224,224 --filter-shape 20,10,3,3 --strides 2,2 "
                           "--auto-pad same_lower --rules onnx";
    assert_int_equal(tconv_problem_text(&p, text, sizeof text), strlen(expected));
    assert_string_equal(text, expected);
    assert_int_equal(tconv_problem_text(&p, NULL, 0), strlen(expected));
    assert_int_equal(tconv_problem_text(&p, text, 10), strlen(expected)); /* cut off, terminated */
    assert_int_equal(strlen(text), 9);
    p.operation = TCONV_ONEAPI_CONV_BACKPROP;
    p.groups = 2;
    p.data_type = p.filter_type = TCONV_BF16;
    tconv_problem_text(&p, text, sizeof text);
    assert_non_null(strstr(text, "--type bf16 --groups 2 --data-format NXC --filter-format XIO"));
    assert_true(tconv_problem_text(NULL, text, sizeof text) > 0);
}

static void names_go_both_ways(void **state)
{
    (void)state;
    int types = 0;
    for (int t = TCONV_F32; tconv_type_size((tconv_type)t) != 0; t++, types++) {
        tconv_type type;
        assert_true(tconv_type_from_name(tconv_type_name((tconv_type)t), &type));
        assert_int_equal(type, t);
        assert_true(tconv_type_size(type) <= 8);
        assert_int_equal(tconv_type_is_byte(type), type == TCONV_I8 || type == TCONV_U8);
        assert_int_equal(tconv_type_is_integer(type), !tconv_type_is_floating(type));
    }
    assert_true(types >= 12);
    for (int a = 0; a < ACTIVATION_COUNT; a++) {
        tconv_activation activation;
        assert_true(
            tconv_activation_from_name(tconv_activation_name((tconv_activation)a), &activation));
        assert_int_equal(activation, a);
    }
    assert_string_equal(tconv_activation_name((tconv_activation)ACTIVATION_COUNT), "?");
    tconv_auto_pad pad = TCONV_VALID;
    assert_true(tconv_auto_pad_from_name("NotSet", &pad));
    assert_int_equal(pad, TCONV_EXPLICIT);
    assert_true(tconv_auto_pad_from_name("SAME_UPPER", &pad));
    assert_int_equal(pad, TCONV_SAME_UPPER);
    assert_false(tconv_auto_pad_from_name("same", &pad));
    assert_int_equal(pad, TCONV_SAME_UPPER);
    assert_string_equal(tconv_type_name((tconv_type)0), "?");
    assert_int_equal(tconv_type_size((tconv_type)0), 0);
    tconv_rules rules;
    assert_true(tconv_rules_from_name("OpenVINO", &rules));
    assert_int_equal(rules, TCONV_RULES_OPENVINO);
    tconv_data_format data;
    assert_true(tconv_data_format_from_name("nxc", &data));
    tconv_filter_format filter;
    assert_true(tconv_filter_format_from_name("XIO", &filter));
    assert_string_equal(tconv_data_format_name(data), "NXC");
    assert_string_equal(tconv_filter_format_name(filter), "XIO");
    assert_string_equal(tconv_operation_name(TCONV_GROUP_CONV_BACKPROP),
                        "GroupConvolutionBackpropData");
}

static void every_status_has_a_name(void **state)
{
    (void)state;
    static const int codes[] = {0, 1, 2, 3, 4, 5, 6, 7, 20, 21, 40, 41, 42, 60, 61, 99};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        assert_int_equal(strncmp(tconv_status_name((tconv_status)codes[i]), "TCONV_", 6), 0);
        assert_int_equal(tconv_status_is_request((tconv_status)codes[i]),
                         codes[i] >= 1 && codes[i] < 40);
    }
    assert_string_equal(tconv_status_name((tconv_status)1234), "an unknown status");
}

/* Tensors are as large on a 32-bit system, where a process cannot address all of them. */
static void what_no_process_can_address_is_refused(void **state)
{
    (void)state;
    const uint64_t most = PTRDIFF_MAX;
    tconv_geometry g = TCONV_GEOMETRY_INIT;
    g.data_bytes = g.filter_bytes = g.output_bytes = most;
    g.epilogue_channels = (int64_t)(most / sizeof(double));
    assert_int_equal(tconv_check_addressable(&g, NULL), TCONV_OK);
    for (int i = 0; i < 4; i++) {
        tconv_geometry more = g;
        if (i == 0) more.data_bytes++;
        if (i == 1) more.filter_bytes++;
        if (i == 2) more.output_bytes++;
        if (i == 3) more.epilogue_channels++;
        static const char *const names[] = {"data ", "filter ", "the output ",
                                            "a tensor of output channels "};
        tconv_error error;
        assert_int_equal(tconv_check_addressable(&more, &error), TCONV_ERROR_SHAPE);
        assert_non_null(strstr(error.message, names[i]));
    }

    tconv_problem p = plane(1, 1, 1 << 16, 1); /* 16 GiB */
    assert_int_equal(resolved(&p).data_bytes, UINT64_C(1) << 34);
    g = resolved(&p);
    assert_int_equal(tconv_check_addressable(&g, NULL),
                     sizeof(void *) == 4 ? TCONV_ERROR_SHAPE : TCONV_OK);
}

static void expect_notes(const tconv_problem *p, const char *expected)
{
    char text[500], part[10];
    assert_int_equal(tconv_problem_notes(p, text, sizeof text), strlen(expected));
    assert_string_equal(text, expected);
    assert_int_equal(tconv_problem_notes(p, NULL, 0), strlen(expected));
    assert_int_equal(tconv_problem_notes(p, part, sizeof part), strlen(expected));
    assert_memory_equal(part, text, strlen(part));
}

static void formats_that_were_not_given_are_noted(void **state)
{
    (void)state;
    tconv_problem p = TCONV_PROBLEM_INIT;
    p.operation = TCONV_ONEAPI_CONV_BACKPROP;
    p.data = (tconv_shape){3, {1, 4, 4}};
    p.filter = (tconv_shape){3, {4, 2, 4}};
    expect_notes(&p, "data_format NXC and filter_format XIO are taken, the oneAPI form's defaults; "
                     "the tensors also fit NCX and OIX: give the formats\n");
    p.data_format = TCONV_NCX;
    expect_notes(&p, "filter_format XIO is taken, the oneAPI form's default; the tensors also fit "
                     "OIX: give the format\n");
    p.filter_format = TCONV_OIX;
    expect_notes(&p, "");
    p.data_format = TCONV_DATA_DEFAULT;
    p.data.dim[1] = 5; /* the channels are the last axis */
    expect_notes(&p, "");
}

static void what_has_no_effect_is_noted(void **state)
{
    (void)state;
    tconv_problem p = TCONV_PROBLEM_INIT;
    expect_notes(NULL, "");
    expect_notes(&p, ""); /* it does not resolve */
    p.data = (tconv_shape){3, {1, 1, 5}};
    p.filter = (tconv_shape){3, {1, 1, 3}};
    expect_notes(&p, "");
    p.pads_begin = (tconv_list){1, {1}};
    expect_notes(&p, "");
    p.output_shape = (tconv_list){1, {6}};
    expect_notes(&p, "the given pads have no effect: pads follow from the output shape under the "
                     "rules spec\n");
    p.rules = TCONV_RULES_OPENVINO;
    expect_notes(&p, "the rules openvino give other pads or another output than the published "
                     "formulas (rules spec)\n");
    p.output_shape.count = 0;
    p.auto_pad = TCONV_SAME_LOWER;
    expect_notes(&p, "the given pads have no effect: pads follow from auto_pad same_lower\n"
                     "auto_pad same_lower has no effect without an output shape under the rules "
                     "openvino: pads are 0, as with valid; give an output shape, or the rules "
                     "onnx\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pages_examples),
        cmocka_unit_test(every_branch_of_the_rules),
        cmocka_unit_test(formats_of_the_oneapi_form),
        cmocka_unit_test(legal_oddities),
        cmocka_unit_test(wrong_requests_are_refused_with_axis_and_values),
        cmocka_unit_test(empty_data_resolves_by_the_formulas),
        cmocka_unit_test(useful_work_is_counted_exactly),
        cmocka_unit_test(a_problem_has_a_text),
        cmocka_unit_test(names_go_both_ways),
        cmocka_unit_test(every_status_has_a_name),
        cmocka_unit_test(what_no_process_can_address_is_refused),
        cmocka_unit_test(what_has_no_effect_is_noted),
        cmocka_unit_test(formats_that_were_not_given_are_noted),
    };
    return cmocka_run_group_tests_name("resolve", tests, NULL, NULL);
}
