/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL devices: their numbers, their properties, and the object that holds the programs compiled
 * for one of them. Needs no OpenCL header. */
#ifndef TCONV_CL_DEVICE_H
#define TCONV_CL_DEVICE_H

#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A platform of OpenCL. This handle and the next two are declared as in CL/cl.h. */
typedef struct _cl_platform_id *cl_platform_id;
typedef struct _cl_device_id *cl_device_id; /* a device of OpenCL */
typedef struct _cl_context *cl_context;     /* a context of OpenCL */

/* CL_DEVICE_TYPE, as one value. */
typedef enum tconv_device_kind {
    TCONV_DEVICE_OTHER = 0,      /* none of these */
    TCONV_DEVICE_CPU = 1,        /* a processor */
    TCONV_DEVICE_GPU = 2,        /* a graphics processor */
    TCONV_DEVICE_ACCELERATOR = 3 /* CL_DEVICE_TYPE_ACCELERATOR */
} tconv_device_kind;

/* Matrix units that the library can use: they multiply small matrices at once, or add up products
 * of bytes or bf16 in the lanes of a vector. */
typedef enum tconv_matrix_unit {
    TCONV_MATRIX_NONE = 0,       /* none that may be used */
    TCONV_MATRIX_NVIDIA_MMA = 1, /* mma.sync, compute capability 8.0 and later */
    TCONV_MATRIX_AMD_WMMA = 2,   /* gfx11 */
    TCONV_MATRIX_AMD_MFMA = 3,   /* gfx908, gfx90a, gfx942, gfx950 */
    TCONV_MATRIX_INTEL_DPAS = 4, /* cl_intel_subgroup_matrix_multiply_accumulate */
    /* CPUs that run in this process. */
    TCONV_MATRIX_X86_AVX512_VNNI = 5, /* vpdpbusd, vpdpwssd: AVX-512 VNNI and VL */
    TCONV_MATRIX_X86_AVX_VNNI = 6,    /* vpdpbusd: AVX-VNNI, vectors of 256 bits */
    TCONV_MATRIX_PLAIN_QUADS = 7,     /* no unit: the same products in plain OpenCL C, for tests */
    TCONV_MATRIX_X86_AVX512_BF16 = 8, /* vdpbf16ps, and what AVX512_VNNI has */
    /* GPUs again. */
    TCONV_MATRIX_AMD_WMMA12 = 9,   /* gfx12: other fragments than those of gfx11 */
    TCONV_MATRIX_NVIDIA_WGMMA = 10 /* wgmma, compute capability 9.0; small tiles use mma.sync, and
                                      so do all if the driver does not take wgmma */
} tconv_matrix_unit;

/* Families of GPUs whose registers, local memory and rates the cost model knows. Other GPUs are
 * treated like NVIDIA's, with fewer registers if they emulate local memory. */
typedef enum tconv_architecture {
    TCONV_ARCHITECTURE_OTHER = 0,       /* none of these, or unknown */
    TCONV_ARCHITECTURE_NVIDIA = 1,      /* its driver has cl_nv_device_attribute_query */
    TCONV_ARCHITECTURE_AMD_RDNA = 2,    /* gfx10 and later */
    TCONV_ARCHITECTURE_AMD_CDNA = 3,    /* gfx9 and before: 64 lanes; also GCN */
    TCONV_ARCHITECTURE_MALI = 4,        /* Arm's GPUs; their local memory lies in global memory */
    TCONV_ARCHITECTURE_ADRENO = 5,      /* Qualcomm's */
    TCONV_ARCHITECTURE_POWERVR = 6,     /* Imagination's */
    TCONV_ARCHITECTURE_INTEL_XE_HP = 7, /* Xe-HP, Xe-HPG, Xe-HPC and later: a kernel may ask for 256
                                           registers of a thread instead of 128 */
    TCONV_ARCHITECTURE_VIDEOCORE = 8    /* Broadcom's; their local memory lies in global memory */
} tconv_architecture;

