/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers, and memory that host and kernels share. */
#include "fake_internal.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 128 }; /* CL_DEVICE_MEM_BASE_ADDR_ALIGN in bytes */
enum { JUNK = 0xeb, MOST_JUNK = 1 << 22 };

/* Values that headers of OpenCL 1.2 do not name. */
enum {
    MEM_USES_SVM_POINTER = 0x1109,
    FINE_GRAIN = 1 << 10,
    ALLOC_TYPE = 0x419A,
    ALLOC_BASE = 0x419B,
    ALLOC_SIZE = 0x419C,
    ALLOC_DEVICE = 0x419D,
    TYPE_UNKNOWN = 0x4196,
    TYPE_HOST = 0x4197,
    TYPE_DEVICE = 0x4198,
    TYPE_SHARED = 0x4199,
};

static cl_ulong most_bytes(cl_context context)
{
    cl_ulong most = UINT64_MAX;
    for (cl_uint i = 0; i < context->count; i++)
        if (context->device[i]->memory / 32 < most) most = context->device[i]->memory / 32;
    return most;
}

/* Whether kernels work on the memory that CL_MEM_USE_HOST_PTR names. GPUs that share the host's
 * memory do so with whole pages. */
static bool works_in_place(cl_context context, const void *host)
{
    enum { PAGE = 4096 };
    const struct _cl_device_id *d = context->device[0];
    return d->unified && !d->copies &&
           (d->type == CL_DEVICE_TYPE_CPU || (uintptr_t)host % PAGE == 0);
}

/* Memory that shows what was never written. */
static unsigned char *junk(size_t size)
{
    unsigned char *memory =
        aligned_alloc(ALIGNMENT, (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (memory != NULL) memset(memory, JUNK, size < MOST_JUNK ? size : MOST_JUNK);
    return memory;
}

/* A buffer over shared virtual memory is not longer than that. */
static bool leaves_allocation(const void *host, size_t size)
{
    const struct allocation *a = fake_allocation(host);
    return a != NULL && a->type == 0 &&
           (size_t)(a->memory + a->size - (const unsigned char *)host) < size;
}

API cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host,
                          cl_int *code)
{
    const bool used = (flags & CL_MEM_USE_HOST_PTR) != 0,
               copied = (flags & CL_MEM_COPY_HOST_PTR) != 0;
    cl_int own;
    cl_mem made = NULL;
    if (code == NULL) code = &own;
    fake_lock();
    *code = CL_INVALID_CONTEXT;
    if (!fake_lives(context, CONTEXT, "clCreateBuffer")) {
    } else if (size == 0 || size > most_bytes(context) || (used && leaves_allocation(host, size))) {
        *code = CL_INVALID_BUFFER_SIZE;
    } else if ((used && copied) || (used || copied) != (host != NULL)) {
        *code = CL_INVALID_HOST_PTR;
    } else {
        made = fake_new(BUFFER, sizeof *made);
        if ((flags & (CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY | CL_MEM_READ_WRITE)) == 0)
            flags |= CL_MEM_READ_WRITE;
        made->context = context;
        made->flags = flags;
        made->size = size;
        made->host = used ? host : NULL;
        made->memory = used && works_in_place(context, host) ? host : junk(size);
        if (made->memory == NULL) fake_die("no memory for a buffer of %zu bytes", size);
        if (host != NULL && made->memory != host) memcpy(made->memory, host, size);
        fake_use(context);
        *code = CL_SUCCESS;
    }
    fake_unlock();
    return made;
}

/* No device has images. */
API cl_mem clCreateImage(cl_context context, cl_mem_flags flags, const cl_image_format *format,
                         const cl_image_desc *description, void *host, cl_int *code)
{
    (void)context, (void)flags, (void)format, (void)description, (void)host;
    if (code != NULL) *code = CL_INVALID_OPERATION;
    return NULL;
}

API cl_mem clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type,
                             const void *info, cl_int *code)
{
    const cl_buffer_region *region = info;
    cl_int own;
    cl_mem made = NULL;
    if (code == NULL) code = &own;
    fake_lock();
    *code = CL_INVALID_MEM_OBJECT;
    if (!fake_lives(buffer, BUFFER, "clCreateSubBuffer") || buffer->parent != NULL) {
    } else if (type != CL_BUFFER_CREATE_TYPE_REGION || region->size == 0 ||
               region->origin > buffer->size || buffer->size - region->origin < region->size) {
        *code = CL_INVALID_VALUE;
    } else if (region->origin % ALIGNMENT != 0) {
        *code = CL_MISALIGNED_SUB_BUFFER_OFFSET;
    } else {
        made = fake_new(BUFFER, sizeof *made);
        made->context = buffer->context;
        made->flags = (flags != 0 ? flags : buffer->flags) | (buffer->flags & CL_MEM_USE_HOST_PTR);
        made->size = region->size;
        made->memory = buffer->memory + region->origin;
        made->host = buffer->host == NULL ? NULL : (char *)buffer->host + region->origin;
        made->parent = buffer;
        made->origin = region->origin;
        fake_use(buffer);
        fake_use(buffer->context);
        *code = CL_SUCCESS;
    }
    fake_unlock();
    return made;
}

