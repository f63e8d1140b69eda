/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL devices: their numbers, their properties, and the object that holds the programs compiled
 * for one of them. */
#ifndef TCONV_CL_DEVICE_H
#define TCONV_CL_DEVICE_H

#include "device_info.h"
#include "status.h"

#ifndef CL_TARGET_OPENCL_VERSION
/* OpenCL 1.2 is enough for the library. A program that calls later functions itself, such as
 * clSVMAlloc, defines a later version before it includes this. */
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The flat list of devices: platforms in the loader's order, devices in their platform's order, no
 * sub-devices. A device's number is its position in the list. The list is read again at each call.
 * A platform that has no device, or fails to answer, adds none. Returns TCONV_OK (also without
 * devices: *count = 0), TCONV_ERROR_ARGUMENT, _HOST_MEMORY. Any thread. */
TCONV_API tconv_status tconv_device_count(int *count, tconv_error *error);

/* The device with a number. `platform` may be NULL. Returns also TCONV_ERROR_NO_DEVICE. Any thread.
 */
TCONV_API tconv_status tconv_device_at(int number, cl_platform_id *platform, cl_device_id *device,
                                       tconv_error *error);

/* Numbers that are not positions. */
enum {
    TCONV_DEVICE_DEFAULT = -1 /* the default device, where a function takes a number */
};

/* The number of the default device: the one that the environment variable TCONV_CL_DEVICE names. If
 * that is not set or empty: the first GPU, else the first accelerator, else the first device.
 * Returns also TCONV_ERROR_NO_DEVICE. Any thread. */
TCONV_API tconv_status tconv_device_default(int *number, tconv_error *error);

/* The number of the device that `name` names, in any letter case. Digits are a number. "gpu", "cpu"
 * and "accelerator" name the first device of this kind. Any other text names the first device with
 * a name, or a platform's name, that contains it. NULL and "" name the default device. Returns
 * TCONV_ERROR_NO_DEVICE with a list of the devices if there is none, _ARGUMENT, _HOST_MEMORY. Any
 * thread. */
TCONV_API tconv_status tconv_device_find(const char *name, int *number, tconv_error *error);

/* Reads the properties of a device that the library uses. Start from TCONV_DEVICE_INFO_INIT, which
 * sets struct_size. The environment variable TCONV_CL_MATRIX says which matrix units are used. If
 * it is not set or empty: those of NVIDIA, AMD and Intel, and on PoCL the CPU's dot products.
 * "off": none. "try": also, on CPUs without such instructions, the same products in plain OpenCL
 * C. Other values are an error. Returns TCONV_ERROR_ARGUMENT, _HOST_MEMORY, _DEVICE_MEMORY,
 * _OPENCL. Any thread. */
TCONV_API tconv_status tconv_device_describe(cl_device_id device, tconv_device_info *info,
                                             tconv_error *error);

/* One device in a context of the application, with compiled programs: it keeps the 256 most
 * recently used. Plans keep their own programs as long as they live. Opaque. */
typedef struct tconv_device tconv_device;

/* Creates the object. `device` is one of the context's devices, or a sub-device for which the
 * context can make queues (PoCL lists only the whole device). A sub-device has its own compute
 * units, in its properties and in what is stored of searches. The object retains `context`, and a
 * sub-device, and uses no queue and no buffer of the application. Kernel sources come from the
 * library or, if the environment variable TCONV_CL_KERNEL_DIR names a folder now, from that folder.
 * Returns TCONV_ERROR_ARGUMENT (also for an environment variable with an illegal value: cache.h,
 * TCONV_CL_MATRIX), _MISMATCH (the device is not in the context, or the context takes no sub-device
 * of it), _HOST_MEMORY, _DEVICE_MEMORY, _OPENCL. Ownership: the caller's, until
 * tconv_device_release. Threads: the object may be used by any number of threads at once. */
TCONV_API tconv_status tconv_device_create(cl_context context, cl_device_id device,
                                           tconv_device **out, tconv_error *error);

/* Adds an owner, who must also release the device. NULL is a no-op. Any thread. */
TCONV_API void tconv_device_retain(tconv_device *device);

/* Releases the device; the last owner's call destroys it. NULL is a no-op. Pending commands are
 * unaffected; plans and filters keep the object alive. */
TCONV_API void tconv_device_release(tconv_device *device);

/* The properties that tconv_device_describe gave when the object was made. Valid as long as the
 * object. NULL if `device` is NULL. */
TCONV_API const tconv_device_info *tconv_device_properties(const tconv_device *device);

#ifdef __cplusplus
}
#endif

#endif
