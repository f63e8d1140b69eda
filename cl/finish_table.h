/* SPDX-License-Identifier: Apache-2.0 */
/* How every table begins: the numbers that finish a sum, in longs; read by the host (C) and by the kernels
 * (OpenCL C). The first four are the bits of a double where results are doubles, else those of a float. */

#ifndef TCONV_FINISH_TABLE_H
#define TCONV_FINISH_TABLE_H

enum {
    FINISH_ALPHA, /* the factor of the sum */
    FINISH_BETA,  /* the factor of what the output was before */
    FINISH_A,     /* the numbers of the activation */
    FINISH_B,
    FINISH_DATA_ZERO, /* integers: the zero points */
    FINISH_FILTER_ZERO,
    FINISH_OUTPUT_ZERO,
    FINISH_LONGS
};

#endif
