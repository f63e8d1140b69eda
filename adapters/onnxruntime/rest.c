/* SPDX-License-Identifier: Apache-2.0 */
/* Lets ONNX Runtime's threads sleep while a device that is the processor computes. After each of
 * their own operators they wait awake, for tens of milliseconds, on processors that the device
 * needs. So each of them is given a task that waits asleep. Which task does the work does not
 * matter: the first that begins. So the work is done whatever threads there are. */
#include "rest.h"

#include "node.h"

#include <pthread.h>
#include <stdbool.h>

struct rest {
    void (*work)(void *user);
    void *user;
    pthread_mutex_t mutex; /* guards the other members */
    pthread_cond_t ended;
    bool is_taken, has_ended;
};

static void take(void *user, size_t index)
{
    (void)index;
    struct rest *rest = user;
    pthread_mutex_lock(&rest->mutex);
    if (rest->is_taken) {
        while (!rest->has_ended) pthread_cond_wait(&rest->ended, &rest->mutex);
    } else {
        rest->is_taken = true;
        pthread_mutex_unlock(&rest->mutex);
        rest->work(rest->user);
        pthread_mutex_lock(&rest->mutex);
        rest->has_ended = true;
        pthread_cond_broadcast(&rest->ended);
    }
    pthread_mutex_unlock(&rest->mutex);
}

void rest_while(const OrtKernelContext *context, size_t threads, void (*work)(void *user),
                void *user)
{
    struct rest rest = {.work = work, .user = user};
    pthread_mutex_init(&rest.mutex, NULL);
    pthread_cond_init(&rest.ended, NULL);
    succeeded(ort.KernelContext_ParallelFor(context, take, threads, 0, &rest), NULL);
    if (!rest.is_taken) take(&rest, 0); /* no task was started */
    pthread_cond_destroy(&rest.ended);
    pthread_mutex_destroy(&rest.mutex);
}
