/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: in any chunks, on queues and on arrays of the host, they give the bits of one run of the
 * whole input with their algorithm, which is compared with the oracle; weights with steps; what
 * pushes return when; memory that does not grow; infinite weights; streams that share a layer; and
 * wrong calls, after which a stream goes on as if they had not been. */
#include "base/view.h"

#include "known_layer.h"
#include "random_problem.h"
#include "sample.h"
#include "smoke.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- columns of tensors ---- */

/* How a tensor of a stream lies in memory: `rows`, each with all columns of `column` bytes. */
struct layout {
    int64_t rows, columns;
    size_t column;
};

static struct layout layout_of(const tconv_geometry *g, int64_t channels, int64_t columns,
                               size_t element)
{
    const bool nxc = g->data_format == TCONV_NXC;
    return (struct layout){nxc ? g->batch : g->batch * channels, columns,
                           element * (size_t)(nxc ? channels : 1)};
}

/* Copies `count` columns between a whole tensor and one that has only these. */
static void move_columns(const struct layout *whole, void *tensor, int64_t first, int64_t count,
                         void *part, bool out)
{
    for (int64_t row = 0; row < whole->rows; row++) {
        char *in_whole = (char *)tensor + (size_t)(row * whole->columns + first) * whole->column,
             *in_part = (char *)part + (size_t)(row * count) * whole->column;
        memcpy(out ? in_part : in_whole, out ? in_whole : in_part, (size_t)count * whole->column);
    }
}

/* ---- a stream under test ---- */

struct subject {
    const struct device *device;
    tconv_problem problem;
    tconv_plan_options options;
    struct tensors t;
    struct layout data, output;
    tconv_layer *layer;
    tconv_stream *stream;
    void *got;              /* the outputs so far */
    cl_command_queue queue; /* NULL: arrays of the host */
    int64_t returned;
};

static size_t bytes_of(const struct layout *l, int64_t columns)
{
    return (size_t)(l->rows * columns) * l->column;
}

static void make_subject(struct subject *s, const struct device *device, const tconv_problem *p,
                         const tconv_epilogue *epilogue, unsigned seed)
{
    memset(s, 0, sizeof *s);
    s->device = device;
    s->problem = *p;
    s->options = (tconv_plan_options)TCONV_PLAN_OPTIONS_INIT;
    make_tensors(p, REAL_NUMBERS, seed, &s->t);
    s->options.epilogue = *epilogue;
    tconv_epilogue without = *epilogue;
    without.bias = false;
    make_epilogue(p, &without, seed + 1, &s->t);
    const tconv_geometry *g = &s->t.geometry;
    s->data =
        layout_of(g, g->groups * g->group_in_channels, g->input[0], tconv_type_size(p->data_type));
    s->output = layout_of(g, g->groups * g->group_out_channels, g->output[0],
                          tconv_type_size(g->output_type));
    s->got = calloc(1, (size_t)g->output_bytes + 1);
    assert_non_null(s->got);
    tconv_error error;
    tconv_device *const own = device->device;
    expect_ok(tconv_layer_create(&own, 1, TCONV_FILTER_CONSTANT, &s->layer, &error), &error);
}

static void free_subject(struct subject *s)
{
    tconv_stream_release(s->stream);
    tconv_layer_release(s->layer);
    free(s->got);
    free_tensors(&s->t);
}

static void make_stream(struct subject *s, int64_t columns)
{
    tconv_error error;
    tconv_stream_options streaming = TCONV_STREAM_OPTIONS_INIT;
    streaming.columns = columns;
    expect_ok(
        tconv_stream_create(s->layer, &s->problem, &s->options, &streaming, &s->stream, &error),
        &error);
}

static tconv_tensors weights_in(const struct subject *s)
{
    tconv_tensors tensors = weights_of(&s->t);
    if (s->options.epilogue.bias) tensors.bias.host = s->t.bias;
    return tensors;
}

/* Pushes columns from `first` on, or flushes if `count` is negative, on arrays of the host. */
static tconv_status push_arrays(struct subject *s, int64_t first, int64_t count, void *chunk,
                                void *part, void *residual, tconv_error *error)
{
    tconv_tensors tensors = weights_in(s);
    const int64_t outputs = tconv_stream_outputs(s->stream, count);
    if (count > 0) {
        move_columns(&s->data, s->t.data, first, count, chunk, true);
        tensors.data.host = chunk;
    }
    if (s->options.epilogue.residual) {
        move_columns(&s->output, s->t.residual, s->returned, outputs, residual, true);
        tensors.residual.host = residual;
    }
    tensors.output.host = part;
    return count < 0 ? tconv_stream_flush(s->stream, &tensors, NULL, error)
                     : tconv_stream_push(s->stream, count, &tensors, NULL, error);
}

