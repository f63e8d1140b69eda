/* SPDX-License-Identifier: Apache-2.0 */
/* How a wave fails. */
#include "wave.h"

#include <stdarg.h>
#include <stdio.h>

void wave_fail(struct wave *w, const struct operation *op, const char *format, ...)
{
    char *failed = w->group->memory->failed;
    const size_t size = sizeof w->group->memory->failed;
    w->state = ENDED;
    if (failed[0] != '\0') return;
    const int used =
        snprintf(failed, size, "%s at 0x%llx: ", op->name, (unsigned long long)op->address);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(failed + used, size - (size_t)used, format, arguments);
    va_end(arguments);
}
