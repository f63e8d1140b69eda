/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the percentage and the seed, and draws cases. */
#include "percent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SHORT_RUN = 2 };

static int number_of(const char *variable, int otherwise)
{
    const char *text = getenv(variable);
    if (text == NULL || text[0] == '\0') return otherwise;
    char *end;
    const long value = strtol(text, &end, 10);
    if (*end != '\0' || value < 0 || value > 1000000)
        fail_msg("%s is \"%s\": it must be a number from 0 to 1000000", variable, text);
    return (int)value;
}

static int sample_percent(void)
{
    return number_of("TCONV_CL_TEST_PERCENT", SHORT_RUN);
}

bool sample_is_whole(void)
{
    return sample_percent() >= 100;
}

bool sample_is_least(void)
{
    return sample_percent() == 0;
}

unsigned sample_seed(void)
{
    return (unsigned)number_of("TCONV_CL_TEST_SEED", 1);
}

bool drawn(unsigned number)
{
    unsigned x = number * 2654435761u ^ sample_seed() * 2246822519u;
    x = (x ^ x >> 15) * 2246822519u;
    x = (x ^ x >> 13) * 3266489917u;
    return (x ^ x >> 16) % 100 < (unsigned)sample_percent();
}

int scaled(int usual)
{
    const long part = (long)usual * sample_percent() / 100;
    return part < 1 ? 1 : (int)part;
}
