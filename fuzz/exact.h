/* SPDX-License-Identifier: Apache-2.0 */
/* What a problem resolves to, once more: from docs/semantics.md and problem.h, in 128 bits, step by
 * step and slowly. Shares no code with the library. */
#ifndef TCONV_FUZZ_EXACT_H
#define TCONV_FUZZ_EXACT_H

#include "tconv_cl/problem.h"

__extension__ typedef __int128 exact;

struct exact_geometry {
    int axes;
    bool nxc;
    exact batch, groups, in_channels, out_channels; /* channels of one group */
    exact input[TCONV_MAX_AXES], kernel[TCONV_MAX_AXES];
    exact stride[TCONV_MAX_AXES], dilation[TCONV_MAX_AXES];
    exact pad_begin[TCONV_MAX_AXES], pad_end[TCONV_MAX_AXES], output[TCONV_MAX_AXES];
    exact data_bytes, filter_bytes, output_bytes, residual_bytes;
    exact macs;      /* EXACT_MANY: that many or more */
    bool macs_known; /* false: both input and kernel of an axis are too large for counting one by
                        one */
    tconv_type output_type;
};

#define EXACT_MANY ((exact)1 << 126)

/* Whether the problem is a valid one, and then all of its geometry. The number of multiply-adds is
 * not judged. */
bool exact_resolve(const tconv_problem *problem, struct exact_geometry *geometry);

#endif
