/* SPDX-License-Identifier: Apache-2.0 */
/* The definition of the operation, element by element:
 *   output[n, g, co, y] = bias[g, co] + sum of data[n, g, ci, x] * filter[g, ci, co, k] over all
 * ci, x, k with y = x*s + k*d - pb. */
#include "oracle/oracle.h"

#include <float.h>
#include <math.h>

/* Offsets of tensors in their published formats. They are worked out here anew, not taken from the
 * library's layer. */
struct position {
    int64_t n, channel; /* channel: of all groups together */
    int64_t at[TCONV_MAX_AXES];
};

static int64_t tensor_offset(const struct position *p, const int64_t *extent, int axes,
                             int64_t channels, bool nxc)
{
    int64_t offset = p->n;
    if (!nxc) offset = offset * channels + p->channel;
    for (int a = 0; a < axes; a++) offset = offset * extent[a] + p->at[a];
    return nxc ? offset * channels + p->channel : offset;
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

static int64_t filter_offset(const tconv_problem *problem, const tconv_geometry *g, int64_t group,
                             int64_t ci, int64_t co, const int64_t *k)
{
    const bool xio = problem->operation == TCONV_ONEAPI_CONV_BACKPROP &&
                     problem->filter_format != TCONV_OIX;
    int64_t offset = xio ? 0 : (group * g->group_in_channels + ci) * g->group_out_channels + co;
    for (int a = 0; a < g->axes; a++) offset = offset * g->kernel[a] + k[a];
    return xio ? (offset * g->group_out_channels + co) * (g->groups * g->group_in_channels) +
                     group * g->group_in_channels + ci
               : offset;
}

struct sums {
    double value, magnitude;
    int64_t terms;
};

/* All taps of axis a and of those behind it; k and x hold the choice for the axes before. */
static void add_taps(const tconv_problem *problem, const tconv_geometry *g, const float *data,
                     const float *filter, const struct position *out, int a, int64_t *k,
                     struct position *x, struct sums *sums)
{
    const bool nxc = g->data_format == TCONV_NXC;
    if (a == g->axes || a == TCONV_MAX_AXES) {
        const int64_t group = out->channel / g->group_out_channels,
                      co = out->channel % g->group_out_channels;
        const int64_t channels = g->groups * g->group_in_channels;
        int64_t at[2],
            from[2]; /* of the first two input channels: the others follow at the same distance */
        for (int ci = 0; ci < 2; ci++) {
            x->channel = group * g->group_in_channels + ci;
            at[ci] = tensor_offset(x, g->input, g->axes, channels, nxc);
            from[ci] = filter_offset(problem, g, group, ci, co, k);
        }
        for (int64_t ci = 0; ci < g->group_in_channels; ci++) {
            const double product = (double)data[at[0] + ci * (at[1] - at[0])] *
                                   (double)filter[from[0] + ci * (from[1] - from[0])];
            sums->value += product;
            sums->magnitude += fabs(product);
            sums->terms++;
        }
        return;
    }
    for (int64_t tap = 0; tap < g->kernel[a]; tap++) {
        const int64_t distance = out->at[a] + g->pad_begin[a] - tap * g->dilation[a];
        if (distance < 0) break;
        if (distance % g->stride[a] != 0 || distance / g->stride[a] >= g->input[a]) continue;
        k[a] = tap;
        x->at[a] = distance / g->stride[a];
        add_taps(problem, g, data, filter, out, a + 1, k, x, sums);
    }
}

struct tconv_expected tconv_oracle_element(const tconv_problem *problem, const tconv_geometry *g,
                                           const float *data, const float *filter,
                                           const float *bias, int64_t index)
{
    const struct position out = tensor_position(
        index, g->output, g->axes, g->groups * g->group_out_channels, g->data_format == TCONV_NXC);
    struct position x = {.n = out.n};
    int64_t k[TCONV_MAX_AXES];
    struct sums sums = {0, 0, 0};
    add_taps(problem, g, data, filter, &out, 0, k, &x, &sums);

    const double u = FLT_EPSILON / 2, n = (double)sums.terms + 1;
    struct tconv_expected expected = {.value = sums.value};
    if (sums.terms > 0)
        expected.bound = n * u / (1 - n * u) * sums.magnitude + (double)sums.terms * FLT_MIN;
    if (bias != NULL) {
        expected.value += (double)bias[out.channel];
        if (sums.terms > 0)
            expected.bound += u * (sums.magnitude + fabs((double)bias[out.channel]));
    }
    expected.special = !isfinite(expected.value);
    return expected;
}

/* Fast arithmetic adds up products of sums over some inputs and over some taps. For a few input channels at a time: the largest
 * input of a neighbourhood, and the sum of the weights. */
enum { CHANNELS_AT_ONCE = 64, REACH = 4 };

struct neighbourhood {
    int64_t first, count; /* input channels of the group */
    double largest[CHANNELS_AT_ONCE], weights[CHANNELS_AT_ONCE];
};

/* Whether tap k of axis a belongs to an output, and then its input, which may lie outside. */
static bool tap_input(const tconv_geometry *g, const struct position *out, int a, int64_t k,
                      int64_t *input)
{
    const int64_t distance = out->at[a] + g->pad_begin[a] - k * g->dilation[a];
    const int64_t rest = (distance % g->stride[a] + g->stride[a]) % g->stride[a];
    *input = (distance - rest) / g->stride[a];
    return rest == 0;
}

static void add_weights(const tconv_problem *problem, const tconv_geometry *g, const float *filter,
                        const struct position *out, int a, int64_t *k, struct neighbourhood *n)
{
    if (a == g->axes || a == TCONV_MAX_AXES) {
        const int64_t group = out->channel / g->group_out_channels,
                      co = out->channel % g->group_out_channels;
        for (int64_t i = 0; i < n->count; i++)
            n->weights[i] +=
                fabs((double)filter[filter_offset(problem, g, group, n->first + i, co, k)]);
        return;
    }
    int64_t input;
    for (k[a] = 0; k[a] < g->kernel[a]; k[a]++)
        if (tap_input(g, out, a, k[a], &input)) add_weights(problem, g, filter, out, a + 1, k, n);
}

static void take_largest(const tconv_geometry *g, const float *data, const struct position *out,
                         int a, struct position *x, struct neighbourhood *n)
{
    if (a == g->axes || a == TCONV_MAX_AXES) {
        for (int64_t i = 0; i < n->count; i++) {
            x->channel = out->channel / g->group_out_channels * g->group_in_channels + n->first + i;
            const double value = fabs(
                (double)data[tensor_offset(x, g->input, g->axes, g->groups * g->group_in_channels,
                                           g->data_format == TCONV_NXC)]);
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
    for (x->at[a] = low; x->at[a] <= high; x->at[a]++) take_largest(g, data, out, a + 1, x, n);
}

struct tconv_expected tconv_oracle_element_of(const tconv_problem *problem, const tconv_geometry *g,
                                              const float *data, const float *filter,
                                              const float *bias, int64_t index, double factor)
{
    struct tconv_expected expected = tconv_oracle_element(problem, g, data, filter, bias, index);
    if (factor <= 1) return expected;
    const struct position out = tensor_position(
        index, g->output, g->axes, g->groups * g->group_out_channels, g->data_format == TCONV_NXC);
    double magnitude = 0;
    for (int64_t ci = 0; ci < g->group_in_channels; ci += CHANNELS_AT_ONCE) {
        struct neighbourhood n = {.first = ci, .count = g->group_in_channels - ci};
        struct position x = {.n = out.n};
        int64_t k[TCONV_MAX_AXES];
        if (n.count > CHANNELS_AT_ONCE) n.count = CHANNELS_AT_ONCE;
        add_weights(problem, g, filter, &out, 0, k, &n);
        take_largest(g, data, &out, 0, &x, &n);
        for (int64_t i = 0; i < n.count; i++) magnitude += n.largest[i] * n.weights[i];
    }
    const double u = FLT_EPSILON / 2, terms = (double)(g->group_in_channels + 20 * g->axes);
    expected.bound = factor * (terms * u / (1 - terms * u) * magnitude + terms * FLT_MIN);
    if (bias != NULL) expected.bound += u * (magnitude + fabs((double)bias[out.channel]));
    expected.special = false;
    if (!isfinite(expected.value) || !isfinite(expected.bound)) expected.bound = INFINITY;
    return expected;
}

double tconv_oracle_error(const struct tconv_expected *expected, float got)
{
    if (expected->special) {
        const bool same = isnan(expected->value) ? isnan(got) : (double)got == expected->value;
        return same ? 0 : INFINITY;
    }
    if (isinf(expected->bound)) return 0;
    const double difference = fabs((double)got - expected->value);
    if (difference == 0) return 0;
    return difference <= DBL_MAX && expected->bound > 0 ? difference / expected->bound : INFINITY;
}
