/* SPDX-License-Identifier: Apache-2.0 */
/* What a layer keeps for one of its devices: plans by request, packed filters by packed layout and
 * reading, and vectors that tconv_layer_set gave. Nothing else in the library keeps any of them.
 *
 * Whatever a function returns here stays until the caller releases it, also if the layer drops it
 * meanwhile. Every function may be called from any thread. */
#ifndef TCONV_LAYER_KEEP_H
#define TCONV_LAYER_KEEP_H

#include "layer/call.h"

#include <pthread.h>
#include <stdatomic.h>

/* How many of each are kept. The public header layer.h says the numbers, too. */
enum { TCONV_MOST_PLANS = 128, TCONV_MOST_FILTERS = 16 };

/* Tells weights from others: their version, or the hash of their bytes; 0 if nobody watches them.
 */
struct tconv_identity {
    uint64_t word[2];
};

/* A packed filter. */
struct tconv_kept_filter {
    atomic_int owners;
    tconv_plan *plan; /* it was packed for */
    tconv_packed_filter *packed;
    struct tconv_reading reading;
    struct tconv_identity identity;
    cl_event end;      /* of the packing; NULL: it had ended before anybody got the filter */
    atomic_bool ready; /* `end` need not be waited for any more */
};

/* The vectors of tconv_layer_set: numbers for each output channel. */
enum { TCONV_VECTORS = TCONV_EPILOGUE_RESIDUAL }; /* the first of an epilogue's that is none */
struct tconv_vectors {
    atomic_int owners;
    tconv_tensor tensor[TCONV_VECTORS]; /* each buffer retained; absent ones have none */
    tconv_type type[TCONV_VECTORS];
    uint64_t bytes[TCONV_VECTORS];
    uint64_t own_bytes; /* of copies of arrays */
};

/* What one run uses: a plan, a filter that is packed for it, and the vectors that were set. */
struct tconv_use {
    tconv_plan *plan;
    struct tconv_kept_filter *filter;
    struct tconv_vectors *vectors;
    uint64_t refreshes; /* of the keep, when the filter was looked for */
};

/* Releases all of it. */
void tconv_use_end(const struct tconv_use *use);

struct tconv_kept_plan;

struct tconv_keep {
    tconv_device *device;
    struct tconv_keep *of;  /* NULL, or the keep whose weights of one moment these are */
    bool passes_on;         /* new filters are kept in `of`, too */
    pthread_mutex_t making; /* held while a plan is made or a filter packed: tconv_keep_begin */
    pthread_mutex_t mutex;  /* guards the members below */
    struct tconv_kept_plan *plan[TCONV_MOST_PLANS];       /* the most recently used first */
    struct tconv_kept_filter *filter[TCONV_MOST_FILTERS]; /* that runs gave; packed last, first */
    struct tconv_kept_filter *set; /* that of tconv_layer_set, which runs may leave out; or NULL */
    struct tconv_vectors *vectors; /* NULL: none were set */
    uint64_t plans_made;
    uint64_t refreshes; /* how often all filters were dropped */
};

/* False without memory. The keep retains the device. */
bool tconv_keep_init(struct tconv_keep *keep, tconv_device *device);
void tconv_keep_destroy(struct tconv_keep *keep);

/* Makes `count` keeps, of zeros before, with the weights that those of a layer, `of`, have at one
 * moment, for one run on all of its devices: with their filters, packed from weights with
 * `identity` if that is not NULL, or, without `filters`, with the vectors alone. Plans come from
 * the layer's. If `passes_on` is true, filters that are packed from now on for the one are for the
 * other, too, unless all were dropped meanwhile. The layer's keeps outlive these. Without memory it
 * returns false, and there is nothing to destroy. */
bool tconv_keep_copy(struct tconv_keep *keep, struct tconv_keep *of, int count, bool filters,
                     bool passes_on, const struct tconv_identity *identity);

