/* SPDX-License-Identifier: Apache-2.0 */
/* Validates a problem and resolves it. Makes every check that the operators' semantics need, with
 * messages that name the argument, the axis and the values. */
#include "base/checked.h"
#include "base/convolves.h"
#include "base/element_types.h"
#include "base/error.h"
#include "base/members.h"
#include "base/range.h"
#include "base/steps.h"
#include "base/struct_size.h"
#include "geometry/count.h"
#include "geometry/rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Weights of half the data's size, which become f32. */
static bool is_light(tconv_type data, tconv_type filter)
{
    return data == TCONV_F32 && (filter == TCONV_F16 || filter == TCONV_BF16);
}

static bool types_fit(tconv_type data, tconv_type filter, tconv_type output)
{
    const tconv_type own = output == TCONV_TYPE_DEFAULT ? data : output;
    if (tconv_type_is_byte(data) && filter == TCONV_I8 && output != TCONV_TYPE_DEFAULT)
        return tconv_type_is_byte(output) || output == TCONV_I32;
    if (is_light(data, filter)) return own == TCONV_F32;
    if (data != filter) return false;
    return own == data || (own == TCONV_F32 && (data == TCONV_F16 || data == TCONV_BF16)) ||
           (own == TCONV_I32 && tconv_type_is_byte(data));
}

/* 0 is the default, or the first, of every enumeration that has a row. */
static tconv_status check_enumerator(const char *member, int value, const char *name,
                                     const char *kind, tconv_error *error)
{
    if (value == 0 || strcmp(name, "?") != 0) return TCONV_OK;
    return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is %d, which is not %s", member, value,
                      kind);
}

