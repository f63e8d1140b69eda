/* SPDX-License-Identifier: Apache-2.0 */
/* The operation in f64 on the host, straight from its definition: what tests, `tconv-cl check` and
 * `tconv-cl bench` compare with. It shares nothing with the kernels but the resolved geometry. Not
 * a part of the library. */
#ifndef TCONV_ORACLE_ORACLE_H
#define TCONV_ORACLE_ORACLE_H

#include "tconv_cl/problem.h"

/* What one output element should be, and how far a computation in f32 may be from it. */
struct tconv_expected {
    double value;
    double
        bound; /* largest |got - value| that rounding explains; 0 where the value is exact, infinite where anything may be */
    bool special; /* value is NaN or infinite: got must be NaN, or the same infinity */
};

/* Output element `index` (in the order of the output tensor) of `problem`, computed from f32
 * tensors; `bias` may be NULL.
 *
 * The bound: n products added up in any order in f32, n = taps that reach the element times
 * channels, u = 2^-24: gamma(n + 1) * sum|x*w| for n multiply-adds and their order, with gamma(n) =
 * n*u / (1 - n*u); the bias adds a term and one more rounding; the smallest normal number covers
 * devices that flush subnormals. */
struct tconv_expected tconv_oracle_element(const tconv_problem *problem,
                                           const tconv_geometry *geometry, const float *data,
                                           const float *filter, const float *bias, int64_t index);

/* The same for a plan whose tconv_plan_error_factor is `factor`. Above 1, the bound is
 *   factor * gamma(C + 20 axes) * sum over ci of max|x| * sum|w|,
 * C input channels of a group; the maximum over the inputs that reach the element and 4 more on each side along axes with
 * more than one tap, the sum over the taps that reach it from inside or outside. Nothing bounds an element of which one of
 * these is not finite. */
struct tconv_expected tconv_oracle_element_of(const tconv_problem *problem,
                                              const tconv_geometry *geometry, const float *data,
                                              const float *filter, const float *bias, int64_t index,
                                              double factor);

/* |got - expected| / bound: at most 1 where got is right. 0 for an exact match, infinite where a
 * special value is missed. */
double tconv_oracle_error(const struct tconv_expected *expected, float got);

#endif
