/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes to streams: the memory of their columns, and the commands of each call. History and the
 * begin of the chunk are copied into one tensor. Columns that only outputs of the chunk alone need
 * are read where they are, if the chunk is long. */
#include "layer/stream_internal.h"

#include "base/cancel.h"
#include "base/error.h"
#include "base/process.h"
#include "base/struct_size.h"
#include "device/events.h"
#include "plan/place.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { COPIED = 1 << 18 }; /* bytes of the longest chunk that is copied whole */

/* One call on a stream. */
struct push {
    tconv_stream *stream;
    int64_t columns;
    tconv_tensors tensors;
    tconv_run run;
    int64_t outputs; /* columns */
    cl_event before; /* the last command of this push; NULL: none yet */
};

/* ---- memory ---- */

/* Where a run computes. */
static enum tconv_stream_place place_of(const tconv_run *run)
{
    return run->queue != NULL ? TCONV_STREAM_DEVICE : TCONV_STREAM_HOST;
}

/* Makes memory of at least `bytes` instead of what was there, whose contents are lost. */
static tconv_status need(const tconv_stream *s, enum tconv_stream_place place,
                         struct tconv_stream_memory *m, uint64_t bytes, tconv_error *error)
{
    if (m->bytes >= bytes) return TCONV_OK;
    struct tconv_stream_memory made = {.bytes = (size_t)bytes};
    cl_int code = CL_SUCCESS;
    if (bytes > SIZE_MAX / 2)
        return tconv_fail(error, TCONV_ERROR_SHAPE,
                          "a chunk needs a buffer of %" PRIu64
                          " bytes, more than can be addressed: push fewer columns",
                          bytes);
    if (place == TCONV_STREAM_HOST)
        made.host = malloc(made.bytes);
    else
        made.buffer = clCreateBuffer(tconv_device_context(s->layer->keep[0].device),
                                     CL_MEM_READ_WRITE, made.bytes, NULL, &code);
    if (place == TCONV_STREAM_HOST && made.host == NULL)
        return tconv_fail_memory(error, made.bytes, "keeping columns of a stream");
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clCreateBuffer",
                                 "creating a buffer of %" PRIu64 " bytes for columns of a stream",
                                 bytes);
    tconv_stream_free(m);
    *m = made;
    return TCONV_OK;
}

/* ---- commands ---- */

/* Columns of a tensor or of the stream's memory, whose rows have `pitch` of them. */
struct columns {
    char *host;
    cl_mem buffer;
    size_t offset;
    int64_t pitch, first;
};

static struct columns columns_in(const struct tconv_stream_memory *m, int64_t pitch, int64_t first)
{
    return (struct columns){m->host, m->buffer, 0, pitch, first};
}

static struct columns columns_at(const tconv_tensor *t, int64_t pitch, int64_t first)
{
    return (struct columns){(char *)(uintptr_t)t->host, t->memory, t->offset, pitch, first};
}

/* What the next command of a push waits for: the one before it, or the caller's events and the
 * commands of earlier pushes. */
static tconv_status find_waits(const struct push *p, struct tconv_waits *waits, tconv_error *error)
{
    const tconv_stream *s = p->stream;
    if (p->before != NULL) return tconv_waits_join(0, NULL, 1, &p->before, waits, error);
    return tconv_waits_join(p->run.wait_count, p->run.wait, s->last != NULL, &s->last, waits,
                            error);
}

static void next_is_behind(struct push *p, cl_event event)
{
    if (p->before != NULL) clReleaseEvent(p->before);
    p->before = event;
}

static tconv_status copy_on_device(struct push *p, const struct columns *from,
                                   const struct columns *to, int64_t count, tconv_error *error)
{
    const size_t column = p->stream->column;
    const size_t region[] = {(size_t)count * column, (size_t)p->stream->rows, 1};
    const size_t from_row = (size_t)from->pitch * column, to_row = (size_t)to->pitch * column;
    const size_t from_begin = from->offset + (size_t)from->first * column,
                 to_begin = to->offset + (size_t)to->first * column;
    struct tconv_waits waits;
    const tconv_status status = find_waits(p, &waits, error);
    if (status != TCONV_OK) return status;
    /* Of an origin only the first number, in bytes, may exceed a row. */
    const size_t from_at[] = {from_begin % from_row, from_begin / from_row, 0};
    const size_t to_at[] = {to_begin % to_row, to_begin / to_row, 0};
    cl_event done;
    const cl_int code = clEnqueueCopyBufferRect(p->run.queue, from->buffer, to->buffer, from_at,
                                                to_at, region, from_row, 0, to_row, 0, waits.count,
                                                waits.list, &done);
    free(waits.own);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clEnqueueCopyBufferRect",
                                 "copying columns of a stream");
    next_is_behind(p, done);
    return TCONV_OK;
}

