/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenCL calls of the library, a row each, with the codes with which they may fail by the
 * OpenCL 1.2 specification. opencl_calls.c and device_tests/support/faults.c, which makes calls
 * fail, define macros for the rows and include this file. device_tests/CMakeLists.txt reads the
 * names.
 *
 *   CALL(name, parameters, arguments, codes...)                a call that returns its code
 *   EVENT_CALL(...)                                            whose last parameter returns an
 *                                                              event
 *   RETAIN(name, kind, ...), RELEASE(name, kind, ...)          that change a count of owners
 *   CREATE(name, kind, type, parameters, arguments, codes...)  whose last parameter returns its
 *                                                              code
 *   MAP(...)                                                   whose last parameter returns its
 *                                                              code
 *   ANSWER(...)                                                whose answer fault_limit may lower
 *   BUILD(...)                                                 that fault_refuse may let fail
 *   FIND(...)                                                  whose answer is a call of
 *                                                              extension_calls.h, or NULL */
CALL(clGetPlatformIDs, (cl_uint n, cl_platform_id *ids, cl_uint *count), (n, ids, count),
     CL_INVALID_VALUE, CL_OUT_OF_HOST_MEMORY)
CALL(clGetPlatformInfo,
     (cl_platform_id platform, cl_platform_info what, size_t size, void *value, size_t *needed),
     (platform, what, size, value, needed), CL_INVALID_PLATFORM, CL_INVALID_VALUE,
     CL_OUT_OF_HOST_MEMORY)
