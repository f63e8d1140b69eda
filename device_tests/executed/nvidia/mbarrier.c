/* SPDX-License-Identifier: Apache-2.0 */
/* mbarriers, and the bulk copies that they wait for. A phase of an mbarrier ends when all arrivals
 * and all bytes that were announced have come. */
#include "warp.h"

#include <stdlib.h>

enum { MOST_MBARRIERS = 64, MOST_BULK = 256 };

struct mbarrier {
    uint64_t address;
    uint32_t expected, pending, phase;
    int maker; /* the warp that made it, and when */
    uint32_t made;
    int64_t bytes;                                  /* announced and not there */
    uint32_t arrived[MOST_WARPS], done[MOST_WARPS]; /* what warps knew that arrived */
};

/* A copy under way. It is made at once, or when its mbarrier is tested the second time. */
struct bulk {
    struct warp *warp;
    const struct operation *op;
    uint64_t to, from, barrier;
    uint32_t bytes;
    int lane, tests;
};

struct bulk_copies {
    struct mbarrier barrier[MOST_MBARRIERS];
    struct bulk copy[MOST_BULK];
    int barrier_count, copy_count;
};

bool bulk_begin(struct group *group)
{
    group->bulk = calloc(1, sizeof *group->bulk);
    return group->bulk != NULL;
}

void bulk_free(struct group *group)
{
    free(group->bulk);
}

void bulk_begin_group(struct group *group)
{
    group->bulk->barrier_count = group->bulk->copy_count = 0;
}

bool bulk_is_running(const struct group *group)
{
    return group->bulk->copy_count != 0;
}

static struct mbarrier *barrier_at(struct warp *w, const struct operation *op, uint64_t address)
{
    struct bulk_copies *bulk = w->group->bulk;
    int n = 0;
    while (n < bulk->barrier_count && bulk->barrier[n].address != address) n++;
    if (n == bulk->barrier_count) {
        warp_fail(w, op, "no mbarrier was made at byte %lld", (long long)(address - SHARED_BASE));
        return NULL;
    }
    const struct mbarrier *b = &bulk->barrier[n];
    if (b->maker != w->number && b->made > w->group->shared.known[w->number][b->maker]) {
        warp_fail(w, op, "no barrier stands between this and the mbarrier.init of warp %d",
                  b->maker);
        return NULL;
    }
    return &bulk->barrier[n];
}

/* mbarrier.init.shared.b64 [address], count */
void mbarrier_begin(struct warp *w, const struct operation *op)
{
    struct bulk_copies *bulk = w->group->bulk;
    FOR_ACTIVE(w, lane)
    {
        const uint64_t address = address_of(w, &op->slot[0], lane);
        if (accessed(w, op, IN_SHARED, lane, address, 8, true) == NULL) return;
        int n = 0;
        while (n < bulk->barrier_count && bulk->barrier[n].address != address) n++;
        if (n == MOST_MBARRIERS) {
            warp_fail(w, op, "too many mbarriers");
            return;
        }
        const uint32_t count = (uint32_t)lane_bits(w, &op->slot[1].list[0], lane);
        bulk->barrier[n] = (struct mbarrier){.address = address,
                                             .expected = count,
                                             .pending = count,
                                             .maker = w->number,
                                             .made = w->group->shared.known[w->number][w->number]};
        if (n == bulk->barrier_count) bulk->barrier_count++;
    }
}

static void settle(struct group *group, struct mbarrier *b)
{
    if (b->pending != 0 || b->bytes != 0) return;
    b->pending = b->expected;
    b->phase ^= 1;
    memcpy(b->done, b->arrived, sizeof b->done);
    group->idle = 0;
}

static void arrive(struct warp *w, const struct operation *op, struct mbarrier *b, uint32_t count)
{
    if (count > b->pending) {
        warp_fail(w, op, "more arrivals than the mbarrier expects");
        return;
    }
    shared_release(&w->group->shared, w->number, b->arrived);
    b->pending -= count;
    settle(w->group, b);
}

/* mbarrier.arrive.shared.b64 state, [address][, count] */
void mbarrier_arrive(struct warp *w, const struct operation *op)
{
    FOR_ACTIVE(w, lane)
    {
        struct mbarrier *b = barrier_at(w, op, address_of(w, &op->slot[1], lane));
        if (b == NULL) return;
        put_lane(w, &op->slot[0].list[0], lane, b->phase);
        arrive(w, op, b,
               op->slot_count > 2 ? (uint32_t)lane_bits(w, &op->slot[2].list[0], lane) : 1);
    }
}

