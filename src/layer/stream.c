/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: what they take, which outputs belong to which columns, and with which algorithm. A push
 * is a run of the layer in a window of a problem whose data are `reach` columns of history and the
 * chunk. The window begins behind the outputs that the pad reaches, at the same phase for all
 * pushes, so that the plan depends on the chunk's length alone. The first pushes have the problem's
 * own begin, the flush its own end. */
#include "layer/stream_internal.h"

#include "base/cancel.h"
#include "base/error.h"
#include "base/process.h"
#include "base/struct_size.h"
#include "base/view.h"

#include <inttypes.h>
#include <stdlib.h>

enum { USUAL_COLUMNS = 100 }; /* of a push whose length is unknown; also 1 and 10 */

/* ---- geometry ---- */

static int64_t *columns_of(tconv_problem *problem)
{
    return &problem->data.dim[tconv_channels_axis(problem) == 1 ? 2 : 1];
}

static int64_t all_outputs(const tconv_stream *s, int64_t columns)
{
    return columns == 0 ? 0 : tconv_max(columns * s->stride + s->extra, 0);
}

/* Resolves the problem for the least power of two of columns that has an output. */
static tconv_status resolve(tconv_problem *problem, tconv_geometry *geometry, tconv_error *error)
{
    int64_t *const columns = columns_of(problem);
    tconv_status status = TCONV_OK;
    for (*columns = 1; *columns <= INT64_C(1) << 40; *columns *= 2)
        if ((status = tconv_resolve(problem, geometry, error)) != TCONV_ERROR_SHAPE &&
            status != TCONV_ERROR_ATTRIBUTE)
            break;
    return status;
}

/* Refuses what a stream cannot have. A filter may have steps: it is packed as for any layer. */
static tconv_status check_problem(const tconv_problem *p, const tconv_plan_options *options,
                                  tconv_error *error)
{
    const char *steps = p->data_steps.count != 0       ? "data_steps"
                        : p->output_steps.count != 0   ? "output_steps"
                        : p->residual_steps.count != 0 ? "residual_steps"
                                                       : NULL;
    if (p->data.rank != 3)
        return tconv_fail(
            error, TCONV_ERROR_UNSUPPORTED,
            "the data of a stream have rank %d: it must be 3, batch, channels and one "
            "spatial axis",
            p->data.rank);
    if (p->output_shape.count != 0)
        return tconv_fail(error, TCONV_ERROR_UNSUPPORTED,
                          "output_shape is given, but the outputs of a stream follow from its "
                          "inputs: leave it out");
    if (steps != NULL)
        return tconv_fail(error, TCONV_ERROR_UNSUPPORTED,
                          "%s is given, but tensors of a stream are dense: leave it out", steps);
    if (options->output_begin != 0 || options->output_end != 0)
        return tconv_fail(error, TCONV_ERROR_UNSUPPORTED,
                          "options have a window, output rows %" PRId64 " to %" PRId64
                          ", but a stream has all outputs: leave it out",
                          options->output_begin, options->output_end);
    return TCONV_OK;
}

/* Sets the numbers of the stream that follow from its problem. */
static tconv_status read_problem(tconv_stream *s, tconv_error *error)
{
    tconv_geometry next = TCONV_GEOMETRY_INIT, *g = &s->geometry;
    tconv_status status;
    *g = (tconv_geometry)TCONV_GEOMETRY_INIT;
    if ((status = check_problem(&s->problem, &s->options, error)) != TCONV_OK ||
        (status = resolve(&s->problem, g, error)) != TCONV_OK)
        return status;
    tconv_problem longer = s->problem;
    ++*columns_of(&longer);
    if ((status = tconv_resolve(&longer, &next, error)) != TCONV_OK) return status;
    s->stride = g->stride[0];
    if (next.pad_begin[0] != g->pad_begin[0] || next.output[0] - g->output[0] != s->stride)
        return tconv_fail(error, TCONV_ERROR_UNSUPPORTED,
                          "auto_pad %s: pads of a stream must not depend on its length; give "
                          "explicit pads",
                          tconv_auto_pad_name(s->problem.auto_pad));
    const int64_t span = g->dilation[0] * (g->kernel[0] - 1);
    s->extra = g->output[0] - *columns_of(&s->problem) * s->stride;
    s->lag = tconv_max(tconv_max(g->pad_begin[0], -s->extra), 0);
    s->kept = tconv_max(tconv_floor_div(s->lag - g->pad_begin[0] + span, s->stride), 1);
    s->reach = tconv_max(s->kept, tconv_ceil_div(s->lag, s->stride));
    const int64_t in = g->groups * g->group_in_channels, out = g->groups * g->group_out_channels;
    const bool nxc = g->data_format == TCONV_NXC;
    s->rows = nxc ? g->batch : g->batch * in;
    s->column = tconv_type_size(s->problem.data_type) * (size_t)(nxc ? in : 1);
    s->output_rows = nxc ? g->batch : g->batch * out;
    s->output_column = tconv_type_size(g->output_type) * (size_t)(nxc ? out : 1);
    s->most = INT64_MAX / 4 / s->stride - s->reach - s->lag;
    int64_t bytes;
    if (s->most < 0 || !tconv_mul(s->kept, (int64_t)s->column, &bytes) ||
        !tconv_mul(bytes, tconv_max(s->rows, 1), &bytes) || (uint64_t)bytes > SIZE_MAX / 4)
        return tconv_fail(error, TCONV_ERROR_SHAPE,
                          "a stream with kernel %" PRId64 " and dilation %" PRId64
                          " would keep %" PRId64 " columns, more than can be addressed",
                          g->kernel[0], g->dilation[0], s->kept);
    return TCONV_OK;
}