/* Copies `bytes` of each row: a few of each of many rows, if the chunk is short. A size that the
 * compiler knows takes a fifth of the time of a call. */
static void copy_rows(int64_t rows, size_t bytes, const char *from, size_t from_row, char *to,
                      size_t to_row)
{
#define COPY_ROWS(size)                                                                            \
    for (int64_t row = 0; row < rows; row++, from += from_row, to += to_row) memcpy(to, from, size)
    switch (bytes) {
    case 2: COPY_ROWS(2); break;
    case 4: COPY_ROWS(4); break;
    case 8: COPY_ROWS(8); break;
    default: COPY_ROWS(bytes);
    }
#undef COPY_ROWS
}

/* Copies `count` columns of all rows. */
static tconv_status copy(struct push *p, struct columns from, struct columns to, int64_t count,
                         tconv_error *error)
{
    const tconv_stream *s = p->stream;
    if (count <= 0 || s->rows == 0 || s->column == 0) return TCONV_OK;
    if (p->run.queue != NULL) return copy_on_device(p, &from, &to, count, error);
    const size_t from_row = (size_t)from.pitch * s->column, to_row = (size_t)to.pitch * s->column;
    const char *source = from.host + from.offset + (size_t)from.first * s->column;
    char *target = to.host + to.offset + (size_t)to.first * s->column;
    copy_rows(s->rows, (size_t)count * s->column, source, from_row, target, to_row);
    return TCONV_OK;
}

/* Runs the stream's call, whose outputs begin with `first` and whose data are in `data`. */
static tconv_status run_part(struct push *p, int64_t first, const tconv_tensor *data,
                             tconv_error *error)
{
    tconv_stream *s = p->stream;
    struct tconv_call *call = &s->part.call;
    tconv_tensors tensors = p->tensors;
    tconv_run run = p->run;
    const size_t offset = (size_t)(first - s->returned) * s->output_column;
    tconv_status status;
    tensors.data = *data;
    tensors.output.offset += offset;
    if (tconv_is_given(&tensors.residual)) tensors.residual.offset += offset;
    if (run.queue == NULL)
        return (status = tconv_call_set(call, &tensors, &run, error)) != TCONV_OK
                   ? status
                   : tconv_layer_run_call(s->layer, call, error);
    struct tconv_waits waits;
    if ((status = find_waits(p, &waits, error)) != TCONV_OK) return status;
    cl_event done = NULL;
    run.wait_count = waits.count;
    run.wait = waits.list;
    run.done = &done;
    if ((status = tconv_call_set(call, &tensors, &run, error)) == TCONV_OK)
        status = tconv_layer_run_call(s->layer, call, error);
    free(waits.own);
    if (status == TCONV_OK) next_is_behind(p, done);
    return status;
}

/* Steps of a dense tensor of `pitch` columns, of which the problem's has a part. */
static tconv_steps steps_of(const tconv_geometry *g, int64_t channels, int64_t pitch)
{
    const bool nxc = g->data_format == TCONV_NXC;
    tconv_steps steps = {3, {channels * pitch, nxc ? channels : pitch, 1}};
    return steps;
}

/* Sets the stream's call to that of a part, which tconv_stream_make_part makes. Mostly it is that
 * of the push before, and stays. */