#define KIND_auto_pad "a padding mode"
#define KIND_rules "a rule set"
#define KIND_type "an element type"
#define KIND_data_format "a format"
#define KIND_filter_format "a format"
#define CHECK(kind, ...) CHECK_##kind(__VA_ARGS__)
#define CHECK_NAME(member, option, reads, when, kind)                                              \
    if (status == TCONV_OK)                                                                        \
        status = check_enumerator(#member, (int)p->member, tconv_##kind##_name(p->member),         \
                                  KIND_##kind, error);
#define CHECK_NUMBER(member, option, reads, when, absent, least, most)                             \
    if (status == TCONV_OK && p->member != (absent))                                               \
        status = tconv_range_check(#member, NULL, 0, p->member, least, most, error);

/* The output types that types_fit takes with data and a filter that go together. */
static const char *output_types(tconv_type data, tconv_type filter)
{
    if (tconv_type_is_byte(data)) return filter == TCONV_I8 ? "i32, i8 or u8" : "u8 or i32";
    if (data == TCONV_F16) return "f16 or f32";
    return data == TCONV_BF16 ? "bf16 or f32" : tconv_type_name(data);
}

static bool is_zero(const tconv_list *list)
{
    for (int a = 0; a < list->count && a < TCONV_MAX_AXES; a++)
        if (list->value[a] != 0) return false;
    return true;
}

/* What has no meaning for a convolution with upsampling or pixel shuffle, or cannot be computed. */
static tconv_status check_convolution(const tconv_problem *p, tconv_error *error)
{
    if (tconv_sums_weights(p) && !tconv_type_is_floating(p->data_type))
        return tconv_fail(error, TCONV_ERROR_TYPE,
                          "data is %s: %s takes floating-point types, because its weights are sums "
                          "of the filter's, which need not fit an integer type; only with factors "
                          "of 1, an ordinary convolution, it takes every type",
                          tconv_type_name(p->data_type), tconv_operation_name(p->operation));
    if (p->rules != TCONV_RULES_SPEC)
        return tconv_fail(
            error, TCONV_ERROR_ARGUMENT,
            "rules is %s: it says how pads of a transposed convolution follow from its "
            "attributes, and must be spec for %s",
            tconv_rules_name(p->rules), tconv_operation_name(p->operation));
    if (p->operation == TCONV_CONV_PIXEL_SHUFFLE_DCR && p->groups > 1)
        return tconv_fail(error, TCONV_ERROR_UNSUPPORTED,
                          "groups is %" PRId64
                          ", but with the order DCR the shuffle takes the phases of an output "
                          "channel from several groups: give groups 1, or the order CRD",
                          p->groups);
    const char *given = p->output_shape.count != 0    ? "output_shape"
                        : is_zero(&p->output_padding) ? NULL
                                                      : "output_padding";
    if (given == NULL) return TCONV_OK;
    return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                      "%s is given, but %s has none: its output follows from factors and pads",
                      given, tconv_operation_name(p->operation));
}

static tconv_status check_enumerations(const tconv_problem *p, tconv_error *error)
{
    if (p->operation < TCONV_CONV_BACKPROP || p->operation > TCONV_CONV_PIXEL_SHUFFLE_DCR)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "operation is %d, which is not an operator",
                          (int)p->operation);
    tconv_status status = TCONV_OK;
    TCONV_PROBLEM_NUMBERS(CHECK)
    if (status != TCONV_OK) return status;
    if (p->data_type == TCONV_TYPE_DEFAULT || p->filter_type == TCONV_TYPE_DEFAULT)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is %d, which is not an element type",
                          p->data_type == TCONV_TYPE_DEFAULT ? "data_type" : "filter_type",
                          (int)TCONV_TYPE_DEFAULT);
    if (!types_fit(p->data_type, p->filter_type, p->output_type)) {
        const bool bytes = tconv_type_is_byte(p->data_type) && tconv_type_is_byte(p->filter_type);
        const char *const data = tconv_type_name(p->data_type);
        const char *const filter = tconv_type_name(p->filter_type);
        if (p->data_type != p->filter_type && !bytes && !is_light(p->data_type, p->filter_type))
            return tconv_fail(error, TCONV_ERROR_TYPE,
                              "data is %s but filter is %s: they must have the same element type; "
                              "data of f32 also go with a filter of f16 or bf16",
                              data, filter);
        if (p->output_type == TCONV_TYPE_DEFAULT && p->filter_type == TCONV_I8)
            return tconv_fail(error, TCONV_ERROR_TYPE,
                              "data is %s but filter is %s: output_type must say what the "
                              "output is: i32, i8 or u8",
                              data, filter);
        if (bytes && p->data_type != p->filter_type && p->filter_type != TCONV_I8)
            return tconv_fail(error, TCONV_ERROR_TYPE,
                              "data is %s but filter is %s: the filter must be i8", data, filter);
        return tconv_fail(error, TCONV_ERROR_TYPE,
                          "data is %s, filter %s, output %s: the output must be %s", data, filter,
                          tconv_type_name(p->output_type),
                          output_types(p->data_type, p->filter_type));
    }

    if (tconv_convolves(p)) return check_convolution(p, error);
    if (p->operation != TCONV_ONEAPI_CONV_BACKPROP &&
        (p->groups != 0 || p->data_format == TCONV_NXC || p->filter_format == TCONV_XIO ||
         (p->filter_format == TCONV_OIX && p->operation == TCONV_GROUP_CONV_BACKPROP)))
        return tconv_fail(
            error, TCONV_ERROR_ARGUMENT,
            "groups, data_format and filter_format belong to the oneAPI form and to convolutions "
            "with upsampling or pixel shuffle: %s takes groups from its filter and "
            "its layouts are fixed; for those of the problem, operation must be "
            "TCONV_ONEAPI_CONV_BACKPROP",
            tconv_operation_name(p->operation));
    return TCONV_OK;
}

