/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of described.h: their names and properties. */
#include "described.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPU                                                                                        \
    .kind = TCONV_DEVICE_CPU, .compute_units = 8, .global_memory = UINT64_C(64) << 30,             \
    .allocation_limit = UINT64_C(16) << 30, .constant_kib = 16 << 20, .double_arithmetic = true

#define AMD(units)                                                                                 \
    .kind = TCONV_DEVICE_GPU, .compute_units = units, .vector_width = 1, .work_group_limit = 256,  \
    .work_item_limit = {1024, 1024, 1024}, .local_memory = 64 << 10,                               \
    .global_memory = UINT64_C(16) << 30, .allocation_limit = UINT64_C(12) << 30,                   \
    .constant_kib = 12 << 20, .dedicated_local = true, .double_arithmetic = true, .fma = true,     \
    .half_arithmetic = true

#define INTEL_OF(units, items)                                                                     \
    .kind = TCONV_DEVICE_GPU, .compute_units = units, .vector_width = 1,                           \
    .work_group_limit = items, .work_item_limit = {items, items, items}, .local_memory = 64 << 10, \
    .global_memory = UINT64_C(16) << 30, .allocation_limit = UINT64_C(4) << 30,                    \
    .constant_kib = 4 << 20, .dedicated_local = true, .fma = true, .half_arithmetic = true,        \
    .subgroup_least = 8

#define INTEL                                                                                      \
    INTEL_OF(512, 512), .integer_dot_product = true, .architecture = TCONV_ARCHITECTURE_INTEL_XE_HP

#define INTEL_MAX                                                                                  \
    .kind = TCONV_DEVICE_GPU, .compute_units = 512, .vector_width = 1, .work_group_limit = 1024,   \
    .work_item_limit = {1024, 1024, 1024}, .local_memory = 128 << 10,                              \
    .global_memory = UINT64_C(48) << 30, .allocation_limit = UINT64_C(46) << 30,                   \
    .constant_kib = 4 << 20, .dedicated_local = true, .double_arithmetic = true, .fma = true,      \
    .half_arithmetic = true, .integer_dot_product = true, .subgroup_least = 16,                    \
    .architecture = TCONV_ARCHITECTURE_INTEL_XE_HP

#define NVIDIA_OF(units)                                                                           \
    .kind = TCONV_DEVICE_GPU, .compute_units = units, .vector_width = 1, .work_group_limit = 1024, \
    .work_item_limit = {1024, 1024, 64}, .local_memory = 48 << 10,                                 \
    .global_memory = UINT64_C(40) << 30, .allocation_limit = UINT64_C(10) << 30,                   \
    .constant_kib = 64, .dedicated_local = true, .double_arithmetic = true, .fma = true,           \
    .architecture = TCONV_ARCHITECTURE_NVIDIA

#define NVIDIA NVIDIA_OF(108)

/* What an Android phone has left for an application. */
#define PHONE                                                                                      \
    .kind = TCONV_DEVICE_GPU, .vector_width = 1, .global_memory = UINT64_C(4) << 30,               \
    .allocation_limit = UINT64_C(1) << 30, .constant_kib = 64