static tconv_status make_call(const struct push *p, int64_t before, int64_t known, int64_t first,
                              int64_t end, tconv_error *error)
{
    tconv_stream *s = p->stream;
    const tconv_geometry *g = &s->geometry;
    const int64_t in = g->groups * g->group_in_channels, out = g->groups * g->group_out_channels;
    const int64_t base = tconv_stream_base(s, before);
    const struct tconv_stream_window window = {known - base,
                                               first - base * s->stride,
                                               end - base * s->stride,
                                               s->pushed - base,
                                               p->columns,
                                               p->outputs};
    if (memcmp(&window, &s->part.window, sizeof window) == 0) return TCONV_OK;
    struct tconv_stream_part part;
    tconv_status status = tconv_stream_make_part(s, before, known, first, end, &part, error);
    if (status != TCONV_OK) return status;
    if (end - first != p->outputs) {
        part.problem.output_steps = steps_of(g, out, p->outputs);
        if (s->options.epilogue.residual) part.problem.residual_steps = part.problem.output_steps;
    }
    if (part.data[0] >= window.pushed && part.data[1] - part.data[0] != p->columns)
        part.problem.data_steps = steps_of(g, in, p->columns);
    memset(&s->part.window, 0, sizeof s->part.window);
    status = tconv_call_read(&part.problem, &part.options, NULL, NULL, &s->part.call, error);
    if (status != TCONV_OK) return status;
    s->part.window = window;
    memcpy(s->part.data, part.data, sizeof part.data);
    return TCONV_OK;
}

/* Computes a part: from the chunk in place, or from history and chunk, joined. */
static tconv_status compute_part(struct push *p, int64_t before, int64_t known, int64_t first,
                                 int64_t end, tconv_error *error)
{
    tconv_stream *s = p->stream;
    tconv_status status = make_call(p, before, known, first, end, error);
    if (status != TCONV_OK) return status;
    const int64_t begin = s->part.data[0], now = s->part.window.pushed;
    const int64_t wanted = s->part.data[1] - begin;
    tconv_tensor data = p->tensors.data;
    if (begin >= now) {
        data.offset += (size_t)(begin - now) * s->column;
        return run_part(p, first, &data, error);
    }
    const int64_t old = tconv_min(s->part.data[1], now) - begin, fresh = wanted - old;
    /* At most the bytes of the chunk, which check_tensor has counted, and of the history. */
    const uint64_t bytes = (uint64_t)s->rows * s->column * (uint64_t)wanted;
    if ((status = need(s, s->place, &s->joined, bytes, error)) != TCONV_OK ||
        (status = copy(p, columns_in(&s->history[s->current], s->kept, s->kept - (now - begin)),
                       columns_in(&s->joined, wanted, 0), old, error)) != TCONV_OK ||
        (status = copy(p, columns_at(&p->tensors.data, p->columns, 0),
                       columns_in(&s->joined, wanted, old), fresh, error)) != TCONV_OK)
        return status;
    data = (tconv_tensor){s->joined.buffer, 0, NULL, s->joined.host};
    return run_part(p, first, &data, error);
}

/* The buffer that a buffer is a part of: itself, if it is no part. */
static cl_mem whole_buffer(cl_mem buffer)
{
    cl_mem whole = NULL;
    const cl_int code =
        clGetMemObjectInfo(buffer, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof whole, &whole, NULL);
    return code == CL_SUCCESS && whole != NULL ? whole : buffer;
}

/* True if the output may overlap an input, so that no part of it must be stored before all of the
 * input is read. */
static bool may_overlap(const struct push *p, const tconv_tensor *input, int64_t rows,
                        int64_t columns, size_t column)
{
    const tconv_stream *s = p->stream;
    const tconv_tensor *output = &p->tensors.output;
    const uint64_t bytes = (uint64_t)rows * (uint64_t)columns * column;
    const uint64_t stored = (uint64_t)s->output_rows * (uint64_t)p->outputs * s->output_column;
    if (bytes == 0 || stored == 0) return false;
    if (input->memory != NULL) return whole_buffer(input->memory) == whole_buffer(output->memory);
    const uintptr_t from = (uintptr_t)input->host + input->offset;
    const uintptr_t to = (uintptr_t)output->host + output->offset;
    return from < to ? to - from < bytes : from - to < stored;
}

/* The same of chunk and residual. Of a residual that begins where the output does, each part reads
 * only what it stores itself. */
static bool reads_output(const struct push *p)
{
    const tconv_stream *s = p->stream;
    const tconv_tensor *residual = &p->tensors.residual, *output = &p->tensors.output;
    const bool same = residual->memory == output->memory && residual->host == output->host &&
                      residual->offset == output->offset;
    return may_overlap(p, &p->tensors.data, s->rows, p->columns, s->column) ||
           (s->options.epilogue.residual && !same &&
            may_overlap(p, residual, s->output_rows, p->outputs, s->output_column));
}