/* The properties of a device: plain data, so that a test can invent devices. Its struct_size (see
 * tconv_cl.h) reaches at least up to `kind`. */
typedef struct tconv_device_info {
    size_t struct_size;
    char name[128];              /* CL_DEVICE_NAME */
    char vendor[128];            /* CL_DEVICE_VENDOR */
    char driver[128];            /* driver version */
    char version[128];           /* OpenCL version of the device */
    char platform[128];          /* platform name */
    tconv_device_kind kind;      /* CPU, GPU, accelerator or none of these */
    uint32_t compute_units;      /* CL_DEVICE_MAX_COMPUTE_UNITS */
    uint32_t vector_width;       /* f32 lanes of a native vector; 1 where work-items are lanes */
    uint64_t work_group_limit;   /* work-items in a work-group */
    uint64_t work_item_limit[3]; /* work-items in a work-group along each dimension */
    uint64_t local_memory;       /* bytes */
    uint64_t global_memory;      /* bytes */
    uint64_t allocation_limit;   /* bytes in one buffer */
    bool dedicated_local;     /* local memory is a memory of its own, not a part of global memory */
    bool fma;                 /* f32 fma is done in hardware */
    bool half_arithmetic;     /* cl_khr_fp16 */
    bool double_arithmetic;   /* cl_khr_fp64 or the f64 of OpenCL 1.2 */
    bool subgroups;           /* cl_khr_subgroups or OpenCL 2.1 sub-groups */
    bool integer_dot_product; /* cl_khr_integer_dot_product, or a feature of OpenCL C */
    uint32_t subgroup_least;  /* lanes of the narrowest sub-group that a kernel may ask for
                                 (cl_intel_required_subgroup_size); 0: it may not */
    tconv_matrix_unit matrix_unit;   /* the unit that kernels may use; see tconv_device_describe */
    uint32_t clock_mhz;              /* CL_DEVICE_MAX_CLOCK_FREQUENCY; 0: unknown */
    uint64_t cache_bytes;            /* CL_DEVICE_GLOBAL_MEM_CACHE_SIZE; 0: unknown or none */
    uint32_t constant_kib;           /* KiB: CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE; 0: unknown */
    tconv_architecture architecture; /* of a GPU */
    uint64_t image_pixels;           /* of an image over a buffer at most:
                                        CL_DEVICE_IMAGE_MAX_BUFFER_SIZE; 0: it has no images */
} tconv_device_info;

#define TCONV_DEVICE_INFO_INIT                                                                     \
    {                                                                                              \
        sizeof(tconv_device_info), "", "", "", "", "", TCONV_DEVICE_OTHER, 0, 0, 0, {0, 0, 0}, 0,  \
            0, 0, false, false, false, false, false, false, 0, TCONV_MATRIX_NONE, 0, 0, 0,         \
            TCONV_ARCHITECTURE_OTHER, 0                                                            \
    }

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

/* One device in a context, with what all plans and layers on it share: compiled programs, of which
 * it keeps the 256 most recently used (plans keep their own as long as they live), results of
 * searches, queues and buffers for arrays of the host, and workspaces. Opaque. */
typedef struct tconv_device tconv_device;

/* Opens the device with this number (see tconv_device_at) in a context of its own: for applications
 * that have none. TCONV_DEVICE_DEFAULT, or any negative number, opens the default device. Returns
 * TCONV_ERROR_ARGUMENT, _NO_DEVICE, _HOST_MEMORY, _DEVICE_MEMORY, _OPENCL. Ownership and threads as
 * of tconv_device_create.
 *
 * THREADS OF A PROCESSOR. PoCL has two devices for the processor. "pthread" (since PoCL 4 "cpu")
 * has threads of its own, which a launch must wake: that takes longer than a small layer. "basic"
 * ("cpu-minimal") runs a kernel in the thread that enqueues it. If a platform offers it beside the
 * other one, as after tconv_threads_enable, it is no further device of the list. Opening the other
 * one then opens it, and several threads share each launch: those of the application
 * (tconv_run.on_threads), or else the calling one with helpers, threads of the device object, which
 * wait awake for 200 microseconds after a launch, and then sleep. The environment variable
 * TCONV_CL_THREADS says how many compute at the same time: a number, or "off" for the driver's own
 * threads; if it is not set or empty, as many as the process may use processors. Results have the
 * same bits whatever number of threads there is; the driver's own threads may get another
 * algorithm. If several threads of the application run layers at the same time, one of them gets
 * the helpers. tconv_device_threads is the number of threads; 0 if the driver has its own, or if
 * `device` is NULL. */
