/* SPDX-License-Identifier: Apache-2.0 */
/* The architectures of AMD's GPUs, by names that AMD's and Mesa's drivers give them. */
#include "device/gpu_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum {
    OTHER = TCONV_ARCHITECTURE_OTHER,
    RDNA = TCONV_ARCHITECTURE_AMD_RDNA,
    CDNA = TCONV_ARCHITECTURE_AMD_CDNA
};

static const struct {
    const char *name;
    int architecture;
} devices[] = {
    {"gfx1100", RDNA},
    {"gfx1201", RDNA},
    {"gfx1010:xnack-", RDNA},
    {"gfx90a:sramecc+:xnack-", CDNA},
    {"gfx942", CDNA},
    {"gfx803", CDNA},
    {"gfx", OTHER},
    {"AMD Radeon RX 7900 XTX (radeonsi, navi31, LLVM 15.0.6, DRM 3.49, 6.1.0)", RDNA},
    {"AMD Radeon RX 6600 XT (radeonsi, navi23, LLVM 17.0.6, DRM 3.57, 6.8.0)", RDNA},
    {"AMD Radeon RX 9060 XT (radeonsi, gfx1200, ACO, DRM 3.64, 7.2.5-200.fc44.x86_64)", RDNA},
    {"AMD Radeon 780M (radeonsi, gfx1103_r1, LLVM 19.1.6, DRM 3.59, 6.12.9-arch1-1)", RDNA},
    {"AMD Ryzen 9 7950X (radeonsi, raphael_mendocino, ACO, DRM 3.57, 6.8.0)", RDNA},
    {"AMD Custom GPU 0405 (radeonsi, vangogh, LLVM 15.0.7, DRM 3.45, 5.13.0)", RDNA},
    {"AMD Radeon Graphics (radeonsi, rembrandt, LLVM 15.0.7, DRM 3.49, 6.2.0)", RDNA},
    {"AMD Radeon Graphics (radeonsi, renoir, LLVM 15.0.6, DRM 3.49, 6.1.0)", CDNA},
    {"AMD Radeon Vega 8 Graphics (radeonsi, raven, LLVM 15.0.7, DRM 3.49, 6.2.0)", CDNA},
    {"AMD Radeon Pro VII (radeonsi, vega20, LLVM 15.0.7, DRM 3.49, 6.2.0)", CDNA},
    {"AMD Radeon RX 580 Series (radeonsi, polaris10, LLVM 15.0.6, DRM 3.49, 6.1.0)", CDNA},
    {"AMD Instinct MI100 (radeonsi, mi100, LLVM 17.0.6, DRM 3.57, 6.8.0)", CDNA},
    {"AMD Instinct MI210 (radeonsi, mi200, LLVM 17.0.6, DRM 3.57, 6.8.0)", CDNA},
    {"AMD Instinct MI300X (radeonsi, gfx942, LLVM 19.1.6, DRM 3.59, 6.12.9)", CDNA},
    {"llvmpipe (LLVM 15.0.6, 256 bits)", OTHER},
    {"Mesa Intel(R) Arc(tm) A770 Graphics (DG2)", OTHER},
    {"NVIDIA H200", OTHER},
    {"", OTHER},
};

static void names_of_drivers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if ((int)tconv_amd_architecture(devices[i].name) != devices[i].architecture)
            fail_msg("%s", devices[i].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_of_drivers)};
    return cmocka_run_group_tests_name("gpu_name", tests, NULL, NULL);
}
