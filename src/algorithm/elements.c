/* SPDX-License-Identifier: Apache-2.0 */
/* From a layer's element types and epilogue to what kernels get: the options of cl/common/types.clh
 * and cl/common/epilogue.clh, and the first numbers of every table. */
#include "algorithm/algorithm.h"

#include "base/element_types.h"
#include "common/epilogue_table.h"

#include <stdio.h>
#include <string.h>

/* The accumulator's type. */
static tconv_type acc_type(const struct tconv_loops *loops)
{
    const bool wide = tconv_type_size(loops->data_type) == 8;
    if (tconv_type_is_floating(loops->data_type)) return wide ? TCONV_F64 : TCONV_F32;
    return wide ? TCONV_U64 : TCONV_U32;
}

size_t tconv_acc_bytes(const struct tconv_loops *loops)
{
    return tconv_type_size(acc_type(loops));
}

bool tconv_adds_integers(const struct tconv_loops *loops)
{
    return !tconv_type_is_floating(loops->data_type);
}

tconv_device_info tconv_device_for(const tconv_device_info *device, const struct tconv_loops *loops)
{
    tconv_device_info own = *device;
    if (tconv_acc_bytes(loops) == 8 && own.vector_width > 1) own.vector_width /= 2;
    return own;
}

/* What weights are multiplied as. */
static tconv_type weight_type(const struct tconv_loops *loops)
{
    return tconv_weight_type(loops->data_type, loops->filter_type);
}

/* What the numbers of the epilogue are: f32, f64, or the accumulator. */
static tconv_type result_type(const struct tconv_request *request)
{
    return request->epilogue->requantize ? TCONV_F32 : acc_type(request->loops);
}

/* True if zero points are subtracted before multiplying. */
static bool has_zeros(const tconv_epilogue *epilogue)
{
    return epilogue->data_zero_point != 0 || epilogue->filter_zero_point != 0;
}

/* A filter with a zero point is packed as differences. They need one bit more than the filter's
 * type has. Weights that are multiplied in another type are packed in it. */
static bool is_raw(const struct tconv_request *request, enum tconv_packing packing)
{
    return packing == TCONV_PACK_RAW && !has_zeros(request->epilogue) &&
           weight_type(request->loops) == request->loops->filter_type;
}

static tconv_type packed_type(const struct tconv_request *request, enum tconv_packing packing)
{
    if (packing == TCONV_PACK_QUADS || packing == TCONV_PACK_WORDS ||
        packing == TCONV_PACK_CHANNEL_WORDS)
        return TCONV_U32;
    return is_raw(request, packing) ? request->loops->filter_type : acc_type(request->loops);
}

enum tconv_unit_use tconv_unit_use(const struct tconv_algorithm *algorithm,
                                   const struct tconv_request *request)
{
    switch (algorithm->packing) {
    case TCONV_PACK_SUMMED:
    case TCONV_PACK_RAW:
    case TCONV_PACK_QUADS: break;
    case TCONV_PACK_CHANNEL_WORDS:
        return tconv_dots(request->device, request->loops->data_type) == 0 ? TCONV_USES_NO_UNIT
                                                                           : TCONV_USES_WORDS;
    case TCONV_PACK_WORDS:
        return tconv_uses_matrix_unit(request) ? TCONV_USES_MATRIX : TCONV_USES_NO_UNIT;
    }
    return TCONV_USES_NO_UNIT;
}

int tconv_word_channels(const struct tconv_request *request)
{
    const tconv_type type = request->loops->filter_type;
    const bool quads = tconv_type_is_byte(type) &&
                       (tconv_dots(request->device, type) != 0 ||
                        request->device->matrix_unit == TCONV_MATRIX_PLAIN_QUADS);
    const int32_t none = tconv_type_is_signed(type) ? 0 : 128;
    return quads && request->epilogue->filter_zero_point == none ? 4 : 2;
}

int tconv_dots(const tconv_device_info *device, tconv_type type)
{
    const tconv_matrix_unit unit = device->matrix_unit;
    if (type == TCONV_BF16) return unit == TCONV_MATRIX_X86_AVX512_BF16;
    if (!tconv_type_is_byte(type)) return 0;
    return unit == TCONV_MATRIX_X86_AVX512_VNNI || unit == TCONV_MATRIX_X86_AVX512_BF16 ? 1
           : unit == TCONV_MATRIX_X86_AVX_VNNI                                          ? 2
                                                                                        : 0;
}

