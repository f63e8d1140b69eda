/* SPDX-License-Identifier: Apache-2.0 */
#include "base/number.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

/* The calling thread's locale gets a decimal point; (locale_t)0: it stays, for lack of memory. */
struct change {
    locale_t point, before;
};

static struct change begin(void)
{
    struct change change = {newlocale(LC_NUMERIC_MASK, "C", (locale_t)0), (locale_t)0};
    if (change.point != (locale_t)0) change.before = uselocale(change.point);
    return change;
}

static void end_change(const struct change *change)
{
    if (change->point == (locale_t)0) return;
    uselocale(change->before);
    freelocale(change->point);
}

double tconv_number_read(const char *text, char **end)
{
    const struct change change = begin();
    const double value = strtod(text, end);
    end_change(&change);
    return value;
}

const char *tconv_number_write(double value, char *text, size_t size)
{
    const struct change change = begin();
    snprintf(text, size, "%.6g", value);
    end_change(&change);
    return text;
}