/* The same on buffers. */
static tconv_status push_buffers(struct subject *s, int64_t first, int64_t count, void *chunk,
                                 void *part, void *residual, tconv_error *error)
{
    tconv_tensors tensors = TCONV_TENSORS_INIT; /* weights are set */
    const int64_t outputs = tconv_stream_outputs(s->stream, count);
    const size_t bytes = bytes_of(&s->output, outputs);
    cl_mem data = NULL, other = NULL;
    if (count > 0) {
        move_columns(&s->data, s->t.data, first, count, chunk, true);
        data = buffer_of(s->device, chunk, bytes_of(&s->data, count));
        tensors.data.memory = data;
    }
    if (s->options.epilogue.residual) {
        move_columns(&s->output, s->t.residual, s->returned, outputs, residual, true);
        other = buffer_of(s->device, residual, bytes);
        tensors.residual.memory = other;
    }
    cl_mem output = buffer_of(s->device, NULL, bytes);
    tensors.output.memory = output;
    cl_event done = NULL;
    const tconv_run run = run_on(s->queue, 0, NULL, &done);
    tconv_status status = count < 0 ? tconv_stream_flush(s->stream, &tensors, &run, error)
                                    : tconv_stream_push(s->stream, count, &tensors, &run, error);
    if (status == TCONV_OK) {
        assert_non_null(done);
        status = tconv_wait(done, error);
        clReleaseEvent(done);
        if (bytes > 0) read_output(s->device, output, bytes, part);
    }
    if (data != NULL) clReleaseMemObject(data);
    if (other != NULL) clReleaseMemObject(other);
    clReleaseMemObject(output);
    return status;
}

/* One push or flush of a stream whose output is kept in s->got. */
static void step(struct subject *s, int64_t first, int64_t count)
{
    tconv_error error;
    const int64_t outputs = tconv_stream_outputs(s->stream, count);
    assert_true(outputs >= 0 && outputs <= s->output.columns - s->returned);
    void *chunk = malloc(bytes_of(&s->data, count > 0 ? count : 0) + 1);
    void *part = malloc(bytes_of(&s->output, outputs) + 1);
    void *residual = malloc(bytes_of(&s->output, outputs) + 1);
    assert_true(chunk != NULL && part != NULL && residual != NULL);
    memset(part, 0xa5, bytes_of(&s->output, outputs) + 1);
    expect_ok((s->queue != NULL ? push_buffers : push_arrays)(s, first, count, chunk, part,
                                                              residual, &error),
              &error);
    move_columns(&s->output, s->got, s->returned, outputs, part, false);
    s->returned += outputs;
    free(chunk);
    free(part);
    free(residual);
}

/* A length of a chunk: of 0, of 1, of a few, or of all that is left. */
static int64_t draw_length(unsigned *seed, int64_t left)
{
    const int lengths[] = {0, 1, 1, 2, 3, 7, random_between(seed, 1, 40), (int)left};
    const int64_t length = lengths[random_between(seed, 0, 7)];
    return length < left ? length : left;
}

/* Streams the whole input in random chunks. */
static void stream_all(struct subject *s, unsigned *seed)
{
    s->returned = 0;
    memset(s->got, 0xa5, (size_t)s->t.geometry.output_bytes);
    for (int64_t at = 0; at < s->data.columns;) {
        const int64_t count = draw_length(seed, s->data.columns - at);
        step(s, at, count);
        at += count;
    }
    step(s, s->data.columns, TCONV_STREAM_FLUSH);
    assert_int_equal(s->returned, s->output.columns);
}

/* One run of the whole input with the stream's algorithm, compared with the oracle. */
static void run_whole(struct subject *s)
{
    tconv_error error;
    tconv_plan *plan;
    tconv_tensors tensors = weights_in(s);
    tconv_plan_options options = s->options;
    options.algorithm = tconv_stream_algorithm(s->stream);
    tensors.data.host = s->t.data;
    tensors.output.host = s->t.output;
    if (options.epilogue.residual) tensors.residual.host = s->t.residual;
    expect_ok(tconv_layer_run(s->layer, &s->problem, &options, &tensors, NULL, &error), &error);
    expect_ok(tconv_layer_plan(s->layer, &s->problem, &options, &plan, &error), &error);
    s->t.error_factor = tconv_plan_error_factor(plan);
    tconv_plan_release(plan);
    compare_with_oracle(s->device, &s->problem, options.algorithm, s->options.epilogue.bias, &s->t);
}

