/* SPDX-License-Identifier: Apache-2.0 */
/* Counts useful work: the pairs (x, k) of an axis with 0 <= x*s + k*d - pb < Y, in logarithmic
 * time, as a difference of two lattice counts. */
#include "geometry/count.h"

#include "base/checked.h"
#include "base/wide.h"

static struct tconv_wide narrow(uint64_t number)
{
    return (struct tconv_wide){0, number};
}

/* n * (n - 1) / 2 * times, below 2^128. */
static struct tconv_wide triangle(uint64_t n, uint64_t times)
{
    const struct tconv_wide pairs = n % 2 == 0 ? tconv_wide_mul(n / 2, n - 1)
                                               : tconv_wide_mul(n, (n - 1) / 2);
    struct tconv_wide product = tconv_wide_mul(pairs.low, times);
    product.high += pairs.high * times;
    return product;
}

/* The sum over i in [0, n) of floor((a*i + b) / m), for n >= 1, by the Euclidean algorithm on the
 * lattice below a line. All arguments are below 2^63, the sum is below 2^128. */
static struct tconv_wide floor_sum(uint64_t n, uint64_t m, uint64_t a, uint64_t b)
{
    struct tconv_wide sum = {0, 0};
    for (;;) {
        sum = tconv_wide_add(sum, triangle(n, a / m));
        sum = tconv_wide_add(sum, tconv_wide_mul(n, b / m));
        a %= m;
        b %= m;
        const struct tconv_wide top = tconv_wide_add(tconv_wide_mul(a, n), narrow(b));
        if (top.high == 0 && top.low < m) return sum;
        n = tconv_wide_div(top, m, &b); /* at most n, since a and b are below m */
        const uint64_t swap = m;
        m = a;
        a = swap;
    }
}

/* The number of pairs (x, k), 0 <= x < input, 0 <= k < kernel, with x*stride + k*dilation < limit.
 */
static struct tconv_wide pairs_below(int64_t input, int64_t kernel, int64_t stride,
                                     int64_t dilation, int64_t limit)
{
    if (limit <= 0) return narrow(0);
    /* Taps k < some have at least one x; of these, taps k < full have all of them. */
    const int64_t some = tconv_min(kernel, tconv_ceil_div(limit, dilation));
    /* The product was checked when the axis was resolved. */
    const int64_t beyond_all = limit - 1 - stride * (input - 1);
    const int64_t full = beyond_all < 0 ? 0 : tconv_min(some, beyond_all / dilation + 1);
    struct tconv_wide pairs = tconv_wide_mul((uint64_t)full, (uint64_t)input);
    if (some > full) { /* from the last tap downwards, so that the summands grow */
        const uint64_t first = (uint64_t)(limit - 1 - dilation * (some - 1));
        const uint64_t rest = (uint64_t)(some - full);
        pairs = tconv_wide_add(pairs, narrow(rest));
        pairs = tconv_wide_add(pairs, floor_sum(rest, (uint64_t)stride, (uint64_t)dilation, first));
    }
    return pairs;
}

bool tconv_count_pairs(int64_t input, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad,
                       int64_t output, uint64_t *pairs)
{
    if (input == 0 || kernel == 0) {
        *pairs = 0;
        return true;
    }
    const struct tconv_wide count =
        tconv_wide_sub(pairs_below(input, kernel, stride, dilation, output + pad),
                       pairs_below(input, kernel, stride, dilation, pad));
    *pairs = count.low;
    return count.high == 0;
}

bool tconv_count_macs(const tconv_geometry *g, uint64_t *macs)
{
    /* Without work along one axis there is none at all, for any number of channels. */
    bool none = g->batch == 0, fits = true;
    uint64_t count = 1;
    const int64_t channels[] = {g->batch, g->groups, g->group_in_channels, g->group_out_channels};
    for (int i = 0; i < 4; i++)
        fits &= !__builtin_mul_overflow(count, (uint64_t)channels[i], &count);
    for (int a = 0; a < g->axes; a++) {
        uint64_t pairs;
        const bool countable = tconv_count_pairs(g->input[a], g->kernel[a], g->stride[a],
                                                 g->dilation[a], g->pad_begin[a], g->output[a],
                                                 &pairs);
        none |= countable && pairs == 0;
        fits &= countable && !__builtin_mul_overflow(count, pairs, &count);
    }
    *macs = none ? 0 : count;
    return none || fits;
}
