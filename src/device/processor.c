/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out which instructions the processor has (by cpuid), and which PoCL takes assembly. */
#include "device/processor.h"

#include <stdlib.h>
#include <string.h>

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