CALL(clGetDeviceIDs,
     (cl_platform_id platform, cl_device_type type, cl_uint n, cl_device_id *ids, cl_uint *count),
     (platform, type, n, ids, count), CL_INVALID_PLATFORM, CL_INVALID_VALUE, CL_DEVICE_NOT_FOUND,
     CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
CALL(clGetDeviceInfo,
     (cl_device_id device, cl_device_info what, size_t size, void *value, size_t *needed),
     (device, what, size, value, needed), CL_INVALID_DEVICE, CL_INVALID_VALUE, CL_OUT_OF_RESOURCES,
     CL_OUT_OF_HOST_MEMORY)
CALL(clGetContextInfo,
     (cl_context context, cl_context_info what, size_t size, void *value, size_t *needed),
     (context, what, size, value, needed), CL_INVALID_CONTEXT, CL_INVALID_VALUE,
     CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
CALL(clGetCommandQueueInfo,
     (cl_command_queue queue, cl_command_queue_info what, size_t size, void *value, size_t *needed),
     (queue, what, size, value, needed), CL_INVALID_COMMAND_QUEUE, CL_INVALID_VALUE,
     CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
CALL(clGetMemObjectInfo,
     (cl_mem buffer, cl_mem_info what, size_t size, void *value, size_t *needed),
     (buffer, what, size, value, needed), CL_INVALID_MEM_OBJECT, CL_INVALID_VALUE,
     CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
CALL(clGetKernelInfo,
     (cl_kernel kernel, cl_kernel_info what, size_t size, void *value, size_t *needed),
     (kernel, what, size, value, needed), CL_INVALID_KERNEL, CL_INVALID_VALUE, CL_OUT_OF_RESOURCES,
     CL_OUT_OF_HOST_MEMORY)
ANSWER(clGetKernelWorkGroupInfo,
       (cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what, size_t size,
        void *value, size_t *needed),
       (kernel, device, what, size, value, needed), CL_INVALID_DEVICE, CL_INVALID_VALUE,
       CL_INVALID_KERNEL, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
CALL(clGetProgramInfo,
     (cl_program program, cl_program_info what, size_t size, void *value, size_t *needed),
     (program, what, size, value, needed), CL_INVALID_PROGRAM, CL_INVALID_VALUE,
     CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
CALL(clGetProgramBuildInfo,
     (cl_program program, cl_device_id device, cl_program_build_info what, size_t size, void *value,
      size_t *needed),
     (program, device, what, size, value, needed), CL_INVALID_DEVICE, CL_INVALID_VALUE,
     CL_INVALID_PROGRAM, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
BUILD(clBuildProgram,
      (cl_program program, cl_uint count, const cl_device_id *ids, const char *build_options,
       void(CL_CALLBACK *notify)(cl_program, void *), void *user),
      (program, count, ids, build_options, notify, user), CL_INVALID_PROGRAM, CL_INVALID_VALUE,
      CL_INVALID_DEVICE, CL_INVALID_BINARY, CL_INVALID_BUILD_OPTIONS, CL_INVALID_OPERATION,
      CL_COMPILER_NOT_AVAILABLE, CL_BUILD_PROGRAM_FAILURE, CL_OUT_OF_RESOURCES,
      CL_OUT_OF_HOST_MEMORY)
CALL(clGetEventInfo, (cl_event event, cl_event_info what, size_t size, void *value, size_t *needed),
     (event, what, size, value, needed), CL_INVALID_EVENT, CL_INVALID_VALUE, CL_OUT_OF_RESOURCES,
     CL_OUT_OF_HOST_MEMORY)
CALL(clGetEventProfilingInfo,
     (cl_event event, cl_profiling_info what, size_t size, void *value, size_t *needed),
     (event, what, size, value, needed), CL_PROFILING_INFO_NOT_AVAILABLE, CL_INVALID_VALUE,
     CL_INVALID_EVENT, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
CALL(clSetEventCallback,
     (cl_event event, cl_int state, void(CL_CALLBACK *notify)(cl_event, cl_int, void *),
      void *user),
     (event, state, notify, user), CL_INVALID_EVENT, CL_INVALID_VALUE, CL_OUT_OF_RESOURCES,
     CL_OUT_OF_HOST_MEMORY)
CALL(clSetKernelArg, (cl_kernel kernel, cl_uint index, size_t size, const void *value),
     (kernel, index, size, value), CL_INVALID_KERNEL, CL_INVALID_ARG_INDEX, CL_INVALID_ARG_VALUE,
     CL_INVALID_MEM_OBJECT, CL_INVALID_ARG_SIZE, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
CALL(clFlush, (cl_command_queue queue), (queue), CL_INVALID_COMMAND_QUEUE, CL_OUT_OF_RESOURCES,
     CL_OUT_OF_HOST_MEMORY)
WAIT(clFinish, (cl_command_queue queue), (queue), CL_INVALID_COMMAND_QUEUE, CL_OUT_OF_RESOURCES,
     CL_OUT_OF_HOST_MEMORY)
WAIT(clWaitForEvents, (cl_uint count, const cl_event *events), (count, events), CL_INVALID_VALUE,
     CL_INVALID_CONTEXT, CL_INVALID_EVENT, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
     CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
EVENT_CALL(clEnqueueNDRangeKernel,
           (cl_command_queue queue, cl_kernel kernel, cl_uint axes, const size_t *offset,
            const size_t *global, const size_t *local, cl_uint count, const cl_event *wait,
            cl_event *event),
           (queue, kernel, axes, offset, global, local, count, wait, event),
           CL_INVALID_PROGRAM_EXECUTABLE, CL_INVALID_COMMAND_QUEUE, CL_INVALID_KERNEL,
           CL_INVALID_CONTEXT, CL_INVALID_KERNEL_ARGS, CL_INVALID_WORK_DIMENSION,
           CL_INVALID_GLOBAL_WORK_SIZE, CL_INVALID_WORK_GROUP_SIZE, CL_INVALID_WORK_ITEM_SIZE,
           CL_MISALIGNED_SUB_BUFFER_OFFSET, CL_MEM_OBJECT_ALLOCATION_FAILURE,
           CL_INVALID_EVENT_WAIT_LIST, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
EVENT_CALL(clEnqueueMarkerWithWaitList,
           (cl_command_queue queue, cl_uint count, const cl_event *wait, cl_event *event),
           (queue, count, wait, event), CL_INVALID_COMMAND_QUEUE, CL_INVALID_CONTEXT,
           CL_INVALID_EVENT_WAIT_LIST, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
EVENT_CALL(clEnqueueFillBuffer,
           (cl_command_queue queue, cl_mem buffer, const void *pattern, size_t pattern_size,
            size_t offset, size_t size, cl_uint count, const cl_event *wait, cl_event *event),
           (queue, buffer, pattern, pattern_size, offset, size, count, wait, event),
           CL_INVALID_COMMAND_QUEUE, CL_INVALID_CONTEXT, CL_INVALID_MEM_OBJECT, CL_INVALID_VALUE,
           CL_INVALID_EVENT_WAIT_LIST, CL_MISALIGNED_SUB_BUFFER_OFFSET,
           CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
EVENT_CALL(clEnqueueWriteBuffer,
           (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
            const void *from, cl_uint count, const cl_event *wait, cl_event *event),
           (queue, buffer, blocking, offset, size, from, count, wait, event),
           CL_INVALID_COMMAND_QUEUE, CL_INVALID_CONTEXT, CL_INVALID_MEM_OBJECT, CL_INVALID_VALUE,
           CL_INVALID_EVENT_WAIT_LIST, CL_MISALIGNED_SUB_BUFFER_OFFSET,
           CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, CL_MEM_OBJECT_ALLOCATION_FAILURE,
           CL_INVALID_OPERATION, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
EVENT_CALL(clEnqueueReadBuffer,
           (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
            void *to, cl_uint count, const cl_event *wait, cl_event *event),
           (queue, buffer, blocking, offset, size, to, count, wait, event),
           CL_INVALID_COMMAND_QUEUE, CL_INVALID_CONTEXT, CL_INVALID_MEM_OBJECT, CL_INVALID_VALUE,
           CL_INVALID_EVENT_WAIT_LIST, CL_MISALIGNED_SUB_BUFFER_OFFSET,
           CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, CL_MEM_OBJECT_ALLOCATION_FAILURE,
           CL_INVALID_OPERATION, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
MAP(clEnqueueMapBuffer,
    (cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags, size_t offset,
     size_t size, cl_uint count, const cl_event *wait, cl_event *event, cl_int *code),
    (queue, buffer, blocking, flags, offset, size, count, wait, event, code),
    CL_INVALID_COMMAND_QUEUE, CL_INVALID_CONTEXT, CL_INVALID_MEM_OBJECT, CL_INVALID_VALUE,
    CL_INVALID_EVENT_WAIT_LIST, CL_MISALIGNED_SUB_BUFFER_OFFSET, CL_MAP_FAILURE,
    CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, CL_MEM_OBJECT_ALLOCATION_FAILURE,
    CL_INVALID_OPERATION, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
EVENT_CALL(clEnqueueUnmapMemObject,
           (cl_command_queue queue, cl_mem buffer, void *mapped, cl_uint count,
            const cl_event *wait, cl_event *event),
           (queue, buffer, mapped, count, wait, event), CL_INVALID_COMMAND_QUEUE,
           CL_INVALID_MEM_OBJECT, CL_INVALID_VALUE, CL_INVALID_EVENT_WAIT_LIST, CL_INVALID_CONTEXT,
           CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
EVENT_CALL(clEnqueueWriteBufferRect,
           (cl_command_queue queue, cl_mem buffer, cl_bool blocking, const size_t *origin,
            const size_t *host_origin, const size_t *region, size_t row, size_t slice,
            size_t host_row, size_t host_slice, const void *from, cl_uint count,
            const cl_event *wait, cl_event *event),
           (queue, buffer, blocking, origin, host_origin, region, row, slice, host_row, host_slice,
            from, count, wait, event),
           CL_INVALID_COMMAND_QUEUE, CL_INVALID_CONTEXT, CL_INVALID_MEM_OBJECT, CL_INVALID_VALUE,
           CL_INVALID_EVENT_WAIT_LIST, CL_MISALIGNED_SUB_BUFFER_OFFSET,
           CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_INVALID_OPERATION, CL_OUT_OF_RESOURCES,
           CL_OUT_OF_HOST_MEMORY)
EVENT_CALL(clEnqueueReadBufferRect,
           (cl_command_queue queue, cl_mem buffer, cl_bool blocking, const size_t *origin,
            const size_t *host_origin, const size_t *region, size_t row, size_t slice,
            size_t host_row, size_t host_slice, void *to, cl_uint count, const cl_event *wait,
            cl_event *event),
           (queue, buffer, blocking, origin, host_origin, region, row, slice, host_row, host_slice,
            to, count, wait, event),
           CL_INVALID_COMMAND_QUEUE, CL_INVALID_CONTEXT, CL_INVALID_MEM_OBJECT, CL_INVALID_VALUE,
           CL_INVALID_EVENT_WAIT_LIST, CL_MISALIGNED_SUB_BUFFER_OFFSET,
           CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_INVALID_OPERATION, CL_OUT_OF_RESOURCES,
           CL_OUT_OF_HOST_MEMORY)
EVENT_CALL(clEnqueueCopyBufferRect,
           (cl_command_queue queue, cl_mem from, cl_mem to, const size_t *from_origin,
            const size_t *to_origin, const size_t *region, size_t from_row, size_t from_slice,
            size_t to_row, size_t to_slice, cl_uint count, const cl_event *wait, cl_event *event),
           (queue, from, to, from_origin, to_origin, region, from_row, from_slice, to_row, to_slice,
            count, wait, event),
           CL_INVALID_COMMAND_QUEUE, CL_INVALID_CONTEXT, CL_INVALID_MEM_OBJECT, CL_INVALID_VALUE,
           CL_INVALID_EVENT_WAIT_LIST, CL_MISALIGNED_SUB_BUFFER_OFFSET, CL_MEM_COPY_OVERLAP,
           CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
RETAIN(clRetainDevice, DEVICES, (cl_device_id device), (device), CL_INVALID_DEVICE,
       CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
RETAIN(clRetainContext, CONTEXTS, (cl_context context), (context), CL_INVALID_CONTEXT,
       CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
RETAIN(clRetainEvent, EVENTS, (cl_event event), (event), CL_INVALID_EVENT, CL_OUT_OF_RESOURCES,
       CL_OUT_OF_HOST_MEMORY)
RETAIN(clRetainMemObject, BUFFERS, (cl_mem buffer), (buffer), CL_INVALID_MEM_OBJECT,
       CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
RETAIN(clRetainProgram, PROGRAMS, (cl_program program), (program), CL_INVALID_PROGRAM,
       CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
RELEASE(clReleaseDevice, DEVICES, (cl_device_id device), (device), CL_INVALID_DEVICE,
        CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
RELEASE(clReleaseContext, CONTEXTS, (cl_context context), (context), CL_INVALID_CONTEXT,
        CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
RELEASE(clReleaseCommandQueue, QUEUES, (cl_command_queue queue), (queue), CL_INVALID_COMMAND_QUEUE,
        CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
RELEASE(clReleaseMemObject, BUFFERS, (cl_mem buffer), (buffer), CL_INVALID_MEM_OBJECT,
        CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
RELEASE(clReleaseProgram, PROGRAMS, (cl_program program), (program), CL_INVALID_PROGRAM,
        CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
RELEASE(clReleaseKernel, KERNELS, (cl_kernel kernel), (kernel), CL_INVALID_KERNEL,
        CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
RELEASE(clReleaseEvent, EVENTS, (cl_event event), (event), CL_INVALID_EVENT, CL_OUT_OF_RESOURCES,
        CL_OUT_OF_HOST_MEMORY)
CREATE(clCreateContext, CONTEXTS, cl_context,
       (const cl_context_properties *properties, cl_uint count, const cl_device_id *ids,
        void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user,
        cl_int *code),
       (properties, count, ids, notify, user, code), CL_INVALID_PLATFORM, CL_INVALID_PROPERTY,
       CL_INVALID_VALUE, CL_INVALID_DEVICE, CL_DEVICE_NOT_AVAILABLE, CL_OUT_OF_RESOURCES,
       CL_OUT_OF_HOST_MEMORY)
CREATE(clCreateCommandQueue, QUEUES, cl_command_queue,
       (cl_context context, cl_device_id device, cl_command_queue_properties properties,
        cl_int *code),
       (context, device, properties, code), CL_INVALID_CONTEXT, CL_INVALID_DEVICE, CL_INVALID_VALUE,
       CL_INVALID_QUEUE_PROPERTIES, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
CREATE(clCreateBuffer, BUFFERS, cl_mem,
       (cl_context context, cl_mem_flags flags, size_t size, void *contents, cl_int *code),
       (context, flags, size, contents, code), CL_INVALID_CONTEXT, CL_INVALID_VALUE,
       CL_INVALID_BUFFER_SIZE, CL_INVALID_HOST_PTR, CL_MEM_OBJECT_ALLOCATION_FAILURE,
       CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
CREATE(clCreateImage, BUFFERS, cl_mem,
       (cl_context context, cl_mem_flags flags, const cl_image_format *format,
        const cl_image_desc *description, void *contents, cl_int *code),
       (context, flags, format, description, contents, code), CL_INVALID_CONTEXT, CL_INVALID_VALUE,
       CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, CL_INVALID_IMAGE_DESCRIPTOR, CL_INVALID_IMAGE_SIZE,
       CL_INVALID_HOST_PTR, CL_IMAGE_FORMAT_NOT_SUPPORTED, CL_MEM_OBJECT_ALLOCATION_FAILURE,
       CL_INVALID_OPERATION, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
CREATE(clCreateProgramWithSource, PROGRAMS, cl_program,
       (cl_context context, cl_uint count, const char **texts, const size_t *lengths, cl_int *code),
       (context, count, texts, lengths, code), CL_INVALID_CONTEXT, CL_INVALID_VALUE,
       CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
CREATE(clCreateProgramWithBinary, PROGRAMS, cl_program,
       (cl_context context, cl_uint count, const cl_device_id *ids, const size_t *lengths,
        const unsigned char **binaries, cl_int *status, cl_int *code),
       (context, count, ids, lengths, binaries, status, code), CL_INVALID_CONTEXT, CL_INVALID_VALUE,
       CL_INVALID_DEVICE, CL_INVALID_BINARY, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
CREATE(clCreateKernel, KERNELS, cl_kernel, (cl_program program, const char *name, cl_int *code),
       (program, name, code), CL_INVALID_PROGRAM, CL_INVALID_PROGRAM_EXECUTABLE,
       CL_INVALID_KERNEL_NAME, CL_INVALID_KERNEL_DEFINITION, CL_INVALID_VALUE, CL_OUT_OF_RESOURCES,
       CL_OUT_OF_HOST_MEMORY)
FIND(clGetExtensionFunctionAddressForPlatform, (cl_platform_id platform, const char *call),
     (platform, call), CL_INVALID_VALUE)