/* Computes the outputs of a push or flush. */
static tconv_status compute(struct push *p, tconv_error *error)
{
    const tconv_stream *s = p->stream;
    const int64_t before = s->pushed, known = before + p->columns;
    const int64_t end = s->returned + p->outputs;
    const bool is_long = before >= s->kept && p->columns > 2 * s->kept &&
                         (uint64_t)p->columns >
                             (uint64_t)COPIED / (s->column * (size_t)tconv_max(s->rows, 1));
    const int64_t middle = tconv_stream_final_outputs(s, before + s->kept);
    if (p->outputs == 0) return TCONV_OK;
    if (!is_long || middle <= s->returned || middle >= end || reads_output(p))
        return compute_part(p, before, known, s->returned, end, error);
    /* The outputs behind `middle` read the chunk alone. */
    const tconv_status status =
        compute_part(p, before, before + s->kept, s->returned, middle, error);
    return status == TCONV_OK ? compute_part(p, before + s->kept, known, middle, end, error)
                              : status;
}

/* Copies the last columns, of the chunk and before it, to the other history. */
static tconv_status keep_columns(struct push *p, int64_t before, tconv_error *error)
{
    tconv_stream *s = p->stream;
    const struct tconv_stream_memory *from = &s->history[s->current];
    const struct tconv_stream_memory *to = &s->history[1 - s->current];
    const struct columns chunk =
        columns_at(&p->tensors.data, p->columns, tconv_max(p->columns - s->kept, 0));
    const int64_t fresh = tconv_min(p->columns, s->kept);
    const int64_t old = tconv_min(before, s->kept - fresh);
    tconv_status status = copy(p, columns_in(from, s->kept, s->kept - old),
                               columns_in(to, s->kept, s->kept - fresh - old), old, error);
    if (status == TCONV_OK)
        status = copy(p, chunk, columns_in(to, s->kept, s->kept - fresh), fresh, error);
    return status;
}

/* ---- calls ---- */

/* Refuses tensors that are not where the run computes, or a buffer that is too short for `bytes`.
 */
static tconv_status check_tensor(const struct push *p, const char *name, const tconv_tensor *t,
                                 int64_t rows, int64_t columns, size_t column, tconv_error *error)
{
    uint64_t bytes;
    size_t size = 0;
    if (rows == 0 || columns == 0) return TCONV_OK;
    if (!tconv_is_given(t))
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "tensors.%s is absent: it has %" PRId64 " columns", name, columns);
    if (t->pointer != NULL)
        return tconv_fail(error, TCONV_ERROR_UNSUPPORTED,
                          "tensors.%s is a pointer: a stream takes buffers and arrays of the host",
                          name);
    if ((p->run.queue != NULL) != (t->memory != NULL) || (t->memory != NULL && t->host != NULL))
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          p->run.queue != NULL
                              ? "the push has a queue, but tensors.%s is no buffer"
                              : "the push has no queue, but tensors.%s is no array of the host",
                          name);
    if (__builtin_mul_overflow((uint64_t)rows * column, (uint64_t)columns, &bytes) ||
        bytes > SIZE_MAX / 2)
        return tconv_fail(error, TCONV_ERROR_SHAPE,
                          "tensors.%s has %" PRId64
                          " columns, more than can be addressed: push fewer",
                          name, columns);
    if (t->memory == NULL) return TCONV_OK;
    const cl_int code = clGetMemObjectInfo(t->memory, CL_MEM_SIZE, sizeof size, &size, NULL);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clGetMemObjectInfo",
                                 "asking for the size of "
                                 "tensors.%s",
                                 name);
    if (t->offset <= size && bytes <= size - t->offset) return TCONV_OK;
    return tconv_fail(error, TCONV_ERROR_BUFFER,
                      "tensors.%s has %" PRIu64 " bytes from offset %" PRIu64
                      " on, but its buffer has %" PRIu64,
                      name, bytes, (uint64_t)t->offset, (uint64_t)size);
}

