/* SPDX-License-Identifier: Apache-2.0 */
/* Who owns what in the C++ header, which the compiler checks: handles are moved and never
 * copied. */
#include "tconv_cl/tconv_cl.hpp"

#include <type_traits>

template <class T> constexpr bool is_an_owner()
{
    return !std::is_copy_constructible<T>::value && !std::is_copy_assignable<T>::value &&
           std::is_nothrow_move_constructible<T>::value &&
           std::is_nothrow_move_assignable<T>::value && sizeof(T) == sizeof(void *);
}

template <class T> constexpr bool begins_empty()
{
    return is_an_owner<T>() && std::is_nothrow_default_constructible<T>::value;
}

static_assert(begins_empty<tconv::device>(), "device");
static_assert(begins_empty<tconv::layer>(), "layer");
static_assert(begins_empty<tconv::plan>(), "plan");
static_assert(begins_empty<tconv::stream>(), "stream");
static_assert(begins_empty<tconv::recording>(), "recording");
static_assert(begins_empty<tconv::packed_filter>(), "packed_filter");
static_assert(begins_empty<tconv::layer_recording>(), "layer_recording");

static_assert(std::is_constructible<tconv::device, int>::value, "a device's number");
static_assert(!std::is_convertible<int, tconv::device>::value, "only if it is asked for");
static_assert(std::is_constructible<tconv::layer, tconv::device>::value,
              "a layer keeps its device");
