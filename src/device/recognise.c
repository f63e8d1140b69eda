/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises processors by cpuid, which PoCL takes assembly, and families of GPUs by their names.
 */
#include "device/recognise.h"

#include "base/architectures.h"

#include <stdlib.h>
#include <string.h>

/* ---- processors ---- */

/* Leaf 1 of cpuid: a bit of ecx. */
#define OSXSAVE (1u << 27)

/* Leaf 7: bits of subleaf 0 in ebx and ecx, of subleaf 1 in eax. */
#define AVX512F (1u << 16)
#define AVX512VL (1u << 31)
#define AVX512VNNI (1u << 11)
#define AVXVNNI (1u << 4)
#define AVX512BF16 (1u << 5)

/* The registers that the operating system keeps, as bits of xcr0: xmm and ymm; mask registers and
 * both parts of zmm. */
#define YMM 0x06u
#define ZMM 0xe6u

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <cpuid.h>

static uint32_t kept_registers(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

struct tconv_processor tconv_processor_read(void)
{
    struct tconv_processor p = {0};
    unsigned eax, ebx, ecx, edx;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return p;
    p.leaf1_ecx = ecx;
    if ((ecx & OSXSAVE) != 0) p.kept = kept_registers();
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return p;
    p.leaf7_ebx = ebx;
    p.leaf7_ecx = ecx;
    if (eax >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx)) p.leaf7_1_eax = eax;
    return p;
}
#else
struct tconv_processor tconv_processor_read(void)
{
    return (struct tconv_processor){0};
}
#endif

bool tconv_processor_has(const struct tconv_processor *p, tconv_matrix_unit unit)
{
    if ((p->leaf1_ecx & OSXSAVE) == 0) return false;
    switch (unit) {
    case TCONV_MATRIX_X86_AVX512_BF16:
        return (p->leaf7_1_eax & AVX512BF16) != 0 &&
               tconv_processor_has(p, TCONV_MATRIX_X86_AVX512_VNNI);
    case TCONV_MATRIX_X86_AVX512_VNNI:
        return (p->leaf7_ebx & AVX512F) != 0 && (p->leaf7_ebx & AVX512VL) != 0 &&
               (p->leaf7_ecx & AVX512VNNI) != 0 && (p->kept & ZMM) == ZMM;
    case TCONV_MATRIX_X86_AVX_VNNI:
        return (p->leaf7_1_eax & AVXVNNI) != 0 && (p->kept & YMM) == YMM;
    default: return false;
    }
}

tconv_matrix_unit tconv_processor_unit(const struct tconv_processor *processor)
{
    static const tconv_matrix_unit units[] = {
        TCONV_MATRIX_X86_AVX512_BF16, TCONV_MATRIX_X86_AVX512_VNNI, TCONV_MATRIX_X86_AVX_VNNI};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (tconv_processor_has(processor, units[i])) return units[i];
    return TCONV_MATRIX_NONE;
}

bool tconv_takes_assembly(const tconv_device_info *device)
{
    const long release = strtol(device->driver, NULL, 10); /* "5.0+debian" */
    return strcmp(device->platform, TCONV_POCL) != 0 || release < 4 || release > 6;
}

/* ---- GPUs ---- */

/* Of "gfx" with the major version and two more digits: the minor one and the stepping. */
static tconv_architecture version_architecture(const char *name)
{
    const size_t digits = strspn(name + 3, "0123456789abcdef");
    return digits == 3   ? TCONV_ARCHITECTURE_AMD_CDNA
           : digits == 4 ? TCONV_ARCHITECTURE_AMD_RDNA
                         : TCONV_ARCHITECTURE_OTHER;
}

/* The architecture of an AMD GPU, or OTHER if the name is not one that AMD's or Mesa's driver
 * gives. AMD's names begin with "gfx" and a version. Mesa's have the driver, the chip and more in
 * brackets behind the product: "AMD Radeon RX 7900 XTX (radeonsi, navi31, ACO, DRM 3.57)". */
static tconv_architecture amd_architecture(const char *name)
{
    /* Chips that Mesa names without a version. Its newer ones have one; all others are older. */
    static const char *const rdna[] = {"navi", "vangogh", "rembrandt", "raphael", "phoenix"};
    static const char driver[] = "(radeonsi, ";
    if (strncmp(name, "gfx", 3) == 0) return version_architecture(name);
    const char *chip = strstr(name, driver);
    if (chip == NULL) return TCONV_ARCHITECTURE_OTHER;
    chip += sizeof driver - 1;
    if (strncmp(chip, "gfx", 3) == 0) return version_architecture(chip);
    for (size_t i = 0; i < sizeof rdna / sizeof *rdna; i++)
        if (strncmp(chip, rdna[i], strlen(rdna[i])) == 0) return TCONV_ARCHITECTURE_AMD_RDNA;
    return TCONV_ARCHITECTURE_AMD_CDNA;
}

/* Freedreno's names: "FD740". */
static bool is_freedreno(const char *name)
{
    return strncmp(name, "FD", 2) == 0 && name[2] >= '0' && name[2] <= '9';
}

/* The architecture of a GPU for phones, or OTHER. The product is somewhere in the name: Mesa puts
 * its driver in front of it or behind it. Some names have no product; then the vendor tells. */
static tconv_architecture mobile_architecture(const char *name, const char *vendor)
{
    static const struct {
        const char *text;
        tconv_architecture architecture;
    } products[] = {{"Mali", TCONV_ARCHITECTURE_MALI},
                    {"Immortalis", TCONV_ARCHITECTURE_MALI},
                    {"Adreno", TCONV_ARCHITECTURE_ADRENO},
                    {"PowerVR", TCONV_ARCHITECTURE_POWERVR}},
      vendors[] = {{"ARM", TCONV_ARCHITECTURE_MALI},
                   {"Arm", TCONV_ARCHITECTURE_MALI},
                   {"QUALCOMM", TCONV_ARCHITECTURE_ADRENO},
                   {"Qualcomm", TCONV_ARCHITECTURE_ADRENO},
                   {"Imagination", TCONV_ARCHITECTURE_POWERVR}};
    if (is_freedreno(name)) return TCONV_ARCHITECTURE_ADRENO;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        if (strstr(name, products[i].text) != NULL) return products[i].architecture;
    for (size_t i = 0; i < sizeof vendors / sizeof *vendors; i++)
        if (strncmp(vendor, vendors[i].text, strlen(vendors[i].text)) == 0)
            return vendors[i].architecture;
    return TCONV_ARCHITECTURE_OTHER;
}

tconv_architecture tconv_gpu_architecture(const struct tconv_gpu_facts *facts)
{
    if (facts->nvidia) return TCONV_ARCHITECTURE_NVIDIA;
    if (facts->intel_xe_hp) return TCONV_ARCHITECTURE_INTEL_XE_HP;
    const tconv_architecture amd = amd_architecture(facts->name);
    return amd != TCONV_ARCHITECTURE_OTHER ? amd : mobile_architecture(facts->name, facts->vendor);
}

bool tconv_is_mobile(tconv_architecture architecture)
{
#define ROW(row, name, phone)                                                                      \
    if (architecture == TCONV_ARCHITECTURE_##row) return (phone) != 0;
    ARCHITECTURES(ROW)
#undef ROW
    return false;
}
