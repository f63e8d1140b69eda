/* SPDX-License-Identifier: Apache-2.0 */
/* What the public headers say of layouts and values, as a table; abi_layout.c is compiled once with
 * the headers of the first release and once with today's. */
#ifndef TCONV_HOST_TESTS_ABI_LAYOUT_H
#define TCONV_HOST_TESTS_ABI_LAYOUT_H

#include <stddef.h>

struct abi_entry {
    const char *name;
    enum { ABI_MEMBER, ABI_GROWING, ABI_FIXED, ABI_VALUE } kind;
    size_t
        place;   /* a member's offset, where the last member of a growing structure ends, a value */
    size_t size; /* of a member or structure */
};

/* An entry without name ends them. */
extern const struct abi_entry first_release[], today[];

#endif
