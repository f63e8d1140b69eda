/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a layer while the application's threads sleep, so that the device has their processors. Each
 * of them gets a task. Which task computes does not matter: the first that begins. So the layer is
 * computed whatever threads there are. */
#include "base/cancel.h"
#include "base/error.h"
#include "base/inside.h"
#include "base/process.h"
#include "session/session_internal.h"

#include <string.h>

struct shared_run {
    /* The arguments of tconv_session_layer_run, and what it returns. */
    tconv_session_layer *layer;
    const tconv_problem *problem;
    const tconv_plan_options *options;
    const tconv_arrays *arrays;
    tconv_error *error;
    tconv_status status;

    pthread_mutex_t mutex; /* guards the members below */
    pthread_cond_t ended;
    bool is_taken, has_ended;
};

static void compute_or_sleep(void *argument)
{
    struct shared_run *run = argument;
    pthread_mutex_lock(&run->mutex);
    if (run->is_taken) {
        while (!run->has_ended) pthread_cond_wait(&run->ended, &run->mutex);
    } else {
        run->is_taken = true;
        pthread_mutex_unlock(&run->mutex);
        run->status = tconv_session_layer_run(run->layer, run->problem, run->options, run->arrays,
                                              run->error);
        pthread_mutex_lock(&run->mutex);
        run->has_ended = true;
        pthread_cond_broadcast(&run->ended);
    }
    pthread_mutex_unlock(&run->mutex);
}

/* Whether kernels run on processors that the application's threads may hold. */
static bool shares_processors(const tconv_session *session)
{
    const tconv_device_info *device = tconv_device_properties(session->device);
    return device->kind == TCONV_DEVICE_CPU && device->compute_units > 1;
}

tconv_status tconv_session_layer_run_beside(tconv_session_layer *layer, tconv_on_threads on_threads,
                                            void *pool, const tconv_problem *problem,
                                            const tconv_plan_options *options,
                                            const tconv_arrays *arrays, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    /* A callback must not wait for another thread (see base/inside.h), and the application's
     * threads do not exist in a forked child. */
    if (layer == NULL || on_threads == NULL || tconv_is_inside() || tconv_process_forked() ||
        !shares_processors(tconv_session_of_layer(layer)))
        return tconv_session_layer_run(layer, problem, options, arrays, error);
    struct shared_run run = {
        .layer = layer, .problem = problem, .options = options, .arrays = arrays, .error = error};
    if (pthread_mutex_init(&run.mutex, NULL) != 0)
        return tconv_fail_memory(error, sizeof run.mutex, "running a layer beside threads");
    if (pthread_cond_init(&run.ended, NULL) != 0) {
        pthread_mutex_destroy(&run.mutex);
        return tconv_fail_memory(error, sizeof run.ended, "running a layer beside threads");
    }
    on_threads(pool, compute_or_sleep, &run);
    if (!run.is_taken) compute_or_sleep(&run); /* there was no thread */
    pthread_cond_destroy(&run.ended);
    pthread_mutex_destroy(&run.mutex);
    return run.status;
}

void tconv_on_openmp(void *gomp_parallel, void (*task)(void *argument), void *argument)
{
    void (*parallel)(void (*task)(void *), void *argument, unsigned threads, unsigned flags);
    memcpy(&parallel, &gomp_parallel, sizeof parallel); /* C has no cast for it */
    parallel(task, argument, 0, 0);                     /* 0: as many threads as are set */
}
