/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a stream, and the functions of stream.c that pushes (push.c) call. */
#ifndef TCONV_LAYER_STREAM_INTERNAL_H
#define TCONV_LAYER_STREAM_INTERNAL_H

#include "layer/layer_internal.h"

#include "base/checked.h"
#include "plan/steady.h"
#include "tconv_cl/stream.h"

/* Where the columns are; of a stream that has none yet, nowhere. */
enum tconv_stream_place { TCONV_STREAM_NOWHERE, TCONV_STREAM_HOST, TCONV_STREAM_DEVICE };

/* Memory of the stream: an array of the host, or a buffer. */
struct tconv_stream_memory {
    char *host;
    cl_mem buffer;
    size_t bytes;
};

/* What the call of a part depends on, beside the stream: columns and outputs from the first column
 * of the part's problem on. */
struct tconv_stream_window {
    int64_t columns, first, end, pushed; /* of the problem, its window, those of earlier pushes */
    int64_t chunk, outputs;              /* of the push */
};

/* The call of the last part, whose tensors change from push to push. To make its key, the problem
 * is resolved, which takes longer than the rest of a short push. */
struct tconv_stream_call {
    struct tconv_stream_window window; /* zeros: there is none yet */
    int64_t data[2];                   /* the first and the end of its inputs, counted likewise */
    struct tconv_call call;
};

struct tconv_stream {
    tconv_layer *layer;
    tconv_problem problem;
    tconv_plan_options options;
    char algorithm[TCONV_STEADY_TEXT];
    tconv_geometry geometry; /* of a problem with any extent */
    int64_t stride, lag;
    int64_t extra; /* T inputs have T * stride + extra outputs */
    int64_t kept;  /* columns of history */
    int64_t reach; /* columns before a push in its problem: its window does not begin before 0 */
    int64_t rows;  /* of a tensor's memory, each with all of its columns */
    int64_t most;  /* columns that a stream may have */
    size_t column; /* bytes of a column in a row */
    size_t output_column;
    int64_t output_rows;
    int64_t pushed, returned;
    bool flushed;
    enum tconv_stream_place place;
    /* `kept` columns a row, the last ones of the input at the end. */
    struct tconv_stream_memory history[2];
    int current; /* which of them */
    struct tconv_stream_memory joined;
    struct tconv_stream_call part;
    cl_event last; /* of the commands that were enqueued; NULL: none */
};

/* The output columns of all pushes after so many input columns. */
static inline int64_t tconv_stream_final_outputs(const tconv_stream *s, int64_t columns)
{
    return tconv_max(columns * s->stride - s->lag, 0);
}

/* The first column of the problem of a part behind `before` columns. */
static inline int64_t tconv_stream_base(const tconv_stream *s, int64_t before)
{
    return before < s->kept ? 0 : before - s->reach;
}

/* Outputs as a window of a problem. `data` are the first and the end of its inputs, counted from
 * the problem's first column on. */
struct tconv_stream_part {
    int64_t data[2];
    tconv_problem problem;
    tconv_plan_options options;
};

/* Makes the part of outputs [first, end) of a stream that has `known` columns, `before` of them
 * from earlier pushes. */
tconv_status tconv_stream_make_part(const tconv_stream *stream, int64_t before, int64_t known,
                                    int64_t first, int64_t end, struct tconv_stream_part *part,
                                    tconv_error *error);

/* The first frees memory, the second the event of the last command. The third does both for all
 * that the stream has, which then is nowhere. */
void tconv_stream_free(struct tconv_stream_memory *memory);
void tconv_stream_forget_last(tconv_stream *stream);
void tconv_stream_forget(tconv_stream *stream);

#endif
