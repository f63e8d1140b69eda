/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of one call on a layer, in the sizes of this version, and the checks of its
 * tensors.
 */
#ifndef TCONV_LAYER_CALL_H
#define TCONV_LAYER_CALL_H

#include "base/epilogue.h"
#include "layer/key.h"
#include "tconv_cl/layer.h"

struct tconv_call {
    tconv_problem problem;
    tconv_plan_options options;
    tconv_tensors tensors;
    tconv_run run;
    struct tconv_key key; /* of problem and options: tconv_call_make_key */
    bool has_key;         /* false: no plan can be made */
};

/* Reads the caller's structures; `options`, `tensors` and `run` may be NULL. Refuses tensors that
 * have two places, or one that calls of this kind do not take. */
tconv_status tconv_call_read(const tconv_problem *problem, const tconv_plan_options *options,
                             const tconv_tensors *tensors, const tconv_run *run,
                             struct tconv_call *call, tconv_error *error);

/* Takes structures of this version for the next run of a call that was read. Refuses as
 * tconv_call_read. */
tconv_status tconv_call_set(struct tconv_call *call, const tconv_tensors *tensors,
                            const tconv_run *run, tconv_error *error);

/* Makes the key, after problem or options have changed. */
static inline void tconv_call_make_key(struct tconv_call *call)
{
    call->has_key = tconv_key_make(&call->problem, &call->options, &call->key);
}

/* Where an array of the host begins. */
static inline void *tconv_array_of(const tconv_tensor *tensor)
{
    return (char *)(uintptr_t)tensor->host + tensor->offset;
}

/* The tensor of the epilogue, which may be absent. */
const tconv_tensor *tconv_call_tensor(const tconv_tensors *tensors,
                                      enum tconv_epilogue_tensor which);

/* Checks that data, output and residual are given where the problem has them, and not otherwise.
 * Empty data may be absent. */
tconv_status tconv_call_check(const struct tconv_call *call, const tconv_geometry *geometry,
                              tconv_error *error);

/* A wait list made of two. */
struct tconv_waits {
    cl_uint count;
    const cl_event *list;
    cl_event *own; /* memory of the list, for free(); NULL: it is one of the two */
};

/* Joins the caller's list and `more_count` events, which must stay where they are. A caller's list
 * whose count does not fit is kept, to be refused. */
tconv_status tconv_waits_join(cl_uint count, const cl_event *list, cl_uint more_count,
                              const cl_event *more, struct tconv_waits *waits, tconv_error *error);

#endif
