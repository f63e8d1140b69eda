/* SPDX-License-Identifier: Apache-2.0 */
/* Resolving in 128 bits. Every number that comes in has 64 bits, so that sums and one product never
 * overflow; products of more saturate. */
#include "exact.h"

static exact smaller(exact a, exact b)
{
    return a < b ? a : b;
}

static exact larger(exact a, exact b)
{
    return a > b ? a : b;
}

/* Rounds toward minus infinity; b > 0. */
static exact floor_of(exact a, exact b)
{
    exact quotient = a / b;
    while (quotient * b > a) quotient--;
    return quotient;
}

/* Of numbers that are not negative. */
static exact times(exact a, exact b)
{
    if (a == 0 || b == 0) return 0;
    return a > EXACT_MANY / b ? EXACT_MANY : a * b;
}

static bool fits(exact value)
{
    return value >= INT64_MIN && value <= INT64_MAX;
}

static int bytes_of(tconv_type type)
{
    static const int bytes[] = {0, 4, 2, 2, 8, 1, 2, 4, 8, 1, 2, 4, 8};
    return (int)type < 1 || (int)type > 12 ? 0 : bytes[type];
}

/* The table of problem.h, line by line. */
static bool types_go_together(tconv_type data, tconv_type filter, tconv_type output)
{
    const bool half = data == TCONV_F16 || data == TCONV_BF16;
    const bool byte = data == TCONV_I8 || data == TCONV_U8;
    if (data == filter && (output == TCONV_TYPE_DEFAULT || output == data)) return true;
    if (half && filter == data && output == TCONV_F32) return true;
    if (data == TCONV_F32 && (filter == TCONV_F16 || filter == TCONV_BF16) &&
        (output == TCONV_TYPE_DEFAULT || output == TCONV_F32))
        return true;
    if (byte && filter == TCONV_I8 &&
        (output == TCONV_I32 || output == TCONV_I8 || output == TCONV_U8))
        return true;
    return byte && filter == data && output == TCONV_I32;
}

static bool enumerations_are_valid(const tconv_problem *p)
{
    const int operation = (int)p->operation, rules = (int)p->rules, pad = (int)p->auto_pad;
    const int data = (int)p->data_format, filter = (int)p->filter_format;
    if (operation < 1 || operation > 3 || rules < 0 || rules > 2 || pad < 0 || pad > 3)
        return false;
    if (data < 0 || data > 2 || filter < 0 || filter > 2) return false;
    if (bytes_of(p->data_type) == 0 || bytes_of(p->filter_type) == 0) return false;
    if (p->output_type != TCONV_TYPE_DEFAULT && bytes_of(p->output_type) == 0) return false;
    if (operation == TCONV_ONEAPI_CONV_BACKPROP) return p->groups >= 0;
    /* These two have fixed layouts; naming the one that they have is no mistake. */
    return p->groups == 0 && data != TCONV_NXC &&
           (filter == 0 || (filter == TCONV_OIX && operation == TCONV_CONV_BACKPROP));
}

/* Reads the shapes by the letters of the operators' pages. */
static bool read_shapes(const tconv_problem *p, struct exact_geometry *g)
{
    const bool grouped = p->operation == TCONV_GROUP_CONV_BACKPROP;
    const bool oneapi = p->operation == TCONV_ONEAPI_CONV_BACKPROP;
    const int rank = p->data.rank;
    if (rank < 3 || rank > 8 || p->filter.rank != (grouped ? rank + 1 : rank)) return false;
    g->axes = rank - 2;
    g->nxc = oneapi && p->data_format != TCONV_NCX;
    for (int i = 0; i < rank; i++) /* all axes but the channels may be empty */
        if (p->data.dim[i] < (i == (g->nxc ? rank - 1 : 1) ? 1 : 0)) return false;
    for (int i = 0; i < p->filter.rank; i++)
        if (p->filter.dim[i] < 1) return false;
    const bool xio = oneapi && p->filter_format != TCONV_OIX;
    const int64_t *x = p->data.dim, *w = p->filter.dim;
    const exact channels = g->nxc ? x[rank - 1] : x[1];
    g->batch = x[0];
    for (int a = 0; a < g->axes; a++) {
        g->input[a] = x[(g->nxc ? 1 : 2) + a];
        g->kernel[a] = w[(xio ? 0 : grouped ? 3 : 2) + a];
    }
    if (grouped) { /* [G, CI, CO, K...] */
        g->groups = w[0];
        g->in_channels = w[1];
        g->out_channels = w[2];
        return g->groups * g->in_channels == channels;
    }
    /* XIO is [K..., CO/G, CI], OIX [CI, CO/G, K...] with CI of all groups */
    g->groups = oneapi && p->groups > 0 ? p->groups : 1;
    g->in_channels = channels / g->groups;
    g->out_channels = xio ? w[rank - 2] : w[1];
    return (xio ? w[rank - 1] : w[0]) == channels && channels % g->groups == 0;
}

