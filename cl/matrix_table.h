/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix algorithm's own part of its table; folded_table.h has the part before. Read by the
 * host (C) and by the kernels (OpenCL C). */

#ifndef __OPENCL_VERSION__ /* for kernels the host puts folded_table.h in front */
#include "folded_table.h"
#endif

enum {
    MATRIX_PLACES_Z = FOLDED_NUMBERS, /* outputs of one phase along each axis */
    MATRIX_PLACES_Y,
    MATRIX_PLACES_X,
    MATRIX_CLASSES_AT,  /* a kind for each phase (tz, ty, tx) of outputs, as in folded_table.h */
    MATRIX_TAP_LIST_AT, /* their taps */
    MATRIX_LONGS
};

/* A tap of a class: its place in the packed filter, and the distance from a place to the input that
 * it reads. */
enum { PAIR_TAP, PAIR_Z, PAIR_Y, PAIR_X, PAIR_LONGS };