static void expect_equal(const struct subject *s, unsigned number)
{
    if (memcmp(s->got, s->t.output, (size_t)s->t.geometry.output_bytes) == 0) return;
    char text[1000];
    tconv_problem_text(&s->problem, text, sizeof text);
    failed("stream %u on device %d (%s) does not give the bits of one run: %s %s", number,
           s->device->number, s->queue != NULL ? "queue" : "arrays",
           tconv_stream_algorithm(s->stream), text);
}

/* Sets the weights in the layer, with the stream's algorithm, and makes another stream of it, which
 * runs on a queue. */
static void use_set_weights(struct subject *s, cl_command_queue queue)
{
    tconv_error error;
    tconv_stream *before = s->stream;
    tconv_plan_options options = s->options;
    options.algorithm = tconv_stream_algorithm(before);
    const tconv_tensors weights = weights_in(s);
    expect_ok(tconv_layer_set(s->layer, &s->problem, &options, &weights, NULL, &error), &error);
    make_stream(s, 0);
    assert_string_equal(tconv_stream_algorithm(s->stream), options.algorithm);
    tconv_stream_release(before);
    s->queue = queue;
}

/* ---- random streams ---- */

static bool draw_problem(unsigned number, tconv_problem *p, tconv_epilogue *e)
{
    static const tconv_type types[] = {TCONV_F32, TCONV_F32, TCONV_F16, TCONV_F32,
                                       TCONV_I8,  TCONV_F64, TCONV_F32, TCONV_BF16,
                                       TCONV_U8,  TCONV_F32, TCONV_I32, TCONV_U64};
    unsigned seed = 7000 + number;
    const int most = number % 5 == 4 ? 300 : 40, kind = (int)(number % 4);
    *p = kind == 2   ? random_upsampling(&seed, 1, most)
         : kind == 3 ? random_shuffle(&seed, 1, most)
                     : random_problem(&seed, 1, most);
    p->output_shape.count = 0;
    p->auto_pad = TCONV_EXPLICIT;
    p->rules = TCONV_RULES_SPEC;
    p->output_type = TCONV_TYPE_DEFAULT;
    p->data_type = p->filter_type = types[number % 12];
    const bool floating = tconv_type_is_floating(p->data_type);
    if (kind == 2 && !floating) p->data_type = p->filter_type = TCONV_F32;
    if (number % 6 == 5) random_filter_steps(&seed, p);
    *e = (tconv_epilogue)TCONV_EPILOGUE_INIT;
    e->bias = number % 3 != 0;
    e->residual = number % 5 == 1;
    if (tconv_type_is_floating(p->data_type)) {
        e->scale = number % 7 == 2;
        e->activation = number % 3 == 1   ? TCONV_ACTIVATION_LEAKY_RELU
                        : number % 6 == 2 ? TCONV_ACTIVATION_SNAKE
                                          : TCONV_ACTIVATION_NONE;
        e->a = e->activation == TCONV_ACTIVATION_LEAKY_RELU ? 0.1 : 0;
    }
    tconv_geometry g = TCONV_GEOMETRY_INIT;
    return tconv_resolve(p, &g, NULL) == TCONV_OK && g.output_bytes > 0 && g.data_bytes > 0;
}

static bool has_type(const struct device *device, tconv_type type)
{
    return type != TCONV_F64 || device->info->double_arithmetic;
}

static void random_streams(void **state)
{
    (void)state;
    const int streams = sample_is_least() ? 24 : scaled(200);
    int done = 0;
    for (unsigned i = 0; done < streams; i++) {
        tconv_problem p;
        tconv_epilogue e;
        if (!draw_problem(sample_seed() * 1000 + i, &p, &e)) continue;
        for (int d = 0; d < device_count; d++) {
            struct subject s;
            unsigned seed = i + 1;
            if (!has_type(&devices[d], p.data_type)) continue;
            make_subject(&s, &devices[d], &p, &e, i);
            make_stream(&s, i % 3 == 0 ? random_between(&seed, 1, 30) : 0);
            run_whole(&s);
            stream_all(&s, &seed);
            expect_equal(&s, i);
            tconv_error error;
            expect_ok(tconv_stream_reset(s.stream, 0, NULL, NULL, &error), &error);
            stream_all(&s, &seed);
            expect_equal(&s, i);
            /* The same on a queue, with weights that were set. */
            use_set_weights(&s, i % 2 == 0 && has_out_of_order(&devices[d])
                                    ? new_queue(&devices[d], false)
                                    : devices[d].queue);
            stream_all(&s, &seed);
            expect_equal(&s, i);
            if (s.queue != devices[d].queue) clReleaseCommandQueue(s.queue);
            free_subject(&s);
        }
        done++;
    }
}