API cl_int clGetMemObjectInfo(cl_mem b, cl_mem_info what, size_t size, void *value, size_t *needed)
{
    const cl_mem_object_type type = CL_MEM_OBJECT_BUFFER;
    fake_lock();
    cl_int code = CL_INVALID_MEM_OBJECT;
    if (fake_lives(b, BUFFER, "clGetMemObjectInfo")) {
        const cl_uint owners = (cl_uint)b->object.owners;
        const struct allocation *a = b->host == NULL ? NULL : fake_allocation(b->host);
        const cl_bool svm = a != NULL && a->type == 0 && a->context == b->context;
        switch (what) {
        case CL_MEM_SIZE: code = fake_answer(&b->size, sizeof b->size, size, value, needed); break;
        case CL_MEM_CONTEXT:
            code = fake_answer(&b->context, sizeof b->context, size, value, needed);
            break;
        case CL_MEM_TYPE: code = fake_answer(&type, sizeof type, size, value, needed); break;
        case CL_MEM_FLAGS:
            code = fake_answer(&b->flags, sizeof b->flags, size, value, needed);
            break;
        case CL_MEM_ASSOCIATED_MEMOBJECT:
            code = fake_answer(&b->parent, sizeof b->parent, size, value, needed);
            break;
        case CL_MEM_OFFSET:
            code = fake_answer(&b->origin, sizeof b->origin, size, value, needed);
            break;
        case CL_MEM_HOST_PTR:
            code = fake_answer(&b->host, sizeof b->host, size, value, needed);
            break;
        case CL_MEM_REFERENCE_COUNT:
            code = fake_answer(&owners, sizeof owners, size, value, needed);
            break;
        case MEM_USES_SVM_POINTER: code = fake_answer(&svm, sizeof svm, size, value, needed); break;
        default: code = CL_INVALID_VALUE;
        }
    }
    fake_unlock();
    return code;
}

API cl_int clRetainMemObject(cl_mem buffer)
{
    return fake_retain(buffer, BUFFER, CL_INVALID_MEM_OBJECT, "clRetainMemObject");
}

API cl_int clReleaseMemObject(cl_mem buffer)
{
    return fake_release(buffer, BUFFER, CL_INVALID_MEM_OBJECT, "clReleaseMemObject");
}

/* ---- shared memory ---- */

static struct allocation *allocations;

const struct allocation *fake_allocation(const void *pointer)
{
    const struct allocation *a = allocations;
    while (a != NULL && ((const unsigned char *)pointer < a->memory ||
                         (const unsigned char *)pointer >= a->memory + a->size))
        a = a->next;
    return a;
}

static void *allocate(cl_context context, cl_device_id device, size_t size, cl_uint type, bool fine)
{
    fake_lock();
    struct allocation *made = malloc(sizeof *made);
    unsigned char *memory = fake_lives(context, CONTEXT, "an allocation") ? junk(size) : NULL;
    if (made != NULL && memory != NULL) {
        *made = (struct allocation){context, device, memory, size, type, fine, allocations};
        allocations = made;
        fake_use(context);
    }
    fake_unlock();
    return memory;
}

static bool release_allocation(cl_context context, const void *memory)
{
    fake_lock();
    struct allocation **link = &allocations;
    while (*link != NULL && ((*link)->memory != memory || (*link)->context != context))
        link = &(*link)->next;
    struct allocation *gone = *link;
    if (gone != NULL) {
        *link = gone->next;
        fake_drop(gone->context);
        free(gone->memory);
        free(gone);
    }
    fake_unlock();
    return gone != NULL;
}

API void *CL_API_CALL clSVMAlloc(cl_context context, cl_bitfield flags, size_t size,
                                 cl_uint alignment)
{
    (void)alignment;
    const cl_ulong can = context->device[0]->svm;
    if (can == 0 || ((flags & FINE_GRAIN) != 0 && (can & 2) == 0) || size > most_bytes(context))
        return NULL;
    return allocate(context, NULL, size, 0, (flags & FINE_GRAIN) != 0);
}

