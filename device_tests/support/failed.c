/* SPDX-License-Identifier: Apache-2.0 */
/* Fails a test with a sentence. */
#include "failed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

void failed(const char *format, ...)
{
    char text[3000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fail_msg("%s", text);
    abort(); /* fail_msg does not return, but does not say so */
}
