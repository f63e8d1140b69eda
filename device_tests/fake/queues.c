/* SPDX-License-Identifier: Apache-2.0 */
/* Queues, events, and the commands, which run as late as they may. */
#include "fake_internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STEP_FAILED = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST };
enum { MOST_QUEUES = 256 };
static cl_command_queue queues[MOST_QUEUES]; /* with commands that have not ended */
static int busy_queues;

static cl_ulong now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (cl_ulong)t.tv_sec * 1000000000 + (cl_ulong)t.tv_nsec;
}

static bool has_order(cl_command_queue queue)
{
    return (queue->properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0;
}

/* ---- execution ---- */

/* Moves rows of slices of bytes. */
static void move(const struct _cl_event *e)
{
    for (size_t z = 0; z < e->slices; z++)
        for (size_t y = 0; y < e->rows; y++)
            memmove(e->to + z * e->to_slice + y * e->to_row,
                    e->from + z * e->from_slice + y * e->from_row, e->bytes);
}

static void fill(const struct _cl_event *e)
{
    for (size_t i = 0; i < e->bytes; i += e->pattern_size)
        memcpy(e->to + i, e->pattern, e->pattern_size);
}

static void execute(cl_event e)
{
    switch (e->type) {
    case CL_COMMAND_NDRANGE_KERNEL: fake_task_run(e->task); break;
    case CL_COMMAND_FILL_BUFFER: fill(e); break;
    case CL_COMMAND_READ_BUFFER:
    case CL_COMMAND_WRITE_BUFFER:
    case CL_COMMAND_READ_BUFFER_RECT:
    case CL_COMMAND_WRITE_BUFFER_RECT:
    case CL_COMMAND_COPY_BUFFER_RECT:
    case CL_COMMAND_MAP_BUFFER: move(e); break;
    case CL_COMMAND_UNMAP_MEM_OBJECT:
        if (e->write_back) move(e);
        break;
    default:
        if (e->recording != NULL)
            for (const struct task *t = e->recording->first; t != NULL; t = t->next)
                fake_task_run(t);
    }
    if (e->type == CL_COMMAND_UNMAP_MEM_OBJECT && e->mapped != NULL) free(e->mapped);
}

/* A command has ended: nothing that it used is needed any more. */
static void end(cl_event e, cl_int state)
{
    fake_changed();
    e->state = state;
    e->time[3] = now();
    for (cl_uint i = 0; i < e->waits; i++) fake_drop(e->wait[i]);
    free(e->wait);
    e->wait = NULL;
    e->waits = 0;
    if (e->task != NULL) fake_task_free(e->task);
    e->task = NULL;
    fake_drop(e->buffer);
    e->buffer = NULL;
    fake_drop(e->source);
    e->source = NULL;
    fake_drop(e->recording);
    e->recording = NULL;
    if (e->queue != NULL) {
        cl_event *link = &e->queue->first;
        while (*link != e) link = &(*link)->next;
        *link = e->next;
        if (e->queue->first == NULL) {
            int q = 0;
            while (queues[q] != e->queue) q++;
            memmove(&queues[q], &queues[q + 1], (size_t)(--busy_queues - q) * sizeof *queues);
        }
        fake_drop(e); /* the queue's */
    }
}

static bool is_ready(const struct _cl_event *e)
{
    bool ready = e->flushed;
    for (cl_uint i = 0; i < e->waits && ready; i++) ready = e->wait[i]->state <= CL_COMPLETE;
    return ready;
}

/* The command of a queue that runs next: of those that may, the last. */
static cl_event next_of(cl_command_queue queue)
{
    cl_event chosen = NULL;
    for (cl_event e = queue->first; e != NULL; e = e->next) {
        if (is_ready(e)) chosen = e;
        if (has_order(queue)) break;
    }
    return chosen;
}

/* Chooses the command that runs next. Queues take turns, the queue that got its first command last
 * before the others, so that the commands of two queues alternate. NULL if none may run. */
static cl_event choose(void)
{
    static cl_command_queue last; /* whose turn was last */
    cl_event chosen = NULL;
    for (int q = busy_queues - 1; q >= 0 && (chosen == NULL || chosen->queue == last); q--) {
        cl_event e = next_of(queues[q]);
        if (e != NULL && (chosen == NULL || e->queue != last)) chosen = e;
    }
    if (chosen != NULL) last = chosen->queue;
    return chosen;
}

/* Runs one command. False if none may run. */
static bool step(void)
{
    cl_event e = choose();
    if (e == NULL) return false;
    cl_int state = CL_COMPLETE;
    for (cl_uint i = 0; i < e->waits; i++)
        if (e->wait[i]->state < 0) state = STEP_FAILED;
    e->time[2] = now();
    if (state == CL_COMPLETE) execute(e);
    end(e, state);
    return true;
}

/* A device works on while the application does something else: after a while all has run that
 * may. */
static void pass_time(void)
{
    enum { WHILE = 5000000 /* ns */ };
    static cl_ulong last;
    const cl_ulong time = now();
    if (time - last > WHILE)
        while (step()) {
        }
    last = time;
}

static void flush(cl_command_queue queue)
{
    fake_changed();
    for (cl_event e = queue->first; e != NULL; e = e->next) {
        if (!e->flushed) e->time[1] = now();
        e->flushed = true;
        if (e->state == CL_QUEUED) e->state = CL_SUBMITTED;
    }
}

/* Runs what may run until the event has ended. Without the lock in between: another thread may end
 * a user event, or flush. */
static void wait_for(cl_event event, const char *call)
{
    enum { MOST_NAPS = 600 }; /* half a minute */
    fake_use(event);
    for (int naps = 0; event->state > CL_COMPLETE;) {
        if (step()) continue;
        if (++naps > MOST_NAPS)
            fake_die("%s waits for a command of type %#x that does not begin: it is %s, and waits "
                     "for %u events",
                     call, event->type, event->flushed ? "flushed" : "not flushed", event->waits);
        fake_wait();
    }
    fake_drop(event);
}

API void fake_expect_unused(const void *memory)
{
    fake_lock();
    for (int q = 0; q < busy_queues; q++)
        for (const struct _cl_event *e = queues[q]->first; e != NULL; e = e->next)
            if (e->from == memory || e->to == memory)
                fake_die("memory at %p is freed, but a command of type %#x has not ended that "
                         "uses it",
                         memory, e->type);
    fake_unlock();
}

/* ---- queues ---- */

API cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device,
                                          cl_command_queue_properties properties, cl_int *code)
{
    cl_int own;
    cl_command_queue made = NULL;
    if (code == NULL) code = &own;
    fake_lock();
    *code = CL_INVALID_CONTEXT;
    if (fake_lives(context, CONTEXT, "clCreateCommandQueue")) {
        *code = CL_INVALID_DEVICE;
        for (cl_uint i = 0; i < context->count; i++)
            if (context->device[i] == device) *code = CL_SUCCESS;
        if (*code == CL_SUCCESS && device->in_order &&
            (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0)
            *code = CL_INVALID_QUEUE_PROPERTIES;
    }
    if (*code == CL_SUCCESS) {
        made = fake_new(QUEUE, sizeof *made);
        made->context = context;
        made->device = device;
        made->properties = properties;
        fake_use(context);
    }
    fake_unlock();
    return made;
}

API cl_int clGetCommandQueueInfo(cl_command_queue q, cl_command_queue_info what, size_t size,
                                 void *value, size_t *needed)
{
    fake_lock();
    cl_int code = CL_INVALID_COMMAND_QUEUE;
    if (fake_lives(q, QUEUE, "clGetCommandQueueInfo"))
        code = what == CL_QUEUE_CONTEXT
                   ? fake_answer(&q->context, sizeof q->context, size, value, needed)
               : what == CL_QUEUE_DEVICE
                   ? fake_answer(&q->device, sizeof q->device, size, value, needed)
               : what == CL_QUEUE_PROPERTIES
                   ? fake_answer(&q->properties, sizeof q->properties, size, value, needed)
                   : CL_INVALID_VALUE;
    fake_unlock();
    return code;
}

API cl_int clRetainCommandQueue(cl_command_queue queue)
{
    return fake_retain(queue, QUEUE, CL_INVALID_COMMAND_QUEUE, "clRetainCommandQueue");
}

API cl_int clReleaseCommandQueue(cl_command_queue queue)
{
    return fake_release(queue, QUEUE, CL_INVALID_COMMAND_QUEUE, "clReleaseCommandQueue");
}

/* An event names its queue also after that was released, which flushed it. */
API cl_int clFlush(cl_command_queue queue)
{
    fake_lock();
    const bool released = queue != NULL && queue->object.kind == QUEUE && queue->object.users > 0 &&
                          queue->object.owners == 0;
    const bool lives = !released && fake_lives(queue, QUEUE, "clFlush");
    if (lives) flush(queue);
    fake_unlock();
    return lives ? CL_SUCCESS : CL_INVALID_COMMAND_QUEUE;
}

API cl_int clFinish(cl_command_queue queue)
{
    fake_lock();
    const bool lives = fake_lives(queue, QUEUE, "clFinish");
    if (lives) {
        fake_use(queue);
        flush(queue);
        while (queue->first != NULL) wait_for(queue->first, "clFinish");
        fake_drop(queue);
    }
    fake_unlock();
    return lives ? CL_SUCCESS : CL_INVALID_COMMAND_QUEUE;
}

/* ---- events ---- */

API cl_event clCreateUserEvent(cl_context context, cl_int *code)
{
    cl_int own;
    cl_event made = NULL;
    if (code == NULL) code = &own;
    fake_lock();
    *code = CL_INVALID_CONTEXT;
    if (fake_lives(context, CONTEXT, "clCreateUserEvent")) {
        made = fake_new(EVENT, sizeof *made);
        made->context = context;
        made->type = CL_COMMAND_USER;
        made->state = CL_SUBMITTED;
        made->flushed = true;
        fake_use(context);
        *code = CL_SUCCESS;
    }
    fake_unlock();
    return made;
}

API cl_int clSetUserEventStatus(cl_event event, cl_int state)
{
    fake_lock();
    cl_int code = CL_INVALID_EVENT;
    if (fake_lives(event, EVENT, "clSetUserEventStatus") && event->queue == NULL) {
        code = event->state <= CL_COMPLETE ? CL_INVALID_OPERATION
               : state > CL_COMPLETE       ? CL_INVALID_VALUE
                                           : CL_SUCCESS;
        if (code == CL_SUCCESS) event->state = state;
        fake_changed();
    }
    fake_unlock();
    return code;
}

/* Only executions with images ask for it. */
API cl_int clSetEventCallback(cl_event e, cl_int state,
                              void(CL_CALLBACK *notify)(cl_event, cl_int, void *), void *user)
{
    (void)e, (void)state, (void)notify, (void)user;
    return CL_OUT_OF_RESOURCES;
}

API cl_int clGetEventInfo(cl_event e, cl_event_info what, size_t size, void *value, size_t *needed)
{
    fake_lock();
    cl_int code = CL_INVALID_EVENT;
    if (fake_lives(e, EVENT, "clGetEventInfo")) {
        pass_time();
        const cl_int state = e->state;
        const cl_uint owners = (cl_uint)e->object.owners;
        code = what == CL_EVENT_COMMAND_EXECUTION_STATUS
                   ? fake_answer(&state, sizeof state, size, value, needed)
               : what == CL_EVENT_CONTEXT
                   ? fake_answer(&e->context, sizeof e->context, size, value, needed)
               : what == CL_EVENT_COMMAND_QUEUE
                   ? fake_answer(&e->queue, sizeof e->queue, size, value, needed)
               : what == CL_EVENT_COMMAND_TYPE
                   ? fake_answer(&e->type, sizeof e->type, size, value, needed)
               : what == CL_EVENT_REFERENCE_COUNT
                   ? fake_answer(&owners, sizeof owners, size, value, needed)
                   : CL_INVALID_VALUE;
        if (what == CL_EVENT_COMMAND_EXECUTION_STATUS) step(); /* who asks again has waited */
    }
    fake_unlock();
    return code;
}

API cl_int clGetEventProfilingInfo(cl_event e, cl_profiling_info what, size_t size, void *value,
                                   size_t *needed)
{
    fake_lock();
    cl_int code = CL_INVALID_EVENT;
    if (fake_lives(e, EVENT, "clGetEventProfilingInfo")) {
        const cl_uint which = what - CL_PROFILING_COMMAND_QUEUED;
        code = e->queue == NULL || (e->queue->properties & CL_QUEUE_PROFILING_ENABLE) == 0 ||
                       e->state != CL_COMPLETE
                   ? CL_PROFILING_INFO_NOT_AVAILABLE
               : which < 4 ? fake_answer(&e->time[which], sizeof *e->time, size, value, needed)
                           : CL_INVALID_VALUE;
    }
    fake_unlock();
    return code;
}

API cl_int clRetainEvent(cl_event event)
{
    return fake_retain(event, EVENT, CL_INVALID_EVENT, "clRetainEvent");
}

API cl_int clReleaseEvent(cl_event event)
{
    return fake_release(event, EVENT, CL_INVALID_EVENT, "clReleaseEvent");
}

API cl_int clWaitForEvents(cl_uint count, const cl_event *events)
{
    if (count == 0 || events == NULL) return CL_INVALID_VALUE;
    fake_lock();
    cl_int code = CL_SUCCESS;
    for (cl_uint i = 0; i < count && code == CL_SUCCESS; i++)
        if (!fake_lives(events[i], EVENT, "clWaitForEvents")) code = CL_INVALID_EVENT;
    for (cl_uint i = 0; i < count && code == CL_SUCCESS; i++)
        if (events[i]->queue != NULL) flush(events[i]->queue);
    for (cl_uint i = 0; i < count && code != CL_INVALID_EVENT; i++) {
        wait_for(events[i], "clWaitForEvents");
        if (events[i]->state < 0) code = STEP_FAILED;
    }
    fake_unlock();
    return code;
}

/* ---- commands ---- */

cl_int fake_enqueue(cl_command_queue queue, cl_command_type type, cl_uint count,
                    const cl_event *wait, const char *call, cl_event *out)
{
    if (!fake_lives(queue, QUEUE, call)) return CL_INVALID_COMMAND_QUEUE;
    if ((count == 0) != (wait == NULL)) return CL_INVALID_EVENT_WAIT_LIST;
    for (cl_uint i = 0; i < count; i++) {
        if (!fake_lives(wait[i], EVENT, call)) return CL_INVALID_EVENT_WAIT_LIST;
        if (wait[i]->context != queue->context) return CL_INVALID_CONTEXT;
    }
    pass_time();
    cl_event made = fake_new(EVENT, sizeof *made);
    made->context = queue->context;
    made->queue = queue;
    made->type = type;
    made->state = CL_QUEUED;
    made->time[0] = made->time[1] = made->time[2] = now();
    made->waits = count;
    made->wait = count == 0 ? NULL : malloc(count * sizeof *wait);
    for (cl_uint i = 0; i < count; i++) {
        made->wait[i] = wait[i];
        fake_use(wait[i]);
    }
    fake_use(queue->context);
    fake_use(queue);
    fake_use(made); /* by the queue */
    cl_event *link = &queue->first;
    if (*link == NULL) {
        if (busy_queues == MOST_QUEUES) fake_die("too many queues");
        queues[busy_queues++] = queue;
    }
    while (*link != NULL) link = &(*link)->next;
    *link = made;
    *out = made;
    return CL_SUCCESS;
}

cl_int fake_finish(cl_event command, cl_bool blocking, cl_event *event)
{
    cl_int code = CL_SUCCESS;
    if (blocking) {
        flush(command->queue);
        wait_for(command, "a blocking call");
        if (command->state < 0) code = STEP_FAILED;
    }
    if (event != NULL && code == CL_SUCCESS)
        *event = command;
    else if (--command->object.owners == 0) {
        fake_use(command);
        fake_drop(command);
    }
    return code;
}

/* Checks a transfer of `bytes` at `offset`. */
static cl_int check_transfer(cl_command_queue queue, cl_mem buffer, size_t offset, size_t bytes,
                             const void *host, const char *call)
{
    if (!fake_lives(queue, QUEUE, call)) return CL_INVALID_COMMAND_QUEUE;
    if (!fake_lives(buffer, BUFFER, call)) return CL_INVALID_MEM_OBJECT;
    if (buffer->context != queue->context) return CL_INVALID_CONTEXT;
    return host == NULL || bytes == 0 || offset > buffer->size || buffer->size - offset < bytes
               ? CL_INVALID_VALUE
               : CL_SUCCESS;
}

static void set_move(cl_event e, cl_mem buffer, void *to, const void *from, size_t bytes)
{
    e->buffer = buffer;
    fake_use(buffer);
    e->to = to;
    e->from = (unsigned char *)(uintptr_t)from;
    e->bytes = bytes;
    e->rows = e->slices = 1;
}

API cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                               size_t offset, size_t size, void *to, cl_uint count,
                               const cl_event *wait, cl_event *event)
{
    cl_event e;
    fake_lock();
    cl_int code = check_transfer(queue, buffer, offset, size, to, "clEnqueueReadBuffer");
    if (code == CL_SUCCESS)
        code = fake_enqueue(queue, CL_COMMAND_READ_BUFFER, count, wait, "clEnqueueReadBuffer", &e);
    if (code == CL_SUCCESS) {
        set_move(e, buffer, to, buffer->memory + offset, size);
        code = fake_finish(e, blocking, event);
    }
    fake_unlock();
    return code;
}

API cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                size_t offset, size_t size, const void *from, cl_uint count,
                                const cl_event *wait, cl_event *event)
{
    cl_event e;
    fake_lock();
    cl_int code = check_transfer(queue, buffer, offset, size, from, "clEnqueueWriteBuffer");
    if (code == CL_SUCCESS)
        code =
            fake_enqueue(queue, CL_COMMAND_WRITE_BUFFER, count, wait, "clEnqueueWriteBuffer", &e);
    if (code == CL_SUCCESS) {
        set_move(e, buffer, buffer->memory + offset, from, size);
        code = fake_finish(e, blocking, event);
    }
    fake_unlock();
    return code;
}

/* A transfer of a box; `reads`: from the buffer. */
static cl_int enqueue_rect(cl_command_queue queue, cl_mem buffer, cl_bool blocking, bool reads,
                           const size_t *origin, const size_t *host_origin, const size_t *region,
                           size_t row, size_t slice, size_t host_row, size_t host_slice,
                           const void *host, cl_uint count, const cl_event *wait, cl_event *event)
{
    if (row == 0) row = region[0];
    if (slice == 0) slice = region[1] * row;
    if (host_row == 0) host_row = region[0];
    if (host_slice == 0) host_slice = region[1] * host_row;
    const size_t begin = origin[2] * slice + origin[1] * row + origin[0],
                 host_begin = host_origin[2] * host_slice + host_origin[1] * host_row +
                              host_origin[0],
                 bytes = (region[2] - 1) * slice + (region[1] - 1) * row + region[0];
    cl_event e;
    fake_lock();
    cl_int code = check_transfer(queue, buffer, begin, bytes, host, "clEnqueue...BufferRect");
    if (code == CL_SUCCESS)
        code = fake_enqueue(queue,
                            reads ? CL_COMMAND_READ_BUFFER_RECT : CL_COMMAND_WRITE_BUFFER_RECT,
                            count, wait, "clEnqueue...BufferRect", &e);
    if (code == CL_SUCCESS) {
        unsigned char *in_buffer = buffer->memory + begin,
                      *in_host = (unsigned char *)(uintptr_t)host + host_begin;
        set_move(e, buffer, reads ? in_host : in_buffer, reads ? in_buffer : in_host, region[0]);
        e->rows = region[1];
        e->slices = region[2];
        e->from_row = reads ? row : host_row;
        e->from_slice = reads ? slice : host_slice;
        e->to_row = reads ? host_row : row;
        e->to_slice = reads ? host_slice : slice;
        code = fake_finish(e, blocking, event);
    }
    fake_unlock();
    return code;
}

