/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory of a work-group: local memory in OpenCL's words. It knows of each byte who accessed
 * it, and in which order warps know of each other: a barrier, or an mbarrier, tells a warp what
 * others did before they arrived there. Two accesses race if one writes and neither warp knows of
 * the other's. It also knows bytes that copies and products under way may write or read, and
 * whether a fence of proxies stands behind a write. */
#ifndef DEVICE_TESTS_EXECUTED_NVIDIA_SHARED_H
#define DEVICE_TESTS_EXECUTED_NVIDIA_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHARED_BASE = 1024, MOST_WARPS = 32, KEPT_FENCES = 16 };

enum access_kind {
    READS,
    WRITES,
    ATOMIC_CHANGE,      /* races with accesses that are not atomic */
    PRODUCT_READS,      /* by the asynchronous proxy: needs a fence behind writes of others */
    ASYNCHRONOUS_WRITES /* by the asynchronous proxy, as bulk copies do */
};

/* What happened to a byte. Accesses are those since the last barrier of all warps. */
struct byte_use {
    uint32_t epoch, write_time, readers, /* a bit of each warp */
        generic_time;               /* of the last write that is not asynchronous, at any time */
    uint8_t writer, generic_writer; /* warps, or one of the numbers below */
    uint8_t copies, products;       /* under way that write it, or read it */
};
enum { BY_ATOMICS = 254, BY_NOBODY = 255 };

struct shared_memory {
    uint8_t *bytes;
    uint32_t size;
    int warps;
    uint32_t epoch;
    struct byte_use *uses;
    uint32_t *read_times;                     /* of each byte and warp */
    uint32_t known[MOST_WARPS][MOST_WARPS];   /* the time of a warp up to which another knows it */
    uint32_t fences[MOST_WARPS][KEPT_FENCES]; /* the times of a warp's last fences of proxies */
    uint32_t fence_count[MOST_WARPS];
};

/* False if memory is missing. */
bool shared_begin(struct shared_memory *shared, uint32_t size, int warps);
void shared_free(struct shared_memory *shared);

/* All that happened is known to all warps, and a new work-group begins. */
void shared_begin_group(struct shared_memory *shared);

/* The bytes at an address, or NULL if the access is wrong; `why` is then the end of a sentence. */
uint8_t *shared_access(struct shared_memory *shared, uint64_t address, int size, int alignment,
                       int warp, enum access_kind kind, char *why, size_t why_size);

/* Marks bytes, which are in shared memory, as written by a copy under way, or as written. */
void shared_copy_begins(struct shared_memory *shared, uint64_t address, int size);
void shared_copy_ends(struct shared_memory *shared, uint64_t address, int size, int warp);

/* Marks bytes as read by products under way (1), or no longer (-1). */
void shared_product(struct shared_memory *shared, uint64_t address, int size, int more);

/* What warps know. A barrier is a warp's knowledge that others take. */
void shared_meet(struct shared_memory *shared, uint32_t warps);
void shared_release(struct shared_memory *shared, int warp, uint32_t barrier[MOST_WARPS]);
void shared_acquire(struct shared_memory *shared, int warp, const uint32_t barrier[MOST_WARPS]);
void shared_fence_proxy(struct shared_memory *shared, int warp);

#endif
