/* SPDX-License-Identifier: Apache-2.0 */
/* The activations: a row for each, read by the host (C) and by the kernels (OpenCL C). Names, the
 * tool's help and messages, checks and tests follow from the rows. A new activation takes a row,
 * its enumerator in tconv_cl/epilogue.h, and its formula in common/epilogue.clh and in
 * src/oracle/activation.c; `sh scripts/toy_activation.sh` adds one.
 *
 *   A(NAME, number, name, parameters, slopes, heavy)
 *
 *   NAME         of the enumerator: TCONV_ACTIVATION_NAME
 *   number       its value, which never changes: 0, 1, 2 and so on
 *   name         as the tool and Python spell it
 *   parameters   how many of the numbers a and b it takes: 0, 1, 2
 *   slopes       how many numbers it takes for each output channel: 0, 1, 2
 *   heavy        1: it calls exp, tanh, erf or sin, so that it should not be written out for many
 *                sums */
#ifndef TCONV_ACTIVATION_LIST_H
#define TCONV_ACTIVATION_LIST_H

/* clang-format off */
#define ACTIVATIONS_BUT_NONE(A)            \
    A(RELU,        1, relu,       0, 0, 0) \
    A(RELU6,       2, relu6,      0, 0, 0) \
    A(LEAKY_RELU,  3, leaky_relu, 1, 0, 0) \
    A(PRELU,       4, prelu,      0, 1, 0) \
    A(CLAMP,       5, clamp,      2, 0, 0) \
    A(SIGMOID,     6, sigmoid,    0, 0, 1) \
    A(TANH,        7, tanh,       0, 0, 1) \
    A(GELU,        8, gelu,       0, 0, 1) \
    A(GELU_TANH,   9, gelu_tanh,  0, 0, 1) \
    A(SILU,       10, silu,       0, 0, 1) \
    A(ELU,        11, elu,        1, 0, 1) \
    A(SNAKE,      12, snake,      0, 1, 1) \
    A(HARDSWISH,  13, hardswish,  0, 0, 0) \
    A(MISH,       14, mish,       0, 0, 1) \
    A(SNAKEBETA,  15, snakebeta,  0, 2, 1)

#define ACTIVATIONS(A)                     \
    A(NONE,        0, none,       0, 0, 0) \
    ACTIVATIONS_BUT_NONE(A)
/* clang-format on */

#define ACTIVATION_PLUS_ONE(NAME, number, name, parameters, slopes, heavy) +1
#define ACTIVATION_COUNT (0 ACTIVATIONS(ACTIVATION_PLUS_ONE))

#endif