API cl_int clEnqueueReadBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                   const size_t *origin, const size_t *host_origin,
                                   const size_t *region, size_t row, size_t slice, size_t host_row,
                                   size_t host_slice, void *to, cl_uint count, const cl_event *wait,
                                   cl_event *event)
{
    return enqueue_rect(queue, buffer, blocking, true, origin, host_origin, region, row, slice,
                        host_row, host_slice, to, count, wait, event);
}

API cl_int clEnqueueWriteBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                    const size_t *origin, const size_t *host_origin,
                                    const size_t *region, size_t row, size_t slice, size_t host_row,
                                    size_t host_slice, const void *from, cl_uint count,
                                    const cl_event *wait, cl_event *event)
{
    return enqueue_rect(queue, buffer, blocking, false, origin, host_origin, region, row, slice,
                        host_row, host_slice, from, count, wait, event);
}

API cl_int clEnqueueCopyBufferRect(cl_command_queue queue, cl_mem from, cl_mem to,
                                   const size_t *from_origin, const size_t *to_origin,
                                   const size_t *region, size_t from_row, size_t from_slice,
                                   size_t to_row, size_t to_slice, cl_uint count,
                                   const cl_event *wait, cl_event *event)
{
    static const char call[] = "clEnqueueCopyBufferRect";
    if (from_row == 0) from_row = region[0];
    if (from_slice == 0) from_slice = region[1] * from_row;
    if (to_row == 0) to_row = region[0];
    if (to_slice == 0) to_slice = region[1] * to_row;
    const size_t from_begin = from_origin[2] * from_slice + from_origin[1] * from_row +
                              from_origin[0],
                 to_begin = to_origin[2] * to_slice + to_origin[1] * to_row + to_origin[0],
                 from_bytes = (region[2] - 1) * from_slice + (region[1] - 1) * from_row + region[0],
                 to_bytes = (region[2] - 1) * to_slice + (region[1] - 1) * to_row + region[0];
    cl_event e;
    fake_lock();
    cl_int code = check_transfer(queue, from, from_begin, from_bytes, region, call);
    if (code == CL_SUCCESS) code = check_transfer(queue, to, to_begin, to_bytes, region, call);
    if (code == CL_SUCCESS && (region[0] > from_row || region[0] > to_row)) code = CL_INVALID_VALUE;
    if (code == CL_SUCCESS)
        code = fake_enqueue(queue, CL_COMMAND_COPY_BUFFER_RECT, count, wait, call, &e);
    if (code == CL_SUCCESS) {
        set_move(e, to, to->memory + to_begin, from->memory + from_begin, region[0]);
        e->source = from;
        fake_use(from);
        e->rows = region[1];
        e->slices = region[2];
        e->from_row = from_row;
        e->from_slice = from_slice;
        e->to_row = to_row;
        e->to_slice = to_slice;
        code = fake_finish(e, CL_FALSE, event);
    }
    fake_unlock();
    return code;
}

