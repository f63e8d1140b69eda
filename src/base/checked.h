/* SPDX-License-Identifier: Apache-2.0 */
/* Integer arithmetic that detects overflow, division that rounds down or up, common divisors, and
 * memory of a size in 64 bits. */
#ifndef TCONV_BASE_CHECKED_H
#define TCONV_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Each returns true if the result fits. Otherwise `*result` must not be used. */
static inline bool tconv_add(int64_t a, int64_t b, int64_t *result)
{
    return !__builtin_add_overflow(a, b, result);
}

static inline bool tconv_sub(int64_t a, int64_t b, int64_t *result)
{
    return !__builtin_sub_overflow(a, b, result);
}

static inline bool tconv_mul(int64_t a, int64_t b, int64_t *result)
{
    return !__builtin_mul_overflow(a, b, result);
}

/* True if a * b is the product, which cannot be so if it overflows. */
static inline bool tconv_is_product(int64_t product, int64_t a, int64_t b)
{
    int64_t result;
    return tconv_mul(a, b, &result) && result == product;
}

/* How far `count` steps lead, or one step where that does not fit: so far no index of a tensor
 * leads whose bytes fit. */
static inline int64_t tconv_distance(int64_t count, int64_t step)
{
    int64_t distance;
    return tconv_mul(count, step, &distance) ? distance : step;
}

/* malloc of `bytes`; also of none. NULL if memory is missing or cannot have that size. */
static inline void *tconv_allocate(uint64_t bytes)
{
    return bytes > PTRDIFF_MAX ? NULL : malloc(bytes == 0 ? 1 : (size_t)bytes);
}

/* Floor and ceiling of a / b for b > 0; C's own division rounds toward zero. */
static inline int64_t tconv_floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static inline int64_t tconv_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

/* The representative of a modulo b in [0, b), for b > 0. */
static inline int64_t tconv_mod(int64_t a, int64_t b)
{
    const int64_t r = a % b;
    return r < 0 ? r + b : r;
}

/* The greatest common divisor of two numbers that are not negative; of 0 and b it is b. */
static inline int64_t tconv_common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

static inline int64_t tconv_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t tconv_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