/* Weights with their axes in another order in memory, and room between them, give the bits of the
 * same weights without steps: given to each push, and set in the layer. */
static void filters_with_steps_are_streamed(void **state)
{
    (void)state;
    enum { STREAMS = 8 };
    int done = 0;
    for (unsigned i = 0; done < STREAMS; i++) {
        tconv_problem plain;
        tconv_epilogue e;
        if (!draw_problem(400 + i, &plain, &e)) continue;
        plain.filter_steps.count = 0;
        tconv_problem spaced = plain;
        unsigned seed = 800 + i;
        do {
            random_filter_steps(&seed, &spaced);
        } while (spaced.filter_steps.value[spaced.filter.rank - 1] == 1);
        for (int d = 0; d < device_count; d++) {
            struct subject s, with_steps;
            if (!has_type(&devices[d], plain.data_type)) continue;
            make_subject(&s, &devices[d], &plain, &e, i);
            make_subject(&with_steps, &devices[d], &spaced, &e, i);
            const struct tconv_view view =
                tconv_view_of(&spaced, &with_steps.t.geometry, TCONV_SPACED_FILTER);
            tconv_view_gather(&view, tconv_type_size(plain.filter_type), with_steps.t.filter,
                              s.t.filter);
            memcpy(s.t.bias, with_steps.t.bias,
                   s.t.channels * tconv_type_size(s.t.geometry.output_type));
            make_stream(&s, 0);
            make_stream(&with_steps, 0);
            assert_string_equal(tconv_stream_algorithm(with_steps.stream),
                                tconv_stream_algorithm(s.stream));
            run_whole(&s);
            run_whole(&with_steps);
            assert_memory_equal(with_steps.t.output, s.t.output, (size_t)s.t.geometry.output_bytes);
            stream_all(&with_steps, &seed);
            expect_equal(&with_steps, i);
            use_set_weights(&with_steps, devices[d].queue);
            stream_all(&with_steps, &seed);
            expect_equal(&with_steps, i);
            free_subject(&with_steps);
            free_subject(&s);
        }
        done++;
    }
}

/* What an algorithm says of its order of additions is true: every one that a stream takes, by name.
 */
static void every_algorithm_keeps_its_order(void **state)
{
    (void)state;
    const tconv_epilogue none = TCONV_EPILOGUE_INIT;
    for (int d = 0; d < device_count; d++)
        for (int a = 0; tconv_algorithm_name(a) != NULL; a++)
            for (unsigned i = 0; i < 4; i++) {
                /* Few and many channels, several strides; depthwise, channels last. */
                tconv_problem p = TCONV_PROBLEM_INIT;
                const int64_t in = i == 0 ? 70 : i == 1 ? 3 : 20, s = 2 + i % 2, k = 3 * s;
                p.operation = TCONV_ONEAPI_CONV_BACKPROP;
                p.groups = i == 2 ? 20 : 1;
                p.data_format = i >= 2 ? TCONV_NXC : TCONV_NCX;
                p.filter_format = TCONV_OIX;
                set_shape(&p.data, 3, i >= 2 ? (int64_t[]){1, 37, in} : (int64_t[]){1, in, 37});
                set_shape(&p.filter, 3, (int64_t[]){in, i == 2 ? 1 : i == 0 ? 33 : 2, k});
                set_list(&p.strides, 1, &s);
                set_list(&p.pads_begin, 1, (int64_t[]){1});
                struct subject subject;
                unsigned seed = i + 1;
                tconv_error error;
                make_subject(&subject, &devices[d], &p, &none, i);
                subject.options.algorithm = tconv_algorithm_name(a);
                const tconv_status status = tconv_stream_create(subject.layer, &p, &subject.options,
                                                                NULL, &subject.stream, &error);
                if (status == TCONV_OK) {
                    run_whole(&subject);
                    stream_all(&subject, &seed);
                    expect_equal(&subject, i);
                } else
                    assert_int_equal(status, TCONV_ERROR_ALGORITHM);
                free_subject(&subject);
            }
}

/* ---- what a push returns ---- */

