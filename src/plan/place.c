/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the OpenCL objects that a caller gives: queues, events, buffers and pointers. Finds where
 * the tensors of an execution are, and tells whether two overlap.
 *
 * A pointer of cl_intel_unified_shared_memory is checked as a buffer is: OpenCL tells its
 * allocation. A pointer of SVM is checked by a temporary buffer over the bytes, if the device
 * shares its memory with the host: then that takes less than a microsecond and moves nothing. Such
 * a buffer cannot be longer than the allocation, and says whether it lies in one of this context.
 * PoCL knows only an allocation's begin, so no other pointer is accepted there. What is not
 * checked: pointers of SVM on devices with memory of their own, and the length of memory that is
 * not OpenCL's, which kernels of some CPUs may use, too. */
#include "plan/place.h"
#include "plan/plan_internal.h"

#include "base/error.h"
#include "device/events.h"

tconv_status tconv_check_context(const tconv_plan *plan, const char *argument, cl_context context,
                                 tconv_error *error)
{
    if (context == plan->device->context) return TCONV_OK;
    return tconv_fail(error, TCONV_ERROR_MISMATCH, "%s belongs to another context than the plan",
                      argument);
}

/* ---- queues and events ---- */

/* Checks that `device` is the plan's device or a sub-device of it, on which programs of the whole
 * device run. */
static tconv_status check_device(const tconv_plan *plan, const char *argument, cl_device_id device,
                                 tconv_error *error)
{
    bool part = false;
    const cl_int code = tconv_device_is_part(device, plan->device->id, &part);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clGetDeviceInfo",
                                 "reading which device the one of %s is a sub-device of", argument);
    if (part) return TCONV_OK;
    return tconv_fail(error, TCONV_ERROR_MISMATCH, "%s belongs to another device than the plan",
                      argument);
}

/* Refuses an event that has already failed: PoCL never ends what is enqueued behind it. On a device
 * with threads (device/crew.h), also one of the application's own that has not ended: PoCL's basic
 * device then runs the command inside clSetUserEventStatus, which never returns. */
static tconv_status check_state(const tconv_plan *plan, cl_event event, cl_uint index,
                                tconv_error *error)
{
    cl_int state = CL_QUEUED;
    const cl_int code = tconv_event_state(event, &state);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clGetEventInfo",
                                 "reading the state of event %u of the wait list", index);
    cl_command_type type = 0;
    if (state > CL_COMPLETE && plan->device->crew != NULL &&
        clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL) == CL_SUCCESS &&
        type == CL_COMMAND_USER)
        return tconv_fail(error, TCONV_ERROR_UNSUPPORTED,
                          "event %u of the wait list is a user event that has not ended, for which "
                          "PoCL's basic device never runs a command: set it before, wait for it on "
                          "the host, or set the environment variable TCONV_CL_THREADS to off",
                          index);
    return state >= CL_COMPLETE ? TCONV_OK
                                : tconv_fail_opencl(error, state, "the command of the event",
                                                    "event %u of the wait list has failed", index);
}

tconv_status tconv_check_queue(const tconv_plan *plan, const char *argument, cl_command_queue queue,
                               tconv_error *error)
{
    cl_context context = NULL;
    cl_device_id device = NULL;
    if (queue == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL", argument);
    cl_int code = clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
    if (code == CL_SUCCESS)
        code = clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, NULL);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clGetCommandQueueInfo",
                                 "reading context and device of %s", argument);
    const tconv_status status = tconv_check_context(plan, argument, context, error);
    return status == TCONV_OK ? check_device(plan, argument, device, error) : status;
}

tconv_status tconv_check_wait_list(uint32_t count, const void *list, tconv_error *error)
{
    if ((count == 0) == (list == NULL)) return TCONV_OK;
    return tconv_fail(error, TCONV_ERROR_ARGUMENT, "the wait list is %s, but its count is %u",
                      list == NULL ? "NULL" : "given", count);
}

tconv_status tconv_check_order(const tconv_plan *plan, cl_command_queue queue, cl_uint wait_count,
                               const cl_event *wait, tconv_error *error)
{
    if (queue == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "queue is NULL");
    tconv_status status = tconv_check_wait_list(wait_count, wait, error);
    if (status == TCONV_OK) status = tconv_check_queue(plan, "queue", queue, error);
    for (cl_uint i = 0; i < wait_count && status == TCONV_OK; i++) {
        if (wait[i] == NULL)
            return tconv_fail(error, TCONV_ERROR_ARGUMENT, "event %u of the wait list is NULL", i);
        cl_context context = NULL;
        const cl_int code =
            clGetEventInfo(wait[i], CL_EVENT_CONTEXT, sizeof context, &context, NULL);
        if (code != CL_SUCCESS)
            return tconv_fail_opencl(error, code, "clGetEventInfo",
                                     "reading the context of event %u of the wait list", i);
        status = tconv_check_context(plan, "an event of the wait list", context, error);
        if (status == TCONV_OK) status = check_state(plan, wait[i], i, error);
    }
    return status;
}