static tconv_status check_ranks(const tconv_problem *p, tconv_error *error)
{
    if (p->data.rank < 3 || p->data.rank > TCONV_MAX_AXES + 2)
        return tconv_fail(
            error, TCONV_ERROR_SHAPE,
            "data has rank %d: it must be 3 to %d (batch, channels and 1 to %d spatial axes)",
            p->data.rank, TCONV_MAX_AXES + 2, TCONV_MAX_AXES);
    const int wanted = p->data.rank + (p->operation == TCONV_GROUP_CONV_BACKPROP);
    if (p->filter.rank != wanted)
        return tconv_fail(error, TCONV_ERROR_SHAPE,
                          "filter has rank %d: with data of rank %d %s needs a filter of rank %d",
                          p->filter.rank, p->data.rank, tconv_operation_name(p->operation), wanted);
    return TCONV_OK;
}

static tconv_status check_extent(const char *argument, const tconv_shape *shape, int axis,
                                 int64_t least, tconv_error *error)
{
    if (shape->dim[axis] >= least) return TCONV_OK;
    return tconv_fail(error, TCONV_ERROR_SHAPE,
                      "%s has extent %" PRId64 " at axis %d: it must be at least %" PRId64,
                      argument, shape->dim[axis], axis, least);
}

static tconv_data_format data_format_of(const tconv_problem *p)
{
    if (p->data_format != TCONV_DATA_DEFAULT) return p->data_format;
    return p->operation == TCONV_ONEAPI_CONV_BACKPROP ? TCONV_NXC : TCONV_NCX;
}

static int channel_axis_of(const tconv_problem *p)
{
    return data_format_of(p) == TCONV_NXC ? p->data.rank - 1 : 1;
}

/* The batch and spatial axes of the data may be empty; channels and the filter may not. */
static tconv_status check_extents(const tconv_problem *p, tconv_error *error)
{
    tconv_status status = TCONV_OK;
    for (int i = 0; i < p->data.rank && status == TCONV_OK; i++)
        status = check_extent("data", &p->data, i, i == channel_axis_of(p), error);
    for (int i = 0; i < p->filter.rank && status == TCONV_OK; i++)
        status = check_extent("filter", &p->filter, i, 1, error);
    return status;
}

/* Writes the end of a sentence about channels that differ: other formats in which they are equal,
 * first one that changes the filter's alone. Writes nothing if there are none. Only the oneAPI form
 * has formats among the transposed convolutions. */
static void hint_formats(const tconv_problem *p, bool nxc, bool xio, char *hint, size_t size)
{
    const char *form = p->operation == TCONV_ONEAPI_CONV_BACKPROP ? "" : "in the oneAPI form ";
    hint[0] = '\0';
    for (int change = 1; change <= 3; change++) {
        const bool other_xio = xio != ((change & 1) != 0), other_nxc = nxc != ((change & 2) != 0);
        const int last = p->data.rank - 1;
        if (p->data.dim[other_nxc ? last : 1] != p->filter.dim[other_xio ? last : 0]) continue;
        snprintf(hint, size, "; they fit %swith data_format %s and filter_format %s", form,
                 tconv_data_format_name(other_nxc ? TCONV_NXC : TCONV_NCX),
                 tconv_filter_format_name(other_xio ? TCONV_XIO : TCONV_OIX));
        return;
    }
}

/* Reads the channels and spatial axes of a convolution with upsampling or pixel shuffle, whose
 * filter is [G*CO, CI, K...] or [K..., CI, G*CO]. The output channels are those of the convolution.
 */
