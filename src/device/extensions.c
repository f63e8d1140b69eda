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
    return tconv_device_has_extension(device, name) &&
           clGetDeviceInfo(device, CAPABILITIES, sizeof can, &can, NULL) == CL_SUCCESS &&
           (can & TCONV_CL_MUTABLE_DISPATCH_ARGUMENTS) != 0 &&
           tconv_device_version(device, WITH_VERSION, name) >= least;
}

/* The newest version of SPIR-V that a device takes, as a module's second word has it; 0: none. */
static uint32_t newest_spirv(cl_device_id device)
{
    enum { IL_VERSION = 0x105B }; /* CL_DEVICE_IL_VERSION; names with spaces between them */
    static const char name[] = "SPIR-V_1.";
    char all[1024] = "";
    uint32_t newest = 0;
    if (clGetDeviceInfo(device, IL_VERSION, sizeof all - 1, all, NULL) != CL_SUCCESS) return 0;
    for (const char *at = strstr(all, name); at != NULL; at = strstr(at + 1, name)) {
        const unsigned long minor = strtoul(at + strlen(name), NULL, 10);
        const uint32_t version = UINT32_C(0x10000) | (uint32_t)(minor & 0xff) << 8;
        if (version > newest) newest = version;
    }
    return newest;
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
    if ((e->spirv = newest_spirv(device)) > 0) {
        const bool core = !tconv_device_has_extension(device, "cl_khr_il_program");
        find_call(platform, core ? "clCreateProgramWithIL" : "clCreateProgramWithILKHR",
                  &e->create_from_il);
        if (e->create_from_il == NULL) e->spirv = 0;
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
