/* SPDX-License-Identifier: Apache-2.0 */
/* Which tensors an epilogue has, and of which types. */
#include "base/epilogue.h"

#include "base/error.h"

bool tconv_epilogue_has(const tconv_epilogue *epilogue, enum tconv_epilogue_tensor tensor)
{
    switch (tensor) {
    case TCONV_EPILOGUE_BIAS: return epilogue->bias;
    case TCONV_EPILOGUE_SCALE: return epilogue->scale;
    case TCONV_EPILOGUE_SLOPE: return tconv_activation_has_slope(epilogue->activation);
    case TCONV_EPILOGUE_RESIDUAL: return epilogue->residual;
    }
    return false;
}

tconv_status tconv_epilogue_check_given(const tconv_epilogue *epilogue,
                                        enum tconv_epilogue_tensor tensor, bool given,
                                        const char *structure, tconv_error *error)
{
    static const char *const names[] = {"bias", "scale", "slope", "residual"};
    if (given == tconv_epilogue_has(epilogue, tensor)) return TCONV_OK;
    const bool is_slope = tensor == TCONV_EPILOGUE_SLOPE; /* an activation has it */
    return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                      "%s.%s is %s, but options.epilogue.%s is %s: change one of them", structure,
                      names[tensor], given ? "given" : "NULL",
                      is_slope ? "activation" : names[tensor],
                      is_slope ? tconv_activation_name(epilogue->activation)
                      : given  ? "false"
                               : "true");
}

tconv_type tconv_bias_type(const tconv_epilogue *epilogue, tconv_type output_type)
{
    return epilogue != NULL && epilogue->requantize ? TCONV_F32 : output_type;
}

tconv_type tconv_scale_type(tconv_type data_type)
{
    return data_type == TCONV_F64 ? TCONV_F64 : TCONV_F32;
}
