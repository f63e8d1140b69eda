/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps plans, packed filters and vectors of a layer on one device. Whatever is kept has owners:
 * the layer, and each run that uses it. So runs go on with what they have when it is replaced. */
#include "layer/keep.h"

#include "base/error.h"
#include "base/inside.h"
#include "device/events.h"

#include <stdlib.h>
#include <string.h>

/* `renewed` is true when a call has set out to replace the plan because it is stale; only one does.
 */
struct tconv_kept_plan {
    struct tconv_key key;
    tconv_plan *plan;
    bool renewed;
};

bool tconv_keep_init(struct tconv_keep *keep, tconv_device *device)
{
    if (pthread_mutex_init(&keep->making, NULL) != 0) return false;
    if (pthread_mutex_init(&keep->mutex, NULL) != 0) {
        pthread_mutex_destroy(&keep->making);
        return false;
    }
    tconv_device_retain(device);
    keep->device = device;
    keep->of = NULL;
    keep->passes_on = false;
    return true;
}

static void drop_plan(struct tconv_kept_plan *plan)
{
    tconv_plan_release(plan->plan);
    free(plan);
}

void tconv_keep_destroy(struct tconv_keep *keep)
{
    tconv_keep_refresh(keep);
    for (int i = 0; i < TCONV_MOST_PLANS && keep->plan[i] != NULL; i++) drop_plan(keep->plan[i]);
    tconv_device_release(keep->device);
    pthread_mutex_destroy(&keep->mutex);
    pthread_mutex_destroy(&keep->making);
}

/* The keep where plans are, and whose lock holds whatever is made. */
static struct tconv_keep *made_in(struct tconv_keep *keep)
{
    return keep->of != NULL ? keep->of : keep;
}

bool tconv_keep_begin(struct tconv_keep *keep)
{
    if (tconv_is_inside()) return false;
    pthread_mutex_lock(&made_in(keep)->making);
    return true;
}

void tconv_keep_end(struct tconv_keep *keep, bool begun)
{
    if (begun) pthread_mutex_unlock(&made_in(keep)->making);
}

/* ---- plans ---- */

/* Under the lock: the place of the plan with this key, or else of the first free one. */
static int plan_place(const struct tconv_keep *keep, const struct tconv_key *key)
{
    int place = 0;
    while (place < TCONV_MOST_PLANS && keep->plan[place] != NULL &&
           !tconv_key_equal(&keep->plan[place]->key, key))
        place++;
    return place;
}

/* Under the lock: puts a plan first, before those in front of `place`. */
static void put_first(struct tconv_keep *keep, struct tconv_kept_plan *plan, int place)
{
    memmove(&keep->plan[1], keep->plan, (size_t)place * sizeof *keep->plan);
    keep->plan[0] = plan;
}

/* Under the lock: the kept plan with this key, which becomes the first; NULL: there is none. */
static struct tconv_kept_plan *find_plan(struct tconv_keep *keep, const struct tconv_key *key)
{
    const int place = plan_place(keep, key);
    struct tconv_kept_plan *found = place < TCONV_MOST_PLANS ? keep->plan[place] : NULL;
    if (found != NULL && place > 0) put_first(keep, found, place);
    return found;
}

/* True if the caller is to replace the plan. */
static bool is_to_renew(const struct tconv_kept_plan *plan, bool renew)
{
    return renew && !plan->renewed && tconv_plan_is_stale(plan->plan);
}

/* The kept plan with this key, retained; NULL: there is none. `*stale` is true if the caller is to
 * replace it, which no other call then does. */
static tconv_plan *take_plan(struct tconv_keep *keep, const struct tconv_key *key, bool renew,
                             bool *stale)
{
    pthread_mutex_lock(&keep->mutex);
    struct tconv_kept_plan *found = find_plan(keep, key);
    tconv_plan *plan = found == NULL ? NULL : found->plan;
    *stale = found != NULL && is_to_renew(found, renew);
    if (*stale) found->renewed = true;
    tconv_plan_retain(plan);
    pthread_mutex_unlock(&keep->mutex);
    return plan;
}

/* Keeps a new plan, in place of one that is stale, unless a callback made the same one meanwhile.
 * Returns the one that is kept, retained. */
