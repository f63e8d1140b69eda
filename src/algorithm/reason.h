/* SPDX-License-Identifier: Apache-2.0 */
/* Why an algorithm, a tile or a field of the cost model does not fit. */
#ifndef TCONV_ALGORITHM_REASON_H
#define TCONV_ALGORITHM_REASON_H

#include "base/format.h"

#include <stdbool.h>

struct tconv_reason {
    char text[200];
};

/* Writes the reason; returns false. */
bool tconv_refuse(struct tconv_reason *reason, const char *format, ...) TCONV_PRINTF(2, 3);

#endif
