/* SPDX-License-Identifier: Apache-2.0 */
/* The version of the library, for programs that were compiled with another header. */
#include "tconv_cl/version.h"

int tconv_version_number(void)
{
    return TCONV_VERSION;
}

const char *tconv_version(void)
{
    return TCONV_VERSION_STRING;
}
