/* SPDX-License-Identifier: Apache-2.0 */
/* Every OpenCL call and every allocation of the library fails, with each of its codes, at every
 * place where it is made: plan, pack, enqueue, host runs, host layers, slabs, kept programs, the
 * list of devices. After each failure the status, the raw code and the sentence are right, nothing
 * leaks, the caller's tensors are what they were, and the next call works. */
#include "compile_watch.h"
#include "faults.h"
#include "percent.h"
#include "portable.h"
#include "recorder.h"
#include "smoke.h"
#include "support.h"

#include "base/os.h"

#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* A layer that can be checked by hand: y[2i + k] += x[i] * w[k], some channels. */
enum { CI = 2, CO = 3, X = 5, K = 4, S = 2, Y = (X - 1) * S + K, ROWS = 4 };
static float x[CI * ROWS * X], w[CI * CO * K], y[CO * ROWS * Y], expected[CO * ROWS * Y];

static cl_context context;
static cl_device_id device_id;
static cl_command_queue queue;
static cl_mem data, weights, output, workspace; /* the caller's buffers */
static void *shared_data, *shared_weights;      /* the same in shared memory; NULL: none */
static int device_number;
static char folder[200];

static tconv_problem problem_of(void)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    p.data = (tconv_shape){4, {1, CI, ROWS, X}};
    p.filter = (tconv_shape){4, {CI, CO, 1, K}};
    p.strides = (tconv_list){2, {1, S}};
    return p;
}

static void fill(void)
{
    for (int i = 0; i < CI * ROWS * X; i++) x[i] = (float)(i * 7 % 11 - 5);
    for (int i = 0; i < CI * CO * K; i++) w[i] = (float)(i * 5 % 13 - 6);
    for (int ci = 0; ci < CI; ci++)
        for (int co = 0; co < CO; co++)
            for (int row = 0; row < ROWS; row++)
                for (int i = 0; i < X; i++)
                    for (int k = 0; k < K; k++)
                        expected[(co * ROWS + row) * Y + i * S + k] +=
                            x[(ci * ROWS + row) * X + i] * w[(ci * CO + co) * K + k];
}

/* What a scenario found. */
struct outcome {
    tconv_status status;
    tconv_error error;
};

static bool output_is_right(void)
{
    return memcmp(y, expected, sizeof y) == 0;
}

/* The caller's own call, which never fails here. */
static void read_output(void)
{
    assert_int_equal(clFinish(queue), CL_SUCCESS);
    assert_int_equal(clEnqueueReadBuffer(queue, output, CL_TRUE, 0, sizeof y, y, 0, NULL, NULL),
                     CL_SUCCESS);
}

/* Plan, pack and enqueue with one algorithm on the caller's own buffers, or pointers, and queue. */
static const char *algorithm;
static tconv_trace_callback callback; /* or NULL */
static bool on_pointers, recorded, replaced;
static struct recorder recorder; /* with NULLs if the device has no command buffers */

static tconv_status record_and_run(tconv_plan *plan, const tconv_tensors *args, tconv_error *error)
{
    cl_int code;
    tconv_recording *of_tensors = NULL;
    recording made = replaced ? recorder_create_mutable(&recorder, queue)
                              : recorder.create(1, &queue, NULL, &code);
    assert_non_null(made);
    tconv_status status =
        replaced
            ? tconv_recording_create(plan, made, queue, args, 0, NULL, NULL, &of_tensors, error)
            : tconv_plan_record(plan, made, queue, args, 0, NULL, NULL, error);
    if (status == TCONV_OK) assert_int_equal(recorder.finalize(made), CL_SUCCESS);
    if (status == TCONV_OK && replaced) status = tconv_recording_update(of_tensors, args, error);
    if (status == TCONV_OK) {
        assert_int_equal(recorder.enqueue(0, NULL, made, 0, NULL, NULL), CL_SUCCESS);
        clFinish(queue); /* which waits even if it says that it failed */
    }
    tconv_recording_release(of_tensors);
    assert_int_equal(recorder.release(made), CL_SUCCESS);
    return status;
}

static struct outcome plans(void)
{
    struct outcome o = {.status = TCONV_OK};
    const tconv_problem p = problem_of();
    tconv_device *device = NULL;
    tconv_plan *plan = NULL;
    tconv_packed_filter *filter = NULL;
    tconv_tensors args = TCONV_TENSORS_INIT;
    tconv_plan_options plan_options = TCONV_PLAN_OPTIONS_INIT;
    plan_options.algorithm = algorithm;
    cl_event packed = NULL;
    tconv_tensor from = {.memory = weights};
    if (on_pointers) from = (tconv_tensor){.pointer = shared_weights};
    o.status = tconv_device_create(context, device_id, &device, &o.error);
    if (o.status == TCONV_OK) tconv_device_set_cache(device, NULL, 0, NULL);
    if (o.status == TCONV_OK) tconv_device_set_trace(device, TCONV_TRACE_ALL, callback, NULL, NULL);
    if (o.status == TCONV_OK)
        o.status = tconv_plan_create(device, &p, &plan_options, &plan, &o.error);
    if (o.status == TCONV_OK) o.status = tconv_packed_filter_create(plan, NULL, &filter, &o.error);
    if (o.status == TCONV_OK)
        o.status =
            tconv_packed_filter_enqueue_pack(filter, queue, &from, 0, NULL, &packed, &o.error);
    args.packed = filter;
    if (on_pointers)
        args.data.pointer = shared_data;
    else
        args.data.memory = data;
    args.output.memory = output;
    args.workspace.memory = workspace;
    if (o.status == TCONV_OK && recorded)
        o.status = record_and_run(plan, &args, &o.error);
    else if (o.status == TCONV_OK)
        o.status = tconv_plan_enqueue(plan, queue, &args, 1, &packed, NULL, &o.error);
    if (packed != NULL) clReleaseEvent(packed);
    tconv_packed_filter_release(filter);
    tconv_plan_release(plan);
    tconv_device_release(device);
    return o;
}

