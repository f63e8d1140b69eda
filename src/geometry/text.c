/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a problem as one line of tool options, without defaults, and notes about attributes
 * without effect. */
#include "tconv_cl/problem.h"

#include "base/convolves.h"
#include "base/format.h"
#include "base/members.h"
#include "base/steps.h"
#include "base/struct_size.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

static void put_values(struct tconv_text *text, const char *option, const int64_t *values,
                       int count, int most)
{
    tconv_text_add(text, "%s--%s ", text->length == 0 ? "" : " ", option);
    for (int i = 0; i < count && i < most; i++)
        tconv_text_add(text, "%s%" PRId64, i == 0 ? "" : ",", values[i]);
}

/* What the text has of a member, by the kind of its row. */
#define PUT(kind, ...) PUT_##kind(__VA_ARGS__)
#define PUT_SHAPE(member, option, reads)                                                           \
    put_values(&text, option, p->member.dim, p->member.rank, TCONV_MAX_RANK);
#define PUT_LIST(member, option, reads, absent, least)                                             \
    if (p->member.count != 0)                                                                      \
        put_values(&text, option, p->member.value, p->member.count, TCONV_MAX_AXES);
#define PUT_STEPS(member, option, reads, least)                                                    \
    if (p->member.count != 0)                                                                      \
        put_values(&text, option, p->member.value, p->member.count, TCONV_MAX_RANK);
