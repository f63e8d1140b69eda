/* SPDX-License-Identifier: Apache-2.0 */
/* What selection launches on described GPUs, layer by layer, as JSON lines: for programs that
 * predict speed without a GPU. docs/gpus.md explains the lines. */
#ifndef TCONV_HOST_TESTS_LISTING_H
#define TCONV_HOST_TESTS_LISTING_H

#include "tool/io/suite.h"

struct listing {
    tconv_type type;
    tconv_data_format format;
    tconv_math math;
    const char *device;    /* of described.h; NULL: NVIDIA and AMD, with and without matrix units */
    const char *algorithm; /* NULL: the one that selection takes */
};

/* Prints a line to stdout for each device and layer. A layer that an algorithm rejects is left out
 * where the algorithm is given by name. False after a message on stderr. */
bool print_listing(const struct suite *suite, const struct listing *listing);

#endif
