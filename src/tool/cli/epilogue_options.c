/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an epilogue from its options. */
#include "common/activation_list.h"
#include "tool/tool.h"

#include <stdio.h>
#include <string.h>

struct names activation_names(int slopes)
{
    struct names names = {"", 0};
    for (int i = 0; i < ACTIVATION_COUNT; i++)
        if (tconv_activation_slope_count((tconv_activation)i) >= slopes)
            add_name(&names, tconv_activation_name((tconv_activation)i));
    end_names(&names, slopes > 0 ? "and" : "or");
    return names;
}

static bool read_activation(tconv_epilogue *e)
{
    if (options.activation == NULL) return true;
    char name[40];
    const size_t length = strcspn(options.activation, ":");
    snprintf(name, sizeof name, "%.*s", (int)length, options.activation);
    if (length >= sizeof name || !tconv_activation_from_name(name, &e->activation)) {
        const char *write = foreign_value("activation", name);
        wrong_request("--activation is \"%s\": it must be %s%s%s", options.activation,
                      activation_names(0).text, write == NULL ? "" : "; write ",
                      write == NULL ? "" : write);
        return false;
    }
    const int wanted = tconv_activation_parameter_count(e->activation);
    const bool given = options.activation[length] == ':';
    double numbers[2] = {0, 0};
    int count = 0;
    char option[60];
    snprintf(option, sizeof option, "--activation %s", name);
    if (given && wanted > 0 &&
        (count = read_reals(option, options.activation + length + 1, numbers, wanted)) < 0)
        return false;
    if (count != wanted || (given && wanted == 0)) {
        static const char *const takes[] = {"no number", "one number", "two numbers"};
        static const char *const examples[] = {"", ":0.1", ":-1,1"};
        wrong_request("--activation is \"%s\": %s takes %s, as in %s%s", options.activation, name,
                      takes[wanted], name, examples[wanted]);
        return false;
    }
    e->a = numbers[0];
    e->b = numbers[1];
    return true;
}

static bool read_zero_point(const char *option, const char *text, int32_t *zero)
{
    if (text == NULL) return true;
    int64_t number;
    int count;
    if (!read_numbers(option, text, &number, 1, &count)) return false;
    if (number < -128 || number > 255) {
        wrong_request("%s is %s: it must be -128 to 127 for i8 or 0 to 255 for u8", option, text);
        return false;
    }
    *zero = (int32_t)number;
    return true;
}

bool read_epilogue(tconv_epilogue *e)
{
    *e = (tconv_epilogue)TCONV_EPILOGUE_INIT;
    e->requantize = options.requantize != 0;
    return (options.alpha == NULL || read_reals("--alpha", options.alpha, &e->alpha, 1) == 1) &&
           (options.beta == NULL || read_reals("--beta", options.beta, &e->beta, 1) == 1) &&
           read_activation(e) &&
           read_zero_point("--data-zero-point", options.data_zero_point, &e->data_zero_point) &&
           read_zero_point("--filter-zero-point", options.filter_zero_point,
                           &e->filter_zero_point) &&
           read_zero_point("--output-zero-point", options.output_zero_point, &e->output_zero_point);
}
