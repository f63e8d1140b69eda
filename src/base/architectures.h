/* SPDX-License-Identifier: Apache-2.0 */
/* The families of GPUs that the cost model knows: one row for each enumerator of tconv_architecture
 * but OTHER. A device is of the first family that recognises it. A family's numbers are its list
 * TCONV_..._FIELDS in src/algorithm/cost/fields.h; its matrix units name it in matrix_units.h.
 *
 *   A(architecture, name, traits, recognised)
 *
 *   name         what the tool and docs/gpus.md call it
 *   traits       of TCONV_TRAIT_... below
 *   recognised   whether a device is one of them: an expression of what src/device/recognise.c
 *                offers, `facts` among it */
#ifndef TCONV_BASE_ARCHITECTURES_H
#define TCONV_BASE_ARCHITECTURES_H

#include "tconv_cl/device.h"

#include <stdbool.h>

enum {
    TCONV_TRAIT_PHONE = 1,    /* it also draws what a phone shows, so that launches must be short */
    TCONV_TRAIT_EMULATES = 2, /* its local memory is a part of global memory */
    TCONV_TRAIT_LARGE = 4,    /* a kernel may ask for 256 registers of a thread instead of 128 */
    TCONV_TRAIT_NARROW = 8,   /* it adds 32 bits at a time: cl/gpu/near.clh */
    TCONV_TRAIT_KEEPS = 16,   /* a work-item has registers for many addresses */
    TCONV_TRAIT_TEXTURES = 32, /* images are read through a cache of their own */
};

/* clang-format off */
#define ARCHITECTURES(A)                                                                           \
    A(NVIDIA, "NVIDIA", 0, facts->nvidia)                                                          \
    A(INTEL_XE_HP, "Intel Xe-HP", TCONV_TRAIT_LARGE, facts->intel_xe_hp)                           \
    A(AMD_RDNA, "AMD RDNA", 0,                                                                     \
      gfx_digits(facts->name) == 4 ||                                                              \
          has_chip(facts->name, "navi vangogh rembrandt raphael phoenix"))                         \
    A(AMD_CDNA, "AMD CDNA", 0, gfx_digits(facts->name) == 3 || has_chip(facts->name, ""))          \
    A(MALI, "Mali", TCONV_TRAIT_PHONE | TCONV_TRAIT_EMULATES | TCONV_TRAIT_NARROW,                 \
      has_word(facts->name, "Mali Immortalis") || tconv_begins(facts->vendor, "ARM Arm"))          \
    A(ADRENO, "Adreno",                                                                            \
      TCONV_TRAIT_PHONE | TCONV_TRAIT_NARROW | TCONV_TRAIT_KEEPS | TCONV_TRAIT_TEXTURES,           \
      is_freedreno(facts->name) || has_word(facts->name, "Adreno") ||                              \
          tconv_begins(facts->vendor, "QUALCOMM Qualcomm"))                                        \
    A(POWERVR, "PowerVR", TCONV_TRAIT_PHONE,                                                       \
      has_word(facts->name, "PowerVR") || tconv_begins(facts->vendor, "Imagination"))              \
    A(VIDEOCORE, "VideoCore", TCONV_TRAIT_PHONE | TCONV_TRAIT_EMULATES,                            \
      tconv_begins(facts->name, "V3D VideoCore") || tconv_begins(facts->vendor, "Broadcom"))
/* clang-format on */

static inline bool tconv_has_trait(tconv_architecture architecture, int trait)
{
#define ROW(row, name, traits, recognised)                                                         \
    if (architecture == TCONV_ARCHITECTURE_##row) return ((traits)&trait) != 0;
    ARCHITECTURES(ROW)
#undef ROW
    return false;
}

#endif
