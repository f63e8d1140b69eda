/* SPDX-License-Identifier: Apache-2.0 */
/* The operation on the host, straight from its definition, in f64 or in exact integers: what tests,
 * `tconv-cl check` and `tconv-cl bench` compare with. It shares nothing with the kernels but the
 * resolved geometry. Not a part of the library. */
#ifndef TCONV_ORACLE_ORACLE_H
#define TCONV_ORACLE_ORACLE_H

#include "tconv_cl/epilogue.h"
#include "tconv_cl/problem.h"

/* What there is to compute: tensors in the problem's types and formats, those of the epilogue where
 * it has them. */
struct tconv_operands {
    const tconv_problem *problem;
    const tconv_geometry *geometry;
    const tconv_epilogue *epilogue;
    double error_factor; /* of the plan; at most 1: exact arithmetic */
    const void *data, *filter, *bias, *scale, *slope, *residual;
    const void *before; /* the output before the run, where beta is not 0 */
};

/* What one output element should be, and how far a computation may be from it. */
struct tconv_expected {
    double value; /* before it is rounded to the output's type */
    double bound; /* largest difference that rounding explains, that to the output's type included;
                     0 where the value is exact, infinite where anything may be */
    double low, high; /* what may be stored, whichever way |got - value| compares with the bound */
    bool special;     /* value is NaN or infinite: got must be NaN, or the same infinity */
    bool exact;       /* integers: got must have these bits */
    uint64_t bits;
};

/* Output element `index`, in the order of the output tensor.
 *
 * The bound: n products added up in any order in the accumulator, n = taps that reach the element
 * times channels, u = 2^-24, for f64 2^-53: gamma(n + 1) * sum|x*w| for n multiply-adds and their
 * order, with gamma(n) = n*u / (1 - n*u). Each step of the epilogue carries the bound on and adds
 * its own roundings. An activation carries it as far as its value moves when its argument moves
 * that far, and adds roundings relative to that value. Small multiples of the smallest normal
 * number cover devices that flush subnormals and what underflows on the way.
 *
 * Where the error factor is above 1, the bound of the sum is
 *   factor * gamma(C + 20 axes) * sum over ci of max|x| * sum|w|,
 * C input channels of a group; the maximum over the inputs that reach the element and 4 more on
 * each side along axes with more than one tap, the sum over the taps that reach it from inside or
 * outside. Nothing bounds an element of which one of these is not finite.
 *
 * Integers are exact modulo 2^bits. Requantised ones are whole numbers that the bound before
 * rounding allows. */
struct tconv_expected tconv_oracle_element(const struct tconv_operands *operands, int64_t index);

/* |got - value| / bound for element `index` of an output of that type: at most 1 where it is right.
 * 0 for an exact match, infinite where a special value is missed or integers differ. */
double tconv_oracle_error(const struct tconv_expected *expected, tconv_type type,
                          const void *output, int64_t index);

/* Element `index` of a tensor as a number (64-bit integers are rounded), and a number as that
 * element, rounded to nearest even or modulo 2^bits. */
double tconv_oracle_read(tconv_type type, const void *tensor, int64_t index);
void tconv_oracle_write(tconv_type type, void *tensor, int64_t index, double value);

#endif