static struct outcome plans_by_name(void)
{
    algorithm = "gather_group";
    return plans();
}

static struct outcome plans_on_pointers(void)
{
    on_pointers = true;
    const struct outcome o = plans_by_name();
    on_pointers = false;
    return o;
}

static struct outcome plans_recorded(void)
{
    recorded = true;
    const struct outcome o = plans_by_name();
    recorded = false;
    return o;
}

static struct outcome plans_recorded_and_replaced(void)
{
    replaced = true;
    const struct outcome o = plans_recorded();
    replaced = false;
    return o;
}

static struct outcome plans_by_choice(void)
{
    algorithm = NULL;
    return plans();
}

/* Every event of tracing has what its kind promises, also after a failure. */
static void expect_event(void *nothing, const tconv_trace_event *event)
{
    (void)nothing;
    const bool launch = event->kind == TCONV_TRACE_LAUNCH;
    assert_true(event->begin_ns <= event->end_ns);
    assert_true(launch == (event->event != NULL) && launch == (event->queue != NULL));
    assert_true((event->plan != NULL) == (launch || event->kind == TCONV_TRACE_PLAN));
    if (event->kind == TCONV_TRACE_PASSED_OVER) assert_true(event->message[0] != '\0');
}

static struct outcome traced_plans(void)
{
    algorithm = NULL;
    callback = expect_event;
    const struct outcome o = plans();
    callback = NULL;
    return o;
}

/* Opens the device, without a folder, and gives it arrays of the host. */
static tconv_status open_without_cache(tconv_device **opened, tconv_tensors *arrays,
                                       tconv_error *error)
{
    arrays->data.host = x;
    arrays->filter.host = w;
    arrays->output.host = y;
    const tconv_status status = tconv_device_open(device_number, opened, error);
    if (status == TCONV_OK) tconv_device_set_cache(*opened, NULL, 0, NULL);
    return status;
}

static struct outcome host_runs(void)
{
    struct outcome o;
    const tconv_problem p = problem_of();
    tconv_device *opened = NULL;
    tconv_tensors arrays = TCONV_TENSORS_INIT;
    o.status = open_without_cache(&opened, &arrays, &o.error);
    if (o.status == TCONV_OK) o.status = compute_once(opened, &p, NULL, &arrays, NULL, &o.error);
    tconv_device_release(opened);
    return o;
}

static void on_this_thread(void *pool, void (*task)(void *argument), void *argument)
{
    (void)pool;
    task(argument);
}

/* A constant filter, and one that each run packs; alone, and beside a pool of threads. */
static struct outcome host_layers(void)
{
    struct outcome o;
    const tconv_problem p = problem_of();
    tconv_device *opened = NULL;
    tconv_layer *layers[2] = {NULL, NULL};
    tconv_run beside = TCONV_RUN_INIT;
    beside.on_threads = on_this_thread;
    beside.threads = 2;
    tconv_tensors arrays = TCONV_TENSORS_INIT;
    o.status = open_without_cache(&opened, &arrays, &o.error);
    for (int i = 0; i < 2 && o.status == TCONV_OK; i++)
        o.status = tconv_layer_create(
            &opened, 1, i == 0 ? TCONV_FILTER_CONSTANT : TCONV_FILTER_VARIES, &layers[i], &o.error);
    for (int i = 0; i < 4 && o.status == TCONV_OK; i++)
        o.status =
            tconv_layer_run(layers[i % 2], &p, NULL, &arrays, i < 2 ? NULL : &beside, &o.error);
    for (int i = 0; i < 2; i++) tconv_layer_release(layers[i]);
    tconv_device_release(opened);
    return o;
}

/* A pool of the application with one thread beside the caller's, if it can start one. */
struct task {
    void (*call)(void *argument);
    void *argument;
};

static void *call_task(void *user)
{
    const struct task *task = user;
    task->call(task->argument);
    return NULL;
}

static void on_two_threads(void *pool, void (*call)(void *argument), void *argument)
{
    (void)pool;
    struct task task = {call, argument};
    pthread_t thread;
    const bool started = pthread_create(&thread, NULL, call_task, &task) == 0;
    call(argument);
    if (started) pthread_join(thread, NULL);
}

