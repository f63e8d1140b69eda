/* SPDX-License-Identifier: Apache-2.0 */
/* Constants of a graph as numbers. */
#ifndef TCONV_ONNXRUNTIME_CONSTANT_H
#define TCONV_ONNXRUNTIME_CONSTANT_H

#include "node.h"

/* Of any type of type_of but bfloat16. Its data are the graph's. */
struct constant {
    const void *data;
    tconv_type type;
    tconv_shape shape;
};

/* False where the value is none, or NULL. */
bool constant_of(const OrtValueInfo *value, struct constant *out);
double element_of(const struct constant *constant, int64_t index);

bool is_one_number(const tconv_shape *shape);

/* A constant of one element. */
bool number_in(const OrtValueInfo *value, double *out);

#endif