tconv_status tconv_stream_make_part(const tconv_stream *s, int64_t before, int64_t known,
                                    int64_t first, int64_t end, struct tconv_stream_part *part,
                                    tconv_error *error)
{
    const int64_t base = tconv_stream_base(s, before);
    tconv_geometry g = s->geometry;
    part->problem = s->problem;
    part->options = s->options;
    part->options.algorithm = s->algorithm;
    g.input[0] = known - base;
    g.output[0] = g.input[0] * s->stride + s->extra;
    *columns_of(&part->problem) = g.input[0];
    part->options.output_begin = first - base * s->stride;
    part->options.output_end = end - base * s->stride;
    return tconv_window_input(&g, part->options.output_begin, part->options.output_end,
                              &part->data[0], &part->data[1], error);
}

/* ---- making and releasing a stream ---- */

/* The parts for which an algorithm is chosen: usual pushes in the middle of a stream, the longest
 * last, then the first push and the flush of the shortest stream. */
struct parts {
    int count, usual;
    struct tconv_stream_part list[TCONV_STEADY_CASES];
};

static tconv_status add_part(const tconv_stream *s, struct parts *parts, int64_t before,
                             int64_t known, int64_t end, tconv_error *error)
{
    const int64_t first = tconv_stream_final_outputs(s, before);
    if (end <= first) return TCONV_OK; /* it has no outputs */
    return tconv_stream_make_part(s, before, known, first, end, &parts->list[parts->count++],
                                  error);
}

static tconv_status list_parts(const tconv_stream *s, int64_t columns, struct parts *parts,
                               tconv_error *error)
{
    const int64_t lengths[] = {1, 10, USUAL_COLUMNS}, middle = 2 * s->reach;
    const int64_t least = s->lag / s->stride + 1; /* with an output */
    tconv_status status = TCONV_OK;
    parts->count = 0;
    for (int i = columns > 0 ? 2 : 0; i < 3 && status == TCONV_OK; i++) {
        const int64_t known = middle + (columns > 0 ? columns : lengths[i]);
        status = add_part(s, parts, middle, known, tconv_stream_final_outputs(s, known), error);
    }
    parts->usual = parts->count;
    if (status == TCONV_OK)
        status = add_part(s, parts, 0, least, tconv_stream_final_outputs(s, least), error);
    if (status == TCONV_OK) status = add_part(s, parts, least, least, all_outputs(s, least), error);
    return status;
}

/* Makes the plan of the longest usual push, which the layer keeps. */
static tconv_status make_usual_plan(tconv_stream *s, const struct tconv_stream_part *part,
                                    tconv_error *error)
{
    tconv_plan *plan = NULL;
    const tconv_status status =
        tconv_layer_plan(s->layer, &part->problem, &part->options, &plan, error);
    tconv_plan_release(plan);
    return status;
}

static tconv_status choose_algorithm(tconv_stream *s, const struct parts *parts, tconv_error *error)
{
    tconv_problem problems[TCONV_STEADY_CASES];
    tconv_plan_options options[TCONV_STEADY_CASES];
    tconv_error own;
    tconv_status status;
    unsigned excluded = 0;
    int index = 0;
    for (int i = 0; i < parts->count; i++) {
        problems[i] = parts->list[i].problem;
        options[i] = parts->list[i].options;
        options[i].algorithm = s->options.algorithm;
    }
    for (;;) {
        status = tconv_steady_choose(s->layer->keep[0].device, problems, options, parts->count,
                                     parts->usual, excluded, s->algorithm, &index, &own);
        if (status == TCONV_OK) status = make_usual_plan(s, &parts->list[parts->usual - 1], &own);
        if (status == TCONV_OK || !tconv_steady_may_try_another(&own) ||
            (excluded >> index & 1) != 0)
            break;
        excluded |= 1u << index;
    }
    return status == TCONV_OK ? TCONV_OK : tconv_fail_with(error, &own);
}