/* A layer that is worth several shares, whose filter is worth waking threads of the device. */
static struct outcome shared_runs(void)
{
    enum { WIDE = 208, PIXELS = 5 };
    static float wide_x[WIDE * PIXELS], wide_w[WIDE * WIDE], wide_y[WIDE * PIXELS];
    struct outcome o;
    tconv_device *opened = NULL;
    tconv_layer *layer = NULL;
    tconv_tensors arrays = TCONV_TENSORS_INIT;
    tconv_problem p = TCONV_PROBLEM_INIT;
    tconv_run run = TCONV_RUN_INIT;
    p.data = (tconv_shape){4, {1, WIDE, 1, PIXELS}};
    p.filter = (tconv_shape){4, {WIDE, WIDE, 1, 1}};
    arrays.data.host = wide_x;
    arrays.filter.host = wide_w;
    arrays.output.host = wide_y;
    for (int i = 0; i < WIDE * PIXELS; i++) wide_x[i] = 1;
    for (int i = 0; i < WIDE * WIDE; i++) wide_w[i] = 1;
    bool right = true;
    o.status = tconv_device_open(device_number, &opened, &o.error);
    if (o.status == TCONV_OK)
        o.status = tconv_layer_create(&opened, 1, TCONV_FILTER_VARIES, &layer, &o.error);
    for (int i = 0; i < 2 && o.status == TCONV_OK; i++) {
        memset(wide_y, 0xff, sizeof wide_y);
        run.on_threads = i == 0 ? NULL : on_two_threads;
        o.status = tconv_layer_run(layer, &p, NULL, &arrays, &run, &o.error);
        for (int j = 0; j < WIDE * PIXELS; j++) right = right && wide_y[j] == WIDE;
    }
    if (o.status == TCONV_OK && right) memcpy(y, expected, sizeof y);
    tconv_layer_release(layer);
    tconv_device_release(opened);
    return o;
}

/* Records a layer and runs it, in a workspace of the recording's. */
static tconv_status record_layer(tconv_layer *layer, const tconv_plan_options *options,
                                 const tconv_tensors *tensors, tconv_error *error)
{
    tconv_layer_recording *made = NULL;
    cl_int code;
    const tconv_problem p = problem_of();
    recording buffer = recorder.create(1, &queue, NULL, &code);
    assert_non_null(buffer);
    const tconv_status status = tconv_layer_record(layer, &p, options, buffer, queue, tensors,
                                                   false, 0, NULL, NULL, &made, error);
    if (status == TCONV_OK) {
        assert_int_equal(recorder.finalize(buffer), CL_SUCCESS);
        assert_int_equal(recorder.enqueue(0, NULL, buffer, 0, NULL, NULL), CL_SUCCESS);
        clFinish(queue); /* which waits even if it says that it failed */
    }
    assert_int_equal(recorder.release(buffer), CL_SUCCESS);
    tconv_layer_recording_release(made);
    return status;
}

/* Layers of one device that share a workspace, on the caller's own buffers and queue; an execution
 * that waits for new weights, one without a queue, and one in a command buffer. */
static struct outcome queue_layers(void)
{
    struct outcome o = {.status = TCONV_OK};
    const tconv_problem p = problem_of();
    tconv_device *device = NULL;
    tconv_plan *plan = NULL;
    tconv_layer *layers[2] = {NULL, NULL};
    tconv_plan_options plan_options = TCONV_PLAN_OPTIONS_INIT;
    plan_options.algorithm = "gather_group";
    tconv_tensors arrays = TCONV_TENSORS_INIT, buffers = TCONV_TENSORS_INIT,
                  tensors = TCONV_TENSORS_INIT;
    tconv_run run = TCONV_RUN_INIT;
    arrays.filter.host = w;
    buffers.filter.memory = weights;
    tensors.data.memory = data;
    tensors.output.memory = output;
    run.queue = queue;
    cl_event done = NULL;
    o.status = tconv_device_create(context, device_id, &device, &o.error);
    if (o.status == TCONV_OK) tconv_device_set_cache(device, NULL, 0, NULL);
    for (int i = 0; i < 2 && o.status == TCONV_OK; i++) {
        o.status = tconv_layer_create(&device, 1, TCONV_FILTER_CONSTANT, &layers[i], &o.error);
        if (o.status == TCONV_OK)
            o.status = tconv_layer_set(layers[i], &p, &plan_options, &arrays, &run, &o.error);
    }
    for (int i = 0; i < 4 && o.status == TCONV_OK; i++) {
        if (i == 2)
            o.status = tconv_layer_set(layers[0], &p, &plan_options, &buffers, &run, &o.error);
        if (done != NULL) clReleaseEvent(done);
        done = NULL;
        run.done = i % 2 == 0 ? &done : NULL;
        if (o.status == TCONV_OK)
            o.status = tconv_layer_run(layers[i % 2], &p, &plan_options, &tensors, &run, &o.error);
        run.done = NULL;
    }
    if (done != NULL) clReleaseEvent(done);
    clFinish(queue);
    if (o.status == TCONV_OK)
        o.status = tconv_layer_run(layers[1], &p, &plan_options, &tensors, NULL, &o.error);
    if (o.status == TCONV_OK && recorder.create != NULL)
        o.status = record_layer(layers[1], &plan_options, &tensors, &o.error);
    if (o.status == TCONV_OK)
        o.status = tconv_layer_plan(layers[0], &p, &plan_options, &plan, &o.error);
    /* If an event does not answer, its workspace counts as busy. */
    if (o.status == TCONV_OK)
        assert_true(tconv_device_workspace_bytes(device) <= 2 * tconv_plan_workspace_bytes(plan));
    tconv_plan_release(plan);
    for (int i = 0; i < 2; i++) tconv_layer_release(layers[i]);
    tconv_device_release(device);
    return o;
}

