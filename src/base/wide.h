/* SPDX-License-Identifier: Apache-2.0 */
/* Unsigned integers of 128 bits, modulo 2^128: C11 has none, nor do 32-bit compilers. */
#ifndef TCONV_BASE_WIDE_H
#define TCONV_BASE_WIDE_H

#include <stdint.h>

struct tconv_wide {
    uint64_t high, low;
};

static inline struct tconv_wide tconv_wide_add(struct tconv_wide a, struct tconv_wide b)
{
    const uint64_t low = a.low + b.low;
    return (struct tconv_wide){a.high + b.high + (low < a.low), low};
}

static inline struct tconv_wide tconv_wide_sub(struct tconv_wide a, struct tconv_wide b)
{
    return (struct tconv_wide){a.high - b.high - (a.low < b.low), a.low - b.low};
}

/* The whole product of two numbers, from the products of their halves. */
static inline struct tconv_wide tconv_wide_mul(uint64_t a, uint64_t b)
{
    const uint64_t half = UINT32_MAX, a0 = a & half, a1 = a >> 32, b0 = b & half, b1 = b >> 32;
    const uint64_t low = a0 * b0, cross = a1 * b0 + (low >> 32);
    const uint64_t middle = a0 * b1 + (cross & half);
    return (struct tconv_wide){a1 * b1 + (cross >> 32) + (middle >> 32),
                               middle << 32 | (low & half)};
}

/* a / b and the remainder, for 0 < b < 2^63 and a quotient below 2^64, which is a.high < b. */
static inline uint64_t tconv_wide_div(struct tconv_wide a, uint64_t b, uint64_t *remainder)
{
    uint64_t rest = a.high, quotient = 0;
    for (int bit = 63; bit >= 0; bit--) {
        rest = rest << 1 | (a.low >> bit & 1);
        quotient <<= 1;
        if (rest >= b) {
            rest -= b;
            quotient |= 1;
        }
    }
    *remainder = rest;
    return quotient;
}

#endif