static bool read_list(const tconv_list *list, int axes, int64_t absent, int64_t least,
                      exact *values)
{
    if (list->count != 0 && list->count != axes) return false;
    for (int a = 0; a < axes; a++) {
        values[a] = list->count == 0 ? absent : list->value[a];
        if (values[a] < least) return false;
    }
    return true;
}

/* docs/semantics.md, "Resolving pads and output shape"; `out` is 0 where none was asked for. False
 * where the total, which is one of the numbers that must fit, does not. */
static bool resolve_axis(const tconv_problem *p, exact natural, exact pb, exact pe, exact op,
                         exact out, int a, struct exact_geometry *g)
{
    const bool same = p->auto_pad == TCONV_SAME_UPPER || p->auto_pad == TCONV_SAME_LOWER;
    const bool upper = p->auto_pad == TCONV_SAME_UPPER;
    exact total = natural + op - out;
    if (p->auto_pad != TCONV_EXPLICIT) pb = pe = 0;
    bool divided = false; /* the pads are the parts of a total */
    switch (p->rules) {
    case TCONV_RULES_SPEC:
        divided = out != 0;
        pb = !divided ? pb : upper ? total - floor_of(total, 2) : floor_of(total, 2);
        break;
    case TCONV_RULES_OPENVINO:
        divided = out != 0 && same;
        if (divided && total < 0) total = 0;
        pb = !divided ? pb : upper ? total - total / 2 : total / 2;
        break;
    case TCONV_RULES_ONNX:
        divided = out != 0 || same;
        if (out == 0) total = g->dilation[a] * (g->kernel[a] - 1) + 1 - g->stride[a] + op;
        if (divided && total < 0) total = 0;
        pb = !divided ? pb : upper ? total / 2 : total - total / 2;
        break;
    }
    g->pad_begin[a] = pb;
    g->pad_end[a] = divided ? total - pb : pe;
    g->output[a] = out != 0 ? out : natural - g->pad_begin[a] - g->pad_end[a] + op;
    return !divided || fits(total);
}

/* How many pairs (x, k) land inside the output: for each of the fewer, the others in one go. */
static exact count_pairs(const struct exact_geometry *g, int a, bool *known)
{
    enum { MOST = 1 << 12 };
    const bool taps = g->kernel[a] <= g->input[a]; /* one by one */
    const exact count = taps ? g->kernel[a] : g->input[a],
                step = taps ? g->dilation[a] : g->stride[a];
    const exact others = taps ? g->input[a] : g->kernel[a];
    const exact other_step = taps ? g->stride[a] : g->dilation[a];
    if (count > MOST) {
        *known = false;
        return 0;
    }
    exact pairs = 0;
    for (exact i = 0; i < count; i++) { /* 0 <= i*step + j*other_step - pb < Y */
        const exact least = g->pad_begin[a] - i * step, end = least + g->output[a];
        const exact first = least <= 0 ? 0 : floor_of(least + other_step - 1, other_step);
        const exact last = smaller(others - 1, floor_of(end - 1, other_step));
        if (last >= first) pairs += last - first + 1;
    }
    return pairs;
}

/* Bytes of one tensor; an empty axis hides nothing. */
static bool count_bytes(const int64_t *dim, int rank, tconv_type type, exact *bytes)
{
    *bytes = bytes_of(type);
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        *bytes = times(*bytes, larger(dim[i], 1));
        empty = empty || dim[i] == 0;
    }
    if (!fits(*bytes)) return false;
    if (empty) *bytes = 0;
    return true;
}

/* Element steps, with which bytes are counted from the first element to the last one. Absent steps
 * leave the bytes of a dense tensor. */
