/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that compute each lane's result from the same lane of their sources: a function for
 * each row of lane_rows.h. A function computes all lanes, so that compilers use vectors, and writes
 * those that execute. */
#include "warp.h"

#include <math.h>

/* What a register holds for each type of lane_rows.h, and the number that this is. */
typedef uint8_t stored_pred, pred, stored_none, none;
typedef uint16_t stored_u16, u16, stored_f16;
typedef int16_t stored_i16, i16;
typedef uint32_t stored_u32, u32;
typedef int32_t stored_i32, i32;
typedef uint64_t stored_u64, u64;
typedef int64_t stored_i64, i64;
typedef float stored_f32, f32, f16;
typedef double stored_f64, f64;
#define NUMBER_pred(o, x) ((uint8_t)((uint8_t)(x) ^ (uint8_t)(o)->negated))
#define NUMBER_none(o, x) (x)
#define NUMBER_u16(o, x) (x)
#define NUMBER_i16(o, x) (x)
#define NUMBER_u32(o, x) (x)
#define NUMBER_i32(o, x) (x)
#define NUMBER_u64(o, x) (x)
#define NUMBER_i64(o, x) (x)
#define NUMBER_f32(o, x) (x)
#define NUMBER_f64(o, x) (x)
#define NUMBER_f16(o, x) half_to_float(x)
#define STORED_f16(x) float_to_half((float)(x))
#define STORED_pred(x) (uint8_t)((x) != 0)
#define STORED_u16(x) (uint16_t)(x)
#define STORED_i16(x) (int16_t)(x)
#define STORED_u32(x) (uint32_t)(x)
#define STORED_i32(x) (int32_t)(x)
#define STORED_u64(x) (uint64_t)(x)
#define STORED_i64(x) (int64_t)(x)
#define STORED_f32(x) (float)(x)
#define STORED_f64(x) (double)(x)

/* ---- what rows of lane_rows.h name ---- */

static float least_float(float a, float b)
{
    return isnan(a) || b < a ? b : a;
}

static float most_float(float a, float b)
{
    return isnan(a) || b > a ? b : a;
}

/* The product of two floats is exact in a double; the sum is rounded to odd there, so that the
 * second rounding is right. */
static float fused(float a, float b, float c)
{
    const double product = (double)a * (double)b, addend = (double)c, sum = product + addend;
    const double part = sum - product;
    const double error = (product - (sum - part)) + (addend - part);
    uint64_t bits = wide_bits_of(sum);
    if (error != 0 && (bits & 1) == 0 && isfinite(sum) && isfinite(error))
        bits = (error > 0) == (sum > 0) ? bits + 1 : bits - 1;
    return (float)double_of(bits);
}