API cl_int clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer, const void *pattern,
                               size_t pattern_size, size_t offset, size_t size, cl_uint count,
                               const cl_event *wait, cl_event *event)
{
    cl_event e;
    fake_lock();
    cl_int code = check_transfer(queue, buffer, offset, size, pattern, "clEnqueueFillBuffer");
    if (code == CL_SUCCESS && (pattern_size == 0 || pattern_size > sizeof e->pattern ||
                               offset % pattern_size != 0 || size % pattern_size != 0))
        code = CL_INVALID_VALUE;
    if (code == CL_SUCCESS)
        code = fake_enqueue(queue, CL_COMMAND_FILL_BUFFER, count, wait, "clEnqueueFillBuffer", &e);
    if (code == CL_SUCCESS) {
        set_move(e, buffer, buffer->memory + offset, NULL, size);
        memcpy(e->pattern, pattern, pattern_size);
        e->pattern_size = pattern_size;
        code = fake_finish(e, CL_FALSE, event);
    }
    fake_unlock();
    return code;
}

/* The map of a buffer over an array is the array. Others get memory of their own on devices that do
 * not share the host's. */
API void *clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                             cl_map_flags flags, size_t offset, size_t size, cl_uint count,
                             const cl_event *wait, cl_event *event, cl_int *code)
{
    cl_event e;
    cl_int own;
    void *mapped = NULL;
    if (code == NULL) code = &own;
    (void)flags;
    fake_lock();
    *code = check_transfer(queue, buffer, offset, size, buffer, "clEnqueueMapBuffer");
    if (*code == CL_SUCCESS)
        *code = fake_enqueue(queue, CL_COMMAND_MAP_BUFFER, count, wait, "clEnqueueMapBuffer", &e);
    if (*code == CL_SUCCESS) {
        mapped = buffer->host != NULL     ? (char *)buffer->host + offset
                 : queue->device->unified ? buffer->memory + offset
                                          : malloc(size);
        if (mapped == NULL) fake_die("no memory");
        set_move(e, buffer, mapped, buffer->memory + offset, size);
        *code = fake_finish(e, blocking, event);
    }
    fake_unlock();
    return mapped;
}

