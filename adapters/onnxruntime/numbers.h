/* SPDX-License-Identifier: Apache-2.0 */
/* One number for each output channel of a layer. */
#ifndef TCONV_ONNXRUNTIME_NUMBERS_H
#define TCONV_ONNXRUNTIME_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

/* Channel c has many[c % count] or, if `many` is NULL, `one`. A graph may claim any number of
 * channels, so there are only as many numbers as one of its constants has. */
struct numbers {
    double one;
    double *many;
    int64_t count; /* of many */
};

/* Makes room for `count` numbers, at least 1, which numbers_set sets. False without memory. */
bool numbers_create(struct numbers *out, int64_t count);
void numbers_release(struct numbers *numbers);

int64_t numbers_count(const struct numbers *numbers);
double numbers_at(const struct numbers *numbers, int64_t channel);
void numbers_set(struct numbers *numbers, int64_t index, double number);

/* True if one of the numbers differs from `number`. */
bool numbers_differ(const struct numbers *numbers, double number);

#endif