static uint16_t float_to_bfloat(float value)
{
    const uint32_t bits = bits_of(value);
    if (isnan(value)) return 0x7fff;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static uint32_t float_to_tf32(float value)
{
    const uint32_t bits = bits_of(value);
    return isfinite(value) ? (bits + 0x1000) & 0xffffe000u : bits;
}

static uint32_t dot_bytes(uint32_t a, uint32_t b, uint32_t sum, bool a_signed, bool b_signed)
{
    for (int n = 0; n < 4; n++) {
        const uint8_t x = (uint8_t)(a >> 8 * n), y = (uint8_t)(b >> 8 * n);
        sum += (uint32_t)((a_signed ? (int8_t)x : x) * (b_signed ? (int8_t)y : y));
    }
    return sum;
}

static uint64_t extracted(uint64_t a, uint32_t at, uint32_t length, uint32_t bits, bool is_signed)
{
    const uint32_t most = bits - 1;
    const uint32_t end = at + length - 1 > most ? most : at + length - 1;
    const uint64_t mask = length >= 64 ? UINT64_MAX : (UINT64_C(1) << length) - 1;
    const uint64_t sign = is_signed && length != 0 && (a >> end & 1) ? UINT64_MAX : 0;
    if (at > most) return length == 0 ? 0 : sign;
    const uint64_t there = end - at + 1 >= 64 ? UINT64_MAX : (UINT64_C(1) << (end - at + 1)) - 1;
    const uint64_t value = a >> at & mask & there;
    return length == 0 ? 0 : value | (sign & ~(mask & there));
}

static uint64_t inserted(uint64_t a, uint64_t b, uint32_t at, uint32_t length, uint32_t bits)
{
    if (length == 0 || at >= bits) return b;
    const uint64_t mask = (length >= 64 ? UINT64_MAX : (UINT64_C(1) << length) - 1) << at;
    return (b & ~mask) | (a << at & mask);
}

static uint32_t permuted_bytes(uint32_t a, uint32_t b, uint32_t selectors)
{
    const uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t result = 0;
    for (int n = 0; n < 4; n++) {
        const uint32_t selector = selectors >> 4 * n & 15;
        uint8_t byte = (uint8_t)(bytes >> 8 * (selector & 7));
        if (selector & 8) byte = byte & 0x80 ? 0xff : 0;
        result |= (uint32_t)byte << 8 * n;
    }
    return result;
}

static uint32_t any_logic(uint32_t a, uint32_t b, uint32_t c, uint32_t table)
{
    uint32_t result = 0;
    for (int n = 0; n < 8; n++)
        if (table >> n & 1) result |= (n & 4 ? a : ~a) & (n & 2 ? b : ~b) & (n & 1 ? c : ~c);
    return result;
}

static uint64_t product_high(uint64_t a, uint64_t b)
{
    const uint64_t low = (a & UINT32_MAX) * (b & UINT32_MAX);
    const uint64_t middle = (a >> 32) * (b & UINT32_MAX) + (low >> 32);
    const uint64_t other = (a & UINT32_MAX) * (b >> 32) + (middle & UINT32_MAX);
    return (a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32);
}

static uint32_t reversed_bits(uint32_t x)
{
    uint32_t reversed = 0;
    for (int b = 0; b < 32; b++) reversed |= (x >> b & 1) << (31 - b);
    return reversed;
}

/* ---- the functions ---- */

static const uint8_t absent[8 * LANES];

static const void *slot_values(const struct warp *w, const struct operation *op, int slot)
{
    return slot < op->slot_count ? source(w, op, slot) : absent;
}

#define LANE(name, to, A, B, C, D, result)                                                         \
    static void lane_##name(struct warp *w, const struct operation *op)                            \
    {                                                                                              \
        typedef stored_##A __attribute__((may_alias)) a_type;                                      \
        typedef stored_##B __attribute__((may_alias)) b_type;                                      \
        typedef stored_##C __attribute__((may_alias)) c_type;                                      \
        typedef stored_##D __attribute__((may_alias)) d_type;                                      \
        const a_type *as = slot_values(w, op, 1);                                                  \
        const b_type *bs = slot_values(w, op, 2);                                                  \
        const c_type *cs = slot_values(w, op, 3);                                                  \
        const d_type *ds = slot_values(w, op, 4);                                                  \
        stored_##to all[LANES];                                                                    \
        for (int lane = 0; lane < LANES; lane++) {                                                 \
            const A a = NUMBER_##A(op->slot[1].list, as[lane]);                                    \
            const B b = NUMBER_##B(op->slot[2].list, bs[lane]);                                    \
            const C c = NUMBER_##C(op->slot[3].list, cs[lane]);                                    \
            const D d = NUMBER_##D(op->slot[4].list, ds[lane]);                                    \
            (void)a, (void)b, (void)c, (void)d;                                                    \
            all[lane] = STORED_##to(result);                                                       \
        }                                                                                          \
        put_all(w, op->slot[0].list, all);                                                         \
    }
#include "lane_rows.h"
#undef LANE

#define LANE(name, to, A, B, C, D, result)                                                         \
    {#name,                                                                                        \
     lane_##name,                                                                                  \
     {sizeof(stored_##to), sizeof(stored_##A), sizeof(stored_##B), sizeof(stored_##C),             \
      sizeof(stored_##D)}},
const struct named_operation lane_operations[] = {
#include "lane_rows.h"
    {NULL, NULL, {0}}};
