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
    EPILOGUE_LONGS = EPILOGUE_RESIDUAL_STEPS + 2 * 8
};

#endif
