/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between types, with registers that are wider than a type, and moves that join or
 * split registers. */
#include "decode.h"

#include <math.h>

static bool is_float(enum number_type type)
{
    return type == F16 || type == BF16 || type == F32 || type == F64;
}

static bool is_signed(enum number_type type)
{
    return type == S8 || type == S16 || type == S32 || type == S64;
}

static double float_in(uint64_t bits, enum number_type type)
{
    if (type == F16) return (double)half_to_float((uint16_t)bits);
    if (type == BF16) return (double)float_of((uint32_t)(bits & 0xffff) << 16);
    return type == F32 ? (double)float_of((uint32_t)bits) : double_of(bits);
}

static double rounded(const char *name, double value)
{
    if (strstr(name, ".rni") != NULL) return nearbyint(value);
    if (strstr(name, ".rzi") != NULL) return trunc(value);
    if (strstr(name, ".rmi") != NULL) return floor(value);
    return strstr(name, ".rpi") != NULL ? ceil(value) : value;
}

/* To the nearest integer of the type, as PTX has it; NaN is 0. */
static uint64_t integer_of(double value, enum number_type type)
{
    const int bits = 8 * type_bytes(type);
    const double least = is_signed(type) ? -ldexp(1, bits - 1) : 0;
    const double end = ldexp(1, is_signed(type) ? bits - 1 : bits);
    const uint64_t most = is_signed(type) ? (UINT64_C(1) << (bits - 1)) - 1
                          : bits == 64    ? UINT64_MAX
                                          : (UINT64_C(1) << bits) - 1;
    if (isnan(value)) return 0;
    if (value >= end) return most;
    if (value < least) return (uint64_t)(int64_t)least;
    return is_signed(type) ? (uint64_t)(int64_t)value : (uint64_t)value;
}

/* Sign or zeros above the bits of an integer. */
static uint64_t extended(uint64_t bits, enum number_type type)
{
    const int shift = 64 - 8 * type_bytes(type);
    return is_signed(type) ? (uint64_t)((int64_t)(bits << shift) >> shift) : bits << shift >> shift;
}

/* Clamps an integer, which is extended, to another type. */
static uint64_t saturated(uint64_t bits, enum number_type from, enum number_type to)
{
    const bool negative = is_signed(from) && (int64_t)bits < 0;
    const int width = 8 * type_bytes(to);
    const uint64_t most = UINT64_MAX >> (64 - width + is_signed(to));
    if (!negative) return bits > most ? most : bits;
    if (!is_signed(to)) return 0;
    const int64_t least = -(int64_t)most - 1;
    return (int64_t)bits < least ? (uint64_t)least : bits;
}

static uint64_t float_bits(double value, enum number_type type)
{
    if (type == F64) return wide_bits_of(value);
    if (type == F32) return bits_of((float)value);
    return float_to_half((float)value);
}

static uint64_t converted(const struct operation *op, uint64_t bits)
{
    const enum number_type to = op->to, from = op->from;
    if (is_float(from)) {
        const double value = rounded(op->name, float_in(bits, from));
        if (!is_float(to)) return integer_of(value, to);
        if (to == F16 && from == F64) return float_bits((double)(float)value, to);
        return float_bits(value, to);
    }
    bits = extended(bits, from);
    if (!is_float(to))
        return strstr(op->name, ".sat") != NULL ? saturated(bits, from, to) : extended(bits, to);
    if (to == F32) /* once rounded */
        return bits_of(is_signed(from) ? (float)(int64_t)bits : (float)bits);
    return float_bits(is_signed(from) ? (double)(int64_t)bits : (double)bits, to);
}

void convert(struct warp *w, const struct operation *op)
{
    if (op->to == BF16 || op->from == NO_TYPE) {
        unknown_operation(w, op);
        return;
    }
    FOR_ACTIVE(w, lane)
    {
        const uint64_t bits = lane_bits(w, &op->slot[1].list[0], lane);
        put_lane(w, &op->slot[0].list[0], lane, converted(op, bits));
    }
}

/* "mov.b32 {%rs1, %rs2}, %r1", and the other way */
void move_packed(struct warp *w, const struct operation *op)
{
    const struct slot *to = &op->slot[0], *from = &op->slot[1];
    const int to_bits = 8 * op->width / to->count, from_bits = 8 * op->width / from->count;
    FOR_ACTIVE(w, lane)
    {
        uint64_t all = 0;
        for (int n = 0; n < from->count; n++) {
            const uint64_t part = lane_bits(w, &from->list[n], lane);
            all |= (from_bits == 64 ? part : part & ((UINT64_C(1) << from_bits) - 1))
                   << from_bits * n % 64;
        }
        for (int n = 0; n < to->count; n++)
            put_lane(w, &to->list[n], lane, all >> to_bits * n % 64);
    }
}