TCONV_API tconv_status tconv_device_open(int number, tconv_device **out, tconv_error *error);
TCONV_API int tconv_device_threads(const tconv_device *device);

/* Sets the environment variable POCL_DEVICES to "pthread basic", so that PoCL offers that device.
 * For a program to call at its start, before anything uses OpenCL and while it has one thread: the
 * library never changes the environment by itself. Returns false, and changes nothing, if the
 * variable is set already, if TCONV_CL_THREADS is "off" or has an illegal value, or if this library
 * used OpenCL before. It cannot see that another one did; then the variable has no effect. PoCL
 * then lists the device without threads first: a program that also takes devices from OpenCL itself
 * must not take that one by its place.
 * POCL_DEVICES also hides other devices that PoCL may drive (GPUs): a program that wants these sets
 * it itself. */
TCONV_API bool tconv_threads_enable(void);

/* Creates the object in a context of the application. `device` is one of the context's devices, or
 * a sub-device for which the context can make queues (PoCL lists only the whole device). A
 * sub-device has its own compute units, in its properties and in what is stored of searches. The
 * object retains `context`, and a sub-device, and uses no queue and no buffer of the application.
 * Kernel sources come from the library or, if the environment variable TCONV_CL_KERNEL_DIR names a
 * folder now, from that folder. Returns TCONV_ERROR_ARGUMENT (also for an environment variable with
 * an illegal value: tuning.h, TCONV_CL_MATRIX), _MISMATCH (the device is not in the context, or the
 * context takes no sub-device of it), _HOST_MEMORY, _DEVICE_MEMORY, _OPENCL. Ownership: the
 * caller's, until tconv_device_release. Threads: the object may be used by any number of threads at
 * once. */
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

/* The object's context and OpenCL device. Borrowed: valid as long as the object. NULL if `device`
 * is NULL. */
TCONV_API cl_context tconv_device_context(const tconv_device *device);
TCONV_API cl_device_id tconv_device_id(const tconv_device *device);

/* The multiply-adds (tconv_geometry.macs) that the host computes in about the time of launching a
 * kernel: 2 million on a CPU whose driver has threads (some 12 us on two cores with AVX-512), half
 * a million on one with threads of the library, 0 on other devices. A program with its own
 * implementation may use that for smaller problems. NULL: 0. */
TCONV_API uint64_t tconv_device_least_macs(const tconv_device *device);

/* The pool of workspaces, from which layers that run on queues (layer.h) and need one take it. A
 * workspace is used again when the last execution in it has ended, or by a later execution on the
 * same in-order queue. Otherwise the device gets another one, up to 4. If all are in use, an
 * execution waits, on the device, for the least recently used one. So it may wait for any execution
 * that was enqueued before it on the same tconv_device. Do not let an earlier execution wait for a
 * user event that you set only after a later one has ended: neither would end. If the earlier one
 * fails, so may the one that waits.
 *
 * tconv_device_workspace_bytes is the pool's bytes of device memory. NULL: 0.
 * tconv_device_trim_workspaces releases the workspaces, and the queues and buffers for arrays of
 * the host that no call uses; later executions make new ones. Pending executions run to completion,
 * and OpenCL keeps their workspaces until then. NULL is a no-op. PoCL never ends an execution that
 * waits for an event which fails: this is how the pool forgets its workspace. Any thread. */
TCONV_API uint64_t tconv_device_workspace_bytes(tconv_device *device);
TCONV_API void tconv_device_trim_workspaces(tconv_device *device);

#ifdef __cplusplus
}
#endif

#endif
