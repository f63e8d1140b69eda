/* SPDX-License-Identifier: Apache-2.0 */
/* How every table begins: the parameters of the epilogue, in longs; read by the host (C) and by the
 * kernels (OpenCL C). The first four are the bits of a double where results are doubles, else those
 * of a float. */

#ifndef TCONV_EPILOGUE_TABLE_H
#define TCONV_EPILOGUE_TABLE_H

enum {
    EPILOGUE_ALPHA, /* the factor of the sum */
    EPILOGUE_BETA,  /* the factor of what the output was before */
    EPILOGUE_A,     /* the numbers of the activation */
    EPILOGUE_B,
    EPILOGUE_DATA_ZERO, /* integers: the zero points */
    EPILOGUE_FILTER_ZERO,
    EPILOGUE_OUTPUT_ZERO,
    EPILOGUE_LONGS
};

#endif