static tconv_status read_forward_channels(const tconv_problem *p, tconv_geometry *g,
                                          tconv_error *error)
{
    const bool xio = p->filter_format == TCONV_XIO;
    const int channel_axis = channel_axis_of(p), last = p->filter.rank - 1;
    const int in_axis = xio ? last - 1 : 1, out_axis = xio ? last : 0;
    const int64_t *x = p->data.dim, *w = p->filter.dim, channels = x[channel_axis];
    g->axes = p->data.rank - 2;
    g->data_format = data_format_of(p);
    g->batch = x[0];
    memcpy(g->input, x + (g->data_format == TCONV_NXC ? 1 : 2), (size_t)g->axes * sizeof *g->input);
    memcpy(g->kernel, w + (xio ? 0 : 2), (size_t)g->axes * sizeof *g->kernel);
    g->groups = p->groups == 0 ? 1 : p->groups;
    if (channels % g->groups != 0 || channels / g->groups != w[in_axis]) {
        char groups[40] = "";
        if (g->groups > 1) snprintf(groups, sizeof groups, " in %" PRId64 " groups", g->groups);
        return tconv_fail(error, TCONV_ERROR_SHAPE,
                          "data has %" PRId64 " channels (axis %d of data_format %s)%s, but the "
                          "filter wants %" PRId64 " input channels%s (axis %d of filter_format %s)",
                          channels, channel_axis, tconv_data_format_name(g->data_format), groups,
                          w[in_axis], g->groups > 1 ? " of a group" : "", in_axis,
                          xio ? "XIO" : "OIX");
    }
    if (w[out_axis] % g->groups != 0)
        return tconv_fail(error, TCONV_ERROR_SHAPE,
                          "the filter has %" PRId64 " output channels (axis %d), which %" PRId64
                          " groups do not divide",
                          w[out_axis], out_axis, g->groups);
    g->group_in_channels = w[in_axis];
    g->group_out_channels = w[out_axis] / g->groups;
    return TCONV_OK;
}

/* Finds the channels and spatial axes of each tensor, and reads the numbers of channels. */
static tconv_status read_channels(const tconv_problem *p, tconv_geometry *g, tconv_error *error)
{
    if (tconv_convolves(p)) return read_forward_channels(p, g, error);
    const bool oneapi = p->operation == TCONV_ONEAPI_CONV_BACKPROP;
    g->axes = p->data.rank - 2;
    g->data_format = data_format_of(p);
    const int channel_axis = channel_axis_of(p);
    const int64_t *x = p->data.dim, *w = p->filter.dim, channels = x[channel_axis];
    const int first_spatial = g->data_format == TCONV_NXC ? 1 : 2;
    g->batch = x[0];
    memcpy(g->input, x + first_spatial, (size_t)g->axes * sizeof *g->input);

    if (p->operation == TCONV_GROUP_CONV_BACKPROP) {
        g->groups = w[0];
        g->group_in_channels = w[1];
        g->group_out_channels = w[2];
        memcpy(g->kernel, w + 3, (size_t)g->axes * sizeof *g->kernel);
        int64_t wanted;
        const bool fits = tconv_mul(w[0], w[1], &wanted);
        if (!fits || wanted != channels)
            return tconv_fail(
                error, TCONV_ERROR_SHAPE,
                "data has %" PRId64 " channels (axis 1), but the filter wants %" PRId64
                " groups (axis 0) of %" PRId64 " input channels (axis 1)%s",
                channels, w[0], w[1],
                fits && wanted == x[p->data.rank - 1]
                    ? "; for channels last, use the oneAPI form (data_format NXC, groups) "
                      "with a filter without the group axis"
                    : "");
        return TCONV_OK;
    }
    const bool xio = oneapi && p->filter_format != TCONV_OIX;
    const int in_axis = xio ? p->filter.rank - 1 : 0, out_axis = xio ? p->filter.rank - 2 : 1;
    if (w[in_axis] != channels) {
        char hint[100];
        hint_formats(p, g->data_format == TCONV_NXC, xio, hint, sizeof hint);
        if (!oneapi)
            return tconv_fail(error, TCONV_ERROR_SHAPE,
                              "data has %" PRId64
                              " channels (axis %d), but the filter wants %" PRId64
                              " input channels (axis %d)%s",
                              channels, channel_axis, w[in_axis], in_axis, hint);
        return tconv_fail(error, TCONV_ERROR_SHAPE,
                          "data has %" PRId64
                          " channels (axis %d of data_format %s), but the filter wants %" PRId64
                          " input channels (axis %d of filter_format %s, which is %s)%s",
                          channels, channel_axis, tconv_data_format_name(g->data_format),
                          w[in_axis], in_axis,
                          tconv_filter_format_name(xio ? TCONV_XIO : TCONV_OIX),
                          xio ? "kernel, output channels of a group, input channels of all groups"
                              : "input channels of all groups, output channels of a group, kernel",
                          hint);
    }
    g->groups = p->groups == 0 ? 1 : p->groups;
    if (channels % g->groups != 0)
        return tconv_fail(error, TCONV_ERROR_SHAPE,
                          "data has %" PRId64 " channels (axis %d), which %" PRId64
                          " groups do not divide",
                          channels, channel_axis, g->groups);
    g->group_in_channels = channels / g->groups;
    g->group_out_channels = w[out_axis];
    memcpy(g->kernel, w + (xio ? 0 : 2), (size_t)g->axes * sizeof *g->kernel);
    return TCONV_OK;
}

