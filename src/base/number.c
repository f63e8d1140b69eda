/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes numbers in the "C" locale, whatever the application's locale is. */
#include "base/number.h"

#include "base/os.h"

#include <stdlib.h>

double tconv_number_read(const char *text, char **end)
{
    struct tconv_os_locale locale = tconv_os_locale_begin();
    const double value = strtod(text, end);
    tconv_os_locale_end(&locale);
    return value;
}

const char *tconv_number_write(double value, char *text, size_t size)
{
    struct tconv_os_locale locale = tconv_os_locale_begin();
    snprintf(text, size, "%.6g", value);
    tconv_os_locale_end(&locale);
    return text;
}
