/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a layer, and the ways of running one. Only files of src/layer include it. */
#ifndef TCONV_LAYER_LAYER_INTERNAL_H
#define TCONV_LAYER_LAYER_INTERNAL_H

#include "layer/call.h"
#include "layer/keep.h"
#include "layer/weights.h"

struct tconv_layer {
    tconv_filter_use use;
    atomic_uint_least64_t runs, filters_packed, in_slabs;
    int device_count;
    struct tconv_keep keep[]; /* of each device */
};

/* The device of a queue, and what the layer keeps for it. With one device it is that one: what does
 * not belong to it is refused later, with a sentence (queue.c). */
tconv_status tconv_layer_find_queue(tconv_layer *layer, cl_command_queue queue,
                                    struct tconv_keep **out, tconv_error *error);

/* Refuses what only runs with a queue have. */
tconv_status tconv_run_check_without_queue(const tconv_run *run, tconv_error *error);

/* Runs a call: tconv_layer_run, without reading its arguments. */
tconv_status tconv_layer_run_call(tconv_layer *layer, const struct tconv_call *call,
                                  tconv_error *error);

/* Computes a plan in a lane of the device (whole.c). The plan is in `use`, and the filter if the
 * run gives none. */
tconv_status tconv_run_whole(tconv_layer *layer, struct tconv_keep *keep,
                             const struct tconv_call *call, struct tconv_use *use,
                             tconv_error *error);

/* Enqueues a run on its queue (queue.c). */
tconv_status tconv_run_enqueue(tconv_layer *layer, const struct tconv_call *call,
                               tconv_error *error);

/* True if a run of arrays of the host is divided into slabs (division.c). */
bool tconv_slabs_wanted(const tconv_layer *layer, const struct tconv_call *call,
                        const tconv_geometry *geometry);

/* True if slabs can compute a run whose first try failed for lack of device memory: what they read
 * is as it was (division.c). */
bool tconv_slabs_may_follow(const struct tconv_call *call);

/* Computes a run in slabs on all devices (slabs.c). */
tconv_status tconv_run_slabs(tconv_layer *layer, const struct tconv_call *call, tconv_error *error);

#endif
