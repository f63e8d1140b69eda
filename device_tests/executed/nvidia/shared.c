/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory of a work-group, and who knows of whose accesses. */
#include "shared.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool shared_begin(struct shared_memory *shared, uint32_t size, int warps)
{
    *shared = (struct shared_memory){.size = size, .warps = warps, .epoch = 1};
    shared->bytes = malloc((size_t)size + 1);
    shared->uses = calloc((size_t)size + 1, sizeof *shared->uses);
    shared->read_times = calloc(((size_t)size + 1) * (size_t)warps, sizeof *shared->read_times);
    for (int a = 0; a < warps; a++) shared->known[a][a] = 1;
    return shared->bytes != NULL && shared->uses != NULL && shared->read_times != NULL;
}

void shared_free(struct shared_memory *shared)
{
    free(shared->bytes);
    free(shared->uses);
    free(shared->read_times);
}

void shared_begin_group(struct shared_memory *shared)
{
    memset(shared->bytes, 0xff, shared->size);
    for (uint32_t i = 0; i < shared->size; i++)
        shared->uses[i] = (struct byte_use){.writer = BY_NOBODY, .generic_writer = BY_NOBODY};
    shared_meet(shared, shared->warps == MOST_WARPS ? UINT32_MAX : (1u << shared->warps) - 1);
}

/* ---- who knows what ---- */

void shared_release(struct shared_memory *shared, int warp, uint32_t barrier[MOST_WARPS])
{
    uint32_t *known = shared->known[warp];
    for (int i = 0; i < shared->warps; i++)
        if (known[i] > barrier[i]) barrier[i] = known[i];
    known[warp]++;
}

void shared_acquire(struct shared_memory *shared, int warp, const uint32_t barrier[MOST_WARPS])
{
    uint32_t *known = shared->known[warp];
    for (int i = 0; i < shared->warps; i++)
        if (barrier[i] > known[i]) known[i] = barrier[i];
}

void shared_meet(struct shared_memory *shared, uint32_t warps)
{
    uint32_t barrier[MOST_WARPS] = {0};
    int count = 0;
    for (int i = 0; i < shared->warps; i++)
        if (warps >> i & 1) {
            shared_release(shared, i, barrier);
            count++;
        }
    for (int i = 0; i < shared->warps; i++)
        if (warps >> i & 1) shared_acquire(shared, i, barrier);
    if (count == shared->warps) shared->epoch++;
}

void shared_fence_proxy(struct shared_memory *shared, int warp)
{
    uint32_t *time = &shared->known[warp][warp];
    shared->fences[warp][shared->fence_count[warp]++ % KEPT_FENCES] = *time;
    ++*time;
}

/* Whether a warp knows of a fence that another executed at `time` or later. */
static bool is_fenced(const struct shared_memory *shared, int reader, int writer, uint32_t time)
{
    for (int i = 0; i < KEPT_FENCES; i++) {
        const uint32_t fence = shared->fences[writer][i];
        if (fence >= time && (reader == writer || fence <= shared->known[reader][writer]))
            return true;
    }
    return false;
}

/* ---- accesses ---- */

static struct byte_use *current(struct shared_memory *shared, uint32_t at)
{
    struct byte_use *use = &shared->uses[at];
    if (use->epoch != shared->epoch) {
        use->epoch = shared->epoch;
        use->writer = BY_NOBODY;
        use->readers = 0;
    }
    return use;
}

static bool knows_readers(const struct shared_memory *shared, const struct byte_use *use,
                          uint32_t at, int warp)
{
    if ((use->readers & ~(1u << warp)) == 0) return true;
    for (int r = 0; r < shared->warps; r++)
        if (r != warp && (use->readers >> r & 1) &&
            shared->read_times[(size_t)at * (size_t)shared->warps + (size_t)r] >
                shared->known[warp][r])
            return false;
    return true;
}

/* What is wrong with an access to a byte, or NULL. */
static const char *wrong(const struct shared_memory *shared, const struct byte_use *use,
                         uint32_t at, int warp, enum access_kind kind)
{
    const bool writes = kind != READS && kind != PRODUCT_READS;
    if (use->copies != 0) return "which a copy that nobody waited for writes";
    if (writes && use->products != 0) return "which a product under way reads";
    const bool atomics = kind == ATOMIC_CHANGE && use->writer == BY_ATOMICS;
    const bool known =
        use->writer == BY_NOBODY || use->writer == warp || atomics ||
        (use->writer != BY_ATOMICS && use->write_time <= shared->known[warp][use->writer]);
    if (!known || (writes && !knows_readers(shared, use, at, warp)))
        return "which another warp accessed since the last barrier";
    if (kind == PRODUCT_READS && use->generic_writer != BY_NOBODY &&
        !is_fenced(shared, warp, use->generic_writer, use->generic_time))
        return "which was written without a fence.proxy.async behind it";
    return NULL;
}

static void note(struct shared_memory *shared, struct byte_use *use, uint32_t at, int warp,
                 enum access_kind kind)
{
    const uint32_t now = shared->known[warp][warp];
    if (kind == READS || kind == PRODUCT_READS) {
        use->readers |= 1u << warp;
        shared->read_times[(size_t)at * (size_t)shared->warps + (size_t)warp] = now;
        return;
    }
    use->writer = kind == ATOMIC_CHANGE ? BY_ATOMICS : (uint8_t)warp;
    use->write_time = now;
    use->generic_writer = kind == ASYNCHRONOUS_WRITES ? BY_NOBODY : (uint8_t)warp;
    use->generic_time = now;
}

uint8_t *shared_access(struct shared_memory *shared, uint64_t address, int size, int alignment,
                       int warp, enum access_kind kind, char *why, size_t why_size)
{
    const uint64_t at = address - SHARED_BASE;
    if (at > shared->size || (uint64_t)size > shared->size - at) {
        snprintf(why, why_size, "accesses byte %" PRId64 " of %u of local memory", (int64_t)at,
                 shared->size);
        return NULL;
    }
    if (address % (uint64_t)alignment != 0) {
        snprintf(why, why_size, "accesses %d bytes of local memory at byte %" PRIu64, size, at);
        return NULL;
    }
    for (int n = 0; n < size; n++) {
        const uint32_t one = (uint32_t)at + (uint32_t)n;
        struct byte_use *use = current(shared, one);
        const char *text = wrong(shared, use, one, warp, kind);
        if (text != NULL) {
            snprintf(why, why_size, "%s byte %u of local memory, %s",
                     kind == READS || kind == PRODUCT_READS ? "reads" : "writes", one, text);
            return NULL;
        }
        note(shared, use, one, warp, kind);
    }
    return shared->bytes + at;
}

void shared_copy_begins(struct shared_memory *shared, uint64_t address, int size)
{
    for (int n = 0; n < size; n++) shared->uses[address - SHARED_BASE + (uint64_t)n].copies = 1;
}

void shared_copy_ends(struct shared_memory *shared, uint64_t address, int size, int warp)
{
    for (int n = 0; n < size; n++) {
        const uint32_t at = (uint32_t)(address - SHARED_BASE) + (uint32_t)n;
        struct byte_use *use = current(shared, at);
        use->copies = 0;
        note(shared, use, at, warp, WRITES);
    }
}

void shared_product(struct shared_memory *shared, uint64_t address, int size, int more)
{
    for (int n = 0; n < size; n++) {
        struct byte_use *use = &shared->uses[address - SHARED_BASE + (uint64_t)n];
        use->products = (uint8_t)(use->products + more);
    }
}