static tconv_status check_run(const tconv_stream *s, const tconv_run *run, tconv_error *error)
{
    const char *given = run->progress != NULL    ? "progress"
                        : run->memory_limit != 0 ? "memory_limit"
                                                 : NULL;
    const enum tconv_stream_place place = place_of(run);
    if (given != NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "run.%s is given, but a push is not divided: leave it out", given);
    const tconv_status status = place == TCONV_STREAM_HOST
                                    ? tconv_run_check_without_queue(run, error)
                                    : tconv_check_wait_list(run->wait_count, run->wait, error);
    if (status != TCONV_OK) return status;
    if (s->place != TCONV_STREAM_NOWHERE && s->place != place)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "the stream computes %s a queue so far: reset it before a push %s one",
                          s->place == TCONV_STREAM_DEVICE ? "on" : "without",
                          place == TCONV_STREAM_DEVICE ? "on" : "without");
    return TCONV_OK;
}

/* Ends a push that enqueued commands, also one that failed: later ones wait for them. */
static tconv_status end_commands(struct push *p, tconv_status status, tconv_error *error)
{
    tconv_stream *s = p->stream;
    if (p->run.queue == NULL) return status;
    if (p->before == NULL && status == TCONV_OK && p->run.done != NULL) {
        /* There was nothing to do, but there is an order to keep. */
        struct tconv_waits waits;
        status = find_waits(p, &waits, error);
        if (status != TCONV_OK) return status;
        const cl_int code =
            clEnqueueMarkerWithWaitList(p->run.queue, waits.count, waits.list, p->run.done);
        free(waits.own);
        return code == CL_SUCCESS ? TCONV_OK
                                  : tconv_fail_opencl(error, code, "clEnqueueMarkerWithWaitList",
                                                      "enqueueing an empty push of a stream");
    }
    if (p->before == NULL) return status;
    if (status == TCONV_OK && p->run.done != NULL) {
        const cl_int code = clRetainEvent(p->before);
        if (code == CL_SUCCESS)
            *p->run.done = p->before;
        else
            status = tconv_fail_opencl(error, code, "clRetainEvent", "pushing to a stream");
    }
    tconv_stream_forget_last(s);
    s->last = p->before;
    return status;
}

/* Reads the arguments of a call. */
static tconv_status begin(tconv_stream *s, int64_t columns, const tconv_tensors *tensors,
                          const tconv_run *run, struct push *p, tconv_error *error)
{
    tconv_status status;
    *p = (struct push){
        .stream = s, .columns = columns, .tensors = TCONV_TENSORS_INIT, .run = TCONV_RUN_INIT};
    if (columns < 0 || columns > s->most - s->pushed)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "columns is %" PRId64 ": it must be 0 to %" PRId64, columns,
                          s->most - s->pushed);
    if ((status = tconv_struct_read(TCONV_SIZED_TENSORS, tensors, &p->tensors, error)) !=
            TCONV_OK ||
        (status = tconv_struct_read(TCONV_SIZED_RUN, run, &p->run, error)) != TCONV_OK)
        return status;
    return tconv_process_enter(error);
}

/* Makes both histories, where the run computes. */
static tconv_status place_history(struct push *p, tconv_error *error)
{
    tconv_stream *s = p->stream;
    const enum tconv_stream_place place = place_of(&p->run);
    const uint64_t bytes = (uint64_t)tconv_max(s->rows, 1) * s->column * (uint64_t)s->kept;
    tconv_status status = TCONV_OK;
    for (int i = 0; i < 2 && status == TCONV_OK; i++)
        status = need(s, place, &s->history[i], bytes, error);
    if (status == TCONV_OK)
        s->place = place;
    else if (s->place == TCONV_STREAM_NOWHERE)
        tconv_stream_forget(s);
    return status;
}