static tconv_problem line(int64_t ci, int64_t co, int64_t x, int64_t k, int64_t s, int64_t d,
                          int64_t begin, int64_t end)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    set_shape(&p.data, 3, (int64_t[]){1, ci, x});
    set_shape(&p.filter, 3, (int64_t[]){ci, co, k});
    set_list(&p.strides, 1, &s);
    set_list(&p.dilations, 1, &d);
    set_list(&p.pads_begin, 1, &begin);
    set_list(&p.pads_end, 1, &end);
    return p;
}

/* Stride 2, kernel 4, pads 1: after T columns the outputs below 2*T - 1 are final. */
static void outputs_come_as_early_as_they_may(void **state)
{
    (void)state;
    static const struct {
        int64_t k, s, d, begin, end, lag, history, first, third, flush;
    } rows[] = {
        {4, 2, 1, 1, 1, 1, 1, 1, 2, 1},  {4, 2, 1, 0, 0, 0, 1, 2, 2, 2},
        {3, 1, 2, 0, 0, 0, 4, 1, 1, 4},  {2, 2, 1, 0, 1, 1, 1, 1, 2, 0},
        {16, 8, 1, 4, 4, 4, 1, 4, 8, 4}, {3, 1, 1, 5, 0, 5, 2, 0, 0, 0},
    };
    const tconv_epilogue none = TCONV_EPILOGUE_INIT;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tconv_problem p =
            line(2, 3, 20, rows[i].k, rows[i].s, rows[i].d, rows[i].begin, rows[i].end);
        struct subject s;
        tconv_error error;
        tconv_stream_info info = TCONV_STREAM_INFO_INIT;
        make_subject(&s, &devices[0], &p, &none, 5);
        make_stream(&s, 0);
        expect_ok(tconv_stream_describe(s.stream, &info, &error), &error);
        assert_int_equal(info.stride, rows[i].s);
        assert_int_equal(info.lag, rows[i].lag);
        assert_int_equal(info.history, rows[i].history);
        assert_int_equal(tconv_stream_outputs(s.stream, TCONV_STREAM_FLUSH), 0);
        assert_int_equal(tconv_stream_outputs(s.stream, 1), rows[i].first);
        step(&s, 0, 1);
        step(&s, 1, 1);
        assert_int_equal(tconv_stream_outputs(s.stream, 1), rows[i].third);
        step(&s, 2, 1);
        assert_int_equal(tconv_stream_outputs(s.stream, TCONV_STREAM_FLUSH), rows[i].flush);
        free_subject(&s);
    }
}

/* The columns before the first one: outputs are those of a longer input, behind its first ones. */
static void given_history_counts_as_pushed(void **state)
{
    (void)state;
    const tconv_epilogue none = TCONV_EPILOGUE_INIT;
    for (int64_t before = 1; before <= 9; before += 2) {
        const tconv_problem p = line(3, 5, 30, 7, 2, 1, 3, 2);
        struct subject s;
        tconv_error error;
        unsigned seed = 3;
        make_subject(&s, &devices[0], &p, &none, 9);
        make_stream(&s, 0);
        run_whole(&s);
        stream_all(&s, &seed);
        void *columns = malloc(bytes_of(&s.data, before));
        assert_non_null(columns);
        move_columns(&s.data, s.t.data, 0, before, columns, true);
        tconv_tensor history = TCONV_TENSOR_INIT;
        history.host = columns;
        expect_ok(tconv_stream_reset(s.stream, before, &history, NULL, &error), &error);
        free(columns);
        s.returned = 2 * before - 3 > 0 ? 2 * before - 3 : 0;
        memset(s.got, 0xa5, (size_t)s.t.geometry.output_bytes);
        move_columns(&s.output, s.got, 0, s.returned, s.t.output, false); /* then not compared */
        for (int64_t at = before; at < 30; at += 3) step(&s, at, 30 - at < 3 ? 30 - at : 3);
        step(&s, 30, TCONV_STREAM_FLUSH);
        for (int64_t row = 0; row < s.output.rows; row++) {
            const size_t from = (size_t)(row * s.output.columns +
                                         (2 * before - 3 > 0 ? 2 * before - 3 : 0)) *
                                s.output.column,
                         to = (size_t)((row + 1) * s.output.columns) * s.output.column;
            assert_memory_equal((char *)s.got + from, (char *)s.t.output + from, to - from);
        }
        free_subject(&s);
    }
}

