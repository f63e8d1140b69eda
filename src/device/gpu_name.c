/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises families of GPUs. */
#include "device/gpu_name.h"

#include "base/architectures.h"

#include <stddef.h>
#include <string.h>

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