#define PUT_NAME(member, option, reads, when, kind)                                                \
    if (when) tconv_text_add(&text, " --%s %s", option, tconv_##kind##_name(p->member));
#define PUT_NUMBER(member, option, reads, when, absent, least, most)                               \
    if (when) tconv_text_add(&text, " --%s %" PRId64, option, p->member);
#define PUT_IMPLIED(member, option, reads)

/* Replaces formats that were not given. */
static void set_formats(tconv_problem *problem, tconv_data_format data, tconv_filter_format filter)
{
    if (problem->data_format == TCONV_DATA_DEFAULT) problem->data_format = data;
    if (problem->filter_format == TCONV_FILTER_DEFAULT) problem->filter_format = filter;
}

int tconv_problem_text(const tconv_problem *problem, char *buffer, size_t size)
{
    struct tconv_text text = tconv_text_begin(buffer, size);
    tconv_problem own = TCONV_PROBLEM_INIT;
    const tconv_problem *p = &own;
    if (problem == NULL ||
        tconv_struct_read(TCONV_SIZED_PROBLEM, problem, &own, NULL) != TCONV_OK) {
        tconv_text_add(&text, "no problem");
        return (int)text.length;
    }
    /* Defaults of the oneAPI form and of convolutions, which their options spell out. */
    const tconv_list given = own.strides;
    const bool convolves = tconv_convolves(&own);
    if (own.groups == 0) own.groups = 1;
    set_formats(&own, convolves ? TCONV_NCX : TCONV_NXC, convolves ? TCONV_OIX : TCONV_XIO);
    if (convolves) own.strides.count = 0; /* they are the factors */
    TCONV_PROBLEM_MEMBERS(PUT)
    if (convolves) {
        int64_t factors[TCONV_MAX_AXES];
        const int axes = own.data.rank - 2;
        for (int a = 0; a < axes && a < TCONV_MAX_AXES; a++)
            factors[a] = given.count == axes ? given.value[a] : 1;
        put_values(&text, tconv_shuffles(&own) ? "pixel-shuffle" : "upsample", factors, axes,
                   TCONV_MAX_AXES);
        if (own.operation == TCONV_CONV_PIXEL_SHUFFLE_DCR)
            tconv_text_add(&text, " --shuffle-order DCR");
    }
    return (int)text.length;
}

static bool is_zero(const tconv_list *list)
{
    for (int a = 0; a < list->count; a++)
        if (list->value[a] != 0) return false;
    return true;
}

static bool same_pads(const tconv_geometry *a, const tconv_geometry *b)
{
    const size_t bytes = (size_t)a->axes * sizeof *a->output;
    return memcmp(a->pad_begin, b->pad_begin, bytes) == 0 &&
           memcmp(a->pad_end, b->pad_end, bytes) == 0 && memcmp(a->output, b->output, bytes) == 0;
}

/* True if the problem resolves to the same without its pads. */
static bool ignores_pads(const tconv_problem *problem, const tconv_geometry *geometry)
{
    tconv_problem other = *problem;
    tconv_geometry without = TCONV_GEOMETRY_INIT;
    if (is_zero(&problem->pads_begin) && is_zero(&problem->pads_end)) return false;
    other.pads_begin.count = other.pads_end.count = 0;
    return tconv_resolve(&other, &without, NULL) == TCONV_OK && same_pads(geometry, &without);
}

static void note_rules(struct tconv_text *text, const tconv_problem *problem,
                       const tconv_geometry *geometry)
{
    tconv_problem other = *problem;
    tconv_geometry spec = TCONV_GEOMETRY_INIT;
    other.rules = TCONV_RULES_SPEC;
    const bool refused = tconv_resolve(&other, &spec, NULL) != TCONV_OK;
    if (refused || !same_pads(geometry, &spec))
        tconv_text_add(
            text,
            "the rules %s give other pads or another output than the published formulas (rules "
            "spec)%s\n",
            tconv_rules_name(problem->rules), refused ? ", which refuse the layer" : "");
}

/* Formats that were not given and decide what is computed: the tensors fit the other ones, too. */
static void note_formats(struct tconv_text *text, const tconv_problem *problem)
{
    if (problem->operation != TCONV_ONEAPI_CONV_BACKPROP) return;
    tconv_problem taken = *problem, other = *problem;
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    set_formats(&taken, TCONV_NXC, TCONV_XIO);
    set_formats(&other, TCONV_NCX, TCONV_OIX);
    const bool data = other.data_format != problem->data_format,
               filter = other.filter_format != problem->filter_format;
    if ((!data && !filter) || tconv_resolve(&other, &geometry, NULL) != TCONV_OK) return;
    if (data && filter)
        tconv_text_add(text,
                       "data_format %s and filter_format %s are taken, the oneAPI form's defaults; "
                       "the tensors also fit %s and %s: give the formats\n",
                       tconv_data_format_name(taken.data_format),
                       tconv_filter_format_name(taken.filter_format),
                       tconv_data_format_name(other.data_format),
                       tconv_filter_format_name(other.filter_format));
    else
        tconv_text_add(text,
                       "%s %s is taken, the oneAPI form's default; the tensors also fit %s: give "
                       "the format\n",
                       data ? "data_format" : "filter_format",
                       data ? tconv_data_format_name(taken.data_format)
                            : tconv_filter_format_name(taken.filter_format),
                       data ? tconv_data_format_name(other.data_format)
                            : tconv_filter_format_name(other.filter_format));
}

int tconv_problem_notes(const tconv_problem *problem, char *buffer, size_t size)
{
    struct tconv_text text = tconv_text_begin(buffer, size);
    tconv_problem p = TCONV_PROBLEM_INIT;
    tconv_geometry g = TCONV_GEOMETRY_INIT;
    if (problem == NULL || tconv_struct_read(TCONV_SIZED_PROBLEM, problem, &p, NULL) != TCONV_OK ||
        tconv_resolve(&p, &g, NULL) != TCONV_OK)
        return 0;
    /* Notes are about extents and pads: with another output the given steps might not fit. */
    p = tconv_without_steps(&p);
    const bool has_output = p.output_shape.count != 0;
    if (ignores_pads(&p, &g))
        tconv_text_add(&text, "the given pads have no effect: %s%s\n",
                       has_output ? "pads follow from the output shape under the rules "
                                  : "pads follow from auto_pad ",
                       has_output ? tconv_rules_name(p.rules) : tconv_auto_pad_name(p.auto_pad));
    if ((p.auto_pad == TCONV_SAME_UPPER || p.auto_pad == TCONV_SAME_LOWER) && !has_output &&
        p.rules != TCONV_RULES_ONNX && !tconv_convolves(&p))
        tconv_text_add(
            &text,
            "auto_pad %s has no effect without an output shape under the rules %s: pads are 0, as "
            "with valid; give an output shape, or the rules onnx\n",
            tconv_auto_pad_name(p.auto_pad), tconv_rules_name(p.rules));
    if (p.rules != TCONV_RULES_SPEC) note_rules(&text, &p, &g);
    note_formats(&text, &p);
    return (int)text.length;
}
