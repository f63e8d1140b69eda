/* SPDX-License-Identifier: Apache-2.0 */
/* What a device has beyond OpenCL 1.2, as far as the library uses it when it enqueues: pointers
 * into shared memory, and command buffers. */
#ifndef TCONV_DEVICE_EXTENSIONS_H
#define TCONV_DEVICE_EXTENSIONS_H

#include "tconv_cl/plan.h"

struct _cl_command_buffer_khr; /* of CL/cl_ext.h */

/* Values that headers of OpenCL 1.2 do not name. */
enum {
    TCONV_CL_MEM_USES_SVM_POINTER = 0x1109,
    /* cl_intel_unified_shared_memory */
    TCONV_CL_MEM_ALLOC_TYPE = 0x419A,
    TCONV_CL_MEM_ALLOC_BASE = 0x419B,
    TCONV_CL_MEM_ALLOC_SIZE = 0x419C,
    TCONV_CL_MEM_ALLOC_DEVICE = 0x419D,
    TCONV_CL_MEM_TYPE_UNKNOWN = 0x4196,
    TCONV_CL_MEM_TYPE_DEVICE = 0x4198,
    /* cl_khr_command_buffer */
    TCONV_CL_COMMAND_BUFFER_QUEUES = 0x1294,
    TCONV_CL_COMMAND_BUFFER_NUM_QUEUES = 0x1295,
    TCONV_CL_COMMAND_BUFFER_STATE = 0x1297,
    TCONV_CL_COMMAND_BUFFER_PROPERTIES_ARRAY = 0x1298,
    TCONV_CL_COMMAND_BUFFER_FLAGS = 0x1293,
    TCONV_CL_COMMAND_BUFFER_RECORDING = 0,
    TCONV_CL_INVALID_COMMAND_BUFFER = -1138,
    /* cl_khr_command_buffer_mutable_dispatch */
    TCONV_CL_COMMAND_BUFFER_MUTABLE = 1 << 1,
    TCONV_CL_MUTABLE_DISPATCH_UPDATABLE_FIELDS = 0x12B1,
    TCONV_CL_MUTABLE_DISPATCH_ARGUMENTS = 1 << 3,
    TCONV_CL_MUTABLE_DISPATCH_CONFIG = 0, /* a type of change */
    TCONV_CL_INVALID_MUTABLE_COMMAND = -1141
};

/* A new argument of a recorded command (cl_mutable_dispatch_arg_khr). */
struct tconv_new_argument {
    cl_uint index;
    size_t size;
    const void *value;
};

/* Changes of a recorded command (cl_mutable_dispatch_config_khr since version 0.9.2). */
struct tconv_change {
    void *command;
    cl_uint argument_count, pointer_count, other_count, axes;
    const struct tconv_new_argument *arguments, *pointers;
    const void *others;
    const size_t *offset, *global, *local;
};

struct tconv_extensions {
    bool svm;             /* shared virtual memory of OpenCL 2.0 */
    bool svm_system;      /* kernels may use all memory of the host */
    bool svm_told;        /* a buffer made over a pointer tells cheaply whether it is one of SVM */
    bool usm;             /* cl_intel_unified_shared_memory */
    bool command_buffers; /* cl_khr_command_buffer */
    bool new_arguments;   /* cl_khr_command_buffer_mutable_dispatch, arguments of kernels */
    uint32_t spirv;       /* the newest version that programs may have, as a module's second word
                             has it; 0: none */
    /* clCreateProgramWithIL, or that of cl_khr_il_program; NULL if `spirv` is 0 */
    cl_program(CL_API_CALL *create_from_il)(cl_context context, const void *il, size_t size,
                                            cl_int *code);
    /* NULL if the device does not have what they are for, or the loader not the call */
#define CALL(name, parameters, ...) cl_int(CL_API_CALL *name) parameters;
#include "device/extension_calls.h"
#undef CALL
};

/* Finds out what a device has. What it does not answer it does not have. */
void tconv_extensions_find(cl_device_id device, struct tconv_extensions *extensions);

#endif
