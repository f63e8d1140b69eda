/* SPDX-License-Identifier: Apache-2.0 */
/* Who owns what in the C++ header, which the compiler checks: handles are moved and never copied,
 * and a layer is not made on a session that ends before it. */
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

static_assert(is_an_owner<tconv::session>(), "session");
static_assert(begins_empty<tconv::session_layer>(), "session_layer");
static_assert(begins_empty<tconv::device>(), "device");
static_assert(begins_empty<tconv::plan>(), "plan");
static_assert(begins_empty<tconv::recording>(), "recording");
static_assert(begins_empty<tconv::packed_filter>(), "packed_filter");
static_assert(begins_empty<tconv::device_layer>(), "device_layer");
static_assert(begins_empty<tconv::layer_recording>(), "layer_recording");

/* A session without arguments opens a device, which may throw. */
static_assert(!std::is_nothrow_default_constructible<tconv::session>::value, "session()");
static_assert(std::is_nothrow_constructible<tconv::session, std::nullptr_t>::value, "nullptr");
static_assert(std::is_constructible<tconv::session, int>::value, "a device's number");
static_assert(sizeof(tconv::session(0u)) == sizeof(tconv::session(0L)), "numbers of other types");

static_assert(std::is_constructible<tconv::session_layer, tconv::session &>::value, "layer");
static_assert(std::is_constructible<tconv::session_layer, const tconv::session &, bool>::value,
              "layer");
static_assert(!std::is_constructible<tconv::session_layer, tconv::session>::value, "temporary");
static_assert(!std::is_constructible<tconv::session_layer, tconv::session, bool>::value,
              "temporary");
