/* SPDX-License-Identifier: Apache-2.0 */
/* The three rule sets, one function each; docs/semantics.md has the same in words. Sources: `spec`
 * the operators' pages, `openvino` shape inference and runtime of OpenVINO 2026.4.1, `onnx`
 * ConvTranspose as ONNX Runtime 1.31.1 computes it. */
#include "geometry/rules.h"

#include "base/checked.h"

/* natural = s*(X-1) + d*(K-1) + 1: the extent that the data reaches without any pads. Empty data
 * (X = 0) can make it negative. */
static bool natural_extent(const struct tconv_axis_request *axis, int64_t *natural)
{
    int64_t a, b;
    return tconv_mul(axis->stride, axis->input - 1, &a) &&
           tconv_mul(axis->dilation, axis->kernel - 1, &b) && tconv_add(a, b, natural) &&
           tconv_add(*natural, 1, natural);
}

/* natural + output_padding - output: how much the requested output cuts off. Negative if it is
 * larger. */
static bool total_padding(const struct tconv_axis_request *axis, int64_t natural, int64_t *total)
{
    return tconv_sub(natural, axis->output, total) &&
           tconv_add(*total, axis->output_padding, total);
}

/* Pads are known, the output is not: Y = natural - pb - pe + op. */
static bool output_from_pads(const struct tconv_axis_request *axis, int64_t natural,
                             struct tconv_axis_pads *pads)
{
    return tconv_sub(natural, pads->pad_begin, &pads->output) &&
           tconv_sub(pads->output, pads->pad_end, &pads->output) &&
           tconv_add(pads->output, axis->output_padding, &pads->output);
}

/* The smaller half of the total at the begin, or the larger one. */
static void split(int64_t total, bool smaller_at_begin, struct tconv_axis_pads *pads)
{
    const int64_t smaller = tconv_floor_div(total, 2);
    pads->pad_begin = smaller_at_begin ? smaller : total - smaller;
    pads->pad_end = total - pads->pad_begin;
}

static bool by_attributes(tconv_auto_pad auto_pad, const struct tconv_axis_request *axis,
                          int64_t natural, struct tconv_axis_pads *pads)
{
    const bool explicit_pads = auto_pad == TCONV_EXPLICIT;
    pads->pad_begin = explicit_pads ? axis->pad_begin : 0;
    pads->pad_end = explicit_pads ? axis->pad_end : 0;
    return output_from_pads(axis, natural, pads);
}

static bool resolve_spec(tconv_auto_pad auto_pad, const struct tconv_axis_request *axis,
                         int64_t natural, struct tconv_axis_pads *pads)
{
    if (!axis->has_output) return by_attributes(auto_pad, axis, natural, pads);
    int64_t total;
    if (!total_padding(axis, natural, &total)) return false;
    split(total, auto_pad != TCONV_SAME_UPPER, pads);
    pads->output = axis->output;
    return true;
}

static bool resolve_openvino(tconv_auto_pad auto_pad, const struct tconv_axis_request *axis,
                             int64_t natural, struct tconv_axis_pads *pads)
{
    if (!axis->has_output) return by_attributes(auto_pad, axis, natural, pads);
    if (auto_pad == TCONV_SAME_UPPER || auto_pad == TCONV_SAME_LOWER) {
        int64_t total;
        if (!total_padding(axis, natural, &total)) return false;
        split(tconv_max(0, total), auto_pad == TCONV_SAME_LOWER, pads);
    } else {
        pads->pad_begin = auto_pad == TCONV_EXPLICIT ? axis->pad_begin : 0;
        pads->pad_end = auto_pad == TCONV_EXPLICIT ? axis->pad_end : 0;
    }
    pads->output = axis->output;
    return true;
}

static bool resolve_onnx(tconv_auto_pad auto_pad, const struct tconv_axis_request *axis,
                         int64_t natural, struct tconv_axis_pads *pads)
{
    if (axis->has_output) {
        int64_t total;
        if (!total_padding(axis, natural, &total)) return false;
        split(tconv_max(0, total), auto_pad == TCONV_SAME_UPPER, pads);
        pads->output = axis->output;
        return true;
    }
    if (auto_pad == TCONV_EXPLICIT || auto_pad == TCONV_VALID)
        return by_attributes(auto_pad, axis, natural, pads);
    /* same_*: the output aims at X*s, so what is cut off is the dilated kernel minus the stride;
     * the padding is absorbed. */
    int64_t total;
    if (!tconv_mul(axis->dilation, axis->kernel - 1, &total) || !tconv_add(total, 1, &total) ||
        !tconv_sub(total, axis->stride, &total) || !tconv_add(total, axis->output_padding, &total))
        return false;
    split(tconv_max(0, total), auto_pad == TCONV_SAME_UPPER, pads);
    return output_from_pads(axis, natural, pads);
}

bool tconv_axis_resolve(tconv_rules rules, tconv_auto_pad auto_pad,
                        const struct tconv_axis_request *axis, struct tconv_axis_pads *pads)
{
    int64_t natural, span, past_end;
    if (!natural_extent(axis, &natural)) return false;
    bool fits = false;
    switch (rules) {
    case TCONV_RULES_SPEC: fits = resolve_spec(auto_pad, axis, natural, pads); break;
    case TCONV_RULES_OPENVINO: fits = resolve_openvino(auto_pad, axis, natural, pads); break;
    case TCONV_RULES_ONNX: fits = resolve_onnx(auto_pad, axis, natural, pads); break;
    }
    /* Every later index is an output position plus pad_begin, with or without the kernel's span, or
     * the natural extent. */
    return fits && tconv_add(pads->output, pads->pad_begin, &past_end) &&
           tconv_sub(natural, pads->pad_begin, &past_end) &&
           tconv_mul(axis->dilation, axis->kernel - 1, &span) &&
           tconv_sub(pads->pad_begin, span, &past_end);
}
