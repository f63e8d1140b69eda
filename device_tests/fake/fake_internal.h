/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of the fake implementation. One lock guards all of them. */
#ifndef TCONV_DEVICE_TESTS_FAKE_INTERNAL_H
#define TCONV_DEVICE_TESTS_FAKE_INTERNAL_H

#include "fake.h"

#include <stdint.h>

#define API __attribute__((visibility("default")))

enum fake_kind {
    DEVICE_PART = 0x7c0c0001,
    CONTEXT,
    QUEUE,
    BUFFER,
    PROGRAM,
    KERNEL,
    EVENT,
    RECORDING
};

/* The begin of each object. `owners` are the application's, `users` are other objects. */
struct object {
    enum fake_kind kind;
    int owners, users;
    struct object *next; /* in the list of all objects */
};

struct _cl_platform_id {
    const char *name, *version, *extensions;
};

/* A device, or a part of one, which alone has an owner. */
struct _cl_device_id {
    struct object object;
    cl_device_id parent;
    struct _cl_platform_id *platform;
    cl_device_type type;
    const char *name, *version, *extensions;
    cl_uint units, width;
    size_t group;
    cl_ulong local_memory, memory;
    cl_device_local_mem_type local_type;
    bool unified, in_order, f64, divides, copies;
    cl_ulong svm;
};
extern struct _cl_device_id fake_devices[FAKE_DEVICES];

/* Whether the GPU is NVIDIA's, and does what fake_set_nvidia says with a program of these options.
 */
bool fake_is_nvidia(cl_context context);
bool fake_nvidia_does(const char *what, const char *options);

struct _cl_context {
    struct object object;
    cl_device_id device[FAKE_DEVICES];
    cl_uint count;
};

struct _cl_command_queue {
    struct object object;
    cl_context context;
    cl_device_id device;
    cl_command_queue_properties properties;
    cl_event first; /* the commands that have not ended, in the order in which they were enqueued */
};

struct _cl_mem {
    struct object object;
    cl_context context;
    cl_mem_flags flags;
    size_t size;
    unsigned char *memory; /* as devices see it */
    void *host;            /* of CL_MEM_USE_HOST_PTR */
    cl_mem parent;
    size_t origin;
};

struct _cl_program {
    struct object object;
    cl_context context;
    char *text, *options, log[200];
    bool binary;     /* it was made of a binary */
    bool sm_90a;     /* which was PTX for sm_90a */
    cl_int building; /* how the last build ended; CL_BUILD_NONE */
};

enum { MOST_ARGUMENTS = 48 };
struct _cl_kernel {
    struct object object;
    cl_program program;
    char *name;
    struct fake_argument argument[MOST_ARGUMENTS];
};

/* A launch with its own copies of all that it uses. */
struct task {
    cl_kernel kernel;
    struct fake_argument argument[MOST_ARGUMENTS];
    struct fake_launch launch;
    struct task *next; /* of a recording */
    cl_uint point;
};

/* A command, or a user event, which has no queue. */
struct _cl_event {
    struct object object;
    cl_context context;
    cl_command_queue queue;
    cl_command_type type;
    cl_int state;
    bool flushed;
    cl_ulong time[4];
    cl_uint waits;
    cl_event *wait;
    cl_event next; /* of its queue */
    /* what it does */
    struct task *task;                             /* a launch */
    struct _cl_command_buffer_khr *recording;      /* launches */
    cl_mem buffer;                                 /* a transfer, with */
    cl_mem source;                                 /* of a copy; NULL: the host, with */
    unsigned char *from, *to;                      /* and */
    size_t bytes, rows, slices;                    /* bytes of a row, and the steps */
    size_t from_row, from_slice, to_row, to_slice; /* of both sides */
    unsigned char pattern[16];                     /* of a fill */
    size_t pattern_size;
    void *mapped;
    bool write_back;
};

struct _cl_command_buffer_khr {
    struct object object;
    cl_command_queue queue[4];
    cl_uint queues, state, points;
    cl_bitfield properties[8];
    struct task *first, **end;
};

