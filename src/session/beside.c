/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a layer while the application's threads sleep, so that the device has their processors. Each
 * of them gets a task. Which task computes does not matter: the first that begins. So the layer is
 * computed whatever threads there are. */
#include "base/cancel.h"
#include "base/inside.h"
#include "session/session_internal.h"

#include <string.h>

struct shared_run {
    struct tconv_layer_run *run;
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
        shared->status = tconv_layer_execute(shared->run, shared->error);
        pthread_mutex_lock(&shared->mutex);
        shared->has_ended = true;
        pthread_cond_broadcast(&shared->ended);
    }
    pthread_mutex_unlock(&shared->mutex);
}

/* Whether kernels run on processors that the application's threads may hold. */
static bool shares_processors(const tconv_session *session)
{
    const tconv_device_info *device = tconv_device_properties(session->device);
    return device->kind == TCONV_DEVICE_CPU && device->compute_units > 1;
}

static bool make_locks(struct shared_run *shared)
{
    if (pthread_mutex_init(&shared->mutex, NULL) != 0) return false;
    if (pthread_cond_init(&shared->ended, NULL) == 0) return true;
    pthread_mutex_destroy(&shared->mutex);
    return false;
}

tconv_status tconv_session_layer_run_beside(tconv_session_layer *layer, tconv_on_threads on_threads,
                                            void *pool, const tconv_problem *problem,
                                            const tconv_plan_options *options,
                                            const tconv_arrays *arrays, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    struct tconv_layer_run run;
    struct shared_run shared = {.run = &run, .error = error};
    const tconv_status status = tconv_run_prepare(layer, problem, options, arrays, &run, error);
    if (status != TCONV_OK) return status;
    /* A callback must not wait for another thread: see base/inside.h. */
    if (on_threads == NULL || tconv_is_inside() ||
        !shares_processors(tconv_session_of_layer(layer)) || !make_locks(&shared))
        return tconv_layer_execute(&run, error);
    on_threads(pool, execute_or_sleep, &shared);
    if (!shared.is_taken) execute_or_sleep(&shared); /* the pool called no task */
    pthread_cond_destroy(&shared.ended);
    pthread_mutex_destroy(&shared.mutex);
    return shared.status;
}
