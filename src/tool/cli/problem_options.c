/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a problem from the options: shapes, attributes and types. */
#include "tool/tool.h"

#include <inttypes.h>
#include <string.h>

bool read_attribute(const char *option, const char *text, int axes, tconv_list *list)
{
    if (text == NULL) return true;
    if (!read_numbers(option, text, list->value, TCONV_MAX_AXES, &list->count)) return false;
    if (list->count == 1 && axes >= 1 && axes <= TCONV_MAX_AXES)
        while (list->count < axes) list->value[list->count++] = list->value[0];
    return true;
}

static bool unknown_name(const char *option, const char *text, const char *names)
{
    wrong_request("%s is \"%s\": it must be %s", option, text, names);
    return false;
}

bool read_names(tconv_problem *p)
{
    static const char type_names[] = "f32, f16, bf16, f64, i8, i16, i32, i64, u8, u16, u32 or u64";
    if (options.auto_pad != NULL && !tconv_auto_pad_from_name(options.auto_pad, &p->auto_pad))
        return unknown_name("--auto-pad", options.auto_pad,
                            "explicit, valid, same_upper or same_lower");
    if (options.rules != NULL && !tconv_rules_from_name(options.rules, &p->rules))
        return unknown_name("--rules", options.rules, "spec, openvino or onnx");
    if (options.type != NULL && !tconv_type_from_name(options.type, &p->data_type))
        return unknown_name("--type", options.type, type_names);
    p->filter_type = p->data_type;
    if (options.filter_type != NULL && !tconv_type_from_name(options.filter_type, &p->filter_type))
        return unknown_name("--filter-type", options.filter_type, type_names);
    if (options.output_type != NULL && !tconv_type_from_name(options.output_type, &p->output_type))
        return unknown_name("--output-type", options.output_type, type_names);

    if (options.data_format != NULL &&
        !tconv_data_format_from_name(options.data_format, &p->data_format))
        return unknown_name("--data-format", options.data_format, "NCX or NXC");
    if (options.filter_format != NULL &&
        !tconv_filter_format_from_name(options.filter_format, &p->filter_format))
        return unknown_name("--filter-format", options.filter_format, "OIX or XIO");
    return true;
}

enum exit_code read_problem(const tconv_shape *data, const tconv_shape *filter, tconv_problem *p)
{
    p->data = *data;
    p->filter = *filter;
    if (options.groups != NULL || options.data_format != NULL || options.filter_format != NULL)
        p->operation = TCONV_ONEAPI_CONV_BACKPROP;
    else
        p->operation = filter->rank == data->rank + 1 ? TCONV_GROUP_CONV_BACKPROP
                                                      : TCONV_CONV_BACKPROP;
    int count;
    const int axes = data->rank - 2;
    if (!read_names(p) ||
        (options.groups != NULL &&
         !read_numbers("--groups", options.groups, &p->groups, 1, &count)) ||
        !read_attribute("--strides", options.strides, axes, &p->strides) ||
        !read_attribute("--dilations", options.dilations, axes, &p->dilations) ||
        !read_attribute("--pads-begin", options.pads_begin, axes, &p->pads_begin) ||
        !read_attribute("--pads-end", options.pads_end, axes, &p->pads_end) ||
        !read_attribute("--output-padding", options.output_padding, axes, &p->output_padding) ||
        !read_attribute("--output-shape", options.output_shape, axes, &p->output_shape))
        return EXIT_REQUEST_WRONG;
    if (options.groups != NULL && p->groups < 1)
        return wrong_request("--groups is %" PRId64 ": it must be at least 1", p->groups);
    return EXIT_DONE;
}

enum exit_code read_problem_with_shapes(tconv_problem *problem)
{
    if (options.data_shape == NULL || options.filter_shape == NULL)
        return wrong_request("%s is missing: a layer needs --data-shape and --filter-shape",
                             options.data_shape == NULL ? "--data-shape" : "--filter-shape");
    tconv_shape data, filter;
    if (!read_numbers("--data-shape", options.data_shape, data.dim, TCONV_MAX_RANK, &data.rank) ||
        !read_numbers("--filter-shape", options.filter_shape, filter.dim, TCONV_MAX_RANK,
                      &filter.rank))
        return EXIT_REQUEST_WRONG;
    return read_problem(&data, &filter, problem);
}

void tell_notes(const char *layer, const tconv_problem *problem)
{
    char notes[1000];
    tconv_problem_notes(problem, notes, sizeof notes);
    for (char *note = notes, *end; (end = strchr(note, '\n')) != NULL; note = end + 1)
        notice("%s%s%.*s", layer, layer[0] == '\0' ? "" : ": ", (int)(end - note), note);
}