/* Reads one attribute into `values`, or its default if it is absent. */
static tconv_status read_list(const char *argument, const tconv_list *list, int axes,
                              int64_t absent, int64_t least, int64_t *values, tconv_error *error)
{
    if (list->count != 0 && list->count != axes)
        return tconv_fail(
            error, TCONV_ERROR_ATTRIBUTE,
            "%s has %d values: it must have one for each of the %d spatial axes, or none", argument,
            list->count, axes);
    tconv_status status = TCONV_OK;
    for (int a = 0; a < axes && status == TCONV_OK; a++) {
        values[a] = list->count == 0 ? absent : list->value[a];
        status = tconv_range_check(argument, "spatial axis", a, values[a], least, INT64_MAX, error);
    }
    return status;
}

/* What a sentence calls a list. */
static const char *argument_of(const tconv_problem *p, const char *member)
{
    if (!tconv_convolves(p) || strcmp(member, "strides") != 0) return member;
    return tconv_shuffles(p) ? "strides (the factors of the pixel shuffle)"
                             : "strides (the factors of the upsampling)";
}

/* Pads of an upsampling may be negative: how far depends on the factor (check_cut). */
static int64_t least_of(const tconv_problem *p, const char *member, int64_t least)
{
    const bool pads = strcmp(member, "pads_begin") == 0 || strcmp(member, "pads_end") == 0;
    return pads && p->operation == TCONV_UPSAMPLE_CONV ? INT64_MIN : least;
}

