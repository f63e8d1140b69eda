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
    if (a == g->axes) {
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

double tconv_oracle_error(const struct tconv_expected *expected, float got)
{
    if (expected->special) {
        const bool same = isnan(expected->value) ? isnan(got) : (double)got == expected->value;
        return same ? 0 : INFINITY;
    }
    const double difference = fabs((double)got - expected->value);
    if (difference == 0) return 0;
    return difference <= DBL_MAX && expected->bound > 0 ? difference / expected->bound : INFINITY;
}
