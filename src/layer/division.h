/* SPDX-License-Identifier: Apache-2.0 */
/* How a run is divided into slabs: whether, and into which. */
#ifndef TCONV_LAYER_DIVISION_H
#define TCONV_LAYER_DIVISION_H

#include "base/view.h"
#include "layer/layer_internal.h"

enum { TCONV_SLABS_IN_FLIGHT = 2 }; /* on one device */

/* A tensor of the arrays. On devices slabs of it are dense. */
struct tconv_slab_tensor {
    const tconv_tensor *given;
    struct tconv_view view;
    size_t element; /* bytes */
    uint64_t bytes; /* if it were dense */
    bool dense;
};

/* A run that is divided: each slab has `items` batch items and `rows` output rows, the last ones
 * fewer. */
struct tconv_division {
    const struct tconv_call *call;
    tconv_geometry geometry; /* of the arrays: the problem's, or that of the options' window */
    struct tconv_slab_tensor data, output, residual;
    int64_t items, rows;
    int64_t item_parts, row_parts;
};

/* Divides a run on all devices of the layer: the largest slabs that fit every device, but enough of
 * them for several devices. Refuses an output that overlaps an input. Returns TCONV_OK with no part
 * at all if there is nothing to compute. */
tconv_status tconv_divide(const tconv_layer *layer, const struct tconv_call *call,
                          struct tconv_division *division, tconv_error *error);

/* How many slabs there are, and slab number `number`, for a device of the layer. */
int64_t tconv_division_slabs(const struct tconv_division *division);
tconv_slab tconv_division_slab(const struct tconv_division *division, int64_t number, int device);

#endif
