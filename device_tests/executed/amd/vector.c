/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on vector registers: the rows of vector_rows.h, carries, comparisons, quotients,
 * packed operations and accesses to other lanes. */
#include "wave.h"

#include <CL/cl_half.h>

#define LEAST(a, b) ((a) < (b) ? (a) : (b))
#define MOST(a, b) ((a) > (b) ? (a) : (b))
#define TURN 6.283185307179586

/* ---- what rows call ---- */

static uint32_t extracted(uint32_t x, uint32_t first, uint32_t count)
{
    return x >> first & ((1u << count) - 1);
}

static int32_t extracted_signed(int32_t x, uint32_t first, uint32_t count)
{
    if (count == 0) return 0;
    return (int32_t)((uint32_t)(x >> first) << (32 - count)) >> (32 - count);
}

/* Each byte of the selector names one of the eight bytes of a and b, a sign, 0 or 255. */
static uint32_t permuted_bytes(uint32_t a, uint32_t b, uint32_t selector)
{
    const uint64_t bytes = (uint64_t)a << 32 | b;
    uint32_t result = 0;
    for (int i = 0; i < 4; i++) {
        const uint32_t s = selector >> 8 * i & 255;
        uint32_t byte = s == 12 ? 0 : 255;
        if (s < 8)
            byte = (uint32_t)(bytes >> 8 * s) & 255;
        else if (s < 12)
            byte = bit(bytes, (int)(16 * (s - 8) + 15)) ? 255 : 0;
        result |= byte << 8 * i;
    }
    return result;
}

static uint32_t lanes_below(uint32_t mask, int lane)
{
    if (lane <= 0) return 0;
    return (uint32_t)__builtin_popcount(lane >= 32 ? mask : mask & ((1u << lane) - 1));
}

static uint32_t low_24(uint32_t x)
{
    return x & 0xffffff;
}

static uint32_t signed_24(uint32_t x)
{
    return (uint32_t)((int32_t)(x << 8) >> 8);
}

static uint32_t dot_bytes(uint32_t a, uint32_t b, uint32_t sum, bool signed_a, bool signed_b)
{
    for (int i = 0; i < 4; i++) {
        const uint8_t x = (uint8_t)(a >> 8 * i), y = (uint8_t)(b >> 8 * i);
        sum += (uint32_t)((signed_a ? (int8_t)x : x) * (signed_b ? (int8_t)y : y));
    }
    return sum;
}

static uint32_t to_u32(double x)
{
    return !(x > 0) ? 0 : x >= UINT32_MAX ? UINT32_MAX : (uint32_t)x;
}

static int32_t to_i32(double x)
{
    return isnan(x) ? 0 : x <= INT32_MIN ? INT32_MIN : x >= INT32_MAX ? INT32_MAX : (int32_t)x;
}

static float least_float(float a, float b)
{
    if (isnan(a) || isnan(b)) return isnan(a) ? b : a;
    return a < b || (a == b && signbit(a)) ? a : b;
}

static float most_float(float a, float b)
{
    if (isnan(a) || isnan(b)) return isnan(a) ? b : a;
    return a > b || (a == b && !signbit(a)) ? a : b;
}

static int exponent_of(double x)
{
    int exponent = 0;
    if (isfinite(x)) frexp(x, &exponent);
    return exponent;
}

/* v_div_fixup: the quotient's sign, and its special values. */
static double fixed_quotient(double quotient, double denominator, double numerator)
{
    const double sign = signbit(numerator) != signbit(denominator) ? -1 : 1;
    if (isnan(numerator)) return numerator;
    if (isnan(denominator)) return denominator;
    if ((numerator == 0 && denominator == 0) || (isinf(numerator) && isinf(denominator)))
        return (double)NAN;
    if (denominator == 0 || isinf(numerator)) return sign * (double)INFINITY;
    if (numerator == 0 || isinf(denominator)) return sign * 0.0;
    return sign * fabs(quotient);
}

/* ---- the rows ---- */

typedef uint32_t type_u32;
typedef int32_t type_i32;
typedef uint64_t type_u64;
typedef int64_t type_i64;
typedef uint16_t type_u16;
typedef int16_t type_i16;
typedef float type_f32, type_f16, type_was;
typedef double type_f64, type_was64;
typedef uint32_t type_was_bits;
typedef int type_none;

