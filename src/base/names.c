/* SPDX-License-Identifier: Apache-2.0 */
/* The names of types, formats, rules, pads and activations, in both directions, and what an
 * activation takes. */
#include "base/element_types.h"
#include "base/text.h"
#include "common/activation_list.h"
#include "tconv_cl/epilogue.h"

/* An enumerator without a row does not compile: a switch below lacks its case. */
#pragma GCC diagnostic error "-Wswitch"

/* Nor does a row whose number is not that of its enumerator, or that is out of order. */
#define ASSERT_ACTIVATION(NAME, number, name, parameters, slopes, heavy)                           \
    _Static_assert((int)TCONV_ACTIVATION_##NAME == (number) &&                                     \
                       (int)ACTIVATION_##NAME == (number) && (parameters) <= 2,                    \
                   #NAME);
#define ACTIVATION_PLACE(NAME, number, name, parameters, slopes, heavy) ACTIVATION_##NAME,
enum { ACTIVATIONS(ACTIVATION_PLACE) };
ACTIVATIONS(ASSERT_ACTIVATION)

struct name {
    int value;
    const char *text;
};

#define TYPE_NAME(NAME, number, name, bytes, kind) {TCONV_##NAME, #name},
static const struct name type_names[] = {TCONV_ELEMENT_TYPES(TYPE_NAME)};

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

#define ACTIVATION_NAME(NAME, number, name, parameters, slopes, heavy)                             \
    {TCONV_ACTIVATION_##NAME, #name},
static const struct name activation_names[] = {ACTIVATIONS(ACTIVATION_NAME)};

static const struct name operation_names[] = {
    {TCONV_CONV_BACKPROP, "ConvolutionBackpropData"},
    {TCONV_GROUP_CONV_BACKPROP, "GroupConvolutionBackpropData"},
    {TCONV_ONEAPI_CONV_BACKPROP, "ConvolutionBackpropData (oneAPI)"},
    {TCONV_UPSAMPLE_CONV, "upsampling and convolution"},
    {TCONV_CONV_PIXEL_SHUFFLE, "convolution and pixel shuffle"},
    {TCONV_CONV_PIXEL_SHUFFLE_DCR, "convolution and pixel shuffle (DCR)"},
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
        if (tconv_text_alike(table[i].text, text)) return &table[i];
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
    switch (activation) {
#define PARAMETERS_OF(NAME, number, name, parameters, slopes, heavy)                               \
    case TCONV_ACTIVATION_##NAME: return parameters;
        ACTIVATIONS(PARAMETERS_OF)
    }
    return 0;
}

int tconv_activation_slope_count(tconv_activation activation)
{
    switch (activation) {
#define SLOPES_OF(NAME, number, name, parameters, slopes, heavy)                                   \
    case TCONV_ACTIVATION_##NAME: return slopes;
        ACTIVATIONS(SLOPES_OF)
    }
    return 0;
}

bool tconv_activation_has_slope(tconv_activation activation)
{
    return tconv_activation_slope_count(activation) > 0;
}

const char *tconv_operation_name(tconv_operation operation)
{
    return text_of(operation_names, COUNT(operation_names), (int)operation);
}
