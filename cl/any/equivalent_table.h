/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers for equivalent.cl, in longs, behind an algorithm's own table; read by the host (C) and by
 * the kernel (OpenCL C). */
#ifndef TCONV_EQUIVALENT_TABLE_H
#define TCONV_EQUIVALENT_TABLE_H

enum {
    EQUIVALENT_ELEMENTS,
    EQUIVALENT_OUT_CHANNELS, /* of one group */
    EQUIVALENT_IN_CHANNELS,
    EQUIVALENT_OUT_STEP, /* of the convolution's filter */
    EQUIVALENT_IN_STEP,
    EQUIVALENT_GROUP_STEP,
    EQUIVALENT_AXES /* the axes begin here */
};

/* An axis. */
enum {
    EQUIVALENT_TAPS,
    EQUIVALENT_FACTOR,
    EQUIVALENT_DILATION,
    EQUIVALENT_KERNEL,     /* taps of the convolution */
    EQUIVALENT_STEP,       /* between them */
    EQUIVALENT_PHASE_STEP, /* between phases; 0: all have one filter */
    EQUIVALENT_LONGS
};

#endif