#define READ_none(w, op, n, lane) 0
#define READ_u32(w, op, n, lane) read_u32(w, &(op)->operand[n], lane)
#define READ_i32(w, op, n, lane) read_i32(w, &(op)->operand[n], lane)
#define READ_u64(w, op, n, lane) read_u64(w, &(op)->operand[n], lane)
#define READ_i64(w, op, n, lane) read_i64(w, &(op)->operand[n], lane)
#define READ_u16(w, op, n, lane) read_u16(w, &(op)->operand[n], lane)
#define READ_i16(w, op, n, lane) read_i16(w, &(op)->operand[n], lane)
#define READ_f32(w, op, n, lane) read_f32(w, &(op)->operand[n], lane)
#define READ_f64(w, op, n, lane) read_f64(w, &(op)->operand[n], lane)
#define READ_f16(w, op, n, lane) read_f16(w, &(op)->operand[n], lane)
#define READ_was(w, op, n, lane) float_of(raw_word(w, &(op)->operand[0], lane, 0))
#define READ_was_bits(w, op, n, lane) raw_word(w, &(op)->operand[0], lane, 0)
#define READ_was64(w, op, n, lane) double_of(read_u64(w, &(op)->operand[0], lane))

#define LANE(mnemonic, D, A, B, C, result)                                                         \
    static void run_##mnemonic(struct wave *w, const struct operation *op)                         \
    {                                                                                              \
        FOR_LANES(w, lane)                                                                         \
        {                                                                                          \
            const type_##A a = READ_##A(w, op, 1, lane);                                           \
            const type_##B b = READ_##B(w, op, 2, lane);                                           \
            const type_##C c = READ_##C(w, op, 3, lane);                                           \
            (void)a, (void)b, (void)c;                                                             \
            write_##D(w, op, lane, (type_##D)(result));                                            \
        }                                                                                          \
    }
#include "vector_rows.h"
#undef LANE

/* ---- carries: a second result with a bit for each lane ---- */

#define CARRY(mnemonic, result, carries)                                                           \
    static void run_##mnemonic(struct wave *w, const struct operation *op)                         \
    {                                                                                              \
        const uint64_t in = op->operand_count > 4 ? read_mask(w, &op->operand[4]) : 0;             \
        uint64_t out = 0;                                                                          \
        FOR_LANES(w, lane)                                                                         \
        {                                                                                          \
            const uint64_t a = read_u32(w, &op->operand[2], lane);                                 \
            const uint64_t b = read_u32(w, &op->operand[3], lane), carry = bit(in, lane);          \
            (void)carry;                                                                           \
            write_u32(w, op, lane, (uint32_t)(result));                                            \
            out |= (uint64_t)(carries) << lane;                                                    \
        }                                                                                          \
        write_mask(w, &op->operand[1], out);                                                       \
    }
CARRY(v_add_co_u32, a + b, (a + b) >> 32)
CARRY(v_sub_co_u32, a - b, a < b)
CARRY(v_subrev_co_u32, b - a, b < a)
CARRY(v_addc_co_u32, a + b + carry, (a + b + carry) >> 32)
CARRY(v_subb_co_u32, a - b - carry, a < b + carry)
CARRY(v_subbrev_co_u32, b - a - carry, b < a + carry)

/* v_mad_u64_u32 and v_mad_i64_i32 */
static void multiply_add_wide(struct wave *w, const struct operation *op)
{
    const bool is_signed = strstr(op->name, "i64_i32") != NULL;
    uint64_t carries = 0;
    FOR_LANES(w, lane)
    {
        const uint32_t a = read_u32(w, &op->operand[2], lane);
        const uint32_t b = read_u32(w, &op->operand[3], lane);
        const uint64_t addend = read_u64(w, &op->operand[4], lane);
        const uint64_t product = is_signed ? (uint64_t)((int64_t)(int32_t)a * (int32_t)b)
                                           : (uint64_t)a * b;
        write_u64(w, op, lane, product + addend);
        carries |= (uint64_t)(product + addend < addend) << lane;
    }
    write_mask(w, &op->operand[1], carries);
}

