/* SPDX-License-Identifier: Apache-2.0 */
/* Reads constants of a graph as numbers. */
#ifndef TCONV_ONNXRUNTIME_CONSTANT_H
#define TCONV_ONNXRUNTIME_CONSTANT_H

#include "node.h"

/* A constant of any type of type_of except bfloat16. The graph owns its data. */
struct constant {
    const void *data;
    tconv_type type;
    tconv_shape shape;
};

/* Reads a constant. False if the value is not a constant, or NULL. */
bool constant_of(const OrtValueInfo *value, struct constant *out);
double element_of(const struct constant *constant, int64_t index);

/* The number of its elements. */
int64_t elements_of(const struct constant *constant);

/* Reads all elements, in order. False without memory, or if there are none. */
bool numbers_of(const struct constant *constant, struct numbers *out);

bool is_one_number(const tconv_shape *shape);

/* Reads a constant of one element. */
bool number_in(const OrtValueInfo *value, double *out);

#endif
