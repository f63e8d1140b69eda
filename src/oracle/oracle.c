/* SPDX-License-Identifier: Apache-2.0 */
/* The definition of the operation, element by element: sum[n, g, co, y] = sum of data[n, g, ci, x]
 *   * filter[g, ci, co, k] over all ci, x, k with y = x*s + k*d - pb
 * or, of upsampling and a convolution, in its two steps: of the enlarged data at u, which are those
 * at floor(u / s), over all ci, k with u = y + k*d - p; or, of a convolution and pixel shuffle, in
 * its two steps: of the data at z + k*d - p with z = floor(y / r), and the filter of the
 * convolution's channel that has the phase y mod r. And then the epilogue. */
#include "oracle/oracle.h"

#include "base/checked.h"
#include "base/convolves.h"
#include "base/element_types.h"
#include "base/view.h"
#include "oracle/activation.h"

#include <CL/cl_half.h>

#include <float.h>
#include <math.h>
#include <string.h>

static float bf16_to_float(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static uint16_t bf16_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value)) return (uint16_t)((bits >> 16) | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* A new type does not compile until it is read and written here. */
#pragma GCC diagnostic error "-Wswitch"

/* An integer element, widened with its sign; of u64 the bits. */
static int64_t read_integer(tconv_type type, const void *tensor, int64_t i)
{
    switch (type) {
    case TCONV_I8: return ((const int8_t *)tensor)[i];
    case TCONV_U8: return ((const uint8_t *)tensor)[i];
    case TCONV_I16: return ((const int16_t *)tensor)[i];
    case TCONV_U16: return ((const uint16_t *)tensor)[i];
    case TCONV_I32: return ((const int32_t *)tensor)[i];
    case TCONV_U32: return ((const uint32_t *)tensor)[i];
    case TCONV_I64:
    case TCONV_U64: return ((const int64_t *)tensor)[i];
    case TCONV_F32:
    case TCONV_F16:
    case TCONV_BF16:
    case TCONV_F64:
    case TCONV_TYPE_DEFAULT: break;
    }
    return 0;
}

double tconv_oracle_read(tconv_type type, const void *tensor, int64_t i)
{
    switch (type) {
    case TCONV_F32: return (double)((const float *)tensor)[i];
    case TCONV_F64: return ((const double *)tensor)[i];
    case TCONV_F16: return (double)cl_half_to_float(((const cl_half *)tensor)[i]);
    case TCONV_BF16: return (double)bf16_to_float(((const uint16_t *)tensor)[i]);
    case TCONV_U64: return (double)((const uint64_t *)tensor)[i];
    case TCONV_I8:
    case TCONV_U8:
    case TCONV_I16:
    case TCONV_U16:
    case TCONV_I32:
    case TCONV_U32:
    case TCONV_I64: return (double)read_integer(type, tensor, i);
    case TCONV_TYPE_DEFAULT: break;
    }
    return 0;
}

static void write_integer(tconv_type type, void *tensor, int64_t i, uint64_t value)
{
    const size_t size = tconv_type_size(type);
    const uint8_t u8 = (uint8_t)value;
    const uint16_t u16 = (uint16_t)value;
    const uint32_t u32 = (uint32_t)value;
    const void *from = size == 1   ? (const void *)&u8
                       : size == 2 ? &u16
                       : size == 4 ? &u32
                                   : (const void *)&value;
    memcpy((char *)tensor + (size_t)i * size, from, size);
}

void tconv_oracle_write(tconv_type type, void *tensor, int64_t i, double value)
{
    switch (type) {
    case TCONV_F32: ((float *)tensor)[i] = (float)value; return;
    case TCONV_F64: ((double *)tensor)[i] = value; return;
    case TCONV_F16: ((cl_half *)tensor)[i] = cl_half_from_double(value, CL_HALF_RTE); return;
    case TCONV_BF16: ((uint16_t *)tensor)[i] = bf16_of((float)value); return;
    case TCONV_I8:
    case TCONV_U8:
    case TCONV_I16:
    case TCONV_U16:
    case TCONV_I32:
    case TCONV_U32:
    case TCONV_I64:
    case TCONV_U64: write_integer(type, tensor, i, (uint64_t)(int64_t)value); return;
    case TCONV_TYPE_DEFAULT: return;
    }
}

/* Rounds a number as storing it in a floating-point type would. */
static double rounded(tconv_type type, double value)
{
    double element;
    tconv_oracle_write(type, &element, 0, value);
    return tconv_oracle_read(type, &element, 0);
}

/* The position of an output element. Offsets follow from the published formats and the given steps;
 * they are not taken from the library's layer. */
struct position {
    int64_t n, channel; /* channel: of all groups together */
    int64_t at[TCONV_MAX_AXES];
};

static int64_t tensor_offset(const struct position *p, const struct tconv_view *view, bool nxc)
{
    const int axes = view->rank - 2;
    int64_t offset = p->n * view->step[0] + p->channel * view->step[nxc ? axes + 1 : 1];
    for (int a = 0; a < axes; a++) offset += p->at[a] * view->step[a + (nxc ? 1 : 2)];
    return offset;
}

/* The place of an output element in a tensor that may have steps. */
static int64_t spaced_offset(const struct tconv_operands *o, enum tconv_spaced tensor,
                             const struct position *p)
{
    const struct tconv_view view = tconv_view_of(o->problem, o->geometry, tensor);
    return tensor_offset(p, &view, o->geometry->data_format == TCONV_NXC);
}

static struct position tensor_position(int64_t offset, const int64_t *extent, int axes,
                                       int64_t channels, bool nxc)
{
    struct position p = {0};
    if (nxc) {
        p.channel = offset % channels;
        offset /= channels;
    }
    for (int a = axes - 1; a >= 0; a--) {
        p.at[a] = offset % extent[a];
        offset /= extent[a];
    }
    if (!nxc) {
        p.channel = offset % channels;
        offset /= channels;
    }
    p.n = offset;
    return p;
}

/* Taps and dilation of a convolution with upsampling or pixel shuffle. */
static int64_t forward_kernel(const tconv_problem *problem, int a)
{
    return problem->filter.dim[a + (problem->filter_format == TCONV_XIO ? 0 : 2)];
}

static int64_t forward_dilation(const tconv_problem *problem, int a)
{
    return problem->dilations.count == 0 ? 1 : problem->dilations.value[a];
}

/* The phase of an output of pixel shuffle along an axis. A window begins at another output, and has
 * another pad; that of the whole is a multiple of the factor. */
static int64_t phase_of(const tconv_geometry *g, const struct position *out, int a)
{
    return tconv_mod(out->at[a] + g->pad_begin[a], g->stride[a]);
}

/* The convolution's channel that an output comes from; without pixel shuffle the output's own. */
static int64_t forward_channel(const tconv_problem *problem, const tconv_geometry *g,
                               const struct position *out)
{
    if (!tconv_shuffles(problem)) return out->channel;
    int64_t phase = 0, phases = 1;
    for (int a = 0; a < g->axes; a++) {
        phase = phase * g->stride[a] + phase_of(g, out, a);
        phases *= g->stride[a];
    }
    return problem->operation == TCONV_CONV_PIXEL_SHUFFLE_DCR
               ? phase * g->group_out_channels + out->channel
               : out->channel * phases + phase;
}

/* The place of a weight; `channel` is the output's, `forward` the convolution's. */
static int64_t filter_offset(const tconv_problem *problem, const tconv_geometry *g, int64_t channel,
                             int64_t forward, int64_t ci, const int64_t *k)
{
    const bool convolves = tconv_convolves(problem);
    const bool grouped = problem->operation == TCONV_GROUP_CONV_BACKPROP;
    const bool last = convolves ? problem->filter_format == TCONV_XIO
                                : problem->operation == TCONV_ONEAPI_CONV_BACKPROP &&
                                      problem->filter_format != TCONV_OIX;
    const int64_t group = channel / g->group_out_channels;
    const int64_t in = convolves || grouped ? ci : group * g->group_in_channels + ci;
    const int64_t out = convolves ? forward : channel % g->group_out_channels;
    const int rank = problem->filter.rank, first = last ? 0 : rank - g->axes; /* axis of taps */
    int64_t at[TCONV_MAX_RANK] = {group}, offset = 0;
    for (int a = 0; a < g->axes; a++) at[first + a] = k[a];
    const int channels = last ? rank : first; /* the axis behind those of the channels */
    at[channels - 2] = convolves == last ? in : out;
    at[channels - 1] = convolves == last ? out : in;
    const tconv_steps *steps = &problem->filter_steps;
    for (int i = 0; i < rank; i++)
        offset = steps->count == 0 ? offset * problem->filter.dim[i] + at[i]
                                   : offset + at[i] * steps->value[i];
    return offset;
}

struct sums {
    double value, magnitude;
    long double wide; /* f64 */
    uint64_t integer;
    int64_t terms;
};

static void add_product(const struct tconv_operands *o, int64_t at, int64_t from, struct sums *sums)
{
    const tconv_type data = o->problem->data_type, filter = o->problem->filter_type;
    sums->terms++;
    if (data == TCONV_F32 && filter == TCONV_F32) { /* the most common types first */
        const double product = (double)((const float *)o->data)[at] *
                               (double)((const float *)o->filter)[from];
        sums->value += product;
        sums->magnitude += fabs(product);
    } else if (tconv_type_is_floating(data)) {
        const double x = tconv_oracle_read(data, o->data, at);
        const double w = tconv_oracle_read(filter, o->filter, from);
        sums->value += x * w;
        sums->magnitude += fabs(x * w);
        sums->wide += (long double)x * (long double)w;
    } else {
        const uint64_t x = (uint64_t)read_integer(data, o->data, at) -
                           (uint64_t)(int64_t)o->epilogue->data_zero_point;
        const uint64_t w = (uint64_t)read_integer(filter, o->filter, from) -
                           (uint64_t)(int64_t)o->epilogue->filter_zero_point;
        sums->integer += x * w;
    }
}

/* Adds all taps of axis a and of the axes after it. k and x hold the tap and input of the axes
 * before. */
static void add_taps(const struct tconv_operands *o, const struct tconv_view *view,
                     const struct position *out, int a, int64_t *k, struct position *x,
                     struct sums *sums)
{
    const tconv_geometry *g = o->geometry;
    const bool nxc = g->data_format == TCONV_NXC;
    if (a == g->axes || a == TCONV_MAX_AXES) {
        const int64_t group = out->channel / g->group_out_channels,
                      forward = forward_channel(o->problem, g, out);
        int64_t at[2],
            from[2]; /* of the first two input channels; the others follow at equal distances */
        for (int ci = 0; ci < 2; ci++) {
            x->channel = group * g->group_in_channels + ci;
            at[ci] = tensor_offset(x, view, nxc);
            from[ci] = filter_offset(o->problem, g, out->channel, forward, ci, k);
        }
        for (int64_t ci = 0; ci < g->group_in_channels; ci++)
            add_product(o, at[0] + ci * (at[1] - at[0]), from[0] + ci * (from[1] - from[0]), sums);
        return;
    }
    if (tconv_convolves(o->problem)) {
        const int64_t kernel = forward_kernel(o->problem, a), d = forward_dilation(o->problem, a);
        const int64_t pad = d * (kernel - 1) - g->pad_begin[a];
        if (tconv_shuffles(o->problem)) { /* floor((y + pad_begin) / r) = z + d*(K-1) - p */
            const int64_t z = tconv_floor_div(out->at[a] + g->pad_begin[a], g->stride[a]);
            for (k[a] = 0; k[a] < kernel; k[a]++) {
                x->at[a] = z + d * (k[a] - (kernel - 1));
                if (x->at[a] >= 0 && x->at[a] < g->input[a])
                    add_taps(o, view, out, a + 1, k, x, sums);
            }
            return;
        }
        for (k[a] = 0; k[a] < kernel; k[a]++) {
            const int64_t u = out->at[a] + k[a] * d - pad;
            if (u < 0 || u / g->stride[a] >= g->input[a]) continue;
            x->at[a] = u / g->stride[a];
            add_taps(o, view, out, a + 1, k, x, sums);
        }
        return;
    }
    for (int64_t tap = 0; tap < g->kernel[a]; tap++) {
        const int64_t distance = out->at[a] + g->pad_begin[a] - tap * g->dilation[a];
        if (distance < 0) break;
        if (distance % g->stride[a] != 0 || distance / g->stride[a] >= g->input[a]) continue;
        k[a] = tap;
        x->at[a] = distance / g->stride[a];
        add_taps(o, view, out, a + 1, k, x, sums);
    }
}

/* Fast arithmetic multiplies sums of some inputs by sums of some weights. Its bound needs the
 * largest input of a neighbourhood and the sum of the weights, found for a few input channels at a
 * time. */
enum { CHANNELS_AT_ONCE = 64, REACH = 4 };

struct neighbourhood {
    int64_t first, count; /* input channels of the group */
    double largest[CHANNELS_AT_ONCE], weights[CHANNELS_AT_ONCE];
};

/* True if tap k of axis a belongs to an output. Then sets its input, which may lie outside the
 * data. */
static bool tap_input(const tconv_geometry *g, const struct position *out, int a, int64_t k,
                      int64_t *input)
{
    const int64_t distance = out->at[a] + g->pad_begin[a] - k * g->dilation[a];
    const int64_t rest = (distance % g->stride[a] + g->stride[a]) % g->stride[a];
    *input = (distance - rest) / g->stride[a];
    return rest == 0;
}

/* The weight of tap k: of a convolution with upsampling or pixel shuffle, of the equivalent
 * transposed convolution (geometry/equivalent.h). `a` axes of `taps`, the convolution's, are set.
 */
static double weight_of(const tconv_problem *problem, const tconv_geometry *g, const void *filter,
                        int64_t channel, int64_t forward, int64_t ci, const int64_t *k, int a,
                        int64_t *taps)
{
    if (!tconv_convolves(problem))
        return tconv_oracle_read(problem->filter_type, filter,
                                 filter_offset(problem, g, channel, forward, ci, k));
    if (a == g->axes || a == TCONV_MAX_AXES)
        return tconv_oracle_read(problem->filter_type, filter,
                                 filter_offset(problem, g, channel, forward, ci, taps));
    const int64_t kernel = forward_kernel(problem, a);
    const int64_t d = tconv_shuffles(problem) || g->stride[a] == 1 ? g->stride[a]
                                                                   : forward_dilation(problem, a);
    double sum = 0;
    for (int64_t j = 0; j < kernel; j++) {
        const int64_t rest = k[a] - d * (kernel - 1 - j);
        if (rest < 0 || rest >= g->stride[a]) continue;
        taps[a] = j;
        sum += weight_of(problem, g, filter, channel, forward, ci, k, a + 1, taps);
    }
    return sum;
}

static void add_weights(const tconv_problem *problem, const tconv_geometry *g, const void *filter,
                        const struct position *out, int a, int64_t *k, struct neighbourhood *n)
{
    if (a == g->axes || a == TCONV_MAX_AXES) {
        const int64_t forward = forward_channel(problem, g, out);
        int64_t taps[TCONV_MAX_AXES];
        for (int64_t i = 0; i < n->count; i++)
            n->weights[i] += fabs(
                weight_of(problem, g, filter, out->channel, forward, n->first + i, k, 0, taps));
        return;
    }
    int64_t input;
    for (k[a] = 0; k[a] < g->kernel[a]; k[a]++)
        if (tap_input(g, out, a, k[a], &input)) add_weights(problem, g, filter, out, a + 1, k, n);
}

static void take_largest(const tconv_geometry *g, const struct tconv_view *view, const float *data,
                         const struct position *out, int a, struct position *x,
                         struct neighbourhood *n)
{
    if (a == g->axes || a == TCONV_MAX_AXES) {
        for (int64_t i = 0; i < n->count; i++) {
            x->channel = out->channel / g->group_out_channels * g->group_in_channels + n->first + i;
            const double value =
                fabs((double)data[tensor_offset(x, view, g->data_format == TCONV_NXC)]);
            if (isnan(value) || value > n->largest[i]) n->largest[i] = value; /* a NaN stays */
        }
        return;
    }
    int64_t low = INT64_MAX, high = INT64_MIN, input;
    for (int64_t k = 0; k < g->kernel[a]; k++)
        if (tap_input(g, out, a, k, &input)) {
            low = input < low ? input : low;
            high = input > high ? input : high;
        }
    if (low > high) return;
    const int64_t reach = g->kernel[a] > 1 ? REACH : 0;
    low = low < reach ? 0 : low - reach;
    high = high + reach < g->input[a] ? high + reach : g->input[a] - 1;
    for (x->at[a] = low; x->at[a] <= high; x->at[a]++)
        take_largest(g, view, data, out, a + 1, x, n);
}

/* The error bound of a sum in fast arithmetic. */
static double fast_bound(const struct tconv_operands *o, const struct tconv_view *view,
                         const struct position *out)
{
    const tconv_geometry *g = o->geometry;
    double magnitude = 0;
    for (int64_t ci = 0; ci < g->group_in_channels; ci += CHANNELS_AT_ONCE) {
        struct neighbourhood n = {.first = ci, .count = g->group_in_channels - ci};
        struct position x = {.n = out->n};
        int64_t k[TCONV_MAX_AXES];
        if (n.count > CHANNELS_AT_ONCE) n.count = CHANNELS_AT_ONCE;
        add_weights(o->problem, g, o->filter, out, 0, k, &n);
        take_largest(g, view, o->data, out, 0, &x, &n);
        for (int64_t i = 0; i < n.count; i++) magnitude += n.largest[i] * n.weights[i];
    }
    const double u = FLT_EPSILON / 2, terms = (double)(g->group_in_channels + 20 * g->axes);
    const double bound = o->error_factor *
                         (terms * u / (1 - terms * u) * magnitude + terms * FLT_MIN);
    return isfinite(bound) ? bound : INFINITY;
}

/* A value between the steps of the epilogue, and how far a computed value may be from it. */
struct estimate {
    double value, bound;
};

/* Which number of bias, scale and slopes an element has, and where output and residual have it. */
struct places {
    int64_t channel, output, residual;
};

/* alpha * sum * scale + bias + beta * before + residual */
static void add_tensors(const struct tconv_operands *o, const struct places *at, double u,
                        struct estimate *e)
{
    const tconv_epilogue *epilogue = o->epilogue;
    const tconv_type output = o->geometry->output_type;
    const tconv_type number = tconv_scale_type(o->problem->data_type);
    const tconv_type bias = tconv_bias_type(epilogue, output);
    int roundings = 0;
    double factor = 1;
    if (epilogue->alpha != 1) {
        factor = number == TCONV_F32 ? (double)(float)epilogue->alpha : epilogue->alpha;
        roundings += 2;
    }
    if (epilogue->scale) {
        factor *= tconv_oracle_read(number, o->scale, at->channel);
        roundings += 2;
    }
    if (factor != 1 || roundings > 0) {
        e->value *= factor;
        e->bound *= fabs(factor);
    }
    double magnitude = fabs(e->value) + e->bound;
    double terms[3] = {0, 0, 0};
    if (epilogue->bias) terms[0] = tconv_oracle_read(bias, o->bias, at->channel);
    if (epilogue->beta != 0) {
        const double beta = number == TCONV_F32 ? (double)(float)epilogue->beta : epilogue->beta;
        terms[1] = beta * tconv_oracle_read(output, o->before, at->output);
        roundings++;
    }
    if (epilogue->residual) terms[2] = tconv_oracle_read(output, o->residual, at->residual);
    for (int i = 0; i < 3; i++) {
        e->value += terms[i];
        if (magnitude > 0 && terms[i] != 0) roundings++;
        magnitude += fabs(terms[i]);
    }
    e->bound += roundings * u * magnitude * (1 + 8 * u);
    if (roundings > 0 && magnitude > 0) e->bound += FLT_MIN * (number == TCONV_F32);
}

/* How far the value moves if the argument is off by up to `reach`. */
static double moved(const struct tconv_function *f, double x, double reach)
{
    const struct tconv_formula *formula = tconv_formula_of(f->activation);
    if (formula->moved != NULL) return isnan(x) ? INFINITY : formula->moved(f, reach);
    const double turn = formula->turn, value = formula->value(f, x);
    const double low = fabs(formula->value(f, x - reach) - value),
                 high = fabs(formula->value(f, x + reach) - value);
    double most = fmax(low, high);
    if (fabs(x - turn) < reach) most = fmax(most, fabs(formula->value(f, turn) - value));
    return isnan(low) || isnan(high) ? INFINITY : most;
}

/* Applies the activation to the value and its bound. The bound is the distance that the argument's
 * error moves the value, plus some roundings of the value itself. The size of the argument adds
 * nothing: where the function vanishes, so does the bound, except for underflow on the way. */
static void activate(const struct tconv_operands *o, int64_t channel, double u, struct estimate *e)
{
    const tconv_epilogue *epilogue = o->epilogue;
    const tconv_type number = tconv_scale_type(o->problem->data_type);
    struct tconv_function f = {epilogue->activation, rounded(number, epilogue->a),
                               rounded(number, epilogue->b), 0, 0};
    if (f.activation == TCONV_ACTIVATION_NONE) return;
    if (tconv_activation_has_slope(f.activation))
        f.slope = tconv_oracle_read(number, o->slope, channel);
    if (tconv_activation_slope_count(f.activation) > 1)
        f.slope2 = tconv_oracle_read(number, o->slope2, channel);
    const struct tconv_formula *formula = tconv_formula_of(f.activation);
    /* An infinite exact sum stays infinite. */
    const bool known = isinf(e->value) && !(o->error_factor > 1);
    const double reach = known ? 0 : e->bound + formula->inner * u * fabs(e->value);
    const double value = formula->value(&f, e->value);
    /* A device may flush exp(x) to 0 if it is subnormal, or if exp(-x) overflows. Its product with
     * x is at most this. */
    const double least = number == TCONV_F64 ? DBL_MIN * 1024 : (double)FLT_MIN * 128;
    e->bound = moved(&f, e->value, reach) + formula->roundings * u * fabs(value) +
               (formula->roundings > 0 ? least : 0);
    e->value = value;
}

/* The relative error of weights that were added up and rounded to the type that they have then. */
static double summed_bound(const tconv_problem *problem, const tconv_geometry *g, double u)
{
    double taps = 0;
    for (int a = 0; a < g->axes; a++) taps += (double)(forward_kernel(problem, a) + 1);
    const double points = pow(taps / g->axes, g->axes); /* that are added up, at most */
    const tconv_type type = tconv_weight_type(problem->data_type, problem->filter_type);
    return points * u + (type == TCONV_F16 ? 0x1p-11 : type == TCONV_BF16 ? 0x1p-8 : 0);
}

static struct tconv_expected expect_float(const struct tconv_operands *o,
                                          const struct tconv_view *view, const struct position *out,
                                          const struct places *at, const struct sums *sums)
{
    const bool wide = o->problem->data_type == TCONV_F64;
    const double u = (wide ? DBL_EPSILON : (double)FLT_EPSILON) / 2, n = (double)sums->terms + 1;
    struct estimate e = {wide ? (double)sums->wide : sums->value, 0};
    if (o->error_factor > 1)
        e.bound = fast_bound(o, view, out);
    else if (sums->terms > 0)
        e.bound = n * u / (1 - n * u) * sums->magnitude +
                  (double)sums->terms * (wide ? DBL_MIN : (double)FLT_MIN);
    if (tconv_sums_weights(o->problem))
        e.bound += summed_bound(o->problem, o->geometry, u) * sums->magnitude;
    add_tensors(o, at, u, &e);
    activate(o, at->channel, u, &e);

    struct tconv_expected expected = {.value = e.value, .special = !isfinite(e.value)};
    if (expected.special && o->error_factor > 1) {
        expected.special = false;
        expected.bound = INFINITY;
        return expected;
    }
    if (expected.special) return expected;
    const tconv_type type = o->geometry->output_type;
    expected.low = rounded(type, e.value - e.bound);
    expected.high = rounded(type, e.value + e.bound);
    expected.bound = e.bound;
    if (type == TCONV_F16) expected.bound += fmax(fabs(e.value) * 0x1p-11, 0x1p-25);
    if (type == TCONV_BF16) expected.bound += fabs(e.value) * 0x1p-8 + FLT_MIN;
    return expected;
}

static struct tconv_expected expect_integer(const struct tconv_operands *o, const struct places *at,
                                            const struct sums *sums)
{
    const tconv_epilogue *epilogue = o->epilogue;
    const tconv_type type = o->geometry->output_type;
    struct tconv_expected expected = {.exact = true};
    if (epilogue->requantize) {
        const double u = FLT_EPSILON / 2;
        struct estimate e = {(double)(int32_t)(uint32_t)sums->integer, 0};
        e.bound = u * fabs(e.value);
        add_tensors(o, at, u, &e);
        activate(o, at->channel, u, &e);
        const double least = tconv_byte_least(type), most = tconv_byte_most(type);
        expected.exact = false;
        expected.value = e.value + epilogue->output_zero_point;
        expected.low =
            fmin(fmax(rint(e.value - e.bound) + epilogue->output_zero_point, least), most);
        expected.high =
            fmin(fmax(rint(e.value + e.bound) + epilogue->output_zero_point, least), most);
        expected.bound = 0.5 + e.bound;
        return expected;
    }
    uint64_t sum = sums->integer;
    if (epilogue->bias) sum += (uint64_t)read_integer(type, o->bias, at->channel);
    if (epilogue->residual) sum += (uint64_t)read_integer(type, o->residual, at->residual);
    write_integer(type, &expected.bits, 0, sum);
    expected.value = tconv_oracle_read(type, &expected.bits, 0);
    return expected;
}

struct tconv_expected tconv_oracle_element(const struct tconv_operands *o, int64_t index)
{
    const tconv_geometry *g = o->geometry;
    const struct position out = tensor_position(
        index, g->output, g->axes, g->groups * g->group_out_channels, g->data_format == TCONV_NXC);
    const struct tconv_view data = tconv_view_of(o->problem, g, TCONV_SPACED_DATA);
    struct places at = {forward_channel(o->problem, g, &out), 0, 0};
    /* Only what is read: there may be millions of elements. */
    if (o->epilogue->beta != 0) at.output = spaced_offset(o, TCONV_SPACED_OUTPUT, &out);
    if (o->epilogue->residual) at.residual = spaced_offset(o, TCONV_SPACED_RESIDUAL, &out);
    struct position x = {.n = out.n};
    int64_t k[TCONV_MAX_AXES];
    struct sums sums = {0};
    add_taps(o, &data, &out, 0, k, &x, &sums);
    return tconv_type_is_floating(o->problem->data_type) ? expect_float(o, &data, &out, &at, &sums)
                                                         : expect_integer(o, &at, &sums);
}

int64_t tconv_oracle_outputs(const struct tconv_operands *o)
{
    const struct tconv_view view = tconv_view_of(o->problem, o->geometry, TCONV_SPACED_OUTPUT);
    return tconv_view_elements(&view);
}

int64_t tconv_oracle_place(const struct tconv_operands *o, int64_t index)
{
    const struct tconv_view view = tconv_view_of(o->problem, o->geometry, TCONV_SPACED_OUTPUT);
    return tconv_view_place(&view, index);
}

double tconv_oracle_error(const struct tconv_expected *expected, tconv_type type,
                          const void *output, int64_t index)
{
    const double got = tconv_oracle_read(type, output, index);
    if (expected->exact) {
        uint64_t bits = 0;
        memcpy(&bits, (const char *)output + (size_t)index * tconv_type_size(type),
               tconv_type_size(type));
        return bits == expected->bits ? 0 : INFINITY;
    }
    if (expected->special) {
        const bool same = isnan(expected->value) ? isnan(got) : got == expected->value;
        return same ? 0 : INFINITY;
    }
    if (isinf(expected->bound)) return 0;
    const double difference = fabs(got - expected->value);
    if (difference == 0) return 0;
    const bool possible = got >= expected->low && got <= expected->high;
    const double error = difference <= DBL_MAX && expected->bound > 0 ? difference / expected->bound
                                                                      : INFINITY;
    return possible && !(error <= 1) ? 1 : error;
}