static tconv_plan *keep_plan(struct tconv_keep *keep, struct tconv_kept_plan *made)
{
    struct tconv_kept_plan *dropped = NULL;
    pthread_mutex_lock(&keep->mutex);
    keep->plans_made++;
    int place = plan_place(keep, &made->key);
    if (place < TCONV_MOST_PLANS && keep->plan[place] != NULL && !keep->plan[place]->renewed) {
        dropped = made;
        made = keep->plan[place];
    } else if (place == TCONV_MOST_PLANS)
        dropped = keep->plan[--place];
    else
        dropped = keep->plan[place];
    put_first(keep, made, place);
    tconv_plan *kept = made->plan;
    tconv_plan_retain(kept);
    pthread_mutex_unlock(&keep->mutex);
    if (dropped != NULL) drop_plan(dropped);
    return kept;
}

/* Makes a plan and keeps it. */
static tconv_status make_plan(struct tconv_keep *keep, const struct tconv_call *call,
                              tconv_plan **out, tconv_error *error)
{
    struct tconv_kept_plan *made = calloc(1, sizeof *made);
    if (made == NULL) return tconv_fail_memory(error, sizeof *made, "keeping a plan");
    const tconv_status status =
        tconv_plan_create(keep->device, &call->problem, &call->options, &made->plan, error);
    if (status != TCONV_OK) {
        free(made);
        return status;
    }
    made->key = call->key;
    *out = keep_plan(keep, made);
    return TCONV_OK;
}

tconv_plan *tconv_keep_known_plan(struct tconv_keep *keep, const struct tconv_call *call,
                                  bool renew)
{
    if (!call->has_key) return NULL;
    pthread_mutex_lock(&keep->mutex);
    const struct tconv_kept_plan *found = find_plan(keep, &call->key);
    tconv_plan *plan = found == NULL || is_to_renew(found, renew) ? NULL : found->plan;
    tconv_plan_retain(plan);
    pthread_mutex_unlock(&keep->mutex);
    return plan;
}

tconv_status tconv_keep_plan(struct tconv_keep *keep, const struct tconv_call *call, bool renew,
                             tconv_plan **out, tconv_error *error)
{
    if (!call->has_key) /* it is refused, with a sentence */
        return tconv_plan_create(keep->device, &call->problem, &call->options, out, error);
    bool stale;
    tconv_status status = TCONV_OK;
    keep = made_in(keep);
    tconv_plan *found = take_plan(keep, &call->key, renew, &stale), *made = NULL;
    if (found == NULL || stale) {
        const bool begun = tconv_keep_begin(keep);
        if (found == NULL) found = take_plan(keep, &call->key, renew, &stale); /* made meanwhile */
        if (found == NULL)
            status = make_plan(keep, call, &found, error);
        else if (stale) /* if none can be made, the old one stays, for good */
            make_plan(keep, call, &made, NULL);
        tconv_keep_end(keep, begun);
    }
    if (made != NULL) {
        tconv_plan_release(found);
        found = made;
    }
    if (status == TCONV_OK) *out = found;
    return status;
}

/* ---- filters ---- */

tconv_status tconv_kept_filter_create(tconv_plan *plan, const tconv_problem *problem,
                                      const tconv_tensor *storage, struct tconv_kept_filter **out,
                                      tconv_error *error)
{
    struct tconv_kept_filter *made = calloc(1, sizeof *made);
    if (made == NULL) return tconv_fail_memory(error, sizeof *made, "keeping a filter");
    const tconv_status status = tconv_packed_filter_create(plan, storage, &made->packed, error);
    if (status != TCONV_OK) {
        free(made);
        return status;
    }
    atomic_init(&made->owners, 1);
    atomic_init(&made->ready, false);
    tconv_plan_retain(plan);
    made->plan = plan;
    tconv_reading_make(problem, &made->reading);
    *out = made;
    return TCONV_OK;
}

void tconv_kept_filter_release(struct tconv_kept_filter *filter)
{
    if (filter == NULL || atomic_fetch_sub(&filter->owners, 1) > 1) return;
    tconv_packed_filter_release(filter->packed);
    tconv_plan_release(filter->plan);
    if (filter->end != NULL) clReleaseEvent(filter->end);
    free(filter);
}