const struct described_device described_devices[] = {
    {"CPU AVX-512",
     {CPU, .vector_width = 16, .work_group_limit = 4096, .work_item_limit = {4096, 4096, 4096},
      .local_memory = 1 << 20, .fma = true}},
    {"AMD", {AMD(48), .architecture = TCONV_ARCHITECTURE_AMD_RDNA}},
    {"AMD CDNA", {AMD(104), .architecture = TCONV_ARCHITECTURE_AMD_CDNA}},
    {"Intel", {INTEL}},
    {"NVIDIA", {NVIDIA}},
    /* As little as a device may have; less local memory than OpenCL wants of any. */
    {"minimal",
     {.kind = TCONV_DEVICE_OTHER,
      .compute_units = 1,
      .vector_width = 1,
      .work_group_limit = 1,
      .work_item_limit = {1, 1, 1},
      .local_memory = 1 << 10,
      .global_memory = 32 << 20,
      .allocation_limit = 8 << 20}},
    {"CPU AVX2",
     {CPU, .vector_width = 8, .work_group_limit = 4096, .work_item_limit = {4096, 4096, 4096},
      .local_memory = 512 << 10, .fma = true}},
    {"CPU 4 lanes",
     {CPU, .vector_width = 4, .work_group_limit = 1, .work_item_limit = {1, 1, 1},
      .local_memory = 16 << 10}},
    {"CPU scalar",
     {CPU, .vector_width = 1, .work_group_limit = 1024, .work_item_limit = {1024, 1024, 1024},
      .local_memory = 64 << 10}},
    {"GPU vec4",
     {.kind = TCONV_DEVICE_GPU,
      .compute_units = 10,
      .vector_width = 4,
      .work_group_limit = 256,
      .work_item_limit = {256, 256, 256},
      .local_memory = 32 << 10,
      .global_memory = UINT64_C(4) << 30,
      .allocation_limit = UINT64_C(1) << 30,
      .half_arithmetic = true}},
    {"GPU small",
     {.kind = TCONV_DEVICE_GPU,
      .compute_units = 2,
      .vector_width = 1,
      .work_group_limit = 64,
      .work_item_limit = {64, 64, 64},
      .local_memory = 16 << 10,
      .global_memory = UINT64_C(1) << 30,
      .allocation_limit = UINT64_C(256) << 20}},
    /* As version 21.10 says; device_tests/oclgrind/issued.py runs on it what is listed for it. */
    {"Oclgrind",
     {.kind = TCONV_DEVICE_GPU,
      .compute_units = 1,
      .vector_width = 1,
      .work_group_limit = 1024,
      .work_item_limit = {1024, 1024, 1024},
      .local_memory = 32 << 10,
      .global_memory = 128 << 20,
      .allocation_limit = 128 << 20,
      .constant_kib = 64,
      .dedicated_local = true,
      .double_arithmetic = true}},
    {"Intel Max", {INTEL_MAX}},
    {"Intel Gen9", {INTEL_OF(24, 256), .double_arithmetic = true, .integer_dot_product = true}},
    {"AMD wmma",
     {AMD(48), .architecture = TCONV_ARCHITECTURE_AMD_RDNA, .matrix_unit = TCONV_MATRIX_AMD_WMMA}},
    {"AMD wmma12",
     {AMD(32), .architecture = TCONV_ARCHITECTURE_AMD_RDNA,
      .matrix_unit = TCONV_MATRIX_AMD_WMMA12}},
    {"AMD mfma",
     {AMD(304), .architecture = TCONV_ARCHITECTURE_AMD_CDNA, .matrix_unit = TCONV_MATRIX_AMD_MFMA}},
    {"Intel dpas", {INTEL, .matrix_unit = TCONV_MATRIX_INTEL_DPAS}},
    {"Intel Max dpas", {INTEL_MAX, .matrix_unit = TCONV_MATRIX_INTEL_DPAS}},
    {"NVIDIA mma", {NVIDIA, .matrix_unit = TCONV_MATRIX_NVIDIA_MMA}},
    {"NVIDIA wgmma", /* an H100 */
     {NVIDIA_OF(132), .clock_mhz = 1980, .matrix_unit = TCONV_MATRIX_NVIDIA_WGMMA}},
    {"Mali-G78",
     {PHONE, .compute_units = 20, .work_group_limit = 512, .work_item_limit = {512, 512, 512},
      .local_memory = 32 << 10, .fma = true, .half_arithmetic = true, .integer_dot_product = true,
      .clock_mhz = 848, .architecture = TCONV_ARCHITECTURE_MALI}},
    {"Adreno 740",
     {PHONE, .compute_units = 6, .work_group_limit = 1024, .work_item_limit = {1024, 1024, 1024},
      .local_memory = 32 << 10, .dedicated_local = true, .half_arithmetic = true,
      .integer_dot_product = true, .clock_mhz = 680, .architecture = TCONV_ARCHITECTURE_ADRENO,
      .image_pixels = 1 << 27}},
    {"VideoCore VI", /* as Mesa's driver reports it */
     {PHONE, .compute_units = 1, .work_group_limit = 256, .work_item_limit = {256, 256, 256},
      .local_memory = 32 << 10, .integer_dot_product = true, .clock_mhz = 500,
      .architecture = TCONV_ARCHITECTURE_VIDEOCORE}},
    {"PowerVR 4 KiB",
     {PHONE, .compute_units = 1, .work_group_limit = 512, .work_item_limit = {512, 512, 512},
      .local_memory = 4 << 10, .dedicated_local = true, .clock_mhz = 650,
      .architecture = TCONV_ARCHITECTURE_POWERVR}},
    /* A GPU with the least that the embedded profile of OpenCL 1.2 allows, but for larger
     * work-groups, and buffers that the layers of the suite fit into. */
    {"GPU minimal",
     {.kind = TCONV_DEVICE_GPU,
      .compute_units = 1,
      .vector_width = 1,
      .work_group_limit = 64,
      .work_item_limit = {64, 64, 64},
      .local_memory = 1 << 10,
      .global_memory = 512 << 20,
      .allocation_limit = 128 << 20,
      .constant_kib = 1}},
    {NULL, {0}},
};

const tconv_device_info *described_device(const char *name)
{
    for (const struct described_device *d = described_devices; d->name != NULL; d++)
        if (strcmp(d->name, name) == 0) return &d->info;
    fprintf(stderr, "described.c has no device \"%s\"\n", name);
    abort();
}
