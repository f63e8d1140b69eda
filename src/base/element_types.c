/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and kinds of the element types, and the types of an epilogue's tensors. */
#include "base/element_types.h"

#include "tconv_cl/epilogue.h"

/* An enumerator without a row does not compile: a switch below lacks its case. */
#pragma GCC diagnostic error "-Wswitch"

/* Nor does a row whose number is not that of its enumerator, or that is out of order. */
#define ASSERT_TYPE(NAME, number, name, bytes, kind)                                               \
    _Static_assert((int)TCONV_##NAME == (number) && (int)TYPE_##NAME + 1 == (number), #NAME);
#define TYPE_PLACE(NAME, number, name, bytes, kind) TYPE_##NAME,
enum { TCONV_ELEMENT_TYPES(TYPE_PLACE) };
TCONV_ELEMENT_TYPES(ASSERT_TYPE)

size_t tconv_type_size(tconv_type type)
{
    switch (type) {
#define BYTES_OF(NAME, number, name, bytes, kind)                                                  \
    case TCONV_##NAME: return bytes;
        TCONV_ELEMENT_TYPES(BYTES_OF)
    case TCONV_TYPE_DEFAULT: break;
    }
    return 0;
}

bool tconv_type_is_floating(tconv_type type)
{
    return tconv_type_kind(type) == TCONV_KIND_FLOATING;
}

tconv_type tconv_bias_type(const tconv_epilogue *epilogue, tconv_type output_type)
{
    return epilogue != NULL && epilogue->requantize ? TCONV_F32 : output_type;
}

tconv_type tconv_scale_type(tconv_type data_type)
{
    return data_type == TCONV_F64 ? TCONV_F64 : TCONV_F32;
}
