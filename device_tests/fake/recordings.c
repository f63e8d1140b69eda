/* SPDX-License-Identifier: Apache-2.0 */
/* Command buffers of cl_khr_command_buffer 1.0, whose calls are those of 0.9, and the calls of all
 * extensions by name. */
#include "fake_internal.h"

#include <string.h>

/* Values that headers of OpenCL 1.2 do not name. */
enum {
    QUEUES = 0x1294,
    NUM_QUEUES = 0x1295,
    STATE = 0x1297,
    PROPERTIES = 0x1298,
    FLAGS = 0x1293,
    MUTABLE = 1 << 1,
    UPDATABLE_FIELDS = 0x12B1,
    RECORDING_STATE = 0,
    EXECUTABLE_STATE = 1,
    INVALID_COMMAND_BUFFER = -1138,
    INVALID_SYNC_POINT = -1139,
    COMMAND_BUFFER = 0x12A8,
};

typedef struct _cl_command_buffer_khr *recording;

static recording CL_API_CALL create(cl_uint count, const cl_command_queue *queues,
                                    const cl_bitfield *properties, cl_int *code)
{
    recording made = NULL;
    fake_lock();
    *code = count < 1 || count > 4                                      ? CL_INVALID_VALUE
            : !fake_lives(queues[0], QUEUE, "clCreateCommandBufferKHR") ? CL_INVALID_COMMAND_QUEUE
                                                                        : CL_SUCCESS;
    if (*code == CL_SUCCESS) {
        made = fake_new(RECORDING, sizeof *made);
        made->queues = count;
        made->end = &made->first;
        for (cl_uint i = 0; i < count; i++) {
            made->queue[i] = queues[i];
            fake_use(queues[i]);
        }
        for (int i = 0; properties != NULL && properties[i] != 0 && i < 6; i += 2)
            memcpy(&made->properties[i], &properties[i], 2 * sizeof *properties);
    }
    fake_unlock();
    return made;
}

static cl_int CL_API_CALL finalize(recording r)
{
    fake_lock();
    cl_int code = !fake_lives(r, RECORDING, "clFinalizeCommandBufferKHR") ? INVALID_COMMAND_BUFFER
                  : r->state != RECORDING_STATE                           ? CL_INVALID_OPERATION
                                                                          : CL_SUCCESS;
    if (code == CL_SUCCESS) r->state = EXECUTABLE_STATE;
    fake_unlock();
    return code;
}

static cl_int CL_API_CALL release(recording r)
{
    return fake_release(r, RECORDING, INVALID_COMMAND_BUFFER, "clReleaseCommandBufferKHR");
}

static cl_int CL_API_CALL enqueue(cl_uint count, cl_command_queue *queues, recording r,
                                  cl_uint waits, const cl_event *wait, cl_event *event)
{
    (void)count;
    (void)queues;
    cl_event e;
    fake_lock();
    cl_int code = !fake_lives(r, RECORDING, "clEnqueueCommandBufferKHR") ? INVALID_COMMAND_BUFFER
                  : r->state != EXECUTABLE_STATE                         ? CL_INVALID_OPERATION
                                                                         : CL_SUCCESS;
    if (code == CL_SUCCESS)
        code =
            fake_enqueue(r->queue[0], COMMAND_BUFFER, waits, wait, "clEnqueueCommandBufferKHR", &e);
    if (code == CL_SUCCESS) {
        e->recording = r;
        fake_use(r);
        code = fake_finish(e, CL_FALSE, event);
    }
    fake_unlock();
    return code;
}

static cl_int CL_API_CALL info(recording r, cl_uint what, size_t size, void *value, size_t *needed)
{
    fake_lock();
    cl_int code = INVALID_COMMAND_BUFFER;
    if (fake_lives(r, RECORDING, "clGetCommandBufferInfoKHR")) {
        int properties = 0;
        while (r->properties[properties] != 0) properties += 2;
        code = what == NUM_QUEUES ? fake_answer(&r->queues, sizeof r->queues, size, value, needed)
               : what == STATE    ? fake_answer(&r->state, sizeof r->state, size, value, needed)
               : what == QUEUES
                   ? fake_answer(r->queue, r->queues * sizeof *r->queue, size, value, needed)
               : what == PROPERTIES
                   ? fake_answer(r->properties, (size_t)(properties + 1) * sizeof(cl_bitfield),
                                 size, value, needed)
                   : CL_INVALID_VALUE;
    }
    fake_unlock();
    return code;
}

