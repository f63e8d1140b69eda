/* SPDX-License-Identifier: Apache-2.0 */
/* --trace: turns events of tconv_cl/trace.h into Chrome's trace format. Threads of a device launch
 * at the same time, during a call of the library: a lock guards the trace then. */
#include "tool/bench/trace.h"

#include "base/os.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOST = 1, DEVICE = 2 }; /* the processes of the picture */

/* A launch whose times on the device are not read yet. */
struct launch {
    struct launch *next;
    json_t *span;
    cl_event event;
    uint64_t begin_ns, end_ns; /* of its enqueueing on the host */
    bool waits;                /* until it has ended on the device */
};

enum { MOST_LANES = 2048 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct trace {
    const struct opened *opened;
    cl_command_queue queue;
    uint64_t start_ns; /* 0 in the file */
    json_t *events;
    struct launch *pending;
    bool lacks_memory;
    long executions;        /* launches whose times the device told */
    pthread_key_t own;      /* of a thread: its lane */
    bool taken[MOST_LANES]; /* lanes of threads that have not ended */
} trace;

/* Microseconds in the file. */
static double file_us(double ns)
{
    return 1e-3 * (ns - (double)trace.start_ns);
}

/* Adds an event to the file. Takes the reference. */
static void add(json_t *event)
{
    if (event == NULL || json_array_append_new(trace.events, event) != 0) trace.lacks_memory = true;
}

static void leave_lane(void *lane)
{
    pthread_mutex_lock(&lock);
    *(bool *)lane = false;
    pthread_mutex_unlock(&lock);
}

/* The lane of the calling thread, from 1. */
static int own_lane(void)
{
    bool *lane = pthread_getspecific(trace.own);
    if (lane == NULL) {
        lane = trace.taken;
        while (*lane && lane < trace.taken + MOST_LANES - 1) lane++;
        *lane = true;
        if (pthread_setspecific(trace.own, lane) != 0) trace.lacks_memory = true;
    }
    return (int)(lane - trace.taken) + 1;
}

/* A span of a process, in a lane of it. */
static json_t *span_in(int lane, int process, const char *category, const char *name,
                       double begin_ns, double end_ns, json_t *arguments)
{
    return json_pack("{s:s, s:s, s:o, s:i, s:i, s:f, s:f, s:o}", "ph", "X", "cat", category, "name",
                     text_json(name), "pid", process, "tid", lane, "ts", file_us(begin_ns), "dur",
                     1e-3 * (end_ns - begin_ns), "args", arguments);
}

static json_t *span(int process, const char *category, const char *name, double begin_ns,
                    double end_ns, json_t *arguments)
{
    return span_in(1, process, category, name, begin_ns, end_ns, arguments);
}

/* The name of a process in the picture. */
static void name_process(int process, const char *name)
{
    add(json_pack("{s:s, s:s, s:i, s:i, s:{s:o}}", "ph", "M", "name", "process_name", "pid",
                  process, "tid", 1, "args", "name", text_json(name)));
}

static void add_plan(const tconv_trace_event *e)
{
    char name[100];
    snprintf(name, sizeof name, "plan %s", e->algorithm);
    add(span(HOST, "plan", name, (double)e->begin_ns, (double)e->end_ns,
             json_pack("{s:o, s:o, s:o, s:o}", "problem", text_json(e->problem), "algorithm",
                       text_json(e->algorithm), "tile", text_json(e->tile), "chosen by",
                       text_json(e->source))));
}

static void add_passed_over(const tconv_trace_event *e)
{
    char name[100];
    snprintf(name, sizeof name, "passed over %s", e->algorithm);
    add(json_pack("{s:s, s:s, s:o, s:s, s:i, s:i, s:f, s:{s:o, s:o, s:o}}", "ph", "i", "cat",
                  "passed over", "name", text_json(name), "s", "t", "pid", HOST, "tid", 1, "ts",
                  file_us((double)e->begin_ns), "args", "problem", text_json(e->problem), "tile",
                  text_json(e->tile), "why", text_json(e->message)));
}

static void add_program(const tconv_trace_event *e)
{
    char name[200];
    snprintf(name, sizeof name, "program %s", e->name);
    add(span(HOST, "program", name, (double)e->begin_ns, (double)e->end_ns,
             json_pack("{s:o, s:o, s:o}", "from", text_json(e->source), "options",
                       text_json(e->options), "error", text_json(e->message))));
}

static json_t *sizes(const size_t *size)
{
    return json_pack("[I, I, I]", (json_int_t)size[0], (json_int_t)size[1], (json_int_t)size[2]);
}

/* A launch has two spans: its enqueueing on the host, and its execution on the device. */
static void add_launch(const tconv_trace_event *e)
{
    char name[200];
    const int lane = own_lane();
    snprintf(name, sizeof name, "enqueue %s", e->name);
    add(span_in(lane, HOST, "enqueue", name, (double)e->begin_ns, (double)e->end_ns,
                json_object()));
    struct launch *launch = malloc(sizeof *launch);
    json_t *execution =
        span_in(lane, DEVICE, "launch", e->name, 0, 0,
                json_pack("{s:o, s:o, s:o, s:o, s:o, s:i, s:i}", "problem", text_json(e->problem),
                          "algorithm", text_json(e->algorithm), "tile", text_json(e->tile),
                          "global", sizes(e->global), "local", sizes(e->local), "piece",
                          (int)e->piece, "pieces", (int)e->pieces));
    if (launch == NULL || execution == NULL || clRetainEvent(e->event) != CL_SUCCESS) {
        trace.lacks_memory = true;
        json_decref(execution);
        free(launch);
        return;
    }
    *launch = (struct launch){trace.pending, execution, e->event,
                              e->begin_ns,   e->end_ns, tconv_device_threads(e->device) > 0};
    trace.pending = launch;
}

static void hear(void *context, const tconv_trace_event *event)
{
    (void)context;
    pthread_mutex_lock(&lock);
    switch (event->kind) {
    case TCONV_TRACE_PLAN: add_plan(event); break;
    case TCONV_TRACE_PASSED_OVER: add_passed_over(event); break;
    case TCONV_TRACE_PROGRAM: add_program(event); break;
    case TCONV_TRACE_LAUNCH: add_launch(event); break;
    case TCONV_TRACE_FALLBACK:  /* there is no adapter here, */
    case TCONV_TRACE_RECORDING: /* and no command buffer */
    case TCONV_TRACE_REPLAY: break;
    }
    pthread_mutex_unlock(&lock);
}

enum exit_code trace_begin(const struct opened *opened)
{
    if (options.trace == NULL) return EXIT_DONE;
    tconv_device *device = opened->device;
    const char *name = tconv_device_properties(device)->name;
    tconv_error error;
    cl_int code;
    trace.queue = clCreateCommandQueue(tconv_device_context(device), tconv_device_id(device),
                                       CL_QUEUE_PROFILING_ENABLE, &code);
    if (code != CL_SUCCESS) {
        trace.queue = NULL;
        return failed_work("--trace needs a queue that measures times, which %s does not give "
                           "(OpenCL code %d)",
                           name, code);
    }
    if (pthread_key_create(&trace.own, leave_lane) != 0)
        return failed_work("--trace %s needs memory that is not there", options.trace);
    own_lane(); /* 1 is that of the host's other spans */
    trace.opened = opened;
    trace.start_ns = (uint64_t)(1e9 * tconv_os_seconds());
    trace.events = json_array();
    name_process(HOST, "host");
    name_process(DEVICE, name);
    return tconv_device_set_trace(device, TCONV_TRACE_ALL, hear, NULL, &error) == TCONV_OK
               ? EXIT_DONE
               : failed_call(&error);
}

void trace_device(tconv_device *device)
{
    if (trace.opened != NULL) tconv_device_set_trace(device, TCONV_TRACE_ALL, hear, NULL, NULL);
}

cl_command_queue trace_queue(const struct opened *opened)
{
    return trace.opened == opened ? trace.queue : opened->queue;
}

static bool device_time(cl_event event, cl_profiling_info which, double *ns)
{
    cl_ulong value = 0;
    const bool known = clGetEventProfilingInfo(event, which, sizeof value, &value, NULL) ==
                       CL_SUCCESS;
    *ns = (double)value;
    return known && value != 0;
}

/* Host time minus device time. A command is queued after its call began and before the call
 * ended; if the call waits, so does its execution. The narrowest of these intervals tells the
 * distance best. */
static double clock_distance(void)
{
    double distance = 0, least = -1, queued, last;
    for (const struct launch *l = trace.pending; l != NULL; l = l->next) {
        if (!device_time(l->event, CL_PROFILING_COMMAND_QUEUED, &queued) ||
            !device_time(l->event,
                         l->waits ? CL_PROFILING_COMMAND_END : CL_PROFILING_COMMAND_QUEUED, &last))
            continue;
        const double first = (double)l->begin_ns - queued,
                     room = fmax(0, (double)l->end_ns - last - first);
        if (least >= 0 && room >= least) continue;
        distance = first + room / 2;
        least = room;
    }
    return distance;
}

/* Adds the execution of a launch, if the device tells its times: it does not for the queues of
 * searches. */
static void add_execution(const struct launch *l, double distance)
{
    double queued, start, end;
    if (!device_time(l->event, CL_PROFILING_COMMAND_QUEUED, &queued) ||
        !device_time(l->event, CL_PROFILING_COMMAND_START, &start) ||
        !device_time(l->event, CL_PROFILING_COMMAND_END, &end)) {
        json_decref(l->span);
        return;
    }
    if (json_object_set_new(l->span, "ts", json_real(file_us(start + distance))) != 0 ||
        json_object_set_new(l->span, "dur", json_real(1e-3 * (end - start))) != 0 ||
        json_object_set_new(json_object_get(l->span, "args"), "waited us",
                            json_real(1e-3 * (start - queued))) != 0)
        trace.lacks_memory = true;
    add(l->span);
    trace.executions++;
}

static void settle(void)
{
    if (trace.pending == NULL) return;
    clFinish(trace.queue);
    const double distance = clock_distance();
    while (trace.pending != NULL) {
        struct launch *l = trace.pending;
        trace.pending = l->next;
        add_execution(l, distance);
        clReleaseEvent(l->event);
        free(l);
    }
}

void trace_layer(const char *id, const char *layer, double begin)
{
    if (trace.opened == NULL) return;
    char name[400];
    snprintf(name, sizeof name, "%s %s", id, layer);
    add(span(HOST, "layer", name, 1e9 * begin, 1e9 * tconv_os_seconds(), json_object()));
    settle();
}

enum exit_code trace_write(void)
{
    if (trace.opened == NULL) return EXIT_DONE;
    settle();
    if (trace.executions == 0)
        notice("the device tells no times of launches: --trace %s has spans of the host only",
               options.trace);
    if (trace.lacks_memory || trace.events == NULL)
        return failed_work("--trace %s needs memory that is not there", options.trace);
    json_t *all = json_pack("{s:s, s:O}", "displayTimeUnit", "ns", "traceEvents", trace.events);
    const size_t flags = JSON_COMPACT | JSON_REAL_PRECISION(15);
    const enum exit_code code = write_json_file("--trace", options.trace, all, flags);
    json_decref(all);
    return code;
}

void trace_end(void)
{
    if (trace.opened != NULL) {
        tconv_device_set_trace(trace.opened->device, 0, NULL, NULL, NULL);
        pthread_key_delete(trace.own);
    }
    settle();
    json_decref(trace.events);
    if (trace.queue != NULL) clReleaseCommandQueue(trace.queue);
    trace = (struct trace){.opened = NULL};
}
