/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a CPU device whose driver has none: a kernel runs in the thread that enqueues it,
 * as with PoCL's basic device. So nothing is woken if the threads are awake already: those of the
 * application, or helpers, which wait awake for a while after each task. */
#ifndef TCONV_DEVICE_CREW_H
#define TCONV_DEVICE_CREW_H

#include "tconv_cl/device.h"
#include "tconv_cl/layer.h"

struct tconv_crew;

/* A crew of `threads`, the calling one of each run included. NULL without memory. */
struct tconv_crew *tconv_crew_create(int threads);

/* Ends the helpers. NULL is a no-op. */
void tconv_crew_release(struct tconv_crew *crew);

/* How many threads compute at the same time. */
int tconv_crew_threads(const struct tconv_crew *crew);

/* Calls task(argument) on this thread, and at the same time on the helpers that are awake; with
 * `wakes` on all of them. It returns when all these calls have returned. While another thread's
 * task runs, only this thread calls it. Any thread. */
void tconv_crew_run(struct tconv_crew *crew, bool wakes, void (*task)(void *argument),
                    void *argument);

/* A way to call a task on several threads: the application's (tconv_run.on_threads), or, if that is
 * NULL, the crew's. */
struct tconv_pool {
    tconv_on_threads on_threads;
    void *pool;
    uint64_t threads; /* that may compute at most; 0: as many as the device has */
};

#endif
