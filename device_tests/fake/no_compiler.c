/* SPDX-License-Identifier: Apache-2.0 */
/* compile_watch.h where nothing is compiled. */
#include "compile_watch.h"

void refuse_to_compile(bool refuse)
{
    (void)refuse;
}

bool compiling_was_refused(void)
{
    return false;
}

void report_compiling(void)
{
}
