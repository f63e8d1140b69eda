/* SPDX-License-Identifier: Apache-2.0 */
/* The legal range of a member of a request (base/members.h), and the sentence about a value outside
 * of it. */
#ifndef TCONV_BASE_RANGE_H
#define TCONV_BASE_RANGE_H

#include "tconv_cl/status.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

enum { TCONV_RANGE_TEXT = 64 };

/* Writes what a value must be: "at least 1", "0 to 1". `most` INT64_MAX: there is no upper limit.
 */
static inline void tconv_range_text(int64_t least, int64_t most, char text[TCONV_RANGE_TEXT])
{
    if (most == INT64_MAX)
        snprintf(text, TCONV_RANGE_TEXT, "at least %" PRId64, least);
    else
        snprintf(text, TCONV_RANGE_TEXT, "%" PRId64 " to %" PRId64, least, most);
}

/* Returns TCONV_ERROR_ATTRIBUTE, with a sentence as "strides is 0 at spatial axis 1: it must be at
 * least 1", if a value is outside of its range. `axis` is what the axes of the member are called;
 * NULL: the member is one number. */
tconv_status tconv_range_check(const char *member, const char *axis, int index, int64_t value,
                               int64_t least, int64_t most, tconv_error *error);

#endif
