/* SPDX-License-Identifier: Apache-2.0 */
/* The names of types, formats, rules and pads, in both directions. */
#include "tconv_cl/epilogue.h"
#include "tconv_cl/problem.h"

#include <strings.h>

struct name {
    int value;
    const char *text;
};

static const struct name type_names[] = {
    {TCONV_F32, "f32"}, {TCONV_F16, "f16"}, {TCONV_BF16, "bf16"}, {TCONV_F64, "f64"},
    {TCONV_I8, "i8"},   {TCONV_I16, "i16"}, {TCONV_I32, "i32"},   {TCONV_I64, "i64"},
    {TCONV_U8, "u8"},   {TCONV_U16, "u16"}, {TCONV_U32, "u32"},   {TCONV_U64, "u64"},
};

/* The first name of a value is the one that is printed. */
static const struct name auto_pad_names[] = {
    {TCONV_EXPLICIT, "explicit"},     {TCONV_EXPLICIT, "notset"},       {TCONV_VALID, "valid"},
    {TCONV_SAME_UPPER, "same_upper"}, {TCONV_SAME_LOWER, "same_lower"},
};

static const struct name rules_names[] = {
    {TCONV_RULES_SPEC, "spec"}, {TCONV_RULES_OPENVINO, "openvino"}, {TCONV_RULES_ONNX, "onnx"}};

static const struct name search_names[] = {{TCONV_SEARCH_MODEL, "model"},
                                           {TCONV_SEARCH_RECORDS, "records"},
                                           {TCONV_SEARCH_MEASURE, "measure"},
                                           {TCONV_SEARCH_RENEW, "renew"}};
static const struct name math_names[] = {{TCONV_MATH_EXACT, "exact"}, {TCONV_MATH_FAST, "fast"}};

static const struct name activation_names[] = {
    {TCONV_ACTIVATION_NONE, "none"},       {TCONV_ACTIVATION_RELU, "relu"},
    {TCONV_ACTIVATION_RELU6, "relu6"},     {TCONV_ACTIVATION_LEAKY_RELU, "leaky_relu"},
    {TCONV_ACTIVATION_PRELU, "prelu"},     {TCONV_ACTIVATION_CLAMP, "clamp"},
    {TCONV_ACTIVATION_SIGMOID, "sigmoid"}, {TCONV_ACTIVATION_TANH, "tanh"},
    {TCONV_ACTIVATION_GELU, "gelu"},       {TCONV_ACTIVATION_GELU_TANH, "gelu_tanh"},
    {TCONV_ACTIVATION_SILU, "silu"},       {TCONV_ACTIVATION_ELU, "elu"},
    {TCONV_ACTIVATION_SNAKE, "snake"},     {TCONV_ACTIVATION_HARDSWISH, "hardswish"},
    {TCONV_ACTIVATION_MISH, "mish"},
};

static const struct name operation_names[] = {
    {TCONV_CONV_BACKPROP, "ConvolutionBackpropData"},
    {TCONV_GROUP_CONV_BACKPROP, "GroupConvolutionBackpropData"},
    {TCONV_ONEAPI_CONV_BACKPROP, "ConvolutionBackpropData (oneAPI)"},
};

static const struct name data_format_names[] = {{TCONV_NCX, "NCX"}, {TCONV_NXC, "NXC"}};
static const struct name filter_format_names[] = {{TCONV_OIX, "OIX"}, {TCONV_XIO, "XIO"}};

#define COUNT(table) (sizeof(table) / sizeof *(table))

static const char *text_of(const struct name *table, size_t count, int value)
{
    for (size_t i = 0; i < count; i++)
        if (table[i].value == value) return table[i].text;
    return "?";
}

static const struct name *entry_of(const struct name *table, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(table[i].text, text) == 0) return &table[i];
    return NULL;
}

/* Defines the two directions for one enumeration. */
#define TWO_DIRECTIONS(kind, type)                                                                 \
    const char *tconv_##kind##_name(type value)                                                    \
    {                                                                                              \
        return text_of(kind##_names, COUNT(kind##_names), (int)value);                             \
    }                                                                                              \
    bool tconv_##kind##_from_name(const char *name, type *value)                                   \
    {                                                                                              \
        const struct name *entry =                                                                 \
            name == NULL ? NULL : entry_of(kind##_names, COUNT(kind##_names), name);               \
        if (entry != NULL && value != NULL) *value = (type)entry->value;                           \
        return entry != NULL;                                                                      \
    }

TWO_DIRECTIONS(type, tconv_type)
TWO_DIRECTIONS(auto_pad, tconv_auto_pad)
TWO_DIRECTIONS(rules, tconv_rules)
TWO_DIRECTIONS(math, tconv_math)
TWO_DIRECTIONS(search, tconv_search)
TWO_DIRECTIONS(activation, tconv_activation)
TWO_DIRECTIONS(data_format, tconv_data_format)
TWO_DIRECTIONS(filter_format, tconv_filter_format)

int tconv_activation_parameter_count(tconv_activation activation)
{
    return activation == TCONV_ACTIVATION_CLAMP                                              ? 2
           : activation == TCONV_ACTIVATION_LEAKY_RELU || activation == TCONV_ACTIVATION_ELU ? 1
                                                                                             : 0;
}

bool tconv_activation_has_slope(tconv_activation activation)
{
    return activation == TCONV_ACTIVATION_PRELU || activation == TCONV_ACTIVATION_SNAKE;
}

const char *tconv_operation_name(tconv_operation operation)
{
    return text_of(operation_names, COUNT(operation_names), (int)operation);
}

size_t tconv_type_size(tconv_type type)
{
    switch (type) {
    case TCONV_I8:
    case TCONV_U8: return 1;
    case TCONV_F16:
    case TCONV_BF16:
    case TCONV_I16:
    case TCONV_U16: return 2;
    case TCONV_F32:
    case TCONV_I32:
    case TCONV_U32: return 4;
    case TCONV_F64:
    case TCONV_I64:
    case TCONV_U64: return 8;
    case TCONV_TYPE_DEFAULT: break;
    }
    return 0;
}

bool tconv_type_is_floating(tconv_type type)
{
    return type == TCONV_F32 || type == TCONV_F16 || type == TCONV_BF16 || type == TCONV_F64;
}

tconv_type tconv_bias_type(const tconv_epilogue *epilogue, tconv_type output_type)
{
    return epilogue != NULL && epilogue->requantize ? TCONV_F32 : output_type;
}

tconv_type tconv_scale_type(tconv_type data_type)
{
    return data_type == TCONV_F64 ? TCONV_F64 : TCONV_F32;
}
