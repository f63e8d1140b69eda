/* SPDX-License-Identifier: Apache-2.0 */
/* The begin of every table: the parameters of the epilogue, in longs. Read by the host (C) and by
 * the kernels (OpenCL C). The first four are the bits of a double if results are doubles, else of a
 * float. */

#ifndef TCONV_EPILOGUE_TABLE_H
#define TCONV_EPILOGUE_TABLE_H

enum {
    EPILOGUE_ALPHA, /* the factor of the sum */
    EPILOGUE_BETA,  /* the factor of the old output */
    EPILOGUE_A,     /* the numbers of the activation */
    EPILOGUE_B,
    EPILOGUE_DATA_ZERO, /* integers: the zero points */
    EPILOGUE_FILTER_ZERO,
    EPILOGUE_OUTPUT_ZERO,
    EPILOGUE_RESIDUAL_STEPS, /* pairs of steps, of the output and of the residual: RESIDUAL of
                                epilogue.clh */
    EPILOGUE_PHASE_BASE = EPILOGUE_RESIDUAL_STEPS + 2 * 8, /* PHASED of epilogue.clh */
    EPILOGUE_PHASES,                                       /* 8 axes */
    PHASED_STEP = 0,    /* of an axis: neighbours in the output are so far apart */
    PHASED_STEP_FACTOR, /* divides by it: see PHASED_SHIFTS */
    PHASED_OUTPUTS,     /* along the axis */
    PHASED_PERIOD,      /* quotients count modulo this number; 0: as they are */
    PHASED_PERIOD_FACTOR,
    PHASED_FIRST,  /* is added to quotients before */
    PHASED_INDEX,  /* a quotient's factor in the index */
    PHASED_SHIFTS, /* l of both divisors, the period's in the upper half. For 1 <= d < 2^62 l is
                     such that 2^l >= d, and factor = ceil(2^(62 + l) / d): floor(n / d), for 0 <= n
                     < 2^62, is (4 n * factor >> 64) >> l (Granlund and Montgomery, see divisor.h)
                   */
    PHASED_LONGS,
    EPILOGUE_LONGS = EPILOGUE_PHASES + 8 * PHASED_LONGS
};

#endif
