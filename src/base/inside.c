/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps for each thread whether it is inside a callback of tracing. */
#include "base/inside.h"

static _Thread_local bool is_inside;

bool tconv_is_inside(void)
{
    return is_inside;
}

void tconv_set_inside(bool inside)
{
    is_inside = inside;
}