static void run_v_cndmask_b32(struct wave *w, const struct operation *op)
{
    const uint64_t mask = op->operand_count > 3 ? read_mask(w, &op->operand[3])
                                                : register_mask(w, VCC);
    FOR_LANES(w, lane)
    {
        const struct operand *o = &op->operand[bit(mask, lane) ? 2 : 1];
        const bool is_float = o->negate || o->absolute;
        write_u32(w, op, lane, is_float ? bits_of(read_f32(w, o, lane)) : read_u32(w, o, lane));
    }
}

/* ---- comparisons ---- */

/* The bits of v_cmp_class, from the least: signalling and quiet NaN, -infinity, -normal,
 * -subnormal, -0, +0, +subnormal, +normal, +infinity. */
static bool is_of_class(double value, bool subnormal, uint32_t classes)
{
    const bool negative = signbit(value);
    if (isnan(value)) return (classes & 3) != 0;
    const int class = isinf(value) ? 2 : value == 0 ? 5 : subnormal ? 4 : 3;
    return bit(classes, negative ? class : 11 - class);
}

#define COMPARE(a, b)                                                                              \
    switch (condition) {                                                                           \
    case IS_FALSE:                                                                                 \
    case IS_OF_CLASS: return false;                                                                \
    case IS_LESS: return (a) < (b);                                                                \
    case IS_EQUAL: return (a) == (b);                                                              \
    case IS_LESS_OR_EQUAL: return (a) <= (b);                                                      \
    case IS_GREATER: return (a) > (b);                                                             \
    case IS_LESS_OR_GREATER: return (a) < (b) || (a) > (b);                                        \
    case IS_GREATER_OR_EQUAL: return (a) >= (b);                                                   \
    case IS_ORDERED: return (a) == (a) && (b) == (b);                                              \
    case IS_UNORDERED: return (a) != (a) || (b) != (b);                                            \
    case IS_NOT_GREATER_OR_EQUAL: return !((a) >= (b));                                            \
    case IS_NOT_LESS_OR_GREATER: return !((a) < (b) || (a) > (b));                                 \
    case IS_NOT_GREATER: return !((a) > (b));                                                      \
    case IS_NOT_LESS_OR_EQUAL: return !((a) <= (b));                                               \
    case IS_NOT_EQUAL: return (a) != (b);                                                          \
    case IS_NOT_LESS: return !((a) < (b));                                                         \
    case IS_TRUE: return true;                                                                     \
    }                                                                                              \
    return false

static bool compare_floats(double a, double b, enum condition condition)
{
    COMPARE(a, b);
}

static bool compare_signed(int64_t a, int64_t b, enum condition condition)
{
    COMPARE(a, b);
}

static bool compare_unsigned(uint64_t a, uint64_t b, enum condition condition)
{
    COMPARE(a, b);
}

static bool compare(const struct wave *w, const struct operation *op, const struct operand *a,
                    const struct operand *b, int lane)
{
    const enum condition c = op->condition;
    if (c == IS_OF_CLASS) {
        const uint32_t classes = read_u32(w, b, lane);
        if (op->type == F64) {
            const double x = read_f64(w, a, lane);
            return is_of_class(x, fpclassify(x) == FP_SUBNORMAL, classes);
        }
        const float x = op->type == F16 ? read_f16(w, a, lane) : read_f32(w, a, lane);
        const float least = op->type == F16 ? 0x1p-14f : 0x1p-126f;
        return is_of_class((double)x, x != 0 && fabsf(x) < least, classes);
    }
    switch (op->type) {
    case F16: return compare_floats((double)read_f16(w, a, lane), (double)read_f16(w, b, lane), c);
    case F32: return compare_floats((double)read_f32(w, a, lane), (double)read_f32(w, b, lane), c);
    case F64: return compare_floats(read_f64(w, a, lane), read_f64(w, b, lane), c);
    case I16: return compare_signed(read_i16(w, a, lane), read_i16(w, b, lane), c);
    case U16: return compare_unsigned(read_u16(w, a, lane), read_u16(w, b, lane), c);
    case I32: return compare_signed(read_i32(w, a, lane), read_i32(w, b, lane), c);
    case U32: return compare_unsigned(read_u32(w, a, lane), read_u32(w, b, lane), c);
    case I64: return compare_signed(read_i64(w, a, lane), read_i64(w, b, lane), c);
    case U64: return compare_unsigned(read_u64(w, a, lane), read_u64(w, b, lane), c);
    case BF16:
    case BYTES: break;
    }
    return false;
}

