/* SPDX-License-Identifier: Apache-2.0 */
/* The properties of a device that the library uses. Needs no OpenCL header. */
#ifndef TCONV_CL_DEVICE_INFO_H
#define TCONV_CL_DEVICE_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
    TCONV_MATRIX_AMD_WMMA12 = 9 /* gfx12: other fragments than those of gfx11 */
} tconv_matrix_unit;

/* Families of GPUs whose registers, local memory and rates the cost model knows. Other GPUs are
 * treated like NVIDIA's. */
typedef enum tconv_architecture {
    TCONV_ARCHITECTURE_OTHER = 0,      /* none of these, or unknown */
    TCONV_ARCHITECTURE_NVIDIA = 1,     /* its driver has cl_nv_device_attribute_query */
    TCONV_ARCHITECTURE_AMD_RDNA = 2,   /* gfx10 and later */
    TCONV_ARCHITECTURE_AMD_CDNA = 3,   /* gfx9 and before: 64 lanes; also GCN */
    TCONV_ARCHITECTURE_INTEL_XE_HP = 7 /* Xe-HP, Xe-HPG, Xe-HPC and later: a kernel may ask for 256
                                          registers of a thread instead of 128 */
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
    bool integer_dot_product; /* cl_khr_integer_dot_product */
    uint32_t subgroup_least;  /* lanes of the narrowest sub-group that a kernel may ask for
                                 (cl_intel_required_subgroup_size); 0: it may not */
    tconv_matrix_unit matrix_unit;   /* the unit that kernels may use; see tconv_device_describe */
    uint32_t clock_mhz;              /* CL_DEVICE_MAX_CLOCK_FREQUENCY; 0: unknown */
    uint64_t cache_bytes;            /* CL_DEVICE_GLOBAL_MEM_CACHE_SIZE; 0: unknown or none */
    uint32_t constant_kib;           /* KiB: CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE; 0: unknown */
    tconv_architecture architecture; /* of a GPU */
} tconv_device_info;

#define TCONV_DEVICE_INFO_INIT                                                                     \
    {                                                                                              \
        sizeof(tconv_device_info), "", "", "", "", "", TCONV_DEVICE_OTHER, 0, 0, 0, {0, 0, 0}, 0,  \
            0, 0, false, false, false, false, false, false, 0, TCONV_MATRIX_NONE, 0, 0, 0,         \
            TCONV_ARCHITECTURE_OTHER                                                               \
    }

#endif