/* The layer with one spatial axis, of which streams give their own extent. */
static tconv_problem line_of(int64_t batch)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    p.data = (tconv_shape){3, {batch, CI, X}};
    p.filter = (tconv_shape){3, {CI, CO, K}};
    p.strides = (tconv_list){1, {S}};
    return p;
}

/* A stream of arrays, whose batch items are the rows, in three chunks. */
static struct outcome streams(void)
{
    static const int chunks[] = {2, 0, 3, TCONV_STREAM_FLUSH};
    struct outcome o;
    tconv_device *opened = NULL;
    tconv_layer *layer = NULL;
    tconv_stream *stream = NULL;
    tconv_tensors arrays = TCONV_TENSORS_INIT;
    const tconv_problem p = line_of(ROWS);
    o.status = open_without_cache(&opened, &arrays, &o.error);
    if (o.status == TCONV_OK)
        o.status = tconv_layer_create(&opened, 1, TCONV_FILTER_CONSTANT, &layer, &o.error);
    if (o.status == TCONV_OK)
        o.status = tconv_stream_create(layer, &p, NULL, NULL, &stream, &o.error);
    for (int i = 0, at = 0, done = 0; i < 4 && o.status == TCONV_OK; i++) {
        float chunk[ROWS * CI * X], part[ROWS * CO * Y];
        const int n = chunks[i], outputs = (int)tconv_stream_outputs(stream, n);
        for (int r = 0; r < ROWS * CI; r++)
            for (int c = 0; c < n; c++) chunk[r * n + c] = x[(r % CI * ROWS + r / CI) * X + at + c];
        arrays.data.host = chunk;
        arrays.output.host = part;
        o.status = n < 0 ? tconv_stream_flush(stream, &arrays, NULL, &o.error)
                         : tconv_stream_push(stream, n, &arrays, NULL, &o.error);
        for (int r = 0; r < ROWS * CO && o.status == TCONV_OK; r++)
            memcpy(&y[(r % CO * ROWS + r / CO) * Y + done], &part[r * outputs],
                   (size_t)outputs * sizeof *part);
        at += n;
        done += outputs;
    }
    tconv_stream_release(stream);
    tconv_layer_release(layer);
    tconv_device_release(opened);
    return o;
}

/* A stream on the caller's buffers and queue: a push behind given history, and a flush. */
enum { COLUMNS = ROWS * X, OUTPUTS = S * COLUMNS, REST = K - S };
static struct outcome streams_on_queues(void)
{
    struct outcome o;
    tconv_device *device = NULL;
    tconv_layer *layer = NULL;
    tconv_stream *stream = NULL;
    tconv_tensors tensors = TCONV_TENSORS_INIT;
    tconv_run run = TCONV_RUN_INIT;
    const tconv_problem p = line_of(1);
    cl_event done = NULL;
    tensors.data.memory = data;
    tensors.filter.memory = weights;
    tensors.output.memory = output;
    run.queue = queue;
    o.status = tconv_device_create(context, device_id, &device, &o.error);
    if (o.status == TCONV_OK) tconv_device_set_cache(device, NULL, 0, NULL);
    if (o.status == TCONV_OK)
        o.status = tconv_layer_create(&device, 1, TCONV_FILTER_CONSTANT, &layer, &o.error);
    if (o.status == TCONV_OK)
        o.status = tconv_stream_create(layer, &p, NULL, NULL, &stream, &o.error);
    if (o.status == TCONV_OK)
        o.status = tconv_stream_reset(stream, COLUMNS, &tensors.data, &run, &o.error);
    if (o.status == TCONV_OK)
        o.status = tconv_stream_push(stream, COLUMNS, &tensors, &run, &o.error);
    tensors.output.offset = CO * OUTPUTS * sizeof(float);
    run.done = &done;
    if (o.status == TCONV_OK) o.status = tconv_stream_flush(stream, &tensors, &run, &o.error);
    clFinish(queue);
    if (done != NULL) clReleaseEvent(done);
    tconv_stream_release(stream);
    tconv_layer_release(layer);
    tconv_device_release(device);
    return o;
}

