/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that not every device or loader has, a row each: CALL(name, parameters, arguments,
 * codes...), as in opencl_calls.h. extensions.h makes pointers of them, extensions.c finds them,
 * and device_tests/support/faults.c makes them fail. Headers of OpenCL 1.2 declare none of them, so
 * their types are spelled out. */
CALL(clSetKernelArgSVMPointer, (cl_kernel kernel, cl_uint index, const void *pointer),
     (kernel, index, pointer), CL_INVALID_KERNEL, CL_INVALID_OPERATION, CL_INVALID_ARG_INDEX,
     CL_INVALID_ARG_VALUE, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
CALL(clSetKernelArgMemPointerINTEL, (cl_kernel kernel, cl_uint index, const void *pointer),
     (kernel, index, pointer), CL_INVALID_KERNEL, CL_INVALID_OPERATION, CL_INVALID_ARG_INDEX,
     CL_INVALID_ARG_VALUE, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
CALL(clGetMemAllocInfoINTEL,
     (cl_context context, const void *pointer, cl_uint what, size_t size, void *value,
      size_t *needed),
     (context, pointer, what, size, value, needed), CL_INVALID_CONTEXT, CL_INVALID_VALUE,
     CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
CALL(clGetCommandBufferInfoKHR,
     (struct _cl_command_buffer_khr * buffer, cl_uint what, size_t size, void *value,
      size_t *needed),
     (buffer, what, size, value, needed), TCONV_CL_INVALID_COMMAND_BUFFER, CL_INVALID_VALUE,
     CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
CALL(clCommandNDRangeKernelKHR,
     (struct _cl_command_buffer_khr * buffer, cl_command_queue queue, const void *properties,
      cl_kernel kernel, cl_uint axes, const size_t *offset, const size_t *global,
      const size_t *local, cl_uint count, const cl_uint *wait, cl_uint *point, void **command),
     (buffer, queue, properties, kernel, axes, offset, global, local, count, wait, point, command),
     TCONV_CL_INVALID_COMMAND_BUFFER, CL_INVALID_KERNEL, CL_INVALID_KERNEL_ARGS,
     CL_INVALID_OPERATION, CL_INVALID_VALUE, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
CALL(clUpdateMutableCommandsKHR,
     (struct _cl_command_buffer_khr * buffer, cl_uint count, const cl_uint *types,
      const void **changes),
     (buffer, count, types, changes), TCONV_CL_INVALID_COMMAND_BUFFER, CL_INVALID_OPERATION,
     TCONV_CL_INVALID_MUTABLE_COMMAND, CL_INVALID_VALUE, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
