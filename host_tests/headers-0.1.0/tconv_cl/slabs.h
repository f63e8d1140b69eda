/* SPDX-License-Identifier: Apache-2.0 */
/* Slabs: computes host arrays in slabs of output rows, with transfers beside computation. For
 * tensors larger than a device's memory, and for several devices. A layer over plan.h and
 * session.h. */
#ifndef TCONV_CL_SLABS_H
#define TCONV_CL_SLABS_H

#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A slab: batch items [batch_begin, batch_end) and output rows [output_begin, output_end) of the
 * outermost spatial axis, computed from the input rows [input_begin, input_end). */
typedef struct tconv_slab {
    int session;          /* index of the tconv_session that computed it */
    int64_t batch_begin;  /* first batch item */
    int64_t batch_end;    /* one behind the last batch item */
    int64_t output_begin; /* first output row */
    int64_t output_end;   /* one behind the last output row */
    int64_t input_begin;  /* first input row */
    int64_t input_end;    /* one behind the last input row */
} tconv_slab;

/* Options of the division into slabs. Its struct_size (see tconv_cl.h) reaches at least up to
 * `memory_limit`. */
typedef struct tconv_slabs_options {
    size_t struct_size;
    /* Bytes of device memory for the tensors of the slabs in flight, on each device; 0: 256 MiB.
     * The filter and the algorithm's workspace come on top. */
    uint64_t memory_limit;
    /* Called after each slab, when its part of the output is complete, with the number of finished
     * slabs and of all slabs. It is called by one thread at a time, in the thread that computed the
     * slab. Other threads of the run may wait until it returns. If it returns false, the run stops
     * and returns TCONV_ERROR_CANCELLED. May be NULL. */
    bool (*done)(void *user, const tconv_slab *slab, int64_t slabs_done, int64_t slabs);
    void *user; /* for `done` */
} tconv_slabs_options;

#define TCONV_SLABS_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(tconv_slabs_options), 0, NULL, NULL                                                 \
    }

/* As tconv_session_run, but in slabs, on all of `sessions` at once. Each session takes the next
 * slab when it is ready, so that faster devices compute more. A session must not be given twice,
 * and may be used by other calls at the same time. Transfers to and from a device run beside its
 * kernels. With a window in `options` the arrays hold its rows, and the slabs count rows from the
 * window's first ones.
 *
 * No element of the output may lie in the memory of another array, because that may be read after a
 * slab stored its output. Data, residual and output may be slices of one tensor
 * (docs/semantics.md), and the residual may be the output itself, with the same steps.
 *
 * Returns also TCONV_ERROR_ARGUMENT for a wrong list of sessions and for overlaps, _DEVICE_MEMORY
 * if not even one row fits, _HOST_MEMORY if no thread can be had, and _CANCELLED. The sentence of
 * an error names the device. After an error the slabs for which `done` was called are complete;
 * other outputs may be partly written. */
TCONV_API tconv_status tconv_slabs_run(tconv_session *const *sessions, int session_count,
                                       const tconv_problem *problem,
                                       const tconv_plan_options *options,
                                       const tconv_slabs_options *slabs, const tconv_arrays *arrays,
                                       tconv_error *error);

#ifdef __cplusplus
}
#endif

#endif