/* ---- buffers ---- */

/* What clGetMemObjectInfo says of a buffer. */
struct properties {
    size_t size;
    cl_context context;
    cl_mem_object_type type;
    cl_mem_flags flags;
    cl_mem whole;  /* NULL: it is no sub-buffer */
    size_t offset; /* in `whole` */
    void *host;    /* where it begins in memory of the host; NULL: it was not made over any */
};

static cl_int read_properties(cl_mem memory, struct properties *p)
{
    *p = (struct properties){0};
    cl_int code = clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof p->size, &p->size, NULL);
    if (code == CL_SUCCESS)
        code = clGetMemObjectInfo(memory, CL_MEM_CONTEXT, sizeof p->context, &p->context, NULL);
    if (code == CL_SUCCESS)
        code = clGetMemObjectInfo(memory, CL_MEM_TYPE, sizeof p->type, &p->type, NULL);
    if (code == CL_SUCCESS)
        code = clGetMemObjectInfo(memory, CL_MEM_FLAGS, sizeof p->flags, &p->flags, NULL);
    if (code == CL_SUCCESS && p->type == CL_MEM_OBJECT_BUFFER)
        code = clGetMemObjectInfo(memory, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof p->whole, &p->whole,
                                  NULL);
    if (code == CL_SUCCESS && p->whole != NULL)
        code = clGetMemObjectInfo(memory, CL_MEM_OFFSET, sizeof p->offset, &p->offset, NULL);
    if (code != CL_SUCCESS || (p->flags & CL_MEM_USE_HOST_PTR) == 0) return code;
    code = clGetMemObjectInfo(memory, CL_MEM_HOST_PTR, sizeof p->host, &p->host, NULL);
    /* Intel's CPU runtime 2026.2 reports a wrong host address for sub-buffers, and an unusable
     * parent for those over SVM: use parent + offset. */
    void *whole = NULL;
    if (p->whole != NULL &&
        clGetMemObjectInfo(p->whole, CL_MEM_HOST_PTR, sizeof whole, &whole, NULL) == CL_SUCCESS &&
        whole != NULL)
        p->host = (char *)whole + p->offset;
    return code;
}

static tconv_status find_buffer(const tconv_plan *plan, const struct tconv_wanted *w,
                                struct tconv_place *place, tconv_error *error)
{
    const tconv_tensor *tensor = w->tensor;
    if (tensor->offset % w->unit != 0)
        return tconv_fail(error, TCONV_ERROR_BUFFER,
                          "%s begins at byte %zu, which is not a multiple of %zu", w->argument,
                          tensor->offset, w->unit);
    struct properties p;
    const cl_int code = read_properties(tensor->memory, &p);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clGetMemObjectInfo", "reading what %s is",
                                 w->argument);
    if (p.type != CL_MEM_OBJECT_BUFFER)
        return tconv_fail(error, TCONV_ERROR_BUFFER, "%s is an image, not a buffer", w->argument);
    if ((w->use != CL_MEM_WRITE_ONLY && (p.flags & CL_MEM_WRITE_ONLY) != 0) ||
        (w->use != CL_MEM_READ_ONLY && (p.flags & CL_MEM_READ_ONLY) != 0))
        return tconv_fail(
            error, TCONV_ERROR_BUFFER, "%s was made with %s, but kernels %s it", w->argument,
            (p.flags & CL_MEM_READ_ONLY) != 0 ? "CL_MEM_READ_ONLY" : "CL_MEM_WRITE_ONLY",
            w->use == CL_MEM_READ_ONLY    ? "read"
            : w->use == CL_MEM_WRITE_ONLY ? "write"
                                          : "read and write");
    if (p.size < tensor->offset || p.size - tensor->offset < w->bytes)
        return tconv_fail(
            error, TCONV_ERROR_BUFFER,
            "%s is too small: its buffer has %zu bytes, but %llu are needed from byte %zu on%s",
            w->argument, p.size, (unsigned long long)w->bytes, tensor->offset, w->why);
    /* Intel's runtime names an object of its own as the parent of a buffer over SVM, so the memory
     * of the host comes first. */
    place->memory = tensor->memory;
    place->offset = tensor->offset;
    if (p.host == NULL) place->whole = p.whole != NULL ? p.whole : tensor->memory;
    place->begin = (p.host != NULL ? (uintptr_t)p.host : p.offset) + tensor->offset;
    place->end = place->begin + w->bytes;
    return tconv_check_context(plan, w->argument, p.context, error);
}

/* ---- pointers ---- */

