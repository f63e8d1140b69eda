/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out what a device has beyond OpenCL 1.2, and the calls for it. */
#include "device/extensions.h"

#include "base/os.h"
#include "device/device_internal.h"
#include "device/opencl_loader.h"

#include <string.h>

/* Finds a call: the platform's own, else the loader's. `call` stays NULL if there is none. */
static void find_call(cl_platform_id platform, const char *name, void *call)
{
    void *address = clGetExtensionFunctionAddressForPlatform(platform, name);
    if (address != NULL)
        memcpy(call, &address, sizeof address); /* OpenCL, not C, makes a function of it */
    else if (!tconv_opencl_find(name, call))
        memset(call, 0, sizeof address);
}

void tconv_extensions_find(cl_device_id device, struct tconv_extensions *e)
{
    /* CL_DEVICE_SVM_CAPABILITIES and its bits for buffers and for the host's memory, which OpenCL
     * 1.2 does not name */
    enum { SVM_CAPABILITIES = 0x1053, SVM_SYSTEM = 1 << 2 };
    *e = (struct tconv_extensions){0};
    cl_platform_id platform = NULL;
    cl_bitfield svm = 0;
    cl_bool unified = CL_FALSE;
    if (clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL) != CL_SUCCESS)
        return;
    if (clGetDeviceInfo(device, SVM_CAPABILITIES, sizeof svm, &svm, NULL) != CL_SUCCESS) svm = 0;
    clGetDeviceInfo(device, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof unified, &unified, NULL);
    e->svm = svm != 0;
    e->svm_system = (svm & SVM_SYSTEM) != 0;
    e->svm_told = e->svm && unified == CL_TRUE;
    e->usm = tconv_device_has_extension(device, "cl_intel_unified_shared_memory");
    if (e->svm) find_call(platform, "clSetKernelArgSVMPointer", &e->clSetKernelArgSVMPointer);
    if (e->usm) {
        find_call(platform, "clSetKernelArgMemPointerINTEL", &e->clSetKernelArgMemPointerINTEL);
        find_call(platform, "clGetMemAllocInfoINTEL", &e->clGetMemAllocInfoINTEL);
        e->usm = e->clSetKernelArgMemPointerINTEL != NULL && e->clGetMemAllocInfoINTEL != NULL;
    }
    if (tconv_device_has_extension(device, "cl_khr_command_buffer")) {
        find_call(platform, "clGetCommandBufferInfoKHR", &e->clGetCommandBufferInfoKHR);
        find_call(platform, "clCommandNDRangeKernelKHR", &e->clCommandNDRangeKernelKHR);
        e->command_buffers = e->clGetCommandBufferInfoKHR != NULL &&
                             e->clCommandNDRangeKernelKHR != NULL;
    }
}
