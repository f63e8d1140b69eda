/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps for each thread whether it is inside a callback. */
#include "base/inside.h"

static _Thread_local bool is_inside;

bool tconv_is_inside(void)
{
    return is_inside;
}

bool tconv_enter_callback(void)
{
    const bool was_inside = is_inside;
    is_inside = true;
    return was_inside;
}

void tconv_leave_callback(bool was_inside)
{
    is_inside = was_inside;
}