/* Waits until no other thread makes a plan or packs a filter, because it may be the same one. A
 * thread inside a callback does not wait, and may then make another one of the same: the thread
 * that it would wait for may be inside a callback, too, and wait for this one. Returns whether
 * tconv_keep_end must be called. */
bool tconv_keep_begin(struct tconv_keep *keep);
void tconv_keep_end(struct tconv_keep *keep, bool begun);

/* ---- plans ---- */

/* The kept plan of a call, which then counts as used; NULL: there is none, or it is stale and the
 * call may replace it. */
tconv_plan *tconv_keep_known_plan(struct tconv_keep *keep, const struct tconv_call *call,
                                  bool renew);

/* The kept plan of a call, or a new one, which is kept. A stale plan (tconv_plan_is_stale) is
 * replaced by one of the calls with `renew`: its successor may read another packed layout, so the
 * caller must have weights to pack. */
tconv_status tconv_keep_plan(struct tconv_keep *keep, const struct tconv_call *call, bool renew,
                             tconv_plan **out, tconv_error *error);

/* ---- filters ---- */

/* Makes a filter that nobody keeps yet, for weights in `storage`; NULL: in a buffer of its own. Its
 * caller packs it. */
tconv_status tconv_kept_filter_create(tconv_plan *plan, const tconv_problem *problem,
                                      const tconv_tensor *storage, struct tconv_kept_filter **out,
                                      tconv_error *error);
void tconv_kept_filter_release(struct tconv_kept_filter *filter);

/* Waits on the host until the filter is packed. */
tconv_status tconv_kept_filter_finish(struct tconv_keep *keep, struct tconv_kept_filter *filter,
                                      tconv_error *error);

/* The event that commands which read the filter must wait for; NULL: none. */
tconv_status tconv_kept_filter_end(struct tconv_keep *keep, struct tconv_kept_filter *filter,
                                   cl_event *end, tconv_error *error);

/* Looks for a kept filter for use->plan, which is one of the problem's, and for a run that gives
 * its filter: use->filter, which had none, is NULL if there is none. With `identity`, only one that
 * was packed from these weights, and those that runs gave before with others are dropped. */
void tconv_keep_find(struct tconv_keep *keep, const tconv_problem *problem,
                     const struct tconv_identity *identity, struct tconv_use *use);

/* Keeps use->filter, which is packed, unless all filters were dropped since tconv_keep_find. */
void tconv_keep_filter(struct tconv_keep *keep, const struct tconv_use *use);

/* Drops all filters. */
void tconv_keep_refresh(struct tconv_keep *keep);

/* ---- weights that were set ---- */

/* What is replaced when weights are set. */
struct tconv_replaced {
    struct tconv_kept_filter *filter[TCONV_MOST_FILTERS], *set;
    struct tconv_vectors *vectors;
};

/* Takes the filter and the vectors of use[i] instead of all that keep[i] had, for all `count` at
 * one moment; both NULL: nothing instead. `old` is room for as many. */
void tconv_keep_set(struct tconv_keep *keep, const struct tconv_use *use,
                    struct tconv_replaced *old, int count);

void tconv_vectors_release(struct tconv_vectors *vectors);

/* Looks for the weights that were set, for a run without a filter, both at one moment: use->filter
 * is NULL if none was set, or if it does not fit use->plan, which is one of the problem's.
 * What `use` had of both is released. */
void tconv_keep_find_set(struct tconv_keep *keep, const tconv_problem *problem,
                         struct tconv_use *use);

/* The filter that was set, which runs may leave out; NULL: there is none, or it was dropped since.
 */
struct tconv_kept_filter *tconv_keep_take_set(struct tconv_keep *keep);

/* True if there is one. */
bool tconv_keep_has_set(struct tconv_keep *keep);

/* The vectors that were set; NULL: none were. */
struct tconv_vectors *tconv_keep_take_vectors(struct tconv_keep *keep);

/* ---- counts ---- */

struct tconv_keep_counts {
    uint64_t plans_made, plans_kept, bytes;
};

void tconv_keep_count(struct tconv_keep *keep, struct tconv_keep_counts *counts);

#endif
