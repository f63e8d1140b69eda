/* SPDX-License-Identifier: Apache-2.0 */
/* The three rule sets that turn pad attributes and output shape of one axis into (pad_begin, output
 * extent). */
#ifndef TCONV_GEOMETRY_RULES_H
#define TCONV_GEOMETRY_RULES_H

#include "tconv_cl/problem.h"

/* One spatial axis as the caller asked for it. */
struct tconv_axis_request {
    int64_t input, kernel, stride, dilation;
    int64_t pad_begin, pad_end; /* the attributes */
    int64_t output_padding;
    bool has_output; /* an output_shape was given */
    int64_t output;
};

struct tconv_axis_pads {
    int64_t pad_begin, pad_end, output;
};

/* Resolves an axis. Returns false if a number does not fit into 64 bits. The output extent may be
 * below 1: the caller refuses that. */
bool tconv_axis_resolve(tconv_rules rules, tconv_auto_pad auto_pad,
                        const struct tconv_axis_request *axis, struct tconv_axis_pads *pads);

#endif
