/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: a layer with one spatial axis whose input arrives in chunks, such as the frames of a
 * sound. Each push returns the output columns that no later input changes; what pushes and the
 * flush return, one after the other, has the bits of one call on the whole input, however it was
 * divided.
 *
 *     tconv_stream_create(layer, &problem, &options, NULL, &stream, &err);
 *     const int64_t columns = tconv_stream_outputs(stream, n);    // of the next push
 *     tensors.data.host = chunk;                                  // [batch, channels, n]
 *     tensors.filter.host = filter;                               // or set before: layer.h
 *     tensors.output.host = output;                               // [batch, channels, columns]
 *     tconv_stream_push(stream, n, &tensors, NULL, &err);
 *
 * THE BITS are those of a run of the whole input with tconv_stream_algorithm, on the same device
 * with the same driver. With y = x*s + k*d - p (tconv_resolve), after T inputs the outputs y < T*s
 * - L are final, where L is tconv_stream_info.lag: the pad, or more if pads_end cuts off outputs.
 * The first pushes have the layer's own pads, so that no zero stands for an input that does not
 * exist. Two differences remain: an output whose products are all smaller than the type's smallest
 * number may be 0 with the other sign; and, if some weights are infinite or NaN, finite outputs of
 * neighbouring channels may differ in their last bits.
 *
 * MEMORY. A stream keeps `history` columns of the input, twice, and a buffer for history and chunk
 * that suits the longest chunk so far; of chunks above 256 KiB only begin and end are copied. The
 * layer keeps the 128 plans used last, of which each length of chunk needs one or two, and the
 * weights, which all of its streams share. So a push of a length that was pushed before allocates
 * nothing but what a run of the layer does.
 *
 * THREADS. Streams of one layer may be used at the same time, but two threads must not use one
 * stream at the same time. The layer must live as long as its streams. */
#ifndef TCONV_CL_STREAM_H
#define TCONV_CL_STREAM_H

#include "layer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A stream: how many columns were pushed, and the last of them. Opaque. */
typedef struct tconv_stream tconv_stream;

/* Options of a stream. Its struct_size (see tconv_cl.h) reaches at least up to `columns`. */
typedef struct tconv_stream_options {
    size_t struct_size;
    int64_t columns; /* input columns of a usual push, for which the algorithm is chosen; longer and
                        shorter pushes work as well. 0: unknown, one that suits 1 to 100 */
} tconv_stream_options;

#define TCONV_STREAM_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(tconv_stream_options), 0                                                            \
    }

/* Makes a stream of a layer that has one device. `problem` has one spatial axis, whose extent in
 * the data is not read, no output_shape, no auto_pad whose pads depend on that extent, and no steps
 * of data, output or residual, which are dense. All operators, element types and formats are taken.
 *
 * `options` may be NULL, and has no window; its epilogue is that of all pushes. If it names an
 * algorithm, the order of that one's additions must not depend on where an output is. So it cannot
 * be winograd_vector, difference_vector or difference_group. `streaming` may be NULL.
 *
 * If the layer has a filter of tconv_layer_set, the stream takes the algorithm that it is packed
 * for. To have the algorithm that suits the stream, call tconv_layer_set after this function, with
 * tconv_stream_algorithm in its options.
 *
 * Compiles kernels. Returns what tconv_resolve and tconv_plan_create return, _UNSUPPORTED for the
 * problems above, _ALGORITHM for a named algorithm that streams do not take, _MISMATCH for a filter
 * that is packed for one. Ownership: the caller's, until tconv_stream_release. `*out` is written
 * only on success. */
TCONV_API tconv_status tconv_stream_create(tconv_layer *layer, const tconv_problem *problem,
                                           const tconv_plan_options *options,
                                           const tconv_stream_options *streaming,
                                           tconv_stream **out, tconv_error *error);

