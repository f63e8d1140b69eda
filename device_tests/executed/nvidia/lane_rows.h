/* SPDX-License-Identifier: Apache-2.0 */
/* The operations that compute each lane's result from the same lane of their sources.
 *
 *   LANE(name with _ for points, type of the result, types of the sources a, b, c and d, result)
 *
 * `none` is a source that there is not. Words of names that is_ignored (decode.c) has are left
 * out. */
/* clang-format off */

#define INTEGERS(name, result) \
    LANE(name##_u16, u16, u16, u16, none, none, result) \
    LANE(name##_s16, i16, i16, i16, none, none, result) \
    LANE(name##_u32, u32, u32, u32, none, none, result) \
    LANE(name##_s32, i32, i32, i32, none, none, result) \
    LANE(name##_u64, u64, u64, u64, none, none, result) \
    LANE(name##_s64, i64, i64, i64, none, none, result)
/* as INTEGERS, of results that signs do not change */
#define SUMS(name, result) \
    LANE(name##_u16, u16, u16, u16, u16, none, result) \
    LANE(name##_s16, u16, u16, u16, u16, none, result) \
    LANE(name##_u32, u32, u32, u32, u32, none, result) \
    LANE(name##_s32, u32, u32, u32, u32, none, result) \
    LANE(name##_u64, u64, u64, u64, u64, none, result) \
    LANE(name##_s64, u64, u64, u64, u64, none, result)
#define BITS(name, result) \
    LANE(name##_b16, u16, u16, u16, none, none, result) \
    LANE(name##_b32, u32, u32, u32, none, none, result) \
    LANE(name##_b64, u64, u64, u64, none, none, result)
#define SELECTED(suffix, type) LANE(selp_##suffix, type, type, type, pred, none, c ? a : b)
#define MOVED(suffix, type) LANE(mov_##suffix, type, type, none, none, none, a)

/* moves */
MOVED(pred, pred)
MOVED(b16, u16)
MOVED(u16, u16)
MOVED(f16, u16)
MOVED(s16, u16)
MOVED(b32, u32)
MOVED(u32, u32)
MOVED(s32, u32)
MOVED(f32, u32)
MOVED(b64, u64)
MOVED(u64, u64)
MOVED(s64, u64)
MOVED(f64, u64)
SELECTED(b16, u16)
SELECTED(u16, u16)
SELECTED(f16, u16)
SELECTED(s16, u16)
SELECTED(b32, u32)
SELECTED(u32, u32)
SELECTED(s32, u32)
SELECTED(f32, u32)
SELECTED(b64, u64)
SELECTED(u64, u64)
SELECTED(s64, u64)
SELECTED(f64, u64)

/* integers */
SUMS(add, (uint64_t)a + b)
SUMS(sub, (uint64_t)a - b)
SUMS(mul_lo, (uint64_t)a * b)
SUMS(mad_lo, (uint64_t)a * b + c)
INTEGERS(min, a < b ? a : b)
INTEGERS(max, a > b ? a : b)
LANE(div_s32, i32, i32, i32, none, none, b == 0 ? -1 : (int64_t)a / b)
LANE(div_u32, u32, u32, u32, none, none, b == 0 ? UINT32_MAX : a / b)
LANE(div_s64, i64, i64, i64, none, none, b == 0 || (a == INT64_MIN && b == -1) ? -1 : a / b)
LANE(div_u64, u64, u64, u64, none, none, b == 0 ? UINT64_MAX : a / b)
LANE(div_s16, i16, i16, i16, none, none, b == 0 ? -1 : a / b)
LANE(div_u16, u16, u16, u16, none, none, b == 0 ? UINT16_MAX : a / b)
LANE(rem_s32, i32, i32, i32, none, none, b == 0 ? a : (int64_t)a % b)
LANE(rem_u32, u32, u32, u32, none, none, b == 0 ? a : a % b)
LANE(rem_s64, i64, i64, i64, none, none, b == 0 || b == -1 ? 0 : a % b)
LANE(rem_u64, u64, u64, u64, none, none, b == 0 ? a : a % b)
LANE(rem_s16, i16, i16, i16, none, none, b == 0 ? a : a % b)
LANE(rem_u16, u16, u16, u16, none, none, b == 0 ? a : a % b)
LANE(mul_wide_u16, u32, u16, u16, none, none, (uint32_t)a * b)
LANE(mul_wide_s16, i32, i16, i16, none, none, (int32_t)a * b)
LANE(mul_wide_u32, u64, u32, u32, none, none, (uint64_t)a * b)
LANE(mul_wide_s32, i64, i32, i32, none, none, (int64_t)a * b)
LANE(mad_wide_u16, u32, u16, u16, u32, none, (uint32_t)a * b + c)
LANE(mad_wide_s16, u32, i16, i16, u32, none, (uint32_t)((int32_t)a * b) + c)
LANE(mad_wide_u32, u64, u32, u32, u64, none, (uint64_t)a * b + c)
LANE(mad_wide_s32, u64, i32, i32, u64, none, (uint64_t)((int64_t)a * b) + c)
LANE(mul_hi_u32, u32, u32, u32, none, none, (uint64_t)a * b >> 32)
LANE(mul_hi_s32, i32, i32, i32, none, none, (int64_t)a * b >> 32)
LANE(mul_hi_u64, u64, u64, u64, none, none, product_high(a, b))
LANE(mul_hi_s64, i64, i64, i64, none, none,
     product_high((uint64_t)a, (uint64_t)b) - (a < 0 ? (uint64_t)b : 0) - (b < 0 ? (uint64_t)a : 0))
LANE(abs_s16, u16, i16, none, none, none, a < 0 ? -a : a)
LANE(abs_s32, u32, i32, none, none, none, a < 0 ? 0 - (uint32_t)a : (uint32_t)a)
LANE(abs_s64, u64, i64, none, none, none, a < 0 ? 0 - (uint64_t)a : (uint64_t)a)
LANE(neg_s16, u16, u16, none, none, none, -a)
LANE(neg_s32, u32, u32, none, none, none, 0 - a)
LANE(neg_s64, u64, u64, none, none, none, 0 - a)
LANE(add_s16x2, u32, u32, u32, none, none, ((a + b) & 0xffff) | ((a >> 16) + (b >> 16)) << 16)
LANE(add_u16x2, u32, u32, u32, none, none, ((a + b) & 0xffff) | ((a >> 16) + (b >> 16)) << 16)
LANE(dp4a_u32_u32, u32, u32, u32, u32, none, dot_bytes(a, b, c, false, false))
LANE(dp4a_u32_s32, u32, u32, u32, u32, none, dot_bytes(a, b, c, false, true))
LANE(dp4a_s32_u32, u32, u32, u32, u32, none, dot_bytes(a, b, c, true, false))
LANE(dp4a_s32_s32, u32, u32, u32, u32, none, dot_bytes(a, b, c, true, true))

/* bits */
BITS(and, a & b)
BITS(or, a | b)
BITS(xor, a ^ b)
LANE(not_b16, u16, u16, none, none, none, ~a)
LANE(not_b32, u32, u32, none, none, none, ~a)
LANE(not_b64, u64, u64, none, none, none, ~a)
LANE(and_pred, pred, pred, pred, none, none, a & b)
LANE(or_pred, pred, pred, pred, none, none, a | b)
LANE(xor_pred, pred, pred, pred, none, none, a ^ b)
LANE(not_pred, pred, pred, none, none, none, !a)
LANE(shl_b16, u16, u16, u32, none, none, b > 15 ? 0 : a << b)
LANE(shl_b32, u32, u32, u32, none, none, b > 31 ? 0 : a << (b & 31))
LANE(shl_b64, u64, u64, u32, none, none, b > 63 ? 0 : a << (b & 63))
LANE(shr_u16, u16, u16, u32, none, none, b > 15 ? 0 : a >> b)
LANE(shr_u32, u32, u32, u32, none, none, b > 31 ? 0 : a >> (b & 31))
LANE(shr_u64, u64, u64, u32, none, none, b > 63 ? 0 : a >> (b & 63))
LANE(shr_b16, u16, u16, u32, none, none, b > 15 ? 0 : a >> b)
LANE(shr_b32, u32, u32, u32, none, none, b > 31 ? 0 : a >> (b & 31))
LANE(shr_b64, u64, u64, u32, none, none, b > 63 ? 0 : a >> (b & 63))
LANE(shr_s16, i16, i16, u32, none, none, a >> (b > 15 ? 15 : b))
LANE(shr_s32, i32, i32, u32, none, none, a >> (b > 31 ? 31 : b))
LANE(shr_s64, i64, i64, u32, none, none, a >> (b > 63 ? 63 : b))
LANE(shf_l_wrap_b32, u32, u32, u32, u32, none, ((uint64_t)b << 32 | a) << (c & 31) >> 32)
LANE(shf_r_wrap_b32, u32, u32, u32, u32, none, ((uint64_t)b << 32 | a) >> (c & 31))
LANE(shf_l_clamp_b32, u32, u32, u32, u32, none, c > 31 ? a : ((uint64_t)b << 32 | a) << c >> 32)
LANE(shf_r_clamp_b32, u32, u32, u32, u32, none, c > 31 ? b : ((uint64_t)b << 32 | a) >> c)
LANE(bfe_u32, u32, u32, u32, u32, none, extracted(a, b & 255, c & 255, 32, false))
LANE(bfe_s32, u32, i32, u32, u32, none, extracted((uint64_t)a, b & 255, c & 255, 32, true))
LANE(bfe_u64, u64, u64, u32, u32, none, extracted(a, b & 255, c & 255, 64, false))
LANE(bfe_s64, u64, u64, u32, u32, none, extracted(a, b & 255, c & 255, 64, true))
LANE(bfi_b32, u32, u32, u32, u32, u32, inserted(a, b, c & 255, d & 255, 32))
LANE(bfi_b64, u64, u64, u64, u32, u32, inserted(a, b, c & 255, d & 255, 64))
LANE(prmt_b32, u32, u32, u32, u32, none, permuted_bytes(a, b, c))
LANE(lop3_b32, u32, u32, u32, u32, u32, any_logic(a, b, c, d))
LANE(clz_b32, u32, u32, none, none, none, a == 0 ? 32 : __builtin_clz(a))
LANE(clz_b64, u32, u64, none, none, none, a == 0 ? 64 : __builtin_clzll(a))
LANE(popc_b32, u32, u32, none, none, none, __builtin_popcount(a))
LANE(popc_b64, u32, u64, none, none, none, __builtin_popcountll(a))
LANE(brev_b32, u32, u32, none, none, none, reversed_bits(a))
LANE(bfind_u32, u32, u32, none, none, none, a == 0 ? UINT32_MAX : 31 - (uint32_t)__builtin_clz(a))

/* conversions of whole registers; convert.c has the others */
LANE(cvt_u64_u32, u64, u32, none, none, none, a)
LANE(cvt_u32_u64, u32, u64, none, none, none, a)
LANE(cvt_s64_s32, i64, i32, none, none, none, a)
LANE(cvt_s32_s64, u32, u64, none, none, none, a)
LANE(cvt_u32_u16, u32, u16, none, none, none, a)
LANE(cvt_s32_s16, i32, i16, none, none, none, a)
LANE(cvt_u16_u32, u16, u32, none, none, none, a)
LANE(cvt_f32_f16, f32, f16, none, none, none, a)
LANE(cvt_rn_f16_f32, f16, f32, none, none, none, a)
LANE(cvt_rn_f32_s32, f32, i32, none, none, none, a)
LANE(cvt_rn_f32_u32, f32, u32, none, none, none, a)
LANE(cvt_rn_f16x2_f32, u32, f32, f32, none, none,
     (uint32_t)float_to_half(a) << 16 | float_to_half(b))
LANE(cvt_rn_bf16x2_f32, u32, f32, f32, none, none,
     (uint32_t)float_to_bfloat(a) << 16 | float_to_bfloat(b))
LANE(cvt_rn_bf16_f32, u16, f32, none, none, none, float_to_bfloat(a))
LANE(cvt_rna_tf32_f32, u32, f32, none, none, none, float_to_tf32(a))
LANE(cvt_rni_f32_f32, f32, f32, none, none, none, nearbyintf(a))
LANE(cvt_rzi_f32_f32, f32, f32, none, none, none, truncf(a))
LANE(cvt_rmi_f32_f32, f32, f32, none, none, none, floorf(a))
LANE(cvt_rpi_f32_f32, f32, f32, none, none, none, ceilf(a))
LANE(cvt_rni_f64_f64, f64, f64, none, none, none, nearbyint(a))
LANE(cvt_rzi_f64_f64, f64, f64, none, none, none, trunc(a))
LANE(cvt_rmi_f64_f64, f64, f64, none, none, none, floor(a))
LANE(cvt_rpi_f64_f64, f64, f64, none, none, none, ceil(a))

/* f32; what NVIDIA approximates is exact here */
LANE(add_rn_f32, f32, f32, f32, none, none, a + b)
LANE(add_f32, f32, f32, f32, none, none, a + b)
LANE(sub_rn_f32, f32, f32, f32, none, none, a - b)
LANE(sub_f32, f32, f32, f32, none, none, a - b)
LANE(mul_rn_f32, f32, f32, f32, none, none, a * b)
LANE(mul_f32, f32, f32, f32, none, none, a * b)
LANE(fma_rn_f32, f32, f32, f32, f32, none, fused(a, b, c))
LANE(div_rn_f32, f32, f32, f32, none, none, a / b)
LANE(div_full_f32, f32, f32, f32, none, none, a / b)
LANE(div_approx_f32, f32, f32, f32, none, none, a / b)
LANE(rcp_rn_f32, f32, f32, none, none, none, 1 / a)
LANE(rcp_approx_f32, f32, f32, none, none, none, 1 / a)
LANE(sqrt_rn_f32, f32, f32, none, none, none, sqrtf(a))
LANE(sqrt_approx_f32, f32, f32, none, none, none, sqrtf(a))
LANE(rsqrt_approx_f32, f32, f32, none, none, none, 1 / sqrtf(a))
LANE(ex2_approx_f32, f32, f32, none, none, none, exp2f(a))
LANE(lg2_approx_f32, f32, f32, none, none, none, log2f(a))
LANE(sin_approx_f32, f32, f32, none, none, none, sinf(a))
LANE(cos_approx_f32, f32, f32, none, none, none, cosf(a))
LANE(tanh_approx_f32, f32, f32, none, none, none, tanhf(a))
LANE(min_f32, f32, f32, f32, none, none, least_float(a, b))
LANE(max_f32, f32, f32, f32, none, none, most_float(a, b))
LANE(neg_f32, u32, u32, none, none, none, a ^ 0x80000000u)
LANE(abs_f32, u32, u32, none, none, none, a & 0x7fffffffu)
LANE(copysign_f32, u32, u32, u32, none, none, (a & 0x80000000u) | (b & 0x7fffffffu))

/* f16 */
LANE(add_rn_f16, f16, f16, f16, none, none, a + b)
LANE(add_f16, f16, f16, f16, none, none, a + b)
LANE(sub_rn_f16, f16, f16, f16, none, none, a - b)
LANE(sub_f16, f16, f16, f16, none, none, a - b)
LANE(mul_rn_f16, f16, f16, f16, none, none, a * b)
LANE(mul_f16, f16, f16, f16, none, none, a * b)
LANE(fma_rn_f16, f16, f16, f16, f16, none, (double)a * (double)b + (double)c)
LANE(neg_f16, u16, u16, none, none, none, a ^ 0x8000)
LANE(abs_f16, u16, u16, none, none, none, a & 0x7fff)

/* f64 */
LANE(add_rn_f64, f64, f64, f64, none, none, a + b)
LANE(add_f64, f64, f64, f64, none, none, a + b)
LANE(sub_rn_f64, f64, f64, f64, none, none, a - b)
LANE(sub_f64, f64, f64, f64, none, none, a - b)
LANE(mul_rn_f64, f64, f64, f64, none, none, a * b)
LANE(mul_f64, f64, f64, f64, none, none, a * b)
LANE(fma_rn_f64, f64, f64, f64, f64, none, fma(a, b, c))
LANE(div_rn_f64, f64, f64, f64, none, none, a / b)
LANE(rcp_rn_f64, f64, f64, none, none, none, 1 / a)
LANE(sqrt_rn_f64, f64, f64, none, none, none, sqrt(a))
LANE(min_f64, f64, f64, f64, none, none, fmin(a, b))
LANE(max_f64, f64, f64, f64, none, none, fmax(a, b))
LANE(neg_f64, u64, u64, none, none, none, a ^ UINT64_C(1) << 63)
LANE(abs_f64, u64, u64, none, none, none, a & ~(UINT64_C(1) << 63))
LANE(copysign_f64, u64, u64, u64, none, none, (a & UINT64_C(1) << 63) | (b & ~(UINT64_C(1) << 63)))

/* comparisons */
#define COMPARED(suffix, type) \
    LANE(setp_eq_##suffix, pred, type, type, none, none, a == b) \
    LANE(setp_ne_##suffix, pred, type, type, none, none, a != b) \
    LANE(setp_lt_##suffix, pred, type, type, none, none, a < b) \
    LANE(setp_le_##suffix, pred, type, type, none, none, a <= b) \
    LANE(setp_gt_##suffix, pred, type, type, none, none, a > b) \
    LANE(setp_ge_##suffix, pred, type, type, none, none, a >= b)
#define COMPARED_BITS(suffix, type) \
    LANE(setp_eq_##suffix, pred, type, type, none, none, a == b) \
    LANE(setp_ne_##suffix, pred, type, type, none, none, a != b)
#define COMPARED_FLOATS(suffix, type) \
    LANE(setp_eq_##suffix, pred, type, type, none, none, a == b) \
    LANE(setp_ne_##suffix, pred, type, type, none, none, a < b || a > b) \
    LANE(setp_lt_##suffix, pred, type, type, none, none, a < b) \
    LANE(setp_le_##suffix, pred, type, type, none, none, a <= b) \
    LANE(setp_gt_##suffix, pred, type, type, none, none, a > b) \
    LANE(setp_ge_##suffix, pred, type, type, none, none, a >= b) \
    LANE(setp_equ_##suffix, pred, type, type, none, none, !(a < b || a > b)) \
    LANE(setp_neu_##suffix, pred, type, type, none, none, a != b) \
    LANE(setp_ltu_##suffix, pred, type, type, none, none, !(a >= b)) \
    LANE(setp_leu_##suffix, pred, type, type, none, none, !(a > b)) \
    LANE(setp_gtu_##suffix, pred, type, type, none, none, !(a <= b)) \
    LANE(setp_geu_##suffix, pred, type, type, none, none, !(a < b)) \
    LANE(setp_num_##suffix, pred, type, type, none, none, !isnan(a) && !isnan(b)) \
    LANE(setp_nan_##suffix, pred, type, type, none, none, isnan(a) || isnan(b))
COMPARED(u16, u16)
COMPARED(s16, i16)
COMPARED(u32, u32)
COMPARED(s32, i32)
COMPARED(u64, u64)
COMPARED(s64, i64)
COMPARED_BITS(b16, u16)
COMPARED_BITS(b32, u32)
COMPARED_BITS(b64, u64)
COMPARED_FLOATS(f16, f16)
COMPARED_FLOATS(f32, f32)
COMPARED_FLOATS(f64, f64)

#undef INTEGERS
#undef SUMS
#undef BITS
#undef SELECTED
#undef MOVED
#undef COMPARED
#undef COMPARED_BITS
#undef COMPARED_FLOATS
