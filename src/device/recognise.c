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

/* What stands in Mesa's names for AMD's GPUs in front of the chip: "AMD Radeon RX 7900 XTX
 * (radeonsi, navi31, ACO, DRM 3.57)". */
static const char mesa[] = "(radeonsi, ";

bool tconv_begins(const char *text, const char *words)
{
    while (*words != '\0') {
        const size_t length = strcspn(words, " ");
        if (strncmp(text, words, length) == 0) return true;
        words += length + strspn(words + length, " ");
    }
    return false;
}

/* Whether a name has one of these words in it. Mesa puts its driver in front of a product or behind
 * it. */
static bool has_word(const char *name, const char *words)
{
    while (*name != '\0' && !tconv_begins(name, words)) name++;
    return *name != '\0';
}

/* Whether Mesa's driver for AMD's GPUs names a chip that begins with one of these words; "": any
 * chip. Its newer chips have a version instead: gfx_digits. */
static bool has_chip(const char *name, const char *words)
{
    const char *chip = strstr(name, mesa);
    return chip != NULL && (*words == '\0' || tconv_begins(chip + sizeof mesa - 1, words));
}

/* AMD's names, and those of Mesa's newer chips, have "gfx" and a version: the major one, which may
 * have two digits, and two more digits, hexadecimal ones. Returns how many; 0 without a version. */
static size_t gfx_digits(const char *name)
{
    const char *chip = strstr(name, mesa);
    if (chip != NULL) name = chip + sizeof mesa - 1;
    return tconv_begins(name, "gfx") ? strspn(name + 3, "0123456789abcdef") : 0;
}

/* Freedreno's names: "FD740". */
static bool is_freedreno(const char *name)
{
    return tconv_begins(name, "FD") && name[2] >= '0' && name[2] <= '9';
}

uint32_t tconv_gpu_compute_units(const char *name, uint32_t reported)
{
    /* num_ccu of Mesa's src/freedreno/common/freedreno_devices.py. */
    static const struct {
        const char *names;
        uint32_t units;
    } rows[] = {{"FD60 FD61 FD620 FD702", 1},
                {"FD650 FD660 FD644", 3},
                {"FD680 FD72 FD73", 4},
                {"FD74 FD75 FD8", 6},
                {"FD690", 8}};
    enum { PLACEHOLDER = 9999, FEW = 2 }; /* FEW: FD630, FD640, FD643, and what is not listed */
    if (reported != PLACEHOLDER || !is_freedreno(name)) return reported;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (tconv_begins(name, rows[i].names)) return rows[i].units;
    return FEW;
}

tconv_architecture tconv_gpu_architecture(const struct tconv_gpu_facts *facts)
{
#define ROW(row, name, traits, recognised)                                                         \
    if (recognised) return TCONV_ARCHITECTURE_##row;
    ARCHITECTURES(ROW)
#undef ROW
    return TCONV_ARCHITECTURE_OTHER;
}
