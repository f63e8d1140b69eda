/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow by one element at a time. */
#ifndef TCONV_TOOL_ARRAY_H
#define TCONV_TOOL_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Makes room for one more element in an array from malloc, or NULL, of `count` elements of `size`
 * bytes. Capacity is the next power of two, so that n elements are moved 2 n times at most. Returns
 * the array; NULL without memory, and then it is as it was. Call it for each element that is added.
 */
static inline void *array_grow(void *array, size_t count, size_t size)
{
    if ((count & (count - 1)) != 0) return array;
    const size_t room = count == 0 ? 1 : 2 * count;
    return room > SIZE_MAX / size / 2 ? NULL : realloc(array, room * size);
}

#endif