/* A long chunk is not copied: its first outputs are computed apart from the others. */
static void long_chunks_are_computed_in_two_parts(void **state)
{
    (void)state;
    const tconv_epilogue none = TCONV_EPILOGUE_INIT;
    const tconv_problem p = line(32, 2, 5000, 3, 1, 1, 1, 1);
    struct subject s;
    tconv_error error;
    tconv_stream_info info = TCONV_STREAM_INFO_INIT;
    make_subject(&s, &devices[0], &p, &none, 2);
    make_stream(&s, 0);
    run_whole(&s);
    step(&s, 0, 10);
    step(&s, 10, 4900);
    step(&s, 4910, 90);
    step(&s, 5000, TCONV_STREAM_FLUSH);
    expect_equal(&s, 0);
    expect_ok(tconv_stream_describe(s.stream, &info, &error), &error);
    assert_true(info.bytes < 32 * 100 * sizeof(float));
    free_subject(&s);
}

/* A long chunk whose memory receives the output: its first outputs are stored where later ones
 * read. */
static void a_long_chunk_may_become_its_output(void **state)
{
    (void)state;
    const tconv_epilogue none = TCONV_EPILOGUE_INIT;
    const tconv_problem p = line(32, 2, 5000, 3, 1, 1, 1, 1);
    struct subject s;
    tconv_error error;
    make_subject(&s, &devices[0], &p, &none, 2);
    make_stream(&s, 0);
    run_whole(&s);
    step(&s, 0, 10);
    const int64_t outputs = tconv_stream_outputs(s.stream, 4900);
    void *memory = malloc(bytes_of(&s.data, 4900));
    assert_non_null(memory);
    expect_ok(push_arrays(&s, 10, 4900, memory, memory, NULL, &error), &error);
    move_columns(&s.output, s.got, s.returned, outputs, memory, false);
    s.returned += outputs;
    free(memory);
    step(&s, 4910, 90);
    step(&s, 5000, TCONV_STREAM_FLUSH);
    expect_equal(&s, 0);
    free_subject(&s);
}

/* The pad is no zero that an infinite weight could meet. */
static void infinite_weights_meet_no_missing_columns(void **state)
{
    (void)state;
    const tconv_epilogue none = TCONV_EPILOGUE_INIT;
    for (int d = 0; d < device_count; d++) {
        const tconv_problem p = line(1, 2, 12, 5, 1, 1, 0, 0);
        struct subject s;
        unsigned seed = 4;
        make_subject(&s, &devices[d], &p, &none, 8);
        s.t.filter[3] = INFINITY; /* tap 3 of the first output channel */
        make_stream(&s, 0);
        run_whole(&s);
        stream_all(&s, &seed);
        for (int i = 0; i < 32; i++) {
            const float got = ((float *)s.got)[i], whole = s.t.output[i];
            assert_int_equal(isnan(got) != 0, isnan(whole) != 0);
            assert_int_equal(isinf(got) != 0, isinf(whole) != 0);
            if (isfinite(whole)) assert_true(fabsf(got - whole) <= 1e-5F);
        }
        free_subject(&s);
    }
}

/* ---- several streams, and long ones ---- */

static void streams_of_a_layer_share_its_weights(void **state)
{
    (void)state;
    const tconv_epilogue none = TCONV_EPILOGUE_INIT;
    const tconv_problem p = line(4, 6, 24, 6, 3, 1, 2, 1);
    struct subject one, other;
    tconv_error error;
    tconv_layer_counts counts = TCONV_LAYER_COUNTS_INIT;
    make_subject(&one, &devices[0], &p, &none, 1);
    make_subject(&other, &devices[0], &p, &none, 2);
    make_stream(&one, 0);
    memcpy(other.t.filter, one.t.filter, (size_t)one.t.geometry.filter_bytes);
    tconv_layer_release(other.layer);
    other.layer = one.layer;
    make_stream(&other, 0);
    run_whole(&one);
    run_whole(&other);
    for (int64_t at = 0; at < 24; at += 4) {
        step(&one, at, 4);
        step(&other, at, 2);
        step(&other, at + 2, 2);
    }
    step(&one, 24, TCONV_STREAM_FLUSH);
    step(&other, 24, TCONV_STREAM_FLUSH);
    expect_equal(&one, 1);
    expect_equal(&other, 2);
    expect_ok(tconv_layer_count(one.layer, &counts, &error), &error);
    assert_int_equal(counts.filters_packed, 1);
    other.layer = NULL;
    free_subject(&other);
    free_subject(&one);
}

