/* SPDX-License-Identifier: Apache-2.0 */
/* Reads constants of a graph as numbers. */
#include "constant.h"

#include <CL/cl_half.h>

bool is_one_number(const tconv_shape *shape)
{
    for (int i = 0; i < shape->rank; i++)
        if (shape->dim[i] != 1) return false;
    return true;
}

bool constant_of(const OrtValueInfo *value, struct constant *out)
{
    bool constant = false;
    const OrtValue *tensor = NULL;
    ONNXTensorElementDataType type;
    const int64_t *extents;
    size_t rank;
    if (value == NULL || !succeeded(ort.ValueInfo_IsConstantInitializer(value, &constant), NULL) ||
        !constant || !succeeded(ort.ValueInfo_GetInitializerValue(value, &tensor), NULL) ||
        tensor == NULL ||
        !succeeded(ort.GetTensorElementTypeAndShapeDataReference(tensor, &type, &extents, &rank),
                   NULL) ||
        !succeeded(ort.GetTensorData(tensor, &out->data), NULL) || rank > TCONV_MAX_RANK)
        return false;
    out->type = type_of(type);
    out->shape = (tconv_shape){(int)rank, {0}};
    for (size_t i = 0; i < rank; i++) out->shape.dim[i] = extents[i];
    return out->type != TCONV_TYPE_DEFAULT && out->type != TCONV_BF16;
}

double element_of(const struct constant *constant, int64_t index)
{
    switch ((int)constant->type) {
    case TCONV_F32: return (double)((const float *)constant->data)[index];
    case TCONV_F64: return ((const double *)constant->data)[index];
    case TCONV_I32: return ((const int32_t *)constant->data)[index];
    case TCONV_I64: return (double)((const int64_t *)constant->data)[index];
    case TCONV_I8: return ((const int8_t *)constant->data)[index];
    case TCONV_U8: return ((const uint8_t *)constant->data)[index];
    default: return (double)cl_half_to_float(((const cl_half *)constant->data)[index]);
    }
}

int64_t elements_of(const struct constant *constant)
{
    int64_t count = 1;
    for (int i = 0; i < constant->shape.rank; i++)
        if (__builtin_mul_overflow(count, constant->shape.dim[i], &count))
            return 0; /* another extent is 0: so many do not exist */
    return count;
}

bool numbers_of(const struct constant *constant, struct numbers *out)
{
    const int64_t count = elements_of(constant);
    if (count < 1 || !numbers_create(out, count)) return false;
    for (int64_t i = 0; i < count; i++) numbers_set(out, i, element_of(constant, i));
    return true;
}

bool number_in(const OrtValueInfo *value, double *out)
{
    struct constant constant;
    if (!constant_of(value, &constant) || !is_one_number(&constant.shape)) return false;
    *out = element_of(&constant, 0);
    return true;
}