/* True if the plan can read the filter. */
static bool fits(const struct tconv_kept_filter *filter, const tconv_plan *plan,
                 const struct tconv_reading *reading)
{
    return tconv_reading_equal(&filter->reading, reading) &&
           tconv_packed_filter_fits(filter->packed, plan);
}

/* Under the lock: the place of the filter that the plan reads, or else of the first free one. */
static int filter_place(const struct tconv_keep *keep, const tconv_plan *plan,
                        const struct tconv_reading *reading)
{
    int place = 0;
    while (place < TCONV_MOST_FILTERS && keep->filter[place] != NULL &&
           !fits(keep->filter[place], plan, reading))
        place++;
    return place;
}

static bool is_of(const struct tconv_kept_filter *filter, const struct tconv_identity *identity)
{
    return memcmp(&filter->identity, identity, sizeof *identity) == 0;
}

/* Under the lock: drops the filters of runs that were packed from other weights. */
static void drop_others(struct tconv_keep *keep, const struct tconv_identity *identity)
{
    int kept = 0;
    for (int i = 0; i < TCONV_MOST_FILTERS && keep->filter[i] != NULL; i++) {
        struct tconv_kept_filter *filter = keep->filter[i];
        keep->filter[i] = NULL;
        if (is_of(filter, identity))
            keep->filter[kept++] = filter;
        else
            tconv_kept_filter_release(filter);
    }
}

/* Takes the filter that another run has packed for the layer, from the same weights, since the
 * weights of a run were copied. */
static void find_newer(struct tconv_keep *keep, const struct tconv_reading *reading,
                       const struct tconv_identity *identity, struct tconv_use *use)
{
    struct tconv_keep *of = keep->of;
    pthread_mutex_lock(&of->mutex);
    const int place = of->refreshes == keep->refreshes ? filter_place(of, use->plan, reading)
                                                       : TCONV_MOST_FILTERS;
    struct tconv_kept_filter *found = place < TCONV_MOST_FILTERS ? of->filter[place] : NULL;
    if (found != NULL && (identity == NULL || is_of(found, identity))) {
        atomic_fetch_add(&found->owners, 1);
        use->filter = found;
    }
    pthread_mutex_unlock(&of->mutex);
    if (use->filter != NULL) tconv_keep_filter(keep, use);
}

void tconv_keep_find(struct tconv_keep *keep, const tconv_problem *problem,
                     const struct tconv_identity *identity, struct tconv_use *use)
{
    struct tconv_reading reading;
    tconv_reading_make(problem, &reading);
    pthread_mutex_lock(&keep->mutex);
    if (identity != NULL) drop_others(keep, identity);
    if (keep->set != NULL && (identity == NULL || is_of(keep->set, identity)) &&
        fits(keep->set, use->plan, &reading)) {
        use->filter = keep->set;
    } else {
        const int place = filter_place(keep, use->plan, &reading);
        use->filter = place < TCONV_MOST_FILTERS ? keep->filter[place] : NULL;
    }
    use->refreshes = keep->refreshes;
    if (use->filter != NULL) atomic_fetch_add(&use->filter->owners, 1);
    pthread_mutex_unlock(&keep->mutex);
    if (use->filter == NULL && keep->passes_on) find_newer(keep, &reading, identity, use);
}

void tconv_use_end(const struct tconv_use *use)
{
    tconv_kept_filter_release(use->filter);
    tconv_vectors_release(use->vectors);
    tconv_plan_release(use->plan);
}

void tconv_keep_filter(struct tconv_keep *keep, const struct tconv_use *use)
{
    struct tconv_kept_filter *filter = use->filter, *dropped = NULL;
    pthread_mutex_lock(&keep->mutex);
    if (keep->refreshes == use->refreshes) {
        int place = filter_place(keep, use->plan, &filter->reading);
        if (place == TCONV_MOST_FILTERS) place--;
        dropped = keep->filter[place]; /* the oldest, or the same that a callback packed */
        memmove(&keep->filter[1], keep->filter, (size_t)place * sizeof *keep->filter);
        keep->filter[0] = filter;
        atomic_fetch_add(&filter->owners, 1);
    }
    pthread_mutex_unlock(&keep->mutex);
    tconv_kept_filter_release(dropped);
    if (keep->passes_on) tconv_keep_filter(keep->of, use);
}