static void memory_does_not_grow(void **state)
{
    (void)state;
    enum { PUSHES = 10000, MOST_GROWTH = 2048 }; /* KiB: the allocator's own */
    const tconv_epilogue none = TCONV_EPILOGUE_INIT;
    const tconv_problem p = line(2, 2, 9, 4, 2, 1, 1, 1);
    struct subject s;
    tconv_error error;
    make_subject(&s, &devices[0], &p, &none, 1);
    make_stream(&s, 0);
    float chunk[2 * 3] = {1, 2, 3, 4, 5, 6}, part[2 * 8];
    size_t first = 0;
    uint64_t bytes = 0;
    tconv_layer_counts counts = TCONV_LAYER_COUNTS_INIT, early = TCONV_LAYER_COUNTS_INIT;
    for (int i = 0; i < PUSHES; i++) {
        tconv_stream_info info = TCONV_STREAM_INFO_INIT;
        tconv_tensors tensors = weights_in(&s);
        tensors.data.host = chunk;
        tensors.output.host = part;
        expect_ok(tconv_stream_push(s.stream, 1 + i % 3, &tensors, NULL, &error), &error);
        expect_ok(tconv_stream_describe(s.stream, &info, &error), &error);
        if (i == 100) {
            first = resident_kib();
            bytes = info.bytes;
            expect_ok(tconv_layer_count(s.layer, &early, &error), &error);
        }
        if (i > 100) assert_int_equal(info.bytes, bytes);
    }
    expect_ok(tconv_layer_count(s.layer, &counts, &error), &error);
    assert_int_equal(counts.plans_made, early.plans_made);
    assert_int_equal(counts.weight_bytes, early.weight_bytes);
    assert_int_equal(counts.filters_packed, 1);
    if (!SANITIZED) assert_true(resident_kib() <= first + MOST_GROWTH);
    free_subject(&s);
}

/* ---- wrong calls ---- */

static void expect_refused(const tconv_problem *p, const tconv_plan_options *options,
                           tconv_status wanted, const char *words)
{
    tconv_error error;
    tconv_layer *layer;
    tconv_stream *stream = NULL;
    tconv_device *const device = devices[0].device;
    expect_ok(tconv_layer_create(&device, 1, TCONV_FILTER_CONSTANT, &layer, &error), &error);
    expect_error(tconv_stream_create(layer, p, options, NULL, &stream, &error), wanted, &error,
                 words);
    assert_null(stream);
    tconv_layer_release(layer);
}

static void problems_that_are_refused(void **state)
{
    (void)state;
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    tconv_problem p = line(2, 2, 9, 4, 2, 1, 1, 1);
    p.output_shape = (tconv_list){1, {20}};
    expect_refused(&p, NULL, TCONV_ERROR_UNSUPPORTED, "output_shape is given");
    p = line(2, 2, 9, 4, 2, 1, 1, 1);
    p.data_steps = (tconv_steps){3, {18, 9, 1}};
    expect_refused(&p, NULL, TCONV_ERROR_UNSUPPORTED, "data_steps is given");
    p = plane(1, 2, 2, 5, 3, 2, 1);
    expect_refused(&p, NULL, TCONV_ERROR_UNSUPPORTED, "have rank 4");
    p = line(2, 2, 9, 4, 2, 1, 1, 1);
    p.data.dim[1] = 3;
    expect_refused(&p, NULL, TCONV_ERROR_SHAPE, "channels");
    p = line(2, 2, 9, 4, 2, 1, 1, 1);
    options.output_end = 4;
    expect_refused(&p, &options, TCONV_ERROR_UNSUPPORTED, "options have a window");
    options.output_end = 0;
    options.algorithm = "winograd_vector";
    options.math = TCONV_MATH_FAST;
    expect_refused(&p, &options, TCONV_ERROR_ALGORITHM, "depends on where an output is");
    options.algorithm = "none";
    expect_refused(&p, &options, TCONV_ERROR_ALGORITHM, "no such algorithm");
    tconv_error error;
    tconv_stream *stream = NULL;
    expect_error(tconv_stream_create(NULL, &p, NULL, NULL, &stream, &error), TCONV_ERROR_ARGUMENT,
                 &error, "layer is NULL");
    expect_error(tconv_stream_push(NULL, 0, NULL, NULL, &error), TCONV_ERROR_ARGUMENT, &error,
                 "stream is NULL");
    assert_null(tconv_stream_algorithm(NULL));
    assert_int_equal(tconv_stream_outputs(NULL, 1), 0);
    tconv_stream_release(NULL);
}