/* mbarrier.arrive.expect_tx.shared.b64 state, [address], bytes; mbarrier.expect_tx [address], bytes
 */
void mbarrier_expect(struct warp *w, const struct operation *op)
{
    const bool arrives = strstr(op->name, ".arrive") != NULL;
    FOR_ACTIVE(w, lane)
    {
        struct mbarrier *b = barrier_at(w, op, address_of(w, &op->slot[arrives], lane));
        if (b == NULL) return;
        b->bytes += (int64_t)lane_bits(w, &op->slot[arrives + 1].list[0], lane);
        if (!arrives) continue;
        put_lane(w, &op->slot[0].list[0], lane, b->phase);
        arrive(w, op, b, 1);
    }
}

static void make_copy(const struct bulk *copy)
{
    struct warp *w = copy->warp;
    struct mbarrier *b = barrier_at(w, copy->op, copy->barrier);
    char why[200];
    for (uint32_t i = 0; i < copy->bytes; i += 16) {
        const uint8_t *from =
            accessed(w, copy->op, IN_GLOBAL, copy->lane, copy->from + i, 16, false);
        if (from == NULL) return;
        shared_copy_ends(&w->group->shared, copy->to + i, 16, w->number);
        uint8_t *to = shared_access(&w->group->shared, copy->to + i, 16, 16, w->number,
                                    ASYNCHRONOUS_WRITES, why, sizeof why);
        if (to == NULL) {
            warp_fail(w, copy->op, "warp %d %s", w->number, why);
            return;
        }
        memcpy(to, from, 16);
    }
    if (b == NULL) return;
    b->bytes -= copy->bytes;
    shared_release(&w->group->shared, w->number, b->arrived);
    settle(w->group, b);
}

/* cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [to], [from], bytes, [barrier]
 */
void copy_bulk(struct warp *w, const struct operation *op)
{
    struct bulk_copies *bulk = w->group->bulk;
    FOR_ACTIVE(w, lane)
    {
        const struct bulk copy = {.warp = w,
                                  .op = op,
                                  .to = address_of(w, &op->slot[0], lane),
                                  .from = address_of(w, &op->slot[1], lane),
                                  .bytes = (uint32_t)lane_bits(w, &op->slot[2].list[0], lane),
                                  .barrier = address_of(w, &op->slot[3], lane),
                                  .lane = lane};
        if (copy.bytes % 16 != 0 || bulk->copy_count == MOST_BULK) {
            warp_fail(w, op, "lane %d copies %u bytes", lane, copy.bytes);
            return;
        }
        for (uint32_t i = 0; i < copy.bytes; i += 16) {
            if (shared_access(&w->group->shared, copy.to + i, 16, 16, w->number,
                              ASYNCHRONOUS_WRITES, (char[200]){""}, 200) == NULL) {
                warp_fail(w, op, "lane %d of warp %d may not write its bytes now", lane, w->number);
                return;
            }
            shared_copy_begins(&w->group->shared, copy.to + i, 16);
        }
        if (w->group->early)
            make_copy(&copy);
        else
            bulk->copy[bulk->copy_count++] = copy;
    }
}

/* Makes copies whose mbarrier was tested before. */
static void go_on_with_copies(struct bulk_copies *bulk, uint64_t barrier)
{
    int kept = 0;
    for (int i = 0; i < bulk->copy_count; i++) {
        struct bulk copy = bulk->copy[i];
        if (copy.barrier == barrier && ++copy.tests > 1)
            make_copy(&copy);
        else
            bulk->copy[kept++] = copy;
    }
    bulk->copy_count = kept;
}

/* mbarrier.try_wait.parity.shared.b64 p, [address], parity, and the same with a state */
void mbarrier_test(struct warp *w, const struct operation *op)
{
    uint64_t last = 0;
    FOR_ACTIVE(w, lane)
    {
        const uint64_t address = address_of(w, &op->slot[1], lane);
        struct mbarrier *b = barrier_at(w, op, address);
        if (b == NULL) return;
        if (address != last) go_on_with_copies(w->group->bulk, address); /* once for a warp */
        last = address;
        const bool done = b->phase != (lane_bits(w, &op->slot[2].list[0], lane) & 1);
        put_lane(w, &op->slot[0].list[0], lane, done);
        if (done)
            shared_acquire(&w->group->shared, w->number, b->done);
        else {
            w->yields = true;
            w->group->idle++;
        }
    }
}
