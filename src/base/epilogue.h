/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors that an epilogue may have. */
#ifndef TCONV_BASE_EPILOGUE_H
#define TCONV_BASE_EPILOGUE_H

#include "tconv_cl/epilogue.h"

enum tconv_epilogue_tensor {
    TCONV_EPILOGUE_BIAS,
    TCONV_EPILOGUE_SCALE,
    TCONV_EPILOGUE_SLOPE,
    TCONV_EPILOGUE_RESIDUAL
};

bool tconv_epilogue_has(const tconv_epilogue *epilogue, enum tconv_epilogue_tensor tensor);

/* Checks that a tensor of the caller's `structure` is given if the epilogue of its options has it,
 * and not otherwise. */
tconv_status tconv_epilogue_check_given(const tconv_epilogue *epilogue,
                                        enum tconv_epilogue_tensor tensor, bool given,
                                        const char *structure, tconv_error *error);

#endif
