/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out what a device has beyond OpenCL 1.2, and the calls for it. */
#include "device/extensions.h"

#include "base/os.h"
#include "device/describe.h"
#include "device/opencl_loader.h"

#include <stdlib.h>
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

/* Whether recorded commands take new arguments. The call has its present parameters since version
 * 0.9.2 of the extension; only devices with OpenCL 3.0 tell the version. */
static bool takes_new_arguments(cl_device_id device)
{
    static const char name[] = "cl_khr_command_buffer_mutable_dispatch";
    /* CL_DEVICE_EXTENSIONS_WITH_VERSION, CL_DEVICE_MUTABLE_DISPATCH_CAPABILITIES_KHR */
    enum { WITH_VERSION = 0x1060, CAPABILITIES = 0x12B0 };
    const cl_uint least = 9 << 12 | 2; /* 0.9.2 */
    cl_bitfield can = 0;
    size_t size = 0;
    struct version {
        cl_uint version;
        char name[64];
    } few[64], *all = few; /* as in tconv_device_has_extension */
    if (!tconv_device_has_extension(device, name) ||
        clGetDeviceInfo(device, CAPABILITIES, sizeof can, &can, NULL) != CL_SUCCESS ||
        (can & TCONV_CL_MUTABLE_DISPATCH_ARGUMENTS) == 0 ||
        clGetDeviceInfo(device, WITH_VERSION, 0, NULL, &size) != CL_SUCCESS ||
        (size > sizeof few && (all = malloc(size)) == NULL))
        return false;
    bool takes = false;
    if (clGetDeviceInfo(device, WITH_VERSION, size, all, NULL) == CL_SUCCESS)
        for (size_t i = 0; i < size / sizeof *all; i++)
            takes = takes || (strncmp(all[i].name, name, sizeof all[i].name) == 0 &&
                              all[i].version >= least);
    if (all != few) free(all);
    return takes;
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
    if (e->command_buffers && takes_new_arguments(device)) {
        find_call(platform, "clUpdateMutableCommandsKHR", &e->clUpdateMutableCommandsKHR);
        e->new_arguments = e->clUpdateMutableCommandsKHR != NULL;
    }
}