/* Drops a filter whose packing failed: the next run that gives its weights packs them again. */
static void forget(struct tconv_keep *keep, struct tconv_kept_filter *filter)
{
    pthread_mutex_lock(&keep->mutex);
    bool kept = keep->set == filter;
    if (kept) keep->set = NULL;
    for (int i = 0; i < TCONV_MOST_FILTERS && keep->filter[i] != NULL; i++) {
        kept = kept || keep->filter[i] == filter;
        if (kept) keep->filter[i] = i + 1 < TCONV_MOST_FILTERS ? keep->filter[i + 1] : NULL;
    }
    pthread_mutex_unlock(&keep->mutex);
    if (kept) tconv_kept_filter_release(filter); /* the caller owns it, too */
    if (keep->of != NULL) forget(keep->of, filter);
}

tconv_status tconv_kept_filter_finish(struct tconv_keep *keep, struct tconv_kept_filter *filter,
                                      tconv_error *error)
{
    if (atomic_load(&filter->ready) || filter->end == NULL) return TCONV_OK;
    const tconv_status status = tconv_wait(filter->end, error);
    if (status == TCONV_OK)
        atomic_store(&filter->ready, true);
    else
        forget(keep, filter);
    return status;
}

tconv_status tconv_kept_filter_end(struct tconv_keep *keep, struct tconv_kept_filter *filter,
                                   cl_event *end, tconv_error *error)
{
    *end = NULL;
    if (atomic_load(&filter->ready) || filter->end == NULL) return TCONV_OK;
    cl_int state = CL_QUEUED;
    const cl_int code = tconv_event_state(filter->end, &state);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clGetEventInfo",
                                 "asking whether the weights are packed");
    if (state < 0) {
        forget(keep, filter);
        return tconv_fail_opencl(error, state, "the command", "packing the weights of the layer");
    }
    if (state == CL_COMPLETE)
        atomic_store(&filter->ready, true);
    else
        *end = filter->end;
    return TCONV_OK;
}

/* ---- the weights of one run ---- */

/* Under the lock of `of`. */
static void copy_weights(struct tconv_keep *keep, struct tconv_keep *of, bool filters,
                         bool passes_on, const struct tconv_identity *identity)
{
    if (identity != NULL) drop_others(of, identity);
    for (int i = 0; filters && i < TCONV_MOST_FILTERS && of->filter[i] != NULL; i++) {
        keep->filter[i] = of->filter[i];
        atomic_fetch_add(&keep->filter[i]->owners, 1);
    }
    keep->vectors = of->vectors;
    if (keep->vectors != NULL) atomic_fetch_add(&keep->vectors->owners, 1);
    keep->set = filters ? of->set : NULL;
    if (keep->set != NULL) atomic_fetch_add(&keep->set->owners, 1);
    keep->refreshes = of->refreshes;
    keep->passes_on = passes_on;
}

bool tconv_keep_copy(struct tconv_keep *keep, struct tconv_keep *of, int count, bool filters,
                     bool passes_on, const struct tconv_identity *identity)
{
    int made = 0;
    while (made < count && tconv_keep_init(&keep[made], of[made].device)) {
        keep[made].of = &of[made];
        made++;
    }
    if (made < count) {
        while (made > 0) tconv_keep_destroy(&keep[--made]);
        return false;
    }
    for (int i = 0; i < count; i++) pthread_mutex_lock(&of[i].mutex);
    for (int i = 0; i < count; i++) copy_weights(&keep[i], &of[i], filters, passes_on, identity);
    for (int i = 0; i < count; i++) pthread_mutex_unlock(&of[i].mutex);
    return true;
}

/* ---- weights that were set ---- */

void tconv_vectors_release(struct tconv_vectors *vectors)
{
    if (vectors == NULL || atomic_fetch_sub(&vectors->owners, 1) > 1) return;
    for (int i = 0; i < TCONV_VECTORS; i++)
        if (vectors->tensor[i].memory != NULL) clReleaseMemObject(vectors->tensor[i].memory);
    free(vectors);
}