/* Maps are for reading here: what was mapped is not written back. */
API cl_int clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem buffer, void *mapped,
                                   cl_uint count, const cl_event *wait, cl_event *event)
{
    cl_event e;
    fake_lock();
    cl_int code = check_transfer(queue, buffer, 0, 1, mapped, "clEnqueueUnmapMemObject");
    if (code == CL_SUCCESS)
        code = fake_enqueue(queue, CL_COMMAND_UNMAP_MEM_OBJECT, count, wait,
                            "clEnqueueUnmapMemObject", &e);
    if (code == CL_SUCCESS) {
        set_move(e, buffer, buffer->memory, mapped, 0);
        if (buffer->host == NULL && !queue->device->unified) e->mapped = mapped;
        code = fake_finish(e, CL_FALSE, event);
    }
    fake_unlock();
    return code;
}

API cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint count, const cl_event *wait,
                                       cl_event *event)
{
    cl_event e;
    fake_lock();
    cl_int code =
        fake_enqueue(queue, CL_COMMAND_MARKER, count, wait, "clEnqueueMarkerWithWaitList", &e);
    if (code == CL_SUCCESS) code = fake_finish(e, CL_FALSE, event);
    fake_unlock();
    return code;
}

API cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint axes,
                                  const size_t *offset, const size_t *global, const size_t *local,
                                  cl_uint count, const cl_event *wait, cl_event *event)
{
    static const char call[] = "clEnqueueNDRangeKernel";
    cl_event e;
    struct task *task = NULL;
    fake_lock();
    cl_int code = !fake_lives(queue, QUEUE, call)     ? CL_INVALID_COMMAND_QUEUE
                  : !fake_lives(kernel, KERNEL, call) ? CL_INVALID_KERNEL
                  : kernel->program->context != queue->context
                      ? CL_INVALID_CONTEXT
                      : fake_task_make(kernel, queue->device, axes, offset, global, local, &task);
    if (code == CL_SUCCESS)
        code = fake_enqueue(queue, CL_COMMAND_NDRANGE_KERNEL, count, wait, call, &e);
    if (code == CL_SUCCESS) {
        e->task = task;
        code = fake_finish(e, CL_FALSE, event);
    } else if (task != NULL)
        fake_task_free(task);
    fake_unlock();
    return code;
}

/* A copy between shared memory and any other. */
static cl_int copy_shared(cl_command_queue queue, cl_bool blocking, void *to, const void *from,
                          size_t size, cl_uint count, const cl_event *wait, cl_event *event)
{
    cl_event e;
    fake_lock();
    cl_int code = fake_enqueue(queue, CL_COMMAND_WRITE_BUFFER, count, wait, "a copy", &e);
    if (code == CL_SUCCESS) {
        set_move(e, NULL, to, from, size);
        code = fake_finish(e, blocking, event);
    }
    fake_unlock();
    return code;
}

API cl_int CL_API_CALL clEnqueueSVMMemcpy(cl_command_queue queue, cl_bool blocking, void *to,
                                          const void *from, size_t size, cl_uint count,
                                          const cl_event *wait, cl_event *event)
{
    return copy_shared(queue, blocking, to, from, size, count, wait, event);
}

API cl_int CL_API_CALL clEnqueueMemcpyINTEL(cl_command_queue queue, cl_bool blocking, void *to,
                                            const void *from, size_t size, cl_uint count,
                                            const cl_event *wait, cl_event *event)
{
    return copy_shared(queue, blocking, to, from, size, count, wait, event);
}