/* What streams_on_queues has computed is in `y`. */
static bool stream_is_right(void)
{
    bool right = true;
    for (int co = 0; co < CO; co++)
        for (int i = 0; i < OUTPUTS + REST; i++) {
            float sum = 0;
            for (int k = (i + OUTPUTS) % S; k < K; k += S)
                for (int ci = 0; ci < CI; ci++) {
                    const int at = (i + OUTPUTS - k) / S; /* of the columns, twice */
                    if (at < 2 * COLUMNS)
                        sum += x[ci * COLUMNS + at % COLUMNS] * w[(ci * CO + co) * K + k];
                }
            right = right && sum == (i < OUTPUTS ? y[co * OUTPUTS + i]
                                                 : y[CO * OUTPUTS + co * REST + i - OUTPUTS]);
        }
    return right;
}

/* Arrays in slabs on two device objects: dense, or with steps. */
static struct outcome slabs_of(const tconv_problem *p, float *from, float *to)
{
    struct outcome o = {.status = TCONV_OK};
    tconv_device *opened[2] = {NULL, NULL};
    tconv_layer *layer = NULL;
    tconv_tensors arrays = TCONV_TENSORS_INIT;
    tconv_run run = TCONV_RUN_INIT;
    run.memory_limit = 2 * 2 * sizeof(float) * (CI * X * 2 + CO * Y); /* a row or two */
    arrays.data.host = from;
    arrays.filter.host = w;
    arrays.output.host = to;
    for (int i = 0; i < 2 && o.status == TCONV_OK; i++) {
        o.status = tconv_device_open(device_number, &opened[i], &o.error);
        if (o.status == TCONV_OK) tconv_device_set_cache(opened[i], NULL, 0, NULL);
    }
    if (o.status == TCONV_OK)
        o.status = tconv_layer_create(opened, 2, TCONV_FILTER_VARIES, &layer, &o.error);
    if (o.status == TCONV_OK) o.status = tconv_layer_run(layer, p, NULL, &arrays, &run, &o.error);
    tconv_layer_release(layer);
    for (int i = 0; i < 2; i++) tconv_device_release(opened[i]);
    return o;
}

static struct outcome slabs(void)
{
    const tconv_problem p = problem_of();
    return slabs_of(&p, x, y);
}

/* Every other element of arrays, so that slabs are gathered and scattered. */
static struct outcome slabs_with_steps(void)
{
    static float from[2 * CI * ROWS * X], to[2 * CO * ROWS * Y];
    tconv_problem p = problem_of();
    p.data_steps = (tconv_steps){4, {2 * CI * ROWS * X, 2 * ROWS * X, 2 * X, 2}};
    p.output_steps = (tconv_steps){4, {2 * CO * ROWS * Y, 2 * ROWS * Y, 2 * Y, 2}};
    for (int i = 0; i < CI * ROWS * X; i++) from[2 * i] = x[i];
    memset(to, 0xff, sizeof to);
    const struct outcome o = slabs_of(&p, from, to);
    for (int i = 0; i < CO * ROWS * Y; i++) y[i] = to[2 * i];
    return o;
}

static tconv_status plan_with(tconv_device *device, tconv_error *error)
{
    const tconv_problem p = problem_of();
    tconv_plan *plan = NULL;
    tconv_plan_options plan_options = TCONV_PLAN_OPTIONS_INIT;
    plan_options.algorithm = "reference";
    const tconv_status status = tconv_plan_create(device, &p, &plan_options, &plan, error);
    tconv_plan_release(plan);
    return status;
}

static void ignore(void *nothing, const tconv_stored_search *stored)
{
    (void)nothing;
    assert_non_null(stored->file);
}

/* Programs go to the folder, come back from it, are prepared, exported and imported; the folder
 * is listed. */
static struct outcome kept_programs(void)
{
    struct outcome o = {.status = TCONV_OK};
    assert_true(clear_folder(folder));
    tconv_device *opened[3] = {NULL, NULL, NULL};
    for (int i = 0; i < 3 && o.status == TCONV_OK; i++) {
        o.status = tconv_device_create(context, device_id, &opened[i], &o.error);
        if (o.status == TCONV_OK)
            o.status = tconv_device_set_cache(opened[i], i < 2 ? folder : NULL, 0, &o.error);
        if (o.status == TCONV_OK && i < 2) o.status = plan_with(opened[i], &o.error);
    }
    size_t size = 0;
    if (o.status == TCONV_OK)
        o.status = tconv_device_stored_searches(opened[1], ignore, NULL, &o.error);
    if (o.status == TCONV_OK)
        o.status = tconv_device_export_programs(opened[1], NULL, &size, &o.error);
    unsigned char *bytes = o.status == TCONV_OK && size > 0 ? malloc(size) : NULL;
    if (bytes != NULL) {
        o.status = tconv_device_export_programs(opened[1], bytes, &size, &o.error);
        if (o.status == TCONV_OK)
            o.status = tconv_device_import_programs(opened[2], bytes, size, NULL, &o.error);
        if (o.status == TCONV_OK) o.status = plan_with(opened[2], &o.error);
    }
    free(bytes);
    for (int i = 0; i < 3; i++) tconv_device_release(opened[i]);
    memcpy(y, expected, sizeof y); /* there is no output to look at */
    return o;
}

