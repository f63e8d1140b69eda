/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a problem from the options: shapes, attributes and types. */
#include "base/members.h"
#include "tool/tool.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

bool read_attribute(const char *option, const char *text, int axes, tconv_list *list)
{
    if (text == NULL) return true;
    if (!read_numbers(option, text, list->value, TCONV_MAX_AXES, &list->count)) return false;
    if (list->count == 1 && axes >= 1 && axes <= TCONV_MAX_AXES)
        while (list->count < axes) list->value[list->count++] = list->value[0];
    return true;
}

static bool unknown_name(const char *option, const char *text, const struct names *names)
{
    const char *write = foreign_value(option + strspn(option, "-"), text);
    wrong_request("%s is \"%s\": it must be %s%s%s", option, text, names->text,
                  write == NULL ? "" : "; write ", write == NULL ? "" : write);
    return false;
}

/* Reading the option of a member, by the kind of its row. Enumerators are small numbers. */
enum { MOST_ENUMERATORS = 64 };
#define READ(kind, ...) READ_##kind(__VA_ARGS__)
#define READ_NAME(member, option, reads, when, kind)                                               \
    if (options.member != NULL && !tconv_##kind##_from_name(options.member, &p->member)) {         \
        struct names names = {"", 0};                                                              \
        for (int i = 0; i < MOST_ENUMERATORS; i++)                                                 \
            add_name(&names, tconv_##kind##_name((tconv_##kind)i));                                \
        end_names(&names, "or");                                                                   \
        return unknown_name("--" option, options.member, &names);                                  \
    }
#define READ_NUMBER(member, option, reads, when, absent, least, most)                              \
    if (!read_number("--" option, options.member, least, most, "", &p->member)) return false;
#define READ_LIST(member, option, reads, absent, least)                                            \
    if (!read_attribute("--" option, options.member, axes, &p->member)) return EXIT_REQUEST_WRONG;

/* As many numbers as the tensor has axes; the library checks how many they are. */
#define READ_STEPS(member, option, reads, least)                                                   \
    if (options.member != NULL && !read_numbers("--" option, options.member, p->member.value,      \
                                                TCONV_MAX_RANK, &p->member.count))                 \
        return EXIT_REQUEST_WRONG;

bool read_scalars(tconv_problem *p)
{
    TCONV_PROBLEM_NUMBERS(READ)
    if (options.filter_type == NULL) p->filter_type = p->data_type;
    return true;
}

/* Takes the operator of --upsample or --pixel-shuffle; `option` is the one that was given, NULL:
 * none. */
static enum exit_code read_convolution(tconv_problem *p, const char **option)
{
    const bool shuffles = options.pixel_shuffle != NULL, upsamples = options.upsample != NULL;
    const char *order = options.shuffle_order;
    *option = shuffles ? "--pixel-shuffle" : upsamples ? "--upsample" : NULL;
    if (shuffles && upsamples)
        return wrong_request("--upsample and --pixel-shuffle: a layer has one of them; leave out "
                             "the other");
    if (order != NULL && !shuffles)
        return wrong_request("--shuffle-order is given, but --pixel-shuffle is not: add it");
    if (order != NULL && strcasecmp(order, "CRD") != 0 && strcasecmp(order, "DCR") != 0)
        return wrong_request("--shuffle-order is \"%s\": it must be CRD or DCR", order);
    if (*option != NULL && options.strides != NULL)
        return wrong_request("%s and --strides: the convolution has stride 1; leave out --strides",
                             *option);
    if (upsamples) p->operation = TCONV_UPSAMPLE_CONV;
    if (shuffles)
        p->operation = order != NULL && strcasecmp(order, "DCR") == 0 ? TCONV_CONV_PIXEL_SHUFFLE_DCR
                                                                      : TCONV_CONV_PIXEL_SHUFFLE;
    return EXIT_DONE;
}

enum exit_code read_problem(const tconv_shape *data, const tconv_shape *filter, tconv_problem *p)
{
    p->data = *data;
    p->filter = *filter;
    const char *factors;
    const enum exit_code code = read_convolution(p, &factors);
    if (code != EXIT_DONE) return code;
    if (factors == NULL)
        p->operation = options.groups != NULL || options.data_format != NULL ||
                               options.filter_format != NULL
                           ? TCONV_ONEAPI_CONV_BACKPROP
                       : filter->rank == data->rank + 1 ? TCONV_GROUP_CONV_BACKPROP
                                                        : TCONV_CONV_BACKPROP;
    const int axes = data->rank - 2;
    if (!read_scalars(p)) return EXIT_REQUEST_WRONG;
    TCONV_PROBLEM_LISTS(READ)
    TCONV_PROBLEM_STEPS(READ)
    if (factors != NULL &&
        !read_attribute(factors,
                        options.upsample != NULL ? options.upsample : options.pixel_shuffle, axes,
                        &p->strides))
        return EXIT_REQUEST_WRONG;
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
    const char *at = notes, *note;
    tconv_problem_notes(problem, notes, sizeof notes);
    for (int length; (note = next_line(&at, &length)) != NULL;)
        notice("%s%s%.*s", layer, layer[0] == '\0' ? "" : ": ", length, note);
}