/* After each refusal the stream goes on as if it had not been. */
static void wrong_pushes_change_nothing(void **state)
{
    (void)state;
    const tconv_epilogue none = TCONV_EPILOGUE_INIT;
    const tconv_problem p = line(3, 4, 12, 5, 2, 1, 1, 1);
    struct subject s;
    tconv_error error;
    make_subject(&s, &devices[0], &p, &none, 6);
    make_stream(&s, 0);
    run_whole(&s);
    float part[4 * 40];
    cl_mem buffer = buffer_of(&devices[0], NULL, 16);
    for (int64_t at = 0; at < 12; at += 3) {
        tconv_tensors tensors = weights_in(&s);
        tconv_run run = TCONV_RUN_INIT;
        tensors.output.host = part;
        expect_error(tconv_stream_push(s.stream, 3, &tensors, NULL, &error), TCONV_ERROR_ARGUMENT,
                     &error, "tensors.data is absent");
        tensors.data.host = s.t.data;
        expect_error(tconv_stream_push(s.stream, -1, &tensors, NULL, &error), TCONV_ERROR_ARGUMENT,
                     &error, "columns is -1");
        tensors.output.host = NULL;
        expect_error(tconv_stream_push(s.stream, 3, &tensors, NULL, &error), TCONV_ERROR_ARGUMENT,
                     &error, "tensors.output is absent");
        tensors.output.memory = buffer;
        expect_error(tconv_stream_push(s.stream, 3, &tensors, NULL, &error), TCONV_ERROR_ARGUMENT,
                     &error, "no queue");
        tensors.output = (tconv_tensor){NULL, 0, NULL, part};
        tensors.filter.host = NULL;
        expect_error(tconv_stream_push(s.stream, 3, &tensors, NULL, &error), TCONV_ERROR_ARGUMENT,
                     &error, "tensors.filter is absent");
        tensors.filter.host = s.t.filter;
        run.memory_limit = 1;
        expect_error(tconv_stream_push(s.stream, 3, &tensors, &run, &error), TCONV_ERROR_ARGUMENT,
                     &error, "run.memory_limit is given");
        if (at > 0) {
            run = run_on(devices[0].queue, 0, NULL, NULL);
            expect_error(tconv_stream_push(s.stream, 3, &tensors, &run, &error),
                         TCONV_ERROR_ARGUMENT, &error, "reset it before");
        }
        step(&s, at, 3);
    }
    step(&s, 12, TCONV_STREAM_FLUSH);
    expect_equal(&s, 0);
    tconv_tensors tensors = weights_in(&s);
    tensors.data.host = s.t.data;
    tensors.output.host = part;
    expect_error(tconv_stream_push(s.stream, 1, &tensors, NULL, &error), TCONV_ERROR_ARGUMENT,
                 &error, "the stream was flushed");
    expect_error(tconv_stream_describe(s.stream, NULL, &error), TCONV_ERROR_ARGUMENT, &error,
                 "info is NULL");
    expect_ok(tconv_stream_flush(s.stream, &tensors, NULL, &error), &error);
    /* On a queue. */
    expect_ok(tconv_stream_reset(s.stream, 0, NULL, NULL, &error), &error);
    tconv_run run = run_on(devices[0].queue, 0, NULL, NULL);
    free_subject(&s);
    make_subject(&s, &devices[0], &p, &none, 6);
    make_stream(&s, 0);
    tensors = (tconv_tensors)TCONV_TENSORS_INIT;
    tensors.data.memory = buffer;
    tensors.output.memory = buffer;
    expect_error(tconv_stream_push(s.stream, 3, &tensors, &run, &error), TCONV_ERROR_BUFFER, &error,
                 "its buffer has 16");
    clReleaseMemObject(buffer);
    free_subject(&s);
}

int main(void)
{
    struct CMUnitTest tests[] = {
        smoke_test(random_streams),
        cmocka_unit_test(filters_with_steps_are_streamed),
        cmocka_unit_test(every_algorithm_keeps_its_order),
        cmocka_unit_test(outputs_come_as_early_as_they_may),
        cmocka_unit_test(given_history_counts_as_pushed),
        cmocka_unit_test(long_chunks_are_computed_in_two_parts),
        cmocka_unit_test(a_long_chunk_may_become_its_output),
        cmocka_unit_test(infinite_weights_meet_no_missing_columns),
        cmocka_unit_test(streams_of_a_layer_share_its_weights),
        cmocka_unit_test(memory_does_not_grow),
        cmocka_unit_test(problems_that_are_refused),
        cmocka_unit_test(wrong_pushes_change_nothing),
    };
    return run_smoke_or_all("stream", tests, open_all_devices, close_all_devices);
}