/* Programs for a range of extents are prepared. */
static struct outcome prepared_programs(void)
{
    struct outcome o;
    const tconv_problem p = problem_of();
    tconv_shape most = p.data;
    tconv_device *device = NULL;
    most.dim[3]++;
    assert_true(clear_folder(folder));
    o.status = tconv_device_create(context, device_id, &device, &o.error);
    if (o.status == TCONV_OK) o.status = tconv_device_set_cache(device, folder, 0, &o.error);
    if (o.status == TCONV_OK)
        o.status = tconv_device_prepare(device, &p, &most, NULL, NULL, &o.error);
    tconv_device_release(device);
    memcpy(y, expected, sizeof y); /* there is no output to look at */
    return o;
}

static struct outcome the_list(void)
{
    struct outcome o;
    int count = 0, number = 0;
    cl_device_id id = NULL;
    tconv_device_info info = {.struct_size = sizeof info};
    o.status = tconv_device_count(&count, &o.error);
    if (o.status == TCONV_OK) o.status = tconv_device_default(&number, &o.error);
    if (o.status == TCONV_OK) o.status = tconv_device_at(number, NULL, &id, &o.error);
    if (o.status == TCONV_OK) o.status = tconv_device_describe(id, &info, &o.error);
    memcpy(y, expected, sizeof y);
    return o;
}

/* Sources that do not compile: the error is that, whatever else fails. */
static struct outcome broken_sources(void)
{
    struct outcome o;
    tconv_device *device = NULL;
    setenv("TCONV_CL_KERNEL_DIR", folder, 1);
    o.status = tconv_device_create(context, device_id, &device, &o.error);
    if (o.status == TCONV_OK) o.status = plan_with(device, &o.error);
    tconv_device_release(device);
    unsetenv("TCONV_CL_KERNEL_DIR");
    memcpy(y, expected, sizeof y);
    return o;
}

/* ---- Failing every call ---- */

/* What the library may do without: it assumes the least of a device that does not answer, compiles
 * what it cannot keep, goes on where giving back failed, and builds once more what did not build.
 */
static bool may_succeed(const char *call, cl_int code)
{
    static const char *const names[] = {"clGetDeviceInfo",
                                        "clGetPlatformInfo",
                                        "clGetDeviceIDs",
                                        "clGetKernelWorkGroupInfo",
                                        "clGetProgramInfo",
                                        "clRetainProgram",
                                        "clFlush",
                                        "clCreateProgramWithBinary",
                                        "clGetExtensionFunctionAddressForPlatform"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(call, names[i]) == 0) return true;
    return strcmp(call, "clBuildProgram") == 0 &&
           (code == CL_BUILD_PROGRAM_FAILURE || code == CL_INVALID_BINARY);
}

struct figures {
    int failed, sites, tolerated;
};

static void expect_nothing_alive(const char *what, const long before[KINDS])
{
    long after[KINDS];
    fault_alive(after);
    for (int k = 0; k < KINDS; k++)
        if (after[k] != before[k])
            fail_msg("%s: %ld %s more than before", what, after[k] - before[k], fault_kind_name(k));
}

static void expect_inputs_untouched(const char *what)
{
    static float own[CI * ROWS * X], own_weights[CI * CO * K];
    assert_int_equal(clEnqueueReadBuffer(queue, data, CL_TRUE, 0, sizeof own, own, 0, NULL, NULL),
                     CL_SUCCESS);
    assert_int_equal(clEnqueueReadBuffer(queue, weights, CL_TRUE, 0, sizeof own_weights,
                                         own_weights, 0, NULL, NULL),
                     CL_SUCCESS);
    if (memcmp(own, x, sizeof x) != 0 || memcmp(own_weights, w, sizeof w) != 0)
        fail_msg("%s: the caller's tensors changed", what);
    const cl_mem buffers[] = {data, weights, output, workspace};
    for (int i = 0; i < 4; i++) {
        cl_uint owners = 2;
        for (int wait = 0; owners > 1 && wait < 1000; wait++) {
            /* PoCL gives up its own some time after a command's end. */
            if (wait > 0) nanosleep(&(struct timespec){0, 1000000}, NULL);
            assert_int_equal(clGetMemObjectInfo(buffers[i], CL_MEM_REFERENCE_COUNT, sizeof owners,
                                                &owners, NULL),
                             CL_SUCCESS);
        }
        if (owners != 1) fail_msg("%s: a buffer of the caller's has %u owners", what, owners);
    }
}

