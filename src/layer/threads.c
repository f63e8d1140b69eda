/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a layer while the application's threads sleep, so that the device has their processors. Each
 * of them gets a task. Which task computes does not matter: the first that begins. So the layer is
 * computed whatever threads there are. */
#include "layer/layer_internal.h"

#include "base/cancel.h"
#include "base/inside.h"
#include "device/crew.h"

#include <string.h>

enum {
    MACS = 62500 /* multiply-adds that a core does in the 2.5 us that waking a thread takes */
};

struct shared_run {
    tconv_layer *layer;
    struct tconv_keep *keep;
    const struct tconv_call *call;
    struct tconv_use *use;
    tconv_error *error;
    tconv_status status;
    pthread_mutex_t mutex; /* guards the members below */
    pthread_cond_t ended;
    bool is_taken, has_ended;
};

static void execute_or_sleep(void *argument)
{
    TCONV_WITHOUT_CANCELLATION; /* on a thread of the pool */
    struct shared_run *shared = argument;
    pthread_mutex_lock(&shared->mutex);
    if (shared->is_taken) {
        while (!shared->has_ended) pthread_cond_wait(&shared->ended, &shared->mutex);
    } else {
        shared->is_taken = true;
        pthread_mutex_unlock(&shared->mutex);
        shared->status =
            tconv_run_whole(shared->layer, shared->keep, shared->call, shared->use, shared->error);
        pthread_mutex_lock(&shared->mutex);
        shared->has_ended = true;
        pthread_cond_broadcast(&shared->ended);
    }
    pthread_mutex_unlock(&shared->mutex);
}

/* The rule of layer.h: whether the application's threads are to sleep. They hold processors that
 * kernels need, and waking them takes less than the layer. A callback must not wait for another
 * thread (base/inside.h). */
static bool threads_sleep(const struct tconv_call *call, const tconv_device *device, uint64_t macs)
{
    if (call->run.on_threads == NULL) return false;
    const tconv_device_info *info = tconv_device_properties(device);
    const uint64_t n = call->run.threads != 0 ? call->run.threads : info->compute_units;
    return tconv_device_crew(device) == NULL && info->kind == TCONV_DEVICE_CPU &&
           info->compute_units > 1 && n > 1 && macs / MACS / n >= n && !tconv_is_inside();
}

static bool make_locks(struct shared_run *shared)
{
    if (pthread_mutex_init(&shared->mutex, NULL) != 0) return false;
    if (pthread_cond_init(&shared->ended, NULL) == 0) return true;
    pthread_mutex_destroy(&shared->mutex);
    return false;
}

/* Gives the run to a thread of the pool, while the others sleep. */
static tconv_status run_in_pool(tconv_layer *layer, struct tconv_keep *keep,
                                const struct tconv_call *call, struct tconv_use *use,
                                tconv_error *error)
{
    struct shared_run shared = {
        .layer = layer, .keep = keep, .call = call, .use = use, .error = error};
    if (!make_locks(&shared)) return tconv_run_whole(layer, keep, call, use, error);
    call->run.on_threads(call->run.pool, execute_or_sleep, &shared);
    if (!shared.is_taken) execute_or_sleep(&shared); /* the pool called no task */
    pthread_cond_destroy(&shared.ended);
    pthread_mutex_destroy(&shared.mutex);
    return shared.status;
}

tconv_status tconv_run_beside(tconv_layer *layer, struct tconv_keep *keep,
                              const struct tconv_call *call, struct tconv_use *use,
                              tconv_error *error)
{
    return threads_sleep(call, keep->device, tconv_plan_geometry(use->plan)->macs)
               ? run_in_pool(layer, keep, call, use, error)
               : tconv_run_whole(layer, keep, call, use, error);
}

void tconv_on_openmp(void *gomp_parallel, void (*task)(void *argument), void *argument)
{
    void (*parallel)(void (*task)(void *), void *argument, unsigned threads, unsigned flags);
    if (gomp_parallel == NULL) return;
    memcpy(&parallel, &gomp_parallel, sizeof parallel); /* a cast is POSIX's, not C's */
    parallel(task, argument, 0, 0);                     /* 0: as many threads as are set */
}