size_t tconv_packed_bytes(const struct tconv_request *request, enum tconv_packing packing)
{
    return tconv_type_size(packed_type(request, packing));
}

size_t tconv_arg_unit(const struct tconv_request *request, enum tconv_packing packing,
                      enum tconv_arg arg)
{
    const struct tconv_loops *loops = request->loops;
    switch (arg) {
    case TCONV_ARG_DATA:
    case TCONV_ARG_WORKSPACE: return tconv_type_size(loops->data_type);
    case TCONV_ARG_WEIGHTS: return tconv_type_size(loops->filter_type);
    case TCONV_ARG_EQUIVALENT: return tconv_type_size(weight_type(loops));
    case TCONV_ARG_FILTER: return tconv_packed_bytes(request, packing);
    case TCONV_ARG_FLAGS: return sizeof(uint32_t);
    case TCONV_ARG_BIAS:
        return tconv_type_size(tconv_bias_type(request->epilogue, request->loops->output_type));
    case TCONV_ARG_SCALE:
    case TCONV_ARG_SLOPE:
    case TCONV_ARG_SLOPE2: return tconv_type_size(result_type(request));
    case TCONV_ARG_RESIDUAL:
    case TCONV_ARG_OUTPUT: return tconv_type_size(loops->output_type);
    case TCONV_ARG_NOTHING:
    case TCONV_ARG_TABLE:
    case TCONV_ARG_LOCAL:
    case TCONV_ARG_FIRST:
    case TCONV_ARG_SHARE:
    case TCONV_ARG_DATA_IMAGE:
    case TCONV_ARG_FILTER_IMAGE: break;
    }
    return 1;
}

bool tconv_arg_used(const tconv_epilogue *epilogue, enum tconv_arg arg)
{
    return arg == TCONV_ARG_BIAS       ? epilogue->bias
           : arg == TCONV_ARG_SCALE    ? epilogue->scale
           : arg == TCONV_ARG_SLOPE    ? tconv_activation_has_slope(epilogue->activation)
           : arg == TCONV_ARG_SLOPE2   ? tconv_activation_slope_count(epilogue->activation) > 1
           : arg == TCONV_ARG_RESIDUAL ? epilogue->residual
                                       : true;
}

/* Axes by which a bias, a scale or a slope differs; 0: by channels alone. */
static int phased_axes(const struct tconv_request *request)
{
    const tconv_epilogue *e = request->epilogue;
    const bool any = e->bias || e->scale || tconv_activation_has_slope(e->activation);
    return any ? request->loops->phase_axes : 0;
}

/* PHASED_LAST of cl/common/epilogue.clh. */
static int phased_last(const struct tconv_loops *loops)
{
    enum { MOST = 16 };
    const struct tconv_phase_axis *last = &loops->phase[loops->phase_axes - 1];
    if (last->output_step != 1 || last->period > MOST) return 0;
    return last->period == 0 ? 1 : (int)last->period;
}

static const char *c_name(tconv_type type)
{
    return type == TCONV_F32   ? "float"
           : type == TCONV_F64 ? "double"
           : type == TCONV_U64 ? "ulong"
                               : "uint";
}

tconv_type tconv_source_type(const struct tconv_request *request,
                             const struct tconv_algorithm *algorithm)
{
    const struct tconv_loops *loops = request->loops;
    return loops->equivalent.axes > 0 && !algorithm->packs_given ? weight_type(loops)
                                                                 : loops->filter_type;
}