/* Computes the next outputs, and takes the columns in. */
static tconv_status push_or_flush(struct push *p, int64_t outputs, tconv_error *error)
{
    tconv_stream *s = p->stream;
    const bool was_nowhere = s->place == TCONV_STREAM_NOWHERE;
    tconv_status status;
    p->outputs = outputs;
    if ((status = check_run(s, &p->run, error)) != TCONV_OK ||
        (status = check_tensor(p, "data", &p->tensors.data, s->rows, p->columns, s->column,
                               error)) != TCONV_OK ||
        (status = check_tensor(p, "output", &p->tensors.output, s->output_rows, p->outputs,
                               s->output_column, error)) != TCONV_OK ||
        (s->options.epilogue.residual &&
         (status = check_tensor(p, "residual", &p->tensors.residual, s->output_rows, p->outputs,
                                s->output_column, error)) != TCONV_OK) ||
        (status = place_history(p, error)) != TCONV_OK)
        return status;
    status = p->columns == 0 ? TCONV_OK : keep_columns(p, s->pushed, error);
    if (status == TCONV_OK) status = compute(p, error);
    status = end_commands(p, status, error);
    if (status != TCONV_OK) {
        if (was_nowhere && s->last == NULL) tconv_stream_forget(s);
        return status;
    }
    if (p->columns > 0) s->current = 1 - s->current;
    s->pushed += p->columns;
    s->returned += outputs;
    return TCONV_OK;
}

static tconv_status refuse_null(const tconv_stream *stream, tconv_error *error)
{
    return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                      stream == NULL ? "stream" : "tensors");
}

tconv_status tconv_stream_push(tconv_stream *stream, int64_t columns, const tconv_tensors *tensors,
                               const tconv_run *run, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    struct push p;
    if (stream == NULL || tensors == NULL) return refuse_null(stream, error);
    const tconv_status status = begin(stream, columns, tensors, run, &p, error);
    if (status != TCONV_OK) return status;
    if (stream->flushed)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "the stream was flushed: reset it before the next push");
    return push_or_flush(&p, tconv_stream_outputs(stream, columns), error);
}

tconv_status tconv_stream_flush(tconv_stream *stream, const tconv_tensors *tensors,
                                const tconv_run *run, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    struct push p;
    if (stream == NULL || tensors == NULL) return refuse_null(stream, error);
    tconv_status status = begin(stream, 0, tensors, run, &p, error);
    if (status != TCONV_OK) return status;
    status = push_or_flush(&p, tconv_stream_outputs(stream, TCONV_STREAM_FLUSH), error);
    if (status == TCONV_OK) stream->flushed = true;
    return status;
}

tconv_status tconv_stream_reset(tconv_stream *stream, int64_t columns, const tconv_tensor *history,
                                const tconv_run *run, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (stream == NULL) return refuse_null(NULL, error);
    tconv_stream fresh = *stream; /* which becomes the stream, on success */
    struct push p;
    tconv_tensors tensors = TCONV_TENSORS_INIT;
    fresh.pushed = fresh.returned = 0;
    fresh.flushed = false;
    fresh.place = TCONV_STREAM_NOWHERE;
    memset(fresh.history, 0, sizeof fresh.history);
    fresh.joined = (struct tconv_stream_memory){.host = NULL};
    fresh.last = NULL;
    if (history != NULL) tensors.data = *history;
    tconv_status status = begin(&fresh, columns, &tensors, run, &p, error);
    if (status != TCONV_OK) return status;
    if (columns == 0) {
        /* Memory stays, but not what failed: the commands of a push may still use it. */
        cl_int state = CL_COMPLETE;
        if (stream->last != NULL &&
            (tconv_event_state(stream->last, &state) != CL_SUCCESS || state < 0))
            tconv_stream_forget(stream);
        stream->pushed = stream->returned = 0;
        stream->flushed = false;
        if (stream->place != TCONV_STREAM_NOWHERE && run != NULL &&
            stream->place != place_of(&p.run))
            tconv_stream_forget(stream);
        return TCONV_OK;
    }
    if ((status = check_run(&fresh, &p.run, error)) != TCONV_OK ||
        (status = check_tensor(&p, "data", &p.tensors.data, fresh.rows, columns, fresh.column,
                               error)) != TCONV_OK ||
        (status = place_history(&p, error)) != TCONV_OK)
        return status;
    status = end_commands(&p, keep_columns(&p, 0, error), error);
    if (status != TCONV_OK) {
        tconv_stream_forget(&fresh);
        return status;
    }
    fresh.current = 1 - fresh.current;
    fresh.pushed = columns;
    fresh.returned = tconv_stream_final_outputs(&fresh, columns);
    tconv_stream_forget(stream);
    *stream = fresh;
    return TCONV_OK;
}