static cl_int CL_API_CALL command(recording r, cl_command_queue queue, const void *properties,
                                  cl_kernel kernel, cl_uint axes, const size_t *offset,
                                  const size_t *global, const size_t *local, cl_uint waits,
                                  const cl_uint *wait, cl_uint *point, void **handle)
{
    (void)properties;
    struct task *task;
    fake_lock();
    /* Without cl_khr_command_buffer_multi_device the buffer's queue is meant. */
    cl_int code = !fake_lives(r, RECORDING, "clCommandNDRangeKernelKHR") ? INVALID_COMMAND_BUFFER
                  : queue != NULL                                        ? CL_INVALID_COMMAND_QUEUE
                  : r->state != RECORDING_STATE                          ? CL_INVALID_OPERATION
                  : !fake_lives(kernel, KERNEL, "clCommandNDRangeKernelKHR") ? CL_INVALID_KERNEL
                                                                             : CL_SUCCESS;
    for (cl_uint i = 0; i < waits && code == CL_SUCCESS; i++)
        if (wait[i] == 0 || wait[i] > r->points) code = INVALID_SYNC_POINT;
    if (code == CL_SUCCESS)
        code = fake_task_make(kernel, r->queue[0]->device, axes, offset, global, local, &task);
    if (code == CL_SUCCESS) {
        task->point = ++r->points;
        *r->end = task;
        r->end = &task->next;
        if (point != NULL) *point = task->point;
        if (handle != NULL) *handle = task;
    }
    fake_unlock();
    return code;
}

struct new_argument {
    cl_uint index;
    size_t size;
    const void *value;
};

struct change {
    struct task *command;
    cl_uint argument_count, pointer_count, other_count, axes;
    const struct new_argument *arguments, *pointers;
};

static cl_int CL_API_CALL update(recording r, cl_uint count, const cl_uint *types,
                                 const void **changes)
{
    fake_lock();
    cl_int code = !fake_lives(r, RECORDING, "clUpdateMutableCommandsKHR") ? INVALID_COMMAND_BUFFER
                  : r->state != EXECUTABLE_STATE || (r->properties[1] & MUTABLE) == 0
                      ? CL_INVALID_OPERATION
                      : CL_SUCCESS;
    for (cl_uint i = 0; i < count && code == CL_SUCCESS; i++) {
        const struct change *c = changes[i];
        if (types[i] != 0) code = CL_INVALID_VALUE;
        for (cl_uint a = 0; a < c->argument_count && code == CL_SUCCESS; a++)
            code = fake_task_set(c->command, c->arguments[a].index, c->arguments[a].size,
                                 c->arguments[a].value, false);
        for (cl_uint a = 0; a < c->pointer_count && code == CL_SUCCESS; a++)
            code = fake_task_set(c->command, c->pointers[a].index, c->pointers[a].size,
                                 c->pointers[a].value, true);
    }
    fake_unlock();
    return code;
}

void *fake_extension(const char *name)
{
    static const struct {
        const char *name;
        void (*call)(void);
    } calls[] = {
        {"clCreateCommandBufferKHR", (void (*)(void))create},
        {"clFinalizeCommandBufferKHR", (void (*)(void))finalize},
        {"clReleaseCommandBufferKHR", (void (*)(void))release},
        {"clEnqueueCommandBufferKHR", (void (*)(void))enqueue},
        {"clGetCommandBufferInfoKHR", (void (*)(void))info},
        {"clCommandNDRangeKernelKHR", (void (*)(void))command},
        {"clUpdateMutableCommandsKHR", (void (*)(void))update},
#define OWN(name) {#name, (void (*)(void))name}
        OWN(clSVMAlloc),
        OWN(clSVMFree),
        OWN(clEnqueueSVMMemcpy),
        OWN(clSetKernelArgSVMPointer),
        OWN(clSetKernelArgMemPointerINTEL),
        OWN(clGetMemAllocInfoINTEL),
        OWN(clHostMemAllocINTEL),
        OWN(clDeviceMemAllocINTEL),
        OWN(clSharedMemAllocINTEL),
        OWN(clMemBlockingFreeINTEL),
        OWN(clEnqueueMemcpyINTEL),
    };
    void *found = NULL;
    for (size_t i = 0; i < sizeof calls / sizeof *calls && found == NULL; i++)
        if (strcmp(calls[i].name, name) == 0) memcpy(&found, &calls[i].call, sizeof found);
    return found;
}