/* v_cmp writes a mask. v_cmpx writes exec, before RDNA also a mask. */
void compare_vectors(struct wave *w, const struct operation *op)
{
    const int first = op->operand_count - 2;
    uint64_t mask = 0;
    FOR_LANES(w, lane)
    mask |= (uint64_t)compare(w, op, &op->operand[first], &op->operand[first + 1], lane) << lane;
    if (first == 1) write_mask(w, &op->operand[0], mask);
    if (strncmp(op->name, "v_cmpx", 6) == 0) set_exec(w, mask);
}

void compare_scalars(struct wave *w, const struct operation *op)
{
    w->scalar[SCC] = compare(w, op, &op->operand[0], &op->operand[1], 0);
}

/* ---- quotients: v_div_scale(d, mask, s0, denominator, numerator), then v_div_fmas ---- */

/* Whether numbers so far apart in exponent leave the range on the way, so that v_div_scale scales
 * one by 2^`step`, and v_div_fmas scales back. */
static double scaled(double s0, double denominator, double numerator, int step, int least,
                     bool *scales)
{
    const int span = step == 64 ? 96 : 768, digits = step == 64 ? 23 : 52;
    const int below = exponent_of(denominator) - least, above = exponent_of(numerator) - least;
    const double inverse = 1 / denominator, quotient = numerator / denominator;
    const double subnormal = ldexp(1, least), both = ldexp(s0, step);
    const bool small_inverse = fabs(inverse) < subnormal && inverse != 0;
    const bool small_quotient = fabs(quotient) < subnormal && quotient != 0;
    *scales = false;
    if (numerator == 0 || denominator == 0) return (double)NAN;
    if (above - below >= span) {
        *scales = true;
        return s0 == denominator ? both : s0;
    }
    if (fabs(denominator) < subnormal) return both;
    if (small_inverse && small_quotient) {
        *scales = true;
        return s0 == denominator ? both : s0;
    }
    if (small_inverse) return ldexp(s0, -step);
    if (small_quotient) {
        *scales = true;
        return s0 == numerator ? both : s0;
    }
    return above <= digits ? both : s0;
}

