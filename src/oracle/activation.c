/* SPDX-License-Identifier: Apache-2.0 */
/* The formulas of the activations: one for each row of common/activation_list.h. */
#include "oracle/activation.h"

#include "common/activation_list.h"

#include <math.h>
#include <stddef.h>

/* In forms that neither cancel nor overflow: -infinity has a value only where the documents give
 * one. Of roundings OpenCL allows erfc 32, all others less. */
#define FORMULA(name, turn, roundings, inner, result)                                              \
    FORMULA_THAT_MOVES(name, turn, roundings, inner, NULL, result)
#define FORMULA_THAT_MOVES(name, turn, roundings, inner, moved, result)                            \
    static double value_of_##name(const struct tconv_function *f, double x)                        \
    {                                                                                              \
        (void)f;                                                                                   \
        return result;                                                                             \
    }                                                                                              \
    static const struct tconv_formula formula_of_##name = {value_of_##name, turn, roundings,       \
                                                           inner, moved};

/* It turns twice in each period if the slopes differ: the sine's square moves by at most |slope|
 * times the argument's error, and by 1. */
static double moved_snakebeta(const struct tconv_function *f, double reach)
{
    if (f->slope2 == 0) return reach;
    return reach + fmin(fabs(f->slope) * reach, 1) / fabs(f->slope2);
}

/* Of snake: infinite arguments count as 0; a NaN stays one. */
static double sine(double slope, double x)
{
    if (isnan(slope)) return slope;
    return isinf(x) || isinf(slope) ? 0 : sin(slope * x);
}

/* clang-format off */
FORMULA(none, 0, 0, 0, x)
FORMULA(relu, 0, 0, 0, x < 0 ? 0 : x)
FORMULA(relu6, 0, 0, 0, x < 0 ? 0 : x > 6 ? 6 : x)
FORMULA(clamp, 0, 0, 0, x < f->a ? f->a : x > f->b ? f->b : x)
FORMULA(leaky_relu, 0, 2, 0, x < 0 ? f->a * x : x) /* it turns at 0 if a is negative */
FORMULA(prelu, 0, 2, 0, x < 0 ? f->slope * x : x)
FORMULA(sigmoid, 0, 64, 0, 1 / (1 + exp(-x)))
FORMULA(tanh, 0, 64, 0, tanh(x))
FORMULA(gelu, -0.75179152469356446, 64, 8, x / 2 * erfc(-x * sqrt(0.5)))
FORMULA(gelu_tanh, -0.75246142207101626, 64, 8,
        x / (1 + exp(-2 * sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x))))
FORMULA(silu, -1.2784645427610738, 64, 0, x / (1 + exp(-x)))
FORMULA(elu, 0, 64, 0, x < 0 ? f->a * expm1(x) : x)
FORMULA(snake, 0, 64, 8,
        f->slope == 0 ? x : x + pow(sine(f->slope, x), 2) / f->slope)
FORMULA(hardswish, -1.5, 64, 0, x < -3 ? 0 : x > 3 ? x : x * (x + 3) / 6)
FORMULA(mish, -1.1924312145154952, 64, 0, x * tanh(log1p(exp(x))))
/* where x and the other part cancel, 64 roundings of the argument are those of both */
FORMULA_THAT_MOVES(snakebeta, 0, 64, 64, moved_snakebeta,
        f->slope2 == 0 ? x : x + pow(sine(f->slope, x), 2) / f->slope2)
/* clang-format on */

#define FORMULA_OF_ROW(NAME, number, name, parameters, slopes, heavy) &formula_of_##name,
static const struct tconv_formula *const formulas[] = {ACTIVATIONS(FORMULA_OF_ROW)};

const struct tconv_formula *tconv_formula_of(tconv_activation activation)
{
    return formulas[activation];
}
