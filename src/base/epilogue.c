/* SPDX-License-Identifier: Apache-2.0 */
/* Which tensors an epilogue has, and of which types. */
#include "base/epilogue.h"

#include "base/error.h"
#include "base/number.h"

const char *tconv_epilogue_name(enum tconv_epilogue_tensor tensor)
{
    static const char *const names[] = {"bias", "scale", "slope", "slope2", "residual"};
    return names[tensor];
}

bool tconv_epilogue_has(const tconv_epilogue *epilogue, enum tconv_epilogue_tensor tensor)
{
    switch (tensor) {
    case TCONV_EPILOGUE_BIAS: return epilogue->bias;
    case TCONV_EPILOGUE_SCALE: return epilogue->scale;
    case TCONV_EPILOGUE_SLOPE: return tconv_activation_has_slope(epilogue->activation);
    case TCONV_EPILOGUE_SLOPE2: return tconv_activation_slope_count(epilogue->activation) > 1;
    case TCONV_EPILOGUE_RESIDUAL: return epilogue->residual;
    }
    return false;
}

static void add_number(struct tconv_text *text, const char *option, double value, double absent)
{
    if (value != absent) tconv_text_add(text, " --%s %s", option, tconv_number(value, 17).text);
}

void tconv_epilogue_text(const tconv_epilogue *e, struct tconv_text *text)
{
    if (e->bias) tconv_text_add(text, " --with-bias");
    if (e->scale) tconv_text_add(text, " --with-scale");
    if (e->residual) tconv_text_add(text, " --with-residual");
    add_number(text, "alpha", e->alpha, 1);
    add_number(text, "beta", e->beta, 0);
    if (e->requantize) tconv_text_add(text, " --requantize");
    add_number(text, "data-zero-point", e->data_zero_point, 0);
    add_number(text, "filter-zero-point", e->filter_zero_point, 0);
    add_number(text, "output-zero-point", e->output_zero_point, 0);
    if (e->activation == TCONV_ACTIVATION_NONE) return;
    const double numbers[] = {e->a, e->b};
    tconv_text_add(text, " --activation %s", tconv_activation_name(e->activation));
    for (int i = 0; i < tconv_activation_parameter_count(e->activation); i++)
        tconv_text_add(text, "%s%s", i == 0 ? ":" : ",", tconv_number(numbers[i], 17).text);
}

tconv_status tconv_epilogue_check_given(const tconv_epilogue *epilogue,
                                        enum tconv_epilogue_tensor tensor, bool given,
                                        const char *structure, tconv_error *error)
{
    const char *const name = tconv_epilogue_name(tensor);
    if (given == tconv_epilogue_has(epilogue, tensor)) return TCONV_OK;
    const bool is_slope = /* an activation has it */
        tensor == TCONV_EPILOGUE_SLOPE || tensor == TCONV_EPILOGUE_SLOPE2;
    return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                      "%s.%s is %s, but options.epilogue.%s is %s: change one of them", structure,
                      name, given ? "given" : "absent", is_slope ? "activation" : name,
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

tconv_type tconv_epilogue_type(const tconv_epilogue *epilogue, enum tconv_epilogue_tensor tensor,
                               tconv_type data_type, tconv_type output_type)
{
    switch (tensor) {
    case TCONV_EPILOGUE_BIAS: return tconv_bias_type(epilogue, output_type);
    case TCONV_EPILOGUE_SCALE:
    case TCONV_EPILOGUE_SLOPE:
    case TCONV_EPILOGUE_SLOPE2: return tconv_scale_type(data_type);
    case TCONV_EPILOGUE_RESIDUAL: return output_type;
    }
    return TCONV_TYPE_DEFAULT;
}

uint64_t tconv_epilogue_bytes(const tconv_epilogue *epilogue, enum tconv_epilogue_tensor tensor,
                              tconv_type data_type, const tconv_geometry *g)
{
    if (tensor == TCONV_EPILOGUE_RESIDUAL) return g->residual_bytes;
    return (uint64_t)g->epilogue_channels *
           tconv_type_size(tconv_epilogue_type(epilogue, tensor, data_type, g->output_type));
}