static void expect_sentence(const char *what, const char *call, cl_int code, bool opencl,
                            const struct outcome *o)
{
    if (o->error.status != o->status || o->error.message[0] == '\0')
        fail_msg("%s: status %d without a sentence", what, o->status);
    if (o->status == TCONV_ERROR_FILE && strstr(o->error.message, "cannot be stored") != NULL)
        return; /* the programs are ready, which is more than why they cannot be kept */
    if (!opencl) {
        if (o->status != TCONV_ERROR_HOST_MEMORY) fail_msg("%s: %s", what, o->error.message);
        return;
    }
    if (o->status == TCONV_ERROR_NO_DEVICE) return; /* the only platform did not answer */
    if (o->status == TCONV_ERROR_DEVICE && strstr(o->error.message, "pointer") != NULL)
        return; /* the device did not say that it has shared memory */
    if ((o->status == TCONV_ERROR_DEVICE || o->status == TCONV_ERROR_MISMATCH) &&
        strstr(o->error.message, "command_buffer") != NULL)
        return; /* nor that it has command buffers, or that it is PoCL's */
    if (o->status == TCONV_ERROR_BUFFER && code == CL_INVALID_BUFFER_SIZE)
        return; /* no bytes of shared memory are there */
    if (o->error.opencl_code != code || strstr(o->error.message, call) == NULL)
        fail_msg("%s: the error is %s (%d)", what, o->error.message, o->error.opencl_code);
    const bool host = o->status == TCONV_ERROR_HOST_MEMORY,
               memory = o->status == TCONV_ERROR_DEVICE_MEMORY;
    if (host != (code == CL_OUT_OF_HOST_MEMORY) ||
        memory != (code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES ||
                   code == CL_INVALID_BUFFER_SIZE))
        fail_msg("%s: %s for %d", what, tconv_status_name(o->status), code);
}

/* One failure; false where the scenario makes fewer calls than that. */
static bool fail_once(const char *name, struct outcome (*scenario)(void), tconv_status usual,
                      int call, int n, cl_int code, struct figures *figures)
{
    const struct fault_call *c = &fault_calls[call];
    char what[200];
    snprintf(what, sizeof what, "%s, call %d of %s fails with %d", name, n, c->name, code);
    long before[KINDS];
    fault_alive(before);
    memset(y, 0xff, sizeof y);
    assert_int_equal(clEnqueueWriteBuffer(queue, output, CL_TRUE, 0, sizeof y, y, 0, NULL, NULL),
                     CL_SUCCESS);
    fault_arm(call, n, code);
    const struct outcome o = scenario();
    const bool failed = fault_disarm();
    if (scenario == plans_by_name || scenario == plans_by_choice || scenario == queue_layers ||
        scenario == traced_plans || scenario == plans_on_pointers || scenario == plans_recorded ||
        scenario == plans_recorded_and_replaced || scenario == streams_on_queues)
        read_output();
    if (scenario == streams_on_queues && stream_is_right()) memcpy(y, expected, sizeof y);
    expect_nothing_alive(what, before);
    if (!failed) {
        if (o.status != usual) fail_msg("%s: without any failure: %s", name, o.error.message);
        return false;
    }
    expect_inputs_untouched(what);
    const bool opencl = strncmp(c->name, "cl", 2) == 0;
    figures->failed++;
    if (o.status == usual) {
        figures->tolerated++;
        if (usual != TCONV_OK) return true;
        if (!output_is_right()) fail_msg("%s: no error, and a wrong output", what);
        if (opencl && scenario == plans_by_name && !c->releases && !may_succeed(c->name, code))
            fail_msg("%s: it was not noticed", what);
    } else
        expect_sentence(what, c->name, code, opencl, &o);
    return true;
}

static int most_places = INT_MAX; /* at which this run lets each call fail */

/* A short run has the first two places of each call and one of eight of the others. */
static bool left_out(int call, int n)
{
    return !sample_is_whole() && n > 2 && (n + call) % 8 != 0;
}

/* `every`: with each code of a call at each place, unless the run is a short one; else with one,
 * another one at the next place. */
static void fail_everywhere(const char *name, struct outcome (*scenario)(void), tconv_status usual,
                            bool every)
{
    every = every && sample_is_whole();
    struct figures all = {0, 0, 0};
    for (int call = 0; fault_calls[call].name != NULL; call++)
        for (int n = 1; n <= most_places; n++) {
            const cl_int *codes = fault_calls[call].codes;
            int count = 0, first = 0;
            if (left_out(call, n)) continue;
            while (codes[count] != 0) count++;
            if (!every) first = (n - 1) % count;
            bool made = true;
            for (int c = first; made && c < (every ? count : first + 1); c++)
                made = fail_once(name, scenario, usual, call, n, codes[c], &all);
            if (!made) break;
            all.sites++;
            if (!every) continue;
            const struct outcome o = scenario(); /* after a failure the same works */
            if (o.status != usual) fail_msg("%s: after a failure: %s", name, o.error.message);
        }
    print_message("%s: %d calls failed at %d sites, %d of them did no harm, leaks 0\n", name,
                  all.failed, all.sites, all.tolerated);
    assert_true(all.failed > 0);
}

static void plans_that_fail(void **state)
{
    (void)state;
    fail_everywhere("plan, pack, enqueue", plans_by_name, TCONV_OK, true);
    fail_everywhere("the library's choice", plans_by_choice, TCONV_OK, false);
    fail_everywhere("plan, pack, enqueue, traced", traced_plans, TCONV_OK, false);
    if (shared_data != NULL) fail_everywhere("plan on pointers", plans_on_pointers, TCONV_OK, true);
    if (recorder.create != NULL) fail_everywhere("plan, recorded", plans_recorded, TCONV_OK, true);
    if (recorder.create != NULL && recorder_replaces(device_id))
        fail_everywhere("plan, recorded and replaced", plans_recorded_and_replaced, TCONV_OK, true);
}