static bool read_steps(const tconv_steps *steps, const int64_t *dim, int rank, int64_t least,
                       tconv_type type, exact *bytes)
{
    if (steps->count == 0) return true;
    if (steps->count != rank) return false;
    exact last = 0;
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        if (steps->value[i] < least) return false;
        last += times(larger(dim[i], 1) - 1, steps->value[i]);
        if (!fits(last)) return false;
        empty = empty || dim[i] == 0;
    }
    if (!fits((last + 1) * bytes_of(type))) return false;
    *bytes = empty ? 0 : (last + 1) * bytes_of(type);
    return true;
}

/* Each step is larger than what all others that are not larger reach. */
static bool is_apart(const tconv_steps *steps, const int64_t *dim)
{
    for (int a = 0; a < steps->count; a++) {
        exact reach = 0;
        for (int b = 0; b < steps->count; b++)
            if (b != a && steps->value[b] <= steps->value[a])
                reach += times(larger(dim[b], 1) - 1, steps->value[b]);
        if (dim[a] > 1 && steps->value[a] <= reach) return false;
    }
    return true;
}

bool exact_resolve(const tconv_problem *p, struct exact_geometry *g)
{
    exact pads_begin[TCONV_MAX_AXES], pads_end[TCONV_MAX_AXES], padding[TCONV_MAX_AXES];
    exact output[TCONV_MAX_AXES];
    if (!enumerations_are_valid(p) ||
        !types_go_together(p->data_type, p->filter_type, p->output_type) || !read_shapes(p, g) ||
        !read_list(&p->strides, g->axes, 1, 1, g->stride) ||
        !read_list(&p->dilations, g->axes, 1, 1, g->dilation) ||
        !read_list(&p->pads_begin, g->axes, 0, 0, pads_begin) ||
        !read_list(&p->pads_end, g->axes, 0, 0, pads_end) ||
        !read_list(&p->output_padding, g->axes, 0, 0, padding) ||
        !read_list(&p->output_shape, g->axes, 1, 1, output))
        return false;
    g->output_type = p->output_type == TCONV_TYPE_DEFAULT ? p->data_type : p->output_type;
    int64_t extents[TCONV_MAX_RANK];
    const exact channels = g->groups * g->out_channels;
    if (!fits(channels)) return false;
    extents[0] = (int64_t)g->batch;
    extents[g->nxc ? g->axes + 1 : 1] = (int64_t)channels;
    g->macs_known = true;
    g->macs = times(times(g->batch, g->groups), times(g->in_channels, g->out_channels));
    for (int a = 0; a < g->axes; a++) {
        const exact natural = g->stride[a] * (g->input[a] - 1) +
                              g->dilation[a] * (g->kernel[a] - 1) + 1;
        const exact wanted = p->output_shape.count == 0 ? 0 : output[a];
        if (!resolve_axis(p, natural, pads_begin[a], pads_end[a], padding[a], wanted, a, g) ||
            g->output[a] < 1)
            return false;
        if (!fits(natural) || !fits(g->pad_begin[a]) || !fits(g->pad_end[a]) ||
            !fits(g->output[a]) || !fits(g->output[a] + g->pad_begin[a]) ||
            !fits(natural - g->pad_begin[a]) ||
            !fits(g->pad_begin[a] - g->dilation[a] * (g->kernel[a] - 1)))
            return false;
        extents[(g->nxc ? 1 : 2) + a] = (int64_t)g->output[a];
        g->macs = times(g->macs, count_pairs(g, a, &g->macs_known));
    }
    if (!count_bytes(p->data.dim, p->data.rank, p->data_type, &g->data_bytes) ||
        !count_bytes(p->filter.dim, p->filter.rank, p->filter_type, &g->filter_bytes) ||
        !count_bytes(extents, p->data.rank, g->output_type, &g->output_bytes))
        return false;
    g->residual_bytes = g->output_bytes;
    const int rank = p->data.rank;
    return read_steps(&p->data_steps, p->data.dim, rank, 1, p->data_type, &g->data_bytes) &&
           read_steps(&p->output_steps, extents, rank, 1, g->output_type, &g->output_bytes) &&
           is_apart(&p->output_steps, extents) &&
           read_steps(&p->residual_steps, extents, rank, 0, g->output_type, &g->residual_bytes) &&
           read_steps(&p->filter_steps, p->filter.dim, p->filter.rank, 1, p->filter_type,
                      &g->filter_bytes);
}
