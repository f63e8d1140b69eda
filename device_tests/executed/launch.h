/* SPDX-License-Identifier: Apache-2.0 */
/* What the executors of all vendors do alike: they read files; work-groups are executed one after
 * another, and waves of a work-group take turns, in an order that is random with a seed; a launch
 * fails with a sentence. */
#ifndef DEVICE_TESTS_EXECUTED_LAUNCH_H
#define DEVICE_TESTS_EXECUTED_LAUNCH_H

#include "memory.h"
#include "vendor.h"

#include <stdarg.h>

/* The bytes of file PATH.ENDING from malloc, and a 0 behind them. NULL if it cannot be read. */
char *read_file(const char *path, const char *ending, size_t *size);

/* The launch fails with `place`, for example "v_mov_b32 at 0x40", and a text behind it, unless it
 * has already failed. */
void fail_at(struct memory *memory, const char *place, const char *format, va_list arguments);

/* ---- work-items ---- */

/* How many waves of `lanes` work-items a work-group has, and how many work-items one wave has. */
int wave_count(const struct dispatch *dispatch, int lanes);
int wave_items(const struct dispatch *dispatch, int lanes, int wave);

/* The numbers of a work-item along the three dimensions, from its place in the work-group. */
void item_numbers(const struct dispatch *dispatch, int item, uint32_t number[3]);

/* ---- the order of work-groups and waves ---- */

/* Where a launch is in its order: that of the numbers without a seed, else a random one. */
struct schedule {
    const struct dispatch *dispatch;
    uint64_t random; /* state; 0 without a seed */
    uint64_t next;   /* how many work-groups have begun */
    uint64_t step;   /* from a work-group's number to the next one's, modulo their count */
};

struct schedule schedule_of(const struct dispatch *dispatch);

/* The numbers of the work-group that is next. False if there is none. */
bool next_group(struct schedule *schedule, uint32_t number[3]);

enum wave_state { RUNNING, AT_BARRIER, AT_PRODUCT, ENDED };

/* The waves of a work-group. Each is a struct that begins with its enum wave_state. */
struct waves {
    const char *name; /* of one, in the vendor's words */
    void *first;
    size_t size; /* of the struct */
    int count;
    void (*run)(void *wave, uint64_t operations); /* until it waits, ends or has executed so many */
};

/* How many waves are in a state. */
int waves_in(const struct waves *waves, enum wave_state state);

/* Runs one of the waves that are RUNNING, of which there must be one: without a seed the first from
 * number `first` on, for up to `most` operations, else a random one for a few. Returns its number.
 */
int run_turn(struct schedule *schedule, const struct waves *waves, int first, uint64_t most);

/* Runs waves until all have ended, or one has failed; they go on behind a barrier when all have
 * come to it. */
void run_waves(struct schedule *schedule, const struct waves *waves, struct memory *memory,
               struct local_memory *local, uint64_t most);

#endif