/* An allocation of cl_intel_unified_shared_memory. */
struct allocation {
    cl_uint type; /* TCONV_CL_MEM_TYPE_UNKNOWN: the pointer is in none of this context */
    void *base;
    size_t size;
    cl_device_id device;
};

static cl_int read_allocation(const tconv_plan *plan, const void *pointer, struct allocation *a)
{
    const struct tconv_extensions *e = &plan->device->extensions;
    const cl_context context = plan->device->context;
    *a = (struct allocation){.type = TCONV_CL_MEM_TYPE_UNKNOWN};
    if (!e->usm) return CL_SUCCESS;
    const struct {
        cl_uint what;
        size_t size;
        void *value;
    } questions[] = {{TCONV_CL_MEM_ALLOC_TYPE, sizeof a->type, &a->type},
                     {TCONV_CL_MEM_ALLOC_BASE, sizeof(void *), &a->base},
                     {TCONV_CL_MEM_ALLOC_SIZE, sizeof a->size, &a->size},
                     {TCONV_CL_MEM_ALLOC_DEVICE, sizeof(cl_device_id), &a->device}};
    cl_int code = CL_SUCCESS;
    for (size_t i = 0; i < sizeof questions / sizeof *questions && code == CL_SUCCESS; i++) {
        code = e->clGetMemAllocInfoINTEL(context, pointer, questions[i].what, questions[i].size,
                                         questions[i].value, NULL);
        if (a->type == TCONV_CL_MEM_TYPE_UNKNOWN) break;
    }
    return code;
}

static tconv_status outside(const struct tconv_wanted *w, const char *memory, tconv_error *error)
{
    return tconv_fail(error, TCONV_ERROR_BUFFER,
                      "%s is outside its memory: %llu bytes are needed from byte %zu of pointer "
                      "%p on, but its %s ends before%s",
                      w->argument, (unsigned long long)w->bytes, w->tensor->offset,
                      w->tensor->pointer, memory, w->why);
}

static tconv_status check_usm(const tconv_plan *plan, const struct tconv_wanted *w,
                              const struct allocation *a, tconv_error *error)
{
    const tconv_tensor *tensor = w->tensor;
    const uint64_t first = (uintptr_t)tensor->pointer - (uintptr_t)a->base;
    if (a->size - first < tensor->offset || a->size - first - tensor->offset < w->bytes)
        return outside(w, "allocation", error);
    if (a->type != TCONV_CL_MEM_TYPE_DEVICE) return TCONV_OK;
    const cl_device_id own = plan->device->id;
    bool part = false, whole = false;
    cl_int code = tconv_device_is_part(own, a->device, &whole);
    if (code == CL_SUCCESS) code = tconv_device_is_part(a->device, own, &part);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clGetDeviceInfo",
                                 "reading which device the memory of %s belongs to", w->argument);
    if (part || whole) return TCONV_OK;
    return tconv_fail(error, TCONV_ERROR_MISMATCH,
                      "%s is a pointer to memory of another device than the plan's", w->argument);
}

/* Checks a pointer of SVM by making a buffer over the bytes. */
static tconv_status check_svm(const tconv_plan *plan, const struct tconv_wanted *w,
                              tconv_error *error)
{
    const tconv_tensor *tensor = w->tensor;
    const struct tconv_extensions *e = &plan->device->extensions;
    if (!e->svm_told) return TCONV_OK;
    cl_int code;
    cl_bool shared = CL_FALSE;
    cl_mem over = clCreateBuffer(plan->device->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                 tensor->offset + (size_t)w->bytes, tensor->pointer, &code);
    if (code == CL_INVALID_BUFFER_SIZE) return outside(w, "allocation", error);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clCreateBuffer",
                                 "reading which memory the pointer of %s is in", w->argument);
    code = clGetMemObjectInfo(over, TCONV_CL_MEM_USES_SVM_POINTER, sizeof shared, &shared, NULL);
    clReleaseMemObject(over);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clGetMemObjectInfo",
                                 "reading which memory the pointer of %s is in", w->argument);
    if (shared == CL_TRUE || e->svm_system) return TCONV_OK;
    return tconv_fail(error, TCONV_ERROR_MISMATCH,
                      "%s is pointer %p, at which no shared memory of the plan's context begins: "
                      "give the pointer that clSVMAlloc returned, and the distance as its offset",
                      w->argument, tensor->pointer);
}

