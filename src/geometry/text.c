/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a problem as one line of tool options, without defaults, and notes about attributes
 * without effect. */
#include "tconv_cl/problem.h"

#include "base/format.h"
#include "base/struct_size.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct text {
    char *begin;
    size_t size;
    int length; /* of the whole text, even if it does not fit */
};

static void put(struct text *text, const char *format, ...) TCONV_PRINTF(2, 3);
static void put(struct text *text, const char *format, ...)
{
    const size_t used = (size_t)text->length < text->size ? (size_t)text->length : text->size;
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text->begin == NULL ? NULL : text->begin + used, text->size - used,
                                 format, arguments);
    va_end(arguments);
    if (length > 0) text->length += length;
}

static void put_values(struct text *text, const char *option, const int64_t *values, int count,
                       int most)
{
    put(text, "%s--%s ", text->length == 0 ? "" : " ", option);
    for (int i = 0; i < count && i < most; i++)
        put(text, "%s%" PRId64, i == 0 ? "" : ",", values[i]);
}

static void put_list(struct text *text, const char *option, const tconv_list *list)
{
    if (list->count != 0) put_values(text, option, list->value, list->count, TCONV_MAX_AXES);
}

int tconv_problem_text(const tconv_problem *problem, char *buffer, size_t size)
{
    struct text text = {size == 0 ? NULL : buffer, size, 0};
    tconv_problem own = TCONV_PROBLEM_INIT;
    const tconv_problem *p = &own;
    if (problem == NULL ||
        tconv_struct_read(TCONV_SIZED_PROBLEM, problem, &own, NULL) != TCONV_OK) {
        put(&text, "no problem");
        return text.length;
    }
    put_values(&text, "data-shape", p->data.dim, p->data.rank, TCONV_MAX_RANK);
    put_values(&text, "filter-shape", p->filter.dim, p->filter.rank, TCONV_MAX_RANK);
    put_list(&text, "strides", &p->strides);
    put_list(&text, "dilations", &p->dilations);
    put_list(&text, "pads-begin", &p->pads_begin);
    put_list(&text, "pads-end", &p->pads_end);
    put_list(&text, "output-padding", &p->output_padding);
    put_list(&text, "output-shape", &p->output_shape);
    if (p->auto_pad != TCONV_EXPLICIT)
        put(&text, " --auto-pad %s", tconv_auto_pad_name(p->auto_pad));
    if (p->rules != TCONV_RULES_SPEC) put(&text, " --rules %s", tconv_rules_name(p->rules));
    if (p->data_type != TCONV_F32) put(&text, " --type %s", tconv_type_name(p->data_type));
    if (p->filter_type != p->data_type)
        put(&text, " --filter-type %s", tconv_type_name(p->filter_type));
    if (p->output_type != TCONV_TYPE_DEFAULT)
        put(&text, " --output-type %s", tconv_type_name(p->output_type));
    if (p->operation == TCONV_ONEAPI_CONV_BACKPROP) {
        put(&text, " --groups %" PRId64, p->groups == 0 ? 1 : p->groups);
        put(&text, " --data-format %s", p->data_format == TCONV_NCX ? "NCX" : "NXC");
        put(&text, " --filter-format %s", p->filter_format == TCONV_OIX ? "OIX" : "XIO");
    }
    return text.length;
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

static void note_rules(struct text *text, const tconv_problem *problem,
                       const tconv_geometry *geometry)
{
    tconv_problem other = *problem;
    tconv_geometry spec = TCONV_GEOMETRY_INIT;
    other.rules = TCONV_RULES_SPEC;
    const bool refused = tconv_resolve(&other, &spec, NULL) != TCONV_OK;
    if (refused || !same_pads(geometry, &spec))
        put(text,
            "the rules %s resolve pads and output otherwise than the published formulas (rules "
            "spec)%s\n",
            tconv_rules_name(problem->rules), refused ? ", which refuse the layer" : "");
}

int tconv_problem_notes(const tconv_problem *problem, char *buffer, size_t size)
{
    struct text text = {size == 0 ? NULL : buffer, size, 0};
    tconv_problem p = TCONV_PROBLEM_INIT;
    tconv_geometry g = TCONV_GEOMETRY_INIT;
    put(&text, "%s", "");
    if (problem == NULL || tconv_struct_read(TCONV_SIZED_PROBLEM, problem, &p, NULL) != TCONV_OK ||
        tconv_resolve(&p, &g, NULL) != TCONV_OK)
        return 0;
    const bool has_output = p.output_shape.count != 0;
    if (ignores_pads(&p, &g))
        put(&text, "the given pads have no effect: %s%s\n",
            has_output ? "pads follow from the output shape under the rules "
                       : "pads follow from auto_pad ",
            has_output ? tconv_rules_name(p.rules) : tconv_auto_pad_name(p.auto_pad));
    if ((p.auto_pad == TCONV_SAME_UPPER || p.auto_pad == TCONV_SAME_LOWER) && !has_output &&
        p.rules != TCONV_RULES_ONNX)
        put(&text,
            "auto_pad %s has no effect without an output shape under the rules %s: pads are 0, as "
            "with valid; give an output shape, or the rules onnx\n",
            tconv_auto_pad_name(p.auto_pad), tconv_rules_name(p.rules));
    if (p.rules != TCONV_RULES_SPEC) note_rules(&text, &p, &g);
    return text.length;
}
