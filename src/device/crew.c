/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that help a call: they wait awake for a bounded time, then asleep. */
#include "device/crew.h"

#include "base/os.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* `gate` counts the helpers inside the task, or has this bit: none may enter any more. */
enum { CLOSED = 1 << 30 };

struct tconv_crew {
    atomic_int helpers; /* that may be started */
    int started;        /* under `use` */
    pthread_t *thread;
    pthread_mutex_t use; /* held by the call whose task runs */
    pthread_mutex_t mutex;
    pthread_cond_t begun;
    atomic_uint round; /* counts the tasks */
    atomic_int gate, asleep;
    atomic_bool ends;
    void (*task)(void *argument);
    void *argument;
};

struct tconv_crew *tconv_crew_create(int threads)
{
    struct tconv_crew *crew = calloc(1, sizeof *crew);
    if (crew == NULL) return NULL;
    atomic_init(&crew->helpers, threads - 1);
    crew->thread = calloc((size_t)threads, sizeof *crew->thread);
    const bool used = crew->thread != NULL && pthread_mutex_init(&crew->use, NULL) == 0;
    const bool locked = used && pthread_mutex_init(&crew->mutex, NULL) == 0;
    if (locked && pthread_cond_init(&crew->begun, NULL) == 0) {
        atomic_init(&crew->gate, CLOSED);
        return crew;
    }
    if (locked) pthread_mutex_destroy(&crew->mutex);
    if (used) pthread_mutex_destroy(&crew->use);
    free(crew->thread);
    free(crew);
    return NULL;
}

void tconv_crew_release(struct tconv_crew *crew)
{
    if (crew == NULL) return;
    pthread_mutex_lock(&crew->mutex);
    atomic_store(&crew->ends, true);
    pthread_cond_broadcast(&crew->begun);
    pthread_mutex_unlock(&crew->mutex);
    for (int i = 0; i < crew->started; i++) pthread_join(crew->thread[i], NULL);
    pthread_cond_destroy(&crew->begun);
    pthread_mutex_destroy(&crew->mutex);
    pthread_mutex_destroy(&crew->use);
    free(crew->thread);
    free(crew);
}

int tconv_crew_threads(const struct tconv_crew *crew)
{
    return atomic_load(&((struct tconv_crew *)crew)->helpers) + 1; /* older C reads no const one */
}

/* Waits for the round behind `seen`, awake at first. While other programs keep the processors busy,
 * a thread that yields returns late, and then sleeps at once. */
static void wait_for_round(struct tconv_crew *crew, unsigned seen)
{
    enum { TURNS = 100 };
    static const double awake = 200e-6, lost = 1e-3; /* seconds */
    const double begin = tconv_os_seconds();
    double now = begin, before = begin;
    while (now - begin < awake && now - before < lost) {
        for (int i = 0; i < TURNS; i++) {
            if (atomic_load(&crew->round) != seen || atomic_load(&crew->ends)) return;
            tconv_os_pause();
        }
        before = now;
        tconv_os_yield();
        now = tconv_os_seconds();
    }
    pthread_mutex_lock(&crew->mutex);
    atomic_fetch_add(&crew->asleep, 1);
    while (atomic_load(&crew->round) == seen && !atomic_load(&crew->ends))
        pthread_cond_wait(&crew->begun, &crew->mutex);
    atomic_fetch_sub(&crew->asleep, 1);
    pthread_mutex_unlock(&crew->mutex);
}

static void *help(void *argument)
{
    struct tconv_crew *crew = argument;
    for (unsigned seen = 0;;) {
        wait_for_round(crew, seen);
        if (atomic_load(&crew->ends)) return NULL;
        seen = atomic_load(&crew->round);
        int inside = atomic_load(&crew->gate);
        while (inside < CLOSED && !atomic_compare_exchange_weak(&crew->gate, &inside, inside + 1)) {
        }
        if (inside >= CLOSED) continue;
        crew->task(crew->argument);
        atomic_fetch_sub(&crew->gate, 1);
    }
}

/* Starts the helpers at the first task; those that cannot be started are missing from then on. */
static void start(struct tconv_crew *crew)
{
    const int helpers = atomic_load(&crew->helpers);
    while (crew->started < helpers &&
           tconv_os_start_thread(&crew->thread[crew->started], help, crew))
        crew->started++;
    if (crew->started < helpers) atomic_store(&crew->helpers, crew->started);
}

void tconv_crew_run(struct tconv_crew *crew, bool wakes, void (*task)(void *argument),
                    void *argument)
{
    if (atomic_load(&crew->helpers) == 0 || pthread_mutex_trylock(&crew->use) != 0) {
        task(argument);
        return;
    }
    if (wakes) start(crew);
    crew->task = task;
    crew->argument = argument;
    atomic_store(&crew->gate, 0);
    atomic_fetch_add(&crew->round, 1);
    if (wakes && atomic_load(&crew->asleep) > 0) {
        pthread_mutex_lock(&crew->mutex);
        pthread_cond_broadcast(&crew->begun);
        pthread_mutex_unlock(&crew->mutex);
    }
    task(argument);
    atomic_fetch_or(&crew->gate, CLOSED);
    for (int turn = 1; atomic_load(&crew->gate) != CLOSED; turn++) {
        tconv_os_pause();
        if (turn % 100 == 0) tconv_os_yield();
    }
    pthread_mutex_unlock(&crew->use);
}
