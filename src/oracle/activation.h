/* SPDX-License-Identifier: Apache-2.0 */
/* The activations in double, apart from the kernels, and how far kernels may be off. */
#ifndef TCONV_ORACLE_ACTIVATION_H
#define TCONV_ORACLE_ACTIVATION_H

#include "tconv_cl/epilogue.h"

/* An activation with its numbers. */
struct tconv_function {
    tconv_activation activation;
    double a, b, slope, slope2;
};

struct tconv_formula {
    double (*value)(const struct tconv_function *f, double x);
    double turn;      /* where it turns from falling to rising; any value if it is monotonic */
    double roundings; /* of the value */
    double inner;     /* roundings of the argument, on its way to exp, erfc or sin */
    /* The most that the value moves if the argument is off by up to `reach`; NULL: it turns at most
     * once. */
    double (*moved)(const struct tconv_function *f, double reach);
};

/* Of an activation of the enumeration. */
const struct tconv_formula *tconv_formula_of(tconv_activation activation);

#endif
