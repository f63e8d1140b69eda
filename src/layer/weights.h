/* SPDX-License-Identifier: Apache-2.0 */
/* The weights of a run: the filter that it gives, packed, or a kept one, and the vectors that it
 * gives, or those that were set. */
#ifndef TCONV_LAYER_WEIGHTS_H
#define TCONV_LAYER_WEIGHTS_H

#include "layer/call.h"
#include "layer/keep.h"

struct tconv_lane;

/* Where filters are packed. */
struct tconv_packing {
    tconv_filter_use use;    /* whether they are kept */
    struct tconv_lane *lane; /* NULL: the queue of the run */
    bool alone;              /* no other array of the run overlaps the filter */
    atomic_uint_least64_t *count;
    const struct tconv_identity *identity; /* of a watched filter; NULL: found where needed */
};

/* True if the filter that a call gives can be told from others: by its bytes, or its version. */
bool tconv_has_identity(const struct tconv_call *call);

/* What tells the filter that a call gives from others. Without a version its bytes are hashed. */
struct tconv_identity tconv_weights_identity(const struct tconv_call *call,
                                             const tconv_geometry *geometry);

/* Takes the plan of a run, unless `use` has it, and the vectors that were set. If the run gives no
 * filter, also the one that was set, which must be there: if it does not fit the plan that the
 * library would choose, the plan takes its algorithm. After an error nothing was taken. */
tconv_status tconv_weights_plan(struct tconv_keep *keep, const struct tconv_call *call,
                                struct tconv_use *use, tconv_error *error);

/* Takes the filter for use->plan, kept in `keep` or packed now, if the run gives one. Packing in a
 * queue ends with an event (tconv_kept_filter_end). */
tconv_status tconv_weights_filter(struct tconv_keep *keep, const struct tconv_call *call,
                                  const struct tconv_packing *packing, struct tconv_use *use,
                                  tconv_error *error);

/* Finds the vectors of a run, its own or those that were set: `vector` has an absent tensor where
 * the epilogue has none. */
tconv_status tconv_weights_vectors(const struct tconv_call *call, const tconv_geometry *geometry,
                                   const struct tconv_vectors *set,
                                   tconv_tensor vector[TCONV_VECTORS], tconv_error *error);

/* Packs the weights of tconv_layer_set, for tconv_keep_set. `*out` is written only on success. */
tconv_status tconv_weights_pack(struct tconv_keep *keep, const struct tconv_call *call,
                                const struct tconv_packing *packing, struct tconv_use *out,
                                tconv_error *error);

#endif
