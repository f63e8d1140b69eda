/* SPDX-License-Identifier: Apache-2.0 */
#include "device/processor.h"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <cpuid.h>

/* Leaf 7 of cpuid: bits of subleaf 0 in ebx and ecx, of subleaf 1 in eax. */
#define AVX512F (1u << 16)
#define AVX512VL (1u << 31)
#define AVX512VNNI (1u << 11)
#define AVXVNNI (1u << 4)

/* Leaf 1, ecx. */
#define OSXSAVE (1u << 27)

/* The registers that the operating system keeps, as bits of xcr0: xmm and ymm; mask registers and
 * both parts of zmm. */
#define YMM 0x06u
#define ZMM 0xe6u

static unsigned kept_registers(void)
{
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

tconv_matrix_unit tconv_processor_unit(void)
{
    unsigned eax, ebx, ecx, edx;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || (ecx & OSXSAVE) == 0) return TCONV_MATRIX_NONE;
    const unsigned kept = kept_registers();
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return TCONV_MATRIX_NONE;
    const unsigned subleaves = eax;
    if ((ebx & AVX512F) != 0 && (ebx & AVX512VL) != 0 && (ecx & AVX512VNNI) != 0 &&
        (kept & ZMM) == ZMM)
        return TCONV_MATRIX_X86_AVX512_VNNI;
    if (subleaves >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && (eax & AVXVNNI) != 0 &&
        (kept & YMM) == YMM)
        return TCONV_MATRIX_X86_AVX_VNNI;
    return TCONV_MATRIX_NONE;
}
#else
tconv_matrix_unit tconv_processor_unit(void)
{
    return TCONV_MATRIX_NONE;
}
#endif
