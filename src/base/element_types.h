/* SPDX-License-Identifier: Apache-2.0 */
/* The element types: a row for each, and what follows from the rows. Code for i8 and u8 must ask
 * tconv_type_is_byte, not for a size of one byte, because another type may have this size. */
#ifndef TCONV_ELEMENT_TYPES_H
#define TCONV_ELEMENT_TYPES_H

#include "tconv_cl/problem.h"

/*   T(NAME, number, name, bytes, kind)
 *
 *   NAME     of the enumerator: TCONV_NAME
 *   number   its value, which never changes: 1, 2, 3 and so on
 *   name     as the tool, Python and cl/common/types.clh spell it
 *   bytes    of one element
 *   kind     FLOATING, SIGNED or UNSIGNED */
#define TCONV_ELEMENT_TYPES(T)                                                                     \
    T(F32, 1, f32, 4, FLOATING)                                                                    \
    T(F16, 2, f16, 2, FLOATING)                                                                    \
    T(BF16, 3, bf16, 2, FLOATING)                                                                  \
    T(F64, 4, f64, 8, FLOATING)                                                                    \
    T(I8, 5, i8, 1, SIGNED)                                                                        \
    T(I16, 6, i16, 2, SIGNED)                                                                      \
    T(I32, 7, i32, 4, SIGNED)                                                                      \
    T(I64, 8, i64, 8, SIGNED)                                                                      \
    T(U8, 9, u8, 1, UNSIGNED)                                                                      \
    T(U16, 10, u16, 2, UNSIGNED)                                                                   \
    T(U32, 11, u32, 4, UNSIGNED)                                                                   \
    T(U64, 12, u64, 8, UNSIGNED)

enum tconv_type_kind {
    TCONV_KIND_NONE,
    TCONV_KIND_FLOATING,
    TCONV_KIND_SIGNED,
    TCONV_KIND_UNSIGNED
};

/* TCONV_KIND_NONE if `type` is not an element type. */
static inline enum tconv_type_kind tconv_type_kind(tconv_type type)
{
    switch (type) {
#define TCONV_KIND_OF(NAME, number, name, bytes, kind)                                             \
    case TCONV_##NAME: return TCONV_KIND_##kind;
        TCONV_ELEMENT_TYPES(TCONV_KIND_OF)
#undef TCONV_KIND_OF
    case TCONV_TYPE_DEFAULT: break;
    }
    return TCONV_KIND_NONE;
}

static inline bool tconv_type_is_integer(tconv_type type)
{
    const enum tconv_type_kind kind = tconv_type_kind(type);
    return kind == TCONV_KIND_SIGNED || kind == TCONV_KIND_UNSIGNED;
}

static inline bool tconv_type_is_signed(tconv_type type)
{
    return tconv_type_kind(type) == TCONV_KIND_SIGNED;
}

/* True for i8 and u8. */
static inline bool tconv_type_is_byte(tconv_type type)
{
    return tconv_type_is_integer(type) && tconv_type_size(type) == 1;
}

/* What weights are multiplied as. A filter of f16 or bf16 beside data of f32 becomes f32 when it is
 * packed or read; every other one keeps its type. */
static inline tconv_type tconv_weight_type(tconv_type data, tconv_type filter)
{
    return tconv_type_kind(data) == TCONV_KIND_FLOATING ? data : filter;
}

/* The range of i8 and u8. */
static inline int32_t tconv_byte_least(tconv_type type)
{
    return tconv_type_is_signed(type) ? -128 : 0;
}

static inline int32_t tconv_byte_most(tconv_type type)
{
    return tconv_type_is_signed(type) ? 127 : 255;
}

#endif