static void host_runs_that_fail(void **state)
{
    (void)state;
    fail_everywhere("host run", host_runs, TCONV_OK, false);
    fail_everywhere("opened layers", host_layers, TCONV_OK, false);
    if (smoke_suffices()) return; /* what is new in the others is the host's */
    fail_everywhere("streams", streams, TCONV_OK, false);
    fail_everywhere("slabs", slabs, TCONV_OK, false);
    fail_everywhere("slabs with steps", slabs_with_steps, TCONV_OK, false);
    tconv_device *opened = NULL;
    assert_int_equal(tconv_device_open(device_number, &opened, NULL), TCONV_OK);
    const bool shared = tconv_device_threads(opened) > 0;
    tconv_device_release(opened);
    if (shared) fail_everywhere("shared runs", shared_runs, TCONV_OK, false);
}

static void layers_on_queues_that_fail(void **state)
{
    (void)state;
    fail_everywhere("layers on queues", queue_layers, TCONV_OK, false);
    fail_everywhere("streams on queues", streams_on_queues, TCONV_OK, false);
}

static void kept_programs_that_fail(void **state)
{
    (void)state;
    fail_everywhere("kept programs", kept_programs, TCONV_OK, true);
    fail_everywhere("prepared programs", prepared_programs, TCONV_OK, false);
}

static void calls_that_list_devices_fail_one_by_one(void **state)
{
    (void)state;
    fail_everywhere("the list of devices", the_list, TCONV_OK, true);
}

static void broken_sources_that_fail(void **state)
{
    (void)state;
    assert_true(clear_folder(folder));
    char rooms[500], path[520];
    snprintf(rooms, sizeof rooms, "%s/any", folder);
    assert_int_equal(mkdir(rooms, 0700), 0);
    snprintf(path, sizeof path, "%s/reference.cl", rooms);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("this is not OpenCL C\n", file);
    fclose(file);
    fail_everywhere("broken sources", broken_sources, TCONV_ERROR_BUILD, false);
    unlink(path);
    rmdir(rooms);
}

/* ---- The caller's own objects ---- */

static int open_device(void **state)
{
    (void)state;
    cl_int code;
    if (smoke_suffices()) most_places = 1;
    device_number = find_one_device(&device_id);
    if (device_number < 0) return 1;
    fill();
    context = clCreateContext(NULL, 1, &device_id, NULL, NULL, &code);
    if (code != CL_SUCCESS) return 1;
    queue = clCreateCommandQueue(context, device_id, 0, &code);
    if (code != CL_SUCCESS) return 1;
    const struct {
        cl_mem *buffer;
        size_t bytes;
        void *contents;
    } buffers[] = {{&data, sizeof x, x},
                   {&weights, sizeof w, w},
                   {&output, sizeof y, NULL},
                   {&workspace, 1 << 20, NULL}};
    for (int i = 0; i < 4; i++) {
        *buffers[i].buffer = clCreateBuffer(
            context, CL_MEM_READ_WRITE | (buffers[i].contents != NULL ? CL_MEM_COPY_HOST_PTR : 0),
            buffers[i].bytes, buffers[i].contents, &code);
        if (code != CL_SUCCESS) return 1;
    }
    recorder_find(device_id, &recorder);
    cl_bitfield svm = 0; /* CL_DEVICE_SVM_CAPABILITIES, and its bit for fine-grained buffers */
    void *(CL_API_CALL * allocate)(cl_context, cl_bitfield, size_t, cl_uint);
    if (clGetDeviceInfo(device_id, 0x1053, sizeof svm, &svm, NULL) == CL_SUCCESS &&
        (svm & 2) != 0 && tconv_os_find_function(NULL, "clSVMAlloc", &allocate)) {
        shared_data = allocate(context, CL_MEM_READ_WRITE | 1 << 10, sizeof x, 0);
        shared_weights = allocate(context, CL_MEM_READ_WRITE | 1 << 10, sizeof w, 0);
        if (shared_data == NULL || shared_weights == NULL) return 1;
        memcpy(shared_data, x, sizeof x);
        memcpy(shared_weights, w, sizeof w);
    }
    snprintf(folder, sizeof folder, "/tmp/tconv-faults-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int close_device(void **state)
{
    (void)state;
    const cl_mem buffers[] = {data, weights, output, workspace};
    for (int i = 0; i < 4; i++) clReleaseMemObject(buffers[i]);
    void(CL_API_CALL * release)(cl_context, void *);
    if (shared_data != NULL && tconv_os_find_function(NULL, "clSVMFree", &release)) {
        release(context, shared_data);
        release(context, shared_weights);
    }
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    return rmdir(folder);
}

int main(void)
{
    struct CMUnitTest tests[] = {
        smoke_test(calls_that_list_devices_fail_one_by_one),
        cmocka_unit_test(plans_that_fail),
        smoke_test(host_runs_that_fail),
        cmocka_unit_test(layers_on_queues_that_fail),
        cmocka_unit_test(kept_programs_that_fail),
        cmocka_unit_test(broken_sources_that_fail),
    };
    const int failures = run_smoke_or_all("faults", tests, open_device, close_device);
    report_compiling();
    return failures;
}