API void CL_API_CALL clSVMFree(cl_context context, void *memory)
{
    if (memory != NULL && !release_allocation(context, memory))
        fake_die("clSVMFree gets no pointer of its context");
}

API void *CL_API_CALL clHostMemAllocINTEL(cl_context context, const cl_bitfield *properties,
                                          size_t size, cl_uint alignment, cl_int *code)
{
    (void)properties;
    (void)alignment;
    *code = CL_SUCCESS;
    return allocate(context, NULL, size, TYPE_HOST, true);
}

API void *CL_API_CALL clDeviceMemAllocINTEL(cl_context context, cl_device_id device,
                                            const cl_bitfield *properties, size_t size,
                                            cl_uint alignment, cl_int *code)
{
    (void)properties;
    (void)alignment;
    *code = CL_SUCCESS;
    return allocate(context, device, size, TYPE_DEVICE, false);
}

API void *CL_API_CALL clSharedMemAllocINTEL(cl_context context, cl_device_id device,
                                            const cl_bitfield *properties, size_t size,
                                            cl_uint alignment, cl_int *code)
{
    (void)properties;
    (void)alignment;
    *code = CL_SUCCESS;
    return allocate(context, device, size, TYPE_SHARED, true);
}

API cl_int CL_API_CALL clMemBlockingFreeINTEL(cl_context context, void *memory)
{
    return release_allocation(context, memory) ? CL_SUCCESS : CL_INVALID_VALUE;
}

API cl_int CL_API_CALL clGetMemAllocInfoINTEL(cl_context context, const void *pointer, cl_uint what,
                                              size_t size, void *value, size_t *needed)
{
    fake_lock();
    cl_int code = CL_INVALID_CONTEXT;
    if (fake_lives(context, CONTEXT, "clGetMemAllocInfoINTEL")) {
        static const struct allocation none = {.type = TYPE_UNKNOWN};
        const struct allocation *a = fake_allocation(pointer);
        if (a == NULL || a->context != context || a->type == 0) a = &none;
        code = what == ALLOC_TYPE   ? fake_answer(&a->type, sizeof a->type, size, value, needed)
               : what == ALLOC_BASE ? fake_answer(&a->memory, sizeof a->memory, size, value, needed)
               : what == ALLOC_SIZE ? fake_answer(&a->size, sizeof a->size, size, value, needed)
               : what == ALLOC_DEVICE
                   ? fake_answer(&a->device, sizeof a->device, size, value, needed)
                   : CL_INVALID_VALUE;
    }
    fake_unlock();
    return code;
}

/* ---- what objects give up ---- */

void fake_clear(struct object *object)
{
    switch (object->kind) {
    case DEVICE_PART: break;
    case CONTEXT: {
        cl_context context = (cl_context)(void *)object;
        for (cl_uint i = 0; i < context->count; i++)
            if (context->device[i]->parent != NULL) fake_drop(context->device[i]);
        break;
    }
    case QUEUE: {
        cl_command_queue queue = (cl_command_queue)(void *)object;
        fake_drop(queue->context);
        break;
    }
    case BUFFER: {
        cl_mem buffer = (cl_mem)(void *)object;
        if (buffer->parent == NULL && buffer->memory != buffer->host) free(buffer->memory);
        fake_drop(buffer->parent);
        fake_drop(buffer->context);
        break;
    }
    case PROGRAM: {
        cl_program program = (cl_program)(void *)object;
        free(program->text);
        free(program->options);
        fake_drop(program->context);
        break;
    }
    case KERNEL: {
        cl_kernel kernel = (cl_kernel)(void *)object;
        free(kernel->name);
        fake_drop(kernel->program);
        break;
    }
    case EVENT: {
        cl_event event = (cl_event)(void *)object;
        for (cl_uint i = 0; i < event->waits; i++) fake_drop(event->wait[i]);
        free(event->wait);
        if (event->task != NULL) fake_task_free(event->task);
        fake_drop(event->recording);
        fake_drop(event->buffer);
        fake_drop(event->queue);
        fake_drop(event->context);
        break;
    }
    case RECORDING: {
        struct _cl_command_buffer_khr *recording = (struct _cl_command_buffer_khr *)(void *)object;
        for (struct task *t = recording->first, *next; t != NULL; t = next) {
            next = t->next;
            fake_task_free(t);
        }
        for (cl_uint i = 0; i < recording->queues; i++) fake_drop(recording->queue[i]);
        break;
    }
    }
}