/* Under the lock. */
static void exchange(struct tconv_keep *keep, const struct tconv_use *use,
                     struct tconv_replaced *old)
{
    memcpy(old->filter, keep->filter, sizeof old->filter);
    memset(keep->filter, 0, sizeof keep->filter);
    old->set = keep->set;
    old->vectors = keep->vectors;
    keep->set = use->filter;
    keep->vectors = use->vectors;
    keep->refreshes++;
    if (use->filter != NULL) atomic_fetch_add(&use->filter->owners, 1);
    if (use->vectors != NULL) atomic_fetch_add(&use->vectors->owners, 1);
}

void tconv_keep_set(struct tconv_keep *keep, const struct tconv_use *use,
                    struct tconv_replaced *old, int count)
{
    for (int i = 0; i < count; i++) pthread_mutex_lock(&keep[i].mutex);
    for (int i = 0; i < count; i++) exchange(&keep[i], &use[i], &old[i]);
    for (int i = 0; i < count; i++) pthread_mutex_unlock(&keep[i].mutex);
    for (int i = 0; i < count; i++) {
        for (int f = 0; f < TCONV_MOST_FILTERS; f++) tconv_kept_filter_release(old[i].filter[f]);
        tconv_kept_filter_release(old[i].set);
        tconv_vectors_release(old[i].vectors);
    }
}

void tconv_keep_find_set(struct tconv_keep *keep, const tconv_problem *problem,
                         struct tconv_use *use)
{
    struct tconv_reading reading;
    tconv_reading_make(problem, &reading);
    tconv_kept_filter_release(use->filter);
    tconv_vectors_release(use->vectors);
    pthread_mutex_lock(&keep->mutex);
    use->filter = keep->set != NULL && fits(keep->set, use->plan, &reading) ? keep->set : NULL;
    use->vectors = keep->vectors;
    if (use->filter != NULL) atomic_fetch_add(&use->filter->owners, 1);
    if (use->vectors != NULL) atomic_fetch_add(&use->vectors->owners, 1);
    pthread_mutex_unlock(&keep->mutex);
}

struct tconv_kept_filter *tconv_keep_take_set(struct tconv_keep *keep)
{
    pthread_mutex_lock(&keep->mutex);
    struct tconv_kept_filter *set = keep->set;
    if (set != NULL) atomic_fetch_add(&set->owners, 1);
    pthread_mutex_unlock(&keep->mutex);
    return set;
}

bool tconv_keep_has_set(struct tconv_keep *keep)
{
    pthread_mutex_lock(&keep->mutex);
    const bool has = keep->set != NULL;
    pthread_mutex_unlock(&keep->mutex);
    return has;
}

struct tconv_vectors *tconv_keep_take_vectors(struct tconv_keep *keep)
{
    pthread_mutex_lock(&keep->mutex);
    struct tconv_vectors *vectors = keep->vectors;
    if (vectors != NULL) atomic_fetch_add(&vectors->owners, 1);
    pthread_mutex_unlock(&keep->mutex);
    return vectors;
}

void tconv_keep_refresh(struct tconv_keep *keep)
{
    struct tconv_replaced old;
    tconv_keep_set(keep, &(struct tconv_use){.filter = NULL}, &old, 1);
}

void tconv_keep_count(struct tconv_keep *keep, struct tconv_keep_counts *counts)
{
    pthread_mutex_lock(&keep->mutex);
    counts->plans_made += keep->plans_made;
    for (int i = 0; i < TCONV_MOST_PLANS && keep->plan[i] != NULL; i++) counts->plans_kept++;
    for (int i = 0; i < TCONV_MOST_FILTERS && keep->filter[i] != NULL; i++)
        counts->bytes += tconv_plan_filter_bytes(keep->filter[i]->plan);
    if (keep->set != NULL) counts->bytes += tconv_plan_filter_bytes(keep->set->plan);
    if (keep->vectors != NULL) counts->bytes += keep->vectors->own_bytes;
    pthread_mutex_unlock(&keep->mutex);
}
