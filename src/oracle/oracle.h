/* SPDX-License-Identifier: Apache-2.0 */
/* The oracle: the operation on the host, straight from its definition, in f64 or in exact integers.
 * Tests, `tconv-cl check` and `tconv-cl bench` compare with it. It shares only the resolved
 * geometry with the kernels. Not a part of the library. */
#ifndef TCONV_ORACLE_ORACLE_H
#define TCONV_ORACLE_ORACLE_H

#include "tconv_cl/epilogue.h"
#include "tconv_cl/problem.h"

/* The operands: tensors in the problem's types and formats, and the epilogue's tensors if it has
 * them. */
struct tconv_operands {
    const tconv_problem *problem;
    const tconv_geometry *geometry;
    const tconv_epilogue *epilogue;
    double error_factor; /* the plan's; at most 1: exact arithmetic */
    const void *data, *filter, *bias, *scale, *slope, *slope2, *residual;
    const void *before; /* the output before the run, if beta is not 0 */
};

/* The expected value of one output element, and its error bound. */
struct tconv_expected {
    double value; /* before it is rounded to the output's type */
    double bound; /* largest difference that rounding explains, including rounding to the output's
                     type; 0 if the value is exact, infinite if any value is right */
    double low, high; /* the least and largest value that may be stored, whether or not |got -
                         value| is within the bound */
    bool special;     /* value is NaN or infinite: got must be NaN, or the same infinity */
    bool exact;       /* integers: got must have these bits */
    uint64_t bits;
};

/* Computes output element `index`, counted in the order of the output's axes.
 *
 * The bound of the sum is gamma(n + 1) * sum|x*w|, for n products added up in any order in the
 * accumulator: n = taps that reach the element times channels, gamma(n) = n*u / (1 - n*u), u =
 * 2^-24, or 2^-53 for f64. Each step of the epilogue scales the bound as it scales the value, and
 * adds its own roundings. An activation turns the bound into the distance that its value moves when
 * its argument moves that far, and adds roundings relative to the value. Small multiples of the
 * smallest normal number cover devices that flush subnormals, and underflow on the way.
 *
 * Where the error factor is above 1, the bound of the sum is
 *   factor * gamma(C + 20 axes) * sum over ci of max|x| * sum|w|,
 * for C input channels of a group. max|x| covers the inputs of the element and, along axes with
 * more than one tap, 4 neighbours on each side; sum|w| covers the taps of its phase, inside the
 * data or not. If one of these is not finite, the element has no bound.
 *
 * Integers are exact modulo 2^bits. Requantised integers may be any whole number that the bound
 * before rounding allows. */
struct tconv_expected tconv_oracle_element(const struct tconv_operands *operands, int64_t index);

/* The number of output elements, and where element `index` lies in the output's memory. */
int64_t tconv_oracle_outputs(const struct tconv_operands *operands);
int64_t tconv_oracle_place(const struct tconv_operands *operands, int64_t index);

/* |got - value| / bound for the element at place `index` of an output of this type: at most 1 if
 * the element is right. 0 for an exact match, infinite if a special value is missed or integers
 * differ. */
double tconv_oracle_error(const struct tconv_expected *expected, tconv_type type,
                          const void *output, int64_t index);

/* Element `index` of a tensor as a number (64-bit integers are rounded), and a number as that
 * element, rounded to nearest even or modulo 2^bits. */
double tconv_oracle_read(tconv_type type, const void *tensor, int64_t index);
void tconv_oracle_write(tconv_type type, void *tensor, int64_t index, double value);

#endif
