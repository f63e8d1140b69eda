/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises hardware by what it reports: the instructions of the processor that runs this process,
 * and the family of a GPU. */
#ifndef TCONV_DEVICE_RECOGNISE_H
#define TCONV_DEVICE_RECOGNISE_H

#include "tconv_cl/device.h"

#include <stdbool.h>
#include <stdint.h>

/* The name of PoCL's platform. */
#define TCONV_POCL "Portable Computing Language"

/* What the processor reports; all 0 if it reports nothing. */
struct tconv_processor {
    uint32_t leaf1_ecx, leaf7_ebx, leaf7_ecx, leaf7_1_eax; /* cpuid */
    uint32_t kept;                                         /* xcr0, low half */
};

struct tconv_processor tconv_processor_read(void);

/* True if the processor has the instructions of `unit`, a TCONV_MATRIX_X86_*, and the operating
 * system saves their registers. These instructions add up products of bytes or bf16. */
bool tconv_processor_has(const struct tconv_processor *processor, tconv_matrix_unit unit);

/* The best TCONV_MATRIX_X86_* that the processor has, or TCONV_MATRIX_NONE. */
tconv_matrix_unit tconv_processor_unit(const struct tconv_processor *processor);

/* True if a device's compiler takes assembly in kernels. PoCL 4 to 6 mistake it for a call of their
 * own function (handleLocalMemAllocas in lib/llvmopencl/WorkitemLoops.cc) and end the process. */
bool tconv_takes_assembly(const tconv_device_info *device);

/* What a driver says of a GPU. */
struct tconv_gpu_facts {
    const char *name, *vendor;
    bool nvidia;      /* it has cl_nv_device_attribute_query */
    bool intel_xe_hp; /* Intel's version 12.50 or later */
};

/* The family of a GPU, or OTHER. A row of test_gpu_name.c shows how each one is recognised. */
tconv_architecture tconv_gpu_architecture(const struct tconv_gpu_facts *facts);

/* The compute units of a GPU that reports `reported` of them: Mesa's driver for Adreno says 9999 of
 * every one, so the number then comes from its name. */
uint32_t tconv_gpu_compute_units(const char *name, uint32_t reported);

/* Whether a text begins with one of these words, which spaces separate. */
bool tconv_begins(const char *text, const char *words);

#endif
