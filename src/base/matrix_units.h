/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix units of GPUs: how a device that has one is recognised, and what the tool calls it.
 * One row for each enumerator of tconv_matrix_unit that is not of CPUs. src/algorithm/gpu/units.c
 * has what kernels need to know.
 *
 *   U(unit, name, family, extension, devices, least, most)
 *
 *   family       of the GPUs that have it: a row of architectures.h
 *   extension    of OpenCL that devices with this unit have; "": any
 *   devices      what their names begin with, separated by spaces; "": anything
 *   least, most  the compute capabilities, of NVIDIA's devices, as 10 * major + minor; 0: any
 *
 * The first row that fits is taken. A unit is used only after it passed small tests on the device
 * itself (plan/unit.h). */
#ifndef TCONV_BASE_MATRIX_UNITS_H
#define TCONV_BASE_MATRIX_UNITS_H

/* clang-format off */
#define MATRIX_UNITS(U)                                                                            \
    U(NVIDIA_WGMMA, "wgmma", NVIDIA, "", "", 90, 90)                                               \
    U(NVIDIA_MMA, "mma", NVIDIA, "", "", 80, 0)                                                    \
    U(INTEL_DPAS, "dpas", INTEL_XE_HP, "cl_intel_subgroup_matrix_multiply_accumulate", "", 0, 0)   \
    U(AMD_WMMA, "wmma", AMD_RDNA, "", "gfx11", 0, 0)                                               \
    U(AMD_WMMA12, "wmma12", AMD_RDNA, "", "gfx120", 0, 0)                                          \
    U(AMD_MFMA, "mfma", AMD_CDNA, "", "gfx908 gfx90a gfx942 gfx950", 0, 0)
/* clang-format on */

/* The option, with the value 1, of programs with wgmma: their binaries are changed before they are
 * used (src/device/sm_90a.h). */
#define TCONV_SM_90A "SM_90A"

#endif
