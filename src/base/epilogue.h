/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors that an epilogue may have. */
#ifndef TCONV_BASE_EPILOGUE_H
#define TCONV_BASE_EPILOGUE_H

#include "base/text.h"
#include "tconv_cl/epilogue.h"

enum tconv_epilogue_tensor {
    TCONV_EPILOGUE_BIAS,
    TCONV_EPILOGUE_SCALE,
    TCONV_EPILOGUE_SLOPE,
    TCONV_EPILOGUE_SLOPE2,
    TCONV_EPILOGUE_RESIDUAL
};

/* What messages and callers' structures call it: "bias". */
const char *tconv_epilogue_name(enum tconv_epilogue_tensor tensor);

bool tconv_epilogue_has(const tconv_epilogue *epilogue, enum tconv_epilogue_tensor tensor);

/* Its element type. */
tconv_type tconv_epilogue_type(const tconv_epilogue *epilogue, enum tconv_epilogue_tensor tensor,
                               tconv_type data_type, tconv_type output_type);

/* Its bytes, for a resolved problem; of all but the residual: epilogue_channels numbers. */
uint64_t tconv_epilogue_bytes(const tconv_epilogue *epilogue, enum tconv_epilogue_tensor tensor,
                              tconv_type data_type, const tconv_geometry *geometry);

/* Adds the epilogue as options of the tool, each behind a blank: " --with-bias --activation relu".
 */
void tconv_epilogue_text(const tconv_epilogue *epilogue, struct tconv_text *text);

/* Checks that a tensor of the caller's `structure` is given if the epilogue of its options has it,
 * and not otherwise. */
tconv_status tconv_epilogue_check_given(const tconv_epilogue *epilogue,
                                        enum tconv_epilogue_tensor tensor, bool given,
                                        const char *structure, tconv_error *error);

#endif
