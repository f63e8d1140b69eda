/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a session, and the functions that all calls on host arrays share. */
#ifndef TCONV_SESSION_SESSION_INTERNAL_H
#define TCONV_SESSION_SESSION_INTERNAL_H

#include "tconv_cl/session.h"

#include <pthread.h>

struct tconv_session {
    cl_context context;
    cl_command_queue queue;
    tconv_device *device;
    cl_device_id id;
    size_t alignment; /* in bytes, of arrays that kernels may use in place; 0: none */
    pthread_mutex_t mutex;
    struct tconv_lane *idle; /* lanes that no call uses, under the mutex */
};

/* A call's structures in the sizes of this version. */
struct tconv_session_call {
    tconv_problem problem;
    tconv_plan_options options;
    tconv_arrays arrays;
};

/* A run of a layer that was prepared: its plan, which counts as used. */
struct tconv_layer_run {
    tconv_session_layer *layer;
    struct tconv_session_call call;
    struct kept_plan *plan;
};

/* The two parts of tconv_session_layer_run: what may compile and search, and the computation. Every
 * run that was prepared must be executed, which gives its plan back. */
tconv_status tconv_layer_prepare(tconv_session_layer *layer, const tconv_problem *problem,
                                 const tconv_plan_options *options, const tconv_arrays *arrays,
                                 struct tconv_layer_run *run, tconv_error *error);
tconv_status tconv_layer_execute(struct tconv_layer_run *run, tconv_error *error);

/* The session of a layer. */
tconv_session *tconv_session_of_layer(const tconv_session_layer *layer);

/* Reads the caller's structures. `options` may be NULL. */
tconv_status tconv_session_read(const tconv_problem *problem, const tconv_plan_options *options,
                                const tconv_arrays *arrays, struct tconv_session_call *call,
                                tconv_error *error);

/* Returns an error if an array is missing, or if one is given that the epilogue does not have.
 * Empty data may be NULL. */
tconv_status tconv_session_check_arrays(const tconv_arrays *arrays, const tconv_geometry *geometry,
                                        const tconv_epilogue *epilogue, tconv_error *error);

#endif