static tconv_status find_pointer(const tconv_plan *plan, const struct tconv_wanted *w,
                                 struct tconv_place *place, tconv_error *error)
{
    const tconv_tensor *tensor = w->tensor;
    const struct tconv_extensions *e = &plan->device->extensions;
    const uintptr_t address = (uintptr_t)tensor->pointer;
    if (tensor->memory != NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "%s has both a buffer, %p, and a pointer, %p: set one of them to NULL",
                          w->argument, (void *)tensor->memory, tensor->pointer);
    if (!e->svm && !e->usm)
        return tconv_fail(error, TCONV_ERROR_DEVICE,
                          "%s is pointer %p, but %s has neither shared virtual memory nor "
                          "cl_intel_unified_shared_memory: give a buffer",
                          w->argument, tensor->pointer, plan->info.name);
    if (UINTPTR_MAX - address < tensor->offset || UINTPTR_MAX - address - tensor->offset < w->bytes)
        return outside(w, "address space", error);
    if ((address + tensor->offset) % w->unit != 0)
        return tconv_fail(error, TCONV_ERROR_BUFFER,
                          "%s begins at byte %zu of pointer %p, whose sum is not a multiple of %zu",
                          w->argument, tensor->offset, tensor->pointer, w->unit);
    struct allocation a;
    const cl_int code = read_allocation(plan, tensor->pointer, &a);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clGetMemAllocInfoINTEL",
                                 "reading which memory the pointer of %s is in", w->argument);
    place->usm = a.type != TCONV_CL_MEM_TYPE_UNKNOWN;
    if (!place->usm && !e->svm)
        return tconv_fail(error, TCONV_ERROR_MISMATCH,
                          "%s is pointer %p, which is in no shared memory of the plan's context",
                          w->argument, tensor->pointer);
    if (!place->usm && e->clSetKernelArgSVMPointer == NULL)
        return tconv_fail(error, TCONV_ERROR_DEVICE,
                          "%s is a pointer to shared virtual memory, but the OpenCL loader has no "
                          "clSetKernelArgSVMPointer: install a loader of OpenCL 2.0",
                          w->argument);
    place->pointer = (const char *)tensor->pointer + tensor->offset;
    place->begin = address + tensor->offset;
    place->end = place->begin + w->bytes;
    return place->usm ? check_usm(plan, w, &a, error) : check_svm(plan, w, error);
}

/* ---- both ---- */

tconv_status tconv_place_find(const tconv_plan *plan, const struct tconv_wanted *w,
                              struct tconv_place *place, tconv_error *error)
{
    const tconv_tensor *tensor = w->tensor;
    *place = (struct tconv_place){0};
    if (tensor->host != NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "%s is an array of the host, %p, but only layers read those (layer.h): "
                          "give a buffer or a pointer into shared memory",
                          w->argument, tensor->host);
    if (tensor->pointer != NULL) return find_pointer(plan, w, place, error);
    if (tensor->memory != NULL) return find_buffer(plan, w, place, error);
    return tconv_fail(error, TCONV_ERROR_BUFFER, "%s is missing: %llu bytes are needed",
                      w->argument, (unsigned long long)w->bytes);
}

tconv_status tconv_place_check(const tconv_plan *plan, const char *argument,
                               const tconv_tensor *tensor, uint64_t bytes, size_t unit,
                               tconv_error *error)
{
    const struct tconv_wanted wanted = {argument, tensor, CL_MEM_READ_ONLY, unit, bytes, ""};
    struct tconv_place place;
    return tconv_place_find(plan, &wanted, &place, error);
}

tconv_status tconv_place_apart(const char *written, const struct tconv_place *a,
                               const char *argument, const struct tconv_place *b,
                               tconv_error *error)
{
    if (a->whole != b->whole || a->end <= b->begin || b->end <= a->begin) return TCONV_OK;
    return tconv_fail(error, TCONV_ERROR_BUFFER,
                      a->whole != NULL
                          ? "%s overlaps %s: they are bytes %llu to %llu and %llu to %llu of one "
                            "buffer"
                          : "%s overlaps %s: they are at addresses 0x%llx to 0x%llx and 0x%llx to "
                            "0x%llx",
                      written, argument, (unsigned long long)a->begin, (unsigned long long)a->end,
                      (unsigned long long)b->begin, (unsigned long long)b->end);
}

cl_int tconv_place_set(const tconv_plan *plan, const struct tconv_place *place, cl_kernel kernel,
                       cl_uint index, const char **call)
{
    const struct tconv_extensions *e = &plan->device->extensions;
    if (place->pointer == NULL) {
        *call = "clSetKernelArg";
        return clSetKernelArg(kernel, index, sizeof place->memory, &place->memory);
    }
    *call = place->usm ? "clSetKernelArgMemPointerINTEL" : "clSetKernelArgSVMPointer";
    return place->usm ? e->clSetKernelArgMemPointerINTEL(kernel, index, place->pointer)
                      : e->clSetKernelArgSVMPointer(kernel, index, place->pointer);
}

uint64_t tconv_place_bytes(const struct tconv_place *place)
{
    size_t size = 0;
    if (place->memory == NULL) return place->end - place->begin;
    return clGetMemObjectInfo(place->memory, CL_MEM_SIZE, sizeof size, &size, NULL) == CL_SUCCESS
               ? size
               : 0;
}
