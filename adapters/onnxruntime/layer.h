/* SPDX-License-Identifier: Apache-2.0 */
/* Computes one layer of a model on a device. */
#ifndef TCONV_ONNXRUNTIME_LAYER_H
#define TCONV_ONNXRUNTIME_LAYER_H

#include "device.h"

/* The attributes of a layer, for any extents of its tensors. */
struct layer_request {
    tconv_problem problem; /* without shapes */
    tconv_list kernel;     /* the filter's extents must be these; empty: any */
    tconv_epilogue epilogue;
    bool constant_filter; /* the same in all runs */
    tconv_search search;  /* how the algorithm is chosen */
    tconv_math math;
};

/* Makes the whole problem and resolves it. */
tconv_status layer_resolve(const struct layer_request *request, const tconv_shape *data,
                           const tconv_shape *filter, tconv_problem *problem,
                           tconv_geometry *geometry, tconv_error *error);

struct layer;
tconv_status layer_create(tconv_device *device, const struct layer_request *request,
                          struct layer **out, tconv_error *error);
void layer_release(struct layer *layer);

/* Computes `problem`, which is from layer_resolve. Any number of threads may run a layer at once.
 * What the device does is written to the log of `context`. `*slabs` then is the number of slabs
 * that the library made of it; 1: none. */
tconv_status layer_run(struct layer *layer, const OrtKernelContext *context,
                       const tconv_problem *problem, const tconv_tensors *tensors, int64_t *slabs,
                       tconv_error *error);

/* The counts of this process so far. */
enum layer_count { COMPUTED, COMPUTED_IN_SLABS, PLANS, PACKS, LAYER_COUNTS };
uint64_t layer_statistics(enum layer_count what);

#endif
