/* SPDX-License-Identifier: Apache-2.0 */
/* The fused epilogue: the operations on a sum before it is stored. Needs no OpenCL header. Every
 * function here may be called from any thread. */
#ifndef TCONV_CL_EPILOGUE_H
#define TCONV_CL_EPILOGUE_H

#include "problem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The activations of a value x. slope[c] and slope2[c] are one number each for each output channel.
 *
 * NaN stays NaN. gelu, gelu_tanh, silu and mish give NaN for -infinity and -0 for large negative
 * finite x; hardswish gives 0 for both. The formulas except snakebeta's are computed in forms
 * without cancellation: docs/semantics.md. Values of the enumerators are fixed. */
typedef enum tconv_activation {
    TCONV_ACTIVATION_NONE = 0,       /* x */
    TCONV_ACTIVATION_RELU = 1,       /* max(x, 0) */
    TCONV_ACTIVATION_RELU6 = 2,      /* min(max(x, 0), 6) */
    TCONV_ACTIVATION_LEAKY_RELU = 3, /* x, for x < 0 a*x */
    TCONV_ACTIVATION_PRELU = 4,      /* x, for x < 0 slope[c]*x */
    TCONV_ACTIVATION_CLAMP = 5,      /* min(max(x, a), b) */
    TCONV_ACTIVATION_SIGMOID = 6,    /* 1 / (1 + exp(-x)) */
    TCONV_ACTIVATION_TANH = 7,       /* tanh(x) */
    TCONV_ACTIVATION_GELU = 8,       /* x/2 * (1 + erf(x / sqrt 2)) */
    TCONV_ACTIVATION_GELU_TANH = 9,  /* x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) */
    TCONV_ACTIVATION_SILU = 10,      /* x / (1 + exp(-x)) */
    TCONV_ACTIVATION_ELU = 11,       /* x, for x < 0 a*(exp(x) - 1) */
    TCONV_ACTIVATION_SNAKE = 12,     /* x + sin(slope[c]*x)^2 / slope[c]; x if slope[c] = 0, or if
                                        |slope[c]*x| >= 2^22 (f64: 2^51) */
    TCONV_ACTIVATION_HARDSWISH = 13, /* x * min(max(x + 3, 0), 6) / 6 */
    TCONV_ACTIVATION_MISH = 14,      /* x * tanh(log(1 + exp(x))) */
    TCONV_ACTIVATION_SNAKEBETA = 15  /* x + sin(slope[c]*x)^2 / slope2[c]; x if slope2[c] = 0, or if
                                        |slope[c]*x| >= 2^22 (f64: 2^51) */
} tconv_activation;

/* The epilogue. With `sum` from the formula at tconv_resolve and c the output channel,
 *
 *   output = activation(alpha * sum * scale[c] + bias[c] + beta * (old output) + residual)
 *
 * computed in f32 for f32, f16 and bf16, in f64 for f64, and rounded once, to the output's type.
 * Outputs that no tap reaches have the sum 0. With pixel shuffle, c is the convolution's channel,
 * before the shuffle.
 *
 * Integers may have bias and residual, which wrap as the sums do. With `requantize` (data i8 or u8,
 * output i8 or u8) the formula is computed in f32 from the exact i32 sum, and
 *
 *   output = saturate(round to nearest even(value) + output_zero_point)
 *
 * where the sum adds up (data - data_zero_point) * (filter - filter_zero_point); padding counts as
 * the zero point. The zero points of data and filter may also be given if the output is i32, which
 * is then the exact sum.
 *
 * Types of its tensors: the residual's is the output's; the bias's is the output's, with
 * `requantize` f32; scale and slopes are f32, for f64 data f64. Start from TCONV_EPILOGUE_INIT,
 * which changes nothing.
 *
 * This structure is a member of others, so it never grows: later versions turn parts of `reserved`
 * into members, with 0 as their default. */
typedef struct tconv_epilogue {
    bool bias;                   /* one number for each output channel, of all groups */
    bool scale;                  /* one factor for each output channel, of all groups */
    bool residual;               /* a tensor like the output */
    bool requantize;             /* i8 or u8 from exact sums: the formula above */
    tconv_activation activation; /* applied last, before the output is stored */
    double alpha;                /* factor of the sum; 1 by default */
    double beta;                 /* factor of the old output; 0: it is not read */
    double a;                    /* first parameter of the activation; 0 if it has none */
    double b;                    /* second parameter of the activation; 0 if it has none */
    int32_t data_zero_point;     /* the data's element that means 0 */
    int32_t filter_zero_point;   /* the filter's element that means 0 */
    int32_t output_zero_point;   /* the output's element that means 0; with `requantize` only */
    uint32_t reserved[13];       /* 0; else TCONV_ERROR_UNSUPPORTED */
} tconv_epilogue;

#define TCONV_EPILOGUE_INIT                                                                        \
    {                                                                                              \
        false, false, false, false, TCONV_ACTIVATION_NONE, 1, 0, 0, 0, 0, 0, 0,                    \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

/* The element types of an epilogue's tensors: of bias, for an output type (with `epilogue` NULL,
 * that of TCONV_EPILOGUE_INIT); of scale and slopes, for a data type. */
TCONV_API tconv_type tconv_bias_type(const tconv_epilogue *epilogue, tconv_type output_type);
TCONV_API tconv_type tconv_scale_type(tconv_type data_type);

/* The enumerator's name as the tool spells it: none, leaky_relu; "?" for an unknown value.
 * tconv_activation_from_name is the inverse, in any letter case; it returns false for an unknown
 * name, and leaves *value as it is. */
TCONV_API const char *tconv_activation_name(tconv_activation activation);
TCONV_API bool tconv_activation_from_name(const char *name, tconv_activation *value);

/* How many of the parameters a and b the activation uses, whether it has a slope for each channel,
 * and how many: 2 are `slope` and `slope2`. */
TCONV_API int tconv_activation_parameter_count(tconv_activation activation);
TCONV_API bool tconv_activation_has_slope(tconv_activation activation);
TCONV_API int tconv_activation_slope_count(tconv_activation activation);

#ifdef __cplusplus
}
#endif

#endif