#define NUMBERS(kind, member, ...) int64_t member[TCONV_MAX_AXES];
#define READ(kind, member, option, reads, absent, least)                                           \
    if (status == TCONV_OK)                                                                        \
        status = read_list(argument_of(p, #member), &p->member, g->axes, absent,                   \
                           least_of(p, #member, least), of.member, error);

/* Negative pads cut enlarged data, but not all that one input became: that would be smaller data.
 */
static tconv_status check_cut(const struct tconv_axis_request *r, int a, tconv_error *error)
{
    const int64_t least = 1 - r->stride;
    const tconv_status status =
        tconv_range_check("pads_begin", "spatial axis", a, r->pad_begin, least, INT64_MAX, error);
    return status != TCONV_OK ? status
                              : tconv_range_check("pads_end", "spatial axis", a, r->pad_end, least,
                                                  INT64_MAX, error);
}

/* The pads of a convolution whose taps reach over `span` + 1 inputs. */
static void forward_pads(tconv_auto_pad auto_pad, const struct tconv_axis_request *r, int64_t span,
                         int64_t *begin, int64_t *end)
{
    *begin = r->pad_begin;
    *end = r->pad_end;
    if (auto_pad == TCONV_EXPLICIT) return;
    const int64_t total = auto_pad == TCONV_VALID ? 0 : span;
    *begin = auto_pad == TCONV_SAME_LOWER ? total - total / 2 : total / 2;
    *end = total - *begin;
}

/* Resolves an axis of upsampling by s and a convolution, as the transposed convolution that
 * computes it (geometry/equivalent.h). False if a number does not fit into 64 bits. */
static bool resolve_upsampling(tconv_auto_pad auto_pad, const struct tconv_axis_request *r,
                               tconv_geometry *g, int a)
{
    int64_t span, enlarged, pads, taps, begin, end;
    if (!tconv_mul(r->dilation, r->kernel - 1, &span) ||
        !tconv_mul(r->stride, r->input, &enlarged) || !tconv_add(span, r->stride, &taps))
        return false;
    forward_pads(auto_pad, r, span, &begin, &end);
    /* With a factor of 1 the taps keep their dilation, and no weights of 0 stand between them. */
    g->kernel[a] = r->stride == 1 ? r->kernel : taps;
    g->dilation[a] = r->stride == 1 ? r->dilation : 1;
    g->pad_begin[a] = span - begin;
    g->pad_end[a] = span - end;
    return tconv_add(begin, end, &pads) && tconv_sub(enlarged, span, &g->output[a]) &&
           tconv_add(g->output[a], pads, &g->output[a]) && g->output[a] < INT64_MAX - span;
}

/* The same of a convolution and pixel shuffle by r. An axis without an output has one of at most
 * 0. */
static bool resolve_shuffle(tconv_auto_pad auto_pad, const struct tconv_axis_request *r,
                            tconv_geometry *g, int a)
{
    int64_t span, pads, convolved, begin, end;
    if (!tconv_mul(r->dilation, r->kernel - 1, &span) ||
        !tconv_mul(r->stride, r->kernel, &g->kernel[a]))
        return false;
    forward_pads(auto_pad, r, span, &begin, &end);
    g->dilation[a] = r->dilation; /* 1 with another factor than 1 */
    return tconv_add(begin, end, &pads) && tconv_sub(r->input, span, &convolved) &&
           tconv_add(convolved, pads, &convolved) &&
           tconv_mul(r->stride, span - begin, &g->pad_begin[a]) &&
           tconv_mul(r->stride, span - end, &g->pad_end[a]) &&
           tconv_mul(r->stride, convolved, &g->output[a]) && g->output[a] < INT64_MAX - span;
}

/* An output channel of pixel shuffle takes a channel of the convolution for each phase. */
static tconv_status take_phases(const tconv_problem *p, tconv_geometry *g, tconv_error *error)
{
    int64_t phases = 1;
    bool fits = true;
    for (int a = 0; a < g->axes; a++) fits = fits && tconv_mul(phases, g->stride[a], &phases);
    if (fits && g->group_out_channels % phases == 0) {
        g->group_out_channels /= phases;
        return TCONV_OK;
    }
    const int axis = p->filter_format == TCONV_XIO ? p->filter.rank - 1 : 0;
    char factors[TCONV_MAX_AXES * 21] = "";
    size_t length = 0;
    for (int a = 0; a < g->axes; a++)
        length += (size_t)snprintf(factors + length, sizeof factors - length, "%s%" PRId64,
                                   a == 0 ? "" : "x", g->stride[a]);
    return tconv_fail(error, TCONV_ERROR_SHAPE,
                      "the filter has %" PRId64 " output channels (axis %d)%s, but pixel shuffle "
                      "by %s takes %s%" PRId64 " of them for each channel of the output: their "
                      "number must be a multiple",
                      g->group_out_channels, axis, g->groups > 1 ? " for each group" : "", factors,
                      fits ? "" : "more than ", fits ? phases : INT64_MAX);
}

static tconv_status resolve_axes(const tconv_problem *p, tconv_geometry *g, tconv_error *error)
{
    struct {
        TCONV_PROBLEM_LISTS(NUMBERS)
    } of;
    tconv_status status = TCONV_OK;
    TCONV_PROBLEM_LISTS(READ)
    if (status != TCONV_OK) return status;
    memcpy(g->stride, of.strides, (size_t)g->axes * sizeof *g->stride);
    memcpy(g->dilation, of.dilations, (size_t)g->axes * sizeof *g->dilation);
    for (int a = 0; a < g->axes; a++) {
        const struct tconv_axis_request request = {
            .input = g->input[a],
            .kernel = g->kernel[a],
            .stride = g->stride[a],
            .dilation = g->dilation[a],
            .pad_begin = of.pads_begin[a],
            .pad_end = of.pads_end[a],
            .output_padding = of.output_padding[a],
            .has_output = p->output_shape.count != 0,
            .output = of.output_shape[a],
        };
        struct tconv_axis_pads pads;
        const bool shuffles = tconv_shuffles(p), upsamples = p->operation == TCONV_UPSAMPLE_CONV,
                   convolves = shuffles || upsamples;
        if (upsamples && (status = check_cut(&request, a, error)) != TCONV_OK) return status;
        const bool fits = shuffles    ? resolve_shuffle(p->auto_pad, &request, g, a)
                          : upsamples ? resolve_upsampling(p->auto_pad, &request, g, a)
                                      : tconv_axis_resolve(p->rules, p->auto_pad, &request, &pads);
        if (fits && convolves)
            pads = (struct tconv_axis_pads){g->pad_begin[a], g->pad_end[a], g->output[a]};
        if (!fits)
            return tconv_fail(error, TCONV_ERROR_SHAPE,
                              "spatial axis %d overflows 64 bits: input %" PRId64
                              ", kernel %" PRId64 ", %s %" PRId64 ", dilation %" PRId64
                              ", pads %" PRId64 " and %" PRId64 ", output_padding %" PRId64,
                              a, request.input, request.kernel, convolves ? "factor" : "stride",
                              request.stride, request.dilation, request.pad_begin, request.pad_end,
                              request.output_padding);
        if (shuffles && request.stride > 1 && request.dilation > 1)
            return tconv_fail(error, TCONV_ERROR_UNSUPPORTED,
                              "dilations[%d] is %" PRId64 ", but the factor of the pixel shuffle "
                              "is %" PRId64 ": the taps of the transposed convolution that "
                              "computes both would have gaps; compute the convolution, and "
                              "shuffle its output",
                              a, request.dilation, request.stride);
        if (upsamples && request.stride > 1 && request.dilation > request.stride)
            return tconv_fail(error, TCONV_ERROR_UNSUPPORTED,
                              "dilations[%d] is %" PRId64 ", but the factor is %" PRId64
                              ": with a dilation above the factor the sums of the weights would "
                              "have gaps; enlarge the data, and give a factor of 1",
                              a, request.dilation, request.stride);
        if (convolves && pads.output < 1)
            return tconv_fail(error, TCONV_ERROR_SHAPE,
                              "the output would have extent %" PRId64
                              " at spatial axis %d: input %" PRId64 ", factor %" PRId64
                              ", kernel %" PRId64 ", dilation %" PRId64 ", pads %" PRId64
                              " and %" PRId64 "; it must be at least 1: choose larger pads, a "
                              "smaller dilation or larger data",
                              pads.output, a, request.input, request.stride, request.kernel,
                              request.dilation, request.pad_begin, request.pad_end);
        if (pads.output < 1)
            return tconv_fail(error, TCONV_ERROR_SHAPE,
                              "the output would have extent %" PRId64
                              " at spatial axis %d: input %" PRId64 ", kernel %" PRId64
                              ", stride %" PRId64 ", dilation %" PRId64 ", pads %" PRId64
                              " and %" PRId64 "; it must be at least 1: choose smaller pads or "
                              "larger data",
                              pads.output, a, request.input, request.kernel, request.stride,
                              request.dilation, pads.pad_begin, pads.pad_end);
        g->pad_begin[a] = pads.pad_begin;
        g->pad_end[a] = pads.pad_end;
        g->output[a] = pads.output;
    }
    return tconv_shuffles(p) ? take_phases(p, g, error) : TCONV_OK;
}

/* Counts the bytes of a tensor. They must fit into 63 bits, because index arithmetic relies on it.
 * tconv_check_addressable checks later whether a process can address them. */
static tconv_status count_bytes(const char *argument, const tconv_shape *shape, tconv_type type,
                                uint64_t *bytes, tconv_error *error)
{
    int64_t count = (int64_t)tconv_type_size(type);
    bool empty = false;
    for (int i = 0; i < shape->rank;
         i++) { /* an extent of 0 must not hide other extents that do not fit */
        empty |= shape->dim[i] == 0;
        if (!tconv_mul(count, tconv_max(shape->dim[i], 1), &count))
            return tconv_fail(error, TCONV_ERROR_SHAPE,
                              "%s is too large: its bytes overflow at axis %d, extent %" PRId64,
                              argument, i, shape->dim[i]);
    }
    *bytes = empty ? 0 : (uint64_t)count;
    return TCONV_OK;
}

static tconv_status count_everything(const tconv_problem *p, tconv_geometry *g, tconv_error *error)
{
    int64_t channels;
    if (!tconv_mul(g->groups, g->group_out_channels, &channels))
        return tconv_fail(error, TCONV_ERROR_SHAPE,
                          "the output is too large: %" PRId64 " groups of %" PRId64 " channels",
                          g->groups, g->group_out_channels);
    const bool nxc = g->data_format == TCONV_NXC;
    g->output_type = p->output_type == TCONV_TYPE_DEFAULT ? p->data_type : p->output_type;
    g->output_shape.rank = p->data.rank;
    g->output_shape.dim[0] = g->batch;
    g->output_shape.dim[nxc ? p->data.rank - 1 : 1] = channels;
    memcpy(g->output_shape.dim + (nxc ? 1 : 2), g->output, (size_t)g->axes * sizeof *g->output);
    tconv_status status;
    if ((status = count_bytes("data", &p->data, p->data_type, &g->data_bytes, error)) != TCONV_OK ||
        (status = count_bytes("filter", &p->filter, p->filter_type, &g->filter_bytes, error)) !=
            TCONV_OK ||
        (status = count_bytes("the output", &g->output_shape, g->output_type, &g->output_bytes,
                              error)) != TCONV_OK)
        return status;
    g->epilogue_channels = tconv_shuffles(p) ? tconv_forward_channels(p) : channels;
    if (tconv_convolves(p)) {
        uint64_t bytes;
        tconv_shape equivalent = {g->axes + 2,
                                  {g->groups * g->group_in_channels, g->group_out_channels}};
        memcpy(equivalent.dim + 2, g->kernel, (size_t)g->axes * sizeof *g->kernel);
        status = count_bytes("the equivalent filter", &equivalent,
                             tconv_weight_type(p->data_type, p->filter_type), &bytes, error);
        if (status != TCONV_OK) return status;
    }
    if ((status = tconv_steps_resolve(p, g, error)) != TCONV_OK) return status;
    if (!tconv_count_macs(g, &g->macs))
        return tconv_fail(error, TCONV_ERROR_SHAPE,
                          "the number of multiply-adds does not fit into 64 bits");
    return TCONV_OK;
}

tconv_status tconv_resolve(const tconv_problem *problem, tconv_geometry *geometry,
                           tconv_error *error)
{
    if (problem == NULL || geometry == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          problem == NULL ? "problem" : "geometry");
    tconv_problem p = TCONV_PROBLEM_INIT;
    tconv_geometry resolved = TCONV_GEOMETRY_INIT;
    tconv_status status;
    if ((status = tconv_struct_read(TCONV_SIZED_PROBLEM, problem, &p, error)) != TCONV_OK ||
        (status = tconv_struct_check(TCONV_SIZED_GEOMETRY, geometry, error)) != TCONV_OK ||
        (status = check_enumerations(&p, error)) != TCONV_OK ||
        (status = check_ranks(&p, error)) != TCONV_OK ||
        (status = check_extents(&p, error)) != TCONV_OK ||
        (status = read_channels(&p, &resolved, error)) != TCONV_OK ||
        (status = resolve_axes(&p, &resolved, error)) != TCONV_OK ||
        (status = count_everything(&p, &resolved, error)) != TCONV_OK)
        return status;
    tconv_struct_write(TCONV_SIZED_GEOMETRY, &resolved, geometry);
    return TCONV_OK;
}