/* Releases the stream. NULL is a no-op. Pending commands run to completion. */
TCONV_API void tconv_stream_release(tconv_stream *stream);

/* The algorithm, as tconv_plan_options.algorithm takes it: with those parameters of its tile that
 * decide about the order of additions and the packed filter. It lives as long as the stream. NULL
 * if `stream` is NULL. */
TCONV_API const char *tconv_stream_algorithm(const tconv_stream *stream);

enum {
    TCONV_STREAM_FLUSH = -1 /* for tconv_stream_outputs */
};

/* How many output columns the next push of `columns` input columns returns, or the next flush if
 * `columns` is TCONV_STREAM_FLUSH. 0 if `stream` is NULL, or if nothing can be pushed. */
TCONV_API int64_t tconv_stream_outputs(const tconv_stream *stream, int64_t columns);

/* What a stream is and has done. Its struct_size (see tconv_cl.h) reaches at least up to `bytes`.
 */
typedef struct tconv_stream_info {
    size_t struct_size;
    int64_t pushed;   /* input columns so far */
    int64_t returned; /* output columns so far */
    int64_t stride;   /* output columns for each input column */
    int64_t lag;      /* after T input columns, T * stride - lag output columns are returned */
    int64_t history;  /* input columns that are kept */
    uint64_t bytes;   /* of memory of the stream, now: history and buffer, without weights */
} tconv_stream_info;

#define TCONV_STREAM_INFO_INIT                                                                     \
    {                                                                                              \
        sizeof(tconv_stream_info), 0, 0, 0, 0, 0, 0                                                \
    }

/* Returns TCONV_ERROR_ARGUMENT. */
TCONV_API tconv_status tconv_stream_describe(const tconv_stream *stream, tconv_stream_info *info,
                                             tconv_error *error);

/* Takes the next `columns` input columns, at least 0, and computes the output columns that they
 * make final, tconv_stream_outputs of them. tensors->data has the input columns and no others,
 * tensors->output (and residual) the output columns and no others; what has no elements may be
 * absent. The other tensors are as for tconv_layer_run: filter, bias, scale and slope may be absent
 * if tconv_layer_set gave them, and must be the same in all pushes.
 *
 * With a queue in `run`, data and output are buffers (pointers are refused with
 * TCONV_ERROR_UNSUPPORTED), and the push is enqueued behind the wait list and behind what this
 * stream enqueued before, on any queue. Without one (`run` may be NULL), they are arrays of the
 * host, and the call waits. Until a reset, all pushes are of the same of these two kinds.
 * `progress` and `memory_limit` are refused.
 *
 * On an error the stream is as it was, and each element of the output has its old value or the
 * result. If an enqueued command fails later, the pushes behind it fail, too, until a reset.
 * Returns what tconv_layer_run returns; TCONV_ERROR_ARGUMENT after a flush. */
TCONV_API tconv_status tconv_stream_push(tconv_stream *stream, int64_t columns,
                                         const tconv_tensors *tensors, const tconv_run *run,
                                         tconv_error *error);

/* Computes the output columns that are left when no more input comes. After it, only a reset, or a
 * flush of 0 columns, is taken. A stream without any input has no output. Otherwise as
 * tconv_stream_push, without data. */
TCONV_API tconv_status tconv_stream_flush(tconv_stream *stream, const tconv_tensors *tensors,
                                          const tconv_run *run, tconv_error *error);

/* Starts anew. With `columns` = 0 (`history` and `run` may be NULL) before the first input. Else as
 * if the `columns` input columns of `history` had been pushed and their outputs dropped; only the
 * last tconv_stream_info.history of them are read. `history` and `run` as for a push. On an error
 * the stream is as it was. */
TCONV_API tconv_status tconv_stream_reset(tconv_stream *stream, int64_t columns,
                                          const tconv_tensor *history, const tconv_run *run,
                                          tconv_error *error);

#ifdef __cplusplus
}
#endif

#endif