int tconv_type_options(const struct tconv_request *request, enum tconv_packing packing,
                       tconv_type filter, char *text, size_t size)
{
    const struct tconv_loops *loops = request->loops;
    const tconv_epilogue *e = request->epilogue;
    const tconv_type acc = acc_type(loops);
    /* Not on processors: Intel's compiler for them (2026.2) crashes on vectors of half. */
    const bool halves = loops->data_type == TCONV_F16 && request->device->half_arithmetic &&
                        request->device->kind == TCONV_DEVICE_GPU;
    /* Matrix units multiply packed words. The sums that correct a zero point are computed in plain
     * OpenCL C, and so is everything when a test runs without a unit. */
    const bool words = packing == TCONV_PACK_WORDS && tconv_type_is_byte(loops->data_type);
    const int dot = packing != TCONV_PACK_QUADS            ? words
                    : request->device->integer_dot_product ? 2
                                                           : 1;
    char phased[48] = "";
    if (phased_axes(request) > 0)
        snprintf(phased, sizeof phased, " -DPHASED=%d -DPHASED_LAST=%d", phased_axes(request),
                 phased_last(loops));
    return snprintf(
        text, size,
        "-cl-std=%s -DDATA=%s -DFILTER=%s -DPACKED=%s -DOUTPUT=%s%s -DBIAS_TYPE=%s -DACC=%s "
        "-DRESULT=%s "
        "-DQUANTIZED=%d -DRAW=%d -DUSE_FMA=%d -DBIAS=%d -DSCALE=%d -DALPHA=%d -DBETA=%d "
        "-DRESIDUAL=%d -DACTIVATION_%s=1 -DREQUANTIZED=%d -DDOT=%d%s%s",
        dot == 2 ? "CL3.0" : "CL1.2", /* the extension's functions come with OpenCL C 3.0 */
        tconv_type_name(loops->data_type), tconv_type_name(filter),
        tconv_type_name(packed_type(request, packing)), tconv_type_name(loops->output_type),
        e->requantize ? "_saturated" : "",
        tconv_type_name(tconv_bias_type(request->epilogue, request->loops->output_type)),
        c_name(acc), c_name(result_type(request)), has_zeros(e), is_raw(request, packing),
        request->device->fma && tconv_type_is_floating(acc), e->bias, e->scale, e->alpha != 1,
        e->beta != 0, e->residual ? 1 + loops->residual_axes : 0,
        tconv_activation_name(e->activation), e->requantize, dot, halves ? " -DHALF=1" : "",
        phased);
}

/* The bits of a number in the result's type. */
static int64_t bits_of(double number, tconv_type type)
{
    int64_t bits = 0;
    const float single = (float)number;
    if (type == TCONV_F64)
        memcpy(&bits, &number, sizeof number);
    else {
        int32_t own;
        memcpy(&own, &single, sizeof own);
        bits = own;
    }
    return bits;
}

/* Writes the factor that divides by d, and returns the shift behind it: epilogue_table.h. */
static int64_t write_divisor(int64_t d, int64_t *factor)
{
    int shift = 0;
    while (INT64_C(1) << shift < d) shift++;
    /* 2^(62 + shift) / d, bit by bit. 2^shift is less than 2 d. */
    uint64_t quotient = 0, rest = UINT64_C(1) << shift;
    for (int i = 0; i <= 62; i++) {
        quotient = quotient * 2 + (rest >= (uint64_t)d);
        rest = (rest >= (uint64_t)d ? rest - (uint64_t)d : rest) * 2;
    }
    *factor = (int64_t)(quotient + (rest > 0));
    return shift;
}

static void write_phases(const struct tconv_loops *loops, int64_t *table)
{
    table[EPILOGUE_PHASE_BASE] = loops->phase_base;
    memset(table + EPILOGUE_PHASES, 0, (EPILOGUE_LONGS - EPILOGUE_PHASES) * sizeof *table);
    for (int i = 0; i < loops->phase_axes; i++) {
        const struct tconv_phase_axis *p = &loops->phase[i];
        int64_t *to = table + EPILOGUE_PHASES + i * PHASED_LONGS;
        to[PHASED_STEP] = p->output_step;
        to[PHASED_SHIFTS] = write_divisor(p->output_step, &to[PHASED_STEP_FACTOR]);
        to[PHASED_OUTPUTS] = p->output;
        to[PHASED_PERIOD] = p->period;
        if (p->period > 0)
            to[PHASED_SHIFTS] |= write_divisor(p->period, &to[PHASED_PERIOD_FACTOR]) << 32;
        to[PHASED_FIRST] = p->first;
        to[PHASED_INDEX] = p->index_step;
    }
}

void tconv_write_epilogue(const struct tconv_request *request, int64_t *table)
{
    const tconv_epilogue *e = request->epilogue;
    const tconv_type type = result_type(request);
    table[EPILOGUE_ALPHA] = bits_of(e->alpha, type);
    table[EPILOGUE_BETA] = bits_of(e->beta, type);
    table[EPILOGUE_A] = bits_of(e->a, type);
    table[EPILOGUE_B] = bits_of(e->b, type);
    table[EPILOGUE_DATA_ZERO] = e->data_zero_point;
    table[EPILOGUE_FILTER_ZERO] = e->filter_zero_point;
    table[EPILOGUE_OUTPUT_ZERO] = e->output_zero_point;
    memcpy(table + EPILOGUE_RESIDUAL_STEPS, request->loops->residual_step,
           sizeof request->loops->residual_step);
    write_phases(request->loops, table);
}
