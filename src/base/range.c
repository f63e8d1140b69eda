/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a value is in the legal range of its member. */
#include "base/range.h"

#include "base/error.h"

tconv_status tconv_range_check(const char *member, const char *axis, int index, int64_t value,
                               int64_t least, int64_t most, tconv_error *error)
{
    if (value >= least && value <= most) return TCONV_OK;
    char where[40] = "", range[TCONV_RANGE_TEXT];
    if (axis != NULL) snprintf(where, sizeof where, " at %s %d", axis, index);
    tconv_range_text(least, most, range);
    return tconv_fail(error, TCONV_ERROR_ATTRIBUTE, "%s is %" PRId64 "%s: it must be %s", member,
                      value, where, range);
}
