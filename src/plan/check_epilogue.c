/* SPDX-License-Identifier: Apache-2.0 */
/* Checks an epilogue against the element types of a problem. */
#include "plan/plan_internal.h"

#include "base/element_types.h"
#include "base/error.h"
#include "base/number.h"
#include "base/steps.h"
#include "common/activation_list.h"
#include "tconv_cl/version.h"

#include <float.h>
#include <inttypes.h>

/* Checks that a zero point is a value of its tensor's type. */
static tconv_status check_zero_point(const char *what, int32_t value, tconv_type type,
                                     tconv_error *error)
{
    const int32_t least = tconv_byte_least(type), most = tconv_byte_most(type);
    if (value == 0 || (tconv_type_is_byte(type) && value >= least && value <= most))
        return TCONV_OK;
    return tconv_type_is_byte(type)
               ? tconv_fail(error, TCONV_ERROR_ARGUMENT, "epilogue.%s is %d: %s has %d to %d", what,
                            (int)value, tconv_type_name(type), (int)least, (int)most)
               : tconv_fail(
                     error, TCONV_ERROR_ARGUMENT,
                     "epilogue.%s is %d, but element type %s has no zero point: i8 and u8 do", what,
                     (int)value, tconv_type_name(type));
}

static tconv_status check_integers(const tconv_epilogue *e, tconv_type type, tconv_error *error)
{
    const char *what = e->alpha != 1                            ? "alpha"
                       : e->beta != 0                           ? "beta"
                       : e->scale                               ? "scale"
                       : e->activation != TCONV_ACTIVATION_NONE ? "activation"
                                                                : NULL;
    if (what == NULL) return TCONV_OK;
    return tconv_fail(
        error, TCONV_ERROR_UNSUPPORTED,
        "epilogue.%s with output type %s: integers take bias and residual only, i8 and u8 "
        "with requantize also alpha, scale and activations",
        what, tconv_type_name(type));
}

static tconv_status check_requantize(const tconv_epilogue *e, tconv_type data, tconv_type output,
                                     tconv_error *error)
{
    if (!tconv_type_is_byte(data) || !tconv_type_is_byte(output))
        return tconv_fail(error, TCONV_ERROR_TYPE,
                          "epilogue.requantize with data %s and output %s: both must be i8 or u8",
                          tconv_type_name(data), tconv_type_name(output));
    if (e->residual || e->beta != 0)
        return tconv_fail(error, TCONV_ERROR_UNSUPPORTED,
                          "epilogue.%s with requantize: quantised outputs are not added to",
                          e->residual ? "residual" : "beta");
    return TCONV_OK;
}

/* Checks that the numbers are finite in the type that computes them. */
static tconv_status check_numbers(const tconv_epilogue *e, tconv_type data, tconv_error *error)
{
    const int used = tconv_activation_parameter_count(e->activation);
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"alpha", e->alpha}, {"beta", e->beta}, {"a", e->a}, {"b", e->b}};
    for (int i = 0; i < 2 + used; i++) {
        const double most = data == TCONV_F64 ? DBL_MAX : (double)FLT_MAX;
        if (!(numbers[i].value >= -most && numbers[i].value <= most))
            return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                              "epilogue.%s is %s, which is not a finite %s", numbers[i].name,
                              tconv_number(numbers[i].value, 6).text,
                              data == TCONV_F64 ? "f64" : "f32");
    }
    for (int i = 2 + used; i < 4; i++)
        if (numbers[i].value != 0)
            return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                              "epilogue.%s is %s, but activation %s does not use it: set it to 0",
                              numbers[i].name, tconv_number(numbers[i].value, 6).text,
                              tconv_activation_name(e->activation));
    if (e->activation == TCONV_ACTIVATION_CLAMP && e->a > e->b)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "epilogue.a is %s and b %s: clamp needs the lower number first",
                          tconv_number(e->a, 6).text, tconv_number(e->b, 6).text);
    return TCONV_OK;
}

tconv_status tconv_check_epilogue(const tconv_problem *problem, const tconv_geometry *geometry,
                                  const tconv_epilogue *e, tconv_error *error)
{
    const tconv_type data = problem->data_type, output = geometry->output_type;
    for (size_t i = 0; i < sizeof e->reserved / sizeof *e->reserved; i++)
        if (e->reserved[i] != 0)
            return tconv_fail(error, TCONV_ERROR_UNSUPPORTED,
                              "epilogue.reserved[%zu] is %" PRIu32
                              ", which version " TCONV_VERSION_STRING
                              " does not know: start from TCONV_EPILOGUE_INIT, or install the "
                              "newer version that the program was built for",
                              i, e->reserved[i]);
    if ((int)e->activation < 0 || (int)e->activation >= ACTIVATION_COUNT)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "epilogue.activation is %d, which is not an activation",
                          (int)e->activation);
    tconv_status status;
    if ((status = tconv_steps_check_residual(problem, e->residual, error)) != TCONV_OK ||
        (status = check_numbers(e, data, error)) != TCONV_OK ||
        (status = check_zero_point("data_zero_point", e->data_zero_point, data, error)) !=
            TCONV_OK ||
        (status = check_zero_point("filter_zero_point", e->filter_zero_point, problem->filter_type,
                                   error)) != TCONV_OK ||
        (status = check_zero_point("output_zero_point", e->output_zero_point, output, error)) !=
            TCONV_OK)
        return status;
    if (e->requantize) return check_requantize(e, data, output, error);
    if (e->output_zero_point != 0)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "epilogue.output_zero_point is %d, but requantize is not set",
                          (int)e->output_zero_point);
    if ((e->data_zero_point != 0 || e->filter_zero_point != 0) && output != TCONV_I32)
        return tconv_fail(
            error, TCONV_ERROR_ARGUMENT,
            "epilogue has a zero point, but the output is %s without requantize: it must be "
            "i32, or requantize must be set",
            tconv_type_name(output));
    return tconv_type_is_floating(output) ? TCONV_OK : check_integers(e, output, error);
}