/* Takes the algorithm of the layer's filter, or chooses one. */
static tconv_status find_algorithm(tconv_stream *s, int64_t columns, tconv_error *error)
{
    struct parts parts;
    tconv_status status = list_parts(s, columns, &parts, error);
    if (status != TCONV_OK) return status;
    struct tconv_kept_filter *set = tconv_keep_take_set(&s->layer->keep[0]);
    if (set == NULL) return choose_algorithm(s, &parts, error);
    const bool steady = tconv_plan_steady(set->plan, s->algorithm);
    if (!steady)
        status = tconv_fail(error, TCONV_ERROR_MISMATCH,
                            "the layer's filter is packed for %s, which adds products up in an "
                            "order that depends on where an output is: name another algorithm in "
                            "tconv_layer_set, or make the stream before",
                            tconv_plan_algorithm(set->plan));
    tconv_kept_filter_release(set);
    return status == TCONV_OK ? make_usual_plan(s, &parts.list[parts.usual - 1], error) : status;
}

tconv_status tconv_stream_create(tconv_layer *layer, const tconv_problem *problem,
                                 const tconv_plan_options *options,
                                 const tconv_stream_options *streaming, tconv_stream **out,
                                 tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (layer == NULL || problem == NULL || out == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          layer == NULL     ? "layer"
                          : problem == NULL ? "problem"
                                            : "out");
    tconv_stream_options own = TCONV_STREAM_OPTIONS_INIT;
    tconv_status status;
    if ((status = tconv_struct_read(TCONV_SIZED_STREAM_OPTIONS, streaming, &own, error)) !=
            TCONV_OK ||
        (status = tconv_process_enter(error)) != TCONV_OK)
        return status;
    if (layer->device_count != 1)
        return tconv_fail(error, TCONV_ERROR_UNSUPPORTED,
                          "the layer has %d devices: the outputs of a stream come from one",
                          layer->device_count);
    tconv_stream *s = calloc(1, sizeof *s);
    if (s == NULL) return tconv_fail_memory(error, sizeof *s, "making a stream");
    s->layer = layer;
    s->problem = (tconv_problem)TCONV_PROBLEM_INIT;
    s->options = (tconv_plan_options)TCONV_PLAN_OPTIONS_INIT;
    if ((status = tconv_struct_read(TCONV_SIZED_PROBLEM, problem, &s->problem, error)) ==
            TCONV_OK &&
        (status = tconv_struct_read(TCONV_SIZED_PLAN_OPTIONS, options, &s->options, error)) ==
            TCONV_OK &&
        (status = read_problem(s, error)) == TCONV_OK) {
        if (own.columns < 0 || own.columns > s->most / 2)
            status = tconv_fail(error, TCONV_ERROR_ARGUMENT,
                                "streaming.columns is %" PRId64 ": it must be 0 to %" PRId64,
                                own.columns, s->most / 2);
        else
            status = find_algorithm(s, own.columns, error);
    }
    if (status != TCONV_OK) {
        free(s);
        return status;
    }
    s->options.algorithm = NULL; /* the caller's, and the stream has its own */
    *out = s;
    return TCONV_OK;
}

void tconv_stream_free(struct tconv_stream_memory *m)
{
    free(m->host);
    if (m->buffer != NULL) clReleaseMemObject(m->buffer);
    *m = (struct tconv_stream_memory){.host = NULL};
}

void tconv_stream_forget_last(tconv_stream *s)
{
    if (s->last != NULL) clReleaseEvent(s->last);
    s->last = NULL;
}

void tconv_stream_forget(tconv_stream *s)
{
    tconv_stream_free(&s->history[0]);
    tconv_stream_free(&s->history[1]);
    tconv_stream_free(&s->joined);
    tconv_stream_forget_last(s);
    s->place = TCONV_STREAM_NOWHERE;
}

void tconv_stream_release(tconv_stream *stream)
{
    TCONV_WITHOUT_CANCELLATION;
    if (stream == NULL || tconv_process_forked()) return;
    tconv_stream_forget(stream);
    free(stream);
}

/* ---- what it tells ---- */

const char *tconv_stream_algorithm(const tconv_stream *stream)
{
    return stream == NULL ? NULL : stream->algorithm;
}

int64_t tconv_stream_outputs(const tconv_stream *stream, int64_t columns)
{
    if (stream == NULL || stream->flushed) return 0;
    if (columns == TCONV_STREAM_FLUSH)
        return tconv_max(all_outputs(stream, stream->pushed) - stream->returned, 0);
    if (columns < 0 || columns > stream->most - stream->pushed) return 0;
    return tconv_max(
        tconv_stream_final_outputs(stream, stream->pushed + columns) - stream->returned, 0);
}

tconv_status tconv_stream_describe(const tconv_stream *stream, tconv_stream_info *info,
                                   tconv_error *error)
{
    if (stream == NULL || info == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          stream == NULL ? "stream" : "info");
    const tconv_status status = tconv_struct_check(TCONV_SIZED_STREAM_INFO, info, error);
    if (status != TCONV_OK) return status;
    tconv_stream_info own = TCONV_STREAM_INFO_INIT;
    own.pushed = stream->pushed;
    own.returned = stream->returned;
    own.stride = stream->stride;
    own.lag = stream->lag;
    own.history = stream->kept;
    own.bytes = stream->history[0].bytes + stream->history[1].bytes + stream->joined.bytes;
    tconv_struct_write(TCONV_SIZED_STREAM_INFO, &own, info);
    return TCONV_OK;
}
