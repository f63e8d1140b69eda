/* SPDX-License-Identifier: Apache-2.0 */
/* The architectures of GPUs, by the names that their makers' and Mesa's drivers give them. */
#include "base/architectures.h"
#include "device/recognise.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum {
    OTHER = TCONV_ARCHITECTURE_OTHER,
    NVIDIA = TCONV_ARCHITECTURE_NVIDIA,
    RDNA = TCONV_ARCHITECTURE_AMD_RDNA,
    CDNA = TCONV_ARCHITECTURE_AMD_CDNA,
    MALI = TCONV_ARCHITECTURE_MALI,
    ADRENO = TCONV_ARCHITECTURE_ADRENO,
    POWERVR = TCONV_ARCHITECTURE_POWERVR,
    XE_HP = TCONV_ARCHITECTURE_INTEL_XE_HP,
    VIDEOCORE = TCONV_ARCHITECTURE_VIDEOCORE
};

/* By their names alone. */
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

/* With their vendors, where a row needs them. */
static const struct {
    const char *name, *vendor;
    int architecture;
} of_vendors[] = {
    {"Mali-G78", "ARM", MALI},
    {"Mali-G78 r0p0", "ARM", MALI},
    {"Mali-G610 r0p0", "ARM", MALI},
    {"Mali-G715-Immortalis MC11", "ARM", MALI},
    {"Immortalis-G720 MC12", "", MALI},
    {"a product of tomorrow", "ARM", MALI},
    {"Mali-G52 (Panfrost)", "Arm", MALI},
    {"Mali-G610 MC4 (Panfrost)", "Arm", MALI},
    {"Mali T720 (Panfrost)", "Panfrost", MALI},
    {"QUALCOMM Adreno(TM)", "QUALCOMM", ADRENO},
    {"QUALCOMM Adreno(TM) 740", "QUALCOMM", ADRENO},
    {"Qualcomm(R) Adreno(TM) X1-85 GPU", "QUALCOMM", ADRENO},
    {"FD740", "freedreno", ADRENO},
    {"FD618", "", ADRENO},
    {"Adreno (TM) 740", "Mesa", ADRENO},
    {"zink Vulkan 1.4(Turnip Adreno (TM) 740 (MESA_TURNIP))", "Mesa", ADRENO},
    {"PowerVR Rogue GE8320", "Imagination Technologies", POWERVR},
    {"PowerVR B-Series BXM-8-256", "Imagination Technologies", POWERVR},
    {"zink Vulkan 1.2(PowerVR A-Series AXE-1-16M (IMAGINATION_OPEN_SOURCE_MESA))", "", POWERVR},
    {"FD", "", OTHER},
    {"NVIDIA Tegra X1", "NVIDIA Corporation", OTHER},
    {"Mesa Intel(R) Arc(tm) A770 Graphics (DG2)", "Intel", OTHER},
    {"VideoCore IV GPU", "Broadcom", VIDEOCORE},
    {"V3D 4.2.14.0", "Broadcom", VIDEOCORE},
    {"V3D 7.1.10.2", "", VIDEOCORE},
    {"llvmpipe (LLVM 15.0.6, 128 bits)", "Mesa/X.org", OTHER},
    {"", "", OTHER},
};

/* By what else a driver says. */
static const struct {
    struct tconv_gpu_facts facts;
    int architecture;
} by_facts[] = {
    {{"NVIDIA H200", "NVIDIA Corporation", true, false}, NVIDIA},
    {{"NVIDIA Tegra X1", "NVIDIA Corporation", true, false}, NVIDIA},
    {{"Intel(R) Arc(TM) A770 Graphics", "Intel(R) Corporation", false, true}, XE_HP},
    {{"Intel(R) UHD Graphics 620", "Intel(R) Corporation", false, false}, OTHER},
};

static bool reached[64]; /* by a row */

static void expect(const struct tconv_gpu_facts *facts, int wanted)
{
    const tconv_architecture architecture = tconv_gpu_architecture(facts);
    if ((int)architecture != wanted)
        fail_msg("%s, %s: architecture %d, not %d", facts->name, facts->vendor, (int)architecture,
                 wanted);
    reached[architecture] = true;
}

static void what_drivers_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        expect(&(struct tconv_gpu_facts){devices[i].name, "", false, false},
               devices[i].architecture);
    for (size_t i = 0; i < sizeof of_vendors / sizeof *of_vendors; i++)
        expect(&(struct tconv_gpu_facts){of_vendors[i].name, of_vendors[i].vendor, false, false},
               of_vendors[i].architecture);
    for (size_t i = 0; i < sizeof by_facts / sizeof *by_facts; i++)
        expect(&by_facts[i].facts, by_facts[i].architecture);
    assert_true(tconv_has_trait(TCONV_ARCHITECTURE_MALI, TCONV_TRAIT_PHONE));
    assert_false(tconv_has_trait(TCONV_ARCHITECTURE_NVIDIA, TCONV_TRAIT_PHONE));
    assert_false(tconv_has_trait(TCONV_ARCHITECTURE_OTHER, TCONV_TRAIT_PHONE));
#define ROW(row, name, ...)                                                                        \
    if (!reached[TCONV_ARCHITECTURE_##row])                                                        \
        fail_msg("no row of test_gpu_name.c is a GPU of the family %s, or architectures.h does "   \
                 "not recognise it",                                                               \
                 name);
    ARCHITECTURES(ROW)
#undef ROW
}

/* Freedreno says 9999 of every GPU. */
static void units_that_nobody_counted(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t reported, units;
    } rows[] = {{"FD618", 9999, 1},         {"FD630", 9999, 2}, {"FD650", 9999, 3},
                {"FD690", 9999, 8},         {"FD730", 9999, 4}, {"FD740", 9999, 6},
                {"FD999", 9999, 2},         {"FD740", 5, 5},    {"gfx942", 304, 304},
                {"NVIDIA H200", 9999, 9999}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(tconv_gpu_compute_units(rows[i].name, rows[i].reported), rows[i].units);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_drivers_say),
                                       cmocka_unit_test(units_that_nobody_counted)};
    return cmocka_run_group_tests_name("gpu_name", tests, NULL, NULL);
}