#define QUOTIENT(T, step, least)                                                                   \
    static void run_v_div_scale_##T(struct wave *w, const struct operation *op)                    \
    {                                                                                              \
        uint64_t mask = 0;                                                                         \
        FOR_LANES(w, lane)                                                                         \
        {                                                                                          \
            bool scales;                                                                           \
            const double s0 = (double)read_##T(w, &op->operand[2], lane);                          \
            const double denominator = (double)read_##T(w, &op->operand[3], lane);                 \
            const double numerator = (double)read_##T(w, &op->operand[4], lane);                   \
            write_##T(w, op, lane,                                                                 \
                      (type_##T)scaled(s0, denominator, numerator, step, least, &scales));         \
            mask |= (uint64_t)scales << lane;                                                      \
        }                                                                                          \
        write_mask(w, &op->operand[1], mask);                                                      \
    }                                                                                              \
                                                                                                   \
    static void run_v_div_fmas_##T(struct wave *w, const struct operation *op)                     \
    {                                                                                              \
        const uint64_t mask = register_mask(w, VCC);                                               \
        FOR_LANES(w, lane)                                                                         \
        {                                                                                          \
            const type_##T a = read_##T(w, &op->operand[1], lane);                                 \
            const type_##T b = read_##T(w, &op->operand[2], lane);                                 \
            const type_##T c = read_##T(w, &op->operand[3], lane), sum = fma_##T(a, b, c);         \
            const int back = fabs((double)c) >= 2 ? step : -step;                                  \
            write_##T(w, op, lane, bit(mask, lane) ? (type_##T)ldexp((double)sum, back) : sum);    \
        }                                                                                          \
    }
#define fma_f32 fmaf
#define fma_f64 fma
QUOTIENT(f32, 64, -126)
QUOTIENT(f64, 128, -1022)

/* ---- packed operations: op_sel and op_sel_hi say which part of a source each result takes ---- */

static bool takes_second(const struct operation *op, int source, bool second)
{
    return bit(second ? op->op_sel_hi : op->op_sel, source);
}

static bool negates(const struct operation *op, int source, bool second)
{
    return bit(second ? op->negate_high : op->negate_low, source);
}

static float packed_f32(const struct wave *w, const struct operation *op, int source, int lane,
                        bool second)
{
    const struct operand *o = &op->operand[source + 1];
    if (source + 1 >= op->operand_count) return 0;
    const int n = o->kind != LITERAL && takes_second(op, source, second);
    const float value = float_of(raw_word(w, o, lane, n));
    return negates(op, source, second) ? -value : value;
}

static uint16_t packed_u16(const struct wave *w, const struct operation *op, int source, int lane,
                           bool second)
{
    const struct operand *o = &op->operand[source + 1];
    if (source + 1 >= op->operand_count) return 0;
    if (o->kind == LITERAL && !o->hexadecimal) return o->half;
    return (uint16_t)(raw_word(w, o, lane, 0) >> (takes_second(op, source, second) ? 16 : 0));
}

static int16_t packed_i16(const struct wave *w, const struct operation *op, int source, int lane,
                          bool second)
{
    return (int16_t)packed_u16(w, op, source, lane, second);
}

static float packed_f16(const struct wave *w, const struct operation *op, int source, int lane,
                        bool second)
{
    const float value = half_to_float(packed_u16(w, op, source, lane, second));
    return negates(op, source, second) ? -value : value;
}

#define PACKED_F32(mnemonic, result)                                                               \
    static void run_##mnemonic(struct wave *w, const struct operation *op)                         \
    {                                                                                              \
        FOR_LANES(w, lane)                                                                         \
        {                                                                                          \
            uint32_t word[2];                                                                      \
            for (int i = 0; i < 2; i++) {                                                          \
                const float a = packed_f32(w, op, 0, lane, i), b = packed_f32(w, op, 1, lane, i);  \
                const float c = packed_f32(w, op, 2, lane, i);                                     \
                (void)c;                                                                           \
                word[i] = bits_of(result);                                                         \
            }                                                                                      \
            write_u64(w, op, lane, word[0] | (uint64_t)word[1] << 32);                             \
        }                                                                                          \
    }
PACKED_F32(v_pk_fma_f32, fmaf(a, b, c))
PACKED_F32(v_pk_mul_f32, a *b)
PACKED_F32(v_pk_add_f32, a + b)

#define PACKED_16(mnemonic, T, result)                                                             \
    static void run_##mnemonic(struct wave *w, const struct operation *op)                         \
    {                                                                                              \
        FOR_LANES(w, lane)                                                                         \
        {                                                                                          \
            uint32_t word = 0;                                                                     \
            for (int i = 0; i < 2; i++) {                                                          \
                const type_##T a = packed_##T(w, op, 0, lane, i);                                  \
                const type_##T b = packed_##T(w, op, 1, lane, i);                                  \
                const type_##T c = packed_##T(w, op, 2, lane, i);                                  \
                (void)c;                                                                           \
                word |= (uint32_t)(uint16_t)(result) << 16 * i;                                    \
            }                                                                                      \
            put_word(w, &op->operand[0], lane, 0, word);                                           \
        }                                                                                          \
    }
PACKED_16(v_pk_fma_f16, f16, float_to_half((float)((double)a *(double)b + (double)c)))
PACKED_16(v_pk_mul_f16, f16, float_to_half(a *b))
PACKED_16(v_pk_add_f16, f16, float_to_half(a + b))
PACKED_16(v_pk_min_f16, f16, float_to_half(least_float(a, b)))
PACKED_16(v_pk_max_f16, f16, float_to_half(most_float(a, b)))
PACKED_16(v_pk_mul_lo_u16, u16, (uint32_t)a *b)
PACKED_16(v_pk_mad_u16, u16, (uint32_t)a *b + c)
PACKED_16(v_pk_add_u16, u16, a + b)
PACKED_16(v_pk_sub_u16, u16, a - b)
PACKED_16(v_pk_sub_i16, u16, a - b)
PACKED_16(v_pk_min_i16, i16, LEAST(a, b))
PACKED_16(v_pk_max_i16, i16, MOST(a, b))
PACKED_16(v_pk_lshlrev_b16, u16, b << (a & 15))
PACKED_16(v_pk_lshrrev_b16, u16, b >> (a & 15))
PACKED_16(v_pk_ashrrev_i16, i16, b >> (a & 15))

static void run_v_pk_mov_b32(struct wave *w, const struct operation *op)
{
    FOR_LANES(w, lane)
    {
        uint32_t word[2];
        for (int i = 0; i < 2; i++) {
            const struct operand *o = &op->operand[i + 1];
            word[i] = raw_word(w, o, lane, o->kind != LITERAL && bit(op->op_sel, i));
        }
        write_u64(w, op, lane, word[0] | (uint64_t)word[1] << 32);
    }
}

static void run_v_swap_b32(struct wave *w, const struct operation *op)
{
    FOR_LANES(w, lane)
    {
        const uint32_t first = raw_word(w, &op->operand[0], lane, 0);
        const uint32_t second = raw_word(w, &op->operand[1], lane, 0);
        put_word(w, &op->operand[0], lane, 0, second);
        put_word(w, &op->operand[1], lane, 0, first);
    }
}

/* v_fma_mix: each source is an f32, or the half of a register that op_sel names. */
static float mixed(const struct wave *w, const struct operation *op, int source, int lane)
{
    const struct operand *o = &op->operand[source + 1];
    const uint32_t word = raw_word(w, o, lane, 0);
    float value = float_of(word);
    if (bit(op->op_sel_hi, source)) {
        const uint16_t half = (uint16_t)(word >> (bit(op->op_sel, source) ? 16 : 0));
        value = half_to_float(o->kind == LITERAL ? o->half : half);
    }
    return (float)modified(o, (double)value);
}

static float mixed_sum(const struct wave *w, const struct operation *op, int lane)
{
    const float sum = fmaf(mixed(w, op, 0, lane), mixed(w, op, 1, lane), mixed(w, op, 2, lane));
    return (float)finished(op, (double)sum);
}

static void run_v_fma_mix_f32(struct wave *w, const struct operation *op)
{
    FOR_LANES(w, lane)
    put_word(w, &op->operand[0], lane, 0, bits_of(mixed_sum(w, op, lane)));
}

static void put_half(struct wave *w, const struct operation *op, int lane, bool upper,
                     uint16_t half)
{
    const uint32_t was = raw_word(w, &op->operand[0], lane, 0);
    put_word(w, &op->operand[0], lane, 0,
             upper ? (was & 0xffff) | (uint32_t)half << 16 : (was & 0xffff0000u) | half);
}

static void run_v_fma_mixlo_f16(struct wave *w, const struct operation *op)
{
    FOR_LANES(w, lane) put_half(w, op, lane, false, float_to_half(mixed_sum(w, op, lane)));
}

static void run_v_fma_mixhi_f16(struct wave *w, const struct operation *op)
{
    FOR_LANES(w, lane) put_half(w, op, lane, true, float_to_half(mixed_sum(w, op, lane)));
}

static void run_v_pack_b32_f16(struct wave *w, const struct operation *op)
{
    FOR_LANES(w, lane)
    {
        uint32_t word = 0;
        for (int s = 0; s < 2; s++) {
            const struct operand *o = &op->operand[s + 1];
            uint32_t half = raw_word(w, o, lane, 0) >> (bit(op->op_sel, s) ? 16 : 0) & 0xffff;
            if (o->kind == LITERAL) half = o->half;
            if (o->negate) half ^= 0x8000;
            word |= half << 16 * s;
        }
        put_word(w, &op->operand[0], lane, 0, word);
    }
}

static void run_v_cvt_pkrtz_f16_f32(struct wave *w, const struct operation *op)
{
    FOR_LANES(w, lane)
    {
        uint32_t word = 0;
        for (int s = 0; s < 2; s++)
            word |=
                (uint32_t)cl_half_from_float(read_f32(w, &op->operand[s + 1], lane), CL_HALF_RTZ)
                << 16 * s;
        put_word(w, &op->operand[0], lane, 0, word);
    }
}

/* ---- other lanes ---- */

static void run_v_readfirstlane_b32(struct wave *w, const struct operation *op)
{
    const uint64_t mask = register_mask(w, EXEC);
    const int lane = mask == 0 ? 0 : __builtin_ctzll(mask);
    put_word(w, &op->operand[0], 0, 0, raw_word(w, &op->operand[1], lane, 0));
}

static int lane_named(const struct wave *w, const struct operation *op)
{
    return (int)(read_u32(w, &op->operand[2], 0) & (uint32_t)(w->lanes - 1));
}

static void run_v_readlane_b32(struct wave *w, const struct operation *op)
{
    put_word(w, &op->operand[0], 0, 0, raw_word(w, &op->operand[1], lane_named(w, op), 0));
}

static void run_v_writelane_b32(struct wave *w, const struct operation *op)
{
    put_word(w, &op->operand[0], lane_named(w, op), 0, read_u32(w, &op->operand[1], 0));
}

/* ---- the list: a row or function, and the names that other targets have for it ---- */

#define NAMED(mnemonic) {#mnemonic, run_##mnemonic},
#define LANE(mnemonic, D, A, B, C, result) NAMED(mnemonic)
const struct named_operation vector_operations[] = {
#include "vector_rows.h"
    NAMED(v_add_co_u32) NAMED(v_sub_co_u32) NAMED(v_subrev_co_u32) NAMED(v_addc_co_u32) NAMED(
        v_subb_co_u32) NAMED(v_subbrev_co_u32) NAMED(v_cndmask_b32) NAMED(v_div_scale_f32)
        NAMED(v_div_scale_f64) NAMED(v_div_fmas_f32) NAMED(v_div_fmas_f64) NAMED(v_pk_fma_f32)
            NAMED(v_pk_mul_f32) NAMED(v_pk_add_f32) NAMED(v_pk_mov_b32) NAMED(v_swap_b32) NAMED(
                v_pk_fma_f16) NAMED(v_pk_mul_f16) NAMED(v_pk_add_f16) NAMED(v_pk_min_f16)
                NAMED(v_pk_max_f16) NAMED(v_pk_mul_lo_u16) NAMED(v_pk_mad_u16) NAMED(v_pk_add_u16)
                    NAMED(v_pk_sub_u16) NAMED(v_pk_sub_i16) NAMED(v_pk_min_i16) NAMED(v_pk_max_i16)
                        NAMED(v_pk_lshlrev_b16) NAMED(v_pk_lshrrev_b16) NAMED(v_pk_ashrrev_i16)
                            NAMED(v_fma_mix_f32) NAMED(v_fma_mixlo_f16) NAMED(v_fma_mixhi_f16)
                                NAMED(v_pack_b32_f16) NAMED(v_cvt_pkrtz_f16_f32)
                                    NAMED(v_readfirstlane_b32) NAMED(v_readlane_b32) NAMED(
                                        v_writelane_b32){"v_add_co_ci_u32", run_v_addc_co_u32},
    {"v_sub_co_ci_u32", run_v_subb_co_u32},
    {"v_subrev_co_ci_u32", run_v_subbrev_co_u32},
    {"v_mad_u64_u32", multiply_add_wide},
    {"v_mad_co_u64_u32", multiply_add_wide},
    {"v_mad_i64_i32", multiply_add_wide},
    {"v_mad_co_i64_i32", multiply_add_wide},
    {"v_min_num_f32", run_v_min_f32},
    {"v_max_num_f32", run_v_max_f32},
    {"v_min_num_f64", run_v_min_f64},
    {"v_max_num_f64", run_v_max_f64},
    {"v_min_num_f16", run_v_min_f16},
    {"v_max_num_f16", run_v_max_f16},
    {"v_pk_min_num_f16", run_v_pk_min_f16},
    {"v_pk_max_num_f16", run_v_pk_max_f16},
    {"v_min3_num_f32", run_v_min3_f32},
    {"v_max3_num_f32", run_v_max3_f32},
    {"v_med3_num_f32", run_v_med3_f32},
    {"v_maxmin_num_f32", run_v_maxmin_f32},
    {"v_minmax_num_f32", run_v_minmax_f32},
    {"v_cvt_pk_rtz_f16_f32", run_v_cvt_pkrtz_f16_f32},
    {NULL, NULL}};
