/* SPDX-License-Identifier: Apache-2.0 */
/* The families of GPUs that the cost model knows: one row for each enumerator of tconv_architecture
 * but OTHER. src/device/recognise.c recognises them, src/algorithm/cost/fields.h has their numbers.
 *
 *   A(architecture, name, phone)
 *
 *   name     what the tool and docs/gpus.md call it
 *   phone    1: such a GPU also draws what a phone shows, so that launches must be short */
#ifndef TCONV_BASE_ARCHITECTURES_H
#define TCONV_BASE_ARCHITECTURES_H

/* clang-format off */
#define ARCHITECTURES(A)                                                                           \
    A(NVIDIA, "NVIDIA", 0)                                                                         \
    A(AMD_RDNA, "AMD RDNA", 0)                                                                     \
    A(AMD_CDNA, "AMD CDNA", 0)                                                                     \
    A(MALI, "Mali", 1)                                                                             \
    A(ADRENO, "Adreno", 1)                                                                         \
    A(POWERVR, "PowerVR", 1)                                                                       \
    A(INTEL_XE_HP, "Intel Xe-HP", 0)
/* clang-format on */

#endif
