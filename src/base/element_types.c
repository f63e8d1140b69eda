/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and kinds of the element types, from their rows. */
#include "base/element_types.h"

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
