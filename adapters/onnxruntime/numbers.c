/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps one number for each output channel of a layer. */
#include "numbers.h"

#include <stdlib.h>

bool numbers_create(struct numbers *out, int64_t count)
{
    *out = (struct numbers){0};
    if (count == 1) return true;
    out->many = calloc((size_t)count, sizeof *out->many);
    out->count = count;
    return out->many != NULL;
}

void numbers_release(struct numbers *numbers)
{
    free(numbers->many);
    *numbers = (struct numbers){0};
}

int64_t numbers_count(const struct numbers *numbers)
{
    return numbers->many == NULL ? 1 : numbers->count;
}

double numbers_at(const struct numbers *numbers, int64_t channel)
{
    return numbers->many == NULL ? numbers->one : numbers->many[channel % numbers->count];
}

void numbers_set(struct numbers *numbers, int64_t index, double number)
{
    *(numbers->many == NULL ? &numbers->one : &numbers->many[index]) = number;
}

bool numbers_differ(const struct numbers *numbers, double number)
{
    for (int64_t i = 0; i < numbers_count(numbers); i++)
        if (numbers_at(numbers, i) != number) return true;
    return false;
}