/* Calls that headers of OpenCL 1.2 do not declare. */
API void *CL_API_CALL clSVMAlloc(cl_context context, cl_bitfield flags, size_t size,
                                 cl_uint alignment);
API void CL_API_CALL clSVMFree(cl_context context, void *memory);
API cl_int CL_API_CALL clEnqueueSVMMemcpy(cl_command_queue queue, cl_bool blocking, void *to,
                                          const void *from, size_t size, cl_uint count,
                                          const cl_event *wait, cl_event *event);
API cl_int CL_API_CALL clSetKernelArgSVMPointer(cl_kernel kernel, cl_uint index,
                                                const void *pointer);
API void *CL_API_CALL clHostMemAllocINTEL(cl_context context, const cl_bitfield *properties,
                                          size_t size, cl_uint alignment, cl_int *code);
API void *CL_API_CALL clDeviceMemAllocINTEL(cl_context context, cl_device_id device,
                                            const cl_bitfield *properties, size_t size,
                                            cl_uint alignment, cl_int *code);
API void *CL_API_CALL clSharedMemAllocINTEL(cl_context context, cl_device_id device,
                                            const cl_bitfield *properties, size_t size,
                                            cl_uint alignment, cl_int *code);
API cl_int CL_API_CALL clMemBlockingFreeINTEL(cl_context context, void *memory);
API cl_int CL_API_CALL clGetMemAllocInfoINTEL(cl_context context, const void *pointer, cl_uint what,
                                              size_t size, void *value, size_t *needed);
API cl_int CL_API_CALL clEnqueueMemcpyINTEL(cl_command_queue queue, cl_bool blocking, void *to,
                                            const void *from, size_t size, cl_uint count,
                                            const cl_event *wait, cl_event *event);
API cl_int CL_API_CALL clSetKernelArgMemPointerINTEL(cl_kernel kernel, cl_uint index,
                                                     const void *pointer);

/* The lock of everything. With it: another thread may go on; waits for one for a while. */
void fake_lock(void);
void fake_unlock(void);
void fake_changed(void);
void fake_wait(void);

/* With the lock: makes an object with one owner; one less user; whether it is one that lives. */
void *fake_new(enum fake_kind kind, size_t bytes);
void fake_use(void *object);
void fake_drop(void *object);
bool fake_lives(const void *object, enum fake_kind kind, const char *call);
/* The same for a handle that may be any number, as in arguments of kernels. */
bool fake_is_buffer(const void *handle, const char *call);
/* What an object gives up when nobody needs it any more. */
void fake_clear(struct object *object);

/* With the lock. */
cl_int fake_retain(void *object, enum fake_kind kind, cl_int code, const char *call);
cl_int fake_release(void *object, enum fake_kind kind, cl_int code, const char *call);
cl_int fake_answer(const void *value, size_t bytes, size_t room, void *to, size_t *needed);

/* With the lock: copies what a launch uses, or a code. */
cl_int fake_task_make(cl_kernel kernel, cl_device_id device, cl_uint axes, const size_t *offset,
                      const size_t *global, const size_t *local, struct task **out);
cl_int fake_task_set(struct task *task, cl_uint index, size_t size, const void *value,
                     bool pointer);
void fake_task_run(const struct task *task);
void fake_task_free(struct task *task);

/* With the lock: a new command at the end of a queue; code of clEnqueue... */
cl_int fake_enqueue(cl_command_queue queue, cl_command_type type, cl_uint count,
                    const cl_event *wait, const char *call, cl_event *out);
/* Gives the application the event, or waits for it, or none of both. */
cl_int fake_finish(cl_event command, cl_bool blocking, cl_event *event);

/* An allocation that the host and kernels share. */
struct allocation {
    cl_context context;
    cl_device_id device; /* USM of a device */
    unsigned char *memory;
    size_t size;
    cl_uint type; /* of USM; 0: SVM */
    bool fine;
    struct allocation *next;
};
const struct allocation *fake_allocation(const void *pointer);
void *fake_extension(const char *name);

#endif
